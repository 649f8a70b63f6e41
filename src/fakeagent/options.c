/* SPDX-License-Identifier: MIT */
#include "fakeagent/options.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

enum kind {
	FLAG,     /* no value */
	VALUE,    /* needs one: --name=value or --name value */
	OPTIONAL, /* --name=value, or --name value where the next word is no flag */
};

enum id {
	PRINT,
	IN_FORMAT,
	OUT_FORMAT,
	VERBOSE,
	ASK_TOOL,
	PARTIAL,
	REPLAY,
	RESUME,
	SESSION,
	FORK,
	CONTINUE,
	MODEL,
	MODE,
	SKIP_PERMISSIONS,
	ALLOW_SKIP,
	AWAIT,
	ALLOWED,
	DISALLOWED,
	MCP_CONFIG,
	MAX_TURNS,
	NO_PERSIST,
	HOOK_EVENTS,
	VERSION,
	HELP,
	SCENARIO,
	FAULT,
	COMPAT,
	CONVERSATIONS,
	JSON_SCHEMA,
	SKIPPED,
};

struct flag {
	const char *name;
	enum kind kind;
	enum id id;
};

static const struct flag FLAGS[] = {
	{"-p", FLAG, PRINT},
	{"--print", FLAG, PRINT},
	{"--input-format", VALUE, IN_FORMAT},
	{"--output-format", VALUE, OUT_FORMAT},
	{"--verbose", FLAG, VERBOSE},
	{"--permission-prompt-tool", VALUE, ASK_TOOL},
	{"--include-partial-messages", FLAG, PARTIAL},
	{"--replay-user-messages", FLAG, REPLAY},
	{"--include-hook-events", FLAG, HOOK_EVENTS},
	{"--resume", OPTIONAL, RESUME},
	{"-r", OPTIONAL, RESUME},
	{"--session-id", VALUE, SESSION},
	{"--fork-session", FLAG, FORK},
	{"--continue", FLAG, CONTINUE},
	{"-c", FLAG, CONTINUE},
	{"--model", VALUE, MODEL},
	{"--permission-mode", VALUE, MODE},
	{"--dangerously-skip-permissions", FLAG, SKIP_PERMISSIONS},
	{"--allow-dangerously-skip-permissions", FLAG, ALLOW_SKIP},
	{"--await-initialize", FLAG, AWAIT},
	{"--allowedTools", VALUE, ALLOWED},
	{"--allowed-tools", VALUE, ALLOWED},
	{"--disallowedTools", VALUE, DISALLOWED},
	{"--disallowed-tools", VALUE, DISALLOWED},
	{"--mcp-config", VALUE, MCP_CONFIG},
	{"--max-turns", VALUE, MAX_TURNS},
	{"--json-schema", VALUE, JSON_SCHEMA},
	{"--no-session-persistence", FLAG, NO_PERSIST},
	{"-v", FLAG, VERSION},
	{"--version", FLAG, VERSION},
	{"-h", FLAG, HELP},
	{"--help", FLAG, HELP},
	{"--scenario", VALUE, SCENARIO},
	{"--fault", VALUE, FAULT},
	{"--compat", VALUE, COMPAT},
	{"--conversations", VALUE, CONVERSATIONS},
	/* known, without effect here, and without a value: a prompt may follow them */
	{"--strict-mcp-config", FLAG, SKIPPED},
	{"--session-mirror", FLAG, SKIPPED},
	{"--forward-subagent-text", FLAG, SKIPPED},
	{"--bare", FLAG, SKIPPED},
	{"--safe-mode", FLAG, SKIPPED},
	{"--debug", FLAG, SKIPPED},
};

/* Rules are separated by commas or blanks outside parentheses. */
static void put_rules(json_t *list, const char *text) {
	while (*text) {
		size_t n = 0;
		int depth = 0;
		for (; text[n] && (depth || !strchr(", ", text[n])); n++) depth += text[n] == '(' ? 1 : text[n] == ')' ? -1 : 0;
		if (n) json_array_append_new(list, js_text(text, n));
		text += n + (text[n] != 0);
	}
}

static void put_faults(struct options *o, const char *text) {
	while (text && *text) {
		size_t n = strcspn(text, ",");
		if (n) json_array_append_new(o->faults, js_text(text, n));
		text += n + (text[n] != 0);
	}
}

static bool set_compat(struct options *o, const char *value, char **error) {
	o->old = value && strcmp(value, "2.1.197") == 0;
	if (value && !o->old && strcmp(value, "2.1.332") != 0) {
		*error = str_printf("--compat knows 2.1.197 and 2.1.332, not '%s'", value);
		return false;
	}
	o->version_name = o->old ? "2.1.197" : "2.1.332";
	return true;
}

