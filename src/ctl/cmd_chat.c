/* SPDX-License-Identifier: MIT
 *
 * chat: a user at a terminal. The input is a prompt, or the answer to an open question. Ctrl-C interrupts the turn,
 * Ctrl-D leaves; the session goes on. If the daemon goes away, chat waits for it and goes on behind the last line.
 */
#include "base/fd.h"
#include "base/str.h"
#include "ctl/chat.h"
#include "ctl/pick.h"
#include "ctl/text.h"
#include "ctl/wtext.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#define RETRY_TIME 1000 /* ms between two tries to reach the daemon */
#define TICK_TIME 1000  /* ms between two drawings of the status line */

/* --- The screen --------------------------------------------------------------------------------------------------- */

/* Within a key's sequence. */
static bool wait_inside(void *arg) {
	return chat_step(arg);
}

static void close_editor(struct chat *ch) {
	if (!ch->editor) return;
	fflush(ch->show.out);
	screen_close(&ch->screen);
	editor_close(ch->editor);
	ch->editor = NULL;
	ch->show.out = stdout;
	ch->show.mid_line = ch->show.sign = false;
	history_free(&ch->history);
}

void chat_refresh(struct chat *ch) {
	struct view v = {0};
	const wchar_t *search;
	if (!ch->editor) {
		fflush(ch->show.out);
		return;
	}
	chat_swap_draft(ch);
	v.text = editor_text(ch->editor, &v.n, &v.cursor, &search);
	_cleanup_free_ char *status = chat_status_text(ch), *pattern = NULL;
	if (search) pattern = str_printf("(search: %ls) ", search);
	_cleanup_wide_ wchar_t *hidden = ch->asking && chat_ask_is_secret(ch) ? calloc(v.n + 1, sizeof *hidden) : NULL;
	if (hidden) v.text = wmemset(hidden, L'*', v.n);
	v.status = status;
	v.prompt = pattern ? pattern : ch->asking ? chat_ask_prompt(ch) : "> ";
	screen_update(&ch->screen, &v);
}

/* --- Signals ------------------------------------------------------------------------------------------------------ */

void chat_stop(void) {
	sigset_t stop;
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL); /* here it stops */
	sigprocmask(SIG_BLOCK, &stop, NULL);
}

/* The terminal is as it was before. */
static void stop(struct chat *ch) {
	if (ch->editor) {
		screen_erase(&ch->screen);
		editor_pause(ch->editor);
	}
	chat_stop();
	if (ch->editor) {
		editor_resume(ch->editor);
		screen_measure(&ch->screen);
	}
}

static void forget_sent(struct chat *ch) {
	free(ch->sent);
	ch->sent = NULL;
	ch->again = false;
}

static void interrupt(struct chat *ch) {
	const wchar_t *search;
	size_t n = 0, cursor;
	bool runs = ch->waiting || ch->busy || chat_question(ch);
	if (!ch->editor) show_break(&ch->show);
	if (ch->editor) editor_text(ch->editor, &n, &cursor, &search);
	if (ch->p && runs)
		ch->speech->interrupt(ch->p, &ch->turn);
	else if (!n)
		show_note(&ch->show, SHOW_DIM, "  Ctrl-D leaves");
	if (!ch->p || ch->again) forget_sent(ch);
	if (ch->editor && !editor_is_inside(ch->editor) && !runs) editor_set(ch->editor, L"", 0, 0);
	ch->input.len = 0;
	chat_prompt_sign(ch);
}

static void take_signal(struct chat *ch) {
	struct signalfd_siginfo info;
	if (read(ch->signals, &info, sizeof info) != sizeof info) return;
	if (info.ssi_signo == SIGWINCH) {
		if (ch->editor) screen_measure(&ch->screen);
	} else if (info.ssi_signo == SIGTSTP) {
		stop(ch);
	} else if (info.ssi_signo != SIGINT || !ch->terminal) {
		show_break(&ch->show);
		ch->code = CTL_INTERRUPTED;
	} else {
		interrupt(ch);
	}
}

/* --- The daemon comes back ---------------------------------------------------------------------------------------- */

static void lose(struct chat *ch) {
	plenum_close(ch->p);
	ch->p = NULL;
	*ch->attach = 0;
	if (!ch->lost_at) {
		ch->lost_at = now_ms();
		show_note(&ch->show, SHOW_RED, "-- the daemon is away; it is tried again until it is back (Ctrl-D leaves)");
	}
	ch->retry_at = now_ms() + RETRY_TIME;
	chat_question_forget(ch);
}

