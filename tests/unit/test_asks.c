/* SPDX-License-Identifier: MIT */
#include "core/asks.h"

#include "world.h"

#include <sys/mman.h>

#define ASK(id)                                                                                                        \
	"{\"type\":\"control_request\",\"request_id\":\"" id "\",\"request\":{\"subtype\":\"can_use_tool\","               \
	"\"tool_name\":\"Bash\",\"input\":{\"command\":\"true\"}}}\n"
#define ALLOW                                                                                                          \
	"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"%s\",\"response\":"         \
	"{\"behavior\":\"allow\",\"updatedInput\":{}}}}\n"

static bool slow; /* the share of each turn is one piece of work */

bool __real_loop_must_yield(const struct loop *l);
bool __wrap_loop_must_yield(const struct loop *l);

bool __wrap_loop_must_yield(const struct loop *l) {
	return slow || __real_loop_must_yield(l);
}

/* The open request; there must be one. */
static struct pending *asked(void) {
	struct pending *p = LIST_TOP(&world.session->pendings.order, struct pending, node);
	ck_assert_ptr_nonnull(p);
	return p;
}

static void allow(struct client *c, const char *id) {
	char line[400];
	snprintf(line, sizeof line, ALLOW, id);
	world_sends(c, line);
}

START_TEST(the_first_answer_wins) {
	struct client *one = world_enter(), *two = world_enter(), *observer = world_enter_as(world.session, true, false);
	char id[PENDING_ID_MAX];
	world_said(one), world_said(two), world_said(observer);
	world_prints(ASK("k1"));
	world_value(world_said(one), "request_id", id, sizeof id);
	ck_assert_str_ne(id, "k1"); /* clients know it under an id of the daemon */
	HAS(world_said(two), id);
	HAS_NOT(world_said(observer), "can_use_tool");
	allow(two, id);
	const char *written = world_written();
	HAS(written, "\"request_id\":\"k1\"");
	HAS(written, "\"allow\"");
	HAS(world_said(one), "control_cancel_request");
	HAS_NOT(world_said(two), "control_cancel_request");
	allow(one, id);
	HAS(world_said(one), PLENUM_E_ALREADY_SETTLED);
	ck_assert_str_eq(world_written(), "");
	ck_assert_uint_eq(world.session->pendings.n, 0);
}
END_TEST

START_TEST(only_asked_clients_answer) {
	struct client *driver = world_enter_as(world.session, false, false);
	char id[PENDING_ID_MAX];
	world_prints(ASK("k1"));
	snprintf(id, sizeof id, "%s", asked()->id);
	world_said(driver);
	allow(driver, id);
	HAS(world_said(driver), PLENUM_E_UNKNOWN_REQUEST);
	ck_assert_uint_eq(world.session->pendings.n, 1);
}
END_TEST

START_TEST(a_client_that_comes_later_is_asked) {
	world_prints(ASK("k1"));
	ck_assert_uint_eq(asked()->n_asked, 0);
	ck_assert_uint_eq(world.alerts, 1);
	struct client *c = world_enter();
	HAS(world_said(c), "can_use_tool");
	ck_assert_uint_eq(asked()->n_asked, 1);
	world_leaves(c);
	ck_assert_uint_eq(asked()->n_asked, 0);
	HAS(world_said(world_enter()), "can_use_tool");
}
END_TEST

START_TEST(no_answer_is_no) {
	world_prints(ASK("k1"));
	asked()->events->late(asked());
	const char *written = world_written();
	HAS(written, "\"request_id\":\"k1\"");
	HAS(written, "\"deny\"");
	ck_assert_uint_eq(world.session->pendings.n, 0);
}
END_TEST

START_TEST(rules_come_before_clients) {
	struct client *c = world_enter();
	world_said(c);
	ck_assert(words_add(&world.profile->deny_tools, "Bash"));
	world_prints(ASK("k1"));
	HAS(world_written(), "\"deny\"");
	words_free(&world.profile->deny_tools);
	ck_assert(words_add(&world.profile->allow_tools, "Bash"));
	world_prints(ASK("k2"));
	HAS(world_written(), "\"allow\"");
	HAS_NOT(world_said(c), "\"control_request\"");
}
END_TEST

START_TEST(the_child_withdraws_its_request) {
	struct client *c = world_enter();
	world_prints(ASK("k1"));
	world_said(c);
	world_prints("{\"type\":\"control_cancel_request\",\"request_id\":\"k1\"}\n");
	const char *said = world_said(c);
	HAS(said, "control_cancel_request");
	HAS(said, "\"cancelled\"");
	ck_assert_str_eq(world_written(), ""); /* it waits for no answer */
	ck_assert_uint_eq(world.session->pendings.n, 0);
}
END_TEST

