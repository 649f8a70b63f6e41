/* SPDX-License-Identifier: MIT
 *
 * The router: decides which client gets which line, and which client may answer a request. The only module that sees
 * both sessions and clients; it fills in the events of both. Split by the source of a line: from_child.c (the child),
 * from_client.c (a client), intake.c (its prompts), turns.c (the owner of a turn), asks.c
 * (requests to clients), execute.c (tools that a client runs by itself), handshake.c (initialize),
 * steps.c (the start of a child, conversations), kept.c (answers from the start), owners.c
 * (hooks, MCP servers), pace.c (slow clients), stall.c (stalled turns), core_carry.c (upgrade), and this
 * header's router.c (sessions, attachments, notices). Policy on the daemon as a whole (verbs, counts, state on disk) is
 * above it, behind struct router_events. Source: docs/contract.md 4 to 8.
 */
#pragma once

#include "core/client.h"
#include "core/descent.h"
#include "core/login.h"
#include "core/session.h"
#include "core/share.h"
#include "wire/notice.h"

enum lag_policy { LAG_GAP, LAG_CLOSE, LAG_WAIT };

/* A client's attachment to a session. Owned by the router; its address identifies it in pending requests and in the
 * registry. */
struct attachment {
	struct list node; /* in its session */
	struct session *session;
	struct client *client;
	bool observer, approve;
	bool by_tool;       /* approver for these tools only */
	struct names tools; /* by_tool */
	enum lag_policy on_lag;
	bool ephemeral;       /* its session ends with it */
	bool wants_stderr;    /* send it the child's stderr at once */
	bool deny_asks;       /* ephemeral, and cannot answer: without another approver permissions are denied at once */
	bool initialized;     /* it has sent an initialize */
	bool asked_approve;   /* it asked to be an approver: has a permission callback */
	int64_t behind_since; /* over the soft limit; 0: not; in the far future: all was reported */
	int64_t waited_since; /* with LAG_WAIT: the child stands still for it since then; 0: it does not */
	uint64_t waited_from; /* the bytes read by then */
	bool waited_told;     /* logged since it last had read everything */
	struct owner *owner;  /* its registration; may be NULL */
};

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
	const char *(*keep)(struct router *r, const struct session *s, char *error, size_t size);
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
	struct watches watches; /* the processes of the clients */
	struct list asked;      /* about them (trust.c) */
	struct descent descent; /* the processes of agents */
	unsigned origins_told;  /* bit 1 << enum origin: the reason to distrust such peers was logged */
	struct children *children;
	struct settings *settings;
	const struct router_events *events;
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

extern const struct client_events from_client_events;

#define TRUST_PRIVATE_TEXT "session %.255s is private to the user who runs the daemon"
#define ROUTER_OTHER_TEXT "%s %.255s speaks %s, and this connection %s"
#define TRUST_AGENT_TEXT                                                                                               \
	"an agent started this program: it may act in that agent's own session only (run it from a shell of your own)"
#define ATTACHMENT_LEFT_TEXT "you left session %s before its child answered"
#define HANDSHAKE_REFUSED_TEXT                                                                                         \
	"your initialize was refused, and with it your hooks, MCP servers or permission callback: nothing of yours runs "  \
	"without them (send an initialize that succeeds first)"

/* Return the gate of the client's dialect. */
struct gate *router_gate(const struct client *c);
struct router *core_new(struct loop *loop, struct children *children, struct settings *settings,
						const struct router_events *events, void *server);
void core_free(struct router *r);

/* --- sessions (router.c) --- */
#define SESSIONS_NAME_MAX 255
#define SESSIONS_NAME_TEXT                                                                                             \
	"1 to %d bytes of UTF-8 without control characters, line separators and controls of the writing direction"
bool sessions_is_name(const char *name); /* a valid session name */
#define SESSIONS_MADE_UP_MAX 24
void sessions_make_up_name(struct router *r, char out[SESSIONS_MADE_UP_MAX]); /* a free one */
/* Give a session without a child and without detached processes, which are known by the old name, another name, which
 * must be free. False: no memory. */
bool sessions_rename(struct session *s, const char *name);
/* Return true if the client may know nothing of the session: it is private and the client has another uid, or the
 * client is an agent's process and the session is neither that agent's nor made by it. */
