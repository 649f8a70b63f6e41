/* SPDX-License-Identifier: MIT */
#include "core/pace.h"
#include "core/attachment.h"
#include "core/notify.h"

#include "base/fd.h"
#include "base/log.h"
#include "plenum/protocol.h"

#include <stdio.h>

#define PACE_WINDOW ((uint64_t)2 << 20)   /* bytes that the fastest reader may lag before the child must wait */
#define STANDSTILL_MS 1000                /* a reader that took nothing for so long delays no other */
#define WAIT_PIECE ((uint64_t)256 * 1024) /* bytes that a waited-for client must read within each lag_wait */
#define LAG_TICK_MS 1000                  /* the longest time between two checks of clients far behind */
#define LAG_TICK_LEAST_MS 20              /* and the shortest */
#define BEHIND_TOLD INT64_MAX             /* of behind_since */

static void on_lag_timer(void *arg);

/* Without memory for the timer the next read tries again. */
void pace_watch(struct session *s) {
	int64_t quarter = s->settings->limits.client_lag_soft_time / 4; /* a short one is kept to within a half */
	if (!loop_timer_make(&s->pace.timer, s->loop, on_lag_timer, s)) return;
	if (!loop_timer_pending(s->pace.timer))
		loop_timer_set(s->pace.timer, MAX(MIN(quarter, LAG_TICK_MS), LAG_TICK_LEAST_MS));
}

static void log_lag(const struct session *s, const struct client *c, int64_t age, const char *what) {
	char uid[16], pid[16], bytes[24], ms[24];
	snprintf(uid, sizeof uid, "%u", c->peer.uid);
	snprintf(pid, sizeof pid, "%d", c->peer.pid);
	snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)client_behind(c));
	snprintf(ms, sizeof ms, "%lld", (long long)age);
	const char *fields[] = {"session",  s->name, "uid", uid,  "pid", pid, "program",
							c->program, "bytes", bytes, "ms", ms,    NULL};
	log_event(LOG_WARN, what, fields);
}

/* Return true if the child must wait for the client, which asked for it. It must read a piece of the tape within each
 * lag_wait, not a byte now and then. A quarter of the tape leaves room for the longest line, which counts as half, and
 * for the rest of the same read. */
static bool holds_up(const struct session *s, struct attachment *a, uint64_t behind, int64_t now) {
	const struct client *c = a->client;
	if (a->on_lag != LAG_WAIT) return false;
	if (behind == 0) a->lag.waited_told = false;
	if (behind <= s->tape.max_bytes / 4) {
		a->lag.waited_since = 0;
		return false;
	}
	if (!a->lag.waited_since || c->bytes_out - a->lag.waited_from >= MIN(WAIT_PIECE, (uint64_t)tape_piece(&s->tape))) {
		a->lag.waited_since = now;
		a->lag.waited_from = c->bytes_out;
	}
	int64_t age = now - a->lag.waited_since;
	if (age >= STANDSTILL_MS && !a->lag.waited_told) { /* long before the soft limit or lag_wait */
		a->lag.waited_told = true;
		log_lag(s, a->client, age, "the child is held up for a client that does not read");
	}
	return age < s->settings->limits.lag_wait;
}

/* Return the lag in bytes; many short lines fill a tape by their number. */
static uint64_t pressure(const struct session *s, const struct client *c) {
	uint64_t bytes = client_behind(c), lines = c->tape ? c->tape->next - c->cursor : 0;
	uint64_t by_count = lines * (s->tape.max_bytes / s->tape.max_lines);
	return lines > s->tape.max_lines / 4 ? MAX(bytes, by_count) : bytes;
}

/* Read the child as fast as its fastest reader, not faster: the rest would only be dropped from the tape. A stopped
 * reader does not count, unless it asked for the wait. */
