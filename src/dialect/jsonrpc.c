/* SPDX-License-Identifier: MIT */
#include "dialect/jsonrpc.h"
#include "dialect/jsonrpc_scan.h"

#include "base/macros.h"
#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/disown.h"
#include "wire/splice.h"

#include <string.h>

/* --- scan --------------------------------------------------------------------------------------------------------- */

#define STATIC_SPAN(text)                                                                                              \
	{ text, sizeof text - 1 }
#define VERB(name) STATIC_SPAN("\"" name "\"")

static const struct span verbs[] = {
	VERB(PLENUM_HELLO),  VERB(PLENUM_ATTACH),     VERB(PLENUM_DETACH),  VERB(PLENUM_REGISTER),  VERB(PLENUM_LIST),
	VERB(PLENUM_STATUS), VERB(PLENUM_PENDING),    VERB(PLENUM_STOP),    VERB(PLENUM_HIBERNATE), VERB(PLENUM_SUBSCRIBE),
	VERB(PLENUM_RELOAD), VERB(PLENUM_SHUTDOWN),   VERB(PLENUM_METRICS), VERB(PLENUM_UPGRADE),   VERB(PLENUM_LOGS),
	VERB(PLENUM_QUEUE),  VERB(PLENUM_CLEAR_LOST), VERB(PLENUM_RENAME),
};

static const struct span success = STATIC_SPAN("\"success\""), failure = STATIC_SPAN("\"error\""),
						 no_params = STATIC_SPAN("{}");

/* Return the name of the verb if this is the method of one, else the method. */
static struct span subtype_of(struct span method) {
	static const size_t own = sizeof JSONRPC_OWN_PREFIX, prefix = sizeof PLENUM_VERB_PREFIX; /* with the quote */
	if (method.n < own || memcmp(method.p, "\"" JSONRPC_OWN_PREFIX, own) != 0) return method;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (verbs[i].n - prefix == method.n - own && memcmp(verbs[i].p + prefix, method.p + own, method.n - own) == 0)
			return verbs[i];
	return method;
}

bool jsonrpc_is_own(struct span method) {
	return span_spells(method, JSONRPC_OWN_PREFIX, false);
}

void jsonrpc_settle(struct envelope *e, struct span line) {
	if (!e->type.p) {
		if (e->inner_response.p || e->is_error.p) {
			e->inner_request_id = e->request_id;
			e->inner_subtype = e->is_error.p ? failure : success;
			e->response = line;
		}
		e->request_id = e->request = e->session_id = SPAN_NONE;
		return;
	}
	e->inner_response = e->is_error = SPAN_NONE;
	if (e->request_id.p) e->inner_subtype = subtype_of(e->type);
	if (span_is_object(e->request)) return;
	bool of_verb = e->request_id.p && !e->request.p && !span_same(e->inner_subtype, e->type);
	e->request = of_verb ? no_params : SPAN_NONE;
}

bool jsonrpc_scan(const char *p, size_t n, struct envelope *e, const char *conversation) {
	return jsonrpc_scan_line(p, n, e, span_of(conversation), false);
}

bool jsonrpc_is_id(struct span id) {
	int64_t number;
	return span_is_string(id) || span_int(id, &number);
}

bool jsonrpc_succeeded(const struct envelope *e) {
	return !e->is_error.p;
}

struct span jsonrpc_reason(struct span response) {
	return span_member(span_member(response, "error"), "message");
}

bool jsonrpc_hides_kind(struct chunk line, const struct envelope *e) {
	static const char *const names[] = {"id", "method", "result", "error"};
	struct span all = splice_body(line), key, value;
	if (!e->escaped) return false;
	while (all.n && span_blank(*all.p)) all.p++, all.n--;
	for (size_t at = 0; span_next_member(all, &at, &key, &value);) {
		_cleanup_free_ char *text = memchr(key.p, '\\', key.n) ? span_dup(key, NULL) : NULL;
		for (size_t i = 0; text && i < ARRAY_SIZE(names); i++)
			if (strcmp(text, names[i]) == 0) return true;
	}
	return false;
}

