# SPDX-License-Identifier: MIT
"""Sessions whose agent and clients speak the protocol of codex app-server."""
import itertools

from codex import (AMEND, COMMAND, FILE, SETTINGS, CodexCase, approval, change, completed, decided, delta, error, note,
                   result, rpc, started)
from harness import until


class Start(CodexCase):
    def test_the_daemon_begins_the_thread(self):
        d, agent = self.begin()
        a = self.attached(d, cwd="/tmp")
        child = agent.child()
        m = self.initialized(child)
        self.assertNotIn("jsonrpc", m.obj)
        self.assertIs(type(m["id"]), int)
        child.wait(method="initialized")
        m = child.wait(method="thread/start")
        self.assertEqual(m["params"], {"cwd": "/tmp"})
        child.print(result(m["id"], thread={"id": "t1", "turns": []}))
        d.wait_state("s", "idle")
        self.assertEqual(d.sessions()["s"]["conversation_id"], "t1")
        self.assertEqual(a.ok("initialize", clientInfo={"name": "x", "version": "1"})["userAgent"], "a/1")

    def test_a_program_begins_it_itself(self):
        d, agent = self.begin()
        e = self.editor(d)
        first = e.call("initialize", clientInfo={"name": "x", "version": "1"})
        child = agent.child()
        self.initialized(child)
        self.assertEqual(e.reply(first)["result.userAgent"], "a/1")
        e.send({"method": "initialized"})
        self.assertIn("begin one first", e.reply(e.prompt())["error.message"])
        second = e.call("thread/start", cwd="/usr", approvalPolicy="never")
        m = child.wait(method="thread/start")
        self.assertEqual(m["params"], {"cwd": "/usr", "approvalPolicy": "never"})
        child.print(result(m["id"], thread={"id": "t9", "turns": []}, model="big"))
        self.assertEqual(e.reply(second)["result"], {"thread": {"id": "t9", "turns": []}, "model": "big"})
        mine = e.prompt(threadId="t9")
        self.accept(child)
        self.assertEqual(e.reply(mine)["result.turn.id"], "turn1")
        self.assertEqual(len(child.seen(method="initialize")), 1)

    def test_a_program_goes_on_with_a_thread(self):
        d, agent = self.begin()
        e = self.editor(d)
        e.call("initialize", clientInfo={"name": "x", "version": "1"})
        child = agent.child()
        self.initialized(child)
        mine = e.call("thread/resume", threadId="t7")
        m = child.wait(method="thread/resume")
        self.assertEqual((m["params.threadId"], m["params.excludeTurns"]), ("t7", True))
        child.print(result(m["id"], thread={"id": "t7", "turns": []}))
        m = child.wait(lambda x: x["method"] == "thread/resume" and "excludeTurns" not in x["params"])
        child.print(result(m["id"], thread={"id": "t7", "turns": [{"id": "old"}]}))
        self.assertEqual(e.reply(mine)["result.thread.turns"], [{"id": "old"}])

    def test_a_refused_start_fails_the_session(self):
        d, agent = self.begin()
        a = self.attached(d)
        child = agent.child()
        mine = a.prompt()
        child.print(error(child.wait(method="initialize")["id"], -32603, "no model"))
        self.assertIn("no model", a.reply(mine)["error.message"])
        d.wait_state("s", "failed")

    def test_a_prompt_waits_for_the_start(self):
        _, agent = self.begin()
        a = self.attached(_)
        child = agent.child()
        mine = a.prompt("early")
        a.sync()
        self.assertEqual(child.seen(method="turn/start"), [])
        self.ready(child)
        self.assertEqual(self.accept(child, "early")["params.threadId"], "t1")
        a.reply(mine)


