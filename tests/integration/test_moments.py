# SPDX-License-Identifier: MIT
"""Several things in one moment: the daemon stands still while they come, and finds them all in one turn of its loop."""
import contextlib
import os
import signal
import unittest
from pathlib import Path

from harness import RESULT, Case, alive, err, init, request, until, user
from test_upgrade import Upgrade

WATCH = {"PostToolUse": [{"matcher": None, "hookCallbackIds": ["h0"]}]}  # no guard: goes with its owner


@contextlib.contextmanager
def standstill(d):
    """What comes in this block is there at once when it ends, in this order."""
    def stands():
        with open("/proc/%d/stat" % d.pid) as f:
            return f.read().rpartition(")")[2].split()[0] == "T"

    until(d.waits)  # else what it has read last would come first once more
    os.kill(d.pid, signal.SIGSTOP)
    until(stands)
    try:
        yield
    finally:
        os.kill(d.pid, signal.SIGCONT)


def connected(d, n):
    """Clients whose connections are accepted already."""
    all = [d.client() for _ in range(n)]
    for c in all:
        c.sync()
    return all


class StateTest(Case):
    """A state that an answer names is followed by the next one, also where that is what all others know."""

    def judge(self, d, c, named, want):
        """What c takes for the state: what its answer named, then what it was told since."""
        self.assertEqual(d.state_of("s"), want)
        c.sync()
        told = [m["state"] for m in c.events("session_state")]
        self.assertEqual(told[-1] if told else named, want)

    def test_idle_between_two_turns(self):
        d, agent = self.start()
        a = d.attached("s")
        child = agent.child()
        a.send(user("one"))
        child.wait(type="user")
        d.wait_state("s", "busy")
        b, c, w = connected(d, 3)
        with standstill(d):
            child.print(RESULT)
            child.written()
            at_b = b.ask("plenum_attach", session="s")
            at_w = w.ask("plenum_subscribe")
            a.send(user("two"))
            at_c = c.ask("plenum_attach", session="s")
        child.wait(type="user", message__content="two")
        named = b.answer(at_b)["response.response.state"]
        self.assertEqual(named, "idle")
        self.judge(d, b, named, "busy")
        self.judge(d, w, w.answer(at_w)["response.response"]["sessions"][0]["state"], "busy")
        self.judge(d, c, c.answer(at_c)["response.response.state"], "busy")
        self.assertEqual(b.events("session_state")[0]["previous"], "idle")

    def test_a_start_that_is_given_up(self):
        d, agent = self.start()
        # its own environment: the prompt that wakes it does not wait for that of its sender
        a = d.attached("s", env={"PATH": "/usr/bin:/bin"}, env_only=True)
        agent.child()
        d.wait_state("s", "idle")
        a.request("plenum_hibernate")
        d.wait_state("s", "asleep")
        b, c = connected(d, 2)
        with standstill(d):
            a.send(user("one"))
            rid = b.ask("plenum_attach", session="s")
            c.ask("plenum_stop", session="s")
        named = b.answer(rid)["response.response.state"]
        self.assertEqual(named, "starting")
        self.judge(d, b, named, "asleep")


class EndTest(Case):
    def test_the_last_child_of_a_daemon_that_stops(self):
        d, agent = self.start()
        a = d.attached("s")
        agent.child()
        d.wait_state("s", "idle")
        d.stop()
        a.event("child_exited")
        a.event("session_state", state="asleep")
        a.wait_eof()
        d.start()

    def test_upgrade_and_shutdown_in_one_write(self):
        (d,) = self.start(agents=())
        a = d.client()
        a.send(request("u", "plenum_upgrade"), request("q", "plenum_shutdown"))
        self.assertEqual(a.answer("u")["response.code"], "spawn_failed")
        a.wait_eof()
        d.ended()
        d.start()

    def test_whoever_waits_for_a_name_is_answered_by_a_daemon_that_stops(self):
        for _ in range(4):  # whose turn comes first takes turns
            d, agent = self.start(mode={"eof": "ignore"})
            a = d.attached("s")
            child = agent.child()
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

    def test_a_session_whose_only_client_has_just_gone(self):
        d, agent = self.start()
        a = d.client()
        a.attach("s", ephemeral=True)
        old = agent.child()
        d.wait_state("s", "idle")
        (b,) = connected(d, 1)
        with standstill(d):
            a.close()
            rid = b.ask("plenum_attach", session="s")
        self.assertIs(b.answer(rid)["response.response.created"], True)
        old.wait_gone()
        agent.child()


