/* SPDX-License-Identifier: MIT
 *
 * What the environment of a process that asks for a session tells of its login: agent sockets, displays, its PATH, and
 * what the profile lets through. The session's children need it, for as long as there is the session. It does not
 * change once it was read, and sessions of one login share it. Counted; NULL stands for one that tells nothing.
 * Source: DESIGN 8, PROTOCOL 1.
 */
#pragma once

#include "core/carry.h"
#include "core/settings.h"
#include "io/errand.h"
#include "wire/scan.h"

#include <sys/types.h>

struct login {
	unsigned refs;
	struct words words; /* NAME=VALUE */
};

/* The errand that reads the environment of a process, and what a start in a directory would find, for a profile with
 * warm children: reading either may wait. */
#define LOGIN_ERRAND "login"
int login_errand(void);
struct login_place {
	const char *cwd, *program, *path; /* path: the daemon's; NULL: the default */
};
void login_ask(struct buf *request, pid_t pid, const struct login_place *place);
/* Of its answer: env is the environment. False: it says nothing. */
bool login_answer(const char *answer, size_t n, struct child_place *place, struct span *env);

/* Of the environment of a process of our own uid. Without memory something is left out. */
struct login *login_read(struct span env, const struct profile *p);
/* What `old` is when another process starts its children: that one's agent sockets and displays count from now on, what
 * else it has fills gaps only. */
struct login *login_renew(const struct login *old, struct span env, const struct profile *p);
/* Of words that were one's; NULL if there are none. */
struct login *login_copy(const struct words *w);
/* One more owner. */
struct login *login_ref(struct login *l);
void login_unref(struct login *l);
bool login_same(const struct login *a, const struct login *b);
/* *l becomes *newest where they are the same, else it is the newest from now on. */
void login_share(struct login **l, struct login **newest);
const struct words *login_words(const struct login *l); /* never NULL */
void login_carry(struct carry *c, struct login **l);