class Turns(CodexCase):
    def test_a_turn_for_all(self):
        d, _, child, a, b = self.open(2)
        self.turn(child, a, "hello")
        self.assertEqual(d.state_of("s"), "busy")
        uuids = b.event("turn_started")["params.uuids"]
        child.print(delta("one"), delta("two"), completed())
        for c in (a, b):
            for text in ("one", "two"):
                c.wait(method="item/agentMessage/delta", params__delta=text)
            c.wait(method="turn/completed")
        ended = b.event("turn_ended", outcome="success", is_error=False)
        self.assertEqual(ended["params.uuids"], uuids)
        d.wait_state("s", "idle")
        b.sync()
        self.assertEqual(b.seen(lambda m: m["result.turn"]), [])

    def test_lines_arrive_byte_for_byte(self):
        _, _, child, a = self.open()
        line = b'{"method":"item/started", "params" : {"item":{"x":1.50},"threadId":"t1"},"emittedAtMs":1}'
        child.print(line + b"\n")
        self.assertEqual(a.wait(method="item/started").raw, line)

    def test_types_are_methods(self):
        d, _, child, a = self.open()
        b = self.attached(d, types=["item/agentMessage/delta", "turn/completed"])
        self.turn(child, a)
        child.print(delta("x"), note("item/started", item={}), completed())
        b.wait(method="item/agentMessage/delta")
        b.wait(method="turn/completed")
        a.wait(method="item/started")
        self.assertEqual(b.seen(method="item/started"), [])

    def test_pieces_of_an_answer_are_left_out(self):
        d, _, child, a = self.open()
        b = self.attached(d, partial=False)
        self.turn(child, a)
        child.print(delta("x"), completed())
        b.wait(method="turn/completed")
        a.wait(method="item/agentMessage/delta")
        self.assertEqual(b.seen(method="item/agentMessage/delta"), [])

    def test_ids_keep_their_types(self):
        _, _, child, a = self.open()
        for rid in (0, "0", "a b", -7, 9007199254740993):
            a.prompt("p%r" % (rid,), rid)
            self.accept(child, "p%r" % (rid,))
            a.reply(rid)
            child.print(completed())

    def test_input_joins_the_turn(self):
        d, _, child, a, b = self.open(2)
        self.turn(child, a)
        hers = b.prompt("more")
        self.accept(child, "more")
        b.reply(hers)
        child.print(completed())
        self.assertEqual(len(a.event("turn_ended")["params.uuids"]), 2)
        d.wait_state("s", "idle")

    def test_a_prompt_is_part_of_a_turn_only_once_it_is_taken(self):
        d, _, child, a = self.open()
        self.turn(child, a)
        late = a.prompt("late")
        m = child.wait(method="turn/start", params__input=lambda p: p[0]["text"] == "late")
        child.print(completed())  # crossed the prompt
        self.assertEqual(len(a.event("turn_ended")["params.uuids"]), 1)
        self.assertEqual(d.state_of("s"), "busy")
        child.print(result(m["id"], turn={"id": "turn2", "items": [], "status": "inProgress"}), started("turn2"),
                    completed("turn2"))
        a.reply(late)
        self.assertEqual(len(a.event("turn_ended")["params.uuids"]), 1)
        d.wait_state("s", "idle")

    def test_a_refused_prompt(self):
        d, _, child, a = self.open()
        mine = a.prompt()
        m = child.wait(method="turn/start")
        child.print(error(m["id"], -32600, "no such model"))
        self.assertEqual(a.reply(mine)["error.message"], "no such model")
        d.wait_state("s", "idle")
        a.sync()
        self.assertEqual(a.seen(method="_plenum/event", params__event="turn_ended"), [])

    def test_a_turn_of_the_agent_itself(self):
        d, _, child, a = self.open()
        child.print(started())
        d.wait_state("s", "busy")
        child.print(completed(status="failed", fault={"message": "the model is gone"}))
        ended = a.event("turn_ended", outcome="error")
        self.assertTrue(ended["params.is_error"])
        d.wait_state("s", "idle")

    def test_a_subagent_does_not_end_the_turn(self):
        d, _, child, a = self.open()
        self.turn(child, a)
        child.print(started("sub", "t2"), completed("sub", thread="t2"), delta("on"))
        a.wait(method="turn/completed", params__threadId="t2")
        a.wait(method="item/agentMessage/delta")
        self.assertEqual(d.state_of("s"), "busy")
        self.assertEqual(d.sessions()["s"]["conversation_id"], "t1")
        child.print(completed())
        a.event("turn_ended")

    def test_another_thread_is_refused(self):
        _, _, child, a = self.open()
        self.assertIn("session s has t1", a.fails("turn/start", threadId="other", input=[])["message"])
        self.assertEqual(child.seen(method="turn/start"), [])

    def test_interrupt(self):
        d, _, child, a, b = self.open(2)
        self.turn(child, a)
        child.print(approval(75))
        asked = [self.offered(c) for c in (a, b)]
        hers = b.call("turn/interrupt", threadId="t1", turnId="turn1")
        child.print(result(child.wait(method="turn/interrupt")["id"]), completed(status="interrupted"),
                    note("serverRequest/resolved", requestId=75))
        self.assertEqual(b.reply(hers)["result"], {})
        for c, rid in zip((a, b), asked):
            m = c.wait(method="serverRequest/resolved", params__requestId=rid)
            self.assertEqual(m["params.threadId"], "t1")
            c.event("turn_ended", outcome="interrupted")
            c.sync()
            self.assertEqual(len(c.seen(method="serverRequest/resolved")), 1)
        d.wait_state("s", "idle")

    def test_queue(self):
        _, _, child, a, b = self.open(2, profile={"prompts": "queue"})
        self.turn(child, a)
        hers = b.prompt("later")
        a.event("changed", what="prompt_held")
        self.assertEqual(len(child.seen(method="turn/start")), 1)
        child.print(completed())
        self.accept(child, "later", "turn2")
        b.reply(hers)

    def steer(self, client, text="more", turn="turn1"):
        return client.call("turn/steer", threadId="t1", expectedTurnId=turn, input=[{"type": "text", "text": text}])

    def steered(self, child):
        m = child.wait(method="turn/steer")
        child.print(result(m["id"], turnId=m["params.expectedTurnId"]))
        return m

    def test_input_for_the_running_turn(self):
        d, _, child, a, b = self.open(2)
        self.turn(child, a)
        for c in (a, b):
            rid = self.steer(c)
            self.assertEqual(self.steered(child)["params.expectedTurnId"], "turn1")
            self.assertEqual(c.reply(rid)["result"], {"turnId": "turn1"})
        child.print(completed())
        self.assertEqual(len(a.event("turn_ended")["params.uuids"]), 3)
        d.wait_state("s", "idle")

    def test_input_for_the_running_turn_is_not_queued(self):
        """With prompts = queue: into its own turn at once, also if another client waits; into another's never."""
        d, _, child, a, b = self.open(2, profile={"prompts": "queue"})
        self.turn(child, a)
        held = b.prompt("later")
        a.event("changed", what="prompt_held")
        rid = self.steer(a)
        self.steered(child)
        a.reply(rid)
        refused = b.reply(self.steer(b))["error"]
        self.assertEqual(refused["data"]["code"], "not_allowed")
        self.assertIn("another client's", refused["message"])
        child.print(completed())
        self.assertEqual(len(a.event("turn_ended")["params.uuids"]), 2)
        self.accept(child, "later", "turn2")
        b.reply(held)
        child.print(started("turn2"))
        rid = self.steer(b, turn="turn2")
        self.steered(child)
        b.reply(rid)
        child.print(completed("turn2"))
        self.assertEqual(len(b.event("turn_ended", **{"uuids": lambda u: len(u) == 2})["params.uuids"]), 2)
        d.wait_state("s", "idle")
        self.assertEqual(len(child.seen(method="turn/steer")), 2)

    def test_input_without_a_turn(self):
        d, agent, child, a = self.open()
        rid = self.steer(a)
        m = child.wait(method="turn/steer")
        child.print(error(m["id"], -32600, "no active turn to steer"))
        self.assertEqual(a.reply(rid)["error.message"], "no active turn to steer")
        d.wait_state("s", "idle")
        d.call("plenum_hibernate", session="s")
        child.wait_gone()
        d.wait_state("s", "asleep")
        self.assertEqual(a.reply(self.steer(a))["error.code"], -32600)
        self.assertEqual((d.state_of("s"), agent.starts), ("asleep", 1))
        waits = a.prompt("on")
        child = agent.child()
        self.assertEqual(a.reply(self.steer(a))["error.code"], -32600)  # its start is not over
        self.initialized(child)
        child.print(result(child.wait(method="thread/resume")["id"], thread={"id": "t1", "turns": []}))
        self.accept(child, "on")
        a.reply(waits)
        self.assertEqual(child.seen(method="turn/steer"), [])

    def test_input_that_comes_after_the_turn(self):
        d, _, child, a = self.open()
        self.turn(child, a)
        rid = self.steer(a)
        m = child.wait(method="turn/steer")
        child.print(completed(), error(m["id"], -32600, "no active turn to steer"))
        self.assertEqual(a.reply(rid)["error.code"], -32600)
        self.assertEqual(len(a.event("turn_ended")["params.uuids"]), 1)
        d.wait_state("s", "idle")

    def test_the_asker_leaves(self):
        d, _, child, a, b = self.open(2)
        self.turn(child, a)
        a.close()
        b.event("detached")
        child.print(completed())
        b.event("turn_ended", outcome="success")
        d.wait_state("s", "idle")

    def test_the_child_crashes(self):
        _, _, child, a, b = self.open(2)
        mine = a.prompt()
        child.wait(method="turn/start")
        child.exit(3)
        self.assertEqual(a.reply(mine)["error.data.code"], "child_exited")
        b.event("child_exited", status=3)

    def test_an_observer_reads(self):
        d, _, child, a = self.open()
        o = self.attached(d, role="observer")
        self.assertEqual(o.fails("turn/start", input=[])["data"]["code"], "not_allowed")
        mine = o.call("thread/read", threadId="t1", includeTurns=True)
        child.print(result(child.wait(method="thread/read")["id"], thread={"id": "t1", "turns": []}))
        o.reply(mine)
        self.turn(child, a)
        child.print(delta("x"), completed())
        o.wait(method="item/agentMessage/delta")
        o.event("turn_ended")

    def test_bad_lines_never_reach_the_agent(self):
        _, _, child, a = self.open()
        for line, code in ((b"{nope", -32700), (b"[]", -32600), (b'{"id":1.5,"method":"x","params":{}}', -32600),
                           (b'{"id":null,"method":"x"}', -32600), (b'{"id":1,"method":"x","params":[]}', -32602)):
            a.send(line)
            a.wait(lambda m, code=code: m["error.code"] == code, title=repr(line))
        a.sync()
        child.caught_up()
        self.assertEqual(child.seen(method="x"), [])


