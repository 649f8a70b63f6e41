# SPDX-License-Identifier: MIT
"""Slow readers, full pipes, and the end of a client's input (contract 7, 9.2; cases C15 C19 C39)."""
import os
import random
import threading
import time
import unittest

from harness import QUICK, RESULT, TIMEOUT, Case, Timeout, dump, init, perm, request, until, user
from standstill import standstill

WATCH = {"PostToolUse": [{"matcher": None, "hookCallbackIds": ["h0"]}]}  # not a guard: removed with its owner


class StalledTest(Case):
    def run_of(self, with_stalled):
        """The reading client requests on_lag wait, or a pause of this program would be a gap; the other does not."""
        d, agent = self.start(limits={"lag_wait": "10min"})
        a = d.attached(on_lag="wait")
        b = d.attached() if with_stalled else None
        child = agent.child()
        child.mark(a)
        before, cpu = d.rss(), d.cpu()
        begun = time.monotonic()
        child.flood(b'{"type":"stream_event","n":@N@,"p":"@P@"}', 15000, pad=4000)
        child.print(RESULT)
        total, peak, tail = 0, before, b""
        while b'"type":"result"' not in tail:
            data = a.sock.recv(1 << 20)
            total += len(data)
            tail = tail[-200:] + data
            if total % 7 == 0:
                peak = max(peak, d.rss())
            self.assertLess(time.monotonic() - begun, 5 * TIMEOUT)
        took = d.cpu() - cpu
        peak = max(peak, d.rss())
        self.assertGreater(total, 60e6)
        return d, b, took, peak - before

    def test_one_stalled_client_slows_nobody(self):
        """The others do not wait for it, or this would take ten minutes; and it makes no work."""
        _, _, alone, _ = self.run_of(False)
        d, b, beside, grown = self.run_of(True)
        self.assertLess(beside, alone * 3 + 1.0, "seconds of the processor")
        self.assertLess(grown, 64 * 1024, "KiB for a tape of 16 MiB")
        b.wait(type="result")
        self.assertTrue(b.events("gap"))
        self.assertNone(b.seen(lambda m: m.obj is None))

    def test_other_sessions_go_on(self):
        d, agent, other = self.start(agents=("agent", "other"))
        a = d.attached()
        b = d.attached("t", profile="other")
        child, second = agent.child(), other.child()
        child.flood(b'{"type":"stream_event","n":@N@,"p":"@P@"}', 1000000, pad=4000)  # for longer than the test takes
        a.wait(type="stream_event")
        for _ in range(20):
            second.mark(b)
        self.assertFalse(a.seen(type="stream_event", n=999999))
        a.close()

    def test_a_stalled_approver_does_not_hold_the_prompt(self):
        _, _, child, a, b = self.open(2)
        child.flood(b'{"type":"x","p":"@P@"}', 20000, pad=2000)
        child.print(perm("k-1"))
        rid = a.wait(type="control_request")["request_id"]
        a.send({"type": "control_response", "response": {"subtype": "success", "request_id": rid, "response": {"behavior": "allow"}}})
        child.answer("k-1")
        self.assertTrue(b)

    def test_answers_to_a_client_that_does_not_read_are_bounded(self):
        """A client that sends requests indefinitely and never reads does not use up the daemon's memory."""
        d, agent = self.start()
        a = d.attached()
        before = d.rss()
        line = dump(request("i", "plenum_list")) + b"\n"
        sent, idle = 0, 0
        while sent < 60 << 20 and idle < 20:
            n = a.try_raw(line * 500)
            sent += n
            idle = 0 if n else idle + 1
            if not n:
                time.sleep(0.01)
        self.assertLess(d.rss() - before, 48 * 1024)
        d.call("plenum_hello")
        a.close()


