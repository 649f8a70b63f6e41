/* SPDX-License-Identifier: MIT
 *
 * The router: who receives which line, who may answer which request. The only module that sees both sessions and
 * clients; it fills in the events of both. Split by where a line comes from: router_child.c (the child),
 * router_client.c (a client), router_prompts.c (its prompts), router_turns.c (whose turn it is), router_asks.c
 * (requests that somebody must answer), router_execute.c (tools that a client runs by itself), router_init.c
 * (initialize), router_names.c (conversations), router_hooks.c (hooks, MCP servers), router_lag.c (slow clients),
 * router_carry.c (an upgrade), and this header's router.c (sessions, attachments, notices). Policy on the daemon as a
 * whole (verbs, counts, state on disk) is above it, behind struct router_events. Source: DESIGN 4 to 8.
 */
#pragma once

#include "core/client.h"
#include "core/descent.h"
#include "core/login.h"
#include "core/notice.h"
#include "core/session.h"
#include "core/share.h"
#include "wire/message.h"

enum lag_policy { LAG_GAP, LAG_CLOSE, LAG_WAIT };

/* A client's place in a session. Owned by the router; its address names it in pending requests and in the registry. */
struct attachment {
	struct list node; /* in its session */
	struct session *session;
	struct client *client;
	bool observer, approve;
	bool by_tool;       /* approver for these tools only */
	struct names tools; /* by_tool */
	enum lag_policy on_lag;
	bool ephemeral;       /* its session ends with it */
	bool wants_stderr;    /* the child's stderr, as it comes */
	bool deny_asks;       /* ephemeral, and cannot answer: without another approver permissions are denied at once */
	bool initialized;     /* has sent an initialize */
	bool asked_approve;   /* asked to be an approver: has a permission callback */
	int64_t behind_since; /* over the soft limit; 0: not; in the far future: all is said */
	int64_t waited_since; /* with LAG_WAIT: since then the child stands still for it; 0: it does not */
	uint64_t waited_from; /* what it had read by then */
	bool waited_told;     /* the log has named it since it had read everything */
	struct owner *owner;  /* its registration; may be NULL */
};

struct router;
struct warm;

struct router_events {
	/* A plenum_ request. */
	void (*verb)(struct router *r, struct client *c, struct chunk line, const struct envelope *e);
	/* Something that the table on disk holds has changed. */
	void (*changed)(struct router *r);
	/* The table on disk has it, with the hooks that are staged in s, or an error code and a text for the client. */
	const char *(*keep)(struct router *r, const struct session *s, char *error, size_t size);
	/* Somebody is needed: a request waits for a person and may have nobody to answer it. */
	void (*attention)(struct router *r, const struct session *s, const struct pending *p);
	/* A client is gone: its descriptor is free. */
	void (*client_gone)(struct router *r);
	/* Is this a process that the daemon itself started for a person (on_pending)? */
	bool (*is_helper)(struct router *r, pid_t pid);
	/* A session's child has ended for good and the session is to go. */
	void (*session_over)(struct router *r, struct session *s);
};

struct router {
	struct loop *loop;
	struct lines_pool pool;
	struct watches watches; /* the processes of the clients */
	struct descent descent; /* the processes of agents */
	unsigned origins_told;  /* bit 1 << enum origin: the log has said why such peers are not trusted */
	struct children *children;
	struct settings *settings;
	const struct router_events *events;
	void *server;
	const char *instance;
	uint64_t nofile;
	struct login *login;      /* of the newest session: most have the same */
	struct session *sessions; /* by name */
	size_t n_sessions;
	struct warm *warm; /* children that nobody has asked for yet (core/warm.h) */
	struct list clients;
	struct shares shares;
	size_t n_clients, n_subscribers;
	uint64_t clients_seen, sessions_seen, decisions, bad_lines;
	struct gate *gate; /* core/gate.h */
	uint64_t last_seq; /* the highest number on the tapes of sessions that are gone */
	bool guards_lost;  /* sessions were lost of which nothing is known: new ones refuse every tool */
	bool shutting_down;
};

extern const struct client_events router_client_events;

#define ANSWER_LONG_TEXT "the child's answer is longer than the limit (child_line)"
#define ROUTER_PRIVATE_TEXT "session %.255s is private to the user who runs the daemon"
#define ROUTER_AGENT_TEXT                                                                                              \
	"an agent started this program: it may act in that agent's own session only (run it from a shell of your own)"
