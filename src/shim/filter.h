/* SPDX-License-Identifier: MIT
 *
 * The lines of the daemon, on their way to the SDK: what its argv and environment did not ask for is left out, and so
 * is everything between the daemon and the shim. Lines pass in pieces as they come; only as much is held as it takes to
 * know what a line is (usually its first 20 bytes), or a whole line where members have to be taken out of it that it
 * has because of the daemon; at most FILTER_HELD. A longer line passes as it is.
 *
 * Source: DESIGN 9.1, PROTOCOL 1.3 and 2.
 */
#pragma once

#include "shim/glance.h"
#include "shim/options.h"
#include "shim/sink.h"

#define FILTER_HELD ((size_t)1024 * 1024)

enum filter_mode { FILTER_UNKNOWN, FILTER_PASS, FILTER_DROP, FILTER_HOLD };

struct filter {
	const struct options *options;
	struct sink *out;
	/* A whole line without its LF that may be ours: a plenum_event or a control_response.
	 * True: it was; false: it is the SDK's (never the case for a plenum_event). */
	bool (*mine)(void *ctx, const char *line, size_t n);
	void *ctx;
	bool uuids;      /* the SDK gives its prompts uuids, so it wants to hear of their lifecycle */
	bool mute;       /* nothing reaches the SDK any more */
	bool last_error; /* the last result was an error: the CLI's exit code */
	bool answered;   /* a result came since this was set to false */
	struct glance glance;
	enum filter_mode mode;
	struct buf held;
};

void filter_init(struct filter *f, const struct options *o, struct sink *out);
void filter_free(struct filter *f);
void filter_feed(struct filter *f, const char *p, size_t n);
