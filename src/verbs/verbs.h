/* SPDX-License-Identifier: MIT
 *
 * The plenum_ requests: one table of verbs with their members. Small and untrusted, so parsed strictly with jansson.
 * Verbs of the daemon as a whole use struct verbs_host, provided by the server. Source: docs/contract.md 3.2,
 * plenum-protocol(7) VERBS.
 */
#pragma once

#include "base/error.h"
#include "core/router.h"

struct verbs_host {
	const char *socket_path, *state_dir;
	const char *config; /* its file; NULL: the default places */
	int64_t started_ms; /* wall clock */
	/* Read the configuration again; false: the old one is kept, error has the cause. */
	bool (*reload)(struct verbs_host *h, const struct buf *text, struct error *error);
	void (*shut_down)(struct verbs_host *h, bool kill_now);
	/* Start an upgrade to the installed binary; the new one answers the client, or this one sends the cause of a
	 * failure. */
	void (*upgrade)(struct verbs_host *h, struct client *c, struct span id);
};

/* struct router_events.verb; r->server is a struct verbs_host. */
void verbs_run(struct router *r, struct client *c, struct chunk line, const struct envelope *e);
