/* SPDX-License-Identifier: MIT */
#include "core/agent.h"

#include "base/str.h"
#include "harness.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
	struct loop *loop;
	struct children *children;
	struct lines_pool pool;
	struct agent *a;
	struct queue in;
	struct buf heard, errors;
	int lines, long_lines, lost, reads, muted, unwatched, exits, ends;
	size_t long_size;
	void (*first)(struct world *w); /* called at the first line */
};

static void on_line(void *arg, struct chunk line) {
	struct world *w = arg;
	buf_put(&w->heard, line.data, line.len);
	buf_putc(&w->heard, '|');
	if (++w->lines == 1 && w->first) w->first(w);
}

static void on_long_line(void *arg, struct chunk head, size_t size) {
	struct world *w = arg;
	ck_assert_uint_le(head.len, size);
	w->long_lines++;
	w->long_size = size;
}

static void on_line_lost(void *arg) {
	struct world *w = arg;
	w->lost++;
}

static void on_read_done(void *arg) {
	struct world *w = arg;
	w->reads++;
}

static void on_stderr(void *arg, const char *data, size_t n) {
	struct world *w = arg;
	buf_put(&w->errors, data, n);
}

static void on_may_write(void *arg) {
	struct world *w = arg;
	agent_write(w->a, &w->in);
}

static void on_unwatched(void *arg) {
	struct world *w = arg;
	w->unwatched++;
	child_kill(&w->a->child, SIGKILL);
}

static void on_muted(void *arg) {
	struct world *w = arg;
	ck_assert(w->a->eof && w->a->child.out == -1);
	w->muted++;
	child_kill(&w->a->child, SIGKILL);
}

static void on_exited(void *arg) {
	struct world *w = arg;
	w->exits++;
}

static void on_ended(void *arg) {
	struct world *w = arg;
	w->ends++;
	loop_stop(w->loop);
}

static const struct agent_events events = {on_line,      on_long_line, on_line_lost, on_read_done, on_stderr,
										   on_may_write, on_muted,     on_exited,    on_ended,     on_unwatched};

static void init_timers(struct world *w) {
	struct loop_timer *timers[] = {&w->a->stop_timer, &w->a->idle_timer, &w->a->warm_timer, &w->a->pace_timer};
	for (size_t i = 0; i < ARRAY_SIZE(timers); i++) loop_timer_init(timers[i], w->loop, NULL, NULL);
}

static void begin(struct world *w, size_t max_line, size_t read_max) {
	*w = (struct world){.loop = loop_new(), .heard = BUF_INIT(1 << 24), .errors = BUF_INIT(1 << 24)};
	signal(SIGPIPE, SIG_IGN);
	w->children = children_new(w->loop);
	w->a = agent_new(w->loop, &w->pool, max_line, read_max, &events, w);
	init_timers(w);
	queue_init(&w->in, 1 << 24);
}

static void start(struct world *w, const char *script) {
	static char path[] = "PATH=/usr/bin:/bin", *const env[] = {path, NULL};
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct child_spec spec = {.argv = (char *const *)(uintptr_t)argv, .envp = env, .cwd = "/"};
	struct error error;
	ck_assert_msg(child_spawn(&w->a->child, w->children, &spec, &error) == CHILD_OK, "%s", error.text);
}

static void spawn(struct world *w, const char *script) {
	start(w, script);
	agent_run(w->a);
}

static void finish(struct world *w) {
	ck_assert_int_eq(w->lost, 0);
	agent_free(w->a);
	loop_finish(w->loop);
	queue_free(&w->in);
	buf_free(&w->heard);
	buf_free(&w->errors);
	lines_pool_free(&w->pool);
	children_free(w->children);
	loop_free(w->loop);
}

static void heard(struct world *w, const char *text) {
	ck_assert_str_eq(w->heard.data ? w->heard.data : "", text);
}

static void put(struct world *w, const char *text) {
	ck_assert(queue_put(&w->in, chunk_copy(text, strlen(text))));
}