/* --- names of the daemon in lines of the child -------------------------------------------------------------------- */

/* Rename the mark of the daemon's echoes, params.update._meta.plenum. inside: the names of the objects around it that
 * are left. */
static void rename_mark(struct disown *d, struct span object, const char *const *inside) {
	struct span key, value;
	for (size_t at = 0; span_next_member(object, &at, &key, &value);) {
		if (!span_spells(key, *inside ? *inside : JSONRPC_MARK, true)) continue;
		if (*inside)
			rename_mark(d, value, inside + 1);
		else
			disown_rename(d, key);
	}
}

static const char *const around_mark[] = {"update", "_meta", NULL};

bool jsonrpc_is_marked(struct span meta) {
	struct span key, value;
	for (size_t at = 0; span_next_member(meta, &at, &key, &value);)
		if (span_spells(key, JSONRPC_MARK, true)) return true;
	return false;
}

static struct chunk own_line(struct chunk line) {
	struct disown d = disown_begin(line);
	struct span key, value;
	for (size_t at = 0; span_next_member(disown_object(&d), &at, &key, &value);) {
		if (span_spells(key, "params", true)) rename_mark(&d, value, around_mark);
		if (jsonrpc_scan_is_reserved(key)) disown_rename(&d, key);
		if (jsonrpc_scan_is_method(key) && jsonrpc_is_own(value)) disown_rename(&d, value);
	}
	return disown_finish(&d);
}

/* The codes of the daemon are lower-case words; those of other programs (ENOENT, -1) are left alone. */
static bool may_be_code(struct span value) {
	struct span text = span_content(value);
	if (text.n && memchr(text.p, '\\', text.n)) return true;
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] != '_' && (text.p[i] < 'a' || text.p[i] > 'z')) return false;
	return text.n > 0;
}

static void rename_in_error(struct disown *d, struct span error) {
	struct span key, value, data;
	for (size_t i = 0; span_next_member(error, &i, &key, &data);) {
		if (!span_spells(key, "data", true)) continue;
		for (size_t k = 0; span_next_member(data, &k, &key, &value);)
			if (span_spells(key, "code", true) && may_be_code(value)) disown_rename(d, key);
	}
}

static struct chunk own_answer(struct chunk line, bool initialize) {
	(void)initialize;
	struct disown d = disown_begin(line);
	struct span key, value;
	for (size_t at = 0; span_next_member(disown_object(&d), &at, &key, &value);)
		if (span_spells(key, "error", true)) rename_in_error(&d, value);
	return disown_finish(&d);
}

/* --- lines of the daemon ------------------------------------------------------------------------------------------ */

void jsonrpc_put_method(struct buf *b, const char *name) {
	size_t prefix = sizeof PLENUM_VERB_PREFIX - 1;
	bool own = strncmp(name, PLENUM_VERB_PREFIX, prefix) == 0;
	if (own) buf_puts(b, JSONRPC_OWN_PREFIX);
	buf_puts(b, name + (own ? prefix : 0));
}

void jsonrpc_put_request(struct buf *b, const char *head, const char *id, const char *method, const char *params) {
	buf_printf(b, "%s\"id\":%s,\"method\":\"%s\",\"params\":", head, id, method);
	buf_puts(b, params);
	buf_puts(b, "}\n");
}

void jsonrpc_put_notification(struct buf *b, const char *head, const char *method, const char *params) {
	buf_printf(b, "%s\"method\":\"%s\",\"params\":", head, method);
	buf_puts(b, params);
	buf_puts(b, "}\n");
}

static void put_id(struct buf *b, const char *head, struct span id) {
	buf_printf(b, "%s\"id\":", head);
	buf_put(b, id.p ? id.p : "null", id.p ? id.n : 4);
}

void jsonrpc_put_success(struct buf *b, const char *head, struct span id, const char *result) {
	put_id(b, head, id);
	buf_puts(b, ",\"result\":");
	buf_puts(b, result ? result : "{}");
	buf_puts(b, "}\n");
}

