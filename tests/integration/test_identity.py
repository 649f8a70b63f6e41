# SPDX-License-Identifier: MIT
"""The conversation of a session, and how it is kept (contract 8; cases C26 C28 C78)."""
import glob
import os
import subprocess
import unittest
import uuid

from harness import RESULT, TIMEOUT, Case, build_file, err, init as init_request, init_line, request, until, user
from standstill import standstill


class ContinueTest(Case):
    """Only the child knows the conversation that --continue resumes; it still has only one child."""

    def continued(self, *args, forget=False):
        d, agent = self.start()
        a = d.attached("first")
        child = agent.child()
        child.print(init_line("conv-1"), dict(RESULT, session_id="conv-1"))
        a.wait(type="result")
        if forget:
            a.ask("plenum_stop", forget=True)
            a.event("session_removed")
        b = d.attached("second", args=list(args))
        second = agent.child()
        mine = "conv-2" if "--fork-session" in args else "conv-1"
        second.print(init_line(mine), dict(RESULT, session_id=mine))
        return d, agent, a, b

    def test_a_conversation_of_another_session(self):
        for word in ("--continue", "-c"):
            d, agent, a, b = self.continued(word)
            told = b.event("child_exited")
            self.assertEqual((told["signal"], told["wanted"], told["stopped"]), (9, False, True))
            self.assertIn("it is that of session first: attach", told["reason"])
            self.assertIn("PLENUM_SESSION=first", b.event("failed")["reason"])
            d.wait_state("second", "failed")
            self.assertIsNone(d.sessions()["second"]["conversation_id"])
            self.assertEqual(d.sessions()["first"]["conversation_id"], "conv-1")
            self.assertEqual(d.state_of("first"), "idle")

    def test_one_that_says_it_late(self):
        """During a stop, or in its last output before it ended by itself: it is not learnt either."""
        for how in ("stopped", "ended"):
            d, agent = self.start(mode={"eof": "ignore"}, profile={"stop_grace": "1min"}, limits={"tape_lines": "50"})
            a, b = d.attached("first"), d.attached("second", args=["--continue"])
            first, second = agent.child(), agent.child()
            if first.argv[-1] == "--continue":
                first, second = second, first
            first.print(init_line("conv-1"), dict(RESULT, session_id="conv-1"))
            a.wait(type="result")
            if how == "stopped":
                b.request("plenum_stop")
                second.event("eof")
                second.print(init_line("conv-1"))
            else:
                with standstill(d):  # the end is seen before all is read
                    second.print(*[{"type": "x"}] * 3000, init_line("conv-1"))
                    second.exit(3)
                    second.wait_gone()
            self.assertIn("it is that of session", b.event("child_exited")["reason"], how)
            d.wait_state("second", "failed")
            self.assertIsNone(d.sessions()["second"]["conversation_id"], how)

    def test_behind_one_that_ends(self):
        """The session that had it is no longer an obstacle; another that has resumed it since is one."""
        d, agent = self.start(mode={"eof": "ignore"}, profile={"stop_grace": "1min"})
        a = d.attached("first", ephemeral=True)
        child = agent.child()
        child.print(init_line("conv-1"), dict(RESULT, session_id="conv-1"))
        a.wait(type="result")
        a.half_close()
        child.event("eof")
        for name in ("second", "third"):
            b = d.attached(name, args=["--continue"])
            agent.child().print(init_line("conv-1"), dict(RESULT, session_id="conv-1"))
            if name == "second":
                b.wait(type="result")
        self.assertIn("it is that of session", b.event("child_exited")["reason"])
        self.assertEqual([d.sessions()[name]["conversation_id"] for name in ("second", "third")], ["conv-1", None])

    def test_a_prompt_that_comes_meanwhile(self):
        """It is for the next child; a prompt for the killed one is not."""
        d, agent = self.start()
        a = d.attached("first")
        child = agent.child()
        child.print(init_line("conv-1"), dict(RESULT, session_id="conv-1"))
        a.wait(type="result")
        b = d.attached("second", args=["--continue"])
        second = agent.child()
        second.pause()
        b.send(user("x" * 1000000, uuid="u1"))
        b.sync()
        with standstill(d):  # both are seen at once
            second.print(init_line("conv-1"))
            second.written()
            b.send(user("two", uuid="u2"))
        self.assertEqual(b.error("child_exited")["uuid"], "u1")
        third = agent.child()
        self.assertEqual(third.wait(type="user")["uuid"], "u2")
        self.assertEqual([m["uuid"] for m in third.seen(type="user")], ["u2"])

    def test_one_of_its_own(self):
        for words, forget in ((("--continue", "--fork-session"), False), (("--continue",), True)):
            d, agent, a, b = self.continued(*words, forget=forget)
            b.wait(type="result")
            d.wait_state("second", "idle")
            self.assertEqual(d.sessions()["second"]["conversation_id"], "conv-2" if not forget else "conv-1")


