/* SPDX-License-Identifier: MIT
 *
 * The command line: the flags of the CLI that matter to a client, and our own. Flags that we do not know are taken and
 * forgotten, as a client of a newer CLI would want; one that is followed by a word is taken to have a value. Strings
 * point into argv or the environment.
 */
#pragma once

#include "fakeagent/json.h"

#include <stdbool.h>

struct options {
	int argc;
	char **argv;
	bool print, stream_in, stream_out, verbose, ask_stdio, partial, replay, fork, resume_last, await_initialize;
	bool no_persistence, version, help, hook_events, bypass_allowed;
	bool old;                 /* --compat=2.1.197 */
	const char *version_name; /* "2.1.332" */
	const char *resume;       /* conversation id */
	const char *session_id;
	const char *model, *mode, *mcp_config, *json_schema;
	const char *scenario, *conversations;
	const char *prompt;           /* first word that is no flag */
	json_t *faults;               /* array of "NAME[=N]" */
	json_t *allowed, *disallowed; /* arrays of rules */
	long max_turns;
};

/* False: *error says what is wrong (the caller prints it and exits with 1). */
bool options_read(struct options *o, int argc, char **argv, char **error);
void options_free(struct options *o);
void options_usage(void);
