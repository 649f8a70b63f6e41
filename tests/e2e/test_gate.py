# SPDX-License-Identifier: MIT
"""The gate before the real CLIs: the lines that they accept, and those that the daemon lets a driver send.

The names are read from the programs, so that a new version with more names fails here until each has its row."""

import json
import mmap
import os
import re
import sys
from pathlib import Path

from harness import HERE, Case, PACKAGES, wait_until

sys.path.insert(0, str(HERE.parent))
import gate_table  # noqa: E402

SDK = PACKAGES / "claude-agent-sdk"

# Found by the same patterns, but not requests: answers, and lines of the child.
NO_REQUESTS = {"success", "error", "code_change_published", "vcs_state_changed"}
ANCHORS = {"cancel_async_message", "set_permission_mode", "mcp_status", "end_session"}


def found(data, *patterns):
    return {match.group(1).decode() for pattern in patterns for match in re.finditer(pattern, data)}


def requests_in(data):
    """Return subtypes of control requests: of schemas, of comparisons, of calls, and of lists and tables with a known
    one."""
    names = found(data, rb'\(\{subtype:[\w$]{1,3}(?:\.literal)?\("([a-z_]+)"\)', rb'request\.subtype===?"([a-z_]+)"',
                  rb'request\(\{subtype:"([a-z_]+)"')
    for match in re.finditer(rb'\["[a-z_]+"(?:,"[a-z_]+")+\]', data):
        listed = set(re.findall(r"[a-z_]+", match.group().decode()))
        names |= listed if listed & ANCHORS else set()
    for match in re.finditer(rb"\{mcp_status:[\w$]+(?:,[a-z_]+:[\w$]+)+\}", data):
        names |= found(match.group(), rb"[{,]([a-z_]+):")
    return names - NO_REQUESTS


def types_in(data):
    """Return types of lines on stdin: those that the reader of stdin compares with."""
    names = set()
    for match in re.finditer(rb"async processLine\(", data):
        body = re.split(rb"\}(?:blankedPromptDenyTarget|resetStallWatchdog)\(", data[match.start():match.start() + 20000])[0]
        names |= found(body, rb'\w\.type[!=]=="([a-z_]+)"')
    return names


def keys_of(text):
    """Return the keys of the object literal whose brace is just before the text."""
    keys, depth, at, expect = set(), 0, 0, True
    while at < len(text):
        char = text[at]
        if char in "\"'`":
            at += 1
            while text[at] != char:
                at += 2 if text[at] == "\\" else 1
            expect = False
        elif char in "{([":
            depth += 1
        elif char in "})]":
            if depth == 0:
                return keys
            depth -= 1
        elif depth == 0 and char == ",":
            expect = True
        elif depth == 0 and expect and (match := re.compile(r"([A-Za-z_$][\w$]*):").match(text, at)):
            keys.add(match.group(1))
            expect, at = False, match.end() - 1
        at += 1
    raise AssertionError("no end of the object")


def members_in(data, kind, name, also):
    """Return members in the schemas of a line or request that contain `also` too (others of that name are
    unrelated)."""
    keys = set()
    for match in re.finditer(rb'\(\{(?=%s:[\w$]{1,3}(?:\.literal)?\("%s"\))' % (kind, name), data):
        members = keys_of(data[match.end():match.end() + 80000].decode("latin-1"))
        keys |= members if also in members else set()
    return keys


class GateNames(Case):
    """Each name known to a CLI has its row. Offline: none of it runs."""

    needs_daemon = False

    def setUp(self):
        super().setUp()
        file = open(self.cli, "rb")
        self.addCleanup(file.close)
        self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.addCleanup(self.data.close)
        self.rows = {(row.kind, row.name) for row in gate_table.rows()}

    def has_rows(self, kind, names, known, prefix=""):
        """`known`: some that must be found, to detect a broken search."""
        self.assertLessEqual(known, names, "the search does not find what is there")
        self.assertEqual(sorted(name for name in names if (kind, prefix + name) not in self.rows
                                and (kind, name) not in self.rows), [])

    def test_requests(self):
        known = {"initialize", "interrupt", "set_permission_mode", "mcp_call", "read_file", "apply_flag_settings",
                 "side_question", "reload_plugins", "end_session", "get_context_usage"}
        names = requests_in(self.data)
        self.has_rows("REQUEST", names, known | ({"set_cwd", "ui_press"} if self.cli_version == "2.1.332" else set()))
        self.assertGreater(len(names), 45)

    def test_requests_of_the_sdk(self):
        names = requests_in((SDK / "sdk.mjs").read_bytes())
        names |= found((SDK / "sdk.d.ts").read_bytes(),
                       rb"declare type SDK(?:Control|Hook)\w*Request = \{\s*subtype: '([a-z_]+)'")
        self.has_rows("REQUEST", names, {"initialize", "interrupt", "set_model", "mcp_status", "stop_task"})

    def test_lines(self):
        self.has_rows("TYPE", types_in(self.data),
                      {"user", "control_request", "control_response", "keep_alive", "bash_command", "assistant", "system",
                       "update_environment_variables"})

    def test_members_of_initialize(self):
        self.has_rows("MEMBER", members_in(self.data, b"subtype", b"initialize", "hooks"),
                      {"hooks", "sdkMcpServers", "agents", "systemPrompt", "skills", "jsonSchema"}, "initialize.")

    def test_members_of_prompts(self):
        self.has_rows("MEMBER", members_in(self.data, b"type", b"user", "parent_tool_use_id"),
                      {"message", "isSynthetic", "priority", "origin", "shouldQuery", "tool_use_result"}, "user.")


