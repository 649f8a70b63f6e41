# SPDX-License-Identifier: MIT
"""Warm starts: prestarted children, the sessions that get them, and those that must not."""
import os
import signal
import subprocess
import tempfile
import unittest

from harness import Case, RESULT, alive, build_file, hook, init, init_line, ok, request, until, user

# Copied from the requester (plenumd(8)): the daemon of these tests has the same, so that a start here is a plain one.
REFRESHED = ("SSH_AUTH_SOCK SSH_AGENT_PID SSH_CONNECTION SSH_CLIENT SSH_TTY SSH_ASKPASS DISPLAY WAYLAND_DISPLAY XAUTHORITY "
             "XDG_SESSION_ID XDG_SESSION_TYPE DBUS_SESSION_BUS_ADDRESS KRB5CCNAME GPG_AGENT_INFO GPG_TTY").split()
HOOKS = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}


class WarmCase(Case):
    def warm(self, n=1, ready=None, cwd="/", **options):
        """A daemon with n prestarted children; wait for `ready` of them."""
        profile = dict({"warm": n, "cwd": cwd}, **options.pop("profile", {}))
        env = {name: os.environ[name] for name in REFRESHED if name in os.environ}
        d, agent = self.start(profile=profile, env=dict(env, **options.pop("env", {})), **options)
        if n and ready != 0:
            self.wait_ready(d, n if ready is None else ready)
        return d, agent

    def ready(self, d):
        status = d.call("plenum_status", daemon=True)
        return next(p["warm"] for p in status["profiles"] if p["name"] == "agent")

    def wait_ready(self, d, n):
        until(lambda: self.ready(d) == n, what="%d spares (there are %d)" % (n, self.ready(d)))
        d.fds = max(d.fds, d.settled_fds())

    def one_spare(self, init="332", **options):
        """A daemon with one spare that is ready; return it, too. Another one never is: no further one is started in the
        place of the first when that is given, however long it is away."""
        d, agent = self.warm(2, ready=0, mode={"init": "manual"}, **options)
        spare = agent.child()
        first = spare.request("initialize")
        spare.print(ok(first["request_id"], {"commands": [], "account": {}}))
        agent.child()
        agent.mode(init=init)
        self.wait_ready(d, 1)
        return d, agent, spare

    def hooked(self, client, session, **members):
        """Attach and register hooks in one write, before another child could be prestarted in the place of the given
        one that returns; return the answers."""
        client.send(request("attach", "plenum_attach", session=session, cwd="/"), init("hooks", HOOKS, **members))
        return client.answer("attach")["response.response"], client.answer("hooks")

    def first_line(self, child):
        child.caught_up()
        return child.log[0]


