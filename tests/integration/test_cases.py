# SPDX-License-Identifier: MIT
"""The inputs of CASES as they stand there, where the other files try only one of their kind. Each test names its case."""
import os
import pty
import shutil
import signal
import subprocess
import threading
import unittest

from harness import (Case, Daemon, alive, allow, build_file, deny, dump, err, hook, init, mcp, ok, perm, request, until, user,
                     RESULT)


def init_line(conversation="c-1", **more):
    return dict({"type": "system", "subtype": "init", "session_id": conversation}, **more)


class Cases(Case):
    def ctl(self, d, *args, **env):
        return subprocess.run([build_file("plenumctl"), *args], env=dict(d.env, **env), capture_output=True, text=True, timeout=20,
                              check=False)

    def program(self, d, mode, agent):
        """The program of the profile `linked`, which runs the agent."""
        with open(d.root + "/claude", "w") as f:
            f.write("#!/bin/sh\nexec %s \"$@\"\n" % agent.command)
        os.chmod(d.root + "/claude", mode)

    def linked(self, **options):
        d, agent = self.start(profiles={"profile linked": {"command": "/LINK"}}, **options)
        with open(d.conf) as f:
            conf = f.read().replace("/LINK", d.root + "/claude")
        with open(d.conf, "w") as f:
            f.write(conf)
        d.call("plenum_reload")
        return d, agent


