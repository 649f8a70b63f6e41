/* SPDX-License-Identifier: MIT */
#include "dialect/acp/acp.h"

#include "base/macros.h"
#include "base/str.h"
#include "dialect/jsonrpc_check.h"

#include <stdio.h>
#include <string.h>

enum ask_kind acp_asks_kind(const struct envelope *e) {
	if (span_equals(e->inner_subtype, "session/request_permission")) return ASK_TOOL;
	return span_equals(e->inner_subtype, "elicitation/create") ? ASK_ELICITATION : ASK_UNKNOWN;
}

void acp_asks_read_addressee(const struct envelope *e, struct dialect_addressee *to) {
	bool form = acp_asks_kind(e) == ASK_ELICITATION && e->request_id.p;
	if (form) to->call = span_member(e->request, "requestId");
}

/* --- the parts of an ask ------------------------------------------------------------------------------------------ */

static struct span call_of(struct span request) {
	return span_member(request, "toolCall");
}

/* The kind is one of a few words of the protocol; an agent without one has only a title. */
static struct span tool_of(struct span request) {
	struct span kind = span_member(call_of(request), "kind");
	bool tells = span_is_string(kind) && !span_equals(kind, "other") && !span_equals(kind, "");
	return tells ? kind : span_member(call_of(request), "title");
}

/* Return the member of the input that says most, else the title. */
static struct span subject_of(struct span request) {
	static const char *const keys[] = {"command", "file_path", "path", "pattern", "url", "query", "prompt"};
	struct span input = span_member(call_of(request), "rawInput"), value = SPAN_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(keys) && !span_is_string(value); i++) value = span_member(input, keys[i]);
	return span_is_string(value) ? value : span_member(call_of(request), "title");
}

struct span acp_asks_part(enum ask_kind kind, struct span request, enum ask_part part) {
	struct span input;
	if (kind != ASK_TOOL) return SPAN_NONE;
	switch (part) {
	case ASK_PART_TOOL:
		return tool_of(request);
	case ASK_PART_INPUT:
		input = span_member(call_of(request), "rawInput");
		return span_is_object(input) ? input : call_of(request); /* some agents only describe the call */
	case ASK_PART_SUBJECT:
		return subject_of(request);
	case ASK_PART_TITLE:
		return span_member(call_of(request), "title");
	default:
		return SPAN_NONE;
	}
}

struct span acp_asks_summary(struct span request) {
	struct span text = subject_of(request);
	return text.p ? text : span_member(request, "message");
}

/* --- answers of clients ------------------------------------------------------------------------------------------- */

static bool same_text(struct span a, struct span b) {
	if (span_same(a, b)) return span_is_string(a);
	_cleanup_free_ char *x = span_dup(a, NULL), *y = span_dup(b, NULL);
	return x && y && strcmp(x, y) == 0;
}

static struct span outcome_of(struct span response) {
	return span_member(span_member(response, "result"), "outcome");
}

/* Return the option that this answer selects; absent: none. */
static struct span selected(struct span request, struct span response) {
	struct span outcome = outcome_of(response), id = span_member(outcome, "optionId"), one;
	if (!span_equals(span_member(outcome, "outcome"), "selected")) return SPAN_NONE;
	for (size_t at = 0; span_next(span_member(request, "options"), &at, &one);)
		if (same_text(span_member(one, "optionId"), id)) return one;
	return SPAN_NONE;
}

const char *acp_asks_check(enum ask_kind kind, struct span request, struct span response) {
	if (kind == ASK_UNKNOWN || span_member(response, "error").p) return NULL;
	if (kind == ASK_ELICITATION) return jsonrpc_check_form(response);
	struct span outcome = span_member(outcome_of(response), "outcome");
	if (span_equals(outcome, "cancelled")) return NULL;
	if (!span_equals(outcome, "selected"))
		return "`result.outcome.outcome` must be \"selected\", with an `optionId`, or \"cancelled\"";
	return selected(request, response).p ? NULL
										 : "`result.outcome.optionId` must be that of one of the request's `options`";
}

static bool begins(struct span string, const char *with) {
	struct span text = span_content(string);
	size_t n = strlen(with);
	return text.n >= n && memcmp(text.p, with, n) == 0;
}

const char *acp_asks_decision(enum ask_kind kind, struct span request, struct span response) {
	if (span_member(response, "error").p) return "error";
	if (kind == ASK_ELICITATION) {
		struct span action = span_member(span_member(response, "result"), "action");
		return span_equals(action, "accept") ? "allow" : span_equals(action, "cancel") ? "cancelled" : "deny";
	}
	if (kind != ASK_TOOL) return "answered";
	struct span option = selected(request, response), is = span_member(option, "kind");
	if (!option.p) return "cancelled";
	return begins(is, "allow") ? "allow" : begins(is, "reject") ? "deny" : "answered";
}

void acp_asks_read_changes(enum ask_kind kind, struct span request, struct span response, struct changes *c) {
	struct span option = kind == ASK_TOOL ? selected(request, response) : SPAN_NONE;
	struct span is = span_member(option, "kind");
	*c = (struct changes){0};
	if (!span_equals(is, "allow_always") && !span_equals(is, "reject_always")) return;
	_cleanup_free_ char *name = span_dup(span_member(option, "name"), NULL);
	snprintf(c->grants[0], sizeof c->grants[0], "%s", name ? name : "always");
	c->n_grants = 1;
}

/* --- answers of the daemon ---------------------------------------------------------------------------------------- */

/* Select the first option of this kind. Return false without one. */
static bool put_option(struct buf *body, struct span request, const char *kind) {
	struct span one;
	for (size_t at = 0; span_next(span_member(request, "options"), &at, &one);) {
		struct span id = span_member(one, "optionId");
		if (!span_equals(span_member(one, "kind"), kind) || !span_is_string(id)) continue;
		buf_puts(body, "{\"outcome\":{\"outcome\":\"selected\",\"optionId\":");
		buf_put(body, id.p, id.n);
		buf_puts(body, "}}");
		return true;
	}
	return false;
}

void acp_asks_put_deny(struct buf *body, struct span request, const char *reason) {
	(void)reason; /* the protocol has no place for it */
	if (put_option(body, request, "reject_once") || put_option(body, request, "reject_always")) return;
	buf_puts(body, "{\"outcome\":{\"outcome\":\"cancelled\"}}");
}

void acp_asks_put_allow(struct buf *body, struct span request) {
	put_option(body, request, "allow_once"); /* a person alone lets the agent remember it */
}

void acp_asks_put_cancel(struct buf *body, struct span request) {
	buf_puts(body, span_member(request, "options").p ? "{\"outcome\":{\"outcome\":\"cancelled\"}}"
													 : "{\"action\":\"cancel\"}");
}
