# SPDX-License-Identifier: MIT
"""The folder of the table of sessions: who has it, what is in it, what becomes of a damaged one (DESIGN 8)."""
import json
import os
import tempfile

from harness import Case, Daemon, RESULT, TIMEOUT, hook, until, user

NOBODY = 65534 if os.getuid() == 0 else os.getuid()


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
        self.assertIn("another plenumd with pid %d, which listens on %s, uses the folder %s/plenum" % (d.pid, d.socket, d.state),
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


class ReadOnlyTest(Case):
    """A folder that cannot be written to: said once, and sessions run all the same. Not as root, who may write anywhere."""

    TABLE = '{"version":1,"sessions":[{"name":"old","profile":"agent","uid":%d}]}'

    def read_only(self, *files):
        """The daemon, its agent, and what it complained of; files: those that the folder has. None: no folder."""
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        folder = root + "/state/plenum"
        os.makedirs(folder if files else root + "/state")
        for name in files:
            with open(folder + "/" + name, "w") as f:
                f.write(self.TABLE % NOBODY if name == "sessions.json" else "")
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
        self.assertIn("sessions will not survive a restart: cannot make the folder %s/plenum: Permission denied; name another "
                      "with state_dir" % d.state, said[0])
        self.assertIsNone(d.call("plenum_status")["state_dir"])

    def test_a_folder_of_before(self):
        """It cannot be locked, so its sessions are not touched."""
        d, agent, said = self.read_only("sessions.json")
        self.assertEqual(len(said), 1, said)
        self.assertIn("cannot write %s/plenum/lock: Permission denied; make the folder writable" % d.state, said[0])
        self.assertEqual(list(d.sessions()), ["work"])

    def test_one_that_became_so(self):
        """Its table is read, and written again when it can be."""
        d, agent, said = self.read_only("sessions.json", "lock")
        self.assertEqual(len(said), 1, said)
        self.assertIn("cannot write %s/plenum/sessions.json: Permission denied; the table of before is kept" % d.state, said[0])
        self.assertEqual(sorted(d.sessions()), ["old", "work"])
        os.chmod(d.state + "/plenum", 0o700)
        until(lambda: "the table of sessions is written again" in d.log())
        with open(d.state + "/plenum/sessions.json") as f:
            self.assertEqual(sorted(s["name"] for s in json.load(f)["sessions"]), ["old", "work"])


class DamageTest(Case):
    """Members of the table of another type than theirs: what of the session goes on, and what is said."""

    def again(self, **members):
        """A sleeping session whose members in the table have become these, and the daemon that reads them."""
        d, agent = self.start(mode={"session_id": "conv-1"})
        a = d.attached("work", name="guard")
        child = agent.child()
        a.initialize({"PreToolUse": [{"hookCallbackIds": ["p"]}]})
        child.print(dict(RESULT, session_id="conv-1"))
        a.wait(type="result")
        d.stop()
        path = d.state + "/plenum/sessions.json"
        with open(path) as f:
            table = json.load(f)
        table["sessions"][0].update(members)
        with open(path, "w") as f:
            json.dump(table, f)
        os.truncate(d.log_path, 0)
        d.start()
        d.call("plenum_hello")
        self.assertEqual(len([f for f in os.listdir(d.state + "/plenum") if f.startswith("sessions.json.damaged-")]), 1)
        return d, agent

    def complaints(self, d):
        """Its log, without the line that names the copy of the table."""
        lines = [line.split(None, 3)[2:] for line in d.log().splitlines()]
        found = [text for level, text in lines if level in ("warn", "error")]
        self.assertEqual(len([t for t in found if "is kept as" in t]), 1)
        return [t for t in found if "is kept as" not in t]

    def test_guards(self):
        """It is kept, and refuses every tool."""
        for guards in ([{"uid": 0}], 7, {"hex": "x"}):
            d, agent = self.again(guards=guards)
            self.assertTrue(d.call("plenum_status", session="work")["guards_lost"])
            said = self.complaints(d)
            self.assertEqual(len(said), 1, said)  # one mistake, one line
            self.assertIn("session work: every tool is refused", said[0])
            d.attached("work").send(user("hi"))
            child = agent.child()
            self.assertIn("--resume=conv-1", child.argv)
            hooks = child.request("initialize")["request.hooks"]
            child.print(hook("k-1", hooks["PreToolUse"][-1]["hookCallbackIds"][0]))
            self.assertIn(b"deny", child.answer("k-1").raw)

    def test_profile(self):
        """It is there, closed: what its agent was to be is not guessed."""
        d, agent = self.again(profile=["agent"])
        a = d.attached("work")
        a.send(user("hi", uuid="u"))
        a.error("no_such_profile", uuid="u")
        self.assertEqual(agent.starts, 1)
        self.assertEqual(len(self.complaints(d)), 1)

    def test_what_only_tells(self):
        d, agent = self.again(previous_id=[], created_ms="x", used_ms=None, child_pid={}, seq="x")
        self.assertEqual(self.complaints(d), [
            "session work: its `child_pid`, `created_ms`, `used_ms`, `seq`, `previous_id` cannot be read"])
        self.assertGreater(d.sessions()["work"]["created_ms"], 0)
        d.attached("work").send(user("hi", uuid="u"))
        child = agent.child()
        self.assertIn("--resume=conv-1", child.argv)
        child.wait(type="user", uuid="u")

    def test_what_it_cannot_do_without(self):
        d, agent = self.again(args="--model x", env={})
        self.assertEqual(d.sessions(), {})
        self.assertEqual(self.complaints(d), ["session work is left out: its `args`, `env` cannot be read"])
