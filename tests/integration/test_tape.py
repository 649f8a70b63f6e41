# SPDX-License-Identifier: MIT
"""The tape: replay, tags, filters, lag, and its bounds (contract 3.2, 7, 9.2; cases C36 C67)."""
import os
import socket
import threading
import time
import unittest

from harness import RESULT, TIMEOUT, Case, Timeout, allow, hook, matches, perm, until, user


def numbers(client):
    return [m["n"] for m in client.seen(type="x")]


def x(n, **more):
    return dict({"type": "x", "n": n}, **more)


class ReplayTest(Case):
    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a = self.d.attached(tag=True)
        self.child = self.agent.child()
        self.child.print(*[x(n, uuid="u%d" % n) for n in range(10)])
        self.a.wait(type="x", n=9)
        self.seqs = {m["n"]: m["plenum_seq"] for m in self.a.seen(type="x")}

    def replayed(self, replay, **members):
        c = self.d.attached(replay=replay, **members)
        self.child.mark(c)
        return c, numbers(c)

    def test_none_and_all(self):
        self.assertEqual(self.replayed("none")[1], [])
        self.assertEqual(numbers(self.d.attached()), [])
        c, got = self.replayed("all")
        self.assertEqual(got, list(range(10)))
        self.assertIs(c.attached["replay_cut"], False)

    def test_last(self):
        c = self.d.attached(replay={"last": 3}, tag=True, role="observer")
        next_seq = c.attached["seq"]
        self.child.mark(c)
        before = [m["plenum_seq"] for m in c.log if m["plenum_seq"] is not None and m["plenum_seq"] < next_seq]
        self.assertEqual(before, list(range(next_seq - 3, next_seq)))
        self.assertEqual(self.replayed({"last": 0})[1], [])
        self.assertEqual(self.replayed({"last": 100000})[1], list(range(10)))

    def test_after(self):
        c, got = self.replayed({"after": self.seqs[6]})
        self.assertEqual(got, [7, 8, 9])
        self.assertIs(c.attached["replay_cut"], False)
        self.assertEqual(self.replayed({"after": self.seqs[9]})[1], [])
        self.assertEqual(self.replayed({"after": self.seqs[0]})[1], list(range(1, 10)))

    def test_after_uuid(self):
        self.assertEqual(self.replayed({"after_uuid": "u6"})[1], [7, 8, 9])
        self.assertEqual(self.replayed({"after_uuid": "u9"})[1], [])

    def test_after_a_uuid_that_is_not_there(self):
        c, got = self.replayed({"after_uuid": "nonsense"})
        self.assertIs(c.attached["replay_cut"], True)
        self.assertEqual(got, list(range(10)))

    def test_bad_replays(self):
        for bad in ("some", 5, {}, {"last": -1}, {"after": "x"}, [], True, {"last": 1, "after": 1},
                    {"last": 1, "more": 1}):
            c = self.d.client()
            e = self.assertRefused("bad_request", c.attach, "s", replay=bad)
            self.assertIn("replay", e.text)

    def test_bytes_and_tags(self):
        raw = b'{ "type":"y","n":1e400,"s":"\\ud800"}'
        self.child.print(raw + b"\n")
        tagged = self.a.wait(type="y").raw
        seq = self.a.log[-1]["plenum_seq"]
        self.assertEqual(tagged, b'{"plenum_seq":%d, "type":"y","n":1e400,"s":"\\ud800"}' % seq)
        c = self.d.attached(replay={"after": seq - 1})
        self.assertEqual(c.wait(type="y").raw, raw)
        c = self.d.attached(replay={"after": seq - 1}, tag=True)
        self.assertEqual(c.wait(type="y").raw, tagged)
        self.child.print(b"{}\n")
        self.a.wait(lambda m: m.raw == b'{"plenum_seq":%d}' % m["plenum_seq"] if m["plenum_seq"] is not None else False)

    def test_all_lines_of_the_tape_are_tagged_one_by_one(self):
        self.a.send(user("x", uuid="u"))
        self.child.wait(type="user")
        self.child.print(b"stray\n", dict(RESULT, user_message_uuids=["u"]), x(10))
        self.a.wait(type="x", n=10)
        tagged = [m for m in self.a.log if m["plenum_seq"] is not None]
        self.assertEqual([m["plenum_seq"] for m in tagged], list(range(tagged[0]["plenum_seq"], tagged[0]["plenum_seq"] + len(tagged))))
        events = {m["event"] for m in tagged if m["subtype"] == "plenum_event"}
        self.assertTrue({"session_state", "stray_output"} <= events, events)
        for m in tagged:
            self.assertTrue(m.raw.startswith(b'{"plenum_seq":'))

    def test_private_lines_are_not_replayed(self):
        self.child.print(perm("k-1"))
        self.a.send(allow(self.a.wait(type="control_request")["request_id"]))
        self.child.answer("k-1")
        self.a.send(b"nonsense\n")
        self.a.error("bad_line")
        self.child.print(perm("k-2"))
        self.a.wait(type="control_request")
        c, _ = self.replayed("all")
        self.assertEqual([m["request.tool_use_id"] for m in c.seen(type="control_request")], ["toolu_k-2"])
        self.assertNone(c.seen(type="control_cancel_request"))
        self.assertNone(c.events("error"))
        self.assertEqual(len(c.attached["pending"]), 1)

    def test_reconnects_without_a_hole_or_a_double(self):
        got, last = [], self.seqs[9]
        self.child.flood(b'{"type":"x","n":@N@}', 3000, first=10, rate=2000)
        while not got or got[-1] < 3009:
            c = self.d.client()
            answer = c.attach("s", replay={"after": last}, tag=True)
            self.assertIs(answer["replay_cut"], False)
            c.wait(type="x")
            for _ in range(8):
                c.fill(0.02)
            for m in c.log:
                if m["plenum_seq"] is not None:
                    self.assertEqual(m["plenum_seq"], last + 1)
                    last = m["plenum_seq"]
                    if m["type"] == "x":
                        got.append(m["n"])
            c.reset()
        self.assertEqual(got, list(range(10, 3010)))


