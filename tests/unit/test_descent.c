/* SPDX-License-Identifier: MIT
 *
 * The number of scans, and the share of a turn. Results of scans: tests/integration/test_origin.py, test_leftovers.py.
 */
#include "core/descent.h"
#include "io/proc.h"

#include "world.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define SESSIONS 20

static struct session *sessions[SESSIONS];
static size_t scans, steps, most, errands, held, killed; /* held, killed: SIGSTOP and SIGKILL to children */
static size_t signals, most_signals;                     /* to services, in one turn */
static struct session *ends_meanwhile;
static pid_t services[4];
static size_t n_services;
static void (*on_errand)(void);
static bool times_out, refuses; /* refuses: there is no memory for the next calloc() */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void __real_proc_scan_begin(struct proc_scan *s);
bool __real_proc_scan_next(struct proc_scan *s);
void __wrap_proc_scan_begin(struct proc_scan *s);
bool __wrap_proc_scan_next(struct proc_scan *s);
bool __wrap_loop_must_yield(const struct loop *l);
void __wrap_child_kill(const struct child *c, int signo);
enum child_result __wrap_errand_begin(struct errand *e, struct children *owner, const struct errand_spec *spec,
									  void (*done)(void *arg, enum errand_end end), void *arg, struct error *error);
int __real_kill(pid_t pid, int signo);
int __wrap_kill(pid_t pid, int signo);

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

void *__wrap_calloc(size_t n, size_t size) {
	bool refused = refuses;
	refuses = false;
	return refused ? NULL : __real_calloc(n, size);
}

bool __wrap_loop_must_yield(const struct loop *l) {
	(void)l;
	steps = signals = 0;
	return true;
}

/* No environment can be read. */
enum child_result __wrap_errand_begin(struct errand *e, struct children *owner, const struct errand_spec *spec,
									  void (*done)(void *arg, enum errand_end end), void *arg, struct error *error) {
	(void)e, (void)owner;
	ck_assert_str_eq(spec->kind, DESCENT_NAMES_ERRAND);
	errands++;
	if (on_errand) on_errand();
	if (times_out) {
		done(arg, ERRAND_TIMEOUT);
		return CHILD_OK;
	}
	error_set(error, "none");
	return CHILD_FAILED;
}

/* All processes of the machine are looked at: no other one gets a signal. */
int __wrap_kill(pid_t pid, int signo) {
	bool ours = false;
	for (size_t i = 0; i < n_services; i++) ours |= services[i] == pid;
	ck_assert_msg(!signo || ours, "signal %d to process %d", signo, (int)pid);
	signals += signo != 0;
	most_signals = MAX(most_signals, signals);
	return __real_kill(pid, signo);
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
	scans = steps = most = errands = held = killed = n_services = 0;
	signals = most_signals = 0;
	on_errand = NULL;
	times_out = refuses = false;
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

static struct session *asleep(const char *name) {
	struct session *s = world_session(name);
	world_turn();
	scans = 0;
	return s;
}

START_TEST(leftovers_of_sleeping_sessions_share_a_scan) {
	struct session *several[] = {asleep("a"), asleep("b"), asleep("c")};
	for (size_t i = 0; i < ARRAY_SIZE(several); i++) ck_assert(descent_end(several[i], i == 0, false));
	ck_assert_uint_eq(scans, 0);
	world_turn();
	ck_assert_uint_eq(scans, 1);
	ck_assert_uint_eq(most, 1);
	ck_assert_uint_eq(world.over, 0);
}
END_TEST

/* Their session is there until the clients have been notified of them, and gets no other child. */
START_TEST(a_session_is_forgotten_after_its_leftovers) {
	struct session *s = asleep("a");
	struct error error;
	ck_assert(descent_end(s, false, true));
	ck_assert(session_is_going(s));
	ck_assert(!session_wake(s, &error));
	ck_assert_uint_eq(world.over, 0);
	world_turn();
	ck_assert_uint_eq(scans, 1);
	ck_assert_uint_eq(world.over, 1);
	ck_assert_ptr_null(router_find(world.router, "a"));
}
END_TEST

/* It may be removed in another way before. */
START_TEST(a_sweep_outlives_its_session) {
	struct session *s = asleep("a");
	ck_assert(descent_end(s, false, true));
	sessions_remove(world.router, s, "over");
	world_turn();
	ck_assert_uint_eq(scans, 1);
	ck_assert_uint_eq(world.over, 0);
}
END_TEST

/* The next binary may not know a child: a prestarted one. */
START_TEST(a_save_waits_for_no_scan) {
	struct session *s = asleep("a");
	stop_all(true);
	session_stop(world.session, false, THEN_SLEEP);
	ck_assert(descent_end(s, false, true));
	ck_assert_uint_eq(killed, 0);
	descent_settle(world.router);
	ck_assert_uint_eq(scans, 2); /* of the children, of leftovers */
	ck_assert_uint_eq(killed, SESSIONS);
	ck_assert(!agent_hears(world.session->agent));
	ck_assert_uint_eq(world.over, 1);
	world_turn();
	ck_assert_uint_eq(scans, 2);
}
END_TEST

/* A process of this test. */
static pid_t orphan(bool stubborn) {
	int ready[2];
	char byte;
	ck_assert_int_eq(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGTERM, stubborn ? SIG_IGN : SIG_DFL); /* not that of check */
		close(ready[1]);
		close(ready[0]);
		for (;;) pause();
	}
	ck_assert_int_gt(pid, 0);
	services[n_services++] = pid;
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 0); /* it is set up */
	close(ready[0]);
	return pid;
}

