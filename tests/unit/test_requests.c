/* SPDX-License-Identifier: MIT */
#include "core/requests.h"

#include "world.h"

#define REQUEST(id, subtype)                                                                                           \
	"{\"type\":\"control_request\",\"request_id\":\"" id "\",\"request\":{\"subtype\":\"" subtype "\"}}\n"
#define MODE                                                                                                           \
	"{\"type\":\"control_request\",\"request_id\":\"m\",\"request\":{\"subtype\":\"set_permission_mode\","             \
	"\"mode\":\"plan\"}}\n"

static char id[CALL_ID_MAX];
static bool slow; /* the share of each turn is one piece of work */

bool __real_loop_must_yield(const struct loop *l);
bool __wrap_loop_must_yield(const struct loop *l);

bool __wrap_loop_must_yield(const struct loop *l) {
	return slow || __real_loop_must_yield(l);
}

/* The child answers the request with this id. */
static void answers(const char *of) {
	char line[400];
	snprintf(line, sizeof line,
			 "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"%s\","
			 "\"response\":{}}}\n",
			 of);
	world_prints(line);
}

START_TEST(a_request_goes_out_under_an_id_of_the_daemon) {
	struct client *one = world_enter(), *two = world_enter();
	char first[CALL_ID_MAX];
	world_sends(one, REQUEST("r", "get_context_usage"));
	world_value(world_written(), "request_id", first, sizeof first);
	world_sends(two, REQUEST("r", "get_context_usage"));
	world_value(world_written(), "request_id", id, sizeof id);
	ck_assert_str_ne(first, "r");
	ck_assert_str_ne(first, id);
	world_said(one), world_said(two);
	answers(id);
	HAS(world_said(two), "\"request_id\":\"r\"");
	ck_assert_str_eq(world_said(one), ""); /* the answers of clients do not mix */
	answers(first);
	HAS(world_said(one), "\"request_id\":\"r\"");
	ck_assert_uint_eq(world.session->calls.n, 0);
}
END_TEST

START_TEST(one_id_is_open_once) {
	struct client *c = world_enter();
	world_sends(c, REQUEST("r", "get_context_usage"));
	world_said(c), world_written();
	world_sends(c, REQUEST("r", "get_context_usage"));
	HAS(world_said(c), PLENUM_E_DUPLICATE_REQUEST);
	ck_assert_str_eq(world_written(), "");
}
END_TEST

START_TEST(a_timeout_is_an_answer) {
	struct client *c = world_enter();
	world_sends(c, REQUEST("r", "get_context_usage"));
	world_value(world_written(), "request_id", id, sizeof id);
	requests_timer(LIST_TOP(&world.session->calls.order, struct call, node));
	HAS(world_said(c), PLENUM_E_TIMEOUT);
	answers(id);
	ck_assert_str_eq(world_said(c), "");
	ck_assert_uint_eq(world.session->dropped_answers, 1);
}
END_TEST

/* The child may confirm it late; the clients must not miss that. */
START_TEST(a_change_is_announced_after_its_timeout) {
	struct client *c = world_enter(), *other = world_enter();
	world_sends(c, MODE);
	world_value(world_written(), "request_id", id, sizeof id);
	requests_timer(LIST_TOP(&world.session->calls.order, struct call, node));
	HAS(world_said(c), PLENUM_E_TIMEOUT);
	world_said(other);
	answers(id);
	HAS(world_said(other), "\"plan\"");
	ck_assert_str_eq(world.session->snapshot.mode, "\"plan\"");
}
END_TEST

START_TEST(a_client_has_a_limit) {
	struct client *c = world_enter();
	world.settings->limits.max_calls = 1;
	world_sends(c, REQUEST("r1", "get_context_usage"));
	world_written();
	world_sends(c, REQUEST("r2", "get_context_usage"));
	HAS(world_said(c), "max_calls");
	ck_assert_str_eq(world_written(), "");
	world_sends(c, REQUEST("i", "interrupt")); /* is beyond it */
	HAS(world_written(), "interrupt");
}
END_TEST

