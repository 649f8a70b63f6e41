/* SPDX-License-Identifier: MIT */
#include "fakeagent/query.h"

#include "fakeagent/out.h"

static struct list all = LIST_SELF(all);
static bool closed;

void query_free(struct query *q) {
	list_del(&q->node);
	poller_cancel(q->timer);
	json_decref(q->request);
	json_decref(q->response);
	json_decref(q->arg);
	free(q);
}

/* End q, and notify the client unless it knows. */
static void finish(struct query *q, enum query_end end) {
	bool tell = end == QUERY_CANCELLED || end == QUERY_TIMEOUT || end == QUERY_REPLACED;
	/* The CLI sends notifications/cancelled to the server instead (protocol-facts 4.2). */
	if (tell && !js_is(q->request, "subtype", "mcp_message"))
		out_json(js_make("{type:control_cancel_request,request_id:%s}", q->id));
	q->end = end;
	poller_cancel(q->timer);
	q->timer = NULL;
	if (!q->detached) return;
	list_del(&q->node);
	if (q->then) q->then(q);
	query_free(q);
}

/* The end of one may run code that ends others: callers search anew after each. */
static struct query *find(const char *id, const char *subtype, bool attached) {
	struct query *q;
	LIST_FOR_EACH (q, &all, struct query, node) {
		if (q->end || (attached && q->detached) || (id && strcmp(q->id, id) != 0)) continue;
		if (!subtype || js_is(q->request, "subtype", subtype)) return q;
	}
	return NULL;
}

static void expire(json_t *id) {
	struct query *q = find(json_string_value(id), NULL, false);
	if (!q) return;
	q->timer = NULL; /* the timer frees itself */
	finish(q, QUERY_TIMEOUT);
}

static json_t *line_of(const struct query *q) {
	return js_make("{type:control_request,request_id:%s,request:%O}", q->id, q->request);
}

struct query *query_send(json_t *request, int64_t timeout) {
	struct query *q = calloc(1, sizeof *q);
	if (!q) js_no_memory();
	*q = (struct query){.request = request, .end = closed ? QUERY_CLOSED : QUERY_OPEN};
	str_uuid(q->id);
	list_add_tail(&all, &q->node);
	if (closed) return q;
	if (timeout >= 0) q->timer = poller_after(timeout, expire, js_string(q->id));
	out_json(line_of(q));
	return q;
}

void query_then(struct query *q, void (*then)(struct query *q), json_t *arg) {
	q->detached = true;
	q->then = then;
	q->arg = arg;
	if (q->end) finish(q, q->end);
}

void query_wait(struct query *q) {
	while (!q->end) poller_round(-1);
}

json_t *query_payload(const struct query *q) {
	return js_is(q->response, "subtype", "success") ? json_object_get(q->response, "response") : NULL;
}

const char *query_error(const struct query *q) {
	if (!js_is(q->response, "subtype", "error")) return NULL;
	const char *text = js_get(q->response, "error");
	return text ? text : "unknown error";
}

void query_answer(json_t *line) {
	json_t *response = json_object_get(line, "response");
	const char *id = js_get(response, "request_id");
	struct query *q = id ? find(id, NULL, false) : NULL;
	if (!q) return;
	q->response = json_incref(response);
	if (agent.replay) out_json(json_incref(line));
	finish(q, QUERY_ANSWERED);
}

void query_end_turn(enum abort why) {
	struct query *q;
	if (!agent.running) return;
	agent_abort(why);
	while ((q = find(NULL, NULL, true))) finish(q, QUERY_CANCELLED);
}

void query_end_all(const char *subtype, enum query_end end) {
	struct query *q;
	closed |= end == QUERY_CLOSED;
	while ((q = find(NULL, subtype, false))) finish(q, end);
}

json_t *query_list(const char *subtype) {
	json_t *list = js_make("[]");
	struct query *q;
	LIST_FOR_EACH (q, &all, struct query, node)
		if (!q->end && js_is(q->request, "subtype", subtype)) js_add(list, line_of(q));
	return list;
}
