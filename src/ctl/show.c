/* SPDX-License-Identifier: MIT */
#include "ctl/show.h"

#include "base/macros.h"
#include "base/str.h"
#include "ctl/text.h"
#include "plenum/protocol.h"

#include <stdarg.h>
#include <string.h>

#define LINE_MAX_CHARS 160
#define OUTPUT_LINES 6      /* of a tool's output that are printed */
#define OUTPUT_COLUMNS 2000 /* of one of these lines */

void show_init(struct show *s, FILE *out) {
	const char *term = getenv("TERM");
	const char *no_color = getenv("NO_COLOR");
	*s = (struct show){.out = out};
	s->color = isatty(fileno(out)) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

void show_break(struct show *s) {
	if (s->mid_line) fputc('\n', s->out);
	s->mid_line = s->sign = false;
}

void show_note(struct show *s, const char *color, const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	_cleanup_free_ char *text = str_vprintf(fmt, ap);
	va_end(ap);
	if (!text) return;
	show_break(s);
	if (s->color) fprintf(s->out, "\033[%sm", color);
	text_print(s->out, text, strlen(text));
	fputs(s->color ? "\033[0m\n" : "\n", s->out);
}

/* The rest is kept from here on. */
static void keep_rest(struct show *s, const char *text, size_t n) {
	free(s->rest);
	s->rest = malloc(n);
	s->rest_len = s->rest ? n : 0;
	if (s->rest) memcpy(s->rest, text, n);
}

static void print_line(struct show *s, const char *color, int indent, const char *text, size_t n) {
	struct buf b = BUF_INIT(SIZE_MAX / 2);
	text_put(&b, text, n);
	if (s->color) fprintf(s->out, "\033[%sm", color);
	fprintf(s->out, "%*s%s", indent, "", b.data ? b.data : "");
	fputs(s->color ? "\033[0m\n" : "\n", s->out);
	buf_free(&b);
}

void show_lines(struct show *s, const char *color, int indent, const char *text, size_t n, size_t max) {
	const char *end = text + n;
	show_break(s);
	while (end > text && end[-1] == '\n') end--;
	for (size_t printed = 0; text < end; printed++) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t len = (size_t)((stop ? stop : end) - text), left = 1;
		if (max && printed == max) {
			for (const char *p = text; (p = memchr(p, '\n', (size_t)(end - p))); p++) left++;
			if (s->keeps) keep_rest(s, text, (size_t)(end - text));
			show_note(s, color, "%*s... %zu more %s%s", indent, "", left, left == 1 ? "line" : "lines",
					  s->keeps ? " (/more shows them)" : "");
			return;
		}
		bool cut = max && len > OUTPUT_COLUMNS;
		print_line(s, color, indent, text, cut ? OUTPUT_COLUMNS : len);
		if (cut) show_note(s, color, "%*s... %zu more bytes of this line", indent, "", len - OUTPUT_COLUMNS);
		text += len + (stop != NULL);
	}
}

bool show_more(struct show *s) {
	if (!s->rest) return false;
	char *rest = s->rest;
	s->rest = NULL;
	show_lines(s, SHOW_DIM, 4, rest, s->rest_len, 0);
	free(rest);
	return true;
}

void show_free(struct show *s) {
	free(s->rest);
	s->rest = NULL;
}

/* --- Text of the answer ------------------------------------------------------------------------------------------- */

static void put_text(struct show *s, struct span value) {
	size_t n;
	_cleanup_free_ char *text = text_dup(value, &n);
	if (!text || n == 0) return;
	if (s->sign) show_break(s);
	text_print(s->out, text, n);
	s->mid_line = text[n - 1] != '\n';
	s->wrote = true;
}

static void remember_message(struct show *s, struct span id) {
	struct span raw = span_content(id);
	snprintf(s->streamed, sizeof s->streamed, "%.*s", (int)MIN(raw.n, sizeof s->streamed - 1), raw.p ? raw.p : "");
}

