# SPDX-License-Identifier: MIT
"""The consequences of a change come once, after its answer, and in a fixed order (src/core/reconcile.c)."""
import unittest

from harness import RESULT, Case, allow, perm, user
from standstill import standstill


def names(client, *left_out):
    """Return the daemon's events and the result lines received by the client, in order."""
    return [m["event"] + (":" + m["state"] if m["event"] == "session_state" else "") if m["type"] == "system" else "result"
            for m in client.log if (m["subtype"] == "plenum_event" or m["type"] == "result") and m["event"] not in left_out]


class PromptTest(Case):
    def test_no_idle_between_two_prompts_that_were_queued(self):
        """The next one is sent before the state is computed: the session stays busy."""
        _, _, child, a, b = self.open(2, profile={"prompts": "queue"})
        child.prompted(a, "one", uuid="ua")
        b.send(user("two", uuid="ub"))
        b.event("changed", what="prompt_held")
        b.event("session_state", state="busy")
        child.print(dict(RESULT, user_message_uuids=["ua"]))
        child.wait(type="user", uuid="ub")
        child.print(dict(RESULT, user_message_uuids=["ub"]))
        b.event("session_state", state="idle", previous="busy")
        after = names(b)
        self.assertEqual(after[after.index("result"):], ["result", "turn_ended", "result", "turn_ended", "session_state:idle"])


class HalfClosedTest(Case):
    def test_it_leaves_before_the_state_that_follows(self):
        """It has waited only for its own turn. The others see it leave before the session is idle."""
        _, _, child, a, b = self.open(2)
        child.prompted(a, "one", uuid="u1")
        b.event("session_state", state="busy")
        a.half_close()
        child.print(dict(RESULT, user_message_uuids=["u1"]))
        a.wait_eof()
        b.event("session_state", state="idle", previous="busy")
        self.assertEqual(names(a)[-2:], ["result", "turn_ended"])
        self.assertEqual(names(b)[-4:], ["result", "turn_ended", "detached", "session_state:idle"])

    def test_several_leave_with_one_result(self):
        """One result answers the prompts of all of them: each leaves, the state is sent once."""
        d, agent = self.start()
        all = [d.attached() for _ in range(20)]
        b = d.attached()
        child = agent.child()
        for i, a in enumerate(all):
            a.send(user("one", uuid="u%d" % i))
            child.wait(type="user", uuid="u%d" % i)
            a.half_close()
        child.print(dict(RESULT, user_message_uuids=["u%d" % i for i in range(20)]))
        for a in all:
            a.wait_eof()
            self.assertEqual(names(a, "detached", "session_state")[-2:], ["result", "turn_ended"])
        b.event("session_state", state="idle", previous="busy")
        for _ in all:
            b.event("detached")
        self.assertEqual(names(b)[-23:-21], ["result", "turn_ended"])
        # in any order: on a busy machine they leave in slices, and the state does not wait for the last one
        self.assertEqual(sorted(names(b)[-21:]), ["detached"] * 20 + ["session_state:idle"])


class AnswerTest(Case):
    def test_an_answer_comes_before_the_close(self):
        _, _, child, a = self.open()
        rid = a.ask("mcp_status")
        got = child.request("mcp_status")
        a.half_close()
        child.reply(got, {"n": 1})
        self.assertEqual(a.answer(rid)["response.response"], {"n": 1})
        a.wait_eof()
        self.assertEqual(a.log[-1]["response.request_id"], rid)

    def test_an_answer_comes_before_the_state(self):
        """A client that requests sleep is answered, then notified of the stop, then of the state."""
        d, agent = self.start()
        a = d.attached()
        agent.child()
        a.event("session_state", state="idle")
        rid = a.ask("plenum_hibernate")
        a.event("session_state", state="asleep")
        at = next(i for i, m in enumerate(a.log) if m["response.request_id"] == rid)
        self.assertFalse([m for m in a.log[:at] if m["event"] in ("changed", "child_exited")])
        self.assertEqual([m["event"] for m in a.log[at + 1:]][:1], ["changed"])

    def test_a_decision_is_told_before_the_state(self):
        _, _, child, a, b = self.open(2)
        child.prompted(a, "one", uuid="u1")
        child.print(perm("k"))
        got = a.wait(type="control_request")
        a.event("session_state", state="asking")
        a.send(allow(got["request_id"]))
        b.event("session_state", state="busy", previous="asking")
        self.assertEqual(names(b)[-2:], ["settled", "session_state:busy"])

    def test_a_state_that_did_not_last_is_not_told(self):
        """Requested and answered in one turn of the loop, by the child's withdrawal."""
        _, _, child, a = self.open()
        a.send(user("one", uuid="u1"))
        a.event("session_state", state="busy")
        child.wait(type="user", uuid="u1")
        child.print(perm("k"), {"type": "control_cancel_request", "request_id": "k"},
                    dict(RESULT, user_message_uuids=["u1"]))
        a.event("session_state", state="idle", previous="busy")
        self.assertNotIn("session_state:asking", names(a))


class CrowdTest(Case):
    COUNT = 300

    def test_approvers_who_leave_in_one_turn(self):
        """The last of them leaves the request to the timer, and the session stays in the asking state."""
        d, agent = self.start()
        b = d.attached(approve=False)
        child = agent.child()
        child.prompted(b, "one", uuid="u1")
        crowd = [d.attached() for _ in range(self.COUNT)]
        child.print(perm("k"))
        for a in crowd:
            a.wait(type="control_request")
        b.event("session_state", state="asking")
        before = len(names(b))
        with standstill(d):
            for a in crowd:
                a.close()
        b.request("plenum_hello")
        self.assertEqual([n for n in names(b)[before:] if n.startswith("session_state")], [])
        late = d.attached()
        late.send(allow(late.wait(type="control_request")["request_id"]))
        b.event("session_state", state="busy", previous="asking")
        self.assertEqual(names(b, "attached", "detached")[-2:], ["settled", "session_state:busy"])


if __name__ == "__main__":
    unittest.main()
