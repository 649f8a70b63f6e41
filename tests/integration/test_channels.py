# SPDX-License-Identifier: MIT
"""Several sessions over one connection of a JSON-RPC client."""
from acp import MODES, AcpCase, chunk, error, is_update, permission, result, rpc, selected, update
from codex import CodexCase, approval, completed, decided, delta
from codex import result as codex_result
from codex import started
from harness import until


class Connection(AcpCase):
    """An editor with sessions for the conversations c1, c2, ... over one connection: (daemon, agent, editor, child, ...)."""

    def open(self, n=2, **options):
        d, agent = self.begin(**options)
        e = self.editor(d)
        first = e.call("initialize", protocolVersion=1)
        children = [agent.child()]
        self.initialized(children[0])
        e.reply(first)
        self.new(e, children[0], "c1")
        for i in range(2, n + 1):
            rid = e.call("session/new", cwd="/usr", mcpServers=[])
            children.append(agent.child())
            self.initialized(children[-1])
            self.answer_new(e, children[-1], rid, "c%d" % i)
        return (d, agent, e, *children)

    def new(self, e, child, conversation, cwd="/"):
        rid = e.call("session/new", cwd=cwd, mcpServers=[])
        self.answer_new(e, child, rid, conversation)

    def answer_new(self, e, child, rid, conversation):
        child.print(result(child.wait(method="session/new")["id"], sessionId=conversation, modes=MODES))
        self.assertEqual(e.reply(rid)["result"], {"sessionId": conversation, "modes": MODES})

    def turn_of(self, child, e, conversation):
        mine = e.prompt(sessionId=conversation)
        return mine, child.wait(method="session/prompt", params__sessionId=conversation)["id"]

    def session_of(self, d, conversation):
        return next(s for s in d.sessions().values() if s["conversation_id"] == conversation)


