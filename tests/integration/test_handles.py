# SPDX-License-Identifier: MIT
"""What one client has of its own in an agent that sees a single connection: handles that it chose, and lines about one
of its requests."""
from codex import CodexCase, error, result, rpc
from harness import until


def changed(handle):
    return dict(rpc("fs/changed", watchId=handle, changedPaths=["/x"]), emittedAtMs=1)


class HandleCase(CodexCase):
    def opened(self, child, client, method="fs/watch", member="watchId", name="w", **params):
        """A client opens a handle: return it as the agent has it."""
        rid = client.call(method, **{member: name}, **params)
        m = child.wait(method=method)
        child.print(result(m["id"]))
        client.reply(rid)
        return m["params"][member]


class Handles(HandleCase):
    def test_two_clients_choose_the_same_one(self):
        _, _, child, a, b = self.open(2)
        mine = self.opened(child, a, path="/a")
        hers = self.opened(child, b, path="/b")
        self.assertNotEqual(mine, hers)
        child.print(changed(mine), changed(hers), changed(mine))
        child.mark(a, b)
        self.assertEqual([m["params.watchId"] for m in a.seen(method="fs/changed")], ["w", "w"])
        self.assertEqual([m["params.watchId"] for m in b.seen(method="fs/changed")], ["w"])

    def test_only_the_handle_is_replaced(self):
        _, _, child, a = self.open()
        a.send(b'{"params" : {"size":{"rows":1.50,"cols":2}, "processHandle" : "a\\u0062:\xc3\xa9" },'
               b'"method":"process/resizePty","id":"x"}')
        m = child.wait(method="process/resizePty")
        theirs = m["params.processHandle"]
        self.assertTrue(theirs.endswith(":ab:\u00e9"), theirs)
        self.assertIn(b'{"size":{"rows":1.50,"cols":2}, "processHandle" : "', m.raw.replace(b'"threadId":"t1",', b""))
        child.print(b'{"method":"process/outputDelta", "params":{"stream":"stdout","processHandle": "%s" , "x":1.0}}\n'
                    % theirs.encode())
        self.assertEqual(a.wait(method="process/outputDelta").raw,
                         b'{"method":"process/outputDelta", "params":{"stream":"stdout","processHandle": "ab:\xc3\xa9" ,'
                         b' "x":1.0}}')

    def test_a_client_cannot_name_that_of_another(self):
        _, _, child, a, b = self.open(2)
        mine = self.opened(child, a, "process/spawn", "processHandle", "p", command=["cat"], cwd="/")
        for name in ("p", mine):
            rid = b.call("process/kill", processHandle=name)
            m = child.wait(method="process/kill")
            self.assertNotEqual(m["params.processHandle"], mine)
            child.print(error(m["id"], -32600, "no such process"))
            b.reply(rid)

    def test_one_that_is_left_out_is_not_added(self):
        _, _, child, a = self.open()
        rid = a.call("command/exec", command=["true"], processId=None)
        m = child.wait(method="command/exec")
        self.assertIsNone(m["params"]["processId"])
        child.print(result(m["id"], exitCode=0, stdout="", stderr=""))
        self.assertEqual(a.reply(rid)["result.exitCode"], 0)

    def test_a_handle_of_the_agent_itself_is_for_all(self):
        _, _, child, a, b = self.open(2)
        child.print(changed("own"), changed("7"), changed("07:x"))
        for c in (a, b):
            for name in ("own", "7", "07:x"):
                c.wait(method="fs/changed", params__watchId=name)

    def test_a_late_client_sees_nothing_of_it(self):
        d, _, child, a = self.open()
        mine = self.opened(child, a)
        child.print(changed(mine))
        a.wait(method="fs/changed")
        b = self.attached(d, replay="all")
        b.sync()
        self.assertEqual(b.seen(method="fs/changed"), [])

    def test_there_is_a_limit(self):
        _, _, child, a = self.open(limits={"max_calls": "2000"})
        self.assertIn("1024 bytes", a.fails("fs/watch", watchId="w" * 1023, path="/")["message"])
        for n in range(1024):
            a.call("fs/watch", watchId="w%d" % n, path="/")
        last = a.call("fs/watch", watchId="one more", path="/")
        self.assertEqual(a.reply(last)["error.data.code"], "busy")
        child.wait(method="fs/watch", params__watchId=lambda w: w.endswith(":w1023"))
        a.call("fs/unwatch", watchId="w7")
        a.call("fs/watch", watchId="instead", path="/")
        child.wait(method="fs/watch", params__watchId=lambda w: w.endswith(":instead"))


