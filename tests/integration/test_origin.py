# SPDX-License-Identifier: MIT
"""The origin of a process: the streams of a child cannot be opened, and an agent's process is recognised, however it
was started and whatever its parent is by now (contract 14)."""
import ctypes
import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import PYTHON, Agent, Case, Daemon, alive, build_file, children_of, request, until, user

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
        d, _, child, a = self.open()
        got = self.opened(d, child, child.pid)
        self.assertEqual(set(got.values()), {"ENXIO"}, got)
        child.prompted(a, "hi", uuid="u")
        self.assertNone(child.seen(type="smuggled"))

    def test_the_end_of_input_reaches_the_child(self):
        d, agent = self.start()
        d.attached("s")
        child = agent.child()
        d.call("plenum_stop", session="s")
        child.event("eof")

    def test_a_process_that_keeps_stdin_gets_no_further_line(self):
        """It holds the other end when the child is dead: the next prompt goes only to the next child."""
        d, agent, child, a = self.open()
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
        """No access to its memory, its environment, its descriptors; its children are like any program."""
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


# A hidden process of an agent, with any of fork (twice, for an orphan), setsid, clean (no variables), limits (lowered
# resource limits), deep=N (N processes above it). It writes its pid to FOLDER/pid and waits; for each FOLDER/go.N it
# connects, attaches to the session named there, as an approver and without, sends plenum_hello, and writes the answers
# to FOLDER/got.N.
STRAY = r"""
import json, os, resource, socket, sys, time
folder, path, how, script = sys.argv[1:5]
how = how.split(",")
if "clean" in how and os.environ.get("PLENUM_CHILD"):
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", script] + sys.argv[1:], {})
if "limits" in how:
    for which in (resource.RLIMIT_RSS, 10):
        resource.setrlimit(which, (1 << 40, 1 << 40))
for _ in range(2 if "fork" in how else 0):
    parent = os.getpid()
    if os.fork(): os._exit(0)
    if "setsid" in how: os.setsid()
    while os.getppid() == parent: time.sleep(0.001)  # not an orphan yet
for word in how:
    if word.startswith("deep="):
        for _ in range(int(word[5:])):
            if os.fork():
                os.wait()
                os._exit(0)
def write(name, value):
    with open(folder + "/new", "w") as f: f.write(value)
    os.rename(folder + "/new", folder + "/" + name)
def ask(f, rid, **request):
    f.write(json.dumps({"type": "control_request", "request_id": rid, "request": request}).encode() + b"\n")
    f.flush()
    while True:
        m = json.loads(f.readline())
        if m["type"] == "control_response" and m["response"].get("request_id") == rid: return m["response"]
write("pid", str(os.getpid()))
n = 0
while True:
    while not os.path.exists(folder + "/go.%d" % n): time.sleep(0.005)
    with open(folder + "/go.%d" % n) as f: session = f.read()
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    f = s.makefile("rwb")
    got = {"approve": ask(f, "1", subtype="plenum_attach", session=session, approve=True, create="never"),
           "attach": ask(f, "2", subtype="plenum_attach", session=session, create="never"),
           "hello": ask(f, "3", subtype="plenum_hello")}
    f.close()
    s.close()
    write("got.%d" % n, json.dumps(got))
    n += 1
"""


AGENT = "an agent started this program (run it from a shell of your own)"
GONE = ("the process that made this connection has ended, so that its origin cannot be seen (connect from the process that "
        "stays)")
FOREIGN = "an agent started this program: it may act in that agent's own session only (run it from a shell of your own)"
HOMELESS = "plenum_attach: %s; its session is not known, is gone, or has agent_peers = none"


