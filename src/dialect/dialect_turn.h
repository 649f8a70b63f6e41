/* SPDX-License-Identifier: MIT
 *
 * Facts of a turn, read from lines of the child: the result, and the tool calls in messages. Source: docs/
 * protocol-facts.md 2.3, 2.4.
 */
#pragma once

#include "wire/scan.h"

#define TURN_UNKNOWN (-1) /* a number that the child did not report */

enum turn_outcome {
	TURN_SUCCESS,
	TURN_ERROR,
	TURN_LIMIT, /* of turns, of cost, of retries */
	TURN_INTERRUPTED,
};

struct turn_result {
	enum turn_outcome outcome;
	int64_t ms;
	int64_t nano_usd;                               /* of all turns of this child; 1e-9 USD */
	int64_t input, output, cache_read, cache_write; /* tokens of this turn */
	struct span text;                               /* the answer, or the first error; raw JSON string, may be absent */
};

/* Read a `result` line. */
struct turn_result dialect_turn_result(struct span line);

/* Iterate over the tool calls and the results of tools in a message: start with *at = 0. *id: the call's, a raw string;
 * *name: of a call, a raw string; absent: this is a result. */
bool dialect_turn_next_tool(struct span message, size_t *at, struct span *id, struct span *name);
