/* SPDX-License-Identifier: MIT */
#include "dialect/claude/answers.h"

#include "base/macros.h"
#include "base/str.h"
#include "dialect/claude/claude.h"
#include "dialect/frame.h"
#include "wire/alike.h"

#include <stdio.h>
#include <string.h>

void answers_put_deny(struct buf *b, struct span request, const char *reason) {
	(void)request;
	buf_puts(b, "{\"behavior\":\"deny\",\"message\":");
	str_put_json(b, reason, strlen(reason));
	buf_puts(b, "}");
}

void answers_put_allow(struct buf *b, struct span request) {
	struct span input = span_member(request, "input");
	buf_puts(b, "{\"behavior\":\"allow\",\"updatedInput\":");
	buf_put(b, input.p ? input.p : "{}", input.p ? input.n : 2);
	buf_putc(b, '}');
}

void answers_put_cancel(struct buf *b, struct span request) {
	(void)request;
	buf_puts(b, "{\"action\":\"cancel\"}");
}

/* The CLI drops other members that it cannot use; it fails on these, even if null. */
static const char *check_tool(struct span body) {
	struct span behavior = span_member(body, "behavior"), old = span_member(body, "allow");
	struct span updated = span_member(body, "updatedInput"), use = span_member(body, "toolUseID");
	if (behavior.p && use.p && !span_is_string(use)) return "`toolUseID` must be a string";
	if (span_equals(behavior, "allow"))
		return updated.p && !span_is_object(updated) ? "`updatedInput` must be an object" : NULL;
	if (span_equals(behavior, "deny")) {
		struct span interrupt = span_member(body, "interrupt");
		if (!span_is_string(span_member(body, "message"))) return "a deny needs `message`, a string that says why";
		return interrupt.p && *interrupt.p != 't' && *interrupt.p != 'f' ? "`interrupt` must be true or false" : NULL;
	}
	if (behavior.p) return "`behavior` must be \"allow\" or \"deny\"";
	if (old.p && (*old.p == 't' || *old.p == 'f')) return NULL;
	return "write {\"behavior\":\"allow\"} or {\"behavior\":\"deny\",\"message\":\"why\"} as response.response";
}

/* Any other reply than JSON-RPC stalls the CLI's handshake and the session. */
static const char *check_mcp(struct span reply) {
	if (!span_is_object(reply)) return "response.response needs `mcp_response`, a JSON-RPC message";
	struct span result = span_member(reply, "result");
	if ((result.p && *result.p != 'n') || span_is_object(span_member(reply, "error"))) return NULL;
	return "`mcp_response` needs `result` or `error`";
}

static const char *check_action(struct span body, const char *member, const char *const *values, const char *error) {
	struct span value = span_member(body, member);
	for (; *values; values++)
		if (span_equals(value, *values)) return NULL;
	return error;
}

bool answers_are_empty(enum ask_kind kind, struct span request, struct span response) {
	struct span body = span_member(response, "response"), subtype = span_member(response, "subtype");
	if (span_equals(subtype, "error")) return !span_is_string(span_member(response, "error"));
	if (!span_equals(subtype, "success")) return false;
	if (kind == ASK_HOOK) return !body.p || *body.p == 'n';
	bool notification = kind == ASK_MCP && !span_member(span_member(request, "message"), "id").p;
	return notification && check_mcp(span_member(body, "mcp_response"));
}

void answers_put_empty(struct buf *b, struct span id, enum ask_kind kind, struct span request, struct span response) {
	struct buf body = BUF_INIT(4096);
	if (span_equals(span_member(response, "subtype"), "error")) {
		frame_put_error(b, id, "bad_answer", "the client gave no reason", "");
		return;
	}
	if (kind == ASK_MCP)
		claude_hooks.put_mcp_error(&body, span_member(request, "message"),
								   "the client's answer is no JSON-RPC message");
	else
		buf_puts(&body, claude_hooks.neutral);
	frame_put_built_success(b, id, &body);
}

