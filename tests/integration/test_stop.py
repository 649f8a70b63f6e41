# SPDX-License-Identifier: MIT
"""The end of a session and its child: sleep, stop, forget, orphans, shutdown (contract 8; cases C28 C56 C57 C74)."""
import os
import re
import signal
import sys
import time
import unittest

from harness import (QUICK, RESULT, SLEEPER, TIMEOUT, Case, Timeout, agents_of, alive, allow, children_of, deny, dump, hook,
                     init_line, ok, perm, request, until, user)
from standstill import connected, standstill
from test_hooks import POST, PRE


class SleepTest(Case):
    def idle(self, **options):
        options.setdefault("mode", {"session_id": "conv-1"})
        d, agent, child, a = self.open(**options)
        a.initialize()
        child.print(init_line(), RESULT)
        a.wait(type="result")
        return d, agent, a, child

    def test_hibernate_and_wake(self):
        d, agent, a, child = self.idle()
        a.request("plenum_hibernate")
        m = a.event("child_exited")
        self.assertIs(m["wanted"], True)
        a.event("session_state", state="asleep")
        child.wait_gone()
        self.assertEqual(child.had("signal"), [])
        entry = d.sessions()["s"]
        self.assertEqual((entry["state"], entry["pid"], entry["conversation_id"]), ("asleep", None, "conv-1"))
        a.send(user("wake", uuid="u"))
        agent.child().wait(type="user", uuid="u")

    def test_not_in_mid_turn(self):
        d, agent, a, child = self.idle()
        child.prompted(a, "x", uuid="u")
        self.assertRefused("busy", a.request, "plenum_hibernate")
        child.print(perm("k-1"), dict(RESULT, user_message_uuids=["u"]))
        a.wait(type="result")
        self.assertRefused("busy", a.request, "plenum_hibernate")
        child.mark(a)

    def test_a_start_that_is_put_off(self):
        """It is dropped; with a prompt that waits for it, it is not."""
        d, agent, a, child = self.idle()
        for n in range(4):  # the wait between two starts doubles: two seconds at the end
            child.exit(1)
            a.event("child_exited")
            if n < 3:
                d.client().attach("s", wake=True)
                child = agent.child()
        starts = agent.starts
        b = d.client()  # all at once: two seconds are short on a busy machine
        b.send(request("1", "plenum_attach", session="s", wake=True), request("2", "plenum_status"),
               request("3", "plenum_hibernate"))
        entry = b.answer("2")["response.response"]
        self.assertEqual((entry["state"], entry["pid"]), ("starting", None))
        self.assertEqual(b.answer("3")["response.subtype"], "success")
        self.assertEqual(d.state_of("s"), "asleep")
        a.send(user("x", uuid="u"))
        self.assertRefused("busy", a.request, "plenum_hibernate")
        agent.child().wait(type="user", uuid="u")
        self.assertEqual(agent.starts, starts + 1)

    def test_not_while_something_runs_in_the_background(self):
        """The child's end would end it without a report."""
        d, agent, a, child = self.idle()
        task = {"task_id": "t", "task_type": "local_bash", "description": "make"}
        for tasks in ([task], []):
            child.print({"type": "system", "subtype": "background_tasks_changed", "tasks": tasks})
            a.wait(subtype="background_tasks_changed")
            if tasks:
                self.assertRefused("busy", a.request, "plenum_hibernate")
        a.request("plenum_hibernate")
        a.event("session_state", state="asleep")

    def at_work(self):
        """A session that is to sleep soon, but not yet: it works at a prompt from its creation on."""
        d, agent = self.start(mode={"session_id": "conv-1"}, profile={"idle_sleep": "300ms"})
        a = d.client()
        a.send(user("x", uuid="u0", session_id="s"))
        child = agent.child()
        child.wait(type="user", uuid="u0")
        child.print(init_line())
        a.wait(subtype="init")
        return d, agent, a, child

    def test_idle_sleep(self):
        d, agent, a, child = self.at_work()
        child.print(dict(RESULT, user_message_uuids=["u0"]))
        a.event("child_exited", wanted=True)
        self.assertEqual(d.state_of("s"), "asleep")
        a.send(user("wake", uuid="u"))
        agent.child().wait(type="user", uuid="u")

    def test_no_sleep_while_something_goes_on(self):
        d, agent, a, child = self.at_work()
        self.assertRefused("timeout", a.request, "mcp_status", plenum_timeout_ms=700)
        child.print(perm("k-1"), dict(RESULT, user_message_uuids=["u0"]))
        rid = a.wait(type="control_request")["request_id"]
        self.assertRefused("timeout", a.request, "mcp_status", plenum_timeout_ms=700)
        self.assertNone(a.events("child_exited"))
        a.send(allow(rid))
        a.event("child_exited", wanted=True)

    def test_never(self):
        d, agent, a, child = self.idle(profile={"idle_sleep": "never"})
        self.assertRefused("timeout", a.request, "mcp_status", plenum_timeout_ms=300)
        child.mark(a)

    def test_max_children(self):
        d, agent = self.start(daemon={"max_children": "2"}, mode={"user": True})
        clients = {}
        for name in ("one", "two"):
            clients[name] = d.attached(name)
            clients[name].send(user("x"))
            clients[name].wait(type="result")
        clients["one"].send(user("y"))
        clients["one"].wait(type="result", result="turn 2")
        clients["three"] = d.attached("three")
        d.wait_state("two", "asleep")
        clients["three"].send(user("x"))
        clients["three"].wait(type="result")
        self.assertIn(d.state_of("one"), ("idle",))
        self.assertLessEqual(len(agents_of(d.pid)), 2)

    def test_max_children_when_all_were_busy(self):
        """More than that are started then, and idle ones stop later."""
        d, agent = self.start(daemon={"max_children": "2"})
        names = ("one", "two", "three", "four")
        clients, children = [], {}
        for name in names:  # each of them works before the next one comes
            clients.append(d.client())
            clients[-1].send(user("x", session_id=name))
            d.wait_state(name, "busy")
            children[name] = agent.child()
        for name in names:
            child = children[name]
            uuid = child.wait(type="user")["uuid"]
            child.print({"type": "system", "subtype": "init", "session_id": "c-" + name},
                        dict(RESULT, session_id="c-" + name, user_message_uuids=[uuid]))
            clients[names.index(name)].event("turn_ended")
        for name in ("one", "two"):
            d.wait_state(name, "asleep")
        for name in ("three", "four"):
            self.assertEqual(d.state_of(name), "idle")

    def test_idle_sleep_after_the_background_work(self):
        d, agent = self.start(profile={"idle_sleep": "300ms"})
        a = d.client()
        a.send(user("x", uuid="u", session_id="s"))  # so that it does not sleep before it reports work
        child = agent.child()
        child.wait(type="user", uuid="u")
        child.print({"type": "system", "subtype": "background_tasks_changed", "tasks": [{"id": "t"}]},
                    dict(RESULT, user_message_uuids=["u"]))
        a.wait(type="result")
        d.client().send(user("y", uuid="v", session_id="other"))  # one without such work, idle later than the first
        other = agent.child()
        other.wait(type="user", uuid="v")
        other.print(dict(RESULT, user_message_uuids=["v"]))
        d.wait_state("other", "asleep")
        self.assertEqual(d.state_of("s"), "idle")
        child.print({"type": "system", "subtype": "background_tasks_changed", "tasks": []})
        d.wait_state("s", "asleep")

    def test_waking_puts_another_session_to_sleep(self):
        d, agent = self.start(mode={"user": True}, daemon={"max_children": "1"})
        a = d.attached("one")
        agent.child().mark(a)
        b = d.attached("two")
        agent.child().mark(b)
        d.wait_state("one", "asleep")
        a.send(user("x"))
        a.wait(type="result")
        d.wait_state("two", "asleep")


