/* SPDX-License-Identifier: MIT */
#include "fakeagent/queue.h"

#include "fakeagent/asks.h"
#include "fakeagent/frames.h"

#include <string.h>

static bool has(const json_t *line, const char *key, const char *value) {
	const char *is = js_get(line, key);
	return is && strcmp(is, value) == 0;
}

static bool runs_alone(const json_t *line) {
	const json_t *content = json_object_get(json_object_get(line, "message"), "content");
	const char *text = json_string_value(content);
	return (text && *text == '/') || json_is_false(json_object_get(line, "shouldQuery")) ||
		   has(line, "priority", "now") || json_object_get(line, "fake_task");
}

/* Urgent ones come first, and end the turn that runs. */
static void put(struct agent *a, json_t *line) {
	if (!has(line, "priority", "now")) {
		json_array_append(a->queue, line);
		return;
	}
	json_array_insert(a->queue, 0, line);
	if (!a->turn || a->abort) return;
	a->abort = ABORT_URGENT;
	asks_settle_turn(a, ASK_CANCELLED);
}

void queue_add(struct agent *a, json_t *line) {
	const json_t *content = json_object_get(json_object_get(line, "message"), "content");
	const char *uuid = js_get(line, "uuid");
	if (!json_is_string(content) && !json_is_array(content)) return;
	if (uuid && json_object_get(a->seen, uuid)) {
		frames_replay(a, line, false);
		if (!a->turn && !json_array_size(a->queue)) frames_state(a, "idle");
		return;
	}
	if (!a->turn) frames_state(a, "running");
	if (uuid) {
		json_object_set_new(a->seen, uuid, json_true());
		frames_lifecycle(a, uuid, "queued");
	} else {
		char made[37];
		js_uuid(made);
		json_object_set_new(line, "uuid", json_string(made));
		json_object_set_new(line, "made", json_true());
	}
	put(a, line);
}

json_t *queue_batch(struct agent *a) {
	json_t *batch = js_need(json_array());
	while (json_array_size(a->queue)) {
		json_t *line = json_array_get(a->queue, 0);
		bool alone = runs_alone(line);
		if (alone && json_array_size(batch)) break;
		json_array_append(batch, line);
		json_array_remove(a->queue, 0);
		if (alone) break;
	}
	return batch;
}

bool queue_cancel(struct agent *a, const char *uuid) {
	size_t i;
	json_t *line;
	json_array_foreach(a->queue, i, line) {
		if (!has(line, "uuid", uuid)) continue;
		frames_lifecycle(a, uuid, "cancelled");
		json_array_remove(a->queue, i);
		return true;
	}
	return false;
}

json_t *queue_uuids(const struct agent *a) {
	json_t *list = js_need(json_array());
	size_t i;
	json_t *line;
	json_array_foreach(a->queue, i, line) json_array_append(list, json_object_get(line, "uuid"));
	return list;
}
