/* SPDX-License-Identifier: MIT */
#include "core/snapshot.h"

#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/limits.h"
#include "wire/splice.h"
#include "wire/valid.h"

#include <string.h>

#define WORD_MAX 256 /* a mode or a model */

/* Keep a copy; NULL: too long, invalid JSON (only its brackets were counted so far), or no memory. */
static void take(char **text, struct span json, size_t max) {
	free(*text);
	*text = json.p && json.n <= max && valid_span(json) ? strndup(json.p, json.n) : NULL;
}

static bool is_kept(struct span init) {
	return init.n <= LIMITS_KEPT_INIT && valid_span(init);
}

/* Rewrite the list without this line's task, which is then at its end or has ended. */
static void rewrite_tasks(struct snapshot *sn, const struct dialect *d, struct span line, const struct report *r) {
	struct buf b = BUF_INIT(LIMITS_KEPT_TASKS);
	struct span all = span_of(sn->tasks), task;
	bool runs = r->tasks == REPORT_TASK_BEGINS;
	buf_putc(&b, '[');
	for (size_t at = 0; span_next(all, &at, &task);) {
		if (span_same(d->task_id(task), r->task)) continue;
		if (b.len > 1) buf_putc(&b, ',');
		buf_put(&b, task.p, task.n);
	}
	if (runs && b.len > 1) buf_putc(&b, ',');
	if (runs) d->put_task(&b, line);
	buf_putc(&b, ']');
	char *list = b.failed || b.len == 2 || !valid_span((struct span){b.data, b.len}) ? NULL : buf_steal(&b, NULL);
	if (list || b.len == 2) { /* else it is full, or invalid JSON */
		free(sn->tasks);
		sn->tasks = list;
	}
	buf_free(&b);
}

void snapshot_read(struct snapshot *sn, const struct dialect *d, struct chunk line, const struct report *r) {
	struct span body = splice_body(line);
	if (r->resets) snapshot_forget_init(sn);
	if (r->begins) {
		snapshot_forget_init(sn);
		if (is_kept(body)) sn->init = chunk_copy(body.p, body.n);
		take(&sn->model, r->model, WORD_MAX);
	}
	snapshot_mode(sn, r->mode);
	if (!r->begins) snapshot_model(sn, r->model);
	if (r->tasks == REPORT_TASKS) {
		bool any = span_element(r->task, 0).p != NULL;
		sn->tasks_told = true;
		take(&sn->tasks, any ? r->task : SPAN_NONE, LIMITS_KEPT_TASKS);
		sn->tasks_lost = any && !sn->tasks;
	} else if (r->tasks && !sn->tasks_told && span_is_string(r->task)) { /* reported one by one */
		rewrite_tasks(sn, d, body, r);
	}
}

void snapshot_taped(struct snapshot *sn, uint64_t seq) {
	sn->init_seq = seq;
}

void snapshot_mode(struct snapshot *sn, struct span mode) {
	if (span_is_string(mode)) take(&sn->mode, mode, WORD_MAX);
}

void snapshot_model(struct snapshot *sn, struct span model) {
	if (span_is_string(model)) take(&sn->model, model, WORD_MAX);
}

/* If an old child does not report the result, "default" stands for a model known only to the child. */
void snapshot_changed(struct snapshot *sn, const struct dialect *d, const char *what, struct span value) {
	if (!what) return;
	if (strcmp(what, PLENUM_WHAT_MODE) == 0) snapshot_mode(sn, value);
	if (strcmp(what, PLENUM_WHAT_MODEL) != 0) return;
	bool named = span_is_string(value) && !(d->is_default_model && d->is_default_model(value));
	take(&sn->model, named ? value : SPAN_NONE, WORD_MAX);
}

void snapshot_forget_init(struct snapshot *sn) {
	chunk_drop(&sn->init);
	sn->init_seq = 0;
}

const char *snapshot_strict(const struct snapshot *sn, const struct dialect *d) {
	return d->strict_mode ? d->strict_mode(span_of(sn->mode ? sn->mode : sn->strict)) : NULL;
}

void snapshot_set_strict(struct snapshot *sn, const struct dialect *d, const char *mode) {
	_cleanup_free_ char *text = str_printf("\"%s\"", mode);
	const char *known = text && d->strict_mode ? d->strict_mode(span_of(text)) : NULL;
	if (!known) known = d->strictest;
	free(sn->strict);
	sn->strict = known ? str_printf("\"%s\"", known) : NULL;
}

static void drop(struct snapshot *sn) {
	chunk_drop(&sn->init);
	free(sn->mode);
	free(sn->model);
	free(sn->tasks);
	sn->mode = sn->model = sn->tasks = NULL;
	sn->tasks_lost = sn->tasks_told = false;
}

void snapshot_child_gone(struct snapshot *sn, const struct dialect *d) {
	if (sn->mode) { /* a child that died before it reported its mode leaves that of its predecessor */
		free(sn->strict);
		sn->strict = snapshot_strict(sn, d) ? sn->mode : NULL;
		if (sn->strict) sn->mode = NULL;
	}
	drop(sn);
}

void snapshot_clear(struct snapshot *sn, const struct dialect *d) {
	snapshot_child_gone(sn, d);
	sn->init_seq = 0;
}

void snapshot_free(struct snapshot *sn) {
	drop(sn);
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
