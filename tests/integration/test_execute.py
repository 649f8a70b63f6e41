# SPDX-License-Identifier: MIT
"""Lines of clients that run a tool without the model are judged as tool calls (contract 14)."""
import unittest

from harness import Case, RESULT, allow, cancel, deny, hook, init, ok, request, until

GUARD = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h"]}]}
TOOL = "mcp__files__write"
CHECKS = {"capabilities": ["mcp_call_check_permissions_v1"], "hooks_applied": True}


def bash_line(command, **members):
    return dict({"type": "bash_command", "command": command}, **members)


def call(rid, tool=TOOL, arguments=None, **members):
    return request(rid, "mcp_call", tool=tool, arguments={"path": "x"} if arguments is None else arguments, **members)


class Execute(Case):
    def begin(self, **options):
        self.d, self.agent = self.start(**options)
        self.person = self.d.attached(name="person")
        self.child = self.agent.child()
        self.driver = self.d.attached(name="driver", approve=False)

    def ran(self, **want):
        """Return the commands and calls sent to the child."""
        self.driver.sync()
        self.child.mark(self.person)
        return self.child.seen(lambda m: m["type"] == "bash_command" or m["request.subtype"] == "mcp_call")

    def asked(self, client=None, **want):
        return (client or self.person).wait(type="control_request", request__subtype="can_use_tool", **want)

    def decisions(self):
        return [line for line in self.d.log().splitlines() if "event=decision" in line or '"decision"' in line]

    def refused(self, rid=None, **want):
        return self.refusal(self.driver, rid, codes=("not_allowed",), **want)


class ApproverTest(Execute):
    def test_its_own_command_runs_at_once(self):
        self.begin()
        self.person.send(bash_line("ls", uuid="u-1", cwd="/tmp"))
        got = self.child.wait(type="bash_command")
        self.assertEqual(got.obj, {"type": "bash_command", "command": "ls", "cwd": "/tmp", "uuid": "u-1"})
        self.person.event("settled", decision="allow", tool_name="Bash", by__name="person")
        self.assertNone(self.person.seen(type="control_request"))
        until(lambda: "Bash allow" in self.d.log(), what="a decision line")

    def test_its_own_call_runs_at_once(self):
        self.begin()
        self.person.send(call("1", soft_error_result=True))
        got = self.child.request("mcp_call")
        self.assertEqual(got["request"], {"subtype": "mcp_call", "tool": TOOL, "arguments": {"path": "x"},
                                          "soft_error_result": True})
        self.child.print(ok(got["request_id"], {"content": "done"}))
        self.assertEqual(self.person.answer("1")["response.response.content"], "done")

    def test_an_approver_of_other_tools_is_none_of_this(self):
        self.begin()
        other = self.d.attached(name="other", approve={"tools": ["Read"]})
        other.send(bash_line("ls"))
        self.asked(request__input__command="ls")
        self.assertNone(self.ran())

    def test_a_call_that_is_another_s_is_asked(self):
        """check_permissions: an older CLI would ignore it and run the tool."""
        self.begin()
        self.person.send(call("1", check_permissions=True))
        m = self.asked(request__tool_name=TOOL)
        self.assertNone(self.ran())
        self.person.send(ok(m["request_id"], {"behavior": "allow"}))
        self.child.request("mcp_call")


