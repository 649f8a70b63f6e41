/* SPDX-License-Identifier: MIT */
#include "wire/message.h"

#include "base/buf.h"
#include "base/str.h"
#include "wire/limits.h"
#include "wire/survive.h"

#include <stdio.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* --- The strict pass ---------------------------------------------------------------------------------------------- */

/* The members of `request`, `response` and `message` that routing reads, to find doubles. */
struct inner {
	struct span subtype, request_id, response, role, content;
};

struct check {
	const char *p, *end;
	const char *error;    /* what is wrong at p */
	struct envelope *env; /* NULL: plain JSON, no member is looked at */
	size_t depth;
	uint64_t arrays[MESSAGE_MAX_DEPTH / 64]; /* one bit a level: an array, else an object */
	/* The members being read at levels 1 and 2, where they are wanted. */
	struct span *slot[3];
	const char *begin[3];
	size_t keys[3];     /* how many of them there were */
	struct span *place; /* which of `request`, `response`, `message` level 2 is in, or NULL */
	struct inner request, response, message;
	bool body; /* level 3 is in response.response: what was decided */
};

enum state { STATE_VALUE, STATE_KEY, STATE_AFTER, STATE_DONE, STATE_BAD };

static enum state bad(struct check *c, const char *error) {
	c->error = error;
	return STATE_BAD;
}

static inline void skip_blanks(struct check *c) {
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r')) c->p++;
}

/* To the next byte of a string that is not plain: quote, backslash, control character, or not ASCII. As signed bytes
 * the last two are both less than a blank. */
static inline const char *skip_plain(const char *p, const char *end) {
#ifdef __SSE2__
	const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), blank = _mm_set1_epi8(' ');
	for (; end - p >= 16; p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash));
		int mask = _mm_movemask_epi8(_mm_or_si128(hit, _mm_cmplt_epi8(v, blank)));
		if (mask) return p + __builtin_ctz((unsigned)mask);
	}
#endif
	while (p < end && *p != '"' && *p != '\\' && (signed char)*p >= ' ') p++;
	return p;
}

static bool is_hex(char c) {
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static bool is_short_escape(char ch) {
	switch (ch) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		return true;
	default:
		return false;
	}
}

/* p stands on a backslash. A lone surrogate is taken, as the child takes it. */
static bool check_escape(struct check *c) {
	if (c->end - c->p >= 2 && is_short_escape(c->p[1])) {
		c->p += 2;
		return true;
	}
	if (c->end - c->p >= 2 && c->p[1] == 'u') {
		int digits = 0;
		while (digits < 4 && c->end - c->p > 2 + digits && is_hex(c->p[2 + digits])) digits++;
		c->p += digits == 4 ? 6 : 0;
		if (digits == 4) return true;
	}
	c->error = "a string has a backslash with nothing after it that JSON knows: write \\\\ for a backslash";
	return false;
}

static const char *odd_byte(const struct check *c) {
	if (c->p >= c->end) return "a string is not closed: its ending quote is missing";
	if (*c->p == 0) return "there is a NUL byte in the line: write it as \\u0000 inside a string";
	if ((unsigned char)*c->p < 0x20) return "a string has a raw control character: write it as an escape, such as \\n";
	return "the line is not valid UTF-8";
}

/* p stands on the opening quote. */
static bool check_string(struct check *c) {
	c->p++;
	for (;;) {
		c->p = skip_plain(c->p, c->end);
		size_t n = c->p < c->end ? str_utf8(c->p, (size_t)(c->end - c->p)) : 0;
		if (n > 1) {
			c->p += n;
		} else if (n == 1 && *c->p == '\\') {
			if (!check_escape(c)) return false;
		} else if (n == 1 && *c->p == '"') {
			c->p++;
			return true;
		} else {
			c->error = odd_byte(c);
			return false;
		}
	}
}

