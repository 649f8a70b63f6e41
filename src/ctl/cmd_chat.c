/* SPDX-License-Identifier: MIT
 *
 * chat: a user at a terminal. Typed lines are prompts; while a question is open the next line is its answer. What
 * was typed before a question could be seen never answers it. Ctrl-C interrupts the turn, Ctrl-D leaves; the session
 * goes on.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/str.h"
#include "ctl/answer.h"
#include "ctl/show.h"
#include "ctl/text.h"
#include "ctl/turn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>

#define OWN_UUIDS 16

/* A request that waits for this person; the first of the list is the one on the screen. */
struct question {
	struct list node;
	char *id;
	char *request;   /* the JSON of its `request` */
	json_t *answers; /* of AskUserQuestion, the choices so far */
	size_t asked;    /* of its questions, those that are answered */
};

struct chat {
	struct ctl *c;
	struct plenum *p;
	const char *session;
	struct show show;
	struct list questions;
	struct buf input; /* typed, not yet a whole line */
	bool terminal;    /* stdin is one */
	bool input_ended;
	bool busy;                             /* as the daemon says */
	struct turn turn;                      /* of our last prompt */
	bool waiting;                          /* for its result */
	char own[OWN_UUIDS][PLENUM_UUID_SIZE]; /* our last prompts: their echo is not shown */
	size_t n_own;
	int64_t live; /* lines with a lower number are history: shown, and nothing else */
	int code;     /* CTL_GO while it runs */
};

static void prompt_sign(struct chat *ch) {
	if (!ch->terminal || ch->waiting || ch->busy || !list_empty(&ch->questions) || ch->show.sign) return;
	show_break(&ch->show);
	fputs(ch->show.color ? "\033[1m> \033[0m" : "> ", stdout);
	ch->show.mid_line = ch->show.sign = true;
}

/* --- Questions ---------------------------------------------------------------------------------------------------- */

static struct question *first_question(struct chat *ch) {
	return LIST_TOP(&ch->questions, struct question, node);
}

static void question_free(struct question *q) {
	list_del(&q->node);
	json_decref(q->answers);
	free(q->id);
	free(q->request);
	free(q);
}

static struct span question_span(const struct question *q) {
	return span_of(q->request);
}

static struct span question_input(const struct question *q) {
	return span_member(question_span(q), "input");
}

/* The question of AskUserQuestion that is to be answered now, else SPAN_NONE. */
static struct span current_choice(const struct question *q) {
	if (!span_equals(span_member(question_span(q), "tool_name"), "AskUserQuestion")) return SPAN_NONE;
	return span_element(span_member(question_input(q), "questions"), q->asked);
}

static void print_choice(struct chat *ch, struct span choice) {
	_cleanup_free_ char *text = span_dup(span_member(choice, "question"), NULL);
	struct span options = span_member(choice, "options"), one;
	size_t at = 0;
	int number = 0;
	show_note(&ch->show, SHOW_YELLOW, "? %s", text ? text : "");
	while (span_is_array(options) && span_next(options, &at, &one)) {
		_cleanup_free_ char *label = span_dup(span_member(one, "label"), NULL);
		_cleanup_free_ char *about = span_dup(span_member(one, "description"), NULL);
		show_note(&ch->show, SHOW_DIM, "  %d. %s%s%s", ++number, label ? label : "?", about ? ": " : "",
				  about ? about : "");
	}
	fputs("number or your own words: ", stdout);
	ch->show.mid_line = true;
}

/* The complete request: the user is about to allow it. */
static void print_permission(struct chat *ch, const struct question *q) {
	struct span request = question_span(q);
	_cleanup_free_ char *tool = span_dup(span_member(request, "tool_name"), NULL);
	_cleanup_free_ char *message = span_dup(span_member(request, "message"), NULL);
	_cleanup_free_ char *reason = span_dup(span_member(request, "decision_reason"), NULL);
	_cleanup_free_ char *plan = span_dup(span_member(question_input(q), "plan"), NULL);
	_cleanup_free_ char *subagent = span_dup(span_member(request, "agent_id"), NULL);
	struct span input = question_input(q);
	show_note(&ch->show, SHOW_YELLOW, "? %s", tool ? tool : message ? message : "the agent asks");
	if (subagent) show_note(&ch->show, SHOW_DIM, "  asked by subagent %s", subagent);
	if (plan)
		show_note(&ch->show, SHOW_DIM, "%s", plan);
	else if (input.p)
		show_note(&ch->show, SHOW_DIM, "  %.*s", (int)input.n, input.p);
	if (reason) show_note(&ch->show, SHOW_DIM, "  because: %s", reason);
	fputs("allow? [y]es, [n]o (n and a reason), [a]lways: ", stdout);
	ch->show.mid_line = true;
}