bool trust_is_closed_to(const struct session *s, struct client *c);
bool session_is_private(const struct session *s); /* to clients of the daemon's uid */
/* The sessions visible to a client, for a walk over all of them: its process is checked once. */
struct trust_view {
	bool ours, agent;
	const struct session *home;
};
struct trust_view trust_view(struct router *r, struct client *c);
bool trust_view_has(const struct trust_view *v, const struct session *s);
/* Return the session in which an agent's process may act: its agent's. NULL: none, removed, or agent_peers = none. */
struct session *trust_home(struct router *r, struct client *c);
/* Return the directory of a child for a client that names none: the client's (same uid), the profile's, or HOME. The
 * caller frees; NULL without memory. */
char *inquiry_usual_cwd(const struct client *c, const struct profile *p);
/* Return true if the client may end the child of the session, or the session: certainly no process of an agent, of the
 * daemon's uid or root, or of the uid that made the session. */
bool trust_may_stop(const struct session *s, struct client *c);
/* Return true if the client stands in for the CLI in a session of its own: it gets output like that of the CLI. */
bool router_is_shim(const struct client *c);
/* Return true if the session is being removed and the client wants its name or its conversation for the next one. A
 * child that was ending in its own time gets the stop sequence then. */
bool sessions_must_wait(struct session *s, struct client *c);
struct session *router_find(struct router *r, const char *name);            /* by name */
struct session *router_find_conversation(struct router *r, const char *id); /* by conversation id */
bool router_has_conversation(const struct session *s, const char *id);
struct session *router_named(struct router *r, const char *name); /* by either; the name wins */
/* Write a text for users on a conversation that a session has; holder NULL: its name is not for them. */
#define ROUTER_IN_USE_MAX 700
void router_in_use_text(char out[ROUTER_IN_USE_MAX], const char *holder);
/* Make and announce a session without starting it. Takes over launch. NULL without memory. */
struct session *sessions_create(struct router *r, const char *name, const struct profile *profile,
								struct launch *launch);
/* Get its first child: a fitting prestarted one, else begin a start (s->starting). */
enum child_result sessions_start(struct router *r, struct session *s, char *error);
/* The same as sessions_create(), without the announcement. */
struct session *sessions_add(struct router *r, const char *name, const struct profile *profile, struct launch *launch);
/* Return NULL if the client may make one more session, else an error code, with a text for it. */
const char *sessions_refused(struct router *r, const struct client *c, char why[SHARE_TEXT_MAX]);
/* Give a session without a child the present configuration, unless that has another dialect. */
void sessions_renew_profile(struct session *s);
/* Remove the session: all its clients are notified and detached. Its child must be gone or is killed. */
void sessions_remove(struct router *r, struct session *s, const char *why);
size_t pool_children(const struct router *r); /* running children, with the prestarted ones */
/* Put the least recently used idle children, but not this one, to sleep while there are too many. Called when a session
 * got a child, or is idle again after a start beyond the limit (all children were at work then). */
void pool_keep_to_limit(struct router *r, const struct session *but);
/* Memory is short: end the prestarted children, or else put the least recently used idle child to sleep. */
void pool_relieve(struct router *r);

/* --- attachments (router.c) --- */
struct attachment *attachment_new(struct router *r, struct client *c, struct session *s, bool observer, bool approve);
void attachment_leave(struct client *c, const char *why);
/* Hold a line for a session of a name that is being removed: it comes again after the removal. Not while the caller
 * walks through the clients. */
void router_hold(struct client *c, struct chunk line);
/* The same, until the start of s has ended. makes: this client has made the session for the line. */
void starts_await(struct client *c, struct session *s, struct chunk line, bool makes);
void starts_leave(struct client *c); /* the client is gone: remove the session made by it if the start fails */
/* For a line that came again after such a wait (c->starting): return the started session. NULL: *code is NULL, and the
 * line waits on; or it is the reason, and a session made for the line is gone. error: CHILD_ERROR_MAX bytes. */
struct session *starts_awaited(struct client *c, struct chunk line, bool *made, const char **code, char *error);

