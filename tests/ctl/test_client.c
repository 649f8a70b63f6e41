/* SPDX-License-Identifier: MIT
 *
 * libplenum against a socket whose other end the test holds.
 */
#include "base/fd.h"
#include "base/macros.h"
#include "base/paths.h"
#include "plenum/client.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static char folder[64];
static char path[PLENUM_SOCKET_PATH_SIZE];
static int listener, there; /* there: the daemon's end */
static struct plenum *p;

static void make_folder(void) {
	strcpy(folder, "/tmp/plenum-client-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/s", folder);
	unsetenv("PLENUM_SOCKET");
	unsetenv("XDG_RUNTIME_DIR");
}

static void remove_folder(void) {
	unlink(path);
	rmdir(folder);
}

static void setup(void) {
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	char why[256];
	make_folder();
	strcpy(to.sun_path, path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (const struct sockaddr *)&to, sizeof to), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	p = plenum_open(path, why, sizeof why);
	ck_assert_msg(p != NULL, "%s", why);
	there = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(there, 0);
}

static void teardown(void) {
	plenum_close(p);
	if (there >= 0) close(there);
	close(listener);
	remove_folder();
}

static void say(const char *text) {
	ck_assert_int_eq(fd_write_all(there, text, strlen(text)), 0);
}

static void expect_line(const char *text) {
	const char *line;
	size_t n;
	ck_assert_int_eq(plenum_next(p, 5000, &line, &n), PLENUM_OK);
	ck_assert_msg(n == strlen(text) && memcmp(line, text, n) == 0, "got %.*s, not %s", (int)n, line, text);
}

/* One line from our end, without its LF. */
static char *heard(void) {
	size_t n = 0, cap = 1 << 16;
	char *text = malloc(cap);
	while (read(there, text + n, 1) == 1 && text[n] != '\n') ck_assert_uint_lt(++n, cap);
	text[n] = 0;
	return text;
}

START_TEST(lines_come_whole) {
	const char *line;
	size_t n;
	say("{\"a\":1}\n{\"b\"");
	expect_line("{\"a\":1}");
	ck_assert_int_eq(plenum_next(p, 0, &line, &n), PLENUM_TIMED_OUT);
	say(":2}\n\nlast");
	expect_line("{\"b\":2}");
	expect_line("");
	close(there);
	there = -1; /* its last line was cut off */
	ck_assert_int_eq(plenum_next(p, 5000, &line, &n), PLENUM_CLOSED);
	ck_assert_int_eq(plenum_next(p, 0, &line, &n), PLENUM_CLOSED);
}
END_TEST

