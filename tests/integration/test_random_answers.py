# SPDX-License-Identifier: MIT
"""First answer wins, in any order: random steps of clients and child, and a judge (contract 5, 9.2).

Never two answers for one request, never the answer to another request, never an allow that no client gave, no request
left open. PLENUM_SEEDS: how many (150); PLENUM_SEED: only this one."""
import itertools
import os
import random
import unittest

from harness import Case, Client, PlenumError, cancel, dump, ok, parse, perm, until

SEEDS = int(os.environ.get("PLENUM_SEEDS", "150"))


class Player:
    """A client that answers at random, and remembers its answers by request."""

    def __init__(self, world, label):
        self.world, self.label = world, label
        self.client = None
        self.asked = {}    # id -> command, as it was asked on this connection
        self.done = []     # ids answered or withdrawn: for repeated and late answers

    def connect(self):
        self.client = Client(self.world.d.socket, self.label)
        self.world.d.clients.append(self.client)
        self.asked, self.done = {}, []
        self.client.attach(self.world.session, name=self.label, approve=self.world.dice.random() < 0.85)

    def leave(self):
        self.client.reset() if self.world.dice.random() < 0.5 else self.client.close()
        self.client = None

    def read(self):
        self.client.drain()
        for m in self.client.inbox:
            self.world.judge_line(self, m)
            if m["type"] == "control_request":
                self.asked[m["request_id"]] = m["request.input.command"]
            elif m["type"] == "control_cancel_request" and m["request_id"] in self.asked:
                self.done.append(m["request_id"])
        del self.client.inbox[:]

    def answer(self):
        self.read()
        w = self.world
        ids = list(self.asked)
        if not ids:
            return
        rid = w.dice.choice(ids if w.dice.random() < 0.8 or not self.done else self.done)
        kind = w.dice.choice(["allow", "allow", "deny", "deny", "bad", "error", "foreign"])
        token = "t%d" % next(w.tokens)
        if kind == "allow":
            body = {"behavior": "allow", "updatedInput": {"command": self.asked[rid], "token": token}}
        elif kind == "deny":
            body = {"behavior": "deny", "message": token}
        elif kind == "bad":
            body = {"behavior": "perhaps", "message": token}
        elif kind == "foreign":
            rid, body = w.dice.choice(["k-1", "req_1_00000000", rid + "x"]), {"behavior": "allow", "updatedInput": {"token": token}}
            self.client.send(ok(rid, body))
            return
        else:
            self.client.send({"type": "control_response", "response": {"subtype": "error", "request_id": rid, "error": token}})
            w.said[token] = (self.asked[rid], "error")
            self.done.append(rid)
            return
        if kind in ("allow", "deny"):
            w.said[token] = (self.asked[rid], kind)
        self.client.send(ok(rid, body))
        self.done.append(rid)


