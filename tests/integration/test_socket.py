# SPDX-License-Identifier: MIT
"""The path of the socket, its permissions, and its life (contract 3; cases C17 C31 C60 C61 C62 C65)."""
import contextlib
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import time
import unittest

from harness import TIMEOUT, Case, Client, Daemon, Timeout, alive, build_file, inotify, request, until, user

NOBODY = 65534
need_root = unittest.skipUnless(os.getuid() == 0, "needs root, to become somebody else")


class Refusals(Case):
    """A start that must fail: nothing deleted, a message, an exit code."""

    def cannot_start(self, daemon, codes=(69, 71, 73, 77, 78), words=(), timeout=TIMEOUT):
        p = daemon.launch()
        try:
            status = p.wait(timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
            self.fail("it runs, and must not:\n" + daemon.log())
        log = daemon.log()
        self.assertIn(status, codes, log)
        for word in words:
            self.assertIn(word, log)
        return log

    def idle_daemon(self, **options):
        d = Daemon({}, start=False, **options)
        return self.track(d)

    def folder(self, d, mode=0o700):
        os.mkdir(d.run + "/plenum", 0o700)
        os.chmod(d.run + "/plenum", mode)
        return d.run + "/plenum"


class PathTest(Refusals):
    def test_default_place_and_modes(self):
        d, = self.start(agents=())
        self.assertEqual(stat.S_IMODE(os.stat(d.socket).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(d.run + "/plenum").st_mode), 0o700)
        self.assertTrue(stat.S_ISSOCK(os.stat(d.socket).st_mode))

    def test_modes_do_not_follow_the_umask(self):
        for umask in (0, 0o777):
            with self.subTest(oct(umask)):
                d, = self.start(agents=(), umask=umask)
                self.assertEqual(stat.S_IMODE(os.stat(d.socket).st_mode), 0o600)
                self.assertEqual(stat.S_IMODE(os.stat(d.run + "/plenum").st_mode), 0o700)

    def test_environment_variable_wins(self):
        d = self.idle_daemon(env={})
        other = d.root + "/other.sock"
        d.env["PLENUM_SOCKET"] = other
        default, d.socket = d.socket, other
        d.start()
        self.assertFalse(os.path.exists(default))

    def test_option_wins(self):
        d = self.idle_daemon(env={})
        d.env["PLENUM_SOCKET"] = d.root + "/env.sock"
        d.socket = d.root + "/option.sock"
        d.args = ["--socket", d.socket]
        d.start()
        self.assertFalse(os.path.exists(d.root + "/env.sock"))

    def test_configured(self):
        d = self.idle_daemon()
        d.sections = {"daemon": {"socket": d.root + "/conf.sock"}}
        d.write_conf()
        d.socket = d.root + "/conf.sock"
        d.start()
        self.assertIn(d.socket, d.log())

    def test_the_path_is_said(self):
        d, = self.start(agents=())
        self.assertIn(d.socket, d.log())

    def test_longest_path(self):
        d = self.idle_daemon()
        d.socket = d.root + "/" + "s" * (107 - len(d.root) - 1)
        self.assertEqual(len(d.socket), 107)
        d.env["PLENUM_SOCKET"] = d.socket
        d.start()
        self.assertTrue(os.path.exists(d.socket))

    def test_longer_paths_are_refused(self):
        for n in (108, 109, 300):
            with self.subTest(n):
                d = self.idle_daemon()
                path = d.root + "/" + "s" * (n - len(d.root) - 1)
                if n > 255:
                    path = d.root + "/" + "/".join(["s" * 99] * 4)[:n - len(d.root) - 1]
                d.env["PLENUM_SOCKET"] = path
                log = self.cannot_start(d, (64, 73, 78), (path, str(len(path)), "107"))
                self.assertNotIn("Invalid argument", log)
                self.assertFalse([f for f in os.listdir(d.root) if f.startswith("sss")])

    def test_multi_byte_path_is_counted_in_bytes(self):
        d = self.idle_daemon()
        path = d.root + "/" + "\u00e9" * 60
        d.env["PLENUM_SOCKET"] = path
        self.cannot_start(d, (64, 73, 78), (str(len(path.encode())),))

    @need_root
    def test_no_runtime_directory_and_no_place(self):
        d = self.idle_daemon(run_as="nobody")
        d.env = {"PATH": d.env["PATH"], "HOME": d.home}
        log = self.cannot_start(d, (64, 71, 73, 78))
        self.assertIn("/run/plenum", log)
        self.assertIn("XDG_RUNTIME_DIR is not set: log in through PAM", log)
        self.assertEqual([f for f in os.listdir("/") if f.startswith("plenum")], [])

    @need_root
    def test_a_client_without_a_runtime_directory(self):
        """Under cron, su and SDKs with an environment of their own: the login's socket is found, if it is the user's."""
        d = self.idle_daemon()
        script = """
            mount -t tmpfs none /run/user && mkdir -m 700 /run/user/0 /run/user/0/plenum && ln -s %s /run/user/0/plenum/link || exit 99
            unset XDG_RUNTIME_DIR PLENUM_SOCKET
            "$1" ls 2>&1 | sed 's/^/no socket: /'
            mv /run/user/0/plenum/link /run/user/0/plenum/plenum.sock && "$1" ls 2>&1 | sed 's/^/a link: /'
            rm /run/user/0/plenum/plenum.sock
            PLENUM_SOCKET=/run/user/0/plenum/plenum.sock "$2" & daemon=$!
            until "$1" --socket /run/user/0/plenum/plenum.sock ls >/dev/null 2>&1 || ! kill -0 $daemon; do :; done
            "$1" --json ls; kill $daemon; wait
        """ % d.socket
        run = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", build_file("plenumctl"), build_file("plenumd")],
                             env=d.env, capture_output=True, text=True, timeout=60)
        self.assertRegex(run.stdout, "(?m)^no socket: .*/run/plenum/plenum.sock")
        self.assertRegex(run.stdout, "(?m)^a link: .*/run/plenum/plenum.sock")
        self.assertIn('"sessions":[]', run.stdout, run.stderr)

    @need_root
    def test_runtime_directory_of_somebody_else_is_not_used(self):
        d = self.idle_daemon(run_as="nobody")
        d.launch = self.after(d, lambda: (os.chown(d.run, 0, 0), os.chmod(d.run, 0o777)))
        self.cannot_start(d, (64, 71, 73, 78))
        self.assertEqual(os.listdir(d.run), [])

    @staticmethod
    def after(d, change):
        """launch() with the change made after the directory was given to the other uid."""
        real, chown = d.launch, subprocess.run

        def launch(*args, **kw):
            chown(["chown", "-R", d.run_as, d.root], check=True)
            os.chmod(d.root, 0o755)
            change()
            saved, subprocess.run = subprocess.run, lambda *a, **k: None
            try:
                return real(*args, **kw)
            finally:
                subprocess.run = saved

        return launch

    def test_long_path_at_the_client(self):
        """C60: the error has the whole path, its length and the limit."""
        d, _ = self.start()
        for n in (108, 109, 300):
            path = "/tmp/" + "s" * (n - 5)
            for p in (d.ctl("ls", PLENUM_SOCKET=path), d.ctl("--socket", path, "ls"),
                      subprocess.run([build_file("plenum-shim"), "-p", "--input-format", "stream-json", "--output-format", "stream-json"],
                                     env=dict(d.env, PLENUM_SOCKET=path), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                     timeout=TIMEOUT, check=False)):
                self.assertNotEqual(p.returncode, 0)
                for word in ("107", str(n)):
                    self.assertIn(word, p.stderr)
                self.assertRegex(p.stderr, path + r"\b")
        multi = "/tmp/" + "\u00e9" * 60
        self.assertIn("125", d.ctl("ls", PLENUM_SOCKET=multi).stderr)


