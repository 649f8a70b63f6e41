# SPDX-License-Identifier: MIT
"""The life of a session: sleep, crashes of the CLI and of the daemon, stopping."""

import contextlib
import datetime
import json
import os
import signal
from pathlib import Path

from harness import Case, alive, bash, command_of, wait_until


def parent_of(pid):
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


class Life(Case):
    def agents(self):
        """Return the CLI processes of this test; not a child of one before its exec, which still has its argv."""
        found = {pid for pid in self.place.leftovers() if command_of(pid).startswith(str(self.cli))}
        return [pid for pid in found if parent_of(pid) not in found | {0}]  # 0: it has ended meanwhile

    def remember(self, client, what):
        result = client.turn(f"remember {what}")
        self.wait_written(result["session_id"], f"echo: remember {what}")
        return result["session_id"]

    def test_sleep_and_wake(self):
        client = self.client("work")
        conversation = self.remember(client, "quince")
        pid = self.state("work")["pid"]
        client.ask("plenum_hibernate", session="work")
        self.wait_state("work", "asleep")
        wait_until("the child is gone", lambda: not alive(pid))
        result = client.turn("@history@")
        self.assertIn("quince", result["result"])
        self.assertEqual(result["session_id"], conversation)
        self.assertNotEqual(self.state("work")["pid"], pid)

    def test_the_facts_of_a_turn(self):
        """Time, tokens and the cost of this turn alone, though the CLI reports the sum of its turns; the outcome."""
        client = self.client("work")
        sums, costs = [], []

        def turn(text):
            since = len(client.lines)
            result = client.turn(text)
            ended = client.wait_event("turn_ended", since=since)
            usage = result["usage"]
            self.assertEqual((ended["ms"], ended["tokens"]["input"], ended["tokens"]["output"]),
                             (result["duration_ms"], usage["input_tokens"], usage["output_tokens"]))
            sums.append(result["total_cost_usd"])
            costs.append(ended["cost_usd"])
            return ended

        for text in ("hello", "hello again"):
            self.assertEqual(turn(text)["outcome"], "success")
        self.assertGreater(sums[0], 0)
        self.wait_written(self.state("work")["conversation_id"], "echo: hello again")
        client.ask("plenum_hibernate", session="work")
        self.wait_state("work", "asleep")
        turn("hello")
        self.assertEqual(sums[2] > sums[1], self.cli_version != "2.1.197")  # the old one counts anew after a resume
        for cost in costs:
            self.assertAlmostEqual(cost, sums[0], 8)
        since = len(client.lines)
        client.prompt("@slow 60000@ hello")
        client.wait("the turn runs", lambda l: l.get("type") == "system" and l.get("subtype") == "init", since=since)
        client.ask("interrupt")
        self.assertEqual(client.wait_event("turn_ended", since=since)["outcome"], "interrupted")

    def test_wake_at_attach(self):
        client = self.client("work")
        self.remember(client, "quince")
        client.ask("plenum_hibernate", session="work")
        self.wait_state("work", "asleep")
        other = self.client("work", wake=True)
        wait_until("the child is back", lambda: self.state("work").get("pid"))
        self.assertIn("quince", other.turn("@history@")["result"])

    def test_the_cli_is_killed_when_idle(self):
        one, two = self.client("work"), self.client("work")
        self.remember(one, "quince")
        os.kill(self.state("work")["pid"], signal.SIGKILL)
        for client in (one, two):
            exited = client.wait_event("child_exited")
            self.assertEqual((exited["signal"], exited["wanted"]), (signal.SIGKILL, False))
        self.assertIn("quince", two.turn("@history@")["result"])

    def test_the_cli_is_killed_in_mid_turn(self):
        client = self.client("work")
        self.remember(client, "quince")
        client.prompt("@slow 500@ @pieces 200@ @long 2000@")
        client.wait("the turn runs", lambda l: l.get("type") == "stream_event" and "xx" in str(l["event"]))
        client.send({"type": "control_request", "request_id": "open", "request": {"subtype": "mcp_status"}})
        os.kill(self.state("work")["pid"], signal.SIGKILL)
        client.wait("the open request is answered", lambda l: l.get("type") == "control_response"
                    and l["response"]["request_id"] == "open")
        client.wait_event("child_exited")
        self.assertIn("quince", client.turn("@history@")["result"])

    def test_the_daemon_is_killed(self):
        client = self.client("work")
        conversation = self.remember(client, "quince")
        self.assertEqual(len(self.agents()), 1)
        self.daemon.kill()
        client.wait_end()
        wait_until("no CLI is left of a killed daemon", lambda: not self.agents())
        self.daemon.start()
        after = self.client()
        listed = {entry["session"]: entry for entry in after.ask("plenum_list")["sessions"]}
        self.assertEqual((listed["work"]["state"], listed["work"]["conversation_id"]), ("asleep", conversation))
        again = self.client("work")
        self.assertFalse(again.attached["created"])
        self.assertIn("quince", again.turn("@history@")["result"])

    def test_a_prompt_is_sent_again_after_the_daemon_was_killed(self):
        client = self.client("work")
        uuid = client.prompt("the marker is quince")
        result = client.wait_result(uuid)
        self.wait_written(result["session_id"], "echo: the marker is quince")
        self.daemon.kill()
        self.daemon.start()
        again = self.client("work")
        again.prompt("the marker is quince", uuid)
        self.assertEqual(again.wait_event("error")["code"], "duplicate_request")
        wait_until("the session is idle", lambda: self.state("work")["state"] == "idle")
        self.assertEqual(again.turn("@history@")["result"].count("quince"), 1)

    def test_the_daemon_stops_and_starts(self):
        client = self.client("work")
        self.remember(client, "quince")
        self.assertEqual(self.daemon.stop(), 0)
        client.wait_event("shutting_down")
        self.assertEqual(self.agents(), [])
        self.assertFalse(os.path.exists(self.daemon.socket))
        self.daemon.start()
        self.assertIn("quince", self.client("work").turn("@history@")["result"])

    def test_stop_leaves_no_process_behind(self):
        client = self.client("work")
        client.allow_everything()
        client.prompt(bash("tail -f /dev/null"))
        sleepers = wait_until("the tool runs", lambda: [pid for pid in self.place.leftovers()
                                                        if command_of(pid) == "tail -f /dev/null"])
        client.ask("plenum_stop", session="work", how="kill")
        wait_until("the CLI and its tool are gone", lambda: not any(map(alive, sleepers)) and not self.agents())

    def test_a_graceful_stop_in_mid_turn(self):
        client = self.client("work")
        client.allow_everything()
        client.prompt(bash("tail -f /dev/null"))
        sleepers = wait_until("the tool runs", lambda: [pid for pid in self.place.leftovers()
                                                        if command_of(pid) == "tail -f /dev/null"])
        client.ask("plenum_stop", session="work", how="graceful", forget=True)
        wait_until("the CLI and its tool are gone", lambda: not any(map(alive, sleepers)) and not self.agents())
        wait_until("it is forgotten", lambda: not self.client().ask("plenum_list")["sessions"])

    def test_a_detached_service_outlives_sleep(self):
        """A service started by the agent: sleep leaves it running, like the CLI, and a stop ends it."""
        client = self.client("work")
        client.allow_everything()
        client.turn(bash("setsid nohup tail -f /dev/null >/dev/null 2>&1 </dev/null &"))
        [service] = wait_until("the service runs", lambda: [pid for pid in self.place.leftovers()
                                                            if command_of(pid) == "tail -f /dev/null"])
        wait_until("it is listed", lambda: [p["pid"] for p in self.state("work")["leftovers"]] == [service])
        client.ask("plenum_hibernate", session="work")
        kept = client.wait_event("leftovers", action="kept")
        self.assertEqual(kept["processes"], [{"pid": service, "program": "tail"}])
        self.wait_state("work", "asleep")
        self.assertTrue(alive(service))
        client.turn("hello")
        client.ask("plenum_stop", session="work")
        client.wait_event("leftovers", action="ending")
        wait_until("the service has ended", lambda: not alive(service))

    def test_an_armed_timer_is_known(self):
        """Also with the next CLI, which arms it again."""
        client = self.client("work")
        client.allow_everything()
        far = datetime.datetime.now() + datetime.timedelta(days=180)  # neither goes off during the test
        for more in ({"prompt": "look again"}, {"prompt": "once", "recurring": False}):
            client.turn(f"@tool CronCreate {json.dumps({'cron': far.strftime('%-M %-H %-d %-m *'), **more})}@")
        armed = self.state("work")["timers"]
        self.assertEqual([(t["prompt"], t["recurring"]) for t in armed], [("look again", True), ("once", False)])
        self.assertIn("would_lose", client.request("plenum_hibernate", session="work"))
        result = client.turn("hello")
        self.wait_written(result["session_id"], "echo: hello")
        client.ask("plenum_hibernate", session="work", force=True)
        self.wait_state("work", "asleep")
        client.turn("@tool CronList {}@")
        self.assertEqual({t["id"] for t in self.state("work")["timers"]}, {t["id"] for t in armed})
        client.turn('@tool CronDelete {"id":%s}@' % json.dumps(armed[0]["id"]))
        self.assertEqual([t["id"] for t in self.state("work")["timers"]], [armed[1]["id"]])

    def test_a_client_that_leaves_takes_nothing_with_it(self):
        first = self.client("work")
        first.turn("hello")
        pid = self.state("work")["pid"]
        first.close()
        second = self.client("work")
        self.assertEqual(second.turn("hello again")["result"], "echo: hello again")
        self.assertEqual(self.state("work")["pid"], pid)

    def test_one_conversation_one_child(self):
        client = self.client("work")
        conversation = self.remember(client, "quince")
        self.client().refused("plenum_attach", "conversation_in_use", session="other", create="new",
                              resume=conversation)
        self.assertEqual(self.client(conversation).attached["session"], "work")
        self.assertEqual(len(self.agents()), 1)

    def test_a_conversation_that_is_not_there(self):
        client = self.client()
        client.request("plenum_attach", session="lost", cwd=str(self.work), resume="00000000-0000-4000-8000-000000000000")
        client.prompt("hello")
        self.assertIn("No conversation found", str(client.wait_event("child_exited")["stderr"]))
        self.assertEqual(self.client("work").turn("others go on")["result"], "echo: others go on")