const char *answers_check(enum ask_kind kind, struct span request, struct span response) {
	static const char *const actions[] = {"accept", "decline", "cancel", NULL};
	static const char *const behaviors[] = {"completed", "cancelled", NULL};
	struct span body = span_member(response, "response"), subtype = span_member(response, "subtype");
	(void)request;
	if (span_equals(subtype, "error"))
		return span_is_string(span_member(response, "error")) ? NULL
															  : "an error answer needs `error`, a string that says why";
	if (!span_equals(subtype, "success")) return "response.subtype must be \"success\" or \"error\"";
	if (kind == ASK_UNKNOWN) return NULL;
	if (!span_is_object(body)) return "response.response must be an object";
	if (kind == ASK_TOOL) return check_tool(body);
	if (kind == ASK_MCP) return check_mcp(span_member(body, "mcp_response"));
	if (kind == ASK_ELICITATION)
		return check_action(body, "action", actions, "`action` must be \"accept\", \"decline\" or \"cancel\"");
	if (kind == ASK_DIALOG)
		return check_action(body, "behavior", behaviors, "`behavior` must be \"completed\" or \"cancelled\"");
	return NULL;
}

static bool says(struct span value, const char *text) {
	_cleanup_free_ char *said = span_is_string(value) ? span_dup(value, NULL) : NULL;
	return said && strcmp(said, text) == 0;
}

/* The decision of a hook: in permissionDecision for PreToolUse, in `decision` for PermissionRequest. */
static const char *hook_decision(struct span body) {
	static const char *const words[] = {"allow", "deny", "ask", "defer"};
	struct span output = span_member_spelled(body, "hookSpecificOutput");
	struct span word = span_member_spelled(output, "permissionDecision");
	if (!word.p) word = span_member_spelled(span_member_spelled(output, "decision"), "behavior");
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (says(word, words[i])) return words[i];
	word = span_member_spelled(body, "decision");
	return says(word, "block") ? "deny" : says(word, "approve") ? "allow" : "answered";
}

const char *answers_decision(enum ask_kind kind, struct span request, struct span response) {
	(void)request;
	struct span body = span_member(response, "response");
	if (span_equals(span_member(response, "subtype"), "error")) return "error";
	if (kind == ASK_TOOL) {
		struct span behavior = span_member(body, "behavior"); /* the child ignores the old `allow` beside it */
		bool allows = behavior.p ? span_equals(behavior, "allow") : span_is_true(span_member(body, "allow"));
		return allows ? "allow" : "deny";
	}
	if (kind == ASK_ELICITATION) {
		struct span action = span_member(body, "action");
		return span_equals(action, "accept") ? "accept" : span_equals(action, "decline") ? "decline" : "cancel";
	}
	if (kind == ASK_DIALOG) return span_equals(span_member(body, "behavior"), "completed") ? "completed" : "cancelled";
	return kind == ASK_HOOK ? hook_decision(body) : "answered";
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

/* Append as much of the text as fits, cut between two characters. */
static void put_grant(struct changes *c, struct buf *text) {
	char *to = c->n_grants < DIALECT_GRANTS ? c->grants[c->n_grants] : NULL;
	c->n_grants++;
	if (to) {
		size_t n = MIN(text->len, (size_t)DIALECT_GRANT_MAX - 4);
		while (n < text->len && n && ((unsigned char)text->data[n] & 0xc0) == 0x80) n--;
		snprintf(to, DIALECT_GRANT_MAX, "%.*s%s", (int)n, text->data ? text->data : "?", n < text->len ? "..." : "");
	}
	buf_free(text);
}

static void put_content(struct buf *b, struct span value) {
	_cleanup_free_ char *text = span_dup(value, NULL);
	buf_puts(b, text ? text : "?");
}

static void put_word(struct buf *b, struct span object, const char *key) {
	struct span value = span_member_spelled(object, key);
	if (!value.p) return;
	buf_putc(b, ' ');
	put_content(b, value);
}

static void add_rule(struct changes *c, struct span update, const char *verb, struct span rule) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	struct span content = span_member_spelled(rule, "ruleContent");
	buf_puts(&b, verb);
	put_content(&b, span_member_spelled(rule, "toolName"));
	if (content.p) {
		buf_putc(&b, '(');
		put_content(&b, content);
		buf_putc(&b, ')');
	}
	put_word(&b, update, "behavior");
	put_word(&b, update, "destination");
	put_grant(c, &b);
}

