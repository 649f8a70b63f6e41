#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plenum-shim against a stand-in for the daemon. Usage: test_shim.py PLENUM_SHIM"""
import json
import os
import pty
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from standin import DEADLINE, STREAM, Place, Shim, signal

SHIM = ""


class Case(unittest.TestCase):
    def setUp(self):
        self.place = Place(SHIM)
        self.addCleanup(self.place.destroy)

    def start(self, *args, answer=None, **env):
        """A shim that is attached: (shim, daemon's end, what it asked)."""
        shim = self.place.shim(*args, **env)
        peer = self.place.accept()
        asked = peer.attach(**(answer or {}))
        return shim, peer, asked

    def start_running(self, *args, **env):
        """The same, when the shim is known to have read the answer."""
        shim, peer, asked = self.start(*args, **env)
        peer.send({"type": "keep_alive"})
        shim.read()
        return shim, peer


class Attach(Case):
    def test_argv_env_and_cwd_are_the_sdks(self):
        args = ["--model=x", "--system-prompt", '--odd "\u00e9\n', "--permission-prompt-tool", "stdio"]
        shim = self.place.shim(*args, cwd="/", FOO='a="b"\n', PLENUM_PROFILE="fake", PLENUM_NAME="me", PLENUM_X="y")
        asked = self.place.accept().attach()
        self.assertEqual(asked["argv"], STREAM + args)
        self.assertEqual(asked["env"]["FOO"], 'a="b"\n')
        self.assertFalse([k for k in asked["env"] if k.startswith("PLENUM_")])
        self.assertEqual(
            {k: asked[k] for k in ("env_only", "cwd", "profile", "name", "role", "replay", "on_lag", "quiet", "stderr")},
            {"env_only": True, "cwd": "/", "profile": "fake", "name": "me", "role": "driver", "replay": "none",
             "on_lag": "wait", "quiet": True, "stderr": True},
        )
        self.assertNotIn("session", asked)
        self.assertTrue(asked["ephemeral"])
        shim.kill(signal.SIGKILL)

    def test_flags_say_what_is_left_out(self):
        plain = self.start()[2]
        self.assertEqual([plain[k] for k in ("approve", "deny_asks", "partial", "echo")], [False, True, False, False])
        full = self.start("--permission-prompt-tool=stdio", "--include-partial-messages", "--replay-user-messages",
                          "--await-initialize", "--resume=abc", "--fork-session")[2]
        self.assertEqual([full[k] for k in ("approve", "partial", "echo", "raw_init", "resume", "fork")],
                         [True, True, True, True, "abc", True])
        self.assertNotIn("deny_asks", full)

    def test_values_that_look_like_flags_are_values(self):
        asked = self.start("--system-prompt", "--include-partial-messages", "--resume", "--model", "x")[2]
        self.assertFalse(asked["partial"])
        self.assertNotIn("resume", asked)

    def test_sdk_servers_of_mcp_config(self):
        config = {"mcpServers": {"a\"b": {"type": "sdk", "name": "a"}, "web": {"type": "http", "url": "x"}}}
        other = {"mcpServers": {"c": {"type": "sdk"}}}
        asked = self.start("--mcp-config", json.dumps(config), "/no/file.json", "--mcp-config=" + json.dumps(other))[2]
        self.assertEqual(asked["mcp_servers"], ['a"b', "c"])
        self.assertEqual(self.start("--mcp-config", '{"mcpServers":{"x":{"type":"sdk"')[2]["mcp_servers"], [])

    def test_sdk_servers_of_a_file(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "servers.json")
            with open(path, "w") as f:
                json.dump({"mcpServers": {"a": {"type": "sdk"}, "web": {"type": "http", "url": "x"}}}, f)
            self.assertEqual(self.start("--mcp-config", path)[2]["mcp_servers"], ["a"])
            self.assertEqual(self.start("--mcp-config=" + os.path.relpath(path))[2]["mcp_servers"], ["a"])
            with open(path, "a") as f:
                f.write(" " * (1 << 20))
            shim, _, asked = self.start("--mcp-config", path)
            self.assertEqual(asked["mcp_servers"], [])
            self.assertIn("servers.json: longer than 1 MiB", shim.err.line().decode())
            os.unlink(path)
            os.mkfifo(path)
            for path in (path, place, "/dev/null"):
                self.assertEqual(self.start("--mcp-config", path)[2]["mcp_servers"], [])

    def test_named_and_kept_sessions_do_not_end_with_the_shim(self):
        named = self.start(PLENUM_SESSION="work")[2]
        self.assertEqual((named["session"], named["ephemeral"]), ("work", False))
        self.assertNotIn("deny_asks", named)
        kept = self.start(PLENUM_KEEP="1")[2]
        self.assertNotIn("session", kept)
        self.assertFalse(kept["ephemeral"])

    def test_options_without_effect_are_named(self):
        shim, peer, _ = self.start("--model=x", PLENUM_SESSION="work", answer={
            "session": "work", "ignored": ["--model=x"], "ignored_why": "the CLI of the session was started before"})
        self.assertIn("session work: without effect: --model=x (the CLI of the session was started before)",
                      shim.err.line().decode())
        peer.close()

    def test_nothing_of_stdin_passes_before_the_answer(self):
        shim = self.place.shim()
        shim.write({"type": "user", "n": 1})
        peer = self.place.accept()
        line = peer.read()
        self.assertTrue(peer.quiet(0.2))
        peer.answer(line, {"session": "s"})
        self.assertEqual(peer.read()["n"], 1)

    def test_a_conversation_that_is_soon_free_is_waited_for(self):
        shim = self.place.shim("--resume=abc")
        peer = self.place.accept()
        for _ in range(2):
            peer.answer(peer.read(), code="conversation_in_use", error="it is in use", ending=True)
        peer.attach()
        peer.send({"type": "assistant"})
        self.assertEqual(shim.read()["type"], "assistant")

    def test_a_conversation_in_use_is_the_exit(self):
        shim = self.place.shim("--resume=abc")
        peer = self.place.accept()
        peer.answer(peer.read(), code="conversation_in_use", error="it is in use")
        code, out, err = shim.end()
        self.assertEqual((code, out), (1, b""))
        self.assertIn("it is in use\n", err)

    def test_a_refusal_is_the_exit(self):
        shim = self.place.shim()
        peer = self.place.accept()
        peer.answer(peer.read(), code="spawn_failed", error="cannot run /no/such: No such file")
        code, out, err = shim.end()
        self.assertEqual((code, out), (1, b""))
        self.assertIn("cannot run /no/such: No such file\n", err)

    def test_no_daemon(self):
        self.place.stop_listening()
        code, out, err = self.place.shim().end()
        self.assertEqual((code, out), (69, b""))
        self.assertIn(self.place.path, err)
        self.assertIn("systemctl --user start", err)


