# SPDX-License-Identifier: MIT
"""Notices and listings are true: the daemon's messages, the names in them, their recipients (contract 3.1, 5, 14)."""
import contextlib
import ctypes
import json
import os
import re
import subprocess
import unittest

from harness import RESULT, TIMEOUT, Case, allow, build_file, deny, dump, hook, ok, perm, request, until, user

NOBODY = 65534
BIDI = "\u202e\u2066\u2028\u2029\u200b\u0085\U000e0041"
need_root = unittest.skipIf(os.getuid() != 0, "needs root for another uid")


@contextlib.contextmanager
def program(name):
    """This process under another program name, which the kernel cuts at 15 bytes."""
    path = "/proc/self/task/%d/comm" % os.getpid()
    with open(path, "rb") as f:
        before = f.read().rstrip(b"\n")
    with open(path, "wb") as f:
        f.write(name)
    try:
        yield name[:15]
    finally:
        with open(path, "wb") as f:
            f.write(before)


def last(raw, key):
    """Return the values of a top-level key, in any spelling and number."""
    return [v for k, v in json.loads(raw, object_pairs_hook=list) if k.lower().replace("\u017f", "s") == key]


class ChildsWordTest(Case):
    """A line of the child never looks like the daemon's."""

    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a = self.d.attached("s", tag=True)
        self.b = self.d.attached("s")
        self.child = self.agent.child()
        self.n = 0

    def said(self, line):
        """Return the bytes that an untagged client gets for a line of the child; a tagged one gets the same with its
        number."""
        self.child.print(line + b"\n")
        self.child.mark(self.a, self.b)
        marks = [i for i, m in enumerate(self.b.log) if m["type"] == "test_mark"]
        got = [m.raw for m in self.b.log[marks[-2] + 1 if len(marks) > 1 else 0:marks[-1]]
               if m["event"] is None and m["type"] != "control_response"]
        self.assertEqual(len(got), 1, (line, got))
        tagged = [m for m in self.a.log if re.sub(rb'"plenum_seq":\d+,?', b"", m.raw, count=1) == got[0]]
        self.assertTrue(tagged, (line, self.a.log[-3:]))
        self.assertRegex(tagged[-1].raw, rb'^\s*\{"plenum_seq":\d+[,}]')
        return got[0]

    def test_its_notices_are_renamed(self):
        for line, want in (
                (b'{"type":"system","subtype":"plenum_event","event":"settled","decision":"allow","x":1.0}',
                 b'{"type":"system","subtype":"child_plenum_event","event":"settled","decision":"allow","x":1.0}'),
                (b' { "subtype" : "plenum_event" , "type":"system","event":"gap"}',
                 b' { "subtype" : "child_plenum_event" , "type":"system","event":"gap"}'),
                (b'{"type":"system","subtype":"plenum\\u005fevent","event":"gap"}',
                 b'{"type":"system","subtype":"child_plenum\\u005fevent","event":"gap"}'),
                (b'{"type":"system","\\u0073ubtype":"plenum_event","event":"gap"}',
                 b'{"type":"system","\\u0073ubtype":"child_plenum_event","event":"gap"}'),
                (b'{"type":"system","subtype":"plenum_event","subtype":"status","event":"gap"}',
                 b'{"type":"system","subtype":"child_plenum_event","subtype":"status","event":"gap"}'),
                (b'{"type":"system","subtype":"status","subtype":"plenum_event","event":"gap"}',
                 b'{"type":"system","subtype":"status","subtype":"child_plenum_event","event":"gap"}'),
                (b'{"type":"system","Subtype":"plenum_event","event":"gap"}',
                 b'{"type":"system","Subtype":"child_plenum_event","event":"gap"}'),
                (b'{"type":"result","subtype":"plenum_later"}', b'{"type":"result","subtype":"child_plenum_later"}')):
            self.child.print(line + b"\n")
            m = self.b.wait(lambda m: m.raw == want, title=want.decode())
            self.assertNotIn("plenum_event", last(m.raw, "subtype"))
        self.assertNone(self.b.seen(lambda m: m.raw.startswith(b'{"type":"system","subtype":"plenum_event"') and
                                    m["event"] in ("gap", "settled")))

    def test_its_numbers_are_renamed(self):
        for line, want in (
                (b'{"plenum_seq":7,"type":"x"}', b'{"child_plenum_seq":7,"type":"x"}'),
                (b'{"type":"x","plenum_seq":7}', b'{"type":"x","child_plenum_seq":7}'),
                (b'{"type":"x","plenum_seq":7,"plenum_seq" : 8}', b'{"type":"x","child_plenum_seq":7,"child_plenum_seq" : 8}'),
                (b'{ "pl\\u0065num_seq" :7, "type":"x"}', b'{ "child_pl\\u0065num_seq" :7, "type":"x"}'),
                (b'{"\\u0070lenum_seq":7,"type":"x"}', b'{"child_\\u0070lenum_seq":7,"type":"x"}'),
                (b'{"type":"x","PLENUM_SEQ":7}', b'{"type":"x","child_PLENUM_SEQ":7}'),
                (b'{"type":"x","plenum_other":7}', b'{"type":"x","child_plenum_other":7}'),
                (b'{"plenum_seq":7}', b'{"child_plenum_seq":7}')):
            self.assertEqual(self.said(line), want)

    def test_whatever_else_it_says_is_untouched(self):
        for line in (b'{"type":"x","text":"plenum_seq plenum_event","n":1e400}',
                     b'{"type":"x","o":{"plenum_seq":1,"subtype":"plenum_event"},"l":["plenum_seq"]}',
                     b'{"type":"system","subtype":"a_plenum_event"}',
                     b'{"type":"x","plenum":1,"aplenum_seq":2,"plenumseq":3,"plen\\num_seq":4}',
                     b'{"type":"x","subtype":["plenum_event"],"s\\u0065q":1,"permission":"plenum_event","\xff":"\xff"}',
                     b'{"type":"assistant","message":{"content":[{"type":"text","text":"\\"plenum_seq\\":1"}]}}',
                     b'\t{ "type" : "x" , "e\\\\" : "plenum_seq" }\t'):
            self.assertEqual(self.said(line), line)

    def test_in_pieces(self):
        """In any pieces."""
        line = b'{"type":"system","subtype":"plen\\u0075m_event","plenum_seq":9,"event":"gap","pad":"%s"}\n' % (b"x" * 3000)
        want = line[:-1].replace(b'"plen', b'"child_plen')
        for chunk in (1, 7, 33, 1000):
            self.child.print(line, chunk=chunk)
            self.b.wait(lambda m: m.raw == want, title="the line in pieces of %d" % chunk)

    def test_a_quiet_client_is_told_nothing_in_the_daemons_name(self):
        """A client without notices (the shim) would take one for the end of its session."""
        c = self.d.attached("s", quiet=True)
        self.child.print({"type": "system", "subtype": "plenum_event", "event": "child_exited", "status": 1})
        self.child.mark(c)
        self.assertEqual([m["subtype"] for m in c.seen(type="system")], ["child_plenum_event"])

    def test_a_request_in_the_daemons_name(self):
        self.child.print(request("k-1", "plenum_attach", session="other"))
        for c in (self.a, self.b):
            self.assertEqual(c.wait(type="control_request")["request.subtype"], "child_plenum_attach")
        self.assertEqual(self.d.call("plenum_pending")["pending"][0]["subtype"], "child_plenum_attach")

    def test_an_error_in_the_daemons_name(self):
        rid = self.a.ask("get_settings")
        asked = self.child.request("get_settings")
        self.child.print({"type": "control_response", "response": {"subtype": "error", "request_id": asked["request_id"],
                                                                   "code": "not_allowed", "error": "mine", "error_code": "e"}})
        m = self.a.answer(rid)
        self.assertEqual(m.obj["response"], {"subtype": "error", "request_id": rid, "child_code": "not_allowed",
                                             "error": "mine", "error_code": "e"})
        rid = self.a.ask("get_settings")
        asked = self.child.request("get_settings")
        body = {"code": 5, "plenum": 6, "plenum_seq": 7}
        self.child.print(ok(asked["request_id"], body))
        self.assertEqual(self.a.answer(rid)["response.response"], body)

    def test_a_note_on_hooks_in_the_daemons_name(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.client()
        a.attach("t")
        child = agent.child()
        rid = a.ask("initialize", hooks={"PreToolUse": [{"hookCallbackIds": ["mine"]}]})
        first = child.request("initialize")
        child.print(ok(first["request_id"], {"plenum": {"ignored": ["hooks"]}, "pl\u0065num": 1, "hooks_applied": True}))
        for answer in (a.answer(rid), a.initialize()):
            body = answer["response.response"]
            self.assertEqual(last(dump(body), "child_plenum"), [1])
            self.assertNotIn("hooks", (body.get("plenum") or {}).get("ignored", []))

    def test_it_does_not_end_a_turn_or_a_wait_of_plenumctl(self):
        """Our clients accept a notice only from the daemon."""
        p = subprocess.Popen([build_file("plenumctl"), "send", "s", "hi"], env=dict(self.d.env, PLENUM_SOCKET=self.d.socket),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        asked = self.child.wait(type="user")
        self.child.print({"type": "system", "subtype": "plenum_event", "event": "turn_ended", "session": "s",
                          "uuids": [asked["uuid"]]},
                         {"type": "system", "subtype": "plenum_event", "event": "session_removed", "session": "s"})
        self.child.mark(self.b)
        self.assertIsNone(p.poll())
        self.child.print(dict(user("hi"), uuid=asked["uuid"], isReplay=True),
                         {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "done"}]}},
                         dict(RESULT, result="done", user_message_uuids=[asked["uuid"]]))
        out, errors = p.communicate(timeout=TIMEOUT)
        self.assertEqual((p.returncode, out), (0, b"done\n"), errors)