/* The answer comes as a line, so that the user can go on typing. */
static void reconnect(struct chat *ch) {
	ch->p = plenum_open(ch->c->socket, NULL, 0);
	ch->retry_at = now_ms() + RETRY_TIME;
	if (!ch->p) return;
	_cleanup_json_ json_t *members = json_pack("{s:s,s:s,s:s,s:{s:I},s:b}", "session", ch->session, "name", "plenumctl",
											   "create", "never", "replay", "after", (json_int_t)ch->seen, "tag", 1);
	_cleanup_free_ char *object = members ? json_dumps(members, JSON_COMPACT) : NULL;
	if (!object || plenum_speak(ch->p, ch->speech->dialect) != PLENUM_OK ||
		plenum_post(ch->p, PLENUM_ATTACH, object, ch->attach) != PLENUM_OK)
		lose(ch);
}

static void take_attached(struct chat *ch, const struct incoming *in) {
	struct span body = in->e.inner_response, state = span_member(body, "state"), code, text;
	int64_t next = ch->seen + 1, oldest = 0;
	*ch->attach = 0;
	in->speech->read_error(in, &code, &text);
	if (span_equals(code, PLENUM_E_SHUTTING_DOWN)) {
		lose(ch); /* another will come */
		return;
	}
	if (!span_equals(in->e.inner_subtype, "success")) {
		_cleanup_free_ char *error = text_dup(text, NULL);
		show_note(&ch->show, SHOW_RED, "-- the daemon is back, without this session: %s", error ? error : "?");
		ch->code = CTL_CUT;
		return;
	}
	span_int(span_member(body, "client"), &ch->turn.client);
	span_int(span_member(body, "seq"), &next);
	span_int(span_member(body, "oldest_seq"), &oldest);
	ch->live = next;
	if (oldest >= next) ch->seen = next - 1; /* there is nothing to replay */
	ch->lost_at = 0;
	chat_status_state(ch, state);
	ch->again = ch->sent && ch->speech->keeps;
	ch->unanswered = ch->waiting && !ch->again;
	bool cut = span_is_true(span_member(body, "replay_cut"));
	show_note(&ch->show, SHOW_DIM, "-- the daemon is back; %s",
			  cut ? "lines from meanwhile may be missing" : "nothing is missing");
}

/* --- The loop ----------------------------------------------------------------------------------------------------- */

/* Its agent ended with the daemon, or the agent would run it a second time. */
static void give_up(struct chat *ch) {
	bool lost = ch->waiting && !ch->busy;
	ch->unanswered = false;
	if (lost || !ch->speech->keeps) forget_sent(ch);
	ch->waiting = ch->waiting && ch->busy && (ch->speech->keeps || ch->speech->names_turns); /* else no reply comes */
	if (!lost) return;
	*ch->turn.name = *ch->turn.running = 0;
	show_note(&ch->show, SHOW_RED,
			  "-- your last prompt has no result, and gets none: the daemon went away (send it again)");
	chat_prompt_sign(ch);
}

void chat_take(struct chat *ch, const struct incoming *in) {
	bool attached = *ch->attach && span_equals(in->e.inner_request_id, ch->attach);
	if (ch->sent && memmem(in->line.p, in->line.n, ch->turn.uuid, strlen(ch->turn.uuid))) forget_sent(ch);
	if (attached)
		take_attached(ch, in);
	else
		chat_take_line(ch, in);
	if (!ch->p || *ch->attach || ch->seen + 1 < ch->live) return;
	if (ch->again) { /* the lost daemon may not have read the prompt, and the replay has not shown it. It runs once. */
		ch->again = false;
		ch->waiting = ch->speech->prompt(ch->p, ch->sent, ch->sent_len, ch->turn.uuid) == PLENUM_OK;
	}
	if (ch->unanswered) give_up(ch);
}

/* All that has come. */
static void take_lines(struct chat *ch) {
	struct incoming in;
	enum plenum_result r = PLENUM_TIMED_OUT;
	while (ch->p && ch->code == CTL_GO && (r = follow_next(ch->p, 0, &in)) == PLENUM_OK) chat_take(ch, &in);
	if (!ch->p || ch->code != CTL_GO || r == PLENUM_TIMED_OUT || r == PLENUM_OK) return;
	if (ch->terminal)
		lose(ch);
	else
		ch->code = ctl_failed(ch->p, r);
}

