/* SPDX-License-Identifier: MIT */
#include "core/status.h"
#include "core/notify.h"
#include "core/stall.h"

#include "plenum/protocol.h"

void status_publish(struct session *s) {
	struct buf b = NOTICE_INIT;
	stall_state(s);
	notice_begin(&b, PLENUM_EV_SESSION_STATE, s->name);
	notice_text(&b, "state", session_state_name(s->told_state));
	notice_text(&b, "previous", session_state_name(s->previous));
	if (s->conversation_id) notice_text(&b, "conversation_id", s->conversation_id);
	if (s->resumed_id) notice_text(&b, "resumed", s->resumed_id);
	if (s->told_state == SESSION_FAILED && s->reason) notice_text(&b, "reason", s->reason);
	notify_session(s, notice_end(&b));
}

void status_publish_now(struct session *s) {
	session_bring_forward(s);
	status_publish(s);
}
