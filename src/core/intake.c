/* SPDX-License-Identifier: MIT */
#include "core/intake.h"
#include "core/asks.h"
#include "core/handshake.h"
#include "core/inquiry.h"
#include "core/notify.h"
#include "core/requests.h"
#include "core/trust.h"
#include "core/turns.h"

#include "base/hash.h"
#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/limits.h"
#include "wire/splice.h"

#include <string.h>

/* Return true for a prompt of this client, or of another connection of the same one (contract 9.2). A process of an
 * agent takes no name. */
static bool is_own(const struct prompt *p, struct client *c) {
	if (p->client == c->id) return true;
	if (trust_of(c->world, c) == TRUST_AGENT) return false;
	return p->uid == c->peer.uid && p->name && c->name && strcmp(p->name, c->name) == 0;
}

static bool same_client(const struct session *s, const struct prompt *p, struct client *c, uint64_t hash) {
	const struct attachment *a;
	if (is_own(p, c)) return true;
	/* a retry on a new connection without a name: the old one is closed */
	if (p->uid != c->peer.uid || (p->name && c->name) || p->bytes_hash != hash) return false;
	LIST_FOR_EACH (a, &s->attachments, const struct attachment, node)
		if (a->client->id == p->client) return client_hung_up(a->client);
	return true;
}

static void tell_fresh_uuid(struct client *c, struct span old, const char *fresh) {
	struct buf b = NOTICE_INIT;
	/* A sender that named none has nothing by which it would recognize the result. */
	bool named = old.p && !span_same(old, span_of("null")) && !span_same(old, span_of("\"\""));
	if (!named || c->filter.quiet) return;
	notice_begin(&b, PLENUM_EV_CHANGED, c->attachment->session->name);
	notice_text(&b, "what", "uuid");
	notice_raw(&b, "was", old);
	notice_text(&b, "value", fresh);
	client_tell(c, notice_end(&b));
}

static bool held_back(const struct session *s, const struct client *c) {
	const struct prompt *p;
	if (!s->profile->prompts_queue) return false;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node)
		if (p->client != c->id || p->state == PROMPT_HELD) return true;
	return false;
}

static void lose_prompt(struct session *s, struct prompt *p) {
	struct client *c = p->asker;
	struct call *call = call_of_prompt(&s->calls, p->uuid);
	if (call)
		requests_fail(call, PLENUM_E_INTERNAL, "out of memory: this prompt was not passed on");
	else if (c && !c->filter.quiet) {
		struct buf b = NOTICE_INIT;
		notice_error(&b, s->name, PLENUM_E_INTERNAL, "out of memory: this prompt was not passed on");
		notice_text(&b, "uuid", p->uuid);
		client_tell(c, notice_end(&b));
	}
	prompt_done(&s->prompts, p);
}

/* Show it to the others. */
static void echo(struct session *s, const struct prompt *p, const struct envelope *e) {
	struct buf b = NOTICE_INIT, by = NOTICE_INIT;
	notice_text(&by, "uuid", p->uuid);
	notice_text(&by, "name", p->name);
	notice_number(&by, "uid", p->uid);
	notice_number(&by, TAPE_SENDER, (int64_t)p->client);
	if (by.data) *by.data = '{'; /* in place of the comma */
	buf_putc(&by, '}');
	if (!by.failed) session_dialect(s)->put_echo(&b, e, s->conversation_id, (struct span){by.data, by.len});
	struct chunk all = notice_chunk(&b), one;
	for (size_t at = 0; (one = chunk_next_line(all, &at)).data;)
		tape_append(&s->tape, one, LINE_OTHER, TAPE_REPLAY | TAPE_OTHERS);
	chunk_drop(&all);
	buf_free(&by);
	notify_wake(s);
}

/* A prompt that is a request goes out under the id of its call. Without memory it has no pieces. */
static struct rope under_call(struct session *s, struct prompt *p, struct chunk line) {
	struct call *call = call_of_prompt(&s->calls, p->uuid);
	struct span body = splice_body(line);
	char raw[CALL_ID_MAX + 2];
	struct envelope e;
	if (!call || !session_dialect(s)->scan(body.p, body.n, &e)) return (struct rope){0};
	call->child = p->child;
	struct rope out = requests_line_for(s, line, &e, call_raw_id(&s->calls, call, raw));
	if (!out.n) return out;
	if (session_dialect(s)->put_echo) echo(s, p, &e);
	if (!session_dialect(s)->accepts_prompts) turns_sent(s, p);
	return out;
}

