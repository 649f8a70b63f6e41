/* SPDX-License-Identifier: MIT
 *
 * Check that the child survives a line. The real CLI exits at a line with an unexpected shape, and swallows some lines
 * without an answer; both would hurt all clients of the session, so such a line is refused. protocol-facts 3 has the
 * measured table; message.c calls this for lines of valid JSON.
 */
#pragma once

#include "base/error.h"
#include "dialect/message.h"

enum survive_kind { SURVIVE_BLOCKS, SURVIVE_SERVERS, SURVIVE_EVENTS };

/* Lists within the line with unchecked entries, the last one first. Zero: none. */
struct survive {
	struct survive_list {
		struct span list;
		size_t at, index; /* of the next entry */
		enum survive_kind kind;
	} lists[2];
	size_t n;
	struct span first_text; /* `text` of the first block, already checked */
	bool too_many;          /* refused for a limit on a count */
};

/* m is filled except for its text; line is the object without leading spaces. False: error has the error and
 * the correct form. True: no error so far; survive_step() checks the rest. */
bool survive_begin(struct survive *w, const struct message *m, struct span line, struct error *error);
/* Check about this many bytes more; it is over when no list is left. False as above. */
bool survive_step(struct survive *w, size_t bytes, struct error *error);
