# SPDX-License-Identifier: MIT
"""The start of a child: its program, its arguments, its environment and its client's environment (contract 8; cases C11
C30 C31 C32 C63 C64 C72)."""
import os
import pwd
import re
import unittest

from harness import RESULT, Case, PlenumError, init_line, until, user

need_root = unittest.skipUnless(os.getuid() == 0, "needs root, to become another user")


class StartFailureTest(Case):
    def refused(self, d, *words, code="spawn_failed", **members):
        a = d.client()
        e = self.assertRefused(code, a.attach, "bad", **members)
        for word in words:
            self.assertIn(word, e.text)
        self.assertEqual(d.sessions(), {}, "a half-made session stays")
        a.hello()
        return e

    def profile(self, command, **keys):
        d, agent = self.start(profiles={"profile bad": dict(keys, command=command)})
        return d

    def test_no_such_program(self):
        d = self.profile("no-such-program-here --x")
        self.refused(d, "no-such-program-here", "PATH", "/usr/local/bin", profile="bad")

    def test_no_such_path(self):
        d = self.profile("/no/such/program")
        self.refused(d, "/no/such/program", profile="bad")

    def file(self, text, mode):
        d, agent = self.start(profiles={"profile bad": {"command": "/ROOT/prog"}})
        path = d.root + "/prog"
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        with open(d.conf) as f:
            conf = f.read()
        with open(d.conf, "w") as f:
            f.write(conf.replace("/ROOT/prog", path))
        d.call("plenum_reload")
        return d, path

    def test_not_executable(self):
        d, path = self.file("#!/bin/sh\n", 0o644)
        e = self.refused(d, path, profile="bad")
        self.assertIn("xecut", e.text + "xecut" if "ermission" in e.text else e.text)

    def test_no_interpreter_line(self):
        d, path = self.file("just text\n", 0o755)
        self.refused(d, path, profile="bad")

    def test_interpreter_missing(self):
        d, path = self.file("#!/no/such/interpreter\n", 0o755)
        self.refused(d, path, "/no/such/interpreter", profile="bad")

    def test_a_directory(self):
        d = self.profile("/tmp")
        self.refused(d, "/tmp", profile="bad")

    def test_env_cannot_find_the_interpreter(self):
        d, path = self.file("#!/usr/bin/env node-that-is-missing\n", 0o755)
        a = d.client()
        a.attach("bad", profile="bad")
        gone = a.event("child_exited")
        self.assertEqual(gone["status"], 127)
        self.assertIn("node-that-is-missing", str(gone["stderr"]))

    def test_working_directory(self):
        d, agent = self.start()
        with open(d.root + "/file", "w"):
            pass
        for cwd in ("/no/such/dir", d.root + "/file"):
            e = self.refused(d, cwd, cwd=cwd)
            self.assertNotIn("PATH", e.text)
        for cwd in ("proj", "~/proj", ""):
            a = d.client()
            e = self.assertRefusedAny(("bad_request", "spawn_failed"), a.attach, "bad", cwd=cwd)
        self.assertEqual(agent.starts, 0)
        good = d.client()
        good.attach("good", cwd=d.home)
        self.assertEqual(agent.child().start["cwd"], d.home)

    def assertRefusedAny(self, codes, call, *args, **kw):
        with self.assertRaises(PlenumError) as e:
            call(*args, **kw)
        self.assertIn(e.exception.code, codes)
        return e.exception

    @need_root
    def test_working_directory_without_the_right(self):
        d, agent = self.start(run_as="nobody")
        os.mkdir(d.root + "/shut", 0o700)
        self.refused(d, d.root + "/shut", "ermission", cwd=d.root + "/shut")

    def test_long_arguments(self):
        d, agent = self.start()
        a = d.client()
        a.attach("fits", args=["--append-system-prompt", "x" * 100000])
        self.assertEqual(len(agent.child().argv[-1]), 100000)
        self.assertEqual(len(d.sessions()), 1)
        for n, code in ((131072, "spawn_failed"), (3000000, "too_long")): # the kernel's limit, and ours
            b = d.client()
            e = self.assertRefused(code, b.attach, "long", args=["--append-system-prompt", "x" * n])
            self.assertTrue("long" in e.text or "big" in e.text or "may have" in e.text, e.text)
            self.assertEqual(list(d.sessions()), ["fits"])

    def test_other_sessions_do_not_notice(self):
        d, _, child, a = self.open(profiles={"profile bad": {"command": "/no/such/program"}})
        for _ in range(20):
            self.assertRefused("spawn_failed", d.client().attach, "bad", profile="bad")
        child.mark(a)

    def test_prompt_whose_working_directory_is_gone(self):
        """C30: the error names the directory, the cause and the prompt."""
        d, agent = self.start(mode={"session_id": "c-1"})
        os.mkdir(d.root + "/w")
        a = d.client()
        a.attach("s", cwd=d.root + "/w")
        child = agent.child()
        child.print(init_line("c-1"), RESULT)
        a.wait(type="result")
        os.rmdir(d.root + "/w")
        child.exit(0)
        a.event("child_exited")
        a.send(user("again", uuid="u"))
        e = a.error("spawn_failed", uuid="u")["error"]
        self.assertIn(d.root + "/w", e)
        self.assertIn("No such file or directory", e)
        os.mkdir(d.root + "/w")
        a.send(user("again", uuid="u"))
        agent.child().wait(type="user", uuid="u")

    def test_error_names_the_long_argument(self):
        """C64: the option that is too long, and the limit."""
        d, agent = self.start()
        for n in (131072, 1000000):
            e = self.assertRefused("spawn_failed", d.client().attach, "x", args=["--model", "m", "--append-system-prompt", "x" * n])
            for word in ("--append-system-prompt", str(n), "131071"):
                self.assertIn(word, e.text)
            e = self.assertRefused("spawn_failed", d.client().attach, "x", args=["--agents=" + "x" * n])
            self.assertIn("--agents", e.text)
            self.assertLess(len(e.text), 500)
            e = self.assertRefused("spawn_failed", d.client().attach, "x", env={"LONG_ONE": "x" * n})
            self.assertIn("LONG_ONE", e.text)

    def test_environment_too_large(self):
        d, agent = self.start()
        a = d.client()
        e = self.assertRefused("spawn_failed", a.attach, "s", env={"X": "x" * 200000})
        self.assertTrue("long" in e.text or "big" in e.text or "limit" in e.text, e.text)
        self.assertEqual(d.sessions(), {})