class MiddleTest(Case):
    def test_attach_in_the_middle(self):
        """C36."""
        d, _, child, a = self.open()
        child.flood(b'{"type":"x","n":@N@}', 100, first=1, rate=2000)
        child.print(perm("k-1", "first"))
        child.flood(b'{"type":"x","n":@N@}', 100, first=101, rate=2000)
        child.print(perm("k-2", "second"))
        child.flood(b'{"type":"x","n":@N@}', 800, first=201, rate=2000)
        a.send(allow(a.wait(type="control_request")["request_id"], "first"))
        child.answer("k-1")
        a.wait(type="x", n=500)
        b = d.attached(replay="all")
        b.wait(type="x", n=1000)
        a.wait(type="x", n=1000)
        for c in (a, b):
            self.assertEqual(numbers(c), list(range(1, 1001)))
        asks = b.seen(type="control_request")
        self.assertEqual([m["request.input.command"] for m in asks], ["second"])
        self.assertEqual(b.attached["pending"], [asks[0]["request_id"]])

    def test_many_at_once(self):
        d, _, child, a = self.open()
        child.flood(b'{"type":"x","n":@N@}', 4000, rate=4000)
        clients = []
        for i in range(20):
            a.wait(type="x", n=i * 150)
            clients.append(d.attached(replay="all"))
        for c in clients + [a]:
            c.wait(type="x", n=3999)
            self.assertEqual(numbers(c), list(range(4000)))