class StartTest(Cases):
    def test_which_of_the_ways_a_program_cannot_start(self):
        """C11: what is wrong with the program, its path, and the PATH that was searched, in words that differ."""
        d, agent = self.linked(env={"PATH": "/usr/bin:/bin"}, agents=("agent",))
        path, seen = d.root + "/claude", set()
        for content, mode, words in ((None, 0, "is not there"), ("#!/bin/sh\n", 0o644, "is not executable"), ("text\n", 0o755, "#! line"),
                                     ("#!/no/such/interpreter\n", 0o755, "/no/such/interpreter")):
            if content is not None:
                with open(path, "w") as f:
                    f.write(content)
                os.chmod(path, mode)
            e = self.assertRefused("spawn_failed", d.client().attach, "x", profile="linked")
            self.assertIn(path, e.text)
            self.assertIn(words, e.text)
            seen.add(e.text)
        os.unlink(path)
        os.mkdir(path)
        seen.add(self.assertRefused("spawn_failed", d.client().attach, "x", profile="linked").text)
        self.assertEqual(len(seen), 5)
        os.rmdir(path)
        with open(path, "w") as f:
            f.write("#!/usr/bin/env node-that-is-missing\n")
        os.chmod(path, 0o755)
        a = d.client()
        a.attach("x", profile="linked")
        self.assertEqual(a.event("child_exited")["status"], 127)
        self.assertIn("node-that-is-missing", a.initialize()["response.error"])
        self.assertEqual(agent.starts, 0)

    def test_an_update_falls_into_the_next_start(self):
        """C32: the program is missing, then not executable yet, then fine; the prompt runs all the same."""
        for _ in range(5):  # it is tried for three seconds, which this test must hit
            d, a = self.update()
            if not a.events("error"):
                return
        self.fail("the prompt does not wait: %s" % a.events("error"))

    def without_its_program(self):
        """A session that has had a turn, and then lost its program and its child."""
        d, agent = self.linked(mode={"session_id": "c-1"})
        self.program(d, 0o755, agent)
        a = d.client()
        a.attach("x", profile="linked")
        child = agent.child()
        child.print(init_line(claude_code_version="2.1.332"), RESULT)
        a.wait(type="result")
        self.assertEqual(d.sessions()["x"]["version"], "2.1.332")
        os.unlink(d.root + "/claude")
        child.exit(0)
        a.event("child_exited")
        return d, agent, a

    def update(self):
        d, agent, a = self.without_its_program()
        a.send(user("again", uuid="u"))
        until(lambda: "is not there" in d.log())
        self.program(d, 0o644, agent)
        until(lambda: "is not executable" in d.log() or a.events("error"))
        self.program(d, 0o755, agent)
        until(lambda: agent.starts == 2 or a.events("error"))
        if agent.starts == 2:
            agent.child().wait(type="user", uuid="u")
        return d, a

    def test_an_update_that_takes_longer(self):
        """C32: a prompt that comes after one that was given up is tried as often as that one."""
        d, _, a = self.without_its_program()

        def tries():
            with open(d.log_path) as f:
                return f.read().count("is not there")

        counted = [0]
        for uuid in ("u-1", "u-2"):
            a.send(user("again", uuid=uuid))
            a.error("spawn_failed", uuid=uuid)
            counted.append(tries())
        self.assertGreater(counted[1], 1)
        self.assertEqual(counted[2], 2 * counted[1])

    def test_a_prompt_where_the_folder_is_gone(self):
        """C30: the error names the folder and what is wrong with it, and whose prompt it was."""
        d, agent = self.start(mode={"session_id": "c-1"})
        os.mkdir(d.root + "/w")
        a = d.client()
        a.attach("s", cwd=d.root + "/w")
        child = agent.child()
        child.print(init_line(), RESULT)
        a.wait(type="result")
        os.rmdir(d.root + "/w")
        child.exit(0)
        a.event("child_exited")
        a.send(user("again", uuid="u"))
        e = a.error("spawn_failed", uuid="u")["error"]
        self.assertIn(d.root + "/w", e)
        self.assertIn("No such file or directory", e)
        os.mkdir(d.root + "/w")
        a.send(user("again", uuid="u"))
        agent.child().wait(type="user", uuid="u")

    def test_long_arguments_are_named(self):
        """C64: which option is too long, and the limit."""
        d, agent = self.start()
        for n in (131072, 1000000):
            e = self.assertRefused("spawn_failed", d.client().attach, "x", args=["--model", "m", "--append-system-prompt", "x" * n])
            for word in ("--append-system-prompt", str(n), "131071"):
                self.assertIn(word, e.text)
            e = self.assertRefused("spawn_failed", d.client().attach, "x", args=["--agents=" + "x" * n])
            self.assertIn("--agents", e.text)
            self.assertLess(len(e.text), 500)
            e = self.assertRefused("spawn_failed", d.client().attach, "x", env={"LONG_ONE": "x" * n})
            self.assertIn("LONG_ONE", e.text)

    def test_sessions_have_the_login_of_who_asks(self):
        """C63."""
        d, agent = self.start(env={"SSH_AUTH_SOCK": "/tmp/first"})
        for name in ("a", "b"):
            self.assertEqual(self.ctl(d, "new", name, SSH_AUTH_SOCK="/tmp/" + name, CLAUDECODE="1").returncode, 0)
            child = agent.child()
            self.assertEqual(child.env["SSH_AUTH_SOCK"], "/tmp/" + name)
            self.assertNotIn("CLAUDECODE", child.env)

    def test_a_session_that_is_woken_has_the_login_of_who_wakes_it(self):
        """C63, C11: by a prompt, by an attach, and after a restart of the daemon; the PATH of who made it is kept."""
        d, agent = self.start(mode={"session_id": "c-1"}, profiles={"profile linked": {"command": "claude"}})
        self.program(d, 0o755, agent)

        def visitor(name, path, **members):
            c = d.client(env={"SSH_AUTH_SOCK": "/tmp/" + name, "PATH": path, "CLAUDECODE": "1"})
            c.attach("s", **members)
            return c

        def check(client, name):
            child = agent.child()
            self.assertEqual(child.env["SSH_AUTH_SOCK"], "/tmp/" + name)
            self.assertNotIn("CLAUDECODE", child.env)
            child.print(init_line(), RESULT)
            client.wait(type="result")
            child.exit(0)
            client.event("child_exited")

        check(visitor("a", d.root, cwd="/", profile="linked"), "a")
        b = visitor("b", "/usr/bin")
        b.send(user("x"))
        check(b, "b")
        check(visitor("c", "/usr/bin", wake=True), "c")
        e = d.client(env={"SSH_AUTH_SOCK": "/tmp/e", "PATH": "/usr/bin"})
        e.send(user("x", session_id="s"))  # by the prompt that attaches it, too
        check(e, "e")
        d.kill9()
        d.start()
        check(visitor("d", d.root, wake=True), "d")

    def test_nothing_is_put_in_to_get_around_a_refusal(self):
        """C72: beside what the manual names, the child's environment is the daemon's."""
        d, agent = self.start()
        d.attached(args=["--permission-mode", "bypassPermissions"])
        child = agent.child()
        self.assertEqual(child.argv[1:], ["--permission-mode", "bypassPermissions"])
        more = set(child.env) - set(d.env) - {"USER", "LOGNAME", "SHELL", "PWD", "PLENUM_CHILD", "PLENUM_INSTANCE"}
        self.assertEqual({v for v in more if not v.startswith(("SSH_", "XDG_", "DISPLAY", "DBUS", "GPG_"))}, set())


