# SPDX-License-Identifier: MIT
"""Overload: clients that do not read, crowds of prompts, input that ends early, an upgrade."""

import json
import os
import signal
import socket
import subprocess

from harness import DEADLINE, Case, allow, bash, is_event, wait_until


class Lag(Case):
    profile = ("[limits]", "tape_bytes = 1M", "lag_wait = 5min")

    def attach_stalled(self, on_lag):
        """A socket that is never read."""
        sock = socket.socket(socket.AF_UNIX)
        self.addCleanup(sock.close)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(self.daemon.socket)
        attach = {"subtype": "plenum_attach", "session": "work", "tag": True, "on_lag": on_lag, "name": on_lag}
        sock.sendall(json.dumps({"type": "control_request", "request_id": "1", "request": attach}).encode() + b"\n")
        return sock

    def lines(self, sock, last):
        """Return all lines up to the one matched by `last`, or to the end."""
        lines = []
        sock.settimeout(DEADLINE)
        with sock.makefile("rb") as stream:
            for raw in stream:
                lines.append(json.loads(raw))
                if last(lines[-1]):
                    break
        return lines

    def test_who_does_not_read(self):
        """It has a gap, or is closed, or is waited for; the turn and its reader lose nothing."""
        client = self.client("work", on_lag="wait")  # two threads of one program read: either may be the slower one
        client.turn("hello")
        stalled = {on_lag: self.attach_stalled(on_lag) for on_lag in ("gap", "close", "wait")}
        wait_until("all are attached", lambda: self.state("work")["attachments"] == 4)
        since = client.mark()
        uuid = client.prompt("@pieces 1000@ @long 2000000@")
        wait_until("the log names who holds the child up",
                   lambda: f"held up for a client that does not read session=work uid={os.getuid()} pid={os.getpid()}"
                   in self.daemon.log.read_text())
        self.assertFalse(client.seen(lambda l: l.get("type") == "result", since))
        is_result = {"type": "result"}.items()
        lines = self.lines(stalled["wait"], lambda l: l.items() >= is_result and len(l["result"]) == 2_000_000)
        numbers = [line["plenum_seq"] for line in lines if "plenum_seq" in line]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
        self.assertEqual(len(client.wait_result(uuid)["result"]), 2_000_000)
        self.assertFalse(client.seen(lambda l: is_event(l, "gap")))
        gap = self.lines(stalled["gap"], lambda l: l.items() >= is_result)
        self.assertTrue([line for line in gap if is_event(line, "gap")])
        self.assertEqual(gap[-1]["type"], "result")
        self.assertTrue(is_event(self.lines(stalled["close"], lambda l: False)[-1], "gap"))
        self.assertEqual(client.turn("again")["result"], "echo: again")


class Crowd(Case):
    def test_prompts_that_wait(self):
        """A hundred are merged into one turn, of which 2.1.332 names 64; one is cancelled."""
        one, two = self.client("work", name="one"), self.client("work", name="two")
        one.turn("hello")
        since = one.mark()
        one.prompt(f"@until {self.work}/said@")
        one.wait("the turn runs", lambda l: l.get("type") == "stream_event", since)
        uuids = [client.prompt(f"number-{i}-") for i in range(50) for client in (one, two)]
        one.prompt("number-0-", uuids[0])
        self.assertEqual(one.wait_event("error", since)["code"], "duplicate_request")
        one.refused("cancel_async_message", "not_allowed", message_uuid=uuids[1])
        self.assertTrue(one.ask("cancel_async_message", message_uuid=uuids[20])["cancelled"])
        self.assertEqual(two.wait_event("changed", what="prompt_cancelled")["value"], uuids[20])
        (self.work / "said").touch()
        ended = set()
        wait_until("all have ended", lambda: ended.update(*(line["uuids"] for line in two.seen(
            lambda l: is_event(l, "turn_ended")))) or set(uuids) - ended <= {uuids[20]})
        self.assertNotIn(uuids[20], ended)
        self.wait_state("work", "idle")
        history = one.turn("@history@")["result"]
        self.assertEqual([history.count(f"number-{i}-") for i in range(50)], [2] * 10 + [1] + [2] * 39)
        self.assertEqual(len(one.seen(lambda l: is_event(l, "error"))), 1)
        self.assertFalse(two.seen(lambda l: is_event(l, "error")))

    def test_input_that_ends(self):
        """nc -N: the answer still comes, after lines of other clients, and then the end."""
        other = self.client("work")
        line = json.dumps({"type": "user", "session_id": "work", "message": {"role": "user", "content": bash("touch made")}})
        done = subprocess.Popen(["nc", "-N", "-U", self.daemon.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(done.stdout.close)
        done.stdin.write(line.encode())  # without its newline
        done.stdin.close()
        asked = other.wait_request("can_use_tool")
        other.answer(asked, allow(asked))
        results = [line for line in map(json.loads, done.stdout) if line.get("type") == "result"]
        self.assertEqual(done.wait(), 0)
        self.assertIn("tools done", results[-1]["result"])


class Kept(Case):
    def test_an_upgrade_with_everything_open(self):
        client = self.client("work", tag=True)
        guard = self.client("work", name="guard", approve=False)
        hooks = []
        guard.handlers["hook_callback"] = lambda line: hooks.append(line)
        guard.ask("initialize", hooks={"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["guard"]}]})
        client.turn("remember quince")
        pid = self.state("work")["pid"]
        client.prompt(bash("touch made"))

        def upgrade():
            count = self.daemon.log.read_text().count("upgraded:")
            os.kill(self.daemon.process.pid, signal.SIGUSR2)
            wait_until("the upgrade", lambda: self.daemon.log.read_text().count("upgraded:") > count)

        wait_until("the hook is asked", lambda: hooks)
        upgrade()
        since = client.mark()
        guard.answer(hooks[0], {})
        asked = client.wait_request("can_use_tool")
        upgrade()
        client.answer(asked, allow(asked))
        self.assertIn("tools done", client.wait_result(since=since)["result"])
        self.assertTrue((self.work / "made").exists())
        self.assertIn("quince", client.turn("@history@")["result"])
        self.assertEqual(self.state("work")["pid"], pid)
        numbers = [line["plenum_seq"] for line in client.lines if "plenum_seq" in line]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))

    def test_who_was_only_to_plan_plans_on(self):
        client = self.client("work")
        client.ask("set_permission_mode", mode="plan")
        self.wait_written(client.turn("remember quince")["session_id"], "echo: remember quince")
        client.ask("plenum_hibernate", session="work")
        self.wait_state("work", "asleep")
        since = client.mark()
        client.turn("go on")
        init = client.wait("init", lambda l: l.get("subtype") == "init", since)
        self.assertEqual(init["permissionMode"], "plan")

    def test_a_background_task_keeps_it_awake(self):
        client = self.client("work")
        client.allow_everything()
        client.turn('@tool Bash {"command":"tail -f /dev/null","run_in_background":true}@')
        wait_until("the task is told", lambda: self.client("work").attached["background_tasks"])
        self.wait_state("work", "idle")
        client.refused("plenum_hibernate", "busy", session="work")
        client.ask("plenum_stop", session="work", how="kill")
        self.wait_state("work", "asleep")
