# SPDX-License-Identifier: MIT
"""What the daemon promises in every dialect, in two: Claude Code's, and a tiny one that only a test program has
(tests/dialect/tiny.c). Attach, replay, lag, roles, first answer wins, offers, stop, sleep, kill -9."""
import os
import signal
import tempfile

from harness import (RESULT, TIMEOUT, Agent, Case, Daemon, allow, build_file, cancel, deny, init_line, perm, request,
                     until, user)
from test_warm import REFRESHED


class Claude:
    """The lines of the first dialect."""

    name = "claude"
    mode = {}

    @staticmethod
    def prompt(text, uuid):
        return user(text, uuid=uuid)

    @staticmethod
    def is_prompt(uuid):
        return {"type": "user", "uuid": uuid}

    @staticmethod
    def began(*uuids, thread="t1"):
        return init_line(thread, user_message_uuids=list(uuids))

    @staticmethod
    def text(text, **more):
        return dict({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}, **more)

    @staticmethod
    def is_text(text):
        return {"type": "assistant", "message__content": lambda c: c and c[0]["text"] == text}

    @staticmethod
    def ended(*uuids, thread="t1"):
        return dict(RESULT, user_message_uuids=list(uuids), session_id=thread)

    @staticmethod
    def ask(rid, path="/one"):
        return perm(rid, path, tool="Write")

    @staticmethod
    def is_ask(path="/one"):
        return {"type": "control_request", "request__input__command": path}

    @staticmethod
    def id_of(ask):
        return ask["request_id"]

    @staticmethod
    def yes(rid, path="/one"):
        return allow(rid, path)

    @staticmethod
    def no(rid, why="no"):
        return deny(rid, why)

    @staticmethod
    def is_answer(rid, yes):
        return {"type": "control_response", "response__request_id": rid,
                "response__response__behavior": "allow" if yes else "deny"}

    @staticmethod
    def bad(rid):
        return {"type": "control_response", "response": {"subtype": "success", "request_id": rid, "response": {"no": 1}}}

    @staticmethod
    def is_withdrawal(rid):
        return {"type": "control_cancel_request", "request_id": rid}

    withdraw = staticmethod(cancel)

    interrupt = {"type": "control_request", "request_id": "i", "request": {"subtype": "interrupt"}}
    is_interrupt = {"type": "control_request", "request__subtype": "interrupt"}
    text_type = "assistant"
    id_key = "uuid"


class Tiny:
    """Those of the second one."""

    name = "tiny"
    mode = {"init": "manual"}

    @staticmethod
    def prompt(text, uuid):
        return {"do": text, "as": uuid}

    @staticmethod
    def is_prompt(uuid):
        return {"as": uuid}

    @staticmethod
    def began(*uuids, thread="t1"):
        return {"began": list(uuids), "thread": thread}

    @staticmethod
    def text(text, **more):
        return dict({"text": text}, **more)

    @staticmethod
    def is_text(text):
        return {"text": text}

    @staticmethod
    def ended(*uuids, thread="t1"):
        return {"ended": list(uuids), "failed": False, "thread": thread}

    @staticmethod
    def ask(rid, path="/one"):
        return {"ask": rid, "of": {"tool": "Write", "with": {"path": path}}}

    @staticmethod
    def is_ask(path="/one"):
        return {"of__tool": "Write", "of__with__path": path}

    @staticmethod
    def id_of(ask):
        return ask["ask"]

    @staticmethod
    def yes(rid, path="/one"):
        return {"answer": rid, "yes": True}

    @staticmethod
    def no(rid, why="no"):
        return {"answer": rid, "yes": False, "why": why}

    @staticmethod
    def is_answer(rid, yes):
        return {"answer": rid, "yes": yes}

    @staticmethod
    def bad(rid):
        return {"answer": rid, "yes": "maybe"}

    @staticmethod
    def is_withdrawal(rid):
        return {"never": rid}

    @staticmethod
    def withdraw(rid):
        return {"never": rid}

    interrupt = {"halt": True}
    is_interrupt = {"halt": True}
    text_type = "text"
    id_key = "as"


