/* SPDX-License-Identifier: MIT */
#include "ctl/question.h"

#include "base/fd.h"
#include "base/str.h"
#include "ctl/answer.h"
#include "ctl/diff.h"
#include "ctl/text.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define DEPTH_MAX 6
#define FILE_MAX ((size_t)1 << 20) /* a larger file is not compared */

/* --- Any input as lines ------------------------------------------------------------------------------------------- */

static void put_value(struct show *s, const char *key, struct span value, int depth);

static void put_members(struct show *s, struct span object, int depth, const char *const *skip) {
	struct span key, value;
	for (size_t at = 0; span_next_member(object, &at, &key, &value);) {
		size_t i = 0;
		while (skip && skip[i] && !span_equals(key, skip[i])) i++;
		if (skip && skip[i]) continue;
		_cleanup_free_ char *name = text_dup(key, NULL);
		_cleanup_free_ char *label = str_printf("%s:", name ? name : "?");
		if (label) put_value(s, label, value, depth);
	}
}

static void put_value(struct show *s, const char *key, struct span value, int depth) {
	size_t n, at = 0;
	_cleanup_free_ char *text = text_dup(value, &n);
	struct span one;
	bool list = span_is_array(value), object = span_is_object(value);
	if (text && !memchr(text, '\n', n)) {
		show_note(s, SHOW_DIM, "%*s%s%s%.*s", depth * 2, "", key, *text ? " " : "", (int)n, text);
	} else if (text) {
		show_note(s, SHOW_DIM, "%*s%s |", depth * 2, "", key);
		show_lines(s, SHOW_DIM, depth * 2 + 2, text, n, 0);
	} else if (depth < DEPTH_MAX &&
			   ((list && span_next(value, &at, &one)) || (object && span_next_member(value, &at, &one, &one)))) {
		at = 0;
		show_note(s, SHOW_DIM, "%*s%s", depth * 2, "", key);
		if (object) put_members(s, value, depth + 1, NULL);
		while (list && span_next(value, &at, &one)) put_value(s, "-", one, depth + 1);
	} else {
		show_note(s, SHOW_DIM, "%*s%s %.*s", depth * 2, "", key, (int)value.n, value.p);
	}
}

/* --- Changes of files --------------------------------------------------------------------------------------------- */

static void put_change(void *arg, char sign, const char *line, size_t n) {
	struct show *s = arg;
	if (sign == '@')
		show_note(s, SHOW_CYAN, "  ... %.*s lines ...", (int)n, line);
	else
		show_note(s, sign == '-' ? SHOW_RED : sign == '+' ? SHOW_GREEN : SHOW_DIM, "  %c %.*s", sign, (int)n, line);
}

static void put_edit(struct show *s, struct span edit) {
	size_t old_len = 0, new_len = 0;
	_cleanup_free_ char *old = text_dup(span_member(edit, "old_string"), &old_len);
	_cleanup_free_ char *fresh = text_dup(span_member(edit, "new_string"), &new_len);
	if (span_is_true(span_member(edit, "replace_all"))) show_note(s, SHOW_DIM, "  each time it occurs:");
	diff_lines(old ? old : "", old_len, fresh ? fresh : "", new_len, put_change, s);
}

static void put_edits(struct show *s, struct span input) {
	struct span list = span_member(input, "edits"), one;
	size_t at = 0;
	bool one_too = span_member(input, "old_string").p || span_member(input, "new_string").p;
	if (one_too || !span_is_array(list)) put_edit(s, input);
	for (int n = one_too; span_is_array(list) && span_next(list, &at, &one); n++) {
		if (n) show_note(s, SHOW_CYAN, "  ...");
		put_edit(s, one);
	}
}

/* The file as it is here, if it is an ordinary one. */
static char *read_file(const char *path, size_t *n) {
	struct stat st;
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)FILE_MAX) return NULL;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *data = fd < 0 ? NULL : malloc((size_t)st.st_size + 1);
	ssize_t got = data ? fd_read(fd, data, (size_t)st.st_size) : -1;
	if (got >= 0) {
		*n = (size_t)got;
		return data;
	}
	free(data);
	return NULL;
}

static void put_write(struct show *s, struct span input) {
	size_t old_len = 0, new_len = 0;
	_cleanup_free_ char *path = text_dup(span_member(input, "file_path"), NULL);
	_cleanup_free_ char *fresh = text_dup(span_member(input, "content"), &new_len);
	_cleanup_free_ char *old = path && *path == '/' ? read_file(path, &old_len) : NULL;
	show_note(s, SHOW_DIM, old ? "  replaces the file that is here:" : "  the whole content:");
	diff_lines(old ? old : "", old_len, fresh ? fresh : "", new_len, put_change, s);
}

/* --- The request -------------------------------------------------------------------------------------------------- */

