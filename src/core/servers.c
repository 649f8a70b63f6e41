/* SPDX-License-Identifier: MIT */
#include "core/servers.h"
#include "core/handshake.h"
#include "core/notify.h"
#include "core/owners.h"
#include "core/requests.h"

#include "plenum/protocol.h"

static bool is_taken(struct client *c, struct session *s, struct span id, struct span servers) {
	struct span name, config;
	const char *as = owners_takes_up_as(c->attachment);
	for (size_t at = 0; span_next_member(servers, &at, &name, &config);) {
		const struct owner *o = owners_of_server(s, c->attachment, as, name);
		if (!o) continue;
		owners_refuse_server(c, id, name, o);
		return true;
	}
	return false;
}

/* The request drops all servers that it does not name: add those of other attachments. */
void servers_set(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
				 const struct gate_row *row) {
	struct attachment *a = c->attachment;
	const struct dialect_hooks *d = session_dialect(s)->hooks;
	struct span servers = d->servers_of(e), name, config;
	if (!span_is_object(servers)) {
		notify_fail(c, e->request_id, PLENUM_E_BAD_REQUEST, "%s", d->bad_servers);
		return;
	}
	const char *error = registry_check_servers(&s->registry, a->owner, servers);
	if (error) {
		notify_fail(c, e->request_id, registry_code(error), "%s: %s", d->set_servers_name, error);
		return;
	}
	if (is_taken(c, s, e->request_id, servers)) return;
	if (!owners_get(a)) {
		notify_fail(c, e->request_id, PLENUM_E_INTERNAL, "out of memory");
		return;
	}
	bool current = handshake_is_current(s); /* or hooks still wait to be sent */
	registry_drop_servers(&s->registry, a->owner, true);
	for (size_t at = 0; !error && span_next_member(servers, &at, &name, &config);)
		error = registry_add_server(&s->registry, a->owner, name, config, d->is_own_server(config));
	if (error) {
		notify_fail(c, e->request_id, registry_code(error), "%s: %s", d->set_servers_name, error);
		return;
	}
	if (current) handshake_made_current(s); /* the child gets them by this request */
	struct buf body = NOTICE_INIT;
	buf_puts(&body, d->set_servers);
	registry_put_servers(&s->registry, &body);
	buf_putc(&body, '}');
	if (body.failed)
		notify_fail(c, e->request_id, PLENUM_E_INTERNAL, "out of memory");
	else
		requests_announce_change(requests_send(c, s, line, e, requests_put, body.data), row, e);
	buf_free(&body);
}
