/* SPDX-License-Identifier: MIT */
#include "core/trust.h"
#include "core/descent.h"

#include "base/log.h"
#include "io/errand.h"
#include "plenum/protocol.h"

#include <stdio.h>
#include <stdlib.h>

/* --- origin ------------------------------------------------------------------------------------------------------ */

/* Return true if the origin cannot change at the next check. */
static bool is_final(enum origin o) {
	return o != ORIGIN_NEW && o != ORIGIN_HIDDEN && o != ORIGIN_ASKED && o != ORIGIN_SILENT;
}

/* What the environments of a process and its ancestors say: an errand reads them. */
struct asked {
	struct list node;
	struct errand errand;
	struct loop_task free_task;
	struct router *router;
	struct watch *watch; /* it is one of its users */
	enum origin without; /* the result if they say nothing */
};

static void end_asked(struct asked *a) {
	list_del(&a->node);
	errand_drop(&a->errand);
	a->watch->asked = NULL;
	watch_drop(a->watch);
	loop_task_init(&a->free_task, free, a);
	loop_defer_free(a->router->loop, &a->free_task); /* it may be the caller */
}

static void tell(struct router *r, const struct client *c);

static void on_answer(void *arg, enum errand_end end) {
	struct asked *a = arg;
	struct router *r = a->router;
	struct watch *w = a->watch;
	const struct buf *answer = &a->errand.answer;
	struct client *c;
	uint64_t family;
	struct span said = {answer->data, end == ERRAND_DONE ? answer->len : 0};
	enum origin o = descent_said(r, said, a->without, &family);
	/* A process that has ended meanwhile is not trusted, but what was seen of it does not make it an agent's. */
	w->origin = o == ORIGIN_AGENT || watch_alive(w) ? o : ORIGIN_SILENT;
	w->family = family;
	w->asked = NULL;
	LIST_FOR_EACH (c, &r->clients, struct client, node) {
		if (c->watch != w) continue;
		trust_look(r, c);
		tell(r, c);
		if (c->origin != ORIGIN_ASKED) client_release(c);
	}
	end_asked(a);
}

/* Without a process for an errand the client is not trusted until its next line, at which it is asked again. */
static void ask(struct router *r, struct client *c, const struct buf *request, enum origin without) {
	struct watch *w = c->watch;
	struct asked *a = request->failed ? NULL : calloc(1, sizeof *a);
	char place[32];
	struct error error;
	if (!a) {
		w->origin = ORIGIN_SILENT;
		return;
	}
	snprintf(place, sizeof place, "/proc/%d", (int)w->pid);
	struct errand_spec spec = {.kind = DESCENT_ERRAND,
							   .request = request->data,
							   .n = request->len,
							   .place = place,
							   .uid = c->peer.uid,
							   .limit = r->settings->outside_timeout,
							   .answer_max = (size_t)1024 * 1024};
	if (errand_begin(&a->errand, r->children, &spec, on_answer, a, &error) == CHILD_OK) {
		a->router = r;
		a->watch = w;
		a->without = without;
		w->users++;
		w->asked = a;
		list_add_tail(&r->asked, &a->node);
		return;
	}
	if (w->origin == ORIGIN_NEW) log_warn("client %llu: its origin: %s", (unsigned long long)c->id, error.text);
	w->origin = ORIGIN_SILENT;
	free(a);
}

void trust_ask_no_more(struct router *r) {
	struct asked *a;
	LIST_FOR_EACH (a, &r->asked, struct asked, node) end_asked(a);
}

/* A result found by the number of the process is valid if it still lives afterwards. */
static void look_anew(struct router *r, struct client *c) {
	struct watch *w = c->watch;
	struct buf request = BUF_INIT((size_t)64 * 1024 * 1024);
	uint64_t family;
	enum origin o = descent_of(r, w->pid, &family, &request);
	bool settled = !request.len || (o == ORIGIN_HIDDEN && w->origin != ORIGIN_NEW); /* else asked before */
	if (watch_alive(w) && settled)
		w->origin = o, w->family = family;
	else if (watch_alive(w))
		ask(r, c, &request, o);
	buf_free(&request);
}

static const char *origin_text(enum origin o) {
	static const char *const texts[] = {
		[ORIGIN_AGENT] = "an agent started this program (run it from a shell of your own)",
		[ORIGIN_HIDDEN] =
			"the daemon cannot see in /proc where this program comes from (mount /proc without hidepid, or "
			"make the daemon's user a member of the group of its gid= option)",
		[ORIGIN_GONE] = "the process that made this connection has ended, so that its origin cannot be seen (connect "
						"from the process that stays)",
		[ORIGIN_UNSURE] =
			"the kernel does not report which process made this connection (use Linux 6.5 or later, or load "
			"the module unix_diag and start this program before it connects)",
		[ORIGIN_ABROAD] =
			"this program runs in another pid namespace, where the daemon cannot see it (run the daemon and "
			"its clients in one container)",
		[ORIGIN_UNWATCHED] = "the daemon cannot watch this process (pidfd_open needs Linux 5.3, and leave of the "
							 "container's seccomp filter)",
		[ORIGIN_ASKED] = "the daemon does not know yet where this program comes from",
		[ORIGIN_SILENT] =
			"the environment of this program, or of the one that started it, cannot be read (does it hang, "
			"or is the daemon at its limit of processes?)",
	};
	return (size_t)o < ARRAY_SIZE(texts) ? texts[o] : NULL;
}