class StopTest(Case):
    def ladder(self, busy=False, answer=True, grace="30s", **mode):
        d, agent = self.start(mode=dict(mode, control=["interrupt"] if answer else []), profile={"stop_grace": grace})
        a = d.attached()
        child = agent.child()
        child.mark(a)
        if busy:
            child.prompted(a, "x", uuid="u")
        begun = time.monotonic()
        a.request("plenum_stop", how="graceful")
        gone = a.event("child_exited")
        self.assertIs(gone["wanted"], True)
        took = time.monotonic() - begun
        until(lambda: not alive(child.pid))
        child.wait_gone()  # all its reports are here
        return d, agent, a, child, gone, took

    @staticmethod
    def steps(d):
        """By the log: a child on a busy machine may be killed before it has reported the previous step."""
        return re.findall(r"session s: stop, ([A-Za-z ]+) after ", d.log())

    def test_the_end_of_input_is_enough(self):
        d, agent, a, child, gone, took = self.ladder(eof=0.1)
        self.assertEqual((gone["status"], gone["signal"]), (0, None))
        self.assertEqual(child.had("signal"), [])
        self.assertNone(child.seen(request__subtype="interrupt"))

    def test_interrupt_first_when_busy(self):
        d, agent, a, child, gone, took = self.ladder(busy=True)
        self.assertEqual(len(child.seen(request__subtype="interrupt")), 1)
        self.assertLessEqual(child.seen(request__subtype="interrupt")[0].t, child.had("eof")[0]["t"])
        self.assertEqual(child.had("signal"), [])

    def test_term(self):
        d, agent, a, child, gone, took = self.ladder(eof="ignore", grace="2s")
        self.assertEqual((gone["status"], gone["signal"]), (143, None))
        self.assertEqual(self.steps(d), ["closing stdin", "SIGTERM"])
        self.assertGreater(took, 1.9, "it had no grace")

    def test_kill(self):
        d, agent, a, child, gone, took = self.ladder(busy=True, answer=False, eof="ignore", term="ignore", grace="1500ms")
        self.assertEqual((gone["status"], gone["signal"]), (137, 9))
        self.assertEqual(self.steps(d), ["interrupting the turn", "closing stdin", "SIGTERM", "SIGKILL"])
        self.assertGreater(took, 3 * 1.4)

    def test_how_kill(self):
        _, _, child, a = self.open(mode={"eof": "ignore", "term": "ignore"})
        a.request("plenum_stop", how="kill")
        self.assertEqual(a.event("child_exited")["signal"], 9)
        self.assertEqual(child.had("signal"), [])

    def test_a_stopped_process_is_stopped_too(self):
        _, _, child, a = self.open(profile=QUICK)
        os.kill(child.pid, signal.SIGSTOP)
        a.request("plenum_stop", how="graceful")
        a.event("child_exited", wanted=True)

    def test_forget(self):
        d, agent = self.start()
        a = d.attached()
        agent.child()
        d.call("plenum_stop", session="s", how="kill", forget=True)
        until(lambda: d.sessions() == {})
        a.event("session_removed")
        b = d.client()
        self.assertIs(b.attach("s")["created"], True)

    def test_started_again_under_the_same_name(self):
        """Only after the end of the old process."""
        _, agent, child, a = self.open(mode={"eof": 0.3, "session_id": "conv-1"})
        child.print(init_line(), RESULT)
        a.wait(type="result")
        a.ask("plenum_stop", how="graceful")
        a.send(user("next", uuid="u"))
        second = agent.child()
        self.assertGreater(second.start["t"], child.event("exiting")["t"])
        second.wait(type="user", uuid="u")

    def test_two_stops(self):
        d, agent = self.start(mode={"eof": 0.2})
        a, b = d.attached(), d.attached()
        agent.child()
        x, y = a.ask("plenum_stop"), b.ask("plenum_stop")
        a.answer(x)
        b.answer(y)
        for c in (a, b):
            c.event("child_exited")
            c.sync()
            self.assertEqual(len(c.events("child_exited")), 1)


    def half_closed(self, said=False, **options):
        d, agent = self.start(**options)
        a = d.attached(ephemeral=True)
        child = agent.child()
        if said:
            a.send(user("one"))
            a.wait(type="result")
        a.half_close()
        child.event("eof")
        return d, a, child

    def test_the_end_of_its_owners_input_is_no_stop(self):
        """As without a daemon, a child may take longer for its end than a step of a stop."""
        for upgrade in (False, True):
            d, a, child = self.half_closed(mode={"eof": 0.7}, profile={"stop_grace": "100ms"})
            if upgrade:
                d.call("plenum_upgrade")
            self.assertEqual(a.event("child_exited")["status"], 0)
            self.assertEqual(child.had("signal"), [])
            until(lambda: not d.sessions(), what="the session to be gone")

    def test_who_wants_its_conversation_does_not_wait_for_ever(self):
        for how in ("shim", "person", "prompt"):
            d, a, child = self.half_closed(mode={"eof": "ignore", "user": True, "session_id": "conv-1"},
                                           profile={"stop_grace": "200ms"}, said=True)
            self.assertEqual(child.had("signal"), [])
            b = d.client()
            if how == "shim":
                self.assertRefused("conversation_in_use", b.attach, ephemeral=True, resume="conv-1")
                until(lambda: not d.sessions(), what="the session to be gone")
            elif how == "person":
                self.assertTrue(b.attach(resume="conv-1")["created"])
            else:
                b.send(dict(user("two"), session_id="conv-1"))
                b.wait(type="result")
            until(lambda: "stop, SIGTERM after" in d.log(), what="the next step")  # the child may not report it

    def test_whose_owner_waits_no_longer(self):
        """Or a stop is requested: the other steps follow."""
        for how in ("leave", "stop", "shutdown"):
            d, a, child = self.half_closed(mode={"eof": "ignore"}, profile={"stop_grace": "200ms"})
            self.assertEqual(child.had("signal"), [])
            if how == "leave":
                a.close()
            elif how == "stop":
                d.call("plenum_stop", session="s")
            else:
                d.stop()
                d.process = None
            until(lambda: "stop, SIGTERM after" in d.log(), what="the next step")  # the child may not report it
            child.wait_gone()

    def test_stop_wins_over_a_restart_for_hooks(self):
        d, agent, child, a, b = self.open(2, mode={"init": "197", "user": True, "session_id": "conv-1", "eof": "ignore"})
        self.assertEqual(a.initialize(PRE)["response.subtype"], "success")
        a.send(user("x"))
        a.wait(type="result")
        self.assertEqual(b.initialize(POST)["response.subtype"], "success")
        child.event("eof")
        a.ask("plenum_stop")
        a.sync()
        child.exit(0)
        child.wait_gone()
        a.event("child_exited")
        d.wait_state("s", "asleep")
        d.call("plenum_hello")
        self.assertEqual(agent.starts, 1)

    def test_stop_refuses_prompts_that_wait_for_a_start(self):
        d, agent = self.start(mode={"session_id": "conv-1", "control": ["interrupt"]})
        a = d.attached()
        for _ in range(4):
            agent.child().exit(1, now=True)
            a.event("child_exited", status=1)
            a.send(user("x", uuid=os.urandom(4).hex()))
        a.send(user("last", uuid="u"))
        a.sync()
        a.request("plenum_stop")
        a.error("child_exited", uuid="u")
        d.wait_state("s", "asleep", "failed")

    def test_graceful_stop_is_announced_and_answers_are_routed(self):
        """C57: all clients are notified at the start and at the end; hooks and prompts on the way reach their
        owners."""
        d, agent = self.start(profile={"stop_grace": "10s"})
        a, b = d.attached(name="a"), d.attached()
        child = agent.child()
        a.initialize({"PreToolUse": [{"hookCallbackIds": ["h"]}]})
        table = until(lambda: [m for m in child.seen(request__subtype="initialize") if m["request.hooks.PreToolUse"]])[-1]
        child.prompted(a, "x", uuid="u")
        a.request("plenum_stop")
        m = b.event("changed", what="stopping")
        self.assertEqual((m["value"], m["by.name"]), ("graceful", "a"))
        interrupt = child.request("interrupt")
        child.print(hook("k-1", table["request.hooks.PreToolUse"][0]["hookCallbackIds"][0]), perm("k-2"))
        a.send(ok(a.wait(type="control_request", request__subtype="hook_callback")["request_id"], {"x": 1}))
        self.assertEqual(child.answer("k-1")["response.response"], {"x": 1})
        b.send(deny(b.wait(type="control_request", request__subtype="can_use_tool")["request_id"]))
        child.answer("k-2")
        child.reply(interrupt)
        child.print(dict(RESULT, user_message_uuids=["u"]))
        for c in (a, b):
            self.assertIs(c.event("child_exited")["wanted"], True)
        self.assertEqual(child.had("signal"), [])

    def test_sleep_end_session_and_kill_are_announced(self):
        """C57."""
        for how, value in (("plenum_hibernate", "graceful"), ("end_session", "graceful"), ("kill", "kill")):
            d, agent = self.start()
            a, b = d.attached(), d.attached()
            agent.child().mark(a, b)
            a.request("plenum_stop", how="kill") if how == "kill" else a.request(how)
            b.event("child_exited", wanted=True)
            events = [m["event"] for m in b.log if m["event"] in ("changed", "child_exited")]
            self.assertEqual(events, ["changed", "child_exited"])
            self.assertEqual(b.events("changed")[0]["value"], value)
            a.event("child_exited")
            own = [m["event"] or m["type"] for m in a.log
                   if m["type"] == "control_response" or m["event"] in ("changed", "child_exited")]
            self.assertEqual(own[-3:], ["control_response", "changed", "child_exited"], how)


