/* SPDX-License-Identifier: MIT */
#include "dialect/memo.h"

#include "wire/valid.h"

#include <stdlib.h>
#include <string.h>

static struct memo_value **place_of(struct memo *m, const char *name) {
	struct memo_value **at = &m->first;
	while (*at && strcmp((*at)->name, name) != 0) at = &(*at)->next;
	return at;
}

static void drop(struct memo_value **at) {
	struct memo_value *one = *at;
	*at = one->next;
	free(one);
}

static void add(struct memo_value **at, const char *name, struct span json) {
	size_t n = strlen(name) + 1;
	struct memo_value *one = malloc(sizeof *one + n + json.n + 1);
	if (!one) return;
	*at = one;
	one->next = NULL;
	one->json = one->name + n;
	memcpy(one->name, name, n);
	memcpy(one->json, json.p, json.n);
	one->json[json.n] = 0;
}

void memo_set(struct memo *m, const char *name, struct span json) {
	struct memo_value **at = place_of(m, name);
	if (*at && json.p && span_same(json, span_of((*at)->json))) return;
	bool keeps = json.p && json.n <= MEMO_KEPT && valid_span(json);
	if (*name != MEMO_BRIEF && (*at || keeps)) m->version++;
	if (*at) drop(at);
	if (keeps) add(place_of(m, name), name, json);
}

struct span memo_get(const struct memo *m, const char *name) {
	const struct memo_value *one = m->first;
	while (one && strcmp(one->name, name) != 0) one = one->next;
	return span_of(one ? one->json : NULL);
}

void memo_free(struct memo *m) {
	if (m->first) m->version++;
	while (m->first) drop(&m->first);
}

char *memo_text(const struct memo *m, bool all) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	for (const struct memo_value *one = m->first; one; one = one->next) {
		if (!all && *one->name == MEMO_BRIEF) continue;
		buf_printf(&b, "%c\"%s\":", b.len ? ',' : '{', one->name);
		buf_puts(&b, one->json);
	}
	if (!b.len) return NULL;
	buf_putc(&b, '}');
	return buf_steal(&b, NULL);
}

void memo_restore(struct memo *m, const char *text) {
	struct span all = span_of(text), key, value;
	if (!text || !valid_span(all)) return;
	for (size_t at = 0; span_next_member(all, &at, &key, &value);) {
		char name[64];
		struct span inside = span_content(key);
		if (inside.n >= sizeof name) continue;
		memcpy(name, inside.p, inside.n);
		name[inside.n] = 0;
		memo_set(m, name, value);
	}
}