static void ask(struct chat *ch) {
	struct question *q = first_question(ch);
	if (!q) {
		prompt_sign(ch);
		return;
	}
	if (ch->terminal) { /* earlier input was not meant for this question */
		tcflush(STDIN_FILENO, TCIFLUSH);
		ch->input.len = 0;
	}
	struct span choice = current_choice(q);
	if (choice.p)
		print_choice(ch, choice);
	else
		print_permission(ch, q);
}

static void add_question(struct chat *ch, const struct incoming *in) {
	struct question *q = calloc(1, sizeof *q);
	if (!q) return;
	q->id = span_dup(in->e.request_id, NULL);
	q->request = strndup(in->e.request.p, in->e.request.n);
	q->answers = json_object();
	bool first = list_empty(&ch->questions);
	list_init(&q->node);
	if (!q->id || !q->request)
		question_free(q);
	else
		list_add_tail(&ch->questions, &q->node);
	if (first) ask(ch);
}

static void drop_question(struct chat *ch, struct span id) {
	struct question *q;
	bool shown = false, dropped = false;
	LIST_FOR_EACH (q, &ch->questions, struct question, node) {
		if (!span_equals(id, q->id)) continue;
		shown = q == first_question(ch);
		dropped = true;
		question_free(q);
	}
	if (dropped) show_note(&ch->show, SHOW_DIM, "  (answered elsewhere, or withdrawn)");
	if (shown) ask(ch);
}

static void answer(struct chat *ch, struct question *q, json_t *body) {
	if (body)
		answer_send(ch->p, q->id, body);
	else
		show_note(&ch->show, SHOW_RED, "this cannot be answered here");
	question_free(q);
	ask(ch);
}

/* A yes, no or always; anything else asks again. */
static void take_permission(struct chat *ch, struct question *q, const char *text) {
	struct decision d = {.allow = *text == 'y' || *text == 'a', .always = *text == 'a'};
	bool known = *text && strchr("yna", *text) &&
				 (*text == 'n' || strlen(text) <= 1 || strcmp(text, "yes") == 0 || strcmp(text, "always") == 0);
	const char *lacks = answer_lacks(question_span(q), &d);
	if (lacks) show_note(&ch->show, SHOW_RED, "%s", lacks);
	if (!known || lacks) {
		ask(ch);
		return;
	}
	const char *reason = strchr(text, ' ');
	d.message = reason && reason[1] ? reason + 1 : "The user denied this.";
	answer(ch, q, answer_body(question_span(q), &d));
}

/* A number names an option; other words stand for themselves. */
static char *chosen_label(struct span choice, const char *text) {
	uint64_t number;
	if (!str_u64(text, 1, 99, &number)) return strdup(text);
	char *label = span_dup(span_member(span_element(span_member(choice, "options"), (size_t)number - 1), "label"),
						   NULL);
	return label ? label : strdup(text);
}

static void take_choice(struct chat *ch, struct question *q, struct span choice, const char *text) {
	_cleanup_free_ char *label = chosen_label(choice, text);
	_cleanup_free_ char *question = span_dup(span_member(choice, "question"), NULL);
	struct span input = question_input(q);
	if (!*text || !label || !question) {
		ask(ch);
		return;
	}
	json_object_set_new(q->answers, question, json_string(label));
	q->asked++;
	if (current_choice(q).p) {
		ask(ch);
		return;
	}
	_cleanup_json_ json_t *changed = json_loadb(input.p, input.n, JSON_ALLOW_NUL, NULL);
	if (changed) json_object_set(changed, "answers", q->answers);
	struct decision d = {.allow = true, .input = changed};
	answer(ch, q, answer_body(question_span(q), &d));
}

/* --- What is typed ------------------------------------------------------------------------------------------------ */

static void send_prompt(struct chat *ch, const char *text, size_t n) {
	if (n == 0) {
		prompt_sign(ch);
		return;
	}
	enum plenum_result r = plenum_prompt(ch->p, text, n, ch->turn.uuid);
	if (r != PLENUM_OK) {
		ch->code = ctl_failed(ch->p, r);
		return;
	}
	ch->waiting = true;
	memcpy(ch->own[ch->n_own++ % OWN_UUIDS], ch->turn.uuid, PLENUM_UUID_SIZE);
}

/* A prompt is all of the n bytes; an answer has no NUL in it. */
static void take_typed(struct chat *ch, const char *text, size_t n) {
	struct question *q = first_question(ch);
	ch->show.mid_line = ch->show.sign = false; /* Enter ended the line */
	if (!q) {
		send_prompt(ch, text, n);
		return;
	}
	struct span choice = current_choice(q);
	if (choice.p)
		take_choice(ch, q, choice, text);
	else
		take_permission(ch, q, text);
}

