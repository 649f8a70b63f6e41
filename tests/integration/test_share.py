# SPDX-License-Identifier: MIT
"""The share of one uid: sessions, connections, bytes, open requests. Beyond it, only that uid is refused; the daemon's
own uid and root always get in."""
import os
import subprocess
import unittest

from harness import Case, build_file, dump, request, until, user

NOBODY = 65534
need_root = unittest.skipUnless(os.getuid() == 0, "needs root, to become another user")

LIMITS = {"uid_sessions": "2", "uid_clients": "3", "uid_bytes": "512K", "uid_requests": "3"}


@need_root
class ShareCase(Case):
    def share(self, daemon=None, limits=None, **options):
        self.d, self.agent = self.start(daemon=dict({"allow_uids": str(NOBODY)}, **(daemon or {})),
                                        limits=dict(LIMITS, **(limits or {})), **options)
        self.d.open_to_all()

    def other(self, session=None):
        c = self.d.client(uid=NOBODY, gid=NOBODY)
        if session:
            c.attach(session, approve=False)
        return c

    def held(self, uid=NOBODY):
        """Return sessions, clients, bytes, requests of the uid; None: it has no share."""
        for s in self.d.call("plenum_status", daemon=True)["shares"]:
            if s["uid"] == uid:
                return s["sessions"], s["clients"], s["bytes"], s["requests"]
        return None

    def exceeded(self, answer, key):
        m = answer.obj.get("response", answer.obj)
        self.assertEqual(m.get("code"), "share_exceeded")
        self.assertIn(key, m["error"])

    def working(self, **limits):
        """The owner's turn runs in session s, and the prompts of others are queued."""
        self.share(profile={"prompts": "queue"}, limits=limits)
        own = self.d.attached("s")
        child = self.agent.child()
        own.initialize()
        child.prompted(own, "work", uuid="w")
        return own, child


class SessionsTest(ShareCase):
    def test_one_uid_fills_its_share_alone(self):
        """Also by a first line, and across a restart of the daemon: the table on disk has the sessions."""
        self.share(daemon={"max_sessions": "5"}, profile={"command": "cat"})
        c = self.other()
        for name in ("a", "b"):
            c.attach(name, approve=False)
            c.request("plenum_detach")
        e = self.assertRefused("share_exceeded", c.attach, "c")
        self.assertIn("uid_sessions", e.text)
        implicit = self.other()
        implicit.send(user("hi", session_id="c"))
        self.exceeded(implicit.error("share_exceeded"), "uid_sessions")
        self.d.attached("own-1")
        self.assertEqual(self.held()[0], 2)
        self.assertEqual(self.held(0)[0], 1)
        self.d.kill9()
        self.d.start()
        self.d.open_to_all()
        self.assertEqual(self.held()[0], 2)
        self.assertRefused("share_exceeded", self.other().attach, "c")
        self.d.call("plenum_stop", session="a", forget=True)
        until(lambda: self.held()[0] == 1)
        self.other("c")

    def test_the_last_places_are_kept(self):
        self.share(daemon={"max_sessions": "3"}, limits={"uid_sessions": "10"}, profile={"command": "cat"})
        c = self.other()
        for name in ("a", "b"):
            c.attach(name, approve=False)
            c.request("plenum_detach")
        e = self.assertRefused("too_many", c.attach, "c")
        self.assertIn("max_sessions", e.text)
        self.d.attached("own")
        self.assertRefused("too_many", self.d.client().attach, "own-2")


class ClientsTest(ShareCase):
    def refused(self, code, key):
        c = self.other()
        m = c.error(code)
        c.wait_eof()
        self.assertIn(key, m["error"])

    def test_connections(self):
        """Limits of the uid, of all uids except for the last places, and of descriptors."""
        self.share(daemon={"max_clients": "6"})
        some = [self.other() for _ in range(3)]
        for c in some:
            c.request("plenum_hello")
        self.refused("share_exceeded", "uid_clients")
        own = [self.d.client() for _ in range(2)]
        for c in own:
            c.request("plenum_hello")
        some[0].close()
        until(lambda: self.held()[1] == 2)
        third = self.d.client()
        third.request("plenum_hello")
        self.refused("too_many", "max_clients")  # the last place is reserved
        last = self.d.client()
        last.request("plenum_hello")
        last.close()
        third.close()
        until(lambda: own[0].request("plenum_metrics")["clients"] == 4)

    def test_descriptors(self):
        self.share(limits={"uid_clients": "100"})
        own = self.d.client()
        own.request("plenum_hello")
        used = len(os.listdir("/proc/%d/fd" % self.d.pid))
        subprocess.run(["prlimit", "--pid", str(self.d.pid), "--nofile=%d:" % (used + 36)], check=True)
        some = []
        for _ in range(8):
            some.append(self.other())
            try:
                some[-1].send(request("h", "plenum_hello"))
            except BrokenPipeError:
                pass
            m = some[-1].wait(lambda m: True)
            if m.obj.get("code"):
                break
        self.assertEqual(m["code"], "too_many")
        self.assertIn("descriptors", m["error"])
        self.d.client().request("plenum_hello")


