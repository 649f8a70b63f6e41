# SPDX-License-Identifier: MIT
"""What people run: each row of the table "Works with" in README.md and plenum-shim(1). The TypeScript SDK has test_sdk.py.

A program runs once with the real CLI and once with plenum-shim, and must see the same.
"""

import contextlib
import itertools
import json
import os
import pty
import re
import select
import signal
import subprocess
import threading
import xml.dom.minidom

import test_agents
from harness import CLIS, DEADLINE, HERE, PATH, Case, allow, bash, cli_environment, mcp_server, wait_until
from test_sdk import Normal, kind
from test_shim import INPUT, PYTHON_SDK, Lines

ROOT = HERE.parent.parent
ACP = HERE / "node_modules" / "@agentclientprotocol" / "claude-agent-acp"


class Programs(Case):
    """The real CLI and the shim with the same environment."""

    @property
    def shim(self):
        return next(self.build.rglob("plenum-shim"))

    def environment(self, **more):
        return self.place.environment(**cli_environment(self.api.url), PLENUM_SOCKET=self.daemon.socket,
                                      PLENUM_CLAUDE=str(self.cli), **more)

    def run_program(self, program, *args, **options):
        done = subprocess.run([str(program), *args], env=self.environment(), cwd=self.work, capture_output=True, text=True,
                              timeout=DEADLINE, **options)
        return done.returncode, done.stdout, done.stderr

    def sessions(self):
        return self.client().ask("plenum_list")["sessions"]


