/* SPDX-License-Identifier: MIT */
#include "ctl/attach.h"

#include <string.h>

int attach_to(struct plenum *p, const char *session, json_t *members, json_t **answer) {
	if (session) json_object_set_new(members, "session", json_string(session));
	json_object_set_new(members, "name", json_string("plenumctl"));
	return ctl_ask(p, PLENUM_ATTACH, members, answer);
}

enum plenum_result attach_next(struct plenum *p, int timeout_ms, struct incoming *in) {
	enum plenum_result r = plenum_next(p, timeout_ms, &in->line.p, &in->line.n);
	if (r == PLENUM_OK && !scan_envelope(in->line.p, in->line.n, &in->e)) memset(&in->e, 0, sizeof in->e);
	return r;
}

struct span attach_event(const struct incoming *in) {
	return span_equals(in->e.subtype, PLENUM_EVENT_SUBTYPE) ? span_member(in->line, "event") : SPAN_NONE;
}

void attach_print_error(const struct incoming *in) {
	_cleanup_free_ char *code = span_dup(span_member(in->line, "code"), NULL);
	_cleanup_free_ char *error = span_dup(span_member(in->line, "error"), NULL);
	ctl_say("%s (%s)", error ? error : "the daemon refused a line", code ? code : "?");
}
