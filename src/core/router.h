/* SPDX-License-Identifier: MIT
 *
 * The state that sessions and clients share: the lists of both, and the attachment of a client to a session. Policy on
 * the daemon as a whole (verbs, counts, state on disk) is above, behind struct router_events. Each module that works on
 * it names in its header the members that it owns; only it writes them. Source: docs/contract.md 4 to 8.
 */
#pragma once

#include "base/error.h"
#include "core/client.h"
#include "core/login.h"
#include "core/session.h"
#include "core/share.h"
#include "wire/notice.h"

enum lag_policy { LAG_GAP, LAG_CLOSE, LAG_WAIT };

/* How far a client is behind; pace.c writes it. */
struct lag {
	int64_t behind_since; /* over the soft limit; 0: not; in the far future: all was reported */
	int64_t waited_since; /* with LAG_WAIT: the child stands still for it since then; 0: it does not */
	uint64_t waited_from; /* the bytes read by then */
	bool waited_told;     /* logged since it last had read everything */
};

/* A client's attachment to a session. Owned by attachment.c; its address identifies it in pending requests and in the
 * registry. */
struct attachment {
	struct list node; /* in its session */
	struct session *session;
	struct client *client;
	bool observer, approve;
	bool by_tool;       /* approver for these tools only */
	struct names tools; /* by_tool */
	enum lag_policy on_lag;
	bool ephemeral;     /* its session ends with it */
	bool wants_stderr;  /* send it the child's stderr at once */
	bool deny_asks;     /* ephemeral, and cannot answer: without another approver permissions are denied at once */
	bool initialized;   /* it has sent an initialize */
	bool asked_approve; /* it asked to be an approver: has a permission callback */
	struct lag lag;
	struct owner *owner; /* its registration; may be NULL */
};

struct descent;
struct gate;
struct router;
struct warm;

#define ALERT_TEXT_MAX ((size_t)200) /* bytes of the agent's text in a summary */
#define ALERT_SUMMARY_MAX (8 * ALERT_TEXT_MAX)

/* What the user's commands may be run for (settings.on). */
struct alert {
	enum alert_kind kind;
	const char *request; /* ALERT_PENDING: its id; else NULL */
	const char *tool;    /* NULL: none */
	const char *summary; /* safe to show; NULL: no memory */
};

struct router_events {
	/* A plenum_ request. */
	void (*verb)(struct router *r, struct client *c, struct chunk line, const struct envelope *e);
	/* The table on disk is out of date. */
	void (*changed)(struct router *r);
	/* Write the session to the table on disk, with the hooks staged in s. Return NULL, or an error code and a text for
	 * the client. */
	const char *(*keep)(struct router *r, const struct session *s, struct error *error);
	/* A session may need its user. */
	void (*attention)(struct router *r, const struct session *s, const struct alert *alert);
	/* A client is gone: its descriptor is free. */
	void (*client_gone)(struct router *r);
	/* Return true if the daemon itself started this process for a user (on_pending and the like). */
	bool (*is_helper)(struct router *r, pid_t pid);
	/* Return true if the client waits for an answer about the daemon as a whole (plenum_upgrade). */
	bool (*is_asker)(struct router *r, const struct client *c);
	/* A session's child has ended for good: the session must be removed. */
	void (*session_over)(struct router *r, struct session *s);
};

struct router {
	struct loop *loop;
	struct lines_pool pool;
	struct watches watches;  /* the processes of the clients */
	struct list asked;       /* about them (trust.c) */
	struct descent *descent; /* the processes of agents */
	unsigned origins_told;   /* bit 1 << enum origin: the reason to distrust such peers was logged */
	struct children *children;
	struct settings *settings;
	const struct router_events *events;
	const struct session_events *child_events;
	void *server;
	const char *instance;
	uint64_t nofile;
	struct login *login;      /* of the newest session: most sessions have the same */
	struct session *sessions; /* by name */
	size_t n_sessions;
	struct warm *warm; /* prestarted children (core/warm.h) */
	struct list clients;
	struct shares shares;
	size_t n_clients, n_subscribers;
	uint64_t clients_seen, sessions_seen, decisions, bad_lines;
	struct gate *gates; /* core/gate.h: one for each dialect, in the order of the list */
	uint64_t last_seq;  /* the highest number on the tapes of removed sessions */
	bool guards_lost;   /* unknown sessions were lost: new ones refuse every tool */
	bool shutting_down;
};

#define ROUTER_LEFT_TEXT "you left session %s before its child answered"
#define ROUTER_OTHER_TEXT "%s %.255s speaks %s, and this connection %s"
/* Return true if the client stands in for the CLI in a session of its own: it gets output like that of the CLI. */
bool router_is_shim(const struct client *c);
struct session *router_find(struct router *r, const char *name);            /* by name */
struct session *router_find_number(const struct router *r, uint64_t id);    /* by its own number; 0: none */
struct session *router_find_conversation(struct router *r, const char *id); /* by conversation id */
bool router_has_conversation(const struct session *s, const char *id);
struct session *router_named(struct router *r, const char *name); /* by either; the name wins */
/* Write a text for users on a conversation that a session has; holder NULL: its name is not for them. */
void router_in_use_text(struct error *out, const char *holder);
/* Hold a line for a session of a name that is being removed: it comes again after the removal. Not while the caller
 * walks through the clients. */
void router_hold(struct client *c, struct chunk line);
void router_subscribe(struct client *c, bool on);                /* notify it of every session */
size_t router_children(const struct router *r);                  /* of sessions, running or starting */
struct client *router_client(struct router *r, uint64_t number); /* NULL: it is gone */
/* Give a new client its number and its place in the list. */
void router_add_client(struct router *r, struct client *c);
/* Return true if the client or one of its channels is in the session. */
bool router_is_in(const struct client *c, const struct session *s);
