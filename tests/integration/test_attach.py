# SPDX-License-Identifier: MIT
"""Attaching, roles, and how a child is started (contract 3.2, 8, 9.2; cases C01 C11 C30 C31 C39 C63 C64)."""
import os
import unittest

from harness import RESULT, Case, PlenumError, allow, init_line, perm, request, until, user
from standstill import connected, standstill

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

    def test_invalid_session_id_does_not_become_default(self):
        d, _ = self.start()
        a = d.client()
        a.send(user("hi", session_id="work\0"))
        a.error("bad_request", line=1)
        self.assertEqual(d.sessions(), {})

    def test_no_implicit_attach_after_an_explicit_one(self):
        d, agent = self.start()
        a = d.client()
        a.send(request("1", "plenum_attach", session="work", cwd="/not/there"), user("rm -r *"),
               request("2", "interrupt"))
        self.assertEqual(a.answer("1")["response.code"], "spawn_failed")
        a.error("not_attached", line=2)
        self.assertEqual(a.answer("2")["response.code"], "not_attached")
        a.attach("work")
        a.send(user("fine"))
        agent.child().wait(type="user")
        d.call("plenum_stop", session="work", forget=True)
        a.event("session_removed")
        a.send(user("too late", uuid="u-\u00fc"))
        a.error("not_attached", uuid="u-\u00fc")
        b = d.client()
        b.attach("other")
        b.request("plenum_detach")
        b.send(user("nowhere"))
        b.error("not_attached")
        self.assertEqual(list(d.sessions()), ["other"])


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
        d, _, child, a = self.open()
        before = d.attached(role="observer").attached["seq"]
        child.print(*[{"type": "x", "n": n} for n in range(10)])
        a.wait(type="x", n=9)
        self.assertGreaterEqual(d.attached(role="observer").attached["seq"], before + 10)

    def test_pending_in_the_answer(self):
        d, _, child, a = self.open()
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
        """No part of a name reaches the file system."""
        d, agent = self.start()
        for name in ("../../evil", "/etc/evil", "a/b", "x\u0000y", "new\nline", "."):
            a = d.client()
            try:
                self.assertEqual(a.attach(name)["session"], name)
            except PlenumError as e:
                self.assertEqual(e.code, "bad_request")
        for folder, _, files in os.walk(d.root):
            self.assertNotIn("evil", files)

    def test_working_directory_whose_name_is_not_utf8(self):
        d, agent = self.start()
        folder = d.root.encode() + b"/\xff\xfe"
        os.mkdir(folder)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(folder)
        a = d.client()
        answer = a.attach("s")
        os.chdir(before)
        self.assertTrue(answer["cwd"].startswith(d.root + "/"), answer["cwd"])
        self.assertEqual(list(d.sessions()), ["s"])

    def test_invalid_session_id_in_a_prompt(self):
        d, agent = self.start()
        a = d.client()
        a.send(user("hi", session_id="x" * 300))
        a.error("bad_request")
        a.send(user("hi", session_id="a\nb"))
        a.error("bad_request")
        self.assertEqual(d.sessions(), {})

    def test_attach_right_behind_the_end_of_an_ephemeral_session(self):
        d, agent = self.start()
        a = d.client()
        a.attach("s", ephemeral=True)
        old = agent.child()
        d.wait_state("s", "idle")
        (b,) = connected(d, 1)
        with standstill(d):
            a.close()
            rid = b.ask("plenum_attach", session="s")
        self.assertIs(b.answer(rid)["response.response.created"], True)
        old.wait_gone()
        agent.child()


