/* SPDX-License-Identifier: MIT
 *
 * A scenario: a small JSON file with the model's answers. plenum-fakeagent(1) describes it.
 */
#pragma once

#include "fakeagent/js.h"

/* The present moment of a turn, for the conditions of rules. */
struct scenario_moment {
	const char *prompt;
	char *tool, *output; /* of the last tool of this turn, or NULL; owned */
	bool failed;         /* that tool */
	long turn, call;     /* from 1 */
};

/* Also sets its model, rules and faults. False: *error says why. */
bool scenario_load(const char *path, char **error);
bool scenario_loaded(void);
const char *scenario_mode(void); /* its permission mode, or NULL */
/* The rule of the model's reply, or NULL. */
const json_t *scenario_rule(const struct scenario_moment *m);
json_t *scenario_say(const json_t *rule, const struct scenario_moment *m); /* its `say` with the variables replaced */
const json_t *scenario_tool(const char *name);                             /* canned output, or NULL */
void scenario_merge(const char *name, json_t *frame); /* members of its object of that name go into frame */
