# SPDX-License-Identifier: MIT
"""Warm starts with the real CLI: what the first prompt of a session costs, and whose initialize it hears.

The clients are processes with the environment of the daemon: one with another DISPLAY, say, would get no spare."""

import time

from harness import Case, bash, wait_until


class Warm(Case):
    profile = ("warm = 1",)

    def spares(self, client):
        return next(p["warm"] for p in client.ask("plenum_status", daemon=True)["profiles"] if p["name"] == "real")

    def wait_spare(self):
        client = self.client()
        wait_until("a spare is ready", lambda: self.spares(client) == 1)

    def timed_turn(self, client, text):
        begun = time.monotonic()
        client.turn(text)
        return time.monotonic() - begun

    def test_first_prompt_costs_what_a_second_one_costs(self):
        begun = time.monotonic()
        cold = self.process_client("cold", env={"DIFFERENT": "1"})
        self.timed_turn(cold, "hello")
        cold_time = time.monotonic() - begun
        self.wait_spare()
        begun = time.monotonic()
        warm = self.process_client("warm")
        self.assertEqual(warm.attached["state"], "idle")
        self.timed_turn(warm, "hello")
        first = time.monotonic() - begun
        second = self.timed_turn(warm, "again")
        figures = f"cold {cold_time:.3f} s, warm {first:.3f} s, second prompt {second:.3f} s"
        print(f"{self.cli_version}: {figures}")
        self.assertLess(first, cold_time / 2, figures)

    def test_hooks_are_in_a_first_initialize(self):
        """Also where a repeated initialize is ignored (2.1.197)."""
        self.wait_spare()
        client = self.process_client("work")
        spare = client.attached["pid"]
        client.handlers["hook_callback"] = lambda line: {"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not here"}}
        client.allow_everything()
        payload = client.ask("initialize", hooks={"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["guard"]}]})
        self.assertNotIn("plenum", payload)
        result = client.turn(bash("touch made"))
        self.assertFalse((self.work / "made").exists(), result)
        own = client.ask("plenum_status", session="work")["pid"]
        self.assertNotEqual(own, spare)
        other = self.process_client("other")
        self.assertEqual(other.attached["pid"], spare)
        self.assertIn("echo: hi", other.turn("hi")["result"])
