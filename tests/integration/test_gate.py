# SPDX-License-Identifier: MIT
"""The gate: lines that a client may send to the child. Each row of the table is tried by each kind of peer."""
import json
import os
import sys
import unittest

from harness import HERE, Case, init, perm, pick, request, user

sys.path.insert(0, os.path.dirname(HERE))
import gate_table  # noqa: E402

REQUIRED = {  # without these a request is bad_line
    "mcp_set_servers": {"servers": {}}, "mcp_call": {"tool": "mcp__a__b"}, "apply_flag_settings": {"settings": {}},
    "rewind_conversation": {"target_message_uuid": "u"},
}
NOVEL = [  # in no table: needs an own peer
    gate_table.Row(kind, name, "OWN", "USER", "PLAIN", None, None, "NOTHING")
    for kind, name in (("TYPE", "novel"), ("REQUEST", "novel"), ("MEMBER", "user.novel"), ("MEMBER", "initialize.novel"),
                       ("MEMBER", "interrupt.novel"), ("MEMBER", "message.novel"), ("MEMBER", "control_request.novel"),
                       ("BLOCK", "novel"), ("COMMAND", "novel"), ("REQUEST", "set cwd"), ("TYPE", "bash command"))
]
SPECIAL = {("REQUEST", "end_session"), ("MEMBER", "end_session.reason")}  # SessionEndTest
EXECUTES = ("bash_command", "mcp_call", "start_shell_task")  # judged after the gate: test_execute.py


def value_of(row):
    """Return a value with an effect for a member."""
    if row.name == "initialize.mcpServers":
        return {"a": {"command": "true"}}
    if row.name == "message.role":
        return "user"
    return {"{}": {"a": {}}, "[]": ["a"], "false": True, "true": False}.get(row.member, "a")


def sample(row, rid):
    """Return a line that needs the row. rid: its request id, or its uuid if it is a prompt."""
    name = row.name
    if row.kind == "TYPE":
        message = {"role": name, "content": []}
        if name == "control_request":
            return request(rid, "list_models")
        if name == "control_response":
            return {"type": name, "response": {"subtype": "success", "request_id": rid}}
        more = {"user": {"message": message, "uuid": rid}, "assistant": {"message": message},
                "control_cancel_request": {"request_id": rid}, "update_environment_variables": {"variables": {}}}
        return {"type": name, **more.get(name, {})}
    if row.kind == "REQUEST":
        return request(rid, name, **REQUIRED.get(name, {}))
    if row.kind == "BLOCK":
        blocks = {"text": {"text": "x"}, "image": {"source": {"type": "url", "url": "x"}}, "tool_result": {"tool_use_id": "t"},
                  "document": {"source": {"type": "url", "url": "x"}}}
        return user([{"type": name, **blocks.get(name, {})}], uuid=rid)
    if row.kind == "COMMAND":
        return user("see @/etc/hosts" if name == "@" else "/%s x" % name, uuid=rid)
    parent, _, member = name.rpartition(".")
    if parent == "user":
        line = user("x", uuid=rid)
        line.setdefault(member, value_of(row))
    elif parent == "message":
        line = user("x", uuid=rid)
        line["message"].setdefault(member, value_of(row))
    elif parent == "control_request":
        line = request(rid, "list_models")
        line.setdefault(member, value_of(row))
    elif parent == "control_response":
        line = {"type": parent, "response": {"subtype": "success", "request_id": rid}}
    elif parent:
        line = request(rid, parent)
        line["request"][member] = value_of(row)
    else:
        line = request(rid, "list_models")
        line["request"].setdefault(member, 1000)
    return line


NOBODY = 65534
need_root = unittest.skipUnless(os.getuid() == 0, "needs root, to become another user")


