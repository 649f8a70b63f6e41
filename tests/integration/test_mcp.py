# SPDX-License-Identifier: MIT
"""MCP servers in clients (contract 6; cases C43)."""
import os
import unittest

from harness import Case, hook, init, mcp, ok, request, until

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"n": 1}}}


class Mcp(Case):
    def setUp(self):
        super().setUp()
        # a call of an absent server does not wait for its owner: that would take longer than the test
        self.d, self.agent = self.start(mode={"control": ["mcp_set_servers"]}, profile={"owner_grace": "10min"})
        self.a, self.b = self.d.attached(name="a"), self.d.attached(name="b")
        self.child = self.agent.child()

    def announce(self, client, *names):
        m = client.initialize(sdkMcpServers=list(names))
        self.assertEqual(m["response.subtype"], "success", m)

    def named(self, child, *names):
        """Wait until the child was sent all these names, in one form or the other."""

        def told():
            have = set()
            for m in child.seen(type="control_request"):
                if m["request.subtype"] == "initialize":
                    have |= set(m["request.sdkMcpServers"] or [])
                elif m["request.subtype"] == "mcp_set_servers":
                    have = set(m["request.servers"])
            return have == set(names)

        until(told, what="the child to know %s; it was told %s" % (names, [
            m["request.sdkMcpServers"] or m["request.servers"] for m in child.seen(type="control_request")]))

    def call(self, k, server, owner, answer):
        self.child.print(mcp(k, server, CALL))
        m = owner.wait(type="control_request", request__subtype="mcp_message")
        self.assertEqual(m["request.server_name"], server)
        self.assertEqual(m["request.message"], CALL)
        body = {"mcp_response": {"jsonrpc": "2.0", "id": 1, "result": answer}}
        owner.send(ok(m["request_id"], body))
        self.assertEqual(self.child.answer(k)["response.response"], body)

    def is_rpc_error(self, answer, rid=1):
        body = answer["response.response.mcp_response"]
        self.assertEqual(answer["response.subtype"], "success", answer)
        self.assertEqual((body["jsonrpc"], body["id"]), ("2.0", rid))
        self.assertIsInstance(body["error"]["code"], int)
        self.assertTrue(body["error"]["message"])


