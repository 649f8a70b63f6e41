# SPDX-License-Identifier: MIT
"""A client without faults that runs indefinitely: its waiting times show how well the daemon serves others.

    tests/chaos/good_client.py SOCKET PID

Prints a JSON object per line for each action: {"what", "begun" (CLOCK_MONOTONIC), "seconds", "stood", "error" (or
null)}, and after each round of all of them {"round": N, "begun": ...}. PID is the daemon's; "stood" are the seconds in
which the daemon, this client or the agent of its session was ready and had no processor. Ends with its standard
input."""
import os
import select
import sys
import time
import uuid

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "integration")]

from harness import Client, PlenumError, Timeout, allow, dump, until, user  # noqa: E402
from procs import stood  # noqa: E402

NAME = "good"


class Good:
    def __init__(self, path, daemon):
        self.path, self.main, self.rounds, self.agent = path, None, 0, None
        self.daemon = daemon
        self.doings = [self.hello, self.turn, self.tool, self.look, self.interrupt, self.session]

    def connect(self):
        if self.main is None:
            self.main = Client(self.path, NAME)
            # without a descriptor the daemon cannot see where it comes from: it would not be asked
            until(lambda: self.main.hello()["peer"]["peer"] == "own", what="its trust")
            self.seq = self.main.attach(NAME, profile="good", tag=True, wake=True, name=NAME)["seq"]

    def hello(self):
        self.main.hello()

    def prompt(self, text):
        name = str(uuid.uuid4())
        self.main.send(user(text, uuid=name))
        return name

    def result(self, name):
        self.main.wait(lambda m: m["type"] == "result" and name in (m["user_message_uuids"] or []), title="its result")
        self.check_lines()

    def turn(self):
        self.result(self.prompt("hello"))

    def tool(self):
        name = self.prompt('@tool Bash {"command":"true"}@')
        asked = self.main.wait(type="control_request", request__subtype="can_use_tool")
        self.main.send(allow(asked["request_id"], "true"))
        self.result(name)

    def check_lines(self):
        """Each line of the session came once, and in order."""
        for m in self.main.log:
            seq = m["plenum_seq"]
            if m["event"] == "gap":
                raise AssertionError("lines are lost: %r" % m)
            if seq is not None and seq != self.seq:
                raise AssertionError("line %d came where %d was due: %r" % (seq, self.seq, m))
            self.seq += seq is not None
        self.main.log.clear()
        self.main.inbox.clear()
        self.main.sent.clear()

    def look(self):
        """A new connection is always accepted."""
        c = Client(self.path, "look")
        try:
            c.attach(NAME, role="observer", replay={"last": 5})
            self.agent = c.request("plenum_status", session=NAME)["pid"]
        finally:
            c.close()

    def interrupt(self):
        self.main.request("interrupt")

    def session(self):
        """So does a new session."""
        c = Client(self.path, "session")
        try:
            name = c.attach("good-%d" % self.rounds, profile="good", create="new")["session"]
            c.send(user("hello"))
            c.wait(type="result")
            c.request("plenum_stop", session=name, how="kill", forget=True)
        finally:
            c.close()

    def do(self, what):
        pids = [p for p in (self.daemon, os.getpid(), self.agent) if p]
        begun, before, error = time.monotonic(), [stood(p) for p in pids], None
        try:
            self.connect()
            what()
        except (OSError, PlenumError, Timeout, AssertionError) as e:
            error = "%s: %s" % (type(e).__name__, str(e)[-2000:])
            if self.main:
                self.main.close()
            self.main = None
        took = time.monotonic() - begun
        lost = sum(max(0, stood(p) - was) for p, was in zip(pids, before))  # less than 0: it has ended
        self.say({"what": what.__name__, "begun": begun, "seconds": took, "stood": lost, "error": error})
        return error

    @staticmethod
    def say(obj):
        sys.stdout.buffer.write(dump(obj) + b"\n")
        sys.stdout.buffer.flush()

    def run(self):
        while not select.select([0], [], [], 0.02)[0]:
            begun = time.monotonic()
            failed = [self.do(what) for what in self.doings]
            self.rounds += 1
            if not any(failed):
                self.say({"round": self.rounds, "begun": begun})


if __name__ == "__main__":
    Good(sys.argv[1], int(sys.argv[2])).run()
