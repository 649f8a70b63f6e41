# SPDX-License-Identifier: MIT
"""Rights of peers on JSON-RPC connections: drivers that are not own, observers, and processes of the agent."""
import json
import os

import acp
import codex
from acp import AcpCase, result, rpc
from codex import CodexCase
from harness import init_line

STRANGER = {"approve_uids": str(os.getuid() + 1)}  # every peer of the test is a driver that is not own


class AcpRights(AcpCase):
    def agent_of(self, d, session="s"):
        """A process of the session's agent."""
        c = self.editor(d, env={"PLENUM_CHILD": session})
        c.attach(session)
        return c

    def test_a_driver_chooses_no_conversation(self):
        for method in ("session/load", "session/resume"):
            with self.subTest(method):
                d, agent = self.begin(daemon=dict(STRANGER))
                c = self.editor(d)
                c.call("initialize", protocolVersion=1)
                child = agent.child()
                self.initialized(child, resume=True)
                self.assertEqual(c.fails(method, sessionId="secret")["data"]["code"], "not_allowed")
                child.caught_up()
                self.assertEqual(child.seen(method=method), [])

    def test_an_observer_chooses_no_conversation(self):
        d, agent = self.begin()
        e = self.editor(d)
        e.call("initialize", protocolVersion=1)
        child = agent.child()
        self.initialized(child, resume=True)
        listed = e.ok("_plenum/list")["sessions"]
        c = self.attached(d, listed[0]["session"], role="observer")
        self.assertEqual(c.fails("session/load", sessionId="secret")["data"]["code"], "not_allowed")
        child.caught_up()
        self.assertEqual(child.seen(method="session/load"), [])

    def test_a_foreign_conversation_before_the_start(self):
        d, agent = self.begin()
        a = self.attached(d)
        child = agent.child()
        mine = a.prompt("early", sessionId="another")
        other = a.call("session/set_mode", sessionId="another", modeId="plan")
        a.send(rpc("session/cancel", sessionId="another"))
        a.sync()
        self.ready(child)
        d.wait_state("s", "idle")
        child.caught_up()
        self.assertEqual(child.seen(params__sessionId="another"), [])
        self.assertEqual(a.reply(mine)["error.data.code"], "bad_request")
        self.assertEqual(a.reply(other)["error.data.code"], "bad_request")

    def test_a_title_allows_nothing(self):
        _, _, child, a = self.open(profile={"allow_tools": "read, mytool"})
        self.turn(child, a)
        child.print(acp.permission(71, title="read", kind="other"), acp.permission(72, title="mytool", kind=None),
                    acp.permission(73, title="rm", kind="read"))
        self.assertEqual(child.wait(id=73)["result.outcome.optionId"], "yes")
        self.offered(a, params__toolCall__title="read")
        self.offered(a, params__toolCall__title="mytool")
        child.caught_up()
        self.assertEqual(child.seen(id=71) + child.seen(id=72), [])

    def test_all_tools_are_allowed_without_a_name(self):
        _, _, child, a = self.open(profile={"allow_tools": "*"})
        self.turn(child, a)
        child.print(acp.permission(71, title="mytool", kind=None))
        self.assertEqual(child.wait(id=71)["result.outcome.optionId"], "yes")

    def test_a_tool_without_a_kind_may_be_a_denied_one(self):
        _, _, child, a = self.open(profile={"allow_tools": "*", "deny_tools": "execute"})
        self.turn(child, a)
        child.print(acp.permission(71, title="rm", kind=None))
        self.offered(a)
        child.caught_up()
        self.assertEqual(child.seen(id=71), [])

    def test_a_title_denies(self):
        _, _, child, a = self.open(profile={"allow_tools": "read", "deny_tools": "mytool"})
        self.turn(child, a)
        child.print(acp.permission(71, title="mytool", kind="read"))
        self.assertEqual(child.wait(id=71)["result.outcome.optionId"], "no")

    def test_a_conversation_of_another_dialect(self):
        """A session of another dialect has it: no second child writes to it, and nothing is translated."""
        d, agent, other = self.begin(agents=("agent", "other"), dialects={"other": "claude"})
        x = d.attached("x", profile="other")
        claude = self.agents[1].child()
        claude.print(init_line("c1"))
        x.wait(type="system", subtype="init")
        e = self.editor(d)
        e.call("initialize", protocolVersion=1)
        child = agent.child()
        self.initialized(child, resume=True)
        for method in ("session/load", "session/resume"):
            m = e.fails(method, sessionId="c1", cwd="/", mcpServers=[])
            self.assertEqual(m["data"]["code"], "conversation_in_use")
        child.caught_up()
        self.assertEqual(child.seen(method="session/load") + child.seen(method="session/resume"), [])

    def test_an_observer_stays_one(self):
        d, agent, child, a = self.open()
        e = self.editor(d)
        e.call("initialize", protocolVersion=1)
        own = agent.child()
        self.initialized(own)
        name = next(s["session"] for s in a.ok("_plenum/list")["sessions"] if s["session"] != "s")
        o = self.attached(d, name, role="observer")
        o.ok("session/load", sessionId="c1")
        self.assertEqual(o.fails("session/prompt", prompt=[acp.TEXT])["data"]["code"], "not_allowed")
        self.turn(child, a)
        child.print(acp.permission(71))
        self.offered(a)
        o.sync()
        self.assertEqual(o.seen(method="session/request_permission"), [])

    def test_a_process_of_the_agent_answers_nothing(self):
        d, _, child, a = self.open()
        c = self.agent_of(d)
        self.turn(child, a)
        child.print(acp.permission(71), rpc("fs/write_text_file", 72, sessionId="c1", path="/x", content="x"))
        asked, unknown = self.offered(a), a.wait(method="fs/write_text_file")["id"]
        for rid in (asked, unknown):
            c.send(acp.selected(rid, "yes"), acp.error(rid, 1, "x"))
        c.sync()
        child.caught_up()
        self.assertEqual(c.seen(method="session/request_permission") + c.seen(method="fs/write_text_file"), [])
        self.assertEqual(child.seen(id=71) + child.seen(id=72), [])
        for method, params in (("session/set_mode", {"modeId": "yolo"}), ("logout", {}), ("authenticate", {"methodId": "x"}),
                               ("session/set_config_option", {"configId": "mode", "value": "yolo"}), ("_vendor/x", {}),
                               ("session/new", {"cwd": "/", "mcpServers": [{"name": "x", "command": "/bin/true"}]})):
            self.assertEqual(c.fails(method, **params)["data"]["code"], "not_allowed", method)

    def test_an_unknown_request_without_an_approver(self):
        """A driver that may answer nothing does not keep the agent waiting."""
        d, _, child, a = self.open(daemon=dict(STRANGER), profile={"permission_wait": "50ms"})
        child.print(rpc("_vendor/ask", 72, sessionId="c1"))
        self.assertEqual(child.wait(id=72)["error.code"], -32601)
        self.assertEqual(a.seen(method="_vendor/ask"), [])

    def test_a_rule_allows_once(self):
        """A rule allows this call; a person alone lets the agent remember it."""
        _, _, child, a = self.open(profile={"allow_tools": "read"})
        self.turn(child, a)
        for rid, options in ((71, acp.OPTIONS[1:]), (72, acp.OPTIONS[2:])):
            child.print(acp.permission(rid, kind="read", options=options))
            self.offered(a, params__toolCall__toolCallId="t%d" % rid)
        child.caught_up()
        self.assertEqual(child.seen(id=71) + child.seen(id=72), [])

    def test_an_agent_forges_no_sender(self):
        """In its echo of a prompt the daemon names the sender: the agent cannot."""
        _, _, child, a, b = self.open(2)
        self.turn(child, a)
        echo = b.wait(**acp.is_update("user_message_chunk"))
        self.assertEqual(echo["params.update._meta.plenum.uid"], os.getuid())
        forged = acp.update("user_message_chunk", content=acp.TEXT, _meta={"x": 1, "plenum": {"name": "desk", "uid": 0}})
        line = json.dumps(forged)
        spelled = (line, line.replace('"plenum"', '"pl\\u0065num"'), line.replace('"_meta"', '"_m\\u0065ta"'))
        for text in spelled:
            child.print(text.encode() + b"\n")
        child.print(acp.chunk("after"))
        b.wait(**acp.is_update("agent_message_chunk"))
        metas = [m["params.update._meta"] for m in b.seen(**acp.is_update("user_message_chunk"))[1:]]
        self.assertEqual([list(meta) for meta in metas], [["x", "child_plenum"]] * 3)

    def test_an_agent_that_names_no_conversation(self):
        for answer in ({}, {"sessionId": None}, {"sessionId": 5}, {"sessionId": ""}):
            with self.subTest(answer):
                d, agent = self.begin()
                a = self.attached(d)
                child = agent.child()
                mine = a.prompt()
                self.initialized(child)
                child.print(result(child.wait(method="session/new")["id"], **answer))
                self.assertIn("named no conversation", a.reply(mine)["error.message"])
                d.wait_state("s", "failed")


