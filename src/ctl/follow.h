/* SPDX-License-Identifier: MIT
 *
 * Attaching to a session, and the lines that follow, for every verb that does so.
 */
#pragma once

#include "ctl/ctl.h"
#include "wire/scan.h"

/* Asks for the attachment; members is consumed, `session` is added where it is not NULL. *answer is the answer's body.
 */
int follow_to(struct plenum *p, const char *session, json_t *members, json_t **answer);

/* One line with its envelope. The spans live until the next call. A line that is no object is given with every span of
 * the envelope absent. */
struct incoming {
	struct span line;
	struct envelope e;
};
enum plenum_result follow_next(struct plenum *p, int timeout_ms, struct incoming *in);

/* The event's name where the line is a notice of the daemon, else SPAN_NONE. */
struct span follow_event(const struct incoming *in);
/* The number of a tagged line: the daemon puts it first. False: the line has none. */
bool follow_seq(const struct incoming *in, int64_t *seq);
/* Whether this notice says that this changed to that value: `prompt_cancelled`, a prompt that will have no result. */
bool follow_changed(const struct incoming *in, const char *what, const char *value);
/* Whether this notice says that a turn of the prompt has ended. It is needed only where the result did not tell: a
 * child that cannot begin prints one that names nobody. */
bool follow_ended(const struct incoming *in, const char *uuid);
/* A notice `error` to us alone: prints it. */
/* Says on stderr what the daemon takes this program for, where that is less than it asked to be. */
void attach_tell_peer(json_t *answer);
void attach_print_error(const struct incoming *in);
