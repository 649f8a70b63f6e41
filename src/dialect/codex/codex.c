/* SPDX-License-Identifier: MIT */
#include "dialect/codex/codex.h"

#include "base/macros.h"
#include "base/str.h"
#include "dialect/jsonrpc.h"
#include "dialect/jsonrpc_check.h"
#include "dialect/jsonrpc_head.h"
#include "dialect/jsonrpc_scan.h"
#include "plenum/protocol.h"

#include <string.h>

#define RESOLVED "serverRequest/resolved"
#define COMPLETED "turn/completed"

/* --- lines -------------------------------------------------------------------------------------------------------- */

static bool scan(const char *p, size_t n, struct envelope *e) {
	if (!jsonrpc_scan_line(p, n, e, span_of("threadId"), false)) return false;
	if (e->inner_response.p) e->session_id = span_member(span_member(e->inner_response, "thread"), "id");
	if (e->request_id.p) return true;
	if (span_equals(e->type, RESOLVED)) e->request_id = span_member(e->request, "requestId");
	if (!span_equals(e->type, COMPLETED)) return true;
	struct span status = span_member(span_member(e->request, "turn"), "status");
	bool failed = span_equals(status, "failed") || span_equals(status, "interrupted");
	e->is_error = span_of(failed ? "true" : "false");
	return true;
}

/* The text of a piece comes again in item/completed. */
static bool is_piece(struct span type) {
	return span_equals(type, "item/agentMessage/delta") || span_equals(type, "item/commandExecution/outputDelta") ||
		   span_equals(type, "item/reasoning/textDelta") || span_equals(type, "item/reasoning/summaryTextDelta") ||
		   span_equals(type, "item/plan/delta");
}

static enum line_kind kind(const struct envelope *e) {
	if (!e->type.p) return e->inner_request_id.p ? LINE_RESPONSE : LINE_OTHER;
	if (e->request_id.p) return span_equals(e->type, RESOLVED) ? LINE_CANCEL : LINE_REQUEST;
	if (span_equals(e->type, COMPLETED)) return LINE_RESULT;
	return is_piece(e->type) ? LINE_STREAM_EVENT : LINE_OTHER;
}

/* Input of clients is not all that begins a turn. */
static void read_line(struct chunk line, enum line_kind is, const struct envelope *e, struct report *r) {
	(void)line;
	if (is != LINE_OTHER) return;
	r->works = span_equals(e->type, "turn/started");
	if (span_equals(e->type, "thread/settings/updated"))
		r->model = span_member(span_member(e->request, "threadSettings"), "model");
}

static void read_head(struct chunk text, struct head *head) {
	jsonrpc_head_read(text, "/requestApproval\"", head);
}

static struct turn_result read_result(struct span line) {
	struct span turn = span_member(span_member(line, "params"), "turn"), status = span_member(turn, "status");
	struct span error = span_member(span_member(turn, "error"), "message"), text = error, item;
	int64_t ms;
	for (size_t at = 0; !error.p && span_next(span_member(turn, "items"), &at, &item);) /* the last message counts */
		if (span_equals(span_member(item, "type"), "agentMessage")) text = span_member(item, "text");
	return (struct turn_result){
		.outcome = span_equals(status, "completed")     ? TURN_SUCCESS
				   : span_equals(status, "interrupted") ? TURN_INTERRUPTED
														: TURN_ERROR,
		.ms = span_int(span_member(turn, "durationMs"), &ms) && ms >= 0 ? ms : TURN_UNKNOWN,
		.nano_usd = TURN_UNKNOWN,
		.input = TURN_UNKNOWN, /* they come in a notification of their own */
		.output = TURN_UNKNOWN,
		.cache_read = TURN_UNKNOWN,
		.cache_write = TURN_UNKNOWN,
		.text = text,
	};
}

/* --- lines of the daemon ------------------------------------------------------------------------------------------ */

static void put_failure(struct buf *b, struct span id, const char *code, const char *text) {
	jsonrpc_put_failure(b, JSONRPC_BARE_HEAD, id, code, text);
}

/* To clients, as the agent does it. A client's request cannot be withdrawn from the agent. */
static void put_cancel(struct buf *b, struct span id, struct span request) {
	struct span thread = span_member(request, "threadId");
	if (!request.p) return;
	if (!thread.p) thread = span_member(request, "conversationId");
	buf_puts(b, JSONRPC_BARE_HEAD "\"method\":\"" RESOLVED "\",\"params\":{");
	if (thread.p) {
		buf_puts(b, "\"threadId\":");
		buf_put(b, thread.p, thread.n);
		buf_putc(b, ',');
	}
	buf_puts(b, "\"requestId\":");
	buf_put(b, id.p, id.n);
	buf_puts(b, "}}\n");
}

