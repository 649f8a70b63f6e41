/* SPDX-License-Identifier: MIT */
#include "shim/filter.h"

#include "base/macros.h"
#include "dialect/jsonrpc.h"
#include "plenum/protocol.h"
#include "wire/scan.h"

#include <stdio.h>
#include <string.h>

#define FIRST_LOOK 256 /* bytes that usually identify a line */

void filter_init(struct filter *f, const struct options *o, struct sink *out) {
	*f = (struct filter){.options = o, .out = out, .held = BUF_INIT(FILTER_HELD)};
	glance_start(&f->glance);
}

void filter_free(struct filter *f) {
	buf_free(&f->held);
}

/* The caller of filter_feed() reads no more than the sink has room for. */
static void put(struct filter *f, const char *p, size_t n) {
	if (n && !f->mute) sink_put(f->out, p, n);
}

static bool is_system(const struct filter *f, const char *subtype) {
	return glance_is(&f->glance, "system", subtype);
}

/* Members that an agent adds because the daemon gives every prompt a uuid (the SDK gave none), or because the daemon
 * asks for partial messages. Measured on 2.1.332. */
static bool is_added(const struct filter *f, struct span key) {
	static const char *const by_uuid[] = {
		"user_message_uuid",          "user_message_uuids", "request_sent_wall_ms",
		"first_request_input_tokens", "owed_rows",          "first_request_cache_read_input_tokens"};
	if (!f->options->partial && span_equals(key, "begun_message_ids")) return true;
	for (size_t i = 0; !f->uuids && i < ARRAY_SIZE(by_uuid); i++)
		if (span_equals(key, by_uuid[i])) return true;
	return false;
}

static bool may_have_added(const struct filter *f) {
	const struct glance *g = &f->glance;
	if (glance_is(g, "result", NULL)) return !f->uuids || !f->options->partial;
	return !f->uuids && (glance_is(g, "assistant", NULL) || glance_is(g, "stream_event", NULL) ||
						 is_system(f, "init") || is_system(f, "status"));
}

static enum filter_mode judge(const struct filter *f) {
	const struct glance *g = &f->glance;
	const struct options *o = f->options;
	if (!glance_knows(g)) return FILTER_UNKNOWN;
	if (glance_is(g, "stream_event", NULL) && !o->partial) return FILTER_DROP;
	if (may_have_added(f)) return FILTER_HOLD;
	if (glance_is(g, "transcript_mirror", NULL)) return o->mirror ? FILTER_PASS : FILTER_DROP;
	if (glance_is(g, "command_lifecycle", NULL)) return f->uuids ? FILTER_PASS : FILTER_DROP;
	if (glance_is(g, "control_response", NULL) || is_system(f, PLENUM_EVENT_SUBTYPE)) return FILTER_HOLD;
	/* status "requesting" comes with partial messages only */
	if (is_system(f, "status") && !o->partial) return FILTER_HOLD;
	if (!is_system(f, "session_state_changed") || o->state_events) return FILTER_PASS;
	return o->state_reads ? FILTER_HOLD : FILTER_DROP;
}

/* The marker that the CLI sets where only the SDK, not its user, asked for these events; else the SDK would hand them
 * to its user. */
static void put_marked(struct filter *f, const char *line, size_t n) {
	static const char marker[] = ",\"sdk_host_only\":true}";
	const char *end = memrchr(line, '}', n);
	struct span marked = span_member((struct span){line, n}, "sdk_host_only");
	if (end && !marked.p) {
		put(f, line, (size_t)(end - line));
		put(f, marker, sizeof marker - 1);
	} else {
		put(f, line, n);
	}
}

/* The line without the members that were added; the others with their own bytes. */
static void put_trimmed(struct filter *f, const char *line, size_t n) {
	struct span key, value, whole = {line, n};
	const char *before = "{";
	bool added = false;
	for (size_t at = 0; !added && span_next_member(whole, &at, &key, &value);) added = is_added(f, key);
	if (!added) {
		put(f, line, n);
		return;
	}
	for (size_t at = 0; span_next_member(whole, &at, &key, &value);) {
		if (is_added(f, key)) continue;
		put(f, before, 1);
		put(f, key.p, (size_t)(value.p + value.n - key.p));
		before = ",";
	}
	put(f, *before == '{' ? "{}" : "}", *before == '{' ? 2 : 1);
}

