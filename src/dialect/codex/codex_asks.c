/* SPDX-License-Identifier: MIT */
#include "dialect/codex/codex.h"

#include "base/buf.h"
#include "base/macros.h"
#include "base/str.h"
#include "dialect/jsonrpc_check.h"

#include <stdio.h>
#include <string.h>

#define AMEND "acceptWithExecpolicyAmendment"
#define NETWORK "applyNetworkPolicyAmendment"

enum ask_kind codex_asks_kind(const struct envelope *e) {
	static const char *const tools[] = {"item/commandExecution/requestApproval",
										"item/fileChange/requestApproval",
										"item/permissions/requestApproval",
										"execCommandApproval",
										"applyPatchApproval",
										NULL};
	static const char *const forms[] = {"mcpServer/elicitation/request", "item/tool/requestUserInput", NULL};
	if (span_is_one_of(e->inner_subtype, tools)) return ASK_TOOL;
	return span_is_one_of(e->inner_subtype, forms) ? ASK_ELICITATION : ASK_UNKNOWN;
}

/* --- parts of asks ------------------------------------------------------------------------------------------------ */

/* The request of a permission profile has other answers than the two about an item. */
static bool wants_permissions(struct span request) {
	return span_is_object(span_member(request, "permissions"));
}

/* The approvals of the first protocol have a command or changes of files, and other words for decisions. */
static bool is_old(struct span request) {
	return span_member(request, "conversationId").p;
}

/* The questions of a tool of the agent, as opposed to the form of an MCP server. */
static bool has_questions(struct span request) {
	return span_is_array(span_member(request, "questions"));
}

/* A command may come without its text. */
static bool is_file_change(struct span request) {
	if (is_old(request)) return span_is_object(span_member(request, "fileChanges"));
	static const char *const members[] = {"threadId", "turnId", "itemId", "startedAtMs", "reason", "grantRoot", NULL};
	struct span key, value;
	for (size_t at = 0; span_next_member(request, &at, &key, &value);)
		if (!span_is_one_of(key, members)) return false;
	return true;
}

/* Return the command line of `bash -lc LINE`, or the first path. */
static struct span old_subject(struct span request) {
	struct span words = span_member(request, "command"), changes = span_member(request, "fileChanges"), one, value;
	size_t at = 0;
	if (span_next_member(changes, &at, &one, &value)) return one;
	for (at = 0, one = SPAN_NONE; span_next(words, &at, &value);) one = value;
	return one;
}

static struct span subject_of(struct span request) {
	static const char *const keys[] = {"command", "grantRoot", "reason"};
	struct span value = is_old(request) ? old_subject(request) : SPAN_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(keys) && !span_is_string(value); i++) value = span_member(request, keys[i]);
	return span_is_string(value) ? value : SPAN_NONE;
}

struct span codex_asks_part(enum ask_kind kind, struct span request, enum ask_part part) {
	if (kind != ASK_TOOL) return SPAN_NONE;
	switch (part) {
	case ASK_PART_TOOL: /* the params do not name it: these are the types of the agent's items */
		return span_of(wants_permissions(request) ? "\"permissions\""
					   : is_file_change(request)  ? "\"fileChange\""
												  : "\"commandExecution\"");
	case ASK_PART_INPUT:
		return request;
	case ASK_PART_SUBJECT:
		return subject_of(request);
	default:
		return SPAN_NONE;
	}
}

struct span codex_asks_summary(struct span request) {
	struct span text = subject_of(request), first = span_element(span_member(request, "questions"), 0);
	if (!text.p) text = span_member(first, "question");
	return text.p ? text : span_member(request, "message");
}

/* --- answers of clients ------------------------------------------------------------------------------------------- */

static struct span result_of(struct span response) {
	return span_member(response, "result");
}

static bool is_escaped(struct span s, size_t at) {
	bool odd = false;
	while (at-- > 0 && s.p[at] == '\\') odd = !odd;
	return odd;
}