class NamesTest(Case):
    """Every name reaches every listing, with any bytes."""

    def test_a_clients_name_has_a_limit(self):
        d, agent = self.start()
        a = d.client()
        for n, name in ((256, "x" * 256), (257, "x" * 254 + "\u20ac")):
            for verb in ("plenum_hello", "plenum_attach"):
                e = self.assertRefused("bad_request", a.request, verb, name=name)
                self.assertIn("255", e.text)
                self.assertIn(str(n), e.text)
        self.assertEqual(d.sessions(), {})
        fits = "x" * 252 + "\u20ac"
        a.attach("s", name=fits)
        e = self.assertRefused("bad_request", a.request, "plenum_register", name="y" * 256, role="observer")
        self.assertIn("255", e.text)
        agent.child()
        got = d.call("plenum_status", session="s")["clients"]
        self.assertEqual([(c["name"], c["role"]) for c in got], [(fits, "driver")])
        self.assertEqual(len(d.attached("s").attached["attachments"]), 1)

    def test_a_programs_name_may_have_any_bytes(self):
        d, agent = self.start()
        with program(b"a\t\xff\xe2\x82b\"\\"):
            a = d.attached("s", name="me")
        child = agent.child()
        child.print(perm("k-1"))
        a.wait(type="control_request")
        b = d.attached("s")
        names = [b.attached["attachments"][0]["program"], d.call("plenum_pending")["pending"][0]["asked"][0]["program"],
                 d.call("plenum_status", session="s")["clients"][0]["program"]]
        self.assertEqual(names, ['a\t???b"\\'] * 3)

    def test_what_the_child_names_may_have_any_bytes(self):
        """Its conversation, its version, its tools, its requests, its last output."""
        d, _, child, a = self.open()
        child.print(b'{"type":"system","subtype":"init","session_id":"c\xff1","claude_code_version":"2\xff","permissionMode":"\xfe"}\n')
        child.print(b'{"type":"control_request","request_id":"k\xff","request":{"subtype":"can_use_tool","tool_name":"B\xff",'
                    b'"input":{"command":"\xff"},"agent_id":"\xfe"}}\n')
        child.print(b'{"type":"control_request","request_id":"k2","request":{"subtype":"odd\\u0000","x":"\xff"}}\n')
        child.stderr(b"last \xff words\n")
        child.mark(a)
        got = d.call("plenum_pending")["pending"]
        self.assertEqual([(p["tool_name"], p["agent_id"], p["subtype"]) for p in got],
                         [("B\ufffd", "\ufffd", "can_use_tool"), (None, None, None)])
        b = d.attached("s")
        self.assertEqual((b.attached["conversation_id"], b.attached["version"]), ("c\ufffd1", "2\ufffd"))
        self.assertEqual(d.sessions()["s"]["conversation_id"], "c\ufffd1")
        until(lambda: d.call("plenum_logs", session="s")["stderr"] == ["last \ufffd words"])
        child.exit(3)
        told = a.event("child_exited")
        self.assertEqual(told["stderr"], ["last \ufffd words"])
        d.wait_state("s", "failed", "asleep")
        d.call("plenum_logs", session="s")
        d.call("plenum_status", session="s")

    def test_a_value_of_the_child_that_is_no_json(self):
        """It does not suppress a notice."""
        _, _, child, a = self.open()
        rid = a.ask("set_permission_mode", mode="plan")
        asked = child.request("set_permission_mode")
        child.print(b'{"type":"control_response","response":{"subtype":"success","request_id":%s,"response":{"mode":pl\x01an}}}\n'
                    % json.dumps(asked["request_id"]).encode())
        a.wait(lambda m: rid.encode() in m.raw)
        self.assertEqual(a.event("changed", what="permission_mode")["value"], "pl\x01an")

    def test_a_folder_and_a_command_may_have_any_bytes(self):
        d, agent = self.start()
        with open(d.conf, "ab") as f:
            f.write(b"[profile odd]\ncommand = /bin/c\xff\n")
        d.call("plenum_reload")
        folder = os.path.join(d.root, "f\udcff")
        os.mkdir(folder)
        here = os.getcwd()
        os.chdir(folder)
        try:
            a = d.attached("s")
        finally:
            os.chdir(here)
        agent.child()
        shown = os.path.join(d.root, "f\ufffd")
        self.assertEqual((a.attached["cwd"], d.sessions()["s"]["cwd"]), (shown, shown))
        self.assertIn("/bin/c\ufffd", [p["program"] for p in d.call("plenum_status")["profiles"]])

    def test_program_name_cut_inside_a_character(self):
        libc = ctypes.CDLL(None)
        before = ctypes.create_string_buffer(16)
        libc.prctl(16, before, 0, 0, 0)
        self.addCleanup(libc.prctl, 15, before, 0, 0, 0)
        d, agent = self.start()
        libc.prctl(15, ctypes.create_string_buffer("fünfzehn-bytes".encode()[:2] + b"\xc3"), 0, 0, 0)
        a = d.client()
        self.assertEqual(a.hello()["peer"]["program"][-1], "?")
        a.attach("s")
        self.assertEqual(len(d.call("plenum_status", session="s")["clients"]), 1)


