# SPDX-License-Identifier: MIT
"""One table of hooks for all clients (contract 6, 9.2; cases C05 C41 C68)."""
import json
import os
import random
import time
import unittest

from harness import RESULT, Case, err, hook, init, matches, ok, perm, request, until, user

PRE = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}
POST = {"PostToolUse": [{"matcher": "Write", "hookCallbackIds": ["hook_0", "hook_1"]}]}
DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "mine"}}


class Hooks(Case):
    def table(self, child, check=None):
        """Return the hooks of the newest initialize that reached the child (and, with check, matches)."""

        def newest():
            seen = child.seen(type="control_request", request__subtype="initialize")
            hooks = seen[-1]["request.hooks"] if seen else None
            return hooks if hooks is not None and (check is None or check(hooks)) else None

        return until(newest, what="an initialize with the table; last: %s" % child.seen(request__subtype="initialize")[-1:])

    def ids(self, child, event, matcher=None, n=1):
        """Return the daemon's callback ids of an event, in order, once there are n."""
        found = []

        def enough(hooks):
            del found[:]
            for entry in hooks.get(event) or []:
                if matcher is None or entry.get("matcher") == matcher:
                    found.extend(entry["hookCallbackIds"])
            return len(found) >= n

        self.table(child, enough)
        return found

    def register(self, client, hooks, **members):
        m = client.initialize(hooks, **members)
        self.assertEqual(m["response.subtype"], "success", m)
        return m["response.response"]

    def called(self, client, callback="hook_0"):
        return client.wait(type="control_request", request__subtype="hook_callback", request__callback_id=callback)

    def refuses(self, answer):
        """A hook answer that refuses the tool, with a reason; an error would let it run."""
        self.assertEqual(answer["response.subtype"], "success", answer)
        body = answer["response.response"]
        out = body.get("hookSpecificOutput", {})
        if out.get("permissionDecision") == "deny":
            self.assertEqual(out["hookEventName"], "PreToolUse")
            self.assertTrue(out["permissionDecisionReason"])
        elif out.get("decision"):
            self.assertEqual(out["hookEventName"], "PermissionRequest")
            self.assertEqual(out["decision"]["behavior"], "deny")
            self.assertTrue(out["decision"]["message"])
        else:
            self.assertEqual(body.get("decision"), "block", answer)
            self.assertTrue(body["reason"])


class EmptyAnswerTest(Hooks):
    """An SDK's hook whose function returns nothing sends no `response`, or null: the session must not wait for more."""

    EMPTY = ({}, {"response": None})

    def begin(self, hooks, **members):
        d, agent = self.start()
        a = d.attached(**members)
        child = agent.child()
        self.register(a, hooks)
        return a, child

    def answer(self, a, child, k, callback, event, **members):
        child.print(hook(k, callback, event))
        response = dict({"subtype": "success", "request_id": self.called(a)["request_id"]}, **members)
        a.send({"type": "control_response", "response": response})
        return child.answer(k)

    def test_it_is_neutral(self):
        a, child = self.begin(POST)
        callback = self.ids(child, "PostToolUse", n=2)[0]
        for i, members in enumerate(self.EMPTY):
            self.assertEqual(self.answer(a, child, "k-%d" % i, callback, "PostToolUse", **members)["response"],
                             {"subtype": "success", "request_id": "k-%d" % i, "response": {}})

    def test_that_of_a_guard_refuses(self):
        a, child = self.begin(PRE)
        callback = self.ids(child, "PreToolUse")[0]
        for i, members in enumerate(self.EMPTY):
            m = self.answer(a, child, "k-%d" % i, callback, "PreToolUse", **members)
            self.refuses(m)
            self.assertIn("no decision", json.dumps(m["response"]))

    def test_an_error_without_a_text_is_one(self):
        """The CLI would let the tool run."""
        a, child = self.begin(PRE)
        self.refuses(self.answer(a, child, "k", self.ids(child, "PreToolUse")[0], "PreToolUse", subtype="error"))

    def test_that_of_a_client_that_reads_no_complaint_goes_to_the_child(self):
        """The shim's: the CLI lets the tool run, as without the daemon."""
        a, child = self.begin(PRE, quiet=True)
        callback = self.ids(child, "PreToolUse")[0]
        for i, members in enumerate(self.EMPTY + ({"response": []}, {"response": "x"}, {"response": 1})):
            self.assertEqual(self.answer(a, child, "k-%d" % i, callback, "PreToolUse", **members)["response"],
                             dict({"subtype": "success", "request_id": "k-%d" % i}, **members))

    def test_others_are_told_and_may_answer_again(self):
        a, child = self.begin(POST)
        child.print(hook("k", self.ids(child, "PostToolUse", n=2)[0], "PostToolUse"))
        rid = self.called(a)["request_id"]
        for body in ([], "x", 1):
            a.send(ok(rid, body))
            a.error("bad_answer")
        a.send(ok(rid, {}))
        child.answer("k")

    def test_an_error_needs_no_text(self):
        a, child = self.begin(POST)
        child.print(hook("k", self.ids(child, "PostToolUse", n=2)[0], "PostToolUse"))
        a.send({"type": "control_response", "response": {"subtype": "error", "request_id": self.called(a)["request_id"]}})
        m = child.answer("k")
        self.assertEqual(m["response.subtype"], "error")
        self.assertTrue(m["response.error"])


