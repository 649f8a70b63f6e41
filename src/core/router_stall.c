/* SPDX-License-Identifier: MIT
 *
 * Stalled turns: the child prints nothing for stall_after, and waits neither for a user nor for background tasks
 * (contract 12). Its clients and subscribers are notified; nothing else happens to the turn.
 */
#include "core/router.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/splice.h"

#include <stdio.h>

#define SEARCH_LINES 4096 /* of the tape, for the open tool */
#define SEARCH_BYTES ((size_t)16 * 1024 * 1024)
#define RESULTS_MAX 256 /* results of tools in them */
#define WORD_MAX 256    /* a name that is reported */

/* --- the last lines ----------------------------------------------------------------------------------------------- */

struct results {
	struct span ids[RESULTS_MAX];
	size_t n;
};

static bool has_result(const struct results *r, struct span id) {
	for (size_t i = 0; i < r->n; i++)
		if (span_same(r->ids[i], id)) return true;
	return false;
}

/* Note the results in a message. Return the name of its last tool call without a result, else absent. */
static struct span search_message(const struct dialect *d, struct span message, struct results *r) {
	struct span id, name, open = SPAN_NONE;
	for (size_t at = 0; d->next_tool(&message, &at, &id, &name);) {
		if (name.p && !has_result(r, id)) open = name;
		if (!name.p && r->n < RESULTS_MAX) r->ids[r->n++] = id;
	}
	return open;
}

/* Return the newest tool call of the turn that has no result, from the newest lines of the tape; else absent. */
static struct span open_tool(const struct session *s) {
	const struct dialect *d = session_dialect(s);
	const struct tape *t = &s->tape;
	struct results results = {.n = 0};
	struct span open = SPAN_NONE;
	size_t bytes = 0, lines = 0;
	if (!d->next_tool) return SPAN_NONE;
	for (uint64_t seq = t->next; seq-- > t->oldest && lines++ < SEARCH_LINES && results.n < RESULTS_MAX;) {
		const struct tape_entry *entry = tape_at(t, seq);
		struct span line = splice_body(entry->line);
		struct envelope e;
		if (entry->kind == LINE_RESULT || (bytes += line.n) > SEARCH_BYTES) break;
		if (entry->kind != LINE_ASSISTANT && entry->kind != LINE_USER) continue;
		if (d->scan(line.p, line.n, &e)) open = search_message(d, e.message, &results);
		if (open.p) break;
	}
	return open;
}

/* Return the value if it is a name; the child may print anything. */
static struct span word(struct span value) {
	return span_is_string(value) && value.n <= WORD_MAX ? value : SPAN_NONE;
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
	struct span name = word(open_tool(s));
	_cleanup_free_ char *tool = span_dup(name, NULL);
	log_info("session %s: its turn has printed nothing for %lld s", s->label, (long long)(quiet / 1000));
	notice_begin(&b, PLENUM_EV_STALLED, s->name);
	notice_number(&b, "since", now_real_ms() - quiet);
	notice_raw(&b, "last", last_type(s));
	notice_raw(&b, "open_tool", name);
	router_tell(s, notice_end(&b));
	char summary[80];
	snprintf(summary, sizeof summary, "no output for %lld s", (long long)(quiet / 1000));
	router_alert(s, &(struct alert){.kind = ALERT_STALLED, .tool = tool, .summary = summary});
}

static void tell_resumed(struct session *s) {
	struct buf b = NOTICE_INIT;
	notice_begin(&b, PLENUM_EV_RESUMED, s->name);
	router_tell(s, notice_end(&b));
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static void on_timer(void *arg) {
	struct session *s = arg;
	struct stall *st = &s->stall;
	int64_t after = s->profile->stall_after, quiet = now_ms() - st->since;
	if (session_state(s) != SESSION_BUSY || st->told || after == SETTINGS_NEVER) return;
	if (quiet < after) {
		router_stall_watch(s, after - quiet);
	} else if (s->background || s->stopping || s->agent->read_paused) { /* or it waits for its readers */
		router_stall_watch(s, after);
	} else {
		st->told = true;
		tell_stalled(s, quiet);
	}
}

void router_stall_watch(struct session *s, int64_t ms) {
	struct stall *st = &s->stall;
	if (loop_timer_make(&st->timer, s->loop, on_timer, s)) loop_timer_set(st->timer, ms);
}

void router_stall_state(struct session *s) {
	struct stall *st = &s->stall;
	if (s->told_state == SESSION_BUSY && s->agent && !s->spare) { /* a prestarted child runs no turn of a client */
		st->since = now_ms();
		router_stall_watch(s, s->profile->stall_after);
	} else {
		st->told = false; /* its child has ended */
		loop_timer_stop(st->timer);
	}
}

void router_stall_line(struct session *s) {
	struct stall *st = &s->stall;
	if (s->agent) st->since = s->agent->heard_at;
	if (LIKELY(!st->told)) return;
	st->told = false;
	tell_resumed(s);
	router_stall_watch(s, s->profile->stall_after);
}
