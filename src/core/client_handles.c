/* SPDX-License-Identifier: MIT */
#include "core/client_handles.h"

#include "core/asks.h"
#include "core/gate.h"
#include "core/notify.h"
#include "core/requests.h"
#include "plenum/protocol.h"

#include <string.h>

void client_handles_open(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
						 const struct gate_row *row) {
	struct span own = handles_named(row, e);
	if (own.p && s->handles.n >= HANDLES_MAX) {
		notify_fail(c, e->request_id, PLENUM_E_BUSY,
					"the clients of session %s have %d handles open, which is the limit: end some of them", s->name,
					HANDLES_MAX);
		return;
	}
	if (own.n > HANDLES_NAME_MAX) {
		notify_fail(c, e->request_id, PLENUM_E_BAD_REQUEST, "`%s` has more than %zu bytes", row->member,
					HANDLES_NAME_MAX);
		return;
	}
	struct call *call = requests_send(c, s, line, e, NULL, NULL);
	if (!call) return;
	struct handle *h = own.p ? handles_add(&s->handles, c->id, call->child, row->what, own) : NULL;
	call->act = row->act;
	call->value = h ? strdup(h->name) : NULL;
	bool limited = span_member(e->request, "plenum_timeout_ms").p;
	if (row->act == ACT_RUNS && !limited) loop_timer_stop(&call->timer); /* it is answered when its program ends */
}

void client_handles_leave(struct session *s, const struct client *c) {
	const struct dialect *d = session_dialect(s);
	struct handle *h;
	bool there = session_has_child(s), hears = there || s->want_child; /* the next child may be going to open it */
	while ((h = handles_of(&s->handles, c->id)) != NULL) {
		struct call *call = hears ? call_new(&s->calls, s, s->loop, CALL_SILENT, NULL, 0, SPAN_NONE, requests_timer)
								  : NULL;
		struct buf b = NOTICE_INIT;
		if (call) {
			d->put_end(&b, call->id, dialect_gate_row(&gate_of(c)->rows, GATE_REQUEST, h->ends, strlen(h->ends)),
					   span_of(h->name));
			call->child = session_writes_to(s);
			loop_timer_set(&call->timer, s->profile->control_timeout);
			if (there)
				session_must_write(s, notice_chunk(&b));
			else
				session_write(s, notice_chunk(&b), true);
		}
		handles_drop(&s->handles, h);
	}
}

/* --- lines of the child ------------------------------------------------------------------------------------------- */

static void post(const struct session *s, struct client *c, struct chunk line, struct span old, struct span value) {
	if (!c || !c->attachment || c->attachment->session != s) return; /* it has left */
	if (!client_wants(c, line)) return;
	struct splice_edit edit = {old.p, old.n, {value}};
	struct rope out = splice_edits(line, (struct span){line.data, line.len}, &edit, 1, CHUNK_NONE);
	client_post_rope(c, &out);
}

bool client_handles_line(struct session *s, struct chunk line, const struct envelope *e) {
	struct dialect_addressee to = {0};
	uint64_t number;
	session_dialect(s)->read_addressee(e, &to);
	size_t n = to.handle.p ? handles_read_mark(to.handle, &number) : 0;
	if (n) {
		struct handle *h = to.over ? handles_find(&s->handles, NULL, to.handle) : NULL;
		if (h) handles_drop(&s->handles, h);
		post(s, router_client(s->world, number), line, (struct span){to.handle.p + 1, n}, span_of(""));
		return true;
	}
	const struct call *call = to.call.p ? call_find(&s->calls, to.call) : NULL;
	if (call && call->asker) post(s, call->asker, line, to.call, span_of(call->asker_id));
	return call || (to.call.p && calls_made(&s->calls, to.call));
}

/* A step of the start stands for the first client that waits for what it brings. Return its request; NULL: none. */
static const struct call *call_behind(struct session *s, const struct call *call) {
	const struct call *other;
	if (!call || call->purpose != CALL_STEP) return call && call->asker ? call : NULL;
	LIST_FOR_EACH (other, &s->calls.order, struct call, node)
		if (other->purpose == CALL_KEPT && other->asker) return other;
	return NULL;
}

bool client_handles_ask(struct session *s, struct chunk line, const struct envelope *e) {
	struct dialect_addressee to = {0};
	session_dialect(s)->read_addressee(e, &to);
	if (!to.call.p) return false;
	const struct call *call = call_find(&s->calls, to.call), *of = call_behind(s, call);
	if (!of && !(call && call->purpose == CALL_STEP)) {
		asks_refuse(s, line, e, "no client waits for this request");
		return true;
	}
	struct span id = span_of(of ? of->asker_id : "null"); /* else all clients wait for it */
	asks_add_edited(s, line, e, (struct splice_edit){to.call.p, to.call.n, {id}}, of ? of->asker->id : 0);
	return true;
}
