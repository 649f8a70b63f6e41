/* SPDX-License-Identifier: MIT */
#include "core/hooks.h"

#include "world.h"

#define INITIALIZE                                                                                                     \
	"{\"type\":\"control_request\",\"request_id\":\"i\",\"request\":{\"subtype\":\"initialize\",\"hooks\":{"           \
	"\"PreToolUse\":[{\"hookCallbackIds\":[\"mine\"]}]},\"sdkMcpServers\":[\"tools\"]}}\n"

static char callback[80];

/* A client whose hooks and server the child has. */
static struct client *owner(void) {
	char id[CALL_ID_MAX], line[400];
	struct client *c = world_enter();
	world_sends(c, INITIALIZE);
	const char *written = world_written();
	world_value(written, "request_id", id, sizeof id);
	const char *at = strstr(written, "hookCallbackIds\":[\"");
	ck_assert_ptr_nonnull(at);
	at += strlen("hookCallbackIds\":[\"");
	snprintf(callback, sizeof callback, "%.*s", (int)strcspn(at, "\""), at);
	snprintf(line, sizeof line,
			 "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"%s\","
			 "\"response\":{}}}\n",
			 id);
	world_prints(line);
	world_said(c);
	return c;
}

static void calls(const char *id, const char *of) {
	char line[400];
	snprintf(line, sizeof line,
			 "{\"type\":\"control_request\",\"request_id\":\"%s\",\"request\":{\"subtype\":\"hook_callback\","
			 "\"callback_id\":\"%s\",\"input\":{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Bash\"}}}\n",
			 id, of);
	world_prints(line);
}

static void asks_server(const char *id, const char *server) {
	char line[400];
	snprintf(line, sizeof line,
			 "{\"type\":\"control_request\",\"request_id\":\"%s\",\"request\":{\"subtype\":\"mcp_message\","
			 "\"server_name\":\"%s\",\"message\":{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}}}\n",
			 id, server);
	world_prints(line);
}

START_TEST(a_callback_goes_to_its_owner) {
	struct client *c = owner(), *other = world_enter();
	char id[PENDING_ID_MAX], line[400];
	ck_assert_str_ne(callback, "mine"); /* the child knows it under an id of the daemon */
	world_said(other);
	calls("k1", callback);
	const char *said = world_said(c);
	HAS(said, "\"callback_id\":\"mine\"");
	ck_assert_str_eq(world_said(other), "");
	world_value(said, "request_id", id, sizeof id);
	snprintf(line, sizeof line,
			 "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"%s\","
			 "\"response\":{\"decision\":\"approve\"}}}\n",
			 id);
	world_sends(c, line);
	const char *written = world_written();
	HAS(written, "\"request_id\":\"k1\"");
	HAS(written, "approve");
}
END_TEST

START_TEST(a_guard_without_its_client_refuses) {
	struct client *c = owner();
	calls("k1", callback);
	world_leaves(c); /* while it is asked */
	const char *written = world_written();
	HAS(written, "\"request_id\":\"k1\"");
	HAS(written, "deny");
	calls("k2", callback);
	HAS(world_written(), "deny");
	ck_assert_uint_eq(world.session->pendings.n, 0);
}
END_TEST

START_TEST(a_silent_guard_refuses) {
	owner();
	calls("k1", callback);
	struct pending *p = LIST_TOP(&world.session->pendings.order, struct pending, node);
	ck_assert_ptr_nonnull(p);
	p->events->late(p);
	HAS(world_written(), "deny");
}
END_TEST

/* The CLI would run the tool. */
START_TEST(an_answer_without_a_decision_refuses) {
	struct client *c = owner();
	char id[PENDING_ID_MAX], line[400];
	calls("k1", callback);
	world_value(world_said(c), "request_id", id, sizeof id);
	snprintf(line, sizeof line,
			 "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"%s\"}}\n", id);
	world_sends(c, line);
	HAS(world_written(), "deny");
}
END_TEST

START_TEST(an_unknown_callback_does_not_let_the_tool_run) {
	hooks_refuse(world.session, span_of("\"k\""), span_of("\"unknown\""), "why");
	HAS(world_written(), "\"block\""); /* the event is unknown, too */
	calls("k1", "unknown");
	HAS(world_written(), "\"request_id\":\"k1\"");
}
END_TEST

START_TEST(a_message_goes_to_the_server) {
	struct client *c = owner();
	asks_server("k1", "tools");
	HAS(world_said(c), "tools/list");
	asks_server("k2", "unknown");
	const char *written = world_written();
	HAS(written, "\"request_id\":\"k2\"");
	HAS(written, "error");
	world_leaves(c);
	written = world_written();
	HAS(written, "\"request_id\":\"k1\""); /* the child waits for no client that is gone */
	HAS(written, "error");
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "hooks", a_callback_goes_to_its_owner, a_guard_without_its_client_refuses,
			   a_silent_guard_refuses, an_answer_without_a_decision_refuses,
			   an_unknown_callback_does_not_let_the_tool_run, a_message_goes_to_the_server)
