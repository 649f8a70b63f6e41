/* SPDX-License-Identifier: MIT
 *
 * Reads a few top-level members of one JSON line while its bytes pass in pieces of any size: only these members are
 * stored, each byte is read once, and a line of 64 MiB costs no memory. wire/scan.h needs the whole line; this does
 * not. Lines are trusted to be JSON, as there: strings are skipped, brackets are counted, nothing else is checked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GLANCE_TEXT 48 /* longer keys and values are cut: none of them is needed */

struct glance {
	char type[GLANCE_TEXT], subtype[GLANCE_TEXT]; /* raw contents, empty until read */
	bool has_uuid, is_error;
	/* private: the position in the line */
	bool in_string, escaped, in_key;
	uint32_t depth;
	char key[GLANCE_TEXT], text[GLANCE_TEXT];
	size_t text_len;
};

void glance_start(struct glance *g); /* before each line */
void glance_feed(struct glance *g, const char *p, size_t n);
/* Return true if the line is identified: its type was read, and its subtype if that matters (system). */
bool glance_knows(const struct glance *g);
bool glance_is(const struct glance *g, const char *type, const char *subtype); /* subtype NULL: any */
