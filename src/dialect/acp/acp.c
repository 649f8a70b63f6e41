/* SPDX-License-Identifier: MIT */
#include "dialect/acp/acp.h"

#include "base/macros.h"
#include "base/str.h"
#include "dialect/jsonrpc.h"
#include "dialect/jsonrpc_check.h"
#include "dialect/jsonrpc_head.h"
#include "dialect/jsonrpc_scan.h"
#include "plenum/protocol.h"

#include <string.h>

#define CANCEL "$/cancel_request"

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* The subtype of an update is its name. */
static bool scan(const char *p, size_t n, struct envelope *e) {
	if (!jsonrpc_scan_line(p, n, e, span_of("sessionId"), true)) return false;
	if (e->subtype.p && !span_equals(e->type, "session/update")) e->subtype = SPAN_NONE;
	if (!e->type.p) {
		if (e->inner_response.p) e->session_id = span_member(e->inner_response, "sessionId");
	} else if (span_equals(e->type, CANCEL)) {
		e->request_id = span_member(e->request, "requestId");
	}
	return true;
}

/* Nothing repeats it. */
static bool is_piece(const struct envelope *e) {
	return !e->escaped &&
		   (span_equals(e->subtype, "agent_message_chunk") || span_equals(e->subtype, "agent_thought_chunk"));
}

static enum line_kind kind(const struct envelope *e) {
	if (!e->type.p) return e->inner_request_id.p ? LINE_RESPONSE : LINE_OTHER;
	if (!e->request_id.p) return is_piece(e) ? LINE_STREAM_EVENT : LINE_OTHER;
	return span_equals(e->type, CANCEL) ? LINE_CANCEL : LINE_REQUEST;
}

/* A turn begins with a prompt of ours and ends with its answer; updates do not tell. */
static void read_line(struct chunk line, enum line_kind is, const struct envelope *e, struct report *r) {
	(void)line, (void)is;
	if (!span_equals(e->subtype, "current_mode_update") && !span_equals(e->subtype, "config_option_update")) return;
	r->mode = acp_start_mode(span_member(e->request, "update"));
	r->model = acp_start_option(span_member(e->request, "update"), "model");
}

static void read_head(struct chunk text, struct head *head) {
	jsonrpc_head_read(text, "\"session/request_permission\"", head);
}

static enum turn_outcome outcome_of(struct span result) {
	static const struct {
		const char *reason;
		enum turn_outcome outcome;
	} ends[] = {{"end_turn", TURN_SUCCESS},
				{"cancelled", TURN_INTERRUPTED},
				{"max_tokens", TURN_LIMIT},
				{"max_turn_requests", TURN_LIMIT}};
	struct span reason = span_member(result, "stopReason");
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (span_equals(reason, ends[i].reason)) return ends[i].outcome;
	return TURN_ERROR;
}

static int64_t count(struct span usage, const char *key) {
	int64_t n;
	return span_int(span_member(usage, key), &n) && n >= 0 ? n : TURN_UNKNOWN;
}

static struct turn_result read_result(struct span line) {
	struct span result = span_member(line, "result"), usage = span_member(result, "usage");
	return (struct turn_result){
		.outcome = outcome_of(result),
		.ms = TURN_UNKNOWN,
		.nano_usd = TURN_UNKNOWN,
		.input = count(usage, "inputTokens"),
		.output = count(usage, "outputTokens"),
		.cache_read = count(usage, "cachedReadTokens"),
		.cache_write = count(usage, "cachedWriteTokens"),
		.text = span_member(span_member(line, "error"), "message"),
	};
}

static bool is_default_mode(struct span mode) {
	return span_equals(mode, "default");
}

/* --- lines of the daemon ------------------------------------------------------------------------------------------ */

static void put_success(struct buf *b, struct span id, const char *json) {
	jsonrpc_put_success(b, JSONRPC_HEAD, id, json);
}

static void put_error(struct buf *b, struct span id, const char *code, const char *text, const char *more) {
	jsonrpc_put_error(b, JSONRPC_HEAD, id, code, text, more);
}

static void put_failure(struct buf *b, struct span id, const char *code, const char *text) {
	jsonrpc_put_failure(b, JSONRPC_HEAD, id, code, text);
}

static void put_cancel(struct buf *b, struct span id, struct span request) {
	(void)request;
	buf_puts(b, JSONRPC_HEAD "\"method\":\"" CANCEL "\",\"params\":{\"requestId\":");
	buf_put(b, id.p, id.n);
	buf_puts(b, "}}\n");
}

static void put_interrupt(struct buf *b, const char *id, const char *conversation, const struct memo *memo) {
	(void)id, (void)memo;
	if (!conversation) return;
	buf_puts(b, JSONRPC_HEAD "\"method\":\"session/cancel\",\"params\":{\"sessionId\":");
	str_put_json(b, conversation, strlen(conversation));
	buf_puts(b, "}}\n");
}

static void put_prompt_cancelled(struct buf *b, struct span id, struct span uuid) {
	(void)uuid;
	put_success(b, id, "{\"stopReason\":\"cancelled\"}");
}

static void put_echo(struct buf *b, const struct envelope *prompt, const char *conversation, struct span by) {
	struct span block;
	for (size_t at = 0; span_next(span_member(prompt->request, "prompt"), &at, &block);) {
		buf_puts(b, JSONRPC_HEAD "\"method\":\"session/update\",\"params\":{\"sessionId\":");
		str_put_json(b, conversation, strlen(conversation));
		buf_puts(b, ",\"update\":{\"sessionUpdate\":\"user_message_chunk\",\"content\":");
		buf_put(b, block.p, block.n);
		buf_puts(b, ",\"_meta\":{\"" JSONRPC_MARK "\":");
		buf_put(b, by.p, by.n);
		buf_puts(b, "}}}}\n");
	}
}

