# SPDX-License-Identifier: MIT
"""Base of the integration tests: a private daemon, clients, and children played by the test.

    class Thing(Case):
        def test_it(self):
            d, agent = self.start()                 # plenumd with the profile `agent` as the default one
            a = d.attached("work")                  # a client of a session
            child = agent.child()                   # the child that the daemon started; the three at once: self.open()
            child.prompted(a, "hi")                 # a line of the client reaches its stdin
            child.print(RESULT)                     # a line on its stdout
            a.wait(type="result")

Nothing sleeps for a fixed time: each wait ends at its event, and fails at its deadline. To show that something does NOT
happen, use a barrier, then check the received lines: Client.sync() (all its lines so far were read), Child.mark() (all
output so far was delivered).

Environment: PLENUM_BUILD, the build directory; PLENUM_TEST_KEEP=1 keeps the directories of failed tests.
"""
import contextlib
import ctypes
import glob
import itertools
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import described

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable  # for children of any uid
TIMEOUT = float(os.environ.get("PLENUM_TEST_TIMEOUT", "60"))
QUICK = {"stop_grace": "400ms"}  # for children that do not end on request
SLEEPER = [PYTHON, "-I", "-S", "-c", "import time; time.sleep(120)"]
_ids = itertools.count(1)


class Timeout(AssertionError):
    pass


class PlenumError(Exception):
    """An error response: .code, .text, .raw (the whole line as an object)."""

    def __init__(self, obj):
        self.raw = obj
        self.body = obj.get("response", {})
        self.code = self.body.get("code")
        self.text = self.body.get("error")
        super().__init__("%s: %s" % (self.code, self.text))


class RpcError(Exception):
    """An error answer: .number and .text, .code of the daemon (None: the agent's), .raw."""

    def __init__(self, obj):
        self.raw, self.body = obj, obj["error"]
        self.number, self.text = self.body["code"], self.body["message"]
        self.code = (self.body.get("data") or {}).get("code")
        super().__init__("%s %s: %s" % (self.number, self.code, self.text))


# --- lines -----------------------------------------------------------------------------------------------------------


def dump(obj):
    return json.dumps(obj, separators=(",", ":")).encode()


def parse(raw):
    """Return the line as an object, or None. Lone surrogates and duplicate keys are accepted."""
    try:
        return json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None


def user(text, **members):
    return dict({"type": "user", "message": {"role": "user", "content": text}}, **members)


def perm(rid, cmd="touch one", tool="Bash", **members):
    request = {"subtype": "can_use_tool", "tool_name": tool, "input": {"command": cmd}, "permission_suggestions": [],
               "tool_use_id": "toolu_" + rid}
    request.update(members)
    return {"type": "control_request", "request_id": rid, "request": request}


def ok(rid, body=None):
    response = {"subtype": "success", "request_id": rid}
    if body is not None:
        response["response"] = body
    return {"type": "control_response", "response": response}


def err(rid, text="no", **members):
    return {"type": "control_response", "response": dict({"subtype": "error", "request_id": rid, "error": text}, **members)}


def allow(rid, cmd="touch one", **members):
    return ok(rid, dict({"behavior": "allow", "updatedInput": {"command": cmd}}, **members))


def deny(rid, message="no", **members):
    return ok(rid, dict({"behavior": "deny", "message": message}, **members))


def cancel(rid):
    return {"type": "control_cancel_request", "request_id": rid}


def hook(rid, callback, event="PreToolUse", **members):
    body = {"hook_event_name": event, "tool_name": "Bash", "tool_input": {"command": "true"}}
    body.update(members)
    return {"type": "control_request", "request_id": rid,
            "request": {"subtype": "hook_callback", "callback_id": callback, "input": body, "tool_use_id": "toolu_" + rid}}


def mcp(rid, server, message):
    return {"type": "control_request", "request_id": rid,
            "request": {"subtype": "mcp_message", "server_name": server, "message": message}}


def request(rid, subtype, **members):
    return {"type": "control_request", "request_id": rid, "request": dict({"subtype": subtype}, **members)}


def init(rid, hooks=None, **members):
    return request(rid, "initialize", hooks=hooks, **members)


def init_line(conversation="conv-1", **more):
    """The system/init line of a turn."""
    return dict({"type": "system", "subtype": "init", "session_id": conversation}, **more)


RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "ok"}


def pick(obj, path):
    """pick(o, "response.request_id"): return a nested member, or None."""
    for name in path.split("."):
        if not isinstance(obj, dict) or name not in obj:
            return None
        obj = obj[name]
    return obj


def matches(obj, want):
    """want: members with their values; a double underscore stands for a dot (response__request_id="1")."""
    if not isinstance(obj, dict):
        return False
    for path, value in want.items():
        found = pick(obj, path.replace("__", "."))
        if callable(value):
            if not value(found):
                return False
        elif found != value or isinstance(found, bool) != isinstance(value, bool):
            return False
    return True


def until(check, timeout=None, what="the condition", every=0.01):
    """Poll check() until it is true; return its value."""
    deadline = time.monotonic() + (TIMEOUT if timeout is None else timeout)
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Timeout("not in time: " + what)
        time.sleep(every)


