#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plenum-fakeagent app-server over its stdin and stdout: what a client of codex app-server meets."""
import os
import signal
import unittest
import uuid

from test_fakeagent import Case
from test_fakeagent_acp import AcpAgent

TOUCH = '@tool Bash {"command":"touch made; echo out"}@'
COMMAND = "item/commandExecution/requestApproval"


class ServerAgent(AcpAgent):
    WORD = "app-server"
    FRAME = {}

    def open(self, method="thread/start", **params):
        if not self.number:
            self.ok("initialize", clientInfo={"name": "test", "version": "1"})
            self.message(method="initialized")
        result = self.ok(method, cwd=self.folder, **params)
        self.session = result["thread"]["id"]
        return result

    def prompt(self, text, **more):
        return self.call("turn/start", threadId=self.session, input=[{"type": "text", "text": text}], **more)

    def begin(self, text, **more):
        """Starts a turn; its id."""
        return self.reply(self.prompt(text, **more))["result"]["turn"]["id"]

    def completed(self):
        return self.notified("turn/completed")["turn"]

    def turn(self, text, **more):
        self.begin(text, **more)
        return self.completed()

    def notified(self, method):
        return self.until(lambda f: f.get("method") == method)["params"]

    def decide(self, ask, decision):
        self.message(id=ask["id"], result={"decision": decision})

    def items(self, kind, method="item/completed"):
        items = [f["params"]["item"] for f in self.seen if f.get("method") == method]
        return [i for i in items if i["type"] == kind]

    def methods(self):
        return [f["method"] for f in self.seen if "method" in f]

    def text(self, *_):
        return "".join(f["params"]["delta"] for f in self.seen if f.get("method") == "item/agentMessage/delta")


class ServerCase(Case):
    def start(self, *args, **more):
        self.agents.append(ServerAgent(self.folder, *args, **more))
        return self.agents[-1]

    def opened(self, *args, **more):
        a = self.start(*args, **more)
        a.open()
        return a

    def made(self):
        return os.path.exists(self.path("made"))


class Connection(ServerCase):
    def test_handshake(self):
        a = self.start()
        self.assertEqual(a.error("thread/start"), {"code": -32600, "message": "Not initialized"})
        a.number = 0
        a.open()
        self.assertEqual(a.error("initialize", clientInfo={})["message"], "Already initialized")
        self.assertEqual(a.close()[0], 0)

    def test_no_jsonrpc_member(self):
        a = self.opened()
        a.turn("hello")
        self.assertFalse([f for f in a.seen if "jsonrpc" in f])
        self.assertFalse([f for f in a.seen if "id" not in f and "emittedAtMs" not in f])
        a.message(jsonrpc="2.0", id="x", method="thread/list", params={})
        self.assertIn("data", a.reply("x")["result"])

    def test_bad_lines_are_dropped(self):
        a = self.opened()
        for line in (b'{"no', b"[]", b"7", b'{"id":null,"method":"thread/list","params":{}}',
                     b'{"id":1.5,"method":"thread/list","params":{}}', b'{"id":12345678901234567890,"method":"x"}'):
            a.raw(line + b"\n")
        a.ok("thread/list")
        self.assertEqual([f for f in a.seen if "error" in f], [])

    def test_errors(self):
        a = self.opened()
        for method, params, text in (
                ("no/such", {}, "Invalid request: unknown variant `no/such`"),
                ("turn/start", {}, "Invalid request: missing field `threadId`"),
                ("turn/start", {"threadId": "x"}, "thread not found: x"),
                ("thread/resume", {"threadId": "x"}, "no rollout found for thread id x"),
                ("turn/steer", {"threadId": a.session, "expectedTurnId": "x"}, "no active turn to steer"),
                ("turn/interrupt", {"threadId": a.session, "turnId": "x"}, "no active turn to interrupt")):
            with self.subTest(method=method, params=params):
                f = a.reply(a.call(method, **params))
                self.assertEqual(f["error"], {"code": -32600, "message": text})
                self.assertEqual(list(f)[-1], "id")

    def test_opt_out(self):
        a = self.start()
        a.ok("initialize", clientInfo={}, capabilities={"optOutNotificationMethods": ["item/agentMessage/delta"]})
        a.open()
        a.turn("hello")
        self.assertNotIn("item/agentMessage/delta", a.methods())

    def test_end_of_input(self):
        a = self.opened()
        a.prompt(TOUCH)
        a.ask(COMMAND)
        self.assertEqual(a.close()[0], 0)
        self.assertFalse(self.made())