class EndTest(Cases):
    def test_a_prompt_that_the_child_died_of(self):
        """C75: the prompt is not lost without a word, and the cause is named."""
        d, agent = self.start()
        a, b = d.attached(), d.attached()
        child = agent.child()
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
        self.assertRegex(a.error("child_exited", uuid="u2")["error"], r"status 1 .*: nothing on stderr$")
        b.sync()
        self.assertNone(b.events("error"))

    def test_the_last_words_are_more_than_the_last_line(self):
        """C14, C11: what Node prints last is its version, and what went wrong stands before it."""
        d, agent = self.start(mode={"init": "manual"})
        a = d.attached()
        child = agent.child()
        a.send(init("a-1", None), user("x", uuid="u"))
        child.wait(type="user")
        child.stderr("app.js:1\nthrow it\n\nError: no login\n    at app.js:1\n\nNode.js v20.1.0\n\n")
        child.event("stderr_done")
        child.exit(1)
        for text in (a.answer("a-1")["response.error"], a.error("child_exited", uuid="u")["error"], d.sessions()["s"]["reason"]):
            self.assertIn("Error: no login", text)
            self.assertIn("Node.js v20.1.0", text)

    def test_the_wind_down(self):
        """C57: everybody is told at the start and at the end; hooks and prompts on the way reach their owners."""
        d, agent = self.start(profile={"stop_grace": "10s"})
        a, b = d.attached(name="a"), d.attached()
        child = agent.child()
        a.initialize({"PreToolUse": [{"hookCallbackIds": ["h"]}]})
        table = until(lambda: [m for m in child.seen(request__subtype="initialize") if m["request.hooks.PreToolUse"]])[-1]
        a.send(user("x", uuid="u"))
        child.wait(type="user", uuid="u")
        a.request("plenum_stop")
        m = b.event("changed", what="stopping")
        self.assertEqual((m["value"], m["by.name"]), ("graceful", "a"))
        interrupt = child.request("interrupt")
        child.print(hook("k-1", table["request.hooks.PreToolUse"][0]["hookCallbackIds"][0]), perm("k-2"))
        a.send(ok(a.wait(type="control_request", request__subtype="hook_callback")["request_id"], {"x": 1}))
        self.assertEqual(child.answer("k-1")["response.response"], {"x": 1})
        b.send(deny(b.wait(type="control_request", request__subtype="can_use_tool")["request_id"]))
        child.answer("k-2")
        child.reply(interrupt)
        child.print(dict(RESULT, user_message_uuids=["u"]))
        for c in (a, b):
            self.assertIs(c.event("child_exited")["wanted"], True)
        self.assertEqual(child.had("signal"), [])

    def test_other_ends_that_are_asked_for(self):
        """C57: sleep, `end_session` and a kill are told beforehand, too."""
        for how, value in (("plenum_hibernate", "graceful"), ("end_session", "graceful"), ("kill", "kill")):
            d, agent = self.start()
            a, b = d.attached(), d.attached()
            agent.child().mark(a, b)
            a.request("plenum_stop", how="kill") if how == "kill" else a.request(how)
            b.event("child_exited", wanted=True)
            events = [m["event"] for m in b.log if m["event"] in ("changed", "child_exited")]
            self.assertEqual(events, ["changed", "child_exited"])
            self.assertEqual(b.events("changed")[0]["value"], value)
            a.event("child_exited")
            own = [m["event"] or m["type"] for m in a.log
                   if m["type"] == "control_response" or m["event"] in ("changed", "child_exited")]
            self.assertEqual(own[-3:], ["control_response", "changed", "child_exited"], how)

    def test_three_sessions_and_a_kill(self):
        """C28: one in mid-turn, one that asks, one idle, all of them stubborn; then they are asleep, with their ids."""
        d, agent = self.start(mode={"eof": "ignore", "term": "ignore"})
        names = ("mid", "ask", "idle")
        clients, children = [d.attached(n) for n in names], [agent.child() for _ in names]
        for name, c, child in zip(names, clients, children):
            child.print(init_line("c-" + child.env["PLENUM_CHILD"]), RESULT)
        for c in clients:
            c.wait(type="result")
        clients[0].send(user("x", uuid="u"))
        next(c for c in children if c.env["PLENUM_CHILD"] == "mid").wait(type="user")
        next(c for c in children if c.env["PLENUM_CHILD"] == "ask").print(perm("k-1"))
        clients[1].wait(type="control_request")
        d.kill9()
        until(lambda: not any(alive(c.pid) for c in children))
        d.start()
        for name in names:
            got = d.client().attach(name, create="never")
            self.assertEqual((got["state"], got["conversation_id"], got["pid"], got["pending"]), ("asleep", "c-" + name, None, []))

    def test_login_expired(self):
        """C70: the lines pass, the cause is in the notice; neither token nor address stands in the log."""
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
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


