# SPDX-License-Identifier: MIT
"""Guards: no tool runs without its guard (contract 6)."""
import os
import subprocess
import unittest

from harness import build_file, err, hook, init, ok, perm, request, until, user
from test_hooks import DENY, POST, PRE, Hooks


class RegistrationTest(Hooks):
    """No registration, repeated, refused or late, lets a tool run that a guard did not see."""

    @staticmethod
    def apply(child, got=None):
        """The child takes the table of an initialize (default: of the next one)."""
        child.reply(got or child.request("initialize"), {"commands": [], "hooks_applied": True})

    def guarded(self, **mode):
        """A session whose client has registered PRE: (child, client, the callback's id)."""
        _, _, child, a = self.open(mode=mode)
        a.send(init("1", PRE))
        if mode.get("init") == "manual":
            self.apply(child)
        self.assertEqual(a.answer("1")["response.subtype"], "success")
        return child, a, self.ids(child, "PreToolUse")[0]

    def test_callback_by_an_old_id_while_the_table_is_replaced(self):
        """The owner registers its hooks again; until the child has the new table it calls the old ids."""
        child, a, old = self.guarded(init="manual")
        a.send(init("2", {"PreToolUse": [{"matcher": "Edit", "hookCallbackIds": ["hook_0"]}]}))
        second = child.request("initialize")
        child.print(hook("k-1", old))
        self.refuses(child.answer("k-1"))
        self.apply(child, second)
        a.answer("2")
        child.print(hook("k-2", old))
        self.assertEqual(child.answer("k-2")["response.subtype"], "error")

    def test_old_cli_keeps_the_old_table_until_the_turn_ends(self):
        """2.1.197 calls the old ids for the rest of the turn."""
        child, a, old = self.guarded(init="197", session_id="conv-1")
        child.prompted(a, "x", uuid="u")
        self.register(a, {"PreToolUse": [{"matcher": "Edit", "hookCallbackIds": ["hook_0"]}]})
        child.print(hook("k-1", old))
        self.refuses(child.answer("k-1"))

    def test_same_hooks_again_are_applied_at_once(self):
        """Also with a child that keeps its table for the turn."""
        d, agent = self.start(mode={"init": "197", "session_id": "conv-1"})
        a, b = d.attached(name="guard"), d.attached()
        child = agent.child()
        self.register(a, PRE)
        old = self.ids(child, "PreToolUse")[0]
        child.prompted(b, "x", uuid="u")
        a.close()
        b.event("owner_gone")
        a = d.attached(name="guard")
        self.assertNotIn("plenum", self.register(a, PRE))
        child.print(hook("k-1", old))
        a.send(ok(self.called(a)["request_id"], {}))
        self.assertEqual(child.answer("k-1")["response.response"], {})

    def test_refused_registration_keeps_the_guards_before(self):
        child, a, old = self.guarded()
        self.assertEqual(a.initialize({"PreToolUse": [{"hookCallbackIds": "no array"}]})["response.subtype"], "error")
        child.print(hook("k-1", old))
        a.send(ok(self.called(a)["request_id"], {"decision": "block", "reason": "mine"}))
        self.refuses(child.answer("k-1"))

    def test_registration_refused_by_the_child_keeps_the_guards_before(self):
        child, a, old = self.guarded(init="manual")
        a.send(init("2", {"PreToolUse": [{"matcher": 5, "hookCallbackIds": ["hook_0"]}]}))
        child.print(err(child.request("initialize")["request_id"], "bad hooks"))
        self.assertEqual(a.answer("2")["response.subtype"], "error")
        self.apply(child)
        child.print(hook("k-1", old))
        a.send(ok(self.called(a)["request_id"], {"decision": "block", "reason": "mine"}))
        self.refuses(child.answer("k-1"))

    def test_set_servers_does_not_replace_a_waiting_registration(self):
        """mcp_set_servers while a registration waits: the guard is still sent."""
        _, _, child, a, b = self.open(2, mode={"control": True})
        self.register(a, PRE)
        child.print(hook("k-1", self.ids(child, "PreToolUse")[0]))
        m = self.called(a)
        self.assertIs(self.register(b, PRE)["plenum"]["hooks_applied"], False)
        b.request("mcp_set_servers", servers={"x": {"type": "sdk", "name": "x"}})
        a.send(ok(m["request_id"], {}))
        self.ids(child, "PreToolUse", n=2)

    def test_callback_over_max_pending_is_denied(self):
        _, _, child, a = self.open(limits={"max_pending": "2"})
        self.register(a, dict(PRE, **POST))
        pre, post = self.ids(child, "PreToolUse")[0], self.ids(child, "PostToolUse")[0]
        child.print(perm("k-1"), perm("k-2"), hook("k-3", pre), hook("k-4", post, "PostToolUse"))
        self.refuses(child.answer("k-3"))
        self.assertEqual(child.answer("k-4")["response.response"], {})

    def test_too_long_callback_is_denied(self):
        _, _, child, a = self.open(limits={"child_line": "64K"})
        self.register(a, dict(PRE, **POST))
        pre, post = self.ids(child, "PreToolUse")[0], self.ids(child, "PostToolUse")[0]
        child.print(hook("k-1", pre, pad="x" * 100000), hook("k-2", post, "PostToolUse", pad="x" * 100000))
        self.refuses(child.answer("k-1"))
        self.assertEqual(child.answer("k-2")["response.response"], {})
        last = hook("k-3", pre)
        last["request"] = {"subtype": "hook_callback", "input": {"pad": "x" * 100000}, "callback_id": pre}
        child.print(last)
        self.refuses(child.answer("k-3"))

    def test_bad_registration_does_not_remove_another_guard(self):
        """A client registers hooks that the sleeping child will refuse; the child wakes with the guard of the other
        client."""
        d, agent = self.start(mode={"init": "manual", "session_id": "conv-1"})
        a, b = d.attached(name="guard"), d.attached()
        child = agent.child()
        a.send(init("1", PRE))
        self.apply(child)
        a.answer("1")
        a.request("plenum_hibernate")
        d.wait_state("s", "asleep")
        b.send(init("2", {"PreToolUse": [{"matcher": 5, "hookCallbackIds": ["hook_0"]}]}))
        b.answer("2")
        b.send(user("go", uuid="u"))
        child = agent.child()
        first = child.request("initialize")
        self.assertEqual(len(first["request.hooks"]["PreToolUse"]), 2)
        child.print(err(first["request_id"], "bad hooks"))
        third = agent.child()
        again = third.request("initialize")
        self.assertEqual([e["matcher"] for e in again["request.hooks"]["PreToolUse"]], ["Bash"])
        b.error("bad_request")

    def test_owner_that_becomes_an_observer_denies(self):
        _, _, child, a = self.open()
        self.register(a, PRE)
        a.request("plenum_register", role="observer")
        child.print(hook("k-1", self.ids(child, "PreToolUse")[0]))
        self.refuses(child.answer("k-1"))

    def test_rules_of_a_reload_apply_from_the_next_start(self):
        d, agent = self.start(mode={"session_id": "conv-1"})
        a = d.attached()
        agent.child().mark(a)
        d.sections["profile agent"]["deny_tools"] = "Bash"
        d.write_conf()
        d.call("plenum_reload")
        a.request("plenum_hibernate")
        d.wait_state("s", "asleep")
        a.send(user("x"))
        child = agent.child()
        child.print(perm("k-1"))
        self.assertEqual(child.answer("k-1")["response.response.behavior"], "deny")

    def test_refused_members_are_not_sent_again(self):
        _, _, child, a, b = self.open(2, mode={"init": "manual"})
        a.send(init("1", None, agents="no object"))
        child.print(err(child.request("initialize")["request_id"], "bad agents"))
        self.assertEqual(a.answer("1")["response.subtype"], "error")
        b.send(init("2", PRE, title="t"))
        got = child.request("initialize")
        self.assertIsNone(got["request.agents"])
        self.assertEqual(got["request.title"], "t")
        child.reply(got, {"commands": [], "hooks_applied": True})
        b.answer("2")


    def test_guard_of_a_sleeping_session_outlives_a_refused_registration(self):
        """No child has accepted the guard yet when the registration of another client is refused: no prompt runs
        without it."""
        for what in ({"hooks": {"PreToolUse": [{"matcher": 5, "hookCallbackIds": ["bad"]}]}}, {"agents": {"a": 5}}):
            with self.subTest(what):
                self.leave_a_guard(what)

    def leave_a_guard(self, bad):
        d, agent = self.start()
        a = d.attached("s")
        agent.child()
        self.register(a, {})
        a.request("plenum_hibernate")
        a.event("child_exited")
        guard = d.attached("s", name="guard")
        self.assertIs(self.register(guard, PRE)["plenum"]["hooks_applied"], False)
        guard.close()
        a.event("owner_gone")
        agent.mode(init="manual")
        d.kill9()
        d.start()
        a = d.attached("s")
        a.send(request("i", "initialize", **bad), user("go on", uuid="u"))
        child = agent.child()
        child.print(err(child.request("initialize")["request_id"], "bad"))
        a.event("child_exited")
        a.send(user("go on", uuid="v"))
        child = agent.child()
        self.assertEqual([e["matcher"] for e in child.request("initialize")["request.hooks"]["PreToolUse"]], ["Bash"])

    def test_registration_refused_by_a_stopping_child(self):
        """Requests for the next child do not end with this one. A prompt after refused hooks does not run."""
        d, agent = self.start(mode={"init": "manual", "eof": "ignore"}, profile={"stop_grace": "1min"})
        g = d.attached("s", name="guard")
        child = agent.child()
        rid = g.ask("initialize", hooks={"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h0"]}]})
        child.reply(child.wait(type="control_request"), {"hooks_applied": True})
        g.answer(rid)
        g.close()
        d.call("plenum_stop", session="s", how="kill")
        d.wait_state("s", "asleep")
        a = d.attached("s")
        a.initialize({"PreToolUse": [{"matcher": "Edit", "hookCallbackIds": ["h1"]}]})
        b = d.attached("s", wake=True)
        child = agent.child()
        first = child.wait(type="control_request")
        a.request("plenum_hibernate")
        b.send(user("one"))
        b.sync()
        a.send(user("two", uuid="u2"))
        a.sync()
        child.print(err(first["request_id"]))
        self.assertEqual(a.error("initialize_refused")["uuid"], "u2")
        child = agent.child()
        child.reply(child.wait(type="control_request"), {"hooks_applied": True})
        child.wait(type="user", message__content="one")
        self.assertNone(child.seen(type="user", uuid="u2"))