class GateCase(Case):
    def tried(self, c, child, admitted):
        """Send a line for each row; exactly the `admitted` rows pass."""
        wanted, sent = set(), {}
        # a refused initialize refuses the prompts after it: last
        rows = sorted(gate_table.rows() + NOVEL, key=lambda row: row.name.startswith("initialize."))
        for n, row in enumerate(rows):
            executes = row.name.split(".")[0] in EXECUTES
            if (row.kind, row.name) in SPECIAL or executes and (row.kind == "MEMBER" or admitted(row)):
                continue
            rid = "row-%d" % n
            line = sample(row, rid)
            if line.get("type") == "control_response" and admitted(row):
                continue  # then it is unknown_request, and never reaches the child unchanged
            sent[rid] = (row, line)
            if admitted(row):
                wanted.add(rid)
            before = len(c.log)
            c.send(line)
            c.sync()
            told = [m for m in c.log[before:] if m["type"] == "control_response" and pick(m.obj, "response.code") == "not_allowed"
                    or m["event"] == "error" and m["code"] == "not_allowed"]
            self.assertEqual(len(told), 0 if admitted(row) else 1, (row, told))
            if not admitted(row) and line["type"] == "control_request":
                self.assertEqual(told[0]["response.request_id"], rid)
            elif not admitted(row) and line["type"] == "user":
                self.assertEqual(told[0]["uuid"], rid)
        for rid, (row, line) in sent.items():
            if row.kind == "REQUEST" and row.act in ("PLAIN", "CHANGE", "EXECUTE", "MCP_SET_SERVERS"):
                self.assertEqual(bool(child.seen(request__subtype=row.name)), rid in wanted, row)
            elif line["type"] == "user":
                self.assertEqual(bool(child.seen(type="user", uuid=rid)), rid in wanted, row)
            elif row.kind == "TYPE" and row.act in ("PLAIN", "CHANGE", "EXECUTE"):
                self.assertEqual(bool(child.seen(type=row.name)), rid in wanted, row)
        return sent

    def session(self, **daemon):
        self.d, agent = self.start(daemon=daemon)
        self.d.open_to_all()
        self.a = self.d.attached("s")
        return agent.child()

    def nobody(self):
        """A driver of another uid, not an approver."""
        c = self.d.client(uid=NOBODY, gid=NOBODY)
        c.attach("s", approve=False)
        return c


class RowsTest(GateCase):
    def test_own(self):
        child = self.session()
        self.tried(self.a, child, lambda row: True)

    def driver(self, c, child):
        sent = self.tried(c, child, lambda row: row.least != "OWN")
        self.assertGreater(sum(row.least == "OWN" for row, _ in sent.values()), 100)

    @need_root
    def test_a_driver_of_another_uid(self):
        child = self.session(allow_uids=str(NOBODY))
        self.driver(self.nobody(), child)

    def test_own_uid_that_is_no_approver(self):
        child = self.session(approve_uids=str(os.getuid() + 1))
        self.driver(self.a, child)

    def test_a_process_of_the_agent(self):
        child = self.session()
        c = self.d.client(env={"PLENUM_CHILD": "s"})
        c.attach("s")
        self.driver(c, child)

    def test_a_process_of_another_agent(self):
        child = self.session()
        c = self.d.client(env={"PLENUM_CHILD": "t"})
        self.d.attached("t")
        self.assertRefused("not_allowed", c.attach, "s")
        c.send(user("x", session_id="s", uuid="u"))
        self.assertEqual(c.error("not_attached")["code"], "not_attached")
        child.mark(self.a)
        self.assertNone(child.seen(type="user"))

    def test_an_observer(self):
        child = self.session()
        c = self.d.attached("s", role="observer")
        self.tried(c, child, lambda row: row.least == "OBSERVER" and row.name.startswith("control_response"))


