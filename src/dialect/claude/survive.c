/* SPDX-License-Identifier: MIT */
#include "dialect/claude/survive.h"

#include "base/macros.h"
#include "wire/limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A name that is compared byte by byte here, and by the child after unescaping, must have no escapes. */
static bool is_plain(struct span s) {
	return s.p && span_is_string(s) && !memchr(s.p, '\\', s.n);
}

/* Words that decide the routing of a line must have only one reading. */
static bool check_word(struct span s, const char *where, const char *example, struct error *error) {
	if (!s.p) return error_set(error, "%s is missing: write %s", where, example);
	if (!span_is_string(s)) return error_set(error, "%s is not a string: write %s", where, example);
	if (!is_plain(s)) return error_set(error, "%s is spelled with escapes: write its letters as they are", where);
	return true;
}

#define REQUEST_EXAMPLE "{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{\"subtype\":\"...\"}}"
#define ANSWER_EXAMPLE                                                                                                 \
	"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"...\",\"response\":{...}}}"
#define CANCEL_EXAMPLE "{\"type\":\"control_cancel_request\",\"request_id\":\"...\"}"

/* The id of a client's own request; the child never sees it, so a number is allowed, too. */
static bool check_id(struct span id, const char *example, struct error *error) {
	int64_t number;
	if (!id.p) return error_set(error, "request_id is missing: write %s", example);
	if (!span_is_string(id) && !span_int(id, &number))
		return error_set(error, "request_id is not a string (or an integer): write %s", example);
	return true;
}

/* --- Members ------------------------------------------------------------------------------------------------------ */

#define FOUND 8
#define NAME(text)                                                                                                     \
	{ text, sizeof(text) - 1 }

/* Members of an object by their names, found in one pass. */
struct members {
	struct span value[FOUND];
	bool disguised; /* a key has escapes: the child may find a member that is missing here */
	bool too_many;
};

static struct members find_members(struct span obj, const struct span *names, size_t n) {
	struct members found = {0};
	struct span key, value;
	size_t at = 0, count = 0;
	while (!found.too_many && span_next_member(obj, &at, &key, &value)) {
		found.too_many = ++count > LIMITS_MEMBERS;
		found.disguised |= !is_plain(key);
		for (size_t i = 0; i < n; i++)
			if (key.n == names[i].n + 2 && memcmp(key.p + 1, names[i].p, names[i].n) == 0) found.value[i] = value;
	}
	return found;
}

/* --- Content blocks ----------------------------------------------------------------------------------------------- */

/* The place of a block: message.content[INDEX], or, within a tool_result, message.content[OUTER].content[INDEX]. */
struct place {
	struct survive *walk;
	struct error *error;
};

static bool PRINTF_LIKE(2, 3) refuse_block(const struct place *at, const char *fmt, ...) {
	char what[300], where[64];
	const struct survive_list *lists = at->walk->lists;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (at->walk->n == 2)
		snprintf(where, sizeof where, "message.content[%zu].content[%zu]", lists[0].index, lists[1].index);
	else
		snprintf(where, sizeof where, "message.content[%zu]", lists[0].index);
	return error_set(at->error, "%s %s", where, what);
}

static bool refuse_many(const struct place *at, const char *where) {
	at->walk->too_many = true;
	return refuse_block(at, "has more than %zu members%s", LIMITS_MEMBERS, where);
}

enum source_member { SOURCE_TYPE, SOURCE_DATA, SOURCE_MEDIA_TYPE, SOURCE_URL, SOURCE_FILE_ID, SOURCE_MEMBERS };

static const struct span source_names[] = {
	[SOURCE_TYPE] = NAME("type"), [SOURCE_DATA] = NAME("data"),       [SOURCE_MEDIA_TYPE] = NAME("media_type"),
	[SOURCE_URL] = NAME("url"),   [SOURCE_FILE_ID] = NAME("file_id"),
};

