/* SPDX-License-Identifier: MIT
 *
 * Which lines answer one prompt. The child names the uuids of the prompts that a turn answers, in `result` and in the
 * turn's first lines; prompts may be merged into one turn and turns may start that nobody asked for, so nothing is ever
 * matched by order. An old CLI (2.1.197) names none: there the isReplay line of the prompt says that the running turn
 * took it in. Source: PROTOCOL 2.3, 2.4; DESIGN 8.
 */
#pragma once

#include "plenum/client.h"
#include "wire/scan.h"

#include <stdbool.h>

struct turn {
	char uuid[PLENUM_UUID_SIZE];
	bool ours; /* what comes now belongs to the turn of the prompt */
};

/* True: this line is the result of the prompt. */
bool turn_feed(struct turn *t, struct span line, const struct envelope *e);
