/* SPDX-License-Identifier: MIT */
#include "core/owner.h"

#include "base/buf.h"

#include <stdlib.h>

bool owner_guards(const struct owner *o) {
	struct hook_entry *e;
	LIST_FOR_EACH (e, &o->entries, struct hook_entry, node)
		if (e->guard) return true;
	return false;
}

bool owner_unproven(const struct owner *o) {
	struct hook_entry *e;
	LIST_FOR_EACH (e, &o->entries, struct hook_entry, node)
		if (!e->proven) return true;
	return false;
}

bool owner_empty(const struct owner *o) {
	return list_empty(&o->entries) && list_empty(&o->servers);
}

bool owner_takes_dialog(const struct owner *o, struct span kind) {
	return kind.p && names_have(&o->dialogs, kind.p, kind.n);
}

void owner_claimed(struct owner *o) {
	struct mcp_server *s;
	LIST_FOR_EACH (s, &o->servers, struct mcp_server, node) s->claimed = true;
}

/* --- equal entries ------------------------------------------------------------------------------------------------ */

/* An entry, by its whole content. */
struct saying {
	UT_hash_handle hh; /* by text */
	struct hook_entry *entry;
	char *text;
	size_t n;
};

static void free_saying(struct saying *s) {
	if (s) free(s->text);
	free(s);
}

/* Join the parts with newlines, which the JSON of a line cannot contain. NULL without memory. */
static struct saying *saying_of(struct hook_entry *e) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	struct hook *h;
	buf_printf(&b, "%d%d", e->guard, e->drop_when_gone);
	buf_putc(&b, '\n');
	buf_puts(&b, e->event);
	buf_putc(&b, '\n');
	buf_puts(&b, e->members);
	LIST_FOR_EACH (h, &e->hooks, struct hook, node) {
		buf_putc(&b, '\n');
		buf_puts(&b, h->callback);
	}
	struct saying *s = b.failed ? NULL : calloc(1, sizeof *s);
	if (!s) {
		buf_free(&b);
		return NULL;
	}
	s->entry = e;
	s->n = b.len;
	s->text = buf_steal(&b, NULL);
	return s;
}

/* Make the entry the twin of an equal one in the table, which is then used up. */
static bool find_twin(struct saying **table, struct hook_entry *e) {
	struct saying *own = saying_of(e), *old = NULL;
	if (!own) return false;
	HASH_FIND(hh, *table, own->text, own->n, old);
	if (old) {
		e->twin = old->entry;
		e->proven = old->entry->proven;
		HASH_DELETE(hh, *table, old);
	}
	free_saying(own);
	free_saying(old);
	return true;
}

bool owner_find_twins(struct owner *o) {
	struct saying *table = NULL, *s, *next;
	struct hook_entry *e;
	bool ok = true;
	LIST_FOR_EACH (e, &o->entries, struct hook_entry, node) {
		s = ok ? saying_of(e) : NULL;
		if (s && HASH_TRY_ADD(hh, table, s->text, s->n, s)) continue;
		free_saying(s);
		ok = false;
	}
	LIST_FOR_EACH (e, &o->staged, struct hook_entry, node) ok = ok && find_twin(&table, e);
	HASH_ITER (hh, table, s, next) {
		HASH_DELETE(hh, table, s);
		free_saying(s);
	}
	return ok;
}
