# SPDX-License-Identifier: MIT
"""plenum-shim line by line, with the command line and the order of the Python client, which waits for its initialize."""

import json
import os
import signal
import subprocess

from harness import DEADLINE, Case, Client, allow, bash, cli_environment, mcp_server, wait_until
from test_sdk import Normal, kind

PYTHON_SDK = "0.2.143"
PYTHON = ["--output-format", "stream-json", "--verbose", "--system-prompt", ""]
INPUT = ["--input-format", "stream-json"]
INIT = {"type": "control_request", "request_id": "req_1_deadbeef", "request": {"subtype": "initialize", "hooks": None}}


def is_mcp(line):
    return line["type"] == "control_request" and line["request"]["subtype"] == "mcp_message"


class Lines(Case):
    """The same lines to the real CLI and to the shim must have the same answers."""

    def open(self, program, args, **env):
        environment = self.place.environment(**{
            **cli_environment(self.api.url), "CLAUDE_CODE_ENTRYPOINT": "sdk-py", "CLAUDE_AGENT_SDK_VERSION": PYTHON_SDK,
            "PLENUM_SOCKET": self.daemon.socket, "PLENUM_CLAUDE": str(self.cli), "PLENUM_PROFILE": "real", **env})
        del environment["CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"]
        client = Client.run([str(program), *args], env=environment, cwd=self.work, stderr=subprocess.PIPE)
        self.addCleanup(client.close)
        return client

    @property
    def program(self):
        return next(self.build.rglob("plenum-shim"))

    def finish(self, client, status):
        """End of input, then all remaining lines, and the exit status."""
        client.process.stdin.close()
        code = client.process.wait(DEADLINE)
        client.wait_end()
        stderr = client.process.stderr.read().decode()
        self.assertEqual(code, status, stderr)
        return {"lines": client.lines, "stderr": stderr}

    def same(self, script, *args, status=0, words=True, last=None):
        """`script` drives a client. Return the shim client's record. Without `words` only standard error may differ;
        `last`: the type of the last line that is compared."""
        records, met = [], []
        for program in (self.cli, self.program):
            for path in self.work.iterdir():
                path.unlink()
            client = self.open(program, [*PYTHON, *args, *INPUT])
            script(client)
            met = self.finish(client, status)
            normal = Normal(self.place)
            lines = [line for line in met["lines"] if not is_mcp(line)]
            if last:
                del lines[[line["type"] for line in lines].index(last) + 1:]
            # 2.1.197 greets a server once or twice at the same time, in random order.
            calls = sorted({json.dumps(dict(line["request"]["message"], id=None)) for line in met["lines"] if is_mcp(line)})
            records.append({"lines": normal.frames(lines), "stderr": words and normal.text(met["stderr"]),
                            "mcp": [normal.text(call) for call in calls]})
        self.assertEqual(*[[kind(line) for line in record["lines"]] for record in records])
        self.assertEqual(*records)
        return met["lines"]

    def start(self, client, **members):
        init = json.loads(json.dumps(INIT))
        init["request"].update(members)
        client.send(init)
        client.wait("the answer to initialize", lambda l: l.get("type") == "control_response"
                    and l["response"]["request_id"] == "req_1_deadbeef")


