/* SPDX-License-Identifier: MIT
 *
 * The verbs that ask the daemon one thing about one session: new, interrupt, sleep, stop, clear-lost, queue.
 */
#include "ctl/column.h"
#include "ctl/follow.h"
#include "ctl/pick.h"
#include "ctl/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- new ---------------------------------------------------------------------------------------------------------- */

/* NAME=VALUE words as an object; false: one of them is none. */
static bool env_object(json_t *words, json_t *env) {
	json_t *word;
	size_t i;
	json_array_foreach(words, i, word) {
		const char *text = json_string_value(word), *equals = text ? strchr(text, '=') : NULL;
		if (!equals || equals == text) return false;
		_cleanup_free_ char *name = strndup(text, (size_t)(equals - text));
		json_object_set_new(env, name, json_string(equals + 1));
	}
	return true;
}

int cmd_new(struct ctl *c, int argc, char **argv) {
	const char *profile = NULL, *cwd = NULL, *resume = NULL;
	bool fork = false;
	_cleanup_json_ json_t *words = json_array();
	const struct ctl_option options[] = {
		{"profile", 'p', "NAME", "the recipe for its agent (plenum.conf(5))", .value = &profile},
		{"cwd", 'C', "DIRECTORY", "its working directory (default: this one)", .value = &cwd},
		{"env", 'E', "NAME=VALUE", "a variable of its agent; may be given several times", .list = &words},
		{"resume", 'r', "ID", "go on with this conversation", .value = &resume},
		{"fork", 0, NULL, "with --resume: on a copy of it", .flag = &fork},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 0, INT_MAX);
	if (code != CTL_GO) return code;
	char room[PATH_MAX];
	ctl_absolute(&cwd, room);
	_cleanup_json_ json_t *env = json_object(), *args = json_array();
	if (c->before > 1) return ctl_usage(c, "new: unexpected argument: %s (the agent's own follow --)", argv[1]);
	if (fork && !resume) return ctl_usage(c, "new: --fork needs --resume, the conversation to copy");
	if (!env_object(words, env)) return ctl_usage(c, "new: --env: not NAME=VALUE");
	for (int i = c->before; i < argc; i++) json_array_append_new(args, json_string(argv[i]));
	json_t *members = json_pack("{s:s,s:b,s:s*,s:s*,s:s*}", "create", "new", "approve", 0, "profile", profile, "cwd",
								cwd, "resume", resume);
	if (fork) json_object_set_new(members, "fork", json_true());
	if (json_object_size(env)) json_object_set(members, "env", env);
	if (json_array_size(args)) json_object_set(members, "args", args);
	_cleanup_json_ json_t *answer = NULL;
	_cleanup_plenum_ struct plenum *p = ctl_open(c);
	const char *name = c->before ? argv[0] : NULL;
	code = follow_to(p, name, members, &answer);
	if (code != CTL_OK) return code;
	pick_remember(ctl_str(answer, "session", "-"));
	if (c->json) return ctl_print_json(answer);
	puts(ctl_str(answer, "session", name ? name : "?"));
	return CTL_OK;
}

/* --- Ends --------------------------------------------------------------------------------------------------------- */

/* Asks for it and waits until it has happened. members is consumed. */
static int end_session(struct ctl *c, const char *name, const char *verb, json_t *members, const char *done,
					   bool forget) {
	_cleanup_json_ json_t *owned = members, *answer = NULL;
	_cleanup_plenum_ struct plenum *p = NULL;
	json_t *one;
	size_t i;
	int code = pick_open(c, &name, &p);
	json_object_set_new(owned, "session", json_string(name));
	if (code == CTL_OK) code = ctl_ask(p, PLENUM_SUBSCRIBE, NULL, NULL);
	if (code == CTL_OK) code = ctl_ask(p, verb, json_incref(owned), &answer);
	if (code != CTL_OK) return code;
	const char *session = ctl_str(answer, "session", "?");
	if (ctl_bool(answer, "stopping")) code = follow_to_end(p, session, forget);
	if (code != CTL_OK) return code;
	if (c->json) return ctl_print_json(answer);
	text_print(stdout, session, strlen(session));
	printf(" %s\n", done);
	fflush(stdout);
	/* Detached processes, which the end of the agent does not end by itself. */
	json_array_foreach(ctl_array(answer, "leftovers"), i, one)
		ctl_say("%s: %s (pid %lld)", ctl_bool(answer, "end_leftovers") ? "ended with it" : "goes on",
				ctl_str(one, "program", "?"), (long long)ctl_int(one, "pid"));
	return CTL_OK;
}