class Descriptors(Case):
    """Of this program, named in its command line: the agent has none of them."""

    CONFIG = '{"mcpServers":{"a":{"type":"sdk","name":"a"}}}'

    def pipe(self, content):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        with open(writer, "w") as f:
            f.write(content)
        return reader

    def asked(self, fd, *args):
        self.place.shim(*args, pass_fds=[fd])
        return self.place.accept().attach()

    def test_the_content_takes_the_place(self):
        for flag, instead in (("--mcp-config", "--mcp-config"), ("--settings", "--settings"), ("--agents", "--agents"),
                              ("--system-prompt-file", "--system-prompt"),
                              ("--append-system-prompt-file", "--append-system-prompt")):
            for folder in ("/dev/fd", "/proc/self/fd"):
                with self.subTest(flag=flag, folder=folder):
                    fd = self.pipe(self.CONFIG + "\n")
                    self.assertEqual(self.asked(fd, flag, "%s/%d" % (folder, fd), "--model=x")["argv"],
                                     STREAM + [instead, self.CONFIG, "--model=x"])
                    fd = self.pipe(self.CONFIG + "\n")
                    self.assertEqual(self.asked(fd, "%s=%s/%d" % (flag, folder, fd))["argv"],
                                     STREAM + ["%s=%s" % (instead, self.CONFIG)])

    def test_a_second_value_and_its_servers(self):
        fd = self.pipe(self.CONFIG)
        asked = self.asked(fd, "--mcp-config", "{}", "/dev/fd/%d" % fd)
        self.assertEqual(asked["argv"], STREAM + ["--mcp-config", "{}", self.CONFIG])
        self.assertEqual(asked["mcp_servers"], ["a"])

    def test_the_path_of_a_file(self):
        for flag, path in (("--mcp-config", __file__), ("--add-dir", self.place.dir)):
            fd = os.open(path, os.O_RDONLY)
            self.addCleanup(os.close, fd)
            self.assertEqual(self.asked(fd, flag, "/dev/fd/%d" % fd)["argv"], STREAM + [flag, os.path.abspath(path)])

    def test_texts_and_standard_streams_stay(self):
        fd = self.pipe("x")
        words = ["--system-prompt", "/dev/fd/%d" % fd, "--debug-file", "/dev/fd/2", "--mcp-config", "/dev/stdin",
                 "--", "--mcp-config", "/dev/fd/%d" % fd]
        self.assertEqual(self.asked(fd, *words)["argv"], STREAM + words)

    def refused(self, fd, flag, cause):
        code, out, err = self.place.shim(flag, "/dev/fd/%d" % fd, pass_fds=[fd] if fd < 200 else []).end()
        self.assertEqual((code, out), (1, b""))
        self.assertIn("%s /dev/fd/%d: %s" % (flag, fd, cause), err)

    def test_a_refusal_before_anything_starts(self):
        self.place.stop_listening()
        self.refused(self.pipe("x"), "--debug-file", "it is no file on disk")
        self.refused(200, "--settings", "Bad file descriptor")
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)

        def write():
            with open(writer, "w") as f:
                f.write("x" * 200000)

        writing = threading.Thread(target=write)
        writing.start()
        self.refused(reader, "--mcp-config", "it has more than 120 KiB")
        writing.join()