class GateDriver(Case):
    """A driver, not an approver: the CLI's actions for it are refused, and none has happened."""

    settings = (f"approve_uids = {os.getuid() + 1}",)

    def refused_line(self, client, line):
        since = client.mark()
        client.send(line)
        return client.wait_event("error", since, code="not_allowed")

    def test_what_executes_or_reads(self):
        secret = self.place.root / "secret"
        secret.write_text("TOP-SECRET\n")
        (self.work / "other").mkdir()
        one = self.client("work")
        touch = {"type": "stdio", "command": "/usr/bin/touch", "args": [str(self.work / "started")]}
        one.send({"type": "bash_command", "command": "touch made"})  # waits for an approver, see test_execute.py
        self.refused_line(one, {"type": "update_environment_variables", "variables": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}})
        self.refused_line(one, {"type": "system", "subtype": "informational", "content": "TOP-SECRET"})
        self.refused_line(one, {"type": "user", "message": {"role": "user", "content": f"look at @{secret}"}})
        for members in ({"mcpServers": {"evil": touch}}, {"agents": {"evil": {"description": "d", "prompt": "p"}}},
                        {"systemPrompt": ["x"]}, {"hooks": {"PreToolUse": [{"hookCallbackIds": ["h"]}]}}):
            answer = one.refused("initialize", "not_allowed", **members)
            self.assertIn(next(iter(members)), answer["error"])
        other = str(self.work / "other")
        one.refused("set_cwd", "not_allowed", path=other, trust_accepted=True, trusted_directory=other)
        one.refused("read_file", "not_allowed", path=str(secret))
        one.refused("start_shell_task", "not_allowed", command="touch made")
        one.refused("set_permission_mode", "not_allowed", mode="acceptEdits")
        one.refused("mcp_status", "not_allowed")
        one.ask("get_context_usage")
        one.ask("initialize")  # none of it ran after the refused ones
        uuid = one.prompt("say@history@")
        self.assertNotIn("TOP-SECRET", str(one.wait_result(uuid)))
        init = one.seen(lambda l: l.get("type") == "system" and l.get("subtype") == "init")[-1]
        self.assertEqual(Path(init["cwd"]), self.work)
        self.assertEqual(os.listdir(self.work), ["other"])

    def test_commands_in_prompts(self):
        one = self.client("work")
        one.turn("hello")
        model = [l for l in one.lines if l.get("subtype") == "init"][-1]["model"]
        since = one.mark()
        for content in ("/model haiku", "/config theme=dark", [{"type": "text", "text": "x"}, {"type": "text", "text": "/model haiku"}]):
            self.refused_line(one, {"type": "user", "message": {"role": "user", "content": content}})
        one.turn("still the same?")
        self.assertEqual([l for l in one.lines[since:] if l.get("subtype") == "init"][-1]["model"], model)
        self.assertIn("hello", str(one.turn("say@history@")))


class GateOwn(Case):
    """The counterpart: the CLI would do all this, and an own peer may."""

    def test_what_an_own_peer_may(self):
        secret = self.place.root / "secret"
        secret.write_text("TOP-SECRET\n")
        (self.work / "other").mkdir()
        one, two = self.client("work"), self.client("work", role="observer")
        started = self.work / "started"
        touch = {"type": "stdio", "command": "/usr/bin/touch", "args": [str(started)]}
        if self.cli_version == "2.1.332":
            one.ask("initialize", mcpServers={})
            other = str(self.work / "other")
            one.ask("set_cwd", path=other, trust_accepted=True, trusted_directory=other)
            self.assertEqual(two.wait_event("changed", what="cwd")["value"], other)
        one.ask("mcp_set_servers", servers={"own": touch})
        self.assertEqual(two.wait_event("changed", what="mcp_servers")["value"], ["own"])
        wait_until("the server was started", started.exists)
        one.send({"type": "update_environment_variables", "variables": {"PLENUM_E2E_TOKEN": "secret-value"}})
        self.assertEqual(two.wait_event("changed", what="environment")["value"], ["PLENUM_E2E_TOKEN"])
        one.turn("hello")
        self.assertFalse(two.seen(lambda l: "secret-value" in json.dumps(l)))
