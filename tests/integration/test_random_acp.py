# SPDX-License-Identifier: MIT
"""Random sessions of several clients in the Agent Client Protocol, with the test as the agent and the judge: no request
is answered twice, by the wrong one, or by an answer that is none, and none stays open."""
import os
import random

from acp import OPTIONS, AcpCase, Game, chunk, error, permission, result, rpc, selected

SEEDS = range(int(os.environ.get("PLENUM_TEST_SEEDS", "6")))
STEPS = 60
VALID = [o["optionId"] for o in OPTIONS]


class AcpGame(Game):
    def __init__(self, case, rng, queue):
        super().__init__(case, rng, queue)
        case.attached(self.d, "other")
        case.ready(self.agent.child(), "c0")
        self.asks = []      # the agent's ids
        self.sent = {}      # the agent's id: the options sent to it
        self.prompts = []   # their texts
        self.running = []   # the agent's ids of prompts without an answer

    def look(self):
        """Take what has come."""
        self.child.caught_up()
        while True:
            m = next((m for m in self.child.inbox if m["method"] == "session/prompt"), None)
            if not m:
                break
            self.child.inbox.remove(m)
            self.running.append(m["id"])

    # what happens

    def add(self, label):
        several = label != "last" and self.rng.randrange(2)  # its connection has another session, too
        c = self.case.attached(self.d, "other" if several else "s", label=label)
        if several:
            c.ok("session/load", sessionId="c1", cwd="/", mcpServers=[])
        c.mine = []
        self.clients.append(c)
        return c

    def prompt(self):
        c = self.rng.choice(self.clients)
        self.prompts.append("prompt %d" % len(self.prompts))
        c.prompt(self.prompts[-1], self.fresh(c), sessionId="c1")

    def ask(self):
        if self.running:
            rid = 500 + len(self.asks)
            self.asks.append(rid)
            self.sent[rid] = []
            self.child.print(permission(rid))

    def answer(self):
        c = self.rng.choice(self.clients)
        known = c.seen(method="session/request_permission")
        if not known:
            return
        ask = self.rng.choice(known)
        rid = ask["id"]
        how = self.rng.randrange(6)
        option = self.rng.choice(VALID)
        line = (selected(rid, option) if how < 2 else result(rid, outcome={"outcome": "cancelled"})
                if how == 2 else selected(rid, "none") if how == 3 else result(rid) if how == 4 else
                error(rid, -32800, "cancelled"))
        if how < 2:
            self.sent[self.agents_id(ask)].append(option)
        c.send(line)

    @staticmethod
    def agents_id(ask):
        return int(ask["params.toolCall.toolCallId"][1:])

    def say(self):
        self.child.print(chunk("piece"))

    def withdraw(self):
        if self.asks:
            self.child.print(rpc("$/cancel_request", requestId=self.rng.choice(self.asks)))

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

    def moves(self):
        return [self.join, self.leave, self.cancel, self.withdraw, self.withdraw_prompt] + 3 * [self.say, self.end] + \
            6 * [self.prompt, self.ask] + 12 * [self.answer]

    def refusal(self, rid, ask):
        self.sent[self.agents_id(ask)].append("no")
        return selected(rid, "no")

    def finished(self):
        running, self.running = self.running, []
        self.child.print(*[result(rid, stopReason="end_turn") for rid in running])
        return not running

    def judge(self):
        self.judge_replies()
        for rid in self.asks:
            got = self.child.seen(lambda m, rid=rid: "method" not in m.obj and m["id"] == rid)
            self.case.assertEqual(len(got), 1, rid)
            for m in got:
                outcome = m["result.outcome"] or {}
                self.case.assertTrue(m["error"] or outcome.get("outcome") == "cancelled" or
                                     outcome.get("optionId") in self.sent[rid], m)
        taken = [m["params.prompt"][0]["text"] for m in self.child.seen(method="session/prompt")]
        self.case.assertEqual(len(set(taken)), len(taken))
        self.case.assertLessEqual(set(taken), set(self.prompts))
        for m in self.child.seen(lambda m: "method" not in m.obj):
            self.case.assertIn(m["id"], self.asks)


class Random(AcpCase):
    def test_random_sessions(self):
        for seed in SEEDS:
            for queue in (False, True):
                with self.subTest(seed=seed, queue=queue):
                    AcpGame(self, random.Random("%d %s" % (seed, queue)), queue).play(STEPS)
