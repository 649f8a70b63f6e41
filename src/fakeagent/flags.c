/* SPDX-License-Identifier: MIT */
#include "fakeagent/flags.h"

#include "base/str.h"

#include <stdio.h>

static struct flags f = {.version_name = "2.1.332"};

enum kind {
	ON,       /* no value */
	TEXT,     /* requires one: --name=value or --name value */
	OPTIONAL, /* --name=value, or --name value if the next word is not a flag */
	EQUALS,   /* on if the value is `want` */
	LIST,     /* adds to an array: rules, faults */
	NUMBER,
	COMPAT,
	PRESET, /* no value: sets `want` */
};

static const struct flag {
	const char *name;
	enum kind kind;
	void *at;
	const char *want;
} FLAGS[] = {
	{"--input-format", EQUALS, &f.stream_in, "stream-json"},
	{"--output-format", EQUALS, &f.stream_out, "stream-json"},
	{"--verbose", ON, &f.verbose, NULL},
	{"--permission-prompt-tool", EQUALS, &f.ask_stdio, "stdio"},
	{"--include-partial-messages", ON, &f.partial, NULL},
	{"--replay-user-messages", ON, &f.replay, NULL},
	{"--resume", OPTIONAL, &f.resume, NULL},
	{"-r", OPTIONAL, &f.resume, NULL},
	{"--session-id", TEXT, &f.session_id, NULL},
	{"--fork-session", ON, &f.fork, NULL},
	{"--continue", ON, &f.resume_last, NULL},
	{"-c", ON, &f.resume_last, NULL},
	{"--model", TEXT, &f.model, NULL},
	{"--permission-mode", TEXT, &f.mode, NULL},
	{"--dangerously-skip-permissions", PRESET, &f.mode, "bypassPermissions"},
	{"--allow-dangerously-skip-permissions", ON, &f.bypass_allowed, NULL},
	{"--acp", ON, &f.acp, NULL},
	{"--experimental-acp", ON, &f.acp, NULL},
	{"--await-initialize", ON, &f.await_initialize, NULL},
	{"--allowedTools", LIST, &f.allowed, ", "},
	{"--allowed-tools", LIST, &f.allowed, ", "},
	{"--disallowedTools", LIST, &f.disallowed, ", "},
	{"--disallowed-tools", LIST, &f.disallowed, ", "},
	{"--mcp-config", TEXT, &f.mcp_config, NULL},
	{"--max-turns", NUMBER, &f.max_turns, NULL},
	{"--no-session-persistence", ON, &f.no_persistence, NULL},
	{"-v", ON, &f.version, NULL},
	{"--version", ON, &f.version, NULL},
	{"-h", ON, &f.help, NULL},
	{"--help", ON, &f.help, NULL},
	{"--scenario", TEXT, &f.scenario, NULL},
	{"--fault", LIST, &f.faults, ","},
	{"--compat", COMPAT, NULL, NULL},
	{"--conversations", TEXT, &f.conversations, NULL},
};

/* Add the parts of text; separators inside parentheses do not split. */
static void put_list(json_t *list, const char *text, const char *separators) {
	while (text && *text) {
		size_t n = 0;
		for (int depth = 0; text[n] && (depth || !strchr(separators, text[n])); n++)
			depth += text[n] == '(' ? 1 : text[n] == ')' ? -1 : 0;
		if (n) json_array_append_new(list, js_text(text, n));
		text += n + (text[n] != 0);
	}
}

static bool set_compat(const char *value, char **error) {
	f.old = js_same(value, "2.1.197");
	f.version_name = f.old ? "2.1.197" : "2.1.332";
	if (js_same(value, f.version_name)) return true;
	*error = str_printf("--compat knows 2.1.197 and 2.1.332, not '%s'", value);
	return false;
}

static bool set(const struct flag *flag, const char *value, char **error) {
	switch (flag->kind) {
	case ON:
		*(bool *)flag->at = true;
		break;
	case EQUALS:
		*(bool *)flag->at = strcmp(value, flag->want) == 0;
		break;
	case TEXT:
	case OPTIONAL:
	case PRESET:
		if (flag->at) *(const char **)flag->at = flag->kind == PRESET ? flag->want : value;
		break;
	case LIST:
		put_list(*(json_t **)flag->at, value, flag->want);
		break;
	case NUMBER:
		*(long *)flag->at = strtol(value, NULL, 10);
		break;
	case COMPAT:
		return set_compat(value, error);
	}
	return true;
}

/* Read the flag at *argv, and its value if that is the next word. */
static bool read_flag(char ***argv, char **error) {
	static const struct flag unknown = {"", OPTIONAL, NULL, NULL};
	const char *word = **argv, *next = (*argv)[1];
	size_t n = strcspn(word, "=");
	const struct flag *flag = &unknown;
	for (size_t i = 0; i < ARRAY_SIZE(FLAGS); i++)
		if (strlen(FLAGS[i].name) == n && memcmp(FLAGS[i].name, word, n) == 0) flag = &FLAGS[i];
	const char *value = word[n] ? word + n + 1 : NULL;
	bool alone = flag->kind == ON || flag->kind == PRESET;
	if (!alone && !value && next && (flag->kind != OPTIONAL || *next != '-')) value = *++*argv;
	if (alone || value) return set(flag, value, error);
	if (flag->kind == OPTIONAL) return true;
	*error = str_printf("option '%s <value>' argument missing", word);
	return false;
}

/* The agent behind another protocol streams its replies and asks. */
static void speak_rpc(void) {
	f.stream_in = f.stream_out = f.verbose = f.partial = f.ask_stdio = true;
	f.replay = f.await_initialize = f.resume_last = f.old = false;
	f.resume = NULL;
}

bool flags_read(char **argv, char **error) {
	const char *compat = getenv("PLENUM_FAKEAGENT_COMPAT");
	f.argv = argv;
	f.faults = js_need(json_array());
	f.allowed = js_need(json_array());
	f.disallowed = js_need(json_array());
	f.scenario = getenv("PLENUM_FAKEAGENT_SCENARIO");
	put_list(f.faults, getenv("PLENUM_FAKEAGENT_FAULTS"), ",");
	if (compat && !set_compat(compat, error)) return false;
	for (argv++; *argv; argv++) {
		if (strcmp(*argv, "app-server") == 0) f.app_server = true;
		if (**argv == '-' && !read_flag(&argv, error)) return false;
	}
	if (f.old && f.await_initialize) {
		*error = str_printf("unknown option '--await-initialize'");
		return false;
	}
	if (js_same(f.mode, "bypassPermissions")) f.bypass_allowed = true;
	if (f.acp || f.app_server) speak_rpc();
	return true;
}

const struct flags *flags(void) {
	return &f;
}

void flags_usage(void) {
	puts("usage: plenum-fakeagent -p --input-format stream-json --output-format stream-json --verbose [FLAG...]\n"
		 "       plenum-fakeagent --acp [FLAG...]\n"
		 "       plenum-fakeagent app-server [FLAG...]\n"
		 "\n"
		 "Speaks the stream-json protocol as the agent CLI does, over a scripted model.\n"
		 "Its own flags; see plenum-fakeagent(1) for the directives that a prompt may hold and for scenarios:\n"
		 "  --scenario FILE       what the model answers to what\n"
		 "  --fault NAME[=N],...  misbehave on purpose\n"
		 "  --compat VERSION      2.1.332 (default) or 2.1.197\n"
		 "  --conversations DIR   where conversations are kept for --resume");
}
