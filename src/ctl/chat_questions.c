/* SPDX-License-Identifier: MIT
 *
 * Requests of the agent that wait for this user. Input from before a question could be seen never answers it.
 */
#include "base/str.h"
#include "ctl/answer.h"
#include "ctl/chat.h"
#include "ctl/form.h"
#include "ctl/question.h"
#include "ctl/sentence.h"
#include "ctl/text.h"

#include <stdio.h>
#include <string.h>
#include <termios.h>

struct question *chat_question(struct chat *ch) {
	return LIST_TOP(&ch->questions, struct question, node);
}

static void question_free(struct question *q) {
	list_del(&q->node);
	json_decref(q->values);
	free(q->unknown);
	free(q->line);
	free(q->call);
	free(q);
}

void chat_question_forget(struct chat *ch) {
	while (!list_empty(&ch->questions)) question_free(chat_question(ch));
}

/* Read the field that is to be entered now. False: there is none; the answer itself is to be given. */
static bool read_field(const struct question *q, struct form_field *f) {
	return !q->unknown && form_read(&q->ask, q->asked, f);
}

static bool is_form(const struct question *q) {
	return q->ask.kind == SPEECH_ASKS_FORM;
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

const char *chat_ask_prompt(struct chat *ch) {
	struct question *q = chat_question(ch);
	struct form_field f;
	if (!q) return "> ";
	if (read_field(q, &f)) return form_prompt(&f);
	if (is_form(q)) return q->unknown ? "decline? [n, c] " : q->asked ? "accept? [y, n, c, e] " : "accept? [y, n, c] ";
	if (span_equals(q->ask.tool, "ExitPlanMode")) return "go on? [y, n] ";
	return q->ask.can_remember ? "allow? [y, n, a] " : "allow? [y, n] ";
}

bool chat_ask_is_secret(struct chat *ch) {
	struct question *q = chat_question(ch);
	struct form_field f;
	return q && read_field(q, &f) && f.secret;
}

/* Before the answer is typed. With an editor the prompt is a part of the screen's end. */
static void put_prompt(struct chat *ch) {
	if (ch->editor) return;
	show_break(&ch->show);
	fputs(chat_ask_prompt(ch), ch->show.out);
	ch->show.mid_line = true;
}

/* Earlier input was meant for another question. */
static void drop_typed(struct chat *ch) {
	if (ch->editor && ch->asking && !ch->screen.held) {
		editor_flush(ch->editor);
	} else if (ch->terminal && !ch->editor) {
		tcflush(STDIN_FILENO, TCIFLUSH);
		ch->input.len = 0;
	}
}

/* All of it, or the values that were entered. */
static void ask_as_a_whole(struct chat *ch, const struct question *q) {
	if (q->asked) {
		show_note(&ch->show, SHOW_YELLOW, "? your answer:");
		form_show_values(&ch->show, &q->ask, q->values);
	} else {
		question_show(&ch->show, &q->ask);
	}
	if (q->unknown)
		show_note(&ch->show, SHOW_RED, "  `%s` cannot be entered here (`plenumctl allow --input` takes any value)",
				  q->unknown);
	if (is_form(q))
		question_show_form_choices(&ch->show, !q->unknown, q->asked);
	else
		question_show_choices(&ch->show, &q->ask);
}

void chat_ask(struct chat *ch) {
	struct question *q = chat_question(ch);
	struct form_field f;
	if (!q) {
		chat_prompt_sign(ch);
		return;
	}
	drop_typed(ch);
	if (read_field(q, &f)) {
		if (is_form(q) && !q->asked) {
			question_show(&ch->show, &q->ask);
			show_note(&ch->show, SHOW_DIM, "  (/decline or /cancel leaves it without an answer)");
		}
		form_show(&ch->show, &f);
	} else {
		ask_as_a_whole(ch, q);
	}
	put_prompt(ch);
}

void chat_question_call(struct chat *ch, const struct incoming *in) {
	char **slot = &ch->calls[ch->n_calls++ % CHAT_CALLS];
	free(*slot);
	*slot = strndup(in->line.p, in->line.n);
}

/* Take the changes from the call that the request is about. */
static void take_changes(const struct chat *ch, struct question *q) {
	struct incoming in;
	struct speech_fact f;
	for (size_t i = 0; i < CHAT_CALLS && q->ask.call.p; i++) {
		const char *line = ch->calls[i];
		if (!line) continue;
		speech_read(ch->speech, line, strlen(line), &in);
		if (!speech_find(&in, SPEECH_CALL, &f) || !span_same(f.id, q->ask.call)) continue;
		q->call = strdup(line);
		if (q->call) q->ask.changes = (struct span){q->call + (f.list.p - line), f.list.n};
		return;
	}
}

void chat_question_add(struct chat *ch, const struct incoming *in) {
	struct question *q = calloc(1, sizeof *q);
	struct incoming copy;
	if (!q) return;
	q->line = strndup(in->line.p, in->line.n);
	if (!q->line) {
		free(q);
		return;
	}
	speech_read(ch->speech, q->line, in->line.n, &copy);
	copy.speech->read_ask(&copy, &q->ask);
	take_changes(ch, q);
	q->values = json_object();
	q->unknown = form_unknown(&q->ask);
	if (ch->editor && !ch->screen.held &&
		!editor_is_inside(ch->editor)) { /* earlier input was not meant for this question */
		chat_typed_read(ch);
		chat_typed(ch);
	}
	bool first = list_empty(&ch->questions);
	list_add_tail(&ch->questions, &q->node);
	if (first) chat_ask(ch);
}

void chat_question_drop(struct chat *ch, struct span id) {
	struct question *q;
	bool shown = false;
	LIST_FOR_EACH (q, &ch->questions, struct question, node) {
		if (!span_same(id, q->ask.id)) continue;
		shown = q == chat_question(ch);
		question_free(q);
	}
	if (shown && chat_question(ch)) chat_ask(ch);
	if (!shown || chat_question(ch)) return;
	drop_typed(ch); /* else it would be a prompt */
	show_break(&ch->show);
}

/* --- Who answered ------------------------------------------------------------------------------------------------- */

void chat_settled(struct chat *ch, const struct incoming *in) {
	struct span by = span_member(in->notice, "by");
	int64_t pid = 0;
	span_int(span_member(by, "pid"), &pid);
	chat_question_drop(ch, span_member(in->notice, "request_id"));
	if (pid == getpid()) return;
	struct buf b = BUF_INIT(65536);
	if (sentence_put(&b, PLENUM_EV_SETTLED, in->notice)) show_note(&ch->show, SHOW_DIM, "  %s", b.data);
	buf_free(&b);
}

/* --- Answers ------------------------------------------------------------------------------------------------------ */

/* If the daemon is away, the loop finds out. */
static void send_answer(struct chat *ch, struct question *q, const struct speech_decision *d) {
	if (answer_post(ch->p, ch->speech, &q->ask, d) == PLENUM_REFUSED)
		show_note(&ch->show, SHOW_RED, "this cannot be answered here");
	question_free(q);
	chat_ask(ch);
}

/* The question is still on the screen: only the hint and the prompt again. */
static void ask_again(struct chat *ch, const char *hint) {
	show_note(&ch->show, SHOW_RED, "  %s", hint);
	put_prompt(ch);
}

static const char *wanted(const struct question *q) {
	if (is_form(q))
		return q->unknown ? "n or c is needed" : q->asked ? "y, n, c or e is needed" : "y, n or c is needed";
	return q->ask.can_remember ? "y, n or a is needed (n and a space begin a reason)"
							   : "y or n is needed (n and a space begin a reason)";
}

static void take_decision(struct chat *ch, struct question *q, const char *text) {
	const char *reason;
	enum question_answer answer = question_parse(text, is_form(q), &reason);
	bool yes = answer == QUESTION_YES || answer == QUESTION_ALWAYS;
	if (answer == QUESTION_UNCLEAR || (answer == QUESTION_EDIT && !q->asked) || (yes && is_form(q) && q->unknown)) {
		ask_again(ch, wanted(q));
		return;
	}
	if (answer == QUESTION_EDIT) {
		json_object_clear(q->values);
		q->asked = 0;
		chat_ask(ch);
		return;
	}
	_cleanup_json_ json_t *input = yes && q->asked ? form_input(&q->ask, q->values) : NULL;
	struct speech_decision d = {.allow = yes,
								.always = answer == QUESTION_ALWAYS,
								.cancel = answer == QUESTION_CANCEL,
								.message = reason,
								.input = input};
	const char *lacks = answer_lacks(&q->ask, &d);
	if (lacks)
		ask_again(ch, lacks);
	else
		send_answer(ch, q, &d);
}

/* The values of a form are shown once more before they are sent. */
static void take_field(struct chat *ch, struct question *q, const struct form_field *f, const char *text) {
	_cleanup_free_ char *why = NULL, *key = span_dup(f->key, NULL);
	if (strcmp(text, "/decline") == 0 || strcmp(text, "/cancel") == 0) {
		send_answer(ch, q, &(struct speech_decision){.cancel = text[1] == 'c'});
		return;
	}
	json_t *value = form_value(f, text, &why);
	if (why || !key) {
		ask_again(ch, why ? why : "this cannot be answered here");
		return;
	}
	if (value) json_object_set_new(q->values, key, value);
	q->asked++;
	struct form_field next;
	if (read_field(q, &next) || (is_form(q) && !q->ask.questions.p)) {
		chat_ask(ch);
		return;
	}
	_cleanup_json_ json_t *input = form_input(&q->ask, q->values);
	struct speech_decision d = {.allow = true, .input = input};
	send_answer(ch, q, &d);
}

void chat_question_answer(struct chat *ch, const char *text) {
	struct question *q = chat_question(ch);
	struct form_field f;
	if (!q) return; /* it went away while a key was being typed */
	if (!ch->p)
		ask_again(ch, "the daemon is away: answer when it is back");
	else if (read_field(q, &f))
		take_field(ch, q, &f, text);
	else
		take_decision(ch, q, text);
}
