# SPDX-License-Identifier: MIT
"""A refused line does not count as done: the lines after a refusal are not served as if nothing had happened."""
import unittest

from harness import RESULT, Case, err, hook, init, ok, request, user

GUARD = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["g"]}]}
LONG = "x" * 70000


class Refused(Case):
    def runs_no_prompt(self, c, child, **want):
        """Its prompt is refused, under its uuid, and reaches no child."""
        c.send(user("secret", uuid="u-secret"))
        self.assertEqual(c.error("initialize_refused")["uuid"], "u-secret", want)
        self.assertEqual(child.seen(type="user") if child else [], [], want)

    def runs_prompts(self, c, child, text="fine"):
        c.send(user(text, uuid="u-" + text))
        child.wait(type="user", uuid="u-" + text)

    def held(self, c, child, uuid):
        """The prompt is queued, and the child has not got it."""
        c.event("changed", what="prompt_held", value=uuid)
        self.assertEqual(child.seen(type="user"), [])


class SynchronousTest(Refused):
    """The daemon itself refuses the initialize: the next line of the same write does not run."""

    def test_hooks_of_one_who_may_own_none(self):
        _, _, child, c = self.open(daemon={"approve_uids": "65534"})
        c.send(init("i", GUARD), user("secret", uuid="u-secret"))
        self.assertEqual(c.answer("i")["response.code"], "not_allowed")
        self.assertEqual(c.error("initialize_refused")["uuid"], "u-secret")
        self.runs_no_prompt(c, child)
        self.assertEqual(c.initialize()["response.subtype"], "success")  # needs none now
        self.runs_prompts(c, child)

    def test_a_server_name_that_is_taken(self):
        _, _, child, a, b = self.open(2)
        a.initialize(sdkMcpServers=["calc"])
        b.send(init("i", sdkMcpServers=["calc"]), user("secret", uuid="u-secret"))
        self.assertEqual(b.answer("i")["response.code"], "name_taken")
        self.assertEqual(b.error("initialize_refused")["uuid"], "u-secret")
        self.runs_prompts(a, child, "other")  # of a client without a refusal
        self.assertEqual(b.initialize(sdkMcpServers=["calc2"])["response.subtype"], "success")
        self.runs_prompts(b, child)

    def test_every_way_to_refuse_it(self):
        bad = [
            ("malformed hooks", init("i", {"PreToolUse": 7}), "bad_request"),
            ("hooks that are a string", init("i", "PreToolUse"), "bad_request"),
            ("a server without a name", init("i", sdkMcpServers=[7]), "bad_request"),
            ("two types", b'{"type":"control_request","type":"control_request","request_id":"i","request":'
             b'{"subtype":"initialize","hooks":{}}}', "bad_line"),
            ("no JSON", b'{"type":"control_request","request_id":"i","request":{"subtype":"initialize","hooks":}}', "bad_line"),
            ("a bad time limit", init("i", GUARD, plenum_timeout_ms=-1), "bad_request"),
            ("too long", init("i", GUARD, appendSystemPrompt=LONG), "too_long"),
        ]
        for how, line, code in bad:
            _, _, child, c = self.open(limits={"client_line": "64K"})
            c.send(line, user("secret", uuid="u-secret"))
            told = c.wait(lambda m: code in (m["response.code"], m["code"]))
            self.assertTrue(told, how)
            self.assertEqual(c.error("initialize_refused")["uuid"], "u-secret", how)
            self.runs_no_prompt(c, child, how=how)
            self.assertEqual(c.initialize(GUARD)["response.subtype"], "success", how)
            self.runs_prompts(c, child)

    def test_a_second_one_under_an_open_id(self):
        """The answer to the first is not a success of the second."""
        _, _, child, c = self.open(mode={"init": "manual"})
        c.send(init("i"), init("i", GUARD), user("secret", uuid="u-secret"))
        self.assertEqual(c.answer("i")["response.code"], "duplicate_request")
        self.held(c, child, "u-secret")
        child.reply(child.request("initialize"))
        self.assertEqual(c.answer("i")["response.subtype"], "success")
        self.assertEqual(c.error("initialize_refused")["uuid"], "u-secret")
        self.runs_no_prompt(c, child)

    def test_without_an_attachment(self):
        """The first line of a client that does not attach: if that fails, the next line is not a fresh start."""
        d, agent = self.start(daemon={"max_sessions": "1"})
        a = d.attached("one")
        agent.child()
        c = d.client()
        c.send(init("i", GUARD))
        self.assertEqual(c.answer("i")["response.code"], "too_many")
        a.ask("plenum_stop", how="kill", forget=True)
        a.event("session_removed")
        c.send(user("secret", uuid="u-secret"))
        self.assertEqual(c.error("initialize_refused")["uuid"], "u-secret")
        child = agent.child()
        self.assertEqual(child.seen(type="user"), [])
        self.assertEqual(c.initialize(GUARD)["response.subtype"], "success")
        self.runs_prompts(c, child)

    def test_an_implicit_attachment(self):
        d, agent = self.start(daemon={"approve_uids": "65534"})
        c = d.client()
        c.send(init("i", GUARD), user("secret", uuid="u-secret"))
        self.assertEqual(c.answer("i")["response.code"], "not_allowed")
        self.assertEqual(c.error("initialize_refused")["uuid"], "u-secret")
        self.assertEqual(agent.child().seen(type="user"), [])

    def test_one_who_asked_to_be_an_approver(self):
        """Its permission callback is not in the initialize, but depends on it."""
        d, agent = self.start()
        bad = {"plenum_timeout_ms": -1}
        for approve, blocked in ((True, True), ({"tools": ["Bash"]}, True), (False, False), (None, False)):
            c = d.attached(**({} if approve is None else {"approve": approve}))
            child = agent.child() if agent.taken == 0 else child
            c.send(init("i", **bad))
            self.assertEqual(c.answer("i")["response.code"], "bad_request")
            if blocked:
                c.send(user("secret", uuid="u-secret"))
                self.assertEqual(c.error("initialize_refused")["uuid"], "u-secret", approve)
            else:
                self.runs_prompts(c, child, str(approve))

    def test_servers_of_the_attachment(self):
        d, agent = self.start()
        c = d.attached(mcp_servers=["calc"])
        c.send(init("i", plenum_timeout_ms=-1))
        c.answer("i")
        self.runs_no_prompt(c, agent.child())

    def test_one_that_carries_nothing(self):
        d, agent = self.start(daemon={"approve_uids": "65534"})
        for members in ({}, {"hooks": {}}, {"hooks": None, "sdkMcpServers": []}, {"agents": {"a": {}}}):
            c = d.attached()
            child = agent.child() if agent.taken == 0 else child
            c.send(init("i", plenum_timeout_ms=-1, **members) if "hooks" not in members else
                   request("i", "initialize", plenum_timeout_ms=-1, **members))
            self.assertEqual(c.answer("i")["response.code"], "not_allowed" if "agents" in members else "bad_request")
            self.runs_prompts(c, child, str(len(members)) + str("agents" in members))

    def test_a_new_attachment_begins_anew(self):
        _, _, child, c = self.open(daemon={"approve_uids": "65534"})
        c.send(init("i", GUARD))
        c.answer("i")
        self.runs_no_prompt(c, child)
        c.request("plenum_detach")
        c.attach("s")
        self.runs_prompts(c, child)

    def test_across_an_upgrade(self):
        d, _, child, c = self.open(daemon={"approve_uids": "65534"})
        c.send(init("i", GUARD))
        c.answer("i")
        d.call("plenum_upgrade")
        self.runs_no_prompt(c, child)


