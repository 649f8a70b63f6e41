/* SPDX-License-Identifier: MIT
 *
 * Hooks and MCP servers: their registration by initialize, and the answers to their requests. Source: protocol-facts
 * 4.2, 4.4.
 */
#include "dialect/claude/claude.h"

#include "base/macros.h"
#include "base/str.h"

#include <string.h>

static const char neutral[] = "{}";

static void put_hook_deny(struct buf *b, struct span event, const char *reason) {
	if (span_equals(event, "PreToolUse"))
		buf_puts(b, "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\","
					"\"permissionDecisionReason\":");
	else if (span_equals(event, "PermissionRequest"))
		buf_puts(b,
				 "{\"hookSpecificOutput\":{\"hookEventName\":\"PermissionRequest\",\"decision\":{\"behavior\":\"deny\","
				 "\"message\":");
	else
		buf_puts(b, "{\"decision\":\"block\",\"reason\":");
	str_put_json(b, reason, strlen(reason));
	if (span_equals(event, "PreToolUse"))
		buf_puts(b, "}}");
	else
		buf_puts(b, span_equals(event, "PermissionRequest") ? "}}}" : "}");
}

static void put_mcp_error(struct buf *b, struct span message, const char *reason) {
	struct span id = span_member(message, "id");
	if (!id.p) { /* a notification only needs an acknowledgement */
		buf_puts(b, "{\"mcp_response\":{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}}");
		return;
	}
	buf_puts(b, "{\"mcp_response\":{\"jsonrpc\":\"2.0\",\"id\":");
	buf_put(b, id.p, id.n);
	buf_puts(b, ",\"error\":{\"code\":-32000,\"message\":");
	str_put_json(b, reason, strlen(reason));
	buf_puts(b, "}}}");
}

static int hook_timeout(struct span event) {
	return span_equals(event, "UserPromptSubmit") ? 30 : 600;
}

static bool hook_guards(struct span event) {
	return span_equals(event, "PreToolUse") || span_equals(event, "PermissionRequest");
}

static bool hook_sees_tools(struct span event) {
	static const char *const events[] = {
		"PreToolUse",        "PostToolUse",      "PostToolUseFailure",   "PostToolBatch",
		"PermissionRequest", "PermissionDenied", "PreSkillShellCommand", NULL};
	return span_is_one_of(event, events);
}

static bool matcher_covers(struct span matcher, const char *tool) {
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_|, -";
	_cleanup_free_ char *text = span_dup(matcher, NULL);
	char *save = NULL;
	if (!text || !*text || text[strspn(text, plain)]) return true;
	for (char *name = strtok_r(text, "|,", &save); name; name = strtok_r(NULL, "|,", &save)) {
		name += strspn(name, " ");
		size_t n = strcspn(name, " ");
		if (strlen(tool) == n && memcmp(tool, name, n) == 0) return true;
	}
	return false;
}

/* --- registration ------------------------------------------------------------------------------------------------- */

static bool entry_guards(struct span entry) {
	return span_equals(span_member(entry, "onFailure"), "block");
}

static void put_guard_all(struct buf *b, const char *callback) {
	buf_printf(b, "{\"PreToolUse\":[{\"hookCallbackIds\":[%s]}]}", callback);
}

static bool is_frame(struct span key) {
	return span_equals(key, "subtype") || span_equals(key, "request_id");
}

static bool looks_like(struct span text) {
	static const char name[] = "\"initialize\"";
	return memmem(text.p, text.n, name, sizeof name - 1) != NULL;
}

static struct span applied(const struct envelope *answer) {
	return span_member(answer->inner_response, "hooks_applied");
}

static struct span answered_mode(const struct envelope *answer) {
	return span_member(answer->inner_response, "current_permission_mode");
}

static struct span answered_pid(const struct envelope *answer) {
	return span_member(answer->inner_response, "pid");
}

static struct span answered_state(const struct envelope *answer) {
	return span_member(answer->inner_response, "session_state");
}

static struct span servers_of(const struct envelope *e) {
	return span_member(e->request, "servers");
}

static bool is_own_server(struct span config) {
	return span_equals(span_member(config, "type"), "sdk");
}

static struct span cancels_call(struct span message) {
	if (!span_equals(span_member(message, "method"), "notifications/cancelled")) return SPAN_NONE;
	return span_member(span_member(message, "params"), "requestId");
}

static const char *const needed_members[] = {"hooks", "sdkMcpServers", "sdkMcpServerConfigs", "mcpServers", NULL};
static const char *const open_asks[] = {"pending_permission_requests", "pending_user_dialog_requests",
										"pending_elicitation_requests", NULL};

const struct dialect_hooks claude_hooks = {
	.hooks = "hooks",
	.servers = "sdkMcpServers",
	.dialogs = "supportedDialogKinds",
	.needed = needed_members,
	.callbacks = "hookCallbackIds",
	.matcher = "matcher",
	.timeout = "timeout",
	.bad_entry = "a hook entry needs `hookCallbackIds`, an array of strings",
	.bad_callback = "`hookCallbackIds` must hold strings",
	.bad_server = "`sdkMcpServers` must hold strings",
	.entry_guards = entry_guards,
	.put_guard_all = put_guard_all,
	.request = "{\"subtype\":\"initialize\"",
	.is_frame = is_frame,
	.looks_like = looks_like,
	.applied = applied,
	.mode = answered_mode,
	.pid = answered_pid,
	.state = answered_state,
	.state_rests = "\"idle\"",
	.state_runs = "\"running\"",
	.state_asks = "\"requires_action\"",
	.open_asks = open_asks,
	.set_servers = "{\"subtype\":\"mcp_set_servers\",\"servers\":",
	.servers_of = servers_of,
	.bad_servers = "mcp_set_servers needs `servers`, an object of configurations by name",
	.set_servers_name = "mcp_set_servers",
	.is_own_server = is_own_server,
	.cancels_call = cancels_call,
	.neutral = neutral,
	.put_hook_deny = put_hook_deny,
	.put_mcp_error = put_mcp_error,
	.hook_timeout = hook_timeout,
	.hook_guards = hook_guards,
	.hook_sees_tools = hook_sees_tools,
	.matcher_covers = matcher_covers,
};
