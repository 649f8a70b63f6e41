/* SPDX-License-Identifier: MIT
 *
 * A session between a fake child and fake clients, for the tests of the modules between them: the child is an agent
 * without a process; the other ends of its streams and of the sockets of the clients are here. No loop runs:
 * world_turn() runs what is due.
 */
#pragma once

#include "core/attachment.h"
#include "core/core.h"
#include "core/from_client.h"
#include "core/session_parts.h"
#include "core/sessions.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/str.h"
#include "harness.h"
#include "plenum/protocol.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORLD_CLIENTS 80

struct world_client {
	struct client *c;
	int fd;
	char said[65536]; /* what it was sent, since the last world_said() */
};

struct world {
	struct loop *loop;
	struct children *children;
	struct settings *settings;
	struct router *router;
	struct session *session;
	struct profile *profile; /* of the session */
	struct world_client clients[WORLD_CLIENTS];
	size_t n;
	int in, out, err; /* the other ends of the streams of its child */
	char written[65536];
	size_t alerts, over; /* calls of the daemon */
};

static struct world world;

static void world_on_changed(struct router *r) {
	(void)r;
}

static void world_on_attention(struct router *r, const struct session *s, const struct alert *alert) {
	(void)r, (void)s, (void)alert;
	world.alerts++;
}

static void world_on_gone(struct router *r) {
	(void)r;
}

static void world_on_over(struct router *r, struct session *s) {
	world.over++;
	sessions_remove(r, s, "over");
	if (s == world.session) world.session = NULL;
}

static const char *world_on_keep(struct router *r, const struct session *s, struct error *error) {
	(void)r, (void)s, (void)error;
	return NULL;
}

static const struct router_events world_events = {.changed = world_on_changed,
												  .attention = world_on_attention,
												  .client_gone = world_on_gone,
												  .session_over = world_on_over,
												  .keep = world_on_keep};

static inline void world_turn(void) {
	loop_finish(world.loop);
}

static inline struct session *world_session(const char *name) {
	struct launch launch = {.cwd = strdup("/"), .uid = getuid()};
	struct session *s = sessions_create(world.router, name, world.profile, &launch);
	ck_assert_ptr_nonnull(s);
	return s;
}

