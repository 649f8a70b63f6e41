/* SPDX-License-Identifier: MIT */
#include "speech.h"

#include "bench.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define CONVERSATION "0b5c5f9e-6c1a-4f0c-9a51-2f0e7a4c7d11"

/* --- stream-json -------------------------------------------------------------------------------------------------- */

#define IDS "\"session_id\":\"" CONVERSATION "\",\"parent_tool_use_id\":null,\"uuid\":\"%\"}\n"
#define CONTROL(more)                                                                                                  \
	"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":%,\"response\":{" more "}}}"  \
	"\n"

static const char *const claude_beside[] = {"\"commands\"", NULL};

/* --- JSON-RPC ----------------------------------------------------------------------------------------------------- */

#define ACP "{\"jsonrpc\":\"2.0\","
#define UPDATE(kind)                                                                                                   \
	ACP "\"method\":\"session/update\",\"params\":{\"sessionId\":\"" CONVERSATION                                      \
		"\",\"update\":{\"sessionUpdate\":\"" kind "\","
#define ITEM(method, more)                                                                                             \
	"{\"method\":\"" method "\",\"params\":{\"threadId\":\"" CONVERSATION "\",\"turnId\":\"turn-1\"," more
#define CODEX_ALLOW "{\"id\":%,\"result\":{\"decision\":\"accept\"}}\n"

static const char *const acp_beside[] = {"\"stopReason\"", "\"user_message_chunk\"", NULL};
static const char *const codex_beside[] = {"\"inProgress\"", NULL};

/* --- all ---------------------------------------------------------------------------------------------------------- */

static const struct speech speeches[] = {
	{
		.name = "claude",
		.id = "request_id",
		.attach = "{\"type\":\"control_request\",\"request_id\":\"attach\",\"request\":{\"subtype\":\"plenum_attach\","
				  "%}}\n",
		.attached = "\"request_id\":\"attach\"",
		.succeeded = "\"success\"",
		.prompt = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"go\"}}\n",
		.is_prompt = "\"type\":\"user\"",
		.is_ask = "\"subtype\":\"can_use_tool\"",
		.allow = CONTROL("\"behavior\":\"allow\",\"updatedInput\":{\"command\":\"touch one\"}"),
		.is_allow = "\"allow\"",
		.handshake = {{"\"initialize\"", CONTROL("\"commands\":[]")}, {"\"control_request\"", NULL}},
		.result = "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\"}\n",
		.is_result = "\"type\":\"result\"",
		.ends_mix = true,
		.ask = "{\"type\":\"control_request\",\"request_id\":\"ask-%\",\"request\":{\"subtype\":\"can_use_tool\","
			   "\"tool_name\":\"Bash\",\"input\":{\"command\":\"touch one\"},\"tool_use_id\":\"toolu_1\"}}\n",
		.ack = "{\"type\":\"system\",\"subtype\":\"bench_ack\",\"bytes\":%}\n",
		.notice = "\"plenum_event\"",
		.beside = claude_beside,
		.delta = {"{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{"
				  "\"type\":\"text_delta\",\"text\":\"",
				  "\"}}," IDS},
		.text = {"{\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"text\","
				 "\"text\":\"",
				 "\"}]}," IDS},
		.big = {"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
				"\"tool_use_id\":\"toolu_01\",\"content\":\"",
				"\"}]}," IDS},
		.ping = {"{\"type\":\"bench_ping\",", "\"}\n"},
		.is_ping = "\"bench_ping\"",
		.pong = {"{\"type\":\"stream_event\",", "\"}\n"},
		.is_pong = "\"stream_event\"",
	},
	{
		.name = "acp",
		.id = "id",
		.attach = ACP "\"id\":\"attach\",\"method\":\"_plenum/attach\",\"params\":{%}}\n",
		.attached = "\"id\":\"attach\"",
		.succeeded = "\"result\"",
		.prompt = ACP "\"id\":%,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"" CONVERSATION
					  "\",\"prompt\":[{\"type\":\"text\",\"text\":\"go\"}]}}\n",
		.is_prompt = "\"session/prompt\"",
		.is_ask = "\"method\":\"session/request_permission\"",
		.allow = ACP "\"id\":%,\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow\"}}}\n",
		.is_allow = "\"allow\"",
		.handshake = {{"\"initialize\"", ACP "\"id\":%,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{}}}\n"},
					  {"\"session/new\"", ACP "\"id\":%,\"result\":{\"sessionId\":\"" CONVERSATION "\"}}\n"}},
		.result = ACP "\"id\":%,\"result\":{\"stopReason\":\"end_turn\"}}\n",
		.is_result = "\"stopReason\"",
		.ask = ACP "\"id\":%,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"" CONVERSATION
				   "\",\"toolCall\":{\"toolCallId\":\"call_1\",\"kind\":\"execute\",\"title\":\"touch one\"},"
				   "\"options\":[{\"optionId\":\"allow\",\"name\":\"Allow\",\"kind\":\"allow_once\"}]}}\n",
		.ack = ACP "\"method\":\"bench_ack\",\"params\":{\"bytes\":%}}\n",
		.notice = "\"_plenum/event\"",
		.beside = acp_beside,
		.delta = {UPDATE("agent_message_chunk") "\"messageId\":\"%\",\"content\":{\"type\":\"text\",\"text\":\"",
				  "\"}}}}\n"},
		.text = {UPDATE("agent_message_chunk") "\"messageId\":\"%\",\"content\":{\"type\":\"text\",\"text\":\"",
				 "\"}}}}\n"},
		.big = {UPDATE("tool_call_update") "\"toolCallId\":\"call_1\",\"status\":\"completed\",\"content\":[{\"type\":"
										   "\"content\",\"content\":{\"type\":\"text\",\"text\":\"",
				"\"}}],\"_meta\":{\"number\":\"%\"}}}}\n"},
		.ping = {ACP "\"method\":\"bench_ping\",\"params\":{", "\"}}\n"},
		.is_ping = "\"bench_ping\"",
		.pong = {UPDATE("agent_message_chunk"), "\"}}}\n"},
		.is_pong = "\"agent_message_chunk\"",
	},
	{
		.name = "codex",
		.id = "id",
		.attach = "{\"id\":\"attach\",\"method\":\"_plenum/attach\",\"params\":{%}}\n",
		.attached = "\"id\":\"attach\"",
		.succeeded = "\"result\"",
		.prompt = "{\"id\":%,\"method\":\"turn/start\",\"params\":{\"threadId\":\"" CONVERSATION
				  "\",\"input\":[{\"type\":\"text\",\"text\":\"go\"}]}}\n",
		.is_prompt = "\"turn/start\"",
		.is_ask = "\"method\":\"item/commandExecution/requestApproval\"",
		.allow = CODEX_ALLOW,
		.is_allow = "\"accept\"",
		.handshake = {{"\"initialize\"", "{\"id\":%,\"result\":{\"userAgent\":\"bench\"}}\n"},
					  {"\"initialized\"", NULL},
					  {"\"thread/start\"", "{\"id\":%,\"result\":{\"thread\":{\"id\":\"" CONVERSATION "\"}}}\n"}},
		.accept = "{\"id\":%,\"result\":{\"turn\":{\"id\":\"turn-1\",\"items\":[],\"status\":\"inProgress\"}}}\n"
				  "{\"method\":\"turn/started\",\"params\":{\"threadId\":\"" CONVERSATION
				  "\",\"turn\":{\"id\":\"turn-1\",\"items\":[],\"status\":\"inProgress\"}}}\n",
		.result = "{\"method\":\"turn/completed\",\"params\":{\"threadId\":\"" CONVERSATION
				  "\",\"turn\":{\"id\":\"turn-1\",\"items\":[],\"status\":\"completed\"}}}\n",
		.is_result = "\"turn/completed\"",
		.ends_mix = true,
		.ask = "{\"id\":%,\"method\":\"item/commandExecution/requestApproval\",\"params\":{\"threadId\":\"" CONVERSATION
			   "\",\"turnId\":\"turn-1\",\"itemId\":\"call_1\",\"command\":\"touch one\",\"cwd\":\"/tmp\"}}\n",
		.ack = "{\"method\":\"bench_ack\",\"params\":{\"bytes\":%}}\n",
		.notice = "\"_plenum/event\"",
		.beside = codex_beside,
		.delta = {ITEM("item/agentMessage/delta", "\"itemId\":\"%\",\"delta\":\""), "\"}}\n"},
		.text = {ITEM("item/completed", "\"item\":{\"type\":\"agentMessage\",\"id\":\"%\",\"text\":\""), "\"}}}\n"},
		.big = {ITEM("item/completed", "\"item\":{\"type\":\"commandExecution\",\"id\":\"%\",\"aggregatedOutput\":\""),
				"\"}}}\n"},
		.ping = {"{\"method\":\"bench_ping\",\"params\":{", "\"}}\n"},
		.is_ping = "\"bench_ping\"",
		.pong = {ITEM("item/agentMessage/delta", "\"itemId\":\"item-1\","), "\"}}\n"},
		.is_pong = "\"item/agentMessage/delta\"",
	},
};

