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
/* Print the choices of a form, a request for values. */
void question_show_form_choices(struct show *s, bool can_accept, bool has_fields);

/* The typed answer to a request. The last two are of forms. */
enum question_answer { QUESTION_UNCLEAR, QUESTION_YES, QUESTION_NO, QUESTION_ALWAYS, QUESTION_CANCEL, QUESTION_EDIT };
/* *reason: the text behind "n " or "no "; NULL: none. */
enum question_answer question_parse(const char *text, bool form, const char **reason);