static void show_stream_event(struct show *s, struct span line) {
	struct span event = span_member(line, "event");
	struct span type = span_member(event, "type");
	if (span_equals(type, "message_start")) remember_message(s, span_member(span_member(event, "message"), "id"));
	if (span_equals(type, "content_block_stop")) show_break(s);
	/* Of a message whose beginning we missed, the pieces are half the text: its `assistant` line has all of it. */
	if (!span_equals(type, "content_block_delta") || !*s->streamed) return;
	struct span delta = span_member(event, "delta");
	if (span_equals(span_member(delta, "type"), "text_delta")) put_text(s, span_member(delta, "text"));
}

static bool was_streamed(const struct show *s, struct span message) {
	return *s->streamed && span_equals(span_member(message, "id"), s->streamed);
}

static void show_blocks_text(struct show *s, struct span message) {
	struct span content = span_member(message, "content"), block;
	size_t at = 0;
	if (span_is_string(content)) put_text(s, content);
	while (span_is_array(content) && span_next(content, &at, &block)) {
		if (!span_equals(span_member(block, "type"), "text")) continue;
		put_text(s, span_member(block, "text"));
		show_break(s);
	}
	show_break(s);
}

void show_answer(struct show *s, struct span line, const struct envelope *e) {
	if (span_is_string(e->parent_tool_use_id)) return; /* a subagent talks to the agent, not to us */
	if (span_equals(e->type, "stream_event")) show_stream_event(s, line);
	if (span_equals(e->type, "assistant") && !was_streamed(s, e->message)) show_blocks_text(s, e->message);
}

/* --- Everything else ---------------------------------------------------------------------------------------------- */

static char *one_line(const char *text, size_t n, size_t max) {
	struct buf b = BUF_INIT(65536);
	buf_puts(&b, "");
	text_put_line(&b, text, n, max);
	return buf_steal(&b, NULL);
}

/* A value as one line: a string's text, anything else as its JSON. */
static char *span_line(struct span value, size_t max) {
	size_t n;
	_cleanup_free_ char *text = span_is_string(value) ? text_dup(value, &n) : NULL;
	if (text) return one_line(text, n, max);
	return one_line(value.p ? value.p : "", value.n, max);
}

/* The member of a tool's input that says most. */
static struct span telling_member(struct span input) {
	static const char *const keys[] = {"command", "file_path", "path", "pattern", "url", "query", "prompt", "skill"};
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		struct span value = span_member(input, keys[i]);
		if (span_is_string(value)) return value;
	}
	struct span question = span_member(span_element(span_member(input, "questions"), 0), "question");
	return span_is_string(question) ? question : input;
}

char *show_input(struct span input, size_t max) {
	return span_line(telling_member(input), max);
}

char *show_tool(struct span name, struct span input, size_t max) {
	_cleanup_free_ char *tool = span_line(name, 80);
	_cleanup_free_ char *what = show_input(input, max);
	char *line = NULL;
	return asprintf(&line, "%s: %s", tool ? tool : "?", what ? what : "") < 0 ? NULL : line;
}

static void show_tool_uses(struct show *s, struct span message) {
	struct span content = span_member(message, "content"), block;
	size_t at = 0;
	while (span_is_array(content) && span_next(content, &at, &block)) {
		if (!span_equals(span_member(block, "type"), "tool_use")) continue;
		_cleanup_free_ char *tool = show_tool(span_member(block, "name"), span_member(block, "input"), LINE_MAX_CHARS);
		show_note(s, SHOW_CYAN, "* %s", tool ? tool : "?");
	}
}

/* A tool result's text: a string, or the first text block of a list. */
static struct span result_text(struct span content) {
	struct span block;
	size_t at = 0;
	if (!span_is_array(content)) return content;
	while (span_next(content, &at, &block))
		if (span_equals(span_member(block, "type"), "text")) return span_member(block, "text");
	return SPAN_NONE;
}