class CutTest(Case):
    def test_lines(self):
        d, agent = self.start(limits={"tape_lines": "100"})
        a = d.attached(tag=True)
        child = agent.child()
        for n in range(0, 300, 20):
            child.print(*[x(i) for i in range(n, n + 20)])
            a.wait(type="x", n=n + 19)
        seqs = {m["n"]: m["plenum_seq"] for m in a.seen(type="x")}
        for replay in ("all", {"after": seqs[10]}, {"last": 1000}):
            c = d.attached(replay=replay, tag=True)
            c.wait(type="x", n=299)
            got = numbers(c)
            self.assertEqual(got, list(range(got[0], 300)))
            self.assertGreater(len(got), 80)
            self.assertLessEqual(len(got), 100)
            self.assertIs(c.attached["replay_cut"], True, replay)
            self.assertEqual([m["plenum_seq"] for m in c.log if m["plenum_seq"] is not None][0], c.attached["oldest_seq"])
        c = d.attached(replay={"after": seqs[290]})
        self.assertIs(c.attached["replay_cut"], False)
        self.assertEqual(c.wait(type="x")["n"], 291)

    def test_bytes(self):
        d, _, child, a = self.open(limits={"tape_bytes": "1M"})
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 300, pad=10000)
        a.wait(type="x", n=299)
        c = d.attached(replay="all")
        c.wait(type="x", n=299)
        got = numbers(c)
        self.assertEqual(got, list(range(got[0], 300)))
        self.assertTrue(80 <= len(got) <= 110, len(got))
        self.assertIs(c.attached["replay_cut"], True)


class FilterTest(Case):
    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a = self.d.attached()
        self.child = self.agent.child()

    def feed(self, *clients):
        self.child.print({"type": "assistant", "n": 1}, {"type": "stream_event", "n": 2}, user("t", n=3),
                         user("r", n=4, isReplay=True), {"type": "system", "subtype": "status", "n": 5}, perm("k-1"), dict(RESULT, n=6))
        for c in clients:
            c.wait(type="result")

    def got(self, c):
        return [m["n"] for m in c.log if m["n"] is not None]

    def test_types(self):
        c = self.d.attached(types=["result", "user"])
        self.feed(c)
        self.assertEqual(self.got(c), [3, 4, 6])
        c.wait(type="control_request")
        b = self.d.attached(name="new")
        c.event("attached", client__name="new")
        c.send(allow(c.seen(type="control_request")[0]["request_id"]))
        c.event("settled")
        c.answer(c.ask("plenum_hello"))
        b.close()

    def test_partial(self):
        c = self.d.attached(partial=False)
        self.feed(c)
        self.assertEqual(self.got(c), [1, 3, 4, 5, 6])

    def test_echo(self):
        c = self.d.attached(echo=False)
        self.feed(c)
        self.assertEqual(self.got(c), [1, 2, 3, 5, 6])

    def test_everything_by_default(self):
        c = self.d.attached()
        self.feed(c)
        self.assertEqual(self.got(c), [1, 2, 3, 4, 5, 6])

    def test_in_the_replay_too(self):
        self.feed(self.a)
        c = self.d.attached(replay="all", types=["result"])
        c.wait(type="result")
        self.assertEqual(self.got(c), [6])
        c = self.d.attached(replay="all", partial=False, echo=False)
        c.wait(type="result")
        self.assertEqual(self.got(c), [1, 3, 5, 6])

    def test_filters_change(self):
        c = self.d.attached()
        c.request("plenum_register", types=["result"], partial=False)
        self.feed(c)
        self.assertEqual(self.got(c), [6])

    def test_bad_filters(self):
        for bad in ({"types": "result"}, {"types": [5]}, {"partial": "no"}, {"tag": 1}, {"echo": "x"}, {"on_lag": "later"},
                    {"role": "boss"}, {"approve": "yes"}, {"approve": {"tools": "Bash"}}, {"wake": 2}, {"name": 5}):
            c = self.d.client()
            e = self.assertRefused("bad_request", c.attach, "s", **bad)
            self.assertIn(list(bad)[0], e.text)


