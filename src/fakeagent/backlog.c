/* SPDX-License-Identifier: MIT */
#include "fakeagent/backlog.h"

#include "fakeagent/out.h"
#include "fakeagent/query.h"

static json_t *lines; /* oldest first */
static json_t *seen;  /* uuids */

void backlog_init(void) {
	lines = js_make("[]");
	seen = js_make("{}");
	JS_EACH (message, agent.messages)
		JS_EACH (uuid, json_object_get(message.v, "answers"))
			if (json_is_string(uuid.v)) js_put(seen, json_string_value(uuid.v), json_true());
}

bool backlog_empty(void) {
	return !json_array_size(lines);
}

/* Urgent prompts come first and end the running turn. */
void backlog_add(json_t *line) {
	const json_t *content = js_at(line, "message.content");
	const char *uuid = js_get(line, "uuid");
	bool urgent = js_is(line, "priority", "now");
	if (!json_is_string(content) && !json_is_array(content)) return;
	if (uuid && json_object_get(seen, uuid)) {
		out_replay(line, NULL);
		if (!agent.running && backlog_empty()) out_state("idle");
		return;
	}
	if (!agent.running) out_state("running");
	if (uuid) {
		js_put(seen, uuid, json_true());
		out_lifecycle(uuid, "queued");
	} else {
		js_merge(line, js_make("{uuid:%u,fake_uuid:true}"));
	}
	json_array_insert(lines, urgent ? 0 : json_array_size(lines), line);
	if (urgent && !agent.aborted) query_end_turn(ABORT_URGENT);
}

void backlog_add_task(const char *text) {
	js_add(lines, js_make("{type:user,message:{role:user,content:%s},fake_task:true,fake_uuid:true,"
						  "origin:{kind:task-notification}}",
						  text));
}

json_t *backlog_take(void) {
	json_t *batch = js_make("[]");
	for (bool alone = false; !alone && !backlog_empty();) {
		json_t *line = json_array_get(lines, 0);
		const char *text = js_get(line, "message.content");
		alone = (text && *text == '/') || json_is_false(json_object_get(line, "shouldQuery")) ||
				js_is(line, "priority", "now") || js_true(line, "fake_task");
		if (alone && json_array_size(batch)) break;
		json_array_append(batch, line);
		json_array_remove(lines, 0);
	}
	return batch;
}

bool backlog_cancel(const char *uuid) {
	JS_EACH (line, lines) {
		if (!js_is(line.v, "uuid", uuid)) continue;
		out_lifecycle(uuid, "cancelled");
		json_array_remove(lines, line.i);
		return true;
	}
	return false;
}

json_t *backlog_uuids(void) {
	json_t *list = js_make("[]");
	JS_EACH (line, lines) json_array_append(list, json_object_get(line.v, "uuid"));
	return list;
}

json_t *backlog_clear(void) {
	json_t *gone = backlog_uuids();
	JS_EACH (uuid, gone) backlog_cancel(json_string_value(uuid.v));
	return gone;
}
