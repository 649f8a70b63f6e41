/* SPDX-License-Identifier: MIT */
#include "core/snapshot.h"

#include "base/macros.h"
#include "wire/limits.h"
#include "wire/notice.h"
#include "wire/splice.h"
#include "wire/valid.h"

#include <string.h>

#define WORD_MAX 256         /* a mode or a model */
#define DESCRIPTION_MAX 1024 /* of a task in a list made by the daemon */

static bool is_valid(struct span json) {
	const char *error;
	size_t at;
	return valid_json(json.p, json.n, &error, &at);
}

/* Return a copy; NULL: too long, invalid JSON (only its brackets were counted so far), or no memory. */
static char *keep(struct span json, size_t max) {
	return json.p && json.n <= max && is_valid(json) ? strndup(json.p, json.n) : NULL;
}

static void take(char **text, struct span json, size_t max) {
	free(*text);
	*text = keep(json, max);
}

static bool is_kept(struct span init) {
	return init.n <= LIMITS_KEPT_INIT && is_valid(init);
}

static void take_init(struct snapshot *sn, struct span line) {
	snapshot_forget_init(sn);
	if (is_kept(line)) sn->init = chunk_copy(line.p, line.n);
	snapshot_mode(sn, span_member(line, "permissionMode"));
	take(&sn->model, span_member(line, "model"), WORD_MAX);
}

static void take_tasks(struct snapshot *sn, struct span tasks) {
	bool any = span_element(tasks, 0).p != NULL;
	sn->tasks_told = true;
	take(&sn->tasks, any ? tasks : SPAN_NONE, LIMITS_KEPT_TASKS);
	sn->tasks_lost = any && !sn->tasks;
}

/* Write the members of a task as in the child's own lists. */
static void put_task(struct buf *b, struct span line) {
	static const char *const names[] = {"task_type", "subagent_type", "description"};
	struct span id = span_member(line, "task_id");
	buf_puts(b, "{\"task_id\":");
	buf_put(b, id.p, id.n);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct span value = span_member(line, names[i]);
		if (span_is_string(value) && value.n <= DESCRIPTION_MAX) notice_raw(b, names[i], value);
	}
	buf_putc(b, '}');
}

/* Rewrite the list without this line's task, which is then at its end or has ended. */
static void rewrite_tasks(struct snapshot *sn, struct span line, bool runs) {
	struct buf b = BUF_INIT(LIMITS_KEPT_TASKS);
	struct span all = {sn->tasks, sn->tasks ? strlen(sn->tasks) : 0}, id = span_member(line, "task_id"), task;
	buf_putc(&b, '[');
	for (size_t at = 0; span_next(all, &at, &task);) {
		if (span_same(span_member(task, "task_id"), id)) continue;
		if (b.len > 1) buf_putc(&b, ',');
		buf_put(&b, task.p, task.n);
	}
	if (runs && b.len > 1) buf_putc(&b, ',');
	if (runs) put_task(&b, line);
	buf_putc(&b, ']');
	char *list = b.failed || b.len == 2 || !is_valid((struct span){b.data, b.len}) ? NULL : buf_steal(&b, NULL);
	if (list || b.len == 2) { /* else it is full, or invalid JSON */
		free(sn->tasks);
		sn->tasks = list;
	}
	buf_free(&b);
}

static bool has_ended(struct span line, const struct envelope *e) {
	static const char *const ends[] = {"completed", "failed", "killed", "stopped", "cancelled"};
	struct span status = span_member(span_member(line, "patch"), "status");
	if (span_equals(e->subtype, "task_notification")) return true;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (span_equals(status, ends[i])) return true;
	return false;
}

/* 2.1.197 reports tasks one by one, without a flag for the background; all have an end, also after an interrupt. */
static void take_task(struct snapshot *sn, struct span line, const struct envelope *e) {
	struct span in_background = span_member(line, "is_backgrounded");
	bool starts = span_equals(e->subtype, "task_started");
	if (sn->tasks_told || !span_is_string(span_member(line, "task_id"))) return;
	if (starts && (!in_background.p || span_is_true(in_background)))
		rewrite_tasks(sn, line, true);
	else if (!starts && has_ended(line, e))
		rewrite_tasks(sn, line, false);
}

