# SPDX-License-Identifier: MIT
"""plenumctl with the real CLI."""

import subprocess

from harness import DEADLINE, Case


class Ctl(Case):
    def plenumctl(self, *words):
        done = subprocess.run([str(self.build / "src/ctl/plenumctl"), *words], capture_output=True, text=True,
                              env=self.place.environment(PLENUM_SOCKET=self.daemon.socket), cwd=self.work, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_send_prints_the_answer_of_a_command_of_the_cli(self):
        self.assertEqual(self.plenumctl("send", "work", "hello"), "echo: hello\n")
        self.assertIn("Total duration (API):", self.plenumctl("send", "work", "/cost"))
        self.assertEqual(self.plenumctl("send", "work", "again"), "echo: again\n")

    def test_fork_goes_on_from_a_copy(self):
        self.plenumctl("send", "work", "remember quince")
        self.wait_written(self.state("work")["conversation_id"], "echo: remember quince")
        self.assertEqual(self.plenumctl("fork", "work", "copy"), "copy\n")
        self.plenumctl("send", "copy", "remember medlar")
        self.assertIn("quince", self.plenumctl("send", "copy", "@history@"))
        self.assertNotIn("medlar", self.plenumctl("send", "work", "@history@"))

    def test_mode_and_wait(self):
        self.plenumctl("send", "work", "hello")
        self.assertEqual(self.plenumctl("mode", "work", "plan"), "plan\n")
        self.assertEqual(self.plenumctl("mode", "work"), "plan\n")
        self.assertEqual(self.plenumctl("wait", "work", "idle"), "idle\n")