class Guarded(Hooks):
    def setup(self, hooks=PRE, name="guard", grace="15s", **members):
        d, agent = self.start(profile={"owner_grace": grace})
        self.d, self.agent = d, agent
        self.a, self.b = d.attached(name=name), d.attached()
        self.child = agent.child()
        self.register(self.a, hooks, **members)
        self.event = list(hooks)[0]
        self.cb = self.ids(self.child, self.event)[0]


class ShownTest(Guarded):
    def test_guards_and_whether_they_are_here(self):
        self.setup()
        self.register(self.b, POST)  # not a guard
        self.a.sync()
        ours = {"event": "PreToolUse", "matcher": "Bash", "name": "guard", "uid": os.getuid()}
        self.assertEqual(self.d.call("plenum_status", session="s")["guards"],
                         [dict(ours, here=True, client=self.a.attached["client"])])
        self.assertNotIn("guards_away", self.d.sessions()["s"])
        self.a.close()
        until(lambda: self.d.sessions()["s"].get("guards_away"))
        self.assertEqual(self.d.call("plenum_status", session="s")["guards"], [dict(ours, here=False)])
        doctor = subprocess.run([build_file("plenumctl"), "doctor"], env=dict(self.d.env, PLENUM_SOCKET=self.d.socket), text=True,
                                stdout=subprocess.PIPE)
        self.assertRegex(doctor.stdout, "(?m)^note +guards +session s refuses the tools of a guard")
        self.d.attached("s", name="guard")
        self.assertNotIn("guards_away", self.d.sessions()["s"])


