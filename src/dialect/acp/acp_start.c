/* SPDX-License-Identifier: MIT
 *
 * The handshake with an agent: initialize, then session/new, session/load or session/resume, then the mode and the
 * options that the session had. The memo has:
 *
 *   initialize             the result of initialize
 *   params                 the params of the client that began the conversation (working directory, MCP servers)
 *   session                the result of session/new, session/load or session/resume
 *   current_mode_update, config_option_update, ~available_commands_update, ~usage_update, ~session_info_update
 *                          the newest update of this name
 *   ~fork                  the conversation that the first child is to fork
 *   ~mode, ~options        settings for the next child; used up by the steps
 *   strict                 the mode to set if it is strict and the agent has refused it, or an option: never dropped
 *   ~rest                  the answer to the next step ends the agent's replay, and says nothing else; true: which the
 *                          clients had before it began
 *   unused                 the conversation has had no prompt: an agent may not have it on its disk
 *   ~new                   this step begins a conversation
 *   ~anew                  the agent has lost an unused one: the step was taken again, with a new one
 */
#include "dialect/acp/acp.h"

#include "base/macros.h"
#include "base/str.h"
#include "dialect/dialect_ask.h"
#include "dialect/jsonrpc.h"
#include "plenum/protocol.h"

#include <stdio.h>
#include <string.h>

#define MODE "current_mode_update"
#define OPTIONS "config_option_update"
#define FRESH "unused"
#define NEW "~new"
#define ANEW "~anew"
#define OPTIONS_SET 32 /* options that a next child is set to: each one is looked up in a list of the agent */

/* Without the `~`: names of updates. The later ones change often, and say nothing to a next child. */
static const char *const updates[] = {MODE, OPTIONS, "~available_commands_update", "~usage_update",
									  "~session_info_update"};

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* conversation NULL: a new one. */
static void put_session(struct buf *b, const char *id, const char *method, const char *conversation,
						const struct dialect_start *start) {
	struct span params = memo_get(start->memo, "params"), key, value;
	struct buf o = BUF_INIT(SIZE_MAX / 4);
	buf_puts(&o, ",");
	if (conversation) {
		buf_puts(&o, "\"sessionId\":");
		str_put_json(&o, conversation, strlen(conversation));
	}
	if (params.p) {
		size_t from = o.len, at = 0;
		while (span_next_member(params, &at, &key, &value))
			if (!span_equals(key, "sessionId")) span_put_member(&o, key, value); /* with a comma before it */
		if (!conversation && !o.failed && o.len > from) o.data[from] = ' ';      /* it is the first one */
	} else {
		buf_puts(&o, conversation ? ",\"cwd\":" : "\"cwd\":");
		str_put_json(&o, start->cwd, strlen(start->cwd));
		buf_puts(&o, ",\"mcpServers\":[]");
	}
	buf_putc(&o, '}');
	if (!o.failed) *o.data = '{';
	if (!o.failed) jsonrpc_put_request(b, JSONRPC_HEAD, id, method, o.data);
	b->failed |= o.failed;
	buf_free(&o);
}

/* Go on with the conversation as the agent can. Its clients need no lines that they have. */
static enum dialect_step put_conversation(struct buf *b, const char *id, const struct dialect_start *start) {
	struct span can = span_member(memo_get(start->memo, "initialize"), "agentCapabilities");
	bool loads = span_is_true(span_member(can, "loadSession"));
	bool resumes = span_is_object(span_member(span_member(can, "sessionCapabilities"), "resume"));
	if (!start->conversation && start->waits && !memo_get(start->memo, "params").p) return STEP_WAITS;
	memo_set(start->memo, NEW, SPAN_NONE);
	if (!start->conversation || (!loads && !resumes)) {
		_cleanup_free_ char *fork = start->conversation ? NULL : span_dup(memo_get(start->memo, "~fork"), NULL);
		if (!fork) memo_set(start->memo, NEW, span_of("true"));
		put_session(b, id, fork ? "session/fork" : "session/new", fork, start);
		return STEP_SENT;
	}
	bool load = loads && !(start->told && resumes);
	memo_set(start->memo, "~rest", load ? span_of(start->told ? "true" : "false") : SPAN_NONE);
	put_session(b, id, load ? "session/load" : "session/resume", start->conversation, start);
	return load ? STEP_REPLAYS : STEP_SENT;
}