class StaleTest(Refusals):
    def test_after_kill_9_it_starts_by_itself(self):
        d, = self.start(agents=())
        for _ in range(3):
            d.kill9()
            self.assertTrue(os.path.exists(d.socket))
            d.start()
            d.call("plenum_hello")

    def test_a_stopped_daemon_is_not_dead(self):
        d, = self.start(agents=())
        ino = os.stat(d.socket).st_ino
        os.kill(d.pid, signal.SIGSTOP)
        fill = []
        for backlog_full in (False, True):
            if backlog_full:
                try:
                    for _ in range(5000):
                        s = socket.socket(socket.AF_UNIX)
                        s.setblocking(False)
                        fill.append(s)
                        s.connect(d.socket)
                except BlockingIOError:
                    pass
            second = Daemon({}, root=d.root, start=False)
            log = self.cannot_start(second, (69,))
            self.assertIn("running", log)
            self.assertEqual(os.stat(d.socket).st_ino, ino)
        for s in fill:
            s.close()
        os.kill(d.pid, signal.SIGCONT)
        d.call("plenum_hello")

    def test_second_daemon(self):
        d, = self.start(agents=())
        a = d.client()
        second = Daemon({}, root=d.root, start=False)
        log = self.cannot_start(second, (69,))
        self.assertIn(str(d.pid), log)
        a.hello()
        d.call("plenum_hello")

    def test_two_starts_at_once_leave_one(self):
        for _ in range(5):
            d = self.idle_daemon()
            second = Daemon({}, root=d.root, start=False)
            first_p, second_p = d.launch(), second.launch()
            until(lambda: first_p.poll() is not None or second_p.poll() is not None, what="one of two to give up")
            loser, winner = (first_p, second_p) if first_p.poll() is not None else (second_p, first_p)
            self.assertEqual(loser.returncode, 69)
            d.process = winner
            until(d.answers)
            d.call("plenum_hello")

    def test_other_things_at_the_path_stay(self):
        def regular(path):
            with open(path, "w") as f:
                f.write("precious")
            return lambda: open(path).read() == "precious"

        def directory(path):
            os.mkdir(path)
            return lambda: os.path.isdir(path)

        def link_to_file(path):
            with open(path + ".target", "w") as f:
                f.write("precious")
            os.symlink(path + ".target", path)
            return lambda: os.path.islink(path) and open(path + ".target").read() == "precious"

        def dangling(path):
            os.symlink(path + ".nowhere", path)
            return lambda: os.path.islink(path) and not os.path.exists(path + ".nowhere")

        def fifo(path):
            os.mkfifo(path)
            return lambda: stat.S_ISFIFO(os.lstat(path).st_mode)

        for make in (regular, directory, link_to_file, dangling, fifo):
            with self.subTest(make.__name__):
                d = self.idle_daemon()
                self.folder(d)
                there = make(d.socket)
                self.cannot_start(d, (73,), (d.socket,))
                self.assertTrue(there(), "it was touched")

    @need_root
    def test_directory_that_cannot_be_searched(self):
        d = self.idle_daemon(run_as="nobody")
        os.mkdir(d.root + "/shut", 0o700)
        d.env["PLENUM_SOCKET"] = d.root + "/shut/plenum.sock"
        d.launch = PathTest.after(d, lambda: os.chown(d.root + "/shut", 0, 0))
        log = self.cannot_start(d, (73,), (d.root + "/shut",))
        self.assertTrue("ermission denied" in log or "owner 0" in log, log)

    def test_unlinked_at_the_end(self):
        d, = self.start(agents=())
        d.stop()
        self.assertFalse(os.path.lexists(d.socket))
        d.process = None

    def test_not_unlinked_when_it_is_another(self):
        d, = self.start(agents=())
        other = socket.socket(socket.AF_UNIX)
        other.bind(d.socket + ".other")
        os.rename(d.socket + ".other", d.socket)  # at once: the daemon recreates a missing socket
        d.stop()
        self.assertTrue(os.path.lexists(d.socket))
        other.close()
        d.process = None

    @unittest.skipUnless(os.getuid() == 0, "needs root, to leave what belongs to somebody else")
    def test_lock_file_of_root(self):
        """C61: a lock file of root in the user's directory: the error names the cause."""
        d, _ = self.start(run_as="nobody")
        d.stop()
        d.process = None
        path = d.socket + ".lock"
        os.chown(path, 0, 0)
        os.chmod(path, 0o600)
        p = subprocess.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", build_file("plenumd")], env=d.env,
                           capture_output=True, text=True, timeout=TIMEOUT, check=False)
        self.assertEqual(p.returncode, 73)
        self.assertIn(path + ", which belongs to another user: Permission denied", p.stderr)