class PythonSdk(Lines):
    """claude-agent-sdk 0.2.143, whose package index is not reachable for every test: its command lines and its lines."""

    def test_the_version_check(self):
        """It gives `claude -v` two seconds and reads the first number."""
        for program in (self.cli, self.program):
            done = subprocess.run([str(program), "-v"], capture_output=True, text=True, timeout=DEADLINE,
                                  env=self.place.environment(PLENUM_CLAUDE=str(self.cli)))
            self.assertEqual(re.match(r"([0-9]+\.[0-9]+\.[0-9]+)", done.stdout.strip()).group(1), self.cli_version)

    def test_all_it_can_ask_for(self):
        """A client with a permission callback, hooks, an in-process server, an interrupt and a change of mode."""
        servers = {"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}
        argv = ["--output-format", "stream-json", "--verbose", "--system-prompt", "Be brief.", "--tools", "default",
                "--allowedTools", "mcp__calc__add", "--max-turns", "5", "--disallowedTools", "WebSearch", "--model",
                "claude-sonnet-4-5", "--permission-prompt-tool", "stdio", "--permission-mode", "default", "--add-dir",
                str(self.place.home), "--mcp-config", json.dumps(servers), "--include-partial-messages",
                "--setting-sources=user,project", *INPUT]

        def script(client):
            client.handlers.update({"can_use_tool": allow, "hook_callback": lambda line: {},
                                    "mcp_message": mcp_server("calc", {"add": lambda args: str(args["a"] + args["b"])})})
            self.start(client, hooks={"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}, agents=None)
            for text in ('@tool mcp__calc__add {"a":2,"b":3}@', bash("touch made")):
                since = client.mark()
                client.send({"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None,
                             "session_id": "default"})
                client.wait_result(since=since)
            client.ask("set_permission_mode", mode="acceptEdits")
            client.ask("interrupt")

        seen = []
        for program in (self.cli, self.program):
            (self.work / "made").unlink(missing_ok=True)
            client = self.open(program, argv)
            script(client)
            lines = self.finish(client, 0)["lines"]
            self.assertTrue((self.work / "made").exists())
            asked = [line["request"]["subtype"] for line in lines if line["type"] == "control_request"
                     and line["request"]["subtype"] != "mcp_message"]
            self.assertEqual(asked, ["hook_callback", "can_use_tool"])
            normal = Normal(self.place)
            seen.append([normal.text(line["result"]) for line in lines if line["type"] == "result"])
        self.assertEqual(*seen)
        self.assertEqual(len(seen[0]), 2)


class VsCode(Lines):
    def test_the_process_wrapper(self):
        """claudeCode.claudeProcessWrapper: WRAPPER /path/of/its/claude ARGUMENTS; that claude is in no PATH."""
        argv = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--max-thinking-tokens", "0",
                "--permission-prompt-tool", "stdio", "--setting-sources=user,project,local", "--permission-mode", "default",
                "--include-partial-messages"]
        seen = []
        for words in ([str(self.cli)], [str(self.program), str(self.cli)]):
            client = self.open(words[0], [*words[1:], *argv], PLENUM_PROFILE="", PLENUM_CLAUDE="/nowhere/claude")
            client.allow_everything()
            self.start(client)
            client.send({"type": "user", "message": {"role": "user", "content": bash("touch made")}})
            client.wait_result()
            if len(words) > 1:
                session, = self.client().ask("plenum_list")["sessions"]
                self.assertEqual(session["profile"], "claude")
            seen.append(self.finish(client, 0)["lines"])
            (self.work / "made").unlink()
        self.assertEqual(*[[kind(line) for line in Normal(self.place).frames(lines)] for lines in seen])


class AcpClient:
    """An editor: JSON-RPC, one message a line."""

    numbers = itertools.count(1)

    def __init__(self, argv, env, cwd):
        self.process = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, bufsize=1)
        self.seen, self.ended, self.changed = [], False, threading.Condition()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("method") == "session/request_permission":
                option = next(o for o in message["params"]["options"] if o["kind"] == "allow_once")
                answer = {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": answer})
            with self.changed:
                self.seen.append(message)
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")

    def ask(self, method, params):
        number = next(AcpClient.numbers)
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

        def answer():
            return next((m for m in self.seen if m.get("id") == number and "method" not in m), None)
        with self.changed:
            self.changed.wait_for(lambda: self.ended or answer(), DEADLINE)
            assert answer() and "result" in answer(), f"{method}: {answer()} {self.seen[-3:]}"
            return answer()["result"]

    def updates(self):
        with self.changed:
            return [m["params"]["update"] for m in self.seen if m.get("method") == "session/update"]

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class ClaudeAgentAcp(Programs):
    """The bridge of every editor that speaks ACP, with CLAUDE_CODE_EXECUTABLE."""

    def turns(self, executable):
        node = subprocess.run(["which", "node"], capture_output=True, text=True, check=True).stdout.strip()
        editor = AcpClient([node, str(ACP / "dist" / "index.js")], self.environment(
            CLAUDE_CODE_EXECUTABLE=str(executable)), self.work)
        try:
            editor.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
            session = editor.ask("session/new", {"cwd": str(self.work), "mcpServers": []})["sessionId"]
            editor.ask("session/set_mode", {"sessionId": session, "modeId": "default"})
            running = len(self.sessions())
            stops = [editor.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})
                     ["stopReason"] for text in ("hello", bash("touch made"))]
            texts = "".join(u["content"]["text"] for u in editor.updates() if u["sessionUpdate"] == "agent_message_chunk")
            asked = [m["params"]["toolCall"].get("title") for m in editor.seen
                     if m.get("method") == "session/request_permission"]
        finally:
            editor.close()
        self.assertTrue((self.work / "made").exists())
        (self.work / "made").unlink()
        return running, {"stops": stops, "texts": Normal(self.place).text(texts), "asked": asked}

    def test_a_prompt_and_a_permission(self):
        (none, direct), (one, through) = self.turns(self.cli), self.turns(self.shim)
        self.assertEqual((none, one), (0, 1))
        self.assertEqual(direct, through)
        self.assertEqual((direct["stops"], len(direct["asked"])), (["end_turn"] * 2, 1))
        self.assertIn("echo: hello", direct["texts"])


class Print(Programs):
    """A program that calls `claude -p`: the CLI itself answers, without the daemon."""

    def normal(self, done):
        status, out, err = done
        lines = [json.loads(line) for line in out.splitlines()] if out.startswith("{") else out
        normal = Normal(self.place)
        return status, normal.frames(lines) if isinstance(lines, list) else lines, normal.text(err)

    def same(self, *args, **options):
        direct, through = [self.normal(self.run_program(program, "-p", *args, **options)) for program in (self.cli, self.shim)]
        self.assertEqual(direct, through)
        self.assertEqual(self.sessions(), [])
        return through

    def test_text(self):
        for args, given in ((["hello"], ""), ([], "hello"), (["hello", "--output-format", "text"], "")):
            self.assertEqual(self.same(*args, input=given)[:2], (0, "echo: hello\n"))

    def test_json(self):
        status, frames, _ = self.same("hello", "--output-format", "json", input="")
        self.assertEqual((status, frames[-1]["result"]), (0, "echo: hello"))

    def test_stream_json(self):
        status, frames, _ = self.same("hello", "--output-format", "stream-json", "--verbose", input="")
        self.assertEqual((status, [frame["result"] for frame in frames if frame.get("type") == "result"]),
                         (0, ["echo: hello"]))

    def test_in_a_session(self):
        """PLENUM_SESSION makes it a session of the daemon, which stays: the same output, and one conversation."""
        def ask(*args, given=""):
            direct = self.normal(self.run_program(self.cli, "-p", *args, input=given))
            done = subprocess.run([str(self.shim), "-p", *args], env=self.environment(PLENUM_SESSION="work", PLENUM_PROFILE="real"),
                                  cwd=self.work, input=given, capture_output=True, text=True, timeout=DEADLINE)
            return direct, self.normal((done.returncode, done.stdout, done.stderr))
        for args, given in ((["remember quince"], ""), (["hello"], "more"), ([], "hello"), (["@fail 400@"], "")):
            self.assertEqual(*ask(*args, given=given))
        for texts in (["hello", "--output-format", "json"], ["hello", "--output-format", "stream-json", "--verbose"]):
            direct, through = ask(*texts)
            self.assertEqual(*[[(frame["type"], frame.get("result")) for frame in frames if frame["type"] in ("assistant", "result")]
                               for _, frames, _ in (direct, through)])
        self.assertIn("quince", ask("@history@")[1][1])
        self.assertEqual([session["session"] for session in self.sessions()], ["work"])

    def test_an_error(self):
        self.assertEqual(self.same("@fail 400@", input="")[0], 1)


