# SPDX-License-Identifier: MIT
"""The real CLI without a daemon: the other tests' assumptions about it and about the loopback model."""

import json

from harness import (Case, allow, bash, command_of, deny, for_command, is_ask, mcp_server, text_of, tool_results,
                     wait_until)


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

    def test_answers_that_are_none(self):
        """Why the daemon refuses these (dialect_check_answer): the tool fails, whatever the user decided."""
        cli = self.direct()
        for spoiled in ({**deny(), "interrupt": "yes"}, {**deny(), "interrupt": None}, {**deny(), "toolUseID": 5},
                        {"behavior": "allow", "updatedInput": {"command": "true"}, "toolUseID": None}):
            since, uuid = cli.mark(), cli.prompt(bash("touch it"))
            cli.answer(cli.wait_request("can_use_tool", since), spoiled)
            cli.wait_result(uuid, since)
            said = [text_of(block) for block in tool_results(cli, since)]
            self.assertRegex(said[0], "invalid permission result|Tool permission request failed", spoiled)

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

    def test_interrupt(self):
        cli = self.direct()
        uuid = cli.prompt("@slow 500@ @pieces 200@ @long 2000@")
        cli.wait("the turn runs", lambda l: l.get("type") == "stream_event")
        cli.ask("interrupt")
        self.assertEqual(cli.wait_result(uuid)["subtype"], "error_during_execution")
        self.assertEqual(cli.turn("go on")["result"], "echo: go on")

    def test_a_tool_is_found_by_its_environment(self):
        cli = self.direct()
        cli.allow_everything()
        cli.prompt(bash("tail -f /dev/null"))
        wait_until("the tool runs", lambda: "tail -f /dev/null" in map(command_of, self.place.leftovers()))

    def test_odd_characters(self):
        cli = self.direct()
        cli.send(b'{"type":"user","uuid":"odd","big":123456789012345678901234567890,"message":{"role":"user",'
                 b'"content":"nul \\u0000 half \\ud800 sep \\u2028 escape \\u001b end"}}\n')
        echoed = cli.wait("the replay", lambda l: l.get("isReplay") and l.get("uuid") == "odd")
        self.assertEqual(text_of(echoed["message"]), "nul \0 half \ud800 sep \u2028 escape \x1b end")
        cli.wait_result("odd")

    def test_old_forms_kill_it(self):
        for line in (b'{"type":"user","prompt":"hi"}\n', b"{not json\n"):
            cli = self.direct()
            cli.send(line)
            cli.wait_end()
            self.assertEqual(cli.process.wait(), 1)

    def test_subagents_ask_side_by_side(self):
        cli = self.direct()
        jobs = [{"description": name, "subagent_type": "general-purpose", "run_in_background": True,
                 "prompt": "#tool Bash " + json.dumps({"command": f"touch {name}"}) + "#"} for name in ("one", "two")]
        cli.prompt("".join("@tool Task " + json.dumps(job) + "@" for job in jobs))
        for name in ("one", "two"):
            cli.wait_request("can_use_tool", where=for_command(f"touch {name}"))
        self.assertEqual(len(cli.seen(is_ask)), 2)
