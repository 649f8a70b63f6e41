/* SPDX-License-Identifier: MIT */
#include "io/loop.h"

#include "base/fd.h"
#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

/* The events in order, a letter each. */
struct world {
	struct loop *loop;
	char seen[100];
	size_t n;
	size_t stop_at; /* the loop ends after so many letters */
};

struct actor {
	struct world *w;
	char letter;
	void (*then)(struct actor *a);
	struct loop_task task, *other;
	struct actor *stopped;
	struct loop_timer timer;
	struct loop_fd fd;
	int ends[2];
};

static void begin(struct world *w) {
	*w = (struct world){.loop = loop_new(), .stop_at = 1000};
	ck_assert_ptr_nonnull(w->loop);
}

static void end(struct world *w) {
	loop_finish(w->loop);
	loop_free(w->loop);
}

static void act(void *arg) {
	struct actor *a = arg;
	a->w->seen[a->w->n++] = a->letter;
	if (a->then) a->then(a);
	if (a->w->n >= a->w->stop_at) loop_stop(a->w->loop);
}

static void run(struct world *w, size_t n, const char *want) {
	w->stop_at = n;
	loop_run(w->loop);
	ck_assert_str_eq(w->seen, want);
}

static void actor(struct actor *a, struct world *w, char letter) {
	*a = (struct actor){.w = w, .letter = letter};
	loop_task_init(&a->task, act, a);
	loop_timer_init(&a->timer, w->loop, act, a);
}

/* --- tasks -------------------------------------------------------------------------------------------------------- */

static struct world world;

static void setup(void) {
	begin(&world);
}

static void teardown(void) {
	end(&world);
}

START_TEST(tasks_run_once_in_order) {
	struct world w;
	struct actor a, b, c, d;
	begin(&w);
	actor(&a, &w, 'a');
	actor(&b, &w, 'b');
	actor(&c, &w, 'c');
	actor(&d, &w, 'd');
	loop_defer(w.loop, &a.task);
	loop_defer(w.loop, &b.task);
	loop_defer(w.loop, &a.task); /* already waiting */
	loop_defer(w.loop, &c.task);
	loop_defer_first(w.loop, &c.task);
	loop_defer(w.loop, &d.task);
	loop_task_stop(&b.task);
	loop_defer_urgent(w.loop, &d.task);
	run(&w, 3, "dca");
	end(&w);
	ck_assert_str_eq(w.seen, "dca");
}
END_TEST

static void defer_again(struct actor *a) {
	if (a->w->n < 8) loop_defer(a->w->loop, &a->task);
}

static void defer_other(struct actor *a) {
	loop_defer_urgent(a->w->loop, a->other);
}

static void stop_other(struct actor *a) {
	loop_task_stop(a->other);
}

/* A task that defers itself runs after all waiting ones; an urgent one runs before the next task. */
START_TEST(tasks_that_defer) {
	static struct actor a, b, c, u; /* a is deferred again until the loop is freed, after this function */
	actor(&a, &world, 'a');
	actor(&b, &world, 'b');
	actor(&c, &world, 'c');
	actor(&u, &world, 'u');
	a.then = defer_again;
	b.then = defer_other;
	b.other = &u.task;
	loop_defer(world.loop, &a.task);
	loop_defer(world.loop, &b.task);
	loop_defer(world.loop, &c.task);
	run(&world, 6, "abucaa");
}
END_TEST

static void free_other(struct actor *a) {
	loop_defer_free(a->w->loop, a->other);
}

/* Memory is freed in the turn of its last use: before waiting tasks, after the rest of this turn. */
START_TEST(what_is_freed_waits_for_nobody) {
	struct world w;
	struct actor a, b, u, x, y;
	begin(&w);
	actor(&a, &w, 'a');
	actor(&b, &w, 'b');
	actor(&u, &w, 'u');
	actor(&x, &w, 'x');
	actor(&y, &w, 'y');
	a.then = free_other;
	a.other = &y.task;
	loop_defer_free(w.loop, &x.task);
	loop_defer_free(w.loop, &x.task); /* already waiting */
	loop_defer(w.loop, &a.task);
	loop_defer(w.loop, &b.task);
	loop_defer_urgent(w.loop, &u.task);
	run(&w, 5, "uaxyb");
	loop_defer_free(w.loop, &x.task);
	end(&w);
	ck_assert_str_eq(w.seen, "uaxybx");
}
END_TEST

