#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plenum-fakeagent over its stdin and stdout: what a client of the stream-json protocol meets (protocol-facts)."""
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

AGENT = os.environ.get("FAKEAGENT", "plenum-fakeagent")
SCENARIOS = os.environ.get("SCENARIOS", "examples/scenarios")
FLAGS = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
ASK = ["--permission-prompt-tool", "stdio"]
LIMIT = float(os.environ.get("PLENUM_TEST_TIMEOUT", "60"))  # seconds until a test gives up, as in the harness


class Agent:
    """A process with a line reader that has a deadline."""

    def __init__(self, folder, *args, env=None, flags=None):
        self.folder = folder
        full = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": folder, "XDG_STATE_HOME": folder + "/state"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                full[name] = os.environ[name]
        full.update(env or {})
        self.p = subprocess.Popen([AGENT, *(FLAGS if flags is None else flags), *args], cwd=folder, env=full,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.held = b""
        self.seen = []

    def raw(self, data):
        self.p.stdin.write(data)
        self.p.stdin.flush()

    def send(self, line):
        self.raw(json.dumps(line).encode() + b"\n")

    def prompt(self, text, uuid=None, **more):
        line = {"type": "user", "message": {"role": "user", "content": text}, **more}
        if uuid:
            line["uuid"] = uuid
        self.send(line)

    def request(self, request_id, subtype, **more):
        self.send({"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **more}})

    def answer(self, ask, payload):
        self.send({"type": "control_response", "response": {
            "subtype": "success", "request_id": ask["request_id"], "response": payload}})

    def line(self, limit=LIMIT):
        """The next line as bytes, or None at EOF; TimeoutError when none comes."""
        end = time.monotonic() + limit
        while b"\n" not in self.held:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.p.stdout], [], [], left)[0]:
                raise TimeoutError("no line; seen: %r" % self.seen[-5:])
            data = os.read(self.p.stdout.fileno(), 1 << 20)
            if not data:
                return None
            self.held += data
        line, self.held = self.held.split(b"\n", 1)
        return line

    def next(self, limit=LIMIT):
        line = self.line(limit)
        if line is None:
            raise EOFError("the agent has ended; seen: %r" % self.seen[-5:])
        self.seen.append(json.loads(line))
        return self.seen[-1]

    def until(self, test, limit=LIMIT):
        while True:
            frame = self.next(limit)
            if test(frame):
                return frame

    def result(self):
        return self.until(lambda f: f["type"] == "result")

    def response(self, request_id):
        return self.until(lambda f: f["type"] == "control_response" and
                          f["response"].get("request_id") == request_id)["response"]

    def ask(self, subtype=None):
        return self.until(lambda f: f["type"] == "control_request" and
                          (subtype is None or f["request"]["subtype"] == subtype))

    def close(self):
        """Ends stdin, reads what is left; returns code and stderr."""
        if not self.p.stdin.closed:
            try:
                self.p.stdin.close()
            except BrokenPipeError:
                pass
        rest = self.p.stdout.read()
        for line in (self.held + rest).split(b"\n"):
            try:
                self.seen.append(json.loads(line))
            except ValueError:
                pass
        err = self.p.stderr.read()
        return self.p.wait(LIMIT), err.decode(errors="replace")


def kinds(frames):
    """Frames as short words, for comparing an order."""
    out = []
    for f in frames:
        word = f.get("subtype") or f["type"]
        if f["type"] == "stream_event":
            word = f["event"]["type"]
        if f["type"] == "control_request":
            word = f["request"]["subtype"]
        if f["type"] == "control_response":
            word = "response"
        if f["type"] == "result":
            word = "result"
        if f["type"] == "user":
            word = "replay" if f.get("isReplay") else "user"
        if f["type"] in ("command_lifecycle",) or f.get("subtype") == "session_state_changed":
            word = f["state"]
        out.append(word)
    return out


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fakeagent-")
        self.agents = []

    def tearDown(self):
        for a in self.agents:
            if a.p.poll() is None:
                a.p.kill()
            a.p.wait()
            for f in (a.p.stdin, a.p.stdout, a.p.stderr):
                try:
                    f.close()
                except BrokenPipeError:
                    pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *args, **more):
        self.agents.append(Agent(self.folder, *args, **more))
        return self.agents[-1]

    def once(self, text, *args, **more):
        a = self.start(*args, **more)
        a.prompt(text, "u%d" % len(self.agents))
        result = a.result()
        a.close()
        return a, result

    def path(self, name):
        return os.path.join(self.folder, name)


