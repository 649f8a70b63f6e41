/* SPDX-License-Identifier: MIT
 *
 * The gate: may this client send this line to the child? Decided by the table of the dialect (wire/dialect_gate.h): by
 * the type of the line, the subtype of a request, and their members; of a prompt also by its blocks, by the command
 * that it begins with and by the files that it mentions. What has no row needs an own peer and is logged once a name. A
 * name spelled with escapes has no row. Pure: reads the line, touches nothing but the set of names that were logged. No
 * errors, no allocation; time grows with the length of the line alone. Source: docs/ARCHITECTURE.md "The gate".
 */
#pragma once

#include "core/trust.h"
#include "wire/dialect_gate.h"
#include "wire/message.h"

#define GATE_SEEN_MAX 256 /* names without a row that the log has had; more are not logged */
#define GATE_THING_MAX 128

/* Owned by the router; not serialized, so that a new binary may log a name once more. */
struct gate {
	struct gate_index rows;
	uint64_t seen[GATE_SEEN_MAX];
	size_t n;
};

struct gate_verdict {
	const struct gate_row *row; /* of the line's type, of a request its subtype; never NULL, static */
	bool passes;
	char thing[GATE_THING_MAX]; /* if it does not: what needs more, ASCII, for a message or the log */
};

void gate_init(struct gate *g);
/* m: what message_check() made of a line that it took. line: its bytes, blanks before the
 * object included. */
void gate_judge(struct gate *g, enum trust who, const struct message *m, struct span line, struct gate_verdict *v);
