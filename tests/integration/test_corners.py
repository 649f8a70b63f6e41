# SPDX-License-Identifier: MIT
"""Limits, odd ids, and changes of mind in the middle of something (DESIGN 4 to 7)."""
import os
import unittest

from harness import Case, allow, cancel, deny, dump, err, hook, ok, perm, request, until, user, RESULT


class IdTest(Case):
    def test_ids_of_the_child_come_back_as_they_were(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        for raw in (b'17', b'""', b'"k\\u002d1"', b'"\\ud800"', b'"quote \\" slash \\\\ \\/"', b'"' + b"x" * 5000 + b'"', b'1e2', b'-0'):
            child.print(b'{"type":"control_request","request_id":' + raw + b',"request":{"subtype":"can_use_tool","tool_name":"Bash",'
                        b'"input":{"command":"c"},"tool_use_id":"t"}}\n')
            a.send(allow(a.wait(type="control_request")["request_id"], "c"))
            got = child.wait(type="control_response")
            self.assertIn(b'"request_id":' + raw, got.raw)

    def test_a_request_without_an_id(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        child.print(b'{"type":"control_request","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}\n',
                    b'{"type":"control_request","request_id":"k-0"}\n', b'{"type":"control_request","request_id":"k-9","request":[]}\n',
                    b'{"type":"control_cancel_request"}\n', b'{"type":"control_response"}\n', b'{"type":"control_response","response":5}\n',
                    perm("k-1"))
        a.send(allow(a.wait(type="control_request", request__tool_use_id="toolu_k-1")["request_id"]))
        child.answer("k-1")
        child.mark(a)

    def test_same_id_twice_while_open(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        child.print(perm("k-1", "first"), perm("k-1", "second"))
        first = a.wait(type="control_request")
        a.send(allow(first["request_id"], first["request.input.command"]))
        child.answer("k-1")
        child.mark(a)
        for m in a.seen(type="control_request")[1:]:
            a.send(deny(m["request_id"]))
        a.sync()
        self.assertLessEqual(len(child.answers("k-1")), len(a.seen(type="control_request")))


class LongAnswerTest(Case):
    def test_an_initialize_whose_answer_is_too_long(self):
        d, agent = self.start(mode={"init": "manual"}, limits={"child_line": "64K"})
        a = d.attached()
        rid = a.ask("initialize")
        child = agent.child()
        child.reply(child.request("initialize"), {"commands": "x" * 100000})
        self.assertEqual(a.answer(rid)["response.code"], "too_long")
        d.wait_state("s", "idle")
        rid = a.ask("initialize")
        child.reply(child.request("initialize"), {"commands": []})
        self.assertEqual(a.answer(rid)["response.response.commands"], [])
        hooks = {"PreToolUse": [{"matcher": None, "hookCallbackIds": ["h0"]}]}
        rid = a.ask("initialize", hooks=hooks)
        child.reply(child.request("initialize"), {"commands": "x" * 100000, "hooks_applied": True})
        self.assertEqual(a.answer(rid)["response.code"], "too_long")
        child.print(hook("k-1", "cb_1"))
        a.send(ok(a.wait(type="control_request")["request_id"], {}))
        child.answer("k-1")
        self.assertEqual(a.initialize(hooks)["response.response.commands"], [])


class ManyTest(Case):
    def test_too_many_requests_of_the_child(self):
        d, agent = self.start(limits={"max_pending": "10"})
        a = d.attached()
        child = agent.child()
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

    def test_too_many_requests_of_clients(self):
        d, agent = self.start(limits={"max_calls": "5"})
        a = d.attached()
        child = agent.child()
        a.initialize()
        a.send(*[request("r%d" % i, "mcp_status") for i in range(8)])
        refused = [a.answer("r%d" % i) for i in range(5, 8)]
        self.assertLessEqual({m["response.code"] for m in refused}, {"too_many", "busy"})
        for _ in range(5):
            child.reply(child.request("mcp_status"))
        for i in range(5):
            self.assertEqual(a.answer("r%d" % i)["response.subtype"], "success")
        a.send(request("r9", "mcp_status"))
        child.reply(child.request("mcp_status"))
        self.assertEqual(a.answer("r9")["response.subtype"], "success")

    def test_many_clients(self):
        d, agent = self.start()
        first = d.attached()
        child = agent.child()
        crowd = [d.attached(role="observer") for _ in range(300)]
        child.print({"type": "x", "n": 1}, perm("k-1"), {"type": "x", "n": 2})
        for c in crowd:
            c.wait(type="x", n=2)
        first.send(allow(first.wait(type="control_request")["request_id"]))
        child.answer("k-1")
        for c in crowd:
            c.event("settled")
            self.assertNone(c.seen(type="control_request"))

    def test_many_approvers(self):
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

    def test_many_sessions(self):
        d, agent = self.start(profiles={"profile idle": {"command": "sleep 1000"}})
        clients = [d.attached("s%d" % i, profile="idle") for i in range(60)]
        self.assertEqual(len(d.sessions()), 60)
        for c in clients:
            c.close()
        self.assertEqual(len(d.sessions()), 60)

    def test_a_large_environment(self):
        d, agent = self.start()
        a = d.client()
        e = self.assertRefused("spawn_failed", a.attach, "s", env={"X": "x" * 200000})
        self.assertTrue("long" in e.text or "big" in e.text or "limit" in e.text, e.text)
        self.assertEqual(d.sessions(), {})


class MindTest(Case):
    def test_tools_of_an_approver_change(self):
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

    def test_a_driver_becomes_an_observer(self):
        d, agent = self.start()
        a, b = d.attached(), d.attached()
        child = agent.child()
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

    def test_detached_with_something_open(self):
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

    def test_answers_of_another_session(self):
        """Ids of one session say nothing in another."""
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

    def test_stopped_while_asking(self):
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

    def test_a_prompt_right_behind_a_big_one(self):
        """C75: bytes and order stay whatever is joined in a write."""
        d, agent = self.start()
        a = d.client()
        lines = [dump({"type": "control_request", "request_id": "i", "request": {"subtype": "initialize", "hooks": None}}),
                 dump(user("x" * 200000, uuid="u1")), dump(user("small", uuid="u2"))]
        a.send(*lines)
        child = agent.child()
        child.wait(type="user", uuid="u2")
        self.assertEqual([m.raw for m in child.log[1:]], lines[1:])
        self.assertEqual(child.log[0]["request.subtype"], "initialize")


class HookTest(Case):
    """The judge of the interleavings for hooks: an answer is the owner's own, or a refusal while it is away."""

    def callbacks(self, child, client_matcher):
        for m in reversed(child.seen(request__subtype="initialize")):
            for entry in (m["request.hooks"] or {}).get("PreToolUse", []):
                if entry.get("matcher") == client_matcher:
                    return entry["hookCallbackIds"][0]
            return None
        return None

    def test_owners_come_and_go(self):
        import random
        dice = random.Random(int(os.environ.get("PLENUM_SEED", "7")))
        d, agent = self.start(profile={"owner_grace": "60s"})
        watcher = d.attached(name="watcher", role="observer")
        child = agent.child()
        owners, said, fired, n = {}, {}, {}, 0
        for step in range(150):
            name = dice.choice("abc")
            c = owners.get(name)
            move = dice.random()
            if c is None:
                c = owners[name] = d.attached(name=name, approve=False)
                m = c.initialize({"PreToolUse": [{"matcher": name, "hookCallbackIds": ["hook_0"], "timeout": 600}]})
                self.assertEqual(m["response.subtype"], "success")
            elif move < 0.15:
                c.reset() if dice.random() < 0.5 else c.close()
                owners[name] = None
            elif move < 0.55:
                cb = self.callbacks(child, name)
                if cb:
                    n += 1
                    fired["k-%d" % n] = name
                    child.print(hook("k-%d" % n, cb))
            else:
                c.drain()
                for m in [m for m in c.inbox if m["type"] == "control_request"]:
                    c.inbox.remove(m)
                    self.assertEqual(m["request.callback_id"], "hook_0")
                    k = m["request.tool_use_id"][len("toolu_"):]
                    self.assertEqual(fired[k], name, "another owner's callback")
                    token = "t%d" % step
                    said.setdefault(k, []).append(token)
                    c.send(ok(m["request_id"], {"systemMessage": token}) if dice.random() < 0.9 else err(m["request_id"], token))
        child.mark(watcher)
        for c in owners.values():
            if c:
                c.close()
        until(lambda: all(child.answers(k) for k in fired), what="every callback to be answered")
        for k in fired:
            got = child.answers(k)
            self.assertEqual(len(got), 1, k)
            body = got[0]["response.response"] or {}
            token = body.get("systemMessage") or got[0]["response.error"]
            if token in said.get(k, []):
                continue
            if got[0]["response.subtype"] == "error":
                continue  # a callback id that a newer table has replaced
            self.assertEqual(body["hookSpecificOutput"]["permissionDecision"], "deny", got[0])
        self.assertNone(child.seen(type="control_response", response__request_id=lambda r: r not in fired))


class CancelTest(Case):
    def test_cancelled_requests_of_a_client(self):
        """The answer of the child, if one comes, still ends it; the id is then free."""
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        a.send(request("1", "mcp_call", tool="mcp__x__y"), cancel("1"))
        got = child.request("mcp_call")
        self.assertEqual(child.wait(type="control_cancel_request")["request_id"], got["request_id"])
        child.print(err(got["request_id"], "cancelled"))
        self.assertEqual(a.answer("1")["response.error"], "cancelled")
        a.send(cancel("1"), request("1", "mcp_status"))
        child.reply(child.request("mcp_status"))
        self.assertEqual(a.answer("1")["response.subtype"], "success")

    def test_result_and_prompt_cross(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        for i in range(30):
            a.send(user("p%d" % i, uuid="u%d" % i))
            child.wait(type="user", uuid="u%d" % i)
            child.print(dict(RESULT, user_message_uuids=["u%d" % i]))
        a.wait(lambda m: m["user_message_uuids"] == ["u29"])
        d.wait_state("s", "idle")


if __name__ == "__main__":
    unittest.main()