static bool skip_digits(struct check *c) {
	const char *from = c->p;
	while (c->p < c->end && *c->p >= '0' && *c->p <= '9') c->p++;
	return c->p > from;
}

static bool accept(struct check *c, char a, char b) {
	if (c->p >= c->end || (*c->p != a && *c->p != b)) return false;
	c->p++;
	return true;
}

static bool check_number(struct check *c) {
	c->error = "a number is not written as JSON wants it";
	accept(c, '-', '-');
	if (!accept(c, '0', '0') && !skip_digits(c)) return false;
	if (c->p < c->end && *c->p >= '0' && *c->p <= '9') {
		c->error = "a number begins with 0: JSON has no leading zeros";
		return false;
	}
	if (accept(c, '.', '.') && !skip_digits(c)) return false;
	if (accept(c, 'e', 'E')) {
		accept(c, '+', '-');
		if (!skip_digits(c)) return false;
	}
	return true;
}

static bool check_literal(struct check *c, const char *word) {
	size_t n = strlen(word);
	if ((size_t)(c->end - c->p) >= n && memcmp(c->p, word, n) == 0) {
		c->p += n;
		return true;
	}
	c->error = "a word that is not JSON: strings need double quotes, and the only words are true, false and null";
	return false;
}

static const char *no_value(const struct check *c) {
	if (c->p >= c->end)
		return c->depth ? "the line ends in the middle of the JSON: is it one line?" : "the line is empty";
	if (*c->p == 0) return "there is a NUL byte in the line: write it as \\u0000 inside a string";
	if (*c->p == ']' || *c->p == '}' || *c->p == ',') return "a value is missing (a comma too many?)";
	if (*c->p == '\'') return "single quotes are not JSON: strings need double quotes";
	if (c->end - c->p >= 3 && memcmp(c->p, "\xef\xbb\xbf", 3) == 0)
		return "there is a byte order mark (EF BB BF): write UTF-8 without it";
	if (!str_utf8(c->p, (size_t)(c->end - c->p))) return "the line is not valid UTF-8";
	return "this is not JSON: write one JSON object on each line";
}

static bool check_scalar(struct check *c) {
	char first = c->p < c->end ? *c->p : 0;
	if (first == '-' || (first >= '0' && first <= '9')) return check_number(c);
	switch (first) {
	case '"':
		return check_string(c);
	case 't':
		return check_literal(c, "true");
	case 'f':
		return check_literal(c, "false");
	case 'n':
		return check_literal(c, "null");
	default:
		c->error = no_value(c);
		return false;
	}
}

/* --- Members that routing reads ----------------------------------------------------------------------------------- */

/* A key of letters, digits and underscores needs no escapes; one that has them hides from whoever compares bytes. */
static bool is_disguised(const char *key, size_t n) {
	if (!memchr(key, '\\', n)) return false;
	for (size_t i = 0; i < n; i++) {
		int ch = (unsigned char)key[i];
		if (ch == '\\') {
			if (key[i + 1] != 'u' || key[i + 2] != '0' || key[i + 3] != '0') return false;
			char hex[3] = {key[i + 4], key[i + 5], 0};
			ch = (int)strtol(hex, NULL, 16);
			i += 5;
		}
		bool word = ch == '_' || (ch >= '0' && ch <= '9') || ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'z' && ch < 0x80);
		if (!word) return false;
	}
	return true;
}

static struct inner *inner_of(struct check *c) {
	if (c->place == &c->env->request) return &c->request;
	if (c->place == &c->env->response) return &c->response;
	return &c->message;
}

static bool is_key(const char *key, size_t n, const char *name) {
	return n == strlen(name) && memcmp(key, name, n) == 0;
}

static struct span *inner_slot(struct check *c, const char *key, size_t n) {
	struct inner *in = inner_of(c);
	bool message = in == &c->message;
	if (!message && is_key(key, n, "subtype")) return &in->subtype;
	if (!message && is_key(key, n, "request_id")) return &in->request_id;
	if (in == &c->response && is_key(key, n, "response")) return &in->response;
	if (message && is_key(key, n, "role")) return &in->role;
	if (message && is_key(key, n, "content")) return &in->content;
	return NULL;
}

