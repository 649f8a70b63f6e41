/* SPDX-License-Identifier: MIT */
#include "io/syncer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STACK ((size_t)256 * 1024) /* of address space */
#define CLOSING 2                  /* descriptors that wait to be closed: each may keep a table on the disk */

enum stage { STAGE_IDLE, STAGE_ASKED, STAGE_DONE, STAGE_QUIT };

struct syncer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum stage stage; /* this and the members below, up to `told`, belong to the lock */
	int fd, error;
	int closing[CLOSING];
	size_t n_closing;
	struct loop_fd told;
	void (*done)(void *arg, int error);
	void *arg;
};

/* Both are called with the lock and hold it when they return, but not meanwhile. */
static void sync_one(struct syncer *s) {
	int fd = s->fd;
	pthread_mutex_unlock(&s->lock);
	int error = fsync(fd) < 0 ? errno : 0;
	pthread_mutex_lock(&s->lock);
	s->error = error;
	s->stage = STAGE_DONE;
	pthread_cond_broadcast(&s->changed);
	eventfd_write(s->told.fd, 1);
}

static void close_one(struct syncer *s) {
	int fd = s->closing[--s->n_closing];
	pthread_mutex_unlock(&s->lock);
	close(fd);
	pthread_mutex_lock(&s->lock);
}

static void *work(void *arg) {
	struct syncer *s = arg;
	pthread_mutex_lock(&s->lock);
	while (s->stage != STAGE_QUIT || s->n_closing) {
		if (s->stage == STAGE_ASKED)
			sync_one(s);
		else if (s->n_closing)
			close_one(s);
		else
			pthread_cond_wait(&s->changed, &s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Signals are the loop's. */
static bool start_thread(struct syncer *s) {
	pthread_attr_t attr;
	sigset_t all, before;
	if (pthread_attr_init(&attr) != 0) return false;
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool ok = pthread_create(&s->thread, &attr, work, s) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return ok;
}

/* Takes the result away; false if there is none. */
static bool take(struct syncer *s, bool wait, int *error) {
	pthread_mutex_lock(&s->lock);
	while (wait && s->stage == STAGE_ASKED) pthread_cond_wait(&s->changed, &s->lock);
	bool done = s->stage == STAGE_DONE;
	if (done) s->stage = STAGE_IDLE;
	*error = s->error;
	pthread_mutex_unlock(&s->lock);
	return done;
}

static bool report(struct syncer *s, bool wait) {
	int error;
	bool done = take(s, wait, &error);
	if (done) s->done(s->arg, error);
	return done;
}

static void on_told(void *arg, bool readable, bool writable) {
	struct syncer *s = arg;
	eventfd_t count;
	(void)readable, (void)writable;
	eventfd_read(s->told.fd, &count);
	report(s, false);
}

struct syncer *syncer_new(struct loop *loop, void (*done)(void *arg, int error), void *arg) {
	struct syncer *s = calloc(1, sizeof *s);
	int fd = s ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	if (fd < 0) {
		free(s);
		return NULL;
	}
	s->done = done;
	s->arg = arg;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	loop_fd_init(&s->told, loop, fd, on_told, s);
	if (loop_fd_want(&s->told, true, false) && start_thread(s)) return s;
	loop_fd_stop(&s->told);
	close(fd);
	free(s);
	return NULL;
}

bool syncer_start(struct syncer *s, int fd) {
	pthread_mutex_lock(&s->lock);
	bool idle = s->stage == STAGE_IDLE;
	if (idle) {
		s->fd = fd;
		s->stage = STAGE_ASKED;
		pthread_cond_broadcast(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	return idle;
}

void syncer_close(struct syncer *s, int fd) {
	pthread_mutex_lock(&s->lock);
	bool room = s->n_closing < CLOSING;
	if (room) s->closing[s->n_closing++] = fd;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (!room) close(fd);
}

bool syncer_wait(struct syncer *s) {
	return report(s, true);
}

void syncer_free(struct syncer *s) {
	int error;
	if (!s) return;
	take(s, true, &error);
	pthread_mutex_lock(&s->lock);
	s->stage = STAGE_QUIT;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	loop_fd_stop(&s->told);
	close(s->told.fd);
	free(s);
}