class EnvironmentTest(Case):
    def test_marks_of_an_agent_are_removed(self):
        marks = {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SSE_PORT": "12345",
                 "CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST": "1", "CLAUDE_AGENT_SDK_VERSION": "1",
                 "JOURNAL_STREAM": "8:1", "INVOCATION_ID": "x", "LISTEN_FDNAMES": "y", "MANAGERPID": "1", "SYSTEMD_EXEC_PID": "1",
                 "WATCHDOG_USEC": "0", "WATCHDOG_PID": "1", "LISTEN_PID": "1", "LISTEN_FDS": "1"}
        pass_on = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "FOO": "bar", "EMPTY": "", "CLAUDE_CONFIG_DIR": "/x"}
        d, agent = self.start(env=dict(marks, **pass_on))
        d.attached()
        env = agent.child().env
        self.assertEqual([m for m in marks if m in env], [])
        for name, value in pass_on.items():
            self.assertEqual(env.get(name), value)
        self.assertEqual(env["HOME"], d.home)
        self.assertEqual(env["PATH"], d.env["PATH"])

    def test_notify_socket_is_removed(self):
        d, agent = self.start(env={"NOTIFY_SOCKET": "/tmp/no-such-notify-socket"})
        d.attached()
        self.assertNotIn("NOTIFY_SOCKET", agent.child().env)

    def test_what_the_client_asks_for_wins(self):
        d, agent = self.start(env={"CLAUDECODE": "1", "FOO": "daemon"}, profile={"env": "FOO=profile BAR=profile"})
        d.attached(env={"CLAUDECODE": "yes", "CLAUDE_CODE_ENTRYPOINT": "sdk-py", "BAR": "client", "NEW": "x=y z"})
        env = agent.child().env
        self.assertEqual(env["CLAUDECODE"], "yes")
        self.assertEqual(env["CLAUDE_CODE_ENTRYPOINT"], "sdk-py")
        self.assertEqual((env["FOO"], env["BAR"], env["NEW"]), ("profile", "client", "x=y z"))

    def test_pass_env_narrows(self):
        d, agent = self.start(env={"KEEP": "1", "SECRET": "2"}, profile={"pass_env": "KEEP PATH"})
        d.attached()
        env = agent.child().env
        self.assertEqual(env.get("KEEP"), "1")
        self.assertNotIn("SECRET", env)

    def test_two_clients_two_environments(self):
        d, agent = self.start()
        d.attached("s1", env={"SSH_AUTH_SOCK": "/tmp/a", "FOO": "1"})
        one = agent.child()
        d.attached("s2", env={"SSH_AUTH_SOCK": "/tmp/b", "FOO": "2"})
        two = agent.child()
        self.assertEqual((one.env["SSH_AUTH_SOCK"], one.env["FOO"]), ("/tmp/a", "1"))
        self.assertEqual((two.env["SSH_AUTH_SOCK"], two.env["FOO"]), ("/tmp/b", "2"))

    def test_bare_environment_is_filled(self):
        d, agent = self.start(env={"HOME": None, "PATH": None, "LANG": None})
        d.attached()
        env, me = agent.child().env, pwd.getpwuid(os.getuid())
        self.assertEqual(env.get("HOME"), me.pw_dir)
        self.assertEqual(env.get("USER"), me.pw_name)
        self.assertEqual(env.get("LOGNAME"), me.pw_name)
        self.assertEqual(env.get("SHELL"), me.pw_shell)

    def test_the_session_is_named_in_the_environment(self):
        d, agent = self.start()
        d.attached("work", env={"PLENUM_CHILD": "other"})
        self.assertEqual(agent.child().env["PLENUM_CHILD"], "work")

    def test_process_shape(self):
        """Own session and group, only stdio, default signals."""
        d, agent = self.start(profiles={"profile sh": {"command": "sh -c 'grep Sig /proc/self/status >&2; echo over >&2; sleep 30'"}})
        d.attached()
        child = agent.child()
        self.assertEqual(child.start["ppid"], d.pid)
        self.assertEqual((child.start["pgid"], child.start["sid"]), (child.pid, child.pid))
        self.assertEqual([fd for fd in child.start["fds"] if fd > 4], [])
        a = d.attached("sh", profile="sh")
        text = until(lambda: (lambda t: "over" in t and t)(str(a.request("plenum_logs", session="sh"))))
        for line in ("SigBlk:\\t0000000000000000", "SigIgn:\\t0000000000000000"):
            self.assertIn(line.replace("\\t", "\t") if "\t" in text else line, text)

    def test_args(self):
        d, agent = self.start()
        d.attached(args=["--model", "x y", "", "--z=\u00e9\""])
        self.assertEqual(agent.child().argv[1:5], ["--model", "x y", "", "--z=\u00e9\""])

    def test_resume(self):
        d, agent = self.start()
        got = d.client().attach("r", resume="conv-9")
        child = agent.child()
        self.assertIn("--resume=conv-9", child.argv)
        self.assertEqual(got["conversation_id"], "conv-9")

    def test_cwd_of_the_requester(self):
        d, agent = self.start()
        old = os.getcwd()
        os.chdir(d.home)
        try:
            c = d.client()
            c.attach("s1")
        finally:
            os.chdir(old)
        self.assertEqual(agent.child().start["cwd"], d.home)

    def mask(self, child):
        with open("/proc/%d/status" % child.pid) as f:
            return re.search(r"^Umask:\s+(\d+)$", f.read(), re.M).group(1)

    def with_mask(self, mask, d, *lines, **members):
        """A client of a process with this umask."""
        before = os.umask(mask)
        self.addCleanup(os.umask, before)
        a = d.client()
        if members:
            a.attach(**members)
        a.send(*lines)
        a.sync()
        os.umask(before)
        return a

    def test_umask_of_the_requester(self):
        """Of the one that the child is started for: by a verb, by a prompt, with the whole environment, out of sleep."""
        d, agent = self.start(umask=0o022)
        self.with_mask(0o077, d, session="a")
        self.assertEqual(self.mask(agent.child()), "0077")
        self.with_mask(0, d, user("hi", session_id="b"))
        self.assertEqual(self.mask(agent.child()), "0000")
        argv = agent.command.split()[1:]
        self.with_mask(0o027, d, session="c", argv=argv, env={"PATH": os.environ["PATH"]}, env_only=True)
        self.assertEqual(self.mask(agent.child()), "0027")
        for mask, members in ((0o007, {"wake": True}), (0o070, {"wake": False})):
            for session in ("a", "c"):
                d.call("plenum_hibernate", session=session, force=True)
                d.wait_state(session, "asleep")
                self.with_mask(mask, d, *([] if members["wake"] else [user("hi")]), session=session, **members)
                self.assertEqual(self.mask(agent.child()), "%04o" % mask)

    @unittest.skipIf(os.getuid() != 0, "needs root for another uid")
    def test_umask_of_another_uid_does_not_count(self):
        d, agent = self.start(umask=0o022, daemon={"allow_uids": "nobody"})
        d.open_to_all()
        before = os.umask(0o077)
        self.addCleanup(os.umask, before)
        d.client(uid=65534, gid=65534).attach("a")
        self.assertEqual(self.mask(agent.child()), "0022")

    def test_a_requester_in_the_root_directory(self):
        """It is a service, such as the sshd of a forwarded socket: its directory is not its user's choice."""
        d, agent, other = self.start(agents=("agent", "other"))
        with open(d.conf, "ab") as f:
            f.write(b"cwd = /usr\n")  # of the last section: other
        d.call("plenum_reload")
        for n, (profile, which, want) in enumerate((("agent", agent, d.home), ("other", other, "/usr"))):
            a = d.client(env=d.env)
            self.assertEqual(a.attach("s%d" % n, profile=profile)["cwd"], want)
            self.assertEqual(which.child().start["cwd"], want)
        a = d.client(env=d.env)
        a.send(user("hi", session_id="implicit"))
        self.assertEqual(agent.child().start["cwd"], d.home)

    def test_cwd_of_the_profile_is_second(self):
        d, agent = self.start(profile={"cwd": "/usr"})
        d.attached("s1")
        self.assertEqual(agent.child().start["cwd"], os.getcwd())
        d.attached("s2", cwd="/")
        self.assertEqual(agent.child().start["cwd"], "/")

    def test_login_of_the_creating_client(self):
        """C63."""
        d, agent = self.start(env={"SSH_AUTH_SOCK": "/tmp/first"})
        for name in ("a", "b"):
            self.assertEqual(d.ctl("new", name, SSH_AUTH_SOCK="/tmp/" + name, CLAUDECODE="1").returncode, 0)
            child = agent.child()
            self.assertEqual(child.env["SSH_AUTH_SOCK"], "/tmp/" + name)
            self.assertNotIn("CLAUDECODE", child.env)

    def test_environment_is_that_of_the_daemon(self):
        """C72: except for the variables in the manual, the child's environment is the daemon's."""
        d, agent = self.start()
        d.attached(args=["--permission-mode", "bypassPermissions"])
        child = agent.child()
        self.assertEqual(child.argv[1:], ["--permission-mode", "bypassPermissions"])
        more = set(child.env) - set(d.env) - {"USER", "LOGNAME", "SHELL", "PWD", "PLENUM_CHILD", "PLENUM_INSTANCE"}
        self.assertEqual({v for v in more if not v.startswith(("SSH_", "XDG_", "DISPLAY", "DBUS", "GPG_"))}, set())


