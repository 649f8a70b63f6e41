/* SPDX-License-Identifier: MIT
 *
 * Warm starts: for a profile that says `warm = N`, N children that were started and initialised before anybody asked.
 * A spare is a hidden session of its own, outside of the router's table; a new session whose child would be started
 * with exactly the same program, words, environment and folder gets the spare's child instead, and another spare is
 * started a little later. Nothing has been written to such a child but the daemon's own initialize, and as long as that
 * is so it can be given back: a client whose initialize says something that a child takes only with its first one gets
 * a child of its own.
 *
 * Spares count against max_children, and are the first to go where there are too many or memory is short. One that dies
 * is replaced, more slowly each time, and not for ever. Source: plenum.conf(5), DESIGN 8.
 */
#pragma once

#include "core/session.h"

struct router;
struct warm;

struct warm *warm_new(struct router *r); /* without spares; NULL without memory */
void warm_free(struct warm *w);          /* after warm_forget() */
/* Reads the router's settings, at the start and after a reload: old spares end, new ones start. */
void warm_configure(struct warm *w);
/* No more spares; those that are there end. */
void warm_stop(struct warm *w, bool kill_now);
/* The memory of all that are left; their processes die with the daemon. */
void warm_forget(struct warm *w);

/* A session that was just made and has no child gets a spare's, if one fits. */
bool warm_give(struct warm *w, struct session *s);
/* The child that it got, that nothing was written to and that does nothing, is a spare again; the session has none. */
void warm_take_back(struct warm *w, struct session *s);
/* A spare ends if there are more children than max_children. */
void warm_make_room(struct warm *w);
/* Memory is short: all spares end, and none is started for a while. False: there is none. */
bool warm_relieve(struct warm *w);

size_t warm_running(const struct warm *w); /* processes, those that are ending too */
/* Spares of this profile that could be given now. */
size_t warm_ready(const struct warm *w, const struct profile *p);