class SteadyTest(Case):
    """A continuous flow requests no memory from the kernel; it is returned in a pause."""

    SHORT, LONG = b'{"type":"x","n":@N@,"p":"@P@"}', b'{"type":"y","n":@N@,"p":"@P@"}'

    def relay(self, a, child, megabytes):
        """Relay this much through the daemon: deltas, texts, and tool results of 200 KB."""
        for _ in range(megabytes // 4):
            child.flood(self.SHORT, 2000, pad=300)
            child.flood(self.SHORT, 500, pad=2200)
            child.flood(self.LONG, 11, pad=200000)
        child.print(RESULT)
        total, tail = 0, b""
        while b'"type":"result"' not in tail:
            data = a.sock.recv(1 << 20)
            self.assertTrue(data, "the daemon closed the connection")
            total += len(data)
            tail = tail[-200:] + data
        self.assertGreater(total, megabytes * 950000)

    def faults(self, d, a, child, megabytes):
        """Return the page faults of a flow without a pause: on a busy machine there may be one, and then memory goes
        back."""
        least = 1 << 30
        for _ in range(3):
            before = d.faults()
            self.relay(a, child, megabytes)
            least = min(least, d.faults() - before)
        return least

    def started(self):
        d, agent = self.start(limits={"lag_wait": "10min"})
        a = d.attached(on_lag="wait")
        child = agent.child()
        child.mark(a)
        return d, a, child

    def test_no_page_is_asked_for(self):
        """Fill a tape, and the ring after it once; from then on a page fault is an error. The bound allows for pages
        reclaimed by the kernel."""
        d, a, child = self.started()
        self.relay(a, child, 48)
        self.assertLess(self.faults(d, a, child, 100), 50)

    def test_a_stalled_client_does_not_change_that(self):
        """A part of a line waits for it, in the place where the others' lines go."""
        d, a, child = self.started()
        b = d.attached()
        self.relay(a, child, 48)
        self.assertLess(self.faults(d, a, child, 48), 200)
        b.wait(type="result")

    def test_memory_goes_back(self):
        """A pause leaves the tape's lines alone; sleep leaves them packed."""
        d, a, child = self.started()
        empty, tape = d.rss(), 16 * 1024
        self.relay(a, child, 48)
        self.assertTrue(d.sanitized or d.rss() - empty > tape - 1024)
        until(lambda: d.rss() - empty < tape + 1024, what="the memory to go back in a pause")
        a.ask("plenum_hibernate")
        d.wait_state("s", "asleep")
        until(lambda: d.rss() - empty < tape + 1024, what="the memory to go back in its sleep")
        a.ask("plenum_stop", forget=True)
        until(lambda: d.rss() - empty < 1024, what="the memory to go back at its end")


class StdinTest(Case):
    def fill(self, a, child):
        """A child that does not read, and a full queue; return how many prompts were sent."""
        child.pause()
        child.written()
        sent = 0
        while not a.seen(event="error"):
            a.send(*[user("x" * 8000, uuid="u%d" % (sent + i)) for i in range(20)])
            sent += 20
            a.sync()
            self.assertLess(sent, 5000)
        return sent

    def test_busy(self):
        _, _, child, a, b = self.open(2, limits={"stdin_queue": "1M", "client_line": "256K"})
        child.mark(a)
        sent = self.fill(a, child)
        notices = a.seen(event="error")
        self.assertEqual({m["code"] for m in notices}, {"busy"})
        self.assertTrue(all(isinstance(m["line"], int) for m in notices))
        self.assertRefused("busy", b.request, "mcp_status", padding="y" * 200000)
        b.request("plenum_list")
        child.mark(b)
        child.resume()
        until(lambda: len(child.seen(type="user")) == sent - len(notices), what="the accepted prompts")
        texts = [m["uuid"] for m in child.seen(type="user")]
        self.assertEqual(len(set(texts)), len(texts))
        child.prompted(a, "again", uuid="again")

    def test_a_full_queue_does_not_stop_an_interrupt_of_another_session(self):
        d, agent, other = self.start(agents=("agent", "other"), limits={"stdin_queue": "1M", "client_line": "256K"})
        a, b = d.attached(), d.attached("t", profile="other")
        child, second = agent.child(), other.child()
        child.mark(a)
        self.fill(a, child)
        b.send(request("i", "interrupt"))
        second.reply(second.request("interrupt"))
        b.answer("i")

    def test_one_line_of_the_largest_size_always_fits(self):
        _, _, child, a = self.open(limits={"stdin_queue": "64K", "client_line": "4M"})
        line = user("x" * 3000000, uuid="big")
        a.send(line)
        self.assertEqual(len(child.wait(type="user", uuid="big")["message.content"]), 3000000)

    def test_both_directions_stuck(self):
        """Child and client write and do not read: others, and the daemon, are not affected; and both recover."""
        d, _, child, a, b = self.open(2, limits={"tape_bytes": "1M", "stdin_queue": "1M", "client_line": "256K"})
        child.mark(a, b)
        child.pause()
        child.written()
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 20000, pad=1000)
        line = dump(user("x" * 8000)) + b"\n"
        sent = 0
        while True:
            n = a.try_raw(line * 10)
            if n == 0:
                break
            sent += n
            if sent > 30 << 20:
                break
        child.print(RESULT)
        b.wait(type="result")
        d.call("plenum_hello")
        child.resume()
        a.wait(type="result")
        until(lambda: d.call("plenum_status", session="s")["stdin_queue"] == 0, what="the prompts to be with the child")
        self.assertRefused("timeout", b.request, "mcp_status", plenum_timeout_ms=100)

    def test_stopping_a_child_that_does_not_read(self):
        _, _, child, a = self.open(profile=QUICK, limits={"stdin_queue": "1M", "client_line": "256K"})
        child.mark(a)
        self.fill(a, child)
        a.request("plenum_stop", how="graceful")
        a.event("child_exited")


