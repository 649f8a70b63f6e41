/* SPDX-License-Identifier: MIT
 *
 * A table of the lines that clients may send to the child: each dialect has its own rows. It says which peers may send
 * each; core/gate.h decides by it. Names are compared byte by byte: a name with escapes has no row.
 */
#pragma once

#include "wire/scan.h"

enum gate_kind { GATE_TYPE, GATE_REQUEST, GATE_MEMBER, GATE_BLOCK, GATE_COMMAND };

/* The least privileged peer that may send it. A lower value needs more privilege. */
enum gate_least { GATE_OWN, GATE_DRIVER, GATE_OBSERVER };

enum gate_affects { GATE_NOBODY, GATE_SENDER, GATE_SESSION, GATE_USER };

/* How it is handled. */
enum act_kind {
	ACT_PLAIN, /* passed on */
	ACT_INITIALIZE,
	ACT_INTERRUPT,
	ACT_END_SESSION,
	ACT_CANCEL_PROMPT, /* cancel a queued prompt, by its uuid */
	ACT_MCP_SET_SERVERS,
	ACT_CHANGE,  /* passed on and announced */
	ACT_EXECUTE, /* judged as a tool call */
	ACT_PROMPT,
	ACT_REQUEST, /* by its subtype */
	ACT_ANSWER,
	ACT_CANCEL, /* cancel a request of the client */
	ACT_KEPT,   /* answered by the daemon from the start of the child, or by the child, which is started for it; of a
				 * line without an answer: the daemon sends it to each new child itself */
	ACT_NAMES,  /* passed on; `member` is a handle that the client chose (struct dialect_addressee), or absent */
	ACT_OPENS,  /* the same; the handle is open from the answer on, until the request `what` */
	ACT_RUNS,   /* the same; it is open until the answer, or the request `what` */
	ACT_ABOUT,  /* passed on; `member` is the id of another request of the client */
};

/* What to announce of a change: the value of `member`, or only the names of its members. */
enum gate_show { GATE_NOTHING, GATE_VALUE, GATE_KEYS };

struct gate_row {
	enum gate_kind kind;
	const char *name;
	size_t len;
	enum gate_least least;
	enum gate_affects affects;
	enum act_kind act;
	const char *what;   /* ACT_CHANGE: the name of the change; ACT_EXECUTE: the tool, or NULL if `member` names it;
						 * ACT_OPENS, ACT_RUNS: the request that ends it */
	const char *member; /* of the request or line, see act; of a GATE_MEMBER: the value without effect, or NULL */
	enum gate_show show;
};

/* A row as the tables have it: names without their prefixes. */
#define GATE_ROW(kind, name, least, affects, act, what, member, show)                                                  \
	{GATE_##kind, name, sizeof name - 1, GATE_##least, GATE_##affects, ACT_##act, what, member, GATE_##show},

#define GATE_BUCKETS 512
#define GATE_ROWS_MAX 1024

/* An index of the rows by kind and name, with constant-time lookup. Owned by the caller; read-only once made. */
struct gate_index {
	const struct gate_row *rows;                       /* borrowed */
	uint16_t first[GATE_BUCKETS], next[GATE_ROWS_MAX]; /* row numbers, from 1 */
	size_t longest;                                    /* the longest name of a row */
};

/* rows are static, n < GATE_ROWS_MAX. */
void gate_index_init(struct gate_index *ix, const struct gate_row *rows, size_t n);
/* Return the row of a raw name without quotes, or NULL. */
const struct gate_row *dialect_gate_row(const struct gate_index *ix, enum gate_kind kind, const char *name, size_t len);
/* Return the row of a member of `parent` (a type, a subtype, or "message"), else of a member common to all of them. */
const struct gate_row *dialect_gate_member(const struct gate_index *ix, const char *parent, size_t parent_len,
										   const char *name, size_t len);
/* Return true if one of the n rows opens a handle that it names by this member. */
bool dialect_gate_opens(const struct gate_row *rows, size_t n, const char *member);
/* Return the rows' own copy of the `what` of a change or a handle, or NULL if none of the n rows has it. */
const char *dialect_gate_what(const struct gate_row *rows, size_t n, const char *what);
