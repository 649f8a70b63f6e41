/* SPDX-License-Identifier: MIT */
#include "io/listen.h"

#include "base/str.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#define CLIENTS 100

struct world {
	struct loop *loop;
	struct loop_timer tick;
	struct listener *l;
	char dir[32], path[64];
	struct error error;
	int fds[CLIENTS], n; /* accepted connections */
	struct peer peer;
	int pidfd; /* watch: of the last one */
	bool watch;
	int stop_at;
	bool (*done)(const struct world *w); /* until() waits for it */
};

/* The errno of flock(2); 0: call the kernel. */
static int lock_errno;

int flock(int fd, int operation) {
	errno = lock_errno;
	return lock_errno ? -1 : (int)syscall(SYS_flock, fd, operation);
}

static bool out_of_memory;

char *strdup(const char *text) {
	size_t n = strlen(text) + 1;
	char *copy = out_of_memory ? NULL : malloc(n);
	return copy ? memcpy(copy, text, n) : NULL;
}

static void on_tick(void *arg) {
	struct world *w = arg;
	if (w->done(w))
		loop_stop(w->loop);
	else
		loop_timer_set(&w->tick, 1);
}

static void begin(struct world *w) {
	*w = (struct world){.dir = "/tmp/pl-XXXXXX", .pidfd = -1};
	ck_assert(mkdtemp(w->dir));
	snprintf(w->path, sizeof w->path, "%s/p/sock", w->dir);
	umask(022);
}

static void accepted(void *arg, int fd, const struct peer *peer) {
	struct world *w = arg;
	w->fds[w->n++] = fd;
	w->peer = *peer;
	if (w->watch) w->pidfd = listen_watch_peer(w->l, fd, peer);
	if (w->n == w->stop_at) loop_stop(w->loop);
}

static enum listen_result open_at(struct world *w, const char *path, mode_t mode) {
	if (!w->loop) w->loop = loop_new();
	w->error.text[0] = 0;
	enum listen_result r = listen_claim(&w->l, w->loop, path, -1, mode, accepted, w, &w->error);
	if (r == LISTEN_OK && !listen_begin(w->l, &w->error)) r = LISTEN_FAILED;
	ck_assert_int_eq(r == LISTEN_OK, !w->error.text[0]);
	if (r != LISTEN_OK) w->l = NULL;
	return r;
}

static void opens(struct world *w) {
	ck_assert_msg(open_at(w, w->path, 0600) == LISTEN_OK, "%s", w->error.text);
}

/* A stopped loop has ended: the listener continues in another one, as in the next binary. */
static void resume(struct world *w) {
	struct listen_parts parts;
	listen_suspend(w->l, &parts);
	parts.fd = dup(parts.fd);
	parts.lock = parts.lock < 0 ? -1 : dup(parts.lock);
	char other[80];
	snprintf(other, sizeof other, "%s.kept", w->path);
	(void)!rename(w->path, other); /* so that closing the old one keeps it */
	listen_close(w->l);
	(void)!rename(other, w->path);
	loop_free(w->loop);
	w->loop = loop_new();
	w->l = listen_resume(w->loop, w->path, &parts, accepted, w);
	ck_assert_ptr_nonnull(w->l);
}

static void drop(struct world *w) {
	for (int i = 0; i < w->n; i++) close(w->fds[i]);
	w->n = 0;
}

static void end(struct world *w) {
	char path[80];
	drop(w);
	listen_close(w->l);
	if (w->loop) loop_free(w->loop);
	unlink(w->path);
	snprintf(path, sizeof path, "%s.lock", w->path);
	unlink(path);
	snprintf(path, sizeof path, "%s/p", w->dir);
	(void)(rmdir(path) == 0 || unlink(path));
	ck_assert_int_eq(rmdir(w->dir), 0); /* it is empty */
}

static int dial(const char *path) {
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strcpy(to.sun_path, path);
	if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
	close(fd);
	return -1;
}

/* Run until n connections were accepted in this loop. */
static void run(struct world *w, int n) {
	w->stop_at = n;
	if (w->n < n) loop_run(w->loop);
	ck_assert_int_eq(w->n, n);
}

/* Run until it is so, however many turns that takes: on a busy machine the time of a turn may be over at any point. */
static void until(struct world *w, bool (*done)(const struct world *w)) {
	loop_timer_init(&w->tick, w->loop, on_tick, w);
	loop_timer_set(&w->tick, 0);
	w->stop_at = -1;
	w->done = done;
	loop_run(w->loop);
	ck_assert(done(w));
}