class UnionTest(Hooks):
    def test_two_clients_with_hook_0(self):
        d, agent = self.start()
        a, b = d.attached(name="a"), d.attached(name="b")
        child = agent.child()
        self.register(a, PRE)
        self.register(b, POST)
        pre, post = self.ids(child, "PreToolUse"), self.ids(child, "PostToolUse", n=2)
        self.assertEqual(self.ids(child, "PreToolUse"), pre)
        self.assertEqual(len(set(pre + post)), 3)
        child.print(hook("k-1", pre[0]))
        m = self.called(a)
        self.assertEqual(m["request.input.hook_event_name"], "PreToolUse")
        self.assertEqual(m["request.tool_use_id"], "toolu_k-1")
        a.send(ok(m["request_id"], DENY))
        self.assertEqual(child.answer("k-1")["response.response"], DENY)
        child.print(hook("k-2", post[0], "PostToolUse"), hook("k-3", post[1], "PostToolUse"))
        two, three = self.called(b, "hook_0"), self.called(b, "hook_1")
        b.send(ok(three["request_id"], {"n": 3}), ok(two["request_id"], {"n": 2}))
        self.assertEqual(child.answer("k-2")["response.response"], {"n": 2})
        self.assertEqual(child.answer("k-3")["response.response"], {"n": 3})
        child.mark(a, b)
        self.assertEqual(len(a.seen(type="control_request")), 1)
        self.assertEqual(len(b.seen(type="control_request")), 2)

    def test_entries_pass_unchanged(self):
        d, _, child, a = self.open()
        self.register(a, {"PreToolUse": [{"matcher": "^B.*\\d", "hookCallbackIds": ["x", "y"], "timeout": 3600, "onFailure": "block"},
                                         {"hookCallbackIds": ["x"]}], "FutureEvent": [{"hookCallbackIds": ["z"]}]})
        hooks = self.table(child, lambda h: "PreToolUse" in h)
        first, second = hooks["PreToolUse"]
        self.assertEqual((first["matcher"], first["timeout"], first["onFailure"]), ("^B.*\\d", 3600, "block"))
        self.assertNotIn("matcher", second)
        self.assertEqual(len(first["hookCallbackIds"]), 2)
        self.assertIn("FutureEvent", hooks)
        for k, cb, name in (("k-1", first["hookCallbackIds"][1], "y"), ("k-2", second["hookCallbackIds"][0], "x"),
                            ("k-3", hooks["FutureEvent"][0]["hookCallbackIds"][0], "z")):
            child.print(hook(k, cb))
            a.send(ok(self.called(a, name)["request_id"], {}))
            child.answer(k)

    def test_the_daemons_own_member_does_not_reach_the_child(self):
        _, _, child, a = self.open()
        self.register(a, {"PreToolUse": [{"hookCallbackIds": ["x"], "plenum_owner_gone": "drop"}]})
        self.table(child, lambda h: "PreToolUse" in h)
        self.assertNone(child.seen(lambda m: b"plenum_owner" in m.raw))

    def test_the_first_initialize_goes_as_it_is(self):
        d, _, child, a = self.open()
        self.register(a, PRE, systemPrompt=["be brief"], agents={"x": {"description": "d", "prompt": "p"}}, future=[1.0, None])
        m = child.request("initialize")
        self.assertEqual(m["request.systemPrompt"], ["be brief"])
        self.assertEqual(m["request.agents"], {"x": {"description": "d", "prompt": "p"}})
        self.assertIn(b'"future":[1.0,null]', m.raw)

    def test_later_ones_keep_the_firsts_members(self):
        _, _, child, a, b = self.open(2)
        self.register(a, PRE, systemPrompt=["be brief"])
        body = self.register(b, POST, systemPrompt=["be long"], agents={"y": {}})
        self.assertEqual(sorted(set(body["plenum"]["ignored"]) & {"systemPrompt", "agents"}), ["agents", "systemPrompt"])
        self.ids(child, "PostToolUse", n=2)
        last = child.seen(request__subtype="initialize")[-1]
        self.assertEqual(last["request.systemPrompt"], ["be brief"])
        self.assertIsNone(last["request.agents"])
        self.ids(child, "PreToolUse")

    def test_answers_from_the_kept_answer(self):
        _, _, child, a, b, c = self.open(3)
        one = self.register(a, None)
        self.assertEqual(one["commands"][0]["name"], "clear")
        for client in (b, c):
            got = self.register(client, None)
            self.assertEqual(got["commands"], one["commands"])
            self.assertEqual(got["output_style"], "default")
        self.assertEqual(len(child.seen(request__subtype="initialize")), 1)

    def test_open_asks_are_not_listed(self):
        _, _, child, a = self.open(mode={"init": "manual"})
        a.send(init("i", None))
        got = child.request("initialize")
        ask = perm("k-1")
        child.print(ask, {"type": "control_response", "response": {"subtype": "success", "request_id": got["request_id"],
                    "response": {"commands": []}, "pending_permission_requests": [ask]}})
        m = a.answer("i")
        self.assertEqual(m["response.pending_permission_requests"], [])
        a.wait(type="control_request")
        child.mark(a)
        self.assertEqual(len(a.seen(type="control_request")), 1)

    def test_a_clients_second_initialize_replaces_its_own(self):
        _, _, child, a, b = self.open(2)
        self.register(a, PRE)
        old = self.ids(child, "PreToolUse")[0]
        self.register(b, POST)
        self.register(a, {"PreToolUse": [{"matcher": "Edit", "hookCallbackIds": ["hook_5"]}]})
        new = self.ids(child, "PreToolUse", "Edit")
        hooks = self.table(child)
        self.assertEqual(len(hooks["PreToolUse"]), 1)
        self.assertEqual(len(hooks["PostToolUse"]), 1)
        child.print(hook("k-1", new[0]))
        a.send(ok(self.called(a, "hook_5")["request_id"], {}))
        child.answer("k-1")
        child.print(hook("k-2", old))
        self.assertEqual(child.answer("k-2")["response.subtype"], "error")

    def test_an_initialize_without_hooks_changes_none(self):
        _, _, child, a, b = self.open(2)
        self.register(a, PRE)
        cb = self.ids(child, "PreToolUse")[0]
        a.answer(a.ask("initialize"))
        b.answer(b.ask("initialize"))
        child.print(hook("k-1", cb))
        a.send(ok(self.called(a)["request_id"], {}))
        child.answer("k-1")

    def test_the_daemons_own_initialize_comes_first(self):
        _, _, child, a = self.open()
        child.prompted(a, "no initialize before", uuid="u")
        kinds = [m["request.subtype"] or m["type"] for m in child.log]
        self.assertEqual(kinds, ["initialize", "user"])
        self.register(a, PRE)
        self.ids(child, "PreToolUse")

    def test_after_the_childs_end(self):
        _, agent, child, a, b = self.open(2, mode={"user": True})
        self.register(a, PRE, systemPrompt=["be brief"])
        self.register(b, POST)
        a.send(user("x"))
        a.wait(type="result")
        child.exit(0)
        a.event("child_exited")
        a.send(user("again", uuid="u"))
        child = agent.child()
        child.wait(type="user", uuid="u")
        first = child.log[0]
        self.assertEqual(first["request.subtype"], "initialize")
        self.assertEqual(sorted(first["request.hooks"]), ["PostToolUse", "PreToolUse"])
        self.assertEqual(first["request.systemPrompt"], ["be brief"])
        child.print(hook("k-1", self.ids(child, "PreToolUse")[0]))
        a.send(ok(self.called(a)["request_id"], DENY))
        child.answer("k-1")

    def test_bad_hooks_hurt_nobody_else(self):
        _, _, child, a, b = self.open(2)
        self.register(b, POST)
        for bad in (5, "x", [1], {"PreToolUse": 5}, {"PreToolUse": [{"hookCallbackIds": "hook_0"}]}, {"PreToolUse": [{"hookCallbackIds": [5]}]},
                    {"PreToolUse": [5]}):
            m = a.initialize(bad)
            self.assertEqual(m["response.subtype"], "error", bad)
        child.print(hook("k-1", self.ids(child, "PostToolUse", n=2)[0], "PostToolUse"))
        b.send(ok(self.called(b)["request_id"], {}))
        child.answer("k-1")
        self.assertEqual(list(self.table(child)), ["PostToolUse"])


