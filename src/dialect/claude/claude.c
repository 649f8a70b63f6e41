/* SPDX-License-Identifier: MIT */
#include "dialect/claude/claude.h"

#include "base/macros.h"
#include "base/str.h"
#include "dialect/claude/answers.h"
#include "dialect/claude/argv.h"
#include "dialect/claude/crons.h"
#include "dialect/claude/message.h"
#include "dialect/claude/turn.h"
#include "dialect/frame.h"
#include "wire/notice.h"
#include "wire/splice.h"

#include <string.h>

static const struct {
	const char *type;
	enum line_kind kind;
} kinds[] = {
	{"stream_event", LINE_STREAM_EVENT},
	{"assistant", LINE_ASSISTANT},
	{"user", LINE_USER},
	{"system", LINE_SYSTEM},
	{"result", LINE_RESULT},
	{"control_request", LINE_REQUEST},
	{"control_response", LINE_RESPONSE},
	{"control_cancel_request", LINE_CANCEL},
	{"tool_progress", LINE_TOOL_PROGRESS},
	{"rate_limit_event", LINE_RATE_LIMIT},
	{"command_lifecycle", LINE_LIFECYCLE},
	{"conversation_reset", LINE_RESET},
};

static enum line_kind kind_of(const char *type, size_t n) {
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].type) == n && memcmp(kinds[i].type, type, n) == 0) return kinds[i].kind;
	return LINE_OTHER;
}

static enum line_kind kind(const struct envelope *e) {
	struct span type = span_content(e->type);
	return type.p ? kind_of(type.p, type.n) : LINE_OTHER;
}

static bool hides_kind(struct chunk line, const struct envelope *e) {
	struct span all = {line.data, line.len}, key, value, type = e->type;
	size_t at = 0;
	if (type.p && !memchr(type.p, '\\', type.n)) return false;
	while (!type.p && span_next_member(all, &at, &key, &value)) {
		_cleanup_free_ char *name = memchr(key.p, '\\', key.n) ? span_dup(key, NULL) : NULL;
		if (name && strcmp(name, "type") == 0) type = value;
	}
	_cleanup_free_ char *text = span_is_string(type) ? span_dup(type, NULL) : NULL;
	enum line_kind is = text ? kind_of(text, strlen(text)) : LINE_OTHER;
	return is == LINE_REQUEST || is == LINE_RESPONSE || is == LINE_CANCEL;
}

static bool is_echo(const struct envelope *e) {
	static const char own[] = "<local-command-";
	if (!span_is_true(e->is_replay) || !span_equals(e->type, "user")) return false;
	struct span text = span_content(span_member(e->message, "content"));
	return text.n < sizeof own - 1 || memcmp(text.p, own, sizeof own - 1) != 0;
}

static bool ran_no_turn(struct span result) {
	int64_t turns;
	return span_int(span_member(result, "num_turns"), &turns) && turns == 0;
}

/* --- reports ------------------------------------------------------------------------------------------------------ */

/* 2.1.197 reports tasks one by one, without a flag for the background; all have an end, also after an interrupt. */
static void read_task(struct span line, const struct envelope *e, struct report *r) {
	static const char *const ends[] = {"completed", "failed", "killed", "stopped", "cancelled", NULL};
	struct span in_background = span_member(line, "is_backgrounded");
	r->task = span_member(line, "task_id");
	if (span_equals(e->subtype, "task_started"))
		r->tasks = !in_background.p || span_is_true(in_background) ? REPORT_TASK_BEGINS : REPORT_TASKS_NONE;
	else if (span_equals(e->subtype, "task_notification") ||
			 span_is_one_of(span_member(span_member(line, "patch"), "status"), ends))
		r->tasks = REPORT_TASK_ENDS;
}

static struct span task_id(struct span task) {
	return span_member(task, "task_id");
}

#define DESCRIPTION_MAX 1024 /* of a task in a list made by the daemon */

/* The members of a task as in the child's own lists. */
static void put_task(struct buf *b, struct span line) {
	static const char *const names[] = {"task_type", "subagent_type", "description"};
	struct span id = task_id(line);
	buf_puts(b, "{\"task_id\":");
	buf_put(b, id.p, id.n);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct span value = span_member(line, names[i]);
		if (span_is_string(value) && value.n <= DESCRIPTION_MAX) notice_raw(b, names[i], value);
	}
	buf_putc(b, '}');
}