class ForgetTest(Case):
    """A session being stopped and forgotten: a client that comes meanwhile is not lost with it."""

    def going(self):
        """Its child ends when the test kills it."""
        d, agent = self.start(mode={"eof": "ignore", "term": "ignore", "session_id": "conv-1"}, profile={"stop_grace": "60s"})
        a = d.attached("work")
        child = agent.child()
        a.request("plenum_stop", forget=True)
        child.event("eof")
        return d, agent, a, child

    def held(self, d, *lines):
        """A client with its lines queued: not one of them is answered."""
        c = d.client()
        c.send(*lines)
        d.call("plenum_hello")
        c.drain(0.1)
        self.assertEqual(c.log, [])
        return c

    def test_an_attach_makes_a_new_one_when_it_is_gone(self):
        for create in ("auto", "new"):
            d, agent, a, child = self.going()
            c = self.held(d, request("1", "plenum_attach", session="work", create=create), user("hi", uuid="u"),
                          request("2", "plenum_hello"))
            child.kill()
            a.event("session_removed")
            m = c.answer("1")
            self.assertEqual((m["response.response.created"], m["response.response.session"]), (True, "work"))
            second = agent.child()
            self.assertNotIn("--resume=conv-1", second.argv)
            second.wait(type="user", uuid="u")
            c.answer("2")
            self.assertEqual([m["response.request_id"] for m in c.seen(type="control_response")], ["1", "2"])
            second.kill()  # else it would not end

    def test_a_prompt_that_names_it(self):
        d, agent, a, child = self.going()
        c = self.held(d, user("one", uuid="u1", session_id="work"), user("two", uuid="u2", session_id="work"))
        last = d.client()
        last.raw(dump(user("three", uuid="u3", session_id="work")))  # no newline, then the end of its input
        last.half_close()
        d.call("plenum_hello")
        child.kill()
        second = agent.child()
        for uuid in ("u1", "u2", "u3"):
            second.wait(type="user", uuid=uuid)
        second.print(init_line(), dict(RESULT, user_message_uuids=["u1", "u2", "u3"]))
        c.wait(type="result")
        last.wait(type="result")
        last.wait_eof()
        second.kill()

    def test_one_of_two_gets_it(self):
        for upgrade in (False, True):
            d, agent, a, child = self.going()
            late = d.client()
            late.sync()
            first = self.held(d, request("1", "plenum_attach", session="work", create="new"))
            late.send(request("1", "plenum_attach", session="work", create="new"))
            d.call("plenum_upgrade" if upgrade else "plenum_hello")
            child.kill()
            answers = [c.answer("1") for c in (first, late)]
            self.assertCountEqual([m["response.response.created"] for m in answers], [True, None])
            self.assertCountEqual([m["response.code"] for m in answers], [None, "session_exists"])
            agent.child().kill()

    def test_who_gave_up_gets_none(self):
        d, agent, a, child = self.going()
        self.held(d, request("1", "plenum_attach", session="work"), user("hi", uuid="u")).close()
        child.kill()
        a.event("session_removed")
        until(lambda: d.call("plenum_metrics")["clients"] == 2, what="its connection to be closed")  # a and the asker
        self.assertEqual((d.sessions(), agent.starts), ({}, 1))

    def test_a_prompt_whose_sender_is_gone(self):
        """Its answer has no recipient: it is sent as before."""
        d, agent, a, child = self.going()
        self.held(d, user("hi", uuid="u", session_id="work")).close()
        child.kill()
        second = agent.child()
        second.wait(type="user", uuid="u")
        second.kill()

    def test_bad_lines_are_counted_as_they_came(self):
        d, agent, a, child = self.going()
        c = self.held(d, request("1", "plenum_attach", session="work"), b"no json", user("x", uuid="u"), b"nor this")
        child.kill()
        c.answer("1")
        self.assertEqual([c.error("bad_line")["line"] for _ in range(2)], [2, 4])
        agent.child().kill()

    def test_who_wants_no_new_one_sees_the_end(self):
        d, agent, a, child = self.going()
        c = d.attached("work", create="never")
        self.assertIs(c.attached["created"], False)
        for who in (a, c):  # also the one that was there before
            who.send(user("x", uuid="u"))
            self.assertIn("forgotten", who.error("child_exited", uuid="u")["error"])
            who.send(request("i", "initialize", hooks=None))
            self.assertEqual(who.answer("i")["response.code"], "child_exited")
        child.kill()
        for who in (a, c):
            who.event("session_removed")
        self.assertEqual(d.sessions(), {})

    def test_an_upgrade_meanwhile(self):
        d, agent, a, child = self.going()
        c = self.held(d, request("1", "plenum_attach", session="work"), user("hi", uuid="u"))
        gone = self.held(d, request("1", "plenum_attach", session="work"))
        d.call("plenum_upgrade")
        c.drain(0.1)
        self.assertEqual(c.log, [])
        gone.reset()
        child.kill()
        self.assertIs(c.answer("1")["response.response.created"], True)
        second = agent.child()
        second.wait(type="user", uuid="u")
        second.kill()

    def test_a_shutdown_meanwhile(self):
        d, agent, a, child = self.going()
        c = self.held(d, request("1", "plenum_attach", session="work"))
        d.process.send_signal(signal.SIGTERM)
        a.event("shutting_down")
        child.kill()
        self.assertEqual(c.answer("1")["response.code"], "shutting_down")
        d.ended(0)
        self.daemons.remove(d)
        self.addCleanup(d.destroy)