START_TEST(a_line_is_sent_with_its_end) {
	ck_assert_int_eq(plenum_send(p, "{\"x\":1}", 7), PLENUM_OK);
	_cleanup_free_ char *one = heard();
	ck_assert_str_eq(one, "{\"x\":1}");
	ck_assert_int_eq(plenum_send(p, "{\"x\":2}\n", 8), PLENUM_OK);
	_cleanup_free_ char *two = heard();
	ck_assert_str_eq(two, "{\"x\":2}");
	ck_assert_int_eq(plenum_send(p, "a\nb", 3), PLENUM_FAILED);
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(the_end_of_input_is_told) {
	char c;
	ck_assert_int_eq(plenum_finish(p), PLENUM_OK);
	ck_assert_int_eq(read(there, &c, 1), 0);
	say("still\n");
	expect_line("still");
}
END_TEST

START_TEST(a_write_to_nobody_is_no_signal) {
	close(there);
	there = -1;
	enum plenum_result r = PLENUM_OK;
	for (int i = 0; i < 3 && r == PLENUM_OK; i++) r = plenum_send(p, "x", 1);
	ck_assert_int_eq(r, PLENUM_CLOSED);
}
END_TEST

/* Takes one request and answers it; before that, two other lines. */
static void *answering(void *answer) {
	_cleanup_free_ char *line = heard();
	char id[PLENUM_ID_SIZE] = "";
	const char *at = strstr(line, "\"request_id\":\"");
	if (at) sscanf(at + 14, "%39[^\"]", id);
	char text[1024];
	snprintf(text, sizeof text, "{\"n\":1}\n{\"type\":\"control_response\",\"response\":{\"request_id\":\"x\"}}\n");
	say(text);
	snprintf(text, sizeof text, "{\"type\":\"control_response\",\"response\":{%s,\"request_id\":\"%s\"}}\n{\"n\":2}\n",
			 (const char *)answer, id);
	say(text);
	return NULL;
}

static enum plenum_result ask(char *answer, const char *members, struct plenum_answer *a) {
	pthread_t thread;
	pthread_create(&thread, NULL, answering, answer);
	enum plenum_result r = plenum_request(p, "plenum_hello", members, 5000, a);
	pthread_join(thread, NULL);
	return r;
}

START_TEST(an_answer_is_found_among_others) {
	struct plenum_answer a;
	char answer[] = "\"subtype\":\"success\",\"response\":{\"version\":\"1\"}";
	ck_assert_int_eq(ask(answer, "{\"a\":1}", &a), PLENUM_OK);
	ck_assert_uint_eq(a.body_len, 15);
	ck_assert(memcmp(a.body, "{\"version\":\"1\"}", a.body_len) == 0);
	plenum_answer_free(&a);
	expect_line("{\"n\":1}");
	expect_line("{\"type\":\"control_response\",\"response\":{\"request_id\":\"x\"}}");
	expect_line("{\"n\":2}");
}
END_TEST

START_TEST(a_refusal_has_its_code) {
	struct plenum_answer a;
	char answer[] = "\"subtype\":\"error\",\"code\":\"no_such_session\",\"error\":\"there is no \\u0022x\\u0022\"";
	ck_assert_int_eq(ask(answer, NULL, &a), PLENUM_REFUSED);
	ck_assert_str_eq(a.code, PLENUM_E_NO_SUCH_SESSION);
	ck_assert_str_eq(a.error, "there is no \"x\"");
	ck_assert_str_eq(plenum_error(p), a.error);
	plenum_answer_free(&a);
	expect_line("{\"n\":1}");
}
END_TEST

/* --- Protocols ---------------------------------------------------------------------------------------------------- */

/* Answer the next request, and return its line. */
static char *answers_rpc(const char *answer) {
	char id[PLENUM_ID_SIZE] = "", text[1024];
	char *line = heard();
	const char *at = strstr(line, "\"id\":\"");
	if (at) sscanf(at + 6, "%39[^\"]", id);
	snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",%s,\"id\":\"%s\"}\n", answer, id);
	say(text);
	return line;
}

static void *answering_rpc(void *answer) {
	return answers_rpc(answer);
}

static enum plenum_result ask_rpc(const char *verb, char *answer, struct plenum_answer *a, char **sent) {
	pthread_t thread;
	void *line;
	pthread_create(&thread, NULL, answering_rpc, answer);
	enum plenum_result r = plenum_request(p, verb, "{\"a\":1}", 5000, a);
	pthread_join(thread, &line);
	*sent = line;
	return r;
}

START_TEST(a_request_has_the_frame_of_the_protocol) {
	static const char *const dialects[][2] = {{"acp", "{\"jsonrpc\":\"2.0\",\"id\":\"lib_"},
											  {"codex", "{\"id\":\"lib_"}};
	char good[] = "\"result\":{\"b\":2}";
	char bad[] =
		"\"error\":{\"code\":-32000,\"message\":\"no \\u0022x\\u0022\",\"data\":{\"code\":\"no_such_session\"}}";
	ck_assert_str_eq(plenum_dialect(p), "claude");
	for (size_t i = 0; i < ARRAY_SIZE(dialects); i++) {
		struct plenum_answer a;
		_cleanup_free_ char *verb = NULL, *own = NULL;
		ck_assert_int_eq(plenum_speak(p, dialects[i][0]), PLENUM_OK);
		ck_assert_str_eq(plenum_dialect(p), dialects[i][0]);
		if (i) { /* it has sent lines, so this is another connection */
			close(there);
			there = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		}
		ck_assert_int_eq(ask_rpc("plenum_list", good, &a, &verb), PLENUM_OK);
		ck_assert(a.body_len == 7 && memcmp(a.body, "{\"b\":2}", 7) == 0);
		plenum_answer_free(&a);
		ck_assert_int_eq(ask_rpc("session/list", bad, &a, &own), PLENUM_REFUSED);
		ck_assert_str_eq(a.code, PLENUM_E_NO_SUCH_SESSION);
		ck_assert_str_eq(a.error, "no \"x\"");
		plenum_answer_free(&a);
		ck_assert_int_eq(strncmp(verb, dialects[i][1], strlen(dialects[i][1])), 0);
		ck_assert_ptr_nonnull(strstr(verb, "\",\"method\":\"_plenum/list\",\"params\":{\"a\":1}}"));
		ck_assert_ptr_nonnull(strstr(own, "\",\"method\":\"session/list\",\"params\":{\"a\":1}}"));
	}
}
END_TEST

