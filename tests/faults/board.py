# SPDX-License-Identifier: MIT
"""The memory shared by plenumd-faults and its test (inject.c, struct board)."""
import mmap
import struct

NAMES = ["malloc", "accept4", "vfork", "pipe2", "read", "write", "writev", "sendmsg", "fsync", "renameat", "openat",
         "now_us"]
HEAD = struct.Struct("=II%dQ" % (2 * len(NAMES)))
SPEC = 1000


class Board:
    def __init__(self, path):
        self.path = path
        with open(path, "wb") as f:
            f.write(b"\0" * ((HEAD.size + SPEC + 7) & ~7))
        with open(path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 0)

    def fields(self):
        return HEAD.unpack_from(self.map, 0)

    def arm(self, spec):
        """In force from the daemon's next call on."""
        text = spec.encode() + b"\0"
        self.map[HEAD.size:HEAD.size + len(text)] = text
        struct.pack_into("@I", self.map, 0, self.fields()[0] + 1)  # native: in one store

    def failed(self, name):
        return self.fields()[2 + len(NAMES) + NAMES.index(name)]

    def calls(self, name):
        return self.fields()[2 + NAMES.index(name)]
