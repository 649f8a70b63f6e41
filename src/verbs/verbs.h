/* SPDX-License-Identifier: MIT
 *
 * The plenum_ requests: one table of verbs, each with the members that it takes. Small and untrusted, so read with
 * jansson, strictly. What concerns the daemon as a whole goes through struct verbs_host, which the server fills in.
 * Source: DESIGN 3.2, plenum-protocol(7) VERBS.
 */
#pragma once

#include "core/router.h"

struct verbs_host {
	const char *socket_path, *state_dir;
	const char *config; /* its file; NULL: the usual places */
	int64_t started_ms; /* wall clock */
	/* Reads the configuration again; false: the old one is kept, error says why. */
	bool (*reload)(struct verbs_host *h, const struct buf *text, char *error, size_t size);
	void (*shut_down)(struct verbs_host *h, bool kill_now);
	/* The binary that is installed now takes over, soon; whoever asked is answered by it, or hears why not. */
	void (*upgrade)(struct verbs_host *h, struct client *c, struct span id);
};

/* struct router_events.verb; r->server is a struct verbs_host. */
void verbs_run(struct router *r, struct client *c, struct chunk line, const struct envelope *e);
