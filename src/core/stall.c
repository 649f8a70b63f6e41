/* SPDX-License-Identifier: MIT */
#include "core/stall.h"
#include "core/notify.h"

#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "plenum/protocol.h"
#include "wire/lengths.h"
#include "wire/splice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH_LINES 4096 /* of the tape, for the open tool */
#define SEARCH_BYTES ((size_t)16 * 1024 * 1024)
#define SEARCH_STEP ((size_t)256 * 1024) /* bytes of a long line between two looks at the clock */
#define TOOLS_MAX 256                    /* results of tools in them, and blocks of one message */
#define WORD_MAX 256                     /* a name that is reported */

/* --- the open tool ------------------------------------------------------------------------------------------------ */

/* The search on the tape, over many turns of the loop: nothing is printed meanwhile. Long lines are measured first. */
struct stall_search {
	int64_t since; /* of the silence that it belongs to */
	uint64_t seq;  /* the lines before this one are left */
	size_t lines, bytes;
	uint64_t results[TOOLS_MAX]; /* hashes of the ids of calls that have a result */
	size_t n;
	struct chunk line; /* being measured */
	struct lengths *lengths;
	char *tool; /* found */
};

static void drop_line(struct stall_search *q) {
	lengths_free(q->lengths);
	q->lengths = NULL;
	chunk_drop(&q->line);
}

static void end_search(struct stall *st) {
	struct stall_search *q = st->search;
	st->search = NULL;
	if (!q) return;
	drop_line(q);
	free(q->tool);
	free(q);
}

static bool has_result(const struct stall_search *q, uint64_t id) {
	for (size_t i = 0; i < q->n; i++)
		if (q->results[i] == id) return true;
	return false;
}

/* Return the value if it is a name; the child may print anything. */
static struct span word(struct span value) {
	return span_is_string(value) && value.n <= WORD_MAX ? value : SPAN_NONE;
}

/* Note the results in a line. Return true if it has a call without one: the last of them is the tool. */
static bool search_line(struct stall_search *q, const struct dialect *d, struct span line) {
	struct envelope e;
	struct span id, name, open = SPAN_NONE;
	if (!d->scan(line.p, line.n, &e)) return false;
	for (size_t at = 0, n = 0; n < TOOLS_MAX && d->next_tool(&e.message, &at, &id, &name); n++) {
		uint64_t hash = hash_text(id.p, id.n);
		if (name.p && !has_result(q, hash)) open = name;
		if (!name.p && q->n < TOOLS_MAX) q->results[q->n++] = hash;
	}
	struct span tool = word(open);
	if (tool.p) q->tool = strndup(tool.p, tool.n);
	return open.p;
}

/* Return false if the line must be measured further. */
static bool is_measured(struct stall_search *q, struct chunk line) {
	if (line.len < LENGTHS_FROM) return true;
	if (!q->line.data) {
		q->line = chunk_ref(line); /* the tape may drop it meanwhile */
		q->lengths = lengths_new(line.data, line.len, LENGTHS_VALUE);
	}
	return !q->lengths || lengths_step(q->lengths, SEARCH_STEP);
}

/* Search the newest line that is left. Return true at the end of the search. */
static bool search_next(struct stall_search *q, const struct session *s) {
	const struct tape *t = &s->tape;
	if (q->seq <= t->oldest || q->lines >= SEARCH_LINES || q->n == TOOLS_MAX) return true;
	const struct tape_entry *entry = tape_at(t, q->seq - 1);
	if (entry->kind == LINE_RESULT || q->bytes + entry->line.len > SEARCH_BYTES) return true;
	bool speaks = entry->kind == LINE_ASSISTANT || entry->kind == LINE_USER, open = false;
	if (speaks && !is_measured(q, entry->line)) return false;
	lengths_use(q->lengths);
	if (speaks) open = search_line(q, session_dialect(s), splice_body(entry->line));
	lengths_use(NULL);
	drop_line(q);
	q->bytes += entry->line.len;
	q->lines++;
	q->seq--;
	return open;
}

