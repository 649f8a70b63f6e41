/* SPDX-License-Identifier: MIT
 *
 * What the child survives. The real CLI exits at a line whose shape it does not expect, and some lines it swallows
 * without ever answering; both would hurt everybody on the session, so such a line is refused before it gets there.
 * The table of what was measured is PROTOCOL 3; message.c calls this for lines that are valid JSON already.
 */
#pragma once

#include "wire/message.h"

enum survive_kind { SURVIVE_BLOCKS, SURVIVE_SERVERS, SURVIVE_EVENTS };

/* Lists within the line whose entries are still to be checked, the last one first. Zero: there are none. */
struct survive {
	struct survive_list {
		struct span list;
		size_t at, index; /* of its next entry */
		enum survive_kind kind;
	} lists[2];
	size_t n;
	struct span first_text; /* `text` of the first block, which was checked */
	bool too_many;          /* refused for a limit on a count */
};

/* m is filled but for its text, line is the object without blanks before it. False: error[0..size) says what is wrong
 * and what to write instead. True: so far it is good, survive_step() checks the rest. */
bool survive_begin(struct survive *w, const struct message *m, struct span line, char *error, size_t size);
/* About so many bytes further; it is over when no list is left. False as above. */
bool survive_step(struct survive *w, size_t bytes, char *error, size_t size);
