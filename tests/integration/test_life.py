# SPDX-License-Identifier: MIT
"""The life of a session and of its child (DESIGN 8; CASES C14 C28 C32 C35 C56 C57 C69 C72 C74 C78)."""
import os
import signal
import stat
import subprocess
import sys
import time
import unittest

from harness import QUICK, TIMEOUT, Case, Timeout, alive, allow, children_of, dump, perm, request, until, user, RESULT

SLEEPER = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(120)"]


def init_line(conversation="conv-1", **more):
    return dict({"type": "system", "subtype": "init", "session_id": conversation}, **more)


class StateTest(Case):
    def test_a_turn(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
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
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        child.print(init_line(), {"type": "x", "n": 1}, RESULT)
        a.wait(type="result")
        a.send(user("two", uuid="u"))
        child.wait(type="user")
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
        d, agent = self.start()
        a, b = d.attached(), d.attached()
        child = agent.child()
        a.send(user("one", uuid="ua"))
        child.wait(type="user", uuid="ua")
        child.print({"type": "assistant", "message": {}})
        b.send(user("two", uuid="ub"))
        child.wait(type="user", uuid="ub")
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
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        child.print(init_line(), {"type": "assistant", "message": {}})
        d.wait_state("s", "busy")
        child.print(dict(RESULT, origin={"kind": "task-notification"}))
        d.wait_state("s", "idle")

    def test_a_silent_child(self):
        """C69: its state can be seen, nothing is killed, stop and start work."""
        d, agent = self.start(mode={"session_id": "conv-1"})
        a = d.attached()
        child = agent.child()
        a.send(user("x", uuid="u"))
        child.wait(type="user")
        child.print(init_line(), {"type": "assistant", "message": {}})
        a.wait(type="assistant")
        status = d.call("plenum_status", session="s")
        self.assertEqual(status["state"], "busy")
        child.order("sleep", seconds=0)
        a.request("plenum_stop", how="graceful")
        self.assertIs(a.event("child_exited")["wanted"], True)
        a.send(user("again", uuid="u2"))
        agent.child().wait(type="user", uuid="u2")


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


class ExitTest(Case):
    def test_everybody_who_waits_is_told(self):
        """C14."""
        d, agent = self.start(mode={"init": "manual"})
        a, b = d.attached(), d.attached()
        child = agent.child()
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
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 3000, pad=100)
        child.exit(0)
        a.event("child_exited")
        kinds = [m["n"] for m in a.log if m["type"] == "x"]
        self.assertEqual(kinds, list(range(3000)))
        self.assertEqual([m for m in a.log if m["type"] == "x" or m["event"] == "child_exited"][-1]["event"], "child_exited")

    def test_a_child_that_closes_its_stdout_and_exits(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        child.order("close_stdout")
        child.exit(4)
        m = a.event("child_exited")
        self.assertEqual((m["status"], m["wanted"], m["reason"]), (4, False, "the child exited with status 4: it printed nothing on stderr"))

    def broken(self, closes, grace="200ms", **mode):
        """A child in the middle of a turn that can be heard, or told, no more, and lives on."""
        d, agent = self.start(mode=dict({"session_id": "conv-1"}, **mode), profile={"stop_grace": grace})
        a = d.attached()
        child = agent.child()
        a.send(user("one", uuid="u1"))
        child.wait(type="user", uuid="u1")
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
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        child.spawn(SLEEPER + [d.root + "/"], setsid=True, keep_stdout=True)
        child.exit(0)
        a.event("child_exited")

    def exited_and_held(self):
        """A session whose child has exited, while its end is not complete: another process holds the output."""
        d, agent = self.start()
        d.attached("work")
        child = agent.child()
        child.spawn(SLEEPER + [d.root + "/"], setsid=True, keep_stdout=True)
        os.kill(child.pid, signal.SIGKILL)
        until(lambda: d.sessions()["work"]["pid"] != child.pid)
        return d, agent

    def test_no_pid_of_a_child_that_has_exited(self):
        """Least of all -1, to which somebody could send a signal."""
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
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
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
        """C72, C70: told, and no loop."""
        d, agent = self.start(mode={"start": [{"op": "stderr", "text": "cannot be used with root/sudo privileges\n"},
                                              {"op": "exit_now", "status": 1}]})
        a = d.attached()
        m = a.event("child_exited")
        self.assertIn("cannot be used with root", str(m["stderr"]))
        with self.assertRaises(Timeout):
            until(lambda: agent.starts > 1, 1.0)
        self.assertEqual(d.state_of("s"), "failed")
        self.assertIn("cannot be used with root", str(d.call("plenum_logs", session="s")))


class ResumeTest(Case):
    def spoken(self, **options):
        """A session whose conversation is known and whose child has just ended."""
        options.setdefault("mode", {"session_id": "conv-1"})
        d, agent = self.start(**options)
        a = d.attached()
        child = agent.child()
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
        """The session is only asleep: the next prompt wakes it (DESIGN 8)."""
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
        """What never ran has not ended."""
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


class SleepTest(Case):
    def idle(self, **options):
        options.setdefault("mode", {"session_id": "conv-1"})
        d, agent = self.start(**options)
        a = d.attached()
        child = agent.child()
        a.initialize()
        child.print(init_line(), RESULT)
        a.wait(type="result")
        return d, agent, a, child

    def test_hibernate_and_wake(self):
        d, agent, a, child = self.idle()
        a.request("plenum_hibernate")
        m = a.event("child_exited")
        self.assertIs(m["wanted"], True)
        a.event("session_state", state="asleep")
        child.wait_gone()
        self.assertEqual(child.had("signal"), [])
        entry = d.sessions()["s"]
        self.assertEqual((entry["state"], entry["pid"], entry["conversation_id"]), ("asleep", None, "conv-1"))
        a.send(user("wake", uuid="u"))
        agent.child().wait(type="user", uuid="u")

    def test_not_in_mid_turn(self):
        d, agent, a, child = self.idle()
        a.send(user("x", uuid="u"))
        child.wait(type="user")
        self.assertRefused("busy", a.request, "plenum_hibernate")
        child.print(perm("k-1"), dict(RESULT, user_message_uuids=["u"]))
        a.wait(type="result")
        self.assertRefused("busy", a.request, "plenum_hibernate")
        child.mark(a)

    def test_a_start_that_is_put_off(self):
        """It is given up; with a prompt that waits for it, it is not."""
        d, agent, a, child = self.idle()
        for n in range(4):  # the wait between two starts doubles: two seconds at the end
            child.exit(1)
            a.event("child_exited")
            if n < 3:
                d.client().attach("s", wake=True)
                child = agent.child()
        starts = agent.starts
        b = d.client()  # all in one go: two seconds are not long for who must be given a processor first
        b.send(request("1", "plenum_attach", session="s", wake=True), request("2", "plenum_status"),
               request("3", "plenum_hibernate"))
        entry = b.answer("2")["response.response"]
        self.assertEqual((entry["state"], entry["pid"]), ("starting", None))
        self.assertEqual(b.answer("3")["response.subtype"], "success")
        self.assertEqual(d.state_of("s"), "asleep")
        a.send(user("x", uuid="u"))
        self.assertRefused("busy", a.request, "plenum_hibernate")
        agent.child().wait(type="user", uuid="u")
        self.assertEqual(agent.starts, starts + 1)

    def test_not_while_something_runs_in_the_background(self):
        """The child's end would end it, and nobody would be told."""
        d, agent, a, child = self.idle()
        task = {"task_id": "t", "task_type": "local_bash", "description": "make"}
        for tasks in ([task], []):
            child.print({"type": "system", "subtype": "background_tasks_changed", "tasks": tasks})
            a.wait(subtype="background_tasks_changed")
            if tasks:
                self.assertRefused("busy", a.request, "plenum_hibernate")
        a.request("plenum_hibernate")
        a.event("session_state", state="asleep")

    def at_work(self):
        """A session that is to sleep soon and does not yet: from its making on it works at a prompt."""
        d, agent = self.start(mode={"session_id": "conv-1"}, profile={"idle_sleep": "300ms"})
        a = d.client()
        a.send(user("x", uuid="u0", session_id="s"))
        child = agent.child()
        child.wait(type="user", uuid="u0")
        child.print(init_line())
        a.wait(subtype="init")
        return d, agent, a, child

    def test_idle_sleep(self):
        d, agent, a, child = self.at_work()
        child.print(dict(RESULT, user_message_uuids=["u0"]))
        a.event("child_exited", wanted=True)
        self.assertEqual(d.state_of("s"), "asleep")
        a.send(user("wake", uuid="u"))
        agent.child().wait(type="user", uuid="u")

    def test_no_sleep_while_something_goes_on(self):
        d, agent, a, child = self.at_work()
        self.assertRefused("timeout", a.request, "mcp_status", plenum_timeout_ms=700)
        child.print(perm("k-1"), dict(RESULT, user_message_uuids=["u0"]))
        rid = a.wait(type="control_request")["request_id"]
        self.assertRefused("timeout", a.request, "mcp_status", plenum_timeout_ms=700)
        self.assertNone(a.events("child_exited"))
        a.send(allow(rid))
        a.event("child_exited", wanted=True)

    def test_never(self):
        d, agent, a, child = self.idle(profile={"idle_sleep": "never"})
        self.assertRefused("timeout", a.request, "mcp_status", plenum_timeout_ms=300)
        child.mark(a)

    def test_max_children(self):
        d, agent = self.start(daemon={"max_children": "2"}, mode={"user": True})
        clients = {}
        for name in ("one", "two"):
            clients[name] = d.attached(name)
            clients[name].send(user("x"))
            clients[name].wait(type="result")
        clients["one"].send(user("y"))
        clients["one"].wait(type="result", result="turn 2")
        clients["three"] = d.attached("three")
        d.wait_state("two", "asleep")
        clients["three"].send(user("x"))
        clients["three"].wait(type="result")
        self.assertIn(d.state_of("one"), ("idle",))
        self.assertLessEqual(len(children_of(d.pid)), 2)

    def test_max_children_when_all_were_busy(self):
        """More than that are started then, and those that idle give way later."""
        d, agent = self.start(daemon={"max_children": "2"})
        names = ("one", "two", "three", "four")
        clients, children = [], {}
        for name in names:  # each of them works before the next one comes
            clients.append(d.client())
            clients[-1].send(user("x", session_id=name))
            d.wait_state(name, "busy")
            children[name] = agent.child()
        for name in names:
            child = children[name]
            uuid = child.wait(type="user")["uuid"]
            child.print({"type": "system", "subtype": "init", "session_id": "c-" + name},
                        dict(RESULT, session_id="c-" + name, user_message_uuids=[uuid]))
            clients[names.index(name)].event("turn_ended")
        for name in ("one", "two"):
            d.wait_state(name, "asleep")
        for name in ("three", "four"):
            self.assertEqual(d.state_of(name), "idle")


class AtOnceTest(Case):
    def test_killed_and_started_without_a_pause(self):
        """Who kills a daemon and starts another need not know when the kernel is through with the first."""
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
        """A session that was set to a mode and has ended a turn; before: what its child prints before the result."""
        d, agent = self.start(mode={"session_id": "conv-1"})
        a = d.attached("s")
        child = agent.child()
        a.send(request("m", "set_permission_mode", mode=mode))
        child.reply(child.request("set_permission_mode"), {"mode": mode})
        a.answer("m")
        a.send(user("x", uuid="u-1"))
        child.wait(type="user")
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
        """What the first child of a daemon that follows one that was killed is sent before its prompt."""
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


class StopTest(Case):
    def ladder(self, busy=False, answer=True, grace="30s", **mode):
        """grace: where the child does not take each step it must be long enough to tell of it on a busy machine."""
        d, agent = self.start(mode=dict(mode, control=["interrupt"] if answer else []), profile={"stop_grace": grace})
        a = d.attached()
        child = agent.child()
        child.mark(a)
        if busy:
            a.send(user("x", uuid="u"))
            child.wait(type="user")
        begun = time.monotonic()
        a.request("plenum_stop", how="graceful", _timeout=20)
        gone = a.event("child_exited", timeout=20)
        self.assertIs(gone["wanted"], True)
        took = time.monotonic() - begun
        until(lambda: not alive(child.pid))
        child.wait_gone()  # all that it told is here
        return d, agent, a, child, gone, took

    def test_the_end_of_input_is_enough(self):
        d, agent, a, child, gone, took = self.ladder(eof=0.1)
        self.assertEqual((gone["status"], gone["signal"]), (0, None))
        self.assertEqual(child.had("signal"), [])
        self.assertNone(child.seen(request__subtype="interrupt"))

    def test_interrupt_first_when_busy(self):
        d, agent, a, child, gone, took = self.ladder(busy=True)
        self.assertEqual(len(child.seen(request__subtype="interrupt")), 1)
        self.assertLessEqual(child.seen(request__subtype="interrupt")[0].t, child.had("eof")[0]["t"])
        self.assertEqual(child.had("signal"), [])

    def test_term(self):
        d, agent, a, child, gone, took = self.ladder(eof="ignore", grace="2s")
        self.assertEqual((gone["status"], gone["signal"]), (143, None))
        child.event("eof")
        self.assertEqual(child.event("signal")["signal"], signal.SIGTERM)
        self.assertGreater(took, 1.9, "it had no grace")

    def test_kill(self):
        d, agent, a, child, gone, took = self.ladder(busy=True, answer=False, eof="ignore", term="ignore", grace="1500ms")
        self.assertEqual((gone["status"], gone["signal"]), (137, 9))
        self.assertEqual([e["signal"] for e in child.had("signal")], [signal.SIGTERM])
        self.assertEqual(len(child.had("eof")), 1)
        self.assertGreater(took, 3 * 1.4)

    def test_how_kill(self):
        d, agent = self.start(mode={"eof": "ignore", "term": "ignore"})
        a = d.attached()
        child = agent.child()
        a.request("plenum_stop", how="kill")
        self.assertEqual(a.event("child_exited")["signal"], 9)
        self.assertEqual(child.had("signal"), [])

    def test_a_stopped_process_is_stopped_too(self):
        d, agent = self.start(profile=QUICK)
        a = d.attached()
        child = agent.child()
        os.kill(child.pid, signal.SIGSTOP)
        a.request("plenum_stop", how="graceful", _timeout=20)
        a.event("child_exited", wanted=True)

    def test_forget(self):
        d, agent = self.start()
        a = d.attached()
        agent.child()
        d.call("plenum_stop", session="s", how="kill", forget=True)
        until(lambda: d.sessions() == {})
        a.event("session_removed")
        b = d.client()
        self.assertIs(b.attach("s")["created"], True)

    def test_started_again_under_the_same_name(self):
        """Only when the old process is gone."""
        d, agent = self.start(mode={"eof": 0.3, "session_id": "conv-1"})
        a = d.attached()
        child = agent.child()
        child.print(init_line(), RESULT)
        a.wait(type="result")
        a.ask("plenum_stop", how="graceful")
        a.send(user("next", uuid="u"))
        second = agent.child()
        self.assertGreater(second.start["t"], child.event("exiting")["t"])
        second.wait(type="user", uuid="u")

    def test_two_stops(self):
        d, agent = self.start(mode={"eof": 0.2})
        a, b = d.attached(), d.attached()
        agent.child()
        x, y = a.ask("plenum_stop"), b.ask("plenum_stop")
        a.answer(x)
        b.answer(y)
        for c in (a, b):
            c.event("child_exited")
            c.sync()
            self.assertEqual(len(c.events("child_exited")), 1)


    def half_closed(self, said=False, **options):
        d, agent = self.start(**options)
        a = d.attached(ephemeral=True)
        child = agent.child()
        if said:
            a.send(user("one"))
            a.wait(type="result")
        a.half_close()
        child.event("eof")
        return d, a, child

    def test_the_end_of_its_owners_input_is_no_stop(self):
        """As without a daemon, a child may take longer for its end than a step of a stop may."""
        for upgrade in (False, True):
            d, a, child = self.half_closed(mode={"eof": 0.7}, profile={"stop_grace": "100ms"})
            if upgrade:
                d.call("plenum_upgrade")
            self.assertEqual(a.event("child_exited")["status"], 0)
            self.assertEqual(child.had("signal"), [])
            until(lambda: not d.sessions(), what="the session to be gone")

    def test_who_wants_its_conversation_does_not_wait_for_ever(self):
        for how in ("shim", "person", "prompt"):
            d, a, child = self.half_closed(mode={"eof": "ignore", "user": True, "session_id": "conv-1"},
                                           profile={"stop_grace": "200ms"}, said=True)
            self.assertEqual(child.had("signal"), [])
            b = d.client()
            if how == "shim":
                self.assertRefused("conversation_in_use", b.attach, ephemeral=True, resume="conv-1")
                until(lambda: not d.sessions(), what="the session to be gone")
            elif how == "person":
                self.assertTrue(b.attach(resume="conv-1")["created"])
            else:
                b.send(dict(user("two"), session_id="conv-1"))
                b.wait(type="result")
            child.event("signal", signal=signal.SIGTERM)

    def test_whose_owner_waits_no_longer(self):
        """Or which somebody stops: the other steps follow."""
        for how in ("leave", "stop", "shutdown"):
            d, a, child = self.half_closed(mode={"eof": "ignore"}, profile={"stop_grace": "200ms"})
            self.assertEqual(child.had("signal"), [])
            if how == "leave":
                a.close()
            elif how == "stop":
                d.call("plenum_stop", session="s")
            else:
                d.stop()
                d.process = None
            until(lambda: "stop, SIGTERM after" in d.log(), what="the next step")  # whatever the child has the time to tell
            child.wait_gone()


class ForgetTest(Case):
    """A session that is being stopped and forgotten: who comes meanwhile is not lost with it."""

    def going(self):
        """Its child ends when the test kills it."""
        d, agent = self.start(mode={"eof": "ignore", "term": "ignore", "session_id": "conv-1"}, profile={"stop_grace": "60s"})
        a = d.attached("work")
        child = agent.child()
        a.request("plenum_stop", forget=True)
        child.event("eof")
        return d, agent, a, child

    def held(self, d, *lines):
        """A client whose lines are there, and wait: not one of them is answered."""
        c = d.client()
        c.send(*lines)
        d.call("plenum_hello")
        c.drain(0.1)
        self.assertEqual(c.log, [])
        return c

    def test_an_attach_makes_a_new_one_when_it_is_gone(self):
        for create in ("auto", "new"):
            d, agent, a, child = self.going()
            c = self.held(d, request("1", "plenum_attach", session="work", create=create), user("hi", uuid="u"),
                          request("2", "plenum_hello"))
            child.kill()
            a.event("session_removed")
            m = c.answer("1")
            self.assertEqual((m["response.response.created"], m["response.response.session"]), (True, "work"))
            second = agent.child()
            self.assertNotIn("--resume=conv-1", second.argv)
            second.wait(type="user", uuid="u")
            c.answer("2")
            self.assertEqual([m["response.request_id"] for m in c.seen(type="control_response")], ["1", "2"])
            second.kill()  # or it would not end

    def test_a_prompt_that_names_it(self):
        d, agent, a, child = self.going()
        c = self.held(d, user("one", uuid="u1", session_id="work"), user("two", uuid="u2", session_id="work"))
        last = d.client()
        last.raw(dump(user("three", uuid="u3", session_id="work")))  # no line feed, and the end of its input
        last.half_close()
        d.call("plenum_hello")
        child.kill()
        second = agent.child()
        for uuid in ("u1", "u2", "u3"):
            second.wait(type="user", uuid=uuid)
        second.print(init_line(), dict(RESULT, user_message_uuids=["u1", "u2", "u3"]))
        c.wait(type="result")
        last.wait(type="result")
        last.wait_eof()
        second.kill()

    def test_one_of_two_gets_it(self):
        for upgrade in (False, True):
            d, agent, a, child = self.going()
            late = d.client()
            late.sync()
            first = self.held(d, request("1", "plenum_attach", session="work", create="new"))
            late.send(request("1", "plenum_attach", session="work", create="new"))
            d.call("plenum_upgrade" if upgrade else "plenum_hello")
            child.kill()
            answers = [c.answer("1") for c in (first, late)]
            self.assertCountEqual([m["response.response.created"] for m in answers], [True, None])
            self.assertCountEqual([m["response.code"] for m in answers], [None, "session_exists"])
            agent.child().kill()

    def test_who_gave_up_gets_none(self):
        d, agent, a, child = self.going()
        self.held(d, request("1", "plenum_attach", session="work"), user("hi", uuid="u")).close()
        child.kill()
        a.event("session_removed")
        until(lambda: d.call("plenum_metrics")["clients"] == 2, what="its connection to be closed")  # a, and the one that asks
        self.assertEqual((d.sessions(), agent.starts), ({}, 1))

    def test_a_prompt_whose_sender_is_gone(self):
        """Nobody asked for an answer: it is sent as it would have been before."""
        d, agent, a, child = self.going()
        self.held(d, user("hi", uuid="u", session_id="work")).close()
        child.kill()
        second = agent.child()
        second.wait(type="user", uuid="u")
        second.kill()

    def test_bad_lines_are_counted_as_they_came(self):
        d, agent, a, child = self.going()
        c = self.held(d, request("1", "plenum_attach", session="work"), b"no json", user("x", uuid="u"), b"nor this")
        child.kill()
        c.answer("1")
        self.assertEqual([c.error("bad_line")["line"] for _ in range(2)], [2, 4])
        agent.child().kill()

    def test_who_wants_no_new_one_sees_the_end(self):
        d, agent, a, child = self.going()
        c = d.attached("work", create="never")
        self.assertIs(c.attached["created"], False)
        for who in (a, c):  # the one that was there before, too
            who.send(user("x", uuid="u"))
            self.assertIn("forgotten", who.error("child_exited", uuid="u")["error"])
            who.send(request("i", "initialize", hooks=None))
            self.assertEqual(who.answer("i")["response.code"], "child_exited")
        child.kill()
        for who in (a, c):
            who.event("session_removed")
        self.assertEqual(d.sessions(), {})

    def test_an_upgrade_meanwhile(self):
        d, agent, a, child = self.going()
        c = self.held(d, request("1", "plenum_attach", session="work"), user("hi", uuid="u"))
        gone = self.held(d, request("1", "plenum_attach", session="work"))
        d.call("plenum_upgrade")
        c.drain(0.1)
        self.assertEqual(c.log, [])
        gone.reset()
        child.kill()
        self.assertIs(c.answer("1")["response.response.created"], True)
        second = agent.child()
        second.wait(type="user", uuid="u")
        second.kill()

    def test_a_shutdown_meanwhile(self):
        d, agent, a, child = self.going()
        c = self.held(d, request("1", "plenum_attach", session="work"))
        d.process.send_signal(signal.SIGTERM)
        a.event("shutting_down")
        child.kill()
        self.assertEqual(c.answer("1")["response.code"], "shutting_down")
        d.ended(0)
        self.daemons.remove(d)
        self.addCleanup(d.destroy)


class OrphanTest(Case):
    def family(self, d, child):
        pids = [child.spawn(SLEEPER + [d.root + "/"]), child.spawn(SLEEPER + [d.root + "/"], setsid=True)]
        script = ("import os,sys,time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
                  "os.mkdir(sys.argv[1] + '.%d' % os.getpid())\ntime.sleep(120)\n")
        child.spawn([sys.executable, "-I", "-S", "-c", script, d.root + "/escaped"], setsid=True)
        pids += until(lambda: [int(name.split(".")[1]) for name in os.listdir(d.root) if name.startswith("escaped.")])
        return pids

    def gone(self, pids):
        until(lambda: not any(alive(p) for p in pids), what="the family of the child to be gone: %s" % pids)

    def test_stop(self):
        for how in ("graceful", "kill"):
            d, agent = self.start()
            a = d.attached()
            pids = self.family(d, agent.child())
            a.request("plenum_stop", how=how)
            a.event("child_exited")
            self.gone(pids)
            until(lambda: children_of(d.pid) == [], what="no zombies")

    def test_the_child_is_killed(self):
        """What is in its process session ends with it."""
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        pids = self.family(d, child)
        child.kill()
        a.event("child_exited")
        self.gone(pids[:1])
        self.assertTrue(all(alive(p) for p in pids[1:]))
        a.request("plenum_stop")
        self.gone(pids)

    def test_of_one_session_only(self):
        d, agent = self.start()
        a = d.attached("s1")
        one = agent.child()
        b = d.attached("s2")
        two = agent.child()
        mine, others = self.family(d, one), [two.spawn(SLEEPER + [d.root + "/other"], setsid=True)]
        a.request("plenum_stop", how="kill")
        a.event("child_exited")
        self.gone(mine)
        self.assertTrue(all(alive(p) for p in others))
        two.mark(b)

    def test_the_daemon_ends(self):
        d, agent = self.start()
        a = d.attached()
        pids = self.family(d, agent.child())
        d.process.terminate()
        a.event("shutting_down")
        d.ended(0, 15)
        self.assertFalse([p for p in pids if alive(p)])
        d.process = None

    def test_a_stubborn_child_at_the_daemons_end(self):
        d, agent = self.start(mode={"eof": "ignore", "term": "ignore"}, profile=QUICK)
        d.attached()
        child = agent.child()
        d.stop()
        self.assertFalse(alive(child.pid))
        d.process = None

    def test_the_daemon_is_killed(self):
        """C28."""
        for mode in ({}, {"eof": "ignore", "term": "ignore"}):
            d, agent = self.start(mode=mode)
            d.attached()
            child = agent.child()
            d.kill9()
            self.gone([child.pid])
            d.process = None


class ShutdownTest(Case):
    def test_clients_are_told(self):
        d, agent = self.start()
        a, w = d.attached(), d.client()
        w.request("plenum_subscribe")
        agent.child()
        d.process.terminate()
        a.event("shutting_down")
        w.event("shutting_down")
        a.wait_eof()
        d.ended()
        d.process = None

    def test_in_the_middle_of_a_flood(self):
        d, agent = self.start(profile=QUICK)
        a, stalled = d.attached(), d.attached()
        child = agent.child()
        child.flood(b'{"type":"x","p":"@P@"}', 1000000, pad=1000)
        a.wait(type="x")
        d.process.terminate()
        begun = time.monotonic()
        while d.process.poll() is None:
            a.drain(0.05)
            del a.log[:], a.inbox[:]
            self.assertLess(time.monotonic() - begun, 10)
        d.ended()
        self.assertTrue(stalled)
        d.process = None

    def test_new_sessions_are_refused_meanwhile(self):
        d, agent = self.start(mode={"eof": 0.5})
        a, b = d.attached(), d.client()
        b.hello()
        agent.child()
        d.process.terminate()
        a.event("shutting_down")
        try:
            self.assertRefused("shutting_down", b.attach, "new")
        except (Timeout, BrokenPipeError, ConnectionResetError):
            pass  # it may have closed already
        d.ended()
        self.assertEqual(agent.starts, 1)
        d.process = None

    def test_interrupt_and_the_second_is_faster(self):
        d, agent = self.start(mode={"eof": "ignore", "term": "ignore"}, profile={"stop_grace": "20s"})
        a = d.attached()
        child = agent.child()
        d.process.send_signal(signal.SIGINT)
        a.event("shutting_down")
        child.event("eof")
        d.process.send_signal(signal.SIGINT)
        d.process.wait(TIMEOUT)
        until(lambda: not alive(child.pid))
        d.process = None


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


class LogsTest(Case):
    def test_the_tail(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        child.stderr("first line\nsecond line\n")
        until(lambda: "second line" in str(a.request("plenum_logs", session="s")))
        self.assertIn("first line", str(d.call("plenum_logs", session="s")))
        self.assertRefused("no_such_session", a.request, "plenum_logs", session="nope")

    def test_a_line_without_an_end(self):
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
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
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        child.stderr(b"x" * 500000 + b"\nlast\n")
        until(lambda: "last" in str(a.request("plenum_logs", session="s")))
        self.assertLess(len(str(a.request("plenum_logs", session="s"))), 300000)


if __name__ == "__main__":
    unittest.main()
