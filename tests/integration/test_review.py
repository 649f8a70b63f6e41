# SPDX-License-Identifier: MIT
"""What a review of the daemon's core found: each test failed before its defect was mended (DESIGN 3 to 9.2)."""
import os
import time
import unittest

from harness import QUICK, Case, err, hook, init, mcp, ok, perm, request, until, user, RESULT

PRE = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}
POST = {"PostToolUse": [{"matcher": "Write", "hookCallbackIds": ["hook_1"]}]}


def server(name):
    return {"type": "sdk", "name": name}


class Review(Case):
    def register(self, client, hooks, **members):
        m = client.initialize(hooks, **members)
        self.assertEqual(m["response.subtype"], "success", m)
        return m["response.response"]

    def ids(self, child, event, n=1):
        """The daemon's callback ids of an event in the newest table."""

        def newest():
            seen = [m for m in child.seen(request__subtype="initialize") if m["request.hooks"] is not None]
            found = [i for e in (seen[-1]["request.hooks"].get(event) or []) for i in e["hookCallbackIds"]] if seen else []
            return found if len(found) >= n else None

        return until(newest, what="a table with %d callbacks of %s" % (n, event))

    def called(self, client, callback="hook_0"):
        return client.wait(type="control_request", request__subtype="hook_callback", request__callback_id=callback)

    def refuses(self, answer):
        """A hook answer by which the tool does not run: an error would let it run (PROTOCOL 4.2)."""
        self.assertEqual(answer["response.subtype"], "success", answer)
        body = answer["response.response"]
        out = body.get("hookSpecificOutput", {})
        self.assertTrue(out.get("permissionDecision") == "deny" or body.get("decision") == "block", answer)