START_TEST(lines_then_the_end) {
	struct world w;
	begin(&w, 1000, 1 << 16);
	spawn(&w, "printf '\\357\\273\\277one\\n\\357\\273\\277two\\nhal'; echo oh >&2; exit 3");
	loop_run(w.loop);
	ck_assert(w.ends == 1 && w.exits == 1 && w.a->exited && w.a->eof && w.reads > 0);
	ck_assert_int_eq(WEXITSTATUS(w.a->exit_status), 3);
	ck_assert(w.a->started_at <= w.a->heard_at && w.a->started_at <= w.a->exited_at);
	heard(&w, "one\n|\xef\xbb\xbftwo\n|hal|"); /* only a byte order mark before the first line is skipped */
	ck_assert_str_eq(w.errors.data, "oh\n");
	ck_assert(w.a->child.in == -1 && w.a->child.out == -1 && w.a->child.err == -1);
	finish(&w);
}
END_TEST

/* A file in place of a pipe that cannot be watched for lack of memory: epoll refuses both. */
START_TEST(cannot_be_watched) {
	struct world w;
	begin(&w, 1000, 1 << 16);
	start(&w, "exec sleep 600");
	int file = memfd_create("file", MFD_CLOEXEC);
	ck_assert_int_ge(file, 0);
	ck_assert_int_ge(dup2(file, w.a->child.out), 0);
	close(file);
	agent_run(w.a);
	loop_run(w.loop);
	ck_assert(w.unwatched == 1 && w.ends == 1 && w.exits == 1);
	ck_assert_int_eq(WTERMSIG(w.a->exit_status), SIGKILL);
	finish(&w);
}
END_TEST

static void close_it(struct world *w) {
	ck_assert(agent_hears(w->a));
	agent_close_in(w->a);
	ck_assert(!agent_hears(w->a));
}

START_TEST(writes_and_is_heard) {
	struct world w;
	begin(&w, 1 << 20, 1 << 16);
	w.first = close_it;
	spawn(&w, "cat");
	put(&w, "a\n");
	put(&w, "b\n");
	ck_assert(agent_write(w.a, &w.in));
	loop_run(w.loop);
	heard(&w, "a\n|b\n|");
	ck_assert(w.ends == 1 && WIFEXITED(w.a->exit_status) && WEXITSTATUS(w.a->exit_status) == 0);
	finish(&w);
}
END_TEST

/* More than the pipe holds: the rest is written when it has room. */
START_TEST(a_full_pipe_goes_on) {
	static char big[3000001];
	struct world w;
	begin(&w, 1 << 22, 1 << 16);
	memset(big, 'x', sizeof big - 2);
	big[sizeof big - 2] = '\n';
	spawn(&w, "read x; head -c 3000000 | wc -c");
	put(&w, "go\n");
	put(&w, big);
	child_kill(&w.a->child, SIGSTOP); /* it reads nothing meanwhile, however slow the test is */
	ck_assert(agent_write(w.a, &w.in));
	ck_assert(w.in.bytes > 0);
	child_kill(&w.a->child, SIGCONT);
	loop_run(w.loop);
	heard(&w, "3000000\n|");
	ck_assert(w.in.bytes == 0 && w.ends == 1);
	finish(&w);
}
END_TEST

static void write_in_vain(struct world *w) {
	put(w, "a\n");
	ck_assert(!agent_write(w->a, &w->in));
	ck_assert(!agent_hears(w->a));
	child_kill(&w->a->child, SIGKILL);
}

START_TEST(stdin_that_is_closed_is_told) {
	struct world w;
	begin(&w, 1000, 1 << 16);
	w.first = write_in_vain;
	spawn(&w, "exec <&-; echo closed; while :; do sleep 0.01; done");
	loop_run(w.loop);
	ck_assert(w.ends == 1 && WTERMSIG(w.a->exit_status) == SIGKILL);
	finish(&w);
}
END_TEST

START_TEST(stdout_that_is_closed_is_told) {
	struct world w;
	begin(&w, 1000, 1 << 16);
	spawn(&w, "echo one; exec >&-; while :; do sleep 0.01; done");
	loop_run(w.loop);
	ck_assert(w.muted == 1 && w.ends == 1 && WTERMSIG(w.a->exit_status) == SIGKILL);
	heard(&w, "one\n|");
	finish(&w);
}
END_TEST

/* Output held open by another process delays the end by at most a second. */
START_TEST(output_that_stays_open) {
	struct world w;
	begin(&w, 1000, 1 << 16);
	spawn(&w, "setsid sh -c 'echo $$; exec sleep 1000' & read x");
	w.first = close_it;
	loop_run(w.loop);
	ck_assert(w.ends == 1 && w.exits == 1 && !w.a->eof && w.lines == 1);
	ck_assert_int_eq(w.a->child.out, -1);
	kill((pid_t)atol(w.heard.data), SIGKILL);
	finish(&w);
}
END_TEST

