/* SPDX-License-Identifier: MIT
 *
 * Questions of a client's line to file systems and other processes: an errand answers them while the line waits with
 * the client, followed by its next lines. No other client waits. Owns the inquiry of a client. Also the part of a start
 * that comes from the client's process: its environment, its umask, its directory.
 */
#pragma once

#include "core/login.h"
#include "io/errand.h"

struct buf;
struct client;
struct launch;
struct profile;
struct session;

/* Ask an errand for this line alone; place as in io/errand.h. False: the line comes again when the errand has ended,
 * and the same question is answered then. */
bool inquiry_ask(struct client *c, struct chunk line, const char *kind, const struct buf *request, const char *place);
/* Return the answer to the last question of this line; SPAN_NONE: it failed, or none of this kind was asked. *end: how
 * it ended; end may be NULL. */
struct span inquiry_answer(const struct client *c, const char *kind, enum errand_end *end);
void inquiry_over(struct client *c); /* the line was served, or the client is gone */
/* Before a session of this profile is made, in cwd (NULL: the usual one): if a prestarted child could fit, ask for the
 * data of login_read() for that place. */
bool inquiry_look_for(struct client *c, struct chunk line, const struct profile *p, const char *cwd);
/* Find the program that a start of this profile for this client would run: the answer of PROGRAM_ERRAND. */
bool inquiry_find_program(struct client *c, struct chunk line, const struct profile *p);
/* After inquiry_look_for(): give a new launch what its start takes from the client's process, if permitted. The
 * environment, unless it has a whole one, is that of the answer, or the start reads it. */
void inquiry_fill_launch(struct launch *l, struct client *c, const struct profile *p);
/* Return the directory of a child for a client that names none: the client's (same uid), the profile's, or HOME. The
 * caller frees; NULL without memory. */
char *inquiry_usual_cwd(const struct client *c, const struct profile *p);
/* Call before c wakes the session: its child starts with the environment of c, as the session's maker may be long gone.
 * The environment of an agent's program is not used. */
void inquiry_take_login(struct session *s, struct client *c);