START_TEST(an_unknown_protocol_changes_nothing) {
	ck_assert_int_eq(plenum_speak(p, "latin"), PLENUM_FAILED);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_str_eq(plenum_dialect(p), "claude");
}
END_TEST

START_TEST(a_request_without_answer_times_out) {
	struct plenum_answer a;
	ck_assert_int_eq(plenum_request(p, "plenum_hello", " { } ", 20, &a), PLENUM_TIMED_OUT);
	_cleanup_free_ char *line = heard();
	ck_assert_ptr_nonnull(strstr(line, "\"request\":{\"subtype\":\"plenum_hello\"}}"));
	ck_assert_int_eq(plenum_request(p, "plenum_hello", "[]", 20, &a), PLENUM_FAILED);
	close(there);
	there = -1;
	enum plenum_result r = plenum_request(p, "plenum_hello", NULL, 5000, &a);
	ck_assert_msg(r == PLENUM_CLOSED, "%d", r);
}
END_TEST

START_TEST(members_may_stand_on_many_lines) {
	struct plenum_answer a;
	ck_assert_int_eq(plenum_request(p, "plenum_hello", "{\n\t\"a\": \"\\n\",\n\t\"b\": 2\n}\n", 20, &a),
					 PLENUM_TIMED_OUT);
	_cleanup_free_ char *line = heard();
	ck_assert_ptr_nonnull(strstr(line, "\"subtype\":\"plenum_hello\",\"a\": \"\\n\", \t\"b\": 2 }}"));
}
END_TEST

START_TEST(nothing_is_sent_behind_the_end_of_the_input) {
	struct plenum_answer a;
	char uuid[PLENUM_UUID_SIZE];
	ck_assert_int_eq(plenum_finish(p), PLENUM_OK);
	say("{\"n\":1}\n");
	ck_assert_int_eq(plenum_send(p, "{}", 2), PLENUM_FAILED);
	ck_assert_ptr_nonnull(strstr(plenum_error(p), "plenum_finish"));
	ck_assert_int_eq(plenum_prompt(p, "x", 1, uuid), PLENUM_FAILED);
	ck_assert_int_eq(plenum_request(p, "plenum_hello", NULL, 5000, &a), PLENUM_FAILED);
	ck_assert_int_eq(plenum_finish(p), PLENUM_OK);
	expect_line("{\"n\":1}"); /* the connection is not closed */
}
END_TEST

/* More than both sockets hold, in both directions at once. */
#define MUCH ((size_t)4 << 20)

static void *writing_first(void *arg) {
	char *much = malloc(MUCH + 1);
	memset(much, 'd', MUCH);
	much[MUCH] = '\n';
	fd_write_all(there, much, MUCH + 1);
	size_t got = 0;
	ssize_t n;
	while (got < MUCH + 1 && (n = read(there, much, MUCH)) > 0) got += (size_t)n;
	*(size_t *)arg = got;
	free(much);
	return NULL;
}

START_TEST(two_full_directions_do_not_block_each_other) {
	size_t got = 0, n;
	const char *line;
	pthread_t thread;
	_cleanup_free_ char *much = malloc(MUCH);
	memset(much, 'c', MUCH);
	pthread_create(&thread, NULL, writing_first, &got);
	ck_assert_int_eq(plenum_send_wait(p, much, MUCH, -1), PLENUM_OK);
	ck_assert_int_eq(plenum_next(p, 5000, &line, &n), PLENUM_OK);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(n, MUCH);
	ck_assert_uint_eq(got, MUCH + 1);
}
END_TEST

/* --- In a loop ---------------------------------------------------------------------------------------------------- */

static void expect_events(short events, int timeout) {
	int due = 7;
	ck_assert_int_eq(plenum_events(p, &due), events);
	ck_assert_int_eq(due, timeout);
}

START_TEST(a_loop_does_not_sleep_on_a_line) {
	struct plenum_answer a;
	const char *line;
	size_t n;
	char answer[] = "\"subtype\":\"success\",\"response\":{}";
	expect_events(POLLIN, -1);
	ck_assert_int_eq(ask(answer, NULL, &a), PLENUM_OK);
	plenum_answer_free(&a);
	expect_line("{\"n\":1}");
	expect_events(POLLIN, 0); /* read with the answer: the descriptor does not report it again */
	expect_line("{\"type\":\"control_response\",\"response\":{\"request_id\":\"x\"}}");
	expect_line("{\"n\":2}");
	expect_events(POLLIN, -1);
	close(there);
	there = -1;
	ck_assert_int_eq(plenum_request(p, "plenum_hello", NULL, 5000, &a), PLENUM_CLOSED);
	ck_assert_int_eq(plenum_next(p, 0, &line, &n), PLENUM_CLOSED);
	expect_events(0, -1);
}
END_TEST

