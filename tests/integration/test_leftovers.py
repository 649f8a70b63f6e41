# SPDX-License-Identifier: MIT
"""Detached processes that an agent leaves running: which are kept, which are ended, and where they are listed."""
import os
import signal
import subprocess
import sys

from harness import Case, alive, build_file, request, until, user, RESULT

# Detached as by `setsid program &`: an orphan with a process session of its own. Writes its pid when its parent is gone:
# else the parent would be the detached process that is reported. With "stubborn" it ignores SIGTERM, else it notes it in
# FOLDER/NAME.term and ends.
SERVICE = r"""
import os, signal, sys, time
path, how = sys.argv[1:3]
parent = os.getpid()
if os.fork(): os._exit(0)
os.setsid()
while os.getppid() == parent: time.sleep(0.001)
def term(*_):
    open(path + ".term", "w").close()
    if how != "stubborn": os._exit(0)
signal.signal(signal.SIGTERM, term)
with open(path + ".new", "w") as f: f.write(str(os.getpid()))
os.rename(path + ".new", path)
while True: time.sleep(60)
"""
INIT = {"type": "system", "subtype": "init", "session_id": "conv-1"}


# A service that gets SIGTERM has the time to note it, on a busy machine too; one that stays gets SIGKILL.
PATIENT = {"stop_grace": "3s"}


def kill(pid):
    if alive(pid):
        os.kill(pid, signal.SIGKILL)


class LeftoversCase(Case):
    def going(self, profile=None, **mode):
        """A session in a conversation, with its child."""
        d, agent, child, a = self.open(profile=profile or {}, mode=dict({"session_id": "conv-1"}, **mode))
        child.print(INIT, RESULT)
        a.wait(type="result")
        a.event("session_state", state="idle")
        return d, agent, a, child

    def service(self, d, child, name="service", how="plain"):
        path = d.root + "/" + name
        child.spawn([sys.executable, "-I", "-S", "-c", SERVICE, path, how], setsid=True)
        until(lambda: os.path.exists(path), what="the service")
        with open(path) as f:
            pid = int(f.read())
        self.addCleanup(kill, pid)
        return pid

    def listed(self, d, session="s"):
        return [o["pid"] for o in d.call("plenum_status", session=session)["leftovers"]]

    def is_listed(self, d, pid, session="s"):
        until(lambda: self.listed(d, session) == [pid], what="%d in the status" % pid)
        until(lambda: d.sessions()[session]["leftovers"] == 1, what="%d in the list" % pid)

    def gone(self, *pids):
        until(lambda: not any(map(alive, pids)), what="the end of %s" % (pids,))

    def named(self, event):
        return [p["pid"] for p in event["processes"]]