static void pause_it(struct world *w) {
	agent_read(w->a, false);
	ck_assert(w->a->read_paused);
	agent_close_in(w->a);
}

static void read_on_at_its_end(void *arg) {
	struct world *w = arg;
	w->exits++;
	ck_assert_int_eq(w->lines, 1);
	w->reads = 0;
	agent_read(w->a, true);
	ck_assert(!w->a->read_paused);
}

/* Like its owner: lines may be left for the next turn. */
static void go_on(void *arg) {
	struct world *w = arg;
	w->reads++;
	agent_read(w->a, !w->a->read_paused);
}

START_TEST(waits_for_its_readers) {
	struct agent_events own = events;
	struct world w;
	begin(&w, 1000, 4096);
	own.exited = read_on_at_its_end;
	own.read_done = go_on;
	w.a->events = &own;
	w.first = pause_it;
	spawn(&w, "echo first; read x; yes 123456789 | head -n 2000");
	loop_run(w.loop);
	ck_assert_int_eq(w.lines, 2001);
	ck_assert_int_ge(w.reads, 20000 / 4096); /* each read is within its limit */
	finish(&w);
}
END_TEST

START_TEST(a_long_line_is_reported_once) {
	struct world w;
	begin(&w, 1000, 4096);
	spawn(&w, "head -c 50000 /dev/zero | tr '\\0' x; echo; echo ok; head -c 7000 /dev/zero | tr '\\0' y");
	loop_run(w.loop);
	ck_assert_int_eq(w.long_lines, 2); /* including the one cut by the end */
	ck_assert_uint_eq(w.long_size, 7000);
	heard(&w, "ok\n|");
	finish(&w);
}
END_TEST

static void take_time(void *arg, struct chunk line) {
	struct world *w = arg;
	on_line(arg, line);
	while (!loop_must_yield(w->loop)) {}
}

static void note_turns(void *arg) {
	struct world *w = arg;
	w->reads = (int)loop_turns(w->loop)->n;
	on_ended(arg);
}

/* Lines that take a turn each are reported in a turn each: the end is reported after the last of them. */
START_TEST(the_last_output_takes_many_turns) {
	struct agent_events own = events;
	struct world w;
	begin(&w, 1000, 1 << 16);
	own.line = take_time;
	own.read_done = on_exited; /* does nothing: reading continues only at the end */
	own.ended = note_turns;
	w.a->events = &own;
	spawn(&w, "seq 200; echo no >&2; read x");
	agent_read(w.a, false);
	agent_close_in(w.a);
	loop_run(w.loop);
	ck_assert_int_eq(w.lines, 200);
	ck_assert_int_eq(w.a->child.out, -1);
	ck_assert_str_eq(w.errors.data, "no\n");
	ck_assert_int_ge(w.reads, 200 / 8); /* several lines between two looks at the clock */
	finish(&w);
}
END_TEST

static void free_it(void *arg, struct chunk line) {
	struct world *w = arg;
	(void)line;
	agent_free(w->a);
	loop_stop(w->loop);
}

/* Freed in its own callback with its process alive: the process continues, and is reaped at its end. */
START_TEST(freed_in_its_own_callback) {
	struct agent_events own = events;
	struct world w;
	begin(&w, 1000, 4096);
	own.line = free_it;
	w.a->events = &own;
	spawn(&w, "echo a; read x");
	int in = w.a->child.in, out = w.a->child.out, err = w.a->child.err;
	pid_t pid = w.a->child.pid;
	loop_run(w.loop);
	ck_assert(!children_known(w.children, pid));
	close(in), close(out), close(err);
	while (kill(pid, 0) == 0) children_reap(w.children);
	ck_assert_int_eq(w.ends + w.exits, 0);
	w.a = agent_new(w.loop, &w.pool, 1, 1, &events, &w); /* an agent without a process can be freed, too */
	init_timers(&w);
	finish(&w);
}
END_TEST

RUN_TESTS("agent", lines_then_the_end, cannot_be_watched, writes_and_is_heard, a_full_pipe_goes_on,
		  stdin_that_is_closed_is_told, stdout_that_is_closed_is_told, output_that_stays_open, waits_for_its_readers,
		  the_last_output_takes_many_turns, a_long_line_is_reported_once, freed_in_its_own_callback)