/* Log each cause once, not for each client. A process of an agent needs no fix and is not logged. */
static void tell(struct router *r, const struct client *c) {
	unsigned bit = 1U << c->origin;
	bool quiet = c->origin == ORIGIN_AGENT || c->origin == ORIGIN_GONE || c->origin == ORIGIN_ASKED;
	const char *text = quiet ? NULL : origin_text(c->origin);
	if (!text || r->origins_told & bit) return;
	r->origins_told |= bit;
	log_warn("client %llu (uid %u, pid %d) is not trusted: %s", (unsigned long long)c->id, c->peer.uid, c->peer.pid,
			 text);
}

/* Check all connections of a process at once. */
enum origin trust_look(struct router *r, struct client *c) {
	struct watch *w = c->watch;
	if (is_final(c->origin)) return c->origin;
	if (w && !w->asked && !is_final((enum origin)w->origin) && watch_alive(w)) look_anew(r, c);
	bool met = w && w->origin != ORIGIN_NEW;
	enum origin origin = met ? (enum origin)w->origin : w && w->asked ? ORIGIN_ASKED : ORIGIN_GONE;
	client_set_origin(c, origin, w ? w->family : 0);
	return c->origin;
}

void trust_meet(struct router *r, struct client *c) {
	if (c->origin == ORIGIN_UNWATCHED) { /* without a pidfd only negative results count; no environment is read */
		struct buf request = BUF_INIT((size_t)64 * 1024 * 1024);
		uint64_t family;
		bool agent = descent_of(r, c->peer.pid, &family, &request) == ORIGIN_AGENT;
		buf_free(&request);
		if (agent) client_set_origin(c, ORIGIN_AGENT, family);
	}
	trust_look(r, c);
	tell(r, c);
}

bool trust_is_asked(struct router *r, struct client *c) {
	return c->origin == ORIGIN_ASKED && trust_look(r, c) == ORIGIN_ASKED;
}

/* A process may pass its connection on before it ends: its result is not valid for the other process. Its lines of one
 * turn are judged alike. */
bool trust_is_free(struct router *r, struct client *c) {
	return trust_look(r, c) == ORIGIN_FREE && watch_alive_in(c->watch, loop_turn(r->loop));
}

/* --- rights ------------------------------------------------------------------------------------------------------ */

bool trust_may_approve(struct router *r, struct client *c) {
	const struct access *a = &r->settings->approve;
	bool named = a->n_uids || a->n_gids;
	bool among = named ? access_allows_peer(a, &c->peer, c->io.fd) : client_is_ours(c);
	return among && trust_is_free(r, c);
}

enum trust trust_of(struct router *r, struct client *c) {
	enum origin o = trust_look(r, c);
	bool uncertain = o == ORIGIN_GONE || o == ORIGIN_UNSURE || o == ORIGIN_ASKED;
	if (o == ORIGIN_AGENT || uncertain) return TRUST_AGENT;
	return client_is_ours(c) && trust_may_approve(r, c) ? TRUST_OWN : TRUST_DRIVER;
}

enum trust trust_in(struct router *r, const struct attachment *a) {
	return a->observer ? TRUST_OBSERVER : trust_of(r, a->client);
}

const char *trust_name(enum trust t) {
	static const char *const names[] = {PLENUM_PEER_OWN, PLENUM_PEER_DRIVER, PLENUM_PEER_AGENT, PLENUM_PEER_OBSERVER};
	return names[t];
}

const char *trust_why(struct router *r, struct client *c) {
	if (trust_of(r, c) == TRUST_OWN) return NULL;
	if (c->origin != ORIGIN_FREE) return origin_text(c->origin);
	if (!watch_alive(c->watch)) return origin_text(ORIGIN_GONE);
	if (!client_is_ours(c)) return "this user is not the user of the daemon (connect as that user)";
	return "this user is not among the approvers (approve_uids and approve_groups in plenum.conf)";
}

struct session *trust_session(struct router *r, struct client *c) {
	if (trust_look(r, c) != ORIGIN_AGENT) return NULL;
	return router_find_number(r, c->family);
}

struct session *trust_home(struct router *r, struct client *c) {
	struct session *home = trust_session(r, c);
	return home && !home->profile->agent_peers_none ? home : NULL;
}

struct trust_view trust_view(struct router *r, struct client *c) {
	bool agent = trust_of(r, c) == TRUST_AGENT;
	return (struct trust_view){.ours = client_is_ours(c), .agent = agent, .home = agent ? trust_home(r, c) : NULL};
}

bool trust_view_has(const struct trust_view *v, const struct session *s) {
	if (session_is_private(s) && !v->ours) return false;
	return !v->agent || (v->home && (s == v->home || s->made_by == v->home->id));
}

bool trust_is_closed_to(const struct session *s, struct client *c) {
	struct trust_view v = trust_view(s->world, c);
	return !trust_view_has(&v, s);
}

bool trust_may_stop(const struct session *s, struct client *c) {
	return trust_is_free(s->world, c) && (client_is_ours(c) || c->peer.uid == s->launch.uid);
}
