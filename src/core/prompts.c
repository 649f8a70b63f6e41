/* SPDX-License-Identifier: MIT */
#include "core/prompts.h"

#include "base/fd.h"

#include <string.h>

void prompts_init(struct prompts *p) {
	*p = (struct prompts){0};
	list_init(&p->open);
	list_init(&p->done);
}

static void drop_held(struct prompt *one) {
	if (one->held.data) share_give(one->payer, SHARE_BYTES, one->held.len);
	one->payer = NULL;
	chunk_drop(&one->held);
}

static void free_prompt(struct prompts *p, struct prompt *one) {
	HASH_DELETE(hh, p->by_uuid, one);
	list_del(&one->node);
	drop_held(one);
	free(one->name);
	free(one);
}

void prompts_free(struct prompts *p) {
	struct prompt *one;
	LIST_FOR_EACH (one, &p->open, struct prompt, node) free_prompt(p, one);
	LIST_FOR_EACH (one, &p->done, struct prompt, node) free_prompt(p, one);
}

struct prompt *prompt_find(struct prompts *p, struct span uuid) {
	struct prompt *one = NULL;
	struct span text = span_content(uuid);
	_cleanup_free_ char *plain = text.p && memchr(text.p, '\\', text.n) ? span_dup(uuid, &text.n) : NULL;
	if (plain) text.p = plain;
	if (text.p) HASH_FIND(hh, p->by_uuid, text.p, text.n, one);
	return one;
}

struct prompt *prompt_add(struct prompts *p, const char *uuid, size_t n) {
	struct prompt *one = calloc(1, sizeof *one + n + 1);
	if (!one) return NULL;
	memcpy(one->uuid, uuid, n);
	one->state = PROMPT_SENT;
	one->since = now_ms();
	if (!HASH_TRY_ADD(hh, p->by_uuid, one->uuid, n, one)) {
		free(one);
		return NULL;
	}
	list_add_tail(&p->open, &one->node);
	p->n_open++;
	return one;
}

static void leave_open(struct prompts *p, struct prompt *one) {
	p->n_open--;
	if (one->state == PROMPT_HELD) p->n_held--;
	drop_held(one);
}

void prompt_hold(struct prompts *p, struct prompt *one, struct chunk line, struct share *payer) {
	one->state = PROMPT_HELD;
	one->held = line;
	one->payer = payer;
	share_add(payer, SHARE_BYTES, line.len);
	p->n_held++;
}

struct chunk prompt_release(struct prompts *p, struct prompt *one, struct share **payer) {
	struct chunk line = one->held;
	*payer = one->payer;
	one->held = CHUNK_NONE;
	one->payer = NULL;
	p->n_held--;
	one->state = PROMPT_SENT;
	return line;
}

void prompt_done(struct prompts *p, struct prompt *one) {
	if (one->state == PROMPT_DONE) return;
	leave_open(p, one);
	one->state = PROMPT_DONE;
	one->asker = NULL;
	list_del(&one->node);
	list_add_tail(&p->done, &one->node);
	p->n_done++;
	prompts_trim(p, PROMPTS_KEPT);
}

void prompts_trim(struct prompts *p, size_t keep) {
	for (; p->n_done > keep; p->n_done--) free_prompt(p, LIST_OF(p->done.next, struct prompt, node));
}

void prompt_forget(struct prompts *p, struct prompt *one) {
	if (one->state == PROMPT_DONE)
		p->n_done--;
	else
		leave_open(p, one);
	free_prompt(p, one);
}

size_t prompts_of(const struct prompts *p, const struct client *asker) {
	struct prompt *one;
	size_t n = 0;
	LIST_FOR_EACH (one, &p->open, struct prompt, node) n += one->asker == asker;
	return n;
}

void prompts_asker_gone(struct prompts *p, const struct client *asker) {
	struct prompt *one;
	LIST_FOR_EACH (one, &p->open, struct prompt, node)
		if (one->asker == asker) one->asker = NULL;
}

void prompts_need(struct prompts *p, const struct client *asker, uint64_t version) {
	struct prompt *one;
	LIST_FOR_EACH (one, &p->open, struct prompt, node)
		if (one->state == PROMPT_HELD && one->asker == asker) one->needs = version;
}

bool prompts_needy(const struct prompts *p, const struct client *asker, uint64_t version) {
	struct prompt *one;
	LIST_FOR_EACH (one, &p->open, struct prompt, node)
		if (one->state == PROMPT_HELD && one->needs > version && (!asker || one->asker == asker)) return true;
	return false;
}

static void carry_prompt(struct carry *c, struct prompts *p, struct prompt *one) {
	CARRY_UPTO(c, one->state, PROMPT_DONE);
	CARRY(c, one->child);
	CARRY(c, one->client);
	carry_text(c, &one->name);
	CARRY(c, one->uid);
	CARRY(c, one->bytes_hash);
	CARRY(c, one->command);
	carry_client(c, &one->asker);
	carry_chunk(c, &one->held);
	CARRY(c, one->since);
	CARRY(c, one->needs);
	if (c->saving) return;
	if (one->state == PROMPT_HELD) p->n_held++;
	if ((one->state == PROMPT_HELD) != (one->held.data != NULL)) carry_fail(c, "a queued prompt has no line");
	if (one->state != PROMPT_DONE) return;
	list_del(&one->node); /* a new prompt is among the open ones */
	list_add_tail(&p->done, &one->node);
	p->n_open--;
	p->n_done++;
}

static void load_prompt(struct carry *c, struct prompts *p) {
	char *uuid = NULL;
	carry_name(c, &uuid);
	struct prompt *one = uuid ? prompt_add(p, uuid, strlen(uuid)) : NULL;
	if (one)
		carry_prompt(c, p, one);
	else
		carry_fail(c, "out of memory");
	free(uuid);
}

static void save_prompts(struct carry *c, struct prompts *p, struct list *which) {
	struct prompt *one;
	LIST_FOR_EACH (one, which, struct prompt, node) {
		char *uuid = one->uuid;
		carry_name(c, &uuid);
		carry_prompt(c, p, one);
	}
}

void prompts_carry(struct carry *c, struct prompts *p) {
	carry_mark(c, "prompts");
	CARRY(c, p->replays);
	CARRY(c, p->unnamed);
	CARRY(c, p->echoed);
	size_t n = carry_count(c, p->n_open + p->n_done);
	if (c->saving) {
		save_prompts(c, p, &p->open);
		save_prompts(c, p, &p->done);
	}
	for (size_t i = 0; !c->saving && i < n && carry_ok(c); i++) load_prompt(c, p);
}