class OwnerTest(Mcp):
    def test_calls_go_to_the_owner(self):
        self.announce(self.a, "tools")
        self.announce(self.b, "ide")
        self.named(self.child, "tools", "ide")
        self.call("k-1", "tools", self.a, {"who": "a"})
        self.call("k-2", "ide", self.b, {"who": "b"})
        self.call("k-3", "tools", self.a, {"who": "a"})
        self.child.mark(self.a, self.b)
        self.assertEqual(len(self.a.seen(type="control_request")), 2)
        self.assertEqual(len(self.b.seen(type="control_request")), 1)

    def test_a_taken_name(self):
        self.announce(self.a, "tools")
        m = self.b.initialize(sdkMcpServers=["tools"])
        self.assertEqual(m["response.code"], "name_taken")
        self.assertIn("tools", m["response.error"])
        self.call("k-1", "tools", self.a, {"who": "a"})
        self.child.mark(self.b)
        self.assertNone(self.b.seen(type="control_request"))
        self.announce(self.b, "tools2")
        self.call("k-2", "tools2", self.b, {})
        self.b.close()
        self.a.event("detached")
        self.call("k-3", "tools", self.a, {"still": "here"})

    def test_a_taken_name_by_mcp_set_servers(self):
        self.announce(self.a, "tools")
        e = self.assertRefused("name_taken", self.b.request, "mcp_set_servers", servers={"tools": {"type": "sdk", "name": "tools"}})
        self.assertIn("tools", e.text)
        self.call("k-1", "tools", self.a, {})

    def test_a_taken_name_at_the_attach(self):
        self.announce(self.a, "tools")
        c, d = self.d.client(), self.d.client()
        e = self.assertRefused("name_taken", c.attach, "s", mcp_servers=["free", "tools"])
        self.assertIn("tools", e.text)
        d.attach("s", mcp_servers=["free"])
        d.close()
        self.b.event("detached")
        c.attach("s", mcp_servers=["free"])  # its owner's client name cannot return

    def test_an_unknown_server(self):
        self.announce(self.a, "tools")
        self.child.print(mcp("k-1", "nonsense", CALL))
        answer = self.child.answer("k-1")
        if answer["response.subtype"] == "success":
            self.is_rpc_error(answer)
        self.child.mark(self.a, self.b)
        self.assertNone(self.a.seen(type="control_request") + self.b.seen(type="control_request"))

    def test_bytes(self):
        self.announce(self.a, "tools")
        self.named(self.child, "tools")
        self.child.print(b'{"type":"control_request","request_id":"k-1","request":{"subtype":"mcp_message","server_name":"tools",'
                         b'"message":{"jsonrpc":"2.0","id":12345678901234567890,"x":1e400,"request_id":"k-1"}}}\n')
        m = self.a.wait(type="control_request")
        self.assertIn(b'"id":12345678901234567890,"x":1e400,"request_id":"k-1"', m.raw)
        self.a.send(b'{"type":"control_response","response":{"subtype":"success","request_id":"' + m["request_id"].encode()
                    + b'","response":{"mcp_response":{"jsonrpc":"2.0","id":12345678901234567890,"result":{"z":1.0}}}}}')
        self.assertIn(b'{"mcp_response":{"jsonrpc":"2.0","id":12345678901234567890,"result":{"z":1.0}}}', self.child.answer("k-1").raw)

    def test_a_message_from_the_client(self):
        """mcp_message from a client to the child is an ordinary request."""
        self.announce(self.a, "tools")
        self.a.send(request("1", "mcp_message", server_name="tools", message={"jsonrpc": "2.0", "method": "notifications/x"}))
        got = self.child.request("mcp_message")
        self.child.reply(got)
        self.assertEqual(self.a.answer("1")["response.subtype"], "success")

    def test_the_acknowledgement_of_a_notification(self):
        """Whether a JSON-RPC reply is due depends on the `id` of the message: without one any answer is accepted."""
        self.announce(self.a, "tools")
        self.named(self.child, "tools")
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        for i, body in enumerate(({}, {"mcp_response": None}, None, {"mcp_response": {"jsonrpc": "2.0", "result": {}}})):
            self.child.print(mcp("k-%d" % i, "tools", note))
            self.a.send(ok(self.a.wait(type="control_request")["request_id"], body))
            self.assertEqual(self.child.answer("k-%d" % i)["response.response.mcp_response.result"], {})
        self.child.print(mcp("k", "tools", CALL))
        rid = self.a.wait(type="control_request")["request_id"]
        for body in ({}, {"mcp_response": None}):
            self.a.send(ok(rid, body))
            self.a.error("bad_answer")

    def test_a_client_that_answers_once(self):
        """It reads no complaint: the child gets an error at once, instead of no answer."""
        c = self.d.attached("s", quiet=True, name="sdk")
        self.announce(c, "tools")
        self.named(self.child, "tools")
        for i, body in enumerate((None, {}, {"mcp_response": None}, "x")):
            self.child.print(mcp("k-%d" % i, "tools", CALL))
            c.send(ok(c.wait(type="control_request")["request_id"], body))
            self.is_rpc_error(self.child.answer("k-%d" % i))

    def test_a_client_in_place_of_the_cli(self):
        """In a session of its own any answer is for the CLI."""
        c = self.d.attached("own", quiet=True, ephemeral=True, mcp_servers=["tools"])
        child = self.agent.child()
        for i, body in enumerate(({}, {"mcp_response": None}, "x")):
            child.print(mcp("k-%d" % i, "tools", CALL))
            c.send(ok(c.wait(type="control_request")["request_id"], body))
            self.assertEqual(child.answer("k-%d" % i)["response.response"], body)

    def test_after_the_childs_end(self):
        self.announce(self.a, "tools")
        self.announce(self.b, "ide")
        self.named(self.child, "tools", "ide")
        self.child.print({"type": "system", "subtype": "init", "session_id": "c-1"})
        self.a.wait(subtype="init")
        self.child.exit(0)
        self.a.event("child_exited")
        self.a.send({"type": "user", "uuid": "u", "message": {"role": "user", "content": "x"}})
        self.child = self.agent.child()
        self.child.wait(type="user", uuid="u")
        self.named(self.child, "tools", "ide")
        self.call("k-1", "ide", self.b, {})