class GiveTest(WarmCase):
    def test_spare_is_started_and_hidden(self):
        d, agent = self.warm()
        child = agent.child()
        child.request("initialize")
        self.assertEqual(d.sessions(), {})
        self.assertEqual(child.start["cwd"], "/")
        self.assertEqual(d.call("plenum_metrics")["warm"], 1)

    def test_new_session_gets_it(self):
        d, agent = self.warm()
        child = agent.child()
        a = d.attached("work", cwd="/")
        self.assertEqual((a.attached["pid"], a.attached["state"], a.attached["created"]), (child.pid, "idle", True))
        child.prompted(a, "hi", uuid="11111111-1111-4111-8111-111111111111")
        child.print(RESULT)
        a.wait(type="result")
        self.assertEqual([m["request.subtype"] for m in child.seen(type="control_request")], ["initialize"])
        self.assertEqual(list(d.sessions()), ["work"])

    def test_umask_of_the_requester(self):
        """A spare with another one does not fit; the next spare has the requester's."""
        before = os.umask(0o022)
        self.addCleanup(os.umask, before)
        d, agent = self.warm()
        spare = agent.child()
        os.umask(0o077)
        a = d.attached("one", cwd="/")
        self.assertNotEqual(a.attached["pid"], spare.pid)
        spare.wait_gone()
        self.wait_ready(d, 1)
        pid = d.attached("two", cwd="/").attached["pid"]
        self.assertIn("session two: takes prestarted child %d," % pid, d.log())
        with open("/proc/%d/status" % pid) as f:
            self.assertIn("\nUmask:\t0077\n", f.read())

    def test_its_turn_does_not_stall(self):
        """One that begins a turn by itself: its session may be removed at any time, and no client waits for it."""
        d, agent = self.warm(profile={"stall_after": "300ms"})
        spare = agent.child()
        spare.print(init_line("spare-conv"))
        spare.caught_up()
        other = d.attached("clock", cwd="/usr")  # its turn begins later
        child = agent.child_of(other.attached["pid"])
        child.prompted(other, "hi", uuid="u1")
        child.print(init_line("clock-conv", user_message_uuids=["u1"]))
        other.event("stalled")
        self.assertNotIn("session warm-", "".join(s for s in d.log().splitlines() if "has printed nothing" in s))

    def test_another_one_is_started(self):
        d, agent = self.warm()
        first = agent.child()
        a = d.attached("one", cwd="/")
        self.wait_ready(d, 1)
        second = agent.child()
        b = d.attached("two", cwd="/")
        self.assertEqual((a.attached["pid"], b.attached["pid"]), (first.pid, second.pid))

    def test_several(self):
        d, agent = self.warm(3)
        pids = {agent.child().pid for _ in range(3)}
        got = {d.attached("s%d" % i, cwd="/").attached["pid"] for i in range(3)}
        self.assertEqual(got, pids)

    def test_implicit_attach(self):
        d, agent = self.warm(cwd=os.getcwd())
        child = agent.child()
        a = d.client()
        child.prompted(a, "hi")
        self.assertEqual(d.sessions()["default"]["pid"], child.pid)

    def test_same_folder_by_another_name(self):
        d, agent = self.warm(cwd="/usr/../")
        child = agent.child()
        self.assertEqual(d.attached("work", cwd="/").attached["pid"], child.pid)

    def test_what_it_printed_before_is_on_the_tape(self):
        d, agent = self.warm()
        child = agent.child()
        child.print({"type": "system", "subtype": "hook_started", "hook_name": "SessionStart"})
        child.stderr("a warning\n")
        child.written()
        a = d.attached("work", cwd="/", replay="all")
        a.wait(type="system", subtype="hook_started")
        until(lambda: d.call("plenum_logs", session="work")["stderr"] == ["a warning"])

    def test_request_of_a_spare_is_refused(self):
        d, agent = self.warm()
        child = agent.child()
        child.print(request("r1", "elicitation", message="who?"))
        self.assertEqual(child.answer("r1")["response.subtype"], "error")

    def test_nobody_hears_of_spares(self):
        d, agent = self.warm(0)
        s = d.client()
        s.request("plenum_subscribe")
        d.sections["profile agent"]["warm"] = 1
        d.write_conf()
        d.call("plenum_reload")
        self.wait_ready(d, 1)
        agent.child().print({"type": "system", "subtype": "init", "session_id": "x"}, RESULT)
        s.sync()
        self.assertNone(s.events())


