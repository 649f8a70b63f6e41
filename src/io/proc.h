/* SPDX-License-Identifier: MIT
 *
 * Other processes according to /proc: names, parents, environment. Results are snapshots; a pid may be reused, so keep
 * a pidfd with it.
 *
 * Only the environment may be waited for: reading it takes the lock of the process's memory, which a process may hold
 * for long (in mmap(2) of a file on a mount that does not answer). The other files are made from what the kernel counts
 * about a process: stat, status, statm, limits, cgroup, comm and the link cwd do not wait for it. Source: proc(5).
 */
#pragma once

#include "base/error.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The program's short name (comm), or "?" . */
void proc_name(pid_t pid, char *out, size_t size);
/* Parent, session and start time (field 22); false: no such process. Any pointer may be NULL. */
bool proc_stat(pid_t pid, pid_t *parent, pid_t *session, uint64_t *start);
/* Return true if the process with this pid and start time runs; a zombie does not. */
bool proc_lives(pid_t pid, uint64_t start);
/* Write the reason why SIGKILL did not end it, according to /proc, as the end of a sentence. */
void proc_explain(pid_t pid, struct error *why);
/* Return true if it is dead, killed or exiting: its descriptors are closed, or will be soon. */
bool proc_is_dying(pid_t pid);
/* The working directory, or NULL; the caller frees. */
char *proc_cwd(pid_t pid);
/* The initial environment of the process, or NULL: NAME=VALUE with a NUL each. May wait for the process. The caller
 * frees. */
char *proc_environ(pid_t pid, size_t *len);
/* The value of one variable in such an environment, or NULL. */
const char *proc_find(const char *env, size_t len, const char *name);
/* The same of a process, a copy; the caller frees. */
char *proc_env(pid_t pid, const char *name);
/* The file mode creation mask, or -1. */
int proc_umask(pid_t pid);
/* Resident bytes, 0 if unknown. */
size_t proc_rss(pid_t pid);

/* The path of its control group (the unified hierarchy), or NULL; the caller frees. */
char *proc_cgroup(pid_t pid);

/* The children of this process, including adopted orphans. The caller frees. NULL: they cannot be listed. */
pid_t *proc_children(size_t *n);

/* A process of a listing. */
struct proc {
	pid_t pid, parent, session;
	uint64_t start;
	char state; /* as ps(1) has it */
	bool zombie;
};
/* A list of all processes except this one, read one by one: it may be continued in later turns of the loop. */
struct proc_scan {
	DIR *dir;
	struct proc *all;
	size_t n, cap;
	bool whole;
};
void proc_scan_begin(struct proc_scan *s);
/* Read at most one process. False: there are no more. */
bool proc_scan_next(struct proc_scan *s);
/* Return the list, by pid; the caller frees. NULL: they cannot be listed. Also ends a scan that is not complete. */
struct proc *proc_scan_end(struct proc_scan *s, size_t *n);
/* One of them, or NULL. */
struct proc *proc_in(const struct proc *list, size_t n, pid_t pid);
