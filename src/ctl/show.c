/* SPDX-License-Identifier: MIT */
#include "ctl/show.h"

#include "base/macros.h"
#include "base/str.h"
#include "ctl/sentence.h"
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
		if (s->color) fprintf(s->out, "\033[%sm", color);
		fprintf(s->out, "%*s", indent, "");
		text_print(s->out, text, cut ? OUTPUT_COLUMNS : len);
		fputs(s->color ? "\033[0m\n" : "\n", s->out);
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

/* Of a message whose beginning we missed, the pieces are half the text: it comes again as a whole. */
static void show_text(struct show *s, const struct incoming *in, const struct speech_fact *f) {
	if (f->nested) return; /* a subagent talks to the agent, not to us */
	if (f->kind == SPEECH_MESSAGE) {
		struct span id = span_content(f->id);
		snprintf(s->streamed, sizeof s->streamed, "%.*s", (int)MIN(id.n, sizeof s->streamed - 1), id.p ? id.p : "");
	}
	if (f->kind == SPEECH_PAUSE || f->kind == SPEECH_CALL) show_break(s);
	if (f->kind == SPEECH_PIECE && (*s->streamed || !in->speech->repeats)) put_text(s, f->text);
	if (f->kind != SPEECH_TEXT || (*s->streamed && span_equals(f->id, s->streamed))) return;
	put_text(s, f->text);
	show_break(s);
}

void show_answer(struct show *s, const struct incoming *in) {
	struct speech_fact f;
	for (size_t at = 0; speech_next(in, &at, &f);) show_text(s, in, &f);
}

/* --- Everything else ---------------------------------------------------------------------------------------------- */

/* The member of a tool's input that says most. */
static struct span telling_member(struct span input) {
	static const char *const keys[] = {"command", "file_path", "path",  "pattern", "url",
									   "query",   "prompt",    "skill", "title"};
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		struct span value = span_member(input, keys[i]);
		if (span_is_string(value)) return value;
	}
	struct span question = span_member(span_element(span_member(input, "questions"), 0), "question");
	if (span_is_string(question)) return question;
	struct span reason = span_member(input, "reason");
	if (!span_member(input, "itemId").p) return input;
	return span_is_string(reason) ? reason : SPAN_NONE; /* the request only names what it is about */
}

char *show_input(struct span input, size_t max) {
	return text_value(telling_member(input), max);
}

char *show_tool(struct span name, struct span input, size_t max) {
	_cleanup_free_ char *tool = text_value(name, 80);
	_cleanup_free_ char *what = show_input(input, max);
	char *line = NULL;
	return asprintf(&line, "%s: %s", tool ? tool : "?", what ? what : "") < 0 ? NULL : line;
}

static void show_tool_result(struct show *s, const struct speech_fact *f) {
	size_t n = 0;
	_cleanup_free_ char *text = text_dup(f->text, &n);
	const char *color = f->bad ? SHOW_RED : SHOW_DIM;
	if (text && memchr(text, '\n', n)) {
		show_note(s, color, "  =%s", f->bad ? " error:" : "");
		show_lines(s, color, 4, text, n, OUTPUT_LINES);
		return;
	}
	_cleanup_free_ char *line = text_line(text ? text : "", n, LINE_MAX_CHARS);
	show_note(s, color, "  = %s%s", f->bad ? "error: " : "", line && *line ? line : "(nothing)");
	if (n > LINE_MAX_CHARS && s->keeps) keep_rest(s, text, n);
}

static void put_count(struct buf *b, int64_t n) {
	if (n >= 10000)
		buf_printf(b, "%lld.%lldk", (long long)n / 1000, (long long)n / 100 % 10);
	else
		buf_printf(b, "%lld", (long long)n);
}