/* Of the others the last one counts, for the child as for us; nothing is decided by them. */
static bool may_repeat(const struct envelope *e, const struct span *slot) {
	return slot == &e->is_replay || slot == &e->is_error || slot == &e->user_message_uuid ||
		   slot == &e->user_message_uuids || slot == &e->parent_tool_use_id;
}

static bool has_place(const struct envelope *e, const struct span *slot) {
	return slot && (slot == &e->request || slot == &e->response || slot == &e->message);
}

static const char too_many_members[] = "an object that routing reads has more than 4,096 members";

/* A key at level 1, or at level 2 within one of the three places. In the body of an answer only the spelling counts:
 * "behavior" must not be hidden from whoever checks and logs the decision. */
static bool note_key(struct check *c, const char *key, size_t n) {
	if (is_disguised(key, n)) {
		c->error = "a key is spelled with escapes: write its letters as they are";
		return false;
	}
	if (c->depth == 3) return true;
	if (++c->keys[c->depth] > LIMITS_MEMBERS) {
		c->error = too_many_members;
		return false;
	}
	struct span *slot = c->depth == 1 ? envelope_slot(c->env, key, n) : inner_slot(c, key, n);
	if (slot && slot->p && !may_repeat(c->env, slot)) {
		c->error = "a key that routing reads stands twice in one object: write it once";
		return false;
	}
	c->slot[c->depth] = slot;
	if (c->depth == 1) c->place = has_place(c->env, slot) ? slot : NULL;
	c->body = c->depth == 2 && slot == &c->response.response;
	return true;
}

static bool is_watched(const struct check *c) {
	return c->env && (c->depth == 1 || (c->depth == 2 && c->place));
}

static void value_begins(struct check *c) {
	if (c->depth == 1 || c->depth == 2) c->begin[c->depth] = c->p;
}

static void value_ends(struct check *c) {
	if (!is_watched(c) || !c->slot[c->depth]) return;
	*c->slot[c->depth] = (struct span){c->begin[c->depth], (size_t)(c->p - c->begin[c->depth])};
	c->slot[c->depth] = NULL;
}

/* --- The machine -------------------------------------------------------------------------------------------------- */

static bool in_array(const struct check *c) {
	return c->arrays[(c->depth - 1) / 64] >> (c->depth - 1) % 64 & 1;
}

static enum state close_level(struct check *c) {
	c->p++;
	c->depth--;
	value_ends(c);
	return c->depth ? STATE_AFTER : STATE_DONE;
}

static enum state open_level(struct check *c) {
	bool array = *c->p == '[';
	if (c->depth == MESSAGE_MAX_DEPTH) return bad(c, "the JSON is nested deeper than 4096 levels");
	c->p++;
	uint64_t bit = (uint64_t)1 << c->depth % 64;
	if (array)
		c->arrays[c->depth / 64] |= bit;
	else
		c->arrays[c->depth / 64] &= ~bit;
	c->depth++;
	if (c->depth == 2) {
		c->slot[2] = NULL;
		c->keys[2] = 0;
	}
	skip_blanks(c);
	if (c->p < c->end && *c->p == (array ? ']' : '}')) return close_level(c);
	return array ? STATE_VALUE : STATE_KEY;
}

static enum state step_value(struct check *c) {
	skip_blanks(c);
	value_begins(c);
	if (c->p < c->end && (*c->p == '{' || *c->p == '[')) return open_level(c);
	if (!check_scalar(c)) return STATE_BAD;
	value_ends(c);
	return c->depth ? STATE_AFTER : STATE_DONE;
}