class Identity(Case):
    def conversation(self, d, session="s"):
        return d.sessions()[session]["conversation_id"]

    def resumed(self, child):
        """Return the ids after --resume= on its command line."""
        return [w[len("--resume="):] for w in child.argv if w.startswith("--resume=")]

    def end(self, child, *clients):
        child.exit(0)
        for c in clients:
            c.event("child_exited")


class ConversationTest(Identity):
    def test_from_init(self):
        d, agent = self.start()
        a = d.attached()
        self.assertIsNone(a.attached["conversation_id"])
        child = agent.child()
        child.print(init_line("c-1"))
        a.wait(subtype="init")
        self.assertEqual(self.conversation(d), "c-1")

    def test_from_result(self):
        d, agent = self.start()
        a = d.attached()
        agent.child().print(dict(RESULT, session_id="c-2"))
        a.wait(type="result")
        self.assertEqual(self.conversation(d), "c-2")

    def test_not_from_anything_else(self):
        d, _, child, a = self.open()
        child.print(init_line("c-1"), {"type": "system", "subtype": "status", "session_id": "other"},
                    {"type": "assistant", "message": {"session_id": "nested"}, "session_id": "c-1"}, {"type": "x", "session_id": 5})
        child.mark(a)
        self.assertEqual(self.conversation(d), "c-1")

    def test_clear(self):
        d, agent = self.start()
        a = d.attached("work")
        child = agent.child()
        child.print(init_line("c-1"), dict(RESULT, session_id="c-1"))
        a.wait(type="result")
        child.prompted(a, "/clear", uuid="u")
        child.print({"type": "conversation_reset", "session_id": "c-1", "new_conversation_id": "not-this", "trigger": "clear"},
                    init_line("c-2"), dict(RESULT, session_id="c-2", user_message_uuids=["u"]))
        a.wait(type="result")
        self.assertEqual(self.conversation(d, "work"), "c-2")
        b = d.client()
        self.assertEqual(b.attach("c-2")["session"], "work")
        self.end(child, a)
        a.send(user("on", uuid="u2"))
        child = agent.child()
        self.assertEqual(self.resumed(child), ["c-2"])
        self.assertEqual(list(d.sessions()), ["work"])

    def test_resume_reports_another(self):
        """C26: the second resume tries the known id; if the child does not know it, the other; never a new one."""
        d, agent = self.start()
        a = d.client()
        self.assertEqual(a.attach("s", resume="X")["conversation_id"], "X")
        child = agent.child()
        self.assertEqual(self.resumed(child), ["X"])
        child.print(init_line("Y"), dict(RESULT, session_id="Y"))
        a.wait(type="result")
        status = str(d.call("plenum_status", session="s"))
        self.assertIn("'X'", status)
        self.assertIn("'Y'", status)
        self.end(child, a)
        agent.mode(start=[{"op": "stderr", "text": "No conversation found with session ID: it\n"}, {"op": "exit_now", "status": 1}])
        a.send(user("on", uuid="u"))
        second = agent.child()
        tried = self.resumed(second)
        agent.mode()
        if agent.starts == 2:
            a.event("child_exited")
        if agent.starts == 2:
            a.send(user("on", uuid="u2"))
        third = agent.child()
        self.assertEqual(sorted(tried + self.resumed(third)), ["X", "Y"])

    def test_no_silent_new_conversation(self):
        d, agent = self.start()
        a = d.client()
        a.attach("s", resume="X")
        child = agent.child()
        child.stderr("No conversation found with session ID: X\n")
        child.event("stderr_done")
        child.exit(1)
        m = a.event("child_exited")
        self.assertIn("No conversation found", str(m["stderr"]))
        a.send(user("on"))
        self.assertEqual(self.resumed(agent.child()), ["X"])

    def test_fork(self):
        d, agent = self.start()
        a = d.attached("one")
        child = agent.child()
        child.print(init_line("c-1"), RESULT)
        a.wait(type="result")
        b = d.client()
        b.attach("two", resume="c-1", fork=True)
        self.assertIsNone(d.sessions()["two"]["conversation_id"])  # a new one, with an unknown id
        second = agent.child()
        self.assertEqual(self.resumed(second), ["c-1"])
        self.assertIn("--fork-session", second.argv)
        second.print(init_line("c-2"), dict(RESULT, session_id="c-2"))
        b.wait(type="result")
        self.assertEqual((self.conversation(d, "one"), self.conversation(d, "two")), ("c-1", "c-2"))
        self.end(second, b)
        b.send(user("on"))
        third = agent.child()
        self.assertEqual(self.resumed(third), ["c-2"])
        self.assertNotIn("--fork-session", third.argv)

    def test_resume_flag_joined_with_its_value(self):
        """-rID names the conversation, as the CLI reads it: a later start does not name it twice."""
        d, agent = self.start(mode={"session_id": "conv-1", "user": True})
        a = d.attached("one", args=["-rconv-1"])
        self.assertEqual([w for w in agent.child().argv if "conv" in w], ["-rconv-1"])
        a.send(user("x"))
        a.wait(type="result")
        a.request("plenum_hibernate")
        a.event("child_exited")
        a.send(user("y"))
        self.assertEqual([w for w in agent.child().argv if "conv" in w], ["-rconv-1"])

    def test_conversation_with_a_requested_and_a_reported_id(self):
        """C26: both are reported; the next resume takes the one that is known to exist."""
        for reported in ("Y", "X"):
            d, agent = self.start()
            a = d.client()
            a.attach("s", resume="X")
            child = agent.child()
            child.print(init_line(reported), dict(RESULT, session_id=reported))
            a.wait(type="result")
            m = a.event("session_state", conversation_id=reported)
            self.assertEqual(m["resumed"], "X" if reported == "Y" else None)
            self.assertRefused("conversation_in_use", d.client().attach, "other", resume="X")
            self.assertEqual(d.client().attach("X")["session"], "s")
            child.exit(0)
            a.event("child_exited")
            a.send(user("on", uuid="u"))
            child = agent.child()
            self.assertIn("--resume=X", child.argv)
            child.wait(type="user", uuid="u")

    def test_unknown_conversation_is_not_started_anew(self):
        """C26, C78: the child knows neither id; both are tried, and the error of the prompt gives the cause."""
        d, agent = self.start()
        a = d.client()
        a.attach("s", resume="X")
        child = agent.child()
        child.print(init_line("Y"), RESULT)
        a.wait(type="result")
        agent.mode(start=[{"op": "stderr", "text": "No conversation found with session ID: it\n"}, {"op": "exit_now", "status": 1}])
        child.exit(0)
        a.event("child_exited")
        tried = []
        for prompt in ("u-1", "u-2"):
            a.send(user("on", uuid=prompt))
            self.assertIn("No conversation found", a.error("child_exited", uuid=prompt)["error"])
        while len(tried) < 2 or agent.starts > len(tried) + 1:
            tried.append([w for w in agent.child().argv if w.startswith("--resume=")])
        self.assertEqual(tried[0], ["--resume=X"])
        self.assertIn(["--resume=Y"], tried)
        self.assertNotIn([], tried)

    def test_empty_conversation_id_is_refused(self):
        d, agent = self.start()
        c = d.client()
        self.assertRefused("bad_request", c.attach, "work", resume="")
        self.assertRefused("bad_request", c.attach, "work", resume="", fork=True)
        self.assertEqual(c.request("plenum_list")["sessions"], [])
        self.assertEqual(agent.starts, 0)

    def test_change_of_conversation_is_announced(self):
        d, agent = self.start()
        a = d.client()
        a.attach("work")
        child = agent.child()
        for conversation in ("c-1", "c-1", "c-2"):
            child.print({"type": "system", "subtype": "init", "session_id": conversation},
                        dict(RESULT, session_id=conversation))
            child.mark(a)
        told = a.events("changed")
        self.assertEqual([(m["what"], m["value"], m["by"]) for m in told], [("conversation_id", "c-2", None)])
        self.assertEqual(d.sessions()["work"]["conversation_id"], "c-2")

    def test_session_id_args_choose_the_id(self):
        d, agent = self.start(mode={"user": True}, profile={"session_id_args": "--with 'an id' --session-id={id}"})
        a = d.client()
        a.attach("work")
        *_, one, two, three = agent.child().argv
        self.assertEqual([one, two], ["--with", "an id"])
        chosen = three.partition("--session-id=")[2]
        self.assertEqual(str(uuid.UUID(chosen)), chosen)
        a.send(user("hi"))
        a.wait(type="result", session_id=chosen)
        a.request("plenum_hibernate")
        a.event("session_state", state="asleep")
        a.send(user("again"))
        self.assertEqual(agent.child().argv[1:], ["--resume=" + chosen])
        for args in (["--session-id", "mine"], ["--resume=yours"], ["-c"]):
            d.client().attach("-".join(args), args=args)
            self.assertEqual(agent.child().argv[1:], args)
        d.client().attach("resumed", resume="other")
        self.assertEqual(agent.child().argv[1:], ["--resume=other"])


