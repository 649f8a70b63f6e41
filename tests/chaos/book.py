# SPDX-License-Identifier: MIT
"""The tape of a session, as seen by the clients, compared with the output of its children (recorder.py)."""
import bisect
import json
import os
import re

from harness import alive, parse
from peer import Violation, key_of
from procs import start_time
from snapshot import Said

KEPT = 200000
LINE_MAX = 1000000  # a longer line of a child is dropped with a notice
MARK = re.compile(rb"mark-[0-9a-f]{16}")  # in a prompt that has no uuid


def is_echo(obj):
    """A prompt repeated by the child; output of its own commands has the same mark."""
    content = (obj.get("message") or {}).get("content")
    if isinstance(content, list) and content and isinstance(content[0], dict):
        content = content[0].get("text")
    return obj.get("isReplay") is True and obj.get("type") == "user" and not str(content).startswith("<local-command-")


class Run:
    """One run of a child: the directory written by its recorder."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "meta")) as f:
            self.meta = json.load(f)
        self.start = start_time(self.meta["pid"])
        self.pid, self.ppid, self.session = self.meta["pid"], self.meta["ppid"], self.meta["session"]
        self.spare = self.session.startswith("warm-")  # it was prestarted
        self.owners = [] if self.spare else [key_of(self.session, self.meta["cwd"])]  # the sessions that had it, in order
        self.profile = self.meta["profile"]
        self.read = {"in": 0, "out": 0}
        self.rest = {"in": b"", "out": b""}
        self.lines = []         # (kind, hash, beginning) for the tape
        self.order = []         # (size of `in`, size of `out` when it was read)
        self.heard = []         # subtypes of the requests to it
        self.took_at, self.done_at = [], {}  # its prompts: (end in `in`, uuid); the end of each in `out`
        self.marks = {}         # prompts without a uuid: the line as received
        self.asked, self.answers = {}, {}   # its requests: id: subtype; their answers: id: how many
        self.withdrawn, self.calls = set(), {}
        self.uuids = {}         # uuid: the line as received
        self.repeated = []
        self.echoed = set()     # the uuids named by its replays: those prompts were accepted
        self.said = Said()
        self.over = self.complete = False

    def refresh(self):
        """Read the new records. Its end is checked first, so that no output comes after it."""
        over = not alive(self.pid) or start_time(self.pid) != self.start  # another process may have its pid now
        for name, take in (("in", self.took), ("out", self.printed)):
            with open(os.path.join(self.folder, name), "rb") as f:
                f.seek(self.read[name])
                data = f.read()
            at = self.read[name] - len(self.rest[name])
            self.read[name] += len(data)
            lines = (self.rest[name] + data).split(b"\n")
            self.rest[name] = lines.pop()
            for line in lines:
                at += len(line) + 1
                take(line, at)
        if over and not self.over:
            self.over = True
            self.complete = os.path.exists(os.path.join(self.folder, "end"))
            if self.rest["out"]:  # half a line at the end
                self.lines.append(("stray", None, self.rest["out"]))

    def printed(self, line, at):
        obj = parse(line)
        if not isinstance(obj, dict):
            if line.strip():
                self.lines.append(("stray", None, line))
            return
        kind = obj.get("type")
        self.said.printed(obj)
        self.over_at(obj, at)
        if obj.get("isReplay"):
            self.echoed.add(obj.get("uuid"))
        if kind == "control_request":
            self.asked[obj["request_id"]] = obj["request"].get("subtype")
            if obj["request"].get("subtype") == "mcp_message":
                self.calls_server(obj)
        elif kind == "control_cancel_request":
            self.withdrawn.add(obj["request_id"])
        elif kind != "control_response" and len(line) <= LINE_MAX:
            self.lines.append(("line", hash(line), line[:200]))

    def calls_server(self, obj):
        """A call of a tool that it no longer waits for is withdrawn by an MCP message."""
        server, message = obj["request"].get("server_name"), obj["request"].get("message") or {}
        if message.get("method") == "notifications/cancelled":
            self.withdrawn.add(self.calls.get((server, (message.get("params") or {}).get("requestId"))))
        elif "id" in message:
            self.calls[server, message["id"]] = obj["request_id"]

    def over_at(self, obj, at):
        """Return the prompts that this line ends."""
        over = []
        if obj.get("type") == "result":
            over = (obj.get("user_message_uuids") or []) + [obj.get("user_message_uuid")]
        elif obj.get("type") == "command_lifecycle" and obj.get("state") in ("cancelled", "discarded", "refused"):
            over = [obj.get("command_uuid")]
        for uuid in over:
            self.done_at.setdefault(uuid, at)

    def out_seen(self, at):
        """Return the maximum size of `out` when the daemon wrote the line ending here in `in`."""
        if not self.order or self.order[-1][0] < at:
            with open(os.path.join(self.folder, "order")) as f:
                self.order = [tuple(map(int, line.split())) for line in f.read().split("\n")[:-1]]
        found = bisect.bisect_left(self.order, (at, 0))
        return self.order[found][1] if found < len(self.order) else self.read["out"]

    def took(self, line, at):
        obj = parse(line)
        if not isinstance(obj, dict):
            raise Violation("the child of %s was sent what is no JSON object: %r" % (self.session, line[:500]))
        self.said.took(obj)
        if obj.get("type") == "control_request":
            self.heard.append((obj.get("request") or {}).get("subtype"))
        if obj.get("type") == "control_response":
            rid = (obj.get("response") or {}).get("request_id")
            self.answers[rid] = self.answers.get(rid, 0) + 1
            if rid not in self.asked and not self.was_asked(rid):
                raise Violation("the child of %s was sent an answer to nothing: %r" % (self.session, line[:500]))
            if self.answers[rid] > 1:
                raise Violation("the child of %s was sent two answers to %s" % (self.session, rid))
        uuid = obj.get("uuid")
        if obj.get("type") == "user":
            self.took_at.append((at, uuid))
            for mark in MARK.findall(line):
                if mark in self.marks:
                    self.repeated.append(mark)
                self.marks[mark] = line
        if obj.get("type") == "user" and uuid:
            if uuid in self.uuids:
                self.repeated.append(uuid)
            self.uuids[uuid] = line

    def was_asked(self, rid):
        """`in` is read before `out`."""
        with open(os.path.join(self.folder, "out"), "rb") as f:
            return json.dumps(rid).encode() in f.read()

    def lines_about(self, word):
        """Return the lines in both directions from the one with this word on."""
        found = []
        for name in ("out", "in"):
            with open(os.path.join(self.folder, name), "rb") as f:
                lines = f.read().split(b"\n")
            at = next((i for i, line in enumerate(lines) if word.encode() in line), None)
            found += ["%s: %r" % (name, line[:300]) for line in (lines[-9:] if at is None else lines[at:at + 9])]
        return found

    def unanswered(self):
        return {r: s for r, s in self.asked.items() if r not in self.answers and r not in self.withdrawn}


class Book:
    """The tape of one session in one life of the daemon."""

    def __init__(self, session, key):
        self.session, self.key = session, key
        self.entries = {}       # seq: (kind, hash, text, size of a cut line, type, whether it is an echo)
        self.uuids = {}         # uuid of a line: its numbers
        self.top = -1
        self.next = None        # the first line not compared yet
        self.hole = 0
        self.at = 0             # index into the runs
        self.taken = {}         # run: number of its past lines
        self.finds = 0

    def put(self, peer, seq, raw, obj):
        if not isinstance(obj, dict):
            peer.fail("a line of the tape that is no JSON object", raw)
        entry = self.entry(raw, obj)
        known = self.entries.get(seq)
        if known is None:
            if self.next is not None and seq < self.next:
                return  # forgotten, or in a hole
            self.entries[seq] = entry
            if entry[4] in ("user", "assistant", "result") and obj.get("uuid"):
                bisect.insort(self.uuids.setdefault(obj["uuid"], []), seq)
            self.top = max(self.top, seq)
        elif known != entry:
            peer.fail("line %d differs from what another client got: %r" % (seq, known[2]), raw)

    @staticmethod
    def entry(raw, obj):
        if obj.get("type") != "system" or obj.get("subtype") != "plenum_event":
            return ("line", hash(raw), raw[:200], None, obj.get("type"), is_echo(obj))
        if obj.get("event") == "stray_output":
            return ("stray", hash(raw), obj["text"], obj.get("size"), "system", False)
        return ("notice", hash(raw), raw[:200], None, "system", False)

    # --- comparison with the records

    def compare(self, runs):
        """Compare every line up to the newest with the runs, in order. Raises at a difference."""
        if self.next is None:
            self.next = min(self.entries, default=0)
            self.hole = KEPT if self.next > 1 else 0  # earlier lines were seen by no client
        while self.next <= self.top:
            entry = self.entries.get(self.next)
            if entry is None:
                self.hole += 1
            elif entry[0] != "notice":
                self.find(entry, runs)
                self.hole = 0
                self.finds += 1
            self.next += 1
        for seq in [s for s in self.entries if s < self.next - KEPT]:
            del self.entries[seq]

    def find(self, entry, runs):
        allowed = self.hole
        skipped = []
        while self.at < len(runs):
            run = runs[self.at]
            at = self.taken.get(run, 0)
            gave_up = self.gave_up(run, runs)
            while at < len(run.lines):
                if self.same(entry, run.lines[at], run):
                    self.pass_to(run, at + 1)
                    return
                if run.over and not run.complete:
                    at += 1  # it was killed: the rest of its output may be lost
                elif allowed > 0:
                    allowed -= 1
                    skipped.append(run.lines[at])
                    at += 1
                else:
                    break
            if not gave_up:
                self.pass_to(run, at)
                if at < len(run.lines) or not run.over:
                    break
            self.at += 1
        raise Violation("session %s: line %d of the tape is not what the child printed: %r\n  it printed: %r\n  "
                        "in a hole of %d lines: %r" % (
                            self.key, self.next, entry[2],
                            [self.rest_of(r)[:2] for r in runs[self.at:self.at + 2]], self.hole, skipped[:5]))

    def gave_up(self, run, runs):
        """Return true if it is prestarted again or belongs to another session: a session has one child at a time."""
        return run.spare and (run.owners[-1] != self.key or (run is not runs[-1] and not run.over))

    def pass_to(self, run, at):
        """Past lines are dropped, unless another session may have them, too."""
        for i in range(self.taken.get(run, 0), at if not run.spare else 0):
            run.lines[i] = None
        self.taken[run] = at

    def rest_of(self, run):
        return run.lines[self.taken.get(run, 0):]

    @staticmethod
    def same(entry, line, run):
        kind, digest, text = line
        if entry[0] != kind:
            # the last line of a killed child, truncated
            return entry[0] == "stray" and run.over and not run.complete and Book.begins(text, entry[2])
        if kind == "line":
            return entry[1] == digest
        return Book.begins(text, entry[2]) if entry[3] or run.over else text.decode("utf-8", "replace") == entry[2]

    @staticmethod
    def begins(raw, text):
        return raw.decode("utf-8", "replace").startswith(text.rstrip("\ufffd")[:150])

    def missing(self, runs):
        """Return printed lines that have not come: (run, how many, the first). They may be in a hole."""
        found = []
        spare = self.hole
        for run in runs[self.at:]:
            if (run.over and not run.complete) or self.gave_up(run, runs):
                continue
            rest = self.rest_of(run)
            if len(rest) > spare:
                found.append((run.pid, len(rest), rest[0][2]))
            spare = max(0, spare - len(rest))
        return found

    # --- lines due to a client

    def whole(self, first):
        """Return true if every line from this one on is known."""
        return all(s in self.entries for s in range(first, self.top + 1))

    def lines_for(self, first, options):
        """Return the numbers of the lines for a client with these filters."""
        return [s for s in range(first, self.top + 1) if self.passes(self.entries[s], options)]

    @staticmethod
    def passes(entry, options):
        kind, echo = entry[4], entry[5]
        if entry[0] != "line":
            return True
        if options.get("types") is not None and kind not in options["types"]:
            return False
        return not (options.get("partial") is False and kind == "stream_event") and not (options.get("echo") is False and echo)

    def after_uuid(self, uuid, oldest, seq):
        """Return the start of `after_uuid`, and whether it was cut; None if the book is incomplete."""
        if not all(s in self.entries for s in range(oldest, seq)):
            return None
        known = [s for s in self.uuids.get(uuid, []) if oldest <= s < seq]
        return (known[-1] + 1, False) if known else (oldest, True)