/* Takes the rope over, which is in one piece if it was queued, or is a request. */
static void send_prompt(struct session *s, struct prompt *p, struct rope *line, struct share *payer) {
	handshake_before_prompt(s);
	p->child = session_writes_to(s);
	p->state = PROMPT_SENT;
	if (!session_dialect(s)->prompt_id) {
		struct rope out = under_call(s, p, line->parts[0]);
		rope_drop(line);
		*line = out;
	}
	bool deaf = session_has_child(s) && !agent_hears(s->agent); /* its end, which reports its prompts, is near */
	if (!session_write_charged(s, line, payer) && !deaf) lose_prompt(s, p);
}

/* With prompts = queue: return true if a turn of another client runs, or waits for the child's answer. */
static bool is_another_s_turn(const struct session *s, uint64_t client) {
	const struct prompt *p;
	if (!s->profile->prompts_queue) return false;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node)
		if (p->client != client && p->state != PROMPT_HELD) return true;
	return false;
}

/* Return the next prompt that may go; prompts that wait for their sender's initialize do not delay others. */
static struct prompt *next_to_go(const struct session *s) {
	struct prompt *p;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node) {
		if (p->state != PROMPT_HELD || handshake_holds_prompt(s, p)) continue;
		bool own_turn = s->profile->prompts_queue && s->progress.turn && s->prompts.n_open == s->prompts.n_held;
		return own_turn || is_another_s_turn(s, p->client) ? NULL : p; /* own: without a client */
	}
	return NULL;
}

static void refuse_held(struct session *s) {
	struct prompt *p;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node) {
		struct client *c = p->asker;
		if (p->state != PROMPT_HELD || !c || !handshake_refused(c)) continue;
		struct buf b = NOTICE_INIT;
		notice_error(&b, s->name, PLENUM_E_INITIALIZE_REFUSED, HANDSHAKE_REFUSED_TEXT);
		notice_text(&b, "uuid", p->uuid);
		client_tell(c, notice_end(&b));
		prompt_forget(&s->prompts, p);
	}
}

void intake_send_held(struct session *s) {
	struct prompt *p;
	struct error error;
	if (s->world->shutting_down || !s->prompts.n_held) return;
	if (s->agent && !session_is_ready(s)) return; /* its start, or its end, is not over */
	refuse_held(s);
	while ((p = next_to_go(s)) != NULL) {
		if (!session_wake(s, &error) || !session_is_ready(s)) return;
		struct share *payer;
		struct rope line = rope_of(prompt_release(&s->prompts, p, &payer));
		size_t len = line.len;
		send_prompt(s, p, &line, payer); /* charged once more, in the queue */
		share_give(payer, SHARE_BYTES, len);
	}
}

static bool refuse_prompt(struct client *c, struct session *s, const struct message *m, size_t len, bool hold) {
	struct error error, why;
	const struct prompt *p;
	if (!share_allows(&s->world->shares, c->peer.uid, SHARE_BYTES, len, &why)) {
		notify_refuse(c, m, PLENUM_E_SHARE_EXCEEDED, "%s", why.text);
		return true;
	}
	if (s->prompts.n_open >= LIMITS_PROMPTS) {
		notify_refuse(c, m, PLENUM_E_BUSY,
					  "session %s has %zu prompts without a result, which is the limit: send it again later", s->name,
					  s->prompts.n_open);
		return true;
	}
	struct queue all = *session_queue(s);
	if (hold) { /* queued prompts are charged like lines for the child */
		LIST_FOR_EACH (p, &s->prompts.open, const struct prompt, node) {
			all.bytes += p->held.len;
			all.count += p->held.len != 0;
		}
	}
	if (!queue_has_room(&all, len)) {
		notify_refuse(c, m, PLENUM_E_BUSY, "%s of session %s has too much to read already: send it again later",
					  hold ? "the queue" : "the child", s->name);
		return true;
	}
	inquiry_take_login(s, c);
	if (session_wake(s, &error)) return false;
	notify_refuse(c, m, s->lost_profile ? PLENUM_E_NO_SUCH_PROFILE : PLENUM_E_CHILD_EXITED, "%s", error.text);
	return true;
}

/* Return true if an earlier change that this prompt needs was refused. */
static bool lacks_something(struct client *c, const struct message *m) {
	if (handshake_refused(c))
		notify_refuse(c, m, PLENUM_E_INITIALIZE_REFUSED, HANDSHAKE_REFUSED_TEXT);
	else if (c->refused_change)
		notify_refuse(
			c, m, PLENUM_E_CHANGE_REFUSED,
			"your change of %s was refused: no prompt of yours runs under laxer rules than you asked for (repeat "
			"the change, or connect anew)",
			c->refused_change);
	else if (c->attachment->session->by_client && !c->attachment->session->conversation_id)
		notify_refuse(c, m, PLENUM_E_BAD_REQUEST, "this connection has no conversation yet: begin one first");
	else
		return false;
	return true;
}

