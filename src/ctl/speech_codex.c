/* SPDX-License-Identifier: MIT
 *
 * The protocol of codex app-server. The daemon adds the id of the thread to requests without one.
 */
#include "ctl/speech.h"

#include "base/macros.h"
#include "dialect/jsonrpc.h"
#include "plenum/protocol.h"

#include <stdio.h>
#include <string.h>

static bool scan(const char *p, size_t n, struct envelope *e) {
	return jsonrpc_scan(p, n, e, "threadId");
}

/* --- Items -------------------------------------------------------------------------------------------------------- */

static bool is_tool(struct span type) {
	return span_equals(type, "commandExecution") || span_equals(type, "fileChange") || span_equals(type, "mcpToolCall");
}

/* The request for a change of files names only the item. */
static bool read_call(struct span item, struct span type, struct speech_fact *f) {
	struct span command = span_member(item, "command"), tool = span_member(item, "tool");
	f->kind = SPEECH_CALL;
	f->name = span_is_string(tool) ? tool : type;
	f->input = command.p ? command : span_member(span_element(span_member(item, "changes"), 0), "path");
	if (!f->input.p) f->input = span_member(item, "arguments");
	f->id = span_member(item, "id");
	f->list = span_member(item, "changes");
	return true;
}

static bool read_started(struct span item, struct speech_fact *f) {
	struct span type = span_member(item, "type");
	if (is_tool(type)) return read_call(item, type, f);
	f->kind = span_equals(type, "reasoning") ? SPEECH_THINKS : SPEECH_WRITES;
	if (span_equals(type, "reasoning") || span_equals(type, "agentMessage")) return true;
	f->kind = SPEECH_ECHO;
	f->id = span_member(item, "clientId");
	f->text = span_member(span_element(span_member(item, "content"), 0), "text");
	return span_equals(type, "userMessage");
}

static bool read_completed(struct span item, struct speech_fact *f) {
	struct span type = span_member(item, "type"), status = span_member(item, "status");
	f->kind = is_tool(type) ? SPEECH_RESULT : SPEECH_PAUSE;
	f->bad = span_equals(status, "failed") || span_equals(status, "declined");
	f->text = span_member(span_member(item, "error"), "message");
	if (!f->text.p) f->text = span_member(item, "aggregatedOutput");
	if (!f->text.p) f->text = span_member(span_element(span_member(span_member(item, "result"), "content"), 0), "text");
	if (!span_is_string(f->text)) f->text = status;
	return f->kind == SPEECH_RESULT || span_equals(type, "agentMessage");
}

/* --- Turns -------------------------------------------------------------------------------------------------------- */

static struct span turn_id(struct span holder) {
	return span_member(span_member(holder, "turn"), "id");
}

static bool read_end(struct span turn, struct speech_fact *f) {
	struct span status = span_member(turn, "status");
	f->kind = SPEECH_END;
	f->bad = !span_equals(status, "completed");
	f->interrupted = span_equals(status, "interrupted");
	f->name = f->bad ? status : span_of("\"" PLENUM_OUT_SUCCESS "\"");
	f->text = span_member(span_member(turn, "error"), "message");
	span_int(span_member(turn, "durationMs"), &f->ms);
	return true;
}

static void take_name(char *name, size_t size, struct span id) {
	struct span text = span_content(id);
	snprintf(name, size, "%.*s", (int)text.n, text.p ? text.p : "");
}

static bool ends(struct speech_turn *t, const struct incoming *in) {
	struct span id = turn_id(in->e.request);
	bool ours = *t->name && span_equals(id, t->name);
	if (in->e.inner_request_id.p) {
		if (!span_equals(in->e.inner_request_id, t->uuid)) return false;
		take_name(t->name, sizeof t->name, turn_id(in->e.inner_response));
		t->ours = *t->name; /* the reply to a prompt only names its turn */
		return in->e.is_error.p;
	}
	if (span_equals(in->e.type, "turn/started")) {
		take_name(t->running, sizeof t->running, id);
		t->ours = ours;
	}
	if (!span_equals(in->e.type, "turn/completed")) return false;
	if (span_equals(id, t->running)) *t->running = 0;
	if (ours) *t->name = t->ours = 0;
	return ours;
}

