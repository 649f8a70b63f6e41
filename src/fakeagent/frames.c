/* SPDX-License-Identifier: MIT */
#include "fakeagent/frames.h"

#include "base/fd.h"
#include "fakeagent/scenario.h"
#include "wire/dialect.h"

#include <limits.h>
#include <string.h>
#include <time.h>

void frames_emit(struct agent *a, json_t *frame) {
	js_need(frame);
	char uuid[37];
	js_uuid(uuid);
	if (!json_object_get(frame, "session_id")) json_object_set_new(frame, "session_id", json_string(a->conv.id));
	if (!json_object_get(frame, "uuid")) json_object_set_new(frame, "uuid", json_string(uuid));
	out_json(&a->out, frame);
}

void frames_stamp(json_t *frame) {
	struct timespec now;
	struct tm tm;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	char day[32];
	strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
	json_object_set_new(frame, "timestamp", js_printf("%s.%03ldZ", day, now.tv_nsec / 1000000));
}

/* The CLI names the first 63 of a turn's prompts and the last. */
static json_t *names(json_t *uuids) {
	size_t n = json_array_size(uuids);
	json_t *few = js_need(json_array());
	for (size_t i = 0; i < n; i++)
		if (i < DIALECT_NAMES_MAX - 1 || i == n - 1) json_array_append(few, json_array_get(uuids, i));
	return few;
}

void frames_name(struct agent *a, const struct turn *t, json_t *frame, bool both) {
	size_t n = t ? json_array_size(t->uuids) : 0;
	if (a->opt->old || !n) return;
	if (both) json_object_set(frame, "user_message_uuid", json_array_get(t->uuids, n - 1));
	json_object_set_new(frame, "user_message_uuids", names(t->uuids));
}

/* ---- system ---------------------------------------------------------------------------------------------------- */

static json_t *tool_names(const struct agent *a) {
	static const char *const names[] = {"Task", "AskUserQuestion", "Bash", "Edit",      "ExitPlanMode", "Glob",
										"Grep", "NotebookEdit",    "Read", "TodoWrite", "WebFetch",     "WebSearch",
										"Write"};
	json_t *list = js_need(json_array()), *server, *tool;
	const char *name;
	size_t k;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) json_array_append_new(list, json_string(names[i]));
	json_object_foreach(a->servers, name, server) {
		json_array_foreach(json_object_get(server, "tools"), k, tool) {
			const char *of = js_get(tool, "name");
			if (of) json_array_append_new(list, js_printf("mcp__%s__%s", name, of));
		}
	}
	return list;
}

json_t *frames_servers(const struct agent *a) {
	json_t *list = js_need(json_array()), *server;
	const char *name;
	json_object_foreach(a->servers, name, server)
		json_array_append_new(list, json_pack("{s:s,s:O}", "name", name, "status", json_object_get(server, "status")));
	return list;
}

void frames_init(struct agent *a, const struct turn *t) {
	char cwd[PATH_MAX];
	json_t *f = json_pack("{s:s,s:s,s:s,s:s,s:o,s:o,s:s,s:s,s:[ssss],s:s,s:s,s:s,s:[ss],s:[],s:[],s:[s],s:s}", "type",
						  "system", "subtype", "init", "cwd", getcwd(cwd, sizeof cwd) ? cwd : "/", "session_id",
						  a->conv.id, "tools", tool_names(a), "mcp_servers", frames_servers(a), "model", a->model,
						  "permissionMode", a->mode, "slash_commands", "clear", "compact", "context", "cost",
						  "apiKeySource", "none", "claude_code_version", a->opt->version_name, "output_style",
						  "default", "agents", "general-purpose", "Explore", "skills", "plugins", "capabilities",
						  "msg_lifecycle_v1", "fast_mode_state", "off");
	js_need(f);
	if (a->opt->old) json_object_del(f, "capabilities");
	frames_name(a, t, f, false);
	scenario_merge(a->scenario, "init", f);
	frames_emit(a, f);
}

void frames_status(struct agent *a, const char *status, const struct turn *t) {
	json_t *f = js_need(json_pack("{s:s,s:s,s:s?}", "type", "system", "subtype", "status", "status", status));
	if (status)
		frames_name(a, t, f, false);
	else
		json_object_set_new(f, "permissionMode", json_string(a->mode));
	frames_emit(a, f);
}

static bool env_is_set(const char *name) {
	const char *v = getenv(name);
	return v && *v && strcmp(v, "0") != 0 && strcmp(v, "false") != 0;
}

void frames_state(struct agent *a, const char *state) {
	bool open = env_is_set("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"), same = a->state && strcmp(a->state, state) == 0;
	a->state = state;
	if (same && strcmp(state, "idle") != 0) return;
	if (!open && !env_is_set("CLAUDE_CODE_SDK_READS_SESSION_STATE")) return;
	json_t *f = js_need(
		json_pack("{s:s,s:s,s:s}", "type", "system", "subtype", "session_state_changed", "state", state));
	if (!open) json_object_set_new(f, "sdk_host_only", json_true());
	frames_emit(a, f);
}