class PermissionTest(Refusals):
    def test_directory_open_to_others(self):
        d = self.idle_daemon()
        folder = self.folder(d, 0o777)
        self.cannot_start(d, (73, 77), (folder, "777"))

    def test_directory_is_a_link(self):
        d = self.idle_daemon()
        os.mkdir(d.root + "/real", 0o700)
        os.symlink(d.root + "/real", d.run + "/plenum")
        self.cannot_start(d, (73, 77), (d.run + "/plenum",))
        self.assertEqual(os.listdir(d.root + "/real"), [])

    def test_directory_is_a_file(self):
        d = self.idle_daemon()
        open(d.run + "/plenum", "w").close()
        self.cannot_start(d, (73, 77), (d.run + "/plenum",))

    @need_root
    def test_directory_of_somebody_else(self):
        d = self.idle_daemon()
        os.chown(self.folder(d), NOBODY, NOBODY)
        self.cannot_start(d, (73, 77), (d.run + "/plenum", "65534"))

    @need_root
    def test_another_uid_is_closed_before_a_byte(self):
        d, agent = self.start()
        d.open_to_all()
        c = d.client(uid=NOBODY, gid=NOBODY)
        try:
            c.send(user("let me in"))
        except (BrokenPipeError, ConnectionResetError):
            pass
        c.wait_eof()
        self.assertEqual(c.log, [])
        until(lambda: "65534" in d.log(), what="a line in the log")
        self.assertEqual(d.sessions(), {})
        self.assertEqual(agent.starts, 0)

    @need_root
    def test_an_allowed_uid_gets_in(self):
        d, _ = self.start(daemon={"allow_uids": "65534"})
        d.open_to_all()
        c = d.client(uid=NOBODY, gid=NOBODY)
        self.assertEqual(c.hello()["peer"]["uid"], NOBODY)

    @need_root
    def test_an_allowed_group_gets_in(self):
        d, _ = self.start(daemon={"allow_groups": "nogroup"})
        d.open_to_all()
        self.assertEqual(d.client(uid=12345, gid=NOBODY).hello()["peer"]["uid"], 12345)
        self.assertEqual(d.client(uid=12345, gid=12345, groups=[23456, NOBODY]).hello()["peer"]["gid"], 12345)
        for groups in ([], [23456]):
            c = d.client(uid=12345, gid=12345, groups=groups)
            c.wait_eof()
            self.assertEqual(c.log, [])

    @need_root
    def test_an_approving_group(self):
        d, agent = self.start(daemon={"allow_uids": "12345", "approve_groups": "nogroup"})
        d.open_to_all()
        for groups, may in (([23456], False), ([23456, NOBODY], True)):
            c = d.client(uid=12345, gid=12345, groups=groups)
            self.assertIs(c.hello()["peer"]["may_approve"], may)
            self.assertIs(c.attach("s")["approve"], may)
        self.assertIs(d.client().hello()["peer"]["may_approve"], False)

    @need_root
    def test_root_may_connect(self):
        d, = self.start(agents=(), run_as="nobody")
        self.assertEqual(d.call("plenum_hello")["peer"]["uid"], 0)


