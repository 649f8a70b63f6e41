/* SPDX-License-Identifier: MIT */
#include "base/names.h"

#include <stdlib.h>
#include <string.h>

bool names_have(const struct names *s, const char *name, size_t n) {
	struct name *found;
	HASH_FIND(hh, s->table, name, n, found);
	return found;
}

bool names_add(struct names *s, const char *name, size_t n) {
	if (names_have(s, name, n)) return true;
	struct name *fresh = malloc(sizeof *fresh + n + 1);
	if (!fresh) return false;
	fresh->n = n;
	memcpy(fresh->text, name, n);
	fresh->text[n] = 0;
	if (HASH_TRY_ADD(hh, s->table, fresh->text, n, fresh)) return true;
	free(fresh);
	return false;
}

bool names_copy(struct names *to, const struct names *from) {
	struct name *one, *next;
	HASH_ITER (hh, from->table, one, next)
		if (!names_add(to, one->text, one->n)) return false;
	return true;
}

size_t names_count(const struct names *s) {
	return HASH_COUNT(s->table);
}

void names_free(struct names *s) {
	struct name *one, *next;
	HASH_ITER (hh, s->table, one, next) {
		HASH_DELETE(hh, s->table, one);
		free(one);
	}
}
