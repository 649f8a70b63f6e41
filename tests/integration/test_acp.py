# SPDX-License-Identifier: MIT
"""Sessions whose agent and clients speak the Agent Client Protocol."""
import subprocess

from acp import MODES, AcpCase, chunk, error, is_update, permission, result, rpc, selected, update
from harness import TIMEOUT, build_file, until


class Start(AcpCase):
    def test_the_daemon_begins_the_conversation(self):
        d, agent = self.begin()
        a = self.attached(d, cwd="/tmp")
        child = agent.child()
        m = self.initialized(child)
        self.assertEqual(m["params.protocolVersion"], 1)
        self.assertIs(type(m["id"]), int)
        new = child.wait(method="session/new")
        self.assertEqual(new["params"], {"cwd": "/tmp", "mcpServers": []})
        child.print(result(new["id"], sessionId="c1", modes=MODES))
        d.wait_state("s", "idle")
        self.assertEqual(d.sessions()["s"]["conversation_id"], "c1")
        self.assertEqual(a.ok("initialize", protocolVersion=1)["agentCapabilities"]["loadSession"], True)

    def test_the_end_of_the_start_names_the_conversation(self):
        d, agent = self.begin()
        a = self.attached(d)
        self.ready(agent.child())
        a.event("session_state", state="idle")
        named = [m["params"]["state"] for m in a.seen(method="_plenum/event", params__event="session_state")
                 if m["params"].get("conversation_id") == "c1"]
        self.assertEqual(named, ["idle"])

    def test_an_editor_begins_it_itself(self):
        d, agent = self.begin()
        e = self.editor(d)
        first = e.call("initialize", protocolVersion=1, clientCapabilities={})
        child = agent.child()
        self.initialized(child)
        self.assertEqual(e.reply(first)["result.protocolVersion"], 1)
        self.assertIn("begin one first", e.reply(e.prompt())["error.message"])
        servers = [{"name": "x", "command": "/bin/true", "args": [], "env": []}]
        second = e.call("session/new", cwd="/usr", mcpServers=servers)
        new = child.wait(method="session/new")
        self.assertEqual(new["params"], {"cwd": "/usr", "mcpServers": servers})
        child.print(result(new["id"], sessionId="c9", modes=MODES))
        self.assertEqual(e.reply(second)["result"], {"sessionId": "c9", "modes": MODES})
        self.assertEqual([s["cwd"] for s in d.sessions().values()], ["/usr"])
        mine = e.prompt(sessionId="c9")
        p = child.wait(method="session/prompt", params__sessionId="c9")
        child.print(result(p["id"], stopReason="end_turn"))
        e.reply(mine)
        self.assertEqual(len(child.seen(method="initialize")), 1)

    def test_an_editor_may_try_again(self):
        d, agent = self.begin()
        e = self.editor(d)
        e.call("initialize", protocolVersion=1)
        child = agent.child()
        self.initialized(child)
        first = e.call("session/new", cwd="/", mcpServers=[])
        child.print(error(child.wait(method="session/new")["id"], -32000, "Authentication required"))
        self.assertIn("Authentication required", e.reply(first)["error.message"])
        login = e.call("authenticate", methodId="key")
        child.print(result(child.wait(method="authenticate")["id"]))
        e.reply(login)
        again = e.call("session/new", cwd="/", mcpServers=[])
        child.print(result(child.wait(method="session/new")["id"], sessionId="c2"))
        self.assertEqual(e.reply(again)["result.sessionId"], "c2")

    def test_a_child_dies_before_the_conversation(self):
        d, agent = self.begin()
        e = self.editor(d)
        e.call("initialize", protocolVersion=1)
        child = agent.child()
        self.initialized(child)
        first = e.call("session/new", cwd="/", mcpServers=[])
        child.wait(method="session/new")
        child.exit(1)
        self.assertEqual(e.reply(first)["error.data.code"], "child_exited")
        second = e.call("session/new", cwd="/usr", mcpServers=[])
        child = agent.child()
        self.initialized(child)
        new = child.wait(method="session/new", params__cwd="/usr")
        child.print(result(new["id"], sessionId="c2"))
        self.assertEqual(e.reply(second)["result.sessionId"], "c2")

    def test_types_are_methods(self):
        d, _, child, a = self.open()
        b = self.attached(d, types=["session/update"])
        _, theirs = self.turn(child, a)
        b.wait(**is_update("user_message_chunk"))
        child.print(rpc("_vendor/thing"), chunk("x"), result(theirs, stopReason="end_turn"))
        b.wait(**is_update("agent_message_chunk"))
        a.wait(method="_vendor/thing")
        self.assertEqual(b.seen(method="_vendor/thing"), [])

    def test_pieces_of_an_answer_come_only_once(self):
        d, _, child, a = self.open()
        b = self.attached(d, partial=False)
        _, theirs = self.turn(child, a)
        child.print(chunk("x"), result(theirs, stopReason="end_turn"))
        b.wait(**is_update("agent_message_chunk"))

    def test_a_refused_start_fails_the_session(self):
        d, agent = self.begin()
        a = self.attached(d)
        child = agent.child()
        mine = a.prompt()
        child.print(error(child.wait(method="initialize")["id"], -32603, "no model"))
        self.assertIn("no model", a.reply(mine)["error.message"])
        d.wait_state("s", "failed")

    def test_a_client_leaves_before_the_answer_of_the_start(self):
        d, agent = self.begin()
        a = self.attached(d)
        child = agent.child()
        until(lambda: d.call("plenum_status", session="s")["calls"] == 1, what="the first step")
        b = self.attached(d)
        b.call("initialize", protocolVersion=1)
        b.sync()
        b.close()
        a.event("detached")
        self.assertEqual(d.call("plenum_status", session="s")["calls"], 1)
        self.ready(child)
        d.wait_state("s", "idle")
        self.assertEqual(d.call("plenum_status", session="s")["calls"], 0)  # else it would never sleep

    def test_an_agent_does_not_name_its_conversation(self):
        d, agent = self.begin()
        e = self.editor(d)
        e.call("initialize", protocolVersion=1)
        for body in ({}, {"sessionId": 5}, {"sessionId": ""}):
            new = e.call("session/new", cwd="/", mcpServers=[])
            child = agent.child()
            self.initialized(child)
            child.print(result(child.wait(method="session/new")["id"], **body))
            self.assertIn("named no conversation", e.reply(new)["error.message"])
            child.wait_gone()

    def test_an_answer_of_the_start_that_cannot_be_read(self):
        d, agent = self.begin(limits={"child_line": "1M"})
        a = self.attached(d)
        child = agent.child()
        mine = a.prompt()
        m = child.wait(method="initialize")
        child.print(result(m["id"], protocolVersion=1, agentCapabilities={"x": "y" * (2 << 20)}))
        self.assertIn("child_line", a.reply(mine)["error.message"])
        d.wait_state("s", "failed")

    def test_a_prompt_waits_for_the_start(self):
        d, agent = self.begin()
        a = self.attached(d)
        child = agent.child()
        mine = a.prompt("early")
        a.sync()
        self.assertEqual(child.seen(method="session/prompt"), [])
        self.ready(child)
        m = child.wait(method="session/prompt")
        self.assertEqual(m["params.sessionId"], "c1")
        child.print(result(m["id"], stopReason="end_turn"))
        self.assertEqual(a.reply(mine)["result"], {"stopReason": "end_turn"})


