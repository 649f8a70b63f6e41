/* SPDX-License-Identifier: MIT
 *
 * Attach to a session and read its lines, for all verbs that need it.
 */
#pragma once

#include "ctl/ctl.h"
#include "ctl/speech.h"

/* Attach; p may be NULL: no daemon. members is consumed, and `session` is added unless NULL. *answer is the answer's
 * body. */
int follow_to(struct plenum *p, const char *session, json_t *members, json_t **answer);

/* Read the next line; it is valid until the next call. */
enum plenum_result follow_next(struct plenum *p, int timeout_ms, struct incoming *in);
/* The same for a verb that prints the lines: wait for the next one, with nothing left in stdout. Return CTL_GO, or the
 * exit code; the reason was printed. */
int follow_printing(struct plenum *p, struct incoming *in);

/* Return the event's name if the line is a notice of the daemon, else SPAN_NONE. */
struct span follow_event(const struct incoming *in);
/* Read the number of a tagged line, its first member. False: none. */
bool follow_seq(const struct incoming *in, int64_t *seq);
/* Return true for the event `changed` with this `what` and value, such as `prompt_cancelled`: a prompt without a
 * result. */
bool follow_changed(const struct incoming *in, const char *what, const char *value);
/* Return the new name if the session got one, else NULL. The caller frees. */
char *follow_renamed(const struct incoming *in, const char *session);
/* Return true if this notice is the end of a turn of the prompt. Needed if the result names no prompt, as that of a
 * child that cannot start. */
bool follow_ended(const struct incoming *in, const char *uuid);
/* Wait for the end of the session's agent after `plenum_stop` or `plenum_hibernate`; forget: for the end of the
 * session. The connection is attached or subscribed. Return the exit code: CTL_REFUSED, with the reason on stderr, if
 * the agent could not be ended. */
int follow_to_end(struct plenum *p, const char *session, bool forget);
/* Print on stderr the class that the daemon gives this program, if that is less than requested. */
void follow_print_peer(json_t *answer);
/* Print a notice `error` to this client alone, or an error answer of the daemon. Return the exit code. */
int follow_print_error(const struct incoming *in);