static mode_t mode_of(const char *path) {
	struct stat st;
	return lstat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

static char *in_dir(struct world *w, const char *name) {
	static char path[100];
	snprintf(path, sizeof path, "%s/%s", w->dir, name);
	return path;
}

static struct world w;

static void setup(void) {
	begin(&w);
}

static void teardown(void) {
	end(&w);
}

START_TEST(connections) {
	opens(&w);
	ck_assert_str_eq(listen_path(w.l), w.path);
	ck_assert_uint_eq(mode_of(w.path), 0600);
	ck_assert_uint_eq(mode_of(in_dir(&w, "p")), 0700);
	int mine = dial(w.path);
	ck_assert_int_ge(mine, 0);
	run(&w, 1);
	ck_assert(fcntl(w.fds[0], F_GETFL) & O_NONBLOCK && fcntl(w.fds[0], F_GETFD) & FD_CLOEXEC);
	ck_assert(w.peer.pid == getpid() && w.peer.uid == geteuid());
	ck_assert_int_eq(write(mine, "x", 1), 1);
	ck_assert_int_eq(read(w.fds[0], (char[2]){0}, 2), 1);
	close(mine);
	listen_close(w.l);
	w.l = NULL;
	ck_assert_int_eq(access(w.path, F_OK), -1);
	listen_close(NULL);
}
END_TEST

START_TEST(modes_whatever_the_umask_is) {
	static const struct {
		mode_t mode, folder, mask;
	} table[] = {{0600, 0700, 0}, {0600, 0700, 0777}, {0660, 0755, 0077}, {0666, 0755, 0}};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct world each;
		begin(&each);
		mode_t before = umask(table[i].mask);
		ck_assert_msg(open_at(&each, each.path, table[i].mode) == LISTEN_OK, "%s", each.error.text);
		ck_assert_uint_eq(umask(before), table[i].mask);
		ck_assert_uint_eq(mode_of(each.path), table[i].mode);
		ck_assert_uint_eq(mode_of(in_dir(&each, "p")), table[i].folder);
		end(&each);
	}
}
END_TEST

static void fails(struct world *in, const char *path, enum listen_result want, const char *say) {
	enum listen_result have = open_at(in, path, 0600);
	ck_assert_msg(have == want && strstr(in->error.text, say), "%d, not %d: %s (%s)", (int)have, (int)want,
				  in->error.text, say);
}

START_TEST(folders_of_which_we_are_not_sure) {
	char long_path[200];
	fails(&w, "relative/sock", LISTEN_FAILED, "is not absolute");
	fails(&w, in_dir(&w, "no/such/sock"), LISTEN_FAILED, "cannot make the socket's directory");
	memset(long_path, 'x', sizeof long_path - 1);
	long_path[0] = '/';
	long_path[sizeof long_path - 1] = 0;
	fails(&w, long_path, LISTEN_FAILED, "has 199 bytes, the kernel takes at most 107");
	mkdir(in_dir(&w, "p"), 0700);
	chmod(in_dir(&w, "p"), 0750);
	fails(&w, w.path, LISTEN_FAILED, "mode 0750: it must be a directory of uid");
	chmod(in_dir(&w, "p"), 0777);
	fails(&w, w.path, LISTEN_FAILED, "mode 0777");
	ck_assert_int_eq(access(w.path, F_OK), -1);
	rmdir(in_dir(&w, "p"));
	mkdir(in_dir(&w, "q"), 0700);
	ck_assert_int_eq(symlink("q", in_dir(&w, "p")), 0);
	fails(&w, w.path, LISTEN_FAILED, "is a symbolic link");
	rmdir(in_dir(&w, "q"));
	unlink(in_dir(&w, "p"));
	close(open(in_dir(&w, "p"), O_CREAT | O_WRONLY, 0600));
	fails(&w, w.path, LISTEN_FAILED, "is no directory");
}
END_TEST

START_TEST(one_daemon_at_a_place) {
	struct world other;
	opens(&w);
	other = w;
	char want[100];
	snprintf(want, sizeof want, "already running as pid %d: another plenumd holds", (int)getpid());
	fails(&other, w.path, LISTEN_RUNNING, want);
	unlink(w.path); /* not even if the file is gone */
	fails(&other, w.path, LISTEN_RUNNING, want);
	listen_close(w.l);
	w.l = NULL;
	opens(&w);
}
END_TEST

