# SPDX-License-Identifier: MIT
"""Clients and the daemon in a terminal that is interrupted or closed (cases C58)."""
import os
import pty
import signal
import unittest

from harness import Case, alive, build_file, until


class TerminalTest(Case):
    def in_terminal(self, d, program, *args):
        pid, fd = pty.fork()
        if pid == 0:
            try:
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for what it starts in the background
                os.execve(build_file(program), [program, *args], d.env)
            finally:
                os._exit(126)
        return pid, fd

    def ended(self, pid):
        return until(lambda: os.waitpid(pid, os.WNOHANG) != (0, 0), what="the program in the terminal to end")

    def test_terminal_of_a_client_ends_that_client_alone(self):
        """C58: Ctrl-C and a closed window; a shutdown ends all sessions."""
        d, agent = self.start()
        a = d.attached("other")
        other = agent.child()
        mine = None
        for leave in (lambda fd: os.write(fd, b"\x03"), os.close):
            pid, fd = self.in_terminal(d, "plenumctl", "attach", "mine")
            mine = mine or agent.child()
            until(lambda: d.sessions().get("mine", {}).get("attachments") == 1)
            leave(fd)
            self.ended(pid)
            until(lambda: d.sessions()["mine"]["attachments"] == 0)
            for child in (mine, other):
                child.caught_up()
                self.assertEqual(child.had("signal") + child.had("eof"), [])
        other.mark(a)
        self.assertEqual(d.ctl("shutdown").returncode, 0)
        d.ended()
        self.assertFalse(alive(mine.pid) or alive(other.pid))
        d.process = None

    def daemon_in_terminal(self, **options):
        d, agent = self.start(**options)
        d.stop()
        d.process = None
        pid, fd = self.in_terminal(d, "plenumd")
        self.addCleanup(self.gone, pid)

        def accepts():
            try:
                d.call("plenum_hello")
                return True
            except OSError:
                return False

        until(accepts, what="plenumd in the terminal to accept")
        return d, agent, pid, fd

    def gone(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def test_daemon_goes_on_when_its_terminal_closes(self):
        """C58: sessions continue, without a place to log to."""
        d, agent, pid, fd = self.daemon_in_terminal()
        a = d.attached()
        child = agent.child()
        os.close(fd)
        for _ in range(20):
            child.mark(a)
            d.call("plenum_hello")
        self.assertEqual(child.had("signal"), [])
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertFalse(alive(child.pid))

    def test_first_interrupt_is_orderly_and_the_second_fast(self):
        """C58: the first is an orderly stop, the second a fast one; the children get no signal from the terminal."""
        for twice in (False, True):
            d, agent, pid, fd = self.daemon_in_terminal(mode={"eof": "ignore", "term": "ignore"} if twice else {},
                                                        profile={"stop_grace": "30s"})
            a = d.attached()
            child = agent.child()
            os.write(fd, b"\x03")
            a.event("shutting_down")
            child.event("eof")
            if twice:
                os.write(fd, b"\x03")
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            until(lambda: not alive(child.pid))
            self.assertEqual(child.had("signal"), [])
            os.close(fd)
            a.close()


if __name__ == "__main__":
    unittest.main()
