/* SPDX-License-Identifier: MIT
 *
 * The table of what clients may send to Claude Code: the rows of dialect_gate.def, static for the life of the program.
 * It says who may send what; core/gate.h decides by it. A name that is compared here is compared byte by byte: one that
 * is spelled with escapes has no row.
 */
#pragma once

#include "wire/scan.h"

enum gate_kind { GATE_TYPE, GATE_REQUEST, GATE_MEMBER, GATE_BLOCK, GATE_COMMAND };

/* The least peer that may send it. The lower the value, the more a peer must be. */
enum gate_least { GATE_OWN, GATE_DRIVER, GATE_OBSERVER };

enum gate_affects { GATE_NOBODY, GATE_SENDER, GATE_SESSION, GATE_USER };

/* What becomes of it. */
enum act_kind {
	ACT_PLAIN, /* passed on */
	ACT_INITIALIZE,
	ACT_INTERRUPT,
	ACT_END_SESSION,
	ACT_CANCEL_PROMPT, /* a queued prompt, by its uuid */
	ACT_MCP_SET_SERVERS,
	ACT_CHANGE,  /* passed on, and announced */
	ACT_EXECUTE, /* judged as a tool call */
	ACT_PROMPT,
	ACT_REQUEST, /* by its subtype */
	ACT_ANSWER,
	ACT_CANCEL, /* a request of the client's own */
};

/* What is announced of a change: the value of `member`, or the names of its members alone. */
enum gate_show { GATE_NOTHING, GATE_VALUE, GATE_KEYS };

struct gate_row {
	enum gate_kind kind;
	const char *name;
	size_t len;
	enum gate_least least;
	enum gate_affects affects;
	enum act_kind act;
	const char *what; /* ACT_CHANGE: what changes; ACT_EXECUTE: the tool, or NULL where `member` names it */
	const char
		*member; /* of the request or line, see act; of a GATE_MEMBER: the value that asks for nothing, or NULL */
	enum gate_show show;
};

/* All rows, *n of them. */
const struct gate_row *dialect_gate_rows(size_t *n);

#define GATE_BUCKETS 512
#define GATE_ROWS_MAX 1024

/* The rows by kind and name: what finds one, whatever the number of rows. The caller's; read-only once it is made. */
struct gate_index {
	uint16_t first[GATE_BUCKETS], next[GATE_ROWS_MAX]; /* numbers of rows, from 1 on */
	size_t longest;                                    /* name of a row */
};

void gate_index_init(struct gate_index *ix);
/* The row of a raw name without quotes; NULL: there is none. */
const struct gate_row *dialect_gate_row(const struct gate_index *ix, enum gate_kind kind, const char *name, size_t len);
/* The row of a member of `parent` (a type, a subtype, or "message"), else that of a member of all of them. */
const struct gate_row *dialect_gate_member(const struct gate_index *ix, const char *parent, size_t parent_len,
										   const char *name, size_t len);
/* The same name of a change, living as long as the program; NULL: nothing of this name changes. */
const char *dialect_gate_what(const char *what);
