# SPDX-License-Identifier: MIT
"""plenumctl chat with the real CLI, in a terminal."""

import re
import sys
from pathlib import Path

from harness import Case, bash

sys.path.append(str(Path(__file__).resolve().parents[1] / "ctl"))

from screen import Screen  # noqa: E402

PROMPT = re.compile(r"\n>$")


class Chat(Case):
    def chat(self, *args):
        program = next(Path(self.build).rglob("src/ctl/plenumctl"))
        env = {"PLENUM_SOCKET": self.daemon.socket, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        return Screen(self, env, str(program), "chat", "-C", str(self.work), *args, columns=100, rows=40)

    def typed(self, screen, text):
        screen.write(text)
        screen.keys("Enter")

    def test_a_conversation(self):
        s = self.chat("-c", "work")
        s.wait("session work (real)", PROMPT)
        self.typed(s, "hello")
        s.wait(re.compile(r"> hello\necho: hello\n-- success, \d+\.\d s, tokens: \d+ in, \d+ out.*\n>$"))
        self.typed(s, bash("touch one"))
        text = s.wait(re.compile(r"\n\? Bash.*\n  touch one\n"), re.compile(r"allow\? \[y, n, a\]$"))
        self.assertRegex(text, r"\n  a  allow it, and remember:\n       allow Bash\(touch one.*\), in this project")
        self.typed(s, "a")
        s.wait(re.compile(r"allow\? \[y, n, a\] a\n(.*\n)*-- success.*\n>$"))
        self.assertTrue((self.work / "one").exists())
        self.typed(s, bash("touch two"))  # the remembered mode covers it
        s.wait(re.compile(r"touch two(.*\n)*-- success.*\n>$"))
        s.keys("C-d")
        s.ended()

    def test_a_conversation_that_is_not_there(self):
        s = self.chat("-r", "0b5ad0de-0000-4000-8000-000000000000", "lost")
        s.ended()
        s.wait("(the session was removed)", "No conversation found")
        self.assertEqual(self.client().ask("plenum_list")["sessions"], [])

    def test_the_conversation_of_a_run_before(self):
        s = self.chat("-c", "first")
        s.wait(PROMPT)
        self.typed(s, "remember marmalade")
        s.wait(re.compile(r"echo: remember marmalade\n-- success(.*\n)*>$"))
        conversation = self.state("first")["conversation_id"]
        self.wait_written(conversation, "marmalade")
        self.client().ask("plenum_stop", session="first", forget=True)
        s.ended()
        t = self.chat("-r", conversation, "second")
        t.wait(PROMPT)
        self.typed(t, "@history@")
        t.wait(re.compile(r"marmalade(.*\n)*-- success.*\n>$"))