static void show_tool_results(struct show *s, struct span content) {
	struct span block;
	size_t at = 0;
	while (span_is_array(content) && span_next(content, &at, &block)) {
		if (!span_equals(span_member(block, "type"), "tool_result")) continue;
		bool bad = span_is_true(span_member(block, "is_error"));
		size_t n = 0;
		_cleanup_free_ char *text = text_dup(result_text(span_member(block, "content")), &n);
		bool several = text && memchr(text, '\n', n);
		const char *color = bad ? SHOW_RED : SHOW_DIM;
		if (!several) {
			_cleanup_free_ char *line = one_line(text ? text : "", n, LINE_MAX_CHARS);
			show_note(s, color, "  = %s%s", bad ? "error: " : "", line && *line ? line : "(nothing)");
			if (n > LINE_MAX_CHARS && s->keeps) keep_rest(s, text, n);
			continue;
		}
		show_note(s, color, "  =%s", bad ? " error:" : "");
		show_lines(s, color, 4, text, n, OUTPUT_LINES);
	}
}

static void show_user(struct show *s, const struct envelope *e) {
	struct span content = span_member(e->message, "content");
	if (span_is_true(e->is_replay)) {
		_cleanup_free_ char *text = span_line(result_text(content), LINE_MAX_CHARS * 4);
		show_note(s, SHOW_BOLD, "> %s", text ? text : "");
		return;
	}
	show_tool_results(s, content);
}

bool show_was_interrupted(struct span line, const struct envelope *e) {
	struct span reason = span_member(line, "terminal_reason");
	return span_is_true(e->is_error) &&
		   (span_equals(reason, "aborted_streaming") || span_equals(reason, "aborted_tools"));
}

static void put_count(struct buf *b, int64_t n) {
	if (n >= 10000)
		buf_printf(b, "%lld.%lldk", (long long)n / 1000, (long long)n / 100 % 10);
	else
		buf_printf(b, "%lld", (long long)n);
}

/* Tokens of this turn, and the cost, which the agent counts from the start of its process. */
static void put_usage(struct buf *b, struct span line) {
	static const char *const inputs[] = {"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"};
	struct span usage = span_member(line, "usage"), cost = span_member(line, "total_cost_usd");
	int64_t in = 0, out = 0, n;
	for (size_t i = 0; i < ARRAY_SIZE(inputs); i++)
		if (span_int(span_member(usage, inputs[i]), &n)) in += n;
	span_int(span_member(usage, "output_tokens"), &out);
	if (in > 0 || out > 0) {
		buf_puts(b, ", tokens: ");
		put_count(b, in);
		buf_puts(b, " in, ");
		put_count(b, out);
		buf_puts(b, " out");
	}
	_cleanup_free_ char *number = cost.p ? strndup(cost.p, cost.n) : NULL;
	double dollars = number ? strtod(number, NULL) : 0;
	if (dollars > 0) buf_printf(b, ", $%.4f so far", dollars);
}

static void show_result(struct show *s, struct span line, const struct envelope *e) {
	int64_t ms = 0;
	_cleanup_free_ char *subtype = span_line(e->subtype, 60);
	span_int(span_member(line, "duration_ms"), &ms);
	if (show_was_interrupted(line, e)) {
		show_note(s, SHOW_DIM, "-- interrupted");
		return;
	}
	if (!span_is_true(e->is_error)) {
		struct buf b = BUF_INIT(1000);
		buf_printf(&b, "-- %s, %lld.%lld s", subtype ? subtype : "", (long long)ms / 1000, (long long)ms / 100 % 10);
		put_usage(&b, line);
		show_note(s, SHOW_DIM, "%s", b.data ? b.data : "");
		buf_free(&b);
		return;
	}
	struct span errors = span_member(line, "errors"), first = SPAN_NONE;
	size_t at = 0;
	if (!span_is_array(errors) || !span_next(errors, &at, &first)) first = span_member(line, "result");
	_cleanup_free_ char *why = span_line(first, LINE_MAX_CHARS);
	show_note(s, SHOW_RED, "-- failed (%s): %s", subtype && strcmp(subtype, "success") ? subtype : "API",
			  why ? why : "");
}

