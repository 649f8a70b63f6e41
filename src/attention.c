/* SPDX-License-Identifier: MIT */
#include "attention.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

#include <string.h>

#define AT_ONCE 8
#define EVERY_MS 1000
#define REMEMBERED 64

extern char **environ;

struct helper {
	struct child child;
	struct list node;
	struct attention *owner;
};

struct attention {
	struct children *children;
	struct list helpers;
	size_t n;
	struct {
		uint64_t session;
		int64_t at;
	} last[REMEMBERED]; /* by session id, modulo */
};

struct attention *attention_new(struct children *children) {
	struct attention *a = calloc(1, sizeof *a);
	if (!a) return NULL;
	a->children = children;
	list_init(&a->helpers);
	return a;
}

void attention_free(struct attention *a) {
	struct helper *h;
	if (!a) return;
	LIST_FOR_EACH (h, &a->helpers, struct helper, node) {
		child_forget(&h->child);
		free(h);
	}
	free(a);
}

bool attention_is_helper(const struct attention *a, pid_t pid) {
	struct helper *h;
	LIST_FOR_EACH (h, &a->helpers, struct helper, node)
		if (h->child.pid == pid) return true;
	return false;
}

static void on_exited(void *arg, int status) {
	struct helper *h = arg;
	(void)status;
	list_del(&h->node);
	h->owner->n--;
	free(h);
}

static bool put(struct words *env, const char *name, const char *value) {
	_cleanup_free_ char *word = str_printf("%s=%s", name, value ? value : "");
	return word && words_add(env, word);
}

static bool make_env(struct words *env, const struct session *s, const struct pending *p) {
	_cleanup_free_ char *text = pending_summary(p);
	for (char **v = environ; *v; v++)
		if (strncmp(*v, "PLENUM_", 7) != 0 && !words_add(env, *v)) return false;
	return put(env, "PLENUM_SESSION", s->name) && put(env, "PLENUM_TOOL", p->tool ? p->tool : p->subtype) &&
		   put(env, "PLENUM_SUMMARY", text) && put(env, "PLENUM_REQUEST", p->id);
}

static bool too_soon(struct attention *a, const struct session *s) {
	size_t slot = s->id % REMEMBERED;
	int64_t now = now_ms();
	if (a->n >= AT_ONCE) return true;
	if (a->last[slot].session == s->id && now - a->last[slot].at < EVERY_MS) return true;
	a->last[slot].session = s->id;
	a->last[slot].at = now;
	return false;
}

void attention_call(struct attention *a, const struct settings *settings, const struct session *s,
					const struct pending *p) {
	char error[CHILD_ERROR_MAX];
	struct words env = {0};
	if (!settings->on_pending.n || too_soon(a, s)) return;
	struct helper *h = calloc(1, sizeof *h);
	if (h && make_env(&env, s, p)) {
		struct child_spec spec = {.argv = settings->on_pending.v, .envp = env.v, .cwd = "/", .no_pipes = true};
		h->owner = a;
		h->child.exited = on_exited;
		h->child.arg = h;
		if (child_spawn(&h->child, a->children, &spec, error) == CHILD_OK) {
			list_add_tail(&a->helpers, &h->node);
			a->n++;
			h = NULL;
		} else {
			log_warn("on_pending: %s", error);
		}
	}
	free(h);
	words_free(&env);
}

static void load_helper(struct carry *c, struct attention *a) {
	struct helper *h = calloc(1, sizeof *h);
	if (!h) {
		carry_fail(c, "out of memory");
		return;
	}
	h->owner = a;
	h->child = (struct child){.exited = on_exited, .arg = h, .in = -1, .out = -1, .err = -1};
	CARRY(c, h->child.pid);
	CARRY(c, h->child.start);
	child_resume(&h->child, a->children);
	list_add_tail(&a->helpers, &h->node);
	a->n++;
}

void attention_carry(struct carry *c, struct attention *a) {
	struct helper *h;
	carry_mark(c, "helpers");
	size_t n = carry_count(c, a->n);
	if (c->saving) {
		LIST_FOR_EACH (h, &a->helpers, struct helper, node) {
			CARRY(c, h->child.pid);
			CARRY(c, h->child.start);
		}
	}
	for (size_t i = 0; !c->saving && i < n && carry_ok(c); i++) load_helper(c, a);
}
