# SPDX-License-Identifier: MIT
"""Requests that need an approver's answer (contract 5, 9.2; cases C03 C04 C09 C10 C22 C44 C45)."""
import os
import shutil
import tempfile
import unittest

from harness import Case, allow, cancel, deny, dump, err, ok, perm, request, until, user, RESULT


class Asks(Case):
    def asked(self, client, cmd=None, **want):
        """Return the id of the client's request about that command."""
        want.setdefault("request__subtype", "can_use_tool")
        if cmd:
            want["request__input__command"] = cmd
        return client.wait(type="control_request", **want)["request_id"]

    def behavior(self, child, rid):
        answers = child.answers(rid)
        self.assertEqual(len(answers), 1, answers)
        return answers[0]["response.response.behavior"]


class ManyTest(Asks):
    def three(self, **same):
        _, _, child, a = self.open()
        child.print(perm("k-1", "touch one", **same), perm("k-2", "touch two", **same), perm("k-3", "touch three"))
        ids = {n: self.asked(a, "touch " + n) for n in ("one", "two", "three")}
        self.assertEqual(len(set(ids.values())), 3)
        a.send(allow(ids["three"], "touch three"), deny(ids["one"], "reason"), allow(ids["two"], "touch two"))
        for rid in ("k-3", "k-1", "k-2"):
            child.answer(rid)
        got = [(m["response.request_id"], m["response.response.behavior"]) for m in child.seen(type="control_response")]
        self.assertEqual(got, [("k-3", "allow"), ("k-1", "deny"), ("k-2", "allow")])
        self.assertEqual(child.answers("k-3")[0]["response.response.updatedInput"], {"command": "touch three"})
        self.assertEqual(child.answers("k-1")[0]["response.response.message"], "reason")

    def test_out_of_order(self):
        self.three()

    def test_same_tool_use_id(self):
        self.three(tool_use_id="toolu_same")

    def test_answering_one_leaves_the_others(self):
        _, _, child, a, b = self.open(2)
        child.print(perm("k-1", "one"), perm("k-2", "two"))
        one, two = self.asked(a, "one"), self.asked(a, "two")
        bone, btwo = self.asked(b, "one"), self.asked(b, "two")
        a.send(allow(one, "one"))
        child.answer("k-1")
        b.wait(type="control_cancel_request", request_id=bone)
        child.mark(a, b)
        self.assertNone(b.seen(type="control_cancel_request", request_id=btwo))
        b.send(deny(btwo))
        child.answer("k-2")
        a.wait(type="control_cancel_request", request_id=two)

    def test_the_request_is_untouched(self):
        _, agent, child, a = self.open()
        raw = (b'{"type":"control_request","request_id":"k-9","request":{"subtype":"can_use_tool","tool_name":"Bash","input":'
               b'{"command":"make","n":1e400,"s":"\\ud800"},"tool_use_id":"toolu_bg","agent_id":"agent-7","blocked_path":"/x",'
               b'"future":[1,{"request_id":"k-9"}]}}')
        child.print(raw + b"\n")
        m = a.wait(type="control_request")
        self.assertEqual(m.raw, raw.replace(b'"k-9"', dump(m["request_id"]), 1))

    def test_approver_with_more_open_requests_than_its_queue_holds(self):
        """An approver arrives to more open requests than its queue holds: its connection is closed, and the daemon
        lives."""
        d, agent = self.start(limits={"tape_bytes": "1M"})
        a = d.attached(approve=False)
        child = agent.child()
        for i in range(18):
            child.print(perm("k-%d" % i, "x" * 16000000))
        until(lambda: len(d.call("plenum_pending")["pending"]) == 18, what="the requests")
        b = d.client()
        b.ask("plenum_attach", session="s")
        b.wait_eof()
        a.sync()
        self.assertEqual(d.call("plenum_status", session="s")["pending"], 18)

    def test_requests_over_max_pending_are_denied(self):
        d, _, child, a = self.open(limits={"max_pending": "10"})
        child.print(*[perm("k-%d" % i, "c%d" % i) for i in range(15)])
        for i in range(10, 15):
            got = child.answer("k-%d" % i)["response.response"]
            self.assertEqual(got["behavior"], "deny")
            self.assertTrue(got["message"])
        asked = [a.wait(type="control_request") for _ in range(10)]
        for m in asked:
            a.send(allow(m["request_id"], m["request.input.command"]))
        for i in range(10):
            self.assertEqual(child.answer("k-%d" % i)["response.response.updatedInput.command"], "c%d" % i)
        child.print(perm("k-99"))
        a.wait(type="control_request")


