/* SPDX-License-Identifier: MIT */
#include "dialect/dialect_turn.h"

#include <stdlib.h>

#define COST_MAX 9e9 /* USD; a larger number is no cost */

int64_t dialect_turn_nano_usd(struct span value) {
	char text[40];
	if (!value.p || value.n == 0 || value.n >= sizeof text || *value.p < '0' || *value.p > '9') return TURN_UNKNOWN;
	memcpy(text, value.p, value.n);
	text[value.n] = 0;
	double usd = strtod(text, NULL);
	return usd >= 0 && usd < COST_MAX ? (int64_t)(usd * 1e9 + 0.5) : TURN_UNKNOWN;
}
