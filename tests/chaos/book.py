# SPDX-License-Identifier: MIT
"""What stands on a session's tape, as the clients saw it, against what the session's children printed (recorder.py)."""
import json
import os
from collections import deque

from peer import Violation, alive, parse, start_time
from snapshot import Said

KEPT = 200000
LINE_MAX = 1000000  # a longer line of a child is left out, and said so


class Run:
    """One run of a child: the folder that its recorder writes."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "meta")) as f:
            self.meta = json.load(f)
        self.start = start_time(self.meta["pid"])
        self.pid, self.ppid, self.session = self.meta["pid"], self.meta["ppid"], self.meta["session"]
        self.read = {"in": 0, "out": 0}
        self.rest = {"in": b"", "out": b""}
        self.lines = deque()    # (kind, hash, beginning) for the tape, not yet found there
        self.asked, self.answers = {}, {}   # its requests: id: subtype; their answers: id: how many
        self.withdrawn = set()
        self.uuids = {}         # uuid: the line as it came
        self.repeated = []
        self.echoed = set()     # the uuids that its replays name: those prompts were taken up
        self.said = Said()
        self.over = self.complete = False

    def refresh(self):
        """Reads on in what was recorded. Whether it has ended is asked first, so that nothing comes behind it."""
        over = not alive(self.pid) or start_time(self.pid) != self.start  # another process may have its number now
        for name, take in (("in", self.took), ("out", self.printed)):
            with open(os.path.join(self.folder, name), "rb") as f:
                f.seek(self.read[name])
                data = f.read()
            self.read[name] += len(data)
            lines = (self.rest[name] + data).split(b"\n")
            self.rest[name] = lines.pop()
            for line in lines:
                take(line)
        if over and not self.over:
            self.over = True
            self.complete = os.path.exists(os.path.join(self.folder, "end"))
            if self.rest["out"]:  # half a line at the end
                self.lines.append(("stray", None, self.rest["out"]))

    def printed(self, line):
        obj = parse(line)
        if not isinstance(obj, dict):
            if line.strip():
                self.lines.append(("stray", None, line))
            return
        kind = obj.get("type")
        self.said.printed(obj)
        if obj.get("isReplay"):
            self.echoed.add(obj.get("uuid"))
        if kind == "control_request":
            self.asked[obj["request_id"]] = obj["request"].get("subtype")
        elif kind == "control_cancel_request":
            self.withdrawn.add(obj["request_id"])
        elif kind != "control_response" and len(line) <= LINE_MAX:
            self.lines.append(("line", hash(line), line[:200]))

    def took(self, line):
        obj = parse(line)
        if not isinstance(obj, dict):
            raise Violation("the child of %s was sent what is no JSON object: %r" % (self.session, line[:500]))
        self.said.took(obj)
        if obj.get("type") == "control_response":
            rid = (obj.get("response") or {}).get("request_id")
            self.answers[rid] = self.answers.get(rid, 0) + 1
            if rid not in self.asked and not self.was_asked(rid):
                raise Violation("the child of %s was sent an answer to nothing: %r" % (self.session, line[:500]))
            if self.answers[rid] > 1:
                raise Violation("the child of %s was sent two answers to %s" % (self.session, rid))
        uuid = obj.get("uuid")
        if obj.get("type") == "user" and uuid:
            if uuid in self.uuids:
                self.repeated.append(uuid)
            self.uuids[uuid] = line

    def was_asked(self, rid):
        """`in` is read before `out`."""
        with open(os.path.join(self.folder, "out"), "rb") as f:
            return json.dumps(rid).encode() in f.read()

    def lines_about(self, word):
        """What was said either way from the line with this word on."""
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

    def __init__(self, session, life):
        self.session, self.life = session, life
        self.entries = {}       # seq: (kind, hash, text)
        self.top = -1
        self.next = None        # the first line that is not compared yet
        self.hole = 0
        self.at = 0             # which of the runs
        self.passed = 0
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
            self.top = max(self.top, seq)
        elif known != entry:
            peer.fail("line %d differs from what another client got: %r" % (seq, known[2]), raw)

    @staticmethod
    def entry(raw, obj):
        if obj.get("type") != "system" or obj.get("subtype") != "plenum_event":
            return ("line", hash(raw), raw[:200])
        if obj.get("event") == "stray_output":
            return ("stray", hash(raw), obj["text"], obj.get("size"))
        return ("notice", hash(raw), raw[:200])

    # --- comparing with what was recorded

    def compare(self, runs):
        """Every line up to the newest against the runs, in order. Raises where they differ."""
        if self.next is None:
            self.next = min(self.entries, default=0)
            self.hole = KEPT if self.next > 1 else 0  # what came before nobody saw
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
            while run.lines:
                if self.same(entry, run.lines[0], run):
                    run.lines.popleft()
                    return
                if run.over and not run.complete:
                    run.lines.popleft()  # it was killed: the rest of its output may never have come out
                elif allowed > 0:
                    allowed -= 1
                    skipped.append(run.lines.popleft())
                else:
                    break
            if run.lines or not run.over:
                break
            self.at += 1
        raise Violation("session %s: line %d of the tape is not what the child printed: %r\n  it printed: %r\n  "
                        "in a hole of %d lines: %r" % (
                            self.session, self.next, entry[2],
                            [list(r.lines)[:2] for r in runs[self.at:self.at + 2]], self.hole, skipped[:5]))

    @staticmethod
    def same(entry, line, run):
        kind, digest, text = line
        if entry[0] != kind:
            # the last line of a child that was killed, cut
            return entry[0] == "stray" and run.over and not run.complete and Book.begins(text, entry[2])
        if kind == "line":
            return entry[1] == digest
        return Book.begins(text, entry[2]) if entry[3] or run.over else text.decode("utf-8", "replace") == entry[2]

    @staticmethod
    def begins(raw, text):
        return raw.decode("utf-8", "replace").startswith(text.rstrip("\ufffd")[:150])

    def missing(self, runs):
        """Lines that were printed and have not come: (run, how many, the first). A hole may have taken them."""
        found = []
        spare = self.hole
        for run in runs[self.at:]:
            if run.over and not run.complete:
                continue
            if len(run.lines) > spare:
                found.append((run.pid, len(run.lines), run.lines[0][2]))
            spare = max(0, spare - len(run.lines))
        return found
