/* SPDX-License-Identifier: MIT
 *
 * The client environment: variables of the login in the environment of the process that requests a session (agent
 * sockets, displays, its PATH), and those passed by the profile. The session's children need it as long as the session
 * exists. It does not change after it was read, and sessions of one login share it. Reference-counted; NULL is an empty
 * one. Source: docs/contract.md 8, protocol-facts 1.
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

/* The errand that reads the environment of a process and looks up the program in a directory, for a profile with
 * prestarted children: both may block. */
#define LOGIN_ERRAND "login"
int login_errand(void);
struct login_place {
	const char *cwd, *program, *path; /* path: the daemon's; NULL: the default */
	const char *variable;             /* of the requester, it names another program if it is set; NULL: none does */
};
void login_ask(struct buf *request, pid_t pid, const struct login_place *place);
/* Parse its answer: env is the environment. False: no answer. */
bool login_answer(const char *answer, size_t n, struct child_place *place, struct span *env);

/* The errand that answers the same request with the program that a start would run: three strings, its path ("": none),
 * where it was found, and the error. */
#define PROGRAM_ERRAND "program"
int login_program_errand(void);

/* Return the variable that names the program of this profile (plenumd(8), PLENUM_CLAUDE); NULL: none. */
const char *login_variable_of(const char *profile);
/* Read the client environment from the environment of a process of our uid. Without memory some variables are
 * missing. */
struct login *login_read(struct span env, const struct profile *p);
/* Update `old` from another process that starts its children: agent sockets and displays are replaced, other variables
 * only fill gaps. */
struct login *login_renew(const struct login *old, struct span env, const struct profile *p);
/* Make one from words; NULL if there are none. */
struct login *login_copy(const struct words *w);
/* Add an owner. */
struct login *login_ref(struct login *l);
void login_unref(struct login *l);
bool login_same(const struct login *a, const struct login *b);
/* Replace *l by *newest if they are equal, else make it the newest. */
void login_share(struct login **l, struct login **newest);
const struct words *login_words(const struct login *l); /* never NULL */
void login_carry(struct carry *c, struct login **l);
