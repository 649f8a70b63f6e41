/* SPDX-License-Identifier: MIT
 *
 * A second dialect, for tests only: it shows that the door of src/dialect is real. Prompts, answers, one kind of ask,
 * its withdrawal and an interrupt; no hooks, no requests to the child, no echo, no modes, no tasks.
 *
 * The child prints                                      A client sends
 *   {"began":["p1"],"thread":"t1"}                        {"do":"a prompt","as":"p1"}
 *   {"piece":"..."}  {"text":"..."}                       {"answer":"q1","yes":true}
 *   {"ask":"q1","of":{"tool":"Write","with":{...}}}       {"answer":"q1","yes":false,"why":"..."}
 *   {"ask":"q2","of":{...,"choices":["y","n"]}}           {"answer":"q2","pick":"y"}
 *   {"never":"q1"}                                        {"halt":true}
 *   {"ended":["p1"],"failed":false,"thread":"t1"}
 *
 * Verbs of Plenum come in the control frame, as for every dialect so far.
 */
#include "dialect/claude/claude.h"
#include "dialect/frame.h"

#include "base/macros.h"
#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/valid.h"

#include <stdio.h>
#include <string.h>

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* e->type is the key that says what the line is, e->response and e->inner_response all of an answer. */
static void take_member(struct envelope *e, struct span all, struct span key, struct span value) {
	static const char *const types[] = {"began", "piece", "text", "ask", "never", "ended", "do", "answer", "halt"};
	for (size_t i = 0; i < ARRAY_SIZE(types) && !e->type.p; i++)
		if (span_equals(key, types[i])) e->type = key;
	if (span_equals(key, "began") || span_equals(key, "ended")) e->user_message_uuids = value;
	if (span_equals(key, "ask") || span_equals(key, "never")) e->request_id = value;
	if (span_equals(key, "ask")) e->inner_subtype = key;
	if (span_equals(key, "of")) e->request = value;
	if (span_equals(key, "failed")) e->is_error = value;
	if (span_equals(key, "thread")) e->session_id = value;
	if (span_equals(key, "as")) e->uuid = value;
	if (!span_equals(key, "answer")) return;
	e->inner_request_id = value;
	e->response = e->inner_response = all;
}

static bool scan(const char *p, size_t n, struct envelope *e) {
	struct envelope frame;
	struct span all = {p, n}, key, value;
	if (!scan_envelope(p, n, &frame)) return false;
	*e = (struct envelope){.reserved = frame.reserved};
	while (all.n && *all.p != '{') all.p++, all.n--;
	while (all.n && all.p[all.n - 1] != '}') all.n--;
	for (size_t at = 0; span_next_member(all, &at, &key, &value);) take_member(e, all, key, value);
	return true;
}

static enum line_kind kind_of(const char *type, size_t n) {
	static const struct {
		const char *type;
		enum line_kind kind;
	} kinds[] = {{"began", LINE_SYSTEM}, {"piece", LINE_STREAM_EVENT}, {"text", LINE_ASSISTANT},
				 {"ask", LINE_REQUEST},  {"never", LINE_CANCEL},       {"ended", LINE_RESULT}};
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].type) == n && memcmp(kinds[i].type, type, n) == 0) return kinds[i].kind;
	return LINE_OTHER;
}

static enum line_kind kind(const struct envelope *e) {
	struct span type = span_content(e->type);
	return type.p ? kind_of(type.p, type.n) : LINE_OTHER;
}

static void read_line(struct chunk line, enum line_kind is, const struct envelope *e, struct report *r) {
	(void)line, (void)e;
	r->begins = is == LINE_SYSTEM;
	r->works = is != LINE_OTHER;
}

/* The first member tells what the line is. */
static void read_head(struct chunk text, struct head *head) {
	static const char ask[] = "{\"ask\":", ended[] = "{\"ended\":";
	*head = (struct head){.kind = LINE_OTHER, .ask = ASK_TOOL};
	if (text.len > sizeof ended && memcmp(text.data, ended, sizeof ended - 1) == 0) head->kind = LINE_RESULT;
	if (text.len < sizeof ask || memcmp(text.data, ask, sizeof ask - 1) != 0) return;
	const char *id = text.data + sizeof ask - 1;
	const char *end = *id == '"' ? memchr(id + 1, '"', (size_t)(text.data + text.len - id) - 1) : NULL;
	head->kind = LINE_REQUEST;
	if (end) head->id = (struct span){id, (size_t)(end - id) + 1};
}

