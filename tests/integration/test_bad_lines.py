# SPDX-License-Identifier: MIT
"""Lines that a client may not write, and the errors for them; none of them reaches the child (contract 4, 9.2; cases C24
C73 C76 C77). Also the old forms, which are converted to the form that the child takes."""
import unittest

from harness import Case, allow, dump, perm, user

ANY_BAD = ("bad_line", "bad_request")


class BadLineTest(Case):
    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a, self.b = self.d.attached(label="a"), self.d.attached(label="b")
        self.child = self.agent.child()
        self.a.sync()
        self.lines = 2  # attach and sync

    def bad(self, raw, code="bad_line", **want):
        """One bad line from a: a notice that counts the line; the connection and all others continue."""
        self.a.raw(raw + b"\n")
        self.lines += 1
        notice = self.a.error(code, **want)
        self.assertEqual(notice["line"], self.lines, raw[:100])
        self.assertTrue(notice["error"].strip())
        return notice

    def good(self):
        """The good lines of both work, and the child gets no others."""
        self.a.send(user("still alive?", uuid="ua"))
        self.b.send(user("me too", uuid="ub"))
        for uuid in ("ua", "ub"):
            self.child.wait(type="user", uuid=uuid)
        self.assertNone(self.child.seen(lambda m: m["uuid"] not in ("ua", "ub") and m["request.subtype"] != "initialize"))
        self.b.sync()
        self.assertNone(self.b.events("error"), "another client sees the mess")

    def test_no_json_object(self):
        for raw in (b"hello", b'{"type":"user","message":', b"[1,2,3]", b'"x"', b"42", b"null", b"true", b"{",
                    b'{"type":"user"}{"type":"user"}', b'{"type":"user",}', b"{'type':'user'}", b"{\"type\":\"user\" \"x\":1}",
                    b'{"type":"x","n":01}', b'{"type":"x","n":1.}', b'{"type":"x","n":+1}', b'{"type":"x","n":NaN}',
                    b'{"type":"x","s":"\t"}', b'{"type":"x","s":"\\x41"}', b'{"type":"x","s":"\\u12g4"}', b'{"type":"x"}x',
                    b'{"type":"x","s":"\x01"}', b'{"type":"x","a":[1,]}', b'{"type":"x","a":[1 2]}', b'{"type":"x","a":tru}',
                    b'{"type":"x" /* no */}'):
            self.bad(raw)
        self.good()

    def test_invalid_utf8(self):
        for raw in (b'\xff\xfe{"type":"user"}', b'{"type":"user","x":"\xc3"}', b'{"type":"x","s":"\xc0\xaf"}',
                    b'{"type":"x","s":"\xed\xa0\x80"}', b'{"type":"x","s":"\xf5\x80\x80\x80"}', b'{"type":"x","s":"\x80"}'):
            self.bad(raw)
        self.good()

    def test_no_type(self):
        self.assertIn("type", self.bad(b"{}")["error"])
        self.assertIn("type", self.bad(b'{"subtype":"interrupt"}')["error"])
        self.bad(b'{"type":5}')
        self.bad(b'{"type":null}')
        self.good()

    def test_users_that_would_kill_the_child(self):
        for raw in (b'{"type":"user"}', b'{"type":"user","message":{}}', b'{"type":"user","message":"x"}',
                    b'{"type":"user","message":null}', b'{"type":"user","message":{"role":"assistant","content":"x"}}',
                    b'{"type":"user","message":{"role":5,"content":"x"}}', b'{"type":"user","message":{"content":"x"}}',
                    b'{"type":"user","message":[]}'):
            self.bad(raw)
        self.good()

    def test_requests_without_request(self):
        self.a.raw(b'{"type":"control_request","request_id":"a-2"}\n')
        self.assertIn("request", self.refusal(self.a, "a-2", ANY_BAD)["error"])
        self.a.raw(b'{"type":"control_request","subtype":"interrupt","request_id":"a-3"}\n')
        self.refusal(self.a, "a-3", ANY_BAD)
        self.a.raw(b'{"type":"control_request","request_id":"a-4","request":"interrupt"}\n')
        self.refusal(self.a, "a-4", ANY_BAD)
        self.a.raw(b'{"type":"control_request","request_id":"a-5","request":{}}\n')
        self.assertIn("subtype", self.refusal(self.a, "a-5", ANY_BAD)["error"])
        self.a.raw(b'{"type":"control_request","request_id":"a-6","request":{"subtype":7}}\n')
        self.refusal(self.a, "a-6", ANY_BAD)
        self.good()

    def test_requests_without_an_id(self):
        self.a.raw(b'{"type":"control_request","request":{"subtype":"interrupt"}}\n')
        self.assertIn("request_id", self.refusal(self.a, None, ANY_BAD)["error"])
        for rid in (b"1.5", b"null", b"[]", b'{"a":1}', b"true"):
            self.a.raw(b'{"type":"control_request","request_id":' + rid + b',"request":{"subtype":"interrupt"}}\n')
            self.a.wait(lambda m: (m["event"] == "error" and m["code"] in ANY_BAD) or m["response.subtype"] == "error")
        self.good()

    def test_an_id_inside_request(self):
        """The old form is answered, too."""
        self.a.raw(b'{"type":"control_request","request":{"subtype":"interrupt","request_id":"a-1"}}\n')
        got = self.child.request("interrupt")
        self.assertIsInstance(got["request_id"], str)
        self.assertNotEqual(got["request_id"], "a-1")
        self.child.reply(got)
        self.assertEqual(self.a.answer("a-1")["response.subtype"], "success")

    def test_cancel_without_an_id(self):
        self.assertIn("request_id", self.bad(b'{"type":"control_cancel_request"}')["error"])
        self.good()

    def test_answers_in_a_wrong_wrapping(self):
        self.child.print(perm("k-1"))
        rid = self.a.wait(type="control_request")["request_id"]
        bad = ANY_BAD + ("bad_answer", "unknown_request")
        q = dump(rid)
        for raw in (b'{"type":"control_response","request_id":' + q + b',"response":{"behavior":"allow"}}',
                    b'{"type":"control_response","request_id":' + q + b'}',
                    b'{"type":"control_response"}',
                    b'{"type":"control_response","response":[]}',
                    b'{"type":"control_response","response":{"subtype":"success","response":{"behavior":"allow"}}}',
                    b'{"type":"control_response","response":{"request_id":' + q + b',"response":{"behavior":"allow"}}}',
                    b'{"type":"control_response","response":{"subtype":"success","request_id":5,"response":{}}}',
                    b'{"type":"control_response","response":{"subtype":"maybe","request_id":' + q + b'}}'):
            self.a.raw(raw + b"\n")
            self.refusal(self.a, None, bad)
        self.a.sync()
        self.assertNone(self.child.answers("k-1"))
        self.a.send(allow(rid))
        self.child.answer("k-1")

    def test_duplicate_keys(self):
        for raw in (b'{"type":"user","type":"user","message":{"role":"user","content":"x"}}',
                    b'{"type":"user","\\u0074ype":"control_request","request_id":"a-1","request":{"subtype":"interrupt"},'
                    b'"message":{"role":"user","content":"x"}}'):
            self.bad(raw)
        for raw in (b'{"type":"user","request_id":"a-1","type":"control_request","request":{"subtype":"interrupt"}}',
                    b'{"type":"control_request","request_id":"a-7","request_id":"a-8","request":{"subtype":"interrupt"}}',
                    b'{"type":"control_request","request_id":"a-7","request":{"subtype":"x"},"request":{"subtype":"interrupt"}}',
                    b'{"type":"control_request","request_id":"a-7","request":{"subtype":"x","subtype":"interrupt"}}',
                    b'{"type":"control_request","request_id":"a-7","request":{"subtype":"x","sub\\u0074ype":"interrupt"}}'):
            self.a.raw(raw + b"\n")
            m = self.a.wait(lambda m: m["code"] == "bad_line" or m["response.code"] == "bad_line")
            self.assertTrue((m["error"] or m["response.error"]).strip())
        self.a.raw(b'{"type":"control_request","request_id":"v","request":{"subtype":"plenum_status","daemon":true,"daemon":true}}\n')
        self.assertEqual(self.a.answer("v")["response.code"], "bad_request")
        self.good()

    def test_duplicate_id_in_an_answer(self):
        self.child.print(perm("k-1"), perm("k-2"))
        one, two = (self.a.wait(type="control_request")["request_id"] for _ in range(2))
        self.a.raw(b'{"type":"control_response","response":{"subtype":"success","request_id":' + dump(one)
                   + b',"request_id":' + dump(two) + b',"response":{"behavior":"allow","updatedInput":{}}}}\n')
        self.refusal(self.a, None, ("bad_line", "bad_answer"))
        self.a.sync()
        self.assertNone(self.child.answers("k-1") + self.child.answers("k-2"))

    def test_other_duplicates_are_the_childs_business(self):
        line = b'{"type":"whatever","x":1,"x":2}'
        self.a.send(line)
        self.assertEqual(self.child.wait(type="whatever").raw, line)

    def test_escapes_do_not_smuggle(self):
        """In any spelling: no request reaches the child under the client's own id, no verb reaches it at all."""
        for raw in (b'{"\\u0074ype":"control_request","request_id":"a-1","request":{"subtype":"interrupt"}}',
                    b'{"type":"control\\u005frequest","request_id":"a-1","request":{"subtype":"interrupt"}}',
                    b'{"type":"control_request","request\\u005fid":"a-1","request":{"subtype":"interrupt"}}',
                    b'{"type":"control_request","request_id":"a\\u002d1","request":{"subtype":"interrupt"}}',
                    b'{"type":"control_request","request_id":"a-1","reques\\u0074":{"subtype":"interrupt"}}',
                    b'{"type":"control_request","request_id":"a-1","request":{"subtype":"\\u0069nterrupt"}}'):
            self.a.raw(raw + b"\n")
            self.a.sync()
            for m in self.child.seen(lambda m: b"nterrupt" in m.raw):
                self.assertNotIn(m["request_id"], ("a-1", None), raw)
                if m in self.child.inbox:
                    self.child.inbox.remove(m)
                    self.child.reply(m)
                    self.assertEqual(self.a.answer("a-1")["response.subtype"], "success")
        self.a.raw(b'{"type":"control_request","request_id":"v-1","request":{"subtype":"plenum\\u005fhello"}}\n')
        self.a.wait(lambda m: m["response.request_id"] == "v-1" or m["event"] == "error")
        self.a.sync()
        self.assertNone(self.child.seen(lambda m: b"plenum" in m.raw))

    def test_an_observer_cannot_smuggle(self):
        o = self.d.attached(role="observer")
        for raw in (b'{"type":"us\\u0065r","message":{"role":"user","content":"sneaky"}}',
                    b'{"\\u0074ype":"user","message":{"role":"user","content":"sneaky"}}'):
            o.raw(raw + b"\n")
            self.refusal(o, None, ("not_allowed", "bad_line"))
        self.good()

    def test_deep_nesting(self):
        n = 100000
        self.bad(b'{"type":"user","message":{"role":"user","content":' + b"[" * n + b"}}")
        self.a.raw(b'{"type":"user","uuid":"deep","message":{"role":"user","content":' + b"[" * n + b"]" * n + b"}}\n")
        self.a.raw(b'{"type":"deep","d":' + b'{"a":' * n + b"1" + b"}" * n + b"}\n")
        self.a.sync()
        self.a.send(user("after", uuid="after"))
        self.child.wait(type="user", uuid="after")
        line = b'{"type":"assistant","d":' + b"[" * 3000 + b"]" * 3000 + b"}"
        self.child.print(line + b"\n")
        self.assertEqual(self.a.wait(lambda m: m.raw.startswith(b'{"type":"assistant"')).raw, line)

    def test_a_long_one_is_answered_from_its_beginning(self):
        """It is not read once more for an id."""
        pad = b"x" * (11 << 20)
        for first, last, rid in ((b'"request_id":"near",', b"", "near"), (b"", b',"request_id":"far"', None)):
            self.a.raw(b'{"type":"control_request",' + first + b'"request":{"subtype":"mcp_status","pad":"' + pad + b'",}' +
                       last + b"}\n")
            self.lines += 1
            self.refusal(self.a, rid)
        self.good()

    def test_lines_are_counted_with_blank_ones(self):
        self.a.raw(b"\n\r\n  \n")
        self.lines += 3
        self.bad(b"nonsense")

    def test_a_client_can_make_many_mistakes(self):
        self.a.raw(b"nonsense\n" * 500)
        last = [self.a.error("bad_line") for _ in range(500)][-1]
        self.assertEqual(last["line"], self.lines + 500)
        self.good()