void frames_lifecycle(struct agent *a, const char *uuid, const char *state) {
	if (a->opt->old) return;
	frames_emit(a, json_pack("{s:s,s:s,s:s}", "type", "command_lifecycle", "command_uuid", uuid, "state", state));
}

void frames_informational(struct agent *a, const char *tag, const char *level, json_t *content) {
	json_t *f = js_need(json_pack("{s:s,s:s,s:o,s:s}", "type", "system", "subtype", "informational", "content", content,
								  "level", level));
	if (tag) json_object_set_new(f, "tag", json_string(tag));
	frames_emit(a, f);
}

/* ---- conversation ---------------------------------------------------------------------------------------------- */

void frames_replay(struct agent *a, const json_t *line, bool stamp) {
	if (!a->opt->replay) return;
	json_t *f = js_need(json_pack("{s:s,s:O,s:s,s:n,s:O,s:b}", "type", "user", "message",
								  json_object_get(line, "message"), "session_id", a->conv.id, "parent_tool_use_id",
								  "uuid", json_object_get(line, "uuid"), "isReplay", 1));
	json_t *origin = json_object_get(line, "origin");
	if (origin) json_object_set(f, "origin", origin);
	if (stamp) frames_stamp(f);
	frames_emit(a, f);
}

void frames_user(struct agent *a, json_t *content, json_t *more) {
	json_t *f = js_need(json_pack("{s:s,s:{s:s,s:o},s:n}", "type", "user", "message", "role", "user", "content",
								  content, "parent_tool_use_id"));
	if (more) json_object_update(f, more);
	json_decref(more);
	if (a->turn) a->turn->said++;
	frames_stamp(f);
	frames_emit(a, f);
}

static json_t *usage(const struct turn *t) {
	int calls = t ? t->calls : 0;
	return js_need(json_pack("{s:i,s:i,s:i,s:i}", "input_tokens", calls * 10, "cache_creation_input_tokens", 0,
							 "cache_read_input_tokens", 0, "output_tokens", calls * 20));
}

static json_t *model_usage(const struct agent *a) {
	return js_need(json_pack("{s:{s:I,s:I,s:i,s:i,s:f}}", a->model, "inputTokens", (json_int_t)a->calls * 10,
							 "outputTokens", (json_int_t)a->calls * 20, "cacheReadInputTokens", 0,
							 "cacheCreationInputTokens", 0, "costUSD", a->cost));
}

/* The real one does not begin with its type either. */
void frames_result(struct agent *a, struct turn *t) {
	int64_t ms = now_ms() - t->started;
	json_t *f = js_need(json_pack("{s:I,s:I,s:s,s:b,s:i,s:s?,s:f,s:o,s:o,s:O,s:s}", "duration_api_ms", (json_int_t)ms,
								  "duration_ms", (json_int_t)ms, "type", "result", "is_error", t->is_error, "num_turns",
								  t->calls ? 1 + t->said : 0, "stop_reason", t->stop_reason, "total_cost_usd", a->cost,
								  "usage", usage(t), "modelUsage", model_usage(a), "permission_denials", t->denials,
								  "subtype", t->subtype));
	if (t->errors)
		json_object_set(f, "errors", t->errors);
	else
		json_object_set_new(f, "result", t->text ? json_incref(t->text) : json_string(""));
	if (t->terminal) json_object_set_new(f, "terminal_reason", json_string(t->terminal));
	if (t->deferred) json_object_set(f, "deferred_tool_use", t->deferred);
	if (t->origin) json_object_set(f, "origin", t->origin);
	if (t->local_command && !a->opt->old) json_object_set_new(f, "local_command", json_string(t->local_command));
	if (!a->opt->old) json_object_set_new(f, "result_index", json_integer(a->results));
	if (!a->opt->old) json_object_set_new(f, "queued_turn_count", json_integer(0));
	a->results++;
	frames_name(a, t, f, true);
	a->last_error = t->is_error;
	frames_emit(a, f);
}

void frames_failed_start(struct agent *a, const char *text) {
	json_t *f = js_need(json_pack("{s:s,s:s,s:i,s:i,s:b,s:i,s:n,s:i,s:o,s:{},s:[],s:[s]}", "type", "result", "subtype",
								  "error_during_execution", "duration_ms", 0, "duration_api_ms", 0, "is_error", 1,
								  "num_turns", 0, "stop_reason", "total_cost_usd", 0, "usage", usage(NULL),
								  "modelUsage", "permission_denials", "errors", text));
	if (!a->opt->old) json_object_set_new(f, "result_index", json_integer(0));
	a->last_error = true;
	frames_emit(a, f);
}