/* --- answers of the agent ----------------------------------------------------------------------------------------- */

static struct span confirmed(const struct envelope *e) {
	return span_member(span_member(e->inner_response, "modes"), "currentModeId");
}

/* The answer to session/set_config_option has all options, and no update follows it. */
static void read_settings(const struct envelope *answer, struct report *r) {
	r->mode = acp_start_mode(answer->inner_response);
	r->model = acp_start_option(answer->inner_response, "model");
}

static void read_option(const struct envelope *answer, const char *what, struct span id, struct span *name,
						struct span *to) {
	struct span one;
	for (size_t at = 0; span_next(span_member(answer->inner_response, "configOptions"), &at, &one);) {
		if (strcmp(what, "config_option") != 0 || !span_same(span_member(one, "id"), id)) continue;
		*name = span_member(one, "name");
		*to = span_member(one, "currentValue");
	}
}

/* --- lines of clients --------------------------------------------------------------------------------------------- */

static bool opens(struct span line) {
	return jsonrpc_head_opens(line, true);
}

static const char *read_prompt(struct message *m) {
	struct envelope *e = &m->env;
	struct span block = span_element(m->content, 0);
	if (!e->request_id.p) return "session/prompt is a request: it needs an `id`";
	if (!span_is_array(m->content)) return "`params.prompt` must be an array of content blocks";
	m->kind = MESSAGE_USER;
	m->text = span_equals(span_member(block, "type"), "text") ? span_member(block, "text") : SPAN_NONE;
	e->message = e->request;
	return NULL;
}

/* The names of types are those of the gate (gate.def). */
static const char *read_message(struct message *m) {
	struct envelope *e = &m->env;
	if (m->kind == MESSAGE_ANSWER) {
		e->type = span_of("\"response\"");
	} else if (span_equals(e->type, "session/prompt")) {
		return read_prompt(m);
	} else if (span_equals(e->type, CANCEL)) {
		m->kind = MESSAGE_CANCEL;
		e->request_id = span_member(e->request, "requestId");
		if (!jsonrpc_is_id(e->request_id)) return "`params.requestId` must be the id of a request of yours";
	} else if (m->kind == MESSAGE_REQUEST) {
		e->type = span_of("\"request\"");
	}
	return NULL;
}

static const struct jsonrpc_rules rules = {
	.versioned = true,
	.conversation = "sessionId",
	.prompt = "prompt",
	.read = read_message,
};

static bool check(const char *p, size_t n, struct message *m, struct chunk *rewritten, struct error *error,
				  struct span *request_id) {
	return jsonrpc_check(&rules, p, n, m, rewritten, error, request_id);
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

#define ROW GATE_ROW
static const struct gate_row rows[] = {
#include "dialect/acp/gate.def"
};

#undef ROW

static const char *const none[] = {NULL};
static const char *const stripped[] = {"GEMINI_CLI", NULL};
static const struct dialect_profile profiles[] = {
	{"gemini", {"gemini", "--acp"}},
	{"claude-acp", {"claude-agent-acp"}},
	{"fake-acp", {"plenum-fakeagent", "--acp"}},
	{NULL, {NULL}},
};

const struct dialect acp_dialect = {
	.name = "acp",
	.profiles = profiles,
	.flags = none,
	.env = none,
	.resume_args = none,
	.stripped = stripped,
	.scan = scan,
	.kind = kind,
	.hides_kind = jsonrpc_hides_kind,
	.read = read_line,
	.read_addressee = acp_asks_read_addressee,
	.read_head = read_head,
	.read_result = read_result,
	.put_step = acp_start_put,
	.take_step = acp_start_take,
	.step_model = acp_start_model,
	.kept = acp_start_kept,
	.takes_up = acp_start_takes_up,
	.remember = acp_start_remember,
	.remember_change = acp_start_remember_change,
	.noted_cost = acp_start_cost,
	.put_noted = acp_start_put_noted,
	.strict_mode = acp_start_strict_mode,
	.strictest = "plan",
	.is_default_mode = is_default_mode,
	.ask_kind = acp_asks_kind,
	.ask_part = acp_asks_part,
	.summary = acp_asks_summary,
	.check_answer = acp_asks_check,
	.decision = acp_asks_decision,
	.answer_reason = jsonrpc_reason,
	.read_changes = acp_asks_read_changes,
	.put_answer = put_success,
	.put_failure = put_failure,
	.put_tool_deny = acp_asks_put_deny,
	.put_tool_allow = acp_asks_put_allow,
	.put_cancel_form = acp_asks_put_cancel,
	.put_cancel = put_cancel,
	.put_interrupt = put_interrupt,
	.put_prompt_cancelled = put_prompt_cancelled,
	.frame = &jsonrpc_frame,
	.put_success = put_success,
	.success_end = JSONRPC_SUCCESS_END,
	.put_error = put_error,
	.succeeded = jsonrpc_succeeded,
	.confirmed = confirmed,
	.read_settings = read_settings,
	.read_option = read_option,
	.recognizes = jsonrpc_head_is_frame,
	.opens = opens,
	.check = check,
	.check_steps = &steps,
	.put_echo = put_echo,
	.request_id = "id",
	.session_id = "sessionId",
	.conversation_id = "sessionId",
	.numbers = true,
	.answers_withdrawn = true,
	.gate = rows,
	.n_gate = ARRAY_SIZE(rows),
};
