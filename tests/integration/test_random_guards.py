# SPDX-License-Identifier: MIT
"""Random steps around a guard, and a judge: no tool runs without a yes of its guard and of an approver.

The test plays the CLI: it keeps the hook table of its newest initialize, calls each matching hook before a tool, then
requests the permission, and records the tools it ran. Around it: a guard's owner that comes and goes, an approver, a
driver of another uid, a process of the agent, a left-over of an earlier child, and kill -9 of the daemon.

PLENUM_SEEDS: how many (25); PLENUM_SEED: only this one."""
import itertools
import os
import random
import socket
import sys
import unittest

from harness import Case, Client, PlenumError, Timeout, ok, request, until, user

SEEDS = int(os.environ.get("PLENUM_SEEDS", "25"))
OTHER_UID = 12345
SESSION = "guarded"
HOOKS = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}
OWN_ONLY = ("set_permission_mode", "set_model", "mcp_set_servers", "apply_flag_settings", "set_cwd", "read_file",
            "update_environment_variables")

# Connects to the daemon and passes the connection to the test; stays alive until the test closes it.
RELAY = r"""
import os, socket, sys
if sys.argv[3] == "detached":
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
f = socket.socket(socket.AF_UNIX)
f.connect(sys.argv[2])
while f.recv(1) == b"+":
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(sys.argv[1])
    except OSError:
        f.send(b"-")
        continue
    socket.send_fds(f, [b"+"], [s.fileno()])
    s.close()
"""


class Relay:
    """A process below the child that makes connections for the test, also long after the child's end."""

    def __init__(self, world, d, child, detached):
        path = "%s/relay-%d" % (d.root, len(world.relays))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(1)
        listener.settimeout(10)
        env = ["/usr/bin/env", "-i"] if detached else []
        child.spawn(env + [sys.executable, "-I", "-S", "-c", RELAY, d.socket, path, "detached" if detached else "direct"],
                    setsid=detached)
        self.sock, _ = listener.accept()
        self.sock.settimeout(10)
        listener.close()

    def connect(self, label):
        """Return a Client, or None if the relay is gone: a stop ends left-overs."""
        try:
            self.sock.sendall(b"+")
            data, fds, _, _ = socket.recv_fds(self.sock, 1, 1)
        except OSError:
            return None
        if not fds:
            return None
        c = Client.__new__(Client)
        c.label, c.helper, c.sock = label, None, socket.socket(fileno=fds[0])
        c.log, c.inbox, c.parts, c.eof, c.sent, c.verbs = [], [], [], False, [], {}
        return c

    def close(self):
        self.sock.close()