class TurnTest(Cases):
    def test_a_left_over_result(self):
        """C35: an old CLI's result of the interrupted turn comes behind the next prompt."""
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        a.send(user("one"))
        child.wait(type="user")
        a.send(request("a-1", "interrupt"), user("next"))
        child.reply(child.request("interrupt"))
        child.wait(type="user")
        old = {"type": "result", "subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_streaming"}
        child.print(old, {"type": "assistant", "message": {}})
        a.wait(type="assistant")
        self.assertEqual(d.state_of("s"), "busy")
        child.print(RESULT)
        d.wait_state("s", "idle")
        self.assertEqual([m.obj for m in a.seen(type="result")], [old, RESULT])

    def test_who_asked_without_replays(self):
        """C37: a child that echoes no prompts; whose they were is told all the same."""
        d, agent = self.start()
        a, b, o = d.attached(name="a"), d.attached(name="b"), d.attached(role="observer")
        child = agent.child()
        a.send(user("long job", uuid="ua"))
        child.wait(type="user", uuid="ua")
        b.send(user("also this", uuid="ub"))
        child.wait(type="user", uuid="ub")
        child.print(RESULT)
        for c in (a, b, o):
            m = c.event("turn_ended")
            self.assertEqual((m["uuids"], [x["name"] for x in m["clients"]]), (["ua", "ub"], ["a", "b"]))

    def test_a_prompt_that_is_held_is_told(self):
        """C37: queued with nobody told is no answer; all see whose it is, and who comes later finds it in the replay."""
        d, agent = self.start(profile={"prompts": "queue"})
        a, b, o = d.attached(name="a"), d.attached(name="b"), d.attached(role="observer")
        child = agent.child()
        a.send(user("long job", uuid="ua"))
        child.wait(type="user", uuid="ua")
        b.send(user("also this", uuid="ub"))
        for c in (a, b, o):
            self.assertEqual(c.event("changed", what="prompt_held", value="ub")["by.name"], "b")
        self.assertNone(child.seen(type="user", uuid="ub"))
        late = d.attached(replay="all")
        late.event("changed", what="prompt_held", value="ub")
        child.print(dict(RESULT, user_message_uuids=["ua"]))
        child.wait(type="user", uuid="ub")
        a.sync()
        self.assertEqual([m["value"] for m in a.events("changed", what="prompt_held")], ["ub"])

    def test_what_a_silent_child_is_about(self):
        """C69: since when nothing came, since when the prompt waits, and what is open."""
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        a.send(user("x", uuid="u"))
        child.wait(type="user", uuid="u")
        child.print({"type": "assistant"}, perm("k-1"))
        a.wait(type="control_request")
        until(lambda: d.call("plenum_status", session="s")["output_ms"] > 50)
        status = d.call("plenum_status", session="s")
        self.assertEqual((status["state"], status["pending"]), ("asking", 1))
        self.assertGreaterEqual(status["prompts"][0]["since_ms"], status["output_ms"])
        self.assertGreater(d.sessions()["s"]["idle_ms"], 0)

    def test_a_slow_initialize_has_no_time_limit(self):
        """C68: the first answer may come later than any other request may take."""
        d, agent = self.start(mode={"init": "manual"}, profile={"control_timeout": "100ms"})
        a, b = d.attached(), d.attached()
        child = agent.child()
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

    def test_a_retry_is_told(self):
        """C71: cut right behind the write, sent again; A is told that it runs, B's other text runs under another uuid."""
        d, agent = self.start()
        uuid = "00000000-0000-4000-8000-000000000001"
        for name in (None, "a"):
            session = "s-%s" % name
            names = {"name": name} if name else {}
            a = d.attached(session, **names)
            child = agent.child()
            a.send(user("deploy", uuid=uuid))
            a.close()
            a = d.attached(session, **names)
            a.send(user("deploy", uuid=uuid))
            self.assertEqual(a.error("duplicate_request")["uuid"], uuid)
            b = d.attached(session, name="b")
            b.send(user("other", uuid=uuid))
            m = b.event("changed", what="uuid", was=uuid)
            child.wait(type="user", uuid=m["value"])
            self.assertEqual([m["message.content"] for m in child.seen(type="user")], ["deploy", "other"])


    def test_a_retry_waits_for_the_end(self):
        """C71: who sends it again after a lost connection hears how it ends, also with no more input."""
        for ending in ("result", "exit"):
            d, agent = self.start()
            a = d.attached(name="a")
            child = agent.child()
            a.send(user("deploy", uuid="u"))
            child.wait(type="user", uuid="u")
            a.close()
            a = d.attached(name="a")
            a.send(user("deploy", uuid="u"))
            a.error("duplicate_request", uuid="u")
            a.half_close()
            until(lambda: not any(c["approve"] for c in d.call("plenum_status", session="s")["clients"]), what="its end of input")
            if ending == "result":
                child.print(dict(RESULT, user_message_uuids=["u"]))
                a.wait(type="result")
            else:
                child.kill()
                a.error("child_exited", uuid="u")
            a.wait_eof()
            self.assertEqual([m["uuid"] for m in child.log if m["type"] == "user"], ["u"])


