/* SPDX-License-Identifier: MIT */
#include "fakeagent/agent.h"

struct agent agent = {.compat = "2.1.332", .state = "idle"};

static json_t *flags, *faults; /* by name: a text or a list; a number */

/* The faults with their usual numbers. */
#define FAULTS                                                                                                         \
	"{partial:7,huge:5242880,garbage:1,stderr:300,flood:100000,close-stdout:0,deaf:0,die:3,start-exit:1,"              \
	"start-delay:500,refuse-initialize:1,refuse-load:1,late:500,split:149504,ignore-sigterm:1,ignore-eof:1,"           \
	"grandchild:1,mute:1,no-newline:1,no-result:1}"

bool agent_set_faults(const json_t *list, char **error) {
	_cleanup_json_ json_t *usual = js_make(FAULTS);
	JS_EACH (fault, list) {
		const char *text = json_string_value(fault.v);
		size_t n = text ? strcspn(text, "=") : 0;
		json_t *number = json_object_getn(usual, text, n);
		if (!number) {
			*error = str_printf("no such fault: %s (plenum-fakeagent(1) lists them)", text ? text : "?");
			return false;
		}
		json_object_setn_new(faults, text, n,
							 text[n] ? json_integer(strtol(text + n + 1, NULL, 10)) : json_incref(number));
	}
	return true;
}

long agent_fault(const char *name) {
	const json_t *number = json_object_get(faults, name);
	return number ? (long)json_integer_value(number) : -1;
}

bool agent_has(const char *fault) {
	return agent_fault(fault) > 0;
}

/* Flags without a value, and with a required one. An unknown flag may have one: it is ignored, for clients of a newer
 * CLI, with the following word unless that begins with a dash. */
static const char SWITCHES[] = "verbose include-partial-messages replay-user-messages fork-session continue "
							   "allow-dangerously-skip-permissions acp await-initialize no-session-persistence "
							   "version help";
static const char TEXTS[] = "input-format output-format permission-prompt-tool session-id model permission-mode "
							"mcp-config max-turns scenario compat conversations allowedTools disallowedTools fault";
static const char *const OTHER_NAMES[][2] = {
	{"c", "continue"},
	{"h", "help"},
	{"r", "resume"},
	{"v", "version"},
};

const char *agent_flag(const char *name) {
	return js_get(flags, name);
}

json_t *agent_list(const char *name) {
	return json_object_get(flags, name);
}

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
	const char *word = **argv, *next = (*argv)[1], *equals = strchr(word, '='), *value = equals ? equals + 1 : NULL;
	_cleanup_free_ char *name = strndup(word + strspn(word, "-"), strcspn(word + strspn(word, "-"), "="));
	for (size_t i = 0; i < ARRAY_SIZE(OTHER_NAMES); i++)
		if (js_same(name, OTHER_NAMES[i][0])) js_replace(&name, OTHER_NAMES[i][1]);
	bool required = js_word(name, TEXTS);
	if (js_same(name, "dangerously-skip-permissions")) {
		js_replace(&name, "permission-mode");
		value = "bypassPermissions";
	} else if (js_word(name, SWITCHES)) {
		value = "";
	} else if (!value && next && (required || *next != '-')) {
		value = *++*argv;
	}
	if (!value && required)
		*error = str_printf("option '%s <value>' argument missing", word);
	else if (json_is_array(agent_list(name)))
		put_list(agent_list(name), value, js_same(name, "fault") ? "," : ", ");
	else if (value)
		js_put(flags, name, js_string(value));
	return !*error;
}

bool agent_read_flags(char **argv, char **error) {
	bool app_server = false;
	agent.argv = argv;
	faults = js_make("{}");
	flags = js_make("{fault:[],allowedTools:[],disallowedTools:[],scenario:%z,compat:%z}",
					getenv("PLENUM_FAKEAGENT_SCENARIO"), getenv("PLENUM_FAKEAGENT_COMPAT"));
	put_list(agent_list("fault"), getenv("PLENUM_FAKEAGENT_FAULTS"), ",");
	for (argv++; *argv; argv++) {
		app_server |= strcmp(*argv, "app-server") == 0;
		if (**argv == '-' && !read_flag(&argv, error)) return false;
	}
	if (agent_flag("compat")) agent.compat = agent_flag("compat");
	bool old = strcmp(agent.compat, "2.1.197") == 0;
	agent.rpc = app_server || agent_flag("acp");
	agent.old = old && !agent.rpc;
	agent.partial = agent.rpc || agent_flag("include-partial-messages");
	agent.ask_stdio = agent.rpc || js_is(flags, "permission-prompt-tool", "stdio");
	agent.replay = !agent.rpc && agent_flag("replay-user-messages");
	if (!old && strcmp(agent.compat, "2.1.332") != 0)
		*error = str_printf("--compat knows 2.1.197 and 2.1.332, not '%s'", agent.compat);
	else if (agent.old && agent_flag("await-initialize"))
		*error = str_printf("unknown option '--await-initialize'");
	return !*error;
}

void agent_abort(enum abort why) {
	if (!agent.aborted || why == ABORT_SIGNAL) agent.aborted = why;
}
