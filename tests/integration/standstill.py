# SPDX-License-Identifier: MIT
"""Stop the daemon while several events happen, so that it finds them in one turn of its loop."""
import contextlib
import os
import signal

from harness import until


@contextlib.contextmanager
def standstill(d):
    """The daemon finds the events of this block in one turn of its loop, in this order."""

    def stands():
        with open("/proc/%d/stat" % d.pid) as f:
            return f.read().rpartition(")")[2].split()[0] == "T"

    # a turn that loses the processor ends early: the rest comes in the next ones, and not in this order
    with contextlib.suppress(OSError):  # only root may
        os.sched_setscheduler(d.pid, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    until(d.waits)  # else it would first finish the last line it read
    os.kill(d.pid, signal.SIGSTOP)
    until(stands)
    try:
        yield
    finally:
        os.kill(d.pid, signal.SIGCONT)


def connected(d, n):
    """Clients whose connections the daemon has accepted."""
    clients = [d.client() for _ in range(n)]
    for c in clients:
        c.sync()
    return clients