class LineTest(Cases):
    def test_a_byte_order_mark_of_the_child(self):
        """C51: skipped before its first line, of each child anew; no line of JSON anywhere else."""
        d, agent = self.start(mode={"session_id": "c-1", "init": "manual"})
        a = d.attached()
        child = agent.child()
        bom = b"\xef\xbb\xbf"
        child.print(bom + dump(init_line()) + b"\n", bom + b'{"type":"x"}\n', RESULT)
        self.assertEqual(a.wait(subtype="init").raw, dump(init_line()))
        a.wait(type="result")
        self.assertNone(a.seen(type="x"))
        self.assertEqual(len(a.events("stray_output")), 1)
        child.exit(0)
        a.event("child_exited")
        a.send(user("on"))
        child = agent.child()
        child.print(bom + dump(init_line()) + b"\n")
        a.wait(subtype="init")

    def test_a_pause_while_20_mb_pass(self):
        """C15: who asks to be waited for loses nothing; anybody else is told to the line what is missing."""
        d, agent = self.start(limits={"lag_wait": "10min"})
        a, b = d.attached(), d.attached(on_lag="wait")
        child = agent.child()
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 20000, pad=1000)
        child.print(RESULT)
        done = threading.Thread(target=lambda: a.wait(type="result", timeout=30))
        a.wait(type="x", n=3000, timeout=30)  # a quarter of the tape is 4 MiB
        done.start()
        b.wait(type="result", timeout=30)
        done.join()
        self.assertEqual([m["n"] for m in b.log if m["type"] == "x"], list(range(20000)))
        d, agent = self.start()
        a, b = d.attached(), d.attached(tag=True)
        child = agent.child()
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 20000, pad=1000)
        child.print(RESULT)
        a.wait(type="result", timeout=30)
        b.wait(type="result", timeout=30)
        numbers = [m["plenum_seq"] for m in b.log if m["plenum_seq"] is not None]
        missing = set(range(numbers[0], numbers[-1] + 1)) - set(numbers)
        told = set()
        for m in b.events("gap"):
            told |= set(range(m["from"], m["to"] + 1))
        self.assertEqual(missing, told)

    def test_over_the_limit_of_the_real_size(self):
        """C02: 70 MiB with the limits as they are; nobody waits for ever for what could not be read."""
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        pad = b"x" * (70 << 20)
        child.print(b'{"type":"user","message":{"role":"user","content":"' + pad + b'"}}\n', RESULT)
        a.error("too_long", timeout=30)
        a.wait(type="result")
        a.raw(b'{"type":"control_request","request_id":"big","request":{"subtype":"x","d":"' + pad + b'"}}\n', timeout=30)
        self.assertEqual(a.answer("big", timeout=30)["response.code"], "too_long")
        child.print(perm("k-1"))
        rid = a.wait(type="control_request")["request_id"]
        a.raw(b'{"type":"control_response","response":{"subtype":"success","request_id":' + dump(rid) + b',"response":{"behavior":"allow",'
              b'"updatedInput":{"d":"' + pad + b'"}}}}\n', timeout=30)
        self.assertEqual(a.error("too_long", timeout=30)["request_id"], rid)
        self.assertNone(child.answers("k-1"))
        a.send(allow(rid))
        child.answer("k-1")

    def test_over_long_requests_of_the_child(self):
        """C02: each kind is refused under its id; a guard that cannot see the call denies it."""
        d, agent = self.start(limits={"child_line": "64K"})
        a = d.attached()
        child = agent.child()
        a.initialize({"PreToolUse": [{"hookCallbackIds": ["h"]}]}, sdkMcpServers=["t"])
        table = until(lambda: [m for m in child.seen(request__subtype="initialize") if m["request.hooks.PreToolUse"]])[-1]
        pad = "x" * 100000
        child.print(hook("k-1", table["request.hooks.PreToolUse"][0]["hookCallbackIds"][0], pad=pad),
                    mcp("k-2", "t", {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"pad": pad}}),
                    request("k-3", "elicitation", message=pad), request("k-4", "never_heard_of", pad=pad))
        out = child.answer("k-1")["response.response.hookSpecificOutput"]
        self.assertEqual(out["permissionDecision"], "deny")
        for k in ("k-2", "k-3", "k-4"):
            self.assertEqual(child.answer(k)["response.subtype"], "error")
        rid = a.ask("mcp_status")
        child.print(ok(child.request("mcp_status")["request_id"], {"pad": pad}))
        self.assertEqual(a.answer(rid)["response.code"], "too_long")

    def test_near_misses_name_what_is_wrong(self):
        """C73."""
        d, agent = self.start()
        a = d.attached()
        child = agent.child()
        child.print(perm("k-1"))
        rid = dump(a.wait(type="control_request")["request_id"])
        for raw, words in (
                (b'{"subtype":"interrupt"}', ("type", "control_request")),
                (b'{"type":"control_request","request_id":"a-2"}', ("request",)),
                (b'{"type":"control_response","request_id":' + rid + b',"response":{"behavior":"allow"}}', ("request_id", "inside")),
                (b'{"type":"control_cancel_request"}', ("request_id",)),
                (b'{"type":"control_response","response":{"subtype":"success","request_id":' + rid + b',"behavior":"allow"}}',
                 ("response.response", "open")),
                (b'{"type":"control_response","response":{"subtype":"success","request_id":' + rid
                 + b',"response":{"decision":"allow"}}}', ("behavior", "open"))):
            a.raw(raw + b"\n")
            m = a.wait(lambda m: m["event"] == "error" or m["response.subtype"] == "error")
            for word in words:
                self.assertIn(word, m["error"] or m["response.error"], raw)
        a.sync()
        self.assertNone(child.seen(lambda m: m["request.subtype"] == "interrupt" or m["type"] == "control_response"))
        self.assertEqual(d.state_of("s"), "asking")


