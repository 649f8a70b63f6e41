#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plenum-fakeagent --acp over its stdin and stdout: what a client of ACP v1 meets at an agent like claude-agent-acp."""
import json
import os
import signal
import unittest

from test_fakeagent import Agent, Case

TOUCH = '@tool Bash {"command":"touch made; echo out"}@'


class AcpAgent(Agent):
    """An agent that speaks ACP: requests with running ids, and the session that was opened last."""
    WORD = "--acp"
    FRAME = {"jsonrpc": "2.0"}

    def __init__(self, folder, *args, **more):
        super().__init__(folder, *args, flags=[self.WORD], **more)
        self.number = 0
        self.session = None

    def message(self, **members):
        self.send({**self.FRAME, **members})

    def call(self, method, **params):
        self.number += 1
        self.message(id=self.number, method=method, params=params)
        return self.number

    def reply(self, number):
        return self.until(lambda f: "method" not in f and f.get("id") == number)

    def ok(self, method, **params):
        return self.reply(self.call(method, **params))["result"]

    def error(self, method, **params):
        return self.reply(self.call(method, **params))["error"]

    def open(self, method="session/new", **params):
        if not self.number:
            self.ok("initialize", protocolVersion=1)
        result = self.ok(method, cwd=self.folder, mcpServers=[], **params)
        self.session = result.get("sessionId") or params["sessionId"]
        return result

    def prompt(self, text, **_):
        return self.call("session/prompt", sessionId=self.session, prompt=[{"type": "text", "text": text}])

    def turn(self, text):
        return self.reply(self.prompt(text))["result"]

    def ask(self, method="session/request_permission"):
        return self.until(lambda f: f.get("method") == method)

    def choose(self, ask, option):
        self.message(id=ask["id"], result={"outcome": {"outcome": "selected", "optionId": option}})

    def cancel(self):
        self.message(method="session/cancel", params={"sessionId": self.session})

    def updates(self, kind=None):
        """The updates seen so far."""
        all_ = [f["params"]["update"] for f in self.seen if f.get("method") == "session/update"]
        return [u for u in all_ if kind in (None, u["sessionUpdate"])]

    def text(self, kind="agent_message_chunk"):
        return "".join(u["content"]["text"] for u in self.updates(kind))


class AcpCase(Case):
    def start(self, *args, **more):
        self.agents.append(AcpAgent(self.folder, *args, **more))
        return self.agents[-1]

    def opened(self, *args, **more):
        a = self.start(*args, **more)
        a.open()
        return a

    def made(self):
        return os.path.exists(self.path("made"))


class Connection(AcpCase):
    def test_initialize(self):
        a = self.start()
        result = a.ok("initialize", protocolVersion=1)
        self.assertEqual(result["protocolVersion"], 1)
        self.assertTrue(result["agentCapabilities"]["loadSession"])
        self.assertEqual(a.ok("authenticate", methodId="none"), {})
        self.assertEqual(a.ok("initialize", protocolVersion=1)["protocolVersion"], 1)
        self.assertEqual(a.close(), (0, ""))

    def test_before_initialize(self):
        a = self.start()
        self.assertEqual(a.error("session/new", cwd="/", mcpServers=[])["code"], -32600)

    def test_bad_lines(self):
        a = self.opened()
        for line, code in ((b'{"no', -32700), (b"[]", -32600), (b'{"id":1,"method":"initialize"}', -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600)):
            with self.subTest(line=line):
                a.raw(line + b"\n")
                f = a.until(lambda f: "error" in f)
                self.assertEqual((f["error"]["code"], f["id"]), (code, None))

    def test_ids_come_back_with_their_type(self):
        a = self.opened()
        for id_ in (0, "0", -5, "x y", 2 ** 62, None, 1.5):
            a.message(id=id_, method="session/list", params={})
            self.assertEqual(a.until(lambda f: "result" in f)["id"], id_)

    def test_methods(self):
        a = self.opened()
        self.assertEqual(a.error("no/such")["code"], -32601)
        a.message(method="no/such", params={})
        self.assertIn("sessions", a.ok("session/list"))

    def test_end_of_input(self):
        a = self.opened()
        a.prompt(TOUCH)
        a.ask()
        self.assertEqual(a.close(), (0, ""))
        self.assertFalse(self.made())