void snapshot_line(struct snapshot *sn, enum line_kind kind, struct chunk line, const struct envelope *e) {
	struct span body = splice_body(line);
	if (kind == LINE_RESET) snapshot_forget_init(sn);
	if (kind != LINE_SYSTEM) return;
	if (span_equals(e->subtype, "init"))
		take_init(sn, body);
	else if (span_equals(e->subtype, "status"))
		snapshot_mode(sn, span_member(body, "permissionMode"));
	else if (span_equals(e->subtype, "background_tasks_changed"))
		take_tasks(sn, span_member(body, "tasks"));
	else if (span_equals(e->subtype, "task_started") || span_equals(e->subtype, "task_updated") ||
			 span_equals(e->subtype, "task_notification"))
		take_task(sn, body, e);
}

void snapshot_taped(struct snapshot *sn, uint64_t seq) {
	sn->init_seq = seq;
}

void snapshot_mode(struct snapshot *sn, struct span mode) {
	if (span_is_string(mode)) take(&sn->mode, mode, WORD_MAX);
}

/* If an old child does not report the result, "default" stands for a model known only to the child. */
void snapshot_changed(struct snapshot *sn, const char *what, struct span value) {
	if (!what) return;
	if (strcmp(what, "permission_mode") == 0) snapshot_mode(sn, value);
	if (strcmp(what, "model") != 0) return;
	bool named = span_is_string(value) && !span_equals(value, "default");
	take(&sn->model, named ? value : SPAN_NONE, WORD_MAX);
}

void snapshot_forget_init(struct snapshot *sn) {
	chunk_drop(&sn->init);
	sn->init_seq = 0;
}

const char *snapshot_strict(const struct snapshot *sn) {
	static const char *const modes[] = {"plan", "dontAsk"};
	struct span mode = span_of(sn->mode ? sn->mode : sn->strict);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (span_equals(mode, modes[i])) return modes[i];
	return NULL;
}

void snapshot_set_strict(struct snapshot *sn, const char *mode) {
	free(sn->strict);
	sn->strict = strdup(strcmp(mode, "dontAsk") == 0 ? "\"dontAsk\"" : "\"plan\"");
}

/* If a child died before it reported its mode, keep the mode of its predecessor. */
static void keep_strict(struct snapshot *sn) {
	if (!sn->mode) return;
	free(sn->strict);
	sn->strict = snapshot_strict(sn) ? sn->mode : NULL;
	if (sn->strict) sn->mode = NULL;
}

void snapshot_child_gone(struct snapshot *sn) {
	keep_strict(sn);
	chunk_drop(&sn->init);
	free(sn->mode);
	free(sn->model);
	free(sn->tasks);
	sn->mode = sn->model = sn->tasks = NULL;
	sn->tasks_lost = sn->tasks_told = false;
}

void snapshot_clear(struct snapshot *sn) {
	snapshot_child_gone(sn);
	sn->init_seq = 0;
}

void snapshot_free(struct snapshot *sn) {
	snapshot_clear(sn);
	free(sn->strict);
	sn->strict = NULL;
}

struct span snapshot_init(const struct snapshot *sn, const struct tape *tape) {
	if (sn->init.data) return (struct span){sn->init.data, sn->init.len};
	if (sn->init_seq < tape->oldest || sn->init_seq >= tape->next) return SPAN_NONE;
	struct span line = splice_body(tape_at(tape, sn->init_seq)->line);
	return is_kept(line) ? line : SPAN_NONE;
}

void snapshot_carry(struct carry *c, struct snapshot *sn) {
	carry_mark(c, "snapshot");
	carry_chunk(c, &sn->init);
	CARRY(c, sn->init_seq);
	carry_text(c, &sn->mode);
	carry_text(c, &sn->model);
	carry_text(c, &sn->tasks);
	CARRY(c, sn->tasks_lost);
	CARRY(c, sn->tasks_told);
	carry_text(c, &sn->strict);
}
