# SPDX-License-Identifier: MIT
"""Lines: whole, unchanged, in order, both ways, at any size and in any pieces (contract 3, 4, 7; cases C02 C16 C21 C46
C48 C49 C50 C51)."""
import os
import unittest

from harness import RESULT, Case, allow, dump, hook, init_line, mcp, ok, perm, request, until, user

LF = b"\n"


def tool_result(n):
    return (b'{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"'
            + b"x" * n + b'"}]}}')


class SizeTest(Case):
    def test_long_lines_from_the_child(self):
        d, agent = self.start()
        a, b = d.attached(label="a"), d.attached(label="b")
        child = agent.child()
        for n in (65535, 65536, 65537, 262144, 1048576, 10485760, 33554432):
            line = tool_result(n)
            child.print(line + LF, RESULT)
            for c in (a, b):
                m = c.wait(lambda m: len(m.raw) >= n)
                self.assertTrue(m.raw == line, "changed at %d" % n)
                c.wait(type="result")
                self.assertEqual([x.raw for x in c.log if x["type"] in ("user", "result")], [line, dump(RESULT)])
                del c.log[:]

    def test_long_lines_to_the_child(self):
        d, _, child, a = self.open()
        for n in (65536, 262144, 14 * 1048576):
            line = dump(user([{"type": "image", "source": {"type": "base64", "data": "x" * n}}], uuid="u%d" % n))
            a.send(line)
            got = child.wait(lambda m: len(m.raw) >= n)
            self.assertTrue(got.raw == line, "changed at %d" % n)

    def test_a_tape_smaller_than_the_line(self):
        """The tape keeps the newest line at any size (9.2)."""
        _, _, child, a = self.open(limits={"tape_bytes": "64K"})
        line = tool_result(4 << 20)
        child.print(line + LF, RESULT)
        self.assertTrue(a.wait(lambda m: len(m.raw) > 4 << 20).raw == line)
        a.wait(type="result")

    def test_child_line_over_the_limit(self):
        _, _, child, a, b = self.open(2, limits={"child_line": "100K"})
        fits = tool_result(90000)
        child.print({"type": "x", "n": 1}, fits + LF, tool_result(300000) + LF, {"type": "x", "n": 2})
        for c in (a, b):
            c.wait(type="x", n=1)
            c.wait(lambda m: m.raw == fits)
            notice = c.error("too_long")
            self.assertEqual(notice["size"], len(tool_result(300000)))
            c.wait(type="x", n=2)
            self.assertEqual(len(c.events("error")), 1)
            self.assertNone(c.seen(lambda m: len(m.raw) > 95000))
        child.mark(a)

    def test_over_long_line_in_pieces(self):
        _, _, child, a = self.open(limits={"child_line": "64K"})
        for _ in range(3):
            child.print(b"{" + b"y" * 50000)
            child.written()
        child.print(b"\n", {"type": "x"})
        a.error("too_long", size=150003)
        a.wait(type="x")

    def test_over_long_permission_request_is_denied(self):
        """9.2: under its id, if that can be read."""
        _, _, child, a = self.open(limits={"child_line": "64K"})
        child.print(perm("k-1", "x" * 200000))
        a.error("too_long")
        answer = child.answer("k-1")
        self.assertEqual(answer["response.response.behavior"], "deny")
        self.assertTrue(answer["response.response.message"])
        child.mark(a)
        self.assertNone(a.seen(type="control_request"))

    def test_client_line_over_the_limit(self):
        _, _, child, a, b = self.open(2, limits={"client_line": "100K"})
        a.send(user("x" * 200000), user("after"))
        notice = a.error("too_long")
        self.assertEqual(notice["size"], len(dump(user("x" * 200000))))
        self.assertEqual(notice["line"], 2)
        self.assertEqual(child.wait(type="user")["message.content"], "after")
        b.sync()
        self.assertNone(b.events("error"))

    def test_the_limits_are_apart(self):
        d, agent = self.start(limits={"client_line": "100K"})
        a = d.attached()
        agent.child().print(tool_result(300000) + LF)
        a.wait(lambda m: len(m.raw) > 300000)
        self.assertNone(a.events("error"))

    def test_too_long_plenum_request_is_answered(self):
        d, agent = self.start()
        a = d.client()
        a.raw(b'{"type":"control_request","request_id":"1","request":{"subtype":"plenum_attach","args":[' + b"0," * (5 << 20) +
              b"0]}}\n")
        self.assertEqual(a.answer("1")["response.code"], "too_long")
        a.hello()

    def test_too_long_request_is_answered_in_any_spelling(self):
        """Each request is answered, with any spacing and any id."""
        d, agent = self.start(limits={"client_line": "64K"})
        a = d.attached("s")
        pad = b'"request": {"subtype": "x", "d": "' + b"x" * 70000 + b'"}}\n'
        for head, rid in ((b'{"type": "control_request", "request_id": "spaced", ', "spaced"),
                          (b'{"type":"control_request","request_id":17,', 17),
                          (b'{ "type" : "control_request" , "request_id" : -3 , ', -3)):
            a.raw(head + pad)
            self.assertEqual(a.answer(rid)["response.code"], "too_long")
        a.raw(b'{"type": "control_request", "request_id": 1.5, ' + pad)  # not a valid id
        self.assertIsNone(a.error("too_long")["request_id"])

    def test_default_limit_of_a_line(self):
        """C02: 70 MiB with the default limits; each side gets an error."""
        d, _, child, a = self.open()
        pad = b"x" * (70 << 20)
        child.print(b'{"type":"user","message":{"role":"user","content":"' + pad + b'"}}\n', RESULT)
        a.error("too_long")
        a.wait(type="result")
        a.raw(b'{"type":"control_request","request_id":"big","request":{"subtype":"x","d":"' + pad + b'"}}\n')
        self.assertEqual(a.answer("big")["response.code"], "too_long")
        child.print(perm("k-1"))
        rid = a.wait(type="control_request")["request_id"]
        a.raw(b'{"type":"control_response","response":{"subtype":"success","request_id":' + dump(rid) + b',"response":{"behavior":"allow",'
              b'"updatedInput":{"d":"' + pad + b'"}}}}\n')
        self.assertEqual(a.error("too_long")["request_id"], rid)
        self.assertNone(child.answers("k-1"))
        a.send(allow(rid))
        child.answer("k-1")

    def test_wide_lines_of_the_child(self):
        """A line with an object of very many members that the daemon would have to read is left out, and a request in
        it refused under its id; any other object may have as many."""
        _, _, child, a = self.open()
        many = {f"m{i}": 0 for i in range(40000)}
        child.print({"type": "x", **many})
        self.assertGreater(a.error("too_many")["size"], 300000)
        child.print(perm("k-1", **many), perm("k-2", input=many))
        for k in ("k-1", "k-2"):
            answer = child.answer(k)["response.response"]
            self.assertEqual(answer["behavior"], "deny")
            self.assertIn("members", answer["message"])
        rid = a.ask("mcp_status")
        child.print(ok(child.request("mcp_status")["request_id"], many))
        self.assertEqual(a.answer(rid)["response.code"], "too_many")
        line = dump({"type": "y", "data": many, "list": list(many)})
        child.print(line + LF)
        self.assertEqual(a.wait(type="y").raw, line)
        self.assertEqual(len(a.events("error")), 4)
        self.assertNone(a.seen(type="x"))
        child.mark(a)

    def test_long_names_of_the_child(self):
        """A long id of a conversation or a long version is ignored, and a request with a long name refused. A line with
        a long id is left out."""
        d, _, child, a = self.open()
        child.print({"type": "system", "subtype": "init", "session_id": "c" * 5000, "claude_code_version": "v" * 300}, RESULT)
        a.wait(type="result")
        status = d.call("plenum_status", session="s")
        self.assertEqual((status["conversation_id"], status["version"]), (None, None))
        child.print(init_line("c" * 4096, claude_code_version="v" * 256))
        child.mark(a)
        status = d.call("plenum_status", session="s")
        self.assertEqual((status["conversation_id"], status["version"]), ("c" * 4096, "v" * 256))
        child.print(perm("k-1", tool="T" * 70000), perm("k-2", agent_id="A" * 70000), request("k-3", "s" * 70000))
        for k in ("k-1", "k-2"):
            self.assertIn("64 KiB", child.answer(k)["response.response.message"])
        self.assertIn("64 KiB", child.answer("k-3")["response.error"])
        for long in ("x" * 70000, "x" * 300000):
            child.print(request(long, "elicitation"), {"type": "result", "session_id": long}, {"type": long}, {"type": "y", "uuid": long})
        child.mark(a)
        self.assertEqual([e["code"] for e in a.events("error")], ["too_long"] * 8)
        self.assertNone(a.seen(type="y"))

    def test_too_long_requests_of_the_child(self):
        """C02: each kind is refused under its id; a guard that cannot see the call denies it."""
        _, _, child, a = self.open(limits={"child_line": "64K"})
        a.initialize({"PreToolUse": [{"hookCallbackIds": ["h"]}]}, sdkMcpServers=["t"])
        table = until(lambda: [m for m in child.seen(request__subtype="initialize") if m["request.hooks.PreToolUse"]])[-1]
        pad = "x" * 100000
        child.print(hook("k-1", table["request.hooks.PreToolUse"][0]["hookCallbackIds"][0], pad=pad),
                    mcp("k-2", "t", {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"pad": pad}}),
                    request("k-3", "elicitation", message=pad), request("k-4", "never_heard_of", pad=pad))
        out = child.answer("k-1")["response.response.hookSpecificOutput"]
        self.assertEqual(out["permissionDecision"], "deny")
        for k in ("k-2", "k-3", "k-4"):
            self.assertEqual(child.answer(k)["response.subtype"], "error")
        rid = a.ask("mcp_status")
        child.print(ok(child.request("mcp_status")["request_id"], {"pad": pad}))
        self.assertEqual(a.answer(rid)["response.code"], "too_long")