static void add_one(struct changes *c, struct span update, const char *verb, struct span what) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	buf_puts(&b, verb);
	put_content(&b, what);
	put_word(&b, update, "destination");
	put_grant(c, &b);
}

static const struct {
	const char *type, *verb, *list; /* list: the member with the elements; NULL: a single `mode` */
} updates[] = {
	{"addRules", "", "rules"},
	{"replaceRules", "replace: ", "rules"},
	{"removeRules", "remove: ", "rules"},
	{"addDirectories", "directory ", "directories"},
	{"removeDirectories", "remove: directory ", "directories"},
	{"setMode", "mode ", NULL},
};

static void add_update(struct changes *c, struct span update) {
	struct span type = span_member_spelled(update, "type"), element;
	for (size_t i = 0; i < ARRAY_SIZE(updates); i++) {
		if (!says(type, updates[i].type)) continue;
		if (!updates[i].list) add_one(c, update, updates[i].verb, span_member_spelled(update, "mode"));
		struct span list = updates[i].list ? span_member_spelled(update, updates[i].list) : SPAN_NONE;
		for (size_t at = 0; span_next(list, &at, &element);) {
			if (span_is_object(element))
				add_rule(c, update, updates[i].verb, element);
			else
				add_one(c, update, updates[i].verb, element);
		}
		return;
	}
	add_one(c, update, "", type);
}

/* Return the object of an answer that allows a tool. */
static struct span allowing(enum ask_kind kind, struct span body) {
	if (kind == ASK_TOOL) return body;
	if (kind != ASK_HOOK) return SPAN_NONE;
	struct span output = span_member_spelled(body, "hookSpecificOutput");
	struct span decision = span_member_spelled(output, "decision");
	return span_is_object(decision) ? decision : output;
}

struct span answers_input_of(enum ask_kind kind, struct span request) {
	struct span input = span_member(request, "input");
	return kind == ASK_HOOK ? span_member(input, "tool_input") : input;
}

struct span answers_input(struct span response) {
	return span_member(span_member(response, "response"), "updatedInput");
}

struct span answers_reason(struct span response) {
	return span_member(span_member(response, "response"), "message");
}

/* The input is needed by the child, and old forms of the answer are replaced. */
bool answers_mend(enum ask_kind kind, struct span request, const struct envelope *answer, struct splice_edit *edit) {
	struct span body = answer->inner_response;
	struct span updated = span_member(body, "updatedInput"), old = span_member(body, "allow"), value = updated;
	if (kind != ASK_TOOL || !span_is_object(body)) return false;
	bool old_shape = !span_member(body, "behavior").p && old.p;
	if (!old_shape && (!span_equals(span_member(body, "behavior"), "allow") || span_is_object(updated))) return false;
	if (old_shape && !span_is_true(old)) {
		value = span_member(body, "message");
		if (!span_is_string(value)) value = span_of("\"denied\"");
		*edit = (struct splice_edit){
			body.p, body.n, {span_of("{\"behavior\":\"deny\",\"message\":"), value, span_of("}")}};
		return true;
	}
	if (!span_is_object(updated)) value = span_member(request, "input");
	if (!value.p) value = span_of("{}");
	*edit = (struct splice_edit){body.p + body.n - 1, 0, {SPAN_NONE, span_of(",\"updatedInput\":"), value}};
	if (!old_shape) return true;
	edit->at = body.p;
	edit->cut = body.n;
	edit->parts[0] = span_of("{\"behavior\":\"allow\"");
	edit->parts[3] = span_of("}");
	return true;
}

void answers_read_changes(enum ask_kind kind, struct span request, struct span response, struct changes *c) {
	struct span update;
	const char *said = answers_decision(kind, request, response);
	struct span from = allowing(kind, span_member(response, "response"));
	struct span updated = span_member_spelled(from, "updatedInput");
	struct span permissions = span_member_spelled(from, "updatedPermissions");
	*c = (struct changes){0};
	if (!from.p || strcmp(said, "deny") == 0 || strcmp(said, "error") == 0) return;
	c->input = span_is_object(updated) && !alike(updated, answers_input_of(kind, request));
	for (size_t at = 0; span_next(permissions, &at, &update);)
		if (span_is_object(update)) add_update(c, update);
}
