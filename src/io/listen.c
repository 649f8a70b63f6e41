/* SPDX-License-Identifier: MIT */
#include "io/listen.h"

#include "base/log.h"
#include "base/str.h"
#include "io/lock.h"
#include "io/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define NEW_SUFFIX ".new"
#define LIVE_MS 200  /* a process that answers for so long without the lock is not dying */
#define LIVE_LOOKS 3 /* at one who closes each connection */
#define BACKLOG 128
#define ACCEPTS_A_TURN 32
#define BACKOFF_MS 1000
#define TELL_MS 60000
#define RENEW_MS 500 /* interval of checks for the directory of a removed socket */

struct listener {
	struct loop *loop;
	struct loop_fd accept, watch;
	struct loop_timer backoff, renew;
	void (*accepted)(void *arg, int fd, const struct peer *peer);
	void *arg;
	char *path;
	int lock;  /* -1: inherited socket */
	int spare; /* for the pidfd of a connection that took the last descriptor but this one; -1: to be had again first */
	mode_t mode;
	dev_t dev;
	ino_t ino;
	uint64_t quiet; /* last time without a waiting connection: accepted ones are newer (peer_now()) */
	unsigned refused;
	int64_t told; /* when the log had it last that connections wait; 0: never */
	bool paused;
};

static bool set_address(struct sockaddr_un *to, const char *path, struct error *error) {
	*to = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof to->sun_path)
		return error_set(
			error,
			"socket path %s has %zu bytes, the kernel takes at most %zu: set PLENUM_SOCKET or --socket to a "
			"shorter one",
			path, strlen(path), sizeof to->sun_path - 1);
	memcpy(to->sun_path, path, strlen(path));
	return true;
}

/* The directory must be writable for this user only: another user could replace the socket. */
static bool check_folder(const char *folder, mode_t mode, struct error *error) {
	struct stat st;
	mode_t want = mode & 077 ? 0755 : 0700;
	bool made = mkdir(folder, want) == 0;
	if (made) (void)!chmod(folder, want); /* whatever the umask is */
	if (!made && errno != EEXIST)
		return error_set(
			error, "cannot make the socket's directory %s: %s: make it, with mode %04o, or choose another --socket",
			folder, strerror(errno), want);
	if (lstat(folder, &st) < 0)
		return error_set(error, "cannot look at the socket's directory %s: %s", folder, strerror(errno));
	bool ours = S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) &&
				(want != 0700 || !(st.st_mode & 077));
	if (!ours)
		error_set(
			error,
			"the socket's directory %s %s owner %u, mode %04o: it must be a directory of uid %u with mode %04o; make "
			"one such, or choose another --socket",
			folder,
			S_ISDIR(st.st_mode)   ? "has"
			: S_ISLNK(st.st_mode) ? "is a symbolic link,"
								  : "is no directory,",
			st.st_uid, st.st_mode & 07777, geteuid(), want);
	return ours;
}

static bool check_path(const char *path, mode_t mode, struct sockaddr_un *to, struct error *error) {
	_cleanup_free_ char *copy = strdup(path);
	if (!copy) return error_set(error, "out of memory");
	return set_address(to, path, error) && check_folder(dirname(copy), mode, error);
}

static void name_holder(int fd, const char *name, struct error *error) {
	char pid[16] = "";
	ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
	pid[n > 0 ? strcspn(pid, "\n") : 0] = 0;
	error_set(
		error,
		"already running%s%s: another plenumd holds %s (if its socket file is gone, send it SIGUSR1; a second one "
		"needs a --socket and a state_dir of its own)",
		*pid ? " as pid " : "", pid, name);
}

static int take_lock(const char *path, struct error *error, enum listen_result *result) {
	_cleanup_free_ char *name = str_printf("%s.lock", path);
	*result = LISTEN_FAILED;
	int fd = name ? open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
	if (fd < 0) {
		struct stat st = {0};
		int number = errno;
		bool there = name && lstat(name, &st) == 0;
		error_set(error, "cannot open the lock file %s%s: %s", name ? name : path,
				  there && st.st_uid != geteuid() ? ", which belongs to another user" : "", strerror(number));
		return -1;
	}
	if (lock_take(fd) == 0) {
		(void)!ftruncate(fd, 0);
		dprintf(fd, "%d\n", getpid());
		return fd;
	}
	if (errno == EWOULDBLOCK) {
		*result = LISTEN_RUNNING;
		name_holder(fd, name, error);
	} else {
		error_set(error, "cannot lock %s: %s (choose a --socket on another file system)", name, strerror(errno));
	}
	close(fd);
	return -1;
}