/* The two are small. Blanks between tokens do not count. */
static bool is_same_value(struct span a, struct span b) {
	bool inside = false;
	for (size_t i = 0, k = 0;;) {
		while (!inside && i < a.n && span_blank(a.p[i])) i++;
		while (!inside && k < b.n && span_blank(b.p[k])) k++;
		if (i == a.n || k == b.n) return i == a.n && k == b.n;
		if (a.p[i] != b.p[k]) return false;
		if (a.p[i] == '"' && !(inside && is_escaped(a, i))) inside = !inside;
		i++, k++;
	}
}

/* Return true for an amendment that a request without a list of decisions proposes. */
static bool is_proposed(struct span request, struct span decision) {
	struct span rule = span_member(span_member(decision, AMEND), "execpolicy_amendment"), one;
	struct span host = span_member(span_member(decision, NETWORK), "network_policy_amendment");
	struct span hosts = span_member(request, "proposedNetworkPolicyAmendments");
	if (rule.p) return is_same_value(rule, span_member(request, "proposedExecpolicyAmendment"));
	for (size_t at = 0; host.p && span_next(hosts, &at, &one);)
		if (is_same_value(one, host)) return true;
	return false;
}

static bool is_old_decision(struct span decision) {
	static const char *const words[] = {
		"approved", "approved_for_session", "approved_mcp_policy_amendment", "timed_out", "abort", NULL};
	static const char *const objects[] = {"approved_execpolicy_amendment", "network_policy_amendment", "denied", NULL};
	struct span key, value;
	size_t at = 0;
	if (span_is_one_of(decision, words)) return true;
	return span_is_object(decision) && span_next_member(decision, &at, &key, &value) && span_is_one_of(key, objects) &&
		   span_is_object(value) && !span_next_member(decision, &at, &key, &value);
}

/* Return true for a decision that the request offers. `decline` needs no offer: the agent takes it always. A request
 * without a list offers the words of the protocol. */
static bool is_offered(struct span request, struct span decision) {
	static const char *const always[] = {"decline", "cancel", NULL};
	static const char *const usual[] = {"accept", "acceptForSession", NULL};
	struct span list = span_member(request, "availableDecisions"), one;
	if (span_is_one_of(decision, always)) return true;
	if (!span_is_array(list)) return span_is_one_of(decision, usual) || is_proposed(request, decision);
	for (size_t at = 0; span_next(list, &at, &one);)
		if (is_same_value(one, decision)) return true;
	return false;
}

static const char *check_questions(struct span response) {
	static const char error[] = "`result.answers` must be an object: {\"ID\":{\"answers\":[\"TEXT\"]}}";
	struct span answers = span_member(result_of(response), "answers"), key, value, one;
	if (!span_is_object(answers)) return error;
	for (size_t at = 0; span_next_member(answers, &at, &key, &value);) {
		struct span texts = span_member(value, "answers");
		if (!span_is_array(texts)) return error;
		for (size_t i = 0; span_next(texts, &i, &one);)
			if (!span_is_string(one)) return error;
	}
	return NULL;
}

static const char *check_permissions(struct span response) {
	static const char *const scopes[] = {"turn", "session", NULL};
	struct span scope = span_member(result_of(response), "scope");
	if (!span_is_object(span_member(result_of(response), "permissions")))
		return "`result.permissions` must be an object with what is granted";
	return !scope.p || span_is_one_of(scope, scopes) ? NULL : "`result.scope` must be \"turn\" or \"session\"";
}

const char *codex_asks_check(enum ask_kind kind, struct span request, struct span response) {
	if (kind == ASK_UNKNOWN || span_member(response, "error").p) return NULL;
	if (kind == ASK_ELICITATION)
		return has_questions(request) ? check_questions(response) : jsonrpc_check_form(response);
	if (wants_permissions(request)) return check_permissions(response);
	if (is_old(request))
		return is_old_decision(span_member(result_of(response), "decision"))
				   ? NULL
				   : "`result.decision` must be \"approved\", \"approved_for_session\", \"abort\", "
					 "{\"denied\":{\"rejection\":\"TEXT\"}} or another of the protocol";
	return is_offered(request, span_member(result_of(response), "decision"))
			   ? NULL
			   : "`result.decision` must be \"accept\", \"decline\", \"cancel\" or another of the request's "
				 "`availableDecisions`";
}

