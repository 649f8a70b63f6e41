/* SPDX-License-Identifier: MIT */
#include "wire/survive.h"

#include "base/macros.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool PRINTF_LIKE(3, 4) refuse(char *error, size_t size, const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(error, size, fmt, ap);
	va_end(ap);
	return false;
}

/* A name that is compared byte by byte here and by the child after unescaping must have no escapes. */
static bool is_plain(struct span s) {
	return span_is_string(s) && !memchr(s.p, '\\', s.n);
}

/* Words that decide where a line goes: there must be one reading of them. */
static bool check_word(struct span s, const char *where, const char *example, char *error, size_t size) {
	if (!s.p) return refuse(error, size, "%s is missing: write %s", where, example);
	if (!span_is_string(s)) return refuse(error, size, "%s is not a string: write %s", where, example);
	if (!is_plain(s)) return refuse(error, size, "%s is spelled with escapes: write its letters as they are", where);
	return true;
}

#define REQUEST_EXAMPLE "{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{\"subtype\":\"...\"}}"
#define ANSWER_EXAMPLE                                                                                                 \
	"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"...\",\"response\":{...}}}"
#define CANCEL_EXAMPLE "{\"type\":\"control_cancel_request\",\"request_id\":\"...\"}"

/* The id of a client's own request; never seen by the child, so that a number is as good as a string. */
static bool check_id(struct span id, const char *where, const char *example, char *error, size_t size) {
	int64_t number;
	if (!id.p) return refuse(error, size, "%s is missing: write %s", where, example);
	if (!span_is_string(id) && !span_int(id, &number))
		return refuse(error, size, "%s is not a string (or an integer): write %s", where, example);
	return true;
}

/* The id under which the client was asked: always a string. */
static bool check_answered(struct span id, char *error, size_t size) {
	if (!id.p) return refuse(error, size, "response.request_id is missing: write " ANSWER_EXAMPLE);
	if (!span_is_string(id)) return refuse(error, size, "response.request_id is not a string: write " ANSWER_EXAMPLE);
	return true;
}

/* --- Content blocks ----------------------------------------------------------------------------------------------- */

/* Where a block stands: message.content[INDEX], or, within a tool_result, message.content[OUTER].content[INDEX]. */
struct place {
	size_t index, outer;
	bool nested;
	char *error;
	size_t size;
};

static bool PRINTF_LIKE(2, 3) refuse_block(const struct place *at, const char *fmt, ...) {
	char what[300], where[64];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (at->nested)
		snprintf(where, sizeof where, "message.content[%zu].content[%zu]", at->outer, at->index);
	else
		snprintf(where, sizeof where, "message.content[%zu]", at->index);
	return refuse(at->error, at->size, "%s %s", where, what);
}

/* No key with escapes: the agent would find under its plain name what is looked for here in vain. */
static bool has_plain_keys(struct span obj) {
	struct span key, value;
	size_t at = 0;
	while (span_next_member(obj, &at, &key, &value))
		if (!is_plain(key)) return false;
	return true;
}

/* Members whose type the agent takes for granted: a wrong one ends it, or every later turn fails. */
static const struct rule {
	const char *block, *member;
	bool required;
} block_rules[] = {
	{"text", "text", true},
	{"document", "title", false},
	{"document", "context", false},
};

static const char *const source_strings[] = {"type", "data", "media_type", "url", "file_id"};

static bool check_source(struct span source, struct span type, const struct place *at) {
	struct span name = span_content(type);
	if (!span_is_object(source))
		return refuse_block(at,
							"has no `source` object: write {\"type\":\"%.*s\",\"source\":{\"type\":\"base64\",...}}",
							(int)name.n, name.p);
	if (!has_plain_keys(source)) return refuse_block(at, "has a key in `source` that is spelled with escapes");
	for (size_t i = 0; i < ARRAY_SIZE(source_strings); i++) {
		struct span s = span_member(source, source_strings[i]);
		if (s.p && !span_is_string(s)) return refuse_block(at, "has a source.%s that is no string", source_strings[i]);
	}
	struct span kind = span_member(source, "type");
	if (!kind.p || !is_plain(kind))
		return refuse_block(at, "has no plain source.type: write \"base64\", \"text\" or \"url\"");
	bool inlined = span_equals(kind, "base64") || span_equals(kind, "text");
	if (inlined && !span_member(source, "data").p)
		return refuse_block(at, "has no source.data: write its bytes as a string");
	return true;
}

static bool check_block(struct span block, struct span *type, const struct place *at) {
	if (!span_is_object(block)) return refuse_block(at, "is no object: write {\"type\":\"text\",\"text\":\"...\"}");
	if (!has_plain_keys(block))
		return refuse_block(at, "has a key that is spelled with escapes: write its letters as they are");
	*type = span_member(block, "type");
	if (!type->p || !is_plain(*type))
		return refuse_block(at, "has no plain string `type`: write {\"type\":\"text\",\"text\":\"...\"}");
	for (size_t i = 0; i < ARRAY_SIZE(block_rules); i++) {
		const struct rule *r = &block_rules[i];
		if (!span_equals(*type, r->block)) continue;
		struct span s = span_member(block, r->member);
		if (s.p ? !span_is_string(s) : r->required)
			return refuse_block(at, "is a %s block whose `%s` is %s", r->block, r->member,
								s.p ? "not a string" : "missing");
	}
	if (span_equals(*type, "image") || span_equals(*type, "document"))
		return check_source(span_member(block, "source"), *type, at);
	return true;
}

