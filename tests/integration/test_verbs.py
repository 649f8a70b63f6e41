# SPDX-License-Identifier: MIT
"""The plenum_ requests, one by one (contract 3.2, 9, 9.2)."""
import json
import os
import resource
import signal
import subprocess
import unittest

from harness import TIMEOUT, Case, Daemon, PlenumError, allow, build_file, deny, perm, request, until, user, RESULT


class EnvelopeTest(Case):
    def test_an_unknown_verb(self):
        _, _, child, a = self.open()
        e = self.assertRefused("bad_request", a.request, "plenum_nonsense")
        self.assertIn("plenum_nonsense", e.text)
        child.mark(a)
        self.assertNone(child.seen(lambda m: b"plenum" in m.raw))

    def test_unknown_members_are_named(self):
        d, agent = self.start()
        a = d.client()
        self.assertIn("sesion", self.assertRefused("bad_request", a.attach, sesion="typo").text)
        self.assertEqual(d.sessions(), {})

    def test_wrong_members_are_named(self):
        d, agent = self.start()
        cases = [("plenum_attach", {"session": 5}), ("plenum_attach", {"create": "maybe"}), ("plenum_attach", {"profile": 5}),
                 ("plenum_attach", {"cwd": 5}), ("plenum_attach", {"env": "A=1"}), ("plenum_attach", {"env": {"A": 1}}),
                 ("plenum_attach", {"env": {"A=B": "1"}}), ("plenum_attach", {"args": "x"}), ("plenum_attach", {"args": [1]}),
                 ("plenum_attach", {"resume": 5}), ("plenum_attach", {"fork": "yes"}), ("plenum_attach", {"role": 1}),
                 ("plenum_status", {"session": 5}), ("plenum_pending", {"session": []}), ("plenum_stop", {"session": "s", "how": "softly"}),
                 ("plenum_stop", {"session": "s", "forget": "yes"}), ("plenum_logs", {"session": 1})]
        d.attached("s")
        agent.child()
        for verb, members in cases:
            a = d.client()
            e = self.assertRefused("bad_request", a.request, verb, **members)
            self.assertIn([m for m in members if verb == "plenum_attach" or m != "session" or len(members) == 1][0], e.text, (verb, members))
            a.close()
        self.assertEqual(list(d.sessions()), ["s"])

    def test_no_such_session(self):
        d, agent = self.start()
        a = d.client()
        for verb in ("plenum_status", "plenum_pending", "plenum_stop", "plenum_hibernate", "plenum_logs", "plenum_queue"):
            e = self.assertRefused("no_such_session", a.request, verb, session="nope")
            self.assertIn("nope", e.text)

    def test_answers_come_in_order(self):
        d, agent = self.start()
        a = d.client()
        ids = [a.ask("plenum_hello") for _ in range(200)]
        got = [a.wait(type="control_response")["response.request_id"] for _ in ids]
        self.assertEqual(got, ids)

    def test_answers_and_events_are_json_with_the_members_of_the_contract(self):
        d, agent = self.start()
        a = d.attached('na"me\\ \u00e9', name='cl"ient\u2028')
        agent.child().print(b'stray "quotes" \\ and \x01 control\n', RESULT)
        a.wait(type="result")
        self.assertNone(a.seen(lambda m: m.obj is None))
        for m in a.events():
            self.assertEqual(m["session"], 'na"me\\ \u00e9')
            self.assertIsInstance(m["event"], str)

    def test_hello_names_a_client_that_attaches_implicitly(self):
        d, _ = self.start(mode={"user": True})
        c = d.client()
        c.request("plenum_hello", name="me", protocol=1)
        c.send(user("hi"))
        self.assertEqual(c.event("turn_ended")["clients"][0]["name"], "me")

    def test_prefix_alone_does_not_reach_the_child(self):
        d, agent = self.start()
        c = d.client()
        self.assertRefused("bad_request", c.request, "plenum_")
        c.attach("work")
        self.assertRefused("bad_request", c.request, "plenum_")
        self.assertNone(agent.child().seen(request__subtype="plenum_"))


