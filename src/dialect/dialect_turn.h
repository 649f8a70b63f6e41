/* SPDX-License-Identifier: MIT
 *
 * The facts of the end of a turn.
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

/* Read an amount of USD, a JSON number, in 1e-9 USD; TURN_UNKNOWN if it is none, or too large. */
int64_t dialect_turn_nano_usd(struct span value);