class Frames(Case):
    def shown(self, lines, *args, typed=(), **env):
        shim, peer, _ = self.start(*args, **env)
        shim.write(*typed)
        for _ in typed:
            peer.read()
        sender = threading.Thread(target=lambda: (peer.send(*lines), peer.exited()))
        sender.start()
        code, out, err = shim.end()
        sender.join()
        self.assertEqual((code, err), (0, ""))
        return out.splitlines()

    STATE = b'{"type":"system","subtype":"session_state_changed","state":"idle","uuid":"u"}'
    DELTA = b'{"type":"stream_event","event":{}}'
    MIRROR = b'{"type":"transcript_mirror","filePath":"x","entries":[]}'
    BUSY = b'{"type":"system","subtype":"status","status":"requesting","uuid":"u"}'
    MODE = b'{"type":"system","subtype":"status","status":null,"permissionMode":"plan"}'
    LIFE = b'{"type":"command_lifecycle","command_uuid":"c","state":"queued"}'
    EVENT = b'{"type":"system","subtype":"plenum_event","event":"attached"}'
    RESULT = b'{"duration_ms":1,"is_error":false,"result":"{\\"type\\":\\"stream_event\\"}","type":"result"}'
    ALL = [STATE, DELTA, MIRROR, BUSY, MODE, LIFE, EVENT, RESULT]

    def test_what_was_not_asked_for_is_left_out(self):
        self.assertEqual(self.shown([l + b"\n" for l in self.ALL]), [self.MODE, self.RESULT])

    def test_what_was_asked_for_comes(self):
        shown = self.shown([l + b"\n" for l in self.ALL], "--include-partial-messages", "--session-mirror",
                           typed=[{"type": "user", "message": {"role": "user"}, "uuid": "c"}],
                           CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS="1")
        self.assertEqual(shown, [l for l in self.ALL if l != self.EVENT])

    def test_state_events_for_the_sdk_alone_carry_its_mark(self):
        marked = self.STATE[:-1] + b',"sdk_host_only":true}'
        self.assertEqual(self.shown([self.STATE + b"\n", marked + b"\n"], CLAUDE_CODE_SDK_READS_SESSION_STATE="1"),
                         [marked, marked])

    UUIDS = b'"user_message_uuid":"c","user_message_uuids":["c"]'

    def test_what_the_daemons_uuids_bring_is_left_out(self):
        lines = [b'{%s,"type":"assistant","message":{"user_message_uuid":1,"x":"}"}}' % self.UUIDS,
                 b'{"type":"system","subtype":"init",%s,"a":[1, 2]}' % self.UUIDS,
                 b'{"first_request_input_tokens":10,"is_error":false,"type":"result","begun_message_ids":["m"]}',
                 b'{"type":"user",%s}' % self.UUIDS]
        self.assertEqual(self.shown([l + b"\n" for l in lines]),
                         [b'{"type":"assistant","message":{"user_message_uuid":1,"x":"}"}}',
                          b'{"type":"system","subtype":"init","a":[1, 2]}', b'{"is_error":false,"type":"result"}', lines[3]])
        asked = self.shown([l + b"\n" for l in lines], "--include-partial-messages",
                           typed=[{"type": "user", "message": {"role": "user"}, "uuid": "c"}])
        self.assertEqual(asked, lines)

    def test_lines_in_pieces_stay_whole(self):
        shim, peer, _ = self.start()
        for byte in b"".join(l + b"\n" for l in self.ALL):
            peer.send(bytes([byte]))
        peer.exited()
        self.assertEqual(shim.end()[1].splitlines(), [self.MODE, self.RESULT])

    def test_odd_lines_pass_as_they_are(self):
        odd = [b"", b"[1]", b"not json", b'{"n":1e999,"s":"\\ud800\\u0000"}', b'{"a":{"type":"stream_event"},"type":"x"}',
               b'{"type" : "assistant" , "z" : [ "]}" , "\\"" ] }', b'{"text":"' + b"\\\\" * 600000 + b'","type":"assistant"}',
               b'{"text":"' + b"y" * 1500000 + b'","type":"stream_event"}']
        self.assertEqual(self.shown([l + b"\n" for l in odd]), odd)

    def test_answers_of_the_sdk_pass_and_ours_do_not(self):
        shim, peer, _ = self.start()
        shim.write({"type": "control_request", "request_id": "r", "request": {"subtype": "initialize"}})
        peer.answer(peer.read(), {"commands": []})
        self.assertEqual(shim.read()["response"]["request_id"], "r")


