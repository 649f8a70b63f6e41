# SPDX-License-Identifier: MIT
"""The state of the child for a late client: its newest system/init, its mode and model, its background tasks."""
import json
import unittest

from harness import RESULT, Case, err, ok, perm, user
from test_upgrade import Upgrade

MEMBERS = ("init", "init_seq", "permission_mode", "model", "background_tasks")
NOTHING = {"init": None, "init_seq": None, "permission_mode": None, "model": None, "background_tasks": []}
# None of this would pass a parser and a printer unchanged.
ODD = (b'{"type":"system" , "subtype":"init","session_id":"conv-1","cwd":"/tmp/\\u00e9 \\ud800","tools":["Bash","Read"],'
       b'"mcp_servers":[{"name":"m","status":"failed"}],"model":"mod\\u0065l-1","permissionMode":"default","n":1e400,'
       b'"big":123456789012345678901234567890,"zero":-0.0,"n":2,"claude_code_version":"2.1.332"}')
TASK = {"task_id": "b1", "task_type": "local_bash", "description": "sleep \u00e9"}


def init_line(conversation="conv-1", **members):
    return dict({"type": "system", "subtype": "init", "session_id": conversation, "cwd": "/", "tools": ["Bash"],
                 "model": "model-1", "permissionMode": "default"}, **members)


def tasks_line(*tasks):
    return {"type": "system", "subtype": "background_tasks_changed", "tasks": list(tasks), "session_id": "conv-1"}


def task(what, number, **members):
    return dict({"type": "system", "subtype": "task_" + what, "task_id": number}, **members)


def result(conversation="conv-1", **members):
    return dict(RESULT, session_id=conversation, **members)


class Snapshot(Case):
    def idle(self, *lines, **options):
        """A session whose child has had a turn (or printed these lines), and a client that was there."""
        d, agent = self.start(**options)
        return (d, agent) + self.had_turn(d, agent, *lines)

    @staticmethod
    def had_turn(d, agent, *lines):
        a = d.attached(tag=True)
        child = agent.child()
        a.initialize()
        child.print(*(lines or (init_line(), result())))
        child.mark(a)
        return a, child

    @staticmethod
    def late(d, **members):
        """Return the relevant members of a late client's answer."""
        c = d.client()
        got = c.attach("s", role="observer", **members)
        c.close()
        return {name: got[name] for name in MEMBERS}

    @staticmethod
    def raw_late(d):
        """Return the late client, and its raw answer."""
        c = d.client()
        return c, c.answer(c.ask("plenum_attach", session="s", role="observer")).raw

    def assertLate(self, d, **want):
        got = self.late(d)
        self.assertEqual({name: got[name] for name in want}, want)


class Init(Snapshot):
    def test_nothing_said(self):
        d, agent = self.start()
        got = d.attached().attached
        self.assertEqual({name: got[name] for name in MEMBERS}, NOTHING)
        agent.child()
        self.assertEqual(self.late(d), NOTHING)

    def test_as_it_was_printed(self):
        d, _, a, child = self.idle(ODD + b"\r\n", result())
        c, raw = self.raw_late(d)
        self.assertIn(b'"init":' + ODD + b"}", raw)
        body = json.loads(raw)["response"]["response"]
        self.assertEqual((body["model"], body["permission_mode"]), ("model-1", "default"))
        self.assertIn(b'"model":"mod\\u0065l-1"', raw)
        self.assertEqual(body["init_seq"], a.seen(type="system", subtype="init")[0]["plenum_seq"])
        child.mark(c)
        self.assertEqual(c.seen(type="system", subtype="init"), [])

    def test_newest(self):
        d, _, a, child = self.idle()
        child.print(init_line(model="model-2", tools=["Read"]))
        child.mark(a)
        got = self.late(d)
        self.assertEqual((got["init"]["tools"], got["model"]), (["Read"], "model-2"))
        self.assertEqual(got["init_seq"], a.seen(type="system", subtype="init")[-1]["plenum_seq"])

    def test_once_with_replay(self):
        d, _, a, child = self.idle()
        c = d.attached(replay="all")
        child.mark(c)
        self.assertEqual(len(c.seen(type="system", subtype="init")), 1)
        self.assertIsNotNone(c.attached["init"])
        self.assertEqual(len(a.seen(type="system", subtype="init")), 1)

    def test_from_where_it_stands(self):
        """init_seq is a number at which a replay can begin."""
        d, _, _, child = self.idle()
        c = d.attached(replay={"after": self.late(d)["init_seq"] - 1}, tag=True)
        child.mark(c)
        self.assertEqual(c.seen(lambda m: m["plenum_seq"] is not None)[0]["subtype"], "init")

    def test_off_the_tape(self):
        d, _, a, child = self.idle(limits={"tape_lines": "20"})
        child.flood({"type": "x"}, 100)
        child.mark(a)
        c = d.client()
        got = c.attach("s")
        self.assertGreater(got["oldest_seq"], got["init_seq"])
        self.assertEqual(got["init"], init_line())

    def test_no_json_after_all(self):
        """A line that only looks like JSON is on the tape; in the answer it would make all of it invalid."""
        d, _, a, child = self.idle(b'{"type":"system","subtype":"init","session_id":"conv-1","x":"\\q","model":"m"}\n')
        a.wait(lambda m: b'"x":"\\q"' in m.raw)
        got = self.late(d)
        self.assertIsNone(got["init"])
        self.assertEqual(got["model"], "m")
        self.assertIsInstance(got["init_seq"], int)
        child.print(init_line(tools=["now"]))
        child.mark(a)
        self.assertEqual(self.late(d)["init"]["tools"], ["now"])

    def test_too_long(self):
        d, _, a, child = self.idle(init_line(tools=["x" * 400000]))
        self.assertEqual(self.late(d)["init"]["tools"], ["x" * 400000])
        child.print(init_line(tools=["x" * 600000]))
        child.mark(a)
        got = self.late(d)
        self.assertIsNone(got["init"])
        self.assertEqual(got["init_seq"], a.seen(type="system", subtype="init")[-1]["plenum_seq"])

    def test_stand_ins_are_told_nothing(self):
        d, _, _, child = self.idle()
        c = d.attached(quiet=True)
        for name in MEMBERS:
            self.assertNotIn(name, c.attached)
        child.mark(c)
        self.assertEqual(c.seen(type="system"), [])