class Neutral:
    """The tests of one dialect, `say`."""

    say = None

    def start_in(self, keys=None, env=None, **sections):
        """A daemon with both dialects and one profile, in this one."""
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        agent = Agent(os.path.join(root, "agent"), **self.say.mode)
        self.agents.append(agent)
        profile = dict({"command": agent.command, "dialect": self.say.name}, **(keys or {}))
        d = Daemon(dict({"daemon": {"memory_pressure": "no", "default_profile": "agent"}, "profile agent": profile},
                        **sections), root=root, env=env, start=False)
        d.program = build_file("plenumd-tiny")
        self.track(d).start()
        return d, agent

    def begun(self, *uuids, **options):
        """A session in the middle of a turn: daemon, agent, client, child."""
        d, agent = self.start_in(**options)
        a = d.attached()
        child = agent.child()
        for uuid in uuids or ("p1",):
            a.send(self.say.prompt("hi", uuid))
            child.wait(**self.say.is_prompt(uuid))
        child.print(self.say.began(*(uuids or ("p1",))), self.say.text("one"))
        a.wait(**self.say.is_text("one"))
        return d, agent, a, child

    def ask_of(self, client, path="/one"):
        return self.say.id_of(client.wait(**self.say.is_ask(path)))

    # prompts and turns

    def test_a_turn(self):
        d, _, a, child = self.begun()
        a.event("turn_started", uuids=["p1"])
        self.assertEqual(d.state_of("s"), "busy")
        child.print(self.say.ended("p1"))
        a.event("turn_ended", uuids=["p1"], is_error=False)
        d.wait_state("s", "idle")

    def test_bytes_are_unchanged(self):
        d, agent = self.start_in()
        a = d.attached()
        child = agent.child()
        line = self.say.prompt("ä \ud83d\ude00", "p1")
        a.send(line)
        self.assertEqual(child.wait(**self.say.is_prompt("p1")).raw, a.sent[-1].rstrip(b"\n"))
        raw = b'{ "text" :"x", "n":1e400,  "type":"assistant","message":{"content":[{"type":"text","text":"x"}]}}'
        child.print(raw + b"\n")
        self.assertEqual(a.wait(n=float("inf")).raw, raw)

    def test_a_prompt_runs_once(self):
        _, _, a, child = self.begun()
        a.send(self.say.prompt("hi", "p1"))
        a.error("duplicate_request", uuid="p1")
        self.assertEqual(len(child.seen(**self.say.is_prompt("p1"))), 1)

    def test_a_prompt_without_an_id_gets_one(self):
        d, agent = self.start_in()
        a = d.attached()
        child = agent.child()
        bare = self.say.prompt("hi", None)
        for key in ("uuid", "as"):
            bare.pop(key, None)
        a.send(bare)
        fresh = child.wait(lambda m: m["uuid"] or m["as"])
        uuid = fresh["uuid"] or fresh["as"]
        child.print(self.say.began(uuid), self.say.ended(uuid))
        a.event("turn_ended", uuids=[uuid])

    def test_prompts_wait_for_the_turn_of_another(self):
        d, _, a, child = self.begun(keys={"prompts": "queue"})
        b = d.attached()
        b.send(self.say.prompt("later", "p2"))
        a.event("changed", what="prompt_held", value="p2")
        self.assertEqual(child.seen(**self.say.is_prompt("p2")), [])
        child.print(self.say.ended("p1"))
        child.wait(**self.say.is_prompt("p2"))

    def test_an_interrupt(self):
        _, _, a, child = self.begun()
        a.send(self.say.interrupt)
        child.wait(**self.say.is_interrupt)

    def test_a_line_that_the_child_cannot_take(self):
        _, _, a, child = self.begun()
        a.send(b"{\"do\": no}")
        self.refusal(a)
        a.sync()
        self.assertEqual(len(child.seen(lambda m: m.obj is None)), 0)

    def test_a_line_of_another_dialect(self):
        d, _, a, child = self.begun()
        other = Tiny if self.say is Claude else Claude
        a.send(other.prompt("hi", "p9"))
        text = self.refusal(a)["error"]
        self.assertIn("of the dialect %s" % other.name, text)
        self.assertIn("session s speaks %s" % self.say.name, text)
        a.sync()
        child.caught_up()
        self.assertEqual(child.seen(**other.is_prompt("p9")), [])

    # attachments

    def test_replay(self):
        d, _, a, child = self.begun()
        for n in range(8):
            child.print(self.say.text("t%d" % n, **{self.say.id_key: "u%d" % n}))
        a.wait(**self.say.is_text("t7"))

        def replayed(replay):
            c = d.attached(replay=replay)
            child.mark(c)
            return [n for n in range(8) if c.seen(**self.say.is_text("t%d" % n))]

        self.assertEqual(replayed({"last": 3}), [5, 6, 7])  # first: each barrier is one more line
        self.assertEqual(replayed("none"), [])
        self.assertEqual(replayed("all"), list(range(8)))
        self.assertEqual(replayed({"after_uuid": "u5"}), [6, 7])

    def test_types(self):
        d, _, _, child = self.begun()
        b = d.attached(types=[self.say.text_type, "test_mark"])
        child.print(self.say.text("two"), self.say.ended("p1"), self.say.text("three"))
        b.wait(**self.say.is_text("two"))
        b.wait(**self.say.is_text("three"))
        self.assertEqual(b.seen(**self.say.ended("p1")), [])

    def test_a_slow_client_is_told_of_its_gap(self):
        d, _, a, child = self.begun(limits={"tape_bytes": "256K", "tape_lines": "100"})
        slow = d.attached()
        child.flood(self.say.text("@N@@P@"), 400, pad=20000)
        child.written(30)
        child.print(self.say.text("last"))
        a.wait(**self.say.is_text("last"))
        gap = slow.event("gap")
        self.assertGreater(gap["to"], gap["from"])
        slow.wait(**self.say.is_text("last"))

    def test_an_observer_only_reads(self):
        d, _, _, child = self.begun()
        o = d.attached(role="observer")
        o.send(self.say.prompt("hi", "p2"))
        self.refusal(o, codes=("not_allowed",))
        child.print(self.say.ask("q1"), self.say.text("two"))
        o.wait(**self.say.is_text("two"))
        self.assertEqual(o.seen(**self.say.is_ask()), [])
        self.assertEqual(child.seen(**self.say.is_prompt("p2")), [])

    def test_a_client_without_a_session(self):
        d, _, a, _ = self.begun()
        c = d.client()
        c.attach("s")
        c.request("plenum_detach")
        c.send(Claude.prompt("hi", "p2"))
        self.refusal(c, codes=("not_attached",))

    # asks

    def test_the_first_answer_wins(self):
        d, _, a, child = self.begun()
        b = d.attached()
        child.print(self.say.ask("q1"))
        rid = self.ask_of(a)
        self.assertEqual(self.ask_of(b), rid)
        self.assertEqual(d.wait_state("s", "asking"), "asking")
        b.send(self.say.yes(rid))
        child.wait(**self.say.is_answer("q1", True))
        a.wait(**self.say.is_withdrawal(rid))
        settled = a.event("settled", request_id=rid)
        self.assertEqual((settled["decision"], settled["tool_name"]), ("allow", "Write"))
        a.send(self.say.no(rid))
        a.error("already_settled", request_id=rid)
        child.mark(a)
        self.assertEqual(child.seen(**self.say.is_answer("q1", False)), [])

    def test_a_refusal(self):
        _, _, a, child = self.begun()
        child.print(self.say.ask("q1"))
        a.send(self.say.no(self.ask_of(a), "not that"))
        child.wait(**self.say.is_answer("q1", False))
        self.assertEqual(a.event("settled")["decision"], "deny")

    def test_a_bad_answer_leaves_it_open(self):
        _, _, a, child = self.begun()
        child.print(self.say.ask("q1"))
        rid = self.ask_of(a)
        a.send(self.say.bad(rid))
        a.error("bad_answer", request_id=rid)
        a.send(self.say.yes(rid))
        child.wait(**self.say.is_answer("q1", True))

    def test_an_ask_outlives_its_clients(self):
        d, _, a, child = self.begun()
        child.print(self.say.ask("q1"))
        rid = self.ask_of(a)
        a.close()
        pending = until(lambda: [p for p in d.call("plenum_pending")["pending"] if not p["asked"]], what="the end of a")
        self.assertEqual([(p["request_id"], p["tool_name"]) for p in pending], [(rid, "Write")])
        b = d.attached()
        self.assertEqual(self.ask_of(b), rid)
        b.send(self.say.yes(rid))
        child.wait(**self.say.is_answer("q1", True))

    def test_the_child_withdraws(self):
        _, _, a, child = self.begun()
        child.print(self.say.ask("q1"))
        rid = self.ask_of(a)
        child.print(self.say.withdraw("q1"))
        a.wait(**self.say.is_withdrawal(rid))
        self.assertEqual(a.event("settled")["decision"], "cancelled")

    def test_rules(self):
        d, _, a, child = self.begun(keys={"deny_tools": "Write"})
        child.print(self.say.ask("q1"))
        child.wait(**self.say.is_answer("q1", False))
        self.assertEqual(a.event("settled")["decision"], "deny")
        self.assertEqual(d.call("plenum_pending")["pending"], [])

    def test_no_client_in_time(self):
        _, _, a, child = self.begun(keys={"permission_wait": "200ms"})
        a.close()
        child.print(self.say.ask("q1"))
        child.wait(**self.say.is_answer("q1", False))

    def test_an_ask_that_is_too_long(self):
        _, _, a, child = self.begun(limits={"child_line": "1M"})
        child.print(self.say.ask("q1", "/" + "x" * 2000000))
        a.error("too_long")
        child.wait(**self.say.is_answer("q1", False))

    # its life

    def test_stop(self):
        d, _, a, child = self.begun()
        child.print(self.say.ended("p1"))
        d.wait_state("s", "idle")
        d.call("plenum_stop", session="s")
        child.wait_gone()
        self.assertEqual(a.event("child_exited")["wanted"], True)
        d.wait_state("s", "asleep")

    def test_stop_in_a_turn(self):
        d, _, a, child = self.begun()
        b = d.client()
        rid = b.ask("plenum_stop", session="s")
        child.wait(**self.say.is_interrupt)
        child.print(self.say.ended("p1"))
        b.answer(rid)
        child.wait_gone()
        a.event("child_exited", wanted=True)

    def test_sleep_and_wake(self):
        d, agent, a, child = self.begun()
        child.print(self.say.ended("p1"))
        d.wait_state("s", "idle")
        d.call("plenum_hibernate", session="s")
        d.wait_state("s", "asleep")
        a.send(self.say.prompt("again", "p2"))
        second = agent.child()
        self.assertIn("--resume=t1", second.argv)
        second.wait(**self.say.is_prompt("p2"))
        second.print(self.say.began("p2"), self.say.ended("p2"))
        a.event("turn_ended", uuids=["p2"])

    def test_the_child_crashes(self):
        d, agent, a, child = self.begun()
        child.print(self.say.ask("q1"))
        rid = self.ask_of(a)
        child.kill()
        a.wait(**self.say.is_withdrawal(rid))
        self.assertEqual(a.event("child_exited")["signal"], signal.SIGKILL)
        a.error("child_exited", uuid="p1")
        a.send(self.say.prompt("again", "p2"))
        agent.child().wait(**self.say.is_prompt("p2"))

    def test_kill_9_of_the_daemon(self):
        d, agent, a, child = self.begun()
        child.print(self.say.ended("p1"))
        d.wait_state("s", "idle")
        until(lambda: any(o.get("conversation") == "t1" or "t1" in str(o) for o in d.table()), what="the table")
        d.kill9()
        child.wait_gone()
        d.start()
        self.assertEqual(d.sessions()["s"]["conversation_id"], "t1")
        b = d.attached()
        b.send(self.say.prompt("again", "p2"))
        second = agent.child()
        self.assertIn("--resume=t1", second.argv)
        second.wait(**self.say.is_prompt("p2"))

    def test_an_upgrade_keeps_the_turn_and_the_ask(self):
        d, _, a, child = self.begun()
        child.print(self.say.ask("q1"))
        rid = self.ask_of(a)
        d.call("plenum_upgrade")
        a.sync()
        a.send(self.say.yes(rid))
        child.wait(**self.say.is_answer("q1", True))
        child.print(self.say.ended("p1"))
        a.event("turn_ended", uuids=["p1"])