class World:
    def __init__(self, case, d, agent, seed):
        self.case, self.d, self.agent, self.seed = case, d, agent, seed
        self.dice = random.Random(seed)
        self.session = "seed-%d" % seed
        self.tokens = itertools.count()
        self.said = {}       # token -> (command, kind)
        self.commands = {}   # the child's id -> command
        self.withdrawn = set()
        self.n = 0
        self.players = [Player(self, "p%d" % i) for i in range(self.dice.choice([2, 3]))]

    def fail(self, text):
        raise AssertionError("PLENUM_SEED=%d: %s" % (self.seed, text))

    def judge_line(self, player, m):
        if m.obj is None:
            self.fail("a line that is no JSON: %r" % m)
        if m["type"] == "control_request" and m["request_id"] in self.commands:
            self.fail("the child's own id was shown: %r" % m)
        if m["type"] == "control_response" and m["response.subtype"] == "success" and m["response.response.behavior"]:
            self.fail("an answer came to a client: %r" % m)

    def step(self):
        live = [p for p in self.players if p.client]
        move = self.dice.random()
        if move < 0.30:
            lines = []
            for _ in range(self.dice.choice([1, 1, 2, 4])):
                self.n += 1
                k = "k-%d" % self.n
                self.commands[k] = "command %d of %d" % (self.n, self.seed)
                lines.append(perm(k, self.commands[k]))
            self.child.print(*lines)
        elif move < 0.38 and self.commands:
            k = self.dice.choice(list(self.commands))
            self.withdrawn.add(k)
            self.child.print(cancel(k))
        elif move < 0.44:
            self.child.print({"type": "stream_event", "n": self.n})
        elif move < 0.50 and live:
            self.dice.choice(live).leave()
        elif move < 0.58:
            away = [p for p in self.players if not p.client]
            if away:
                self.dice.choice(away).connect()
        elif move < 0.63 and live:
            p = self.dice.choice(live)
            p.client.ask("plenum_register", approve=self.dice.random() < 0.7)
        elif move < 0.67 and live:
            self.dice.choice(live).client.send(self.dice.choice([b"nonsense", dump(ok("none", {})), b'{"type":"keep_alive"}']))
        elif live:
            self.dice.choice(live).answer()

    def play(self):
        first = Client(self.d.socket, "first")
        self.d.clients.append(first)
        first.attach(self.session, role="observer")
        self.child = self.agent.child()
        for p in self.players[:2]:
            p.connect()
        for _ in range(self.dice.randint(15, 60)):
            self.step()
        self.dies = self.dice.random() < 0.1
        if self.dies:
            self.child.exit(0)
            first.event("child_exited")
        else:
            self.finish(first)
        for p in self.players:
            if p.client:
                p.read()
                p.client.close()
        first.close()
        del self.d.clients[:]
        self.judge()
        self.d.call("plenum_stop", session=self.session, how="kill", forget=True)

    def finish(self, first):
        """A last client denies all open requests; then none is left."""
        self.child.mark(first)
        last = Player(self, "last")
        last.client = Client(self.d.socket, "last")
        self.d.clients.append(last.client)
        pending = last.client.attach(self.session, approve=True)["pending"]
        for rid in pending:
            m = last.client.wait(type="control_request", request_id=rid)
            token = "t%d" % next(self.tokens)
            self.said[token] = (m["request.input.command"], "deny")
            last.client.send(ok(rid, {"behavior": "deny", "message": token}))

        def closed():
            got = {m["response.request_id"] for m in self.child.seen(type="control_response")}
            return all(k in got or k in self.withdrawn for k in self.commands)

        until(closed, what="PLENUM_SEED=%d: every request to be settled; open: %s" % (self.seed, sorted(
            set(self.commands) - self.withdrawn - {m["response.request_id"] for m in self.child.seen(type="control_response")})))
        left = parse(dump(self.d.call("plenum_pending", session=self.session)))
        if any(isinstance(v, list) and v for v in left.values()):
            self.fail("still pending: %r" % left)
        last.client.close()

    def judge(self):
        answers = {}
        for m in self.child.seen(type="control_response"):
            answers.setdefault(m["response.request_id"], []).append(m)
        for k, got in answers.items():
            if k not in self.commands:
                self.fail("an answer to nothing: %r" % got)
            if len(got) > 1:
                self.fail("two answers for %s: %r" % (k, got))
            body = got[0]["response.response"] or {}
            token = got[0]["response.error"] or body.get("message") or (body.get("updatedInput") or {}).get("token")
            kind = "error" if got[0]["response.subtype"] == "error" else body.get("behavior")
            if token not in self.said:
                self.fail("nobody said this: %r" % got[0])
            if self.said[token] != (self.commands[k], kind):
                self.fail("%s was meant for %r: %r" % (token, self.said[token], got[0]))
        for m in self.child.log:
            if m.obj is None:
                self.fail("the child got a line that is no JSON: %r" % m)


class RandomOrderTest(Case):
    def test_answers_in_random_order(self):
        only = os.environ.get("PLENUM_SEED")
        seeds = [int(only)] if only else range(SEEDS)
        d, agent = self.start()
        for seed in seeds:
            try:
                World(self, d, agent, seed).play()
            except (AssertionError, PlenumError, OSError) as e:
                raise AssertionError("PLENUM_SEED=%d: %s" % (seed, e)) from e


if __name__ == "__main__":
    unittest.main()