/* Read so many bytes at our end. */
static void *reading(void *bytes) {
	char block[4096];
	size_t left = *(size_t *)bytes;
	while (left) {
		ssize_t n = read(there, block, MIN(left, sizeof block));
		if (n <= 0) break;
		left -= (size_t)n;
	}
	*(size_t *)bytes = left;
	return NULL;
}

START_TEST(sending_never_waits) {
	_cleanup_free_ char *much = malloc(MUCH);
	pthread_t thread;
	memset(much, 'c', MUCH);
	plenum_outbox(p, 1000);
	ck_assert_int_eq(plenum_send(p, much, MUCH), PLENUM_OK); /* one line of any size */
	ck_assert_uint_gt(plenum_unsent(p), 1000);
	expect_events(POLLIN | POLLOUT, -1);
	ck_assert_int_eq(plenum_send(p, "{}", 2), PLENUM_FULL);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(plenum_send_wait(p, "{}", 2, 10), PLENUM_TIMED_OUT);
	plenum_outbox(p, PLENUM_OUTBOX_MAX);
	ck_assert_int_eq(plenum_send(p, "{\"n\":1}", 7), PLENUM_OK);
	ck_assert_int_eq(plenum_flush(p, 10), PLENUM_TIMED_OUT);
	size_t left = MUCH + 1;
	pthread_create(&thread, NULL, reading, &left);
	ck_assert_int_eq(plenum_flush(p, -1), PLENUM_OK);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(left, 0);
	ck_assert_uint_eq(plenum_unsent(p), 0);
	_cleanup_free_ char *one = heard();
	ck_assert_str_eq(one, "{\"n\":1}");
	expect_events(POLLIN, -1);
}
END_TEST

/* More than the socket had when this began; then our end is closed. */
static void *reading_some(void *bytes) {
	reading(bytes);
	close(there);
	return NULL;
}

START_TEST(what_was_not_sent_is_told) {
	_cleanup_free_ char *much = malloc(MUCH);
	pthread_t thread;
	memset(much, 'c', MUCH);
	ck_assert_int_eq(plenum_send(p, much, MUCH), PLENUM_OK);
	size_t left = MUCH + 2 - plenum_unsent(p);
	ck_assert_uint_lt(left, MUCH);
	pthread_create(&thread, NULL, reading_some, &left);
	ck_assert_int_eq(plenum_flush(p, -1), PLENUM_CLOSED);
	pthread_join(thread, NULL);
	there = -1;
	ck_assert_int_eq(plenum_send_wait(p, "{}", 2, -1), PLENUM_CLOSED);
}
END_TEST

START_TEST(the_input_ends_after_the_outbox) {
	_cleanup_free_ char *much = malloc(MUCH);
	const char *line;
	pthread_t thread;
	size_t left = MUCH + 1, n;
	char c;
	memset(much, 'c', MUCH);
	ck_assert_int_eq(plenum_send(p, much, MUCH), PLENUM_OK);
	ck_assert_int_eq(plenum_finish(p), PLENUM_OK);
	ck_assert_uint_gt(plenum_unsent(p), 0);
	pthread_create(&thread, NULL, reading, &left);
	while (plenum_unsent(p)) ck_assert_int_eq(plenum_next(p, 1, &line, &n), PLENUM_TIMED_OUT);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(left, 0);
	ck_assert_int_eq(read(there, &c, 1), 0);
}
END_TEST

/* --- Requests to this client -------------------------------------------------------------------------------------- */

#define REQUEST(id, request) "{\"type\":\"control_request\",\"request_id\":" id ",\"request\":" request "}"
#define REPLY(id, response)                                                                                            \
	"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":" id                          \
	",\"response\":" response "}}"

static struct plenum_ask asked(const char *line, enum plenum_ask_kind kind, const char *name, const char *input) {
	struct plenum_ask a;
	ck_assert(plenum_ask_read(line, strlen(line), &a));
	ck_assert_int_eq(a.kind, kind);
	ck_assert_str_eq(a.name, name);
	ck_assert_uint_eq(a.input_len, strlen(input));
	ck_assert(memcmp(a.input, input, a.input_len) == 0);
	return a;
}