class GoneTest(Mcp):
    def test_in_flight(self):
        self.announce(self.a, "tools")
        self.named(self.child, "tools")
        self.child.print(mcp("k-1", "tools", CALL))
        self.a.wait(type="control_request")
        self.a.close()
        answer = self.child.answer("k-1")
        self.is_rpc_error(answer)
        self.b.event("owner_gone")

    def test_later_calls(self):
        self.announce(self.a, "tools")
        self.named(self.child, "tools")
        self.a.close()
        self.b.event("owner_gone")
        self.child.print(mcp("k-1", "tools", dict(CALL, id="text id")))
        answer = self.child.answer("k-1")
        self.is_rpc_error(answer, "text id")
        self.child.print(mcp("k-2", "tools", {"jsonrpc": "2.0", "method": "notifications/cancelled"}))
        self.child.answer("k-2")

    def test_the_owner_comes_back(self):
        self.announce(self.a, "tools")
        self.named(self.child, "tools")
        self.a.close()
        self.b.event("owner_gone")
        again = self.d.attached(name="a")
        self.announce(again, "tools")
        self.call("k-1", "tools", again, {"back": True})

    def test_a_call_in_flight_is_not_given_to_another(self):
        self.announce(self.a, "tools")
        self.announce(self.b, "ide")
        self.named(self.child, "tools", "ide")
        self.child.print(mcp("k-1", "tools", CALL))
        self.a.wait(type="control_request")
        self.a.close()
        self.is_rpc_error(self.child.answer("k-1"))
        self.child.mark(self.b)
        self.assertNone(self.b.seen(type="control_request"))

    def test_a_late_answer(self):
        self.announce(self.a, "tools")
        self.named(self.child, "tools")
        self.child.print(mcp("k-1", "tools", CALL))
        rid = self.a.wait(type="control_request")["request_id"]
        self.child.print({"type": "control_cancel_request", "request_id": "k-1"})
        self.a.wait(type="control_cancel_request", request_id=rid)
        self.a.send(ok(rid, {"mcp_response": {}}))
        self.a.error("already_settled")
        self.assertNone(self.child.answers("k-1"))


