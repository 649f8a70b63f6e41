/* SPDX-License-Identifier: MIT */
#include "shim/filter.h"

#include "plenum/protocol.h"
#include "wire/scan.h"

#include <string.h>

void filter_init(struct filter *f, const struct options *o, struct sink *out) {
	*f = (struct filter){.options = o, .out = out, .held = BUF_INIT(FILTER_HELD)};
	glance_start(&f->glance);
}

void filter_free(struct filter *f) {
	buf_free(&f->held);
}

/* The caller of filter_feed() reads no more than the sink has room for. */
static void put(struct filter *f, const char *p, size_t n) {
	if (!f->mute) sink_put(f->out, p, n);
}

static enum filter_mode pass_if(bool wanted) {
	return wanted ? FILTER_PASS : FILTER_DROP;
}

static enum filter_mode judge_system(const struct filter *f) {
	const struct options *o = f->options;
	if (glance_is(&f->glance, "system", PLENUM_EVENT_SUBTYPE)) return FILTER_HOLD;
	/* status "requesting" comes with partial messages only */
	if (glance_is(&f->glance, "system", "status")) return o->partial ? FILTER_PASS : FILTER_HOLD;
	if (!glance_is(&f->glance, "system", "session_state_changed") || o->state_events) return FILTER_PASS;
	return o->state_reads ? FILTER_HOLD : FILTER_DROP;
}

static enum filter_mode judge(const struct filter *f) {
	const struct glance *g = &f->glance;
	const struct options *o = f->options;
	if (!glance_knows(g)) return FILTER_UNKNOWN;
	if (glance_is(g, "stream_event", NULL)) return pass_if(o->partial);
	if (glance_is(g, "system", NULL)) return judge_system(f);
	if (glance_is(g, "transcript_mirror", NULL)) return pass_if(o->mirror);
	if (glance_is(g, "command_lifecycle", NULL)) return pass_if(f->uuids);
	if (glance_is(g, "control_response", NULL)) return f->asking ? FILTER_HOLD : FILTER_PASS;
	return FILTER_PASS;
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
	put(f, "\n", 1);
}

static bool is_requesting(const char *line, size_t n) {
	return span_equals(span_member((struct span){line, n}, "status"), "requesting");
}

/* A held line is complete. */
static void release(struct filter *f, const char *line, size_t n) {
	const struct glance *g = &f->glance;
	if (glance_is(g, "system", "session_state_changed")) {
		put_marked(f, line, n);
		return;
	}
	if (glance_is(g, "system", "status") && is_requesting(line, n)) return;
	bool may_be_mine = glance_is(g, "system", PLENUM_EVENT_SUBTYPE) || glance_is(g, "control_response", NULL);
	if (may_be_mine && f->mine(f->ctx, line, n)) return;
	put(f, line, n);
	put(f, "\n", 1);
}

static void hold(struct filter *f, const char *p, size_t n) {
	if (buf_put(&f->held, p, n)) return;
	/* too long for a line of the daemon's own: it is the SDK's, whatever it is */
	f->held.failed = false;
	f->mode = glance_is(&f->glance, "system", PLENUM_EVENT_SUBTYPE) ? FILTER_DROP : FILTER_PASS;
	if (f->mode == FILTER_PASS) {
		put(f, f->held.data, f->held.len);
		put(f, p, n);
	}
	f->held.len = 0;
}

/* A piece of a line, without LF. */
static void take(struct filter *f, const char *p, size_t n) {
	bool result = f->mode == FILTER_PASS && glance_is(&f->glance, "result", NULL);
	if (f->mode == FILTER_UNKNOWN || result) glance_feed(&f->glance, p, n);
	if (f->mode == FILTER_UNKNOWN) {
		f->mode = judge(f);
		if (f->mode == FILTER_PASS && f->held.len) {
			put(f, f->held.data, f->held.len);
			f->held.len = 0;
		}
	}
	if (f->mode == FILTER_PASS) put(f, p, n);
	if (f->mode == FILTER_UNKNOWN || f->mode == FILTER_HOLD) hold(f, p, n);
}

static void end_line(struct filter *f) {
	if (f->mode == FILTER_HOLD) release(f, f->held.data, f->held.len);
	if (f->mode == FILTER_UNKNOWN) put(f, f->held.data, f->held.len);
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
		take(f, p, (size_t)((lf ? lf : end) - p));
		if (lf) end_line(f);
		p = lf ? lf + 1 : end;
	}
}