/* Prints what the sleep of a session ends, from its status. Return how much that is. */
static size_t say_losses(json_t *status) {
	json_t *tasks = ctl_array(status, "tasks"), *timers = ctl_array(status, "timers"), *one;
	size_t i;
	json_array_foreach(tasks, i, one) ctl_say("sleep would end: %s (%s)", ctl_str(one, "description", "a task"),
											  ctl_str(one, "task_type", "in the background"));
	json_array_foreach(timers, i, one)
		ctl_say("%s: %s (%s)", json_is_string(json_object_get(one, "id")) ? "it would not fire" : "sleep would end",
				ctl_str(one, "prompt", "a timer"), ctl_str(one, "schedule", "a wake-up"));
	bool unknown = json_is_null(json_object_get(status, "tasks"));
	if (unknown) ctl_say("sleep would end: more tasks than the daemon keeps a list of");
	return json_array_size(tasks) + json_array_size(timers) + unknown;
}

/* Is the session to sleep, whatever that ends? CTL_GO: yes, *force says whether that was asked. */
static int confirm_sleep(struct ctl *c, const char *session, bool *force) {
	_cleanup_json_ json_t *status = NULL;
	int code = pick_ask(c, session, PLENUM_STATUS, &status);
	session = ctl_str(status, "session", session);
	if (code != CTL_OK) return code;
	if (strcmp(ctl_str(status, "state", ""), PLENUM_ST_IDLE) != 0 || !say_losses(status)) return CTL_GO;
	if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {
		char text[64];
		fputs("put it to sleep all the same? [y/N] ", stderr);
		*force = fgets(text, sizeof text, stdin) && (*text == 'y' || *text == 'Y');
	}
	if (*force) return CTL_GO;
	ctl_say("session %s: stays awake (--force puts it to sleep)", session);
	return CTL_REFUSED;
}

int cmd_sleep(struct ctl *c, int argc, char **argv) {
	bool force = false;
	const struct ctl_option options[] = {
		{"force", 'f', NULL, "also if that ends tasks or timers; do not ask", .flag = &force},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 1, 1);
	if (code == CTL_GO && !force) code = confirm_sleep(c, argv[0], &force);
	if (code != CTL_GO) return code;
	return end_session(c, argv[0], PLENUM_HIBERNATE, json_pack("{s:b}", "force", (int)force), "sleeps", false);
}

int cmd_stop(struct ctl *c, int argc, char **argv) {
	bool now = false, forget = false;
	const struct ctl_option options[] = {
		{"kill", 'k', NULL, "at once, without the steps of a graceful end", .flag = &now},
		{"forget", 'f', NULL, "and take it from the list; its conversation stays with the agent", .flag = &forget},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 1, 1);
	if (code != CTL_GO) return code;
	json_t *members = json_pack("{s:s,s:b}", "how", now ? "kill" : "graceful", "forget", (int)forget);
	return end_session(c, argv[0], PLENUM_STOP, members, forget ? "removed" : "stopped", forget);
}

int cmd_clear_lost(struct ctl *c, int argc, char **argv) {
	bool all = false;
	const struct ctl_option options[] = {
		{"all", 'a', NULL, "all sessions, and those that will be made", .flag = &all},
		{0},
	};
	_cleanup_json_ json_t *answer = NULL;
	int code = ctl_options(c, options, &argc, &argv, 0, 1);
	if (code != CTL_GO) return code;
	if (all == (argc == 1)) return ctl_usage(c, "clear-lost: one of SESSION and --all is needed");
	code = all ? ctl_ask_once(c, PLENUM_CLEAR_LOST, json_pack("{s:b}", "daemon", 1), &answer)
			   : pick_ask(c, argv[0], PLENUM_CLEAR_LOST, &answer);
	if (code != CTL_OK) return code;
	if (c->json) return ctl_print_json(answer);
	json_t *name, *cleared = ctl_array(answer, "cleared");
	size_t i;
	json_array_foreach(cleared, i, name) {
		text_print(stdout, json_string_value(name), json_string_length(name));
		puts(" goes on without the guards that were lost");
	}
	if (ctl_bool(answer, "daemon"))
		puts("new sessions may run tools again");
	else if (json_array_size(cleared) == 0)
		puts("no guards were lost");
	return CTL_OK;
}

/* The agent answers alike whether a turn ran or not; the session's state when we attached tells. One that starts has a
 * prompt, or who would interrupt it? */
static bool runs(const char *state) {
	return strcmp(state, "busy") == 0 || strcmp(state, "asking") == 0 || strcmp(state, "starting") == 0;
}

/* Learn the name of the turn that runs from the lines that the session keeps. */
static int learn_turn(struct ctl *c, const char *session, struct speech_turn *t) {
	_cleanup_json_ json_t *answer = NULL;
	_cleanup_plenum_ struct plenum *p = ctl_open(c);
	struct incoming in;
	int64_t seq = 0;
	int code = follow_to(
		p, session, json_pack("{s:s,s:s,s:s,s:b}", "create", "never", "role", "observer", "replay", "all", "tag", 1),
		&answer);
	int64_t last = ctl_int(answer, "seq") - 1;
	if (code != CTL_OK || last < ctl_int(answer, "oldest_seq")) return code;
	while (seq < last) {
		enum plenum_result r = follow_next(p, CTL_ANSWER_TIME, &in);
		if (r != PLENUM_OK) return ctl_failed(p, r);
		follow_seq(&in, &seq);
		in.speech->ends(t, &in);
	}
	return CTL_OK;
}