static void put_input(struct show *s, struct span tool, struct span input) {
	static const char *const of_edit[] = {"file_path", "old_string", "new_string", "replace_all", "edits", NULL};
	static const char *const of_write[] = {"file_path", "content", NULL};
	static const char *const of_plan[] = {"plan", NULL}, *const of_command[] = {"command", "description", NULL};
	const char *const *shown = NULL; /* before the rest of the members */
	bool plan = span_equals(tool, "ExitPlanMode");
	if (span_equals(tool, "Edit") || span_equals(tool, "MultiEdit")) {
		put_edits(s, input);
		shown = of_edit;
	} else if (span_equals(tool, "Write")) {
		put_write(s, input);
		shown = of_write;
	} else if (plan || span_is_string(span_member(input, "command"))) {
		size_t n = 0;
		_cleanup_free_ char *text = text_dup(span_member(input, plan ? "plan" : "command"), &n);
		if (text) show_lines(s, plan ? SHOW_DIM : SHOW_BOLD, 2, text, n, 0);
		shown = plan ? of_plan : of_command;
	}
	put_members(s, input, 1, shown);
}

/* A difference in text, or all lines of a new or an old file. */
static void put_patch(struct show *s, const char *kind, const char *text, size_t n) {
	char all = strcmp(kind, "add") == 0 ? '+' : strcmp(kind, "delete") == 0 ? '-' : 0;
	for (const char *end = text + n, *stop; text < end; text = stop + 1) {
		stop = memchr(text, '\n', (size_t)(end - text));
		if (!stop) stop = end;
		size_t len = (size_t)(stop - text);
		bool sign = !all && len && strchr("+- ", *text);
		if (!all && len > 1 && memcmp(text, "@@", 2) == 0)
			show_note(s, SHOW_CYAN, "  %.*s", (int)len, text);
		else
			put_change(s, all ? all : sign ? *text : ' ', text + sign, len - sign);
	}
}

static void put_patched(struct show *s, struct span change, const char *path) {
	size_t n = 0;
	_cleanup_free_ char *kind = text_dup(span_member(span_member(change, "kind"), "type"), NULL);
	_cleanup_free_ char *moved = text_dup(span_member(span_member(change, "kind"), "move_path"), NULL);
	_cleanup_free_ char *text = text_dup(span_member(change, "diff"), &n);
	show_note(s, SHOW_DIM, "  %s%s%s (%s):", path, moved ? " to " : "", moved ? moved : "", kind ? kind : "?");
	if (text) put_patch(s, kind ? kind : "", text, n);
}

/* The changes of files beside an input. */
static void put_diffs(struct show *s, struct span list) {
	struct span one;
	for (size_t at = 0; span_is_array(list) && span_next(list, &at, &one);) {
		size_t old_len = 0, new_len = 0;
		_cleanup_free_ char *path = text_dup(span_member(one, "path"), NULL);
		if (path && span_is_object(span_member(one, "kind"))) put_patched(s, one, path);
		_cleanup_free_ char *old = text_dup(span_member(one, "oldText"), &old_len);
		_cleanup_free_ char *fresh = text_dup(span_member(one, "newText"), &new_len);
		if (!path || !fresh) continue;
		show_note(s, SHOW_DIM, "  %s:", path);
		diff_lines(old ? old : "", old_len, fresh, new_len, put_change, s);
	}
}

static void put_title(struct show *s, const struct speech_ask *ask, const char *name) {
	/* "mcp__SERVER__TOOL" in words; any other name as it is. */
	const char *server = name && strncmp(name, "mcp__", 5) == 0 ? name + 5 : NULL;
	const char *tool = server ? strstr(server, "__") : NULL;
	_cleanup_free_ char *words = tool ? str_printf("%s of the MCP server %.*s", tool + 2, (int)(tool - server), server)
									  : str_dup(name);
	_cleanup_free_ char *message = text_dup(ask->message, NULL);
	/* A file, or a description that is not the command itself. */
	struct span description = span_member(ask->input, "description"), command = span_member(ask->input, "command");
	_cleanup_free_ char *what = text_dup(span_member(ask->input, "file_path"), NULL);
	if (!description.p) description = ask->about;
	if (!what && !span_same(description, command)) what = text_dup(description, NULL);
	bool plan = span_equals(ask->tool, "ExitPlanMode");
	show_note(s, SHOW_YELLOW, "? %s%s%s",
			  plan      ? "the agent's plan"
			  : words   ? words
			  : message ? message
						: "the agent asks",
			  what && !plan ? ": " : "", what && !plan ? what : "");
}

/* Of a request without a tool: ids, and members that are printed elsewhere. */
static const char *const unshown[] = {"subtype",   "message",    "requested_schema", "requestedSchema",
									  "questions", "itemId",     "sessionId",        "threadId",
									  "turnId",    "isBlocking", "autoResolutionMs", NULL};

