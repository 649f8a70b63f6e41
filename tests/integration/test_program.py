# SPDX-License-Identifier: MIT
"""The chosen program (docs/contract.md 11): the profile of a session without one, and the path of its program."""
import json
import os
import stat
import sys
import unittest

from harness import Case, request, until
from test_agent_peers import PEER

FOREIGN = 54321


class ProgramTest(Case):
    def begin(self, **options):
        """A daemon with only the built-in profiles, and HOME without a CLI."""
        self.d = self.start(agents=(), env=dict({"PATH": "/usr/bin:/bin"}, **options.pop("env", {})), **options)[0]
        return self.d

    def cli(self, *folder):
        """Make a program named claude that answers nothing, and keeps its stdout: else it would be stopped after a
        second. Return its path."""
        path = os.path.join(self.d.root, *folder, "claude")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write("#!/bin/sh\nexec cat 3>&1 >/dev/null\n")
        os.chmod(path, stat.S_IRWXU)
        return path

    def requester(self, **env):
        return self.d.client(env=dict({"PATH": "/usr/bin:/bin"}, **env))

    def program(self, name, client=None, **members):
        got = (client or self.requester()).attach(name, **members)
        self.assertEqual(self.d.sessions()[name]["program"], got["program"])
        return got["program"]

    def test_the_scripted_agent_is_never_a_fallback(self):
        d = self.begin()
        self.assertEqual(d.client().hello()["default_profile"], "claude")
        e = self.assertRefused("spawn_failed", self.requester().attach, "x")
        for word in ("claude", "PATH=", "~/.local/bin", "~/.claude/local", "install", "`command`", "fake"):
            self.assertIn(word, e.text)
        self.assertEqual(d.sessions(), {})

    def test_it_is_used_by_its_name(self):
        self.begin()
        self.assertTrue(self.program("x", profile="fake").endswith("/plenum-fakeagent"))
        self.d = self.start(agents=(), daemon={"default_profile": "fake"})[0]
        self.assertTrue(self.program("x").endswith("/plenum-fakeagent"))

    def test_it_is_looked_up_when_the_session_is_made(self):
        """Not at the start of the daemon: the CLI may be installed later."""
        d = self.begin()
        self.assertRefused("spawn_failed", self.requester().attach, "x")
        path = self.cli("home", ".local", "bin")
        self.assertEqual(self.program("x"), path)
        self.assertEqual(d.sessions()["x"]["profile"], "claude")

    def test_the_places_in_their_order(self):
        """PLENUM_CLAUDE, the requester's PATH, the daemon's PATH, and the directory of the native installer."""
        d = self.begin(env={"PATH": "/usr/bin:/bin:/tmp/none"})
        where = {name: self.cli(*name.split("/")) for name in ("home/.claude/local", "home/.local/bin", "asker", "named")}
        asker = os.path.dirname(where["asker"])
        self.assertEqual(self.program("a", self.requester(PATH=asker, PLENUM_CLAUDE=where["named"])), where["named"])
        self.assertEqual(self.program("b", self.requester(PATH=asker)), where["asker"])
        self.assertEqual(self.program("c"), where["home/.local/bin"])
        os.unlink(where["home/.local/bin"])
        self.assertEqual(self.program("d"), where["home/.claude/local"])
        d.stop()
        d.process = None
        self.d = d = self.start(agents=(), env={"PATH": asker + ":/usr/bin:/bin"})[0]
        self.cli("home", ".local", "bin")
        other = os.path.dirname(self.cli("other"))
        self.assertEqual(self.program("a"), where["asker"])
        self.assertEqual(self.program("b", self.requester(PATH=other)), other + "/claude")

    def test_the_daemon_says_which_one_it_would_be(self):
        """For the client that asks, without a start."""
        d = self.begin(env={"PATH": "/usr/bin:/bin:/tmp/none"})

        def would(client=None, profile="claude"):
            got = (client or self.requester()).request("plenum_status", profile=profile)
            return got["program"], got["from"], got["error"]

        program, source, error = would()
        self.assertEqual((program, source), (None, None))
        for word in ("claude", "PATH=", "~/.local/bin"):
            self.assertIn(word, error)
        where = {name: self.cli(*name.split("/")) for name in ("home/.local/bin", "asker", "named", "daemon")}
        asker = os.path.dirname(where["asker"])
        self.assertEqual(would(self.requester(PATH=asker, PLENUM_CLAUDE=where["named"])), (where["named"], "PLENUM_CLAUDE", None))
        self.assertEqual(would(self.requester(PATH=asker)), (where["asker"], "PATH of the client", None))
        self.assertEqual(would(), (where["home/.local/bin"], "directory of its installer", None))
        self.assertEqual(would(profile="fake")[1:], ("command of the profile", None))
        self.assertRefused("no_such_profile", d.client().request, "plenum_status", profile="nope")
        self.assertEqual(d.sessions(), {})
        d.stop()
        d.process = None
        self.d = self.start(agents=(), env={"PATH": os.path.dirname(where["daemon"]) + ":/usr/bin:/bin"})[0]
        self.assertEqual(would(), (where["daemon"], "PATH of the daemon", None))

    def test_a_variable_that_names_nothing_is_the_cause(self):
        self.begin()
        error = self.assertRefused("spawn_failed", self.requester(PLENUM_CLAUDE="/none/claude").attach, "x", profile="claude")
        self.assertRegex(error.text, r"program /none/claude .*\(PLENUM_CLAUDE names it: correct or unset this variable\)")

    def test_a_member_of_env_names_it_too(self):
        self.begin()
        path = self.cli("named")
        self.assertEqual(self.program("x", env={"PLENUM_CLAUDE": path}), path)
        self.assertEqual(self.program("y", env={"PLENUM_CLAUDE": path, "PATH": "/usr/bin:/bin"}, env_only=True, argv=["-p"]), path)

    def test_other_profiles_do_not_care(self):
        d, agent = self.start(env={"PATH": "/usr/bin:/bin"})
        got = d.client(env={"PLENUM_CLAUDE": "/none"}).attach("x")
        self.assertEqual(got["program"], agent.command.split()[0])

    def test_a_script_finds_its_interpreter_beside_it(self):
        """Like a CLI from npm, whose node is only in the requester's PATH."""
        self.begin()
        folder = os.path.dirname(self.cli("asker"))
        os.rename(folder + "/claude", folder + "/node-of-the-requester")
        with open(folder + "/claude", "w") as f:
            f.write("#!/usr/bin/env node-of-the-requester\n")
        os.chmod(folder + "/claude", stat.S_IRWXU)
        c = self.requester(PATH=folder + ":/usr/bin:/bin")
        self.assertEqual(self.program("x", c), folder + "/claude")

        def runs():
            with open("/proc/%d/cmdline" % self.d.sessions()["x"]["pid"]) as f:
                return f.read() == "cat\0"

        until(runs, what="the interpreter's program")


