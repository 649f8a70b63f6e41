# SPDX-License-Identifier: MIT
"""Only the requesting client waits for things outside of the daemon (a mount whose server does not answer)."""

import ctypes
import os
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import types
import unittest

from harness import TIMEOUT, PlenumError, Case, alive, build_file, dump, inotify, perm, request, until, user
from standstill import standstill
from test_stuck import HeldCase

LIBC = ctypes.CDLL(None, use_errno=True)
MNT_DETACH = 2
LOOKUP, GETATTR, OPEN, READ, INIT, ENOSYS = 1, 3, 14, 15, 26, 38
FILE = struct.pack("<6Q3I7I", 2, 4096, 8, 0, 0, 0, 0, 0, 0, 0o100666, 1, 0, 0, 0, 4096, 0)  # fuse_attr
DIRECT_IO = 1  # before a file opened with it is mapped, its changed pages are written

# Hang in mmap(2), which holds the lock of the memory that a reader of /proc/PID/environ needs.
HANG_IN_MMAP = """
import mmap, os
page = %r
direct, cached = os.open(page, os.O_RDONLY), os.open(page, os.O_RDWR)
changed = mmap.mmap(cached, 4096)
changed[0] = 1
mmap.mmap(direct, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
"""


# An orphan of an agent that has given up the mark of its session.
UNMARKED = """
import os, resource, time
parent = os.getpid()
if os.fork(): os._exit(0)
os.setsid()
for which in (resource.RLIMIT_RSS, 10): resource.setrlimit(which, (1 << 40, 1 << 40))
while os.getppid() == parent: time.sleep(0.001)
"""


