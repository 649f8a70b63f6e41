/* SPDX-License-Identifier: MIT */
#include "io/places.h"

#include "base/buf.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSES_MAX 256 /* in total, left ones included */
#define FRESH_MAX 64      /* running for less than SLOW_MS: older ones are waiting, and use no processor time */
#define AT_PLACE_MAX 16   /* at one place, left ones excluded */
#define LEFT_MAX 2        /* at one place: another one would only get stuck, too */
#define WAITING_MAX 256   /* in the queue, without starts */
#define STARTS_MAX 4096   /* in the queue */
#define SLOW_MS 1000
#define MOUNTS_MS 250
#define MOUNTS_MAX ((size_t)4 * 1024 * 1024)

struct process {
	struct list node;
	pid_t pid;
	uid_t uid;
	int64_t since;
	char *place, *mount;
	bool looked; /* the mount was looked up */
	bool left;   /* its time limit has passed, or its owner does not wait for it */
};

struct places {
	struct loop *loop;
	struct buf mounts; /* /proc/self/mountinfo as of mounts_at */
	int64_t mounts_at;
	struct list processes, turns;
	size_t n, n_turns;
	uint64_t served; /* turns so far */
	struct loop_task task;
	struct loop_timer timer; /* while the queue is not empty: when the next process becomes slow */
};

/* --- where -------------------------------------------------------------------------------------------------------- */

/* The list is cached for a while, for many lookups in a row. */
static const char *mounts(struct places *p) {
	if (p->mounts.data && now_ms() - p->mounts_at < MOUNTS_MS) return p->mounts.data;
	_cleanup_close_ int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? 1 : 0;
	buf_free(&p->mounts);
	p->mounts = (struct buf)BUF_INIT(MOUNTS_MAX);
	while (n > 0 && buf_reserve(&p->mounts, 4096)) {
		n = fd_read(fd, p->mounts.data + p->mounts.len, 4096);
		if (n > 0) p->mounts.len += (size_t)n;
	}
	if (p->mounts.data) p->mounts.data[p->mounts.len] = 0; /* buf_reserve() has made room for the NUL */
	p->mounts_at = now_ms();
	return p->mounts.data;
}

/* Return the word of a line after n others. */
static const char *word(const char *line, int n) {
	for (; n > 0; n--) {
		line += strcspn(line, " \n");
		line += *line == ' ';
	}
	return line;
}

/* Return the mount point of a path, found by its name without touching it; NULL: the root, or unknown. */
static char *mount_of(struct places *p, const char *path) {
	const char *best = NULL;
	size_t n = 1; /* the root matches one byte */
	for (const char *line = mounts(p), *next; line && *line; line = next) {
		const char *at = word(line, 4);
		size_t len = strcspn(at, " \n");
		next = at + strcspn(at, "\n");
		next += *next == '\n';
		if (len <= n || strncmp(path, at, len) != 0 || (path[len] && path[len] != '/')) continue;
		best = at;
		n = len;
	}
	return best ? strndup(best, n) : NULL;
}

static const char *mount_once(struct places *p, const char *place, char **mount, bool *looked) {
	if (!*looked) *mount = mount_of(p, place);
	*looked = true;
	return *mount;
}

/* The root matches nothing below it, and no place matches nothing. */
static bool is_at(const char *path, const char *place) {
	size_t n = strlen(place);
	if (!n || strcmp(place, "/") == 0) return strcmp(path, place) == 0;
	return strncmp(path, place, n) == 0 && (path[n] == 0 || path[n] == '/' || place[n - 1] == '/');
}

static bool is_slow(const struct process *o, int64_t now) {
	return now - o->since >= SLOW_MS;
}

/* Mounts are compared only for a slow process: the lookup takes time. */
static bool is_same(struct places *p, struct places_turn *t, struct process *o, int64_t now) {
	if (is_at(t->place, o->place)) return true;
	const char *there = is_slow(o, now) ? mount_once(p, o->place, &o->mount, &o->looked) : NULL;
	const char *here = there ? mount_once(p, t->place, &t->mount, &t->looked) : NULL;
	return here && strcmp(here, there) == 0;
}

/* --- how many ----------------------------------------------------------------------------------------------------- */

static bool is_privileged(uid_t uid) {
	return uid == 0 || uid == getuid();
}

static enum places_state look(struct places *p, struct places_turn *t) {
	struct process *o;
	size_t at = 0, left = 0, fresh = 0, others = 0;
	int64_t now = now_ms();
	LIST_FOR_EACH (o, &p->processes, struct process, node) {
		bool same = is_same(p, t, o, now), slow = is_slow(o, now);
		at += same && !(o->left && slow);
		left += same && o->left && slow;
		fresh += !slow;
		others += !is_privileged(o->uid);
	}
	if (left >= LEFT_MAX) return PLACES_CLOSED;
	bool room = p->n < PROCESSES_MAX && fresh < FRESH_MAX && at < AT_PLACE_MAX;
	return room && (is_privileged(t->uid) || others < PROCESSES_MAX / 2) ? PLACES_OPEN : PLACES_FULL;
}

enum places_state places_look(struct places *p, const char *place, uid_t uid) {
	struct places_turn t = {.place = (char *)(uintptr_t)place, .uid = uid};
	enum places_state state = look(p, &t);
	free(t.mount);
	return state;
}

