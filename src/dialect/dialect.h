/* SPDX-License-Identifier: MIT
 *
 * The door to the protocols of agent CLIs. A dialect is a constant table of functions, chosen by `dialect` in a
 * profile; each has a directory of its own below this one. The other layers of the daemon know a protocol only through
 * this table and the neutral facts that it reports.
 *
 * Every dialect has one JSON object on each line. A dialect keeps no state of its own: what it must remember is in the
 * structs that are passed in (struct memo). Unless said otherwise: spans are raw JSON within the line that was passed
 * in, and SPAN_NONE if absent; a function that appends to a buf marks the buf as failed without memory; a returned text
 * is static, and an error text is a sentence for users. "NULL" after a member: it may be NULL in the table, with this
 * meaning.
 */
#pragma once

#include "base/buf.h"
#include "base/words.h"
#include "dialect/dialect_frame.h"
#include "dialect/dialect_gate.h"
#include "dialect/dialect_turn.h"
#include "dialect/memo.h"
#include "dialect/message.h"
#include "dialect/timers.h"
#include "dialect/tools.h"
#include "wire/scan.h"
#include "wire/splice.h"

/* The kind of a child's line. Kinds up to LINE_OTHER are for all clients. */
enum line_kind {
	LINE_USER,
	LINE_ASSISTANT,
	LINE_STREAM_EVENT, /* a piece of an answer, which is not read: it says nothing but that the turn works */
	LINE_RESULT,       /* the end of a turn */
	LINE_SYSTEM,       /* a report of the child on itself */
	LINE_TOOL_PROGRESS,
	LINE_RATE_LIMIT,
	LINE_LIFECYCLE, /* the fate of a prompt */
	LINE_RESET,     /* another conversation begins */
	LINE_NOTICE,    /* a plenum_event of ours */
	LINE_OTHER,     /* any other type, or none */
	LINE_REQUEST,   /* an ask: a request of the child */
	LINE_RESPONSE,  /* the answer to a request */
	LINE_CANCEL,    /* the child withdraws an ask */
};

/* Requests of the child. ASK_HOOK and ASK_MCP only come from a dialect with hooks. */
enum ask_kind { ASK_TOOL, ASK_HOOK, ASK_MCP, ASK_ELICITATION, ASK_DIALOG, ASK_UNKNOWN };

/* The parts of an ask that others read. */
enum ask_part {
	ASK_PART_TOOL,       /* the name of the tool; of a hook: of the tool that it is called for */
	ASK_PART_INPUT,      /* its input, an object */
	ASK_PART_TOOL_INPUT, /* the same; of a hook: of the tool that it is called for */
	ASK_PART_AGENT,      /* the id of the subagent that asks; absent: the main turn asks */
	ASK_PART_DIALOG_KIND,
	ASK_PART_CALLBACK,    /* hook: the id of the callback */
	ASK_PART_SERVER,      /* MCP: the name of the server */
	ASK_PART_MESSAGE,     /* MCP: the JSON-RPC message */
	ASK_PART_SUGGESTIONS, /* the changes that an answer may ask the child to remember, an array */
	ASK_PART_SUBJECT,     /* the command, path, ... that the tool is about, a string */
	ASK_PART_TITLE,       /* a free text that may name the tool: rules deny and ask by it, and allow nothing */
};

/* The first bytes of a line that is too long to be read: only facts found without parsing. */
struct head {
	enum line_kind kind; /* LINE_REQUEST, LINE_RESPONSE, LINE_RESULT, else LINE_OTHER */
	enum ask_kind ask;   /* of a LINE_REQUEST */
	struct span id;      /* the id asked or answered; a string or an integer */
	struct span callback;
};

enum report_state { REPORT_STATE_NONE, REPORT_RUNS, REPORT_RESTS };

/* FATE_WITHDRAWN: taken back before it ran, on request; FATE_DROPPED: it gets no result for another reason. */
enum report_fate { FATE_NONE, FATE_WITHDRAWN, FATE_DROPPED };

