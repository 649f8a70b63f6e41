/* SPDX-License-Identifier: MIT */
#include "fakeagent/speech.h"

#include "fakeagent/callback.h"
#include "fakeagent/out.h"

#define PIECES 50 /* approximate number of deltas of a text */
#define PIECE_MIN 8

static struct {
	char id[40];
	bool open; /* `block` is begun and not ended */
	int block;
	bool requested, named_line, named_event; /* already printed in this turn */
} message;

void speech_request(bool early) {
	if (early) message.requested = message.named_line = message.named_event = false;
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
	json_t *f = js_make("{type:assistant,message:%o,parent_tool_use_id:null,error:%z,aborted:%t,timestamp:%n}", content,
						error, aborted);
	out_frame(message.named_line ? f : out_name(f, true));
	message.named_line = true;
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

/* Print a text in deltas, none within a character, and the input of a tool in one. Return the bytes printed before an
 * abort. */
static size_t print_deltas(const char *kind, const char *member, const char *p, size_t n, int64_t slow) {
	bool tool = strcmp(member, "partial_json") == 0;
	size_t step = tool ? n : MAX((size_t)PIECE_MIN, (n + PIECES - 1) / PIECES), at = 0;
	if (!agent.partial && slow <= 0) return agent.aborted ? 0 : n;
	while (at < n && !agent.aborted) {
		size_t size = MIN(n - at, step);
		while (at + size < n && (p[at + size] & 0xC0) == 0x80) size++;
		json_t *delta = js_make("{type:%s}", kind);
		js_put(delta, member, js_text(p + at, size));
		event("{type:content_block_delta,index:%i,delta:%o}", message.block, delta);
		if (slow > 0) poller_sleep(slow);
		at += size;
	}
	return tool && agent.aborted ? 0 : at;
}

static bool print_block(json_t *block, int index, int64_t slow) {
	bool tool = js_is(block, "type", "tool_use"), text = js_is(block, "type", "text");
	const char *key = tool ? "input" : js_get(block, "type");
	json_t *value = json_object_get(block, key);
	_cleanup_json_ json_t *part = json_copy(block);
	_cleanup_free_ char *input = tool ? js_dumps(value) : NULL;
	size_t n = tool ? strlen(input) : json_string_length(value);
	js_put(part, key, tool ? json_object() : js_string(""));
	message.block = index;
	message.open = true;
	event("{type:content_block_start,index:%i,content_block:%O}", index, part);
	size_t said = tool ? print_deltas("input_json_delta", "partial_json", input, n, slow)
					   : print_deltas(text ? "text_delta" : "thinking_delta", key, json_string_value(value), n, slow);
	bool whole = said == n;
	if (!whole && tool) return false;
	if (!whole) js_put(part, key, js_text(json_string_value(value), said));
	/* The CLI runs it at each flush of its stream; here a block is one flush. */
	if (whole && text)
		json_decref(callback_run("MessageDisplay", NULL,
								 js_make("{message_id:%s,index:%i,final:true,delta:%O}", message.id, index, value)));
	line(make_message(agent.model, js_make("[%O]", whole ? block : part), NULL), NULL, !whole);
	if (whole) stop_block();
	return whole;
}

const char *speech_print(const json_t *reply) {
	const json_t *blocks = json_object_get(reply, "blocks");
	speech_request(false);
	if (js_number(reply, "delay_ms") > 0) poller_sleep(js_number(reply, "delay_ms"));
	if (agent.aborted) return NULL;
	event("{type:message_start,message:%o}", make_message(agent.model, js_make("[]"), NULL));
	JS_EACH (block, blocks)
		if (!print_block(block.v, (int)block.i, js_number(reply, "slow_ms"))) return NULL;
	const char *stop_reason = js_has_block(blocks, "tool_use") ? "tool_use" : "end_turn";
	stop_message(stop_reason);
	poller_round(0);
	return agent.aborted ? NULL : stop_reason;
}
