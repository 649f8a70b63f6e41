/* SPDX-License-Identifier: MIT */
#include "fakeagent/out.h"

#include "dialect/claude/claude.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

static bool gone; /* the reader or a fault has closed stdout */
static struct buf rest = JS_BUF;
static size_t off; /* written bytes of rest */
static long lines; /* printed lines */
static void (*diverted)(json_t *frame);
static int said;   /* user frames of this turn */
static long calls; /* of the model */

/* ---- bytes ----------------------------------------------------------------------------------------------------- */

static bool waits(void) {
	return !gone && off < rest.len;
}

static void flush(void) {
	long piece = agent_fault("partial");
	while (waits()) {
		ssize_t k = write(1, rest.data + off, piece > 0 ? MIN(rest.len - off, (size_t)piece) : rest.len - off);
		if (k < 0 && errno == EINTR) continue;
		if (k < 0) gone = errno != EAGAIN;
		if (k < 0) break;
		off += (size_t)k;
		if (piece > 0) nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	}
	if (gone) off = rest.len;
	if (off <= rest.len / 2) return;
	rest.len -= off;
	memmove(rest.data, rest.data + off, rest.len);
	off = 0;
}

static void drain(void) {
	for (flush(); waits(); flush()) poll(&(struct pollfd){.fd = 1, .events = POLLOUT}, 1, -1);
}

static int prepare(void) {
	flush();
	return waits() ? POLLOUT : 0;
}

static void finish(void) {
	if (agent_has("no-newline") && rest.len) rest.len--;
	drain();
}