class NobodyTest(Cases):
    def test_all_kinds_after_the_wait(self):
        """C44, C22: nobody is attached and a limit is set; the words name the reason, and nothing is allowed."""
        d, agent = self.start(profile={"permission_wait": "1s"})
        o = d.attached(role="observer")
        child = agent.child()
        child.print(perm("k-1"), request("k-2", "elicitation", message="pick", requestedSchema={}), request("k-3", "never_heard_of"))
        m = child.answer("k-1")["response.response"]
        self.assertEqual(m["behavior"], "deny")
        self.assertIn("no client answered within 1 s", m["message"])
        self.assertEqual(child.answer("k-2")["response.response"], {"action": "cancel"})
        self.assertEqual(child.answer("k-3")["response.subtype"], "error")
        for _ in range(3):
            self.assertIn("within 1 s", o.event("settled", decision="timeout")["reason"])


    def test_one_declines_and_the_other_leaves(self):
        """C44: who said that it cannot answer does not hold the request any more; the wait for somebody begins."""
        d, agent = self.start(profile={"permission_wait": "300ms"})
        a = d.attached()
        child = agent.child()
        for k, line in (("k-1", request("k-1", "elicitation", message="pick", requestedSchema={})), ("k-2", request("k-2", "never_heard_of"))):
            b = d.attached()
            child.print(line)
            rid = a.wait(type="control_request")["request_id"]
            b.wait(type="control_request")
            a.send(err(rid, "Unsupported"))
            a.sync()
            self.assertNone(child.answers(k))
            b.close()
            child.answer(k)