static void first_again(struct actor *a) {
	if (a->w->n < 8) loop_defer_first(a->w->loop, &a->task);
}

/* A task that defers itself first in every turn delays neither an earlier first one nor the others indefinitely. */
START_TEST(tasks_that_always_come_first) {
	static struct actor a, b, c; /* one is deferred until the loop is freed */
	actor(&a, &world, 'a');
	actor(&b, &world, 'b');
	actor(&c, &world, 'c');
	a.then = first_again;
	loop_defer(world.loop, &c.task);
	loop_defer_first(world.loop, &b.task);
	loop_defer_first(world.loop, &a.task);
	run(&world, 6, "acabaa");
}
END_TEST

START_TEST(a_task_can_stop_the_next) {
	struct actor a, b;
	actor(&a, &world, 'a');
	actor(&b, &world, 'b');
	a.then = stop_other;
	a.other = &b.task;
	loop_defer(world.loop, &a.task);
	loop_defer(world.loop, &b.task);
	loop_finish(world.loop);
	ck_assert_str_eq(world.seen, "a");
}
END_TEST

static void ready(void *arg, bool readable, bool writable) {
	struct actor *a = arg;
	char byte;
	ck_assert(readable && !writable);
	ck_assert_int_eq(read(a->fd.fd, &byte, 1), 1);
	act(a);
}

/* An incoming answer does not wait for a thousand readers. */
START_TEST(descriptors_come_between_tasks) {
	struct actor in, tasks[50];
	actor(&in, &world, 'I');
	ck_assert_int_eq(pipe2(in.ends, O_CLOEXEC), 0);
	loop_fd_init(&in.fd, world.loop, in.ends[0], ready, &in);
	ck_assert(loop_fd_want(&in.fd, true, false));
	for (size_t i = 0; i < ARRAY_SIZE(tasks); i++) {
		actor(&tasks[i], &world, 't');
		loop_defer(world.loop, &tasks[i].task);
	}
	ck_assert_int_eq(write(in.ends[1], "x", 1), 1);
	world.stop_at = ARRAY_SIZE(tasks) + 1;
	loop_run(world.loop);
	ck_assert_uint_eq(strlen(world.seen), ARRAY_SIZE(tasks) + 1);
	ck_assert_ptr_nonnull(strchr(world.seen, 'I'));
	ck_assert_int_lt(strchr(world.seen, 'I') - world.seen, 10);
	loop_fd_stop(&in.fd);
	close(in.ends[0]);
	close(in.ends[1]);
}
END_TEST

/* --- the budget of a turn ----------------------------------------------------------------------------------------- */

static void work(int64_t us) {
	for (int64_t end = now_us() + us; now_us() < end;) {}
}

static void work_long(struct actor *a) {
	(void)a;
	work(10000);
}

static void pipe_actor(struct actor *a, struct world *w, char letter) {
	actor(a, w, letter);
	ck_assert_int_eq(pipe2(a->ends, O_CLOEXEC), 0);
	loop_fd_init(&a->fd, w->loop, a->ends[0], ready, a);
	ck_assert(loop_fd_want(&a->fd, true, false));
	ck_assert_int_eq(write(a->ends[1], "x", 1), 1);
}

static void drop_pipe(struct actor *a) {
	loop_fd_stop(&a->fd);
	close(a->ends[0]);
	close(a->ends[1]);
}

static int by_letter(const void *a, const void *b) {
	return *(const char *)a - *(const char *)b;
}

/* Run until n letters were seen; 't' is a task of the first turn. A slow machine ends this turn before its first
 * callback, so only one letter may come before 't', and the others may come in any order. */
static void run_over(struct world *w, size_t n) {
	w->stop_at = n;
	loop_run(w->loop);
	ck_assert_uint_eq(w->n, n);
	ck_assert_msg(w->seen[0] == 't' || w->seen[1] == 't', "%s", w->seen);
	qsort(w->seen, n, 1, by_letter);
}

