# SPDX-License-Identifier: MIT
"""A child that SIGKILL does not end: the stop sequence, the session and the daemon end without it (contract 15).

Two kinds: a process held in its exit (like one in an uninterruptible wait; here ptrace(2) holds it), and one of another
user, which the daemon may not signal."""
import ctypes
import os
import re
import shutil
import signal
import subprocess
import unittest

from harness import TIMEOUT, Case, alive, build_file, until, user

SEIZE, DETACH, TRACEEXIT = 0x4206, 17, 0x40
HOLDS = {"eof": "ignore", "term": "ignore", "user": True}
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(what, pid, data=None):
    if LIBC.ptrace(what, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def may_trace():
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        ptrace(SEIZE, sleeper.pid, TRACEEXIT)
        sleeper.kill()
        until(lambda: state_of(sleeper.pid) == "t")
        ptrace(DETACH, sleeper.pid)
        return True
    except (OSError, AssertionError):
        return False
    finally:
        sleeper.kill()
        sleeper.wait()


def state_of(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rpartition(")")[2].split()[0]


class HeldCase(Case):
    @classmethod
    def setUpClass(cls):
        if not may_trace():
            raise unittest.SkipTest("this system lets no process hold another one in its exit")

    def hold(self, child):
        """SIGKILL does not end it before release()."""
        ptrace(SEIZE, child.pid, TRACEEXIT)
        self.addCleanup(self.release, child)
        return child

    def release(self, child):
        until(lambda: not alive(child.pid) or state_of(child.pid) == "t" or os.kill(child.pid, signal.SIGKILL))
        try:
            ptrace(DETACH, child.pid)
        except OSError:
            pass  # already released
        until(lambda: not alive(child.pid))

    def held(self, *names, grace=0.2):
        """A daemon with sessions after a turn each, with children that cannot be ended: [(client, child)]."""
        d, agent = self.start(mode=dict(HOLDS), profile={"stop_grace": "%dms" % (grace * 1000)})
        return d, agent, [self.hold_one(d, agent, name) for name in names or ("s",)]

    def hold_one(self, d, agent, name):
        agent.mode(**dict(HOLDS, session_id="conv-" + name))
        a = d.attached(name)
        a.send(user("one"))
        a.wait(type="result")
        return a, self.hold(agent.child())


class WarmTest(HeldCase):
    def test_one_that_refuses_its_initialize(self):
        """A prestarted child is given up like any other, and another takes its place."""
        d, agent = self.start(mode={"init": "manual"}, profile={"warm": 1, "cwd": "/", "stop_grace": "200ms"})
        child = self.hold(agent.child())
        rid = child.wait(type="control_request")["request_id"]
        child.print({"type": "control_response", "response": {"subtype": "error", "request_id": rid, "error": "no"}})
        until(lambda: "child %d of session warm-" % child.pid in d.log(), what="the end of the stop sequence")
        agent.child()
        self.assertTrue(alive(child.pid))


class StopTest(HeldCase):
    def test_each_step_ends(self):
        d, agent, held = self.held("killed", "asked", "next", "forgotten")
        (killed, child), (asked, _), (waits, _), (forgotten, _) = held
        call = killed.ask("mcp_status")
        other = d.client()
        for a, how, forget in ((other, "graceful", False), (killed, "kill", False), (waits, "kill", False), (forgotten, "kill", True)):
            name = "asked" if a is other else a.attached["session"]
            self.assertIs(a.request("plenum_stop", session=name, how=how, forget=forget)["stopping"], True)
        waits.send(user("for the next child"))
        for a, one in held[:3]:
            name = a.attached["session"]
            reason = a.error("cannot_stop", session=name)["error"]
            self.assertIn("child %d of session %s cannot be ended: process %d traces it" % (one.pid, name, os.getpid()), reason)
            self.assertEqual(a.event("session_state", state="failed")["reason"], reason)
            entry = d.sessions()[name]
            self.assertEqual((entry["state"], entry["pid"], entry["reason"]), ("failed", None, reason))
            self.assertEqual(d.log().count("session %s: stop, SIGKILL after" % name), 1)
        other.error("cannot_stop", session="asked")
        self.assertEqual(len(asked.events("error", code="cannot_stop")), 1)
        self.assertEqual(killed.answer(call)["response.code"], "child_exited")
        self.assertEqual(killed.events("child_exited") + asked.events("child_exited"), [])
        self.assertIn("cannot be ended", waits.error("spawn_failed")["error"])
        self.assertIn("child %d of session" % held[3][1].pid, forgotten.error("cannot_stop")["error"])
        forgotten.event("session_removed")
        for _ in range(2):  # the next binary knows it, too
            self.assertIn("cannot be ended", self.assertRefused("cannot_stop", killed.request, "plenum_stop").text)
            killed.send(user("not now"))
            self.assertIn("cannot be ended", killed.error("child_exited")["error"])
            d.call("plenum_upgrade")
        self.assertEqual(agent.starts, 4, "a second child took up a conversation")
        self.release(child)
        killed.send(user("now"))
        killed.wait(type="result")
        self.assertIn("--resume=conv-killed", agent.child().start["argv"])
        asked.request("plenum_stop", forget=True)
        asked.event("session_removed")
        for _, one in held:
            self.release(one)

    def test_plenumctl_tells_why(self):
        d, agent, held = self.held()
        env = dict(os.environ, PLENUM_SOCKET=d.socket)
        for option, code in (("-k", 1), ("-k", 1), ("-f", 0)):
            p = subprocess.run([build_file("plenumctl"), "stop", option, "s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=env, text=True)
            self.assertEqual(p.returncode, code, p.stderr)
            self.assertEqual(p.stderr.count("child %d of session s cannot be ended: " % held[0][1].pid), code)
        self.assertEqual(d.sessions(), {})

    def test_the_program_behind_a_shim_is_told_why(self):
        d, agent, _ = self.held("other")
        program = d.root + "/program"
        with open(program, "w") as f:
            f.write('#!/bin/sh\nexec %s "$@"\n' % agent.command)
        os.chmod(program, 0o755)
        d.sections["profile agent"]["command"] = program
        d.write_conf()
        d.call("plenum_reload")
        env = dict(d.env, PLENUM_SOCKET=d.socket, PLENUM_PROFILE="agent")
        shim = subprocess.Popen([build_file("plenum-shim"), "-p", "--input-format", "stream-json", "--output-format", "stream-json"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True)
        self.addCleanup(shim.kill)
        child = self.hold(agent.child())
        name = next(s for s in d.sessions() if s != "other")
        d.call("plenum_stop", session=name, how="kill")
        self.assertIn("child %d of session %s cannot be ended: " % (child.pid, name), shim.communicate(timeout=TIMEOUT)[1])
        self.assertEqual(shim.returncode, 1)
        until(lambda: list(d.sessions()) == ["other"], what="its session to be gone")


class DaemonTest(HeldCase):
    """Its own end takes at most twice stop_grace."""

    def ends(self, d, child):
        d.ended()
        self.assertIn("child %d of session s cannot be ended: " % child.pid, d.log())

    def test_no_conversation_gets_a_second_child_from_the_next_daemon(self):
        d, agent, [(a, child)] = self.held()
        d.process.send_signal(signal.SIGTERM)
        self.ends(d, child)
        d.start()
        self.assertEqual(d.state_of("s"), "asleep")
        a = d.attached()
        a.send(user("next"))
        until(lambda: "session s: child %d of session s cannot be ended" % child.pid in d.log().rpartition("listens on")[2])
        self.assertEqual(agent.starts, 1)
        self.release(child)
        a.wait(type="result")
        self.assertEqual(agent.starts, 2)

    def test_two_signals(self):
        """Each step takes half of stop_grace; the second signal leaves the last one."""
        d, agent, [(a, child)] = self.held(grace=2)
        d.process.send_signal(signal.SIGTERM)
        after = until(lambda: re.search("stop, SIGTERM after ([0-9]+) ms", d.log()))
        self.assertLess(int(after[1]), 2000)
        d.process.send_signal(signal.SIGTERM)
        self.ends(d, child)
        self.assertEqual(d.log().count("stop, SIGKILL after"), 1)
        d.process = None


@unittest.skipUnless(os.getuid() == 0, "makes a program of another user")
class OtherUserTest(Case):
    def test_a_child_that_may_not_be_signalled(self):
        d, agent, a = self.start_as_nobody()
        child = agent.child()
        a.request("plenum_stop", how="kill")
        reason = a.error("cannot_stop")["error"]
        self.assertIn("child %d of session s cannot be ended: it runs as uid 0" % child.pid, reason)
        self.assertEqual(d.state_of("s"), "failed")
        self.assertTrue(alive(child.pid))
        self.assertRefused("cannot_stop", a.request, "plenum_stop")
        d.stop()
        d.process = None
        child.order("exit_now", status=0)
        until(lambda: not alive(child.pid))

    def start_as_nobody(self):
        """The daemon has uid nobody; its child becomes root by a program of mode 4755."""
        d, agent = self.start(mode=dict(HOLDS), profile={"stop_grace": "200ms"}, run_as="nobody")
        raiser = d.root + "/raise"
        shutil.copy(shutil.which("setpriv"), raiser)
        os.chmod(raiser, 0o4755)
        d.sections["profile agent"]["command"] = "%s --reuid=0 --regid=0 --clear-groups %s" % (raiser, agent.command)
        d.write_conf()
        d.call("plenum_reload")
        return d, agent, d.attached()
