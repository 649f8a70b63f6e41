# SPDX-License-Identifier: MIT
"""One client of the chaos driver: it sends, it reads when the driver lets it, and it checks every received line."""
import os
import re
import select
import socket
import time

from harness import dump, parse

PATIENCE = float(os.environ.get("PLENUM_CHAOS_PATIENCE", "60"))  # seconds until an expected line counts as missing
TAG = re.compile(rb'\{"plenum_seq":(\d+)(,?)')
PRIVATE_EVENTS = ("error", "gap", "lag", "attached", "detached", "stderr", "attention", "shutting_down", "session_created")


class Violation(AssertionError):
    """An invariant does not hold."""


def key_of(name, cwd):
    """A name can be used again, for another session: then its directory is NAME~N."""
    base = os.path.basename(cwd)
    return base if base.startswith(name + "~") else name


class Prompt:
    __slots__ = ("uuid", "line", "raw", "outcome", "peer", "excuse", "key", "was")

    def __init__(self, uuid, line, raw, peer):
        self.uuid, self.line, self.raw, self.peer = uuid, line, raw, peer
        self.key = peer.certain_key()
        self.was = uuid      # as sent; the daemon assigns another if it is taken
        self.outcome = None  # "done", or the code of an error
        self.excuse = None   # why no outcome can be expected any more


