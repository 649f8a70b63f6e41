/* SPDX-License-Identifier: MIT
 *
 * A set of names with constant-time lookup. It owns copies; {0} is an empty set.
 */
#pragma once

#include "base/hash.h"

#include <stdbool.h>

struct name {
	UT_hash_handle hh;
	size_t n;
	char text[]; /* n bytes and a NUL */
};

/* In insertion order, by hh.next. */
struct names {
	struct name *table;
};

/* Add the name unless the set has it. Return false without memory, with the set unchanged. */
bool names_add(struct names *s, const char *name, size_t n);
bool names_have(const struct names *s, const char *name, size_t n);
bool names_copy(struct names *to, const struct names *from); /* add them all; false without memory */
size_t names_count(const struct names *s);
void names_free(struct names *s);
