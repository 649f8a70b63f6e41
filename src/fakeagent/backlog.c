/* SPDX-License-Identifier: MIT */
#include "fakeagent/backlog.h"

#include "fakeagent/conversation.h"
#include "fakeagent/frames.h"
#include "fakeagent/phase.h"
#include "fakeagent/query.h"

static json_t *lines; /* oldest first */
static json_t *seen;  /* uuids */

void backlog_init(void) {
	lines = js_need(json_array());
	seen = conversation_answered();
}

bool backlog_empty(void) {
	return !json_array_size(lines);
}

bool backlog_is_task(const json_t *line) {
	return js_true(line, "fake_task");
}

bool backlog_is_client_uuid(const json_t *line) {
	return js_get(line, "uuid") && !js_true(line, "fake_uuid");
}

static json_t *content_of(const json_t *line) {
	return json_object_get(json_object_get(line, "message"), "content");
}

static bool runs_alone(const json_t *line) {
	const char *text = json_string_value(content_of(line));
	return (text && *text == '/') || json_is_false(json_object_get(line, "shouldQuery")) ||
		   js_is(line, "priority", "now") || backlog_is_task(line);
}

/* Urgent prompts come first and end the running turn. */
static void put(json_t *line) {
	if (!js_is(line, "priority", "now")) {
		json_array_append(lines, line);
		return;
	}
	json_array_insert(lines, 0, line);
	if (!phase_running() || phase_aborted()) return;
	phase_abort(PHASE_URGENT);
	query_end_turn();
}

void backlog_add(json_t *line) {
	const json_t *content = content_of(line);
	const char *uuid = js_get(line, "uuid");
	if (!json_is_string(content) && !json_is_array(content)) return;
	if (uuid && json_object_get(seen, uuid)) {
		frames_replay(line, NULL, false);
		if (!phase_running() && backlog_empty()) frames_state("idle");
		return;
	}
	if (!phase_running()) frames_state("running");
	if (uuid) {
		js_put(seen, uuid, json_true());
		frames_lifecycle(uuid, "queued");
	} else {
		char made[37];
		js_uuid(made);
		js_put(line, "uuid", js_make("%s", made));
		js_put(line, "fake_uuid", json_true());
	}
	put(line);
}

void backlog_add_task(const char *text) {
	json_array_append_new(lines, js_make("{type:user,message:{role:user,content:%s},fake_task:true,"
										 "origin:{kind:task-notification}}",
										 text));
}

json_t *backlog_take(void) {
	json_t *batch = js_need(json_array());
	while (!backlog_empty()) {
		json_t *line = json_array_get(lines, 0);
		bool alone = runs_alone(line);
		if (alone && json_array_size(batch)) break;
		json_array_append(batch, line);
		json_array_remove(lines, 0);
		if (alone) break;
	}
	return batch;
}

bool backlog_cancel(const char *uuid) {
	size_t i;
	json_t *line;
	json_array_foreach(lines, i, line) {
		if (!js_is(line, "uuid", uuid)) continue;
		frames_lifecycle(uuid, "cancelled");
		json_array_remove(lines, i);
		return true;
	}
	return false;
}

json_t *backlog_uuids(void) {
	json_t *list = js_need(json_array()), *line;
	size_t i;
	json_array_foreach(lines, i, line) json_array_append(list, json_object_get(line, "uuid"));
	return list;
}
