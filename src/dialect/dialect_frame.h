/* SPDX-License-Identifier: MIT
 *
 * The frame of a connection: how requests, answers and notices of the daemon look there. Dialects with the same frame
 * share their clients: a client can attach to sessions of its own frame alone.
 */
#pragma once

#include "wire/chunk.h"
#include "wire/scan.h"

struct dialect_frame {
	/* Return a notice (wire/notice.h) in this frame: a chunk owned by the caller, data NULL without memory. */
	struct chunk (*put_notice)(struct chunk notice);
	/* Return the object with the members of a notice in this frame. */
	struct span (*notice)(struct span line);
	const char *lost; /* the notice that another one is missing, for want of memory */
	/* A line of the child (envelope.reserved), or in addition an answer of it: rename members and methods of the
	 * daemon. Returns as put_notice(). initialize: it answers an initialize of the daemon. */
	struct chunk (*disown)(struct chunk line);
	struct chunk (*disown_answer)(struct chunk line, bool initialize);
	const char *attach;     /* the name of the verb to attach, with quotes */
	bool answers_bad_lines; /* a line that breaks the protocol gets an error without an id, else a notice */
};

/* The text of `lost`. */
#define DIALECT_FRAME_LOST "the daemon is out of memory: a notice is missing here"
