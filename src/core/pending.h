/* SPDX-License-Identifier: MIT
 *
 * The child's requests to clients: one entry each, owned by the session, never by a connection. An entry knows the
 * asked parties, its start and its deadline. The ids of the last resolved ones are kept, to distinguish a late answer
 * from a wrong one. The asked parties are attachments. Source: docs/contract.md 5.
 */
#pragma once

#include "base/hash.h"
#include "core/carry.h"
#include "core/share.h"
#include "dialect/dialect.h"
#include "io/errand.h"
#include "io/loop.h"
#include "wire/rope.h"
#include "wire/splice.h"

#define PENDING_ID_MAX 40
#define SETTLED_KEPT 1024

struct attachment;
struct client;
struct lengths;
struct owner;
struct session;

struct pending;

/* The module that made an entry. */
struct pending_events {
	/* The deadline has passed. */
	void (*late)(struct pending *p);
	/* A client's answer has no decision, and no answer must not let anything through. NULL: `guard` is never set. */
	void (*undecided)(struct pending *p);
	/* The following ones are for an entry with `act`. */
	/* Return true if the answer can be judged. False: the client's line comes again then. */
	bool (*may_judge)(struct client *c, struct chunk line, const struct pending *p, struct chunk answer);
	/* Take the answer, in the form sent to the child. Takes the reference. False without memory. */
	bool (*answered)(struct pending *p, struct chunk answer, const struct client *by);
	/* There will be no answer. */
	void (*unanswered)(struct pending *p, const char *why);
};

struct pending {
	UT_hash_handle hh;       /* by id */
	UT_hash_handle hh_child; /* by child_id */
	struct list node;        /* in order of arrival */
	struct session *session;
	char id[PENDING_ID_MAX]; /* the id for clients, without quotes */
	char *child_id;          /* the child's id, raw JSON */
	enum ask_kind kind;
	const struct dialect *dialect; /* of its session */
	const struct pending_events *events;
	struct chunk line;   /* the child's; the spans point into it */
	struct span line_id; /* the id in it; absent after an upgrade: then the line is as sent to clients */
	struct span request;
	struct rope shown;         /* the line as sent to clients */
	struct lengths *lengths;   /* of a long line (wire/lengths.h); NULL: none */
	char *subtype, *tool;      /* tool: NULL: none */
	int64_t since, since_real; /* ms, monotonic and wall clock */
	struct attachment **asked;
	size_t n_asked, cap_asked;
	uint32_t *places;        /* of many: a hash table of their places in asked, from 1 on; NULL: search one by one */
	size_t n_places;         /* a power of two */
	uint64_t only;           /* the number of the one client that is asked, about a request of its own; 0: any */
	struct owner *owner;     /* hook, mcp: its owner; NULL: none any more */
	char *event;             /* hook: raw JSON */
	uint64_t call;           /* mcp: a hash of the server and of the call's id; 0: not computed (hooks.c) */
	bool guard;              /* hook: no answer must not let anything through */
	struct loop_timer timer; /* hook: deadline; else permission_wait */
	bool timer_on;
	bool judging;        /* an errand checks the rules: no client is asked yet */
	struct errand judge; /* that errand */
	/* Of an entry made by the daemon, about a client's line that runs a tool (execute.c). */
	struct chunk act;      /* that line; empty: the child asks */
	struct client *sender; /* its client */
	char *sender_id;       /* the request's id there, raw JSON; NULL: the line has none */
	uint64_t sender_line;  /* its number among the client's lines */
	struct share_request charge;
	/* Of a resolved one that its clients are not notified of yet (asks.c). */
	const char *decision; /* static */
	char *why;            /* NULL: none */
};

/* The id of a resolved request: req_COUNTER_RANDOM. */
struct settled_id {
	uint64_t counter;
	char random[8];
};

struct pendings {
	struct pending *by_id, *by_child;
	struct list order;
	size_t n;
	size_t n_person;      /* those that wait for a person */
	size_t bytes;         /* of their lines */
	struct list resolved; /* no open requests any more; their clients are to be notified (asks.c) */
	size_t told;          /* asks.c's: the cost of the notices of this turn */
	uint64_t counter;
	struct settled_id *settled; /* a ring, grows to SETTLED_KEPT */
	size_t n_settled, cap_settled, settled_at;
};

void pendings_init(struct pendings *p);
void pendings_free(struct pendings *p);
/* Make an entry with a fresh id. line is the child's, e its envelope; edit: of the line for clients, beside the id
 * (SPLICE_NOTHING: none). NULL without memory. */
struct pending *pending_new(struct pendings *all, struct session *s, struct loop *loop, const struct dialect *d,
							const struct envelope *e, struct chunk line, struct splice_edit edit,
							const struct pending_events *events);
/* Return the name of the limit that one more line of n bytes would exceed, or NULL. divisor: of the limits: 1, or 2 if
 * such lines may use half of them. */
const char *pendings_limit(const struct pendings *all, size_t max_pending, size_t divisor, size_t n);
struct pending *pending_find(struct pendings *all, struct span id);       /* by the id for clients */
struct pending *pending_find_child(struct pendings *all, struct span id); /* by the child's id */
bool pending_was_settled(const struct pendings *all, struct span id);
bool pending_ask(struct pending *p, struct attachment *who); /* false: asked already, or no memory */
bool pending_was_asked(const struct pending *p, const struct attachment *who);
bool pending_forget(struct pending *p, const struct attachment *who); /* `who` is gone; true: it was asked */
/* Remove the entry from the tables and remember its id. It is in `resolved` until pending_drop(). */
void pending_resolve(struct pendings *all, struct pending *p);
void pending_drop(struct pending *p);                         /* a resolved one: free it */
void pending_settle(struct pendings *all, struct pending *p); /* both */
void pendings_trim(struct pendings *all, size_t keep);        /* remember only the last resolved ones */
/* Return a part of the request: raw JSON, or absent. */
struct span pending_part(const struct pending *p, enum ask_part part);
/* Replace the value of a part in the line sent to clients. False without memory. */
bool pending_set_part(struct pending *p, enum ask_part part, const char *json);
/* Return one line that describes it, safe to show; the caller frees. */
char *pending_summary(const struct pending *p);
/* Return true if a person must answer this (contract 8, state `asking`). */
bool pending_for_person(const struct pending *p);
/* How an owner is identified and found again, and the maker of an entry. */
struct pending_links {
	uint64_t (*number)(struct session *s, const struct owner *owner);
	struct owner *(*find)(struct session *s, uint64_t number);
	const struct pending_events *(*events)(const struct pending *p);
};
void pendings_carry(struct carry *c, struct pendings *all, struct session *s, struct loop *loop,
					const struct dialect *d, const struct pending_links *links);
