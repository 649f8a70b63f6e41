/* SPDX-License-Identifier: MIT */
#include "wire/message.h"

#include "base/buf.h"
#include "base/str.h"
#include "wire/limits.h"
#include "wire/survive.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* --- The strict pass ---------------------------------------------------------------------------------------------- */

/* The members of `request`, `response` and `message` that routing reads, to find duplicates. */
struct inner {
	struct span subtype, request_id, response, role, content;
};

/* The next element. An interrupted pass continues there. */
enum state {
	STATE_VALUE,
	STATE_STRING, /* a value, after its opening quote */
	STATE_DIGITS, /* of a number */
	STATE_FIRST,  /* after an opening bracket */
	STATE_KEY,
	STATE_KEY_STRING, /* after its opening quote */
	STATE_COLON,
	STATE_AFTER, /* after a value */
	STATE_END,   /* after the text */
	STATE_DONE,
	STATE_BAD,
};

enum part { PART_INTEGER, PART_FRACTION, PART_EXPONENT };

struct check {
	const char *p, *end;
	const char *stop;  /* the pass is interrupted here or a few bytes later; at most end */
	const char *error; /* the error at p */
	enum state state;
	const char *first;    /* the beginning of the text */
	const char *key;      /* after the opening quote of the newest key */
	enum part part;       /* of the number */
	bool digits;          /* it has digits */
	struct envelope *env; /* NULL: plain JSON, members are not looked at */
	size_t depth;
	/* The members being read at levels 1 and 2, if wanted. */
	struct span *slot[3];
	const char *begin[3];
	size_t keys[3];     /* number of keys seen */
	struct span *place; /* which of `request`, `response`, `message` encloses level 2, or NULL */
	struct inner request, response, message;
	bool body;                               /* level 3 is in response.response: the decision */
	uint64_t arrays[MESSAGE_MAX_DEPTH / 64]; /* one bit per level: an array, else an object; set at its start */
};

static enum state bad(struct check *c, const char *error) {
	c->error = error;
	return STATE_BAD;
}

/* Return true if the pass must stop before the end of the text. */
static inline bool is_interrupted(const struct check *c) {
	return UNLIKELY(c->p >= c->stop) && c->stop < c->end;
}

static inline void skip_blanks(struct check *c) {
	while (c->p < c->stop && span_blank(*c->p)) c->p++;
}

/* Move to the next byte of a string that is not plain: quote, backslash, control character, or not ASCII. As signed
 * bytes the last two are both less than a space. */
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

/* p is at a backslash. A lone surrogate is accepted, as by the child. */
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

enum string { STRING_OVER, STRING_BAD, STRING_MORE };

/* p is within a string; move past the closing quote. */
static enum string check_string(struct check *c) {
	for (;;) {
		c->p = skip_plain(c->p, c->stop);
		if (LIKELY(c->p < c->stop && *c->p == '"')) {
			c->p++;
			return STRING_OVER;
		}
		if (is_interrupted(c)) return STRING_MORE;
		size_t n = c->p < c->end ? str_utf8(c->p, (size_t)(c->end - c->p)) : 0;
		if (n > 1) {
			c->p += n;
		} else if (n == 1 && *c->p == '\\') {
			if (!check_escape(c)) return STRING_BAD;
		} else {
			c->error = odd_byte(c);
			return STRING_BAD;
		}
	}
}

