/* SPDX-License-Identifier: MIT */
#include "fakeagent/asks.h"

#include "base/fd.h"
#include "fakeagent/frames.h"
#include "fakeagent/pump.h"

#include <stdint.h>
#include <string.h>

struct ask *asks_send(struct agent *a, json_t *request, int64_t timeout) {
	struct ask *ask = calloc(1, sizeof *ask);
	if (!ask) js_need(NULL);
	*ask = (struct ask){.request = js_need(request), .deadline = timeout < 0 ? -1 : now_ms() + timeout};
	ask->of_turn = a->turn != NULL;
	js_uuid(ask->id);
	list_init(&ask->mark);
	list_add_tail(&a->asks, &ask->node);
	if (a->closed_told) {
		ask->how = ASK_CLOSED;
		return ask;
	}
	out_json(&a->out, json_pack("{s:s,s:s,s:O}", "type", "control_request", "request_id", ask->id, "request", request));
	return ask;
}

void asks_then(struct agent *a, struct ask *ask, ask_fn then, json_t *arg) {
	ask->then = then;
	ask->arg = arg;
	if (ask->how == ASK_OPEN) return;
	then(a, ask);
	asks_free(ask);
}

void asks_free(struct ask *ask) {
	list_del(&ask->node);
	list_del(&ask->mark);
	json_decref(ask->entry);
	json_decref(ask->request);
	json_decref(ask->response);
	json_decref(ask->arg);
	free(ask);
}

void asks_mark(struct ask *ask, struct list *of, const json_t *entry) {
	ask->entry = json_incref((json_t *)(uintptr_t)entry);
	list_add_tail(of, &ask->mark);
}

struct ask *asks_take_marked(struct list *of) {
	struct ask *ask = LIST_TOP(of, struct ask, mark);
	if (ask) list_del(&ask->mark);
	return ask;
}

void asks_wait(struct agent *a, struct ask *ask) {
	while (ask->how == ASK_OPEN) pump(a, -1);
}

json_t *asks_payload(const struct ask *ask) {
	const char *subtype = js_get(ask->response, "subtype");
	return subtype && strcmp(subtype, "success") == 0 ? json_object_get(ask->response, "response") : NULL;
}

const char *asks_error(const struct ask *ask) {
	const char *subtype = js_get(ask->response, "subtype");
	if (!subtype || strcmp(subtype, "error") != 0) return NULL;
	const char *text = js_get(ask->response, "error");
	return text ? text : "unknown error";
}

static bool is_about(const struct ask *ask, const char *subtype) {
	const char *is = js_get(ask->request, "subtype");
	return is && strcmp(is, subtype) == 0;
}

static void settled(struct agent *a, struct ask *ask, enum ask_how how) {
	if (ask->how != ASK_OPEN) return;
	ask->how = how;
	if (!ask->then) return;
	list_del(&ask->node);
	ask->then(a, ask);
	asks_free(ask);
}

void asks_settle(struct agent *a, struct ask *ask, enum ask_how how) {
	bool tell = how == ASK_CANCELLED || how == ASK_TIMEOUT || how == ASK_REPLACED;
	/* The CLI says notifications/cancelled to the server instead (PROTOCOL 4.2). */
	if (tell && ask->how == ASK_OPEN && !is_about(ask, "mcp_message"))
		out_json(&a->out, json_pack("{s:s,s:s}", "type", "control_cancel_request", "request_id", ask->id));
	settled(a, ask, how);
}

/* Settling one may run code that settles others: begin again after each. */
static struct ask *find_open(struct agent *a, bool turn_only, const char *subtype) {
	struct ask *ask;
	LIST_FOR_EACH (ask, &a->asks, struct ask, node) {
		if (ask->how != ASK_OPEN || (turn_only && !ask->of_turn)) continue;
		if (!subtype || is_about(ask, subtype)) return ask;
	}
	return NULL;
}

void asks_settle_kind(struct agent *a, const char *subtype, enum ask_how how) {
	struct ask *ask;
	while ((ask = find_open(a, false, subtype))) asks_settle(a, ask, how);
}

void asks_settle_turn(struct agent *a, enum ask_how how) {
	struct ask *ask;
	while ((ask = find_open(a, true, NULL))) asks_settle(a, ask, how);
}

void asks_close(struct agent *a) {
	struct ask *ask;
	a->closed_told = true;
	while ((ask = find_open(a, false, NULL))) asks_settle(a, ask, ASK_CLOSED);
}

void asks_answer(struct agent *a, json_t *line) {
	json_t *response = json_object_get(line, "response");
	const char *id = js_get(response, "request_id");
	struct ask *ask, *hit = NULL;
	LIST_FOR_EACH (ask, &a->asks, struct ask, node) {
		if (id && ask->how == ASK_OPEN && strcmp(ask->id, id) == 0) hit = ask;
	}
	if (!hit) return;
	hit->response = json_incref(response);
	if (a->opt->replay) out_json(&a->out, json_incref(line));
	settled(a, hit, ASK_ANSWERED);
}

static struct ask *find_expired(struct agent *a, int64_t now) {
	struct ask *ask;
	LIST_FOR_EACH (ask, &a->asks, struct ask, node) {
		if (ask->how == ASK_OPEN && ask->deadline >= 0 && ask->deadline <= now) return ask;
	}
	return NULL;
}

void asks_expire(struct agent *a) {
	struct ask *ask;
	int64_t now = now_ms();
	while ((ask = find_expired(a, now))) asks_settle(a, ask, ASK_TIMEOUT);
}

int64_t asks_deadline(const struct agent *a) {
	struct ask *ask;
	int64_t first = -1;
	LIST_FOR_EACH (ask, &a->asks, struct ask, node) {
		if (ask->how == ASK_OPEN && ask->deadline >= 0 && (first < 0 || ask->deadline < first)) first = ask->deadline;
	}
	return first;
}

json_t *asks_open(const struct agent *a, const char *subtype) {
	json_t *list = js_need(json_array());
	struct ask *ask;
	LIST_FOR_EACH (ask, &a->asks, struct ask, node) {
		if (ask->how != ASK_OPEN || !is_about(ask, subtype)) continue;
		json_array_append_new(list, json_pack("{s:s,s:s,s:O}", "type", "control_request", "request_id", ask->id,
											  "request", ask->request));
	}
	return list;
}