class ClaudeTest(Neutral, Case):
    say = Claude


class TinyTest(Neutral, Case):
    say = Tiny

    def test_an_ask_without_a_tool(self):
        d, _, a, child = self.begun(keys={"permission_wait": "never"})
        child.print({"ask": "q1", "of": {}})
        rid = a.wait(lambda m: m["ask"] is not None)["ask"]
        self.assertEqual([(p["tool_name"], p["subtype"]) for p in d.call("plenum_pending")["pending"]], [(None, "ask")])
        a.send(Tiny.yes(rid))
        child.wait(**Tiny.is_answer("q1", True))

    def test_it_needs_no_initialize(self):
        _, _, _, child = self.begun()
        self.assertEqual([m.raw for m in child.seen(type="control_request")], [])

    def test_the_first_valid_answer_wins(self):
        """Which answers are valid is in the request. An invalid one is refused to its sender, and does not use it up."""
        d, _, a, child = self.begun()
        b = d.attached()
        child.print({"ask": "q1", "of": {"tool": "Write", "with": {}, "choices": ["once", "never"]}})
        rid = a.wait(lambda m: m["ask"] is not None)["ask"]
        b.wait(ask=rid)
        a.send({"answer": rid, "pick": "always"}, {"answer": rid, "yes": True})
        a.error("bad_answer", request_id=rid)
        a.error("bad_answer", request_id=rid)
        b.send({"answer": rid, "pick": "once"})
        child.wait(answer="q1", pick="once")
        self.assertEqual(a.event("settled")["decision"], "allow")
        self.assertEqual(len(child.seen(answer="q1")), 1)

    def test_the_daemons_own_answer_is_one_of_the_choices(self):
        _, _, a, child = self.begun(keys={"deny_tools": "Write", "allow_tools": "Read"})
        child.print({"ask": "q1", "of": {"tool": "Write", "with": {}, "choices": ["once", "never"]}},
                    {"ask": "q2", "of": {"tool": "Read", "with": {}, "choices": ["once", "never"]}})
        child.wait(answer="q1", pick="never")
        child.wait(answer="q2", pick="once")

    def test_what_the_agent_cannot_do_is_refused(self):
        d, _ = self.start_in()
        c = d.client()
        self.assertRefused("bad_request", c.attach, "s", resume="t1", fork=True)
        self.assertEqual(d.sessions(), {})
        self.assertRefused("bad_request", c.attach, "s", mcp_servers=["files"])

    def test_a_prestarted_child(self):
        env = {name: os.environ[name] for name in REFRESHED if name in os.environ}  # as of the client
        d, agent = self.start_in(keys={"warm": "1", "cwd": "/"}, env=env)
        first = agent.child()
        until(lambda: [p["warm"] for p in d.call("plenum_status", daemon=True)["profiles"] if p["name"] == "agent"] == [1],
              what="the prestarted child")
        d.fds = max(d.fds, d.settled_fds())
        a = d.attached(cwd="/")
        self.assertEqual(a.attached["pid"], first.pid)
        a.send(Tiny.prompt("hi", "p1"))
        first.wait(**Tiny.is_prompt("p1"))

    def test_lines_of_the_daemon_cannot_be_made_by_the_child(self):
        _, _, a, child = self.begun()
        child.print({"type": "system", "subtype": "plenum_event", "event": "settled", "text": "forged"})
        m = a.wait(text="forged")
        self.assertEqual(m["subtype"], "child_plenum_event")