enum answer { ANSWER_NONE, ANSWER_LIVE, ANSWER_CLOSED, ANSWER_UNKNOWN };

/* Every result of connect(2) except "refused" means that a process listens, maybe only for a moment. */
static enum answer answer_at(const struct sockaddr_un *to) {
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) return ANSWER_UNKNOWN;
	if (connect(fd, (const struct sockaddr *)to, sizeof *to) < 0)
		return errno == ECONNREFUSED ? ANSWER_NONE : ANSWER_LIVE;
	struct pollfd p = {.fd = fd};
	return poll(&p, 1, LIVE_MS) > 0 ? ANSWER_CLOSED : ANSWER_LIVE;
}

/* With the lock held: is the socket of another live process there? Only a refused connection counts as dead. */
static enum listen_result clear_place(const char *path, const struct sockaddr_un *to, struct error *error) {
	struct stat st;
	if (lstat(path, &st) < 0) {
		if (errno == ENOENT) return LISTEN_OK;
		error_set(error, "cannot look at %s: %s", path, strerror(errno));
		return LISTEN_FAILED;
	}
	if (!S_ISSOCK(st.st_mode)) {
		error_set(error, "%s is in the way and is no socket: move it away or choose another --socket", path);
		return LISTEN_FAILED;
	}
	enum answer answer = answer_at(to);
	/* a daemon that is dying let go of its lock first */
	for (int i = 1; answer == ANSWER_CLOSED && i < LIVE_LOOKS; i++) answer = answer_at(to);
	if (answer == ANSWER_UNKNOWN) {
		error_set(error, "%s: %s", path, strerror(errno));
		return LISTEN_FAILED;
	}
	if (answer != ANSWER_NONE) {
		error_set(error, "%s: already running: another daemon answers on this socket", path);
		return LISTEN_RUNNING;
	}
	if (unlink(path) < 0) {
		error_set(error, "cannot remove the stale socket %s: %s", path, strerror(errno));
		return LISTEN_FAILED;
	}
	return LISTEN_OK;
}

static int listen_at(const struct sockaddr_un *at, mode_t mode) {
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) return -1;
	mode_t before = umask((mode_t)(~mode & 0777));
	int bound = bind(fd, (const struct sockaddr *)at, sizeof *at);
	umask(before);
	if (bound == 0 && chmod(at->sun_path, mode) == 0 && listen(fd, BACKLOG) == 0) return fd;
	int number = errno;
	if (bound == 0) unlink(at->sun_path);
	close(fd);
	errno = number;
	return -1;
}

/* A client that sees the file may connect at once, so it gets its name only when the socket listens. The lock is held,
 * so a file with the temporary name was left by a killed daemon. */
static int listen_there(const struct sockaddr_un *to, mode_t mode) {
	struct sockaddr_un new = *to;
	size_t n = strlen(to->sun_path);
	if (n + sizeof NEW_SUFFIX > sizeof new.sun_path) return listen_at(to, mode);
	memcpy(new.sun_path + n, NEW_SUFFIX, sizeof NEW_SUFFIX);
	unlink(new.sun_path);
	int fd = listen_at(&new, mode);
	if (fd < 0 || renameat2(AT_FDCWD, new.sun_path, AT_FDCWD, to->sun_path, RENAME_NOREPLACE) == 0) return fd;
	int number = errno;
	unlink(new.sun_path);
	close(fd);
	errno = number;
	return number == EINVAL ? listen_at(to, mode) : -1; /* a file system that has no such renaming */
}

static int bind_socket(const char *path, const struct sockaddr_un *to, mode_t mode, struct error *error) {
	int fd = listen_there(to, mode);
	if (fd < 0) error_set(error, "cannot listen on %s: %s", path, strerror(errno));
	return fd;
}