/* It is recorded as a detached process of the session. */
static pid_t service_of(const struct session *s, bool stubborn) {
	uint64_t start;
	pid_t pid = orphan(stubborn);
	ck_assert(proc_stat(pid, NULL, NULL, &start));
	descent_add(world.router->descent, pid, start, launch_number("test", s->name), true);
	return pid;
}

static struct kin *kin_of(pid_t pid) {
	struct kin *k;
	HASH_FIND(hh, world.router->descent->by_pid, &pid, sizeof pid, k);
	return k;
}

static int ended_by(pid_t pid) {
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static const char *named(pid_t pid, const char *action) {
	static char text[128];
	snprintf(text, sizeof text, "\"action\":\"%s\",\"count\":1,\"processes\":[{\"pid\":%d,", action, (int)pid);
	return text;
}

START_TEST(leftovers_are_ended_and_named) {
	struct session *one = asleep("a"), *other = asleep("b");
	struct client *c = world_enter_as(one, false, false), *d = world_enter_as(other, false, false);
	pid_t plain = service_of(one, false), stubborn = service_of(other, true);
	ck_assert(descent_end(one, false, false));
	ck_assert(descent_end(other, true, false));
	ck_assert_ptr_nonnull(strstr(world_said(c), named(plain, "ending")));
	ck_assert_ptr_nonnull(strstr(world_said(d), named(stubborn, "killed")));
	ck_assert_int_eq(ended_by(plain), SIGTERM);
	ck_assert_int_eq(ended_by(stubborn), SIGKILL);
}
END_TEST

/* SIGKILL after the time from SIGTERM on, for all sessions after one scan. */
START_TEST(the_last_signals_share_a_scan) {
	struct session *one = asleep("a"), *other = asleep("b");
	struct client *c = world_enter_as(one, false, false);
	pid_t pids[] = {service_of(one, true), service_of(other, true)};
	ck_assert(descent_end(one, false, false) && descent_end(other, false, false));
	world_said(c);
	ck_assert_uint_eq(scans, 1);
	ck_assert(descent_ends(world.router->descent));
	descent_hurry(world.router);
	descent_hurry(world.router);
	ck_assert_uint_eq(scans, 1);
	const char *said = world_said(c);
	ck_assert_ptr_nonnull(strstr(said, named(pids[0], "killed")));
	ck_assert_uint_ge(scans, 2);
	ck_assert_uint_le(scans, 4); /* more for processes that have not ended yet */
	ck_assert(!descent_ends(world.router->descent));
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) ck_assert_int_eq(ended_by(pids[i]), SIGKILL);
}
END_TEST

