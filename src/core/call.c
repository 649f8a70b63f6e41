/* SPDX-License-Identifier: MIT */
#include "core/call.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

void calls_init(struct calls *c, bool numbers) {
	*c = (struct calls){.numbers = numbers};
	list_init(&c->order);
}

void calls_free(struct calls *all) {
	struct call *c;
	LIST_FOR_EACH (c, &all->order, struct call, node) call_end(all, c);
}

static char *make_key(uint64_t number, struct span id) {
	return str_printf("%llu:%.*s", (unsigned long long)number, (int)id.n, id.p ? id.p : "");
}

static void free_call(struct call *c) {
	free(c->asker_id);
	free(c->key);
	free(c->value);
	free(c);
}

static bool enlist(struct calls *all, struct call *c) {
	if (!HASH_TRY_ADD(hh, all->by_id, c->id, strlen(c->id), c)) return false;
	if (c->key && !HASH_TRY_ADD(hh_asker, all->by_asker, c->key, strlen(c->key), c)) {
		HASH_DELETE(hh, all->by_id, c);
		return false;
	}
	list_add_tail(&all->order, &c->node);
	all->n++;
	return true;
}

struct call *call_new(struct calls *all, struct session *s, struct loop *loop, enum call_purpose purpose,
					  struct client *asker, uint64_t asker_number, struct span asker_id, void (*on_timer)(void *)) {
	char random[9];
	struct call *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	str_random_hex(random, 8);
	if (all->numbers)
		snprintf(c->id, sizeof c->id, "%llu", (unsigned long long)++all->counter);
	else
		snprintf(c->id, sizeof c->id, "req_%llu_%s", (unsigned long long)++all->counter, random);
	c->session = s;
	c->purpose = purpose;
	c->asker = asker;
	loop_timer_init(&c->timer, loop, on_timer, c);
	if (asker_id.p) {
		c->asker_id = strndup(asker_id.p, asker_id.n);
		c->key = make_key(asker_number, asker_id);
	}
	bool whole = !asker_id.p || (c->asker_id && c->key);
	if (whole && enlist(all, c)) return c;
	free_call(c);
	return NULL;
}

struct call *call_find(struct calls *all, struct span id) {
	struct call *c = NULL;
	struct span text = all->numbers ? id : span_content(id); /* "1" is not 1 */
	if (text.p) HASH_FIND(hh, all->by_id, text.p, text.n, c);
	return c;
}

bool calls_made(const struct calls *all, struct span id) {
	int64_t n;
	struct span text = span_content(id);
	if (all->numbers) return span_int(id, &n) && n > 0 && (uint64_t)n <= all->counter;
	return text.n > 4 && memcmp(text.p, "req_", 4) == 0;
}

struct span call_raw_id(const struct calls *all, const struct call *c, char out[CALL_ID_MAX + 2]) {
	const char *quote = all->numbers ? "" : "\"";
	int n = snprintf(out, CALL_ID_MAX + 2, "%s%s%s", quote, c->id, quote);
	return (struct span){out, (size_t)n};
}

struct call *call_of_prompt(struct calls *all, const char *uuid) {
	struct call *c;
	LIST_FOR_EACH (c, &all->order, struct call, node)
		if (c->purpose == CALL_PROMPT && c->value && strcmp(c->value, uuid) == 0) return c;
	return NULL;
}

struct call *call_of(struct calls *all, uint64_t number, struct span id) {
	struct call *c = NULL;
	_cleanup_free_ char *key = make_key(number, id);
	if (key) HASH_FIND(hh_asker, all->by_asker, key, strlen(key), c);
	return c;
}

static void forget_key(struct calls *all, struct call *c) {
	if (c->key) HASH_DELETE(hh_asker, all->by_asker, c);
	free(c->key);
	c->key = NULL;
}

void call_orphan(struct calls *all, struct call *c) {
	forget_key(all, c);
	share_orphan(&c->charge);
	c->asker = NULL;
	if (c->purpose == CALL_CLIENT) c->purpose = CALL_SILENT;
}

void call_end(struct calls *all, struct call *c) {
	HASH_DELETE(hh, all->by_id, c);
	forget_key(all, c);
	list_del(&c->node);
	share_end(&c->charge);
	all->n--;
	loop_timer_stop(&c->timer);
	free_call(c);
}

static void carry_members(struct carry *c, struct call *call, const struct dialect *d) {
	char *what = (char *)(uintptr_t)call->what;
	carry_bytes(c, call->id, sizeof call->id);
	call->id[sizeof call->id - 1] = 0;
	carry_text(c, &call->key);
	CARRY_UPTO(c, call->purpose, CALL_KEPT);
	carry_client(c, &call->asker);
	carry_text(c, &call->asker_id);
	CARRY_UPTO(c, call->act, ACT_ABOUT);
	carry_text(c, &what);
	carry_text(c, &call->value);
	carry_timer(c, &call->timer);
	CARRY(c, call->child);
	if (c->saving) return;
	call->what = dialect_gate_what(d->gate, d->n_gate, what);
	free(what);
	if (call->purpose == CALL_CLIENT && (!call->asker || !call->asker_id || !call->key))
		carry_fail(c, "a request has no asker");
}

void calls_carry(struct carry *c, struct calls *all, struct session *s, struct loop *loop, const struct dialect *d,
				 void (*on_timer)(void *)) {
	struct call *call = LIST_OF(all->order.next, struct call, node);
	carry_mark(c, "calls");
	CARRY(c, all->numbers);
	CARRY(c, all->counter);
	size_t n = carry_count(c, all->n);
	for (size_t i = 0; i < n && carry_ok(c); i++) {
		if (c->saving) {
			carry_members(c, call, d);
			call = LIST_OF(call->node.next, struct call, node);
			continue;
		}
		if (!(call = calloc(1, sizeof *call))) {
			carry_fail(c, "out of memory");
			return;
		}
		call->session = s;
		loop_timer_init(&call->timer, loop, on_timer, call);
		carry_members(c, call, d);
		if (enlist(all, call)) continue;
		carry_fail(c, "out of memory");
		loop_timer_stop(&call->timer);
		free_call(call);
	}
}
