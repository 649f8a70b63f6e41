/* SPDX-License-Identifier: MIT */
#include "dialect/dialect.h"

#include <string.h>

const struct dialect *dialect_find(const char *name) {
	for (size_t i = 0; dialect_list[i]; i++)
		if (strcmp(dialect_list[i]->name, name) == 0) return dialect_list[i];
	return NULL;
}

void dialect_put_names(struct buf *b) {
	for (size_t i = 0; dialect_list[i]; i++) buf_printf(b, "%s%s", i ? ", " : "", dialect_list[i]->name);
}

const struct dialect *dialect_opened_by(struct span line) {
	line = span_start(line, DIALECT_OPENING_BYTES);
	for (size_t i = 0; dialect_list[i]; i++)
		if (dialect_list[i]->opens && dialect_list[i]->opens(line)) return dialect_list[i];
	return dialect_default()->recognizes(line) ? dialect_default() : NULL;
}

const struct dialect *dialect_of_line(const struct dialect *d, struct span line) {
	line = span_start(line, DIALECT_OPENING_BYTES);
	if (!dialect_list[1] || d->recognizes(line)) return NULL;
	for (size_t i = 0; dialect_list[i]; i++) {
		const struct dialect *other = dialect_list[i];
		if (other != d && (other->opens ? other->opens(line) : other->recognizes(line))) return other;
	}
	return NULL;
}

void dialect_read_claim(const struct dialect *d, const struct words *w, struct dialect_claim *claim) {
	if (d->read_claim) d->read_claim(w, claim);
}

void dialect_put_built(const struct dialect *d, struct buf *b, struct span id, struct buf *body) {
	if (body->failed)
		b->failed = true;
	else
		d->put_answer(b, id, body->data);
	buf_free(body);
}
