/* SPDX-License-Identifier: MIT
 *
 * A client's line, checked before any byte of it may reach the child: the child exits at the first line that it cannot
 * take (PROTOCOL 3), and that would take the session from everybody.
 *
 * Valid is: RFC 8259 with lone surrogate escapes accepted, valid UTF-8, one object, at most MESSAGE_MAX_DEPTH levels;
 * numbers of any size. A duplicate of a key that routing reads (type, request_id, request, subtype at the top level;
 * subtype, request_id in `request`; subtype, request_id, response in `response`; role, content in `message`) is
 * refused (so is one of response, message, uuid, session_id at the top level), and so is any key of letters, digits
 * and underscores that is spelled with escapes in one of these places or in response.response: the child could read it
 * otherwise than we do.
 */
#pragma once

#include "wire/chunk.h"
#include "wire/scan.h"

#define MESSAGE_MAX_DEPTH 4096
#define MESSAGE_ERROR_MAX 512

enum message_kind {
	MESSAGE_OTHER,   /* any type that the child survives, passed on as it is */
	MESSAGE_USER,    /* a prompt */
	MESSAGE_REQUEST, /* control_request */
	MESSAGE_ANSWER,  /* control_response */
	MESSAGE_CANCEL,  /* control_cancel_request */
};

struct message {
	enum message_kind kind;
	struct envelope env;       /* spans into the checked line */
	struct span role, content; /* of `message` */
	struct span text;          /* of a prompt: its content, or the text of its first block; else SPAN_NONE */
	bool too_many;             /* refused for a limit on a count, not for what it is */
};

/* p[0..n): a line without LF or CR. True: it is valid JSON by the rules above and *env is filled. False: *error is a
 * static sentence for a person, *at the offset. */
bool message_scan(const char *p, size_t n, struct envelope *env, const char **error, size_t *at);

/* The whole check of a client's line: message_scan(), then what the child survives. On success *m is filled. Where the
 * line is an old form ({"type":"user","prompt":"..."} or {"type":"user","content":"..."}) it is brought into the form
 * that the child takes: *rewritten then holds the new line (the caller owns it) and m->env points into it; else
 * *rewritten is CHUNK_NONE. False: error[0..size) says what is wrong and what to write instead; request_id is the
 * line's request id span (a string or an integer) where one can be read, else SPAN_NONE, so
 * that an error can be answered under it; m->kind is filled then too, where the type can be read. A request whose id
 * stands inside `request` alone (an old form) has m->env.request_id point there. Not to be trusted for being plain:
 * values other than `type`, the subtypes and `role` may be spelled with escapes. */
bool message_check(const char *p, size_t n, struct message *m, struct chunk *rewritten, char *error, size_t size,
				   struct span *request_id);

/* The same check piece by piece, for a line that one turn of the loop is too short for. It borrows p[0..n). */
struct message_check;
struct message_check *message_check_new(const char *p, size_t n); /* NULL without memory */
void message_check_free(struct message_check *k);                 /* NULL does no harm */
/* About so many bytes further. True: it is over. No byte is looked at again because of the interruption. */
bool message_check_step(struct message_check *k, size_t bytes);
/* Once it is over: as message_check(), but for the error, which is borrowed from k. */
bool message_check_result(struct message_check *k, struct message *m, struct chunk *rewritten, const char **error,
						  struct span *request_id);

/* Every byte of any JSON text, not only an object (unit tests, fuzzing, messages of MCP servers). */
bool message_valid_json(const char *p, size_t n, const char **error, size_t *at);
