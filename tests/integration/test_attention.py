# SPDX-License-Identifier: MIT
"""What a person away from the screen is told: turns that end, fail or stall, and the commands run for that (contract
12)."""
import copy
import json
import os
import signal
import subprocess
import threading
import unittest

from harness import RESULT, TIMEOUT, Case, Timeout, alive, allow, build_file, init_line, perm, until, user

CALL = {"type": "assistant", "parent_tool_use_id": None, "message": {"role": "assistant", "content": [
    {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}},
    {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {"command": "sleep 1000"}}]}}


def tool_result(tool):
    return {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": tool,
                                                                     "content": "x"}]}}


class TurnEndedTest(Case):
    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a = self.d.attached()
        self.child = self.agent.child()
        self.turns, self.conversation = 0, "conv-1"

    def ended(self, **result):
        """Run a turn with this result; return its event."""
        self.turns += 1
        uuid = "u%d" % self.turns
        self.a.send(user("hi", uuid=uuid))
        self.child.wait(type="user", uuid=uuid)
        self.child.print(init_line(self.conversation, user_message_uuids=[uuid]),
                         dict(RESULT, user_message_uuids=[uuid], **result))
        return self.a.event("turn_ended", uuids=[uuid])

    def test_outcomes(self):
        for result, outcome in (({}, "success"),
                                ({"is_error": True, "terminal_reason": "api_error"}, "error"),
                                ({"subtype": "error_max_turns", "is_error": True}, "limit"),
                                ({"subtype": "error_during_execution", "is_error": True,
                                  "terminal_reason": "aborted_tools"}, "interrupted")):
            self.assertEqual(self.ended(**result)["outcome"], outcome)

    def test_time_and_tokens(self):
        m = self.ended(duration_ms=1234, usage={"input_tokens": 3, "output_tokens": 40, "cache_read_input_tokens": 500})
        self.assertEqual(m["ms"], 1234)
        self.assertEqual(m["tokens"], {"input": 3, "output": 40, "cache_read": 500, "cache_write": None})
        m = self.ended()
        self.assertIsNone(m["ms"])
        self.assertIsNone(m["cost_usd"])
        self.assertEqual(set(m["tokens"].values()), {None})

    def test_the_cost_is_of_the_turn(self):
        """The child reports the sum of the conversation, also over an upgrade and a sleep."""
        costs = [self.ended(total_cost_usd=c)["cost_usd"] for c in (0.07, 0.1)]
        self.d.call("plenum_upgrade")
        costs += [self.ended(total_cost_usd=c)["cost_usd"] for c in (0.1, 0.600000001)]
        self.sleep()
        costs.append(self.ended(total_cost_usd=0.7)["cost_usd"])
        self.assertEqual(costs, [0.07, 0.03, 0.0, 0.500000001, 0.099999999])

    def sleep(self):
        self.a.request("plenum_hibernate")
        self.a.event("session_state", state="asleep")
        self.a.send(user("wake", uuid="w"))
        self.child = self.agent.child()
        self.child.wait(type="user", uuid="w")
        self.child.print({"type": "command_lifecycle", "command_uuid": "w", "state": "discarded"})

    def test_a_child_that_counts_anew(self):
        """Like an old one after a resume."""
        self.ended(total_cost_usd=0.07)
        self.sleep()
        self.assertEqual(self.ended(total_cost_usd=0.05)["cost_usd"], 0.05)

    def test_the_cost_after_a_resume(self):
        """Of a conversation with a past that this daemon has not seen: the first turn's is unknown."""
        self.ended(total_cost_usd=0.07)
        self.d.kill9()
        self.d.start()
        self.a = self.d.attached("s", wake=True)
        self.child = self.agent.child()
        self.assertEqual([self.ended(total_cost_usd=c)["cost_usd"] for c in (0.5, 0.7)], [None, 0.2])
        for members in ({"resume": "conv-9"}, {"args": ["--continue"]}):
            self.a = self.d.attached(None, **members)
            self.child = self.agent.child()
            self.conversation = str(members)
            self.assertEqual([self.ended(total_cost_usd=c)["cost_usd"] for c in (0.5, 0.7)], [None, 0.2])

    def test_the_status_has_the_sum(self):
        def cost():
            return self.a.request("plenum_status")["cost_usd"]

        self.assertIsNone(cost())
        for total in (0.07, 0.1):
            self.ended(total_cost_usd=total)
            self.assertEqual(cost(), total)
        self.a.request("plenum_hibernate")
        self.a.event("session_state", state="asleep")
        self.assertEqual(cost(), 0.1)

    def test_it_comes_once(self):
        """Not again with the child's idle state, with its end, or from the daemon after an upgrade or its death."""
        self.ended()
        self.child.print({"type": "system", "subtype": "session_state_changed", "state": "idle"})
        self.child.mark(self.a)
        self.d.call("plenum_upgrade")
        self.child.mark(self.a)
        self.child.exit(0)
        self.a.event("child_exited")
        self.a.sync()
        self.assertEqual(len(self.a.events("turn_ended")), 1)

    def test_a_daemon_that_was_killed_ends_no_turn(self):
        self.a.send(user("hi", uuid="u1"))
        self.child.wait(type="user")
        self.child.print(init_line(user_message_uuids=["u1"]))
        self.a.event("turn_started")
        self.d.kill9()
        self.d.start()
        a = self.d.attached("s", replay="all")
        a.sync()
        self.assertNone(a.events("turn_ended"))
        self.assertNone(a.events("failed"))

    def test_a_turn_without_a_result(self):
        self.a.send(user("hi", uuid="u1"))
        self.child.wait(type="user")
        self.child.print(dict(user("hi", uuid="u1"), isReplay=True), init_line(user_message_uuids=["u1"]),
                         {"type": "system", "subtype": "session_state_changed", "state": "idle"})
        m = self.a.event("turn_ended", uuids=["u1"])
        self.assertEqual((m["outcome"], m["is_error"]), ("unknown", True))
        self.assertIsNone(m["ms"])


