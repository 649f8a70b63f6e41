/* SPDX-License-Identifier: MIT */
#include "ctl/sentence.h"

#include "base/macros.h"
#include "base/str.h"
#include "ctl/text.h"
#include "plenum/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_COLUMNS 160

/* Members of notices, in the order in which they are shown. */
static const char *const members[] = {
	"client", "name",   "state",  "reason",  "action",  "processes", "decision",  "tool_name", "summary",    "what",
	"value",  "status", "signal", "program", "uid",     "pid",       "code",      "error",     "text",       "line",
	"from",   "to",     "bytes",  "ms",      "outcome", "last",      "open_tool", "by",        "request_id",
};

/* Of the sentences of one event, the first whose condition holds (a member and its value) and whose members all have a
 * value counts. */
static const struct {
	const char *event, *words, *key, *value;
} sentences[] = {
	{PLENUM_EV_ATTACHED, "{client} joined"},
	{PLENUM_EV_DETACHED, "{client} left: {reason}"},
	{PLENUM_EV_DETACHED, "{client} left"},
	{PLENUM_EV_SESSION_STATE, "the session is {state}: {reason}"},
	{PLENUM_EV_SESSION_STATE, "the session is {state}"},
	{PLENUM_EV_SESSION_REMOVED, "the session was removed"},
	{PLENUM_EV_LEFTOVERS, "detached processes go on: {processes}", "action", PLENUM_LEFT_KEPT},
	{PLENUM_EV_LEFTOVERS, "detached processes are asked to end: {processes}", "action", PLENUM_LEFT_ENDING},
	{PLENUM_EV_LEFTOVERS, "detached processes were killed: {processes}", "action", PLENUM_LEFT_KILLED},
	{PLENUM_EV_CHILD_EXITED, "the agent ended: {reason}"},
	{PLENUM_EV_CHILD_EXITED, "the agent ended by signal {signal}"},
	{PLENUM_EV_CHILD_EXITED, "the agent ended with status {status}"},
	{PLENUM_EV_STALLED, "no output for a while; the tool that runs: {open_tool}"},
	{PLENUM_EV_STALLED, "no output for a while"},
	{PLENUM_EV_RESUMED, "output again"},
	{PLENUM_EV_OWNER_GONE, "{name}, which guards tools with hooks, is away", "guards", "true"},
	{PLENUM_EV_OWNER_GONE, "a client that guards tools with hooks is away", "guards", "true"},
	{PLENUM_EV_OWNER_GONE, "{name}, which serves hooks or tools of this session, is away"},
	{PLENUM_EV_OWNER_GONE, "a client that served hooks or tools of this session has left"},
	{PLENUM_EV_OWNER_BACK, "{name} serves its hooks and tools again"},
	{PLENUM_EV_CHANGED, "{by} stops the agent", "what", "stopping"},
	{PLENUM_EV_CHANGED, "a prompt of {by} waits for its turn", "what", "prompt_held"},
	{PLENUM_EV_CHANGED, "a prompt waits for its turn", "what", "prompt_held"},
	{PLENUM_EV_CHANGED, "{by} cancelled a prompt that waited", "what", "prompt_cancelled"},
	{PLENUM_EV_CHANGED, "a prompt that waited was cancelled", "what", "prompt_cancelled"},
	{PLENUM_EV_CHANGED, "the conversation is now {value}", "what", "conversation_id"},
	{PLENUM_EV_CHANGED, "hooks that had to wait are active now", "what", "hooks_applied"},
	{PLENUM_EV_CHANGED, "{by} discarded the guards that were lost", "what", "guards_lost"},
	{PLENUM_EV_CHANGED, "{by} set {name}: {to}", "what", "config_option"},
	{PLENUM_EV_CHANGED, "{by} set {value}: {to}", "what", "config_option"},
	{PLENUM_EV_CHANGED, "{by} set the option {value}", "what", "config_option"},
	{PLENUM_EV_CHANGED, "{by} set {what} to {value}"},
	{PLENUM_EV_CHANGED, "{by} changed {what}"},
	{PLENUM_EV_CHANGED, "{what} is now {value}"},
	{PLENUM_EV_STRAY_OUTPUT, "stray output of the agent: {text}"},
	{PLENUM_EV_LAG, "{client} does not read fast enough: {bytes} bytes behind"},
	{PLENUM_EV_GAP, "lines {from} to {to} are lost"},
	{PLENUM_EV_ERROR, "{error}"},
	{PLENUM_EV_SHUTTING_DOWN, "the daemon stops"},
};

static char *value_text(struct span value);

/* Several values with commas between them. */
static char *list_text(struct span list) {
	struct buf b = BUF_INIT(65536);
	struct span one;
	buf_puts(&b, "");
	for (size_t at = 0; span_next(list, &at, &one);) {
		_cleanup_free_ char *text = value_text(one);
		buf_printf(&b, "%s%s", b.len ? ", " : "", text ? text : "?");
	}
	char *all = buf_steal(&b, NULL), *line = all ? text_line(all, strlen(all), VALUE_COLUMNS) : NULL;
	free(all);
	return line;
}