class BoundsTest(Guarded):
    """Any accepted registration fits into the table of sessions."""

    def refused(self, code, hooks):
        m = self.a.initialize(hooks)
        self.assertEqual(m["response.code"], code, m)
        return m["response.error"]

    def test_a_matcher_of_60_mib(self):
        self.setup()
        self.assertIn("matcher", self.refused("too_long", {"PreToolUse": [{"matcher": "x" * (60 << 20), "hookCallbackIds": ["h"]}]}))
        self.d.kill9()
        self.d.start()
        self.b = self.d.attached("s", wake=True)
        hooks = self.agent.child().request("initialize")["request.hooks"]
        self.assertEqual(hooks["PreToolUse"][0]["matcher"], "Bash")  # the previous ones are in force

    def test_more_than_a_session_may_have(self):
        self.setup()
        one = {"matcher": "x", "hookCallbackIds": ["h"]}
        self.refused("too_many", {"PreToolUse": [one] * 4097})
        self.refused("too_many", {"PreToolUse": [dict(one, hookCallbackIds=["h"] * 4097)]})
        self.refused("too_many", {"PreToolUse": [dict(one, matcher="x" * 60000)] * 20})
        self.register(self.a, {"PreToolUse": [one] * 4096})
        self.assertEqual(self.b.initialize(sdkMcpServers=["s%d" % i for i in range(4097)])["response.code"], "too_many")