class Turns(Case):
    def test_nothing_before_input(self):
        a = self.start()
        a.request("1", "initialize")
        self.assertEqual(a.next()["type"], "control_response")

    def test_order_of_a_turn(self):
        a = self.start("--replay-user-messages", env={"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"})
        a.prompt("hello", "u1")
        a.until(lambda f: f.get("state") == "idle")
        self.assertEqual(kinds(a.seen), ["running", "queued", "started", "init", "replay", "assistant", "result",
                                         "completed", "idle"])
        result = a.seen[-3]
        self.assertEqual(result["result"], "echo: hello")
        self.assertEqual(result["user_message_uuids"], ["u1"])
        self.assertEqual(result["user_message_uuid"], "u1")
        self.assertFalse(result["is_error"])
        self.assertEqual(a.close()[0], 0)

    def test_result_does_not_begin_with_its_type(self):
        a = self.start()
        a.prompt("x")
        while True:
            line = a.line()
            if b'"type":"result"' in line:
                break
        self.assertFalse(line.startswith(b'{"type"'))

    def test_partial_messages(self):
        a, _ = self.once("hello", "--include-partial-messages", "--replay-user-messages")
        self.assertEqual(kinds(a.seen)[2:], [
            "init", "status", "replay", "message_start", "content_block_start", "content_block_delta",
            "content_block_delta", "assistant", "content_block_stop", "message_delta", "message_stop", "result",
            "completed"])
        text = "".join(f["event"]["delta"]["text"] for f in a.seen
                       if f["type"] == "stream_event" and f["event"]["type"] == "content_block_delta")
        self.assertEqual(text, "echo: hello")

    def test_one_assistant_line_a_block(self):
        a, _ = self.once("@think hm@ @text one@ @text two@")
        lines = [f for f in a.seen if f["type"] == "assistant"]
        self.assertEqual([f["message"]["content"][0]["type"] for f in lines], ["thinking", "text", "text"])
        self.assertEqual({f["message"]["id"] for f in lines}, {lines[0]["message"]["id"]})
        self.assertEqual([len(f["message"]["content"]) for f in lines], [1, 1, 1])
        self.assertNotIn("user_message_uuids", lines[1])

    def while_it_asks(self, *prompts):
        """An agent that was sent the prompts while its first turn was certain to run."""
        a = self.start("--replay-user-messages", "--include-partial-messages", *ASK)
        a.prompt('@tool Bash {"command":"true"}@', "u1")
        ask = a.ask("can_use_tool")
        for text, uuid in prompts:
            a.prompt(text, uuid)
        a.answer(ask, {"behavior": "deny", "message": "no"})
        a.result()
        return a

    def test_waiting_prompts_are_merged(self):
        a = self.while_it_asks(("one", "q1"), ("two", "q2"))
        del a.seen[:]
        result = a.result()
        self.assertEqual(result["result"], "echo: one\ntwo")
        self.assertEqual(result["user_message_uuids"], ["q1", "q2"])
        replays = [(f["uuid"], f["message"]["content"]) for f in a.seen if f.get("isReplay")]
        self.assertEqual(replays, [("q1", "one"), ("q2", "one\ntwo")])

    def test_of_many_merged_prompts_the_last_and_the_first_are_named(self):
        uuids = ["q%d" % i for i in range(100)]
        a = self.while_it_asks(*[("x", uuid) for uuid in uuids])
        self.assertEqual(a.result()["user_message_uuids"], uuids[:63] + uuids[-1:])

    def test_a_uuid_runs_once(self):
        a = self.start("--replay-user-messages")
        a.prompt("x", "u1")
        a.result()
        a.prompt("y", "u1")
        a.prompt("z", "u2")
        self.assertEqual(a.result()["result"], "echo: z")
        self.assertEqual([f["uuid"] for f in a.seen if f.get("isReplay")], ["u1", "u1", "u2"])

    def test_silent_prompt(self):
        a = self.start()
        a.prompt("x", "u1", shouldQuery=False)
        result = a.result()
        self.assertEqual((result["num_turns"], result["result"]), (0, ""))

    def test_urgent_prompt(self):
        a = self.start("--include-partial-messages")
        a.prompt("@slow 50@ @long 5000@", "u1")
        a.until(lambda f: f["type"] == "stream_event" and f["event"]["type"] == "content_block_delta")
        a.prompt("now", "u2", priority="now")
        first, second = a.result(), a.result()
        self.assertEqual((first["subtype"], first["terminal_reason"]), ("success", "aborted_streaming"))
        self.assertEqual(second["user_message_uuids"], ["u2"])

    def test_error(self):
        a, result = self.once("@error the model is gone@")
        self.assertEqual((result["subtype"], result["is_error"]), ("success", True))
        self.assertEqual(result["terminal_reason"], "api_error")
        self.assertEqual(a.p.returncode, 1)

    def test_odd_text_survives(self):
        a = self.start()
        a.raw(b'{"type":"user","message":{"role":"user","content":"\\ud800 \\u0000 \\ud83d\\ude00 \\u2028"},"n":'
              b'123456789012345678901234567890,"e":1e999}\n')
        while True:
            line = a.line()
            if b'"type":"result"' in line:
                break
        self.assertIn(b'echo: \\ud800 \\u0000 \xf0\x9f\x98\x80 \\u2028"', line)

    def test_big_lines(self):
        a, result = self.once("y" * 3000000)
        self.assertEqual(len(result["result"]), 3000006)
        _, result = self.once("@long 2000000@")
        self.assertEqual(result["result"], "x" * 2000000)

    def test_clear(self):
        a = self.start()
        a.prompt("one", "u1")
        old = a.result()["session_id"]
        a.prompt("/clear", "u2")
        result = a.result()
        a.prompt("@history@", "u3")
        after = a.result()
        reset = next(f for f in a.seen if f["type"] == "conversation_reset")
        self.assertEqual(reset["session_id"], old)
        self.assertNotEqual(result["session_id"], old)
        self.assertEqual(after["session_id"], result["session_id"])
        self.assertEqual(after["result"], "@history@")

    def test_task_starts_a_turn_of_its_own(self):
        a = self.start()
        a.prompt("@task 10 the build is done@ ", "u1")
        a.result()
        result = a.result()
        self.assertNotIn("user_message_uuids", result)
        self.assertEqual(result["origin"]["kind"], "task-notification")
        self.assertEqual(result["result"], "echo: the build is done")
        self.assertIn("task_notification", kinds(a.seen))


