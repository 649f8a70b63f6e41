/* SPDX-License-Identifier: MIT
 *
 * A line of a client, checked before any byte of it may reach the child: a child may exit at the first line that it
 * cannot take, or drop it without an answer, which would hurt all clients of the session.
 */
#pragma once

#include "base/error.h"
#include "dialect/envelope.h"
#include "wire/chunk.h"
#include "wire/scan.h"

enum message_kind {
	MESSAGE_OTHER,   /* any other line that the child accepts, passed on unchanged */
	MESSAGE_USER,    /* a prompt */
	MESSAGE_REQUEST, /* a request: to the child, or a plenum_ one to the daemon */
	MESSAGE_ANSWER,  /* the answer to an ask */
	MESSAGE_CANCEL,  /* the client withdraws its request */
};

struct message {
	enum message_kind kind;
	struct envelope env;       /* spans into the checked line */
	struct span role, content; /* of `message` */
	struct span text;          /* of a prompt: its content, or the text of its first block; else SPAN_NONE */
	bool command;              /* a prompt that is a command of the child itself */
	bool joins;                /* a prompt for the running turn: it is never queued */
	const char *code;          /* of a refusal, static; NULL: PLENUM_E_BAD_LINE */
};

/* Check the line p[0..n), without LF or CR. On success *m is filled. A line of an old form is converted: *rewritten is
 * the new line (the caller owns it) and m->env points into it; else *rewritten is CHUNK_NONE. False: error has
 * the error and the correct form; request_id is the span of the line's request id (a string or an integer) if it can be
 * read, else SPAN_NONE, so that an error can be answered under it; m->kind is filled if it can be read. */
typedef bool message_check_fn(const char *p, size_t n, struct message *m, struct chunk *rewritten, struct error *error,
							  struct span *request_id);

/* The same check in pieces, for a line too long for one turn of the loop. */
struct message_check;
struct message_steps {
	struct message_check *(*new)(const char *p, size_t n); /* borrows p[0..n); NULL without memory */
	void (*free)(struct message_check *k);                 /* NULL is allowed */
	/* Check about this many bytes more. True: it is over. The interruption repeats no work. */
	bool (*step)(struct message_check *k, size_t bytes);
	/* At the end: the result as of message_check_fn, except that the error is borrowed from k. */
	bool (*result)(struct message_check *k, struct message *m, struct chunk *rewritten, const char **error,
				   struct span *request_id);
};