class ChildTest(Refused):
    """The child refuses it, later: a prompt written after it waits for the result."""

    def test_refused(self):
        _, _, child, c = self.open(mode={"init": "manual"})
        c.send(init("i", GUARD), user("secret", uuid="u-secret"))
        self.held(c, child, "u-secret")
        child.print(err(child.request("initialize")["request_id"], "no such hooks"))
        answer = c.answer("i")
        self.assertEqual((answer["response.error"], answer["response.code"]), ("no such hooks", None))
        self.assertEqual(c.error("initialize_refused")["uuid"], "u-secret")
        self.runs_no_prompt(c, child)

    def test_taken(self):
        _, _, child, c = self.open(mode={"init": "manual"})
        c.send(init("i", GUARD), user("one", uuid="u1"), user("two", uuid="u2"))
        self.held(c, child, "u1")
        child.reply(child.request("initialize"))
        self.assertEqual([child.wait(type="user")["uuid"] for _ in range(2)], ["u1", "u2"])

    def test_others_do_not_wait(self):
        _, _, child, a, b = self.open(2, mode={"init": "manual"})
        a.send(init("i", GUARD), user("one", uuid="u1"))
        a.event("changed", what="prompt_held", value="u1")
        self.runs_prompts(b, child, "other")
        child.reply(child.request("initialize"))
        child.wait(type="user", uuid="u1")

    def test_one_that_carries_nothing_holds_nothing(self):
        _, _, child, c = self.open(mode={"init": "manual"})
        c.send(init("i"), user("one", uuid="u1"))
        child.wait(type="user", uuid="u1")

    def test_the_child_ends_instead(self):
        _, agent, child, c = self.open(mode={"init": "manual"})
        c.send(init("i", GUARD), user("secret", uuid="u-secret"))
        self.held(c, child, "u-secret")
        child.exit(3)
        self.assertEqual(c.answer("i")["response.code"], "child_exited")
        self.assertEqual(c.error("child_exited")["uuid"], "u-secret")
        agent.mode(init="332")
        c.send(user("secret", uuid="u-secret"))
        self.assertEqual(c.error("initialize_refused")["uuid"], "u-secret")
        self.assertEqual(agent.starts, 1)

    def test_an_answer_that_is_too_long(self):
        _, _, child, c = self.open(mode={"init": "manual"}, limits={"child_line": "64K"})
        c.send(init("i", GUARD), user("secret", uuid="u-secret"))
        self.held(c, child, "u-secret")
        child.reply(child.request("initialize"), {"commands": LONG})
        self.assertEqual(c.answer("i")["response.code"], "too_long")
        self.assertEqual(c.error("initialize_refused")["uuid"], "u-secret")

    def test_hooks_that_a_later_child_refuses(self):
        """A sleeping session accepts them and says so; the prompt that wakes the child waits for the child's answer."""
        for good in (True, False):
            d, agent = self.start(mode={"init": "332", "user": True})
            a = d.attached()
            a.initialize()
            a.request("plenum_hibernate")
            agent.child().wait_gone()
            agent.mode(init="manual")
            d.wait_state("s", "asleep")
            c = d.attached()
            c.send(init("i", GUARD), user("secret", uuid="u-secret"))
            self.assertEqual(c.answer("i")["response.response.plenum.hooks_applied"], False)
            child = agent.child()
            self.held(c, child, "u-secret")
            asked = child.request("initialize")
            if good:
                child.reply(asked, {"hooks_applied": True})
                child.wait(type="user", uuid="u-secret")
            else:
                child.print(err(asked["request_id"], "no such hooks"))
                c.error("bad_request")
                self.assertEqual(c.error("initialize_refused")["uuid"], "u-secret")
                self.runs_no_prompt(c, child)

    def test_a_child_that_takes_hooks_only_at_its_start(self):
        """The prompt waits for the child that has them, also while another client's turn runs in the old one."""
        d, agent = self.start(mode={"init": "197", "session_id": "conv-1"})
        a = d.attached()
        first = agent.child()
        a.initialize()
        first.prompted(a, "long", uuid="ua")
        first.print({"type": "system", "subtype": "init", "session_id": "conv-1"})
        c = d.attached()
        c.send(init("i", GUARD), user("secret", uuid="u-secret"))
        self.assertEqual(c.answer("i")["response.response.plenum.hooks_applied"], False)
        c.event("changed", what="prompt_held", value="u-secret")
        self.assertEqual([m["uuid"] for m in first.seen(type="user")], ["ua"])
        first.print(dict(RESULT, session_id="conv-1", user_message_uuids=["ua"]))
        second = agent.child()
        self.assertEqual(list(second.request("initialize")["request.hooks"]), ["PreToolUse"])
        second.wait(type="user", uuid="u-secret")
        self.assertEqual([m["uuid"] for m in first.seen(type="user")], ["ua"])

    def test_who_leaves_meanwhile(self):
        """No client is left to call: the prompt is cancelled."""
        _, _, child, a, c = self.open(2, mode={"init": "manual"})
        c.send(init("i", GUARD), user("secret", uuid="u-secret"))
        self.held(c, child, "u-secret")
        c.close()
        a.event("changed", what="prompt_cancelled", value="u-secret")
        child.reply(child.request("initialize"))
        child.mark(a)
        self.assertEqual(child.seen(type="user"), [])

    def test_who_has_only_ended_its_input(self):
        for good in (True, False):
            _, _, child, c = self.open(mode={"init": "manual"})
            c.send(init("i", GUARD), user("secret", uuid="u-secret"))
            c.half_close()
            asked = child.request("initialize")
            if good:
                child.reply(asked)
                child.wait(type="user", uuid="u-secret")
                child.print(dict(RESULT, user_message_uuids=["u-secret"]))
                c.wait(type="result")
            else:
                child.print(err(asked["request_id"], "no such hooks"))
                self.assertEqual(c.error("initialize_refused")["uuid"], "u-secret")
                self.assertEqual(child.seen(type="user"), [])
            c.wait_eof()

    def test_across_an_upgrade(self):
        for good in (True, False):
            d, _, child, c = self.open(mode={"init": "manual"})
            c.send(init("i", GUARD), user("secret", uuid="u-secret"))
            self.held(c, child, "u-secret")
            asked = child.request("initialize")
            d.call("plenum_upgrade")
            if good:
                child.reply(asked)
                child.wait(type="user", uuid="u-secret")
            else:
                child.print(err(asked["request_id"], "no such hooks"))
                self.assertEqual(c.error("initialize_refused")["uuid"], "u-secret")
                self.runs_no_prompt(c, child)

    def test_prompts_that_are_queued(self):
        """With prompts = queue one that waits for its initialize delays no other, and runs in its turn afterwards."""
        _, _, child, a, b = self.open(2, mode={"init": "manual"}, profile={"prompts": "queue"})
        a.send(init("i", GUARD), user("one", uuid="u1"))
        a.event("changed", what="prompt_held", value="u1")
        b.send(user("two", uuid="u2"))
        b.sync()
        child.reply(child.request("initialize"))
        got = child.wait(type="user")["uuid"]
        child.mark(a)
        self.assertEqual(len(child.seen(type="user")), 1)
        child.print(dict(RESULT, user_message_uuids=[got]))
        self.assertEqual({got, child.wait(type="user")["uuid"]}, {"u1", "u2"})


