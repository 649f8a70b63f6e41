/* SPDX-License-Identifier: MIT
 *
 * One plenum_ request on its way: its parsed body, and the answers to it. Belongs to verbs.
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
	LEAST_AGENT, /* a process of an agent too, for what it may act in: router_home() */
	LEAST_FREE,  /* certainly no process of an agent */
	LEAST_OURS,  /* that, and of the daemon's uid or root */
};

/* A member that a verb takes and its type: s string, b boolean, i integer, o object, a array of strings; several
 * letters: any of them. */
struct member {
	const char *name, *types;
	enum least least;
};

/* The answer. Takes over body. */
void reply(struct request *q, json_t *body);
/* The same with more members (`,"name":value` each) at its end, as they are. Frees more. */
void reply_with(struct request *q, json_t *body, struct buf *more);
void reply_error(struct request *q, const char *code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Its conversation is asked for by another session. ending: soon it will be free, and the answer says so. */
void reply_in_use(struct request *q, const struct session *holder, bool ending);
/* What several verbs refuse: a session that is not there, and one whose profile is closed to the client. name: as the
 * client wrote it, which may be a conversation; of a closed session it learns nothing else. */
void reply_no_session(struct request *q, const char *name);
void reply_private(struct request *q, const char *name);
/* Return true if the peer may use this verb or member; else it was told why not. */
bool reply_peer_ok(struct request *q, enum least least, const char *what);
/* The tree of a checked JSON text: what json_loadb() would make of it, but for duplicate keys and NUL characters, which
 * are errors, and in a time that its strings do not matter for. NULL: *error is a static sentence, or NULL without
 * memory. */
json_t *reply_read(struct span text, const char **error);
/* A list in the request has no more entries than it may; else the client was told. */
bool reply_list_ok(struct request *q, const char *member, size_t n);
/* Every member is known, of its type, and for this peer; else the client was told which is not. The list ends with a
 * NULL name. */
bool reply_members_ok(struct request *q, const struct member *members);
/* Sets `peer`, the class of a client or of its attachment; `why`, where that is less than it could be; `agent_of`, the
 * session whose agent started it. */
void reply_put_peer(json_t **o, const struct client *c);
/* Who a client is: name, uid, pid, program, role. As a tree, or as text: members with a comma before each. */
json_t *reply_client(const struct client *c);
void reply_put_client(struct buf *b, const struct client *c);
/* Lists as text, for answers about thousands: a tree takes ten times as long. An entry is what was put since `from`,
 * members with a comma before each. */
void reply_begin_list(struct buf *b, const char *name);
void reply_end_entry(struct buf *b, size_t from);
void reply_end_list(struct buf *b);

/* Building answers. Text may be any bytes: what is no UTF-8 becomes U+FFFD, since a name, a path or a word of the child
 * must not cost an entry. NULL is returned without memory alone; each function takes NULL for what could not be made
 * and then returns NULL in turn, so that reply() answers with an error and no entry is missing from a list.
 *
 * reply_pack() takes the formats of json_pack() for objects: {, }, s, s?, b, i, I, o. */
json_t *reply_pack(const char *format, ...);
json_t *reply_text(const char *text, size_t n);
json_t *reply_string(const char *text); /* NULL: null */
void reply_set(json_t **object, const char *key, json_t *value);
void reply_append(json_t **array, json_t *value);

/* These lose text that is no UTF-8, or a failure. */
#pragma GCC poison json_pack json_string json_object_set_new json_array_append_new json_object_update
