/* SPDX-License-Identifier: MIT
 *
 * A scenario: a small JSON file with the model's answers, described by plenum-fakeagent(1).
 */
#pragma once

#include "fakeagent/agent.h"

/* The state of a turn that conditions of rules are compared with. */
struct scenario_moment {
	const char *prompt;
	char *tool, *output; /* of the last tool of this turn, or NULL; owned */
	bool failed;         /* that tool */
	long turn, call;     /* from 1 */
};

/* Load the file and set its model, rules and faults. False: *error has the reason. */
bool scenario_load(const char *path, char **error);
json_t *scenario_get(const char *name);                                  /* a member of the file, or NULL */
json_t *scenario_rule(const struct scenario_moment *m);                  /* the rule for the model's reply, or NULL */
json_t *scenario_expand(json_t *value, const struct scenario_moment *m); /* with variables replaced; new, or NULL */
