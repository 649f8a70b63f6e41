# SPDX-License-Identifier: MIT
"""Warm starts with the real CLI: which child gets the first prompt of a session, and which initialize reaches it.

The clients are processes with the environment of the daemon: one with another DISPLAY, for example, would get no
prestarted child."""

from pathlib import Path

from harness import Case, bash, command_of, wait_until


class Warm(Case):
    profile = ("warm = 1",)

    def spares(self, client):
        return next(p["warm"] for p in client.ask("plenum_status", daemon=True)["profiles"] if p["name"] == "real")

    def wait_spare(self):
        client = self.client()
        wait_until("a spare is ready", lambda: self.spares(client) == 1)

    def spare_pid(self):
        """Return the only CLI of the daemon, without a session yet; it counts as prestarted once it answered
        initialize. Helpers of the daemon are its children, too."""
        self.wait_spare()
        tasks = Path(f"/proc/{self.daemon.process.pid}/task").iterdir()
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
        (pid,) = [child for child in children if command_of(child).startswith(str(self.cli))]
        return pid

    def test_first_prompt_goes_to_the_spare(self):
        """For a session with the same request; one with another environment has a child of its own."""
        spare = self.spare_pid()
        other = self.process_client("other", env={"DIFFERENT": "1"})
        self.assertNotEqual(other.attached["pid"], spare)
        client = self.process_client("work")
        self.assertEqual(client.attached["pid"], spare)
        self.assertTrue(client.ask("initialize")["commands"])
        self.assertEqual(client.turn("hello")["result"], "echo: hello")
        self.assertEqual(self.state("work")["pid"], spare)
        self.assertEqual(other.turn("hi")["result"], "echo: hi")
        self.assertEqual(self.state("other")["pid"], other.attached["pid"])

    def test_hooks_are_in_a_first_initialize(self):
        """Also if a repeated initialize is ignored (2.1.197)."""
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
        self.assertIn(f"session work: returns prestarted child {spare}", self.daemon.log.read_text())
        self.wait_spare()  # the returned one, or one that was started in its place before it returned
        other = self.process_client("other")
        self.assertIn(f"session other: takes prestarted child {other.attached['pid']}", self.daemon.log.read_text())
        self.assertIn("echo: hi", other.turn("hi")["result"])
