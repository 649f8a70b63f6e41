# SPDX-License-Identifier: MIT
"""The client's edge of JSON-RPC: which dialect a connection speaks, the daemon's verbs, errors, ids, notices. The child of
a JSON-RPC session is played by the test, with no more of ACP than is needed."""
import signal

from harness import Case, CodexClient, PlenumError, RpcClient, RpcError, dump, user

V = {"jsonrpc": "2.0"}
FRAMES = ((RpcClient, "acp"), (CodexClient, "codex"))


def handshake(child, conversation="conv-1"):
    """The start of an ACP child."""
    child.print(dict(V, id=child.wait(method="initialize")["id"], result={"protocolVersion": 1, "agentCapabilities": {}}))
    child.print(dict(V, id=child.wait(method="session/new")["id"], result={"sessionId": conversation}))


def update(text, conversation="conv-1"):
    return dict(V, method="session/update", params={
        "sessionId": conversation,
        "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}})


class Rpc(Case):
    def daemon(self, **options):
        """A daemon with the profiles `agent`, which is the default one, and `acp`."""
        return self.start(("agent", "acp"), mode={"init": "manual"}, dialects={"acp": "acp"}, **options)


class FirstLine(Case):
    """The first line shows the dialect of a connection."""

    def setUp(self):
        super().setUp()
        self.d = self.start(())[0]

    def test_a_request_with_the_member_jsonrpc_and_one_without(self):
        for kind, _ in FRAMES:
            c = self.d.client(kind=kind)
            self.assertEqual(c.verb("list"), {"sessions": []})
            raw = c.log[-1].raw
            self.assertEqual(raw.startswith(b'{"jsonrpc":"2.0",'), kind is RpcClient, raw)

    def test_initialize_decides_before_the_member_jsonrpc(self):
        codex = self.d.client(kind=RpcClient)
        codex.send(dict(V, id=1, method="initialize", params={"clientInfo": {"name": "x"}}))
        self.assertNotIn(b"jsonrpc", codex.answer(1).raw)
        acp = self.d.client(kind=CodexClient)
        acp.send({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
        self.assertIn('"jsonrpc":"2.0"', acp.answer(1)["error.message"])

    def test_a_line_that_shows_none_decides_nothing(self):
        c = self.d.client(kind=RpcClient)
        c.send(b"hello", b" ", b"")
        self.assertEqual(c.wait(type="system")["code"], "bad_line")
        self.assertEqual(c.verb("list"), {"sessions": []})

    def test_a_broken_line_shows_it_too(self):
        c = self.d.client(kind=RpcClient)
        c.send(b'{"jsonrpc":"2.0","id":4,"method":"_plenum/list",}')
        self.assertEqual(c.wait(error__code=-32700)["id"], None)
        c.sync()

    def test_a_line_that_is_too_long_shows_it_too(self):
        d = self.start((), limits={"client_line": "64K"})[0]
        c = d.client(kind=RpcClient)
        c.send(b'{"jsonrpc":"2.0","id":"long","method":"x","params":{"a":"' + b"x" * 100000 + b'"}}')
        m = c.answer("long")
        self.assertEqual((m["error.code"], m["error.data.code"]), (-32000, "too_long"))
        c.send(b'{"jsonrpc":"2.0","method":"x","params":{"a":"' + b"x" * 100000 + b'"},"id":7}')
        m = c.wait(error__data__code="too_long")
        self.assertEqual((m["id"], m["error.data.line"]), (None, 2))
        self.assertGreater(m["error.data.size"], 100000)

    def test_lines_of_another_dialect_are_refused_by_both_names(self):
        for kind, name in FRAMES:
            c = self.d.client(kind=kind)
            c.sync()
            c.send(user("hi"))
            m = c.wait(error__code=-32600)
            self.assertEqual(m["id"], None)
            self.assertIn("of the dialect claude", m["error.message"])
            self.assertIn("speaks " + name, m["error.message"])
        for head, name in ((V, "acp"), ({}, "codex")):
            c = self.d.client()
            c.sync()
            c.send(dict(head, id=1, method="_plenum/list"))
            self.assertIn("of the dialect %s, and a connection without a session speaks claude" % name,
                          c.error("bad_line")["error"])

    def test_a_long_line_shows_it_too(self):
        """By its beginning, of either frame."""
        pad = "x" * 100000
        c = self.d.client(kind=RpcClient)
        c.sync()
        c.send(dict(user("hi"), pad=pad))
        self.assertIn("of the dialect claude", c.wait(error__code=-32600)["error.message"])
        c = self.d.client()
        c.send({"type": "user", "pad": pad})
        c.error("bad_line")
        c.send(dict(V, id=1, method="_plenum/list"))
        self.assertIn("of the dialect acp, and a connection without a session speaks claude", c.error("bad_line")["error"])


class Verbs(Rpc):
    def test_every_verb_is_a_method(self):
        """A member that no verb has is refused by the verb."""
        d, _, _ = self.daemon()
        c = d.client(kind=RpcClient)
        verbs = [name for name in c.hello()["capabilities"] if name.startswith("plenum_") and "." not in name]
        self.assertGreater(len(verbs), 15)
        for name in verbs:
            with self.assertRaises(RpcError) as e:
                c.verb(name[len("plenum_"):], odd=1)
            self.assertEqual(e.exception.code, "bad_request", name)
            self.assertIn("odd", str(e.exception), name)

    def test_answers_and_errors_in_both_frames(self):
        d, agent, _ = self.daemon()
        d.attached("work")
        agent.child()
        for kind, _ in FRAMES:
            c = d.client(kind=kind)
            self.assertEqual([s["session"] for s in c.verb("list")["sessions"]], ["work"])
            self.assertEqual(c.verb("status", session="work")["session"], "work")
            self.assertEqual(c.verb("pending"), d.call("plenum_pending"))
            self.assertIn("attach", c.hello()["capabilities"])
            for name, params, number, code in (("status", {"session": "no"}, -32000, "no_such_session"),
                                               ("status", {"odd": 1}, -32602, "bad_request"),
                                               ("attach", {"session": 7}, -32602, "bad_request"),
                                               ("odd", {}, -32601, "unknown_method"),
                                               ("Odd/list", {}, -32601, "unknown_method"),
                                               ("detach", {}, -32000, "not_attached")):
                with self.assertRaises(RpcError) as e:
                    c.verb(name, **params)
                self.assertEqual((e.exception.number, e.exception.code), (number, code), e.exception)

    def test_a_verb_needs_no_params_and_has_an_id(self):
        d, _, _ = self.daemon()
        c = d.client(kind=RpcClient)
        c.send(dict(V, id=1, method="_plenum/list"))
        self.assertEqual(c.answer(1)["result"], {"sessions": []})
        c.notify("_plenum/list")
        self.assertIn("needs an `id`", c.wait(error__code=-32600)["error.message"])

    def test_a_session_can_be_stopped_from_any_frame(self):
        d, agent, _ = self.daemon()
        d.attached("work")
        child = agent.child()
        c = d.client(kind=CodexClient)
        self.assertTrue(c.verb("stop", session="work", how="kill")["stopping"])
        child.wait_gone()

    def test_an_upgrade_answers_in_the_frame_of_its_client(self):
        d, _, _ = self.daemon()
        clients = [d.client(kind=kind) for kind, _ in FRAMES]
        for c in clients:
            c.verb("subscribe")
        self.assertTrue(clients[0].verb("upgrade")["upgraded"])
        for c in clients:
            c.verb("list")
            self.assertEqual(c.log[-1].raw.startswith(b'{"jsonrpc"'), c is clients[0])


class Errors(Rpc):
    def setUp(self):
        super().setUp()
        self.d, _, _ = self.daemon()

    def refused(self, c, line, number, rid=None):
        c.send(line)
        m = c.wait(lambda m: "error" in (m.obj or {}))
        self.assertEqual((m["error.code"], m.obj["id"]), (number, rid), (line, m))
        return m

    def test_lines_that_are_no_json(self):
        for kind, _ in FRAMES:
            c = self.d.client(kind=kind)
            c.sync()
            head = dump(c.head)[:-1] + (b"," if c.head else b"")
            self.refused(c, b"nonsense", -32700)
            self.refused(c, head + b'"id":1,"method":"x"', -32700)
            self.refused(c, head + b'"id":1,"method":"x","params":{"a":"\xff"}}', -32700, 1)
            self.refused(c, head + b'"id":"a\xff","method":"x"}', -32700)
            self.assertEqual(self.refused(c, b"{", -32700)["error.data.line"], 6)
            c.sync()

    def test_lines_that_are_no_request(self):
        for kind, _ in FRAMES:
            c = self.d.client(kind=kind)
            c.sync()
            one = dump(dict(c.head, id=1, method="_plenum/list"))
            self.refused(c, b"[" + one + b"]", -32600)
            self.refused(c, b"[]", -32600)
            self.refused(c, b"5", -32600)
            for rid in (b"null", b"1.5", b"1e2", b"9223372036854775808", b"12345678901234567890", b"true", b"[1]"):
                self.refused(c, one.replace(b'"id":1', b'"id":' + rid), -32600)
            self.refused(c, one.replace(b'"_plenum/list"', b"7"), -32600, 1)
            self.refused(c, one.replace(b"_plenum/list", b"a\\u0062"), -32600, 1)
            self.refused(c, one.replace(b"}", b',"params":[]}'), -32602, 1)
            self.refused(c, one.replace(b"}", b',"id":2}'), -32600, 2)
            self.refused(c, one.replace(b'"method"', b'"m\\u0065thod"'), -32600)
            self.refused(c, dict(c.head, id=1), -32600)
            self.refused(c, dict(c.head, id=1, result={}, error={"code": 1, "message": "x"}), -32600)
            self.refused(c, dict(c.head, result={}), -32600)
            c.sync()

    def test_the_member_jsonrpc_is_required_where_the_protocol_has_it(self):
        c = self.d.client(kind=RpcClient)
        c.sync()
        self.refused(c, {"id": 1, "method": "_plenum/list"}, -32600, 1)
        self.refused(c, {"jsonrpc": "1.0", "id": "q", "method": "_plenum/list"}, -32600, "q")
        codex = self.d.client(kind=CodexClient)
        codex.sync()
        codex.send(dict(V, id=1, method="_plenum/list"))  # allowed there, and not given back
        self.assertNotIn("jsonrpc", codex.answer(1).obj)

    def test_a_long_line_is_checked_in_pieces(self):
        """Whatever stands last: an id, a broken byte."""
        c, other = self.d.client(kind=RpcClient), self.d.client(kind=RpcClient)
        other.sync()
        filler = b'{"jsonrpc":"2.0","method":"_plenum/list","params":{"a":"' + b"x" * (8 << 20)
        c.send(filler + b'"},"id":"last"}')
        other.sync()
        m = c.answer("last")
        self.assertEqual(m["error.data.code"], "too_long")  # a verb may have less
        self.refused(c, filler + b'\xff"},"id":"last"}', -32700, "last")
        c.sync()


class Ids(Rpc):
    def test_each_comes_back_byte_for_byte(self):
        d, _, _ = self.daemon()
        ids = (b"0", b'"0"', b"-0", b"9223372036854775807", b"-9223372036854775808", b'""', '"é \\u00e9 \\/"'.encode(),
               b'"\\ud800"', b'"' + b"x" * 5000 + b'"')
        for kind, _ in FRAMES:
            c = d.client(kind=kind)
            head = dump(c.head)[:-1] + (b"," if c.head else b"")
            for rid in ids:
                for method, word in ((b"_plenum/list", b',"result":'), (b"_plenum/stop", b',"error":')):
                    c.send(head + b'"method":"' + method + b'","id" : ' + rid + b"}")
                    m = c.wait(lambda m: True)
                    self.assertTrue(m.raw.startswith(head + b'"id":' + rid + word), m.raw[:200])

    def test_a_request_of_the_child_is_answered_under_its_own_id(self):
        """0 and "0" are two requests."""
        d, _, acp = self.daemon()
        c = d.client(kind=RpcClient)
        c.attach("work", profile="acp")
        child = acp.child()
        handshake(child)
        asked = {}
        for rid in (0, "0"):
            child.print(dict(V, id=rid, method="session/request_permission", params={
                "sessionId": "conv-1", "toolCall": {"toolCallId": repr(rid), "title": "t", "kind": "execute"},
                "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]}))
            asked[rid] = c.wait(method="session/request_permission")["id"]
        self.assertNotEqual(asked[0], asked["0"])
        for rid in ("0", 0):
            c.send(dict(V, id=asked[rid], result={"outcome": {"outcome": "selected", "optionId": "yes"}}))
            got = child.wait(lambda m: "result" in (m.obj or {}))
            self.assertEqual(repr(got["id"]), repr(rid))

    def test_two_requests_under_one_id(self):
        d, _, acp = self.daemon()
        c = d.client(kind=RpcClient)
        c.attach("work", profile="acp")
        child = acp.child()
        handshake(child)
        prompt = dict(V, id=5, method="session/prompt", params={"prompt": [{"type": "text", "text": "hi"}]})
        c.send(prompt, prompt)
        self.assertEqual(c.answer(5)["error.data.code"], "duplicate_request")
        c.send(dict(V, id=5, method="_plenum/list"))
        m = c.answer(5)
        self.assertEqual((m["error.code"], m["error.data.code"]), (-32000, "duplicate_request"))
        sent = child.wait(method="session/prompt")
        child.print(dict(V, id=sent["id"], result={"stopReason": "end_turn"}))
        self.assertEqual(c.answer(5)["result"], {"stopReason": "end_turn"})


class Notices(Rpc):
    def test_subscribers_of_each_frame_see_the_same(self):
        d, agent, acp = self.daemon()
        plain, rpc, bare = d.client(), d.client(kind=RpcClient), d.client(kind=CodexClient)
        plain.request("plenum_subscribe")
        rpc.verb("subscribe")
        bare.verb("subscribe")
        d.attached("claude-one")
        agent.child()
        c = d.client(kind=RpcClient)
        c.attach("acp-one", profile="acp")
        handshake(acp.child())
        for session in ("claude-one", "acp-one"):
            want = plain.event("session_created", session=session).obj
            members = {k: v for k, v in want.items() if k not in ("type", "subtype")}
            for client in (rpc, bare):
                got = client.event("session_created", session=session)
                self.assertEqual(got.obj, dict(client.head, method="_plenum/event", params=members))
            for client in (plain, rpc, bare):
                client.event("session_state", session=session, state="idle")

    def test_notices_on_the_tape_have_the_frame_of_the_session(self):
        d, _, acp = self.daemon()
        c = d.client(kind=RpcClient)
        c.attach("work", profile="acp", tag=True)
        child = acp.child()
        handshake(child)
        child.print(b"this is no JSON\n", update("one"))
        stray = c.event("stray_output", session="work", text="this is no JSON")
        self.assertIsInstance(stray["plenum_seq"], int)
        self.assertEqual(c.wait(method="session/update")["plenum_seq"], stray["plenum_seq"] + 1)
        late = d.client(kind=RpcClient)
        late.attach("work", replay="all")
        late.event("stray_output", text="this is no JSON")
        late.wait(method="session/update")
        self.assertEqual(c.event("attached")["params.session"], "work")
        quiet = d.client(kind=RpcClient)
        quiet.attach("work", replay="all", quiet=True)
        quiet.wait(method="session/update")
        self.assertEqual(quiet.events(), [])

    def test_a_child_cannot_forge_one(self):
        d, _, acp = self.daemon()
        c = d.client(kind=RpcClient)
        c.attach("work", profile="acp")
        child = acp.child()
        handshake(child)
        child.print(dict(V, method="_plenum/event", params={"event": "settled", "sessionId": "conv-1"}),
                    dict(V, plenum_seq=7, method="session/update", params={"sessionId": "conv-1"}))
        self.assertEqual(c.wait(method="child__plenum/event")["params.event"], "settled")
        self.assertEqual(c.wait(method="session/update")["child_plenum_seq"], 7)
        c.ask("session/set_mode", modeId="x")
        sent = child.wait(method="session/set_mode")
        child.print(dict(V, id=sent["id"], error={"code": -1, "message": "m", "data": {"code": "busy", "errno": "EBUSY"}}))
        self.assertEqual(c.wait(lambda m: "error" in m.obj)["error.data"], {"child_code": "busy", "errno": "EBUSY"})

    def test_a_child_cannot_hide_a_request_or_an_answer(self):
        """Clients would take it as one, under the child's own id."""
        d, _, acp = self.daemon()
        c = d.client(kind=RpcClient)
        c.attach("work", profile="acp")
        child = acp.child()
        handshake(child)
        for line in (b'{"jsonrpc":"2.0","i\\u0064":1,"method":"session/request_permission","params":{}}\n',
                     b'{"jsonrpc":"2.0","id":1,"r\\u0065sult":{}}\n'):
            child.print(line, update("after"))
            self.assertEqual(c.event("stray_output")["params.text"].encode(), line.rstrip())
            c.wait(method="session/update")
        self.assertEqual(c.seen(lambda m: b"u0064" in m.raw and "stray_output" not in m.raw.decode()), [])

    def test_types_are_names_of_methods(self):
        d, _, acp = self.daemon()
        c = d.client(kind=RpcClient)
        c.attach("work", profile="acp")
        child = acp.child()
        handshake(child)
        some = d.client(kind=RpcClient)
        some.attach("work", types=["_vendor/news"])
        child.print(dict(V, method="_vendor/other"), update("text"), dict(V, method="_vendor/news"))
        for client in (c, some):
            client.wait(method="_vendor/news")
        self.assertEqual([m["method"] for m in some.log if m["method"] and m["method"] != "_plenum/event"], ["_vendor/news"])

    def test_an_upgrade_keeps_the_frame(self):
        d, _, acp = self.daemon()
        c, subscriber = d.client(kind=RpcClient), d.client(kind=CodexClient)
        subscriber.verb("subscribe")
        c.attach("work", profile="acp")
        child = acp.child()
        handshake(child)
        c.event("session_state", state="idle")
        subscriber.event("session_state", state="idle")
        d.call("plenum_upgrade")
        child.print(b"stray\n", update("after"))
        c.event("stray_output", text="stray")
        c.wait(method="session/update")
        child.exit(3)
        c.event("child_exited", status=3)
        self.assertNotIn("jsonrpc", subscriber.event("child_exited", status=3).obj)
        c.verb("detach")
        c.verb("list")

    def test_the_end_of_the_daemon(self):
        d, _, acp = self.daemon()
        c = d.client(kind=RpcClient)
        c.attach("work", profile="acp")
        handshake(acp.child())
        bare = d.client(kind=CodexClient)
        bare.sync()
        d.process.send_signal(signal.SIGTERM)
        c.event("shutting_down")
        bare.event("shutting_down")
        d.ended()
        self.daemons.remove(d)
        self.addCleanup(d.destroy)


class OtherDialect(Rpc):
    """Nothing is translated: a client is refused by the names of both dialects."""

    def refused(self, call, *words):
        with self.assertRaises((RpcError, PlenumError)) as e:
            call()
        self.assertEqual(e.exception.code, "bad_request")
        for word in words:
            self.assertIn(word, e.exception.text)

    def test_attaching_to_a_session(self):
        d, agent, acp = self.daemon()
        d.attached("claude-one")
        agent.child()
        editor = d.client(kind=RpcClient)
        editor.attach("acp-one", profile="acp")
        handshake(acp.child())
        for kind, name in FRAMES:
            c = d.client(kind=kind)
            self.refused(lambda: c.attach("claude-one"), "session claude-one speaks claude", "this connection " + name)
        self.refused(lambda: d.client().attach("acp-one"), "session acp-one speaks acp", "this connection claude")
        self.refused(lambda: d.client(kind=CodexClient).attach("acp-one"), "acp-one speaks acp", "connection codex")

    def test_making_a_session(self):
        d, _, _ = self.daemon()
        c = d.client(kind=RpcClient)
        self.refused(lambda: c.attach("new", profile="agent"), "profile agent speaks claude", "this connection acp")
        self.refused(lambda: d.client().attach("new", profile="acp"), "profile acp speaks acp", "this connection claude")
        self.assertEqual(c.verb("list"), {"sessions": []})

    def test_a_prompt_to_a_session_without_attaching(self):
        d, agent, acp = self.daemon()
        editor = d.client(kind=RpcClient)
        editor.attach("acp-one", profile="acp")
        handshake(acp.child())
        c = d.client()
        c.send(user("hi", session_id="acp-one"))
        self.assertIn("session acp-one speaks acp, and this connection claude", c.error("bad_request")["error"])

    def test_after_it_has_left_its_session_a_client_keeps_its_frame(self):
        d, _, acp = self.daemon()
        c = d.client(kind=RpcClient)
        c.attach("work", profile="acp")
        handshake(acp.child())
        c.verb("detach")
        self.assertEqual([s["session"] for s in c.verb("list")["sessions"]], ["work"])
        c.attach("work")


if __name__ == "__main__":
    import unittest
    unittest.main()
