# SPDX-License-Identifier: MIT
"""The recipients of each line, and its ids (contract 4, 8, 9.2; cases C07 C08 C33 C37 C46 C71)."""
import re
import unittest

from harness import RESULT, Case, allow, cancel, deny, dump, err, ok, perm, request, until, user


class IdTest(Case):
    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a, self.b = self.d.attached(label="a"), self.d.attached(label="b")
        self.child = self.agent.child()

    def test_same_id_at_two_clients(self):
        self.a.send(request("1", "set_permission_mode", mode="plan"))
        self.b.send(request("1", "mcp_status"))
        mode, status = self.child.request("set_permission_mode"), self.child.request("mcp_status")
        self.assertNotEqual(mode["request_id"], status["request_id"])
        self.child.reply(status, {"mcpServers": []})
        self.child.reply(mode, {"mode": "plan"})
        self.assertEqual(self.a.answer("1")["response.response"], {"mode": "plan"})
        self.assertEqual(self.b.answer("1")["response.response"], {"mcpServers": []})
        self.child.mark(self.a, self.b)
        for c in (self.a, self.b):
            self.assertEqual(len(c.seen(type="control_response", response__request_id="1")), 1)

    def test_ids_of_all_kinds(self):
        self.child.print(perm("k-1"))
        asked = self.a.wait(type="control_request")["request_id"]
        for rid in ("", "x" * 10000, 'quote " and \n newline', "\u00e9\ud800", "k-1", asked, "req_1_00000000", "\\", "0"):
            raw = b'{"type":"control_request","request_id":' + dump(rid) + b',"request":{"subtype":"mcp_status"}}'
            self.a.send(raw)
            got = self.child.request("mcp_status")
            self.assertRegex(got["request_id"], r"^req_[0-9]+_[0-9a-f]{8}$")
            self.child.reply(got, {"n": 1})
            answer = self.a.answer(rid)
            self.assertIn(dump(rid), answer.raw, "not the same text")
            self.assertEqual(answer["response.response"], {"n": 1})
        self.a.send(allow(asked))
        self.child.answer("k-1")

    def test_a_numeric_id(self):
        """Answered under it; it differs from a string of that number."""
        self.a.send(b'{"type":"control_request","request_id":17,"request":{"subtype":"mcp_status"}}',
                    b'{"type":"control_request","request_id":"17","request":{"subtype":"mcp_status"}}',
                    b'{"type":"control_request","request_id":17,"request":{"subtype":"mcp_status"}}')
        self.assertEqual(self.a.answer(17)["response.code"], "duplicate_request")
        for want in (b'"request_id":17', b'"request_id":"17"'):
            asked = self.child.request("mcp_status")
            self.assertIsInstance(asked["request_id"], str)
            self.child.reply(asked)
            self.assertIn(want, self.a.wait(type="control_response").raw)
        self.a.send(b'{"type":"control_request","request_id":18,"request":{"subtype":"mcp_status"}}',
                    b'{"type":"control_cancel_request","request_id":18}')
        asked = self.child.request("mcp_status")
        self.child.wait(type="control_cancel_request", request_id=asked["request_id"])
        self.a.send(b'{"request":{"subtype":"plenum_hello"},"type":"control_request","request_id":-3}')
        self.assertIn(b'"request_id":-3', self.a.answer(-3).raw)
        self.a.send(b'{"type":"control_request","request_id":0,"request":{"subtype":"initialize"}}')
        self.assertEqual(self.a.answer(0)["response.subtype"], "success")

    def test_ids_cannot_be_guessed(self):
        seen = set()
        for i in range(50):
            self.a.send(request(str(i), "mcp_status"))
            got = self.child.request("mcp_status")
            seen.add(re.match(r"^req_[0-9]+_([0-9a-f]{8})$", got["request_id"]).group(1))
            self.child.reply(got)
        self.assertEqual(len(seen), 50)

    def test_the_rest_of_the_request_is_untouched(self):
        line = b'{ "request" : {"x":1e400, "subtype":"mcp_status","y":"\\ud800"}, "type":"control_request" , "request_id" : "a" ,"z":0.10}'
        self.a.send(line)
        got = self.child.request("mcp_status")
        self.assertEqual(got.raw, line.replace(b'"a"', dump(got["request_id"])))
        reply = b'{ "response":{"response":{"n":12345678901234567000} , "request_id" : %s,"subtype":"success","w":0.10},"type" :"control_response"}'
        self.child.print(reply % dump(got["request_id"]) + b"\n")
        self.assertEqual(self.a.answer("a").raw, reply % b'"a"')

    def test_an_id_reused_while_open(self):
        self.a.send(request("1", "mcp_status"), request("1", "get_settings"))
        got = self.child.request("mcp_status")
        m = self.a.answer("1")
        self.assertEqual(m["response.code"], "duplicate_request")
        self.child.reply(got, {"first": True})
        self.assertEqual(self.a.answer("1")["response.response"], {"first": True})
        self.assertNone(self.child.seen(request__subtype="get_settings"))
        self.a.send(request("1", "get_settings"))
        self.child.reply(self.child.request("get_settings"), {"second": True})
        self.assertEqual(self.a.answer("1")["response.response"], {"second": True})

    def test_an_open_id_reused_by_a_verb(self):
        self.a.send(request("1", "mcp_status"), request("1", "plenum_list"))
        got = self.child.request("mcp_status")
        self.assertEqual(self.a.answer("1")["response.code"], "duplicate_request")
        self.child.reply(got, {"first": True})
        self.assertEqual(self.a.answer("1")["response.response"], {"first": True})
        self.a.send(request("1", "plenum_list"))
        self.assertIn("sessions", self.a.answer("1")["response.response"])

    def test_the_id_of_an_open_initialize_reused(self):
        _, _, child, a = self.open(mode={"init": "manual"})
        a.send(request("1", "initialize"), request("1", "mcp_status"), request("1", "plenum_hello"))
        for _ in range(2):
            self.assertEqual(a.answer("1")["response.code"], "duplicate_request")
        child.reply(child.request("initialize"), {"first": True})
        self.assertIs(a.answer("1")["response.response"]["first"], True)
        self.assertNone(child.seen(request__subtype="mcp_status"))

    def test_the_answers_of_others_cannot_be_taken(self):
        """A client's control_response under the daemon's id for a request of another client is dropped."""
        self.a.send(request("1", "mcp_status"))
        got = self.child.request("mcp_status")
        self.b.send(ok(got["request_id"], {"fake": True}))
        self.assertIn(self.b.event("error")["code"], ("unknown_request", "not_allowed"))
        self.child.reply(got, {"real": True})
        self.assertEqual(self.a.answer("1")["response.response"], {"real": True})
        self.assertNone(self.child.seen(type="control_response"))

    def test_an_error_of_the_child(self):
        self.a.send(request("1", "brand_new_request", x=1))
        got = self.child.request("brand_new_request")
        self.assertEqual(got["request.x"], 1)
        self.child.print({"type": "control_response", "response": {"subtype": "error", "request_id": got["request_id"],
                          "error": "Unsupported", "error_code": "unsupported_request"}})
        answer = self.a.answer("1")
        self.assertEqual(answer["response.error_code"], "unsupported_request")
        self.assertIsNone(answer["response.code"])
        self.child.mark(self.b)
        self.assertNone(self.b.seen(lambda m: b"unsupported_request" in m.raw))

    def test_an_answer_to_nobody(self):
        """Echoes of clients' answers, and answers under unknown ids, reach no client."""
        self.child.print(perm("k-1"))
        self.a.send(allow(self.a.wait(type="control_request")["request_id"]))
        echo = self.child.answer("k-1")
        self.child.print(echo.raw + b"\n", ok("never-asked", {"x": 1}), ok("k-1", {"x": 1}))
        self.child.mark(self.a, self.b)
        for c in (self.a, self.b):
            self.assertNone(c.seen(lambda m: m["type"] == "control_response" and m["response.request_id"] in ("k-1", "never-asked")))
            self.assertNone(c.seen(lambda m: b"updatedInput" in m.raw and m["type"] == "control_response"))

    def test_a_second_answer_of_the_child(self):
        self.a.send(request("1", "mcp_status"))
        got = self.child.request("mcp_status")
        self.child.reply(got, {"n": 1})
        self.child.reply(got, {"n": 2})
        self.child.mark(self.a, self.b)
        self.assertEqual([m["response.response.n"] for m in self.a.seen(type="control_response", response__request_id="1")], [1])

    def test_asker_gone(self):
        self.a.send(request("1", "mcp_status"))
        got = self.child.request("mcp_status")
        self.a.close()
        self.b.event("detached")
        self.child.reply(got)
        self.child.mark(self.b)
        self.assertNone(self.b.seen(lambda m: m["response.request_id"] in ("1", got["request_id"])))


