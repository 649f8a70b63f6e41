/* SPDX-License-Identifier: MIT
 *
 * Serializes the state of the daemon for the next binary (upgrade in place). One function for each struct does both
 * directions: carry_*() writes the value when c->saving, else reads it into place, so that the two formats cannot
 * differ. A new member of a serialized struct needs a line in its *_carry() function, after the release of version N
 * under `if (c->version > N)` with a new CARRY_VERSION.
 *
 * All input is checked: lengths against the remaining input, numbers against their type, descriptors against their
 * expected type. The first error sets c->error; all later reads return zero, so a reader checks once, before it uses
 * the values. Descriptors keep their numbers across exec; the saved ones are listed in c->fds.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/names.h"
#include "core/settings.h"
#include "io/loop.h"
#include "wire/lines.h"
#include "wire/rope.h"

#include <sys/stat.h>

#define CARRY_VERSION 1 /* of 0.1.0 */

struct attachment;
struct client;
struct session;

/* Clients and attachments are identified by the connection's number. */
struct carry_world {
	uint64_t (*client_number)(const struct client *client);
	uint64_t (*attachment_number)(const struct attachment *attachment);
	struct client *(*client)(void *arg, uint64_t number); /* NULL: none */
	struct attachment *(*attachment)(void *arg, uint64_t number);
	void *arg;
};

struct carry {
	bool saving;
	uint64_t version; /* of the input */
	struct error error;
	const struct carry_world *world;
	/* saving */
	int fd;
	struct buf out;
	int *fds;
	size_t n_fds;
	/* loading */
	const char *in;
	size_t len, at;
};

void carry_begin_save(struct carry *c, int fd); /* writes the head */
bool carry_end_save(struct carry *c);           /* false: c->error */
bool carry_begin_load(struct carry *c, const char *data, size_t len);
bool carry_end_load(struct carry *c); /* false unless all input was read, without an error */
void carry_free(struct carry *c);

void carry_fail(struct carry *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline bool carry_ok(const struct carry *c) {
	return c->error.text[0] == 0;
}
/* Write a marker word between two structs: a read error then names its place in the stream. */
void carry_mark(struct carry *c, const char *name);

/* A number, a flag or an enum (any integer type or bit-field); a read value must fit into it. */
#define CARRY(c, lvalue)                                                                                               \
	do {                                                                                                               \
		uint64_t carry_value = (uint64_t)(lvalue);                                                                     \
		carry_number((c), &carry_value);                                                                               \
		if (!(c)->saving) {                                                                                            \
			(lvalue) = carry_value;                                                                                    \
			if ((uint64_t)(lvalue) != carry_value) carry_fail((c), "%s does not fit", #lvalue);                        \
		}                                                                                                              \
	} while (0)
/* The same, at most max (enums). */
#define CARRY_UPTO(c, lvalue, max)                                                                                     \
	do {                                                                                                               \
		CARRY(c, lvalue);                                                                                              \
		if ((uint64_t)(lvalue) > (uint64_t)(max)) {                                                                    \
			carry_fail((c), "%s is out of its range", #lvalue);                                                        \
			(lvalue) = 0;                                                                                              \
		}                                                                                                              \
	} while (0)
void carry_number(struct carry *c, uint64_t *value);
/* A number of elements, of at least one byte each. */
size_t carry_count(struct carry *c, size_t n);
void carry_text(struct carry *c, char **text); /* may be NULL */
/* Never NULL without an error. */
void carry_name(struct carry *c, char **text);
void carry_bytes(struct carry *c, void *data, size_t n); /* always n */
void carry_chunk(struct carry *c, struct chunk *chunk);  /* data may be NULL */
void carry_rope(struct carry *c, struct rope *rope);     /* the same; restored in one piece */
/* Only for loading: return the bytes of a chunk in the input; NULL: none, or an error. */
const char *carry_borrow(struct carry *c, size_t *n);
void carry_buf(struct carry *c, struct buf *b);
void carry_lines(struct carry *c, struct lines *l); /* between reads */
void carry_words(struct carry *c, struct words *w);
/* A set of names; *there is false for no set at all (NULL: there is one). */
void carry_set(struct carry *c, struct names *s, bool *there);
/* The remaining time of a timer; -1: not set, or an error. */
int64_t carry_left(struct carry *c, const struct loop_timer *t);
/* A timer with its remaining time; it must have been initialised. NULL: read and ignore it. */
void carry_timer(struct carry *c, struct loop_timer *t);
/* A descriptor of this type (S_IFSOCK, S_IFIFO, S_IFREG; 0: any), or -1. */
void carry_fd(struct carry *c, int *fd, mode_t type);
void carry_client(struct carry *c, struct client **client);
void carry_attachment(struct carry *c, struct attachment **attachment);