START_TEST(the_end_of_a_turn_withdraws_its_requests) {
	world_prints(ASK("k1"));
	world_prints("{\"type\":\"control_request\",\"request_id\":\"k2\",\"request\":{\"subtype\":\"can_use_tool\","
				 "\"tool_name\":\"Bash\",\"agent_id\":\"sub\",\"input\":{}}}\n");
	asks_withdraw_turn(world.session);
	ck_assert_uint_eq(world.session->pendings.n, 1);
	ck_assert_str_eq(asked()->child_id, "\"k2\""); /* of a background agent */
	asks_withdraw_all(world.session, "over");
	ck_assert_uint_eq(world.session->pendings.n, 0);
}
END_TEST

#define LONG ((size_t)300000)
#define LONG_ASK(id)                                                                                                   \
	"{\"type\":\"control_request\",\"request_id\":\"" id "\",\"request\":{\"subtype\":\"can_use_tool\",\"input\":"     \
	"{\"command\":\"%s\"},\"tool_name\":\"Bash\"}}\n"
#define LONG_ALLOW                                                                                                     \
	"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"response\":{\"behavior\":\"allow\"%s},"    \
	"\"request_id\":\"%s\"}}\n"

/* A question, its answer and a question again to a client that comes later: other bytes in place of the id, and no copy
 * of what is long. given: the answer has an input of its own; else it gets that of the question. */
static void ask_at_length(bool given) {
	struct client *c = world_enter();
	size_t n;
	char *pad = calloc(1, LONG + 1), *line, *want, *got;
	memset(pad, 'x', LONG);
	free(world_said_whole(c, &n));
	line = str_printf(LONG_ASK("k1"), pad);
	world_prints(line);
	const struct pending *p = asked();
	struct block *question = p->line.block;
	ck_assert(p->shown.n == 2 && p->shown.parts[1].block == question);
	_cleanup_free_ char *id = str_dup(p->id);
	for (int later = 0; later < 2; later++) {
		if (later) c = world_enter();
		got = world_said_whole(c, &n);
		want = str_printf("{\"type\":\"control_request\",\"request_id\":\"%s\",%s", id, strstr(line, "\"request\":"));
		ck_assert(strstr(got, want));
		free(got);
		free(want);
	}
	free(line);
	block_ref(question);
	_cleanup_free_ char *input = given ? str_printf(",\"updatedInput\":{\"command\":\"y%s\"}", pad) : str_dup("");
	line = str_printf(LONG_ALLOW, input, id);
	world_sends(c, line);
	ck_assert_uint_eq(world_views(given ? NULL : question), 1);
	got = world_written_whole(&n);
	want = str_printf("{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"response\":{\"behavior\":"
					  "\"allow\",\"updatedInput\":{\"command\":\"%s%s\"}},\"request_id\":\"k1\"}}\n",
					  given ? "y" : "", pad);
	ck_assert(n == strlen(want) && memcmp(got, want, n) == 0);
	ck_assert_uint_eq(world.session->pendings.n, 0);
	ck_assert_uint_eq(question->refs, 1); /* all that was sent is freed */
	block_unref(question);
	free(got);
	free(want);
	free(line);
	free(pad);
}

START_TEST(a_long_answer_is_not_copied) {
	ask_at_length(true);
}
END_TEST

START_TEST(a_long_question_is_not_copied) {
	ask_at_length(false);
}
END_TEST

/* --- very many requests that end together --- */

#define MANY 600

static size_t count(const char *text, const char *part) {
	size_t n = 0;
	for (; (text = strstr(text, part)) != NULL; text += strlen(part)) n++;
	return n;
}

/* Return a client that was asked for MANY permissions. */
static struct client *ask_for_many(void) {
	struct client *c = world_enter();
	char line[400];
	size_t n;
	for (int i = 0; i < MANY; i++) {
		snprintf(line, sizeof line, ASK("k%d"), i);
		world_prints(line);
	}
	free(world_said_whole(c, &n));
	slow = true;
	return c;
}

/* No request is open any more, and most of the clients' notices are still to come. */
static void check_some_are_told(uint64_t before) {
	ck_assert_uint_eq(world.session->pendings.n, 0);
	ck_assert_uint_eq(world.session->pendings.n_person, 0);
	ck_assert_uint_gt(world.session->tape.next, before);
	ck_assert_uint_lt(world.session->tape.next - before, MANY / 2);
}