/* --- questions of a line to the outside (inquiry.c) --- */
/* Ask an errand for this line alone; place as in io/errand.h. False: the line comes again when the errand has ended,
 * and the same question is answered then. */
bool inquiry_ask(struct client *c, struct chunk line, const char *kind, const struct buf *request, const char *place);
/* Return the answer to the last question of this line; SPAN_NONE: it failed, or none of this kind was asked. *end: how
 * it ended; end may be NULL. */
struct span inquiry_answer(const struct client *c, const char *kind, enum errand_end *end);
void inquiry_over(struct client *c); /* the line was served, or the client is gone */
/* Let the next start of this launch read the environment of the client, if permitted. */
void inquiry_set_asker(struct launch *l, struct client *c);
void inquiry_take_umask(struct launch *l, struct client *c); /* the same for the umask, at once */
/* Before a session of this profile is made, in cwd (NULL: the usual one): if a prestarted child could fit, ask for the
 * data of login_read() for that place. */
bool inquiry_look_for(struct client *c, struct chunk line, const struct profile *p, const char *cwd);
/* Find the program that a start of this profile for this client would run: the answer of PROGRAM_ERRAND. */
bool inquiry_find_program(struct client *c, struct chunk line, const struct profile *p);
struct child_place inquiry_place_of(const struct client *c);
struct login *inquiry_login_of(const struct client *c, const struct profile *p);

/* Make the attachment for a line without plenum_attach. NULL: it failed and the client was notified; or the line comes
 * again when the session of that name is removed. */
struct attachment *implicit_attach(struct router *r, struct client *c, struct span session, struct span request_id,
								   struct chunk line);
/* Give the owner its place again and offer pending requests: after all members of the attachment are set. */
void attachment_ready(struct router *r, struct attachment *a);