static enum state step_key(struct check *c) {
	skip_blanks(c);
	const char *key = c->p + 1;
	if (c->p >= c->end) return bad(c, no_value(c));
	if (*c->p != '"')
		return bad(c, *c->p == '}' ? "there is a comma before }" : "a key is missing: keys need double quotes");
	if (!check_string(c)) return STATE_BAD;
	bool noted = is_watched(c) || (c->env && c->depth == 3 && c->body);
	if (noted && !note_key(c, key, (size_t)(c->p - key) - 1)) return STATE_BAD;
	skip_blanks(c);
	if (c->p >= c->end || *c->p != ':') return bad(c, "a colon is missing after a key");
	c->p++;
	return STATE_VALUE;
}

static enum state step_after(struct check *c) {
	bool array = in_array(c);
	skip_blanks(c);
	if (c->p >= c->end) return bad(c, "the line ends in the middle of the JSON: is it one line?");
	if (*c->p == (array ? ']' : '}')) return close_level(c);
	if (*c->p != ',')
		return bad(c, array ? "a comma or ] is missing after a value" : "a comma or } is missing after a value");
	c->p++;
	return array ? STATE_VALUE : STATE_KEY;
}

static enum state run(struct check *c) {
	enum state state = STATE_VALUE;
	while (state < STATE_DONE) {
		if (state == STATE_VALUE)
			state = step_value(c);
		else if (state == STATE_KEY)
			state = step_key(c);
		else
			state = step_after(c);
	}
	skip_blanks(c);
	if (state == STATE_DONE && c->p < c->end)
		return bad(c, *c->p ? "there is something after the JSON object: end each object with a line feed"
							: "there is a NUL byte in the line: write it as \\u0000 inside a string");
	return state;
}

static bool fail(const char *p, const struct check *c, const char **error, size_t *at) {
	*error = c->error;
	*at = (size_t)(c->p - p);
	return false;
}

bool message_valid_json(const char *p, size_t n, const char **error, size_t *at) {
	struct check c = {.p = p, .end = p + n};
	return run(&c) == STATE_DONE || fail(p, &c, error, at);
}

bool message_scan(const char *p, size_t n, struct envelope *env, const char **error, size_t *at) {
	struct check c = {.p = p, .end = p + n, .env = env};
	*env = (struct envelope){0};
	skip_blanks(&c);
	const char *first = c.p;
	if (run(&c) != STATE_DONE) return fail(p, &c, error, at);
	if (*first != '{') {
		c.p = first;
		c.error = "the line is JSON but no object: write one {...} on each line";
		return fail(p, &c, error, at);
	}
	const struct inner *in = env->request.p ? &c.request : &c.response;
	env->inner_subtype = in->subtype;
	env->inner_request_id = in->request_id;
	env->inner_response = c.response.response;
	return true;
}

/* --- The old forms ------------------------------------------------------------------------------------------------ */

/* The value and what stands around it keep their bytes: "prompt":V becomes "message":{"role":"user","content":V}. */
static struct chunk wrap_prompt(const char *p, size_t n, struct span key, struct span value) {
	static const char open[] = "\"message\":{\"role\":\"user\",\"content\"";
	const char *after_key = key.p + key.n, *after = value.p + value.n;
	const struct chunk parts[] = {
		{NULL, p, (size_t)(key.p - p)},
		CHUNK_STATIC(open),
		{NULL, after_key, (size_t)(after - after_key)},
		CHUNK_STATIC("}"),
		{NULL, after, (size_t)(p + n - after)},
	};
	return chunk_join(parts, ARRAY_SIZE(parts));
}

static bool put_error(char *error, size_t size, const char *text) {
	snprintf(error, size, "%s", text);
	return false;
}

