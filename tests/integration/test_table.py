# SPDX-License-Identifier: MIT
"""The folder of the table of sessions: who has it, what is in it, what becomes of a damaged one (DESIGN 8)."""
import os

from harness import Case, Daemon, TIMEOUT


class FolderTest(Case):
    def beside(self, d):
        """Another daemon on the same folder, with a socket of its own; not started."""
        other = Daemon({"daemon": {"state_dir": d.state + "/plenum"}}, start=False)
        self.addCleanup(other.destroy)
        return other

    def refused(self, daemon):
        p = daemon.launch()
        self.assertEqual(p.wait(TIMEOUT), 69, daemon.log())
        return daemon.log()

    def test_the_second_daemon_does_not_start(self):
        d, agent = self.start(mode={"session_id": "conv-1"})
        a = d.attached()
        agent.child()
        other = self.beside(d)
        log = self.refused(other)
        self.assertIn("another plenumd with pid %d, which listens on %s uses the folder %s/plenum" % (d.pid, d.socket, d.state),
                      log)
        self.assertEqual(log.count("another plenumd"), 1)
        self.assertFalse(os.path.exists(other.socket))
        a.sync()
        self.assertEqual(agent.starts, 1)

    def test_the_second_one_says_it_after_an_upgrade_too(self):
        d, = self.start(agents=())
        other = self.beside(d)
        d.call("plenum_upgrade")
        self.assertIn("with pid %d, which listens on %s" % (d.pid, d.socket), self.refused(other))

    def test_no_lock_is_left_by_a_killed_one(self):
        d, agent = self.start(mode={"session_id": "conv-1"})
        d.attached()
        agent.child()
        d.kill9()
        other = self.beside(d)
        other.start()
        self.assertEqual(other.state_of("s"), "asleep")
        other.stop()
        d.start()