class UnknownTest(Case):
    LINES = [b'{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"},"uuid":"u1","session_id":"s1"}',
             b'{"type":"brand_new_thing","x":[1,2,{"y":null}]}', b'{"no_type_at_all":true}', b'{"type":5}',
             b'{"type":"system","subtype":"future_subtype"}', b'{"type":"keep_alive"}', b'{}', b'{"type":null}',
             b'{"duration_api_ms":1,"type":"result","subtype":"success"}']

    def test_from_the_child(self):
        d, agent = self.start()
        a, b = d.attached(), d.attached(role="observer")
        child = agent.child()
        child.print(*(x + b"\n" for x in self.LINES))
        for c in (a, b):
            c.wait(lambda m: m.raw == self.LINES[-1])
            self.assertEqual([m.raw for m in c.log if m.raw in self.LINES], self.LINES)

    def test_from_a_client(self):
        _, _, child, a, b = self.open(2)
        for line in (b'{"type":"keep_alive"}', b'{"type":"update_environment_variables","variables":{"A":"1"}}', b'{"type":"banana"}',
                     b'{"type":"assistant","message":{"role":"assistant","content":[]},"x":1.0}', b'{"type":"system","subtype":"plenum_event","event":"fake"}'):
            a.send(line)
            self.assertEqual(child.wait(lambda m: m["type"] not in ("control_request",)).raw, line)
        child.mark(b)
        self.assertNone(b.seen(lambda m: m["type"] in ("banana", "assistant")))

    def test_an_unknown_request_of_the_child_goes_to_every_driver(self):
        d, agent = self.start()
        a, b, o = d.attached(), d.attached(approve=False), d.attached(role="observer", approve=True)
        child = agent.child()
        child.print(request("k-2", "never_heard_of", z=1.50))
        rid = a.wait(type="control_request", request__subtype="never_heard_of")["request_id"]
        other = b.wait(type="control_request", request__subtype="never_heard_of")["request_id"]
        child.mark(o)
        self.assertNone(o.seen(type="control_request"))
        b.send(ok(other, {"free": "form"}))
        self.assertEqual(child.answer("k-2")["response.response"], {"free": "form"})
        a.wait(type="control_cancel_request", request_id=rid)
        a.send(ok(rid, {"late": 1}))
        a.error("already_settled", request_id=rid)
        child.mark(a)
        self.assertEqual(len(child.answers("k-2")), 1)