static void arm(struct listener *l, bool on) {
	if (!loop_fd_want(&l->accept, on && !l->paused, false)) loop_timer_set(&l->backoff, BACKOFF_MS); /* no memory */
}

/* A peer without a watch could not be trusted, so a connection waits for two free descriptors. */
static bool have_spare(struct listener *l) {
	if (l->spare < 0) l->spare = eventfd(0, EFD_CLOEXEC);
	return l->spare >= 0;
}

int listen_watch_peer(struct listener *l, int conn, const struct peer *peer) {
	int fd = peer_pidfd(conn, peer, l->quiet);
	if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || l->spare < 0) return fd;
	close(l->spare);
	l->spare = -1;
	return peer_pidfd(conn, peer, l->quiet);
}

/* Once a minute at most: a crowd that comes and goes must not flood the log. */
static void tell_shortage(struct listener *l, int error) {
	int64_t now = now_ms();
	l->refused++;
	if (l->told && now - l->told < TELL_MS) return;
	l->told = now;
	log_warn("new connections have to wait: %s%s", strerror(error),
			 error == EMFILE ? " (a limit on descriptors: ulimit -n, LimitNOFILE)" : "");
}

static void on_accept(void *arg, bool readable, bool writable) {
	struct listener *l = arg;
	(void)readable, (void)writable;
	for (int i = 0; i < ACCEPTS_A_TURN && !loop_must_yield(l->accept.loop); i++) {
		uint64_t now = peer_now();
		int fd = have_spare(l) ? accept4(l->accept.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
		if (fd < 0 && errno == EAGAIN) l->quiet = now;
		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
			tell_shortage(l, errno);
			arm(l, false);
			loop_timer_set(&l->backoff, BACKOFF_MS);
		}
		if (fd < 0) return;
		struct peer peer;
		if (fd_peer(fd, &peer) < 0)
			close(fd);
		else
			l->accepted(l->arg, fd, &peer);
	}
}

static void on_backoff(void *arg) {
	arm(arg, true);
}

static bool still_ours(const struct listener *l) {
	struct stat st;
	return lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino;
}

static void remember(struct listener *l) {
	struct stat st;
	if (lstat(l->path, &st) < 0) return;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
}