class AskingTest(Case):
    def test_hello(self):
        d, agent = self.start()
        got = d.call("plenum_hello")
        self.assertEqual(got["protocol"], 1)
        self.assertRegex(got["version"], r"^[0-9]+\.[0-9]+")
        self.assertTrue(got["capabilities"])
        self.assertTrue(got["limits"])
        self.assertEqual((got["peer"]["uid"], got["peer"]["pid"]), (os.getuid(), os.getpid()))
        self.assertEqual(got["peer"]["gid"], os.getgid())

    def test_list(self):
        d, agent = self.start()
        self.assertEqual(d.call("plenum_list")["sessions"], [])
        a = d.attached("work")
        d.attached("work", role="observer")
        child = agent.child()
        child.print({"type": "system", "subtype": "init", "session_id": "c-1"}, perm("k-1"))
        a.wait(type="control_request")
        got = d.sessions()["work"]
        self.assertEqual((got["profile"], got["cwd"], got["conversation_id"], got["pid"]), ("agent", os.getcwd(), "c-1", child.pid))
        self.assertEqual((got["attachments"], got["pending"], got["state"]), (2, 1, "asking"))

    def test_mode_and_model_are_listed(self):
        d, agent = self.start()
        a = d.attached("s")
        self.assertEqual([d.sessions()["s"][k] for k in ("permission_mode", "model")], [None, None])
        child = agent.child()
        child.print({"type": "system", "subtype": "init", "session_id": "c", "permissionMode": "plan", "model": "m-1"})
        child.mark(a)
        for entry in (d.sessions()["s"], d.call("plenum_status", session="s")):
            self.assertEqual([entry[k] for k in ("permission_mode", "model")], ["plan", "m-1"])

    def test_status_of_the_daemon(self):
        d, agent = self.start()
        d.attached()
        got = d.call("plenum_status")
        text = str(got)
        self.assertIn(d.socket, text)
        self.assertIn("agent", text)

    def test_status_of_a_session(self):
        d, agent = self.start()
        a = d.attached(name="me")
        child = agent.child()
        child.mark(a)
        got = d.call("plenum_status", session="s")
        self.assertEqual((got["session"], got["state"] in ("idle", "starting", "busy")), ("s", True))
        mine = [c for c in got["clients"] if c.get("name") == "me"]
        self.assertEqual(len(mine), 1, got)
        self.assertEqual((mine[0]["uid"], mine[0]["pid"]), (os.getuid(), os.getpid()))
        self.assertTrue(mine[0]["program"])
        self.assertIn("lag", str(mine[0]))
        self.assertIn("bytes", str(mine[0]))

    def test_pending(self):
        d, _, child, a = self.open()
        child.print(perm("k-1", "one command"))
        rid = a.wait(type="control_request")["request_id"]
        for got in (d.call("plenum_pending", session="s"), d.call("plenum_pending"), a.request("plenum_pending")):
            text = str(got)
            self.assertIn("Bash", text)
            self.assertIn("'s'", text)
            self.assertIn("one command", text)
        a.send(allow(rid, "one command"))
        child.answer("k-1")
        self.assertNotIn("Bash", str(d.call("plenum_pending")))

    def test_pending_has_what_always_would_remember(self):
        d, agent, child, a = self.open()
        rules = [{"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch:*"}], "weight": 1.0}]
        asked = json.dumps(perm("q1", agent_id="agent-7", permission_suggestions=rules)).replace("1.0", "1.00")
        child.print(asked.encode() + b"\n")
        a.wait(request__subtype="can_use_tool")
        entry = d.call("plenum_pending")["pending"][0]
        self.assertEqual((entry["agent_id"], entry["suggestions"]), ("agent-7", rules))
        rid = a.ask("plenum_pending")
        self.assertIn(b'"suggestions":[{"type": "addRules"', a.wait(response__request_id=rid).raw)
        child.print({"type": "control_cancel_request", "request_id": "q1"})
        a.wait(type="control_cancel_request")
        child.print(perm("q2", permission_suggestions=None), perm("q3", permission_suggestions=["x" * 65536]))
        a.wait(request__tool_use_id="toolu_q3")
        self.assertEqual(["suggestions" in e for e in d.call("plenum_pending")["pending"]], [False, False])

    def test_metrics(self):
        d, agent = self.start()
        a = d.attached()
        agent.child().mark(a)
        got = d.call("plenum_metrics")
        self.assertTrue(got)
        self.assertGreater(got["loop_turns"], 0)
        self.assertGreater(got["turn_longest_us"], 0)
        self.assertLessEqual(got["turn_p99_us"], got["turn_longest_us"])

    def test_subscribe(self):
        d, agent = self.start()
        w, silent = d.client(), d.client()
        w.request("plenum_subscribe")
        a = d.attached("one", name="me")
        child = agent.child()
        w.event("session_created", session="one")
        a.send(user("x", uuid="u"))
        w.event("session_state", session="one", state="busy")
        child.print(perm("k-1"), {"type": "assistant"})
        w.event("session_state", session="one", state="asking")
        a.send(allow(a.wait(type="control_request")["request_id"]))
        w.event("session_state", session="one", state="busy")
        child.print(dict(RESULT, user_message_uuids=["u"]))
        w.event("session_state", session="one", state="idle")
        w.sync()
        self.assertNone(w.seen(type="assistant") + w.seen(type="control_request"))
        silent.sync()
        self.assertNone(silent.events())

    def test_a_subscriber_that_is_attached_gets_each_once(self):
        d, agent = self.start()
        a = d.attached("one")
        a.request("plenum_subscribe")
        d.attached("two")
        agent.child()
        a.event("session_created", session="two")
        a.send(user("x"))
        a.event("session_state", session="one", state="busy")
        a.sync()
        self.assertEqual(len(a.events("session_state", session="one", state="busy")), 1)

    def test_status_of_a_silent_child(self):
        """C69: time since the last output, age of the prompt, open requests."""
        d, _, child, a = self.open()
        child.prompted(a, "x", uuid="u")
        child.print({"type": "assistant"}, perm("k-1"))
        a.wait(type="control_request")
        until(lambda: d.call("plenum_status", session="s")["output_ms"] > 50)
        status = d.call("plenum_status", session="s")
        self.assertEqual((status["state"], status["pending"]), ("asking", 1))
        self.assertGreaterEqual(status["prompts"][0]["since_ms"], status["output_ms"])
        self.assertGreater(d.sessions()["s"]["idle_ms"], 0)