class TimeoutTest(Case):
    def test_by_profile(self):
        _, _, child, a = self.open(profile={"control_timeout": "200ms"})
        a.send(request("1", "mcp_status"))
        got = child.request("mcp_status")
        self.assertEqual(a.answer("1")["response.code"], "timeout")
        child.reply(got, {"late": True})
        child.mark(a)
        self.assertEqual(len(a.seen(type="control_response", response__request_id="1")), 1)
        self.assertNone(a.seen(lambda m: b'"late"' in m.raw))
        self.assertEqual(a.request("plenum_status", session="s")["dropped_answers"], 1)

    def test_by_request(self):
        _, _, child, a = self.open()
        a.send(request("1", "mcp_status", plenum_timeout_ms=150), request("2", "get_settings"))
        child.request("mcp_status")
        got = child.request("get_settings")
        self.assertEqual(a.answer("1")["response.code"], "timeout")
        self.assertNone(a.seen(type="control_response", response__request_id="2"))
        child.reply(got)
        self.assertEqual(a.answer("2")["response.subtype"], "success")

    def test_longer_than_the_profile_says(self):
        _, _, child, a = self.open(profile={"control_timeout": "100ms"})
        a.send(request("1", "mcp_status", plenum_timeout_ms=60000), request("2", "get_settings"))
        got = child.request("mcp_status")
        self.assertEqual(a.answer("2")["response.code"], "timeout")
        child.reply(got)
        self.assertEqual(a.answer("1")["response.subtype"], "success")

    def test_the_id_is_free_again(self):
        _, _, child, a = self.open()
        a.send(request("1", "mcp_status", plenum_timeout_ms=50))
        late = child.request("mcp_status")
        self.assertEqual(a.answer("1")["response.code"], "timeout")
        a.send(request("1", "mcp_status"))
        got = child.request("mcp_status")
        child.reply(late, {"n": "late"})
        child.reply(got, {"n": "new"})
        self.assertEqual(a.answer("1")["response.response.n"], "new")

    def test_a_bad_value(self):
        d, agent = self.start()
        a = d.attached()
        for bad in (-1, "soon", [], 1.5):
            e = self.assertRefused("bad_request", a.request, "mcp_status", plenum_timeout_ms=bad)
            self.assertIn("plenum_timeout_ms", e.text)

    def test_change_confirmed_after_the_timeout(self):
        d, _, child, a = self.open()
        for model in ("late-1", "late-2"):  # the id is free again at once
            a.send(request("x", "set_model", model=model, plenum_timeout_ms=1))
            got = child.request("set_model")
            self.assertEqual(a.answer("x")["response.code"], "timeout")
            child.reply(got, {"model": model})
            self.assertEqual(a.event("changed", what="model")["value"], model)
            self.assertEqual(d.client().attach("s")["model"], model)