class StderrTest(Case):
    def test_a_lot_at_once(self):
        _, _, child, a = self.open()
        child.stderr(b"e" * 300 * 1024)
        child.print(RESULT)
        a.wait(type="result")
        child.event("stderr_done")

    def test_very_much(self):
        d, _, child, a = self.open()
        child.mark(a)
        before = d.rss()
        for _ in range(20):
            child.stderr(b"some text on standard error\n" * 40000)
        child.print(RESULT)
        a.wait(type="result")
        until(lambda: len(child.had("stderr_done")) == 20)
        self.assertLess(d.rss() - before, 8 * 1024)
        self.assertLess(os.path.getsize(d.log_path), 4 << 20)
        self.assertNone(a.seen(lambda m: b"standard error" in m.raw))

    def test_the_tail_is_in_the_notice(self):
        d, _, child, a = self.open()
        child.stderr(b"".join(b"line %d\n" % i for i in range(200)) + b"bad \xff\xfe bytes \x1b[31m\n")
        child.event("stderr_done")
        child.exit(3)
        m = a.event("child_exited")
        self.assertIsNotNone(m.obj, "not JSON")
        self.assertEqual((m["status"], m["signal"], m["wanted"]), (3, None, False))
        text = str(m["stderr"])
        self.assertIn("line 199", text)
        self.assertIn("bytes", text)
        self.assertNotIn("\x1b", m.raw.decode())
        self.assertLess(len(m.raw), 64 * 1024)