class Print(Case):
    """claude -p with a prompt, in the session that PLENUM_SESSION names."""

    RESULT = b'{"is_error":false,"result":"a \\u00e9\\nb","type":"result"}'

    def play(self, *args, given="", results=(RESULT,), code=0):
        shim = self.place.shim(*args, stream=False, PLENUM_SESSION="work")
        shim.write(given.encode())
        shim.eof()
        peer = self.place.accept()
        asked = peer.attach(session="work")
        prompt = peer.read()
        self.assertEqual(peer.rest(), b"")
        peer.send({"type": "assistant"}, *(result + b"\n" for result in results))
        peer.close()
        end, out, err = shim.end()
        self.assertEqual((end, err), (code, ""))
        return asked, prompt["message"]["content"], out

    def test_the_result_as_text(self):
        asked, prompt, out = self.play("-p", "--model", "x", "hello", "--output-format", "text")
        self.assertEqual((asked["session"], asked["argv"], asked["approve"]), ("work", ["-p", "--model", "x"], False))
        self.assertEqual((prompt, out), ("hello", "a \u00e9\nb\n".encode()))

    def test_prompts(self):
        for args, given, expected in ((["-p", "one", "two"], "", "one"), (["-p"], "typed\n", "typed\n"),
                                      (["-p", "one"], "typed", "one\ntyped"), (["-p", "--", "--odd"], "", "--odd"),
                                      (["-p", "--add-dir", "a", "b", "--verbose", "c"], "", "c")):
            self.assertEqual(self.play(*args, given=given)[1], expected)

    def test_the_result_as_json(self):
        self.assertEqual(self.play("--print", "x", "--output-format=json")[2], self.RESULT + b"\n")

    def test_all_lines(self):
        self.assertEqual(self.play("-p", "x", "--output-format", "stream-json", "--verbose")[2].splitlines(),
                         [b'{"type": "assistant"}'.replace(b" ", b""), self.RESULT])

    def test_the_newest_result_counts(self):
        other = b'{"is_error":false,"result":"of the turn before","type":"result"}'
        failed = b'{"is_error":true,"result":"no","type":"result"}'
        self.assertEqual(self.play("-p", "x", results=(other, failed), code=1)[2], b"no\n")
        aborted = b'{"is_error":true,"subtype":"error_during_execution","type":"result"}'
        self.assertEqual(self.play("-p", "x", results=(other, aborted), code=1)[2], b"")

    def test_no_prompt(self):
        shim = self.place.shim("-p", stream=False, PLENUM_SESSION="work")
        shim.eof()
        code, out, err = shim.end()
        self.assertEqual((code, out), (1, b""))
        self.assertIn("Input must be provided", err)

    def test_a_full_disk(self):
        argv = ["/bin/sh", "-c", 'exec "$@" >/dev/full', "sh", SHIM, "-p", "x"]
        shim = Shim(argv, self.place.env(PLENUM_SESSION="work"))
        self.addCleanup(shim.destroy)
        shim.eof()
        peer = self.place.accept()
        peer.attach()
        peer.rest()
        peer.send(self.RESULT + b"\n")
        peer.close()
        code, _, err = shim.end()
        self.assertEqual(code, 1)
        self.assertIn("standard output: No space left on device", err)


class Flow(Case):
    BIG = b'{"type":"user","message":{"role":"user","content":"' + b"x" * (64 * 1024 * 1024 - 100) + b'"}}\n'

    def peak(self, shim):
        with open("/proc/%d/status" % shim.process.pid) as f:
            return int([l for l in f if l.startswith("VmHWM")][0].split()[1])

    def test_a_huge_line_from_the_agent(self):
        shim, peer, _ = self.start()
        pid = os.fork()
        if pid == 0:
            peer.send(self.BIG, b'{"type":"result","is_error":false}\n')
            os._exit(0)
        self.assertEqual(len(shim.out.line()) + 1, len(self.BIG))
        self.assertEqual(shim.read()["type"], "result")
        self.assertLess(self.peak(shim), 16 * 1024)  # the address sanitizer takes some, too
        os.waitpid(pid, 0)

    def test_a_huge_line_from_the_sdk(self):
        shim, peer, _ = self.start()
        pid = os.fork()
        if pid == 0:
            shim.write(self.BIG)
            os._exit(0)
        self.assertEqual(len(peer.line()) + 1, len(self.BIG))
        self.assertLess(self.peak(shim), 16 * 1024)  # the address sanitizer takes some, too
        os.waitpid(pid, 0)

    def test_input_passes_while_stdout_is_not_read(self):
        shim, peer, _ = self.start()
        peer.sock.setblocking(False)
        try:
            while True:
                peer.sock.send(b'{"type":"assistant","x":"%s"}\n' % (b"y" * 3000))
        except BlockingIOError:
            peer.sock.setblocking(True)
        shim.write({"type": "control_request", "request_id": "i", "request": {"subtype": "interrupt"}})
        self.assertEqual(peer.read()["request_id"], "i")

    def test_a_last_line_without_lf_and_the_half_close(self):
        shim, peer, _ = self.start()
        shim.write(b'{"type":"user","a":1}\n{"type":"user","a":2}')
        shim.eof()
        self.assertEqual(peer.rest(), b'{"type":"user","a":1}\n{"type":"user","a":2}')
        peer.send({"type": "result", "is_error": False})
        self.assertEqual(shim.read()["type"], "result")
        peer.exited()
        self.assertEqual(shim.end()[0], 0)

    def test_stdout_that_nobody_reads_any_more(self):
        shim, peer, _ = self.start()
        shim.process.stdout.close()
        peer.send(*[{"type": "assistant"}] * 100)
        shim.write({"type": "user", "n": 1})
        self.assertEqual(peer.read()["n"], 1)
        peer.exited(status=3)
        self.assertEqual(shim.process.wait(DEADLINE), 3)

    def test_a_full_disk_under_stdout(self):
        """The session runs on, as with the CLI; the status says that output is lost."""
        argv = ["/bin/sh", "-c", 'exec "$@" >/dev/full', "sh", SHIM, *STREAM]
        for status, expected in ((0, 1), (3, 3)):
            shim = Shim(argv, self.place.env())
            self.addCleanup(shim.destroy)
            peer = self.place.accept()
            peer.attach()
            peer.send({"type": "assistant"})
            shim.write({"type": "user", "n": 1})
            self.assertEqual(peer.read()["n"], 1)
            peer.exited(status=status)
            code, _, err = shim.end()
            self.assertEqual(code, expected)
            self.assertIn("standard output: No space left on device", err)

    def test_started_fast(self):
        """In time of the processor: how soon it gets it is the machine's business. Alone it is 2 ms."""
        best = 1.0
        for _ in range(5):
            shim, _, _ = self.start()
            shim.kill(signal.SIGKILL)
            _, status, used = os.wait4(shim.process.pid, 0)
            shim.process.returncode = -os.WTERMSIG(status)
            best = min(best, used.ru_utime + used.ru_stime)
        self.assertLess(best, 0.1)