enum report_tasks { REPORT_TASKS_NONE, REPORT_TASKS, REPORT_TASK_BEGINS, REPORT_TASK_ENDS };

/* The facts in a line of the child that is no ask, answer, withdrawal or end of a turn. */
struct report {
	bool begins;   /* a turn begins, and the line describes the child: version, left_socket */
	bool works;    /* a part of the main turn */
	bool echo;     /* the child has taken the prompt e->uuid */
	bool starting; /* of a start in progress, during which the conversation may still change */
	bool named;    /* the child names its conversation only because it was asked to (put_step) */
	bool resets;   /* another conversation begins */
	enum report_state state;
	enum report_fate fate;
	struct span prompt; /* with a fate: the uuid */
	struct span mode, model;
	struct span version, left_socket;
	enum report_tasks tasks;
	struct span task; /* REPORT_TASKS: the array of all tasks in the background; else the id of one */
};

/* The steps of a child's start: requests of the daemon before the lines of clients. */
enum dialect_step {
	STEP_NONE,    /* there are no more */
	STEP_SENT,    /* the next one comes after its answer */
	STEP_REPLAYS, /* the same; before its answer the child repeats its conversation, or the rest of it */
	STEP_WAITS,   /* a client must ask for the conversation first (kept) */
};

/* What a step depends on. */
struct dialect_start {
	const char *cwd;
	const char *conversation; /* to go on with; NULL: a new one */
	bool told;                /* the clients of the session have its lines */
	bool waits;               /* a client begins the conversation itself */
	struct memo *memo;
};

/* A client's request that the daemon answers from the start of the child (ACT_KEPT). */
enum dialect_kept {
	KEPT_ANSWER,   /* with this body */
	KEPT_REPLAY,   /* the same, after the lines of the conversation so far */
	KEPT_LATER,    /* the start has not brought it yet */
	KEPT_PASS,     /* the child answers it, which can be asked */
	KEPT_ANOTHER,  /* it is for another session of the connection: this one has its conversation */
	KEPT_REFUSED,  /* with this error text */
	KEPT_FORBIDDEN /* the same, because of the client's rights */
};

/* What such a request depends on. */
struct dialect_ask {
	const struct envelope *e;
	const char *conversation; /* NULL: it is not known yet */
	bool ready;               /* the start of the child is over */
	bool waits;               /* as in struct dialect_start */
	bool told;                /* as in struct dialect_start */
	bool again;               /* it was KEPT_LATER before */
	bool may_begin;           /* the client may choose the conversation */
	struct memo *memo;
	/* Set with KEPT_LATER, strings: the conversation to go on with, and the working directory of the agent. */
	struct span resumes, cwd;
	struct span mutes; /* set: from now on the client does not want lines of these types: an array of strings */
};

/* The one client that a line of the child is for. A handle is a string by which a client names something that
 * the child keeps for one connection, as a running process; the daemon makes it unique (core/handles.h). */
struct dialect_addressee {
	struct span handle; /* absent: another way, or the line is for all */
	struct span call;   /* the id of a request of the client */
	bool over;          /* its process, watch, ... has ended */
};

#define DIALECT_GRANTS 8
#define DIALECT_GRANT_MAX 200

/* The effects of an answer besides its decision. */
struct changes {
	bool input;                                     /* the tool's input was changed */
	char grants[DIALECT_GRANTS][DIALECT_GRANT_MAX]; /* changed permissions, for users: "Bash(git *) allow session" */
	size_t n_grants;                                /* of the answer; those beyond DIALECT_GRANTS have no text */
};

/* The conversation selected by a command line. */
struct dialect_claim {
	const char *resume; /* an old one: its id, title or file; borrowed; NULL: none */
	const char *fresh;  /* the id of a new one; borrowed; NULL: none */
	bool open;          /* only the child knows which: the newest, or a value that is not an id */
	bool forks;         /* it continues in a copy */
};