class JoinTest(Case):
    """What a client brings to a session that exists counts for the CLI that is started for it; else the answer names it
    and the reason."""

    def asleep(self, **made):
        """A daemon with a sleeping session."""
        self.d, self.agent = self.start()
        a = self.d.client()
        a.attach("s", **made)
        child = self.agent.child()
        child.prompted(a, "hi")
        child.print(init_line(), RESULT)
        a.event("turn_ended")
        a.request("plenum_hibernate")
        self.d.wait_state("s", "asleep")
        a.close()

    def test_of_a_sleeping_session(self):
        for wake in (True, False):
            self.asleep(args=["--old"], env={"KEPT": "1", "CHANGED": "1"})
            b = self.d.client()
            got = b.attach("s", wake=wake, args=["--new"], env={"CHANGED": "2", "NEW": "3"})
            self.assertNotIn("ignored", got)
            if not wake:
                b.send(user("hi"))
            child = self.agent.child()
            self.assertIn("--new", child.argv)
            self.assertNotIn("--old", child.argv)
            self.assertIn("--resume=conv-1", child.argv)
            self.assertEqual([child.env.get(k) for k in ("KEPT", "CHANGED", "NEW")], ["1", "2", "3"])

    def test_a_whole_command_line(self):
        """Of a program that stands in for the CLI; another conversation in it does not count."""
        self.asleep(args=["--old"], env={"OLD": "1"})
        b = self.d.client()
        got = b.attach("s", wake=True, argv=self.agent.command.split()[1:] + ["-p", "--model=x", "--continue"], env={"NEW": "2", "PATH": os.environ["PATH"]},
                       env_only=True)
        self.assertNotIn("ignored", got)
        child = self.agent.child()
        self.assertIn("--model=x", child.argv)
        self.assertIn("--resume=conv-1", child.argv)
        self.assertNotIn("--continue", child.argv)
        self.assertNotIn("--old", child.argv)
        self.assertEqual((child.env.get("NEW"), child.env.get("OLD")), ("2", None))

    def test_it_is_kept(self):
        """For later children, also of the next daemon."""
        self.asleep()
        self.d.client().attach("s", args=["--new"], env={"NEW": "3"})
        self.d.stop()
        self.d.start()
        self.d.attached("s", wake=True)
        child = self.agent.child()
        self.assertIn("--new", child.argv)
        self.assertEqual(child.env["NEW"], "3")

    def test_a_conversation_is_in_use_once_brought(self):
        """A session without one takes it: no second CLI may write to it before the first one has named it."""
        d, agent = self.start()
        d.attached("s").request("plenum_hibernate")
        d.wait_state("s", "asleep")
        conversation = "11111111-1111-4111-8111-111111111111"
        self.assertNotIn("ignored", d.client().attach("s", wake=True, args=["--resume", conversation]))
        self.assertRefused("conversation_in_use", d.client().attach, "other", resume=conversation)
        self.assertIn(conversation, [agent.child(), agent.child()][1].argv)

    def test_what_belongs_to_the_session(self):
        self.asleep()
        got = self.d.client().attach("s", cwd="/usr", resume="other", args=["--new"])
        self.assertEqual(got["ignored"], ["cwd", "resume"])
        self.assertIn("keeps", got["ignored_why"])
        self.assertEqual(got["state"], "asleep")

    def test_an_observer(self):
        self.asleep()
        got = self.d.client().attach("s", role="observer", args=["--new"], env={"NEW": "3"})
        self.assertEqual(got["ignored"], ["env", "args"])
        self.assertIn("only a driver", got["ignored_why"])
        self.d.attached("s", wake=True)
        self.assertNotIn("--new", self.agent.child().argv)

    def test_a_client_that_may_change_no_permissions(self):
        """Arguments may be permissions."""
        self.asleep()
        with open(self.d.conf) as f:
            conf = f.read().replace("[daemon]\n", "[daemon]\napprove_uids = %d\n" % NOBODY)
        with open(self.d.conf, "w") as f:
            f.write(conf)
        self.d.call("plenum_reload")
        a = self.d.client()
        got = a.attach("s", wake=True, args=["--dangerously-skip-permissions"])
        self.assertEqual(got["ignored"], ["args"])
        self.assertIn("only a driver that may be an approver", got["ignored_why"])
        self.assertNotIn("--dangerously-skip-permissions", self.agent.child().argv)

    def test_of_a_running_session(self):
        d, agent = self.start()
        d.client().attach("s", args=["--old"], env={"A": "1"})
        agent.child()
        self.assertNotIn("ignored", d.client().attach("s", args=["--old"], env={"A": "1"}))
        got = d.client().attach("s", args=["--new"], env={"A": "2"})
        self.assertEqual(got["ignored"], ["env", "args"])
        self.assertIn("started before", got["ignored_why"])

    def test_a_whole_command_line_of_a_running_session(self):
        """Words that the child has from its profile, its dialect or another client are no difference."""
        d, agent = self.start()
        d.client().attach("s", args=["--old"])
        agent.child()
        profile = agent.command.split()[1:]
        had = profile + ["--old"]
        self.assertNotIn("ignored", d.client().attach("s", argv=had, env={}, env_only=True))
        got = d.client().attach("s", argv=had + ["--new", "x"], env={}, env_only=True)
        self.assertEqual(got["ignored"], ["--new", "x"])
        d.client().attach("t", argv=profile, env={}, env_only=True)
        flags = [word for word in agent.child().argv if word not in profile]
        self.assertIn("--replay-user-messages", flags)
        self.assertNotIn("ignored", d.client().attach("t", argv=profile + flags, env={}, env_only=True))


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
        child.prompted(a, "yes", uuid="u1")
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
        child.prompted(b, "but may write", uuid="u")

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
        child.prompted(b, "now", uuid="u1")
        b.request("plenum_register", role="observer")
        b.send(user("no more"))
        b.error("not_allowed")

    def test_a_refused_change_changes_nothing(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        self.assertRefused("bad_request", a.request, "plenum_register", role="observer", on_lag="close",
                           approve={"tools": ["Bash", 1]})
        answer = a.request("plenum_register")
        self.assertEqual((answer["role"], answer["approve"]), ("driver", True))
        child.print(perm("k-1", tool="Write"))
        a.wait(type="control_request", request__tool_name="Write")

    def test_detach(self):
        _, _, child, a, b = self.open(2)
        b.request("plenum_detach")
        a.event("detached")
        child.print({"type": "x"})
        a.wait(type="x")
        b.sync()
        self.assertNone(b.seen(type="x"))


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
        self.assertRefused("not_allowed", self.c.request, "plenum_rename", session="s", name="mine")

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


class PrivateTest(Case):
    @unittest.skipUnless(os.getuid() == 0, "needs root, to connect as somebody else")
    def test_private_session_is_hidden_from_another_uid(self):
        d, agent = self.start(daemon={"allow_uids": "12345"}, profile={"private": "yes"})
        d.attached("mine")
        child = agent.child()
        d.open_to_all()
        c = d.client(uid=12345, gid=12345)
        c.send(user("hi", session_id="mine", uuid="u"))
        c.error("not_allowed")
        self.assertNone(child.seen(type="user"))
        self.assertEqual(c.request("plenum_list")["sessions"], [])
        child.print(perm("k-1"))
        until(lambda: d.call("plenum_pending")["pending"], what="the request")
        self.assertEqual(c.request("plenum_pending")["pending"], [])
        for verb in ("plenum_status", "plenum_logs", "plenum_pending", "plenum_stop"):
            self.assertRefused("not_allowed", c.request, verb, session="mine")


if __name__ == "__main__":
    unittest.main()
