/* SPDX-License-Identifier: MIT
 *
 * A strict check of JSON in one pass that can be interrupted: RFC 8259 with lone surrogate escapes accepted, valid
 * UTF-8, at most VALID_MAX_DEPTH levels, numbers of any size. A watcher can look at the keys and values of the first
 * levels on the way. No allocation, no recursion; linear time.
 */
#pragma once

#include "wire/scan.h"

#define VALID_MAX_DEPTH 4096

/* The next element. An interrupted pass continues there. */
enum valid_state {
	VALID_VALUE,
	VALID_STRING, /* a value, after its opening quote */
	VALID_DIGITS, /* of a number */
	VALID_FIRST,  /* after an opening bracket */
	VALID_KEY,
	VALID_KEY_STRING, /* after its opening quote */
	VALID_COLON,
	VALID_AFTER, /* after a value */
	VALID_END,   /* after the text */
	VALID_DONE,
	VALID_BAD,
};

enum valid_part { VALID_INTEGER, VALID_FRACTION, VALID_EXPONENT };

struct valid;

struct valid_watch {
	/* A key at level 1, or at level 2 or 3 while v->keys of that level is set; without its quotes. False: refused, and
	 * the callee has set v->error. At level 1 and 2 it may set v->wants[v->depth] to get the value. */
	bool (*key)(struct valid *v, const char *key, size_t n);
	/* The end of a wanted value at level v->depth. */
	void (*value)(struct valid *v, struct span value);
};

struct valid {
	const char *p, *end;
	const char *stop;  /* the pass is interrupted here or a few bytes later; at most end */
	const char *error; /* the error at p, a static sentence for users */
	enum valid_state state;
	const char *first;               /* the beginning of the text */
	const char *key;                 /* after the opening quote of the newest key */
	enum valid_part part;            /* of the number */
	bool digits;                     /* it has digits */
	const struct valid_watch *watch; /* NULL: keys and values are not looked at */
	size_t depth;
	bool keys[4];                          /* by level (v->depth): the watcher wants its keys */
	bool wants[3];                         /* by level: the watcher wants the value of the newest key */
	const char *begin[3];                  /* of the value at this level */
	uint64_t arrays[VALID_MAX_DEPTH / 64]; /* one bit per level: an array, else an object; set at its start */
};

/* Begin a check of p[0..n), which is borrowed until the last valid_run(). The memory of *v need not be initialised. */
void valid_begin(struct valid *v, const char *p, size_t n, const struct valid_watch *watch);
/* Check about this many bytes more. True: it is over, and v->state is VALID_DONE or VALID_BAD. */
bool valid_run(struct valid *v, size_t bytes);
/* Check a whole text, any value. False: *error is a static sentence for users, *at the offset. */
bool valid_json(const char *p, size_t n, const char **error, size_t *at);
/* The same without a reason. */
bool valid_span(struct span json);

/* Return true for a key (without its quotes, valid JSON) of letters, digits and underscores that has escapes: it evades
 * a comparison of bytes. */
bool valid_hides_key(const char *key, size_t n);
#define VALID_HIDDEN_KEY "a key is spelled with escapes: write its letters as they are"
