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

    def first_turn(self, session, **attach):
        """Seconds from the attach to a new session to its first result, and for a second prompt."""
        begun = time.monotonic()
        client = self.process_client(session, **attach)
        client.turn("hello")
        middle = time.monotonic()
        client.turn("again")
        client.ask("plenum_stop", session=session, forget=True)
        return middle - begun, time.monotonic() - middle

    def test_first_prompt_costs_what_a_second_one_costs(self):
        """The best of three: the machine may be busy with other things."""
        cold, warm = [], []
        for i in range(3):
            cold.append(self.first_turn(f"cold{i}", env={"DIFFERENT": "1"}))
            self.wait_spare()
            warm.append(self.first_turn(f"warm{i}"))
        best = [min(first for first, _ in cold), min(first for first, _ in warm), min(second for _, second in warm)]
        self.assertLess(best[1], best[0] * 0.7, "cold {:.3f} s, warm {:.3f} s, second prompt {:.3f} s".format(*best))

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
