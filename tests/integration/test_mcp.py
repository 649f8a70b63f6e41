# SPDX-License-Identifier: MIT
"""MCP servers that live in clients (DESIGN 6; CASES C43)."""
import unittest

from harness import Case, init, mcp, ok, request, until

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"n": 1}}}


class Mcp(Case):
    def setUp(self):
        super().setUp()
        # no call of a server that is gone waits for its owner: it would wait for longer than the test
        self.d, self.agent = self.start(mode={"control": ["mcp_set_servers"]}, profile={"owner_grace": "10min"})
        self.a, self.b = self.d.attached(name="a"), self.d.attached(name="b")
        self.child = self.agent.child()

    def announce(self, client, *names):
        m = client.initialize(sdkMcpServers=list(names))
        self.assertEqual(m["response.subtype"], "success", m)

    def named(self, child, *names):
        """Waits until the child was told of all these, by one way or the other."""

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
        self.a.close()
        self.b.event("detached")
        c.attach("s", mcp_servers=["tools"])

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


if __name__ == "__main__":
    unittest.main()