/* Return true if this prompt for the running turn has none to join: queued it would come too late. */
static bool has_no_turn(struct client *c, const struct session *s, const struct message *m) {
	if (!m->joins) return false;
	if (!session_has_child(s) || !session_is_ready(s))
		notify_refuse(c, m, PLENUM_E_INVALID_REQUEST, "no turn runs in session %s (begin one)", s->name);
	else if (is_another_s_turn(s, c->id))
		notify_refuse(
			c, m, PLENUM_E_NOT_ALLOWED,
			"the turn is another client's, and session %s queues prompts (prompts): begin a turn, it will wait",
			s->name);
	else
		return false;
	return true;
}

/* Return the line under a uuid: the sender's own, or `fresh` if that is not empty. */
static struct rope own_line(const struct session *s, struct chunk line, struct span uuid, const char *fresh) {
	struct span body = splice_body(line);
	const char *member = session_dialect(s)->prompt_id;
	if (!*fresh || !member) return rope_of(splice_line(line, body));
	struct splice_edit own = splice_string(body, uuid, member, fresh);
	return splice_edits(line, body, &own, 1, CHUNK_NONE);
}

static struct prompt *add_prompt(struct client *c, struct session *s, const struct message *m, const char *name,
								 uint64_t hash) {
	struct prompt *p = prompt_add(&s->prompts, name, strlen(name));
	if (!p) return NULL;
	p->client = c->id;
	p->uid = c->peer.uid;
	p->name = str_dup(c->name);
	p->asker = c;
	p->bytes_hash = hash;
	p->command = m->command;
	if (session_dialect(s)->prompt_id) return p;
	/* A prompt that is a request: its sender waits for the answer. */
	struct call *call = call_new(&s->calls, s, s->loop, CALL_PROMPT, c, c->id, m->env.request_id, requests_timer);
	if (call && (call->value = strdup(p->uuid))) {
		share_begin(&call->charge, &c->member, false);
		return p;
	}
	if (call) call_end(&s->calls, call);
	prompt_forget(&s->prompts, p);
	return NULL;
}

/* Return true if the prompt repeats a known one; the client was notified. */
static bool is_repeated(struct client *c, struct session *s, struct prompt *known, uint64_t hash) {
	struct buf b = NOTICE_INIT;
	if (!known || !same_client(s, known, c, hash)) return false;
	if (known->state != PROMPT_DONE && !known->asker) { /* its connection was closed: this one waits for the end now */
		known->asker = c;
		known->client = c->id;
	}
	if (c->filter.quiet) return true;
	notice_error(&b, s->name, PLENUM_E_DUPLICATE_REQUEST,
				 "this prompt was accepted before under the same uuid; it is not sent again");
	notice_number(&b, "line", (int64_t)c->lines_in);
	notice_text(&b, "uuid", known->uuid);
	client_tell(c, notice_end(&b));
	return true;
}

void intake_prompt(struct client *c, struct session *s, struct chunk line, const struct message *m) {
	const struct envelope *e = &m->env;
	struct span body = splice_body(line);
	uint64_t hash = hash_text(body.p, body.n);
	_cleanup_free_ char *uuid = span_dup(e->uuid, NULL); /* as the child reads it, and repeats it */
	struct prompt *known = uuid ? prompt_find(&s->prompts, e->uuid) : NULL;
	char fresh[37] = "";
	if (lacks_something(c, m) || is_repeated(c, s, known, hash) || has_no_turn(c, s, m)) return;
	bool queued = (!m->joins && held_back(s, c)) || handshake_holds(s, c), hold = queued || !session_is_ready(s);
	if (refuse_prompt(c, s, m, body.n + 64, hold)) return;
	if (known || !uuid || !*uuid) str_uuid(fresh);
	struct rope out = own_line(s, line, e->uuid, fresh);
	if (hold) { /* a queued prompt is in one piece */
		struct chunk one = rope_join(&out);
		rope_drop(&out);
		out = rope_of(one);
	}
	struct prompt *p = out.n ? add_prompt(c, s, m, *fresh ? fresh : uuid, hash) : NULL;
	if (!p) {
		rope_drop(&out);
		notify_refuse(c, m, PLENUM_E_INTERNAL, "out of memory");
		return;
	}
	if (*fresh) tell_fresh_uuid(c, e->uuid, fresh);
	session_used(s);
	if (!hold) {
		send_prompt(s, p, &out, c->member.share);
		return;
	}
	prompt_hold(&s->prompts, p, out.parts[0], c->member.share);
	p->needs = handshake_needs(s, c);
	if (queued) notify_changed_text(s, "prompt_held", p->uuid, c);
}