class FailedTest(Case):
    def began(self, d, agent):
        """A turn runs; return (client, child)."""
        a = d.attached()
        child = agent.child()
        child.prompted(a, "hi", uuid="u1")
        child.print(init_line(user_message_uuids=["u1"]))
        a.event("turn_started")
        return a, child

    def test_a_child_that_dies_in_a_turn(self):
        """Though the session can go on: the turn cannot. It comes once, to subscribers too."""
        d, agent = self.start()
        c = d.client()
        c.request("plenum_subscribe")
        a, child = self.began(d, agent)
        child.stderr(b"out of luck\n")
        child.exit(3)
        for x in (a, c):
            self.assertIn("out of luck", x.event("failed", session="s")["reason"])
            x.event("session_state", session="s", state="asleep")
            x.sync()
            self.assertEqual(len(x.events("failed")), 1)
            self.assertNone(x.events("turn_ended"))

    def test_a_session_that_cannot_start(self):
        d, agent = self.start(profile={"restart": "never"})
        a = d.attached()
        agent.child().exit(7)
        self.assertIn("7", a.event("failed")["reason"])
        a.event("session_state", state="failed")
        self.assertEqual(len(a.events("failed")), 1)

    def test_no_failure(self):
        """A stop, a sleep and an end between two turns, after which the next prompt starts another child."""
        d, agent = self.start()
        a, child = self.began(d, agent)
        a.request("plenum_stop", how="kill")
        a.event("session_state", state="asleep")
        a.send(user("more", uuid="u2"))
        child = agent.child()
        child.wait(type="user")
        child.print(init_line(user_message_uuids=["u2"]), dict(RESULT, user_message_uuids=["u2"]))
        a.event("turn_ended", uuids=["u2"])
        child.exit(1)
        a.event("child_exited", status=1)
        a.event("session_state", state="asleep")
        a.sync()
        self.assertNone(a.events("failed"))

    def test_after_an_upgrade(self):
        """A child that dies while the binary changes, and one that died before: each is reported once."""
        d, agent = self.start()
        a, child = self.began(d, agent)
        d.call("plenum_upgrade")
        child.exit(1)
        a.event("failed")
        d.call("plenum_upgrade")
        a.sync()
        self.assertEqual(len(a.events("failed")), 1)


