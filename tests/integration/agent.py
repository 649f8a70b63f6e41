# SPDX-License-Identifier: MIT
"""A fake child under full control of a test.

    python3 -I -S agent.py DIR [further arguments of the daemon]

DIR/ctl.sock is a socket of the test (harness.Agent). The child connects once per start and reports all events: how it
was started, each line on its stdin, EOF, signals. The test sends orders: lines to print, when to stop reading, how to
end. DIR/mode.json, if it exists, has the initial settings (see MODE).

Frames on the control socket, both ways: one JSON object and a newline; its member "n" is the number of raw bytes after
it.
"""
import fcntl
import json
import os
import queue
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

MODE = {
    "init": "332",        # how initialize is answered: "332", "197", "manual"
    "user": False,        # True: each prompt is run at once: replay, system/init, assistant, result
    "control": [],        # subtypes answered with an empty success at once; True: all but initialize
    "eof": "exit",        # on stdin EOF: "exit" (status 0), "ignore", or a number of seconds to wait before exit
    "term": "exit",       # on SIGTERM: "exit" (status 143), "ignore"
    "int": "exit",        # on SIGINT: "exit" (status 0), "ignore"
    "standalone": False,  # True: no control socket; only the settings above
    "session_id": None,   # the reported conversation id; None: --resume's or --session-id's, else a new one
    "start": [],          # first operations, e.g. [{"op": "stderr", "text": "..."}]
}


def argument(names):
    """Return the value of --name VALUE or --name=VALUE on the command line; the last one counts."""
    found = None
    for i, word in enumerate(sys.argv):
        for name in names:
            if word == name and i + 1 < len(sys.argv):
                found = sys.argv[i + 1]
            elif word.startswith(name + "="):
                found = word[len(name) + 1:]
    return found


