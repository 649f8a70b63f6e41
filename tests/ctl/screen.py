# SPDX-License-Identifier: MIT
"""A terminal for tests: tmux, whose screen is read. Nothing sleeps: each wait ends when the text is there."""
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time

TIMEOUT = float(os.environ.get("PLENUM_TEST_TIMEOUT", "60"))


def until(check, what):
    deadline = time.monotonic() + TIMEOUT
    while not check():
        if time.monotonic() > deadline:
            raise AssertionError("not in time: " + what)
        time.sleep(0.02)


def stat_of(pid):
    """The fields of its line behind the name, from the state on; none: it is gone."""
    try:
        with open("/proc/%d/stat" % pid, errors="replace") as f:
            return f.read().rpartition(")")[2].split()
    except OSError:
        return []


def alive(pid):
    return stat_of(pid)[:1] not in ([], ["Z"], ["X"])


def session_of(pid):
    return int((stat_of(pid)[3:4] or [0])[0])


# $0: the file that shows the end of the program. The keys that send signals are for the program alone.
KEEPER = 'trap : INT QUIT; "$@"; : >"$0"; trap "" INT QUIT; exec sleep 1000000'


class Screen:
    """A program in a tmux of its own. .folder is its home."""

    def __init__(self, case, env, *command, columns=80, rows=24):
        self.folder = tempfile.mkdtemp(prefix="pl-tmux-", dir="/tmp")
        case.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.env = dict({"HOME": self.folder, "XDG_STATE_HOME": self.folder + "/state", "TMPDIR": self.folder}, **env)
        if "ASAN_OPTIONS" in self.env:  # LeakSanitizer can hang in an exit during which the terminal goes away
            self.env["ASAN_OPTIONS"] += ":detect_leaks=0"
        # tmux 3.3a loses the last output of a program whose end it sees first: a shell keeps the terminal.
        self.over = self.folder + "/over"
        words = ["sh", "-c", KEEPER, self.over, "env", "-i"] + ["%s=%s" % x for x in self.env.items()]
        words += ["TERM=screen"] + list(command)
        with open(self.folder + "/conf", "w") as f:
            f.write("set -g default-terminal screen\nset -g status off\nset -sg escape-time 0\n")
        case.addCleanup(self.end)
        self.tmux("-f", self.folder + "/conf", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  "exec " + " ".join(map(shlex.quote, words)))

    def tmux(self, *args, text=None):
        p = subprocess.run(["tmux", "-S", self.folder + "/sock", *args], input=text, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, timeout=60, env=dict(self.env, TERM="screen"))
        if p.returncode:
            raise AssertionError("tmux %s: %s" % (args, p.stderr))
        return p.stdout

    def end(self):
        """The server and all programs of the terminal are gone when this returns."""
        server, leader = map(int, self.tmux("display-message", "-p", "#{pid} #{pane_pid}").split())
        pids = [server] + [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if session_of(pid) == leader]
        self.tmux("kill-server")
        until(lambda: not any(alive(pid) for pid in pids), what="the end of tmux")

    def text(self, back=0):
        """The screen, with lines of the scrollback."""
        text = self.tmux("capture-pane", "-p", "-J", "-S", "-%d" % back)
        return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")

    def wait(self, *wanted, back=0):
        """Until all of them are on the screen (a string, or a compiled expression)."""
        seen = [""]

        def there():
            seen[0] = self.text(back)
            return all(w.search(seen[0]) if hasattr(w, "search") else w in seen[0] for w in wanted)
        try:
            until(there, what="text on the screen")
        except AssertionError:
            raise AssertionError("%r is not on the screen:\n%s" % (wanted, seen[0])) from None
        return seen[0]

    def typed(self, text):
        """Until the last line is the prompt with that text."""
        return self.wait(re.compile(r"(^|\n)%s$" % re.escape(text.rstrip())))

    def cursor(self, column):
        """Until the cursor is in that column, from 0 on."""
        until(lambda: self.tmux("display-message", "-p", "#{cursor_x}") == "%d\n" % column, what="the cursor")

    def keys(self, *names):
        self.tmux("send-keys", *names)

    def write(self, text):
        self.tmux("send-keys", "-l", text)

    def paste(self, text):
        self.tmux("load-buffer", "-", text=text)
        self.tmux("paste-buffer", "-p")

    def ended(self):
        until(lambda: os.path.exists(self.over), what="the end of the program")