class CancelTest(Case):
    def test_only_its_own(self):
        _, _, child, a, b = self.open(2)
        a.send(request("1", "mcp_call", tool="mcp__a__x"))
        b.send(request("1", "mcp_call", tool="mcp__a__y"))
        ga, gb = child.request("mcp_call", request__tool="mcp__a__x"), child.request("mcp_call", request__tool="mcp__a__y")
        a.send(cancel("1"))
        self.assertEqual(child.wait(type="control_cancel_request")["request_id"], ga["request_id"])
        a.send(cancel("2"), cancel(gb["request_id"]))
        a.sync()
        self.assertEqual(len(child.seen(type="control_cancel_request")), 1)
        child.reply(gb)
        self.assertEqual(b.answer("1")["response.subtype"], "success")

    def test_flood_of_cancels_is_bounded(self):
        _, _, child, a = self.open(limits={"stdin_queue": "64K", "client_line": "64K"})
        a.send(request("1", "mcp_status"))
        child.request("mcp_status")
        child.pause()
        child.written()
        line = b'{"type":"control_cancel_request","request_id":"1"}\n'
        a.raw(line * 8000)
        a.error("busy")
        child.resume()

    def test_requests_over_max_calls_are_refused(self):
        d, _, child, a = self.open(limits={"max_calls": "5"})
        a.initialize()
        a.send(*[request("r%d" % i, "mcp_status") for i in range(8)])
        refused = [a.answer("r%d" % i) for i in range(5, 8)]
        self.assertLessEqual({m["response.code"] for m in refused}, {"too_many", "busy"})
        for _ in range(5):
            child.reply(child.request("mcp_status"))
        for i in range(5):
            self.assertEqual(a.answer("r%d" % i)["response.subtype"], "success")
        a.send(request("r9", "mcp_status"))
        child.reply(child.request("mcp_status"))
        self.assertEqual(a.answer("r9")["response.subtype"], "success")

    def test_cancelled_request_ends_with_the_childs_answer(self):
        """The answer of the child, if one comes, still ends it; then the id is free."""
        _, _, child, a = self.open()
        a.send(request("1", "mcp_call", tool="mcp__x__y"), cancel("1"))
        got = child.request("mcp_call")
        self.assertEqual(child.wait(type="control_cancel_request")["request_id"], got["request_id"])
        child.print(err(got["request_id"], "cancelled"))
        self.assertEqual(a.answer("1")["response.error"], "cancelled")
        a.send(cancel("1"), request("1", "mcp_status"))
        child.reply(child.request("mcp_status"))
        self.assertEqual(a.answer("1")["response.subtype"], "success")