/* May the next line be taken now? A person may type ahead; a script's lines are taken one at a time. */
static bool wants_line(const struct chat *ch) {
	return ch->terminal || !list_empty(&ch->questions) || !ch->waiting;
}

static bool next_typed(struct chat *ch) {
	char *end = ch->input.len ? memchr(ch->input.data, '\n', ch->input.len) : NULL;
	if (!end && ch->input_ended && ch->input.len) end = ch->input.data + ch->input.len; /* NUL-terminated there */
	if (!end || !wants_line(ch)) return false;
	size_t n = (size_t)(end - ch->input.data), used = MIN(n + 1, ch->input.len);
	if (n && ch->input.data[n - 1] == '\r') n--;
	_cleanup_free_ char *text = calloc(n + 1, 1);
	if (text) memcpy(text, ch->input.data, n);
	memmove(ch->input.data, ch->input.data + used, ch->input.len - used + 1);
	ch->input.len -= used;
	if (text) take_typed(ch, text, n);
	return true;
}

static void read_typed(struct chat *ch) {
	char part[65536];
	ssize_t n = fd_read(STDIN_FILENO, part, sizeof part);
	if (n > 0)
		buf_put(&ch->input, part, (size_t)n);
	else
		ch->input_ended = true;
}

static void leave_if_done(struct chat *ch) {
	if (!ch->input_ended || ch->code != CTL_GO) return;
	if (!ch->terminal && (ch->waiting || ch->input.len)) return;
	show_break(&ch->show);
	if (ch->terminal) ctl_say("left; the session goes on: `plenumctl chat %s` comes back to it", ch->session);
	ch->code = CTL_OK;
}

/* --- What comes --------------------------------------------------------------------------------------------------- */

static bool is_own_echo(const struct chat *ch, const struct incoming *in) {
	if (!span_is_true(in->e.is_replay)) return false;
	for (size_t i = 0; i < OWN_UUIDS; i++)
		if (*ch->own[i] && span_equals(in->e.uuid, ch->own[i])) return true;
	return false;
}

/* Notices that a person in a conversation need not see. */
static bool is_noise(struct span event) {
	static const char *const noise[] = {PLENUM_EV_SESSION_STATE, PLENUM_EV_TURN_STARTED, PLENUM_EV_TURN_ENDED,
										PLENUM_EV_SETTLED, PLENUM_EV_SESSION_CREATED};
	for (size_t i = 0; i < ARRAY_SIZE(noise); i++)
		if (span_equals(event, noise[i])) return true;
	return false;
}

static void take_event(struct chat *ch, const struct incoming *in, struct span event) {
	struct span state = span_member(in->line, "state");
	if (span_equals(event, PLENUM_EV_SESSION_STATE)) {
		ch->busy = span_equals(state, PLENUM_ST_BUSY) || span_equals(state, PLENUM_ST_ASKING);
		prompt_sign(ch);
	}
	bool refused = span_equals(event, PLENUM_EV_ERROR) &&
				   !span_member(in->line, "request_id").p; /* not about an answer */
	bool lost = refused || (ch->waiting &&
							(follow_changed(in, "prompt_cancelled", ch->turn.uuid) || follow_ended(in, ch->turn.uuid)));
	bool removed = span_equals(event, PLENUM_EV_SESSION_REMOVED);
	if (lost) ch->waiting = false; /* no result will come */
	if (removed || (lost && !ch->terminal)) ch->code = CTL_CUT;
	if (!is_noise(event)) show_line(&ch->show, in->line, &in->e);
	if (lost) prompt_sign(ch);
}

static void take_request(struct chat *ch, const struct incoming *in) {
	struct span kind = in->e.inner_subtype;
	if (span_equals(kind, "can_use_tool") || span_equals(kind, "elicitation"))
		add_question(ch, in);
	else
		show_note(&ch->show, SHOW_DIM, "(the agent asks something that only another program can answer: %.*s)",
				  (int)kind.n, kind.p);
}

static bool is_history(const struct chat *ch, const struct incoming *in) {
	int64_t seq;
	return follow_seq(in, &seq) && seq < ch->live;
}

static void take_line(struct chat *ch, const struct incoming *in) {
	struct span event = follow_event(in);
	if (is_history(ch, in)) {
		if (!event.p || !is_noise(event)) show_line(&ch->show, in->line, &in->e);
		return;
	}
	if (event.p) {
		take_event(ch, in, event);
	} else if (span_equals(in->e.type, "control_request")) {
		take_request(ch, in);
	} else if (span_equals(in->e.type, "control_cancel_request")) {
		drop_question(ch, in->e.request_id);
	} else if (!is_own_echo(ch, in)) {
		show_line(&ch->show, in->line, &in->e);
	}
	if (turn_feed(&ch->turn, in->line, &in->e)) {
		ch->waiting = false;
		if (!ch->terminal && span_is_true(in->e.is_error)) ch->code = CTL_REFUSED;
		prompt_sign(ch);
	}
}