#define ROUTER_LEFT_TEXT "you left session %s before its child answered"
#define ROUTER_INIT_TEXT                                                                                               \
	"your initialize was refused, and with it your hooks, MCP servers or permission callback: nothing of yours runs "  \
	"without them (send an initialize that succeeds first)"

struct router *router_new(struct loop *loop, struct children *children, struct settings *settings,
						  const struct router_events *events, void *server);
void router_free(struct router *r);

/* --- sessions (router.c) --- */
#define ROUTER_NAME_MAX 255
#define ROUTER_NAME_TEXT                                                                                               \
	"1 to %d bytes of UTF-8 without control characters, line separators and controls of the writing direction"
bool router_is_name(const char *name); /* may a session be called so? */
/* Return true if the client may know nothing of the session: it is private and the client has another uid, or the
 * client is an agent's process and the session is neither that agent's nor made by it. */
bool router_is_closed_to(const struct session *s, struct client *c);
/* What a client may know of, for a walk over all sessions: its process is looked at once. */
struct router_view {
	bool ours, agent;
	const struct session *home;
};
struct router_view router_view(struct router *r, struct client *c);
bool router_view_has(const struct router_view *v, const struct session *s);
/* The session in which a process of an agent may act: its agent's. NULL: none, it is gone or has agent_peers = none. */
struct session *router_home(struct router *r, struct client *c);
/* Where a child starts for a client that names no folder. The caller's; NULL without memory. */
char *router_usual_cwd(const struct client *c, const struct profile *p);
/* Return true if the client may end the child of the session, or the session: certainly no process of an agent, of the
 * daemon's uid or root, or of the uid that made the session. */
bool router_may_stop(const struct session *s, struct client *c);
/* Does it stand in the place of the CLI, in a session of its own? It is shown what the CLI would show. */
bool router_is_shim(const struct client *c);
/* Is it going to be forgotten, and the client wants its name or its conversation for the next one? A child that was
 * left its own time to end gets the steps of a stop then. */
bool router_must_wait(struct session *s, struct client *c);
struct session *router_find(struct router *r, const char *name);            /* by name */
struct session *router_find_conversation(struct router *r, const char *id); /* by conversation id */
bool router_has_conversation(const struct session *s, const char *id);
struct session *router_named(struct router *r, const char *name); /* by either, the name first */
/* Made, told to all, not started. launch is taken over. NULL without memory. */
struct session *router_create(struct router *r, const char *name, const struct profile *profile, struct launch *launch);
/* Its first child: a spare that fits, else a start begins (s->starting). */
enum child_result router_start(struct router *r, struct session *s, char *error);
/* The same without telling anybody. */
struct session *router_add(struct router *r, const char *name, const struct profile *profile, struct launch *launch);
/* Why the client may make no session more: an error code, with a text for it; NULL: it may. */
const char *router_session_refused(struct router *r, const struct client *c, char why[SHARE_TEXT_MAX]);
/* A session without a child gets what the configuration says now. */
void router_renew_profile(struct session *s);
/* The session goes: everybody in it is told and detached. Its child must be gone or is killed. */
void router_remove(struct router *r, struct session *s, const char *why);
size_t router_children(const struct router *r); /* that run, the spares among them */
/* The least recently used idle children, but not this one, go to sleep while there are too many: it has a child now, or
 * is idle again after more were started than there may be, because all were at work. */
void router_keep_to_limit(struct router *r, const struct session *but);
/* Memory is short: the spares end, or else the least recently used idle child goes to sleep. */
void router_relieve(struct router *r);

/* --- attachments (router.c) --- */
struct attachment *router_attach(struct router *r, struct client *c, struct session *s, bool observer, bool approve);
void router_detach(struct client *c, const char *why);
/* What this line asks for has the name of a session that is to be forgotten: it comes again when that is gone. Not
 * while somebody walks through the clients. */
void router_hold(struct client *c, struct chunk line);
/* The same: it comes again when the start of s has come to its end. makes: this client has made the session for it. */
void router_await_start(struct client *c, struct session *s, struct chunk line, bool makes);
void router_leave_start(struct client *c); /* it is gone: its own session goes, another that it makes if that fails */
/* For a line that has come again so (c->starting): the session, started. NULL: *code is NULL, and the line waits on; or
 * it says why not, and a session that was made for it is gone. error: CHILD_ERROR_MAX bytes. */
struct session *router_awaited(struct client *c, struct chunk line, bool *made, const char **code, char *error);

/* --- what a line needs from outside (router_outside.c) --- */
/* Asks an errand, for this line alone; place as in io/errand.h. False: the line comes again when that is over, and the
 * same question is answered then. */
