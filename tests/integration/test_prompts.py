# SPDX-License-Identifier: MIT
"""Prompts and their turns: queued, cancelled, repeated, and the assignment of prompts to turns (cases C35 C37 C71)."""
import unittest

from harness import RESULT, Case, request, until, user
from standstill import connected, standstill


class TurnTest(Case):
    def test_too_long_result_ends_its_turn(self):
        d, _, child, a = self.open(limits={"child_line": "64K"})
        child.prompted(a, "one", uuid="u-1")
        child.print({"type": "system", "subtype": "init", "session_id": "c"}, dict(user("one", uuid="u-1"), isReplay=True),
                    {"duration_ms": 1, "type": "result", "result": "x" * 70000, "user_message_uuids": ["u-1"]})
        a.error("too_long")
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-1"])
        d.wait_state("s", "idle")

    def test_more_prompts_than_a_result_names(self):
        """2.1.332 names the first 63 of a turn and the last."""
        d, _, child, a, b = self.open(2)
        uuids = ["u-%d" % i for i in range(100)]
        named = uuids[:63] + uuids[-1:]
        a.send(*(user("p", uuid=u) for u in uuids))
        child.wait(type="user", uuid=uuids[-1])
        init = {"type": "system", "subtype": "init", "session_id": "c", "user_message_uuids": named}
        child.print(*(dict(user("p", uuid=u), isReplay=True) for u in uuids[:-1]), init,
                    dict(user("p", uuid=uuids[-1]), isReplay=True),
                    {"type": "result", "session_id": "c", "user_message_uuids": named},
                    {"type": "system", "subtype": "session_state_changed", "state": "idle"})
        for event in ("turn_started", "turn_ended"):
            self.assertEqual(sorted(b.event(event)["uuids"]), sorted(uuids))
        d.wait_state("s", "idle")
        a.sync()
        self.assertFalse(a.events("error"))

    def test_turn_ends_without_a_result(self):
        d, _, child, a = self.open()
        a.send(user("one", uuid="u-1"))
        a.half_close()
        child.wait(type="user", uuid="u-1")
        child.print({"type": "system", "subtype": "session_state_changed", "state": "running"},
                    {"type": "system", "subtype": "init", "session_id": "c", "user_message_uuids": ["u-1"]},
                    dict(user("one", uuid="u-1"), isReplay=True),
                    {"type": "system", "subtype": "session_state_changed", "state": "idle"})
        ended = a.event("turn_ended")
        self.assertEqual((ended["uuids"], ended["is_error"]), (["u-1"], True))
        a.wait_eof()
        d.wait_state("s", "idle")
        self.assertNone(a.events("error"))

    def test_late_result_of_an_interrupted_turn(self):
        """C35: an old CLI prints the result of the interrupted turn after the next prompt."""
        d, _, child, a = self.open()
        child.prompted(a, "one")
        a.send(request("a-1", "interrupt"), user("next"))
        child.reply(child.request("interrupt"))
        child.wait(type="user")
        old = {"type": "result", "subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_streaming"}
        child.print(old, {"type": "assistant", "message": {}})
        a.wait(type="assistant")
        self.assertEqual(d.state_of("s"), "busy")
        child.print(RESULT)
        d.wait_state("s", "idle")
        self.assertEqual([m.obj for m in a.seen(type="result")], [old, RESULT])

    def test_clients_of_a_turn_without_echo(self):
        """C37: the child echoes no prompts; the clients are named nevertheless."""
        d, agent = self.start()
        a, b, o = d.attached(name="a"), d.attached(name="b"), d.attached(role="observer")
        child = agent.child()
        child.prompted(a, "long job", uuid="ua")
        child.prompted(b, "also this", uuid="ub")
        child.print(RESULT)
        for c in (a, b, o):
            m = c.event("turn_ended")
            self.assertEqual((m["uuids"], [x["name"] for x in m["clients"]]), (["ua", "ub"], ["a", "b"]))

    def test_result_and_next_prompt_cross(self):
        d, _, child, a = self.open()
        for i in range(30):
            a.send(user("p%d" % i, uuid="u%d" % i))
            child.wait(type="user", uuid="u%d" % i)
            child.print(dict(RESULT, user_message_uuids=["u%d" % i]))
        a.wait(lambda m: m["user_message_uuids"] == ["u29"])
        d.wait_state("s", "idle")


