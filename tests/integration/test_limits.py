# SPDX-License-Identifier: MIT
"""Limits of one line: each limit on a count or a length applies one above it and not at it, with an error that names
it; and the daemon's report of its limits."""
import unittest

from harness import Case, cancel, dump, perm, until, user

LIMITS = {"request": 1 << 20, "values": 16384, "words": 4096, "types": 4096, "members": 4096, "names": 4096, "hooks": 4096,
          "hooks_text": 1 << 20, "matcher": 65536, "call": 1 << 20, "initialize": 64, "prompts": 4096,
          "conversation_id": 4096, "table": 32 << 20, "table_starts": 16 << 20, "stdin_lines": 65536,
          "pending_bytes": 512 << 20}


def names(n, stem="n"):
    return ["%s%d" % (stem, i) for i in range(n)]


def entries(n, **members):
    return {"PreToolUse": [{"hookCallbackIds": [c], **members} for c in names(n, "c")]}


class LimitsTest(Case):
    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()

    def over(self, code, limit, call, *args, **members):
        """Refused for this limit; the connection continues."""
        e = self.assertRefused(code, call, *args, **members)
        self.assertIn(limit, e.text.replace(",", ""))

    def test_the_daemon_names_them(self):
        limits = self.d.client().hello()["limits"]
        for name, value in LIMITS.items():
            self.assertEqual(limits[name], value, name)

    def test_a_request_of_the_daemon(self):
        a = self.d.client()
        self.over("too_long", "1048576", a.request, "plenum_hello", name="x" * (1 << 20))
        self.over("bad_request", "255", a.request, "plenum_hello", name="x" * ((1 << 20) - 200))
        self.over("too_many", "16384", a.request, "plenum_hello", name=[{}] * 16384)
        self.over("too_many", "4096 members", a.request, "plenum_hello", **{n: 0 for n in names(4097)})
        deep = "x"
        for _ in range(20):
            deep = [deep]
        self.over("bad_request", "16 levels", a.request, "plenum_hello", name=deep)
        a.raw(b'{"type":"control_request","request_id":"twice","request":{"subtype":"plenum_hello","name":"a","name":"b"}}\n')
        self.refusal(a, "twice", ("bad_request",))
        a.sync()

    def test_a_line_that_runs_a_tool(self):
        a = self.d.attached("s")
        child = self.agent.child()
        self.d.wait_state("s", "idle")
        line = {"type": "bash_command", "command": ""}
        room = (1 << 20) - len(dump(line))
        a.send(dict(line, command="x" * (room + 1)))
        self.assertIn("1048576", a.error("too_long")["error"])
        self.over("too_long", "1048576", a.request, "mcp_call", tool="mcp__x__y", arguments={"x": "x" * (1 << 20)})
        a.send(dict(line, command="x" * room))
        child.wait(type="bash_command")

    def test_lists_of_an_attach(self):
        a = self.d.client()
        for member, value in (("args", names(4097)), ("argv", names(4097)), ("types", names(4097)), ("mcp_servers", names(4097)),
                              ("env", {n: "" for n in names(4097)}), ("approve", {"tools": names(4097)})):
            self.over("too_many", "4096", a.attach, "s", **{member: value})
        self.assertEqual(self.d.sessions(), {})
        a.attach("s", mcp_servers=names(4096), types=names(4096), approve={"tools": names(2000)},
                 env={n: "x" for n in names(500)})
        child = self.agent.child()
        self.assertEqual(child.env["n499"], "x")
        child.print({"type": "n4095", "uuid": "u1"}, {"type": "other", "uuid": "u2"}, {"type": "n0", "uuid": "u3"})
        a.wait(type="n0")
        self.assertNone(a.seen(type="other"))
        self.assertTrue(a.seen(type="n4095"))

    def test_the_id_of_a_conversation(self):
        a = self.d.client()
        self.over("too_long", "4096", a.attach, "s", resume="x" * 4097)
        self.over("too_long", "4096", a.attach, "s", args=["--resume", "x" * 4097])
        self.assertEqual(self.d.sessions(), {})
        a.attach("s", resume="x" * 4096)

    def test_blocks_and_servers(self):
        a = self.d.attached()
        child = self.agent.child()
        many = {n: 0 for n in names(4095)}
        for block, where in (({"type": "text", "text": "x", **many}, ""),
                             ({"type": "image", "source": {"type": "url", "url": "x", **many}}, " in `source`"),
                             ({"type": "tool_result", "content": [{"type": "text", "text": "x", **many}]}, "")):
            a.send(dict(user(""), message={"role": "user", "content": [block]}))
            e = a.event("error", code="too_many")
            self.assertIn("has more than 4096 members" + where, e["error"])
        self.over("too_many", "4096", a.request, "mcp_set_servers", servers={"x": {"command": "x", "args": [], **many}})
        del many["n0"]
        a.send(dict(user(""), message={"role": "user", "content": [{"type": "text", "text": "taken", **many}]}))
        self.assertEqual(child.wait(type="user")["message"]["content"][0]["text"], "taken")

    def test_registrations(self):
        a = self.d.attached()
        self.agent.child()
        self.over("too_many", "4096", a.request, "initialize", hooks=entries(4097))
        self.over("too_many", "4096", a.request, "initialize", hooks={"PreToolUse": [{"hookCallbackIds": names(4097)}]})
        self.over("too_many", "4096", a.request, "initialize", sdkMcpServers=names(4097))
        self.over("too_many", "4096", a.request, "initialize", supportedDialogKinds=names(4097))
        self.over("too_many", "1 MiB", a.request, "initialize", hooks=entries(20, matcher="m" * 60000))
        self.over("too_long", "64 KiB", a.request, "initialize", hooks=entries(1, matcher="m" * 70000))
        self.over("too_long", "64 KiB", a.request, "initialize", sdkMcpServers=["m" * 70000])
        self.over("too_many", "4096 members", a.request, "initialize", **{n: 0 for n in names(4097)})
        self.over("too_many", "4096", a.request, "mcp_set_servers", servers={n: {"type": "sdk"} for n in names(4097)})
        a.initialize(entries(4096))
        self.assertEqual(self.d.call("plenum_status", session="s")["hooks"], 4096)
        a.sync()

    def test_what_was_held_stays_where_more_is_refused(self):
        a, b = self.d.attached(label="a"), self.d.attached(label="b")
        a.initialize(sdkMcpServers=["held"])
        self.over("too_many", "4096", a.request, "mcp_set_servers", servers={n: {"type": "sdk"} for n in names(4097)})
        self.assertRefused("name_taken", b.request, "initialize", sdkMcpServers=["held"])

    def test_the_bytes_of_open_requests(self):
        self.d.attached(approve=False)
        child = self.agent.child()
        fit = LIMITS["pending_bytes"] // 60_000_000

        def opened(n):
            until(lambda: self.d.call("plenum_status", session="s")["pending"] == n, what="%d requests" % n)
        for i in range(fit + 1):
            child.print(perm("k-%d" % i, "x" * 59_999_000))
        refusal = child.answer("k-%d" % fit)["response.response"]
        self.assertEqual(refusal["behavior"], "deny")
        self.assertIn("pending_bytes", refusal["message"])
        child.print(perm("short"))
        opened(fit + 1)
        child.print(cancel("k-0"), perm("again", "x" * 59_999_000), perm("over", "x" * 59_999_000))
        self.assertIn("pending_bytes", child.answer("over")["response.response.message"])
        opened(fit + 1)

    def test_open_initialize_requests(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.attached()
        for i in range(LIMITS["initialize"]):
            a.send({"type": "control_request", "request_id": "i%d" % i, "request": {"subtype": "initialize"}})
        a.send({"type": "control_request", "request_id": "i7", "request": {"subtype": "initialize"}})
        self.refusal(a, "i7", ("duplicate_request",))
        a.send({"type": "control_request", "request_id": "over", "request": {"subtype": "initialize"}})
        self.assertIn("64", self.refusal(a, "over", ("too_many",))["error"])


if __name__ == "__main__":
    unittest.main()
