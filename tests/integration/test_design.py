# SPDX-License-Identifier: MIT
"""What somebody would try who knows the contract and not the source."""

import uuid

from harness import RESULT, Case, allow, matches, ok, perm, request, user


class VerbTest(Case):
    def test_a_name_without_an_attach(self):
        d, _ = self.start(mode={"user": True})
        c = d.client()
        c.request("plenum_hello", name="me", protocol=1)
        c.send(user("hi"))
        self.assertEqual(c.event("turn_ended")["clients"][0]["name"], "me")

    def test_how_is_one_of_two_words(self):
        d, _ = self.start()
        c = d.client()
        self.assertRefused("bad_request", c.request, "plenum_shutdown", how="gently")
        self.assertRefused("bad_request", c.request, "plenum_shutdown", how="")
        c.attach("work")
        self.assertRefused("bad_request", c.request, "plenum_stop", how="gently")
        self.assertRefused("no_such_session", c.request, "plenum_stop", session="other", how="gently")

    def test_the_prefix_alone_is_no_request_for_the_child(self):
        d, agent = self.start()
        c = d.client()
        self.assertRefused("bad_request", c.request, "plenum_")
        c.attach("work")
        self.assertRefused("bad_request", c.request, "plenum_")
        self.assertNone(agent.child().seen(request__subtype="plenum_"))

    def test_an_empty_conversation_is_none(self):
        d, agent = self.start()
        c = d.client()
        self.assertRefused("bad_request", c.attach, "work", resume="")
        self.assertRefused("bad_request", c.attach, "work", resume="", fork=True)
        self.assertEqual(c.request("plenum_list")["sessions"], [])
        self.assertEqual(agent.starts, 0)


