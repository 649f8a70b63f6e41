# SPDX-License-Identifier: MIT
"""An agent must not approve itself: its own shell command attaches and tries."""

import json
import shlex

from harness import DEADLINE, HERE, Case, allow, bash, deny, for_command, wait_until


class SelfApproval(Case):
    only_cli = "2.1.332"

    def attack(self, start):
        """`start` is a shell command with {} for the attack: how it gets away from the CLI's process."""
        notes = self.work / "notes"
        attack = shlex.join(["/usr/bin/python3", str(HERE / "agent-attack.py"), self.daemon.socket, "work", str(notes)])
        person = self.client("work")
        uuid = person.prompt(bash(start.format(attack + " >/dev/null 2>&1 </dev/null"))
                             + bash("touch forbidden").replace("@tool", "@next"))
        first = person.wait_request("can_use_tool")
        person.answer(first, allow(first))
        second = person.wait_request("can_use_tool", where=for_command("touch forbidden"))
        wait_until("the attack is over", lambda: notes.exists() and notes.read_text().endswith("done\n"), 3 * DEADLINE)
        entries = [json.loads(line) for line in notes.read_text().splitlines()[:-1]]
        self.assertEqual(self.state("work")["state"], "asking", "the person's prompt is still open")
        self.assertFalse((self.work / "forbidden").exists())
        self.assertFalse([entry for entry in entries if entry.get("got", {}).get("type") == "control_request"],
                         "the attack was asked")
        answers = {}
        for entry in entries:
            if "asked" in entry:
                answers.setdefault(entry["asked"], []).append(entry["answer"]["response"])
        self.assertEqual(len(answers["plenum_attach"]), 3, "the attack reached the daemon")
        for verb in ("plenum_register", "set_permission_mode", "initialize"):
            self.assertEqual({answer["subtype"] for answer in answers[verb]}, {"error"}, (verb, answers[verb]))
        person.answer(second, deny())
        person.wait_result(uuid)
        self.assertFalse((self.work / "forbidden").exists())

    def test_in_the_background(self):
        self.attack("{} &")

    def test_in_a_session_of_its_own(self):
        self.attack("setsid {} &")

    def test_after_a_double_fork(self):
        self.attack('(setsid sh -c "{} & exit 0" &)')