class Sessions(AcpCase):
    def test_new(self):
        a = self.start()
        result = a.open()
        self.assertEqual(result["modes"]["currentModeId"], "default")
        self.assertEqual([o["id"] for o in result["configOptions"]], ["mode", "model"])
        a.until(lambda f: f.get("method") == "session/update")
        self.assertEqual([u["sessionUpdate"] for u in a.updates()], ["available_commands_update"])

    def test_new_needs_its_params(self):
        a = self.start()
        a.ok("initialize", protocolVersion=1)
        self.assertEqual(a.error("session/new", cwd="/")["code"], -32602)
        self.assertEqual(a.error("session/new", mcpServers=[])["code"], -32602)
        self.assertEqual(a.error("session/new", cwd="x", mcpServers=[])["code"], -32602)

    def test_cwd(self):
        a = self.opened()
        a.turn("@cwd@")
        self.assertEqual(a.text(), os.path.realpath(self.folder))

    def test_load_replays_and_resume_does_not(self):
        a = self.opened()
        a.turn("hello")
        number = a.prompt(TOUCH)
        a.choose(a.ask(), "allow")
        a.reply(number)
        a.close()
        b = self.start()
        b.open("session/load", sessionId=a.session)
        self.assertEqual([u["sessionUpdate"] for u in b.updates()], [
            "user_message_chunk", "agent_message_chunk", "user_message_chunk", "tool_call", "tool_call_update",
            "agent_message_chunk"])
        self.assertEqual(b.text("user_message_chunk"), "hello" + TOUCH)
        b.close()
        c = self.start()
        c.open("session/resume", sessionId=a.session)
        self.assertEqual(c.updates(), [])
        c.turn("@history@")
        self.assertEqual(c.text().splitlines()[0], "hello")
        self.assertIn(a.session, [s["sessionId"] for s in c.ok("session/list")["sessions"]])

    def test_unknown_session(self):
        a = self.opened()
        self.assertEqual(a.error("session/load", sessionId="none", cwd="/", mcpServers=[])["code"], -32002)
        self.assertEqual(a.error("session/prompt", sessionId="none", prompt=[])["code"], -32002)

    def test_mode_and_options(self):
        a = self.opened()
        self.assertEqual(a.ok("session/set_mode", sessionId=a.session, modeId="acceptEdits"), {})
        self.assertEqual(a.updates("config_option_update")[-1]["configOptions"][0]["currentValue"], "acceptEdits")
        self.assertEqual(a.error("session/set_mode", sessionId=a.session, modeId="x")["code"], -32602)
        options = a.ok("session/set_config_option", sessionId=a.session, configId="model", value="fake-small")
        self.assertEqual(options["configOptions"][1]["currentValue"], "fake-small")
        a.ok("session/set_config_option", sessionId=a.session, configId="mode", value="plan")
        self.assertEqual(a.updates("current_mode_update"), [{"sessionUpdate": "current_mode_update",
                                                             "currentModeId": "plan"}])


class Prompts(AcpCase):
    def test_reply(self):
        a = self.opened()
        self.assertEqual(a.turn("hello")["stopReason"], "end_turn")
        self.assertEqual(a.text(), "echo: hello")
        self.assertEqual(a.updates("usage_update")[0]["size"], 200000)
        self.assertEqual(len(a.updates("session_info_update")), 1)
        a.turn("@think hm@ @text one@")
        self.assertEqual(a.text("agent_thought_chunk"), "hm")

    def test_session_id_may_come_last(self):
        a = self.opened()
        a.turn("hello")
        orders = {tuple(f["params"]) for f in a.seen if f.get("method") == "session/update"}
        self.assertEqual(orders, {("sessionId", "update"), ("update", "sessionId")})

    def test_failed_call_of_the_model(self):
        a = self.opened()
        error = a.reply(a.prompt("@error gone@"))["error"]
        self.assertEqual((error["code"], error["message"]), (-32603, "Internal error: API Error: gone"))

    def test_a_second_prompt_within_a_turn_ends_the_first(self):
        a = self.opened()
        first = a.prompt(TOUCH)
        ask = a.ask()
        second = a.prompt("more")
        self.assertEqual(a.reply(first)["result"]["stopReason"], "end_turn")
        a.choose(ask, "allow")
        self.assertEqual(a.reply(second)["result"]["stopReason"], "end_turn")
        self.assertTrue(a.text().endswith("echo: more"))

    def test_cancel(self):
        a = self.opened()
        number = a.prompt("@slow 50@ @long 5000@")
        a.until(lambda f: f.get("method") == "session/update" and "content" in f["params"]["update"])
        a.cancel()
        self.assertEqual(a.reply(number)["result"]["stopReason"], "cancelled")
        self.assertEqual(a.turn("hello")["stopReason"], "end_turn")

    def test_cancel_request(self):
        a = self.opened()
        number = a.prompt("@slow 50@ @long 5000@")
        a.until(lambda f: f.get("method") == "session/update" and "content" in f["params"]["update"])
        a.message(method="$/cancel_request", params={"requestId": number})
        self.assertEqual(a.reply(number)["result"]["stopReason"], "cancelled")