class LagTest(Case):
    LINES, PAD = 6000, 1000

    def stalled(self, limits=None, first=(), **members):
        """A client that does not read while 6 MB pass a tape of 1 MB; the first does read. It sees every line if the
        machine is fast enough, and is guaranteed to only if it requests a wait."""
        d, agent = self.start(limits=dict({"tape_bytes": "1M"}, **(limits or {})))
        self.d = d
        self.a = d.attached(**dict(first))
        self.b = d.attached(**members)
        self.child = agent.child()
        self.child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', self.LINES, pad=self.PAD)
        self.child.print(RESULT)

    def test_gap(self):
        self.stalled(tag=True, first={"on_lag": "wait"})
        self.a.slurp(b'"type":"result"')
        self.assertEqual(numbers(self.a), list(range(self.LINES)))
        self.b.wait(type="result")
        gaps = self.b.events("gap")
        self.assertTrue(gaps)
        self.whole(self.b)

    def whole(self, c):
        """Tagged lines and gap notices together are a sequence without a hole."""
        expected = None
        self.assertNone(c.seen(lambda m: m.obj is None), "half a line")
        story = [(m["from"], m["to"]) if m["event"] == "gap" else (m["plenum_seq"],) * 2 for m in c.log
                 if m["event"] == "gap" or m["plenum_seq"] is not None]
        for i, (first, last) in enumerate(story):
            if expected is not None:
                self.assertEqual(first, expected, "a hole that nobody told: %s" % story[max(0, i - 3):i + 4])
            expected = last + 1

    def test_who_reads_on_loses_nothing(self):
        """Also without a request for it: the child is read as fast as its fastest reader. A reader paused for a second
        does not count, so a run in which the machine paused this program proves nothing, and is repeated."""
        for _ in range(5):
            self.stalled()
            longest, last = 0.0, time.monotonic()
            while not any(m["type"] == "result" for m in self.a.log[-50:]):
                self.assertTrue(self.a.fill(TIMEOUT), "nothing comes any more")
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
            if longest < 0.5:
                self.assertEqual(numbers(self.a), list(range(self.LINES)))
                return

    def test_a_gap_is_told_without_tags_too(self):
        self.stalled()
        self.a.wait(type="result")
        self.b.wait(type="result")
        self.assertTrue(self.b.events("gap"))
        got = numbers(self.b)
        self.assertEqual(got, sorted(set(got)))
        self.assertEqual(got[-1], self.LINES - 1)
        self.assertLess(len(got), self.LINES)

    def test_close(self):
        self.stalled(on_lag="close")
        self.a.wait(type="result")
        self.b.wait_eof()
        self.assertIn(self.b.log[-1]["event"], ("gap", "lag", "error"), self.b.log[-1])
        self.assertNone(self.b.seen(lambda m: m.obj is None), "half a line")
        self.assertNone(self.b.seen(type="result"))
        got = numbers(self.b)
        self.assertEqual(got, list(range(len(got))))
        self.assertEqual(self.d.sessions()["s"]["attachments"], 1)

    def test_wait(self):
        """Both request it: the loop below reads them in turn, and either may be the slower one."""
        self.stalled(on_lag="wait", first={"on_lag": "wait"}, limits={"lag_wait": "10min"})
        with self.assertRaises(Timeout):
            self.a.wait(type="result", timeout=0.7)
        while not (self.a.seen(type="result") and self.b.seen(type="result")):
            self.b.fill(0.005)
        for c in (self.a, self.b):
            self.assertEqual(numbers(c), list(range(self.LINES)))
            self.assertNone(c.events("gap"))

    def test_wait_is_bounded(self):
        self.stalled(on_lag="wait", first={"tag": True}, limits={"lag_wait": "300ms"})
        self.a.slurp(b'"type":"result"')
        self.whole(self.a)
        self.b.wait(type="result")
        self.assertTrue(self.b.events("gap"))

    def sip(self, size):
        try:
            self.b.take(self.b.sock.recv(size, socket.MSG_DONTWAIT))
        except BlockingIOError:
            pass

    def test_a_trickle_is_not_waited_for(self):
        self.stalled(on_lag="wait", first={"tag": True}, limits={"lag_wait": "300ms"})
        while not self.a.seen(type="result"):
            self.a.fill(0.01)
            self.sip(1024)
        self.whole(self.a)
        self.b.wait(type="result")
        self.assertTrue(self.b.events("gap"))

    def test_a_slow_reader_is_waited_for(self):
        self.stalled(on_lag="wait", limits={"lag_wait": "10min"})
        while not self.b.seen(type="result"):
            self.a.fill(0.002)
            self.sip(16384)
        self.assertEqual(numbers(self.b), list(range(self.LINES)))
        self.assertNone(self.b.events("gap"))

    def test_a_tape_of_few_lines_is_waited_for_too(self):
        """Many short lines fill it long before their bytes do; one read of the child must not bring more than it
        holds."""
        for lines in (50, 1000):
            d, agent = self.start(limits={"tape_lines": str(lines), "lag_wait": "10min"})
            a, b = d.attached(), d.attached(on_lag="wait", tag=True)
            child = agent.child()
            child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 20000, pad=100)
            child.print(RESULT)
            with self.assertRaises(Timeout):
                a.wait(type="result", timeout=0.5)
            b.wait(type="result")
            self.assertEqual(numbers(b), list(range(20000)))
            self.assertNone(b.events("gap"))

    def test_one_that_waits_and_leaves(self):
        self.stalled(on_lag="wait", limits={"lag_wait": "10min"})
        with self.assertRaises(Timeout):
            self.a.wait(type="result", timeout=0.5)
        self.b.reset()
        self.a.wait(type="result")

    def test_requests_are_not_lost_in_a_gap(self):
        d, agent = self.start(limits={"tape_bytes": "256K"})
        a, b = d.attached(approve=False), d.attached(name="b")
        child = agent.child()
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 2000, pad=1000)
        child.print(perm("k-1", "early"))
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 2000, pad=1000, first=2000)
        child.print(RESULT)
        a.wait(type="result")
        b.wait(type="result")
        self.assertTrue(b.events("gap"))
        asks = b.seen(type="control_request")
        self.assertEqual(len(asks), 1)
        b.send(allow(asks[0]["request_id"], "early"))
        child.answer("k-1")

    def test_answers_are_not_lost_in_a_gap(self):
        _, _, child, a, b = self.open(2, limits={"tape_bytes": "256K"})
        b.ask("plenum_hello")
        b.send({"type": "control_request", "request_id": "b1", "request": {"subtype": "mcp_status"}})
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 4000, pad=1000)
        child.reply(child.request("mcp_status"), {"n": 1})
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 4000, pad=1000)
        child.print(RESULT)
        a.wait(type="result")
        self.assertEqual(b.answer("b1")["response.response"], {"n": 1})

    def test_soft_limit(self):
        d, agent = self.start(limits={"client_lag_soft": "64K", "client_lag_soft_time": "200ms"})
        a, b = d.attached(), d.attached(on_lag="close")
        child = agent.child()
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 3000, pad=1000)
        child.print(RESULT)
        a.wait(type="result")
        until(lambda: d.sessions()["s"]["attachments"] == 1, what="the stalled client to be closed")
        b.wait_eof()
        self.assertTrue(b.events("lag"))

    def test_who_is_waited_for_is_named(self):
        """At the soft limit, while the child is delayed, and when the wait ends with a gap."""
        d, agent = self.start(limits={"client_lag_soft": "64K", "client_lag_soft_time": "100ms", "lag_wait": "1s",
                                      "tape_bytes": "256K"})
        a, b = d.attached(types=["result"]), d.attached(on_lag="wait")
        child = agent.child()
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 4000, pad=1000)
        child.print(RESULT)
        until(lambda: "to be waited for" in d.log(), what="the culprit in the log")
        a.wait(type="result")
        b.wait(type="result")
        self.assertEqual(len(b.events("lag")), 1)
        self.assertTrue(b.events("gap"))
        for text in ("to be waited for", "overtaken"):
            line = next(line for line in d.log().splitlines() if text in line)
            self.assertRegex(line, r" uid=%d pid=%d program=\S+ bytes=\d+ ms=\d+" % (os.getuid(), os.getpid()))

    def test_who_holds_the_child_up_is_named_at_once(self):
        """By default long before the soft limit, which a client with a wait does not even reach."""
        d, agent = self.start(limits={"tape_bytes": "1M", "client_lag_soft": "512K", "lag_wait": "30s"})
        a, b = d.attached(types=["result"]), d.attached(on_lag="wait", name="lazy")
        child = agent.child()
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 3000, pad=1000)
        child.print(RESULT)
        until(lambda: "held up for a client" in d.log(), what="the culprit in the log")
        self.assertFalse(a.seen(type="result"))
        self.assertEqual(d.log().count("held up for a client"), 1)
        b.wait(type="result")
        a.wait(type="result")
        self.assertFalse(b.events("gap") + b.events("lag"))

    def test_a_short_pause_loses_nothing(self):
        _, _, child, a, b = self.open(2, limits={"client_lag_soft": "1M", "client_lag_soft_time": "30s"})
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 5000, pad=1000)
        child.print(RESULT)
        a.wait(type="result")
        b.wait(type="result")
        self.assertEqual(numbers(b), list(range(5000)))
        self.assertNone(b.events("gap"))

    def test_lag_wait_loses_no_long_line(self):
        d, agent = self.start(limits={"tape_bytes": "256K"})
        a = d.attached("s", on_lag="wait", tag=True)
        child = agent.child()
        child.print(*[{"type": "x", "n": n, "text": "y" * 700000} for n in range(12)])
        got = [a.wait(lambda m: m["type"] == "x" or m["event"] == "gap") for _ in range(12)]
        self.assertEqual([m["n"] for m in got], list(range(12)))

    def test_lagging_client_learns_that_its_session_is_removed(self):
        d, agent = self.start(limits={"tape_bytes": "1M"})
        a, b = d.attached(on_lag="close"), d.attached()
        child = agent.child()
        child.flood(b'{"type":"x","p":"@P@"}', 6000, pad=2000)
        child.print(RESULT)
        b.wait(type="result")
        d.call("plenum_stop", session="s", how="kill", forget=True)
        until(lambda: not d.sessions(), what="the session to be gone")
        a.event("session_removed")

    def test_gaps_name_each_missing_line(self):
        """C15: a client with on_lag wait loses nothing; for any other the gaps name each missing line."""
        d, agent = self.start(limits={"lag_wait": "10min"})
        a, b = d.attached(), d.attached(on_lag="wait")
        child = agent.child()
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 20000, pad=1000)
        child.print(RESULT)
        done = threading.Thread(target=lambda: a.wait(type="result"))
        a.wait(type="x", n=3000)  # a quarter of the tape is 4 MiB
        done.start()
        b.wait(type="result")
        done.join()
        self.assertEqual([m["n"] for m in b.log if m["type"] == "x"], list(range(20000)))
        d, agent = self.start()
        a, b = d.attached(), d.attached(tag=True)
        child = agent.child()
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 20000, pad=1000)
        child.print(RESULT)
        a.wait(type="result")
        b.wait(type="result")
        numbers = [m["plenum_seq"] for m in b.log if m["plenum_seq"] is not None]
        missing = set(range(numbers[0], numbers[-1] + 1)) - set(numbers)
        told = set()
        for m in b.events("gap"):
            told |= set(range(m["from"], m["to"] + 1))
        self.assertEqual(missing, told)

    def test_lag_event_precedes_gap_and_close(self):
        d, agent = self.start(limits={"client_lag_soft": "64K", "client_lag_soft_time": "100ms"})
        a, gap, closed = d.client(), d.client(), d.client()
        a.attach("work")
        gap.number = gap.attach("work", on_lag="gap")["client"]
        closed.number = closed.attach("work", on_lag="close")["client"]
        child = agent.child()
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 500, pad=5000, rate=1000)
        a.event("lag")
        a.event("lag")
        closed.wait_eof()
        gap.event("gap")
        for c in (closed, gap):
            own = [m for m in c.events() if m["event"] == "gap" or matches(m["client"], {"client": c.number})]
            self.assertEqual([m["event"] for m in own[:2]], ["lag", "gap"])


