/* SPDX-License-Identifier: MIT */
#include "fakeagent/frames.h"

#include "base/fd.h"
#include "dialect/claude/claude.h"
#include "fakeagent/out.h"
#include "fakeagent/scenario.h"

#include <time.h>

#define TOOLS                                                                                                          \
	"[Task,AskUserQuestion,Bash,Edit,ExitPlanMode,Glob,Grep,NotebookEdit,Read,TodoWrite,WebFetch,WebSearch,Write]"

static int said;   /* user frames of this turn */
static long calls; /* of the model */

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
	if (agent.old && is_dated(frame)) {
		json_decref(frame);
		return;
	}
	if (!json_object_get(frame, "session_id")) js_put_text(frame, "session_id", agent.id);
	if (!json_object_get(frame, "uuid")) js_put(frame, "uuid", js_uuid());
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

json_t *frames_name(json_t *frame, bool both) {
	size_t n = json_array_size(agent.uuids);
	if (!n) return frame;
	json_t *few = js_make("[]");
	JS_EACH (uuid, agent.uuids)
		if (uuid.i < CLAUDE_NAMES_MAX - 1 || uuid.i == n - 1) json_array_append(few, uuid.v);
	if (both) json_object_set(frame, "user_message_uuid", json_array_get(agent.uuids, n - 1));
	js_put(frame, "user_message_uuids", few);
	return frame;
}

/* ---- system ---------------------------------------------------------------------------------------------------- */

void frames_init(json_t *more, json_t *servers) {
	json_t *tools = js_make(TOOLS);
	json_array_extend(tools, more);
	json_decref(more);
	json_t *f = js_make(
		"{type:system,subtype:init,cwd:%o,session_id:%s,tools:%o,mcp_servers:%o,model:%s,permissionMode:%s,"
		"slash_commands:[clear,compact,context,cost],apiKeySource:none,claude_code_version:%s,output_style:default,"
		"agents:[general-purpose,Explore],skills:[],plugins:[],capabilities:[msg_lifecycle_v1],fast_mode_state:off}",
		js_cwd(), agent.id, tools, servers, agent.model, agent.mode, agent.compat);
	said = 0;
	frames_name(f, false);
	json_object_update(f, scenario_get("init"));
	frames_put(f);
}

void frames_mode(void) {
	frames_emit("{type:system,subtype:status,status:null,permissionMode:%s}", agent.mode);
}

static bool env_is_set(const char *name) {
	const char *v = getenv(name);
	return v && *v && strcmp(v, "0") != 0 && strcmp(v, "false") != 0;
}

void frames_state(const char *state) {
	static const char *last;
	bool same = js_same(last, state);
	last = agent.state = state;
	if (same && strcmp(state, "idle") != 0) return;
	if (env_is_set("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"))
		frames_emit("{type:system,subtype:session_state_changed,state:%s}", state);
	else if (env_is_set("CLAUDE_CODE_SDK_READS_SESSION_STATE"))
		frames_emit("{type:system,subtype:session_state_changed,state:%s,sdk_host_only:true}", state);
}

void frames_lifecycle(const char *uuid, const char *state) {
	frames_emit("{type:command_lifecycle,command_uuid:%s,state:%s}", uuid, state);
}

void frames_warning(const char *tag, json_t *text) {
	frames_emit("{type:system,subtype:informational,content:%o,level:warning,tag:%z}", text, tag);
}

/* ---- prompts and results --------------------------------------------------------------------------------------- */

void frames_replay(const json_t *line, json_t *content, bool stamp) {
	if (!agent.replay) return;
	json_t *message = content ? js_make("{role:user,content:%O}", content)
							  : json_incref(json_object_get(line, "message"));
	json_t *f = js_make("{type:user,message:%o,session_id:%s,parent_tool_use_id:null,uuid:%O,isReplay:true,origin:%O}",
						message, agent.id, json_object_get(line, "uuid"), json_object_get(line, "origin"));
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
	json_t *usage = js_make("{}");
	js_put(usage, agent.model,
		   js_make("{inputTokens:%I,outputTokens:%I,cacheReadInputTokens:0,cacheCreationInputTokens:0,costUSD:%f}",
				   (json_int_t)calls * 10, (json_int_t)calls * 20, cost));
	json_t *f = js_make(
		"{duration_api_ms:%I,duration_ms:%I,type:result,is_error:%b,num_turns:%i,stop_reason:%s,total_cost_usd:%f,"
		"usage:" FRAMES_USAGE ",modelUsage:%o,permission_denials:%O,subtype:%s,errors:%O,result:%o,terminal_reason:%z,"
		"deferred_tool_use:%O,origin:%O,local_command:%z,result_index:%I,queued_turn_count:0}",
		ms, ms, o->is_error, o->calls ? 1 + said : 0, o->stop_reason, cost, o->calls * 10, o->calls * 20, usage,
		agent.denials, o->subtype, o->errors,
		o->errors ? NULL
		: o->text ? json_incref(o->text)
				  : js_string(""),
		o->terminal, o->deferred, o->origin, o->local_command, (json_int_t)o->index);
	frames_put(frames_name(f, true));
}

void frames_failed_start(const char *text) {
	frames_emit("{type:result,subtype:error_during_execution,duration_ms:0,duration_api_ms:0,is_error:true,num_turns:0,"
				"stop_reason:null,total_cost_usd:0,usage:" FRAMES_USAGE ",modelUsage:{},permission_denials:[],"
				"errors:[%s],result_index:0}",
				0, 0, text);
}
