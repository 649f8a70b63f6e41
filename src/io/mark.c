/* SPDX-License-Identifier: MIT */
#include "io/mark.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define BASE (UINT64_C(1) << (MARK_BITS + 1))
#define TOP ((UINT64_C(1) << MARK_BITS) - 1)

_Static_assert(sizeof(rlim_t) == 8, "limits have 64 bits");

static const __rlimit_resource_t up = RLIMIT_RSS, down = RLIMIT_LOCKS;

static bool is_unlimited(__rlimit_resource_t which) {
	struct rlimit r;
	return getrlimit(which, &r) == 0 && r.rlim_max == RLIM_INFINITY;
}

bool mark_possible(void) {
	return is_unlimited(up) && is_unlimited(down);
}

static void limit(__rlimit_resource_t which, uint64_t value) {
	setrlimit(which, &(struct rlimit){value, value});
}

void mark_set(uint64_t number) {
	if (!mark_possible()) return;
	limit(up, BASE + (number & TOP));
	limit(down, BASE + (TOP - (number & TOP)));
}

static bool is_part(uint64_t value) {
	return value >= BASE && value <= BASE + TOP;
}

/* The hard limit in the line of this name; 0: it is unlimited, or not there. */
static uint64_t hard_limit(const char *limits, const char *name) {
	char value[32];
	const char *at = strstr(limits, name);
	return at && sscanf(at + strlen(name), " %*s %31s", value) == 1 ? strtoull(value, NULL, 10) : 0;
}

enum mark_state mark_read(pid_t pid, uint64_t *number) {
	char path[64], text[4096];
	size_t len = 0;
	snprintf(path, sizeof path, "/proc/%d/limits", (int)pid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	for (ssize_t n = 1; fd >= 0 && n > 0 && len<sizeof text - 1; len += n> 0 ? (size_t)n : 0)
		n = fd_read(fd, text + len, sizeof text - 1 - len);
	text[len] = 0;
	uint64_t one = hard_limit(text, "\nMax resident set"), other = hard_limit(text, "\nMax file locks");
	if (!is_part(one) && !is_part(other)) return MARK_NONE;
	if (!is_part(one) || !is_part(other) || (one - BASE) + (other - BASE) != TOP) return MARK_BROKEN;
	*number = one - BASE;
	return MARK_WHOLE;
}
