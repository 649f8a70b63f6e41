/* SPDX-License-Identifier: MIT */
#include "fakeagent/model.h"

#include "base/fd.h"
#include "base/str.h"
#include "fakeagent/background.h"
#include "fakeagent/conversation.h"
#include "fakeagent/out.h"
#include "fakeagent/permission.h"
#include "fakeagent/query.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>

extern char **environ;

struct directive {
	struct speech *speech;
	long number;
	char *word; /* a word or a text */
	json_t *input;
};

static json_t *after;   /* requests to send after the turn: {ms, name, input} */
static json_t *dialogs; /* kinds */

/* ---- directives of the reply ----------------------------------------------------------------------------------- */

static void do_tool(const struct directive *d) {
	speech_tool(d->speech, d->word, json_incref(d->input));
}

static void do_text(const struct directive *d) {
	speech_text(d->speech, js_string(d->word));
}

static void do_think(const struct directive *d) {
	speech_thought(d->speech, js_string(d->word));
}

static void do_blocks(const struct directive *d) {
	for (long i = 0; i < d->number; i++) speech_text(d->speech, js_printf("block %ld", i + 1));
}

static json_t *repeated(char c, long n) {
	struct buf b = JS_BUF;
	b.len = n > 0 ? (size_t)n : 0;
	if (!(b.data = malloc(b.len + 1))) js_no_memory();
	memset(b.data, c, b.len);
	return js_of(&b);
}

static void do_long(const struct directive *d) {
	speech_text(d->speech, repeated('x', d->number));
}

static void do_slow(const struct directive *d) {
	d->speech->slow = d->number;
}

static void do_error(const struct directive *d) {
	js_replace(&d->speech->error, d->word);
}

/* ---- beside the reply ------------------------------------------------------------------------------------------ */

static void do_after(const struct directive *d) {
	if (!after) after = js_make("[]");
	js_add(after, js_make("{ms:%I,name:%s,input:%O}", (json_int_t)d->number, d->word, d->input));
}

static void do_task(const struct directive *d) {
	background_task(d->number, d->word);
}

static void do_lines(const struct directive *d) {
	for (long i = 0; i < d->number; i++)
		out_emit("{type:stream_event,event:{type:content_block_delta,index:0,delta:{type:text_delta,text:%o}},"
				 "parent_tool_use_id:null}",
				 js_printf("line %ld", i + 1));
}

static void do_huge(const struct directive *d) {
	out_emit("{type:system,subtype:local_command_output,content:%o}", repeated('h', d->number));
}

static void do_garbage(const struct directive *d) {
	out_line(d->word, strlen(d->word));
}

static void do_stderr(const struct directive *d) {
	char line[1024];
	memset(line, 'n', sizeof line);
	memcpy(line, "noise: ", 7);
	for (long i = 0; i < d->number; i++) fd_write_all(2, line, sizeof line);
}

static void do_exit(const struct directive *d) {
	exit((int)d->number);
}

static void do_die(const struct directive *d) {
	(void)d;
	out_half("{\"type\":\"assistant\",\"message\":{\"role\":\"assist");
	kill(getpid(), SIGKILL);
}