class CallTest(Hooks):
    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a, self.b = self.d.attached(), self.d.attached()
        self.child = self.agent.child()
        self.register(self.a, PRE)
        self.cb = self.ids(self.child, "PreToolUse")[0]

    def test_only_the_owner_answers(self):
        self.child.print(hook("k-1", self.cb))
        m = self.called(self.a)
        self.b.send(ok(m["request_id"], {}), ok("k-1", {}))
        for _ in range(2):
            self.assertIn(self.b.event("error")["code"], ("unknown_request", "not_allowed"))
        self.assertNone(self.child.answers("k-1"))
        self.a.send(ok(m["request_id"], DENY))
        self.child.answer("k-1")
        self.a.send(ok(m["request_id"], {}))
        self.a.error("already_settled")
        self.child.mark(self.a)
        self.assertEqual(len(self.child.answers("k-1")), 1)

    def test_an_unknown_callback(self):
        for cb in ("hook_0", "nonsense", ""):
            self.child.print(hook("k-" + cb, cb))
            self.assertEqual(self.child.answer("k-" + cb)["response.subtype"], "error")
        self.child.mark(self.a)
        self.assertNone(self.a.seen(type="control_request"))

    def test_the_callback_throws(self):
        self.child.print(hook("k-1", self.cb))
        self.a.send(err(self.called(self.a)["request_id"], "threw"))
        self.assertEqual(self.child.answer("k-1")["response.error"], "threw")

    def test_the_child_withdraws(self):
        self.child.print(hook("k-1", self.cb))
        rid = self.called(self.a)["request_id"]
        self.child.print({"type": "control_cancel_request", "request_id": "k-1"})
        self.a.wait(type="control_cancel_request", request_id=rid)
        self.a.send(ok(rid, {}))
        self.a.error("already_settled")
        self.assertNone(self.child.answers("k-1"))

    def test_nothing_waits_behind_a_slow_answer(self):
        self.child.print(hook("k-1", self.cb), hook("k-2", self.cb))
        one, two = self.called(self.a), self.called(self.a)
        self.b.send(request("b-1", "mcp_status"))
        self.child.reply(self.child.request("mcp_status"))
        self.b.answer("b-1")
        self.child.print(perm("k-3"))
        self.b.wait(type="control_request", request__subtype="can_use_tool")
        self.a.send(ok(two["request_id"], {"n": 2}))
        self.child.answer("k-2")
        self.a.send(ok(one["request_id"], {"n": 1}))
        self.child.answer("k-1")

    def test_a_registration_waits_until_no_callback_is_open(self):
        self.child.print(hook("k-1", self.cb))
        m = self.called(self.a)
        before = len(self.child.seen(request__subtype="initialize"))
        body = self.register(self.b, POST)
        self.assertIs(body["plenum"]["hooks_applied"], False)
        self.assertTrue(body["plenum"]["reason"])
        self.child.mark(self.a)
        self.assertEqual(len(self.child.seen(request__subtype="initialize")), before)
        self.a.send(ok(m["request_id"], {}))
        self.child.answer("k-1")
        post = self.ids(self.child, "PostToolUse", n=2)
        self.child.print(hook("k-2", post[0], "PostToolUse"))
        self.b.send(ok(self.called(self.b)["request_id"], {}))
        self.child.answer("k-2")

    def test_a_departure_waits_too(self):
        self.register(self.b, POST)
        self.ids(self.child, "PostToolUse", n=2)
        self.child.print(hook("k-1", self.cb))
        m = self.called(self.a)
        before = len(self.child.seen(request__subtype="initialize"))
        self.b.close()
        self.a.event("detached")
        self.child.mark(self.a)
        self.assertEqual(len(self.child.seen(request__subtype="initialize")), before)
        self.assertNone(self.child.answers("k-1"))
        self.a.send(ok(m["request_id"], {}))
        self.child.answer("k-1")

    def test_not_replayed(self):
        self.child.print(hook("k-1", self.cb))
        self.a.send(ok(self.called(self.a)["request_id"], {}))
        self.child.answer("k-1")
        c = self.d.attached(replay="all")
        self.child.mark(c)
        self.assertNone(c.seen(type="control_request"))
        self.assertNone(c.seen(type="control_response", response__request_id=lambda r: r and r.startswith("req_")))