/* Descriptors ready after a long callback are served in the next turn, once. */
START_TEST(a_turn_that_is_over_serves_no_more_descriptors) {
	struct actor a, b, c, d, task;
	pipe_actor(&a, &world, 'a');
	pipe_actor(&b, &world, 'b');
	pipe_actor(&c, &world, 'c');
	pipe_actor(&d, &world, 'd');
	actor(&task, &world, 't');
	a.then = work_long;
	loop_defer(world.loop, &task.task);
	run_over(&world, 5);
	ck_assert_str_eq(world.seen, "abcdt");
	drop_pipe(&a);
	drop_pipe(&b);
	drop_pipe(&c);
	drop_pipe(&d);
}
END_TEST

static void stop_next_but_one(struct actor *a) {
	loop_fd_stop(&a[2].fd);
}

static void stop_last_but_one(struct actor *a) {
	loop_fd_stop(&a[-2].fd);
}

START_TEST(a_descriptor_that_waits_for_its_turn_can_be_stopped) {
	struct actor all[4], task, last;
	actor(&last, &world, 'z');
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) pipe_actor(&all[i], &world, (char)('a' + i));
	actor(&task, &world, 't');
	all[0].then = work_long;
	all[1].then = stop_next_but_one; /* the first of the two stops the other: both wait for the second turn */
	all[3].then = stop_last_but_one;
	all[2].then = defer_other;
	all[2].other = &last.task;
	loop_defer(world.loop, &task.task);
	run_over(&world, 5);
	ck_assert_msg(strcmp(world.seen, "abctz") == 0 || strcmp(world.seen, "acdtz") == 0, "%s", world.seen);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) drop_pipe(&all[i]);
}
END_TEST

static void stop_timer(struct actor *a) {
	ck_assert(loop_timer_pending(&a->stopped->timer));
	loop_timer_stop(&a->stopped->timer);
	ck_assert(!loop_timer_pending(&a->stopped->timer));
}

START_TEST(timers_of_a_turn_that_is_over) {
	struct actor all[5], stopped, task;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		actor(&all[i], &world, (char)('a' + i));
		loop_timer_set(&all[i].timer, (int64_t)i);
	}
	actor(&stopped, &world, 's');
	loop_timer_set(&stopped.timer, 1); /* the first timer of all is due before it, however slow this is */
	work(10000);                       /* all are due */
	all[0].then = work_long;
	actor(&task, &world, 't');
	task.then = stop_timer;
	task.stopped = &stopped;
	loop_defer(world.loop, &task.task);
	run_over(&world, 6);
	ck_assert_str_eq(world.seen, "abcdet");
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) ck_assert(!loop_timer_pending(&all[i].timer));
}
END_TEST

static int64_t before; /* the callback can begin from here on */

static void yields_in_the_end(struct actor *a) {
	bool at_once = loop_must_yield(a->w->loop);
	ck_assert(!at_once || now_us() - before >= 2000); /* it may have been interrupted already */
	work(10000);
	ck_assert(loop_must_yield(a->w->loop));
	before = now_us();
}

/* Each callback has its own share. */
START_TEST(a_callback_is_told_to_yield) {
	struct actor a, b;
	actor(&a, &world, 'a');
	actor(&b, &world, 'b');
	a.then = b.then = yields_in_the_end;
	loop_defer_urgent(world.loop, &a.task);
	loop_defer_urgent(world.loop, &b.task);
	before = now_us();
	run(&world, 2, "ab");
	ck_assert_uint_ge(loop_turns(world.loop)->longest, 20000);
	ck_assert_uint_eq(loop_turns(world.loop)->n, 1);
}
END_TEST

/* The wait for the kernel does not count. */
START_TEST(a_turn_does_not_count_its_wait) {
	struct actor a, b;
	actor(&a, &world, 'a');
	actor(&b, &world, 'b');
	loop_timer_set(&a.timer, 1);
	loop_timer_set(&b.timer, 1000);
	run(&world, 2, "ab");
	ck_assert_uint_ge(loop_turns(world.loop)->n, 2);
	ck_assert_uint_lt(loop_turns(world.loop)->longest, 900000);
}
END_TEST

