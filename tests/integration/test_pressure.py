# SPDX-License-Identifier: MIT
"""Memory pressure: how it is reported, and which sessions go to sleep. The watched path is named as by a service
manager; a FIFO or a socket replaces the kernel's file, as its protocol allows."""
import base64
import os
import shutil
import socket
import subprocess
import tempfile
import unittest

from harness import Case, RESULT, build_file, until, user


class PressureCase(Case):
    def watched(self, path, write=None, daemon=None, **options):
        """A daemon whose service manager names that path."""
        env = {"MEMORY_PRESSURE_WATCH": path, "MEMORY_PRESSURE_WRITE": write and base64.b64encode(write).decode()}
        return self.start(env=env, daemon=dict({"log_level": "debug", "memory_pressure": "yes"}, **(daemon or {})),
                          **options)

    def folder(self):
        return tempfile.mkdtemp(prefix="pl-", dir="/tmp")  # the daemon's root, removed with it

    def fifo(self, root):
        path = os.path.join(root, "pressure")
        os.mkfifo(path)
        return path

    def press(self, path):
        fd = os.open(path, os.O_WRONLY)
        os.write(fd, b"x")
        os.close(fd)

    def idle(self, d, agent, name, **members):
        """An idle session that can be resumed, and its child."""
        a = d.attached(name, **members)
        child = agent.child()
        child.prompted(a, "hi")
        child.print({"type": "system", "subtype": "init", "session_id": "conv-" + name}, RESULT)
        a.wait(type="result")
        d.wait_state(name, "idle")
        return a, child


class SleepTest(PressureCase):
    def test_the_least_recently_used_sleeps(self):
        root = self.folder()
        path = self.fifo(root)
        d, agent = self.watched(path, root=root)
        self.idle(d, agent, "one")
        a, child = self.idle(d, agent, "two")
        self.idle(d, agent, "three")
        d.call("plenum_status", session="two")
        self.press(path)
        d.wait_state("one", "asleep")
        self.assertEqual([d.state_of(n) for n in ("two", "three")], ["idle", "idle"])
        self.assertIn("session one: goes to sleep, memory is short", d.log())
        self.press(path)
        d.wait_state("two", "asleep")
        self.assertEqual(d.state_of("three"), "idle")
        a.send(user("again"))
        agent.child().wait(type="user")  # and it wakes as before

    def test_busy_and_asking_ones_do_not(self):
        root = self.folder()
        path = self.fifo(root)
        d, agent = self.watched(path, root=root)
        a, child = self.idle(d, agent, "one")
        child.prompted(a, "work")
        d.wait_state("one", "busy")
        self.press(path)
        until(lambda: "no session is idle" in d.log())
        self.assertEqual(d.state_of("one"), "busy")
        child.print(RESULT)
        d.wait_state("one", "idle")
        self.press(path)
        d.wait_state("one", "asleep")

    def test_spares_go_first(self):
        root = self.folder()
        path = self.fifo(root)
        d, agent = self.watched(path, root=root, profile={"warm": 1, "cwd": "/"})
        spare = agent.child()
        until(lambda: d.call("plenum_status", daemon=True)["profiles"][-1]["warm"] == 1)
        a = d.attached("own", cwd="/tmp")
        agent.child()
        d.wait_state("own", "idle")
        self.press(path)
        spare.wait_gone()
        self.assertEqual(d.state_of("own"), "idle")
        self.press(path)
        d.wait_state("own", "asleep")
        self.assertEqual(d.call("plenum_metrics")["warm"], 0)
        a.sync()

    def test_not_wanted(self):
        root = self.folder()
        path = self.fifo(root)
        d, agent = self.watched(path, root=root, daemon={"memory_pressure": "no"})
        self.assertNotIn("memory pressure", d.log())
        with self.assertRaises(OSError):
            os.open(path, os.O_WRONLY | os.O_NONBLOCK)  # no reader
        d.sections["daemon"]["memory_pressure"] = "yes"
        d.write_conf()
        d.call("plenum_reload")
        d.fds += 1
        self.idle(d, agent, "one")
        self.press(path)
        d.wait_state("one", "asleep")
        d.sections["daemon"]["memory_pressure"] = "no"
        d.write_conf()
        d.call("plenum_reload")
        with self.assertRaises(OSError):
            os.open(path, os.O_WRONLY | os.O_NONBLOCK)


