# SPDX-License-Identifier: MIT
"""Which client's answer to a request of the child counts, and the answer if none comes (contract 5; cases C22 C44)."""
import resource
import unittest

from harness import Case, allow, deny, err, ok, perm, request, user


class AnswerTest(Case):
    def test_answer_does_not_reach_the_next_child(self):
        _, agent, child, a = self.open(mode={"eof": "ignore"}, profile={"stop_grace": "20s"})
        a.initialize()
        child.print(perm("k-1"))
        rid = a.wait(type="control_request", request__subtype="can_use_tool")["request_id"]
        a.ask("plenum_stop", session="s", how="graceful")
        child.event("eof")
        a.send(user("for the next one", uuid="u-1"))
        child.print({"type": "control_request", "request_id": "k-2", "request": {"subtype": "mcp_message", "server_name": "x"}})
        child.mark(a)
        a.send(ok(rid, {"behavior": "allow", "updatedInput": {}}))
        a.error("child_exited", request_id=rid)
        child.exit(0)
        child = agent.child()
        child.wait(type="user", uuid="u-1")
        child.print({"type": "system", "subtype": "init", "session_id": "c"})
        child.mark(a)
        self.assertEqual(child.seen(type="control_response"), [])

    def test_client_accepted_without_free_descriptors_may_answer(self):
        d, agent = self.start()
        d.attached("s")
        child = agent.child()
        d.settled_fds()
        before = resource.prlimit(d.pid, resource.RLIMIT_NOFILE)
        used = {int(name.split(":")[0]) for name in d.fd_list()}
        free = min(set(range(len(used) + 1)) - used)
        resource.prlimit(d.pid, resource.RLIMIT_NOFILE, (free + 1, before[1]))  # none is left for /proc
        b = d.attached("s")
        resource.prlimit(d.pid, resource.RLIMIT_NOFILE, before)
        child.print({"type": "control_request", "request_id": "k-1", "request": {"subtype": "strange"}})
        b.send(ok(b.wait(type="control_request")["request_id"], {"a": 1}))
        self.assertEqual(child.answer("k-1")["response.response"], {"a": 1})

    def test_client_that_was_not_asked_gets_unknown_request(self):
        d, agent = self.start()
        a, b, o = d.client(), d.client(), d.client()
        a.attach("work")
        b.attach("work", approve={"tools": ["Read"]})
        o.attach("work", role="observer")
        child = agent.child()
        child.print(perm("p-1"))
        rid = a.wait(type="control_request")["request_id"]
        for c in (b, o):
            c.send(allow(rid))
            c.error("unknown_request", request_id=rid, line=2)
        self.assertNone(child.answers("p-1"))
        a.send(allow(rid))
        child.answer("p-1")
        b.send(allow(rid))
        b.error("already_settled", request_id=rid, line=3)

    def test_answer_in_another_session_is_unknown(self):
        """The ids of one session mean nothing in another."""
        d, agent = self.start(agents=("agent", "other"))[:2]
        a = d.attached("one")
        child = agent.child()
        b = d.attached("two", profile="other")
        second = self.agents[1].child()
        child.print(perm("k-1"))
        second.print(perm("k-1"))
        one, two = a.wait(type="control_request")["request_id"], b.wait(type="control_request")["request_id"]
        self.assertNotEqual(one, two)
        a.send(allow(two))
        b.send(allow(one))
        a.error("unknown_request")
        b.error("unknown_request")
        self.assertNone(child.answers("k-1") + second.answers("k-1"))
        a.send(allow(one))
        b.send(deny(two))
        self.assertEqual(child.answer("k-1")["response.response.behavior"], "allow")
        self.assertEqual(second.answer("k-1")["response.response.behavior"], "deny")


class UnansweredTest(Case):
    """No approver answers."""

    def test_every_kind_is_refused_after_the_wait(self):
        """C44, C22: no approver is attached and a limit is set; the message gives the reason."""
        d, agent = self.start(profile={"permission_wait": "1s"})
        o = d.attached(role="observer")
        child = agent.child()
        child.print(perm("k-1"), request("k-2", "elicitation", message="pick", requestedSchema={}), request("k-3", "never_heard_of"))
        m = child.answer("k-1")["response.response"]
        self.assertEqual(m["behavior"], "deny")
        self.assertIn("no client answered within 1 s", m["message"])
        self.assertEqual(child.answer("k-2")["response.response"], {"action": "cancel"})
        self.assertEqual(child.answer("k-3")["response.subtype"], "error")
        for _ in range(3):
            self.assertIn("within 1 s", o.event("settled", decision="timeout")["reason"])

    def test_wait_begins_when_the_last_approver_leaves(self):
        """C44: an approver that has declined no longer holds the request."""
        d, _, child, a = self.open(profile={"permission_wait": "300ms"})
        for k, line in (("k-1", request("k-1", "elicitation", message="pick", requestedSchema={})), ("k-2", request("k-2", "never_heard_of"))):
            b = d.attached()
            child.print(line)
            rid = a.wait(type="control_request")["request_id"]
            b.wait(type="control_request")
            a.send(err(rid, "Unsupported"))
            a.sync()
            self.assertNone(child.answers(k))
            b.close()
            child.answer(k)

    def test_message_names_a_wait_below_a_second(self):
        d, agent = self.start(profile={"permission_wait": "200ms"})
        d.client().attach("work", approve=False)
        child = agent.child()
        child.print(perm("p-1"))
        self.assertIn("within 0.2 s", child.answer("p-1")["response.response.message"])