/* A second signal to the daemon does not wait, whether the first one of a process was sent or not. */
START_TEST(a_hurry_counts_for_sweeps_that_wait) {
	struct session *s = asleep("a");
	pid_t pid = service_of(s, true);
	ck_assert(descent_end(s, false, false));
	descent_hurry(world.router);
	world_turn();
	ck_assert(descent_ends(world.router->descent));
	ck_assert_int_le(kin_of(pid)->due, now_ms());
	kill(pid, SIGKILL);
	ended_by(pid);
}
END_TEST

/* The session may be woken while the sweep waits: processes of the new child are not meant. */
START_TEST(the_next_child_is_spared) {
	struct session *s = asleep("a");
	pid_t pid = service_of(s, false);
	uint64_t start;
	ck_assert(proc_stat(pid, NULL, NULL, &start));
	world_wake(s);
	s->agent->child.start = start;
	ck_assert(descent_end(s, true, false));
	world_turn();
	ck_assert(proc_lives(pid, start));
	s->agent->child.start = start + 1;
	ck_assert(descent_end(s, true, false));
	world_turn();
	ck_assert_int_eq(ended_by(pid), SIGKILL);
}
END_TEST

/* A process that no other sign names: only what has ended waits for its environment, and then goes on without. */
START_TEST(environments_count_at_an_end_only) {
	struct session *s = asleep("a");
	pid_t pid = orphan(false);
	session_stop(world.session, false, THEN_SLEEP);
	world_turn();
	ck_assert_uint_eq(errands, 0);
	ck_assert_uint_eq(scans, 1);
	ck_assert(descent_end(s, false, false));
	world.session->agent->exited = true;
	session_on_ended(world.session);
	world_turn();
	ck_assert_uint_eq(errands, 1);
	ck_assert_uint_eq(scans, 3);
	ck_assert_ptr_null(world.session->agent);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ended_by(pid);
}
END_TEST

static struct session *late;

/* The process names the session `late` in its environment. Meanwhile that is stopped, and another process comes. */
static void name_one(void) {
	struct descent *d = world.router->descent;
	on_errand = NULL;
	for (size_t i = 0; i < d->n_names; i++)
		if (d->names[i].pid == services[0]) d->names[i].number = launch_number("test", late->name);
	ck_assert(descent_end(late, false, false));
	orphan(false);
}

START_TEST(an_environment_that_was_read_counts_while_others_are_read) {
	struct session *s = asleep("a");
	late = asleep("b");
	pid_t pid = orphan(false);
	on_errand = name_one;
	ck_assert(descent_end(s, false, false));
	world_turn();
	ck_assert_uint_eq(errands, 2);
	ck_assert_ptr_nonnull(kin_of(pid));
	ck_assert_int_eq(ended_by(pid), SIGTERM);
	ck_assert_int_eq(kill(services[1], SIGKILL), 0);
	ended_by(services[1]);
}
END_TEST

START_TEST(a_hurry_waits_for_no_environment) {
	struct session *s = asleep("a");
	pid_t pid = orphan(false);
	descent_hurry(world.router);
	ck_assert(descent_end(s, false, false));
	world_turn();
	ck_assert_uint_eq(errands, 0);
	ck_assert_uint_eq(scans, 1);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ended_by(pid);
}
END_TEST

/* The second pass is for what was started during the first one. */
START_TEST(an_environment_that_comes_late_is_waited_for_once) {
	struct session *s = asleep("a");
	pid_t mute = orphan(false), service = service_of(s, false);
	times_out = true;
	ck_assert(descent_end(s, true, false));
	world_turn();
	ck_assert_int_eq(ended_by(service), SIGKILL);
	ck_assert_uint_ge(scans, 3);
	ck_assert_uint_eq(errands, 1);
	kill(mute, SIGKILL);
	ended_by(mute);
}
END_TEST

/* Nor is it before SIGKILL. */
START_TEST(the_last_signal_waits_for_no_late_environment) {
	struct session *s = asleep("a");
	pid_t mute = orphan(false), stubborn = service_of(s, true);
	times_out = true;
	ck_assert(descent_end(s, false, false));
	world_turn();
	ck_assert_uint_eq(errands, 1);
	kin_of(stubborn)->due = 1;
	for (int i = 0; i < 3; i++) world.router->descent->timer.fn(world.router);
	world_turn();
	ck_assert_int_eq(ended_by(stubborn), SIGKILL);
	ck_assert_uint_eq(errands, 1);
	kill(mute, SIGKILL);
	ended_by(mute);
}
END_TEST