class OldCliTest(Case):
    """2.1.197 does not name the prompts of a turn in its result."""

    def test_command_neither_echoed_nor_named(self):
        d, _, child, a = self.open(mode={"init": "197"})
        child.prompted(a, "one", uuid="u-1")
        echo = dict(user("one", uuid="u-1"), isReplay=True)
        child.print({"type": "system", "subtype": "init", "session_id": "c"}, echo, {"type": "result", "session_id": "c"})
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-1"])
        child.prompted(a, "/clear", uuid="u-2")
        child.print({"type": "system", "subtype": "init", "session_id": "d"}, {"type": "result", "session_id": "d"})
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-2"])
        d.wait_state("s", "idle")

    def test_prompt_blocked_by_a_hook(self):
        d, _, child, a = self.open(mode={"init": "197"})
        a.send(user("one", uuid="u-1"), user("two", uuid="u-2"))
        child.wait(type="user", uuid="u-2")
        child.print({"type": "system", "subtype": "init", "session_id": "c"}, dict(user("one", uuid="u-1"), isReplay=True),
                    {"type": "result", "session_id": "c", "num_turns": 1},
                    {"type": "system", "subtype": "init", "session_id": "c"}, {"type": "result", "session_id": "c", "num_turns": 0})
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-1"])
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-2"])
        d.wait_state("s", "idle")

    def test_merged_prompts_blocked_by_a_hook(self):
        """It echoes all but the last one, before init; a turn that echoes its prompt after init includes no other."""
        d, _, child, a = self.open(mode={"init": "197"})
        a.send(*[user("x", uuid="u-%d" % i) for i in range(5)])
        child.wait(type="user", uuid="u-4")
        start, none = {"type": "system", "subtype": "init", "session_id": "c"}, {"type": "result", "session_id": "c", "num_turns": 0}

        def echo(i):
            return dict(user("x", uuid="u-%d" % i), isReplay=True)

        child.print(echo(0), echo(1), start, none)
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-0", "u-1", "u-2"])
        child.print(start, echo(3), none)
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-3"])
        child.mark(a)
        self.assertEqual(d.state_of("s"), "busy")
        child.print(start, echo(4), dict(none, num_turns=1))
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-4"])
        d.wait_state("s", "idle")

    def test_client_of_a_turn_is_known_by_the_echo(self):
        """Only the echo after the deltas identifies the prompt; a turn without a prompt echoes nothing."""
        d, agent = self.start(mode={"init": "197"})
        a, b = d.attached("s", name="a"), d.attached("s", name="b")
        child = agent.child()
        start, end = {"type": "system", "subtype": "init", "session_id": "c"}, {"type": "result", "session_id": "c"}
        text = {"type": "assistant", "message": {"role": "assistant", "content": []}}
        for i, (client, name) in enumerate(((a, "a"), (b, "b"), (a, "a"))):
            uuid = "u-%d" % i
            client.send(user("x", uuid=uuid))
            child.wait(type="user", uuid=uuid)
            if i == 1:
                child.print(start, text)
                self.assertEqual(a.event("turn_started")["uuids"], [])
                child.print(end)
                a.event("turn_ended")
            child.print(start, {"type": "stream_event", "event": {"type": "message_start"}},
                        dict(user("x", uuid=uuid), isReplay=True), text, end)
            started = a.event("turn_started")
            self.assertEqual((started["uuids"], [c["name"] for c in started["clients"]]), ([uuid], [name]))
            self.assertEqual(a.event("turn_ended")["uuids"], [uuid])


