/* SPDX-License-Identifier: MIT
 *
 * Reads a few top-level members of one JSON line while its bytes pass in pieces of any size: nothing is kept but these
 * members, no byte is looked at twice, and a line of 64 MiB costs no memory. wire/scan.h needs the whole line; this
 * does not. Lines are trusted to be JSON, as there: strings are skipped, brackets are counted, nothing else is checked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GLANCE_TEXT 48 /* longer keys and values are cut: they are none that anybody looks for */

struct glance {
	char type[GLANCE_TEXT], subtype[GLANCE_TEXT]; /* raw contents, empty until they have come */
	bool has_uuid, is_error;
	/* private: where in the line we are */
	bool in_string, escaped, in_key;
	uint32_t depth;
	char key[GLANCE_TEXT], text[GLANCE_TEXT];
	size_t text_len;
};

void glance_start(struct glance *g); /* before each line */
void glance_feed(struct glance *g, const char *p, size_t n);
/* What the line is can be said: its type has come, and its subtype where the type has one that matters (system). */
bool glance_knows(const struct glance *g);
bool glance_is(const struct glance *g, const char *type, const char *subtype); /* subtype NULL: any */