class ProgramTest(Case):
    """The program of the profile `linked` is missing, broken or replaced."""

    def program(self, d, mode, agent):
        """The program of the profile `linked`, which runs the agent."""
        with open(d.root + "/claude", "w") as f:
            f.write("#!/bin/sh\nexec %s \"$@\"\n" % agent.command)
        os.chmod(d.root + "/claude", mode)

    def linked(self, **options):
        d, agent = self.start(profiles={"profile linked": {"command": "/LINK"}}, **options)
        with open(d.conf) as f:
            conf = f.read().replace("/LINK", d.root + "/claude")
        with open(d.conf, "w") as f:
            f.write(conf)
        d.call("plenum_reload")
        return d, agent

    def test_error_names_why_the_program_does_not_start(self):
        """C11: the program, its path, the searched PATH; each cause has its own message."""
        d, agent = self.linked(env={"PATH": "/usr/bin:/bin"}, agents=("agent",))
        path, seen = d.root + "/claude", set()
        for content, mode, words in ((None, 0, "is not there"), ("#!/bin/sh\n", 0o644, "is not executable"), ("text\n", 0o755, "#! line"),
                                     ("#!/no/such/interpreter\n", 0o755, "/no/such/interpreter")):
            if content is not None:
                with open(path, "w") as f:
                    f.write(content)
                os.chmod(path, mode)
            e = self.assertRefused("spawn_failed", d.client().attach, "x", profile="linked")
            self.assertIn(path, e.text)
            self.assertIn(words, e.text)
            seen.add(e.text)
        os.unlink(path)
        os.mkdir(path)
        seen.add(self.assertRefused("spawn_failed", d.client().attach, "x", profile="linked").text)
        self.assertEqual(len(seen), 5)
        os.rmdir(path)
        with open(path, "w") as f:
            f.write("#!/usr/bin/env node-that-is-missing\n")
        os.chmod(path, 0o755)
        a = d.client()
        a.attach("x", profile="linked")
        self.assertEqual(a.event("child_exited")["status"], 127)
        self.assertIn("node-that-is-missing", a.initialize()["response.error"])
        self.assertEqual(agent.starts, 0)

    def test_prompt_during_an_update_of_the_program(self):
        """C32: the program is missing, then not yet executable, then valid; the prompt runs."""
        for _ in range(5):  # retried for three seconds, within which this test must replace it
            d, a = self.update()
            if not a.events("error"):
                return
        self.fail("the prompt does not wait: %s" % a.events("error"))

    def without_its_program(self):
        """A session that has had a turn, and then lost its program and its child."""
        d, agent = self.linked(mode={"session_id": "c-1"})
        self.program(d, 0o755, agent)
        a = d.client()
        a.attach("x", profile="linked")
        child = agent.child()
        child.print(init_line("c-1", claude_code_version="2.1.332"), RESULT)
        a.wait(type="result")
        self.assertEqual(d.sessions()["x"]["version"], "2.1.332")
        os.unlink(d.root + "/claude")
        child.exit(0)
        a.event("child_exited")
        return d, agent, a

    def update(self):
        d, agent, a = self.without_its_program()
        a.send(user("again", uuid="u"))
        until(lambda: "is not there" in d.log())
        self.program(d, 0o644, agent)
        until(lambda: "is not executable" in d.log() or a.events("error"))
        self.program(d, 0o755, agent)
        until(lambda: agent.starts == 2 or a.events("error"))
        if agent.starts == 2:
            agent.child().wait(type="user", uuid="u")
        return d, a

    def test_each_prompt_has_the_same_number_of_tries(self):
        """C32: a prompt after a refused one has as many tries."""
        d, _, a = self.without_its_program()

        def tries():
            with open(d.log_path) as f:
                return f.read().count("is not there")

        counted = [0]
        for uuid in ("u-1", "u-2"):
            a.send(user("again", uuid=uuid))
            a.error("spawn_failed", uuid=uuid)
            counted.append(tries())
        self.assertGreater(counted[1], 1)
        self.assertEqual(counted[2], 2 * counted[1])

    def test_login_of_the_waking_client(self):
        """C63, C11: by a prompt, by an attach, and after a restart of the daemon; the PATH stays that of the
        creator."""
        d, agent = self.start(mode={"session_id": "c-1"}, profiles={"profile linked": {"command": "claude"}})
        self.program(d, 0o755, agent)

        def visitor(name, path, **members):
            c = d.client(env={"SSH_AUTH_SOCK": "/tmp/" + name, "PATH": path, "CLAUDECODE": "1"})
            c.attach("s", **members)
            return c

        def check(client, name):
            child = agent.child()
            self.assertEqual(child.env["SSH_AUTH_SOCK"], "/tmp/" + name)
            self.assertNotIn("CLAUDECODE", child.env)
            child.print(init_line("c-1"), RESULT)
            client.wait(type="result")
            child.exit(0)
            client.event("child_exited")

        check(visitor("a", d.root, cwd="/", profile="linked"), "a")
        b = visitor("b", "/usr/bin")
        b.send(user("x"))
        check(b, "b")
        check(visitor("c", "/usr/bin", wake=True), "c")
        e = d.client(env={"SSH_AUTH_SOCK": "/tmp/e", "PATH": "/usr/bin"})
        e.send(user("x", session_id="s"))  # also by the prompt that attaches it
        check(e, "e")
        d.kill9()
        d.start()
        check(visitor("d", d.root, wake=True), "d")


if __name__ == "__main__":
    unittest.main()