class LogTest(Case):
    """A line of the log is correct, with any names in it."""

    FORGED = 'x: Bash allow event=decision session=other tool=Bash decision=allow uid=0 program="p'

    def decisions(self, d):
        return [line for line in d.log().splitlines() if " request_id=" in line]

    def decide(self, d, agent, session, name, answer=deny, tool="Bash", **members):
        a = d.client()
        a.attach(session, name=name)
        child = agent.child()
        child.print(perm("k-1", tool=tool))
        a.send(answer(a.wait(type="control_request")["request_id"], **members))
        child.answer("k-1")
        until(lambda: self.decisions(d), what="the decision in the log")
        return a, child

    def fields(self, line):
        """Return {name: value} of a text line's fields, parsed as its writer means them."""
        words = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|[^ "]*)(?= |$)', line)
        self.assertEqual(len(words), len(dict(words)), line)
        return {k: json.loads(v) if v.startswith('"') else v for k, v in words}

    def test_names_do_not_forge_a_decision(self):
        d, agent = self.start()
        self.decide(d, agent, self.FORGED, 'me decision=allow "', tool="Bash decision=allow")
        line, = self.decisions(d)
        head, _, rest = line.rpartition(" event=decision session=\"")
        self.assertRegex(head, re.escape('session %s: "Bash decision=allow" deny by "me decision=allow \\"" '
                                         '(uid %d, ' % (json.dumps(self.FORGED), os.getuid())) + r"\S+\) after \d+\.\d s: \"touch one\"$")
        got = self.fields("session=\"" + rest)
        self.assertEqual((got["session"], got["decision"], got["name"], got["tool"]),
                         (self.FORGED, "deny", 'me decision=allow "', "Bash decision=allow"))

    def test_no_line_of_the_log_begins_or_turns_with_a_name(self):
        d, agent = self.start()
        with program(("p" + BIDI)[:4].encode()):
            a, child = self.decide(d, agent, "s", "n" + BIDI, tool="T" + BIDI)
        a.request("plenum_stop", session="s")
        child.wait_gone()
        until(lambda: "child ended" in d.log())
        for c in BIDI:
            self.assertNotIn(c, d.log())
        self.assertIn('name="n\\u202e\\u2066\\u2028\\u2029\\u200b\\u0085\\udb40\\udc41"', d.log())

    def test_every_line_quotes_the_session(self):
        d, agent = self.start()
        a = d.attached("a: child 5 ended")
        child = agent.child()
        a.request("plenum_stop")
        child.wait_gone()
        until(lambda: "child ended" in d.log())
        for line in d.log().splitlines():
            if "child 5 ended" in line:
                self.assertIn('session "a: child 5 ended": ', line)

    def test_names_that_turn_or_end_a_line_name_no_new_session(self):
        d, agent = self.start()
        a = d.client()
        for c in ("\n", "\x7f", "\x85", "\u061c", "\u200e", "\u202a", "\u202e", "\u2028", "\u2029", "\u2066", "\u2069"):
            self.assertIn("direction", self.assertRefused("bad_request", a.attach, "a%sb" % c).text)
            b = d.client()
            b.send(user("hi", session_id="a%sb" % c))
            self.assertIn("direction", b.error("bad_request")["error"])
        for name in ("\u00e9", "\u05d0\u05d1", "\U0001f469\u200d\U0001f4bb", "a b:c=\"d\""):
            self.assertEqual(d.attached(name).attached["session"], name)
            agent.child()

    def test_json_lines_too(self):
        d, agent = self.start(args=["--log-format", "json"])
        a = d.client()
        a.attach("s", name="n" + BIDI)
        child = agent.child()
        child.print(perm("k-1"))
        a.send(deny(a.wait(type="control_request")["request_id"]))
        line = until(lambda: [x for x in d.log().splitlines() if '"event":"decision"' in x])[0]
        self.assertTrue(line.isascii(), line)
        self.assertEqual(json.loads(line)["name"], "n" + BIDI)


class CommandTest(Case):
    """The line of a decision says who, for whom, what and after how long."""

    def decided(self, name, what):
        self.a.send(ok(self.a.wait(type="control_request")["request_id"], {"behavior": "allow"}))
        self.child.answer(name)
        return until(lambda: [x for x in self.d.log().splitlines() if "event=decision" in x and what in x])[-1]

    def test_the_text(self):
        self.d, agent = self.start()
        self.a = self.d.client()
        self.a.attach("s", name="desk")
        self.child = agent.child()
        self.child.print(perm("k-1", cmd='make "test"\n', agent_id="agent-7"))
        line = self.decided("k-1", what="agent-7")
        self.assertRegex(line, r'session s: Bash allow for subagent agent-7 by desk \(uid %d, \S+\) '
                               r'after \d+\.\d s: "make \\"test\\"\\n" event=decision ' % os.getuid())
        self.assertIn(' command="make \\"test\\"\\n" ', line)
        self.child.print(perm("k-2", cmd="\u20ac" * 100))
        self.assertIn(' s: "%s..." event=' % ("\u20ac" * 66), self.decided("k-2", what="\u20ac"))
        self.child.print(perm("k-3", tool="Odd", input={"n": 1}))
        self.assertIn(" Odd allow by desk ", self.decided("k-3", what=" Odd "))


class DecisionTest(Case):
    """A decision reports its changes."""

    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start(daemon={"log_commands": "no"})
        self.a = self.d.attached("s")
        self.child = self.agent.child()

    def decided(self, body, asked=None):
        asked = asked or perm("k-1", cmd="touch secret-1")
        self.child.print(asked)
        self.a.send(ok(self.a.wait(type="control_request")["request_id"], body))
        self.child.answer("k-1")
        told = self.a.event("settled")
        line = until(lambda: [x for x in self.d.log().splitlines() if "event=decision" in x and told["request_id"] in x])[0]
        self.assertNotIn("secret", line)
        self.assertNotIn(b"secret", told.raw)
        return told, line

    def test_an_input_that_was_changed(self):
        told, line = self.decided({"behavior": "allow", "updatedInput": {"command": "touch secret-2"}})
        self.assertIs(told["input_changed"], True)
        self.assertIn(" input_changed=yes ", line)
        self.assertIsNone(told["permissions"])
        self.assertIn(' permissions=""', line)

    def test_an_input_that_was_not(self):
        asked = {"type": "control_request", "request_id": "k-1", "request": {
            "subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "secret \u00e9", "n": 1.0, "l": [1, {"a": "b", "c": None}]}}}
        bodies = (b'{"behavior":"allow"}',
                  b'{"behavior":"allow","updatedInput":{"command":"secret \\u00e9","n":1.0,"l":[1,{"a":"b","c":null}]}}',
                  b'{"behavior":"allow","updatedInput":{ "n":1, "l":[ 1,{"c":null,"a":"\\u0062"}],"command":"secret \xc3\xa9"}}',
                  b'{"behavior":"deny","message":"no","updatedInput":{"x":1}}', b'{"allow":true}')
        for body in bodies:
            self.child.print(asked)
            rid = self.a.wait(type="control_request")["request_id"]
            self.a.send(b'{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":%s}}'
                        % (rid.encode(), body))
            self.child.answer("k-1")
            told = self.a.event("settled")
            self.assertIsNone(told["input_changed"], body)
            line = until(lambda: [x for x in self.d.log().splitlines() if "event=decision" in x and rid in x])[0]
            self.assertIn(" input_changed=no ", line)
            self.assertNotIn("secret", line)

    def test_permissions_that_were_added(self):
        told, line = self.decided({"behavior": "allow", "updatedPermissions": [
            {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "git *"}, {"toolName": "Read"}],
             "behavior": "allow", "destination": "session"},
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
            {"type": "addDirectories", "directories": ["/x y"], "destination": "localSettings"},
            {"type": "removeRules", "rules": [{"toolName": "Bash"}], "behavior": "deny", "destination": "userSettings"},
            {"type": "unheard"}, "junk"]})
        want = ["Bash(git *) allow session", "Read allow session", "mode acceptEdits session", "directory /x y localSettings",
                "remove: Bash deny userSettings", "unheard"]
        self.assertEqual(told["permissions"], want)
        self.assertIn(' permissions="%s"' % "; ".join(want), line)
        self.assertIsNone(told["input_changed"])

    def test_they_have_a_bound(self):
        rules = [{"toolName": "T%d" % i, "ruleContent": "\u20ac" * 5000} for i in range(500)]
        told, line = self.decided({"behavior": "allow", "updatedPermissions": [
            {"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"}]})
        self.assertEqual(len(told["permissions"]), 9)
        self.assertEqual(told["permissions"][-1], "... 492 more")
        self.assertTrue(all(len(p.encode()) <= 200 and "\ufffd" not in p for p in told["permissions"]))
        self.assertLess(len(line), 16384)

    def test_those_of_a_denial_are_none(self):
        told, line = self.decided({"behavior": "deny", "message": "no", "updatedPermissions": [
            {"type": "setMode", "mode": "bypassPermissions", "destination": "session"}]})
        self.assertIsNone(told["permissions"])
        self.assertNotIn("bypass", line)

    def hooked(self, body, event="PreToolUse"):
        self.child.print(hook("h-1", self.callback(event), event, tool_input={"command": "touch secret-1"}))
        m = self.a.wait(type="control_request", request__subtype="hook_callback")
        self.a.send(ok(m["request_id"], body))
        self.child.answer("h-1")
        return until(lambda: [x for x in self.d.log().splitlines() if "event=decision" in x and m["request_id"] in x])[0]

    def callback(self, event):
        self.a.initialize({event: [{"matcher": "Bash", "hookCallbackIds": ["mine"]}]})
        asked = [m for m in self.child.seen(type="control_request", request__subtype="initialize")][-1]
        return asked["request.hooks"][event][0]["hookCallbackIds"][0]

    def test_what_a_hook_decides(self):
        line = self.hooked({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
                                                   "updatedInput": {"command": "touch secret-2"}}})
        self.assertRegex(line, r": Bash allow by uid \d+, \S+ after \d+\.\d s event=decision ")
        self.assertIn(" subtype=hook_callback tool=Bash decision=allow ", line)
        self.assertIn(" input_changed=yes ", line)
        self.assertNotIn("secret", line)
        self.assertIn(" decision=deny ", self.hooked({"decision": "block", "reason": "secret"}))
        self.assertIn(" decision=answered ", self.hooked({}))

    def test_what_a_permission_hook_adds(self):
        line = self.hooked({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {
            "behavior": "allow", "updatedPermissions": [{"type": "addRules", "rules": [{"toolName": "Bash"}],
                                                         "behavior": "allow", "destination": "session"}]}}}, "PermissionRequest")
        self.assertIn(" decision=allow ", line)
        self.assertIn(' input_changed=no permissions="Bash allow session"', line)


