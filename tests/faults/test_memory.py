#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Let each single allocation of ordinary work fail once, one after the other.

    tests/faults/test_memory.py PROGRAM WORK [FIRST [STEP [LAST]]]

PROGRAM is plenumd-faults; WORK is turn, attach, sleep, queue, warm, upgrade or guard: the functions work_* below. For N =
FIRST, FIRST + STEP, ...: the same work is done, and its Nth allocation fails. Then: the daemon lives, or it has ended
with 71 and logged the reason (as a last resort); each client was answered, refused, or closed; no line was wrong or
doubled, and none is missing without a notice; no tool ran that a guard has to deny. The same work right after it,
without a fault, is not affected. It ends when the work has fewer allocations than N.

PLENUM_BUILD is the build directory. The last line is "N passed, N failed".
"""
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "integration"), os.path.join(os.path.dirname(HERE), "chaos"), HERE]

from board import Board  # noqa: E402
from harness import TIMEOUT, Client, Daemon, Timeout, allow, build_file, ok, until, user  # noqa: E402
from peer import Guard, Peer  # noqa: E402

NO_MEMORY = 71
PATIENCE = max(TIMEOUT, 60)  # seconds until an expected line counts as missing: sanitizers check every call
HOOK_TIMEOUT = 20  # seconds: the answering client is slow, too; but less than PATIENCE


class Wrong(AssertionError):
    pass


class Gone(Exception):
    """The daemon closed this connection, or has ended."""


class Watcher(Client):
    """A client that checks each line: wrong, doubled and missing ones are detected here."""

    def begin(self):
        self.last, self.answered, self.gap = None, set(), False
        return self

    def take(self, data):
        before = len(self.log)
        super().take(data)
        for m in self.log[before:]:
            self.look(m)

    def look(self, m):
        if not isinstance(m.obj, dict):
            raise Wrong("%s: a line that is no object: %r" % (self.label, m))
        seq = m["plenum_seq"]
        if seq is not None:
            if self.last is not None and seq != self.last + 1:
                raise Wrong("%s: line %d came after %d" % (self.label, seq, self.last))
            self.last = seq
        if m["event"] == "gap":
            self.gap, self.last = True, m["to"]
        if m["type"] == "control_response":
            rid = m["response.request_id"]
            if rid in self.answered:
                raise Wrong("%s: answered twice: %r" % (self.label, m))
            self.answered.add(rid)

    def get(self, fits, what):
        """Return the first match; Gone if the connection ends first; Wrong if none comes."""
        deadline = time.monotonic() + PATIENCE
        seen = 0
        while True:
            for m in self.inbox[seen:]:
                seen += 1
                if fits(m):
                    self.inbox.remove(m)
                    return m
            if self.eof:
                raise Gone(self.label)
            if time.monotonic() > deadline:
                raise Wrong("%s: nothing came of %s; last lines:\n    %s" % (
                    self.label, what, "\n    ".join(map(repr, self.log[-6:]))))
            self.fill(0.05)

    def try_request(self, subtype, **members):
        """Return the answer's body, or None if refused."""
        try:
            rid = self.ask(subtype, **members)
        except OSError:
            raise Gone(self.label) from None
        m = self.get(lambda m: m["type"] == "control_response" and m["response.request_id"] == rid, subtype)
        return (m["response.response"] or {}) if m["response.subtype"] == "success" else None

    def say(self, obj):
        try:
            self.send(obj)
        except OSError:
            raise Gone(self.label) from None