class ManyTest(Case):
    """Many clients and sessions."""

    def test_300_observers(self):
        d, _, child, first = self.open()
        crowd = [d.attached(role="observer") for _ in range(300)]
        child.print({"type": "x", "n": 1}, perm("k-1"), {"type": "x", "n": 2})
        for c in crowd:
            c.wait(type="x", n=2)
        first.send(allow(first.wait(type="control_request")["request_id"]))
        child.answer("k-1")
        for c in crowd:
            c.event("settled")
            self.assertNone(c.seen(type="control_request"))

    def test_first_of_100_answers_wins(self):
        d, agent = self.start()
        crowd = [d.attached() for _ in range(100)]
        child = agent.child()
        child.print(perm("k-1"))
        ids = [c.wait(type="control_request")["request_id"] for c in crowd]
        for c, rid in zip(crowd, ids):
            c.send(allow(rid))
        child.answer("k-1")
        for c in crowd:
            c.sync()
        self.assertEqual(sum(bool(c.seen(code="already_settled")) for c in crowd), 99)
        self.assertEqual(len(child.answers("k-1")), 1)


class ChangeTest(Case):
    """An approver changes or leaves while a request to it is open."""

    def test_approver_changes_its_tools(self):
        d, agent = self.start()
        a = d.attached(approve={"tools": ["Bash"]})
        child = agent.child()
        child.print(perm("k-1", tool="Bash"), perm("k-2", tool="Write"))
        bash = a.wait(type="control_request")["request_id"]
        a.request("plenum_register", approve={"tools": ["Write"]})
        write = a.wait(type="control_request", request__tool_name="Write")["request_id"]
        a.wait(type="control_cancel_request", request_id=bash)
        a.send(allow(bash))
        self.refusal(a, None, ("unknown_request", "not_allowed"))
        a.send(allow(write))
        child.answer("k-2")
        self.assertNone(child.answers("k-1"))
        a.request("plenum_register", approve=True)
        a.send(allow(a.wait(type="control_request", request__tool_name="Bash")["request_id"]))
        child.answer("k-1")

    def test_driver_becomes_an_observer(self):
        _, _, child, a, b = self.open(2)
        child.print(request("k-1", "never_heard_of"))
        rid = a.wait(type="control_request")["request_id"]
        b.wait(type="control_request")
        a.send(request("1", "mcp_status"))
        got = child.request("mcp_status")
        a.request("plenum_register", role="observer")
        a.send(ok(rid, {"x": 1}))
        self.refusal(a, None, ("unknown_request", "not_allowed"))
        child.reply(got, {"n": 1})
        self.assertEqual(a.answer("1")["response.response"], {"n": 1})
        self.assertNone(child.answers("k-1"))

    def test_detach_with_open_requests(self):
        d, agent = self.start(agents=("agent", "other"))[:2]
        a, b = d.attached("one"), d.attached("one")
        child = agent.child()
        a.send(request("1", "mcp_status"))
        got = child.request("mcp_status")
        child.print(perm("k-1"))
        rid = a.wait(type="control_request")["request_id"]
        b.wait(type="control_request")
        a.request("plenum_detach")
        self.assertEqual(a.answer("1")["response.code"], "not_attached")
        a.attach("two", profile="other")
        second = self.agents[1].child()
        a.send(request("1", "get_settings"))
        other = second.request("get_settings")
        child.reply(got, {"old": 1})
        second.reply(other, {"new": 1})
        answer = a.answer("1")
        self.assertEqual(answer["response.response"], {"new": 1}, answer)
        a.send(allow(rid))
        a.error("unknown_request")
        child.mark(b)
        self.assertNone(a.seen(lambda m: b'"old"' in m.raw))
        self.assertNone(child.answers("k-1"))
        self.assertNone(second.seen(type="control_response"))

    def test_stop_withdraws_open_requests(self):
        d, agent = self.start()
        a, b = d.attached(), d.attached(role="observer")
        child = agent.child()
        child.print(perm("k-1"))
        rid = a.wait(type="control_request")["request_id"]
        b.ask("plenum_stop", session="s", how="kill")
        a.wait(type="control_cancel_request", request_id=rid)
        a.event("child_exited", wanted=True)
        a.send(allow(rid))
        a.error("already_settled")
        self.assertEqual(d.call("plenum_pending", session="s")["pending"], [])


if __name__ == "__main__":
    unittest.main()