/* The child's system lines that a person should see, and the member that holds their text. */
static const struct {
	const char *subtype, *member;
} told[] = {
	{"permission_denied", "message"}, {"informational", "content"},
	{"notification", "text"},         {"local_command_output", "content"},
	{"task_started", "description"},  {"task_notification", "summary"},
	{"api_retry", "error"},           {"session_title_changed", "title"},
};

/* Members of our own notices, in the order in which they are shown. */
static const char *const event_members[] = {"client", "name",  "state",   "reason", "decision",  "tool_name",
											"what",   "value", "status",  "signal", "program",   "uid",
											"pid",    "code",  "error",   "text",   "line",      "from",
											"to",     "ms",    "outcome", "last",   "open_tool", "by"};

/* Notices in words; of those of one event (and `what`), the first with all its members. */
static const struct {
	const char *event, *words, *what;
} notices[] = {
	{PLENUM_EV_ATTACHED, "{client} joined"},
	{PLENUM_EV_DETACHED, "{client} left: {reason}"},
	{PLENUM_EV_DETACHED, "{client} left"},
	{PLENUM_EV_SESSION_STATE, "the session is {state}: {reason}"},
	{PLENUM_EV_SESSION_STATE, "the session is {state}"},
	{PLENUM_EV_SESSION_REMOVED, "the session was removed"},
	{PLENUM_EV_CHILD_EXITED, "the agent ended: {reason}"},
	{PLENUM_EV_CHILD_EXITED, "the agent ended by signal {signal}"},
	{PLENUM_EV_CHILD_EXITED, "the agent ended with status {status}"},
	{PLENUM_EV_STALLED, "no output for a while; the tool that runs: {open_tool}"},
	{PLENUM_EV_STALLED, "no output for a while"},
	{PLENUM_EV_RESUMED, "output again"},
	{PLENUM_EV_CHANGED, "{by} stops the agent", "stopping"},
	{PLENUM_EV_CHANGED, "{by} set {what} to {value}"},
	{PLENUM_EV_CHANGED, "{what} is now {value}"},
	{PLENUM_EV_STRAY_OUTPUT, "stray output of the agent: {text}"},
	{PLENUM_EV_GAP, "lines {from} to {to} are lost"},
	{PLENUM_EV_ERROR, "{error}"},
	{PLENUM_EV_SHUTTING_DOWN, "the daemon stops"},
};

/* A value as one line, an object (a client) by its name; NULL: there is none. */
static char *value_text(struct span value) {
	struct span name = span_is_object(value) ? span_member(value, "name") : SPAN_NONE;
	if (span_is_object(value) && !span_is_string(name)) name = span_member(value, "program");
	char *text = span_line(name.p ? name : value, LINE_MAX_CHARS);
	if (text && *text && strcmp(text, "null") != 0) return text;
	free(text);
	return NULL;
}

static void put_member(struct buf *b, const char *key, struct span value) {
	_cleanup_free_ char *text = value_text(value);
	if (!text) return;
	buf_printf(b, " %s=", key);
	text_put_value(b, text);
}

/* A client's name with spaces is quoted, so that it is no part of the sentence. */
static bool put_words(struct buf *b, const char *words, struct span line) {
	b->len = 0;
	for (const char *open, *end; (open = strchr(words, '{')) != NULL; words = end + 1) {
		end = strchr(open, '}');
		_cleanup_free_ char *key = str_printf("%.*s", (int)(end - open - 1), open + 1);
		struct span value = key ? span_member(line, key) : SPAN_NONE;
		_cleanup_free_ char *text = value_text(value);
		if (!text) return false;
		buf_put(b, words, (size_t)(open - words));
		if (span_is_object(value) && strpbrk(text, " \""))
			str_put_quoted(b, text, strlen(text));
		else
			buf_puts(b, text);
	}
	return buf_puts(b, words);
}

