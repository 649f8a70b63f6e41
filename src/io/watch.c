/* SPDX-License-Identifier: MIT */
#include "io/watch.h"

#include "base/fd.h"

#include <stdlib.h>
#include <unistd.h>

static void unlist(struct watch *w) {
	if (!w->unlisted) HASH_DELETE(hh_pid, w->all->by_pid, w);
	w->unlisted = true;
}

struct watch *watch_share(struct watches *all, pid_t pid) {
	struct watch *w;
	HASH_FIND(hh_pid, all->by_pid, &pid, sizeof pid, w);
	if (w && !watch_alive(w)) {
		unlist(w); /* the number may be used again, by another process */
		return NULL;
	}
	if (w) w->users++;
	return w;
}

static struct watch *make(struct watches *all, pid_t pid, int fd) {
	struct watch *w = malloc(sizeof *w), *other;
	if (!w) {
		close(fd);
		return NULL;
	}
	*w = (struct watch){.pid = pid, .fd = fd, .users = 1, .all = all};
	HASH_FIND(hh_pid, all->by_pid, &pid, sizeof pid, other);
	w->unlisted = watch_alive(other);
	if (other && !w->unlisted) unlist(other);
	if (!w->unlisted) w->unlisted = !HASH_TRY_ADD(hh_pid, all->by_pid, &w->pid, sizeof w->pid, w); /* shared less */
	if (HASH_TRY_ADD(hh_fd, all->by_fd, &w->fd, sizeof w->fd, w)) return w;
	unlist(w);
	close(fd);
	free(w);
	return NULL;
}

struct watch *watch_take(struct watches *all, pid_t pid, int fd) {
	struct watch *w;
	HASH_FIND(hh_fd, all->by_fd, &fd, sizeof fd, w);
	if (!w) return make(all, pid, fd);
	w->users++;
	return w;
}

bool watch_alive(const struct watch *w) {
	return w && fd_pidfd_alive(w->fd);
}

bool watch_alive_in(struct watch *w, uint64_t turn) {
	if (!w || w->alive_in == turn) return w;
	w->alive_in = watch_alive(w) ? turn : 0;
	return w->alive_in;
}

void watch_drop(struct watch *w) {
	if (!w || --w->users) return;
	unlist(w);
	HASH_DELETE(hh_fd, w->all->by_fd, w);
	close(w->fd);
	free(w);
}
