# SPDX-License-Identifier: MIT
"""A failed upgrade: the running daemon continues, with the reason."""
import os
import signal
import unittest
from pathlib import Path

from harness import (PYTHON, TIMEOUT, PlenumError, alive, build_file, children_of, hook, mcp, perm, request, until,
                     user)
from standstill import standstill
from test_upgrade import FLOOD, Upgrade, command_line

# Replaces the new binary: makes the real one read its input, truncated and changed in many ways.
DAMAGE = """#!%s -IS
import os, random, subprocess, sys, time
if "--check" in sys.argv: sys.exit(0)
fd = int(sys.argv[sys.argv.index("--check-upgrade") + 1])
data = os.pread(fd, 1 << 30, 0)
fds = [int(n) for n in os.listdir("/proc/self/fd") if int(n) > 2]
fds = [n for n in fds if os.path.exists("/proc/self/fd/%%d" %% n)]
rest = [w for w in sys.argv[1:] if w not in ("--check-upgrade", str(fd))]
exe, report = %r, %r
if os.fork():  # the daemon does not wait for what follows
    sys.exit(1)
os.setsid()
os.dup2(os.open("/dev/null", os.O_RDWR), 1)
os.dup2(1, 2)

def end(text):
    with open(report + ".new", "w") as f:
        f.write(text)
    os.rename(report + ".new", report)
    os._exit(0)

def read(what):
    new = os.memfd_create("damaged")
    os.write(new, what)
    p = subprocess.run([exe, "--check-upgrade", str(new)] + rest, pass_fds=fds + [new], stderr=subprocess.PIPE)
    os.close(new)
    if p.returncode not in (0, 70) or b"Sanitizer" in p.stderr or b"runtime error" in p.stderr:
        open(report + ".state", "wb").write(what)
        end("status %%d, %%r" %% (p.returncode, p.stderr[-3000:]))
    return p.returncode

r = random.Random(%d)
deadline = time.monotonic() + %f
counts = {0: 0, 70: 0}
if read(data) != 0: end("the whole state was refused")
while time.monotonic() < deadline:
    kind = r.randrange(4)
    at = r.randrange(len(data))
    if kind == 0:
        if read(data[:at]) != 70: end("cut at %%d, it was taken" %% at)
        continue
    new = bytearray(data)
    if kind == 1:
        new[at] ^= 1 << r.randrange(8)
    elif kind == 2:
        new[at:at + 8] = r.choice((0, 1, 2, 255, 1 << 31, 1 << 32, (1 << 63) - 1, (1 << 64) - 1, len(data))).to_bytes(8, "little")
    else:
        del new[at:at + r.choice((1, 8, 9, 100))]
    counts[read(bytes(new))] += 1
end("all refused or read: %%r" %% counts)
"""

# The new binary, given a text of another version.
VERSION = """#!%s -IS
import os, sys
if sys.argv[1] == "--check-upgrade":
    os.pwrite(int(sys.argv[2]), (%d).to_bytes(8, "little"), len("plenum state\\n"))
os.execv(%r, sys.argv)
"""