class MismatchTest(WarmCase):
    def own(self, d, agent, child, **members):
        """The session gets a child of its own, and the prestarted one stays."""
        a = d.client()
        got = a.attach(cwd=members.pop("cwd", "/"), **members)
        self.assertNotEqual(got["pid"], child.pid)
        own = agent.child()
        self.assertEqual(got["pid"], own.pid)
        self.assertEqual(self.ready(d), 1)
        return own

    def test_options(self):
        d, agent = self.warm()
        child = agent.child()
        self.assertIn("--model=x", self.own(d, agent, child, args=["--model=x"]).argv)
        self.assertEqual(self.own(d, agent, child, env={"A": "b"}).env["A"], "b")
        self.own(d, agent, child, cwd="/tmp")
        self.own(d, agent, child, resume="00000000-0000-4000-8000-000000000001")
        self.own(d, agent, child, resume="00000000-0000-4000-8000-000000000002", fork=True)
        self.own(d, agent, child, argv=["-I", "-S", agent.folder + "/agent.py", agent.folder], env={"PATH": "/usr/bin:/bin"}, env_only=True)

    def test_environment_of_who_asks(self):
        d, agent = self.warm(env={"DISPLAY": ":77"} if os.environ.get("DISPLAY") != ":77" else {"DISPLAY": ":78"},
                             profile={"pass_env": "PATH"})
        child = agent.child()
        if "DISPLAY" in os.environ:
            self.own(d, agent, child)
        else:
            self.assertEqual(d.attached("work", cwd="/").attached["pid"], child.pid)

    def test_the_next_spares_follow_who_asks(self):
        """A client's environment has variables that the daemon has not: the first session of it starts cold, the second
        does not."""
        d, agent = self.warm()
        child = agent.child()
        env = dict(os.environ, DISPLAY=":991", SSH_TTY="/dev/pts/991")
        a = d.client(env=env)
        own = a.attach("one", cwd="/")["pid"]
        self.assertNotEqual(own, child.pid)
        self.assertEqual(agent.child_of(own).env["DISPLAY"], ":991")
        child.wait_gone()
        self.wait_ready(d, 1)
        spare = agent.child()
        self.assertEqual(spare.env["SSH_TTY"], "/dev/pts/991")
        # returned, it still fits a client like this one
        attached, hooks = self.hooked(d.client(env=env), "two")
        self.assertEqual((attached["pid"], hooks["response.subtype"]), (spare.pid, "success"))
        self.assertEqual(d.client(env=env).attach("three", cwd="/")["pid"], spare.pid)

    def test_program_that_was_replaced(self):
        d, agent = self.warm(0)
        script = d.root + "/program"

        def write():
            with open(script + ".new", "w") as f:
                f.write("#!/bin/sh\nexec %s\n" % agent.command)
            os.chmod(script + ".new", 0o755)
            os.rename(script + ".new", script)

        write()
        d.sections["profile agent"].update(warm=1, command=script)
        d.write_conf()
        d.call("plenum_reload")
        self.wait_ready(d, 1)
        child = agent.child()
        write()
        a = d.attached("work", cwd="/")
        self.assertNotEqual(a.attached["pid"], child.pid)
        child.wait_gone()
        agent.child_of(a.attached["pid"])
        self.wait_ready(d, 1)
        self.assertEqual(d.attached("two", cwd="/").attached["pid"], agent.child().pid)

    def test_spare_that_has_just_died(self):
        d, agent = self.warm()
        child = agent.child()
        a = d.client()
        a.sync()
        os.kill(d.pid, signal.SIGSTOP)
        until(lambda: open("/proc/%d/stat" % d.pid).read().rpartition(")")[2].split()[0] == "T")
        rid = a.ask("plenum_attach", session="work", cwd="/")
        child.kill()
        # dead with all its threads: only then can it be waited for
        until(lambda: not alive(child.pid) and len(os.listdir("/proc/%d/task" % child.pid)) == 1)
        os.kill(d.pid, signal.SIGCONT)
        got = a.answer(rid)["response.response"]
        self.assertNotEqual(got["pid"], child.pid)
        self.assertEqual(got["state"], "starting")