static struct turn_result read_result(struct span result) {
	return (struct turn_result){
		.outcome = span_is_true(span_member(result, "cut")) ? TURN_INTERRUPTED : TURN_SUCCESS,
		.ms = TURN_UNKNOWN,
		.nano_usd = TURN_UNKNOWN,
		.input = TURN_UNKNOWN,
		.output = TURN_UNKNOWN,
		.cache_read = TURN_UNKNOWN,
		.cache_write = TURN_UNKNOWN,
	};
}

/* --- asks --------------------------------------------------------------------------------------------------------- */

static enum ask_kind ask_kind(const struct envelope *e) {
	(void)e;
	return ASK_TOOL;
}

static struct span ask_part(enum ask_kind kind, struct span request, enum ask_part part) {
	(void)kind;
	return part == ASK_PART_TOOL    ? span_member(request, "tool")
		   : part == ASK_PART_INPUT ? span_member(request, "with")
									: SPAN_NONE;
}

static struct span summary(struct span request) {
	return span_member(request, "tool");
}

/* An ask with choices is answered by one of them, and the first one allows. */
static bool is_choice(struct span request, struct span pick) {
	struct span choices = span_member(request, "choices"), one;
	for (size_t at = 0; span_next(choices, &at, &one);)
		if (span_same(one, pick)) return true;
	return false;
}

static const char *check_answer(enum ask_kind kind, struct span request, struct span response) {
	struct span yes = span_member(response, "yes");
	(void)kind;
	if (span_member(request, "choices").p)
		return is_choice(request, span_member(response, "pick")) ? NULL : "`pick` must be one of the choices";
	return yes.p && (*yes.p == 't' || *yes.p == 'f') ? NULL : "`yes` must be true or false";
}

static const char *decision(enum ask_kind kind, struct span request, struct span response) {
	struct span choices = span_member(request, "choices");
	(void)kind;
	if (choices.p) return span_same(span_element(choices, 0), span_member(response, "pick")) ? "allow" : "deny";
	return span_is_true(span_member(response, "yes")) ? "allow" : "deny";
}

static struct span answer_reason(struct span response) {
	return span_member(response, "why");
}

static void read_changes(enum ask_kind kind, struct span request, struct span response, struct changes *c) {
	(void)kind, (void)request, (void)response;
	*c = (struct changes){0};
}

static void put_answer(struct buf *b, struct span id, const char *body) {
	buf_puts(b, "{\"answer\":");
	buf_put(b, id.p, id.n);
	buf_printf(b, ",%s}\n", body);
}

/* The last choice is the refusal. */
static void put_tool_deny(struct buf *body, struct span request, const char *reason) {
	struct span choices = span_member(request, "choices"), one, last = SPAN_NONE;
	for (size_t at = 0; span_next(choices, &at, &one);) last = one;
	if (last.p) {
		buf_puts(body, "\"pick\":");
		buf_put(body, last.p, last.n);
		return;
	}
	buf_puts(body, "\"yes\":false,\"why\":");
	str_put_json(body, reason, strlen(reason));
}

static void put_failure(struct buf *b, struct span id, const char *code, const char *text) {
	struct buf body = BUF_INIT(4096);
	(void)code;
	put_tool_deny(&body, SPAN_NONE, text);
	put_answer(b, id, body.data ? body.data : "\"yes\":false");
	buf_free(&body);
}

static void put_tool_allow(struct buf *body, struct span request) {
	struct span first = span_element(span_member(request, "choices"), 0);
	buf_puts(body, first.p ? "\"pick\":" : "\"yes\":true");
	buf_put(body, first.p ? first.p : "", first.n);
}

static void put_cancel_form(struct buf *body, struct span request) {
	put_tool_deny(body, request, "");
}

static void put_cancel(struct buf *b, struct span id, struct span request) {
	(void)request;
	buf_puts(b, "{\"never\":");
	buf_put(b, id.p, id.n);
	buf_puts(b, "}\n");
}

static void put_interrupt(struct buf *b, const char *id, const char *conversation, const struct memo *memo) {
	(void)id, (void)conversation, (void)memo;
	buf_puts(b, "{\"halt\":true}\n");
}

/* --- lines of clients --------------------------------------------------------------------------------------------- */