static size_t due(void) {
	size_t n = 0;
	for (size_t i = 0; i < n_services; i++) n += kin_of(services[i])->due != 0;
	return n;
}

START_TEST(a_turn_checks_few_of_those_that_are_due) {
	struct session *s = asleep("a");
	struct descent *d = world.router->descent;
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) {
		pid_t pid = service_of(s, false);
		kin_of(pid)->due = INT64_MAX - 1;
		kill(pid, SIGKILL);
		ended_by(pid);
	}
	for (size_t left = ARRAY_SIZE(services); left > 0; left--) {
		ck_assert_uint_eq(due(), left);
		d->timer.fn(world.router);
		ck_assert(loop_timer_pending(&d->timer));
		ck_assert_int_eq(loop_timer_left(&d->timer), 0);
	}
	ck_assert_uint_eq(due(), 0);
	loop_timer_stop(&d->timer);
	d->timer.fn(world.router);
	ck_assert(!loop_timer_pending(&d->timer));
}
END_TEST

/* Let the sweep send its first signal. */
static void begin_pass(void) {
	while (!due()) world.router->descent->task.fn(world.router);
	ck_assert_uint_eq(due(), 1);
}

static const char *named_all(const char *action) {
	static char text[64];
	snprintf(text, sizeof text, "\"action\":\"%s\",\"count\":%zu,", action, ARRAY_SIZE(services));
	return text;
}

/* The grace is the same for each of them. */
START_TEST(a_turn_ends_few_leftovers) {
	struct session *s = asleep("a");
	struct client *c = world_enter_as(s, false, false);
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) service_of(s, true);
	ck_assert(descent_end(s, false, false));
	begin_pass();
	int64_t now = now_ms();
	while (now_ms() == now) continue;
	ck_assert_ptr_nonnull(strstr(world_said(c), named_all("ending")));
	ck_assert_uint_eq(most_signals, 1);
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) {
		ck_assert_int_gt(kin_of(services[i])->due, now + s->profile->stop_grace);
		ck_assert_int_eq(kin_of(services[i])->due, kin_of(services[0])->due);
	}
	ck_assert(descent_end(s, true, false));
	ck_assert_ptr_nonnull(strstr(world_said(c), named_all("killed")));
	ck_assert_uint_eq(most_signals, 1);
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) ck_assert_int_eq(ended_by(services[i]), SIGKILL);
}
END_TEST

START_TEST(a_save_finishes_the_pass_that_has_begun) {
	struct session *s = asleep("a");
	struct client *c = world_enter_as(s, false, false);
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) service_of(s, false);
	ck_assert(descent_end(s, false, false));
	begin_pass();
	descent_settle(world.router);
	ck_assert_uint_eq(scans, 1);
	ck_assert_uint_eq(due(), ARRAY_SIZE(services));
	ck_assert_ptr_nonnull(strstr(world_said(c), named_all("ending")));
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) ck_assert_int_eq(ended_by(services[i]), SIGTERM);
}
END_TEST

START_TEST(a_pass_outlives_its_session) {
	struct session *s = asleep("a");
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) service_of(s, false);
	ck_assert(descent_end(s, false, true));
	begin_pass();
	sessions_remove(world.router, s, "over");
	world_turn();
	ck_assert_uint_eq(world.over, 0);
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) ck_assert_int_eq(ended_by(services[i]), SIGTERM);
}
END_TEST

/* The processes that the child left are being ended when a client wishes that they are killed. */
START_TEST(a_wish_during_a_pass_counts) {
	struct session *s = world.session;
	struct client *c = world_enter_as(s, false, false);
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) service_of(s, true);
	session_stop_for(s, 0, LEFTOVERS_END);
	session_stop(s, false, THEN_SLEEP);
	s->agent->exited = true;
	session_on_ended(s);
	begin_pass();
	session_stop_for(s, 0, LEFTOVERS_KILL);
	const char *said = world_said(c), *ending = strstr(said, named_all("ending"));
	ck_assert_ptr_nonnull(ending);
	ck_assert_ptr_nonnull(strstr(ending, named_all("killed")));
	ck_assert_uint_eq(most_signals, 1);
	ck_assert_ptr_null(s->agent);
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) ck_assert_int_eq(ended_by(services[i]), SIGKILL);
}
END_TEST

