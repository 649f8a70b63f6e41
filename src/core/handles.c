/* SPDX-License-Identifier: MIT */
#include "core/handles.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void handles_init(struct handles *all) {
	*all = (struct handles){0};
	list_init(&all->order);
}

void handles_drop(struct handles *all, struct handle *h) {
	list_del(&h->node);
	all->n--;
	free(h->name);
	free(h);
}

void handles_free(struct handles *all) {
	struct handle *h;
	LIST_FOR_EACH (h, &all->order, struct handle, node) handles_drop(all, h);
}

void handles_child_gone(struct handles *all, uint64_t last) {
	struct handle *h;
	LIST_FOR_EACH (h, &all->order, struct handle, node)
		if (h->child <= last) handles_drop(all, h);
}

/* Write the beginning of this client's handles, without a quote; return its length. */
static size_t put_mark(char mark[HANDLES_MARK_MAX], uint64_t client) {
	return (size_t)snprintf(mark, HANDLES_MARK_MAX, "%llu:", (unsigned long long)client);
}

size_t handles_read_mark(struct span name, uint64_t *client) {
	struct span text = span_content(name);
	char again[HANDLES_MARK_MAX];
	uint64_t number = 0;
	size_t n = 0;
	while (n < text.n && n < HANDLES_MARK_MAX - 2 && text.p[n] >= '0' && text.p[n] <= '9')
		number = number * 10 + (uint64_t)(text.p[n++] - '0');
	*client = number;
	if (n == 0 || n == text.n || text.p[n] != ':') return 0;
	return put_mark(again, number) == n + 1 && memcmp(again, text.p, n) == 0 ? n + 1 : 0;
}

struct handle *handles_find(struct handles *all, const char *ends, struct span name) {
	struct handle *h;
	LIST_FOR_EACH (h, &all->order, struct handle, node)
		if ((!ends || strcmp(h->ends, ends) == 0) && span_same(span_of(h->name), name)) return h;
	return NULL;
}

static char *marked(uint64_t client, struct span own) {
	char mark[HANDLES_MARK_MAX];
	put_mark(mark, client);
	return str_printf("\"%s%.*s", mark, (int)own.n - 1, own.p + 1);
}

struct handle *handles_find_own(struct handles *all, uint64_t client, const char *ends, struct span own) {
	_cleanup_free_ char *name = marked(client, own);
	return name ? handles_find(all, ends, span_of(name)) : NULL;
}

struct handle *handles_of(struct handles *all, uint64_t client) {
	struct handle *h;
	LIST_FOR_EACH (h, &all->order, struct handle, node)
		if (h->client == client) return h;
	return NULL;
}

/* Takes over the name. */
static struct handle *add(struct handles *all, uint64_t client, uint64_t child, const char *ends, char *name) {
	struct handle *h = name ? malloc(sizeof *h) : NULL;
	if (!h) {
		free(name);
		return NULL;
	}
	*h = (struct handle){.client = client, .child = child, .ends = ends, .name = name};
	list_add_tail(&all->order, &h->node);
	all->n++;
	return h;
}

struct handle *handles_add(struct handles *all, uint64_t client, uint64_t child, const char *ends, struct span own) {
	struct handle *h;
	char *name = marked(client, own);
	LIST_FOR_EACH (h, &all->order, struct handle, node) {
		if (!name || h->child != child || strcmp(h->ends, ends) != 0 || strcmp(h->name, name) != 0) continue;
		free(name);
		return NULL;
	}
	return add(all, client, child, ends, name);
}

static void carry_one(struct carry *c, struct handles *all, struct handle *h, const struct dialect *d) {
	struct handle one = h ? *h : (struct handle){0};
	char *ends = (char *)(uintptr_t)one.ends;
	CARRY(c, one.client);
	CARRY(c, one.child);
	carry_text(c, &ends);
	carry_text(c, &one.name);
	if (c->saving) return;
	one.ends = dialect_gate_what(d->gate, d->n_gate, ends);
	free(ends);
	if (carry_ok(c) && (!one.ends || !one.name)) carry_fail(c, "a handle has no name");
	if (!carry_ok(c))
		free(one.name);
	else if (!add(all, one.client, one.child, one.ends, one.name))
		carry_fail(c, "out of memory");
}

struct span handles_named(const struct gate_row *row, const struct envelope *e) {
	bool names = row && (row->act == ACT_NAMES || row->act == ACT_OPENS || row->act == ACT_RUNS);
	struct span value = names && row->member ? span_member(e->request, row->member) : SPAN_NONE;
	return span_is_string(value) ? value : SPAN_NONE;
}

bool handles_edit(struct calls *calls, uint64_t client, const struct gate_row *row, const struct envelope *e,
				  struct handles_edit *out) {
	struct span handle = handles_named(row, e);
	if (handle.p) {
		size_t n = put_mark(out->text, client);
		out->edit = (struct splice_edit){handle.p + 1, 0, {{out->text, n}}};
		return true;
	}
	struct span own = row && row->act == ACT_ABOUT ? span_member(e->request, row->member) : SPAN_NONE;
	if (!own.p) return false;
	/* An id of no open request becomes one that no request of the daemon has: the child answers about it. */
	const struct call *call = call_of(calls, client, own);
	out->edit = (struct splice_edit){own.p, own.n, {call ? call_raw_id(calls, call, out->text) : span_of("0")}};
	return true;
}

void handles_ended(struct handles *all, uint64_t client, const struct gate_row *row, const struct envelope *e) {
	struct span own = handles_named(row, e);
	struct handle *h = own.p ? handles_find_own(all, client, row->name, own) : NULL;
	if (h) handles_drop(all, h);
}

void handles_answered(struct handles *all, const struct call *call, bool succeeded) {
	bool opens = call->act == ACT_OPENS || call->act == ACT_RUNS;
	struct handle *h = opens && call->value ? handles_find(all, NULL, span_of(call->value)) : NULL;
	if (h && (call->act == ACT_RUNS || !succeeded)) handles_drop(all, h);
}

void handles_carry(struct carry *c, struct handles *all, const struct dialect *d) {
	struct handle *h = LIST_OF(all->order.next, struct handle, node);
	carry_mark(c, "handles");
	size_t n = carry_count(c, all->n);
	for (size_t i = 0; i < n && carry_ok(c); i++) {
		carry_one(c, all, c->saving ? h : NULL, d);
		if (c->saving) h = LIST_OF(h->node.next, struct handle, node);
	}
}
