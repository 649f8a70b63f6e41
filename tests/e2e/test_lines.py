# SPDX-License-Identifier: MIT
"""Long, old and wrong lines."""

from harness import Case, is_event, text_of

WRONG = [
    b'{not json',
    b'plain text',
    b'{"type":"user"}',
    b'{"type":"user","message":"hi"}',
    b'{"type":"user","message":{"content":"hi"}}',
    b'{"type":"user","message":{"role":"assistant","content":"hi"}}',
    b'{"type":"control_request","subtype":"interrupt","request_id":"1"}',
    b'{"type":"control_request","request_id":"1"}',
    b'{"type":"control_request","request_id":"1","request":"interrupt"}',
    b'{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}',
    b'{"type":"keep_alive"} {"type":"keep_alive"}',
    b'{"type":"keep_alive",}',
    b'{"type":"user","message":{"role":"user","content":"\xff\xfe"}}',
    b'{"type":"user","message":{"role":"user","content":"a\x01b"}}',
    b'\xef\xbb\xbf{"type":"keep_alive"}',
    b'{"type":"keep_alive","type":"user"}',
    b'[1,2]',
    b'42',
    b'null',
    b'"text"',
]
SURVIVED = [b'', b'   ', b'\r', b'{"notype":1}', b'{"type":"banana"}', b'{"type":"keep_alive"}\r',
            b'{"type":"user","message":{"role":"user"}}', b'{"type":"assistant"}', b'{"type":"control_cancel_request"}']


class Lines(Case):
    def test_wrong_lines_of_one_harm_nobody(self):
        good, wild = self.client("work"), self.client("work")
        good.turn("before")
        pid = self.state("work")["pid"]
        for number, line in enumerate(WRONG, 2):
            since = wild.mark()
            wild.send(line + b"\n")
            problem = wild.wait(f"a complaint about {line!r}", lambda l: is_event(l, "error")
                                or (l.get("type") == "control_response" and l["response"]["subtype"] == "error"), since)
            if is_event(problem, "error"):
                self.assertEqual((problem["code"], problem["line"]), ("bad_line", number), line)
            else:
                self.assertIn(problem["response"]["code"], ("bad_line", "bad_request"), line)
        for line in SURVIVED:
            wild.send(line + b"\n")
        self.assertEqual(wild.turn("after")["result"], "echo: after")
        self.assertEqual(good.turn("after too")["result"], "echo: after too")
        self.assertEqual(self.state("work")["pid"], pid)
        self.assertFalse(good.seen(lambda l: is_event(l, "error")))

    def test_a_wrong_first_line(self):
        client = self.client()
        client.send(b"hello?\n")
        self.assertEqual(client.wait_event("error")["line"], 1)
        client.ask("plenum_hello")

    def test_old_forms_of_a_prompt(self):
        client = self.client("work")
        for member in ("prompt", "content"):
            since = client.mark()
            client.send({"type": "user", member: f"old {member}"})
            self.assertEqual(client.wait_result(since=since)["result"], f"echo: old {member}")

    def test_long_lines_both_ways(self):
        one, two = self.client("work"), self.client("work")
        text = "up " + "\u00e4\U0001f600x" * 400_000
        uuid = one.prompt(text)
        for client in (one, two):
            echoed = client.wait("the replay", lambda l: l.get("isReplay") and l.get("uuid") == uuid)
            self.assertEqual(text_of(echoed["message"]), text)
            client.wait_result(uuid)
        uuid = two.prompt("@pieces 4@ @long 3000000@")
        for client in (one, two):
            self.assertEqual(client.wait_result(uuid)["result"], "x" * 3_000_000)

    def test_odd_characters_arrive(self):
        client = self.client("work")
        client.send(b'{"type":"user","uuid":"odd","big":123456789012345678901234567890,"message":{"role":"user",'
                    b'"content":"nul \\u0000 half \\ud800 sep \\u2028 escape \\u001b end"}}\n')
        echoed = client.wait("the replay", lambda l: l.get("isReplay") and l.get("uuid") == "odd")
        self.assertEqual(text_of(echoed["message"]), "nul \0 half \ud800 sep \u2028 escape \x1b end")
        client.wait_result("odd")
