/* SPDX-License-Identifier: MIT */
#include "fakeagent/speech.h"

#include "base/str.h"
#include "fakeagent/callback.h"
#include "fakeagent/out.h"
#include "fakeagent/poller.h"

#define PIECES 50 /* approximate number of deltas of a text */
#define PIECE_MIN 8

static struct {
	char id[40];
	bool open; /* `block` is begun and not ended */
	int block;
	bool requested, named_line, named_event; /* already printed in this turn */
} message;

/* ---- making ---------------------------------------------------------------------------------------------------- */

void speech_text(struct speech *s, json_t *text) {
	js_add(s->blocks, js_make("{type:text,text:%o}", text));
}

void speech_thought(struct speech *s, json_t *text) {
	js_add(s->blocks, js_make("{type:thinking,thinking:%o,signature:fake}", text));
}

void speech_tool(struct speech *s, const char *name, json_t *input) {
	js_add(s->blocks, js_make("{type:tool_use,id:%o,name:%s,input:%o}", js_id("toolu_0"), name, input));
}

/* ---- frames ---------------------------------------------------------------------------------------------------- */

void speech_begin(void) {
	message.requested = message.named_line = message.named_event = false;
}

void speech_request(bool early) {
	if (!message.requested && agent.partial)
		out_frame(out_name(js_make("{type:system,subtype:status,status:requesting}"), false));
	message.requested = early;
	if (early) return;
	memcpy(message.id, "msg_", 4);
	str_random_hex(message.id + 4, 24);
}

static json_t *make_message(const char *model, json_t *content, const char *stop_reason) {
	return js_make("{model:%s,id:%s,type:message,role:assistant,content:%o,stop_reason:%s,stop_sequence:null,"
				   "usage:" OUT_USAGE "}",
				   model, message.id, content, stop_reason, 10, 20);
}

static void event(const char *format, ...) {
	va_list ap;
	va_start(ap, format);
	json_t *f = js_make("{type:stream_event,event:%o,parent_tool_use_id:null,api_message_id:%s}",
						js_vmake(NULL, format, ap), message.id);
	va_end(ap);
	if (agent.partial)
		out_frame(message.named_event ? f : out_name(f, true));
	else
		json_decref(f);
	message.named_event = agent.partial;
}

static void line(json_t *content, const char *error, bool aborted) {
	json_t *f = js_make("{type:assistant,message:%o,parent_tool_use_id:null,error:%z,aborted:%o}", content, error,
						aborted ? json_true() : NULL);
	if (!message.named_line) out_name(f, true);
	message.named_line = true;
	out_stamp(f);
	out_frame(f);
}

static void stop_block(void) {
	event("{type:content_block_stop,index:%i}", message.block);
}

static void stop_message(const char *stop_reason) {
	event("{type:message_delta,delta:{stop_reason:%s,stop_sequence:null},usage:{output_tokens:20}}", stop_reason);
	event("{type:message_stop}");
	message.open = false;
}

void speech_cut(void) {
	if (!message.open) return;
	stop_block();
	stop_message(NULL);
}

void speech_error(const char *text) {
	speech_request(false);
	str_uuid(message.id);
	line(make_message("<synthetic>", js_make("[{type:text,text:%s}]", text), "stop_sequence"), "server_error", false);
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

static const struct kind {
	const char *type, *key, *delta, *member;
} KINDS[] = {
	{"text", "text", "text_delta", "text"},
	{"thinking", "thinking", "thinking_delta", "thinking"},
	{"tool_use", "input", "input_json_delta", "partial_json"},
};

/* Print a text in deltas, none within a character. Return the bytes printed before an abort. */
static size_t print_deltas(const struct speech *s, const struct kind *k, const char *p, size_t n) {
	bool tool = k == &KINDS[ARRAY_SIZE(KINDS) - 1];
	size_t step = tool ? n : MAX((size_t)PIECE_MIN, (n + PIECES - 1) / PIECES), at = 0;
	if (!agent.partial && s->slow <= 0) return agent.aborted ? 0 : n;
	while (at < n && !agent.aborted) {
		size_t size = MIN(n - at, step);
		while (at + size < n && (p[at + size] & 0xC0) == 0x80) size++;
		json_t *delta = js_make("{type:%s}", k->delta);
		js_put(delta, k->member, js_text(p + at, size));
		event("{type:content_block_delta,index:%i,delta:%o}", message.block, delta);
		if (s->slow > 0) poller_sleep(s->slow);
		at += size;
	}
	return tool && agent.aborted ? 0 : at;
}

static bool print_block(const struct speech *s, json_t *block, int index) {
	const struct kind *k = KINDS;
	while (!js_is(block, "type", k->type)) k++;
	json_t *value = json_object_get(block, k->key);
	bool tool = json_is_object(value);
	_cleanup_json_ json_t *part = json_copy(block);
	_cleanup_free_ char *input = tool ? js_dumps(value) : NULL;
	const char *p = tool ? input : json_string_value(value);
	size_t n = tool ? strlen(input) : json_string_length(value);
	js_put(part, k->key, tool ? json_object() : js_string(""));
	message.block = index;
	message.open = true;
	event("{type:content_block_start,index:%i,content_block:%O}", index, part);
	size_t said = print_deltas(s, k, p, n);
	if (said < n && tool) return false;
	if (said < n) js_put(part, k->key, js_text(p, said));
	/* The CLI runs it at each flush of its stream; here a block is one flush. */
	if (said == n && k == KINDS)
		callback_notify("MessageDisplay", NULL,
						js_make("{message_id:%s,index:%i,final:true,delta:%O}", message.id, index, value), NULL);
	line(make_message(agent.model, js_make("[%O]", said < n ? part : block), NULL), NULL, said < n);
	if (said == n) stop_block();
	return said == n;
}

bool speech_print(const struct speech *s, const char **stop_reason) {
	speech_request(false);
	if (s->delay > 0) poller_sleep(s->delay);
	if (agent.aborted) return false;
	event("{type:message_start,message:%o}", make_message(agent.model, js_make("[]"), NULL));
	JS_EACH (block, s->blocks)
		if (!print_block(s, block.v, (int)block.i)) return false;
	*stop_reason = js_has_block(s->blocks, "tool_use") ? "tool_use" : "end_turn";
	stop_message(*stop_reason);
	poller_round(0);
	return !agent.aborted;
}
