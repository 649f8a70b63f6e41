# SPDX-License-Identifier: MIT
"""The life of a session and of its child (contract 8; cases C14 C28 C32 C35 C56 C57 C69 C72 C74 C78)."""
import os
import signal
import stat
import subprocess
import time
import unittest

from harness import (QUICK, RESULT, SLEEPER, Case, Timeout, allow, children_of, dump, init, init_line, ok, perm, request,
                     until, user)
from standstill import connected, standstill



class StateTest(Case):
    def test_a_turn(self):
        d, _, child, a = self.open()
        a.send(user("x", uuid="u"))
        m = a.event("session_state", state="busy")
        self.assertEqual(m["session"], "s")
        child.wait(type="user")
        child.print(init_line(), dict(RESULT, user_message_uuids=["u"]))
        d.wait_state("s", "idle")

    def test_created_and_removed(self):
        d, agent = self.start()
        w = d.client()
        w.request("plenum_subscribe")
        d.attached("s")
        m = w.event("session_created", session="s")
        self.assertEqual(m["profile"], "agent")
        d.call("plenum_stop", session="s", how="kill", forget=True)
        w.event("child_exited", session="s")
        w.event("session_removed", session="s")
        self.assertEqual(d.sessions(), {})

    def test_init_on_every_turn(self):
        """C74."""
        d, _, child, a = self.open()
        child.print(init_line(), {"type": "x", "n": 1}, RESULT)
        a.wait(type="result")
        child.prompted(a, "two", uuid="u")
        child.print(perm("k-1"), init_line(), dict(RESULT, user_message_uuids=["u"]))
        rid = a.wait(type="control_request")["request_id"]
        a.wait(type="result")
        self.assertEqual(list(d.sessions()), ["s"])
        b = d.attached(replay="all")
        b.wait(type="x")
        self.assertEqual(len(b.attached["pending"]), 1)
        a.send(allow(rid))
        child.answer("k-1")

    def test_odd_results(self):
        """C35."""
        d, _, child, a, b = self.open(2)
        child.prompted(a, "one", uuid="ua")
        child.print({"type": "assistant", "message": {}})
        child.prompted(b, "two", uuid="ub")
        old = {"type": "result", "subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_streaming",
               "user_message_uuids": ["ua"]}
        child.print(old)
        self.assertEqual(a.wait(type="result").obj, old)
        child.mark(a)
        self.assertEqual(d.state_of("s"), "busy")
        child.print(dict(RESULT, user_message_uuids=["ub"]))
        b.wait(type="result", subtype="success")
        d.wait_state("s", "idle")

    def test_turns_that_nobody_asked_for(self):
        d, _, child, a = self.open()
        child.print(init_line(), {"type": "assistant", "message": {}})
        d.wait_state("s", "busy")
        child.print(dict(RESULT, origin={"kind": "task-notification"}))
        d.wait_state("s", "idle")

    def test_a_silent_child(self):
        """C69: its state is visible, nothing is killed, stop and start work."""
        d, agent, child, a = self.open(mode={"session_id": "conv-1"})
        child.prompted(a, "x", uuid="u")
        child.print(init_line(), {"type": "assistant", "message": {}})
        a.wait(type="assistant")
        status = d.call("plenum_status", session="s")
        self.assertEqual(status["state"], "busy")
        child.order("sleep", seconds=0)
        a.request("plenum_stop", how="graceful")
        self.assertIs(a.event("child_exited")["wanted"], True)
        a.send(user("again", uuid="u2"))
        agent.child().wait(type="user", uuid="u2")

    def test_previous_is_the_state_before(self):
        d, _ = self.start(mode={"user": True})
        a = d.client()
        state = a.attach("work")["state"]
        for how in ("at once", "idle", "asleep"):
            if how == "asleep":
                a.request("plenum_hibernate")
                a.event("session_state", state="asleep")
            a.send(user("one"), user("two"))
            for _ in range(2):
                a.event("turn_ended")
            a.event("session_state", state="idle")
        states = a.events("session_state")
        self.assertEqual(states[0]["previous"], state)
        for before, after in zip(states, states[1:]):
            self.assertEqual(after["previous"], before["state"], states)

    def test_quick_turn_is_busy_and_idle_again(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.client()
        a.attach("work")
        child = agent.child()
        for uuid in ("u-1", "u-2"):
            a.send(user("hi", uuid=uuid))
            if uuid == "u-1":  # the answer to initialize and the whole turn in one write
                asked = child.request("initialize")
            child.wait(type="user", uuid=uuid)
            before = [ok(asked["request_id"], {})] if uuid == "u-1" else []
            child.print(*before, {"type": "system", "subtype": "init", "session_id": "c", "user_message_uuids": [uuid]},
                        dict(RESULT, user_message_uuids=[uuid]))
            a.event("session_state", state="busy")
            a.event("turn_started", uuids=[uuid])
            a.event("turn_ended", uuids=[uuid])
            a.event("session_state", state="idle")

    def test_prompt_makes_an_idle_session_busy(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.client()
        a.attach("work")
        a.event("session_state", state="idle")
        a.send(user("hi"))
        a.event("session_state", state="busy", previous="idle")
        self.assertEqual([m["state"] for m in a.events("session_state")], ["idle", "busy"])
        child = agent.child()
        child.reply(child.request("initialize"))
        child.wait(type="user")
        self.assertEqual(d.state_of("work"), "busy")

    def test_60_sessions(self):
        d, agent = self.start(profiles={"profile idle": {"command": "sleep 1000"}})
        clients = [d.attached("s%d" % i, profile="idle") for i in range(60)]
        self.assertEqual(len(d.sessions()), 60)
        for c in clients:
            c.close()
        self.assertEqual(len(d.sessions()), 60)


class StreamsTest(Case):
    def kinds(self, **options):
        d, agent = self.start(**options)
        d.attached()
        pid = agent.child().pid
        return [stat.S_IFMT(os.stat("/proc/%d/fd/%d" % (pid, fd)).st_mode) for fd in range(3)]

    def test_three_sockets(self):
        self.assertEqual(self.kinds(), [stat.S_IFSOCK] * 3)

    def test_stdout_pipe(self):
        self.assertEqual(self.kinds(profile={"stdout": "pipe"}), [stat.S_IFSOCK, stat.S_IFIFO, stat.S_IFSOCK])

    def test_grandchild_that_never_stops_printing(self):
        d, _, child, a = self.open()
        child.spawn(["/usr/bin/yes", "x" * 3000], setsid=True, keep_stdout=True)
        child.exit(3)
        a.event("child_exited", status=3)
        d.call("plenum_hello")
        d.call("plenum_stop", session="s", how="kill", forget=True)

    def test_child_that_closes_its_input_while_reading(self):
        _, _, child, a = self.open(profile=QUICK)
        child.order("close_stdin")
        a.send(user("x", uuid="u"))  # its last read line: it waits for further input

        def told():
            a.send({"type": "keep_alive"})
            return a.events("error", uuid="u")

        self.assertEqual(until(told, every=0.05)[0]["code"], "child_exited")


class ExitTest(Case):
    def test_everybody_who_waits_is_told(self):
        """C14."""
        d, _, child, a, b = self.open(2, mode={"init": "manual"})
        a.send(request("a-1", "initialize", hooks=None), user("hello", uuid="u"))
        b.send(request("b-1", "interrupt"))
        child.request("initialize")
        a.sync()
        b.sync()
        child.stderr("No conversation found with session ID: 0000\n")
        child.event("stderr_done")
        child.exit(1)
        for c, rid in ((a, "a-1"), (b, "b-1")):
            m = c.answer(rid)
            self.assertEqual(m["response.code"], "child_exited")
            self.assertIn("1", m["response.error"])
            self.assertIn("No conversation found", m["response.error"])
            gone = c.event("child_exited")
            self.assertEqual((gone["status"], gone["signal"], gone["wanted"]), (1, None, False))
            self.assertIn("No conversation found", str(gone["stderr"]))
        d.call("plenum_hello")
        for c, rid in ((a, "a-1"), (b, "b-1")):
            self.assertEqual(len(c.seen(type="control_response", response__request_id=rid)), 1)

    def test_bin_false(self):
        d, agent = self.start(profiles={"profile false": {"command": "/bin/false"}})
        a = d.client()
        a.attach("f", profile="false")
        self.assertEqual(a.event("child_exited")["status"], 1)
        self.assertEqual(d.state_of("f"), "failed")
        m = a.initialize()
        self.assertEqual(m["response.subtype"], "error")
        self.assertIn(m["response.code"], ("child_exited", "spawn_failed"))

    def test_killed_in_mid_turn(self):
        d, agent = self.start()
        a, o = d.attached(), d.attached(role="observer")
        child = agent.child()
        other = d.attached("t")
        second = agent.child()
        a.send(user("x", uuid="u"), request("1", "mcp_status"))
        child.request("mcp_status")
        child.print(init_line())
        a.wait(subtype="init")
        child.kill()
        self.assertEqual(a.answer("1")["response.code"], "child_exited")
        for c in (a, o):
            m = c.event("child_exited")
            self.assertEqual((m["status"], m["signal"], m["wanted"]), (137, 9, False))
            self.assertEqual(len(c.events("child_exited")), 1)
        self.assertEqual(d.state_of("s"), "asleep")
        second.mark(other)
        self.assertNone(other.events("child_exited"))

    def test_the_last_output_comes_before_the_notice(self):
        _, _, child, a = self.open()
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 3000, pad=100)
        child.exit(0)
        a.event("child_exited")
        kinds = [m["n"] for m in a.log if m["type"] == "x"]
        self.assertEqual(kinds, list(range(3000)))
        self.assertEqual([m for m in a.log if m["type"] == "x" or m["event"] == "child_exited"][-1]["event"], "child_exited")

    def test_a_child_that_closes_its_stdout_and_exits(self):
        _, _, child, a = self.open()
        child.order("close_stdout")
        child.exit(4)
        m = a.event("child_exited")
        self.assertEqual((m["status"], m["wanted"], m["reason"]), (4, False, "the child exited with status 4: it wrote nothing to stderr"))

    def broken(self, closes, grace="200ms", **mode):
        """A child in the middle of a turn that can no longer be read or written, and lives on."""
        d, agent, child, a = self.open(mode=dict({"session_id": "conv-1"}, **mode), profile={"stop_grace": grace})
        child.prompted(a, "one", uuid="u1")
        child.print(init_line(), {"type": "assistant", "message": {}})
        a.wait(type="assistant")
        d.wait_state("s", "busy")
        child.order(closes)
        return d, agent, a, child

    def told_and_resumed(self, d, agent, a, child, text, uuid):
        e = a.error("child_exited", uuid=uuid)
        self.assertIn(text, e["error"])
        m = a.event("child_exited")
        self.assertIs(m["wanted"], False)
        self.assertIn(text, m["reason"])
        child.wait_gone()
        self.assertEqual(d.wait_state("s", "asleep"), "asleep")
        a.send(user("again", uuid="u9"))
        second = agent.child()
        self.assertIn("--resume=conv-1", second.argv)
        second.wait(type="user", uuid="u9")
        second.print(init_line(), dict(RESULT, user_message_uuids=["u9"]))
        a.wait(type="result", user_message_uuids=["u9"])
        d.wait_state("s", "idle")
        return m

    def test_a_child_that_closes_its_stdout_and_lives_on(self):
        d, agent, a, child = self.broken("close_stdout", grace="30s")
        m = self.told_and_resumed(d, agent, a, child, "the child had closed its stdout and lived on", "u1")
        self.assertEqual((m["status"], m["signal"]), (0, None))  # the end of its input was enough

    def test_one_that_must_be_killed(self):
        d, agent, a, child = self.broken("close_stdout", eof="ignore", term="ignore")
        m = self.told_and_resumed(d, agent, a, child, "the child had closed its stdout and lived on", "u1")
        self.assertEqual((m["status"], m["signal"]), (137, 9))

    def test_a_child_that_closes_its_stdin_and_lives_on(self):
        d, agent, a, child = self.broken("close_stdin", term="ignore")

        def told():
            a.send({"type": "keep_alive"})
            return a.events("child_exited")

        until(told, every=0.05)
        m = self.told_and_resumed(d, agent, a, child, "the child had closed its stdin and lived on", "u1")
        self.assertEqual(m["signal"], 9)

    def test_a_stop_that_somebody_wants_is_no_failure_of_a_broken_child(self):
        d, agent, a, child = self.broken("close_stdout", grace="60s", eof="ignore", term="ignore")
        until(lambda: "has closed its stdout and lives on" in d.log(), what="the daemon to see it")
        a.request("plenum_stop", how="kill")
        m = a.event("child_exited")
        self.assertEqual((m["wanted"], m["reason"]), (True, None))

    def test_one_that_breaks_whenever_it_is_started_is_not_started_for_ever(self):
        d, agent = self.start(mode={"session_id": "conv-1", "start": [{"op": "close_stdout"}]}, profile={"stop_grace": "200ms"})
        a = d.attached()
        agent.child()
        self.assertIn("closed its stdout", a.event("child_exited")["reason"])
        with self.assertRaises(Timeout):
            until(lambda: agent.starts > 1, 1.0)

    def test_a_grandchild_that_holds_the_pipe(self):
        d, _, child, a = self.open()
        child.spawn(SLEEPER + [d.root + "/"], setsid=True, keep_stdout=True)
        child.exit(0)
        a.event("child_exited")

    def exited_and_held(self):
        """A session whose child has exited without the end of its output, which another process holds."""
        d, agent = self.start()
        d.attached("work")
        child = agent.child()
        child.spawn(SLEEPER + [d.root + "/"], setsid=True, keep_stdout=True)
        os.kill(child.pid, signal.SIGKILL)
        until(lambda: d.sessions()["work"]["pid"] != child.pid)
        return d, agent

    def test_a_late_result_does_not_end_a_prompt_for_the_next_child(self):
        d, agent = self.start(mode={"session_id": "conv-1"})
        a = d.attached("work")
        child = agent.child()
        d.wait_state("work", "idle")
        fifo = os.path.join(d.root, "fifo")
        os.mkfifo(fifo)
        child.spawn(["/bin/sh", "-c", "read -r line < %s; echo \"$line\"" % fifo], setsid=True, keep_stdout=True)
        os.kill(child.pid, signal.SIGKILL)
        until(lambda: d.sessions()["work"]["pid"] != child.pid)
        a.send(user("for the next", uuid="11111111-1111-4111-8111-111111111111"))
        a.sync()
        with open(fifo, "wb") as f:
            f.write(dump(RESULT) + b"\n")
        self.assertEqual(a.event("turn_ended")["uuids"], [])
        second = agent.child()
        second.wait(type="user")
        second.print(RESULT)
        self.assertEqual(a.event("turn_ended")["uuids"], ["11111111-1111-4111-8111-111111111111"])

    def test_no_pid_of_a_child_that_has_exited(self):
        """Least of all -1, which would be a target for signals."""
        d, _ = self.exited_and_held()
        self.assertIsNone(d.sessions()["work"]["pid"])
        self.assertIsNone(d.attached("work").attached["pid"])
        self.assertIsNone(d.call("plenum_status", session="work")["pid"])

    def test_stop_while_output_is_held(self):
        for how in ("graceful", "kill"):
            d, _ = self.exited_and_held()
            a = d.attached("work")
            a.request("plenum_stop", how=how)
            self.assertIs(a.event("child_exited")["wanted"], True)
            self.assertEqual(d.sessions()["work"]["state"], "asleep")

    def test_forget_while_output_is_held(self):
        for how in ("graceful", "kill"):
            d, agent = self.exited_and_held()
            agent.mode()
            a = d.attached("work")
            self.assertIs(a.request("plenum_stop", how=how, forget=True)["forget"], True)
            b = d.attached("work")
            self.assertIs(b.attached["created"], True)
            a.event("session_removed")
            agent.child().mark(b)

    def test_kill_the_daemon_while_output_is_held(self):
        d, agent = self.exited_and_held()
        d.attached("other")
        agent.child()
        def table():
            with open(d.env["XDG_STATE_HOME"] + "/plenum/sessions.json") as f:
                return f.read()

        until(lambda: '"other"' in table())
        d.kill9()
        d.start()
        self.assertEqual(sorted(d.sessions()), ["other", "work"])

    def test_stop_and_continue_are_no_exit(self):
        d, _, child, a = self.open()
        os.kill(child.pid, signal.SIGSTOP)
        until(lambda: [s for p, s in children_of(d.pid) if p == child.pid] == ["T"])
        a.sync()
        os.kill(child.pid, signal.SIGCONT)
        child.mark(a)
        self.assertNone(a.events("child_exited"))

    def test_many_at_once(self):
        """C56."""
        d, _ = self.start(profiles={"profile idle": {"command": "sleep 1000"}})
        for _ in range(3):
            clients = [d.client() for _ in range(50)]
            pids = [c.attach(profile="idle")["pid"] for c in clients]
            self.assertEqual(len(set(pids)), 50)
            for p in pids:
                os.kill(p, signal.SIGKILL)
            for c in clients:
                m = c.event("child_exited")
                self.assertEqual((m["signal"], m["wanted"]), (9, False))
            until(lambda: children_of(d.pid) == [], what="no zombies")
            for c in clients:
                c.request("plenum_stop", how="kill", forget=True)
                c.close()

    def test_the_refusal_reaches_the_client(self):
        """C72, C70: reported, and no loop."""
        d, agent = self.start(mode={"start": [{"op": "stderr", "text": "cannot be used with root/sudo privileges\n"},
                                              {"op": "exit_now", "status": 1}]})
        a = d.attached()
        m = a.event("child_exited")
        self.assertIn("cannot be used with root", str(m["stderr"]))
        with self.assertRaises(Timeout):
            until(lambda: agent.starts > 1, 1.0)
        self.assertEqual(d.state_of("s"), "failed")
        self.assertIn("cannot be used with root", str(d.call("plenum_logs", session="s")))

    def test_error_of_the_prompt_that_the_child_died_of(self):
        """C75: the prompt gets an error that names the cause."""
        _, agent, child, a, b = self.open(2)
        a.send(init("a-1", None), user("x" * 200000, uuid="u1"))
        child.wait(type="user", uuid="u1")
        child.stderr("Error parsing streaming input line\n")
        child.event("stderr_done")
        child.exit(1)
        m = a.error("child_exited", uuid="u1")
        self.assertIn("Error parsing streaming input line", m["error"])
        self.assertIn("Error parsing", str(b.event("child_exited")["stderr"]))
        a.send(user("on", uuid="u2"))
        child = agent.child()
        child.wait(type="user", uuid="u2")
        child.exit(1)
        self.assertRegex(a.error("child_exited", uuid="u2")["error"], r"status 1 .*: it wrote nothing to stderr$")
        b.sync()
        self.assertNone(b.events("error"))

    def test_reason_has_more_than_the_last_line_of_stderr(self):
        """C14, C11: Node prints its version last, after the cause."""
        d, _, child, a = self.open(mode={"init": "manual"})
        a.send(init("a-1", None), user("x", uuid="u"))
        child.wait(type="user")
        child.stderr("app.js:1\nthrow it\n\nError: no login\n    at app.js:1\n\nNode.js v20.1.0\n\n")
        child.event("stderr_done")
        child.exit(1)
        for text in (a.answer("a-1")["response.error"], a.error("child_exited", uuid="u")["error"], d.sessions()["s"]["reason"]):
            self.assertIn("Error: no login", text)
            self.assertIn("Node.js v20.1.0", text)

    def test_expired_login_is_reported_without_secrets(self):
        """C70: the lines pass, the cause is in the notice; neither token nor address is in the log."""
        d, agent, child, a = self.open()
        lines = [{"type": "system", "subtype": "api_retry", "error": "authentication_failed", "attempt": 1, "account": "me@example.com"},
                 dict(RESULT, is_error=True, result="Not logged in - Please run /login")]
        child.print(*lines)
        child.stderr("Invalid API key sk-ant-secret of me@example.com\n")
        child.event("stderr_done")
        child.exit(1)
        self.assertIn("Invalid API key", str(a.event("child_exited", status=1)["stderr"]))
        self.assertEqual([m.obj for m in a.log if m["subtype"] in ("api_retry", "success")], lines)
        for secret in ("sk-ant", "example.com", "run /login"):
            self.assertNotIn(secret, d.log())
        self.assertEqual(agent.starts, 1)


class ResumeTest(Case):
    def spoken(self, **options):
        """A session with a known conversation whose child has just ended."""
        options.setdefault("mode", {"session_id": "conv-1"})
        d, agent, child, a = self.open(**options)
        child.print(init_line(), dict(RESULT, session_id="conv-1"))
        a.wait(type="result")
        child.exit(0)
        a.event("child_exited")
        return d, agent, a

    def test_by_a_prompt(self):
        d, agent, a = self.spoken()
        self.assertEqual(d.state_of("s"), "asleep")
        a.send(user("again", uuid="u"))
        child = agent.child()
        self.assertIn("--resume=conv-1", child.argv)
        child.wait(type="user", uuid="u")
        self.assertEqual(d.sessions()["s"]["pid"], child.pid)

    def test_not_by_itself(self):
        d, agent, a = self.spoken()
        d.attached().sync()
        self.assertEqual(agent.starts, 1)
        self.assertEqual(d.state_of("s"), "asleep")

    def test_by_an_attach_that_says_so(self):
        d, agent, a = self.spoken()
        b = d.attached(wake=True)
        self.assertIn("--resume=conv-1", agent.child().argv)
        self.assertIs(b.attached["created"], False)

    def test_other_lines_need_a_child(self):
        """A control request to a sleeping session wakes it or is refused; it does not hang."""
        d, agent, a = self.spoken()
        a.send(request("1", "mcp_status"))
        until(lambda: agent.starts == 2 or a.seen(type="control_response", response__request_id="1"))
        if agent.starts == 2:
            child = agent.child()
            child.reply(child.request("mcp_status"))
        a.answer("1")

    def test_several_prompts_in_order(self):
        d, agent, a = self.spoken()
        a.send(*[user("p%d" % i, uuid="u%d" % i) for i in range(20)])
        child = agent.child()
        child.wait(type="user", uuid="u19")
        self.assertEqual([m["uuid"] for m in child.seen(type="user")], ["u%d" % i for i in range(20)])
        self.assertEqual(agent.starts, 2)

    def test_start_arguments_are_kept(self):
        d, agent = self.start(mode={"session_id": "conv-1"})
        a = d.client()
        a.attach("s", args=["--model", "m"], env={"FOO": "1"}, cwd="/usr")
        child = agent.child()
        child.print(init_line(), RESULT)
        a.wait(type="result")
        child.exit(0)
        a.event("child_exited")
        a.send(user("again"))
        child = agent.child()
        self.assertEqual(child.argv[child.argv.index("--model") + 1], "m")
        self.assertEqual((child.env["FOO"], child.start["cwd"]), ("1", "/usr"))

    def test_the_start_directory_is_used(self):
        """C78, C30."""
        d, agent = self.start(mode={"session_id": "conv-1"})
        os.mkdir(d.root + "/w")
        a = d.client()
        a.attach("s", cwd=d.root + "/w")
        child = agent.child()
        child.print(init_line(cwd=d.root + "/w/sub"), RESULT)
        a.wait(type="result")
        child.exit(0)
        a.event("child_exited")
        b = d.client()
        b.attach("s", wake=True)
        child = agent.child()
        self.assertEqual(child.start["cwd"], d.root + "/w")
        child.print(init_line(), RESULT)
        b.wait(type="result")
        child.exit(0)
        b.event("child_exited")
        os.rmdir(d.root + "/w")
        c = d.client()
        e = self.assertRefused("spawn_failed", c.attach, "s", wake=True)
        self.assertIn(d.root + "/w", e.text)
        self.assertEqual(agent.starts, 2)

    def test_restart_never(self):
        d, agent, a = self.spoken(profile={"restart": "never"})
        self.assertEqual(d.state_of("s"), "failed")
        a.send(user("again"))
        self.assertIn("restart = never", a.event("error")["error"])
        self.assertRefused("spawn_failed", d.client().attach, "s", wake=True)
        self.assertEqual((agent.starts, d.state_of("s")), (1, "failed"))

    def test_restart_never_lets_a_sleeping_one_wake(self):
        """The session only sleeps: the next prompt wakes it (contract 8)."""
        d, agent = self.start(mode={"session_id": "conv-1", "user": True}, profile={"restart": "never"})
        a = d.attached()
        a.send(user("one"))
        a.wait(type="result")
        d.wait_state("s", "idle")
        a.ask("plenum_hibernate")
        a.event("child_exited")
        d.wait_state("s", "asleep")
        a.send(user("two"))
        a.wait(type="result")
        self.assertEqual(agent.starts, 2)

    def test_restart_never_and_a_program_that_was_not_there(self):
        """A child that never ran has not ended."""
        d, agent = self.start(mode={"session_id": "conv-1", "user": True}, profile={"restart": "never", "command": "/LINK"})
        link = d.root + "/claude"
        with open(link, "w") as f:
            f.write("#!/bin/sh\nexec %s \"$@\"\n" % agent.command)
        os.chmod(link, 0o755)
        with open(d.conf) as f:
            conf = f.read().replace("/LINK", link)
        with open(d.conf, "w") as f:
            f.write(conf)
        d.call("plenum_reload")
        a = d.attached()
        a.send(user("one"))
        a.wait(type="result")
        d.wait_state("s", "idle")
        a.ask("plenum_hibernate")
        d.wait_state("s", "asleep")
        os.rename(link, link + ".away")
        a.send(user("two"))
        a.error("spawn_failed")
        os.rename(link + ".away", link)
        d.call("plenum_upgrade")
        a.send(user("three"))
        self.assertEqual(a.wait(lambda m: m["type"] == "result" or m["event"] == "error", title="an end")["type"], "result")

    def test_back_off(self):
        d, agent, a = self.spoken()
        agent.mode(session_id="conv-1", start=[{"op": "stderr", "text": "broken\n"}, {"op": "exit_now", "status": 1}])
        begun = time.monotonic()
        refused = 0
        while time.monotonic() - begun < 2.0 or not refused:
            a.send(user("try"))
            m = a.wait(lambda m: m["event"] in ("child_exited", "error"))
            refused += m["event"] == "error" and m["code"] in ("spawn_failed", "child_exited")
            self.assertLess(agent.starts, 12)

    def test_resolved_at_each_start(self):
        """C32."""
        d, one, two = self.start(agents=("one", "two"), mode={"session_id": "conv-1"}, profiles={"profile link": {"command": "/LINK"}})
        link = d.root + "/claude"
        for a in (one, two):
            with open(d.root + "/" + a.name + ".sh", "w") as f:
                f.write("#!/bin/sh\nexec %s \"$@\"\n" % a.command)
            os.chmod(d.root + "/" + a.name + ".sh", 0o755)
        os.symlink("one.sh", link)
        conf = open(d.conf).read().replace("/LINK", link)
        with open(d.conf, "w") as f:
            f.write(conf)
        d.call("plenum_reload")
        a = d.client()
        a.attach("s1", profile="link")
        first = one.child()
        os.unlink(link)
        os.symlink("two.sh", link)
        os.unlink(d.root + "/one.sh")
        b = d.client()
        b.attach("s2", profile="link")
        two.child()
        first.print(init_line(), RESULT)
        a.wait(type="result")
        first.exit(0)
        a.event("child_exited")
        a.send(user("on"))
        two.child()


class AtOnceTest(Case):
    def test_killed_and_started_without_a_pause(self):
        """A daemon started right after another was killed need not wait until the kernel has cleaned up the first."""
        d, agent = self.start(mode={"session_id": "conv-1"})
        for i in range(10):
            a = d.attached("s")
            a.send(user("x", uuid="u-%d" % i))
            agent.child().wait(type="user")
            old = d.process
            old.kill()
            d.process = d.launch()
            until(lambda: d.process.poll() is not None or d.log().count("listens on") == i + 2, what="the next daemon")
            old.wait()
            self.assertIsNone(d.process.poll(), d.log())
            self.assertEqual(d.state_of("s"), "asleep")


class ModeTest(Case):
    """An old CLI forgets its permission mode over --resume (2.1.197)."""

    def worked_in(self, mode, *before):
        """A session that was set to a mode and has ended a turn; before: its child's output before the result."""
        d, agent, child, a = self.open(mode={"session_id": "conv-1"})
        a.send(request("m", "set_permission_mode", mode=mode))
        child.reply(child.request("set_permission_mode"), {"mode": mode})
        a.answer("m")
        child.prompted(a, "x", uuid="u-1")
        child.print(*before, dict(RESULT, session_id="conv-1", user_message_uuids=["u-1"]))
        a.wait(type="result")
        return d, agent, a

    def slept_in(self, mode):
        init = {"type": "system", "subtype": "init", "session_id": "conv-1", "permissionMode": mode}
        d, agent, a = self.worked_in(mode, init)
        a.request("plenum_hibernate")
        d.wait_state("s", "asleep")
        a.send(user("y", uuid="u-2"))
        return d, a, agent.child()

    def test_who_was_only_to_plan_does_so_when_it_wakes(self):
        d, a, child = self.slept_in("plan")
        asked = child.request("set_permission_mode")
        self.assertEqual(asked["request.mode"], "plan")
        prompt = child.wait(type="user")
        self.assertLess(child.log.index(asked), child.log.index(prompt))
        child.reply(asked, {"mode": "plan"})
        self.assertEqual(a.event("changed", what="permission_mode")["value"], "plan")

    def test_everybody_is_told_where_it_cannot(self):
        d, a, child = self.slept_in("plan")
        asked = child.request("set_permission_mode")
        child.print({"type": "control_response", "response": {"subtype": "error", "request_id": asked["request_id"], "error": "no"}})
        self.assertIn('"plan"', a.error("internal")["error"])

    def after_a_kill(self, mode):
        """Return the lines to the first child of the next daemon, after a kill, before its prompt."""
        d, agent, _ = self.worked_in(mode)
        until(lambda: any(s["conversation_id"] == "conv-1" for s in d.table()), what="the table to have it")
        d.kill9()
        d.start()
        a = d.attached("s")
        a.send(user("y", uuid="u-2"))
        child = agent.child()
        child.wait(type="user")
        return [m["request.mode"] for m in child.seen(request__subtype="set_permission_mode")]

    def test_also_after_the_daemon_was_killed(self):
        self.assertEqual(self.after_a_kill("plan"), ["plan"])
        self.assertEqual(self.after_a_kill("acceptEdits"), [])

    def test_a_mode_that_allows_more_is_to_be_chosen_again(self):
        d, a, child = self.slept_in("acceptEdits")
        child.wait(type="user")
        self.assertNone(child.seen(request__subtype="set_permission_mode"))


@unittest.skipUnless(os.getuid() == 0, "needs root, to run as somebody whose processes can be counted")
class LimitTest(Case):
    def processes(self, d, n):
        subprocess.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "prlimit", "--pid", str(d.pid),
                        "--nproc=%d:" % n], check=True)

    def test_fork_fails(self):
        """C66: an error that says so, no half-made session; and it works again."""
        d, agent = self.start(run_as="nobody")
        a = d.attached("one", cwd="/")
        child = agent.child()
        self.processes(d, 0)
        b = d.client()
        e = self.assertRefused("spawn_failed", b.attach, "two", cwd="/")
        self.assertIn("process", e.text)
        self.assertEqual(list(d.sessions()), ["one"])
        child.mark(a)
        self.processes(d, 4096)
        b.attach("two", cwd="/")
        agent.child()

    def test_no_process_reads_an_environment(self):
        """The new client is not trusted until one can be made; others are served meanwhile."""
        d, agent = self.start(run_as="nobody")
        a = d.attached("one", cwd="/")
        self.processes(d, 0)
        b = d.client(env={"PATH": os.environ["PATH"]})  # another process: this one is known
        peer = b.hello()["peer"]
        self.assertEqual(peer["peer"], "driver")
        self.assertIn("limit of processes", peer["why"])
        self.assertRefused("not_allowed", b.request, "plenum_shutdown")
        self.assertEqual(a.hello()["peer"]["peer"], "own")
        self.processes(d, 4096)
        until(lambda: b.hello()["peer"]["peer"] == "own", what="the environment")