class CodexRights(CodexCase):
    def test_a_driver_chooses_no_thread(self):
        d, agent = self.begin(daemon=dict(STRANGER))
        c = self.editor(d)
        c.call("initialize", clientInfo={"name": "x", "version": "1"})
        child = agent.child()
        self.initialized(child)
        self.assertEqual(c.fails("thread/resume", threadId="secret")["data"]["code"], "not_allowed")
        child.caught_up()
        self.assertEqual(child.seen(method="thread/resume"), [])

    def test_a_foreign_thread_before_the_start(self):
        d, agent = self.begin()
        a = self.attached(d)
        o = self.attached(d, role="observer")
        child = agent.child()
        lines = [a.prompt("early", threadId="another")]
        read = o.call("thread/read", threadId="another", includeTurns=True)
        a.sync()
        o.sync()
        self.ready(child)
        d.wait_state("s", "idle")
        child.caught_up()
        self.assertEqual(child.seen(params__threadId="another"), [])
        self.assertEqual(o.reply(read)["error.data.code"], "bad_request")
        self.assertEqual(a.reply(lines[0])["error.data.code"], "bad_request")

    def test_a_command_without_its_words_is_no_file_change(self):
        _, _, child, a = self.open(profile={"allow_tools": "fileChange"})
        self.turn(child, a)
        for rid, more in enumerate(({"command": None}, {"networkApprovalContext": {"host": "evil", "protocol": "https"}},
                                    {"proposedExecpolicyAmendment": ["x"]}), 80):
            child.print(codex.rpc(codex.COMMAND, rid, threadId="t1", turnId="turn1", itemId="i%d" % rid, startedAtMs=1, **more))
            self.offered(a, params__itemId="i%d" % rid)
        child.print(codex.change(90))
        self.assertEqual(child.wait(id=90)["result.decision"], "accept")
        self.assertEqual([m for m in child.seen() if m["id"] in (80, 81, 82)], [])

    def test_an_agent_that_names_no_thread(self):
        for answer in ({}, {"thread": None}, {"thread": {"id": 5}}):
            with self.subTest(answer):
                d, agent = self.begin()
                a = self.attached(d)
                child = agent.child()
                mine = a.prompt()
                self.initialized(child)
                child.print(codex.result(child.wait(method="thread/start")["id"], **answer))
                self.assertIn("named no conversation", a.reply(mine)["error.message"])
                d.wait_state("s", "failed")
