/* SPDX-License-Identifier: MIT
 *
 * A JSON object of arrays that is written in any order: what is put under one key comes together, and the keys come in
 * the order of their first use. {0} is an empty one. Keys are borrowed until the bundle is written.
 */
#pragma once

#include "base/buf.h"
#include "base/hash.h"

struct bundle {
	struct bundle_part *parts;
	struct buf lost; /* what is written without memory */
};

/* The elements under a key, raw JSON; the caller puts the commas. Never NULL; without memory it has failed. */
struct buf *bundle_part(struct bundle *b, const char *key);
/* Append {KEY:[ELEMENTS],...}, or the elements alone of all keys. */
void bundle_put(const struct bundle *b, struct buf *out);
void bundle_put_elements(const struct bundle *b, struct buf *out);
void bundle_free(struct bundle *b);
