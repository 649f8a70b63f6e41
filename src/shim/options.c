/* SPDX-License-Identifier: MIT */
#include "shim/options.h"

#include "base/macros.h"
#include "base/paths.h"
#include "dialect/jsonrpc.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* How many words a flag takes when its value is not joined with `=`. A value may look like a flag, so the flags that
 * take one must be known. */
enum arity { NO_VALUE, ONE_VALUE, MAY_HAVE, MANY_VALUES };

static const struct {
	const char *name;
	enum arity arity;
} flags[] = {
	{"--output-format", ONE_VALUE},
	{"--input-format", ONE_VALUE},
	{"--permission-prompt-tool", ONE_VALUE},
	{"--permission-prompts", ONE_VALUE},
	{"--permission-mode", ONE_VALUE},
	{"--model", ONE_VALUE},
	{"--fallback-model", ONE_VALUE},
	{"--system-prompt", ONE_VALUE},
	{"--system-prompt-file", ONE_VALUE},
	{"--append-system-prompt", ONE_VALUE},
	{"--append-system-prompt-file", ONE_VALUE},
	{"--max-turns", ONE_VALUE},
	{"--max-budget-usd", ONE_VALUE},
	{"--task-budget", ONE_VALUE},
	{"--max-thinking-tokens", ONE_VALUE},
	{"--thinking", ONE_VALUE},
	{"--thinking-display", ONE_VALUE},
	{"--effort", ONE_VALUE},
	{"--json-schema", ONE_VALUE},
	{"--settings", ONE_VALUE},
	{"--managed-settings", ONE_VALUE},
	{"--setting-sources", ONE_VALUE},
	{"--session-id", ONE_VALUE},
	{"--resume-session-at", ONE_VALUE},
	{"--resume-drops-turn", ONE_VALUE},
	{"--debug-file", ONE_VALUE},
	{"--agent", ONE_VALUE},
	{"--agents", ONE_VALUE},
	{"--name", ONE_VALUE},
	{"-n", ONE_VALUE},
	{"--resume", MAY_HAVE},
	{"-r", MAY_HAVE},
	{"--debug", MAY_HAVE},
	{"-d", MAY_HAVE},
	{"--worktree", MAY_HAVE},
	{"-w", MAY_HAVE},
	{"--mcp-config", MANY_VALUES},
	{"--allowedTools", MANY_VALUES},
	{"--allowed-tools", MANY_VALUES},
	{"--disallowedTools", MANY_VALUES},
	{"--disallowed-tools", MANY_VALUES},
	{"--tools", MANY_VALUES},
	{"--betas", MANY_VALUES},
	{"--add-dir", MANY_VALUES},
	{"--plugin-dir", MANY_VALUES},
};

/* One flag of the command line with its values: name is not terminated where the value is joined. */
struct flag {
	const char *name;
	size_t name_len;
	const char *value; /* the first; NULL without one */
	char **more;       /* where further values begin */
	size_t n_more;
	bool lacks; /* it has no value, and takes one */
};

/* Read the next flag from *word on; return the word behind it. NULL: there is no other flag. */
static char **next_flag(char **word, struct flag *f) {
	while (*word && **word != '-') word++;
	if (!*word || strcmp(*word, "--") == 0) return NULL;
	const char *eq = strncmp(*word, "--", 2) == 0 ? strchr(*word, '=') : NULL;
	*f = (struct flag){
		.name = *word, .name_len = eq ? (size_t)(eq - *word) : strlen(*word), .value = eq ? eq + 1 : NULL};
	enum arity arity = NO_VALUE;
	for (size_t i = 0; !eq && i < ARRAY_SIZE(flags); i++)
		if (strcmp(flags[i].name, *word) == 0) arity = flags[i].arity;
	word++;
	f->lacks = !*word && (arity == ONE_VALUE || arity == MANY_VALUES);
	if (arity == NO_VALUE || !*word || (arity == MAY_HAVE && **word == '-')) return word;
	f->value = *word++;
	f->more = word;
	if (arity == MANY_VALUES)
		for (; *word && **word != '-'; word++) f->n_more++;
	return word;
}

static bool named(const struct flag *f, const char *name) {
	return strlen(name) == f->name_len && memcmp(f->name, name, f->name_len) == 0;
}

struct formats {
	bool print;
	const char *input, *output; /* NULL: not named */
};

static bool is_lines(const char *format) {
	return format && strcmp(format, "stream-json") == 0;
}

static void apply(struct options *o, struct formats *formats, const struct flag *f) {
	if (named(f, "--input-format")) formats->input = f->value ? f->value : "";
	if (named(f, "--output-format")) formats->output = f->value ? f->value : "";
	if (named(f, "-p") || named(f, "--print")) formats->print = true;
	if (named(f, "--permission-prompt-tool")) o->approve = f->value && strcmp(f->value, "stdio") == 0;
	if (named(f, "--include-partial-messages")) o->partial = true;
	if (named(f, "--replay-user-messages")) o->echo = true;
	if (named(f, "--session-mirror")) o->mirror = true;
	if (named(f, "--await-initialize")) o->raw_init = true;
	if (named(f, "--fork-session")) o->fork = true;
	if (named(f, "--resume") || named(f, "-r")) o->resume = f->value;
	if (named(f, "-v") || named(f, "--version") || named(f, "-h") || named(f, "--help")) o->itself = true;
	if (f->lacks) o->itself = true; /* else the daemon's own flags, which follow, would be its value */
}