/* --- The loop ----------------------------------------------------------------------------------------------------- */

static void take_signal(struct chat *ch, int signals) {
	struct signalfd_siginfo info;
	char id[PLENUM_ID_SIZE];
	if (read(signals, &info, sizeof info) != sizeof info) return;
	show_break(&ch->show);
	if (info.ssi_signo == SIGTERM || !ch->terminal)
		ch->code = CTL_INTERRUPTED;
	else if (ch->waiting || ch->busy || !list_empty(&ch->questions))
		plenum_post(ch->p, "interrupt", NULL, id);
	else
		ctl_say("Ctrl-D leaves");
	ch->input.len = 0;
	prompt_sign(ch);
}

static void wait_for_something(struct chat *ch, int signals) {
	bool reads = !ch->input_ended && wants_line(ch);
	struct pollfd fds[] = {{.fd = plenum_fd(ch->p), .events = POLLIN},
						   {.fd = signals, .events = POLLIN},
						   {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN}};
	fflush(stdout);
	if (poll(fds, ARRAY_SIZE(fds), -1) <= 0) return;
	if (fds[1].revents) take_signal(ch, signals);
	if (fds[2].revents) read_typed(ch);
}

static void run(struct chat *ch, int signals) {
	struct incoming in;
	while (ch->code == CTL_GO) {
		enum plenum_result r = follow_next(ch->p, 0, &in);
		if (r == PLENUM_OK)
			take_line(ch, &in);
		else if (r != PLENUM_TIMED_OUT)
			ch->code = ctl_failed(ch->p, r);
		else if (!next_typed(ch)) {
			leave_if_done(ch);
			if (ch->code == CTL_GO) wait_for_something(ch, signals);
		}
	}
}

static void greet(struct chat *ch, json_t *answer) {
	const char *state = ctl_str(answer, "state", "");
	ch->live = ctl_int(answer, "seq", 0);
	ch->busy = strcmp(state, PLENUM_ST_BUSY) == 0 || strcmp(state, PLENUM_ST_ASKING) == 0;
	if (ch->terminal)
		show_note(&ch->show, SHOW_DIM, "session %s, profile %s, %s, in %s; Ctrl-C interrupts, Ctrl-D leaves",
				  ch->session, ctl_str(answer, "profile", "?"), state, ctl_str(answer, "cwd", "?"));
	prompt_sign(ch);
}

static int converse(struct ctl *c, const char *session, json_t *members) {
	_cleanup_json_ json_t *answer = NULL;
	_cleanup_plenum_ struct plenum *p = ctl_open(c);
	int code = follow_to(p, session, members, &answer);
	if (code != CTL_OK) return code;
	follow_print_peer(answer);
	struct chat ch = {.c = c, .p = p, .session = session, .code = CTL_GO, .input = BUF_INIT((size_t)1 << 26)};
	_cleanup_close_ int signals = fd_signals((const int[]){SIGINT, SIGTERM, 0});
	list_init(&ch.questions);
	ch.terminal = isatty(STDIN_FILENO);
	show_init(&ch.show, stdout);
	greet(&ch, answer);
	run(&ch, signals);
	while (!list_empty(&ch.questions)) question_free(first_question(&ch));
	buf_free(&ch.input);
	return ch.code;
}

int cmd_chat(struct ctl *c, int argc, char **argv) {
	const char *profile = NULL, *cwd = NULL, *resume = NULL, *lines = "0";
	const struct ctl_option options[] = {
		{"profile", 'p', "NAME", "the profile of a new session", .value = &profile},
		{"cwd", 'C', "DIRECTORY", "the working directory of a new session", .value = &cwd},
		{"resume", 'r', "ID", "the conversation that a new session goes on with", .value = &resume},
		{"lines", 'n', "N", "begin with the last N lines of the session", .value = &lines},
		{0},
	};
	uint64_t n;
	int code = ctl_options(c, options, &argc, &argv, 0, 1);
	if (code != CTL_GO) return code;
	char room[PATH_MAX];
	ctl_absolute(&cwd, room);
	if (!str_u64(lines, 0, 1000000, &n)) return ctl_usage(c, "chat: -n takes a number");
	json_t *members = json_pack("{s:s*,s:s*,s:s*,s:b}", "profile", profile, "cwd", cwd, "resume", resume, "tag", 1);
	if (n) json_object_set_new(members, "replay", json_pack("{s:I}", "last", (json_int_t)n));
	return converse(c, argc ? argv[0] : "default", members);
}
