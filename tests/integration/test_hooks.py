# SPDX-License-Identifier: MIT
"""One table of hooks for all clients (DESIGN 6, 9.2; CASES C05 C41 C68)."""
import json
import os
import subprocess
import time
import unittest

from harness import Case, build_file, err, hook, init, matches, ok, perm, request, until, user, RESULT

PRE = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}
POST = {"PostToolUse": [{"matcher": "Write", "hookCallbackIds": ["hook_0", "hook_1"]}]}
DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "mine"}}


class Hooks(Case):
    def table(self, child, check=None):
        """The hooks of the newest initialize that reached the child (and, with check, fits)."""

        def newest():
            seen = child.seen(type="control_request", request__subtype="initialize")
            hooks = seen[-1]["request.hooks"] if seen else None
            return hooks if hooks is not None and (check is None or check(hooks)) else None

        return until(newest, what="an initialize with the table; last: %s" % child.seen(request__subtype="initialize")[-1:])

    def ids(self, child, event, matcher=None, n=1):
        """The daemon's callback ids of an event, in order, once there are n."""
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
        """A hook answer that says no, with a reason."""
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

    def test_that_of_a_client_that_reads_no_complaint_goes_to_the_child(self):
        """The shim's: the CLI lets the tool run, as it does without the daemon."""
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
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
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
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        self.register(a, {"PreToolUse": [{"hookCallbackIds": ["x"], "plenum_owner_gone": "drop"}]})
        self.table(child, lambda h: "PreToolUse" in h)
        self.assertNone(child.seen(lambda m: b"plenum_owner" in m.raw))

    def test_the_first_initialize_goes_as_it_is(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        self.register(a, PRE, systemPrompt=["be brief"], agents={"x": {"description": "d", "prompt": "p"}}, future=[1.0, None])
        m = child.request("initialize")
        self.assertEqual(m["request.systemPrompt"], ["be brief"])
        self.assertEqual(m["request.agents"], {"x": {"description": "d", "prompt": "p"}})
        self.assertIn(b'"future":[1.0,null]', m.raw)

    def test_later_ones_keep_the_firsts_members(self):
        d, agent = self.start()
        a, b = d.attached(), d.attached()
        child = agent.child()
        self.register(a, PRE, systemPrompt=["be brief"])
        body = self.register(b, POST, systemPrompt=["be long"], agents={"y": {}})
        self.assertEqual(sorted(set(body["plenum"]["ignored"]) & {"systemPrompt", "agents"}), ["agents", "systemPrompt"])
        self.ids(child, "PostToolUse", n=2)
        last = child.seen(request__subtype="initialize")[-1]
        self.assertEqual(last["request.systemPrompt"], ["be brief"])
        self.assertIsNone(last["request.agents"])
        self.ids(child, "PreToolUse")

    def test_answers_from_the_kept_answer(self):
        d, agent = self.start()
        a, b, c = d.attached(), d.attached(), d.attached()
        child = agent.child()
        one = self.register(a, None)
        self.assertEqual(one["commands"][0]["name"], "clear")
        for client in (b, c):
            got = self.register(client, None)
            self.assertEqual(got["commands"], one["commands"])
            self.assertEqual(got["output_style"], "default")
        self.assertEqual(len(child.seen(request__subtype="initialize")), 1)

    def test_open_asks_are_not_listed(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.attached()
        child = agent.child()
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
        d, agent = self.start()
        a, b = d.attached(), d.attached()
        child = agent.child()
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
        d, agent = self.start()
        a, b = d.attached(), d.attached()
        child = agent.child()
        self.register(a, PRE)
        cb = self.ids(child, "PreToolUse")[0]
        a.answer(a.ask("initialize"))
        b.answer(b.ask("initialize"))
        child.print(hook("k-1", cb))
        a.send(ok(self.called(a)["request_id"], {}))
        child.answer("k-1")

    def test_the_daemons_own_initialize_comes_first(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        a.send(user("no initialize before", uuid="u"))
        child.wait(type="user", uuid="u")
        kinds = [m["request.subtype"] or m["type"] for m in child.log]
        self.assertEqual(kinds, ["initialize", "user"])
        self.register(a, PRE)
        self.ids(child, "PreToolUse")

    def test_after_the_childs_end(self):
        d, agent = self.start(mode={"user": True})
        a, b = d.attached(), d.attached()
        child = agent.child()
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
        d, agent = self.start()
        a, b = d.attached(), d.attached()
        child = agent.child()
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
        d, agent = self.start(mode={"init": "197", "session_id": "conv-1"})
        a, b = d.attached(), d.attached()
        child = agent.child()
        self.register(a, PRE)
        a.send(user("x", uuid="u"))
        child.wait(type="user")
        child.print({"type": "system", "subtype": "init", "session_id": "conv-1"})
        self.assertIs(self.register(b, POST)["plenum"]["hooks_applied"], False)
        child.mark(a)
        self.assertEqual(agent.starts, 1)
        self.assertEqual(child.had("eof"), [])
        child.print(dict(RESULT, user_message_uuids=["u"], session_id="conv-1"))
        a.wait(type="result")
        self.ids(agent.child(), "PostToolUse", n=2)

    def test_the_first_hooks_that_had_to_wait(self):
        """Of a child that had run without any, and was resumed for them."""
        d, agent = self.start(mode={"init": "197", "session_id": "conv-1"})
        a, b = d.attached(), d.attached()
        child = agent.child()
        a.send(user("x", uuid="u"))
        child.wait(type="user")
        child.print({"type": "system", "subtype": "init", "session_id": "conv-1"},
                    dict(RESULT, user_message_uuids=["u"], session_id="conv-1"))
        a.wait(type="result")
        self.assertIs(self.register(a, PRE)["plenum"]["hooks_applied"], False)
        agent.child()
        for client in (a, b):
            self.assertIs(client.event("changed", what="hooks_applied")["value"], True)

    def test_told_not_applied(self):
        """hooks_applied false in the answer of the child counts as what it says."""
        d, agent = self.start(mode={"init": "manual"})
        a, b = d.attached(), d.attached()
        child = agent.child()
        a.send(init("a", PRE))
        child.reply(child.request("initialize"), {"commands": [], "hooks_applied": True})
        self.assertNotEqual((a.answer("a")["response.response.plenum"] or {}).get("hooks_applied"), False)
        b.send(init("b", POST))
        child.reply(child.request("initialize"), {"commands": [], "hooks_applied": False})
        self.assertIs(b.answer("b")["response.response.plenum.hooks_applied"], False)


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
        self.register(self.b, POST)  # no guard
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
        self.assertRegex(doctor.stdout, "(?m)^note +guards +session s refuses what a guard guards")
        self.d.attached("s", name="guard")
        self.assertNotIn("guards_away", self.d.sessions()["s"])


class BoundsTest(Guarded):
    """What is registered fits on the table of sessions, whatever it is."""

    def refused(self, code, hooks):
        m = self.a.initialize(hooks, _timeout=30)
        self.assertEqual(m["response.code"], code, m)
        return m["response.error"]

    def test_a_matcher_of_60_mib(self):
        self.setup()
        self.assertIn("matcher", self.refused("too_long", {"PreToolUse": [{"matcher": "x" * (60 << 20), "hookCallbackIds": ["h"]}]}))
        self.d.kill9()
        self.d.start()
        self.b = self.d.attached("s", wake=True)
        hooks = self.agent.child().request("initialize")["request.hooks"]
        self.assertEqual(hooks["PreToolUse"][0]["matcher"], "Bash")  # those of before are in force

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
        self.setup(hooks)  # within the grace it denies
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
    """A daemon that was killed, or restarted, leaves no agent unguarded."""

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
        """A stranger's bad hook is what the new child refuses: the guard stays, and no prompt runs without it."""
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


class DeadlineTest(Hooks):
    def silent(self, hooks):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        self.register(a, hooks)
        event = list(hooks)[0]
        cb = self.ids(child, event)[0]
        begun = time.monotonic()
        child.print(hook("k-1", cb, event))
        rid = self.called(a, "p")["request_id"]
        a.send(request("clock", "mcp_status", plenum_timeout_ms=1000))  # not before the child's own deadline
        self.assertEqual(a.answer("clock")["response.code"], "timeout")
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
        d, agent = self.start(profile={"control_timeout": "200ms", "permission_wait": "200ms"})
        a = d.attached()
        child = agent.child()
        self.register(a, {"PreToolUse": [{"hookCallbackIds": ["p"], "timeout": 3600}]})
        child.print(hook("k-1", self.ids(child, "PreToolUse")[0]))
        rid = self.called(a, "p")["request_id"]
        self.assertRefused("timeout", a.request, "mcp_status", plenum_timeout_ms=900)
        self.assertNone(child.answers("k-1"))
        a.send(ok(rid, {"late": "but fine"}))
        self.assertEqual(child.answer("k-1")["response.response"], {"late": "but fine"})


class SlowStartTest(Hooks):
    """C68: initialize takes its time; more clients come, go and ask meanwhile."""

    def test_one_answer_for_each(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.attached()
        child = agent.child()
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
        d, agent = self.start(mode={"init": "manual"})
        a = d.attached()
        child = agent.child()
        a.send(init("a-1", {"X": []}))
        got = child.request("initialize")
        child.print(err(got["request_id"], "bad initialize"))
        m = a.answer("a-1")
        self.assertEqual((m["response.subtype"], m["response.error"]), ("error", "bad initialize"))
        self.assertTrue(matches(m.obj, {"type": "control_response"}))


if __name__ == "__main__":
    unittest.main()
