/* SPDX-License-Identifier: MIT
 *
 * Requests to this client, and the answers that the agent takes (protocol-facts 3, 4 and 5).
 */
#include "base/str.h"
#include "lib/handle.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *subtype, *name, *input;
} kinds[] = {
	[PLENUM_ASK_OTHER] = {NULL, "subtype", NULL},
	[PLENUM_ASK_PERMISSION] = {"can_use_tool", "tool_name", "input"},
	[PLENUM_ASK_HOOK] = {"hook_callback", "callback_id", "input"},
	[PLENUM_ASK_MCP] = {"mcp_message", "server_name", "message"},
};

/* Return the same bytes in the copy of the line. */
static const char *within(const struct plenum_ask *a, const char *line, struct span s, size_t *n) {
	*n = s.p ? s.n : 0;
	return s.p ? a->line + (s.p - line) : NULL;
}

bool plenum_ask_read(const char *line, size_t len, struct plenum_ask *a) {
	struct envelope e;
	*a = (struct plenum_ask){0};
	if (!scan_envelope(line, len, &e) || !span_equals(e.type, "control_request")) return false;
	if (!e.request_id.p || !span_is_object(e.request)) return false;
	for (size_t i = PLENUM_ASK_PERMISSION; i < ARRAY_SIZE(kinds); i++)
		if (span_equals(e.inner_subtype, kinds[i].subtype)) a->kind = (enum plenum_ask_kind)i;
	struct span name = span_member(e.request, kinds[a->kind].name);
	struct span input = a->kind == PLENUM_ASK_OTHER ? e.request : span_member(e.request, kinds[a->kind].input);
	a->len = len;
	a->line = strndup(line, len);
	a->id = strndup(e.request_id.p, e.request_id.n);
	a->name = span_is_string(name) ? span_dup(name, NULL) : strdup("");
	if (!a->line || !a->id || !a->name) {
		plenum_ask_free(a);
		return false;
	}
	a->input = within(a, line, input, &a->input_len);
	a->suggestions = within(a, line, span_member(e.request, "permission_suggestions"), &a->suggestions_len);
	return true;
}

void plenum_ask_free(struct plenum_ask *a) {
	free(a->line);
	free(a->id);
	free(a->name);
	*a = (struct plenum_ask){0};
}

bool plenum_ask_withdrawn(const struct plenum_ask *a, const char *line, size_t len) {
	struct envelope e;
	return a->id && scan_envelope(line, len, &e) && span_equals(e.type, "control_cancel_request") &&
		   span_same(e.request_id, span_of(a->id));
}

/* --- Answers ------------------------------------------------------------------------------------------------------ */

static enum plenum_result send_reply(struct plenum *p, const struct plenum_ask *a, const char *subtype,
									 const char *member, struct buf *value) {
	struct buf line = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	buf_printf(&line,
			   "{\"type\":\"control_response\",\"response\":{\"subtype\":\"%s\",\"request_id\":%s,\"%s\":", subtype,
			   a->id, member);
	if (value->data) buf_put(&line, value->data, value->len);
	buf_puts(&line, "}}");
	enum plenum_result r = line.failed || value->failed ? handle_failed(p, "out of memory")
														: plenum_send(p, line.data, line.len);
	buf_free(&line);
	buf_free(value);
	return r;
}

enum plenum_result plenum_reply(struct plenum *p, const struct plenum_ask *a, const char *response) {
	struct buf value = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	struct span members = response ? handle_members(response) : span_of("");
	if (!members.p) {
		errno = EINVAL;
		return handle_failed(p, "an answer must be a JSON object");
	}
	buf_putc(&value, '{');
	handle_put_json(&value, members);
	buf_putc(&value, '}');
	return send_reply(p, a, "success", "response", &value);
}

enum plenum_result plenum_reply_error(struct plenum *p, const struct plenum_ask *a, const char *error) {
	struct buf value = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	str_put_json(&value, error, strlen(error));
	return send_reply(p, a, "error", "error", &value);
}

enum plenum_result plenum_allow(struct plenum *p, const struct plenum_ask *a, const char *input,
								const char *permissions) {
	struct buf b = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	buf_puts(&b, "{\"behavior\":\"allow\"");
	if (input) {
		buf_puts(&b, ",\"updatedInput\":");
		handle_put_json(&b, span_of(input));
	}
	if (permissions) {
		buf_puts(&b, ",\"updatedPermissions\":");
		handle_put_json(&b, span_of(permissions));
	}
	buf_putc(&b, '}');
	return send_reply(p, a, "success", "response", &b);
}

enum plenum_result plenum_deny(struct plenum *p, const struct plenum_ask *a, const char *message) {
	struct buf b = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	buf_puts(&b, "{\"behavior\":\"deny\",\"message\":");
	str_put_json(&b, message, strlen(message));
	buf_putc(&b, '}');
	return send_reply(p, a, "success", "response", &b);
}

enum plenum_result plenum_reply_mcp(struct plenum *p, const struct plenum_ask *a, const char *message) {
	struct buf b = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	buf_puts(&b, "{\"mcp_response\":");
	handle_put_json(&b, span_of(message ? message : "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}"));
	buf_putc(&b, '}');
	return send_reply(p, a, "success", "response", &b);
}
