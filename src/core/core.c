/* SPDX-License-Identifier: MIT */
#include "core/core.h"
#include "core/descent.h"
#include "core/from_child.h"
#include "core/gate.h"
#include "core/warm.h"

#include <unistd.h>

struct router *core_new(struct loop *loop, struct children *children, struct settings *settings,
						const struct router_events *events, void *server) {
	struct router *r = calloc(1, sizeof *r);
	if (!r) return NULL;
	r->loop = loop;
	r->children = children;
	r->settings = settings_ref(settings);
	r->events = events;
	r->child_events = &from_child_events;
	r->server = server;
	list_init(&r->clients);
	list_init(&r->asked);
	shares_init(&r->shares, getuid());
	shares_limit(&r->shares, &settings->limits);
	r->descent = descent_new(r);
	size_t n = 0;
	while (dialect_list[n]) n++;
	r->gates = calloc(n, sizeof *r->gates);
	for (size_t i = 0; r->gates && i < n; i++) gate_init(&r->gates[i], dialect_list[i]);
	r->warm = r->descent && r->gates ? warm_new(r) : NULL;
	if (r->warm) return r;
	core_free(r);
	return NULL;
}

void core_free(struct router *r) {
	if (!r) return;
	warm_free(r->warm);
	free(r->gates);
	login_unref(r->login);
	descent_free(r->descent);
	lines_pool_free(&r->pool);
	settings_unref(r->settings);
	free(r);
}