/* Free the request after its answer was sent. */
static void expect_reply(struct plenum_ask *a, enum plenum_result r, const char *want) {
	ck_assert_int_eq(r, PLENUM_OK);
	_cleanup_free_ char *line = heard();
	ck_assert_str_eq(line, want);
	plenum_ask_free(a);
	ck_assert_ptr_null(a->line);
}

START_TEST(a_permission_is_answered) {
	static const char line[] = REQUEST("\"r\\u0031\"", "{\"subtype\":\"can_use_tool\",\"tool_name\":\"Bash\",\"input\":"
													   "{\"command\":\"ls\"},\"permission_suggestions\":[{\"a\":1}]}");
	struct plenum_ask a = asked(line, PLENUM_ASK_PERMISSION, "Bash", "{\"command\":\"ls\"}");
	ck_assert_uint_eq(a.suggestions_len, strlen("[{\"a\":1}]"));
	ck_assert(memcmp(a.suggestions, "[{\"a\":1}]", a.suggestions_len) == 0);
	expect_reply(&a, plenum_allow(p, &a, NULL, NULL), REPLY("\"r\\u0031\"", "{\"behavior\":\"allow\"}"));
	a = asked(line, PLENUM_ASK_PERMISSION, "Bash", "{\"command\":\"ls\"}");
	expect_reply(&a, plenum_allow(p, &a, "{\n\"command\":\"pwd\"}", "[{\"a\":1}]"),
				 REPLY("\"r\\u0031\"", "{\"behavior\":\"allow\",\"updatedInput\":{ \"command\":\"pwd\"},"
									   "\"updatedPermissions\":[{\"a\":1}]}"));
	a = asked(line, PLENUM_ASK_PERMISSION, "Bash", "{\"command\":\"ls\"}");
	expect_reply(&a, plenum_deny(p, &a, "not \"here\""),
				 REPLY("\"r\\u0031\"", "{\"behavior\":\"deny\",\"message\":\"not \\\"here\\\"\"}"));
}
END_TEST

START_TEST(a_hook_and_a_server_are_answered) {
	static const char hook[] = REQUEST(
		"7", "{\"subtype\":\"hook_callback\",\"callback_id\":\"h\",\"input\":{\"tool_name\":\"Bash\"}}");
	static const char server[] = REQUEST("\"m\"",
										 "{\"subtype\":\"mcp_message\",\"server_name\":\"s\",\"message\":{\"id\":1}}");
	struct plenum_ask a = asked(hook, PLENUM_ASK_HOOK, "h", "{\"tool_name\":\"Bash\"}");
	ck_assert_ptr_null(a.suggestions);
	ck_assert_int_eq(plenum_reply(p, &a, "[]"), PLENUM_FAILED);
	expect_reply(&a, plenum_reply(p, &a, NULL), REPLY("7", "{}"));
	a = asked(hook, PLENUM_ASK_HOOK, "h", "{\"tool_name\":\"Bash\"}");
	expect_reply(&a, plenum_reply(p, &a, " {\"continue\":true} "), REPLY("7", "{\"continue\":true}"));
	a = asked(server, PLENUM_ASK_MCP, "s", "{\"id\":1}");
	expect_reply(&a, plenum_reply_mcp(p, &a, "{\"id\":1,\"result\":{}}"),
				 REPLY("\"m\"", "{\"mcp_response\":{\"id\":1,\"result\":{}}}"));
	a = asked(server, PLENUM_ASK_MCP, "s", "{\"id\":1}");
	expect_reply(&a, plenum_reply_error(p, &a, "none"),
				 "{\"type\":\"control_response\",\"response\":{\"subtype\":\"error\",\"request_id\":\"m\",\"error\":"
				 "\"none\"}}");
}
END_TEST

START_TEST(a_request_is_withdrawn) {
	static const char line[] = REQUEST("\"r\"", "{\"subtype\":\"new\"}");
	static const char gone[] = "{\"type\":\"control_cancel_request\",\"request_id\":\"r\"}";
	static const char other[] = "{\"type\":\"control_cancel_request\",\"request_id\":\"q\"}";
	struct plenum_ask a = asked(line, PLENUM_ASK_OTHER, "new", "{\"subtype\":\"new\"}"), none;
	ck_assert(plenum_ask_withdrawn(&a, gone, strlen(gone)));
	ck_assert(!plenum_ask_withdrawn(&a, other, strlen(other)));
	ck_assert(!plenum_ask_withdrawn(&a, line, strlen(line)));
	ck_assert(!plenum_ask_read(gone, strlen(gone), &none));
	ck_assert_ptr_null(none.line);
	plenum_ask_free(&a);
}
END_TEST