class Ends(Case):
    def test_the_childs_exit_is_ours(self):
        for status, number, expected in ((0, 0, 0), (1, 0, 1), (7, 0, 7), (0, 9, 137)):
            shim, peer, _ = self.start()
            shim.eof()
            peer.rest()
            peer.exited(status, number)
            self.assertEqual(shim.end()[0], expected)

    def test_stderr_comes_live_and_once(self):
        shim, peer, _ = self.start()
        peer.event("stderr", data="first\nhalf ")
        self.assertEqual(shim.err.line(), b"first")
        peer.event("stderr", data='\u00e9 "q"\n')
        peer.exited(1, stderr=["first", "half"])
        self.assertEqual(shim.end(), (1, b"", 'half \u00e9 "q"\n'))

    def test_last_words_where_none_came_live(self):
        shim, peer, _ = self.start()
        peer.exited(1, stderr=["No conversation found", "bye"], wanted=False)
        self.assertEqual(shim.end(), (1, b"", "No conversation found\nbye\n"))

    def test_a_named_session_ends_by_its_last_result(self):
        for error, expected in ((False, 0), (True, 1)):
            shim, peer, _ = self.start(PLENUM_SESSION="w")
            shim.write({"type": "user", "message": {"role": "user", "content": "x"}})
            shim.eof()
            peer.rest()
            peer.send(b'{"is_error":%s,"x":{"is_error":0},"type":"result"}\n' % (b"true" if error else b"false"))
            peer.close()
            self.assertEqual(shim.end()[0], expected)

    def test_sleep_is_no_end_and_a_crash_is(self):
        shim, peer, _ = self.start(PLENUM_SESSION="w")
        peer.event("child_exited", status=0, signal=0, stderr=[], wanted=True)
        peer.send({"type": "assistant"})
        self.assertEqual(shim.read()["type"], "assistant")
        peer.event("child_exited", status=0, signal=11, stderr=["boom"], wanted=False)
        code, _, err = shim.end()
        self.assertEqual((code, err), (139, "boom\n"))

    def test_a_daemon_that_dies_is_not_success(self):
        for env, eof, sent in (({}, False, []), ({}, True, []), ({"PLENUM_SESSION": "w"}, False, []),
                               ({"PLENUM_SESSION": "w"}, True, [{"type": "user"}])):
            shim, peer, _ = self.start(**env)
            shim.write(*sent)
            if eof:
                shim.eof()
                peer.rest()
            for _ in sent if not eof else []:
                peer.read()
            peer.close()
            code, out, err = shim.end()
            self.assertEqual((code, out), (69, b""))
            self.assertIn("did plenumd die?", err)

    def test_a_daemon_that_is_stopped(self):
        shim, peer, _ = self.start()
        peer.event("shutting_down")
        peer.exited(0)
        code, _, err = shim.end()
        self.assertEqual(code, 69)
        self.assertIn("the daemon was stopped", err)

    def test_a_line_that_the_cli_would_die_of(self):
        shim, peer, _ = self.start()
        shim.write(b"{not json\n")
        peer.line()
        peer.event("error", code="bad_line", error="not JSON at byte 1", line=2)
        code, _, err = shim.end()
        self.assertEqual(code, 1)
        self.assertIn("not JSON at byte 1\n", err)

    def test_sigterm_stops_an_own_session(self):
        shim, peer = self.start_running()
        shim.write(b'{"half":')
        peer.collect(time.monotonic() + DEADLINE, lambda part: part == b'{"half":')
        shim.kill(signal.SIGTERM)
        self.assertEqual(peer.line(), b'{"half":')
        self.assertEqual(peer.read()["request"], {"subtype": "plenum_stop", "how": "graceful"})
        peer.send({"type": "result", "is_error": True})
        peer.event("stderr", data="bye\n")
        peer.exited(0)
        self.assertEqual(shim.end(), (143, b"", "bye\n"))

    def test_sigterm_leaves_a_named_session(self):
        shim, peer = self.start_running(PLENUM_SESSION="w")
        shim.kill(signal.SIGTERM)
        self.assertEqual(shim.end()[0], 143)
        self.assertEqual(peer.rest(), b"")

    def test_sigterm_does_not_wait_for_ever(self):
        shim, peer = self.start_running()
        shim.kill(signal.SIGTERM)
        peer.read()
        shim.kill(signal.SIGTERM)
        self.assertEqual(shim.end()[0], 143)

    def test_sigterm_while_attaching(self):
        shim = self.place.shim()
        self.place.accept().read()
        shim.kill(signal.SIGTERM)
        self.assertEqual(shim.end()[0], 143)

    def test_sigterm_while_nobody_reads(self):
        shim, peer = self.start_running()
        peer.sock.setblocking(False)
        try:
            while True:
                peer.sock.send(b'{"type":"assistant","x":"%s"}\n' % (b"y" * 3000))
        except BlockingIOError:
            pass
        peer.close()
        shim.kill(signal.SIGTERM)
        self.assertEqual(shim.process.wait(DEADLINE), 143)

    def child(self, handler):
        """A process that is up, and treats SIGINT in this way."""
        text = "import signal, time; signal.signal(signal.SIGINT, signal.%s); print(flush=True); time.sleep(600)" % handler
        child = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        child.stdout.readline()
        return child.pid

    def test_a_signal_before_the_agent_is_up(self):
        """It would have ended the CLI at once."""
        shim, peer, _ = self.start(answer={"pid": self.child("SIG_DFL")})
        peer.send({"type": "keep_alive"})
        shim.read()
        shim.kill(signal.SIGINT)
        self.assertEqual(shim.end(), (130, b"", ""))
        self.assertEqual(peer.rest(), b"")
        for handler in ("SIG_IGN", "default_int_handler"):
            shim, peer, _ = self.start(answer={"pid": self.child(handler)})
            peer.send({"type": "keep_alive"})
            shim.read()
            shim.kill(signal.SIGINT)
            self.assertEqual(peer.read()["request"]["subtype"], "plenum_stop")

    def test_sigint_in_a_named_session(self):
        """The input ends after the answer to the interrupt: what it withdraws comes before."""
        shim, peer = self.start_running(PLENUM_SESSION="w")
        shim.kill(signal.SIGINT)
        line = peer.read()
        self.assertEqual(line["request"], {"subtype": "interrupt"})
        peer.send({"type": "control_cancel_request", "request_id": "q"})
        self.assertEqual(shim.read()["request_id"], "q")
        peer.answer(line)
        self.assertEqual(peer.rest(), b"")
        peer.close()
        self.assertEqual(shim.end()[0], 0)

    def test_sigint_ends_the_turn_and_shows_its_end(self):
        """The CLI ends with 0 then, though the turn failed; the end of its input gives the daemon's child another code."""
        for status, want in ((0, 0), (1, 0), (7, 7)):
            shim, peer = self.start_running()
            shim.kill(signal.SIGINT)
            peer.answer(peer.read())
            peer.send({"type": "result", "is_error": True})
            peer.exited(status)
            code, out, _ = shim.end()
            self.assertEqual((code, json.loads(out)["type"]), (want, "result"))