const char *codex_asks_decision(enum ask_kind kind, struct span request, struct span response) {
	static const char *const refusals[] = {"decline", "cancel", "timed_out", "abort", NULL};
	struct span result = result_of(response), decision = span_member(result, "decision");
	struct span action = span_member(result, "action"), key, value;
	size_t at = 0;
	if (span_member(response, "error").p) return "error";
	if (kind == ASK_ELICITATION && has_questions(request))
		return span_next_member(span_member(result, "answers"), &at, &key, &value) ? "answered" : "cancelled";
	if (kind == ASK_ELICITATION)
		return span_equals(action, "accept") ? "allow" : span_equals(action, "cancel") ? "cancelled" : "deny";
	if (kind != ASK_TOOL) return "answered";
	if (wants_permissions(request))
		return span_next_member(span_member(result, "permissions"), &at, &key, &value) ? "allow" : "deny";
	return span_is_one_of(decision, refusals) || span_member(decision, "denied").p ? "deny" : "allow";
}

/* Name the rule that the agent is to remember: the words of a command, or a host. */
static void put_rule(char *out, size_t size, struct span decision) {
	struct span words = span_member(span_member(decision, AMEND), "execpolicy_amendment"), one;
	if (!words.p)
		words = span_member(span_member(decision, "approved_execpolicy_amendment"), "proposed_execpolicy_amendment");
	struct span host = span_member(span_member(span_member(decision, NETWORK), "network_policy_amendment"), "host");
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	for (size_t at = 0; span_next(words, &at, &one);) {
		_cleanup_free_ char *word = span_dup(one, NULL);
		buf_printf(&b, "%s%s", word ? word : "?", " ");
	}
	_cleanup_free_ char *name = span_dup(host, NULL);
	if (name) buf_printf(&b, "%s ", name);
	snprintf(out, size, "%salways", b.data ? b.data : "");
	buf_free(&b);
}

void codex_asks_read_changes(enum ask_kind kind, struct span request, struct span response, struct changes *c) {
	struct span result = result_of(response), decision = span_member(result, "decision");
	bool session = span_equals(decision, "acceptForSession") || span_equals(decision, "approved_for_session") ||
				   span_equals(span_member(result, "scope"), "session");
	*c = (struct changes){0};
	if (kind != ASK_TOOL || strcmp(codex_asks_decision(kind, request, response), "allow") != 0) return;
	if (!session && !span_is_object(decision)) return;
	if (session)
		snprintf(c->grants[0], sizeof c->grants[0], "session");
	else
		put_rule(c->grants[0], sizeof c->grants[0], decision);
	c->n_grants = 1;
}

/* --- answers of the daemon ---------------------------------------------------------------------------------------- */

void codex_asks_put_deny(struct buf *body, struct span request, const char *reason) {
	if (is_old(request)) {
		buf_puts(body, "{\"decision\":{\"denied\":{\"rejection\":");
		str_put_json(body, reason, strlen(reason));
		buf_puts(body, "}}}");
		return;
	}
	buf_puts(body, wants_permissions(request) ? "{\"permissions\":{}}" : "{\"decision\":\"decline\"}");
}

void codex_asks_put_allow(struct buf *body, struct span request) {
	struct span wanted = span_member(request, "permissions");
	if (!wants_permissions(request)) {
		buf_puts(body, is_old(request) ? "{\"decision\":\"approved\"}" : "{\"decision\":\"accept\"}");
		return;
	}
	buf_puts(body, "{\"permissions\":");
	buf_put(body, wanted.p, wanted.n);
	buf_putc(body, '}');
}

void codex_asks_put_cancel(struct buf *body, struct span request) {
	buf_puts(body, has_questions(request) ? "{\"answers\":{}}" : "{\"action\":\"cancel\",\"content\":null}");
}
