/* SPDX-License-Identifier: MIT */
#include "fakeagent/model.h"

#include "fakeagent/background.h"
#include "fakeagent/conversation.h"
#include "fakeagent/out.h"
#include "fakeagent/permission.h"
#include "fakeagent/query.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>

#define SPACES " \t\n\v\f\r"

extern char **environ;

struct directive {
	const char *from, *end;
	long number;
	char *word; /* a word or a text */
	json_t *input;
};

static json_t *after;   /* requests to send after the turn: {ms, name, input} */
static json_t *dialogs; /* kinds */

/* ---- blocks ---------------------------------------------------------------------------------------------------- */

/* These take text and input. */
static void say(json_t *reply, json_t *text) {
	js_add(json_object_get(reply, "blocks"), js_make("{type:text,text:%o}", text));
}

static void think(json_t *reply, json_t *text) {
	js_add(json_object_get(reply, "blocks"), js_make("{type:thinking,thinking:%o,signature:fake}", text));
}

static void call_tool(json_t *reply, const char *name, json_t *input) {
	js_add(json_object_get(reply, "blocks"),
		   js_make("{type:tool_use,id:%o,name:%s,input:%o}", js_id("toolu_0"), name, input));
}

static json_t *repeated(char c, long n) {
	struct buf b = JS_BUF;
	b.len = n > 0 ? (size_t)n : 0;
	if (!(b.data = malloc(b.len + 1))) js_no_memory();
	memset(b.data, c, b.len);
	return js_of(&b);
}

static void say_words(json_t *reply, char *const *words) {
	struct buf b = JS_BUF;
	for (; *words; words++) buf_printf(&b, "%s%s", b.len ? "\n" : "", *words);
	say(reply, js_of(&b));
}

/* The prompts so far, one per line; the last is this one. */
static void say_history(json_t *reply) {
	struct buf b = JS_BUF;
	JS_EACH (message, agent.messages) {
		_cleanup_json_ json_t *text = js_content(json_object_get(message.v, "content"));
		if (!js_is(message.v, "role", "user") || !json_string_length(text)) continue;
		buf_printf(&b, "%s%s", b.len ? "\n" : "", json_string_value(text));
	}
	say(reply, js_of(&b));
}

/* Send a request; the answer becomes the reply. */
static void ask(json_t *reply, const char *what, json_t *request) {
	struct query *q = query_send(request, -1);
	query_wait(q);
	json_t *payload = query_payload(q);
	_cleanup_free_ char *text = payload ? js_dumps(payload) : NULL;
	const char *error = query_error(q);
	say(reply, js_printf("%s: %s", what, text ? text : error ? error : "no answer"));
	query_free(q);
}

/* ---- beside the reply ------------------------------------------------------------------------------------------ */

static void print_noise(long n) {
	_cleanup_json_ json_t *noise = repeated('n', n);
	fd_write_all(2, json_string_value(noise), json_string_length(noise));
}