/* Asked for its name (put_step), the CLI prints one of these two lists. */
static void read_system(struct span line, const struct envelope *e, struct report *r) {
	static const char *const tasks[] = {"task_started", "task_updated", "task_notification", NULL};
	static const char *const starts[] = {"hook_started", "hook_progress", "hook_response", NULL};
	if (span_equals(e->subtype, "init")) {
		r->begins = r->works = r->starting = true;
		r->version = span_member(line, "claude_code_version");
		r->left_socket = span_member(line, "messaging_socket_path");
		r->mode = span_member(line, "permissionMode");
		r->model = span_member(line, "model");
	} else if (span_equals(e->subtype, "status")) {
		r->mode = span_member(line, "permissionMode");
	} else if (span_equals(e->subtype, "session_state_changed")) {
		struct span state = span_member(line, "state");
		r->state = span_equals(state, "running") ? REPORT_RUNS
				   : span_equals(state, "idle")  ? REPORT_RESTS
												 : REPORT_STATE_NONE;
	} else if (span_equals(e->subtype, "background_tasks_changed")) {
		r->named = true;
		r->tasks = REPORT_TASKS;
		r->task = span_member(line, "tasks");
	} else if (span_is_one_of(e->subtype, tasks)) {
		read_task(line, e, r);
	} else {
		r->named = span_equals(e->subtype, "commands_changed");
		r->starting = span_is_one_of(e->subtype, starts);
	}
}

static void read_fate(struct span line, struct report *r) {
	static const char *const drops[] = {"discarded", "refused", NULL};
	struct span state = span_member(line, "state");
	r->prompt = span_member(line, "command_uuid");
	r->fate = span_equals(state, "cancelled") ? FATE_WITHDRAWN
			  : span_is_one_of(state, drops)  ? FATE_DROPPED
											  : FATE_NONE;
}

static void read_line(struct chunk line, enum line_kind is, const struct envelope *e, struct report *r) {
	if (is == LINE_SYSTEM) read_system(splice_body(line), e, r);
	if (is == LINE_LIFECYCLE) read_fate(splice_body(line), r);
	if (is == LINE_ASSISTANT) r->works = !span_is_string(e->parent_tool_use_id);
	r->resets = is == LINE_RESET;
	r->echo = is_echo(e);
}

/* --- the beginning of a long line --------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *p, const char *end) {
	while (p < end && (*p == ' ' || *p == '\t')) p++;
	return p;
}

/* Return the value if it ends within the head, else none. */
static struct span head_value(const char *at, const char *end) {
	const char *p = at;
	if (p < end && *p == '"') {
		for (p++; p < end && *p != '"';) p += *p == '\\' ? 2 : 1;
		return p < end ? (struct span){at, (size_t)(p - at) + 1} : SPAN_NONE;
	}
	while (p < end && (*p == '-' || (*p >= '0' && *p <= '9'))) p++;
	return p > at && p < end && strchr(",} \t", *p) ? (struct span){at, (size_t)(p - at)} : SPAN_NONE;
}

/* key: with its quotes. */
static struct span head_member(struct chunk head, const char *key) {
	const char *end = head.data + head.len, *at = memmem(head.data, head.len, key, strlen(key));
	if (!at) return SPAN_NONE;
	at = skip_blanks(at + strlen(key), end);
	return at < end && *at == ':' ? head_value(skip_blanks(at + 1, end), end) : SPAN_NONE;
}

static bool head_has(struct chunk head, const char *text) {
	return memmem(head.data, head.len, text, strlen(text)) != NULL;
}

/* The type comes first, so the first mark is that of the line itself. The quotes of a text within a line are escaped.
 */
static enum line_kind head_kind(struct chunk head) {
	static const struct {
		const char *mark;
		enum line_kind kind;
	} marks[] = {{"\"control_request\"", LINE_REQUEST},
				 {"\"control_response\"", LINE_RESPONSE},
				 {"\"type\":\"result\"", LINE_RESULT}};
	const char *first = NULL;
	enum line_kind found = LINE_OTHER;
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		const char *at = memmem(head.data, head.len, marks[i].mark, strlen(marks[i].mark));
		if (!at || (first && at > first)) continue;
		first = at;
		found = marks[i].kind;
	}
	return found;
}

static void read_head(struct chunk text, struct head *head) {
	*head = (struct head){.kind = head_kind(text), .ask = ASK_UNKNOWN, .id = head_member(text, "\"request_id\"")};
	if (head->kind != LINE_REQUEST) return;
	if (head_has(text, "\"can_use_tool\"")) head->ask = ASK_TOOL;
	if (!head_has(text, "\"hook_callback\"")) return;
	head->ask = ASK_HOOK;
	head->callback = head_member(text, "\"callback_id\"");
}

/* --- asks --------------------------------------------------------------------------------------------------------- */

static enum ask_kind ask_kind(const struct envelope *e) {
	static const struct {
		const char *subtype;
		enum ask_kind kind;
	} asks[] = {{"can_use_tool", ASK_TOOL},
				{"hook_callback", ASK_HOOK},
				{"mcp_message", ASK_MCP},
				{"elicitation", ASK_ELICITATION},
				{"request_user_dialog", ASK_DIALOG}};
	for (size_t i = 0; i < ARRAY_SIZE(asks); i++)
		if (span_equals(e->inner_subtype, asks[i].subtype)) return asks[i].kind;
	return ASK_UNKNOWN;
}

