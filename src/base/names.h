/* SPDX-License-Identifier: MIT
 *
 * A set of names, which finds one in the same time however many it has. It owns copies of them; {0} is an empty one.
 */
#pragma once

#include "base/hash.h"

#include <stdbool.h>

struct name {
	UT_hash_handle hh;
	size_t n;
	char text[]; /* with a NUL behind its n bytes */
};

/* In the order in which they were added, by hh.next. */
struct names {
	struct name *table;
};

/* A name that is there already is not added again. Return false without memory; the set is as it was. */
bool names_add(struct names *s, const char *name, size_t n);
bool names_have(const struct names *s, const char *name, size_t n);
size_t names_count(const struct names *s);
void names_free(struct names *s);