/* A failing lock is not the lock of another daemon. */
START_TEST(a_place_that_cannot_be_locked) {
	static const int numbers[] = {ENOLCK, ENOSYS, EACCES, EIO, EBADF};
	char want[120];
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		lock_errno = numbers[i];
		snprintf(want, sizeof want, "cannot lock %s.lock: %s", w.path, strerror(numbers[i]));
		fails(&w, w.path, LISTEN_FAILED, want);
		ck_assert_ptr_null(strstr(w.error.text, "already running"));
	}
	lock_errno = 0;
	opens(&w);
}
END_TEST

/* A claimed place is refused to others, and has nothing yet to connect to. */
START_TEST(a_place_is_claimed_before_it_is_open) {
	struct world other;
	w.loop = loop_new();
	ck_assert_int_eq(listen_claim(&w.l, w.loop, w.path, -1, 0600, accepted, &w, &w.error), LISTEN_OK);
	ck_assert_int_ne(access(w.path, F_OK), 0);
	other = w;
	fails(&other, w.path, LISTEN_RUNNING, "already running");
	listen_close(w.l); /* dropped before it was open */
	opens(&w);
}
END_TEST

static int bind_here(const char *path, bool listens) {
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strcpy(at.sun_path, path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	if (listens) ck_assert_int_eq(listen(fd, 1), 0);
	return fd;
}

START_TEST(what_is_in_the_way) {
	mkdir(in_dir(&w, "p"), 0700);
	int alive = bind_here(w.path, true); /* without a lock: of another daemon */
	fails(&w, w.path, LISTEN_RUNNING, "another daemon answers on this socket");
	ck_assert_int_ge(dial(w.path), 0);
	fails(&w, w.path, LISTEN_RUNNING, "answers"); /* its queue may be full by now */
	close(alive);
	opens(&w); /* now it is stale */
	int mine = dial(w.path);
	ck_assert_int_ge(mine, 0);
	close(mine);
	listen_close(w.l);
	FILE *f = fopen(w.path, "w");
	ck_assert(f && fputs("precious", f) >= 0 && fclose(f) == 0);
	fails(&w, w.path, LISTEN_FAILED, "is in the way and is no socket");
	struct stat st;
	ck_assert(stat(w.path, &st) == 0 && st.st_size == 8);
	unlink(w.path);
	ck_assert_int_eq(symlink("/dev/null", w.path), 0);
	fails(&w, w.path, LISTEN_FAILED, "is in the way");
}
END_TEST

/* The lock is not taken through a symbolic link. */
START_TEST(the_lock_is_no_link) {
	mkdir(in_dir(&w, "p"), 0700);
	ck_assert_int_eq(symlink("/dev/null", in_dir(&w, "p/sock.lock")), 0);
	fails(&w, w.path, LISTEN_FAILED, "cannot open the lock file");
}
END_TEST

START_TEST(a_lack_of_memory_is_reported) {
	w.loop = loop_new();
	out_of_memory = true;
	fails(&w, w.path, LISTEN_FAILED, "out of memory");
	out_of_memory = false;
	opens(&w);
	unlink(w.path);
	out_of_memory = true;
	ck_assert(!listen_renew(w.l, &w.error));
	out_of_memory = false;
	ck_assert_str_eq(w.error.text, "out of memory");
}
END_TEST

static bool is_file(const char *path) {
	return access(path, F_OK) == 0;
}

static bool is_made(const struct world *in) {
	return is_file(in->path);
}

START_TEST(only_our_own_file_is_unlinked) {
	opens(&w);
	unlink(w.path);
	int other = bind_here(w.path, true);
	ck_assert(!listen_renew(w.l, &w.error)); /* and it is not removed */
	ck_assert_msg(strstr(w.error.text, "was taken by another file"), "%s", w.error.text);
	listen_close(w.l);
	w.l = NULL;
	ck_assert(is_file(w.path));
	ck_assert(is_file(in_dir(&w, "p/sock.lock")));
	close(other);
}
END_TEST

/* By inotify the deletion is seen. Other programs of this user may have all instances, and without one the listener
 * goes on: wait until one is free. */
static void wait_for_inotify(void) {
	int fd;
	while ((fd = inotify_init1(IN_CLOEXEC)) < 0) poll(NULL, 0, 10);
	close(fd);
}

/* A deleted file, with its directory or without, is made again as soon as the loop runs. */
START_TEST(a_file_that_disappears_is_made_again) {
	wait_for_inotify();
	opens(&w);
	ck_assert(listen_renew(w.l, &w.error)); /* it exists */
	unlink(w.path);
	until(&w, is_made);
	ck_assert_uint_eq(mode_of(w.path), 0600);
	int mine = dial(w.path);
	ck_assert_int_ge(mine, 0);
	resume(&w);
	run(&w, 1);
	close(mine);
	resume(&w);
	unlink(w.path);
	unlink(in_dir(&w, "p/sock.lock"));
	rmdir(in_dir(&w, "p"));
	until(&w, is_made);
	ck_assert_uint_eq(mode_of(in_dir(&w, "p")), 0700);
	ck_assert_uint_eq(mode_of(w.path), 0600);
	resume(&w);
	unlink(w.path);
	ck_assert(listen_renew(w.l, &w.error)); /* at once, by a signal */
	mine = dial(w.path);
	ck_assert_int_ge(mine, 0);
	drop(&w);
	run(&w, 1);
	close(mine);
}
END_TEST

struct dialler {
	pthread_t thread;
	const char *path;
	atomic_bool stop;
	atomic_int met, refused;
};

static void *dial_all_the_time(void *arg) {
	struct dialler *d = arg;
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	strcpy(to.sun_path, d->path);
	while (!d->stop) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		bool met = connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EAGAIN; /* EAGAIN: too many of us */
		d->refused += !met && errno == ECONNREFUSED;
		d->met += met;
		close(fd);
	}
	return NULL;
}