class Sessions(Connection):
    def test_each_has_a_child_of_its_own(self):
        d, _, e, one, two = self.open()
        self.assertEqual(sorted((s["conversation_id"], s["cwd"]) for s in d.sessions().values()), [("c1", "/"), ("c2", "/usr")])
        self.assertEqual(two.seen(method="session/new")[0]["params.cwd"], "/usr")
        mine = [self.turn_of(child, e, c) for child, c in ((one, "c1"), (two, "c2"))]
        two.print(chunk("from two", "c2"), result(mine[1][1], stopReason="max_tokens"))
        self.assertEqual(e.reply(mine[1][0])["result.stopReason"], "max_tokens")
        one.print(chunk("from one", "c1"), result(mine[0][1], stopReason="end_turn"))
        self.assertEqual(e.reply(mine[0][0])["result.stopReason"], "end_turn")
        said = [(m["params.sessionId"], m["params.update.content.text"]) for m in e.seen(**is_update("agent_message_chunk"))]
        self.assertEqual(said, [("c2", "from two"), ("c1", "from one")])
        for child in (one, two):
            self.assertEqual(len(child.seen(method="session/prompt")), 1)

    def test_a_line_that_names_none_is_for_the_first(self):
        _, _, e, one, two = self.open()
        mine = e.prompt("here")
        m = one.wait(method="session/prompt", params__sessionId="c1")
        one.print(result(m["id"], stopReason="end_turn"))
        e.reply(mine)
        rid = e.call("session/list")
        one.print(result(one.wait(method="session/list")["id"], sessions=[]))
        self.assertEqual(e.reply(rid)["result"], {"sessions": []})
        two.caught_up()
        self.assertEqual(two.seen(method="session/list") + two.seen(method="session/prompt"), [])

    def test_an_unknown_session_is_refused(self):
        _, _, e, one, two = self.open()
        m = e.fails("session/prompt", sessionId="c3", prompt=[])
        self.assertEqual(m["code"], -32602)
        self.assertIn("load or resume it first", m["message"])
        self.assertEqual(one.seen(method="session/prompt") + two.seen(method="session/prompt"), [])

    def test_permissions_of_both_under_one_id_of_the_children(self):
        d, _, e, one, two = self.open()
        for child, c in ((one, "c1"), (two, "c2")):
            self.turn_of(child, e, c)
        one.print(permission(0, "first"))
        first = self.offered(e, params__sessionId="c1")
        two.print(permission(0, "second", conversation="c2"))
        second = self.offered(e, params__sessionId="c2")
        self.assertNotEqual(first, second)
        e.send(selected(second, "no"), selected(first, "always"))
        self.assertEqual(one.wait(id=0)["result.outcome.optionId"], "always")
        self.assertEqual(two.wait(id=0)["result.outcome.optionId"], "no")
        e.send(selected(second, "yes"))  # late: dropped, as on a connection with one session
        e.sync()
        self.assertEqual(e.seen(method="_plenum/event", params__event="error"), [])

    def test_another_client_answers_for_the_second(self):
        d, _, e, _, two = self.open()
        b = self.attached(d, self.session_of(d, "c2")["session"])
        self.turn_of(two, e, "c2")
        two.print(permission(7, conversation="c2"))
        asked = self.offered(e)
        b.send(selected(self.offered(b), "yes"))
        two.wait(id=7)
        e.wait(method="$/cancel_request", params__requestId=asked)

    def test_cancel_of_one(self):
        _, _, e, one, two = self.open()
        mine = [self.turn_of(child, e, c) for child, c in ((one, "c1"), (two, "c2"))]
        two.print(permission(5, conversation="c2"))
        self.offered(e)
        e.send(rpc("session/cancel", sessionId="c2"))
        two.wait(method="session/cancel", params__sessionId="c2")
        self.assertEqual(two.wait(id=5)["result.outcome.outcome"], "cancelled")
        two.print(result(mine[1][1], stopReason="cancelled"))
        self.assertEqual(e.reply(mine[1][0])["result.stopReason"], "cancelled")
        self.assertEqual(one.seen(method="session/cancel"), [])
        e.send(rpc("$/cancel_request", requestId=mine[0][0]))
        self.assertEqual(one.wait(method="$/cancel_request")["params.requestId"], mine[0][1])
        one.print(result(mine[0][1], stopReason="cancelled"))
        e.reply(mine[0][0])

    def test_an_id_is_open_once_a_connection(self):
        _, _, e, one, two = self.open()
        e.prompt(rid=77, sessionId="c1")
        one.wait(method="session/prompt")
        e.prompt(rid=77, sessionId="c2")
        self.assertEqual(e.reply(77)["error.data.code"], "duplicate_request")
        self.assertEqual(two.seen(method="session/prompt"), [])

    def test_a_request_to_begin_is_withdrawn(self):
        d, agent, e, one = self.open(1)
        rid = e.call("session/new", cwd="/usr", mcpServers=[])
        two = agent.child()
        e.send(rpc("$/cancel_request", requestId=rid))
        self.assertEqual(e.reply(rid)["error.code"], -32800)
        two.wait_gone()
        until(lambda: len(d.sessions()) == 1, what="the unused session to be removed")
        self.turn_of(one, e, "c1")

    def test_a_refused_session_leaves_nothing(self):
        d, agent, e, one = self.open(1)
        rid = e.call("session/new", cwd="/usr", mcpServers=[])
        two = agent.child()
        self.initialized(two)
        two.print(error(two.wait(method="session/new")["id"], -32000, "Authentication required"))
        self.assertIn("Authentication required", e.reply(rid)["error.message"])
        until(lambda: len(d.sessions()) == 1, what="the unused session to be removed")
        rid = e.call("session/new", cwd="/nonexistent/place", mcpServers=[])
        self.assertIn("/nonexistent/place", e.reply(rid)["error.message"])
        until(lambda: len(d.sessions()) == 1, what="the unused session to be removed")
        self.assertEqual(len(d.call("plenum_status")["clients"]), 2)  # with the one that asks
        self.turn_of(one, e, "c1")

    def test_only_an_own_peer_opens_another(self):
        d, agent, e, one = self.open(1)
        o = self.attached(d, self.session_of(d, "c1")["session"], role="observer")
        self.assertIn("error", o.reply(o.call("session/new", cwd="/", mcpServers=[])).obj)
        self.assertEqual(len(d.sessions()), 1)

    def test_the_limits_of_a_share_count(self):
        d, agent = self.begin(daemon={"max_sessions": 1})
        e = self.attached(d)
        self.ready(agent.child())
        m = e.fails("session/new", cwd="/", mcpServers=[])
        self.assertEqual(m["data"]["code"], "too_many")


