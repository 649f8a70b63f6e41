/* SPDX-License-Identifier: MIT */
#include "core/channels.h"

#include "core/attachment.h"
#include "core/execute.h"
#include "core/handshake.h"
#include "core/kept.h"
#include "core/notify.h"
#include "core/sessions.h"

#include "base/log.h"
#include "plenum/protocol.h"

#include <string.h>

/* --- whose line it is --------------------------------------------------------------------------------------------- */

static bool has_open(struct client *c, struct span id) {
	struct session *s = c->attachment ? c->attachment->session : NULL;
	return s && (call_of(&s->calls, c->id, id) || handshake_waits(s, c, id) || (id.p && execute_open(s, c, id)));
}

struct client *channels_with(struct client *c, struct span id) {
	struct client *carrier = c->carrier ? c->carrier : c, *one;
	if (has_open(carrier, id)) return carrier;
	LIST_FOR_EACH (one, &carrier->channels, struct client, channel)
		if (has_open(one, id)) return one;
	return NULL;
}

/* Return true if the line names an object of this client's session. */
static bool is_named(struct client *c, const struct message *m) {
	const struct envelope *e = &m->env;
	struct session *s = c->attachment ? c->attachment->session : NULL;
	if (!s) return false;
	if (m->kind == MESSAGE_CANCEL) return has_open(c, e->request_id);
	if (m->kind == MESSAGE_ANSWER)
		return pending_find(&s->pendings, e->inner_request_id) ||
			   pending_was_settled(&s->pendings, e->inner_request_id);
	_cleanup_free_ char *conversation = span_dup(e->session_id, NULL);
	return conversation && router_has_conversation(s, conversation);
}

struct client *channels_of(struct client *c, const struct message *m) {
	struct client *one;
	if (!client_has_channels(c) || is_named(c, m)) return c;
	LIST_FOR_EACH (one, &c->channels, struct client, channel)
		if (is_named(one, m)) return one;
	/* No conversation is named, or an unknown one: it is for the client's own session, if it has one. */
	return c->attachment ? c : LIST_TOP(&c->channels, struct client, channel);
}

/* --- begin and end ------------------------------------------------------------------------------------------------ */

static struct client *new_channel(struct client *c) {
	struct router *r = c->world;
	struct client *channel = client_new_channel(c->carrier ? c->carrier : c, &r->shares);
	if (channel) router_add_client(r, channel);
	return channel;
}

/* Make the session that the request is to begin: of the same profile, with the same options for its child. */
static struct session *make(struct client *c, struct session *like, const struct envelope *e) {
	struct router *r = c->world;
	struct error why;
	char name[SESSIONS_MADE_UP_MAX];
	struct launch launch = {0};
	const char *code = sessions_refused(r, c, &why);
	if (!code && !c->attachment->ephemeral) code = sessions_full(r, &like->launch, &why);
	if (code) {
		notify_fail(c, e->request_id, code, "%s", why.text);
		return NULL;
	}
	const struct profile *p = settings_profile(r->settings, session_profile(like));
	if (!p || p->dialect != session_dialect(like)) {
		notify_fail(c, e->request_id, PLENUM_E_NO_SUCH_PROFILE, "profile %s of session %s is not configured any more",
					session_profile(like), like->name);
		return NULL;
	}
	sessions_make_up_name(r, name);
	struct session *s = launch_copy(&launch, &like->launch) ? sessions_create(r, name, p, &launch) : NULL;
	launch_free(&launch);
	if (!s) {
		notify_fail(c, e->request_id, PLENUM_E_INTERNAL, "out of memory");
		return NULL;
	}
	session_set_made_by(s, like->made_by);
	sessions_leave_begin(s);
	return s;
}

/* Return true if the client cannot join it by this request: it asks for an older id of the session's conversation. */
static bool is_alias(const struct session *s, const struct envelope *e) {
	_cleanup_free_ char *id = span_dup(e->session_id, NULL);
	return !id || !session_conversation(s) || strcmp(session_conversation(s), id) != 0;
}

void channels_open(struct client *c, struct chunk line, const struct envelope *e) {
	struct router *r = c->world;
	const struct attachment *from = c->attachment;
	struct session *like = from->session;
	struct client_filter filter;
	struct error why;
	if (!share_allows(&r->shares, c->peer.uid, SHARE_CLIENTS, 1, &why)) {
		notify_fail(c, e->request_id, PLENUM_E_SHARE_EXCEEDED, "%s", why.text);
		return;
	}
	struct session *s = kept_holder(c, e);
	if (s && session_dialect(s) != session_dialect(like)) s = NULL;
	if (s && is_alias(s, e)) {
		router_in_use_text(&why, s->name);
		notify_fail(c, e->request_id, PLENUM_E_CONVERSATION_IN_USE, "%s", why.text);
		return;
	}
	struct session *made = s ? NULL : make(c, like, e);
	if (!s && !made) return;
	struct client *channel = new_channel(c);
	if (made) s = made;
	struct attachment *a = channel ? attachment_new(channel, s, from->observer, from->approve) : NULL;
	/* It gets the role and the filters of the attachment whose client asked for it. */
	if (!a || !attachment_copy(a, from, made && from->ephemeral) ||
		!client_filter_copy(&filter, &from->client->filter)) {
		notify_fail(c, e->request_id, PLENUM_E_INTERNAL, "out of memory");
		if (channel) client_kill(channel);
		if (made) loop_defer(made->loop, &made->over_task);
		return;
	}
	client_set_filter(channel, &filter);
	if (!made) kept_post(a);
	client_read_tape(channel, &s->tape, s->tape.next);
	attachment_ready(a);
	log_info("client %llu: has session %s, too, as client %llu", (unsigned long long)channel->carrier->id, s->label,
			 (unsigned long long)channel->id);
	kept_ask(channel, s, line, e);
}

void channels_gone(struct client *carrier) {
	if (carrier->dead || client_has_channels(carrier)) return;
	if (carrier->spent && !carrier->attachment)
		client_close(carrier);
	else if (carrier->ended && carrier->attachment)
		session_changed(carrier->attachment->session);
	else
		attachment_close_ended(carrier);
}
