/* SPDX-License-Identifier: MIT */
#include "core/notify.h"

#include "base/str.h"
#include "plenum/protocol.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* size: of a line that was not read; 0: it was. */
static void post_error_event(struct client *c, struct span id, struct span uuid, const char *code, const char *text,
							 size_t size) {
	struct attachment *a = c->attachment;
	struct buf b = NOTICE_INIT;
	notice_error(&b, a ? a->session->name : NULL, code, text);
	notice_number(&b, "line", (int64_t)c->lines_in);
	if (size) notice_number(&b, "size", (int64_t)size);
	if (id.p) notice_raw(&b, "request_id", id);
	if (uuid.p) notice_raw(&b, "uuid", uuid);
	client_tell(c, notice_end(&b));
}

static void post_error_answer(struct client *c, struct span id, const char *code, const char *text, const char *more) {
	struct buf b = NOTICE_INIT;
	c->dialect->put_error(&b, id, code, text, more);
	client_post(c, notice_chunk(&b));
}

void notify_fail(struct client *c, struct span id, const char *code, const char *fmt, ...) {
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (id.p)
		post_error_answer(c, id, code, text, "");
	else
		post_error_event(c, SPAN_NONE, SPAN_NONE, code, text, 0);
}

void notify_complain(struct client *c, struct span id, const char *code, const char *fmt, ...) {
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	post_error_event(c, id, SPAN_NONE, code, text, 0);
}

void notify_complain_of_line(struct client *c, struct span id, const char *code, const char *text, size_t size) {
	struct buf more = NOTICE_INIT;
	if (!c->dialect->frame->answers_bad_lines) {
		post_error_event(c, id, SPAN_NONE, code, text, size);
		return;
	}
	notice_number(&more, "line", (int64_t)c->lines_in);
	if (size) notice_number(&more, "size", (int64_t)size);
	post_error_answer(c, SPAN_NONE, code, text, more.data ? more.data : "");
	buf_free(&more);
}

bool notify_is_request(const struct client *c, const struct message *m) {
	return m->kind == MESSAGE_REQUEST || (m->kind == MESSAGE_USER && !c->dialect->prompt_id);
}

void notify_refuse(struct client *c, const struct message *m, const char *code, const char *fmt, ...) {
	char text[1024];
	struct span uuid = m->kind == MESSAGE_USER && span_is_string(m->env.uuid) ? m->env.uuid : SPAN_NONE;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (notify_is_request(c, m))
		post_error_answer(c, m->env.request_id, code, text, "");
	else
		post_error_event(c, SPAN_NONE, uuid, code, text, 0);
}

void notify_subscribers(struct session *s, struct chunk notice) {
	struct router *r = s->world;
	struct client *c;
	if (r->n_subscribers && notice.data && !s->spare) {
		LIST_FOR_EACH (c, &r->clients, struct client, node) {
			if (!c->subscribed || router_is_in(c, s) || (session_is_private(s) && !client_is_ours(c))) continue;
			client_tell(c, chunk_ref(notice));
		}
	}
	chunk_drop(&notice);
}

void notify_wake(struct session *s) {
	struct attachment *a;
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) client_wake(a->client);
}

void notify_session(struct session *s, struct chunk notice) {
	const struct dialect_frame *f = session_dialect(s)->frame, *plain = dialect_default()->frame;
	if (!notice.data) notice = (struct chunk){NULL, plain->lost, strlen(plain->lost)};
	struct chunk line = f->put_notice(notice);
	if (!line.data) line = (struct chunk){NULL, f->lost, strlen(f->lost)};
	notify_subscribers(s, notice);
	tape_append(&s->tape, line, LINE_NOTICE, 0);
	notify_wake(s);
}

void notify_present(struct session *s, struct chunk notice, const struct attachment *except) {
	struct attachment *a;
	if (!notice.data) return;
	if (s->n_attachments <= NOTIFY_CROWD) {
		LIST_FOR_EACH (a, &s->attachments, struct attachment, node)
			if (a != except && !a->client->filter.quiet) client_tell(a->client, chunk_ref(notice));
	}
	notify_subscribers(s, notice);
}

bool notify_alert_wanted(const struct session *s, enum alert_kind kind) {
	return s->world->settings->on[kind].n && !s->spare;
}

void notify_alert(struct session *s, const struct alert *alert) {
	if (notify_alert_wanted(s, alert->kind)) s->world->events->attention(s->world, s, alert);
}

/* Begin an object; the caller closes it. */
static void put_who(struct buf *b, const struct client *c) {
	buf_puts(b, "{\"name\":");
	if (c->name)
		str_put_json(b, c->name, strlen(c->name));
	else
		buf_puts(b, "null");
	buf_printf(b, ",\"uid\":%u,\"pid\":%d,\"program\":", c->peer.uid, c->peer.pid);
	str_put_json(b, c->program, strlen(c->program));
}

void notify_put_where(struct buf *b, const struct client *c) {
	const struct attachment *a = c->attachment;
	put_who(b, c);
	buf_printf(b, ",\"client\":%llu", (unsigned long long)c->id);
	if (a)
		buf_printf(b, ",\"role\":\"%s\",\"approve\":%s", a->observer ? "observer" : "driver",
				   a->approve ? "true" : "false");
	buf_putc(b, '}');
}

void notify_put_by(struct buf *b, const struct client *c) {
	buf_puts(b, ",\"by\":");
	put_who(b, c);
	buf_putc(b, '}');
}

void notify_stopping(struct session *s, const struct client *by, bool kill_now) {
	if (s->agent && (!s->stopping || kill_now)) notify_changed_text(s, "stopping", kill_now ? "kill" : "graceful", by);
}

void notify_changed(struct session *s, const char *what, struct span value, const struct client *by) {
	struct buf b = NOTICE_INIT;
	notice_begin(&b, PLENUM_EV_CHANGED, s->name);
	notice_text(&b, "what", what);
	notice_raw(&b, "value", value);
	if (by) notify_put_by(&b, by);
	notify_session(s, notice_end(&b));
}

void notify_changed_text(struct session *s, const char *what, const char *value, const struct client *by) {
	struct buf b = NOTICE_INIT;
	str_put_json(&b, value, strlen(value));
	if (b.failed)
		notify_session(s, CHUNK_NONE); /* a line says that a notice was lost */
	else
		notify_changed(s, what, (struct span){b.data, b.len}, by);
	buf_free(&b);
}