def inotify():
    """Return an instance of inotify(7). Other programs of this user may have all of them, and a daemon goes on without
    one: wait until one is free."""

    def instance():
        fd = ctypes.CDLL(None).inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        return fd if fd >= 0 else None

    return until(instance, what="a free inotify instance of this user (fs.inotify.max_user_instances)")


class Message:
    """One received line: .raw (bytes without the newline), .obj (None if not JSON), .t (time of reception)."""

    __slots__ = ("raw", "obj", "t")

    def __init__(self, raw, t=None):
        self.raw = raw
        self.obj = parse(raw)
        self.t = time.monotonic() if t is None else t

    def __getitem__(self, path):
        return pick(self.obj, path)

    def __repr__(self):
        return "%s%s" % (self.raw[:300].decode("utf-8", "replace"), "..." if len(self.raw) > 300 else "")


# --- a client --------------------------------------------------------------------------------------------------------


class Client:
    """One connection. Reads only during a wait, so a client without a wait is a stalled client.

    .log has all received lines in order; .inbox those not yet taken by a wait. wait() takes the first match out of the
    inbox and leaves the rest, so tests name only the lines they are about.

    Each line of the daemon's own is compared with the schema (described.py)."""

    checked = True

    def __init__(self, path, label="client", uid=None, gid=None, groups=(), env=None, last=""):
        """With uid (root only), env, or Python code that it runs at last: a process of that uid or environment makes the
        connection, and lives until it is closed."""
        self.label, self.helper = label, None
        if uid is None and env is None and not last:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.connect(path)
        else:
            self.connect_as(path, env, last, {} if uid is None else dict(user=uid, group=gid, extra_groups=groups))
        self.log, self.inbox = [], []
        self.parts, self.eof = [], False
        self.sent = []
        self.verbs = {}  # of its requests to the daemon, by id

    def connect_as(self, path, env, last, ids):
        here, there = socket.socketpair()
        script = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\nf=socket.socket(fileno=int(sys.argv[1]))\n"
                  "try:\n s.connect(sys.argv[2])\nexcept OSError as e:\n f.send(b'%d' % e.errno);sys.exit()\n"
                  "socket.send_fds(f,[b'+'],[s.fileno()])\ns.close()\nexec(sys.argv[3])\nf.recv(1)\n")
        self.helper = subprocess.Popen([PYTHON, "-I", "-S", "-c", script, str(there.fileno()), path, last],
                                       pass_fds=[there.fileno()], env=env, cwd="/", **ids)
        there.close()
        here.settimeout(TIMEOUT)
        data, fds, _, _ = socket.recv_fds(here, 16, 1)
        if not fds:
            here.close()
            self.helper.wait()
            raise OSError(int(data), os.strerror(int(data)))
        self.sock, self.helper_sock = socket.socket(fileno=fds[0]), here

    # sending

    def send(self, *lines):
        """Send objects, or bytes that already are a line (a newline is added unless raw bytes have one)."""
        self.raw(b"".join(x if isinstance(x, bytes) and x.endswith(b"\n") else
                          (x if isinstance(x, bytes) else dump(x)) + b"\n" for x in lines))

    def raw(self, data, timeout=None):
        """Send bytes unchanged; receives meanwhile, so that two full directions do not block each other."""
        self.sent.append(data[:400])
        self.note(data)
        deadline = time.monotonic() + (TIMEOUT if timeout is None else timeout)
        view = memoryview(data)
        while view:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Timeout("%s: the daemon does not read" % self.label)
            r, w, _ = select.select([] if self.eof else [self.sock], [self.sock], [], left)
            if r:
                self.fill(0)
            if w:
                n = self.sock.send(view[:65536], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
                view = view[n:]

    def try_raw(self, data):
        """Send as many bytes as the socket takes now, without reading; return how many."""
        total = 0
        self.note(data)
        try:
            while total < len(data):
                total += self.sock.send(data[total:total + 65536], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except BlockingIOError:
            pass
        return total

    def note(self, data):
        for rid, verb in described.requests_in(data):
            self.verbs.setdefault(rid, set()).add(verb)

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.sock.close()
        self.eof = True
        if self.helper:
            self.helper_sock.close()
            self.helper.wait()
            self.helper = None

    def reset(self):
        """Close as if the process had died with data unread."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()

    # receiving

    def fill(self, timeout):
        """Receive available bytes, waiting up to the timeout; false at the deadline or the end."""
        if self.eof:
            return False
        r, _, _ = select.select([self.sock], [], [], max(0, timeout))
        if not r:
            return False
        try:
            data = self.sock.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            self.eof = True
            if self.parts and b"".join(self.parts):
                self.tail = b"".join(self.parts)
            return False
        self.take(data)
        return True

    def take(self, data):
        end = data.rfind(b"\n")
        if end < 0:
            self.parts.append(data)
            return
        whole = b"".join(self.parts) + data[:end]
        self.parts = [data[end + 1:]] if end + 1 < len(data) else []
        now = time.monotonic()
        for raw in whole.split(b"\n"):
            m = Message(raw, now)
            self.log.append(m)
            self.inbox.append(m)
            if self.checked and isinstance(m.obj, dict):
                rid = m["response.request_id"] if "type" in m.obj else m["id"]
                described.check_line(m.obj, self.verbs.get(repr(rid)))

    def wait(self, pred=None, timeout=None, title=None, **want):
        """Return the first match: pred(message) true and the named members equal. Fails at the deadline or the end."""
        deadline = time.monotonic() + (TIMEOUT if timeout is None else timeout)
        seen = 0
        while True:
            for i in range(seen, len(self.inbox)):
                m = self.inbox[i]
                if matches(m.obj, want) if pred is None else (pred(m) and (not want or matches(m.obj, want))):
                    del self.inbox[i]
                    return m
            seen = len(self.inbox)
            if not self.fill(deadline - time.monotonic()) and (self.eof or time.monotonic() >= deadline):
                if len(self.inbox) > seen:
                    continue
                raise Timeout("%s: no %s %s; last lines:\n  %s" % (
                    self.label, title or want or "such line", "(closed)" if self.eof else "in time",
                    "\n  ".join(map(repr, self.log[-25:]))))

    def event(self, event, timeout=None, **want):
        return self.wait(timeout=timeout, type="system", subtype="plenum_event", event=event, **want)

    def error(self, code, timeout=None, **want):
        """An error notice (not an error response)."""
        return self.event("error", timeout=timeout, code=code, **want)

    def answer(self, rid, timeout=None):
        """The control_response for that id, success or not."""
        return self.wait(timeout=timeout, type="control_response", response__request_id=rid)

    def drain(self, timeout=0.0):
        while self.fill(timeout):
            pass

    def seen(self, pred=None, **want):
        """Return all matches so far, without a wait."""
        self.drain()
        return [m for m in self.log if matches(m.obj, want) and (pred is None or pred(m))]

    def events(self, event=None, **want):
        if event:
            want["event"] = event
        return self.seen(type="system", subtype="plenum_event", **want)

    def slurp(self, end, timeout=None):
        """Read without parsing until the bytes `end` came: as fast as this client can."""
        deadline = time.monotonic() + (TIMEOUT if timeout is None else timeout)
        got, tail = [], b""
        while end not in tail:
            left = deadline - time.monotonic()
            r, _, _ = select.select([self.sock], [], [], max(0, left))
            data = self.sock.recv(1 << 20) if r else b""
            if not data:
                raise Timeout("%s: no %r in time" % (self.label, end))
            got.append(data)
            tail = tail[-100:] + data
        self.take(b"".join(got))

    def wait_eof(self, timeout=None):
        deadline = time.monotonic() + (TIMEOUT if timeout is None else timeout)
        while not self.eof:
            if not self.fill(deadline - time.monotonic()) and not self.eof and time.monotonic() > deadline:
                raise Timeout("%s: the daemon keeps the connection open" % self.label)

    # requests

    def ask(self, subtype, **members):
        """Send a request under a fresh id; return the id."""
        rid = "t%d" % next(_ids)
        self.send(request(rid, subtype, **members))
        return rid

    def request(self, subtype, _timeout=None, **members):
        """Send a request and wait for its answer: return its body, or raise PlenumError."""
        m = self.answer(self.ask(subtype, **members), _timeout)
        if m["response.subtype"] == "error":
            raise PlenumError(m.obj)
        return m["response.response"] or {}

    def attach(self, session=None, _timeout=None, **members):
        if session is not None:
            members["session"] = session
        return self.request("plenum_attach", _timeout, **members)

    def hello(self):
        return self.request("plenum_hello")

    def sync(self):
        """On return the daemon has read every line sent before."""
        self.request("plenum_hello")

    def initialize(self, hooks=None, _timeout=None, **members):
        """Return the whole answer (Message)."""
        return self.answer(self.ask("initialize", hooks=hooks, **members), _timeout)


class RpcClient(Client):
    """The same in JSON-RPC; the verbs of the daemon are called by their short name. head: the members of each line
    besides those of its kind."""

    head = {"jsonrpc": "2.0"}

    def ask(self, method, **params):
        rid = next(_ids)
        self.send(dict(self.head, id=rid, method=method, params=params))
        return rid

    def notify(self, method, **params):
        self.send(dict(self.head, method=method, params=params))

    def answer(self, rid, timeout=None):
        """The answer to that id, success or not: of the same type."""
        return self.wait(lambda m: "id" in (m.obj or {}) and "method" not in m.obj and m.obj["id"] == rid and
                         isinstance(m.obj["id"], type(rid)), timeout, "answer to %r" % (rid,))

    def request(self, method, _timeout=None, **params):
        """Send a request and wait for its answer: return its result, or raise RpcError."""
        m = self.answer(self.ask(method, **params), _timeout)
        if "error" in m.obj:
            raise RpcError(m.obj)
        return m["result"]

    def verb(self, name, **params):
        return self.request("_plenum/" + name, **params)

    def attach(self, session=None, _timeout=None, **params):
        if session is not None:
            params["session"] = session
        return self.request("_plenum/attach", _timeout, **params)

    def hello(self):
        return self.verb("hello")

    def sync(self):
        self.verb("hello")

    def event(self, event, timeout=None, **want):
        want = {"params__" + path: value for path, value in want.items()}
        return self.wait(timeout=timeout, method="_plenum/event", params__event=event, **want)

    def events(self, event=None, **want):
        want = {"params__" + path: value for path, value in want.items()}
        if event:
            want["params__event"] = event
        return self.seen(method="_plenum/event", **want)


class CodexClient(RpcClient):
    head = {}


# --- a child ---------------------------------------------------------------------------------------------------------


class Child:
    """One run of agent.py, played by the test."""

    def __init__(self, sock, label):
        self.sock, self.label = sock, label
        self.cond = threading.Condition()
        self.events, self.log, self.inbox = [], [], []
        self.start = None
        self.gone = False
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        stream = self.sock.makefile("rb")
        try:
            while True:
                head = stream.readline()
                if not head:
                    break
                ev = json.loads(head)
                payload = stream.read(ev["n"])
                with self.cond:
                    if ev["ev"] == "line":
                        m = Message(payload, ev["t"])
                        self.log.append(m)
                        self.inbox.append(m)
                    else:
                        ev["payload"] = payload
                        if ev["ev"] == "start":
                            self.start = ev
                        self.events.append(ev)
                    self.cond.notify_all()
        except (OSError, ValueError):
            pass
        stream.close()
        with self.cond:
            self.gone = True
            self.sock.close()
            self.cond.notify_all()

    def until(self, check, timeout, what):
        deadline = time.monotonic() + (TIMEOUT if timeout is None else timeout)
        with self.cond:
            while True:
                value = check()
                if value is not None and value is not False:
                    return value
                left = deadline - time.monotonic()
                if left <= 0 or (self.gone and not value):
                    raise Timeout("%s: no %s%s; its last lines:\n  %s\n  events: %s" % (
                        self.label, what, " (it has ended)" if self.gone else "",
                        "\n  ".join(map(repr, self.log[-15:])), [e["ev"] for e in self.events]))
                self.cond.wait(left)

    # its input

    def wait(self, pred=None, timeout=None, **want):
        """Return the first matching line on its stdin not yet taken by a wait."""

        def check():
            for i, m in enumerate(self.inbox):
                if matches(m.obj, want) if pred is None else (pred(m) and (not want or matches(m.obj, want))):
                    del self.inbox[i]
                    return m
            return None

        return self.until(check, timeout, "line on stdin %s" % (want or ""))

    def seen(self, pred=None, **want):
        self.caught_up()
        with self.cond:
            return [m for m in self.log if matches(m.obj, want) and (pred is None or pred(m))]

    def caught_up(self):
        """Wait until all bytes written to its stdin so far are in .log (or it is gone)."""
        n = next(_ids)
        try:
            self.order("ping", id=n)
            self.until(lambda: self.gone or any(e["ev"] == "pong" and e["id"] == n for e in self.events), None, "pong")
        except OSError:
            pass

    def prompted(self, client, text, **members):
        """Let the client send a prompt, and return the line that reaches the child."""
        client.send(user(text, **members))
        return self.wait(type="user", **({"uuid": members["uuid"]} if "uuid" in members else {}))

    def request(self, subtype, timeout=None, **want):
        """Return a control_request that reached it (Message); its id is m["request_id"]."""
        return self.wait(timeout=timeout, type="control_request", request__subtype=subtype, **want)

    def answer(self, rid, timeout=None):
        """Return the control_response to a request of the child."""
        return self.wait(timeout=timeout, type="control_response", response__request_id=rid)

    def answers(self, rid):
        return self.seen(type="control_response", response__request_id=rid)

    def event(self, ev, timeout=None, **want):
        return self.until(lambda: next((e for e in self.events if e["ev"] == ev and matches(e, want)), None), timeout,
                          "event " + ev)

    def had(self, ev):
        with self.cond:
            return [e for e in self.events if e["ev"] == ev]

    def wait_gone(self, timeout=None):
        self.until(lambda: self.gone, timeout, "end")

    @property
    def pid(self):
        return self.start["pid"]

    @property
    def env(self):
        return self.start["env"]

    @property
    def argv(self):
        return self.start["argv"]

    # its actions

    def order(self, op, payload=b"", **members):
        members.update(op=op, n=len(payload))
        self.sock.sendall(json.dumps(members).encode() + b"\n" + payload)

    def print(self, *lines, chunk=0, delay=0.0):
        """Print objects (one line each) or bytes unchanged. All in one write unless chunk is given."""
        self.order("print", b"".join(x if isinstance(x, bytes) else dump(x) + b"\n" for x in lines), chunk=chunk, delay=delay)

    def flood(self, template, count, pad=0, first=0, rate=0):
        self.order("flood", template if isinstance(template, bytes) else dump(template), count=count, pad=pad, first=first,
                   rate=rate)

    def stderr(self, data):
        self.order("stderr", data if isinstance(data, bytes) else data.encode())

    def exit(self, status=0, now=False):
        self.order("exit_now" if now else "exit", status=status)

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)

    def mode(self, **settings):
        self.order("mode", mode=settings)

    def pause(self):
        self.order("pause")

    def resume(self):
        self.order("resume")

    def written(self, timeout=None):
        """Wait until all its output so far has gone into the pipe."""
        n = next(_ids)
        self.order("sync", id=n)
        self.event("sync", timeout, id=n)

    def mark(self, *clients, timeout=None):
        """A barrier: print a unique line and wait for it at each of the (attached) clients."""
        n = next(_ids)
        self.print({"type": "test_mark", "n": n})
        for c in clients:
            c.wait(type="test_mark", n=n, timeout=timeout)

    def reply(self, m, body=None):
        """Answer a request to the child (Message)."""
        self.print(ok(m["request_id"], {} if body is None else body))

    def spawn(self, argv, setsid=False, keep_stdout=False, keep_stdin=False):
        before = len(self.had("spawned"))
        self.order("spawn", argv=argv, setsid=setsid, keep_stdout=keep_stdout, keep_stdin=keep_stdin)
        return self.until(lambda: len([e for e in self.events if e["ev"] == "spawned"]) > before and
                          [e for e in self.events if e["ev"] == "spawned"][-1]["pid"], None, "spawned process")


class Agent:
    """A profile whose child the test plays: agent.profile() is the section, agent.child() each started child."""

    def __init__(self, folder, name="agent", **mode):
        self.name, self.folder = name, folder
        os.makedirs(folder)
        shutil.copy(os.path.join(HERE, "agent.py"), folder)  # readable for any uid
        self.children, self.taken, self.knocks = [], 0, 0
        self.cond = threading.Condition()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.bind(os.path.join(folder, "ctl.sock"))
        os.chmod(os.path.join(folder, "ctl.sock"), 0o777)
        self.sock.listen(128)
        self.mode(**mode)
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def mode(self, **settings):
        """Settings for children started from now on (agent.MODE)."""
        path = os.path.join(self.folder, "mode.json")
        with open(path + ".new", "w") as f:
            json.dump(settings, f)
        os.rename(path + ".new", path)

    def accept(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            caller = struct.unpack("3i", conn.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            with self.cond:
                if caller == os.getpid():
                    conn.close()
                    self.knocks += 1
                else:
                    self.children.append(Child(conn, "%s#%d" % (self.name, len(self.children) + 1)))
                self.cond.notify_all()

    def caught_up(self):
        """Wait until every child that has called so far is in .children: calls are accepted in order."""
        with self.cond:
            wanted = self.knocks + 1
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.connect(os.path.join(self.folder, "ctl.sock"))
            with self.cond:
                if not self.cond.wait_for(lambda: self.knocks >= wanted, TIMEOUT):
                    raise Timeout("%s: nobody takes the calls of children" % self.name)

    def child(self, timeout=None):
        """Return the next started child (each is returned once), ready."""
        deadline = time.monotonic() + (TIMEOUT if timeout is None else timeout)
        with self.cond:
            while len(self.children) <= self.taken:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Timeout("%s: no %schild was started; processes: %s" % (
                        self.name, "further " if self.taken else "", [(p, where(p)) for p in processes_of(self.folder)]))
                self.cond.wait(left)
            child = self.children[self.taken]
            self.taken += 1
        child.event("start", timeout)
        return child

    def child_of(self, pid, timeout=None):
        """Return the child with that pid; others started before it are left for child()."""

        def found():
            with self.cond:
                for c in self.children[self.taken:]:
                    if c.start and c.pid == pid:
                        self.children.remove(c)
                        self.children.insert(self.taken, c)
                        self.taken += 1
                        return c
            return None

        return until(found, timeout, "the child %d of %s" % (pid, self.name))

    @property
    def starts(self):
        """Return how many children have started, ended ones included."""
        self.caught_up()
        with self.cond:
            return len(self.children)

    @property
    def command(self):
        return "%s -I -S %s %s" % (PYTHON, os.path.join(self.folder, "agent.py"), self.folder)

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)  # wakes the thread: its next accept must not hit a reused descriptor
        self.thread.join(5)
        self.sock.close()
        for c in self.children:
            try:
                c.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            c.sock.close()


# --- the daemon ------------------------------------------------------------------------------------------------------


def build_file(name):
    """Return the path of a program in the build directory."""
    build = os.environ.get("PLENUM_BUILD")
    if not build:
        raise unittest.SkipTest("PLENUM_BUILD is not set")
    for pattern in (name, "*/" + name, "*/*/" + name):
        for path in sorted(glob.glob(os.path.join(build, pattern))):
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    raise FileNotFoundError("%s is not built in %s" % (name, build))


def names(pid, marker):
    """Return true if its command line or its environment has the marker; a zombie has neither."""
    for name in ("cmdline", "environ"):
        try:
            with open("/proc/%s/%s" % (pid, name), "rb") as f:
                if marker in f.read():
                    return True
        except OSError:
            pass
    return False


def processes_of(folder):
    """Return pids of processes that name the directory: daemons, children, grandchildren."""
    return [int(pid) for pid in filter(str.isdigit, os.listdir("/proc"))
            if int(pid) != os.getpid() and names(pid, folder.encode())]


def where(pid):
    """Describe a process, for messages."""
    text = []
    for name in ("cmdline", "wchan", "syscall"):
        try:
            with open("/proc/%d/%s" % (pid, name), "rb") as f:
                text.append(f.read()[-120:].replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError as e:
            text.append(str(e))
    return text


def alive(pid):
    """Return true if running and not a zombie."""
    try:
        with open("/proc/%d/stat" % pid, errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def dying(pid):
    """Return true if killed or ending, but not yet scheduled."""
    try:
        with open("/proc/%d/stat" % pid, errors="replace") as f:
            if int(f.read().rpartition(")")[2].split()[6]) & 0x4:  # PF_EXITING
                return True
        with open("/proc/%d/status" % pid) as f:
            pending = [int(line.split()[1], 16) for line in f if line.startswith(("SigPnd", "ShdPnd"))]
        return any(mask >> (signal.SIGKILL - 1) & 1 for mask in pending)
    except OSError:
        return True


def children_of(pid):
    """(pid, state) of its direct children, including zombies."""
    found = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % p, errors="replace") as f:
                state, ppid = f.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(ppid) == pid:
            found.append((int(p), state))
    return found


def is_helper(pid):
    """Return true for a helper of the daemon, which runs /proc/self/exe, and for a process that is gone."""
    try:
        with open("/proc/%d/comm" % pid) as f:
            name = f.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return name == "exe" or name.startswith("plenumd")


def agents_of(pid):
    """The same without helpers of the daemon."""
    return [(p, state) for p, state in children_of(pid) if not is_helper(p)]


def seal(obj):
    """Make a line of the table of sessions: the object with the sum of its bytes as its last member."""
    text, h = dump(obj)[:-1], 14695981039346656037
    for byte in text:
        h = (h ^ byte) * 1099511628211 & 0xffffffffffffffff
    return text + b',"sum":"%016x"}' % h


class Daemon:
    """plenumd in its own directory. Sections: {"daemon": {...}, "profile x": {...}}; a value may be a list of lines.

    Settings of a test override PROFILE_DEFAULTS. A child that ends by itself has as much time as a busy machine may
    need; for one that does not, the test uses QUICK, or waits."""

    PROFILE_DEFAULTS = {"stop_grace": "30s", "resume_args": "--resume={id}"}

    def __init__(self, sections=None, env=None, args=(), root=None, run_as=None, wrap=(), start=True, umask=None):
        self.root = root or tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        self.run, self.home = self.root + "/run", self.root + "/home"
        self.state, self.config = self.root + "/state", self.root + "/config"
        self.run_as, self.wrap, self.args, self.umask = run_as, list(wrap), list(args), umask
        for d in (self.run, self.home, self.state, self.config, self.config + "/plenum"):
            os.makedirs(d, mode=0o700, exist_ok=True)
        self.conf = self.config + "/plenum/plenum.conf"
        self.sections = sections or {}
        self.write_conf()
        self.env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.home,
                    "XDG_RUNTIME_DIR": self.run, "XDG_STATE_HOME": self.state, "XDG_CONFIG_HOME": self.config,
                    "LANG": "C.UTF-8"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "LD_PRELOAD"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        for name, value in (env or {}).items():
            if value is None:
                self.env.pop(name, None)
            else:
                self.env[name] = value
        self.socket = self.run + "/plenum/plenum.sock"
        self.log_path = self.root + "/log"
        self.process, self.clients, self.fds, self.program = None, [], None, None
        if start:
            self.start()

    def write_conf(self):
        """Without the machine's memory pressure, which would send sessions to sleep."""
        sections = dict(self.sections, daemon=dict({"memory_pressure": "no"}, **self.sections.get("daemon", {})))
        with open(self.conf, "w") as f:
            for section, keys in sections.items():
                f.write("[%s]\n" % section)
                if section.startswith("profile "):
                    keys = dict(self.PROFILE_DEFAULTS, **keys)
                for key, value in keys.items():
                    f.write("%s = %s\n" % (key, value))
                f.write("\n")

    # running

    def launch(self, *args, **kw):
        """Start only the process, without a wait; for starts that must fail."""
        argv = list(self.wrap)
        if self.run_as:
            subprocess.run(["chown", "-R", self.run_as, self.root], check=True)
            os.chmod(self.root, 0o755)
            argv += ["setpriv", "--reuid=" + self.run_as, "--regid=nogroup", "--clear-groups"]
        argv += [self.program or build_file("plenumd")] + self.args + list(args)
        log = open(self.log_path, "ab")
        umask = self.umask
        return subprocess.Popen(argv, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                                start_new_session=True, preexec_fn=(lambda: os.umask(umask)) if umask is not None else None, **kw)

    def start(self, timeout=None):
        self.process = self.launch()
        until(self.answers, timeout, "the daemon to answer\n" + self.log())
        # a daemon goes on without inotify if the user has too many instances (inotify(7)); the next one may have it again
        self.fds = max(self.fds or 0, self.settled_fds())
        return self

    def answers(self):
        """Return true if it says hello. A child of an earlier one that was killed may hold that one's socket for a moment:
        it accepts connections, and closes them."""
        if self.process.poll() is not None:
            raise AssertionError("plenumd ended with %d:\n%s" % (self.process.returncode, self.log_tail()))
        try:
            c = Client(self.socket)
        except OSError:
            return False
        try:
            c.hello()
        except OSError:
            return False
        except Timeout:
            if not c.eof:
                raise
            return False
        finally:
            c.close()
        return True

    @property
    def pid(self):
        """Of plenumd itself (a wrapper execs it)."""
        return self.process.pid

    def fd_count(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def settled_fds(self):
        """Return the number of descriptors once it has been stable over several looks at a sleeping daemon without
        helpers: one that is runnable or waits for a helper is in the middle of its work. Excludes the table of sessions
        being written, which takes as long as the disk does."""
        last, same = -1, 0
        for _ in range(500):
            n = len([f for f in self.fd_list() if "/sessions.json" not in f])
            same = same + 1 if n == last and self.waits() and not self.helpers() else 0
            last = n
            if same >= 3:
                break
            time.sleep(0.005)
        return last

    def waits(self):
        with open("/proc/%d/stat" % self.pid) as f:
            return f.read().rpartition(")")[2].split()[0] == "S"

    def helpers(self):
        """Return the processes that work for the daemon itself: each has descriptors at its end."""
        return [p for p, _ in children_of(self.pid) if is_helper(p)]

    @property
    def sanitized(self):
        with open(self.program or build_file("plenumd"), "rb") as f:
            return b"__asan_init" in f.read()

    def rss(self):
        """Resident memory in KiB. 0 under the address sanitizer, which keeps freed memory: tests cannot judge it
        there."""
        if self.sanitized:
            return 0
        with open("/proc/%d/status" % self.pid) as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))

    def faults(self):
        """Page faults so far without disk access. 0 under the address sanitizer, which has its own memory
        management."""
        if self.sanitized:
            return 0
        with open("/proc/%d/stat" % self.pid) as f:
            return int(f.read().rpartition(")")[2].split()[7])

    def stood(self):
        """Milliseconds so far in which its loop was ready and had no processor; 0 if the kernel does not count that."""
        try:
            with open("/proc/%d/schedstat" % self.pid) as f:
                return int(f.read().split()[1]) / 1e6
        except FileNotFoundError:
            return 0

    def cpu(self):
        """Seconds of processor time so far."""
        with open("/proc/%d/stat" % self.pid) as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log(self):
        try:
            with open(self.log_path, "rb") as f:
                return f.read().decode("utf-8", "replace")
        except OSError:
            return ""

    def log_tail(self):
        """For messages; a line that a test wants may be older."""
        return self.log()[-6000:]

    def client(self, label=None, kind=Client, **options):
        c = kind(self.socket, label or "client%d" % (len(self.clients) + 1), **options)
        self.clients.append(c)
        return c

    def attached(self, session="s", label=None, **members):
        """Return an attached client; its answer is .attached."""
        c = self.client(label)
        c.attached = c.attach(session, **members)
        return c

    def call(self, subtype, **members):
        """One request on a connection of its own."""
        c = Client(self.socket, "call")
        try:
            return c.request(subtype, **members)
        finally:
            c.close()

    def ctl(self, *args, **env):
        """Run plenumctl to its end."""
        return subprocess.run([build_file("plenumctl"), *args], env=dict(self.env, **env), capture_output=True, text=True,
                              timeout=TIMEOUT, check=False)

    def sessions(self):
        """plenum_list as {name: entry}."""
        return {s["session"]: s for s in self.call("plenum_list")["sessions"]}

    def state_of(self, session):
        entry = self.sessions().get(session)
        return entry and entry["state"]

    def wait_state(self, session, *states, timeout=None):
        return until(lambda: self.state_of(session) in states and self.state_of(session), timeout,
                     "session %s to be %s (it is %s)" % (session, " or ".join(states), self.state_of(session)))

    def open_to_all(self):
        """Let other uids reach the socket, so that it is the daemon that refuses them."""
        for path, mode in ((self.root, 0o755), (self.run, 0o755), (self.run + "/plenum", 0o755), (self.socket, 0o666)):
            os.chmod(path, mode)

    def kill9(self):
        self.process.kill()
        self.process.wait()

    # the end

    def finish(self):
        """The checks at the end of each test: it lives, releases its resources, ends with 0, and leaves no
        processes."""
        if self.process is None or self.process.poll() is not None:
            if self.process is not None:
                raise AssertionError("plenumd ended during the test with %d:\n%s" % (self.process.returncode, self.log_tail()))
            return
        for c in self.clients:
            c.close()
        if self.fds is not None:
            for name in list(self.sessions()):
                try:
                    self.call("plenum_stop", session=name, how="kill", forget=True)
                except PlenumError as e:
                    if e.code != "no_such_session":
                        raise
            until(lambda: self.fd_count() <= self.fds, None, "descriptors to be given back: %d at the start, now %s" % (
                self.fds, self.fd_list()))
        self.stop()
        left = [p for p in processes_of(self.root + "/") if alive(p)]
        doomed = [p for p in left if dying(p)]
        until(lambda: not any(alive(p) for p in doomed), what="those to end that were killed")
        left = [p for p in left if p not in doomed and alive(p)]
        if left:
            raise AssertionError("left behind: %s" % [(p, open("/proc/%d/cmdline" % p).read()) for p in left])

    # the table of sessions

    def table(self, name=None):
        """Return its sessions as a list of objects, from the newest file, without that file's name."""
        for file in [name] if name else ["sessions.json.next", "sessions.json"]:
            try:
                with open(self.state + "/plenum/" + file, "rb") as f:
                    return [o for o in map(json.loads, f.read().splitlines()) if "name" in o]
            except FileNotFoundError:
                pass
        return []

    def change_table(self, change):
        """Call change() with each line's object of both files, and seal the line again."""
        for path in glob.glob(self.state + "/plenum/sessions.json*"):
            with open(path, "rb") as f:
                lines = list(map(json.loads, f.read().splitlines()))
            with open(path, "wb") as f:
                for o in lines:
                    del o["sum"]
                    change(o)
                    f.write(seal(o) + b"\n")

    def stop(self, status=0, timeout=None):
        """Send SIGTERM and check the exit status."""
        self.process.send_signal(signal.SIGTERM)
        self.ended(status, timeout)

    def ended(self, status=0, timeout=None):
        try:
            got = self.process.wait(TIMEOUT if timeout is None else timeout)
        except subprocess.TimeoutExpired:
            raise Timeout("plenumd does not end:\n" + self.log_tail()) from None
        log = self.log()
        if got != status or "ERROR: AddressSanitizer" in log or "runtime error:" in log or "LeakSanitizer" in log:
            raise AssertionError("plenumd ended with %d, not %d:\n%s" % (got, status, log[-20000:]))

    def fd_list(self):
        folder = "/proc/%d/fd" % self.pid
        found = []
        for n in os.listdir(folder):
            try:
                found.append(n + ":" + os.readlink(folder + "/" + n))
            except OSError:
                pass
        return found

    def destroy(self):
        """Remove everything in any case: processes first, then the directory."""
        for c in self.clients:
            c.close()
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        killed = set()
        while more := set(processes_of(self.root + "/")) - killed:  # again for those that they started meanwhile
            for pid in more:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            killed |= more
        if not os.environ.get("PLENUM_TEST_KEEP"):
            subprocess.run(["chmod", "-R", "u+rwx", self.root], check=False, stderr=subprocess.DEVNULL)
            shutil.rmtree(self.root, ignore_errors=True)


# --- the test case ---------------------------------------------------------------------------------------------------


class Case(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.daemons, self.agents = [], []
        self.addCleanup(self.clean)
        described.faults.clear()

    def start(self, agents=("agent",), mode=None, daemon=None, limits=None, profile=None, profiles=None, dialects=None, **options):
        """Start a daemon with one profile per name; the first is the default one. (daemon, agent, agent, ...)

        mode: agent.MODE of the children; daemon, limits: keys of those sections; profile: keys of each agent's profile;
        profiles: further sections unchanged; dialects: of agents that do not speak the default one, by name."""
        root = options.pop("root", None) or tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        made = [Agent(os.path.join(root, name), name, **(mode or {})) for name in agents]
        self.agents += made
        # no session may be put to sleep because of other programs' memory use
        common = dict({"memory_pressure": "no"}, **({"default_profile": agents[0]} if agents else {}))
        sections = {"daemon": dict(common, **(daemon or {}))}
        if limits:
            sections["limits"] = limits
        for a in made:
            sections["profile " + a.name] = dict({"command": a.command}, **(profile or {}))
            if a.name in (dialects or {}):
                sections["profile " + a.name]["dialect"] = dialects[a.name]
        for name, keys in (profiles or {}).items():
            sections[name] = keys
        d = self.track(Daemon(sections, root=root, start=False, **options))
        d.start()
        return (d, *made)

    def open(self, n=1, **options):
        """A session with n drivers and its running child: (daemon, agent, child, client, ...)."""
        d, agent = self.start(**options)
        clients = [d.attached() for _ in range(n)]
        return (d, agent, agent.child(), *clients)

    def track(self, daemon):
        self.daemons.append(daemon)
        return daemon

    def clean(self):
        failed = self.failed()
        try:
            if not failed:
                for d in self.daemons:
                    d.finish()
                if described.faults:
                    raise described.Undescribed(described.faults[0])
        except BaseException:
            failed = True
            raise
        finally:
            for d in self.daemons:
                if failed:
                    sys.stderr.write("--- log of %s\n%s---\n" % (self.id(), d.log_tail()))
                d.destroy()
            for a in self.agents:
                a.close()

    def failed(self):
        result = self._outcome.result
        mine = [t for t, _ in result.failures + result.errors if t is self]
        return bool(mine) or not self._outcome.success

    def assertRefused(self, code, call, *args, **kw):
        """The call is answered by an error response with that code and a message; return the PlenumError."""
        try:
            got = call(*args, **kw)
        except PlenumError as e:
            self.assertEqual(e.code, code, e.text)
            self.assertIsInstance(e.text, str)
            self.assertTrue(e.text.strip(), "an error without a sentence")
            return e
        raise AssertionError("not refused (%s expected): %r" % (code, got))

    def refusal(self, client, rid=None, codes=("bad_line",), **want):
        """Return the error members of a refused line: an error response if the line was a request with an id (rid),
        else a notice."""

        def fits(m):
            if matches(m.obj, {"type": "control_response", "response.subtype": "error"}):
                return rid is not None and m["response.request_id"] == rid
            return matches(m.obj, {"type": "system", "subtype": "plenum_event", "event": "error"})

        m = client.wait(fits, title="refusal")
        body = m.obj["response"] if m["type"] == "control_response" else m.obj
        self.assertIn(body.get("code"), codes, m)
        self.assertTrue(isinstance(body.get("error"), str) and body["error"].strip(), m)
        self.assertTrue(matches(body, want), "%r in %r" % (want, m))
        return body

    def assertNone(self, messages, text="came though it must not"):
        self.assertEqual([m.raw[:300] for m in messages], [], text)