class GoneTest(Guarded):
    def test_a_guard_keeps_guarding(self):
        self.setup()
        self.child.print(hook("k-1", self.cb))
        self.called(self.a)
        self.a.close()
        self.refuses(self.child.answer("k-1"))
        gone = self.b.event("owner_gone")
        self.assertEqual(gone["session"], "s")
        self.child.print(hook("k-2", self.cb))
        self.refuses(self.child.answer("k-2"))
        self.child.mark(self.b)
        self.assertEqual(len(self.b.events("owner_gone")), 1)

    def test_the_reason_says_whether_it_can_come_back(self):
        for name, text in (("guard", b"until it is back"), (None, b"gave itself no name")):
            with self.subTest(name):
                self.setup(name=name)
                self.a.close()
                self.b.event("owner_gone")
                self.child.print(hook("k-1", self.cb))
                answer = self.child.answer("k-1")
                self.refuses(answer)
                self.assertIn(text, answer.raw)

    def test_guards_of_other_kinds(self):
        for hooks in ({"PermissionRequest": [{"hookCallbackIds": ["p"]}]}, {"PostToolUse": [{"hookCallbackIds": ["p"], "onFailure": "block"}]},
                      {"UserPromptSubmit": [{"hookCallbackIds": ["p"], "onFailure": "block"}]}):
            with self.subTest(list(hooks)[0]):
                self.setup(hooks)
                self.a.close()
                self.b.event("owner_gone")
                self.child.print(hook("k-1", self.cb, self.event))
                self.refuses(self.child.answer("k-1"))

    def test_other_hooks_are_answered_neutrally(self):
        self.setup({"PostToolUse": [{"hookCallbackIds": ["p"]}]})
        self.child.print(hook("k-1", self.cb, "PostToolUse"))
        self.called(self.a, "p")
        self.a.close()
        answer = self.child.answer("k-1")
        self.assertEqual((answer["response.subtype"], answer["response.response"]), ("success", {}))
        self.child.print(hook("k-2", self.cb, "PostToolUse"))
        got = self.child.answer("k-2")
        self.assertIn(got["response.subtype"], ("success", "error"))
        if got["response.subtype"] == "success":
            self.assertEqual(got["response.response"], {})

    def test_other_hooks_are_there_again_with_their_owner(self):
        self.setup({"PostToolUse": [{"hookCallbackIds": ["p"]}]})
        self.a.close()
        self.b.event("owner_gone")
        self.child.print(hook("k-1", self.cb, "PostToolUse"))
        self.assertEqual(self.child.answer("k-1")["response.response"], {})
        again = self.d.attached(name="guard")
        self.b.event("owner_back")
        self.child.print(hook("k-2", self.cb, "PostToolUse"))
        again.send(ok(self.called(again, "p")["request_id"], {"own": "answer"}))
        self.assertEqual(self.child.answer("k-2")["response.response"], {"own": "answer"})

    def test_other_hooks_of_one_without_a_name_go_at_once(self):
        self.setup({"PostToolUse": [{"hookCallbackIds": ["p"]}]}, name=None)
        self.a.close()
        until(lambda: not (self.child.seen(request__subtype="initialize")[-1]["request.hooks"] or {}).get("PostToolUse"),
              what="a table without the hook")

    def test_detach_and_loss_of_the_role_count_as_leaving(self):
        self.setup()
        self.a.request("plenum_detach")
        self.b.event("owner_gone")
        self.child.print(hook("k-1", self.cb))
        self.refuses(self.child.answer("k-1"))

    def test_half_close_counts_as_leaving(self):
        self.setup()
        self.child.print(hook("k-1", self.cb))
        self.called(self.a)
        self.a.half_close()
        self.refuses(self.child.answer("k-1"))

    def test_the_owner_comes_back(self):
        self.setup()
        self.a.close()
        self.b.event("owner_gone")
        stranger = self.d.attached(name="other")
        self.register(stranger, POST)
        self.child.mark(stranger)
        self.assertNone(self.b.events("owner_back"))
        again = self.d.attached(name="guard")
        self.register(again, PRE)
        self.b.event("owner_back")
        hooks = self.table(self.child, lambda h: len(h.get("PreToolUse", [])) == 1 and "PostToolUse" in h)
        cb = hooks["PreToolUse"][0]["hookCallbackIds"][0]
        self.child.print(hook("k-1", cb))
        again.send(ok(self.called(again)["request_id"], {"own": "answer"}))
        self.assertEqual(self.child.answer("k-1")["response.response"], {"own": "answer"})

    def test_no_name_no_way_back(self):
        self.setup(name=None)
        self.a.close()
        self.b.event("owner_gone")
        again = self.d.attached()
        self.register(again, POST)
        self.child.mark(again)
        self.assertNone(self.b.events("owner_back"))
        self.child.print(hook("k-1", self.cb))
        self.refuses(self.child.answer("k-1"))

    def test_after_the_grace_a_guard_denies_on(self):
        self.setup(grace="100ms")
        self.a.close()
        self.b.event("owner_gone")
        self.assertRefused("timeout", self.b.request, "mcp_status", plenum_timeout_ms=400)
        cb = self.ids(self.child, "PreToolUse")[0]
        self.child.print(hook("k-1", cb))
        self.refuses(self.child.answer("k-1"))

    def test_after_the_grace_it_is_dropped_by_choice(self):
        hooks = {"PreToolUse": [{"hookCallbackIds": ["p"], "plenum_owner_gone": "drop"}]}
        self.setup(hooks)  # denied within the grace
        self.a.close()
        self.b.event("owner_gone")
        self.child.print(hook("k-1", self.cb))
        self.refuses(self.child.answer("k-1"))
        self.setup(hooks, grace="100ms")
        self.a.close()
        until(lambda: not self.child.seen(request__subtype="initialize")[-1]["request.hooks"].get("PreToolUse"),
              what="a table without the guard")

    def test_after_the_grace_the_rest_is_dropped(self):
        self.setup({"PostToolUse": [{"hookCallbackIds": ["p"]}]}, grace="100ms")
        self.a.close()
        until(lambda: not (self.child.seen(request__subtype="initialize")[-1]["request.hooks"] or {}).get("PostToolUse"),
              what="a table without the hook")

    def test_the_rest_may_choose_deny(self):
        self.setup({"PostToolUse": [{"hookCallbackIds": ["p"], "plenum_owner_gone": "deny"}]}, grace="100ms")
        self.a.close()
        self.b.event("owner_gone")
        self.assertRefused("timeout", self.b.request, "mcp_status", plenum_timeout_ms=400)
        self.assertIn("PostToolUse", self.table(self.child))

    def test_others_hooks_are_not_touched(self):
        self.setup(grace="100ms")
        self.register(self.b, POST)
        self.a.close()
        self.b.event("owner_gone")
        post = self.ids(self.child, "PostToolUse", n=2)
        self.child.print(hook("k-1", post[0], "PostToolUse"))
        self.b.send(ok(self.called(self.b)["request_id"], {"b": 1}))
        self.assertEqual(self.child.answer("k-1")["response.response"], {"b": 1})