static const char *setting(const char *name) {
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

static bool truthy(const char *name) {
	static const char *const no[] = {"0", "false", "no", "off"};
	const char *value = setting(name);
	if (!value) return false;
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		if (strcasecmp(value, no[i]) == 0) return false;
	return true;
}

/* A first word without a dash is a subcommand, or a prompt. Without -p the CLI has its screen on a terminal; on a
 * terminal it takes no lines. */
static bool is_stream(char **argv, const struct formats *f) {
	bool lines = is_lines(f->input) && is_lines(f->output) && argv[0][0] == '-';
	return lines && !isatty(STDIN_FILENO) && (f->print || !isatty(STDOUT_FILENO));
}

/* A format that the CLI does not have is the CLI's to refuse. */
static enum options_print print_of(const struct options *o, const struct formats *f) {
	bool plain = !f->input || strcmp(f->input, "text") == 0;
	if (!o->session || !f->print || !plain || o->argv[0][0] != '-') return PRINT_NOT;
	if (!f->output || strcmp(f->output, "text") == 0) return PRINT_TEXT;
	if (strcmp(f->output, "json") == 0) return PRINT_JSON;
	return is_lines(f->output) ? PRINT_LINES : PRINT_NOT;
}

struct protocol {
	const char *word, *head, *profile;
};

/* An editor starts `gemini --acp`, a program `codex app-server`. */
static const struct protocol *protocol_of(const char *first) {
	static const struct protocol all[] = {
		{"--acp", JSONRPC_HEAD, "gemini"}, {"app-server", JSONRPC_BARE_HEAD, "codex"}, {NULL, NULL, "claude"}};
	const struct protocol *p = all;
	while (p->word && !(first && strcmp(first, p->word) == 0)) p++;
	return p;
}

void options_read(struct options *o, char **argv, char **env) {
	struct formats formats = {0};
	*o = (struct options){.argv = argv, .env = env};
	if (argv[0] && argv[0][0] == '/' && path_is_program(argv[0])) o->cli = *argv++;
	const struct protocol *protocol = protocol_of(argv[0]);
	o->rpc = protocol->head;
	o->argv = argv += o->rpc != NULL;
	for (struct flag f; !o->rpc && (argv = next_flag(argv, &f));) apply(o, &formats, &f);
	o->stream = !o->rpc && is_stream(o->argv, &formats);
	o->session = setting("PLENUM_SESSION");
	o->print = o->itself || o->rpc ? PRINT_NOT : print_of(o, &formats);
	o->profile = setting("PLENUM_PROFILE");
	if (!o->profile) o->profile = protocol->profile;
	o->name = setting("PLENUM_NAME");
	o->own = !o->session && !truthy("PLENUM_KEEP");
	o->state_events = truthy("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS");
	o->state_reads = truthy("CLAUDE_CODE_SDK_READS_SESSION_STATE");
}

bool options_take_prompt(struct options *o) {
	size_t n = 0;
	struct flag f;
	bool over = false; /* after -- there are no flags */
	while (o->argv[n]) n++;
	char **rest = calloc(n + 1, sizeof *rest), **to = rest, **next;
	if (!rest) return false;
	for (char **word = o->argv; word && *word; word = next) {
		next = word + 1;
		if (over || **word != '-') {
			if (!o->prompt) o->prompt = *word;
		} else if (strcmp(*word, "--") == 0) {
			over = true;
		} else {
			next = next_flag(word, &f);
			bool format = named(&f, "--output-format") || named(&f, "--input-format");
			for (char **w = word; w < next && !format; w++) *to++ = *w;
		}
	}
	o->argv = o->copied = rest;
	return true;
}

bool options_is_flag(const struct options_value *v, const char *name) {
	return strlen(name) == v->flag_len && memcmp(v->flag, name, v->flag_len) == 0;
}

bool options_is_mcp_config(const struct options_value *v) {
	return options_is_flag(v, "--mcp-config");
}

bool options_each_value(const struct options *o, bool (*each)(void *ctx, const struct options_value *v), void *ctx) {
	char **word = o->argv;
	for (struct flag f; (word = next_flag(word, &f));) {
		bool joined = f.value && !f.more;
		char **first = joined ? word - 1 : f.more - (f.value != NULL);
		for (size_t i = 0; f.value && i <= f.n_more; i++) {
			struct options_value v = {f.name, f.name_len, i ? first[i] : f.value, first + i, joined};
			if (!each(ctx, &v)) return false;
		}
	}
	return true;
}