/* Lines of a client that run a tool without the model: the acts ACT_EXECUTE of the gate table. */
struct dialect_calls {
	/* Return true if this line, not a request, runs a tool by itself. */
	bool (*line_executes)(const struct envelope *e);
	/* Read the tool call of a line or request. Return NULL, with *tool (the caller frees) and the input appended as a
	 * JSON object; else an error text. */
	const char *(*read_call)(struct span line, const struct envelope *e, char **tool, struct buf *input);
	/* Return true if the sender wants the child to check its permissions. */
	bool (*call_wants_check)(const struct envelope *e);
	/* Append the same line (all of it, without its newline) or request (the value of `request`) with this input.
	 * Judged members appear once. Return false if the input cannot be used. */
	bool (*put_call)(struct buf *b, struct span line, const struct envelope *e, struct span input, bool check);
	/* Return true if the child with this answer to initialize asks its guards and approvers about a call by itself if
	 * told to check it. Any other child runs the tool unchecked. */
	bool (*checks_calls)(struct span init_answer);
	/* Append a question about the call, in the child's format but without an end of line: an ask of ASK_TOOL. by: an
	 * object that describes the client. */
	void (*put_question)(struct buf *b, const char *tool, struct span input, const char *text, struct span by);
	/* Return the input that an answer of "allow" gives to the tool; absent: the one asked for. */
	struct span (*answer_input)(struct span response);
	/* Return a word for users: how the line runs its tool. */
	const char *(*way)(const struct envelope *e);
};

/* Hooks and MCP servers that clients register with the child by an `initialize`. The registry (core/registry.h) joins
 * the registrations of all clients; the child gets their union under ids of the daemon. */
struct dialect_hooks {
	/* Members of the request. */
	const char *hooks;   /* events with their entries */
	const char *servers; /* names of MCP servers */
	const char *dialogs; /* kinds of dialogs that the client shows */
	/* Members without which the prompts behind the request must not run; ends with NULL. */
	const char *const *needed;
	/* Members of an entry. */
	const char *callbacks; /* ids */
	const char *matcher;
	const char *timeout;                   /* in seconds */
	const char *bad_entry;                 /* error text: it has no ids */
	const char *bad_callback, *bad_server; /* error texts: an element is no string */
	/* Return true if this entry guards, whatever its event. */
	bool (*entry_guards)(struct span entry);
	/* Append a value for `hooks` whose only callback guards every tool. callback: raw JSON. */
	void (*put_guard_all)(struct buf *b, const char *callback);
	/* Begin the request; the caller appends `,"member":value` and the brace. */
	const char *request;
	/* Return true for a member of the request that is none of the client's (its subtype). */
	bool (*is_frame)(struct span key);
	/* Return true if the text, which may be broken, is that of such a request. */
	bool (*looks_like)(struct span text);
	/* Return whether the answer says that the child has taken the hooks: raw JSON, or absent. */
	struct span (*applied)(const struct envelope *answer);
	/* Return the mode in the answer. */
	struct span (*mode)(const struct envelope *answer);
	/* Return the id of the child's process in the answer. */
	struct span (*pid)(const struct envelope *answer);
	/* Return the state in the answer, and its value for a session that rests, runs, or asks. */
	struct span (*state)(const struct envelope *answer);
	const char *state_rests, *state_runs, *state_asks;
	/* Members of the answer with lists of open asks, which come as lines anyway; ends with NULL. */
	const char *const *open_asks;
	/* Begin a request that sets the servers; the caller appends their object and the brace. */
	const char *set_servers;
	/* Return the servers of such a request of a client; the error text if they are no object. */
	struct span (*servers_of)(const struct envelope *e);
	const char *bad_servers;
	const char *set_servers_name;              /* for users */
	bool (*is_own_server)(struct span config); /* its client serves it over the session */
	/* Return the id of the call that this MCP message cancels; absent: none. */
	struct span (*cancels_call)(struct span message);
	const char *neutral; /* the answer of a hook that decides nothing */
	void (*put_hook_deny)(struct buf *b, struct span event, const char *reason);
	void (*put_mcp_error)(struct buf *b, struct span message, const char *reason); /* message: the JSON-RPC message */
	/* Return the seconds that the child waits for a callback of this event if its matcher has no timeout. */
	int (*hook_timeout)(struct span event);
	/* Return true for events with guarding callbacks. */
	bool (*hook_guards)(struct span event);
	/* Return true if hooks of this event concern a tool and their matchers match its name. */
	bool (*hook_sees_tools)(struct span event);
	/* Return true if a hook with this matcher (may be absent) may be called for the tool. Names are compared; a
	 * regular expression counts as a match. */
	bool (*matcher_covers)(struct span matcher, const char *tool);
};