class LeavesItsGuardTest(Refused):
    """A prompt waits for its client's guard also if that client no longer holds it."""

    def begin(self, mode="197", name="guard"):
        """Another client's turn runs in a child without the guard. The prompt of the guard's client is queued."""
        self.d, self.agent = self.start(mode={"init": mode, "session_id": "conv-1"})
        self.a = self.d.attached()
        self.child = self.agent.child()
        self.a.initialize({"PreToolUse": [{"matcher": "Read", "hookCallbackIds": ["h"]}]})
        self.a.send(user("long", uuid="ua"))
        self.child.wait(type="user", uuid="ua")
        self.child.print({"type": "system", "subtype": "init", "session_id": "conv-1"})
        if mode != "197":
            asked = self.child.seen(lambda m: m["request.subtype"] == "initialize")[0]
            self.child.print(hook("k-open", asked["request.hooks.PreToolUse"][0]["hookCallbackIds"][0]))
            self.open = self.a.wait(type="control_request", request__subtype="hook_callback")
        self.c = self.d.attached(**({"name": name} if name else {}))
        self.c.send(init("i", GUARD), user("secret", uuid="u-secret"))
        self.assertEqual(self.c.answer("i")["response.response.plenum.hooks_applied"], False)
        self.c.event("changed", what="prompt_held", value="u-secret")

    def leave(self, how):
        if how == "observer":
            self.c.request("plenum_register", role="observer")
        elif how == "detach":
            self.c.request("plenum_detach")
        else:
            getattr(self.c, how)()
        self.a.event("owner_gone", guards=True)

    def end_turn(self):
        self.child.print(dict(RESULT, session_id="conv-1", user_message_uuids=["ua"]))
        self.a.event("turn_ended")

    def old_child_has_only(self, *uuids):
        self.assertEqual([m["uuid"] for m in self.child.seen(type="user")], list(uuids))

    def guard_denies(self, child, asked):
        bash = [e for e in asked["request.hooks.PreToolUse"] if e["matcher"] == "Bash"][0]
        child.print(hook("k-guard", bash["hookCallbackIds"][0]))
        out = child.wait(lambda m: m["response.request_id"] == "k-guard")
        self.assertEqual(out["response.response.hookSpecificOutput.permissionDecision"], "deny")

    def guard_denies_once_it_runs(self, child, uuid):
        """The prompt was sent, after a repeated initialize that names the guard."""
        child.wait(type="user", uuid=uuid)
        got = child.seen(lambda m: m["type"] == "user" or m["request.subtype"] == "initialize")
        self.assertEqual([m["uuid"] for m in got][-1:], [uuid])
        self.guard_denies(child, got[-2])

    def runs_under_the_guard(self):
        second = self.agent.child()
        asked = second.request("initialize")
        second.wait(type="user", uuid="u-secret")
        self.old_child_has_only("ua")
        self.guard_denies(second, asked)
        return second

    def test_an_old_child(self):
        for how in ("half_close", "observer"):
            for name in ("guard", None):
                with self.subTest(how=how, name=name):
                    self.begin(name=name)
                    self.leave(how)
                    self.end_turn()
                    second = self.runs_under_the_guard()
                    second.print(dict(RESULT, session_id="conv-1", user_message_uuids=["u-secret"]))
                    self.c.wait(type="result", user_message_uuids=["u-secret"])
                    if how == "half_close":
                        self.c.wait_eof()

    def test_who_is_gone(self):
        """Its prompt is cancelled, and runs in no child; the guard stays."""
        for first in (None, "half_close", "observer"):
            for how in ("close", "detach") if first != "half_close" else ("close",):
                with self.subTest(first=first, how=how):
                    self.begin()
                    if first:
                        self.leave(first)
                        self.c.sync() if first == "observer" else None
                        self.c.close() if how == "close" else self.c.request("plenum_detach")
                    else:
                        self.leave(how)
                    self.a.event("changed", what="prompt_cancelled", value="u-secret")
                    self.end_turn()
                    second = self.agent.child()
                    self.guard_denies(second, second.request("initialize"))
                    self.old_child_has_only("ua")
                    self.assertEqual(second.seen(type="user"), [])

    def test_an_open_callback(self):
        for how in ("half_close", "observer"):
            with self.subTest(how=how):
                self.begin("332")
                self.leave(how)
                self.end_turn()
                self.child.mark(self.a)
                self.old_child_has_only("ua")
                told = len(self.child.seen(lambda m: m["request.subtype"] == "initialize"))
                self.a.send(ok(self.open["request_id"], {}))
                self.assertEqual(told, 1)
                self.guard_denies_once_it_runs(self.child, "u-secret")

    def test_the_next_child_refuses_the_guard(self):
        for how in ("half_close", "observer"):
            with self.subTest(how=how):
                self.begin()
                self.leave(how)
                self.agent.mode(init="manual", session_id="conv-1")
                self.end_turn()
                second = self.agent.child()
                second.print(err(second.request("initialize")["request_id"], "no such hooks"))
                self.assertEqual(self.c.error("initialize_refused")["uuid"], "u-secret")
                self.old_child_has_only("ua")
                self.assertEqual(second.seen(type="user"), [])

    def test_the_child_ends_meanwhile(self):
        for how in ("half_close", "observer"):
            with self.subTest(how=how):
                self.begin("332")
                self.leave(how)
                self.end_turn()
                self.child.exit(3)
                self.assertEqual(self.c.error("child_exited")["uuid"], "u-secret")
                self.old_child_has_only("ua")
                if how == "half_close":
                    self.c.wait_eof()

    def test_a_session_that_ends_with_its_client(self):
        """The guard is sent to its child nevertheless, for the remaining prompt."""
        d, agent = self.start(mode={"init": "332"})
        c = d.attached(ephemeral=True, name="guard")
        a, child = d.attached(), agent.child()
        a.initialize({"PreToolUse": [{"matcher": "Read", "hookCallbackIds": ["h"]}]})
        asked = child.request("initialize")
        child.print(hook("k-open", asked["request.hooks.PreToolUse"][0]["hookCallbackIds"][0]))
        callback = a.wait(type="control_request", request__subtype="hook_callback")
        c.send(init("i", GUARD), user("secret", uuid="u-secret"))
        c.event("changed", what="prompt_held", value="u-secret")
        c.half_close()
        a.event("owner_gone", guards=True)
        self.assertEqual(child.seen(type="user"), [])
        a.send(ok(callback["request_id"], {}))
        self.guard_denies_once_it_runs(child, "u-secret")
        child.print(dict(RESULT, user_message_uuids=["u-secret"]))
        c.wait(type="result")

    def test_across_an_upgrade(self):
        for when in ("before", "after"):
            with self.subTest(when=when):
                self.begin()
                if when == "after":
                    self.d.call("plenum_upgrade")
                self.leave("half_close")
                if when == "before":
                    self.d.call("plenum_upgrade")
                self.end_turn()
                self.runs_under_the_guard()

    def test_a_prompt_queued_before_its_initialize(self):
        """It runs after the initialize, so under it."""
        self.d, self.agent = self.start(mode={"init": "197", "session_id": "conv-1"}, profile={"prompts": "queue"})
        self.a = self.d.attached()
        self.child = self.agent.child()
        self.a.initialize()
        self.a.send(user("long", uuid="ua"))
        self.child.wait(type="user", uuid="ua")
        self.child.print({"type": "system", "subtype": "init", "session_id": "conv-1"})
        self.c = self.d.attached(name="guard")
        self.c.send(user("secret", uuid="u-secret"), init("i", GUARD))
        self.c.event("changed", what="prompt_held", value="u-secret")
        self.c.answer("i")
        self.leave("half_close")
        self.end_turn()
        self.runs_under_the_guard()

    def test_without_hooks_nothing_waits(self):
        self.begin()
        b = self.d.attached()
        b.send(init("i"), user("other", uuid="ub"))
        b.half_close()
        self.child.wait(type="user", uuid="ub")
        self.old_child_has_only("ua", "ub")


