/* SPDX-License-Identifier: MIT
 *
 * This program is its own errand: main() runs the errand of a case, like the daemon's main().
 */
#include "io/errand.h"

#include "base/fd.h"
#include "base/str.h"
#include "harness.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct world {
	struct loop *loop;
	struct children *all;
	struct errand e;
	struct child c;
	int ends, exits, status;
	enum errand_end end;
	struct error error;
};

static void on_done(void *arg, enum errand_end end) {
	struct world *w = arg;
	w->ends++;
	w->end = end;
	ck_assert(!errand_runs(&w->e));
	loop_stop(w->loop);
}

static void on_exited(void *arg, int status) {
	struct world *w = arg;
	w->exits++;
	w->status = status;
	loop_stop(w->loop);
}

static void begin(struct world *w) {
	*w = (struct world){.loop = loop_new(), .e = ERRAND_ZERO};
	signal(SIGPIPE, SIG_IGN);
	w->all = children_new(w->loop);
}

static void end(struct world *w) {
	errand_drop(&w->e);
	children_free(w->all);
	loop_free(w->loop);
}

static enum child_result go(struct world *w, const char *kind, const char *request, const char *place, int64_t limit) {
	struct errand_spec spec = {
		.kind = kind, .request = request, .n = strlen(request), .place = place, .limit = limit, .answer_max = 100000};
	return errand_begin(&w->e, w->all, &spec, on_done, w, &w->error);
}

static void until_done(struct world *w, enum errand_end how) {
	while (!w->ends) loop_run(w->loop);
	ck_assert_int_eq(w->ends, 1);
	ck_assert_int_eq(w->end, how);
	w->ends = 0;
}

static bool is_gone(struct world *w, pid_t pid) {
	children_reap(w->all);
	return kill(pid, 0) < 0;
}

START_TEST(answers) {
	struct world w;
	char *much = calloc(1, 70001);
	begin(&w);
	ck_assert_int_eq(go(&w, "echo", "", "/x", 60000), CHILD_OK);
	pid_t pid = w.e.own.pid;
	ck_assert(errand_runs(&w.e) && children_known(w.all, pid));
	until_done(&w, ERRAND_DONE);
	ck_assert_uint_eq(w.e.answer.len, 0);
	while (!is_gone(&w, pid)) poll(NULL, 0, 1);
	end(&w);
	begin(&w);
	memset(much, 'x', 70000);
	ck_assert_int_eq(go(&w, "echo", much, "/x", 60000), CHILD_OK);
	until_done(&w, ERRAND_DONE);
	ck_assert_uint_eq(w.e.answer.len, 70000);
	ck_assert_str_eq(w.e.answer.data, much);
	free(much);
	end(&w);
}
END_TEST

/* Another process of the same user can neither change the request nor answer in its place. */
START_TEST(is_not_reached_through_proc) {
	struct world w;
	begin(&w);
	ck_assert_int_eq(go(&w, "streams", "", "/x", 60000), CHILD_OK);
	until_done(&w, ERRAND_DONE);
	ck_assert_uint_eq(w.e.answer.len, 2);
	ck_assert_msg(memcmp(w.e.answer.data, "yy", 2) == 0, "socket, sealed: %.2s", w.e.answer.data);
	end(&w);
}
END_TEST

START_TEST(says_too_much) {
	struct world w;
	begin(&w);
	ck_assert_int_eq(go(&w, "flood", "", "/x", 60000), CHILD_OK);
	until_done(&w, ERRAND_LOST);
	end(&w);
}
END_TEST

START_TEST(takes_too_long) {
	struct world w;
	begin(&w);
	ck_assert_int_eq(go(&w, "hang", "", "/x", 10), CHILD_OK);
	pid_t pid = w.e.own.pid;
	until_done(&w, ERRAND_TIMEOUT);
	while (!is_gone(&w, pid)) poll(NULL, 0, 1);
	end(&w);
}
END_TEST

START_TEST(dropped) {
	struct world w;
	begin(&w);
	ck_assert_int_eq(go(&w, "hang", "", "/x", 60000), CHILD_OK);
	pid_t pid = w.e.own.pid;
	errand_drop(&w.e);
	errand_drop(&w.e);
	ck_assert(!errand_runs(&w.e));
	while (!is_gone(&w, pid)) poll(NULL, 0, 1);
	ck_assert_int_eq(w.ends, 0);
	end(&w);
}
END_TEST

