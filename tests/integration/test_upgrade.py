# SPDX-License-Identifier: MIT
"""plenum_upgrade and SIGUSR2: the running daemon becomes another binary, unnoticed by all clients."""
import harness
import os
import queue
import shutil
import signal
import socket
import tempfile
import threading
import time

import unittest
from harness import (PYTHON, RESULT, TIMEOUT, Case, Client, agents_of, allow, build_file, dump, hook, inotify, mcp, ok, perm,
                     until, user)

LINE = {"type": "assistant", "session_id": "c", "parent_tool_use_id": None, "n": 0,
        "message": {"role": "assistant", "content": [{"type": "text", "text": "@P@"}]}}
FLOOD = dump(LINE).replace(b'"n":0', b'"n":@N@')


class Upgrade(Case):
    def start_copy(self, **options):
        """A daemon with a copy of the binary that the test may replace; .exe is its path."""
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        exe = os.path.join(root, "plenumd")
        shutil.copy2(build_file("plenumd"), exe)
        got = self.start(root=root, wrap=("/bin/sh", "-c", 'shift; exec %s "$@"' % exe, "sh"), **options)
        got[0].exe = exe
        return got

    def replace(self, d, content=None):
        """Put another file in the binary's place, like a package manager."""
        new = d.exe + ".new"
        if content is None:
            shutil.copy2(build_file("plenumd"), new)
        else:
            with open(new, "wb") as f:
                f.write(content)
            os.chmod(new, 0o755)
        os.rename(new, d.exe)

    def upgrade(self, d, client=None, **kw):
        """By the verb; return the new binary's answer."""
        pid, before = d.pid, self.resumes(d)
        c = client or Client(d.socket, "upgrader")
        try:
            answer = c.request("plenum_upgrade", **kw)
        finally:
            if not client:
                c.close()
        self.assertIs(answer["upgraded"], True)
        self.assertEqual(d.pid, pid)
        self.assertEqual(self.resumes(d), before + 1)
        return answer

    @staticmethod
    def resumes(d):
        with open(d.log_path, "rb") as f:
            return f.read().count(b" upgraded: ")