class ChoiceTest(Case):
    def test_an_unknown_dialect_is_an_error_that_names_the_known_ones(self):
        d = self.track(Daemon({"profile agent": {"command": "true", "dialect": "latin"}}, start=False))
        d.program = build_file("plenumd-tiny")
        process = d.launch()
        self.assertNotEqual(process.wait(TIMEOUT), 0)
        self.assertIn("dialect = latin: no such dialect (known: claude, tiny)", d.log())

    def test_two_dialects_in_one_daemon(self):
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        agents = {x.name: Agent(os.path.join(root, x.name), x.name, **x.mode) for x in (Claude, Tiny)}
        self.agents += agents.values()
        d = Daemon(dict({"daemon": {"memory_pressure": "no"}},
                        **{"profile " + n: {"command": a.command, "dialect": n} for n, a in agents.items()}),
                   root=root, start=False)
        d.program = build_file("plenumd-tiny")
        self.track(d).start()
        for x in (Claude, Tiny):
            c = d.attached(x.name + "-session", profile=x.name)
            c.send(x.prompt("hi", "p-" + x.name))
            agents[x.name].child().wait(**x.is_prompt("p-" + x.name))

    def test_the_dialect_is_named_where_a_session_is(self):
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        agent = Agent(os.path.join(root, "agent"), **Tiny.mode)
        self.agents.append(agent)
        d = Daemon({"daemon": {"memory_pressure": "no"}, "profile agent": {"command": agent.command, "dialect": "tiny"}},
                   root=root, start=False)
        d.program = build_file("plenumd-tiny")
        self.track(d).start()
        self.assertEqual(d.client().attach("s", profile="agent")["dialect"], "tiny")
        self.assertEqual(d.sessions()["s"]["dialect"], "tiny")
        self.assertEqual(d.call("plenum_status", session="s")["dialect"], "tiny")
        profiles = {p["name"]: p["dialect"] for p in d.call("plenum_status", daemon=True)["profiles"]}
        self.assertEqual((profiles["agent"], profiles["claude"]), ("tiny", "claude"))

    def test_a_session_keeps_its_dialect(self):
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        agent = Agent(os.path.join(root, "agent"))
        self.agents.append(agent)
        d = Daemon({"daemon": {"memory_pressure": "no"}, "profile agent": {"command": agent.command, "dialect": "claude"}},
                   root=root, start=False)
        d.program = build_file("plenumd-tiny")
        self.track(d).start()
        a = d.attached("s", profile="agent")
        a.initialize()
        b = d.attached("t", profile="agent")
        b.initialize()
        b.close()
        for name in ("s", "t"):
            d.call("plenum_hibernate", session=name)
            d.wait_state(name, "asleep")
        with open(d.conf) as f:
            conf = f.read().replace("dialect = claude", "dialect = tiny")
        with open(d.conf, "w") as f:
            f.write(conf)
        d.call("plenum_reload")
        agent.child(), agent.child()
        for c, conversation in ((a, "conv-1"), (d.attached("t"), "conv-2")):
            c.send(user("hi", uuid="u1"))
            child = agent.child()
            child.wait(type="user")
            child.print(init_line(conversation, user_message_uuids=["u1"]),
                        dict(RESULT, user_message_uuids=["u1"]))
            c.event("turn_ended", uuids=["u1"])

    def test_a_line_that_chooses_a_session_of_another_dialect(self):
        """It was checked as a line of the default one."""
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        agent = Agent(os.path.join(root, "agent"), **Tiny.mode)
        self.agents.append(agent)
        d = Daemon({"daemon": {"memory_pressure": "no", "default_profile": "agent"},
                    "profile agent": {"command": agent.command, "dialect": "tiny"}}, root=root, start=False)
        d.program = build_file("plenumd-tiny")
        self.track(d).start()
        d.attached("s", profile="agent")
        child = agent.child()
        c, e = d.client(), d.client()
        c.send(user("hi", session_id="s"))
        self.assertIn("of the dialect claude, and session s speaks tiny", self.refusal(c)["error"])
        e.send(request("i", "interrupt"))
        self.assertIn("session default speaks tiny", self.refusal(e, rid="i")["error"])
        child.caught_up()
        self.assertEqual([m.raw for m in child.log], [])
