/* SPDX-License-Identifier: MIT */
#include "fakeagent/agent.h"

#include "base/str.h"

struct agent agent = {.compat = "2.1.332", .state = "idle"};

/* ---- faults ---------------------------------------------------------------------------------------------------- */

/* Stringified in the table's own macro: `stderr` is also a macro of stdio.h. */
#define ROW(name, number) {#name, number},
static const struct {
	const char *name;
	long usual;
} TABLE[] = {AGENT_FAULTS(ROW)};

bool agent_set_fault(const char *text) {
	char name[32] = "";
	size_t n = strcspn(text, "=");
	for (size_t i = 0; i < MIN(n, sizeof name - 1); i++) name[i] = text[i];
	for (char *dash = name; (dash = strchr(dash, '-'));) *dash = '_';
	for (int i = 0; i < FAULTS; i++) {
		if (strcmp(TABLE[i].name, name) != 0) continue;
		agent.fault[i] = text[n] ? strtol(text + n + 1, NULL, 10) : TABLE[i].usual;
		return true;
	}
	return false;
}

bool agent_has(enum fault fault) {
	return agent.fault[fault] > 0;
}

/* ---- flags ----------------------------------------------------------------------------------------------------- */

static const struct flag {
	const char *name;
	enum {
		ON,       /* no value */
		PRESET,   /* no value: sets `want` */
		TEXT,     /* requires one: --name=value or --name value */
		OPTIONAL, /* --name=value, or --name value if the next word is not a flag */
		EQUALS,   /* on if the value is `want` */
		LIST,     /* adds to an array, split at each of `want` */
	} kind;
	void *at;
	const char *want;
} FLAGS[] = {
	{"--input-format", EQUALS, &agent.stream_in, "stream-json"},
	{"--output-format", EQUALS, &agent.stream_out, "stream-json"},
	{"--verbose", ON, &agent.verbose, NULL},
	{"--permission-prompt-tool", EQUALS, &agent.ask_stdio, "stdio"},
	{"--include-partial-messages", ON, &agent.partial, NULL},
	{"--replay-user-messages", ON, &agent.replay, NULL},
	{"--resume", OPTIONAL, &agent.resume, NULL},
	{"-r", OPTIONAL, &agent.resume, NULL},
	{"--session-id", TEXT, &agent.session_id, NULL},
	{"--fork-session", ON, &agent.fork, NULL},
	{"--continue", ON, &agent.resume_last, NULL},
	{"-c", ON, &agent.resume_last, NULL},
	{"--model", TEXT, &agent.wanted_model, NULL},
	{"--permission-mode", TEXT, &agent.wanted_mode, NULL},
	{"--dangerously-skip-permissions", PRESET, &agent.wanted_mode, "bypassPermissions"},
	{"--allow-dangerously-skip-permissions", ON, &agent.bypass_allowed, NULL},
	{"--acp", ON, &agent.acp, NULL},
	{"--experimental-acp", ON, &agent.acp, NULL},
	{"--await-initialize", ON, &agent.await_initialize, NULL},
	{"--allowedTools", LIST, &agent.allowed, ", "},
	{"--allowed-tools", LIST, &agent.allowed, ", "},
	{"--disallowedTools", LIST, &agent.disallowed, ", "},
	{"--disallowed-tools", LIST, &agent.disallowed, ", "},
	{"--mcp-config", TEXT, &agent.mcp_config, NULL},
	{"--max-turns", TEXT, &agent.max_turns, NULL},
	{"--no-session-persistence", ON, &agent.no_persistence, NULL},
	{"-v", ON, &agent.version, NULL},
	{"--version", ON, &agent.version, NULL},
	{"-h", ON, &agent.help, NULL},
	{"--help", ON, &agent.help, NULL},
	{"--scenario", TEXT, &agent.scenario, NULL},
	{"--fault", LIST, &agent.faults, ","},
	{"--compat", TEXT, &agent.compat, NULL},
	{"--conversations", TEXT, &agent.conversations, NULL},
};

/* Add the parts of text; separators inside parentheses do not split. */
static void put_list(json_t *list, const char *text, const char *separators) {
	while (text && *text) {
		size_t n = 0;
		for (int depth = 0; text[n] && (depth || !strchr(separators, text[n])); n++)
			depth += text[n] == '(' ? 1 : text[n] == ')' ? -1 : 0;
		if (n) js_add(list, js_text(text, n));
		text += n + (text[n] != 0);
	}
}

/* Read the flag at *argv, and its value if that is the next word. */
static bool read_flag(char ***argv, char **error) {
	static const struct flag unknown = {"", OPTIONAL, NULL, NULL};
	const char *word = **argv, *next = (*argv)[1];
	size_t n = strcspn(word, "=");
	const struct flag *flag = &unknown;
	for (size_t i = 0; i < ARRAY_SIZE(FLAGS); i++)
		if (strlen(FLAGS[i].name) == n && memcmp(FLAGS[i].name, word, n) == 0) flag = &FLAGS[i];
	const char *value = flag->kind == PRESET ? flag->want : word[n] ? word + n + 1 : NULL;
	if (flag->kind != ON && !value && next && (flag->kind != OPTIONAL || *next != '-')) value = *++*argv;
	if (flag->kind == ON)
		*(bool *)flag->at = true;
	else if (!value && flag->kind != OPTIONAL)
		*error = str_printf("option '%s <value>' argument missing", word);
	else if (flag->kind == LIST)
		put_list(*(json_t **)flag->at, value, flag->want);
	else if (flag->kind == EQUALS)
		*(bool *)flag->at = strcmp(value, flag->want) == 0;
	else if (value && flag->at)
		*(const char **)flag->at = value;
	return !*error;
}

bool agent_read_flags(char **argv, char **error) {
	const char *compat = getenv("PLENUM_FAKEAGENT_COMPAT");
	agent.argv = argv;
	agent.faults = js_make("[]");
	agent.allowed = js_make("[]");
	agent.disallowed = js_make("[]");
	agent.scenario = getenv("PLENUM_FAKEAGENT_SCENARIO");
	for (int i = 0; i < FAULTS; i++) agent.fault[i] = -1;
	put_list(agent.faults, getenv("PLENUM_FAKEAGENT_FAULTS"), ",");
	if (compat) agent.compat = compat;
	for (argv++; *argv; argv++) {
		if (strcmp(*argv, "app-server") == 0) agent.app_server = true;
		if (**argv == '-' && !read_flag(&argv, error)) return false;
	}
	agent.old = strcmp(agent.compat, "2.1.197") == 0;
	if (!agent.old && strcmp(agent.compat, "2.1.332") != 0)
		*error = str_printf("--compat knows 2.1.197 and 2.1.332, not '%s'", agent.compat);
	else if (agent.old && agent.await_initialize)
		*error = str_printf("unknown option '--await-initialize'");
	if (js_same(agent.wanted_mode, "bypassPermissions")) agent.bypass_allowed = true;
	if (agent.acp || agent.app_server) { /* the agent behind another protocol streams its replies and asks */
		agent.stream_in = agent.stream_out = agent.verbose = agent.partial = agent.ask_stdio = true;
		agent.replay = agent.await_initialize = agent.resume_last = agent.old = false;
		agent.resume = NULL;
	}
	return !*error;
}

/* ---- the turn -------------------------------------------------------------------------------------------------- */

void agent_abort(enum abort why) {
	if (!agent.aborted || why == ABORT_SIGNAL) agent.aborted = why;
}