class StateTest(Case):
    def test_each_state_follows_from_the_one_before(self):
        d, _ = self.start(mode={"user": True})
        a = d.client()
        state = a.attach("work")["state"]
        for how in ("at once", "idle", "asleep"):
            if how == "asleep":
                a.request("plenum_hibernate")
                a.event("session_state", state="asleep")
            a.send(user("one"), user("two"))
            for _ in range(2):
                a.event("turn_ended")
            a.event("session_state", state="idle")
        states = a.events("session_state")
        self.assertEqual(states[0]["previous"], state)
        for before, after in zip(states, states[1:]):
            self.assertEqual(after["previous"], before["state"], states)

    def test_a_turn_is_busy_however_quick(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.client()
        a.attach("work")
        child = agent.child()
        for uuid in ("u-1", "u-2"):
            a.send(user("hi", uuid=uuid))
            if uuid == "u-1":  # the answer to initialize and the whole turn in one write
                asked = child.request("initialize")
            child.wait(type="user", uuid=uuid)
            before = [ok(asked["request_id"], {})] if uuid == "u-1" else []
            child.print(*before, {"type": "system", "subtype": "init", "session_id": "c", "user_message_uuids": [uuid]},
                        dict(RESULT, user_message_uuids=[uuid]))
            a.event("session_state", state="busy")
            a.event("turn_started", uuids=[uuid])
            a.event("turn_ended", uuids=[uuid])
            a.event("session_state", state="idle")

    def test_a_prompt_makes_an_idle_session_busy(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.client()
        a.attach("work")
        a.event("session_state", state="idle")
        a.send(user("hi"))
        a.event("session_state", state="busy", previous="idle")
        self.assertEqual([m["state"] for m in a.events("session_state")], ["idle", "busy"])
        child = agent.child()
        child.reply(child.request("initialize"))
        child.wait(type="user")
        self.assertEqual(d.state_of("work"), "busy")


class AnswerTest(Case):
    def test_who_was_not_asked_is_told_so(self):
        d, agent = self.start()
        a, b, o = d.client(), d.client(), d.client()
        a.attach("work")
        b.attach("work", approve={"tools": ["Read"]})
        o.attach("work", role="observer")
        child = agent.child()
        child.print(perm("p-1"))
        rid = a.wait(type="control_request")["request_id"]
        for c in (b, o):
            c.send(allow(rid))
            c.error("unknown_request", request_id=rid, line=2)
        self.assertNone(child.answers("p-1"))
        a.send(allow(rid))
        child.answer("p-1")
        b.send(allow(rid))
        b.error("already_settled", request_id=rid, line=3)


class QueueTest(Case):
    def test_a_stop_takes_back_what_is_held(self):
        d, agent = self.start(mode={"control": ["interrupt"], "eof": 0.2}, profile={"prompts": "queue"})
        for stop in ("plenum_stop", "end_session"):
            with self.subTest(stop):
                a, b = d.client(), d.client()
                a.attach(stop)
                b.attach(stop, name="b")
                child = agent.child()
                a.send(user("one", uuid="u-1"))
                child.wait(type="user", uuid="u-1")
                b.send(user("two", uuid="u-2"))
                b.sync()
                for verb, want in (("plenum_queue", [("u-2", "held")]),
                                   ("plenum_status", [("u-1", "sent"), ("u-2", "held")])):
                    self.assertEqual([(p["uuid"], p["state"]) for p in a.request(verb)["prompts"]], want)
                starts = agent.starts
                a.request(stop)
                b.event("changed", what="prompt_cancelled", value="u-2")
                b.event("child_exited")
                b.event("session_state", state="asleep")
                self.assertEqual(agent.starts, starts)
                self.assertNone(child.seen(uuid="u-2"))


class ChoiceTest(Case):
    def test_a_name_that_cannot_be_is_not_default(self):
        d, _ = self.start()
        a = d.client()
        a.send(user("hi", session_id="work\0"))
        a.error("bad_request", line=1)
        self.assertEqual(d.sessions(), {})

    def test_no_other_session_than_the_one_that_was_asked_for(self):
        d, agent = self.start()
        a = d.client()
        a.send(request("1", "plenum_attach", session="work", cwd="/not/there"), user("rm -r *"),
               request("2", "interrupt"))
        self.assertEqual(a.answer("1")["response.code"], "spawn_failed")
        a.error("not_attached", line=2)
        self.assertEqual(a.answer("2")["response.code"], "not_attached")
        a.attach("work")
        a.send(user("fine"))
        agent.child().wait(type="user")
        d.call("plenum_stop", session="work", forget=True)
        a.event("session_removed")
        a.send(user("too late", uuid="u-\u00fc"))
        a.error("not_attached", uuid="u-\u00fc")
        b = d.client()
        b.attach("other")
        b.request("plenum_detach")
        b.send(user("nowhere"))
        b.error("not_attached")
        self.assertEqual(list(d.sessions()), ["other"])


class RefusalTest(Case):
    def test_a_short_wait_is_named(self):
        d, agent = self.start(profile={"permission_wait": "200ms"})
        d.client().attach("work", approve=False)
        child = agent.child()
        child.print(perm("p-1"))
        self.assertIn("within 0.2 s", child.answer("p-1")["response.response.message"])

    def test_a_refused_prompt_is_named(self):
        d, agent = self.start(limits={"stdin_queue": "64K"})
        a, o = d.client(), d.client()
        a.attach("work")
        o.attach("work", role="observer")
        o.send(user("x", uuid="u-o"))
        o.error("not_allowed", uuid="u-o", line=2)
        child = agent.child()
        child.pause()
        child.written()
        for n in range(20):
            a.send(user("x" * 20000, uuid="u-%d" % n))
        self.assertEqual(a.error("busy")["line"], int(a.seen(event="error")[0]["uuid"][2:]) + 2)
        child.resume()


class ConversationTest(Case):
    def test_another_conversation_is_told(self):
        d, agent = self.start()
        a = d.client()
        a.attach("work")
        child = agent.child()
        for conversation in ("c-1", "c-1", "c-2"):
            child.print({"type": "system", "subtype": "init", "session_id": conversation},
                        dict(RESULT, session_id=conversation))
            child.mark(a)
        told = a.events("changed")
        self.assertEqual([(m["what"], m["value"], m["by"]) for m in told], [("conversation_id", "c-2", None)])
        self.assertEqual(d.sessions()["work"]["conversation_id"], "c-2")

    def test_its_id_is_chosen_where_the_profile_says_how(self):
        d, agent = self.start(mode={"user": True}, profile={"session_id_args": "--with 'an id' --session-id={id}"})
        a = d.client()
        a.attach("work")
        *_, one, two, three = agent.child().argv
        self.assertEqual([one, two], ["--with", "an id"])
        chosen = three.partition("--session-id=")[2]
        self.assertEqual(str(uuid.UUID(chosen)), chosen)
        a.send(user("hi"))
        a.wait(type="result", session_id=chosen)
        a.request("plenum_hibernate")
        a.event("session_state", state="asleep")
        a.send(user("again"))
        self.assertEqual(agent.child().argv[1:], ["--resume=" + chosen])
        for args in (["--session-id", "mine"], ["--resume=yours"], ["-c"]):
            d.client().attach("-".join(args), args=args)
            self.assertEqual(agent.child().argv[1:], args)
        d.client().attach("resumed", resume="other")
        self.assertEqual(agent.child().argv[1:], ["--resume=other"])


class LagTest(Case):
    def test_lag_and_then_what_it_leads_to(self):
        d, agent = self.start(limits={"client_lag_soft": "64K", "client_lag_soft_time": "100ms"})
        a, gap, closed = d.client(), d.client(), d.client()
        a.attach("work")
        gap.number = gap.attach("work", on_lag="gap")["client"]
        closed.number = closed.attach("work", on_lag="close")["client"]
        child = agent.child()
        child.flood(b'{"type":"x","n":@N@,"p":"@P@"}', 500, pad=5000, rate=1000)
        a.event("lag")
        a.event("lag")
        closed.wait_eof()
        gap.event("gap")
        for c in (closed, gap):
            own = [m for m in c.events() if m["event"] == "gap" or matches(m["client"], {"client": c.number})]
            self.assertEqual([m["event"] for m in own[:2]], ["lag", "gap"])


class EscapeTest(Case):
    def test_a_request_of_the_child_does_not_hide(self):
        d, agent = self.start()
        a = d.client()
        a.attach("work")
        child = agent.child()
        rest = b'"request_id":"x","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}\n'
        for head in (b'{"\\u0074ype":"control_request",', b'{"a":1,"type":"control\\u005frequest",',
                     b'{"\\u0074\\u0079pe":"control_c\\u0061ncel_request",'):
            child.print(head + rest)
            self.assertEqual(a.event("stray_output")["text"].encode(), (head + rest).rstrip())
        other = b'{"\\u0074ype":"other","a":"\\u00e9"}'
        child.print(other + b"\n")
        child.mark(a)
        self.assertEqual(len([m for m in a.log if m.raw == other]), 1)
        self.assertNone(a.seen(request_id="x"))