class NumbersTest(Case):
    """The number of a line is unique, also across earlier sessions of the same name."""

    def life(self, d, agent, lines):
        """Run the session with some lines on its tape; return the number of the last one."""
        a = d.attached("work", tag=True)
        child = agent.child()
        for i in range(lines):
            child.print({"type": "x", "n": i})
        last = a.wait(type="x", n=lines - 1)["plenum_seq"]
        a.close()
        return last

    def forgotten(self, d):
        b = d.attached("work")
        b.request("plenum_stop", how="kill", forget=True)
        b.event("session_removed")
        b.close()

    def test_a_number_of_a_session_that_was_forgotten(self):
        d, agent = self.start()
        last = self.life(d, agent, 5)
        self.forgotten(d)
        self.life(d, agent, 20)  # now it has more lines than the old one had
        c = d.attached("work", replay={"after": last}, tag=True)
        self.assertIs(c.attached["replay_cut"], True)
        self.assertGreater(c.attached["oldest_seq"], last)
        c.wait(type="x", n=19)
        self.assertEqual([m["n"] for m in c.seen(type="x")], list(range(20)))
        self.assertEqual([m["plenum_seq"] for m in c.log if m["plenum_seq"] is not None][0], c.attached["oldest_seq"])

    def test_the_same_with_a_restart_between(self):
        d, agent = self.start()
        last = self.life(d, agent, 5)
        self.forgotten(d)
        d.stop()
        d.start()
        self.life(d, agent, 20)
        c = d.attached("work", replay={"after": last})
        self.assertIs(c.attached["replay_cut"], True)
        self.assertGreater(c.attached["oldest_seq"], last)

    def test_a_first_session_begins_at_one(self):
        d, agent = self.start()
        self.assertEqual(d.attached("work").attached["oldest_seq"], 1)
        self.assertEqual(d.attached("other").attached["oldest_seq"], 1)

    def test_the_same_where_the_table_is_lost(self):
        """Then the earlier numbers are unknown."""
        d, agent = self.start()
        last = self.life(d, agent, 5)
        self.forgotten(d)
        d.stop()
        with open(d.state + "/plenum/sessions.json", "w") as f:
            f.write("{")
        d.start()
        self.life(d, agent, 20)
        c = d.attached("work", replay={"after": last})
        self.assertIs(c.attached["replay_cut"], True)

    def test_a_new_session_has_lost_nothing(self):
        d, agent = self.start()
        self.life(d, agent, 5)
        for replay in ("all", {"after": 0}, {"last": 1000}):
            c = d.attached("work", replay=replay)
            self.assertIs(c.attached["replay_cut"], False, replay)
            c.wait(type="x", n=4)
            self.assertEqual([m["n"] for m in c.seen(type="x")], list(range(5)), replay)
        d.call("plenum_upgrade")
        self.assertIs(d.attached("work", replay="all").attached["replay_cut"], False)

    def test_the_clock_was_set_back_before_a_restart(self):
        """The table has the last number."""
        d, agent = self.start(mode={"session_id": "conv-1"})
        self.life(d, agent, 5)
        d.stop()
        ahead = d.table()[0]["seq"] + 10 ** 13  # 115 days
        d.change_table(lambda o: "name" in o and o.update(seq=ahead))
        d.start()
        c = d.attached("work", replay={"after": ahead})
        self.assertIs(c.attached["replay_cut"], True)
        self.assertGreater(c.attached["oldest_seq"], ahead)
        self.assertLess(c.attached["oldest_seq"], 2 ** 53)  # exact in JavaScript

    def test_number_from_before_a_restart_is_not_replayed(self):
        """A number from before the restart does not name a line of the tape after it."""
        d, agent = self.start(mode={"user": True, "session_id": "conv-1"})
        a = d.attached()
        agent.child()
        a.send(user("x"))
        a.wait(type="result")
        d.kill9()
        d.start()
        a = d.attached(wake=True)
        child = agent.child()
        child.mark(a)
        b = d.attached(replay={"after": 2})
        self.assertIs(b.attached["replay_cut"], True)

    def test_numbers_grow_after_a_burst_and_a_kill(self):
        """More lines than milliseconds: the numbers after the restart begin after them."""
        d, agent = self.start(mode={"session_id": "conv-1"})
        d.attached()
        agent.child().kill()
        d.wait_state("s", "asleep", "failed")
        d.kill9()
        d.start()
        a = d.attached(wake=True, tag=True, on_lag="wait")
        child = agent.child()
        child.flood(b'{"type":"x","n":@N@}', 20000)
        last = a.wait(type="x", n=19999)["plenum_seq"]
        d.kill9()
        d.start()
        self.assertGreater(d.call("plenum_status", session="s")["oldest_seq"], last)