bool router_inquire(struct client *c, struct chunk line, const char *kind, const struct buf *request,
					const char *place);
/* The answer to the question that this line asked last; SPAN_NONE: it failed, or none was asked of this kind. *end (may
 * be NULL): how it ended. */
struct span router_answer_of(const struct client *c, const char *kind, enum errand_end *end);
void router_inquiry_over(struct client *c); /* the line was served, or the client is gone */
/* The next start of this launch reads the environment of the client, if that may be. */
void router_set_asker(struct launch *l, struct client *c);
/* Before a session of this profile is made, in cwd (NULL: the usual one): if a warm child could fit, what login_read()
 * needs is asked for, and where that is. */
bool router_look_for(struct client *c, struct chunk line, const struct profile *p, const char *cwd);
struct child_place router_place_of(const struct client *c);
struct login *router_login_of(const struct client *c, const struct profile *p);

/* The attachment that a line without plenum_attach makes. NULL: it could not, the client was told; or the line comes
 * again when the session of that name, which is to be forgotten, is gone. */
struct attachment *router_attach_implicitly(struct router *r, struct client *c, struct span session,
											struct span request_id, struct chunk line);
/* The owner takes its place again, pending requests are offered: after every member of the attachment is set. */
void router_attached(struct router *r, struct attachment *a);