/* --- timers ------------------------------------------------------------------------------------------------------- */

START_TEST(timers_run_in_order_and_once) {
	struct actor a, b, c, never;
	actor(&a, &world, 'a');
	actor(&b, &world, 'b');
	actor(&c, &world, 'c');
	actor(&never, &world, 'n');
	ck_assert(!loop_timer_pending(&a.timer));
	ck_assert_int_eq(loop_timer_left(&a.timer), -1);
	loop_timer_set(&a.timer, 60);
	loop_timer_set(&b.timer, 30);
	loop_timer_set(&c.timer, -5); /* at once */
	loop_timer_set(&never.timer, 1);
	loop_timer_set(&never.timer, INT64_MAX);
	ck_assert(!loop_timer_pending(&never.timer));
	ck_assert(loop_timer_pending(&a.timer));
	int64_t left = loop_timer_left(&a.timer);
	ck_assert_msg(left >= 0 && left <= 60, "%lld", (long long)left);
	run(&world, 3, "cba");
	ck_assert(!loop_timer_pending(&a.timer) && !loop_timer_pending(&b.timer));
}
END_TEST

static void set_again(struct actor *a) {
	if (a->w->n < 3) loop_timer_set(&a->timer, 1);
}

START_TEST(timers_can_be_set_anew_and_stopped) {
	struct actor a, b;
	actor(&a, &world, 'a');
	actor(&b, &world, 'b');
	a.then = set_again;
	loop_timer_set(&a.timer, 1000000);
	loop_timer_set(&a.timer, 1); /* replaces it */
	loop_timer_set(&b.timer, 1);
	loop_timer_stop(&b.timer);
	loop_timer_stop(&b.timer);
	run(&world, 3, "aaa");
	loop_timer_set(&b.timer, INT64_MAX / 2); /* longer than the process lives */
	ck_assert_int_gt(loop_timer_left(&b.timer), INT64_MAX / 4);
	loop_timer_stop(&b.timer);
}
END_TEST

static long wall_jump; /* seconds by which the clock was set */

/* Replaces libc's, for libevent too. */
int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
	struct timespec now;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*tv = (struct timeval){now.tv_sec + wall_jump, now.tv_nsec / 1000};
	return 0;
}

START_TEST(the_wall_clock_is_none_of_a_timers_business) {
	static const long jumps[] = {86400, -86400, 0};
	struct actor a, b;
	actor(&a, &world, 'a');
	actor(&b, &world, 'b');
	loop_timer_set(&a.timer, 3600000);
	loop_timer_set(&b.timer, 20);
	for (size_t i = 0; i < ARRAY_SIZE(jumps); i++) {
		wall_jump = jumps[i];
		int64_t left = loop_timer_left(&a.timer);
		ck_assert_msg(left > 3500000 && left <= 3600000, "%lld", (long long)left);
	}
	wall_jump = -86400;
	run(&world, 1, "b");
	ck_assert(loop_timer_pending(&a.timer));
	loop_timer_stop(&a.timer);
	wall_jump = 0;
}
END_TEST

START_TEST(a_timer_that_is_made_when_it_is_needed) {
	struct actor a;
	struct loop_timer *t = NULL;
	actor(&a, &world, 'a');
	loop_timer_stop(t); /* NULL is an unset timer */
	ck_assert(!loop_timer_pending(t));
	ck_assert_int_eq(loop_timer_left(t), -1);
	loop_timer_drop(&t);
	ck_assert(loop_timer_make(&t, world.loop, a.timer.fn, a.timer.arg));
	struct loop_timer *made = t;
	loop_timer_set(t, 1);
	ck_assert(loop_timer_make(&t, world.loop, NULL, NULL)); /* it exists already */
	ck_assert_ptr_eq(t, made);
	loop_timer_drop(&t); /* set, so it stays */
	ck_assert_ptr_eq(t, made);
	run(&world, 1, "a");
	loop_timer_drop(&t);
	ck_assert_ptr_null(t);
}
END_TEST

/* --- descriptors -------------------------------------------------------------------------------------------------- */

static void note(void *arg, bool readable, bool writable) {
	struct actor *a = arg;
	a->letter = readable && writable ? 'B' : readable ? 'R' : 'W';
	act(a);
}