class RemovalTest(Refusals):
    """C62: the daemon binds again; no other process takes its place meanwhile."""

    def start(self, *args, **options):
        os.close(inotify())  # by which the daemon sees that its socket is gone
        return super().start(*args, **options)

    def back(self, d, remove):
        a = d.attached("s1")
        remove()
        a.hello()
        second = Daemon({}, root=d.root, start=False)
        if os.path.isdir(d.run + "/plenum"):
            self.cannot_start(second, (69,))
        until(d.answers, what="the socket to be there again")
        a.hello()
        self.assertIn("s1", d.sessions())
        self.assertEqual(stat.S_IMODE(os.stat(d.socket).st_mode), 0o600)

    def test_socket_removed(self):
        d, _ = self.start()
        self.back(d, lambda: os.unlink(d.socket))

    def test_directory_removed(self):
        d, _ = self.start()

        def remove():
            os.kill(d.pid, signal.SIGSTOP)      # else it recreates the socket before the directory is gone
            try:
                shutil.rmtree(d.run + "/plenum")
            finally:
                os.kill(d.pid, signal.SIGCONT)
        self.back(d, remove)

    def test_sessions_remain_after_the_socket_was_removed(self):
        """C62: the next client finds the same daemon and its sessions."""
        d, _ = self.start()
        d.attached("s1")
        os.unlink(d.socket)
        until(lambda: os.path.exists(d.socket))
        p = d.ctl("ls")
        self.assertEqual((p.returncode, "s1" in p.stdout), (0, True), p)

    def test_runtime_directory_goes_and_comes_back(self):
        """C59, C62: removed at logout, back at the next login; sessions and connections continue meanwhile."""
        d, agent = self.start()
        a = d.attached("s1")
        child = agent.child()
        os.kill(d.pid, signal.SIGSTOP)  # else it recreates the socket before the directory is gone
        shutil.rmtree(d.run)
        os.kill(d.pid, signal.SIGCONT)
        until(lambda: "the socket is gone" in d.log())
        child.mark(a)
        self.assertFalse(os.path.exists(d.run))
        os.mkdir(d.run, 0o700)
        until(d.answers, what="the socket to be there again")
        self.assertIn("s1", d.sessions())
        os.unlink(d.socket)
        until(d.answers, what="the new folder to be watched")
        second = Daemon({}, root=d.root, start=False)
        p = second.launch()
        self.assertEqual(p.wait(TIMEOUT), 69)


