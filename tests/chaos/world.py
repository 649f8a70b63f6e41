# SPDX-License-Identifier: MIT
"""The daemon of a chaos run with everything around it, and what must hold of it (checks)."""
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

import snapshot  # noqa: E402
from book import LINE_MAX, Book, Run  # noqa: E402
from harness import PYTHON, Client, Daemon, build_file  # noqa: E402
from peer import Guard, Peer, Violation, alive, environment, pids, start_time, wait_readable  # noqa: E402

TAPE_BYTES = 256 * 1024
LAG_WAIT = 2  # seconds
PATIENCE = float(os.environ.get("PLENUM_CHAOS_PATIENCE", "30"))
PROFILES = {
    "plain": ([], {}),
    "old": (["--compat", "2.1.197"], {}),
    "queue": ([], {"prompts": "queue"}),
    "odd": (["--fault", "partial=97,garbage=40"], {}),
    "slow": (["--fault", "late=40,start-delay=60"], {}),
    "huge": (["--fault", "huge=300000"], {}),  # longer than the tape
    "too-long": (["--fault", "huge=1100000"], {}),  # longer than a line may be
    "pipe": ([], {"stdout": "pipe"}),
    "odd-pipe": (["--fault", "partial=97,garbage=40"], {"stdout": "pipe"}),
    "huge-pipe": (["--fault", "huge=300000"], {"stdout": "pipe"}),
}


def mount_small(path):
    """A file system of 256 KiB; None where this process may not mount."""
    os.makedirs(path)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "chaos", path], stderr=subprocess.DEVNULL,
                          check=False)
    return path if done.returncode == 0 else None


