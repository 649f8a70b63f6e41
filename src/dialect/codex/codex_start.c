/* SPDX-License-Identifier: MIT
 *
 * The handshake with an agent: initialize and initialized, then thread/start or thread/resume, then the settings of
 * the thread. The memo has:
 *
 *   initialize   the result of initialize
 *   params       the params of the client that began the thread
 *   thread       the result of thread/start or thread/resume
 *   ~fork        the thread that the first child is to fork
 *   settings     the params of the newest thread/settings/updated
 *   strict       of refused settings those that are never dropped, in the same form; until there are settings again
 *   ~name, ...   the same of other notifications (notes)
 *   ~turn        the id of the newest turn
 *   unused       the thread has had no turn: the agent does not have it on its disk
 *   ~new         this step begins a thread
 *   ~anew        the agent has lost an unused one: the step was taken again, with a new one
 */
#include "dialect/codex/codex.h"

#include "base/macros.h"
#include "base/str.h"
#include "dialect/dialect_ask.h"
#include "dialect/jsonrpc.h"

#include <string.h>

#define SETTINGS "settings"
#define STRICT "strict"
#define FRESH "unused"
#define NEW "~new"
#define ANEW "~anew"
#define MUTES_MAX 256        /* of a client */
#define MUTE_MAX 200         /* bytes */
#define NOTES_OF_ONE_KIND 64 /* the oldest one goes */

/* Notifications for clients that come later: the newest one, or the newest one with each value of the member `by`. */
static const struct note {
	const char *method, *name, *by;
	bool thread; /* it is about the thread; else about the agent's process, and the next one sends its own */
} notes[] = {
	{"thread/settings/updated", SETTINGS, NULL, true},
	{"thread/name/updated", "~name", NULL, true},
	{"thread/tokenUsage/updated", "~usage", NULL, true},
	{"thread/status/changed", "~status", NULL, true},
	{"configWarning", "~warnings", "summary", false},
	{"deprecationNotice", "~deprecations", "summary", false},
	{"account/updated", "~account", NULL, false},
	{"account/rateLimits/updated", "~limits", NULL, false},
	{"account/gatewayOAuth/changed", "~gateways", "providerId", false},
	{"app/list/updated", "~apps", NULL, false},
	{"remoteControl/status/changed", "~remote", NULL, false},
	{"mcpServer/startupStatus/updated", "~servers", "name", false},
};

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* Append the members of an object but these (with `only`: these alone), each with a comma before it. */
static void put_members(struct buf *b, struct span object, const char *const *names, bool only) {
	struct span key, value;
	for (size_t at = 0; span_next_member(object, &at, &key, &value);)
		if (span_is_one_of(key, names) == only) span_put_member(b, key, value);
}

/* The daemon needs no history: it has the lines, and a client that wants it asks the agent. */
static void put_params(struct buf *o, struct span params, const struct dialect_start *start) {
	static const char *const own[] = {"threadId", "excludeTurns", "cwd", NULL};
	struct span cwd = span_member(params, "cwd");
	if (start->conversation && !cwd.p) cwd = span_member(memo_get(start->memo, "thread"), "cwd"); /* of a fork */
	buf_puts(o, "{\"cwd\":");
	if (span_is_string(cwd))
		buf_put(o, cwd.p, cwd.n);
	else
		str_put_json(o, start->cwd, strlen(start->cwd));
	if (start->conversation) {
		buf_puts(o, ",\"excludeTurns\":true,\"threadId\":");
		str_put_json(o, start->conversation, strlen(start->conversation));
	}
	put_members(o, params, own, false);
	buf_putc(o, '}');
}

static void put_thread(struct buf *b, const char *id, const struct dialect_start *start) {
	struct span params = memo_get(start->memo, "params");
	struct span fork = start->conversation ? SPAN_NONE : memo_get(start->memo, "~fork");
	const char *method = start->conversation ? "thread/resume" : fork.p ? "thread/fork" : "thread/start";
	memo_set(start->memo, NEW, start->conversation || fork.p ? SPAN_NONE : span_of("true"));
	struct buf o = BUF_INIT(SIZE_MAX / 4);
	if (fork.p) { /* the first client's own request names the thread; the agent knows the directory of that */
		static const char *const own[] = {"threadId", NULL};
		buf_puts(&o, "{\"threadId\":");
		buf_put(&o, fork.p, fork.n);
		put_members(&o, params, own, false);
		buf_putc(&o, '}');
	} else {
		put_params(&o, params, start);
	}
	if (!o.failed) jsonrpc_put_request(b, JSONRPC_BARE_HEAD, id, method, o.data);
	b->failed |= o.failed;
	buf_free(&o);
}