class AskTest(Execute):
    def test_allowed(self):
        self.begin()
        self.driver.send(bash_line("make all", uuid="u-1"))
        m = self.asked(request__tool_name="Bash", request__input={"command": "make all"})
        self.assertIn("driver", m["request.description"])
        self.assertEqual(m["request.plenum_by.name"], "driver")
        pending = self.d.call("plenum_pending", session="s")["pending"]
        self.assertEqual([(p["request_id"], p["tool_name"]) for p in pending], [(m["request_id"], "Bash")])
        self.assertNone(self.ran(), "ran while its permission question was open")
        self.person.send(allow(m["request_id"], "make all"))
        self.assertEqual(self.child.wait(type="bash_command").obj,
                         {"type": "bash_command", "command": "make all", "uuid": "u-1"})
        self.driver.event("settled", decision="allow", by__name="person")
        self.assertNone(self.child.seen(type="control_response"), "the child has asked nothing")

    def test_denied(self):
        self.begin()
        self.driver.send(bash_line("make", uuid="u-1"))
        self.person.send(deny(self.asked()["request_id"], "not today"))
        got = self.refused(uuid="u-1")
        self.assertIn("not today", got["error"])
        self.assertNone(self.ran())
        self.assertNone(self.child.seen(type="control_response"))

    def test_a_call(self):
        self.begin()
        self.driver.send(call("1"), call("2"), call("1"))
        self.refusal(self.driver, "1", codes=("duplicate_request",))
        one, two = self.asked(), self.asked()
        self.person.send(deny(one["request_id"]), ok(two["request_id"], {"behavior": "allow"}))
        self.refused("1")
        got = self.child.request("mcp_call")
        self.child.print(ok(got["request_id"], {"content": "two"}))
        self.assertEqual(self.driver.answer("2")["response.response.content"], "two")
        self.assertEqual(len(self.ran()), 1)

    def test_a_changed_input_is_what_runs(self):
        self.begin()
        self.driver.send(bash_line("rm -r /", cwd="/tmp"), call("1"))
        self.person.send(ok(self.asked(request__tool_name="Bash")["request_id"],
                            {"behavior": "allow", "updatedInput": {"command": "ls /"}}))
        self.assertEqual(self.child.wait(type="bash_command").obj, {"type": "bash_command", "command": "ls /"})
        self.person.send(ok(self.asked(request__tool_name=TOOL)["request_id"],
                            {"behavior": "allow", "updatedInput": {"path": "y"}}))
        self.assertEqual(self.child.request("mcp_call")["request.arguments"], {"path": "y"})

    def test_a_changed_input_that_is_none(self):
        self.begin()
        self.driver.send(bash_line("ls"))
        self.person.send(ok(self.asked()["request_id"], {"behavior": "allow", "updatedInput": {"commands": "ls"}}))
        self.refusal(self.driver, codes=("bad_answer",))
        self.assertNone(self.ran())

    def test_what_was_judged_is_what_runs(self):
        """The CLI takes the last of two members of one name, and a key in any spelling."""
        self.begin()
        self.driver.send(b'{"type":"bash_command","command":"evil","command":"good"}')
        m = self.asked(request__input__command="good")
        self.person.send(ok(m["request_id"], {"behavior": "allow"}))
        self.assertEqual(self.child.wait(type="bash_command").raw.strip(), b'{"type":"bash_command","command":"good"}')
        self.driver.send(b'{"type":"bash_command","command":"good","comm\\u0061nd":"evil"}',
                         b'{"type":"control_request","request_id":"1","request":{"subtype":"mcp_call","tool":"mcp__a__b","too\\u006c":"x"}}')
        self.refusal(self.driver)
        self.refusal(self.driver, "1")
        self.assertEqual(len(self.ran()), 1)

    def test_a_spelling_of_the_tool_past_its_rules(self):
        self.begin()
        for tool in ("mcp__files__wri.te", "mcp__fi les__write", "Bash", "mcp__files", ""):
            self.driver.send(call("1", tool=tool))
            self.refusal(self.driver, "1", codes=("bad_request",))
        self.assertNone(self.ran())

    def test_the_first_answer_counts(self):
        self.begin()
        second = self.d.attached(name="second")
        self.driver.send(bash_line("ls"))
        a, b = self.asked(), self.asked(second)
        second.send(deny(b["request_id"]))
        self.refused()
        self.person.wait(type="control_cancel_request", request_id=a["request_id"])
        self.person.send(allow(a["request_id"], "ls"))
        self.person.error("already_settled")
        self.assertNone(self.ran())

    def test_an_observer_that_approves_is_asked_and_the_sender_is_not(self):
        self.begin()
        watch = self.d.attached(role="observer", approve=True)
        self.driver.send(bash_line("ls"))
        self.asked(watch)
        self.assertNone(self.driver.seen(type="control_request"))

    def test_its_sender_answers_nothing(self):
        self.begin()
        self.driver.send(bash_line("ls"))
        m = self.asked()
        self.driver.send(allow(m["request_id"], "ls"))
        self.driver.error("unknown_request")
        self.assertNone(self.ran())

    def test_the_sender_leaves(self):
        self.begin()
        for leave in (lambda c: c.close(), lambda c: c.request("plenum_detach")):
            c = self.d.attached(name="leaver", approve=False)
            c.send(call("1"))
            m = self.asked()
            leave(c)
            self.person.wait(type="control_cancel_request", request_id=m["request_id"])
            self.person.send(ok(m["request_id"], {"behavior": "allow"}))
            self.person.error("already_settled")
        c.answer("1")
        self.assertNone(self.ran())

    def test_the_sender_withdraws_it(self):
        self.begin()
        self.driver.send(call("1"))
        m = self.asked()
        self.driver.send(cancel("1"))
        self.refused("1")
        self.person.wait(type="control_cancel_request", request_id=m["request_id"])
        self.assertNone(self.ran())

    def test_a_sender_without_more_input_waits_for_the_answer(self):
        self.begin()
        self.driver.send(call("1"))
        m = self.asked()
        self.driver.half_close()
        self.child.mark(self.person)
        self.person.send(deny(m["request_id"]))
        self.refused("1")
        self.driver.wait_eof()

    def test_the_child_ends(self):
        self.begin()
        self.driver.send(call("1"), bash_line("ls"))
        one, two = self.asked(), self.asked()
        self.child.exit(1)
        self.refusal(self.driver, "1", codes=("child_exited",))
        self.refusal(self.driver, codes=("child_exited",))
        for m in (one, two):
            self.person.wait(type="control_cancel_request", request_id=m["request_id"])

    def test_no_approver_within_the_time(self):
        self.begin(profile={"permission_wait": "200ms"})
        self.person.close()
        self.driver.event("detached")
        self.driver.send(bash_line("ls"))
        self.refused()

    def test_no_child(self):
        self.begin()
        self.person.request("plenum_stop")
        self.d.wait_state("s", "asleep")
        self.driver.send(bash_line("ls"), call("1"))
        self.refusal(self.driver, codes=("child_exited",))
        self.refusal(self.driver, "1", codes=("child_exited",))

    def test_an_upgrade_keeps_the_question(self):
        self.begin()
        self.driver.send(call("1"))
        m = self.asked()
        self.person.request("plenum_upgrade")
        self.assertNone(self.ran())
        self.person.send(ok(m["request_id"], {"behavior": "allow"}))
        got = self.child.request("mcp_call")
        self.child.print(ok(got["request_id"], {"content": "done"}))
        self.assertEqual(self.driver.answer("1")["response.response.content"], "done")

    def test_another_user(self):
        """A driver of another uid, excluded by approve_uids."""
        self.begin(daemon={"allow_uids": "0 12345", "approve_uids": "0"})
        self.d.open_to_all()
        c = self.d.client(uid=12345, gid=12345)
        c.attach("s")
        c.send(bash_line("id"))
        self.person.send(deny(self.asked()["request_id"]))
        self.refusal(c, codes=("not_allowed",))
        c.send(bash_line("id", sandbox=False), call("1", input_files=[{"name": "a"}]))
        self.assertIn("sandbox", self.refusal(c, codes=("not_allowed",))["error"])
        self.assertIn("input_files", self.refusal(c, "1", codes=("not_allowed",))["error"])
        self.assertNone(self.ran())