/* last: what they come before; NULL: they may come behind anything. */
static void check_all_are_told(const struct client *c, const char *last) {
	size_t n;
	_cleanup_free_ char *said = world_said_whole(c, &n);
	const char *end = last ? strstr(said, last) : "";
	ck_assert_uint_eq(count(said, "control_cancel_request"), MANY);
	ck_assert_uint_eq(count(said, "\"event\":\"settled\""), MANY);
	ck_assert_msg(end && !strstr(end, "\"event\":\"settled\""), "no %s at the end", last);
}

START_TEST(a_turn_ends_few_of_very_many_requests) {
	struct client *c = ask_for_many();
	uint64_t before = world.session->tape.next;
	asks_withdraw_turn(world.session);
	check_some_are_told(before);
	ck_assert(!world.session->events->may_read(world.session)); /* a child cannot add to them */
	world_turn();
	ck_assert(world.session->events->may_read(world.session));
	check_all_are_told(c, NULL);
}
END_TEST

/* It takes longer to free them than to notify of their ends. */
START_TEST(a_turn_frees_few_of_many_long_requests) {
	enum { LENGTH = 1 << 20, LONG_ONES = 40, AT_ONCE = 16 };
	char *pad = calloc(1, LENGTH + 1);
	memset(pad, 'x', LENGTH);
	for (int i = 0; i < LONG_ONES; i++) {
		_cleanup_free_ char *id = str_printf("k%d", i);
		_cleanup_free_ char *line = str_printf(LONG_ASK("%s"), id, pad);
		world_prints(line);
	}
	free(pad);
	ck_assert_uint_eq(world.session->pendings.n, LONG_ONES);
	asks_withdraw_turn(world.session);
	size_t waiting = list_length(&world.session->pendings.resolved);
	ck_assert_uint_eq(world.session->pendings.n, 0);
	ck_assert_uint_ge(waiting, LONG_ONES - AT_ONCE);
	ck_assert_uint_lt(waiting, LONG_ONES);
	world_turn();
	ck_assert(list_empty(&world.session->pendings.resolved));
}
END_TEST

START_TEST(a_child_ends_after_its_requests) {
	struct client *c = ask_for_many();
	uint64_t before = world.session->tape.next;
	world.session->agent->exited = true;
	session_left(world.session);
	check_some_are_told(before);
	session_left(world.session);
	ck_assert_ptr_nonnull(world.session->agent); /* no other child begins */
	world_turn();
	ck_assert_ptr_null(world.session->agent);
	check_all_are_told(c, "\"event\":\"child_exited\"");
}
END_TEST

START_TEST(a_session_is_removed_after_its_requests) {
	struct client *c = ask_for_many();
	asks_withdraw_turn(world.session);
	sessions_remove(world.router, world.session, "over");
	world.session = NULL;
	check_all_are_told(c, "\"event\":\"session_removed\"");
}
END_TEST

START_TEST(a_client_leaves_while_requests_end) {
	struct client *c = ask_for_many(), *gone = world_enter();
	size_t n;
	asks_withdraw_turn(world.session);
	attachment_leave(c, "over");
	client_kill(gone);
	world_turn();
	ck_assert(list_empty(&world.session->pendings.resolved));
	_cleanup_free_ char *said = world_said_whole(c, &n);
	ck_assert_uint_eq(count(said, "control_cancel_request"), MANY);
}
END_TEST

START_TEST(a_save_has_no_half_ended_request) {
	struct carry c;
	struct client *one = ask_for_many();
	int fd = memfd_create("carry", 0);
	asks_withdraw_turn(world.session);
	ck_assert(!list_empty(&world.session->pendings.resolved));
	carry_begin_save(&c, fd);
	core_carry(&c, world.router);
	ck_assert(carry_end_save(&c));
	carry_free(&c);
	close(fd);
	ck_assert(list_empty(&world.session->pendings.resolved));
	check_all_are_told(one, NULL);
}
END_TEST

static void begin(void) {
	slow = false;
	world_begin();
}

RUN_TESTS_WITH(begin, world_end, "asks", the_first_answer_wins, only_asked_clients_answer,
			   a_client_that_comes_later_is_asked, no_answer_is_no, rules_come_before_clients,
			   a_long_answer_is_not_copied, a_long_question_is_not_copied, the_child_withdraws_its_request,
			   the_end_of_a_turn_withdraws_its_requests, a_turn_ends_few_of_very_many_requests,
			   a_turn_frees_few_of_many_long_requests, a_child_ends_after_its_requests,
			   a_session_is_removed_after_its_requests, a_client_leaves_while_requests_end,
			   a_save_has_no_half_ended_request)