class StalledTest(Case):
    AFTER = "300ms"

    def begin(self, **options):
        """Return (daemon, client, child) with a turn."""
        self.d, self.agent = self.start(profile={"stall_after": self.AFTER}, **options)
        self.a = self.d.attached()
        self.child = self.agent.child()
        self.prompt("u1")
        return self.d, self.a, self.child

    def prompt(self, uuid):
        self.a.send(user("hi", uuid=uuid))
        self.child.wait(type="user", uuid=uuid)
        self.child.print(init_line(user_message_uuids=[uuid]))

    def clock(self):
        """Let at least stall_after pass for the session: another one stalls, whose turn began later."""
        other = self.d.attached("clock", profile="agent")
        child = self.agent.child()
        for uuid in ("c1", "c2"):
            other.send(user("hi", uuid=uuid))
            child.wait(type="user", uuid=uuid)
            child.print(init_line("clock-conv", user_message_uuids=[uuid]))
            other.event("stalled")
            child.print(dict(RESULT, user_message_uuids=[uuid]))
            other.event("turn_ended", uuids=[uuid])
        other.request("plenum_stop", how="kill", forget=True)
        other.close()

    def story(self, c=None):
        """A slow machine may add a silence before the one that is tested: return all of them, in order."""
        got = [m["event"] for m in (c or self.a).events() if m["event"] in ("stalled", "resumed")]
        self.assertEqual(got, (["stalled", "resumed"] * len(got))[:len(got)])
        return got

    def silent(self, what):
        before = self.story()
        self.clock()
        self.a.sync()
        self.assertEqual(self.story(), before, what)

    def stalls_again(self):
        until(lambda: self.story()[-1:] == ["stalled"], what="a stalled turn")

    def test_a_silent_turn(self):
        d, a, child = self.begin()
        c = d.client()
        c.request("plenum_subscribe")
        child.print(CALL, tool_result("toolu_1"))
        m = a.event("stalled", open_tool="Bash")
        self.assertEqual(m["last"], "user")
        self.assertGreater(m["since"], 1.6e12)
        c.event("stalled", session="s", open_tool="Bash")
        child.print(tool_result("toolu_2"))
        a.event("stalled", open_tool=None, last="user")
        child.print(dict(RESULT, user_message_uuids=["u1"]))
        for x in (a, c):
            x.event("turn_ended")
            self.assertEqual(self.story(x)[-4:], ["stalled", "resumed"] * 2)
        self.assertTrue(alive(child.pid))

    def test_the_tool_on_a_long_tape(self):
        """Its call is a long line, and much was printed after it."""
        d, a, child = self.begin()
        long = copy.deepcopy(CALL)
        long["message"]["content"][1]["input"] = {"content": "x" * 3000000, "more": ["y"] * 100000}
        child.print(long, *({"type": "user", "n": i} for i in range(2000)))
        a.wait(type="user", n=1999)
        a.event("stalled", open_tool="Bash")
        child.print(long, tool_result("toolu_1"), tool_result("toolu_2"))
        a.event("stalled", open_tool=None, last="user")

    def test_a_last_line_without_a_name(self):
        d, a, child = self.begin()
        for kind in ({"no": "name"}, "x" * 1000):
            child.print({"type": kind})
            a.wait(type=kind)
            a.event("stalled", last=None)
            child.print({"type": "x"})
            a.event("resumed")

    def test_a_prompt_without_any_output(self):
        _, _, child, a = self.open(profile={"stall_after": self.AFTER})
        child.prompted(a, "hi", uuid="u1")
        self.assertIsNone(a.event("stalled")["open_tool"])

    def test_once_for_each_silence(self):
        d, a, child = self.begin()
        a.event("turn_started")
        self.stalls_again()
        self.silent("it is known")
        d.call("plenum_upgrade")
        self.silent("it is known since before the upgrade")
        before = len(self.story())
        child.print({"type": "x"})
        until(lambda: len(self.story()) == before + 2, what="the next silence")

    def test_an_upgrade_does_not_lose_it(self):
        d, a, child = self.begin()
        a.event("turn_started")
        d.call("plenum_upgrade")
        self.stalls_again()

    def test_the_answers_to_clients_are_no_output(self):
        """A client that asks the child again and again does not hide that its turn stands still."""
        d, a, child = self.begin()
        child.mode(control=True)
        a.event("turn_started")
        while self.story()[-1:] != ["stalled"]:
            a.answer(a.ask("get_settings"))
        before = self.story()
        a.answer(a.ask("get_settings"))
        a.sync()
        self.assertEqual(self.story(), before)

    def test_an_open_question(self):
        d, a, child = self.begin()
        child.print(perm("k-1"))
        rid = a.wait(type="control_request")["request_id"]
        self.silent("a question is open")
        a.send(allow(rid))
        child.answer("k-1")
        self.stalls_again()

    def test_background_work(self):
        d, a, child = self.begin()
        child.print({"type": "system", "subtype": "background_tasks_changed", "tasks": [{"task_id": "t"}]})
        a.wait(type="system", subtype="background_tasks_changed")
        self.silent("a task runs in the background")
        child.print({"type": "system", "subtype": "background_tasks_changed", "tasks": []})
        self.stalls_again()

    def test_between_two_turns(self):
        d, a, child = self.begin()
        child.print(dict(RESULT, user_message_uuids=["u1"]))
        a.event("turn_ended")
        self.silent("no turn runs")
        self.prompt("u2")
        self.stalls_again()

    def test_a_child_that_ends_is_not_resumed(self):
        d, a, child = self.begin()
        a.event("turn_started")
        self.stalls_again()
        child.kill(signal.SIGKILL)
        a.event("failed")
        a.event("session_state", state="asleep")
        a.sync()
        self.assertEqual(self.story()[-1:], ["stalled"])

    def test_never(self):
        self.d, self.agent, never = self.start(agents=("agent", "never"), profile={"stall_after": self.AFTER})
        head, tail = open(self.d.conf).read().split("[profile never]")
        with open(self.d.conf, "w") as f:
            f.write(head + "[profile never]" + tail.replace(self.AFTER, "never", 1))
        self.d.call("plenum_reload")
        self.a = self.d.attached(profile="never")
        self.child = never.child()
        self.prompt("u1")
        self.silent("stall_after = never")
        self.assertEqual(self.story(), [])