class Stray:
    """One such process, below the child of a test or below the test itself (spawn: a function that starts a command
    line)."""

    def __init__(self, d, spawn, how, session="s", name="stray", path=None):
        self.folder, self.asked, self.session = d.root + "/" + name, 0, session
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o777)
        spawn([PYTHON, "-I", "-S", "-c", STRAY, self.folder, path or d.socket, how, STRAY])
        self.pid = int(self.read("pid", 60))  # many processes start slowly on a busy machine

    def read(self, name, timeout=None):
        until(lambda: os.path.exists(self.folder + "/" + name), timeout, what=name + " of the process")
        with open(self.folder + "/" + name) as f:
            return f.read()

    def ask(self, session=None):
        """Return its answers about a session: {approve, attach, hello}, the inner parts."""
        go = self.folder + "/go.%d" % self.asked
        with open(go + ".new", "w") as f:
            f.write(session or self.session)
        os.rename(go + ".new", go)
        self.asked += 1
        return json.loads(self.read("got.%d" % (self.asked - 1)))

    def gone(self):
        until(lambda: not alive(self.pid), what="the end of the process")

    def end(self):
        if alive(self.pid):
            os.kill(self.pid, signal.SIGKILL)


class OriginCase(Case):
    def stray(self, d, child, how, **more):
        s = Stray(d, lambda argv: child.spawn(argv, setsid=True), how, **more)
        self.addCleanup(s.end)
        return s

    def own(self, d, how="", env=None, **more):
        """The same program, started by the user; env: additions to its environment."""
        p = []
        s = Stray(d, lambda argv: p.append(subprocess.Popen(argv, env=dict(os.environ, **env or {}))), how, **more)
        self.addCleanup(lambda: (s.end(), p[0].wait()))
        return s

    def is_agent(self, got, session="s"):
        """The requested session is that of the agent that started it."""
        self.refused(got["approve"], "you cannot be an approver: " + AGENT)
        answer = got["attach"]["response"]
        self.assertEqual((answer["peer"], answer.get("agent_of"), answer["approve"], answer["why"]),
                         ("agent", session, False, AGENT), answer)
        self.is_peer(got["hello"], AGENT, session)

    def is_foreign(self, got, session="s"):
        """The requested session is another one than that of the agent that started it."""
        self.refused(got["approve"], "you cannot be an approver: " + AGENT)
        self.refused(got["attach"], FOREIGN)
        self.is_peer(got["hello"], AGENT, session)

    def is_homeless(self, got, why=None):
        """It counts as a process of an agent, of no known session."""
        for answer in (got["approve"], got["attach"]):
            self.refused(answer, HOMELESS % (why or AGENT))
        self.is_peer(got["hello"], why or AGENT, None)

    def refused(self, answer, text):
        self.assertEqual((answer.get("code"), answer.get("error")), ("not_allowed", text), answer)

    def is_peer(self, hello, why, session):
        peer = hello["response"]["peer"]
        self.assertEqual((peer["peer"], peer["why"], peer.get("agent_of")), ("agent", why, session), peer)

    def is_own(self, got):
        self.assertEqual(got["approve"]["subtype"], "success", got["approve"])
        answer = got["approve"]["response"]
        self.assertEqual((answer["peer"], answer.get("why"), answer.get("agent_of")), ("own", None, None))