/* What a tool_result holds. Within it there is no further one. */
static bool check_result(struct span content, const struct place *outer) {
	struct place at = {.outer = outer->index, .nested = true, .error = outer->error, .size = outer->size};
	struct span block, type;
	size_t walk = 0;
	if (!content.p || span_is_string(content)) return true;
	if (!span_is_array(content))
		return refuse_block(outer, "is a tool_result whose `content` is neither a string nor an array");
	for (; span_next(content, &walk, &block); at.index++) {
		if (!check_block(block, &type, &at)) return false;
		if (span_equals(type, "tool_result")) return refuse_block(&at, "is a tool_result within another one");
	}
	return true;
}

static bool check_content(struct span content, char *error, size_t size) {
	struct place at = {.error = error, .size = size};
	struct span block, type;
	size_t walk = 0;
	for (; span_next(content, &walk, &block); at.index++) {
		if (!check_block(block, &type, &at)) return false;
		if (span_equals(type, "tool_result") && !check_result(span_member(block, "content"), &at)) return false;
	}
	return true;
}

/* --- Messages ----------------------------------------------------------------------------------------------------- */

#define PROMPT_EXAMPLE "{\"role\":\"user\",\"content\":\"...\"}"

static bool check_user(const struct message *m, char *error, size_t size) {
	struct span message = m->env.message;
	if (!span_is_object(message))
		return refuse(error, size, "`message` of a user line is not an object: write " PROMPT_EXAMPLE);
	struct span role = span_member(message, "role"), content = span_member(message, "content");
	if (!span_equals(role, "user"))
		return refuse(error, size, "message.role of a user line is %s: write \"role\":\"user\"",
					  role.p ? "not \"user\"" : "missing");
	if (!content.p)
		return refuse(error, size, "message.content is missing: write a string, or an array of content blocks");
	if (!span_is_string(content) && !span_is_array(content))
		return refuse(error, size, "message.content is neither a string nor an array: the agent would never answer it");
	return check_content(content, error, size);
}

/* A client may put lines of the assistant into the conversation; a crooked one fails every later turn. */
static bool check_assistant(const struct message *m, char *error, size_t size) {
	struct span content = span_member(m->env.message, "content");
	if (!span_is_object(m->env.message) || !span_is_array(content))
		return refuse(error, size, "an assistant line needs \"message\":{\"role\":\"assistant\",\"content\":[...]}");
	return check_content(content, error, size);
}

enum json_type { IS_STRING = 1, IS_NULL = 2, IS_OBJECT = 4, IS_OTHER = 8 };

static enum json_type type_of(struct span s) {
	if (span_is_string(s)) return IS_STRING;
	if (span_is_object(s)) return IS_OBJECT;
	return s.n == 4 && memcmp(s.p, "null", 4) == 0 ? IS_NULL : IS_OTHER;
}

/* Requests that 2.1.197 never comes back from, with no answer and no further turn, if a member is not what it should
 * be. (2.1.332 answers them with an error.) */
static const struct request_rule {
	const char *subtype, *member;
	unsigned types;
	bool required;
	const char *say;
} request_rules[] = {
	{"set_model", "model", IS_STRING | IS_NULL, false, "a string, or null for the default"},
	{"mcp_set_servers", "servers", IS_OBJECT, true, "an object {\"NAME\":{...},...}"},
	{"mcp_call", "tool", IS_STRING, true, "a string such as \"mcp__server__tool\""},
	{"apply_flag_settings", "settings", IS_OBJECT, true, "an object"},
	{"rewind_conversation", "target_message_uuid", IS_STRING, true, "a string"},
};

static bool check_members(struct span request, struct span subtype, char *error, size_t size) {
	for (size_t i = 0; i < ARRAY_SIZE(request_rules); i++) {
		const struct request_rule *r = &request_rules[i];
		if (!span_equals(subtype, r->subtype)) continue;
		struct span s = span_member(request, r->member);
		if (s.p ? (r->types & type_of(s)) != 0 : !r->required) continue;
		return refuse(error, size, "request.%s of %s must be %s", r->member, r->subtype, r->say);
	}
	return true;
}