class CommandsTest(Case):
    """on_pending, on_turn_end, on_failed, on_stalled: at most one run for each session and key within notify_interval,
    the newest is not lost."""

    def begin(self, keys, profile=None, **daemon):
        """Each run of a command leaves a file with its environment, in order."""
        self.d, self.agent = self.start(profile=profile)
        self.out = self.d.root + "/runs"
        os.mkdir(self.out)
        script = self.d.root + "/note"
        with open(script, "w") as f:
            f.write("#!/bin/sh\nnew=$(mktemp '%s/.XXXXXX') && env >\"$new\" && mv \"$new\" \"%s/$(date +%%s%%N).$$\"\n"
                    % (self.out, self.out))
        os.chmod(script, 0o755)
        conf = open(self.d.conf).read().replace(
            "[daemon]\n", "[daemon]\n" + "".join("%s = %s\n" % (k, script) for k in keys) +
            "".join("%s = %s\n" % pair for pair in daemon.items()))
        with open(self.d.conf, "w") as f:
            f.write(conf)
        self.d.call("plenum_reload")

    def runs(self):
        got = []
        for name in sorted(n for n in os.listdir(self.out) if not n.startswith(".")):
            with open(os.path.join(self.out, name)) as f:
                env = dict(line.split("=", 1) for line in f.read().splitlines() if "=" in line)
            got.append({k[7:]: v for k, v in env.items() if k.startswith("PLENUM_")})
        return got

    def wait(self, n):
        until(lambda: len(self.runs()) >= n, what="%d runs" % n)
        self.assertEqual(len(self.runs()), n)
        return self.runs()[-1]

    def turn(self, a, child, uuid, **result):
        a.send(user("hi", uuid=uuid))
        child.wait(type="user", uuid=uuid)
        child.print(init_line("conv-" + a.attached["session"], user_message_uuids=[uuid]),
                    dict(RESULT, user_message_uuids=[uuid], **result))
        a.event("turn_ended", uuids=[uuid])

    def test_on_turn_end(self):
        self.begin(["on_turn_end"])
        a = self.d.attached()
        self.turn(a, self.agent.child(), "u1", duration_ms=12345, result="all\x1b[31m done")
        env = self.wait(1)
        self.assertEqual(env["SUMMARY"], "success, 12 s: all\\x1b[31m done")
        del env["SUMMARY"]
        self.assertEqual(env, {"SESSION": "s", "EVENT": "turn_ended", "SOCKET": self.d.socket})

    def test_on_an_interrupted_turn(self):
        """The result of the CLI has diagnostics then, and no answer."""
        self.begin(["on_turn_end"])
        a = self.d.attached()
        self.turn(a, self.agent.child(), "u1", duration_ms=2000, subtype="error_during_execution", is_error=True,
                  terminal_reason="aborted_streaming", result="[ede_diagnostic] result_type=user")
        self.assertEqual(self.wait(1)["SUMMARY"], "interrupted, 2 s")

    def test_a_summary_ends_with_a_whole_character(self):
        self.begin(["on_turn_end"])
        a = self.d.attached()
        self.turn(a, self.agent.child(), "u1", result="a" + "\u00e9" * 300)
        self.assertEqual(self.wait(1)["SUMMARY"], "success: a" + "\u00e9" * 99)

    def test_on_failed(self):
        self.begin(["on_failed", "on_turn_end"], profile={"restart": "never"})
        self.d.attached()
        child = self.agent.child()
        child.stderr(b"out of luck\n")
        child.exit(3)
        env = self.wait(1)
        self.assertEqual((env["SESSION"], env["EVENT"]), ("s", "failed"))
        self.assertIn("out of luck", env["SUMMARY"])
        self.assertNotIn("TOOL", env)

    def test_on_stalled(self):
        self.begin(["on_stalled"], profile={"stall_after": "200ms"}, notify_interval="10ms")
        a = self.d.attached()
        child = self.agent.child()
        child.prompted(a, "hi")
        child.print(init_line(), CALL)
        until(lambda: "TOOL" in (self.runs() or [{}])[-1], what="a run that names the tool")
        env = self.runs()[-1]
        self.assertEqual((env["SESSION"], env["EVENT"], env["TOOL"]), ("s", "stalled", "Bash"))
        self.assertIn("no output for", env["SUMMARY"])

    def test_on_pending_is_for_questions_without_an_approver(self):
        self.begin(["on_pending"])
        a = self.d.attached()
        child = self.agent.child()
        child.print(perm("k-1", "first"))
        rid = a.wait(type="control_request")["request_id"]
        self.d.attached("t", role="observer")
        self.agent.child().print(perm("k-1", "second"))
        env = self.wait(1)
        self.assertEqual((env["SESSION"], env["EVENT"], env["TOOL"]), ("t", "attention", "Bash"))
        self.assertIn("second", env["SUMMARY"])
        a.close()
        env = self.wait(2)
        self.assertEqual((env["SESSION"], env["REQUEST"]), ("s", rid))

    def test_a_wait_for_a_place_is_logged_once(self):
        """Eight commands run at once. A session with many questions waits for one place."""
        self.begin([], on_pending="/bin/sleep 120")
        for i in range(8):
            self.d.attached("s%d" % i, role="observer")
            self.agent.child().print(perm("k-1"))
        until(lambda: len(self.d.call("plenum_pending")["pending"]) == 8, what="eight questions")
        self.d.attached("late", role="observer")
        child = self.agent.child()
        child.print(*[perm("k-%d" % i) for i in range(50)])
        until(lambda: len(self.d.call("plenum_pending", session="late")["pending"]) == 50, what="the questions")
        self.assertEqual(self.d.log().count("session late: waiting for a place"), 1)

    def test_the_newest_is_not_lost(self):
        """Of many within notify_interval the first and the last one, also over an upgrade."""
        self.begin(["on_turn_end"], notify_interval="1s")
        a = self.d.attached()
        child = self.agent.child()
        for i in range(5):
            self.turn(a, child, "u%d" % i, result="turn %d" % i)
        self.d.call("plenum_upgrade")
        until(lambda: {"success: turn 0", "success: turn 4"} <= {r["SUMMARY"] for r in self.runs()}, what="both runs")

    def test_sessions_and_keys_do_not_wait_for_each_other(self):
        self.begin(["on_turn_end", "on_failed"], notify_interval="1h", profile={"restart": "never"})
        for name in ("s", "t"):
            a = self.d.attached(name)
            child = self.agent.child()
            for uuid in ("u1", "u2", "u3"):
                self.turn(a, child, uuid)
            child.exit(1)
        until(lambda: len(self.runs()) == 4, what="four runs")
        self.assertEqual(sorted((r["SESSION"], r["EVENT"]) for r in self.runs()),
                         [("s", "failed"), ("s", "turn_ended"), ("t", "failed"), ("t", "turn_ended")])

    def test_a_session_that_is_gone(self):
        """Its last turn is reported nevertheless."""
        self.begin(["on_turn_end"], notify_interval="1s")
        a = self.d.attached()
        child = self.agent.child()
        for i in range(2):
            self.turn(a, child, "u%d" % i, result="turn %d" % i)
        a.request("plenum_stop", how="kill", forget=True)
        self.wait(2)
        self.assertIn("success: turn 1", [r["SUMMARY"] for r in self.runs()])