class Approvals(CodexCase):
    def test_the_first_valid_answer_wins(self):
        _, _, child, a, b = self.open(2)
        self.turn(child, a)
        child.print(approval(0))
        mine, hers = self.offered(a), self.offered(b)
        a.send(decided(mine, "acceptForSession"))
        self.assertIn("still open", a.event("error", code="bad_answer")["params.error"])
        b.send(decided(hers, "accept"))
        self.assertEqual(child.wait(id=0).raw, b.sent[-1].rstrip(b"\n").replace(b'"%s"' % hers.encode(), b"0"))
        a.wait(method="serverRequest/resolved", params__requestId=mine)
        b.wait(method="serverRequest/resolved", params__requestId=hers)
        self.assertEqual(a.event("settled", decision="allow")["params.tool_name"], "commandExecution")
        child.print(note("serverRequest/resolved", requestId=0))
        child.mark(a, b)
        self.assertEqual(len(child.seen(id=0)), 1)
        for c in (a, b):
            self.assertEqual(len(c.seen(method="serverRequest/resolved")), 1)

    def test_decisions(self):
        """Which answers of a client are valid, and what they decide."""
        _, _, child, a = self.open(profile={"control_timeout": "never"})
        self.turn(child, a)
        for rid, (ask, decision, known) in enumerate((
                (approval, "accept", "allow"), (approval, AMEND, "allow"), (approval, "decline", "deny"),
                (approval, "cancel", "deny"), (change, "acceptForSession", "allow"), (change, "decline", "deny"))):
            with self.subTest(decision=decision, ask=ask):
                child.print(ask(rid))
                mine = a.wait(params__itemId="i%d" % rid)["id"]
                a.send(decided(mine, "no such"))
                a.event("error", code="bad_answer")
                a.send(decided(mine, decision))
                self.assertEqual(child.wait(id=rid)["result"], {"decision": decision})
                a.event("settled", decision=known, request_id=mine)

    def test_an_amendment_spelled_otherwise(self):
        _, _, child, a = self.open()
        self.turn(child, a)
        child.print(approval(71))
        mine = self.offered(a)
        a.send(b'{"id":"%s","result":{"decision":{"acceptWithExecpolicyAmendment": {"execpolicy_amendment":'
               b' [ "touch", "x" ]}}}}' % mine.encode())
        child.wait(id=71)
        self.assertEqual(a.event("settled")["params.permissions"], ["touch x always"])

    def test_permissions(self):
        _, _, child, a = self.open(profile={"deny_tools": "permissions"})
        self.turn(child, a)
        child.print(rpc("item/permissions/requestApproval", 71, threadId="t1", turnId="turn1", itemId="i", cwd="/",
                        permissions={"network": {"enabled": True}}))
        self.assertEqual(child.wait(id=71)["result"], {"permissions": {}})

    QUESTIONS = {"threadId": "t1", "turnId": "turn1", "itemId": "q", "isBlocking": True, "autoResolutionMs": None,
                 "questions": [{"id": "color", "header": "h", "question": "which?", "isOther": False, "isSecret": False,
                                "options": None}]}
    OLD = {"conversationId": "t1", "callId": "c", "approvalId": None, "reason": None}
    RULE, HOST = ["git", "push"], {"host": "example.org", "action": "allow"}
    DENIED = {"denied": {"rejection": "no"}}

    def kinds(self):
        """Each kind of question: (method, params, invalid results, valid results with their decisions)."""
        item = {"threadId": "t1", "turnId": "turn1", "itemId": "i", "startedAtMs": 1}
        return (
            (COMMAND, dict(item, command="git push", proposedExecpolicyAmendment=self.RULE,
                           proposedNetworkPolicyAmendments=[self.HOST]),
             [{"decision": "approved"}, {"decision": {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git"]}}},
              {"decision": {"applyNetworkPolicyAmendment": {"network_policy_amendment": dict(self.HOST, host="x")}}}],
             [({"decision": {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": self.RULE}}}, "allow"),
              ({"decision": {"applyNetworkPolicyAmendment": {"network_policy_amendment": self.HOST}}}, "allow")]),
            (FILE, item, [{"decision": AMEND}, {}], [({"decision": "accept"}, "allow"), ({"decision": "cancel"}, "deny")]),
            ("item/permissions/requestApproval", dict(item, cwd="/", permissions={"network": {"enabled": True}}),
             [{"decision": "accept"}, {"permissions": {}, "scope": "ever"}],
             [({"permissions": {}}, "deny"), ({"permissions": {"network": {"enabled": True}}, "scope": "session"}, "allow")]),
            ("item/tool/requestUserInput", self.QUESTIONS,
             [{}, {"answers": []}, {"answers": {"color": "red"}}, {"answers": {"color": {"answers": [1]}}}],
             [({"answers": {"color": {"answers": ["red"]}}}, "answered"), ({"answers": {}}, "cancelled")]),
            ("mcpServer/elicitation/request", {"threadId": "t1", "serverName": "x", "mode": "url", "message": "?", "url": "u"},
             [{}, {"action": "allow"}, {"decision": "accept"}],
             [({"action": "accept", "content": None}, "allow"), ({"action": "decline", "content": None}, "deny")]),
            ("execCommandApproval", dict(self.OLD, command=["bash", "-lc", "ls x"], cwd="/", parsedCmd=[]),
             [{"decision": "accept"}, {"decision": {}}, {"decision": dict(self.DENIED, x={})}, {"decision": {"denied": 1}}],
             [({"decision": "approved"}, "allow"), ({"decision": "abort"}, "deny"), ({"decision": self.DENIED}, "deny"),
              ({"decision": {"approved_execpolicy_amendment": {"proposed_execpolicy_amendment": ["ls"]}}}, "allow")]),
            ("applyPatchApproval", dict(self.OLD, fileChanges={"/tmp/x": {"add": {"content": ""}}}, grantRoot=None),
             [{"decision": "accept"}], [({"decision": "approved_for_session"}, "allow"), ({"decision": "timed_out"}, "deny")]),
        )

    def test_every_kind_of_question(self):
        """An answer that the agent would use up as a refusal is refused to its sender."""
        _, _, child, a, b = self.open(2)
        rid = itertools.count(100)
        for method, params, bad, good in self.kinds():
            for body, decision in good:
                with self.subTest(method=method, result=body):
                    theirs = next(rid)
                    child.print(rpc(method, theirs, **params))
                    mine, hers = (self.offered(c, method) for c in (a, b))
                    for wrong in bad:
                        a.send(result(mine, **wrong))
                        self.assertIn("still open", a.event("error", code="bad_answer")["params.error"])
                    b.send(result(hers, **body))
                    self.assertEqual(child.wait(id=theirs)["result"], body)
                    a.event("settled", decision=decision, request_id=mine)
                    m = a.wait(method="serverRequest/resolved", params__requestId=mine)
                    self.assertEqual(m["params.threadId"], "t1")

    def test_nobody_is_left_to_ask(self):
        d, _, child, a = self.open(profile={"permission_wait": "20ms"})
        o = self.attached(d, role="observer")
        a.close()
        o.event("detached")
        closed = {"execCommandApproval": "denied", "applyPatchApproval": "denied", COMMAND: "decline", FILE: "decline",
                  "item/permissions/requestApproval": {}, "item/tool/requestUserInput": {},
                  "mcpServer/elicitation/request": "cancel"}
        for rid, (method, params, _, _) in enumerate(self.kinds()):
            child.print(rpc(method, rid, **params))
            m = child.wait(id=rid)["result"]
            value = next(m[key] for key in ("decision", "permissions", "answers", "action") if key in m)
            if closed[method] == "denied":
                self.assertIn("no client answered", value["denied"]["rejection"])
            else:
                self.assertEqual(value, closed[method])
        for rid, method in enumerate(("item/tool/call", "attestation/generate", "account/chatgptAuthTokens/refresh"), 50):
            child.print(rpc(method, rid, threadId="t1"))
            self.assertEqual(child.wait(id=rid)["error.code"], -32601)

    def test_rules_decide_the_old_questions_too(self):
        _, _, child, a = self.open(profile={"allow_tools": "fileChange", "deny_tools": "commandExecution"})
        (command, patch) = [(method, params) for method, params, _, _ in self.kinds() if "Approval" in method[-8:]
                            and "/" not in method]
        child.print(rpc(command[0], 71, **command[1]), rpc(patch[0], 72, **patch[1]))
        self.assertIn("commandExecution", child.wait(id=71)["result.decision.denied.rejection"])
        self.assertEqual(child.wait(id=72)["result.decision"], "approved")

    def test_what_a_question_is_about(self):
        d, _, child, a = self.open()
        w = self.editor(d)
        w.ok("_plenum/subscribe")
        for rid, (method, params, _, _) in enumerate(self.kinds()):
            child.print(rpc(method, rid, **params))
            self.offered(a, method)
        self.assertEqual([w.event("attention", request_subtype=method)["params.summary"] for method, _, _, _ in self.kinds()],
                         ["git push", "", "", "which?", "?", "ls x", "/tmp/x"])

    def test_it_outlives_its_client_and_is_offered_again(self):
        d, _, child, a = self.open()
        self.turn(child, a)
        child.print(change(71))
        mine = self.offered(a, FILE)
        a.close()
        until(lambda: not d.sessions()["s"]["attachments"], what="the client to be gone")
        b = self.attached(d)
        self.assertEqual(self.offered(b, FILE), mine)
        b.send(decided(mine, "decline"))
        self.assertEqual(child.wait(id=71)["result.decision"], "decline")

    def test_rules_decide_by_the_type_of_the_item(self):
        _, _, child, a = self.open(profile={"allow_tools": "fileChange", "deny_tools": "commandExecution"})
        self.turn(child, a)
        child.print(change(71), approval(72))
        self.assertEqual(child.wait(id=71)["result.decision"], "accept")
        self.assertEqual(child.wait(id=72)["result.decision"], "decline")

    def test_the_agent_resolves_by_its_own_id(self):
        _, _, child, a, b = self.open(2)
        self.turn(child, a)
        for rid in (7, "7"):
            child.print(approval(rid))
            asked = [self.offered(c) for c in (a, b)]
            child.print(note("serverRequest/resolved", requestId=rid))
            for c, known in zip((a, b), asked):
                c.wait(method="serverRequest/resolved", params__requestId=known)
                c.send(decided(known, "accept"))
                c.event("error", code="already_settled")
        child.mark(a, b)
        self.assertEqual(child.seen(lambda m: m["id"] in (7, "7")), [])
        self.assertEqual([len(c.seen(method="serverRequest/resolved")) for c in (a, b)], [2, 2])

    def test_a_form(self):
        _, _, child, a = self.open()
        self.turn(child, a)
        child.print(rpc("mcpServer/elicitation/request", 74, threadId="t1", serverName="x", mode="form", message="?",
                        requestedSchema={}))
        rid = a.wait(method="mcpServer/elicitation/request")["id"]
        a.send(result(rid, action="perhaps"))
        a.event("error", code="bad_answer")
        a.send(result(rid, action="accept", content={"x": 1}))
        self.assertEqual(child.wait(id=74)["result"], {"action": "accept", "content": {"x": 1}})


class Lives(CodexCase):
    def sleep(self, d, child):
        d.call("plenum_hibernate", session="s")
        child.wait_gone()
        d.wait_state("s", "asleep")

    def resumed(self, child, thread="t1"):
        self.initialized(child)
        m = child.wait(method="thread/resume")
        self.assertEqual((m["params.threadId"], m["params.excludeTurns"]), (thread, True))
        child.print(result(m["id"], thread={"id": thread, "turns": []}))
        return m["params"]

    def test_sleep_and_resume(self):
        d, agent, child, a = self.open()
        self.turn(child, a, "first")
        child.print(note("thread/settings/updated", threadSettings=SETTINGS), completed())
        a.event("turn_ended")
        self.sleep(d, child)
        again = a.prompt("second")
        child = agent.child()
        self.resumed(child)
        m = child.wait(method="thread/settings/update")
        self.assertEqual(m["params"], {"threadId": "t1", "approvalPolicy": "on-request", "model": "big",
                                       "sandboxPolicy": {"type": "readOnly"}, "effort": "high"})
        self.assertEqual(child.seen(method="turn/start"), [])
        child.print(result(m["id"]))
        self.accept(child, "second", "turn2")
        a.reply(again)

    def test_a_thread_without_a_turn_is_begun_anew(self):
        """The agent has it on its disk only from the first turn on."""
        d, agent, child, a = self.open()
        child.print(note("thread/settings/updated", threadSettings=SETTINGS))
        a.wait(method="thread/settings/updated")
        self.sleep(d, child)
        mine = a.prompt("first", threadId="t1")
        child = agent.child()
        self.initialized(child)
        m = child.wait(method="thread/resume")
        child.print(error(m["id"], -32600, "no rollout found for thread id t1"))
        m = child.wait(method="thread/start")
        self.assertNotIn("threadId", m["params"])
        child.print(result(m["id"], thread={"id": "t2", "turns": []}))
        m = child.wait(method="thread/settings/update")
        self.assertEqual((m["params.threadId"], m["params.model"]), ("t2", "big"))
        child.print(result(m["id"]))
        m = self.accept(child, "first")
        self.assertEqual(m["params.threadId"], "t2")
        self.assertEqual(len(child.seen(method="initialized")), 1)
        a.event("changed", what="conversation_id", value="t2")
        a.reply(mine)
        child.print(started(thread="t2"), completed(thread="t2"))
        a.event("turn_ended")
        self.sleep(d, child)
        mine = a.prompt("second")
        child = agent.child()
        self.initialized(child)
        m = child.wait(method="thread/resume")  # it has had a turn: its loss is none to be silent about
        child.print(error(m["id"], -32600, "no rollout found for thread id t2"))
        self.assertIn("no rollout found", a.reply(mine)["error.message"])
        self.assertEqual(child.seen(method="thread/start"), [])

    def used(self):
        """A session whose thread has had a turn."""
        d, agent, child, a = self.open()
        self.turn(child, a)
        child.print(completed())
        a.event("turn_ended")
        return d, agent, child, a

    def woken(self, agent, client, method, **params):
        """The agent starts for a request, and answers it."""
        mine = client.call(method, **params)
        child = agent.child()
        self.resumed(child)
        m = child.wait(method=method)
        child.print(result(m["id"], data=[]))
        self.assertEqual(client.reply(mine)["result"], {"data": []})
        return child, m["params"]

    def test_a_request_wakes_the_agent(self):
        """Known to the daemon or not; about the agent, or about the thread."""
        d, agent, child, a = self.used()
        for method, params in (("thread/list", {}), ("model/list", {"limit": 5}), ("account/read", {}),
                               ("mcpServerStatus/list", {}), ("thread/settings/update", {"model": "m"}),
                               ("fuzzyFileSearch", {"query": "q", "cancellationToken": "x"}),
                               ("command/exec", {"command": ["true"], "processId": "p"})):
            self.sleep(d, child)
            child, got = self.woken(agent, a, method, **params)
            self.assertEqual(set(params) - set(got), set())

    def test_a_request_after_the_death_of_the_agent(self):
        d, agent, child, a = self.used()
        child.kill()
        d.wait_state("s", "asleep")
        self.woken(agent, a, "model/list")

    def test_requests_go_before_the_prompt_behind_them(self):
        d, agent, child, a = self.used()
        self.sleep(d, child)
        mine = [a.call("thread/settings/update", model="m"), a.call("model/list"), a.prompt("then")]
        child = agent.child()
        self.resumed(child)
        for method in ("thread/settings/update", "model/list"):
            child.print(result(child.wait(method=method)["id"]))
        self.accept(child, "then")
        for rid in mine:
            self.assertIn("result", a.reply(rid).obj)
        self.assertEqual([m["method"] for m in child.seen() if m["method"] in
                          ("thread/settings/update", "model/list", "turn/start")],
                         ["thread/settings/update", "model/list", "turn/start"])

    def test_a_request_of_an_agent_that_cannot_start(self):
        d, agent, child, a = self.used()
        self.sleep(d, child)
        mine = a.call("model/list")
        child = agent.child()
        child.print(error(child.wait(method="initialize")["id"], -32603, "no model"))
        self.assertIn("no model", a.reply(mine)["error.message"])
        d.wait_state("s", "failed")
        self.woken(agent, a, "model/list")  # another try

    def test_what_does_not_wake_the_agent(self):
        d, agent, child, a = self.used()
        o = self.attached(d, role="observer")
        self.sleep(d, child)
        self.assertEqual(o.fails("model/list")["data"]["code"], "not_allowed")
        self.assertEqual(o.fails("thread/compact/start")["data"]["code"], "not_allowed")
        self.assertEqual(a.ok("initialize", clientInfo={"name": "x", "version": "1"})["userAgent"], "a/1")
        a.send(rpc("initialized"))
        for method, params in (("turn/interrupt", {"turnId": "turn1"}), ("process/kill", {"processHandle": "p"}),
                               ("fs/unwatch", {"watchId": "w"}), ("thread/search/cancel", {"requestId": 1})):
            failure = a.fails(method, **params)
            self.assertEqual(failure["data"]["code"], "child_exited")
            self.assertIn("no turn, process or watch of it is left", failure["message"])
        a.sync()
        self.assertEqual((d.state_of("s"), agent.starts), ("asleep", 1))
        self.assertEqual(a.seen(method="_plenum/event", params__event="error"), [])

    def test_a_request_before_the_thread(self):
        """A program that sends ahead of the answers chooses a model first; also if the agent has ended meanwhile."""
        d, agent = self.begin()
        e = self.editor(d)
        rid = e.call("initialize", clientInfo={"name": "x", "version": "1"})
        for n in range(2):
            mine = e.call("model/list", limit=5)
            e.sync()
            child = agent.child()
            self.initialized(child)
            m = child.wait(method="model/list")
            self.assertEqual(m["params"], {"limit": 5})  # it names no thread
            child.print(result(m["id"], data=[]))
            self.assertEqual(e.reply(mine)["result"], {"data": []})
            self.assertEqual(child.seen(method="thread/start"), [])
            if not n:
                self.assertEqual(e.reply(rid)["result.userAgent"], "a/1")
            name, = d.sessions()
            d.call("plenum_hibernate", session=name)
            child.wait_gone()
            d.wait_state(name, "asleep")

    def test_a_request_while_a_thread_is_refused(self):
        _, agent = self.begin()
        e = self.editor(_)
        e.call("initialize", clientInfo={"name": "x", "version": "1"})
        child = agent.child()
        self.initialized(child)
        begin = e.call("thread/start", model="none")
        m = child.wait(method="thread/start")
        mine = e.call("model/list")
        e.sync()
        child.print(error(m["id"], -32600, "no such model"))
        self.assertIn("no such model", e.reply(begin)["error.message"])
        m = child.wait(method="model/list")
        self.assertEqual(m["params"], {})
        child.print(result(m["id"], data=[]))
        self.assertEqual(e.reply(mine)["result"], {"data": []})

    def test_no_prompt_runs_under_laxer_settings(self):
        """Those that restrict the agent are set until it takes them; of the others it is asked once."""
        d, agent, child, a = self.open()
        self.turn(child, a, "first")
        child.print(note("thread/settings/updated", threadSettings=SETTINGS), completed())
        a.event("turn_ended")
        self.sleep(d, child)
        strict = {"threadId": "t1", "approvalPolicy": "on-request", "sandboxPolicy": {"type": "readOnly"}}
        for text, fault in (("second", "no big"), ("third", "no"), ("fourth", "no"), ("fifth", None), ("sixth", None)):
            with self.subTest(text=text):
                rid = a.prompt(text)
                child = agent.child()
                self.resumed(child)
                m = child.wait(method="thread/settings/update")
                if fault != "no big":
                    self.assertEqual(m["params"], strict)
                self.assertEqual(child.seen(method="turn/start"), [])
                if fault:
                    child.print(error(m["id"], -32600, fault))
                    why = a.reply(rid)["error.message"]
                    self.assertIn(fault, why)
                    self.assertIn("laxer", why)
                    child.wait_gone()
                    continue
                child.print(result(m["id"]))
                self.accept(child, text, "turn-" + text)
                a.reply(rid)
                child.print(completed("turn-" + text))
                a.event("turn_ended")
                self.sleep(d, child)

    def test_lax_settings_are_given_up(self):
        d, agent, child, a = self.open()
        self.turn(child, a, "first")
        child.print(note("thread/settings/updated", threadSettings=dict(
            SETTINGS, approvalPolicy="never", sandboxPolicy={"type": "dangerFullAccess"})), completed())
        a.event("turn_ended")
        self.sleep(d, child)
        rid = a.prompt("second")
        child = agent.child()
        self.resumed(child)
        child.print(error(child.wait(method="thread/settings/update")["id"], -32600, "no"))
        self.assertNotIn("laxer", a.reply(rid)["error.message"])
        child.wait_gone()
        a.prompt("third")
        child = agent.child()
        self.resumed(child)
        self.accept(child, "third")
        self.assertEqual(child.seen(method="thread/settings/update"), [])

    def test_kill_9_of_the_daemon(self):
        d, agent, child, a = self.open()
        self.turn(child, a)
        child.print(approval(71))
        self.offered(a)
        d.kill9()
        a.wait_eof()
        child.wait_gone()
        d.start()
        b = self.attached(d, create="never")
        self.assertEqual(b.attached["conversation_id"], "t1")
        again = b.prompt("on")
        child = agent.child()
        self.resumed(child)
        self.accept(child, "on")
        b.reply(again)

    def test_upgrade_with_open_requests(self):
        d, _, child, a = self.open()
        self.turn(child, a)
        child.print(approval(71), note("thread/settings/updated", threadSettings=SETTINGS))
        rid = self.offered(a)
        d.call("plenum_upgrade")
        until(lambda: b" upgraded: " in open(d.log_path, "rb").read(), what="the upgrade")
        a.send(decided(rid, "accept"))
        self.assertEqual(child.wait(id=71)["result.decision"], "accept")
        child.print(delta("x"), completed())
        a.wait(method="item/agentMessage/delta")
        a.event("turn_ended")
        self.attached(d).wait(method="thread/settings/updated")

    def test_the_daemon_interrupts_the_newest_turn(self):
        d, _, child, a = self.open()
        mine = a.prompt()
        self.accept(child, turn="turn5")  # it has not begun yet
        a.reply(mine)
        a.ok("_plenum/stop", session="s")
        m = child.wait(method="turn/interrupt")
        self.assertEqual(m["params"], {"threadId": "t1", "turnId": "turn5"})
        child.print(result(m["id"]), completed("turn5", "interrupted"))
        child.wait_gone()


class Late(CodexCase):
    def test_a_late_client_knows_what_was_said_to_all(self):
        d, _, child, a = self.open()
        self.assertEqual(self.attached(d).attached["model"], "big")
        child.print(note("thread/name/updated", threadName="old"), note("thread/name/updated", threadName="new"),
                    note("thread/settings/updated", threadSettings=dict(SETTINGS, model="other")))
        a.wait(method="thread/settings/updated")
        b = self.attached(d)
        self.assertEqual(b.attached["model"], "other")
        b.wait(method="thread/settings/updated")
        b.sync()
        self.assertEqual([m["params.threadName"] for m in b.seen(method="thread/name/updated")][-1], "new")

    def test_it_knows_what_was_said_of_the_agent(self):
        """Without a thread: the newest value, of MCP servers and warnings one of each."""
        d, agent = self.begin()
        a = self.attached(d)
        child = agent.child()
        self.initialized(child)
        child.print(rpc("configWarning", summary="one", details=None), rpc("configWarning", summary="two"),
                    rpc("configWarning", summary="one", details="again"), rpc("account/updated", authMode="apikey"))
        m = child.wait(method="thread/start")
        child.print(result(m["id"], thread={"id": "t1", "turns": []}), rpc("account/updated", authMode=None),
                    *[rpc("mcpServer/startupStatus/updated", threadId="t1", name=name, status=status)
                      for status in ("starting", "ready") for name in ("x", "y")], rpc("skills/changed"))
        a.wait(method="skills/changed")
        said = {"configWarning": [{"summary": "two"}, {"summary": "one", "details": "again"}],
                "account/updated": [{"authMode": None}], "skills/changed": [],
                "mcpServer/startupStatus/updated": [{"threadId": "t1", "name": name, "status": "ready"} for name in "xy"]}
        b = self.attached(d)
        b.sync()
        for method, params in said.items():
            self.assertEqual([m["params"] for m in b.seen(method=method)], params)
        d.call("plenum_upgrade")
        until(lambda: b" upgraded: " in open(d.log_path, "rb").read(), what="the upgrade")
        c = self.attached(d)
        c.sync()
        for method, params in said.items():
            self.assertEqual([m["params"] for m in c.seen(method=method)], params)

    def test_a_new_child_says_it_anew(self):
        d, agent, child, a = self.open()
        child.print(rpc("configWarning", summary="old"), note("thread/name/updated", threadName="n"))
        a.wait(method="thread/name/updated")
        d.call("plenum_hibernate", session="s")
        child.wait_gone()
        a.prompt()
        child = agent.child()
        self.initialized(child)
        child.print(result(child.wait(method="thread/resume")["id"], thread={"id": "t1", "turns": []}))
        self.accept(child)
        b = self.attached(d)
        b.wait(method="thread/name/updated")
        b.sync()
        self.assertEqual(b.seen(method="configWarning"), [])

    def test_much_of_one_kind(self):
        d, _, child, a = self.open()
        child.print(*[rpc("configWarning", summary="w%d" % n) for n in range(70)], delta("over"))
        a.wait(method="item/agentMessage/delta")
        b = self.attached(d)
        b.sync()
        self.assertEqual([m["params.summary"] for m in b.seen(method="configWarning")], ["w%d" % n for n in range(6, 70)])

    def test_resume_is_answered_by_the_agent(self):
        d, _, child, a = self.open()
        b = self.attached(d)
        mine = b.call("thread/resume", threadId="t1")
        m = child.wait(method="thread/resume")
        child.print(result(m["id"], thread={"id": "t1", "turns": [{"id": "x"}]}))
        self.assertEqual(b.reply(mine)["result.thread.turns"], [{"id": "x"}])
        a.sync()
        self.assertEqual(a.seen(lambda m: m["result.thread"]), [])


class Mute(CodexCase):
    """A client names notifications that it does not want."""

    def initialize(self, client, methods):
        return client.call("initialize", clientInfo={"name": "x", "version": "1"},
                           capabilities={"experimentalApi": True, "optOutNotificationMethods": methods})

    def test_it_gets_none_of_them(self):
        d, _, child, a, b = self.open(2)
        a.reply(self.initialize(a, ["item/agentMessage/delta", "serverRequest/resolved", "fs/changed", "x"]))
        watch = a.call("fs/watch", watchId="w", path="/")
        m = child.wait(method="fs/watch")
        child.print(result(m["id"]), rpc("fs/changed", watchId=m["params.watchId"], changedPaths=[]))
        a.reply(watch)
        self.turn(child, b)
        child.print(delta("one"), approval(71))
        rid = self.offered(a)
        b.send(decided(self.offered(b), "accept"))
        child.wait(id=71)
        b.wait(method="serverRequest/resolved", params__requestId=rid)
        d.call("plenum_upgrade")
        until(lambda: b" upgraded: " in open(d.log_path, "rb").read(), what="the upgrade")
        child.print(delta("two"), completed())
        for c in (a, b):
            c.wait(method="turn/completed")
        child.mark(a, b)
        for method, hers in (("item/agentMessage/delta", 2), ("serverRequest/resolved", 1), ("fs/changed", 0)):
            self.assertEqual([len(c.seen(method=method)) for c in (a, b)], [0, hers])

    def test_what_was_said_before_it_joined_a_thread(self):
        d, _, child, a = self.open()
        child.print(rpc("configWarning", summary="x"), note("thread/name/updated", threadName="n"))
        a.wait(method="thread/name/updated")
        e = self.editor(d)
        self.initialize(e, ["configWarning"])
        e.call("thread/resume", threadId="t1")
        e.wait(method="thread/name/updated")
        self.assertEqual(e.seen(method="configWarning"), [])

    def test_what_the_agent_would_not_take(self):
        _, _, _, a = self.open()
        for methods in ("x", {}, [1], ["x"] * 257, ["x" * 300]):
            self.assertIn("optOutNotificationMethods", a.reply(self.initialize(a, methods))["error.message"])
        for methods in (None, []):
            self.assertIn("userAgent", a.reply(self.initialize(a, methods))["result"])


class Fake(CodexCase):
    """The built-in profile, with the scripted agent."""

    def test_a_command(self):
        d, _ = self.begin()
        a = self.attached(d, session="f", profile="fake-codex")
        d.wait_state("f", "idle")
        self.assertEqual(a.ok("thread/read", includeTurns=True)["thread"]["turns"], [])
        mine = a.prompt('@tool Bash {"command":"echo out"}@')
        a.send(decided(self.offered(a, COMMAND), "accept"))
        a.reply(mine)
        item = a.wait(method="item/completed", params__item__type="commandExecution")["params.item"]
        self.assertEqual((item["status"], item["aggregatedOutput"]), ("completed", "out"))
        a.event("turn_ended", outcome="success")
        a.prompt("settings", approvalPolicy="never")
        a.event("turn_ended", outcome="success")
        d.call("plenum_hibernate", session="f")
        d.wait_state("f", "asleep")
        a.prompt('@history@ @tool Bash {"command":"true"}@')
        a.event("turn_ended", outcome="success")
        text = a.wait(method="item/completed", params__item__type="agentMessage",
                      params__item__text=lambda t: "@history@" in t)["params.item.text"]
        self.assertEqual(text.split("\n")[:2], ['@tool Bash {"command":"echo out"}@', "settings"])
        a.sync()
        self.assertEqual(len(a.seen(method=COMMAND)), 1)