/* A built-in profile. */
struct dialect_profile {
	const char *name;
	const char *command[3]; /* ends with NULL */
};

struct dialect {
	const char *name; /* the value of `dialect` in a profile */

	/* --- its program --- */

	/* The built-in profiles; the last one has no name. NULL: none. */
	const struct dialect_profile *profiles;
	/* The arguments behind the command of each, and its environment. End with NULL. */
	const char *const *flags, *const *env;
	const char *const *resume_args; /* the default of resume_args; ends with NULL */
	/* Variables that mark a session of this agent around the daemon: removed from the environment of every child. An
	 * element may end with * for any text. Ends with NULL; NULL: there are none. */
	const char *const *stripped;
	/* A text on stderr: the child does not know the conversation that it must resume. NULL: it says so otherwise. */
	const char *no_conversation;
	const char *fork_flag; /* continue in a copy of the resumed conversation; NULL: it cannot */
	/* Add to *claim what these words say, in every spelling of the program; later words override earlier ones. NULL:
	 * no word of a command line selects a conversation. */
	void (*read_claim)(const struct words *w, struct dialect_claim *claim);
	/* Add to *claim that the conversation is resumed that a client has named so: an id, or another name. NULL: an id.
	 */
	void (*read_resume)(const char *name, struct dialect_claim *claim);
	/* Return true if word *i is of a flag that a later start must not repeat, and skip its value. *rest: the remaining
	 * flags of a word with several, owned by the caller. NULL: there are none. */
	bool (*skips_word)(const struct words *w, size_t *i, char **rest);
	/* Add the missing flags to a command line that a client brought; a program other than the CLI ignores them.
	 * no_asks: without the one that makes the child ask for permissions. Return false without memory. NULL: none. */
	bool (*add_flags)(struct words *out, bool no_asks);

	/* --- lines of the child --- */

	/* Scan p[0..n), one line without its newline. True: it is one balanced object, *e is set. False: *e is undefined.
	 * Linear time, one pass. The members of *e have the same meaning in all dialects. */
	bool (*scan)(const char *p, size_t n, struct envelope *e);
	enum line_kind (*kind)(const struct envelope *e);
	bool repeats_pieces; /* an answer comes as a whole after its pieces: clients can do without them */
	/* Return the kind that clients know under this name (`types` of plenum_attach), else LINE_OTHER. NULL: no kind has
	 * one. */
	enum line_kind (*kind_of)(const char *type, size_t n);
	/* Return true if only unescaping makes this LINE_OTHER an ask, an answer or a withdrawal: all clients would get it
	 * under the child's own id. NULL: no line does. */
	bool (*hides_kind)(struct chunk line, const struct envelope *e);
	/* Fill *r, which is zero, from a line of a kind up to LINE_OTHER, but for LINE_STREAM_EVENT. */
	void (*read)(struct chunk line, enum line_kind kind, const struct envelope *e, struct report *r);
	/* Take what a line says about timers that start turns later. Return true if t->armed has changed. NULL: there are
	 * none. */
	bool (*read_timers)(struct timers *t, enum line_kind kind, struct chunk line, const struct envelope *e,
						int64_t now);
	/* Fill *to, which is zero, from a line of the child that is no answer and names no conversation. NULL: every line
	 * is for all. */
	void (*read_addressee)(const struct envelope *e, struct dialect_addressee *to);
	/* Read the first bytes of a line of the child or of a client; the rest is not there. */
	void (*read_head)(struct chunk text, struct head *head);
	/* Read the facts of this end of a turn. */
	struct turn_result (*read_result)(struct span result);
	/* Iterate over the tool calls and the results of tools in *message, a copy of e->message: start with *at = 0, and
	 * keep both as they are left. *id: the call's, a raw string; *name: of a call, a raw string; absent: this is a
	 * result. Many other blocks in a row may end it. NULL: messages have none. */
	bool (*next_tool)(struct span *message, size_t *at, struct span *id, struct span *name);
	/* Return true if this end of a turn belongs to a prompt that ran no turn. NULL: none does. */
	bool (*ran_no_turn)(struct span result);
	size_t names_max; /* a line names at most this many prompts of its turn, the first ones and the last; 0: all */