/* Return the member of the tool's input that says most. */
static struct span subject(enum ask_kind kind, struct span request) {
	static const char *const keys[] = {"command", "file_path", "path", "pattern", "url", "query", "prompt"};
	struct span input = answers_input_of(kind, request), value = SPAN_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(keys) && !span_is_string(value); i++) value = span_member(input, keys[i]);
	return span_is_string(value) ? value : SPAN_NONE;
}

static struct span ask_part(enum ask_kind kind, struct span request, enum ask_part part) {
	static const char *const names[] = {
		[ASK_PART_TOOL] = "tool_name",       [ASK_PART_INPUT] = "input",
		[ASK_PART_AGENT] = "agent_id",       [ASK_PART_DIALOG_KIND] = "dialog_kind",
		[ASK_PART_CALLBACK] = "callback_id", [ASK_PART_SERVER] = "server_name",
		[ASK_PART_MESSAGE] = "message",      [ASK_PART_SUGGESTIONS] = "permission_suggestions",
	};
	if (part == ASK_PART_SUBJECT) return subject(kind, request);
	if (part == ASK_PART_TITLE) return SPAN_NONE; /* the tool's name is certain */
	if (part == ASK_PART_TOOL_INPUT) return answers_input_of(kind, request);
	if (kind == ASK_HOOK && part == ASK_PART_TOOL) request = span_member(request, "input");
	struct span value = span_member(request, names[part]);
	return part != ASK_PART_SUGGESTIONS || span_is_array(value) ? value : SPAN_NONE;
}

static struct span summary(struct span request) {
	static const char *const telling[] = {"command", "file_path",   "path",    "url",
										  "pattern", "description", "message", "prompt"};
	struct span input = span_member(request, "input"), value = SPAN_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(telling) && !value.p; i++) {
		value = span_member(input, telling[i]);
		if (!value.p) value = span_member(request, telling[i]);
	}
	return value;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static void put_failure(struct buf *b, struct span id, const char *code, const char *text) {
	frame_put_error(b, id, code, text, "");
}

static void put_interrupt(struct buf *b, const char *id, const char *conversation, const struct memo *memo) {
	(void)conversation, (void)memo;
	frame_put_request(b, id, "{\"subtype\":\"interrupt\"}");
}

static void put_cancel_prompt(struct buf *b, const char *id, const char *uuid) {
	struct buf body = BUF_INIT(SIZE_MAX / 4);
	buf_puts(&body, "{\"subtype\":\"cancel_async_message\",\"message_uuid\":");
	str_put_json(&body, uuid, strlen(uuid));
	buf_putc(&body, '}');
	frame_put_built_request(b, id, &body);
}

static void put_prompt_cancelled(struct buf *b, struct span id, struct span uuid) {
	struct buf body = BUF_INIT(SIZE_MAX / 4);
	buf_puts(&body, "{\"cancelled\":true,\"message_uuid\":");
	buf_put(&body, uuid.p, uuid.n);
	buf_putc(&body, '}');
	frame_put_built_success(b, id, &body);
}

static void put_mode(struct buf *b, const char *id, struct span mode) {
	struct buf body = BUF_INIT(4096);
	buf_printf(&body, "{\"subtype\":\"set_permission_mode\",\"mode\":%.*s}", (int)mode.n, mode.p);
	frame_put_built_request(b, id, &body);
}

/* Measured: 2.1.332 prints its list of tasks after the answer to a repeated initialize, so the answer to another
 * request comes later; 2.1.197 prints its list of commands before the answer to reload_plugins. */
static enum dialect_step put_step(struct buf *b, const char *id, unsigned n, const struct dialect_start *start) {
	static const char *const bodies[] = {"{\"subtype\":\"initialize\"}", "{\"subtype\":\"get_session_cost\"}",
										 "{\"subtype\":\"reload_plugins\"}"};
	(void)start;
	if (n >= ARRAY_SIZE(bodies)) return STEP_NONE;
	frame_put_request(b, id, bodies[n]);
	return STEP_SENT;
}

static bool recognizes(struct span line) {
	struct envelope e;
	bool cut = line.n == DIALECT_OPENING_BYTES; /* then the members before the cut are known */
	return (scan_envelope(line.p, line.n, &e) || cut) && span_is_string(e.type);
}

static bool succeeded(const struct envelope *e) {
	return span_equals(e->inner_subtype, "success");
}

static struct span confirmed(const struct envelope *e) {
	struct span mode = span_member(e->inner_response, "mode");
	return mode.p ? mode : span_member(e->inner_response, "model");
}