class OtherChild(Snapshot):
    def sleep(self, a, child):
        a.request("plenum_hibernate")
        a.event("session_state", state="asleep")
        child.wait_gone()

    def test_asleep(self):
        """The child's properties are kept with the tape; its current activity is not."""
        d, agent, a, child = self.idle(init_line(), tasks_line(TASK), result())
        child.exit(0)  # a stop request does not put it to sleep while it works
        a.event("session_state", state="asleep")
        self.assertEqual(self.late(d), dict(NOTHING, init=init_line(), init_seq=self.late(d)["init_seq"]))
        self.assertIsInstance(self.late(d)["init_seq"], int)

    def test_asleep_and_off_the_tape(self):
        d, agent, a, child = self.idle(limits={"tape_lines": "20"})
        child.flood({"type": "x"}, 100)
        child.mark(a)
        self.assertIsNotNone(self.late(d)["init"])
        self.sleep(a, child)
        self.assertIsNone(self.late(d)["init"])

    def test_next_child(self):
        d, agent, a, child = self.idle()
        self.sleep(a, child)
        a.send(user("wake"))
        child = agent.child()
        child.wait(type="user")
        self.assertEqual(self.late(d), NOTHING)
        child.print(init_line(model="model-2"))
        child.mark(a)
        self.assertLate(d, init=init_line(model="model-2"), model="model-2")

    def test_crash(self):
        d, agent, a, child = self.idle(init_line(), tasks_line(TASK), result())
        child.kill()
        a.event("child_exited")
        self.assertLate(d, permission_mode=None, model=None, background_tasks=[], init=init_line())

    def test_after_a_reset(self):
        d, _, a, child = self.idle()
        child.print({"type": "conversation_reset", "new_conversation_id": "x", "session_id": "conv-1"})
        child.mark(a)
        self.assertLate(d, init=None, init_seq=None, model="model-1", permission_mode="default")
        child.print(init_line("conv-2"))
        child.mark(a)
        self.assertLate(d, init=init_line("conv-2"))

    def test_after_another_conversation(self):
        d, _, a, child = self.idle()
        child.print(result("conv-2"))
        child.mark(a)
        self.assertLate(d, init=None, init_seq=None, model="model-1")


