/* SPDX-License-Identifier: MIT
 *
 * The state that a late client would otherwise not know before the next turn: the child's newest system/init, its
 * permission mode and model, its background tasks; as last reported by the child. from_child.c feeds it, the answer to
 * plenum_attach shows it. All values are bytes printed by the child, and valid JSON.
 *
 * After the end of a child only a mode stricter than the default is kept; its system/init is shown while the tape has
 * it, and until the next child runs. Source: docs/contract.md 3.2, protocol-facts 2.2.
 */
#pragma once

#include "core/tape.h"

struct snapshot {
	struct chunk init;  /* a copy without its newline: a reference would keep its block beyond the tape */
	uint64_t init_seq;  /* its number on the tape; 0: none */
	char *mode, *model; /* raw JSON strings; NULL: unknown */
	char *strict;       /* the mode of the previous child, if it may be stricter than the default; raw JSON */
	char *tasks;        /* raw JSON array; NULL: none, or too long */
	bool tasks_lost;    /* too long to keep */
	bool tasks_told;    /* the child prints lists of tasks; an old one only reports their starts and ends */
};

/* Process a line of the child; lines without such state change nothing. */
void snapshot_read(struct snapshot *sn, const struct dialect *d, struct chunk line, const struct report *r);
/* The last processed system/init is on the tape. */
void snapshot_taped(struct snapshot *sn, uint64_t seq);
/* The child has confirmed a client's request: `what` has this value (raw JSON, or absent). */
void snapshot_changed(struct snapshot *sn, const struct dialect *d, const char *what, struct span value);
void snapshot_mode(struct snapshot *sn, struct span mode); /* not a string: no change */
void snapshot_model(struct snapshot *sn, struct span model);
/* The conversation has changed, and with it the next system/init. */
void snapshot_forget_init(struct snapshot *sn);
static inline bool snapshot_has_tasks(const struct snapshot *sn) {
	return sn->tasks || sn->tasks_lost;
}
/* Return the mode of the child if it may be stricter than the default, else NULL: the next child must be in it, too.
 * Static. */
const char *snapshot_strict(const struct snapshot *sn, const struct dialect *d);
/* From the previous daemon; for an unknown mode the strictest one. */
void snapshot_set_strict(struct snapshot *sn, const struct dialect *d, const char *mode);
void snapshot_child_gone(struct snapshot *sn, const struct dialect *d);
void snapshot_clear(struct snapshot *sn, const struct dialect *d); /* a new child begins */
void snapshot_free(struct snapshot *sn);
/* Return the newest system/init, or absent: unknown, or too long to keep. */
struct span snapshot_init(const struct snapshot *sn, const struct tape *tape);
void snapshot_carry(struct carry *c, struct snapshot *sn);
