# SPDX-License-Identifier: MIT
"""Attaching, roles, and how a child is started (DESIGN 3.2, 8, 9.2; CASES C01 C11 C30 C31 C39 C63 C64)."""
import os
import pwd
import unittest

from harness import Case, allow, perm, until, user, PlenumError, RESULT

NOBODY = 65534
need_root = unittest.skipUnless(os.getuid() == 0, "needs root, to become somebody else")


class ImplicitTest(Case):
    def test_a_user_line_makes_the_default_session(self):
        d, agent = self.start(mode={"user": True})
        c = d.client()
        c.send(user("hello"))
        self.assertEqual(c.wait(type="result")["result"], "turn 1")
        self.assertEqual(list(d.sessions()), ["default"])

    def test_a_user_line_names_its_session(self):
        d, agent = self.start()
        c = d.client()
        c.send(user("hello", session_id="work"))
        agent.child().wait(type="user")
        self.assertEqual(list(d.sessions()), ["work"])

    def test_an_empty_session_id_is_default(self):
        d, agent = self.start()
        c = d.client()
        c.send(user("hello", session_id=""))
        agent.child().wait(type="user")
        self.assertEqual(list(d.sessions()), ["default"])

    def test_any_other_request_attaches_too(self):
        d, agent = self.start()
        c = d.client()
        answer = c.initialize()
        self.assertEqual(answer["response.subtype"], "success")
        self.assertEqual(list(d.sessions()), ["default"])

    def test_verbs_attach_nobody(self):
        d, agent = self.start()
        c = d.client()
        c.hello()
        c.request("plenum_list")
        self.assertEqual(d.sessions(), {})
        c.send(user("now"))
        agent.child().wait(type="user")
        self.assertEqual(list(d.sessions()), ["default"])

    def test_two_programs_share_the_default_session(self):
        d, agent = self.start()
        a, b = d.client(), d.client()
        a.send(user("one"))
        child = agent.child()
        child.wait(type="user")
        b.send(user("two"))
        self.assertEqual(child.wait(type="user")["message.content"], "two")
        child.print(RESULT)
        a.wait(type="result")
        b.wait(type="result")
        self.assertEqual(agent.starts, 1)

    def test_an_implicit_driver_is_asked(self):
        d, agent = self.start()
        a = d.client()
        a.send(user("one"))
        child = agent.child()
        child.print(perm("k-1"))
        a.send(allow(a.wait(type="control_request")["request_id"]))
        child.answer("k-1")

    def test_no_replay(self):
        d, agent = self.start()
        a = d.client()
        a.send(user("one"))
        child = agent.child()
        child.print({"type": "x", "n": 1})
        a.wait(type="x")
        b = d.client()
        b.send(user("two"))
        child.wait(lambda m: m["message.content"] == "two")
        child.mark(b)
        self.assertNone(b.seen(type="x"))


