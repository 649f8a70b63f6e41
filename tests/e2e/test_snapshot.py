# SPDX-License-Identifier: MIT
"""The state of a real CLI for a late client."""

from harness import Case, bash, wait_until


class Snapshot(Case):
    def test_before_and_after_a_turn(self):
        one = self.client("work")
        self.assertIsNone(one.attached["init"])
        one.turn("hello")
        printed = one.seen(lambda l: l.get("subtype") == "init")[-1]
        late = self.client("work", role="observer")
        self.assertEqual(late.attached["init"], printed)
        self.assertIn("Bash", late.attached["init"]["tools"])
        self.assertEqual(late.attached["permission_mode"], printed["permissionMode"])
        self.assertEqual(late.attached["model"], printed["model"])
        self.assertEqual(late.attached["background_tasks"], [])
        since = late.mark()
        one.turn("again")
        late.wait_result(since=since)
        self.assertEqual(len(late.seen(lambda l: l.get("subtype") == "init")), 1)

    def test_a_changed_mode_and_model(self):
        one = self.client("work")
        one.turn("hello")
        model = self.client("work").attached["model"]
        one.ask("set_permission_mode", mode="plan")
        one.ask("set_model", model="claude-other-1")
        late = self.client("work")
        self.assertEqual((late.attached["permission_mode"], late.attached["model"]), ("plan", "claude-other-1"))
        self.assertEqual(late.attached["init"]["model"], model)
        answer = late.ask("initialize")
        self.assertIn(answer.get("current_permission_mode"), ("plan", None))

    def test_a_command_in_the_background(self):
        one = self.client("work")
        one.allow_everything()
        one.prompt(bash("sleep 3600", run_in_background=True))
        one.wait_result()
        told = wait_until("the task is told", lambda: self.client("work").attached["background_tasks"])
        self.assertEqual(len(told), 1)
        self.assertIn("task_id", told[0])
        self.assertEqual((told[0]["task_type"], told[0]["description"]), ("local_bash", "sleep 3600"))
        one.ask("stop_task", task_id=told[0]["task_id"])
        wait_until("the list is empty", lambda: self.client("work").attached["background_tasks"] == [])
