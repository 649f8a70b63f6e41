# SPDX-License-Identifier: MIT
"""The tools of a real CLI, and their rules."""

import re

from harness import HERE, Case, allow, bash, is_ask, text_of, tool_results

PAGE = HERE.parents[1] / "docs" / "tools.md"


class Tools(Case):
    """docs/tools.md, with the table of src/dialect/claude/tools.c, has every tool listed by the CLI."""

    needs_daemon = False

    def listed(self, **env):
        cli = self.direct(**env)
        cli.turn("hello")
        return set(cli.seen(lambda l: l.get("subtype") == "init")[-1]["tools"])

    def check(self, must_have, **env):
        known = set(re.findall(r"^\| (\w+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) - {"tool"}
        listed = self.listed(**env)
        self.assertEqual(listed - known, set(), "tools that docs/tools.md and src/dialect/claude/tools.c do not have")
        self.assertLessEqual(must_have, listed)

    def test_by_default(self):
        self.check({"Bash", "Read", "Write"} | ({"Monitor"} if self.cli_version == "2.1.332" else set()))

    def test_with_powershell(self):
        self.check({"Bash", "PowerShell"}, CLAUDE_CODE_USE_POWERSHELL_TOOL="1")

    def test_with_other_lists(self):
        self.check({"Write"}, CLAUDE_CODE_REPL="1", CLAUDE_CODE_ENABLE_TASKS="0", CLAUDE_CODE_ENABLE_TODO_TOOLS="1",
                   ENABLE_LSP_TOOL="1", ENABLE_STUB_TOOLS="1", CLAUDE_CODE_ENABLE_REFRESH_MCP_TOOLS="1")


class Rules(Case):
    profile = ("deny_tools = Bash(touch:*)", "allow_tools = *")

    def test_a_wrapper_is_denied_and_a_hidden_name_is_asked(self):
        one = self.client("work")
        one.turn(bash("nice touch made"))
        self.assertEqual([is_ask(line) for line in one.lines].count(True), 0)
        self.assertIn("Bash(touch:*)", text_of(tool_results(one)[-1]) + self.daemon.log.read_text())
        uuid = one.prompt(bash("python3 -c 'open(\"m\" + \"ade\", \"w\")'"))
        request = one.wait_request("can_use_tool")
        one.answer(request, {"behavior": "deny", "message": "no"})
        one.wait_result(uuid)
        self.assertEqual(list(self.work.iterdir()), [])


class MonitorRules(Case):
    only_cli = "2.1.332"
    profile = ("deny_tools = Bash(touch:*)",)

    def monitor(self, command):
        return '@tool Monitor {"command":"' + command + '","description":"x","timeout_ms":5000}@'

    def test_a_rule_for_bash_holds_for_monitor(self):
        one = self.client("work")
        one.turn(self.monitor("touch made"))
        self.assertEqual(one.seen(is_ask), [])
        self.assertTrue(tool_results(one)[-1]["is_error"], tool_results(one))
        self.assertIn("by rule Bash(touch:*)", self.daemon.log.read_text())
        self.assertFalse((self.work / "made").exists())

    def test_another_command_is_asked_as_before(self):
        one = self.client("work")
        uuid = one.prompt(self.monitor("echo x > other"))
        request = one.wait_request("can_use_tool")
        self.assertEqual(request["request"]["tool_name"], "Monitor")
        one.answer(request, allow(request))
        one.wait_result(uuid)