class Failed(Upgrade):
    def refused(self, d, a, child):
        with self.assertRaises(PlenumError) as e:
            d.call("plenum_upgrade")
        self.assertEqual(e.exception.code, "spawn_failed")
        self.assertIn("no upgrade", d.log())
        child.mark(a)
        child.prompted(a, "still here")
        return e.exception.text

    def ready(self, **options):
        d, agent = self.start_copy(**options)
        a = d.attached()
        return d, a, agent.child()

    def test_files_that_are_no_good(self):
        d, a, child = self.ready()
        n = d.settled_fds()
        self.replace(d, b"#!/bin/sh\necho of no use >&2\nexit 1\n")
        self.assertIn("of no use", self.refused(d, a, child))
        self.replace(d, b"\x7fELFgarbage" * 100)
        self.refused(d, a, child)
        self.replace(d, b"#!/bin/sh\nkill -SEGV $$\n")
        self.assertIn("signal 11", self.refused(d, a, child))
        self.replace(d, b"#!/no/such/interpreter\n")
        self.refused(d, a, child)
        os.unlink(d.exe)
        self.refused(d, a, child)
        self.assertEqual(d.settled_fds(), n, d.fd_list())
        self.replace(d)
        self.upgrade(d)
        child.mark(a)
        self.upgrade(d)
        self.assertEqual(d.settled_fds(), n, d.fd_list())

    def test_a_configuration_that_is_no_good(self):
        d, a, child = self.ready()
        with open(d.conf, "a") as f:
            f.write("[daemon]\nno_such_key = 1\n")
        self.assertIn("no_such_key", self.refused(d, a, child))
        d.write_conf()
        self.upgrade(d)
        child.mark(a)

    def spoil(self, d):
        """Request an upgrade; the configuration becomes invalid between the trial and its final reading."""
        self.replace(d, b'#!/bin/sh\ncase "$*" in *--resume-from*) printf "[nonsense]\\n" >>%s;; esac\nexec %s "$@"\n' % (
            d.conf.encode(), build_file("plenumd").encode()))
        c = d.client()
        rid = c.ask("plenum_upgrade")
        until(lambda: "nonsense" in d.log())
        return c, rid

    def test_a_configuration_that_is_being_written(self):
        d, a, child = self.ready()
        c, rid = self.spoil(d)
        d.write_conf()
        self.assertTrue(c.answer(rid)["response.response.upgraded"])
        child.mark(a)

    def test_a_configuration_that_stays_bad(self):
        d, a, child = self.ready()
        self.spoil(d)
        self.assertEqual(d.process.wait(TIMEOUT), 78)
        child.wait_gone()
        d.process = None

    def test_by_signal(self):
        d, a, child = self.ready()
        self.replace(d, b"#!/bin/sh\nexit 1\n")
        os.kill(d.pid, signal.SIGUSR2)
        until(lambda: "no upgrade" in d.log())
        child.mark(a)

    def test_a_binary_that_says_no_more(self):
        """It cannot read the state: the trial ends with an error."""
        d, a, child = self.ready()
        exe = build_file("plenumd").encode()
        self.replace(d, b"#!/bin/sh\ncase $1 in --check) exit 0;; esac\nexec %s --check-upgrade 99\n" % exe)
        self.assertIn("holds no state", self.refused(d, a, child))

    def test_another_version_of_the_state(self):
        d, a, child = self.ready()
        for version in (0, 2):
            self.replace(d, (VERSION % (PYTHON, version, build_file("plenumd"))).encode())
            self.assertIn("the state has version %d, this plenumd reads up to 1" % version, self.refused(d, a, child))
        self.replace(d)
        self.upgrade(d)
        child.mark(a)

    def test_one_that_only_says_that_all_is_well(self):
        d, a, child = self.ready()
        for script in (b"#!/bin/sh\nexit 0\n", b"#!/bin/sh\necho good\n"):
            self.replace(d, script)
            self.assertIn("did not read the state", self.refused(d, a, child))

    def test_one_that_does_not_end(self):
        """Everything continues during the trial; a second request does not restart it."""
        d, a, child = self.ready()
        c, other = d.client(), d.client()
        self.replace(d, b"#!/bin/sh\nexec sleep 1000\n")
        rid = c.ask("plenum_upgrade")
        sleeper = until(lambda: [p for p, _ in children_of(d.pid) if b"sleep" in command_line(p)])
        second = other.ask("plenum_upgrade")
        os.kill(d.pid, signal.SIGUSR2)
        child.mark(a)
        other.sync()
        os.kill(sleeper[0], signal.SIGKILL)
        self.assertEqual(c.answer(rid)["response.code"], "spawn_failed")
        self.assertEqual(other.answer(second)["response.code"], "spawn_failed")
        self.replace(d)
        self.upgrade(d, c)

    def test_several_who_ask(self):
        """All are notified; a disconnected one is not."""
        d, a, child = self.ready()
        clients = [d.client() for _ in range(4)]
        rids = [c.ask("plenum_upgrade") for c in clients]
        clients[0].close()
        for c, rid in list(zip(clients, rids))[1:]:
            self.assertIs(c.answer(rid)["response.response.upgraded"], True)
        child.mark(a)

    def test_one_that_does_not_end_when_it_reads_the_state(self):
        d, a, child = self.ready()
        n = d.settled_fds()
        self.replace(d, b"#!/bin/sh\ncase $1 in --check) exit 0;; esac\nexec sleep 1000 >/dev/null 2>&1\n")
        self.assertIn("does not come to an end", self.refused(d, a, child))
        self.assertEqual(d.settled_fds(), n, d.fd_list())

    def test_killed_while_it_is_tried(self):
        """The trial does not keep the next daemon from starting."""
        d, a, child = self.ready()
        self.replace(d, b"#!/bin/sh\ncase $1 in --check) exit 0;; esac\nexec sleep 1000 >/dev/null 2>&1\n")
        c = d.client()
        c.ask("plenum_upgrade")
        until(lambda: [p for p, _ in children_of(d.pid) if b"sleep" in command_line(p)])
        d.kill9()
        self.replace(d)
        d.start()
        self.assertEqual(d.state_of("s"), "asleep")
        child.wait_gone()

    def test_a_stop_while_it_is_tried(self):
        d, a, child = self.ready()
        self.replace(d, b"#!/bin/sh\nexec sleep 1000\n")
        c = d.client()
        c.ask("plenum_upgrade")
        until(lambda: [p for p, _ in children_of(d.pid) if b"sleep" in command_line(p)])
        d.stop()
        d.process = None

    def test_a_damaged_state(self):
        """With any damage, the reader refuses it or accepts it as another valid one; it never crashes."""
        seed = int(os.environ.get("PLENUM_TEST_SEED", "1"))
        seconds = float(os.environ.get("PLENUM_TEST_DAMAGE", "4"))
        d, a, child = self.ready()
        b = d.attached("s", name="guard", tag=True, types=["assistant", "odd"])
        b.initialize({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h0"]}]}, sdkMcpServers=["m"],
                     supportedDialogKinds=["k"])
        mine = child.seen(request__subtype="initialize")[-1]["request.hooks"]["PreToolUse"][0]["hookCallbackIds"][0]
        child.print(perm("p1"), hook("h1", mine), mcp("m1", "m", {"id": 1}), perm("p2"))
        child.print({"type": "control_cancel_request", "request_id": "p2"})
        a.ask("set_model", model="x")
        child.flood(FLOOD, 5, pad=40)
        child.stderr("one\ntwo")
        child.mark(a)
        a.send(user("x", uuid="u-1"))
        b.raw(b'{"type":"user","mess')
        child.print(b'{"type":"assis')
        child.written()
        a.sync()
        report = d.root + "/damaged"
        script = DAMAGE % (PYTHON, build_file("plenumd"), report, seed, seconds)
        self.replace(d, script.encode())
        self.assertRefused("spawn_failed", d.call, "plenum_upgrade")
        until(lambda: os.path.exists(report), seconds + 20, "the report")
        with open(report) as f:
            text = f.read()
        self.assertTrue(text.startswith("all refused or read"), text)
        self.replace(d)
        self.upgrade(d)
        b.raw(b'age":{"role":"user","content":"y"}}\n')
        child.wait(type="user", message__content="y")

    def test_while_it_stops(self):
        d, _, child, a = self.open(mode={"eof": "ignore"})
        c = d.client()
        d.process.send_signal(signal.SIGTERM)
        c.event("shutting_down")
        self.assertRefused("spawn_failed", c.request, "plenum_upgrade")
        child.exit(0)
        d.ended()
        d.process = None

    @unittest.skipUnless(os.getuid() == 0, "needs root")
    def test_another_user(self):
        (d,) = self.start(agents=(), daemon={"allow_uids": "65534"})
        d.open_to_all()
        c = d.client(uid=65534, gid=65534)
        self.assertRefused("not_allowed", c.request, "plenum_upgrade")


class ShutdownTest(Upgrade):
    """A shutdown during the trial of the new binary."""

    def test_term_during_the_trial_run(self):
        for tried in ("--check-upgrade", "--check"):
            with self.subTest(tried):
                d, agent = self.start_copy()
                a = d.attached("s")
                agent.child()
                real = d.exe + ".real"
                os.rename(d.exe, real)
                script = '#!/bin/sh\n[ "$1" = %s ] && kill -TERM $PPID\nexec %s "$@"\n' % (tried, real)
                self.replace(d, script.encode())
                os.kill(d.pid, signal.SIGUSR2)
                a.event("shutting_down")
                d.ended()
                d.start()

    def test_term_right_after_the_trial_run(self):
        """The old binary ends, and the new one does not take over."""
        d, _ = self.start_copy()
        real, tried, go = d.exe + ".real", d.root + "/tried", d.root + "/go"
        os.rename(d.exe, real)
        os.mkfifo(go)
        self.replace(d, ('#!/bin/sh\nif [ "$1" = --check ]; then echo $$ > %s; read x < %s; exit 0; fi\nexec %s "$@"\n' % (
            tried, go, real)).encode())
        os.kill(d.pid, signal.SIGUSR2)
        until(lambda: os.path.exists(tried) and os.path.getsize(tried))
        preview = int(Path(tried).read_text())
        with standstill(d):
            Path(go).write_text("go")
            until(lambda: not alive(preview))
            os.kill(d.pid, signal.SIGTERM)
        d.ended()
        self.assertEqual(self.resumes(d), 0)
        d.start()

    def test_shutdown_right_behind_an_upgrade(self):
        (d,) = self.start(agents=())
        a = d.client()
        a.send(request("u", "plenum_upgrade"), request("q", "plenum_shutdown"))
        self.assertEqual(a.answer("u")["response.code"], "spawn_failed")
        a.wait_eof()
        d.ended()
        d.start()


if __name__ == "__main__":
    unittest.main()
