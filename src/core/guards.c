/* SPDX-License-Identifier: MIT */
#include "core/guards.h"

#include "base/bundle.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/str.h"

#include <string.h>

/* A stand-in for unreadable guards: asked about every tool, and no client can come back to it. */
#define LOST_CALLBACK "\"plenum_guards_lost\""

static void put_entry(const struct dialect_hooks *d, struct buf *b, const struct hook_entry *e) {
	const struct hook *h;
	bool first = true;
	buf_printf(b, "%s{", b->len ? "," : "");
	buf_puts(b, e->members);
	buf_printf(b, "%s\"plenum_owner_gone\":\"%s\",\"%s\":[", *e->members ? "," : "",
			   e->drop_when_gone ? "drop" : "deny", d->callbacks);
	LIST_FOR_EACH (h, &e->hooks, const struct hook, node) {
		buf_printf(b, "%s%s", first ? "" : ",", h->callback);
		first = false;
	}
	buf_puts(b, "]}");
}

static const struct list *entries_of(const struct owner *o) {
	return o->staging ? &o->staged : &o->entries;
}

static bool has_guards(const struct owner *o) {
	const struct hook_entry *e;
	LIST_FOR_EACH (e, entries_of(o), const struct hook_entry, node)
		if (e->guard) return true;
	return false;
}

/* proven: for each entry, in this order, whether a child has taken it. */
static void put_owner(const struct dialect_hooks *d, struct buf *b, const struct owner *o) {
	struct bundle events = {0}, proven = {0};
	const struct hook_entry *e;
	buf_printf(b, "%s{\"uid\":%u,\"name\":", b->len ? "," : "[", o->uid);
	if (o->name)
		str_put_json(b, o->name, strlen(o->name));
	else
		buf_puts(b, "null");
	LIST_FOR_EACH (e, entries_of(o), const struct hook_entry, node) {
		if (!e->guard) continue;
		struct buf *flags = bundle_part(&proven, e->event);
		put_entry(d, bundle_part(&events, e->event), e);
		buf_printf(flags, "%s%s", flags->len ? "," : "", e->proven ? "true" : "false");
	}
	buf_puts(b, ",\"hooks\":");
	bundle_put(&events, b);
	buf_puts(b, ",\"proven\":[");
	bundle_put_elements(&proven, b);
	buf_puts(b, "]}");
	bundle_free(&events);
	bundle_free(&proven);
}

bool guards_text(const struct registry *r, char **text) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	const struct owner *o;
	*text = NULL;
	LIST_FOR_EACH (o, &r->owners, const struct owner, node)
		if (has_guards(o)) put_owner(r->dialect, &b, o);
	if (b.len) buf_putc(&b, ']');
	bool ok = !b.failed;
	if (ok && b.len) *text = buf_steal(&b, NULL);
	buf_free(&b);
	return ok;
}

/* Entries come and go with a version, and are proven with a version taken. owner_merge() moves them without one. */
uint64_t guards_mark(const struct registry *r) {
	const struct owner *o;
	uint64_t h = hash_mix(hash_mix(UINT64_MAX, r->version), r->taken);
	LIST_FOR_EACH (o, &r->owners, const struct owner, node) {
		if (o->staging) return 0;
		if (!list_empty(&o->entries)) h = hash_mix(h, (uintptr_t)o);
	}
	return h;
}

static bool restore_owner(struct registry *r, struct session *s, struct loop *loop, struct span text,
						  void (*on_grace)(void *)) {
	struct span name = span_member(text, "name"), flags = span_member(text, "proven"), flag;
	struct hook_entry *e;
	size_t at = 0;
	int64_t uid;
	if (!span_int(span_member(text, "uid"), &uid) || uid < 0 || uid > UINT32_MAX) return false;
	_cleanup_free_ char *own = span_is_string(name) ? span_dup(name, NULL) : NULL;
	struct owner *o = registry_add_owner(r, s, loop, NULL, (uid_t)uid, own, on_grace);
	if (!o) return false;
	if (registry_set_hooks(r, o, span_member(text, "hooks")) || !owner_guards(o)) {
		registry_drop_owner(r, o);
		return false;
	}
	/* Flags are in the order of the text. An entry that one child has taken is not why another refuses its table. */
	LIST_FOR_EACH (e, &o->entries, struct hook_entry, node)
		e->proven = span_next(flags, &at, &flag) && span_is_true(flag);
	return true;
}

bool guards_restore(struct registry *r, struct session *s, struct loop *loop, const char *text,
					void (*on_grace)(void *)) {
	struct span all = span_of(text), one;
	size_t n = 0;
	bool ok = true;
	for (size_t at = 0; span_next(all, &at, &one); n++) ok = restore_owner(r, s, loop, one, on_grace) && ok;
	if (ok && n) return true;
	guards_lose(r, s, loop, on_grace);
	return false;
}

void guards_lose(struct registry *r, struct session *s, struct loop *loop, void (*on_grace)(void *)) {
	struct buf b = BUF_INIT(4096);
	if (!r->dialect || guards_lost(r)) return;
	buf_puts(&b, "{\"uid\":0,\"name\":null,\"proven\":[true],\"hooks\":");
	r->dialect->put_guard_all(&b, LOST_CALLBACK);
	buf_putc(&b, '}');
	if (b.failed || !restore_owner(r, s, loop, (struct span){b.data, b.len}, on_grace))
		log_no_memory(); /* nothing would guard it */
	buf_free(&b);
}

/* Until the child has a table without it, its calls are allowed. */
bool guards_clear(struct registry *r) {
	struct owner *o;
	struct hook_entry *e;
	bool any = false;
	LIST_FOR_EACH (o, &r->owners, struct owner, node) {
		if (!guards_stand_in(o)) continue;
		LIST_FOR_EACH (e, &o->entries, struct hook_entry, node) e->guard = false;
		registry_drop_owner(r, o);
		any = true;
	}
	return any;
}

bool guards_stand_in(const struct owner *o) {
	const struct hook_entry *e;
	const struct hook *h;
	if (o->name || o->holder) return false;
	LIST_FOR_EACH (e, &o->entries, const struct hook_entry, node)
		LIST_FOR_EACH (h, &e->hooks, const struct hook, node) return strcmp(h->callback, LOST_CALLBACK) == 0;
	return false;
}

bool guards_lost(const struct registry *r) {
	const struct owner *o;
	LIST_FOR_EACH (o, &r->owners, const struct owner, node)
		if (guards_stand_in(o)) return true;
	return false;
}

static bool covers(const struct dialect_hooks *d, const struct hook_entry *e, const char *tool) {
	if (!e->guard || !d->hook_sees_tools(span_of(e->event))) return false;
	_cleanup_free_ char *members = str_printf("{%s}", e->members);
	return !members || d->matcher_covers(span_member(span_of(members), d->matcher), tool);
}

const struct owner *guards_covering(const struct registry *r, const char *tool) {
	const struct owner *o;
	const struct hook_entry *e;
	LIST_FOR_EACH (o, &r->owners, const struct owner, node)
		LIST_FOR_EACH (e, &o->entries, const struct hook_entry, node)
			if (covers(r->dialect, e, tool)) return o;
	return NULL;
}