class OldCliTest(Hooks):
    """2.1.197: answers a second initialize with success and ignores it."""

    def test_brought_in_by_a_resume(self):
        d, agent = self.start(mode={"init": "197", "user": True, "session_id": "conv-1"})
        a, b = d.attached(), d.attached()
        first = agent.child()
        body = self.register(a, PRE)
        self.assertNotEqual((body.get("plenum") or {}).get("hooks_applied"), False)
        a.send(user("x"))
        a.wait(type="result")
        b.wait(type="result")
        body = self.register(b, POST)
        self.assertIs(body["plenum"]["hooks_applied"], False)
        self.assertTrue(body["plenum"]["reason"])
        second = agent.child()
        self.assertIn("--resume=conv-1", second.argv)
        post = self.ids(second, "PostToolUse", n=2)
        pre = self.ids(second, "PreToolUse")
        self.assertEqual(second.log[0]["request.subtype"], "initialize")
        first.wait_gone()
        second.print(hook("k-1", pre[0]), hook("k-2", post[0], "PostToolUse"))
        a.send(ok(self.called(a)["request_id"], {}))
        b.send(ok(self.called(b)["request_id"], {}))
        second.answer("k-1")
        second.answer("k-2")
        self.assertEqual(list(d.sessions()), ["s"])

    def test_not_in_mid_turn(self):
        _, agent, child, a, b = self.open(2, mode={"init": "197", "session_id": "conv-1"})
        self.register(a, PRE)
        child.prompted(a, "x", uuid="u")
        child.print({"type": "system", "subtype": "init", "session_id": "conv-1"})
        self.assertIs(self.register(b, POST)["plenum"]["hooks_applied"], False)
        child.mark(a)
        self.assertEqual(agent.starts, 1)
        self.assertEqual(child.had("eof"), [])
        child.print(dict(RESULT, user_message_uuids=["u"], session_id="conv-1"))
        a.wait(type="result")
        self.ids(agent.child(), "PostToolUse", n=2)

    def test_the_first_hooks_that_had_to_wait(self):
        """For a child that had run without any, and was resumed for them."""
        _, agent, child, a, b = self.open(2, mode={"init": "197", "session_id": "conv-1"})
        child.prompted(a, "x", uuid="u")
        child.print({"type": "system", "subtype": "init", "session_id": "conv-1"},
                    dict(RESULT, user_message_uuids=["u"], session_id="conv-1"))
        a.wait(type="result")
        self.assertIs(self.register(a, PRE)["plenum"]["hooks_applied"], False)
        agent.child()
        for client in (a, b):
            self.assertIs(client.event("changed", what="hooks_applied")["value"], True)

    def test_told_not_applied(self):
        """hooks_applied false in the child's answer counts."""
        _, _, child, a, b = self.open(2, mode={"init": "manual"})
        a.send(init("a", PRE))
        child.reply(child.request("initialize"), {"commands": [], "hooks_applied": True})
        self.assertNotEqual((a.answer("a")["response.response.plenum"] or {}).get("hooks_applied"), False)
        b.send(init("b", POST))
        child.reply(child.request("initialize"), {"commands": [], "hooks_applied": False})
        self.assertIs(b.answer("b")["response.response.plenum.hooks_applied"], False)

    def test_no_restart_that_would_lose_the_conversation(self):
        for keys in ({"resume_args": ""}, {"restart": "never"}):
            with self.subTest(list(keys)[0]):
                d, agent = self.start(mode={"init": "197", "user": True, "session_id": "conv-1"}, profile=keys)
                a, b = d.attached(), d.attached()
                child = agent.child()
                self.register(a, PRE)
                a.send(user("x"))
                a.wait(type="result")
                self.assertIs(self.register(b, POST)["plenum"]["hooks_applied"], False)
                child.mark(a)
                a.send(user("y"))
                a.wait(type="result")
                child.mark(a)
                self.assertEqual((agent.starts, child.had("eof")), (1, []))