class ChangingTest(Case):
    def test_register(self):
        d, agent = self.start()
        a = d.attached(name="old")
        child = agent.child()
        a.request("plenum_register", name="new", tag=True, partial=False)
        child.print({"type": "stream_event"}, {"type": "x"})
        m = a.wait(type="x")
        self.assertIsInstance(m["plenum_seq"], int)
        self.assertNone(a.seen(type="stream_event"))
        self.assertIn("new", str(d.call("plenum_status", session="s")["clients"]))
        for bad in ({"role": "x"}, {"approve": 1}, {"types": 1}, {"on_lag": "x"}):
            self.assertIn(list(bad)[0], self.assertRefused("bad_request", a.request, "plenum_register", **bad).text)

    def test_the_answer_comes_before_what_follows(self):
        d, agent = self.start()
        a, b = d.attached(), d.attached(role="observer")
        agent.child().print(perm("k-1"))
        rid = a.wait(type="control_request")["request_id"]
        for approve, follows in ((True, "control_request"), (False, "control_cancel_request")):
            asked = b.ask("plenum_register", approve=approve)
            b.wait(type=follows)
            own = [m["type"] for m in b.log if m["type"] == follows or m["response.request_id"] == asked]
            self.assertEqual(own, ["control_response", follows])
        a.send(deny(rid))

    def test_detach_and_attach_again(self):
        d, agent = self.start()
        a = d.attached("one")
        agent.child()
        a.send(request("1", "mcp_status"))
        a.request("plenum_detach")
        self.assertRefused("not_attached", a.request, "plenum_detach")
        self.assertEqual(d.sessions()["one"]["attachments"], 0)
        a.attach("two")
        self.assertEqual(d.sessions()["two"]["attachments"], 1)
        agent.child().mark(a)

    def test_stop_by_name_and_of_ones_own(self):
        d, agent = self.start()
        a, b = d.attached("one"), d.attached("two")
        d.call("plenum_stop", session="one")
        a.event("child_exited", wanted=True)
        b.request("plenum_stop")
        b.event("child_exited", wanted=True)

    def test_rename(self):
        d, agent = self.start()
        a, watcher = d.attached("old"), d.client()
        watcher.request("plenum_subscribe")
        d.attached("other")
        agent.child()
        agent.child()
        self.assertRefused("busy", a.request, "plenum_rename", name="new")
        self.stop_child(d, a)
        for name, code in (("other", "name_taken"), ("old", "name_taken"), ("", "bad_name"), ("a\nb", "bad_name"),
                           ("x" * 256, "bad_name"), (None, "bad_request")):
            self.assertRefused(code, a.request, "plenum_rename", **({} if name is None else {"name": name}))
        self.assertRefused("no_such_session", d.call, "plenum_rename", session="nope", name="new")
        self.assertEqual(a.request("plenum_rename", name="new"), {"session": "new", "previous": "old"})
        for c in (a, watcher):
            c.event("changed", what="name", value="new", session="old")
        self.assertEqual(set(d.sessions()), {"new", "other"})
        a.send(user("after", uuid="u1"))
        child = agent.child()
        self.assertEqual(child.env["PLENUM_CHILD"], "new")
        child.wait(type="user", uuid="u1")
        a.request("plenum_detach")
        d.stop()
        d.start()
        self.assertEqual(set(d.sessions()), {"new", "other"})

    def stop_child(self, d, a):
        a.request("plenum_stop", how="kill")
        d.wait_state("old", "asleep")

    def test_observers_may_ask_but_not_stop(self):
        d, agent = self.start()
        d.attached()
        o = d.attached(role="observer")
        child = agent.child()
        o.request("plenum_status", session="s")
        o.request("plenum_list")
        self.assertTrue(child.pid)

    def test_shutdown(self):
        d, agent = self.start()
        a = d.attached()
        agent.child()
        d.call("plenum_shutdown")
        a.event("shutting_down")
        d.ended(0)
        d.process = None

    def test_how_takes_only_its_two_words(self):
        d, _ = self.start()
        c = d.client()
        self.assertRefused("bad_request", c.request, "plenum_shutdown", how="gently")
        self.assertRefused("bad_request", c.request, "plenum_shutdown", how="")
        c.attach("work")
        self.assertRefused("bad_request", c.request, "plenum_stop", how="gently")
        self.assertRefused("no_such_session", c.request, "plenum_stop", session="other", how="gently")