class Child:
    def __init__(self, folder):
        self.folder = folder
        self.mode = dict(MODE)
        try:
            with open(os.path.join(folder, "mode.json")) as f:
                self.mode.update(json.load(f))
        except FileNotFoundError:
            pass
        self.ctl = None
        self.ctl_lock = threading.Lock()
        self.out = queue.Queue()
        self.busy = threading.Lock()  # held while read bytes are being reported
        self.may_read = threading.Event()
        self.may_read.set()
        self.inits = 0
        self.turns = 0
        self.sid = self.mode["session_id"] or argument(["--resume", "-r", "--session-id"]) or "conv-%d" % os.getpid()

    # --- to the test

    def tell(self, ev, payload=b"", **members):
        if self.ctl is None:
            return
        members.update(ev=ev, n=len(payload), t=time.monotonic())
        with self.ctl_lock:
            try:
                self.ctl.sendall(json.dumps(members).encode() + b"\n" + payload)
            except OSError:
                os._exit(99)

    # --- the child's own output

    def write(self, fd, data, chunk=0, delay=0.0):
        view = memoryview(data)
        while view:
            try:
                n = os.write(fd, view[:chunk] if chunk else view)
            except OSError as e:
                self.tell("write_failed", fd=fd, errno=e.errno)
                return
            view = view[n:]
            if delay:
                time.sleep(delay)

    def writer(self):
        while True:
            job = self.out.get()
            kind = job["op"]
            if kind == "print":
                self.write(1, job["data"], job.get("chunk", 0), job.get("delay", 0.0))
            elif kind == "flood":
                self.flood(job)
            elif kind == "close_stdout":
                os.close(1)
            elif kind == "exit":
                self.tell("exiting", status=job["status"])
                os._exit(job["status"])
            elif kind == "sync":
                self.tell("sync", id=job["id"])

    def flood(self, job):
        """Print count lines; @N@ in the template is the number, pad bytes of x replace @P@. rate: lines a second, 0:
        unlimited."""
        template = job["data"].replace(b"@P@", b"x" * job.get("pad", 0))
        first = job.get("first", 0)
        block, rate = [], job.get("rate", 0)
        for i in range(job["count"]):
            block.append(template.replace(b"@N@", b"%d" % (first + i)) + b"\n")
            if rate:
                time.sleep(1.0 / rate)
            if rate or len(block) * len(template) > 65536 or i + 1 == job["count"]:
                self.write(1, b"".join(block))
                block = []

    def say(self, obj):
        self.out.put({"op": "print", "data": json.dumps(obj, separators=(",", ":")).encode() + b"\n"})

    # --- the child's input

    def reader(self):
        rest, parts = b"", []
        while True:
            self.may_read.wait()
            select.select([0], [], [])
            with self.busy:
                if not self.may_read.is_set():
                    continue
                data = os.read(0, 262144)
                if not data:
                    break
                if b"\n" not in data:  # long lines: joined once
                    parts.append(data)
                    continue
                lines = b"".join(parts + [data]).split(b"\n")
                rest = lines.pop()
                parts = [rest]
                for line in lines:
                    self.tell("line", line)
                    self.react(line)
        rest = b"".join(parts)
        if rest:
            self.tell("partial", rest)
        self.tell("eof")
        eof = self.mode["eof"]
        if eof == "ignore":
            return
        if eof != "exit":
            time.sleep(eof)
        self.out.put({"op": "exit", "status": 0})

    def react(self, line):
        if self.mode["init"] == "manual" and not self.mode["user"] and not self.mode["control"]:
            return
        if len(line) > 1 << 20:
            return
        try:
            obj = json.loads(line.decode("utf-8", "replace"))
            kind = obj.get("type")
        except (ValueError, AttributeError, RecursionError):
            return
        if kind == "control_request" and isinstance(obj.get("request"), dict):
            self.react_control(obj["request_id"], obj["request"])
        elif kind == "user" and self.mode["user"]:
            self.run_turn(obj)

    def react_control(self, rid, request):
        sub = request.get("subtype")
        if sub == "initialize":
            if self.mode["init"] != "manual":
                self.say(self.init_answer(rid, request))
            if self.mode["init"] == "332" and self.inits > 1 and "hooks" not in request:
                self.say({"type": "system", "subtype": "background_tasks_changed", "tasks": [], "session_id": self.sid})
        elif sub == "reload_plugins" and self.mode["init"] == "197":
            self.say({"type": "system", "subtype": "commands_changed", "commands": [], "session_id": self.sid})
            self.say(self.success(rid))
        elif sub == "get_session_cost" and self.mode["init"] != "manual":
            self.say(self.success(rid))
        elif self.mode["control"] is True or sub in self.mode["control"]:
            self.say(self.success(rid))

    def success(self, rid):
        return {"type": "control_response", "response": {"subtype": "success", "request_id": rid, "response": {}}}

    def init_answer(self, rid, request):
        self.inits += 1
        body = {"commands": [{"name": "clear", "description": "d", "argumentHint": ""}], "agents": [],
                "output_style": "default", "available_output_styles": ["default"], "models": [],
                "account": {"apiKeySource": "none"}, "pid": os.getpid()}
        if self.mode["init"] == "332":
            body["claude_code_version"] = "2.1.332"
            if request.get("hooks") is not None:
                body["hooks_applied"] = True
            body["hook_on_failure_supported"] = True
        return {"type": "control_response", "response": {"subtype": "success", "request_id": rid, "response": body,
                "pending_permission_requests": [], "pending_user_dialog_requests": []}}

    def run_turn(self, prompt):
        self.turns += 1
        uuid = prompt.get("uuid")
        uuids = [uuid] if uuid else []
        self.say({"type": "user", "message": prompt["message"], "uuid": uuid, "session_id": self.sid, "isReplay": True,
                  "parent_tool_use_id": None})
        self.say({"type": "system", "subtype": "init", "session_id": self.sid, "cwd": os.getcwd(), "tools": ["Bash"],
                  "permissionMode": "default", "claude_code_version": "2.1.332", "user_message_uuids": uuids})
        self.say({"type": "assistant", "session_id": self.sid, "parent_tool_use_id": None,
                  "message": {"role": "assistant", "content": [{"type": "text", "text": "turn %d" % self.turns}]}})
        self.say({"type": "result", "subtype": "success", "is_error": False, "result": "turn %d" % self.turns,
                  "session_id": self.sid, "user_message_uuid": uuid, "user_message_uuids": uuids})

    # --- orders

    def do(self, job, payload):
        op = job["op"]
        if op in ("print", "flood"):
            job["data"] = payload or job.get("text", "").encode()
            self.out.put(job)
        elif op in ("close_stdout", "exit", "sync"):
            self.out.put(job)
        elif op == "ping":
            self.ping(job["id"])
        elif op == "exit_now":
            os._exit(job["status"])
        elif op == "stderr":
            self.write(2, payload or job.get("text", "").encode())
            self.tell("stderr_done")
        elif op == "kill":
            os.kill(os.getpid(), job["signal"])
        elif op == "pause":
            self.may_read.clear()
        elif op == "resume":
            self.may_read.set()
        elif op == "close_stdin":
            self.may_read.clear()
            os.close(0)
        elif op == "mode":
            self.mode.update(job["mode"])
            if job["mode"].get("session_id"):
                self.sid = job["mode"]["session_id"]
        elif op == "spawn":
            self.spawn(job)
        elif op == "sleep":
            time.sleep(job["seconds"])

    def ping(self, number):
        """Answered when all bytes in the pipe of stdin were reported."""
        deadline = time.monotonic() + 50  # less than the harness waits
        while self.may_read.is_set() and time.monotonic() < deadline:
            with self.busy:
                try:
                    waiting = struct.unpack("i", fcntl.ioctl(0, termios.FIONREAD, b"\0" * 4))[0]
                except OSError:
                    break
            if not waiting:
                break
            time.sleep(0.001)
        self.tell("pong", id=number)

    def spawn(self, job):
        keep = None if job.get("keep_stdout") else subprocess.DEVNULL
        stdin = None if job.get("keep_stdin") else subprocess.DEVNULL
        p = subprocess.Popen(job["argv"], stdin=stdin, stdout=keep, stderr=subprocess.DEVNULL,
                             start_new_session=job.get("setsid", False), close_fds=True)
        self.tell("spawned", pid=p.pid)

    def on_signal(self, number, _frame):
        threading.Thread(target=self.signalled, args=(number,), daemon=True).start()  # this thread may hold the lock

    def signalled(self, number):
        self.tell("signal", signal=number)
        what = self.mode["term" if number == signal.SIGTERM else "int"]
        if what == "exit":
            os._exit(143 if number == signal.SIGTERM else 0)

    def describe(self):
        with open("/proc/self/status") as f:
            status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        self.tell("start", pid=os.getpid(), ppid=os.getppid(), pgid=os.getpgrp(), sid=os.getsid(0), argv=sys.argv[1:],
                  cwd=os.getcwd(), env=dict(os.environ), fds=sorted(int(n) for n in os.listdir("/proc/self/fd")),
                  status=status, conversation=self.sid)

    def main(self):
        signal.signal(signal.SIGTERM, self.on_signal)
        signal.signal(signal.SIGINT, self.on_signal)
        if not self.mode["standalone"]:
            ctl = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            ctl.connect(os.path.join(self.folder, "ctl.sock"))
            self.ctl = ctl
            self.describe()
        for job in self.mode["start"]:
            self.do(dict(job), b"")
        for work in (self.writer, self.reader):
            threading.Thread(target=work, daemon=True).start()
        if self.ctl is None:
            while True:
                signal.pause()
        orders = self.ctl.makefile("rb")
        while True:
            head = orders.readline()
            if not head:
                os._exit(98)  # the test is gone
            job = json.loads(head)
            self.do(job, orders.read(job.get("n", 0)))


Child(sys.argv[1]).main()