/* --- telling (router.c) --- */
/* An error: as the answer to id where there is one, else as an event `error` with the line's number. */
void router_fail(struct client *c, struct span id, const char *code, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* An error that is not the answer to a request, with an id that is only mentioned. */
void router_complain(struct client *c, struct span id, const char *code, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* A whole line is refused: an answer to a request; else a notice, of a prompt with its uuid. */
void router_refuse(struct client *c, const struct message *m, const char *code, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* A notice to everybody in the session, through its tape, and to subscribers. Takes over the chunk. */
void router_tell(struct session *s, struct chunk notice);
/* The same, but not on the tape: to each attachment but `except`, and to subscribers. */
void router_tell_present(struct session *s, struct chunk notice, const struct attachment *except);
void router_tell_subscribers(struct session *s, struct chunk notice);
void router_put_by(struct buf *b, const struct client *c); /* ,"by":{name,uid,pid,program} */
/* Who asked for the end of a child that runs, before its first step; what hangs in the wind-down has a cause then. */
void router_tell_stopping(struct session *s, const struct client *by, bool kill_now);
void router_put_where(struct buf *b, const struct client *c);
/* Before c wakes the session: its child starts with c's login, the one that made it may be long gone. Not with that of
 * an agent's program. */
void router_take_login(struct session *s, struct client *c);
/* The raw string or integer of a member in the beginning of a line whose rest is gone; key with its quotes. */
struct span router_head_member(struct chunk head, const char *key);
void router_wake_all(struct session *s);   /* there is something on the tape */
void router_close_ended(struct client *c); /* a half-closed client, if it waits for nothing any more */

/* --- to the next binary (router_carry.c) --- */
/* Everything; into a router that has nothing yet. */
void router_carry(struct carry *c, struct router *r);
/* After it, when nothing can fail any more: clients and children are listened to. */
void router_resume(struct router *r);
struct client *router_client(struct router *r, uint64_t number); /* NULL: it is gone */

/* --- pace and lag (router_lag.c) --- */
bool router_on_may_read(struct session *s);
void router_watch_lag(struct session *s); /* somebody may be far behind */
void router_pace(struct client *c, bool blocked);
void router_overtaken(struct client *c, uint64_t from, uint64_t to);

/* --- from the child (router_child.c) --- */
extern const struct session_events router_session_events;
void router_tell_state(struct session *s);    /* now, with what it is about */
void router_publish_state(struct session *s); /* session_state_due() */

/* --- which conversation a child has taken up (router_names.c) --- */
void router_name_ask(struct session *s);  /* it has answered its initialize, and clients' lines wait for the name */
void router_name_over(struct call *call); /* that was answered, or not in time */
void router_learn_conversation(struct session *s, struct span id);
/* A system line. Return true if it is there only because the daemon has asked. */
bool router_name_line(struct session *s, const struct envelope *e);

/* --- turns (router_turns.c): when one begins and ends, and which prompts it answers --- */
void router_turn_begins(struct session *s, const struct envelope *e);                  /* system/init */
void router_turn_ends(struct session *s, struct chunk line, const struct envelope *e); /* result; line may be none */
void router_turn_named(struct session *s);                                             /* whose it is can be told now */
void router_turn_echo(struct session *s, const struct envelope *e);                    /* isReplay */
void router_turn_lifecycle(struct session *s, struct chunk line);                      /* command_lifecycle */
void router_turn_state(struct session *s, struct chunk line);                          /* session_state_changed */
void router_turn_cancelled(struct session *s, const struct envelope *e, const struct call *call);
void router_turn_failed(struct session *s, const struct session_exit *e, const char *text); /* the child is gone */

/* --- from clients (router_client.c) --- */
void router_on_line(struct client *c, struct chunk line);
void router_on_long_line(struct client *c, struct chunk head, size_t size);
void router_on_no_more(struct client *c);
void router_on_gone(struct client *c);
void router_on_evicted(struct client *c, size_t held);
/* A request of a client to the child under a fresh id; body NULL: the line's own. NULL: the client was told why not. */
struct call *router_call(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
						 const char *body);
/* Announce the change as soon as the child confirms it. call may be NULL: there is nothing to announce. */
void router_announce_change(struct call *call, const struct gate_row *row, const struct envelope *e);
/* A line without an answer goes to the child as it is. False: the client was told why not. */
bool router_pass_line(struct client *c, struct session *s, struct chunk line);
void router_call_timer(void *call); /* its time is over */
void router_call_answered(struct call *call, struct chunk line, const struct envelope *e);
void router_fail_call(struct call *call, const char *code, const char *text); /* text NULL: nobody is told */

/* --- prompts (router_prompts.c) --- */
void router_prompt(struct client *c, struct session *s, struct chunk line, const struct message *m);
void router_send_held(struct session *s);    /* those held prompts that may go; those that never may are refused */
void router_prompts_leave(struct client *c); /* it detaches: what waits for its initialize is taken back */
void router_prompt_cancelled(struct session *s, struct prompt *p, const struct client *by); /* it will not run */
void router_cancel_held(struct session *s, struct client *by, bool all); /* all: also those of others */
void router_interrupt(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
void router_cancel_prompt(struct client *c, struct session *s, struct chunk line, const struct envelope *e);

/* --- requests that somebody must answer (router_asks.c) --- */
void router_ask(struct session *s, struct chunk line, const struct envelope *e);
void router_decide(struct pending *p); /* a new entry: by a rule, else its approvers are asked */
/* Decided by what the client in a has sent itself. */
void router_settle_own(struct pending *p, const struct attachment *a, const char *decision, const char *why);
void router_offer(struct attachment *a); /* what is open and may be answered by it */
void router_ask_timer(void *pending);    /* its time is over */
void router_answer(struct client *c, struct chunk line, const struct envelope *e);
void router_withdrawn(struct session *s, struct span child_id); /* the child's control_cancel_request */
/* The turn was interrupted: its permission requests go with it. Those of background agents stay open. */
void router_withdraw_turn(struct session *s);
void router_withdraw_all(struct session *s, const char *why);
void router_unask(struct attachment *a); /* it is gone, or no approver any more */
/* The daemon's own answer. body: value of response.response, freed; NULL: an error is the answer. */
void router_answer_self(struct pending *p, struct buf *body, const char *decision, const char *why);
void router_refuse_unasked(struct session *s, struct chunk line, const struct envelope *e, const char *why);
bool router_may_answer(const struct attachment *a, const struct pending *p);

/* --- lines of clients that run a tool (router_execute.c) --- */
/* A line or request of ACT_EXECUTE, judged as the tool call that it is. The client drives the session. */
void router_execute(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
/* The answer to the question about it, as the child would get it. Takes over the reference. False without memory. */
bool router_execute_answered(struct pending *p, struct chunk answer, const struct client *by);
/* Can the rules be held against what this answer allows? False: the client's line comes again when they can. */
bool router_execute_may_judge(struct client *c, struct chunk line, const struct pending *p, struct chunk answer);
void router_execute_unanswered(struct pending *p, const char *why); /* there will be none */
/* The client's open question under its own id. SPAN_NONE: any of its. NULL: none. */
struct pending *router_execute_open(struct session *s, const struct client *c, struct span id);
void router_execute_left(struct session *s, struct client *c); /* the client has left the session */

/* --- initialize (router_init.c) --- */
void router_initialize(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
void router_init_answered(struct session *s, struct call *call, struct chunk line, const struct envelope *e);
void router_init_too_long(struct session *s, struct call *call);
/* ends: the session with it. */
void router_init_child_gone(struct session *s, const char *text, bool ends);
void router_init_started(struct session *s); /* a child was started: what must it be told first? */
void router_init_before_prompt(struct session *s);
void router_init_resend(struct session *s);  /* if the child has not the registry as it is, and can take it now */
void router_init_restart(struct session *s); /* if it can take it only by a restart, and is idle */
bool router_init_begin(struct session *s);   /* before all else of a session; false without memory */
void router_init_free(struct session *s);
void router_init_move(struct session *to, struct session *from); /* with the child; neither has a registration yet */
/* Does the client wait for the answer to an initialize: to this one, where an id is given? */
bool router_init_waits(const struct session *s, const struct client *c, struct span id);
/* A line of the client that is an initialize, before anything looks at it: from here on its prompts wait for the
 * success, if it carries hooks, servers or a permission callback. Return true if they do. */
bool router_init_arrives(struct client *c, struct span request);
/* The same for a line that cannot be read as a whole: text is what there is of it. */
bool router_init_arrives_broken(struct client *c, const char *text, size_t n);
/* After such a line was served: where it was refused, a shim hears of it at once, and ends. */
void router_init_served(struct client *c);
/* Return true if the newest initialize that the client's prompts need was refused, and no other has succeeded. */
bool router_init_refused(const struct client *c);
/* Return true if it is not known yet whether the client's hooks apply: its prompts wait. */
bool router_init_holds(const struct session *s, const struct client *c);
/* The version of the registry that has the hooks of this client which no child has taken yet; 0: there are none. */
uint64_t router_init_needs(const struct session *s, const struct client *c);
/* Return true if this held prompt waits for its client's hooks. They may outlast the client's place as their holder: a
 * client that has ended its input, or observes now, left them behind. */
bool router_init_holds_prompt(const struct session *s, const struct prompt *p);
/* For a line of the client that runs something: return true if it must not, by either; the client was told. id: of the
 * request, or absent. */
bool router_init_blocks(struct client *c, struct span id);
bool router_init_asks(const struct session *s);       /* a client's initialize has members that ask for something */
bool router_init_is_current(const struct session *s); /* has the child taken the registry as it is? */
void router_init_made_current(struct session *s);     /* it learns of the change by another request */
void router_client_left_init(struct session *s, struct client *c);
void router_init_carry(struct carry *c, struct session *s);
bool router_init_is_answered(const struct session *s); /* by this child, not by one before it */
struct span router_kept_init(const struct session *s); /* the child's answer to initialize, or absent */

/* --- hooks, MCP, owners (router_hooks.c) --- */
void router_hook(struct session *s, struct chunk line, const struct envelope *e);
void router_mcp(struct session *s, struct chunk line, const struct envelope *e);
/* A callback that nobody can be asked about: no, if it guards (or if it is not known what it is). */
void router_refuse_hook(struct session *s, struct span id, struct span callback, const char *why);
void router_hook_deadline(struct pending *p);
void router_hook_unanswered(struct pending *p); /* its client answered without a decision */
void router_set_servers(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
						const struct gate_row *row);
/* Return true if the attachment may register hooks and servers, and take up those of an absent owner with its uid and
 * name. */
bool router_may_own(const struct attachment *a);
#define ROUTER_SERVERS_TEXT "MCP servers are registered by drivers of the daemon's own user: "
const char *router_why_not_own(const struct attachment *a); /* static text */
/* The owner, present or absent, that keeps the attachment from registering this server; NULL: none. name: raw JSON.
 * `a` need not be in the session yet. */
struct owner *router_server_taken(struct session *s, const struct attachment *a, const char *as, struct span name);
/* The name by which the client may take up what an absent owner left; NULL: none. Looks at the client's process. */
const char *router_takes_up_as(const struct attachment *a);
void router_refuse_server(struct client *c, struct span id, struct span name, const struct owner *o);
/* Register a server named in the attach (the shim's argv). It must not be taken. NULL, or what is wrong. */
const char *router_own_server(struct attachment *a, const char *name);
/* Its registration, made if need be, with what an absent owner of its uid and name left. NULL without memory. */
struct owner *router_owner(struct attachment *a);
void router_owner_leaves(struct attachment *a);
void router_owner_returns(struct attachment *a); /* takes up what its absent owners left, if it may */
void router_grace_timer(void *owner);            /* it did not come back */
/* The guards of before, whose owners are gone since now. False: the text is damaged, and every tool is refused. */
bool router_restore_guards(struct session *s, const char *guards);
/* Go on without the guards that could not be read. False: none were lost. */
bool router_clear_lost(struct session *s, const struct client *by);
