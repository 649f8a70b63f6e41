/* SPDX-License-Identifier: MIT
 *
 * Filters the lines from the daemon to the SDK: drops lines that its argv and environment did not ask for, and lines
 * between the daemon and the shim. Lines pass in pieces as received; buffered are only the bytes that identify a line
 * (usually the first 20), or a whole line if members must be removed that it has because of the daemon; at most
 * FILTER_HELD. A longer line passes unchanged.
 *
 * Source: docs/contract.md 9.1, protocol-facts 1.3 and 2.
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
	/* Called with a whole line without its newline that may be for the shim: a plenum_event or a control_response.
	 * True: it was; false: it is for the SDK (never for a plenum_event). */
	bool (*mine)(void *ctx, const char *line, size_t n);
	void *ctx;
	bool uuids;      /* the SDK gives its prompts uuids, so it gets their lifecycle */
	bool mute;       /* drop all lines */
	bool last_error; /* the last result was an error: the CLI's exit code */
	bool answered;   /* a result was received since this was set to false */
	struct glance glance;
	enum filter_mode mode;
	struct buf held;
};

void filter_init(struct filter *f, const struct options *o, struct sink *out);
void filter_free(struct filter *f);
void filter_feed(struct filter *f, const char *p, size_t n);
