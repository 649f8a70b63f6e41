/* SPDX-License-Identifier: MIT */
#include "io/proc.h"

#include "base/fd.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENVIRON_MAX ((size_t)4 * 1024 * 1024)
#define PF_EXITING 4 /* of the flags in /proc/PID/stat */

static int open_file(pid_t pid, const char *name) {
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static ssize_t read_file(pid_t pid, const char *name, char *out, size_t size) {
	_cleanup_close_ int fd = open_file(pid, name);
	if (fd < 0) return -1;
	size_t len = 0;
	ssize_t n;
	while ((n = fd_read(fd, out + len, size - 1 - len)) > 0) len += (size_t)n;
	out[len] = 0;
	return n < 0 ? n : (ssize_t)len;
}

void proc_name(pid_t pid, char *out, size_t size) {
	ssize_t n = read_file(pid, "comm", out, size);
	if (n <= 0)
		snprintf(out, size, "?");
	else
		out[strcspn(out, "\n")] = 0;
	for (size_t i = 0, len; out[i]; i += len ? len : 1) /* the kernel cuts a name in the middle of a letter */
		if (!(len = str_utf8(out + i, strlen(out + i)))) out[i] = '?';
}

static bool read_stat(pid_t pid, struct proc *out) {
	char text[1024], state;
	int ppid, sid;
	unsigned long long since;
	if (pid <= 0 || read_file(pid, "stat", text, sizeof text) <= 0) return false;
	const char *p = strrchr(text, ')'); /* the name before it may hold anything */
	if (!p || sscanf(p + 1, " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state,
					 &ppid, &sid, &since) != 4)
		return false;
	*out = (struct proc){.pid = pid, .parent = ppid, .session = sid, .start = since};
	out->state = state;
	out->zombie = state == 'Z' || state == 'X';
	return true;
}

bool proc_stat(pid_t pid, pid_t *parent, pid_t *session, uint64_t *start) {
	struct proc p;
	if (!read_stat(pid, &p)) return false;
	if (parent) *parent = p.parent;
	if (session) *session = p.session;
	if (start) *start = p.start;
	return true;
}

bool proc_lives(pid_t pid, uint64_t start) {
	struct proc p;
	return read_stat(pid, &p) && p.start == start && !p.zombie;
}

/* The number behind a name in /proc/PID/status, such as "\nUid:"; 0: there is none. */
static unsigned status_number(pid_t pid, const char *name) {
	char text[4096];
	if (read_file(pid, "status", text, sizeof text) <= 0) return 0;
	const char *at = strstr(text, name);
	return at ? (unsigned)strtoul(at + strlen(name), NULL, 10) : 0;
}

int proc_umask(pid_t pid) {
	static const char name[] = "\nUmask:\t";
	char text[4096], *end;
	if (read_file(pid, "status", text, sizeof text) <= 0) return -1;
	const char *at = strstr(text, name);
	long mask = at ? strtol(at + sizeof name - 1, &end, 8) : -1;
	return mask >= 0 && mask <= 0777 && *end == '\n' ? (int)mask : -1;
}

void proc_explain(pid_t pid, struct error *why) {
	struct proc p = {.state = '?'};
	bool foreign = kill(pid, 0) < 0 && errno == EPERM;
	unsigned tracer = status_number(pid, "\nTracerPid:");
	(void)read_stat(pid, &p);
	if (foreign)
		error_set(why, "it runs as uid %u, and may not be signalled", status_number(pid, "\nUid:"));
	else if (tracer && p.state == 't')
		error_set(why, "process %u traces it and holds it (state t)", tracer);
	else if (p.state == 'D')
		error_set(why, "it waits in the kernel and cannot be interrupted (state D)");
	else
		error_set(why, "it goes on after SIGKILL (state %c)", p.state);
}

/* The bit of SIGKILL in a line of /proc/PID/status, "SigPnd:" and a hexadecimal number. */
static bool has_sigkill(const char *status, const char *line) {
	const char *at = strstr(status, line);
	return at && strtoull(at + strlen(line), NULL, 16) & (1ULL << (SIGKILL - 1));
}

bool proc_is_dying(pid_t pid) {
	char text[4096];
	unsigned long flags;
	if (kill(pid, 0) < 0 && errno == ESRCH) return true;
	if (read_file(pid, "status", text, sizeof text) > 0 &&
		(has_sigkill(text, "SigPnd:") || has_sigkill(text, "ShdPnd:")))
		return true;
	if (read_file(pid, "stat", text, sizeof text) <= 0) return true;
	const char *after = strrchr(text, ')');
	return after && sscanf(after, ") %*c %*d %*d %*d %*d %*d %lu", &flags) == 1 && flags & PF_EXITING;
}

char *proc_cwd(pid_t pid) {
	char path[64], target[4096];
	snprintf(path, sizeof path, "/proc/%d/cwd", (int)pid);
	ssize_t n = readlink(path, target, sizeof target);
	if (n <= 0 || (size_t)n == sizeof target || target[0] != '/') return NULL;
	return strndup(target, (size_t)n);
}

char *proc_environ(pid_t pid, size_t *len) {
	struct buf b = BUF_INIT(ENVIRON_MAX);
	_cleanup_close_ int fd = open_file(pid, "environ");
	if (fd < 0) return NULL;
	for (;;) {
		if (!buf_reserve(&b, 4096)) break;
		ssize_t n = fd_read(fd, b.data + b.len, 4096);
		if (n <= 0) break;
		b.len += (size_t)n;
	}
	b.failed = false;
	return buf_steal(&b, len);
}

const char *proc_find(const char *env, size_t len, const char *name) {
	size_t n = strlen(name);
	for (const char *p = env; p < env + len; p += strlen(p) + 1)
		if (strncmp(p, name, n) == 0 && p[n] == '=') return p + n + 1;
	return NULL;
}

char *proc_env(pid_t pid, const char *name) {
	size_t len;
	_cleanup_free_ char *env = proc_environ(pid, &len);
	const char *value = env ? proc_find(env, len, name) : NULL;
	return value ? strdup(value) : NULL;
}

size_t proc_rss(pid_t pid) {
	char text[256];
	unsigned long pages;
	if (read_file(pid, "statm", text, sizeof text) <= 0 || sscanf(text, "%*u %lu", &pages) != 1) return 0;
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

char *proc_cgroup(pid_t pid) {
	char text[8192];
	if (read_file(pid, "cgroup", text, sizeof text) <= 0) return NULL;
	char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (!line) return NULL;
	line = strchr(line, '/');
	return line ? strndup(line, strcspn(line, "\n")) : NULL;
}

/* --- listing ------------------------------------------------------------------------------------------------------ */

static bool add_process(struct proc_scan *s, const struct proc *p) {
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 256;
		struct proc *all = realloc(s->all, cap * sizeof *all);
		if (!all) return false;
		s->all = all;
		s->cap = cap;
	}
	s->all[s->n++] = *p;
	return true;
}

static int by_pid(const void *a, const void *b) {
	pid_t one = ((const struct proc *)a)->pid, other = ((const struct proc *)b)->pid;
	return (one > other) - (one < other);
}

void proc_scan_begin(struct proc_scan *s) {
	*s = (struct proc_scan){.dir = opendir("/proc")};
	s->whole = s->dir != NULL;
}

bool proc_scan_next(struct proc_scan *s) {
	uint64_t pid;
	struct proc p;
	struct dirent *e = s->whole ? readdir(s->dir) : NULL;
	if (!e) return false;
	if (!str_u64(e->d_name, 1, INT32_MAX, &pid) || (pid_t)pid == getpid()) return true;
	if (read_stat((pid_t)pid, &p)) s->whole = add_process(s, &p);
	return s->whole;
}

struct proc *proc_scan_end(struct proc_scan *s, size_t *n) {
	struct proc *all = s->all;
	if (s->dir) closedir(s->dir);
	if (s->whole && !all) all = calloc(1, sizeof *all); /* we are alone */
	if (!s->whole) {
		free(all);
		all = NULL;
	}
	*n = all ? s->n : 0;
	if (*n) qsort(all, *n, sizeof *all, by_pid);
	*s = (struct proc_scan){0};
	return all;
}

/* The kernel gives orphans to the first thread, which is also the one that forks. */
pid_t *proc_children(size_t *n) {
	char path[64];
	pid_t *all = NULL, *more;
	size_t cap = 0;
	*n = 0;
	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	FILE *f = fopen(path, "re");
	bool whole = f != NULL;
	for (int pid; whole && fscanf(f, "%d", &pid) == 1;) {
		if (*n == cap) {
			cap = cap ? cap * 2 : 64;
			whole = (more = realloc(all, cap * sizeof *all)) != NULL;
			if (!whole) break;
			all = more;
		}
		all[(*n)++] = pid;
	}
	if (f) fclose(f);
	if (whole && !all) all = calloc(1, sizeof *all); /* there is none */
	if (whole) return all;
	free(all);
	*n = 0;
	return NULL;
}

struct proc *proc_in(const struct proc *list, size_t n, pid_t pid) {
	struct proc key = {.pid = pid};
	return n ? bsearch(&key, list, n, sizeof *list, by_pid) : NULL;
}