class Permissions(AcpCase):
    def test_request(self):
        a = self.opened()
        a.prompt(TOUCH)
        ask = a.ask()
        self.assertEqual(ask["id"], 0)
        self.assertEqual({o["kind"] for o in ask["params"]["options"]},
                         {"allow_once", "allow_always", "reject_once", "reject_always"})
        call = ask["params"]["toolCall"]
        self.assertEqual((call["title"], call["kind"]), ("touch made; echo out", "execute"))
        self.assertEqual(a.updates("tool_call")[0]["toolCallId"], call["toolCallId"])

    def test_answers(self):
        """What each answer makes of the tool, and of the same tool in the next turn."""
        def selected(option):
            return {"result": {"outcome": {"outcome": "selected", "optionId": option}}}
        for members, status, again in (
                (selected("allow"), "completed", "asked"), (selected("allow_always"), "completed", "completed"),
                (selected("reject"), "failed", "asked"), (selected("reject_always"), "failed", "failed"),
                (selected("no such"), "failed", "asked"), ({"result": {}}, "failed", "asked"),
                ({"result": {"outcome": {"outcome": "cancelled"}}}, "failed", "asked"),
                ({"error": {"code": -32603, "message": "no"}}, "failed", "asked")):
            with self.subTest(answer=members):
                a = self.opened()
                number = a.prompt('@tool Bash {"command":"true"}@')
                a.message(id=a.ask()["id"], **members)
                a.reply(number)
                self.assertEqual(a.updates("tool_call_update")[-1]["status"], status)
                number = a.prompt('@tool Bash {"command":"true"}@')
                f = a.until(lambda f: f.get("id") in (number, 1))
                self.assertEqual("asked" if "method" in f else a.updates("tool_call_update")[-1]["status"], again)

    def test_a_second_answer_is_ignored(self):
        a = self.opened()
        number = a.prompt(TOUCH)
        ask = a.ask()
        a.message(id=str(ask["id"]), result={"outcome": {"outcome": "selected", "optionId": "allow"}})
        a.choose(ask, "reject")
        a.choose(ask, "allow")
        a.reply(number)
        self.assertFalse(self.made())
        self.assertEqual(a.turn("hello")["stopReason"], "end_turn")

    def test_cancel_withdraws(self):
        a = self.opened()
        number = a.prompt(TOUCH)
        ask = a.ask()
        a.cancel()
        self.assertEqual(a.until(lambda f: f.get("method") == "$/cancel_request")["params"], {"requestId": ask["id"]})
        a.choose(ask, "allow")
        self.assertEqual(a.reply(number)["result"]["stopReason"], "cancelled")
        self.assertFalse(self.made())

    def test_member_order_of_requests(self):
        a = self.opened()
        a.prompt('@tool Bash {"command":"true"}@ @tool Bash {"command":"true"}@')
        first = a.ask()
        a.choose(first, "allow")
        second = a.ask()
        self.assertEqual((list(first)[1], list(second)[-1]), ("id", "id"))
        self.assertEqual(list(first["params"])[-1], "sessionId")

    def test_elicitation(self):
        a = self.opened()
        number = a.prompt("@elicit@")
        ask = a.ask("elicitation/create")
        a.message(id=ask["id"], result={"action": "accept", "content": {"name": "x"}})
        a.reply(number)
        self.assertEqual(a.text(), 'elicit: {"action":"accept","content":{"name":"x"}}')

    def test_request_of_another_method(self):
        a = self.opened()
        number = a.prompt("@unknown fs/read_text_file@")
        a.message(id=a.ask("fs/read_text_file")["id"], error={"code": -32601, "message": "no files"})
        a.reply(number)
        self.assertEqual(a.text(), "answer: no files")


class Faults(AcpCase):
    def test_refused_handshake(self):
        a = self.start("--fault", "refuse-initialize")
        self.assertEqual(a.error("initialize", protocolVersion=1)["code"], -32603)

    def test_refused_load(self):
        a = self.opened("--fault", "refuse-load")
        a.turn("hello")
        for method in ("session/load", "session/resume"):
            error = a.error(method, sessionId=a.session, cwd=self.folder, mcpServers=[])
            self.assertEqual(error["code"], -32603)

    def test_death_within_a_turn(self):
        a = self.opened()
        a.prompt("@die@")
        a.p.wait(20)
        self.assertEqual(a.p.returncode, -signal.SIGKILL)

    def test_long_line(self):
        a = self.opened("--fault", "huge=300000")
        a.turn("x")
        self.assertEqual(len(a.text()), 300000 + len("echo: x"))

    def test_garbage(self):
        a = self.opened()
        a.prompt("@garbage no JSON@")
        while a.line() != b"no JSON":
            pass

    def test_mute_and_late(self):
        a = self.opened("--fault", "late=1")
        self.assertEqual(a.turn("x")["stopReason"], "end_turn")
        b = self.start("--fault", "mute")
        b.ok("initialize", protocolVersion=1)
        b.call("session/list")
        b.raw(b"{\n")
        self.assertIn("error", b.next())

    def test_end_of_input_ignored(self):
        a = self.opened("--fault", "ignore-eof")
        number = a.prompt("@slow 20@ @long 400@")
        a.p.stdin.close()
        self.assertEqual(a.reply(number)["result"]["stopReason"], "end_turn")


class Scenario(AcpCase):
    def test_replies(self):
        path = self.path("scenario.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"replies": [{"when": {"prompt": "build"}, "say": ["done"]}]}, f)
        a = self.opened("--scenario", path)
        a.turn("build it")
        self.assertEqual(a.text(), "done")


if __name__ == "__main__":
    unittest.main()