class Threads(ServerCase):
    def test_start(self):
        a = self.start()
        result = a.open()
        self.assertEqual((result["approvalPolicy"], result["thread"]["status"]), ("on-request", {"type": "idle"}))
        self.assertEqual(a.notified("thread/started")["thread"]["id"], a.session)

    def test_settings(self):
        a = self.start()
        result = a.open(approvalPolicy="never", model="fake-small")
        self.assertEqual((result["approvalPolicy"], result["model"]), ("never", "fake-small"))
        a.turn(TOUCH)
        self.assertNotIn(COMMAND, a.methods())
        a.prompt(TOUCH, approvalPolicy="on-request")
        self.assertEqual(a.notified("thread/settings/updated")["threadSettings"]["approvalPolicy"], "on-request")
        a.ask(COMMAND)
        self.assertEqual(a.ok("thread/settings/update", threadId=a.session, model="x"), {})
        self.assertEqual(a.notified("thread/settings/updated")["threadSettings"]["model"], "x")

    def test_resume(self):
        a = self.opened()
        a.turn("hello")
        a.begin(TOUCH)
        a.decide(a.ask(COMMAND), "accept")
        a.completed()
        a.close()
        b = self.start()
        turns = b.open("thread/resume", threadId=a.session)["thread"]["turns"]
        self.assertEqual([[i["type"] for i in t["items"]] for t in turns], [
            ["userMessage", "agentMessage"], ["userMessage", "commandExecution", "agentMessage"]])
        self.assertEqual(turns[1]["items"][1]["aggregatedOutput"], "out")
        self.assertEqual(b.open("thread/resume", threadId=a.session, excludeTurns=True)["thread"]["turns"], [])
        b.turn("@history@")
        self.assertEqual(b.text().splitlines()[0], "hello")
        self.assertEqual([t["status"]["type"] for t in b.ok("thread/list")["data"] if t["id"] == a.session], ["idle"])
        self.assertEqual(len(b.ok("thread/read", threadId=a.session, includeTurns=True)["thread"]["turns"]), 3)


class Turns(ServerCase):
    def test_order(self):
        a = self.opened()
        a.notified("thread/started")
        del a.seen[:]
        client = str(uuid.uuid4())
        turn = a.turn("hello", clientUserMessageId=client)
        self.assertEqual(turn["status"], "completed")
        self.assertEqual(a.methods(), [
            "thread/status/changed", "turn/started", "item/started", "item/completed", "item/started",
            "item/agentMessage/delta", "item/agentMessage/delta", "item/completed", "thread/tokenUsage/updated",
            "thread/status/changed", "turn/completed"])
        self.assertEqual(a.items("userMessage")[0]["clientId"], client)
        self.assertEqual(a.items("agentMessage")[0]["text"], "echo: hello")
        self.assertEqual(a.text(), "echo: hello")

    def test_reply_comes_first(self):
        a = self.opened()
        a.notified("thread/started")
        del a.seen[:]
        a.turn("hello")
        self.assertEqual(a.seen[0]["result"]["turn"]["status"], "inProgress")

    def test_input_joins_the_turn(self):
        a = self.opened()
        turn = a.begin(TOUCH)
        ask = a.ask(COMMAND)
        self.assertEqual(a.begin("one"), turn)
        self.assertEqual(a.ok("turn/steer", threadId=a.session, expectedTurnId=turn,
                              input=[{"type": "text", "text": "two"}]), {"turnId": turn})
        a.decide(ask, "accept")
        self.assertEqual(a.completed()["id"], turn)
        self.assertEqual([i["content"][0]["text"] for i in a.items("userMessage")], [TOUCH, "one", "two"])
        self.assertEqual(a.methods().count("turn/started"), 1)

    def test_interrupt(self):
        a = self.opened()
        turn = a.begin("@slow 50@ @long 5000@")
        a.notified("item/agentMessage/delta")
        self.assertIn("error", a.reply(a.call("turn/interrupt", threadId=a.session, turnId="other")))
        self.assertEqual(a.ok("turn/interrupt", threadId=a.session, turnId=turn), {})
        self.assertEqual(a.completed()["status"], "interrupted")
        self.assertEqual(a.turn("hello")["status"], "completed")

    def test_failed_call_of_the_model(self):
        a = self.opened()
        turn = a.turn("@error gone@")
        self.assertEqual((turn["status"], turn["error"]["message"]), ("failed", "API Error: gone"))
        self.assertIn("error", a.methods())


