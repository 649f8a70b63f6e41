/* SPDX-License-Identifier: MIT */
#include "io/lock.h"

#include "base/fd.h"
#include "io/proc.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define DYING_MS 5000 /* for a holder that is dying */
#define STEP_MS 10    /* between two looks at it */
#define LOOK_MS 50

static bool holder_is_dying(int fd) {
	char text[24] = "";
	if (pread(fd, text, sizeof text - 1, 0) <= 0) return false;
	int pid = atoi(text);
	return pid > 0 && proc_is_dying(pid);
}

/* A holder that seems to live is looked at twice: between SIGKILL and its exit there is a moment that shows nothing. */
int lock_take(int fd) {
	int64_t until = now_ms() + DYING_MS;
	for (bool seen = false;;) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
		int number = errno;
		if (number == EINTR) continue;
		bool dying = number == EWOULDBLOCK && holder_is_dying(fd);
		if (number != EWOULDBLOCK || (!dying && seen) || now_ms() >= until) {
			errno = number;
			return -1;
		}
		seen = !dying;
		poll(NULL, 0, dying ? STEP_MS : LOOK_MS);
	}
}