class OrphanTest(Case):
    def family(self, d, child):
        pids = [child.spawn(SLEEPER + [d.root + "/"]), child.spawn(SLEEPER + [d.root + "/"], setsid=True)]
        script = ("import os,sys,time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
                  "os.mkdir(sys.argv[1] + '.%d' % os.getpid())\ntime.sleep(120)\n")
        child.spawn([sys.executable, "-I", "-S", "-c", script, d.root + "/escaped"], setsid=True)
        pids += until(lambda: [int(name.split(".")[1]) for name in os.listdir(d.root) if name.startswith("escaped.")])
        return pids

    def gone(self, pids):
        until(lambda: not any(alive(p) for p in pids), what="the family of the child to be gone: %s" % pids)

    def test_stop(self):
        for how in ("graceful", "kill"):
            d, agent = self.start()
            a = d.attached()
            pids = self.family(d, agent.child())
            a.request("plenum_stop", how=how)
            a.event("child_exited")
            self.gone(pids)
            until(lambda: children_of(d.pid) == [], what="no zombies")

    def test_the_child_is_killed(self):
        """The rest of its process session ends with it."""
        d, _, child, a = self.open()
        pids = self.family(d, child)
        child.kill()
        a.event("child_exited")
        self.gone(pids[:1])
        self.assertTrue(all(alive(p) for p in pids[1:]))
        a.request("plenum_stop")
        self.gone(pids)

    def test_of_one_session_only(self):
        d, agent = self.start()
        a = d.attached("s1")
        one = agent.child()
        b = d.attached("s2")
        two = agent.child()
        mine, others = self.family(d, one), [two.spawn(SLEEPER + [d.root + "/other"], setsid=True)]
        a.request("plenum_stop", how="kill")
        a.event("child_exited")
        self.gone(mine)
        self.assertTrue(all(alive(p) for p in others))
        two.mark(b)

    def test_the_daemon_ends(self):
        d, agent = self.start()
        a = d.attached()
        pids = self.family(d, agent.child())
        d.process.terminate()
        a.event("shutting_down")
        d.ended()
        self.assertFalse([p for p in pids if alive(p)])
        d.process = None

    def test_a_stubborn_child_at_the_daemons_end(self):
        d, agent = self.start(mode={"eof": "ignore", "term": "ignore"}, profile=QUICK)
        d.attached()
        child = agent.child()
        d.stop()
        self.assertFalse(alive(child.pid))
        d.process = None

    def test_the_daemon_is_killed(self):
        """C28."""
        for mode in ({}, {"eof": "ignore", "term": "ignore"}):
            d, agent = self.start(mode=mode)
            d.attached()
            child = agent.child()
            d.kill9()
            self.gone([child.pid])
            d.process = None

    def test_kill_of_the_daemon_with_three_stubborn_sessions(self):
        """C28: one in mid-turn, one with a question, one idle, all stubborn; then they are asleep, with their ids."""
        d, agent = self.start(mode={"eof": "ignore", "term": "ignore"})
        names = ("mid", "ask", "idle")
        clients, children = [d.attached(n) for n in names], [agent.child() for _ in names]
        for name, c, child in zip(names, clients, children):
            child.print(init_line("c-" + child.env["PLENUM_CHILD"]), RESULT)
        for c in clients:
            c.wait(type="result")
        clients[0].send(user("x", uuid="u"))
        next(c for c in children if c.env["PLENUM_CHILD"] == "mid").wait(type="user")
        next(c for c in children if c.env["PLENUM_CHILD"] == "ask").print(perm("k-1"))
        clients[1].wait(type="control_request")
        d.kill9()
        until(lambda: not any(alive(c.pid) for c in children))
        d.start()
        for name in names:
            got = d.client().attach(name, create="never")
            self.assertEqual((got["state"], got["conversation_id"], got["pid"], got["pending"]), ("asleep", "c-" + name, None, []))