class ProtocolTest(PressureCase):
    def test_socket(self):
        root = self.folder()
        path = os.path.join(root, "pressure.sock")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)
            s.listen(1)
            d, agent = self.watched(path, b"some 1 2\0\xff", root=root)
            conn, _ = s.accept()
        self.assertEqual(conn.recv(100), b"some 1 2\0\xff")
        for name in ("one", "two"):
            self.idle(d, agent, name)[0].close()
        conn.send(b"x" * 10000)
        d.wait_state("one", "asleep")
        conn.close()
        self.assertEqual(d.state_of("two"), "idle")
        until(lambda: d.fd_count() == d.fds - 1 + 3)  # the child of `two` has three
        cpu = d.cpu()
        d.client().sync()
        self.assertLess(d.cpu() - cpu, 0.5)
        d.fds -= 1

    def test_dev_null(self):
        d, agent = self.watched("/dev/null")
        self.assertIn("the service manager wants no watch", d.log())

    def test_what_cannot_be_watched(self):
        for path, why in (("/nonexistent", "opened"), ("/tmp", "opened"), ("/dev/zero", "neither")):
            with self.subTest(path):
                d, agent = self.watched(path)
                self.assertIn("memory pressure: " + path, d.log())
                self.assertIn(why, d.log())
                d.client().hello()

    def test_bad_base64(self):
        root = self.folder()
        path = self.fifo(root)
        d, agent = self.start(env={"MEMORY_PRESSURE_WATCH": path, "MEMORY_PRESSURE_WRITE": "a?b="},
                              daemon={"log_level": "debug", "memory_pressure": "yes"}, root=root)
        self.assertIn("no base64", d.log())

    def test_children_do_not_inherit_it(self):
        root = self.folder()
        d, agent = self.watched(self.fifo(root), root=root)
        d.attached("one")
        self.assertNotIn("MEMORY_PRESSURE_WATCH", agent.child().env)

    @unittest.skipUnless(os.access("/proc/pressure/memory", os.W_OK), "this kernel has no PSI, or it is closed to us")
    def test_the_kernels_own(self):
        """It is accepted, watched, and silent while no process waits for memory."""
        d, agent = self.start(daemon={"log_level": "debug", "memory_pressure": "yes"})
        self.assertIn("memory pressure: /proc/pressure/memory", d.log())
        self.assertTrue(any(x.endswith(":/proc/pressure/memory") for x in d.fd_list()), d.fd_list())

    @unittest.skipUnless(os.access("/proc/pressure/cpu", os.W_OK), "this kernel has no PSI, or it is closed to us")
    def test_the_kernels_event(self):
        """Waiting for a processor replaces waiting for memory: it is reported in the same way and does no harm."""
        d, agent = self.watched("/proc/pressure/cpu", b"some 1000 2000000\0", daemon={"memory_pressure": "no"})
        for name in ("one", "two"):
            self.idle(d, agent, name)
        d.sections["daemon"]["memory_pressure"] = "yes"  # not before: the machine may be busy already
        d.write_conf()
        d.call("plenum_reload")
        d.fds += 2  # that file, and the epoll descriptor for its event
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count() + 1)]
        try:
            until(lambda: "asleep" in {s["state"] for s in d.sessions().values()}, what="a session to sleep")
        finally:
            for p in busy:
                p.kill()
                p.wait()
        self.assertIn("goes to sleep, memory is short", d.log())


class ConfigTest(PressureCase):
    def test_values(self):
        root = self.folder()
        self.addCleanup(shutil.rmtree, root)
        for value, status in (("yes", 0), ("no", 0), ("maybe", 78)):
            path = os.path.join(root, "c.conf")
            with open(path, "w") as f:
                f.write("[daemon]\nmemory_pressure = %s\n" % value)
            p = subprocess.run([build_file("plenumd"), "--check", "--config", path], capture_output=True, text=True)
            self.assertEqual(p.returncode, status, p.stderr)


if __name__ == "__main__":
    unittest.main()
