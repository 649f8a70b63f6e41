/* SPDX-License-Identifier: MIT
 *
 * What a client that comes late could not know otherwise before the next turn: the child's newest system/init, its
 * permission mode and model, its tasks in the background; as the child told them last. The router feeds it, the answer
 * to plenum_attach shows it. All of it is the child's bytes, as they were printed, and valid JSON.
 *
 * Of a child that is gone nothing is kept but a mode in which it might do less than by default: its system/init is
 * shown for as long as the tape has it, and until another child runs. Source: DESIGN 3.2, PROTOCOL 2.2.
 */
#pragma once

#include "core/tape.h"

struct snapshot {
	struct chunk init;  /* a copy without its LF: the tape may lose the line, and would hold the lines around it */
	uint64_t init_seq;  /* its number on the tape; 0: there was none */
	char *mode, *model; /* raw JSON strings; NULL: not known */
	char *strict;       /* the mode of the child before, if it was "plan" or "dontAsk"; raw JSON */
	char *tasks;        /* raw JSON array; NULL: none, or too much to keep */
	bool tasks_lost;    /* too much to keep */
	bool tasks_told;    /* the child prints lists of them; an old one only tells of each that starts and ends */
};

/* A line of the child: those that say nothing of this do nothing. */
void snapshot_line(struct snapshot *sn, enum line_kind kind, struct chunk line, const struct envelope *e);
/* The system/init that was fed last is on the tape. */
void snapshot_taped(struct snapshot *sn, uint64_t seq);
/* A client's request has changed `what` to this (raw JSON, or absent), as the child confirms. */
void snapshot_changed(struct snapshot *sn, const char *what, struct span value);
void snapshot_mode(struct snapshot *sn, struct span mode); /* no string: as it was */
/* The conversation is another one now: so will its next system/init be. */
void snapshot_forget_init(struct snapshot *sn);
static inline bool snapshot_has_tasks(const struct snapshot *sn) {
	return sn->tasks || sn->tasks_lost;
}
/* The mode of the child, if it is one in which it might do less than by default ("plan", "dontAsk"), else NULL: the
 * next child must be in it, too. It lives as long as the program. */
const char *snapshot_strict(const struct snapshot *sn);
void snapshot_set_strict(struct snapshot *sn, const char *mode); /* from before; no such mode: "plan" */
void snapshot_child_gone(struct snapshot *sn);
void snapshot_clear(struct snapshot *sn); /* another child begins */
void snapshot_free(struct snapshot *sn);
/* The newest system/init, or absent: not known, or too long to be kept. */
struct span snapshot_init(const struct snapshot *sn, const struct tape *tape);
void snapshot_carry(struct carry *c, struct snapshot *sn);