class InterruptTest(Case):
    def test_the_receipt_is_the_childs(self):
        _, _, child, a, b = self.open(2)
        a.send(user("count"), request("a-1", "interrupt"))
        got = child.request("interrupt")
        self.assertNone(a.seen(type="control_response", response__request_id="a-1"))
        child.reply(got, {"still_queued": []})
        self.assertEqual(a.answer("a-1")["response.response"], {"still_queued": []})
        child.print({"type": "stream_event", "n": 1})
        a.wait(type="stream_event")

    def test_two_at_once_and_when_idle(self):
        _, _, child, a, b = self.open(2, mode={"control": ["interrupt"]})
        a.send(request("1", "interrupt"))
        b.send(request("1", "interrupt"))
        self.assertEqual(a.answer("1")["response.subtype"], "success")
        self.assertEqual(b.answer("1")["response.subtype"], "success")
        a.send(request("2", "interrupt"))
        self.assertEqual(a.answer("2")["response.subtype"], "success")
        self.assertEqual(len(child.seen(request__subtype="interrupt")), 3)

    def test_never_answered(self):
        _, _, child, a = self.open()
        a.send(request("a-1", "interrupt", plenum_timeout_ms=200), request("a-2", "mcp_status"))
        child.request("interrupt")
        child.reply(child.request("mcp_status"))
        a.answer("a-2")
        self.assertEqual(a.answer("a-1")["response.code"], "timeout")
        a.request("plenum_stop", how="kill")
        a.event("child_exited", wanted=True)

    def test_queued_prompts_of_others_are_spared(self):
        _, _, child, a, b = self.open(2)
        a.send(user("one", uuid="ua"))
        b.send(user("two", uuid="ub"))
        child.wait(type="user", uuid="ua")
        child.wait(type="user", uuid="ub")
        a.send(request("1", "interrupt", cancel_queued=True))
        got = child.request("interrupt")
        self.assertNotEqual(got["request.cancel_queued"], True)
        child.reply(got, {"still_queued": ["ub"]})
        a.answer("1")
        a.send(request("2", "interrupt", cancel_queued=True, plenum_all=True))
        got = child.request("interrupt")
        self.assertIs(got["request.cancel_queued"], True)
        child.reply(got, {})
        a.answer("2")

    def test_queued_prompts_of_an_earlier_connection_are_its_own(self):
        """The same uid and name are the same client."""
        d, agent = self.start(profile={"prompts": "queue"})
        a, b, other = d.attached(), d.attached(name="b"), d.attached(name="other")
        child = agent.child()
        child.prompted(a, "one", uuid="ua")
        b.send(user("two", uuid="ub"))
        other.send(user("three", uuid="uc"))
        until(lambda: len(d.call("plenum_queue", session="s")["prompts"]) == 2, what="the prompts that are held")
        b.close()
        b = d.attached(name="b")
        b.send(request("1", "interrupt", cancel_queued=True))
        child.reply(child.request("interrupt"))
        b.answer("1")
        self.assertEqual(a.event("changed", what="prompt_cancelled")["value"], "ub")
        self.assertEqual([p["uuid"] for p in d.call("plenum_queue", session="s")["prompts"]], ["uc"])