class FirstLineTest(Case):
    def test_a_bad_first_line_attaches_nobody(self):
        d, agent = self.start()
        c = d.client()
        c.raw(b"GET / HTTP/1.1\r\n")
        self.assertEqual(c.error("bad_line")["line"], 1)
        self.assertEqual(d.sessions(), {})
        c.send(user("then a good one"))
        self.assertEqual(agent.child().wait(type="user")["message.content"], "then a good one")


class OldFormTest(Case):
    def test_prompt_and_content(self):
        _, _, child, a = self.open()
        for old, text in ((b'{"type":"user","prompt":"hi"}', "hi"), (b'{"type":"user","content":"ho"}', "ho"),
                          (b'{"type":"user","uuid":"u1","prompt":"quote \\" \\u00e9 \\ud800"}', 'quote " \u00e9 \ud800')):
            a.send(old)
            got = child.wait(type="user")
            self.assertEqual(got["message.role"], "user")
            self.assertEqual(got["message.content"], text)
        self.assertEqual(got["uuid"], "u1")

    def test_content_blocks(self):
        d, agent = self.start()
        a = d.attached()
        a.send(b'{"type":"user","content":[{"type":"text","text":"hi"}],"session_id":""}')
        got = agent.child().wait(type="user")
        self.assertEqual(got["message"], {"role": "user", "content": [{"type": "text", "text": "hi"}]})

    def test_with_message_it_is_left_alone(self):
        d, agent = self.start()
        a = d.attached()
        line = b'{"type":"user","uuid":"u","prompt":"p","message":{"role":"user","content":"m"}}'
        a.send(line)
        self.assertEqual(agent.child().wait(type="user").raw, line)

    def test_what_is_no_prompt_is_refused(self):
        d, agent = self.start()
        a = d.attached()
        for old in (b'{"type":"user","prompt":5}', b'{"type":"user","prompt":null}', b'{"type":"user","content":{"a":1}}'):
            a.send(old)
            a.error("bad_line")
        a.send(user("ok"))
        self.assertEqual(agent.child().wait(type="user")["message.content"], "ok")