class DeadlineTest(Hooks):
    def silent(self, hooks):
        _, _, child, a = self.open()
        self.register(a, hooks)
        event = list(hooks)[0]
        cb = self.ids(child, event)[0]
        begun = time.monotonic()
        child.print(hook("k-1", cb, event))
        rid = self.called(a, "p")["request_id"]
        a.send(request("clock", "mcp_status", plenum_timeout_ms=1000))  # not before the child's own deadline
        self.assertEqual(a.answer("clock")["response.code"], "timeout")
        a.ask("set_model", model="m")
        child.request("set_model")  # all lines written before are here
        self.assertEqual(len(child.answers("k-1")), 1, "the child's deadline has come")
        answer = child.answer("k-1")
        self.assertGreater(answer.t - begun, 0.85)
        a.wait(type="control_cancel_request", request_id=rid)
        a.send(ok(rid, {}))
        a.error("already_settled")
        self.assertEqual(len(child.answers("k-1")), 1)
        return answer

    def test_a_guard_is_denied(self):
        self.refuses(self.silent({"PreToolUse": [{"hookCallbackIds": ["p"], "timeout": 1}]}))

    def test_others_are_let_pass(self):
        self.assertEqual(self.silent({"PostToolUse": [{"hookCallbackIds": ["p"], "timeout": 1}]})["response.response"], {})

    def test_no_limit_of_its_own(self):
        _, _, child, a = self.open(profile={"control_timeout": "200ms", "permission_wait": "200ms"})
        self.register(a, {"PreToolUse": [{"hookCallbackIds": ["p"], "timeout": 3600}]})
        child.print(hook("k-1", self.ids(child, "PreToolUse")[0]))
        rid = self.called(a, "p")["request_id"]
        self.assertRefused("timeout", a.request, "mcp_status", plenum_timeout_ms=900)
        self.assertNone(child.answers("k-1"))
        a.send(ok(rid, {"late": "but fine"}))
        self.assertEqual(child.answer("k-1")["response.response"], {"late": "but fine"})


