#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plenum-shim in front of plenumd and an agent, beside the same agent alone.

Usage: test_daemon.py PLENUM_SHIM PLENUMD AGENT
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from sdk import Sdk, allow, canon, deny
from standin import DEADLINE, STREAM

SHIM = PLENUMD = AGENT = ""


def until(check, what):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if check():
            return
        time.sleep(0.01)
    raise TimeoutError("never: " + what)


def name_of(pid):
    try:
        with open("/proc/%d/comm" % pid) as f:
            return f.read().strip()
    except FileNotFoundError:
        return None


class Daemon:
    """A plenumd with a folder of its own."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="plenum-shim-")
        self.path = os.path.join(self.dir, "plenum.sock")
        self.work = os.path.join(self.dir, "work")
        os.mkdir(self.work)
        with open(os.path.join(self.dir, "plenum.conf"), "w") as f:
            f.write("[daemon]\ndefault_profile = agent\nmemory_pressure = no\n[profile agent]\ncommand = %s\n" % AGENT)
            f.write("resume_args = --resume={id}\nsession_id_args = --session-id={id}\n")
            f.write("[profile sleepy]\ncommand = %s\nidle_sleep = 100ms\n" % AGENT)
            f.write("[profile itself]\ncommand = %s\n" % SHIM)
            f.write("[profile acp]\ncommand = %s --acp\ndialect = acp\n" % AGENT)
            f.write("[profile codex]\ncommand = %s app-server\ndialect = codex\n" % AGENT)
            f.write("[profile nothing]\ncommand = /no/such/agent\n")
        self.log = open(os.path.join(self.dir, "log"), "w+")
        self.start()

    def start(self, **env):
        argv = [PLENUMD, "--config", os.path.join(self.dir, "plenum.conf"), "--socket", self.path]
        self.process = subprocess.Popen(argv, env=self.env(**env), stdin=subprocess.DEVNULL, stderr=self.log, cwd=self.dir)
        until(self.answers, "the daemon listens")

    def answers(self):
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(self.path) == 0

    def env(self, **more):
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.dir, "XDG_RUNTIME_DIR": self.dir,
               "XDG_STATE_HOME": self.dir, "PLENUM_SOCKET": self.path, "PLENUM_PROFILE": "agent"}
        env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        env.update(more)
        return env

    def ask(self, subtype, **members):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(DEADLINE)
            s.connect(self.path)
            request = {"type": "control_request", "request_id": "t", "request": {"subtype": subtype, **members}}
            s.sendall(json.dumps(request).encode() + b"\n")
            line = s.makefile().readline()
        return json.loads(line)["response"]

    def sessions(self):
        return self.ask("plenum_list")["response"]["sessions"]

    def children(self):
        """Processes of the agent that this daemon started: not its helpers, such as those that look at a new client."""
        try:
            with open("/proc/%d/task/%d/children" % ((self.process.pid,) * 2)) as f:
                pids = [int(p) for p in f.read().split()]
        except FileNotFoundError:
            return []
        return [p for p in pids if name_of(p) not in (None, "plenumd", "exe")]  # exe: of /proc/self/exe

    def destroy(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)


class Case(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.addCleanup(self.daemon.destroy)

    def sdk(self, *args, direct=False, first=(), env=None, cwd=None, **handlers):
        argv = [AGENT if direct else SHIM, *first, *STREAM, *args]
        s = Sdk(argv, self.daemon.env(**(env or {})), cwd or self.daemon.work, **handlers)
        self.addCleanup(s.destroy)
        return s


def says_something(frame):
    """The first piece of its answer is out; the next is a minute away."""
    return frame["type"] == "stream_event" and frame["event"]["type"] == "content_block_delta"


class Same(Case):
    """What a program sees through the shim is what it sees without it."""

    maxDiff = None

    def both(self, play, *args, env=None, **handlers):
        seen = []
        for direct in (True, False):
            s = self.sdk(*args, direct=direct, env=env, **handlers)
            play(s)
            code, err = s.finish()
            seen.append((s, canon(s.frames), code, err))
        (alone, *expected), (shim, *got) = seen
        self.assertEqual(got[0], expected[0])
        self.assertEqual(got[1:], expected[1:])
        return alone, shim

    def test_prompts(self):
        def play(s):
            s.ask("initialize", hooks=None)
            s.prompt("hello")
            s.prompt("again")

        self.both(play)

    def test_no_initialize(self):
        self.both(lambda s: s.prompt("hello"))

    def test_nothing_at_all(self):
        self.both(lambda s: None)

    def test_initialize_and_the_prompt_right_behind(self):
        def play(s):
            s.write({"type": "control_request", "request_id": "i", "request": {"subtype": "initialize", "hooks": None}})
            s.prompt("hello")

        self.both(play)

    def test_partial_messages_and_replays(self):
        self.both(lambda s: s.prompt("hello"), "--include-partial-messages", "--replay-user-messages")

    def test_state_events(self):
        for name in ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "CLAUDE_CODE_SDK_READS_SESSION_STATE"):
            self.both(lambda s: (s.prompt("hello"), s.until(lambda f: f.get("state") == "idle")), env={name: "1"})

    def test_a_tool_allowed_and_denied(self):
        for answer in (allow, deny):
            alone, shim = self.both(lambda s: s.prompt('@tool Bash {"command":"touch made"}@'), "--permission-prompt-tool",
                                    "stdio", permission=answer)
            self.assertEqual([a["subtype"] for a in shim.asked], ["can_use_tool"])

    def test_an_answer_that_the_agent_cannot_use(self):
        """The program's callback has a mistake: the agent refuses the tool, and the turn goes on."""
        for body in ({}, {"behavior": "maybe"}, {"behavior": "deny"}, {"behavior": "allow", "updatedInput": "x"},
                     {"behavior": "allow", "updatedInput": {"command": "true"}, "toolUseID": 7}):
            with self.subTest(body=body):
                _, shim = self.both(lambda s: s.prompt('@tool Bash {"command":"touch made"}@'), "--permission-prompt-tool",
                                    "stdio", permission=lambda request: body)
                self.assertEqual(len(shim.asked), 1)
        self.assertFalse(os.path.exists(os.path.join(self.daemon.work, "made")))

    def test_a_tool_that_nobody_can_allow(self):
        _, shim = self.both(lambda s: s.prompt('@tool Bash {"command":"touch made"}@'))
        self.assertEqual(shim.asked, [])

    def test_hooks(self):
        hooks = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"], "timeout": 60}],
                 "Stop": [{"hookCallbackIds": ["hook_1"]}]}

        def play(s):
            s.ask("initialize", hooks=hooks)
            s.prompt('@tool Bash {"command":"touch made"}@')

        def hook(request):
            if request["callback_id"] == "hook_1":
                return {}
            return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                           "permissionDecisionReason": "guarded"}}

        _, shim = self.both(play, "--permission-prompt-tool=stdio", hook=hook)
        self.assertEqual([a["callback_id"] for a in shim.asked], ["hook_0", "hook_1"])

    def mcp(self, request):
        message = request["message"]
        reply = {"jsonrpc": "2.0", "id": message.get("id", 0), "result": {}}
        if message["method"] == "initialize":
            reply["result"] = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                               "serverInfo": {"name": request["server_name"], "version": "1"}}
        if message["method"] == "tools/list":
            reply["result"] = {"tools": [{"name": "add", "description": "adds", "inputSchema": {"type": "object"}}]}
        if message["method"] == "tools/call":
            reply["result"] = {"content": [{"type": "text", "text": "42"}]}
        return {"mcp_response": reply}

    def test_a_server_in_the_sdk_by_mcp_config(self):
        config = json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}})
        path = os.path.join(self.daemon.dir, "servers.json")
        with open(path, "w") as f:
            f.write(config)

        def play(s):
            s.ask("initialize", hooks=None)
            s.prompt("@tool mcp__calc__add {}@")

        for value in (config, path):
            _, shim = self.both(play, "--mcp-config", value, "--permission-prompt-tool=stdio", permission=allow, mcp=self.mcp)
            self.assertIn("tools/call", [a.get("message", {}).get("method") for a in shim.asked])

    def test_a_server_in_the_sdk_by_initialize(self):
        def play(s):
            s.ask("initialize", hooks=None, sdkMcpServers=["calc"])
            s.prompt("@tool mcp__calc__add {}@")

        _, shim = self.both(play, "--permission-prompt-tool=stdio", permission=allow, mcp=self.mcp)
        self.assertIn("tools/call", [a.get("message", {}).get("method") for a in shim.asked])

    def test_control_requests(self):
        def play(s):
            s.ask("initialize", hooks=None)
            s.ask("set_permission_mode", mode="plan")
            s.ask("set_model", model="other")
            s.ask("no_such_thing")
            s.prompt("hello")

        self.both(play)

    def test_end_session(self):
        for direct in (True, False):
            s = self.sdk(direct=direct)
            s.ask("initialize", hooks=None)
            s.prompt("hello")
            self.assertEqual(s.ask("end_session")["subtype"], "success")
            self.assertEqual(s.finish(eof=False), (0, ""))

    def test_interrupt(self):
        def play(s):
            s.ask("initialize", hooks=None)
            s.send("@slow 60000@ hello")
            s.until(says_something)
            s.ask("interrupt")
            s.until(lambda f: f["type"] == "result")

        self.both(play, "--include-partial-messages")

    def test_a_request_that_the_agent_does_not_answer(self):
        """Nor does anybody else, when it ends: a program sees the end, as without the shim."""
        def play(s):
            s.prompt("hello")
            s.write({"type": "control_request", "request_id": "x", "request": {"subtype": "set_model", "model": "m"}})

        self.both(play, "--fault=mute")

    def test_sigint(self):
        def play(s):
            s.send("@slow 60000@ hello")
            s.until(says_something)
            s.process.kill(signal.SIGINT)

        self.both(play, "--include-partial-messages")

    def test_the_exit_code_after_an_error_result(self):
        self.both(lambda s: self.assertTrue(s.prompt("@error overloaded@")["is_error"]))

    def test_exit_and_stderr_of_the_agent(self):
        def play(s):
            s.send("@exit 7@")

        self.both(play)

    def test_end_of_input_in_mid_turn(self):
        def play(s):
            s.send("@slow 20@ one two three")
            s.until(lambda f: f["type"] == "system" and f["subtype"] == "init")  # else they may be merged into one turn
            s.send("another")

        self.both(play)

    def alike(self, play, *args, **handlers):
        """The same but for the words: after the end of input the daemon refuses in the agent's place."""
        seen = []
        for direct in (True, False):
            s = self.sdk(*args, direct=direct, **handlers)
            play(s)
            end = s.finish()
            refused = [b["is_error"] for f in s.frames if f["type"] == "user" for b in f["message"]["content"]]
            seen.append((end, s.types(), refused))
        self.assertEqual(seen[1], seen[0])
        self.assertEqual(seen[0][2], [True])

    def test_end_of_input_while_a_question_is_open(self):
        def play(s):
            s.send('@tool Bash {"command":"touch made"}@')
            s.until(lambda f: f["type"] == "control_request")

        self.alike(play, "--permission-prompt-tool=stdio", permission="later")

    def test_end_of_input_before_a_question(self):
        # a line without LF counts at the end: that is there first
        prompt = {"type": "user", "message": {"role": "user", "content": '@tool Bash {"command":"touch made"}@'}}
        self.alike(lambda s: s.write(json.dumps(prompt).encode()), "--permission-prompt-tool=stdio", permission="later")

    def test_end_of_input_while_a_hook_is_open(self):
        def play(s):
            s.ask("initialize", hooks={"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]})
            s.send('@tool Bash {"command":"touch made"}@')
            s.until(lambda f: f["type"] == "control_request")

        self.alike(play, "--permission-prompt-tool=stdio", hook="later")

    def test_a_bad_resume(self):
        _, shim = self.both(lambda s: None, "--resume=00000000-0000-4000-8000-000000000000")

    def test_await_initialize(self):
        def play(s):
            s.ask("initialize", hooks=None, appendSystemPrompt="x", title="t")
            s.prompt("hello")

        self.both(play, "--await-initialize")

    def test_the_environment_and_the_folder(self):
        seen = []
        for direct in (True, False):
            s = self.sdk(direct=direct, env={"SDK_VALUE": "one\ntwo"})
            env = s.prompt("@env@")["result"].split("\n")
            # the agent alone gets what is for the shim, and the daemon says whose child it is
            env = [word for word in env if not word.startswith(("PLENUM_", "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS="))]
            seen.append((sorted(env), s.prompt("@cwd@")["result"], s.finish()))
        self.assertIn("SDK_VALUE=one", seen[1][0])
        self.assertEqual(seen[0], seen[1])

    def test_version(self):
        for flag in ("-v", "--version"):
            expected = subprocess.run([AGENT, flag], capture_output=True)
            got = subprocess.run([SHIM, flag], capture_output=True, env={"PLENUM_CLAUDE": AGENT, "PLENUM_SOCKET": "/none"})
            self.assertEqual((got.returncode, got.stdout, got.stderr), (expected.returncode, expected.stdout, expected.stderr))


class Life(Case):
    def test_an_own_session_leaves_nothing(self):
        s = self.sdk()
        s.prompt("hello")
        self.assertEqual(len(self.daemon.sessions()), 1)
        self.assertEqual(s.finish(), (0, ""))
        self.assertEqual(self.daemon.sessions(), [])
        self.assertEqual(self.daemon.children(), [])

    def test_an_own_session_does_not_sleep(self):
        own = self.sdk(env={"PLENUM_PROFILE": "sleepy"})
        own.prompt("hello")
        other = self.sdk(env={"PLENUM_PROFILE": "sleepy", "PLENUM_SESSION": "other"})
        other.prompt("hello")
        until(lambda: [s["state"] for s in self.daemon.sessions() if s["session"] == "other"] == ["asleep"], "sleep")
        own.prompt("still there")
        self.assertEqual(own.finish(), (0, ""))
        other.prompt("awake again")
        self.assertEqual(other.finish(), (0, ""))

    def test_sigterm(self):
        for text in (None, "@slow 60000@ hello"):
            s = self.sdk()
            s.prompt("hello")
            if text:
                s.send(text)
            s.process.kill(signal.SIGTERM)
            self.assertEqual(s.finish(), (143, ""))
            until(lambda: not self.daemon.children(), "the agent is gone")
            until(lambda: not self.daemon.sessions(), "the session is gone")

    def test_sigkill_of_the_shim(self):
        s = self.sdk()
        s.prompt("hello")
        s.process.kill(signal.SIGKILL)
        until(lambda: not self.daemon.children(), "the agent is gone")
        until(lambda: not self.daemon.sessions(), "the session is gone")

    def test_end_of_input_and_sigterm_in_mid_turn(self):
        s = self.sdk()
        s.send("@slow 60000@ hello")
        s.until(lambda f: f["type"] == "system" and f["subtype"] == "init")
        s.process.eof()
        s.process.kill(signal.SIGTERM)
        self.assertEqual(s.finish(), (143, ""))
        until(lambda: not self.daemon.children(), "the agent is gone")

    def test_a_daemon_that_dies(self):
        s = self.sdk()
        s.prompt("hello")
        self.daemon.process.kill()
        code, err = s.finish(eof=False)
        self.assertEqual(code, 69)
        self.assertIn("did plenumd die?", err)

    @unittest.skipUnless(os.getuid() == 0, "needs root, to become somebody else")
    def test_a_daemon_of_somebody_else(self):
        shim = shutil.copy(SHIM, self.daemon.dir + "/plenum-shim")
        os.chmod(self.daemon.dir, 0o755)
        for mode, words in ((0o600, "cannot connect to " + self.daemon.path), (0o666, "does not take this one; see allow_uids")):
            os.chmod(self.daemon.path, mode)
            p = subprocess.run([shim, *STREAM], env=self.daemon.env(), stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, timeout=DEADLINE, user=65534, group=65534, extra_groups=[])
            self.assertEqual(p.returncode, 69)
            self.assertIn(words, p.stderr)

    def test_a_daemon_that_is_stopped(self):
        s = self.sdk()
        s.prompt("hello")
        self.daemon.process.terminate()
        code, err = s.finish(eof=False)
        self.assertNotEqual(code, 0)
        self.assertIn("the daemon was stopped", err)

    def test_an_agent_that_crashes(self):
        s = self.sdk()
        s.prompt("hello")
        os.kill(self.daemon.children()[0], signal.SIGSEGV)
        self.assertEqual(s.finish(eof=False)[0], 139)

    def test_an_agent_that_is_not_there(self):
        code, err = self.sdk(env={"PLENUM_PROFILE": "nothing"}).finish()
        self.assertEqual(code, 1)
        self.assertIn("/no/such/agent", err)
        self.assertEqual(self.daemon.sessions(), [])

    def test_the_program_of_the_profile_claude_is_named(self):
        """By the environment, or by the first argument; the latter as VS Code starts a wrapper."""
        code, err = self.sdk(env={"PLENUM_PROFILE": "", "PATH": "/usr/bin:/bin"}).finish()
        self.assertEqual(code, 1)
        self.assertIn("claude", err)
        for first, env in ([], {"PLENUM_CLAUDE": AGENT}), ([AGENT], {"PLENUM_CLAUDE": "/none"}):
            s = self.sdk(first=first, env=dict(env, PLENUM_PROFILE=""))
            self.assertEqual(s.prompt("hello")["result"], "echo: hello")
            self.assertEqual(self.daemon.sessions()[0]["profile"], "claude")
            self.assertEqual(s.finish(), (0, ""))

    def test_the_program_is_where_only_the_daemon_finds_it(self):
        folder = os.path.join(self.daemon.dir, "bin")
        os.mkdir(folder)
        os.symlink(AGENT, os.path.join(folder, "claude"))
        self.daemon.process.terminate()
        self.daemon.process.wait()
        self.daemon.start(PATH=folder + ":/usr/bin:/bin")
        expected = subprocess.run([AGENT, "-v"], capture_output=True)
        got = subprocess.run([SHIM, "-v"], capture_output=True, env=self.daemon.env(PATH="/usr/bin:/bin"))
        self.assertEqual((got.returncode, got.stdout, got.stderr), (expected.returncode, expected.stdout, b""))
        s = self.sdk(env={"PLENUM_PROFILE": "", "PATH": "/usr/bin:/bin"})
        self.assertEqual(s.prompt("hello")["result"], "echo: hello")
        self.assertEqual(s.finish(), (0, ""))

    def test_a_script_around_the_shim_in_path(self):
        """The agent itself is found behind it, though the script waits for the shim."""
        for name, text in (("a", '#!/bin/sh\n"%s" "$@"\nexit $?\n' % SHIM), ("b", '#!/bin/sh\nexec "%s" "$@"\n' % AGENT)):
            os.mkdir(os.path.join(self.daemon.dir, name))
            path = os.path.join(self.daemon.dir, name, "claude")
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, 0o700)
        path = "%s/a:%s/b:/usr/bin:/bin" % (self.daemon.dir, self.daemon.dir)
        s = self.sdk(env={"PLENUM_PROFILE": "", "PATH": path})
        self.assertEqual(s.prompt("hello")["result"], "echo: hello")
        self.assertEqual(s.finish(), (0, ""))

    def test_a_daemon_that_starts_the_shim_as_its_agent(self):
        folder = os.path.join(self.daemon.dir, "bin")
        os.mkdir(folder)
        os.symlink(AGENT, os.path.join(folder, "claude"))
        path = folder + ":" + os.environ.get("PATH", "/usr/bin:/bin")
        s = self.sdk(env={"PLENUM_PROFILE": "itself", "PATH": path})
        self.assertEqual(s.prompt("hello")["result"], "echo: hello")
        self.assertEqual(s.finish(), (0, ""))

    def test_a_bad_line_ends_an_own_session(self):
        s = self.sdk()
        s.write(b"{not json\n")
        code, err = s.finish()
        self.assertEqual(code, 1)
        self.assertIn("a key is missing", err)

    def test_resume_right_after_the_end(self):
        s = self.sdk()
        conversation = s.prompt("remember the word")["session_id"]
        s.process.eof()

        def resumed():
            """Until the daemon has read the end of the input, the conversation is in use."""
            t = self.sdk("--resume=" + conversation)
            try:
                self.assertEqual(t.prompt("hello")["session_id"], conversation)
            except EOFError:
                self.assertIn("this conversation is in use", t.finish(eof=False)[1])
                return False
            self.assertEqual(t.finish(), (0, ""))
            return True

        until(resumed, "the conversation goes on")
        s.finish()

    def test_big_lines(self):
        big = "x" * (8 << 20)
        s = self.sdk("--replay-user-messages")
        s.send(big)
        echo = s.until(lambda f: f.get("isReplay"))
        self.assertEqual(len(json.dumps(echo["message"])) > len(big), True)
        s.until(lambda f: f["type"] == "result")
        self.assertEqual(s.finish(), (0, ""))

    def test_a_slow_reader_loses_nothing(self):
        s = self.sdk("--include-partial-messages")
        s.send("@long 300000@")
        time.sleep(0.5)  # not a wait for a state: the program does nothing for so long
        text = ""
        while True:
            frame = json.loads(s.process.out.line())
            delta = frame.get("event", {}).get("delta", {})
            text += delta.get("text", "")
            if frame["type"] == "result":
                break
        self.assertEqual(len(text), 300000)


class Shared(Case):
    def named(self, *args, name=None, **handlers):
        env = {"PLENUM_SESSION": "work", **({"PLENUM_NAME": name} if name else {})}
        return self.sdk(*args, "--permission-prompt-tool", "stdio", env=env, **handlers)

    def test_two_programs_one_agent(self):
        a = self.named()
        a.prompt("from a")
        b = self.named()
        b.ask("initialize", hooks=None)
        self.assertEqual(b.prompt("from b")["session_id"], a.frames[-1]["session_id"])
        a.until(lambda f: f["type"] == "result")
        self.assertEqual(len(self.daemon.children()), 1)
        self.assertEqual(a.finish(), (0, ""))
        b.prompt("still there")
        self.assertEqual(b.finish(), (0, ""))
        self.assertEqual([s["session"] for s in self.daemon.sessions()], ["work"])

    def test_what_it_brings_to_a_sleeping_session_counts(self):
        a = self.named("--model", "first")
        a.prompt("hello")
        self.assertEqual(a.finish(), (0, ""))
        self.daemon.ask("plenum_hibernate", session="work")
        until(lambda: [s["state"] for s in self.daemon.sessions()] == ["asleep"], "sleep")
        b = self.named("--model", "second")
        b.prompt("hello")
        [pid] = self.daemon.children()
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            words = f.read().split(b"\0")
        self.assertEqual(words[words.index(b"--model") + 1], b"second")
        self.assertEqual(b.finish(), (0, ""))

    def test_the_session_is_removed(self):
        a = self.named()
        a.prompt("hello")
        self.daemon.ask("plenum_stop", session="work", forget=True)
        code, err = a.finish(eof=False)
        self.assertEqual(code, 1)
        self.assertIn("session work was removed", err)

    def test_the_agent_is_stopped_while_a_prompt_waits(self):
        a, b = self.named(), self.named()
        a.prompt("hello")  # from now on it hears of each turn
        b.prompt("hello")
        a.until(lambda f: f["type"] == "result")  # of that one: what comes next is of its own
        a.send("@slow 1000@ " + "x" * 400)
        a.until(lambda f: f["type"] == "stream_event" or f.get("subtype") == "init")
        self.daemon.ask("plenum_stop", session="work", how="kill")
        self.assertEqual(a.finish(eof=False)[0], 137)
        b.prompt("and on")
        self.assertEqual(b.finish(), (0, ""))

    def test_the_first_answer_counts(self):
        a, b = self.named(permission="later"), self.named(permission=deny)
        a.ask("initialize", hooks=None)
        b.ask("initialize", hooks=None)
        a.send('@tool Bash {"command":"touch made"}@')
        b.until(lambda f: f["type"] == "result")
        a.until(lambda f: f["type"] == "result")
        self.assertEqual(len(a.asked), 1)
        self.assertEqual(len(a.cancelled), 1)
        self.assertEqual(b.cancelled, [])

    def test_a_guard_of_one_program_guards_the_other(self):
        guard = lambda request: {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                                        "permissionDecisionReason": "guarded"}}
        hooks = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}
        a, b = self.named(name="guard", hook=guard), self.named(permission=allow)
        a.ask("initialize", hooks=hooks)
        b.ask("initialize", hooks=None)
        b.send('@tool Bash {"command":"touch made"}@')
        a.until(lambda f: f["type"] == "result")
        b.until(lambda f: f["type"] == "result")
        self.assertEqual([r["callback_id"] for r in a.asked], ["hook_0"])
        self.assertEqual(b.asked, [])

    def test_options_that_come_too_late_are_named(self):
        a = self.named("--model=one")
        a.prompt("hello")
        b = self.named("--model=two")
        b.prompt("hello")
        code, err = b.finish()
        self.assertEqual(code, 0)
        self.assertIn("--model=two", err)

    def test_a_kept_session_stays(self):
        s = self.sdk(env={"PLENUM_KEEP": "1"})
        s.prompt("hello")
        self.assertEqual(s.finish(), (0, ""))
        self.assertEqual(len(self.daemon.sessions()), 1)

    def test_continue_of_a_kept_conversation_says_why_it_ends(self):
        kept = self.sdk(env={"PLENUM_KEEP": "1"})
        kept.prompt("hello")
        kept.finish()
        s = self.sdk("--continue")
        s.send("hello again")
        code, err = s.finish()
        [session] = [s["session"] for s in self.daemon.sessions()]
        self.assertEqual(code, 1)
        self.assertIn("it is that of session %s: attach to that (PLENUM_SESSION=%s" % (session, session), err)
        self.assertIn("or fork", err)
        self.assertNotRegex(err, r"\b137\b")  # a session id may have these digits
        s = self.sdk("--resume", kept.frames[-1]["session_id"])
        s.send("hello again")
        code, err = s.finish(eof=False)  # at once, not at the end of its input
        self.assertEqual(code, 1)
        self.assertIn("it is that of session %s" % session, err)

    def test_a_crash_of_the_agent_is_the_end_for_all(self):
        a, b = self.named(), self.named()
        a.prompt("hello")
        until(lambda: self.daemon.sessions()[0]["attachments"] == 2, "both are there")
        os.kill(self.daemon.children()[0], signal.SIGSEGV)
        self.assertEqual(a.finish(eof=False)[0], 139)
        self.assertEqual(b.finish(eof=False)[0], 139)


