/* SPDX-License-Identifier: MIT */
#include "core/router.h"

#include <string.h>

struct session *router_find(struct router *r, const char *name) {
	struct session *s = NULL;
	HASH_FIND_STR(r->sessions, name, s);
	return s;
}

struct session *router_find_number(const struct router *r, uint64_t id) {
	for (struct session *s = r->sessions; id && s; s = s->hh.next)
		if (s->id == id) return s;
	return NULL;
}

static bool is_in(const struct session *s, const char *id) {
	return s->conversation_id && strcmp(s->conversation_id, id) == 0;
}

static bool has_asked_for(const struct session *s, const char *id) {
	bool silent = !s->conversation_id && !s->launch.fork; /* the child has printed nothing yet */
	if (s->resumed_id) return strcmp(s->resumed_id, id) == 0;
	return silent && launch_asks_for(&s->launch, session_dialect(s), id);
}

bool router_has_conversation(const struct session *s, const char *id) {
	return is_in(s, id) || has_asked_for(s, id);
}

struct session *router_find_conversation(struct router *r, const char *id) {
	for (struct session *s = r->sessions; s; s = s->hh.next)
		if (is_in(s, id)) return s;
	for (struct session *s = r->sessions; s; s = s->hh.next)
		if (has_asked_for(s, id)) return s;
	return NULL;
}

void router_in_use_text(struct error *out, const char *holder) {
	if (holder)
		error_set(out,
				  "it is that of session %.255s: attach to that (PLENUM_SESSION=%.255s for plenum-shim), or fork the "
				  "conversation",
				  holder, holder);
	else
		error_set(out, "it is that of another session: fork the conversation");
}

struct session *router_named(struct router *r, const char *name) {
	struct session *s = router_find(r, name);
	return s ? s : router_find_conversation(r, name);
}

/* A client keeps its place in the list while it waits, so that the longest waiting client is served first. */
void router_hold(struct client *c, struct chunk line) {
	client_hold(c, line);
	if (c->releasing) return;
	list_del(&c->node);
	list_add_tail(&c->world->clients, &c->node);
}

bool router_is_shim(const struct client *c) {
	const struct attachment *a = c->attachment;
	return a && a->ephemeral && c->filter.quiet;
}

struct client *router_client(struct router *r, uint64_t number) {
	struct client *c;
	LIST_FOR_EACH (c, &r->clients, struct client, node)
		if (c->id == number) return c;
	return NULL;
}

void router_add_client(struct router *r, struct client *c) {
	c->id = ++r->clients_seen;
	r->n_clients++;
	list_add_tail(&r->clients, &c->node);
}

size_t router_children(const struct router *r) {
	size_t n = 0;
	for (const struct session *s = r->sessions; s; s = s->hh.next) n += s->agent || s->starting;
	return n;
}

bool router_is_in(const struct client *c, const struct session *s) {
	const struct client *one;
	if (c->attachment && c->attachment->session == s) return true;
	LIST_FOR_EACH (one, &c->channels, const struct client, channel)
		if (one->attachment && one->attachment->session == s) return true;
	return false;
}

void router_subscribe(struct client *c, bool on) {
	if (on == c->subscribed) return;
	c->subscribed = on;
	if (on)
		c->world->n_subscribers++;
	else
		c->world->n_subscribers--;
}