class FirstAnswerTest(Asks):
    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a, self.b, self.c = (self.d.attached(name=n, label=n) for n in "abc")
        self.child = self.agent.child()

    def test_first_answer_counts(self):
        self.child.print(perm("k-1"))
        ids = [self.asked(x) for x in (self.a, self.b, self.c)]
        self.b.send(allow(ids[1]))
        self.assertEqual(self.child.answer("k-1")["response.response.behavior"], "allow")
        for client, rid in ((self.a, ids[0]), (self.c, ids[2])):
            client.wait(type="control_cancel_request", request_id=rid)
        for client, rid in zip((self.a, self.b, self.c), ids):
            m = client.event("settled")
            self.assertEqual((m["request_id"], m["decision"], m["by.name"]), (rid, "allow", "b"))
            self.assertEqual((m["by.uid"], m["by.pid"]), (os.getuid(), os.getpid()))
            self.assertTrue(m["by.program"])
            self.assertIsInstance(m["ms"], int)
            self.assertEqual(m["session"], "s")
        self.b.sync()
        self.assertNone(self.b.seen(type="control_cancel_request"))
        self.a.send(deny(ids[0]))
        self.a.error("already_settled", request_id=ids[0])
        self.b.send(allow(ids[1]))
        self.b.error("already_settled", request_id=ids[1])
        self.child.mark(self.a)
        self.assertEqual(len(self.child.answers("k-1")), 1)

    def test_an_observer_sees_the_decision(self):
        o = self.d.attached(role="observer")
        self.child.print(perm("k-1"))
        self.a.send(deny(self.asked(self.a)))
        self.assertEqual(o.event("settled")["decision"], "deny")
        self.assertNone(o.seen(type="control_cancel_request"))

    def test_in_the_same_instant(self):
        for i in range(30):
            k = "k-%d" % i
            self.child.print(perm(k, k))
            ids = [self.asked(x, k) for x in (self.a, self.b, self.c)]
            self.a.send(allow(ids[0], k))
            self.b.send(deny(ids[1]))
            self.c.send(allow(ids[2], k))
            self.child.answer(k)
            for x in (self.a, self.b, self.c):
                x.event("settled")
            for x in (self.a, self.b, self.c):
                x.sync()
            errors = [x.seen(code="already_settled", request_id=r) for x, r in zip((self.a, self.b, self.c), ids)]
            self.assertEqual(sorted(map(len, errors)), [0, 1, 1])
            self.assertEqual(len(self.child.answers(k)), 1)

    def test_answers_to_unknown_ids(self):
        self.child.print(perm("k-1"))
        ids = [self.asked(x) for x in (self.a, self.b, self.c)]
        for rid in ("nonsense", "k-1", ids[1], ""):
            if rid == ids[0]:
                continue
            self.a.send(allow(rid))
            self.assertIn(self.a.event("error")["code"], ("unknown_request", "not_allowed"))
        self.a.sync()
        self.assertNone(self.child.answers("k-1"))
        self.a.send(allow(ids[0]))
        self.child.answer("k-1")

    def test_an_id_used_again_by_the_child(self):
        for n in range(3):
            self.child.print(perm("k-1", "cmd%d" % n))
            rid = self.asked(self.a, "cmd%d" % n)
            self.a.send(allow(rid, "cmd%d" % n))
            until(lambda: len(self.child.answers("k-1")) == n + 1)
        self.assertEqual([m["response.response.updatedInput.command"] for m in self.child.answers("k-1")], ["cmd0", "cmd1", "cmd2"])

    def test_a_late_answer_never_reaches_another_request(self):
        self.child.print(perm("k-1", "first"))
        old = self.asked(self.a, "first")
        self.child.print(cancel("k-1"))
        self.a.wait(type="control_cancel_request", request_id=old)
        self.child.print(perm("k-1", "second"))
        new = self.asked(self.a, "second")
        self.assertNotEqual(old, new)
        self.a.send(allow(old, "first"))
        self.a.error("already_settled")
        self.assertNone(self.child.answers("k-1"))
        self.a.send(deny(new))
        self.assertEqual(self.child.answer("k-1")["response.response.behavior"], "deny")