class SlowStartTest(Hooks):
    """C68: initialize is slow; more clients come, go and send requests meanwhile."""

    def test_one_answer_for_each(self):
        d, _, child, a = self.open(mode={"init": "manual"})
        a.send(init("a-1", None))
        got = child.request("initialize")
        child.print({"type": "system", "subtype": "hook_started"})
        a.wait(subtype="hook_started")
        self.assertEqual(d.state_of("s"), "starting")
        for _ in range(5):
            b = d.attached()
            b.send(init("b-1", None))
            b.sync()
            b.close()
        b = d.attached()
        b.send(init("b-1", None))
        a.send(user("hi", uuid="u"))
        a.sync()
        b.sync()
        self.assertEqual(len(child.seen(request__subtype="initialize")), 1)
        child.reply(got, {"commands": [{"name": "x"}]})
        for c, rid in ((a, "a-1"), (b, "b-1")):
            self.assertEqual(c.answer(rid)["response.response.commands"], [{"name": "x"}])
        child.wait(type="user", uuid="u")
        child.mark(a, b)
        self.assertLessEqual(len(child.seen(request__subtype="initialize")), 2)
        self.assertEqual(len(child.seen(type="user")), 1)
        for c, rid in ((a, "a-1"), (b, "b-1")):
            self.assertEqual(len(c.seen(type="control_response", response__request_id=rid)), 1)

    def test_an_error_for_each(self):
        _, _, child, a = self.open(mode={"init": "manual"})
        a.send(init("a-1", {"X": []}))
        got = child.request("initialize")
        child.print(err(got["request_id"], "bad initialize"))
        m = a.answer("a-1")
        self.assertEqual((m["response.subtype"], m["response.error"]), ("error", "bad initialize"))
        self.assertTrue(matches(m.obj, {"type": "control_response"}))

    def test_initialize_has_no_time_limit(self):
        """C68: the first answer may come later than the timeout of any other request."""
        _, _, child, a, b = self.open(2, mode={"init": "manual"}, profile={"control_timeout": "100ms"})
        a.send(init("a-1", None))
        got = child.request("initialize")
        b.send(init("b-1", None), request("b-2", "mcp_status"))
        self.assertEqual(b.answer("b-2")["response.code"], "timeout")
        b.send(init("b-3", None), request("b-4", "mcp_status"))
        self.assertEqual(b.answer("b-4")["response.code"], "timeout")
        child.reply(got, {"commands": [{"name": "x"}]})
        for c, rid in ((a, "a-1"), (b, "b-3")):
            self.assertEqual(c.answer(rid)["response.response.commands"], [{"name": "x"}])
        self.assertEqual(len(child.seen(request__subtype="initialize")), 1)

    def test_too_long_answer_to_initialize(self):
        d, agent = self.start(mode={"init": "manual"}, limits={"child_line": "64K"})
        a = d.attached()
        rid = a.ask("initialize")
        child = agent.child()
        child.reply(child.request("initialize"), {"commands": "x" * 100000})
        self.assertEqual(a.answer(rid)["response.code"], "too_long")
        d.wait_state("s", "idle")
        rid = a.ask("initialize")
        child.reply(child.request("initialize"), {"commands": []})
        self.assertEqual(a.answer(rid)["response.response.commands"], [])
        hooks = {"PreToolUse": [{"matcher": None, "hookCallbackIds": ["h0"]}]}
        rid = a.ask("initialize", hooks=hooks)
        child.reply(child.request("initialize"), {"commands": "x" * 100000, "hooks_applied": True})
        self.assertEqual(a.answer(rid)["response.code"], "too_long")
        child.print(hook("k-1", "cb_1"))
        a.send(ok(a.wait(type="control_request")["request_id"], {}))
        child.answer("k-1")
        self.assertEqual(a.initialize(hooks)["response.response.commands"], [])


