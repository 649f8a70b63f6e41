/* SPDX-License-Identifier: MIT */
#include "ctl/always.h"

#include "base/macros.h"
#include "ctl/text.h"

#include <string.h>

static const char *text_of(const json_t *object, const char *key) {
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "?";
}

static void put_value(struct buf *b, const char *text) {
	text_put_line(b, text, strlen(text), SIZE_MAX / 8); /* whole: all of it would be remembered */
}

/* Where it is saved: this decides how long it counts, and for whom. */
static void put_place(struct buf *b, const json_t *one) {
	static const char *const places[][2] = {
		{"session", "this session"},
		{"localSettings", ".claude/settings.local.json"},
		{"projectSettings", ".claude/settings.json"},
		{"userSettings", "~/.claude/settings.json"},
	};
	const char *place = text_of(one, "destination");
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (strcmp(place, places[i][0]) == 0) place = places[i][1];
	buf_puts(b, " (");
	put_value(b, place);
	buf_putc(b, ')');
}

static void put_rules(struct buf *b, const json_t *one) {
	const json_t *rules = json_object_get(one, "rules"), *rule;
	put_value(b, text_of(one, "behavior"));
	for (size_t i = 0; (rule = json_array_get(rules, i)); i++) {
		const char *content = json_string_value(json_object_get(rule, "ruleContent"));
		buf_puts(b, i ? ", " : " ");
		put_value(b, text_of(rule, "toolName"));
		if (!content) continue;
		buf_putc(b, '(');
		put_value(b, content);
		buf_putc(b, ')');
	}
}

static void put_one(struct buf *b, const json_t *one) {
	const char *type = text_of(one, "type");
	if (strcmp(type, "addRules") == 0) {
		put_rules(b, one);
	} else if (strcmp(type, "replaceRules") == 0) {
		buf_puts(b, "only ");
		put_rules(b, one);
	} else if (strcmp(type, "removeRules") == 0) {
		buf_puts(b, "no longer ");
		put_rules(b, one);
	} else if (strcmp(type, "setMode") == 0) {
		buf_puts(b, "mode ");
		put_value(b, text_of(one, "mode"));
	} else if (strcmp(type, "addDirectories") == 0 || strcmp(type, "removeDirectories") == 0) {
		buf_puts(b, *type == 'a' ? "directories" : "no longer directories");
		const json_t *all = json_object_get(one, "directories");
		for (size_t i = 0; i < json_array_size(all); i++) {
			const char *path = json_string_value(json_array_get(all, i));
			buf_puts(b, i ? ", " : " ");
			put_value(b, path ? path : "?");
		}
	} else {
		/* A kind that is not known here is shown as it came: it would be remembered all the same. */
		char *text = json_dumps(one, JSON_COMPACT | JSON_ENCODE_ANY);
		put_value(b, text ? text : "?");
		free(text);
		return;
	}
	put_place(b, one);
}

void always_put(struct buf *b, const json_t *list) {
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (i) buf_puts(b, "; ");
		put_one(b, json_array_get(list, i));
	}
}