class LogsTest(Case):
    def test_the_tail(self):
        d, _, child, a = self.open()
        child.stderr("first line\nsecond line\n")
        until(lambda: "second line" in str(a.request("plenum_logs", session="s")))
        self.assertIn("first line", str(d.call("plenum_logs", session="s")))
        self.assertRefused("no_such_session", a.request, "plenum_logs", session="nope")

    def test_a_line_without_an_end(self):
        d, _, child, a = self.open()
        lines = lambda: a.request("plenum_logs", session="s")["stderr"]
        child.stderr("first\nPassword: ")
        until(lambda: lines() == ["first", "Password: "])
        child.stderr(b"half a letter \xc3")
        until(lambda: lines()[1].startswith("Password: half a letter "))
        child.stderr(b"\xa9\n")
        until(lambda: lines() == ["first", "Password: half a letter \u00e9"])
        child.stderr("".join("%d\n" % i for i in range(50)) + "open")
        until(lambda: lines() == [str(i) for i in range(10, 50)] + ["open"])

    def test_bounded(self):
        _, _, child, a = self.open()
        child.stderr(b"x" * 500000 + b"\nlast\n")
        until(lambda: "last" in str(a.request("plenum_logs", session="s")))
        self.assertLess(len(str(a.request("plenum_logs", session="s"))), 300000)