class RandomTest(Case):
    """Random order: an answer is the owner's own, or a refusal while the owner is away."""

    def callbacks(self, child, client_matcher):
        for m in reversed(child.seen(request__subtype="initialize")):
            for entry in (m["request.hooks"] or {}).get("PreToolUse", []):
                if entry.get("matcher") == client_matcher:
                    return entry["hookCallbackIds"][0]
            return None
        return None

    def test_owners_come_and_go(self):
        dice = random.Random(int(os.environ.get("PLENUM_SEED", "7")))
        d, agent = self.start(profile={"owner_grace": "60s"})
        watcher = d.attached(name="watcher", role="observer")
        child = agent.child()
        owners, said, fired, n = {}, {}, {}, 0
        for step in range(150):
            name = dice.choice("abc")
            c = owners.get(name)
            move = dice.random()
            if c is None:
                c = owners[name] = d.attached(name=name, approve=False)
                m = c.initialize({"PreToolUse": [{"matcher": name, "hookCallbackIds": ["hook_0"], "timeout": 600}]})
                self.assertEqual(m["response.subtype"], "success")
            elif move < 0.15:
                c.reset() if dice.random() < 0.5 else c.close()
                owners[name] = None
            elif move < 0.55:
                cb = self.callbacks(child, name)
                if cb:
                    n += 1
                    fired["k-%d" % n] = name
                    child.print(hook("k-%d" % n, cb))
            else:
                c.drain()
                for m in [m for m in c.inbox if m["type"] == "control_request"]:
                    c.inbox.remove(m)
                    self.assertEqual(m["request.callback_id"], "hook_0")
                    k = m["request.tool_use_id"][len("toolu_"):]
                    self.assertEqual(fired[k], name, "another owner's callback")
                    token = "t%d" % step
                    said.setdefault(k, []).append(token)
                    c.send(ok(m["request_id"], {"systemMessage": token}) if dice.random() < 0.9 else err(m["request_id"], token))
        child.mark(watcher)
        for c in owners.values():
            if c:
                c.close()
        until(lambda: all(child.answers(k) for k in fired), what="every callback to be answered")
        for k in fired:
            got = child.answers(k)
            self.assertEqual(len(got), 1, k)
            body = got[0]["response.response"] or {}
            token = body.get("systemMessage") or got[0]["response.error"]
            if token in said.get(k, []):
                continue
            if got[0]["response.subtype"] == "error":
                continue  # a callback id replaced by a newer table
            self.assertEqual(body["hookSpecificOutput"]["permissionDecision"], "deny", got[0])
        self.assertNone(child.seen(type="control_response", response__request_id=lambda r: r not in fired))


if __name__ == "__main__":
    unittest.main()
