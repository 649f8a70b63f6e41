/* SPDX-License-Identifier: MIT */
#include "base/bundle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct bundle_part {
	UT_hash_handle hh; /* by key */
	const char *key;
	struct buf elements;
};

struct buf *bundle_part(struct bundle *b, const char *key) {
	struct bundle_part *part;
	HASH_FIND_STR(b->parts, key, part);
	if (part) return &part->elements;
	part = calloc(1, sizeof *part);
	if (part && HASH_TRY_ADD(hh, b->parts, key, strlen(key), part)) {
		part->key = key;
		part->elements.max = SIZE_MAX / 4;
		return &part->elements;
	}
	free(part);
	b->lost.failed = true;
	return &b->lost;
}

static void put_part(const struct bundle_part *part, struct buf *out) {
	buf_put(out, part->elements.data, part->elements.len);
	out->failed = out->failed || part->elements.failed;
}

void bundle_put(const struct bundle *b, struct buf *out) {
	buf_putc(out, '{');
	for (const struct bundle_part *part = b->parts; part; part = part->hh.next) {
		if (part != b->parts) buf_putc(out, ',');
		buf_puts(out, part->key);
		buf_puts(out, ":[");
		put_part(part, out);
		buf_putc(out, ']');
	}
	buf_putc(out, '}');
	out->failed = out->failed || b->lost.failed;
}

void bundle_put_elements(const struct bundle *b, struct buf *out) {
	for (const struct bundle_part *part = b->parts; part; part = part->hh.next) {
		if (part != b->parts) buf_putc(out, ',');
		put_part(part, out);
	}
	out->failed = out->failed || b->lost.failed;
}

void bundle_free(struct bundle *b) {
	struct bundle_part *part, *next;
	HASH_ITER (hh, b->parts, part, next) {
		HASH_DELETE(hh, b->parts, part);
		buf_free(&part->elements);
		free(part);
	}
}