class RealCli(Case):
    def script(self, folder, name, text):
        path = os.path.join(self.place.dir, folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + text)
        os.chmod(path, stat.S_IRWXU)
        return path

    def run_shim(self, *args, **env):
        self.place.stop_listening()
        return self.place.shim(*args, stream=False, **env).end()

    def test_version_is_the_real_clis_own(self):
        cli = self.script("a", "claude", 'echo "2.1.332 (Claude Code) $*"\nexit 4\n')
        for flag in ("-v", "--version"):
            self.assertEqual(self.run_shim(flag, PLENUM_CLAUDE=cli), (4, b"2.1.332 (Claude Code) %s\n" % flag.encode(), ""))

    def test_found_in_path_behind_ourselves(self):
        self.script("b", "claude", "echo real\n")
        os.mkdir(os.path.join(self.place.dir, "a"))
        os.symlink(SHIM, os.path.join(self.place.dir, "a", "claude"))
        path = ":".join(os.path.join(self.place.dir, d) for d in ("a", "b"))
        self.assertEqual(self.run_shim("-v", PATH=path), (0, b"real\n", ""))

    def test_everything_that_is_no_stream_goes_there(self):
        cli = self.script("a", "claude", 'echo "$@"\n')
        for args in (["-p", "hello"], ["mcp", "list"], ["--output-format", "stream-json", "--verbose", "-p", "x"], [],
                     ["--input-format", "stream-json", "-p", "--output-format", "json"], [*STREAM, "--help"],
                     ["mcp", "add", "x", "y", *STREAM], ["auth", "status", *STREAM], [*STREAM, "-v"]):
            self.assertEqual(self.run_shim(*args, PLENUM_CLAUDE=cli)[:2], (0, " ".join(args).encode() + b"\n"))

    def test_a_terminal_goes_there(self):
        """On one the CLI has its screen; it takes lines from none."""
        cli = self.script("a", "claude", '[ -t 0 ] && [ -t 1 ] && echo "on a terminal: $*"; exit 3\n')
        for args in ([], ["--model", "x"], STREAM, ["-p", *STREAM]):
            pid, terminal = pty.fork()
            if pid == 0:
                os.execve(SHIM, [SHIM, *args], self.place.env(PLENUM_CLAUDE=cli))
            out = b""
            try:
                while chunk := os.read(terminal, 4096):
                    out += chunk
            except OSError:  # the end of a terminal
                pass
            os.close(terminal)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 3)
            self.assertEqual(out.strip(), ("on a terminal: " + " ".join(args)).strip().encode())

    def test_none_there(self):
        code, _, err = self.run_shim("-v", PATH=self.place.dir)
        self.assertEqual(code, 127)
        for word in ("PATH", "the daemon's PATH", "~/.local/bin", "~/.claude/local", "PLENUM_CLAUDE"):
            self.assertIn(word, err)

    def test_found_where_the_native_installer_puts_it(self):
        for place in (".local/bin", ".claude/local"):
            cli = self.script("home/" + place, "claude", "echo %s\n" % place)
            self.assertEqual(self.run_shim("-v", PATH=self.place.dir, HOME=self.place.dir + "/home"),
                             (0, place.encode() + b"\n", ""))
            os.unlink(cli)

    def test_a_first_argument_names_it(self):
        """The process-wrapper contract of VS Code and of the CLI. It counts more than PLENUM_CLAUDE, and is not passed on."""
        cli, other = self.script("a", "claude", 'echo "$PLENUM_CLAUDE $@"\n'), self.script("b", "claude", "echo wrong\n")
        self.assertEqual(self.run_shim(cli, "mcp", "list", PLENUM_CLAUDE=other), (0, ("%s mcp list\n" % cli).encode(), ""))

    def test_a_first_argument_that_is_no_program_is_passed_on(self):
        cli = self.script("a", "claude", 'echo "$@"\n')
        for word in (self.place.dir, self.place.dir + "/none", "a/claude"):
            self.assertEqual(self.run_shim(word, PLENUM_CLAUDE=cli)[:2], (0, word.encode() + b"\n"))

    def test_it_refuses_a_format_that_it_does_not_have(self):
        """Also in a named session, whose answer has no such format."""
        cli = self.script("a", "claude", 'echo "invalid: $*" >&2\nexit 1\n')
        for args in (["-p", "x", "--output-format", "yaml"], ["-p", "x", "--output-format="], ["-p", "x", "--input-format", "yaml"],
                     ["-p", "x", "--output-format"]):
            self.assertEqual(self.run_shim(*args, PLENUM_CLAUDE=cli, PLENUM_SESSION="work"),
                             (1, b"", "invalid: %s\n" % " ".join(args)))

    def test_it_refuses_a_flag_without_its_value(self):
        cli = self.script("a", "claude", 'echo "no value: $*" >&2\nexit 1\n')
        for args in ((*STREAM, "--model"), (*STREAM, "--add-dir"), ("-p", "x", "--model")):
            self.assertEqual(self.run_shim(*args, PLENUM_CLAUDE=cli), (1, b"", "no value: %s\n" % " ".join(args)))

    def test_the_cli_behind_a_script_around_ourselves(self):
        self.script("a", "claude", 'exec "%s" "$@"\n' % SHIM)
        self.script("b", "claude", 'echo "real $1"\n')
        path = ":".join(os.path.join(self.place.dir, d) for d in ("a", "b"))
        self.assertEqual(self.run_shim("-v", PATH=path), (0, b"real -v\n", ""))

    def test_a_program_of_the_cli_starts_from_the_first_again(self):
        """What the CLI runs has the environment of the shim that became the CLI."""
        self.script("a", "claude", '[ "$1" = inner ] && echo first || "%s" inner\n' % SHIM)
        self.script("b", "claude", "echo second\n")
        path = ":".join(os.path.join(self.place.dir, d) for d in ("a", "b")) + ":/usr/bin:/bin"
        self.assertEqual(self.run_shim("-v", PATH=path), (0, b"first\n", ""))

    def test_the_cli_behind_a_script_that_waits_for_ourselves(self):
        for text in ('"%s" "$@"; exit $?\n' % SHIM, '"%s" --model x "$@"; exit $?\n' % SHIM):
            self.script("a", "claude", text)
            self.script("b", "claude", 'echo "real $*"\n')
            path = ":".join(os.path.join(self.place.dir, d) for d in ("a", "b"))
            cli = os.path.join(self.place.dir, "a", "claude")
            done = subprocess.run([cli, "mcp"], env=self.place.env(PATH=path), capture_output=True, text=True, timeout=DEADLINE)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith("real ") and done.stdout.endswith(" mcp\n"), done.stdout)

    def test_the_agent_of_a_session_is_the_cli(self):
        """As a child of plenumd, or of its script, which passes its arguments on; another program of an agent is not."""
        cli = self.script("a", "claude", 'echo "real $*"\n')
        script = self.script("b", "claude", '"%s" "$@"; exit $?\n' % SHIM)
        env = self.place.env(PLENUM_CHILD="s", PLENUM_CLAUDE=cli)
        done = subprocess.run([script, *STREAM], env=env, capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual((done.returncode, done.stdout), (0, "real %s\n" % " ".join(STREAM)))
        self.place.shim(PLENUM_CHILD="s", PLENUM_CLAUDE=cli)
        self.place.accept().attach()

    def test_a_script_around_ourselves_is_no_endless_loop(self):
        cli = self.script("a", "claude", 'exec "%s" "$@"\n' % SHIM)
        code, _, err = self.run_shim("-v", PLENUM_CLAUDE=cli)
        self.assertEqual(code, 126)
        self.assertIn("leads back to plenum-shim", err)


class Acp(Case):
    """--acp: the agent of an editor that speaks the Agent Client Protocol."""

    word, profile, head = "--acp", "gemini", {"jsonrpc": "2.0"}

    def start(self, *args, **env):
        shim = self.place.shim(self.word, *args, stream=False, **env)
        peer = self.place.accept()
        return shim, peer, peer.read()

    def start_running(self, **env):
        shim, peer, asked = self.start(**env)
        peer.send({**self.head, "id": asked["id"], "result": {"session": "s1", "pid": 0}})
        return shim, peer

    def event(self, event, **members):
        return {**self.head, "method": "_plenum/event", "params": {"event": event, **{"session": "s1", **members}}}

    def begins(self):
        return b'{"jsonrpc":"2.0",' if self.head else b"{"

    def test_attach(self):
        _, _, asked = self.start("--model", "x", cwd="/", FOO="bar", PLENUM_X="y")
        self.assertEqual(asked.raw[:len(self.begins())], self.begins())
        self.assertEqual((asked.get("jsonrpc"), asked["method"]), (self.head.get("jsonrpc"), "_plenum/attach"))
        params = asked["params"]
        self.assertEqual({k: params[k] for k in ("profile", "args", "cwd", "ephemeral", "raw_init", "env_only", "role")},
                         {"profile": self.profile, "args": ["--model", "x"], "cwd": "/", "ephemeral": True, "raw_init": True,
                          "env_only": True, "role": "driver"})
        self.assertEqual((params["env"]["FOO"], "PLENUM_X" in params["env"]), ("bar", False))
        self.assertFalse({"argv", "mcp_servers", "approve", "deny_asks", "partial", "echo"} & params.keys())
        self.assertEqual(self.start(PLENUM_PROFILE="other", PLENUM_SESSION="s")[2]["params"]["profile"], "other")

    def test_bytes_pass_both_ways(self):
        shim, peer = self.start_running()
        for line in (b'{ "jsonrpc":"2.0", "id":1, "method":"initialize" }\n', b"no json\n"):
            shim.write(line)
            self.assertEqual(peer.line() + b"\n", line)
        for line in (self.begins() + b'"id":"plenum-shim-1","result":{}}', self.begins() + b'"method":"_plenum/other"}',
                     b"x", b"", self.begins() + b'"method":"_plenum/eve'):
            peer.send(line + b"\n")
            self.assertEqual(shim.out.line(), line)

    def test_lines_in_pieces(self):
        shim, peer = self.start_running()
        for line in (self.event("shutting_down"), {**self.head, "method": "session/update", "params": {"a": "b" * 99}}):
            raw = json.dumps(line, separators=(",", ":")).encode() + b"\n"
            for at in range(len(raw)):
                peer.send(raw[at:at + 1])
        self.assertEqual(shim.out.line() + b"\n", raw)

    def test_stderr_and_the_end(self):
        shim, peer = self.start_running()
        peer.send(self.event("stderr", data="a word\n"), self.event("child_exited", status=3, signal=None, stderr=[], wanted=False))
        peer.close()
        self.assertEqual(shim.end(), (3, b"", "a word\n"))

    def test_the_end_of_another_session_of_the_connection(self):
        shim, peer = self.start_running()
        other = {"session": "s2"}
        peer.send(self.event("child_exited", status=3, signal=None, stderr=["its last words"], wanted=False, **other),
                  self.event("error", code="cannot_stop", error="it hangs", **other), b"on\n")
        self.assertEqual(shim.out.line(), b"on")
        peer.send(self.event("child_exited", status=4, signal=None, stderr=[], wanted=False), b"on\n")
        self.assertEqual(shim.out.line(), b"on")  # the daemon closes the connection after the last one
        peer.close()
        self.assertEqual(shim.end(), (4, b"", "its last words\nplenum-shim: it hangs\n"))

    def test_refused(self):
        shim, peer, asked = self.start()
        peer.send({**self.head, "id": asked["id"], "error": {
            "code": -32000, "message": "there is no profile gemini", "data": {"code": "no_such_profile"}}})
        self.assertEqual(shim.end(), (1, b"", "plenum-shim: there is no profile gemini\n"))

    def test_a_signal_ends_the_session(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 0)):
            shim, peer = self.start_running()
            peer.send(b"x\n")
            shim.out.line()  # it runs
            shim.kill(number)
            stop = peer.read()
            self.assertEqual((stop["method"], stop["params"]), ("_plenum/stop", {"how": "graceful"}))
            peer.send({**self.head, "id": stop["id"], "result": {}},
                      self.event("child_exited", status=0, signal=None, stderr=[], wanted=True))
            self.assertEqual(shim.end()[:2], (code, b""))  # other sessions may be on the connection
            peer.close()
            shim, peer = self.start_running()
            peer.send(b"x\n")
            shim.out.line()
            shim.kill(number)
            stop = peer.read()
            peer.send({**self.head, "id": stop["id"], "error": {"code": -32000, "message": "no session", "data": {}}})
            self.assertEqual(shim.end()[:2], (code, b""))


class Codex(Acp):
    """app-server: codex, whose lines have no `jsonrpc`."""

    word, profile, head = "app-server", "codex", {}


if __name__ == "__main__":
    SHIM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