class ChangeTest(Refused):
    """A more restrictive mode was refused: the prompts after it do not run in a laxer one."""

    def refused(self, d, c, child, line, code):
        c.send(line, user("secret", uuid="u-secret"))
        self.assertEqual(c.answer("m")["response.code"], code)
        self.assertEqual(c.error("change_refused")["uuid"], "u-secret")
        self.assertEqual(child.seen(type="user"), [])

    def test_one_who_may_not(self):
        for mode in ("plan", "dontAsk"):
            d, agent = self.start(daemon={"approve_uids": "65534"})
            c = d.attached()
            self.refused(d, c, agent.child(), request("m", "set_permission_mode", mode=mode), "not_allowed")

    def test_other_changes(self):
        _, _, child, c = self.open(daemon={"approve_uids": "65534"})
        for subtype, members in (("set_permission_mode", {"mode": "acceptEdits"}), ("set_permission_mode", {"mode": "auto"}),
                                 ("set_permission_mode", {"mode": "bypassPermissions"}), ("set_model", {"model": "m"}),
                                 ("apply_flag_settings", {"settings": {}})):
            c.send(request("m", subtype, **members))
            self.assertEqual(c.answer("m")["response.code"], "not_allowed")
        self.runs_prompts(c, child)

    def test_out_of_a_laxer_mode(self):
        _, _, child, c = self.open(mode={"control": True})
        c.initialize()
        c.request("set_permission_mode", mode="bypassPermissions")
        c.send(request("m", "set_permission_mode", mode="default", plenum_timeout_ms=-1), user("secret", uuid="u-secret"))
        self.assertEqual(c.answer("m")["response.code"], "bad_request")
        self.assertEqual(c.error("change_refused")["uuid"], "u-secret")
        self.assertNone(child.seen(type="user"))
        c.request("set_permission_mode", mode="default")
        self.runs_prompts(c, child)

    def test_the_mode_that_it_is_in(self):
        _, _, child, c = self.open(daemon={"approve_uids": "65534"}, mode={"init": "manual"})
        child.print({"type": "system", "subtype": "status", "status": None, "permissionMode": "plan", "session_id": "x"})
        child.mark(c)
        c.send(request("m", "set_permission_mode", mode="plan"))
        self.assertEqual(c.answer("m")["response.code"], "not_allowed")
        self.runs_prompts(c, child)

    def test_a_sleeping_session(self):
        """A prompt would wake it in its default mode."""
        d, agent = self.start(mode={"init": "332", "user": True, "control": True})
        c = d.attached()
        c.initialize()
        c.request("plenum_hibernate")
        child = agent.child()
        child.wait_gone()
        d.wait_state("s", "asleep")
        c.send(request("m", "set_permission_mode", mode="plan"), user("secret", uuid="u-secret"))
        self.assertEqual(c.answer("m")["response.code"], "child_exited")
        self.assertEqual(c.error("change_refused")["uuid"], "u-secret")
        b = d.attached(wake=True)
        second = agent.child()
        self.runs_prompts(b, second, "other")
        c.request("set_permission_mode", mode="plan")
        self.runs_prompts(c, second)