/* --- notices (router.c) --- */
/* Send an error: as the answer to id if present, else as an event `error` with the line's number. */
void notify_fail(struct client *c, struct span id, const char *code, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Send an error that answers no request, with an id that is only mentioned. */
void notify_complain(struct client *c, struct span id, const char *code, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The same about a line that breaks the protocol, as its frame has it. size: its bytes, if it is too long; else 0. */
void notify_complain_of_line(struct client *c, struct span id, const char *code, const char *text, size_t size);
/* Return true if the sender waits for an answer under the line's id: of a request, and in some dialects of a prompt. */
bool notify_is_request(const struct client *c, const struct message *m);
/* Refuse a whole line: by an answer to a request; else by a notice, of a prompt with its uuid. */
void notify_refuse(struct client *c, const struct message *m, const char *code, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Send a notice to all clients of the session, through its tape, and to subscribers. Takes over the chunk. */
void notify_session(struct session *s, struct chunk notice);
/* The same without the tape: to each attachment but `except`, and to subscribers. */
void notify_present(struct session *s, struct chunk notice, const struct attachment *except);
void notify_subscribers(struct session *s, struct chunk notice);
/* Report to the server, unless the session is no client's yet. */
void notify_alert(struct session *s, const struct alert *alert);
bool notify_alert_wanted(const struct session *s, enum alert_kind kind); /* a command is set for it */
void notify_put_by(struct buf *b, const struct client *c);               /* ,"by":{name,uid,pid,program} */
/* Announce who asked for the end of a running child, before its first step: a hang in the wind-down then has a visible
 * cause. */
void notify_stopping(struct session *s, const struct client *by, bool kill_now);
void notify_put_where(struct buf *b, const struct client *c);
/* Call before c wakes the session: its child starts with the environment of c, as the session's maker may be long gone.
 * The environment of an agent's program is not used. */
void inquiry_take_login(struct session *s, struct client *c);
/* Before the start: its first client begins the conversation itself, where a dialect has a request for that. */
void sessions_leave_begin(struct session *s);
void notify_wake(struct session *s);           /* the tape has a new line */
void attachment_close_ended(struct client *c); /* close a half-closed client if it waits for nothing any more */

/* --- upgrade (core_carry.c) --- */
/* Save everything, or restore it into an empty router. */
void core_carry(struct carry *c, struct router *r);
/* After a restore that cannot fail any more: begin to read clients and children. */
void core_resume(struct router *r);
struct client *router_client(struct router *r, uint64_t number); /* NULL: it is gone */

/* --- pace and lag (pace.c) --- */
bool pace_may_read(struct session *s);
void pace_watch(struct session *s); /* a client may be far behind */
void pace_blocked(struct client *c, bool blocked);
void pace_overtaken(struct client *c, uint64_t from, uint64_t to);

/* --- from the child (from_child.c) --- */
extern const struct session_events from_child_events;
void status_publish_now(struct session *s); /* now, with its cause */
void status_publish(struct session *s);     /* session_state_due() */

/* --- which conversation a child has taken up (steps.c) --- */
void steps_next(struct session *s); /* the next step of its child's start is due; the last one lets clients write */
void steps_answered(struct call *call, const struct envelope *e);
void steps_late(struct call *call);
void steps_unread(struct call *call, const char *why); /* its answer cannot be read */
bool steps_is_told(const struct session *s);           /* the tape has lines of the child, which need not be repeated */
void steps_learn_conversation(struct session *s, struct span id);
/* Handle a system line. Return true if it answers only a question of the daemon. */
bool steps_name_line(struct session *s, const struct envelope *e, const struct report *r);

/* --- answers that the start of a child brings (kept.c) --- */
void kept_ask(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
void kept_due(struct session *s); /* a step was answered: serve the clients that wait for it */
/* A step has failed: its clients get the reason. Return true if the start goes on with another try of theirs. */
bool kept_failed(struct session *s, const char *why);
/* Send the newest values that the child has reported before the client came. Before it reads the tape. */
void kept_post(struct attachment *a);

/* --- turns (turns.c): when one begins and ends, and which prompts it answers --- */
void turns_begin(struct session *s, const struct envelope *e);
void turns_end(struct session *s, struct chunk line, const struct envelope *e); /* line may be none */
bool turns_is_open(const struct session *s); /* the child has prompts without a result */
/* Append `cost_usd`, the cost of the conversation as last reported; null: none was. */
void turns_put_cost(struct buf *b, const struct session *s);
void turns_sent(struct session *s, struct prompt *p); /* its answer will end its turn (CALL_PROMPT) */
/* Its answer has come. */
void turns_answered(struct call *call, struct chunk line, const struct envelope *e);
void turns_named(struct session *s); /* announce a turn begun before its prompts were known */
void turns_echo(struct session *s, const struct envelope *e);
void turns_fate(struct session *s, enum report_fate fate, struct span uuid); /* of a prompt */
void turns_state(struct session *s, enum report_state state);
void turns_cancelled(struct session *s, const struct envelope *e, const struct call *call);
void turns_failed(struct session *s, const struct session_exit *e, const char *text); /* the child is gone */

/* --- stalled turns (stall.c) --- */
void stall_state(struct session *s); /* its state has changed */
void stall_line(struct session *s);  /* the child has printed a line */
void stall_watch(struct session *s, int64_t ms);
void stall_over(struct session *s); /* its turn is not watched any more */

/* --- from clients (from_client.c) --- */
void from_client_line(struct client *c, struct chunk line);
void from_client_long_line(struct client *c, struct chunk head, size_t size);
void from_client_no_more(struct client *c);
void from_client_gone(struct client *c);
void from_client_evicted(struct client *c, size_t held);
/* Builds the line for the child in place of a client's; id: without quotes. */
typedef void requests_put_fn(struct buf *b, const struct session *s, const char *id, const char *body);
requests_put_fn requests_put; /* with this body */
/* Send a client's request to the child under a fresh id; put NULL: the line's own. NULL: the client was notified. */
struct call *requests_send(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
						   requests_put_fn *put, const char *body);
/* Return the client's line for the child: under this raw id (absent: a line without one), and with the conversation
 * named if it is left out. data NULL without memory. */
struct chunk requests_line_for(const struct session *s, struct span body, const struct envelope *e, struct span id);
/* Announce the change as soon as the child confirms it. call may be NULL: there is nothing to announce. */
void requests_announce_change(struct call *call, const struct gate_row *row, const struct envelope *e);
/* Send a line without an answer to the child. False: the client was notified. */
bool requests_pass_line(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
void requests_timer(void *call); /* timeout */
/* Pass the child's answer to the asker, if it is there. */
void requests_pass_answer(const struct call *call, struct chunk line, const struct envelope *e);
void requests_answered(struct call *call, struct chunk line, const struct envelope *e);
void requests_fail(struct call *call, const char *code, const char *text); /* text NULL: no client is notified */

/* --- prompts (intake.c) --- */
void intake_prompt(struct client *c, struct session *s, struct chunk line, const struct message *m);
void intake_send_held(struct session *s); /* send the queued prompts that may go; refuse those that never may */
void intake_leave(struct client *c);      /* it detaches: withdraw prompts that wait for its initialize */
void turns_prompt_cancelled(struct session *s, struct prompt *p, const struct client *by); /* it will not run */
void intake_cancel_held(struct session *s, struct client *by, bool all); /* all: also those of other clients */
void intake_interrupt(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
/* The same by a line without an answer: the child then expects an answer to each of its permission requests. */
void intake_interrupt_line(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
/* Withdraw the prompt of this call if the child does not know it yet. False: it does. */
bool intake_withdraw_held(struct session *s, struct call *call, const struct client *by);
void intake_cancel_prompt(struct client *c, struct session *s, struct chunk line, const struct envelope *e);

/* --- requests to clients (asks.c) --- */
void asks_add(struct session *s, struct chunk line, const struct envelope *e);
void asks_decide(struct pending *p); /* a new entry: apply the rules, else ask its approvers */
/* Settle by a decision of the client in a itself. */
void asks_settle_own(struct pending *p, const struct attachment *a, const char *decision, const char *why);
void asks_offer(struct attachment *a); /* send it the open requests that it may answer */
void asks_timer(void *pending);        /* timeout */
void asks_answer(struct client *c, struct chunk line, const struct envelope *e);
void asks_withdrawn(struct session *s, struct span child_id); /* by the child */
/* The turn was interrupted: withdraw its permission requests. Those of background agents stay open. */
void asks_withdraw_turn(struct session *s);
void asks_cancel_turn(struct session *s); /* the same, each with an answer to the child */
void asks_withdraw_all(struct session *s, const char *why);
void asks_leave(struct attachment *a); /* it is gone, or no approver any more */
/* Send the daemon's own answer. body: value of response.response, freed; NULL: answer with an error. */
void asks_answer_self(struct pending *p, struct buf *body, const char *decision, const char *why);
void asks_refuse(struct session *s, struct chunk line, const struct envelope *e, const char *why);
bool asks_may_answer(const struct attachment *a, const struct pending *p);

/* --- lines of clients that run a tool (execute.c) --- */
/* Judge a line or request of ACT_EXECUTE as the tool call that it is. The client drives the session. */
void execute_line(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
/* Take the answer to the question about it, in the form sent to the child. Takes the reference. False without memory.
 */
bool execute_answered(struct pending *p, struct chunk answer, const struct client *by);
/* Return true if the rules can judge the input allowed by this answer. False: the client's line comes again then. */
bool execute_may_judge(struct client *c, struct chunk line, const struct pending *p, struct chunk answer);
void execute_unanswered(struct pending *p, const char *why); /* there will be no answer */
/* Return the client's open question under its own id. SPAN_NONE: any of its. NULL: none. */
struct pending *execute_open(struct session *s, const struct client *c, struct span id);
void execute_left(struct session *s, struct client *c); /* the client has left the session */

/* --- initialize (handshake.c) --- */
void handshake_initialize(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
void handshake_answered(struct session *s, struct call *call, struct chunk line, const struct envelope *e);
void handshake_unread(struct session *s, struct call *call, const char *code, const char *text);
/* ends: the session ends with the child. */
void handshake_child_gone(struct session *s, const char *text, bool ends);
void handshake_started(struct session *s); /* a child was started: send its first initialize, if any */
void handshake_before_prompt(struct session *s);
void handshake_resend(struct session *s);  /* if the child lacks the newest registry, and can take it now */
void handshake_restart(struct session *s); /* if the child can take it only by a restart, and is idle */
bool handshake_begin(struct session *s);   /* before all else of a session; false without memory */
void handshake_free(struct session *s);
void handshake_move(struct session *to, struct session *from); /* with the child; neither has a registration yet */
/* Return true if the client waits for the answer to an initialize: to this one, if an id is given. */
bool handshake_waits(const struct session *s, const struct client *c, struct span id);
/* Note a client's initialize before any check: its prompts wait for the success if it has hooks, servers or a
 * permission callback. Return true if it has. */
bool handshake_arrives(struct client *c, struct span request);
/* The same for a line without valid JSON as a whole: text is the available part. */
bool handshake_arrives_broken(struct client *c, const char *text, size_t n);
/* After such a line was served: if it was refused, a shim is notified at once, and ends. */
void handshake_served(struct client *c);
/* Return true if the newest initialize that the client's prompts need was refused, and no other has succeeded. */
bool handshake_refused(const struct client *c);
/* Return true if it is unknown whether the client's hooks apply: its prompts wait. */
bool handshake_holds(const struct session *s, const struct client *c);
/* Return the version of the registry that has hooks of this client not yet taken by a child; 0: there are none. */
uint64_t handshake_needs(const struct session *s, const struct client *c);
/* Return true if this queued prompt waits for its client's hooks. They may outlast the client's role as their holder: a
 * client that has ended its input, or observes now, left them behind. */
bool handshake_holds_prompt(const struct session *s, const struct prompt *p);
/* Return true if a line of the client must not run, by either; the client was notified. id: the request's, or absent.
 */
bool handshake_blocks(struct client *c, struct span id);
bool handshake_asks(const struct session *s);       /* the first client's initialize has members that are not empty */
bool handshake_is_current(const struct session *s); /* the child has taken the newest registry */
void handshake_made_current(struct session *s);     /* the child gets the change by another request */
void handshake_left(struct session *s, struct client *c);
void handshake_carry(struct carry *c, struct session *s);
bool handshake_is_answered(const struct session *s); /* by this child, not by one before it */
struct span handshake_kept(const struct session *s); /* the child's answer to initialize, or absent */

/* --- hooks, MCP, owners (owners.c) --- */
void hooks_call(struct session *s, struct chunk line, const struct envelope *e);
void hooks_mcp(struct session *s, struct chunk line, const struct envelope *e);
/* Answer a callback without a reachable client: refuse if it guards, or is unknown. */
void hooks_refuse(struct session *s, struct span id, struct span callback, const char *why);
void hooks_deadline(struct pending *p);
void hooks_unanswered(struct pending *p); /* its client answered without a decision */
void servers_set(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
				 const struct gate_row *row);
/* Return true if the attachment may register hooks and servers, and take over those of an absent owner with its uid and
 * name. */
bool owners_may_register(const struct attachment *a);
#define OWNERS_SERVERS_TEXT "MCP servers are registered by drivers of the daemon's own user: "
const char *owners_why_not(const struct attachment *a); /* static text */
/* Return the owner, present or absent, that keeps the attachment from registering this server; NULL: none. name: raw
 * JSON. `a` need not be in the session yet. */
struct owner *owners_of_server(struct session *s, const struct attachment *a, const char *as, struct span name);
/* Return the name by which the client may take over an absent owner's registration; NULL: none. Checks the client's
 * process. */
const char *owners_takes_up_as(const struct attachment *a);
void owners_refuse_server(struct client *c, struct span id, struct span name, const struct owner *o);
/* Register a server named in the attach (the shim's argv). It must not be taken. Return NULL, or an error text. */
const char *owners_add_server(struct attachment *a, const char *name);
/* Return its registration; make it if needed, with that of an absent owner of its uid and name. NULL without memory. */
struct owner *owners_get(struct attachment *a);
void owners_leave(struct attachment *a);
void owners_return(struct attachment *a); /* take over the registrations of its absent owners, if permitted */
void owners_grace_timer(void *owner);     /* timeout: it did not come back */
/* Restore saved guards; their owners count as gone from now on. False: the text is damaged, and every tool is refused.
 */
bool owners_restore_guards(struct session *s, const char *guards);
/* Go on without the unreadable guards. False: none were lost. */
bool owners_clear_lost(struct session *s, const struct client *by);