class LimitTest(Refusals):
    def test_out_of_descriptors(self):
        """C65: no busy loop, no flood of log lines, old clients served, new ones as soon as there is room."""
        d, = self.start(agents=(), wrap=["prlimit", "--nofile=40:40"])
        old = d.client()
        old.hello()
        crowd = []
        for _ in range(100):
            s = socket.socket(socket.AF_UNIX)
            s.setblocking(False)
            try:
                s.connect(d.socket)
            except BlockingIOError:
                pass
            crowd.append(s)
        old.hello()
        cpu, begun = d.cpu(), time.monotonic()
        while time.monotonic() - begun < 1.0:
            old.hello()
            time.sleep(0.02)
        self.assertLess(d.cpu() - cpu, 0.4)
        with open(d.log_path) as f:
            lines = f.readlines()
        self.assertLess(len(lines), 60)
        self.assertEqual(len([line for line in lines if "Too many open files" in line]), 1)
        for s in crowd:
            s.close()
        d.call("plenum_hello")

    def test_no_descriptors_for_a_child(self):
        d, agent = self.start()
        a = d.client()
        a.hello()
        n = d.settled_fds()
        high = max(int(f.split(":")[0]) for f in d.fd_list())
        resource.prlimit(d.pid, resource.RLIMIT_NOFILE, (high + 2, 4096))
        self.assertRefused("spawn_failed", a.attach, "s1")
        self.assertEqual(d.settled_fds(), n)
        resource.prlimit(d.pid, resource.RLIMIT_NOFILE, (1024, 4096))
        self.assertEqual(d.sessions(), {})
        a.attach("s1")
        agent.child()

    def test_max_clients(self):
        d, = self.start(agents=(), daemon={"max_clients": "3"})
        held = [d.client() for _ in range(3)]
        for c in held:
            c.hello()
        extra = d.client()
        extra.wait_eof()
        for m in extra.log:
            self.assertEqual(m["code"], "too_many")
        held.pop().close()

        def room():
            c = Client(d.socket)
            try:
                c.hello()
                return True
            except (Timeout, BrokenPipeError, ConnectionResetError):
                return False
            finally:
                c.close()

        until(room, what="room for another")
        for c in held:
            c.hello()