class OriginTest(OriginCase):
    def test_a_program_of_the_user(self):
        d, _ = self.start()
        d.attached("s")
        self.is_own(self.own(d, "fork,setsid,clean").ask())

    def test_disguises(self):
        """Of the correct session each time, also beside another running one: it acts only in that one."""
        d, agent = self.start(agents=("agent", "other"))[:2]
        d.attached("s")
        child = agent.child()
        d.attached("t", profile="other")
        other = self.agents[1].child()
        for i, how in enumerate(("", "clean", "fork", "fork,clean", "fork,setsid,clean", "setsid,clean,limits")):
            with self.subTest(how):
                mine, others = self.stray(d, child, how, name="s%d" % i), self.stray(d, other, how, name="t%d" % i)
                self.is_agent(mine.ask())
                self.is_foreign(mine.ask("t"))
                self.is_agent(others.ask("t"), "t")
                self.is_foreign(others.ask("s"), "t")

    def test_one_that_drops_all_marks_is_of_no_session(self):
        d, agent = self.start(agents=("agent", "other"))[:2]
        d.attached("s")
        child = agent.child()
        d.attached("t", profile="other")
        self.agents[1].child()
        s = self.stray(d, child, "fork,setsid,clean,limits")
        for session in "st":
            self.is_homeless(s.ask(session))

    def test_an_environment_that_names_another_session(self):
        d, agent = self.start(agents=("agent", "other"))[:2]
        d.attached("s")
        child = agent.child()
        d.attached("t", profile="other")
        other = self.agents[1].child()
        lie = ["/usr/bin/env", "PLENUM_CHILD=t", "PLENUM_INSTANCE=" + other.env["PLENUM_INSTANCE"]]
        for i, how in enumerate(("", "fork,setsid")):
            s = Stray(d, lambda argv: child.spawn(lie + argv, setsid=True), how, name="lie%d" % i)
            self.addCleanup(s.end)
            self.is_agent(s.ask())
            self.is_foreign(s.ask("t"))
        s = Stray(d, lambda argv: child.spawn(lie[:1] + lie[2:] + argv, setsid=True), "fork,setsid,limits", name="lie")
        self.addCleanup(s.end)
        for _ in range(2):  # the second time it is known
            for session in "st":
                self.is_homeless(s.ask(session))
        s = self.own(d, "fork,setsid", env={"PLENUM_INSTANCE": other.env["PLENUM_INSTANCE"]}, name="own")
        self.is_homeless(s.ask("t"))

    def test_an_environment_that_names_a_session(self):
        """A process with no other mark: the environment counts, unless it is about another daemon's sessions."""
        d, agent = self.start(agents=("agent", "other"))[:2]
        d.attached("s")
        agent.child()
        d.attached("t", profile="other")
        self.agents[1].child()
        s = self.own(d, env={"PLENUM_CHILD": "s"})
        self.is_agent(s.ask())
        self.is_foreign(s.ask("t"))
        self.is_homeless(self.own(d, env={"PLENUM_CHILD": "u"}, name="gone").ask())
        outer = {"PLENUM_CHILD": "s", "PLENUM_INSTANCE": "0123456789abcdef.s"}
        self.is_homeless(self.own(d, env=outer, name="outer").ask())

    def test_any_depth(self):
        d, agent = self.start()
        d.attached("s")
        self.is_agent(self.stray(d, agent.child(), "clean,limits,deep=300").ask())

    def test_plenumctl_says_so(self):
        d, agent = self.start()
        d.attached("s")
        child = agent.child()
        out = d.root + "/said"
        script = ("%s --socket %s attach s </dev/null >/dev/null 2>%s.new; %s --socket %s doctor >>%s.new; mv %s.new %s"
                  % (build_file("plenumctl"), d.socket, out, build_file("plenumctl"), d.socket, out, out, out))
        child.spawn(["/usr/bin/env", "-i", "/bin/sh", "-c", script], setsid=True)
        until(lambda: os.path.exists(out), what="what plenumctl says")
        with open(out) as f:
            said = f.read()
        self.assertIn("you decide nothing here (agent): an agent started this program", said)
        self.assertRegex(said, r'(?m)^note +origin .*"agent": an agent started this program')

    def test_an_attachment_of_each_kind(self):
        d, agent = self.start()
        a = d.attached("s")
        self.assertEqual((a.attached["peer"], a.attached.get("why")), ("own", None))
        b = d.attached("s", role="observer")
        self.assertEqual((b.attached["peer"], b.attached.get("why")), ("observer", None))
        clients = {c["client"]: c["peer"] for c in d.call("plenum_status")["clients"]}
        self.assertEqual([clients[c.attached["client"]] for c in (a, b)], ["own", "observer"])

    @unittest.skipUnless(os.getuid() == 0, "needs root, to connect as another user")
    def test_drivers_hear_why(self):
        d, agent = self.start(daemon={"allow_uids": "12345", "approve_uids": "0"})
        d.attached("s")
        d.open_to_all()
        c = d.client(uid=12345, gid=12345)
        got = c.attach("s")
        self.assertEqual(got["peer"], "driver")
        self.assertIn("not the user of the daemon", got["why"])
        d.sections["daemon"]["approve_uids"] = "12345"
        d.write_conf()
        d.call("plenum_reload")
        got = d.attached("s").attached
        self.assertEqual(got["peer"], "driver")
        self.assertIn("approve_uids", got["why"])


