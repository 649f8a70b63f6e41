# SPDX-License-Identifier: MIT
"""What an SDK does with `claude`, small: starts it, writes requests and prompts, answers the agent's requests, closes.

run() gives what a program behind the SDK would see. The same run on the agent itself and through plenum-shim must look
the same: canon() takes away what differs between any two runs (ids, times, money).
"""
import json
import re

from standin import DEADLINE, Shim

ANY_TWO_RUNS = re.compile(
    r"uuid|session_id|timestamp|.*_ms|.*_usd|costUSD|pid|messaging_socket_path|memory_paths|"
    # the daemon gives every prompt a uuid, and newer agents tell which prompt a line answers
    r"user_message_uuids?|begun_message_ids|first_request_.*|request_sent_wall_ms"
)
IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b(?:msg|toolu|req)_\w+")


def clean(value):
    if isinstance(value, dict):
        return {k: clean(v) for k, v in value.items() if not ANY_TWO_RUNS.fullmatch(k)}
    return [clean(v) for v in value] if isinstance(value, list) else value


def canon(frames):
    """One string a frame, ids numbered in the order in which they come."""
    names = {}
    number = lambda found: names.setdefault(found.group(0), "id%d" % len(names))
    return [IDS.sub(number, json.dumps(clean(f), sort_keys=True)) for f in frames]


class Sdk:
    def __init__(self, argv, env, cwd, permission=None, hook=None, mcp=None):
        self.process = Shim(argv, env, cwd)
        self.handlers = {"can_use_tool": permission, "hook_callback": hook, "mcp_message": mcp}
        self.frames = []
        self.asked = []
        self.cancelled = []
        self.count = 0

    def write(self, *items):
        self.process.write(*items)

    def take(self, frame):
        self.frames.append(frame)
        if frame["type"] == "control_cancel_request":
            self.cancelled.append(frame["request_id"])
        if frame["type"] == "control_request":
            self.answer(frame["request_id"], frame["request"])

    def answer(self, request_id, request):
        self.asked.append(request)
        handler = self.handlers.get(request["subtype"])
        if handler == "later":
            return
        response = {"subtype": "success", "request_id": request_id}
        if handler:
            response["response"] = handler(request)
        else:
            response = {"subtype": "error", "request_id": request_id, "error": "unsupported"}
        self.write({"type": "control_response", "response": response})

    def until(self, wanted, timeout=DEADLINE):
        """Takes frames until one is wanted; returns it."""
        while True:
            frame = json.loads(self.process.out.line(timeout))
            self.take(frame)
            if wanted(frame):
                return frame

    def ask(self, subtype, **members):
        """A control request and its answer."""
        self.count += 1
        mine = "sdk-%d" % self.count
        self.write({"type": "control_request", "request_id": mine, "request": {"subtype": subtype, **members}})
        answer = self.until(lambda f: f["type"] == "control_response" and f["response"].get("request_id") == mine)
        return answer["response"]

    def send(self, text, **members):
        self.write({"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None,
                    "session_id": "", **members})

    def prompt(self, text, **members):
        self.send(text, **members)
        return self.until(lambda f: f["type"] == "result")

    def finish(self, eof=True):
        """End of input; what still comes is taken. (exit code, stderr)"""
        if eof and not self.process.process.stdin.closed:
            self.process.eof()
        while True:
            try:
                self.until(lambda f: False)
            except EOFError:
                break
        code, _, err = self.process.end()
        return code, err

    def types(self):
        return [f["type"] + ("/" + f["subtype"] if f["type"] == "system" else "") for f in self.frames]

    def destroy(self):
        self.process.destroy()


def allow(request):
    return {"behavior": "allow", "updatedInput": request["input"]}


def deny(request):
    return {"behavior": "deny", "message": "the test says no"}