class HalfCloseTest(Case):
    def test_until_the_result(self):
        d, agent = self.start()
        a, b = d.client(), d.attached("default")
        a.send(user("one", uuid="u1"))
        a.half_close()
        child = agent.child()
        child.wait(type="user", uuid="u1")
        child.print({"type": "system", "subtype": "init", "session_id": "c"}, {"type": "assistant", "message": {}})
        a.wait(type="assistant")
        child.mark(a, b)
        self.assertFalse(a.eof)
        child.print(dict(RESULT, user_message_uuids=["u1"]), {"type": "after"})
        a.wait(type="result")
        a.wait_eof()
        b.wait(type="after")
        self.assertNone(a.seen(type="control_request"))

    def test_the_result_of_its_own_last_prompt(self):
        d, agent = self.start()
        a, b = d.client(), d.attached("default")
        b.send(user("other", uuid="ub"))
        child = agent.child()
        child.wait(type="user", uuid="ub")
        a.send(user("one", uuid="u1"), user("two", uuid="u2"))
        a.half_close()
        child.wait(type="user", uuid="u2")
        child.print(dict(RESULT, user_message_uuids=["ub"]), dict(RESULT, user_message_uuids=["u1"]))
        child.mark(a)
        self.assertFalse(a.eof)
        child.print(dict(RESULT, user_message_uuids=["u2"], last=True))
        a.wait(type="result", last=True)
        a.wait_eof()

    def test_a_child_that_names_no_uuids(self):
        """2.1.197: the isReplay lines since the last result name the prompts of a turn."""
        d, agent = self.start()
        a, b = d.client(), d.attached("default")
        b.send(user("other", uuid="ub"))
        child = agent.child()
        child.wait(type="user", uuid="ub")
        a.send(user("one", uuid="u1"))
        a.half_close()
        child.wait(type="user", uuid="u1")
        child.print(user("other", uuid="ub", isReplay=True), RESULT)
        child.mark(a)
        self.assertFalse(a.eof)
        child.print(user("one", uuid="u1", isReplay=True), dict(RESULT, last=True))
        a.wait(type="result", last=True)
        a.wait_eof()

    def test_nothing_to_wait_for(self):
        d, agent = self.start()
        a = d.attached()
        agent.child()
        a.half_close()
        a.wait_eof()

    def test_until_its_answers_are_out(self):
        _, _, child, a = self.open()
        a.send(request("1", "mcp_status"), request("2", "plenum_hello"))
        a.half_close()
        got = child.request("mcp_status")
        a.answer("2")
        self.assertFalse(a.eof)
        child.reply(got, {"n": 1})
        self.assertEqual(a.answer("1")["response.response"], {"n": 1})
        a.wait_eof()

    def test_the_child_dies_meanwhile(self):
        _, _, child, a = self.open()
        a.send(user("one", uuid="u1"), request("1", "mcp_status"))
        child.request("mcp_status")
        a.half_close()
        child.exit(1)
        self.assertEqual(a.answer("1")["response.code"], "child_exited")
        a.event("child_exited")
        a.wait_eof()

    def test_the_session_goes_on(self):
        d, _, child, a = self.open()
        a.half_close()
        a.wait_eof()
        b = d.attached()
        child.mark(b)
        self.assertEqual(child.had("eof"), [])

    def test_waits_for_the_answer_to_initialize(self):
        d, _, child, a = self.open(mode={"init": "manual"})
        rid = a.ask("initialize", hooks=None)
        m = child.request("initialize")
        a.half_close()
        d.call("plenum_hello")
        child.reply(m, {"commands": []})
        self.assertEqual(a.answer(rid)["response.subtype"], "success")
        a.wait_eof()

    def test_last_request_of_the_owner_of_an_ephemeral_session(self):
        d, agent = self.start()
        a = d.attached(ephemeral=True)
        child = agent.child()
        a.send(request("1", "mcp_status"))
        child.request("mcp_status")
        b = d.attached()
        b.send(request("2", "mcp_status"))
        child.request("mcp_status")
        a.half_close()
        child.mark(b)
        child.kill()
        self.assertEqual(a.answer("1")["response.code"], "child_exited")
        self.assertEqual(b.answer("2")["response.code"], "child_exited")
        until(lambda: not d.sessions(), what="the session to be gone")

    def test_gets_the_answer_to_its_own_initialize(self):
        d, _, child, a = self.open(mode={"init": "manual"})
        a.send(init("1"))
        m = child.request("initialize")
        a.half_close()
        d.call("plenum_hello")
        child.reply(m, {"commands": []})
        self.assertEqual(a.answer("1")["response.subtype"], "success")
        a.wait_eof()

    def test_end_of_input_before_the_answer_to_initialize(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.client()
        a.send(request("t", "plenum_attach", ephemeral=True), init("i", WATCH))
        child = agent.child()
        m = child.wait(type="control_request")
        with standstill(d):
            a.half_close()
            child.reply(m, {"hooks_applied": True})
            child.written()
        self.assertIs(a.answer("i")["response.response.hooks_applied"], True)
        a.wait_eof()

    def test_end_of_input_before_both_answers_to_initialize(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.client()
        a.send(request("t", "plenum_attach", ephemeral=True), init("i"), init("j", WATCH))
        child = agent.child()
        m = child.wait(type="control_request")
        with standstill(d):
            a.half_close()
            child.reply(m, {})
            child.written()
        a.answer("i")
        child.reply(child.wait(type="control_request"), {"hooks_applied": True})
        a.answer("j")
        a.wait_eof()


class VanishTest(Case):
    def test_clients_that_die_while_they_are_written_to(self):
        """C39."""
        d, _, child, a = self.open()
        child.flood(b'{"type":"stream_event","n":@N@,"p":"@P@"}', 30000, pad=1000)
        child.print(RESULT)
        dice = random.Random(int(os.environ.get("PLENUM_SEED", "1")))

        def come_and_go():
            for _ in range(25):
                c = d.client()
                c.attach("s", replay=dice.choice(["none", "all"]))
                c.fill(dice.random() * 0.01)
                c.reset() if dice.random() < 0.5 else c.close()

        threads = [threading.Thread(target=come_and_go) for _ in range(4)]
        for t in threads:
            t.start()
        a.wait(type="result")
        for t in threads:
            t.join()
        until(lambda: d.sessions()["s"]["attachments"] == 1)

    def test_a_child_that_dies_with_much_queued(self):
        d, _, child, a = self.open()
        child.mark(a)
        child.pause()
        a.send(*[user("x" * 100000) for _ in range(80)])
        a.sync()
        child.kill()
        m = a.event("child_exited")
        self.assertEqual((m["signal"], m["status"]), (9, 137))
        d.call("plenum_hello")

    def wakes(self, d):
        """Return how often the daemon has waited so far: unlike its time, that does not depend on the machine."""
        with open("/proc/%d/status" % d.pid) as f:
            return next(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt_switches"))

    def test_idle_costs_nothing(self):
        d, agent, child, a = self.open()
        b = d.attached("t")
        agent.child().mark(b)
        child.mark(a)
        d.settled_fds()
        before, cpu, begun = self.wakes(d), d.cpu(), time.monotonic()
        with self.assertRaises(Timeout):
            b.wait(type="never", timeout=1.0)
        self.assertGreaterEqual(time.monotonic() - begun, 1.0)
        self.assertLess(self.wakes(d) - before, 10)
        self.assertLess(d.cpu() - cpu, 0.5)


if __name__ == "__main__":
    unittest.main()