/* Return only after it has become sleep(1), signalled by the end of the pipe: no test sees it between fork and exec. */
static void leave_grandchild(void) {
	int fds[2];
	char c;
	if (pipe2(fds, O_CLOEXEC) < 0) return;
	if (fork() == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		setsid();
		execl("/bin/sleep", "sleep", "600", (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	fd_read(fds[0], &c, 1);
	close(fds[0]);
}

/* ---- directives ------------------------------------------------------------------------------------------------ */

/* Read an argument: n number, w word, j optional JSON object, t text up to the next @. A JSON object ends at its own
 * brace and may contain `@` and `}`. */
static bool read_argument(struct directive *d, char kind) {
	const char *from = d->end;
	json_error_t err = {0};
	char *rest;
	if (kind == 'j') {
		js_set(&d->input,
			   *from == '@' ? json_object() : json_loads(from, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &err));
		if (*from != '@' && d->input) d->end += err.position;
		return d->input;
	}
	d->end += strcspn(from, kind == 't' ? "@" : "@" SPACES);
	if (kind == 't' ? !*d->end : d->end == from) return false;
	free(d->word);
	if (!(d->word = strndup(from, (size_t)(d->end - from)))) js_no_memory();
	if (kind != 'n') return true;
	d->number = strtol(d->word, &rest, 10);
	return !*rest;
}

/* Return true if the directive is this one, with these arguments and the closing @, where it ends then. */
static bool is(struct directive *d, const char *name, const char *arguments) {
	size_t n = strlen(name);
	if (strncmp(d->from, name, n) != 0 || isalnum((unsigned char)d->from[n])) return false;
	d->end = d->from + n;
	for (; *arguments; arguments++) {
		d->end += strspn(d->end, SPACES);
		if (!read_argument(d, *arguments)) return false;
	}
	d->end += strspn(d->end, SPACES);
	return *d->end++ == '@';
}

/* Run a directive that speaks or asks. False: it is none. */
static bool run_reply(json_t *reply, struct directive *d) {
	if (is(d, "tool", "wj"))
		call_tool(reply, d->word, json_incref(d->input));
	else if (is(d, "text", "t"))
		say(reply, js_string(d->word));
	else if (is(d, "think", "t"))
		think(reply, js_string(d->word));
	else if (is(d, "blocks", "n"))
		for (long i = 1; i <= d->number; i++) say(reply, js_printf("block %ld", i));
	else if (is(d, "long", "n"))
		say(reply, repeated('x', d->number));
	else if (is(d, "slow", "n"))
		js_put(reply, "slow_ms", json_integer(d->number));
	else if (is(d, "error", "t"))
		js_put(reply, "error", js_string(d->word));
	else if (is(d, "env", ""))
		say_words(reply, environ);
	else if (is(d, "argv", ""))
		say_words(reply, agent.argv);
	else if (is(d, "cwd", ""))
		say(reply, js_make("%w"));
	else if (is(d, "pid", ""))
		say(reply, js_printf("%ld", (long)getpid()));
	else if (is(d, "history", ""))
		say_history(reply);
	else if (is(d, "elicit", ""))
		ask(reply, "elicit",
			js_make("{subtype:elicitation,mcp_server_name:fake,message:What is your name?,mode:form,"
					"requested_schema:{type:object,properties:{name:{type:string}}}}"));
	else if (is(d, "unknown", "t"))
		ask(reply, "answer", js_make("{subtype:%s,detail:fake}", d->word));
	else if (is(d, "dialog", "t") && !js_has(dialogs, d->word))
		say(reply, js_printf("dialog: no client shows %s", d->word));
	else if (is(d, "dialog", "t"))
		ask(reply, "dialog", js_make("{subtype:request_user_dialog,dialog_kind:%s,payload:{title:A dialog}}", d->word));
	else
		return false;
	return true;
}

/* The same for one beside the reply. */
static bool run_aside(struct directive *d) {
	if (is(d, "after", "nwj"))
		js_add(after, js_make("{ms:%I,name:%s,input:%O}", (json_int_t)d->number, d->word, d->input));
	else if (is(d, "task", "nt"))
		background_task(d->number, d->word);
	else if (is(d, "lines", "n"))
		for (long i = 1; i <= d->number; i++)
			out_emit("{type:stream_event,event:{type:content_block_delta,index:0,delta:{type:text_delta,text:%o}},"
					 "parent_tool_use_id:null}",
					 js_printf("line %ld", i));
	else if (is(d, "huge", "n"))
		out_emit("{type:system,subtype:local_command_output,content:%o}", repeated('h', d->number));
	else if (is(d, "garbage", "t"))
		out_line(d->word, strlen(d->word));
	else if (is(d, "stderr", "n"))
		print_noise(d->number * 1024);
	else if (is(d, "exit", "n"))
		exit((int)d->number);
	else if (is(d, "grandchild", ""))
		leave_grandchild();
	else if (is(d, "die", ""))
		out_die("{\"type\":\"assistant\",\"message\":{\"role\":\"assist");
	else
		return false;
	return true;
}

static void run_all(json_t *reply, const char *text) {
	struct directive d = {0};
	if (!after) after = js_make("[]");
	while ((d.from = strchr(text, '@'))) {
		text = ++d.from;
		if (run_reply(reply, &d) || run_aside(&d)) text = d.end;
	}
	free(d.word);
	json_decref(d.input);
}

void model_direct(const char *text) {
	_cleanup_json_ json_t *reply = js_make("{blocks:[]}");
	run_all(reply, text);
}

void model_after_turn(void) {
	JS_EACH (ask, after) background_ask(json_incref(ask.v));
	js_set(&after, NULL);
}

void model_dialogs(json_t *kinds) {
	if (!dialogs && json_is_array(kinds)) dialogs = json_incref(kinds);
}

/* ---- scenarios ------------------------------------------------------------------------------------------------- */

/* A misspelt member would be a rule that never matches, so it is an error. */
static void check_members(json_t *obj, const char *known, char **error) {
	const char *name;
	json_t *value;
	json_object_foreach(obj, name, value) {
		if (!*error && !js_word(name, known)) *error = str_printf("scenario: unknown member: %s", name);
	}
}

static void check(char **error) {
	json_t *rules = json_object_get(agent.script, "replies");
	check_members(agent.script,
				  "description try model permission_mode permissions faults init initialize tools replies", error);
	if (!*error && rules && !json_is_array(rules)) *error = str_printf("scenario: replies is no array");
	JS_EACH (rule, rules) {
		json_t *when = json_object_get(rule.v, "when"), *say = json_object_get(rule.v, "say");
		if (*error) return;
		if (!json_is_object(rule.v) || (when && !json_is_object(when)) || (say && !json_is_array(say)))
			*error = str_printf("scenario: reply %zu: `when` must be an object, `say` an array", rule.i + 1);
		check_members(rule.v, "when say once error directives slow_ms delay_ms", error);
		check_members(when, "prompt regex tool output is_error turn call always", error);
	}
}

bool model_load(const char *path, char **error) {
	json_error_t err;
	const char *list;
	json_t *rules;
	agent.script = json_load_file(path, 0, &err);
	if (agent.script && !json_is_object(agent.script))
		*error = str_printf("scenario %s: no object", path);
	else if (!agent.script && err.line < 1)
		*error = str_printf("scenario %s: %s", path, err.text);
	else if (!agent.script)
		*error = str_printf("scenario %s:%d: %s", path, err.line, err.text);
	else
		check(error);
	if (*error || !agent_set_faults(json_object_get(agent.script, "faults"), error)) return false;
	if (!agent_flag("model")) conversation_set_model(js_get(agent.script, "model"));
	json_object_foreach(json_object_get(agent.script, "permissions"), list, rules) permission_extend(list, rules);
	return true;
}

/* `tool`, `output` and `is_error` concern the last tool of this turn. Rules with them do not match before one has run;
 * rules without them match only before. */
static bool matches(json_t *when, const json_t *moment) {
	bool about_tool = json_object_get(when, "tool") || json_object_get(when, "output") ||
					  json_object_get(when, "is_error");
	bool ran = json_object_get(moment, "tool");
	const char *key;
	json_t *want;
	if (about_tool ? !ran : ran && !js_true(when, "always")) return false;
	json_object_foreach(when, key, want) {
		const char *pattern = json_string_value(want), *text = js_get(moment, key);
		if (js_word(key, "regex always")) continue;
		bool hit = !js_word(key, "prompt output") ? json_equal(want, json_object_get(moment, key))
				   : !pattern || !text            ? false
				   : js_true(when, "regex")       ? js_matches(pattern, text)
												  : strstr(text, pattern) != NULL;
		if (!hit) return false;
	}
	return true;
}

/* Return the rule for the reply, or NULL. */
static const json_t *find_rule(const json_t *moment) {
	JS_EACH (rule, json_object_get(agent.script, "replies")) {
		if (js_true(rule.v, "used") || !matches(json_object_get(rule.v, "when"), moment)) continue;
		if (js_true(rule.v, "once")) js_put(rule.v, "used", json_true());
		return rule.v;
	}
	return NULL;
}

static json_t *expand_text(const char *text, const json_t *moment) {
	struct buf b = JS_BUF;
	for (size_t n; *text; text += n) {
		bool prompt = strncmp(text, "${prompt}", 9) == 0, output = strncmp(text, "${output}", 9) == 0;
		const char *value = js_get(moment, prompt ? "prompt" : "output");
		n = prompt || output ? 9 : MAX(strcspn(text, "$"), (size_t)1);
		if (!prompt && !output)
			buf_put(&b, text, n);
		else if (value)
			buf_puts(&b, value);
	}
	return js_of(&b);
}

/* Return the value with variables replaced, new. */
static json_t *expand(json_t *value, const json_t *moment) { /* NOLINT(misc-no-recursion): depth of a file */
	const char *key;
	json_t *one, *all;
	if (json_is_string(value)) return expand_text(json_string_value(value), moment);
	if (!json_is_array(value) && !json_is_object(value)) return json_incref(value);
	all = json_is_array(value) ? json_array() : json_object();
	JS_EACH (item, value) js_add(all, expand(item.v, moment));
	json_object_foreach(value, key, one) js_put(all, key, expand(one, moment));
	return all;
}

/* Return the reply of a rule. */
static json_t *play(const json_t *rule, const json_t *moment) {
	json_t *reply = js_view(rule, "{blocks:[],slow_ms:$slow_ms,delay_ms:$delay_ms}");
	_cleanup_json_ json_t *list = expand(json_object_get(rule, "say"), moment);
	if (js_get(rule, "directives")) run_all(reply, js_get(rule, "directives"));
	JS_EACH (one, list) {
		json_t *thought = json_object_get(one.v, "thinking"), *input = json_object_get(one.v, "input");
		json_t *text = json_is_string(one.v) ? one.v : json_object_get(one.v, "text");
		if (json_is_string(thought))
			think(reply, json_incref(thought));
		else if (json_is_string(text))
			say(reply, json_incref(text));
		else if (js_get(one.v, "tool"))
			call_tool(reply, js_get(one.v, "tool"), input ? json_incref(input) : json_object());
	}
	js_merge(reply, js_view(rule, "{error:$error}"));
	return reply;
}

json_t *model_speak(const json_t *moment) {
	const json_t *content = conversation_last(), *rule = find_rule(moment);
	if (rule) return play(rule, moment);
	json_t *reply = js_make("{blocks:[]}");
	_cleanup_json_ json_t *failed = js_make("[]"), *text = js_content(content);
	if (js_has_block(content, "tool_result")) { /* like the loopback model of the tests */
		JS_EACH (block, content)
			if (js_is(block.v, "type", "tool_result")) js_add(failed, json_boolean(js_true(block.v, "is_error")));
		_cleanup_free_ char *list = js_dumps(failed);
		say(reply, js_printf("tool done: %s", list));
		return reply;
	}
	if (!agent.script) run_all(reply, json_string_value(text));
	if (json_array_size(json_object_get(reply, "blocks")) || js_get(reply, "error")) return reply;
	struct buf b = JS_BUF;
	buf_puts(&b, "echo: ");
	buf_put(&b, json_string_value(text), json_string_length(text));
	say(reply, js_of(&b));
	return reply;
}
