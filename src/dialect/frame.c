/* SPDX-License-Identifier: MIT */
#include "dialect/frame.h"

#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/disown.h"

#include <string.h>

void frame_put_request(struct buf *b, const char *id, const char *request_json) {
	buf_printf(b, "{\"type\":\"control_request\",\"request_id\":\"%s\",\"request\":%s}\n", id, request_json);
}

static void put_head(struct buf *b, const char *subtype, struct span id) {
	buf_printf(b, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"%s\"", subtype);
	if (id.p) {
		buf_puts(b, ",\"request_id\":");
		buf_put(b, id.p, id.n);
	}
}

void frame_put_success(struct buf *b, struct span id, const char *response_json) {
	put_head(b, "success", id);
	if (response_json) {
		buf_puts(b, ",\"response\":");
		buf_puts(b, response_json);
	}
	buf_puts(b, "}}\n");
}

void frame_put_built_success(struct buf *b, struct span id, struct buf *body) {
	if (body->failed)
		b->failed = true;
	else
		frame_put_success(b, id, body->data);
	buf_free(body);
}

void frame_put_built_request(struct buf *b, const char *id, struct buf *body) {
	if (body->failed)
		b->failed = true;
	else
		frame_put_request(b, id, body->data);
	buf_free(body);
}

void frame_put_error(struct buf *b, struct span id, const char *code, const char *text, const char *more) {
	put_head(b, "error", id);
	buf_printf(b, ",\"code\":\"%s\",\"error\":", code);
	str_put_json(b, text, strlen(text));
	buf_printf(b, "%s}}\n", more);
}

void frame_put_cancel(struct buf *b, struct span id, struct span request) {
	(void)request;
	buf_puts(b, "{\"type\":\"control_cancel_request\",\"request_id\":");
	buf_put(b, id.p, id.n);
	buf_puts(b, "}\n");
}

static struct span notice(struct span line) {
	return line;
}

const struct dialect_frame frame_control = {
	.attach = "\"" PLENUM_ATTACH "\"",
	.notice = notice,
	.put_notice = chunk_ref,
	.lost = PLENUM_EVENT_HEAD PLENUM_EV_ERROR "\",\"code\":\"" PLENUM_E_INTERNAL "\",\"error\":\"" DIALECT_FRAME_LOST
											  "\"}\n",
	.disown = disown_line,
	.disown_answer = disown_answer,
};