class AttackTest(GateCase):
    """As a driver of another uid, and as a program started by the agent."""

    LINES = [
        {"type": "update_environment_variables", "variables": {"A": "b"}},
        {"type": "system", "subtype": "informational", "content": "x"},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "x"}]}},
        request("x1", "initialize", agents={"a": {"description": "d", "prompt": "p"}}),
        request("x2", "initialize", mcpServers={"a": {"command": "true"}}),
        request("x3", "set_cwd", path="/", trust_accepted=True),
        request("x4", "start_shell_task", command="id"),
        request("x5", "read_file", path="secret"),
        request("x6", "reload_plugins"),
        request("x7", "side_question", question="x"),
        request("x8", "remote_control", enabled=True),
        request("x9", "of_next_year"),
        user("/model haiku", uuid="x10"),
        user("see @/etc/passwd", uuid="x11"),
        user([{"type": "text", "text": "x"}, {"type": "text", "text": "\u002fconfig theme=dark"}], uuid="x12"),
    ]

    def attack(self, c, child):
        child.print(perm("k-1"))
        for line in self.LINES:
            before = len(c.log)
            c.send(line)
            c.sync()
            codes = [m["response.code"] or m["code"] for m in c.log[before:] if m["response.code"] or m["code"]]
            self.assertEqual(codes, ["not_allowed"], line)
        self.assertEqual([m for m in child.seen() if m["type"] != "control_response"], [])
        self.assertEqual(c.initialize()["response.subtype"], "success")  # the refused one had servers
        c.send(user("hello", uuid="u"), request("i", "interrupt"))
        child.wait(type="user", uuid="u")
        child.request("interrupt")

    @need_root
    def test_as_another_uid(self):
        child = self.session(allow_uids=str(NOBODY))
        self.attack(self.nobody(), child)

    def test_as_a_program_of_the_agent(self):
        child = self.session()
        c = self.d.client(env={"PLENUM_CHILD": "s"})
        c.attach("s")
        self.attack(c, child)

    def test_escapes(self):
        """A line with escapes is refused, or handled like its plain spelling."""
        child = self.session(approve_uids=str(os.getuid() + 1))
        for line, code in (
                (b'{"type":"control_request","request_id":"1","request":{"subtype":"set_\\u0063wd"}}', "bad_line"),
                (b'{"type":"control_request","request_id":"2","request":{"subtype":"plenum\\u005fstop","session":"s"}}', "bad_line"),
                (b'{"type":"control_request","request_id":"3","request":{"subtype":"initialize","ag\\u0065nts":{"a":{}}}}', "bad_line"),
                (b'{"type":"control_request","request_id":"4","request":{"subtype":"initialize","a\\u002db":{"a":{}}}}', "not_allowed"),
                (b'{"type":"b\\u0061sh_command","command":"id"}', "bad_line"),
                (b'{"typ\\u0065":"user","type":"bash_command","command":"id"}', "bad_line"),
                (b' {"type":"user","isSynthetic":true,"message":{"role":"user","content":"x"}}', "not_allowed"),
                (b'\t{"type":"control_request","request_id":"5","request": {"subtype":"initialize", "agents":{"a":{}}}}', "not_allowed"),
                (b'{"type":"user","message":{"role":"user","content":"\\u002fmodel x"}}', "not_allowed"),
                (b'{"type":"user","message":{"role":"user","content":[{"type":"t\\u0065xt","text":"x"}]}}', "bad_line")):
            before = len(self.a.log)
            self.a.send(line)
            self.a.sync()
            codes = [m["response.code"] or m["code"] for m in self.a.log[before:] if m["response.code"] or m["code"]]
            self.assertEqual(codes, [code], line)
        self.assertEqual(child.seen(), [])
        self.assertIn(self.d.state_of("s"), ("starting", "idle"))

    def test_what_an_sdk_sends_by_itself(self):
        """An initialize without requests passes, and says so for each client."""
        child = self.session(approve_uids=str(os.getuid() + 1))
        self.a.send(init("1", None, agents=None, systemPrompt=[""], sdkMcpServers=[], promptSuggestions=True, title=None))
        child.reply(child.request("initialize"), {"commands": []})
        self.assertEqual(self.a.answer("1")["response.subtype"], "success")

    def test_the_refusal_names_the_thing(self):
        child = self.session(approve_uids=str(os.getuid() + 1))
        for line, words in ((request("1", "set_cwd", path="/"), ["set_cwd: ", "approve_uids"]),
                            (init("2", None, agents={"a": {}}), ["initialize with `agents`: "]),
                            (request("3", "x\u202e"), ["x???: "])):
            self.a.send(json.dumps(line, ensure_ascii=False).encode())
            error = self.a.answer(line["request_id"])["response.error"]
            for word in words:
                self.assertIn(word, error)
        self.a.send(user("x", uuid="u", isSynthetic=True))
        self.assertIn("user with `isSynthetic`", self.a.error("not_allowed", uuid="u")["error"])
        self.assertEqual(child.seen(), [])


