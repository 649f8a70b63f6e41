# SPDX-License-Identifier: MIT
"""Turns of the daemon's loop stay short: much work is spread over many of them."""
import unittest

from harness import Case, dump, ok, perm, request, until, user

BLOCK = b'{"type":"text","text":"%d","more":[1,{},"two",null]}'


class LongLineTest(Case):
    def unfinished(self, c, line):
        """Send all but the end of the line, and wait until the daemon has read it. Return the end."""
        c.raw(line[:-100])
        until(lambda: any(one["client"] == self.number and one["held_bytes"] >= len(line) - 100
                          for one in self.d.call("plenum_status")["clients"]))
        return line[-100:]

    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a = self.d.attached()
        self.number = self.a.hello()["client"]
        self.child = self.agent.child()

    def turns(self):
        return self.d.call("plenum_metrics")["loop_turns"]

    def line(self, last, n=100000):
        blocks = b",".join([BLOCK % i for i in range(n)] + [last])
        return b'{"type":"user","message":{"role":"user","content":[' + blocks + b"]}}\n"

    def test_a_clients_line_is_checked_in_many_turns(self):
        for last in (b'{"type":1}', b'{"type":"image"}', b"{"):
            end = self.unfinished(self.a, self.line(last, 250000))
            before = self.turns()
            self.a.raw(end)
            self.a.error("bad_line")
            self.a.inbox.clear()
            self.assertGreater(self.turns() - before, 8)

    def test_what_comes_behind_it_waits(self):
        """The line is whole, and the lines stay in order, also if the connection ends after them."""
        line = self.line(BLOCK % 7)
        self.a.raw(line + dump(request("behind", "plenum_hello")) + b"\n" + dump(user("last")))
        self.a.half_close()
        self.assertEqual(len(self.child.wait(type="user")["message"]["content"]), 100001)
        self.assertEqual(self.child.wait(type="user")["message"]["content"], "last")
        self.a.wait(type="control_response", response__request_id="behind")

    def test_one_without_its_end_is_the_last(self):
        """The line waits while it is checked, and nothing comes behind it."""
        for n in (5000, 20000, 40000):
            c = self.d.attached()
            body = b",".join([BLOCK % 7] * n)
            c.raw(b'{"type":"user","message":{"role":"user","content":[' + body + b"]}}")
            c.half_close()
            self.assertEqual(len(self.child.wait(type="user")["message"]["content"]), n)
            self.assertEqual(self.d.call("plenum_metrics")["bad_lines"], 0)
            c.close()

    def test_its_client_may_leave(self):
        for i in range(3):
            c = self.d.attached()
            c.raw(self.line(b'{"type":1}') if i else self.line(BLOCK % 7))
            c.close()
        until(lambda: self.d.call("plenum_metrics")["clients"] == 2)
        self.a.sync()


class ChildLineTest(Case):
    """A long line of the child is measured in many turns before its readers step over its long values."""

    SIZE = 32 << 20

    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a = self.d.attached(approve=True, types=["result"])
        self.child = self.agent.child()

    def turns(self):
        return self.d.call("plenum_metrics")["loop_turns"]

    def dense(self, size=SIZE):
        return b"[" + b"[{}]," * (size // 5) + b"1]"

    def turns_of(self, line, behind):
        """Print all but its end, then this with the lines behind it: return the turns until the last one arrives."""
        self.child.print(line[:-100])
        self.child.written()
        before = self.turns()
        self.child.print(line[-100:], *behind)
        self.a.wait(type="result", uuid="end")
        return self.turns() - before

    END = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "uuid": "end"}

    def test_brackets(self):
        line = b'{"type":"system","subtype":"init","x":%s,"uuid":"%s"}\n' % (self.dense(), b"u" * 100)
        self.assertGreater(self.turns_of(line, [self.END]), 12)

    def test_a_line_without_an_end(self):
        line = b'{"type":"result","uuid":"end","x":%s"%s"\n' % (self.dense()[:-1], b"u" * 100)
        self.assertGreater(self.turns_of(line, [self.END]), 12)
        self.a.wait(event="stray_output", size=len(line) - 1)

    def test_lines_stay_in_order(self):
        line = b'{"type":"result","uuid":"long","x":%s,"num_turns":7}\n' % self.dense(4 << 20)
        self.child.print(dict(self.END, uuid="first"), line, self.END)
        got = [m.raw[:400] for m in (self.a.wait(type="result") for _ in range(3))]
        self.assertEqual(got[1], line[:400])
        self.a.wait(event="turn_ended")

    def test_a_long_question(self):
        """It arrives under another id before the one behind it, and is answered with its input."""
        text = "x" * (8 << 20)
        self.child.print(perm("p1", cmd=text), perm("p2", cmd="short"))
        first = self.a.wait(type="control_request", request__tool_use_id="toolu_p1")
        second = self.a.wait(type="control_request", request__tool_use_id="toolu_p2")
        self.assertEqual(first["request"]["input"]["command"], text)
        self.a.send(ok(second["request_id"], {"behavior": "allow"}))
        self.assertEqual(self.child.answer("p2")["response"]["response"]["updatedInput"]["command"], "short")
        self.a.send(ok(first["request_id"], {"behavior": "allow"}))
        self.assertEqual(self.child.answer("p1")["response"]["response"]["updatedInput"]["command"], text)


class LongAnswerTest(Case):
    def test_inputs_of_open_requests(self):
        """With any number open, the answer reads a MiB of them."""
        d, agent = self.start()
        a = d.attached(approve=True)
        child = agent.child()
        child.print(*(perm("p%d" % i, cmd="x" * 50000) for i in range(40)))
        for i in range(40):
            a.wait(type="control_request", request__tool_use_id="toolu_p%d" % i)
        inputs = [p["input"] for p in d.call("plenum_pending")["pending"]]
        self.assertEqual([isinstance(one, dict) for one in inputs], [True] * 20 + [False] * 20)
        self.assertEqual(inputs[0]["command"], "x" * 50000)
        self.assertEqual(len(inputs[39]), 1000)


if __name__ == "__main__":
    unittest.main()
