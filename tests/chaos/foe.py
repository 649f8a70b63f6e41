# SPDX-License-Identifier: MIT
"""Connections of the hostile driver: any number, of any uid, that send anything and need not read."""
import collections
import json
import os
import re
import select
import socket
import struct
import subprocess
import time

from harness import PYTHON, dump

# A daemon without descriptors accepts nothing: the attacker, who would give them back, must not wait for it.
HELPER = """import socket, struct, sys
f = socket.socket(fileno=int(sys.argv[1]))
while f.recv(1):
    s = socket.socket(socket.AF_UNIX)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack('ll', 0, 50000))
    try:
        s.connect(sys.argv[2])
        socket.send_fds(f, [b'+'], [s.fileno()])
    except OSError as e:
        f.send(b'%d' % e.errno)
    s.close()
"""


class Door:
    """Makes connections of one uid; None: of this process."""

    def __init__(self, path, uid):
        self.path, self.uid, self.process = path, uid, None
        if uid is not None:
            self.here, there = socket.socketpair()
            self.process = subprocess.Popen([PYTHON, "-I", "-S", "-c", HELPER, str(there.fileno()), path],
                                            pass_fds=[there.fileno()], cwd="/", user=uid, group=uid, extra_groups=())
            there.close()

    def connect(self):
        """Return a socket; OSError if refused."""
        if self.process is None:
            s = socket.socket(socket.AF_UNIX)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 50000))
            s.connect(self.path)
            return s
        self.here.send(b"x")
        data, fds, _, _ = socket.recv_fds(self.here, 16, 1)
        if not fds:
            raise OSError(int(data), os.strerror(int(data)))
        return socket.socket(fileno=fds[0])

    def close(self):
        if self.process:
            self.here.close()
            self.process.wait()


CODE = re.compile(rb'"subtype":"(success)"|"code":"([a-z_]+)"')


class Foe:
    def __init__(self, door, reads=True):
        self.uid, self.reads = door.uid, reads
        self.codes = collections.Counter()  # the answers to its lines
        self.sock = door.connect()
        self.sock.setblocking(False)
        self.out, self.chunk = bytearray(), 1 << 18  # chunk: bytes per send
        self.tail, self.closed = b"", False
        self.answered = set()  # ids of awaited answers
        self.syncs = 0
        self.answer = False    # the answer to each request of an agent; False: none

    def send(self, data):
        self.out += data
        self.flush()

    def request(self, subtype, rid="1", **members):
        self.send(dump({"type": "control_request", "request_id": rid, "request": dict({"subtype": subtype}, **members)}) + b"\n")

    def sync(self):
        """Request an answer that comes when all lines so far were read; return its name, for is_synced()."""
        self.syncs += 1
        name = "sync-%d" % self.syncs
        self.request("plenum_hello", name)
        return name

    def is_synced(self, name):
        return self.closed or name in self.answered

    def flush(self):
        try:
            while self.out and not self.closed:
                n = self.sock.send(self.out[:self.chunk], socket.MSG_NOSIGNAL)
                del self.out[:n]
                if self.chunk < 100:
                    return
        except BlockingIOError:
            pass
        except OSError:
            self.close()

    def pump(self):
        self.flush()
        for _ in range(8):
            if self.closed or not self.reads:
                return
            try:
                data = self.sock.recv(1 << 18)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.close()
                return
            self.take(data)

    def take(self, data):
        """Only the beginning of a line is of interest."""
        lines = (self.tail + data).split(b"\n")
        self.tail = lines.pop()[:4096]
        for raw in lines:
            for good, code in CODE.findall(raw[:4096]) if raw.startswith((b'{"type":"control_resp', b'{"type":"system","subtype":"plenum')) else ():
                self.codes[(good or code).decode()] += 1
            if self.answer is not False and raw.startswith(b'{"type":"control_request"'):
                self.say(json.loads(raw)["request_id"])
            at = raw.find(b'"request_id":"sync-')
            if at >= 0:
                self.answered.add(raw[at + 14:raw.index(b'"', at + 14)].decode())

    def say(self, rid):
        answer = {"subtype": "success", "request_id": rid, "response": self.answer}
        self.send((dump({"type": "control_response", "response": answer}) + b"\n") * 3)

    def send_descriptors(self, line, number, times):
        """Send a line with so many descriptors each time, as far as the daemon takes them."""
        with open("/dev/null", "rb") as null:
            try:
                for _ in range(0 if self.closed else times):
                    socket.send_fds(self.sock, [line], [null.fileno()] * number)
            except BlockingIOError:
                pass
            except OSError:
                self.close()

    def shut(self, how):
        """Shut the connection down, unless the daemon has closed it."""
        if not self.closed:
            self.sock.shutdown(how)

    def close(self):
        if not self.closed:
            self.closed = True
            self.out.clear()
            self.sock.close()


def pump(foes, seconds):
    """Let all of them send and read for this long."""
    deadline = time.monotonic() + seconds
    while True:
        for foe in foes:
            foe.pump()
        left = deadline - time.monotonic()
        if left <= 0:
            return
        poll = select.poll()
        for foe in foes:
            if not foe.closed and (foe.reads or foe.out):
                poll.register(foe.sock, (select.POLLIN if foe.reads else 0) | (select.POLLOUT if foe.out else 0))
        poll.poll(min(left, 0.02) * 1000)
        if any(foe.chunk < 100 and foe.out for foe in foes):
            time.sleep(0.001)
