# SPDX-License-Identifier: MIT
"""The daemon of a chaos run with its surroundings, and the invariants (checks)."""
import os
import re
import signal
import time

import snapshot
from book import LINE_MAX, Book, Run
from harness import PYTHON, alive, build_file
from peer import PATIENCE, Peer, Violation, key_of, wait_readable
from procs import environment, kill, pids, start_time
from stage import Stage

HERE = os.path.dirname(os.path.abspath(__file__))
TAPE_BYTES = 256 * 1024
LAG_WAIT = 2  # seconds
PROFILES = {
    "plain": ([], {}),
    "old": (["--compat", "2.1.197"], {"idle_sleep": "500ms", "leftovers": "end"}),
    "queue": ([], {"prompts": "queue"}),
    "odd": (["--fault", "partial=997,garbage=40"], {}),
    "slow": (["--fault", "late=40,start-delay=60"], {}),
    "huge": (["--fault", "huge=300000"], {}),  # longer than the tape
    "too-long": (["--fault", "huge=1100000"], {}),  # longer than the limit
    "pipe": ([], {"stdout": "pipe", "permission_wait": "500ms"}),
    "odd-pipe": (["--fault", "partial=997,garbage=40"], {"stdout": "pipe", "restart": "never"}),
    "huge-pipe": (["--fault", "huge=300000"], {"stdout": "pipe", "session_id_args": "--session-id={id}"}),
    "warm": ([], {"warm": 2}),
    "warm-old": (["--compat", "2.1.197"], {"warm": 1}),
    "warm-odd": (["--fault", "partial=997,garbage=3"], {"warm": 1}),
    "warm-slow": (["--fault", "late=40,start-delay=200"], {"warm": 1, "prompts": "queue"}),
    "warm-deaf": (["--fault", "deaf=0,ignore-eof"], {"warm": 1}),  # never answers
    "warm-dead": (["--fault", "start-exit=3"], {"warm": 1}),
}
NO_SESSIONS = ("warm-deaf", "warm-dead")  # only prestarted children that never become usable
TAKEN_AWAY = ("odd", "slow", "queue", "warm-odd", "pipe")  # and returned, by the configuration


UUID_PUT_IN = re.compile(rb'^\{"uuid":"[0-9a-f-]{36}",')


def odd(some, others):
    """Return the items in only one of them, and how many those are."""
    more = sorted(set(some) - set(others))
    return "%s (%d more)" % (more[:10], len(more))


