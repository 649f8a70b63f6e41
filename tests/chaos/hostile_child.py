# SPDX-License-Identifier: MIT
"""An agent that attacks the daemon with its output, its processes and its end.

    python3 -I -S hostile_child.py HOW [further arguments of the daemon]

It answers initialize and interrupt like an agent, and at each prompt runs the method of Child named HOW."""
import json
import os
import signal
import sys
import time

MIB = 1 << 20
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "ok"}


class Child:
    def __init__(self, how):
        self.how = getattr(self, how)
        self.turns = 0

    def put(self, *lines):
        data = b"".join((x if isinstance(x, bytes) else json.dumps(x).encode()) + b"\n" for x in lines)
        while data:
            data = data[os.write(1, data):]

    def run(self):
        for raw in sys.stdin.buffer:
            obj = json.loads(raw)
            if obj.get("type") == "control_request":
                self.put({"type": "control_response", "response": {"subtype": "success", "request_id": obj["request_id"],
                                                                   "response": {"hooks_applied": True}}})
            elif obj.get("type") == "user":
                self.turns += 1
                self.how()
                self.put(dict(RESULT, session_id="hostile-%d" % os.getpid()))

    @staticmethod
    def ask(rid, subtype="can_use_tool", **members):
        body = {"subtype": subtype, "tool_name": "Bash", "input": {"command": "true"}, "tool_use_id": "toolu_x"}
        return {"type": "control_request", "request_id": rid, "request": dict(body, **members)}

    # --- output

    def asks(self):
        """More open requests than allowed, some of them twice, half of them withdrawn."""
        self.put(*[self.ask("a%d" % (i % 5000)) for i in range(6000)])
        self.put(*[{"type": "control_cancel_request", "request_id": "a%d" % i} for i in range(0, 5000, 2)])

    def asks_nothing(self):
        """Requests without an answer, or malformed."""
        self.put(*[self.ask("h%d" % i, "hook_callback", callback_id="none") for i in range(500)],
                 *[self.ask("m%d" % i, "mcp_message", server_name="none", message={}) for i in range(500)],
                 *[self.ask("u%d" % i, "unknown") for i in range(500)],
                 {"type": "control_request"}, {"type": "control_request", "request_id": 7, "request": []},
                 {"type": "control_cancel_request"}, {"type": "control_response"}, {"type": "control_response", "response": 3})

    def asks_much(self):
        """One request of many members, with a long id and a long name."""
        self.put(self.ask("x" * MIB), self.ask("n", tool_name="y" * MIB), self.ask("i", input={"k%d" % i: i for i in range(50000)}),
                 self.ask("s", permission_suggestions=[{"type": "addRules", "rules": []}] * 20000))

    def floods(self):
        line = {"type": "stream_event", "event": {"type": "content_block_delta", "text": "x" * 60}}
        for _ in range(20):
            self.put(*[line] * 5000)

    def endless(self):
        """A line longer than the limit."""
        self.put(b'{"type":"assistant","x":"' + b"x" * 20 * MIB + b'"}')

    def forges(self):
        """Lines that look like the daemon's, and answers to no request."""
        event = {"type": "system", "subtype": "plenum_event", "event": "settled", "session": "good", "code": "internal"}
        self.put(event, {"plenum_seq": 1, "type": "assistant"}, dict(event, event="shutting_down"),
                 *[{"type": "control_response", "response": {"subtype": "success", "request_id": "req_%d_00000000" % i,
                                                             "response": {}}} for i in range(2000)])

    def is_no_json(self):
        self.put(*[os.urandom(200) for _ in range(500)], b"\0" * 10000, b"[" * 100000, b'{"a":' * 100000, b"\xff" * 1000,
                 b'{"type":"user","type":"result"}', b"", b"\r")

    def names_itself(self):
        """Another conversation with each line."""
        self.put(*[dict(RESULT, session_id="conv-%d-%d" % (self.turns, i)) for i in range(1000)])

    def has_tasks(self):
        self.put({"type": "system", "subtype": "background_tasks_changed", "tasks": [{"task_id": "t%d" % i} for i in range(50000)]},
                 *[{"type": "system", "subtype": "task_started", "task_id": "s%d" % i} for i in range(20000)])

    def has_a_large_init(self):
        self.put({"type": "system", "subtype": "init", "tools": ["t%d" % i for i in range(100000)], "session_id": "x"})

    def shouts(self):
        os.write(2, b"x" * 4 * MIB)
        os.write(2, b"\n" * MIB)

    # --- processes

    def forks(self):
        """Processes with sessions of their own that hold its output and ignore SIGTERM."""
        for _ in range(20):
            if os.fork() == 0:
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.close(0)
                time.sleep(600)
                os._exit(0)

    def closes(self):
        os.close(1)
        while True:
            time.sleep(600)

    def stays(self):
        """Stops reading, and only SIGKILL ends it."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(600)

    def stops(self):
        os.kill(os.getpid(), signal.SIGSTOP)

    def dies(self):
        os.write(1, b'{"type":"assistant","x":"')
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    try:
        Child(sys.argv[1]).run()
    except BrokenPipeError:
        os._exit(1)