class Peer:
    """Tape lines go to books(session), which knows the line of each number."""

    count = 0

    def __init__(self, path, world, label=None):
        Peer.count += 1
        self.number = Peer.count
        self.label = "%s%d" % (label or "peer", self.number)
        self.world = world
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(5 if world.limited or world.frozen else PATIENCE)
        self.sock.connect(path)
        self.sock.setblocking(False)
        self.out, self.rest = bytearray(), []
        self.closed = self.half = self.stalled = self.witness = False
        self.apart = False     # random actions skip it
        self.trickle = 0       # reads only this many bytes at once
        self.squeezed = world.limited  # it connected when descriptors were short
        self.why_closed = None
        self.lines_sent = 0
        self.next_id = 0
        self.open = {}       # request_id: (subtype, when, handler)
        self.answered = set()
        self.asked = {}      # request_id: the request
        self.mine = {}       # request_id: requests answered by this peer
        self.prompts = {}    # uuid: Prompt, without outcome
        self.by_line = {}
        self.session = self.wanted = self.key = None  # key: the session's name and its use count (key_of)
        self.asked_at = None  # when it sent its last attach
        self.warned = False  # it was notified of a gap or a lag
        self.options = {}
        self.expected = None  # the number of the next line, if every line must come
        self.last_seq = -1
        self.tagged = self.filtered = False
        self.plain = None     # untagged: hashes of its tape lines, compared later
        self.got = None       # tagged, with a filter: numbers of its lines, compared later
        self.first = None     # the number of its first line
        self.after = None     # replay after_uuid: the request, the answer, the first line
        self.history = []

    def fail(self, text, raw=None):
        raise Violation("%s (session %s, %s): %s%s\n  last lines: %s" % (
            self.label, self.session, self.options, text, "" if raw is None else ": %r" % raw[:600],
            "\n    ".join(repr(h[:200]) for h in self.history[-12:])))

    # --- sending

    def send(self, *lines):
        for line in lines:
            self.send_raw((line if isinstance(line, bytes) else dump(line)) + b"\n")

    def send_raw(self, data):
        self.lines_sent += data.count(b"\n")
        self.out += data
        self.flush()

    def flush(self):
        if self.closed or not self.out:
            return
        try:
            while self.out:
                n = self.sock.send(self.out[:262144], socket.MSG_NOSIGNAL)
                del self.out[:n]
        except BlockingIOError:
            pass
        except OSError as e:
            self.stalled, self.trickle = False, 0
            self.pump()  # the reason for its close may be unread
            self.lost("write: %s" % e)

    def request(self, subtype, handler=None, **members):
        self.next_id += 1
        rid = "c%d" % self.next_id
        self.open[rid] = (subtype, time.monotonic(), handler)
        if subtype == "plenum_attach":
            self.asked_at = time.monotonic()
        self.send({"type": "control_request", "request_id": rid, "request": dict({"subtype": subtype}, **members)})
        return rid

    def certain_key(self):
        """Return the session of a line sent now; None if that depends on lines in flight."""
        moving = any(v[0] in ("plenum_attach", "plenum_detach") for v in self.open.values())
        return None if moving else self.key

    def prompt(self, uuid, raw):
        """A user line with this uuid, or without one (None)."""
        p = Prompt(uuid, self.lines_sent + 1, raw.rstrip(b"\r\n"), self)
        if uuid:
            self.prompts[uuid] = p
        self.by_line[p.line] = p
        self.send_raw(raw)
        return p

    def attach(self, session, **options):
        def attached(obj, body):
            self.options = dict(options)  # another attach may have been sent since
            self.on_attached(obj, body)

        self.options = dict(options)
        self.wanted = session
        self.request("plenum_attach", attached, **(dict(options, session=session) if session else options))

    def on_attached(self, obj, body):
        self.wanted = None
        if body is None:
            self.world.refused(self, obj["response"])
            return
        self.session, self.key = body["session"], key_of(body["session"], body["cwd"])
        self.tagged = bool(self.options.get("tag"))
        self.filtered = any(k in self.options for k in ("types", "partial", "echo"))
        self.cut_prompts("attached anew")
        replay, seq, oldest = self.options.get("replay", "none"), body["seq"], body["oldest_seq"]
        first = seq
        if replay == "all":
            first = oldest
        elif isinstance(replay, dict) and "last" in replay:
            first = max(oldest, seq - replay["last"])
        elif isinstance(replay, dict) and "after" in replay:
            first = min(max(oldest, replay["after"] + 1), seq) if not body["replay_cut"] else oldest
        self.expected, self.last_seq = first, first - 1
        self.after = None
        if isinstance(replay, dict) and "after_uuid" in replay:
            self.expected = first = None
            self.last_seq = 0
            self.after = [replay["after_uuid"], oldest, seq, body["replay_cut"], None]
        self.first = first
        self.plain = [] if not self.tagged and first is not None else None
        self.got = [] if self.tagged and self.filtered and first is not None else None
        self.world.attached(self, body)

    def left(self, why):
        """It is in no session any more; its next line may bring it into one, by the defaults."""
        self.session = self.key = self.expected = self.plain = self.got = self.after = None
        self.tagged = False
        self.asked.clear()
        self.cut_prompts(why)

    def cut_prompts(self, why):
        for p in list(self.prompts.values()) + list(self.by_line.values()):
            p.excuse = p.excuse or why

    # --- receiving

    def pump(self):
        """Receive available lines; at most some MB at once, so that no other peer waits long."""
        for _ in range(16):
            if self.closed or self.stalled:
                return
            try:
                data = self.sock.recv(self.trickle or 262144)
            except BlockingIOError:
                return
            except OSError as e:
                self.lost("read: %s" % e)
                return
            if not data:
                self.lost("end")
                return
            self.take(data)
            if self.trickle:
                return

    def take(self, data):
        end = data.rfind(b"\n")
        if end < 0:
            self.rest.append(data)
            return
        whole = b"".join(self.rest) + data[:end]
        self.rest = [data[end + 1:]] if end + 1 < len(data) else []
        for raw in whole.split(b"\n"):
            self.on_line(raw)

    def lost(self, why):
        """The connection has ended."""
        if self.closed:
            return
        self.closed, self.why_closed = True, why
        if self.rest:
            self.fail("the connection ended within a line", b"".join(self.rest))
        self.sock.close()
        self.world.lost(self)

    def abandon(self):
        """This client dies, with any data unread."""
        self.closed, self.why_closed = True, "own"
        self.cut_prompts("died")
        self.sock.close()

    def on_line(self, raw):
        self.history.append(raw[:300])
        del self.history[:-40]
        m = TAG.match(raw)
        if m:
            if not self.tagged:
                self.fail("a tag that nobody asked for", raw)
            self.on_tape(int(m.group(1)), b"{" + raw[m.end():])
            return
        obj = parse(raw)
        if not isinstance(obj, dict):
            self.fail("a line that is no JSON object", raw)
        kind = obj.get("type")
        if kind == "control_response":
            self.on_response(obj, raw)
        elif kind == "control_request":
            self.on_request(obj, raw)
        elif kind == "control_cancel_request":
            self.on_cancel(obj, raw)
        elif kind == "system" and obj.get("subtype") == "plenum_event":
            self.on_event(obj, raw)
        elif self.tagged:
            self.fail("a line without its tag", raw)
        else:
            self.on_plain(obj, raw)

    def on_response(self, obj, raw):
        r = obj.get("response") or {}
        rid = r.get("request_id")
        if rid not in self.open:
            self.fail("an answer to nothing%s" % (" (a second one)" if rid in self.answered else ""), raw)
        subtype, _, handler = self.open.pop(rid)
        self.answered.add(rid)
        ok = r.get("subtype") == "success"
        full = r.get("error", "").startswith("initialize: cannot keep the hooks on disk") and self.world.disk_may_fail()
        if not ok and r.get("code") == "internal" and not full:
            self.fail("an internal error", raw)
        if handler:
            handler(obj, (r.get("response") or {}) if ok else None)

    def on_request(self, obj, raw):
        rid = obj.get("request_id")
        if rid in self.asked:
            self.fail("asked twice", raw)
        if self.half:
            return  # it was on its way
        self.asked[rid] = obj
        self.mine.pop(rid, None)

    def on_cancel(self, obj, raw):
        rid = obj.get("request_id")
        if rid not in self.asked and rid not in self.mine and not self.half:
            self.fail("a request was cancelled that it never got", raw)
        self.asked.pop(rid, None)
        self.mine.pop(rid, None)

    def on_event(self, obj, raw):
        event = obj.get("event")
        if event == "error":
            self.on_error(obj, raw)
        elif event == "gap":
            self.on_gap(obj, raw)
        elif event == "lag":
            self.warned = True
            self.cut_prompts("lag")
        elif self.tagged and event not in PRIVATE_EVENTS and obj.get("session") == self.session and not (
                event == "changed" and obj.get("what") == "uuid"):
            self.fail("a notice of the session without its tag", raw)
        self.look(obj)

    def on_error(self, obj, raw):
        code = obj.get("code")
        if code == "internal":
            self.fail("an internal error", raw)
        p = self.prompts.get(obj.get("uuid")) or self.by_line.get(obj.get("line"))
        if p:
            self.settle(p, code)
        elif obj.get("uuid"):
            self.excuse_unnamed(code)
        rid = obj.get("request_id")
        if code in ("bad_answer", "not_allowed") and rid in self.mine:
            self.asked[rid] = self.mine.pop(rid)
        elif rid in self.mine and code in ("already_settled", "unknown_request"):
            del self.mine[rid]

    def on_gap(self, obj, raw):
        a, b = obj["from"], obj["to"]
        if self.expected is not None and not self.filtered and self.tagged and a != self.expected:
            self.fail("a gap that does not begin where the lines end (expected %d)" % self.expected, raw)
        if a > b:
            self.fail("an empty gap", raw)
        if self.witness and self.options.get("on_lag") == "wait" and not self.world.is_slow():
            self.fail("it reads on, wants every line, and lost some", raw)
        self.expected, self.last_seq = b + 1, max(b, self.last_seq)
        self.plain = self.got = self.after = None
        self.warned = True
        self.cut_prompts("gap")

    def on_tape(self, seq, raw):
        if seq <= self.last_seq:
            self.fail("line %d came after %d" % (seq, self.last_seq), raw)
        if self.expected is not None and not self.filtered and seq != self.expected:
            self.fail("line %d came where %d was due: lines are lost" % (seq, self.expected), raw)
        self.last_seq, self.expected = seq, seq + 1
        if self.got is not None:
            self.got.append(seq)
        if self.after and self.after[4] is None:
            self.after[4] = seq
        obj = parse(raw)
        self.world.book(self).put(self, seq, raw, obj)
        self.look(obj)

    def on_plain(self, obj, raw):
        if self.plain is not None:
            self.plain.append(hash(raw))
        self.look(obj)

    def look(self, obj):
        """Check what a line says about this peer's prompts and session."""
        if not isinstance(obj, dict):
            return
        event = obj.get("event") if obj.get("subtype") == "plenum_event" else None
        if event == "turn_ended":
            for u in obj.get("uuids", []):
                if u in self.prompts:
                    self.settle(self.prompts[u], "ended" if obj.get("is_error") else "done")
        elif event == "changed" and obj.get("what") == "prompt_cancelled":
            if obj["value"] in self.prompts:
                self.settle(self.prompts[obj["value"]], "cancelled")
            else:
                self.excuse_unnamed("cancelled")
        elif event == "changed" and obj.get("what") == "uuid":
            self.rename(obj["was"], obj["value"])
        elif event == "settled":
            self.mine.pop(obj.get("request_id"), None)
        elif event == "session_removed":
            key = self.key
            if obj.get("session") == self.session:
                self.left("removed")
            self.world.removed(obj.get("session"), key)
        elif obj.get("type") == "result":
            for u in (obj.get("user_message_uuids") or []) + [obj.get("user_message_uuid")]:
                if u in self.prompts:
                    self.settle(self.prompts[u], "done")
        elif obj.get("type") == "command_lifecycle" and obj.get("state") in ("cancelled", "discarded", "refused"):
            p = self.prompts.get(obj.get("command_uuid"))
            if p:
                self.settle(p, obj["state"])
            else:
                self.excuse_unnamed(obj["state"])

    def rename(self, was, value):
        """Another client's prompt has this uuid: the daemon gave this one another."""
        p = self.prompts.pop(was, None)
        if p:
            p.uuid = value
            self.prompts[value] = p
            self.world.renamed(p)

    def excuse_unnamed(self, why):
        """Something that this client cannot know by its uuid: it may be one of its prompts without one."""
        for p in self.by_line.values():
            if p.uuid is None:
                p.excuse = p.excuse or why

    def settle(self, p, outcome):
        p.outcome = p.outcome or outcome
        self.prompts.pop(p.uuid, None)
        self.by_line.pop(p.line, None)

    # --- answering

    def answer(self, rid, rng, how=None):
        """Send a valid answer (or an invalid one, by how) to an open request."""
        obj = self.asked.pop(rid)
        self.mine[rid] = obj
        req = obj.get("request", {})
        sub = req.get("subtype")
        how = how or rng.choice(["yes", "no"])
        if how == "bad":
            body = {"behavior": "maybe"}
        elif sub == "can_use_tool":
            body = {"behavior": "allow", "updatedInput": req.get("input", {})} if how == "yes" else {
                "behavior": "deny", "message": "no"}
        elif sub == "hook_callback":
            body = {} if how == "yes" else {"continue": True}
        elif sub == "mcp_message":
            body = {"mcp_response": self.mcp(req.get("message") or {})}
        elif sub == "elicitation":
            body = {"action": "accept", "content": {}} if how == "yes" else {"action": "decline"}
        else:
            body = {}
        self.send({"type": "control_response", "response": {"subtype": "success", "request_id": rid, "response": body}})

    @staticmethod
    def mcp(message):
        result = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                 "serverInfo": {"name": "s", "version": "1"}},
                  "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
                  "tools/call": {"content": [{"type": "text", "text": "ok"}]}}.get(message.get("method"), {})
        return {"jsonrpc": "2.0", "id": message.get("id", 0), "result": result}