class InitializeTest(WarmCase):
    def test_plain_initialize(self):
        d, agent = self.warm()
        child = agent.child()
        a = d.attached("work", cwd="/")
        answer = a.initialize(None, agents={}, skills=[])
        self.assertEqual(answer["response.subtype"], "success")
        self.assertIsNone(answer["response.response.plenum"])
        child.prompted(a, "hi")
        self.assertEqual(d.sessions()["work"]["pid"], child.pid)
        self.assertEqual(len(child.seen(type="control_request", request__subtype="initialize")), 1)

    def own_first_line(self, mode):
        d, agent = self.warm(mode=mode)
        spare = agent.child()
        a = d.client()
        attached, answer = self.hooked(a, "work", systemPrompt=["You are brief."])
        self.assertEqual(attached["pid"], spare.pid)
        own = agent.child()
        self.assertNotEqual(own.pid, spare.pid)
        self.assertEqual(answer["response.subtype"], "success", answer)
        self.assertIsNone(answer["response.response.plenum"], answer)
        first = self.first_line(own)
        self.assertEqual(first["request.systemPrompt"], ["You are brief."])
        callback = first["request.hooks.PreToolUse"][0]["hookCallbackIds"][0]
        own.prompted(a, "hi")
        own.print(hook("h1", callback))
        m = a.wait(type="control_request", request__subtype="hook_callback")
        a.send(ok(m["request_id"], {"continue": True}))
        own.answer("h1")
        self.assertNone(spare.seen(type="user"))
        self.assertNone(a.events("child_exited"))
        # the prestarted child waits for the next one, and has received nothing
        b = d.attached("other", cwd="/")
        self.assertEqual(b.attached["pid"], spare.pid)
        self.assertEqual(len(spare.seen()), 1)

    def give_back(self, child_says):
        """A prestarted child is given, prints a line, is returned and given to another session."""
        d, agent, spare = self.one_spare()
        spare.print("before")
        spare.written()
        a = d.attached("work", cwd="/", tag=True, replay="all")
        spare.print(*child_says)
        a.wait(type="system", subtype="hook_started")
        a.initialize(HOOKS)
        self.assertNotEqual(d.sessions()["work"]["pid"], spare.pid)
        return d, spare, a

    def test_lines_of_one_given_back_stay(self):
        """Earlier clients continue without a gap, and later ones see them too."""
        d, spare, a = self.give_back([{"type": "system", "subtype": "hook_started"}, "stray"])
        a.sync()
        b = d.attached("work", tag=True, replay="all")
        first = a.attached["oldest_seq"]
        self.assertEqual((b.attached["oldest_seq"], b.attached["replay_cut"]), (first, False))
        b.sync()
        a.sync()
        self.assertNone(a.events("gap"))
        numbered = [[m for m in c.log if m["plenum_seq"] is not None] for c in (a, b)]
        self.assertEqual([m.raw for m in numbered[0]], [m.raw for m in numbered[1]])
        self.assertEqual([m["plenum_seq"] for m in numbered[0]], list(range(first, first + len(numbered[0]))))

    def test_another_session_hears_nothing_of_the_one_before(self):
        """The child's output comes with it, a line that is not JSON under the new name; reports about the session that
        returned it do not."""
        d, spare, a = self.give_back([{"type": "system", "subtype": "hook_started"}, "stray"])
        self.assertEqual([m["session"] for m in a.events("stray_output")], ["work", "work"])
        name = 'b"\\\u00e9'
        b = d.attached(name, cwd="/", replay="all", tag=True)
        self.assertEqual(b.attached["pid"], spare.pid)
        b.event("stray_output", text='"stray"')
        self.assertTrue(b.seen(type="system", subtype="hook_started"))
        self.assertEqual([(m["session"], m["text"]) for m in b.events("stray_output")], [(name, '"before"'), (name, '"stray"')])
        self.assertNone([m for m in b.log if b"work" in m.raw])

    def test_given_back_while_memory_is_short(self):
        """It ends like those that were waiting then."""
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        path = os.path.join(root, "pressure")
        os.mkfifo(path)
        d, agent = self.warm(2, root=root, env={"MEMORY_PRESSURE_WATCH": path}, daemon={"memory_pressure": "yes"})
        spares = {c.pid: c for c in (agent.child(), agent.child())}
        a = d.attached("work", cwd="/")
        given = spares.pop(a.attached["pid"])
        with open(path, "wb") as f:
            f.write(b"x")
        for other in spares.values():
            other.wait_gone()
        a.initialize(HOOKS)
        given.wait_gone()
        self.assertNotEqual(d.sessions()["work"]["pid"], given.pid)
        until(lambda: d.call("plenum_metrics")["warm"] == 0, what="the end of all spares")

    def test_one_that_asks_is_not_given_back(self):
        """Its request would be lost, and the answer would reach a child without the request."""
        d, agent = self.warm()
        spare = agent.child()
        a = d.attached("work", cwd="/")
        spare.print(request("r1", "elicitation", message="who?"))
        rid = a.wait(type="control_request")["request_id"]
        answer = a.initialize(HOOKS, systemPrompt=["You are brief."])
        self.assertEqual(answer["response.response.plenum.ignored"], ["systemPrompt"], answer)
        self.assertEqual(d.sessions()["work"]["pid"], spare.pid)
        a.send(ok(rid, {"action": "decline"}))
        spare.answer("r1")

    def test_one_that_works_is_not_given_back(self):
        d, agent = self.warm()
        spare = agent.child()
        a = d.attached("work", cwd="/")
        spare.print({"type": "system", "subtype": "init", "session_id": "x"})
        d.wait_state("work", "busy")
        a.initialize(HOOKS)
        self.assertEqual(d.sessions()["work"]["pid"], spare.pid)
        spare.print(RESULT)
        a.wait(type="result")

    def test_one_with_a_conversation_is_not_given_back(self):
        """Else the session's own child would resume the same conversation."""
        d, agent = self.warm()
        spare = agent.child()
        a = d.attached("work", cwd="/")
        spare.print({"type": "system", "subtype": "init", "session_id": "x"}, RESULT)
        a.event("session_state", conversation_id="x")
        d.wait_state("work", "idle")
        a.initialize(HOOKS)
        self.assertEqual(d.sessions()["work"]["pid"], spare.pid)

    def test_hooks_332(self):
        self.own_first_line({"init": "332"})

    def test_hooks_197(self):
        self.own_first_line({"init": "197"})

    def test_given_back_while_it_waits_for_a_reader(self):
        """No slow reader is left: its output is read on."""
        # the child is not read while a waited-for client is a quarter of the tape behind
        d, agent, spare = self.one_spare(limits={"tape_bytes": "1M", "lag_wait": "1m", "client_lag_soft": "256K",
                                                 "client_lag_soft_time": "100ms"})
        d.attached("work", "slow", cwd="/", on_lag="wait")
        b = d.attached("work", "fast")
        spare.flood({"type": "system", "subtype": "x", "text": "@P@"}, 2000, pad=4000)
        b.event("lag")
        self.assertLess(len(b.seen(type="system", subtype="x")), 2000)
        b.initialize(HOOKS)
        agent.child()
        spare.written()

    def test_hooks_after_a_prompt(self):
        """The child was written to: hooks are handled as usual."""
        d, agent = self.warm()
        spare = agent.child()
        a = d.attached("work", cwd="/")
        spare.prompted(a, "hi")
        answer = a.initialize(HOOKS)
        self.assertEqual(answer["response.response.hooks_applied"], True)
        self.assertEqual(d.sessions()["work"]["pid"], spare.pid)

    def test_second_client_with_hooks(self):
        d, agent = self.warm()
        spare = agent.child()
        a, b = d.attached("work", cwd="/"), d.attached("work")
        self.assertEqual(a.initialize()["response.subtype"], "success")
        self.assertEqual(b.initialize(HOOKS)["response.subtype"], "success")
        own = agent.child_of(d.sessions()["work"]["pid"])
        self.assertNotEqual(own.pid, spare.pid)
        own.prompted(a, "hi")
        self.assertNone(spare.seen(type="user"))

    def test_one_without_an_output_is_none_for_another(self):
        """It would block the place of a new one indefinitely."""
        d, agent = self.warm(mode={"eof": "ignore"}, profile={"stop_grace": "200ms"})
        spare = agent.child()
        a = d.attached("work", cwd="/")
        spare.order("close_stdout")
        spare.written()
        for _ in range(2):  # its end of output came before these: the daemon has seen it
            a.sync()
        self.assertEqual(a.initialize(HOOKS)["response.subtype"], "success")
        spare.wait_gone()
        self.wait_ready(d, 1)

    def asks_late(self, end, late):
        """The child ended as it was given: none can be returned, and its session's next one is notified."""
        d, agent = self.warm()
        spare = agent.child()
        a = d.attached("work", cwd="/")
        self.assertEqual(a.attached["pid"], spare.pid)
        end(a, spare)
        answer = a.initialize(HOOKS, systemPrompt=["You are brief."])
        self.assertEqual(answer["response.response.plenum.hooks_applied"], False, answer)
        self.assertEqual(answer["response.response.plenum.ignored"], ["systemPrompt"] if late else None, answer)
        if late:
            spare.kill()
            a.event("child_exited")
        self.wait_ready(d, 1)
        fresh = agent.child()
        a.send(user("hi"))
        own = agent.child()
        own.wait(type="user")
        first = self.first_line(own)
        self.assertTrue(first["request.hooks.PreToolUse"])
        self.assertEqual(first["request.systemPrompt"], None if late else ["You are brief."])
        self.assertEqual(len(fresh.seen()), 1)

    def test_hooks_when_it_sleeps(self):
        def end(a, spare):
            a.request("plenum_hibernate")
            a.event("session_state", state="asleep")
        self.asks_late(end, late=False)

    def test_hooks_when_it_was_killed(self):
        def end(a, spare):
            spare.kill()
            a.event("child_exited")
        self.asks_late(end, late=False)

    def test_hooks_while_it_stops(self):
        def end(a, spare):
            os.kill(spare.pid, signal.SIGSTOP)
            a.request("plenum_hibernate")
        self.asks_late(end, late=True)