/* --- turns -------------------------------------------------------------------------------------------------------- */

/* Return the next one to start, with its *state. */
static struct places_turn *next_turn(struct places *p, enum places_state *state) {
	const struct process *o;
	struct places_turn *t, *best = NULL, *last = NULL, *full = NULL;
	size_t fewest = 0, n = 0;
	LIST_FOR_EACH (t, &p->turns, struct places_turn, node) {
		if (!last || last->uid != t->uid) {
			n = 0;
			LIST_FOR_EACH (o, &p->processes, const struct process, node) n += o->uid == t->uid && !o->left;
		}
		last = t;
		if (best && n >= fewest) continue;
		if (full && full->uid == t->uid && strcmp(full->place, t->place) == 0) continue; /* many of one kind */
		enum places_state now = look(p, t);
		if (now == PLACES_FULL) full = t;
		if (now == PLACES_FULL) continue;
		best = t;
		fewest = n;
		*state = now;
		if (now == PLACES_CLOSED) break; /* nothing is started for it */
	}
	return best;
}

/* One per turn of the loop: each makes a process. */
static void on_room(void *arg) {
	struct places *p = arg;
	enum places_state state = PLACES_OPEN;
	struct places_turn *t = next_turn(p, &state);
	if (t) {
		places_wait_no_more(t);
		p->served++;
		t->go(t->arg, state);
		if (p->n_turns) loop_defer(p->loop, &p->task);
	}
	if (p->n_turns && !loop_timer_pending(&p->timer)) loop_timer_set(&p->timer, SLOW_MS / 4);
}

static void look_again(struct places *p) {
	if (p->n_turns) loop_defer(p->loop, &p->task);
}

bool places_wait(struct places *p, struct places_turn *t, const char *place, uid_t uid, bool start,
				 void (*go)(void *arg, enum places_state state), void *arg) {
	size_t all = 0, others = 0, max = start ? STARTS_MAX : WAITING_MAX;
	const struct places_turn *o;
	LIST_FOR_EACH (o, &p->turns, const struct places_turn, node) {
		all += o->start == start;
		others += o->start == start && !is_privileged(o->uid);
	}
	bool room = all < max && (is_privileged(uid) || others < max / 2);
	*t = (struct places_turn){.uid = uid, .start = start, .go = go, .arg = arg};
	list_init(&t->node);
	if (!room || !(t->place = strdup(place))) return false;
	t->places = p;
	p->n_turns++;
	list_add_tail(&p->turns, &t->node);
	look_again(p);
	return true;
}

uint64_t places_served(const struct places *p) {
	return p->served;
}

void places_wait_no_more(struct places_turn *t) {
	if (!t->places) return;
	list_del(&t->node);
	t->places->n_turns--;
	t->places = NULL;
	free(t->place);
	free(t->mount);
	t->place = t->mount = NULL;
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

static void free_process(struct places *p, struct process *o) {
	list_del(&o->node);
	p->n--;
	free(o->place);
	free(o->mount);
	free(o);
}

static struct process *find(const struct places *p, pid_t pid) {
	struct process *o;
	LIST_FOR_EACH (o, &p->processes, struct process, node)
		if (o->pid == pid) return o;
	return NULL;
}

bool places_out(struct places *p, pid_t pid, const char *place, uid_t uid) {
	struct process *o = calloc(1, sizeof *o);
	if (!o || !(o->place = strdup(place))) {
		free(o);
		return false;
	}
	o->pid = pid;
	o->uid = uid;
	o->since = now_ms();
	list_add_tail(&p->processes, &o->node);
	p->n++;
	return true;
}

void places_move(struct places *p, pid_t pid, const char *place) {
	struct process *o = find(p, pid);
	char *copy = o ? strdup(place) : NULL;
	if (!copy) return;
	free(o->place);
	free(o->mount);
	o->place = copy;
	o->mount = NULL;
	o->looked = false;
	look_again(p);
}

/* This may close the place for the queue. */
void places_left(struct places *p, pid_t pid) {
	struct process *o = find(p, pid);
	if (!o) return;
	o->left = true;
	look_again(p);
}

void places_back(struct places *p, pid_t pid) {
	struct process *o = find(p, pid);
	if (!o) return;
	free_process(p, o);
	look_again(p);
}

bool places_has(const struct places *p, pid_t pid) {
	return find(p, pid);
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

struct places *places_new(struct loop *loop) {
	struct places *p = calloc(1, sizeof *p);
	if (!p) return NULL;
	p->loop = loop;
	list_init(&p->processes);
	list_init(&p->turns);
	loop_task_init(&p->task, on_room, p);
	loop_timer_init(&p->timer, loop, on_room, p);
	return p;
}

void places_free(struct places *p) {
	struct process *o;
	struct places_turn *t;
	if (!p) return;
	loop_task_stop(&p->task);
	loop_timer_stop(&p->timer);
	LIST_FOR_EACH (o, &p->processes, struct process, node) free_process(p, o);
	LIST_FOR_EACH (t, &p->turns, struct places_turn, node) places_wait_no_more(t);
	buf_free(&p->mounts);
	free(p);
}