class AwayTest(Mcp):
    """The servers and hooks of an absent owner stay its own."""

    def setUp(self):
        Case.setUp(self)

    def leave(self, grace="10min", hooks=None, name="a", **daemon):
        """Client `a` registers the server `tools`, and hooks, and leaves."""
        self.d, self.agent = self.start(daemon=daemon, mode={"control": ["mcp_set_servers"]}, profile={"owner_grace": grace})
        self.a, self.b = self.d.attached(name=name), self.d.attached(name="b")
        self.child = self.agent.child()
        m = self.a.initialize(hooks, sdkMcpServers=["tools"])
        self.assertEqual(m["response.subtype"], "success", m)
        self.named(self.child, "tools")
        self.hooks = self.child.seen(request__subtype="initialize")[-1]["request.hooks"]
        self.a.close()
        self.b.event("owner_gone")

    GUARD = {"PreToolUse": [{"hookCallbackIds": ["h"]}], "PostToolUse": [{"hookCallbackIds": ["h"]}]}

    def callback(self, event):
        return self.hooks[event][0]["hookCallbackIds"][0]

    def nobody_has_it(self, *others):
        """A call gets an error at once, a guarded tool is refused, and no other client is called."""
        self.child.print(mcp("k-1", "tools", CALL))
        self.is_rpc_error(self.child.answer("k-1"))
        if self.hooks:
            self.child.print(hook("k-2", self.callback("PreToolUse")), hook("k-3", self.callback("PostToolUse"), "PostToolUse"))
            self.assertIn(b"deny", self.child.answer("k-2").raw)
            self.assertEqual(self.child.answer("k-3")["response.response"], {})
        for c in others:
            self.child.mark(c)
            self.assertNone(c.seen(type="control_request"))

    def owner_has_it_again(self):
        again = self.d.attached("s", name="a")
        self.b.event("owner_back")
        self.call("k-8", "tools", again, {"who": "a"})
        if self.hooks:
            for k, event in (("k-9", "PreToolUse"), ("k-10", "PostToolUse")):
                self.child.print(hook(k, self.callback(event), event))
                m = again.wait(type="control_request", request__subtype="hook_callback")
                again.send(ok(m["request_id"], {"who": "a"}))
                self.assertEqual(self.child.answer(k)["response.response"], {"who": "a"})
        return again

    def test_not_an_observers(self):
        """Not even by its attach, with any name."""
        self.leave(hooks=self.GUARD)
        o = self.d.client()
        for name in ("a", "other"):
            self.assertRefused("not_allowed", o.attach, "s", role="observer", mcp_servers=["tools"], name=name)
            self.assertRefused("not_allowed", o.attach, "s", role="observer", mcp_servers=["free"], name=name)
        o.attach("s", role="observer", name="a")
        self.nobody_has_it(o)
        self.owner_has_it_again()

    def test_not_an_agents_process(self):
        self.leave(hooks=self.GUARD)
        c = self.d.client(env={"PLENUM_CHILD": "s"})
        self.assertRefused("not_allowed", c.attach, "s", name="a", mcp_servers=["tools"])
        c.attach("s", name="a")
        self.assertNone(self.b.events("owner_back"))
        self.assertIn(c.initialize(sdkMcpServers=["tools"])["response.code"], ("not_allowed", "name_taken"))
        c.initialize({})
        self.assertIn(c.answer(c.ask("mcp_set_servers", servers={"tools": {"type": "sdk", "name": "tools"}}))["response.code"],
                      ("not_allowed", "name_taken"))
        self.nobody_has_it(c)
        self.owner_has_it_again()

    @unittest.skipUnless(os.getuid() == 0, "needs root, to connect as another user")
    def test_not_another_users(self):
        self.leave(hooks=self.GUARD, allow_uids="12345")
        self.d.open_to_all()
        c = self.d.client(uid=12345, gid=12345)
        self.assertRefused("not_allowed", c.attach, "s", name="a", mcp_servers=["tools"])
        c.attach("s", name="a")
        self.assertNone(self.b.events("owner_back"))
        self.assertIn(c.initialize(sdkMcpServers=["tools"])["response.code"], ("not_allowed", "name_taken"))
        c.initialize({})
        self.nobody_has_it(c)
        self.owner_has_it_again()

    def test_not_another_clients(self):
        self.leave(hooks=self.GUARD)
        c = self.d.client()
        e = self.assertRefused("name_taken", c.attach, "s", name="c", mcp_servers=["tools"])
        self.assertIn("\"a\"", e.text)
        c.attach("s", name="c")
        self.assertEqual(c.initialize(sdkMcpServers=["tools"])["response.code"], "name_taken")
        self.assertRefused("name_taken", c.request, "mcp_set_servers", servers={"tools": {"type": "sdk", "name": "tools"}})
        self.nobody_has_it(c)
        self.owner_has_it_again()

    def test_until_the_grace_is_over(self):
        for hooks in (None, self.GUARD):
            with self.subTest(hooks):
                self.leave(grace="100ms", hooks=hooks)
                until(lambda: self.b.initialize(sdkMcpServers=["tools"])["response.subtype"] == "success", what="the name to be free")
                self.call("k-1", "tools", self.b, {"who": "b"})

    def test_the_owner_names_them_in_its_attach(self):
        """Like a program behind the shim: it has its guard again, too."""
        self.leave(hooks=self.GUARD)
        again = self.d.attached("s", name="a", mcp_servers=["tools"])
        self.b.event("owner_back")
        self.child.print(hook("k-1", self.callback("PreToolUse")))
        m = again.wait(type="control_request", request__subtype="hook_callback")
        again.send(ok(m["request_id"], {"who": "a"}))
        self.assertEqual(self.child.answer("k-1")["response.response"], {"who": "a"})
        self.call("k-2", "tools", again, {"who": "a"})

    def test_two_of_one_name(self):
        """Two present clients of a name cannot be distinguished: the one that returns has the registrations of both."""
        self.leave()
        two = [self.d.attached("s", name="x"), self.d.attached("s", name="x")]
        for n, c in enumerate(two):
            m = c.initialize({"PreToolUse": [{"matcher": "M%d" % n, "hookCallbackIds": ["h%d" % n]}]}, sdkMcpServers=["x%d" % n])
            self.assertEqual(m["response.subtype"], "success", m)
        self.assertEqual(two[1].initialize(sdkMcpServers=["x0"])["response.code"], "name_taken")
        self.named(self.child, "tools", "x0", "x1")
        for c in two:
            c.close()
            self.b.event("owner_gone")
        back = self.d.attached("s", name="x")
        self.b.event("owner_back")
        self.call("k-1", "x0", back, {})
        self.call("k-2", "x1", back, {})
        hooks = until(lambda: self.child.seen(request__subtype="initialize")[-1]["request.hooks"], what="the hooks")
        for n, e in enumerate(hooks["PreToolUse"]):
            self.child.print(hook("k-h%d" % n, e["hookCallbackIds"][0]))
            m = back.wait(type="control_request", request__subtype="hook_callback", request__callback_id="h%d" % n)
            back.send(ok(m["request_id"], {"n": n}))
            self.assertEqual(self.child.answer("k-h%d" % n)["response.response"], {"n": n})
        m = back.initialize({"PreToolUse": [{"matcher": "New", "hookCallbackIds": ["h"]}]})
        self.assertEqual(m["response.subtype"], "success", m)
        until(lambda: [e["matcher"] for e in self.child.seen(request__subtype="initialize")[-1]["request.hooks"]["PreToolUse"]] == ["New"],
              what="the guards of both to be replaced")

    def test_a_role_or_a_name_taken_later(self):
        self.leave(hooks=self.GUARD)
        c = self.d.attached("s", name="a", role="observer")
        self.assertNone(self.b.events("owner_back"))
        c.request("plenum_register", role="driver")
        self.b.event("owner_back")
        self.call("k-1", "tools", c, {"who": "a"})
        c.request("plenum_register", role="observer")
        self.b.event("owner_gone")
        self.nobody_has_it()
        e = self.d.attached("s", name="e")
        e.request("plenum_register", name="a")
        self.b.event("owner_back")
        self.call("k-5", "tools", e, {"who": "a"})

    def test_a_silent_claimant(self):
        """It returned only by its name: a call waits no longer for it than for an absent owner."""
        self.leave(grace="1s")
        again = self.d.attached("s", name="a")
        self.b.event("owner_back")
        self.child.print(mcp("k-1", "tools", CALL))
        again.wait(request__subtype="mcp_message")
        self.is_rpc_error(self.child.answer("k-1"))
        self.announce(again, "tools")  # now it is confirmed: a tool may be slow
        self.child.print(mcp("k-2", "tools", CALL))
        m = again.wait(request__subtype="mcp_message")
        self.assertRefused("timeout", self.b.request, "mcp_status", plenum_timeout_ms=1500)
        self.assertNone(self.child.answers("k-2"))
        again.send(ok(m["request_id"], {"mcp_response": {"jsonrpc": "2.0", "id": 1, "result": {}}}))
        self.child.answer("k-2")