class RuleTest(Execute):
    def test_a_deny_rule(self):
        self.begin(profile={"deny_tools": "Bash(rm:*) mcp__files"})
        for c in (self.person, self.driver):
            c.send(bash_line("cd / && rm -r x"), call("1"))
            got = self.refusal(c, codes=("not_allowed",))
            self.assertIn("Bash(rm:*)", got["error"])
            got = self.refusal(c, "1", codes=("not_allowed",))
            self.assertIn("mcp__files", got["error"])
        until(lambda: self.d.log().count("Bash deny") == 2, what="two decision lines")
        self.assertNone(self.person.seen(type="control_request"))
        self.assertNone(self.ran())

    def test_an_allow_rule(self):
        self.begin(profile={"allow_tools": "Bash(ls)"})
        self.driver.send(bash_line("ls"))
        self.child.wait(type="bash_command", command="ls")
        until(lambda: "Bash allow" in self.d.log(), what="a decision line")
        self.driver.send(bash_line("ls && id"))
        self.asked(request__input__command="ls && id")
        self.assertEqual(len(self.ran()), 1)

    def test_an_ask_rule(self):
        self.begin(profile={"allow_tools": "Bash", "ask_tools": "Bash(git push:*)"})
        self.driver.send(bash_line("git push"))
        self.asked()
        self.assertNone(self.ran())
        self.person.send(bash_line("git push"))
        self.child.wait(type="bash_command")

    def test_an_answer_cannot_change_it_into_what_is_denied(self):
        self.begin(profile={"deny_tools": "Bash(rm:*)"})
        self.driver.send(bash_line("ls"))
        self.person.send(allow(self.asked()["request_id"], "rm x"))
        self.assertIn("Bash(rm:*)", self.refused()["error"])
        self.assertNone(self.ran())