static struct span cancelled(const struct envelope *e) {
	return span_member(e->inner_response, "cancelled");
}

static struct span cancelled_prompt(const struct envelope *e) {
	return span_member(e->request, "message_uuid");
}

static bool cancels_queued(const struct envelope *e) {
	return span_is_true(span_member(e->request, "cancel_queued"));
}

/* --- modes -------------------------------------------------------------------------------------------------------- */

static const char *strict_mode(struct span mode) {
	static const char *const modes[] = {"plan", "dontAsk"};
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (span_equals(mode, modes[i])) return modes[i];
	return NULL;
}

static bool is_default_mode(struct span mode) {
	return span_equals(mode, "default");
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

#define ROW GATE_ROW
static const struct gate_row rows[] = {
#include "dialect/claude/gate.def"
};

#undef ROW

_Static_assert(ARRAY_SIZE(rows) < GATE_ROWS_MAX, "GATE_ROWS_MAX is too small");

/* The permission flag and the replays cannot be requested later, so they are always set; the environment variable
 * enables session_state_changed (contract 8). */
static const char *const flags[] = {"-p",
									"--input-format",
									"stream-json",
									"--output-format",
									"stream-json",
									"--verbose",
									"--permission-prompt-tool",
									"stdio",
									"--include-partial-messages",
									"--replay-user-messages",
									NULL};
static const char *const env[] = {"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1", NULL};
static const char *const resume_args[] = {"--resume={id}", NULL};
static const struct dialect_profile profiles[] = {
	{"claude", {"claude"}}, {"fake", {"plenum-fakeagent"}}, {NULL, {NULL}}};
static const char *const stripped[] = {
	"CLAUDECODE", "CLAUDE_CODE_*", "CLAUDE_AGENT_SDK_*", "CLAUDE_PID", "CLAUDE_EFFORT", "AI_AGENT", NULL};

static const struct message_steps steps = {
	.new = message_check_new,
	.free = message_check_free,
	.step = message_check_step,
	.result = message_check_result,
};

const struct dialect claude_dialect = {
	.name = "claude",
	.profiles = profiles,
	.flags = flags,
	.env = env,
	.resume_args = resume_args,
	.stripped = stripped,
	.no_conversation = "No conversation found",
	.fork_flag = "--fork-session",
	.read_claim = argv_read_claim,
	.read_resume = argv_read_resume,
	.skips_word = argv_skips_word,
	.add_flags = argv_add_flags,
	.scan = scan_envelope,
	.kind = kind,
	.repeats_pieces = true,
	.kind_of = kind_of,
	.hides_kind = hides_kind,
	.read = read_line,
	.read_timers = crons_read,
	.read_head = read_head,
	.read_result = turn_read_result,
	.next_tool = turn_next_tool,
	.ran_no_turn = ran_no_turn,
	.names_max = CLAUDE_NAMES_MAX,
	.task_id = task_id,
	.put_task = put_task,
	.put_step = put_step,
	.strict_mode = strict_mode,
	.strictest = "plan",
	.is_default_mode = is_default_mode,
	.is_default_model = is_default_mode,
	.ask_kind = ask_kind,
	.ask_part = ask_part,
	.summary = summary,
	.check_answer = answers_check,
	.is_empty = answers_are_empty,
	.put_empty = answers_put_empty,
	.decision = answers_decision,
	.answer_reason = answers_reason,
	.read_changes = answers_read_changes,
	.mend = answers_mend,
	.put_answer = frame_put_success,
	.put_failure = put_failure,
	.put_tool_deny = answers_put_deny,
	.put_tool_allow = answers_put_allow,
	.put_cancel_form = answers_put_cancel,
	.put_cancel = frame_put_cancel,
	.put_request = frame_put_request,
	.put_interrupt = put_interrupt,
	.put_cancel_prompt = put_cancel_prompt,
	.put_prompt_cancelled = put_prompt_cancelled,
	.put_mode = put_mode,
	.frame = &frame_control,
	.put_success = frame_put_success,
	.success_end = FRAME_SUCCESS_END,
	.put_error = frame_put_error,
	.succeeded = succeeded,
	.confirmed = confirmed,
	.cancelled = cancelled,
	.recognizes = recognizes,
	.check = message_check,
	.check_steps = &steps,
	.prompt_id = "uuid",
	.request_id = "request_id",
	.session_id = "session_id",
	.skips = message_is_skipped,
	.is_fatal_request = message_is_fatal_request,
	.after_mark = message_after_mark,
	.gate = rows,
	.n_gate = ARRAY_SIZE(rows),
	.cancelled_prompt = cancelled_prompt,
	.cancels_queued = cancels_queued,
	.tools = &claude_tools,
	.calls = &claude_calls,
	.hooks = &claude_hooks,
};