void question_show(struct show *s, const struct speech_ask *ask) {
	_cleanup_free_ char *name = text_dup(ask->tool, NULL);
	_cleanup_free_ char *reason = text_dup(ask->reason, NULL);
	_cleanup_free_ char *blocked = text_dup(ask->path, NULL);
	_cleanup_free_ char *subagent = text_dup(ask->agent, NULL);
	put_title(s, ask, name);
	if (subagent) show_note(s, SHOW_DIM, "  asked by subagent %s", subagent);
	if (span_is_object(ask->input))
		put_input(s, ask->tool, ask->input);
	else if (ask->input.p && !span_same(ask->input, ask->about))
		put_value(s, "input:", ask->input, 1);
	put_diffs(s, ask->changes);
	if (ask->call.p && !ask->changes.p)
		show_note(s, SHOW_RED, "  its changes were named before this chat began, and are not known here");
	if (!name) put_members(s, ask->body, 1, unshown);
	if (blocked) show_note(s, SHOW_DIM, "  the path that needs it: %s", blocked);
	if (reason) show_note(s, SHOW_DIM, "  because: %s", reason);
}

static void show_always(struct show *s, const struct speech_ask *ask) {
	struct span one;
	show_note(s, SHOW_DIM, "  a  allow it, and remember:");
	for (size_t at = 0; span_next(ask->proposals, &at, &one);) {
		struct buf b = BUF_INIT(65536);
		answer_put_remembered(&b, one);
		show_note(s, SHOW_DIM, "       %s", b.data ? b.data : "");
		buf_free(&b);
	}
}

/* Return the words of a rule, a space before each; the caller frees. NULL: there are none. */
static char *words_of(struct span rule) {
	struct buf b = BUF_INIT(65536);
	struct span one;
	for (size_t at = 0; span_next(rule, &at, &one);) {
		_cleanup_free_ char *word = text_dup(one, NULL);
		buf_putc(&b, ' ');
		text_put_value(&b, word ? word : "?");
	}
	return buf_steal(&b, NULL);
}

/* The agent's own names. */
static void show_names(struct show *s, const struct speech_ask *ask) {
	const struct {
		char key;
		struct span name;
	} choices[] = {{'y', ask->yes}, {'n', ask->no}, {'a', ask->always}};
	for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
		_cleanup_free_ char *name = text_dup(choices[i].name, NULL);
		_cleanup_free_ char *rule = choices[i].key == 'a' ? words_of(ask->rule) : NULL;
		if (name) show_note(s, SHOW_DIM, "  %c  %s%s", choices[i].key, name, rule ? rule : "");
	}
}

void question_show_choices(struct show *s, const struct speech_ask *ask) {
	if (ask->yes.p || ask->no.p) {
		show_names(s, ask);
		return;
	}
	bool plan = span_equals(ask->tool, "ExitPlanMode"), tool_use = span_is_string(ask->tool);
	show_note(s, SHOW_DIM, "  y  %s", plan ? "go on with this plan" : tool_use ? "allow it this time" : "accept");
	show_note(s, SHOW_DIM, "  n  %s",
			  plan       ? "go on planning (n and a text: what to change)"
			  : tool_use ? "deny it (n and a text: the agent reads it as the reason)"
						 : "decline");
	if (!plan && ask->can_remember) show_always(s, ask);
}

void question_show_form_choices(struct show *s, bool can_accept, bool has_fields) {
	if (can_accept) show_note(s, SHOW_DIM, "  y  accept%s", has_fields ? ": send these values" : "");
	show_note(s, SHOW_DIM, "  n  decline");
	show_note(s, SHOW_DIM, "  c  cancel: neither a yes nor a no");
	if (can_accept && has_fields) show_note(s, SHOW_DIM, "  e  enter the values again");
}

/* --- Answers ------------------------------------------------------------------------------------------------------ */

static bool is_word(const char *text, size_t n, const char *word) {
	return (n == 1 || n == strlen(word)) && strncasecmp(text, word, n) == 0;
}

enum question_answer question_parse(const char *text, bool form, const char **reason) {
	static const struct {
		const char *word;
		enum question_answer answer;
	} words[] = {
		{"yes", QUESTION_YES}, {"always", QUESTION_ALWAYS}, {"cancel", QUESTION_CANCEL}, {"edit", QUESTION_EDIT}};
	*reason = NULL;
	while (*text == ' ' || *text == '\t') text++;
	size_t n = strcspn(text, " \t\n"), gap = strspn(text + n, " \t\n");
	if (is_word(text, n, "no")) {
		if (text[n + gap]) *reason = text + n + gap;
		return QUESTION_NO;
	}
	if (text[n + gap]) return QUESTION_UNCLEAR;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (is_word(text, n, words[i].word) && (form || words[i].answer < QUESTION_CANCEL)) return words[i].answer;
	return QUESTION_UNCLEAR;
}