class InUseTest(Identity):
    def test_one_conversation_one_child(self):
        d, agent = self.start()
        a = d.attached("one")
        child = agent.child()
        child.print(init_line("c-1"), RESULT)
        a.wait(type="result")
        b = d.client()
        e = self.assertRefused("conversation_in_use", b.attach, "two", resume="c-1")
        self.assertIn("one", e.text)
        self.assertEqual(list(d.sessions()), ["one"])
        self.end(child, a)
        self.assertRefused("conversation_in_use", b.attach, "two", resume="c-1")
        d.call("plenum_stop", session="one", how="kill", forget=True)
        until(lambda: d.sessions() == {})
        b.attach("two", resume="c-1")
        self.assertEqual(self.resumed(agent.child()), ["c-1"])

    def test_two_resumes_at_once(self):
        d, agent = self.start()
        clients = [d.client() for _ in range(5)]
        ids = [c.ask("plenum_attach", session="s%d" % i, resume="X") for i, c in enumerate(clients)]
        answers = [c.answer(rid) for c, rid in zip(clients, ids)]
        good = [m for m in answers if m["response.subtype"] == "success"]
        self.assertEqual(len(good), 1)
        self.assertEqual({m["response.code"] for m in answers if m not in good}, {"conversation_in_use"})
        agent.child()
        self.assertEqual(agent.starts, 1)

    def test_after_a_crash_of_the_daemon(self):
        d, agent = self.start()
        a = d.attached("one")
        agent.child().print(init_line("c-1"), RESULT)
        a.wait(type="result")
        d.kill9()
        d.start()
        b = d.client()
        self.assertRefused("conversation_in_use", b.attach, "two", resume="c-1")
        self.assertEqual(b.attach("c-1")["session"], "one")

    def test_conversation_named_in_args(self):
        d, agent = self.start(mode={"session_id": "conv-1", "user": True})
        a = d.attached()
        agent.child()
        a.send(user("x"))
        a.wait(type="result")
        for args in (["--resume", "conv-1"], ["--resume=conv-1"], ["-r", "conv-1"], ["-rconv-1"]):
            self.assertRefused("conversation_in_use", d.client().attach, "two", args=args)

    def test_conversation_without_a_line_yet(self):
        d, agent = self.start()
        argv = agent.command.split()[1:]
        d.attached("one", argv=argv + ["--resume", "conv-1"], ephemeral=True, env_only=True, env={"PATH": "/usr/bin:/bin"})
        agent.child()
        self.assertRefused("conversation_in_use", d.client().attach, "two", ephemeral=True, argv=argv + ["--resume=conv-1"])
        self.assertRefused("conversation_in_use", d.client().attach, "three", args=["--resume=conv-1"])


