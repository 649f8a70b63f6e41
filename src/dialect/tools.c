/* SPDX-License-Identifier: MIT */
#include "dialect/tools.h"

#include <string.h>

const struct tool_use *tools_uses(const struct dialect_tools *t, const char *tool, size_t length, size_t *n) {
	const struct tool_use *first = NULL;
	*n = 0;
	for (size_t i = 0; t && i < t->n_uses; i++) {
		if (strlen(t->uses[i].tool) != length || memcmp(t->uses[i].tool, tool, length) != 0) continue;
		if (!first) first = &t->uses[i];
		++*n;
	}
	return first;
}

bool tools_know(const struct dialect_tools *t, const char *tool) {
	size_t n;
	for (size_t i = 0; t && i < t->n_others; i++)
		if (strcmp(t->others[i], tool) == 0) return true;
	return tools_uses(t, tool, strlen(tool), &n) != NULL;
}

bool tools_choose(const struct dialect_tools *t, const char *tool) {
	for (const char *const *c = t ? t->choices : NULL; c && *c; c++)
		if (strcmp(*c, tool) == 0) return true;
	return false;
}