class Tools(Case):
    BASH = '@tool Bash {"command":"echo one > made; echo out"}@'

    def tool_result(self, a):
        return next(f["message"]["content"][0] for f in a.seen
                    if f["type"] == "user" and not f.get("isReplay") and
                    f["message"]["content"][0]["type"] == "tool_result")

    def asked(self, payload, *more):
        a = self.start(*ASK, *more)
        a.prompt(self.BASH, "u1")
        ask = a.ask("can_use_tool")
        self.assertEqual(ask["request"]["tool_name"], "Bash")
        a.answer(ask, payload)
        return a, a.result()

    def test_allow(self):
        a, result = self.asked({"behavior": "allow", "updatedInput": {"command": "echo two > made; echo out"}})
        self.assertEqual(result["result"], "tool done: [false]")
        with open(self.path("made")) as f:
            self.assertEqual(f.read(), "two\n")
        self.assertEqual(self.tool_result(a)["content"], "out")

    def test_allow_alone(self):
        a, result = self.asked({"behavior": "allow"})
        self.assertTrue(os.path.exists(self.path("made")))
        self.assertEqual(result["permission_denials"], [])

    def test_allow_alone_fails_on_the_old_one(self):
        a, result = self.asked({"behavior": "allow"}, "--compat=2.1.197")
        self.assertFalse(os.path.exists(self.path("made")))
        self.assertTrue(self.tool_result(a)["is_error"])

    def test_deny(self):
        a, result = self.asked({"behavior": "deny", "message": "not here"})
        self.assertEqual(self.tool_result(a)["content"], "not here")
        self.assertEqual(result["result"], "tool done: [true]")
        self.assertEqual(result["permission_denials"][0]["tool_name"], "Bash")

    def test_bad_answers(self):
        for payload in ({}, {"allow": True}, {"behavior": "deny"}, {"behavior": "allow", "updatedInput": {}, "toolUseID": 5},
                        {"behavior": "deny", "message": "x", "interrupt": "true"}):
            a, result = self.asked(payload)
            self.assertIn("invalid permission result", self.tool_result(a)["content"])
            self.assertFalse(result["is_error"])
            self.assertFalse(os.path.exists(self.path("made")))

    def test_error_answer(self):
        a = self.start(*ASK)
        a.prompt(self.BASH)
        ask = a.ask()
        a.send({"type": "control_response", "response": {
            "subtype": "error", "request_id": ask["request_id"], "error": "boom"}})
        a.result()
        self.assertEqual(self.tool_result(a)["content"], "Tool permission request failed: boom")

    def test_deny_with_interrupt(self):
        a, result = self.asked({"behavior": "deny", "message": "stop", "interrupt": True})
        self.assertEqual((result["subtype"], result["terminal_reason"]), ("error_during_execution", "aborted_tools"))

    def test_denied_without_stdio(self):
        a, result = self.once(self.BASH)
        self.assertIn("permission_denied", kinds(a.seen))
        self.assertNotIn("can_use_tool", kinds(a.seen))
        self.assertEqual(result["result"], "tool done: [true]")

    def test_second_answer_is_ignored_and_answers_are_replayed(self):
        a = self.start(*ASK, "--replay-user-messages")
        a.prompt(self.BASH, "u1")
        ask = a.ask()
        a.answer(ask, {"behavior": "allow"})
        a.answer(ask, {"behavior": "deny", "message": "late"})
        self.assertEqual(a.result()["result"], "tool done: [false]")
        a.close()
        self.assertEqual(len([f for f in a.seen if f["type"] == "control_response"]), 1)

    def test_suggested_rule_is_kept(self):
        a = self.start(*ASK)
        a.prompt('@tool Bash {"command":"touch a"}@')
        ask = a.ask()
        a.answer(ask, {"behavior": "allow", "updatedPermissions": ask["request"]["permission_suggestions"] + ["junk"]})
        a.result()
        a.prompt('@tool Bash {"command":"touch b"}@')
        a.result()
        self.assertEqual(kinds(a.seen).count("can_use_tool"), 1)
        self.assertTrue(os.path.exists(self.path("b")))

    def test_modes(self):
        write = '@tool Write {"file_path":"made","content":"x"}@'
        for mode, text, asks in (("acceptEdits", write, 0), ("acceptEdits", self.BASH, 1), ("plan", write, 1),
                                 ("bypassPermissions", self.BASH, 0), ("default", write, 1), ("dontAsk", write, 0),
                                 ("default", '@tool Read {"file_path":"none"}@', 0),
                                 ("bypassPermissions", '@tool AskUserQuestion {"questions":[]}@', 1)):
            a = self.start(*ASK, "--permission-mode", mode)
            a.prompt(text)
            if asks:
                a.answer(a.ask("can_use_tool"), {"behavior": "deny", "message": "no"})
            a.result()
            self.assertEqual(kinds(a.seen).count("can_use_tool"), asks, (mode, text))

    def test_set_mode_by_answer(self):
        a = self.start(*ASK)
        a.prompt('@tool Write {"file_path":"made","content":"x"}@')
        ask = a.ask()
        a.answer(ask, {"behavior": "allow", "updatedPermissions": ask["request"]["permission_suggestions"]})
        a.result()
        status = next(f for f in a.seen if f.get("subtype") == "status")
        self.assertEqual(status["permissionMode"], "acceptEdits")

    def test_question(self):
        question = {"questions": [{"question": "Which?", "options": [{"label": "A"}]}]}
        a = self.start(*ASK)
        a.prompt("@tool AskUserQuestion %s@" % json.dumps(question))
        a.answer(a.ask(), {"behavior": "allow", "updatedInput": {**question, "answers": {"Which?": "A"}}})
        a.result()
        self.assertIn('"Which?"="A"', self.tool_result(a)["content"])

    def test_several_tools_ask_one_after_another(self):
        a = self.start(*ASK)
        a.prompt('@tool Bash {"command":"true"}@ @tool Bash {"command":"exit 3"}@')
        a.answer(a.ask(), {"behavior": "allow"})
        a.answer(a.ask(), {"behavior": "allow"})
        self.assertEqual(a.result()["result"], "tool done: [false,true]")

    def test_files(self):
        a, _ = self.once('@tool Write {"file_path":"f","content":"a\\nb"}@', "--permission-mode=bypassPermissions")
        a, _ = self.once('@tool Edit {"file_path":"f","old_string":"b","new_string":"c"}@',
                         "--permission-mode=bypassPermissions")
        a, _ = self.once('@tool Read {"file_path":"f"}@')
        self.assertEqual(self.tool_result(a)["content"], "     1\ta\n     2\tc")

    def test_eof_while_asking(self):
        a = self.start(*ASK)
        a.prompt(self.BASH)
        a.ask()
        self.assertEqual(a.close()[0], 0)
        self.assertIn("stream closed", self.tool_result(a)["content"])

    def test_background_ask_after_the_result(self):
        a = self.start(*ASK)
        a.prompt('@after 10 Bash {"command":"touch later"}@ @text fine@')
        self.assertEqual(a.result()["result"], "fine")
        ask = a.ask("can_use_tool")
        self.assertIn("agent_id", ask["request"])
        a.answer(ask, {"behavior": "allow", "updatedInput": ask["request"]["input"]})
        a.until(lambda f: f.get("subtype") == "task_notification" and "command" in f["summary"])
        self.assertTrue(os.path.exists(self.path("later")))

    def test_background_shell(self):
        a = self.start("--allowedTools", "Bash")
        a.prompt('@tool Bash {"command":"touch bg","run_in_background":true}@')
        a.result()
        self.assertEqual(a.result()["origin"]["kind"], "task-notification")
        self.assertTrue(os.path.exists(self.path("bg")))


