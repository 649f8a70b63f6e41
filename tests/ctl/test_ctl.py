#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plenumctl as a person and a script use it, against a private daemon whose agent the test plays.

    PLENUM_BUILD=FOLDER tests/ctl/test_ctl.py [-v] [Class[.method]]
"""
import fcntl
import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROFILES = ["claude", "fake", "gemini", "claude-acp", "fake-acp", "codex", "fake-codex", "agent"]  # the last one: the tests'
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
sys.dont_write_bytecode = True

import harness  # noqa: E402
from harness import TIMEOUT, build_file, perm, until  # noqa: E402


def environment(socket_path, **more):
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PLENUM_SOCKET": socket_path, "HOME": "/nonexistent"}
    env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
    env.update(more)
    return env


def run(socket_path, *args, text="", **env):
    return subprocess.run([build_file("plenumctl"), *args], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=TIMEOUT * 3, env=environment(socket_path, **env))


class Alone(unittest.TestCase):
    """What needs no daemon."""

    NOWHERE = "/tmp/plenum-test-nowhere/sock"

    def run_ctl(self, code, *args, **more):
        p = run(self.NOWHERE, *args, **more)
        self.assertEqual(p.returncode, code, p.stderr)
        return p

    def test_wrong_usage_is_64(self):
        for args in ((), ("frob",), ("--frob",), ("ls", "--frob"), ("ls", "word"), ("send",), ("send", "s", ""),
                     ("send", "s"), ("send", "-t", "soon", "s", "x"), ("send", "-c", "-e", "s", "x"), ("allow", "s", "r", "x"), ("allow", "--all", "s", "r"),
                     ("allow", "-i", "7", "s", "r"), ("deny", "--all", "s", "req_1_x"), ("tail",), ("tail", "-n", "few", "s"), ("attach",),
                     ("attach", "-r", "some", "s"), ("new", "-E", "noequals", "s"), ("chat", "-n", "x"), ("stop",),
                     ("wait",), ("wait", "s", "dizzy"), ("wait", "-t", "soon", "s"), ("mode",), ("model", "s", "a", "b"), ("fork", "s"), ("fork", "s", "--", "-n"), ("rename", "s"), ("rename", "s", "--", "-n"), ("events", "a", "b"), ("queue",), ("sleep",), ("clear-lost",), ("clear-lost", "--all", "s"), ("interrupt",), ("interrupt", "--all", "s"), ("new", "--fork", "s"), ("status", "a", "b"),
                     ("status", "--profiles", "s")):
            with self.subTest(args=args):
                p = self.run_ctl(64, *args)
                self.assertTrue(p.stderr.strip())
                self.assertNotRegex(p.stderr, r"(?m)^%s:" % (args[0] if args else "x"))
                self.assertEqual(p.stdout, "")

    def test_an_option_that_is_not_there_says_where_they_are(self):
        self.assertIn("plenumctl --help", self.run_ctl(64, "--frob").stderr)

    def test_an_empty_socket_path_says_so(self):
        self.assertRegex(self.run_ctl(69, "--socket=", "ls").stderr, "^plenumctl: the socket path is empty; name one")

    def test_words_that_json_cannot_hold_are_64(self):
        """The request would go out without them, and be another request: a fresh session in the place of a named one."""
        for args in (("send", b"w\xff", "x"), ("send", "-p", b"\xff", "s", "x"), ("chat", b"\xff"), ("tail", b"\xff"),
                     ("attach", b"\xff"), ("attach", "--resume", b"\xff", "s"), ("pending", b"\xff"), ("stop", b"\xff"),
                     ("status", b"\xff"), ("new", b"\xff"), ("new", "-E", b"A=\xff", "s"), ("new", "s", "--", b"\xff"),
                     ("allow", "s", b"\xff"), ("deny", "s", "r", b"\xff"), ("queue", "-c", b"\xff", "s")):
            with self.subTest(args=args):
                p = self.run_ctl(64, *args)
                self.assertRegex(p.stderr, r"^plenumctl: %s: '.*\\xff' is not valid UTF-8\n" % args[0])

    def test_what_is_missing_is_named(self):
        self.assertIn("tail: SESSION is missing\n", self.run_ctl(64, "tail").stderr)

    def test_no_daemon_is_69_and_says_where(self):
        for args in (("ls",), ("new", "s"), ("send", "s", "x"), ("chat",), ("tail", "s"), ("attach", "s"), ("pending",),
                     ("allow", "s", "r"), ("deny", "s", "r"), ("interrupt", "s"), ("sleep", "s"), ("stop", "s"),
                     ("clear-lost", "s"), ("queue", "s"), ("log", "s"), ("wait", "s"), ("mode", "s"), ("model", "s"), ("fork", "s", "n"), ("rename", "s", "n"), ("events",), ("metrics",), ("status",), ("top", "--once"), ("reload",), ("upgrade",), ("shutdown",)):
            with self.subTest(args=args):
                p = self.run_ctl(69, *args)
                self.assertIn(self.NOWHERE, p.stderr)
                self.assertIn("plenumd", p.stderr)

    def test_the_socket_option_wins(self):
        for args in (("--socket", "/x/other", "ls"), ("ls", "--socket", "/x/other"), ("ls", "--socket=/x/other")):
            self.assertIn("/x/other", self.run_ctl(69, *args).stderr)
        self.assertIn("107", self.run_ctl(69, "--socket", "/" + "x" * 200, "ls").stderr)

    def test_doctor_checks_the_configuration(self):
        with tempfile.TemporaryDirectory() as home:
            os.makedirs(home + "/plenum")
            with open(home + "/plenum/plenum.conf", "w") as f:
                f.write("[daemon]\nnonsense = 1\nmore = 2\n")
            out = self.run_ctl(1, "doctor", XDG_CONFIG_HOME=home).stdout
            self.assertRegex(out, r"(?m)^BAD +config +%s/plenum/plenum.conf:2: .*nonsense.* \(and 1 more\)\n +-> correct it" % home)

    def test_a_daemon_that_cannot_start_says_why(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(folder + "/sock")
            listener.listen(4)
            for verb, want in ((("ls",), 69), (("tail", "s"), 69), (("send", "s", "x"), 69)):
                p = subprocess.Popen([build_file("plenumctl"), *verb], env=environment(folder + "/sock"), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                peer = listener.accept()[0]
                peer.sendall(b'{"type":"system","subtype":"plenum_event","event":"error","code":"bad_config",'
                             b'"error":"plenumd cannot start: /x/plenum.conf:3: no","line":0}\n')
                peer.shutdown(socket.SHUT_WR)
                out, err = p.communicate(timeout=TIMEOUT)
                peer.close()
                self.assertEqual((p.returncode, err), (want, "plenumctl: plenumd cannot start: /x/plenum.conf:3: no\n"))

    def test_the_last_error_of_a_json_rpc_connection_is_printed(self):
        with tempfile.TemporaryDirectory(prefix="pl-last-", dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(folder + "/s")
            listener.listen()
            listener.settimeout(TIMEOUT)
            p = subprocess.Popen([build_file("plenumctl"), "tail", "--socket", folder + "/s", "work"], env=environment(folder + "/s"),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            first = listener.accept()[0]
            lines = first.makefile()
            for answer in ({"subtype": "success", "response": {"sessions": []}}, {"subtype": "error", "code": "bad_request", "error": "no"},
                           {"subtype": "success", "response": {"dialect": "acp"}}):
                answer["request_id"] = json.loads(lines.readline())["request_id"]
                first.sendall(json.dumps({"type": "control_response", "response": answer}).encode() + b"\n")
            second = listener.accept()[0]
            request = json.loads(second.makefile().readline())
            self.assertEqual((request["jsonrpc"], request["method"], request["params"]["session"]), ("2.0", "_plenum/attach", "work"))
            second.sendall(b'{"jsonrpc":"2.0","method":"_plenum/event","params":{"event":"error","code":"internal","error":"it broke"}}\n')
            second.shutdown(socket.SHUT_WR)
            out, err = p.communicate(timeout=TIMEOUT)
            for each in lines, first, second:
                each.close()
            self.assertEqual((p.returncode, err), (74, "plenumctl: it broke\n"))

    def verbs(self):
        """All that there are, as help lists them."""
        found = re.findall(r"(?m)^  ([a-z-]+) +[A-Z].*\.$", self.run_ctl(0, "--help").stdout)
        self.assertIn("send", found)
        return found

    def test_help(self):
        for verb in self.verbs():
            self.assertIn("usage: plenumctl " + verb, self.run_ctl(0, verb, "--help").stdout)
            self.assertIn("usage: plenumctl " + verb, self.run_ctl(0, "help", verb).stdout)
        self.assertRegex(self.run_ctl(0, "--version").stdout, r"^plenumctl \d+\.\d+\.\d+\n$")

    def test_what_help_lists_is_documented_and_completed(self):
        with open(ROOT + "/man/plenumctl.1") as f:
            page = f.read()
        shells = {}
        for name in ("plenumctl.bash", "_plenumctl", "plenumctl.fish"):
            with open(ROOT + "/completions/" + name) as f:
                shells[name] = f.read()
        for verb in self.verbs():
            self.assertRegex(shells["plenumctl.fish"], r" -a %s -d '\w" % verb)
            self.assertRegex(shells["_plenumctl"], r"\t'%s:\w" % verb)
            self.assertRegex(shells["plenumctl.bash"], r'verbs="[^"]*\b%s\b' % verb)
            self.assertRegex(page, r"\.(It|)\s*Cm %s\b" % verb)
            for option in re.findall(r"--([a-z-]+)", self.run_ctl(0, verb, "--help").stdout.split("\n\n", 2)[2]):
                self.assertTrue(re.search(r"Fl (\w , )?-%s\b" % option, page), "%s --%s is not in the manual" % (verb, option))
                for name, text in shells.items():
                    form = r"-l %s\b" if name.endswith("fish") else r"--%s\b"
                    self.assertTrue(re.search(form % option, text), "%s --%s is not in %s" % (verb, option, name))

    def test_help_does_not_offer_what_is_refused(self):
        for verb in self.verbs():
            self.assertEqual("--json" in self.run_ctl(0, verb, "--help").stdout, verb != "chat", verb)

    def test_log_is_journalctls_work(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/journalctl", "w") as f:
                f.write("#!/bin/sh\necho $*\n")
            os.chmod(folder + "/journalctl", 0o755)
            path = folder + ":" + os.environ["PATH"]
            self.assertEqual(self.run_ctl(0, "log", "--daemon", "work", PATH=path).stdout,
                             "--identifier=plenumd PLENUM_SESSION=work\n")
            self.assertEqual(self.run_ctl(0, "log", "-d", "work", PATH=path).stdout,
                             "--identifier=plenumd PLENUM_EVENT=decision PLENUM_SESSION=work\n")
            self.assertEqual(self.run_ctl(0, "log", "--json", PATH=path).stdout,
                             "--identifier=plenumd --output=json --quiet\n")

    def test_doctor_says_what_to_do(self):
        p = self.run_ctl(1, "doctor")
        self.assertRegex(p.stdout, r"(?m)^BAD +daemon .*%s" % self.NOWHERE)
        self.assertIn("-> start it", p.stdout)
        self.assertNotIn("(named by the caller)", p.stdout)
        found = json.loads(self.run_ctl(1, "doctor", "--json").stdout)
        self.assertTrue(any(f["what"] == "daemon" and f["result"] == "BAD" and f["advice"] for f in found))


class Ctl(harness.Case):
    """A daemon whose agent the test plays, and plenumctl."""

    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.running = []
        self.addCleanup(self.end_running)

    def end_running(self):
        for p in self.running:
            if p.poll() is None:
                p.kill()
            p.communicate()

    def ctl(self, *args, code=0, text="", **env):
        p = run(self.d.socket, *args, text=text, **env)
        self.assertEqual(p.returncode, code, "%s: %s%s" % (args, p.stdout, p.stderr))
        return p

    def spawn(self, *args, stdin=subprocess.DEVNULL, **env):
        p = subprocess.Popen([build_file("plenumctl"), *args], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment(self.d.socket, **env))
        self.running.append(p)
        return p

    def ended(self, p, code, text=None):
        out, err = (data or b"" for data in p.communicate(text, timeout=TIMEOUT))
        self.assertEqual(p.returncode, code, "%s%s" % (out.decode(), err.decode()))
        return out.decode(), err.decode()

    def prompted(self, session="work", *options):
        """`send` under way: (process, child, uuid of its prompt)."""
        p = self.spawn("send", *options, session, "go")
        child = self.agent.child()
        return p, child, child.wait(type="user")["uuid"]

    def ends_here(self):
        """The test ends the daemon itself."""
        self.daemons.remove(self.d)
        self.addCleanup(self.d.destroy)

    def result(self, uuid, **members):
        return dict({"type": "result", "subtype": "success", "is_error": False, "result": "ok", "session_id": "c",
                     "user_message_uuids": [uuid]}, **members)

    def begin(self, child, uuid):
        child.print({"type": "system", "subtype": "init", "session_id": "c", "user_message_uuids": [uuid]})

    def terminal(self, *args, program=None, **env):
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(program or build_file("plenumctl"), [program or "plenumctl", *args], environment(self.d.socket, **dict({"TERM": "dumb"}, **env)))
        self.addCleanup(self.end_terminal, pid, fd)
        return pid, fd

    def end_terminal(self, pid, fd):
        os.close(fd)
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def shown(self, fd, want):
        got, deadline = b"", time.monotonic() + TIMEOUT
        while want.encode() not in got:
            if not select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
                self.fail("%r did not come; got %r" % (want, got))
            got += os.read(fd, 65536)
        return got.decode()


def delta(text):
    return {"type": "stream_event", "parent_tool_use_id": None,
            "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}}


def said(text, mid="m"):
    return {"type": "assistant", "parent_tool_use_id": None,
            "message": {"id": mid, "role": "assistant", "content": [{"type": "text", "text": text}]}}


class Send(Ctl):
    def test_the_answer_streams_and_nothing_else(self):
        p, child, uuid = self.prompted()
        self.assertRegex(uuid, r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
        self.begin(child, uuid)
        child.print({"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m"}}}, delta("one "))
        got = b""
        while got != b"one ":
            got += os.read(p.stdout.fileno(), 100)  # before the turn has ended
        child.print(delta("two"), said("one two"), {"type": "stream_event", "event": {"type": "content_block_stop"}},
                    said("three \x1b[31m", "m2"), self.result(uuid))
        out, err = self.ended(p, 0)
        self.assertEqual(out, "two\nthree \\x1b[31m\n")
        self.assertEqual(err, "")

    def test_the_result_of_another_prompt_is_not_ours(self):
        p, child, uuid = self.prompted()
        child.print({"type": "system", "subtype": "init", "user_message_uuids": ["x"]}, said("not mine"),
                    self.result("x", is_error=True), {"type": "user", "isReplay": True, "uuid": uuid,
                                                      "message": {"role": "user", "content": "go"}})
        self.begin(child, uuid)
        child.print(said("mine"), self.result(uuid))
        self.assertEqual(self.ended(p, 0)[0], "mine\n")

    def queued(self, *options):
        """A client whose turn runs, its child, and `send` whose prompt waits for it."""
        self.d.sections["profile agent"]["prompts"] = "queue"
        self.d.write_conf()
        self.ctl("reload")
        a = self.d.attached("work")
        child = self.agent.child()
        a.send({"type": "user", "uuid": "first", "message": {"role": "user", "content": "x"}})
        child.wait(type="user", uuid="first")
        self.begin(child, "first")
        p = self.spawn("send", *options, "work", "go")
        if not options:  # one with a time limit may be gone again before it is seen here; it says itself that it waited
            harness.until(lambda: self.d.call("plenum_queue", session="work")["prompts"], what="the prompt that waits")
        return a, child, p

    def test_a_prompt_that_waits_is_taken_back_by_somebody(self):
        a, child, p = self.queued()
        a.ask("interrupt", cancel_queued=True, plenum_all=True)
        self.assertIn("was taken back", self.ended(p, 1)[1])

    def test_who_gives_up_a_prompt_that_waits_stops_nobodys_turn(self):
        for options, number, code in (((), signal.SIGINT, 130), (("-t", "200ms"), None, 124)):
            with self.subTest(code=code):
                a, child, p = self.queued(*options)
                if number:
                    p.send_signal(number)
                self.assertIn("was taken back", self.ended(p, code)[1])
                self.assertEqual(self.d.call("plenum_queue", session="work")["prompts"], [])
                child.mark(a)
                self.assertFalse(child.seen(request__subtype="interrupt"))
                a.request("plenum_stop", how="kill", forget=True)
                a.event("session_removed")

    def test_the_child_ends_while_the_prompt_waits(self):
        a, child, p = self.queued()
        child.kill()
        child = self.agent.child()
        uuid = child.wait(type="user")["uuid"]
        self.begin(child, uuid)
        child.print(said("after all"), self.result(uuid))
        self.assertEqual(self.ended(p, 0)[0], "after all\n")

    def test_a_failure_that_names_nobody(self):
        p, child, uuid = self.prompted()
        child.print({"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": ["no such thing"]})
        self.assertIn("no such thing", self.ended(p, 1)[1])

    def test_a_result_without_text_before_is_printed(self):
        p, child, uuid = self.prompted()
        child.print(self.result(uuid, result="of a command"))
        self.assertEqual(self.ended(p, 0)[0], "of a command\n")

    def test_an_answer_that_no_turn_names(self):
        """A command of the CLI 2.1.197, which neither repeats the prompt nor names it."""
        p, child, uuid = self.prompted()
        unnamed = self.result(uuid, result="Total cost: $0")
        del unnamed["user_message_uuids"]
        child.print({"type": "system", "subtype": "session_state_changed", "state": "running"},
                    {"type": "system", "subtype": "init", "session_id": "c"}, said("Total cost: $0"), unnamed)
        self.assertEqual(self.ended(p, 0)[0], "Total cost: $0\n")

    def test_an_error_result_is_1(self):
        p, child, uuid = self.prompted()
        child.print(self.result(uuid, is_error=True, subtype="error_during_execution", errors=["it broke"]))
        self.assertIn("it broke", self.ended(p, 1)[1])
        p = self.spawn("send", "work", "again")
        uuid = child.wait(type="user")["uuid"]
        child.print(self.result(uuid, is_error=True, result="API failure"))
        self.assertIn("API failure", self.ended(p, 1)[1])

    def test_a_turn_that_somebody_interrupts(self):
        p, child, uuid = self.prompted()
        child.print(self.result(uuid, subtype="error_during_execution", is_error=True, terminal_reason="aborted_streaming",
                                errors=["[ede_diagnostic] result_type=user"]))
        self.assertEqual(self.ended(p, 1)[1], "plenumctl: the turn was interrupted\n")

    def test_an_agent_that_dies_is_74(self):
        p, child, uuid = self.prompted()
        child.stderr("first\nno such conversation\n")
        child.exit(3)
        self.assertIn("the child exited with status 3 before it answered: first / no such conversation\n", self.ended(p, 74)[1])

    def test_an_answer_that_cannot_be_written_is_74(self):
        with open("/dev/full", "wb") as full:
            p = subprocess.Popen([build_file("plenumctl"), "send", "work", "go"], stdin=subprocess.DEVNULL, stdout=full,
                                 stderr=subprocess.DEVNULL, env=environment(self.d.socket))
            self.running.append(p)
            child = self.agent.child()
            child.print(said("an answer"), self.result(child.wait(type="user")["uuid"]))
            self.assertEqual(p.wait(TIMEOUT), 74)
            for args in (("ls",), ("ls", "--json"), ("status", "--json"), ("top", "--json"), ("--help",)):
                p = subprocess.run([build_file("plenumctl"), *args], stdout=full, stderr=subprocess.DEVNULL, timeout=TIMEOUT,
                                   env=environment(self.d.socket))
                self.assertEqual(p.returncode, 74, args)

    def test_the_end_of_the_daemon_is_74(self):
        p, child, uuid = self.prompted()
        self.ends_here()
        self.d.stop()
        self.ended(p, 74)

    def test_no_wait_is_75(self):
        p, child, uuid = self.prompted("work", "--no-wait")
        self.begin(child, uuid)
        child.print(perm("q1"))
        self.assertIn("plenumctl pending work", self.ended(p, 75)[1])
        self.assertIn("pending", self.ctl("send", "--no-wait", "work", "more", code=75).stderr)
        self.assertEqual(len(child.seen(type="user")), 1)

    def test_it_waits_for_somebody_elses_answer(self):
        p, child, uuid = self.prompted()
        self.begin(child, uuid)
        child.print(perm("q1"))
        rid = until(lambda: json.loads(self.ctl("pending", "--json").stdout)["pending"], what="a pending request")[0]["request_id"]
        self.ctl("allow", "work", rid)
        self.assertEqual(child.answer("q1")["response.response.behavior"], "allow")
        child.print(said("done"), self.result(uuid))
        out, err = self.ended(p, 0)
        self.assertEqual(out, "done\n")
        self.assertIn("waiting for an answer", err)

    def test_json_is_the_lines_as_they_came(self):
        p, child, uuid = self.prompted("work", "--json")
        odd = b'{"type":"odd","n":1.00,"s":"\\ud800\\/"}'
        child.print(odd + b"\n", self.result(uuid))
        out = self.ended(p, 0)[0].encode().splitlines()
        self.assertIn(odd, out)
        self.assertEqual(json.loads(out[-1])["type"], "result")

    def test_prompts_from_stdin_and_the_command_line(self):
        for args, text, want in ((("work", "-"), b"from\nstdin", "from\nstdin"), (("work",), b"also", "also"),
                                 (("work", "some", "words"), b"", "some words"), (("work", "--", "--dash"), b"", "--dash")):
            p = self.spawn("send", *args, stdin=subprocess.PIPE)
            p.stdin.write(text)
            p.stdin.close()
            p.stdin = None
            child = self.agent.children[0] if self.agent.taken else self.agent.child()
            m = child.wait(type="user")
            self.assertEqual(m["message.content"], want)
            child.print(self.result(m["uuid"]))
            self.ended(p, 0)

    def test_the_time_is_over(self):
        p, child, uuid = self.prompted("work", "--timeout", "200ms")
        m = child.request("interrupt")
        child.reply(m)
        self.ended(p, 124)

    def test_ctrl_c_interrupts(self):
        p, child, uuid = self.prompted()
        p.send_signal(signal.SIGINT)
        child.request("interrupt")
        self.ended(p, 130)

    def test_existing(self):
        self.assertIn(": does not exist (`plenumctl ls` lists them)", self.ctl("send", "-e", "nope", "x", code=1).stderr)


class Decisions(Ctl):
    def asked(self, rid="q1", **members):
        self.a = self.d.attached("work", approve=False)
        child = self.agent.child()
        child.print(perm(rid, **members))
        until(lambda: "nothing waits" not in self.ctl("pending").stdout, what="a pending request")
        found = json.loads(self.ctl("pending", "--json", "work").stdout)["pending"]
        self.assertEqual(len(found), 1)
        return child, found[0]["request_id"]

    def test_pending_lists_it(self):
        child, rid = self.asked(cmd="touch \x1b[2J")
        line = self.ctl("pending").stdout.splitlines()[1]
        self.assertRegex(line, r"^work +%s +\S+ +\d+ +Bash +touch \\x1b\[2J$" % re.escape(rid))

    def test_allow_once(self):
        child, rid = self.asked()
        self.assertEqual(self.ctl("allow", "work", rid).stdout, "allowed %s (Bash: touch one)\n" % rid)
        body = child.answer("q1")["response.response"]
        self.assertEqual((body["behavior"], body["updatedInput"]), ("allow", {"command": "touch one"}))
        self.assertIn(rid, self.ctl("allow", "work", rid, code=1).stderr)
        self.assertEqual(len(child.answers("q1")), 1)

    def test_beside_what_jansson_cannot_read(self):
        """The answer to an attach holds the child's system/init as it was printed."""
        child, rid = self.asked()
        child.print(b'{"type":"system","subtype":"init","session_id":"c","cwd":"\\ud800","n":1e400}\n')
        child.mark(self.a)
        self.assertEqual(self.ctl("allow", "work", rid).stdout, "allowed %s (Bash: touch one)\n" % rid)
        child.answer("q1")

    def test_what_was_decided_as_json(self):
        child, rid = self.asked()
        told = json.loads(self.ctl("--json", "deny", "work", rid).stdout)
        self.assertEqual(told, {"session": "work", "request_id": rid, "decision": "deny"})
        self.assertEqual(child.answer("q1")["response.response.behavior"], "deny")

    def test_allow_always_and_changed(self):
        suggestion = {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch:*"}], "behavior": "allow",
                      "destination": "localSettings"}
        child, rid = self.asked(permission_suggestions=[suggestion])
        self.ctl("allow", "-a", "-i", '{"command":"true"}', "work", rid)
        body = child.answer("q1")["response.response"]
        self.assertEqual(body["updatedPermissions"], [suggestion])
        self.assertEqual(body["updatedInput"], {"command": "true"})

    def test_a_question_needs_its_answers(self):
        """C45: an allow without them would choose nothing in the person's name, for always even."""
        questions = {"questions": [{"question": "Which?", "header": "Q", "options": [{"label": "a", "description": ""}]}]}
        child, rid = self.asked(tool="AskUserQuestion", input=questions)
        self.assertIn("--input", self.ctl("allow", "work", rid, code=64).stderr)
        answered = json.dumps(dict(questions, answers={"Which?": "a"}))
        self.assertIn("always", self.ctl("allow", "-a", "-i", answered, "work", rid, code=64).stderr)
        self.assertEqual(child.answers("q1"), [])
        self.ctl("allow", "-i", answered, "work", rid)
        self.assertEqual(child.answer("q1")["response.response"], {"behavior": "allow", "updatedInput": json.loads(answered)})

    def test_deny_with_a_message(self):
        child, rid = self.asked()
        self.assertEqual(self.ctl("deny", "--interrupt", "work", rid, "not", "that").stdout, "denied %s (Bash: touch one)\n" % rid)
        body = child.answer("q1")["response.response"]
        self.assertEqual(body, {"behavior": "deny", "message": "not that", "interrupt": True})

    def test_unknown(self):
        child, rid = self.asked()
        self.assertIn("request nope: does not wait", self.ctl("allow", "work", "nope", code=1).stderr)
        self.assertIn(": does not exist (`plenumctl ls` lists them)", self.ctl("allow", "elsewhere", rid, code=1).stderr)
        self.assertEqual(child.answers("q1"), [])

    def test_the_only_one_needs_no_id(self):
        child, rid = self.asked("q0")
        for n, (args, decision) in enumerate(((("allow",), "allow"), (("allow", "wo"), "allow"), (("deny",), "deny"))):
            until(lambda: "Bash" in self.ctl("pending").stdout, what="the next request")
            self.assertRegex(self.ctl(*args).stdout, r"^(allowed|denied) req_\S+ \(Bash: touch one\)\n$")
            self.assertEqual(child.answer("q%d" % n)["response.response.behavior"], decision)
            child.print(perm("q%d" % (n + 1)))
        child.print({"type": "control_cancel_request", "request_id": "q3"})
        until(lambda: "nothing waits" in self.ctl("pending").stdout, what="no request")
        self.assertIn("no request waits", self.ctl("allow", code=1).stderr)
        self.assertIn("session work: no request waits", self.ctl("deny", "work", code=1).stderr)

    def test_a_message_without_an_id(self):
        child, rid = self.asked()
        self.ctl("deny", "work", "not", "that")
        self.assertEqual(child.answer("q1")["response.response.message"], "not that")

    def test_one_of_several_is_named(self):
        child, rid = self.asked()
        child.print(perm("q2", cmd="touch two"))
        until(lambda: "touch two" in self.ctl("pending").stdout, what="the second request")
        for args in (("allow",), ("deny", "work"), ("deny", "work", "why")):
            self.assertRegex(self.ctl(*args, code=64).stderr, "2 requests wait .*--all")
        self.assertEqual(child.answers("q1") + child.answers("q2"), [])
        self.assertEqual(len(self.ctl("allow", "--all").stdout.splitlines()), 2)
        for q in ("q1", "q2"):
            self.assertEqual(child.answer(q)["response.response.behavior"], "allow")

    def test_all_of_one_session(self):
        child, rid = self.asked()
        self.d.attached("other", approve=False)
        second = self.agent.child()
        second.print(perm("k"))
        until(lambda: "other" in self.ctl("pending").stdout, what="the second request")
        self.ctl("deny", "--all", "other")
        self.assertEqual(second.answer("k")["response.response.behavior"], "deny")
        self.assertEqual(child.answers("q1"), [])

    def test_what_always_would_remember_is_shown(self):
        rule = {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch \x1b:*"}, {"toolName": "Read"}],
                "behavior": "allow", "destination": "localSettings"}
        more = [{"type": "setMode", "mode": "acceptEdits", "destination": "session"},
                {"type": "addDirectories", "directories": ["/a", "/b"], "destination": "userSettings"}, {"type": "new", "n": 1}]
        self.asked(permission_suggestions=[rule] + more)
        self.assertEqual(self.ctl("pending").stdout.splitlines()[2],
                         "  always: allow Bash(touch \\x1b:*), Read (.claude/settings.local.json); mode acceptEdits "
                         "(this session); directories /a, /b (~/.claude/settings.json); {\"type\":\"new\",\"n\":1}")

    def test_all_that_always_would_remember_is_shown(self):
        rules = [{"toolName": "Bash", "ruleContent": "touch %d %s:*" % (n, "x" * 300)} for n in range(3)]
        self.asked(permission_suggestions=[
            {"type": "addRules", "rules": rules, "behavior": "allow", "destination": "userSettings"},
            {"type": "setMode", "mode": "bypassPermissions", "destination": "session"}])
        self.assertEqual(self.ctl("pending").stdout.splitlines()[2],
                         "  always: allow %s (~/.claude/settings.json); mode bypassPermissions (this session)" %
                         ", ".join("Bash(%s)" % r["ruleContent"] for r in rules))

    def test_without_suggestions_nothing_is_remembered(self):
        self.asked()
        self.assertEqual(len(self.ctl("pending").stdout.splitlines()), 2)

    def test_an_elicitation(self):
        self.d.attached("work", approve=False)
        child = self.agent.child()
        child.print({"type": "control_request", "request_id": "e1", "request": {
            "subtype": "elicitation", "mcp_server_name": "m", "message": "sure?"}})
        until(lambda: "elicitation" in self.ctl("pending").stdout, what="a pending request")
        rid = json.loads(self.ctl("pending", "--json").stdout)["pending"][0]["request_id"]
        self.ctl("deny", "work", rid)
        self.assertEqual(child.answer("e1")["response.response.action"], "decline")


    def test_a_process_of_an_agent_is_not_told_to_make_a_session(self):
        """It may not make one of that name, nor act in one that is there."""
        self.d.attached("work")
        child = self.agent.child()
        self.d.attached("other", create="new")
        out = os.path.join(self.d.root, "told")
        for name, why in (("other", "it may act in that agent's own session only"), ("nowhere", "session nowhere: does not exist")):
            for verb in ("send %s hello" % name, "chat %s" % name):
                child.spawn(["/bin/sh", "-c", "%s --socket %s %s >%s.new 2>&1; mv %s.new %s" % (
                    build_file("plenumctl"), self.d.socket, verb, out, out, out)])
                until(lambda: os.path.exists(out), what="the end of plenumctl")
                with open(out) as f:
                    text = f.read()
                os.unlink(out)
                self.assertIn(why, text)
                self.assertNotIn("--create", text)
        self.assertIn("--create makes a session", self.ctl("send", "nowhere", "hello", code=1).stderr)

    def test_a_form(self):
        self.d.attached("work", approve=False)
        child = self.agent.child()
        child.print({"type": "control_request", "request_id": "e1", "request": {
            "subtype": "elicitation", "mcp_server_name": "m", "message": "who?", "requested_schema": {
                "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}}})
        until(lambda: "elicitation" in self.ctl("pending").stdout, what="a pending request")
        rid = self.ctl("pending", "--ids").stdout.strip()
        for words, hint in (((), "it asks for values"), (("age=7",), "name: an answer is needed"), (("name=x", "age=old"), "old: is not a whole number"),
                            (("nam=x",), "nam=x: names no value that is asked for: it asks for name, age"), (("-i", '{"name":"x"}', "name=x"), "--input excludes")):
            self.assertIn(hint, self.ctl("allow", "work", rid, *words, code=64).stderr)
        self.assertIn("takes no reason", self.ctl("deny", "work", rid, "no", code=64).stderr)
        self.assertIn("does not end the turn", self.ctl("deny", "-i", "work", rid, code=64).stderr)
        self.assertEqual(child.answers("e1"), [])
        self.ctl("allow", "work", rid, "name=Ada=Eve", "age=7")
        self.assertEqual(child.answer("e1")["response.response"], {"action": "accept", "content": {"name": "Ada=Eve", "age": 7}})

    def test_the_questions_of_a_tool_by_their_text(self):
        questions = {"questions": [{"question": "Which?", "header": "Q", "options": [{"label": "Red"}, {"label": "Blue"}]},
                                   {"question": "Is a=b?", "header": "E", "options": [{"label": "Yes"}]}]}
        child, rid = self.asked(tool="AskUserQuestion", input=questions)
        self.ctl("allow", "work", rid, "Which?=2", "Is a=b?=c=d")
        self.assertEqual(child.answer("q1")["response.response"], {
            "behavior": "allow", "updatedInput": dict(questions, answers={"Which?": "Blue", "Is a=b?": "c=d"})})


class Attach(Ctl):
    def test_lines_both_ways_as_they_are(self):
        p = self.spawn("attach", "work", stdin=subprocess.PIPE)
        line = b'{"type":"user","message":{"role":"user","content":"\\ud800 1.0"},"n":1.00,"uuid":"mine"}'
        p.stdin.write(line)  # the end of the input ends the line
        p.stdin.close()
        p.stdin = None
        child = self.agent.child()
        self.assertEqual(child.wait(type="user").raw, line)
        odd = b'{"type":"odd","n":1.00,"s":"\\u001b\\/"}'
        child.print(odd + b"\n", self.result("mine"))
        out = self.ended(p, 0)[0].encode().splitlines()
        self.assertIn(odd, out)
        self.assertTrue(any(json.loads(x)["type"] == "result" for x in out))

    def test_a_last_line_that_could_not_be_sent(self):
        with tempfile.TemporaryDirectory(prefix="pl-attach-", dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(folder + "/s")
            listener.listen()
            listener.settimeout(TIMEOUT)
            p = self.spawn("attach", "--socket", folder + "/s", "work", stdin=subprocess.PIPE)
            daemon = listener.accept()[0]
            lines = daemon.makefile()
            for body in {"sessions": []}, {"session": "work", "state": "idle", "seq": 1}:
                daemon.sendall(json.dumps({"type": "control_response", "response": {
                    "subtype": "success", "request_id": json.loads(lines.readline())["request_id"], "response": body}}).encode() + b"\n")
            p.stdin.write(b"x" * (4 << 20))
            p.stdin.close()
            p.stdin = None
            until(lambda: select.select([daemon], [], [], 0)[0], what="the beginning of the line")
            lines.close()
            daemon.close()
            self.ended(p, 74)

    def test_replay_and_tags(self):
        a = self.d.attached("work")
        child = self.agent.child()
        child.print(*[{"type": "n", "n": i} for i in range(5)])
        child.mark(a)
        p = self.spawn("attach", "-o", "-t", "-r", "all", "work", stdin=subprocess.PIPE)
        got = b""
        while b"test_mark" not in got:
            got += os.read(p.stdout.fileno(), 65536)
        lines = [json.loads(x) for x in got.splitlines()]
        self.assertEqual([x["n"] for x in lines if x["type"] == "n"], list(range(5)))
        self.assertTrue(all("plenum_seq" in x for x in lines))
        self.ended(p, 0, b"")

    def test_an_observer_is_told_that_it_may_not_write(self):
        self.d.attached("work")
        p = self.spawn("attach", "-o", "work", stdin=subprocess.PIPE)
        out, err = self.ended(p, 0, b'{"type":"user","message":{"role":"user","content":"x"}}\n')
        self.assertIn("not_allowed", out)

    def test_tail_is_readable_and_harmless(self):
        a = self.d.attached("work")
        child = self.agent.child()
        child.print(said("before"))
        child.mark(a)
        p = self.spawn("tail", "work")
        got = b""
        while b"before" not in got:
            got += os.read(p.stdout.fileno(), 65536)
        child.print({"type": "user", "isReplay": True, "uuid": "u", "message": {"role": "user", "content": "a prompt"}},
                    {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash",
                                                                   "input": {"command": "ls \x07"}}]}},
                    b"no json \x1b[2J\n", self.result("u", duration_ms=1500))
        child.mark(a)
        child.exit(0)
        while b"the agent ended" not in got:
            got += os.read(p.stdout.fileno(), 65536)
        text = got.decode()
        for want in ("> a prompt\n", "* Bash: ls \\x07\n", "-- stray output of the agent: no json", "-- success, 1.5 s\n"):
            self.assertIn(want, text)
        self.assertNotIn("\x1b", text)
        self.assertIn(": does not exist (`plenumctl ls` lists them)", self.ctl("tail", "nope", code=1).stderr)


    def test_descriptors_that_are_closed_do_not_become_the_socket(self):
        """Each would be read from and written to in the place of a standard one."""
        self.ctl("new", "work")
        for code, closed in ((74, 1), (0, 0)):  # no input is the end of the input
            p = subprocess.Popen([build_file("plenumctl"), "attach", "--replay", "all", "work"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(self.d.socket),
                                 preexec_fn=lambda: os.close(closed))
            self.running.append(p)
            self.ended(p, code)
        self.assertEqual(self.d.call("plenum_metrics")["bad_lines"], 0)

    def test_a_daemon_that_is_lost_is_74(self):
        a = self.d.attached("work")
        watching = [self.spawn("tail", "work"), self.spawn("attach", "work", stdin=subprocess.PIPE)]
        for _ in watching:
            a.event("attached")
        self.ends_here()
        self.d.process.kill()
        for p in watching:
            p.wait(TIMEOUT)  # its stdin is still open: with an end of that, too, it would be no loss
            self.assertIn("the daemon closed the connection", self.ended(p, 74)[1])

    def test_tail_without_following(self):
        a = self.d.attached("work")
        child = self.agent.child()
        child.print(said("one"), said("two", "n"))
        child.mark(a)
        self.assertRegex(self.ctl("tail", "--no-follow", "work").stdout, r"(?s)^.*one\n.*two\n")
        lines = self.ctl("tail", "--no-follow", "-n", "2", "--json", "work").stdout.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertEqual(self.ctl("tail", "--no-follow", "-n", "0", "work").stdout, "")

    def test_tail_ends_with_the_session(self):
        a = self.d.attached("work")
        p = self.spawn("tail", "work")
        a.event("attached")
        self.ctl("stop", "-k", "-f", "work")
        self.assertIn("the session was removed", self.ended(p, 0)[0])

    def test_tail_that_begins_within_a_message_shows_its_text_once(self):
        a = self.d.attached("work")
        child = self.agent.child()
        child.print({"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m"}}}, delta("one "))
        child.print(delta("two "))
        child.mark(a)
        p = self.spawn("tail", "-n", "2", "work")
        a.event("attached")
        child.print(delta("three"), said("one two three", "m"),
                    {"type": "stream_event", "event": {"type": "content_block_stop"}},
                    self.result("u", is_error=True, subtype="error_during_execution", terminal_reason="aborted_streaming"))
        got = b""
        while b"-- " not in got or not got.endswith(b"\n"):
            got += os.read(p.stdout.fileno(), 65536)
        self.assertEqual(got, b"one two three\n-- interrupted\n")


class Sessions(Ctl):
    def test_new_and_ls(self):
        self.assertEqual(self.ctl("ls").stdout.splitlines()[0][:11], "no sessions")
        with tempfile.TemporaryDirectory(prefix="pl-cwd-") as cwd:
            p = self.ctl("new", "-C", os.path.relpath(cwd), "-E", "SOME=thing", "work", "--", "--extra", "word")
            self.assertEqual(p.stdout, "work\n")
            child = self.agent.child()
            self.assertEqual(child.start["cwd"], cwd)
            self.assertEqual(child.env["SOME"], "thing")
            self.assertEqual(child.argv[-2:], ["--extra", "word"])
            self.assertIn("session work: exists already", self.ctl("new", "work", code=1).stderr)
            missing = os.path.join(os.getcwd(), "not-there")
            self.assertIn(missing, self.ctl("new", "-C", "not-there", "other", code=1).stderr)
            self.assertRegex(self.ctl("ls").stdout.splitlines()[1], r"^work +\w+ +\S+ +- +- +- +%s$" % cwd)
            self.assertRegex(self.ctl("ls", "--long").stdout.splitlines()[1], r" agent +%d +-$" % child.pid)
            self.assertIn(" ~/%s\n" % os.path.basename(cwd), self.ctl("ls", HOME=os.path.dirname(cwd)).stdout)
            made = self.ctl("new").stdout.strip()
            self.assertEqual(sorted(self.ctl("ls", "--names").stdout.split()), sorted(["work", made]))
            self.assertEqual({s["session"] for s in json.loads(self.ctl("--json", "ls").stdout)["sessions"]}, {"work", made})

    def test_stop_and_forget(self):
        self.ctl("new", "work")
        child = self.agent.child()
        self.ctl("stop", "work")
        child.wait_gone()
        self.assertEqual(self.ctl("ls", "--names").stdout, "work\n")
        self.ctl("stop", "--kill", "--forget", "work")
        self.assertEqual(self.ctl("ls", "--names").stdout, "")
        self.assertIn(": does not exist (`plenumctl ls` lists them)", self.ctl("stop", "work", code=1).stderr)

    def test_guards_that_were_lost(self):
        self.ctl("new", "work")
        self.agent.child()
        self.assertEqual(self.ctl("clear-lost", "work").stdout, "no guards were lost\n")
        self.d.stop()
        os.truncate(self.d.state + "/plenum/sessions.json", 0)
        self.d.start()
        self.assertIn("clear-lost", self.ctl("new", "other").stderr)
        self.assertEqual(self.ctl("clear-lost", "other").stdout, "other goes on without the guards that were lost\n")
        self.ctl("new", "third")
        self.assertEqual(self.ctl("clear-lost", "--all").stdout,
                         "third goes on without the guards that were lost\nnew sessions may run tools again\n")
        self.assertNotIn("clear-lost", self.ctl("new", "fourth").stderr)
        self.assertIn(": does not exist (`plenumctl ls` lists them)", self.ctl("clear-lost", "nowhere", code=1).stderr)

    def test_sleep_and_wake(self):
        self.ctl("new", "work")
        child = self.agent.child()
        child.print({"type": "system", "subtype": "init", "session_id": "c1"}, dict(harness.RESULT, session_id="c1"))
        until(lambda: self.d.sessions()["work"]["conversation_id"] == "c1")
        self.d.wait_state("work", "idle")
        self.assertEqual(self.ctl("sleep", "work").stdout, "work sleeps\n")
        self.assertTrue(child.gone or until(lambda: child.gone))
        self.assertRegex(self.ctl("ls", "-l").stdout, r"(?m)^work +asleep .* - +c1$")
        p, child, uuid = self.prompted()
        self.assertIn("--resume=c1", child.argv)
        child.print(self.result(uuid, session_id="c1"))
        self.ended(p, 0)

    def test_a_busy_session_does_not_sleep(self):
        p, child, uuid = self.prompted()
        self.assertIn("let its turn end", self.ctl("sleep", "work", code=1).stderr)
        child.print(self.result(uuid))
        self.ended(p, 0)

    def test_interrupt(self):
        p, child, uuid = self.prompted()
        q = self.spawn("interrupt", "work")
        child.reply(child.request("interrupt"))
        self.assertEqual(self.ended(q, 0)[0], "work interrupted\n")
        child.print(self.result(uuid, is_error=True, subtype="error_during_execution", session_id="c"))
        self.ended(p, 1)
        self.d.wait_state("work", "idle")
        q = self.spawn("interrupt", "work")
        until(lambda: len(child.seen(request__subtype="interrupt")) == 2)
        child.reply(child.seen(request__subtype="interrupt")[1])
        self.assertEqual(self.ended(q, 0)[0], "nothing ran in work: it is idle\n")
        self.ctl("sleep", "work")
        self.assertEqual(self.ctl("interrupt", "work").stdout, "nothing ran in work: it is asleep\n")
        asleep = self.ctl("--json", "interrupt", "work")
        self.assertEqual((asleep.returncode, json.loads(asleep.stdout)), (0, {"session": "work", "state": "asleep"}))

    def test_guards_that_were_lost_are_told(self):
        guard = self.d.attached("work", name="guard")
        init = harness.init("i", {"PreToolUse": [{"hookCallbackIds": ["p"]}]})
        child = self.agent.child()
        guard.send(init)
        child.reply(child.request("initialize"))
        guard.answer("i")
        self.d.kill9()
        for path in glob.glob(self.d.env["XDG_STATE_HOME"] + "/plenum/sessions.json*"):
            with open(path) as f:
                text = f.read()
            with open(path, "w") as f:
                f.write(text.replace("hookCallbackIds", "nothing"))
        self.d.start()
        self.assertIn("every tool is refused", self.ctl("attach", "-o", "work").stderr)

    def test_logs(self):
        self.ctl("new", "work")
        child = self.agent.child()
        child.stderr("one \x1b[31m\ntwo\n")
        until(lambda: "two" in self.ctl("log", "work").stdout, what="the stderr lines")
        self.assertEqual(self.ctl("log", "work").stdout, "one \\x1b[31m\ntwo\n")

    def test_status_and_top(self):
        self.d.attached("work", name="win\x1bdow")
        self.agent.child()
        self.assertIn(self.d.socket, self.ctl("status").stdout)
        self.assertIsInstance(json.loads(self.ctl("status", "--json").stdout), dict)
        self.assertIn("win\\", self.ctl("status", "work").stdout)
        self.d.attached("work", name="two\nlines")
        self.assertRegex(self.ctl("status", "work").stdout, r"(?m)^two lines +driver ")
        self.assertEqual(self.ctl("status", "--profiles").stdout, "\n".join(PROFILES) + "\n")
        top = self.ctl("top", "--once").stdout
        self.assertRegex(top, r"(?m)^work +\w+ +- +- +- +- +2 +[0-9.]+M +\S+ +- +-$")
        self.assertNotIn("\x1b", top)
        machine = json.loads(self.ctl("top", "--json").stdout)
        self.assertEqual([(s["session"], s["clients"][0]["name"]) for s in machine["sessions"]], [("work", "win\x1bdow")])
        self.assertIn(": does not exist (`plenumctl ls` lists them)", self.ctl("status", "nope", code=1).stderr)

    def test_ls_begins_with_the_session_used_last(self):
        for name in ("one", "two"):
            self.ctl("new", name)
            self.agent.child()
        child = self.agent.children[0]
        p = self.spawn("send", "one", "go")
        child.print(self.result(child.wait(type="user")["uuid"]))
        self.ended(p, 0)
        self.assertEqual([line.split()[0] for line in self.ctl("ls").stdout.splitlines()], ["SESSION", "one", "two"])

    def test_status_in_units_of_people(self):
        self.d.attached("work")
        child = self.agent.child()
        child.print({"type": "system", "subtype": "init", "session_id": "c1", "permissionMode": "plan", "model": "m-1"})
        until(lambda: re.search(r"(?m)^mode +plan$", self.ctl("status", "work").stdout), what="the mode")
        text = self.ctl("status", "work").stdout
        for want in (r"^state +\w+, last used \d+m?s ago$", r"^model +m-1$", r"^made +\d{4}-\d\d-\d\d [0-9:]+ \(\S+ ago\)$",
                     r"^agent +pid %d, [0-9.]+M of memory, last output \d+m?s ago$" % child.pid):
            self.assertRegex(text, "(?m)" + want)
        self.assertNotRegex(text, r"_ms|_bytes|\d{10}")
        text = self.ctl("status").stdout
        self.assertRegex(text, r"(?m)^daemon +plenumd \S+, pid %d, [0-9.]+M of memory$" % self.d.pid)
        self.assertNotRegex(text, r"_ms|_bytes|\d{10}")

    def test_upgrade(self):
        self.assertIn("has taken over", self.ctl("upgrade").stdout)
        self.assertIs(json.loads(self.ctl("--json", "upgrade").stdout)["upgraded"], True)
        self.ctl("status")

    def test_reload(self):
        self.ctl("reload")
        with open(self.d.conf, "a") as f:
            f.write("[daemon]\nno_such_key = 1\n")
        self.assertIn("no_such_key", self.ctl("reload", code=1).stderr)

    def test_shutdown(self):
        self.ends_here()
        self.ctl("shutdown")
        self.assertEqual(self.d.process.wait(TIMEOUT), 0)

    def test_doctor(self):
        os.makedirs(self.d.home, exist_ok=True)
        p = self.ctl("doctor", HOME=self.d.home, CLAUDECODE="1", PLENUM_CLAUDE="/no/such")
        self.assertRegex(p.stdout, r"(?m)^ok +daemon +answers$")
        self.assertRegex(p.stdout, r"(?m)^note +inside .*CLAUDECODE")
        self.assertRegex(p.stdout, r"(?m)^ok +origin ")
        self.assertRegex(p.stdout, r"(?m)^(ok|note) +ptrace ")
        self.assertRegex(p.stdout, r"(?m)^ok +config +plenumd --check finds no error$")
        self.assertRegex(p.stdout, r"(?m)^ok +profile +agent, the default: /\S+ \(command of the profile\)$")
        self.assertRegex(p.stdout, r"(?m)^note +profile +claude: program /no/such is not there\n +-> correct or unset PLENUM_CLAUDE, ")

    def test_doctor_finds_the_program_as_a_start_does(self):
        folder = self.d.root + "/asker"
        os.mkdir(folder)
        shutil.copy("/bin/true", folder + "/claude")
        p = self.ctl("doctor", HOME=self.d.home, PATH=folder + ":" + os.environ["PATH"])
        self.assertRegex(p.stdout, r"(?m)^ok +profile +claude: %s/claude \(PATH of the client\)$" % folder)

    def test_doctor_on_a_daemon_without_a_table(self):
        os.makedirs(self.d.home, exist_ok=True)
        self.assertRegex(self.ctl("doctor").stdout, r"(?m)^ok +state +%s" % self.d.state)
        file = self.d.root + "/file"
        open(file, "w").close()
        d, agent = self.start(daemon={"state_dir": file})
        p = subprocess.run([build_file("plenumctl"), "doctor"], capture_output=True, text=True, timeout=TIMEOUT,
                           env=environment(d.socket, HOME=d.home))
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stdout, r"(?m)^BAD +state +.*will not survive a restart")

    def test_doctor_names_the_daemon_that_has_the_state_folder(self):
        env = environment(self.d.root + "/no/socket", HOME=self.d.home, XDG_STATE_HOME=self.d.state)

        def doctor():
            return subprocess.run([build_file("plenumctl"), "doctor"], capture_output=True, text=True, timeout=TIMEOUT,
                                  env=env).stdout

        out = doctor()
        self.assertRegex(out, r"(?m)^note +state +plenumd with pid %d, which listens on %s has the directory" % (
            self.d.pid, self.d.socket))
        self.assertIn("set PLENUM_SOCKET=%s to reach it" % self.d.socket, out)
        self.d.kill9()
        self.assertRegex(doctor(), r"(?m)^ok +state ")
        self.d.start()

    def as_nobody(self, d, *args):
        """plenumctl of a user who can reach the daemon's socket."""
        program = shutil.copy(build_file("plenumctl"), d.root + "/plenumctl")
        for path, mode in ((d.root, 0o755), (d.run, 0o755), (d.run + "/plenum", 0o755), (d.socket, 0o666)):
            os.chmod(path, mode)
        return subprocess.run([program, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT,
                              env=environment(d.socket), user=65534, group=65534, extra_groups=[])

    @unittest.skipUnless(os.getuid() == 0, "needs root, to become somebody else")
    def test_the_daemon_of_another_user_is_named(self):
        for verb, code in (("ls", 74), ("doctor", 1)):
            p = self.as_nobody(self.d, verb)
            self.assertEqual(p.returncode, code, p.stdout + p.stderr)
            self.assertIn("belongs to uid 0 and does not take uid 65534 (allow_uids in plenum.conf(5))" if verb == "ls" else "", p.stderr)
        self.assertRegex(p.stdout, r"(?m)^BAD +daemon +it belongs to uid 0 and does not take this user\n +-> .*allow_uids")
        self.assertNotIn("answers", p.stdout)

    @unittest.skipUnless(os.getuid() == 0, "needs root, to become somebody else")
    def test_doctor_leaves_the_state_of_another_users_daemon_to_that_user(self):
        d = self.track(harness.Daemon({"daemon": {"allow_uids": "65534"}}))
        p = self.as_nobody(d, "doctor")
        self.assertRegex(p.stdout, r"(?m)^ok +daemon +answers")
        self.assertRegex(p.stdout, r"(?m)^ok +state +uid 0's, which runs the daemon")

    def test_completion_of_an_evil_name(self):
        mark = self.d.root + "/pwned"
        name = "e$(touch %s)" % mark
        self.d.attached(name)
        script = ("source %s/completions/plenumctl.bash; COMP_WORDS=(plenumctl send e); COMP_CWORD=2; _plenumctl; "
                  "printf '%%s\\n' \"${COMPREPLY[@]}\"" % ROOT)
        path = os.path.dirname(build_file("plenumctl")) + ":" + os.environ["PATH"]
        p = subprocess.run(["bash", "-c", script], env=environment(self.d.socket, PATH=path), stdout=subprocess.PIPE, text=True,
                           timeout=TIMEOUT)
        self.assertTrue(p.stdout.startswith("e\\$\\(touch"), p.stdout)
        self.assertFalse(os.path.exists(mark))

    def test_completion_behind_an_option_with_a_value(self):
        self.d.attached("work")
        path = os.path.dirname(build_file("plenumctl")) + ":" + os.environ["PATH"]
        for words, want in (("attach -t ''", "work"), ("attach -r ''", "none all"), ("attach -r all ''", "work"),
                            ("deny -i ''", "work"), ("allow -i {} ''", "work"), ("send -t 5s w", "work"), ("new -r ''", ""),
                            ("new -p ''", " ".join(PROFILES)), ("send --profile ag", "agent"), ("status --p", "--profiles")):
            script = ("source %s/completions/plenumctl.bash; COMP_WORDS=(plenumctl %s); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); "
                      "_plenumctl; echo ${COMPREPLY[*]}" % (ROOT, words))
            p = subprocess.run(["bash", "-c", script], env=environment(self.d.socket, PATH=path), stdout=subprocess.PIPE,
                               text=True, timeout=TIMEOUT)
            self.assertEqual(p.stdout.strip(), want, words)


    def test_completion_of_profiles_in_fish(self):
        env = environment(self.d.socket, PATH=os.path.dirname(build_file("plenumctl")) + ":" + os.environ["PATH"],
                          HOME=self.d.root, TERM="dumb")
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")
        for words in ("new -p ", "send --profile "):
            p = subprocess.run(["fish", "-c", "source %s/completions/plenumctl.fish; complete -C 'plenumctl %s'" % (ROOT, words)],
                               env=env, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT)
            self.assertEqual({line.split("\t")[0] for line in p.stdout.splitlines()}, set(PROFILES))


class Names(Ctl):
    """Which session a word means."""

    def ctl(self, *args, **more):
        return super().ctl(*args, HOME=self.d.root + "/person", XDG_STATE_HOME=self.d.root, **more)

    def made(self, *names):
        for name in names:
            self.ctl("new", name)
            self.agent.child()

    def names(self):
        return sorted(self.ctl("ls", "--names").stdout.split())

    def test_the_beginning_of_one_name(self):
        self.made("work", "web", "web2")
        self.assertEqual(self.ctl("stop", "wo").stdout, "work stopped\n")
        self.assertIn("session 'w': fits work, web and web2", self.ctl("stop", "w", code=64).stderr)
        self.assertEqual(self.ctl("stop", "web").stdout, "web stopped\n")  # the whole name wins
        self.assertIn("session wo: does not exist ", self.ctl("--json", "stop", "wo", code=1).stderr)
        self.assertIn("(no_such_session)", self.ctl("--json", "stop", "x", code=1).stderr)
        self.assertNotIn("no_such_session", self.ctl("stop", "x", code=1).stderr)

    def test_an_empty_name_is_none(self):
        """As of an unset variable in a script: neither the only session nor one without a conversation."""
        self.made("work")
        for args in (("stop", "-f", ""), ("deny", ""), ("send", "-c", "", "x"), ("status", ""), ("attach", ""),
                     ("--json", "stop", "-f", "")):
            self.assertIn("session '': a name is needed", self.ctl(*args, code=64).stderr)
        self.assertIn("a session name has 1 to 255 bytes", self.ctl("new", "", code=1).stderr)
        for verb in ("model", "mode"):
            self.assertIn("the %s is empty" % verb, self.ctl(verb, "work", "", code=64).stderr)
        self.assertEqual(self.names(), ["work"])

    def test_the_last_one(self):
        self.assertIn("no session was used yet", self.ctl("stop", "-", code=64).stderr)
        self.made("one", "two")
        self.ctl("status", "on")
        self.assertEqual(self.ctl("stop", "-").stdout, "one stopped\n")
        self.assertEqual(self.ctl("stop", "-").stdout, "one stopped\n")

    def test_a_mistyped_name_makes_nothing(self):
        self.made("work")
        err = self.ctl("send", "wrok", "x", code=1).stderr
        self.assertIn("session wrok: does not exist", err)
        self.assertIn("--create", err)
        self.assertIn("looks like an option", self.ctl("send", "-c", "--", "--flag", "x", code=64).stderr)
        self.assertIn("looks like an option", self.ctl("attach", "--", "--flag", code=64).stderr)
        self.assertIn("--on-lag x: not gap, close or wait", self.ctl("attach", "--on-lag", "x", "work", code=64).stderr)
        self.assertEqual(self.names(), ["work"])

    def test_the_first_session_needs_no_word(self):
        self.ctl("send", "-e", "work", "x", code=1)
        for args in (("work",), ("-c", "second")):
            p = self.spawn("send", *args, "go")
            child = self.agent.child()
            child.print(self.result(child.wait(type="user")["uuid"]))
            self.ended(p, 0)
        self.assertEqual(self.names(), ["second", "work"])

    def test_words_behind_the_dashes_are_the_agents(self):
        made = self.ctl("new", "--", "--flag", "word").stdout.strip()
        self.assertEqual(self.agent.child().argv[-2:], ["--flag", "word"])
        self.assertNotIn("flag", made)
        self.assertIn("unexpected argument: b", self.ctl("new", "a", "b", code=64).stderr)
        self.assertEqual(self.names(), [made])


class Waits(Ctl):
    """wait, events, mode, model, fork, metrics."""

    def lines(self, p, want):
        got = b""
        while want.encode() not in got:
            part = os.read(p.stdout.fileno(), 65536)
            self.assertTrue(part, "%r did not come; got %r" % (want, got))
            got += part
        return got.decode()

    def test_wait_for_the_end_of_the_turn(self):
        p, child, uuid = self.prompted()
        self.begin(child, uuid)
        self.assertIn("timeout", self.ctl("wait", "-t", "1ms", "work", code=124).stderr)
        waiting = self.spawn("wait", "work", "idle"), self.spawn("wait", "wo"), self.spawn("--json", "wait", "work", "asking", "ended")
        child.print(self.result(uuid, session_id="c1"))
        self.ended(p, 0)
        for one in waiting[:2]:
            self.assertEqual(self.ended(one, 0)[0], "idle\n")
        self.assertEqual(self.ctl("wait", "work").stdout, "idle\n")
        self.ctl("sleep", "work")
        self.assertEqual(json.loads(self.ended(waiting[2], 0)[0]), {"session": "work", "state": "asleep"})

    def test_wait_for_a_question(self):
        a = self.d.attached("work", approve=False)
        p = self.spawn("wait", "work", "asking")
        self.agent.child().print(perm("q1"))
        self.assertEqual(self.ended(p, 0)[0], "asking\n")

    def test_wait_for_what_is_removed(self):
        self.d.attached("work")
        waiting = self.spawn("wait", "work", "asking"), self.spawn("wait", "work", "ended")
        until(lambda: sum(c["lines_in"] >= 3 for c in self.d.call("plenum_status")["clients"]) >= 2, what="both have asked")
        self.ctl("stop", "-k", "-f", "work")
        self.ended(waiting[0], 1)
        self.assertIn(self.ended(waiting[1], 0)[0], ("removed\n", "asleep\n"))

    def test_events_of_all(self):
        p = self.spawn("events")
        machine = self.spawn("--json", "events")
        self.subscribed(2)
        self.ctl("new", "work")
        self.assertRegex(self.lines(p, "session_created"), r"(?m)^\d\d:\d\d:\d\d  work  session_created")
        got = self.lines(machine, "session_created")
        self.assertEqual(json.loads(got.splitlines()[0])["event"], "session_created")

    def subscribed(self, n):
        """n clients have asked for the events, and were answered."""
        until(lambda: sum(c["program"] == "plenumctl" and c["bytes_out"] > 0 for c in self.d.call("plenum_status")["clients"]) == n,
              what="%d subscribers" % n)

    def test_events_of_one_session(self):
        a = self.d.attached("work")
        child = self.agent.child()
        p = self.spawn("events", "work")
        a.event("attached")
        child.print(said("no event"), perm("q1"))
        a.wait(request__subtype="can_use_tool")
        self.ctl("allow")
        text = self.lines(p, "settled")
        self.assertRegex(text, r"(?m)^\S+  work  settled .*decision=allow")
        self.assertNotIn("no event", text)

    def test_mode_and_model(self):
        self.d.attached("work")
        child = self.agent.child()
        for verb, request, member, value in (("mode", "set_permission_mode", "mode", "plan"), ("model", "set_model", "model", "m-1")):
            p = self.spawn(verb, "work", value)
            asked = child.request(request)
            self.assertEqual(asked["request." + member], value)
            child.reply(asked)
            self.assertEqual(self.ended(p, 0)[0], value + "\n")
        p = self.spawn("mode", "work", "wild")
        asked = until(lambda: [m for m in child.seen(request__subtype="set_permission_mode") if m["request.mode"] == "wild"])[0]
        child.print(harness.err(asked["request_id"], "no such mode"))
        self.assertIn("no such mode", self.ended(p, 1)[1])
        child.print({"type": "system", "subtype": "init", "session_id": "c1", "permissionMode": "plan", "model": "m-1"})
        until(lambda: self.ctl("mode", "work").stdout == "plan\n", what="the mode")
        self.assertEqual(json.loads(self.ctl("--json", "model", "work").stdout), {"session": "work", "model": "m-1"})

    def test_fork(self):
        with tempfile.TemporaryDirectory(prefix="pl-cwd-") as cwd:
            self.ctl("new", "-C", cwd, "work")
            child = self.agent.child()
            self.assertIn("has no conversation yet", self.ctl("fork", "work", "copy", code=1).stderr)
            child.print({"type": "system", "subtype": "init", "session_id": "c1"}, dict(harness.RESULT, session_id="c1"))
            until(lambda: self.d.sessions()["work"]["conversation_id"] == "c1")
            self.assertEqual(self.ctl("fork", "wo", "copy").stdout, "copy\n")
            copy = self.agent.child()
            self.assertIn("--resume=c1", copy.argv)
            self.assertIn("--fork-session", copy.argv)
            self.assertEqual(copy.start["cwd"], cwd)
            self.assertIn("exists already", self.ctl("fork", "work", "copy", code=1).stderr)

    def test_a_model_is_text(self):
        p, child, uuid = self.prompted()
        child.print({"type": "system", "subtype": "init", "session_id": "c", "model": "m\x1b[2J", "user_message_uuids": [uuid]},
                    self.result(uuid))
        self.ended(p, 0)
        self.assertEqual(self.ctl("model", "work").stdout, "m\\x1b[2J\n")

    def test_wait_follows_the_name(self):
        self.ctl("new", "work")
        self.agent.child()
        self.d.wait_state("work", "idle")
        self.ctl("sleep", "work")
        p = self.spawn("wait", "work", "idle")
        until(lambda: any(c["lines_in"] >= 3 for c in self.d.call("plenum_status")["clients"]), what="the wait")
        self.ctl("rename", "work", "play")
        sending, child, uuid = self.prompted("play")
        child.print(self.result(uuid))
        self.assertEqual(self.ended(p, 0)[0], "idle\n")
        self.ended(sending, 0)

    def test_rename(self):
        self.ctl("new", "work")
        self.agent.child()
        self.assertIn("(`plenumctl sleep` it first)", self.ctl("rename", "work", "play", code=1).stderr)
        self.d.wait_state("work", "idle")
        self.ctl("sleep", "work")
        self.assertEqual(self.ctl("rename", "wo", "play").stdout, "play\n")
        self.assertEqual(self.ctl("ls", "--names").stdout, "play\n")

    def test_metrics(self):
        self.assertRegex(self.ctl("metrics").stdout, r"(?m)^sessions +0$")
        self.assertEqual(json.loads(self.ctl("--json", "metrics").stdout)["sessions"], 0)


class Queue(Ctl):
    def setUp(self):
        harness.Case.setUp(self)
        self.running = []
        self.addCleanup(self.end_running)
        self.d, self.agent = self.start(profile={"prompts": "queue"})

    def test_held_prompts_are_shown(self):
        p, child, uuid = self.prompted()
        self.assertEqual(self.ctl("queue", "work").stdout, "no prompt is queued\n")
        second = self.d.attached("work", name="second", approve=False)
        second.send(harness.user("later", uuid="u2"))
        until(lambda: "u2" in self.ctl("queue", "work").stdout, what="the held prompt")
        self.assertRegex(self.ctl("queue", "work").stdout.splitlines()[1], r"^held +\S+ +second +u2$")
        child.print(self.result(uuid))
        self.ended(p, 0)
        child.wait(type="user", uuid="u2")
        child.print(self.result("u2"))
        second.wait(type="result")

    def test_one_is_taken_back(self):
        p, child, uuid = self.prompted()
        second = self.d.attached("work", name="second", approve=False)
        second.send(harness.user("later", uuid="u2"), harness.user("last", uuid="u3"))
        second.event("changed", what="prompt_held", value="u3")
        self.assertEqual(self.ctl("queue", "--cancel", "u2", "work").stdout, "u2 cancelled\n")
        second.event("changed", what="prompt_cancelled", value="u2")
        asking = self.spawn("queue", "-c", "u2", "work")  # the agent might have it
        child.reply(child.request("cancel_async_message"), {"cancelled": False})
        self.assertIn("no prompt u2 waits", self.ended(asking, 1)[1])
        child.print(self.result(uuid))
        self.ended(p, 0)
        self.assertEqual(child.wait(lambda m: m["type"] == "user")["uuid"], "u3")
        child.print(self.result("u3"))
        second.wait(type="result")

    def test_send_says_that_its_prompt_is_held(self):
        first, child, uuid = self.prompted()
        p = self.spawn("send", "work", "later")
        until(lambda: "STATE" in self.ctl("queue", "work").stdout, what="the held prompt")
        child.print(self.result(uuid))
        self.ended(first, 0)
        m = child.wait(type="user", message__content="later")
        child.print(self.result(m["uuid"]))
        self.assertIn("waits for the end of another client's turn", self.ended(p, 0)[1])


class Chat(Ctl):
    def script(self, text):
        """A chat whose input is all there from the beginning, and its agent."""
        p = self.spawn("chat", "work", stdin=subprocess.PIPE)
        p.stdin.write(text)
        p.stdin.close()
        p.stdin = None
        return p, self.agent.child()

    def test_lines_of_a_script(self):
        p, child = self.script(b"first\nn too early\nlast")
        m = child.wait(type="user", message__content="first")
        child.print(perm("q1"))
        self.assertEqual(child.answer("q1")["response.response"]["message"], "too early")
        child.print(said("one"), self.result(m["uuid"]))
        m = child.wait(type="user", message__content="last")
        child.print(said("two"), self.result(m["uuid"]))
        out, err = self.ended(p, 0)
        self.assertLess(out.index("one"), out.index("two"))

    def test_every_byte_of_a_line(self):
        p, child = self.script(b"a\0b\r\n")
        m = child.wait(type="user", message__content="a\0b")
        child.print(self.result(m["uuid"]))
        self.ended(p, 0)

    def test_a_person(self):
        pid, fd = self.terminal("chat", "work")
        self.shown(fd, "\n> ")
        os.write(fd, b"hello\n")
        child = self.agent.child()
        m = child.wait(type="user", message__content="hello")
        child.print({"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m"}}}, delta("an "),
                    delta("answer"), perm("q1", cmd="rm \x1b[2J"))
        text = self.shown(fd, "allow?")
        self.assertIn("an answer", text)
        self.assertNotIn("\x1b[2J", text)
        os.write(fd, b"y\n")
        self.assertEqual(child.answer("q1")["response.response.behavior"], "allow")
        child.print(perm("q2"))
        self.shown(fd, "allow?")
        child.print({"type": "control_cancel_request", "request_id": "q2"})
        self.shown(fd, "Bash: withdrawn")
        os.write(fd, b"\x03")
        child.reply(child.request("interrupt"))
        child.print(self.result(m["uuid"]))
        self.shown(fd, "> ")
        os.write(fd, b"\x04")
        self.shown(fd, "the session goes on")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertEqual(self.ctl("ls", "--names").stdout, "work\n")

    def test_a_subagent_asks(self):
        pid, fd = self.terminal("chat", "work")
        self.shown(fd, "\n> ")
        child = self.agent.child()
        child.print(perm("q1"))
        self.assertNotIn("subagent", self.shown(fd, "allow?"))
        os.write(fd, b"y\n")
        child.answer("q1")
        child.print(perm("q2", agent_id="agent-7"))
        self.assertIn("asked by subagent agent-7", self.shown(fd, "allow?"))
        self.assertRegex(self.ctl("pending").stdout, r" Bash \(subagent\) ")

    def test_one_sign_to_type_behind(self):
        """Whatever the session's state becomes meanwhile; and what another client is answered does not stand behind it."""
        pid, fd = self.terminal("chat", "work")
        text = self.shown(fd, "\n> ")
        self.agent.child()
        self.d.wait_state("work", "idle")
        self.ctl("sleep", "work")
        p = self.spawn("send", "work", "hello")
        child = self.agent.child()
        child.print(said("one"), self.result(child.wait(type="user")["uuid"]))
        self.ended(p, 0)
        text += self.shown(fd, "one\r\n")
        self.assertNotIn("> \r\n> ", text)
        self.assertNotIn("> one", text)

    def test_a_question_with_choices(self):
        pid, fd = self.terminal("chat", "work")
        self.shown(fd, "\n> ")
        child = self.agent.child()
        asked = {"questions": [{"question": "Which?", "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}]},
                               {"question": "Why?", "options": []}]}
        child.print({"type": "control_request", "request_id": "q", "request": {
            "subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": asked, "tool_use_id": "t"}})
        self.assertIn("2. Blue", self.shown(fd, "own words: "))
        os.write(fd, b"2\n")
        self.shown(fd, "own words: ")
        os.write(fd, b"because\n")
        got = child.answer("q")["response.response.updatedInput"]
        self.assertEqual(got["answers"], {"Which?": "Blue", "Why?": "because"})
        self.assertEqual(got["questions"], asked["questions"])


class Screen(Ctl):
    """What is fitted to the terminal."""

    def resize(self, fd, columns, rows):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def sessions(self, n):
        for i in range(n):
            self.d.attached("session-%d-%s" % (i, "x" * 12), create="new", name="c")
            self.agent.child()

    def test_top_fits_its_screen_and_gives_it_back(self):
        self.sessions(6)
        pid, fd = self.terminal("top", TERM="xterm")
        self.resize(fd, 40, 7)
        os.kill(pid, signal.SIGWINCH)
        text = self.shown(fd, "... 4 more")
        self.assertIn("\x1b[?1049h", text)
        lines = text.split("\x1b[2J")[-1].splitlines()
        self.assertLessEqual(max(map(len, lines)), 40)
        self.assertLess(len(lines), 7)
        self.assertRegex(lines[2], "^SESSION +STATE")
        self.assertNotIn("MODEL", lines[2])
        self.resize(fd, 150, 30)
        os.kill(pid, signal.SIGWINCH)
        self.assertRegex(self.shown(fd, "COST"), r"SESSION +STATE +MODEL +MODE +QUEUE +PENDING +CLIENTS +MEMORY +IDLE +COST")
        os.write(fd, b"n")
        self.shown(fd, "sorted by SESSION (")
        os.write(fd, b"r")
        self.shown(fd, "sorted by SESSION, reversed")
        os.write(fd, b"q")
        self.shown(fd, "\x1b[?1049l")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_top_gives_the_screen_back_at_a_signal(self):
        pid, fd = self.terminal("top", TERM="xterm")
        self.shown(fd, "0 sessions")
        os.kill(pid, signal.SIGTERM)
        self.shown(fd, "\x1b[?1049l")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_top_without_control_sequences_prints_once(self):
        self.sessions(1)
        pid, fd = self.terminal("top")
        self.assertNotIn("\x1b", self.shown(fd, "session-0"))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_what_a_session_costs(self):
        p, child, uuid = self.prompted()
        child.print(self.result(uuid, total_cost_usd=0.1234))
        self.ended(p, 0)
        self.assertRegex(self.ctl("top", "-1").stdout, r"(?m)^work .* \$0\.12 +-$")
        self.assertRegex(self.ctl("status", "work").stdout, r"(?m)^cost +\$0\.1234$")

    def test_top_once_sorts(self):
        for name in ("b", "c", "a"):
            self.d.attached(name)
            self.agent.child()
        names = [line.split()[0] for line in self.ctl("top", "-1", "--sort", "session").stdout.splitlines()]
        self.assertEqual(names, ["SESSION", "a", "b", "c"])
        self.ctl("top", "--sort", "colour", code=64)

    def test_ls_fits_80_columns(self):
        folder = self.d.root + "/" + "f" * 90
        os.mkdir(folder)
        self.d.attached("work", cwd=folder)
        script = "stty cols 80; exec %s ls" % build_file("plenumctl")
        pid, fd = self.terminal("-c", script, program="/bin/sh")
        lines = self.shown(fd, "…").splitlines()
        self.assertEqual(max(map(len, lines)), 80)


class FakeCase(Ctl):
    """A daemon whose default profile is a built-in one of the scripted agent."""

    PROFILE = "fake-acp"

    def setUp(self):
        harness.Case.setUp(self)
        path = os.path.dirname(build_file("plenum-fakeagent")) + ":/usr/local/bin:/usr/bin:/bin"
        self.d = self.track(harness.Daemon({"daemon": {"default_profile": self.PROFILE}}, env={"PATH": path}))
        self.running = []
        self.addCleanup(self.end_running)
        self.made = os.path.join(self.d.root, "made")

    def asking(self, session="work"):
        """`send` whose turn waits for a permission: (process, id of the request)."""
        p = self.spawn("send", "-c", session, '@text one@ @tool Bash {"command":"touch %s"}@' % self.made)
        self.d.wait_state(session, "asking")
        return p, self.ctl("pending", "--ids", session).stdout.strip()


class Acp(FakeCase):
    def test_send(self):
        self.assertEqual(self.ctl("send", "-c", "work", "@text hello \\u001b[1m@").stdout.rstrip("\n"), "hello \\u001b[1m")
        self.assertEqual(self.d.sessions()["work"]["dialect"], "acp")
        self.assertEqual(self.ctl("send", "work", "@text again@").stdout, "again\n")
        out = [json.loads(x) for x in self.ctl("send", "--json", "work", "@text third@").stdout.splitlines()]
        self.assertEqual([x["result"]["stopReason"] for x in out if "result" in x], ["end_turn"])

    def test_a_turn_that_fails(self):
        p = self.ctl("send", "-c", "work", "@error out of money@", code=1)
        self.assertRegex(p.stderr, "^plenumctl: the turn failed: .*out of money")

    def test_an_agent_that_dies(self):
        self.assertIn("was killed by signal 9", self.ctl("send", "-c", "work", "@die@", code=74).stderr)

    def test_the_turn_of_another_is_not_printed(self):
        self.d.sections["profile fake-acp"] = {"prompts": "queue", "resume_args": ""}
        self.d.write_conf()
        self.ctl("reload")
        p, request = self.asking()
        other = self.spawn("send", "work", "@text other@")
        until(lambda: self.d.call("plenum_queue", session="work")["prompts"], what="the second prompt")
        self.ctl("allow", "work", request)
        self.assertEqual(self.ended(p, 0)[0], "one\ntool done: [false]\n")
        out, err = self.ended(other, 0)
        self.assertEqual(out, "other\n")
        self.assertIn("the prompt waits for the end of another client's turn", err)

    def test_allow(self):
        p, request = self.asking()
        self.assertRegex(self.ctl("pending").stdout, r"work +%s .*touch %s" % (request, self.made))
        self.assertEqual(self.ctl("allow", "work").stdout, "allowed %s (execute: touch %s)\n" % (request, self.made))
        self.assertEqual(self.ended(p, 0)[0], "one\ntool done: [false]\n")
        self.assertTrue(os.path.exists(self.made))
        self.ctl("allow", "work", code=1)

    def test_allow_always(self):
        p, request = self.asking()
        self.ctl("allow", "--always", "work", request)
        self.ended(p, 0)
        os.unlink(self.made)
        self.ctl("send", "work", '@tool Bash {"command":"touch %s"}@' % self.made)
        self.assertTrue(os.path.exists(self.made))

    def test_deny(self):
        p, request = self.asking()
        refused = self.ctl("deny", "work", request, "because", code=64)
        self.assertIn("this agent takes a choice alone", refused.stderr)
        self.assertEqual(self.ctl("deny", "work", request).stdout, "denied %s (execute: touch %s)\n" % (request, self.made))
        self.ended(p, 0)
        self.assertFalse(os.path.exists(self.made))

    def test_tail(self):
        self.ctl("send", "-c", "work", "@text hello@")
        out = self.ctl("tail", "--no-follow", "work").stdout
        self.assertEqual(out.count("the session is starting"), 1)
        self.assertRegex(out, r"(?m)^> @text hello@$")
        self.assertRegex(out, r"(?m)^hello$")
        self.assertRegex(out, r"(?m)^-- success, \d+\.\d s")
        p = self.spawn("tail", "-n", "0", "work")
        until(lambda: self.d.sessions()["work"]["attachments"] == 1, what="the watcher")
        sender, request = self.asking()
        self.ctl("allow", "work", request)
        self.ended(sender, 0)
        got = b""
        while b"-- success" not in got:
            got += os.read(p.stdout.fileno(), 65536)
        self.assertRegex(got.decode(), r"\none\n\* execute: touch .*\n(.*\n)+  = ")

    def test_interrupt(self):
        p, request = self.asking()
        self.assertEqual(self.ctl("interrupt", "work").stdout, "work interrupted\n")
        self.assertEqual(self.ended(p, 1)[1].splitlines()[-1], "plenumctl: the turn was interrupted")
        self.assertFalse(os.path.exists(self.made))

    def test_ctrl_c_interrupts(self):
        p, request = self.asking()
        p.send_signal(signal.SIGINT)
        self.assertIn("plenumctl: interrupted\n", self.ended(p, 130)[1])
        self.d.wait_state("work", "idle")
        self.assertFalse(os.path.exists(self.made))

    def test_mode_and_model(self):
        self.ctl("send", "-c", "work", "@text hello@")
        self.assertEqual(self.ctl("mode", "work", "plan").stdout, "plan\n")
        self.assertEqual(self.ctl("mode", "work").stdout, "plan\n")
        self.ctl("mode", "work", "nonsense", code=1)

    def test_other_verbs(self):
        self.assertEqual(self.ctl("new", "work").stdout, "work\n")
        self.assertIn("work", self.ctl("top", "--once").stdout)
        self.assertIn("work", self.ctl("ls").stdout)
        self.ctl("wait", "work", "idle")
        self.ctl("send", "work", "@text hello@")
        self.ctl("sleep", "work")
        self.assertEqual(self.ctl("send", "work", "@text awake@").stdout, "awake\n")
        self.assertEqual(self.ctl("stop", "work").stdout, "work stopped\n")


class Codex(FakeCase):
    """With an agent that speaks the protocol of codex app-server."""

    PROFILE = "fake-codex"

    def test_model(self):
        self.ctl("send", "-c", "work", "@text hello@")
        self.assertEqual(self.ctl("model", "work").stdout, "fake-model\n")
        self.assertEqual(self.ctl("model", "work", "small").stdout, "small\n")
        until(lambda: self.ctl("model", "work").stdout == "small\n", what="the report of the agent")
        self.assertEqual(self.ctl("mode", "work").stdout, "(the agent has not said it)\n")
        self.assertIn("no request that sets the mode", self.ctl("mode", "work", "plan", code=1).stderr)
        self.ctl("sleep", "work")
        self.ctl("send", "work", "@text again@")
        self.assertEqual(self.ctl("model", "work").stdout, "small\n")

    def test_send(self):
        self.assertEqual(self.ctl("send", "-c", "work", "@text hello@").stdout, "hello\n")
        self.assertEqual(self.d.sessions()["work"]["dialect"], "codex")
        self.assertEqual(self.ctl("send", "work", "@text again@").stdout, "again\n")
        self.assertRegex(self.ctl("send", "work", "@error out of money@", code=1).stderr,
                         r"plenumctl: the turn failed \(failed\): .*out of money")

    def test_allow_and_tail(self):
        p, request = self.asking()
        self.assertRegex(self.ctl("pending").stdout, r"work +%s .*touch %s" % (request, self.made))
        self.assertEqual(self.ctl("allow", "work").stdout, "allowed %s (commandExecution: touch %s)\n" % (request, self.made))
        self.assertRegex(self.ended(p, 0)[0], r"^one\n")
        self.assertTrue(os.path.exists(self.made))
        self.assertRegex(self.ctl("tail", "--no-follow", "work").stdout,
                         r"(?m)^> @text one@ .*\none\n\* commandExecution: touch .*\n(.*\n)*  = .*\n(.*\n)*-- success, ")

    def test_allow_always(self):
        p, request = self.asking()
        self.ctl("allow", "-a", "work", request)
        self.ended(p, 0)
        os.unlink(self.made)
        self.ctl("send", "work", '@tool Bash {"command":"touch %s"}@' % self.made)
        self.assertTrue(os.path.exists(self.made))

    def test_deny(self):
        p, request = self.asking()
        self.assertIn("this agent takes a choice alone", self.ctl("deny", "work", request, "because", code=64).stderr)
        self.ctl("deny", "work", request)
        self.ended(p, 0)
        p, request = self.asking()
        self.ctl("deny", "-i", "work", request)
        self.assertIn("the turn was interrupted", self.ended(p, 1)[1])
        self.assertFalse(os.path.exists(self.made))

    def test_interrupt(self):
        p, request = self.asking()
        self.assertEqual(self.ctl("interrupt", "work").stdout, "work interrupted\n")
        self.assertEqual(self.ended(p, 1)[1].splitlines()[-1], "plenumctl: the turn was interrupted")
        self.assertEqual(self.ctl("interrupt", "work").stdout, "nothing ran in work: it is idle\n")
        p, request = self.asking()
        p.send_signal(signal.SIGINT)
        self.assertIn("plenumctl: interrupted\n", self.ended(p, 130)[1])
        self.d.wait_state("work", "idle")

    def test_an_agent_that_dies(self):
        self.assertIn("was killed by signal 9", self.ctl("send", "-c", "work", "@die@", code=74).stderr)

    def test_what_it_cannot_do(self):
        self.ctl("send", "-c", "work", "@text hello@")
        self.assertIn("has no request that sets the mode", self.ctl("mode", "work", "plan", code=1).stderr)
        self.assertIn("keeps no queue", self.ctl("interrupt", "-q", "work", code=1).stderr)
        self.assertIn("takes no prompt back", self.ctl("queue", "-c", "x", "work", code=1).stderr)


class Unknown(Ctl):
    """Sessions whose agent speaks a protocol that only a test program has (tests/dialect/tiny.c)."""

    def setUp(self):
        harness.Case.setUp(self)
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        self.agent = harness.Agent(os.path.join(root, "agent"), init="manual")
        self.agents.append(self.agent)
        self.d = harness.Daemon({"profile agent": {"command": self.agent.command, "dialect": "tiny"}}, root=root, start=False)
        self.d.program = build_file("plenumd-tiny")
        self.track(self.d).start()

    def test_it_is_named_and_nothing_is_sent(self):
        self.d.attached("work", profile="agent")
        child = self.agent.child()
        child.print({"ask": "q1", "of": {"tool": "Write", "with": {"path": "/one"}}})
        self.d.wait_state("work", "asking")
        request = json.loads(self.ctl("pending", "--json").stdout)["pending"][0]["request_id"]
        for args in (("send", "work", "go"), ("tail", "work"), ("chat", "work"), ("allow", "work"), ("deny", "work", request),
                     ("attach", "work"), ("mode", "work"), ("events", "work")):
            with self.subTest(args=args):
                self.assertEqual(self.ctl(*args, code=1).stderr,
                                 "plenumctl: session work: its agent speaks tiny, which this plenumctl does not know\n")
        child.caught_up()
        self.assertEqual([m.raw for m in child.log], [])

    def test_verbs_about_sessions_are_of_every_protocol(self):
        self.d.attached("work", profile="agent")
        self.assertIn("work", self.ctl("ls").stdout)
        self.assertIn("work", self.ctl("top", "--once").stdout)
        self.ctl("status", "work")
        self.ctl("stop", "work")


class Demo(unittest.TestCase):
    def test_no_place(self):
        p = run("/nowhere", "demo", TMPDIR="/no/such/folder")
        self.assertNotEqual(p.returncode, 0)
        self.assertRegex(p.stderr, r"^plenumctl: temporary directory /no/such/folder/\S+: .* \(set TMPDIR [^\n]*\)\n$")

    def test_it_happens_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory(prefix="pl-demo-") as tmp:
            p = run("/nonexistent/sock", "demo", TMPDIR=tmp, HOME=tmp)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            for want in ("phone   is asked for a permission: Bash: touch", "phone   answers: allow",
                         "window  learns: allow, decided by phone", "window  sees the end of the turn", "the file is there",
                         "ended, and left nothing running", "plenumctl chat work"):
                self.assertIn(want, p.stdout)
            self.assertEqual(os.listdir(tmp), [])
            self.assertEqual([x for x in harness.processes_of(tmp + "/") if harness.alive(x)], [])

    def test_without_the_programs_it_says_so(self):
        with tempfile.TemporaryDirectory(prefix="pl-demo-") as tmp:
            copy = tmp + "/plenumctl"
            with open(build_file("plenumctl"), "rb") as f, open(copy, "wb") as g:
                g.write(f.read())
            os.chmod(copy, 0o755)
            p = subprocess.run([copy, "demo"], env={"PATH": "/nonexistent"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, timeout=TIMEOUT)
            self.assertEqual(p.returncode, 69)
            self.assertIn("plenumd", p.stderr)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