static bool check_source(struct span source, struct span type, const struct place *at) {
	struct span name = span_content(type);
	if (!span_is_object(source))
		return refuse_block(at,
							"has no `source` object: write {\"type\":\"%.*s\",\"source\":{\"type\":\"base64\",...}}",
							(int)name.n, name.p);
	struct members m = find_members(source, source_names, SOURCE_MEMBERS);
	if (m.too_many) return refuse_many(at, " in `source`");
	if (m.disguised) return refuse_block(at, "has a key in `source` that is spelled with escapes");
	for (size_t i = 0; i < SOURCE_MEMBERS; i++)
		if (m.value[i].p && !span_is_string(m.value[i]))
			return refuse_block(at, "has a source.%s that is no string", source_names[i].p);
	struct span kind = m.value[SOURCE_TYPE];
	if (!kind.p || !is_plain(kind))
		return refuse_block(at, "has no plain source.type: write \"base64\", \"text\" or \"url\"");
	bool inlined = span_equals(kind, "base64") || span_equals(kind, "text");
	if (inlined && !m.value[SOURCE_DATA].p) return refuse_block(at, "has no source.data: write its bytes as a string");
	return true;
}

enum block_member { BLOCK_TYPE, BLOCK_TEXT, BLOCK_TITLE, BLOCK_CONTEXT, BLOCK_SOURCE, BLOCK_CONTENT, BLOCK_MEMBERS };

static const struct span block_names[] = {
	[BLOCK_TYPE] = NAME("type"),       [BLOCK_TEXT] = NAME("text"),     [BLOCK_TITLE] = NAME("title"),
	[BLOCK_CONTEXT] = NAME("context"), [BLOCK_SOURCE] = NAME("source"), [BLOCK_CONTENT] = NAME("content"),
};

/* Members of a type that the child does not check: a wrong one ends it, or every later turn fails. */
static const struct rule {
	const char *block;
	enum block_member member;
	bool required;
} block_rules[] = {
	{"text", BLOCK_TEXT, true},
	{"document", BLOCK_TITLE, false},
	{"document", BLOCK_CONTEXT, false},
};

/* The content of a tool_result is walked next. It has no nested tool_result. */
static bool enter_result(struct span content, const struct place *at) {
	struct survive *w = at->walk;
	if (w->n == 2) return refuse_block(at, "is a tool_result within another one");
	if (!content.p || span_is_string(content)) return true;
	if (!span_is_array(content))
		return refuse_block(at, "is a tool_result whose `content` is neither a string nor an array");
	w->lists[w->n++] = (struct survive_list){.list = content, .kind = SURVIVE_BLOCKS};
	return true;
}

static bool check_block(struct span block, const struct place *at) {
	if (!span_is_object(block)) return refuse_block(at, "is no object: write {\"type\":\"text\",\"text\":\"...\"}");
	struct members m = find_members(block, block_names, BLOCK_MEMBERS);
	struct span type = m.value[BLOCK_TYPE];
	if (at->walk->n == 1 && at->walk->lists[0].index == 0) at->walk->first_text = m.value[BLOCK_TEXT];
	if (m.too_many) return refuse_many(at, "");
	if (m.disguised) return refuse_block(at, "has a key that is spelled with escapes: write its letters as they are");
	if (!type.p || !is_plain(type))
		return refuse_block(at, "has no plain string `type`: write {\"type\":\"text\",\"text\":\"...\"}");
	for (size_t i = 0; i < ARRAY_SIZE(block_rules); i++) {
		const struct rule *r = &block_rules[i];
		if (!span_equals(type, r->block)) continue;
		struct span s = m.value[r->member];
		if (s.p ? !span_is_string(s) : r->required)
			return refuse_block(at, "is a %s block whose `%s` is %s", r->block, block_names[r->member].p,
								s.p ? "not a string" : "missing");
	}
	if (span_equals(type, "image") || span_equals(type, "document"))
		return check_source(m.value[BLOCK_SOURCE], type, at);
	return !span_equals(type, "tool_result") || enter_result(m.value[BLOCK_CONTENT], at);
}

/* --- Messages ----------------------------------------------------------------------------------------------------- */

/* Entries of the new list are checked before the rest of the earlier lists. */
static void walk(struct survive *w, enum survive_kind kind, struct span list) {
	w->lists[w->n++] = (struct survive_list){.list = list, .kind = kind};
}

#define PROMPT_EXAMPLE "{\"role\":\"user\",\"content\":\"...\"}"