class World:
    def __init__(self, root, say, program=None, faults=None):
        self.root, self.say = root, say
        self.records = root + "/rec"
        self.work = root + "/work"  # sessions' folders; and that of this program, which an implicit attach names
        os.makedirs(self.records)
        os.makedirs(self.work)
        os.chdir(self.work)
        self.disk = mount_small(root + "/disk")
        agent = build_file("plenum-fakeagent")
        sections = {"daemon": {"default_profile": "plain", "max_children": 40, "state_dir": root + "/disk/state"},
                    "limits": {"tape_bytes": TAPE_BYTES, "child_line": LINE_MAX, "client_line": LINE_MAX, "tape_lines": 4096, "lag_wait": "%ds" % LAG_WAIT,
                               "client_lag_soft_time": "2s"}}
        for name, (words, keys) in PROFILES.items():
            command = [PYTHON, "-I", "-S", HERE + "/recorder.py", self.records, agent, "-p", "--input-format",
                       "stream-json", "--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio",
                       "--include-partial-messages", "--replay-user-messages", *words]
            sections["profile " + name] = dict({"command": " ".join(command), "owner_grace": "1s", "cwd": root + "/home"},
                                               **keys)
        self.daemon = Daemon(sections, root=root, start=False, env={"PLENUM_FAULTS": faults})
        self.daemon.program = program
        self.peers, self.books, self.runs, self.known = [], {}, {}, set()
        self.life = 0
        self.retried = set()     # uuids that their client sent again
        self.sent = {}           # uuid: Prompt, all that were ever sent
        self.sessions = []       # names that were made and not removed, as far as the driver knows
        self.witnesses = {}
        self.guarded = set()     # sessions where no Write may run
        self.forbidden = {}      # files that a guard had to keep from being written: who asked for it, where and when
        self.ephemeral = set()   # names of sessions that end with a client, and with the daemon
        self.limited = self.full = self.frozen = False
        self.read_at = self.slow_at = time.monotonic()  # when clients were read last; when that was last late
        self.disk_was_full = False
        self.first_rss = None
        self.probe = None

    # --- the daemon's life

    def start(self):
        self.life += 1
        self.books = {}
        self.daemon.start()
        self.nofile = resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE)
        self.limited = False
        # more than once: a child of the daemon before may have its socket for a last moment
        deadline = time.monotonic() + PATIENCE
        while not self.connect_probe(time.monotonic() < deadline):
            time.sleep(0.02)
        if self.life == 1:
            self.base_fds = self.daemon.settled_fds()  # minus the probe's two, plus two that a fault may have kept away

    def connect_probe(self, may_fail):
        try:
            self.probe = Peer(self.daemon.socket, self, "probe")
        except ConnectionRefusedError:
            self.check_alive()
            if may_fail:
                return False
            raise
        self.probe.half = may_fail  # no question why it was closed
        self.peers.append(self.probe)
        self.probe.request("plenum_hello", self.on_hello)
        self.probe.request("plenum_subscribe")
        self.wait_for(lambda: self.probe.closed or not self.probe.open, "the daemon to say hello")
        self.probe.half = False
        return not self.probe.closed

    def on_hello(self, _obj, body):
        self.capabilities = body.get("capabilities", [])

    def kill(self, number=signal.SIGKILL):
        """Everything that belongs to the connections is over."""
        pid = self.daemon.pid
        self.daemon.process.send_signal(number)
        status = self.daemon.process.wait(PATIENCE)
        if number == signal.SIGTERM and status != 0:
            raise Violation("plenumd ended with %d on SIGTERM:\n%s" % (status, self.daemon.log()))
        self.everybody_off()
        return pid

    def everybody_off(self):
        for p in self.peers:
            if not p.closed:
                p.stalled = False
                p.pump()
                p.cut_prompts("daemon killed")
                p.abandon()
        self.peers, self.witnesses = [], {}
        self.refresh_runs()
        for book in self.books.values():
            book.compare(self.runs_of(book.session))

    def check_alive(self):
        status = self.daemon.process.poll()
        if status is not None:
            raise Violation("plenumd ended with %d:\n%s" % (status, self.daemon.log()))

    # --- clients

    def client(self, label=None, kind=Peer, *more):
        """A new connection; None while the daemon takes none in time (descriptors taken away)."""
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
        if body["created"] and name not in self.sessions:
            self.sessions.append(name)
            if peer.options.get("ephemeral"):
                self.ephemeral.add(name)
        if name not in self.witnesses and not peer.witness and not self.limited:
            self.witness(name)

    def removed(self, name):
        """A session is gone, as somebody has heard; its witness is an ordinary client from now on."""
        if name in self.sessions:
            self.sessions.remove(name)
        self.guarded.discard(name)
        witness = self.witnesses.pop(name, None)
        if witness and not witness.closed:
            witness.witness = False

    def witness(self, name):
        """A client that nothing happens to, so that every session's tape is seen as a whole."""
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

    def guarded_from_now(self, name):
        if name in self.sessions:
            self.guarded.add(name)

    def lost(self, peer):
        """Its connection was closed by the daemon: was there a reason?"""
        if peer in self.peers:
            self.peers.remove(peer)
        waits = sorted(v[0] for v in peer.open.values()) + [u for u, x in peer.prompts.items() if not x.excuse]
        if peer is self.probe and peer.half:
            return
        if peer.half and waits and self.daemon.process.poll() is None and not peer.filtered:
            peer.fail("it had ended its input and was closed before the answers were out: %s" % waits)
        peer.cut_prompts("closed")
        if peer.half or peer.options.get("on_lag") == "close" or peer.why_closed == "own":
            return
        if peer.options.get("ephemeral") and not peer.session:
            return  # its session is gone, and so is it
        if peer.squeezed and not peer.answered:
            return
        if self.daemon.process.poll() is None:
            raise Violation("%s was closed by the daemon without a reason (%s); last lines:\n    %s" % (
                peer.label, peer.why_closed, "\n    ".join(repr(h) for h in peer.history[-5:])))

    def book(self, session):
        if session not in self.books:
            self.books[session] = Book(session, self.life)
        return self.books[session]

    def note_pace(self):
        now = time.monotonic()
        if now - self.read_at > LAG_WAIT / 4:
            self.slow_at = now
        self.read_at = now

    def is_slow(self):
        """Have the clients been read so slowly that one that wants every line may have lost some?"""
        return time.monotonic() - self.slow_at < 3 * LAG_WAIT

    def pump(self, seconds=0.0):
        """Reads whatever comes for so long."""
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

    def wait_for(self, check, what, timeout=None):
        deadline = time.monotonic() + (PATIENCE if timeout is None else timeout)
        while True:
            self.pump(0.01)
            value = check()
            if value:
                return value
            self.check_alive()
            if time.monotonic() > deadline:
                raise Violation("not in %g s: %s" % (PATIENCE if timeout is None else timeout, what() if callable(what) else what))

    def call(self, subtype, **members):
        """A request of the probe's, its answer's body."""
        got = []
        self.probe.request(subtype, lambda obj, body: got.append((obj, body)), **members)
        self.wait_for(lambda: got, "an answer to %s %s" % (subtype, members))
        return got[0][1]

    def listed(self):
        return {s["session"]: s for s in self.call("plenum_list")["sessions"]}

    # --- stress

    def limit(self, spare):
        used = self.daemon.fd_count()
        resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE, (used + spare, self.nofile[1]))
        self.limited = True

    def unlimit(self):
        if self.limited:
            resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE, self.nofile)
        self.limited = False

    def fill_disk(self):
        self.full = self.disk_was_full = True
        with open(self.disk + "/ballast", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 4096)
            except OSError:
                pass

    def free_disk(self):
        if self.full:
            os.unlink(self.disk + "/ballast")
        self.full = False

    def freeze(self):
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self):
        if self.frozen:
            self.daemon.process.send_signal(signal.SIGCONT)
        self.frozen = False

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
                self.runs[name] = Run(path)
        for run in self.runs.values():
            if not run.over:
                run.refresh()

    def runs_of(self, session):
        return [self.runs[n] for n in sorted(self.runs) if self.runs[n].session == session and
                self.runs[n].ppid == self.daemon.pid]

    def check_step(self):
        """After every step: it lives, it answers, it takes no more than it should."""
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
        """Soon, no more than are explained: a child that is being started has some more."""
        def good():
            self.refresh_runs()
            return self.daemon.fd_count() <= self.fd_bound() + slack

        if self.daemon.fd_count() > self.fd_bound() + slack:
            self.wait_for(good, lambda: "descriptors to be given back: %d, at most %d are explained: %s" % (
                self.daemon.fd_count(), self.fd_bound() + slack, self.daemon.fd_list()), 10)

    def compare(self):
        self.pump(0.0)
        self.refresh_runs()
        for book in self.books.values():
            book.compare(self.runs_of(book.session))

    def behind(self):
        """What has been printed but has not come to the witness yet."""
        self.compare()
        return [(b.session, b.missing(self.runs_of(b.session))) for b in self.books.values()
                if b.session in self.witnesses and not self.witnesses[b.session].closed and
                b.missing(self.runs_of(b.session))]

    def check_plain(self):
        """What came without a tag, against what stands on the tape."""
        for p in self.peers:
            if not p.plain or p.session not in self.books:
                continue
            book = self.books[p.session]
            here = [book.entries[s][1] for s in sorted(book.entries) if s >= p.plain_from and book.entries[s][0] == "line"]
            full = all(s in book.entries for s in range(p.plain_from, book.top + 1))
            if full and p.plain != here[:len(p.plain)]:
                p.fail("its lines are not those of the tape: %d lines" % len(p.plain))
            if full and len(p.plain) != len(here):
                p.fail("%d lines came, %d stand on the tape" % (len(p.plain), len(here)))

    def check_children(self):
        """Each prompt reached one child at most, as it was sent; or the next, if its client repeated it and the one
        before had not begun with it."""
        seen, echoed = {}, set()
        for run in self.runs.values():
            if run.repeated:
                raise Violation("session %s: prompts reached the child twice: %s" % (run.session, run.repeated))
            for uuid, line in run.uuids.items():
                if uuid in seen and (uuid not in self.retried or uuid in echoed):
                    raise Violation("prompt %s reached two children" % uuid)
                seen[uuid] = line
                if run.complete or not run.over:  # else the daemon may not have come to read so
                    echoed |= run.echoed & {uuid}
                p = self.sent.get(uuid)
                if p and p.raw != line:
                    raise Violation("a prompt reached the child changed: %r, was %r" % (line[:300], p.raw[:300]))
        return seen

    def check_snapshots(self):
        """What a client that comes late is told of a child, against what that child has printed."""
        for name in list(self.listed()):
            wrong = []

            def good():
                wrong[:] = self.snapshot_errors(name)
                return not wrong

            self.wait_for(good, lambda: "the attach answer of %s to be true: %s" % (name, wrong), 10)

    def snapshot_errors(self, name):
        p, got = self.client("late"), []
        p.request("plenum_attach", lambda obj, body: got.append((obj, body)), session=name, role="observer", create="never")
        self.wait_for(lambda: got, "an answer to plenum_attach")
        p.abandon()
        if p in self.peers:
            self.peers.remove(p)
        self.refresh_runs()
        body, runs = got[0][1], self.runs_of(name)
        if body is None:
            return [] if name not in self.sessions else ["refused: %s" % got[0][0]]
        return snapshot.errors(body, runs[-1] if runs else None, self.books.get(name))

    def orphans(self):
        """Processes that should not be there: of sessions without a child, of earlier children, and zombies."""
        found = []
        self.refresh_runs()
        live = {r.session: r for r in self.runs.values() if not r.over}
        mark = self.root.encode()
        for pid in pids():
            try:
                with open("/proc/%d/stat" % pid) as f:
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
        for p in self.peers:
            if not p.closed:
                p.abandon()
        self.daemon.destroy()
        os.chdir("/")
        subprocess.run(["umount", self.root + "/disk"], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["rm", "-rf", self.root], check=False)
