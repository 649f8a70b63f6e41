/* SPDX-License-Identifier: MIT
 *
 * A JSON object of arrays, built in any order: elements are grouped by key, and keys are in the order of their first
 * use. {0} is an empty bundle. Keys are borrowed until the bundle is written.
 */
#pragma once

#include "base/buf.h"
#include "base/hash.h"

struct bundle {
	struct bundle_part *parts;
	struct buf lost; /* the target of writes without memory */
};

/* Return the buffer of a key's elements (raw JSON; the caller writes the commas). Never NULL; without memory the
 * buffer has `failed` set. */
struct buf *bundle_part(struct bundle *b, const char *key);
/* Append {KEY:[ELEMENTS],...}, or only the elements of all keys. */
void bundle_put(const struct bundle *b, struct buf *out);
void bundle_put_elements(const struct bundle *b, struct buf *out);
void bundle_free(struct bundle *b);
