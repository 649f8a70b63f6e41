/* SPDX-License-Identifier: MIT */
#include "core/implicit.h"
#include "core/attachment.h"
#include "core/inquiry.h"
#include "core/notify.h"
#include "core/sessions.h"
#include "core/starts.h"
#include "core/trust.h"

#include "plenum/protocol.h"

/* Return true if a line of this client may make a session of this name. False: the client was notified. */
static bool may_make(struct router *r, struct client *c, const char *name, const struct profile *p, struct span id) {
	struct error why;
	const char *code;
	if (trust_of(r, c) == TRUST_AGENT)
		notify_fail(c, id, PLENUM_E_NOT_ALLOWED, TRUST_AGENT_TEXT);
	else if (!sessions_is_name(name))
		notify_fail(c, id, PLENUM_E_BAD_REQUEST, "%s names the session: " SESSIONS_NAME_TEXT, c->dialect->session_id,
					SESSIONS_NAME_MAX);
	else if (!p)
		notify_fail(c, id, PLENUM_E_NO_SUCH_PROFILE, "session %s is not there and the default profile is missing",
					name);
	else if (p->dialect->frame != c->dialect->frame)
		notify_fail(c, id, PLENUM_E_BAD_REQUEST, ROUTER_OTHER_TEXT, "the default profile", p->name, p->dialect->name,
					c->dialect->name);
	else if (p->is_private && !client_is_ours(c))
		notify_fail(c, id, PLENUM_E_NOT_ALLOWED,
					"session %s is not there, and the default profile is private to the user who runs the daemon",
					name);
	else if ((code = sessions_refused(r, c, &why)) != NULL)
		notify_fail(c, id, code, "%s", why.text);
	else
		return true;
	return false;
}

static struct session *make_implicitly(struct router *r, struct client *c, const char *name, const struct profile *p,
									   struct span id, struct chunk line) {
	struct error error;
	struct launch launch = {.uid = c->peer.uid};
	if (!inquiry_look_for(c, line, p, NULL)) return NULL;
	launch.cwd = inquiry_usual_cwd(c, p);
	inquiry_fill_launch(&launch, c, p);
	struct session *s = launch.cwd ? sessions_create(r, name, p, &launch) : NULL;
	launch_free(&launch);
	if (!s) {
		notify_fail(c, id, PLENUM_E_INTERNAL, "out of memory");
		return NULL;
	}
	sessions_leave_begin(s);
	enum child_result result = sessions_start(r, s, &error);
	if (s->starting) starts_await(c, s, line, true);
	if (result == CHILD_OK) return s->starting ? NULL : s;
	notify_fail(c, id, result == CHILD_TIMEOUT ? PLENUM_E_TIMEOUT : PLENUM_E_SPAWN_FAILED, "%s", error.text);
	sessions_remove(r, s, error.text);
	return NULL;
}

/* Return the default profile. An editor starts its agent without a word to the daemon: it gets the first one of its
 * dialect. */
static const struct profile *implicit_profile(const struct router *r, const struct client *c) {
	const struct profile *p = settings_profile(r->settings, r->settings->default_profile);
	if (!c->dialect->take_step || (p && p->dialect == c->dialect)) return p;
	for (size_t i = 0; i < r->settings->n_profiles; i++)
		if (r->settings->profiles[i].dialect == c->dialect) return &r->settings->profiles[i];
	return p;
}

static struct session *implicit_session(struct router *r, struct client *c, const char *name, struct span id,
										struct chunk line) {
	const struct profile *p = implicit_profile(r, c);
	struct session *s;
	if (c->starting) { /* the line has waited for the start of its session */
		struct error error;
		const char *code;
		bool made;
		s = starts_awaited(c, line, &made, &code, &error);
		if (code) notify_fail(c, id, code, "%s", error.text);
		return s;
	}
	s = router_named(r, name);
	if (!s) return may_make(r, c, name, p, id) ? make_implicitly(r, c, name, p, id, line) : NULL;
	if (!trust_is_closed_to(s, c)) {
		if (session_dialect(s)->frame != c->dialect->frame) {
			notify_fail(c, id, PLENUM_E_BAD_REQUEST, ROUTER_OTHER_TEXT, "session", name, session_dialect(s)->name,
						c->dialect->name);
			return NULL;
		}
		if (!sessions_must_wait(s, c)) return s;
		router_hold(c, line); /* later lines are for the next session of that name */
		return NULL;
	}
	if (trust_of(r, c) == TRUST_AGENT)
		notify_fail(c, id, PLENUM_E_NOT_ALLOWED, TRUST_AGENT_TEXT);
	else
		notify_fail(c, id, PLENUM_E_NOT_ALLOWED, TRUST_PRIVATE_TEXT, name);
	return NULL;
}

struct attachment *implicit_attach(struct router *r, struct client *c, struct span session, struct span request_id,
								   struct chunk line) {
	_cleanup_free_ char *wanted = session.p ? span_dup(session, NULL) : NULL;
	char made_up[SESSIONS_MADE_UP_MAX];
	const char *name = wanted && *wanted ? wanted : "default";
	if (name != wanted && c->dialect->take_step) { /* such a client begins a conversation of its own */
		sessions_make_up_name(r, made_up);
		name = made_up;
	} else if (c->dialect->take_step && !router_named(r, name)) {
		notify_fail(c, request_id, PLENUM_E_NO_SUCH_SESSION, "no session has the conversation %.100s", name);
		return NULL;
	}
	if (name != wanted && span_is_string(session) && session.n > 2) {
		notify_fail(c, request_id, PLENUM_E_BAD_REQUEST, "%s names the session, and no name holds a NUL",
					c->dialect->session_id);
		return NULL;
	}
	struct session *s = implicit_session(r, c, name, request_id, line);
	if (!s) return NULL;
	struct attachment *a = attachment_new(c, s, false, trust_may_approve(r, c));
	if (!a) {
		notify_fail(c, request_id, PLENUM_E_INTERNAL, "out of memory");
		return NULL;
	}
	client_read_tape(c, &s->tape, s->tape.next);
	attachment_ready(a);
	return a;
}