class Guard(Peer):
    """Has a PreToolUse hook that denies every Write, as an owner of its own name. Only the driver's guard actions
    affect it."""

    TABLE = {"PreToolUse": [{"matcher": "Write", "hookCallbackIds": ["watch"], "timeout": 60}]}
    DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "guarded"}}

    def __init__(self, path, world, label, prompt_answers):
        super().__init__(path, world, label)
        self.apart = True
        self.at_once = prompt_answers
        self.waits = False  # until the child has accepted the table

    def begin(self, name, register):
        """register: False if it relies on earlier registrations of its name."""
        def attached(obj, body):
            self.on_attached(obj, body)
            if body is not None and register and not self.half:
                self.request("initialize", self.on_registered, hooks=self.TABLE)

        self.options = {"role": "driver", "create": "never", "approve": False, "name": "guard of " + name}
        self.wanted = name
        self.request("plenum_attach", attached, session=name, **self.options)

    def on_registered(self, _obj, body):
        note = (body or {}).get("plenum") or {}
        if body is None:
            return
        if note.get("hooks_applied") is not False or "asleep" in note.get("reason", ""):
            self.world.guarded_from_now(self)
        else:
            self.waits = True

    def look(self, obj):
        super().look(obj)
        if self.waits and isinstance(obj, dict) and obj.get("event") == "changed" and obj.get("what") == "hooks_applied":
            self.waits = False
            self.world.guarded_from_now(self)

    def on_request(self, obj, raw):
        super().on_request(obj, raw)
        if self.at_once and obj["request"].get("subtype") == "hook_callback" and obj["request_id"] in self.asked:
            self.answer(obj["request_id"], None)

    def answer(self, rid, rng, how=None):
        if self.asked[rid]["request"].get("subtype") != "hook_callback":
            super().answer(rid, rng, how)
            return
        self.mine[rid] = self.asked.pop(rid)
        self.send({"type": "control_response", "response": {"subtype": "success", "request_id": rid, "response": self.DENY}})


def wait_readable(peers, timeout):
    """Wait until one of them is readable or may write, or until the timeout."""
    poll = select.poll()
    for p in peers:
        if not p.closed and not p.stalled and not p.trickle:
            poll.register(p.sock, select.POLLIN | (select.POLLOUT if p.out else 0))
    poll.poll(timeout * 1000)
