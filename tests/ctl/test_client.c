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
	there = -1;
	expect_line("last");
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
	ck_assert_int_eq(plenum_send(p, much, MUCH), PLENUM_OK);
	ck_assert_int_eq(plenum_next(p, 5000, &line, &n), PLENUM_OK);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(n, MUCH);
	ck_assert_uint_eq(got, MUCH + 1);
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
	tcase_add_test(connected, a_request_without_answer_times_out);
	tcase_add_test(connected, members_may_stand_on_many_lines);
	tcase_add_test(connected, nothing_is_sent_behind_the_end_of_the_input);
	tcase_add_test(connected, two_full_directions_do_not_block_each_other);
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