class NearMissTest(Case):
    def test_error_names_what_is_wrong(self):
        """C73."""
        d, _, child, a = self.open()
        child.print(perm("k-1"))
        rid = dump(a.wait(type="control_request")["request_id"])
        for raw, words in (
                (b'{"subtype":"interrupt"}', ("type", "control_request")),
                (b'{"type":"control_request","request_id":"a-2"}', ("request",)),
                (b'{"type":"control_response","request_id":' + rid + b',"response":{"behavior":"allow"}}', ("request_id", "inside")),
                (b'{"type":"control_cancel_request"}', ("request_id",)),
                (b'{"type":"control_response","response":{"subtype":"success","request_id":' + rid + b',"behavior":"allow"}}',
                 ("response.response", "open")),
                (b'{"type":"control_response","response":{"subtype":"success","request_id":' + rid
                 + b',"response":{"decision":"allow"}}}', ("behavior", "open"))):
            a.raw(raw + b"\n")
            m = a.wait(lambda m: m["event"] == "error" or m["response.subtype"] == "error")
            for word in words:
                self.assertIn(word, m["error"] or m["response.error"], raw)
        a.sync()
        self.assertNone(child.seen(lambda m: m["request.subtype"] == "interrupt" or m["type"] == "control_response"))
        self.assertEqual(d.state_of("s"), "asking")


if __name__ == "__main__":
    unittest.main()