class ShutdownTest(Case):
    def test_clients_are_told(self):
        d, agent = self.start()
        a, w = d.attached(), d.client()
        w.request("plenum_subscribe")
        agent.child()
        d.process.terminate()
        a.event("shutting_down")
        w.event("shutting_down")
        a.wait_eof()
        d.ended()
        d.process = None

    def test_in_the_middle_of_a_flood(self):
        d, _, child, a, stalled = self.open(2, profile=QUICK)
        child.flood(b'{"type":"x","p":"@P@"}', 1000000, pad=1000)
        a.wait(type="x")
        d.process.terminate()
        begun = time.monotonic()
        while d.process.poll() is None:
            a.drain(0.05)
            del a.log[:], a.inbox[:]
            self.assertLess(time.monotonic() - begun, TIMEOUT)
        d.ended()
        self.assertTrue(stalled)
        d.process = None

    def test_new_sessions_are_refused_meanwhile(self):
        d, agent = self.start(mode={"eof": 0.5})
        a, b = d.attached(), d.client()
        b.hello()
        agent.child()
        d.process.terminate()
        a.event("shutting_down")
        try:
            self.assertRefused("shutting_down", b.attach, "new")
        except (Timeout, BrokenPipeError, ConnectionResetError):
            pass  # it may have closed already
        d.ended()
        self.assertEqual(agent.starts, 1)
        d.process = None

    def test_interrupt_and_the_second_is_faster(self):
        d, _, child, a = self.open(mode={"eof": "ignore", "term": "ignore"}, profile={"stop_grace": "20s"})
        d.process.send_signal(signal.SIGINT)
        a.event("shutting_down")
        child.event("eof")
        d.process.send_signal(signal.SIGINT)
        d.process.wait(TIMEOUT)
        until(lambda: not alive(child.pid))
        d.process = None

    def test_no_child_starts_meanwhile(self):
        d, agent, child, a, b = self.open(2, mode={"eof": 0.3}, profile={"prompts": "queue"})
        child.prompted(a, "one", uuid="ua")
        b.send(user("two", uuid="ub"))
        until(lambda: d.call("plenum_queue", session="s")["prompts"], what="the held prompt")
        d.stop()
        d.process = None
        self.assertEqual(agent.starts, 1)

    def test_exit_of_the_last_child_is_announced(self):
        d, agent = self.start()
        a = d.attached("s")
        agent.child()
        d.wait_state("s", "idle")
        d.stop()
        a.event("child_exited")
        a.event("session_state", state="asleep")
        a.wait_eof()
        d.start()

    def test_attach_that_waits_for_a_name_is_answered(self):
        for _ in range(4):  # the order alternates
            d, _, child, a = self.open(mode={"eof": "ignore"})
            d.wait_state("s", "idle")
            a.request("plenum_stop", forget=True)
            (b,) = connected(d, 1)
            rid = b.ask("plenum_attach", session="s")
            until(lambda: d.call("plenum_metrics")["clients"] == 3)
            with standstill(d):
                child.kill()
                child.wait_gone()
                os.kill(d.pid, signal.SIGTERM)
            self.assertEqual(b.answer(rid)["response.code"], "shutting_down")
            b.wait_eof()
            d.ended()
            d.start()


