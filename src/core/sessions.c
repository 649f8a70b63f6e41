/* SPDX-License-Identifier: MIT */
#include "core/sessions.h"
#include "core/asks.h"
#include "core/attachment.h"
#include "core/guards.h"
#include "core/handshake.h"
#include "core/notify.h"
#include "core/owners.h"
#include "core/stall.h"
#include "core/trust.h"
#include "core/warm.h"

#include "base/fd.h"
#include "base/str.h"
#include "plenum/protocol.h"

#include <stdio.h>
#include <string.h>

bool sessions_is_name(const char *name) {
	size_t n = strlen(name), len;
	if (n == 0 || n > SESSIONS_NAME_MAX) return false;
	for (size_t i = 0; i < n; i += len) {
		len = str_utf8(name + i, n - i);
		if (!len || str_misleads(str_char(name + i, len))) return false;
	}
	return true;
}

void sessions_make_up_name(struct router *r, char out[SESSIONS_MADE_UP_MAX]) {
	char hex[9];
	do {
		str_random_hex(hex, 8);
		snprintf(out, SESSIONS_MADE_UP_MAX, "s-%s", hex);
	} while (router_find(r, out));
}

static void on_over(void *arg) {
	struct session *s = arg;
	struct router *r = s->world;
	if (s->agent || s->starting) session_stop(s, false, THEN_REMOVE);
	if (!s->agent && !s->removed) r->events->session_over(r, s);
}

struct session *sessions_add(struct router *r, const char *name, const struct profile *profile, struct launch *launch,
							 uint64_t id) {
	launch->instance = r->instance;
	launch->nofile = r->nofile;
	launch->length = launch_length(launch);
	login_share(&launch->login, &r->login);
	struct share *payer = share_take(&r->shares, launch->uid, SHARE_SESSIONS, 1);
	struct session *s = payer ? session_new(r->loop, &r->pool, r->children, r->settings, profile, name, launch,
											r->child_events, r)
							  : NULL;
	if (s && handshake_begin(s) && HASH_TRY_ADD(hh, r->sessions, s->name, strlen(s->name), s)) {
		s->payer = payer;
		s->id = id ? id : ++r->sessions_seen;
		loop_task_init(&s->over_task, on_over, s);
		r->n_sessions++;
		return s;
	}
	share_give(payer, SHARE_SESSIONS, 1);
	if (s) handshake_free(s);
	if (s) session_remove(s);
	return NULL;
}

struct session *sessions_create(struct router *r, const char *name, const struct profile *profile,
								struct launch *launch) {
	struct session *s = sessions_add(r, name, profile, launch, 0);
	if (!s) return NULL;
	struct buf b = NOTICE_INIT;
	if (r->guards_lost) guards_lose(&s->registry, s, s->loop, owners_grace_timer);
	tape_begin(&s->tape, r->last_seq + 1, true); /* above the numbers of an earlier session of this name */
	notice_begin(&b, PLENUM_EV_SESSION_CREATED, s->name);
	notice_text(&b, "profile", profile->name);
	notice_text(&b, "cwd", s->launch.cwd);
	notify_subscribers(s, notice_end(&b));
	r->events->changed(r);
	return s;
}

enum child_result sessions_start(struct router *r, struct session *s, struct error *error) {
	if (warm_give(r->warm, s)) return CHILD_OK;
	return session_start_once(s, error);
}

void sessions_leave_begin(struct session *s) {
	s->by_client = session_has_steps(s);
}

void sessions_renew_profile(struct session *s) {
	struct router *r = s->world;
	const struct profile *p = settings_profile(r->settings, session_profile(s));
	if (!p || s->agent || s->settings == r->settings) return; /* a removed profile lives on with its sessions */
	if (p->dialect != s->profile->dialect) return; /* its clients, hooks, kept answers and tape are of the old one */
	session_use_profile(s, r->settings, p);
}

void sessions_remove(struct router *r, struct session *s, const char *why) {
	struct attachment *a;
	struct client *waiting;
	struct buf b = NOTICE_INIT;
	if (s->removed) return;
	asks_withdraw_all(s, why);
	while (!asks_tell_some(s)) continue;
	notice_begin(&b, PLENUM_EV_SESSION_REMOVED, s->name);
	notice_text(&b, "reason", why);
	notify_session(s, notice_end(&b));
	owners_forget(s);
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) attachment_end(a, why);
	if (!s->ephemeral) r->last_seq = MAX(r->last_seq, s->tape.next - 1);
	HASH_DELETE(hh, r->sessions, s);
	r->n_sessions--;
	share_give(s->payer, SHARE_SESSIONS, 1);
	s->payer = NULL;
	LIST_FOR_EACH (waiting, &r->clients, struct client, node) client_release(waiting); /* for a free name */
	handshake_free(s);
	loop_timer_stop(s->pace.timer);
	stall_over(s);
	loop_task_stop(&s->over_task);
	session_remove(s);
	r->events->changed(r);
}

bool sessions_rename(struct session *s, const char *name) {
	struct router *r = s->world;
	struct buf b = NOTICE_INIT;
	notice_begin(&b, PLENUM_EV_CHANGED, s->name);
	notice_text(&b, "what", "name");
	notice_text(&b, "value", name);
	HASH_DELETE(hh, r->sessions, s); /* its key is the name */
	bool done = session_rename(s, name);
	HASH_ADD_KEYPTR(hh, r->sessions, s->name, strlen(s->name), s);
	struct chunk notice = notice_end(&b);
	if (done)
		notify_session(s, notice);
	else
		chunk_drop(&notice);
	r->events->changed(r);
	return done;
}

bool sessions_must_wait(struct session *s, struct client *c) {
	struct attachment *a;
	if (s->ending) { /* the client that it ends with may have ended its input in this turn */
		LIST_FOR_EACH (a, &s->attachments, struct attachment, node) {
			if (!a->ephemeral || !a->client->ended) continue;
			attachment_close_ended(a->client);
			break;
		}
	}
	if (!session_is_going(s)) return false;
	if (s->agent && trust_may_stop(s, c)) session_stop(s, false, THEN_REMOVE);
	return true;
}

const char *sessions_refused(struct router *r, const struct client *c, struct error *why) {
	size_t max = r->settings->max_sessions, kept = client_is_ours(c) ? 0 : share_reserve(max);
	if (!share_allows(&r->shares, c->peer.uid, SHARE_SESSIONS, 1, why)) return PLENUM_E_SHARE_EXCEEDED;
	if (r->n_sessions + kept >= max)
		error_set(why, "there are %zu of %zu sessions (max_sessions)%s: forget one first", r->n_sessions, max,
				  kept ? ", the rest is the daemon's user's" : "");
	else if (kept && fd_is_short(SHARE_RESERVE_MAX))
		error_set(why, "too few descriptors are free (ulimit -n, LimitNOFILE): forget a session first");
	else
		return NULL;
	return PLENUM_E_TOO_MANY;
}

const char *sessions_full(const struct router *r, const struct launch *l, struct error *why) {
	size_t more = launch_length(l), all = 0;
	for (const struct session *s = r->sessions; s; s = s->hh.next)
		if (!s->ephemeral) all += s->launch.length; /* an ephemeral one is not in the table */
	if (!more || all + more <= LIMITS_TABLE_STARTS) return NULL;
	error_set(
		why,
		"all sessions may have %zu bytes of args and env (table_starts): they have %zu, and this is %zu more; forget "
		"sessions",
		LIMITS_TABLE_STARTS, all, more);
	return PLENUM_E_TOO_MANY;
}
