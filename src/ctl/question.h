/* SPDX-License-Identifier: MIT
 *
 * Print a request of the agent so that a user can decide on it: a command as text, a change as a difference, a plan as
 * its text, any other input as short lines; and the choices, with what each does.
 */
#pragma once

#include "ctl/show.h"

/* Print all of it. */
void question_show(struct show *s, const struct speech_ask *ask);
/* Print the choices. */
void question_show_choices(struct show *s, const struct speech_ask *ask);
/* Print one question of AskUserQuestion with its options. */
void question_show_options(struct show *s, struct span question);

/* The typed answer to a permission request. */
enum question_answer { QUESTION_UNCLEAR, QUESTION_YES, QUESTION_NO, QUESTION_ALWAYS };
/* *reason: the text behind "n " or "no "; NULL: none. */
enum question_answer question_parse(const char *text, const char **reason);

/* Return the answer to a question of AskUserQuestion: the labels of the numbers in text, or the text itself; the caller
 * frees. NULL: it is no answer, *why is the reason (the caller frees it). */
char *question_choose(struct span question, const char *text, char **why);