class NextChildTest(Case):
    """Prompts and requests for the next child, while the current one is being stopped."""

    def ending(self):
        d, agent, child, a = self.open(mode={"eof": "ignore", "control": True}, profile={"stop_grace": "1min"})
        d.wait_state("s", "idle")
        a.request("plenum_stop")
        child.event("eof")
        return d, agent, child

    def test_next_child_is_cancelled_and_wanted_again(self):
        d, agent, child = self.ending()
        b, c = d.attached("s"), d.attached("s")
        b.send(user("lost", uuid="u-1"))
        b.sync()
        b.request("plenum_stop")
        c.send(user("comes", uuid="u-2"))
        c.sync()
        child.exit(0)
        b.error("child_exited", uuid="u-1")
        child = agent.child()
        self.assertEqual(child.wait(type="user")["uuid"], "u-2")
        child.print(dict(RESULT, user_message_uuids=["u-2"]))
        c.event("session_state", state="idle")

    def test_request_for_the_next_child(self):
        d, agent, child = self.ending()
        b = d.attached("s")
        b.send(user("wakes it"))
        rid = b.ask("set_model", model="small")
        b.sync()
        child.exit(0)
        self.assertEqual(b.answer(rid)["response.subtype"], "success")
        b.event("changed", what="model")
        agent.child().request("set_model")

    def test_request_for_the_next_child_across_an_upgrade(self):
        d, agent, child = self.ending()
        b = d.attached("s")
        b.send(user("wakes it"))
        rid = b.ask("set_model", model="small")
        d.call("plenum_upgrade")
        child.exit(0)
        self.assertEqual(b.answer(rid)["response.subtype"], "success")


if __name__ == "__main__":
    unittest.main()
