/* SPDX-License-Identifier: MIT */
#include "fakeagent/frames.h"

#include "base/fd.h"
#include "base/str.h"
#include "dialect/claude/claude.h"
#include "fakeagent/conversation.h"
#include "fakeagent/flags.h"
#include "fakeagent/out.h"
#include "fakeagent/phase.h"
#include "fakeagent/policy.h"
#include "fakeagent/scenario.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

#define TOOLS                                                                                                          \
	"[Task,AskUserQuestion,Bash,Edit,ExitPlanMode,Glob,Grep,NotebookEdit,Read,TodoWrite,WebFetch,WebSearch,Write]"
#define USAGE "{input_tokens:%i,cache_creation_input_tokens:0,cache_read_input_tokens:0,output_tokens:%i}"

static const char *last_state;
static char message_id[40];
static int open_index = -1;                     /* the open block, or -1 */
static bool requested, named_line, named_event; /* already printed in this turn */
static int said;                                /* user frames of this turn */
static long calls;                              /* of the model */

/* Return true for whole frames that the old CLI does not have; remove such members from others. */
static bool is_dated(json_t *frame) {
	static const char *const members[] = {"capabilities",   "result_index",      "queued_turn_count",
										  "local_command",  "user_message_uuid", "user_message_uuids",
										  "is_backgrounded"};
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) json_object_del(frame, members[i]);
	if (js_is(frame, "type", "assistant")) json_object_del(frame, "timestamp");
	return js_is(frame, "type", "command_lifecycle") || js_is(frame, "type", "conversation_reset") ||
		   js_is(frame, "subtype", "background_tasks_changed");
}

void frames_put(json_t *frame) {
	char uuid[37];
	if (flags()->old && is_dated(frame)) {
		json_decref(frame);
		return;
	}
	js_uuid(uuid);
	if (!json_object_get(frame, "session_id")) js_put(frame, "session_id", js_make("%s", conversation_id()));
	if (!json_object_get(frame, "uuid")) js_put(frame, "uuid", js_make("%s", uuid));
	out_json(frame);
}

void frames_emit(const char *format, ...) {
	va_list ap;
	va_start(ap, format);
	frames_put(js_vmake(format, ap));
	va_end(ap);
}

void frames_stamp(json_t *frame) {
	struct timespec now;
	struct tm tm;
	char day[32];
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
	js_put(frame, "timestamp", js_printf("%s.%03ldZ", day, now.tv_nsec / 1000000));
}

/* Name the prompts of the turn: the first 63 and the last, as the CLI does. */
static json_t *named(json_t *frame, bool both) {
	size_t n = json_array_size(phase_uuids());
	if (!n) return frame;
	json_t *few = js_need(json_array());
	for (size_t i = 0; i < n; i++)
		if (i < CLAUDE_NAMES_MAX - 1 || i == n - 1) json_array_append(few, json_array_get(phase_uuids(), i));
	if (both) json_object_set(frame, "user_message_uuid", json_array_get(phase_uuids(), n - 1));
	js_put(frame, "user_message_uuids", few);
	return frame;
}

/* ---- system ---------------------------------------------------------------------------------------------------- */

void frames_init(json_t *more, json_t *servers) {
	char cwd[PATH_MAX];
	json_t *tools = js_make(TOOLS);
	json_array_extend(tools, more);
	json_decref(more);
	json_t *f = js_make(
		"{type:system,subtype:init,cwd:%s,session_id:%s,tools:%o,mcp_servers:%o,model:%s,permissionMode:%s,"
		"slash_commands:[clear,compact,context,cost],apiKeySource:none,claude_code_version:%s,output_style:default,"
		"agents:[general-purpose,Explore],skills:[],plugins:[],capabilities:[msg_lifecycle_v1],fast_mode_state:off}",
		getcwd(cwd, sizeof cwd) ? cwd : "/", conversation_id(), tools, servers, conversation_model(), policy_mode(),
		flags()->version_name);
	requested = named_line = named_event = false;
	said = 0;
	scenario_merge("init", named(f, false));
	frames_put(f);
}

void frames_mode(void) {
	frames_emit("{type:system,subtype:status,status:null,permissionMode:%s}", policy_mode());
}

static bool env_is_set(const char *name) {
	const char *v = getenv(name);
	return v && *v && strcmp(v, "0") != 0 && strcmp(v, "false") != 0;
}

void frames_state(const char *state) {
	bool all = env_is_set("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"), same = js_same(last_state, state);
	last_state = state;
	if (same && strcmp(state, "idle") != 0) return;
	if (all)
		frames_emit("{type:system,subtype:session_state_changed,state:%s}", state);
	else if (env_is_set("CLAUDE_CODE_SDK_READS_SESSION_STATE"))
		frames_emit("{type:system,subtype:session_state_changed,state:%s,sdk_host_only:true}", state);
}

const char *frames_last_state(void) {
	return last_state ? last_state : "idle";
}

void frames_lifecycle(const char *uuid, const char *state) {
	frames_emit("{type:command_lifecycle,command_uuid:%s,state:%s}", uuid, state);
}

void frames_warning(const char *tag, json_t *text) {
	frames_emit("{type:system,subtype:informational,content:%o,level:warning,tag:%z}", text, tag);
}

/* ---- prompts and results --------------------------------------------------------------------------------------- */