/* Keep those of refused settings by which the agent asks more: the next try begins without the others. */
static void keep_strict(struct memo *memo) {
	static const char *const lax[] = {"never", "on-failure", NULL};
	struct span all = memo_get(memo, SETTINGS).p ? memo_get(memo, SETTINGS) : memo_get(memo, STRICT);
	struct span settings = span_member(all, "threadSettings"), key, value;
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	for (size_t at = 0; span_next_member(settings, &at, &key, &value);) {
		bool asks = span_equals(key, "approvalPolicy") && !span_is_one_of(value, lax);
		bool person = span_equals(key, "approvalsReviewer") && span_equals(value, "user");
		bool fence = span_equals(key, "sandboxPolicy") && !span_equals(span_member(value, "type"), "dangerFullAccess");
		if (asks || person || fence) span_put_member(&b, key, value);
	}
	_cleanup_free_ char *text = b.len && !b.failed ? str_printf("{\"threadSettings\":{%s}}", b.data + 1) : NULL;
	memo_set(memo, STRICT, span_of(text));
	memo_set(memo, SETTINGS, SPAN_NONE);
	buf_free(&b);
}

/* Set the settings of the thread again: clients may have changed them since it began. */
static enum dialect_step put_settings(struct buf *b, const char *id, const struct dialect_start *start) {
	static const char *const kept[] = {"approvalPolicy", "approvalsReviewer", "collaborationMode", "effort",  "model",
									   "personality",    "sandboxPolicy",     "serviceTier",       "summary", NULL};
	struct span known = memo_get(start->memo, SETTINGS), strict = memo_get(start->memo, STRICT);
	struct span settings = span_member(known.p ? known : strict, "threadSettings");
	struct buf o = BUF_INIT(SIZE_MAX / 4);
	if (!settings.p || !start->conversation) return STEP_NONE;
	buf_puts(&o, "{\"threadId\":");
	str_put_json(&o, start->conversation, strlen(start->conversation));
	put_members(&o, settings, kept, true);
	buf_putc(&o, '}');
	if (!o.failed) jsonrpc_put_request(b, JSONRPC_BARE_HEAD, id, "thread/settings/update", o.data);
	b->failed |= o.failed;
	buf_free(&o);
	return STEP_SENT;
}

