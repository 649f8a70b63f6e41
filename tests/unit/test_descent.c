/* SPDX-License-Identifier: MIT
 *
 * The number of scans, and the share of a turn. Results of scans: tests/integration/test_origin.py, test_leftovers.py.
 */
#include "core/descent.h"
#include "io/proc.h"

#include "world.h"

#include <signal.h>

#define SESSIONS 20

static struct session *sessions[SESSIONS];
static size_t scans, steps, most, held, killed; /* held, killed: SIGSTOP and SIGKILL to children */
static struct session *ends_meanwhile;

void __real_proc_scan_begin(struct proc_scan *s);
bool __real_proc_scan_next(struct proc_scan *s);
void __wrap_proc_scan_begin(struct proc_scan *s);
bool __wrap_proc_scan_next(struct proc_scan *s);
bool __wrap_loop_must_yield(const struct loop *l);
void __wrap_child_kill(const struct child *c, int signo);

void __wrap_proc_scan_begin(struct proc_scan *s) {
	scans++;
	__real_proc_scan_begin(s);
}

bool __wrap_proc_scan_next(struct proc_scan *s) {
	struct session *ends = ends_meanwhile;
	ends_meanwhile = NULL;
	if (ends) session_stop(ends, false, THEN_SLEEP);
	steps++;
	most = MAX(most, steps);
	return __real_proc_scan_next(s);
}

bool __wrap_loop_must_yield(const struct loop *l) {
	(void)l;
	steps = 0;
	return true;
}

void __wrap_child_kill(const struct child *c, int signo) {
	(void)c;
	held += signo == SIGSTOP;
	killed += signo == SIGKILL;
}

static void begin(void) {
	world_begin();
	for (int i = 0; i < SESSIONS; i++) {
		char name[16];
		snprintf(name, sizeof name, "n%d", i);
		world_wake(sessions[i] = world_session(name));
	}
	scans = steps = most = held = killed = 0;
}

static void stop_all(bool kill_now) {
	for (int i = 0; i < SESSIONS; i++) session_stop(sessions[i], kill_now, THEN_SLEEP);
}

/* The child may not end before its processes are recorded. */
START_TEST(sessions_that_end_together_share_a_scan) {
	stop_all(false);
	ck_assert_uint_eq(scans, 0);
	for (int i = 0; i < SESSIONS; i++) ck_assert(agent_hears(sessions[i]->agent));
	world_turn();
	ck_assert_uint_eq(scans, 1);
	for (int i = 0; i < SESSIONS; i++) ck_assert(!agent_hears(sessions[i]->agent));
	for (int i = 0; i < SESSIONS; i++) {
		sessions[i]->agent->exited = true;
		session_on_ended(sessions[i]);
	}
	for (int i = 0; i < SESSIONS; i++) ck_assert_ptr_nonnull(sessions[i]->agent);
	world_turn();
	ck_assert_uint_eq(scans, 2);
	for (int i = 0; i < SESSIONS; i++) ck_assert_ptr_null(sessions[i]->agent);
}
END_TEST

START_TEST(a_turn_reads_no_more_than_its_share) {
	session_stop(world.session, false, THEN_SLEEP);
	world_turn();
	ck_assert_uint_eq(scans, 1);
	ck_assert_uint_eq(most, 1);
}
END_TEST

/* The processes of the second one may have been read already. */
START_TEST(a_scan_serves_only_those_that_waited_for_it) {
	ends_meanwhile = sessions[0];
	session_stop(world.session, false, THEN_SLEEP);
	world_turn();
	ck_assert_uint_eq(scans, 2);
	ck_assert(!agent_hears(world.session->agent) && !agent_hears(sessions[0]->agent));
}
END_TEST

/* A killed child does nothing more, and is there while its processes are recorded. */
START_TEST(children_killed_in_one_turn_share_a_scan) {
	stop_all(false);
	stop_all(true);
	ck_assert_uint_eq(scans, 0);
	ck_assert_uint_eq(held, SESSIONS);
	ck_assert_uint_eq(killed, 0);
	for (int i = 0; i < SESSIONS; i++) ck_assert(agent_hears(sessions[i]->agent));
	world_turn();
	ck_assert_uint_eq(scans, 1);
	ck_assert_uint_eq(killed, SESSIONS);
	for (int i = 0; i < SESSIONS; i++) ck_assert(!agent_hears(sessions[i]->agent));
}
END_TEST

START_TEST(a_child_that_is_recorded_already_is_killed_at_once) {
	session_stop(world.session, false, THEN_SLEEP);
	world_turn();
	session_stop(world.session, true, THEN_SLEEP);
	ck_assert_uint_eq(scans, 1);
	ck_assert_uint_eq(held, 0);
	ck_assert_uint_eq(killed, 1);
}
END_TEST

/* The time of a step begins when the child has got its signal. */
START_TEST(a_scan_that_takes_longer_than_a_step_delays_it) {
	session_stop(world.session, false, THEN_SLEEP);
	session_on_stop_timer(world.session);
	ck_assert_uint_eq(scans, 0);
	ck_assert_int_eq(world.session->stopping, STOP_EOF);
	ck_assert(agent_hears(world.session->agent));
	world_turn();
	ck_assert_uint_eq(scans, 1);
	session_on_stop_timer(world.session);
	ck_assert_int_eq(world.session->stopping, STOP_TERM);
}
END_TEST

/* A line sent now is for the next child. */
START_TEST(a_child_that_waits_for_the_scan_is_written_nothing) {
	struct session *s = sessions[SESSIONS - 1]; /* world.in is of the newest child */
	char data[16];
	world_written();
	session_stop(s, false, THEN_RESTART);
	s->want_child = true;
	ck_assert(session_write(s, chunk_copy("next\n", 5), true));
	s->unnamed = 1;
	session_named(s);
	world_turn();
	ck_assert_int_eq(read(world.in, data, sizeof data), 0);
	ck_assert_uint_eq(s->in.count, 1);
	s->want_child = false;
}
END_TEST

RUN_TESTS_WITH(begin, world_end, "descent", sessions_that_end_together_share_a_scan,
			   a_turn_reads_no_more_than_its_share, a_scan_serves_only_those_that_waited_for_it,
			   children_killed_in_one_turn_share_a_scan, a_child_that_is_recorded_already_is_killed_at_once,
			   a_scan_that_takes_longer_than_a_step_delays_it, a_child_that_waits_for_the_scan_is_written_nothing)