class KeepTest(LeftoversCase):
    def test_sleep_and_stop(self):
        """Sleep ends the child and its process session; a stop ends the service, too, and reports it."""
        d, agent, a, child = self.going()
        near = child.spawn(["sleep", "600"])
        pid = self.service(d, child)
        self.is_listed(d, pid)
        got = d.call("plenum_status", session="s")["leftovers"][0]
        self.assertIn("python", got["program"])
        self.assertGreaterEqual(got["since_ms"], 0)
        a.request("plenum_hibernate")
        event = a.event("leftovers", action="kept")
        self.assertEqual((self.named(event), event["count"]), ([pid], 1))
        d.wait_state("s", "asleep")
        self.gone(near)
        self.assertTrue(alive(pid))
        self.assertFalse(os.path.exists(d.root + "/service.term"))
        self.is_listed(d, pid)
        a.log.clear()
        answer = a.request("plenum_stop")
        self.assertEqual((answer["stopping"], self.named({"processes": answer["leftovers"]})), (False, [pid]))
        self.assertEqual(self.named(a.event("leftovers", action="ending")), [pid])
        self.gone(pid)
        self.assertTrue(os.path.exists(d.root + "/service.term"))
        until(lambda: self.listed(d) == [] and d.sessions()["s"]["leftovers"] == 0)

    def test_the_end_of_the_daemon_behind_that_of_a_service(self):
        """A service that has just ended by itself does not shorten the time of another session's."""
        d, agent, a, child = self.going()
        first = self.service(d, child)
        b = d.attached("t")
        kid = agent.child()
        kid.print(dict(INIT, session_id="conv-2"), dict(RESULT, session_id="conv-2"))
        b.wait(type="result")
        other = self.service(d, kid, "other")
        for c, name in ((a, "s"), (b, "t")):
            d.wait_state(name, "idle")
            c.request("plenum_hibernate")
            d.wait_state(name, "asleep")
        self.is_listed(d, first)
        self.is_listed(d, other, "t")
        until(lambda: d.sessions()["s"]["leftovers"] == 1)
        os.kill(first, signal.SIGKILL)
        self.gone(first)
        d.stop()
        d.process = None
        self.gone(other)
        self.assertTrue(os.path.exists(d.root + "/other.term"))

    def test_a_stop_of_a_running_child(self):
        """One that ignores SIGTERM gets SIGKILL after stop_grace. A service of another session continues."""
        d, agent, a, child = self.going(profile=PATIENT)
        b = d.attached("t")
        other = self.service(d, agent.child(), "other")
        plain, stubborn = self.service(d, child), self.service(d, child, "stubborn", "stubborn")
        until(lambda: sorted(self.listed(d)) == sorted([plain, stubborn]))
        answer = a.request("plenum_stop")
        self.assertEqual(sorted(o["pid"] for o in answer["leftovers"]), sorted([plain, stubborn]))
        self.assertEqual(sorted(self.named(a.event("leftovers", action="ending"))), sorted([plain, stubborn]))
        self.assertEqual(self.named(a.event("leftovers", action="killed")), [stubborn])
        self.gone(plain, stubborn)
        self.assertTrue(os.path.exists(d.root + "/stubborn.term"))
        self.assertTrue(alive(other))
        self.assertEqual(b.events("leftovers"), [])

    def test_forget(self):
        """Also for a sleeping session; its services are ended although the session is gone by then."""
        d, agent, a, child = self.going(profile=PATIENT)
        pid = self.service(d, child, how="stubborn")
        a.request("plenum_hibernate")
        d.wait_state("s", "asleep")
        answer = a.request("plenum_stop", forget=True)
        self.assertEqual((answer["stopping"], answer["forget"]), (True, True))
        a.event("session_removed")
        self.assertEqual([self.named(e) for e in a.events("leftovers", action="ending")], [[pid]])
        self.gone(pid)
        self.assertTrue(os.path.exists(d.root + "/service.term"))

    def test_how_kill_sends_no_sigterm(self):
        d, agent, a, child = self.going()
        pid = self.service(d, child)
        a.request("plenum_stop", how="kill")
        self.assertEqual(self.named(a.event("leftovers", action="killed")), [pid])
        self.gone(pid)
        self.assertFalse(os.path.exists(d.root + "/service.term"))

    def test_how_kill_of_a_sleeping_session(self):
        d, agent, a, child = self.going()
        pid = self.service(d, child)
        a.request("plenum_hibernate")
        d.wait_state("s", "asleep")
        answer = a.request("plenum_stop", how="kill")
        self.assertEqual((answer["stopping"], self.named({"processes": answer["leftovers"]})), (False, [pid]))
        self.assertEqual(self.named(a.event("leftovers", action="killed")), [pid])
        self.gone(pid)
        self.assertFalse(os.path.exists(d.root + "/service.term"))

    def test_how_kill_of_several(self):
        """In one write: each service is named to its own session, and those of others continue."""
        d, agent, a, child = self.going()
        pids = {"s": self.service(d, child)}
        drivers = {"s": a}
        for name in ("t", "u", "other"):
            drivers[name] = d.attached(name)
            pids[name] = self.service(d, agent.child(), name)
        d.client().send(*(request(name, "plenum_stop", session=name, how="kill") for name in "stu"))
        for name in "stu":
            self.assertEqual(self.named(drivers[name].event("leftovers", action="killed")), [pids[name]])
            drivers[name].event("child_exited")
            self.gone(pids[name])
        self.assertTrue(alive(pids["other"]))
        self.assertEqual(drivers["other"].events("leftovers"), [])

    def test_the_next_child(self):
        """The service stays the session's with its next child, and when that crashes."""
        d, agent, a, child = self.going()
        pid = self.service(d, child)
        a.request("plenum_hibernate")
        d.wait_state("s", "asleep")
        a.send(user("again", uuid="u"))
        second = agent.child()
        second.wait(type="user", uuid="u")
        self.is_listed(d, pid)
        a.log.clear()
        second.kill()
        self.assertEqual(self.named(a.event("leftovers", action="kept")), [pid])
        a.event("child_exited")
        self.assertTrue(alive(pid))
        a.request("plenum_stop")
        self.gone(pid)

    def test_an_upgrade(self):
        d, agent, a, child = self.going()
        pid = self.service(d, child)
        a.request("plenum_hibernate")
        d.wait_state("s", "asleep")
        c = d.client()
        c.request("plenum_upgrade")
        self.is_listed(d, pid)
        got = [(o["pid"], o["session"]) for o in d.call("plenum_status", daemon=True)["leftovers"]]
        self.assertEqual(got, [(pid, "s")])
        c.request("plenum_stop", session="s")
        self.gone(pid)

    def test_the_end_of_the_daemon(self):
        """The next daemon could not distinguish it from the user's programs: it ends, for a sleeping session too, by
        SIGTERM first."""
        d, agent, a, child = self.going(profile=PATIENT)
        pid, stubborn = self.service(d, child), self.service(d, child, "stubborn", "stubborn")
        a.request("plenum_hibernate")
        d.wait_state("s", "asleep")
        d.stop()
        self.assertEqual([alive(p) for p in (pid, stubborn)], [False, False])
        self.assertTrue(os.path.exists(d.root + "/service.term"))
        d.start()

    def test_a_shim(self):
        """Its own session ends like a CLI, which leaves its services running."""
        d, agent = self.start()
        c = d.client()
        c.attach(ephemeral=True, quiet=True)
        child = agent.child()
        pid = self.service(d, child)
        c.close()
        until(lambda: d.sessions() == {}, what="the end of the session")
        self.assertTrue(alive(pid))
        until(lambda: [o["pid"] for o in d.call("plenum_status", daemon=True)["leftovers"]] == [pid])

    def test_an_upgrade_while_sigkill_is_due(self):
        d, agent, a, child = self.going(profile={"stop_grace": "1s"})
        pid = self.service(d, child, how="stubborn")
        a.request("plenum_stop")
        a.event("leftovers", action="ending")
        a.request("plenum_upgrade")
        self.gone(pid)