class ConnectionTest(OriginCase):
    """The owner of a connection when the process that made it has ended."""

    # Connects with a socket of its parent, and ends; the parent continues with it, writes FOLDER/sent, and then the
    # answers.
    RELAY = r"""
import os, socket, sys
path, folder, lines = sys.argv[1:4]
s = socket.socket(socket.AF_UNIX)
pid = os.fork()
if pid == 0:
    s.connect(path)
    os._exit(0)
os.waitpid(pid, 0)
s.sendall(lines.encode())
with open(folder + "/new", "w") as f: f.write(str(pid))
os.rename(folder + "/new", folder + "/sent")
f = s.makefile("rb")
answers = [next(line for line in f if b"control_response" in line) for _ in lines.splitlines()]
with open(folder + "/new", "wb") as f: f.writelines(answers)
os.rename(folder + "/new", folder + "/answers")
"""

    def relay(self, d, spawn):
        asks = (request("approve", "plenum_attach", session="s", approve=True), request("attach", "plenum_attach", session="s"),
                request("hello", "plenum_hello"))
        folder = d.root + "/relay"
        os.mkdir(folder)
        self.folder = folder
        spawn(["/usr/bin/env", "-i", PYTHON, "-I", "-S", "-c", self.RELAY, d.socket, folder,
               "".join(json.dumps(o) + "\n" for o in asks)])

    def answers(self):
        """As Stray.ask()."""
        until(lambda: os.path.exists(self.folder + "/answers"), what="the answers")
        with open(self.folder + "/answers") as f:
            return {o["request_id"]: o for o in (json.loads(line)["response"] for line in f)}

    def test_a_number_that_is_used_again(self):
        """While the daemon is stopped an agent's process connects and ends, and the user starts one with its pid."""
        d, agent = self.start()
        d.attached("s")
        child = agent.child()
        os.kill(d.pid, signal.SIGSTOP)
        try:
            self.relay(d, lambda argv: child.spawn(argv, setsid=True))
            until(lambda: os.path.exists(self.folder + "/sent"))
            with open(self.folder + "/sent") as f:
                again = start_with_number(int(f.read()))
            if again is None:
                self.skipTest("the kernel gives no process a chosen number here")
            self.addCleanup(again.end)
        finally:
            os.kill(d.pid, signal.SIGCONT)
        self.is_homeless(self.answers(), GONE)

    def successor(self, d, child, how, name):
        """An orphan of the agent connects and ends; the user starts the leader of a process session with its pid."""
        s = self.stray(d, child, "fork,setsid,clean", name=name + "-first")
        self.is_agent(s.ask())
        s.end()
        until(lambda: not os.path.exists("/proc/%d" % s.pid), what="a free number")

        def spawn(argv):
            again = start_with_number(s.pid, argv)
            if again is None:
                self.skipTest("the kernel gives no process a chosen number here")
            self.addCleanup(again.end)
        own = Stray(d, spawn, how, name=name)
        self.addCleanup(own.end)
        self.assertEqual(os.getsid(own.pid), s.pid)
        return own

    def test_a_number_on_the_record_that_is_used_again(self):
        """The leader of the new process session and its members are the user's."""
        d, agent = self.start()
        d.attached("s")
        child = agent.child()
        for how, name in (("", "leader"), ("deep=1", "member")):
            with self.subTest(name):
                self.is_own(self.successor(d, child, how, name).ask())

    def test_a_stop_spares_a_number_that_is_used_again(self):
        d, agent = self.start()
        a = d.attached("s")
        own = self.successor(d, agent.child(), "deep=1", "member")
        d.call("plenum_stop", session="s")
        a.event("child_exited")
        d.wait_state("s", "asleep")
        self.assertTrue(alive(own.pid))
        self.is_own(own.ask())

    def test_one_that_ends_at_once_counts_as_an_agents(self):
        d, agent = self.start()
        d.attached("s")
        agent.child()
        os.kill(d.pid, signal.SIGSTOP)
        try:
            self.relay(d, lambda argv: self.addCleanup(subprocess.Popen(argv).wait))
            until(lambda: os.path.exists(self.folder + "/sent"))
        finally:
            os.kill(d.pid, signal.SIGCONT)
        self.is_homeless(self.answers(), GONE)

    def test_one_that_was_seen_and_ends(self):
        """It was not an agent's: the process that has the connection now may send prompts, and decides nothing."""
        d, agent = self.start()
        d.attached("s")
        child = agent.child()
        env = {"PATH": os.environ["PATH"]}
        c = d.client(env=env)
        self.assertEqual(c.attach("s")["peer"], "own")
        c.helper.kill()
        c.helper.wait()
        peer = c.hello()["peer"]
        self.assertEqual((peer["peer"], peer["why"], peer.get("agent_of")), ("driver", GONE, None))
        # not "plan": no prompt follows a refused change that restricts the agent
        self.assertRefused("not_allowed", c.request, "set_permission_mode", mode="acceptEdits")
        child.prompted(c, "hi", uuid="u")


