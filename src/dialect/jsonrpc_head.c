/* SPDX-License-Identifier: MIT */
#include "dialect/jsonrpc_head.h"

#include "dialect/jsonrpc.h"
#include "wire/cursor.h"

#include <string.h>

static void note_params(struct cursor c, struct jsonrpc_head *h) {
	struct span key, value;
	if (*c.p++ != '{') return;
	for (bool first = true; cursor_next_key(&c, first, &key) == CURSOR_MEMBER; first = false) {
		h->agrees |= span_equals(key, "protocolVersion");
		h->introduces |= span_equals(key, "clientInfo");
		if (!cursor_skip_value(&c, &value)) return;
	}
}

void jsonrpc_head_scan(struct span text, struct jsonrpc_head *h) {
	struct cursor c = {text.p, text.p + text.n, false};
	struct span key, value;
	*h = (struct jsonrpc_head){0};
	cursor_skip_blanks(&c);
	if (c.p >= c.end || *c.p++ != '{') return;
	for (bool first = true; cursor_next_key(&c, first, &key) == CURSOR_MEMBER; first = false) {
		h->type |= span_equals(key, "type");
		h->version |= span_equals(key, "jsonrpc");
		h->answer |= span_equals(key, "result") || span_equals(key, "error");
		h->method_seen |= span_equals(key, "method");
		if (span_equals(key, "params")) note_params(c, h);
		if (!cursor_skip_value(&c, &value) || c.p == c.end) return; /* it may be cut */
		if (span_equals(key, "method")) h->method = value;
		if (span_equals(key, "id")) h->id = value;
	}
}

bool jsonrpc_head_is_frame(struct span line) {
	struct jsonrpc_head h;
	jsonrpc_head_scan(line, &h);
	return !h.type && (h.method_seen || h.answer || h.version);
}

bool jsonrpc_head_opens(struct span line, bool versioned) {
	struct jsonrpc_head h;
	jsonrpc_head_scan(line, &h);
	if (h.type || !(h.method_seen || h.answer || h.version)) return false;
	bool decides = span_equals(h.method, "initialize") && (h.agrees || h.introduces);
	return versioned == (decides ? h.agrees : h.version);
}

void jsonrpc_head_read(struct chunk text, const char *tool, struct head *head) {
	struct jsonrpc_head h;
	jsonrpc_head_scan((struct span){text.data, text.len}, &h);
	*head = (struct head){.kind = LINE_OTHER, .ask = ASK_UNKNOWN};
	if (jsonrpc_is_id(h.id)) head->id = h.id;
	if (h.method_seen && head->id.p) head->kind = LINE_REQUEST;
	if (head->kind == LINE_REQUEST && memmem(text.data, text.len, tool, strlen(tool))) head->ask = ASK_TOOL;
	if (h.answer && !h.method_seen) head->kind = LINE_RESPONSE;
}