	/* --- background tasks; NULL: no report has any --- */

	/* Return the id of an element of the array of tasks. */
	struct span (*task_id)(struct span task);
	/* Append the element for the task that begins with this line. */
	void (*put_task)(struct buf *b, struct span line);

	/* --- the start of a child --- */

	/* Append the n-th request (from 0), under an id of ours without quotes. NULL: there is none. */
	enum dialect_step (*put_step)(struct buf *b, const char *id, unsigned n, const struct dialect_start *start);
	/* Take its answer; start.conversation is then e->session_id, if that is there. Return false if this child cannot
	 * serve, with the reason appended to *why. NULL: answers say nothing, and the steps only make a child name its
	 * conversation, before a turn begins and without a trace in it. A step is then for a child that did not answer the
	 * one before, and none is needed if the conversation is known. */
	bool (*take_step)(unsigned n, const struct envelope *e, struct memo *memo, struct buf *why);
	/* Return the model in the answer to a step. NULL: a line says it (struct report). */
	struct span (*step_model)(const struct envelope *e);
	/* Answer a client's request: append the body, or set *error, static. NULL: no row is ACT_KEPT. */
	enum dialect_kept (*kept)(struct dialect_ask *ask, struct buf *body, const char **error);
	/* Return true if such a request takes up the conversation that it names; else it begins one. */
	bool (*takes_up)(const struct envelope *e);
	/* Note the values in a line of the child, or in its answer to a prompt, for all clients that come later. Return
	 * true if the line says nothing else. NULL: the snapshot has it all (core/snapshot.h). */
	bool (*remember)(struct memo *memo, const struct envelope *e);
	/* The same for a change that the child has confirmed by this answer: `what` has this value. */
	void (*remember_change)(struct memo *memo, const char *what, struct span value, const struct envelope *answer);
	/* Return the cost of the conversation as noted, 1e-9 USD, or TURN_UNKNOWN. NULL: the end of a turn says it. */
	int64_t (*noted_cost)(const struct memo *memo);
	/* Append the noted lines for a client that has just come. NULL as before. */
	void (*put_noted)(struct buf *b, const struct memo *memo, const char *conversation);

	/* --- permission modes --- */

	/* Return the static name of a mode that may be stricter than the default one; NULL: any other, or absent. */
	const char *(*strict_mode)(struct span mode);
	/* The strictest one as a name, for a mode that is not known any more; NULL: there are no modes. */
	const char *strictest;
	/* Return true for the default mode. NULL: there are no modes. */
	bool (*is_default_mode)(struct span mode);
	/* Return true for the name of a model that stands for one known only to the child. NULL: there is none. */
	bool (*is_default_model)(struct span model);

	/* --- asks --- */

