/* SPDX-License-Identifier: MIT
 *
 * Warm starts: for a profile with `warm = N`, N prestarted and initialised children. A spare is a hidden session of its
 * own, outside of the router's table; a new session with exactly the same program, argv, environment and directory gets
 * the spare's child, and another spare is started a little later. Only the daemon's own initialize has been written to
 * such a child, and as long as that is so it can be given back: a client with an initialize that a child takes only as
 * its first one gets a child of its own.
 *
 * Spares count against max_children, and are the first to end if there are too many or memory is short. One that dies
 * is replaced, more slowly each time, and not indefinitely. Source: plenum.conf(5), contract 8.
 */
#pragma once

#include "core/session.h"

struct router;
struct warm;

struct warm *warm_new(struct router *r); /* without spares; NULL without memory */
void warm_free(struct warm *w);          /* after warm_forget() */
/* Read the router's settings, at the start and after a reload: old spares end, new ones start. */
void warm_configure(struct warm *w);
/* Start no more spares, and end the present ones. */
void warm_stop(struct warm *w, bool kill_now);
/* Free all remaining spares; their processes die with the daemon. */
void warm_forget(struct warm *w);

/* Give a new session without a child a spare's, if one fits. */
bool warm_give(struct warm *w, struct session *s);
/* Take back the session's child, which nothing was written to and which is idle: it is a spare again. */
void warm_take_back(struct warm *w, struct session *s);
/* End a spare if there are more children than max_children. */
void warm_make_room(struct warm *w);
/* Memory is short: end all spares, and start none for a while. False: there is none. */
bool warm_relieve(struct warm *w);

void warm_carry(struct carry *c, struct warm *w); /* the spares do not live on */

size_t warm_running(const struct warm *w); /* processes, with the ending ones */
/* Return the number of spares of this profile that could be given now. */
size_t warm_ready(const struct warm *w, const struct profile *p);