/* --- withdrawal --------------------------------------------------------------------------------------------------- */

/* Queued prompts are cancelled here: the child does not know them. */
void intake_cancel_held(struct session *s, struct client *c, bool all) {
	struct prompt *p;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node)
		if (p->state == PROMPT_HELD && (all || is_own(p, c))) turns_prompt_cancelled(s, p, c);
}

void intake_leave(struct client *c) {
	struct attachment *a = c->attachment;
	struct prompt *p;
	LIST_FOR_EACH (p, &a->session->prompts.open, struct prompt, node)
		if (p->state == PROMPT_HELD && p->asker == c && handshake_holds_prompt(a->session, p))
			turns_prompt_cancelled(a->session, p, c);
}

/* Withdraw this client's prompts that the child has not taken up yet. */
static void cancel_own(struct session *s, struct client *c) {
	struct prompt *p;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node) {
		if (p->state != PROMPT_SENT || !is_own(p, c)) continue;
		struct call *call = call_new(&s->calls, s, s->loop, CALL_SILENT, NULL, 0, SPAN_NONE, requests_timer);
		if (!call) continue;
		struct buf uuid = NOTICE_INIT, b = NOTICE_INIT;
		str_put_json(&uuid, p->uuid, strlen(p->uuid));
		session_dialect(s)->put_cancel_prompt(&b, call->id, p->uuid);
		call->act = ACT_CANCEL_PROMPT;
		call->child = session_writes_to(s);
		call->value = uuid.data;
		session_write(s, notice_chunk(&b), true);
		loop_timer_set(&call->timer, s->profile->control_timeout);
	}
}

static void put_interrupt(struct buf *b, const struct session *s, const char *id, const char *unused) {
	(void)unused;
	session_dialect(s)->put_interrupt(b, id, s->conversation_id, &s->memo);
}

static bool others_wait(const struct session *s, struct client *c) {
	const struct prompt *p;
	LIST_FOR_EACH (p, &s->prompts.open, const struct prompt, node)
		if (!is_own(p, c)) return true;
	return false;
}

void intake_interrupt(struct client *c, struct session *s, struct chunk line, const struct envelope *e) {
	const struct dialect *d = session_dialect(s);
	bool queued = d->cancels_queued && d->cancels_queued(e);
	bool all = span_is_true(span_member(e->request, "plenum_all"));
	bool spare = queued && !all && others_wait(s, c); /* the child itself would withdraw all of them */
	if (spare) cancel_own(s, c);                      /* before the end of the turn lets the child take them up */
	struct call *call = requests_send(c, s, line, e, spare ? put_interrupt : NULL, NULL);
	if (!call) return;
	call->act = ACT_INTERRUPT;
	if (queued) intake_cancel_held(s, c, all);
}

void intake_interrupt_line(struct client *c, struct session *s, struct chunk line, const struct envelope *e) {
	bool runs = session_has_child(s) && session_is_ready(s);
	if (runs && !requests_pass_line(c, s, line, e)) return;
	intake_cancel_held(s, c, false);
	if (runs) asks_cancel_turn(s);
}

bool intake_withdraw_held(struct session *s, struct call *call, const struct client *by) {
	struct prompt *p;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node) {
		if (strcmp(p->uuid, call->value) != 0) continue;
		if (p->state != PROMPT_HELD) return false;
		turns_prompt_cancelled(s, p, by);
		return true;
	}
	return false;
}

/* Withdraw one prompt. The child does not know queued ones; a client cannot withdraw another's by accident. */
void intake_cancel_prompt(struct client *c, struct session *s, struct chunk line, const struct envelope *e) {
	struct span uuid = session_dialect(s)->cancelled_prompt(e);
	struct prompt *p = prompt_find(&s->prompts, uuid);
	bool open = p && p->state != PROMPT_DONE;
	if (open && !is_own(p, c) && !span_is_true(span_member(e->request, "plenum_all"))) {
		notify_fail(c, e->request_id, PLENUM_E_NOT_ALLOWED,
					"this prompt is another client's: say \"plenum_all\":true to take it back all the same");
		return;
	}
	if (!open || p->state != PROMPT_HELD) {
		struct call *call = requests_send(c, s, line, e, NULL, NULL);
		if (!call) return;
		call->act = ACT_CANCEL_PROMPT;
		call->value = uuid.p ? strndup(uuid.p, uuid.n) : NULL;
		return;
	}
	struct buf b = NOTICE_INIT;
	c->dialect->put_prompt_cancelled(&b, e->request_id, uuid);
	turns_prompt_cancelled(s, p, c);
	client_post(c, notice_chunk(&b));
}