class World(Stage):
    def __init__(self, root, say, seed, program=None, faults=None):
        super().__init__(root, say)
        self.records = root + "/rec"
        self.work = root + "/work"  # sessions' directories; and that of this program, for an implicit attach
        os.makedirs(self.records)
        os.makedirs(self.work + "/warm")
        os.chdir(self.work)
        self.faults = faults
        agent = build_file("plenum-fakeagent")
        self.states = seed // 2 % 2 == 1  # the children report theirs, like those of the built-in profile
        sections = {"daemon": {"default_profile": "plain", "memory_pressure": "yes", "state_dir": self.state_dir,
                               "max_children": 9 if seed % 3 == 0 else 40},
                    "limits": {"tape_bytes": TAPE_BYTES, "child_line": LINE_MAX, "client_line": LINE_MAX, "tape_lines": 4096, "stdin_queue": "2M",
                               "client_lag_soft": "100K" if seed % 4 == 1 else "8M", "lag_wait": "%ds" % LAG_WAIT,
                               "client_lag_soft_time": "2s"}}
        for name, (words, keys) in PROFILES.items():
            command = [PYTHON, "-I", "-S", HERE + "/recorder.py", self.records, agent, "-p", "--input-format",
                       "stream-json", "--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio",
                       "--include-partial-messages", "--replay-user-messages", *words]
            cwd = self.work + "/warm" if "warm" in keys else root + "/home"
            sections["profile " + name] = dict({"command": " ".join(command), "owner_grace": "1s", "stop_grace": "400ms", "cwd": cwd,
                                                "env": "CHAOS_PROFILE=%s CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=%d" % (
                                                    name, self.states)}, **keys)
        self.fifo = root + "/pressure"
        os.mkfifo(self.fifo, 0o600)
        self.make_daemon(sections, env={"PLENUM_FAULTS": faults, "MEMORY_PRESSURE_WATCH": self.fifo})
        self.sections = dict(sections)
        self.daemon.program = program
        self.peers, self.books, self.runs, self.known = [], {}, {}, set()
        self.life = 0
        self.retried = set()     # uuids sent again by their client
        self.sent = {}           # uuid: Prompt, all ever sent
        self.sessions = []       # names created and not removed, as far as the driver knows
        self.witnesses = {}
        self.keys = {}           # name: its current session
        self.uses = {}           # name: how many sessions had it
        self.marks = {}          # prompts without a uuid, by the mark in their text
        self.clashed = set()     # uuids also used by another client
        self.stopped = set()     # processes stopped until the next rest
        self.reconfigured = self.pressed = False
        self.given = {"given": 0, "back": 0}
        self.log_read, self.told, self.by_pid = 0, [], {}
        self.guarded = set()     # sessions in which no Write may run
        self.forbidden = {}      # files that a guard had to protect: the requester, session and time
        self.ephemeral = set()   # names of sessions that end with a client, and with the daemon
        self.read_at = self.slow_at = time.monotonic()  # when clients were read last; when that was last late
        self.first_rss = None
        self.probe = None

    # --- the daemon's life

    def start(self):
        self.life += 1
        self.books = {}
        self.pressed = False
        self.start_daemon()
        # more than once: a child of the previous daemon may still hold its socket
        deadline = time.monotonic() + PATIENCE
        while not self.connect_probe(time.monotonic() < deadline):
            time.sleep(0.02)
        if self.life == 1:
            self.base_fds = self.daemon.settled_fds()  # minus the probe's two, plus two possibly reserved by a fault

    def connect_probe(self, may_fail):
        try:
            self.probe = Peer(self.daemon.socket, self, "probe")
        except ConnectionRefusedError:
            self.check_alive()
            if may_fail:
                return False
            raise
        self.probe.half = may_fail  # its close needs no reason
        self.peers.append(self.probe)
        self.probe.request("plenum_hello", self.on_hello)
        self.probe.request("plenum_subscribe")
        self.wait_for(lambda: self.probe.closed or not self.probe.open, "the daemon to say hello")
        self.probe.half = False
        return not self.probe.closed

    def on_hello(self, _obj, body):
        self.capabilities = body.get("capabilities", [])

    def kill(self, number=signal.SIGKILL):
        """All connections are lost."""
        pid = self.daemon.pid
        self.daemon.process.send_signal(number)
        status = self.daemon.process.wait(PATIENCE)
        if number == signal.SIGTERM and status != 0:
            raise Violation("plenumd ended with %d on SIGTERM:\n%s" % (status, self.daemon.log_tail()))
        self.everybody_off()
        return pid

    def everybody_off(self):
        for p in list(self.peers):
            if not p.closed:
                p.stalled = False
                p.pump()
                p.cut_prompts("daemon killed")
                p.abandon()
        self.peers, self.witnesses = [], {}
        self.refresh_runs()
        for book in self.books.values():
            book.compare(self.runs_of(book.key))

    # --- clients

    def client(self, label=None, kind=Peer, *more):
        """A new connection; None if the daemon accepts none in time (descriptors taken away)."""
        self.check_alive()
        try:
            p = kind(self.daemon.socket, self, label, *more)
        except (OSError, TimeoutError):
            if not self.limited and not self.frozen:
                raise
            return None
        self.peers.append(p)
        return p

    def attached(self, peer, body):
        name = body["session"]
        self.owned(body["pid"], peer.key)
        if body["created"]:
            self.keys[name] = peer.key
            self.ephemeral.discard(name)
        self.keys.setdefault(name, peer.key)
        if body["created"] and name not in self.sessions:
            self.sessions.append(name)
            if peer.options.get("ephemeral"):
                self.ephemeral.add(name)
        here = self.daemon.process.poll() is None  # else its leftovers
        if here and name not in self.witnesses and not peer.witness and not self.limited:
            self.witness(name)

    REFUSALS = {"no_such_session", "session_exists", "conversation_in_use"}

    def refused(self, peer, answer):
        """An attach was refused: check the reason."""
        code, o = answer.get("code"), peer.options
        good = {"never": {"no_such_session"}, "new": {"session_exists"}}.get(o.get("create"), set())
        if o.get("resume"):
            good = good | {"conversation_in_use"}
        if any(why in answer.get("error", "") for why in ("restart = never", "is being removed")):
            good = good | {"spawn_failed"}
        if self.reconfigured:
            good = good | {"no_such_profile"}
        short = self.limited or peer.squeezed or peer.asked_at < self.short_until  # the answer may be read late
        if short or self.daemon.env.get("PLENUM_FAULTS"):
            good = good | {"spawn_failed", "too_many", "not_allowed"}
        if code not in good | {"already_attached", "shutting_down"} and not peer.half:
            peer.fail("its attach was refused: %s" % answer)

    def renamed(self, prompt):
        old, new = prompt.was.encode(), prompt.uuid.encode()
        prompt.raw = prompt.raw.replace(b'"uuid":"%s"' % old, b'"uuid":"%s"' % new)
        self.sent[prompt.uuid] = prompt

    def new_key(self, name):
        """Return the key of a new session, which is its directory's name."""
        n = self.uses[name] = self.uses.get(name, -1) + 1
        return "%s~%d" % (name, n) if n else name

    def removed(self, name, key=None):
        """A session is gone, as reported to some client; its witness becomes an ordinary client."""
        if key is not None and key != self.keys.get(name):
            return  # one that had the name before
        if name in self.sessions:
            self.sessions.remove(name)
        self.ephemeral.discard(name)
        self.guarded.discard(name)
        witness = self.witnesses.pop(name, None)
        if witness and not witness.closed:
            witness.witness = False

    def witness(self, name):
        """An undisturbed client, so that every session's tape is seen completely."""
        p = self.client("witness")
        if p:
            p.witness = True
            p.attach(name, role="observer", tag=True, replay="all", create="never",
                     on_lag="wait" if len(self.witnesses) % 2 else "gap", name="witness")
            self.witnesses[name] = p

    def cwd(self, name):
        path = os.path.join(self.work, name)
        os.makedirs(path, exist_ok=True)
        return path

    def guarded_from_now(self, peer):
        if peer.session in self.sessions and peer.key == self.keys.get(peer.session):
            self.guarded.add(peer.session)

    def lost(self, peer):
        """The daemon closed its connection: check the reason."""
        if peer in self.peers:
            self.peers.remove(peer)
        waits = sorted(v[0] for v in peer.open.values()) + [u for u, x in peer.prompts.items() if not x.excuse]
        if peer is self.probe and peer.half:
            return
        if peer.half and waits and self.daemon.process.poll() is None and not peer.filtered:
            peer.fail("it had ended its input and was closed before the answers were out: %s" % waits)
        peer.cut_prompts("closed")
        if peer.options.get("on_lag") == "close" and peer.why_closed == "end" and not (
                peer.half or peer.warned or peer.squeezed or peer.options.get("ephemeral") or self.daemon.process.poll() is not None):
            peer.fail("it was closed, and not told that it was behind")
        if peer.half or peer.options.get("on_lag") == "close" or peer.why_closed == "own":
            return
        if peer.options.get("ephemeral") and not peer.session:
            return  # it left with its session
        if peer.squeezed and not peer.answered:
            return
        if self.daemon.process.poll() is None:
            raise Violation("%s was closed by the daemon without a reason (%s); last lines:\n    %s" % (
                peer.label, peer.why_closed, "\n    ".join(repr(h) for h in peer.history[-5:])))

    def book(self, peer):
        if peer.key not in self.books:
            self.books[peer.key] = Book(peer.session, peer.key)
        return self.books[peer.key]

    def note_pace(self):
        now = time.monotonic()
        if now - self.read_at > LAG_WAIT / 4:
            self.slow_at = now
        self.read_at = now

    def is_slow(self):
        """Return true if the clients were read so slowly that one that wants every line may have lost some."""
        return time.monotonic() - self.slow_at < 3 * LAG_WAIT

    def pump(self, seconds=0.0):
        """Read all input for this long."""
        deadline = time.monotonic() + seconds
        while True:
            self.note_pace()
            for p in list(self.peers):
                p.flush()
                p.pump()
            left = deadline - time.monotonic()
            if left <= 0:
                return
            wait_readable(self.peers, min(left, 0.05))

    def wait_for(self, check, what):
        deadline = time.monotonic() + PATIENCE
        while True:
            self.pump(0.01)
            value = check()
            if value:
                return value
            self.check_alive()
            if time.monotonic() > deadline:
                raise Violation("not in %g s: %s" % (PATIENCE, what() if callable(what) else what))

    def call(self, subtype, **members):
        """A request of the probe; return its answer's body."""
        got = []
        self.probe.request(subtype, lambda obj, body: got.append((obj, body)), **members)
        self.wait_for(lambda: got, "an answer to %s %s" % (subtype, members))
        return got[0][1]

    def listed(self):
        found = {s["session"]: s for s in self.call("plenum_list")["sessions"]}
        for name, s in found.items():
            self.keys[name] = key_of(name, s["cwd"])
            self.owned(s["pid"], self.keys[name])
        return found

    # --- stress

    def disk_may_fail(self):
        return self.disk_was_full or self.faults

    def press(self):
        """Memory is short: write the kernel's report."""
        fd = os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK)
        os.write(fd, b"x")
        os.close(fd)
        self.pressed = True

    def stand_still(self, pids_):
        for pid in pids_:
            if alive(pid):
                kill(pid, signal.SIGSTOP)
                self.stopped.add((pid, start_time(pid)))

    def go_on(self):
        for pid, born in self.stopped:
            if start_time(pid) == born and alive(pid):
                kill(pid, signal.SIGCONT)
        self.stopped.clear()

    # --- checks

    def check_guarded(self):
        for path, what in self.forbidden.items():
            if os.path.exists(path):
                raise Violation("a tool ran that a guard had to deny: %s" % what)

    def refresh_runs(self):
        for name in sorted(os.listdir(self.records)):
            path = os.path.join(self.records, name)
            if name not in self.known and os.path.exists(path + "/meta"):
                self.known.add(name)
                self.runs[name] = run = Run(path)
                self.by_pid[run.pid] = run
        for run in self.runs.values():
            if not run.over:
                run.refresh()
        self.read_log()
        for pid, key, logged in self.told:
            run = self.by_pid.get(pid)
            if run and run.spare and (run.owners[-1:] != [key] if logged else key not in run.owners):
                run.owners.append(key)
        self.told.clear()

    def runs_of(self, key):
        return [self.runs[n] for n in sorted(self.runs) if key in self.runs[n].owners and self.runs[n].ppid == self.daemon.pid]

    # --- prestarted children

    GIVEN = re.compile(rb"session (.*): (takes|returns) prestarted child (\d+)[ ,:]")

    def read_log(self):
        """Find which session got which prestarted child. The log lines about it may be lost if writing fails, so
        reports to clients count as well."""
        with open(self.daemon.log_path, "rb") as f:
            f.seek(self.log_read)
            data = f.read()
        end = data.rfind(b"\n") + 1
        self.log_read += end
        for name, what, pid in self.GIVEN.findall(data[:end]):
            self.given["given" if what == b"takes" else "back"] += 1
            # a reused name is never that of a prestarted one
            self.told.append((int(pid), name.decode() if what == b"takes" else None, True))

    def owned(self, pid, key):
        """A client was notified that this session has that child."""
        if pid:
            self.told.append((pid, key, False))

    def spares(self):
        """Return those that wait for a session."""
        return [r for r in self.runs.values() if not r.over and r.spare and r.owners[-1:] in ([], [None])]

    def check_spares(self):
        """Their number is the reported one; and they got only the daemon's initialize."""
        def good():
            self.refresh_runs()
            self.metrics = self.call("plenum_metrics")
            return self.metrics["warm"] == len(self.spares()) and not (self.pressed and self.metrics["warm"])

        self.wait_for(good, lambda: "the spares to be those that the daemon knows: %d, it says %d%s" % (
            len(self.spares()), self.metrics["warm"], ", and memory is short" if self.pressed else ""))
        for run in self.runs.values():
            if run.spare and not set(run.owners) - {None} and (run.took_at or run.heard not in ([], ["initialize"])):
                raise Violation("spare %s was written to: %s, %d prompts" % (run.session, run.heard, len(run.took_at)))

    def check_step(self):
        """After every step: it lives, it answers, it uses no more resources than allowed."""
        self.check_alive()
        if self.frozen:
            return
        self.call("plenum_hello")
        self.check_guarded()
        self.check_fds(slack=24)
        rss = self.daemon.rss()
        bound = 96 * 1024 + (len(self.sessions) + len(self.peers)) * 3 * TAPE_BYTES // 1024
        if rss > bound:
            raise Violation("plenumd takes %d KiB, more than %d" % (rss, bound))

    def fd_bound(self):
        children = len([r for r in self.runs.values() if not r.over])
        return self.base_fds + 2 * len(self.peers) + 3 * children

    def check_fds(self, slack=0):
        """Soon, no descriptors are unexplained: a starting child has some more."""
        def good():
            self.refresh_runs()
            return self.daemon.fd_count() <= self.fd_bound() + slack

        if self.daemon.fd_count() > self.fd_bound() + slack:
            self.wait_for(good, lambda: "descriptors to be given back: %d, at most %d are explained: %s" % (
                self.daemon.fd_count(), self.fd_bound() + slack, self.daemon.fd_list()))

    def compare(self):
        self.pump(0.0)
        self.refresh_runs()
        for book in self.books.values():
            if not self.begins_later(book):
                book.compare(self.runs_of(book.key))

    def begins_later(self, book):
        """The first lines of the tape are still on the way to the witness. Without them a line of the second child could
        be taken for an equal one of the first."""
        p = self.witnesses.get(book.session)
        if book.next is not None or not p or p.closed:
            return False
        return p.wanted is not None or (p.key == book.key and p.expected == p.first)

    def behind(self):
        """Return printed lines that have not reached the witness yet."""
        self.compare()
        here = [b for b in self.books.values() if b.session in self.witnesses and not self.witnesses[b.session].closed and
                self.witnesses[b.session].key == b.key]
        missing = [(b.key, b.missing(self.runs_of(b.key))) for b in here]
        return [m for m in missing if m[1]]

    def check_lines(self):
        """Compare untagged and filtered lines, and starts of replays, with the tape. The witness may have its lines a
        moment before the others."""
        wrong = []

        def good():
            wrong[:] = self.wrong_lines()
            return not wrong

        self.wait_for(good, lambda: wrong[0][0].fail(wrong[0][1]))

    def wrong_lines(self):
        """Return the clients with wrong lines, and these lines."""
        for p in self.peers:
            book = self.books.get(p.key)
            if not book or p.closed:
                continue
            if p.after:
                self.check_after(p, book)
            if (p.plain is None and p.got is None) or not book.whole(p.first):
                continue
            numbers = book.lines_for(p.first, p.options)
            if p.got is not None and p.got != numbers:
                yield p, "through its filter came %s, and should have come %s" % (odd(p.got, numbers), odd(numbers, p.got))
            here = [book.entries[s][1] for s in numbers if book.entries[s][0] == "line"]
            if p.plain is not None and p.plain != here:
                yield p, "its lines are not those of the tape: %d lines came, %d stand there from %d on" % (
                    len(p.plain), len(here), p.first)

    @staticmethod
    def check_after(p, book):
        uuid, oldest, seq, cut, first = p.after
        want = book.after_uuid(uuid, oldest, seq)
        if want is None:
            return
        if want[1] != cut:
            p.fail("replay after %s (%d..%d): replay_cut is %s" % (uuid, oldest, seq, cut))
        if first is not None and first != want[0] and not p.filtered:
            p.fail("replay after %s (%d..%d) began at %d, not at %d" % (uuid, oldest, seq, first, want[0]))

    def holds_prompts(self):
        """A prompt waits for its client's hooks, which a child accepts when it is restarted: it is checked
        afterwards."""
        return any(self.call("plenum_queue", session=s["session"])["prompts"] for s in self.call("plenum_list")["sessions"])

    def check_children(self):
        """Each prompt reached at most one child, unchanged, and one of its session; or the next, if its client repeated
        it and the previous one had not begun with it."""
        seen, echoed = {}, set()
        for run in self.runs.values():
            if run.repeated:
                raise Violation("session %s: prompts reached the child twice: %s" % (run.session, run.repeated))
            for uuid, line in run.uuids.items():
                if uuid in seen and uuid not in self.clashed and (uuid not in self.retried or uuid in echoed):
                    raise Violation("prompt %s reached two children" % uuid)
                seen[uuid] = line
                if run.complete or not run.over:  # else the daemon may not have read so far
                    echoed |= run.echoed & {uuid}
                p = self.sent.get(uuid)
                if p and p.raw != line:
                    raise Violation("a prompt reached the child changed: %r, was %r" % (line[:300], p.raw[:300]))
                self.check_place(p, run)
            self.check_marks(run)
            self.check_queue(run)
        for uuid, p in self.sent.items():
            if p.outcome == "done" and uuid not in seen:
                raise Violation("prompt %s was answered, and reached no child" % uuid)
        self.wait_for(lambda: not self.lost_marks() or self.holds_prompts(),
                      lambda: "prompts without a uuid to reach a child: %s" % self.lost_marks())
        return seen

    def lost_marks(self):
        """Return the prompts without a uuid that no child has read yet."""
        self.refresh_runs()
        due = [m for m, p in self.marks.items() if not p.outcome and not p.excuse and p.uuid is None]
        return [(m, self.marks[m].peer.label) for m in due if not any(m in run.marks for run in self.runs.values())]

    @staticmethod
    def check_place(p, run):
        if p and p.key and p.key not in run.owners:
            raise Violation("a prompt of %s for %s reached the child of %s: %r" % (
                p.peer.label, p.key, run.owners, p.raw[:300]))

    def check_marks(self, run):
        """Prompts without a uuid: one was inserted, and nothing else."""
        for mark, line in run.marks.items():
            p = self.marks.get(mark)
            plain = UUID_PUT_IN.sub(b"{", line, count=1)
            if p and plain != p.raw:
                raise Violation("a prompt reached the child changed: %r, was %r" % (line[:300], p.raw[:300]))
            self.check_place(p, run)

    def check_queue(self, run):
        """prompts = queue: none was written during a turn of another client."""
        if "prompts" not in PROFILES.get(run.profile, ([], {}))[1] or run.done_at.get("checked") == len(run.took_at):
            return
        run.done_at["checked"] = len(run.took_at)
        before = []
        for at, uuid in run.took_at:
            p = self.sent.get(uuid)
            out = run.out_seen(at)
            for other in before:
                if p and uuid not in self.clashed and other.peer is not p.peer and run.done_at.get(other.uuid, out + 1) > out:
                    raise Violation("prompt %s of %s was not held back while %s of %s ran: %r" % (
                        uuid, p.peer.label, other.uuid, other.peer.label, other.raw[:200]))
            if p and b"/clear" not in p.raw and uuid not in self.retried | self.clashed:
                before.append(p)
            before = [o for o in before if run.done_at.get(o.uuid, out + 1) > out]

    def check_conversations(self):
        """One conversation, one child."""
        held = {}
        for run in self.runs.values():
            if not run.over and run.said.conversation:
                if run.said.conversation in held:
                    raise Violation("conversation %s has two children: of %s and of %s" % (
                        run.said.conversation, held[run.said.conversation], run.session))
                held[run.said.conversation] = run.session

    def check_snapshots(self):
        """Compare a late client's answer about a child with that child's output."""
        for name in list(self.listed()):
            wrong = []

            def good():
                wrong[:] = self.snapshot_errors(name)
                return not wrong

            self.wait_for(good, lambda: "the attach answer of %s to be true: %s" % (name, wrong))

    def snapshot_errors(self, name):
        p, got = self.client("late"), []
        p.request("plenum_attach", lambda obj, body: got.append((obj, body)), session=name, role="observer", create="never")
        self.wait_for(lambda: got, "an answer to plenum_attach")
        p.abandon()
        if p in self.peers:
            self.peers.remove(p)
        self.refresh_runs()
        body = got[0][1]
        if body is None:
            return [] if name not in self.sessions else ["refused: %s" % got[0][0]]
        key = key_of(name, body["cwd"])
        runs = self.runs_of(key)
        return snapshot.errors(body, runs[-1] if runs else None, self.books.get(key))

    def orphans(self):
        """Return processes that should not exist: of sessions without a child, of earlier children, and zombies."""
        found = []
        self.refresh_runs()
        live = {r.session: r for r in self.runs.values() if not r.over}
        mark = self.root.encode()
        for pid in pids():
            try:
                with open("/proc/%d/stat" % pid, errors="replace") as f:
                    state, ppid = f.read().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state == "Z" and int(ppid) == self.daemon.pid:
                found.append((pid, "zombie"))
                continue
            env = environment(pid)
            if mark not in env.get(b"HOME", b"") or b"PLENUM_CHILD" not in env:
                continue
            run = live.get(env[b"PLENUM_CHILD"].decode())
            born = start_time(pid)
            if run is None:
                if alive(pid):
                    found.append((pid, "session %s has no child" % env[b"PLENUM_CHILD"].decode()))
            elif born is not None and start_time(run.pid) is not None and born < start_time(run.pid):
                found.append((pid, "older than the child of %s" % run.session))
        return found

    def destroy(self):
        self.thaw()
        self.go_on()
        for p in self.peers:
            if not p.closed:
                p.abandon()
        super().destroy()