/* Search the newest tool call of the turn that has no result, for a part of this turn of the loop. Return true when
 * st->search->tool has it, a JSON string; NULL: there is none. Without memory there is no st->search. */
static bool search(struct session *s) {
	struct stall *st = &s->stall;
	if (!st->search && !(st->search = calloc(1, sizeof *st->search))) return true;
	struct stall_search *q = st->search;
	if (!q->since) *q = (struct stall_search){.since = st->since, .seq = s->tape.next};
	bool over = !session_dialect(s)->next_tool;
	while (!over && !loop_must_yield(s->loop)) over = search_next(q, s);
	return over;
}

/* Return the type of the child's newest line. */
static struct span last_type(const struct session *s) {
	const struct tape *t = &s->tape;
	for (uint64_t seq = t->next; seq-- > t->oldest;) {
		const struct tape_entry *entry = tape_at(t, seq);
		struct span line = splice_body(entry->line);
		if (entry->kind != LINE_NOTICE) return word(span_member(line, "type"));
	}
	return SPAN_NONE;
}

/* --- notices ------------------------------------------------------------------------------------------------------ */

static void tell_stalled(struct session *s, int64_t quiet) {
	struct buf b = NOTICE_INIT;
	struct span name = span_of(s->stall.search ? s->stall.search->tool : NULL);
	_cleanup_free_ char *tool = span_dup(name, NULL);
	log_info("session %s: its turn has printed nothing for %lld s", s->label, (long long)(quiet / 1000));
	notice_begin(&b, PLENUM_EV_STALLED, s->name);
	notice_number(&b, "since", now_real_ms() - quiet);
	notice_raw(&b, "last", last_type(s));
	notice_raw(&b, "open_tool", name);
	notify_session(s, notice_end(&b));
	char summary[80];
	snprintf(summary, sizeof summary, "no output for %lld s", (long long)(quiet / 1000));
	notify_alert(s, &(struct alert){.kind = ALERT_STALLED, .tool = tool, .summary = summary});
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static void on_timer(void *arg) {
	struct session *s = arg;
	struct stall *st = &s->stall;
	int64_t after = s->profile->stall_after, quiet = now_ms() - st->since;
	if (st->search && st->search->since != st->since) end_search(st);
	if (session_state(s) != SESSION_BUSY || st->told || after == SETTINGS_NEVER) return;
	if (quiet < after) {
		stall_watch(s, after - quiet);
	} else if (s->progress.background || s->stopping || s->agent->read_paused) { /* or it waits for its readers */
		stall_watch(s, after);
	} else if (!search(s)) {
		stall_watch(s, 0);
	} else {
		st->told = true;
		tell_stalled(s, quiet);
		end_search(st);
	}
}

void stall_over(struct session *s) {
	loop_timer_stop(s->stall.timer);
	end_search(&s->stall);
}

void stall_watch(struct session *s, int64_t ms) {
	struct stall *st = &s->stall;
	if (loop_timer_make(&st->timer, s->loop, on_timer, s)) loop_timer_set(st->timer, ms);
}

void stall_state(struct session *s) {
	struct stall *st = &s->stall;
	if (s->told_state == SESSION_BUSY && s->agent && !s->spare) { /* a prestarted child runs no turn of a client */
		st->since = now_ms();
		stall_watch(s, s->profile->stall_after);
	} else {
		st->told = false; /* its child has ended */
		stall_over(s);
	}
}

void stall_line(struct session *s) {
	struct stall *st = &s->stall;
	if (s->agent) st->since = s->agent->heard_at;
	if (LIKELY(!st->told)) return;
	st->told = false;
	struct buf b = NOTICE_INIT;
	notice_begin(&b, PLENUM_EV_RESUMED, s->name);
	notify_session(s, notice_end(&b));
	stall_watch(s, s->profile->stall_after);
}