/* --- Facts -------------------------------------------------------------------------------------------------------- */

static bool next(const struct incoming *in, size_t *at, struct speech_fact *f) {
	const struct envelope *e = &in->e;
	struct span params = e->request;
	if ((*at)++ || in->notice.p) return false;
	if (span_equals(e->type, "item/started")) return read_started(span_member(params, "item"), f);
	if (span_equals(e->type, "item/completed")) return read_completed(span_member(params, "item"), f);
	if (span_equals(e->type, "turn/completed")) return read_end(span_member(params, "turn"), f);
	if (span_equals(e->type, "item/agentMessage/delta")) {
		f->kind = SPEECH_PIECE;
		f->text = span_member(params, "delta");
		return true;
	}
	if (e->inner_request_id.p) {
		f->kind = SPEECH_END;
		f->bad = true;
		f->text = span_member(e->is_error, "message");
		return e->is_error.p;
	}
	f->kind = e->request_id.p ? SPEECH_ASK : SPEECH_WITHDRAW;
	f->id = e->request_id.p ? e->request_id : span_member(params, "requestId");
	return e->request_id.p || span_equals(e->type, "serverRequest/resolved");
}

/* --- Questions ---------------------------------------------------------------------------------------------------- */

static const char *const tools[][2] = {{"item/commandExecution/requestApproval", "\"commandExecution\""},
									   {"item/fileChange/requestApproval", "\"fileChange\""},
									   {"item/permissions/requestApproval", "\"permissions\""},
									   {"execCommandApproval", "\"commandExecution\""},
									   {"applyPatchApproval", "\"fileChange\""}};

#define AMEND "acceptWithExecpolicyAmendment"

/* Return the decision that this request offers for the word, or that has it as its member. A request without a list
 * offers the words of the protocol. */
static struct span offered(const struct speech_ask *ask, const char *word) {
	struct span list = span_member(ask->body, "availableDecisions"), one;
	if (!span_is_array(list)) return strcmp(word, "\"" AMEND "\"") == 0 ? SPAN_NONE : span_of(word);
	for (size_t at = 0; span_next(list, &at, &one);)
		if (span_same(one, span_of(word)) || (span_is_object(one) && span_member(one, AMEND).p && strstr(word, AMEND)))
			return one;
	return SPAN_NONE;
}

/* The approvals of the first protocol have other words. */
static bool is_old(const struct speech_ask *ask) {
	return span_member(ask->body, "conversationId").p;
}

static struct span always_of(const struct speech_ask *ask) {
	if (is_old(ask)) return span_of("\"approved_for_session\"");
	struct span session = offered(ask, "\"acceptForSession\"");
	return session.p ? session : offered(ask, "\"" AMEND "\"");
}

static bool is_about_permissions(const struct speech_ask *ask) {
	return span_equals(ask->tool, "permissions");
}

static void read_approval(struct speech_ask *ask) {
	struct span always = always_of(ask);
	bool words = !is_about_permissions(ask);
	ask->kind = SPEECH_ASKS_TOOL;
	ask->input = span_member(ask->body, words ? "command" : "permissions");
	ask->about = span_member(ask->body, "command");
	if (!span_is_string(ask->about)) ask->about = span_member(ask->body, "grantRoot");
	ask->reason = span_member(ask->body, "reason");
	if (span_equals(ask->tool, "fileChange")) ask->call = span_member(ask->body, "itemId");
	ask->can_remember = words && always.p;
	ask->yes = span_of(is_old(ask) ? "\"approved\"" : "\"accept\"");
	ask->no = span_of(is_old(ask) ? "\"denied\"" : "\"decline\"");
	if (is_old(ask) && !ask->input.p) ask->input = span_member(ask->body, "fileChanges");
	if (!ask->can_remember) return;
	ask->rule = span_member(span_member(always, AMEND), "execpolicy_amendment");
	ask->always = span_is_string(always) ? always : span_of("\"accept, and all commands that begin with:\"");
}