static bool check_user(struct survive *w, const struct message *m, struct error *error) {
	struct span role = m->role, content = m->content;
	if (!span_is_object(m->env.message))
		return error_set(error, "`message` of a user line is not an object: write " PROMPT_EXAMPLE);
	if (!span_equals(role, "user"))
		return error_set(error, "message.role of a user line is %s: write \"role\":\"user\"",
						 role.p ? "not \"user\"" : "missing");
	if (!content.p)
		return error_set(error, "message.content is missing: write a string, or an array of content blocks");
	if (!span_is_string(content) && !span_is_array(content))
		return error_set(error, "message.content is neither a string nor an array: the agent would never answer it");
	walk(w, SURVIVE_BLOCKS, content);
	return true;
}

enum { IS_STRING = 1, IS_NULL = 2, IS_OBJECT = 4, IS_OTHER = 8 };

/* With a wrong member in these requests 2.1.197 hangs: no answer and no further turn. (2.1.332 answers with an
 * error.) */
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

static bool check_members(struct span request, struct span subtype, struct error *error) {
	for (size_t i = 0; i < ARRAY_SIZE(request_rules); i++) {
		const struct request_rule *r = &request_rules[i];
		if (!span_equals(subtype, r->subtype)) continue;
		struct span s = span_member(request, r->member);
		bool null = s.n == 4 && memcmp(s.p, "null", 4) == 0;
		unsigned type = span_is_string(s) ? IS_STRING : span_is_object(s) ? IS_OBJECT : null ? IS_NULL : IS_OTHER;
		if (s.p ? (r->types & type) != 0 : !r->required) continue;
		return error_set(error, "request.%s of %s must be %s", r->member, r->subtype, r->say);
	}
	return true;
}

/* 2.1.332 ends at a url that is not a string; it checks the other members more carefully. */
static bool check_server(struct survive *w, struct span name, struct span config, struct error *error) {
	static const struct span names[] = {NAME("url")};
	int n = name.n > 60 ? 60 : (int)name.n;
	if (!span_is_object(config))
		return error_set(error, "the MCP server %.*s has no object as its configuration: write {\"command\":\"...\"}",
						 n, name.p);
	struct members m = find_members(config, names, ARRAY_SIZE(names));
	w->too_many = m.too_many;
	if (m.too_many) return error_set(error, "the MCP server %.*s has more than %zu members", n, name.p, LIMITS_MEMBERS);
	if (m.disguised) return error_set(error, "the MCP server %.*s has a key that is spelled with escapes", n, name.p);
	if (!m.value[0].p || span_is_string(m.value[0])) return true;
	return error_set(error, "the MCP server %.*s has a url that is no string: write \"url\":\"http://...\"", n, name.p);
}

/* Names that every JavaScript object has: 2.1.332 finds them in its table of events, and ends. */
static const char *const no_events[] = {
	"constructor",          "toString",  "toLocaleString",   "valueOf",          "hasOwnProperty",   "isPrototypeOf",
	"propertyIsEnumerable", "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
};

static bool check_event(struct span event, struct error *error) {
	bool known = is_plain(event);
	for (size_t i = 0; known && i < ARRAY_SIZE(no_events); i++) known = !span_equals(event, no_events[i]);
	return known || error_set(error, "request.hooks has %.*s, which is no hook event: write one such as \"PreToolUse\"",
							  event.n > 60 ? 60 : (int)event.n, event.p);
}

static bool check_request(struct survive *w, const struct message *m, struct error *error) {
	const struct envelope *e = &m->env;
	if (!e->request.p && e->subtype.p)
		return error_set(error, "`request` is missing: the subtype stands inside it, as in " REQUEST_EXAMPLE);
	if (!e->request.p) return error_set(error, "`request` is missing: write " REQUEST_EXAMPLE);
	if (!span_is_object(e->request)) return error_set(error, "`request` is not an object: write " REQUEST_EXAMPLE);
	struct span request = e->request, subtype = e->inner_subtype;
	if (!check_id(e->request_id, REQUEST_EXAMPLE, error) ||
		!check_word(subtype, "request.subtype", REQUEST_EXAMPLE, error) || !check_members(request, subtype, error))
		return false;
	if (span_equals(subtype, "mcp_set_servers")) walk(w, SURVIVE_SERVERS, span_member(request, "servers"));
	if (!span_equals(subtype, "initialize")) return true;
	walk(w, SURVIVE_SERVERS, span_member(request, "mcpServers"));
	walk(w, SURVIVE_EVENTS, span_member(request, "hooks"));
	return true;
}

