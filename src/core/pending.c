/* SPDX-License-Identifier: MIT */
#include "core/pending.h"

#include "base/fd.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

void pendings_init(struct pendings *p) {
	memset(p, 0, sizeof *p);
	list_init(&p->order);
}

static void free_pending(struct pending *p) {
	loop_timer_stop(&p->timer);
	chunk_drop(&p->line);
	free(p->child_id);
	free(p->subtype);
	free(p->tool);
	free(p->event);
	free(p->asked);
	free(p);
}

static void unlink_pending(struct pendings *all, struct pending *p) {
	HASH_DELETE(hh, all->by_id, p);
	HASH_DELETE(hh_child, all->by_child, p);
	list_del(&p->node);
	all->n--;
	if (pending_for_person(p)) all->n_person--;
}

void pendings_free(struct pendings *all) {
	struct pending *p;
	LIST_FOR_EACH (p, &all->order, struct pending, node) {
		unlink_pending(all, p);
		free_pending(p);
	}
}

bool pending_for_person(const struct pending *p) {
	return p->kind == ASK_TOOL || p->kind == ASK_ELICITATION || p->kind == ASK_UNKNOWN;
}

/* The child's line with our id in place of its own. */
static bool make_line(struct pending *p, const struct envelope *e, struct chunk line) {
	char id[PENDING_ID_MAX + 2];
	int n = snprintf(id, sizeof id, "\"%s\"", p->id);
	struct envelope own;
	p->line = dialect_replace(line.data, line.len, e->request_id, id, (size_t)n);
	if (!p->line.data || !scan_envelope(p->line.data, p->line.len, &own)) return false;
	p->request = own.request;
	return true;
}

struct pending *pending_new(struct pendings *all, struct session *s, struct loop *loop, const struct envelope *e,
							struct chunk line, void (*on_timer)(void *)) {
	char random[9];
	struct pending *p = calloc(1, sizeof *p);
	if (!p) return NULL;
	str_random_hex(random, 8);
	snprintf(p->id, sizeof p->id, "req_%llu_%s", (unsigned long long)++all->counter, random);
	p->session = s;
	p->kind = dialect_ask_kind(e);
	p->child_id = strndup(e->request_id.p, e->request_id.n);
	p->subtype = span_dup(e->inner_subtype, NULL);
	p->tool = span_dup(span_member(e->request, "tool_name"), NULL);
	p->since = now_ms();
	p->since_real = now_real_ms();
	loop_timer_init(&p->timer, loop, on_timer, p);
	if (!p->child_id || !make_line(p, e, line)) {
		free_pending(p);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, all->by_id, p->id, strlen(p->id), p);
	HASH_ADD_KEYPTR(hh_child, all->by_child, p->child_id, strlen(p->child_id), p);
	list_add_tail(&all->order, &p->node);
	all->n++;
	if (pending_for_person(p)) all->n_person++;
	return p;
}

bool pending_set_member(struct pending *p, const char *member, const char *json) {
	struct envelope e;
	struct span old = span_member(p->request, member);
	struct chunk line = dialect_replace(p->line.data, p->line.len, old, json, strlen(json));
	if (!line.data || !scan_envelope(line.data, line.len, &e)) {
		chunk_drop(&line);
		return false;
	}
	chunk_drop(&p->line);
	p->line = line;
	p->request = e.request;
	return true;
}

struct pending *pending_find(struct pendings *all, struct span id) {
	struct pending *p = NULL;
	struct span text = span_content(id);
	if (text.p) HASH_FIND(hh, all->by_id, text.p, text.n, p);
	return p;
}

struct pending *pending_find_child(struct pendings *all, struct span id) {
	struct pending *p = NULL;
	if (id.p) HASH_FIND(hh_child, all->by_child, id.p, id.n, p);
	return p;
}

bool pending_was_settled(const struct pendings *all, struct span id) {
	struct span text = span_content(id);
	if (!text.p || text.n >= PENDING_ID_MAX) return false;
	for (size_t i = 0; i < SETTLED_KEPT; i++)
		if (strlen(all->settled[i]) == text.n && memcmp(all->settled[i], text.p, text.n) == 0) return text.n > 0;
	return false;
}

bool pending_was_asked(const struct pending *p, const void *who) {
	for (size_t i = 0; i < p->n_asked; i++)
		if (p->asked[i] == who) return true;
	return false;
}

bool pending_ask(struct pending *p, void *who) {
	if (pending_was_asked(p, who)) return false;
	if (p->n_asked == p->cap_asked) {
		size_t cap = p->cap_asked ? p->cap_asked * 2 : 4;
		void **more = realloc(p->asked, cap * sizeof *more);
		if (!more) return false;
		p->asked = more;
		p->cap_asked = cap;
	}
	p->asked[p->n_asked++] = who;
	return true;
}

bool pending_forget(struct pending *p, const void *who) {
	for (size_t i = 0; i < p->n_asked; i++)
		if (p->asked[i] == who) {
			p->asked[i] = p->asked[--p->n_asked];
			return true;
		}
	return false;
}

void pending_settle(struct pendings *all, struct pending *p) {
	memcpy(all->settled[all->settled_at], p->id, PENDING_ID_MAX);
	all->settled_at = (all->settled_at + 1) % SETTLED_KEPT;
	unlink_pending(all, p);
	free_pending(p);
}