static bool refuse(struct error *error, const char *text) {
	error_set(error, "%s", text);
	return false;
}

static bool recognizes(struct span line) {
	struct envelope e;
	return scan(line.p, line.n, &e) && e.type.p;
}

static bool is_verb(struct span subtype) {
	struct span name = span_content(subtype);
	return name.n >= strlen(PLENUM_VERB_PREFIX) && memcmp(name.p, PLENUM_VERB_PREFIX, strlen(PLENUM_VERB_PREFIX)) == 0;
}

/* A line in the control frame: a verb, or a line of another dialect. */
static bool check_frame(struct message *m, struct error *error, struct span *request_id) {
	bool request = span_equals(m->env.type, "control_request");
	m->kind = request ? MESSAGE_REQUEST : MESSAGE_OTHER;
	if (request) *request_id = m->env.request_id;
	if (request && is_verb(m->env.inner_subtype)) return true;
	return refuse(error, "only verbs of Plenum come in this frame");
}

static bool check(const char *p, size_t n, struct message *m, struct chunk *rewritten, struct error *error,
				  struct span *request_id) {
	const char *why;
	size_t at;
	*m = (struct message){.kind = MESSAGE_OTHER};
	*rewritten = CHUNK_NONE;
	*request_id = SPAN_NONE;
	if (!valid_json(p, n, &why, &at)) return refuse(error, why);
	if (!scan_envelope(p, n, &m->env)) return refuse(error, "the line is no object");
	if (m->env.type.p) return check_frame(m, error, request_id);
	if (!scan(p, n, &m->env) || !m->env.type.p) return refuse(error, "the session speaks tiny: write {\"do\":...}");
	if (span_equals(m->env.type, "answer")) m->kind = MESSAGE_ANSWER;
	if (!span_equals(m->env.type, "do")) return true;
	m->kind = MESSAGE_USER;
	m->content = m->text = span_member((struct span){p, n}, "do");
	return span_is_string(m->text) || refuse(error, "`do` must be a string");
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

#define ROW(kind, name, least, act)                                                                                    \
	{GATE_##kind, name, sizeof name - 1, GATE_##least, GATE_SESSION, ACT_##act, NULL, NULL, GATE_NOTHING},

static const struct gate_row rows[] = {
	ROW(TYPE, "do", DRIVER, PROMPT) ROW(TYPE, "answer", OBSERVER, ANSWER) ROW(TYPE, "halt", DRIVER, PLAIN)
		ROW(MEMBER, "do.do", DRIVER, PLAIN) ROW(MEMBER, "do.as", DRIVER, PLAIN) ROW(MEMBER, "halt.halt", DRIVER, PLAIN)
			ROW(MEMBER, "answer.answer", OBSERVER, PLAIN) ROW(MEMBER, "answer.yes", OBSERVER, PLAIN)
				ROW(MEMBER, "answer.pick", OBSERVER, PLAIN) ROW(MEMBER, "answer.why", OBSERVER, PLAIN)};

static const char *const none[] = {NULL};
static const char *const resume_args[] = {"--resume={id}", NULL};

static const struct dialect tiny_dialect = {
	.name = "tiny",
	.flags = none,
	.env = none,
	.resume_args = resume_args,
	.scan = scan,
	.kind = kind,
	.repeats_pieces = true,
	.kind_of = kind_of,
	.read = read_line,
	.read_head = read_head,
	.read_result = read_result,
	.ask_kind = ask_kind,
	.ask_part = ask_part,
	.summary = summary,
	.check_answer = check_answer,
	.decision = decision,
	.answer_reason = answer_reason,
	.read_changes = read_changes,
	.put_answer = put_answer,
	.put_failure = put_failure,
	.put_tool_deny = put_tool_deny,
	.put_tool_allow = put_tool_allow,
	.put_cancel_form = put_cancel_form,
	.put_cancel = put_cancel,
	.put_interrupt = put_interrupt,
	.frame = &frame_control,
	.put_success = frame_put_success,
	.success_end = FRAME_SUCCESS_END,
	.put_error = frame_put_error,
	.recognizes = recognizes,
	.check = check,
	.prompt_id = "as",
	.session_id = "thread",
	.gate = rows,
	.n_gate = ARRAY_SIZE(rows),
};

const struct dialect *const dialect_list[] = {&claude_dialect, &tiny_dialect, NULL};