class ActivationTest(Refusals):
    def test_inherited_socket(self):
        d = self.idle_daemon()
        path = d.root + "/activated.sock"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(16)
        d.socket = path
        fd = listener.fileno()
        d.wrap = ["sh", "-c", "exec 3<&%d; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"" % fd, "sh"]
        real = d.launch
        d.launch = lambda *a, **k: real(*a, pass_fds=[fd], **k)
        d.start()
        self.assertIn(path, d.log())
        self.assertFalse(os.path.exists(d.run + "/plenum/plenum.sock"))
        d.stop()
        self.assertTrue(os.path.exists(path), "an inherited socket is not ours to unlink")
        listener.close()
        d.process = None

    def activated(self, d):
        """A socket that the daemon inherits, as from systemd."""
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        d.socket = d.root + "/activated.sock"
        listener.bind(d.socket)
        listener.listen(16)
        fd = listener.fileno()
        d.wrap = ["sh", "-c", "exec 3<&%d; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"" % fd, "sh"]
        real = d.launch
        d.launch = lambda *a, **k: real(*a, pass_fds=[fd], **k)

    def bad_config(self, c, d):
        m = c.wait(event="error")
        self.assertEqual(m["code"], "bad_config")
        self.assertIn(d.conf + ":", m["error"])
        self.assertIn("nonsense", m["error"])
        self.assertIn("correct the file", m["error"])
        c.wait_eof()
        c.close()

    def test_clients_that_wait_are_told_why_it_does_not_start(self):
        d = self.track(Daemon({"daemon": {"nonsense": "1"}}, start=False))
        self.activated(d)
        first, second = Client(d.socket), Client(d.socket)
        first.send(request("r", "plenum_hello"))
        d.process = d.launch()
        self.bad_config(first, d)
        with contextlib.suppress(BrokenPipeError):  # the error was there first, and the daemon waits a second for a request
            second.send(request("r", "plenum_hello"))
        self.bad_config(second, d)
        third = Client(d.socket)  # the daemon waits for more: systemd counts each start
        self.bad_config(third, d)
        del d.sections["daemon"]["nonsense"]
        d.write_conf()
        fourth = Client(d.socket)
        self.assertEqual(fourth.hello()["pid"], d.process.pid)
        fourth.close()

    def test_without_clients_it_ends_at_once(self):
        d = self.track(Daemon({"daemon": {"nonsense": "1"}}, start=False))
        self.activated(d)
        self.assertEqual(d.launch().wait(TIMEOUT), 78)

    def test_readiness_is_told(self):
        d = self.idle_daemon()
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind(d.root + "/notify")
        notify.settimeout(TIMEOUT)
        d.env["NOTIFY_SOCKET"] = d.root + "/notify"
        d.start()
        said = b""
        while b"READY=1" not in said:
            said += notify.recv(4096) + b"\n"
        d.stop()
        while b"STOPPING=1" not in said:
            said += notify.recv(4096) + b"\n"
        notify.close()
        self.assertFalse(alive(d.pid))
        d.process = None


if __name__ == "__main__":
    unittest.main()