static void sockets(struct actor *a, struct world *w) {
	actor(a, w, '?');
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, a->ends), 0);
	loop_fd_init(&a->fd, w->loop, a->ends[0], note, a);
}

static void close_both(struct actor *a) {
	loop_fd_stop(&a->fd);
	close(a->ends[0]);
	if (a->ends[1] >= 0) close(a->ends[1]);
}

START_TEST(what_is_wanted_is_told) {
	struct actor a;
	sockets(&a, &world);
	loop_fd_stop(&a.fd); /* nothing was wanted yet */
	ck_assert(loop_fd_want(&a.fd, false, true));
	run(&world, 2, "WW"); /* as long as it is writable */
	close_both(&a);
}
END_TEST

START_TEST(what_is_wanted_twice_is_told_once) {
	struct actor a;
	sockets(&a, &world);
	ck_assert_int_eq(write(a.ends[1], "x", 1), 1);
	ck_assert(loop_fd_want(&a.fd, true, false));
	ck_assert(loop_fd_want(&a.fd, true, false));
	run(&world, 1, "R");
	close_both(&a);
}
END_TEST

static void want_less(struct actor *a) {
	loop_fd_want(&a->fd, false, false);
	loop_timer_set(&a->timer, 5);
	a->then = NULL;
}

START_TEST(what_is_not_wanted_is_not_told) {
	struct actor a;
	sockets(&a, &world);
	ck_assert_int_eq(write(a.ends[1], "x", 1), 1);
	ck_assert(loop_fd_want(&a.fd, true, true));
	a.then = want_less;
	run(&world, 2, "BB"); /* the second one comes from the timer, which has the same letter */
	close_both(&a);
}
END_TEST

START_TEST(a_descriptor_that_is_closed_is_refused) {
	struct actor a;
	sockets(&a, &world);
	close(a.ends[0]);
	ck_assert(!loop_fd_want(&a.fd, true, false));
	loop_fd_stop(&a.fd);
	close(a.ends[1]);
}
END_TEST

static void close_other(struct actor *a) {
	struct pollfd p = {.fd = a->ends[0], .events = POLLOUT};
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	bool gone = p.revents & POLLHUP;
	if (a->ends[1] >= 0) {
		ck_assert(!gone);
		close(a->ends[1]);
		a->ends[1] = -1;
		return;
	}
	ck_assert(gone);
}

/* A half-closed stream is always readable; its full close is still reported, once. */
START_TEST(the_end_of_a_half_closed_stream) {
	struct actor a;
	sockets(&a, &world);
	shutdown(a.ends[1], SHUT_WR);
	ck_assert(loop_fd_want_end(&a.fd, false));
	a.then = close_other;
	run(&world, 2, "RR");
	close_both(&a);
}
END_TEST

/* --- signals ------------------------------------------------------------------------------------------------------ */

START_TEST(signals) {
	struct actor a;
	struct loop_signal s;
	actor(&a, &world, 's');
	loop_signal_init(&s, world.loop, SIGUSR1, act, &a);
	kill(getpid(), SIGUSR1);
	run(&world, 1, "s");
	loop_signal_stop(&s);
}
END_TEST

RUN_TESTS_WITH(setup, teardown, "loop", tasks_run_once_in_order, tasks_that_defer, what_is_freed_waits_for_nobody,
			   tasks_that_always_come_first, a_task_can_stop_the_next, descriptors_come_between_tasks,
			   a_turn_that_is_over_serves_no_more_descriptors, a_descriptor_that_waits_for_its_turn_can_be_stopped,
			   timers_of_a_turn_that_is_over, a_callback_is_told_to_yield, a_turn_does_not_count_its_wait,
			   timers_run_in_order_and_once, timers_can_be_set_anew_and_stopped,
			   the_wall_clock_is_none_of_a_timers_business, a_timer_that_is_made_when_it_is_needed,
			   what_is_wanted_is_told, what_is_wanted_twice_is_told_once, what_is_not_wanted_is_not_told,
			   a_descriptor_that_is_closed_is_refused, the_end_of_a_half_closed_stream, signals)