class Ends(Connection):
    def test_one_child_ends(self):
        _, agent, e, one, two = self.open()
        first, second = self.turn_of(one, e, "c1"), self.turn_of(two, e, "c2")
        two.exit(3)
        self.assertEqual(e.reply(second[0])["error.data.code"], "child_exited")
        one.print(result(first[1], stopReason="end_turn"))
        e.reply(first[0])
        mine = e.prompt(sessionId="c2")
        two = agent.child()
        self.initialized(two)
        two.print(result(two.wait(method="session/load", params__sessionId="c2")["id"], modes=MODES))
        two.print(result(two.wait(method="session/set_mode")["id"]))
        two.print(result(two.wait(method="session/prompt")["id"], stopReason="end_turn"))
        e.reply(mine)

    def test_the_first_session_is_removed(self):
        d, agent, e, one, two = self.open()
        d.call("plenum_stop", session=self.session_of(d, "c1")["session"], forget=True)
        one.wait_gone()
        until(lambda: len(d.sessions()) == 1, what="the first session to be removed")
        self.turn_of(two, e, "c2")
        e.prompt("unnamed")
        two.wait(lambda m: m["method"] == "session/prompt" and m["params.prompt"][0]["text"] == "unnamed")
        rid = e.call("session/new", cwd="/", mcpServers=[])
        three = agent.child()
        self.initialized(three)
        self.answer_new(e, three, rid, "c3")

    def test_a_further_session_is_removed(self):
        d, _, e, one, two = self.open()
        d.call("plenum_stop", session=self.session_of(d, "c2")["session"], forget=True)
        two.wait_gone()
        until(lambda: len(d.call("plenum_status")["clients"]) == 2, what="the channel to be closed")
        self.assertIn("load or resume it first", e.fails("session/prompt", sessionId="c2", prompt=[])["message"])
        self.turn_of(one, e, "c1")

    def test_a_subscriber_gets_an_event_once(self):
        d, _, e, one, two = self.open()
        e.ok("_plenum/subscribe")
        mine, theirs = self.turn_of(two, e, "c2")
        two.print(result(theirs, stopReason="end_turn"))
        e.reply(mine)
        d.wait_state(self.session_of(d, "c2")["session"], "idle")
        e.sync()
        name = self.session_of(d, "c2")["session"]
        self.assertEqual(len(e.seen(method="_plenum/event", params__event="turn_ended", params__session=name)), 1)

    def test_a_connection_that_sends_no_more_gets_its_answers(self):
        d, _, e, one, two = self.open()
        mine = [self.turn_of(child, e, c) for child, c in ((one, "c1"), (two, "c2"))]
        e.half_close()
        one.print(result(mine[0][1], stopReason="end_turn"))
        e.reply(mine[0][0])
        two.print(chunk("last", "c2"), result(mine[1][1], stopReason="end_turn"))
        e.wait(**is_update("agent_message_chunk"))
        e.reply(mine[1][0])
        e.wait_eof()
        self.assertEqual({s["attachments"] for s in d.sessions().values()}, {0})

    def test_the_connection_ends(self):
        d, _, e, one, two = self.open()
        self.turn_of(two, e, "c2")
        e.close()
        until(lambda: {s["attachments"] for s in d.sessions().values()} == {0}, what="both sessions to be left")
        self.assertEqual(len(d.call("plenum_status")["clients"]), 1)

    def test_the_daemon_ends(self):
        d, _, e, one, two = self.open()
        mine, _ = self.turn_of(two, e, "c2")
        d.stop()
        self.assertIn("error", e.reply(mine).obj)
        e.wait_eof()
        self.assertEqual(len(e.seen(method="_plenum/event", params__event="shutting_down")), 1)
        d.start()

    def test_kill_9_of_the_daemon_and_load(self):
        d, agent, e, one, two = self.open()
        self.turn_of(two, e, "c2")
        two.print(permission(3, conversation="c2"))
        self.offered(e)
        until(lambda: len(d.table()) == 2, what="the table")
        d.kill9()
        e.wait_eof()
        one.wait_gone()
        two.wait_gone()
        d.start()
        e = self.editor(d)
        first = e.call("initialize", protocolVersion=1)
        own = agent.child()
        self.initialized(own)
        e.reply(first)
        self.new(e, own, "c9")
        for c in ("c1", "c2"):
            rid = e.call("session/load", sessionId=c, cwd="/", mcpServers=[])
            child = agent.child()
            self.initialized(child)
            m = child.wait(method="session/load", params__sessionId=c)
            child.print(chunk("old " + c, c), result(m["id"], modes=MODES))
            child.print(result(child.wait(method="session/set_mode", params__sessionId=c)["id"]))
            self.assertEqual(e.reply(rid)["result.modes.currentModeId"], "default")
            e.wait(**is_update("agent_message_chunk", params__update__content__text="old " + c))
            self.turn_of(child, e, c)
        self.assertEqual(len(d.sessions()), 3)

    def test_nothing_begun_is_not_kept_on_disk(self):
        d, agent = self.begin()
        e = self.editor(d)
        e.call("initialize", protocolVersion=1)
        child = agent.child()
        child.wait(method="initialize")
        self.attached(d, "s")
        until(lambda: "s" in [row["name"] for row in d.table()], what="the table")  # it has the older ones, too
        d.kill9()
        child.wait_gone()
        d.start()
        self.assertEqual(list(d.sessions()), ["s"])

    def test_upgrade(self):
        d, _, e, one, two = self.open()
        mine = [self.turn_of(child, e, c) for child, c in ((one, "c1"), (two, "c2"))]
        two.print(permission(4, conversation="c2"))
        asked = self.offered(e)
        d.call("plenum_upgrade")
        until(lambda: b" upgraded: " in open(d.log_path, "rb").read(), what="the upgrade")
        e.send(selected(asked, "yes"))
        two.wait(id=4)
        for child, c, (hers, theirs) in ((one, "c1", mine[0]), (two, "c2", mine[1])):
            child.print(chunk("after", c), result(theirs, stopReason="end_turn"))
            e.wait(**is_update("agent_message_chunk", params__sessionId=c))
            e.reply(hers)
        e.close()
        until(lambda: {s["attachments"] for s in d.sessions().values()} == {0}, what="both sessions to be left")