/* A `user` line without `message`: its `prompt` or `content`, if there is exactly one of them. */
static bool find_prompt(struct span line, struct span *key, struct span *value, char *error, size_t size) {
	struct span k, v;
	size_t at = 0, found = 0;
	while (span_next_member(line, &at, &k, &v)) {
		if (!span_equals(k, "prompt") && !span_equals(k, "content")) continue;
		*key = k;
		*value = v;
		found++;
	}
	if (found == 0)
		return put_error(error, size, "a user line needs \"message\":{\"role\":\"user\",\"content\":\"...\"}");
	if (found > 1)
		return put_error(
			error, size,
			"a user line has more than one prompt: write one \"message\":{\"role\":\"user\",\"content\":...}");
	return true;
}

/* From the opening brace on. */
static struct span object_of(const char *p, size_t n) {
	struct span line = {p, n};
	while (line.n && *line.p != '{') line.p++, line.n--;
	return line;
}

static bool modernise(const char *p, size_t n, struct envelope *env, struct chunk *rewritten, char *error,
					  size_t size) {
	struct span key, value;
	if (!find_prompt(object_of(p, n), &key, &value, error, size)) return false;
	struct chunk c = wrap_prompt(p, n, key, value);
	if (!c.data) return put_error(error, size, "out of memory");
	if (!scan_envelope(c.data, c.len, env)) {
		chunk_drop(&c);
		return put_error(error, size, "the line cannot be brought into the form with \"message\"");
	}
	*rewritten = c;
	return true;
}

/* --- The whole check ---------------------------------------------------------------------------------------------- */

static enum message_kind kind_of(struct span type) {
	if (span_equals(type, "user")) return MESSAGE_USER;
	if (span_equals(type, "control_request")) return MESSAGE_REQUEST;
	if (span_equals(type, "control_response")) return MESSAGE_ANSWER;
	if (span_equals(type, "control_cancel_request")) return MESSAGE_CANCEL;
	return MESSAGE_OTHER;
}

static bool is_id(struct span s) {
	int64_t number;
	return span_is_string(s) || span_int(s, &number);
}

static struct span readable_id(const struct envelope *e) {
	if (is_id(e->request_id)) return e->request_id;
	return is_id(e->inner_request_id) ? e->inner_request_id : SPAN_NONE;
}

/* A line that is refused may still be answered under its id, if that is clean JSON. */
static void salvage(const char *p, size_t n, struct message *m, struct span *request_id) {
	const char *error;
	size_t at;
	if (!scan_envelope(p, n, &m->env)) {
		m->env = (struct envelope){0};
		return;
	}
	m->kind = kind_of(m->env.type);
	*request_id = readable_id(&m->env);
	if (request_id->p && !message_valid_json(request_id->p, request_id->n, &error, &at)) *request_id = SPAN_NONE;
}

bool message_check(const char *p, size_t n, struct message *m, struct chunk *rewritten, char *error, size_t size,
				   struct span *request_id) {
	const char *text;
	size_t at;
	*m = (struct message){.kind = MESSAGE_OTHER};
	*rewritten = CHUNK_NONE;
	*request_id = SPAN_NONE;
	if (!message_scan(p, n, &m->env, &text, &at)) {
		snprintf(error, size, "%s (byte %zu of the line)", text, at + 1);
		bool too_many = text == too_many_members;
		salvage(p, n, m, request_id);
		m->too_many = too_many;
		return false;
	}
	m->kind = kind_of(m->env.type);
	*request_id = readable_id(&m->env);
	if (m->kind == MESSAGE_USER && !m->env.message.p && !modernise(p, n, &m->env, rewritten, error, size)) return false;
	/* An old form, which the child would answer without an id: the router writes the id where it belongs. */
	if (m->kind == MESSAGE_REQUEST && !m->env.request_id.p) m->env.request_id = m->env.inner_request_id;
	struct span line = rewritten->data ? object_of(rewritten->data, rewritten->len) : object_of(p, n);
	if (survive_check(m, line, error, size)) {
		*request_id = readable_id(&m->env);
		return true;
	}
	if (rewritten->data) m->env = (struct envelope){0}; /* it points into what is dropped here */
	chunk_drop(rewritten);
	return false;
}