class RequestsTest(ShareCase):
    def test_requests_of_one_uid(self):
        """Requests of a disconnected client still count for its uid, and for no other. An interrupt has a place."""
        self.share()
        own = self.d.attached("s")
        child = self.agent.child()
        own.initialize()
        c = self.other("s")
        c.send(*[request("r%d" % i, "get_context_usage", plenum_timeout_ms=3600000) for i in range(4)])
        self.exceeded(c.answer("r3"), "uid_requests")
        self.assertEqual(self.held()[3], 3)
        c.send(request("stop", "interrupt"), request("stop2", "interrupt"))
        self.exceeded(c.answer("stop2"), "uid_requests")
        child.reply(child.request("interrupt"))
        self.assertEqual(c.answer("stop")["response.subtype"], "success")
        c.close()
        until(lambda: self.held() is None or self.held()[1] == 0)
        again = self.other("s")
        self.assertRefused("share_exceeded", again.request, "get_context_usage")
        own.send(request("mine", "get_context_usage"))
        for _ in range(4):
            child.reply(child.request("get_context_usage"))
        self.assertEqual(own.answer("mine")["response.subtype"], "success")
        until(lambda: self.held()[3] == 0)
        again.send(request("r", "get_context_usage"))
        child.reply(child.request("get_context_usage"))
        self.assertEqual(again.answer("r")["response.subtype"], "success")

    def test_requests_of_one_client(self):
        """max_calls applies to each client; an initialize that waits for its answer is a request as well."""
        self.share(limits={"max_calls": "2"})
        a, b = self.d.attached("s"), self.d.attached("s")
        child = self.agent.child()
        a.send(request("i1", "initialize"), request("i2", "initialize"), request("i3", "initialize"))
        got = a.answer("i3")
        self.assertEqual(got["response.code"], "busy")
        self.assertIn("max_calls", got["response.error"])
        b.send(request("b1", "get_context_usage"), request("b2", "get_context_usage"), request("b3", "get_context_usage"), request("stop", "interrupt"))
        self.assertEqual(b.answer("b3")["response.code"], "busy")
        child.reply(child.request("initialize"), {})
        for rid in ("i1", "i2"):
            self.assertEqual(a.answer(rid)["response.subtype"], "success")
        for _ in range(2):
            child.reply(child.request("get_context_usage"))
        child.reply(child.request("interrupt"))
        for rid in ("b1", "b2", "stop"):
            self.assertEqual(b.answer(rid)["response.subtype"], "success")
        self.assertEqual(self.held(0)[3], 0)

    def test_a_time_limit_has_an_end(self):
        self.share()
        a = self.d.attached("s")
        limit = a.request("plenum_hello")["limits"]["plenum_timeout_ms"]
        self.assertEqual(limit, 3600000)
        e = self.assertRefused("bad_request", a.request, "get_context_usage", plenum_timeout_ms=limit + 1)
        self.assertIn(str(limit), e.text)