/* A client that waits for the file and then connects is never too early. */
START_TEST(nobody_is_refused_at_a_file_that_is_there) {
	struct listen_parts parts;
	int kept[100]; /* the old sockets stay open: a client connecting to one is not refused */
	opens(&w);
	struct dialler d = {.path = w.path};
	ck_assert_int_eq(pthread_create(&d.thread, NULL, dial_all_the_time, &d), 0);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		listen_suspend(w.l, &parts);
		kept[i] = dup(parts.fd);
		unlink(w.path);
		ck_assert_msg(listen_renew(w.l, &w.error), "%s", w.error.text);
		for (int met = d.met; d.met == met;) sched_yield();
	}
	d.stop = true;
	pthread_join(d.thread, NULL);
	ck_assert_int_eq(d.refused, 0);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) close(kept[i]);
}
END_TEST

/* The leftovers of a daemon killed at that moment do no harm. */
START_TEST(a_file_that_got_no_name_is_replaced) {
	mkdir(in_dir(&w, "p"), 0700);
	close(open(in_dir(&w, "p/sock.new"), O_CREAT | O_CLOEXEC, 0600));
	opens(&w);
	ck_assert_uint_eq(mode_of(w.path), 0600);
	ck_assert_uint_eq(mode_of(in_dir(&w, "p/sock.new")), 0);
}
END_TEST

START_TEST(an_inherited_socket_is_left_alone) {
	mkdir(in_dir(&w, "p"), 0700);
	int fd = bind_here(w.path, true);
	w.loop = loop_new();
	ck_assert_int_eq(listen_claim(&w.l, w.loop, w.path, fd, 0600, accepted, &w, &w.error), LISTEN_OK);
	ck_assert(listen_begin(w.l, &w.error));
	int mine = dial(w.path);
	run(&w, 1);
	close(mine);
	unlink(w.path);
	ck_assert(listen_renew(w.l, &w.error)); /* it belongs to the service manager */
	ck_assert(!is_file(w.path));
	close(open(w.path, O_CREAT | O_WRONLY, 0600));
	listen_close(w.l);
	w.l = NULL;
	ck_assert(is_file(w.path));
	ck_assert(!is_file(in_dir(&w, "p/sock.lock")));
}
END_TEST

/* Each ready descriptor was served by now, also one that waited for its turn. */
static bool has_turned(const struct world *in) {
	return loop_turns(in->loop)->n >= 10;
}

START_TEST(pausing) {
	opens(&w);
	listen_pause(w.l);
	int mine = dial(w.path); /* in the kernel's queue, not accepted */
	listen_fd_freed(w.l);
	unlink(w.path);
	until(&w, has_turned);
	ck_assert_int_eq(w.n, 0);
	ck_assert(!is_file(w.path));
	close(mine);
}
END_TEST