class GuardTest(Execute):
    def guard(self, hooks=GUARD, **members):
        c = self.d.attached(name="guard")
        c.initialize(hooks)
        return c

    def test_a_command_that_is_guarded(self):
        self.begin(profile={"allow_tools": "Bash"})
        guard = self.guard()
        for c in (self.person, self.driver):
            c.send(bash_line("ls"))
            self.assertIn("guard", self.refusal(c, codes=("not_allowed",))["error"])
        until(lambda: self.d.log().count("Bash deny") == 2, what="two decision lines")
        guard.request("initialize", hooks={})
        self.driver.send(bash_line("ls"))
        self.child.wait(type="bash_command")

    def test_its_owner_is_away(self):
        self.begin(profile={"owner_grace": "100ms"})
        self.guard().close()
        self.person.event("owner_gone")
        self.person.send(bash_line("ls"))
        self.refusal(self.person, codes=("not_allowed",))
        self.assertNone(self.ran())

    def test_matchers(self):
        covers = [None, "", "*", "Bash", "Edit|Bash", "Edit, Bash", "^Ba", "B.*", "["]
        others = ["Edit", "bash", "Ba", "mcp__files__write"]
        self.begin()
        for event in ("PreToolUse", "PermissionRequest"):
            for matcher in covers + others:
                entry = {"hookCallbackIds": ["h"]} if matcher is None else {"matcher": matcher, "hookCallbackIds": ["h"]}
                self.person.initialize({event: [entry]})
                self.person.send(bash_line("ls"))
                if matcher in covers:
                    self.refusal(self.person, codes=("not_allowed",))
                else:
                    self.child.wait(type="bash_command")

    def test_hooks_that_guard_nothing_of_this(self):
        self.begin()
        self.guard({"PostToolUse": [{"hookCallbackIds": ["h"]}], "Stop": [{"hookCallbackIds": ["i"], "onFailure": "block"}]})
        self.person.send(bash_line("ls"))
        self.child.wait(type="bash_command")

    def test_a_guard_that_comes_while_it_is_asked(self):
        self.begin()
        self.driver.send(bash_line("ls"))
        m = self.asked()
        self.guard()
        self.person.send(allow(m["request_id"], "ls"))
        self.refused()
        self.assertNone(self.ran())

    def call_is_guarded(self, hooks, **members):
        self.guard(hooks)
        for c in (self.person, self.driver):
            c.send(call("1"))
            self.refusal(c, "1", codes=("not_allowed",))
        self.assertNone(self.ran())

    def test_a_call_of_a_child_that_cannot_ask(self):
        self.begin()
        self.call_is_guarded({"PreToolUse": [{"matcher": "mcp__.*", "hookCallbackIds": ["h"]}]})