def command_line(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read()
    except OSError:  # it has just ended
        return b""


class Idle(Upgrade):
    def test_nothing_there(self):
        (d,) = self.start(agents=())
        a = self.upgrade(d)
        self.assertEqual(a["version"], d.call("plenum_hello")["version"])
        self.upgrade(d)

    def test_by_signal(self):
        d, _, child, c = self.open()
        os.kill(d.pid, signal.SIGUSR2)
        until(lambda: self.resumes(d) == 1, what="the upgrade")
        child.mark(c)
        os.kill(d.pid, signal.SIGUSR2)
        until(lambda: self.resumes(d) == 2, what="the second upgrade")
        child.mark(c)
        self.assertEqual(c.seen(type="control_response", **{"response.subtype": "error"}), [])

    def test_a_link_is_followed_anew(self):
        """Versions side by side, and a link to the chosen one."""
        for word in ("/plenumd", "plenumd"):
            with self.subTest(word=word):
                root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
                link = os.path.join(root, "plenumd")
                for version in ("v1", "v2"):
                    os.mkdir(os.path.join(root, version))
                    shutil.copy2(build_file("plenumd"), os.path.join(root, version, "plenumd"))
                os.symlink("v1/plenumd", link)
                start = link if word[0] == "/" else word
                d, agent = self.start(root=root, wrap=("/bin/sh", "-c", 'shift; PATH=%s:$PATH exec %s "$@"' % (root, start), "sh"))
                c = d.attached()
                child = agent.child()
                os.symlink("v2/plenumd", link + ".new")
                os.rename(link + ".new", link)
                self.upgrade(d)
                child.mark(c)
                self.assertEqual(os.readlink("/proc/%d/exe" % d.pid), os.path.join(root, "v2", "plenumd"))

    def test_session_goes_on(self):
        d, agent = self.start()
        a, b = d.attached("s", "a", tag=True), d.attached("s", "b")
        child = agent.child()
        child.prompted(a, "one", uuid="u-1")
        child.print({"type": "system", "subtype": "init", "session_id": "conv-1"}, dict(RESULT, session_id="conv-1"))
        a.wait(type="result")
        before = d.sessions()["s"]
        self.upgrade(d)
        after = d.sessions()["s"]
        for name in ("conversation_id", "pid", "attachments", "seq", "created_ms", "state", "cwd", "profile"):
            self.assertEqual(after[name], before[name], name)
        a.send(user("two", uuid="u-2"))
        self.assertEqual(child.wait(type="user", uuid="u-2")["message.content"], "two")
        child.print(dict(RESULT, result="after", session_id="conv-1"))
        for c in (a, b):
            c.wait(type="result", result="after")
        seqs = [m["plenum_seq"] for m in a.seen(lambda m: m["plenum_seq"] is not None)]
        self.assertEqual(seqs, list(range(seqs[0], seqs[0] + len(seqs))))
        self.assertEqual(agent.starts, 1)

    def test_replay_after_it(self):
        d, _, child, a = self.open()
        child.flood(FLOOD, 200, pad=50)
        child.mark(a)
        self.upgrade(d)
        b = d.attached("s", replay="all")
        b.wait(type="test_mark")
        lines = [m.raw for m in b.seen(type="assistant")]
        self.assertEqual(lines, [m.raw for m in a.seen(type="assistant")])
        self.assertEqual(len(lines), 200)

    def test_descriptors_and_twice(self):
        d, agent = self.start()
        clients = [d.attached("s%d" % (i % 3)) for i in range(6)]
        children = [agent.child() for _ in range(3)]
        n = d.settled_fds()
        for _ in range(3):
            self.upgrade(d)
            until(lambda: d.fd_count() == n, what="%d descriptors again: %s" % (n, d.fd_list()))
        for c in clients:
            c.sync()
        for child in children:
            self.assertEqual(child.had("eof"), [])

    def test_new_clients_and_a_file_that_goes(self):
        os.close(inotify())  # by which the daemon sees that its socket is gone
        d, agent = self.start()
        self.upgrade(d)
        d.attached()
        os.unlink(d.socket)
        until(lambda: os.path.exists(d.socket), what="the socket to be made again")
        d.client().hello()

    def test_who_has_ended_its_input_is_answered(self):
        """In a session, and in none; by the new binary, and if the old one goes on."""
        d, agent = self.start()
        for attached in (True, False):
            for good in (True, False):
                c = d.attached() if attached else d.client()
                if not good:
                    with open(d.conf, "a") as f:
                        f.write("nonsense\n")
                rid = c.ask("plenum_upgrade")
                c.half_close()
                self.assertEqual(c.answer(rid)["response.subtype"], "success" if good else "error")
                c.wait_eof()
                d.write_conf()


class Surroundings(Upgrade):
    """Resources inherited by the daemon, and processes started by it."""

    def test_service_manager(self):
        """The notification socket and the watchdog continue, for the same process."""
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(sock.close)
        sock.bind(root + "/notify")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        told = queue.Queue()

        def take():
            """Without a wait: a read that finds ten messages in the socket is discarded."""
            data = b"-"
            while data:
                data, extra, _, _ = sock.recvmsg(4096, 128)
                told.put((data.split(b"\n"), int.from_bytes(extra[0][2][:4], "little") if extra else 0))

        taker = threading.Thread(target=take, daemon=True)
        taker.start()
        self.addCleanup(taker.join)
        self.addCleanup(sock.shutdown, socket.SHUT_RDWR)

        def wait(text):
            while True:
                lines, pid = told.get(timeout=TIMEOUT)
                if text in lines:
                    return pid

        d, agent = self.start(root=root, env={"NOTIFY_SOCKET": root + "/notify", "WATCHDOG_USEC": "600000"})
        self.assertEqual(wait(b"READY=1"), d.pid)
        wait(b"WATCHDOG=1")
        c = d.attached()
        self.assertNotIn("NOTIFY_SOCKET", agent.child().env)
        for _ in range(2):
            self.upgrade(d)
            self.assertEqual(wait(b"READY=1"), d.pid)
            for _ in range(2):
                self.assertEqual(wait(b"WATCHDOG=1"), d.pid)
        self.assertNotIn("NOTIFY_SOCKET", d.attached("t") and agent.child().env)
        c.sync()

    def test_inherited_socket(self):
        """Started by socket activation: the daemon must not remove the socket, before and after."""
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        os.makedirs(root + "/run/plenum", mode=0o700)
        os.chmod(root + "/run", 0o700)
        path = root + "/run/plenum/plenum.sock"
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(sock.close)
        sock.bind(path)
        sock.listen(8)
        script = "import os,sys\nos.dup2(%d,3)\nos.environ['LISTEN_PID']=str(os.getpid())\nos.execv(sys.argv[1],sys.argv[1:])"
        before = os.dup(sock.fileno())
        self.addCleanup(os.close, before)
        os.set_inheritable(before, True)
        wrap = (PYTHON, "-c", script % before)
        real = harness.subprocess.Popen
        harness.subprocess.Popen = lambda *a, **kw: real(*a, **dict(kw, pass_fds=(before,)))
        try:
            d, agent = self.start(root=root, wrap=wrap, env={"LISTEN_FDS": "1"})
        finally:
            harness.subprocess.Popen = real
        c = d.attached()
        agent.child()
        self.upgrade(d)
        c.sync()
        self.upgrade(d)
        d.client().hello()
        d.stop()
        self.assertTrue(os.path.exists(path))
        d.process = None

    def test_no_second_daemon_in_between(self):
        """Both locks are kept."""
        d, agent = self.start()
        self.upgrade(d)
        other = d.launch()
        self.assertEqual(other.wait(TIMEOUT), 69)
        self.assertIn("already running", d.log())

    def test_on_pending_command(self):
        """A command started for a user is recognised afterwards."""
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        with open(root + "/asker", "w") as f:
            f.write("#!/bin/sh\nexec %s -I -S %s/helper.py\n" % (PYTHON, root))
        os.chmod(root + "/asker", 0o755)
        with open(root + "/helper.py", "w") as f:
            f.write("""import json, os, socket, time
open(%r, "w").close()
while not os.path.exists(%r): time.sleep(0.01)
s = socket.socket(socket.AF_UNIX)
s.connect(%r)
f = s.makefile("rw")
def ask(**request):
    f.write(json.dumps({"type": "control_request", "request_id": "1", "request": request}) + "\\n")
    f.flush()
ask(subtype="plenum_attach", session=os.environ["PLENUM_SESSION"])
for line in f:
    m = json.loads(line)
    if m["type"] == "control_request":
        f.write(json.dumps({"type": "control_response", "response": {"subtype": "success", "request_id": m["request_id"],
                "response": {"behavior": "allow", "updatedInput": m["request"]["input"]}}}) + "\\n")
        f.flush()
""" % (root + "/runs", root + "/go", root + "/run/plenum/plenum.sock"))
        d, agent = self.start(root=root, daemon={"on_pending": root + "/asker"})
        a = d.attached("s", approve=False)
        child = agent.child()
        child.print(perm("p1"))
        until(lambda: os.path.exists(root + "/runs"), what="the command")
        self.upgrade(d)
        open(root + "/go", "w").close()
        self.assertEqual(child.answer("p1")["response.response.behavior"], "allow")
        a.event("settled", decision="allow")
        for p, _ in agents_of(d.pid):
            if p != child.pid:
                os.kill(p, signal.SIGKILL)

    def test_a_session_that_ends_with_its_client(self):
        d, agent = self.start()
        a = d.client()
        a.attach("own", create="new", ephemeral=True)
        child = agent.child()
        self.upgrade(d)
        self.assertIn("own", d.sessions())
        a.close()
        child.wait_gone()
        until(lambda: "own" not in d.sessions())

    def test_an_agent_cannot_approve_afterwards(self):
        d, _, child, a = self.open()
        child.mode(control=True)
        self.upgrade(d)
        with open(d.root + "/peer.py", "w") as f:
            f.write("import socket\ns=socket.socket(socket.AF_UNIX)\ns.connect(%r)\n"
                    "s.send(b'{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{\"subtype\":\"plenum_hello\"}}\\n')\n"
                    "open(%r,'wb').write(s.recv(65536))\n" % (d.socket, d.root + "/said"))
        child.spawn([PYTHON, "-I", "-S", d.root + "/peer.py"])
        said = until(lambda: os.path.exists(d.root + "/said") and open(d.root + "/said", "rb").read())
        self.assertIn(b'"may_approve":false', said)
        a.sync()

    def test_one_descriptor_watches_a_process(self):
        """For any number of connections, before and after; it is closed with the last of them."""
        d, agent = self.start()
        first = d.attached()
        agent.child()
        n = d.settled_fds()
        more = [d.attached() for _ in range(20)]
        self.assertEqual(d.settled_fds(), n + 20)
        other = harness.subprocess.Popen(["socat", "-", "UNIX-CONNECT:" + d.socket], stdin=harness.subprocess.PIPE)
        until(lambda: d.fd_count() == n + 22, what="the descriptors of another process")
        for _ in range(2):
            self.upgrade(d)
            until(lambda: d.fd_count() == n + 22, what="the same descriptors: %s" % d.fd_list())
        first.close()
        other.stdin.close()
        other.wait()
        until(lambda: d.fd_count() == n + 19, what="the descriptors to be given back: %s" % d.fd_list())
        for c in more:
            self.assertIs(c.request("plenum_hello")["peer"]["may_approve"], True)
        more.append(d.attached())
        self.assertEqual(d.settled_fds(), n + 20)
        for c in more:
            c.close()
        until(lambda: d.fd_count() == n - 2, what="all to be given back: %s" % d.fd_list())

    def test_much_on_the_tape(self):
        """A full tape is restored with little work, measured in time of the processor."""
        d, agent = self.start(limits={"client_lag_soft_time": "10min"})  # the last one is not read from before its turn
        clients = [d.attached("s%d" % i) for i in range(3)]
        for c in clients:
            child = agent.child()
            child.flood(FLOOD, 40000, pad=250)
            child.print(b'{"type":"test_end"}\n')
        for c in clients:
            c.slurp(b'"test_end"', 60)
        cpu = d.cpu()
        d.call("plenum_upgrade")
        d.client().sync()
        self.assertLess(d.cpu() - cpu, 5)  # tens of milliseconds
        b = d.attached("s1", replay={"last": 5})
        b.wait(type="test_end")


class Flight(Upgrade):
    """Data in flight during the upgrade."""

    def test_flood_with_two_clients(self):
        """Byte for byte, no line lost, none twice; the numbers continue."""
        d, agent = self.start()
        a, b = d.attached("s", "a", tag=True), d.attached("s", "b")
        child = agent.child()
        n = 6000
        c = d.client("upgrader")
        child.flood(FLOOD, n, pad=300)
        child.print(b'{"type":"test_end"}\n')
        for _ in range(3):
            a.wait(type="assistant")
            self.upgrade(d, c)
        a.wait(type="test_end")
        b.wait(type="test_end")
        want = [FLOOD.replace(b"@N@", b"%d" % i).replace(b"@P@", b"x" * 300) for i in range(n)]
        self.assertTrue([m.raw for m in b.seen(type="assistant")] == want)
        seqs = [m["plenum_seq"] for m in a.seen(lambda m: m["plenum_seq"] is not None)]
        self.assertEqual(seqs, list(range(seqs[0], seqs[0] + len(seqs))))
        strip = [m.raw.replace(b'"plenum_seq":%d,' % m["plenum_seq"], b"") for m in a.seen(type="assistant")]
        self.assertTrue(strip == want)

    def test_many_upgrades_while_prompts_are_sent(self):
        d, agent = self.start(mode={"user": True})
        a, b = d.attached("s", "a"), d.attached("s", "b")
        child = agent.child()
        c = d.client("upgrader")
        for i in range(12):
            (a if i % 2 else b).send(user("p%d" % i, uuid="u-%d" % i))
            if i % 3 == 0:
                self.upgrade(d, c)
        for x in (a, b):
            x.wait(type="result", user_message_uuid="u-11")
            x.wait(type="result", user_message_uuid="u-10")
            self.assertEqual(sorted(m["user_message_uuid"] for m in x.seen(type="result")), sorted("u-%d" % i for i in range(12)))
        self.assertEqual(sorted(m["uuid"] for m in child.seen(type="user")), sorted("u-%d" % i for i in range(12)))

    def test_half_a_line_from_a_client(self):
        d, _, child, a = self.open()
        line = dump(user("x" * 200, uuid="u-half")) + b"\n"
        a.raw(line[:60])
        self.upgrade(d)
        a.raw(line[60:150])
        self.upgrade(d)
        a.raw(line[150:])
        self.assertEqual(child.wait(type="user").raw, line[:-1])
        a.sync()

    def test_half_a_long_line_from_a_client(self):
        d, _, child, a = self.open()
        line = dump(user("y" * 700000, uuid="u-long")) + b"\n"
        a.raw(line[:400000])
        self.upgrade(d)
        a.raw(line[400000:])
        self.assertTrue(child.wait(type="user").raw == line[:-1])

    def test_an_over_long_line_of_a_client(self):
        d, agent = self.start(limits={"client_line": "64K"})
        a = d.attached()
        agent.child()
        line = dump(user("z" * 200000)) + b"\n"
        a.raw(line[:150000])
        self.upgrade(d)
        a.raw(line[150000:])
        self.assertEqual(a.error("too_long")["size"], len(line) - 1)
        a.sync()

    def test_half_a_line_from_the_child(self):
        d, _, child, a = self.open()
        for size in (100, 300000):
            line = dump(dict(LINE, text="h" * size)) + b"\n"
            child.print(line[:size // 2])
            child.written()
            a.sync()
            self.upgrade(d)
            child.print(line[size // 2:])
            self.assertTrue(a.wait(type="assistant").raw == line[:-1])

    def test_a_child_that_does_not_read(self):
        """The rest of a prompt, and the queue after it, reach the child once and in order."""
        d, _, child, a = self.open()
        child.pause()
        lines = [dump(user("%d" % i + "q" * 90000, uuid="u-%d" % i)) for i in range(8)]
        a.send(*lines)
        a.sync()
        self.upgrade(d)
        self.upgrade(d)
        child.resume()
        for line in lines:
            self.assertTrue(child.wait(type="user").raw == line)

    def test_a_stalled_client_and_unread_mail(self):
        d, agent = self.start()
        a, b = d.attached("s", "a"), d.attached("s", "b")
        child = agent.child()
        child.flood(FLOOD, 3000, pad=1000)
        for i in range(20):  # answers queued after it
            a.ask("plenum_hello")
        b.wait(type="assistant", n=2999)
        c = d.client("upgrader")
        self.upgrade(d, c)
        child.print({"type": "assistant", "n": "last"})
        self.upgrade(d, c)
        a.wait(type="assistant", n="last")
        self.assertTrue([m.raw for m in a.seen(type="assistant")] == [m.raw for m in b.seen(type="assistant")])
        self.assertEqual(len(a.seen(type="control_response", **{"response.subtype": "success"})), 21)

    def test_a_client_that_leaves_and_one_that_half_closed(self):
        d, agent = self.start()
        a, b, c = d.attached("s", "a"), d.attached("s", "b"), d.attached("s", "c")
        child = agent.child()
        child.prompted(a, "last", uuid="u-last")
        a.half_close()
        until(lambda: sum(x["approve"] for x in d.call("plenum_status", session="s")["clients"]) == 2)
        self.upgrade(d)
        b.close()
        child.print(dict(RESULT, user_message_uuid="u-last", user_message_uuids=["u-last"]))
        a.wait(type="result")
        a.wait_eof()
        c.wait(type="result")
        c.sync()

    def test_a_held_prompt(self):
        d, agent = self.start(profile={"prompts": "queue"})
        a, b = d.attached("s", "a"), d.attached("s", "b")
        child = agent.child()
        child.prompted(a, "first", uuid="u-1")
        b.send(user("second", uuid="u-2"))
        b.sync()
        self.assertEqual(len(d.call("plenum_queue", session="s")["prompts"]), 1)
        self.upgrade(d)
        self.assertEqual(len(d.call("plenum_queue", session="s")["prompts"]), 1)
        self.assertEqual(child.seen(uuid="u-2"), [])
        child.print(dict(RESULT, user_message_uuid="u-1", user_message_uuids=["u-1"]))
        self.assertEqual(child.wait(type="user")["message.content"], "second")
        b.send(user("second", uuid="u-2"))  # remembered: a retry runs once
        b.error("duplicate_request")

    def test_stderr(self):
        d, agent = self.start()
        a = d.attached("s", stderr=True)
        child = agent.child()
        child.stderr("before\nhal")
        a.event("stderr")
        self.upgrade(d)
        child.stderr("f\n")
        a.event("stderr")
        self.assertEqual(d.call("plenum_logs", session="s")["stderr"], ["before", "half"])

    def test_subscribers(self):
        d, agent = self.start()
        c = d.client()
        c.request("plenum_subscribe")
        self.upgrade(d)
        a = d.attached("fresh")
        c.event("session_created", session="fresh")
        child = agent.child()
        child.print(perm("p1"))
        c.event("attention", session="fresh")

    def test_a_child_that_ends_meanwhile(self):
        d, _, child, a = self.open()
        child.prompted(a, "hi")
        os.kill(d.pid, signal.SIGSTOP)  # the new binary, or just the old one, notices its end
        child.print(b'{"type":"last_words"}\n')
        child.exit(3)
        child.wait_gone()
        os.kill(d.pid, signal.SIGUSR2)
        os.kill(d.pid, signal.SIGCONT)
        a.wait(type="last_words")
        self.assertEqual(a.event("child_exited")["status"], 3)
        until(lambda: self.resumes(d) == 1, what="the upgrade")

    def test_children_die_with_the_daemon(self):
        d, _, child, a = self.open(mode={"eof": "ignore"})
        self.upgrade(d)
        pid = child.pid
        d.kill9()
        child.wait_gone()
        d.start()
        self.assertEqual(d.state_of("s"), "asleep")
        self.assertNotEqual(pid, None)

    def test_a_stop_that_is_under_way(self):
        d, _, child, a = self.open(mode={"eof": "ignore", "term": "ignore"}, profile={"stop_grace": "1500ms"})
        a.request("plenum_stop")
        self.upgrade(d)
        until(lambda: "stop, SIGTERM after" in d.log(), what="the next step")  # the child may not report it
        self.upgrade(d)
        child.wait_gone()
        self.assertIs(a.event("child_exited")["wanted"], True)

    def test_a_child_that_closed_its_output(self):
        """Whether it lives on before the upgrade or only after it, the end has its reason."""
        d, agent = self.start(mode={"eof": "ignore", "term": "ignore"}, profile={"stop_grace": "500ms"})
        for name in ("early", "late"):
            a = d.attached(name)
            child = agent.child()
            child.order("close_stdout")
            if name == "late":
                until(lambda: d.log().count("has closed its stdout and lives on") == 2, what="its stop")
            self.upgrade(d)
            m = a.event("child_exited")
            self.assertEqual((m["wanted"], m["signal"]), (False, 9))
            self.assertIn("the child had closed its stdout", m["reason"])

    def test_how_long_a_client_lags_is_counted_on(self):
        d, agent = self.start()
        d.attached()
        agent.child().flood(FLOOD, 5000, pad=1000)

        def lag():
            return d.call("plenum_status", session="s")["clients"][0]["lag_ms"]

        before = until(lag, what="a client that lags")
        self.upgrade(d)
        self.assertGreaterEqual(lag(), before)

    def test_the_wait_for_a_client_goes_on(self):
        """Upgraded any number of times meanwhile, the wait for a client that reads nothing lasts at most lag_wait."""
        d, agent = self.start(limits={"lag_wait": "1500ms", "tape_bytes": "256K"})
        d.attached(on_lag="wait")
        child = agent.child()
        child.flood(FLOOD, 3000, pad=1000)
        child.order("sync", id=-7)
        while not child.had("sync"):
            self.upgrade(d)


class Open(Upgrade):
    """Open requests."""

    def test_permission(self):
        d, agent = self.start()
        a, b = d.attached("s", "a"), d.attached("s", "b")
        child = agent.child()
        child.print(perm("p1"))
        ra, rb = (x.wait(type="control_request")["request_id"] for x in (a, b))
        self.upgrade(d)
        self.assertEqual(d.state_of("s"), "asking")
        a.send(allow(ra))
        child.answer("p1")
        b.wait(type="control_cancel_request", request_id=rb)
        b.event("settled", decision="allow", request_id=rb)
        self.upgrade(d)
        b.send(allow(rb))
        b.error("already_settled")
        self.assertEqual(len(child.answers("p1")), 1)
        self.assertEqual(len(a.seen(type="control_request")), 1)

    def test_a_long_permission(self):
        """A part of the question was read by one client, and a part of the answer by the child."""
        d, agent = self.start()
        a, b = d.attached("s", "a"), d.attached("s", "b")
        child = agent.child()
        text = "x" * (8 << 20)
        child.print(perm("p1", text))
        asked = b.wait(type="control_request")
        self.assertEqual(asked["request.input.command"], text)
        self.upgrade(d)
        self.assertTrue(a.wait(type="control_request").raw == asked.raw)
        self.assertTrue(d.attached("s", "c").wait(type="control_request").raw == asked.raw)
        child.pause()
        b.send(ok(asked["request_id"], {"behavior": "allow"}))
        b.event("settled")
        self.upgrade(d)
        child.resume()
        self.assertEqual(child.answer("p1")["response.response.updatedInput"], {"command": text})

    def test_permission_for_whoever_comes(self):
        d, agent = self.start(profile={"permission_wait": "30s"})
        a = d.attached("s", "a", approve=False)
        child = agent.child()
        child.print(perm("p1"))
        until(lambda: d.call("plenum_pending")["pending"])
        self.upgrade(d)
        b = d.attached("s", "b")
        b.send(allow(b.wait(type="control_request")["request_id"]))
        child.answer("p1")
        a.event("settled", decision="allow")

    def test_who_approves_what(self):
        """An approver of no tool at all does not become one of every tool."""
        d, agent = self.start()
        a = d.attached("s", "a", approve={"tools": ["Bash"]})
        b = d.attached("s", "b", approve={"tools": []})
        c = d.attached("s", "c", approve={"tools": ["Write"]})
        child = agent.child()
        self.upgrade(d)
        child.print(perm("p1"))
        a.send(allow(a.wait(type="control_request")["request_id"]))
        child.answer("p1")
        for x in (b, c):
            x.event("settled")
            self.assertEqual(x.seen(type="control_request"), [])

    def test_permission_wait_goes_on(self):
        d, agent = self.start(profile={"permission_wait": "1500ms"})
        a = d.attached("s", "a", approve=False)
        child = agent.child()
        begun = time.monotonic()
        child.print(perm("p1"))
        a.event("session_state", state="asking")
        self.upgrade(d)
        self.assertEqual(child.answer("p1")["response.response.behavior"], "deny")
        self.assertLess(1.3, time.monotonic() - begun)
        a.event("settled", decision="timeout")

    def test_permission_that_is_withdrawn(self):
        d, _, child, a = self.open()
        child.print(perm("p1"))
        rid = a.wait(type="control_request")["request_id"]
        self.upgrade(d)
        child.print({"type": "control_cancel_request", "request_id": "p1"})
        a.wait(type="control_cancel_request", request_id=rid)

    def test_hook_and_server(self):
        d, agent = self.start()
        a, b = d.attached("s", "a"), d.attached("s", "b")
        child = agent.child()
        hooks = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"], "timeout": 20}]}
        a.initialize(hooks, sdkMcpServers=["tools"])
        b.initialize({"PostToolUse": [{"hookCallbackIds": ["hook_0"]}]})
        sent = child.seen(request__subtype="initialize")[-1]["request.hooks"]
        mine, other = (sent[e][0]["hookCallbackIds"][0] for e in ("PreToolUse", "PostToolUse"))
        child.print(hook("h1", mine), mcp("m1", "tools", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
        h = a.wait(request__subtype="hook_callback")
        m = a.wait(request__subtype="mcp_message")
        self.upgrade(d)
        a.send(ok(h["request_id"], {"continue": True}), ok(m["request_id"], {"mcp_response": {"jsonrpc": "2.0", "id": 1, "result": {}}}))
        child.answer("h1")
        child.answer("m1")
        child.print(hook("h2", other, "PostToolUse"), hook("h3", mine))
        self.assertEqual(b.wait(request__subtype="hook_callback")["request.callback_id"], "hook_0")
        h = a.wait(request__subtype="hook_callback")
        a.close()  # the guard is gone, and still guards
        self.assertEqual(child.answer("h3")["response.response.hookSpecificOutput.permissionDecision"], "deny")
        self.upgrade(d)
        child.print(hook("h4", mine))
        self.assertEqual(child.answer("h4")["response.response.hookSpecificOutput.permissionDecision"], "deny")

    def test_owner_comes_back(self):
        d, agent = self.start()
        a, b = d.attached("s", name="guard"), d.attached("s", "b")
        child = agent.child()
        a.initialize({"PreToolUse": [{"hookCallbackIds": ["hook_0"]}]})
        mine = child.seen(request__subtype="initialize")[-1]["request.hooks"]["PreToolUse"][0]["hookCallbackIds"][0]
        a.close()
        b.event("owner_gone")
        self.upgrade(d)
        a = d.attached("s", name="guard")
        b.event("owner_back")
        child.print(hook("h1", mine))
        a.send(ok(a.wait(request__subtype="hook_callback")["request_id"], {}))
        child.answer("h1")

    def test_initialize_that_waits(self):
        d, agent = self.start(mode={"init": "manual"})
        a, b = d.attached("s", "a"), d.attached("s", "b")
        child = agent.child()
        ia = a.ask("initialize", hooks=None, systemPrompt="be brief")
        got = child.request("initialize")
        ib = b.ask("initialize", hooks=None)
        b.sync()
        self.upgrade(d)
        child.reply(got, {"commands": [], "models": []})
        self.assertEqual(a.answer(ia)["response.subtype"], "success")
        self.assertEqual(b.answer(ib)["response.subtype"], "success")
        self.upgrade(d)
        c = d.attached("s", "c")
        self.assertEqual(c.initialize()["response.response"], {"commands": [], "models": []})

    def test_call(self):
        d, agent = self.start()
        a, b = d.attached("s", "a"), d.attached("s", "b")
        child = agent.child()
        ra = a.ask("set_model", model="m")
        rb = b.ask("mcp_status")
        qa, qb = child.request("set_model"), child.request("mcp_status")
        self.upgrade(d)
        child.reply(qb, {"b": 1})
        child.reply(qa, {})
        self.assertEqual(a.answer(ra)["response.subtype"], "success")
        self.assertEqual(b.answer(rb)["response.response"], {"b": 1})
        self.assertEqual(b.event("changed", what="model")["value"], "m")

    def test_call_times_out(self):
        d, _, child, a = self.open()
        begun = time.monotonic()
        rid = a.ask("mcp_status", plenum_timeout_ms=1500)
        child.request("mcp_status")
        self.upgrade(d)
        self.assertEqual(a.answer(rid)["response.code"], "timeout")
        self.assertLess(1.3, time.monotonic() - begun)

    def test_ids_stay_fresh(self):
        """The child never sees one id twice."""
        d, _, child, a = self.open(mode={"control": True})
        for _ in range(3):
            a.request("mcp_status")
            self.upgrade(d)
        ids = [m["request_id"] for m in child.seen(type="control_request")]
        self.assertEqual(len(ids), len(set(ids)))


if __name__ == "__main__":
    unittest.main()