/* The protocol has no list of them. */
const char *acp_start_strict_mode(struct span mode) {
	static const char *const modes[] = {"plan", "dontAsk", "read-only"};
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (span_equals(mode, modes[i])) return modes[i];
	return NULL;
}

/* Return the mode that the conversation was in; absent: it is not known. */
static struct span wanted_mode(const struct memo *m) {
	struct span mode = memo_get(m, "strict");
	if (!mode.p) mode = acp_start_mode(memo_get(m, MODE));
	return mode.p ? mode : acp_start_mode(memo_get(m, OPTIONS));
}

/* Note the settings for a child that goes on with the conversation, before it reports its own. */
static void note_wanted(const struct dialect_start *start) {
	struct memo *m = start->memo;
	bool goes_on = start->conversation != NULL;
	memo_set(m, "~mode", goes_on ? wanted_mode(m) : SPAN_NONE);
	if (!goes_on) memo_set(m, "strict", SPAN_NONE);
	memo_set(m, "~options", goes_on ? span_member(memo_get(m, OPTIONS), "configOptions") : SPAN_NONE);
	for (size_t i = 0; i < ARRAY_SIZE(updates) && !goes_on; i++) memo_set(m, updates[i], SPAN_NONE);
}

/* Append a request that sets one value of the session. */
static void put_setting(struct buf *b, const char *id, const char *method, const char *conversation, const char *member,
						struct span value, struct span config) {
	struct buf o = BUF_INIT(SIZE_MAX / 4);
	buf_puts(&o, "{\"sessionId\":");
	str_put_json(&o, conversation, strlen(conversation));
	if (config.p) buf_puts(&o, ",\"configId\":"), buf_put(&o, config.p, config.n);
	buf_printf(&o, ",\"%s\":", member);
	buf_put(&o, value.p, value.n);
	buf_putc(&o, '}');
	if (!o.failed) jsonrpc_put_request(b, JSONRPC_HEAD, id, method, o.data);
	b->failed |= o.failed;
	buf_free(&o);
}

static struct span by_id(struct span array, struct span id) {
	struct span one;
	for (size_t at = 0; span_next(array, &at, &one);)
		if (span_same(span_member(one, "id"), id)) return one;
	return SPAN_NONE;
}

static void set_update(struct memo *memo, const char *name, const char *member, struct span value) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	buf_printf(&b, "{\"sessionUpdate\":\"%s\",\"%s\":", name, member);
	buf_put(&b, value.p, value.n);
	buf_putc(&b, '}');
	if (value.p && !b.failed) memo_set(memo, name, (struct span){b.data, b.len});
	buf_free(&b);
}

/* The agent is in the strict mode: note it as an agent's own report would be. options: as they are now, or absent. */
static void take_strict(struct memo *memo, struct span options) {
	if (!memo_get(memo, "strict").p) return;
	if (span_member(memo_get(memo, "session"), "modes").p)
		set_update(memo, MODE, "currentModeId", memo_get(memo, "strict"));
	set_update(memo, OPTIONS, "configOptions", options);
	memo_set(memo, "strict", SPAN_NONE);
}

/* Set the mode, also a strict one that the agent does not offer: it must refuse that.
 *
 * An agent may send the rest of its replay after the reply to session/load (protocol-facts 9.5). It has sent that when
 * it answers a further request: this one, then also if the mode is right. */
static bool put_mode(struct buf *b, const char *id, const struct dialect_start *start) {
	struct memo *m = start->memo;
	struct span session = memo_get(m, "session"), wanted = memo_get(m, "~mode"), mode = span_of("\"mode\"");
	struct span modes = span_member(session, "modes");
	struct span option = modes.p ? SPAN_NONE : by_id(span_member(session, "configOptions"), mode);
	struct span now = modes.p ? span_member(modes, "currentModeId") : span_member(option, "currentValue");
	bool there = option.p || by_id(span_member(modes, "availableModes"), wanted).p;
	bool changes = wanted.p && (there || acp_start_strict_mode(wanted)) && !span_same(now, wanted);
	bool due = changes || (memo_get(m, "~rest").p && modes.p && now.p);
	if (due && option.p)
		put_setting(b, id, "session/set_config_option", start->conversation, "value", wanted, mode);
	else if (due)
		put_setting(b, id, "session/set_mode", start->conversation, "modeId", changes ? wanted : now, SPAN_NONE);
	if (changes) memo_set(m, "~rest", SPAN_NONE);
	if (!changes) take_strict(m, span_member(session, "configOptions"));
	memo_set(m, "~mode", SPAN_NONE);
	return due;
}