static bool is_open(struct places *p, const char *place) {
	return places_look(p, place, 0) == PLACES_OPEN;
}

static struct world *waiting, *first;

static void on_late(void *arg, enum errand_end end) {
	struct world *w = arg;
	w->ends++;
	w->end = end;
	ck_assert(errand_runs(&waiting->e) && waiting->e.own.pid < 0);
	errand_drop(&first->e); /* makes room */
}

/* One more than a place has room for waits for its process; the limit counts meanwhile, and can end the wait. */
START_TEST(waits_for_its_turn) {
	struct world w, more[16], late, gone;
	begin(&w);
	for (int i = 0; i < 16; i++) {
		more[i] = (struct world){.loop = w.loop, .all = w.all};
		ck_assert_int_eq(go(&more[i], "hang", "", "/a", 60000), CHILD_OK);
	}
	gone = late = (struct world){.loop = w.loop, .all = w.all};
	waiting = &w;
	first = &more[0];
	ck_assert_int_eq(go(&gone, "echo", "text", "/a", 60000), CHILD_OK);
	ck_assert_int_eq(go(&w, "echo", "text", "/a", 60000), CHILD_OK);
	struct errand_spec spec = {.kind = "echo", .request = "text", .n = 4, .place = "/a", .limit = 10};
	ck_assert_int_eq(errand_begin(&late.e, w.all, &spec, on_late, &late, &late.error), CHILD_OK);
	ck_assert(errand_runs(&gone.e) && gone.e.own.pid < 0);
	errand_drop(&gone.e);
	ck_assert(!errand_runs(&gone.e));
	until_done(&w, ERRAND_DONE);
	ck_assert(late.ends == 1 && late.end == ERRAND_TIMEOUT);
	ck_assert_str_eq(w.e.answer.data, "text");
	for (int i = 1; i < 16; i++) errand_drop(&more[i].e);
	ck_assert_int_eq(gone.ends, 0);
	end(&w);
}
END_TEST

/* No new process joins those stuck at a place; other places are not affected. */
START_TEST(places) {
	static const char *const at[] = {"/dead", "/dead/b", "/", "/"};
	struct world w, more[4];
	begin(&w);
	for (int i = 0; i < 4; i++) {
		more[i] = (struct world){.loop = w.loop, .all = w.all};
		ck_assert_int_eq(go(&more[i], "hang", "", at[i], 60000), CHILD_OK);
	}
	struct places *p = children_places(w.all);
	poll(NULL, 0, 1100);
	ck_assert(is_open(p, "/dead/b/c")); /* they are slow, and may return within their limits */
	for (int i = 0; i < 2; i++) places_left(p, more[i].e.own.pid);
	ck_assert(!is_open(p, "/dead/b/c"));
	ck_assert(is_open(p, "/dead/a")); /* only one of the two is known to be stuck above it */
	ck_assert(is_open(p, "/deadly") && is_open(p, "/"));
	ck_assert_int_eq(go(&w, "echo", "", "/dead/b/c", 60000), CHILD_TIMEOUT);
	ck_assert_msg(strstr(w.error.text, "/dead/b/c does not answer"), "%s", w.error.text);
	ck_assert_int_eq(go(&w, "echo", "", "/live", 60000), CHILD_OK);
	until_done(&w, ERRAND_DONE);
	for (int i = 2; i < 4; i++) places_left(p, more[i].e.own.pid);
	ck_assert(!is_open(p, "/"));
	ck_assert(is_open(p, "/live")); /* the root does not stand for anything below it */
	for (int i = 0; i < 4; i++) {
		pid_t pid = more[i].e.own.pid;
		errand_drop(&more[i].e);
		while (!is_gone(&w, pid)) poll(NULL, 0, 1);
	}
	ck_assert(is_open(p, "/dead/b/c"));
	end(&w);
}
END_TEST

static void become(struct world *w, const char *script) {
	static const struct child_spec none = {.no_pipes = true};
	struct errand_spec spec = {.kind = "become",
							   .request = script,
							   .n = strlen(script),
							   .place = "/",
							   .limit = 60000,
							   .answer_max = 10000,
							   .streams = &none,
							   .becomes = &w->c};
	w->c = (struct child){.exited = on_exited, .arg = w};
	ck_assert_int_eq(errand_begin(&w->e, w->all, &spec, on_done, w, &w->error), CHILD_OK);
}

