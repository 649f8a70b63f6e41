/* SPDX-License-Identifier: MIT
 *
 * The members of a line that routing reads, found in one pass. The control frame, and Claude Code, have them at these
 * places; any other dialect fills the same struct from its own.
 */
#pragma once

#include "wire/scan.h"

/* The members that routing reads, by their meaning. All spans point into the line, or are static. */
struct envelope {
	struct span type, subtype; /* what the line is: `type` for the filters of clients and the gate, `subtype` besides */
	struct span request_id;    /* of a request, of an ask and of a withdrawal: its id */
	struct span uuid;          /* of a prompt, and of a line that a client can name to be replayed from */
	struct span session_id;    /* the conversation; of a client's line: the session */
	struct span request;       /* of a request and of an ask: its body, an object */
	struct span response;      /* of an answer: its body, an object */
	struct span message;       /* of a prompt: its body */
	struct span is_replay;     /* true: the child repeats a prompt */
	struct span is_error;      /* of the end of a turn: it failed */
	struct span user_message_uuid, user_message_uuids; /* of a turn's begin or end: its prompt; an array of them */
	struct span parent_tool_use_id;                    /* a string: not the main turn's line */
	struct span inner_subtype;    /* of a request and of an ask: its name, a string; of an answer: how it ended */
	struct span inner_request_id; /* of an answer: the id of the request or ask */
	struct span inner_response;   /* of an answer: the content of its body */
	bool reserved;                /* it may use a reserved name (wire/disown.h): check it */
	bool escaped;                 /* JSON-RPC: a key beside these members has escapes, and may be one of them */
};

/* Scan p[0..n), one line without its newline. True: it is one balanced object (surrounding spaces allowed), *e is set.
 * False: *e is undefined. Linear time. */
bool scan_envelope(const char *p, size_t n, struct envelope *e);
/* The same without vector instructions: for tests. */
bool scan_envelope_plain(const char *p, size_t n, struct envelope *e);

/* Return the member of *e for a top-level key (raw, without quotes), or NULL for any other key. */
struct span *envelope_slot(struct envelope *e, const char *key, size_t n);
