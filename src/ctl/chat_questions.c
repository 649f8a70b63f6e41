/* SPDX-License-Identifier: MIT
 *
 * Requests of the agent that wait for this user. Input from before a question could be seen never answers it.
 */
#include "base/str.h"
#include "ctl/answer.h"
#include "ctl/chat.h"
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
	json_decref(q->answers);
	free(q->line);
	free(q->call);
	free(q);
}

void chat_question_forget(struct chat *ch) {
	while (!list_empty(&ch->questions)) question_free(chat_question(ch));
}

/* The question of AskUserQuestion that is to be answered now, else SPAN_NONE. */
static struct span current_choice(const struct question *q) {
	if (!span_equals(q->ask.tool, "AskUserQuestion")) return SPAN_NONE;
	return span_element(span_member(q->ask.input, "questions"), q->asked);
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

const char *chat_ask_prompt(struct chat *ch) {
	struct question *q = chat_question(ch);
	struct span choice = q ? current_choice(q) : SPAN_NONE;
	if (!q) return "> ";
	if (choice.p)
		return span_is_true(span_member(choice, "multiSelect")) ? "numbers (1,3), or your own words: "
																: "number, or your own words: ";
	if (q->ask.kind != SPEECH_ASKS_TOOL) return "accept? [y, n] ";
	if (span_equals(q->ask.tool, "ExitPlanMode")) return "go on? [y, n] ";
	return q->ask.can_remember ? "allow? [y, n, a] " : "allow? [y, n] ";
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

void chat_ask(struct chat *ch) {
	struct question *q = chat_question(ch);
	if (!q) {
		chat_prompt_sign(ch);
		return;
	}
	drop_typed(ch);
	struct span choice = current_choice(q);
	if (choice.p) {
		question_show_options(&ch->show, choice);
	} else {
		question_show(&ch->show, &q->ask);
		question_show_choices(&ch->show, &q->ask);
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
	q->answers = json_object();
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

static void take_permission(struct chat *ch, struct question *q, const char *text) {
	const char *reason, *lacks;
	enum question_answer answer = question_parse(text, &reason);
	struct speech_decision d = {.allow = answer != QUESTION_NO, .always = answer == QUESTION_ALWAYS};
	if (answer == QUESTION_UNCLEAR) {
		ask_again(ch, q->ask.can_remember ? "y, n or a is needed (n and a space begin a reason)"
										  : "y or n is needed (n and a space begin a reason)");
		return;
	}
	d.message = reason;
	lacks = answer_lacks(&q->ask, &d);
	if (lacks) {
		ask_again(ch, lacks);
		return;
	}
	send_answer(ch, q, &d);
}

static void take_choice(struct chat *ch, struct question *q, struct span choice, const char *text) {
	_cleanup_free_ char *why = NULL, *label = question_choose(choice, text, &why);
	_cleanup_free_ char *question = span_dup(span_member(choice, "question"), NULL);
	struct span input = q->ask.input;
	if (!label || !question) {
		ask_again(ch, why ? why : "this cannot be answered here");
		return;
	}
	json_object_set_new(q->answers, question, json_string(label));
	q->asked++;
	if (current_choice(q).p) {
		chat_ask(ch);
		return;
	}
	_cleanup_json_ json_t *changed = json_loadb(input.p, input.n, JSON_ALLOW_NUL, NULL);
	if (changed) json_object_set(changed, "answers", q->answers);
	struct speech_decision d = {.allow = true, .input = changed};
	send_answer(ch, q, &d);
}

void chat_question_answer(struct chat *ch, const char *text) {
	struct question *q = chat_question(ch);
	struct span choice = q ? current_choice(q) : SPAN_NONE;
	if (!q) return; /* it went away while a key was being typed */
	if (!ch->p)
		ask_again(ch, "the daemon is away: answer when it is back");
	else if (choice.p)
		take_choice(ch, q, choice, text);
	else
		take_permission(ch, q, text);
}
