# SPDX-License-Identifier: MIT
"""The directory of the table of sessions: its lock, its files, and the handling of a damaged table (contract 8)."""
import errno
import itertools
import os
import resource
import subprocess
import tempfile
import unittest

from harness import RESULT, TIMEOUT, Case, Daemon, build_file, hook, ok, seal, until, user

NOBODY = 65534 if os.getuid() == 0 else os.getuid()


class FolderTest(Case):
    def beside(self, d):
        """Another daemon on the same directory, with a socket of its own; not started."""
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
        self.assertIn("another plenumd with pid %d, which listens on %s, uses the directory %s/plenum" % (d.pid, d.socket, d.state),
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

    def test_the_second_one_never_listens(self):
        """A client connected to it would be disconnected at once. Its lock file exists before, so that only a socket
        could change the directory."""
        d, = self.start(agents=())
        other = self.beside(d)
        folder = os.path.dirname(other.socket)
        os.makedirs(folder, mode=0o700)
        open(other.socket + ".lock", "w").close()
        os.utime(folder, (1, 1))
        self.refused(other)
        self.assertEqual(os.stat(folder).st_mtime, 1)

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


class ReadOnlyTest(Case):
    """A read-only directory: logged once, and sessions run nevertheless. Not as root, who may write anywhere."""

    RECORD = {"name": "old", "profile": "agent", "uid": NOBODY, "env_only": False, "child_pid": 0, "child_start": 0,
              "created_ms": 1, "used_ms": 1, "seq": 1}
    HEAD = {"version": 1, "seq": 1, "lost": False, "sessions": [["old", None]]}
    TABLE = b"".join(seal(o) + b"\n" for o in (HEAD, RECORD, HEAD))

    def read_only(self, *files):
        """The daemon, its agent, and its warnings; files: those in the directory. None: no directory."""
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        folder = root + "/state/plenum"
        os.makedirs(folder if files else root + "/state")
        for name in files:
            with open(folder + "/" + name, "wb") as f:
                f.write(self.TABLE if name == "sessions.json" else b"")
        os.chmod(folder if files else root + "/state", 0o500)
        root_too = os.getuid() == 0
        d, agent = self.start(root=root, run_as="nobody" if root_too else None)
        a = d.attached("work")
        a.send(user("hi", uuid="u"))
        child = agent.child()
        child.wait(type="user", uuid="u")
        child.print(dict(RESULT, session_id="conv-1", user_message_uuids=["u"]))
        a.wait(type="result")
        a.request("plenum_stop")
        a.event("child_exited")
        return d, agent, [line for line in d.log().splitlines() if " error " in line or " warn " in line]

    def test_no_folder(self):
        d, agent, said = self.read_only()
        self.assertEqual(len(said), 1, said)
        self.assertIn("sessions will not survive a restart: cannot make the directory %s/plenum: Permission denied; name another "
                      "with state_dir" % d.state, said[0])
        self.assertIsNone(d.call("plenum_status")["state_dir"])

    def test_a_folder_of_before(self):
        """It cannot be locked, so its sessions are not touched."""
        d, agent, said = self.read_only("sessions.json")
        self.assertEqual(len(said), 1, said)
        self.assertIn("cannot write %s/plenum/lock: Permission denied; make the directory writable" % d.state, said[0])
        self.assertEqual(list(d.sessions()), ["work"])

    def test_one_that_became_so(self):
        """Its table is read, and written again once possible."""
        d, agent, said = self.read_only("sessions.json", "lock")
        self.assertEqual(len(said), 1, said)
        self.assertIn("cannot write %s/plenum/sessions.json: Permission denied; the table of before is kept" % d.state, said[0])
        self.assertEqual(sorted(d.sessions()), ["old", "work"])
        os.chmod(d.state + "/plenum", 0o700)
        until(lambda: "the table of sessions is written again" in d.log())
        self.assertEqual(sorted(s["name"] for s in d.table()), ["old", "work"])


class DamageTest(Case):
    """Changed lines of the table: the recovered parts of a session, and the warnings."""

    def again(self, change, seals=True):
        """Two sleeping sessions with a changed table, and the daemon that reads it."""
        d, agent = self.start(mode={"session_id": "conv-1"})
        a = d.attached("work", name="guard")
        child = agent.child()
        a.initialize({"PreToolUse": [{"hookCallbackIds": ["p"]}]})
        child.print(dict(RESULT, session_id="conv-1"))
        a.wait(type="result")
        d.attached("other")
        agent.child()
        d.stop()
        if seals:
            d.change_table(change)
        else:
            path = d.state + "/plenum/sessions.json"
            with open(path, "rb") as f:
                data = f.read()
            with open(path, "wb") as f:
                f.write(change(data))
        os.truncate(d.log_path, 0)
        d.start()
        d.call("plenum_hello")
        return d, agent

    def complaints(self, d):
        lines = [line.split(None, 3)[2:] for line in d.log().splitlines()]
        return [text for level, text in lines if level in ("warn", "error")]

    def copies(self, d):
        return len([f for f in os.listdir(d.state + "/plenum") if ".damaged-" in f])

    def test_guards(self):
        """Such as a text of another version of the daemon: the session is there, and refuses every tool until its user
        clears that."""
        for guards in ('[{"uid":0}]', "7", ""):
            with self.subTest(guards):
                d, agent = self.again(lambda o: o.get("name") == "work" and o.update(guards=guards))
                self.assertTrue(d.call("plenum_status", session="work")["guards_lost"])
                self.assertNotIn("guards_lost", d.call("plenum_status", session="other"))
                said = self.complaints(d)
                self.assertEqual(len(said), 1, said)  # one error, one line
                self.assertIn("session work: every tool is refused", said[0])
                a = d.attached("work")
                a.send(user("hi"))
                child = agent.child()
                self.assertIn("--resume=conv-1", child.argv)
                hooks = child.request("initialize")["request.hooks"]
                child.print(hook("k-1", hooks["PreToolUse"][-1]["hookCallbackIds"][0]))
                self.assertIn(b"clear-lost", child.answer("k-1").raw)
                self.assertEqual(d.call("plenum_clear_lost", session="work"), {"cleared": ["work"], "daemon": False})
                self.assertIs(a.event("changed", what="guards_lost")["value"], False)
                child.print(hook("k-2", hooks["PreToolUse"][-1]["hookCallbackIds"][0]))
                self.assertNotIn(b"deny", child.answer("k-2").raw)
                until(lambda: not child.seen(request__subtype="initialize")[-1]["request.hooks"].get("PreToolUse"),
                      what="a table without the stand-in")
                self.assertNotIn("guards_lost", d.call("plenum_status", session="work"))
                self.assertEqual(d.call("plenum_clear_lost", session="work")["cleared"], [])
                d.kill9()
                d.start()
                self.assertNotIn("guards_lost", d.call("plenum_status", session="work"))

    def test_a_record(self):
        """The session is there by its name and its conversation, closed: the agent's settings are not guessed."""
        d, agent = self.again(lambda data: data.replace(b'"profile":"agent"', b'"profile":"agenu"', 1), seals=False)
        damaged, good = ("work", "other") if d.sessions()["work"]["profile"] != "agent" else ("other", "work")
        self.assertEqual(d.sessions()[good]["profile"], "agent")
        said = self.complaints(d)
        self.assertIn("session %s: its record in the table of sessions is damaged" % damaged, said[0])
        self.assertIn("1 of 2 sessions are lost); it is kept as %s/plenum/sessions.json.damaged-" % d.state, said[-1])
        self.assertEqual(self.copies(d), 1)
        doctor = subprocess.run([build_file("plenumctl"), "doctor"], env=dict(d.env, PLENUM_SOCKET=d.socket), text=True,
                                stdout=subprocess.PIPE)
        self.assertEqual(doctor.returncode, 1)
        self.assertRegex(doctor.stdout, "(?m)^note +table +a damaged table of sessions was kept: .*/sessions.json.damaged-")
        self.assertRegex(doctor.stdout, "(?m)^BAD +table +session %s cannot start" % damaged)
        self.assertRegex(doctor.stdout, "(?m)^BAD +guards +session %s refuses every tool" % damaged)
        self.assertNotIn("session %s " % good, doctor.stdout)
        a = d.attached(damaged)
        self.assertTrue(a.attached["guards_lost"])
        a.send(user("hi", uuid="u"))
        self.assertIn("resume its conversation in a new one", a.error("no_such_profile", uuid="u")["error"])
        if damaged == "work":
            self.assertEqual(a.attached["conversation_id"], "conv-1")
            self.assertRefused("conversation_in_use", d.client().attach, "third", resume="conv-1")
        self.assertEqual(agent.starts, 2)
        d.kill9()
        os.truncate(d.log_path, 0)
        d.start()  # nothing is damaged any more, and nothing is lost
        self.assertTrue(d.attached(damaged).attached["guards_lost"])
        self.assertEqual(self.copies(d), 1)
        d.call("plenum_stop", session=damaged, forget=True)
        until(lambda: damaged not in d.sessions())
        self.assertNotIn("guards_lost", d.attached(damaged, resume="conv-1" if damaged == "work" else "c").attached)

    def test_one_copy_of_the_head(self):
        for change in (lambda data: data[1:], lambda data: data[:-2]):
            d, agent = self.again(change, seals=False)
            self.assertEqual({name: s["profile"] for name, s in d.sessions().items()}, {"work": "agent", "other": "agent"})
            self.assertFalse(any(d.call("plenum_status", session=s).get("guards_lost") for s in ("work", "other")))
            self.assertEqual(self.copies(d), 1)


class LostTest(Case):
    """Any damage to the table's file: no session returns without its guards."""

    GUARD = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["p"]}]}

    def guarded(self, settled=False, **options):
        """A session with a guard, whose daemon was killed; its agent. settled: when no older table was left."""
        d, agent = self.start(mode={"session_id": "conv-1"}, **options)
        a = d.attached("work", name="guard")
        child = agent.child()
        a.initialize(self.GUARD)
        child.print({"type": "system", "subtype": "init", "session_id": "conv-1"}, RESULT)
        a.wait(type="result")
        d.call("plenum_hello")
        if settled:
            until(lambda: len(self.files(d)) == 1 and d.state + "/plenum/sessions.json" in self.files(d), what="one table")
        d.kill9()
        return d, agent

    def files(self, d):
        folder = d.state + "/plenum/"
        return [folder + f for f in ("sessions.json", "sessions.json.next") if os.path.exists(folder + f)]

    def change(self, d, change):
        for path in self.files(d):
            with open(path, "rb") as f:
                data = f.read()
            with open(path, "wb") as f:
                f.write(change(data))

    def refuses(self, d, agent, session="work", **attach):
        """Every tool of the session is refused, or it cannot start at all. Return whether it has started."""
        a = d.attached(session, **attach)
        self.assertTrue(a.attached.get("guards_lost"), a.attached)
        self.assertTrue(d.call("plenum_status", session=session)["guards_lost"])
        a.send(user("hi", uuid="u"))
        m = a.wait(lambda m: m["code"] == "no_such_profile" or m["event"] == "session_state" and m["state"] == "busy")
        if m["code"]:
            return False
        child = agent.child()
        hooks = child.request("initialize")["request.hooks"]
        stand_in = hooks["PreToolUse"][-1]
        self.assertNotIn("matcher", stand_in)
        child.print(hook("k-1", stand_in["hookCallbackIds"][0]))
        self.assertIn(b'"permissionDecision":"deny"', child.answer("k-1").raw)
        return True

    def test_the_table_as_a_whole(self):
        """It is unreadable: every session made since refuses every tool, under any name."""
        for name, change in (("empty", lambda data: b""), ("garbage", lambda data: bytes(len(data))),
                             ("cut", lambda data: data[:20]), ("newer", None)):
            with self.subTest(name):
                d, agent = self.guarded()
                if change:
                    self.change(d, change)
                else:
                    d.change_table(lambda o: "version" in o and o.update(version=9))
                d.start()
                self.assertTrue(self.refuses(d, agent, "work" if name != "garbage" else "other"))
                self.assertTrue(d.call("plenum_status", daemon=True)["guards_lost"])
                d.kill9()
                d.start()  # it is not forgotten
                self.assertTrue(d.attached("third").attached["guards_lost"])
                agent.child()
                d.call("plenum_upgrade")
                self.assertTrue(d.attached("fourth").attached["guards_lost"])
                agent.child()
                cleared = d.call("plenum_clear_lost", daemon=True)
                self.assertIs(cleared["daemon"], True)
                self.assertIn("fourth", cleared["cleared"])
                self.assertNotIn("guards_lost", d.call("plenum_status", daemon=True))
                for session in ("third", "fifth"):
                    self.assertNotIn("guards_lost", d.attached(session).attached)
                agent.child()
                d.kill9()
                d.start()
                self.assertNotIn("guards_lost", d.attached("sixth").attached)
                agent.child()

    def test_a_newer_table_beside_it(self):
        """The older table has the session without its guard: it does not replace the newer one."""
        d, agent = self.start(mode={"session_id": "conv-1"})
        a = d.attached("work", name="guard")
        child = agent.child()
        child.print({"type": "system", "subtype": "init", "session_id": "conv-1"}, RESULT)
        a.wait(type="result")
        path = d.state + "/plenum/sessions.json"
        until(lambda: d.table("sessions.json") and d.table("sessions.json")[0]["conversation_id"] == "conv-1", what="the table")
        with open(path, "rb") as f:
            older = f.read()
        a.initialize(self.GUARD)
        d.kill9()
        newest = self.files(d)[-1]
        with open(newest, "rb") as f:
            newer = f.read()
        self.assertIn(b"Bash", newer)
        for data in (b"", newer[:100], newer.replace(b"Bash", b"Basi")):
            with self.subTest(data[-30:]):
                with open(path, "wb") as f:
                    f.write(older)
                with open(path + ".next", "wb") as f:
                    f.write(data)
                d.start()
                self.assertTrue(self.refuses(d, agent, create="never"))
                d.kill9()
        d.start()

    def test_who_may_clear_it(self):
        d, agent = self.guarded(daemon={"allow_uids": "12345"})
        self.change(d, lambda data: b"")
        d.start()
        d.open_to_all()
        d.attached("work")
        agent.child()
        others = [d.client(env={"PLENUM_CHILD": "work"})] + ([d.client(uid=12345, gid=12345)] if os.getuid() == 0 else [])
        for c in others:
            for members in ({"session": "work"}, {"daemon": True}):
                self.assertRefused("not_allowed", c.request, "plenum_clear_lost", **members)
        self.assertTrue(d.attached("work").attached["guards_lost"])
        self.assertRefused("not_attached", d.client().request, "plenum_clear_lost")
        self.assertRefused("no_such_session", d.client().request, "plenum_clear_lost", session="none")

    def test_the_matcher_is_another(self):
        d, agent = self.guarded(settled=True)
        self.change(d, lambda data: data.replace(b"Bash", b"Basi"))
        d.start()
        self.assertFalse(self.refuses(d, agent, create="never"))

    def test_the_end_is_missing(self):
        d, agent = self.guarded()
        self.change(d, lambda data: data[:-len(data) // 3])
        d.start()
        self.refuses(d, agent)


class FullDiskTest(Case):
    """A registration is answered once it is on disk, or with the error."""

    GUARD = LostTest.GUARD

    def refused(self, client, hooks, **members):
        m = client.initialize(hooks, **members)
        self.assertEqual(m["response.code"], "internal", m)
        self.assertIn("cannot keep", m["response.error"])
        return m["response.error"]

    def test_nothing_can_be_written(self):
        d, agent = self.start()
        a = d.attached("s", name="guard")
        child = agent.child()
        self.assertEqual(a.initialize(self.GUARD)["response.subtype"], "success")
        first = child.request("initialize")["request.hooks"]
        os.mkdir(d.state + "/plenum/sessions.json.new")
        self.refused(a, {"PreToolUse": [{"matcher": "Write", "hookCallbackIds": ["q"]}]}, sdkMcpServers=["x"])
        self.refused(a, {})  # dropping them changes the table, too
        child.mark(a)
        self.assertEqual([m["request.hooks"] for m in child.seen(request__subtype="initialize")[1:]], [])
        child.print(hook("k-1", first["PreToolUse"][0]["hookCallbackIds"][0]))  # the previous one is in force
        m = a.wait(request__subtype="hook_callback", request__callback_id="p")
        a.send(ok(m["request_id"], {}))
        child.answer("k-1")
        self.assertEqual(a.initialize(self.GUARD)["response.subtype"], "success")  # nothing has to be written
        self.assertEqual(a.initialize(sdkMcpServers=["x"])["response.subtype"], "success")  # nor an unstored name
        os.rmdir(d.state + "/plenum/sessions.json.new")
        self.assertEqual(a.initialize({"PreToolUse": [{"matcher": "Write", "hookCallbackIds": ["q"]}]})["response.subtype"], "success")
        d.kill9()
        d.start()
        d.attached("s", wake=True)
        self.assertEqual(agent.child().request("initialize")["request.hooks"]["PreToolUse"][0]["matcher"], "Write")

    @staticmethod
    def has_only_these(folder):
        """Return true if no file without a name has space there, such as a table that a thread closes later."""
        now = os.statvfs(folder)
        used = (now.f_blocks - now.f_bfree) * now.f_frsize
        try:
            return used == sum(512 * os.stat(os.path.join(folder, name)).st_blocks for name in os.listdir(folder))
        except FileNotFoundError:
            return False

    @unittest.skipUnless(os.getuid() == 0, "needs root, to mount a file system")
    def test_a_full_file_system(self):
        folder = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        self.addCleanup(os.rmdir, folder)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", folder], stderr=subprocess.PIPE).returncode:
            self.skipTest("this machine mounts nothing")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=True)
        d, agent = self.start(daemon={"state_dir": folder})
        a = d.attached("s", name="guard")
        agent.child()
        d.wait_state("s", "idle")
        # a table that replaces this one later would leave room for the guard
        until(lambda: '"s"' in WriteTest.table(folder) and len(os.listdir(folder)) == 2 and self.has_only_these(folder),
              what="the table, and its lock")
        with open(folder + "/full", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(512))
            except OSError as e:
                self.assertEqual(e.errno, errno.ENOSPC)
        self.assertIn("No space left on device (free space in %s)" % folder, self.refused(a, self.GUARD))
        self.assertFalse(d.call("plenum_status", session="s")["hooks"])
        os.unlink(folder + "/full")
        self.assertEqual(a.initialize(self.GUARD)["response.subtype"], "success")
        d.kill9()
        d.start()
        d.attached("s", wake=True)
        self.assertEqual(agent.child().request("initialize")["request.hooks"]["PreToolUse"][0]["matcher"], "Bash")

    def test_without_a_folder(self):
        """Then nothing of a session outlives the daemon, and its guards need not."""
        d, agent = self.start(daemon={"state_dir": "/proc/no/folder"})
        a = d.attached("s", name="guard")
        agent.child()
        self.assertEqual(a.initialize(self.GUARD)["response.subtype"], "success")


class LimitTest(Case):
    """The table has a limit: what would not fit is refused, and the table of before stays whole."""

    ENV = {"V%d" % i: "w" * 100000 for i in range(9)}
    FITS = (16 << 20) // (9 * 100006)  # sessions with it

    def full(self):
        """As many sessions with ENV as fit, and a client that has asked for one more."""
        d, _ = self.start(profile={"command": "cat"})
        c = d.client()
        for i in range(self.FITS):
            c.attach("s%d" % i, env=self.ENV)
            c.request("plenum_detach")
        self.refused(c, "more")
        return d, c

    def refused(self, c, session, **members):
        e = self.assertRefused("too_many", c.attach, session, env=self.ENV, **members)
        self.assertIn("all sessions may have 16777216 bytes of args and env (table_starts)", e.text)
        self.assertIn("forget sessions", e.text)

    def test_a_start(self):
        d, c = self.full()
        self.assertEqual(len(d.sessions()), self.FITS)
        self.refused(c, "more", args=["x"])
        c.attach("small")
        c.request("plenum_detach")
        d.client().attach("brief", env=self.ENV, ephemeral=True)  # it is not in the table
        c.request("plenum_stop", session="s0", how="kill", forget=True)
        until(lambda: "s0" not in d.sessions(), what="a session less")
        c.attach("more", env=self.ENV)
        c.request("plenum_detach")
        self.refused(c, "s0")

    def test_more_for_a_sleeping_one(self):
        """Also after a restart and an upgrade: the limit is for what is in the table."""
        d, c = self.full()
        d.kill9()
        d.start()
        self.refused(d.client(), "s0")
        self.refused(d.client(), "more")
        self.assertEqual(d.state_of("s0"), "asleep")
        d.call("plenum_upgrade")
        self.refused(d.client(), "s0", wake=True)
        self.assertEqual(d.state_of("s0"), "asleep")
        d.client().attach("s0")
        self.assertEqual({len(s["env"]) for s in d.table()}, {9})

    def test_guards(self):
        """They fill the rest: the one too many is refused, and the next daemon has all of before."""
        d, agent = self.start()
        hooks = {"PreToolUse": [{"matcher": "m" * 60000, "hookCallbackIds": ["c%d" % i]} for i in range(16)]}
        for i in range(self.FITS):
            d.client().attach("s%d" % i, env=self.ENV)
        kept = []
        for i in itertools.count():
            a = d.attached("g%d" % i, name="guard")
            m = a.initialize(hooks)
            if m["response.subtype"] != "success":
                break
            kept.append("g%d" % i)
        self.assertEqual(m["response.code"], "too_many", m)
        self.assertIn("cannot keep the hooks on disk: File too large (forget sessions of %s" % d.state, m["response.error"])
        self.assertGreater(len(kept), 10)
        self.assertEqual(d.call("plenum_status", session="g%d" % i)["hooks"], 0)
        d.kill9()
        d.start()
        self.assertEqual({d.call("plenum_status", session=s)["hooks"] for s in kept}, {16})
        self.assertFalse(any("guards_lost" in d.call("plenum_status", session=s) for s in kept))
        self.assertEqual({len(s["env"]) for s in d.table() if s["name"].startswith("s")}, {9})


class WriteTest(Case):
    """Failed writes are retried."""

    @staticmethod
    def table(state):
        try:
            with open(state + "/sessions.json") as f:
                return f.read()
        except OSError:
            return ""

    def test_written_when_the_disk_has_room_again(self):
        d, agent = self.start()
        state = d.state + "/plenum"
        d.attached("s")
        until(lambda: "\"s\"" in self.table(state), what="the table")
        os.mkdir(state + "/sessions.json.new")  # no file can be written beside it
        d.attached("t")
        until(lambda: "cannot write" in d.log(), what="the complaint")
        os.rmdir(state + "/sessions.json.new")
        until(lambda: "\"t\"" in self.table(state), what="the table again")

    def test_file_size_limit_counts_as_a_full_disk(self):
        d, agent = self.start()
        state = d.state + "/plenum"
        limit = os.path.getsize(d.log_path) + 8192
        before = resource.prlimit(d.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(d.pid, resource.RLIMIT_FSIZE, (limit, before[1]))
        for i in range(8):  # each small enough to start its child
            d.attached("s%d" % i, env={"LONG": "x" * (limit // 4)})
        until(lambda: "cannot write" in d.log(), what="the complaint")
        agent.child()
        resource.prlimit(d.pid, resource.RLIMIT_FSIZE, before)
        d.attached("t")
        until(lambda: "\"t\"" in self.table(state), what="the table")
        self.assertIn("\"s7\"", self.table(state))

    def test_forgotten_sessions_are_removed_later(self):
        """The last sessions are removed while the table cannot be written: the empty table is written later."""
        d, agent = self.start()
        folder = d.state + "/plenum/"

        def table():
            with open(folder + "sessions.json") as f:
                return f.read()

        d.attached("one")
        agent.child()
        until(lambda: os.path.exists(folder + "sessions.json") and '"one"' in table(), what="the table")
        os.mkdir(folder + "sessions.json.new")
        d.attached("two")
        agent.child()
        until(lambda: "cannot write" in d.log(), what="a failure")
        c = d.client()
        for name in ("one", "two"):
            c.request("plenum_stop", session=name, how="kill", forget=True)
        until(lambda: not c.request("plenum_list")["sessions"], what="no session")
        os.rmdir(folder + "sessions.json.new")
        until(lambda: "written again" in d.log(), what="a table that was written")
        self.assertNotIn('"one"', table())

    def test_rename_that_fails_is_tried_again(self):
        """The failure is logged, and the rename is retried."""
        d, agent = self.start()
        folder = d.state + "/plenum/"
        until(lambda: os.path.isfile(folder + "sessions.json"), what="the first table")
        os.unlink(folder + "sessions.json")
        os.mkdir(folder + "sessions.json")
        d.attached("one")
        agent.child()
        until(lambda: "cannot write" in d.log(), what="a failure")
        os.rmdir(folder + "sessions.json")
        until(lambda: os.path.isfile(folder + "sessions.json"), what="the table")