enum dialect_step codex_start_put(struct buf *b, const char *id, unsigned n, const struct dialect_start *start) {
	struct dialect_start anew = {.cwd = start->cwd, .memo = start->memo};
	bool again = n > 1 && memo_get(start->memo, ANEW).p;
	if (again && --n == 1) start = &anew;
	switch (n) {
	case 0:
		for (size_t i = 0; i < ARRAY_SIZE(notes); i++)
			if (!notes[i].thread || !start->conversation) memo_set(start->memo, notes[i].name, SPAN_NONE);
		if (!start->conversation) memo_set(start->memo, STRICT, SPAN_NONE);
		memo_set(start->memo, ANEW, SPAN_NONE);
		/* experimentalApi: the members and methods without it are a part of those with it. */
		jsonrpc_put_request(b, JSONRPC_BARE_HEAD, id, "initialize",
							"{\"clientInfo\":{\"name\":\"plenum\",\"title\":\"Plenum\",\"version\":\"" PLENUM_VERSION
							"\"},\"capabilities\":{\"experimentalApi\":true}}");
		return STEP_SENT;
	case 1:
		if (!start->conversation && start->waits && !memo_get(start->memo, "params").p) return STEP_WAITS;
		if (!again) jsonrpc_put_notification(b, JSONRPC_BARE_HEAD, "initialized", "{}");
		put_thread(b, id, start);
		return STEP_SENT;
	case 2:
		return put_settings(b, id, start);
	default:
		return STEP_NONE;
	}
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static bool refuse(struct buf *why, const char *what, const struct envelope *e) {
	jsonrpc_put_refusal(why, what, e);
	return false;
}

static bool take_thread(const struct envelope *e, struct memo *memo, struct buf *why) {
	bool begins = memo_get(memo, NEW).p, lost = e->is_error.p && !begins && memo_get(memo, FRESH).p;
	memo_set(memo, NEW, SPAN_NONE);
	if (lost) memo_set(memo, ANEW, span_of("true"));
	if (lost) return true;
	memo_set(memo, "thread", e->inner_response);
	if (begins && !e->is_error.p) memo_set(memo, FRESH, span_of("true"));
	if (!e->is_error.p) return true;
	memo_set(memo, "params", SPAN_NONE);
	return refuse(why, "did not begin the thread", e);
}

bool codex_start_take(unsigned n, const struct envelope *e, struct memo *memo, struct buf *why) {
	if (n == 0) {
		if (e->is_error.p) return refuse(why, "refused initialize", e);
		memo_set(memo, "initialize", e->inner_response);
		return true;
	}
	if (memo_get(memo, ANEW).p) n--;
	if (n == 1) return take_thread(e, memo, why);
	if (!e->is_error.p) return true;
	keep_strict(memo);
	refuse(why, "did not take back the settings of the thread", e);
	if (memo_get(memo, STRICT).p)
		buf_puts(why, " (no prompt of it runs under laxer ones: to leave them, resume the thread in a new session)");
	return false;
}

struct span codex_start_model(const struct envelope *e) {
	return span_member(e->inner_response, "model");
}

/* --- requests of clients ------------------------------------------------------------------------------------------ */

/* Begin the thread as this client asks for. */
static enum dialect_kept begin(struct dialect_ask *ask, const char **error) {
	enum dialect_kept kept = dialect_ask_may_begin(ask, memo_get(ask->memo, "params").p, error);
	if (kept != KEPT_LATER) return kept;
	memo_set(ask->memo, "params", span_is_object(ask->e->request) ? ask->e->request : span_of("{}"));
	memo_set(ask->memo, "~fork", span_equals(ask->e->inner_subtype, "thread/fork") ? ask->e->session_id : SPAN_NONE);
	return KEPT_LATER;
}

/* The agent answers for the thread that it has, with its history. */
static enum dialect_kept on_resume(struct dialect_ask *ask, const char **error) {
	if (ask->again || dialect_ask_names_own(ask)) return ask->ready ? KEPT_PASS : KEPT_LATER;
	enum dialect_kept kept = begin(ask, error);
	if (kept == KEPT_LATER) ask->resumes = ask->e->session_id;
	return kept;
}

/* Read the notifications that this client does not want. Return false for what the agent would not take. */
static bool read_mutes(struct dialect_ask *ask) {
	struct span list = span_member(span_member(ask->e->request, "capabilities"), "optOutNotificationMethods"), one;
	size_t n = 0;
	if (!list.p || span_same(list, span_of("null"))) list = span_of("[]");
	if (!span_is_array(list)) return false;
	for (size_t at = 0; span_next(list, &at, &one); n++)
		if (!span_is_string(one) || one.n > MUTE_MAX || n == MUTES_MAX) return false;
	ask->mutes = list;
	return true;
}

static enum dialect_kept on_initialize(struct dialect_ask *ask, struct buf *body, const char **error) {
	struct span known = memo_get(ask->memo, "initialize");
	if (!read_mutes(ask)) {
		*error = "`optOutNotificationMethods` must be an array of at most 256 names of methods";
		return KEPT_REFUSED;
	}
	buf_put(body, known.p ? known.p : "", known.n);
	return known.p ? KEPT_ANSWER : KEPT_LATER;
}

bool codex_start_takes_up(const struct envelope *e) {
	return span_equals(e->inner_subtype, "thread/resume");
}

enum dialect_kept codex_start_kept(struct dialect_ask *ask, struct buf *body, const char **error) {
	struct span method = ask->e->inner_subtype, thread = memo_get(ask->memo, "thread");
	if (span_equals(method, "initialize")) return on_initialize(ask, body, error);
	if (span_equals(method, "thread/resume")) return on_resume(ask, error);
	if (!ask->again) return begin(ask, error);
	if (!ask->ready || !thread.p) return KEPT_LATER;
	buf_put(body, thread.p, thread.n);
	return KEPT_ANSWER;
}

/* --- notifications ------------------------------------------------------------------------------------------------ */

/* Add the params to an array of those with other values of the member. */
static void note_one_of(struct memo *memo, const struct note *note, struct span params) {
	struct span all = memo_get(memo, note->name), value = span_member(params, note->by), one;
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	size_t n = 0, skip;
	for (size_t at = 0; span_next(all, &at, &one);) n += !span_same(span_member(one, note->by), value);
	skip = n >= NOTES_OF_ONE_KIND ? n - NOTES_OF_ONE_KIND + 1 : 0;
	buf_putc(&b, '[');
	for (size_t at = 0; span_next(all, &at, &one);) {
		if (span_same(span_member(one, note->by), value) || (skip && skip--)) continue;
		buf_put(&b, one.p, one.n);
		buf_putc(&b, ',');
	}
	buf_put(&b, params.p, params.n);
	buf_putc(&b, ']');
	if (!b.failed) memo_set(memo, note->name, (struct span){b.data, b.len});
	buf_free(&b);
}

bool codex_start_remember(struct memo *memo, const struct envelope *e) {
	struct span turn = e->inner_response.p                    ? span_member(e->inner_response, "turn")
					   : span_equals(e->type, "turn/started") ? span_member(e->request, "turn")
															  : SPAN_NONE;
	if (turn.p) memo_set(memo, CODEX_TURN, span_member(turn, "id"));
	if (turn.p) memo_set(memo, FRESH, SPAN_NONE);
	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		if (!span_equals(e->type, notes[i].method)) continue;
		if (notes[i].by)
			note_one_of(memo, &notes[i], e->request);
		else
			memo_set(memo, notes[i].name, e->request);
		return true;
	}
	return false;
}

static void put_note(struct buf *b, const char *method, struct span params) {
	_cleanup_free_ char *text = params.p ? strndup(params.p, params.n) : NULL;
	if (text) jsonrpc_put_notification(b, JSONRPC_BARE_HEAD, method, text);
}

void codex_start_put_noted(struct buf *b, const struct memo *memo, const char *conversation) {
	(void)conversation;
	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		struct span params = memo_get(memo, notes[i].name), one;
		if (!notes[i].by) put_note(b, notes[i].method, params);
		for (size_t at = 0; notes[i].by && span_next(params, &at, &one);) put_note(b, notes[i].method, one);
	}
}