class TerminalTest(Cases):
    def in_terminal(self, d, program, *args):
        pid, fd = pty.fork()
        if pid == 0:
            try:
                os.execve(build_file(program), [program, *args], d.env)
            finally:
                os._exit(126)
        return pid, fd

    def ended(self, pid):
        return until(lambda: os.waitpid(pid, os.WNOHANG) != (0, 0), what="the program in the terminal to end")

    def test_what_ends_with_the_terminal_of_a_client(self):
        """C58: Ctrl-C or a closed window ends that client alone; stopping ends everything."""
        d, agent = self.start()
        a = d.attached("other")
        other = agent.child()
        mine = None
        for leave in (lambda fd: os.write(fd, b"\x03"), os.close):
            pid, fd = self.in_terminal(d, "plenumctl", "attach", "mine")
            mine = mine or agent.child()
            until(lambda: d.sessions().get("mine", {}).get("attachments") == 1)
            leave(fd)
            self.ended(pid)
            until(lambda: d.sessions()["mine"]["attachments"] == 0)
            for child in (mine, other):
                child.caught_up()
                self.assertEqual(child.had("signal") + child.had("eof"), [])
        other.mark(a)
        self.assertEqual(self.ctl(d, "shutdown").returncode, 0)
        d.ended()
        self.assertFalse(alive(mine.pid) or alive(other.pid))
        d.process = None

    def daemon_in_terminal(self, **options):
        d, agent = self.start(**options)
        d.stop()
        d.process = None
        pid, fd = self.in_terminal(d, "plenumd")
        self.addCleanup(self.gone, pid)

        def accepts():
            try:
                d.call("plenum_hello")
                return True
            except OSError:
                return False

        until(accepts, what="plenumd in the terminal to accept")
        return d, agent, pid, fd

    def gone(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def test_the_terminal_of_the_daemon_closes(self):
        """C58: sessions go on, with nowhere to log to."""
        d, agent, pid, fd = self.daemon_in_terminal()
        a = d.attached()
        child = agent.child()
        os.close(fd)
        for _ in range(20):
            child.mark(a)
            d.call("plenum_hello")
        self.assertEqual(child.had("signal"), [])
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertFalse(alive(child.pid))

    def test_ctrl_c_once_and_twice(self):
        """C58: the first is an orderly stop, the second a fast one; the children get no signal from the terminal."""
        for twice in (False, True):
            d, agent, pid, fd = self.daemon_in_terminal(mode={"eof": "ignore", "term": "ignore"} if twice else {},
                                                        profile={"stop_grace": "30s"})
            a = d.attached()
            child = agent.child()
            os.write(fd, b"\x03")
            a.event("shutting_down")
            child.event("eof")
            if twice:
                os.write(fd, b"\x03")
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            until(lambda: not alive(child.pid))
            self.assertEqual(child.had("signal"), [])
            os.close(fd)
            a.close()


class PathTest(Cases):
    def test_a_long_path_at_the_client(self):
        """C60: the whole path, its length and the limit; never cut."""
        d, _ = self.start()
        for n in (108, 109, 300):
            path = "/tmp/" + "s" * (n - 5)
            for p in (self.ctl(d, "ls", PLENUM_SOCKET=path), self.ctl(d, "--socket", path, "ls"),
                      subprocess.run([build_file("plenum-shim"), "-p", "--input-format", "stream-json", "--output-format", "stream-json"],
                                     env=dict(d.env, PLENUM_SOCKET=path), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                     timeout=20, check=False)):
                self.assertNotEqual(p.returncode, 0)
                for word in ("107", str(n)):
                    self.assertIn(word, p.stderr)
                self.assertRegex(p.stderr, path + r"\b")
        multi = "/tmp/" + "\u00e9" * 60
        self.assertIn("125", self.ctl(d, "ls", PLENUM_SOCKET=multi).stderr)

    def test_the_socket_is_gone(self):
        """C62: whoever comes next finds the same daemon and its sessions."""
        d, _ = self.start()
        d.attached("s1")
        os.unlink(d.socket)
        until(lambda: os.path.exists(d.socket))
        p = self.ctl(d, "ls")
        self.assertEqual((p.returncode, "s1" in p.stdout), (0, True), p)

    @unittest.skipUnless(os.getuid() == 0, "needs root, to leave what belongs to somebody else")
    def test_what_sudo_has_left(self):
        """C61: a lock file of root's in our folder: the cause is named."""
        d, _ = self.start(run_as="nobody")
        d.stop()
        d.process = None
        path = d.socket + ".lock"
        os.chown(path, 0, 0)
        os.chmod(path, 0o600)
        p = subprocess.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", build_file("plenumd")], env=d.env,
                           capture_output=True, text=True, timeout=20, check=False)
        self.assertEqual(p.returncode, 73)
        self.assertIn(path + ", which belongs to another user: Permission denied", p.stderr)

    def test_the_runtime_directory_goes_with_a_logout(self):
        """C59, C62: all of it is removed, and comes back with the next login; sessions and connections go on meanwhile."""
        d, agent = self.start()
        a = d.attached("s1")
        child = agent.child()
        os.kill(d.pid, signal.SIGSTOP)  # else it makes the socket again before the folder is gone
        shutil.rmtree(d.run)
        os.kill(d.pid, signal.SIGCONT)
        until(lambda: "the socket is gone" in d.log())
        child.mark(a)
        self.assertFalse(os.path.exists(d.run))
        os.mkdir(d.run, 0o700)
        until(d.accepts, what="the socket to be there again")
        self.assertIn("s1", d.sessions())
        os.unlink(d.socket)
        until(d.accepts, what="the new folder to be watched")
        second = Daemon({}, root=d.root, start=False)
        p = second.launch()
        self.assertEqual(p.wait(10), 69)

    def test_conversations_of_two_names(self):
        """C26: the asked-for id and the reported one are both told; the next resume takes the one that is known to exist."""
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

    def test_a_session_is_never_started_anew_in_silence(self):
        """C26, C78: the child knows neither id; both are tried, none without one, and whoever prompts hears why."""
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
        for uuid in ("u-1", "u-2"):
            a.send(user("on", uuid=uuid))
            self.assertIn("No conversation found", a.error("child_exited", uuid=uuid)["error"])
        while len(tried) < 2 or agent.starts > len(tried) + 1:
            tried.append([w for w in agent.child().argv if w.startswith("--resume=")])
        self.assertEqual(tried[0], ["--resume=X"])
        self.assertIn(["--resume=Y"], tried)
        self.assertNotIn([], tried)


if __name__ == "__main__":
    unittest.main()