class Chosen:
    def __init__(self, pid):
        self.pid = pid

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def start_with_number(pid, argv=("/bin/sleep", "60")):
    """A process with that pid, in a process session of its own, until it is killed; None: not possible (clone3(2),
    set_tid)."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = (ctypes.c_int * 1)(pid)
    # flags pidfd child_tid parent_tid exit_signal stack stack_size tls set_tid set_tid_size
    args = (ctypes.c_uint64 * 10)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(number), 1)
    got = libc.syscall(435, args, ctypes.sizeof(args))
    if got == 0:
        os.setsid()
        os.execv(argv[0], argv)
    return Chosen(got) if got > 0 else None


class LeftoverTest(OriginCase):
    """Processes left behind by an agent."""

    def test_a_stop_ends_them(self):
        """With any environment, but no process of another session or of the user."""
        d, agent = self.start(agents=("agent", "other"))[:2]
        a = d.attached("s")
        child = agent.child()
        d.attached("t", profile="other")
        other = self.agents[1].child()
        mine = [self.stray(d, child, how, name="m%d" % i) for i, how in
                enumerate(("", "clean", "fork", "fork,clean", "fork,setsid,clean", "clean,limits", "clean,deep=300"))]
        others = [self.stray(d, other, how, name="o%d" % i) for i, how in
                  enumerate(("", "fork,setsid,clean", "fork,setsid,clean,limits"))]
        own = self.own(d, "fork,setsid,clean")
        d.call("plenum_stop", session="s")
        a.event("child_exited")
        for s in mine:
            s.gone()
        self.assertEqual([alive(s.pid) for s in others + [own]], [True] * 4)
        self.assertTrue(alive(other.pid))
        d.call("plenum_stop", session="t")
        for s in others:
            s.gone()
        self.assertTrue(alive(own.pid))

    def test_what_only_the_environment_names_ends_with_that_session(self):
        """Also if it connected; but no process with the mark of another session, with any environment."""
        d, agent = self.start(agents=("agent", "other"))[:2]
        d.attached("s")
        child = agent.child()
        d.attached("t", profile="other")
        other = self.agents[1].child()
        lie = ["/usr/bin/env", "PLENUM_INSTANCE=" + other.env["PLENUM_INSTANCE"]]
        marked = Stray(d, lambda argv: child.spawn(lie + argv, setsid=True), "fork,setsid", name="marked")
        self.addCleanup(marked.end)
        bare = [self.stray(d, other, "fork,setsid,limits", name="bare%d" % i) for i in range(2)]
        self.is_homeless(bare[0].ask("t"))
        d.call("plenum_stop", session="t")
        for s in bare:
            s.gone()
        self.assertTrue(alive(marked.pid))
        d.call("plenum_stop", session="s")
        marked.gone()

    def known(self, d, mine):
        """The named ones are listed with their session, the hidden one (the last) without; a stop ends the named
        ones."""
        def listed():
            return {o["pid"]: o["session"] for o in d.call("plenum_status", daemon=True)["leftovers"]}

        until(lambda: listed() == {**{s.pid: "s" for s in mine[:-1]}, mine[-1].pid: None}, what="all of them to be listed")
        d.call("plenum_stop", session="s")
        for s in mine[:-1]:
            s.gone()
        self.assertTrue(alive(mine[-1].pid))

    def test_a_crash_of_the_child_leaves_them(self):
        d, _, child, a = self.open()
        mine = [self.stray(d, child, how, name="m%d" % i) for i, how in
                enumerate(("", "clean", "fork,setsid,clean", "fork,setsid,clean,limits"))]
        child.kill()
        a.event("child_exited")
        self.known(d, mine)

    def test_the_end_of_the_daemon_ends_them(self):
        d, agent = self.start()
        d.attached("s")
        child = agent.child()
        mine = [self.stray(d, child, how, name="m%d" % i) for i, how in
                enumerate(("clean", "fork,setsid,clean", "fork,setsid,clean,limits"))]
        own = self.own(d, "fork,setsid,clean")
        d.stop()
        for s in mine:
            s.gone()
        self.assertTrue(alive(own.pid))
        d.start()
        self.is_own(own.ask())

    def test_the_next_daemon_ends_what_a_killed_one_left(self):
        """By the mark; one without it by the record, since it became the daemon's orphan and connected."""
        d, agent = self.start()
        d.attached("s")
        child = agent.child()
        mine = [self.stray(d, child, how, name="m%d" % i) for i, how in
                enumerate(("", "clean", "fork,setsid,clean", "fork,setsid,clean,limits"))]
        own = self.own(d, "fork,setsid,clean")
        self.is_homeless(mine[-1].ask())
        d.sessions()
        d.kill9()
        d.start()
        for s in mine:
            s.gone()
        self.is_own(own.ask())

    @unittest.skipUnless(os.getuid() == 0, "needs root, for a process that the daemon may not end")
    def test_what_cannot_be_ended_stays_known(self):
        """A process of another user (sudo), which outlives session and daemon: the next daemon knows it."""
        d, agent = self.start(run_as="nobody")
        a = d.attached("s")
        agent.child()
        s = self.own(d, "clean")
        d.stop()
        self.assertEqual(self.left(d), [])
        with open("/proc/%d/stat" % s.pid) as f:
            start = int(f.read().rpartition(")")[2].split()[19])
        self.set_left(d, [[s.pid, start, 0]])
        d.start()
        self.is_homeless(s.ask())
        d.stop()
        self.assertEqual(self.left(d), [[s.pid, start, 0]])
        self.set_left(d, [[s.pid, start + 1, 0]])  # another process that had the pid
        d.start()
        self.is_own(s.ask())
        del a

    def left(self, d):
        """Return the left-overs in the first line of the table on disk; the last line repeats it."""
        with open(d.state + "/plenum/sessions.json", "rb") as f:
            lines = f.read().splitlines()
        self.assertEqual(lines[0], lines[-1])
        return json.loads(lines[0])["left"]

    def set_left(self, d, left):
        d.change_table(lambda o: "left" in o and o.update(left=left))
        self.assertEqual(self.left(d), left)

    def test_an_upgrade_keeps_what_is_known(self):
        d, agent = self.start()
        d.attached("s")
        child = agent.child()
        s = self.stray(d, child, "fork,setsid,clean,limits")
        self.is_homeless(s.ask())
        c = d.client()
        c.request("plenum_upgrade")
        self.is_homeless(s.ask())
        self.assertEqual(c.hello()["peer"]["peer"], "own")
        self.assertEqual(os.stat("/proc/%d/mem" % d.pid).st_uid, 0)
        d.call("plenum_stop", session="s")
        s.gone()


