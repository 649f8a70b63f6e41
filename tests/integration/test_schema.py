# SPDX-License-Identifier: MIT
"""schema/plenum-protocol.schema.json has every verb, answer, event and error code, and nothing else; the harness compares
with it each line that the daemon makes (described.py)."""
import os
import re
import sys
import typing
import unittest

import jsonschema

import described
from harness import Case, PlenumError

ROOT = described.ROOT
generate = described.generate


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as f:
        return f.read()


def types_of(schema, defs):
    """The JSON types that a schema allows."""
    if "$ref" in schema:
        return types_of(defs[generate.name_of(schema)], defs)
    if "anyOf" in schema:
        return set().union(*(types_of(one, defs) for one in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return {{str: "string", bool: "boolean"}[type(v)] for v in schema.get("enum", [schema.get("const")])}
    types = schema["type"]
    return {types} if isinstance(types, str) else set(types)


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = generate.load()
        cls.defs = cls.schema["$defs"]
        cls.defined = dict(re.findall(r'#define PLENUM_(\w+) "([^"]+)"', read("include", "plenum", "protocol.h")))

    def values(self, prefix):
        return {v for k, v in self.defined.items() if k.startswith(prefix)}

    def verbs(self):
        """{verb: {member: types}} of the daemon's table."""
        table = re.search(r"^\} verbs\[\] = \{(.*?)^\};", read("src", "verbs", "verbs.c"), re.MULTILINE | re.DOTALL).group(1)
        found, verb = {}, None
        for name, member, types in re.findall(r'^\t\{PLENUM_(\w+),|\{"(\w+)", "([a-z]+)"', table, re.MULTILINE):
            if name:
                verb = found.setdefault(self.defined[name], {})
            else:
                verb[member] = types
        return found

    def test_it_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(self.schema)

    def test_every_verb_has_its_request_with_the_members_of_the_table(self):
        kinds = {"s": "string", "b": "boolean", "i": "integer", "o": "object", "a": "array"}
        wanted = {verb + "_request": {m: {kinds[t] for t in types} for m, types in members.items()}
                  for verb, members in self.verbs().items()}
        found = {name: {m: types_of(s, self.defs) for m, s in one["properties"].items() if m != "subtype"}
                 for name, one in self.defs.items() if name.startswith("plenum_") and name.endswith("_request")}
        self.assertEqual(wanted, found)

    def test_a_request_takes_no_other_member(self):
        for verb in self.verbs():
            one = self.defs[verb + "_request"]
            self.assertEqual(({"const": verb}, False), (one["properties"]["subtype"], one["additionalProperties"]))
            self.assertIn({"$ref": "#/$defs/%s_request" % verb}, self.defs["verb"]["anyOf"])

    def test_every_verb_has_its_answer(self):
        self.assertEqual({verb + "_answer" for verb in self.verbs()},
                         {name for name in self.defs if name.startswith("plenum_") and name.endswith("_answer")})

    def test_every_event_has_its_definition(self):
        wanted = self.values("EV_")
        self.assertEqual({v + "_event" for v in wanted}, {name for name in self.defs if name.endswith("_event")})
        self.assertEqual(wanted, {self.defs[generate.name_of(one)]["properties"]["event"]["const"]
                                  for one in self.defs["event"]["anyOf"]})

    def test_codes_states_and_peers(self):
        for prefix, name in (("E_", "code"), ("ST_", "state"), ("PEER_", "peer")):
            self.assertEqual(self.values(prefix), set(self.defs[name]["enum"]), name)

    def test_a_client_may_ignore_unknown_members(self):
        """Only requests are complete, and the objects that a client sends within them."""
        sent = {"approve_tools", "replay_last", "replay_after", "replay_after_uuid"}
        closed = {name for name, one in self.defs.items() if one.get("additionalProperties") is False}
        self.assertEqual(sent, {name for name in closed if not name.endswith("_request")})

    def test_every_definition_is_used(self):
        used = set(re.findall(r'#/\$defs/(\w+)', read("schema", generate.SCHEMA.name)))
        self.assertEqual(set(), {name for name in self.defs if not name.endswith("_answer")} - used - {"initialize_note"})


class Types(unittest.TestCase):
    """The generated modules; `./dev lint types` compiles the one in TypeScript."""

    def test_they_are_current(self):
        self.assertEqual(0, generate.main(["generate.py"]), "run schema/generate.py --write")

    def test_python_can_read_its_module(self):
        sys.path.insert(0, os.path.join(ROOT, "schema"))
        import plenum_protocol

        classes = [c for c in vars(plenum_protocol).values() if typing.is_typeddict(c)]
        self.assertGreater(len(classes), 60)
        for one in classes:
            typing.get_type_hints(one)
        self.assertEqual(plenum_protocol.GapEvent.__required_keys__ | plenum_protocol.GapEvent.__optional_keys__,
                         {"plenum_seq", "type", "subtype", "session", "event", "from", "to"})


class Check(unittest.TestCase):
    """The check itself, with lines that no daemon has made."""

    EVENT = {"type": "system", "subtype": "plenum_event", "event": "gap", "session": "s", "from": 1, "to": 2}

    def setUp(self):
        self.addCleanup(described.faults.clear)

    def assertFault(self, text, line, verbs=None):
        with self.assertRaisesRegex(described.Undescribed, text):
            described.check_line(line, verbs)

    def test_a_line_that_is_described(self):
        described.check_line(self.EVENT, None)
        described.check_line(dict(self.EVENT, plenum_seq=7), None)
        described.check_line({"type": "assistant", "new": 1}, None)

    def test_an_unknown_member_of_an_event(self):
        self.assertFault(r"gap_event: .*'more'.*\n.*\n.*schema/plenum-protocol\.schema\.json \(definition gap_event\)",
                         dict(self.EVENT, more=1))
        self.assertEqual(1, len(described.faults))

    def test_an_unknown_event(self):
        self.assertFault("news_event: it is not described", dict(self.EVENT, event="news"))

    def test_a_missing_member_and_a_wrong_type(self):
        self.assertFault("'to' is a required property", {k: v for k, v in self.EVENT.items() if k != "to"})
        self.assertFault("to: '2' is not of type", dict(self.EVENT, to="2"))

    def test_an_answer_is_that_of_its_verb(self):
        line = {"type": "control_response", "response": {"subtype": "success", "request_id": "1", "response": {"session": "s"}}}
        described.check_line(line, {"plenum_detach"})
        described.check_line(line, None)
        self.assertFault("plenum_reload_answer", line, {"plenum_reload"})
        line["response"]["response"]["more"] = 1
        self.assertFault("plenum_detach_answer: .*'more'", line, {"plenum_detach"})

    def test_an_object_within_an_answer(self):
        answer = {"sessions": [{"session": "s"}]}
        line = {"type": "control_response", "response": {"subtype": "success", "request_id": "1", "response": answer}}
        self.assertFault(r"plenum_list_answer: sessions\.0: 'state' is a required", line, {"plenum_list"})

    def test_a_refusal(self):
        line = {"type": "control_response", "response": {"subtype": "error", "request_id": "1", "code": "busy", "error": "x"}}
        described.check_line(line, None)
        self.assertFault("response.code: 'odd' is not one of", {**line, "response": {**line["response"], "code": "odd"}})

    def test_lines_of_a_json_rpc_connection(self):
        event = {"jsonrpc": "2.0", "method": "_plenum/event", "params": {k: v for k, v in self.EVENT.items() if "type" not in k}}
        described.check_line(event, None)
        described.check_line(dict(event, plenum_seq=7), None)
        self.assertFault("gap_event: .*'more'", dict(event, params=dict(event["params"], more=1)))
        self.assertFault("jsonrpc_notice: .*'more'", dict(event, more=1))
        answer = {"id": 1, "result": {"session": "s"}}
        described.check_line(answer, {"plenum_detach"})
        self.assertFault("plenum_reload_answer", answer, {"plenum_reload"})
        described.check_line(answer, {"session/new"})
        error = {"id": None, "error": {"code": -32700, "message": "x", "data": {"code": "bad_line", "line": 1}}}
        described.check_line(error, None)
        self.assertFault("error.code: -1 is not one of", {**error, "error": {**error["error"], "code": -1}})
        described.check_line({"id": 1, "error": {"code": -1, "message": "the agent's"}}, None)

    def test_requests_are_found_in_what_was_sent(self):
        data = (b'{"type":"user"}\ncontrol_request\n{"type":"control_request","request_id":1,"request":{"subtype":"plenum_list"}}\n'
                b'{"type":"control_request","request":{"subtype":"x","request_id":"2"}}\n')
        self.assertEqual([("1", "plenum_list"), ("'2'", "x")], list(described.requests_in(data)))
        data = b'{"id":"1","method":"_plenum/list"}\n{"method":"x"}\n{"jsonrpc":"2.0","id":2,"method":"session/new"}\n'
        self.assertEqual([("'1'", "plenum_list"), ("2", "session/new")], list(described.requests_in(data)))

    def test_an_id_that_was_used_for_the_agent_too(self):
        line = {"type": "control_response", "response": {"subtype": "success", "request_id": "1", "response": {"first": True}}}
        described.check_line(line, {"plenum_list", "initialize"})


class Live(Case):
    def test_the_harness_checks_what_a_client_receives(self):
        d, _ = self.start()
        client = d.attached("s")
        self.addCleanup(described.faults.clear)
        del described.definitions()["plenum_list_answer"]["properties"]["sessions"]
        described.validator.cache_clear()
        try:
            self.assertRaises(described.Undescribed, client.request, "plenum_list")
        finally:
            described.definitions.cache_clear()
            described.validator.cache_clear()
            described.faults.clear()
        self.assertRaises(PlenumError, client.request, "plenum_status", session="absent")


if __name__ == "__main__":
    unittest.main()
