# SPDX-License-Identifier: MIT
"""A session with an armed timer of its child does not sleep by itself; a client that puts it to sleep is notified of
the consequences."""
import subprocess
import unittest

from harness import RESULT, Case, build_file, request, user

INIT = {"type": "system", "subtype": "init", "session_id": "conv-1"}
TASK = {"task_id": "t1", "task_type": "local_bash", "description": "make all"}


def tool(name, given, result, number=1):
    """The two lines of one call, as printed by CLI 2.1.332."""
    call = {"type": "tool_use", "id": "toolu_%d" % number, "name": name, "input": given}
    back = {"tool_use_id": "toolu_%d" % number, "type": "tool_result", "content": "done"}
    return ({"type": "assistant", "message": {"role": "assistant", "content": [call]}, "session_id": "conv-1"},
            {"type": "user", "message": {"role": "user", "content": [back]}, "tool_use_result": result, "session_id": "conv-1"})


CREATE = tool("CronCreate", {"cron": "*/7 * * * *", "prompt": "look at the build"},
              {"id": "be0f6932", "humanSchedule": "Every 7 minutes", "recurring": True, "durable": False})
DELETE = tool("CronDelete", {"id": "be0f6932"}, {"id": "be0f6932"}, 2)
WAKE = tool("ScheduleWakeup", {"delaySeconds": 60, "prompt": "go on", "reason": "r"}, {"scheduledFor": 4102444800000}, 3)
TIMER = {"id": "be0f6932", "schedule": "Every 7 minutes", "prompt": "look at the build", "recurring": True, "due_ms": 0,
         "until_ms": 0}


class TimersTest(Case):
    def armed(self, *lines, **options):
        """An idle session, after a turn with these lines."""
        d, agent, child, a = self.open(mode={"session_id": "conv-1"}, **options)
        self.turn(a, child, *lines)
        return d, agent, a, child

    def turn(self, a, child, *lines):
        a.log.clear()
        child.print(INIT, *lines, RESULT)
        a.event("turn_ended")
        a.event("session_state", state="idle")

    def at_work(self, d, agent, session):
        """From its creation on, so that it does not sleep before it has printed anything."""
        a = d.client()
        a.send(user("x", uuid="u", session_id=session))
        child = agent.child()
        child.wait(type="user", uuid="u")
        return a, child

    def test_it_stays_awake(self):
        """Longer than a later session without a timer; and it does not make room for that one."""
        d, agent = self.start(daemon={"max_children": "1"}, profile={"idle_sleep": "300ms"})
        a, child = self.at_work(d, agent, "s")
        child.print(dict(INIT, session_id="conv-s"), *CREATE, dict(RESULT, user_message_uuids=["u"]))
        a.event("session_state", state="idle")
        b, other = self.at_work(d, agent, "t")
        other.print(dict(INIT, session_id="conv-t"), dict(RESULT, user_message_uuids=["u"]))
        b.event("session_state", state="asleep")
        self.assertEqual((d.state_of("s"), d.sessions()["s"]["timers"]), ("idle", 1))
        child.print(*DELETE, RESULT)
        a.event("session_state", state="asleep")
        self.assertEqual(d.sessions()["s"]["timers"], 0)

    def test_hibernate_says_what_would_be_lost(self):
        tasks = {"type": "system", "subtype": "background_tasks_changed", "tasks": [TASK]}
        d, agent, a, child = self.armed(tasks, *CREATE, *WAKE)
        wake = {"id": None, "schedule": None, "prompt": "go on", "recurring": False, "due_ms": 4102444800000, "until_ms": 0}
        a.send(request("h", "plenum_hibernate"))
        got = a.answer("h")["response"]
        self.assertEqual((got["code"], got["would_lose"]), ("busy", {"tasks": [TASK], "timers": [TIMER, wake]}))
        self.assertEqual(d.attached("s").attached["timers"], [TIMER, wake])
        status = d.call("plenum_status", session="s")
        self.assertEqual((status["tasks"], status["timers"]), ([TASK], [TIMER, wake]))
        entry = d.sessions()["s"]
        self.assertEqual((entry["tasks"], entry["timers"]), (1, 2))
        a.request("plenum_hibernate", force=True)
        a.event("session_state", state="asleep")
        entry = d.sessions()["s"]
        self.assertEqual((entry["tasks"], entry["timers"]), (0, 1))  # a wake-up is lost

    def test_force_ends_no_turn(self):
        d, agent, a, child = self.armed(*CREATE)
        child.prompted(a, "x", uuid="u")
        self.assertRefused("busy", a.request, "plenum_hibernate", force=True)

    def test_the_next_child_has_it(self):
        """The CLI arms a job again when it resumes: also for a daemon that has not seen its creation. No text is on
        disk."""
        d, agent, a, child = self.armed(*CREATE)
        a.request("plenum_hibernate", force=True)
        a.event("session_state", state="asleep")
        d.stop()
        with open(d.state + "/plenum/sessions.json") as f:
            self.assertNotIn("look at the build", f.read())
        d.start()
        b = d.attached("s", wake=True)
        second = agent.child()
        second.print(INIT, RESULT)
        b.event("session_state", state="idle")
        b.send(request("h", "plenum_hibernate"))
        self.assertEqual([t["id"] for t in b.answer("h")["response"]["would_lose"]["timers"]], ["be0f6932"])
        b.request("plenum_upgrade")
        self.assertEqual(d.sessions()["s"]["timers"], 1)

    def test_plenumctl(self):
        d, agent, a, child = self.armed(*CREATE)

        def ctl(*argv):
            return subprocess.run([build_file("plenumctl"), "--socket", d.socket, *argv], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=60)

        self.assertRegex(ctl("ls").stdout, r"(?m)^s +idle .* 1 timer ")
        got = ctl("sleep", "s")
        self.assertEqual((got.returncode, got.stdout), (1, ""))
        self.assertIn("it would not fire: look at the build (Every 7 minutes)\n", got.stderr)
        self.assertIn("session s: stays awake (--force puts it to sleep)\n", got.stderr)
        self.assertEqual(d.state_of("s"), "idle")
        got = ctl("sleep", "--force", "s")
        self.assertEqual((got.returncode, got.stdout), (0, "s sleeps\n"))
        self.assertEqual(d.state_of("s"), "asleep")


if __name__ == "__main__":
    unittest.main()
