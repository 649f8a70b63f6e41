# SPDX-License-Identifier: MIT
"""The real CLI without a daemon: what the other tests take for granted about it and about the loopback model."""

import json

from harness import Case, allow, bash, deny, is_ask, mcp_server, tool_results, text_of


class Baseline(Case):
    needs_daemon = False

    def test_a_turn(self):
        cli = self.direct()
        result = cli.turn("hello")
        self.assertEqual(result["result"], "echo: hello")
        self.assertFalse(result["is_error"])

    def test_permission(self):
        cli = self.direct()
        since, uuid = cli.mark(), cli.prompt(bash("touch yes"))
        request = cli.wait_request("can_use_tool", since)
        cli.answer(request, allow(request))
        cli.wait_result(uuid, since)
        self.assertTrue((self.work / "yes").exists())
        since, uuid = cli.mark(), cli.prompt(bash("touch no"))
        cli.answer(cli.wait_request("can_use_tool", since), deny())
        cli.wait_result(uuid, since)
        self.assertFalse((self.work / "no").exists())

    def test_hook_and_mcp(self):
        cli = self.direct()
        cli.allow_everything()
        cli.handlers["mcp_message"] = mcp_server("calc", {"add": lambda args: str(args["a"] + args["b"])})
        cli.handlers["hook_callback"] = lambda line: {}
        cli.ask("initialize", hooks={"PreToolUse": [{"hookCallbackIds": ["hook_0"]}]}, sdkMcpServers=["calc"])
        cli.turn('@tool mcp__calc__add {"a":2,"b":3}@')
        self.assertEqual([text_of(block) for block in tool_results(cli)], ["5"])
        self.assertEqual(cli.wait_request("hook_callback")["request"]["callback_id"], "hook_0")

    def test_clear_and_history(self):
        cli = self.direct()
        first = cli.turn("remember marmalade")
        self.assertIn("marmalade", cli.turn("@history@")["result"])
        cli.prompt("/clear")
        after = cli.turn("@history@")
        self.assertNotEqual(after["session_id"], first["session_id"])
        self.assertNotIn("marmalade", after["result"])

    def test_resume(self):
        cli = self.direct()
        conversation = cli.turn("remember marmalade")["session_id"]
        self.wait_written(conversation, "echo: remember marmalade")
        cli.kill()
        again = self.direct(f"--resume={conversation}")
        self.assertIn("marmalade", again.turn("@history@")["result"])

    def test_subagents_ask_side_by_side(self):
        cli = self.direct()
        jobs = [{"description": name, "subagent_type": "general-purpose", "run_in_background": True,
                 "prompt": "#tool Bash " + json.dumps({"command": f"touch {name}"}) + "#"} for name in ("one", "two")]
        cli.prompt("".join("@tool Task " + json.dumps(job) + "@" for job in jobs))
        for name in ("one", "two"):
            cli.wait_request("can_use_tool", where=lambda request, name=name: request["input"].get("command") == f"touch {name}")
        self.assertEqual(len(cli.seen(is_ask)), 2)