/* Its exit is reported after its start, whichever is seen first. */
START_TEST(becomes_a_program) {
	struct world w;
	begin(&w);
	become(&w, "exit 3");
	pid_t pid = w.c.pid;
	until_done(&w, ERRAND_DONE);
	while (!w.exits) children_reap(w.all);
	ck_assert_int_eq(w.exits, 1);
	ck_assert_int_eq(WEXITSTATUS(w.status), 3);
	ck_assert(!children_known(w.all, pid));
	end(&w);
	begin(&w);
	become(&w, "exit 4");
	waitid(P_PID, (id_t)w.c.pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
	children_reap(w.all);
	ck_assert(w.ends == 1 && w.exits == 1 && w.end == ERRAND_DONE);
	ck_assert_int_eq(WEXITSTATUS(w.status), 4);
	end(&w);
}
END_TEST

static void on_turn(void *arg, enum places_state state) {
	(void)arg;
	ck_assert_int_eq(state, PLACES_OPEN);
}

/* A start is not given up while the queue moves: its limit begins anew. */
START_TEST(a_start_waits_in_a_queue_that_moves) {
	struct world w;
	struct places_turn turn;
	struct errand_spec spec = {
		.kind = "become", .request = "", .place = "/a", .limit = 100, .answer_max = 100, .becomes = &w.c};
	begin(&w);
	struct places *p = children_places(w.all);
	for (int i = 0; i < 16; i++) ck_assert(places_out(p, INT_MAX - i, "/a", 0));
	w.c = (struct child){.exited = on_exited, .arg = &w};
	int64_t begun = now_ms();
	ck_assert_int_eq(errand_begin(&w.e, w.all, &spec, on_done, &w, &w.error), CHILD_OK);
	ck_assert(places_wait(p, &turn, "/free", 0, false, on_turn, NULL));
	loop_finish(w.loop);
	ck_assert_uint_eq(places_served(p), 1);
	until_done(&w, ERRAND_TIMEOUT); /* the queue stands still */
	ck_assert_int_ge(now_ms() - begun, 190);
	end(&w);
}
END_TEST

START_TEST(texts) {
	struct buf b = BUF_INIT(100);
	errand_put(&b, "one");
	errand_put(&b, "");
	buf_puts(&b, "half");
	const char *at = b.data, *stop = b.data + b.len;
	ck_assert_str_eq(errand_next(&at, stop), "one");
	ck_assert_str_eq(errand_next(&at, stop), "");
	ck_assert_ptr_null(errand_next(&at, stop));
	at = stop = NULL;
	ck_assert_ptr_null(errand_next(&at, stop));
	buf_free(&b);
}
END_TEST

/* --- as an errand ------------------------------------------------------------------------------------------------- */

static void on_found(void *arg, const struct child_place *place, const char *file) {
	(void)arg, (void)file;
	errand_say(place, sizeof *place);
}

static void say_streams(void) {
	struct stat st;
	int seals = fcntl(CHILD_ERRAND_REQUEST, F_GET_SEALS), all = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
	bool socket = fstat(CHILD_ERRAND_ANSWER, &st) == 0 && S_ISSOCK(st.st_mode);
	errand_say(socket ? "y" : "n", 1);
	errand_say(seals >= 0 && (seals & all) == all ? "y" : "n", 1);
}

static int run_errand(const char *kind) {
	struct error error;
	size_t n;
	char *request = errand_request(&n);
	if (strcmp(kind, "echo") == 0) errand_say(request, n);
	if (strcmp(kind, "streams") == 0) say_streams();
	if (strcmp(kind, "hang") == 0) pause();
	for (int i = 0; strcmp(kind, "flood") == 0; i++) errand_say("0123456789", 10);
	char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, request, NULL};
	if (strcmp(kind, "become") == 0)
		child_become(&(struct child_spec){.argv = argv, .envp = argv + 3, .cwd = "/"}, on_found, NULL, &error);
	free(request);
	return 0;
}

int main(int argc, char **argv) {
	const TTest *const tests[] = {
		answers, is_not_reached_through_proc, says_too_much,      takes_too_long, dropped,
		places,  becomes_a_program,           waits_for_its_turn, texts,          a_start_waits_in_a_queue_that_moves};
	return argc == 3 ? run_errand(argv[2]) : run_tests("errand", NULL, NULL, tests, ARRAY_SIZE(tests));
}
