/* SPDX-License-Identifier: MIT */
#include "ctl/form.h"

#include "base/macros.h"
#include "base/str.h"
#include "ctl/text.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

#define KIND_MAX 1000

/* --- Fields ------------------------------------------------------------------------------------------------------- */

static size_t count(struct span list) {
	struct span one;
	size_t n = 0;
	for (size_t at = 0; span_is_array(list) && span_next(list, &at, &one);) n++;
	return n;
}

/* A question of a tool: its text is its name if it has no other. */
static void read_question(struct span one, bool by_text, struct form_field *f) {
	bool several = span_is_true(span_member(one, "multiSelect"));
	f->title = span_member(one, "question");
	f->key = by_text ? f->title : span_member(one, "id");
	f->options = span_member(one, "options");
	f->required = true;
	f->secret = span_is_true(span_member(one, "isSecret"));
	f->free = by_text || !count(f->options) || span_is_true(span_member(one, "isOther"));
	f->type = !span_is_string(f->key) ? FORM_UNKNOWN
			  : !count(f->options)    ? FORM_TEXT
			  : several               ? FORM_CHOICES
									  : FORM_CHOICE;
}

/* Find the options of a property, or of the items of one. */
static bool read_options(struct span property, struct form_field *f) {
	static const char *const members[] = {"enum", "oneOf", "anyOf"};
	for (size_t i = 0; i < ARRAY_SIZE(members) && !f->options.p; i++) {
		struct span list = span_member(property, members[i]), one = span_element(list, 0);
		bool titled = span_member(one, "const").p;
		if (count(list) && (i == 0 || titled)) f->options = list;
	}
	f->names = span_member(property, "enumNames");
	return f->options.p;
}

static enum form_type type_of(struct span property, struct form_field *f) {
	static const struct {
		const char *name;
		enum form_type type;
	} types[] = {{"string", FORM_TEXT}, {"number", FORM_NUMBER}, {"integer", FORM_INTEGER}, {"boolean", FORM_BOOLEAN}};
	struct span type = span_member(property, "type");
	if (span_equals(type, "array"))
		return read_options(span_member(property, "items"), f) ? FORM_CHOICES : FORM_UNKNOWN;
	if (!span_equals(type, "object") && read_options(property, f)) return FORM_CHOICE;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (span_equals(type, types[i].name)) return types[i].type;
	return FORM_UNKNOWN;
}

static void read_property(struct span form, struct span key, struct span property, struct form_field *f) {
	struct span required = span_member(form, "required"), one;
	f->key = key;
	f->schema = property;
	f->title = span_member(property, "title");
	if (!span_is_string(f->title)) f->title = key;
	f->preset = span_member(property, "default");
	if (span_same(f->preset, span_of("null"))) f->preset = SPAN_NONE;
	for (size_t at = 0; span_is_array(required) && span_next(required, &at, &one);) f->required |= span_same(one, key);
	f->type = type_of(property, f);
}

bool form_read(const struct speech_ask *ask, size_t n, struct form_field *f) {
	struct span all = span_member(ask->schema, "properties"), key, value;
	*f = (struct form_field){0};
	if (ask->questions.p) {
		struct span one = span_element(ask->questions, n);
		if (one.p) read_question(one, ask->tool.p, f);
		return one.p;
	}
	for (size_t at = 0; span_next_member(all, &at, &key, &value);) {
		if (n--) continue;
		read_property(ask->schema, key, value, f);
		return true;
	}
	return false;
}

char *form_unknown(const struct speech_ask *ask) {
	struct form_field f;
	for (size_t n = 0; form_read(ask, n, &f); n++)
		if (f.type == FORM_UNKNOWN) return text_value(f.title, 60);
	return NULL;
}

bool form_needs_values(const struct speech_ask *ask) {
	struct form_field f;
	for (size_t n = 0; form_read(ask, n, &f); n++)
		if (f.required) return true;
	return false;
}

/* --- Options ------------------------------------------------------------------------------------------------------ */

struct option {
	struct span value, name, about;
};

static struct option option_at(const struct form_field *f, size_t n) {
	struct span one = span_element(f->options, n), label = span_member(one, "label");
	struct option o = {.value = one, .name = span_element(f->names, n)};
	if (span_is_object(one)) {
		o.value = label.p ? label : span_member(one, "const");
		o.name = label.p ? label : span_member(one, "title");
		o.about = span_member(one, "description");
	}
	if (!span_is_string(o.name)) o.name = o.value;
	return o;
}

