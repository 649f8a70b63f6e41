# SPDX-License-Identifier: MIT
"""Random sessions of several clients in the protocol of codex app-server, with the test as the agent and the judge: no
request is answered twice, by the wrong one, or by an answer that is none, none stays open, and each prompt that the
agent has taken is part of one turn."""
import os
import random

from acp import Game
from codex import AMEND, COMMAND, FILE, CodexCase, approval, change, completed, decided, delta, error, note, result, started

SEEDS = range(int(os.environ.get("PLENUM_TEST_SEEDS", "6")))
STEPS = 80
VALID = {COMMAND: ["accept", "decline", "cancel", AMEND], FILE: ["accept", "acceptForSession", "decline", "cancel"]}
WRONG = ["none", None, 1, {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["rm"]}}]


class CodexGame(Game):
    def __init__(self, case, rng, queue):
        super().__init__(case, rng, queue)
        self.watcher = case.attached(self.d, label="watcher", role="observer")
        self.asks = {}     # the agent's id: the method
        self.open = []     # the agent's ids of asks without an answer
        self.sent = {}     # the agent's id: the decisions sent to it
        self.turns = 0
        self.running = None

    def look(self):
        """Take what has come: the agent answers a prompt at once, and lets it join the turn that runs."""
        self.child.caught_up()
        for m in [m for m in self.child.inbox if m["method"] in ("turn/start", "turn/interrupt")]:
            self.child.inbox.remove(m)
            (self.take if m["method"] == "turn/start" else self.stop)(m)
        for m in self.child.seen(lambda m: "method" not in m.obj):
            if m["id"] in self.open:
                self.open.remove(m["id"])
                self.child.print(note("serverRequest/resolved", requestId=m["id"]))

    def take(self, m):
        if self.rng.randrange(8) == 0:
            self.child.print(error(m["id"], -32600, "no"))
            return
        fresh = self.running is None
        if fresh:
            self.turns += 1
            self.running = "turn%d" % self.turns
        self.child.print(result(m["id"], turn={"id": self.running, "items": [], "status": "inProgress"}))
        if fresh:
            self.child.print(started(self.running))

    def stop(self, m):
        if self.running is None:
            self.child.print(error(m["id"], -32600, "no active turn to interrupt"))
            return
        self.child.print(result(m["id"]))
        self.end("interrupted")

    # what happens

    def prompt(self):
        c = self.rng.choice(self.clients)
        c.prompt("x" * self.rng.randrange(1, 50), self.fresh(c))
        if self.rng.randrange(2):
            c.sync()

    def ask(self):
        if self.running:
            rid = 500 + len(self.asks)
            ask, method = self.rng.choice([(approval, COMMAND), (change, FILE)])
            self.asks[rid] = method
            self.sent[rid] = []
            self.open.append(rid)
            self.child.print(ask(rid))

    def answer(self):
        c = self.rng.choice(self.clients)
        known = c.seen(lambda m: m["method"] in VALID)
        if not known:
            return
        m = self.rng.choice(known)
        how = self.rng.randrange(6)
        decision = self.rng.choice(VALID[m["method"]])
        if how < 3:
            self.sent[self.agents_id(m)].append(decision)
        c.send(decided(m["id"], decision) if how < 3 else
               error(m["id"], -32000, "no") if how == 3 else decided(m["id"], self.rng.choice(WRONG)))

    @staticmethod
    def agents_id(ask):
        return int(ask["params.itemId"][1:])

    def say(self):
        self.child.print(delta("piece"))

    def withdraw(self):
        if self.open:
            rid = self.open.pop(self.rng.randrange(len(self.open)))
            self.child.print(note("serverRequest/resolved", requestId=rid))

    def end(self, status=None):
        if self.running is None:
            return
        status = status or self.rng.choice(["completed", "failed"])
        self.child.print(completed(self.running, status))
        self.running = None
        if status == "interrupted":
            self.child.print(*[note("serverRequest/resolved", requestId=rid) for rid in self.open])
            self.open = []

    def interrupt(self):
        c = self.rng.choice(self.clients)
        c.send({"id": self.fresh(c), "method": "turn/interrupt", "params": {"threadId": "t1", "turnId": "turn1"}})

    def moves(self):
        return [self.join, self.leave, self.interrupt, self.withdraw, self.end] + 3 * [self.say, self.prompt] + \
            6 * [self.ask] + 12 * [self.answer]

    def refusal(self, rid, ask):
        self.sent[self.agents_id(ask)].append("decline")
        return decided(rid, "decline")

    def finished(self):
        if self.running is None and self.d.state_of("s") == "idle":
            return True
        self.end("completed")
        return False

    def judge(self):
        eq = self.case.assertEqual
        self.watcher.sync()
        self.judge_replies()
        for c in self.clients + self.gone:
            for m in c.seen(lambda m: m["method"] in VALID):
                over = c.seen(method="serverRequest/resolved", params__requestId=m["id"])
                (eq if c in self.clients else self.case.assertLessEqual)(len(over), 1, m)
        for rid in self.asks:
            got = self.child.seen(lambda m, rid=rid: "method" not in m.obj and m["id"] == rid)
            self.case.assertLessEqual(len(got), 1, rid)
            for m in got:
                self.case.assertTrue(m["error"] or m["result.decision"] in self.sent[rid], m)
        eq(self.open, [])
        for m in self.child.seen(lambda m: "method" not in m.obj):
            self.case.assertIn(m["id"], self.asks)
        begun, ended = [sorted(uuid for m in self.watcher.seen(method="_plenum/event", params__event=event)
                               for uuid in m["params.uuids"]) for event in ("turn_started", "turn_ended")]
        eq(begun, ended)
        eq(len(set(ended)), len(ended))


class Random(CodexCase):
    def test_random_sessions(self):
        for seed in SEEDS:
            for queue in (False, True):
                with self.subTest(seed=seed, queue=queue):
                    CodexGame(self, random.Random("%d %s" % (seed, queue)), queue).play(STEPS)