class CancelTest(Case):
    """Cancelled prompts."""

    def one_runs_and_one_waits(self, a, b, child):
        a.send(user("one", uuid="u-1"))
        b.send(user("two", uuid="u-2"))
        for uuid in ("u-1", "u-2"):
            child.wait(type="user", uuid=uuid)
        child.print(dict(user("one", uuid="u-1"), isReplay=True), {"type": "system", "subtype": "init", "session_id": "c"})

    def test_interrupt_takes_back_queued_prompts_first(self):
        d, agent = self.start()
        a, b = d.attached("s"), d.attached("s", name="b")
        child = agent.child()
        self.one_runs_and_one_waits(a, b, child)
        b.send(request("i", "interrupt", cancel_queued=True))
        taken_back = child.request("cancel_async_message")  # before the turn ends and the child accepts it
        interrupt = child.request("interrupt")
        self.assertLess(child.log.index(taken_back), child.log.index(interrupt))
        child.reply(interrupt)
        child.reply(taken_back, {"cancelled": True})
        told = a.event("changed", what="prompt_cancelled")
        self.assertEqual((told["value"], told["by.name"]), ("u-2", "b"))
        child.print({"type": "result", "session_id": "c", "user_message_uuids": ["u-1"]})
        d.wait_state("s", "idle")

    def test_interrupting_client_is_named(self):
        """The child reports the cancelled prompt before it answers; the prompt of an earlier connection counts, too."""
        d, agent = self.start()
        a, b = d.attached("s", name="a"), d.attached("s", name="b")
        child = agent.child()
        self.one_runs_and_one_waits(a, b, child)
        b.close()
        a.event("detached")
        b = d.attached("s", name="b")
        a.send(request("m", "set_model", model="x"))
        b.send(request("i", "interrupt", cancel_queued=True))
        child.request("interrupt")
        child.print({"type": "command_lifecycle", "command_uuid": "u-2", "state": "cancelled"})
        told = a.event("changed", what="prompt_cancelled")
        self.assertEqual((told["value"], told["by.name"]), ("u-2", "b"))

    def test_client_takes_its_prompt_back(self):
        """2.1.332 reports it before it answers; 2.1.197 does not name the prompt in its answer."""
        lifecycle = {"type": "command_lifecycle", "command_uuid": "u-2", "state": "cancelled"}
        for name, before, more in (("new", [lifecycle], {"message_uuid": "u-2"}), ("old", [], {})):
            with self.subTest(name):
                d, agent = self.start()
                a, b = d.attached(name, name="a"), d.attached(name)
                child = agent.child()
                a.send(user("one", uuid="u-1"), user("two", uuid="u-2"))
                child.wait(type="user", uuid="u-2")
                child.print(dict(user("one", uuid="u-1"), isReplay=True),
                            {"type": "system", "subtype": "init", "session_id": "c"})
                a.send(request("c", "cancel_async_message", message_uuid="u-2"))
                asked = child.request("cancel_async_message")
                child.print(*before)
                child.reply(asked, {"cancelled": True, **more})
                self.assertTrue(a.answer("c")["response.response.cancelled"])
                told = b.event("changed", what="prompt_cancelled")
                self.assertEqual((told["value"], told["by"]["name"]), ("u-2", "a"))
                child.print({"type": "result", "session_id": "c", "user_message_uuids": ["u-1"]})
                d.wait_state(name, "idle")
                self.assertEqual(len(b.events("changed")), 1)


