/* SPDX-License-Identifier: MIT */
#include "store/record.h"

#include "base/hash.h"
#include "store/state.h"

#include <stdlib.h>

/* The kept parts of one session. */
struct record {
	UT_hash_handle hh; /* by id */
	uint64_t id;
	bool put; /* since the last record_sweep() */
	struct kept {
		struct draft_part part;
		uint64_t mark, hash;
	} kept[RECORD_PARTS];
};

static struct record *find(const struct record *all, uint64_t id) {
	struct record *r = NULL;
	HASH_FIND(hh, all, &id, sizeof id, r);
	return r;
}

static struct record *find_or_make(struct record **all, uint64_t id) {
	struct record *r = find(*all, id);
	if (r || !(r = calloc(1, sizeof *r))) return r;
	r->id = id;
	r->put = true;
	if (HASH_TRY_ADD(hh, *all, &r->id, sizeof r->id, r)) return r;
	free(r);
	return NULL;
}

static void drop(struct record **all, struct record *r) {
	HASH_DELETE(hh, *all, r);
	for (size_t i = 0; i < RECORD_PARTS; i++) free(r->kept[i].part.text);
	free(r);
}

bool record_has(const struct record *all, uint64_t id, enum record_part part, uint64_t mark, uint64_t *hash) {
	const struct record *r = id && mark ? find(all, id) : NULL;
	const struct kept *k = r ? &r->kept[part] : NULL;
	if (!k || !k->part.text || k->mark != mark) return false;
	*hash = k->hash;
	return true;
}

static void put_member(struct draft *d, const char *key, const char *text) {
	buf_puts(&d->own, key);
	draft_text(d, text);
}

static void put_part(struct draft *d, const struct state_session *s, enum record_part part) {
	switch (part) {
	case RECORD_LAUNCH:
		put_member(d, "{\"cwd\":", s->cwd);
		buf_puts(&d->own, ",\"args\":");
		draft_list(d, s->args, s->n_args);
		buf_puts(&d->own, ",\"env\":");
		draft_list(d, s->env, s->n_env);
		break;
	case RECORD_GUARDS:
		put_member(d, ",\"guards\":", s->guards);
		break;
	case RECORD_MEMO:
		put_member(d, ",\"memo\":", s->memo);
		put_member(d, ",\"timers\":", s->timers);
		break;
	case RECORD_PARTS:
		break;
	}
}

static void put_or_use(struct draft *d, struct record **all, const struct state_session *s, enum record_part part) {
	struct record *r = s->id ? find(*all, s->id) : NULL;
	struct kept *k = r ? &r->kept[part] : NULL;
	uint64_t mark = s->marks[part];
	if (r) r->put = true;
	if (k && k->part.text && mark && k->mark == mark) {
		draft_use(d, &k->part);
		return;
	}
	size_t from = d->own.len;
	put_part(d, s, part);
	if (k) free(k->part.text);
	if (k) *k = (struct kept){0};
	if (!s->id || !mark || d->own.len - from < RECORD_KEPT || !(r = find_or_make(all, s->id))) return;
	k = &r->kept[part];
	if (!draft_cut(d, from, &k->part)) return;
	k->mark = mark;
	k->hash = s->hashes[part];
}

void record_put(struct draft *d, struct record **all, const struct state_session *s) {
	for (enum record_part i = 0; i < RECORD_PARTS; i++) put_or_use(d, all, s, i);
	put_member(d, ",\"name\":", s->name);
	put_member(d, ",\"profile\":", s->profile);
	put_member(d, ",\"conversation_id\":", s->conversation_id);
	put_member(d, ",\"previous_id\":", s->previous_id);
	put_member(d, ",\"mode\":", s->mode);
	buf_printf(&d->own,
			   ",\"uid\":%jd,\"env_only\":%s,\"child_pid\":%jd,\"child_start\":%jd,\"created_ms\":%jd,\"used_ms\":%jd,"
			   "\"seq\":%jd",
			   (intmax_t)s->uid, s->env_only ? "true" : "false", (intmax_t)s->child_pid, (intmax_t)s->child_start,
			   (intmax_t)s->created_ms, (intmax_t)s->used_ms, (intmax_t)s->seq);
	draft_end_line(d);
}

void record_sweep(struct record **all) {
	struct record *r, *next;
	HASH_ITER (hh, *all, r, next) {
		if (!r->put)
			drop(all, r);
		else
			r->put = false;
	}
}

void record_free(struct record **all) {
	struct record *r, *next;
	HASH_ITER (hh, *all, r, next) drop(all, r);
}
