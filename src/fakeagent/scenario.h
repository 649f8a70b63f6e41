/* SPDX-License-Identifier: MIT
 *
 * A scenario: a small JSON file that says what the model answers to what. plenum-fakeagent(1) describes it.
 */
#pragma once

#include "fakeagent/model.h"
#include "fakeagent/tools.h"

struct scenario;

/* NULL: *error says why. */
struct scenario *scenario_load(const char *path, char **error);
void scenario_free(struct scenario *s);
/* The reply to the last message; false: no rule matches. */
bool scenario_reply(struct agent *a, struct turn *t, struct reply *r);
/* Canned output of a tool; false: the scenario has none. */
bool scenario_tool(struct agent *a, const char *name, struct tool_output *o);
/* Members of the scenario's object of that name go into frame. s may be NULL. */
void scenario_merge(const struct scenario *s, const char *name, json_t *frame);
/* Its model, mode, rules and faults. */
bool scenario_apply(struct agent *a, char **error);