class BytesTest(Case):
    LINES = [
        b'{"type":"result","subtype":"success","total_cost_usd":0.1,"n":12345678901234567000,"big":18446744073709551615,'
        b'"huge":1e400,"e":1E2,"z":-0.0,"i":9007199254740993}',
        b'{"type":"assistant","t":"\\ud800 \\udc00\\ud800 lone"}',
        b'{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a\\u0000b"}]}}',
        b'{"type":"assistant","a\\u0000b":1}',
        b'{"type":"assistant","x":1,"x":2}',
        b'{ "type" : "assistant" ,\t"spaces" : [ 1 , 2 ] }',
        '{"type":"assistant","t":"a\u2028b\u2029c\u0085d"}'.encode(),
        b'{"z":1,"y":2,"type":"assistant","a":"\\/\\u002f/"}',
        b'{"type":"assistant","t":"' + "\U0001f600 {}}{ é 中".encode() + b'"}',
        b'{"type":"assistant","t":"\\"type\\":\\"control_request\\""}',
        b'{"type":"assistant","message":{"type":"control_request","request_id":"k-1","request":{"subtype":"can_use_tool"}}}',
    ]

    def both(self, env=None):
        d, _, child, a, b = self.open(2, env=env)
        child.print(*(line + LF for line in self.LINES))
        for c in (a, b):
            for line in self.LINES:
                c.wait(lambda m: m.raw == line, title=line)
            got = [m.raw for m in c.log if m.raw in self.LINES]
            self.assertEqual(got, self.LINES)
        numbers = (b'{"type":"user","uuid":"u","message":{"role":"user","content":[{"type":"text","text":"t","n":12345678901234567000,"big":'
                   b'18446744073709551615,"huge":1e400,"e":1E2,"z":-0.0,"d":0.1,"s":"\\ud800 \\u0000 \\/"}]}}')
        a.send(numbers)
        self.assertEqual(child.wait(type="user").raw, numbers)

    def test_bytes_arrive_as_they_left(self):
        self.both()

    def test_whatever_the_locale(self):
        self.both(env={"LC_ALL": "de_DE.UTF-8"})

    def test_numbers_in_an_answer(self):
        d, _, child, a = self.open()
        child.print(perm("k-1"))
        rid = a.wait(type="control_request")["request_id"]
        body = (b'{"behavior":"allow","updatedInput":{"n":12345678901234567000,"huge":1e400,"z":-0.0,"d":0.1,"s":"\\ud800"},'
                b'"toolUseID":"t"}')
        a.send(b'{"type":"control_response","response":{"subtype":"success","request_id":' + dump(rid) + b',"response":'
               + body + b'}}')
        got = child.answer("k-1")
        self.assertIn(body, got.raw)

    def test_a_client_with_line_separators(self):
        _, _, child, a = self.open()
        line = '{"type":"user","uuid":"u1","message":{"role":"user","content":"a\u2028b\u2029c\u0085d"}}'.encode()
        a.send(line)
        self.assertEqual(child.wait(type="user").raw, line)

    def test_a_raw_return_does_not_end_a_line(self):
        _, _, child, a = self.open()
        child.print(b'{"type":"assistant","t":"x"} \r {"type":"assistant","t":"y"} \n', RESULT)
        a.wait(type="result")
        self.assertNone(a.seen(type="assistant"))
        self.assertEqual(len(a.events("stray_output")), 1)

    def test_raw_nul_from_a_client(self):
        _, _, child, a = self.open()
        a.raw(dump(user("x")) + b"\0" + b'{"type":"control_request"}\n')
        self.assertEqual(a.error("bad_line")["line"], 2)
        a.raw(b"\0\n")
        self.assertEqual(a.error("bad_line")["line"], 3)
        a.send(user("ok"))
        self.assertEqual(child.wait(type="user")["message.content"], "ok")
        self.assertEqual(len(child.seen(type="user")), 1)


