/* SPDX-License-Identifier: MIT
 *
 * The members of a line that routing reads, found in one pass. The control frame, and Claude Code, have them at these
 * places; any other dialect fills the same struct from its own.
 */
#pragma once

#include "wire/scan.h"

/* The members that routing reads. All spans point into the line. */
struct envelope {
	struct span type, subtype, request_id, uuid, session_id; /* top level */
	struct span request, response, message;                  /* top level, whole values */
	struct span is_replay, is_error;                         /* top level isReplay, is_error */
	struct span user_message_uuid, user_message_uuids;       /* top level */
	struct span parent_tool_use_id;                          /* top level */
	struct span inner_subtype, inner_request_id;             /* of `request`, else of `response` */
	struct span inner_response;                              /* response.response */
	bool reserved;                                           /* it may use a reserved name (wire/disown.h): check it */
};

/* Scan p[0..n), one line without its newline. True: it is one balanced object (surrounding spaces allowed), *e is set.
 * False: *e is undefined. Linear time. */
bool scan_envelope(const char *p, size_t n, struct envelope *e);
/* The same without vector instructions: for tests. */
bool scan_envelope_plain(const char *p, size_t n, struct envelope *e);

/* Return the member of *e for a top-level key (raw, without quotes), or NULL for any other key. */
struct span *envelope_slot(struct envelope *e, const char *key, size_t n);