int jsonrpc_number(const char *code) {
	static const struct {
		const char *code;
		int number;
	} numbers[] = {{PLENUM_E_BAD_LINE, -32700},       {PLENUM_E_INVALID_REQUEST, -32600},
				   {PLENUM_E_UNKNOWN_METHOD, -32601}, {PLENUM_E_BAD_REQUEST, -32602},
				   {PLENUM_E_INTERNAL, -32603},       {PLENUM_E_CANCELLED, -32800}};
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (strcmp(numbers[i].code, code) == 0) return numbers[i].number;
	return -32000;
}

void jsonrpc_put_error(struct buf *b, const char *head, struct span id, const char *code, const char *text,
					   const char *more) {
	put_id(b, head, id);
	buf_printf(b, ",\"error\":{\"code\":%d,\"message\":", jsonrpc_number(code));
	str_put_json(b, text, strlen(text));
	buf_printf(b, ",\"data\":{\"code\":\"%s\"", code);
	buf_puts(b, more);
	buf_puts(b, "}}}\n");
}

void jsonrpc_put_failure(struct buf *b, const char *head, struct span id, const char *code, const char *text) {
	bool unknown = strcmp(code, PLENUM_E_UNKNOWN_REQUEST) == 0;
	jsonrpc_put_error(b, head, id, unknown ? PLENUM_E_UNKNOWN_METHOD : code, text, "");
}

void jsonrpc_put_refusal(struct buf *b, const char *what, const struct envelope *e) {
	_cleanup_free_ char *text = span_dup(span_member(e->is_error, "message"), NULL);
	buf_printf(b, "the agent %s: ", what);
	buf_puts(b, text ? text : "it gave no reason");
}

/* The members after `subtype` become the params. */
static struct chunk frame_notice(const char *head, struct chunk notice) {
	static const char before[] = "\"method\":\"" JSONRPC_EVENT "\",\"params\":{";
	static const char frame[] = "{\"type\":\"system\",\"subtype\":\"" PLENUM_EVENT_SUBTYPE "\",";
	struct span body = splice_body(notice);
	size_t skip = sizeof frame - 1;
	if (body.n < skip || memcmp(body.p, frame, skip) != 0) return chunk_ref(notice);
	const struct chunk parts[] = {
		{NULL, head, strlen(head)},
		CHUNK_STATIC(before),
		{NULL, body.p + skip, body.n - skip},
		CHUNK_STATIC("}\n"),
	};
	return chunk_join(parts, ARRAY_SIZE(parts));
}

static struct chunk put_notice(struct chunk notice) {
	return frame_notice(JSONRPC_HEAD, notice);
}

static struct chunk put_bare_notice(struct chunk notice) {
	return frame_notice(JSONRPC_BARE_HEAD, notice);
}

static struct span members_of(struct span line) {
	return span_member(line, "params");
}

#define LOST                                                                                                           \
	"\"method\":\"" JSONRPC_EVENT "\",\"params\":{\"event\":\"" PLENUM_EV_ERROR "\",\"code\":\"" PLENUM_E_INTERNAL     \
	"\",\"error\":\"" DIALECT_FRAME_LOST "\"}}\n"

const struct dialect_frame jsonrpc_frame = {
	.attach = "\"" JSONRPC_OWN_PREFIX "attach\"",
	.put_notice = put_notice,
	.notice = members_of,
	.lost = JSONRPC_HEAD LOST,
	.disown = own_line,
	.disown_answer = own_answer,
	.answers_bad_lines = true,
};

const struct dialect_frame jsonrpc_bare_frame = {
	.attach = "\"" JSONRPC_OWN_PREFIX "attach\"",
	.put_notice = put_bare_notice,
	.notice = members_of,
	.lost = JSONRPC_BARE_HEAD LOST,
	.disown = own_line,
	.disown_answer = own_answer,
	.answers_bad_lines = true,
};
