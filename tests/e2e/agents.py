# SPDX-License-Identifier: MIT
"""The real agents with JSON-RPC on stdio, and their clients: two agents of the Agent Client Protocol, and codex.

A protocol class has the few operations of the tests, under the same names for both protocols.
"""

import itertools
import json
import shutil

from harness import CLIS, HERE, Client, Daemon, cli_environment

MODULES = HERE / "node_modules"
CODEX = MODULES / "@openai" / "codex-linux-x64" / "vendor" / "x86_64-unknown-linux-musl" / "bin" / "codex"


class Acp(Client):
    """A client of the Agent Client Protocol: an editor."""

    dialect = "acp"
    word = "--acp"  # of plenum-shim
    head = {"jsonrpc": "2.0"}
    stopped = "cancelled"
    echoes = False  # to the client that has sent the prompt
    numbers = itertools.count(1)

    def _answer(self, line):
        handler = self.handlers.get(line.get("method")) if "id" in line else None
        body = handler(line) if handler else None
        return None if body is None else {**self.head, "id": line["id"], "result": body}

    # --- JSON-RPC ---

    def begin(self, method, **params):
        number = next(self.numbers)
        self.send({**self.head, "id": number, "method": method, "params": params})
        return number

    def notify(self, method, **params):
        self.send({**self.head, "method": method, "params": params})

    def reply(self, number):
        return self.wait(f"the reply to {number}", lambda l: l.get("id") == number and "method" not in l)

    def call(self, method, **params):
        """Return the result of a request that must succeed."""
        line = self.reply(self.begin(method, **params))
        assert "result" in line, f"{method}: {line}\n{self.tail()}"
        return line["result"]

    def refusal(self, method, **params):
        """Return the code of the error that a request must get."""
        return self.reply(self.begin(method, **params))["error"]["code"]

    def answer(self, request, body):
        self.send({**self.head, "id": request["id"], "result": body})

    def wait_message(self, method, since=0, where=lambda params: True):
        return self.wait(method, lambda l: l.get("method") == method and where(l["params"]), since)

    # --- the operations of the tests ---

    def hello(self):
        answer = self.call("initialize", protocolVersion=1, clientInfo={"name": "e2e", "version": "1"},
                           clientCapabilities={"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False})
        self.capabilities = answer["agentCapabilities"]
        return answer

    def new(self, cwd):
        """Return the id of a new conversation that asks before it runs a tool."""
        self.conversation = self.call("session/new", cwd=str(cwd), mcpServers=[])["sessionId"]
        self.call("session/set_mode", sessionId=self.conversation, modeId="default")
        return self.conversation

    def load(self, conversation, cwd):
        self.conversation = conversation
        self.loaded = self.reply(self.begin("session/load", sessionId=conversation, cwd=str(cwd), mcpServers=[]))
        assert "result" in self.loaded, f"{self.loaded}\n{self.tail()}"
        self.call("session/set_mode", sessionId=conversation, modeId="default")

    def fork(self, cwd):
        """Go on in a copy of the conversation; return its id, None without a word of the agent that it can do that."""
        if "fork" not in self.capabilities.get("sessionCapabilities", {}):
            return None
        self.conversation = self.call("session/fork", sessionId=self.conversation, cwd=str(cwd), mcpServers=[])["sessionId"]
        return self.conversation

    def prompt(self, text, uuid=None):
        return self.begin("session/prompt", sessionId=self.conversation, prompt=[{"type": "text", "text": text}])

    def end(self, prompt, since=0):
        """Return the reason for the end of the prompt's turn."""
        line = self.reply(prompt)
        return line["result"]["stopReason"] if "result" in line else line["error"]

    def updates(self, kind, since=0):
        return [l["params"]["update"] for l in self.seen(lambda l: l.get("method") == "session/update", since)
                if l["params"]["update"]["sessionUpdate"] == kind]

    def said(self, since=0):
        return "".join(update["content"]["text"] for update in self.updates("agent_message_chunk", since))

    @staticmethod
    def comes_at_any_time(line):
        return line.get("params", {}).get("update", {}).get("sessionUpdate") in (
            "available_commands_update", "usage_update", "session_info_update", "config_option_update")

    @staticmethod
    def piece(line):
        """Return the object and the name of the text if this is a piece of what the agent says."""
        update = line.get("params", {}).get("update", {})
        return (update["content"], "text") if update.get("sessionUpdate") == "agent_message_chunk" else None

    def prompts(self, since=0):
        return [update["content"]["text"] for update in self.updates("user_message_chunk", since)]

    def asked(self, since=0):
        return self.wait_message("session/request_permission", since)

    def title(self, ask):
        return ask["params"]["toolCall"]["title"]

    @staticmethod
    def choice(ask, kind):
        option = next(option for option in ask["params"]["options"] if option["kind"] == kind)
        return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}

    allow = staticmethod(lambda ask: Acp.choice(ask, "allow_once"))
    deny = staticmethod(lambda ask: Acp.choice(ask, "reject_once"))
    invalid = staticmethod(lambda ask: {"outcome": {"outcome": "selected", "optionId": "no such option"}})

    def cancel(self, prompt):
        self.notify("session/cancel", sessionId=self.conversation)

    def wait_withdrawal(self, ask, since=0):
        self.wait_message("$/cancel_request", since, lambda params: params["requestId"] == ask["id"])

    def withdraw(self, ask):
        """What a client must answer after it has cancelled."""
        self.answer(ask, {"outcome": {"outcome": "cancelled"}})


class Codex(Acp):
    """A client of codex app-server."""

    dialect = "codex"
    word = "app-server"
    head = {}
    stopped = "interrupted"
    echoes = True

    def hello(self):
        answer = self.call("initialize", clientInfo={"name": "e2e", "title": "e2e", "version": "1"})
        self.notify("initialized")
        return answer

    def new(self, cwd):
        answer = self.call("thread/start", cwd=str(cwd), approvalPolicy="untrusted", sandbox="workspace-write")
        self.conversation = answer["thread"]["id"]
        return self.conversation

    def load(self, conversation, cwd):
        self.conversation = conversation
        self.call("thread/resume", threadId=conversation, cwd=str(cwd), approvalPolicy="untrusted", excludeTurns=True)

    def fork(self, cwd):
        answer = self.call("thread/fork", threadId=self.conversation, cwd=str(cwd), approvalPolicy="untrusted")
        self.conversation = answer["thread"]["id"]
        return self.conversation

    def prompt(self, text, uuid=None):
        more = {"clientUserMessageId": uuid} if uuid else {}
        answer = self.call("turn/start", threadId=self.conversation, input=[{"type": "text", "text": text}], **more)
        return answer["turn"]["id"]

    def end(self, prompt, since=0):
        done = self.wait_message("turn/completed", since, lambda params: params["turn"]["id"] == prompt)
        status = done["params"]["turn"]["status"]
        return "end_turn" if status == "completed" else status

    def said(self, since=0):
        return "".join(l["params"]["delta"] for l in self.seen(lambda l: l.get("method") == "item/agentMessage/delta", since))

    def asked(self, since=0):
        return self.wait_message("item/commandExecution/requestApproval", since)

    def title(self, ask):
        return ask["params"]["commandActions"][0]["command"]

    allow = staticmethod(lambda ask: {"decision": "accept"})
    deny = staticmethod(lambda ask: {"decision": "decline"})
    invalid = staticmethod(lambda ask: {"decision": "no such decision"})

    def cancel(self, prompt):
        self.call("turn/interrupt", threadId=self.conversation, turnId=prompt)

    @staticmethod
    def comes_at_any_time(line):
        return line.get("method") in ("configWarning", "remoteControl/status/changed", "warning", "serverRequest/resolved",
                                      "thread/status/changed", "thread/readState/changed", "thread/tokenUsage/updated",
                                      "account/rateLimits/updated")

    @staticmethod
    def piece(line):
        return (line["params"], "delta") if line.get("method") == "item/agentMessage/delta" else None

    def prompts(self, since=0):
        items = [l["params"]["item"] for l in self.seen(lambda l: l.get("method") == "item/completed", since)]
        return [item["content"][0]["text"] for item in items if item["type"] == "userMessage"]

    def wait_withdrawal(self, ask, since=0):
        self.wait_message("serverRequest/resolved", since, lambda params: params["requestId"] == ask["id"])

    def withdraw(self, ask):
        """codex withdraws its approvals itself."""
        self.wait_withdrawal(ask)


class Agent:
    """An agent: its client's protocol, its program, its files and environment, the prompt that asks for a command."""

    def __init__(self, protocol, argv, environment, shell, prepare=lambda place, api: None, restart=lambda place: None):
        self.protocol, self.argv, self.environment, self.prepare, self.restart = protocol, argv, environment, prepare, restart
        self.shell = shell

    def command(self, text):
        name, argument = self.shell
        return f"@tool {name} {json.dumps({argument: text})}@"

    def open(self, place, api):
        """Start the agent itself; its client has its stdin and stdout."""
        self.prepare(place, api)
        with (place.root / "agent.log").open("ab") as log:
            return self.protocol.run(self.argv, env=place.environment(**self.environment(api)), cwd=place.work, stderr=log)


class AgentDaemon(Daemon):
    """A private plenumd whose default profile runs the agent."""

    def write_config(self, cli, api, settings, profile):
        cli.prepare(self.place, api)
        self.write_profile(cli.protocol.dialect, cli.argv, cli.environment(api), settings, profile)


NODE = shutil.which("node") or "/usr/bin/node"
LOOPBACK = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


def prepare_gemini(place, api):
    """No account. Without its retention, because that deletes what session/load has once read (protocol-facts 9.5)."""
    folder = place.home / ".gemini"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({
        "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "sessionRetention": {"enabled": False}}}))


def restart_gemini(place):
    """Make its conversations older: session/load in the minute of their start overwrites them (protocol-facts 9.5)."""
    for number, path in enumerate(sorted(place.home.glob(".gemini/tmp/*/chats/session-*.jsonl"))):
        path.rename(path.with_name(f"session-1999-01-01T00-{number:02d}-{path.stem[-8:]}.jsonl"))


def prepare_codex(place, api):
    """Its sandbox makes .git, .codex and .agents in each writable directory: not in /tmp, others run there."""
    folder = place.home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(
        f'model = "loopback"\nmodel_provider = "loopback"\n[model_providers.loopback]\nname = "loopback"\n'
        f'base_url = "{api.url}/v1"\nwire_api = "responses"\n'
        f"[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n")


GEMINI = Agent(
    Acp, [NODE, str(MODULES / "@google" / "gemini-cli" / "bundle" / "gemini.js"), "--acp"],
    lambda api: {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": api.url, "GEMINI_MODEL": "gemini-2.5-pro",
                 "GEMINI_CLI_NO_RELAUNCH": "true", **LOOPBACK},
    ("run_shell_command", "command"), prepare_gemini, restart_gemini)

CLAUDE_ACP = Agent(
    Acp, [NODE, str(MODULES / "@agentclientprotocol" / "claude-agent-acp" / "dist" / "index.js")],
    lambda api: {**cli_environment(api.url), "CLAUDE_CODE_EXECUTABLE": str(CLIS["2.1.332"])}, ("Bash", "command"))

CODEX_SERVER = Agent(Codex, [str(CODEX), "app-server"], lambda api: LOOPBACK, ("exec_command", "cmd"), prepare_codex)