/* Return only after it has become sleep(1), signalled by the end of the pipe: no test sees it between fork and exec. */
static void do_grandchild(const struct directive *d) {
	(void)d;
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

/* ---- answers about the process --------------------------------------------------------------------------------- */

static void say_words(struct speech *s, char *const *words) {
	struct buf b = JS_BUF;
	for (; *words; words++) buf_printf(&b, "%s%s", b.len ? "\n" : "", *words);
	speech_text(s, js_of(&b));
}

static void do_env(const struct directive *d) {
	say_words(d->speech, environ);
}

static void do_argv(const struct directive *d) {
	say_words(d->speech, agent.argv);
}

static void do_cwd(const struct directive *d) {
	speech_text(d->speech, js_make("%w"));
}

static void do_pid(const struct directive *d) {
	speech_text(d->speech, js_printf("%ld", (long)getpid()));
}

/* Reply with the prompts so far, one per line; the last is this one. */
static void do_history(const struct directive *d) {
	struct buf b = JS_BUF;
	JS_EACH (message, agent.messages) {
		_cleanup_json_ json_t *text = js_content(json_object_get(message.v, "content"));
		if (!js_is(message.v, "role", "user") || !json_string_length(text)) continue;
		buf_printf(&b, "%s%s", b.len ? "\n" : "", json_string_value(text));
	}
	speech_text(d->speech, js_of(&b));
}

/* ---- requests to the client ------------------------------------------------------------------------------------ */

/* Send a request; the answer becomes the reply. */
static void ask(struct speech *s, const char *what, json_t *request) {
	struct query *q = query_send(request, -1);
	query_wait(q);
	json_t *payload = query_payload(q);
	_cleanup_free_ char *text = payload ? js_dumps(payload) : NULL;
	const char *error = query_error(q);
	speech_text(s, js_printf("%s: %s", what, text ? text : error ? error : "no answer"));
	query_free(q);
}

static void do_dialog(const struct directive *d) {
	if (js_has(dialogs, d->word))
		ask(d->speech, "dialog",
			js_make("{subtype:request_user_dialog,dialog_kind:%s,payload:{title:A dialog}}", d->word));
	else
		speech_text(d->speech, js_printf("dialog: no client shows %s", d->word));
}

static void do_elicit(const struct directive *d) {
	ask(d->speech, "elicit",
		js_make("{subtype:elicitation,mcp_server_name:fake,message:What is your name?,mode:form,"
				"requested_schema:{type:object,properties:{name:{type:string}}}}"));
}

static void do_unknown(const struct directive *d) {
	ask(d->speech, "answer", js_make("{subtype:%s,detail:fake}", d->word));
}

/* ---- reading directives ---------------------------------------------------------------------------------------- */

/* The arguments after the name: n number, w word, j optional JSON object, t text up to the next @. */
static const struct effect {
	const char *name, *arguments;
	void (*run)(const struct directive *d);
} EFFECTS[] = {
	{"tool", "wj", do_tool},    {"after", "nwj", do_after},  {"task", "nt", do_task},
	{"long", "n", do_long},     {"slow", "n", do_slow},      {"lines", "n", do_lines},
	{"exit", "n", do_exit},     {"stderr", "n", do_stderr},  {"blocks", "n", do_blocks},
	{"huge", "n", do_huge},     {"error", "t", do_error},    {"garbage", "t", do_garbage},
	{"think", "t", do_think},   {"text", "t", do_text},      {"die", "", do_die},
	{"env", "", do_env},        {"argv", "", do_argv},       {"cwd", "", do_cwd},
	{"pid", "", do_pid},        {"history", "", do_history}, {"grandchild", "", do_grandchild},
	{"dialog", "t", do_dialog}, {"elicit", "", do_elicit},   {"unknown", "t", do_unknown},
};

static const char *skip_spaces(const char *p, const char *end) {
	while (p < end && isspace((unsigned char)*p)) p++;
	return p;
}

/* Return the end of the argument at p, or NULL. A JSON object ends at its own brace and may contain `@` and `}`. */
static const char *read_argument(char kind, const char *p, const char *end, struct directive *d) {
	const char *to = p;
	if (kind == 'j') {
		json_error_t err;
		d->input = p < end && *p == '@'
					   ? json_object()
					   : json_loadb(p, (size_t)(end - p), JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &err);
		if (!d->input) return NULL;
		return *p == '@' ? p : p + err.position;
	}
	while (to < end && *to != '@' && (kind == 't' || !isspace((unsigned char)*to))) to++;
	if (to == (kind == 't' ? end : p)) return NULL;
	_cleanup_free_ char *word = strndup(p, (size_t)(to - p));
	char *rest = NULL;
	if (kind == 'n')
		d->number = strtol(word, &rest, 10);
	else
		js_replace(&d->word, word);
	return rest && *rest ? NULL : to;
}

/* Run the directive after an @. Return its end, or NULL. */
static const char *run_one(struct speech *s, const char *p, const char *end) {
	const struct effect *e = EFFECTS, *last = EFFECTS + ARRAY_SIZE(EFFECTS);
	for (size_t n = 0; e < last; e++) {
		n = strlen(e->name);
		if ((size_t)(end - p) > n && memcmp(p, e->name, n) == 0 && !isalnum((unsigned char)p[n])) break;
	}
	if (e == last) return NULL;
	struct directive d = {.speech = s};
	p += strlen(e->name);
	for (const char *kind = e->arguments; p && *kind; kind++) p = read_argument(*kind, skip_spaces(p, end), end, &d);
	if (p) p = skip_spaces(p, end);
	bool whole = p && p < end && *p == '@';
	if (whole) e->run(&d);
	free(d.word);
	json_decref(d.input);
	return whole ? p + 1 : NULL;
}

static void run_all(struct speech *s, const char *text, size_t n) {
	const char *end = text + n;
	while ((text = memchr(text, '@', (size_t)(end - text)))) {
		const char *behind = run_one(s, ++text, end);
		if (behind) text = behind;
	}
}

void model_direct(const char *text) {
	struct speech s = {.blocks = js_make("[]")};
	run_all(&s, text, strlen(text));
	model_forget(&s);
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

static bool text_hits(const json_t *when, const char *key, const char *text) {
	const char *want = js_get(when, key);
	if (!json_object_get(when, key)) return true;
	if (!want || !text) return false;
	return js_true(when, "regex") ? js_matches(want, text) : strstr(text, want) != NULL;
}

static bool number_is(const json_t *when, const char *key, long value) {
	return !json_object_get(when, key) || js_number(when, key) == value;
}

/* `tool`, `output` and `is_error` concern the last tool of this turn. Rules with them do not match before one has run;
 * rules without them match only before. */
static bool matches(const json_t *when, const struct tool_moment *m) {
	const json_t *failed = json_object_get(when, "is_error"), *tool = json_object_get(when, "tool");
	bool about_tool = tool || failed || json_object_get(when, "output");
	if (about_tool ? !m->tool : m->tool && !js_true(when, "always")) return false;
	if (tool && !js_is(when, "tool", m->tool)) return false;
	if (failed && json_is_true(failed) != m->failed) return false;
	return text_hits(when, "output", m->output) && text_hits(when, "prompt", m->prompt) &&
		   number_is(when, "turn", m->turn) && number_is(when, "call", m->call);
}

/* Return the rule for the reply, or NULL. */
static const json_t *find_rule(const struct tool_moment *m) {
	JS_EACH (rule, json_object_get(agent.script, "replies")) {
		if (js_true(rule.v, "used") || !matches(json_object_get(rule.v, "when"), m)) continue;
		if (js_true(rule.v, "once")) js_put(rule.v, "used", json_true());
		return rule.v;
	}
	return NULL;
}

static json_t *expand_text(const char *text, const struct tool_moment *m) {
	struct buf b = JS_BUF;
	while (*text) {
		size_t n = MAX(strcspn(text, "$"), (size_t)1);
		bool prompt = strncmp(text, "${prompt}", 9) == 0, output = strncmp(text, "${output}", 9) == 0;
		if (prompt || output)
			buf_puts(&b, prompt ? m->prompt : m->output ? m->output : "");
		else
			buf_put(&b, text, n);
		text += prompt || output ? 9 : n;
	}
	return js_of(&b);
}

/* Return the value with variables replaced, new. */
static json_t *expand(json_t *value, const struct tool_moment *m) { /* NOLINT(misc-no-recursion): depth of a file */
	const char *key;
	json_t *one, *all;
	if (json_is_string(value)) return expand_text(json_string_value(value), m);
	if (!json_is_array(value) && !json_is_object(value)) return json_incref(value);
	all = json_is_array(value) ? json_array() : json_object();
	JS_EACH (item, value) js_add(all, expand(item.v, m));
	json_object_foreach(value, key, one) js_put(all, key, expand(one, m));
	return all;
}

static void play(struct speech *s, const json_t *rule, const struct tool_moment *m) {
	const char *directives = js_get(rule, "directives");
	_cleanup_json_ json_t *say = expand(json_object_get(rule, "say"), m);
	s->slow = js_number(rule, "slow_ms");
	s->delay = js_number(rule, "delay_ms");
	if (directives) run_all(s, directives, strlen(directives));
	JS_EACH (one, say) {
		json_t *thought = json_object_get(one.v, "thinking"), *input = json_object_get(one.v, "input");
		json_t *text = json_is_string(one.v) ? one.v : json_object_get(one.v, "text");
		if (json_is_string(thought))
			speech_thought(s, json_incref(thought));
		else if (json_is_string(text))
			speech_text(s, json_incref(text));
		else if (js_get(one.v, "tool"))
			speech_tool(s, js_get(one.v, "tool"), input ? json_incref(input) : json_object());
	}
	if (js_get(rule, "error")) js_replace(&s->error, js_get(rule, "error"));
	if (!json_array_size(s->blocks) && !s->error) speech_text(s, js_string("(nothing to say)"));
}

/* ---- the reply ------------------------------------------------------------------------------------------------- */

/* After tools: say whether each failed, like the loopback model of the tests. */
static void say_done(struct speech *s, const json_t *content) {
	_cleanup_json_ json_t *flags = js_make("[]");
	JS_EACH (block, content)
		if (js_is(block.v, "type", "tool_result")) js_add(flags, json_boolean(js_true(block.v, "is_error")));
	_cleanup_free_ char *list = js_dumps(flags);
	speech_text(s, js_printf("tool done: %s", list));
}

void model_speak(struct speech *s, const struct tool_moment *m) {
	const json_t *content = conversation_last(), *rule = find_rule(m);
	*s = (struct speech){.blocks = js_make("[]")};
	if (rule) {
		play(s, rule, m);
		return;
	}
	if (js_has_block(content, "tool_result")) {
		say_done(s, content);
		return;
	}
	_cleanup_json_ json_t *text = js_content(content);
	const char *p = json_string_value(text);
	size_t n = json_string_length(text);
	if (!agent.script) run_all(s, p, n);
	if (json_array_size(s->blocks) || s->error) return;
	struct buf b = JS_BUF;
	buf_puts(&b, "echo: ");
	buf_put(&b, p, n);
	speech_text(s, js_of(&b));
}

void model_forget(struct speech *s) {
	json_decref(s->blocks);
	free(s->error);
}
