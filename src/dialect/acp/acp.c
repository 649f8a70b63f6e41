/* SPDX-License-Identifier: MIT */
#include "dialect/acp/acp.h"

#include "base/macros.h"
#include "dialect/jsonrpc.h"
#include "dialect/jsonrpc_check.h"
#include "dialect/jsonrpc_head.h"

#include <string.h>

/* --- lines -------------------------------------------------------------------------------------------------------- */

static bool scan(const char *p, size_t n, struct envelope *e) {
	return jsonrpc_scan(p, n, e, "sessionId");
}

static enum line_kind kind_of(const char *type, size_t n) {
	(void)type, (void)n;
	return LINE_OTHER;
}

static enum line_kind kind(const struct envelope *e) {
	return e->inner_request_id.p ? LINE_RESPONSE : e->request_id.p ? LINE_REQUEST : LINE_OTHER;
}

static void read_line(struct chunk line, enum line_kind is, const struct envelope *e, struct report *r) {
	(void)line, (void)is, (void)e, (void)r;
}

static struct turn_result read_result(struct span result) {
	(void)result;
	return (struct turn_result){
		.ms = TURN_UNKNOWN,
		.nano_usd = TURN_UNKNOWN,
		.input = TURN_UNKNOWN,
		.output = TURN_UNKNOWN,
		.cache_read = TURN_UNKNOWN,
		.cache_write = TURN_UNKNOWN,
	};
}

static bool ran_no_turn(struct span result) {
	(void)result;
	return false;
}

/* --- asks --------------------------------------------------------------------------------------------------------- */

static enum ask_kind ask_kind(const struct envelope *e) {
	(void)e;
	return ASK_UNKNOWN;
}

static struct span ask_part(enum ask_kind kind, struct span request, enum ask_part part) {
	(void)kind, (void)request, (void)part;
	return SPAN_NONE;
}

static struct span summary(struct span request) {
	(void)request;
	return SPAN_NONE;
}

static const char *check_answer(enum ask_kind kind, struct span request, struct span response) {
	(void)kind, (void)request, (void)response;
	return NULL;
}

static const char *decision(enum ask_kind kind, struct span request, struct span response) {
	(void)kind, (void)request;
	return span_member(response, "error").p ? "error" : "answered";
}

static struct span answer_input(struct span response) {
	(void)response;
	return SPAN_NONE;
}

static struct span answer_reason(struct span response) {
	return span_member(span_member(response, "error"), "message");
}

static void read_changes(enum ask_kind kind, struct span request, struct span response, struct changes *c) {
	(void)kind, (void)request, (void)response;
	*c = (struct changes){0};
}

static void put_answer(struct buf *b, struct span id, const char *body) {
	jsonrpc_put_success(b, JSONRPC_HEAD, id, body);
}

static void put_failure(struct buf *b, struct span id, const char *code, const char *text) {
	jsonrpc_put_error(b, JSONRPC_HEAD, id, code, text, "");
}

static void put_tool_deny(struct buf *body, struct span request, const char *reason) {
	(void)request, (void)reason;
	buf_puts(body, "{}");
}

static void put_tool_allow(struct buf *body, struct span request) {
	(void)request;
	buf_puts(body, "{}");
}

static void put_cancel_form(struct buf *body, struct span request) {
	(void)request;
	buf_puts(body, "{}");
}

static void put_cancel(struct buf *b, struct span id) {
	buf_puts(b, JSONRPC_HEAD "\"method\":\"$/cancel_request\",\"params\":{\"requestId\":");
	buf_put(b, id.p, id.n);
	buf_puts(b, "}}\n");
}

static void put_interrupt(struct buf *b, const char *id, const char *conversation) {
	(void)b, (void)id, (void)conversation;
}

/* --- clients ------------------------------------------------------------------------------------------------------ */

static void put_success(struct buf *b, struct span id, const char *json) {
	jsonrpc_put_success(b, JSONRPC_HEAD, id, json);
}

static void put_error(struct buf *b, struct span id, const char *code, const char *text, const char *more) {
	jsonrpc_put_error(b, JSONRPC_HEAD, id, code, text, more);
}

static bool succeeded(const struct envelope *e) {
	return !e->is_error.p;
}

static struct span confirmed(const struct envelope *e) {
	(void)e;
	return SPAN_NONE;
}

static bool opens(struct span line) {
	return jsonrpc_head_opens(line, true);
}

static const struct jsonrpc_rules rules = {
	.versioned = true,
	.conversation = "sessionId",
	.prompt = "prompt",
};

static bool check(const char *p, size_t n, struct message *m, struct chunk *rewritten, char *error, size_t size,
				  struct span *request_id) {
	return jsonrpc_check(&rules, p, n, m, rewritten, error, size, request_id);
}

static struct message_check *check_new(const char *p, size_t n) {
	return jsonrpc_check_new(&rules, p, n);
}

static const struct message_steps steps = {
	.new = check_new,
	.free = jsonrpc_check_free,
	.step = jsonrpc_check_step,
	.result = jsonrpc_check_result,
};

/* --- the table ---------------------------------------------------------------------------------------------------- */

static const char *const none[] = {NULL};

const struct dialect acp_dialect = {
	.name = "acp",
	.flags = none,
	.env = none,
	.resume_args = none,
	.scan = scan,
	.kind = kind,
	.kind_of = kind_of,
	.read = read_line,
	.read_head = jsonrpc_head_read,
	.read_result = read_result,
	.ran_no_turn = ran_no_turn,
	.ask_kind = ask_kind,
	.ask_part = ask_part,
	.summary = summary,
	.check_answer = check_answer,
	.decision = decision,
	.answer_input = answer_input,
	.answer_reason = answer_reason,
	.read_changes = read_changes,
	.put_answer = put_answer,
	.put_failure = put_failure,
	.put_tool_deny = put_tool_deny,
	.put_tool_allow = put_tool_allow,
	.put_cancel_form = put_cancel_form,
	.put_cancel = put_cancel,
	.put_interrupt = put_interrupt,
	.frame = &jsonrpc_frame,
	.put_success = put_success,
	.success_end = JSONRPC_SUCCESS_END,
	.put_error = put_error,
	.succeeded = succeeded,
	.confirmed = confirmed,
	.recognizes = jsonrpc_head_is_frame,
	.opens = opens,
	.check = check,
	.check_steps = &steps,
	.request_id = "id",
	.session_id = "sessionId",
};