/* A held line is complete. */
static void release(struct filter *f, const char *line, size_t n) {
	bool may_be_mine = f->options->rpc || is_system(f, PLENUM_EVENT_SUBTYPE) ||
					   glance_is(&f->glance, "control_response", NULL);
	bool status = is_system(f, "status") && !f->options->partial;
	if (status && span_equals(span_member((struct span){line, n}, "status"), "requesting")) return;
	if (may_be_mine && f->mine(f->ctx, line, n)) return;
	if (is_system(f, "session_state_changed"))
		put_marked(f, line, n);
	else if (may_have_added(f))
		put_trimmed(f, line, n);
	else
		put(f, line, n);
	put(f, "\n", 1);
}

static void hold(struct filter *f, const char *p, size_t n) {
	if (buf_put(&f->held, p, n)) return;
	/* too long for a line of the daemon's own: it is the SDK's, as it is */
	f->held.failed = false;
	f->mode = is_system(f, PLENUM_EVENT_SUBTYPE) ? FILTER_DROP : FILTER_PASS;
	if (f->mode == FILTER_PASS) {
		put(f, f->held.data, f->held.len);
		put(f, p, n);
	}
	f->held.len = 0;
}

/* Lines of JSON-RPC: the daemon's own begin in a fixed way, and it renames methods of an agent that have such a name.
 */
static void look_at_beginning(struct filter *f, const char *p, size_t n) {
	static const char *const ours[] = {"\"method\":\"" JSONRPC_EVENT "\"", "\"id\":\"plenum-shim-"};
	bool may_be = false;
	for (size_t i = 0; i < ARRAY_SIZE(ours) && f->mode == FILTER_UNKNOWN; i++) {
		char own[80];
		size_t all = (size_t)snprintf(own, sizeof own, "%s%s", f->options->rpc, ours[i]);
		size_t held = MIN(f->held.len, all), rest = MIN(n, all - held);
		bool same = (!held || memcmp(f->held.data, own, held) == 0) && memcmp(p, own + held, rest) == 0;
		if (same && held + rest == all) f->mode = FILTER_HOLD;
		may_be |= same;
	}
	if (!may_be && f->mode == FILTER_UNKNOWN) f->mode = FILTER_PASS;
}

/* A result is read as a whole, for is_error; other lines only until they are identified. */
static void look(struct filter *f, const char *p, size_t n) {
	if (f->options->rpc) {
		look_at_beginning(f, p, n);
		return;
	}
	bool known = f->mode != FILTER_UNKNOWN;
	size_t first = known ? 0 : MIN(n, (size_t)FIRST_LOOK);
	glance_feed(&f->glance, p, first);
	if (!glance_knows(&f->glance) || glance_is(&f->glance, "result", NULL))
		glance_feed(&f->glance, p + first, n - first);
	if (!known) f->mode = judge(f);
}

static void end_line(struct filter *f, const char *held, size_t n) {
	if (f->mode == FILTER_HOLD) release(f, held, n);
	if (f->mode == FILTER_UNKNOWN) put(f, held, n);
	if (f->mode == FILTER_UNKNOWN || f->mode == FILTER_PASS) put(f, "\n", 1);
	if (glance_is(&f->glance, "result", NULL)) {
		f->last_error = f->glance.is_error;
		f->answered = true;
	}
	f->held.len = 0;
	f->mode = FILTER_UNKNOWN;
	glance_start(&f->glance);
}

void filter_feed(struct filter *f, const char *p, size_t n) {
	const char *end = p + n;
	while (p < end) {
		const char *lf = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((lf ? lf : end) - p);
		bool whole = lf && f->mode == FILTER_UNKNOWN && f->held.len == 0; /* it needs no copy */
		look(f, p, len);
		if (f->mode == FILTER_PASS) {
			put(f, f->held.data, f->held.len);
			put(f, p, len);
			f->held.len = 0;
		} else if (f->mode != FILTER_DROP && !whole) {
			hold(f, p, len);
		}
		if (lf) end_line(f, whole ? p : f->held.data, whole ? len : f->held.len);
		p = lf ? lf + 1 : end;
	}
}