void frames_replay(const json_t *line, json_t *content, bool stamp) {
	if (!flags()->replay) return;
	json_t *message = content ? js_make("{role:user,content:%O}", content) : NULL;
	if (!message) message = json_incref(json_object_get(line, "message"));
	json_t *f = js_make("{type:user,message:%o,session_id:%s,parent_tool_use_id:null,uuid:%O,isReplay:true,origin:%O}",
						message, conversation_id(), json_object_get(line, "uuid"), json_object_get(line, "origin"));
	if (stamp) frames_stamp(f);
	frames_put(f);
}

void frames_user(json_t *content, json_t *detail) {
	json_t *f = js_make("{type:user,message:{role:user,content:%o},parent_tool_use_id:null,tool_use_result:%o}",
						content, detail);
	said++;
	frames_stamp(f);
	frames_put(f);
}

/* The CLI's result does not begin with its type either. */
void frames_result(const struct outcome *o) {
	json_int_t ms = now_ms() - o->started;
	calls += o->calls;
	double cost = 0.001 * (double)calls;
	json_t *usage = js_need(json_object());
	js_put(usage, conversation_model(),
		   js_make("{inputTokens:%I,outputTokens:%I,cacheReadInputTokens:0,cacheCreationInputTokens:0,costUSD:%f}",
				   (json_int_t)calls * 10, (json_int_t)calls * 20, cost));
	json_t *f = js_make(
		"{duration_api_ms:%I,duration_ms:%I,type:result,is_error:%b,num_turns:%i,stop_reason:%s,total_cost_usd:%f,"
		"usage:" USAGE ",modelUsage:%o,permission_denials:%O,subtype:%s,errors:%O,result:%o,terminal_reason:%z,"
		"deferred_tool_use:%O,origin:%O,local_command:%z,result_index:%I,queued_turn_count:0}",
		ms, ms, o->is_error, o->calls ? 1 + said : 0, o->stop_reason, cost, o->calls * 10, o->calls * 20, usage,
		phase_denials(), o->subtype, o->errors,
		o->errors ? NULL
		: o->text ? json_incref(o->text)
				  : js_make("%s", ""),
		o->terminal, o->deferred, o->origin, o->local_command, (json_int_t)o->index);
	frames_put(named(f, true));
}

void frames_failed_start(const char *text) {
	frames_emit("{type:result,subtype:error_during_execution,duration_ms:0,duration_api_ms:0,is_error:true,num_turns:0,"
				"stop_reason:null,total_cost_usd:0,usage:" USAGE ",modelUsage:{},permission_denials:[],errors:[%s],"
				"result_index:0}",
				0, 0, text);
}

/* ---- a reply --------------------------------------------------------------------------------------------------- */

static void requesting(void) {
	if (!flags()->partial) return;
	frames_put(named(js_make("{type:system,subtype:status,status:requesting}"), false));
}

void frames_request(bool early) {
	if (!requested) requesting();
	requested = early;
	if (early) return;
	char hex[25];
	str_random_hex(hex, 24);
	snprintf(message_id, sizeof message_id, "msg_%s", hex);
}

const char *frames_message_id(void) {
	return message_id;
}

static json_t *message(const char *model, json_t *content, const char *stop_reason) {
	return js_make(
		"{model:%s,id:%s,type:message,role:assistant,content:%o,stop_reason:%s,stop_sequence:null,usage:" USAGE "}",
		model, message_id, content, stop_reason, 10, 20);
}

static void event(const char *format, ...) {
	if (!flags()->partial) return;
	va_list ap;
	va_start(ap, format);
	json_t *f = js_make("{type:stream_event,event:%o,parent_tool_use_id:null,api_message_id:%s}", js_vmake(format, ap),
						message_id);
	va_end(ap);
	frames_put(named_event ? f : named(f, true));
	named_event = true;
}

static void line(json_t *message, const char *error, bool aborted) {
	json_t *f = js_make("{type:assistant,message:%o,parent_tool_use_id:null,error:%z}", message, error);
	if (aborted) js_put(f, "aborted", json_true());
	if (!named_line) named(f, true);
	named_line = true;
	frames_stamp(f);
	frames_put(f);
}

void frames_open(void) {
	if (flags()->partial)
		event("{type:message_start,message:%o}", message(conversation_model(), js_need(json_array()), NULL));
}

void frames_block_start(int index, const json_t *block, const char *key) {
	json_t *empty = js_need(json_copy((json_t *)(uintptr_t)block));
	js_put(empty, key, json_is_object(json_object_get(block, key)) ? json_object() : js_make("%s", ""));
	open_index = index;
	event("{type:content_block_start,index:%i,content_block:%O}", index, empty);
	json_decref(empty);
}

void frames_delta(const char *type, const char *key, const char *p, size_t n) {
	if (!flags()->partial) return;
	json_t *delta = js_make("{type:%s}", type);
	js_put(delta, key, js_text(p, n));
	event("{type:content_block_delta,index:%i,delta:%o}", open_index, delta);
}

void frames_block(const json_t *block, bool aborted) {
	line(message(conversation_model(), js_make("[%O]", block), NULL), NULL, aborted);
}

void frames_block_stop(void) {
	event("{type:content_block_stop,index:%i}", open_index);
}

void frames_close(const char *stop_reason) {
	event("{type:message_delta,delta:{stop_reason:%s,stop_sequence:null},usage:{output_tokens:20}}", stop_reason);
	event("{type:message_stop}");
	open_index = -1;
}

void frames_cut(void) {
	if (open_index < 0) return;
	frames_block_stop();
	frames_close(NULL);
}

void frames_error(const char *text) {
	js_uuid(message_id);
	line(message("<synthetic>", js_make("[{type:text,text:%s}]", text), "stop_sequence"), "server_error", false);
}
