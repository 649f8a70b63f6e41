/* SPDX-License-Identifier: MIT
 *
 * A scenario: a small JSON file with the model's answers, described by plenum-fakeagent(1).
 */
#pragma once

#include "fakeagent/js.h"

/* The state of a turn that conditions of rules are compared with. */
struct scenario_moment {
	const char *prompt;
	char *tool, *output; /* of the last tool of this turn, or NULL; owned */
	bool failed;         /* that tool */
	long turn, call;     /* from 1 */
};

/* Load the file and set its model, rules and faults. False: *error has the reason. */
bool scenario_load(const char *path, char **error);
bool scenario_loaded(void);
const char *scenario_mode(void); /* its permission mode, or NULL */
/* Return the rule for the model's reply, or NULL. */
const json_t *scenario_rule(const struct scenario_moment *m);
json_t *scenario_say(const json_t *rule, const struct scenario_moment *m); /* its `say` with variables replaced */
const json_t *scenario_tool(const char *name);                             /* canned output, or NULL */
void scenario_merge(const char *name, json_t *frame); /* merge the members of its object of that name into frame */