/* Its answer is not of use: the daemon has read it when it answers the next request. */
static int interrupt(struct ctl *c, struct plenum *p, const char *session) {
	struct speech_turn t = {0};
	int code = speech_of(p)->names_turns ? learn_turn(c, session, &t) : CTL_OK;
	if (code != CTL_OK) return code;
	enum plenum_result r = speech_of(p)->interrupt(p, &t);
	return r == PLENUM_OK ? ctl_ask(p, PLENUM_HELLO, NULL, NULL) : ctl_failed(p, r);
}

int cmd_interrupt(struct ctl *c, int argc, char **argv) {
	bool queued = false, all = false;
	const struct ctl_option options[] = {
		{"cancel-queued", 'q', NULL, "also drop the prompts that wait behind it", .flag = &queued},
		{"all", 0, NULL, "with --cancel-queued: those of other clients too", .flag = &all},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 1, 1);
	if (code != CTL_GO) return code;
	if (all && !queued) return ctl_usage(c, "interrupt: --all needs --cancel-queued");
	_cleanup_json_ json_t *attached = NULL, *answer = NULL;
	_cleanup_plenum_ struct plenum *p = NULL;
	const char *session = argv[0];
	code = pick_attach(c, &session, &p, &attached);
	if (code != CTL_OK) return code;
	const char *state = ctl_str(attached, "state", "");
	bool asks = speech_of(p)->take_back != NULL;
	if (queued && !asks) {
		ctl_say("session %s: its agent keeps no queue of prompts that could be dropped", session);
		return CTL_REFUSED;
	}
	json_t *members = json_object();
	if (queued) json_object_set_new(members, "cancel_queued", json_true());
	if (all) json_object_set_new(members, "plenum_all", json_true());
	bool there = ctl_int(attached, "pid");
	if (there && asks) {
		code = ctl_ask(p, "interrupt", members, &answer);
	} else {
		json_decref(members);
		if (there) code = interrupt(c, p, session);
		answer = json_pack("{s:s,s:s}", "session", session, "state", state);
	}
	if (code != CTL_OK) return code;
	if (c->json) return ctl_print_json(answer);
	if (runs(state))
		printf("%s interrupted\n", session);
	else
		printf("nothing ran in %s: it is %s\n", session, state);
	return CTL_OK;
}

/* --- queue -------------------------------------------------------------------------------------------------------- */

/* Whether the daemon holds it or the agent does. */
static int cancel_prompt(struct ctl *c, const char *session, const char *uuid) {
	_cleanup_json_ json_t *attached = NULL, *answer = NULL;
	_cleanup_plenum_ struct plenum *p = NULL;
	int code = pick_attach(c, &session, &p, &attached);
	if (code != CTL_OK) return code;
	if (!speech_of(p)->take_back) {
		ctl_say("session %s: its agent takes no prompt back", session);
		return CTL_REFUSED;
	}
	json_t *members = json_pack("{s:s,s:b}", "message_uuid", uuid, "plenum_all", 1);
	code = ctl_ask(p, "cancel_async_message", members, &answer);
	if (code != CTL_OK) return code;
	bool cancelled = ctl_bool(answer, "cancelled");
	if (c->json)
		ctl_print_json(answer);
	else if (cancelled)
		printf("%s cancelled\n", uuid);
	else
		ctl_say("session %s: no prompt %s waits (`plenumctl queue` lists those that do)", session, uuid);
	return cancelled ? CTL_OK : CTL_REFUSED;
}

int cmd_queue(struct ctl *c, int argc, char **argv) {
	static const struct column columns[] = {
		{"STATE", "state", COLUMN_WORD, "?"},
		{"SINCE", "since_ms", COLUMN_AGE},
		{"CLIENT", "name", COLUMN_WORD, "-"},
		{"PROMPT", "uuid", COLUMN_WORD, "?"},
	};
	struct table t = TABLE(ARRAY_SIZE(columns));
	const char *cancel = NULL;
	const struct ctl_option options[] = {
		{"cancel", 'c', "PROMPT", "take this one back before its turn", .value = &cancel},
		{0},
	};
	_cleanup_json_ json_t *answer = NULL;
	int code = ctl_options(c, options, &argc, &argv, 1, 1);
	if (code != CTL_GO) return code;
	if (cancel) return cancel_prompt(c, argv[0], cancel);
	code = pick_ask(c, argv[0], PLENUM_QUEUE, &answer);
	if (code != CTL_OK) return code;
	if (c->json) return ctl_print_json(answer);
	json_t *list = ctl_array(answer, "prompts");
	if (json_array_size(list) == 0) {
		puts("no prompt is queued");
		return CTL_OK;
	}
	column_fill(&t, columns, list, SIZE_MAX);
	table_print(&t, stdout);
	table_free(&t);
	return CTL_OK;
}