class EndTest(LeftoversCase):
    """leftovers = end"""

    def test_sleep(self):
        d, agent, a, child = self.going(profile={"leftovers": "end"})
        pid = self.service(d, child)
        a.request("plenum_hibernate")
        self.assertEqual(self.named(a.event("leftovers", action="ending")), [pid])
        self.gone(pid)
        self.assertTrue(os.path.exists(d.root + "/service.term"))

    def test_the_daemon_waits_for_them(self):
        """Until they have ended, by themselves or by SIGKILL."""
        d, agent, a, child = self.going(profile=dict(PATIENT, leftovers="end"))
        pid = self.service(d, child, how="stubborn")
        d.stop()
        self.assertFalse(alive(pid))
        self.assertTrue(os.path.exists(d.root + "/service.term"))
        d.start()


class PlenumctlTest(LeftoversCase):
    def ctl(self, d, *argv):
        return subprocess.run([build_file("plenumctl"), "--socket", d.socket, *argv], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60)

    def test_it_shows_them(self):
        d, agent, a, child = self.going()
        pid = self.service(d, child)
        self.is_listed(d, pid)
        self.assertRegex(d.ctl("ls").stdout, r"(?m)^s +idle .* 1 left ")
        self.assertRegex(d.ctl("top", "-1").stdout, r"(?m)^s +idle .* 1 left$")
        self.assertRegex(d.ctl("status", "s").stdout, r"(?m)^PID +PROGRAM +SINCE\n%d +python\S* +\S+$" % pid)
        self.assertRegex(d.ctl("status").stdout, r"(?m)^PID +PROGRAM +SINCE +SESSION\n%d +python\S* +\S+ +s$" % pid)
        got = d.ctl("sleep", "s")
        self.assertEqual((got.returncode, got.stdout), (0, "s sleeps\n"))
        self.assertRegex(got.stderr, r"goes on: python\S* \(pid %d\)" % pid)
        got = d.ctl("stop", "s")
        self.assertEqual((got.returncode, got.stdout), (0, "s stopped\n"))
        self.assertRegex(got.stderr, r"ended with it: python\S* \(pid %d\)" % pid)
        self.gone(pid)
