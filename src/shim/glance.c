/* SPDX-License-Identifier: MIT */
#include "shim/glance.h"

#include "base/macros.h"

#include <string.h>

void glance_start(struct glance *g) {
	*g = (struct glance){0};
}

static void keep(struct glance *g, const char *p, size_t n) {
	if (g->depth != 1) return;
	n = MIN(n, sizeof g->text - 1 - g->text_len);
	memcpy(g->text + g->text_len, p, n);
	g->text_len += n;
	g->text[g->text_len] = 0;
}

static void clear(struct glance *g) {
	g->text_len = 0;
	g->text[0] = 0;
}

/* A member of the top level is complete: key and text hold it. */
static void settle(struct glance *g) {
	if (strcmp(g->key, "type") == 0) memcpy(g->type, g->text, sizeof g->type);
	if (strcmp(g->key, "subtype") == 0) memcpy(g->subtype, g->text, sizeof g->subtype);
	if (strcmp(g->key, "uuid") == 0) g->has_uuid = g->text_len > 0 && strcmp(g->text, "null") != 0;
	if (strcmp(g->key, "is_error") == 0) g->is_error = strcmp(g->text, "true") == 0;
	g->key[0] = 0;
	clear(g);
}

static void end_string(struct glance *g) {
	g->in_string = false;
	if (g->depth != 1) return;
	if (!g->in_key) {
		settle(g);
		return;
	}
	memcpy(g->key, g->text, sizeof g->key);
	g->in_key = false;
	clear(g);
}

static const char *in_string(struct glance *g, const char *p, const char *end) {
	const char *from = p;
	if (g->escaped) {
		g->escaped = false;
		p++;
	}
	while (p < end && *p != '"' && *p != '\\') p++;
	if (p < end && *p == '\\') {
		g->escaped = true;
		p++;
		keep(g, from, (size_t)(p - from));
		return p;
	}
	keep(g, from, (size_t)(p - from));
	if (p == end) return p;
	end_string(g);
	return p + 1;
}

static void outside(struct glance *g, char c) {
	if (c == '"') {
		g->in_string = true;
		if (g->depth == 1) clear(g);
	} else if (c == '{' || c == '[') {
		g->in_key = g->depth++ == 0;
	} else if (c == '}' || c == ']' || c == ',') {
		bool member = g->depth == 1 && c != ']';
		if (member) settle(g); /* a number, true, false or null ends here */
		if (member) g->in_key = true;
		if (c != ',' && g->depth) g->depth--;
	} else if (c != ' ' && c != ':' && c != '\t' && c != '\r') {
		keep(g, &c, 1);
	}
}

void glance_feed(struct glance *g, const char *p, size_t n) {
	const char *end = p + n;
	while (p < end) {
		if (g->in_string)
			p = in_string(g, p, end);
		else
			outside(g, *p++);
	}
}

bool glance_knows(const struct glance *g) {
	return g->type[0] && (g->subtype[0] || strcmp(g->type, "system") != 0);
}

bool glance_is(const struct glance *g, const char *type, const char *subtype) {
	return strcmp(g->type, type) == 0 && (!subtype || strcmp(g->subtype, subtype) == 0);
}