class AttachTest(Refused):
    """A client that chose a session and did not get it is put into no other."""

    def test_an_attach_that_is_refused(self):
        d, agent = self.start(daemon={"approve_uids": "65534"})
        a = d.attached("default")
        child = agent.child()
        lines = [
            (request("i", "plenum_attach", session="work", approve=True), "not_allowed"),
            (request("i", "plenum_attach", session="work", create="never"), "no_such_session"),
            (request("i", "plenum_attach", session=7), "bad_request"),
            (request("i", "plenum_attach", session="work", what="this"), "bad_request"),
            (request("i", "plenum_attach", session="work", role="king"), "bad_request"),
            (b'{"type":"control_request","request_id":"i","request":{"subtype":"plenum_attach","session":}}', "bad_line"),
            (request("i", "plenum_attach", session="work", name=LONG), "too_long"),
        ]
        d2, agent2 = self.start(limits={"client_line": "64K"})
        for line, code in lines:
            where, who = (d2, agent2) if code == "too_long" else (d, agent)
            c = where.client()
            c.send(line, user("secret", uuid="u-secret"))
            c.wait(lambda m: code in (m["response.code"], m["code"]))
            self.assertEqual(c.error("not_attached")["uuid"], "u-secret", line)
        self.assertEqual(child.seen(type="user"), [])
        self.assertEqual((agent.starts, agent2.starts), (1, 0))
        a.sync()


if __name__ == "__main__":
    unittest.main()
