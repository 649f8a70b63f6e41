# SPDX-License-Identifier: MIT
"""Lines that run a tool without the model, `bash_command` and `mcp_call`, on the real CLIs: they bypass no rule, guard
or approver."""

import json

from harness import Case, allow, deny, is_event

TOOL = "mcp__notes__write"
SERVER = r"""
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "n", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "write", "description": "writes", "inputSchema": {"type": "object"}}]}
    elif m["method"] == "tools/call":
        open(m["params"]["arguments"]["path"], "w").close()
        r = {"content": [{"type": "text", "text": "written"}]}
    else:
        r = {}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""


class Execute(Case):
    profile = ["deny_tools = Bash(touch denied:*)"]

    def setUp(self):
        super().setUp()
        server = self.place.root / "server.py"
        server.write_text(SERVER)
        config = {"mcpServers": {"notes": {"command": "/usr/bin/python3", "args": [str(server)]}}}
        self.person = self.client("work", args=["--mcp-config", json.dumps(config), "--strict-mcp-config"], name="person")
        self.driver = self.client("work", approve=False, name="driver")
        self.person.ask("initialize")
        self.person.turn("hello")

    def run_command(self, client, name):
        client.send({"type": "bash_command", "command": "touch " + name})

    def refused_command(self, client, since):
        return client.wait("a refusal", lambda l: is_event(l, "error") and l["code"] == "not_allowed", since)

    def settled(self, client):
        """On return the CLI has handled all earlier lines."""
        client.turn("and now")

    def made(self, name):
        return (self.work / name).exists()

    def test_a_command_past_a_deny_rule(self):
        for client in (self.person, self.driver):
            since = client.mark()
            self.run_command(client, "denied")
            self.refused_command(client, since)
        self.settled(self.person)
        self.assertFalse(self.made("denied"))
        self.assertIn("Bash deny", self.daemon.log.read_text())

    def test_a_command_past_a_guard(self):
        guard = self.client("work", name="guard", handlers={"hook_callback": lambda line: {}})
        guard.ask("initialize", hooks={"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h"]}]})
        self.settled(self.person)  # 2.1.197 was resumed for the new hooks by then
        for client in (self.person, self.driver):
            since = client.mark()
            self.run_command(client, "guarded")
            self.refused_command(client, since)
        self.settled(self.person)
        self.assertFalse(self.made("guarded"))

    def test_a_command_past_the_person(self):
        self.run_command(self.driver, "first")
        request = self.person.wait_request("can_use_tool", where=lambda r: r["input"]["command"] == "touch first")
        self.settled(self.person)
        self.assertFalse(self.made("first"))
        since = self.driver.mark()
        self.person.answer(request, deny())
        self.refused_command(self.driver, since)
        self.run_command(self.driver, "second")
        request = self.person.wait_request("can_use_tool", where=lambda r: r["input"]["command"] == "touch second")
        self.person.answer(request, allow(request))
        self.person.wait("the output", lambda l: l.get("type") == "user" and "bash-stdout" in json.dumps(l))
        since = self.person.mark()
        self.run_command(self.person, "third")  # the CLI echoes it, runs it, then prints the output
        self.person.wait("the output", lambda l: l.get("type") == "user" and "bash-stdout" in json.dumps(l), since)
        self.settled(self.person)
        self.assertEqual([self.made(name) for name in ("first", "second", "third")], [False, True, True])

    def call(self, client, name):
        client.send({"type": "control_request", "request_id": name,
                     "request": {"subtype": "mcp_call", "tool": TOOL, "arguments": {"path": str(self.work / name)},
                                 "check_permissions": False}})

    def answered(self, client, name):
        return client.wait("the answer to " + name, lambda l: l.get("type") == "control_response"
                           and l["response"].get("request_id") == name)["response"]

    def test_a_call_while_its_question_is_open(self):
        """A driver's call: the daemon (2.1.197) or the CLI asks, and it does not run before the approver's yes."""
        self.call(self.driver, "one")
        request = self.person.wait_request("can_use_tool", where=lambda r: r["tool_name"] == TOOL)
        self.settled(self.person)
        self.assertFalse(self.made("one"))
        since = self.person.mark()
        self.person.answer(request, deny())
        self.assertEqual(self.answered(self.driver, "one")["subtype"], "error")
        self.call(self.driver, "two")
        request = self.person.wait_request("can_use_tool", since, where=lambda r: r["tool_name"] == TOOL)
        self.person.answer(request, allow(request))
        self.assertEqual(self.answered(self.driver, "two")["subtype"], "success")
        self.assertEqual((self.made("one"), self.made("two")), (False, True))

    def test_a_call_past_a_guard(self):
        """2.1.332 asks the guard about an mcp_call with check_permissions; 2.1.197 cannot, so it is refused."""
        verdict = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                          "permissionDecisionReason": "guarded"}}
        guard = self.client("work", name="guard", handlers={"hook_callback": lambda line: verdict})
        guard.ask("initialize", hooks={"PreToolUse": [{"matcher": TOOL, "hookCallbackIds": ["h"]}]})
        self.settled(self.person)
        since = guard.mark()
        for client, name in ((self.person, "one"), (self.driver, "two")):
            self.call(client, name)
            answer = self.answered(client, name)
            self.assertEqual(answer["subtype"], "error")
            if self.cli_version == "2.1.197":
                self.assertEqual(answer["code"], "not_allowed")
        self.assertEqual((self.made("one"), self.made("two")), (False, False))
        asked = guard.seen(lambda l: l.get("type") == "control_request", since)
        self.assertEqual(len(asked), 2 if self.cli_version == "2.1.332" else 0)

    def test_a_person_s_own_call(self):
        self.call(self.person, "own")
        self.assertEqual(self.answered(self.person, "own")["subtype"], "success")
        self.assertTrue(self.made("own"))