class BytesTest(ShareCase):
    def test_an_unfinished_line(self):
        """It is dropped, and its client is notified at its end; others of the uid and the owner continue."""
        self.share(limits={"client_line": "4M"})
        own, good, bad = self.d.client(), self.other(), self.other()
        good.raw(b'{"type":"control_request",')
        bad.raw(b"x" * 300000)
        until(lambda: self.held()[2] == 300026)
        own.raw(b"x" * 1000000)
        bad.raw(b"x" * 300000)
        until(lambda: self.held()[2] < 300026)
        bad.raw(b"\n" + dump(request("big", "plenum_hello", name="y" * 600000)) + b"\n")
        self.exceeded(bad.error("share_exceeded", size=600000), "uid_bytes")
        self.exceeded(bad.answer("big"), "uid_bytes")
        bad.raw(b"z" * 5000000 + b"\n")
        self.assertEqual(bad.wait(type="system")["code"], "share_exceeded")
        bad.request("plenum_hello")
        good.raw(b'"request_id":"h","request":{"subtype":"plenum_hello"}}\n')
        self.assertEqual(good.answer("h")["response.subtype"], "success")
        self.assertEqual(self.held()[:3], (0, 2, 0))
        own.raw(b"\n")
        own.error("bad_line")

    def test_unread_answers(self):
        self.share()
        idle, bad = self.other(), self.other()
        before = self.d.call("plenum_metrics")["share_exceeded"]
        bad.try_raw(dump(request("h", "plenum_hello")) + b"\n")
        line = b"".join(dump(request("h%d" % i, "plenum_hello")) + b"\n" for i in range(200))
        until(lambda: bad.try_raw(line) >= 0 and self.d.call("plenum_metrics")["share_exceeded"] > before)
        self.exceeded(bad.error("share_exceeded"), "uid_bytes")
        bad.wait_eof()
        idle.request("plenum_hello")

    def test_a_line_that_is_read_in_part(self):
        """It is kept as long as its client lives; if the share has no room even for that line, the client is
        disconnected."""
        self.share()
        own = self.d.attached("s")
        c, idle = self.other("s"), self.other()
        self.agent.child().print({"type": "assistant", "text": "x" * 4000000})
        own.wait(type="assistant")
        until(lambda: self.held()[1:3] == (1, 0), what="the end of the connection")
        self.assertIn("holds too much", self.d.log())
        idle.request("plenum_hello")

    def test_queued_prompts(self):
        """In the session's queue, and unread by the child; bytes read by it no longer count."""
        own, child = self.working()
        c = self.other("s")
        c.send(user("x" * 400000, uuid="p1"))
        own.event("changed", what="prompt_held", value="p1")  # before that its line is counted
        room = 512 * 1024 - self.held()[2]
        c.send(user("x" * (room - 10 - len(dump(user("", uuid="p2")))), uuid="p2"))
        self.exceeded(c.error("share_exceeded", uuid="p2"), "uid_bytes")
        own.send(user("y" * 600000, uuid="mine"))
        own.event("changed", what="prompt_held", value="mine")
        child.print({"type": "result", "subtype": "success", "is_error": False, "user_message_uuids": ["w"]})
        child.wait(type="user", uuid="p1")
        until(lambda: self.held()[2] == 0)


    def test_a_prompt_that_is_checked_for_many_turns(self):
        """It does not count twice when it is queued, as a line of its client and as a prompt."""
        own, child = self.working(client_line="9M", stdin_queue="16M", uid_bytes="12M")
        c = self.other("s")
        c.send(user("\n" * 4000000, uuid="p1"))
        own.event("changed", what="prompt_held")
        self.assertGreaterEqual(self.held()[2], 8000000)
        self.assertNone(c.events("error"))


class ShownTest(ShareCase):
    def test_status_and_top(self):
        """A client of another uid sees only its own share."""
        self.share()
        own = self.d.attached("s")
        c = self.other("s")
        own.send(request("r", "get_context_usage"))
        c.send(request("r", "get_context_usage"))
        until(lambda: self.held()[3] == 1)
        self.assertEqual(self.held(0)[3], 1)
        seen = c.request("plenum_status", daemon=True)["shares"]
        self.assertEqual([s["uid"] for s in seen], [NOBODY])
        self.assertIs(seen[0]["limited"], True)
        metrics = self.d.call("plenum_metrics")
        self.assertEqual(metrics["requests"], 2)
        ctl = build_file("plenumctl")
        top = subprocess.run([ctl, "top", "--once"], env=self.d.env, capture_output=True, text=True, check=True).stdout
        self.assertRegex(top, r"(?m)^UID +SESSIONS +CONNECTIONS +HELD +REQUESTS$")
        self.assertRegex(top, r"(?m)^%d +0 +1 +0 +1$" % NOBODY)

    def test_an_upgrade_counts_them_again(self):
        own, child = self.working()
        c = self.other("s")
        c.send(user("x" * 100000, uuid="p"), request("r", "get_context_usage"))
        c.event("changed", what="prompt_held")
        until(lambda: self.held()[3] == 1)
        before = self.held()
        self.d.call("plenum_upgrade")
        self.assertEqual(self.held(), before)
        child.reply(child.request("get_context_usage"))
        self.assertEqual(c.answer("r")["response.subtype"], "success")
        until(lambda: self.held()[3] == 0)


if __name__ == "__main__":
    unittest.main()