const struct speech *speech = speeches;

void speak(const char *name) {
	for (size_t i = 0; i < sizeof speeches / sizeof *speeches; i++) {
		speech = &speeches[i];
		if (strcmp(speech->name, name) == 0) return;
	}
	die("no such protocol: %s", name);
}

/* --- templates ---------------------------------------------------------------------------------------------------- */

size_t expand(char *out, size_t size, const char *template, const char *value, size_t n) {
	const char *at = strchr(template, '%');
	size_t before = at ? (size_t)(at - template) : strlen(template), after = at ? strlen(at + 1) : 0;
	if (!at) n = 0;
	if (before + n + after >= size) die("a line of %zu bytes is too long", before + n + after);
	memcpy(out, template, before);
	if (n) memcpy(out + before, value, n);
	if (at) memcpy(out + before + n, at + 1, after);
	out[before + n + after] = 0;
	return before + n + after;
}

size_t expand_number(char *out, size_t size, const char *template, int64_t value) {
	char text[24];
	int n = snprintf(text, sizeof text, "%" PRId64, value);
	return expand(out, size, template, text, (size_t)n);
}

void say(int fd, const char *template, const char *value, size_t n) {
	char line[2048];
	write_all(fd, line, expand(line, sizeof line, template, value, n));
}

void name_conversation(char *line, size_t n) {
	char *at = memmem(line, n, CONVERSATION, sizeof CONVERSATION - 1), digits[9];
	if (!at) return;
	snprintf(digits, sizeof digits, "%08x", (unsigned)getpid());
	memcpy(at, digits, 8);
}

bool shake_hands(const char *line, size_t n, bool one_of_many) {
	char text[2048];
	size_t len = 0;
	const char *id = token_member(line, n, speech->id, &len);
	for (const struct pair *p = speech->handshake; p->mark; p++) {
		if (!has(line, n, p->mark)) continue;
		if (!p->answer || !id) return true;
		size_t size = expand(text, sizeof text, p->answer, id, len);
		if (one_of_many) name_conversation(text, size);
		write_all(1, text, size);
		return true;
	}
	return false;
}