class CutTest(Case):
    LINE = b'{"type":"assistant","t":"\\u00e9 ' + "é中\U0001f600".encode() + b' {}}{"}'

    def test_one_byte_at_a_time_from_the_child(self):
        d, agent = self.start(agents=("agent", "other"))[:2]
        a, b = d.attached(), d.attached("t", profile="other")
        child, other = agent.child(), self.agents[1].child()
        child.print(self.LINE + LF, chunk=1, delay=0.001)
        other.mark(b)
        self.assertEqual(a.wait(type="assistant").raw, self.LINE)

    def test_one_byte_at_a_time_from_a_client(self):
        d, agent = self.start()
        a = d.client()
        line = dump(user("é中\U0001f600 {}}{", uuid="u1"))
        line = line.replace(b"\\u00e9", "é".encode())
        for i in range(len(line)):
            a.raw(line[i:i + 1])
        d.call("plenum_hello")
        self.assertEqual(d.sessions(), {})
        a.raw(LF)
        child = agent.child()
        self.assertEqual(child.wait(type="user").raw, line)

    def test_many_lines_in_one_write(self):
        d, _, child, a = self.open()
        lines = [b'{"type":"assistant","n":%d,"t":"' % i + "中".encode() + b'"}' for i in range(1000)]
        child.print(b"".join(x + LF for x in lines))
        a.wait(type="assistant", n=999)
        self.assertEqual([m.raw for m in a.seen(type="assistant")], lines)
        prompts = [dump(user("n%d" % i, uuid="u%d" % i)) for i in range(1000)]
        a.send(*prompts)
        child.wait(type="user", uuid="u999")
        self.assertEqual([m.raw for m in child.seen(type="user")], prompts)

    def test_nothing_before_its_newline_and_nothing_waits_after(self):
        d, _, child, a = self.open()
        child.print(self.LINE)
        child.written()
        a.sync()
        d.call("plenum_hello")
        self.assertNone(a.seen(type="assistant"))
        child.print(LF)
        self.assertEqual(a.wait(type="assistant").raw, self.LINE)

    def test_cut_at_each_byte(self):
        _, _, child, a = self.open()
        for i in range(1, len(self.LINE)):
            child.print(self.LINE[:i])
            child.written()
            child.print(self.LINE[i:] + LF)
        for _ in range(1, len(self.LINE)):
            self.assertEqual(a.wait(type="assistant").raw, self.LINE)

    def test_a_last_prompt_without_lf_of_a_client_that_is_gone(self):
        """It makes a session, which takes a while: the client's early end changes nothing."""
        d, agent = self.start()
        c = d.client()
        c.raw(dump(user("hello")))
        c.close()
        self.assertEqual(agent.child().wait(type="user")["message.content"], "hello")

    def test_last_line_without_newline_counts(self):
        d, agent = self.start()
        a = d.client()
        a.raw(dump(user("no newline", uuid="u1")))
        a.half_close()
        self.assertEqual(agent.child().wait(type="user")["message.content"], "no newline")

    def test_half_a_line_is_never_executed(self):
        _, _, child, a, b = self.open(2)
        a.raw(dump(user("half"))[:-5])
        a.close()
        b.event("detached")
        b.send(user("whole"))
        self.assertEqual(child.wait(type="user")["message.content"], "whole")

    def test_small_line_right_behind_a_big_one(self):
        """C75: bytes and order stay, also if joined in one write."""
        d, agent = self.start()
        a = d.client()
        lines = [dump({"type": "control_request", "request_id": "i", "request": {"subtype": "initialize", "hooks": None}}),
                 dump(user("x" * 200000, uuid="u1")), dump(user("small", uuid="u2"))]
        a.send(*lines)
        child = agent.child()
        child.wait(type="user", uuid="u2")
        self.assertEqual([m.raw for m in child.log[1:]], lines[1:])
        self.assertEqual(child.log[0]["request.subtype"], "initialize")