class ReloadTest(Case):
    def rewrite(self, d, old, new):
        with open(d.conf) as f:
            text = f.read()
        self.assertIn(old, text)
        with open(d.conf, "w") as f:
            f.write(text.replace(old, new))

    def test_no_process_can_read_the_files(self):
        d, _ = self.start()
        a = d.client()
        a.hello()
        before = resource.prlimit(d.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(d.pid, resource.RLIMIT_NOFILE, (d.settled_fds(), before[1]))
        self.assertRefused("busy", a.request, "plenum_reload")
        resource.prlimit(d.pid, resource.RLIMIT_NOFILE, before)
        self.assertTrue(a.request("plenum_reload")["reloaded"])

    def test_a_new_profile(self):
        d, agent = self.start()
        a = d.client()
        self.assertRefused("no_such_profile", a.attach, "x", profile="fresh")
        self.rewrite(d, "[profile agent]", "[profile fresh]\ncommand = %s\n[profile agent]" % agent.command)
        d.call("plenum_reload")
        self.assertEqual(a.attach("x", profile="fresh")["profile"], "fresh")

    def test_a_broken_file_keeps_the_old_one(self):
        d, agent, child, a = self.open()
        for broken in ("nonsense = 1", "permission_wait = soon", "no equals sign", "stop_grace = 5 parsecs"):
            self.rewrite(d, "[profile agent]\n", "[profile agent]\n%s\n" % broken)
            with self.assertRaises(PlenumError) as e:
                d.call("plenum_reload")
            self.assertIn(d.conf, e.exception.text)
            line = open(d.conf).read().split("\n").index(broken) + 1
            self.assertIn(str(line), e.exception.text)
            child.mark(a)
            d.client().attach()
            self.rewrite(d, "%s\n" % broken, "")
        d.call("plenum_reload")

    def test_every_mistake(self):
        d, agent = self.start()
        at = open(d.conf).read().split("\n").index("[profile agent]") + 1
        self.rewrite(d, "[profile agent]\n", "[profile agent]\nnonsense = 1\nowner_grace = soon\n[nonsense]\n[profile agent]\n")
        with self.assertRaises(PlenumError) as e:
            d.call("plenum_reload")
        self.assertIn("%s:%d: " % (d.conf, at + 1), e.exception.text)
        self.assertIn("(and 2 more", e.exception.text)
        d.process.send_signal(signal.SIGHUP)
        for line in (at + 1, at + 2, at + 3):
            until(lambda: d.log().count("%s:%d: " % (d.conf, line)) == 2)
        self.assertEqual(d.client().attach("x")["profile"], "agent")

    def test_by_signal(self):
        d, agent = self.start()
        self.rewrite(d, "[profile agent]", "[profile fresh]\ncommand = %s\n[profile agent]" % agent.command)
        d.process.send_signal(signal.SIGHUP)

        def there():
            c = d.client()
            try:
                c.attach("x", profile="fresh")
                return True
            except PlenumError:
                return False
            finally:
                c.close()

        until(there)
        self.rewrite(d, "[profile fresh]", "[profile fresh]\nnonsense = 1")
        d.process.send_signal(signal.SIGHUP)
        until(lambda: "nonsense" in d.log())
        d.call("plenum_hello")

    def test_running_sessions_keep_their_profile(self):
        d, _, child, a = self.open(profile={"control_timeout": "30s"})
        self.rewrite(d, "control_timeout = 30s", "control_timeout = 100ms")
        d.call("plenum_reload")
        a.send(request("1", "mcp_status"))
        child.reply(child.request("mcp_status"))
        self.assertEqual(a.answer("1")["response.subtype"], "success")
        b = d.attached("new")
        self.assertRefused("timeout", b.request, "mcp_status")


class CheckTest(Case):
    def check(self, text, *args):
        d = self.track(Daemon({}, start=False))
        with open(d.conf, "w") as f:
            f.write(text)
        p = subprocess.run([build_file("plenumd"), "--check", *args], env=d.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, timeout=TIMEOUT)
        return p.returncode, p.stdout, d.conf

    def test_good(self):
        status, out, _ = self.check("[daemon]\nlog_level = debug\n[limits]\ntape_bytes = 4M\n[profile x]\ncommand = cat \"a b\" 'c'\n"
                                    "idle_sleep = never\npermission_wait = 5min\n")
        self.assertEqual(status, 0, out)

    def test_bad(self):
        for text, line, word in (("[daemon]\nnonsense = 1\n", 2, "nonsense"), ("[nonsense]\nx = 1\n", 1, "nonsense"),
                                 ("[daemon]\n\ndefault_profile = nope\n", 3, "nope"), ("[profile x]\ncommand = cat 'open\n", 2, "command"),
                                 ("[limits]\ntape_bytes = many\n", 2, "tape_bytes"), ("[daemon]\nlog_level = loud\n", 2, "log_level"),
                                 ("[profile x]\ncommand = cat\nprompts = both\n", 3, "prompts"), ("[profile x]\ncommand = cat\nprivate = maybe\n", 3, "private"),
                                 ("[daemon]\nallow_uids = no-such-user-here\n", 2, "no-such-user-here"), ("[limits]\nchild_line = 5X\n", 2, "child_line")):
            status, out, conf = self.check(text)
            self.assertEqual(status, 78, text + out)
            self.assertIn(conf, out)
            self.assertIn(":%d" % line, out, text)
            self.assertIn(word, out)

    def test_every_mistake(self):
        text = "[daemon]\nnonsense\nlog_level = loud\n[profile x]\ncommand = cat 'open\nallow_tools = (a) Read (b)\n"
        status, out, conf = self.check(text)
        self.assertEqual(status, 78)
        self.assertEqual([line.split(":")[:3] for line in out.splitlines()], [["plenumd", " " + conf, str(n)] for n in (2, 3, 5, 6, 6)], out)

    def test_wrong_usage_names_what_is_wrong(self):
        for args, word in ((["--log-format", "xml"], "plenumd: --log-format xml: not text or json"), (["word"], "plenumd: unexpected argument: word"),
                           (["--log-level", "loud"], "plenumd: --log-level loud: not error, warn, info or debug"), (["--frob"], "'--frob'")):
            status, out, _ = self.check("", *args)
            self.assertEqual(status, 64, out)
            self.assertIn(word, out)
            self.assertIn("usage: plenumd", out)

    def test_a_bad_file_is_no_start(self):
        d = self.track(Daemon({"daemon": {"nonsense": "1"}}, start=False))
        p = d.launch()
        self.assertEqual(p.wait(TIMEOUT), 78)
        self.assertIn(d.conf, d.log())
        self.assertFalse(os.path.exists(d.socket))

    def test_config_option(self):
        d = self.track(Daemon({"daemon": {"nonsense": "1"}}, start=False))
        with open(d.root + "/good.conf", "w") as f:
            f.write("[daemon]\nlog_level = debug\n")
        d.args = ["--config", d.root + "/good.conf"]
        d.start()
        d.call("plenum_hello")

    def test_config_option_of_a_relative_path(self):
        """The same file at a reload, which another process reads."""
        d = self.track(Daemon({}, start=False))
        with open(d.root + "/mine.conf", "w") as f:
            f.write("[daemon]\n")
        d.args = ["--config", "mine.conf"]
        d.wrap = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', d.root)
        d.start()
        with open(d.root + "/mine.conf", "a") as f:
            f.write("[profile cat]\ncommand = cat\n")
        d.call("plenum_reload")
        d.attached("one", profile="cat")

    def test_drop_ins(self):
        d = self.track(Daemon({"daemon": {"max_sessions": "5"}}, start=False))
        os.mkdir(d.config + "/plenum/plenum.conf.d")
        with open(d.config + "/plenum/plenum.conf.d/10-x.conf", "w") as f:
            f.write("[daemon]\nmax_sessions = 1\n[profile cat]\ncommand = cat\n")
        d.start()
        d.attached("one", profile="cat")
        self.assertRefused("too_many", d.client().attach, "two", profile="cat")

    def test_wrong_usage(self):
        d = self.track(Daemon({}, start=False))
        p = subprocess.run([build_file("plenumd"), "--nonsense"], env=d.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=TIMEOUT)
        self.assertEqual(p.returncode, 64, p.stdout)


if __name__ == "__main__":
    unittest.main()