class SetServersTest(Mcp):
    SDK = {"type": "sdk", "name": "b"}

    def test_merged(self):
        self.announce(self.a, "tools")
        self.named(self.child, "tools")
        self.b.request("mcp_set_servers", servers={"b": self.SDK, "web": {"type": "http", "url": "http://127.0.0.1:1"}})
        got = self.child.request("mcp_set_servers")
        self.assertEqual(sorted(got["request.servers"]), ["b", "tools", "web"])
        self.assertEqual(got["request.servers.web"], {"type": "http", "url": "http://127.0.0.1:1"})
        self.assertEqual(got["request.servers.tools.type"], "sdk")
        self.call("k-1", "tools", self.a, {})
        self.call("k-2", "b", self.b, {})

    def test_ones_own_can_be_dropped(self):
        self.announce(self.a, "tools")
        self.b.request("mcp_set_servers", servers={"b": self.SDK})
        self.child.request("mcp_set_servers")
        self.b.request("mcp_set_servers", servers={})
        self.assertEqual(list(self.child.request("mcp_set_servers")["request.servers"]), ["tools"])
        self.child.print(mcp("k-1", "b", CALL))
        self.child.answer("k-1")
        self.assertNone(self.b.seen(type="control_request"))
        self.call("k-2", "tools", self.a, {})

    def test_the_answer_is_the_childs(self):
        self.child.mode(control=[])
        self.child.written()
        self.a.send(request("1", "mcp_set_servers", servers={"x": {"type": "http", "url": "http://127.0.0.1:1"}}))
        got = self.child.request("mcp_set_servers")
        self.child.reply(got, {"added": ["x"], "removed": [], "errors": {"x": "refused"}})
        self.assertEqual(self.a.answer("1")["response.response"], {"added": ["x"], "removed": [], "errors": {"x": "refused"}})

    def test_the_name_is_free_when_dropped(self):
        self.a.request("mcp_set_servers", servers={"b": self.SDK})
        self.assertRefused("name_taken", self.b.request, "mcp_set_servers", servers={"b": self.SDK})
        self.a.request("mcp_set_servers", servers={})
        self.b.request("mcp_set_servers", servers={"b": self.SDK})
        self.call("k-1", "b", self.b, {})

    def test_hooks_and_servers_of_one_client(self):
        m = self.a.initialize({"PreToolUse": [{"hookCallbackIds": ["h"]}]}, sdkMcpServers=["tools"])
        self.assertEqual(m["response.subtype"], "success")
        self.named(self.child, "tools")
        self.call("k-1", "tools", self.a, {})
        self.b.send(init("i", {"Stop": [{"hookCallbackIds": ["h"]}]}, sdkMcpServers=["tools"]))
        self.assertEqual(self.b.answer("i")["response.code"], "name_taken")
        self.child.mark(self.a)
        last = self.child.seen(request__subtype="initialize")[-1]
        self.assertNotIn("Stop", last["request.hooks"], "a refused registration is half in force")


