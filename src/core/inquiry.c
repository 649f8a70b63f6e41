/* SPDX-License-Identifier: MIT */
#include "core/inquiry.h"
#include "core/trust.h"

#include "base/log.h"
#include "base/str.h"
#include "io/proc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MAX ((size_t)8 * 1024 * 1024)

struct inquiry {
	struct errand errand;
	struct loop_task free_task;
	struct client *client;
	char *kind, *request;
	size_t n;
	bool over;
	enum errand_end end;
};

static void free_inquiry(void *arg) {
	struct inquiry *q = arg;
	free(q->kind);
	free(q->request);
	free(q);
}

void inquiry_over(struct client *c) {
	struct inquiry *q = c->inquiry;
	if (!q) return;
	c->inquiry = NULL;
	errand_drop(&q->errand);
	loop_task_init(&q->free_task, free_inquiry, q);
	loop_defer_free(c->loop, &q->free_task); /* it may be the caller */
}

static void on_over(void *arg, enum errand_end end) {
	struct inquiry *q = arg;
	q->over = true;
	q->end = end;
	if (end != ERRAND_DONE)
		log_warn("client %llu: what its line needs from outside (%s) %s", (unsigned long long)q->client->id, q->kind,
				 end == ERRAND_TIMEOUT ? "did not come in time (outside_timeout)" : "was lost");
	client_release(q->client);
}

static struct inquiry *new_inquiry(struct client *c, const char *kind, const struct buf *request) {
	struct inquiry *q = calloc(1, sizeof *q);
	if (!q) return NULL;
	q->errand = ERRAND_ZERO;
	q->client = c;
	q->kind = str_dup(kind);
	q->request = malloc(request->len + 1);
	q->n = request->len;
	if (q->kind && q->request) {
		memcpy(q->request, request->data, request->len);
		return q;
	}
	free_inquiry(q);
	return NULL;
}

static void begin(struct inquiry *q, const char *place) {
	struct router *r = q->client->world;
	struct error error;
	struct errand_spec spec = {.kind = q->kind,
							   .request = q->request,
							   .n = q->n,
							   .place = place,
							   .uid = q->client->peer.uid,
							   .limit = r->settings->outside_timeout,
							   .answer_max = ANSWER_MAX};
	enum child_result result = errand_begin(&q->errand, r->children, &spec, on_over, q, &error);
	if (result == CHILD_OK) return;
	log_warn("client %llu: %s", (unsigned long long)q->client->id, error.text);
	q->over = true;
	q->end = result == CHILD_TIMEOUT ? ERRAND_TIMEOUT : ERRAND_LOST;
}

bool inquiry_ask(struct client *c, struct chunk line, const char *kind, const struct buf *request, const char *place) {
	struct inquiry *q = c->inquiry;
	if (q && (strcmp(q->kind, kind) != 0 || q->n != request->len || memcmp(q->request, request->data, q->n) != 0)) {
		inquiry_over(c);
		q = NULL;
	}
	if (!q && !request->failed && (q = new_inquiry(c, kind, request))) {
		c->inquiry = q;
		begin(q, place);
	}
	if (!q || q->over) return true;
	router_hold(c, line);
	return false;
}

struct span inquiry_answer(const struct client *c, const char *kind, enum errand_end *end) {
	const struct inquiry *q = c->inquiry;
	bool ours = q && q->over && strcmp(q->kind, kind) == 0;
	if (end) *end = ours ? q->end : ERRAND_LOST;
	return ours && q->end == ERRAND_DONE ? (struct span){q->errand.answer.data, q->errand.answer.len} : SPAN_NONE;
}

/* --- the client's environment ------------------------------------------------------------------------------------- */

static bool has_login(struct client *c) {
	return c->peer.uid == getuid() && trust_is_free(c->world, c);
}

/* A root's or an agent's does not count. */
static void take_umask(struct launch *l, struct client *c) {
	int mask = proc_umask(c->peer.pid);
	if (mask >= 0 && has_login(c)) l->umask = mask + 1;
}

/* The pid is still the client's if it lives after its start time was read. */
static void set_asker(struct launch *l, struct client *c) {
	uint64_t start;
	if (!proc_stat(c->peer.pid, NULL, NULL, &start) || !has_login(c)) return;
	l->asker = c->peer.pid;
	l->asker_start = start;
}

void inquiry_fill_launch(struct launch *l, struct client *c, const struct profile *p) {
	struct span answer = inquiry_answer(c, LOGIN_ERRAND, NULL), env;
	bool known = answer.p && login_answer(answer.p, answer.n, &l->place, &env);
	if (known && !l->env_only) l->login = login_read(env, p);
	if (!l->login && !l->env_only) set_asker(l, c);
	take_umask(l, c);
}

/* Return the value of a variable at a start without the requester's. *fixed: the requester's does not count. */
static const char *value_of(const struct profile *p, const char *name, bool *fixed) {
	ssize_t at = words_named(&p->env, name, strlen(name));
	bool passes = false;
	for (size_t i = 0; i < p->pass_env.n; i++)
		passes |= strcmp(p->pass_env.v[i], "*") == 0 || strcmp(p->pass_env.v[i], name) == 0;
	*fixed = at >= 0;
	return *fixed ? p->env.v[at] + strlen(name) + 1 : passes ? getenv(name) : NULL;
}

static bool look_for(struct client *c, struct chunk line, const char *kind, const struct profile *p, const char *cwd) {
	_cleanup_free_ char *usual = cwd ? NULL : inquiry_usual_cwd(c, p);
	const char *variable = login_variable_of(p->name);
	bool fixed = false;
	const char *named = variable ? value_of(p, variable, &fixed) : NULL;
	struct login_place place = {.cwd = cwd     ? cwd
									   : usual ? usual
											   : "/",
								.program = named && *named ? named : p->command.v[0],
								.variable = fixed ? NULL : variable};
	place.path = value_of(p, "PATH", &fixed);
	struct buf request = BUF_INIT(65536);
	login_ask(&request, has_login(c) ? c->peer.pid : 0, &place);
	bool known = inquiry_ask(c, line, kind, &request, place.cwd);
	buf_free(&request);
	return known;
}

bool inquiry_look_for(struct client *c, struct chunk line, const struct profile *p, const char *cwd) {
	return !p->warm || look_for(c, line, LOGIN_ERRAND, p, cwd);
}

bool inquiry_find_program(struct client *c, struct chunk line, const struct profile *p) {
	return look_for(c, line, PROGRAM_ERRAND, p, NULL);
}

/* The root is the directory of services, such as the sshd of a forwarded socket, and not the user's choice. */
char *inquiry_usual_cwd(const struct client *c, const struct profile *p) {
	char *own = c->peer.uid == getuid() ? proc_cwd(c->peer.pid) : NULL;
	const char *home = getenv("HOME");
	if (own && strcmp(own, "/") != 0) return own;
	free(own);
	return str_dup(p->cwd ? p->cwd : home && *home == '/' ? home : "/");
}

/* An agent's program has an environment made by the agent; the pid of an ended process may have been reused. */
void inquiry_take_login(struct session *s, struct client *c) {
	uid_t me = getuid();
	if (s->agent || s->want_child || s->launch.uid != me) return;
	take_umask(&s->launch, c);
	if (!s->launch.env_only) set_asker(&s->launch, c);
}