/* --- Connecting again --------------------------------------------------------------------------------------------- */

/* The daemon's end is closed, and all that it sent is read. */
static void break_off(void) {
	const char *line;
	size_t n;
	close(there);
	there = -1;
	while (plenum_next(p, 5000, &line, &n) == PLENUM_OK) continue;
}

/* Take the next connection and its attach; answer it, and return the line. */
static char *attaches(const char *answer) {
	char id[PLENUM_ID_SIZE] = "", text[1024];
	if (there < 0) there = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	char *line = heard();
	const char *at = strstr(line, "\"request_id\":\"");
	if (at) sscanf(at + 14, "%39[^\"]", id);
	snprintf(text, sizeof text,
			 "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"%s\","
			 "\"response\":%s}}\n",
			 id, answer);
	say(text);
	return line;
}

static void attach_with(const char *members) {
	char id[PLENUM_ID_SIZE];
	const char *line;
	size_t n;
	ck_assert_int_eq(plenum_post(p, PLENUM_ATTACH, members, id), PLENUM_OK);
	_cleanup_free_ char *sent = attaches("{\"session\":\"w\",\"seq\":8}");
	ck_assert_ptr_nonnull(sent);
	ck_assert_int_eq(plenum_next(p, 5000, &line, &n), PLENUM_OK);
}

static void expect_members(const char *want) {
	char id[PLENUM_ID_SIZE], all[1024];
	ck_assert_int_eq(plenum_reopen(p, id), PLENUM_OK);
	_cleanup_free_ char *sent = attaches("{\"session\":\"w\",\"seq\":20}");
	snprintf(all, sizeof all, "\"request_id\":\"%s\",\"request\":{\"subtype\":\"plenum_attach\",%s}}", id, want);
	ck_assert_msg(strstr(sent, all) != NULL, "%s is not in %s", all, sent);
	break_off();
}

START_TEST(it_goes_on_after_its_last_line) {
	attach_with("{\"create\":\"new\",\"tag\":true,\"name\":\"me\"}");
	say("{\"plenum_seq\":8,\"type\":\"x\"}\n{\"plenum_seq\":9,\"type\":\"x\"}\n{\"plenum_seq\":10,\"ty");
	expect_line("{\"plenum_seq\":8,\"type\":\"x\"}");
	break_off();
	expect_members("\"tag\":true,\"name\":\"me\",\"session\":\"w\",\"replay\":{\"after\":9}");
}
END_TEST

START_TEST(it_goes_on_from_where_it_attached) {
	char id[PLENUM_ID_SIZE];
	ck_assert_int_eq(plenum_reopen(p, id), PLENUM_FAILED); /* not attached before */
	ck_assert_int_eq(errno, EINVAL);
	attach_with("{\"session\":\"w\",\"tag\":true,\"replay\":\"none\"}");
	break_off();
	for (int i = 0; i < 2; i++) expect_members("\"tag\":true,\"session\":\"w\",\"replay\":{\"after\":7}");
}
END_TEST

START_TEST(it_follows_the_name_of_the_session) {
	attach_with("{\"session\":\"w\",\"tag\":true}");
	say("{\"plenum_seq\":8,\"type\":\"system\",\"subtype\":\"plenum_event\",\"event\":\"changed\","
		"\"session\":\"other\",\"what\":\"name\",\"value\":\"x\"}\n");
	say("{\"plenum_seq\":9,\"type\":\"system\",\"subtype\":\"plenum_event\",\"event\":\"changed\","
		"\"session\":\"w\",\"what\":\"name\",\"value\":\"v\"}\n");
	break_off();
	expect_members("\"tag\":true,\"session\":\"v\",\"replay\":{\"after\":9}");
}
END_TEST

START_TEST(it_follows_the_name_of_a_session_in_json_rpc) {
	char id[PLENUM_ID_SIZE];
	ck_assert_int_eq(plenum_speak(p, "acp"), PLENUM_OK);
	ck_assert_int_eq(plenum_post(p, PLENUM_ATTACH, "{\"session\":\"w\",\"tag\":true}", id), PLENUM_OK);
	free(answers_rpc("\"result\":{\"session\":\"w\",\"seq\":8}"));
	say("{\"plenum_seq\":8,\"jsonrpc\":\"2.0\",\"method\":\"_plenum/event\",\"params\":{\"event\":\"changed\","
		"\"session\":\"w\",\"what\":\"name\",\"value\":\"v\"}}\n");
	break_off();
	ck_assert_int_eq(plenum_reopen(p, id), PLENUM_OK);
	there = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	_cleanup_free_ char *again = answers_rpc("\"result\":{}");
	ck_assert_ptr_nonnull(strstr(again, "\"method\":\"_plenum/attach\",\"params\":{\"tag\":true,\"session\":\"v\","
										"\"replay\":{\"after\":8}}}"));
}
END_TEST