@need_root
class PrivateTest(Case):
    """Clients of another uid are notified of nothing in a session with a private profile."""

    SECRETS = ("hidden-session", "hidden-client", "hidden-folder", "hidden-prof", "hidden-conv", "hidden-reason", "hidden-prog")

    def setUp(self):
        super().setUp()
        self.d, self.agent, self.hidden = self.start(agents=("agent", "hidden-prof"), daemon={"allow_uids": "nobody"})
        conf = open(self.d.conf).read().replace("[profile hidden-prof]\n", "[profile hidden-prof]\nprivate = yes\n")
        with open(self.d.conf, "w") as f:
            f.write(conf)
        self.d.call("plenum_reload")
        self.d.open_to_all()
        self.c = self.d.client(uid=NOBODY, gid=NOBODY)
        self.c.request("plenum_subscribe")
        folder = os.path.join(self.d.root, "hidden-folder")
        os.mkdir(folder)
        with program(b"hidden-prog"):
            self.own = self.d.attached("hidden-session", profile="hidden-prof", name="hidden-client", cwd=folder)
        self.child = self.hidden.child()
        self.child.print({"type": "system", "subtype": "init", "session_id": "hidden-conv"}, perm("k-1", cmd="hidden-reason"))
        self.own.wait(type="control_request")

    def assertSilent(self):
        self.c.sync()
        for m in self.c.log:
            for secret in self.SECRETS:
                self.assertNotIn(secret.encode(), m.raw)

    def test_of_what_a_stranger_asks(self):
        counts = {}
        for verb in ("plenum_hello", "plenum_list", "plenum_status", "plenum_pending", "plenum_metrics", "plenum_subscribe"):
            counts[verb] = self.c.request(verb)
        self.assertEqual((counts["plenum_status"]["sessions"], counts["plenum_metrics"]["sessions"]), (0, 0))
        self.assertEqual([counts["plenum_metrics"][k] for k in ("pending", "attachments", "turns", "tape_bytes")], [0] * 4)
        self.assertSilent()
        own = self.own.request("plenum_status", daemon=True)
        self.assertIn("hidden-client", [x["name"] for x in own["clients"]])
        self.assertEqual(own["sessions"], 1)

    def test_of_what_it_names(self):
        """It learns nothing new: not the name from the conversation, not the profile from the name."""
        c = self.c
        for verb in ("plenum_status", "plenum_pending", "plenum_stop", "plenum_hibernate", "plenum_logs", "plenum_queue",
                     "plenum_attach"):
            for name in ("hidden-session", "hidden-conv"):
                text = self.assertRefused("not_allowed", c.request, verb, session=name).text
                self.assertEqual([x for x in self.SECRETS if x in text], [name])
        e = self.assertRefused("not_allowed", c.attach, "hidden-session", create="new")
        self.assertNotIn("asking", e.text)
        e = self.assertRefused("conversation_in_use", c.attach, "mine", resume="hidden-conv")
        self.assertNotIn("hidden-session", e.text)
        self.assertIn("hidden-session", self.assertRefused("conversation_in_use", self.d.client().attach, "mine",
                                                           resume="hidden-conv").text)
        conf = open(self.d.conf).read().replace("default_profile = agent\n", "default_profile = hidden-prof\n")
        with open(self.d.conf, "w") as f:
            f.write(conf)
        self.d.call("plenum_reload")
        self.assertNotIn("hidden-prof", self.assertRefused("not_allowed", c.attach, "new").text)
        self.assertIsNone(c.hello()["default_profile"])
        self.assertEqual(self.d.call("plenum_hello")["default_profile"], "hidden-prof")
        b = self.d.client(uid=NOBODY, gid=NOBODY)
        b.send(user("hi", session_id="hidden-conv"))
        self.assertNotIn("hidden-session", b.error("not_allowed")["error"])

    def test_of_what_it_subscribed_to(self):
        self.own.send(deny("nothing"), user("hi", uuid="u1"))
        self.child.wait(type="user")
        self.child.print(RESULT)
        self.own.wait(type="result")
        self.own.request("plenum_stop", how="kill", forget=True)
        self.own.event("session_removed")
        self.assertSilent()

    def test_its_own_session_is_shown(self):
        self.c.attach("open", name="stranger")
        self.agent.child()
        got = self.c.request("plenum_status", daemon=True)
        self.assertEqual([(x["name"], x["session"]) for x in got["clients"] if x["session"]], [("stranger", "open")])
        self.assertEqual(got["sessions"], 1)
        self.assertSilent()


