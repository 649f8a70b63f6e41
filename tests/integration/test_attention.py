# SPDX-License-Identifier: MIT
"""What a person away from the screen is told: turns that end, fail or stall, and the commands run for that (contract
12)."""
import unittest

from harness import RESULT, Case, init_line, user


class TurnEndedTest(Case):
    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a = self.d.attached()
        self.child = self.agent.child()
        self.turns = 0

    def ended(self, **result):
        """Run a turn with this result; return its event."""
        self.turns += 1
        uuid = "u%d" % self.turns
        self.a.send(user("hi", uuid=uuid))
        self.child.wait(type="user", uuid=uuid)
        self.child.print(init_line(user_message_uuids=[uuid]), dict(RESULT, user_message_uuids=[uuid], **result))
        return self.a.event("turn_ended", uuids=[uuid])

    def test_outcomes(self):
        for result, outcome in (({}, "success"),
                                ({"is_error": True, "terminal_reason": "api_error"}, "error"),
                                ({"subtype": "error_max_turns", "is_error": True}, "limit"),
                                ({"subtype": "error_during_execution", "is_error": True,
                                  "terminal_reason": "aborted_tools"}, "interrupted")):
            self.assertEqual(self.ended(**result)["outcome"], outcome)

    def test_time_and_tokens(self):
        m = self.ended(duration_ms=1234, usage={"input_tokens": 3, "output_tokens": 40, "cache_read_input_tokens": 500})
        self.assertEqual(m["ms"], 1234)
        self.assertEqual(m["tokens"], {"input": 3, "output": 40, "cache_read": 500, "cache_write": None})
        m = self.ended()
        self.assertIsNone(m["ms"])
        self.assertIsNone(m["cost_usd"])
        self.assertEqual(set(m["tokens"].values()), {None})

    def test_the_cost_is_of_the_turn(self):
        """The child reports the sum of its turns, also over an upgrade; the next child counts anew."""
        costs = [self.ended(total_cost_usd=c)["cost_usd"] for c in (0.07, 0.1)]
        self.d.call("plenum_upgrade")
        costs += [self.ended(total_cost_usd=c)["cost_usd"] for c in (0.1, 0.600000001)]
        self.a.request("plenum_hibernate")
        self.a.event("session_state", state="asleep")
        self.a.send(user("wake", uuid="w"))
        self.child = self.agent.child()
        self.child.wait(type="user", uuid="w")
        self.child.print(init_line(user_message_uuids=["w"]), dict(RESULT, user_message_uuids=["w"], total_cost_usd=0.7))
        costs.append(self.a.event("turn_ended", uuids=["w"])["cost_usd"])
        self.assertEqual(costs, [0.07, 0.03, 0.0, 0.500000001, 0.7])

    def test_it_comes_once(self):
        """Not again with the child's idle state, with its end, or from the daemon after an upgrade or its death."""
        self.ended()
        self.child.print({"type": "system", "subtype": "session_state_changed", "state": "idle"})
        self.child.mark(self.a)
        self.d.call("plenum_upgrade")
        self.child.mark(self.a)
        self.child.exit(0)
        self.a.event("child_exited")
        self.a.sync()
        self.assertEqual(len(self.a.events("turn_ended")), 1)

    def test_a_daemon_that_was_killed_ends_no_turn(self):
        self.a.send(user("hi", uuid="u1"))
        self.child.wait(type="user")
        self.child.print(init_line(user_message_uuids=["u1"]))
        self.a.event("turn_started")
        self.d.kill9()
        self.d.start()
        a = self.d.attached("s", replay="all")
        a.sync()
        self.assertNone(a.events("turn_ended"))
        self.assertNone(a.events("failed"))

    def test_a_turn_without_a_result(self):
        self.a.send(user("hi", uuid="u1"))
        self.child.wait(type="user")
        self.child.print(dict(user("hi", uuid="u1"), isReplay=True), init_line(user_message_uuids=["u1"]),
                         {"type": "system", "subtype": "session_state_changed", "state": "idle"})
        m = self.a.event("turn_ended", uuids=["u1"])
        self.assertEqual((m["outcome"], m["is_error"]), ("unknown", True))
        self.assertIsNone(m["ms"])


if __name__ == "__main__":
    unittest.main()