class KilledTest(Guarded):
    """A killed or restarted daemon leaves no agent unguarded."""

    def again(self, end=None):
        (end or self.d.kill9)()
        self.d.start()
        self.b = self.d.attached("s")
        self.b.send(user("go on", uuid="u2"))
        self.child = self.agent.child()

    def test_the_guard_is_kept(self):
        for end in ("kill9", "stop"):
            with self.subTest(end):
                self.setup({"PreToolUse": [{"matcher": "Bash", "timeout": 7, "hookCallbackIds": ["h\u00e9", "h2"]},
                                           {"matcher": "Write", "hookCallbackIds": ["h3"]}],
                            "PostToolUse": [{"hookCallbackIds": ["p"]}]})
                self.again(getattr(self.d, end))
                table = self.table(self.child, lambda hooks: "PreToolUse" in hooks)
                self.assertEqual([(e["matcher"], e.get("timeout"), len(e["hookCallbackIds"])) for e in table["PreToolUse"]],
                                 [("Bash", 7, 2), ("Write", None, 1)])
                self.assertNotIn("PostToolUse", table)
                for e in table["PreToolUse"]:
                    for cb in e["hookCallbackIds"]:
                        self.child.print(hook("k-" + cb, cb))
                        self.refuses(self.child.answer("k-" + cb))

    def test_its_owner_comes_back(self):
        self.setup()
        self.again()
        cb = self.ids(self.child, "PreToolUse")[0]
        stranger = self.d.attached("s", name="another")
        back = self.d.attached("s", name="guard")
        self.assertEqual(self.b.event("owner_back")["name"], "guard")
        self.child.print(hook("k-1", cb))
        ask = self.called(back)
        self.assertEqual(stranger.seen(request__subtype="hook_callback"), [])
        back.send(ok(ask["request_id"], DENY))
        self.assertEqual(self.child.answer("k-1")["response.response"], DENY)

    def test_dropped_by_choice(self):
        self.setup({"PreToolUse": [{"hookCallbackIds": ["p"], "plenum_owner_gone": "drop"}]}, grace="300ms")
        self.again()
        until(lambda: not (self.child.seen(request__subtype="initialize")[-1]["request.hooks"] or {}).get("PreToolUse"),
              what="a table without the guard")

    def test_an_owner_that_gave_it_up(self):
        self.setup()
        self.register(self.a, {})
        self.again()
        self.child.wait(request__subtype="initialize")
        self.assertFalse((self.child.seen(request__subtype="initialize")[-1]["request.hooks"] or {}).get("PreToolUse"))


    def damage(self, change):
        self.d.change_table(lambda o: o.get("guards") and o.update(guards=change(o["guards"])))

    def test_what_cannot_be_read_any_more_refuses_every_tool(self):
        """... and so does the next daemon, until the session is forgotten."""
        self.setup()
        self.d.kill9()
        self.damage(lambda text: text[:len(text) // 2])
        for end in (lambda: None, self.d.kill9):
            self.again(end)
            self.assertTrue(self.d.call("plenum_status", session="s")["guards_lost"])
            self.assertIn("PreToolUse", self.d.log())
            back = self.d.client()
            self.assertTrue(back.attach("s", name="guard")["guards_lost"])
            entry = self.table(self.child, lambda hooks: "PreToolUse" in hooks)["PreToolUse"][-1]
            self.assertNotIn("matcher", entry)
            self.child.print(hook("k-1", entry["hookCallbackIds"][0]))
            answer = self.child.answer("k-1")
            self.refuses(answer)
            self.assertIn(b"clear-lost", answer.raw)
            back.send({"type": "bash_command", "command": "ls"})
            self.refusal(back, codes=("not_allowed",))
        self.assertEqual(back.seen(request__subtype="hook_callback"), [])
        self.d.call("plenum_stop", session="s", forget=True, how="kill")
        until(lambda: "s" not in self.d.sessions())
        self.assertNotIn("guards_lost", self.d.client().attach("s"))

    def test_a_table_that_is_refused(self):
        """The new child refuses another client's bad hook: the guard stays, and no prompt runs without it."""
        self.setup()
        self.d.kill9()
        self.agent.mode(init="manual")
        self.d.start()
        b = self.d.attached("s", name="stranger")
        b.send(init("i", {"PreToolUse": [{"matcher": 5, "hookCallbackIds": ["bad"]}]}), user("go on", uuid="u2"))
        child = self.agent.child()
        refused = child.request("initialize")
        self.assertEqual([e["matcher"] for e in refused["request.hooks"]["PreToolUse"]], ["Bash", 5])
        child.print(err(refused["request_id"], "bad hooks"))
        self.assertEqual(b.answer("i")["response.subtype"], "error")
        child = self.agent.child()
        self.assertEqual([e["matcher"] for e in child.request("initialize")["request.hooks"]["PreToolUse"]], ["Bash"])


if __name__ == "__main__":
    unittest.main()