class NextChildTest(Case):
    """What is meant for the next child, while the one before it is being stopped."""

    def ending(self):
        d, agent = self.start(mode={"eof": "ignore", "control": True}, profile={"stop_grace": "1min"})
        a = d.attached("s")
        child = agent.child()
        d.wait_state("s", "idle")
        a.request("plenum_stop")
        child.event("eof")
        return d, agent, child

    def test_not_wanted_after_all_and_then_wanted(self):
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

    def test_request_for_it(self):
        d, agent, child = self.ending()
        b = d.attached("s")
        b.send(user("wakes it"))
        rid = b.ask("set_model", model="small")
        b.sync()
        child.exit(0)
        self.assertEqual(b.answer(rid)["response.subtype"], "success")
        b.event("changed", what="model")
        agent.child().request("set_model")

    def test_request_for_it_across_an_upgrade(self):
        d, agent, child = self.ending()
        b = d.attached("s")
        b.send(user("wakes it"))
        rid = b.ask("set_model", model="small")
        d.call("plenum_upgrade")
        child.exit(0)
        self.assertEqual(b.answer(rid)["response.subtype"], "success")


class InitializeTest(Case):
    def test_end_of_input_before_the_answer(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.client()
        a.send(request("t", "plenum_attach", ephemeral=True), init("i", WATCH))
        child = agent.child()
        m = child.wait(type="control_request")
        with standstill(d):
            a.half_close()
            child.reply(m, {"hooks_applied": True})
            child.written()
        self.assertIs(a.answer("i")["response.response.hooks_applied"], True)
        a.wait_eof()

    def test_end_of_input_before_both_answers(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.client()
        a.send(request("t", "plenum_attach", ephemeral=True), init("i"), init("j", WATCH))
        child = agent.child()
        m = child.wait(type="control_request")
        with standstill(d):
            a.half_close()
            child.reply(m, {})
            child.written()
        a.answer("i")
        child.reply(child.wait(type="control_request"), {"hooks_applied": True})
        a.answer("j")
        a.wait_eof()


    def test_refused_by_a_child_that_is_being_stopped(self):
        """What waits for the next child does not die with this one. A prompt behind refused hooks does not run."""
        d, agent = self.start(mode={"init": "manual", "eof": "ignore"}, profile={"stop_grace": "1min"})
        g = d.attached("s", name="guard")
        child = agent.child()
        rid = g.ask("initialize", hooks={"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h0"]}]})
        child.reply(child.wait(type="control_request"), {"hooks_applied": True})
        g.answer(rid)
        g.close()
        d.call("plenum_stop", session="s", how="kill")
        d.wait_state("s", "asleep")
        a = d.attached("s")
        a.initialize({"PreToolUse": [{"matcher": "Edit", "hookCallbackIds": ["h1"]}]})
        b = d.attached("s", wake=True)
        child = agent.child()
        first = child.wait(type="control_request")
        a.request("plenum_hibernate")
        b.send(user("one"))
        b.sync()
        a.send(user("two", uuid="u2"))
        a.sync()
        child.print(err(first["request_id"]))
        self.assertEqual(a.error("initialize_refused")["uuid"], "u2")
        child = agent.child()
        child.reply(child.wait(type="control_request"), {"hooks_applied": True})
        child.wait(type="user", message__content="one")
        self.assertNone(child.seen(type="user", uuid="u2"))


class SignalTest(Upgrade):
    def test_term_while_the_new_binary_is_tried(self):
        """It is for whoever is there in the end."""
        for tried in ("--check-upgrade", "--check"):
            with self.subTest(tried):
                d, agent = self.start_copy()
                a = d.attached("s")
                agent.child()
                real = d.exe + ".real"
                os.rename(d.exe, real)
                script = '#!/bin/sh\n[ "$1" = %s ] && kill -TERM $PPID\nexec %s "$@"\n' % (tried, real)
                self.replace(d, script.encode())
                os.kill(d.pid, signal.SIGUSR2)
                a.event("shutting_down")
                d.ended()
                d.start()

    def test_term_when_the_new_binary_was_looked_at(self):
        """The old one ends all the same, and takes nothing over while it does."""
        d, _ = self.start_copy()
        real, tried, go = d.exe + ".real", d.root + "/tried", d.root + "/go"
        os.rename(d.exe, real)
        os.mkfifo(go)
        self.replace(d, ('#!/bin/sh\nif [ "$1" = --check ]; then echo $$ > %s; read x < %s; exit 0; fi\nexec %s "$@"\n' % (
            tried, go, real)).encode())
        os.kill(d.pid, signal.SIGUSR2)
        until(lambda: os.path.exists(tried) and os.path.getsize(tried))
        preview = int(Path(tried).read_text())
        with standstill(d):
            Path(go).write_text("go")
            until(lambda: not alive(preview))
            os.kill(d.pid, signal.SIGTERM)
        d.ended()
        self.assertEqual(self.resumes(d), 0)
        d.start()


if __name__ == "__main__":
    unittest.main()