class LifeTest(WarmCase):
    def test_marks_follow(self):
        """Processes left by the child are found under the name of its start."""
        d, agent = self.warm(2)
        one, two = agent.child(), agent.child()
        a, b = d.attached("one", cwd="/"), d.attached("two", cwd="/")
        stray = {c.pid: c.spawn(["sleep", "600"], setsid=True) for c in (one, two)}
        mine, other = a.attached["pid"], b.attached["pid"]
        os.kill(mine, signal.SIGKILL)
        a.event("child_exited")
        self.assertEqual([p["pid"] for p in d.call("plenum_status", session="one")["leftovers"]], [stray[mine]])
        for session, pid in (("one", stray[mine]), ("two", stray[other])):
            self.assertTrue(alive(pid))
            d.call("plenum_stop", session=session)
            until(lambda: not alive(pid))

    def test_sleep_and_wake(self):
        d, agent = self.warm()
        child = agent.child()
        a = d.attached("work", cwd="/")
        child.prompted(a, "hi")
        child.print({"type": "system", "subtype": "init", "session_id": "conv-1"}, RESULT)
        a.wait(type="result")
        d.wait_state("work", "idle")
        a.request("plenum_hibernate")
        d.wait_state("work", "asleep")
        self.wait_ready(d, 1)
        spare = agent.child()
        a.send(user("again"))
        woken = agent.child()
        woken.wait(type="user")
        self.assertIn("--resume=conv-1", woken.argv)
        self.assertEqual(woken.env["PLENUM_CHILD"], "work")
        self.assertNone(spare.seen(type="user"))

    def test_one_that_dies_is_replaced(self):
        d, agent = self.warm()
        agent.child().exit(1)
        second = agent.child()
        self.wait_ready(d, 1)
        self.assertEqual(d.attached("work", cwd="/").attached["pid"], second.pid)

    def test_does_not_try_for_ever(self):
        d, agent = self.warm(ready=0, mode={"start": [{"op": "exit_now", "status": 3}]})
        until(lambda: "no more of them" in d.log())
        self.assertEqual(agent.starts, 5)
        self.assertEqual(d.log().count("no more of them"), 1)
        agent.mode()
        d.call("plenum_reload")
        self.wait_ready(d, 1)

    def test_program_that_is_not_there(self):
        d, agent = self.warm(ready=0, profile={"command": "/nonexistent/agent"})
        until(lambda: "no more of them" in d.log())
        self.assertIn("/nonexistent/agent", d.log())

    def test_reload(self):
        d, agent = self.warm(2)
        old = [agent.child(), agent.child()]
        d.sections["profile agent"]["warm"] = 1
        d.write_conf()
        d.call("plenum_reload")
        for c in old:
            c.wait_gone()
        fresh = agent.child()
        self.wait_ready(d, 1)
        self.assertEqual(d.attached("work", cwd="/").attached["pid"], fresh.pid)
        d.sections["profile agent"]["warm"] = 0
        d.write_conf()
        d.call("plenum_reload")
        until(lambda: d.call("plenum_metrics")["warm"] == 0)

    def test_given_back_after_a_reload(self):
        d, agent = self.warm()
        spare = agent.child()
        a = d.attached("work", cwd="/")
        d.sections["profile agent"]["warm"] = 0
        d.write_conf()
        d.call("plenum_reload")
        self.assertEqual(a.initialize(HOOKS)["response.subtype"], "success")
        self.assertNotEqual(d.sessions()["work"]["pid"], spare.pid)
        spare.wait_gone()

    def test_max_children(self):
        d, agent = self.warm(1, daemon={"max_children": 2})
        spare = agent.child()
        a = d.attached("one", cwd="/tmp")
        b = d.attached("two", cwd="/tmp")
        spare.wait_gone()  # the prestarted child goes before any session's
        until(lambda: d.call("plenum_metrics")["warm"] == 0)  # its end is noticed a little later
        self.assertEqual({s["state"] for s in d.sessions().values()} & {"asleep"}, set())
        a.sync(), b.sync()

    def test_dies_with_the_daemon(self):
        d, agent = self.warm()
        child = agent.child()
        d.kill9()
        until(lambda: not alive(child.pid))
        child.wait_gone()
        d.process = None

    def test_stop(self):
        d, agent = self.warm(2)
        children = [agent.child(), agent.child()]
        d.stop()
        for c in children:
            self.assertFalse(alive(c.pid))
            c.event("eof")
        d.process = None