/* 2.1.332 ends at a url that is no string; the others of its members it looks at with more care. */
static bool check_servers(struct span servers, char *error, size_t size) {
	struct span name, config;
	size_t at = 0;
	while (span_next_member(servers, &at, &name, &config)) {
		int n = name.n > 60 ? 60 : (int)name.n;
		if (!span_is_object(config))
			return refuse(error, size,
						  "the MCP server %.*s has no object as its configuration: write {\"command\":\"...\"}", n,
						  name.p);
		if (!has_plain_keys(config))
			return refuse(error, size, "the MCP server %.*s has a key that is spelled with escapes", n, name.p);
		struct span url = span_member(config, "url");
		if (url.p && !span_is_string(url))
			return refuse(error, size, "the MCP server %.*s has a url that is no string: write \"url\":\"http://...\"",
						  n, name.p);
	}
	return true;
}

/* Names that every JavaScript object has: 2.1.332 finds them in its table of events, and ends. */
static const char *const no_events[] = {
	"constructor",          "toString",  "toLocaleString",   "valueOf",          "hasOwnProperty",   "isPrototypeOf",
	"propertyIsEnumerable", "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
};

static bool check_hooks(struct span hooks, char *error, size_t size) {
	struct span event, matchers;
	size_t at = 0;
	while (span_next_member(hooks, &at, &event, &matchers)) {
		bool known = is_plain(event);
		for (size_t i = 0; known && i < ARRAY_SIZE(no_events); i++) known = !span_equals(event, no_events[i]);
		if (!known)
			return refuse(error, size,
						  "request.hooks has %.*s, which is no hook event: write one such as \"PreToolUse\"",
						  event.n > 60 ? 60 : (int)event.n, event.p);
	}
	return true;
}

static bool check_body(struct span request, struct span subtype, char *error, size_t size) {
	if (!check_members(request, subtype, error, size)) return false;
	if (span_equals(subtype, "mcp_set_servers")) return check_servers(span_member(request, "servers"), error, size);
	if (!span_equals(subtype, "initialize")) return true;
	return check_hooks(span_member(request, "hooks"), error, size) &&
		   check_servers(span_member(request, "mcpServers"), error, size);
}

static bool check_request(const struct message *m, char *error, size_t size) {
	const struct envelope *e = &m->env;
	if (!e->request.p && e->subtype.p)
		return refuse(error, size, "`request` is missing: the subtype stands inside it, as in " REQUEST_EXAMPLE);
	if (!e->request.p) return refuse(error, size, "`request` is missing: write " REQUEST_EXAMPLE);
	if (!span_is_object(e->request)) return refuse(error, size, "`request` is not an object: write " REQUEST_EXAMPLE);
	return check_id(e->request_id, "request_id", REQUEST_EXAMPLE, error, size) &&
		   check_word(e->inner_subtype, "request.subtype", REQUEST_EXAMPLE, error, size) &&
		   check_body(e->request, e->inner_subtype, error, size);
}

static bool check_answer(const struct message *m, char *error, size_t size) {
	const struct envelope *e = &m->env;
	if (e->request.p) return refuse(error, size, "a control_response has no `request`: write " ANSWER_EXAMPLE);
	if (!span_is_object(e->response))
		return refuse(error, size, "`response` is %s: write " ANSWER_EXAMPLE,
					  e->response.p ? "not an object" : "missing");
	if (!e->inner_request_id.p && e->request_id.p)
		return refuse(error, size, "request_id stands beside `response`, it belongs inside: write " ANSWER_EXAMPLE);
	return check_answered(e->inner_request_id, error, size);
}

/* Without the metadata that only the agent knows this one stops it for good. */
static bool check_system(const struct message *m, char *error, size_t size) {
	if (m->env.subtype.p && span_is_string(m->env.subtype) && !is_plain(m->env.subtype))
		return refuse(error, size, "`subtype` is spelled with escapes: write its letters as they are");
	if (span_equals(m->env.subtype, "compact_boundary"))
		return refuse(
			error, size,
			"compact_boundary is the agent's own line: to compact the conversation, send the prompt \"/compact\"");
	return true;
}

/* Of the lines that routing passes on without reading them. */
static bool check_other(const struct message *m, struct span line, char *error, size_t size) {
	struct span type = m->env.type;
	if (span_equals(type, "assistant")) return check_assistant(m, error, size);
	if (span_equals(type, "system")) return check_system(m, error, size);
	if (span_equals(type, "update_environment_variables") && !span_is_object(span_member(line, "variables")))
		return refuse(error, size, "`variables` is missing or no object: write \"variables\":{\"NAME\":\"value\"}");
	return true;
}

bool survive_check(const struct message *m, struct span line, char *error, size_t size) {
	if (!m->env.type.p && m->env.subtype.p)
		return refuse(error, size, "`type` is missing: to send a request write " REQUEST_EXAMPLE);
	if (!check_word(m->env.type, "`type`", "\"type\":\"user\" or another message type", error, size)) return false;
	switch (m->kind) {
	case MESSAGE_USER:
		return check_user(m, error, size);
	case MESSAGE_REQUEST:
		return check_request(m, error, size);
	case MESSAGE_ANSWER:
		return check_answer(m, error, size);
	case MESSAGE_CANCEL:
		return check_id(m->env.request_id, "request_id", CANCEL_EXAMPLE, error, size);
	case MESSAGE_OTHER:
		return check_other(m, line, error, size);
	}
	return true;
}