class Desktop:
    """A session bus with a notification service (notifications.py)."""

    def __init__(self):
        service = os.path.join(os.path.dirname(os.path.abspath(__file__)), "notifications.py")
        self.process = subprocess.Popen(["dbus-run-session", "--", "/usr/bin/python3", "-I", service],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, bufsize=1)
        self.shown, self.cond = [], threading.Condition()
        self.bus = json.loads(self.process.stdout.readline())["bus"]
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            with self.cond:
                self.shown.append(json.loads(line))
                self.cond.notify_all()

    def wait(self, n):
        """Return the n-th notification, from 1."""
        with self.cond:
            if not self.cond.wait_for(lambda: len(self.shown) >= n, TIMEOUT):
                raise Timeout("%d notifications; shown are %r" % (n, self.shown))
            return self.shown[n - 1]

    def press(self, shown, key):
        self.process.stdin.write("%d %s\n" % (shown["id"], key))

    def close(self):
        self.process.stdin.close()
        self.process.wait(TIMEOUT)
        self.thread.join()
        self.process.stdout.close()


class DesktopTest(Case):
    """The notification of plenum-notify, with its buttons."""

    def setUp(self):
        super().setUp()
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)
        script = build_file("plenum-notify")
        path = os.path.dirname(build_file("plenumctl")) + ":" + os.environ["PATH"]
        keys = ("on_pending", "on_turn_end", "on_failed", "on_stalled")
        self.d, self.agent = self.start(daemon=dict({k: script for k in keys}, notify_interval="10ms"),
                                        profile={"stall_after": "300ms", "restart": "never"},
                                        env={"DBUS_SESSION_BUS_ADDRESS": self.desktop.bus, "PATH": path})
        self.a = self.d.attached(approve=False)
        self.child = self.agent.child()

    def asked(self, cmd, tool="Bash"):
        number = len(self.desktop.shown) + 1
        self.child.print(perm("k-%d" % number, cmd, tool=tool))
        return self.desktop.wait(number)

    def test_the_buttons(self):
        for n, key in enumerate(("allow", "deny")):
            shown = self.asked("touch it")
            self.assertEqual((shown["title"], shown["body"]), ("Plenum: s asks", "Bash: touch it"))
            self.assertEqual((shown["actions"], shown["labels"]), (["allow", "deny"], ["Allow", "Deny"]))
            self.desktop.press(shown, key)
            self.assertEqual(self.child.answer("k-%d" % (n + 1))["response.response.behavior"], key)

    def test_a_session_with_the_name_of_an_option(self):
        self.d.attached("--all", approve=False)
        child = self.agent.child()
        child.print(perm("k-1"))
        self.desktop.press(self.desktop.wait(1), "allow")
        self.assertEqual(child.answer("k-1")["response.response.behavior"], "allow")

    def test_what_is_not_all_shown_cannot_be_allowed(self):
        shown = self.asked("true " + "x" * 300 + "; touch it")
        self.assertRegex(shown["body"], "x…$")
        self.assertEqual(shown["actions"], ["deny"])
        self.desktop.press(shown, "deny")
        self.assertEqual(self.child.answer("k-1")["response.response.behavior"], "deny")

    def test_what_is_not_shown_cannot_be_allowed(self):
        """A request without a subject; of one without a telling member, the subject is the input."""
        self.child.print(perm("k-0", tool="mcp__a__b", input={"x": 1}))
        shown = self.desktop.wait(1)
        self.assertEqual((shown["body"], shown["actions"]), ('mcp__a__b: {"x":1}', ["allow", "deny"]))
        self.desktop.press(shown, "allow")
        self.child.answer("k-0")
        self.child.print(perm("k-1", tool="mcp__a__b", input={}))
        shown = self.desktop.wait(2)
        self.assertEqual((shown["body"], shown["actions"]), ("mcp__a__b: ", ["deny"]))
        self.desktop.press(shown, "deny")
        self.assertEqual(self.child.answer("k-1")["response.response.behavior"], "deny")

    def test_text_of_the_agent_is_no_markup(self):
        shown = self.asked('<a href="x">&amp;</a> \\n -- --action=x $HOME `id` %s')
        self.assertEqual(shown["body"], 'Bash: &lt;a href="x"&gt;&amp;amp;&lt;/a&gt; \\n -- --action=x $HOME `id` %s')
        self.desktop.press(shown, "deny")
        self.child.answer("k-1")

    def test_a_late_press(self):
        shown = self.asked("touch it")
        b = self.d.attached()
        b.send(allow(b.wait(type="control_request")["request_id"], "touch it"))
        self.child.answer("k-1")
        b.event("settled")
        self.desktop.press(shown, "deny")
        late = self.desktop.wait(2)
        self.assertEqual((late["title"], late["body"]), ("Plenum: s: not counted", "already answered"))
        self.assertEqual(late["actions"], [])

    def test_what_buttons_cannot_answer(self):
        shown = self.asked("which one?", tool="AskUserQuestion")
        self.assertEqual(shown["actions"], [])
        self.assertIn("AskUserQuestion", shown["body"])

    def test_other_events(self):
        self.a.send(user("hi", uuid="u1"))
        self.child.wait(type="user")
        self.child.print(init_line(user_message_uuids=["u1"]), CALL)
        until(lambda: [s for s in self.desktop.shown if s["title"] == "Plenum: s stalls" and "Bash: no output" in s["body"]],
              what="the stalled turn")
        self.child.print(dict(RESULT, user_message_uuids=["u1"], result="<b>done</b>"))
        until(lambda: ("Plenum: s", "success: &lt;b&gt;done&lt;/b&gt;") in [(s["title"], s["body"]) for s in self.desktop.shown],
              what="the end of the turn")
        self.child.stderr(b"out of luck\n")
        self.child.exit(1)
        until(lambda: [s for s in self.desktop.shown if s["title"] == "Plenum: s failed" and s["urgency"] == 2 and
                       "out of luck" in s["body"]], what="the failure")


if __name__ == "__main__":
    unittest.main()
