/* SPDX-License-Identifier: MIT
 *
 * The command line: the flags of the CLI that matter to a client, and our own. An unknown flag is taken and forgotten,
 * as a client of a newer CLI would want; a following word without a dash is its value. Strings point into argv or the
 * environment.
 */
#pragma once

#include "fakeagent/js.h"

struct flags {
	char **argv;
	bool stream_in, stream_out, verbose, ask_stdio, partial, replay, fork, resume_last, await_initialize;
	bool no_persistence, version, help, bypass_allowed;
	bool old;                 /* --compat=2.1.197 */
	const char *version_name; /* "2.1.332" */
	const char *resume;       /* conversation id */
	const char *session_id, *model, *mode, *mcp_config, *scenario, *conversations;
	json_t *faults;               /* array of "NAME[=N]" */
	json_t *allowed, *disallowed; /* arrays of rules */
	long max_turns;
};

bool flags_read(char **argv, char **error); /* false: *error says why */
const struct flags *flags(void);
void flags_usage(void);
