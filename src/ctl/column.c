/* SPDX-License-Identifier: MIT */
#include "ctl/column.h"

#include "base/paths.h"
#include "ctl/ctl.h"
#include "ctl/text.h"

#include <stdlib.h>
#include <string.h>

#define WORD_COLUMNS 200 /* as of a cell */

double column_number(const struct column *c, json_t *one) {
	json_t *value = json_object_get(one, c->member), *prompt;
	size_t i, waiting = 0;
	if (c->kind != COLUMN_WAITING)
		return json_is_array(value) ? (double)json_array_size(value) : json_number_value(value);
	json_array_foreach(value, i, prompt) {
		const char *state = ctl_str(prompt, "state", "");
		waiting += strcmp(state, "held") == 0 || strcmp(state, "sent") == 0;
	}
	return (double)waiting;
}

static void put_path(struct buf *b, const char *path) {
	_cleanup_free_ char *home = path_home();
	size_t n = home ? strlen(home) : 0;
	bool below = n > 1 && strncmp(path, home, n) == 0 && (path[n] == '/' || path[n] == 0);
	buf_printf(b, "%s%s", below ? "~" : "", below ? path + n : path);
}

/* Append the cell of one object. */
static void put(struct buf *b, const struct column *c, json_t *one) {
	json_t *value = json_object_get(one, c->member);
	const char *word = ctl_str(one, c->member, c->none ? c->none : "");
	double n = column_number(c, one);
	bool counts = c->kind == COLUMN_NUMBER || c->kind == COLUMN_WAITING || c->kind == COLUMN_SIZE;
	bool none = (counts && n <= 0) || (c->kind == COLUMN_DOLLARS && !json_is_number(value)) ||
				(c->kind == COLUMN_YES && !json_is_true(value));
	if (none && c->none) {
		buf_puts(b, c->none);
		return;
	}
	switch (c->kind) {
	case COLUMN_WORD:
		text_put_line(b, word, strlen(word), c->max ? c->max : WORD_COLUMNS);
		break;
	case COLUMN_PATH:
		put_path(b, word);
		break;
	case COLUMN_NUMBER:
	case COLUMN_WAITING:
		buf_printf(b, "%.0f", n);
		break;
	case COLUMN_OF:
		buf_printf(b, "%.0f of %lld", n, (long long)ctl_int(one, c->none));
		break;
	case COLUMN_SIZE:
		text_put_bytes(b, n > 0 ? (uint64_t)n : 0);
		break;
	case COLUMN_AGE:
		text_put_age(b, (int64_t)n);
		break;
	case COLUMN_DOLLARS:
		buf_printf(b, "$%.2f", n);
		break;
	case COLUMN_YES:
		buf_puts(b, "yes");
		break;
	case COLUMN_BACKGROUND:
		ctl_put_background(b, one);
		break;
	}
}

void column_fill(struct table *t, const struct column *columns, json_t *list, size_t most) {
	for (size_t c = 0; c < t->columns; c++) table_add(t, columns[c].head);
	for (size_t i = 0; i < most && i < json_array_size(list); i++)
		for (size_t c = 0; c < t->columns; c++) {
			struct buf b = BUF_INIT(65536);
			buf_puts(&b, "");
			put(&b, &columns[c], json_array_get(list, i));
			table_add(t, b.data);
			buf_free(&b);
		}
}

void column_print(json_t *list, const char *title, const struct column *columns, size_t n) {
	struct table t = TABLE(n);
	size_t width, height;
	if (json_array_size(list) == 0) return;
	column_fill(&t, columns, list, SIZE_MAX);
	if (table_screen(&width, &height)) t.width = width;
	printf("\n%s\n", title);
	table_print(&t, stdout);
	table_free(&t);
}

json_t *column_sorted(json_t *list, int (*compare)(const void *left, const void *right)) {
	size_t n = json_array_size(list);
	json_t *sorted = json_array(), **all = calloc(n + 1, sizeof(json_t *));
	for (size_t i = 0; all && i < n; i++) all[i] = json_array_get(list, i);
	if (all) qsort(all, n, sizeof(json_t *), compare);
	for (size_t i = 0; all && i < n; i++) json_array_append(sorted, all[i]);
	free(all);
	return sorted;
}