	enum ask_kind (*ask_kind)(const struct envelope *e);
	/* request: e->request of the ask. */
	struct span (*ask_part)(enum ask_kind kind, struct span request, enum ask_part part);
	/* Return the string that best describes an ask in one line; absent: none. */
	struct span (*summary)(struct span request);
	/* Return NULL if the child takes this as an answer to that request, else an error text. response: e->response of
	 * the answer. */
	const char *(*check_answer)(enum ask_kind kind, struct span request, struct span response);
	/* Return true if the answer is empty and the child takes it: it is completed by put_empty(). NULL: none is. */
	bool (*is_empty)(enum ask_kind kind, struct span request, struct span response);
	/* Append the whole line of the completed answer. */
	void (*put_empty)(struct buf *b, struct span id, enum ask_kind kind, struct span request, struct span response);
	/* Return the decision of an answer: "allow", "deny", "ask", "error", ...; "answered" if it has none. */
	const char *(*decision)(enum ask_kind kind, struct span request, struct span response);
	/* Return the reason in an answer of "deny", a string. */
	struct span (*answer_reason)(struct span response);
	/* Read the effects of a checked answer into *c. It has nothing of the input. */
	void (*read_changes)(enum ask_kind kind, struct span request, struct span response, struct changes *c);
	/* Compute the edit that adds what the child needs to a checked answer: of its line, but for the id. The parts live
	 * as long as request and the answer's line. Return false if it needs none. NULL: none does. */
	bool (*mend)(enum ask_kind kind, struct span request, const struct envelope *answer, struct splice_edit *edit);

	/* --- lines made by the daemon; each is a whole line with its newline; ids are raw JSON --- */

	/* To the child: an answer with this body, made by one of the next three; and an error. request: that of the ask, or
	 * absent if it was too long to read. */
	void (*put_answer)(struct buf *b, struct span id, const char *body);
	void (*put_failure)(struct buf *b, struct span id, const char *code, const char *text);
	void (*put_tool_deny)(struct buf *body, struct span request, const char *reason);
	/* Nothing appended: no answer allows this call alone. */
	void (*put_tool_allow)(struct buf *body, struct span request);
	void (*put_cancel_form)(struct buf *body, struct span request); /* ASK_ELICITATION: nothing was entered */
	/* Withdraw an ask from a client, or a request of a client from the child. */
	void (*put_cancel)(struct buf *b, struct span id, struct span request); /* request: of an ask, else absent */
	/* To the child, under an id of ours without quotes: a request with this body. NULL: there are none but the next. */
	void (*put_request)(struct buf *b, const char *id, const char *body);
	/* Interrupt the turn. conversation: NULL if it is not known. */
	void (*put_interrupt)(struct buf *b, const char *id, const char *conversation, const struct memo *memo);
	/* Withdraw a prompt that it has not taken. NULL: it cannot. */
	void (*put_cancel_prompt)(struct buf *b, const char *id, const char *uuid);
	/* End the bearer of a handle whose client has left, by the request of this row. NULL: no row is ACT_OPENS or
	 * ACT_RUNS. */
	void (*put_end)(struct buf *b, const char *id, const struct gate_row *ends, struct span handle);
	/* Set a mode. NULL: there are no modes. */
	void (*put_mode)(struct buf *b, const char *id, struct span mode);
	const struct dialect_frame *frame; /* of its clients' connections */
	/* To a client: the answer to its request. json NULL: without a body. more: further members, `,"name":value`. */
	void (*put_success)(struct buf *b, struct span id, const char *json);
	const char *success_end; /* the end of such a line, from the closing brace of an object in json on */
	void (*put_error)(struct buf *b, struct span id, const char *code, const char *text, const char *more);
	/* The answer to a request that has withdrawn a queued prompt. NULL: no request does. */
	void (*put_prompt_cancelled)(struct buf *b, struct span id, struct span uuid);

	/* --- answers of the child to requests --- */

	bool (*succeeded)(const struct envelope *e);
	/* Return the value of a setting that the child confirms; absent: it does not say. NULL: it never does. */
	struct span (*confirmed)(const struct envelope *e);
	/* Set r->mode and r->model, if the answer to a change says them whatever was changed. NULL: none does. */
	void (*read_settings)(const struct envelope *answer, struct report *r);
	/* Read of a confirmed change the name for users and the new value, if `value` is only its id; absent: it is not. */
	void (*read_option)(const struct envelope *answer, const char *what, struct span value, struct span *name,
						struct span *to);
	/* Return the prompts that this answer reports as withdrawn: an array of uuids, or true for the one of the request.
	 * NULL: no answer does. */
	struct span (*cancelled)(const struct envelope *e);