/* A process by its program and pid, a client by its name. */
static char *object_text(struct span object) {
	struct span name = span_member(object, "name"), program = span_member(object, "program");
	if (span_is_string(name)) return text_value(name, VALUE_COLUMNS);
	_cleanup_free_ char *text = program.p ? text_value(program, VALUE_COLUMNS) : text_value(object, VALUE_COLUMNS);
	struct span pid = span_member(object, "pid");
	if (!text || name.p || !pid.p) return str_printf("%s", text ? text : "");
	return str_printf("%s (pid %.*s)", text, (int)MIN(pid.n, (size_t)20), pid.p);
}

/* A value as one line; NULL: there is none. */
static char *value_text(struct span value) {
	char *text = span_is_object(value)  ? object_text(value)
				 : span_is_array(value) ? list_text(value)
										: text_value(value, VALUE_COLUMNS);
	if (text && *text && strcmp(text, "null") != 0) return text;
	free(text);
	return NULL;
}

/* A client's name with spaces is quoted, so that it is no part of the sentence. */
static void put_name(struct buf *b, const char *name) {
	if (strpbrk(name, " \""))
		str_put_quoted(b, name, strlen(name));
	else
		buf_puts(b, name);
}

static bool put_words(struct buf *b, const char *words, struct span line) {
	b->len = 0;
	for (const char *open, *end; (open = strchr(words, '{')) != NULL; words = end + 1) {
		end = strchr(open, '}');
		_cleanup_free_ char *key = str_printf("%.*s", (int)(end - open - 1), open + 1);
		struct span value = key ? span_member(line, key) : SPAN_NONE;
		_cleanup_free_ char *text = value_text(value);
		if (!text) return false;
		buf_put(b, words, (size_t)(open - words));
		bool worded = strcmp(key, "what") == 0; /* the names of changes are words with underscores */
		for (char *p = text; worded && *p; p++) *p = *p == '_' ? ' ' : *p;
		if (span_is_object(value) || strcmp(key, "name") == 0)
			put_name(b, text);
		else
			buf_puts(b, text);
	}
	return buf_puts(b, words);
}

/* --- Who answered a request --------------------------------------------------------------------------------------- */

static const char *decision_words(struct span decision) {
	static const char *const words[][2] = {
		{"allow", "allowed"},
		{"deny", "denied"},
		{"accept", "accepted"},
		{"decline", "declined"},
		{"cancel", "cancelled"},
		{"cancelled", "withdrawn"},
		{"timeout", "not answered in time"},
		{"child_exited", "dropped: the agent has ended"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (span_equals(decision, words[i][0])) return words[i][1];
	return NULL;
}

static bool put_settled(struct buf *b, struct span notice) {
	struct span decision = span_member(notice, "decision"), permissions = span_member(notice, "permissions"), one;
	struct span by = span_member(notice, "by");
	_cleanup_free_ char *name = text_dup(span_member(by, "name"), NULL);
	_cleanup_free_ char *program = text_dup(span_member(by, "program"), NULL);
	_cleanup_free_ char *tool = text_dup(span_member(notice, "tool_name"), NULL);
	_cleanup_free_ char *raw = text_dup(decision, NULL), *reason = text_dup(span_member(notice, "reason"), NULL);
	const char *words = decision_words(decision), *joint = ", and remembered: ";
	b->len = 0;
	buf_printf(b, "%s: %s", tool ? tool : "the request", words ? words : raw ? raw : "answered");
	if (name && strcmp(name, "plenumd") != 0) { /* else no client decided */
		buf_puts(b, " by ");
		put_name(b, name);
		if (program && strcmp(name, program) != 0) buf_printf(b, " (%s)", program);
	}
	for (size_t at = 0; span_is_array(permissions) && span_next(permissions, &at, &one); joint = "; ") {
		_cleanup_free_ char *text = text_dup(one, NULL);
		buf_printf(b, "%s%s", joint, text ? text : "?");
	}
	return buf_printf(b, "%s%s", reason ? ": " : "", reason ? reason : "");
}

/* --- Sentences ---------------------------------------------------------------------------------------------------- */

bool sentence_put(struct buf *b, const char *event, struct span notice) {
	if (strcmp(event, PLENUM_EV_SETTLED) == 0) return put_settled(b, notice);
	for (size_t i = 0; i < ARRAY_SIZE(sentences); i++) {
		const char *key = sentences[i].key;
		if (strcmp(sentences[i].event, event) != 0) continue;
		_cleanup_free_ char *text = key ? text_value(span_member(notice, key), VALUE_COLUMNS) : NULL;
		if (key && (!text || strcmp(text, sentences[i].value) != 0)) continue;
		if (put_words(b, sentences[i].words, notice)) return true;
	}
	return false;
}

void sentence_put_members(struct buf *b, struct span notice) {
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		_cleanup_free_ char *text = value_text(span_member(notice, members[i]));
		if (!text) continue;
		buf_printf(b, " %s=", members[i]);
		text_put_value(b, text);
	}
}