class Control(Case):
    def test_interrupt_while_asking(self):
        a = self.start(*ASK)
        a.prompt('@tool Bash {"command":"true"}@', "u1")
        ask = a.ask()
        a.prompt("later", "u2")
        a.request("i", "interrupt")
        del a.seen[:]
        self.assertEqual(a.response("i")["response"]["still_queued"], ["u2"])
        self.assertEqual(a.result()["terminal_reason"], "aborted_tools")
        self.assertEqual(kinds(a.seen), ["queued", "control_cancel_request", "response", "user", "user", "result"])
        self.assertEqual(a.seen[1]["request_id"], ask["request_id"])
        self.assertEqual(a.result()["user_message_uuids"], ["u2"])

    def test_interrupt_while_streaming(self):
        a = self.start("--include-partial-messages")
        a.prompt("@slow 50@ @long 5000@")
        a.until(lambda f: f["type"] == "stream_event" and f["event"]["type"] == "content_block_delta")
        a.request("i", "interrupt", cancel_queued=True)
        self.assertEqual(a.response("i")["response"], {"cancelled": [], "still_queued": []})
        result = a.result()
        self.assertEqual((result["subtype"], result["terminal_reason"]),
                         ("error_during_execution", "aborted_streaming"))
        self.assertEqual(a.close()[0], 1)

    def test_interrupt_kills_the_command(self):
        a = self.start("--allowedTools=Bash")
        a.prompt('@tool Bash {"command":"echo $$ > pid; exec sleep 600"}@')
        deadline = time.monotonic() + LIMIT
        while not os.path.exists(self.path("pid")) or not os.path.getsize(self.path("pid")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        a.request("i", "interrupt")
        self.assertEqual(a.result()["terminal_reason"], "aborted_tools")
        with open(self.path("pid")) as f:
            self.assertFalse(os.path.exists("/proc/%s/stat" % f.read().strip()))

    def test_interrupt_of_a_command_that_has_just_been_started(self):
        a = self.start("--allowedTools=Bash")
        for _ in range(50):
            a.prompt('@tool Bash {"command":"sleep 600"}@')
            a.until(lambda f: f["type"] == "assistant")
            a.request("i", "interrupt")
            a.result()

    def test_cancel_queued(self):
        a = self.start("--include-partial-messages")
        a.prompt("@slow 50@ @long 5000@", "u1")
        a.until(lambda f: f["type"] == "stream_event")
        a.prompt("one", "q1")
        a.prompt("two", "q2")
        a.request("c", "cancel_async_message", message_uuid="q1")
        self.assertTrue(a.response("c")["response"]["cancelled"])
        a.request("i", "interrupt", cancel_queued=True)
        self.assertEqual(a.response("i")["response"], {"cancelled": ["q2"], "still_queued": []})
        a.result()
        a.close()
        self.assertEqual(kinds(a.seen).count("result"), 1)

    def test_the_old_one_does_not_say_which_it_cancelled(self):
        for more, want in (([], {"cancelled": True, "message_uuid": "q1"}), (["--compat=2.1.197"], {"cancelled": True})):
            a = self.start("--include-partial-messages", *more)
            a.prompt("@slow 50@ @long 5000@", "u1")
            a.until(lambda f: f["type"] == "stream_event")
            a.prompt("one", "q1")
            a.request("c", "cancel_async_message", message_uuid="q1")
            self.assertEqual(a.response("c")["response"], want)

    def test_settings(self):
        a = self.start()
        a.request("1", "set_permission_mode", mode="plan")
        self.assertEqual(a.response("1")["response"], {"mode": "plan"})
        self.assertEqual(a.next()["permissionMode"], "plan")
        a.request("2", "set_permission_mode", mode="nonsense")
        self.assertEqual(a.response("2")["error_code"], "invalid_mode")
        a.request("3", "set_permission_mode", mode="bypassPermissions")
        self.assertEqual(a.response("3")["error_code"], "bypass_not_launched")
        a.request("4", "set_model", model="other")
        self.assertEqual(a.response("4")["response"], {"model": "other"})
        for i, (subtype, more) in enumerate((
                ("set_max_thinking_tokens", {"max_thinking_tokens": 5}), ("mcp_status", {}), ("get_context_usage", {}),
                ("apply_flag_settings", {"settings": {}}), ("rename_session", {"title": "T"}),
                ("stop_task", {"task_id": "x"}), ("keep_alive", {}), ("mcp_set_servers", {"servers": {}}),
                ("cancel_async_message", {"message_uuid": "x"}))):
            a.request("r%d" % i, subtype, **more)
            self.assertEqual(a.response("r%d" % i)["subtype"], "success", subtype)
        a.request("5", "no_such_thing")
        self.assertEqual(a.response("5")["error_code"], "unsupported_request")
        a.request("6", "rewind_files", user_message_id="x")
        self.assertEqual(a.response("6")["subtype"], "error")
        a.request("7", "mcp_reconnect", serverName="x")
        self.assertEqual(a.response("7")["error"], "Server not found: x")

    def test_ids_are_echoed_as_they_are(self):
        a = self.start()
        a.send({"type": "control_request", "request_id": 7, "request": {"subtype": "interrupt"}})
        self.assertEqual(a.next()["response"]["request_id"], 7)
        a.send({"type": "control_request", "request": {"subtype": "interrupt", "request_id": "inside"}})
        self.assertNotIn("request_id", a.next()["response"])

    def test_end_session(self):
        a = self.start()
        a.request("e", "end_session")
        self.assertEqual(a.response("e")["subtype"], "success")
        self.assertEqual(a.p.wait(LIMIT), 0)

    def test_pending_requests_are_listed_again(self):
        a = self.start(*ASK)
        a.request("1", "initialize")
        self.assertEqual(a.response("1")["pending_permission_requests"], [])
        a.prompt('@tool Bash {"command":"true"}@')
        ask = a.ask()
        a.request("2", "initialize")
        again = a.response("2")
        self.assertEqual([r["request_id"] for r in again["pending_permission_requests"]], [ask["request_id"]])
        self.assertEqual(a.next()["subtype"], "background_tasks_changed")

    def test_requests_of_unknown_subtype(self):
        a = self.start()
        a.prompt("@unknown brand_new@")
        ask = a.ask()
        self.assertEqual(ask["request"]["subtype"], "brand_new")
        a.answer(ask, {"a": 1})
        self.assertEqual(a.result()["result"], 'answer: {"a":1}')

    def test_dialogs_and_elicitation(self):
        a = self.start()
        a.request("1", "initialize", supportedDialogKinds=["plan"])
        a.prompt("@dialog other@")
        self.assertEqual(a.result()["result"], "dialog: no client shows other")
        a.prompt("@dialog plan@")
        a.answer(a.ask("request_user_dialog"), {"behavior": "cancelled"})
        self.assertEqual(a.result()["result"], 'dialog: {"behavior":"cancelled"}')
        a.prompt("@elicit@")
        a.answer(a.ask("elicitation"), {"action": "decline"})
        self.assertEqual(a.result()["result"], 'elicit: {"action":"decline"}')


class Hooks(Case):
    BASH = '@tool Bash {"command":"touch made"}@'

    def begin(self, table, *more):
        a = self.start(*ASK, *more)
        a.request("1", "initialize", hooks=table)
        self.assertEqual(a.response("1")["response"].get("hooks_applied"), None if "--compat=2.1.197" in more else True)
        return a

    def guarded(self, answer, **entry):
        a = self.begin({"PreToolUse": [{"hookCallbackIds": ["h"], **entry}]})
        a.prompt(self.BASH)
        ask = a.ask("hook_callback")
        self.assertEqual(ask["request"]["callback_id"], "h")
        self.assertEqual(ask["request"]["input"]["tool_input"], {"command": "touch made"})
        a.answer(ask, answer)
        return a

    def made(self):
        return os.path.exists(self.path("made"))

    def test_neutral_goes_on_to_the_ask(self):
        a = self.guarded({})
        a.answer(a.ask("can_use_tool"), {"behavior": "allow"})
        a.result()
        self.assertTrue(self.made())

    def test_allow_spares_the_ask(self):
        a = self.guarded({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
                                                 "updatedInput": {"command": "touch other"}}})
        a.result()
        self.assertNotIn("can_use_tool", kinds(a.seen))
        self.assertTrue(os.path.exists(self.path("other")))

    def test_deny(self):
        a = self.guarded({"decision": "block", "reason": "because"})
        self.assertEqual(a.result()["result"], "tool done: [true]")
        text = next(f for f in a.seen if f["type"] == "user")["message"]["content"][0]["content"]
        self.assertEqual(text, "PreToolUse:Bash hook error: because")
        self.assertFalse(self.made())

    def test_ask_forces_an_ask(self):
        a = self.begin({"PreToolUse": [{"hookCallbackIds": ["h"]}]}, "--allowedTools=Bash")
        a.prompt(self.BASH)
        a.answer(a.ask(), {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
                                                  "permissionDecisionReason": "careful"}})
        ask = a.ask("can_use_tool")
        self.assertEqual(ask["request"]["decision_reason"], "careful")

    def test_defer(self):
        a = self.guarded({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "defer"}})
        result = a.result()
        self.assertEqual(result["terminal_reason"], "tool_deferred")
        self.assertEqual(result["deferred_tool_use"]["name"], "Bash")

    def test_continue_false_stops_after_the_tool(self):
        a = self.guarded({"continue": False})
        a.answer(a.ask("can_use_tool"), {"behavior": "allow"})
        self.assertEqual(a.result()["terminal_reason"], "hook_stopped")
        self.assertTrue(self.made())

    def test_timeout_is_closed(self):
        a = self.begin({"PreToolUse": [{"hookCallbackIds": ["h"], "timeout": 0.05}]})
        a.prompt(self.BASH)
        ask = a.ask("hook_callback")
        cancel = a.until(lambda f: f["type"] == "control_cancel_request")
        self.assertEqual(cancel["request_id"], ask["request_id"])
        self.assertEqual(a.result()["result"], "tool done: [true]")
        self.assertFalse(self.made())

    def test_failed_callback(self):
        a = self.begin({"PreToolUse": [{"hookCallbackIds": ["h"]}]})
        a.prompt(self.BASH)
        ask = a.ask("hook_callback")
        a.send({"type": "control_response", "response": {
            "subtype": "error", "request_id": ask["request_id"], "error": "boom"}})
        a.until(lambda f: f.get("tag") == "hook_callback_failed")
        a.ask("can_use_tool")

    def test_failed_callback_blocks_if_asked_to(self):
        a = self.begin({"PreToolUse": [{"hookCallbackIds": ["h"], "onFailure": "block"}]})
        a.prompt(self.BASH)
        ask = a.ask("hook_callback")
        a.send({"type": "control_response", "response": {
            "subtype": "error", "request_id": ask["request_id"], "error": "boom"}})
        self.assertEqual(a.result()["result"], "tool done: [true]")

    def test_all_that_match_are_asked_at_once(self):
        table = [{"matcher": m, "hookCallbackIds": ["h%d" % i]} for i, m in enumerate(
            ["", "*", "Bash", "Bash|Edit", "Edit, Bash", "^B.*", "bash", "Ba", "Edit", "[", "Bash(touch:*)"])]
        a = self.begin({"PreToolUse": table + [{"hookCallbackIds": ["h0", "last"]}]})
        a.prompt(self.BASH)
        asks = [a.ask("hook_callback") for _ in range(8)]
        self.assertEqual([q["request"]["callback_id"] for q in asks],
                         ["h0", "h1", "h2", "h3", "h4", "h5", "h0", "last"])
        for ask in asks:
            a.answer(ask, {"decision": "block", "reason": "n"} if ask is asks[3] else {"decision": "approve"})
        self.assertEqual(a.result()["result"], "tool done: [true]")

    def test_prompt_and_stop_hooks(self):
        a = self.begin({"UserPromptSubmit": [{"hookCallbackIds": ["p"]}], "Stop": [{"hookCallbackIds": ["s"]}]})
        a.prompt("hello")
        a.answer(a.ask(), {"decision": "block", "reason": "no"})
        self.assertEqual(a.result()["num_turns"], 0)
        a.prompt("@history@")
        a.answer(a.ask(), {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "more"}})
        stop = a.ask()
        self.assertEqual(stop["request"]["input"]["last_assistant_message"], "@history@\nmore")
        a.answer(stop, {"decision": "block", "reason": "go on"})
        again = a.ask()
        self.assertTrue(again["request"]["input"]["stop_hook_active"])
        a.answer(again, {})
        self.assertEqual(a.result()["result"], "echo: Stop hook feedback:\ngo on")

    def test_permission_request_hook_decides(self):
        a = self.begin({"PermissionRequest": [{"hookCallbackIds": ["r"]}], "PostToolUse": [{"hookCallbackIds": ["o"]}]})
        a.prompt(self.BASH)
        a.answer(a.ask("hook_callback"), {"hookSpecificOutput": {
            "hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}})
        post = a.ask("hook_callback")
        self.assertEqual(post["request"]["input"]["hook_event_name"], "PostToolUse")
        a.answer(post, {})
        a.result()
        self.assertNotIn("can_use_tool", kinds(a.seen))
        self.assertTrue(self.made())

    def test_a_new_table_replaces_the_old_and_refuses_what_waits(self):
        a = self.guarded_open()
        a.request("2", "initialize", hooks={"PreToolUse": [{"hookCallbackIds": ["new"]}]})
        a.until(lambda f: f["type"] == "control_cancel_request")
        self.assertTrue(a.response("2")["response"]["hooks_applied"])
        self.assertEqual(a.result()["result"], "tool done: [true]")
        a.prompt(self.BASH)
        self.assertEqual(a.ask()["request"]["callback_id"], "new")

    def guarded_open(self, *more):
        a = self.begin({"PreToolUse": [{"hookCallbackIds": ["old"]}]}, *more)
        a.prompt(self.BASH)
        a.ask("hook_callback")
        return a

    def test_a_table_without_hooks_leaves_them(self):
        a = self.guarded_open()
        a.request("2", "initialize")
        self.assertNotIn("hooks_applied", a.response("2")["response"])
        self.assertNotIn("control_cancel_request", kinds(a.seen))

    def test_the_old_one_ignores_a_new_table(self):
        a = self.guarded_open("--compat=2.1.197")
        a.request("2", "initialize", hooks={})
        again = a.response("2")
        self.assertEqual(again["subtype"], "success")
        self.assertNotIn("hooks_applied", again["response"])
        self.assertNotIn("control_cancel_request", kinds(a.seen))

    def test_malformed_table(self):
        a = self.start()
        a.request("1", "initialize", hooks={"PreToolUse": [{"matcher": 3}]})
        self.assertEqual(a.response("1")["subtype"], "error")

    def test_eof_refuses_the_tool(self):
        a = self.guarded_open()
        a.close()
        self.assertFalse(self.made())
        self.assertEqual(kinds(a.seen).count("result"), 1)


class Mcp(Case):
    def serve(self, a, ask, result):
        message = ask["request"]["message"]
        a.answer(ask, {"mcp_response": {"jsonrpc": "2.0", "id": message.get("id", 0), "result": result}})
        return message

    def connect(self, *more, argv=False, env=None):
        args = ["--mcp-config", '{"mcpServers":{"srv":{"type":"sdk","name":"srv"}}}'] if argv else []
        a = self.start(*args, "--allowedTools=mcp__srv", *more, env=env)
        a.request("1", "initialize", **({} if argv else {"sdkMcpServers": ["srv"]}))
        hello = self.serve(a, a.ask("mcp_message"), {"protocolVersion": "1", "serverInfo": {"name": "srv"}})
        self.assertEqual((hello["method"], hello["id"]), ("initialize", 0))
        for _ in range(2):
            ask = a.ask("mcp_message")
            self.serve(a, ask, {"tools": [{"name": "add"}]})
        self.assertEqual([f["request"]["message"]["method"] for f in a.seen if f["type"] == "control_request"],
                         ["initialize", "notifications/initialized", "tools/list"])
        return a

    def status(self, a):
        a.request("s", "mcp_status")
        return [(s["name"], s["status"]) for s in a.response("s")["response"]["mcpServers"]]

    def test_call(self):
        a = self.connect()
        self.assertEqual(self.status(a), [("srv", "connected")])
        a.prompt('@tool mcp__srv__add {"a":1}@')
        ask = a.ask("mcp_message")
        self.assertIn("mcp__srv__add", next(f for f in a.seen if f.get("subtype") == "init")["tools"])
        call = self.serve(a, ask, {"content": [{"type": "text", "text": "2"}]})
        self.assertEqual(call["params"]["arguments"], {"a": 1})
        self.assertEqual(a.result()["result"], "tool done: [false]")

    def test_named_in_argv(self):
        self.assertEqual(self.status(self.connect(argv=True)), [("srv", "connected")])

    def test_set_servers_drops_what_it_does_not_name(self):
        a = self.connect()
        a.request("m", "mcp_set_servers", servers={"new": {"type": "sdk", "name": "new"}})
        self.assertEqual(a.response("m")["response"], {"added": ["new"], "removed": ["srv"], "errors": {}})
        self.assertEqual(self.status(a), [("new", "pending")])

    def test_failed_handshake(self):
        a = self.start()
        a.request("1", "initialize", sdkMcpServers=["srv"])
        ask = a.ask("mcp_message")
        a.send({"type": "control_response", "response": {
            "subtype": "error", "request_id": ask["request_id"], "error": "no"}})
        self.assertEqual(self.status(a), [("srv", "failed")])

    def test_a_call_without_answer_times_out(self):
        a = self.connect(env={"MCP_TOOL_TIMEOUT": "50"})
        a.prompt("@tool mcp__srv__add {}@")
        a.ask("mcp_message")
        cancelled = a.ask("mcp_message")["request"]["message"]
        self.assertEqual(cancelled["method"], "notifications/cancelled")
        self.assertEqual(a.result()["result"], "tool done: [true]")
        self.assertNotIn("control_cancel_request", kinds(a.seen))

    def test_unknown_server(self):
        a, result = self.once("@tool mcp__none__x {}@", "--allowedTools=mcp__none")
        self.assertEqual(result["result"], "tool done: [true]")


class Conversations(Case):
    def test_resume_goes_on(self):
        _, first = self.once("one")
        a, second = self.once("@history@", "--resume=" + first["session_id"])
        self.assertEqual(second["result"], "one\n@history@")
        self.assertEqual(second["session_id"], first["session_id"])
        a, third = self.once("@history@", "--resume", first["session_id"], "--fork-session")
        self.assertEqual(third["result"], "one\n@history@\n@history@")
        self.assertNotEqual(third["session_id"], first["session_id"])
        os.utime(self.path("state/plenum-fakeagent/%s.jsonl" % first["session_id"]), (1, 1))
        a, fourth = self.once("@history@", "--continue")
        self.assertEqual(fourth["session_id"], third["session_id"])

    def test_an_answered_prompt_is_not_run_again(self):
        """As the CLI: also after --resume it knows the uuids that were answered, and no others."""
        a = self.start()
        a.prompt("one", "known")
        first = a.result()
        a.prompt("@slow 50@ @long 2000@ two", "cut off")
        a.until(lambda f: f.get("state") == "started" and f["command_uuid"] == "cut off")
        a.p.kill()
        again = self.start("--resume=" + first["session_id"], "--replay-user-messages")
        again.prompt("one", "known")
        again.prompt("two", "cut off")
        self.assertEqual(again.result()["user_message_uuids"], ["cut off"])
        self.assertEqual([f["uuid"] for f in again.seen if f.get("isReplay")], ["known", "cut off"])
        again.prompt("@history@", "new")
        self.assertEqual(again.result()["result"].split("\n").count("one"), 1)

    def test_unknown_id(self):
        a = self.start("--resume=not-there")
        code, err = a.close()
        self.assertEqual(code, 1)
        self.assertIn("No conversation found with session ID: not-there", err)
        self.assertEqual(a.seen[0]["subtype"], "error_during_execution")

    def test_id_in_use(self):
        _, first = self.once("one", "--session-id", "11111111-1111-4111-8111-111111111111")
        self.assertEqual(first["session_id"], "11111111-1111-4111-8111-111111111111")
        code, err = self.start("--session-id", "11111111-1111-4111-8111-111111111111").close()
        self.assertEqual(code, 1)
        self.assertIn("already in use", err)

    def test_folder(self):
        _, first = self.once("one", "--conversations", self.path("here"))
        self.assertEqual(os.listdir(self.path("here")), [first["session_id"] + ".jsonl"])
        _, first = self.once("one", env={"PLENUM_FAKEAGENT_DIR": self.path("there")})
        self.assertEqual(os.listdir(self.path("there")), [first["session_id"] + ".jsonl"])
        self.once("one", "--no-session-persistence", env={"PLENUM_FAKEAGENT_DIR": self.path("none")})
        self.assertFalse(os.path.exists(self.path("none")))


class Ends(Case):
    def dies(self, line, text):
        a = self.start()
        a.raw(line + b"\n")
        code, err = a.close()
        self.assertEqual(code, 1, line)
        self.assertIn(text, err)
        self.assertEqual(a.seen, [])

    def test_lines_that_kill(self):
        for line, text in ((b"{not json", "Error parsing streaming input line"),
                           (b"plain", "Error parsing streaming input line"),
                           (b"null", "TypeError"),
                           (b'{"type":"user"}', "Expected message role 'user', got 'undefined'"),
                           (b'{"type":"user","prompt":"hi"}', "got 'undefined'"),
                           (b'{"type":"user","message":{"role":"assistant","content":"x"}}', "got 'assistant'"),
                           (b'{"type":"control_request","request_id":"1"}', "Missing request on control_request")):
            self.dies(line, text)

    def test_lines_that_it_survives(self):
        a = self.start()
        for line in (b"", b"  \r", b"[1,2]", b'{"notype":1}', b'{"type":"banana"}', b'{"type":"assistant"}', b"5",
                     b'{"type":"control_response"}', b'{"type":"control_cancel_request"}', b'{"type":"keep_alive"}',
                     b'{"type":"user","message":{"role":"user"}}', b'{"type":"user","message":{"role":"user","content":5}}',
                     b'{"type":"deep","x":' + b"[" * 5000 + b"]" * 5000 + b"}"):
            a.raw(line + b"\n")
        a.prompt("still here")
        self.assertEqual(a.result()["result"], "echo: still here")

    def test_last_line_without_lf(self):
        a = self.start()
        a.raw(b'{"type":"user","message":{"role":"user","content":"x"}}')
        a.close()
        self.assertEqual(kinds(a.seen)[-1], "result")

    def test_eof_finishes_the_turn_and_the_queue(self):
        a = self.start()
        a.prompt("@slow 5@ @long 100@")
        a.prompt("two")
        self.assertEqual(a.close()[0], 0)
        self.assertEqual(kinds(a.seen).count("result"), 2)

    def test_signals(self):
        a = self.start()
        a.request("1", "initialize")
        a.next()
        a.p.send_signal(signal.SIGTERM)
        self.assertEqual(a.p.wait(LIMIT), 143)
        a = self.start(*ASK)
        a.prompt('@tool Bash {"command":"true"}@')
        a.ask()
        a.p.send_signal(signal.SIGINT)
        self.assertEqual(a.result()["subtype"], "error_during_execution")
        self.assertEqual(a.p.wait(LIMIT), 0)

    def test_reader_gone(self):
        a = self.start()
        a.p.stdout.close()
        a.prompt("@lines 5000@")
        a.prompt('@tool Write {"file_path":"alive","content":""}@')
        a.p.stdin.close()
        self.assertEqual(a.p.wait(LIMIT), 0)
        a.p.stdout = open(os.devnull, "rb")

    def test_no_back_pressure(self):
        a = self.start()
        a.prompt("@lines 20000@", "u1")
        a.request("i", "mcp_status")
        a.prompt("two", "u2")
        a.result()
        a.result()
        self.assertEqual(kinds(a.seen).count("content_block_delta"), 20000)

    def test_formats(self):
        a = self.start(flags=["-p", "--input-format", "stream-json", "--output-format", "stream-json"])
        code, err = a.close()
        self.assertEqual(code, 1)
        self.assertIn("--verbose", err)
        version = subprocess.run([AGENT, "-v"], stdout=subprocess.PIPE, check=True).stdout
        self.assertRegex(version, rb"^2\.1\.332 \(plenum-fakeagent ")
        a, result = self.once("x", "--setting-sources=", "--brand-new-flag", "value", "--effort", "high", "--model=m")
        self.assertEqual(result["result"], "echo: x")
        self.assertIn("m", result["modelUsage"])

    def test_await_initialize(self):
        a = self.start("--await-initialize")
        a.prompt("x")
        code, err = a.close()
        self.assertEqual(code, 1)
        self.assertIn("--await-initialize", err)
        a = self.start("--await-initialize")
        a.request("1", "initialize")
        a.prompt("x")
        a.result()


class Directives(Case):
    def test_about_the_process(self):
        _, result = self.once("@cwd@")
        self.assertEqual(os.path.realpath(result["result"]), os.path.realpath(self.folder))
        _, result = self.once("@env@", env={"MARK": "a b"})
        self.assertIn("MARK=a b", result["result"].split("\n"))
        _, result = self.once("@argv@")
        self.assertEqual(result["result"].split("\n")[1:], FLAGS)

    def test_exit_and_die(self):
        a = self.start()
        a.prompt("@exit 7@")
        self.assertEqual(a.close()[0], 7)
        a = self.start()
        a.prompt("@die@")
        rest = a.p.stdout.read()
        self.assertEqual(a.p.wait(LIMIT), -signal.SIGKILL)
        self.assertFalse(rest.endswith(b"\n"))

    def test_garbage_and_noise(self):
        a = self.start()
        a.prompt("@garbage this is not json@ @stderr 3@")
        lines = []
        while True:
            lines.append(a.line())
            if b'"type":"result"' in lines[-1]:
                break
        self.assertIn(b"this is not json", lines)
        self.assertEqual(len(a.close()[1]), 3 * 1024)

    def test_grandchild_holds_stdout(self):
        a = self.start()
        a.prompt("@grandchild@")
        a.result()
        a.p.stdin.close()
        self.assertEqual(a.p.wait(LIMIT), 0)
        pids = [p for p in os.listdir("/proc") if p.isdigit() and self.is_sleeper(p)]
        self.assertEqual(len(pids), 1)
        os.kill(int(pids[0]), signal.SIGKILL)
        a.p.stdin = open(os.devnull, "rb")

    def is_sleeper(self, pid):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
            return words[:1] == [b"sleep"] and os.readlink("/proc/%s/cwd" % pid) == os.path.realpath(self.folder)
        except OSError:
            return False

    def test_not_a_directive(self):
        _, result = self.once("mail me @home or @toolbox x@ or @slow")
        self.assertEqual(result["result"], "echo: mail me @home or @toolbox x@ or @slow")


class Faults(Case):
    def test_partial(self):
        a, result = self.once("hello", "--fault", "partial=3")
        self.assertEqual(result["result"], "echo: hello")

    def test_huge(self):
        a, _ = self.once("x", "--fault", "huge=200000")
        self.assertEqual([len(f["content"]) for f in a.seen if f.get("subtype") == "local_command_output"], [200000])

    def test_garbage(self):
        a = self.start("--fault", "garbage")
        a.prompt("x")
        a.p.stdin.close()
        lines = a.p.stdout.read().split(b"\n")
        self.assertIn(b"not a JSON line", lines)
        self.assertIn(b'{"type":"assistant","message":', lines)
        a.p.stdin = open(os.devnull, "rb")

    def test_noise(self):
        a = self.start("--fault", "stderr=300")
        a.prompt("x")
        self.assertEqual(len(a.p.stderr.read(300 * 1024)), 300 * 1024)
        a.result()

    def test_flood(self):
        a, _ = self.once("x", env={"PLENUM_FAKEAGENT_FAULTS": "flood=3000"})
        self.assertEqual(kinds(a.seen).count("content_block_delta"), 3000)

    def test_ignore_sigterm(self):
        a = self.start("--fault", "ignore-sigterm")
        a.prompt("x")
        a.result()
        a.p.send_signal(signal.SIGTERM)
        a.prompt("y")
        self.assertEqual(a.result()["result"], "echo: y")

    def test_ignore_eof(self):
        a = self.start("--fault", "ignore-eof")
        a.prompt("x")
        a.result()
        a.p.stdin.close()
        with self.assertRaises(subprocess.TimeoutExpired):
            a.p.wait(0.3)
        a.p.send_signal(signal.SIGTERM)
        self.assertEqual(a.p.wait(LIMIT), 143)
        a.p.stdin = open(os.devnull, "rb")

    def test_close_stdout(self):
        a = self.start("--fault", "close-stdout=2")
        a.prompt("x")
        while a.line() is not None:
            pass
        self.assertIsNone(a.p.poll())

    def test_deaf(self):
        a = self.start("--fault", "deaf=1")
        a.prompt("x")
        a.result()
        a.prompt("y")
        with self.assertRaises(TimeoutError):
            while True:
                a.next(0.3)

    def test_die(self):
        a = self.start("--fault", "die=2")
        a.prompt("x")
        rest = a.p.stdout.read()
        self.assertEqual(a.p.wait(LIMIT), -signal.SIGKILL)
        self.assertEqual(rest.count(b"\n"), 1)

    def test_start(self):
        code, err = self.start("--fault", "start-exit=9").close()
        self.assertEqual(code, 9)
        self.assertTrue(err)
        a = self.start("--fault", "nonsense")
        code, err = a.close()
        self.assertIn("no such fault: nonsense", err)

    def test_mute_and_late(self):
        a = self.start("--fault", "mute")
        a.request("1", "initialize")
        a.response("1")
        a.request("2", "mcp_status")
        a.prompt("x")
        a.result()
        self.assertEqual(kinds(a.seen).count("response"), 1)
        a = self.start("--fault", "late=50")
        before = time.monotonic()
        a.request("1", "initialize")
        a.response("1")
        self.assertGreater(time.monotonic() - before, 0.02)

    def test_no_result(self):
        a = self.start("--fault", "no-result")
        a.prompt("x", "u1")
        a.until(lambda f: f.get("state") == "completed")
        self.assertNotIn("result", kinds(a.seen))

    def test_no_newline(self):
        a = self.start("--fault", "no-newline", "--compat=2.1.197")
        a.prompt("x")
        a.p.stdin.close()
        self.assertFalse(a.p.stdout.read().endswith(b"\n"))
        a.p.stdin = open(os.devnull, "rb")

    def test_split(self):
        a = self.start("--fault", "split=1000")
        short = b'{"type":"keep_alive"}\n'
        long = json.dumps({"type": "user", "message": {"role": "user", "content": "z" * 2000}}).encode() + b"\n"
        a.raw(long)
        a.result()
        a.raw(short + long)
        self.assertEqual(a.close()[0], 1)


class Scenarios(Case):
    def scenario(self, content):
        with open(self.path("scenario.json"), "w") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))
        return "--scenario=" + self.path("scenario.json")

    def test_rules(self):
        a = self.start(self.scenario({
            "model": "script-1",
            "permissions": {"allow": ["Bash"]},
            "init": {"output_style": "terse"},
            "initialize": {"account": {"email": "a@b"}},
            "tools": {"Bash": {"output": "ok"}, "Read": {"output": "broken", "is_error": True}},
            "replies": [
                {"when": {"prompt": "first"}, "once": True, "say": ["only once"]},
                {"when": {"prompt": "^b.ild", "regex": True}, "say": [
                    {"thinking": "hm"}, "I shall", {"tool": "Bash", "input": {"command": "make ${prompt}"}}]},
                {"when": {"tool": "Bash", "output": "ok"}, "say": [{"tool": "Read", "input": {"file_path": "x"}}]},
                {"when": {"tool": "Read", "is_error": True}, "say": ["it said: ${output}"]},
                {"when": {"prompt": "fail"}, "error": "overloaded"},
                {"when": {"prompt": "where"}, "directives": "@cwd@"},
            ]}))
        a.request("1", "initialize")
        self.assertEqual(a.response("1")["response"]["account"], {"email": "a@b"})
        for prompt, said in (("first", "only once"), ("first", "echo: first"), ("build it", "it said: broken"),
                             ("fail", "API Error: overloaded"), ("where", os.path.realpath(self.folder)),
                             ("@cwd@", "echo: @cwd@")):
            a.prompt(prompt)
            self.assertEqual(a.result()["result"], said)
        init = next(f for f in a.seen if f.get("subtype") == "init")
        self.assertEqual((init["model"], init["output_style"]), ("script-1", "terse"))
        use = next(f["message"]["content"][0] for f in a.seen
                   if f["type"] == "assistant" and f["message"]["content"][0]["type"] == "tool_use")
        self.assertEqual(use["input"], {"command": "make build it"})

    def test_bad_files(self):
        for content, text in (("{", "scenario.json:1"), ("[]", "no object"), ({"replies": 1}, "replies is no array"),
                              ({"replies": [{"when": 1}]}, "reply 1"), ({"faults": ["x"]}, "no such fault: x"),
                              ({"repliez": []}, "unknown member: repliez"),
                              ({"replies": [{"sya": []}]}, "unknown member: sya")):
            code, err = self.start(self.scenario(content)).close()
            self.assertEqual(code, 1)
            self.assertIn(text, err)
        self.assertIn("scenario /nowhere: unable to open", self.start("--scenario", "/nowhere").close()[1])

    def test_examples(self):
        names = sorted(n for n in os.listdir(SCENARIOS) if n.endswith(".json"))
        self.assertTrue(names)
        for name in names:
            a = self.start("--scenario", os.path.join(SCENARIOS, name), "--permission-mode=bypassPermissions")
            with open(os.path.join(SCENARIOS, name)) as f:
                prompts = json.load(f).get("try", [])
            self.assertTrue(prompts, name)
            for one in prompts:
                a.prompt(one["prompt"])
                self.assertEqual(a.result()["result"], one["result"], name)


if __name__ == "__main__":
    unittest.main()