class SessionEndTest(GateCase):
    def test_not_by_an_agent(self):
        child = self.session()
        c = self.d.client(env={"PLENUM_CHILD": "s"})
        c.attach("s")
        self.assertRefused("not_allowed", c.request, "end_session")
        child.mark(self.a)
        self.a.request("end_session")
        self.a.event("child_exited")

    @need_root
    def test_not_by_another_uid(self):
        child = self.session(allow_uids=str(NOBODY))
        self.assertRefused("not_allowed", self.nobody().request, "end_session")
        child.mark(self.a)


class AnnouncedTest(GateCase):
    def announced(self, c, what):
        return c.event("changed", what=what)

    def test_each_change(self):
        """Announced as soon as the child confirms it, and not if the child refuses it."""
        child = self.session()
        other = self.d.attached("s", role="observer")
        for row in gate_table.rows():
            if row.kind != "REQUEST" or row.show == "NOTHING":
                continue
            members = dict(REQUIRED.get(row.name, {}))
            if row.member:
                members[row.member] = {"NAME": "secret-value"} if row.show == "KEYS" else "shown"
            if row.name == "mcp_set_servers":
                members["servers"] = {"NAME": {"command": "secret-value"}}
            rid = self.a.ask(row.name, **members)
            got = child.request(row.name)
            child.print({"type": "control_response", "response": {"subtype": "error", "request_id": got["request_id"], "error": "no"}})
            self.a.answer(rid)
            rid = self.a.ask(row.name, **members)
            child.reply(child.request(row.name))
            self.a.answer(rid)
            told = other.wait(type="system", subtype="plenum_event", event="changed")
            self.assertEqual(told["what"], row.what, row)
            self.assertEqual(told["value"], ["NAME"] if row.show == "KEYS" else "shown" if row.member else None, row)
            self.assertEqual(told["by"]["uid"], os.getuid())
        child.mark(other)
        self.assertFalse([m for m in other.log if b"secret-value" in m.raw])

    def test_lines_without_an_answer(self):
        child = self.session()
        other = self.d.attached("s", role="observer")
        self.a.send({"type": "update_environment_variables", "variables": {"TOKEN": "secret-value", "B": "secret-value"}})
        self.assertEqual(self.announced(other, "environment")["value"], ["TOKEN", "B"])
        self.a.send({"type": "system", "subtype": "x"})
        self.assertEqual(self.announced(other, "conversation")["value"], "system")
        self.a.send({"type": "keep_alive"})
        child.wait(type="keep_alive")
        child.mark(other)
        self.assertEqual(len(other.events("changed")), 2)
        self.assertFalse([m for m in other.log if b"secret-value" in m.raw])

    def test_not_what_was_refused(self):
        child = self.session(approve_uids=str(os.getuid() + 1))
        other = self.d.attached("s", role="observer")
        self.a.send({"type": "update_environment_variables", "variables": {"A": "b"}}, request("1", "set_cwd", path="/"))
        self.a.answer("1")
        child.mark(other)
        self.assertNone(other.events("changed"))


class UnknownTest(GateCase):
    def test_logged_once_a_name(self):
        child = self.session()
        for _ in range(3):
            self.a.send({"type": "novel line"}, {"type": "novel"}, user("x", novel=1))
        self.a.sync()
        child.wait(type="novel")
        log = self.d.log()
        self.assertEqual(log.count('no row for type "novel"'), 1)
        self.assertEqual(log.count('no row for type "novel?line"'), 1)
        self.assertEqual(log.count('no row for user "novel"'), 1)

    def test_what_is_known_is_not_logged(self):
        child = self.session()
        self.a.send(user("/model x", uuid="u", isSynthetic=True, parent_tool_use_id=None), request("1", "set_cwd", path="/x"))
        child.request("set_cwd")
        self.assertNotIn("no row", self.d.log())


if __name__ == "__main__":
    unittest.main()