static void set_switch(struct options *o, enum id id) {
	switch (id) {
	case PRINT:
		o->print = true;
		break;
	case VERBOSE:
		o->verbose = true;
		break;
	case PARTIAL:
		o->partial = true;
		break;
	case REPLAY:
		o->replay = true;
		break;
	case HOOK_EVENTS:
		o->hook_events = true;
		break;
	case FORK:
		o->fork = true;
		break;
	case CONTINUE:
		o->resume_last = true;
		break;
	case SKIP_PERMISSIONS:
		o->mode = "bypassPermissions";
		break;
	case ALLOW_SKIP:
		o->bypass_allowed = true;
		break;
	case AWAIT:
		o->await_initialize = true;
		break;
	case NO_PERSIST:
		o->no_persistence = true;
		break;
	case VERSION:
		o->version = true;
		break;
	case HELP:
		o->help = true;
		break;
	default:
		break;
	}
}

static bool set_value(struct options *o, enum id id, const char *value, char **error) {
	switch (id) {
	case IN_FORMAT:
		o->stream_in = strcmp(value, "stream-json") == 0;
		break;
	case OUT_FORMAT:
		o->stream_out = strcmp(value, "stream-json") == 0;
		break;
	case ASK_TOOL:
		o->ask_stdio = strcmp(value, "stdio") == 0;
		break;
	case RESUME:
		o->resume = value;
		break;
	case SESSION:
		o->session_id = value;
		break;
	case MODEL:
		o->model = value;
		break;
	case MODE:
		o->mode = value;
		break;
	case ALLOWED:
		put_rules(o->allowed, value);
		break;
	case DISALLOWED:
		put_rules(o->disallowed, value);
		break;
	case MCP_CONFIG:
		o->mcp_config = value;
		break;
	case MAX_TURNS:
		o->max_turns = strtol(value, NULL, 10);
		break;
	case JSON_SCHEMA:
		o->json_schema = value;
		break;
	case SCENARIO:
		o->scenario = value;
		break;
	case FAULT:
		put_faults(o, value);
		break;
	case COMPAT:
		return set_compat(o, value, error);
	case CONVERSATIONS:
		o->conversations = value;
		break;
	default:
		break;
	}
	return true;
}

static const struct flag *find_flag(const char *word, size_t n) {
	for (size_t i = 0; i < ARRAY_SIZE(FLAGS); i++)
		if (strlen(FLAGS[i].name) == n && memcmp(FLAGS[i].name, word, n) == 0) return &FLAGS[i];
	return NULL;
}

static bool read_word(struct options *o, int argc, char **argv, int *i, char **error) {
	static const struct flag unknown = {"", OPTIONAL, SKIPPED};
	const char *word = argv[*i];
	size_t n = strcspn(word, "=");
	const struct flag *f = find_flag(word, n);
	if (!f) f = &unknown;
	const char *value = word[n] ? word + n + 1 : NULL;
	if (f->kind == FLAG) {
		set_switch(o, f->id);
		return true;
	}
	bool next = *i + 1 < argc && (f->kind == VALUE || argv[*i + 1][0] != '-');
	if (!value && next) value = argv[++*i];
	if (value) return set_value(o, f->id, value, error);
	if (f->kind == OPTIONAL) return true;
	*error = str_printf("option '%s <value>' argument missing", word);
	return false;
}

bool options_read(struct options *o, int argc, char **argv, char **error) {
	*o = (struct options){.argc = argc, .argv = argv, .version_name = "2.1.332"};
	o->faults = js_need(json_array());
	o->allowed = js_need(json_array());
	o->disallowed = js_need(json_array());
	o->scenario = getenv("PLENUM_FAKEAGENT_SCENARIO");
	put_faults(o, getenv("PLENUM_FAKEAGENT_FAULTS"));
	const char *compat = getenv("PLENUM_FAKEAGENT_COMPAT");
	if (compat && !set_compat(o, compat, error)) return false;
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] != '-') {
			if (!o->prompt) o->prompt = argv[i];
		} else if (!read_word(o, argc, argv, &i, error)) {
			return false;
		}
	}
	if (o->old && o->await_initialize) {
		*error = str_printf("unknown option '--await-initialize'");
		return false;
	}
	if (o->mode && strcmp(o->mode, "bypassPermissions") == 0) o->bypass_allowed = true;
	return true;
}

void options_free(struct options *o) {
	json_decref(o->faults);
	json_decref(o->allowed);
	json_decref(o->disallowed);
}

void options_usage(void) {
	puts("usage: plenum-fakeagent -p --input-format stream-json --output-format stream-json --verbose [FLAG...]\n"
		 "\n"
		 "Speaks the stream-json protocol as the agent CLI does, over a scripted model.\n"
		 "Its own flags; see plenum-fakeagent(1) for the directives that a prompt may hold and for scenarios:\n"
		 "  --scenario FILE       what the model answers to what\n"
		 "  --fault NAME[=N],...  misbehave on purpose\n"
		 "  --compat VERSION      2.1.332 (default) or 2.1.197\n"
		 "  --conversations DIR   where conversations are kept for --resume");
}