class BodyTest(Asks):
    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a = self.d.attached()
        self.child = self.agent.child()
        self.n = 0

    def ask(self, **members):
        self.n += 1
        self.k = "k-%d" % self.n
        self.child.print(perm(self.k, **members))
        return self.a.wait(type="control_request")["request_id"]

    def given(self, body):
        rid = self.ask()
        self.a.send(ok(rid, body))
        return self.child.answer(self.k)["response.response"]

    def test_a_long_input_that_differs_in_its_last_member(self):
        _, _, child, a = self.open()
        for rid, last in (("k-1", 0), ("k-2", 1)):
            child.print(perm(rid, input={"command": "x", "text": "y" * 300000, "list": list(range(30000)), "last": 0}))
            asked = self.asked(a)
            same = {f"m{i}": "z" for i in range(40000)} if last else {}
            a.send(ok(asked, {"behavior": "allow", "updatedInput": dict(
                same, command="x", text="y" * 300000, list=list(range(30000)), last=last)}))
            self.assertEqual(child.answer(rid)["response.response.behavior"], "allow")
            self.assertEqual(bool(a.event("settled", request_id=asked)["input_changed"]), bool(last))

    def test_allow_alone_gets_the_input(self):
        raw = b'{"command":"x y","n":1e400,"s":"\\ud800\\u0000"}'
        self.child.print(b'{"type":"control_request","request_id":"k-0","request":{"subtype":"can_use_tool","tool_name":"Bash",'
                         b'"input":' + raw + b',"tool_use_id":"t"}}\n')
        self.a.send(ok(self.a.wait(type="control_request")["request_id"], {"behavior": "allow"}))
        got = self.child.answer("k-0")
        self.assertIn(raw, got.raw)
        self.assertEqual(got["response.response.behavior"], "allow")
        self.assertEqual(got["response.response.updatedInput.command"], "x y")

    def test_old_shapes(self):
        got = self.given({"allow": True})
        self.assertEqual((got["behavior"], got["updatedInput"]), ("allow", {"command": "touch one"}))
        got = self.given({"allow": False})
        self.assertEqual(got["behavior"], "deny")
        self.assertTrue(got["message"])

    def test_everything_else_is_kept(self):
        body = {"behavior": "allow", "updatedInput": {"command": "other"}, "future": [1, {"a": None}], "toolUseID": "wrong",
                "updatedPermissions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}],
                "decisionClassification": "user_temporary"}
        self.assertEqual(self.given(body), body)
        body = {"behavior": "deny", "message": "because", "interrupt": True, "x": 1}
        self.assertEqual(self.given(body), body)

    def test_bytes_of_the_body(self):
        rid = self.ask()
        body = b'{ "updatedInput":{"a":1.0,"b":1E2,"a":2} ,"behavior" : "allow" }'
        self.a.send(b'{"response":{"response":' + body + b',"request_id":' + dump(rid) + b',"subtype":"success"},"type":"control_response"}')
        self.assertIn(body, self.child.answer(self.k).raw)

    def test_bad_answers_leave_it_open(self):
        rid = self.ask()
        for body in ({}, {"behavior": "maybe"}, {"behavior": "deny"}, {"behavior": "deny", "message": 5}, {"decision": "allow"},
                     {"behavior": "allow", "updatedInput": "x"}, {"behavior": "allow", "updatedInput": None}, {"behavior": True},
                     {"allow": "true"}, {"behavior": "Allow", "updatedInput": {}}, {"behavior": "allow", "toolUseID": 5},
                     {"behavior": "deny", "message": "x", "interrupt": "true"}):
            self.a.send(ok(rid, body))
            self.assertEqual(self.a.error("bad_answer")["request_id"], rid, body)
        for body in (b'[]', b'"allow"', b'null', b'true'):
            self.a.send(b'{"type":"control_response","response":{"subtype":"success","request_id":' + dump(rid) + b',"response":' + body + b'}}')
            self.a.error("bad_answer")
        self.a.send(ok(rid))
        self.a.error("bad_answer")
        for subtype in ({}, {"subtype": "maybe"}):
            self.a.send({"type": "control_response",
                         "response": {**subtype, "request_id": rid, "response": {"behavior": "allow"}}})
            self.assertEqual(self.a.error("bad_answer")["request_id"], rid)
        self.a.sync()
        self.assertNone(self.child.answers(self.k))
        self.assertEqual(self.d.state_of("s"), "asking")
        self.a.send(allow(rid))
        self.assertEqual(self.child.answer(self.k)["response.response.behavior"], "allow")

    def test_a_bad_answer_lets_the_other_win(self):
        b = self.d.attached()
        rid = self.ask()
        other = self.asked(b)
        self.a.send(ok(rid, {}))
        self.a.error("bad_answer")
        b.send(deny(other))
        self.assertEqual(self.child.answer(self.k)["response.response.behavior"], "deny")

    def test_an_error_is_a_refusal(self):
        rid = self.ask()
        self.a.send(err(rid, "callback threw"))
        got = self.child.answer(self.k)
        self.assertEqual((got["response.subtype"], got["response.error"]), ("error", "callback threw"))
        self.assertIn(self.a.event("settled")["decision"], ("deny", "error"))

    def test_questions(self):
        question = {"questions": [{"question": "Which?", "header": "Q", "options": [{"label": "a", "description": ""}],
                    "multiSelect": False}]}
        self.child.print(perm("k-q", tool="AskUserQuestion", input=question))
        rid = self.a.wait(type="control_request")["request_id"]
        body = {"behavior": "allow", "updatedInput": dict(question, answers={"Which?": "b"}),
                "updatedPermissions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]}
        self.a.send(ok(rid, body))
        self.assertEqual(self.child.answer("k-q")["response.response"], body)

    def test_after_the_result(self):
        self.a.send(user("start a background job", uuid="u"))
        self.child.wait(type="user", uuid="u")
        self.child.print(dict(RESULT, user_message_uuids=["u"]))
        self.a.wait(type="result")
        rid = self.ask(agent_id="agent-7", tool_use_id="toolu_bg")
        self.child.print({"type": "assistant", "parent_tool_use_id": "toolu_parent", "message": {"role": "assistant"}})
        self.a.wait(type="assistant")
        self.assertEqual(self.d.wait_state("s", "asking"), "asking")
        self.a.send(allow(rid))
        self.child.answer(self.k)
        self.d.wait_state("s", "idle")


class LeavingTest(Asks):
    def test_the_holder_dies_and_another_comes(self):
        for how in ("close", "reset"):
            with self.subTest(how):
                d, agent = self.start()
                a, b = d.attached(), d.attached(role="observer")
                child = agent.child()
                child.print(perm("k-1"))
                self.asked(a)
                getattr(a, how)()
                b.event("detached")
                child.mark(b)
                self.assertNone(child.answers("k-1"))
                c = d.attached()
                rid = self.asked(c)
                self.assertEqual(c.attached["pending"], [rid])
                c.send(allow(rid))
                child.answer("k-1")
                child.mark(c)
                self.assertEqual(len(c.seen(type="control_request")), 1)
                self.assertEqual(len(child.answers("k-1")), 1)

    def test_another_holds_it_already(self):
        _, _, child, a, b = self.open(2)
        child.print(perm("k-1"))
        self.asked(a)
        rid = self.asked(b)
        a.close()
        b.event("detached")
        child.mark(b)
        self.assertEqual(len(b.seen(type="control_request")), 1, "asked twice")
        b.send(allow(rid))
        child.answer("k-1")

    def test_the_role_comes_later(self):
        d, agent = self.start()
        a, b = d.attached(), d.attached(role="observer")
        child = agent.child()
        child.print(perm("k-1"))
        self.asked(a)
        a.close()
        b.request("plenum_register", approve=True)
        b.send(allow(self.asked(b)))
        child.answer("k-1")

    def test_the_role_goes(self):
        _, _, child, a, b = self.open(2)
        child.print(perm("k-1"))
        rid, other = self.asked(a), self.asked(b)
        a.request("plenum_register", approve=False)
        a.send(allow(rid))
        self.refusal(a, None, ("unknown_request", "not_allowed"))
        a.sync()
        self.assertNone(child.answers("k-1"))
        b.send(deny(other))
        child.answer("k-1")

    def test_half_closed_clients_answer_nothing(self):
        d, _, child, a = self.open()
        child.prompted(a, "x", uuid="u")
        child.print(perm("k-1"))
        self.asked(a)
        a.half_close()
        until(lambda: d.call("plenum_pending", session="s"))
        c = d.attached()
        c.send(allow(self.asked(c)))
        child.answer("k-1")

    def test_an_answer_as_the_last_line_without_its_end(self):
        for end in ("half_close", "close"):
            with self.subTest(end):
                _, _, child, a = self.open()
                child.print(perm("k-1"))
                a.raw(dump(allow(self.asked(a))))
                getattr(a, end)()
                self.assertEqual(child.answer("k-1")["response.response.behavior"], "allow")

    def test_after_everybody_left(self):
        """C09: the child's stdin stays open, whatever the clients do."""
        d, _, child, a = self.open()
        child.prompted(a, "one", uuid="u")
        child.print(dict(RESULT, user_message_uuids=["u"]))
        a.wait(type="result")
        a.close()
        until(lambda: d.sessions()["s"]["attachments"] == 0)
        child.print(perm("k-1"))
        d.wait_state("s", "asking")
        self.assertEqual(child.had("eof"), [])
        b = d.attached()
        b.send(allow(self.asked(b)))
        child.answer("k-1")

    def test_nobody_there_waits_without_end(self):
        d, _, child, a = self.open()
        a.close()
        child.print(perm("k-1"))
        d.wait_state("s", "asking")
        listed = d.call("plenum_pending", session="s")
        self.assertIn("Bash", str(listed))
        self.assertNone(child.answers("k-1"))

    def test_many_requests_of_many_approvers_are_listed(self):
        """The answer names some of the asked clients, and has the number of all."""
        d, agent = self.start()
        approvers = [d.attached(name="n" * 200) for _ in range(30)]
        child = agent.child()
        child.print(*[perm("k-%d" % i, tool="T" * 2000) for i in range(300)])
        for a in approvers:
            a.wait(type="control_request", request__tool_use_id="toolu_k-299")
        listed = d.call("plenum_pending")["pending"]
        self.assertEqual([p["asked_total"] for p in listed], [30] * 300)
        self.assertEqual(len(listed[0]["asked"]), 30)
        self.assertEqual(len(listed[299]["asked"]), 0)
        self.assertEqual(listed[0]["tool_name"], "T" * 1000)
        lines = d.ctl("pending").stdout.splitlines()[1:]
        self.assertEqual(len(lines), 300)
        for line in lines:
            self.assertRegex(line, r"^s +\S+ +\S+ +30 +T")

    def test_permission_wait(self):
        d, agent = self.start(profile={"permission_wait": "300ms"})
        o = d.attached(role="observer")
        child = agent.child()
        child.print(perm("k-1"))
        got = child.answer("k-1")
        self.assertEqual(got["response.response.behavior"], "deny")
        self.assertNotIn("user", got["response.response.message"].lower().replace("no user", ""))
        self.assertIn("no", got["response.response.message"].lower())
        m = o.event("settled")
        self.assertEqual(m["decision"], "timeout")
        a = d.attached()
        child.prompted(a, "works", uuid="u")
        child.mark(a)
        self.assertNone(a.seen(type="control_request"))

    def test_permission_wait_runs_only_while_nobody_holds_it(self):
        d, _, child, a = self.open(profile={"permission_wait": "300ms"})
        child.print(perm("k-1"), perm("k-2"))
        one, two = self.asked(a), self.asked(a)
        late = d.attached(approve=False)
        self.assertRefused("timeout", a.request, "mcp_status", plenum_timeout_ms=700)  # more than the wait has passed
        self.assertNone(child.answers("k-1"))
        a.send(allow(one))
        child.answer("k-1")
        a.close()
        self.assertEqual(child.answer("k-2")["response.response.behavior"], "deny")
        late.wait(event="settled", decision="timeout")

    def test_permission_wait_is_stopped_by_an_arrival(self):
        d, agent = self.start(profile={"permission_wait": "2s"})
        o = d.attached(role="observer")
        child = agent.child()
        for n in range(10):  # until one comes within the wait
            k = "k-%d" % n
            child.print(perm(k))
            o.event("session_state", state="asking")
            a = d.attached()
            if a.attached["pending"]:
                break
            a.close()
        rid = self.asked(a)
        self.assertRefused("timeout", a.request, "mcp_status", plenum_timeout_ms=2300)
        self.assertNone(child.answers(k))
        a.send(allow(rid))
        child.answer(k)


class WithdrawnTest(Asks):
    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a, self.b = self.d.attached(), self.d.attached()
        self.child = self.agent.child()
        self.child.print(perm("k-1"))
        self.ids = self.asked(self.a), self.asked(self.b)

    def told(self, decision):
        for c, rid in zip((self.a, self.b), self.ids):
            c.wait(type="control_cancel_request", request_id=rid)
            m = c.event("settled", request_id=rid)
            self.assertEqual(m["decision"], decision)
        self.a.send(allow(self.ids[0]))
        self.a.error("already_settled")

    def test_by_the_child(self):
        self.child.print(cancel("k-1"))
        self.told("cancelled")
        self.child.mark(self.a)
        self.assertNone(self.child.answers("k-1"))
        self.assertIn(self.d.state_of("s"), ("idle", "busy"))

    def test_by_an_interrupt(self):
        self.a.send(request("i", "interrupt"))
        got = self.child.request("interrupt")
        self.child.print(cancel("k-1"), ok(got["request_id"], {}))
        self.a.answer("i")
        self.told("cancelled")

    def test_by_the_childs_end(self):
        self.child.exit(1)
        self.told("child_exited")
        self.a.event("child_exited")

    def test_a_cancel_of_something_unknown(self):
        self.child.print(cancel("k-77"), cancel("k-1"), cancel("k-1"))
        self.child.mark(self.a)
        self.assertEqual(len(self.a.seen(type="control_cancel_request")), 1)

    def test_a_newcomer_is_not_asked_about_settled_ones(self):
        self.a.send(allow(self.ids[0]))
        self.child.answer("k-1")
        c = self.d.attached(replay="all")
        self.child.mark(c)
        self.assertEqual(c.attached["pending"], [])
        self.assertNone(c.seen(type="control_request"))


class OtherKindsTest(Asks):
    ELICIT = request("k-1", "elicitation", mcp_server_name="m", message="pick", requested_schema={})

    def test_elicitation_goes_to_approvers(self):
        d, agent = self.start()
        a, b, o = d.attached(), d.attached(), d.attached(role="observer")
        child = agent.child()
        child.print(self.ELICIT)
        rid = self.asked(a, request__subtype="elicitation")
        other = self.asked(b, request__subtype="elicitation")
        a.send(ok(rid, {"action": "accept", "content": {"x": 1}}))
        self.assertEqual(child.answer("k-1")["response.response"], {"action": "accept", "content": {"x": 1}})
        b.wait(type="control_cancel_request", request_id=other)
        child.mark(o)
        self.assertNone(o.seen(type="control_request"))

    def test_a_bad_elicitation_answer(self):
        _, _, child, a = self.open()
        child.print(self.ELICIT)
        rid = self.asked(a, request__subtype="elicitation")
        for body in ({"action": "yes"}, {"behavior": "allow"}, {}):
            a.send(ok(rid, body))
            a.error("bad_answer")
        a.send(ok(rid, {"action": "decline"}))
        self.assertEqual(child.answer("k-1")["response.response"], {"action": "decline"})

    def test_a_client_that_cannot_does_not_decide_for_one_that_can(self):
        """C44: an error for an elicitation or an unknown kind counts only when no client is left that could answer."""
        for line in (self.ELICIT, request("k-1", "never_heard_of")):
            sub = line["request"]["subtype"]
            with self.subTest(sub):
                _, _, child, a, b = self.open(2)
                child.print(line)
                rid, other = (self.asked(c, request__subtype=sub) for c in (a, b))
                a.send(err(rid, "Unsupported control request subtype"))
                a.sync()
                self.assertNone(child.answers("k-1"))
                b.send(ok(other, {"action": "cancel"}))
                self.assertEqual(child.answer("k-1")["response.response"], {"action": "cancel"})

    def test_nobody_can(self):
        for line in (self.ELICIT, request("k-1", "never_heard_of")):
            sub = line["request"]["subtype"]
            with self.subTest(sub):
                _, _, child, a, b = self.open(2)
                child.print(line)
                for c in (a, b):
                    c.send(err(self.asked(c, request__subtype=sub), "Unsupported"))
                self.assertEqual(child.answer("k-1")["response.subtype"], "error")

    def test_a_dialog_goes_to_those_who_declared_it(self):
        _, _, child, a, b = self.open(2)
        b.initialize(supportedDialogKinds=["picker"])
        child.print(request("k-1", "request_user_dialog", dialog_kind="picker", payload={}))
        rid = self.asked(b, request__subtype="request_user_dialog")
        child.mark(a)
        self.assertNone(a.seen(type="control_request"))
        b.send(ok(rid, {"behavior": "completed", "result": {"x": 1}}))
        self.assertEqual(child.answer("k-1")["response.response"], {"behavior": "completed", "result": {"x": 1}})

    def test_a_dialog_that_nobody_declared_stays_unanswered(self):
        _, _, child, a, b = self.open(2)
        b.initialize(supportedDialogKinds=["picker"])
        child.print(request("k-1", "request_user_dialog", dialog_kind="other", payload={}))
        child.mark(a, b)
        a.sync()
        self.assertNone(a.seen(type="control_request") + b.seen(type="control_request"))
        self.assertNone(child.answers("k-1"))

    def test_an_unknown_kind_waits_for_a_driver(self):
        d, agent = self.start()
        o = d.attached(role="observer")
        child = agent.child()
        child.print(request("k-1", "never_heard_of"))
        child.mark(o)
        self.assertNone(child.answers("k-1"))
        a = d.attached()
        a.send(ok(self.asked(a, request__subtype="never_heard_of"), {"x": 1}))
        child.answer("k-1")


class RulesTest(Asks):
    def judge(self, line, **rules):
        _, _, child, a = self.open(profile=rules)
        child.print(line)
        child.mark(a)
        return a, child

    def long_input(self, **profile):
        """Longer than any line of the daemon itself; the answer repeats it."""
        _, _, child, a = self.open(profile=profile, limits={"child_line": "100M"})
        line = dump(perm("k-1", tool="Write", input={"content": "@P@"}))
        child.flood(line, 1, pad=65 << 20)
        if not profile:
            rid = a.wait(type="control_request")["request_id"]
            a.send({"type": "control_response", "response": {"subtype": "success", "request_id": rid, "response": {"behavior": "allow"}}})
        got = child.wait(type="control_response")["response.response"]
        self.assertEqual((got["behavior"], len(got["updatedInput"]["content"])), ("allow", 65 << 20))
        child.mark(a)

    def test_a_long_input_is_allowed_by_rule(self):
        self.long_input(allow_tools="Write")

    def test_a_long_input_is_allowed_by_a_client(self):
        self.long_input()

    def test_allowed_by_rule(self):
        a, child = self.judge(perm("k-1", "git status"), allow_tools="\"Bash(git status)\"")
        got = child.answer("k-1")["response.response"]
        self.assertEqual((got["behavior"], got["updatedInput"]), ("allow", {"command": "git status"}))
        self.assertNone(a.seen(type="control_request"))

    def test_denied_by_rule(self):
        a, child = self.judge(perm("k-1", "rm -rf x"), deny_tools="\"Bash(rm:*)\"", allow_tools="Bash")
        got = child.answer("k-1")["response.response"]
        self.assertEqual(got["behavior"], "deny")
        self.assertIn("rule", got["message"].lower())
        self.assertNone(a.seen(type="control_request"))

    def test_asked_by_rule(self):
        a, child = self.judge(perm("k-1", "git push"), ask_tools="\"Bash(git push:*)\"", allow_tools="Bash")
        self.asked(a)
        self.assertNone(child.answers("k-1"))

    def test_no_rule(self):
        a, child = self.judge(perm("k-1", tool="Write"), allow_tools="Bash")
        self.asked(a)
        self.assertNone(child.answers("k-1"))

    def test_more_than_the_rule_says(self):
        for cmd in ("git status; rm -rf /", "git status && rm x", "git status $(rm x)", "git status\nrm x", "git status | sh"):
            a, child = self.judge(perm("k-1", cmd), allow_tools="\"Bash(git status:*)\"")
            self.asked(a)
            self.assertNone(child.answers("k-1"))

    def test_questions_are_left_alone(self):
        for tool in ("AskUserQuestion", "ExitPlanMode"):
            a, child = self.judge(perm("k-1", tool=tool), allow_tools=tool)
            self.asked(a)
            self.assertNone(child.answers("k-1"))


class StateTest(Asks):
    def test_asking(self):
        d, _, child, a = self.open()
        d.wait_state("s", "idle", "starting")
        a.send(user("x", uuid="u"))
        d.wait_state("s", "busy")
        child.print(perm("k-1"), perm("k-2"))
        a.event("session_state", state="asking")
        entry = d.sessions()["s"]
        self.assertEqual((entry["state"], entry["pending"]), ("asking", 2))
        one, two = self.asked(a), self.asked(a)
        a.send(allow(one))
        child.answer("k-1")
        self.assertEqual(d.state_of("s"), "asking")
        a.send(allow(two))
        a.event("session_state", state="busy")
        child.print(dict(RESULT, user_message_uuids=["u"]))
        a.event("session_state", state="idle")

    def test_a_log_line_for_each_decision(self):
        d, agent = self.start()
        a = d.attached(name="deciders-name")
        child = agent.child()
        child.print(perm("k-1", "secret command text"))
        a.send(deny(self.asked(a)))
        a.event("settled")
        log = until(lambda: (lambda t: "deny" in t and t)(d.log()))
        line = [x for x in log.splitlines() if "deny" in x][-1]
        for word in ("Bash", "deny", str(os.getpid()), str(os.getuid())):
            self.assertIn(word, line)

    def test_an_interrupted_turn_withdraws_its_question(self):
        """The child may send nothing more about it. A background agent's question stays open."""
        _, agent, child, a = self.open()
        child.prompted(a, "go", uuid="u")
        child.print(perm("k-1"), perm("k-2", agent_id="agent-7"))
        rids = [a.wait(type="control_request")["request_id"] for _ in range(2)]
        child.print(dict(RESULT, subtype="error_during_execution", is_error=True, terminal_reason="aborted_tools"))
        self.assertEqual(a.wait(type="control_cancel_request")["request_id"], rids[0])
        self.assertEqual(a.event("settled", request_id=rids[0])["decision"], "cancelled")
        a.send(allow(rids[0]))
        a.error("already_settled", request_id=rids[0])
        a.send(allow(rids[1]))
        child.answer("k-2")
        self.assertNone(child.answers("k-1"))

    def test_a_turn_that_ended_by_itself_withdraws_nothing(self):
        _, _, child, a = self.open()
        child.print(perm("k-1"), RESULT)
        rid = a.wait(type="control_request")["request_id"]
        a.wait(type="result")
        a.send(allow(rid))
        child.answer("k-1")

    def test_on_pending(self):
        d, agent = self.start(daemon={"on_pending": "sh -c 'env >ROOT.new; mv ROOT.new ROOT' hook"})
        path = d.root + "/pending-ran"
        conf = open(d.conf).read().replace("ROOT", path)
        with open(d.conf, "w") as f:
            f.write(conf)
        d.call("plenum_reload")
        d.attached(role="observer")
        child = agent.child()
        child.print(perm("k-1", "touch it"))
        until(lambda: os.path.exists(path), what="the command to have run")
        with open(path) as f:
            env = dict(line.split("=", 1) for line in f.read().splitlines() if "=" in line)
        self.assertEqual((env["PLENUM_SESSION"], env["PLENUM_TOOL"]), ("s", "Bash"))
        self.assertIn("touch it", env["PLENUM_SUMMARY"])
        self.assertNone(child.answers("k-1"))

    def announced(self, **keys):
        """A daemon whose command records each question; return the file."""
        path = tempfile.mkdtemp(prefix="pl-", dir="/tmp") + "/questions"
        self.addCleanup(shutil.rmtree, os.path.dirname(path))
        script = 'echo "$PLENUM_SUMMARY" >>%s; exec sleep 1000' % path
        d, agent = self.start(daemon=dict({"on_pending": "sh -c '%s'" % script}, **keys))

        def lines():
            return open(path).read().splitlines() if os.path.exists(path) else []
        return d, agent, lines

    def test_on_pending_announces_the_newest_question(self):
        """Within notify_interval the newest one is queued; the previous one is dropped."""
        d, agent, lines = self.announced(notify_interval="2s", notify_limit="100ms")
        d.attached(role="observer")
        agent.child().print(perm("k-1", "first"), perm("k-2", "second"), perm("k-3", "third"))
        until(lambda: len(lines()) == 2, what="two runs")
        self.assertIn("first", lines()[0])
        self.assertIn("third", lines()[1])

    def test_on_pending_forgets_an_answered_question(self):
        d, agent, lines = self.announced(notify_interval="5s", notify_limit="100ms")
        a = d.attached(approve=False)
        child = agent.child()
        child.print(perm("k-1", "first"), perm("k-2", "second"))
        until(lambda: len(lines()) == 1, what="one run")
        b = d.attached()
        for _ in range(2):
            b.send(deny(b.wait(type="control_request")["request_id"]))
        for _ in range(2):
            a.event("settled")
        b.close()
        a.sync()
        child.print(perm("k-3", "third"))
        until(lambda: len(lines()) == 2, what="the second run")
        self.assertIn("third", lines()[1])

    def test_on_pending_commands_that_hang(self):
        """They end at their limit, which is logged, and the next questions are announced."""
        d, agent, lines = self.announced(notify_limit="300ms")
        for i in range(10):
            d.attached("s%d" % i, role="observer")
            agent.child().print(perm("k-1", "question %d" % i))
        until(lambda: len(lines()) == 10, what="ten runs: %r" % lines())
        until(lambda: d.log().count("time limit exceeded (notify_limit), sending SIGTERM") == 10, what="the log")
        self.assertEqual(len(set(lines())), 10)


if __name__ == "__main__":
    unittest.main()
