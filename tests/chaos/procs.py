# SPDX-License-Identifier: MIT
"""Process data from /proc; any process may end by itself meanwhile."""
import contextlib
import os


def kill(pid, number):
    """Send a signal to a process that may just have ended by itself."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def start_time(pid):
    try:
        with open("/proc/%d/stat" % pid, errors="replace") as f:
            return int(f.read().rpartition(")")[2].split()[19])
    except OSError:
        return None


def environment(pid):
    try:
        with open("/proc/%d/environ" % pid, "rb") as f:
            return dict(w.split(b"=", 1) for w in f.read().split(b"\0") if b"=" in w)
    except OSError:
        return {}


def stood(pid):
    """Return the seconds in which its main thread was ready and had no processor; 0 if the kernel does not count that,
    or it has ended."""
    try:
        with open("/proc/%d/schedstat" % pid) as f:
            return int(f.read().split()[1]) / 1e9
    except OSError:
        return 0


def pids():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]