static void show_end(struct show *s, const struct speech_fact *end) {
	_cleanup_free_ char *outcome = text_value(end->name, 60);
	if (end->again) return;
	if (end->interrupted) {
		show_note(s, SHOW_DIM, "-- interrupted");
		return;
	}
	if (!end->bad) {
		struct buf b = BUF_INIT(1000);
		buf_printf(&b, "-- %s, %lld.%lld s", outcome ? outcome : "", (long long)end->ms / 1000,
				   (long long)end->ms / 100 % 10);
		if (end->in > 0 || end->out > 0) { /* of this turn */
			buf_puts(&b, ", tokens: ");
			put_count(&b, end->in);
			buf_puts(&b, " in, ");
			put_count(&b, end->out);
			buf_puts(&b, " out");
		}
		if (end->cost > 0) buf_printf(&b, ", $%.4f so far", end->cost); /* since the start of the agent's process */
		show_note(s, SHOW_DIM, "%s", b.data ? b.data : "");
		buf_free(&b);
		return;
	}
	_cleanup_free_ char *why = text_value(end->text, LINE_MAX_CHARS);
	bool named = outcome && *outcome;
	const char *kind = !named ? "" : strcmp(outcome, "success") == 0 ? " (API)" : NULL;
	show_note(s, SHOW_RED, "-- failed%s%s%s%s%s", kind ? kind : " (", kind ? "" : outcome, kind ? "" : ")",
			  why && *why ? ": " : "", why ? why : "");
}

/* What the turn's own lines, or other notices, show anyway. */
static bool is_told(struct span line, const char *event) {
	struct span state = span_member(line, "state");
	if (strcmp(event, PLENUM_EV_TURN_STARTED) == 0 || strcmp(event, PLENUM_EV_TURN_ENDED) == 0 ||
		strcmp(event, PLENUM_EV_FAILED) == 0)
		return true;
	bool same = span_same(state, span_member(line, "previous")) && !span_member(line, "reason").p;
	return strcmp(event, PLENUM_EV_SESSION_STATE) == 0 &&
		   (same || span_equals(state, PLENUM_ST_BUSY) || span_equals(state, PLENUM_ST_IDLE));
}

static void show_event(struct show *s, struct span line) {
	_cleanup_free_ char *event = text_value(span_member(line, "event"), 60);
	struct buf b = BUF_INIT(65536);
	if (!event || is_told(line, event)) return;
	if (strcmp(event, PLENUM_EV_GAP) == 0) *s->streamed = 0;
	bool worded = sentence_put(&b, event, line);
	if (!worded) {
		b.len = 0;
		buf_printf(&b, "[%s]", event);
		sentence_put_members(&b, line);
	}
	bool bad = strcmp(event, PLENUM_EV_ERROR) == 0 || strcmp(event, PLENUM_EV_GAP) == 0 ||
			   strcmp(event, PLENUM_EV_CHILD_EXITED) == 0;
	show_note(s, bad ? SHOW_RED : SHOW_DIM, "%s%s", worded ? "-- " : "", b.data ? b.data : "");
	buf_free(&b);
}

void show_line(struct show *s, const struct incoming *in) {
	struct speech_fact f;
	for (size_t at = 0; speech_next(in, &at, &f);) {
		struct speech_ask ask = {0};
		_cleanup_free_ char *name = NULL, *text = NULL;
		show_text(s, in, &f);
		if (f.kind == SPEECH_CALL) {
			text = show_tool(f.name, f.input, LINE_MAX_CHARS);
			show_note(s, SHOW_CYAN, "* %s", text ? text : "?");
		} else if (f.kind == SPEECH_RESULT) {
			show_tool_result(s, &f);
		} else if (f.kind == SPEECH_ECHO) {
			text = text_value(f.text, LINE_MAX_CHARS * 4);
			show_note(s, SHOW_BOLD, "> %s", text ? text : "");
		} else if (f.kind == SPEECH_END) {
			show_end(s, &f);
		} else if (f.kind == SPEECH_REPORT) {
			name = text_value(f.name, LINE_MAX_CHARS);
			text = text_value(f.text, LINE_MAX_CHARS);
			for (char *p = name; p && *p; p++) *p = *p == '_' ? ' ' : *p;
			show_note(s, SHOW_YELLOW, "! %s: %s", name ? name : "?", text ? text : "");
		} else if (f.kind == SPEECH_ASK) {
			in->speech->read_ask(in, &ask);
			text = ask.kind == SPEECH_ASKS_TOOL ? show_tool(ask.tool, ask.input, LINE_MAX_CHARS) : NULL;
			if (ask.kind == SPEECH_ASKS_TOOL) show_note(s, SHOW_YELLOW, "? %s", text ? text : "");
		}
	}
	if (in->notice.p) show_event(s, in->notice);
}
