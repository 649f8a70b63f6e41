/* SPDX-License-Identifier: MIT
 *
 * The text of a table before it is written, in pieces: its own bytes, and texts of other owners, which are not copied.
 * Each line is a JSON object that ends with the FNV-1a sum of the bytes before `,"sum"`. A failed call sets own.failed:
 * check it once at the end.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

#define DRAFT_SEAL_BEFORE ",\"sum\":\""
#define DRAFT_SEAL_LEN (sizeof DRAFT_SEAL_BEFORE - 1 + 16 + 2) /* ,"sum":"0123456789abcdef"} */

struct draft {
	struct buf own;
	struct draft_piece *pieces;
	size_t n, cap;
	size_t in; /* bytes of own that are in pieces */
	size_t len;
	uint64_t sum; /* of the line so far */
};

/* A part of a line that outlives the draft, with the sum of the line before it and after it. */
struct draft_part {
	char *text; /* owned by the caller; NULL: none */
	size_t n;
	uint64_t before, after;
};

void draft_init(struct draft *d);
void draft_free(struct draft *d);
/* Append null, or a JSON string; a text with invalid UTF-8 is {"hex":"..."}. */
void draft_text(struct draft *d, const char *text);
void draft_list(struct draft *d, char *const *v, size_t n);
/* Make a part of own's bytes from `at` on, which are in no piece yet, and use it in their place. False without memory:
 * they stay. */
bool draft_cut(struct draft *d, size_t at, struct draft_part *part);
/* Append the part, which must outlive the draft. Its bytes are read only if the line before it has changed. */
void draft_use(struct draft *d, struct draft_part *part);
/* End the line: an object without its closing brace. Return the length of the draft so far. */
size_t draft_end_line(struct draft *d);
void draft_repeat(struct draft *d, size_t n); /* append the first n bytes of own again */
/* Write it. Return -1 with errno on failure. */
int draft_write(const struct draft *d, int fd);

/* Write the end of a line with this sum; both have DRAFT_SEAL_LEN bytes and a NUL. */
void draft_seal(char out[DRAFT_SEAL_LEN + 1], const char *line, size_t n);