class ControlGroupTest(OriginCase):
    """A wrapper may put the child into a control group of its own, like `systemd-run --scope`."""

    def groups(self, root, n):
        """Directories of the unified hierarchy, mounted for this test."""
        top = root + "/cgroup"
        os.mkdir(top)
        if subprocess.run(["mount", "-t", "cgroup2", "none", top], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("the unified hierarchy of control groups cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", top], check=True)
        found = []
        for i in range(n):
            found.append("%s/plenum-test-%d-%d" % (top, os.getpid(), i))
            os.mkdir(found[-1])
            self.addCleanup(lambda path=found[-1]: until(lambda: self.removed(path), what="an empty control group"))
        return found

    def removed(self, path):
        try:
            os.rmdir(path)
        except OSError as e:
            return e.errno != errno.EBUSY
        return True

    def test_what_has_nothing_else(self):
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        self.addCleanup(shutil.rmtree, root, True)
        groups = self.groups(root, 2)
        made = [Agent(root + "/" + name, name) for name in ("agent", "other")]
        self.agents += made
        sections = {"daemon": {"default_profile": "agent"}}
        for a, group in zip(made, groups):
            move = shlex.quote("echo $$ >%s/cgroup.procs; exec \"$@\"" % group)
            sections["profile " + a.name] = {"command": "/bin/sh -c %s sh %s" % (move, a.command)}
        d = self.track(Daemon(sections))
        strays = []
        for a, session in zip(made, "st"):
            client = d.attached(session, profile=a.name)
            child = a.child()
            child.mark(client)
            strays.append(self.stray(d, child, "fork,setsid,clean,limits", session=session, name=session + "1"))
            self.is_agent(strays[-1].ask(), session)
        d.call("plenum_stop", session="s")
        strays[0].gone()
        self.assertTrue(alive(strays[1].pid))
        d.call("plenum_stop", session="t")
        strays[1].gone()
        d.wait_state("t", "asleep")  # the groups are empty