class CancelledTest(Case):
    def test_call_cancelled_by_the_child_is_closed(self):
        """The call does not stay open, and does not keep the session awake."""
        d, _, child, a = self.open()
        a.initialize(None, sdkMcpServers=["x"])
        call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t"}}
        gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5, "reason": "timeout"}}
        child.print(mcp("k-1", "x", call), mcp("k-2", "x", dict(call, id=6)), mcp("k-3", "x", gone))
        first = a.wait(type="control_request", request__message__id=5)
        note = a.wait(type="control_request", request__message__method="notifications/cancelled")
        a.send(ok(note["request_id"], {"mcp_response": {"jsonrpc": "2.0", "id": 0, "result": {}}}))
        child.answer("k-3")
        self.assertEqual(d.call("plenum_status", session="s")["pending"], 1)
        a.send(ok(first["request_id"], {"mcp_response": {"jsonrpc": "2.0", "id": 5, "result": {}}}))
        a.error("already_settled")
        self.assertNone(child.answers("k-1"))

    def test_only_the_call_of_its_server_is_closed(self):
        """Also over an upgrade: the requests of before are still known by their server and id."""
        d, _, child, a = self.open()
        a.initialize(None, sdkMcpServers=["x", "y"])
        call = {"jsonrpc": "2.0", "params": {"name": "t"}, "method": "tools/call", "id": 5}
        gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
        child.print(mcp("k-1", "x", call), mcp("k-2", "y", call))
        x, y = (a.wait(type="control_request", request__server_name=name)["request_id"] for name in "xy")
        d.call("plenum_upgrade")
        child.print(mcp("k-3", "y", gone))
        a.wait(type="control_request", request__message__method="notifications/cancelled")
        for rid in (y, x):
            a.send(ok(rid, {"mcp_response": {"jsonrpc": "2.0", "id": 5, "result": {}}}))
        self.assertEqual(a.error("already_settled")["request_id"], y)
        child.answer("k-1")
        self.assertNone(child.answers("k-2"))

    def test_server_name_with_escapes(self):
        _, _, child, a, b = self.open(2, mode={"control": True})
        a.initialize(None, sdkMcpServers=["x"])
        b.raw(b'{"type":"control_request","request_id":"1","request":{"subtype":"initialize","sdkMcpServers":["\\u0078"]}}\n')
        self.assertEqual(b.answer("1")["response.code"], "name_taken")
        b.raw(b'{"type":"control_request","request_id":"2","request":{"subtype":"mcp_set_servers","servers":'
              b'{"\\u0078":{"type":"stdio","command":"evil"}}}}\n')
        self.assertEqual(b.answer("2")["response.code"], "name_taken")
        child.mark(a)


if __name__ == "__main__":
    unittest.main()