class CheckedTest(Execute):
    """A child that itself asks its guards and approvers about an mcp_call."""

    def begin(self, **options):
        super().begin(mode={"init": "manual"}, **options)
        self.person.ask("initialize", hooks={"PreToolUse": [{"matcher": TOOL, "hookCallbackIds": ["h"]}]})
        m = self.child.request("initialize")
        self.child.print(ok(m["request_id"], CHECKS))
        self.person.wait(type="control_response")

    def test_guarded(self):
        self.begin()
        self.person.send(call("1", check_permissions=False))
        self.assertIs(self.child.request("mcp_call")["request.check_permissions"], True)
        self.person.event("settled", decision="passed")

    def test_of_no_approver(self):
        self.begin()
        self.driver.send(call("1", tool="mcp__files__read"))
        self.assertIs(self.child.request("mcp_call")["request.check_permissions"], True)
        until(lambda: "mcp__files__read passed" in self.d.log(), what="a decision line")

    def test_the_next_child_cannot(self):
        """The previous child's answer does not count: it may have been another version."""
        self.begin()
        self.child.exit(0)
        self.person.event("child_exited")
        self.d.attached(wake=True)
        self.child = self.agent.child()
        m = self.child.request("initialize")
        self.person.send(call("1"))
        self.refusal(self.person, "1", codes=("not_allowed",))
        self.child.print(ok(m["request_id"], {"hooks_applied": True}))
        self.person.event("session_state", state="idle")
        self.person.send(call("2"))
        self.refusal(self.person, "2", codes=("not_allowed",))
        self.assertNone(self.ran())

    def test_a_deny_rule_all_the_same(self):
        self.begin(profile={"deny_tools": TOOL})
        self.person.send(call("1"))
        self.refusal(self.person, "1", codes=("not_allowed",))
        self.assertNone(self.ran())

    def test_a_command_cannot_be_asked_about(self):
        self.begin()
        self.driver.send(bash_line("ls"))
        self.asked(request__tool_name="Bash")
        self.assertNone(self.ran())


class UnderWayTest(Execute):
    """A call judged before a guard applies does not run after it."""

    def test_a_child_in_doubt_about_its_conversation(self):
        self.d, agent = self.start(mode={"init": "manual"})
        p = self.d.client()
        p.attach("s", args=["--continue"])
        agent.child()
        p.send(bash_line("ls", uuid="u"))
        self.assertEqual(p.error("busy")["uuid"], "u")

    def test_a_guard_that_the_child_has_not_taken(self):
        self.d, agent = self.start(mode={"init": "manual"})
        p = self.d.attached(name="p")
        child = agent.child()
        p.ask("initialize", hooks={"PreToolUse": [{"matcher": "Read", "hookCallbackIds": ["h"]}]})
        first = child.request("initialize")
        child.reply(first, CHECKS)
        p.wait(type="control_response")
        child.print(hook("k-1", first["request.hooks.PreToolUse"][0]["hookCallbackIds"][0]))
        p.wait(type="control_request", request__subtype="hook_callback")
        g = self.d.attached(name="g")
        g.send(init("i", {"PreToolUse": [{"matcher": TOOL, "hookCallbackIds": ["h"]}]}))
        self.assertEqual(g.answer("i")["response.response.plenum.hooks_applied"], False)
        driver = self.d.attached(name="driver", approve=False)
        driver.send(call("1"))
        self.assertEqual(driver.answer("1")["response.code"], "not_allowed")
        self.assertNone(child.seen(request__subtype="mcp_call"))

    def test_the_end_of_an_interrupted_turn_withdraws_nothing_of_this(self):
        self.begin()
        self.driver.send(bash_line("ls", uuid="u"))
        rid = self.asked()["request_id"]
        self.child.print(dict(RESULT, subtype="error_during_execution", is_error=True))
        self.child.mark(self.person)
        self.person.send(allow(rid, "ls"))
        self.child.wait(type="bash_command")


if __name__ == "__main__":
    unittest.main()
