/* SPDX-License-Identifier: MIT
 *
 * The table of sessions: their names, how they are made, started and removed.
 */
#pragma once

#include "base/error.h"
#include "core/router.h"
#include "io/child.h"

#define SESSIONS_NAME_MAX 255
#define SESSIONS_NAME_TEXT                                                                                             \
	"1 to %d bytes of UTF-8 without control characters, line separators and controls of the writing direction"
bool sessions_is_name(const char *name); /* a valid session name */
#define SESSIONS_MADE_UP_MAX 24
void sessions_make_up_name(struct router *r, char out[SESSIONS_MADE_UP_MAX]); /* a free one */
/* Give a session without a child and without detached processes, which are known by the old name, another name, which
 * must be free. False: no memory. */
bool sessions_rename(struct session *s, const char *name);
/* Return true if the session is being removed and the client wants its name or its conversation for the next one. A
 * child that was ending in its own time gets the stop sequence then. */
bool sessions_must_wait(struct session *s, struct client *c);
/* Make and announce a session without starting it. Takes over launch. NULL without memory. */
struct session *sessions_create(struct router *r, const char *name, const struct profile *profile,
								struct launch *launch);
/* Get its first child: a fitting prestarted one, else begin a start (s->starting). */
enum child_result sessions_start(struct router *r, struct session *s, struct error *error);
/* The same as sessions_create(), without the announcement. id: 0: a new one. */
struct session *sessions_add(struct router *r, const char *name, const struct profile *profile, struct launch *launch,
							 uint64_t id);
/* Return NULL if the client may make one more session, else an error code, with a text for it. */
const char *sessions_refused(struct router *r, const struct client *c, struct error *why);
/* Return NULL if the table on disk has room for the words of this launch besides those of all sessions, else an error
 * code, with a text for the client. */
const char *sessions_full(const struct router *r, const struct launch *l, struct error *why);
/* Give a session without a child the present configuration, unless that has another dialect. */
void sessions_renew_profile(struct session *s);
/* Remove the session: all its clients are notified and detached. Its child must be gone or is killed. */
void sessions_remove(struct router *r, struct session *s, const char *why);
/* Before the start: its first client begins the conversation itself, where a dialect has a request for that. */
void sessions_leave_begin(struct session *s);