bool chat_step(struct chat *ch) {
	take_lines(ch);
	if (ch->code != CTL_GO) return false;
	chat_refresh(ch);
	bool reads = !ch->input_ended && chat_typed_wanted(ch);
	int ready = -1; /* 0: a line is there now */
	short events = ch->p ? plenum_events(ch->p, &ready) : 0;
	struct pollfd fds[] = {{.fd = ch->p ? plenum_fd(ch->p) : -1, .events = events},
						   {.fd = ch->signals, .events = POLLIN},
						   {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN}};
	_cleanup_free_ char *status = ch->editor && !ch->screen.held ? chat_status_text(ch) : NULL;
	int64_t left = ch->p ? -1 : MAX(ch->retry_at - now_ms(), 0);
	if (status && (left < 0 || left > TICK_TIME)) left = TICK_TIME;
	if (poll(fds, ARRAY_SIZE(fds), ready == 0 ? 0 : (int)left) < 0) return true;
	if (!ch->p && now_ms() >= ch->retry_at) reconnect(ch);
	if (fds[1].revents) take_signal(ch);
	if (fds[2].revents) chat_typed_read(ch);
	return ch->code == CTL_GO && !ch->input_ended;
}

static void leave(struct chat *ch) {
	ch->code = CTL_OK;
	show_break(&ch->show);
	if (!ch->terminal) return;
	close_editor(ch);
	ch->remove = ch->p && chat_is_starting(ch) && !ch->waiting; /* the conversation can be resumed again */
	if (!ch->remove) ctl_say("left; the session goes on: `plenumctl chat %s` comes back to it", ch->session);
}

static void run(struct chat *ch) {
	while (ch->code == CTL_GO) {
		take_lines(ch);
		if (ch->editor)
			chat_typed(ch);
		else
			while (ch->code == CTL_GO && chat_typed_line(ch)) take_lines(ch);
		if (ch->code == CTL_GO && ch->input_ended &&
			(ch->terminal || !(ch->waiting || ch->input.len || chat_is_starting(ch))))
			leave(ch);
		if (ch->code == CTL_GO) chat_step(ch);
	}
}

/* --- Begin and end ------------------------------------------------------------------------------------------------ */

static void learn_attached(struct chat *ch, json_t *answer) {
	const char *state = ctl_str(answer, "state", "");
	_cleanup_free_ char *quoted = str_printf("\"%s\"", state);
	json_t *init = json_object_get(answer, "init");
	_cleanup_free_ char *commands = json_dumps(ctl_array(init, "slash_commands"), JSON_COMPACT);
	ch->session = str_dup(ctl_str(answer, "session", "?"));
	ch->cwd = str_dup(ctl_str(answer, "cwd", NULL));
	ch->turn.client = ctl_int(answer, "client");
	ch->live = ctl_int(answer, "seq");
	ch->seen = ch->live - 1;
	ch->made = ctl_bool(answer, "created");
	if (commands) chat_take_commands(ch, span_of(commands));
	if (quoted) chat_status_state(ch, span_of(quoted));
	if (!ch->terminal) return;
	show_note(&ch->show, SHOW_DIM, "session %s (%s), %s, in %s", ch->session, ctl_str(answer, "profile", "?"), state,
			  ctl_str(answer, "cwd", "?"));
	show_note(&ch->show, SHOW_DIM, "Ctrl-C interrupts, Ctrl-D leaves");
}

static void end(struct chat *ch) {
	close_editor(ch);
	if (ch->remove) {
		_cleanup_json_ json_t *answer = NULL;
		json_t *members = json_pack("{s:s,s:s,s:b}", "session", ch->session, "how", "kill", "forget", 1);
		int code = ctl_ask(ch->p, PLENUM_STOP, members, &answer);
		if (code == CTL_OK && ctl_bool(answer, "stopping")) code = follow_to_end(ch->p, ch->session, true);
		if (code == CTL_OK) ctl_say("left before the agent had its conversation; session %s was removed", ch->session);
	}
	chat_question_forget(ch);
	for (size_t i = 0; i < CHAT_CALLS; i++) free(ch->calls[i]);
	plenum_close(ch->p);
	show_free(&ch->show);
	buf_free(&ch->input);
	json_decref(ch->commands);
	free(ch->session);
	free(ch->cwd);
	free(ch->tool);
	free(ch->start_error);
	free(ch->draft);
	free(ch->sent);
}