static void watch_folder(struct listener *l) {
	_cleanup_free_ char *copy = strdup(l->path);
	if (!copy) return;
	if (l->watch.fd < 0) {
		int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		if (fd < 0) return;
		l->watch.fd = fd;
		loop_fd_want(&l->watch, true, false);
	}
	inotify_add_watch(l->watch.fd, dirname(copy),
					  IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
}

/* A directory that was removed with its parents (a logout) may come back, without an event. */
static void renew(struct listener *l, bool again) {
	struct error error;
	if (l->paused || still_ours(l)) return;
	bool made = listen_renew(l, &error);
	if (made)
		log_info("the socket %s was gone and is there again", l->path);
	else if (!again)
		log_warn("the socket is gone: sessions go on, no client can connect until it can be made again: %s",
				 error.text);
	if (!made) loop_timer_set(&l->renew, RENEW_MS);
}

static void on_renew(void *arg) {
	renew(arg, true);
}

static void on_watch(void *arg, bool readable, bool writable) {
	struct listener *l = arg;
	char events[4096];
	(void)readable, (void)writable;
	while (fd_read(l->watch.fd, events, sizeof events) > 0) {}
	renew(l, loop_timer_pending(&l->renew));
}

bool listen_renew(struct listener *l, struct error *error) {
	struct sockaddr_un to;
	if (l->lock < 0 || still_ours(l)) return true;
	struct stat st;
	if (!check_path(l->path, l->mode, &to, error)) return false;
	if (lstat(l->path, &st) == 0) return error_set(error, "%s was taken by another file", l->path);
	watch_folder(l); /* first: the file may be gone again as soon as it is there */
	int fd = bind_socket(l->path, &to, l->mode, error);
	if (fd < 0) return false;
	loop_fd_stop(&l->accept);
	close(l->accept.fd);
	l->accept.fd = fd;
	remember(l);
	arm(l, true);
	return true;
}

static struct listener *make(struct loop *loop, const char *path, int fd, int lock, mode_t mode) {
	struct listener *l = calloc(1, sizeof *l);
	if (!l || !(l->path = strdup(path))) {
		free(l);
		return NULL;
	}
	l->loop = loop;
	l->lock = lock;
	l->spare = -1;
	l->mode = mode;
	loop_fd_init(&l->accept, loop, fd, on_accept, l);
	loop_fd_init(&l->watch, loop, -1, on_watch, l);
	loop_timer_init(&l->backoff, loop, on_backoff, l);
	loop_timer_init(&l->renew, loop, on_renew, l);
	return l;
}

static void begin(struct listener *l) {
	if (l->lock >= 0) {
		remember(l);
		watch_folder(l);
	}
	(void)have_spare(l);
	arm(l, true);
}

static enum listen_result take_place(const char *path, mode_t mode, int *lock, struct error *error) {
	struct sockaddr_un to;
	enum listen_result result;
	if (path[0] != '/') {
		error_set(error, "the socket path \"%s\" is not absolute: begin it with /", path);
		return LISTEN_FAILED;
	}
	if (!check_path(path, mode, &to, error)) return LISTEN_FAILED;
	*lock = take_lock(path, error, &result);
	return *lock < 0 ? result : clear_place(path, &to, error);
}

enum listen_result listen_claim(struct listener **out, struct loop *loop, const char *path, int inherited, mode_t mode,
								void (*accepted)(void *arg, int fd, const struct peer *peer), void *arg,
								struct error *error) {
	int lock = -1;
	enum listen_result result = inherited < 0 ? take_place(path, mode, &lock, error) : LISTEN_OK;
	if (result != LISTEN_OK) {
		if (lock >= 0) close(lock);
		return result;
	}
	struct listener *l = make(loop, path, inherited, lock, mode);
	if (!l) {
		error_set(error, "out of memory");
		if (inherited >= 0) close(inherited);
		if (lock >= 0) close(lock);
		return LISTEN_FAILED;
	}
	l->accepted = accepted;
	l->arg = arg;
	*out = l;
	return LISTEN_OK;
}

bool listen_begin(struct listener *l, struct error *error) {
	struct sockaddr_un to;
	if (l->lock < 0)
		fd_nonblock(l->accept.fd);
	else if (!set_address(&to, l->path, error) || (l->accept.fd = bind_socket(l->path, &to, l->mode, error)) < 0)
		return false;
	begin(l);
	return true;
}

void listen_suspend(const struct listener *l, struct listen_parts *parts) {
	*parts = (struct listen_parts){.fd = l->accept.fd, .lock = l->lock, .mode = l->mode};
}

struct listener *listen_resume(struct loop *loop, const char *path, const struct listen_parts *parts,
							   void (*accepted)(void *arg, int fd, const struct peer *peer), void *arg) {
	struct listener *l = make(loop, path, parts->fd, parts->lock, parts->mode);
	if (!l) return NULL;
	l->accepted = accepted;
	l->arg = arg;
	begin(l);
	if (l->lock >= 0) renew(l, false);
	return l;
}

const char *listen_path(const struct listener *l) {
	return l->path;
}

unsigned listen_refused(const struct listener *l) {
	return l->refused;
}

void listen_fd_freed(struct listener *l) {
	if (!loop_timer_pending(&l->backoff)) return;
	loop_timer_stop(&l->backoff);
	arm(l, true);
}

void listen_pause(struct listener *l) {
	l->paused = true;
	loop_timer_stop(&l->backoff);
	loop_timer_stop(&l->renew);
	arm(l, false);
}

void listen_close(struct listener *l) {
	if (!l) return;
	loop_timer_stop(&l->backoff);
	loop_timer_stop(&l->renew);
	loop_fd_stop(&l->accept);
	loop_fd_stop(&l->watch);
	if (l->watch.fd >= 0) close(l->watch.fd);
	if (l->lock >= 0 && still_ours(l)) unlink(l->path);
	if (l->accept.fd >= 0) close(l->accept.fd);
	if (l->spare >= 0) close(l->spare);
	if (l->lock >= 0) close(l->lock); /* the lock file stays: removing it would race */
	free(l->path);
	free(l);
}
