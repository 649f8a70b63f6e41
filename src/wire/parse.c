/* SPDX-License-Identifier: MIT */
#include "wire/parse.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

#define BASE ((size_t)64 * 1024)

/* A container with the slot it stands in, a value with the slot it may make grow, a member with its key, a string. Each
 * byte may be copied to the buffer of a token, which doubles, and to a string. */
static size_t cost(char c) {
	switch (c) {
	case '{':
		return 256;
	case '[':
		return 160;
	case ',':
		return 64;
	case ':':
		return 192;
	case '"':
		return 32;
	default:
		return 0;
	}
}

size_t parse_needs(const char *text, size_t n) {
	size_t sum = BASE + 4 * n;
	for (size_t i = 0; i < n; i++) sum += cost(text[i]);
	return sum;
}

static void *need(size_t n) {
	void *p = malloc(n);
	if (!p) log_no_memory(); /* cannot be: it was there */
	return p;
}

json_t *parse_json(const char *text, size_t n, size_t flags, struct parse_error *error) {
	json_error_t why;
	void *volatile probe = malloc(parse_needs(text, n)); /* volatile: a compiler may remove an unused allocation */
	*error = (struct parse_error){.no_memory = !probe};
	free(probe);
	if (error->no_memory) {
		snprintf(error->text, sizeof error->text, "out of memory");
		return NULL;
	}
	json_set_alloc_funcs(need, free);
	json_t *value = json_loadb(text, n, flags, &why);
	json_set_alloc_funcs(malloc, free);
	if (!value) snprintf(error->text, sizeof error->text, "%s", why.text);
	return value;
}