START_TEST(a_sleeping_session_answers_nothing) {
	struct client *c = world_enter();
	session_drop_agent(world.session);
	world_sends(c, REQUEST("r", "get_context_usage"));
	HAS(world_said(c), PLENUM_E_CHILD_EXITED);
}
END_TEST

START_TEST(a_client_that_left_gets_no_answer) {
	struct client *c = world_enter();
	world_sends(c, REQUEST("r", "get_context_usage"));
	world_value(world_written(), "request_id", id, sizeof id);
	attachment_leave(c, "detached");
	HAS(world_said(c), PLENUM_E_NOT_ATTACHED);
	answers(id);
	ck_assert_str_eq(world_said(c), "");
}
END_TEST

/* A long request and its long answer get other ids, and are not copied. */
START_TEST(long_lines_are_not_copied) {
	static const size_t size = 300000;
	struct client *c = world_enter();
	size_t n;
	char *pad = calloc(1, size + 1);
	memset(pad, 'x', size);
	free(world_said_whole(c, &n));
	char *line = str_printf(
		"{\"type\":\"control_request\",\"request\":{\"subtype\":\"get_context_usage\",\"pad\":\"%s\"},"
		"\"request_id\":\"mine\"}\n",
		pad);
	world_sends(c, line);
	ck_assert_uint_eq(world_views(NULL), 1);
	char *got = world_written_whole(&n);
	size_t before = (size_t)(strstr(line, "\"mine\"") - line);
	ck_assert(n > before && memcmp(got, line, before) == 0);
	world_value(got + before - strlen("\"request_id\":"), "request_id", id, sizeof id);
	free(got);
	free(line);
	line = str_printf("{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"%s\","
					  "\"response\":{\"pad\":\"%s\"}}}\n",
					  id, pad);
	world_prints(line);
	got = world_said_whole(c, &n);
	char *want = str_printf(
		"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"mine\","
		"\"response\":{\"pad\":\"%s\"}}}\n",
		pad);
	ck_assert(n == strlen(want) && memcmp(got, want, n) == 0);
	char *all[] = {got, want, line, pad};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) free(all[i]);
}
END_TEST

#define MANY 600

START_TEST(a_child_ends_after_very_many_requests) {
	struct client *c = world_enter();
	char line[400];
	size_t n, errors = 0;
	for (int i = 0; i < MANY; i++) {
		snprintf(line, sizeof line, REQUEST("r%d", "get_context_usage"), i);
		world_sends(c, line);
	}
	free(world_said_whole(c, &n));
	slow = true;
	world.session->agent->exited = true;
	session_left(world.session);
	ck_assert_ptr_nonnull(world.session->agent);
	ck_assert_uint_gt(world.session->calls.n, MANY / 2);
	ck_assert_uint_lt(world.session->calls.n, MANY);
	world_turn();
	ck_assert_ptr_null(world.session->agent);
	ck_assert_uint_eq(world.session->calls.n, 0);
	_cleanup_free_ char *said = world_said_whole(c, &n);
	const char *end = strstr(said, "\"event\":\"child_exited\"");
	ck_assert_ptr_nonnull(end);
	for (const char *at = said; (at = strstr(at, "\"code\":\"child_exited\"")) && at < end; at++) errors++;
	ck_assert_uint_eq(errors, MANY);
}
END_TEST

static void begin(void) {
	slow = false;
	world_begin();
}

RUN_TESTS_WITH(begin, world_end, "requests", long_lines_are_not_copied, a_request_goes_out_under_an_id_of_the_daemon,
			   one_id_is_open_once, a_timeout_is_an_answer, a_change_is_announced_after_its_timeout,
			   a_client_has_a_limit, a_sleeping_session_answers_nothing, a_client_that_left_gets_no_answer,
			   a_child_ends_after_very_many_requests)
