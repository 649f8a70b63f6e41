# SPDX-License-Identifier: MIT
"""A stand-in for plenumd's side of the socket, and a plenum-shim in front of it.

The tests that use it decide every line that the shim sees, so they can show what a real daemon does only by chance:
pieces of lines, a daemon that dies, an answer that does not come.
"""
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

DEADLINE = float(os.environ.get("PLENUM_TEST_TIMEOUT", "60"))  # seconds until a test gives up, as in the harness
STREAM = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]


class Line(dict):
    """A line of the protocol with its raw bytes."""

    def __init__(self, raw):
        super().__init__(json.loads(raw))
        self.raw = raw


class Pipe:
    """Lines of a descriptor, with a deadline."""

    def __init__(self, fd):
        self.fd, self.data, self.eof = fd, b"", False

    def fetch(self, until):
        left = until - time.monotonic()
        if left <= 0 or not select.select([self.fd], [], [], left)[0]:
            raise TimeoutError("nothing came; so far: %r" % self.data[-300:])
        try:
            got = os.read(self.fd, 1 << 20)
        except ConnectionResetError:  # what we had sent was not read
            got = b""
        self.eof = not got
        return got

    def collect(self, until, enough):
        parts = [self.data]
        while not self.eof and not enough(parts[-1]):
            parts.append(self.fetch(until))
        self.data = b"".join(parts)

    def line(self, timeout=DEADLINE):
        self.collect(time.monotonic() + timeout, lambda part: b"\n" in part)
        if b"\n" not in self.data:
            raise EOFError("no line before the end; rest: %r" % self.data)
        line, _, self.data = self.data.partition(b"\n")
        return line

    def rest(self, timeout=DEADLINE):
        self.collect(time.monotonic() + timeout, lambda part: False)
        data, self.data = self.data, b""
        return data

    def quiet(self, seconds):
        """True: nothing comes for so long."""
        return not self.data and not select.select([self.fd], [], [], seconds)[0]


class Peer(Pipe):
    """One connection of a shim, seen from the daemon."""

    def __init__(self, sock):
        super().__init__(sock.fileno())
        self.sock = sock

    def read(self):
        return Line(self.line())

    def send(self, *items):
        for item in items:
            raw = item if isinstance(item, bytes) else json.dumps(item, separators=(",", ":")).encode() + b"\n"
            self.sock.sendall(raw)

    def answer(self, request, payload=None, **error):
        response = {"subtype": "error" if error else "success", "request_id": request["request_id"]}
        response.update(error or {"response": payload or {}})
        self.send({"type": "control_response", "response": response})

    def attach(self, **payload):
        """Takes the attach and says yes; returns what was asked."""
        line = self.read()
        assert line["request"]["subtype"] == "plenum_attach", line
        self.answer(line, {"session": "s1", "created": True, "state": "starting", "protocol": 1, **payload})
        return line["request"]

    def event(self, event, **members):
        self.send({"type": "system", "subtype": "plenum_event", "event": event, "session": "s1", **members})

    def exited(self, status=0, signal=0, stderr=(), wanted=True):
        self.event("child_exited", status=status, signal=signal, stderr=list(stderr), wanted=wanted)
        self.close()

    def close(self):
        self.sock.close()


class Shim:
    """A running plenum-shim."""

    def __init__(self, args, env, cwd=None, pass_fds=()):
        self.process = subprocess.Popen(
            args, env=env, cwd=cwd, pass_fds=pass_fds, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self.out = Pipe(self.process.stdout.fileno())
        self.err = Pipe(self.process.stderr.fileno())

    def write(self, *items):
        for item in items:
            raw = item if isinstance(item, bytes) else json.dumps(item, separators=(",", ":")).encode() + b"\n"
            while raw:
                raw = raw[os.write(self.process.stdin.fileno(), raw) :]

    def read(self):
        return Line(self.out.line())

    def eof(self):
        self.process.stdin.close()

    def kill(self, number):
        self.process.send_signal(number)

    def end(self):
        """(exit code as a shell says it, rest of stdout, rest of stderr)"""
        out, err = self.out.rest(), self.err.rest().decode()
        code = self.process.wait(DEADLINE)
        return code if code >= 0 else 128 - code, out, err

    def destroy(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                pass


class Place:
    """A private folder with a socket, and the shims that use it."""

    def __init__(self, shim):
        self.shim_path = shim
        self.dir = tempfile.mkdtemp(prefix="plenum-shim-")
        self.path = os.path.join(self.dir, "plenum.sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.listener.settimeout(DEADLINE)
        self.things = []

    def env(self, **more):
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.dir, "PLENUM_SOCKET": self.path}
        env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        env.update(more)
        return {k: v for k, v in env.items() if v is not None}

    def shim(self, *args, stream=True, cwd=None, pass_fds=(), **env):
        s = Shim([self.shim_path, *(STREAM if stream else []), *args], self.env(**env), cwd, pass_fds)
        self.things.append(s.destroy)
        return s

    def accept(self):
        sock, _ = self.listener.accept()
        sock.settimeout(DEADLINE)
        peer = Peer(sock)
        self.things.append(peer.close)
        return peer

    def stop_listening(self):
        self.listener.close()

    def destroy(self):
        for destroy in self.things:
            destroy()
        self.listener.close()
        shutil.rmtree(self.dir, ignore_errors=True)


__all__ = ["DEADLINE", "STREAM", "Line", "Place", "Shim", "signal"]
