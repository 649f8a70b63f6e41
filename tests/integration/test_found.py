# SPDX-License-Identifier: MIT
"""What tests/chaos and tests/faults have found, each as small as it can be."""
import ctypes
import os
import resource
import unittest

from harness import Case, ok, perm, request, until, user


class FoundTest(Case):
    def test_a_folder_that_is_no_utf8(self):
        d, agent = self.start()
        folder = d.root.encode() + b"/\xff\xfe"
        os.mkdir(folder)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(folder)
        a = d.client()
        answer = a.attach("s")
        os.chdir(before)
        self.assertTrue(answer["cwd"].startswith(d.root + "/"), answer["cwd"])
        self.assertEqual(list(d.sessions()), ["s"])

    def test_a_giant_request_to_the_daemon(self):
        d, agent = self.start()
        a = d.client()
        a.raw(b'{"type":"control_request","request_id":"1","request":{"subtype":"plenum_attach","args":[' + b"0," * (5 << 20) +
              b"0]}}\n")
        self.assertEqual(a.answer("1")["response.code"], "too_long")
        a.hello()

    def test_a_giant_request_in_any_spelling(self):
        """Whoever waits for an answer gets one, however the line was printed and whatever its id is."""
        d, agent = self.start(limits={"client_line": "64K"})
        a = d.attached("s")
        pad = b'"request": {"subtype": "x", "d": "' + b"x" * 70000 + b'"}}\n'
        for head, rid in ((b'{"type": "control_request", "request_id": "spaced", ', "spaced"),
                          (b'{"type":"control_request","request_id":17,', 17),
                          (b'{ "type" : "control_request" , "request_id" : -3 , ', -3)):
            a.raw(head + pad)
            self.assertEqual(a.answer(rid)["response.code"], "too_long")
        a.raw(b'{"type": "control_request", "request_id": 1.5, ' + pad)  # no id that anybody may use
        self.assertIsNone(a.error("too_long")["request_id"])

    def test_a_result_over_the_limit(self):
        d, agent = self.start(limits={"child_line": "64K"})
        a = d.attached("s")
        child = agent.child()
        a.send(user("one", uuid="u-1"))
        child.wait(type="user")
        child.print({"type": "system", "subtype": "init", "session_id": "c"}, dict(user("one", uuid="u-1"), isReplay=True),
                    {"duration_ms": 1, "type": "result", "result": "x" * 70000, "user_message_uuids": ["u-1"]})
        a.error("too_long")
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-1"])
        d.wait_state("s", "idle")

    def test_a_program_name_that_the_kernel_cut(self):
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

    def test_who_leaves_is_answered(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.attached("s")
        child = agent.child()
        first = a.ask("initialize", hooks=None)
        child.request("initialize")
        second = a.ask("set_model", model="m")
        a.request("plenum_detach")
        for rid in (first, second):
            self.assertEqual(a.answer(rid)["response.code"], "not_attached")

    def test_half_close_waits_for_the_answer_to_initialize(self):
        d, agent = self.start(mode={"init": "manual"})
        a = d.attached("s")
        child = agent.child()
        rid = a.ask("initialize", hooks=None)
        m = child.request("initialize")
        a.half_close()
        d.call("plenum_hello")
        child.reply(m, {"commands": []})
        self.assertEqual(a.answer(rid)["response.subtype"], "success")
        a.wait_eof()

    def test_a_command_that_an_old_cli_neither_echoes_nor_names(self):
        d, agent = self.start(mode={"init": "197"})
        a = d.attached("s")
        child = agent.child()
        a.send(user("one", uuid="u-1"))
        child.wait(type="user")
        echo = dict(user("one", uuid="u-1"), isReplay=True)
        child.print({"type": "system", "subtype": "init", "session_id": "c"}, echo, {"type": "result", "session_id": "c"})
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-1"])
        a.send(user("/clear", uuid="u-2"))
        child.wait(type="user", uuid="u-2")
        child.print({"type": "system", "subtype": "init", "session_id": "d"}, {"type": "result", "session_id": "d"})
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-2"])
        d.wait_state("s", "idle")

    def test_a_prompt_that_a_hook_has_blocked_in_an_old_cli(self):
        d, agent = self.start(mode={"init": "197"})
        a = d.attached("s")
        child = agent.child()
        a.send(user("one", uuid="u-1"), user("two", uuid="u-2"))
        child.wait(type="user", uuid="u-2")
        child.print({"type": "system", "subtype": "init", "session_id": "c"}, dict(user("one", uuid="u-1"), isReplay=True),
                    {"type": "result", "session_id": "c", "num_turns": 1},
                    {"type": "system", "subtype": "init", "session_id": "c"}, {"type": "result", "session_id": "c", "num_turns": 0})
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-1"])
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-2"])
        d.wait_state("s", "idle")

    def test_merged_prompts_that_a_hook_has_blocked_in_an_old_cli(self):
        """It echoes all but the last one, before init; a turn that echoes its prompt behind init takes no other along."""
        d, agent = self.start(mode={"init": "197"})
        a = d.attached("s")
        child = agent.child()
        a.send(*[user("x", uuid="u-%d" % i) for i in range(5)])
        child.wait(type="user", uuid="u-4")
        start, none = {"type": "system", "subtype": "init", "session_id": "c"}, {"type": "result", "session_id": "c", "num_turns": 0}

        def echo(i):
            return dict(user("x", uuid="u-%d" % i), isReplay=True)

        child.print(echo(0), echo(1), start, none)
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-0", "u-1", "u-2"])
        child.print(start, echo(3), none)
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-3"])
        child.mark(a)
        self.assertEqual(d.state_of("s"), "busy")
        child.print(start, echo(4), dict(none, num_turns=1))
        self.assertEqual(a.event("turn_ended")["uuids"], ["u-4"])
        d.wait_state("s", "idle")

    def one_runs_and_one_waits(self, a, b, child):
        a.send(user("one", uuid="u-1"))
        b.send(user("two", uuid="u-2"))
        for uuid in ("u-1", "u-2"):
            child.wait(type="user", uuid=uuid)
        child.print(dict(user("one", uuid="u-1"), isReplay=True), {"type": "system", "subtype": "init", "session_id": "c"})

    def test_a_prompt_that_an_old_cli_has_thrown_away(self):
        d, agent = self.start()
        a, b = d.attached("s"), d.attached("s", name="b")
        child = agent.child()
        self.one_runs_and_one_waits(a, b, child)
        b.send(request("i", "interrupt", cancel_queued=True))
        taken_back = child.request("cancel_async_message")  # before the turn ends, and the child takes it up
        interrupt = child.request("interrupt")
        self.assertLess(child.log.index(taken_back), child.log.index(interrupt))
        child.reply(interrupt)
        child.reply(taken_back, {"cancelled": True})
        told = a.event("changed", what="prompt_cancelled")
        self.assertEqual((told["value"], told["by.name"]), ("u-2", "b"))
        child.print({"type": "result", "session_id": "c", "user_message_uuids": ["u-1"]})
        d.wait_state("s", "idle")

    def test_who_takes_back_by_an_interrupt_is_named(self):
        """The child's account comes before its answers; an earlier connection's prompt is that client's, too."""
        d, agent = self.start()
        a, b = d.attached("s", name="a"), d.attached("s", name="b")
        child = agent.child()
        self.one_runs_and_one_waits(a, b, child)
        b.close()
        a.event("detached")
        b = d.attached("s", name="b")
        a.send(request("m", "set_model", model="x"))
        b.send(request("i", "interrupt", cancel_queued=True))
        child.request("interrupt")
        child.print({"type": "command_lifecycle", "command_uuid": "u-2", "state": "cancelled"})
        told = a.event("changed", what="prompt_cancelled")
        self.assertEqual((told["value"], told["by.name"]), ("u-2", "b"))

    def test_a_prompt_that_its_client_takes_back(self):
        """2.1.332 tells of it before it answers; 2.1.197 does not say in its answer which one it was."""
        lifecycle = {"type": "command_lifecycle", "command_uuid": "u-2", "state": "cancelled"}
        for name, before, more in (("new", [lifecycle], {"message_uuid": "u-2"}), ("old", [], {})):
            with self.subTest(name):
                d, agent = self.start()
                a, b = d.attached(name, name="a"), d.attached(name)
                child = agent.child()
                a.send(user("one", uuid="u-1"), user("two", uuid="u-2"))
                child.wait(type="user", uuid="u-2")
                child.print(dict(user("one", uuid="u-1"), isReplay=True),
                            {"type": "system", "subtype": "init", "session_id": "c"})
                a.send(request("c", "cancel_async_message", message_uuid="u-2"))
                asked = child.request("cancel_async_message")
                child.print(*before)
                child.reply(asked, {"cancelled": True, **more})
                self.assertTrue(a.answer("c")["response.response.cancelled"])
                told = b.event("changed", what="prompt_cancelled")
                self.assertEqual((told["value"], told["by"]["name"]), ("u-2", "a"))
                child.print({"type": "result", "session_id": "c", "user_message_uuids": ["u-1"]})
                d.wait_state(name, "idle")
                self.assertEqual(len(b.events("changed")), 1)

    def test_more_prompts_than_a_result_has_names_for(self):
        """2.1.332 names the first 63 of a turn and the last."""
        d, agent = self.start()
        a, b = d.attached("s"), d.attached("s")
        child = agent.child()
        uuids = ["u-%d" % i for i in range(100)]
        named = uuids[:63] + uuids[-1:]
        a.send(*(user("p", uuid=u) for u in uuids))
        child.wait(type="user", uuid=uuids[-1])
        init = {"type": "system", "subtype": "init", "session_id": "c", "user_message_uuids": named}
        child.print(*(dict(user("p", uuid=u), isReplay=True) for u in uuids[:-1]), init,
                    dict(user("p", uuid=uuids[-1]), isReplay=True),
                    {"type": "result", "session_id": "c", "user_message_uuids": named},
                    {"type": "system", "subtype": "session_state_changed", "state": "idle"})
        for event in ("turn_started", "turn_ended"):
            self.assertEqual(sorted(b.event(event)["uuids"]), sorted(uuids))
        d.wait_state("s", "idle")
        a.sync()
        self.assertFalse(a.events("error"))

    def test_whose_turn_it_is_in_an_old_cli(self):
        """Only what it echoes, behind the deltas, says so; a turn that nobody asked for echoes nothing."""
        d, agent = self.start(mode={"init": "197"})
        a, b = d.attached("s", name="a"), d.attached("s", name="b")
        child = agent.child()
        start, end = {"type": "system", "subtype": "init", "session_id": "c"}, {"type": "result", "session_id": "c"}
        text = {"type": "assistant", "message": {"role": "assistant", "content": []}}
        for i, (client, name) in enumerate(((a, "a"), (b, "b"), (a, "a"))):
            uuid = "u-%d" % i
            client.send(user("x", uuid=uuid))
            child.wait(type="user", uuid=uuid)
            if i == 1:
                child.print(start, text)
                self.assertEqual(a.event("turn_started")["uuids"], [])
                child.print(end)
                a.event("turn_ended")
            child.print(start, {"type": "stream_event", "event": {"type": "message_start"}},
                        dict(user("x", uuid=uuid), isReplay=True), text, end)
            started = a.event("turn_started")
            self.assertEqual((started["uuids"], [c["name"] for c in started["clients"]]), ([uuid], [name]))
            self.assertEqual(a.event("turn_ended")["uuids"], [uuid])

    def test_a_prompt_that_the_conversation_has_already(self):
        d, agent = self.start(profile={"prompts": "queue"})
        a, b = d.attached("s"), d.attached("s")
        child = agent.child()
        c = d.attached("s")
        a.send(user("one", uuid="u-1"))
        child.wait(type="user", uuid="u-1")
        b.send(user("two", uuid="u-2"))
        until(lambda: d.call("plenum_queue", session="s")["prompts"], what="the prompt that is held")
        c.send(user("one", uuid="u-3"))
        c.half_close()
        child.print(dict(user("one", uuid="u-1"), isReplay=True),
                    {"type": "command_lifecycle", "command_uuid": "u-1", "state": "completed"},
                    {"type": "system", "subtype": "session_state_changed", "state": "idle"})
        self.assertEqual(a.error("duplicate_request")["uuid"], "u-1")
        child.wait(type="user", uuid="u-2")
        child.print({"type": "system", "subtype": "session_state_changed", "state": "running"},
                    {"type": "system", "subtype": "init", "session_id": "c", "user_message_uuids": ["u-2"]},
                    dict(user("two", uuid="u-2"), isReplay=True),
                    {"type": "result", "session_id": "c", "user_message_uuids": ["u-2"]},
                    {"type": "system", "subtype": "session_state_changed", "state": "idle"})
        self.assertEqual(b.event("turn_ended")["uuids"], ["u-2"])
        child.wait(type="user", uuid="u-3")
        child.print(dict(user("one", uuid="u-3"), isReplay=True),
                    {"type": "system", "subtype": "session_state_changed", "state": "idle"})
        self.assertEqual(c.error("duplicate_request")["uuid"], "u-3")
        c.wait_eof()
        d.wait_state("s", "idle")
        self.assertNone(b.events("error"))

    def test_a_turn_that_ends_without_a_result(self):
        d, agent = self.start()
        a = d.attached("s")
        child = agent.child()
        a.send(user("one", uuid="u-1"))
        a.half_close()
        child.wait(type="user", uuid="u-1")
        child.print({"type": "system", "subtype": "session_state_changed", "state": "running"},
                    {"type": "system", "subtype": "init", "session_id": "c", "user_message_uuids": ["u-1"]},
                    dict(user("one", uuid="u-1"), isReplay=True),
                    {"type": "system", "subtype": "session_state_changed", "state": "idle"})
        ended = a.event("turn_ended")
        self.assertEqual((ended["uuids"], ended["is_error"]), (["u-1"], True))
        a.wait_eof()
        d.wait_state("s", "idle")
        self.assertNone(a.events("error"))

    def test_the_table_is_written_when_the_disk_is_free_again(self):
        d, agent = self.start()
        state = d.state + "/plenum"
        d.attached("s")
        until(lambda: "\"s\"" in self.table(state), what="the table")
        os.mkdir(state + "/sessions.json.new")  # nothing can be written beside it
        d.attached("t")
        until(lambda: "cannot write" in d.log(), what="the complaint")
        os.rmdir(state + "/sessions.json.new")
        until(lambda: "\"t\"" in self.table(state), what="the table again")

    def test_a_limit_on_the_size_of_files_is_a_full_disk(self):
        d, agent = self.start()
        state = d.state + "/plenum"
        limit = os.path.getsize(d.log_path) + 8192
        before = resource.prlimit(d.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(d.pid, resource.RLIMIT_FSIZE, (limit, before[1]))
        for i in range(8):  # each small enough for what starts its child
            d.attached("s%d" % i, env={"LONG": "x" * (limit // 4)})
        until(lambda: "cannot write" in d.log(), what="the complaint")
        agent.child()
        resource.prlimit(d.pid, resource.RLIMIT_FSIZE, before)
        d.attached("t")
        until(lambda: "\"t\"" in self.table(state), what="the table")
        self.assertIn("\"s7\"", self.table(state))

    @staticmethod
    def table(state):
        try:
            with open(state + "/sessions.json") as f:
                return f.read()
        except OSError:
            return ""

    def test_a_change_that_is_confirmed_after_its_time(self):
        d, agent = self.start()
        a = d.attached("s")
        child = agent.child()
        for model in ("late-1", "late-2"):  # the id is free again at once
            a.send(request("x", "set_model", model=model, plenum_timeout_ms=1))
            got = child.request("set_model")
            self.assertEqual(a.answer("x")["response.code"], "timeout")
            child.reply(got, {"model": model})
            self.assertEqual(a.event("changed", what="model")["value"], model)
            self.assertEqual(d.client().attach("s")["model"], model)

    def test_an_answer_is_not_for_the_next_child(self):
        d, agent = self.start(mode={"eof": "ignore"}, profile={"stop_grace": "20s"})
        a = d.attached("s")
        child = agent.child()
        a.initialize()
        child.print(perm("k-1"))
        rid = a.wait(type="control_request", request__subtype="can_use_tool")["request_id"]
        a.ask("plenum_stop", session="s", how="graceful")
        child.event("eof")
        a.send(user("for the next one", uuid="u-1"))
        child.print({"type": "control_request", "request_id": "k-2", "request": {"subtype": "mcp_message", "server_name": "x"}})
        child.mark(a)
        a.send(ok(rid, {"behavior": "allow", "updatedInput": {}}))
        a.error("child_exited", request_id=rid)
        child.exit(0)
        child = agent.child()
        child.wait(type="user", uuid="u-1")
        child.print({"type": "system", "subtype": "init", "session_id": "c"})
        child.mark(a)
        self.assertEqual(child.seen(type="control_response"), [])

    def test_who_is_waited_for_loses_no_long_line(self):
        d, agent = self.start(limits={"tape_bytes": "256K"})
        a = d.attached("s", on_lag="wait", tag=True)
        child = agent.child()
        child.print(*[{"type": "x", "n": n, "text": "y" * 700000} for n in range(12)])
        got = [a.wait(lambda m: m["type"] == "x" or m["event"] == "gap") for _ in range(12)]
        self.assertEqual([m["n"] for m in got], list(range(12)))

    def test_who_came_when_descriptors_were_short_may_answer_later(self):
        d, agent = self.start()
        d.attached("s")
        child = agent.child()
        d.settled_fds()
        before = resource.prlimit(d.pid, resource.RLIMIT_NOFILE)
        used = {int(name.split(":")[0]) for name in d.fd_list()}
        free = min(set(range(len(used) + 1)) - used)
        resource.prlimit(d.pid, resource.RLIMIT_NOFILE, (free + 1, before[1]))  # nothing is left to look into /proc with
        b = d.attached("s")
        resource.prlimit(d.pid, resource.RLIMIT_NOFILE, before)
        child.print({"type": "control_request", "request_id": "k-1", "request": {"subtype": "strange"}})
        b.send(ok(b.wait(type="control_request")["request_id"], {"a": 1}))
        self.assertEqual(child.answer("k-1")["response.response"], {"a": 1})


if __name__ == "__main__":
    unittest.main()