class SecondWriter(Case):
    """A second child that resumes the conversation by a title, or as the newest, is ended before it writes there."""

    def test_by_what_only_the_cli_can_name(self):
        first = self.client("work", args=["--name", "My Title"])
        conversation = first.turn("remember quince")["session_id"]
        self.wait_written(conversation, "echo: remember quince")
        for number, words in enumerate((["--resume", "my title"], ["--continue"], ["-pr", "My Title"])):
            second = self.client(f"second{number}", args=words)
            uuid = second.prompt("secret medlar")
            self.assertEqual(second.wait_event("error", code="child_exited")["uuid"], uuid, words)
            self.assertIn("it is that of session", second.wait_event("child_exited")["reason"])
        self.assertEqual(first.turn("on")["session_id"], conversation)
        self.wait_written(conversation, "echo: on")
        written = "".join(path.read_text(errors="replace") for path in self.place.home.rglob("*.jsonl"))
        self.assertNotIn("medlar", written)
        self.client().refused("plenum_attach", "conversation_in_use", session="third", args=["-pr", conversation])

    def test_a_conversation_that_nobody_has(self):
        first = self.client("work", args=["--name", "My Title"])
        conversation = first.turn("remember quince")["session_id"]
        self.wait_written(conversation, "echo: remember quince")
        first.ask("plenum_stop", session="work", how="graceful", forget=True)
        wait_until("it is forgotten", lambda: not self.client().ask("plenum_list")["sessions"])
        second = self.client("again", args=["--continue"])
        result = second.turn("@history@")
        self.assertEqual(result["session_id"], conversation)
        self.assertIn("quince", result["result"])
        asked = ("background_tasks_changed", "commands_changed")
        self.assertEqual(second.seen(lambda line: line.get("subtype") in asked), [])


class ChosenId(Case):
    profile = ("session_id_args = --session-id={id}",)

    def test_the_conversation_has_the_chosen_id_and_is_resumed(self):
        client = self.client("work")
        words = command_of(client.attached["pid"]).split()
        chosen = next(word for word in words if word.startswith("--session-id=")).partition("=")[2]
        self.assertEqual(client.turn("remember quince")["session_id"], chosen)
        self.wait_written(chosen, "echo: remember quince")
        client.ask("plenum_hibernate", session="work")
        self.wait_state("work", "asleep")
        result = client.turn("@history@")
        self.assertIn("quince", result["result"])
        self.assertEqual(result["session_id"], chosen)