static void read_ask(const struct incoming *in, struct speech_ask *ask) {
	ask->kind = SPEECH_ASKS_OTHER;
	ask->id = in->e.request_id;
	ask->body = in->e.request;
	ask->name = in->e.type;
	ask->only_choices = ask->ends_turn = true;
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
		if (span_equals(in->e.type, tools[i][0])) ask->tool = span_of(tools[i][1]);
	if (ask->tool.p) read_approval(ask);
	bool questions = span_equals(in->e.type, "item/tool/requestUserInput");
	if (!questions && !span_equals(in->e.type, "mcpServer/elicitation/request")) return;
	ask->kind = SPEECH_ASKS_FORM;
	ask->message = span_member(ask->body, "message");
	ask->schema = span_member(ask->body, "requestedSchema");
	if (questions) ask->questions = span_member(ask->body, "questions");
}

static struct span decision_of(const struct speech_ask *ask, const struct speech_decision *d) {
	if (!d->allow && is_old(ask))
		return span_of(d->interrupt ? "\"abort\"" : "{\"denied\":{\"rejection\":\"the user denied it\"}}");
	if (is_old(ask) && !d->always) return ask->yes;
	if (!d->allow) return span_of(d->interrupt ? "\"cancel\"" : "\"decline\"");
	return d->always ? always_of(ask) : offered(ask, "\"accept\"");
}

/* Questions that are not answered are cancelled. A value is a text, or an array of them. */
static void put_answers(struct buf *b, const struct speech_decision *d) {
	json_t *all = json_object(), *value;
	const char *key;
	json_object_foreach(d->allow ? d->input : NULL, key, value)
		json_object_set_new(all, key, json_pack(json_is_array(value) ? "{s:O}" : "{s:[O]}", "answers", value));
	char *text = json_dumps(all, JSON_COMPACT);
	buf_printf(b, "{\"answers\":%s}", text ? text : "{}");
	b->failed |= !text;
	free(text);
	json_decref(all);
}

/* False: the agent does not offer this. */
static bool put_result(struct buf *b, const struct speech_ask *ask, const struct speech_decision *d) {
	bool permissions = is_about_permissions(ask);
	struct span value = permissions ? (d->allow ? ask->input : span_of("{}")) : decision_of(ask, d);
	if (ask->kind == SPEECH_ASKS_FORM) {
		if (ask->questions.p)
			put_answers(b, d);
		else
			speech_put_form(b, ask, d);
		return true;
	}
	if (ask->kind != SPEECH_ASKS_TOOL || !value.p) return false;
	buf_printf(b, "{\"%s\":", permissions ? "permissions" : "decision");
	buf_put(b, value.p, value.n);
	return buf_putc(b, '}');
}

static bool put_answer(struct buf *b, const struct speech_ask *ask, const struct speech_decision *d) {
	speech_rpc_put_answer(b, JSONRPC_BARE_HEAD, ask);
	bool done = put_result(b, ask, d);
	buf_putc(b, '}');
	return done;
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

static enum plenum_result prompt(struct plenum *p, const char *text, size_t n, const char *uuid) {
	struct buf line = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	buf_printf(&line, JSONRPC_BARE_HEAD "\"id\":\"%s\",\"method\":\"turn/start\",\"params\":{", uuid);
	buf_printf(&line, "\"clientUserMessageId\":\"%s\",\"input\":[{\"type\":\"text\",\"text\":", uuid);
	return speech_rpc_prompt(p, &line, text, n);
}

/* The agent wants the name of the turn. */
static enum plenum_result interrupt(struct plenum *p, const struct speech_turn *t) {
	char id[PLENUM_ID_SIZE], params[sizeof t->running + 32];
	snprintf(params, sizeof params, "{\"turnId\":\"%s\"}", *t->running ? t->running : t->name);
	return plenum_post(p, "turn/interrupt", params, id);
}

static const char *setting(bool mode, const char *value, json_t **members) {
	*members = mode ? NULL : json_pack("{s:s}", "model", value);
	return mode ? NULL : "thread/settings/update"; /* a mode is several settings */
}

const struct speech speech_codex = {
	.dialect = "codex",
	.names_turns = true,
	.scan = scan,
	.notice = speech_rpc_notice,
	.next = next,
	.read_ask = read_ask,
	.read_error = speech_rpc_error,
	.ends = ends,
	.prompt = prompt,
	.interrupt = interrupt,
	.setting = setting,
	.put_answer = put_answer,
};
