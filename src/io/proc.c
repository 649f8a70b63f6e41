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

bool proc_stat(pid_t pid, pid_t *parent, pid_t *session, uint64_t *start) {
	char text[1024];
	int ppid, sid;
	unsigned long long since;
	if (pid <= 0 || read_file(pid, "stat", text, sizeof text) <= 0) return false;
	const char *p = strrchr(text, ')'); /* the name before it may hold anything */
	if (!p || sscanf(p + 1, " %*c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ppid,
					 &sid, &since) != 3)
		return false;
	if (parent) *parent = ppid;
	if (session) *session = sid;
	if (start) *start = since;
	return true;
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

struct family {
	pid_t *pids;
	pid_t *parents;
	bool *marked;
	size_t n, cap;
};

static bool add_process(struct family *f, pid_t pid, pid_t parent) {
	if (f->n == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 256;
		pid_t *pids = realloc(f->pids, cap * sizeof *pids);
		if (pids) f->pids = pids;
		pid_t *parents = realloc(f->parents, cap * sizeof *parents);
		if (parents) f->parents = parents;
		bool *marked = realloc(f->marked, cap * sizeof *marked);
		if (marked) f->marked = marked;
		if (!pids || !parents || !marked) return false;
		f->cap = cap;
	}
	f->pids[f->n] = pid;
	f->parents[f->n] = parent;
	f->marked[f->n++] = false;
	return true;
}

static void free_family(struct family *f) {
	free(f->pids);
	free(f->parents);
	free(f->marked);
}

static void list_processes(struct family *f) {
	DIR *dir = opendir("/proc");
	if (!dir) return;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		uint64_t pid;
		pid_t parent;
		if (!str_u64(e->d_name, 2, INT32_MAX, &pid) || (pid_t)pid == getpid()) continue;
		if (proc_stat((pid_t)pid, &parent, NULL, NULL) && !add_process(f, (pid_t)pid, parent)) break;
	}
	closedir(dir);
}

static bool mark_children(struct family *f) {
	bool more = false;
	for (size_t i = 0; i < f->n; i++) {
		if (f->marked[i]) continue;
		for (size_t k = 0; k < f->n && !f->marked[i]; k++)
			if (f->marked[k] && f->pids[k] == f->parents[i]) f->marked[i] = more = true;
	}
	return more;
}

static bool is_zombie(pid_t pid) {
	char text[512];
	if (read_file(pid, "stat", text, sizeof text) <= 0) return true;
	const char *p = strrchr(text, ')');
	return !p || p[1] != ' ' || p[2] == 'Z' || p[2] == 'X';
}

static bool is_mark(const char *have, const char *value) {
	size_t n = strlen(value);
	return n && value[n - 1] == '.' ? strncmp(have, value, n) == 0 : strcmp(have, value) == 0;
}

size_t proc_sweep(const char *name, const char *value, bool (*spare)(void *arg, pid_t pid), void *arg) {
	struct family f = {0};
	size_t hit = 0;
	list_processes(&f);
	for (size_t i = 0; i < f.n; i++) {
		_cleanup_free_ char *have = spare && spare(arg, f.pids[i]) ? NULL : proc_env(f.pids[i], name);
		f.marked[i] = have && is_mark(have, value);
	}
	while (mark_children(&f)) {}
	for (size_t i = 0; i < f.n; i++)
		if (f.marked[i] && !(spare && spare(arg, f.pids[i])) && !is_zombie(f.pids[i]) && kill(f.pids[i], SIGKILL) == 0)
			hit++;
	free_family(&f);
	return hit;
}