	/* --- lines of clients --- */

	/* Return true for a line that looks like one of this dialect, well-formed or not. Of this and the next function the
	 * line may be cut. */
	bool (*recognizes)(struct span line);
	/* Return true if a connection that begins with this line speaks this dialect, until it attaches to a session. NULL:
	 * none does that the default dialect does not take. */
	bool (*opens)(struct span line);
	/* Check a line completely before it may reach the child (message.h). */
	message_check_fn *check;
	const struct message_steps *check_steps; /* the same in pieces; NULL: only at once */
	const char *prompt_id; /* the member of a prompt that has its uuid; NULL: a prompt is a request, and its answer ends
							* its turn */
	bool accepts_prompts;  /* with prompt_id NULL: the answer only accepts a prompt, and a LINE_RESULT ends its turn */
	/* Append the lines that show a prompt to the other clients. by: an object that describes its sender, the last one
	 * of each line. NULL: the child repeats prompts. */
	void (*put_echo)(struct buf *b, const struct envelope *prompt, const char *conversation, struct span by);
	const char *request_id;      /* the member of a request that has its id */
	const char *session_id;      /* the member that names the session of a client that has chosen none */
	const char *conversation_id; /* the member of e->request that names the conversation: added where it is missing.
								  * NULL: there is none */
	bool numbers;                /* ids of the daemon's requests to the child are numbers, else strings */
	bool tells_answerer;         /* put_cancel() goes to the client that has answered, too: the request is over */
	bool answers_withdrawn;      /* an ask that was withdrawn is answered, too: the daemon does, and drops the answers
								  * of clients */
	/* How the child takes a line that check refuses. skips: it skips the line; is_fatal_request: this request ends it.
	 * NULL: neither. after_mark: the line without the byte order mark that some children skip; NULL: none does. */
	bool (*skips)(struct span line);
	bool (*is_fatal_request)(const struct envelope *e);
	struct span (*after_mark)(struct span line);
	const struct gate_row *gate; /* the rights of clients */
	size_t n_gate;
	/* The prompt that a client's request withdraws; NULL: no request does. */
	struct span (*cancelled_prompt)(const struct envelope *e);
	/* Return true if an interrupt also withdraws the queued prompts. NULL: none does. */
	bool (*cancels_queued)(const struct envelope *e);

	const struct dialect_tools *tools; /* what rules know of its tools; NULL: nothing, rules have only names */
	const struct dialect_calls *calls; /* NULL: no row of the gate table is ACT_EXECUTE */
	const struct dialect_hooks *hooks; /* NULL: nothing is registered with the child, and it gets no initialize */
};

/* All dialects, the default one first; ends with NULL. A program may have a list of its own in its place (list.c). */
extern const struct dialect *const dialect_list[];

const struct dialect *dialect_find(const char *name); /* NULL: no such dialect */
/* Append their names, for an error text: "acp, claude". */
void dialect_put_names(struct buf *b);
/* Of a line, as much as is read to find its dialect: that happens in one turn of the loop. */
#define DIALECT_OPENING_BYTES ((size_t)64 * 1024)

/* The dialect of a connection without a session, unless its first line is one of another (dialect_opened_by()). */
static inline const struct dialect *dialect_default(void) {
	return dialect_list[0];
}
const struct dialect *dialect_opened_by(struct span line); /* NULL: the line shows none */
/* Return the other dialect that recognizes a line not recognized by d; NULL: none. */
const struct dialect *dialect_of_line(const struct dialect *d, struct span line);
/* read_claim(), if there is one. */
void dialect_read_claim(const struct dialect *d, const struct words *w, struct dialect_claim *claim);
/* The same as put_answer() with a built body, which is freed. If the body has failed, b fails too: half a refusal, or
 * one without its body, would allow what it must refuse. */
void dialect_put_built(const struct dialect *d, struct buf *b, struct span id, struct buf *body);