class Cli:
    """The model of the CLI for one child: reads its input in order, and acts like the CLI."""

    def __init__(self, world, child):
        self.world, self.child = world, child
        self.read = 0
        self.table = []     # callback ids of PreToolUse
        self.hooks = {}     # open hook callback: request id -> tool number
        self.asks = {}      # open permission: request id -> tool number
        self.wants = {}     # tool number -> set of hook request ids not answered yet
        self.turns = []     # tool numbers whose turn has not ended
        self.uuids = {}     # tool number -> the uuid of its prompt

    def pump(self):
        with self.child.cond:
            lines = self.child.log[self.read:]
            self.read += len(lines)
        for m in lines:
            self.take(m)
        return bool(lines)

    def take(self, m):
        kind = m["type"]
        if kind == "control_request":
            self.world.judge_request(m)
            self.on_request(m)
        elif kind == "control_response":
            self.on_answer(m)
        elif kind == "user":
            self.world.judge_prompt(m)
            self.begin(m)
        elif kind not in ("control_cancel_request", "keep_alive"):
            self.world.fail("the child got %r" % m)

    def on_request(self, m):
        body = {}
        if m["request.subtype"] == "initialize":
            hooks = m["request.hooks"]
            body = {"commands": [], "claude_code_version": "2.1.332"}
            if hooks is not None:
                self.replace([i for e in hooks.get("PreToolUse", []) for i in e["hookCallbackIds"]])
                body["hooks_applied"] = True
        self.child.print(ok(m["request_id"], body))

    def replace(self, table):
        """A new table withdraws the open callbacks and refuses their tools."""
        self.table = table
        for rid, n in list(self.hooks.items()):
            self.child.print({"type": "control_cancel_request", "request_id": rid})
            del self.hooks[rid]
            self.end(n)

    def begin(self, m):
        n = next(self.world.tools)
        sid = "conv-%d" % self.world.seed
        self.turns.append(n)
        self.world.began[n] = self.world.guard_since is not None
        self.child.print(dict(m.obj, isReplay=True, session_id=sid),
                         {"type": "system", "subtype": "init", "session_id": sid, "tools": ["Bash"]})
        self.uuids[n] = m["uuid"]
        rids = {"h-%d-%s" % (n, i): i for i in self.table}
        self.wants[n] = set(rids)
        for rid, callback in rids.items():
            self.hooks[rid] = n
            self.child.print(request(rid, "hook_callback", callback_id=callback, tool_use_id="toolu_%d" % n, input={
                "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "tool %d" % n}}))
        self.go_on(n)

    def go_on(self, n):
        if n in self.turns and not self.wants[n]:
            self.asks["k-%d" % n] = n
            self.child.print(request("k-%d" % n, "can_use_tool", tool_name="Bash", tool_use_id="toolu_%d" % n,
                                     input={"command": "tool %d" % n}, permission_suggestions=[]))

    def on_answer(self, m):
        rid = m["response.request_id"]
        body = m["response.response"] or {}
        if rid in self.hooks:
            n = self.hooks.pop(rid)
            output = body.get("hookSpecificOutput") or {}
            if m["response.subtype"] == "success" and output.get("permissionDecision") != "deny" and not body.get("decision"):
                self.wants[n].discard(rid)
                self.go_on(n)
            else:
                self.end(n)
        elif rid in self.asks:
            n = self.asks.pop(rid)
            if body.get("behavior") == "allow":
                self.world.ran(n)
            self.end(n)

    def end(self, n):
        if n in self.turns:
            self.turns.remove(n)
            self.child.print({"type": "result", "subtype": "success", "is_error": False, "result": "ok",
                              "session_id": "conv-%d" % self.world.seed, "user_message_uuids": [self.uuids[n]]})


class World:
    def __init__(self, case, d, agent, seed):
        self.case, self.d, self.agent, self.seed = case, d, agent, seed
        self.dice = random.Random(seed)
        self.tools, self.uuids = itertools.count(1), itertools.count(1)
        self.guard_since = None          # the guard's owner got success
        self.began = {}                  # tool -> was the guard in force when it began?
        self.guard_yes, self.person_yes = set(), set()
        self.forbidden = set()           # uuids of prompts that must not run
        self.cli = self.guard = self.person = None
        self.relays = []
        self.strangers = []              # [client, may it send own-peer lines?, refused initialize]

    def fail(self, text):
        raise AssertionError("PLENUM_SEED=%d: %s" % (self.seed, text))

    # --- the judge

    def ran(self, n):
        if n not in self.person_yes:
            self.fail("tool %d ran without a yes of a person" % n)
        if self.began[n] and n not in self.guard_yes:
            self.fail("tool %d ran without a yes of its guard" % n)

    def judge_request(self, m):
        subtype = m["request.subtype"]
        if subtype in OWN_ONLY or subtype == "mcp_call":
            self.fail("%s of a peer that may not send it reached the child: %r" % (subtype, m))
        if subtype == "initialize" and (m["request.agents"] or m["request.mcpServers"]):
            self.fail("members of a refused initialize reached the child: %r" % m)

    def judge_prompt(self, m):
        if m["uuid"] in self.forbidden:
            self.fail("a prompt ran after a refused initialize: %r" % m)

    # --- the world's end of the wires

    def pump(self):
        """The CLI reads its input; the guard and the approver record their requests."""
        if self.cli:
            self.cli.pump()
        for c in [c for c in (self.guard, self.person) if c] + [s[0] for s in self.strangers]:
            c.drain()
            for m in [m for m in c.inbox if m["type"] == "control_request"]:
                if c not in (self.guard, self.person):
                    self.fail("%s was asked: %r" % (c.label, m))

    def wait(self, check, what):
        def turn():
            self.pump()
            return check()
        return until(turn, what="PLENUM_SEED=%d: %s" % (self.seed, what))

    def answer_of(self, c, rid):
        def found():
            c.drain()
            return c.eof or next((m for m in c.log if m["type"] == "control_response" and m["response.request_id"] == rid), None)
        m = self.wait(found, "an answer to %s of %s" % (rid, c.label))
        return None if m is True else m

    def ask(self, c, subtype, **members):
        return self.answer_of(c, c.ask(subtype, **members))

    def adopt(self):
        """The newest child becomes the played CLI."""
        self.cli = Cli(self, self.agent.child())

    # --- moves

    def come_guard(self):
        c = self.d.client("guard")
        if not self.ask(c, "plenum_attach", session=SESSION, name="guardian", approve=False)["response.response"]:
            self.fail("the guard's owner cannot attach")
        self.guard = c
        m = self.ask(c, "initialize", hooks=HOOKS)
        applied = m and m["response.subtype"] == "success" and m["response.response.plenum.hooks_applied"] is not False
        if applied and self.guard_since is None:
            self.guard_since = True

    def come_person(self):
        self.person = self.d.client("person")
        self.ask(self.person, "plenum_attach", session=SESSION, name="person", approve=True)

    def leave(self, which):
        c = getattr(self, which)
        c.reset() if self.dice.random() < 0.5 else c.close()
        setattr(self, which, None)

    def answer_guard(self):
        asked = [m for m in self.guard.inbox if m["type"] == "control_request"]
        if not asked:
            return
        m = self.dice.choice(asked)
        self.guard.inbox.remove(m)
        n = int(m["request.input.tool_input.command"].split()[1])
        if self.dice.random() < 0.7:
            self.guard_yes.add(n)
            self.guard.send(ok(m["request_id"], {}))
        else:
            self.guard.send(ok(m["request_id"], {"hookSpecificOutput": {
                "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}}))

    def answer_person(self):
        asked = [m for m in self.person.inbox if m["type"] == "control_request"]
        if not asked:
            return
        m = self.dice.choice(asked)
        self.person.inbox.remove(m)
        command = m["request.input.command"] or ""
        n = int(command.split()[1]) if command.startswith("tool ") else None  # else another client's: never allowed
        if n and self.dice.random() < 0.7:
            self.person_yes.add(n)
            self.person.send(ok(m["request_id"], {"behavior": "allow", "updatedInput": {"command": "tool %d" % n}}))
        else:
            self.person.send(ok(m["request_id"], {"behavior": "deny", "message": "no"}))

    def prompt(self, c, forbidden=False):
        uuid = "u-%d-%d" % (self.seed, next(self.uuids))
        if forbidden:
            self.forbidden.add(uuid)
        c.send(user("run a tool", uuid=uuid))

    def come_stranger(self):
        kind = self.dice.choice(["driver", "agent", "leftover"])
        if kind == "driver":
            c = self.d.client("driver", uid=OTHER_UID, gid=OTHER_UID)
        else:
            if not self.relays or self.dice.random() < 0.3:
                self.relays.append(Relay(self, self.d, self.cli.child, kind == "leftover"))
            c = self.dice.choice(self.relays).connect(kind)
            if c is None:
                return
            self.d.clients.append(c)
        m = self.ask(c, "plenum_attach", session=SESSION, name=self.dice.choice(["guardian", "person", "x"]))
        if m and m["response.subtype"] == "success":
            self.strangers.append([c, False])
        else:
            c.close()

    def attack(self):
        stranger = self.dice.choice(self.strangers)
        c, refused = stranger
        move = self.dice.choice(["hooks", "members", "request", "execute", "answer", "register", "stop", "prompt", "both"])
        if move in ("hooks", "members", "both"):
            members = self.dice.choice([{"agents": {"a": {"description": "d", "prompt": "p"}}},
                                        {"mcpServers": {"m": {"command": "true"}}}]) if move == "members" else {"hooks": HOOKS}
            rid = c.ask("initialize", **members)
            if move == "both":
                self.prompt(c, forbidden=True)
            m = self.answer_of(c, rid)
            if m and m["response.subtype"] != "error":
                self.fail("%s may %r: %r" % (c.label, members, m))
            stranger[1] = refused or "agents" not in members
        elif move == "request":
            m = self.ask(c, self.dice.choice(OWN_ONLY), mode="bypassPermissions", path="/etc/passwd", servers={}, cwd="/", settings={})
            if m and m["response.code"] != "not_allowed":
                self.fail("%s was not refused: %r" % (c.label, m))
        elif move == "execute" and self.dice.random() < 0.5:
            c.send({"type": "bash_command", "command": "id"})
        elif move == "execute":
            rid = c.ask("mcp_call", tool="mcp__m__t", arguments={})
            m = self.answer_of(c, rid) if refused else None  # else an approver decides
            if m and m["response.subtype"] != "error":
                self.fail("%s executed: %r" % (c.label, m))
        elif move == "answer":
            for other in (self.guard, self.person):
                for asked in [m for m in other.log if m["type"] == "control_request"][-2:] if other else []:
                    c.send(ok(asked["request_id"], {"behavior": "allow"}))
        elif move == "register":
            m = self.ask(c, "plenum_register", approve=True, name="guardian")
            if m and m["response.subtype"] != "error":
                self.fail("%s is an approver: %r" % (c.label, m))
        elif move == "stop":
            m = self.ask(c, "plenum_stop", session=SESSION, how="kill", forget=True)
            if m and m["response.code"] != "not_allowed":
                self.fail("%s stopped the session: %r" % (c.label, m))
        else:
            self.prompt(c, forbidden=stranger[1])

    def crash(self):
        """kill -9 of the daemon; its child ends with it. Earlier registrations are in force in the next one."""
        self.d.kill9()
        for c in list(self.d.clients):
            c.close()
        del self.d.clients[:]
        self.guard = self.person = self.cli = None
        self.strangers = []
        self.d.start()
        c = self.d.client("waker")
        rid = c.ask("plenum_attach", session=SESSION, role="observer", wake=True)
        self.adopt()
        self.answer_of(c, rid)

    def step(self):
        moves = []
        moves += [self.come_guard] if not self.guard else [self.answer_guard] * 4 + [lambda: self.leave("guard")]
        moves += [self.come_person] if not self.person else [self.answer_person] * 4 + [lambda: self.leave("person")]
        if self.person:
            moves += [lambda: self.prompt(self.person)] * 3
        moves += [self.come_stranger] + ([self.attack] * 5 if self.strangers else [])
        self.pump()
        if self.dice.random() < 0.02:
            self.crash()
        else:
            self.dice.choice(moves)()

    def play(self):
        self.person = self.d.client("person")
        rid = self.person.ask("plenum_attach", session=SESSION, name="person", approve=True)
        self.adopt()
        self.answer_of(self.person, rid)
        for _ in range(self.dice.randint(20, 60)):
            self.step()
        self.pump()
        for relay in self.relays:
            relay.close()
        for c in list(self.d.clients):
            c.close()
        del self.d.clients[:]
        self.d.call("plenum_stop", session=SESSION, how="kill", forget=True)


@unittest.skipUnless(os.getuid() == 0, "needs root, to connect as another user")
class RandomOrderTest(Case):
    def test_guard_in_random_order(self):
        only = os.environ.get("PLENUM_SEED")
        for seed in [int(only)] if only else range(SEEDS):
            d, agent = self.start(mode={"init": "manual"}, daemon={"allow_uids": "%d" % OTHER_UID})
            d.open_to_all()
            try:
                World(self, d, agent, seed).play()
            except (AssertionError, PlenumError, Timeout, OSError) as e:
                raise AssertionError("PLENUM_SEED=%d: %s" % (seed, e)) from e


if __name__ == "__main__":
    unittest.main()
