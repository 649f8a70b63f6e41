/* SPDX-License-Identifier: MIT
 *
 * The gate decides if a client may send a line to the child. It uses the table of the dialect (dialect/dialect_gate.h):
 * by the type of the line, the subtype of a request, and their members; for a prompt also by its blocks, the command at
 * its beginning and the files that it mentions. A name without a row needs an own peer and is logged once. A name
 * spelled with escapes has no row. Pure: reads the line, changes only the set of logged names. No errors, no
 * allocation; time is linear in the length of the line. Source: docs/contract.md 14.
 */
#pragma once

#include "core/trust.h"
#include "dialect/dialect.h"

#define GATE_SEEN_MAX 256 /* logged names without a row; later ones are not logged */
#define GATE_THING_MAX 128

/* One for each dialect. Owned by the router; not serialized: a new binary may log a name once more. */
struct gate {
	const struct dialect *dialect;
	struct gate_index rows;
	bool commands; /* prompts have commands and mentions: there are rows for them */
	uint64_t seen[GATE_SEEN_MAX];
	size_t n;
};

struct gate_verdict {
	const struct gate_row *row; /* of the line's type or the request's subtype; never NULL, static */
	bool passes;
	char thing[GATE_THING_MAX]; /* if refused: the reason, ASCII, for a message or the log */
};

void gate_init(struct gate *g, const struct dialect *d);
/* m: the result of message_check() for an accepted line. line: its bytes, including spaces before the object. */
void gate_judge(struct gate *g, enum trust who, const struct message *m, struct span line, struct gate_verdict *v);
/* Return the gate of the client's dialect. */
struct gate *gate_of(const struct client *c);