/* SIGKILL follows SIGTERM even if the rest of the pass is given up. */
START_TEST(a_pass_ends_without_memory) {
	struct session *s = world.session;
	struct descent *d = world.router->descent;
	struct client *c = world_enter_as(s, false, false);
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) service_of(s, true);
	session_stop_for(s, 0, LEFTOVERS_END);
	session_stop(s, false, THEN_SLEEP);
	s->agent->exited = true;
	session_on_ended(s);
	begin_pass();
	refuses = true;
	d->task.fn(world.router);
	ck_assert(!refuses);
	ck_assert_uint_eq(due(), 1);
	ck_assert(loop_timer_pending(&d->timer));
	ck_assert_ptr_nonnull(strstr(world_said(c), "\"action\":\"ending\",\"count\":1,"));
	ck_assert_ptr_null(s->agent);
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) {
		kill(services[i], SIGKILL);
		ended_by(services[i]);
	}
}
END_TEST

/* One scan for the leftovers of all sessions, one for what was started meanwhile. */
START_TEST(the_end_of_the_daemon_takes_two_scans) {
	struct session *several[] = {asleep("a"), asleep("b"), asleep("c")};
	pid_t pids[ARRAY_SIZE(several)];
	for (size_t i = 0; i < ARRAY_SIZE(several); i++) {
		pids[i] = service_of(several[i], false);
		kin_of(pids[i])->root = true;
	}
	ck_assert(!descent_finish(world.router));
	ck_assert_uint_eq(scans, 0);
	world_turn();
	ck_assert_uint_eq(scans, 1);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) ck_assert_int_eq(ended_by(pids[i]), SIGTERM);
	descent_hurry(world.router); /* instead of its timer */
	world_turn();
	scans = 0;
	ck_assert(!descent_finish(world.router));
	world_turn();
	ck_assert_uint_eq(scans, 1);
	ck_assert(descent_finish(world.router));
	ck_assert_uint_eq(scans, 1);
}
END_TEST

static void try_to_end(struct router *r) {
	(void)descent_finish(r);
}

/* It is a change, and the daemon looks after each change if it can end. */
START_TEST(an_orphan_found_at_the_end_of_the_daemon_repeats_nothing) {
	struct session *s = asleep("a");
	struct client *c = world_enter_as(s, false, false);
	struct router_events events = *world.router->events;
	pid_t known = service_of(s, true), found = orphan(false);
	kin_of(known)->root = true;
	events.changed = try_to_end;
	world.router->events = &events;
	ck_assert(!descent_finish(world.router));
	const char *said = world_said(c), *once = strstr(said, named(known, "ending"));
	world.router->events = &world_events;
	ck_assert_ptr_nonnull(once);
	ck_assert_ptr_null(strstr(once + 1, "\"action\""));
	ck_assert_int_eq(ended_by(found), SIGTERM);
	ck_assert_int_eq(kill(known, SIGKILL), 0);
	ended_by(known);
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
			   a_scan_that_takes_longer_than_a_step_delays_it, leftovers_of_sleeping_sessions_share_a_scan,
			   a_session_is_forgotten_after_its_leftovers, a_sweep_outlives_its_session, a_save_waits_for_no_scan,
			   leftovers_are_ended_and_named, the_last_signals_share_a_scan, a_hurry_counts_for_sweeps_that_wait,
			   the_next_child_is_spared, environments_count_at_an_end_only,
			   an_environment_that_was_read_counts_while_others_are_read, a_hurry_waits_for_no_environment,
			   the_end_of_the_daemon_takes_two_scans, an_orphan_found_at_the_end_of_the_daemon_repeats_nothing,
			   a_child_that_waits_for_the_scan_is_written_nothing, an_environment_that_comes_late_is_waited_for_once,
			   the_last_signal_waits_for_no_late_environment, a_turn_checks_few_of_those_that_are_due,
			   a_turn_ends_few_leftovers, a_save_finishes_the_pass_that_has_begun, a_pass_outlives_its_session,
			   a_wish_during_a_pass_counts, a_pass_ends_without_memory)