class NoiseTest(Case):
    NOISE = [b"Now using node v20.1.0 (npm v10)", b"[SandboxDebug] seccomp filter ready", b"[log_1] sending request {",
             b"  method: 'post',", b"}", b"[]", b'"text"', b"42", b"null", b"{broken", b"\xff\xfe\x00\x01", b"{}{}"]

    def test_noise_between_lines(self):
        _, _, child, a = self.open()
        first, last = {"type": "system", "subtype": "init", "session_id": "s1"}, RESULT
        child.print(first, *(n + LF for n in self.NOISE), last)
        a.wait(type="result")
        for n in self.NOISE:
            self.assertNone(a.seen(lambda m: m.raw == n))
        self.assertNone(a.seen(lambda m: m.obj is None), "a line that is no JSON")
        strays = a.events("stray_output")
        self.assertEqual(len(strays), len(self.NOISE))
        self.assertIn(b"Now using node v20.1.0 (npm v10)", strays[0].raw)
        self.assertEqual(strays[0]["session"], "s")
        kinds = [m for m in a.log if m["type"] in ("system", "result")]
        places = [kinds.index(m) for m in kinds if m["subtype"] in ("init", "success")]
        self.assertLess(places[0], kinds.index(strays[0]))
        self.assertGreater(places[1], kinds.index(strays[-1]))

    def test_half_a_line_at_the_end(self):
        _, _, child, a = self.open()
        child.print({"type": "x"}, b'{"type":"assistant","half')
        child.exit(0)
        a.wait(type="x")
        self.assertIn(b"half", a.event("stray_output").raw)
        a.event("child_exited")
        self.assertNone(a.seen(type="assistant"))

    def test_a_whole_last_line_without_line_feed(self):
        """The end of the output ends the line: the SDKs parse it as well."""
        _, _, child, a = self.open()
        last = b'{"type":"assistant","number":1.50,"text":"\\u00e9"}'
        child.print({"type": "x"}, last)
        child.exit(0)
        self.assertEqual(a.wait(type="assistant").raw, last)
        a.event("child_exited")
        self.assertNone(a.events("stray_output"))

    def test_a_flood_of_noise_does_not_flood_the_log(self):
        d, _, child, a = self.open()
        child.flood(b"noise @N@ @P@", 20000, pad=200)
        child.print(RESULT)
        a.wait(type="result")
        self.assertLess(os.path.getsize(d.log_path), 400000)

    def test_blank_lines_and_crlf(self):
        _, _, child, a = self.open()
        a.raw(dump(user("hi", uuid="u1")) + b"\r\n\r\n\n   \t\n" + dump(user("again", uuid="u2")) + b"\r\n")
        child.wait(type="user", uuid="u2")
        self.assertEqual([m.raw for m in child.seen(type="user")], [dump(user("hi", uuid="u1")), dump(user("again", uuid="u2"))])
        self.assertNone(child.seen(lambda m: not m.raw.strip() or b"\r" in m.raw))
        child.print(b'{"type":"result","subtype":"success"}\r\n', b"\n", b"\r\n", b"  \n", {"type": "x"})
        self.assertEqual(a.wait(type="result").raw.rstrip(b"\r"), b'{"type":"result","subtype":"success"}')
        a.wait(type="x")
        self.assertNone(a.events("stray_output"))
        self.assertNone(a.seen(lambda m: not m.raw.strip()))

    def test_byte_order_mark_from_a_client(self):
        """9.2: a bad line, with a notice; not a hang."""
        d, agent = self.start()
        a = d.client()
        a.raw(b"\xef\xbb\xbf" + dump(user("bom")) + LF)
        self.assertEqual(a.error("bad_line")["line"], 1)
        a.send(user("ok"))
        self.assertEqual(agent.child().wait(type="user")["message.content"], "ok")

    def test_empty_connections(self):
        d, _ = self.start()
        for data in (b"", b"\n", b"\r\n", b" "):
            c = d.client()
            c.raw(data)
            c.half_close()
            c.wait_eof()
            self.assertEqual(c.log, [])
        self.assertEqual(d.sessions(), {})

    def test_allow_still_works_behind_noise(self):
        _, _, child, a = self.open()
        child.print(b"noise\n", perm("k-1"), b"noise\n")
        a.send(allow(a.wait(type="control_request")["request_id"]))
        child.answer("k-1")

    def test_byte_order_mark_of_the_child(self):
        """C51: skipped before the first line of each child; not JSON anywhere else."""
        _, agent, child, a = self.open(mode={"session_id": "c-1", "init": "manual"})
        bom = b"\xef\xbb\xbf"
        child.print(bom + dump(init_line("c-1")) + b"\n", bom + b'{"type":"x"}\n', RESULT)
        self.assertEqual(a.wait(subtype="init").raw, dump(init_line("c-1")))
        a.wait(type="result")
        self.assertNone(a.seen(type="x"))
        self.assertEqual(len(a.events("stray_output")), 1)
        child.exit(0)
        a.event("child_exited")
        a.send(user("on"))
        child = agent.child()
        child.print(bom + dump(init_line("c-1")) + b"\n")
        a.wait(subtype="init")

    def test_escaped_type_does_not_hide_a_request(self):
        d, agent = self.start()
        a = d.client()
        a.attach("work")
        child = agent.child()
        rest = b'"request_id":"x","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}\n'
        for head in (b'{"\\u0074ype":"control_request",', b'{"a":1,"type":"control\\u005frequest",',
                     b'{"\\u0074\\u0079pe":"control_c\\u0061ncel_request",'):
            child.print(head + rest)
            self.assertEqual(a.event("stray_output")["text"].encode(), (head + rest).rstrip())
        other = b'{"\\u0074ype":"other","a":"\\u00e9"}'
        child.print(other + b"\n")
        child.mark(a)
        self.assertEqual(len([m for m in a.log if m.raw == other]), 1)
        self.assertNone(a.seen(request_id="x"))


if __name__ == "__main__":
    unittest.main()
