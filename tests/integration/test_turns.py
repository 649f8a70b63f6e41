# SPDX-License-Identifier: MIT
"""The limits of one peer in one turn of the event loop, and the service of others in between."""
import os
import signal

from harness import Case, dump, perm, request, until


class TurnsTest(Case):
    def test_a_burst_of_requests_leaves_room_for_others(self):
        """Both have sent before the daemon reads: the second client is answered before the burst of the first is
        served."""
        d, _ = self.start()
        burst, other = d.client(), d.client()
        limits = burst.hello()["limits"]
        number = other.hello()["client"]
        count = 600
        lines = b"".join(dump(request("r%d" % i, "plenum_hello")) + b"\n" for i in range(count))
        self.assertLess(len(lines), limits["turn_bytes"], "one read brings all of it")
        self.assertLess(limits["turn_lines"], count // 4)
        served = burst.request("plenum_status")
        before = {c["client"]: c["lines_in"] for c in served["clients"]}
        os.kill(d.pid, signal.SIGSTOP)
        burst.raw(lines)
        rid = other.ask("plenum_status")
        os.kill(d.pid, signal.SIGCONT)
        seen = {c["client"]: c["lines_in"] for c in other.answer(rid)["response.response"]["clients"]}
        [first] = set(seen) - {number}
        self.assertLessEqual(seen[first] - before[first], count // 2)
        got = [burst.wait(type="control_response")["response.request_id"] for _ in range(count)]
        self.assertEqual(got, ["r%d" % i for i in range(count)])  # all of it, in order

    def test_the_rest_of_a_burst_is_served_after_its_end(self):
        """Lines beyond the share of a turn, and a last one without its newline, though the client sends no more."""
        d, _ = self.start()
        c = d.client()
        count = c.hello()["limits"]["turn_lines"] * 3
        c.raw(b"\n".join(dump(request("r%d" % i, "plenum_hello")) for i in range(count)))
        c.half_close()
        c.wait_eof()
        answers = [m["response.request_id"] for m in c.log if m["type"] == "control_response"][1:]
        self.assertEqual(answers, ["r%d" % i for i in range(count)])

    def test_a_burst_of_a_client_that_is_gone_is_served(self):
        """It has closed its connection without reading: its lines are served nevertheless, in order."""
        d, agent = self.start()
        d.attached()
        child = agent.child()
        c = d.client()
        count = c.hello()["limits"]["turn_lines"] * 3
        c.attach("s")
        os.kill(d.pid, signal.SIGSTOP)
        c.raw(b"".join(dump({"type": "x", "n": i}) + b"\n" + dump(request("r%d" % i, "plenum_hello")) + b"\n"
                       for i in range(count)))
        c.close()
        os.kill(d.pid, signal.SIGCONT)
        child.wait(type="x", n=count - 1)
        self.assertEqual([m["n"] for m in child.seen(type="x")], list(range(count)))
        until(lambda: len(d.call("plenum_status")["clients"]) == 2, what="the end of the connection")

    def unread(self):
        """Return (daemon, client, ids): one read has brought requests with more answers than are queued for a
        client."""
        d, agent = self.start()
        a = d.attached()
        agent.child().print(perm("k", "x" * 60000))
        a.wait(type="control_request")
        c = d.client()
        ids = ["r%d" % i for i in range(400)]
        c.raw(b"".join(dump(request(i, "plenum_pending")) + b"\n" for i in ids))
        until(lambda: self.behind(d) > 8 * 1024 * 1024)
        return d, c, ids

    def behind(self, d):
        return max(x["lag_bytes"] for x in d.call("plenum_status")["clients"])

    def test_a_client_that_does_not_read_is_served_no_further(self):
        """Its answers stay within a bound, and all of them come when it reads."""
        d, c, ids = self.unread()
        for _ in range(5):
            self.assertLess(self.behind(d), 16 * 1024 * 1024 + 512 * 1024)
        self.assertEqual(ids, [c.wait(type="control_response")["response.request_id"] for _ in ids])

    def test_requests_that_wait_for_their_turn_go_through_an_upgrade(self):
        d, c, ids = self.unread()
        d.call("plenum_upgrade")
        self.assertEqual(ids, [c.wait(type="control_response")["response.request_id"] for _ in ids])

    def test_a_burst_of_a_child_leaves_room_for_clients(self):
        """More short lines in one read than a turn serves: all of them come, in order."""
        d, agent = self.start()
        a = d.attached(replay="none")
        child = agent.child()
        count = 20000
        child.print(b"\n".join(b'{"type":"x","n":%d}' % i for i in range(count)) + b"\n")
        child.mark(a)
        self.assertEqual([m["n"] for m in a.log if m.obj.get("type") == "x"], list(range(count)))
