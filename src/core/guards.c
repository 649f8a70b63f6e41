/* SPDX-License-Identifier: MIT */
#include "core/guards.h"

#include "base/macros.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static void put_entry(struct buf *b, const struct hook_entry *e) {
	const struct hook *h;
	bool first = true;
	buf_printf(b, "{%s%s\"plenum_owner_gone\":\"%s\",\"hookCallbackIds\":[", e->members, *e->members ? "," : "",
			   e->drop_when_gone ? "drop" : "deny");
	LIST_FOR_EACH (h, &e->hooks, const struct hook, node) {
		buf_printf(b, "%s%s", first ? "" : ",", h->callback);
		first = false;
	}
	buf_puts(b, "]}");
}

/* Is it the owner's first guard of its event? */
static bool leads(const struct owner *o, const struct hook_entry *which) {
	const struct hook_entry *e;
	LIST_FOR_EACH (e, &o->entries, const struct hook_entry, node)
		if (e->guard && strcmp(e->event, which->event) == 0) return e == which;
	return false;
}

static void put_event(struct buf *b, const struct owner *o, const char *event) {
	const struct hook_entry *e;
	bool first = true;
	buf_printf(b, "%s:[", event);
	LIST_FOR_EACH (e, &o->entries, const struct hook_entry, node) {
		if (!e->guard || strcmp(e->event, event) != 0) continue;
		if (!first) buf_putc(b, ',');
		put_entry(b, e);
		first = false;
	}
	buf_putc(b, ']');
}

static void put_owner(struct buf *b, const struct owner *o) {
	const struct hook_entry *e;
	bool first = true;
	buf_printf(b, "%s{\"uid\":%u,\"name\":", b->len ? "," : "[", o->uid);
	if (o->name)
		str_put_json(b, o->name, strlen(o->name));
	else
		buf_puts(b, "null");
	buf_puts(b, ",\"hooks\":{");
	LIST_FOR_EACH (e, &o->entries, const struct hook_entry, node) {
		if (!e->guard || !leads(o, e)) continue;
		if (!first) buf_putc(b, ',');
		put_event(b, o, e->event);
		first = false;
	}
	buf_puts(b, "}}");
}

char *guards_text(const struct registry *r) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	const struct owner *o;
	LIST_FOR_EACH (o, &r->owners, const struct owner, node)
		if (owner_guards(o)) put_owner(&b, o);
	if (b.len) buf_putc(&b, ']');
	if (b.len && !b.failed) return buf_steal(&b, NULL);
	buf_free(&b);
	return NULL;
}

static bool restore_owner(struct registry *r, struct session *s, struct loop *loop, struct span text,
						  void (*on_grace)(void *)) {
	struct span name = span_member(text, "name");
	int64_t uid;
	if (!span_int(span_member(text, "uid"), &uid) || uid < 0 || uid > UINT32_MAX) return false;
	_cleanup_free_ char *own = span_is_string(name) ? span_dup(name, NULL) : NULL;
	struct owner *o = owner_new(r, s, loop, NULL, (uid_t)uid, own, on_grace);
	if (!o) return false;
	if (!owner_set_hooks(r, o, span_member(text, "hooks")) && owner_guards(o)) return true;
	owner_free(r, o);
	return false;
}

bool guards_restore(struct registry *r, struct session *s, struct loop *loop, const char *text,
					void (*on_grace)(void *)) {
	struct span all = {text, strlen(text)}, one;
	size_t n = 0;
	bool ok = true;
	for (size_t at = 0; span_next(all, &at, &one); n++) ok = restore_owner(r, s, loop, one, on_grace) && ok;
	return ok && n;
}