/* Other processes share the flags of a terminal or file; only a pipe or a socket is made non-blocking. */
void out_init(void) {
	static struct watch watch = {.fd = 1, .prepare = prepare};
	struct stat st;
	if (fstat(1, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) fd_nonblock(1);
	poller_add(&watch);
	atexit(finish);
}

/* ---- lines ----------------------------------------------------------------------------------------------------- */

void out_die(const char *text) {
	buf_puts(&rest, text);
	drain();
	kill(getpid(), SIGKILL);
}

void out_line(const char *line, size_t n) {
	long garbage = agent_fault("garbage"), most = agent_fault("close-stdout");
	if (gone) return;
	if (garbage > 0 && lines % garbage == 0)
		buf_puts(&rest, lines / garbage % 2 ? "{\"type\":\"assistant\",\"message\":\n" : "not a JSON line\n");
	buf_put(&rest, line, n);
	buf_putc(&rest, '\n');
	if (rest.failed) js_no_memory();
	if (agent_fault("die") == ++lines) {
		rest.len -= (n + 1) / 2;
		out_die("");
	}
	if (most >= 0 && lines > most) {
		drain();
		close(1);
		gone = true;
	}
	if (rest.len - off > (size_t)64 * 1024) flush();
}

void out_message(json_t *message) {
	_cleanup_free_ char *line = js_dumps(message);
	json_decref(message);
	out_line(line, strlen(line));
}

static void print_late(json_t *message) {
	out_message(json_incref(message));
}

void out_answer(json_t *message, bool may_miss, bool may_delay) {
	if (may_miss && agent_has("mute"))
		json_decref(message);
	else if (may_delay && agent_has("late"))
		poller_after(agent_fault("late"), print_late, message);
	else
		out_message(message);
}

void out_divert(void (*to)(json_t *)) {
	diverted = to;
}

void out_json(json_t *frame) {
	(diverted ? diverted : out_message)(frame);
}

/* ---- frames ---------------------------------------------------------------------------------------------------- */

/* Return true for whole frames that the old CLI does not have; remove such members from others. */
static bool is_dated(json_t *frame) {
	_cleanup_json_ json_t *members = js_make("[capabilities,result_index,queued_turn_count,local_command,"
											 "user_message_uuid,user_message_uuids,is_backgrounded]");
	JS_EACH (name, members) json_object_del(frame, json_string_value(name.v));
	if (js_is(frame, "type", "assistant")) json_object_del(frame, "timestamp");
	return js_is(frame, "type", "command_lifecycle") || js_is(frame, "type", "conversation_reset") ||
		   js_is(frame, "subtype", "background_tasks_changed");
}

void out_frame(json_t *frame) {
	if (agent.old && is_dated(frame)) {
		json_decref(frame);
		return;
	}
	if (!json_object_get(frame, "session_id")) js_put(frame, "session_id", js_string(agent.id));
	if (!json_object_get(frame, "uuid")) js_put(frame, "uuid", js_uuid());
	out_json(frame);
}

void out_emit(const char *format, ...) {
	va_list ap;
	va_start(ap, format);
	out_frame(js_vmake(NULL, format, ap));
	va_end(ap);
}

json_t *out_name(json_t *frame, bool both) {
	size_t n = json_array_size(agent.uuids);
	if (!n) return frame;
	json_t *few = js_make("[]");
	JS_EACH (uuid, agent.uuids)
		if (uuid.i < CLAUDE_NAMES_MAX - 1 || uuid.i == n - 1) json_array_append(few, uuid.v);
	if (both) json_object_set(frame, "user_message_uuid", json_array_get(agent.uuids, n - 1));
	js_put(frame, "user_message_uuids", few);
	return frame;
}

void out_begin(json_t *more, json_t *servers) {
	json_t *f = js_make(
		"{type:system,subtype:init,cwd:%w,session_id:%s,tools:[Task,AskUserQuestion,Bash,Edit,ExitPlanMode,Glob,Grep,"
		"NotebookEdit,Read,TodoWrite,WebFetch,WebSearch,Write],mcp_servers:%o,model:%s,permissionMode:%s,"
		"slash_commands:[clear,compact,context,cost],apiKeySource:none,claude_code_version:%s,output_style:default,"
		"agents:[general-purpose,Explore],skills:[],plugins:[],capabilities:[msg_lifecycle_v1],fast_mode_state:off}",
		agent.id, servers, agent.model, agent.mode, agent.compat);
	json_array_extend(json_object_get(f, "tools"), more);
	json_decref(more);
	said = 0;
	json_object_update(out_name(f, false), json_object_get(agent.script, "init"));
	out_frame(f);
}

void out_mode(void) {
	out_emit("{type:system,subtype:status,status:null,permissionMode:%s}", agent.mode);
}

static bool env_is_set(const char *name) {
	const char *v = getenv(name);
	return v && *v && strcmp(v, "0") != 0 && strcmp(v, "false") != 0;
}

void out_state(const char *state) {
	bool same = strcmp(agent.state, state) == 0, all = env_is_set("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS");
	agent.state = state;
	if ((!same || strcmp(state, "idle") == 0) && (all || env_is_set("CLAUDE_CODE_SDK_READS_SESSION_STATE")))
		out_emit("{type:system,subtype:session_state_changed,state:%s,sdk_host_only:%t}", state, !all);
}

void out_lifecycle(const char *uuid, const char *state) {
	out_emit("{type:command_lifecycle,command_uuid:%s,state:%s}", uuid, state);
}

void out_warning(const char *tag, json_t *text) {
	out_emit("{type:system,subtype:informational,content:%o,level:warning,tag:%z}", text, tag);
}

/* ---- prompts and results --------------------------------------------------------------------------------------- */

void out_replay(const json_t *line, json_t *content) {
	if (!agent.replay) return;
	json_t *f = js_view(line,
						"{type:user,message:$message,session_id:%s,parent_tool_use_id:null,uuid:$uuid,"
						"isReplay:true,origin:$origin}",
						agent.id);
	if (content) js_merge(f, js_make("{message:{role:user,content:%O},timestamp:%n}", content));
	out_frame(f);
}

void out_user(json_t *content, json_t *detail) {
	said++;
	out_emit("{type:user,message:{role:user,content:%o},parent_tool_use_id:null,tool_use_result:%o,timestamp:%n}",
			 content, detail);
}

/* The CLI's result does not begin with its type either. */
void out_result(json_t *members, int64_t started, int count, long turn) {
	json_int_t ms = now_ms() - started;
	calls += count;
	double cost = 0.001 * (double)calls;
	json_t *f = js_make("{duration_api_ms:%I,duration_ms:%I,type:result,num_turns:%i,total_cost_usd:%f,usage:" OUT_USAGE
						",modelUsage:{},"
						"permission_denials:%O,result_index:%I,queued_turn_count:0}",
						ms, ms, count ? 1 + said : 0, cost, count * 10, count * 20, agent.denials, (json_int_t)turn);
	if (calls)
		js_put(json_object_get(f, "modelUsage"), agent.model,
			   js_make("{inputTokens:%I,outputTokens:%I,cacheReadInputTokens:0,cacheCreationInputTokens:0,costUSD:%f}",
					   (json_int_t)calls * 10, (json_int_t)calls * 20, cost));
	json_object_update(f, members);
	if (json_object_get(f, "errors"))
		json_object_del(f, "result");
	else if (!json_object_get(f, "result"))
		js_put(f, "result", js_string(""));
	out_frame(out_name(f, true));
}