static bool check_answer(const struct message *m, struct error *error) {
	const struct envelope *e = &m->env;
	if (e->request.p) return error_set(error, "a control_response has no `request`: write " ANSWER_EXAMPLE);
	if (!span_is_object(e->response))
		return error_set(error, "`response` is %s: write " ANSWER_EXAMPLE, e->response.p ? "not an object" : "missing");
	if (!e->inner_request_id.p && e->request_id.p)
		return error_set(error, "request_id stands beside `response`, it belongs inside: write " ANSWER_EXAMPLE);
	if (!e->inner_request_id.p) return error_set(error, "response.request_id is missing: write " ANSWER_EXAMPLE);
	return span_is_string(e->inner_request_id) ||
		   error_set(error, "response.request_id is not a string: write " ANSWER_EXAMPLE);
}

/* Without the metadata, known only to the child, this line stops it permanently. */
static bool check_system(const struct message *m, struct error *error) {
	if (m->env.subtype.p && span_is_string(m->env.subtype) && !is_plain(m->env.subtype))
		return error_set(error, "`subtype` is spelled with escapes: write its letters as they are");
	if (span_equals(m->env.subtype, "compact_boundary"))
		return error_set(
			error,
			"compact_boundary is the agent's own line: to compact the conversation, send the prompt \"/compact\"");
	return true;
}

/* For lines that routing passes on without reading them. */
static bool check_other(struct survive *w, const struct message *m, struct span line, struct error *error) {
	struct span type = m->env.type;
	if (span_equals(type, "system")) return check_system(m, error);
	if (span_equals(type, "assistant")) { /* a malformed one in the conversation fails every later turn */
		if (!span_is_object(m->env.message) || !span_is_array(m->content))
			return error_set(error, "an assistant line needs \"message\":{\"role\":\"assistant\",\"content\":[...]}");
		walk(w, SURVIVE_BLOCKS, m->content);
	}
	if (span_equals(type, "update_environment_variables") && !span_is_object(span_member(line, "variables")))
		return error_set(error, "`variables` is missing or no object: write \"variables\":{\"NAME\":\"value\"}");
	return true;
}

bool survive_begin(struct survive *w, const struct message *m, struct span line, struct error *error) {
	*w = (struct survive){0};
	if (!m->env.type.p && m->env.subtype.p)
		return error_set(error, "`type` is missing: to send a request write " REQUEST_EXAMPLE);
	if (!check_word(m->env.type, "`type`", "\"type\":\"user\" or another message type", error)) return false;
	switch (m->kind) {
	case MESSAGE_USER:
		return check_user(w, m, error);
	case MESSAGE_REQUEST:
		return check_request(w, m, error);
	case MESSAGE_ANSWER:
		return check_answer(m, error);
	case MESSAGE_CANCEL:
		return check_id(m->env.request_id, CANCEL_EXAMPLE, error);
	case MESSAGE_OTHER:
		return check_other(w, m, line, error);
	}
	return true;
}

/* --- The walk ----------------------------------------------------------------------------------------------------- */

static bool check_entry(struct survive *w, const struct survive_list *l, struct span key, struct span value,
						struct error *error) {
	switch (l->kind) {
	case SURVIVE_SERVERS:
		return check_server(w, key, value, error);
	case SURVIVE_EVENTS:
		return check_event(key, error);
	case SURVIVE_BLOCKS:
		break;
	}
	return check_block(value, &(struct place){w, error});
}

bool survive_step(struct survive *w, size_t bytes, struct error *error) {
	for (size_t done = 0; w->n && done < bytes;) {
		struct survive_list *l = &w->lists[w->n - 1];
		struct span key = SPAN_NONE, value;
		size_t from = l->at;
		bool found = l->kind == SURVIVE_BLOCKS ? span_next(l->list, &l->at, &value)
											   : span_next_member(l->list, &l->at, &key, &value);
		if (!found) {
			if (--w->n && l->kind == SURVIVE_BLOCKS) w->lists[0].index++;
			continue;
		}
		done += l->at - from;
		size_t depth = w->n;
		if (!check_entry(w, l, key, value, error)) return false;
		if (w->n == depth) l->index++; /* else once the walk is back from the nested list */
	}
	return true;
}