class RetryTest(Case):
    """Repeated prompts."""

    def test_prompt_known_to_the_conversation_is_a_duplicate(self):
        d, _, child, a, b = self.open(2, profile={"prompts": "queue"})
        c = d.attached("s")
        child.prompted(a, "one", uuid="u-1")
        b.send(user("two", uuid="u-2"))
        until(lambda: d.call("plenum_queue", session="s")["prompts"], what="the prompt that is held")
        c.send(user("one", uuid="u-3"))
        c.half_close()
        child.print(dict(user("one", uuid="u-1"), isReplay=True),
                    {"type": "command_lifecycle", "command_uuid": "u-1", "state": "completed"},
                    {"type": "system", "subtype": "session_state_changed", "state": "idle"})
        self.assertEqual(a.error("duplicate_request")["uuid"], "u-1")
        child.wait(type="user", uuid="u-2")
        child.print({"type": "system", "subtype": "session_state_changed", "state": "running"},
                    {"type": "system", "subtype": "init", "session_id": "c", "user_message_uuids": ["u-2"]},
                    dict(user("two", uuid="u-2"), isReplay=True),
                    {"type": "result", "session_id": "c", "user_message_uuids": ["u-2"]},
                    {"type": "system", "subtype": "session_state_changed", "state": "idle"})
        self.assertEqual(b.event("turn_ended")["uuids"], ["u-2"])
        child.wait(type="user", uuid="u-3")
        child.print(dict(user("one", uuid="u-3"), isReplay=True),
                    {"type": "system", "subtype": "session_state_changed", "state": "idle"})
        self.assertEqual(c.error("duplicate_request")["uuid"], "u-3")
        c.wait_eof()
        d.wait_state("s", "idle")
        self.assertNone(b.events("error"))

    def test_prompt_that_never_ran_may_be_sent_again(self):
        _, agent, child, a = self.open(mode={"session_id": "conv-1"})
        child.prompted(a, "warm", uuid="u0")
        child.print(user("warm", uuid="u0", isReplay=True), {"type": "system", "subtype": "init", "session_id": "conv-1"},
                    dict(RESULT, user_message_uuids=["u0"]))
        a.wait(type="result")
        child.prompted(a, "x", uuid="u1")
        child.kill()
        a.error("child_exited", uuid="u1")
        a.send(user("x", uuid="u1"))
        agent.child().wait(type="user", uuid="u1")

    def test_retry_after_a_lost_connection(self):
        """C71: disconnected right after the write, sent again: A gets duplicate_request, B's other text runs under
        another uuid."""
        d, agent = self.start()
        uuid = "00000000-0000-4000-8000-000000000001"
        for name in (None, "a"):
            session = "s-%s" % name
            names = {"name": name} if name else {}
            a = d.attached(session, **names)
            child = agent.child()
            a.send(user("deploy", uuid=uuid))
            a.close()
            a = d.attached(session, **names)
            a.send(user("deploy", uuid=uuid))
            self.assertEqual(a.error("duplicate_request")["uuid"], uuid)
            b = d.attached(session, name="b")
            b.send(user("other", uuid=uuid))
            m = b.event("changed", what="uuid", was=uuid)
            child.wait(type="user", uuid=m["value"])
            self.assertEqual([m["message.content"] for m in child.seen(type="user")], ["deploy", "other"])

    def test_retry_before_the_daemon_has_seen_the_loss(self):
        """The lost connection still has lines to be read when the prompt comes again on the next one."""
        d, _, child, a = self.open()
        again, = connected(d, 1)
        with standstill(d):
            a.send(user("deploy", uuid="u1"), *(request("r%d" % n, "plenum_hello") for n in range(300)))
            a.close()
            again.ask("plenum_attach", session="s")
            again.send(user("deploy", uuid="u1"))
        self.assertEqual(again.error("duplicate_request")["uuid"], "u1")
        child.prompted(again, "other", uuid="u2")
        self.assertEqual([m["message.content"] for m in child.seen(type="user")], ["deploy", "other"])

    def test_half_closed_retry_waits_for_the_end(self):
        """C71: a client that repeats the prompt after a lost connection is notified of its end, also after its end of
        input."""
        for ending in ("result", "exit"):
            d, agent = self.start()
            a = d.attached(name="a")
            child = agent.child()
            child.prompted(a, "deploy", uuid="u")
            a.close()
            a = d.attached(name="a")
            a.send(user("deploy", uuid="u"))
            a.error("duplicate_request", uuid="u")
            a.half_close()
            until(lambda: not any(c["approve"] for c in d.call("plenum_status", session="s")["clients"]), what="its end of input")
            if ending == "result":
                child.print(dict(RESULT, user_message_uuids=["u"]))
                a.wait(type="result")
            else:
                child.kill()
                a.error("child_exited", uuid="u")
            a.wait_eof()
            self.assertEqual([m["uuid"] for m in child.log if m["type"] == "user"], ["u"])