class Approvals(ServerCase):
    def test_request(self):
        a = self.opened()
        a.begin(TOUCH)
        ask = a.ask(COMMAND)
        self.assertEqual((ask["id"], ask["params"]["threadId"]), (0, a.session))
        self.assertEqual(ask["params"]["command"], "touch made; echo out")
        self.assertEqual([d for d in ask["params"]["availableDecisions"] if isinstance(d, str)], ["accept", "cancel"])
        self.assertEqual(a.items("commandExecution", "item/started")[0]["id"], ask["params"]["itemId"])

    def test_decisions(self):
        """What each answer makes of the command, and of the turn."""
        amended = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["true"]}}
        for members, status, turn in (
                ({"result": {"decision": "accept"}}, "completed", "completed"),
                ({"result": {"decision": amended}}, "completed", "completed"),
                ({"result": {"decision": "decline"}}, "declined", "completed"),
                ({"result": {"decision": "cancel"}}, "declined", "interrupted"),
                ({"result": {"decision": "acceptForSession"}}, "completed", "completed"),
                ({"result": {"decision": "no such"}}, "declined", "completed"),
                ({"result": {}}, "declined", "completed"),
                ({"error": {"code": -32000, "message": "no"}}, "failed", "completed")):
            with self.subTest(answer=members):
                a = self.opened()
                a.begin('@tool Bash {"command":"true"}@')
                ask = a.ask(COMMAND)
                a.message(id=ask["id"], **members)
                self.assertEqual(a.notified("serverRequest/resolved"), {"threadId": a.session, "requestId": 0})
                self.assertEqual(a.completed()["status"], turn)
                self.assertEqual(a.items("commandExecution")[-1]["status"], status)

    def test_file_change(self):
        for decision, again in (("acceptForSession", False), ("accept", True)):
            a = self.opened()
            prompt = '@tool Write {"file_path":"%s","content":"x"}@' % self.path("made")
            a.begin(prompt)
            a.decide(a.ask("item/fileChange/requestApproval"), decision)
            a.completed()
            self.assertTrue(self.made())
            self.assertEqual(a.items("fileChange")[0]["status"], "completed")
            del a.seen[:]
            a.begin(prompt)
            f = a.until(lambda f: f.get("method") in ("item/fileChange/requestApproval", "turn/completed"))
            self.assertEqual(f["method"] == "item/fileChange/requestApproval", again)

    def test_only_the_right_id_counts_and_only_once(self):
        a = self.opened()
        a.begin(TOUCH)
        ask = a.ask(COMMAND)
        a.message(id=str(ask["id"]), result={"decision": "accept"})
        a.decide(ask, "decline")
        a.decide(ask, "accept")
        a.completed()
        self.assertFalse(self.made())
        self.assertEqual(a.methods().count("serverRequest/resolved"), 1)

    def test_interrupt_resolves_after_the_turn(self):
        a = self.opened()
        turn = a.begin(TOUCH)
        a.ask(COMMAND)
        a.ok("turn/interrupt", threadId=a.session, turnId=turn)
        self.assertEqual(a.completed()["status"], "interrupted")
        self.assertNotIn("serverRequest/resolved", a.methods())
        self.assertEqual(a.notified("serverRequest/resolved"), {"threadId": a.session, "requestId": 0})
        self.assertFalse(self.made())

    def test_elicitation(self):
        a = self.opened()
        a.begin("@elicit@")
        ask = a.ask("mcpServer/elicitation/request")
        a.message(id=ask["id"], result={"action": "decline", "content": None})
        a.completed()
        self.assertEqual(a.text(), 'elicit: {"action":"decline","content":null}')


class Faults(ServerCase):
    def test_refused_handshake(self):
        a = self.start("--fault", "refuse-initialize")
        self.assertIn("message", a.error("initialize", clientInfo={}))

    def test_refused_resume(self):
        a = self.opened("--fault", "refuse-load")
        a.turn("hello")
        self.assertEqual(a.error("thread/resume", threadId=a.session)["code"], -32603)

    def test_death_within_a_turn(self):
        a = self.opened()
        a.prompt("@die@")
        a.p.wait(20)
        self.assertEqual(a.p.returncode, -signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
