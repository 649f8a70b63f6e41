/* SPDX-License-Identifier: MIT
 *
 * A plenum_ request: its parsed body, and the answers to it. Belongs to verbs.
 */
#pragma once

#include "core/router.h"

#include <jansson.h>

struct request {
	struct router *router;
	struct client *client;
	struct chunk line; /* the client's; borrowed */
	struct span id;    /* raw JSON, into the line */
	json_t *body;      /* the `request` object */
};

/* The least peer that may use a verb or one of its members. */
enum least {
	LEAST_ANY,   /* any connection */
	LEAST_AGENT, /* also a process of an agent, within its rights: trust_home() */
	LEAST_FREE,  /* certainly no process of an agent */
	LEAST_OURS,  /* the same, and of the daemon's uid or root */
};

/* A member of a verb and its type: s string, b boolean, i integer, o object, a array of strings; several letters: any
 * of them. */
struct member {
	const char *name, *types;
	enum least least;
};

/* Send the answer; members: built by notice_text() and the like, and the functions below. Frees them. */
void reply(struct request *q, struct buf *members);
/* Return false: `return reply_error(q, ...)`. */
bool reply_error(struct request *q, const char *code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Refuse: another session has the requested conversation. ending: the answer says that it will soon be free. */
void reply_in_use(struct request *q, const struct session *holder, bool ending);
/* Refuse a session that does not exist, or whose profile is closed to the client. name: as written by the client,
 * possibly a conversation; the answer reveals nothing else of a closed session. */
void reply_no_session(struct request *q, const char *name);
void reply_private(struct request *q, const char *name);
/* Return true if the peer may use this verb or member; else send an error. */
bool reply_peer_ok(struct request *q, enum least least, const char *what);
/* Parse a checked JSON text like json_loadb(), except that duplicate keys and NUL characters are errors; the time does
 * not depend on its strings. NULL: *error is a static sentence, or NULL without memory. */
json_t *reply_read(struct span text, const char **error);
/* Return true if the list in the request is not too long; else send an error. */
bool reply_list_ok(struct request *q, const char *member, size_t n);
/* Return true if every member is known, of its type, and allowed for this peer; else send an error that names it. The
 * list ends with a NULL name. */
bool reply_members_ok(struct request *q, const struct member *members);
/* Write `peer`, the class of a client or of its attachment; `why`, if the class is not the highest; `agent_of`, the
 * session whose agent started it. */
void reply_put_peer(struct buf *b, const struct client *c);
/* Describe a client: name, uid, pid, program, peer, role. */
void reply_put_client(struct buf *b, const struct client *c);
/* Write `pid`, the child's; null without one. */
void reply_put_pid(struct buf *b, const struct session *s);
/* An object as a member. Return its place for the end; it has one member or more. */
size_t reply_begin_object(struct buf *b, const char *name);
void reply_end_object(struct buf *b, size_t from);
/* A list as a member. An entry is the members appended since `from`, or a string. */
void reply_begin_list(struct buf *b, const char *name);
void reply_end_entry(struct buf *b, size_t from);
void reply_item(struct buf *b, const char *text);
void reply_end_list(struct buf *b);

/* Answers are text: a tree takes ten times as long, and these lose invalid UTF-8, or a failure. */
#pragma GCC poison json_pack json_string json_object_set_new json_array_append_new json_object_update