class ModeAndModel(Snapshot):
    def change(self, a, child, subtype, body, **members):
        """A client's request, and the child's answer to it."""
        rid = a.ask(subtype, **members)
        m = child.request(subtype)
        child.print(err(m["request_id"]) if body == "error" else ok(m["request_id"], body))
        a.answer(rid)

    def test_status_line(self):
        d, _, a, child = self.idle()
        child.print({"type": "system", "subtype": "status", "status": None, "permissionMode": "plan"})
        child.mark(a)
        self.assertLate(d, permission_mode="plan", init=init_line())
        child.print({"type": "system", "subtype": "status", "status": "compacting"})
        child.mark(a)
        self.assertLate(d, permission_mode="plan")

    def test_set_mode(self):
        d, _, a, child = self.idle()
        self.change(a, child, "set_permission_mode", {"mode": "acceptEdits"}, mode="bypassPermissions")
        self.assertLate(d, permission_mode="acceptEdits")
        self.change(a, child, "set_permission_mode", "error", mode="plan")
        self.assertLate(d, permission_mode="acceptEdits")
        self.change(a, child, "set_permission_mode", None, mode="plan")
        self.assertLate(d, permission_mode="plan")
        child.print(init_line())
        child.mark(a)
        self.assertLate(d, permission_mode="default")

    def test_set_model(self):
        d, _, a, child = self.idle()
        self.change(a, child, "set_model", {"model": "model-2"}, model="two")
        self.assertLate(d, model="model-2")
        self.change(a, child, "set_model", None, model="model-3")
        self.assertLate(d, model="model-3")
        self.change(a, child, "set_model", None, model="default")
        self.assertLate(d, model=None)
        self.change(a, child, "set_model", {"model": "model-4"}, model=None)
        self.assertLate(d, model="model-4", permission_mode="default")

    def test_by_one_that_left(self):
        d, _, a, child = self.idle()
        b = d.attached()
        b.ask("set_model", model="model-2")
        m = child.request("set_model")
        b.close()
        a.event("detached")
        child.print(ok(m["request_id"], {"model": "model-2"}))
        self.assertEqual(a.event("changed", what="model")["value"], "model-2")
        self.assertLate(d, model="model-2")

    def test_other_requests_change_nothing(self):
        d, _, a, child = self.idle()
        self.change(a, child, "set_max_thinking_tokens", {"mode": "x", "model": "x"}, max_thinking_tokens=5)
        self.assertLate(d, model="model-1", permission_mode="default")

    def test_before_the_first_turn(self):
        d, _, child, a = self.open(mode={"init": "manual"})
        a.ask("initialize")
        child.reply(child.request("initialize"), {"commands": [], "current_permission_mode": "plan"})
        a.wait(type="control_response", response__subtype="success", response__response__commands=[])
        self.assertLate(d, permission_mode="plan", model=None, init=None)

    def test_not_too_long(self):
        d, _, a, child = self.idle(init_line(model="m" * 1000, permissionMode="p" * 1000))
        self.assertLate(d, permission_mode=None, model=None)


class Tasks(Snapshot):
    def test_newest_list(self):
        d, _, a, child = self.idle(init_line(), tasks_line(TASK), result())
        self.assertLate(d, background_tasks=[TASK])
        other = dict(TASK, task_id="b2")
        child.print(tasks_line(TASK, other))
        child.mark(a)
        self.assertLate(d, background_tasks=[TASK, other])
        child.print(tasks_line())
        child.mark(a)
        self.assertLate(d, background_tasks=[])

    def test_as_printed(self):
        odd = b'[ {"task_id":"b1","n":1e400,"description":"\\ud800"}]'
        d, _, _, _ = self.idle(b'{"type":"system","subtype":"background_tasks_changed","tasks":%s}\n' % odd)
        self.assertIn(b'"background_tasks":' + odd + b",", self.raw_late(d)[1])

    def test_one_in_the_foreground(self):
        d, _, _, _ = self.idle(task("started", "b1", is_backgrounded=False))
        self.assertLate(d, background_tasks=[])

    def test_one_by_one(self):
        """As reported by CLI 2.1.197, which prints no list."""
        d, _, a, child = self.idle(task("started", "b1", description="sleep \ud800", task_type="local_bash", prompt="x"),
                                   task("started", "b2"), task("started", "b3", description="x" * 5000))
        first = {"task_id": "b1", "task_type": "local_bash", "description": "sleep \ud800"}
        self.assertLate(d, background_tasks=[first, {"task_id": "b2"}, {"task_id": "b3"}])
        child.print(task("progress", "b2"), task("updated", "b2", patch={"status": "running"}),
                    task("updated", "b3", patch={"status": "killed"}), task("notification", "b3", status="stopped"))
        child.mark(a)
        self.assertLate(d, background_tasks=[first, {"task_id": "b2"}])
        child.print(task("notification", "b1", status="completed"), task("notification", "b9", status="completed"))
        child.mark(a)
        self.assertLate(d, background_tasks=[{"task_id": "b2"}])
        child.print(task("notification", "b2", status="failed"))
        child.mark(a)
        self.assertLate(d, background_tasks=[])

    def test_one_that_is_no_json(self):
        d, _, a, child = self.idle(task("started", "b1"), b'{"type":"system","subtype":"task_started","task_id":"\\q"}\n')
        self.assertLate(d, background_tasks=[{"task_id": "b1"}])

    def test_the_list_counts(self):
        d, _, a, child = self.idle(tasks_line(TASK), task("started", "b2", is_backgrounded=True), task("notification", "b1"))
        self.assertLate(d, background_tasks=[TASK])

    def test_one_by_one_and_too_many(self):
        d, _, a, child = self.idle(*[task("started", "b%d" % i, description="x" * 1000) for i in range(100)])
        told = self.late(d)["background_tasks"]
        self.assertTrue(50 < len(told) < 100, len(told))
        child.print(*[task("notification", "b%d" % i) for i in range(100)])
        child.mark(a)
        self.assertLate(d, background_tasks=[])

    def test_no_sleep_over_one(self):
        d, agent = self.start(profile={"idle_sleep": "300ms"})
        a = d.client()
        a.send(user("x", uuid="u", session_id="s"))  # so that it does not sleep before it reports work
        child = agent.child()
        child.wait(type="user", uuid="u")
        child.print(task("started", "b1"), result(user_message_uuids=["u"]))
        a.wait(type="result")
        d.attached("later")
        d.wait_state("later", "asleep")
        self.assertEqual(d.state_of("s"), "idle")
        child.print(task("notification", "b1"))
        a.event("child_exited", wanted=True)

    def test_too_many(self):
        d, _, a, child = self.idle(tasks_line(*[TASK] * 3000))
        self.assertLate(d, background_tasks=None)
        child.print(tasks_line(TASK))
        child.mark(a)
        self.assertLate(d, background_tasks=[TASK])


