/* SPDX-License-Identifier: MIT
 *
 * The command line: the CLI's flags that matter to a client, and our own. An unknown flag is ignored, for clients of a
 * newer CLI; a following word without a dash is its value. Strings point into argv or the environment.
 */
#pragma once

#include "fakeagent/js.h"

struct flags {
	char **argv;
	bool stream_in, stream_out, verbose, ask_stdio, partial, replay, fork, resume_last, await_initialize;
	bool no_persistence, version, help, bypass_allowed;
	bool acp, app_server;     /* speak this in place of stream-json */
	bool old;                 /* --compat=2.1.197 */
	const char *version_name; /* "2.1.332" */
	const char *resume;       /* conversation id */
	const char *session_id, *model, *mode, *mcp_config, *scenario, *conversations;
	json_t *faults;               /* array of "NAME[=N]" */
	json_t *allowed, *disallowed; /* arrays of rules */
	long max_turns;
};

bool flags_read(char **argv, char **error); /* false: *error has the reason */
const struct flags *flags(void);
void flags_usage(void);