START_TEST(without_numbers_nothing_is_replayed_again) {
	attach_with("{\"session\":\"w\",\"replay\":\"all\",\"create\":\"never\"}");
	break_off();
	expect_members("\"create\":\"never\",\"session\":\"w\"");
}
END_TEST

START_TEST(an_unread_replay_is_asked_for_again) {
	attach_with("{\"session\":\"w\",\"tag\":true,\"replay\":\"all\"}");
	break_off();
	expect_members("\"tag\":true,\"replay\":\"all\",\"session\":\"w\"");
}
END_TEST

/* The daemon comes back, ends at once, and comes back again. */
static void *coming_back(void *arg) {
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	strcpy(to.sun_path, path);
	unlink(path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (const struct sockaddr *)&to, sizeof to) < 0 || listen(listener, 1) < 0) return arg;
	close(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	free(attaches("{\"session\":\"w\",\"replay_cut\":false}"));
	return NULL;
}

START_TEST(it_waits_for_a_daemon) {
	struct plenum_answer a;
	pthread_t thread;
	attach_with("{\"session\":\"w\",\"tag\":true}");
	break_off();
	close(listener);
	ck_assert_int_eq(plenum_reconnect(p, 0, &a), PLENUM_FAILED);
	ck_assert_int_eq(errno, ECONNREFUSED);
	pthread_create(&thread, NULL, coming_back, NULL);
	ck_assert_int_eq(plenum_reconnect(p, -1, &a), PLENUM_OK);
	pthread_join(thread, NULL);
	ck_assert_ptr_nonnull(strstr(a.line, "replay_cut"));
	plenum_answer_free(&a);
	say("{\"n\":1}\n");
	expect_line("{\"n\":1}");
	ck_assert_int_eq(plenum_send(p, "{}", 2), PLENUM_OK);
}
END_TEST

START_TEST(a_prompt_is_sent_again_under_its_uuid) {
	char uuid[PLENUM_UUID_SIZE];
	ck_assert_int_eq(plenum_prompt(p, "a", 1, uuid), PLENUM_OK);
	ck_assert_int_eq(plenum_prompt_again(p, "a", 1, uuid), PLENUM_OK);
	_cleanup_free_ char *one = heard(), *two = heard();
	ck_assert_str_eq(one, two);
}
END_TEST

START_TEST(a_prompt_has_a_uuid) {
	char uuid[PLENUM_UUID_SIZE], want[256];
	ck_assert_int_eq(plenum_prompt(p, "a \"b\"\n", 6, uuid), PLENUM_OK);
	ck_assert_uint_eq(strlen(uuid), 36);
	ck_assert_int_eq(uuid[14], '4');
	snprintf(want, sizeof want,
			 "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"a \\\"b\\\"\\n\"},"
			 "\"parent_tool_use_id\":null,\"session_id\":\"\",\"uuid\":\"%s\"}",
			 uuid);
	_cleanup_free_ char *line = heard();
	ck_assert_str_eq(line, want);
}
END_TEST

/* --- Where the socket is ------------------------------------------------------------------------------------------ */

START_TEST(nobody_there_is_said_with_the_path) {
	char why[256];
	ck_assert_ptr_null(plenum_open(path, why, sizeof why));
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_ptr_nonnull(strstr(why, path));
	ck_assert_ptr_null(plenum_open(path, NULL, 0));
}
END_TEST

START_TEST(a_path_that_is_too_long_is_said) {
	char why[512], longer[200];
	memset(longer, 'x', sizeof longer - 1);
	longer[0] = '/';
	longer[sizeof longer - 1] = 0;
	ck_assert_ptr_null(plenum_open(longer, why, sizeof why));
	ck_assert_int_eq(errno, ENAMETOOLONG);
	ck_assert_ptr_nonnull(strstr(why, "107"));
	setenv("PLENUM_SOCKET", longer, 1);
	ck_assert_ptr_null(plenum_open(NULL, why, sizeof why));
	ck_assert_int_eq(errno, ENAMETOOLONG);
}
END_TEST

