# SPDX-License-Identifier: MIT
"""Turns of the daemon's loop stay short: much work is spread over many of them."""
import unittest

from harness import Case, dump, perm, request, until, user

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
