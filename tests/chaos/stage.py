# SPDX-License-Identifier: MIT
"""A daemon whose disk, descriptors and memory the driver can take away and give back."""
import os
import resource
import signal
import subprocess
import time

from harness import Daemon
from peer import Violation


def mount_small(path):
    """Mount a file system of 32 MiB, twice the share of the attackers' sessions; None if this process may not mount."""
    os.makedirs(path)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=0700", "chaos", path], stderr=subprocess.DEVNULL,
                          check=False)
    return path if done.returncode == 0 else None


class Stage:
    def __init__(self, root, say):
        self.root, self.say = root, say
        self.disk = mount_small(root + "/disk")
        self.state_dir = root + "/disk/state"
        self.limited = self.full = self.frozen = self.disk_was_full = self.starved = False
        self.short_until = self.full_until = 0  # when descriptors, and the disk, were given back
        self.daemon = self.nofile = None

    def make_daemon(self, sections, **options):
        self.daemon = Daemon(sections, root=self.root, start=False, **options)

    def start_daemon(self):
        self.daemon.start()
        self.nofile = resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE)
        self.limited = False

    def check_alive(self):
        status = self.daemon.process.poll()
        if status is not None:
            raise Violation("plenumd ended with %d:\n%s" % (status, self.daemon.log_tail()))

    # --- stress

    def limit(self, spare):
        used = self.daemon.fd_count()
        resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE, (used + spare, self.nofile[1]))
        self.limited = True

    def unlimit(self):
        if self.limited:
            resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE, self.nofile)
            self.short_until = time.monotonic()
        self.limited = False

    def starve(self, spare):
        """Limit its address space to this many bytes more than now. The hard limit stays."""
        with open("/proc/%d/statm" % self.daemon.pid) as f:
            used = int(f.read().split()[0]) * resource.getpagesize()
        hard = resource.prlimit(self.daemon.pid, resource.RLIMIT_AS)[1]
        resource.prlimit(self.daemon.pid, resource.RLIMIT_AS, (used + spare, hard))
        self.starved = True

    def feed(self):
        if self.starved:
            hard = resource.prlimit(self.daemon.pid, resource.RLIMIT_AS)[1]
            resource.prlimit(self.daemon.pid, resource.RLIMIT_AS, (hard, hard))
        self.starved = False

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
            self.full_until = time.monotonic()
        self.full = False

    def write_conf(self):
        """Atomic: a reader sees the old one or the new one."""
        conf = self.daemon.conf
        self.daemon.conf = conf + ".new"
        self.daemon.write_conf()
        self.daemon.conf = conf
        os.rename(conf + ".new", conf)

    def freeze(self):
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self):
        if self.frozen:
            self.daemon.process.send_signal(signal.SIGCONT)
        self.frozen = False

    def destroy(self):
        self.daemon.destroy()
        os.chdir("/")
        subprocess.run(["umount", self.root + "/disk"], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["rm", "-rf", self.root], check=False)