class Ends(HandleCase):
    """The agent would end them with the connection of their client."""

    def test_what_a_client_leaves_behind_is_ended(self):
        d, _, child, a, b = self.open(2)
        named = {method: self.opened(child, a, opens, member, **more) for method, member, opens, more in (
            ("fs/unwatch", "watchId", "fs/watch", {"path": "/"}),
            ("process/kill", "processHandle", "process/spawn", {"command": ["cat"], "cwd": "/"}),
            ("fuzzyFileSearch/sessionStop", "sessionId", "fuzzyFileSearch/sessionStart", {"roots": ["/"]}),
            ("mcpServer/event/stream/stop", "subscriptionId", "mcpServer/event/stream/start",
             {"server": "x", "name": "y", "arguments": {}}))}
        a.call("command/exec", command=["cat"], processId="e", streamStdin=True)
        named["command/exec/terminate"] = child.wait(method="command/exec")["params.processId"]
        hers = self.opened(child, b)
        a.close()
        for method, name in named.items():
            m = child.wait(method=method)
            self.assertEqual(list(m["params"].values()), [name])
            child.print(result(m["id"]))
        child.print(changed(named["fs/unwatch"]), changed(hers))
        b.wait(method="fs/changed")
        child.mark(b)
        self.assertEqual(child.seen(method="fs/unwatch", params__watchId=hers), [])
        self.assertEqual(len(b.seen(method="fs/changed")), 1)
        self.assertEqual(d.state_of("s"), "idle")

    def test_what_has_ended_is_not_ended_again(self):
        _, _, child, a, b = self.open(2)
        self.opened(child, a)
        self.opened(child, a, "fs/unwatch")
        gone = self.opened(child, a, "process/spawn", "processHandle", command=["true"], cwd="/")
        child.print(rpc("process/exited", processHandle=gone, exitCode=0, stdout="", stderr=""))
        a.wait(method="process/exited", params__processHandle="w")
        refused = a.call("fs/watch", watchId="no", path="x")
        child.print(error(child.wait(method="fs/watch")["id"], -32600, "not absolute"))
        a.reply(refused)
        over = a.call("command/exec", command=["true"], processId="e")
        child.print(result(child.wait(method="command/exec")["id"], exitCode=0, stdout="", stderr=""))
        a.reply(over)
        a.ok("_plenum/detach")
        self.turn(child, b)
        for method in ("process/kill", "command/exec/terminate"):
            self.assertEqual(child.seen(method=method), [])
        self.assertEqual(len(child.seen(method="fs/unwatch")), 1)

    def test_a_name_in_use_stays_open_when_it_is_refused(self):
        _, _, child, a, b = self.open(2)
        mine = self.opened(child, a)
        again = a.call("fs/watch", watchId="w", path="/")
        child.print(error(child.wait(method="fs/watch")["id"], -32600, "in use"))
        a.reply(again)
        a.close()
        self.assertEqual(child.wait(method="fs/unwatch")["params.watchId"], mine)

    def test_they_do_not_outlive_the_child(self):
        d, agent, child, a, b = self.open(2)
        self.opened(child, a)
        d.call("plenum_hibernate", session="s")
        child.wait_gone()
        b.prompt("on")
        child = agent.child()
        self.initialized(child)
        child.print(result(child.wait(method="thread/resume")["id"], thread={"id": "t1", "turns": []}))
        self.accept(child, "on")
        a.close()
        b.event("detached")
        b.prompt("after")
        self.accept(child, "after")
        self.assertEqual(child.seen(method="fs/unwatch"), [])

    def test_a_client_leaves_before_the_agent_has_started(self):
        d, agent, child, a, b = self.open(2)
        d.call("plenum_hibernate", session="s")
        child.wait_gone()
        d.wait_state("s", "asleep")
        a.call("fs/watch", watchId="w", path="/")
        a.close()
        b.event("detached")
        child = agent.child()
        self.initialized(child)
        child.print(result(child.wait(method="thread/resume")["id"], thread={"id": "t1", "turns": []}))
        opened = child.wait(method="fs/watch")["params.watchId"]
        self.assertEqual(child.wait(method="fs/unwatch")["params.watchId"], opened)

    def test_one_for_the_next_agent_outlives_the_last_one(self):
        d, agent, child, a, b = self.open(2, profile={"stop_grace": "1min"})
        for name in ("old", "w"):
            self.opened(child, a, name=name, path="/")
        child.mode(eof="ignore")
        child.caught_up()
        d.call("plenum_hibernate", session="s")
        child.event("eof")
        a.call("fs/watch", watchId="w", path="/")
        a.sync()
        child.exit()
        child = agent.child()
        self.initialized(child)
        child.print(result(child.wait(method="thread/resume")["id"], thread={"id": "t1", "turns": []}))
        m = child.wait(method="fs/watch")
        child.print(result(m["id"]))
        a.wait(result={})
        a.close()
        self.assertEqual(child.wait(method="fs/unwatch")["params.watchId"], m["params.watchId"])
        self.turn(child, b)
        self.assertEqual(len(child.seen(method="fs/unwatch")), 1)

    def test_they_outlive_an_upgrade(self):
        d, _, child, a = self.open()
        mine = self.opened(child, a)
        run = a.call("command/exec", command=["cat"], processId="e")
        theirs = child.wait(method="command/exec")
        d.call("plenum_upgrade")
        until(lambda: b" upgraded: " in open(d.log_path, "rb").read(), what="the upgrade")
        child.print(changed(mine), result(theirs["id"], exitCode=0, stdout="", stderr=""))
        a.wait(method="fs/changed", params__watchId="w")
        a.reply(run)
        a.close()
        self.assertEqual(child.wait(method="fs/unwatch")["params.watchId"], mine)
        child.caught_up()
        self.assertEqual(child.seen(method="command/exec/terminate"), [])

    def test_a_command_has_the_time_that_its_client_gives_it(self):
        """Without a time it has as long as it runs."""
        _, _, child, a = self.open()
        rid = a.call("command/exec", command=["cat"], processId="e", plenum_timeout_ms=1)
        self.assertEqual(a.reply(rid)["error.data.code"], "timeout")
        mine = child.wait(method="command/exec")["params.processId"]
        a.close()
        self.assertEqual(child.wait(method="command/exec/terminate")["params.processId"], mine)