/* resumed: the session is made for an earlier conversation, which may not exist. */
static int converse(struct ctl *c, struct plenum *p, json_t *answer, bool resumed) {
	struct chat ch = {.c = c, .p = p, .speech = speech_of(p), .code = CTL_GO, .input = BUF_INIT((size_t)1 << 26)};
	_cleanup_close_ int signals = fd_signals((const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, 0});
	ch.signals = signals;
	list_init(&ch.questions);
	ch.terminal = isatty(STDIN_FILENO);
	show_init(&ch.show, stdout);
	ch.show.keeps = ch.terminal;
	if (ch.terminal && isatty(STDOUT_FILENO) && !ctl_is_dumb() && screen_open(&ch.screen)) {
		_cleanup_free_ char *folder = ctl_state_dir();
		history_open(&ch.history, folder ? str_printf("%s/chat_history", folder) : NULL);
		ch.editor = editor_open(wait_inside, &ch, &ch.history);
		if (ch.editor)
			ch.show.out = ch.screen.out;
		else
			screen_close(&ch.screen);
	}
	learn_attached(&ch, answer);
	ch.proven = !resumed;
	if (strcmp(ch.state, PLENUM_ST_FAILED) == 0) chat_take_failure(&ch, ctl_str(answer, "reason", NULL));
	/* Before the first turn only the answer to an initialize has the commands; the daemon has kept that of the agent.
	 * It also proves that the agent has its conversation. */
	bool runs = strcmp(ch.state, PLENUM_ST_ASLEEP) != 0 && strcmp(ch.state, PLENUM_ST_FAILED) != 0;
	bool asks = (ch.editor && !ch.commands) || chat_is_starting(&ch);
	if (asks && runs && ch.speech->hello) ch.speech->hello(ch.p, ch.initialize);
	chat_prompt_sign(&ch);
	run(&ch);
	end(&ch);
	return ch.code;
}

/* Options about the start of an agent that runs already. */
static void say_ignored(json_t *answer) {
	struct buf b = BUF_INIT(1000);
	json_t *one;
	size_t i;
	json_array_foreach(ctl_array(answer, "ignored"), i, one)
		buf_printf(&b, "%s--%s", b.len ? ", " : "", json_string_value(one));
	if (b.len) ctl_say("session %s exists: %s: has no effect", ctl_str(answer, "session", "?"), b.data);
	buf_free(&b);
}

int cmd_chat(struct ctl *c, int argc, char **argv) {
	const char *profile = NULL, *cwd = NULL, *resume = NULL, *lines = "0";
	bool make = false;
	const struct ctl_option options[] = {
		{"create", 'c', NULL, "make the session if it does not exist", .flag = &make},
		{"profile", 'p', "NAME", "the profile of a new session", .value = &profile},
		{"cwd", 'C', "DIRECTORY", "the working directory of a new session", .value = &cwd},
		{"resume", 'r', "ID", "the conversation that a new session goes on with", .value = &resume},
		{"lines", 'n', "N", "begin with the last N lines of the session", .value = &lines},
		{0},
	};
	uint64_t n;
	int code = ctl_options(c, options, &argc, &argv, 0, 1);
	if (code != CTL_GO) return code;
	if (c->json) return ctl_usage(c, "chat: --json: is for programs (plenumctl attach has the agent's lines)");
	char room[PATH_MAX];
	ctl_absolute(&cwd, room);
	if (!str_u64(lines, 0, 1000000, &n)) return ctl_usage(c, "chat: -n takes a number");
	const char *session = argc ? argv[0] : "default", *create = "new";
	struct plenum *p = NULL;
	if (resume) {
		p = ctl_open(c);
		if (!argc) session = NULL; /* its name is generated */
	} else {
		code = pick_or_make(c, &session, make, &p, &create);
	}
	_cleanup_json_ json_t *answer = NULL;
	json_t *members = json_pack("{s:s,s:s*,s:s*,s:s*,s:b}", "create", create, "profile", profile, "cwd", cwd, "resume",
								resume, "tag", 1);
	if (n) json_object_set_new(members, "replay", json_pack("{s:I}", "last", (json_int_t)n));
	if (code == CTL_GO || code == CTL_OK) code = follow_to(p, session, json_incref(members), &answer);
	json_decref(members);
	if (code == CTL_REFUSED) pick_hint(c, p, create);
	if (code != CTL_OK) {
		plenum_close(p);
		return code;
	}
	pick_remember(ctl_str(answer, "session", "-"));
	follow_print_peer(answer);
	say_ignored(answer);
	return converse(c, p, answer, resume != NULL);
}
