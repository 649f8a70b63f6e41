# SPDX-License-Identifier: MIT
"""Memory is short: only the work that needs more of it fails, and the daemon lives."""
import os
import subprocess
import unittest

from harness import Case, build_file, dump, request

MIB = 1 << 20


def sanitized():
    with open(build_file("plenumd"), "rb") as f:
        return b"__asan_init" in f.read()


@unittest.skipIf(sanitized(), "the address sanitizer takes more address space than any limit leaves")
class MemoryTest(Case):
    def short(self, room):
        """Limit the daemon to this many more bytes than now; None: no limit."""
        with open("/proc/%d/statm" % self.d.pid) as f:
            now = int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        limit = "unlimited" if room is None else str(now + room)
        subprocess.run(["prlimit", "--pid", str(self.d.pid), "--as=%s:" % limit], check=True)

    def test_a_request_that_cannot_be_parsed(self):
        """Each element of 3 bytes takes over 200 bytes in the tree: there is room for the line, however little memory the
        daemon has kept, but not for the tree."""
        self.d, = self.start(agents=())
        c = self.d.client()
        c.hello()
        body = dump(request("big", "plenum_hello", name=[])).replace(b"[]", b"[" + b"{}," * 8000 + b"{}]")
        self.short(MIB)
        c.raw(body + b"\n")
        self.assertEqual(c.answer("big")["response.code"], "internal")
        c.hello()
        self.short(None)
        c.raw(body + b"\n")
        self.assertEqual(c.answer("big")["response.code"], "bad_request")

    def test_a_line_of_a_client(self):
        """It is skipped, and named by its id; the next line is served."""
        self.d, = self.start(agents=())
        c = self.d.client()
        c.hello()
        self.short(4 * MIB)
        c.raw(dump(request("big", "plenum_hello", name="x" * (12 * MIB))) + b"\n" + dump(request("next", "plenum_hello")) + b"\n")
        got = c.answer("big")
        self.assertEqual(got["response.code"], "internal")
        self.assertIn("memory", got["response.error"])
        self.assertEqual(c.answer("next")["response.subtype"], "success")

    def test_a_line_of_a_child(self):
        """The daemon waits for memory without work, logs it once, and then drops the line; the next lines come."""
        self.d, agent = self.start()
        a = self.d.attached()
        child = agent.child()
        child.mark(a)
        self.short(4 * MIB)
        cpu = self.d.cpu()
        child.print({"type": "x", "text": "x" * (12 * MIB)}, {"type": "y"})
        a.wait(type="y")
        self.assertLess(self.d.cpu() - cpu, 1)
        self.assertEqual(self.d.log().count("no memory to read child"), 1)
        self.assertNone(a.seen(type="x"))
        self.short(None)
        child.print({"type": "x", "text": "x" * (12 * MIB)})
        a.wait(type="x")


if __name__ == "__main__":
    unittest.main()