class QueueTest(Case):
    """The profile queues prompts while a turn runs."""

    def test_queue_is_bounded(self):
        d, _, child, a, b = self.open(2, profile={"prompts": "queue"}, limits={"stdin_queue": "1M", "client_line": "1M"})
        child.prompted(a, "one", uuid="ua")
        b.send(user("x" * 600000, uuid="b1"), user("x" * 600000, uuid="b2"))
        b.error("busy")
        self.assertEqual([p["uuid"] for p in d.call("plenum_queue", session="s")["prompts"]], ["b1"])

    def test_interrupt_cancels_the_prompts_of_all_clients(self):
        _, _, child, a, b = self.open(2, mode={"control": True}, profile={"prompts": "queue"})
        child.prompted(a, "one", uuid="ua")
        b.send(user("two", uuid="ub"))
        b.sync()
        a.request("interrupt", cancel_queued=True, plenum_all=True)
        self.assertEqual(b.event("changed", what="prompt_cancelled")["value"], "ub")
        child.print(dict(RESULT, user_message_uuids=["ua"]))
        a.wait(type="result")
        child.mark(b)
        self.assertNone(child.seen(type="user", uuid="ub"))

    def test_next_prompt_follows_a_cancelled_one(self):
        _, _, child, a, b = self.open(2, profile={"prompts": "queue"})
        child.prompted(a, "one", uuid="ua")
        b.send(user("two", uuid="ub"))
        b.sync()
        child.print({"type": "command_lifecycle", "command_uuid": "ua", "state": "cancelled"})
        child.wait(type="user", uuid="ub")

    def test_queued_prompt_is_announced(self):
        """C37: all clients are notified of it and its sender; a later client finds it in the replay."""
        d, agent = self.start(profile={"prompts": "queue"})
        a, b, o = d.attached(name="a"), d.attached(name="b"), d.attached(role="observer")
        child = agent.child()
        child.prompted(a, "long job", uuid="ua")
        b.send(user("also this", uuid="ub"))
        for c in (a, b, o):
            self.assertEqual(c.event("changed", what="prompt_held", value="ub")["by.name"], "b")
        self.assertNone(child.seen(type="user", uuid="ub"))
        late = d.attached(replay="all")
        late.event("changed", what="prompt_held", value="ub")
        child.print(dict(RESULT, user_message_uuids=["ua"]))
        child.wait(type="user", uuid="ub")
        a.sync()
        self.assertEqual([m["value"] for m in a.events("changed", what="prompt_held")], ["ub"])

    def test_stop_cancels_queued_prompts(self):
        d, agent = self.start(mode={"control": ["interrupt"], "eof": 0.2}, profile={"prompts": "queue"})
        for stop in ("plenum_stop", "end_session"):
            with self.subTest(stop):
                a, b = d.client(), d.client()
                a.attach(stop)
                b.attach(stop, name="b")
                child = agent.child()
                child.prompted(a, "one", uuid="u-1")
                b.send(user("two", uuid="u-2"))
                b.sync()
                for verb, want in (("plenum_queue", [("u-2", "held")]),
                                   ("plenum_status", [("u-1", "sent"), ("u-2", "held")])):
                    self.assertEqual([(p["uuid"], p["state"]) for p in a.request(verb)["prompts"]], want)
                starts = agent.starts
                a.request(stop)
                b.event("changed", what="prompt_cancelled", value="u-2")
                b.event("child_exited")
                b.event("session_state", state="asleep")
                self.assertEqual(agent.starts, starts)
                self.assertNone(child.seen(uuid="u-2"))

    def test_error_names_the_refused_prompt(self):
        d, agent = self.start(limits={"stdin_queue": "64K"})
        a, o = d.client(), d.client()
        a.attach("work")
        o.attach("work", role="observer")
        o.send(user("x", uuid="u-o"))
        o.error("not_allowed", uuid="u-o", line=2)
        child = agent.child()
        child.pause()
        child.written()
        for n in range(20):
            a.send(user("x" * 20000, uuid="u-%d" % n))
        self.assertEqual(a.error("busy")["line"], int(a.seen(event="error")[0]["uuid"][2:]) + 2)
        child.resume()


class UuidTest(Case):
    def test_uuid_with_escapes(self):
        _, _, child, a, b = self.open(2)
        a.raw(b'{"type":"user","uuid":"\\u0061bc","message":{"role":"user","content":"x"}}\n')
        child.wait(type="user", uuid="abc")
        b.send(user("other", uuid="abc"))
        other = child.wait(type="user", message__content="other")
        self.assertNotEqual(other["uuid"], "abc")
        child.print(dict(RESULT, user_message_uuids=["abc"]))
        self.assertEqual(a.event("turn_ended")["uuids"], ["abc"])


if __name__ == "__main__":
    unittest.main()