static inline int world_pair(int *other) {
	int fds[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	*other = fds[0];
	return fds[1];
}

/* Give the session an idle child. */
static inline void world_wake(struct session *s) {
	struct agent *a = session_new_agent(s);
	ck_assert_ptr_nonnull(a);
	static const int less_than_a_long_line = 106496; /* whatever the system's default is */
	a->child.in = world_pair(&world.in);
	setsockopt(a->child.in, SOL_SOCKET, SO_SNDBUF, &less_than_a_long_line, sizeof less_than_a_long_line);
	a->child.out = world_pair(&world.out);
	a->child.err = world_pair(&world.err);
	agent_run(a);
	s->agent = a;
	s->child_no++;
	session_changed(s);
	world_turn();
}

static inline void world_begin(void) {
	memset(&world, 0, sizeof world);
	log_set_level(LOG_ERROR);
	world.loop = loop_new();
	world.settings = settings_new();
	world.children = children_new(world.loop);
	for (int i = 0; i < ALERT_KINDS; i++) ck_assert(words_add(&world.settings->on[i], "command"));
	world.profile = &world.settings->profiles[0];
	world.router = core_new(world.loop, world.children, world.settings, &world_events, NULL);
	world.router->instance = "test";
	world.session = world_session("s");
	world_wake(world.session);
}

static inline void world_end(void) {
	struct client *c;
	while (world.router->sessions) sessions_remove(world.router, world.router->sessions, "over");
	LIST_FOR_EACH (c, &world.router->clients, struct client, node) client_kill(c);
	for (size_t i = 0; i < world.n; i++) close(world.clients[i].fd);
	world_turn();
	core_free(world.router);
	settings_unref(world.settings);
	children_free(world.children);
	loop_free(world.loop);
	close(world.in);
	close(world.out);
	close(world.err);
}

/* A client of this user that no agent has started. */
static inline struct client *world_client(void) {
	struct world_client *one = &world.clients[world.n++];
	int fd = world_pair(&one->fd);
	struct peer peer = {.uid = getuid(), .gid = getgid(), .pid = getpid()};
	struct watch *w = watch_share(&world.router->watches, getpid());
	if (!w) w = watch_take(&world.router->watches, getpid(), (int)syscall(SYS_pidfd_open, getpid(), 0));
	ck_assert_ptr_nonnull(w);
	w->origin = ORIGIN_FREE;
	one->c = client_new(world.loop, &world.router->pool, &world.router->shares, fd, &peer, w, ORIGIN_FREE, 1 << 20,
						&from_client_events, world.router);
	ck_assert_ptr_nonnull(one->c);
	router_add_client(world.router, one->c);
	return one->c;
}

static inline struct client *world_enter_as(struct session *s, bool observer, bool approve) {
	struct client *c = world_client();
	struct attachment *a = attachment_new(c, s, observer, approve);
	ck_assert_ptr_nonnull(a);
	client_read_tape(c, &s->tape, s->tape.next);
	attachment_ready(a);
	return c;
}

/* A driver that may approve. */
static inline struct client *world_enter(void) {
	return world_enter_as(world.session, false, true);
}

/* Return what the client was sent since the last call. */
static inline const char *world_said(const struct client *c) {
	struct world_client *one = world.clients;
	world_turn();
	while (one->c != c) one++;
	ssize_t n = read(one->fd, one->said, sizeof one->said - 1);
	one->said[n > 0 ? n : 0] = 0;
	return one->said;
}

/* Return what the child was written since the last call. */
static inline const char *world_written(void) {
	world_turn();
	ssize_t n = read(world.in, world.written, sizeof world.written - 1);
	world.written[n > 0 ? n : 0] = 0;
	return world.written;
}

/* Return how many pieces of the lines for the child are views of this block; NULL: of any block, if they are long. */
static inline size_t world_views(const struct block *of) {
	const struct queue *q = &world.session->in;
	size_t n = 0;
	for (size_t i = 0; i < q->count; i++) {
		struct chunk piece = q->ring[(q->first + i) & (q->cap - 1)].piece;
		n += of ? piece.block == of : piece.len >= ROPE_VIEW;
	}
	return n;
}

/* Return all that the child was written since the last call, also a long line; the caller frees. */
static inline char *world_written_whole(size_t *n) {
	struct buf all = BUF_INIT(SIZE_MAX / 4);
	char part[65536];
	ssize_t r;
	world_turn();
	while ((r = read(world.in, part, sizeof part)) > 0) {
		buf_put(&all, part, (size_t)r);
		session_write_in(world.session);
	}
	return buf_steal(&all, n);
}

/* The same for a client. */
static inline char *world_said_whole(const struct client *c, size_t *n) {
	struct buf all = BUF_INIT(SIZE_MAX / 4);
	const struct world_client *one = world.clients;
	char part[65536];
	ssize_t r;
	world_turn();
	while (one->c != c) one++;
	while ((r = read(one->fd, part, sizeof part)) > 0) {
		buf_put(&all, part, (size_t)r);
		if (one->c->blocked) one->c->io.fn(one->c->io.arg, false, true);
		world_turn();
	}
	return buf_steal(&all, n);
}

/* The child prints a line. */
static inline void world_prints(const char *line) {
	struct chunk own = chunk_copy(line, strlen(line));
	struct envelope e;
	ck_assert_msg(session_dialect(world.session)->scan(own.data, own.len - 1, &e), "%s", line);
	world.session->events->line(world.session, own, &e);
	chunk_drop(&own);
	session_changed(world.session); /* as at the end of a read */
	world_turn();
}

/* The client sends a line. */
static inline void world_sends(struct client *c, const char *line) {
	struct chunk own = chunk_copy(line, strlen(line));
	c->lines_in++;
	c->events->line(c, own);
	chunk_drop(&own);
	world_turn();
}

/* The connection of the client is gone. */
static inline void world_leaves(struct client *c) {
	client_kill(c);
	world_turn();
}

/* Copy the value of the first member of this name, a string, into out. */
static inline const char *world_value(const char *text, const char *member, char *out, size_t size) {
	char key[64];
	snprintf(key, sizeof key, "\"%s\":\"", member);
	const char *at = strstr(text, key);
	ck_assert_msg(at, "no %s in %s", member, text);
	at += strlen(key);
	snprintf(out, size, "%.*s", (int)strcspn(at, "\""), at);
	return out;
}

/* text is computed once: it may be world_said(). */
#define HAS(text, part)                                                                                                \
	do {                                                                                                               \
		const char *in_ = text;                                                                                        \
		ck_assert_msg(strstr(in_, part), "no %s in: %s", part, in_);                                                   \
	} while (0)
#define HAS_NOT(text, part)                                                                                            \
	do {                                                                                                               \
		const char *in_ = text;                                                                                        \
		ck_assert_msg(!strstr(in_, part), "%s in: %s", part, in_);                                                     \
	} while (0)