class AnswerTest(Case):
    MEMBERS = ("session created conversation_id state profile cwd pid seq oldest_seq replay_cut pending attachments "
               "protocol").split()

    def test_members(self):
        d, agent = self.start()
        a = d.client()
        got = a.attach("work", name="first")
        self.assertEqual([m for m in self.MEMBERS if m not in got], [])
        child = agent.child()
        self.assertEqual(got["session"], "work")
        self.assertIs(got["created"], True)
        self.assertIn(got["state"], ("starting", "idle"))
        self.assertEqual(got["profile"], "agent")
        self.assertEqual(got["pid"], child.pid)
        self.assertEqual(got["cwd"], os.getcwd())
        self.assertIs(got["replay_cut"], False)
        self.assertEqual(got["pending"], [])
        self.assertEqual(got["attachments"], [])
        self.assertEqual(got["protocol"], 1)
        self.assertLessEqual(got["oldest_seq"], got["seq"])
        b = d.client()
        again = b.attach("work", role="observer")
        self.assertIs(again["created"], False)
        self.assertEqual(again["pid"], child.pid)
        self.assertEqual(len(again["attachments"]), 1)
        other = again["attachments"][0]
        self.assertEqual(other["name"], "first")
        self.assertEqual(other["uid"], os.getuid())
        self.assertEqual(other["pid"], os.getpid())
        self.assertEqual(other["role"], "driver")

    def test_conversation_id(self):
        d, agent = self.start(mode={"user": True, "session_id": "conv-x"})
        a = d.attached("work")
        a.send(user("hi"))
        a.wait(type="result")
        b = d.client()
        self.assertEqual(b.attach("work")["conversation_id"], "conv-x")
        c = d.client()
        got = c.attach("conv-x")
        self.assertEqual(got["session"], "work")
        self.assertIs(got["created"], False)
        self.assertEqual(agent.starts, 1)

    def test_seq_grows_with_the_tape(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        before = d.attached(role="observer").attached["seq"]
        child.print(*[{"type": "x", "n": n} for n in range(10)])
        a.wait(type="x", n=9)
        self.assertGreaterEqual(d.attached(role="observer").attached["seq"], before + 10)

    def test_pending_in_the_answer(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        child.print(perm("k-1"), perm("k-2"))
        a.wait(type="control_request")
        a.wait(type="control_request")
        b = d.client()
        got = b.attach("s")
        self.assertEqual(len(got["pending"]), 2)
        asked = [b.wait(type="control_request")["request_id"] for _ in range(2)]
        self.assertEqual(sorted(asked), sorted(got["pending"]))
        child.mark(b)
        self.assertEqual(len(b.seen(type="control_request")), 2)
        o = d.client()
        self.assertEqual(o.attach("s", role="observer")["pending"], [])

    def test_others_are_told(self):
        d, agent = self.start()
        a = d.attached()
        b = d.attached(name="second")
        self.assertEqual(a.event("attached", client__name="second")["session"], "s")
        b.close()
        a.event("detached", client__name="second")


class NamingTest(Case):
    def test_a_fresh_name(self):
        d, agent = self.start()
        names = {d.client().attach()["session"] for _ in range(5)}
        self.assertEqual(len(names), 5)
        self.assertTrue(all(names))

    def test_create(self):
        d, agent = self.start()
        a = d.client()
        self.assertRefused("no_such_session", a.attach, "work", create="never")
        self.assertEqual(agent.starts, 0)
        self.assertEqual(a.attach("work", create="new")["created"], True)
        b = d.client()
        self.assertRefused("session_exists", b.attach, "work", create="new")
        self.assertEqual(b.attach("work", create="never")["created"], False)
        c = d.client()
        self.assertEqual(c.attach("work", create="auto")["created"], False)
        agent.child()
        self.assertEqual(agent.starts, 1)

    def test_one_session_a_connection(self):
        d, agent = self.start()
        a = d.attached("one")
        self.assertRefused("already_attached", a.attach, "two")
        self.assertRefused("already_attached", a.attach, "one")
        self.assertEqual(list(d.sessions()), ["one"])
        a.request("plenum_detach")
        self.assertEqual(a.attach("two")["session"], "two")

    def test_an_implicitly_attached_client_too(self):
        d, agent = self.start()
        a = d.client()
        a.send(user("x"))
        agent.child().wait(type="user")
        self.assertRefused("already_attached", a.attach, "two")

    def test_not_attached(self):
        d, agent = self.start()
        a = d.client()
        for verb in ("plenum_detach", "plenum_register", "plenum_stop"):
            self.assertRefused("not_attached", a.request, verb)

    def test_no_such_profile(self):
        d, agent = self.start()
        a = d.client()
        self.assertIn("nope", self.assertRefused("no_such_profile", a.attach, "s", profile="nope").text)
        self.assertEqual(d.sessions(), {})

    def test_profiles(self):
        d, one, two = self.start(agents=("one", "two"))
        self.assertEqual(d.client().attach("a", profile="two")["profile"], "two")
        two.child()
        self.assertEqual(d.client().attach("b")["profile"], "one")
        one.child()

    def test_max_sessions(self):
        d, agent = self.start(daemon={"max_sessions": "2"})
        d.attached("a")
        d.attached("b")
        c = d.client()
        self.assertRefused("too_many", c.attach, "c")
        self.assertEqual(sorted(d.sessions()), ["a", "b"])
        d.call("plenum_stop", session="a", how="kill", forget=True)
        until(lambda: "a" not in d.sessions())
        c.attach("c")

    def test_a_long_session_name(self):
        d, agent = self.start()
        a = d.client()
        try:
            got = a.attach("n" * 200)
            self.assertEqual(got["session"], "n" * 200)
        except PlenumError as e:
            self.assertEqual(e.code, "bad_request")

    def test_names_that_are_paths(self):
        """Nothing of a name gets to the file system."""
        d, agent = self.start()
        for name in ("../../evil", "/etc/evil", "a/b", "x\u0000y", "new\nline", "."):
            a = d.client()
            try:
                self.assertEqual(a.attach(name)["session"], name)
            except PlenumError as e:
                self.assertEqual(e.code, "bad_request")
        for folder, _, files in os.walk(d.root):
            self.assertNotIn("evil", files)


class RoleTest(Case):
    def test_an_observer_may_not_write(self):
        d, agent = self.start()
        a = d.attached()
        o = d.attached(role="observer")
        child = agent.child()
        o.send(user("no"))
        notice = o.error("not_allowed")
        self.assertEqual(notice["line"], 2)
        o.send({"type": "whatever"})
        o.error("not_allowed")
        for sub in ("interrupt", "set_permission_mode", "mcp_status", "end_session", "initialize", "brand_new"):
            self.assertRefused("not_allowed", o.request, sub)
        o.sync()
        a.send(user("yes", uuid="u1"))
        child.wait(type="user", uuid="u1")
        self.assertNone(child.seen(lambda m: m["uuid"] != "u1" and m["request.subtype"] != "initialize"))
        child.print(RESULT)
        o.wait(type="result")

    def test_an_observer_is_not_asked(self):
        d, agent = self.start()
        a = d.attached()
        o = d.attached(role="observer")
        child = agent.child()
        child.print(perm("k-1"))
        a.wait(type="control_request")
        child.mark(o)
        self.assertNone(o.seen(type="control_request"))
        o.send(allow("k-1"))
        self.refusal(o, None, ("unknown_request", "not_allowed"))
        o.sync()
        self.assertNone(child.answers("k-1"))

    def test_an_observer_that_asks_to_be_approver(self):
        d, agent = self.start()
        a = d.attached()
        o = d.attached(role="observer", approve=True)
        child = agent.child()
        child.print(perm("k-1"))
        o.send(allow(o.wait(type="control_request")["request_id"]))
        child.answer("k-1")
        o.send(user("still no"))
        o.error("not_allowed")

    def test_a_driver_that_does_not_approve(self):
        d, agent = self.start()
        a = d.attached()
        b = d.attached(approve=False)
        child = agent.child()
        child.print(perm("k-1"))
        a.wait(type="control_request")
        child.mark(b)
        self.assertNone(b.seen(type="control_request"))
        b.send(user("but may write", uuid="u"))
        child.wait(type="user", uuid="u")

    def test_approve_for_some_tools(self):
        d, agent = self.start()
        a = d.attached(approve={"tools": ["Bash"]})
        b = d.attached()
        child = agent.child()
        child.print(perm("k-1", tool="Write"), perm("k-2", tool="Bash"))
        self.assertEqual(a.wait(type="control_request")["request.tool_name"], "Bash")
        b.wait(type="control_request", request__tool_name="Write")
        b.wait(type="control_request", request__tool_name="Bash")
        child.mark(a)
        self.assertEqual(len(a.seen(type="control_request")), 1)

    def test_the_role_changes(self):
        d, agent = self.start()
        a = d.attached()
        b = d.attached(role="observer")
        child = agent.child()
        b.request("plenum_register", role="driver")
        b.send(user("now", uuid="u1"))
        child.wait(type="user", uuid="u1")
        b.request("plenum_register", role="observer")
        b.send(user("no more"))
        b.error("not_allowed")

    def test_detach(self):
        d, agent = self.start()
        a, b = d.attached(), d.attached()
        child = agent.child()
        b.request("plenum_detach")
        a.event("detached")
        child.print({"type": "x"})
        a.wait(type="x")
        b.sync()
        self.assertNone(b.seen(type="x"))


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
        d, agent = self.start(profiles={"profile bad": {"command": "/no/such/program"}})
        a = d.attached()
        child = agent.child()
        for _ in range(20):
            self.assertRefused("spawn_failed", d.client().attach, "bad", profile="bad")
        child.mark(a)


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
        """Own session and group, only stdio, default signals, the daemon's umask and not its directory."""
        d, agent = self.start(profiles={"profile sh": {"command": "sh -c 'grep Sig /proc/self/status >&2; umask >&2; sleep 30'"}},
                              umask=0o027)
        d.attached()
        child = agent.child()
        self.assertEqual(child.start["ppid"], d.pid)
        self.assertEqual((child.start["pgid"], child.start["sid"]), (child.pid, child.pid))
        self.assertEqual([fd for fd in child.start["fds"] if fd > 4], [])
        a = d.attached("sh", profile="sh")
        text = until(lambda: (lambda t: "0027" in t and t)(str(a.request("plenum_logs", session="sh"))))
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

    def test_cwd_of_the_profile_is_second(self):
        d, agent = self.start(profile={"cwd": "/usr"})
        d.attached("s1")
        self.assertEqual(agent.child().start["cwd"], os.getcwd())
        d.attached("s2", cwd="/")
        self.assertEqual(agent.child().start["cwd"], "/")


@need_root
class OtherUidTest(Case):
    def setUp(self):
        super().setUp()
        self.d, self.agent, _ = self.start(agents=("agent", "mine"), daemon={"allow_uids": "nobody"}, profile={"cwd": "/usr"})
        conf = open(self.d.conf).read().replace("[profile mine]\n", "[profile mine]\nprivate = yes\n")
        with open(self.d.conf, "w") as f:
            f.write(conf)
        self.d.call("plenum_reload")
        self.d.open_to_all()
        self.c = self.d.client(uid=NOBODY, gid=NOBODY)

    def test_what_another_uid_may_not_ask(self):
        for members in ({"args": ["--x"]}, {"env": {"A": "1"}}, {"cwd": "/"}, {"profile": "mine"}):
            self.assertRefused("not_allowed", self.c.attach, "n", **members)
        self.assertEqual(self.d.sessions(), {})

    def test_what_it_may(self):
        self.c.attach("n")
        child = self.agent.child()
        self.assertEqual(child.start["cwd"], "/usr")
        self.c.send(user("hi", uuid="u"))
        child.wait(type="user", uuid="u")
        own = self.d.attached("n")
        child.print(perm("k-1"))
        rid = own.wait(type="control_request")["request_id"]
        child.mark(self.c)
        self.assertNone(self.c.seen(type="control_request"), "asked though no approver is configured for its uid")
        self.assertRefused("not_allowed", self.c.request, "plenum_register", approve=True)
        own.send(allow(rid))
        child.answer("k-1")

    def test_what_only_the_owner_may(self):
        self.assertRefused("not_allowed", self.c.request, "plenum_shutdown")
        self.assertRefused("not_allowed", self.c.request, "plenum_reload")
        self.d.attached("s")
        self.assertRefused("not_allowed", self.c.request, "plenum_stop", session="s")

    def test_the_owner_may(self):
        a = self.d.client()
        a.attach("m", profile="mine", args=["--x"], cwd="/", env={"A": "1"})

    def test_root_is_no_stranger(self):
        """Neither by the verb nor by a first line that makes the session."""
        d, agent = self.start(run_as="nobody", profile={"private": "yes"}, env={"HOME": "no/absolute/path"})
        d.client().attach("verb")
        d.client().send(user("hi", session_id="line"))
        for child in (agent.child(), agent.child()):
            self.assertEqual(child.start["cwd"], "/")
        self.assertEqual(sorted(d.sessions()), ["line", "verb"])

    def test_approvers_of_another_uid(self):
        """The strong setting: only approve_uids may answer."""
        d, agent = self.start(daemon={"allow_uids": "65534", "approve_uids": "65534"})
        d.open_to_all()
        a = d.client()
        self.assertRefused("not_allowed", a.attach, "s", approve=True)
        a.attach("s")
        n = d.client(uid=NOBODY, gid=NOBODY)
        n.attach("s")
        child = agent.child()
        child.print(perm("k-1"))
        rid = n.wait(type="control_request")["request_id"]
        child.mark(a)
        self.assertNone(a.seen(type="control_request"))
        n.send(allow(rid))
        child.answer("k-1")


if __name__ == "__main__":
    unittest.main()