class NamedCase(Case):
    def begin(self, **options):
        d, agent = self.start(agents=("claude",), **options)
        wrapper = os.path.join(d.root, "wrapper")
        with open(wrapper, "w") as f:
            f.write('#!/bin/sh\nWRAPPED=yes exec %s "$@"\n' % sys.executable)
        os.chmod(wrapper, 0o755)
        self.env = dict(os.environ, PLENUM_CLAUDE=wrapper)
        return d, agent

    def is_wrapped(self, child):
        return "WRAPPED" in child.env


class WhoTest(NamedCase):
    def test_own(self):
        d, agent = self.begin()
        d.client(env=self.env).attach("s")
        self.assertTrue(self.is_wrapped(agent.child()))

    def test_foreign(self):
        d, agent = self.begin(daemon={"allow_uids": FOREIGN})
        d.open_to_all()
        d.client(uid=FOREIGN, gid=FOREIGN, env=self.env).attach("s")
        self.assertFalse(self.is_wrapped(agent.child()))

    def test_foreign_wakes(self):
        d, agent = self.begin(daemon={"allow_uids": FOREIGN})
        d.open_to_all()
        a = d.attached("s")
        child = agent.child()
        d.wait_state("s", "idle")
        a.request("plenum_hibernate", session="s")
        child.wait_gone()
        d.wait_state("s", "asleep")
        d.client(uid=FOREIGN, gid=FOREIGN, env=self.env).attach("s", wake=True)
        self.assertFalse(self.is_wrapped(agent.child()))

    def test_agent(self):
        d, agent = self.begin()
        d.attached("s")
        child = agent.child()
        d.wait_state("s", "idle")
        todo, out = d.root + "/todo", d.root + "/out"
        with open(todo, "w") as f:
            f.write(json.dumps(request("0", "plenum_attach")) + "\n")
        child.spawn(["/usr/bin/env", "PLENUM_CLAUDE=" + self.env["PLENUM_CLAUDE"], sys.executable, "-I", "-S", "-c", PEER,
                     d.socket, todo, out, "child"], setsid=True)
        until(lambda: os.path.exists(out), what="the peer's story")
        self.assertFalse(self.is_wrapped(agent.child()))


class WarmTest(NamedCase):
    def test_a_spare_of_the_named_program_is_given(self):
        d, agent = self.begin(profile={"warm": 1, "cwd": "/"})

        def ready():
            return d.call("plenum_status", daemon=True)["profiles"]

        def wait_ready():
            until(lambda: next(p["warm"] for p in ready() if p["name"] == "claude") == 1, what="a spare")

        wait_ready()
        agent.child()
        a = d.client(env=self.env)
        a.attach("one", cwd="/")
        first = agent.child_of(d.sessions()["one"]["pid"])
        self.assertTrue(self.is_wrapped(first))
        spare = agent.child()
        self.assertTrue(self.is_wrapped(spare))
        wait_ready()
        b = d.client(env=self.env)
        self.assertEqual(b.attach("two", cwd="/")["pid"], spare.pid)


if __name__ == "__main__":
    unittest.main()