bool pace_may_read(struct session *s) {
	struct attachment *a;
	uint64_t best = UINT64_MAX;
	int64_t now = now_ms();
	bool lag = false, held = false;
	if (queue_is_flooded(&s->in)) {
		if (!s->agent->read_paused)
			log_warn("session %s: the child asks and reads no answers: its output waits", s->label);
		loop_timer_set(&s->agent->pace_timer, STANDSTILL_MS);
		return false;
	}
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) {
		uint64_t behind = pressure(s, a->client);
		bool stands = a->client->blocked && now - a->client->blocked_since >= STANDSTILL_MS;
		lag = lag || behind > s->settings->limits.client_lag_soft;
		held = holds_up(s, a, behind, now) || held;
		if (!stands && behind < best) best = behind;
	}
	if (lag) pace_watch(s);
	if (!held && (best == UINT64_MAX || best <= MIN(PACE_WINDOW, (uint64_t)s->tape.max_bytes / 4))) return true;
	loop_timer_set(&s->agent->pace_timer, STANDSTILL_MS);
	return false;
}

void pace_blocked(struct client *c, bool blocked) {
	struct attachment *a = c->attachment;
	if (!blocked && a && a->session->agent && a->session->agent->read_paused) session_changed(a->session);
}

static void post_gap(struct client *c, const struct session *s, uint64_t from, uint64_t to) {
	struct buf b = NOTICE_INIT;
	notice_begin(&b, PLENUM_EV_GAP, s->name);
	notice_number(&b, "from", (int64_t)from);
	notice_number(&b, "to", (int64_t)to);
	client_tell_first(c, notice_end(&b));
}

static struct chunk lag_notice(const struct session *s, const struct client *c, int64_t age) {
	struct buf b = NOTICE_INIT;
	notice_begin(&b, PLENUM_EV_LAG, s->name);
	buf_puts(&b, ",\"client\":");
	notify_put_where(&b, c);
	notice_number(&b, "bytes", (int64_t)client_behind(c));
	notice_number(&b, "ms", age);
	return notice_end(&b);
}

/* Close a client for lag: send a last notice, and none of the unread lines. */
static void close_lagging(struct client *c, struct session *s, uint64_t from, uint64_t to) {
	log_lag(s, c, c->blocked_since ? now_ms() - c->blocked_since : 0,
			"a client fell behind and is closed, as it asked");
	client_skip(c);
	post_gap(c, s, from, to);
	attachment_leave(c, "too far behind");
	client_close(c);
}

void pace_overtaken(struct client *c, uint64_t from, uint64_t to) {
	struct attachment *a = c->attachment;
	if (!a) return;
	if (a->on_lag == LAG_CLOSE) {
		close_lagging(c, a->session, from, to);
		return;
	}
	log_lag(a->session, c, c->blocked_since ? now_ms() - c->blocked_since : 0,
			"a client was overtaken by the end of the tape: it has a gap");
	post_gap(c, a->session, from, to);
}

static void apply_lag(struct session *s, struct attachment *a, int64_t age) {
	struct client *c = a->client;
	notify_present(s, lag_notice(s, c, age), a);
	client_tell_first(c, lag_notice(s, c, age)); /* before the gap that may follow */
	if (a->on_lag == LAG_WAIT) { /* notified once for any duration: it is bounded by lag_wait and the tape */
		log_lag(s, c, age, "a client that is to be waited for is too far behind");
		a->lag.behind_since = BEHIND_TOLD;
		return;
	}
	a->lag.behind_since = now_ms();
	uint64_t from = c->cursor, to = s->tape.next - 1;
	if (a->on_lag == LAG_CLOSE) {
		close_lagging(c, s, from, to);
		return;
	}
	log_lag(s, c, age, "a client is too far behind: it skips to the newest line");
	client_skip(c);
	if (from <= to) post_gap(c, s, from, to);
}

static void on_lag_timer(void *arg) {
	struct session *s = arg;
	struct attachment *a;
	int64_t now = now_ms();
	bool again = false;
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) {
		if (client_behind(a->client) <= s->settings->limits.client_lag_soft) {
			a->lag.behind_since = 0;
			continue;
		}
		again = true;
		if (!a->lag.behind_since) a->lag.behind_since = now;
		int64_t age = now - a->lag.behind_since;
		if (age >= s->settings->limits.client_lag_soft_time) apply_lag(s, a, age);
	}
	if (again) pace_watch(s);
}