class InnerDaemon(Daemon):
    """plenumd as process 1 of a pid namespace of its own."""

    @property
    def pid(self):
        inner = [pid for pid, _ in children_of(self.process.pid)]
        return inner[0] if inner else self.process.pid

    def stop(self, status=0, timeout=None):
        os.kill(self.pid, signal.SIGTERM)
        self.ended(status, timeout)

    def kill9(self):
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait()

    def enter(self):
        """Return the prefix that starts a command in that namespace."""
        return ["nsenter", "--pid", "--mount", "-t", str(self.pid)]

    def finish(self):
        """The daemon cannot see the process of the test, which therefore stops nothing: plenumctl does, from inside."""
        for name in self.sessions():
            subprocess.run([*self.enter(), build_file("plenumctl"), "--socket", self.socket, "stop", "--kill", "--forget", name],
                           check=True, stdout=subprocess.DEVNULL)
        super().finish()


def may_unshare():
    return subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


class NamespaceTest(OriginCase):
    def start_inside(self):
        if not may_unshare():
            self.skipTest("no pid namespace can be made here")
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        agent = Agent(root + "/agent")
        self.agents.append(agent)
        d = self.track(InnerDaemon({"daemon": {"default_profile": "agent"}, "profile agent": {"command": agent.command}}, root=root,
                                   wrap=["unshare", "--pid", "--fork", "--mount-proc"], start=False))
        d.start()
        return d, agent

    def inside(self, d, how="", **more):
        """A program started by the user in that namespace."""
        p = []
        s = Stray(d, lambda argv: p.append(subprocess.Popen(d.enter() + argv)), how, **more)
        self.addCleanup(lambda: (p[0].kill(), p[0].wait()))
        return s

    def test_the_daemon_is_process_1(self):
        d, agent = self.start_inside()
        d.attached("s")
        child = agent.child()
        self.assertEqual(child.start["ppid"], 1)
        for i, how in enumerate(("clean", "fork,setsid,clean", "clean,limits")):
            s = Stray(d, lambda argv: child.spawn(argv, setsid=True), how, name="m%d" % i)
            self.is_agent(s.ask())
        self.is_own(self.inside(d).ask())

    def test_a_client_of_another_namespace(self):
        d, agent = self.start_inside()
        c = d.client()
        got = c.attach("s")
        agent.child()
        self.assertEqual((got["peer"], got["approve"]), ("driver", False))
        self.assertIn("another pid namespace", got["why"])
        self.assertIn("another pid namespace", self.assertRefused("not_allowed", d.client().attach, "s", approve=True).text)
        self.assertIn("another pid namespace", self.assertRefused("not_allowed", d.call, "plenum_stop", session="s").text)
        self.assertEqual(d.log().count("another pid namespace"), 1, "said once, not for each client")


if __name__ == "__main__":
    unittest.main()