class DeadMount:
    """A FUSE mount whose server answers only its initialization: a process that looks into it cannot even be killed.
    Only its file `page` can be opened and read, but not written."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="pl-dead-")
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % self.fd
        if LIBC.mount(b"dead", self.dir.encode(), b"fuse", 0, options) != 0:
            self.close(mounted=False)
            raise OSError(ctypes.get_errno(), "mount")
        self.over, self.asked = threading.Event(), 0
        self.answers, self.kept = False, []
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while not self.over.is_set():
            while self.answers and self.kept:
                self._answer(*self.kept.pop())
            if not select.select([self.fd], [], [], 0.05)[0]:
                continue
            try:
                request = os.read(self.fd, 1 << 17)
            except OSError:
                continue
            _, opcode, unique = struct.unpack_from("<IIQ", request)
            node, name = struct.unpack_from("<Q", request, 16)[0], request[40:]
            if opcode == INIT:
                body = struct.pack("<IIIIHHI", 7, 31, 0, 0, 0, 0, 4096).ljust(64, b"\0")
            elif opcode == LOOKUP and name == b"page\0":
                body = struct.pack("<4Q2I", 2, 0, 1 << 30, 1 << 30, 0, 0) + FILE
            elif opcode == GETATTR and node == 2:
                body = struct.pack("<Q2I", 1 << 30, 0, 0) + FILE
            elif opcode == OPEN:
                writes = struct.unpack_from("<I", request, 40)[0] & os.O_RDWR
                body = struct.pack("<Q2I", 0, 0 if writes else DIRECT_IO, 0)
            elif opcode == READ:
                body = bytes(4096)
            else:
                self.kept.append((opcode, unique))
                self.asked += 1
                continue
            self._reply(unique, body)

    def _reply(self, unique, body, error=0):
        os.write(self.fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)

    def _answer(self, opcode, unique):
        """It is an empty directory that everybody may use."""
        attributes = struct.pack("<QII6Q3I4I3I", 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
        if opcode == GETATTR:
            self._reply(unique, attributes)
        else:
            self._reply(unique, b"", -ENOSYS)

    def answer(self):
        """From now on the server answers."""
        self.answers = True

    def fail(self):
        """End the server: all waiting and later processes get ENOTCONN."""
        if not self.over.is_set():
            self.over.set()
            self.thread.join()
            os.close(self.fd)

    def close(self, mounted=True):
        if mounted:
            self.fail()
            LIBC.umount2(self.dir.encode(), MNT_DETACH)
        else:
            os.close(self.fd)
        os.rmdir(self.dir)


def dead_mount(test):
    try:
        mount = DeadMount()
    except OSError as e:
        raise unittest.SkipTest(f"no FUSE mount can be made here: {e}")
    test.addCleanup(mount.close)
    return mount


class Opens:
    """Counts how often a file was opened: once for each process that becomes it."""

    OPEN = 0x20

    def __init__(self, test, path):
        self.fd = inotify()
        test.addCleanup(os.close, self.fd)
        if LIBC.inotify_add_watch(self.fd, path.encode(), self.OPEN) < 0:
            raise OSError(ctypes.get_errno(), "inotify")

    def count(self):
        try:
            got = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return 0
        return len(got) // 16  # events of a file have no name


class StartTest(Case):
    def test_it_takes_one_process_of_ours(self):
        """It reads the environment of the requester, and becomes the program."""
        exe = os.path.join(tempfile.mkdtemp(prefix="pl-"), "plenumd")
        self.addCleanup(shutil.rmtree, os.path.dirname(exe))
        shutil.copy2(build_file("plenumd"), exe)
        d, agent = self.start(wrap=("/bin/sh", "-c", 'shift; exec %s "$@"' % exe, "sh"))
        opens = Opens(self, exe)
        c = d.client(env={"DISPLAY": ":77", "PATH": os.environ["PATH"]})
        c.hello()  # the process that looks where it comes from has ended
        opens.count()
        c.attach("s")
        child = agent.child()
        self.assertEqual(child.env["DISPLAY"], ":77")
        self.assertEqual(opens.count(), 1)
        c.request("plenum_hibernate")
        d.wait_state("s", "asleep")
        other = d.client(env={"DISPLAY": ":78"})
        other.attach("s")
        opens.count()
        other.send(user("wake"))
        self.assertEqual(agent.child().env["DISPLAY"], ":78")
        self.assertEqual(opens.count(), 1)


    @unittest.skipUnless(os.getuid() == 0, "needs root, to become another user")
    def test_a_session_that_became_private_meanwhile(self):
        """A client that waits for the start of a child is checked again after it."""
        mount = dead_mount(self)
        d, agent = self.start(daemon=dict(DeadMountTest.LONG, allow_uids="65534"))
        d.open_to_all()
        link = d.root + "/link"
        os.symlink("/", link)
        a = d.attached("s", cwd=link)
        agent.child()
        a.request("plenum_hibernate")
        d.wait_state("s", "asleep")
        os.unlink(link)
        os.symlink(mount.dir, link)
        b = d.client(uid=65534, gid=65534)
        b.sync()  # its origin is known
        a.send(user("wake"))
        until(lambda: mount.asked, what="a look into the mount")
        waits = b.ask("plenum_attach", session="s", wake=True, approve=False)
        d.sections["profile agent"]["private"] = "yes"
        d.write_conf()
        d.call("plenum_reload")
        self.assertNone(b.seen(type="control_response", response__request_id=waits))
        mount.answer()
        self.assertEqual(b.answer(waits)["response.code"], "not_allowed")
        agent.child()


class DeadMountTest(Case):
    """LONG: no request reaches the limit while a test looks at the waiting ones. SHORT: the limit itself is tested."""

    LONG, SHORT = {"outside_timeout": "10min"}, {"outside_timeout": "2s"}

    def asks(self, d, **members):
        """Return a client whose request hangs at the mount, and that request."""
        a = d.client()
        rid = a.ask("plenum_attach", **members)
        until(lambda: self.mount.asked, what="a look into the mount")
        return a, rid

    def begin(self, limit, **options):
        self.mount = dead_mount(self)
        d, agent = self.start(daemon=limit, **options)
        c = d.attached("well")
        return d, agent, c, agent.child()

    def served(self, c, child):
        """Check that another client and its child are served, in both directions."""
        child.prompted(c, "hello")
        child.print({"type": "assistant", "text": "here"})
        c.wait(type="assistant")
        c.request("plenum_status")

    def test_a_directory(self):
        d, agent, c, child = self.begin(self.LONG)
        a, rid = self.asks(d, session="dead", cwd=self.mount.dir + "/x")
        self.served(c, child)
        b = d.attached("another")  # another start
        self.assertEqual(d.state_of("dead"), "starting")
        self.assertEqual(a.seen(type="control_response"), [])
        a.send(user("behind it"))
        c.request("plenum_stop", session="dead", forget=True)
        e = a.answer(rid)
        self.assertEqual((e["response.subtype"], e["response.code"]), ("error", "spawn_failed"))
        a.error("not_attached")
        self.assertEqual(sorted(d.sessions()), ["another", "well"])
        b.sync()

    def test_a_crowd(self):
        """More requests than there is room for at one mount, and in total: the others are served, and these wait."""
        d, agent, c, child = self.begin(self.LONG)
        crowd = []
        for i in range(70):
            a = d.client()
            crowd.append((a, a.ask("plenum_attach", session="dead-%d" % i, cwd=self.mount.dir + "/x")))
        until(lambda: self.mount.asked, what="a look into the mount")
        d.attached("another")
        self.served(c, child)
        self.assertEqual([a for a, rid in crowd if a.seen(type="control_response")], [])
        self.mount.fail()
        self.assertEqual({a.answer(rid)["response.code"] for a, rid in crowd}, {"spawn_failed"})
        self.assertEqual(sorted(d.sessions()), ["another", "well"])

    def test_many_starts(self):
        """256 processes look into the mount, and more starts wait in line than other requests may."""
        self.mount = dead_mount(self)
        (d,) = self.start(agents=(), daemon=dict(self.LONG, default_profile="idle", max_sessions="700", max_children="700",
                                                 max_clients="700"), profiles={"profile idle": {"command": "cat"}})
        crowd = []
        for i in range(600):
            s = socket.socket(socket.AF_UNIX)
            self.addCleanup(s.close)
            s.connect(d.socket)  # without a timeout: it waits for room in the queue of the socket
            s.settimeout(TIMEOUT)
            s.sendall(dump(request("a", "plenum_attach", session="s%d" % i, cwd=self.mount.dir + "/x")) + b"\n")
            crowd.append(s)
        until(lambda: len(d.sessions()) + len(select.select(crowd, [], [], 0)[0]) >= 600, what="all requests")
        self.assertFalse(select.select(crowd, [], [], 0)[0], "one was refused")
        self.mount.fail()
        for s in crowd:
            self.assertIn(b'"spawn_failed"', s.makefile("rb").readline())
        self.assertEqual(d.sessions(), {})

    def test_the_limit(self):
        d, agent, c, child = self.begin(self.SHORT, profiles={"profile dead": {"command": "/dev/null"}})
        for members in ({"cwd": self.mount.dir}, {"cwd": self.mount.dir + "/x/y"}):
            e = self.assertRefused("timeout", d.client().attach, "dead", **members)
            self.assertIn(self.mount.dir, e.text)
            self.assertIn("outside_timeout", e.text)
        self.assertEqual(list(d.sessions()), ["well"])
        # no other process joins those stuck there, and no other start is delayed
        until(lambda: "other processes wait" in self.assertRefused(
            "timeout", d.client().attach, "dead", cwd=self.mount.dir + "/z").text, what="a refusal at once", every=0.3)
        d.attached("another")
        self.served(c, child)

    @unittest.skipUnless(os.getuid() == 0, "needs root, to become another user")
    def test_a_start_that_nobody_waits_for(self):
        """The connection of the client that makes the session is closed: if the start fails, the session is removed."""
        self.mount = dead_mount(self)
        d, agent = self.start(daemon={"allow_uids": "65534", **self.LONG}, limits={"uid_bytes": "512K"},
                              profiles={"profile dead": {"command": "cat", "cwd": self.mount.dir + "/x"}})
        d.open_to_all()
        c = d.attached("well")
        child = agent.child()
        a = d.client(uid=65534, gid=65534)
        line = dump(request("long", "plenum_attach", session="dead", profile="dead", approve=False))
        a.raw(line[:-1] + b" " * 400000 + b"}\n")
        until(lambda: self.mount.asked, what="a look into the mount")
        d.client(uid=65534, gid=65534).try_raw(b"x" * 300000)
        a.wait_eof()
        self.served(c, child)
        self.assertEqual(d.state_of("dead"), "starting")
        self.mount.fail()
        until(lambda: list(d.sessions()) == ["well"], what="the end of the session")

    def hanging(self, d, before=lambda c: None):
        """Return a client whose process hangs."""
        c = d.client(last="f.recv(1)\n" + HANG_IN_MMAP % (self.mount.dir + "/page"))
        self.addCleanup(self.mount.fail)  # else the process never ends
        before(c)
        c.helper_sock.send(b"x")
        until(lambda: self.mount.asked, what="a look into the mount")
        return c

    def test_an_environment_of_the_requester(self):
        """Its process hangs after its origin was seen."""
        d, agent, c, child = self.begin(self.SHORT)
        a = self.hanging(d, lambda c: c.request("plenum_hello"))
        e = self.assertRefused("timeout", a.attach, "new", cwd="/")
        self.assertIn("process %d, which asked for it, does not show its environment (outside_timeout" % a.helper.pid, e.text)
        self.served(c, child)

    def test_an_environment_of_a_peer(self):
        """Its process hangs before its origin is seen: it alone waits, and is not trusted until its environment can be
        read."""
        d, agent, c, child = self.begin(self.SHORT)
        d.process.send_signal(signal.SIGSTOP)
        self.addCleanup(d.process.send_signal, signal.SIGCONT)
        a = self.hanging(d)
        d.process.send_signal(signal.SIGCONT)
        rid = a.ask("plenum_attach", session="well", approve=False)
        self.served(c, child)
        answer = a.answer(rid)["response.response"]
        self.assertEqual(answer["peer"], "driver")
        self.assertIn("environment", answer["why"])
        self.assertRefused("not_allowed", a.request, "plenum_stop")
        self.served(c, child)
        self.mount.fail()
        until(lambda: a.request("plenum_hello")["peer"]["peer"] == "own", what="the environment")

    def test_an_environment_of_a_leftover_process(self):
        """The end of sessions waits for it, and not for longer than the limit; nothing else waits."""
        d, agent, c, child = self.begin(self.LONG)
        a = d.attached("killed")
        kid = agent.child()
        b = d.attached("stopped")
        other = agent.child()
        self.hanging_leftover(kid)
        a.request("plenum_stop", how="kill")
        kid.wait_gone()
        self.served(c, child)
        b.request("plenum_stop", how="kill")  # its child need not wait for the end of the other one
        other.wait_gone()
        self.assertEqual(a.events("child_exited") + b.events("child_exited"), [])
        self.mount.fail()
        a.event("child_exited")
        b.event("child_exited")

    def hanging_leftover(self, kid):
        """Let the child leave a process that hangs, and has no other sign of its session than its environment."""
        self.addCleanup(self.mount.fail)  # else it never ends
        kid.spawn([sys.executable, "-I", "-S", "-c", UNMARKED + HANG_IN_MMAP % (self.mount.dir + "/page")], setsid=True)
        until(lambda: self.mount.asked, what="a look into the mount")

    def shorten(self, d):
        d.sections["daemon"] = dict(d.sections["daemon"], **self.SHORT)
        d.write_conf()
        d.call("plenum_reload")

    def test_an_environment_of_a_leftover_process_in_time(self):
        """Without it the session ends after the limit."""
        d, agent, c, child = self.begin(self.LONG)
        a = d.attached("s")
        self.hanging_leftover(agent.child())
        self.shorten(d)
        a.request("plenum_stop")
        a.event("child_exited")
        self.assertIn("environments of processes of agents: not read in time", d.log())
        self.served(c, child)

    def test_a_leftover_process_at_the_end_of_the_daemon(self):
        """It waits for the environment once."""
        d, agent, c, child = self.begin(self.LONG)
        d.attached("s")
        self.hanging_leftover(agent.child())
        self.shorten(d)
        d.stop()
        d.process = None
        self.assertEqual(d.log().count("environments of processes of agents: not read in time"), 1)

    def test_a_leftover_process_at_a_second_signal(self):
        """It does not wait."""
        d, agent, c, child = self.begin(self.LONG)
        d.attached("s")
        kid = agent.child()
        self.hanging_leftover(kid)
        d.process.send_signal(signal.SIGTERM)
        kid.wait_gone()
        child.wait_gone()
        d.stop()
        d.process = None

    def test_it_answers_late(self):
        d, agent, c, child = self.begin(self.LONG)
        a, rid = self.asks(d, session="dead", cwd=self.mount.dir + "/x")
        self.mount.fail()
        e = a.answer(rid)
        self.assertEqual(e["response.code"], "spawn_failed")
        self.assertIn("as cwd", e["response.error"])
        self.assertEqual(list(d.sessions()), ["well"])

    def test_a_session_that_wakes(self):
        d, agent, c, child = self.begin(self.SHORT)
        link = d.root + "/link"
        os.symlink("/", link)
        a = d.attached("s", cwd=link)
        agent.child()
        a.request("plenum_hibernate")
        d.wait_state("s", "asleep")
        os.unlink(link)
        os.symlink(self.mount.dir, link)
        a.send(user("wake"))
        d.wait_state("s", "failed")
        self.served(c, child)
        e = self.assertRefused("timeout", d.client().attach, "s", wake=True)
        self.assertIn("outside_timeout", e.text)

    def test_a_start_that_another_waits_for(self):
        """A request that waits for a child which cannot start is answered; it does not reach a later child."""
        d, agent, c, child = self.begin(self.LONG)
        a, rid = self.asks(d, session="dead", cwd=self.mount.dir + "/x")
        b = d.attached("dead")
        waits = b.ask("set_model", model="m")
        b.sync()
        self.mount.fail()
        self.assertEqual(b.answer(waits)["response.code"], "child_exited")
        self.assertEqual(a.answer(rid)["response.code"], "spawn_failed")

    def test_an_attach_that_is_refused_after_the_start(self):
        """Its requests do not become part of the next one."""
        d, agent, c, child = self.begin(self.LONG)
        a, rid = self.asks(d, session="dead", cwd=self.mount.dir + "/x", approve=True)
        d.sections["daemon"]["approve_uids"] = "54321"
        d.write_conf()
        c.request("plenum_reload")
        self.mount.fail()
        self.assertEqual(a.answer(rid)["response.code"], "not_allowed")
        self.assertEqual(a.attach("well")["session"], "well")

    def test_a_path_of_a_tool(self):
        rules = {"deny_tools": "Read(//secret/**)", "allow_tools": "Read(//tmp/**)"}
        d, agent, c, child = self.begin(self.LONG, profile=rules)
        read = perm("r-1", tool="Read")
        read["request"]["input"] = {"file_path": self.mount.dir + "/x"}
        child.print(read)
        until(lambda: self.mount.asked, what="a look into the mount")
        self.served(c, child)
        child.print(perm("b-1"))
        asked = c.wait(type="control_request")
        self.assertEqual(asked["request.tool_name"], "Bash")  # the other one is not sent before it is judged
        self.mount.fail()
        asked = c.wait(type="control_request")
        self.assertEqual(asked["request.tool_name"], "Read")  # its real name is unknown: an approver decides

    def test_a_path_within_the_limit(self):
        d, agent, c, child = self.begin(self.SHORT, profile={"deny_tools": "Read(//secret/**)"})
        read = perm("r-1", tool="Read")
        read["request"]["input"] = {"file_path": self.mount.dir + "/x"}
        child.print(read)
        asked = c.wait(type="control_request")  # the targets of the links are unknown: an approver decides
        self.assertEqual(asked["request.tool_name"], "Read")
        self.assertIn("outside_timeout", d.log())
        read["request_id"] = "r-2"
        read["request"]["input"] = {"file_path": "/secret/x"}
        child.print(read)
        self.assertEqual(child.answer("r-2")["response.response.behavior"], "deny")
        self.served(c, child)

    def test_a_command_for_questions(self):
        """Sessions are started even if on_pending hangs."""
        self.mount = dead_mount(self)
        d, agent = self.start(daemon=dict(self.SHORT, on_pending=self.mount.dir + "/x", notify_interval="10ms"))
        c = d.attached("well", approve=False)
        child = agent.child()
        ids = iter(range(1000))

        def closed():
            child.print(perm("q-%d" % next(ids)))
            return "does not answer: other processes" in d.log()

        until(closed, what="commands that hang", every=0.3)
        d.attached("another")
        self.served(c, child)

    def test_the_daemon_ends(self):
        d, agent, c, child = self.begin(self.LONG)
        self.asks(d, session="dead", cwd=self.mount.dir + "/x")
        d.stop()
        d.process = None

    def test_an_upgrade(self):
        d, agent, c, child = self.begin(self.LONG)
        a, rid = self.asks(d, session="dead", cwd=self.mount.dir + "/x")
        c.request("plenum_upgrade")
        until(lambda: d.log().count("session dead: a child starts") == 2, what="the start's next try")
        self.served(c, child)
        self.mount.fail()
        self.assertEqual(a.answer(rid)["response.code"], "spawn_failed")

    def test_the_configuration(self):
        """Read by the verb and for SIGHUP; if it does not answer, the old one is kept."""
        d, agent, c, child = self.begin(self.SHORT)
        os.symlink(self.mount.dir, d.config + "/plenum/plenum.conf.d")
        e = self.assertRefused("timeout", d.client().request, "plenum_reload")
        self.assertIn("outside_timeout", e.text)
        self.assertIn(d.config + "/plenum", e.text)
        os.kill(d.pid, signal.SIGHUP)
        self.served(c, child)
        until(lambda: "its files do not answer" in d.log() or "does not answer: other" in d.log(), what="the log")
        os.unlink(d.config + "/plenum/plenum.conf.d")
        self.mount.fail()
        until(lambda: self.reloads(d), what="the processes that hung to be gone")

    @staticmethod
    def reloads(d):
        try:
            d.client().request("plenum_reload")
            return True
        except PlenumError:
            return False

    def test_what_a_child_left(self):
        """The child chooses the path of its socket: one in the mount delays nothing, one elsewhere is removed."""
        d, agent, c, child = self.begin(self.LONG)
        left = d.root + "/left"
        for session, path in (("dead", self.mount.dir + "/x"), ("live", left)):
            a = d.attached(session)
            kid = agent.child()
            kid.print({"type": "system", "subtype": "init", "session_id": session, "messaging_socket_path": path})
            a.wait(type="system", subtype="init")
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(left) if path == left else None
            kid.kill()
            a.event("child_exited")
        self.served(c, child)
        until(lambda: self.mount.asked, what="a look into the mount")
        until(lambda: not os.path.exists(left), what="the removal")


class KilledStartTest(HeldCase):
    """The daemon kills a start whose program runs already: the detached process of that is ended, too, even if the killed
    one is not gone yet."""

    def kill_start(self, subtype, **members):
        """Return the daemon and the pid of the detached process."""
        mount = dead_mount(self)
        d, _ = self.start(daemon=DeadMountTest.LONG)
        note, program = d.root + "/note", d.root + "/program"
        with open(program, "w") as f:
            f.write("#!/bin/sh\nsetsid sleep 1000 &\necho $$ $! > %s.new\nmv %s.new %s\nexec sleep 1001\n" % (
                note, note, note))
        os.chmod(program, 0o755)
        d.sections["profile early"] = {"command": program, "stop_grace": "200ms"}
        d.write_conf()
        d.call("plenum_reload")
        c = d.client()
        d.client().ask("plenum_attach", session="s", profile="early", cwd=mount.dir)
        until(lambda: mount.asked, what="a look into the mount")
        with standstill(d):
            c.send(request("1", subtype, **members))
            mount.answer()
            until(lambda: os.path.exists(note), what="the program to run")
            with open(note) as f:
                leader, detached = map(int, f.read().split())
            until(lambda: os.getsid(detached) == detached, what="the process to be detached")
            self.hold(types.SimpleNamespace(pid=leader))
        return d, detached

    def test_by_the_end_of_the_daemon(self):
        d, detached = self.kill_start("plenum_shutdown")
        d.ended()
        d.process = None
        self.assertFalse(alive(detached))

    def test_by_a_stop(self):
        d, detached = self.kill_start("plenum_stop", session="s", forget=True)
        until(lambda: not alive(detached), what="the process to be gone")
        until(lambda: d.sessions() == {}, what="the session to be gone")
