/* SPDX-License-Identifier: MIT */
#include "wire/splice.h"

#include "base/macros.h"

#include <string.h>

struct span splice_body(struct chunk line) {
	size_t n = line.len;
	while (n && (line.data[n - 1] == '\n' || line.data[n - 1] == '\r')) n--;
	return (struct span){line.data, n};
}

struct chunk splice_line(struct chunk line, struct span body) {
	if (body.p == line.data && body.n + 1 == line.len && line.data[body.n] == '\n') return chunk_ref(line);
	const struct chunk parts[] = {{NULL, body.p, body.n}, CHUNK_STATIC("\n")};
	return chunk_join(parts, ARRAY_SIZE(parts));
}

struct chunk splice_replace(const char *p, size_t n, struct span old, const char *text, size_t len) {
	size_t before = (size_t)(old.p - p);
	const struct chunk parts[] = {{NULL, p, before}, {NULL, text, len}, {NULL, old.p + old.n, n - before - old.n}};
	return chunk_join(parts, ARRAY_SIZE(parts));
}

/* A value that is put in needs its key before it, and a comma behind it if another member follows. */
struct splice_edit splice_string(struct span body, struct span old, const char *key, const char *text) {
	static const struct span quote = {"\"", 1};
	if (old.p) return (struct splice_edit){old.p, old.n, {quote, span_of(text), quote}};
	const char *at = (const char *)memchr(body.p, '{', body.n) + 1;
	struct span rest = span_skip_blanks((struct span){at, (size_t)(body.p + body.n - at)});
	struct span end = rest.n && *rest.p == '}' ? quote : (struct span){"\",", 2};
	return (struct splice_edit){at, 0, {quote, span_of(key), {"\":\"", 3}, span_of(text), end}};
}

void splice_add(struct splice_edit *edits, size_t *n, struct splice_edit one) {
	size_t i = (*n)++;
	for (; i && edits[i - 1].at > one.at; i--) edits[i] = edits[i - 1];
	edits[i] = one;
}

/* Return a piece of this chunk, borrowed; of bytes that are not in it, without its block. */
static struct chunk piece(struct chunk of, const char *p, size_t n) {
	bool within = of.data && p >= of.data && p + n <= of.data + of.len;
	return (struct chunk){within ? of.block : NULL, p, n};
}

struct rope splice_edits(struct chunk line, struct span body, const struct splice_edit *edits, size_t n,
						 struct chunk other) {
	struct chunk parts[(1 + SPLICE_PARTS) * SPLICE_EDITS + 2];
	size_t k = 0;
	const char *from = body.p, *end = body.p + body.n;
	bool ended = body.n && end[-1] == '\n';
	for (size_t i = 0; i < n; i++) {
		parts[k++] = piece(line, from, (size_t)(edits[i].at - from));
		for (size_t m = 0; m < SPLICE_PARTS; m++) parts[k++] = piece(other, edits[i].parts[m].p, edits[i].parts[m].n);
		from = edits[i].at + edits[i].cut;
	}
	if (!ended && end < line.data + line.len && *end == '\n') ended = ++end; /* of the same piece */
	parts[k++] = piece(line, from, (size_t)(end - from));
	if (!ended) parts[k++] = CHUNK_STATIC("\n");
	return rope_make(parts, k);
}