class EverybodyTest(Case):
    def test_end_session_is_a_stop(self):
        _, _, child, a, b = self.open(2, mode={"control": True})
        self.assertEqual(a.answer(a.ask("end_session"))["response.subtype"], "success")
        self.assertNone(child.seen(request__subtype="end_session"))
        for c in (a, b):
            self.assertIs(c.event("child_exited")["wanted"], True)
        child.wait_gone()

    def test_changes_are_told(self):
        d, agent = self.start(mode={"control": True})
        a, b, o = d.attached(name="me"), d.attached(), d.attached(role="observer")
        for sub, value in (("set_permission_mode", {"mode": "plan"}), ("set_model", {"model": "m-1"})):
            a.request(sub, **value)
            for c in (a, b, o):
                m = c.event("changed", what=lambda w: w in (sub, sub[len("set_"):]))
                self.assertEqual(m["by.name"], "me")
                self.assertEqual(m["by.uid"], __import__("os").getuid())
                self.assertIn(list(value.values())[0], str(m["value"]))

    def test_a_refused_change_is_not_told(self):
        _, _, child, a, b = self.open(2)
        a.send(request("1", "set_permission_mode", mode="nonsense"))
        got = child.request("set_permission_mode")
        child.print({"type": "control_response", "response": {"subtype": "error", "request_id": got["request_id"],
                     "error": "no", "error_code": "invalid_mode"}})
        a.answer("1")
        child.mark(b)
        self.assertNone(b.events("changed"))

    def test_other_requests_change_nothing(self):
        _, _, child, a, b = self.open(2, mode={"control": True})
        a.request("mcp_status")
        child.mark(b)
        self.assertNone(b.events("changed"))