/* Take elements of the wanted options up to the first one that differs. Return true if a request for it was appended.
 */
static bool put_option(struct buf *b, const char *id, const struct dialect_start *start) {
	struct memo *m = start->memo;
	struct span all = memo_get(m, "~options"), now = span_member(memo_get(m, "session"), "configOptions"), one;
	struct buf rest = BUF_INIT(SIZE_MAX / 4);
	bool due = false;
	for (size_t at = 0, n = 0; n < OPTIONS_SET && span_next(all, &at, &one); n++) {
		if (due) { /* for the next steps */
			buf_putc(&rest, rest.len ? ',' : '[');
			buf_put(&rest, one.p, one.n);
			continue;
		}
		struct span name = span_member(one, "id"), value = span_member(one, "currentValue");
		bool known = name.p && value.p && !span_equals(name, "mode"); /* put_mode() sets that */
		struct span there = known ? span_member(by_id(now, name), "currentValue") : SPAN_NONE;
		due = there.p && !span_same(there, value);
		if (due) put_setting(b, id, "session/set_config_option", start->conversation, "value", value, name);
	}
	if (rest.len) buf_putc(&rest, ']');
	memo_set(m, "~options", rest.len && !rest.failed ? (struct span){rest.data, rest.len} : SPAN_NONE);
	buf_free(&rest);
	return due;
}

