/* SPDX-License-Identifier: MIT
 *
 * The fields that a user fills in to answer a question of the agent: the questions of a tool, or the properties of a
 * form's schema. An answer is an object with their values.
 */
#pragma once

#include "ctl/show.h"

enum form_type {
	FORM_TEXT,
	FORM_NUMBER,
	FORM_INTEGER,
	FORM_BOOLEAN,
	FORM_CHOICE,  /* of one of the options */
	FORM_CHOICES, /* of several */
	FORM_UNKNOWN, /* it cannot be entered here */
};

/* Points into the question. */
struct form_field {
	enum form_type type;
	struct span key;     /* its name in the answer, a string */
	struct span title;   /* a string */
	struct span schema;  /* its description, an object; absent: it is a question of a tool */
	struct span options; /* an array of values, or of objects with a value */
	struct span names;   /* of the options, an array; absent: they have their own */
	struct span preset;  /* the value if nothing is entered; absent: none */
	bool required;
	bool free;   /* own words are an answer, too */
	bool secret; /* the value is not to be shown */
};

/* Read field n. False: there are no more. */
bool form_read(const struct speech_ask *ask, size_t n, struct form_field *f);
/* Return the name of a field that cannot be entered here; the caller frees. NULL: there is none. */
char *form_unknown(const struct speech_ask *ask);
/* Return true if there are fields and one is required: an answer needs values. */
bool form_needs_values(const struct speech_ask *ask);
/* Print the field with its options. */
void form_show(struct show *s, const struct form_field *f);
/* Return the words before the input. */
const char *form_prompt(const struct form_field *f);
/* Return the value of the text, a new reference. NULL: it has none and *why is the reason (the caller frees it), or
 * NULL if the field is left out. */
json_t *form_value(const struct form_field *f, const char *text, char **why);
/* Print the values so far. */
void form_show_values(struct show *s, const struct speech_ask *ask, json_t *values);
/* Return the values of n words NAME=TEXT, a new reference; all that are required must be there. NULL: *why is the
 * reason (the caller frees it). */
json_t *form_fill(const struct speech_ask *ask, char *const *words, size_t n, char **why);
/* Return the input of the decision with these values, a new reference; NULL without memory. */
json_t *form_input(const struct speech_ask *ask, json_t *values);