class UuidTest(Case):
    def setUp(self):
        super().setUp()
        self.d, self.agent = self.start()
        self.a = self.d.attached(name="a")
        self.child = self.agent.child()

    def test_one_is_added(self):
        line = b'{"message":{"role":"user","content":"x"},"n":1e400,"type":"user"}'
        self.a.send(line)
        got = self.child.wait(type="user")
        self.assertRegex(got["uuid"], r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
        without = got.raw.replace(b'"uuid":' + dump(got["uuid"]), b"")
        self.assertIn(without.replace(b",", b""), line.replace(b",", b""))
        self.a.send(user("y"))
        self.assertNotEqual(self.child.wait(type="user")["uuid"], got["uuid"])

    def test_an_empty_or_null_uuid(self):
        for bad in (b'""', b"null"):
            self.a.send(b'{"type":"user","uuid":' + bad + b',"message":{"role":"user","content":"x"}}')
            got = self.child.wait(type="user")
            self.assertTrue(got["uuid"])

    def test_one_that_cannot_be_used(self):
        """Its client waits for a result that names it, and is notified of the other one."""
        for bad in (b'"a\\u0000b"', b"7", b"[1]"):
            self.a.send(b'{"type":"user","uuid":' + bad + b',"message":{"role":"user","content":"x"}}')
            got = self.child.wait(type="user")
            m = self.a.event("changed", what="uuid", value=got["uuid"])
            self.assertIn(b'"was":' + bad, m.raw)
        self.a.send(b'{"type":"user","uuid":null,"message":{"role":"user","content":"y"}}', user("z"))
        self.child.wait(type="user", message__content="z")
        self.a.sync()
        self.assertEqual(len(self.a.events("changed")), 3)

    def test_the_clients_own_stays(self):
        line = b'{"type":"user","uuid":"any text","message":{"role":"user","content":"x"}}'
        self.a.send(line)
        self.assertEqual(self.child.wait(type="user").raw, line)

    def test_a_retry_runs_once(self):
        self.a.send(user("deploy", uuid="u-1"))
        self.child.wait(type="user", uuid="u-1")
        self.a.send(user("deploy", uuid="u-1"), user("next", uuid="u-2"))
        self.child.wait(type="user", uuid="u-2")
        self.assertEqual(len(self.child.seen(type="user", uuid="u-1")), 1)

    def test_a_retry_after_a_reconnect(self):
        self.a.send(user("deploy", uuid="u-1"))
        self.a.close()
        again = self.d.attached(name="a")
        again.send(user("deploy", uuid="u-1"), user("next", uuid="u-2"))
        self.child.wait(type="user", uuid="u-2")
        self.assertEqual(len(self.child.seen(type="user", uuid="u-1")), 1)

    def test_a_clash_gets_a_fresh_one(self):
        b = self.d.attached(name="b")
        self.a.send(user("deploy", uuid="u-1"))
        self.child.wait(type="user", uuid="u-1")
        b.send(user("other", uuid="u-1"))
        got = self.child.wait(type="user")
        self.assertEqual(got["message.content"], "other")
        self.assertNotEqual(got["uuid"], "u-1")
        self.assertTrue(got["uuid"])

    def test_the_same_line_of_two_clients_without_a_name(self):
        b, c = self.d.attached(), self.d.attached()
        b.send(user("hello", uuid="u-1"))
        self.child.wait(type="user", uuid="u-1")
        c.send(user("hello", uuid="u-1"))
        c.event("changed", what="uuid", was="u-1", value=self.child.wait(type="user")["uuid"])
        b.close()
        again = self.d.attached()
        again.send(user("hello", uuid="u-1"))
        again.error("duplicate_request", uuid="u-1")


class PromptsTest(Case):
    def test_in_mid_turn_at_once(self):
        _, _, child, a, b = self.open(2)
        child.prompted(a, "long job", uuid="ua")
        child.print({"type": "assistant", "message": {}})
        child.prompted(b, "also this", uuid="ub")
        for uuid in ("ua", "ub"):
            child.print(user("echo", uuid=uuid, isReplay=True))
        child.print(dict(RESULT, user_message_uuids=["ua", "ub"]))
        for c in (a, b):
            c.wait(type="result")
            self.assertEqual([m["uuid"] for m in c.seen(type="user", isReplay=True)], ["ua", "ub"])

    def test_echo_off(self):
        d, agent = self.start(mode={"user": True})
        a, b = d.attached(echo=False), d.attached()
        a.send(user("x", uuid="ua"))
        a.wait(type="result")
        b.wait(type="result")
        self.assertNone(a.seen(isReplay=True))
        self.assertEqual(len(b.seen(isReplay=True)), 1)

    def test_queue(self):
        _, _, child, a, b = self.open(2, profile={"prompts": "queue"})
        child.prompted(a, "one", uuid="ua")
        b.send(user("two", uuid="ub"), request("b", "mcp_status"))
        child.reply(child.request("mcp_status"))
        b.answer("b")
        self.assertNone(child.seen(uuid="ub"))
        self.assertIn("ub", str(b.request("plenum_queue", session="s")))
        child.print(dict(RESULT, user_message_uuids=["ua"]))
        child.wait(type="user", uuid="ub")
        self.assertNotIn("ub", str(b.request("plenum_queue", session="s")))

    def test_queue_lets_ones_own_pass(self):
        _, _, child, a = self.open(profile={"prompts": "queue"})
        a.send(user("one", uuid="ua"), user("more", uuid="ub"))
        child.wait(type="user", uuid="ua")
        child.wait(type="user", uuid="ub")

    def test_one_queued_prompt_is_taken_back(self):
        d, agent = self.start(profile={"prompts": "queue"}, mode={"control": True})
        a, b, again = d.attached(), d.attached(name="b"), d.attached(name="b")
        child = agent.child()
        child.prompted(a, "one", uuid="ua")
        b.send(*(user("two", uuid=u) for u in ("ub", "uc", "ud")))
        a.send(user("more", uuid="ue"))

        def held():
            return [p["uuid"] for p in d.call("plenum_queue", session="s")["prompts"]]

        until(lambda: len(held()) == 4, what="the prompts that are held")
        self.assertRefused("not_allowed", a.request, "cancel_async_message", message_uuid="ub")
        for client, uuid, members in ((b, "ub", {}), (again, "uc", {}), (a, "ud", {"plenum_all": True})):
            answer = client.request("cancel_async_message", message_uuid=uuid, **members)
            self.assertEqual(answer, {"cancelled": True, "message_uuid": uuid})
            self.assertEqual(a.event("changed", what="prompt_cancelled")["value"], uuid)
        child.wait(type="user", uuid="ue")  # no line of others is before it
        self.assertEqual(held(), [])
        self.assertNone(child.seen(subtype="cancel_async_message"))
        self.assertRefused("not_allowed", b.request, "cancel_async_message", message_uuid="ua")
        a.ask("cancel_async_message", message_uuid="ua")
        child.request("cancel_async_message")

    def test_a_held_prompt_that_was_taken_back_is_sent_again(self):
        """It never ran; one that did, or that the child knows, is refused."""
        d, agent = self.start(profile={"prompts": "queue"}, mode={"control": True})
        a, b = d.attached(), d.attached(name="b")
        child = agent.child()
        child.prompted(a, "one", uuid="ua")
        b.send(user("two", uuid="ub"))
        self.assertIs(b.request("cancel_async_message", message_uuid="ub")["cancelled"], True)
        b.send(user("two", uuid="ub"))
        until(lambda: [p["uuid"] for p in d.call("plenum_queue", session="s")["prompts"]] == ["ub"])
        b.send(user("two", uuid="ub"))
        self.assertEqual(b.event("error")["code"], "duplicate_request")
        child.print(dict(RESULT, user_message_uuids=["ua"]))
        child.wait(type="user", uuid="ub")

    def test_turn_events(self):
        d, agent = self.start()
        a, o = d.attached(), d.attached(role="observer")
        child = agent.child()
        child.prompted(a, "x", uuid="u1")
        child.print({"type": "system", "subtype": "init", "session_id": "c", "user_message_uuids": ["u1"]},
                    dict(RESULT, user_message_uuids=["u1"]))
        for c in (a, o):
            c.event("turn_started")
            self.assertEqual(c.event("turn_ended")["uuids"], ["u1"])


class LeavingTest(Case):
    def test_detaching_client_gets_its_answers(self):
        _, _, child, a = self.open(mode={"init": "manual"})
        first = a.ask("initialize", hooks=None)
        child.request("initialize")
        second = a.ask("set_model", model="m")
        a.request("plenum_detach")
        for rid in (first, second):
            self.assertEqual(a.answer(rid)["response.code"], "not_attached")

    def test_child_exit_answers_every_client_but_the_shim(self):
        """Behind the shim the request ends unanswered, as with the CLI; any other client gets an answer."""
        d, agent = self.start()
        a = d.attached(ephemeral=True, quiet=True)
        child = agent.child()
        b = d.attached()
        for client, rid in ((a, "1"), (b, "2")):
            client.send(request(rid, "mcp_status"))
            child.request("mcp_status")
        child.exit(3)
        self.assertEqual(b.answer("2")["response.code"], "child_exited")
        until(lambda: not d.sessions(), what="the session to be gone")
        a.wait_eof()
        self.assertNone(a.seen(type="control_response", response__request_id="1"))


class ChildIdTest(Case):
    """Ids chosen by the child."""

    def test_ids_come_back_byte_by_byte(self):
        _, _, child, a = self.open()
        for raw in (b'17', b'""', b'"k\\u002d1"', b'"\\ud800"', b'"quote \\" slash \\\\ \\/"', b'"' + b"x" * 5000 + b'"', b'1e2', b'-0'):
            child.print(b'{"type":"control_request","request_id":' + raw + b',"request":{"subtype":"can_use_tool","tool_name":"Bash",'
                        b'"input":{"command":"c"},"tool_use_id":"t"}}\n')
            a.send(allow(a.wait(type="control_request")["request_id"], "c"))
            got = child.wait(type="control_response")
            self.assertIn(b'"request_id":' + raw, got.raw)

    def test_request_without_an_id_is_skipped(self):
        _, _, child, a = self.open()
        child.print(b'{"type":"control_request","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}\n',
                    b'{"type":"control_request","request_id":"k-0"}\n', b'{"type":"control_request","request_id":"k-9","request":[]}\n',
                    b'{"type":"control_cancel_request"}\n', b'{"type":"control_response"}\n', b'{"type":"control_response","response":5}\n',
                    perm("k-1"))
        a.send(allow(a.wait(type="control_request", request__tool_use_id="toolu_k-1")["request_id"]))
        child.answer("k-1")
        child.mark(a)

    def test_same_id_twice_while_open(self):
        _, _, child, a = self.open()
        child.print(perm("k-1", "first"), perm("k-1", "second"))
        first = a.wait(type="control_request")
        a.send(allow(first["request_id"], first["request.input.command"]))
        child.answer("k-1")
        child.mark(a)
        for m in a.seen(type="control_request")[1:]:
            a.send(deny(m["request_id"]))
        a.sync()
        self.assertLessEqual(len(child.answers("k-1")), len(a.seen(type="control_request")))


if __name__ == "__main__":
    unittest.main()