static json_t *load(struct span value) {
	return value.p ? json_loadb(value.p, value.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
}

/* Return the number of the option with this name or value, from 1; 0: none. */
static size_t find_option(const struct form_field *f, const char *text) {
	for (size_t n = 0; n < count(f->options); n++) {
		struct option o = option_at(f, n);
		_cleanup_free_ char *name = text_value(o.name, SIZE_MAX / 8), *value = text_value(o.value, SIZE_MAX / 8);
		if ((name && strcasecmp(name, text) == 0) || (value && strcasecmp(value, text) == 0)) return n + 1;
	}
	return 0;
}

/* Append it, once. */
static bool add_option(json_t *list, const struct form_field *f, size_t number, char **why) {
	json_t *value = load(option_at(f, number - 1).value), *one;
	bool again = false;
	size_t i;
	if (!value) *why = str_printf("%zu: this choice cannot be read", number);
	json_array_foreach(list, i, one) again |= json_equal(one, value);
	if (!again) return value && json_array_append_new(list, value) == 0;
	json_decref(value);
	return true;
}

/* Append the options of the numbers. False: *why is set. */
static bool add_numbers(json_t *list, const struct form_field *f, const char *text, char **why) {
	size_t n = count(f->options);
	uint64_t number;
	for (const char *p = text + strspn(text, " ,"); *p; p += strspn(p, " ,")) {
		size_t len = strcspn(p, " ,");
		_cleanup_free_ char *word = strndup(p, len);
		bool good = word && str_u64(word, 1, n, &number);
		if (!good) number = word ? find_option(f, word) : 0;
		if (!number) {
			*why = str_printf("%s: is none of the numbers (1 to %zu)", word ? word : "?", n);
			return false;
		}
		if (json_array_size(list) && f->type != FORM_CHOICES) {
			*why = strdup("only one can be chosen");
			return false;
		}
		if (!add_option(list, f, (size_t)number, why)) return false;
		p += len;
	}
	if (!json_array_size(list)) *why = strdup("a number is needed");
	return json_array_size(list);
}

/* --- Valid input -------------------------------------------------------------------------------------------------- */

/* A pattern of the schema is shown, and checked by the program that has asked. */
static const struct {
	const char *format, *shape, *words;
} formats[] = {
	{"email", "?*@?*", "an email address"},
	{"uri", "?*:?*", "a URI"},
	{"date", "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]", "a date such as 2025-12-31"},
	{"date-time", "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]*",
	 "a time such as 2025-12-31T23:59:00Z"},
};

static size_t format_of(const struct form_field *f) {
	size_t i = 0;
	while (i < ARRAY_SIZE(formats) && !span_equals(span_member(f->schema, "format"), formats[i].format)) i++;
	return i;
}

static void put_range(struct buf *b, const struct form_field *f, const char *low, const char *high, const char *unit) {
	struct span min = span_member(f->schema, low), max = span_member(f->schema, high);
	if (span_same(min, span_of("null"))) min = SPAN_NONE;
	if (span_same(max, span_of("null"))) max = SPAN_NONE;
	if (min.p && max.p)
		buf_printf(b, ", %.*s to %.*s%s", (int)min.n, min.p, (int)max.n, max.p, unit);
	else if (min.p || max.p)
		buf_printf(b, ", at %s %.*s%s", min.p ? "least" : "most", (int)(min.p ? min : max).n, (min.p ? min : max).p,
				   unit);
}

/* Append the valid input in words. */
static void put_kind(struct buf *b, const struct form_field *f) {
	size_t format = format_of(f);
	_cleanup_free_ char *pattern = text_value(span_member(f->schema, "pattern"), 100);
	switch (f->type) {
	case FORM_NUMBER:
	case FORM_INTEGER:
		buf_puts(b, f->type == FORM_NUMBER ? "a number" : "a whole number");
		put_range(b, f, "minimum", "maximum", "");
		break;
	case FORM_BOOLEAN:
		buf_puts(b, "yes or no");
		break;
	case FORM_CHOICE:
		buf_puts(b, "one of these");
		break;
	case FORM_CHOICES:
		buf_puts(b, "some of these");
		put_range(b, f, "minItems", "maxItems", "");
		break;
	default:
		buf_puts(b, format < ARRAY_SIZE(formats) ? formats[format].words : "text");
		put_range(b, f, "minLength", "maxLength", " characters");
		if (pattern && *pattern) buf_printf(b, ", by the pattern %s", pattern);
		break;
	}
}

/* A double does not have every whole number above 2^53. */
static bool is_more(const json_t *a, const json_t *b) {
	if (json_is_integer(a) && json_is_integer(b)) return json_integer_value(a) > json_integer_value(b);
	return json_is_number(a) && json_is_number(b) && json_number_value(a) > json_number_value(b);
}

static bool is_within(const struct form_field *f, const char *low, const char *high, const json_t *value) {
	json_t *min = load(span_member(f->schema, low)), *max = load(span_member(f->schema, high));
	bool within = !is_more(min, value) && !is_more(value, max);
	json_decref(min);
	json_decref(max);
	return within;
}

static bool counts(const struct form_field *f, const char *low, const char *high, size_t n) {
	json_t *number = json_integer((json_int_t)n);
	bool within = is_within(f, low, high, number);
	json_decref(number);
	return within;
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

static size_t characters(const char *text) {
	size_t n = 0;
	for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static json_t *text_of(const struct form_field *f, const char *text) {
	size_t format = format_of(f);
	if (format < ARRAY_SIZE(formats) && fnmatch(formats[format].shape, text, 0) != 0) return NULL;
	return counts(f, "minLength", "maxLength", characters(text)) ? json_string(text) : NULL;
}

static json_t *number_of(const struct form_field *f, const char *text) {
	json_t *value = load(span_of(text));
	bool good = f->type == FORM_INTEGER ? json_is_integer(value) : json_is_number(value);
	if (good && is_within(f, "minimum", "maximum", value)) return value;
	json_decref(value);
	return NULL;
}

static json_t *boolean_of(const char *text) {
	static const char *const words[][2] = {{"y", "n"}, {"yes", "no"}, {"true", "false"}};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (int no = 0; no < 2; no++)
			if (strcasecmp(text, words[i][no]) == 0) return json_boolean(!no);
	return NULL;
}

/* Numbers of the options, or the name of one; or own words. */
static json_t *choice_of(const struct form_field *f, const char *text, char **why) {
	size_t named = text[strspn(text, "0123456789, ")] ? find_option(f, text) : 0;
	bool words = f->free && text[strspn(text, "0123456789, ")];
	json_t *list = json_array(), *value = NULL;
	if (words)
		value = json_string(text);
	else if ((named ? add_option(list, f, named, why) : add_numbers(list, f, text, why)) && f->type == FORM_CHOICE)
		value = json_incref(json_array_get(list, 0));
	else if (!*why && counts(f, "minItems", "maxItems", json_array_size(list)))
		value = json_incref(list);
	json_decref(list);
	return value;
}

json_t *form_value(const struct form_field *f, const char *text, char **why) {
	*why = NULL;
	if (!text[strspn(text, " \t")]) {
		json_t *preset = load(f->preset);
		if (!preset && f->required) *why = strdup("an answer is needed");
		return preset;
	}
	const char *end = text + strlen(text);
	if (!f->free) {
		text += strspn(text, " \t");
		while (strchr(" \t", end[-1])) end--;
	}
	_cleanup_free_ char *word = strndup(text, (size_t)(end - text));
	json_t *value = !word                                               ? NULL
					: f->type == FORM_TEXT                              ? text_of(f, word)
					: f->type == FORM_NUMBER || f->type == FORM_INTEGER ? number_of(f, word)
					: f->type == FORM_BOOLEAN                           ? boolean_of(word)
					: f->type == FORM_CHOICE || f->type == FORM_CHOICES ? choice_of(f, word, why)
																		: NULL;
	if (value || *why) return value;
	struct buf b = BUF_INIT(KIND_MAX);
	put_kind(&b, f);
	*why = str_printf("%s: is not %s", word ? word : "?", f->type == FORM_UNKNOWN ? "known here" : b.data);
	buf_free(&b);
	return NULL;
}

/* --- Output ------------------------------------------------------------------------------------------------------- */

void form_show(struct show *s, const struct form_field *f) {
	_cleanup_free_ char *title = text_dup(f->title, NULL);
	_cleanup_free_ char *about = text_dup(span_member(f->schema, "description"), NULL);
	_cleanup_free_ char *preset = f->preset.p ? text_value(f->preset, 200) : NULL;
	struct buf b = BUF_INIT(KIND_MAX);
	show_note(s, SHOW_YELLOW, "? %s", title ? title : "");
	if (about && *about) show_lines(s, SHOW_DIM, 2, about, strlen(about), 0);
	for (size_t n = 0; n < count(f->options); n++) {
		struct option o = option_at(f, n);
		_cleanup_free_ char *name = text_value(o.name, SIZE_MAX / 8), *hint = text_dup(o.about, NULL);
		show_note(s, SHOW_DIM, "  %zu. %s%s%s", n + 1, name ? name : "?", hint && *hint ? ": " : "", hint ? hint : "");
	}
	if (!f->schema.p) return; /* its prompt says it */
	put_kind(&b, f);
	show_note(s, SHOW_DIM, "  (%s%s%s)", b.data ? b.data : "",
			  preset        ? "; Enter: "
			  : f->required ? ""
							: "; Enter leaves it out",
			  preset ? preset : "");
	buf_free(&b);
}

const char *form_prompt(const struct form_field *f) {
	bool several = f->type == FORM_CHOICES;
	if (f->free) return several ? "numbers (1,3), or your own words: " : "number, or your own words: ";
	switch (f->type) {
	case FORM_TEXT:
		return "text: ";
	case FORM_BOOLEAN:
		return "yes or no: ";
	case FORM_CHOICES:
		return "numbers (1,3): ";
	default:
		return "number: ";
	}
}

/* --- The answer --------------------------------------------------------------------------------------------------- */

/* Several choices with commas between them. */
static char *words_of(json_t *value) {
	struct buf b = BUF_INIT(1 << 20);
	json_t *one;
	size_t i;
	if (json_is_string(value)) return strdup(json_string_value(value));
	if (!json_is_array(value)) return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	buf_puts(&b, "");
	json_array_foreach(value, i, one) {
		_cleanup_free_ char *text = words_of(one);
		buf_printf(&b, "%s%s", i ? ", " : "", text ? text : "?");
	}
	return buf_steal(&b, NULL);
}

void form_show_values(struct show *s, const struct speech_ask *ask, json_t *values) {
	struct form_field f;
	for (size_t n = 0; form_read(ask, n, &f); n++) {
		_cleanup_free_ char *key = span_dup(f.key, NULL);
		json_t *value = key ? json_object_get(values, key) : NULL;
		_cleanup_free_ char *title = text_dup(f.title, NULL), *text = value ? words_of(value) : NULL;
		show_note(s, SHOW_DIM, "  %s: %s", title ? title : "?", text ? text : "(left out)");
	}
}

json_t *form_input(const struct speech_ask *ask, json_t *values) {
	struct form_field f;
	if (!ask->tool.p) return json_incref(values);
	json_t *input = load(ask->input), *answers = json_object();
	for (size_t n = 0; form_read(ask, n, &f); n++) {
		_cleanup_free_ char *key = span_dup(f.key, NULL), *text = NULL;
		json_t *value = key ? json_object_get(values, key) : NULL;
		if (value && (text = words_of(value))) json_object_set_new(answers, key, json_string(text));
	}
	json_object_set_new(input, "answers", answers);
	return input;
}

static bool find_field(const struct speech_ask *ask, const char *name, size_t n, struct form_field *f) {
	for (size_t i = 0; form_read(ask, i, f); i++) {
		_cleanup_free_ char *key = span_dup(f->key, NULL);
		if (key && strlen(key) == n && strncmp(key, name, n) == 0) return true;
	}
	return false;
}

static char *no_such_name(const struct speech_ask *ask, const char *word) {
	struct buf b = BUF_INIT(KIND_MAX);
	struct form_field f;
	buf_puts(&b, "");
	for (size_t n = 0; form_read(ask, n, &f); n++) {
		_cleanup_free_ char *key = span_dup(f.key, NULL);
		buf_printf(&b, "%s%s", n ? ", " : ": it asks for ", key ? key : "?");
	}
	char *text = str_printf("%s: names no value that is asked for%s", word, b.data ? b.data : "");
	buf_free(&b);
	return text;
}

static char *fill_one(const struct speech_ask *ask, const char *word, json_t *values) {
	const char *sign = strchr(word, '=');
	struct form_field f;
	char *why = NULL;
	while (sign && !find_field(ask, word, (size_t)(sign - word), &f))
		sign = strchr(sign + 1, '='); /* a name may have it */
	if (!sign) return no_such_name(ask, word);
	_cleanup_free_ char *key = span_dup(f.key, NULL), *number = NULL;
	size_t option = find_option(&f, sign + 1); /* the numbers are not shown here: a name counts first */
	if (option) number = str_printf("%zu", option);
	json_t *value = form_value(&f, number ? number : sign + 1, &why);
	if (value) json_object_set_new(values, key ? key : "", value);
	return why;
}

/* Those with a default have it. */
static char *fill_rest(const struct speech_ask *ask, json_t *values) {
	struct form_field f;
	for (size_t n = 0; form_read(ask, n, &f); n++) {
		_cleanup_free_ char *key = span_dup(f.key, NULL), *why = NULL;
		if (!key || json_object_get(values, key)) continue;
		json_t *value = form_value(&f, "", &why);
		if (value) json_object_set_new(values, key, value);
		if (why) return str_printf("%s: %s", key, why);
	}
	return NULL;
}

json_t *form_fill(const struct speech_ask *ask, char *const *words, size_t n, char **why) {
	json_t *values = json_object();
	*why = NULL;
	for (size_t i = 0; i < n && !*why; i++) *why = fill_one(ask, words[i], values);
	if (!*why) *why = fill_rest(ask, values);
	if (!*why) return values;
	json_decref(values);
	return NULL;
}