class AnsweredStateTest(Case):
    """A client whose answer named a state is notified of the next one, also if the others know that state already."""

    def judge(self, d, c, named, want):
        """The state as known to c: the one in its answer, then the events since."""
        self.assertEqual(d.state_of("s"), want)
        c.sync()
        told = [m["state"] for m in c.events("session_state")]
        self.assertEqual(told[-1] if told else named, want)

    def test_state_named_between_two_turns(self):
        d, _, child, a = self.open()
        child.prompted(a, "one")
        d.wait_state("s", "busy")
        b, c, w = connected(d, 3)
        with standstill(d):
            child.print(RESULT)
            child.written()
            at_b = b.ask("plenum_attach", session="s")
            at_w = w.ask("plenum_subscribe")
            a.send(user("two"))
            at_c = c.ask("plenum_attach", session="s")
        child.wait(type="user", message__content="two")
        named = b.answer(at_b)["response.response.state"]
        self.assertEqual(named, "idle")
        self.judge(d, b, named, "busy")
        self.judge(d, w, w.answer(at_w)["response.response"]["sessions"][0]["state"], "busy")
        self.judge(d, c, c.answer(at_c)["response.response.state"], "busy")
        self.assertEqual(b.events("session_state")[0]["previous"], "idle")

    def test_state_named_before_a_start_is_given_up(self):
        d, agent = self.start()
        # its own environment: the prompt that wakes it does not wait for its sender's
        a = d.attached("s", env={"PATH": "/usr/bin:/bin"}, env_only=True)
        agent.child()
        d.wait_state("s", "idle")
        a.request("plenum_hibernate")
        d.wait_state("s", "asleep")
        b, c = connected(d, 2)
        with standstill(d):
            a.send(user("one"))
            rid = b.ask("plenum_attach", session="s")
            stop = c.ask("plenum_stop", session="s")
        named = b.answer(rid)["response.response.state"]
        self.assertEqual(named, "starting")
        c.answer(stop)
        self.judge(d, b, named, "asleep")


if __name__ == "__main__":
    unittest.main()