class Requests(HandleCase):
    """Lines that name a request in their params."""

    def test_results_before_the_answer_go_to_the_asker(self):
        _, _, child, a, b = self.open(2)
        for c, rid in ((a, 7), (b, 7), (b, "7")):
            c.send(rpc("thread/search/stream", rid, query="x"))
            m = child.wait(method="thread/search/stream")
            self.assertIs(type(m["id"]), int)
            child.print(rpc("thread/search/partial", requestId=m["id"], data=[]), result(m["id"], data=[]))
            c.reply(rid)
            part = c.wait(method="thread/search/partial")
            self.assertEqual((part["params.requestId"], type(part["params.requestId"])), (rid, type(rid)))
            child.print(rpc("thread/search/partial", requestId=m["id"], data=[]))  # late
        child.mark(a, b)
        self.assertEqual([len(c.seen(method="thread/search/partial")) for c in (a, b)], [1, 2])

    def test_a_client_cancels_its_own_request(self):
        _, _, child, a, b = self.open(2)
        a.send(rpc("thread/search", "s", query="x"))
        theirs = child.wait(method="thread/search")["id"]
        b.send(rpc("thread/search/cancel", 8, requestId="s"))  # it has none of this id
        self.assertNotEqual(child.wait(method="thread/search/cancel")["params.requestId"], theirs)
        a.send(rpc("thread/search/cancel", 8, requestId="s"))
        self.assertEqual(child.wait(method="thread/search/cancel")["params.requestId"], theirs)