static bool accept(struct check *c, char a, char b) {
	if (c->p >= c->end || (*c->p != a && *c->p != b)) return false;
	c->p++;
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

/* --- Members that routing reads ----------------------------------------------------------------------------------- */

#define DISGUISE_MAX 4096 /* longer than any name that routing or the child looks for */

/* A key of letters, digits and underscores needs no escapes; with them it evades a comparison of bytes. */
static bool is_disguised(const char *key, size_t n) {
	if (n > DISGUISE_MAX || !memchr(key, '\\', n)) return false;
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

/* Of other members the last duplicate counts, for the child and for us; no decision depends on them. */
static bool may_repeat(const struct envelope *e, const struct span *slot) {
	return slot == &e->is_replay || slot == &e->is_error || slot == &e->user_message_uuid ||
		   slot == &e->user_message_uuids || slot == &e->parent_tool_use_id;
}

static bool has_place(const struct envelope *e, const struct span *slot) {
	return slot && (slot == &e->request || slot == &e->response || slot == &e->message);
}

static const char too_many_members[] = "an object that routing reads has more than 4,096 members";

/* Note a key at level 1, or at level 2 within one of the three places. In the body of an answer only the spelling
 * counts: "behavior" must not be hidden from code that checks and logs the decision. */
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

static enum state end_value(struct check *c) {
	value_ends(c);
	return c->depth ? STATE_AFTER : STATE_END;
}

static enum state close_level(struct check *c) {
	c->p++;
	c->depth--;
	return end_value(c);
}

static enum state step_first(struct check *c) {
	bool array = in_array(c);
	skip_blanks(c);
	if (is_interrupted(c)) return STATE_FIRST;
	if (c->p < c->end && *c->p == (array ? ']' : '}')) return close_level(c);
	return array ? STATE_VALUE : STATE_KEY;
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
	return step_first(c);
}

static enum state step_string(struct check *c) {
	switch (check_string(c)) {
	case STRING_OVER:
		return end_value(c);
	case STRING_MORE:
		return STATE_STRING;
	default:
		return STATE_BAD;
	}
}

/* A run of digits, and the bytes allowed after it. */
static enum state step_digits(struct check *c) {
	for (;;) {
		for (; c->p < c->stop && *c->p >= '0' && *c->p <= '9'; c->p++) c->digits = true;
		if (is_interrupted(c)) return STATE_DIGITS;
		if (!c->digits) return bad(c, "a number is not written as JSON wants it");
		if (c->part < PART_FRACTION && accept(c, '.', '.')) {
			c->part = PART_FRACTION;
		} else if (c->part < PART_EXPONENT && accept(c, 'e', 'E')) {
			c->part = PART_EXPONENT;
			accept(c, '+', '-');
		} else {
			return end_value(c);
		}
		c->digits = false;
	}
}

static enum state begin_number(struct check *c) {
	accept(c, '-', '-');
	c->part = PART_INTEGER;
	c->digits = accept(c, '0', '0');
	if (c->digits && c->p < c->end && *c->p >= '0' && *c->p <= '9')
		return bad(c, "a number begins with 0: JSON has no leading zeros");
	return step_digits(c);
}

static enum state step_value(struct check *c) {
	skip_blanks(c);
	if (is_interrupted(c)) return STATE_VALUE;
	value_begins(c);
	if (!c->first) c->first = c->p;
	char first = c->p < c->end ? *c->p : 0;
	if (first == '-' || (first >= '0' && first <= '9')) return begin_number(c);
	switch (first) {
	case '{':
	case '[':
		return open_level(c);
	case '"':
		c->p++;
		return step_string(c);
	case 't':
		return check_literal(c, "true") ? end_value(c) : STATE_BAD;
	case 'f':
		return check_literal(c, "false") ? end_value(c) : STATE_BAD;
	case 'n':
		return check_literal(c, "null") ? end_value(c) : STATE_BAD;
	default:
		return bad(c, no_value(c));
	}
}

static enum state step_colon(struct check *c) {
	skip_blanks(c);
	if (is_interrupted(c)) return STATE_COLON;
	if (c->p >= c->end || *c->p != ':') return bad(c, "a colon is missing after a key");
	c->p++;
	return STATE_VALUE;
}

static enum state step_key_string(struct check *c) {
	enum string r = check_string(c);
	if (r != STRING_OVER) return r == STRING_MORE ? STATE_KEY_STRING : STATE_BAD;
	bool noted = is_watched(c) || (c->env && c->depth == 3 && c->body);
	if (noted && !note_key(c, c->key, (size_t)(c->p - c->key) - 1)) return STATE_BAD;
	return step_colon(c);
}

static enum state step_key(struct check *c) {
	skip_blanks(c);
	if (is_interrupted(c)) return STATE_KEY;
	if (c->p >= c->end) return bad(c, no_value(c));
	if (*c->p != '"')
		return bad(c, *c->p == '}' ? "there is a comma before }" : "a key is missing: keys need double quotes");
	c->key = ++c->p;
	return step_key_string(c);
}

static enum state step_after(struct check *c) {
	bool array = in_array(c);
	skip_blanks(c);
	if (is_interrupted(c)) return STATE_AFTER;
	if (c->p >= c->end) return bad(c, "the line ends in the middle of the JSON: is it one line?");
	if (*c->p == (array ? ']' : '}')) return close_level(c);
	if (*c->p != ',')
		return bad(c, array ? "a comma or ] is missing after a value" : "a comma or } is missing after a value");
	c->p++;
	return array ? STATE_VALUE : STATE_KEY;
}

static enum state step_end(struct check *c) {
	skip_blanks(c);
	if (is_interrupted(c)) return STATE_END;
	if (c->p == c->end) return STATE_DONE;
	return bad(c, *c->p ? "there is something after the JSON object: end each object with a newline"
						: "there is a NUL byte in the line: write it as \\u0000 inside a string");
}

/* Continue after an interruption. */
static enum state go_on(struct check *c, enum state state) {
	switch (state) {
	case STATE_STRING:
		return step_string(c);
	case STATE_DIGITS:
		return step_digits(c);
	case STATE_FIRST:
		return step_first(c);
	case STATE_KEY_STRING:
		return step_key_string(c);
	case STATE_COLON:
		return step_colon(c);
	case STATE_END:
		return step_end(c);
	default:
		return state;
	}
}

static inline enum state step(struct check *c, enum state state) {
	if (state == STATE_VALUE) return step_value(c);
	if (state == STATE_KEY) return step_key(c);
	if (state == STATE_AFTER) return step_after(c);
	return go_on(c, state);
}

/* Check about `bytes` more. False: there is more. */
static bool run(struct check *c, size_t bytes) {
	enum state state = c->state;
	c->stop = bytes < (size_t)(c->end - c->p) ? c->p + bytes : c->end;
	while (state < STATE_DONE && c->p < c->stop) state = step(c, state);
	while (state < STATE_DONE && c->stop == c->end) state = step(c, state); /* at the end each step ends a value */
	c->state = state;
	return state >= STATE_DONE;
}

static bool fail(const char *p, const struct check *c, const char **error, size_t *at) {
	*error = c->error;
	*at = (size_t)(c->p - p);
	return false;
}

bool message_valid_json(const char *p, size_t n, const char **error, size_t *at) {
	struct check c = {.p = p, .end = p + n};
	run(&c, n);
	return c.state == STATE_DONE || fail(p, &c, error, at);
}

/* For every line: fields that a short one does not use are not initialised. */
static void begin_scan(struct check *c, const char *p, size_t n, struct envelope *env) {
	memset(c, 0, offsetof(struct check, arrays));
	*env = (struct envelope){0};
	c->p = p;
	c->end = p + n;
	c->env = env;
}

static bool end_scan(const char *p, struct check *c, const char **error, size_t *at) {
	struct envelope *env = c->env;
	if (c->state == STATE_BAD) return fail(p, c, error, at);
	if (*c->first != '{') {
		c->p = c->first;
		c->error = "the line is JSON but no object: write one {...} on each line";
		return fail(p, c, error, at);
	}
	const struct inner *in = env->request.p ? &c->request : &c->response;
	env->inner_subtype = in->subtype;
	env->inner_request_id = in->request_id;
	env->inner_response = c->response.response;
	return true;
}

bool message_scan(const char *p, size_t n, struct envelope *env, const char **error, size_t *at) {
	struct check c;
	begin_scan(&c, p, n, env);
	run(&c, n);
	return end_scan(p, &c, error, at);
}

/* --- The old forms ------------------------------------------------------------------------------------------------ */

/* Keep the bytes of the value and around it: "prompt":V becomes "message":{"role":"user","content":V}. */
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

/* Find the `prompt` or `content` of a `user` line without `message`, if it has exactly one of them. */
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

/* From the opening brace. */
static struct span object_of(const char *p, size_t n) {
	struct span line = {p, n};
	while (line.n && *line.p != '{') line.p++, line.n--;
	return line;
}

static bool modernise(const char *p, size_t n, struct message *m, struct chunk *rewritten, char *error, size_t size) {
	struct span key, value;
	if (!find_prompt(object_of(p, n), &key, &value, error, size)) return false;
	struct chunk c = wrap_prompt(p, n, key, value);
	if (!c.data) return put_error(error, size, "out of memory");
	if (!scan_envelope(c.data, c.len, &m->env)) {
		chunk_drop(&c);
		return put_error(error, size, "the line cannot be brought into the form with \"message\"");
	}
	m->role = span_member(m->env.message, "role");
	m->content = span_member(m->env.message, "content");
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

/* A refused line may still be answered under its id, if that is valid JSON. */
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

struct message_check {
	const char *p;
	size_t n;
	bool is_json, over, good;
	struct message m;
	struct chunk rewritten;
	struct span request_id;
	struct survive survive;
	struct check json; /* not zeroed from here */
	char error[MESSAGE_ERROR_MAX];
};

static void begin(struct message_check *k, const char *p, size_t n) {
	memset(k, 0, offsetof(struct message_check, json));
	k->p = p;
	k->n = n;
	k->rewritten = CHUNK_NONE;
	begin_scan(&k->json, p, n, &k->m.env);
}

struct message_check *message_check_new(const char *p, size_t n) {
	struct message_check *k = malloc(sizeof *k);
	if (k) begin(k, p, n);
	return k;
}

void message_check_free(struct message_check *k) {
	if (k) chunk_drop(&k->rewritten);
	free(k);
}

/* If the line is refused, error has the reason. */
static bool give_verdict(struct message_check *k, bool good) {
	k->over = true;
	k->good = good;
	if (good) {
		k->request_id = readable_id(&k->m.env);
		return true;
	}
	if (k->rewritten.data) k->m = (struct message){.kind = k->m.kind, .too_many = k->m.too_many}; /* drop its spans */
	chunk_drop(&k->rewritten);
	return true;
}

static bool refuse_json(struct message_check *k, const char *text, size_t at) {
	bool too_many = text == too_many_members;
	snprintf(k->error, sizeof k->error, "%s (byte %zu of the line)", text, at + 1);
	salvage(k->p, k->n, &k->m, &k->request_id);
	k->m.too_many = too_many;
	return give_verdict(k, false);
}

/* The line is valid JSON: check its content. True: the check is over. */
static bool begin_survive(struct message_check *k) {
	struct message *m = &k->m;
	k->is_json = true;
	m->kind = kind_of(m->env.type);
	m->role = k->json.message.role;
	m->content = k->json.message.content;
	k->request_id = readable_id(&m->env);
	if (m->kind == MESSAGE_USER && !m->env.message.p &&
		!modernise(k->p, k->n, m, &k->rewritten, k->error, sizeof k->error))
		return give_verdict(k, false);
	/* An old form, which the child would answer without an id: the router moves the id to its place. */
	if (m->kind == MESSAGE_REQUEST && !m->env.request_id.p) m->env.request_id = m->env.inner_request_id;
	struct chunk new = k->rewritten;
	struct span line = new.data ? object_of(new.data, new.len) : object_of(k->p, k->n);
	if (m->kind == MESSAGE_USER && span_is_string(m->content)) m->text = m->content;
	bool good = survive_begin(&k->survive, m, line, k->error, sizeof k->error);
	return (!good || !k->survive.n) && give_verdict(k, good);
}

bool message_check_step(struct message_check *k, size_t bytes) {
	const char *text;
	size_t at;
	if (k->over) return true;
	if (!k->is_json) {
		if (!run(&k->json, bytes)) return false;
		return end_scan(k->p, &k->json, &text, &at) ? begin_survive(k) : refuse_json(k, text, at);
	}
	bool good = survive_step(&k->survive, bytes, k->error, sizeof k->error);
	k->m.too_many = k->survive.too_many;
	if (k->m.kind == MESSAGE_USER && !k->m.text.p) k->m.text = k->survive.first_text;
	return (!good || !k->survive.n) && give_verdict(k, good);
}

bool message_check_result(struct message_check *k, struct message *m, struct chunk *rewritten, const char **error,
						  struct span *request_id) {
	*m = k->m;
	*rewritten = k->rewritten;
	*error = k->error;
	*request_id = k->request_id;
	k->rewritten = CHUNK_NONE;
	return k->good;
}

bool message_check(const char *p, size_t n, struct message *m, struct chunk *rewritten, char *error, size_t size,
				   struct span *request_id) {
	struct message_check k;
	const char *text;
	begin(&k, p, n);
	while (!message_check_step(&k, n + 1)) {}
	bool good = message_check_result(&k, m, rewritten, &text, request_id);
	if (!good) snprintf(error, size, "%s", text);
	return good;
}