/* The agent refuses this if no turn or another one runs. */
static void put_interrupt(struct buf *b, const char *id, const char *conversation, const struct memo *memo) {
	struct span turn = memo_get(memo, CODEX_TURN);
	if (!conversation || !turn.p) return;
	buf_printf(b, JSONRPC_BARE_HEAD "\"id\":%s,\"method\":\"turn/interrupt\",\"params\":{\"threadId\":", id);
	str_put_json(b, conversation, strlen(conversation));
	buf_puts(b, ",\"turnId\":");
	buf_put(b, turn.p, turn.n);
	buf_puts(b, "}}\n");
}

/* --- clients ------------------------------------------------------------------------------------------------------ */

static void put_success(struct buf *b, struct span id, const char *json) {
	jsonrpc_put_success(b, JSONRPC_BARE_HEAD, id, json);
}

static void put_error(struct buf *b, struct span id, const char *code, const char *text, const char *more) {
	jsonrpc_put_error(b, JSONRPC_BARE_HEAD, id, code, text, more);
}

static void put_prompt_cancelled(struct buf *b, struct span id, struct span uuid) {
	(void)uuid;
	put_error(b, id, PLENUM_E_CANCELLED, "the prompt was withdrawn before the agent got it", "");
}

static bool opens(struct span line) {
	return jsonrpc_head_opens(line, false);
}

static const char *read_prompt(struct message *m) {
	struct envelope *e = &m->env;
	if (!e->request_id.p) return "a prompt is a request: it needs an `id`";
	if (!span_is_array(m->content)) return "`params.input` must be an array";
	m->kind = MESSAGE_USER;
	m->joins = span_equals(e->type, "turn/steer");
	struct span first = span_element(m->content, 0);
	m->text = span_equals(span_member(first, "type"), "text") ? span_member(first, "text") : SPAN_NONE;
	e->message = e->request;
	return NULL;
}

/* The names of types are those of the gate (gate.def). */
static const char *read_message(struct message *m) {
	struct envelope *e = &m->env;
	if (m->kind == MESSAGE_ANSWER)
		e->type = span_of("\"response\"");
	else if (span_equals(e->type, "turn/start") || span_equals(e->type, "turn/steer"))
		return read_prompt(m);
	else if (m->kind == MESSAGE_REQUEST)
		e->type = span_of("\"request\"");
	return NULL;
}

static const struct jsonrpc_rules rules = {
	.versioned = false,
	.conversation = "threadId",
	.prompt = "input",
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
#include "dialect/codex/gate.def"
};

#undef ROW

static const char *const none[] = {NULL};
static const struct dialect_profile profiles[] = {
	{"codex", {"codex", "app-server"}},
	{"fake-codex", {"plenum-fakeagent", "app-server"}},
	{NULL, {NULL}},
};

const struct dialect codex_dialect = {
	.name = "codex",
	.profiles = profiles,
	.flags = none,
	.env = none,
	.resume_args = none,
	.scan = scan,
	.kind = kind,
	.repeats_pieces = true,
	.hides_kind = jsonrpc_hides_kind,
	.read = read_line,
	.read_addressee = codex_handles_read,
	.read_head = read_head,
	.read_result = read_result,
	.put_step = codex_start_put,
	.take_step = codex_start_take,
	.step_model = codex_start_model,
	.kept = codex_start_kept,
	.takes_up = codex_start_takes_up,
	.remember = codex_start_remember,
	.put_noted = codex_start_put_noted,
	.ask_kind = codex_asks_kind,
	.ask_part = codex_asks_part,
	.summary = codex_asks_summary,
	.check_answer = codex_asks_check,
	.decision = codex_asks_decision,
	.answer_reason = jsonrpc_reason,
	.read_changes = codex_asks_read_changes,
	.put_answer = put_success,
	.put_failure = put_failure,
	.put_tool_deny = codex_asks_put_deny,
	.put_tool_allow = codex_asks_put_allow,
	.put_cancel_form = codex_asks_put_cancel,
	.put_cancel = put_cancel,
	.put_interrupt = put_interrupt,
	.put_end = codex_handles_put_end,
	.frame = &jsonrpc_bare_frame,
	.put_success = put_success,
	.success_end = JSONRPC_SUCCESS_END,
	.put_error = put_error,
	.put_prompt_cancelled = put_prompt_cancelled,
	.succeeded = jsonrpc_succeeded,
	.recognizes = jsonrpc_head_is_frame,
	.opens = opens,
	.check = check,
	.check_steps = &steps,
	.accepts_prompts = true,
	.request_id = "id",
	.session_id = "threadId",
	.conversation_id = "threadId",
	.numbers = true,
	.tells_answerer = true,
	.gate = rows,
	.n_gate = ARRAY_SIZE(rows),
};