class DenyAsksTest(Case):
    """deny_asks applies to one's own session."""

    def test_an_observers_denies_nothing(self):
        d, agent = self.start(profile={"permission_wait": "never"})
        a = d.attached("s", approve=False)
        d.attached("s", role="observer", deny_asks=True)
        d.attached("s", approve=False, deny_asks=True)
        child = agent.child()
        child.print(perm("k-1"))
        child.mark(a)
        self.assertNone(child.answers("k-1"))
        late = d.attached("s")
        late.send(allow(late.wait(type="control_request")["request_id"]))
        self.assertEqual(child.answer("k-1")["response.response.behavior"], "allow")

    def test_the_makers_denies_nothing_where_others_may_come(self):
        d, agent = self.start(profile={"permission_wait": "1s"})
        d.attached("s", approve=False, deny_asks=True)
        child = agent.child()
        child.print(perm("k-1"))
        self.assertIn("permission_wait", child.answer("k-1")["response.response.message"])

    def test_in_a_session_of_ones_own_it_denies_at_once(self):
        d, agent = self.start(profile={"permission_wait": "never"})
        a = d.attached("s", approve=False, deny_asks=True, ephemeral=True)
        child = agent.child()
        child.print(perm("k-1"))
        self.assertEqual(child.answer("k-1")["response.response"], {"behavior": "deny", "message": "This command requires approval"})
        b = d.attached("s")
        child.print(perm("k-2"))
        b.send(allow(b.wait(type="control_request")["request_id"]))
        self.assertEqual(child.answer("k-2")["response.response.behavior"], "allow")
        a.close()


if __name__ == "__main__":
    unittest.main()
