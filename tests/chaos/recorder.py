# SPDX-License-Identifier: MIT
"""Runs between the daemon and an agent and records every byte in both directions.

    python3 -I -S recorder.py DIR PROGRAM [ARGUMENT...]

Each run makes DIR/<time>-<pid>/ with `meta` (JSON: pid, ppid, session, cwd, profile, argv), `in` (written by the
daemon), `out` (printed by the agent), `order` (a line "IN OUT" for each read of input: the sizes of both at that time)
and, once the agent has ended and all of its output was passed on, `end` (its status from waitpid). A byte is in `out`
before it is passed on, so the daemon has seen a prefix of it.
"""
import json
import os
import select
import signal
import subprocess
import sys
import time


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


class Recorder:
    def __init__(self, folder, argv):
        self.folder = os.path.join(folder, "%020d-%d" % (time.time_ns(), os.getpid()))
        os.mkdir(self.folder)
        self.logs = {name: os.open(os.path.join(self.folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                     for name in ("in", "out", "order")}
        self.sizes = {"in": 0, "out": 0}
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)  # the agent gets them too, and its end is ours
        self.agent = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, restore_signals=True,
                                      preexec_fn=self.defaults)
        self.note("meta", json.dumps({"pid": os.getpid(), "ppid": os.getppid(), "agent": self.agent.pid,
                                      "session": os.environ.get("PLENUM_CHILD"), "cwd": os.getcwd(),
                                      "profile": os.environ.get("CHAOS_PROFILE"), "argv": argv}))
        self.to_agent = self.agent.stdin.fileno()
        self.from_agent = self.agent.stdout.fileno()
        self.ended = os.pidfd_open(self.agent.pid)  # its own end counts, not that of other holders of its output
        self.waiting = b""  # for the agent
        os.set_blocking(self.to_agent, False)

    @staticmethod
    def defaults():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)

    def note(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)

    def log(self, name, data):
        self.sizes[name] += len(data)
        write_all(self.logs[name], data)

    def take_input(self):
        data = os.read(0, 262144)
        self.log("in", data)
        write_all(self.logs["order"], b"%d %d\n" % (self.sizes["in"], self.sizes["out"]))
        self.waiting += data
        return bool(data)

    def give_input(self):
        try:
            n = os.write(self.to_agent, self.waiting[:65536])
        except BlockingIOError:
            n = 0
        except OSError:
            n = len(self.waiting)  # it stopped reading
        self.waiting = self.waiting[n:]

    def pass_output(self):
        data = os.read(self.from_agent, 262144)
        self.log("out", data)
        write_all(1, data)
        return bool(data)

    def pass_rest(self):
        os.set_blocking(self.from_agent, False)
        try:
            while self.pass_output():
                pass
        except BlockingIOError:
            pass

    def run(self):
        more_in, given_up = True, False
        while True:
            reads = [self.from_agent, self.ended] + ([0] if more_in and len(self.waiting) < 1 << 20 else [])
            r, w, _ = select.select(reads, [self.to_agent] if self.waiting and not given_up else [], [])
            if w:
                self.give_input()
            if 0 in r:
                more_in = self.take_input()
            if not more_in and not self.waiting and not given_up:
                given_up = True
                self.agent.stdin.close()
            if self.ended in r:
                self.pass_rest()
                break
            if self.from_agent in r and not self.pass_output():
                break
        status = os.waitpid(self.agent.pid, 0)[1]
        self.note("end", str(status))
        if os.WIFSIGNALED(status):
            self.defaults()
            os.kill(os.getpid(), os.WTERMSIG(status))
        os._exit(os.WEXITSTATUS(status))


try:
    Recorder(sys.argv[1], sys.argv[2:]).run()
except (BrokenPipeError, OSError):
    os._exit(120)  # the daemon is gone: nothing more can be passed on