class Wire(Lines):
    def test_a_turn(self):
        def script(client):
            self.start(client)
            client.send({"type": "user", "message": {"role": "user", "content": "hello"}, "parent_tool_use_id": None,
                         "session_id": "default"})
            client.wait_result()
        self.assertEqual(self.same(script)[-1]["result"], "echo: hello")

    def test_an_sdk_server_of_the_command_line(self):
        def script(client):
            client.handlers["mcp_message"] = mcp_server("calc", {"add": lambda args: str(args["a"] + args["b"])})
            self.start(client)
            client.send({"type": "user", "message": {"role": "user", "content": '@tool mcp__calc__add {"a":2,"b":3}@'}})
            client.wait_result()
        config = json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}})
        path = self.work.parent / "servers.json"
        path.write_text(config)
        for value in (config, str(path)):
            lines = self.same(script, "--allowedTools", "mcp__calc__add", "--mcp-config", value)
            self.assertIn('\\"text\\":\\"5\\"', json.dumps(lines[-1]["result"]))

    def test_descriptors_of_the_command_line(self):
        """A shell's <(...): both versions of the CLI read these two from it."""
        text = 'exec "$@" --mcp-config <(echo "$CONFIG") --append-system-prompt-file <(echo "Answer in rhymes.")'
        config = json.dumps({"mcpServers": {"broken": {"command": "false"}}})
        servers = []
        for program in (self.cli, self.program):
            client = self.open("/bin/bash", ["-c", text, "bash", str(program), *PYTHON, *INPUT], CONFIG=config)
            client.send({"type": "user", "message": {"role": "user", "content": "hello"}})
            init = client.wait("the init", lambda l: l.get("subtype") == "init")
            servers.append([server["name"] for server in init["mcp_servers"]])
            client.wait_result()
            self.finish(client, 0)
        self.assertEqual(servers, [["broken"]] * 2)

    def test_hooks_and_permission(self):
        def script(client):
            client.handlers["hook_callback"] = lambda line: {}
            client.handlers["can_use_tool"] = allow
            self.start(client, hooks={
                "PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"], "timeout": 30}],
                "PostToolUse": [{"matcher": None, "hookCallbackIds": ["hook_1"]}]})
            client.send({"type": "user", "message": {"role": "user", "content": bash("touch made")}})
            client.wait_result()
        self.same(script, "--permission-prompt-tool", "stdio")
        self.assertTrue((self.work / "made").exists())

    def test_replays_when_asked_for(self):
        def script(client):
            self.start(client)
            client.prompt("hello", "my-own-uuid")
            client.wait_result("my-own-uuid")
        self.same(script, "--replay-user-messages", "--include-partial-messages")

    def test_an_error_at_the_end(self):
        def script(client):
            self.start(client)
            client.prompt("@fail 400@", "my-own-uuid")
            client.wait_result()
        self.same(script, status=1)

    def test_without_an_initialize(self):
        def script(client):
            client.send({"type": "user", "message": {"role": "user", "content": "hello"}})
            client.wait_result()
        self.same(script)

    def test_lines_that_the_cli_skips(self):
        def script(client):
            for line in (b"[1]", b'"x"', b"true", b"5", b"{}", b'{"type":5}', b'{"type":"control_cancel_request"}'):
                client.send(line + b"\n")
            client.send({"type": "user", "message": {"role": "user", "content": "hello"}})
            client.wait_result()
        self.assertEqual(self.same(script)[-1]["result"], "echo: hello")

    def test_a_byte_order_mark(self):
        """2.1.197 ends at it."""
        takes = self.cli_version != "2.1.197"

        def script(client):
            client.send(b'\xef\xbb\xbf{"type":"user","message":{"role":"user","content":"hello"}}\n')
            if takes:
                client.wait_result()
        self.same(script, status=0 if takes else 1, words=False)

    def test_lines_that_end_the_cli(self):
        for line in (b'{"type":"control_request","request_id":"r"}', b"null", b"no JSON",
                     b'{"type":"control_request","request_id":"r","request":null}', b'{"type":"user"}'):
            with self.subTest(line=line):
                self.assertEqual(self.same(lambda client, line=line: client.send(line + b"\n"), status=1, words=False), [])

    def test_a_full_disk_under_stdout(self):
        """2.1.332 ends with 1, too; 2.1.197 with 0 and no word."""
        client = self.open("/bin/sh", ["-c", 'exec "$@" >/dev/full', "sh", str(self.program), *PYTHON, *INPUT])
        client.send({"type": "user", "message": {"role": "user", "content": "hello"}})
        self.assertIn("No space left on device", self.finish(client, 1)["stderr"])

    def test_nothing_said(self):
        self.same(lambda client: None)

    def test_end_of_input_in_mid_turn(self):
        def script(client):
            client.send({"type": "user", "message": {"role": "user", "content": "@slow 50@ hello"}})
        self.assertEqual(self.same(script)[-1]["result"], "echo: @slow 50@ hello")

    def test_version(self):
        for flag in ("-v", "--version"):
            ask = [subprocess.run([str(program), flag], capture_output=True, text=True, timeout=DEADLINE,
                                  env=self.place.environment(PLENUM_CLAUDE=str(self.cli)))
                   for program in (self.cli, self.program)]
            self.assertEqual((ask[0].stdout, ask[0].returncode), (ask[1].stdout, ask[1].returncode))
            self.assertIn(self.cli_version, ask[1].stdout)

    def test_an_end_that_takes_longer_than_a_stop(self):
        """A hook at the end of the session has the same time as without the daemon."""
        hook = {"type": "command", "command": "sleep 6; touch ended", "timeout": 60}
        settings = {"hooks": {"SessionEnd": [{"hooks": [hook]}]}}
        self.same(self.start, "--settings", json.dumps(settings))
        self.assertTrue((self.work / "ended").exists())

    def test_sigterm(self):
        def script(client):
            self.start(client)
            client.process.terminate()
            client.process.wait(DEADLINE)
        self.same(script, status=143)
        wait_until("the session is gone", lambda: not self.client().ask("plenum_list")["sessions"])

    def test_sigint_withdraws_an_open_question(self):
        def script(client):
            client.send({"type": "user", "message": {"role": "user", "content": bash("touch made")}})
            request = client.wait_request("can_use_tool")
            client.process.send_signal(signal.SIGINT)
            client.wait_cancel(request)
        # the CLI ends with what it has printed by then: its result is not always among that
        self.same(script, "--permission-prompt-tool", "stdio", last="control_cancel_request")
        self.assertFalse((self.work / "made").exists())

    def test_the_shim_is_killed(self):
        client = self.open(self.program, [*PYTHON, *INPUT])
        self.start(client)
        client.kill()
        wait_until("the session is gone", lambda: not self.client().ask("plenum_list")["sessions"])

    def test_the_daemon_is_killed(self):
        client = self.open(self.program, [*PYTHON, *INPUT])
        self.start(client)
        self.daemon.kill()
        self.assertEqual(client.process.wait(DEADLINE), 69)
        self.assertIn("daemon", client.process.stderr.read().decode())

    def test_the_agent_is_killed(self):
        client = self.open(self.program, [*PYTHON, *INPUT])
        self.start(client)
        agent = self.client().ask("plenum_list")["sessions"][0]["pid"]
        os.kill(agent, signal.SIGKILL)
        self.assertEqual(client.process.wait(DEADLINE), 128 + signal.SIGKILL)

    def test_kept_and_taken_up_again(self):
        client = self.open(self.program, [*PYTHON, *INPUT], PLENUM_SESSION="kept")
        client.send({"type": "user", "message": {"role": "user", "content": "remember quince"}})
        client.wait_result()
        self.finish(client, 0)
        self.wait_state("kept", "idle")
        again = self.open(self.program, [*PYTHON, *INPUT], PLENUM_SESSION="kept")
        again.send({"type": "user", "message": {"role": "user", "content": "@history@"}})
        self.assertIn("quince", again.wait_result()["result"])
        self.finish(again, 0)

    def test_a_watcher_answers_for_the_program(self):
        client = self.open(self.program, [*PYTHON, "--permission-prompt-tool", "stdio", *INPUT], PLENUM_SESSION="kept")
        self.start(client)
        watcher = self.client("kept", role="observer", approve=True)
        client.send({"type": "user", "message": {"role": "user", "content": bash("touch made")}})
        request = watcher.wait_request("can_use_tool")
        mine = client.wait_request("can_use_tool")
        watcher.answer(request, allow(request))
        client.wait_cancel(mine)
        client.wait_result()
        self.assertTrue((self.work / "made").exists())
        self.finish(client, 0)