class Acp(Case):
    """--acp, beside the same agent alone."""

    word, profile, reason = "--acp", "acp", "end_turn"

    def editor(self, *argv):
        process = subprocess.Popen(argv, env=self.daemon.env(PLENUM_PROFILE=self.profile), cwd=self.daemon.work, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def call(self, editor, number, method, **params):
        """Return the lines to the reply."""
        editor.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        editor.stdin.flush()
        lines = []
        while not lines or lines[-1].get("id") != number:
            lines.append(json.loads(editor.stdout.readline()))
        return lines

    def play(self, *argv):
        editor = self.editor(*argv)
        seen = self.call(editor, 1, "initialize", protocolVersion=1, clientCapabilities={})
        new = self.call(editor, 2, "session/new", cwd=self.daemon.work, mcpServers=[])
        name = new[-1]["result"]["sessionId"]
        seen += new + self.call(editor, 3, "session/prompt", sessionId=name, prompt=[{"type": "text", "text": "hello"}])
        sessions = len(self.daemon.sessions())
        out, err = editor.communicate(timeout=DEADLINE)
        return json.dumps(seen).replace(name, "c"), sessions, (out, err, editor.returncode)

    def test_the_same_lines(self):
        (alone, none, end), (through, one, through_end) = self.play(AGENT, self.word), self.play(SHIM, self.word)
        self.assertEqual(through, alone)
        self.assertIn(self.reason, alone)
        self.assertEqual((none, one, through_end), (0, 1, end))
        until(lambda: not self.daemon.sessions(), "its session has ended with it")


class Sessions(Acp):
    """Several sessions in one agent process, for the editor."""

    def begin(self, n=2):
        """An editor with n sessions: (editor, id, ...)."""
        editor = self.editor(SHIM, self.word)
        self.call(editor, 1, "initialize", protocolVersion=1, clientCapabilities={})
        return (editor, *[self.new(editor, 10 + i) for i in range(n)])

    def new(self, editor, number):
        last = self.call(editor, number, "session/new", cwd=self.daemon.work, mcpServers=[])[-1]
        self.assertIn("result", last)
        return last["result"]["sessionId"]

    def prompt(self, editor, number, name):
        return self.call(editor, number, "session/prompt", sessionId=name, prompt=[{"type": "text", "text": "hello"}])

    def test_the_same_lines(self):
        """Those of the second session are those of an agent alone, too."""
        editor, first, second = self.begin()
        alone = self.editor(AGENT, self.word)
        self.call(alone, 1, "initialize", protocolVersion=1, clientCapabilities={})
        name = self.new(alone, 2)
        expected = json.dumps(self.prompt(alone, 3, name)).replace(name, "c")
        of_second = [m for m in self.prompt(editor, 3, second) if m.get("params", {}).get("sessionId") != first]
        self.assertEqual(json.dumps(of_second).replace(second, "c"), expected)
        self.assertEqual(self.prompt(editor, 4, first)[-1]["result"]["stopReason"], "end_turn")
        self.assertEqual(len(self.daemon.sessions()), 2)
        self.assertEqual(len(self.daemon.children()), 2)
        self.assertEqual(editor.communicate(timeout=DEADLINE) + (editor.returncode,), ("", "", 0))
        until(lambda: not self.daemon.sessions(), "its sessions have ended with it")

    def test_a_closed_one(self):
        editor, first = self.begin(1)
        self.call(editor, 3, "session/close", sessionId=first)
        second = self.new(editor, 4)
        self.assertEqual(self.prompt(editor, 5, second)[-1]["result"]["stopReason"], "end_turn")
        self.call(editor, 6, "session/close", sessionId=second)
        third = self.new(editor, 7)
        self.assertEqual(self.prompt(editor, 8, third)[-1]["result"]["stopReason"], "end_turn")
        self.assertEqual(editor.communicate(timeout=DEADLINE) + (editor.returncode,), ("", "", 0))
        until(lambda: not self.daemon.sessions(), "its sessions have ended with it")

    def test_a_crash_of_one(self):
        for which in (0, 1):
            editor, *names = self.begin()
            pids = {s["conversation_id"]: s["pid"] for s in self.daemon.sessions()}
            os.kill(pids[names[which]], signal.SIGKILL)
            until(lambda: len(self.daemon.sessions()) == 1, "its session has ended")
            last = self.prompt(editor, 3, names[which])[-1]
            self.assertIn("load or resume it first", last["error"]["message"])
            self.assertEqual(self.prompt(editor, 4, names[1 - which])[-1]["result"]["stopReason"], "end_turn")
            self.new(editor, 5)
            editor.communicate(timeout=DEADLINE)
            self.assertEqual(editor.returncode, 137 if which == 0 else 0)
            until(lambda: not self.daemon.sessions(), "its sessions have ended with it")

    def test_a_signal(self):
        editor, *_ = self.begin()
        editor.send_signal(signal.SIGTERM)
        editor.communicate(timeout=DEADLINE)
        self.assertEqual(editor.returncode, 143)
        until(lambda: not self.daemon.sessions(), "its sessions have ended with it")


class Codex(Acp):
    """app-server, in the same way."""

    word, profile, reason = "app-server", "codex", "completed"

    def play(self, *argv):
        program = self.editor(*argv)
        self.call(program, 1, "initialize", clientInfo={"name": "x", "title": "x", "version": "1"})
        name = self.call(program, 2, "thread/start", cwd=self.daemon.work)[-1]["result"]["thread"]["id"]
        self.call(program, 3, "turn/start", threadId=name, input=[{"type": "text", "text": "hello"}])
        seen = [json.loads(program.stdout.readline())]
        while seen[-1]["method"] != "turn/completed":
            seen.append(json.loads(program.stdout.readline()))
        sessions = len(self.daemon.sessions())
        out, err = program.communicate(timeout=DEADLINE)
        said = "".join(line["params"]["delta"] for line in seen if line["method"] == "item/agentMessage/delta")
        return said + seen[-1]["params"]["turn"]["status"], sessions, (out, err, program.returncode)


if __name__ == "__main__":
    AGENT = os.path.abspath(sys.argv.pop(3))
    PLENUMD = os.path.abspath(sys.argv.pop(2))
    SHIM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
