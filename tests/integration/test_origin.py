# SPDX-License-Identifier: MIT
"""Where a process comes from: the streams of a child are no door, and an agent's process is known as one, however it was
started and whoever its parent is by now (DESIGN 14)."""
import json
import os
import sys
import unittest

from harness import PYTHON, Case, until, user

# Tries each stream of a process, in both directions; prints the names of the errors.
OPENER = r"""
import errno, json, os, sys
pid, out = sys.argv[1:]
got = {}
for n in "012":
    for mode, flags in (("read", os.O_RDONLY), ("write", os.O_WRONLY), ("both", os.O_RDWR)):
        try:
            fd = os.open("/proc/%s/fd/%s" % (pid, n), flags | os.O_NONBLOCK)
            if n == "0" and mode != "read": os.write(fd, b'{"type":"smuggled"}\n')
            got[n + mode] = "opened"
        except OSError as e:
            got[n + mode] = errno.errorcode[e.errno]
with open(out + ".new", "w") as f: json.dump(got, f)
os.rename(out + ".new", out)
"""


class StreamsTest(Case):
    def opened(self, d, spawner, pid):
        out = d.root + "/opened"
        spawner.spawn([PYTHON, "-I", "-S", "-c", OPENER, str(pid), out], setsid=True)
        until(lambda: os.path.exists(out), what="the report of the process")
        with open(out) as f:
            return json.load(f)

    def test_no_process_opens_them(self):
        d, agent = self.start()
        a = d.attached("s")
        child = agent.child()
        got = self.opened(d, child, child.pid)
        self.assertEqual(set(got.values()), {"ENXIO"}, got)
        a.send(user("hi", uuid="u"))
        child.wait(type="user")
        self.assertNone(child.seen(type="smuggled"))

    def test_the_end_of_input_reaches_the_child(self):
        d, agent = self.start()
        d.attached("s")
        child = agent.child()
        d.call("plenum_stop", session="s")
        child.event("eof")

    def test_a_process_that_keeps_stdin_gets_no_further_line(self):
        """It holds the other end when the child is dead: the next prompt is the next child's alone."""
        d, agent = self.start()
        a = d.attached("s")
        child = agent.child()
        child.print({"type": "system", "subtype": "init", "session_id": "c-1"})
        a.wait(subtype="init")
        out = d.root + "/kept"
        script = ("import os,sys\nopen(sys.argv[1]+'.up','w').close()\ndata=b''\n"
                  "while True:\n more=os.read(0,65536)\n if not more: break\n data+=more\n"
                  "open(sys.argv[1]+'.new','wb').write(data)\nos.rename(sys.argv[1]+'.new',sys.argv[1])\n")
        child.pause()  # else both read
        child.spawn([PYTHON, "-I", "-S", "-c", script, out], setsid=True, keep_stdin=True, keep_stdout=True)
        until(lambda: os.path.exists(out + ".up"))
        child.exit(0, now=True)
        until(lambda: d.sessions()["s"]["pid"] is None, what="the end of the child to be seen")
        a.send(user("for the next one", uuid="u"))
        until(lambda: os.path.exists(out), what="the end of input of the process")
        with open(out, "rb") as f:
            self.assertNotIn(b"for the next one", f.read())
        agent.child().wait(type="user")

    @unittest.skipUnless(os.getuid() == 0, "needs root, to run the daemon as another user")
    def test_the_daemon_is_closed_to_processes_of_its_user(self):
        """No reading of its memory, its environment, its descriptors; its children are as any program."""
        d, agent = self.start(run_as="nobody")
        d.attached("s")
        child = agent.child()
        self.assertEqual(os.stat("/proc/%d/mem" % d.pid).st_uid, 0, "its files are root's")
        self.assertNotEqual(os.stat("/proc/%d/mem" % child.pid).st_uid, 0)
        got = self.looked(d, child, d.pid)
        self.assertEqual(got, {"mem": "EACCES", "environ": "EACCES", "fd": "EACCES", "getfd": "EPERM"})

    def looked(self, d, child, pid):
        script = r"""
import ctypes, errno, json, os, sys
pid, out = int(sys.argv[1]), sys.argv[2]
def name(e): return errno.errorcode[e]
got = {}
for what in ("mem", "environ", "fd"):
    try: os.listdir("/proc/%d/fd" % pid) if what == "fd" else os.open("/proc/%d/%s" % (pid, what), os.O_RDONLY)
    except OSError as e: got[what] = name(e.errno)
libc = ctypes.CDLL(None, use_errno=True)
fd = os.pidfd_open(pid)
if libc.syscall(438, fd, 0, 0) < 0: got["getfd"] = name(ctypes.get_errno())
with open(out + ".new", "w") as f: json.dump(got, f)
os.rename(out + ".new", out)
"""
        out = d.home + "/looked"
        child.spawn([PYTHON, "-I", "-S", "-c", script, str(pid), out], setsid=True)
        until(lambda: os.path.exists(out), what="the report of the process")
        with open(out) as f:
            return json.load(f)


if __name__ == "__main__":
    unittest.main()