static void expect_socket(const char *want, const char *rule) {
	char got[PLENUM_SOCKET_PATH_SIZE];
	const char *why = NULL;
	ck_assert(plenum_socket_path(got, sizeof got, &why));
	ck_assert_str_eq(got, want);
	ck_assert_str_eq(why, rule);
}

START_TEST(the_rules_of_the_path) {
	char want[128];
	expect_socket("/run/plenum/plenum.sock", "the system's default");
	setenv("XDG_RUNTIME_DIR", folder, 1);
	snprintf(want, sizeof want, "%s/plenum/plenum.sock", folder);
	expect_socket(want, "XDG_RUNTIME_DIR");
	chmod(folder, 0777); /* anybody could put a socket there */
	expect_socket("/run/plenum/plenum.sock", "the system's default");
	chmod(folder, 0700);
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	expect_socket("/run/plenum/plenum.sock", "the system's default");
	setenv("XDG_RUNTIME_DIR", "/nonexistent/plenum", 1);
	expect_socket("/run/plenum/plenum.sock", "the system's default");
	setenv("PLENUM_SOCKET", "/x/y", 1);
	expect_socket("/x/y", "PLENUM_SOCKET");
	setenv("PLENUM_SOCKET", "", 1);
	expect_socket("/run/plenum/plenum.sock", "the system's default");
}
END_TEST

START_TEST(the_other_folders) {
	setenv("HOME", "/h", 1);
	unsetenv("XDG_STATE_HOME");
	setenv("XDG_CONFIG_HOME", "relative", 1);
	_cleanup_free_ char *state = path_state_dir(), *config = path_config_home(), *runtime = path_runtime_dir();
	ck_assert_str_eq(state, "/h/.local/state/plenum");
	ck_assert_str_eq(config, "/h/.config");
	ck_assert_ptr_null(runtime);
	setenv("XDG_STATE_HOME", "/s", 1);
	_cleanup_free_ char *moved = path_state_dir();
	ck_assert_str_eq(moved, "/s/plenum");
}
END_TEST

int main(void) {
	Suite *s = suite_create("client");
	TCase *connected = tcase_create("connected"), *alone = tcase_create("alone");
	tcase_add_checked_fixture(connected, setup, teardown);
	tcase_add_checked_fixture(alone, make_folder, remove_folder);
	tcase_add_test(connected, lines_come_whole);
	tcase_add_test(connected, a_line_is_sent_with_its_end);
	tcase_add_test(connected, the_end_of_input_is_told);
	tcase_add_test(connected, a_write_to_nobody_is_no_signal);
	tcase_add_test(connected, an_answer_is_found_among_others);
	tcase_add_test(connected, a_refusal_has_its_code);
	tcase_add_test(connected, a_request_has_the_frame_of_the_protocol);
	tcase_add_test(connected, an_unknown_protocol_changes_nothing);
	tcase_add_test(connected, it_follows_the_name_of_a_session_in_json_rpc);
	tcase_add_test(connected, a_request_without_answer_times_out);
	tcase_add_test(connected, members_may_stand_on_many_lines);
	tcase_add_test(connected, nothing_is_sent_behind_the_end_of_the_input);
	tcase_add_test(connected, two_full_directions_do_not_block_each_other);
	tcase_add_test(connected, a_loop_does_not_sleep_on_a_line);
	tcase_add_test(connected, sending_never_waits);
	tcase_add_test(connected, what_was_not_sent_is_told);
	tcase_add_test(connected, the_input_ends_after_the_outbox);
	tcase_add_test(connected, a_permission_is_answered);
	tcase_add_test(connected, a_hook_and_a_server_are_answered);
	tcase_add_test(connected, a_request_is_withdrawn);
	tcase_add_test(connected, it_goes_on_after_its_last_line);
	tcase_add_test(connected, it_goes_on_from_where_it_attached);
	tcase_add_test(connected, it_follows_the_name_of_the_session);
	tcase_add_test(connected, without_numbers_nothing_is_replayed_again);
	tcase_add_test(connected, an_unread_replay_is_asked_for_again);
	tcase_add_test(connected, it_waits_for_a_daemon);
	tcase_add_test(connected, a_prompt_is_sent_again_under_its_uuid);
	tcase_add_test(connected, a_prompt_has_a_uuid);
	tcase_add_test(alone, nobody_there_is_said_with_the_path);
	tcase_add_test(alone, a_path_that_is_too_long_is_said);
	tcase_add_test(alone, the_rules_of_the_path);
	tcase_add_test(alone, the_other_folders);
	suite_add_tcase(s, connected);
	suite_add_tcase(s, alone);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? 1 : 0;
}
