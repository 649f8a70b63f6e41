#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plenumctl chat on a terminal: in tmux, whose screen the test reads.

    PLENUM_BUILD=FOLDER tests/ctl/test_chat.py [-v] [Class[.method]]
"""
import fcntl
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import unittest

sys.dont_write_bytecode = True

from test_ctl import Ctl, FakeCase, delta, environment, said
from codex import CodexCase, rpc
from harness import build_file, perm, until
from screen import Screen


class ChatCase(Ctl):
    def screen(self, *command, columns=80, rows=24, **env):
        env = environment(self.d.socket, **env)
        del env["HOME"]
        return Screen(self, env, *command, columns=columns, rows=rows)

    def chat(self, *args, **options):
        """A chat with the session work, at its prompt; its agent is self.child."""
        screen = self.screen(build_file("plenumctl"), "chat", *(args or ("-c", "work")), **options)
        screen.wait("Ctrl-D leaves\n>")
        if not hasattr(self, "child"):
            self.child = self.agent.child()
        self.d.wait_state("work", "idle")
        screen.typed("> ")
        return screen

    def prompt(self, text):
        return self.child.wait(type="user", message__content=text)

    def finish(self, m, **members):
        self.child.print(self.result(m["uuid"], **members))

    def ask(self, rid="q1", **members):
        self.child.print(perm(rid, **members))

    def answer(self, rid="q1"):
        return self.child.answer(rid)["response.response"]


class Typing(ChatCase):
    def test_several_lines_are_one_prompt(self):
        s = self.chat()
        s.write("one")
        s.keys("M-Enter")
        s.write("two\\")
        s.keys("Enter")
        s.write("three")
        s.wait("> one\n  two\n  three")
        s.keys("Enter")
        self.prompt("one\ntwo\nthree")

    def test_pasted_text_is_one_prompt(self):
        s = self.chat()
        s.write("see: ")
        s.paste("a\n\tb\n\nc")
        s.wait("> see: a\n", "\n  c")
        self.child.caught_up()
        self.assertEqual(self.child.seen(type="user"), [])
        s.keys("Enter")
        self.prompt("see: a\n\tb\n\nc")

    def test_a_long_line_of_any_letters(self):
        s = self.chat(columns=40, rows=10)
        text = "añ你é " * 2000 + "end"
        s.paste(text)
        s.wait(re.compile(r"end$"))
        s.keys("Home")
        s.write("x")
        s.wait(re.compile(r"(^|\n)> xa"))
        s.keys("End", "BSpace", "Left", "Left", "Delete", "Enter")
        self.prompt("x" + text[:-3] + "n")

    def test_a_large_text(self):
        s = self.chat()
        text = "".join("line %d\n" % i for i in range(20000)) + "end"
        s.paste(text)
        s.wait(re.compile("\n  line 19999\n  end$"))
        s.keys("Enter")
        self.prompt(text)
        s.wait("... 19960 more lines")

    def test_wide_letters_wrap_in_whole(self):
        s = self.chat(columns=21)
        s.write("你" * 10)
        s.wait("> " + "你" * 9 + "\n  你")
        s.keys("BSpace", "BSpace")
        s.wait(re.compile("> 你{8}$"))
        s.keys("Enter")
        self.prompt("你" * 8)

    def test_characters_that_hide(self):
        s = self.chat()
        s.write("a\u200b" * 20 + "b\u202e")
        s.wait("b\\u202e")
        s.write("c")
        s.wait("b\\u202ec")
        s.keys("C-u")
        self.assertNotIn("u200b", s.typed("> "))

    def test_history_of_another_run(self):
        s = self.chat()
        for text in ("alpha über", "beta\nsecond", "gamma"):
            s.paste(text)
            s.keys("Enter")
            self.finish(self.prompt(text))
            s.wait("> " + text.split("\n")[0])
        s.keys("C-d")
        s.ended()
        path = s.folder + "/state/plenum/chat_history"
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        t = self.chat("work", XDG_STATE_HOME=s.folder + "/state")
        t.write("draft")
        t.keys("Up")
        t.typed("> gamma")
        t.keys("Up")
        t.wait("> beta\n  second")
        t.keys("Up")  # within its lines
        t.write("!")
        t.wait("> beta!\n  second")
        t.keys("Down", "Down", "Down")
        t.typed("> draft")
        t.keys("C-r")
        t.write("ü")
        t.wait("(search: ü) alpha über")
        t.keys("C-g")
        t.typed("> draft")
        t.keys("C-r")
        t.write("a")
        t.wait("(search: a) gamma")
        t.keys("C-r")
        t.wait("(search: a) beta")
        t.keys("C-e")
        t.write("?")
        t.wait("> beta\n  second?")

    def test_keys_of_vi(self):
        with tempfile.NamedTemporaryFile("w", prefix="pl-editrc-", dir="/tmp") as f:
            f.write("bind -v\n")
            f.flush()
            s = self.chat(EDITRC=f.name)
        for text in ("one two", "three"):
            s.write(text)
            s.keys("Enter")
            self.finish(self.prompt(text))
            s.wait("> %s\n-- success" % text)
        s.keys("Escape", "k", "k")
        s.typed("> one two")
        s.keys("b", "d", "w", "j")
        s.typed("> three")
        s.keys("k", "A")
        s.paste("a\nb")
        s.keys("M-Enter")
        s.write("c")
        s.keys("Enter")
        self.prompt("one twoa\nb\nc")

    def test_end_of_file_leaves_only_on_an_empty_line(self):
        s = self.chat()
        s.write("half")
        s.keys("C-d", "C-a", "C-d")
        s.typed("> alf")
        s.keys("C-k", "C-d")
        s.wait("the session goes on: `plenumctl chat work`")
        self.child.caught_up()
        self.assertEqual(self.child.seen(type="user"), [])

    def test_output_goes_above_the_text(self):
        for columns, rows in ((80, 24), (40, 8), (200, 50)):
            with self.subTest(columns=columns):
                s = self.chat(columns=columns, rows=rows)
                s.write("my dra")
                s.typed("> my dra")
                self.child.print({"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m"}}},
                                 delta("word " * 30), delta("last\nnext"))
                s.wait(re.compile(r"last\nnext\n(\.\.\. .*\n)?> my dra$"))
                s.write("ft")
                self.child.print(delta(" piece\n"), {"type": "stream_event", "event": {"type": "content_block_stop"}})
                text = s.wait(re.compile(r"\nnext piece\n(\.\.\. .*\n)?> my draft$"))
                self.assertEqual(text.count("my dra"), 1)
                s.keys("C-u", "C-d")
                s.ended()
                self.child.print(self.result("other"))

    def test_ctrl_z_and_back(self):
        self.d.attached("work")
        s = self.screen("bash", "--norc", "--noprofile", PS1="shell$ ", HISTFILE="")
        s.wait("shell$")
        s.write("%s chat work" % build_file("plenumctl"))
        s.keys("Enter")
        s.wait("Ctrl-D leaves\n>")
        s.write("my draft")
        s.typed("> my draft")
        s.keys("C-z")
        s.wait("Stopped", re.compile(r"shell\$$"))
        s.write("echo in the $((1+1))nd")
        s.keys("Enter")
        s.wait("\nin the 2nd\n")
        s.write("fg")
        s.keys("Enter")
        s.wait(re.compile(r"> my draft$"))
        s.write("!")
        s.typed("> my draft!")

    def test_the_window_changes_its_size(self):
        s = self.chat(columns=80)
        s.write("abcdefghij" * 10)
        s.wait("> abcdefghij")
        for columns in (40, 100, 25):
            s.tmux("resize-window", "-x", str(columns), "-y", "20")
            first = ("abcdefghij" * 10)[:columns - 2]
            s.wait(re.compile(r"(^|\n)> %s(\n|$)" % first))
            self.assertEqual(s.text().count("> a"), 1, s.text())
        s.keys("Enter")
        self.prompt("abcdefghij" * 10)

    def test_the_text_in_an_editor(self):
        s = self.chat(EDITOR="sed -i s/old/new/")
        s.write("/edit an old text")
        s.keys("Enter")
        s.typed("> an new text")
        s.write(" is old")
        s.keys("C-x", "C-e")
        s.typed("> an new text is new")
        s.keys("Enter")
        self.prompt("an new text is new")
        self.assertEqual([f for f in os.listdir(s.folder) if f.startswith("plenumctl-")], [])

    def test_completion(self):
        s = self.chat()
        s.write("/cl")
        s.keys("Tab")  # of the agent's answer to initialize
        s.typed("> /clear")
        self.assertEqual(len(self.child.seen(type="control_request", request__subtype="initialize")), 1)
        s.keys("C-u")
        self.child.print({"type": "system", "subtype": "init", "session_id": "c", "slash_commands": ["compact", "context", "zeta"]},
                         said("a new list"))
        s.wait("a new list")
        s.write("/z")
        s.keys("Tab")
        s.write("|")
        s.typed("> /zeta |")
        s.keys("C-u")
        s.write("/co")
        s.keys("Tab", "Tab")
        s.wait("  /compact  /context\n", re.compile("> /co$"))
        s.keys("C-u")
        with tempfile.TemporaryDirectory(prefix="pl-files-", dir="/tmp") as folder:
            os.makedirs(folder + "/sub-folder")
            for name in ("sub-folder/größe.txt", "sub-folder/other"):
                open(folder + "/" + name, "w").close()
            s.write("look at @%s/su" % folder)
            s.keys("Tab")
            s.write("g")
            s.keys("Tab")
            s.write("|")
            s.typed("> look at @%s/sub-folder/größe.txt |" % folder)


class Asked(ChatCase):
    def test_the_draft_survives_a_question(self):
        s = self.chat()
        s.write("my draft")
        s.typed("> my draft")
        s.keys("Left", "Left")
        s.cursor(len("> my dra"))
        self.ask(input={"command": "make test", "description": "Run the tests"})
        s.wait("? Bash: Run the tests\n  make test\n", "allow? [y, n]")
        s.write("y")
        s.keys("Enter")
        self.assertEqual(self.answer()["behavior"], "allow")
        s.typed("> my draft")
        s.write("X")
        s.typed("> my draXft")

    def test_keys_for_one_question_never_answer_the_next(self):
        s = self.chat()
        self.ask("q1", cmd="first")
        self.ask("q2", cmd="second")
        s.wait("  first\n", re.compile(r"allow\? \[y, n\]$"))
        s.tmux("send-keys", "y", "Enter", "y", "Enter")
        self.assertEqual(self.answer("q1")["behavior"], "allow")
        s.wait("  second\n", re.compile(r"allow\? \[y, n\]$"))
        self.ask("q3", cmd="third")
        s.write("y")
        s.typed("allow? [y, n] y")
        self.child.print({"type": "control_cancel_request", "request_id": "q2"})
        s.wait("  third\n", re.compile(r"allow\? \[y, n\]$"))
        s.keys("Enter")
        s.wait("y or n is needed")
        self.assertEqual(self.child.answers("q2") + self.child.answers("q3"), [])

    def withdraw(self, rid, other):
        """The daemon has told all its clients when this returns."""
        self.child.print({"type": "control_cancel_request", "request_id": rid})
        other.wait(type="control_cancel_request")
        other.request("plenum_hello")

    def test_an_answer_to_a_question_that_is_gone_is_no_prompt(self):
        for n, term in enumerate(("dumb", "screen")):
            pid, fd = self.terminal("chat", *(["-c", "work"] if n == 0 else ["work"]), TERM=term)
            Ctl.shown(self, fd, "Ctrl-D leaves")
            if n == 0:
                self.child = self.agent.child()
            self.d.wait_state("work", "idle")
            other = self.d.attached("work")
            self.ask("q%d" % n)
            Ctl.shown(self, fd, "allow? [y, n]")
            os.kill(pid, signal.SIGSTOP)
            os.write(fd, b"y\n")
            self.withdraw("q%d" % n, other)
            os.kill(pid, signal.SIGCONT)
            Ctl.shown(self, fd, "withdrawn")
            os.write(fd, b"next %d\n" % n)
            m = self.child.wait(type="user")
            self.assertEqual(m["message.content"], "next %d" % n)
            self.finish(m)
            Ctl.shown(self, fd, "-- success")
            self.d.wait_state("work", "idle")
            os.kill(pid, signal.SIGTERM)
            other.close()

    def test_a_key_under_way_keeps_no_answer_for_the_next_question(self):
        s = self.chat()
        other = self.d.attached("work")
        self.ask("q1", cmd="first")
        self.ask("q2", cmd="second")
        s.wait("  first\n", re.compile(r"allow\? \[y, n\]$"))
        s.write("y\x1b[1;5")
        s.typed("allow? [y, n] y")
        self.withdraw("q1", other)
        s.wait("  second\n")
        s.write("C")
        s.keys("Enter")
        s.wait("y or n is needed")
        self.assertEqual(self.child.answers("q2"), [])

    def test_ctrl_c_interrupts_and_keeps_the_text(self):
        s = self.chat()
        s.write("go")
        s.keys("Enter")
        m = self.prompt("go")
        s.write("my draft")
        s.typed("> my draft")
        s.keys("C-c")
        self.child.reply(self.child.request("interrupt"))
        self.finish(m, is_error=True, subtype="error_during_execution", terminal_reason="aborted_streaming")
        s.wait(re.compile(r"-- interrupted\n> my draft$"))
        s.keys("C-c")
        s.typed("> ")

    def shown(self, *wanted, **members):
        s = self.chat(rows=60)
        self.ask(**members)
        return s, s.wait("? ", re.compile(r"(allow|go on|accept)\? \[y, n"), *wanted)

    def test_a_change_is_a_difference(self):
        old = "".join("line %d\n" % i for i in range(20))
        _, text = self.shown(tool="Edit", input={"file_path": "/x/a.c", "old_string": old,
                                                 "new_string": old.replace("line 10\n", "line ten\n")})
        self.assertIn("? Edit: /x/a.c\n  ... 7 lines ...\n    line 7\n    line 8\n    line 9\n  - line 10\n  + line ten\n"
                      "    line 11\n    line 12\n    line 13\n  ... 6 lines ...\n  y  allow", text)

    def test_a_written_file(self):
        with tempfile.NamedTemporaryFile("w", prefix="pl-file-", dir="/tmp") as f:
            f.write("same\nbefore\n")
            f.flush()
            _, text = self.shown(tool="Write", input={"file_path": f.name, "content": "same\nafter\n"})
            self.assertIn("? Write: %s\n  replaces the file that is here:\n    same\n  - before\n  + after\n" % f.name, text)

    def test_several_edits(self):
        _, text = self.shown(tool="MultiEdit", input={"file_path": "/x", "edits": [
            {"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d", "replace_all": True}]})
        self.assertIn("? MultiEdit: /x\n  - a\n  + b\n  ...\n  each time it occurs:\n  - c\n  + d\n", text)

    def test_an_edit_beside_a_list_of_edits(self):
        _, text = self.shown(tool="Edit", input={"file_path": "/x", "old_string": "a", "new_string": "b", "edits": []})
        self.assertIn("? Edit: /x\n  - a\n  + b\n", text)

    def test_a_plan(self):
        s, text = self.shown(tool="ExitPlanMode", input={"plan": "# Plan\n\n1. read\n2. write"})
        self.assertIn("? the agent's plan\n  # Plan\n\n  1. read\n  2. write\n", re.sub(r" +\n", "\n", text))
        s.write("n no tests yet")
        s.keys("Enter")
        self.assertEqual(self.answer()["message"], "no tests yet")

    def test_a_tool_of_an_mcp_server(self):
        _, text = self.shown(tool="mcp__tracker__add_issue", input={
            "title": "a title", "labels": ["one", "two"], "body": "first\nsecond", "at": {"line": 3, "ok": True}, "none": []})
        self.assertIn("? add_issue of the MCP server tracker\n  title: a title\n  labels:\n    - one\n    - two\n  body: |\n"
                      "    first\n    second\n  at:\n    line: 3\n    ok: true\n  none: []\n", text)

    def test_an_elicitation(self):
        s = self.chat()
        self.child.print({"type": "control_request", "request_id": "q1", "request": {
            "subtype": "elicitation", "mcp_server_name": "forge", "message": "Log in?", "mode": "url", "url": "https://forge/x"}})
        s.wait("? Log in?\n  mcp_server_name: forge\n  mode: url\n  url: https://forge/x\n  y  accept\n  n  decline\n  c  cancel: ",
               re.compile(r"accept\? \[y, n, c\]$"))
        s.write("e")
        s.keys("Enter")
        s.wait("y, n or c is needed")
        s.write("y")
        s.keys("Enter")
        self.assertEqual(self.answer(), {"action": "accept"})

    def test_always_names_what_is_remembered(self):
        suggestions = [
            {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "make *"}], "behavior": "allow",
             "destination": "localSettings"},
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
            {"type": "addDirectories", "directories": ["/data"], "destination": "userSettings"}]
        s, text = self.shown(permission_suggestions=suggestions)
        for want in ("a  allow it, and remember: allow Bash(make *), in this project for you", "permission mode acceptEdits, until",
                     "work in /data, in all your projects"):
            self.assertIn(want, re.sub(r"\n\s*", " ", text))
        s.write("Always")
        s.keys("Enter")
        self.assertEqual(self.answer()["updatedPermissions"], suggestions)

    def test_no_always_without_a_suggestion(self):
        s, text = self.shown()
        self.assertNotIn("remember", text)
        s.write("a")
        s.keys("Enter")
        s.wait("there is no always here")
        self.assertEqual(self.child.answers("q1"), [])
        self.assertIn("nothing to remember", self.ctl("allow", "-a", "work", self.waiting(), code=64).stderr)

    def waiting(self):
        return json.loads(self.ctl("pending", "--json").stdout)["pending"][0]["request_id"]

    def test_what_is_an_answer(self):
        """Each of these was taken as its opposite, or as a deny."""
        s = self.chat()
        for n, (typed, behavior, message) in enumerate((
                ("Y", "allow", None), ("YES", "allow", None), ("No", "deny", "The user denied this."),
                ("n  rather not", "deny", "rather not"), ("NO because", "deny", "because"))):
            self.ask("q%d" % n)
            s.wait(re.compile(r"allow\? \[y, n\]$"))
            for wrong in ("nonsense", "yes please", "never", "yn", "n,o", ""):
                s.write(wrong)
                s.keys("Enter")
                s.wait(re.compile(r"allow\? \[y, n\] ?%s\n  y or n is needed[^\n]*\nallow\? \[y, n\]$" % re.escape(wrong)))
            self.assertEqual(self.child.answers("q%d" % n), [])
            s.write(typed)
            s.keys("Enter")
            body = self.answer("q%d" % n)
            self.assertEqual((body["behavior"], body.get("message")), (behavior, message))
            s.typed("> ")

    def test_several_choices(self):
        s = self.chat()
        options = [{"label": label, "description": ""} for label in ("Red", "Green", "Blue")]
        self.child.print(perm("q1", tool="AskUserQuestion", input={"questions": [
            {"question": "Which?", "header": "C", "options": options, "multiSelect": True},
            {"question": "And one?", "header": "D", "options": options, "multiSelect": False}]}))
        s.wait("? Which?", "  3. Blue", "numbers (1,3)")
        for wrong, hint in (("4", "4: is none of the numbers (1 to 3)"), ("0", "0: is none"), ("1 5", "5: is none"),
                            ("", "an answer is needed")):
            s.write(wrong)
            s.keys("Enter")
            s.wait(hint)
        s.write("3, 1")
        s.keys("Enter")
        s.wait("? And one?", re.compile(r"number, or your own words:$"))
        s.write("1,2")
        s.keys("Enter")
        s.wait("only one can be chosen")
        s.write("a 4th one")
        s.keys("Enter")
        self.assertEqual(self.answer()["updatedInput"]["answers"], {"Which?": "Blue, Red", "And one?": "a 4th one"})

    def test_who_answered_elsewhere_is_named(self):
        s = self.chat()
        s.write("dra")
        s.typed("> dra")
        self.ask()
        s.wait("allow?")
        self.ctl("deny", "work", self.waiting(), "not", "now")
        s.wait("  Bash: denied by plenumctl", re.compile(r"> dra$"))
        other = self.d.attached("work", name="phone")
        self.ask("q2", cmd="second")
        m = other.wait(type="control_request")
        other.send({"type": "control_response", "response": {"subtype": "success", "request_id": m["request_id"],
                                                             "response": {"behavior": "allow"}}})
        s.wait("  Bash: allowed by phone (")
        self.answer("q2")
        self.ask("q3", permission_suggestions=[{"type": "setMode", "mode": "acceptEdits", "destination": "session"}])
        s.wait("permission mode acceptEdits, until")
        self.ctl("allow", "-a", "work", self.waiting())
        s.wait("  Bash: allowed by plenumctl, and remembered: ")


FIELDS = {
    "name": {"type": "string", "title": "Your name", "description": "as on the badge", "minLength": 2},
    "age": {"type": "integer", "minimum": 1, "maximum": 120},
    "color": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"], "default": "g"},
    "days": {"type": "array", "items": {"type": "string", "enum": ["Mon", "Tue", "Wed"]}},
    "mail": {"type": "boolean", "default": True}}


class Forms(ChatCase):
    def form(self, properties, *required, rid="q1"):
        self.child.print({"type": "control_request", "request_id": rid, "request": {
            "subtype": "elicitation", "mcp_server_name": "desk", "message": "Who are you?", "mode": "form",
            "requested_schema": {"type": "object", "properties": properties, "required": required}}})

    def say(self, s, text):
        s.write(text)
        s.keys("Enter")

    def test_each_field_is_asked_for(self):
        s = self.chat(rows=60)
        self.form(FIELDS, "name", "age")
        s.wait("? Who are you?\n  mcp_server_name: desk\n  mode: form\n  (/decline or /cancel leaves it without an answer)\n"
               "? Your name\n  as on the badge\n  (text, at least 2 characters)\n", re.compile(r"text:$"))
        self.say(s, "A")
        s.wait("  A: is not text, at least 2 characters\n")
        self.say(s, "Ada")
        s.wait("? age\n  (a whole number, 1 to 120)\n", re.compile(r"number:$"))
        for wrong, hint in (("", "an answer is needed"), ("old", "old: is not a whole number, 1 to 120"), ("121", "121: is not a whole")):
            self.say(s, wrong)
            s.wait("  " + hint)
        self.say(s, "36")
        s.wait("? color\n  1. Red\n  2. Green\n  (one of these; Enter: g)\n")
        self.say(s, "3")
        s.wait("3: is none of the numbers (1 to 2)")
        self.say(s, "1")
        s.wait("? days\n  1. Mon\n  2. Tue\n  3. Wed\n  (some of these; Enter leaves it out)\n", re.compile(r"numbers \(1,3\):$"))
        self.say(s, "1,3")
        s.wait("? mail\n  (yes or no; Enter: true)\n", re.compile(r"yes or no:$"))
        self.say(s, "")
        s.wait("? your answer:\n  Your name: Ada\n  age: 36\n  color: r\n  days: Mon, Wed\n  mail: true\n  y  accept: send these values\n"
               "  n  decline\n  c  cancel: neither a yes nor a no\n  e  enter the values again\n", re.compile(r"accept\? \[y, n, c, e\]$"))
        self.assertEqual(self.child.answers("q1"), [])
        self.say(s, "y")
        self.assertEqual(self.answer(), {"action": "accept", "content": {
            "name": "Ada", "age": 36, "color": "r", "days": ["Mon", "Wed"], "mail": True}})

    def test_other_ends(self):
        s = self.chat(rows=60)
        for n, (first, last, want) in enumerate((
                ("/decline", None, {"action": "decline"}), ("/cancel", None, {"action": "cancel"}),
                ("Ada", "n", {"action": "decline"}), ("Ada", "cancel", {"action": "cancel"}),
                ("", "yes", {"action": "accept", "content": {}}))):
            self.form({"name": {"type": "string"}}, rid="q%d" % n)
            s.wait(re.compile(r"text:$"))
            self.say(s, first)
            if last:
                s.wait(re.compile(r"accept\? \[y, n, c, e\]$"))
                self.say(s, "n because")
                s.wait("takes no reason")
                self.say(s, last)
            self.assertEqual(self.answer("q%d" % n), want)
            s.typed("> ")

    def test_the_values_are_entered_again(self):
        s = self.chat(rows=60)
        self.form({"name": {"type": "string"}, "nick": {"type": "string"}}, "name")
        for name, nick, end in (("Bob", "b", "e"), ("Ada", "", "y")):
            s.wait(re.compile(r"\? name\n  \(text\)\n+text:$"))
            self.say(s, name)
            s.wait(re.compile(r"\? nick\n  \(text; Enter leaves it out\)\n+text:$"))
            self.say(s, nick)
            s.wait("  name: %s\n  nick: %s\n" % (name, nick or "(left out)"), re.compile(r"accept\? \[y, n, c, e\]$"))
            self.say(s, end)
        self.assertEqual(self.answer(), {"action": "accept", "content": {"name": "Ada"}})

    def test_a_field_that_is_not_known(self):
        s = self.chat(rows=60)
        self.form({"name": {"type": "string"}, "deep": {"type": "object"}}, "name")
        s.wait("? Who are you?\n", "`deep` cannot be entered here", "  n  decline\n  c  cancel", re.compile(r"decline\? \[n, c\]$"))
        self.say(s, "y")
        s.wait("n or c is needed")
        self.say(s, "n")
        self.assertEqual(self.answer(), {"action": "decline"})

    def test_leaving_it_open(self):
        s = self.chat(rows=60)
        self.form(FIELDS, "name")
        s.wait(re.compile(r"text:$"))
        self.say(s, "Ada")
        s.wait(re.compile(r"number:$"))
        s.keys("C-d")
        s.ended()
        self.assertEqual(self.d.state_of("work"), "asking")
        t = self.screen(build_file("plenumctl"), "chat", "work", rows=60)
        t.wait("? Who are you?\n", "? Your name\n", re.compile(r"text:$"))
        self.ctl("allow", "work", self.waiting(), "name=Eve", "age=7")
        t.wait("the request: accepted by plenumctl")
        t.typed("> ")
        self.assertEqual(self.answer(), {"action": "accept", "content": {"name": "Eve", "age": 7, "color": "g", "mail": True}})

    def test_on_a_pipe(self):
        p = self.spawn("chat", "-c", "work", stdin=subprocess.PIPE)
        self.child = self.agent.child()
        p.stdin.write(b"go\nAda\nmany\n1.5\ny\n")
        p.stdin.flush()
        m = self.prompt("go")
        self.form({"name": {"type": "string"}, "n": {"type": "number"}}, "name")
        self.assertEqual(self.answer(), {"action": "accept", "content": {"name": "Ada", "n": 1.5}})
        self.finish(m)
        self.assertIn("many: is not a number", self.ended(p, 0)[0])

    def waiting(self):
        return json.loads(self.ctl("pending", "--json").stdout)["pending"][0]["request_id"]


class Questions(ChatCase):
    """Of a tool of codex: the test plays its agent."""

    initialized, ready = CodexCase.initialized, CodexCase.ready

    def start(self, *args, **options):
        return super().start(mode={"init": "manual"}, profile={"dialect": "codex", "resume_args": ""})

    def test_each_one_is_asked(self):
        s = self.screen(build_file("plenumctl"), "chat", "-c", "work", rows=40)
        child = self.agent.child()
        self.ready(child)
        s.wait("Ctrl-D leaves\n>")
        options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": ""}]
        questions = [{"id": "color", "header": "C", "question": "Which?", "isOther": False, "isSecret": False, "options": options},
                     {"id": "why", "header": "W", "question": "Why?", "isOther": False, "isSecret": False, "options": None}]
        ask = rpc("item/tool/requestUserInput", 5, threadId="t1", turnId="turn1", itemId="q", questions=questions,
                  isBlocking=True, autoResolutionMs=None)
        child.print(ask)
        s.wait("? the agent asks\n  (/decline or /cancel leaves it without an answer)\n? Which?\n  1. Red: warm\n  2. Blue\n",
               re.compile(r"number:$"))
        s.write("green")
        s.keys("Enter")
        s.wait("green: is none of the numbers (1 to 2)")
        s.write("2")
        s.keys("Enter")
        s.wait("? Why?\n", re.compile(r"own words:$"))
        s.write("because")
        s.keys("Enter")
        self.assertEqual(child.wait(id=5)["result"], {"answers": {"color": {"answers": ["Blue"]}, "why": {"answers": ["because"]}}})
        s.typed("> ")
        child.print(dict(ask, id=6))
        s.wait(re.compile(r"number:$"))
        s.write("/decline")
        s.keys("Enter")
        self.assertEqual(child.wait(id=6)["result"], {"answers": {}})
        s.typed("> ")
        secret = dict(questions[1], question="Which key?", isSecret=True)
        child.print(rpc("item/tool/requestUserInput", 7, threadId="t1", turnId="turn1", itemId="q", questions=[secret]))
        s.wait("? Which key?\n", re.compile(r"own words:$"))
        s.write("sesame")
        s.wait(re.compile(r"own words: \*{6}$"))
        s.keys("Enter")
        self.assertEqual(child.wait(id=7)["result"], {"answers": {"why": {"answers": ["sesame"]}}})
        s.typed("> ")
        self.assertNotIn("sesame", s.text())


class Waiting(ChatCase):
    def test_the_reason_for_the_wait(self):
        s = self.chat()
        s.write("go")
        s.keys("Enter")
        m = self.prompt("go")
        s.wait(re.compile(r"> go\n\.\.\. waiting for the agent, \d+ s\n>$"))
        self.child.print({"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m"}}},
                         {"type": "stream_event", "event": {"type": "content_block_start", "content_block": {"type": "thinking"}}})
        s.wait(re.compile(r"\n\.\.\. thinking, \d+ s\n>$"))
        self.child.print({"type": "assistant", "message": {"id": "m", "content": [
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "make all"}}]}})
        s.wait(re.compile(r"\n\.\.\. Bash: make all, \d+ s\n>$"))
        self.child.print({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}})
        s.wait(re.compile(r"\n\.\.\. waiting for the agent, \d+ s\n>$"))
        self.finish(m, duration_ms=2340, total_cost_usd=0.1234, usage={
            "input_tokens": 20, "cache_read_input_tokens": 14980, "output_tokens": 321})
        text = s.wait(re.compile(r"-- success, 2.3 s, tokens: 15.0k in, 321 out, \$0.1234 so far\n>$"))
        self.assertNotIn("...", text)

    def test_an_agent_that_starts_and_wakes(self):
        self.agent.mode(init="manual")
        s = self.screen(build_file("plenumctl"), "chat", "-c", "work")
        s.wait(re.compile(r"\n\.\.\. starting the agent, \d+ s\n>$"))
        child = self.agent.child()
        child.reply(child.request("initialize"))
        s.wait(re.compile(r"leaves\n>$"))
        self.ctl("sleep", "work")
        s.write("wake up")
        s.keys("Enter")
        s.wait(re.compile(r"\n\.\.\. waking the agent, \d+ s\n>$"))
        child = self.agent.child()
        child.reply(child.request("initialize"))
        child.wait(type="user", message__content="wake up")
        s.wait(re.compile(r"\n\.\.\. waiting for the agent, \d+ s\n>$"))

    def test_output_of_a_tool_keeps_its_lines(self):
        s = self.chat()
        self.child.print({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": [
            {"type": "text", "text": "".join("line %d\n" % i for i in range(1, 21))}]}]}})
        text = s.wait("... 14 more lines (/more shows them)")
        self.assertIn("  =\n    line 1\n    line 2\n", text)
        self.assertNotIn("line 7", text)
        s.write("/more")
        s.keys("Enter")
        s.wait("    line 7\n", "    line 20\n")
        s.write("/more")
        s.keys("Enter")
        s.wait("nothing was left out")
        self.child.caught_up()
        self.assertEqual(self.child.seen(type="user"), [])

    def test_nothing_of_it_on_a_pipe(self):
        self.d.attached("work")
        child = self.agent.child()
        p = self.spawn("chat", "work", stdin=subprocess.PIPE, TERM="xterm")
        p.stdin.write(b"go\n")
        p.stdin.close()
        p.stdin = None
        m = child.wait(type="user")
        child.print(said("done"), self.result(m["uuid"]))
        out, _ = self.ended(p, 0)
        self.assertEqual(out, "done\n-- success, 0.0 s\n")

    def test_an_answer_on_a_pipe_ends_the_line_of_its_question(self):
        self.d.attached("work")
        child = self.agent.child()
        p = self.spawn("chat", "work", stdin=subprocess.PIPE)
        p.stdin.write(b"go\ny\n")
        p.stdin.close()
        p.stdin = None
        m = child.wait(type="user")
        child.print(perm("q1"))
        child.answer("q1")
        child.print(said("done"), self.result(m["uuid"]))
        self.assertRegex(self.ended(p, 0)[0], r"\nallow\? \[y, n\] \n(.*\n)?done\n")


class Daemon(ChatCase):
    def test_it_goes_on_with_the_next_daemon(self):
        s = self.chat()
        s.write("first")
        s.keys("Enter")
        m = self.prompt("first")
        self.child.print(said("an answer"), self.result(m["uuid"]))
        s.wait("an answer")
        self.d.wait_state("work", "idle")
        s.write("draft")
        s.typed("> draft")
        self.d.kill9()
        s.wait("-- the daemon is away", "... the daemon is away; trying again", re.compile(r"> draft$"))
        s.keys("Enter")
        s.wait("not sent: the daemon is away", re.compile(r"> draft$"))
        self.d.start()
        s.wait("-- the daemon is back; ", re.compile(r"\n> draft$"))
        s.keys("Enter")
        self.child = self.agent.child()
        self.prompt("draft")

    def test_it_goes_on_with_the_session_under_its_new_name(self):
        s = self.chat()
        self.ctl("sleep", "work")
        self.ctl("rename", "work", "play")
        s.wait("-- name is now play")
        self.d.kill9()
        s.wait("-- the daemon is away")
        self.d.start()
        s.wait("-- the daemon is back; ")

    def test_a_prompt_that_the_daemon_had_not_read_is_sent_again(self):
        s = self.chat()
        os.kill(self.d.process.pid, signal.SIGSTOP)
        s.write("unread")
        s.keys("Enter")
        s.wait("> unread\n")
        self.d.kill9()
        s.wait("-- the daemon is away")
        self.d.start()
        self.child = self.agent.child()
        m = self.prompt("unread")
        self.child.print(said("an answer"), self.result(m["uuid"]))
        s.wait("an answer", re.compile(r"\n>$"))
        self.assertEqual(len(self.child.seen(type="user")), 1)

    def listen(self):
        """In the place of the daemon."""
        os.unlink(self.d.socket)
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(self.d.socket)
        listener.listen()
        listener.settimeout(60)
        return listener

    def attaching(self, listener, **response):
        """(connection, its lines, what answers its attach)"""
        daemon = listener.accept()[0]
        self.addCleanup(daemon.close)
        lines = daemon.makefile()
        return daemon, lines, json.dumps({"type": "control_response", "response": dict(
            response, request_id=json.loads(lines.readline())["request_id"])}).encode() + b"\n"

    def test_a_daemon_that_is_ending_is_not_the_next_one(self):
        self.ends_here()
        s = self.chat()
        self.d.kill9()
        s.wait("-- the daemon is away")
        listener = self.listen()
        daemon, _, answer = self.attaching(listener, subtype="error", code="shutting_down", error="the daemon is shutting down")
        daemon.sendall(answer)
        daemon, _, answer = self.attaching(listener, subtype="success", response={"session": "work", "state": "idle", "seq": 1})
        daemon.sendall(answer)
        s.wait("-- the daemon is back; ")

    def editor(self, folder, text):
        """EDITOR: it writes the text, and ends when the returned FIFO was opened and closed."""
        fifo, script = folder + "/fifo", folder + "/edit"
        os.mkfifo(fifo)
        with open(script, "w") as f:
            f.write("#!/bin/sh\nprintf '%%s' '%s' >\"$1\"\ncat <%s\n" % (text, fifo))
        os.chmod(script, 0o755)
        return fifo, script

    def was_read(self, daemon):
        until(lambda: fcntl.ioctl(daemon, termios.TIOCOUTQ, b"\0\0\0\0") == b"\0\0\0\0", what="the line to be read")

    def test_an_answer_in_an_editor_is_for_its_question(self):
        with tempfile.TemporaryDirectory(prefix="pl-edit-", dir="/tmp") as folder:
            fifo, script = self.editor(folder, "y")
            self.ends_here()
            s = self.chat(EDITOR=script)
            self.d.kill9()
            s.wait("-- the daemon is away")
            daemon, lines, answer = self.attaching(self.listen(), subtype="success", response={
                "session": "work", "state": "asking", "seq": 1})
            asked = [json.dumps(perm(rid, cmd)).encode() + b"\n" for rid, cmd in (("q1", "first"), ("q2", "second"))]
            daemon.sendall(answer + b"".join(asked))
            s.wait("  first\n", re.compile(r"allow\? \[y, n\]$"))
            s.keys("C-x", "C-e")
            with open(fifo, "w"):
                daemon.sendall(b'{"type":"control_cancel_request","request_id":"q1"}\n')
                self.was_read(daemon)
            s.wait("  second\n", re.compile(r"allow\? \[y, n\]( y)?$"))
            s.keys("Enter")
            s.wait("y or n is needed")

    def test_the_daemon_comes_back_while_an_editor_runs(self):
        with tempfile.TemporaryDirectory(prefix="pl-edit-", dir="/tmp") as folder:
            fifo, script = self.editor(folder, "a text")
            self.ends_here()
            s = self.chat(EDITOR=script)
            self.d.kill9()
            s.wait("-- the daemon is away")
            daemon, lines, answer = self.attaching(self.listen(), subtype="success", response={
                "session": "work", "state": "idle", "seq": 1})
            s.keys("C-x", "C-e")
            with open(fifo, "w"):
                daemon.sendall(answer)
                self.was_read(daemon)
            s.wait("-- the daemon is back", re.compile(r"> a text$"))
            s.keys("Enter")
            self.assertEqual(json.loads(lines.readline())["message"]["content"], "a text")

    def test_a_name_by_mistake_makes_no_session(self):
        self.d.attached("work")
        p = self.ctl("chat", "wrok", code=1)
        self.assertIn("wrok", p.stderr)
        self.assertIn("--create", p.stderr)
        self.assertEqual(self.ctl("ls", "--names").stdout, "work\n")

    def test_a_conversation_that_is_not_there_leaves_no_session(self):
        self.agent.mode(init="manual")
        p = self.spawn("chat", "-r", "0b5ad0de-0000-4000-8000-000000000000", "new", stdin=self.open_pipe())
        child = self.agent.child()
        child.print({"type": "result", "subtype": "error_during_execution", "is_error": True,
                     "errors": ["No conversation found with session ID"], "session_id": "c"})
        child.exit(1)
        out, err = self.ended(p, 1)
        self.assertRegex(out, r"session new: .* \(the session was removed\)")
        self.assertEqual(self.ctl("ls", "--names").stdout, "")

    def test_the_end_of_the_input_does_not_leave_it_behind_either(self):
        self.agent.mode(init="manual")
        for text in ("", "hello\n"):
            with self.subTest(text):
                p = self.spawn("chat", "-r", "0b5ad0de-0000-4000-8000-000000000000", "new", stdin=subprocess.PIPE)
                p.stdin.write(text.encode())
                p.stdin.close()
                p.stdin = None
                child = self.agent.child()
                child.wait(type="control_request", request__subtype="initialize")
                child.exit(1)
                out, err = self.ended(p, 1)
                self.assertRegex(out, r"session new: .* \(the session was removed\)")
                self.assertEqual(self.ctl("ls", "--names").stdout, "")

    def test_leaving_before_the_agent_has_it_leaves_no_session(self):
        self.agent.mode(init="manual")
        s = self.screen(build_file("plenumctl"), "chat", "-r", "0b5ad0de-0000-4000-8000-000000000000", "new")
        s.wait("starting the agent", re.compile(r"\n>$"))
        self.agent.child().wait(type="control_request", request__subtype="initialize")
        s.keys("C-d")
        s.wait("session new was removed")
        s.ended()
        self.assertEqual(self.ctl("ls", "--names").stdout, "")

    def open_pipe(self):
        """An input that does not end."""
        r, w = os.pipe()
        self.addCleanup(os.close, w)
        self.addCleanup(os.close, r)
        return r

    def test_a_conversation_does_not_end_up_in_another_session(self):
        self.d.attached("work")
        self.assertIn("work", self.ctl("chat", "-r", "c1", "work", code=1).stderr)
        p = self.spawn("chat", "-r", "c1")
        self.ended(p, 0)
        names = self.ctl("ls", "--names").stdout.split()
        self.assertEqual(len(names), 2)
        p = self.ctl("chat", "-C", "/", "work")
        self.assertIn("session work exists: --cwd: has no effect", p.stderr)

    def test_a_session_by_the_beginning_of_its_name(self):
        self.d.attached("work")
        self.d.attached("other")
        s = self.chat("wo")
        s.wait("session work (agent)")
        s.keys("C-d")
        s.ended()
        t = self.screen(build_file("plenumctl"), "chat", "-", XDG_STATE_HOME=s.folder + "/state")
        t.wait("session work (agent)", re.compile(r"leaves\n>$"))

    def test_json_is_refused(self):
        self.assertIn("attach", self.ctl("chat", "--json", "-c", "work", code=64).stderr)
        self.assertEqual(self.ctl("ls", "--names").stdout, "")


class Acp(FakeCase, ChatCase):
    """With an agent that speaks ACP."""

    def chat(self, *args, **options):
        s = self.screen(build_file("plenumctl"), "chat", *(args or ("-c", "work")), **options)
        s.wait("Ctrl-D leaves\n>")
        self.d.wait_state("work", "idle")
        s.typed("> ")
        return s

    def say(self, s, text):
        s.write(text)
        s.keys("Enter")

    def asked(self):
        s = self.chat(columns=100)
        self.say(s, '@text first@ @tool Bash {"command":"touch %s"}@' % self.made)
        s.wait("first\n", "* execute: touch " + self.made, "? execute\n  touch %s\n" % self.made, "  y  Allow\n  n  Reject\n  a  Always Allow\n",
               re.compile(r"allow\? \[y, n, a\]$"))
        return s

    def test_a_turn(self):
        s = self.chat()
        self.say(s, "@text hello@")
        s.wait("> @text hello@\nhello\n-- success, ")
        self.say(s, "@error no money@")
        s.wait("-- failed", "no money")
        s.typed("> ")
        self.say(s, "@text again@")
        s.wait("again\n-- success, ")

    def test_a_permission(self):
        s = self.asked()
        self.say(s, "maybe")
        s.wait("y, n or a is needed")
        self.say(s, "n because")
        s.wait("this agent takes a choice alone")
        self.say(s, "y")
        s.wait("  = (Bash completed with no output)", "-- success, ")
        self.assertTrue(os.path.exists(self.made))

    def test_always_and_no(self):
        s = self.asked()
        self.say(s, "a")
        s.wait("-- success, ")
        os.unlink(self.made)
        self.say(s, '@tool Bash {"command":"touch %s"}@' % self.made)
        until(lambda: os.path.exists(self.made), what="the file without a question")
        self.say(s, '@tool Write {"file_path":"%s","content":"x"}@' % self.made)
        s.wait("? edit: ", re.compile(r"allow\? \[y, n, a\]$"))
        self.say(s, "n")
        s.wait("  = error: ", "-- success, ")

    def test_a_form(self):
        s = self.chat(columns=100, rows=40)
        self.say(s, "@elicit@")
        s.wait("? What is your name?\n", "? name\n  (text; Enter leaves it out)\n", re.compile(r"text:$"))
        self.say(s, "Ada")
        s.wait("? your answer:\n  name: Ada\n", re.compile(r"accept\? \[y, n, c, e\]$"))
        self.say(s, "y")
        s.wait(re.compile(r'"content": *{"name": *"Ada"}'), "-- success, ")

    def test_answered_elsewhere(self):
        s = self.asked()
        self.ctl("deny", "work")
        s.wait("execute: denied by plenumctl", "-- success, ")
        s.typed("> ")

    def test_ctrl_c_interrupts(self):
        s = self.asked()
        s.keys("C-c")
        s.wait("-- interrupted")
        s.typed("> ")
        self.assertFalse(os.path.exists(self.made))

    def test_it_goes_on_with_the_next_daemon(self):
        s = self.chat()
        self.say(s, "@text hello@")
        s.wait("hello\n-- success, ")
        self.d.stop()
        s.wait("the daemon is away")
        self.d.start()
        s.wait("the daemon is back")
        self.say(s, "@text again@")
        s.wait("again\n-- success, ")
        self.assertEqual(s.text().count("> @text hello@"), 1)  # the agent has repeated it

    def test_the_conversation_that_it_resumes_is_shown(self):
        s = self.chat()
        self.say(s, "@text hello@")
        s.wait("hello\n-- success, ")
        s.keys("C-d")
        s.ended()
        conversation = self.d.sessions()["work"]["conversation_id"]
        self.ctl("stop", "--forget", "work")
        t = self.screen(build_file("plenumctl"), "chat", "-r", conversation, "work")
        t.wait("> @text hello@", "\nhello\n")

    LOST = "-- your last prompt has no result, and gets none: the daemon went away (send it again)"

    def test_a_prompt_without_a_result(self):
        """Sent again it might run twice: the user decides."""
        s = self.asked()
        self.d.kill9()
        s.wait("the daemon is away")
        self.d.start()
        s.wait("the daemon is back", self.LOST)
        s.typed("> ")
        s.keys("Up")
        s.wait(re.compile(r"\n> @text first@ @tool Bash .*$"))
        s.keys("C-u")
        s.typed("> ")
        self.say(s, "@text again@")
        s.wait("again\n-- success, ")
        self.assertFalse(os.path.exists(self.made))

    def test_a_prompt_that_was_answered_is_not_lost(self):
        s = self.chat()
        self.say(s, "@text hello@")
        s.wait("hello\n-- success, ")
        self.d.kill9()
        s.wait("the daemon is away")
        self.d.start()
        s.wait("the daemon is back")
        self.say(s, "@text again@")
        s.wait("again\n-- success, ")
        self.assertNotIn("no result", s.text())

    def test_commands_are_completed(self):
        s = self.chat()
        s.write("/comp")
        s.keys("Tab")
        s.typed("> /compact ")

    def test_a_conversation_that_is_not_there_leaves_no_session(self):
        for text in (b"", b"hello\n"):
            with self.subTest(text):
                p = self.spawn("chat", "-r", "0b5ad0de-0000-4000-8000-000000000000", "new", stdin=subprocess.PIPE)
                out, err = self.ended(p, 1, text)
                self.assertRegex(out, r"session new: .*Resource not found.* \(the session was removed\)")
                self.assertEqual(self.ctl("ls", "--names").stdout, "")

    def test_on_a_pipe(self):
        p = self.spawn("chat", "-c", "work", stdin=subprocess.PIPE)
        out, err = self.ended(p, 0, b"@text one@\n@text two@\n")
        self.assertRegex(out, r"(?s)^one\n.*two\n")


class Codex(FakeCase, ChatCase):
    """With an agent that speaks the protocol of codex app-server."""

    PROFILE = "fake-codex"

    chat, say, test_a_form, LOST = Acp.chat, Acp.say, Acp.test_a_form, Acp.LOST

    def test_a_prompt_without_a_result(self):
        s = self.chat(columns=100)
        self.say(s, '@tool Bash {"command":"touch %s"}@' % self.made)
        s.wait(re.compile(r"allow\? \[y, n, a\]$"))
        self.d.kill9()
        s.wait("the daemon is away")
        self.d.start()
        s.wait("the daemon is back", self.LOST)
        self.say(s, "@text again@")
        s.wait("again\n-- success, ")

    def test_a_conversation(self):
        s = self.chat(columns=100)
        self.say(s, "@text hello@")
        s.wait("> @text hello@\nhello\n-- success, ")
        self.say(s, '@tool Bash {"command":"touch %s"}@' % self.made)
        s.wait("? commandExecution: touch %s\n  because: " % self.made,
               "\n  y  accept\n  n  decline\n  a  accept, and all commands that begin with: " + "touch %s\n" % self.made, re.compile(r"allow\? \[y, n, a\]$"))
        self.say(s, "y")
        s.wait("  = ", re.compile("-- success, .*-- success, ", re.DOTALL))
        self.assertTrue(os.path.exists(self.made))
        self.say(s, '@tool Bash {"command":"rm %s"}@' % self.made)
        s.wait(re.compile(r"allow\? \[y, n, a\]$"))
        s.keys("C-c")
        s.wait("-- interrupted")
        s.typed("> ")

    def test_changes_of_files(self):
        """The request does not have them: the item before it has."""
        write = '@tool Write {"file_path":"%s","content":"one\\ntwo"}@' % self.made
        s = self.chat(columns=100)
        self.say(s, write)
        s.wait("? fileChange\n  %s (add):\n  + one\n  + two\n  y  accept\n" % self.made, re.compile(r"allow\? \[y, n, a\]$"))
        pending = self.ctl("pending").stdout
        self.assertRegex(pending, r"(?m) fileChange *-?$")
        late = self.screen(build_file("plenumctl"), "chat", "work", columns=100)
        late.wait("? fileChange\n  its changes were named before this chat began, and are not known here\n")
        self.say(s, "y")
        late.wait("  fileChange: allowed by plenumctl", "-- success, ")
        self.say(late, '@tool Edit {"file_path":"%s","old_string":"two","new_string":"three\\nfour"}@' % self.made)
        s.wait("  %s (update):\n  @@ -1 +1 @@\n  - two\n  + three\n  + four\n  y  accept\n" % self.made, re.compile(r"allow\? \[y, n, a\]$"))
        self.say(s, "n")
        late.wait("  fileChange: denied by plenumctl")


class Zero(Ctl):
    """Text with U+0000 was dropped."""

    def test_it_is_shown(self):
        p, child, uuid = self.prompted()
        child.print(self.result(uuid, result="a\0b"))
        self.assertEqual(self.ended(p, 0)[0], "a\u2400b\n")
        child.print(said("c\\\0d", "m2"))
        a = self.d.attached("work")
        child.mark(a)
        p = self.spawn("tail", "work")
        got = b""
        while "c\\\u2400d".encode() not in got:
            part = os.read(p.stdout.fileno(), 65536)
            self.assertTrue(part, got)
            got += part


if __name__ == "__main__":
    unittest.main(warnings="ignore")
