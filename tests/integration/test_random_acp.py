# SPDX-License-Identifier: MIT
"""Random sessions of several clients in the Agent Client Protocol, with the test as the agent and the judge: no request
is answered twice, by the wrong one, or by an answer that is none, and none stays open."""
import os
import random

from acp import OPTIONS, AcpCase, chunk, error, permission, result, rpc, selected

SEEDS = range(int(os.environ.get("PLENUM_TEST_SEEDS", "6")))
STEPS = 60
VALID = [o["optionId"] for o in OPTIONS]


class Game:
    """One random session. Ids: the agent's asks are numbers from 500, a client's prompts begin with its name."""

    def __init__(self, case, rng, queue):
        self.case, self.rng = case, rng
        self.d, _, self.child, first = case.open(profile={"prompts": "queue" if queue else "pass"})
        self.clients, self.gone = [first], []
        first.label, first.mine = "p0", []
        self.asks = {}      # the agent's id: the answers sent to it, in their order
        self.theirs = {}    # the id at clients: the agent's
        self.running = []   # the agent's ids of prompts without an answer
        self.made = 1

    def look(self):
        """Take what has come."""
        self.child.caught_up()
        while True:
            m = next((m for m in self.child.inbox if m["method"] == "session/prompt"), None)
            if not m:
                break
            self.child.inbox.remove(m)
            self.running.append(m["id"])
        for c in self.clients:
            for m in c.seen(method="session/request_permission"):
                self.theirs[m["id"]] = int(m["params.toolCall.toolCallId"][1:])

    # what happens

    def join(self):
        if len(self.clients) < 4:
            c = self.case.attached(self.d, label="p%d" % self.made)
            c.mine = []
            self.made += 1
            self.clients.append(c)

    def leave(self):
        if len(self.clients) > 1:
            c = self.clients.pop(self.rng.randrange(len(self.clients)))
            self.gone.append(c)
            c.drain()
            c.close()

    def prompt(self):
        c = self.rng.choice(self.clients)
        c.mine.append("%s-%d" % (c.label, len(c.mine)))
        c.prompt("x" * self.rng.randrange(1, 50), c.mine[-1], sessionId="c1")

    def ask(self):
        if self.running:
            rid = 500 + len(self.asks)
            self.asks[rid] = []
            self.child.print(permission(rid))

    def answer(self):
        c = self.rng.choice(self.clients)
        known = [m["id"] for m in c.seen(method="session/request_permission")]
        if not known:
            return
        rid = self.rng.choice(known)
        how = self.rng.randrange(6)
        line = (selected(rid, self.rng.choice(VALID)) if how < 2 else result(rid, outcome={"outcome": "cancelled"})
                if how == 2 else selected(rid, "none") if how == 3 else result(rid) if how == 4 else
                error(rid, -32800, "cancelled"))
        c.send(line)

    def say(self):
        self.child.print(chunk("piece"))

    def withdraw(self):
        if self.asks:
            self.child.print(rpc("$/cancel_request", requestId=self.rng.choice(list(self.asks))))

    def end(self):
        if self.running:
            rid = self.running.pop(self.rng.randrange(len(self.running)))
            self.child.print(result(rid, stopReason=self.rng.choice(["end_turn", "cancelled"])))

    def cancel(self):
        self.rng.choice(self.clients).send(rpc("session/cancel", sessionId="c1"))

    def withdraw_prompt(self):
        c = self.rng.choice(self.clients)
        if c.mine:
            c.send(rpc("$/cancel_request", requestId=self.rng.choice(c.mine)))

    def play(self):
        moves = [self.join, self.leave, self.cancel, self.withdraw, self.withdraw_prompt] + 3 * [self.say, self.end] + \
            6 * [self.prompt, self.ask] + 12 * [self.answer]
        for _ in range(STEPS):
            self.rng.choice(moves)()
            self.look()
        self.settle()
        self.judge()

    def settle(self):
        """Let every turn end, and answer the open asks."""
        last = self.case.attached(self.d, label="last")
        last.mine = []
        self.clients.append(last)
        for _ in range(1000):
            for c in self.clients:
                c.sync()
            self.look()
            waiting = [rid for c in self.clients for rid in c.mine if not self.replies(c, rid)]
            open_asks = last.ok("_plenum/pending", session="s")["pending"]
            for one in open_asks:
                last.send(selected(one["request_id"], "no"))
            if not waiting and not open_asks and not self.running:
                return
            for rid in self.running:
                self.child.print(result(rid, stopReason="end_turn"))
            self.running = []
        raise AssertionError("still open: %s" % waiting)

    # the judge

    @staticmethod
    def replies(c, rid):
        return c.seen(lambda m: "method" not in m.obj and m.obj.get("id") == rid)

    def judge(self):
        eq = self.case.assertEqual
        for c in self.clients + self.gone:
            for rid in c.mine:
                (eq if c in self.clients else self.case.assertLessEqual)(len(self.replies(c, rid)), 1, rid)
            for m in c.seen(lambda m: "method" not in m.obj and isinstance(m["id"], str)):
                self.case.assertIn(m["id"], c.mine, c.label)
        for rid in self.asks:
            got = self.child.seen(lambda m, rid=rid: "method" not in m.obj and m["id"] == rid)
            self.case.assertLessEqual(len(got), 1, rid)
            for m in got:
                outcome = m["result.outcome"] or {}
                self.case.assertTrue(m["error"] or outcome.get("outcome") == "cancelled" or
                                     outcome.get("optionId") in VALID, m)
        for m in self.child.seen(lambda m: "method" not in m.obj):
            self.case.assertIn(m["id"], self.asks)


class Random(AcpCase):
    def test_random_sessions(self):
        for seed in SEEDS:
            for queue in (False, True):
                with self.subTest(seed=seed, queue=queue):
                    Game(self, random.Random("%d %s" % (seed, queue)), queue).play()