class Itself(Programs):
    """The CLI's own matters become the CLI."""

    def test_version_help_and_subcommands(self):
        for args in (["--version"], ["--help"], ["mcp", "list"], ["mcp", "add", "demo", "--", "false"], ["mcp", "remove", "demo"],
                     ["plugin", "list"], ["mcp", "no-such-command"]):
            with self.subTest(args=args):
                seen = [self.run_program(program, *args, stdin=subprocess.DEVNULL) for program in (self.cli, self.shim)]
                if args[1:2] in (["add"], ["remove"]):  # once each
                    self.assertEqual([done[0] for done in seen], [0, 1])
                else:
                    self.assertEqual(*seen)
        self.assertEqual(self.sessions(), [])

    def test_its_screen(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            os.execve(self.shim, [str(self.shim)], self.environment(TERM="xterm-256color", PATH=PATH))
        try:
            wait_until("the shim is the CLI", lambda: os.path.samefile(f"/proc/{pid}/exe", self.cli))
            screen = b""
            while b"\x1b[?25l" not in screen:  # it hides the cursor to draw
                self.assertTrue(select.select([terminal], [], [], DEADLINE)[0], screen)
                screen += os.read(terminal, 65536)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(terminal)
        self.assertEqual(self.sessions(), [])


class Tables(Case):
    """The tables name the versions that these tests run with, and the picture is there."""
    needs_daemon = False

    def test_versions(self):
        packages = json.loads((HERE / "package.json").read_text())["dependencies"]
        versions = [*CLIS, packages["@anthropic-ai/claude-agent-sdk"], packages["@agentclientprotocol/claude-agent-acp"],
                    PYTHON_SDK]
        for page, text in (("README.md", "### Works with"), ("man/plenum-shim.1", ".Sh WORKS WITH")):
            table = (ROOT / page).read_text().split(text)[1].split("\n## " if page == "README.md" else "\n.Sh ")[0]
            for version in versions:
                self.assertIn(version, table, page)

    def test_each_row_names_its_test(self):
        table = (ROOT / "README.md").read_text().split("### Works with")[1].split("\n## ")[0]
        rows = [line.split("|")[-2].strip() for line in table.splitlines() if line.startswith("| ")][1:]
        names = [name.strip(" `") for row in rows for name in row.split(",")]
        self.assertGreaterEqual(len(names), 6)
        for name in names:
            self.assertTrue((HERE / name).is_file() if name.endswith(".py") else name in globals(), name)

    def test_other_agents(self):
        """Each row has the installed version, and its test."""
        packages = json.loads((HERE / "package.json").read_text())["dependencies"]
        table = (ROOT / "README.md").read_text().split("## Other agents")[1].split("\n## ")[0]
        rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")][1:]
        wanted = {"gemini": "@google/gemini-cli", "claude-acp": "@agentclientprotocol/claude-agent-acp", "codex": "@openai/codex"}
        self.assertEqual({row[1]: row[3] for row in rows}, {name: packages[wanted[name]] for name in wanted})
        for row in rows:
            self.assertTrue(hasattr(test_agents, row[-1]), row)

    def test_the_picture(self):
        self.assertIn("docs/chat.svg", (ROOT / "README.md").read_text())
        xml.dom.minidom.parse(str(ROOT / "docs" / "chat.svg"))