enum dialect_step acp_start_put(struct buf *b, const char *id, unsigned n, const struct dialect_start *start) {
	struct dialect_start anew = {.cwd = start->cwd, .memo = start->memo};
	if (n == 0) {
		note_wanted(start);
		memo_set(start->memo, ANEW, SPAN_NONE);
		jsonrpc_put_request(b, JSONRPC_HEAD, id, "initialize",
							"{\"protocolVersion\":1,\"clientCapabilities\":{\"fs\":{\"readTextFile\":false,"
							"\"writeTextFile\":false},\"terminal\":false},\"clientInfo\":{\"name\":\"plenum\","
							"\"title\":\"Plenum\",\"version\":\"" PLENUM_VERSION "\"}}");
		return STEP_SENT;
	}
	if (n == 1) return put_conversation(b, id, start);
	if (memo_get(start->memo, ANEW).p && --n == 1) return put_conversation(b, id, &anew);
	if (!start->conversation) return STEP_NONE;
	bool rest = span_is_true(memo_get(start->memo, "~rest"));
	if (n == 2 && put_mode(b, id, start)) return rest ? STEP_REPLAYS : STEP_SENT;
	return put_option(b, id, start) ? STEP_SENT : STEP_NONE;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static bool refuse(struct buf *why, const char *what, const struct envelope *e) {
	_cleanup_free_ char *more = span_dup(span_member(span_member(e->is_error, "data"), "details"), NULL);
	jsonrpc_put_refusal(why, what, e);
	if (more) buf_puts(why, ", "), buf_puts(why, more);
	return false;
}

/* The next try begins without the settings, but not in a laxer mode. */
static bool refuse_settings(struct memo *memo, const struct envelope *e, struct buf *why) {
	const char *strict = acp_start_strict_mode(wanted_mode(memo));
	refuse(why, "did not take back the mode or an option of the session", e);
	if (strict)
		buf_printf(why,
				   " (it was in the mode %s, and no prompt of it runs in a laxer one: to leave that mode, resume the "
				   "conversation in a new session)",
				   strict);
	memo_set(memo, "strict", strict ? wanted_mode(memo) : SPAN_NONE);
	memo_set(memo, MODE, SPAN_NONE);
	memo_set(memo, OPTIONS, SPAN_NONE);
	return false;
}

static bool take_conversation(const struct envelope *e, struct memo *memo, struct buf *why) {
	bool begins = memo_get(memo, NEW).p, lost = e->is_error.p && !begins && memo_get(memo, FRESH).p;
	memo_set(memo, NEW, SPAN_NONE);
	if (lost) { /* its mode and options are set again, and there are no lines to repeat */
		memo_set(memo, ANEW, span_of("true"));
		memo_set(memo, "~rest", SPAN_NONE);
		return true;
	}
	if (e->is_error.p) {
		memo_set(memo, "params", SPAN_NONE);
		return refuse(why, "did not begin the conversation", e);
	}
	memo_set(memo, "session", e->inner_response);
	if (begins) memo_set(memo, FRESH, span_of("true"));
	return true;
}

bool acp_start_take(unsigned n, const struct envelope *e, struct memo *memo, struct buf *why) {
	int64_t version;
	if (n == 0) {
		if (e->is_error.p) return refuse(why, "refused initialize", e);
		if (!span_int(span_member(e->inner_response, "protocolVersion"), &version) || version != 1) {
			buf_puts(why, "the agent does not speak version 1 of the Agent Client Protocol");
			return false;
		}
		memo_set(memo, "initialize", e->inner_response);
		return true;
	}
	if (memo_get(memo, ANEW).p) n--;
	if (n == 1) return take_conversation(e, memo, why);
	if (n == 2 && memo_get(memo, "~rest").p) return true;
	if (e->is_error.p) return refuse_settings(memo, e, why);
	take_strict(memo, span_member(e->inner_response, "configOptions"));
	return true;
}

/* --- requests of clients ------------------------------------------------------------------------------------------ */

struct span acp_start_option(struct span holder, const char *id) {
	struct span one;
	for (size_t at = 0; span_next(span_member(holder, "configOptions"), &at, &one);)
		if (span_equals(span_member(one, "id"), id)) return span_member(one, "currentValue");
	return SPAN_NONE;
}

struct span acp_start_model(const struct envelope *e) {
	struct span model = span_member(span_member(e->inner_response, "models"), "currentModelId");
	return model.p ? model : acp_start_option(e->inner_response, "model");
}

struct span acp_start_mode(struct span update) {
	struct span mode = span_member(update, "currentModeId");
	if (!mode.p) mode = acp_start_option(update, "mode");
	return span_is_string(mode) ? mode : SPAN_NONE;
}

/* Append the result of session/new with the present mode and options. */
static void put_result(struct buf *body, const struct memo *memo, struct span conversation) {
	struct span result = memo_get(memo, "session"), key, value;
	struct span mode = span_member(memo_get(memo, MODE), "currentModeId");
	struct span options = span_member(memo_get(memo, OPTIONS), "configOptions");
	buf_puts(body, "{\"sessionId\":");
	buf_put(body, conversation.p, conversation.n);
	for (size_t at = 0; span_next_member(result, &at, &key, &value);) {
		struct span was = span_equals(key, "modes") && mode.p ? span_member(value, "currentModeId") : SPAN_NONE;
		if (span_equals(key, "sessionId")) continue;
		if (span_equals(key, "configOptions") && options.p) value = options;
		buf_putc(body, ',');
		buf_put(body, key.p, key.n);
		buf_putc(body, ':');
		if (!was.p) {
			buf_put(body, value.p, value.n);
			continue;
		}
		buf_put(body, value.p, (size_t)(was.p - value.p));
		buf_put(body, mode.p, mode.n);
		buf_put(body, was.p + was.n, (size_t)(value.p + value.n - was.p - was.n));
	}
	buf_putc(body, '}');
}

static void put_known(struct buf *body, const struct dialect_ask *ask) {
	struct buf id = BUF_INIT(SIZE_MAX / 4);
	str_put_json(&id, ask->conversation, strlen(ask->conversation));
	if (!id.failed) put_result(body, ask->memo, (struct span){id.data, id.len});
	body->failed |= id.failed;
	buf_free(&id);
}

/* Begin the conversation as this client asks for. */
static enum dialect_kept begin(struct dialect_ask *ask, const char **error) {
	enum dialect_kept kept = dialect_ask_may_begin(ask, memo_get(ask->memo, "params").p, error);
	if (kept == KEPT_FORBIDDEN) return kept;
	if (!span_is_object(ask->e->request)) {
		*error = "`params` must be an object with `cwd` and `mcpServers`";
		return KEPT_REFUSED;
	}
	if (kept != KEPT_LATER) return kept;
	memo_set(ask->memo, "params", ask->e->request);
	memo_set(ask->memo, "~fork", span_equals(ask->e->inner_subtype, "session/fork") ? ask->e->session_id : SPAN_NONE);
	ask->cwd = span_member(ask->e->request, "cwd");
	return KEPT_LATER;
}

static enum dialect_kept on_load(struct dialect_ask *ask, struct buf *body, const char **error, bool replay) {
	if (!ask->again && !dialect_ask_names_own(ask)) {
		enum dialect_kept kept = begin(ask, error);
		if (kept == KEPT_LATER) ask->resumes = ask->e->session_id;
		return kept;
	}
	if (ask->again ? !ask->ready : replay && !ask->told && !ask->ready) return KEPT_LATER;
	put_known(body, ask);
	return replay && !ask->again ? KEPT_REPLAY : KEPT_ANSWER;
}

bool acp_start_takes_up(const struct envelope *e) {
	return span_equals(e->inner_subtype, "session/load") || span_equals(e->inner_subtype, "session/resume");
}

enum dialect_kept acp_start_kept(struct dialect_ask *ask, struct buf *body, const char **error) {
	struct span method = ask->e->inner_subtype, known = memo_get(ask->memo, "initialize");
	if (span_equals(method, "initialize")) {
		buf_put(body, known.p ? known.p : "", known.n);
		return known.p ? KEPT_ANSWER : KEPT_LATER;
	}
	if (span_equals(method, "session/load")) return on_load(ask, body, error, true);
	if (span_equals(method, "session/resume")) return on_load(ask, body, error, false);
	if (!ask->again) return begin(ask, error);
	if (!ask->ready || !ask->conversation) return KEPT_LATER;
	put_known(body, ask);
	return KEPT_ANSWER;
}

/* --- updates ------------------------------------------------------------------------------------------------------ */

/* Some agents report their mode only as an option. */
static void note_mode(struct memo *memo, struct span update) {
	struct span mode = acp_start_mode(update);
	if (span_member(memo_get(memo, "session"), "modes").p) set_update(memo, MODE, "currentModeId", mode);
}

bool acp_start_remember(struct memo *memo, const struct envelope *e) {
	/* The answer to a prompt: one that was cancelled may have left nothing. */
	struct span reason = span_member(e->inner_response, "stopReason");
	if (reason.p && !span_equals(reason, "cancelled")) memo_set(memo, FRESH, SPAN_NONE);
	for (size_t i = 0; e->subtype.p && i < ARRAY_SIZE(updates); i++) {
		if (!span_equals(e->subtype, updates[i] + (*updates[i] == MEMO_BRIEF))) continue;
		struct span update = span_member(e->request, "update");
		memo_set(memo, updates[i], update);
		if (span_equals(e->subtype, OPTIONS)) note_mode(memo, update);
		return true;
	}
	return false;
}

void acp_start_remember_change(struct memo *memo, const char *what, struct span value, const struct envelope *answer) {
	if (strcmp(what, PLENUM_WHAT_MODE) == 0) set_update(memo, MODE, "currentModeId", value);
	set_update(memo, OPTIONS, "configOptions", span_member(answer->inner_response, "configOptions"));
	note_mode(memo, answer->inner_response);
}

void acp_start_put_noted(struct buf *b, const struct memo *memo, const char *conversation) {
	for (size_t i = 0; i < ARRAY_SIZE(updates); i++) {
		struct span update = memo_get(memo, updates[i]);
		if (!update.p) continue;
		buf_puts(b, JSONRPC_HEAD "\"method\":\"session/update\",\"params\":{\"sessionId\":");
		str_put_json(b, conversation, strlen(conversation));
		buf_puts(b, ",\"update\":");
		buf_put(b, update.p, update.n);
		buf_puts(b, "}}\n");
	}
}

int64_t acp_start_cost(const struct memo *memo) {
	struct span cost = span_member(memo_get(memo, "~usage_update"), "cost");
	bool usd = span_equals(span_member(cost, "currency"), "USD");
	return usd ? dialect_turn_nano_usd(span_member(cost, "amount")) : TURN_UNKNOWN;
}