class UpgradeTest(WarmCase):
    def test_spares_are_started_anew(self):
        d, agent = self.warm()
        child = agent.child()
        a = d.attached("work", cwd="/")
        self.wait_ready(d, 1)
        old = agent.child()
        d.call("plenum_upgrade")
        old.wait_gone()
        self.wait_ready(d, 1)
        fresh = agent.child()
        b = d.attached("two", cwd="/")
        self.assertEqual(b.attached["pid"], fresh.pid)
        stray = child.spawn(["sleep", "600"], setsid=True)
        self.assertEqual(a.initialize(HOOKS)["response.subtype"], "success")  # still unused: it returns
        own = agent.child_of(d.sessions()["work"]["pid"])
        self.assertTrue(self.first_line(own)["request.hooks"])
        try:
            child.kill()
        except ProcessLookupError:
            pass  # another one was started in its place before it returned
        until(lambda: not alive(stray))  # its mark is known

    def test_none_is_started_while_memory_is_short(self):
        root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        path = os.path.join(root, "pressure")
        os.mkfifo(path)
        d, agent = self.warm(root=root, env={"MEMORY_PRESSURE_WATCH": path}, daemon={"memory_pressure": "yes"})
        spare = agent.child()
        with open(path, "wb") as f:
            f.write(b"x")
        spare.wait_gone()
        d.call("plenum_upgrade")
        d.attached("work", cwd="/tmp")  # a spare would have been started before
        self.assertEqual(d.call("plenum_metrics")["warm"], 0)


class ConfigTest(WarmCase):
    def test_needs_a_cwd(self):
        d, agent = self.warm(0)
        path = d.root + "/bad.conf"
        with open(path, "w") as f:
            f.write("[profile x]\ncommand = true\nwarm = 2\n")
        p = subprocess.run([build_file("plenumd"), "--check", "--config", path], capture_output=True, text=True)
        self.assertEqual(p.returncode, 78)
        self.assertIn(path + ":3: ", p.stderr)
        self.assertIn("cwd", p.stderr)


if __name__ == "__main__":
    unittest.main()