static bool put_notice(struct buf *b, const char *event, struct span line) {
	struct span what = span_member(line, "what");
	for (size_t i = 0; i < ARRAY_SIZE(notices); i++) {
		bool fits = strcmp(notices[i].event, event) == 0 && (!notices[i].what || span_equals(what, notices[i].what));
		if (fits && put_words(b, notices[i].words, line)) return true;
	}
	return false;
}

/* What the turn's own lines, or other notices, show anyway. */
static bool is_told(struct span line, const char *event) {
	struct span state = span_member(line, "state");
	if (strcmp(event, PLENUM_EV_TURN_STARTED) == 0 || strcmp(event, PLENUM_EV_TURN_ENDED) == 0 ||
		strcmp(event, PLENUM_EV_FAILED) == 0)
		return true;
	return strcmp(event, PLENUM_EV_SESSION_STATE) == 0 &&
		   (span_equals(state, PLENUM_ST_BUSY) || span_equals(state, PLENUM_ST_IDLE));
}

static void put_members(struct buf *b, struct span line) {
	for (size_t i = 0; i < ARRAY_SIZE(event_members); i++)
		put_member(b, event_members[i], span_member(line, event_members[i]));
}

void show_put_event(struct buf *b, struct span line) {
	_cleanup_free_ char *event = span_line(span_member(line, "event"), 60);
	buf_puts(b, event ? event : "?");
	put_members(b, line);
}

static void show_event(struct show *s, struct span line) {
	_cleanup_free_ char *event = span_line(span_member(line, "event"), 60);
	struct buf b = BUF_INIT(65536);
	if (!event || is_told(line, event)) return;
	if (strcmp(event, PLENUM_EV_GAP) == 0) *s->streamed = 0;
	bool worded = put_notice(&b, event, line);
	if (!worded) {
		b.len = 0;
		buf_printf(&b, "[%s]", event);
		put_members(&b, line);
	}
	bool bad = strcmp(event, PLENUM_EV_ERROR) == 0 || strcmp(event, PLENUM_EV_GAP) == 0 ||
			   strcmp(event, PLENUM_EV_CHILD_EXITED) == 0;
	show_note(s, bad ? SHOW_RED : SHOW_DIM, "%s%s", worded ? "-- " : "", b.data ? b.data : "");
	buf_free(&b);
}

static void show_system(struct show *s, struct span line, const struct envelope *e) {
	if (span_equals(e->subtype, PLENUM_EVENT_SUBTYPE)) {
		show_event(s, line);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
		if (!span_equals(e->subtype, told[i].subtype)) continue;
		_cleanup_free_ char *text = span_line(span_member(line, told[i].member), LINE_MAX_CHARS);
		show_note(s, SHOW_YELLOW, "! %s: %s", told[i].subtype, text ? text : "");
	}
}

static void show_request(struct show *s, const struct envelope *e) {
	if (!span_equals(e->inner_subtype, "can_use_tool")) return;
	_cleanup_free_ char *tool = show_tool(span_member(e->request, "tool_name"), span_member(e->request, "input"),
										  LINE_MAX_CHARS);
	show_note(s, SHOW_YELLOW, "? %s", tool ? tool : "");
}

void show_line(struct show *s, struct span line, const struct envelope *e) {
	show_answer(s, line, e);
	if (span_equals(e->type, "assistant")) show_tool_uses(s, e->message);
	if (span_equals(e->type, "user")) show_user(s, e);
	if (span_equals(e->type, "result")) show_result(s, line, e);
	if (span_equals(e->type, "system")) show_system(s, line, e);
	if (span_equals(e->type, "control_request")) show_request(s, e);
}