START_TEST(goes_on_in_the_next_binary) {
	struct world other;
	struct listen_parts parts;
	opens(&w);
	listen_suspend(w.l, &parts);
	ck_assert(parts.fd >= 0 && parts.lock >= 0 && parts.mode == 0600);
	int mine = dial(w.path); /* one connects in between */
	resume(&w);
	run(&w, 1);
	close(mine);
	other = w;
	fails(&other, w.path, LISTEN_RUNNING, "already running"); /* the lock was passed on, too */
	listen_close(w.l);
	w.l = NULL;
	ck_assert(!is_file(w.path));
}
END_TEST

/* --- no descriptors ----------------------------------------------------------------------------------------------- */

static int hoard[5000], n_hoard;

/* Use up all descriptors but some. */
static void take_all_but(int some) {
	for (n_hoard = 0; n_hoard < 5000 && (hoard[n_hoard] = dup(0)) >= 0;) n_hoard++;
	ck_assert_int_lt(n_hoard, 5000);
	while (some--) close(hoard[--n_hoard]);
}

static void give_back(int some) {
	while (n_hoard && some--) close(hoard[--n_hoard]);
}

static bool was_refused(const struct world *in) {
	return listen_refused(in->l) > 0;
}

/* A client that cannot be watched is not accepted; the reserved descriptor lets the last one be watched. */
START_TEST(the_last_descriptors) {
	struct rlimit before;
	int mine[2];
	getrlimit(RLIMIT_NOFILE, &before);
	opens(&w);
	w.watch = true;
	mine[0] = dial(w.path);
	mine[1] = dial(w.path);
	ck_assert(mine[0] >= 0 && mine[1] >= 0);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){MIN(before.rlim_max, (rlim_t)300), before.rlim_max});
	take_all_but(1);
	until(&w, was_refused);
	ck_assert_int_eq(w.n, 1); /* one for the connection, and the reserved one for its pidfd */
	ck_assert(fd_pidfd_alive(w.pidfd));
	ck_assert_uint_eq(listen_refused(w.l), 1); /* the other one waits */
	ck_assert_int_eq(listen_watch_peer(w.l, w.fds[0], &w.peer), -1);
	ck_assert_int_eq(errno, EMFILE);
	close(w.pidfd);
	give_back(n_hoard);
	for (int i = 0; i < 2; i++) close(mine[i]);
	setrlimit(RLIMIT_NOFILE, &before);
}
END_TEST

static void free_some(void *arg) {
	struct world *in = arg;
	ck_assert_int_eq(in->n, 0);
	if (!was_refused(in) || !has_turned(in)) {
		loop_timer_set(&in->tick, 1);
		return;
	}
	ck_assert_uint_lt(listen_refused(in->l), 5); /* not in each turn */
	give_back(n_hoard);
	listen_fd_freed(in->l);
}

START_TEST(accepting_backs_off) {
	struct rlimit before;
	getrlimit(RLIMIT_NOFILE, &before);
	opens(&w);
	int mine = dial(w.path);
	ck_assert_int_ge(mine, 0);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){MIN(before.rlim_max, (rlim_t)300), before.rlim_max});
	take_all_but(0);
	loop_timer_init(&w.tick, w.loop, free_some, &w);
	loop_timer_set(&w.tick, 1);
	run(&w, 1);
	listen_fd_freed(w.l); /* none waits */
	close(mine);
	setrlimit(RLIMIT_NOFILE, &before);
}
END_TEST

START_TEST(peers_are_watched) {
	opens(&w);
	w.watch = true;
	int mine = dial(w.path);
	run(&w, 1);
	ck_assert(fd_pidfd_alive(w.pidfd));
	close(w.pidfd);
	close(mine);
}
END_TEST

RUN_TESTS_WITH(setup, teardown, "listen", connections, modes_whatever_the_umask_is, folders_of_which_we_are_not_sure,
			   one_daemon_at_a_place, a_place_that_cannot_be_locked, a_place_is_claimed_before_it_is_open,
			   what_is_in_the_way, the_lock_is_no_link, a_lack_of_memory_is_reported, only_our_own_file_is_unlinked,
			   a_file_that_disappears_is_made_again, nobody_is_refused_at_a_file_that_is_there,
			   a_file_that_got_no_name_is_replaced, an_inherited_socket_is_left_alone, pausing,
			   goes_on_in_the_next_binary, NOT_IN_VALGRIND(the_last_descriptors), NOT_IN_VALGRIND(accepting_backs_off),
			   NOT_IN_VALGRIND(peers_are_watched))
