/* SPDX-License-Identifier: MIT
 *
 * Find the lines that answer a prompt. The child names the uuids of a turn's prompts in `result` and in the turn's
 * first lines. Prompts may be merged into one turn and turns may start without a prompt, so lines are never matched by
 * order. CLI 2.1.197 names none: there the isReplay line of the prompt marks its turn. Source:
 * docs/protocol-facts.md 2.3, 2.4; contract 8.
 */
#pragma once

#include "dialect/envelope.h"
#include "plenum/client.h"
#include "wire/scan.h"

#include <stdbool.h>

struct turn {
	char uuid[PLENUM_UUID_SIZE];
	bool ours; /* the next lines belong to the turn of the prompt */
};

/* Return true if this line is the result of the prompt. */
bool turn_feed(struct turn *t, struct span line, const struct envelope *e);