class MemoryTest(Case):
    def test_long_sessions(self):
        """C67: bytes, ids and attachments are bounded."""
        d, _, child, a = self.open(limits={"tape_bytes": "4M"})
        child.mark(a)

        def passes(count, pad):
            child.flood(b'{"type":"y","n":@N@,"p":"@P@"}', count, pad=pad)
            child.print(RESULT)
            while not any(m["type"] == "result" for m in a.log):
                self.assertTrue(a.fill(TIMEOUT), "nothing comes any more")
                if len(a.log) > 1000:
                    del a.log[:-100]
            del a.log[:], a.inbox[:]

        passes(5000, 2000)
        flat = d.rss()
        passes(30000, 2000)
        passes(12, 8 << 20)
        passes(3000, 2000)
        until(lambda: d.rss() < flat + 24 * 1024, what="memory to be flat: %d KiB first, %d now" % (flat, d.rss()))

    def test_settled_requests(self):
        d, agent = self.start(limits={"tape_bytes": "1M", "tape_lines": "1000"})
        a = d.attached(approve=True)
        child = agent.child()

        def round_of(n):
            child.print(*[perm("k-%d" % i, "c") for i in range(n)])
            for _ in range(n):
                a.send(allow(a.wait(type="control_request")["request_id"], "c"))
            until(lambda: len(child.log) >= n)
            for _ in range(n):
                a.event("settled")
            del a.log[:], a.inbox[:], child.log[:], child.inbox[:]

        for _ in range(3):
            round_of(500)
        flat = d.rss()
        for _ in range(6):
            round_of(500)
        until(lambda: d.rss() < flat + 4096, what="memory to be flat: %d KiB first, %d now" % (flat, d.rss()))

    def test_comings_and_goings(self):
        d, agent = self.start(limits={"tape_lines": "1000"})
        d.attached()
        agent.child()

        def visits(n):
            def some():
                for _ in range(n // 4):
                    c = d.client()
                    c.attach("s")
                    c.close()

            threads = [threading.Thread(target=some) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()

        visits(400)
        flat = d.rss()
        visits(1200)
        until(lambda: d.rss() < flat + 2048, what="memory to be flat: %d KiB first, %d now" % (flat, d.rss()))


class HookReplayTest(Case):
    def test_an_open_hook_is_the_owners_alone(self):
        d, agent = self.start()
        a = d.attached(name="a")
        child = agent.child()
        a.initialize({"PreToolUse": [{"hookCallbackIds": ["h"]}]})
        got = until(lambda: [m for m in child.seen(request__subtype="initialize") if (m["request.hooks"] or {}).get("PreToolUse")])
        child.print(hook("k-1", got[-1]["request.hooks"]["PreToolUse"][0]["hookCallbackIds"][0]))
        a.wait(type="control_request")
        b = d.attached(replay="all")
        child.mark(b)
        self.assertEqual(b.attached["pending"], [])
        self.assertNone(b.seen(type="control_request"))


if __name__ == "__main__":
    unittest.main()