class Load(Connection):
    def test_a_fork(self):
        d, agent, e, one = self.open(1)
        rid = e.call("session/fork", sessionId="c1", cwd="/usr", mcpServers=[])
        two = agent.child()
        self.initialized(two)
        m = two.wait(method="session/fork")
        self.assertEqual(m["params"], {"sessionId": "c1", "cwd": "/usr", "mcpServers": []})
        two.print(result(m["id"], sessionId="c2", modes=MODES))
        self.assertEqual(e.reply(rid)["result"], {"sessionId": "c2", "modes": MODES})
        self.turn_of(one, e, "c1")
        self.turn_of(two, e, "c2")
        two.exit(1)
        e.event("child_exited")
        e.prompt(sessionId="c2")
        two = agent.child()
        self.initialized(two)
        two.wait(method="session/load", params__sessionId="c2")  # not forked again

    def test_a_session_of_others_is_joined(self):
        d, agent, e, one = self.open(1)
        b = self.attached(d, "s")
        child = agent.child()
        self.ready(child, "c5")
        mine, theirs = self.turn(child, b, "q")
        child.print(chunk("a", "c5"))
        b.wait(**is_update("agent_message_chunk"))
        e.ok("session/load", sessionId="c5", cwd="/", mcpServers=[])
        self.assertEqual([m["params.update.sessionUpdate"] for m in e.seen(method="session/update", params__sessionId="c5")],
                         ["user_message_chunk", "agent_message_chunk"])
        child.print(update("usage_update", "c5", used=1, size=2), result(theirs, stopReason="end_turn"))
        e.wait(**is_update("usage_update"))
        b.reply(mine)
        self.assertEqual(len(d.sessions()), 2)
        e.close()
        b.event("detached")
        self.assertEqual(d.sessions()["s"]["attachments"], 1)

    def test_a_joined_session_still_ends_with_its_child(self):
        d, agent, e, one = self.open(1)
        b = self.attached(d, "s", ephemeral=True)
        child = agent.child()
        self.ready(child, "c5")
        d.wait_state("s", "idle")
        e.ok("session/load", sessionId="c5", cwd="/", mcpServers=[])
        child.exit(0)
        b.wait_eof()
        until(lambda: len(d.sessions()) == 1, what="the session to end with its child")
        self.assertIn("load or resume it first", e.fails("session/prompt", sessionId="c5", prompt=[])["message"])
        self.turn_of(one, e, "c1")

    def test_an_old_conversation(self):
        d, agent, e, one = self.open(1)
        rid = e.call("session/resume", sessionId="c8", cwd="/usr", mcpServers=[])
        two = agent.child()
        self.initialized(two)
        m = two.wait(method="session/load", params__sessionId="c8")
        two.print(chunk("old", "c8"), result(m["id"], modes=MODES))
        two.print(result(two.wait(method="session/set_mode", params__sessionId="c8")["id"]))
        self.assertEqual(e.reply(rid)["result"], {"sessionId": "c8", "modes": MODES})
        self.turn_of(two, e, "c8")
        self.turn_of(one, e, "c1")

    def test_another_must_have_room_on_disk(self):
        """Its session is in the table, even if the client is a guest in a session that is not: test_table.LimitTest."""
        d, agent = self.begin(profiles={"profile idle": {"command": "sleep 1000", "dialect": "acp"}})
        env = {"V%d" % i: "w" * 100000 for i in range(9)}
        self.attached(d, env=env, ephemeral=True)
        self.ready(agent.child())
        d.wait_state("s", "idle")
        guest = self.attached(d)
        for i in range((16 << 20) // (9 * 100006)):
            self.attached(d, "s%d" % i, env=env, profile="idle")
        m = guest.fails("session/new", cwd="/", mcpServers=[])
        self.assertIn("all sessions may have 16777216 bytes of args and env", m["message"])

    def test_an_attached_client_opens_another(self):
        d, agent = self.begin()
        a = self.attached(d, tag=True, name="me")
        one = agent.child()
        self.ready(one)
        rid = a.call("session/new", cwd="/usr", mcpServers=[])
        two = agent.child()
        self.initialized(two)
        self.answer_new(a, two, rid, "c2")
        two.print(chunk("x", "c2"))
        self.assertIn("plenum_seq", a.wait(**is_update("agent_message_chunk")).obj)
        names = [c["name"] for c in d.call("plenum_status")["clients"] if c.get("session")]
        self.assertEqual(names, ["me", "me"])


class Flow(Connection):
    def test_a_reader_that_stands_still_for_both(self):
        d, _, e, one, two = self.open()
        for child, c in ((one, "c1"), (two, "c2")):
            child.flood(chunk("@P@", c), 500, pad=4000)  # more than the socket takes, and less than the tape
            child.print(chunk("end", c))
            child.written()
        for c in ("c1", "c2"):
            e.wait(**is_update("agent_message_chunk", params__sessionId=c, params__update__content__text="end"))
            self.assertEqual(len(e.seen(**is_update("agent_message_chunk", params__sessionId=c))), 501)

    def test_a_long_replay_holds_the_lines_of_its_session_alone(self):
        d, agent, e, one = self.open(1, limits={"tape_bytes": "64M", "tape_lines": 100000})
        b = self.attached(d, "s")
        two = agent.child()
        self.ready(two, "c2")
        two.flood(chunk("@P@", "c2"), 4500, pad=4000)
        two.print(chunk("end", "c2"))
        b.wait(**is_update("agent_message_chunk", params__update__content__text="end"))
        rid = e.call("session/load", sessionId="c2", cwd="/", mcpServers=[])
        mine = e.prompt("on", sessionId="c2")
        e.reply(rid)
        self.assertEqual(len(e.seen(**is_update("agent_message_chunk"))), 4501)
        two.print(result(two.wait(method="session/prompt")["id"], stopReason="end_turn"))
        e.reply(mine)
        self.turn_of(one, e, "c1")

    def test_a_reply_of_one_during_a_flood_of_the_other(self):
        d, _, e, one, two = self.open()
        mine, theirs = self.turn_of(two, e, "c2")
        one.flood(chunk("@P@", "c1"), 500, pad=4000)
        two.print(chunk("short", "c2"), result(theirs, stopReason="end_turn"))
        e.reply(mine)
        self.assertEqual(len(e.seen(**is_update("agent_message_chunk", params__sessionId="c2"))), 1)


class Codex(CodexCase):
    def open(self, **options):
        d, agent = self.begin(**options)
        e = self.editor(d)
        first = e.call("initialize", clientInfo={"name": "x", "version": "1"})
        one = agent.child()
        self.initialized(one)
        e.reply(first)
        e.send({"method": "initialized"})
        self.thread(e, one, e.call("thread/start", cwd="/"), "t1")
        rid = e.call("thread/start", cwd="/usr", approvalPolicy="never")
        two = agent.child()
        self.initialized(two)
        self.assertEqual(self.thread(e, two, rid, "t2"), {"cwd": "/usr", "approvalPolicy": "never"})
        return d, agent, e, one, two

    def thread(self, e, child, rid, thread):
        m = child.wait(method="thread/start")
        child.print(codex_result(m["id"], thread={"id": thread, "turns": []}, model="big"))
        self.assertEqual(e.reply(rid)["result.thread.id"], thread)
        return m["params"]

    def run_turn(self, child, e, thread):
        mine = e.prompt(threadId=thread)
        self.accept(child)
        child.print(started(thread=thread))
        e.reply(mine)

    def test_turns_in_both(self):
        d, _, e, one, two = self.open()
        for child, t in ((one, "t1"), (two, "t2")):
            self.run_turn(child, e, t)
        for child, t in ((two, "t2"), (one, "t1")):
            child.print(delta("from " + t, t), completed(thread=t))
            e.wait(method="turn/completed", params__threadId=t)
        self.assertEqual([(m["params.threadId"], m["params.delta"]) for m in e.seen(method="item/agentMessage/delta")],
                         [("t2", "from t2"), ("t1", "from t1")])

    def test_approvals_in_both(self):
        _, _, e, one, two = self.open()
        for child, t in ((one, "t1"), (two, "t2")):
            self.run_turn(child, e, t)
        one.print(approval(0))
        first = self.offered(e, params__threadId="t1")
        ask = approval(0)
        ask["params"]["threadId"] = "t2"
        two.print(ask)
        second = self.offered(e, params__threadId="t2")
        e.send(decided(second, "cancel"), decided(first, "accept"))
        self.assertEqual(one.wait(id=0)["result.decision"], "accept")
        self.assertEqual(two.wait(id=0)["result.decision"], "cancel")
        for child, t, rid in ((one, "t1", first), (two, "t2", second)):
            child.print({"method": "serverRequest/resolved", "params": {"threadId": t, "requestId": 0}})
            e.wait(method="serverRequest/resolved", params__threadId=t, params__requestId=rid)

    def test_interrupt_of_one(self):
        _, _, e, one, two = self.open()
        for child, t in ((one, "t1"), (two, "t2")):
            self.run_turn(child, e, t)
        rid = e.call("turn/interrupt", threadId="t2", turnId="turn1")
        m = two.wait(method="turn/interrupt")
        two.print(codex_result(m["id"]), completed(status="interrupted", thread="t2"))
        e.reply(rid)
        self.assertEqual(one.seen(method="turn/interrupt"), [])

    def test_an_old_thread(self):
        _, agent, e, one, two = self.open()
        rid = e.call("thread/resume", threadId="t7")
        three = agent.child()
        self.initialized(three)
        m = three.wait(method="thread/resume", params__threadId="t7")
        three.print(codex_result(m["id"], thread={"id": "t7", "turns": []}))
        m = three.wait(lambda x: x["method"] == "thread/resume" and "excludeTurns" not in x["params"])
        three.print(codex_result(m["id"], thread={"id": "t7", "turns": [{"id": "old"}]}))
        self.assertEqual(e.reply(rid)["result.thread.turns"], [{"id": "old"}])
        self.run_turn(three, e, "t7")

    def test_an_older_id_of_a_thread(self):
        d, agent, e, *_ = self.open()
        b = self.attached(d, "s", resume="t5")
        child = agent.child()
        self.initialized(child)
        m = child.wait(method="thread/resume", params__threadId="t5")
        child.print(codex_result(m["id"], thread={"id": "t6", "turns": []}))
        d.wait_state("s", "idle")
        for c in (b, e):
            self.assertEqual(c.fails("thread/resume", threadId="t5")["data"]["code"], "conversation_in_use")
        self.assertEqual(len(d.sessions()), 3)

    def test_notifications_that_the_program_does_not_want(self):
        d, agent = self.begin()
        e = self.editor(d)
        first = e.call("initialize", clientInfo={"name": "x", "version": "1"},
                       capabilities={"optOutNotificationMethods": ["item/agentMessage/delta"]})
        one = agent.child()
        self.initialized(one)
        e.reply(first)
        self.thread(e, one, e.call("thread/start", cwd="/"), "t1")
        rid = e.call("thread/start", cwd="/")
        two = agent.child()
        self.initialized(two)
        self.thread(e, two, rid, "t2")
        for child, t in ((one, "t1"), (two, "t2")):
            self.run_turn(child, e, t)
            child.print(delta("x", t), completed(thread=t))
            e.wait(method="turn/completed", params__threadId=t)
        self.assertEqual(e.seen(method="item/agentMessage/delta"), [])

    def test_a_fork(self):
        _, agent, e, one, two = self.open()
        rid = e.call("thread/fork", threadId="t2", excludeTurns=True, model="small")
        three = agent.child()
        self.initialized(three)
        m = three.wait(method="thread/fork")
        self.assertEqual(m["params"], {"threadId": "t2", "excludeTurns": True, "model": "small"})
        three.print(codex_result(m["id"], thread={"id": "t3", "turns": []}, cwd="/usr/lib"))
        self.assertEqual(e.reply(rid)["result.thread.id"], "t3")
        for child, t in ((two, "t2"), (three, "t3")):
            self.run_turn(child, e, t)
        three.exit(1)
        e.event("child_exited")
        e.prompt(threadId="t3")
        three = agent.child()
        self.initialized(three)
        three.wait(method="thread/resume", params__threadId="t3", params__cwd="/usr/lib")  # not forked again

    def test_a_program_begins_with_a_fork(self):
        d, agent = self.begin()
        b = self.attached(d)
        self.ready(agent.child(), "t1")
        d.wait_state("s", "idle")
        e = self.editor(d)
        e.call("initialize", clientInfo={"name": "x", "version": "1"})
        rid = e.call("thread/fork", threadId="t1")
        child = agent.child()
        self.initialized(child)
        m = child.wait(method="thread/fork", params__threadId="t1")
        child.print(codex_result(m["id"], thread={"id": "t2", "turns": []}))
        e.reply(rid)
        self.run_turn(child, e, "t2")
        b.sync()
        self.assertEqual(b.seen(method="turn/started"), [])

    def test_an_unknown_thread_and_lists(self):
        _, _, e, one, two = self.open()
        self.assertIn("load or resume it first", e.fails("turn/start", threadId="t9", input=[])["message"])
        rid = e.call("thread/list")
        one.print(codex_result(one.wait(method="thread/list")["id"], data=[]))
        e.reply(rid)

    def test_the_end_of_one_child(self):
        d, _, e, one, two = self.open()
        self.run_turn(one, e, "t1")
        self.run_turn(two, e, "t2")
        two.exit(1)
        e.event("child_exited", status=1)
        one.print(completed(thread="t1"))
        e.wait(method="turn/completed", params__threadId="t1")