class SecondWriterTest(Identity):
    """Of two children in one conversation the second is ended before a line of a client reaches it."""
    ID = "11111111-2222-4333-8444-5555555555ab"
    OPEN = (["--continue"], ["-c"], ["-pc"], ["-cp"], ["--resume", "My Title"], ["--resume=My Title"], ["-rMy Title"],
            ["-pr", "My Title"], ["--resume", "/home/me/%s.jsonl" % ID], ["--resume= " + ID], ["--from-pr", "1"])

    def holder(self, **options):
        """A session that has the conversation; the next child resumes it, too."""
        d, agent = self.start(**options)
        a = d.attached("one")
        agent.child().print(init_line(self.ID), dict(RESULT, session_id=self.ID))
        a.wait(type="result")
        return d, agent, a

    def second(self, d, agent, init="332", sid=None, name="two", **members):
        agent.mode(init=init, session_id=sid or self.ID)
        b = d.attached(name, **members)
        return b, agent.child()

    def ended_unheard(self, b, child, what=None):
        told = b.event("child_exited")
        self.assertIn("it is that of session", told["reason"], what)
        child.wait_gone()
        self.assertEqual([m.obj for m in child.log if m["type"] == "user" or m["request.subtype"] == "rename_session"], [], what)

    def test_every_spelling_of_an_id(self):
        d, agent, a = self.holder()
        argv = agent.command.split()[1:]
        for words in (["--resume", self.ID], ["--resume=" + self.ID], ["-r", self.ID], ["-r" + self.ID], ["-pr", self.ID],
                      ["-pr" + self.ID], ["-pcr", self.ID], ["--session-id", self.ID], ["--session-id=" + self.ID],
                      ["--resume=other", "--resume", self.ID], ["--fork-session", "--session-id", self.ID]):
            self.assertRefused("conversation_in_use", d.client().attach, "two", args=words)
            self.assertRefused("conversation_in_use", d.client().attach, "two", ephemeral=True, argv=argv + words)
        self.assertEqual(agent.starts, 1)

    def test_an_id_in_the_command_of_the_profile(self):
        for words in ("--resume " + self.ID, "-pr" + self.ID, "--session-id=" + self.ID):
            d, agent, a = self.holder(profiles={})
            d.sections["profile again"] = {"command": agent.command + " " + words}
            d.write_conf()
            d.call("plenum_reload")
            self.assertRefused("conversation_in_use", d.client().attach, "two", profile="again")
            self.assertEqual(agent.starts, 1)

    def test_a_new_id_that_another_session_is_about_to_take(self):
        d, agent = self.start()
        d.attached("one", args=["--session-id", self.ID])
        agent.child()
        self.assertRefused("conversation_in_use", d.client().attach, "two", resume=self.ID)

    def test_a_copy(self):
        d, agent, a = self.holder()
        for words in (["--resume", self.ID, "--fork-session"], ["--fork-session", "--continue"]):
            b, child = self.second(d, agent, sid="22222222-2222-4333-8444-5555555555ab", name=words[0], args=words)
            child.prompted(b, "x", uuid="u")
            b.request("plenum_stop", how="kill", forget=True)
            b.event("session_removed")

    def test_what_only_the_child_can_name(self):
        for init in ("332", "197"):
            for words in self.OPEN:
                d, agent, a = self.holder()
                b, child = self.second(d, agent, init, args=words)
                b.send(request("r", "rename_session", title="mine"), user("secret", uuid="u"))
                self.assertEqual(b.error("child_exited")["uuid"], "u", words)
                self.ended_unheard(b, child, (init, words))
                self.assertEqual(d.sessions()["one"]["conversation_id"], self.ID)
                self.assertNotEqual(d.sessions()["two"]["conversation_id"], self.ID)

    def test_wherever_it_stands(self):
        d, agent, a = self.holder()
        b, child = self.second(d, agent, resume="My Title")
        b.send(user("secret", uuid="u"))
        self.ended_unheard(b, child)
        argv = agent.command.split()[1:] + ["--resume", "my title"]
        c, child = self.second(d, agent, name="three", ephemeral=True, argv=argv)
        c.send(init_request("i"), user("secret", uuid="u"))
        self.ended_unheard(c, child)
        d.sections["profile again"] = {"command": agent.command + " --continue"}
        d.write_conf()
        d.call("plenum_reload")
        e, child = self.second(d, agent, name="four", profile="again")
        e.send(user("secret", uuid="u"))
        self.ended_unheard(e, child)

    def test_a_child_that_says_it_unasked(self):
        """2.1.332 names a conversation with a title before it answers its initialize."""
        d, agent, a = self.holder()
        b, child = self.second(d, agent, "manual", args=["--resume", "My Title"])
        b.send(user("secret", uuid="u"))
        child.request("initialize")
        child.print({"type": "system", "subtype": "session_title_changed", "title": "My Title", "session_id": self.ID})
        self.ended_unheard(b, child)

    def test_a_command_line_that_says_nothing(self):
        """A wrapper may add anything: then the first line with the conversation ends it."""
        d, agent, a = self.holder()
        b, child = self.second(d, agent)
        child.prompted(b, "x", uuid="u")
        child.print(init_line(self.ID))
        self.assertIn("it is that of session", b.event("child_exited")["reason"])
        child.wait_gone()

    def test_one_that_changes_to_it(self):
        d, agent, a = self.holder()
        b, child = self.second(d, agent, sid="22222222-2222-4333-8444-5555555555ab")
        b.send(user("x", uuid="u"))
        child.print(init_line("22222222-2222-4333-8444-5555555555ab"), RESULT)
        b.wait(type="result")
        child.print(init_line(self.ID))
        self.assertIn("it is that of session", b.event("child_exited")["reason"])

    def test_a_conversation_that_is_free(self):
        """All lines reach it in order; output that was only requested by the daemon is on no tape; the daemon knows the
        name."""
        for init in ("332", "197"):
            d, agent, a = self.holder()
            free = "22222222-2222-4333-8444-5555555555ab"
            b, child = self.second(d, agent, init, sid=free, args=["--resume", "My Title"])
            b.send(init_request("i", agents={"x": {}}), request("m", "set_permission_mode", mode="plan"),
                   user("one", uuid="u1"), user("two", uuid="u2"))
            self.assertEqual(child.wait(type="user")["uuid"], "u1")
            self.assertEqual(child.wait(type="user")["uuid"], "u2")
            order = [m["request.subtype"] or m["type"] for m in child.log]
            self.assertLess(order.index("set_permission_mode"), order.index("user"))
            self.assertLess(order.index("get_session_cost"), order.index("set_permission_mode"))
            child.mark(b)
            self.assertEqual([m["subtype"] for m in b.seen(type="system") if m["subtype"] != "plenum_event"], [])
            self.assertEqual(d.sessions()["two"]["conversation_id"], free)
            self.assertRefused("conversation_in_use", d.client().attach, "three", resume=free)
            child.print(init_line(free), dict(RESULT, session_id=free))
            b.wait(type="result")
            b.request("plenum_hibernate")
            child.wait_gone()
            b.send(user("on", uuid="u3"))
            third = agent.child()
            self.assertEqual(third.wait(type="user")["uuid"], "u3")
            self.assertEqual([w for w in third.argv if "Title" in w or w.startswith("--resume")], ["--resume=" + free])

    def test_words_that_a_later_start_leaves_out(self):
        free = "22222222-2222-4333-8444-5555555555ab"
        for words, left in ((["-pc", "x"], ["-p", "x"]), (["-pr", "My Title", "x"], ["-p", "x"]), (["-prTitle", "x"], ["-p", "x"]),
                            (["-c", "x"], ["x"]), (["--from-pr", "7", "-d", "x"], ["-d", "x"])):
            d, agent = self.start(mode={"session_id": free, "user": True})
            b = d.attached(args=words)
            b.send(user("x"))
            b.wait(type="result")
            b.request("plenum_hibernate")
            agent.child().wait_gone()
            b.send(user("y"))
            b.wait(type="result")
            self.assertEqual(agent.child().argv[1:], left + ["--resume=" + free], words)

    def test_a_child_that_cannot_say_it(self):
        """It answers that it knows no such request: then the first line that names the conversation is compared."""
        d, agent, a = self.holder()
        b, child = self.second(d, agent, "manual", args=["--continue"])
        b.send(user("x", uuid="u"))
        child.reply(child.request("initialize"))
        for subtype in ("initialize", "get_session_cost", "reload_plugins"):
            child.print(err(child.request(subtype)["request_id"], "unsupported"))
        child.wait(type="user", uuid="u")
        child.print(init_line(self.ID))
        self.assertIn("it is that of session", b.event("child_exited")["reason"])

    def test_across_an_upgrade(self):
        for sid in (self.ID, "22222222-2222-4333-8444-5555555555ab"):
            d, agent, a = self.holder()
            b, child = self.second(d, agent, "manual", sid=sid, args=["--continue"])
            b.send(user("x", uuid="u"))
            child.reply(child.request("initialize"))
            again = child.request("initialize")
            d.call("plenum_upgrade")
            child.reply(again)
            child.print({"type": "system", "subtype": "background_tasks_changed", "tasks": [], "session_id": sid})
            if sid == self.ID:
                self.ended_unheard(b, child)
            else:
                child.wait(type="user", uuid="u")

    def test_a_shim_hears_it_at_once(self):
        """It retries only while the holder is ending."""
        d, agent, a = self.holder()
        refused = self.assertRefused("conversation_in_use", d.client().attach, "two", resume=self.ID)
        self.assertFalse(refused.body.get("ending"))
        argv = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--resume=" + self.ID]
        env = dict(d.env, PLENUM_SOCKET=d.socket, PLENUM_PROFILE="agent")
        done = subprocess.run([build_file("plenum-shim")] + argv, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("this conversation is in use: it is that of session one", done.stderr)


class RestartTest(Identity):
    def spoken(self):
        d, agent = self.start()
        a = d.client()
        a.attach("work", cwd=d.home, args=["--model", "m"])
        child = agent.child()
        child.prompted(a, "a very secret prompt", uuid="u")
        child.print(init_line("c-1"), {"type": "assistant", "message": {"content": "a very secret answer"}},
                    dict(RESULT, session_id="c-1", user_message_uuids=["u"]))
        a.wait(type="result")
        d.attached("never-spoken")
        agent.child()
        return d, agent

    def check(self, d, agent):
        entry = d.sessions()["work"]
        self.assertEqual((entry["state"], entry["conversation_id"], entry["profile"], entry["pid"]), ("asleep", "c-1", "agent", None))
        before = agent.starts
        a = d.client()
        got = a.attach("work")
        self.assertEqual((got["created"], got["state"], got["conversation_id"], got["cwd"]), (False, "asleep", "c-1", d.home))
        self.assertEqual(agent.starts, before)
        a.send(user("on", uuid="u2"))
        child = agent.child()
        self.assertEqual(self.resumed(child), ["c-1"])
        self.assertEqual(child.start["cwd"], d.home)
        self.assertIn("--model", child.argv)
        child.wait(type="user", uuid="u2")

    def test_after_kill_9(self):
        d, agent = self.spoken()
        d.kill9()
        d.start()
        self.check(d, agent)

    def test_after_a_stop(self):
        d, agent = self.spoken()
        d.stop()
        d.start()
        self.check(d, agent)

    def test_no_prompts_in_the_table(self):
        d, agent = self.spoken()
        d.stop()
        files = [f for f in glob.glob(d.state + "/plenum/**", recursive=True) if os.path.isfile(f)]
        self.assertTrue(files)
        for f in files:
            with open(f, "rb") as stream:
                self.assertNotIn(b"secret", stream.read())
            self.assertEqual(os.stat(f).st_mode & 0o077, 0, "others can read " + f)
        self.assertNotIn("secret", d.log())
        d.start()

    def test_forgotten_ones_stay_forgotten(self):
        d, agent = self.spoken()
        d.call("plenum_stop", session="work", how="kill", forget=True)
        until(lambda: "work" not in d.sessions())
        d.kill9()
        d.start()
        self.assertNotIn("work", d.sessions())

    def test_a_damaged_table(self):
        """It starts, logs the damage, and keeps the unreadable part."""
        d, agent = self.spoken()
        d.stop()
        files = [f for f in glob.glob(d.state + "/plenum/**", recursive=True) if os.path.isfile(f)]
        for f in files:
            with open(f, "r+b") as stream:
                stream.truncate(os.path.getsize(f) // 2)
        d.start()
        self.assertNotEqual(d.log().find("state") + d.log().find("session"), -2)
        d.call("plenum_hello")

    def test_many_kills_lose_nothing(self):
        d, agent = self.start()
        for i in range(6):
            a = d.attached("s%d" % i)
            agent.child().print(init_line("c-%d" % i), RESULT)
            a.wait(type="result")
            d.sessions()
            d.kill9()
            d.start()
        entries = d.sessions()
        self.assertEqual({n: e["conversation_id"] for n, e in entries.items()}, {"s%d" % i: "c-%d" % i for i in range(6)})
        self.assertEqual({e["state"] for e in entries.values()}, {"asleep"})

    def test_a_profile_that_is_gone(self):
        d, agent = self.spoken()
        d.stop()
        conf = open(d.conf).read().replace("profile agent", "profile renamed").replace("default_profile = agent", "default_profile = renamed")
        with open(d.conf, "w") as f:
            f.write(conf)
        d.start()
        self.assertEqual(d.sessions()["work"]["profile"], "agent")
        a = d.client()
        self.assertEqual(a.attach("work")["profile"], "agent")
        before = agent.starts
        a.send(user("on"))
        until(lambda: agent.starts > before or a.seen(code=lambda c: c in ("no_such_profile", "spawn_failed", "child_exited")))
        if agent.starts > before:  # by the default profile: the same conversation nevertheless
            child = agent.children[-1]
            child.event("start")
            self.assertEqual(self.resumed(child), ["c-1"])
        self.assertIn("work", d.sessions())
        with open(d.conf, "a") as f:  # and back again
            f.write("\n[profile agent]\ncommand = %s\n" % agent.command)
        d.call("plenum_reload")
        a.send(user("and on"))
        until(lambda: agent.starts > before, what="a child of the profile that is back")
        child = agent.children[-1]
        child.event("start")
        self.assertEqual(self.resumed(child), ["c-1"])

    @unittest.skipUnless(os.getuid() == 0, "needs root, to connect as somebody else")
    def test_a_profile_that_is_gone_may_have_been_private(self):
        d, agent = self.start(daemon={"allow_uids": "12345"}, profile={"private": "yes"})
        d.attached("work")
        agent.child()
        d.stop()
        conf = open(d.conf).read()
        with open(d.conf, "w") as f:
            f.write(conf.replace("profile agent", "profile other").replace("default_profile = agent", "default_profile = other")
                    .replace("private = yes", "private = no"))
        d.start()
        d.open_to_all()
        c = d.client(uid=12345, gid=12345)
        self.assertEqual(c.request("plenum_list")["sessions"], [])
        self.assertRefused("not_allowed", c.attach, "work")
        d.client().attach("work")  # its owner can open it as before


if __name__ == "__main__":
    unittest.main()