class GuardTest(Review):
    """Nothing may let a tool run that a guard did not see."""

    def test_a_table_that_is_being_replaced(self):
        """The owner sends its hooks anew; until the child has the new table it asks by the old ids."""
        d, agent = self.start(mode={"init": "manual"})
        a = d.attached()
        child = agent.child()
        a.send(init("1", PRE))
        child.reply(child.request("initialize"), {"commands": [], "hooks_applied": True})
        a.answer("1")
        old = self.ids(child, "PreToolUse")[0]
        a.send(init("2", {"PreToolUse": [{"matcher": "Edit", "hookCallbackIds": ["hook_0"]}]}))
        second = child.request("initialize")
        child.print(hook("k-1", old))
        self.refuses(child.answer("k-1"))
        child.reply(second, {"commands": [], "hooks_applied": True})
        a.answer("2")
        child.print(hook("k-2", old))
        self.assertEqual(child.answer("k-2")["response.subtype"], "error")

    def test_a_child_that_keeps_the_old_table(self):
        """2.1.197 asks by the old ids for the rest of the turn."""
        d, agent = self.start(mode={"init": "197", "session_id": "conv-1"})
        a = d.attached()
        child = agent.child()
        self.register(a, PRE)
        old = self.ids(child, "PreToolUse")[0]
        a.send(user("x", uuid="u"))
        child.wait(type="user")
        self.register(a, {"PreToolUse": [{"matcher": "Edit", "hookCallbackIds": ["hook_0"]}]})
        child.print(hook("k-1", old))
        self.refuses(child.answer("k-1"))

    def test_the_same_hooks_again(self):
        """An owner that comes back and registers what it had goes on at once, also with a child that keeps its table."""
        d, agent = self.start(mode={"init": "197", "session_id": "conv-1"})
        a, b = d.attached(name="guard"), d.attached()
        child = agent.child()
        self.register(a, PRE)
        old = self.ids(child, "PreToolUse")[0]
        b.send(user("x", uuid="u"))
        child.wait(type="user")
        a.close()
        b.event("owner_gone")
        a = d.attached(name="guard")
        self.assertNotIn("plenum", self.register(a, PRE))
        child.print(hook("k-1", old))
        a.send(ok(self.called(a)["request_id"], {}))
        self.assertEqual(child.answer("k-1")["response.response"], {})

    def test_a_registration_that_is_refused(self):
        """Its owner keeps the guards that it had."""
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        self.register(a, PRE)
        old = self.ids(child, "PreToolUse")[0]
        self.assertEqual(a.initialize({"PreToolUse": [{"hookCallbackIds": "no array"}]})["response.subtype"], "error")
        child.print(hook("k-1", old))
        a.send(ok(self.called(a)["request_id"], {"decision": "block", "reason": "mine"}))
        self.refuses(child.answer("k-1"))

    def test_a_registration_that_the_child_refuses(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.attached()
        child = agent.child()
        a.send(init("1", PRE))
        child.reply(child.request("initialize"), {"commands": [], "hooks_applied": True})
        a.answer("1")
        old = self.ids(child, "PreToolUse")[0]
        a.send(init("2", {"PreToolUse": [{"matcher": 5, "hookCallbackIds": ["hook_0"]}]}))
        child.print(err(child.request("initialize")["request_id"], "bad hooks"))
        self.assertEqual(a.answer("2")["response.subtype"], "error")
        child.reply(child.request("initialize"), {"commands": [], "hooks_applied": True})
        child.print(hook("k-1", old))
        a.send(ok(self.called(a)["request_id"], {"decision": "block", "reason": "mine"}))
        self.refuses(child.answer("k-1"))

    def test_servers_do_not_stand_for_hooks(self):
        """mcp_set_servers while a guard waits for its turn: the guard is sent all the same."""
        d, agent = self.start(mode={"control": True})
        a, b = d.attached(), d.attached()
        child = agent.child()
        self.register(a, PRE)
        child.print(hook("k-1", self.ids(child, "PreToolUse")[0]))
        m = self.called(a)
        self.assertIs(self.register(b, PRE)["plenum"]["hooks_applied"], False)
        b.request("mcp_set_servers", servers={"x": server("x")})
        a.send(ok(m["request_id"], {}))
        self.ids(child, "PreToolUse", n=2)

    def test_too_many_requests(self):
        d, agent = self.start(limits={"max_pending": "2"})
        a = d.attached()
        child = agent.child()
        self.register(a, dict(PRE, **POST))
        pre, post = self.ids(child, "PreToolUse")[0], self.ids(child, "PostToolUse")[0]
        child.print(perm("k-1"), perm("k-2"), hook("k-3", pre), hook("k-4", post, "PostToolUse"))
        self.refuses(child.answer("k-3"))
        self.assertEqual(child.answer("k-4")["response.response"], {})

    def test_an_over_long_callback(self):
        d, agent = self.start(limits={"child_line": "64K"})
        a = d.attached()
        child = agent.child()
        self.register(a, dict(PRE, **POST))
        pre, post = self.ids(child, "PreToolUse")[0], self.ids(child, "PostToolUse")[0]
        child.print(hook("k-1", pre, pad="x" * 100000), hook("k-2", post, "PostToolUse", pad="x" * 100000))
        self.refuses(child.answer("k-1"))
        self.assertEqual(child.answer("k-2")["response.response"], {})
        last = hook("k-3", pre)
        last["request"] = {"subtype": "hook_callback", "input": {"pad": "x" * 100000}, "callback_id": pre}
        child.print(last)
        self.refuses(child.answer("k-3"))

    def test_one_bad_registrant_takes_no_guard_away(self):
        """Asleep, a client registers what the child does not take; the child wakes with the guard of the other."""
        d, agent = self.start(mode={"init": "manual", "session_id": "conv-1"})
        a, b = d.attached(name="guard"), d.attached()
        child = agent.child()
        a.send(init("1", PRE))
        child.reply(child.request("initialize"), {"commands": [], "hooks_applied": True})
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

    def test_an_owner_that_becomes_an_observer(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        self.register(a, PRE)
        a.request("plenum_register", role="observer")
        child.print(hook("k-1", self.ids(child, "PreToolUse")[0]))
        self.refuses(child.answer("k-1"))

    def test_rules_of_a_reload_hold_from_the_next_start_on(self):
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

    def test_members_that_the_child_refuses(self):
        """They are not repeated for the next client."""
        d, agent = self.start(mode={"init": "manual"})
        a, b = d.attached(), d.attached()
        child = agent.child()
        a.send(init("1", None, agents="no object"))
        child.print(err(child.request("initialize")["request_id"], "bad agents"))
        self.assertEqual(a.answer("1")["response.subtype"], "error")
        b.send(init("2", PRE, title="t"))
        got = child.request("initialize")
        self.assertIsNone(got["request.agents"])
        self.assertEqual(got["request.title"], "t")
        child.reply(got, {"commands": [], "hooks_applied": True})
        b.answer("2")


    def test_a_guard_that_was_left_for_a_sleeping_session(self):
        """No child has taken it when what a stranger registers with it is refused: no prompt runs without it."""
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


class EndTest(Review):
    """Clients and sessions that end while something is under way."""

    def test_a_lagging_client_in_a_session_that_is_removed(self):
        d, agent = self.start(limits={"tape_bytes": "1M"})
        a, b = d.attached(on_lag="close"), d.attached()
        child = agent.child()
        child.flood(b'{"type":"x","p":"@P@"}', 6000, pad=2000)
        child.print(RESULT)
        b.wait(type="result")
        d.call("plenum_stop", session="s", how="kill", forget=True)
        until(lambda: not d.sessions(), what="the session to be gone")
        a.event("session_removed")

    def test_the_last_request_of_a_half_closed_owner_of_the_session(self):
        d, agent = self.start()
        a = d.attached(ephemeral=True)
        child = agent.child()
        a.send(request("1", "mcp_status"))
        child.request("mcp_status")
        b = d.attached()
        b.send(request("2", "mcp_status"))
        child.request("mcp_status")
        a.half_close()
        child.mark(b)
        child.kill()
        self.assertEqual(a.answer("1")["response.code"], "child_exited")
        self.assertEqual(b.answer("2")["response.code"], "child_exited")
        until(lambda: not d.sessions(), what="the session to be gone")

    def test_the_last_request_of_another_client_than_the_shim(self):
        """Behind the shim it ends unanswered, as with the CLI; whoever else has asked is told."""
        d, agent = self.start()
        a = d.attached(ephemeral=True, quiet=True)
        child = agent.child()
        b = d.attached()
        for client, rid in ((a, "1"), (b, "2")):
            client.send(request(rid, "mcp_status"))
            child.request("mcp_status")
        child.exit(3)
        self.assertEqual(b.answer("2")["response.code"], "child_exited")
        until(lambda: not d.sessions(), what="the session to be gone")
        a.wait_eof()
        self.assertNone(a.seen(type="control_response", response__request_id="1"))

    def test_a_grandchild_that_never_stops_printing(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        child.spawn(["/usr/bin/yes", "x" * 3000], setsid=True, keep_stdout=True)
        child.exit(3)
        a.event("child_exited", status=3)
        d.call("plenum_hello")
        d.call("plenum_stop", session="s", how="kill", forget=True)

    def test_more_requests_than_a_client_may_hold(self):
        """An approver arrives to more open requests than may wait for it: it is cut off, and the daemon lives."""
        d, agent = self.start(limits={"tape_bytes": "1M"})
        a = d.attached(approve=False)
        child = agent.child()
        for i in range(5):
            child.print(perm("k-%d" % i, "x" * 60000000))
        until(lambda: len(d.call("plenum_pending")["pending"]) == 5, 30, "the requests")
        b = d.client()
        b.ask("plenum_attach", session="s")
        b.wait_eof(30)
        a.sync()
        self.assertEqual(d.call("plenum_status", session="s")["pending"], 5)

    def test_a_child_that_closes_its_input(self):
        d, agent = self.start(profile=QUICK)
        a = d.attached()
        child = agent.child()
        child.order("close_stdin")
        a.send(user("x", uuid="u"))  # what is read last by it: it looks at its input until something comes

        def told():
            a.send({"type": "keep_alive"})
            return a.events("error", uuid="u")

        self.assertEqual(until(told, every=0.05)[0]["code"], "child_exited")

    def test_a_half_closed_client_gets_the_answer_to_its_initialize(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.attached()
        child = agent.child()
        a.send(init("1"))
        m = child.request("initialize")
        a.half_close()
        d.call("plenum_hello")
        child.reply(m, {"commands": []})
        self.assertEqual(a.answer("1")["response.subtype"], "success")
        a.wait_eof()


class StopTest(Review):
    def test_a_stop_beats_a_restart_for_hooks(self):
        d, agent = self.start(mode={"init": "197", "user": True, "session_id": "conv-1", "eof": "ignore"})
        a, b = d.attached(), d.attached()
        child = agent.child()
        self.register(a, PRE)
        a.send(user("x"))
        a.wait(type="result")
        self.register(b, POST)
        child.event("eof")
        a.ask("plenum_stop")
        a.sync()
        child.exit(0)
        child.wait_gone()
        a.event("child_exited")
        d.wait_state("s", "asleep")
        d.call("plenum_hello")
        self.assertEqual(agent.starts, 1)

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

    def test_no_child_starts_while_the_daemon_stops(self):
        d, agent = self.start(mode={"eof": 0.3}, profile={"prompts": "queue"})
        a, b = d.attached(), d.attached()
        child = agent.child()
        a.send(user("one", uuid="ua"))
        child.wait(type="user", uuid="ua")
        b.send(user("two", uuid="ub"))
        until(lambda: d.call("plenum_queue", session="s")["prompts"], what="the held prompt")
        d.stop()
        d.process = None
        self.assertEqual(agent.starts, 1)

    def test_a_stop_ends_what_waits_for_a_start(self):
        d, agent = self.start(mode={"session_id": "conv-1", "control": ["interrupt"]})
        a = d.attached()
        for _ in range(4):
            agent.child().exit(1, now=True)
            a.event("child_exited", status=1)
            a.send(user("x", uuid=os.urandom(4).hex()))
        a.send(user("last", uuid="u"))
        a.sync()
        a.request("plenum_stop")
        a.error("child_exited", uuid="u")
        d.wait_state("s", "asleep", "failed")


class QueueTest(Review):
    def test_held_prompts_are_bounded(self):
        d, agent = self.start(profile={"prompts": "queue"}, limits={"stdin_queue": "1M", "client_line": "1M"})
        a, b = d.attached(), d.attached()
        child = agent.child()
        a.send(user("one", uuid="ua"))
        child.wait(type="user", uuid="ua")
        b.send(user("x" * 600000, uuid="b1"), user("x" * 600000, uuid="b2"))
        b.error("busy")
        self.assertEqual([p["uuid"] for p in d.call("plenum_queue", session="s")["prompts"]], ["b1"])

    def test_cancels_are_bounded(self):
        d, agent = self.start(limits={"stdin_queue": "64K", "client_line": "64K"})
        a = d.attached()
        child = agent.child()
        a.send(request("1", "mcp_status"))
        child.request("mcp_status")
        child.pause()
        child.written()
        line = b'{"type":"control_cancel_request","request_id":"1"}\n'
        a.raw(line * 8000)
        a.error("busy")
        child.resume()

    def test_cancel_everybodys_prompts(self):
        d, agent = self.start(mode={"control": True}, profile={"prompts": "queue"})
        a, b = d.attached(), d.attached()
        child = agent.child()
        a.send(user("one", uuid="ua"))
        child.wait(type="user", uuid="ua")
        b.send(user("two", uuid="ub"))
        b.sync()
        a.request("interrupt", cancel_queued=True, plenum_all=True)
        self.assertEqual(b.event("changed", what="prompt_cancelled")["value"], "ub")
        child.print(dict(RESULT, user_message_uuids=["ua"]))
        a.wait(type="result")
        child.mark(b)
        self.assertNone(child.seen(type="user", uuid="ub"))

    def test_calls_of_servers_that_the_child_cancels(self):
        """They do not stay open for ever, and do not keep the session awake."""
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        a.initialize(None, sdkMcpServers=["x"])
        call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t"}}
        gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5, "reason": "timeout"}}
        child.print(mcp("k-1", "x", call), mcp("k-2", "x", dict(call, id=6)), mcp("k-3", "x", gone))
        first = a.wait(type="control_request", request__message__id=5)
        note = a.wait(type="control_request", request__message__method="notifications/cancelled")
        a.send(ok(note["request_id"], {"mcp_response": {"jsonrpc": "2.0", "id": 0, "result": {}}}))
        child.answer("k-3")
        self.assertEqual(d.call("plenum_status", session="s")["pending"], 1)
        a.send(ok(first["request_id"], {"mcp_response": {"jsonrpc": "2.0", "id": 5, "result": {}}}))
        a.error("already_settled")
        self.assertNone(child.answers("k-1"))

    def test_a_discarded_prompt_lets_the_next_one_go(self):
        d, agent = self.start(profile={"prompts": "queue"})
        a, b = d.attached(), d.attached()
        child = agent.child()
        a.send(user("one", uuid="ua"))
        child.wait(type="user", uuid="ua")
        b.send(user("two", uuid="ub"))
        b.sync()
        child.print({"type": "command_lifecycle", "command_uuid": "ua", "state": "cancelled"})
        child.wait(type="user", uuid="ub")


class IdentityTest(Review):
    def test_a_conversation_named_in_args(self):
        d, agent = self.start(mode={"session_id": "conv-1", "user": True})
        a = d.attached()
        agent.child()
        a.send(user("x"))
        a.wait(type="result")
        for args in (["--resume", "conv-1"], ["--resume=conv-1"], ["-r", "conv-1"], ["-rconv-1"]):
            self.assertRefused("conversation_in_use", d.client().attach, "two", args=args)

    def test_a_flag_with_its_value_glued_to_it(self):
        """-rID, as the CLI takes it, names the conversation: a later start does not name it twice."""
        d, agent = self.start(mode={"session_id": "conv-1", "user": True})
        a = d.attached("one", args=["-rconv-1"])
        self.assertEqual([w for w in agent.child().argv if "conv" in w], ["-rconv-1"])
        a.send(user("x"))
        a.wait(type="result")
        a.request("plenum_hibernate")
        a.event("child_exited")
        a.send(user("y"))
        self.assertEqual([w for w in agent.child().argv if "conv" in w], ["-rconv-1"])

    def test_a_conversation_that_has_not_spoken_yet(self):
        d, agent = self.start()
        argv = agent.command.split()[1:]
        d.attached("one", argv=argv + ["--resume", "conv-1"], ephemeral=True, env_only=True, env={"PATH": "/usr/bin:/bin"})
        agent.child()
        self.assertRefused("conversation_in_use", d.client().attach, "two", ephemeral=True, argv=argv + ["--resume=conv-1"])
        self.assertRefused("conversation_in_use", d.client().attach, "three", args=["--resume=conv-1"])

    def test_a_uuid_with_escapes(self):
        d, agent = self.start()
        a, b = d.attached(), d.attached()
        child = agent.child()
        a.raw(b'{"type":"user","uuid":"\\u0061bc","message":{"role":"user","content":"x"}}\n')
        child.wait(type="user", uuid="abc")
        b.send(user("other", uuid="abc"))
        other = child.wait(type="user", message__content="other")
        self.assertNotEqual(other["uuid"], "abc")
        child.print(dict(RESULT, user_message_uuids=["abc"]))
        self.assertEqual(a.event("turn_ended")["uuids"], ["abc"])

    def test_a_prompt_that_never_ran_may_be_sent_again(self):
        d, agent = self.start(mode={"session_id": "conv-1"})
        a = d.attached()
        child = agent.child()
        a.send(user("warm", uuid="u0"))
        child.wait(type="user", uuid="u0")
        child.print(user("warm", uuid="u0", isReplay=True), {"type": "system", "subtype": "init", "session_id": "conv-1"},
                    dict(RESULT, user_message_uuids=["u0"]))
        a.wait(type="result")
        a.send(user("x", uuid="u1"))
        child.wait(type="user", uuid="u1")
        child.kill()
        a.error("child_exited", uuid="u1")
        a.send(user("x", uuid="u1"))
        agent.child().wait(type="user", uuid="u1")

    def test_a_server_name_with_escapes(self):
        d, agent = self.start(mode={"control": True})
        a, b = d.attached(), d.attached()
        child = agent.child()
        a.initialize(None, sdkMcpServers=["x"])
        b.raw(b'{"type":"control_request","request_id":"1","request":{"subtype":"initialize","sdkMcpServers":["\\u0078"]}}\n')
        self.assertEqual(b.answer("1")["response.code"], "name_taken")
        b.raw(b'{"type":"control_request","request_id":"2","request":{"subtype":"mcp_set_servers","servers":'
              b'{"\\u0078":{"type":"stdio","command":"evil"}}}}\n')
        self.assertEqual(b.answer("2")["response.code"], "name_taken")
        child.mark(a)

    def test_numbers_of_the_tape_after_a_restart(self):
        """A place in the tape of an earlier life is not taken for one in this."""
        d, agent = self.start(mode={"user": True, "session_id": "conv-1"})
        a = d.attached()
        agent.child()
        a.send(user("x"))
        a.wait(type="result")
        d.kill9()
        d.start()
        a = d.attached(wake=True)
        child = agent.child()
        child.mark(a)
        b = d.attached(replay={"after": 2})
        self.assertIs(b.attached["replay_cut"], True)

    def test_a_burst_of_lines_before_the_daemon_is_killed(self):
        """More lines than milliseconds: the numbers of the next life must not begin among them."""
        d, agent = self.start(mode={"session_id": "conv-1"})
        d.attached()
        agent.child().kill()
        d.wait_state("s", "asleep", "failed")
        d.kill9()
        d.start()
        a = d.attached(wake=True, tag=True, on_lag="wait")
        child = agent.child()
        child.flood(b'{"type":"x","n":@N@}', 20000)
        last = a.wait(type="x", n=19999, timeout=20)["plenum_seq"]
        d.kill9()
        d.start()
        self.assertGreater(d.call("plenum_status", session="s")["oldest_seq"], last)

    @unittest.skipUnless(os.getuid() == 0, "needs root, to connect as somebody else")
    def test_a_private_session(self):
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

    def test_a_name_that_is_none(self):
        d, agent = self.start()
        a = d.client()
        a.send(user("hi", session_id="x" * 300))
        a.error("bad_request")
        a.send(user("hi", session_id="a\nb"))
        a.error("bad_request")
        self.assertEqual(d.sessions(), {})


class TableTest(Review):
    """The table of sessions on disk."""

    def test_what_was_forgotten_stays_forgotten(self):
        """The last sessions go while the table cannot be written: that nobody is left is written later."""
        d, agent = self.start()
        folder = d.state + "/plenum/"

        def table():
            with open(folder + "sessions.json") as f:
                return f.read()

        d.attached("one")
        agent.child()
        until(lambda: os.path.exists(folder + "sessions.json") and '"one"' in table(), what="the table")
        os.mkdir(folder + "sessions.json.new")
        d.attached("two")
        agent.child()
        until(lambda: "cannot write" in d.log(), what="a failure")
        c = d.client()
        for name in ("one", "two"):
            c.request("plenum_stop", session=name, how="kill", forget=True)
        until(lambda: not c.request("plenum_list")["sessions"], what="no session")
        os.rmdir(folder + "sessions.json.new")
        until(lambda: "written again" in d.log(), what="a table that was written")
        self.assertNotIn('"one"', table())

    def test_a_table_that_cannot_take_its_place(self):
        """That is said, and tried again."""
        d, agent = self.start()
        folder = d.state + "/plenum/"
        until(lambda: os.path.isdir(folder), what="the folder")
        os.mkdir(folder + "sessions.json")
        d.attached("one")
        agent.child()
        until(lambda: "cannot write" in d.log(), what="a failure")
        os.rmdir(folder + "sessions.json")
        until(lambda: os.path.isfile(folder + "sessions.json"), what="the table")


class IdleTest(Review):
    def test_sleep_after_the_background_work(self):
        d, agent = self.start(profile={"idle_sleep": "300ms"})
        a = d.client()
        a.send(user("x", uuid="u", session_id="s"))  # so that it does not sleep before it says that it works
        child = agent.child()
        child.wait(type="user", uuid="u")
        child.print({"type": "system", "subtype": "background_tasks_changed", "tasks": [{"id": "t"}]},
                    dict(RESULT, user_message_uuids=["u"]))
        a.wait(type="result")
        time.sleep(0.5)  # more than idle_sleep: what must not happen meanwhile is looked at
        child.mark(a)
        self.assertEqual(d.state_of("s"), "idle")
        child.print({"type": "system", "subtype": "background_tasks_changed", "tasks": []})
        d.wait_state("s", "asleep")

    def test_waking_makes_room(self):
        d, agent = self.start(mode={"user": True}, daemon={"max_children": "1"})
        a = d.attached("one")
        agent.child().mark(a)
        b = d.attached("two")
        agent.child().mark(b)
        d.wait_state("one", "asleep")
        a.send(user("x"))
        a.wait(type="result")
        d.wait_state("two", "asleep")


if __name__ == "__main__":
    unittest.main()
