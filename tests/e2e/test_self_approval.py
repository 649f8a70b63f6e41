# SPDX-License-Identifier: MIT
"""An agent must not approve itself: its own shell command attaches and tries."""

import json
import shlex

from harness import DEADLINE, HERE, Case, alive, allow, bash, deny, for_command, text_of, tool_results, wait_until


class SelfApproval(Case):

    def attack(self, start):
        """`start` is a shell command with {} for the attack: its way to leave the CLI's process."""
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

    def test_with_a_clean_environment(self):
        self.attack('(env -i /usr/bin/setsid /bin/sh -c "{} & exit 0" &)')

    def test_without_a_mark(self):
        """With lowered resource limits, too."""
        self.attack('(env -i /usr/bin/prlimit --rss=1000000000000:1000000000000 --locks=1000:1000 /usr/bin/setsid /bin/sh -c "{} & exit 0" &)')


class Streams(Case):
    """The CLI's streams are sockets: closed to its own commands, which miss nothing."""

    def run_command(self, client, command):
        since = client.mark()
        client.handlers["can_use_tool"] = allow
        client.turn(bash(command))
        return [text_of(block) for block in tool_results(client, since)]

    def test_its_stdin_cannot_be_opened(self):
        person = self.client("work")
        line = json.dumps({"type": "control_request", "request_id": "x",
                           "request": {"subtype": "set_permission_mode", "mode": "plan"}})
        pid = self.state("work")["pid"]
        said = self.run_command(person, f"for n in 0 1 2; do echo {shlex.quote(line)} >/proc/{pid}/fd/$n && echo opened $n; done; "
                                        "echo done")
        self.assertEqual(len(said), 1)
        self.assertIn("done", said[0])
        self.assertNotIn("opened", said[0])
        self.assertIn("No such device or address", said[0])
        person.turn("and now")
        self.assertFalse(person.seen(lambda l: l.get("subtype") == "status" and l.get("permissionMode") == "plan"))

    def test_names_of_streams_mean_what_they_mean_without_a_daemon(self):
        """The CLI makes the streams of its commands and hooks itself: their names do not depend on its own."""
        notes = self.work / "notes"
        folder = self.work / ".claude"
        folder.mkdir()
        tries = "; ".join(f"(: {how}/dev/{name}) 2>/dev/null && echo {name} opens >>{notes} || echo {name} does not >>{notes}"
                          for how, name in (("<", "stdin"), (">", "stdout"), (">", "stderr")))
        (folder / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": tries}]}]}}))
        found = []
        for client in (self.direct(), self.client("work")):
            for _ in range(3):  # a busy 2.1.197 may begin its first turn before it has read the hook from the settings
                notes.unlink(missing_ok=True)
                self.run_command(client, tries)
                if len(notes.read_text().splitlines()) == 6:
                    break
            found.append(notes.read_text())
            notes.unlink()
        self.assertEqual(len(found[0].splitlines()), 6, "a hook and a command")
        self.assertEqual(found[0], found[1])


class Leftovers(Case):
    def test_a_stop_ends_what_has_no_environment(self):
        person = self.client("work")
        note = self.work / "pid"
        command = f"(env -i /usr/bin/setsid /bin/sh -c 'echo $$ >{note}; exec sleep 300' </dev/null >/dev/null 2>&1 &)"
        person.handlers["can_use_tool"] = allow
        person.turn(bash(command))
        pid = int(wait_until("it runs", lambda: note.exists() and note.read_text()))
        self.assertTrue(alive(pid))
        person.ask("plenum_stop", session="work")
        wait_until("it is ended", lambda: not alive(pid))