class Turns(AcpCase):
    def test_a_turn_for_all(self):
        d, _, child, a, b = self.open(2)
        mine, theirs = self.turn(child, a, "hello")
        self.assertEqual(d.state_of("s"), "busy")
        b.event("turn_started")
        echo = b.wait(**is_update("user_message_chunk"))
        self.assertEqual(echo["params.update.content"], {"type": "text", "text": "hello"})
        self.assertEqual(echo["params.sessionId"], "c1")
        self.assertIn("uuid", echo["params.update._meta.plenum"])
        child.print(chunk("one"), chunk("two"), result(theirs, stopReason="end_turn"))
        for c in (a, b):
            for text in ("one", "two"):
                c.wait(**is_update("agent_message_chunk", params__update__content__text=text))
        self.assertEqual(a.reply(mine)["result.stopReason"], "end_turn")
        ended = b.event("turn_ended", outcome="success", is_error=False)
        self.assertEqual(ended["params.uuids"], [echo["params.update._meta.plenum.uuid"]])
        d.wait_state("s", "idle")
        a.sync(), b.sync()
        self.assertEqual(a.seen(**is_update("user_message_chunk")), [])
        self.assertEqual(b.seen(lambda m: "result" in m.obj and m["result.stopReason"]), [])
        order = [m["params.update.content.text"] or m["result.stopReason"] for m in a.log
                 if m["params.update.content.text"] or m["result.stopReason"]]
        self.assertEqual(order, ["one", "two", "end_turn"])

    def test_the_cost_of_a_turn(self):
        _, _, child, a = self.open()
        for amount, cost in ((0.25, 0.25), (0.75, 0.5)):
            _, theirs = self.turn(child, a)
            child.print(update("usage_update", used=1, size=9, cost={"amount": amount, "currency": "USD"}),
                        result(theirs, stopReason="end_turn", usage={"inputTokens": 3}))
            ended = a.event("turn_ended")
            self.assertEqual(ended["params.cost_usd"], cost)
            self.assertEqual(ended["params.tokens.input"], 3)

    def test_ids_keep_their_types(self):
        _, _, child, a = self.open()
        for rid in (0, "0", "a b", -7, 9007199254740993):
            a.prompt("p%r" % (rid,), rid)
            m = child.wait(method="session/prompt")
            self.assertIs(type(m["id"]), int)
            child.print(result(m["id"], stopReason="end_turn"))
            a.reply(rid)

    def test_an_id_at_the_end_of_the_line(self):
        _, _, child, a = self.open()
        a.send(b'{"jsonrpc":"2.0","method":"session/prompt","params":{"prompt":[{"type":"text","text":"x"}],'
               b'"sessionId":"c1"}, "id" : "z"}')
        m = child.wait(method="session/prompt")
        self.assertTrue(m.raw.endswith(b'"sessionId":"c1"}, "id" : %d}' % m["id"]), m)
        child.print(b'{"result":{"stopReason":"end_turn"},"jsonrpc":"2.0","id":%d}\n' % m["id"])
        self.assertEqual(a.reply("z").raw, b'{"result":{"stopReason":"end_turn"},"jsonrpc":"2.0","id":"z"}')

    def test_a_duplicate_id(self):
        _, _, child, a = self.open()
        mine, theirs = self.turn(child, a)
        a.prompt("again", mine)
        self.assertEqual(a.reply(mine)["error.data.code"], "duplicate_request")
        child.print(result(theirs, stopReason="end_turn"))
        self.assertEqual(a.reply(mine)["result.stopReason"], "end_turn")
        self.assertEqual(len(child.seen(method="session/prompt")), 1)

    def test_another_conversation_is_refused(self):
        _, _, child, a = self.open()
        text = a.fails("session/prompt", sessionId="other", prompt=[])["message"]
        self.assertIn("session s has c1", text)
        self.assertEqual(child.seen(method="session/prompt"), [])

    def test_cancel(self):
        d, _, child, a, b = self.open(2)
        mine, theirs = self.turn(child, a)
        child.print(permission(75))
        asked = [self.offered(c) for c in (a, b)]
        b.send(rpc("session/cancel", sessionId="c1"))
        child.wait(method="session/cancel")
        self.assertEqual(child.wait(id=75)["result"], {"outcome": {"outcome": "cancelled"}})
        for c, rid in zip((a, b), asked):
            c.wait(method="$/cancel_request", params__requestId=rid)
        child.print(result(theirs, stopReason="cancelled"))
        self.assertEqual(a.reply(mine)["result.stopReason"], "cancelled")
        b.event("turn_ended", outcome="interrupted")
        d.wait_state("s", "idle")

    def test_queue(self):
        _, _, child, a, b = self.open(2, profile={"prompts": "queue"})
        mine, theirs = self.turn(child, a)
        hers = b.prompt("later")
        a.event("changed", what="prompt_held")
        self.assertEqual(len(child.seen(method="session/prompt")), 1)
        child.print(result(theirs, stopReason="end_turn"))
        a.reply(mine)
        m = child.wait(method="session/prompt", params__prompt=[{"type": "text", "text": "later"}])
        child.print(result(m["id"], stopReason="end_turn"))
        b.reply(hers)

    def sender(self, d, child, text):
        """plenumctl whose turn has begun: (process, the child's id)."""
        p = subprocess.Popen([build_file("plenumctl"), "send", "s", text], env=d.env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p, child.wait(method="session/prompt", params__prompt=[{"type": "text", "text": text}])["id"]

    def assertPrints(self, p, text):
        out, errors = p.communicate(timeout=TIMEOUT)
        self.assertEqual((p.returncode, out), (0, text), errors)

    def test_plenumctl_prints_its_answer_after_the_end_of_an_earlier_turn(self):
        d, _, child, a = self.open()
        mine, theirs = self.turn(child, a)
        p, number = self.sender(d, child, "later")
        child.print(result(theirs, stopReason="end_turn"))
        a.reply(mine)
        child.print(chunk("of the later one"), result(number, stopReason="end_turn"))
        self.assertPrints(p, "of the later one\n")

    def test_plenumctl_prints_its_answer_while_a_later_turn_runs(self):
        d, _, child, a = self.open()
        p, number = self.sender(d, child, "earlier")
        mine, theirs = self.turn(child, a)
        child.print(chunk("of the earlier one"), result(number, stopReason="end_turn"), chunk("of the later one"),
                    result(theirs, stopReason="end_turn"))
        a.reply(mine)
        self.assertPrints(p, "of the earlier one\n")

    def test_a_held_prompt_is_withdrawn(self):
        _, _, child, a, b = self.open(2, profile={"prompts": "queue"})
        mine, theirs = self.turn(child, a)
        first, second = b.prompt("one"), b.prompt("two")
        b.send(rpc("$/cancel_request", requestId=second))
        self.assertEqual(b.reply(second)["result"], {"stopReason": "cancelled"})
        b.send(rpc("session/cancel", sessionId="c1"))
        self.assertEqual(b.reply(first)["result"], {"stopReason": "cancelled"})
        child.print(result(theirs, stopReason="cancelled"))
        a.reply(mine)
        child.caught_up()
        self.assertEqual(len(child.seen(method="session/prompt")), 1)

    def test_shutdown_answers_open_and_held_prompts(self):
        d, _, child, a, b = self.open(2, profile={"prompts": "queue"})
        mine, _ = self.turn(child, a)
        hers = b.prompt("held")
        a.event("changed", what="prompt_held")
        d.stop()
        for c, rid in ((a, mine), (b, hers)):
            self.assertEqual(c.reply(rid)["error.data.code"], "child_exited")
        d.start()

    def test_a_client_withdraws_its_running_prompt(self):
        _, _, child, a = self.open()
        mine, theirs = self.turn(child, a)
        a.send(rpc("$/cancel_request", requestId=mine))
        self.assertEqual(child.wait(method="$/cancel_request")["params"], {"requestId": theirs})
        child.print(error(theirs, -32800, "cancelled"))
        self.assertEqual(a.reply(mine)["error.code"], -32800)

    def test_the_asker_leaves(self):
        d, _, child, a, b = self.open(2)
        _, theirs = self.turn(child, a)
        a.close()
        b.event("detached")
        child.print(result(theirs, stopReason="end_turn"))
        b.event("turn_ended", outcome="success")
        d.wait_state("s", "idle")

    def test_the_child_crashes(self):
        _, _, child, a, b = self.open(2)
        mine, _ = self.turn(child, a)
        child.exit(3)
        self.assertEqual(a.reply(mine)["error.data.code"], "child_exited")
        b.event("child_exited", status=3)

    def test_an_observer_reads(self):
        d, _, child, a = self.open()
        o = self.attached(d, role="observer")
        self.assertEqual(o.fails("session/prompt", prompt=[])["data"]["code"], "not_allowed")
        _, theirs = self.turn(child, a)
        o.wait(**is_update("user_message_chunk"))
        child.print(chunk("x"), result(theirs, stopReason="end_turn"))
        o.wait(**is_update("agent_message_chunk"))
        o.event("turn_ended")


class Permissions(AcpCase):
    def test_the_first_valid_answer_wins(self):
        _, _, child, a, b = self.open(2)
        self.turn(child, a)
        child.print(permission(0))
        mine, hers = self.offered(a), self.offered(b)
        a.send(selected(mine, "maybe"))
        self.assertIn("still open", a.event("error", code="bad_answer")["params.error"])
        b.send(selected(hers, "yes"))
        self.assertEqual(child.wait(id=0).raw, b.sent[-1].rstrip(b"\n").replace(b'"%s"' % hers.encode(), b"0"))
        a.wait(method="$/cancel_request", params__requestId=mine)
        settled = a.event("settled", decision="allow")
        self.assertEqual(settled["params.tool_name"], "execute")
        a.send(error(mine, -32800, "cancelled"))  # as the protocol wants it: dropped
        a.sync(), b.sync()
        self.assertEqual(len(child.seen(id=0)), 1)
        self.assertEqual(a.seen(method="_plenum/event", params__code="already_settled"), [])
        self.assertEqual(b.seen(method="$/cancel_request"), [])

    def test_the_id_of_the_child_keeps_its_type(self):
        _, _, child, a = self.open()
        self.turn(child, a)
        child.print(permission("0"), permission(0, title="two"))
        one = self.offered(a, params__toolCall__title="ls")
        two = self.offered(a, params__toolCall__title="two")
        a.send(selected(two, "no"), selected(one, "yes"))
        self.assertEqual(child.wait(result__outcome__optionId="no")["id"], 0)
        self.assertEqual(child.wait(result__outcome__optionId="yes")["id"], "0")

    def test_an_error_leaves_it_to_the_others(self):
        _, _, child, a, b = self.open(2)
        self.turn(child, a)
        child.print(permission(71))
        mine, hers = self.offered(a), self.offered(b)
        a.send(error(mine, -32601, "no such method"))
        a.sync()
        self.assertEqual(child.seen(id=71), [])
        b.send(error(hers, -32601, "no such method"))
        self.assertEqual(child.wait(id=71)["error.code"], -32601)

    def test_it_outlives_its_client_and_is_offered_again(self):
        d, _, child, a = self.open()
        self.turn(child, a)
        child.print(permission(71))
        mine = self.offered(a)
        a.close()
        until(lambda: not d.sessions()["s"]["attachments"], what="the client to be gone")
        b = self.attached(d)
        self.assertEqual(self.offered(b), mine)
        b.send(selected(mine, "no"))
        self.assertEqual(child.wait(id=71)["result.outcome.optionId"], "no")

    def test_the_child_withdraws_it(self):
        _, _, child, a = self.open()
        self.turn(child, a)
        child.print(permission(71))
        mine = self.offered(a)
        child.print(rpc("$/cancel_request", requestId=71))
        a.wait(method="$/cancel_request", params__requestId=mine)
        a.send(result(mine, outcome={"outcome": "cancelled"}))
        a.sync()
        self.assertEqual([m["error.code"] for m in child.seen(id=71)], [-32800])  # a cancelled request is answered, too

    def test_a_cancelled_turn_takes_its_asks_along(self):
        _, _, child, a = self.open()
        _, prompt = self.turn(child, a)
        child.print(permission(71))
        mine = self.offered(a)
        child.print(result(prompt, stopReason="cancelled"))
        a.wait(method="$/cancel_request", params__requestId=mine)
        self.assertEqual([m["result.outcome"] for m in child.seen(id=71)], [{"outcome": "cancelled"}])

    def test_rules_decide_by_the_kind(self):
        _, _, child, a = self.open(profile={"allow_tools": "read", "deny_tools": "delete"})
        self.turn(child, a)
        child.print(permission(71, kind="read"), permission(72, kind="delete"), permission(73, kind="edit"))
        self.assertEqual(child.wait(id=71)["result.outcome.optionId"], "yes")
        self.assertEqual(child.wait(id=72)["result.outcome.optionId"], "no")
        self.offered(a, params__toolCall__kind="edit")

    def test_a_form(self):
        d, _, child, a = self.open()
        self.turn(child, a)
        child.print(rpc("elicitation/create", 74, sessionId="c1", message="which?", mode="form", requestedSchema={}))
        rid = a.wait(method="elicitation/create")["id"]
        shown = subprocess.run([build_file("plenumctl"), "pending"], env=d.env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, text=True, timeout=TIMEOUT).stdout
        self.assertRegex(shown, r"elicitation/create +which\?")
        a.send(result(rid, action="perhaps"))
        a.event("error", code="bad_answer")
        a.send(result(rid, action="accept", content={"x": 1}))
        self.assertEqual(child.wait(id=74)["result"], {"action": "accept", "content": {"x": 1}})


class Named(AcpCase):
    """Ids inside params: each side knows the request by its own."""

    def form(self, rid, request, **more):
        return rpc("elicitation/create", rid, requestId=request, message="who?", mode="form", requestedSchema={}, **more)

    def test_a_form_about_a_request_goes_to_its_client_alone(self):
        _, _, child, a, b = self.open(2)
        for rid in (7, "7"):
            with self.subTest(id=rid):
                a.send(rpc("authenticate", rid, methodId="x"))
                theirs = child.wait(method="authenticate")["id"]
                b.send(rpc("authenticate", rid, methodId="y"))
                hers = child.wait(method="authenticate")["id"]
                child.print(self.form("f", theirs), self.form(0, hers))
                for c, form in ((a, "f"), (b, 0)):
                    m = c.wait(method="elicitation/create")
                    self.assertEqual((m["params.requestId"], type(m["params.requestId"])), (rid, type(rid)))
                    c.send(result(m["id"], action="decline"))
                    self.assertEqual(child.wait(id=form)["result.action"], "decline")
                child.print(result(theirs), result(hers))
                for c in (a, b):
                    c.reply(rid)
                    c.sync()
        self.assertEqual([len(c.seen(method="elicitation/create")) for c in (a, b)], [2, 2])

    def test_nobody_else_answers_it(self):
        d, _, child, a, b = self.open(2)
        a.send(rpc("authenticate", 7, methodId="x"))
        theirs = child.wait(method="authenticate")["id"]
        child.print(self.form(0, theirs))
        rid = a.wait(method="elicitation/create")["id"]
        b.send(result(rid, action="accept"))
        b.event("error", code="unknown_request")
        d.call("plenum_upgrade")
        until(lambda: b" upgraded: " in open(d.log_path, "rb").read(), what="the upgrade")
        b.send(result(rid, action="accept"))
        b.event("error", code="unknown_request")
        a.close()
        self.assertEqual(child.wait(id=0)["result.action"], "cancel")
        child.print(self.form(1, theirs), self.form(2, 999))
        for form in (1, 2):
            self.assertEqual(child.wait(id=form)["error.code"], -32601)
        child.mark(b)
        self.assertEqual(b.seen(method="elicitation/create"), [])

    def test_a_form_about_the_beginning(self):
        """The daemon begins the conversation for the client that has asked for it."""
        d, agent = self.begin()
        e = self.editor(d)
        first = e.call("initialize", protocolVersion=1)
        child = agent.child()
        self.initialized(child)
        e.reply(first)
        mine = e.call("session/new", cwd="/", mcpServers=[])
        m = child.wait(method="session/new")
        child.print(self.form(0, m["id"]))
        form = e.wait(method="elicitation/create")
        self.assertEqual(form["params.requestId"], mine)
        e.send(result(form["id"], action="accept", content={}))
        self.assertEqual(child.wait(id=0)["result.action"], "accept")
        child.print(result(m["id"], sessionId="c1"))
        self.assertEqual(e.reply(mine)["result.sessionId"], "c1")

    def test_a_form_about_what_no_client_has_asked_for(self):
        d, agent = self.begin()
        a = self.attached(d)
        child = agent.child()
        self.initialized(child)
        m = child.wait(method="session/new")
        child.print(self.form(0, m["id"]))
        form = a.wait(method="elicitation/create")
        self.assertIsNone(form["params.requestId"])
        a.send(result(form["id"], action="cancel"))
        self.assertEqual(child.wait(id=0)["result.action"], "cancel")

    def test_each_client_cancels_its_own_request(self):
        _, _, child, a, b = self.open(2)
        for rid in (7, "7"):
            theirs = []
            for c in (a, b):
                c.send(rpc("session/list", rid))
                theirs.append(child.wait(method="session/list")["id"])
            for c, known in ((b, theirs[1]), (a, theirs[0])):
                c.send(rpc("$/cancel_request", requestId=rid))
                self.assertEqual(child.wait(method="$/cancel_request")["params.requestId"], known)
                child.print(error(known, -32800, "cancelled"))
                self.assertEqual(c.reply(rid)["error.code"], -32800)

    def test_the_agent_withdraws_by_its_own_id(self):
        _, _, child, a, b = self.open(2)
        self.turn(child, a)
        for rid in (7, "7"):
            child.print(permission(rid))
            asked = [self.offered(c) for c in (a, b)]
            child.print(rpc("$/cancel_request", requestId=rid))
            for c, known in zip((a, b), asked):
                c.wait(method="$/cancel_request", params__requestId=known)
                c.send(error(known, -32800, "cancelled"))
        child.mark(a, b)
        answers = child.seen(lambda m: m["id"] in (7, "7"))
        self.assertEqual([(m["id"], m["error.code"]) for m in answers], [(7, -32800), ("7", -32800)])


class Lives(AcpCase):
    def sleep(self, d, child, *clients):
        d.call("plenum_hibernate", session="s")
        child.wait_gone()
        d.wait_state("s", "asleep")

    def test_sleep_and_load(self):
        d, agent, child, a = self.open()
        mine, theirs = self.turn(child, a, "first")
        child.print(chunk("old"), update("current_mode_update", currentModeId="plan"),
                    result(theirs, stopReason="end_turn"))
        a.reply(mine)
        self.sleep(d, child)
        again = a.prompt("second")
        child = agent.child()
        self.initialized(child)
        load = child.wait(method="session/load")
        self.assertEqual(load["params"]["sessionId"], "c1")
        self.assertEqual(load["params"]["mcpServers"], [])
        child.print(update("user_message_chunk", content={"type": "text", "text": "first"}), chunk("old"),
                    result(load["id"], modes=MODES))
        mode = child.wait(method="session/set_mode")
        self.assertEqual(mode["params"], {"sessionId": "c1", "modeId": "plan"})
        self.assertEqual(child.seen(method="session/prompt"), [])
        child.print(result(mode["id"]))
        m = child.wait(method="session/prompt")
        child.print(chunk("new"), result(m["id"], stopReason="end_turn"))
        a.reply(again)
        texts = [m["params.update.content.text"] for m in a.seen(**is_update("agent_message_chunk"))]
        self.assertEqual(texts, ["old", "new"])

    def test_load_with_a_late_replay(self):
        """Most of it comes after the reply; the answer to one more request ends it."""
        d, agent, child, a = self.open()
        mine, theirs = self.turn(child, a, "first")
        child.print(chunk("old"), result(theirs, stopReason="end_turn"))
        a.reply(mine)
        self.sleep(d, child)
        again = a.prompt("second")
        child = agent.child()
        self.initialized(child)
        load = child.wait(method="session/load")
        child.print(result(load["id"], modes=MODES), chunk("old"))
        mode = child.wait(method="session/set_mode")
        self.assertEqual(mode["params"], {"sessionId": "c1", "modeId": MODES["currentModeId"]})
        child.print(chunk("old"), update("available_commands_update", availableCommands=[]), result(mode["id"]))
        m = child.wait(method="session/prompt")
        child.print(chunk("new"), result(m["id"], stopReason="end_turn"))
        a.reply(again)
        texts = [m["params.update.content.text"] for m in a.seen(**is_update("agent_message_chunk"))]
        self.assertEqual(texts, ["old", "new"])
        self.assertEqual(len(a.seen(**is_update("available_commands_update"))), 1)

    def test_resume_without_a_replay(self):
        d, agent, child, a = self.open()
        mine, theirs = self.turn(child, a)
        child.print(chunk("old"), result(theirs, stopReason="end_turn"))
        a.reply(mine)
        self.sleep(d, child)
        a.prompt("second")
        child = agent.child()
        self.initialized(child, resume=True)
        m = child.wait(method="session/resume")
        child.print(result(m["id"]))
        child.wait(method="session/prompt")

    def test_options_are_set_again(self):
        d, agent, child, a = self.open()
        options = [{"id": "model", "name": "Model", "type": "select", "currentValue": "big", "options": []}]
        mine, theirs = self.turn(child, a)
        child.print(update("config_option_update", configOptions=options), result(theirs, stopReason="end_turn"))
        a.reply(mine)
        self.sleep(d, child)
        a.prompt("second")
        child = agent.child()
        self.initialized(child)
        child.print(result(child.wait(method="session/load")["id"], configOptions=[dict(options[0], currentValue="small")]))
        m = child.wait(method="session/set_config_option")
        self.assertEqual(m["params"], {"sessionId": "c1", "configId": "model", "value": "big"})
        child.print(result(m["id"], configOptions=options))
        child.wait(method="session/prompt")

    def restarted(self, agent, client, text, **loaded):
        """A prompt wakes the session: (the prompt's id, the child, once it has taken up the conversation)."""
        rid = client.prompt(text)
        child = agent.child()
        self.initialized(child)
        child.print(result(child.wait(method="session/load")["id"], **loaded))
        return rid, child

    def test_no_prompt_runs_in_a_laxer_mode(self):
        """Whatever the agent refuses: also at the second try, and after the daemon."""
        d, agent, child, a = self.open()
        mine, theirs = self.turn(child, a, "first")
        child.print(update("current_mode_update", currentModeId="plan"), result(theirs, stopReason="end_turn"))
        a.reply(mine)
        self.sleep(d, child)
        others = {"currentModeId": "default", "availableModes": [{"id": "default", "name": "Default"}]}
        for text, modes in (("second", {"modes": MODES}), ("third", {"modes": others}), ("fourth", {})):
            with self.subTest(modes=modes):
                rid, child = self.restarted(agent, a, text, **modes)
                m = child.wait(method="session/set_mode")
                self.assertEqual(m["params.modeId"], "plan")
                child.print(error(m["id"], -32602, "no such mode"))
                why = a.reply(rid)["error.message"]
                self.assertIn("no such mode", why)
                self.assertIn("the mode plan", why)
                child.wait_gone()
                self.assertEqual(child.seen(method="session/prompt"), [])
                d.wait_state("s", "failed")
        d.kill9()
        d.start()
        b = self.attached(d, create="never")
        for text in ("fifth", "sixth"):
            rid, child = self.restarted(agent, b, text, modes=MODES)
            m = child.wait(method="session/set_mode", params__modeId="plan")
            self.assertEqual(child.seen(method="session/prompt"), [])
            child.print(result(m["id"]))
            m = child.wait(method="session/prompt")
            child.print(result(m["id"], stopReason="end_turn"))
            b.reply(rid)
            self.sleep(d, child)

    def test_an_answer_alone_confirms_an_option(self):
        """The answer has all options, and no update follows: the listings and the next child know them."""
        d, agent, child, a = self.open()

        def options(**now):
            return [{"id": k, "name": k, "type": "select", "currentValue": v, "options": []} for k, v in now.items()]

        def set_option(name, value, **now):
            rid = a.call("session/set_config_option", sessionId="c1", configId=name, value=value)
            m = child.wait(method="session/set_config_option", params__value=value)
            child.print(result(m["id"], configOptions=options(**now)))
            a.reply(rid)
            a.event("changed", what="config_option", value=name, name=name, to=value)
        mine, theirs = self.turn(child, a, "first")
        child.print(update("config_option_update", configOptions=options(mode="auto", model="small")),
                    result(theirs, stopReason="end_turn"))
        a.reply(mine)
        set_option("model", "big", mode="auto", model="big")
        self.assertEqual(a.ok("_plenum/status")["model"], "big")
        set_option("mode", "read-only", mode="read-only", model="big")
        self.assertEqual(a.ok("_plenum/status")["permission_mode"], "read-only")
        self.sleep(d, child)
        d.kill9()
        d.start()
        b = self.attached(d, create="never")
        _, child = self.restarted(agent, b, "second", configOptions=options(mode="auto", model="big"))
        child.wait(method="session/set_config_option", params__value="read-only")
        self.assertEqual(child.seen(method="session/prompt"), [])

    def test_the_mode_is_an_option(self):
        d, agent, child, a = self.open()
        option = [{"id": "mode", "name": "Mode", "type": "select", "currentValue": "read-only", "options": []}]
        lax = [dict(option[0], currentValue="auto")]
        mine, theirs = self.turn(child, a, "first")
        child.print(update("config_option_update", configOptions=option), result(theirs, stopReason="end_turn"))
        a.reply(mine)
        self.sleep(d, child)
        for text in ("second", "third"):
            rid, child = self.restarted(agent, a, text, configOptions=lax)
            m = child.wait(method="session/set_config_option")
            self.assertEqual(m["params"], {"sessionId": "c1", "configId": "mode", "value": "read-only"})
            child.print(error(m["id"], -32602, "not now"))
            self.assertIn("the mode read-only", a.reply(rid)["error.message"])
        for text, now in (("fourth", lax), ("fifth", option), ("sixth", lax)):
            rid, child = self.restarted(agent, a, text, configOptions=now)
            if now is lax:
                m = child.wait(method="session/set_config_option", params__value="read-only")
                child.print(result(m["id"], configOptions=option))
            m = child.wait(method="session/prompt")
            child.print(result(m["id"], stopReason="end_turn"))
            a.reply(rid)
            self.assertEqual(len(child.seen(method="session/set_config_option")), int(now is lax))
            self.sleep(d, child)

    def test_a_laxer_mode_is_given_up(self):
        """It fails one start; the next one begins in the agent's own mode."""
        d, agent, child, a = self.open()
        mine, theirs = self.turn(child, a, "first")
        child.print(update("current_mode_update", currentModeId="acceptEdits"), result(theirs, stopReason="end_turn"))
        a.reply(mine)
        self.sleep(d, child)
        modes = dict(MODES, availableModes=[{"id": "acceptEdits", "name": "x"}, *MODES["availableModes"]])
        rid, child = self.restarted(agent, a, "second", modes=modes)
        m = child.wait(method="session/set_mode", params__modeId="acceptEdits")
        child.print(error(m["id"], -32602, "no"))
        self.assertNotIn("laxer", a.reply(rid)["error.message"])
        child.wait_gone()
        rid, child = self.restarted(agent, a, "third", modes=modes)
        child.print(result(child.wait(method="session/set_mode", params__modeId="default")["id"]))  # ends the replay
        child.wait(method="session/prompt")
        self.assertEqual(child.seen(method="session/set_mode", params__modeId="acceptEdits"), [])

    def lost(self, agent):
        """The next child does not know its conversation."""
        child = agent.child()
        self.initialized(child)
        child.print(error(child.wait(method="session/load")["id"], -32002, "Resource not found"))
        return child

    def test_a_conversation_without_a_prompt_is_begun_anew(self):
        """The agent has it on its disk only from the first prompt on."""
        d, agent = self.begin()
        a = self.editor(d)
        a.call("initialize", protocolVersion=1)
        child = agent.child()
        self.initialized(child)
        servers = [{"name": "x", "command": "/bin/true", "args": [], "env": []}]
        first = a.call("session/new", cwd="/usr", mcpServers=servers)
        child.print(result(child.wait(method="session/new")["id"], sessionId="c1", modes=MODES))
        a.reply(first)
        name, = d.sessions()
        child.print(update("current_mode_update", currentModeId="plan"))
        a.wait(**is_update("current_mode_update"))
        for before, now in (("c1", "c2"), ("c2", "c3")):
            d.call("plenum_hibernate", session=name)
            child.wait_gone()
            d.wait_state(name, "asleep")
            if now == "c3":  # a new daemon knows it, too
                d.kill9()
                d.start()
                a = self.attached(d, name, create="never")
            mine = a.prompt("hi", sessionId="c1")
            child = self.lost(agent)
            self.assertEqual(child.seen(method="session/load")[0]["params.sessionId"], before)
            new = child.wait(method="session/new")
            self.assertEqual(new["params"], {"cwd": "/usr", "mcpServers": servers})
            child.print(result(new["id"], sessionId=now, modes=MODES))
            mode = child.wait(method="session/set_mode")
            self.assertEqual(mode["params"], {"sessionId": now, "modeId": "plan"})
            child.print(result(mode["id"]))
            m = child.wait(method="session/prompt")
            self.assertEqual(m["params.sessionId"], now)
            a.event("changed", what="conversation_id", value=now)
            child.print(result(m["id"], stopReason="cancelled"))  # it may have left nothing
            a.reply(mine)
            self.assertEqual(d.sessions()[name]["conversation_id"], now)

    def test_a_request_follows_a_conversation_that_is_begun_anew(self):
        d, agent, child, a = self.open()
        self.sleep(d, child)
        mine = a.prompt()  # wakes it
        change = a.call("session/set_mode", sessionId="c1", modeId="plan")
        bare = a.call("session/set_mode", modeId="default")
        a.sync()
        child = self.lost(agent)
        child.print(result(child.wait(method="session/new")["id"], sessionId="c2", modes=MODES))
        for rid, mode in ((change, "plan"), (bare, "default")):
            m = child.wait(method="session/set_mode", params__modeId=mode)
            self.assertEqual(m["params"], {"sessionId": "c2", "modeId": mode})
            child.print(result(m["id"]))
            self.assertEqual(a.reply(rid)["result"], {})
        child.print(result(child.wait(method="session/prompt", params__sessionId="c2")["id"], stopReason="end_turn"))
        a.reply(mine)

    def test_a_request_before_the_conversation_gets_its_name(self):
        d, agent = self.begin()
        a = self.attached(d)
        change = a.call("session/set_mode", modeId="plan")
        a.sync()
        child = agent.child()
        self.ready(child)
        m = child.wait(method="session/set_mode")
        self.assertEqual(m["params"], {"sessionId": "c1", "modeId": "plan"})
        child.print(result(m["id"]))
        self.assertEqual(a.reply(change)["result"], {})

    def test_a_new_conversation_is_refused_too(self):
        d, agent, child, a = self.open()
        self.sleep(d, child)
        mine = a.prompt()
        child = self.lost(agent)
        child.print(error(child.wait(method="session/new")["id"], -32000, "Authentication required"))
        self.assertIn("Authentication required", a.reply(mine)["error.message"])
        child.wait_gone()
        d.wait_state("s", "failed")

    def test_a_request_wakes_the_agent(self):
        """Known to the daemon or not; about the agent, or about the conversation."""
        d, agent, child, a = self.open()
        for method in ("session/list", "authenticate", "_agent/extension", "session/set_config_option"):
            self.sleep(d, child)
            mine = a.call(method, configId="x", value="y")
            child = agent.child()
            self.initialized(child)
            child.print(result(child.wait(method="session/load")["id"], modes=MODES))
            child.print(result(child.wait(method="session/set_mode")["id"]))
            child.print(result(child.wait(method=method)["id"], it="is"))
            self.assertEqual(a.reply(mine)["result"], {"it": "is"})

    def test_what_does_not_wake_the_agent(self):
        d, agent, child, a = self.open()
        o = self.attached(d, role="observer")
        self.sleep(d, child)
        for method in ("session/list", "session/set_mode", "_agent/extension"):
            self.assertEqual(o.fails(method)["data"]["code"], "not_allowed")
        a.ok("initialize", protocolVersion=1)
        a.send(rpc("session/cancel"))
        a.ok("session/close")
        a.sync()
        self.assertEqual((d.state_of("s"), agent.starts), ("asleep", 1))
        self.assertEqual(a.seen(method="_plenum/event", params__event="error"), [])

    def test_a_list_before_the_conversation(self):
        """To choose from; also if the agent has ended meanwhile."""
        d, agent = self.begin()
        e = self.editor(d)
        e.call("initialize", protocolVersion=1)
        child = agent.child()
        for n in range(2):
            mine = e.call("session/list")
            if n:
                child = agent.child()
            self.initialized(child)
            m = child.wait(method="session/list")
            self.assertEqual(m["params"], {})  # it names no conversation
            child.print(result(m["id"], sessions=[]))
            e.reply(mine)
            self.assertEqual(child.seen(method="session/new"), [])
            name, = d.sessions()
            d.call("plenum_hibernate", session=name)
            child.wait_gone()
            d.wait_state(name, "asleep")

    def test_a_list_of_an_agent_that_cannot_start(self):
        d, agent, child, a = self.open()
        self.sleep(d, child)
        mine = a.call("session/list")
        child = agent.child()
        child.print(error(child.wait(method="initialize")["id"], -32603, "no model"))
        self.assertIn("no model", a.reply(mine)["error.message"])

    def test_a_conversation_that_the_agent_has_lost(self):
        d, agent, child, a = self.open()
        mine, theirs = self.turn(child, a, "first")
        child.print(result(theirs, stopReason="end_turn"))
        a.reply(mine)
        self.sleep(d, child)
        mine = a.prompt("lost")
        child = agent.child()
        self.initialized(child)
        child.print(error(child.wait(method="session/load")["id"], -32603, "no such file"))
        self.assertIn("no such file", a.reply(mine)["error.message"])
        child.wait_gone()
        d.wait_state("s", "failed")
        self.assertEqual(agent.starts, 2)

    def test_a_child_dies_while_it_resumes(self):
        d, agent, child, a = self.open()
        self.sleep(d, child)
        lost = a.prompt("lost")
        child = agent.child()
        child.wait(method="initialize")
        child.exit(1)
        self.assertEqual(a.reply(lost)["error.data.code"], "child_exited")
        again = a.prompt("again")
        child = agent.child()
        self.initialized(child)
        child.print(result(child.wait(method="session/load")["id"], modes=MODES))
        child.print(result(child.wait(method="session/set_mode")["id"]))
        m = child.wait(method="session/prompt", params__prompt=[{"type": "text", "text": "again"}])
        child.print(result(m["id"], stopReason="end_turn"))
        self.assertEqual(a.reply(again)["result.stopReason"], "end_turn")

    def test_a_client_that_sends_no_more_gets_its_answers(self):
        d, agent = self.begin()
        a = self.editor(d)
        a.send(rpc("_plenum/attach", 1, session="s"), rpc("session/prompt", 2, prompt=[{"type": "text", "text": "x"}]))
        a.half_close()
        child = agent.child()
        self.ready(child)
        m = child.wait(method="session/prompt")
        child.print(chunk("y"), result(m["id"], stopReason="end_turn"))
        a.reply(1)
        self.assertEqual(a.reply(2)["result.stopReason"], "end_turn")
        a.wait_eof()
        self.assertEqual(len(a.seen(**is_update("agent_message_chunk"))), 1)

    def test_kill_9_of_the_daemon(self):
        d, agent, child, a = self.open()
        mine, theirs = self.turn(child, a)
        child.print(permission(71))
        self.offered(a)
        d.kill9()
        a.wait_eof()
        child.wait_gone()
        d.start()
        b = self.attached(d, create="never")
        self.assertEqual(b.attached["conversation_id"], "c1")
        again = b.prompt("on")
        child = agent.child()
        self.initialized(child)
        load = child.wait(method="session/load", params__sessionId="c1")
        child.print(chunk("from before"), result(load["id"], modes=MODES), chunk("the rest of it"))
        self.assertEqual(child.seen(method="session/prompt"), [])
        child.print(result(child.wait(method="session/set_mode", params__modeId="default")["id"]))  # it ends a late replay
        m = child.wait(method="session/prompt")
        child.print(chunk("new"), result(m["id"], stopReason="end_turn"))
        b.reply(again)
        c = self.attached(d, replay="all")
        c.wait(**is_update("agent_message_chunk", params__update__content__text="new"))
        for client, texts in ((b, ["from before", "the rest of it", "new"]),
                              (c, ["from before", "the rest of it", "on", "new"])):
            self.assertEqual([m["params.update.content.text"] for m in client.seen(method="session/update")], texts)

    def test_mcp_servers_outlive_the_daemon(self):
        d, agent = self.begin()
        e = self.editor(d)
        e.call("initialize", protocolVersion=1)
        child = agent.child()
        self.initialized(child)
        servers = [{"name": "x", "command": "/bin/true", "args": [], "env": [{"name": "KEY", "value": "s3cret"}]}]
        e.call("session/new", cwd="/usr", mcpServers=servers)
        child.print(result(child.wait(method="session/new")["id"], sessionId="c1"))
        until(lambda: d.table() and d.table()[0]["conversation_id"] == "c1", what="the table")
        d.kill9()
        child.wait_gone()
        d.start()
        name = list(d.sessions())[0]
        b = self.attached(d, session=name, create="never")
        b.prompt("on")
        child = agent.child()
        self.initialized(child)
        load = child.wait(method="session/load")
        self.assertEqual(load["params"], {"sessionId": "c1", "cwd": "/usr", "mcpServers": servers})
        child.print(result(load["id"]))
        child.wait(method="session/prompt")

    def test_the_id_of_a_conversation_has_a_limit(self):
        d, agent = self.begin()
        e = self.editor(d)
        e.call("initialize", protocolVersion=1)
        child = agent.child()
        self.initialized(child)
        m = e.reply(e.call("session/load", sessionId="c" * 4097, cwd="/", mcpServers=[]))
        self.assertIn("the id of a conversation may have 4096 bytes, this one has 4097", m["error.message"])
        rid = e.call("session/load", sessionId="c" * 4096, cwd="/", mcpServers=[])
        child.print(result(child.wait(method="session/load")["id"]))
        e.reply(rid)
        self.assertEqual(list(d.sessions().values())[0]["conversation_id"], "c" * 4096)
        self.assertEqual(len(child.seen(method="session/load")), 1)

    def test_upgrade_with_open_requests(self):
        d, _, child, a = self.open()
        mine, theirs = self.turn(child, a)
        child.print(permission(71), update("available_commands_update", availableCommands=[]))
        rid = self.offered(a)
        d.call("plenum_upgrade")
        until(lambda: b" upgraded: " in open(d.log_path, "rb").read(), what="the upgrade")
        a.send(selected(rid, "yes"))
        self.assertEqual(child.wait(id=71)["result.outcome.optionId"], "yes")
        child.print(chunk("x"), result(theirs, stopReason="end_turn"))
        a.wait(**is_update("agent_message_chunk"))
        self.assertEqual(a.reply(mine)["result.stopReason"], "end_turn")
        self.attached(d).wait(**is_update("available_commands_update"))


class Late(AcpCase):
    def test_a_late_client_knows_what_was_said_to_all(self):
        d, _, child, a = self.open()
        child.print(update("available_commands_update", availableCommands=[{"name": "old"}]),
                    update("available_commands_update", availableCommands=[{"name": "new"}]),
                    update("usage_update", used=5, size=9))
        a.wait(**is_update("usage_update"))
        b = self.attached(d)
        m = b.wait(**is_update("available_commands_update"))
        self.assertEqual(m["params"], {"sessionId": "c1", "update": {
            "sessionUpdate": "available_commands_update", "availableCommands": [{"name": "new"}]}})
        b.wait(**is_update("usage_update"))
        b.sync()
        self.assertEqual(len(b.seen(**is_update("available_commands_update"))), 1)

    def test_load_is_answered_from_the_tape(self):
        d, _, child, a = self.open()
        mine, theirs = self.turn(child, a, "q")
        child.print(chunk("a"), update("current_mode_update", currentModeId="plan"),
                    result(theirs, stopReason="end_turn"))
        a.reply(mine)
        b = self.attached(d)
        b.ok("initialize", protocolVersion=1)
        rid = b.call("session/load", sessionId="c1", cwd="/", mcpServers=[])
        self.assertEqual(b.reply(rid)["result.modes.currentModeId"], "plan")
        said = [m["params.update.sessionUpdate"] for m in b.log if m["method"] == "session/update"][-3:]
        self.assertEqual(said, ["user_message_chunk", "agent_message_chunk", "current_mode_update"])
        a.sync()
        self.assertEqual(len(a.seen(**is_update("agent_message_chunk"))), 1)
        child.caught_up()
        self.assertEqual(child.seen(method="session/load"), [])

    def behind(self, d):
        """The unread bytes of the client that has most of them."""
        return max(c["lag_bytes"] for c in d.call("plenum_status")["clients"])

    def long_texts(self, child, client, count, size=100000):
        """The child prints them; they are on the tape."""
        texts = ["%03d" % n + "x" * size for n in range(count)]
        for text in texts:
            child.print(chunk(text))
            client.wait(**is_update("agent_message_chunk", params__update__content__text=text))
        return texts

    def test_a_long_conversation_is_loaded_as_it_is_read(self):
        """The daemon keeps no second copy for a client that does not read."""
        d, _, child, a = self.open(limits={"tape_bytes": "32M"})
        mine, theirs = self.turn(child, a)
        texts = self.long_texts(child, a, 100)
        b = self.attached(d)
        rid = b.call("session/load", sessionId="c1", cwd="/", mcpServers=[])

        until(lambda: self.behind(d) > 4000000, what="the replay to begin")
        self.assertLess(sum(s["bytes"] for s in d.call("plenum_status", daemon=True)["shares"]), 2000000)
        child.print(chunk("live"), result(theirs, stopReason="end_turn"))
        a.reply(mine)
        b.reply(rid)
        b.event("turn_ended")
        said = [m["params.update.content.text"] for m in b.seen(method="session/update")]
        self.assertEqual(said, ["hi", *texts, "live"])
        self.assertEqual(len(b.seen(lambda m: m["result.sessionId"] == "c1")), 1)
        last = b.log.index(b.seen(**is_update("agent_message_chunk", params__update__content__text=texts[-1]))[0])
        self.assertLess(last, b.log.index(b.seen(lambda m: m["result.sessionId"] == "c1")[0]))

    def test_it_is_loaded_twice_and_over_an_upgrade(self):
        d, _, child, a = self.open(limits={"tape_bytes": "32M"})
        mine, theirs = self.turn(child, a)
        texts = self.long_texts(child, a, 50)
        b = self.attached(d)
        for _ in range(2):
            b.call("session/load", sessionId="c1", cwd="/", mcpServers=[])
        until(lambda: self.behind(d) > 1000000, what="the replay to begin")
        d.call("plenum_upgrade")
        until(lambda: b" upgraded: " in open(d.log_path, "rb").read(), what="the upgrade")
        b.sync()
        said = [m["params.update.content.text"] for m in b.seen(method="session/update")]
        self.assertEqual(said[-51:], ["hi", *texts])
        self.assertEqual(len(b.seen(lambda m: m["result.sessionId"] == "c1")), 2)

    def test_the_end_of_the_tape_overtakes_a_load(self):
        d, _, child, a = self.open(limits={"tape_bytes": "256K"})
        mine, theirs = self.turn(child, a)
        b = self.attached(d)
        rids = [b.call("session/load", sessionId="c1", cwd="/", mcpServers=[])]
        text = self.long_texts(child, a, 100, 50000)[-1]
        rids.append(b.call("session/load", sessionId="c1", cwd="/", mcpServers=[]))
        for rid in rids:
            self.assertIn("sessionId", b.reply(rid)["result"])
        b.sync()
        self.assertEqual(b.seen(**is_update("agent_message_chunk"))[-1]["params.update.content.text"], text)

    def test_an_editor_joins_the_conversation_that_it_loads(self):
        d, _, child, a = self.open()
        mine, theirs = self.turn(child, a, "q")
        child.print(chunk("a"))
        a.wait(**is_update("agent_message_chunk"))
        e = self.editor(d)
        rid = e.call("initialize", protocolVersion=1)
        own = self.agents[0].child()
        self.initialized(own)
        e.reply(rid)
        rid = e.call("session/load", sessionId="c1", cwd="/", mcpServers=[])
        e.reply(rid)
        self.assertEqual([m["params.update.sessionUpdate"] for m in e.log if m["method"] == "session/update"],
                         ["user_message_chunk", "agent_message_chunk"])
        own.wait_gone()
        until(lambda: list(d.sessions()) == ["s"], what="the unused session to be removed")
        child.print(permission(71))
        e.send(selected(self.offered(e), "yes"))
        child.wait(id=71)
        child.print(result(theirs, stopReason="end_turn"))
        a.reply(mine)
        e.event("turn_ended")

    def test_an_editor_that_begins_nothing_leaves_nothing(self):
        d, agent = self.begin()
        e = self.editor(d)
        rid = e.call("initialize", protocolVersion=1)
        child = agent.child()
        self.initialized(child)
        e.reply(rid)
        e.close()
        child.wait_gone()
        until(lambda: not d.sessions(), what="the unused session to be removed")

    def test_the_model_is_an_option(self):
        d, agent = self.begin()
        a = self.attached(d)
        child = agent.child()
        self.initialized(child)
        option = {"id": "model", "name": "Model", "type": "select", "currentValue": "big", "options": []}
        child.print(result(child.wait(method="session/new")["id"], sessionId="c1", configOptions=[option]))
        d.wait_state("s", "idle")
        self.assertEqual(self.attached(d).attached["model"], "big")
        child.print(update("config_option_update", configOptions=[dict(option, currentValue="small")]))
        a.wait(**is_update("config_option_update"))
        self.assertEqual(self.attached(d).attached["model"], "small")

    def test_a_mode_that_is_reported_as_an_option(self):
        d, _, child, a = self.open()
        child.print(update("config_option_update", configOptions=[{"id": "mode", "currentValue": "plan"}]))
        a.wait(**is_update("config_option_update"))
        b = self.attached(d)
        self.assertEqual(b.attached["permission_mode"], "plan")
        self.assertEqual(b.wait(**is_update("current_mode_update"))["params.update.currentModeId"], "plan")

    def test_a_mode_for_all(self):
        d, _, child, a, b = self.open(2)
        rid = a.call("session/set_mode", sessionId="c1", modeId="plan")
        child.print(result(child.wait(method="session/set_mode")["id"]))
        a.reply(rid)
        b.event("changed", what="permission_mode", value="plan")
        self.assertEqual(self.attached(d).wait(**is_update("current_mode_update"))["params.update.currentModeId"], "plan")


class Long(AcpCase):
    def test_an_answer_that_is_too_long_ends_its_turn(self):
        """The client gets an error, and the next prompt goes to the agent."""
        d, _, child, a = self.open(limits={"child_line": "1M"})
        mine, theirs = self.turn(child, a)
        child.print(result(theirs, stopReason="end_turn", _meta={"x": "x" * (1 << 20)}))
        m = a.reply(mine)
        self.assertIn("child_line", m["error.message"])
        d.wait_state("s", "idle")
        self.turn(child, a, "next")

    def test_a_permission_that_is_too_long_is_refused(self):
        _, _, child, a = self.open(limits={"child_line": "1M"})
        self.turn(child, a)
        child.print({"id": 7, **permission(7, title="x" * (1 << 20))})
        m = child.wait(lambda m: m["id"] == 7)
        self.assertEqual(m["result"], {"outcome": {"outcome": "cancelled"}})