class Sweep:
    def __init__(self, program, work):
        self.work = getattr(self, "work_" + work)
        self.root = tempfile.mkdtemp(prefix="pl-mem-", dir="/tmp")
        self.board = Board(self.root + "/board")
        command = "%s -p --input-format stream-json --output-format stream-json --verbose --permission-prompt-tool stdio " \
                  "--include-partial-messages --replay-user-messages" % build_file("plenum-fakeagent")
        self.daemon = Daemon({"daemon": {"default_profile": "fake"}, "limits": {"lag_wait": "1s"},
                              **{"profile " + name: dict({"command": command, "owner_grace": "50ms", "stop_grace": "400ms", "cwd": self.root + "/home"}, **keys)
                                 for name, keys in self.PROFILES.items() if name in ("fake", work)}},
                             root=self.root, start=False, env={"PLENUM_FAULTS_FILE": self.root + "/board"})
        self.daemon.program = program
        self.made = self.ended = 0
        self.forbidden = None  # a file that must not be written
        self.daemon.start()

    def client(self, label):
        try:
            c = Watcher(self.daemon.socket, label)
        except OSError:
            raise Gone(label) from None
        self.daemon.clients.append(c)
        return c.begin()

    PROFILES = {"fake": {}, "queue": {"prompts": "queue"}, "warm": {"warm": 1}}

    ENDS = {"result": lambda m: m["type"] == "result" and m["parent_tool_use_id"] is None,
            "error": lambda m: m["event"] == "error", "gap": lambda m: m["event"] == "gap",
            "child_exited": lambda m: m["event"] == "child_exited"}

    def asked_or_over(self, m):
        return m["type"] == "control_request" or any(fits(m) for fits in self.ENDS.values())

    # --- the work. strict: everything must succeed

    def new_name(self):
        self.made += 1
        return "s%d" % self.made

    def attach(self, client, session, **members):
        body = client.try_request("plenum_attach", session=session, tag=True, **members)
        if body is None:
            raise Gone("attach")
        return body

    def ends(self, a, text, uuid, strict):
        """A turn to its end."""
        outcome = self.turn(a, text, uuid)
        if strict and outcome != "result":
            raise Wrong("the turn without a fault ended with %s" % outcome)
        return outcome == "result"

    def forget(self, a, name):
        if a.try_request("plenum_stop", how="kill", forget=True, session=name) is not None:
            a.get(lambda m: m["event"] in ("session_removed", "gap") or m["code"] == "internal", "the stop")

    def has(self, body, what, strict):
        if strict and not what(body):
            raise Wrong("without a fault came %s" % body)

    def await_trust(self, client, strict):
        """A client whose origin could not be found is looked at again with each of its lines."""
        def own():
            return ((client.try_request("plenum_hello") or {}).get("peer") or {}).get("peer") == "own"
        if strict:
            until(own, PATIENCE, "the client's origin")
        else:
            own()

    def work_attach(self, strict):
        """A session is made with all that an attach can ask for; another client joins it."""
        a, b, name = self.client("driver"), self.client("other"), self.new_name()
        self.await_trust(a, strict)
        body = a.try_request("plenum_attach", session=name, cwd=self.root + "/home", args=["--verbose"],
                             env={"ONE": "1", "LONG": "x" * 2000},  # the table of sessions keeps its text
                             resume="0b5ad0de-0000-4000-8000-%012d" % self.made, name="driver", wake=False)
        self.has(body, lambda x: x and x["created"] and x["cwd"] == self.root + "/home", strict)
        self.attach(b, name, args=["--other"], env={"TWO": "2"})
        self.forget(b, name)
        a.close()
        b.close()

    def work_sleep(self, strict):
        """A session goes to sleep, is replayed from a line on, and wakes by a prompt and by an attach."""
        name = self.new_name()
        a, b = self.client("driver"), self.client("reader")
        self.attach(a, name, name="driver", wake=True)
        self.ends(a, "first", "u-1" + name, strict)
        self.sleep(a, strict)
        body = self.attach(b, name, role="observer", replay={"after_uuid": "u-1" + name})
        self.has(body, lambda x: not x["replay_cut"], strict)
        if self.ends(a, "second", "u-2" + name, strict) and strict:
            for _ in range(2):
                b.get(lambda m: m["type"] == "result", "both turns, at the other client")
        self.sleep(a, strict)
        b.try_request("plenum_detach")
        b.try_request("plenum_attach", session=name, role="observer", replay={"after_uuid": "u-3" + name}, wake=True, tag=False)
        self.ends(a, "third", "u-3" + name, strict)
        self.forget(a, name)
        a.close()
        b.close()

    def sleep(self, a, strict):
        a.inbox.clear()
        body = a.try_request("plenum_hibernate")
        if body and body["stopping"]:
            a.get(lambda m: m["event"] in ("child_exited", "gap") or m["code"] == "internal", "the sleep")
        self.has(body, lambda x: x and x["stopping"], strict)

    def work_queue(self, strict):
        """Prompts are queued, listed, cancelled, and passed on."""
        name = self.new_name()
        a, b = self.client("driver"), self.client("other")
        self.attach(a, name, name="driver", profile="queue", wake=True)
        self.attach(b, name, name="other")
        a.say(user('@tool Bash {"command":"true"}@', uuid="u-1" + name))
        asked = a.get(self.asked_or_over, "the question, while which the others wait")
        b.say(user("held", uuid="u-2" + name))
        b.say(user("taken back", uuid="u-3" + name))
        body = b.try_request("plenum_queue")
        b.try_request("cancel_async_message", message_uuid="u-3" + name)
        self.go_on(a, asked)
        b.get(lambda m: (m["event"] == "turn_ended" and "u-2" + name in m["uuids"]) or
              m["event"] in ("error", "gap", "child_exited") or (m["event"] == "changed" and "u-2" + name in (m["value"], m["was"])),
              "the turn of the prompt that was held")
        self.has(body, lambda x: [p["state"] for p in x["prompts"]] == ["held", "held"], strict)
        self.forget(a, name)
        a.close()
        b.close()

    def work_warm(self, strict):
        """A child is prestarted, given, returned, and given to the next."""
        a, b = self.client("driver"), self.client("other")
        cwd = self.root + "/home"
        a.try_request("plenum_reload")
        self.spare_is_ready(a, strict)
        one, two = self.new_name(), self.new_name()
        self.attach(a, one, name="driver", profile="warm", cwd=cwd)
        a.try_request("initialize", hooks={"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h"], "timeout": HOOK_TIMEOUT}]})
        self.attach(b, two, name="other", profile="warm", cwd=cwd)
        self.ends(a, '@tool Bash {"command":"true"}@', "u-" + one, strict)
        self.ends(b, "hello", "u-" + two, strict)
        self.forget(a, one)
        self.forget(b, two)
        a.close()
        b.close()

    def spare_is_ready(self, client, strict):
        def ready():
            body = client.try_request("plenum_status", daemon=True)
            return body and any(p["name"] == "warm" and p["warm"] for p in body["profiles"])
        try:
            until(ready, PATIENCE if strict else 0.6, "a spare")
        except Timeout:
            if strict:
                raise

    def work_upgrade(self, strict):
        """Another binary takes over while a request is open, and then without any."""
        name = self.new_name()
        a, b = self.client("driver"), self.client("watcher")
        self.attach(a, name, name="driver", wake=True)
        self.attach(b, name, role="observer", replay="all")
        a.try_request("initialize", hooks={"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h"], "timeout": HOOK_TIMEOUT}]})
        a.say(user('@tool Bash {"command":"true"}@', uuid="u-" + name))
        m = a.get(self.asked_or_over, "the question")
        self.has(b.try_request("plenum_upgrade"), lambda x: x and x["upgraded"], strict)
        if m["type"] == "control_request":
            outcome = self.go_on(a, m)
            if strict and outcome != "result":
                raise Wrong("the turn without a fault ended with %s" % outcome)
        b.try_request("plenum_pending")
        self.forget(a, name)
        a.close()
        b.close()

    def work_guard(self, strict):
        """A guard denies, and the daemon denies for it when it is absent."""
        name = self.new_name()
        path = "%s/forbidden-%s" % (self.root, name)
        write = '@tool Write {"file_path":"%s","content":"x"}@' % path
        a, g = self.client("driver"), self.client("guard")
        self.attach(a, name, name="driver", wake=True)
        self.attach(g, name, name="guard", approve=False)
        body = g.try_request("initialize", hooks=Guard.TABLE)
        if body is not None and (body.get("plenum") or {}).get("hooks_applied") is not False:
            self.forbidden = path
        self.has(body, lambda x: self.forbidden, strict)
        a.say(user(write, uuid="u-1" + name))
        denied, outcome = self.both(a, g)
        self.has(denied, bool, strict)
        if outcome == "result":
            g.close()
            self.ends(a, write, "u-2" + name, strict)
        self.forget(a, name)
        a.close()
        g.close()

    def both(self, a, g):
        """Answer the requests to either until the turn is over: return whether a hook was called, and how the turn
        ended."""
        denied, deadline = False, time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for c in (a, g):
                while c.inbox:
                    m = c.inbox.pop(0)
                    if m["request.subtype"] == "hook_callback":
                        denied = True
                        c.say(ok(m["request_id"], Guard.DENY))
                    elif c is g and m["event"] == "error" and m["request_id"] and m["code"] == "internal":
                        c.say(ok(m["request_id"], Guard.DENY))  # it was lost, and is still open
                    elif m["type"] == "control_request":
                        c.say(allow(m["request_id"], "true"))
                    elif c is a and any(fits(m) for fits in self.ENDS.values()):
                        return denied, next(k for k, fits in self.ENDS.items() if fits(m))
                if c.eof and c is a:
                    raise Gone(c.label)
                if not c.eof:
                    c.fill(0.02)
        raise Wrong("the turn of %s did not end; last lines:\n    %s" % (
            a.label, "\n    ".join(map(repr, a.log[-6:] + g.log[-6:]))))

    def no_tool_ran(self):
        if self.forbidden and os.path.exists(self.forbidden):
            path, self.forbidden = self.forbidden, None
            raise Wrong("a tool ran that a guard has to deny: %s" % path)
        self.forbidden = None

    def work_turn(self, strict):
        name = self.new_name()
        a, b = self.client("driver"), self.client("watcher")
        if a.try_request("plenum_attach", session=name, name="driver", tag=True, wake=True) is None:
            raise Gone("attach")
        b.try_request("plenum_attach", session=name, role="observer", replay="all", tag=True)
        hooks = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h"], "timeout": HOOK_TIMEOUT}]}
        a.try_request("initialize", hooks=hooks, sdkMcpServers=["srv"])
        outcome = self.turn(a, '@tool Bash {"command":"true"}@ @long 3000@', "u-%s" % name)
        if strict and outcome != "result":
            raise Wrong("the turn without a fault ended with %s" % outcome)
        if strict:
            b.get(lambda m: m["type"] == "result", "the turn, at the other client")
        a.try_request("set_model", model="other")
        a.try_request("plenum_list")
        a.try_request("plenum_status")
        b.try_request("plenum_pending")
        a.say(b'{"type":"user",')
        a.get(lambda m: m["event"] == "error" and m["code"] in ("bad_line", "internal"), "a bad line")
        b.try_request("plenum_detach")
        if a.try_request("plenum_stop", how="kill", forget=True, session=name) is not None:
            a.get(lambda m: m["event"] in ("session_removed", "gap") or m["code"] == "internal", "the stop")
        a.close()
        b.close()

    def turn(self, a, text, uuid):
        a.say(user(text, uuid=uuid))
        return self.go_on(a)

    def go_on(self, a, m=None):
        """Answer all requests until the turn is over: return how."""
        while True:
            m = m or a.get(self.asked_or_over, "the prompt")
            if m["type"] != "control_request":
                return next(k for k, f in self.ENDS.items() if f(m))
            sub, rid = m["request.subtype"], m["request_id"]
            if sub == "can_use_tool":
                a.say(allow(rid, "true"))
            else:
                a.say(ok(rid, {"mcp_response": Peer.mcp(m["request.message"])} if sub == "mcp_message" else {}))
            m = None

    # --- one allocation

    def one(self, n):
        """Return true if the work has an nth allocation."""
        before = self.board.failed("malloc")
        self.board.arm("malloc:@%d" % n)
        try:
            self.work(False)
        except Gone:
            pass
        self.board.arm("")
        fired = self.board.failed("malloc") > before
        self.no_tool_ran()
        self.after()
        self.no_tool_ran()
        return fired

    def after(self):
        """The daemon lives or has ended properly; it does its work; no state of the trial is left."""
        for c in self.daemon.clients:
            c.close()
        self.daemon.clients.clear()
        self.again_if_ended(0.01)
        try:
            self.work(True)
        except Gone as e:
            if not self.again_if_ended(PATIENCE):
                raise Wrong("without a fault: %s was closed or refused" % e) from None
            self.work(True)
        for name in list(self.daemon.sessions()):
            self.daemon.call("plenum_stop", session=name, how="kill", forget=True)
        until(lambda: not self.daemon.sessions(), PATIENCE, "sessions to go")
        spares = 0 if self.work != self.work_warm else 3 * 2  # one ending and one running
        until(lambda: self.daemon.fd_count() <= self.daemon.fds + spares, PATIENCE, "descriptors to be given back: %s" % self.daemon.fd_list())

    def again_if_ended(self, seconds):
        """True: it had ended, as allowed, and runs again."""
        try:
            status = self.daemon.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        if status != NO_MEMORY or "memory" not in self.daemon.log():
            raise Wrong("plenumd ended with %d:\n%s" % (status, self.daemon.log_tail()))
        self.ended += 1
        for c in self.daemon.clients:
            c.close()
        self.daemon.clients.clear()
        self.daemon.start()
        return True

    def run(self, first, step, last):
        passed, failed, n = 0, 0, first
        while n <= last:
            try:
                if not self.one(n):
                    break
                passed += 1
            except (Wrong, Timeout, AssertionError) as e:
                failed += 1
                print("allocation %d: %s" % (n, e), flush=True)
                if os.environ.get("PLENUM_TEST_KEEP"):
                    print(self.daemon.log_tail())
                self.board.arm("")
                for c in self.daemon.clients:
                    c.close()
                self.daemon.clients.clear()
                if failed >= 20:
                    break
                if self.daemon.process.poll() is None:
                    self.daemon.process.kill()
                    self.daemon.process.wait()
                self.daemon.start()
            n += step
        self.daemon.stop()  # the address sanitizer detects leaks
        print("up to allocation %d; the daemon ended %d times for want of memory" % (n, self.ended))
        print("%d passed, %d failed" % (passed, failed), flush=True)
        return 1 if failed or not passed else 0


def main():
    numbers = [int(w) for w in sys.argv[3:]] + [1, 1, 1 << 30][len(sys.argv) - 3:]
    sweep = Sweep(os.path.abspath(sys.argv[1]), sys.argv[2])
    try:
        sweep.work(True)
        return sweep.run(*numbers)
    finally:
        sweep.daemon.destroy()


if __name__ == "__main__":
    sys.exit(main())
