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

/* A value that is put in needs its key before it and a comma behind it. */
struct chunk splice_string(struct span body, struct span old, const char *key, const char *text) {
	const char *from = old.p ? old.p : (const char *)memchr(body.p, '{', body.n) + 1, *to = from + old.n;
	const char *words[] = {old.p ? "" : "\"", old.p ? "" : key, old.p ? "\"" : "\":\"", text, old.p ? "\"" : "\","};
	struct chunk parts[ARRAY_SIZE(words) + 3] = {{NULL, body.p, (size_t)(from - body.p)}};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) parts[i + 1] = (struct chunk){NULL, words[i], strlen(words[i])};
	parts[ARRAY_SIZE(words) + 1] = (struct chunk){NULL, to, (size_t)(body.p + body.n - to)};
	parts[ARRAY_SIZE(words) + 2] = (struct chunk){NULL, "\n", 1};
	return chunk_join(parts, ARRAY_SIZE(parts));
}

struct chunk splice_edits(struct span body, const struct splice_edit *edits, size_t n) {
	struct chunk parts[(1 + SPLICE_PARTS) * SPLICE_EDITS + 2];
	size_t k = 0;
	const char *from = body.p;
	for (size_t i = 0; i < n; i++) {
		parts[k++] = (struct chunk){NULL, from, (size_t)(edits[i].at - from)};
		for (size_t m = 0; m < SPLICE_PARTS; m++)
			parts[k++] = (struct chunk){NULL, edits[i].parts[m].p, edits[i].parts[m].n};
		from = edits[i].at + edits[i].cut;
	}
	parts[k++] = (struct chunk){NULL, from, (size_t)(body.p + body.n - from)};
	parts[k++] = CHUNK_STATIC("\n");
	return chunk_join(parts, k);
}