class Initialize(Snapshot):
    """The stored answer to a late client's initialize, too, has the current state."""

    def kept(self, mode="default"):
        d, _, child, a = self.open(mode={"init": "manual"})
        rid = a.ask("initialize")
        m = child.request("initialize")
        self.body = {"commands": [], "current_permission_mode": mode, "session_state": "idle", "pid": 1}
        child.reply(m, self.body)
        self.assertEqual(a.answer(rid)["response.response"], self.body)
        return d, a, child

    def late_answer(self, d):
        c = d.attached()
        got = c.initialize()["response.response"]
        c.close()
        return got

    def test_unchanged(self):
        d, a, child = self.kept()
        self.assertEqual(self.late_answer(d), self.body)
        self.assertEqual(child.seen(type="control_request"), child.seen(type="control_request", request__subtype="initialize"))

    def test_mode(self):
        d, a, child = self.kept()
        child.print({"type": "system", "subtype": "status", "status": None, "permissionMode": "plan"})
        child.mark(a)
        self.assertEqual(self.late_answer(d), dict(self.body, current_permission_mode="plan"))

    def test_state(self):
        d, a, child = self.kept()
        child.prompted(a, "one", uuid="u")
        self.assertEqual(self.late_answer(d), dict(self.body, session_state="running"))
        child.print(perm("k-1"))
        a.wait(type="control_request")
        self.assertEqual(self.late_answer(d), dict(self.body, session_state="requires_action"))


class AcrossUpgrade(Upgrade):
    def test_all_of_it(self):
        d, agent = self.start_copy(limits={"tape_lines": "20"})
        a, child = Snapshot.had_turn(d, agent, ODD + b"\n", tasks_line(TASK), result())
        child.print({"type": "system", "subtype": "status", "status": None, "permissionMode": "plan"})
        child.flood({"type": "x"}, 50)
        child.mark(a)
        before = Snapshot.raw_late(d)[1]
        self.upgrade(d)
        c, raw = Snapshot.raw_late(d)
        self.assertIn(b'"init":' + ODD + b"}", raw)
        for m in (before, raw):
            body = json.loads(m)["response"]["response"]
            self.assertEqual((body["permission_mode"], body["model"], body["background_tasks"]), ("plan", "model-1", [TASK]))
        self.assertEqual(json.loads(before)["response"]["response"]["init_seq"],
                         json.loads(raw)["response"]["response"]["init_seq"])
        child.print(tasks_line())
        child.mark(c)
        self.assertEqual(Snapshot.late(d)["background_tasks"], [])

    def test_nothing_of_it(self):
        d, agent = self.start_copy()
        d.attached()
        agent.child()
        self.upgrade(d)
        self.assertEqual(Snapshot.late(d), NOTHING)


if __name__ == "__main__":
    unittest.main()
