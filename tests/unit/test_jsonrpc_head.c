/* SPDX-License-Identifier: MIT */
#include "dialect/jsonrpc_head.h"

#include "harness.h"

#include <string.h>

static void reads(const char *text, enum line_kind kind, const char *id) {
	struct head h;
	jsonrpc_head_read((struct chunk){NULL, text, strlen(text)}, "/ask\"", &h);
	bool same = id ? h.id.n == strlen(id) && memcmp(h.id.p, id, h.id.n) == 0 : !h.id.p;
	REQUIRE(h.kind == kind && same, "%s: kind %d, id %.*s", text, (int)h.kind, (int)h.id.n, h.id.p ? h.id.p : "");
}

START_TEST(beginnings) {
	reads("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\",\"params\":{\"a\":\"cut", LINE_REQUEST, "7");
	reads(" {\"method\":\"x\",\"id\":\"a\",\"params\":{\"id\":8", LINE_REQUEST, "\"a\"");
	reads("{\"id\":7,\"method\":\"x", LINE_REQUEST, "7");
	reads("{\"id\":7,\"result\":{\"a\":[", LINE_RESPONSE, "7");
	reads("{\"error\":{},\"id\":7}", LINE_RESPONSE, "7");
	reads("{\"method\":\"x\",\"params\":{\"a\":1}", LINE_OTHER, NULL);
	reads("{\"method\":\"x\",\"id\":12", LINE_OTHER, NULL); /* it may be 123 */
	reads("{\"method\":\"x\",\"id\":\"ab", LINE_OTHER, NULL);
	reads("{\"method\":\"x\",\"id\":1.5,\"a\":1}", LINE_OTHER, NULL);
	reads("{\"method\":\"x\",\"id\":null,\"a\":1}", LINE_OTHER, NULL);
	reads("", LINE_OTHER, NULL);
	reads("[{\"method\":\"x\",\"id\":1}]", LINE_OTHER, NULL);
}
END_TEST

START_TEST(frames) {
	static const char *const good[] = {"{\"method\":\"x\"}", "{\"jsonrpc\":\"2.0\"", "{\"id\":1,\"result\":{",
									   "{\"id\":1,\"method\":\"x\",}", "  {\"error\":1}"};
	static const char *const other[] = {"{\"type\":\"user\",\"method\":1}",
										"{\"method\":1,\"type\":\"x\"}",
										"{\"id\":1}",
										"{}",
										"method",
										"",
										"{\"method"};
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) REQUIRE(jsonrpc_head_is_frame(span_of(good[i])), "%s", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) REQUIRE(!jsonrpc_head_is_frame(span_of(other[i])), "%s", other[i]);
}
END_TEST

static void opens(const char *line, bool versioned) {
	REQUIRE(jsonrpc_head_opens(span_of(line), versioned), "%s", line);
	REQUIRE(!jsonrpc_head_opens(span_of(line), !versioned), "%s", line);
}

START_TEST(first_lines) {
	opens("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"_plenum/list\"}", true);
	opens("{\"id\":1,\"method\":\"_plenum/list\"}", false);
	opens("{\"method\":\"x\",\"id\":1,\"params\":{},\"jsonrpc\":\"2.0\"}", true);
	opens("{\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}", true);
	opens("{\"params\":{\"clientInfo\":{},\"protocolVersion\":1},\"id\":1,\"method\":\"initialize\"}", true);
	opens("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"clientInfo\":{\"a\":1}}}", false);
	opens("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"other\",\"params\":{\"clientInfo\":{}}}", true);
	opens("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}", true);
	ck_assert(!jsonrpc_head_opens(span_of("{\"type\":\"user\"}"), true));
	ck_assert(!jsonrpc_head_opens(span_of("{\"type\":\"user\"}"), false));
}
END_TEST

RUN_TESTS("jsonrpc_head", beginnings, frames, first_lines)
