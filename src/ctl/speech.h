/* SPDX-License-Identifier: MIT
 *
 * The protocols of the sessions: what plenumctl says to an agent, and what it reads from its lines. A line is read into
 * neutral facts; everything that shows, waits or answers works on those. One table for each protocol.
 *
 * All spans are raw JSON within the line, valid as long as its bytes; absent if the line does not have them.
 */
#pragma once

#include "base/buf.h"
#include "dialect/envelope.h"
#include "plenum/client.h"
#include "wire/scan.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A line with its envelope. For a line that is not an object all spans but line are absent. */
struct incoming {
	const struct speech *speech;
	struct span line;
	struct envelope e;
	struct span notice; /* the members of a notice of the daemon, an object */
};

enum speech_kind {
	SPEECH_MESSAGE,  /* a message begins, its pieces follow: id */
	SPEECH_THINKS,   /* the agent begins to think */
	SPEECH_WRITES,   /* it begins to write: an answer, or the input of a tool */
	SPEECH_PIECE,    /* of the answer: text */
	SPEECH_PAUSE,    /* the end of a part of the answer */
	SPEECH_TEXT,     /* a part of the answer as a whole: text, of the message id */
	SPEECH_CALL,     /* of a tool: name, input; if a request can be about it: id, and the files in list */
	SPEECH_RESULT,   /* of a tool: text, bad */
	SPEECH_ECHO,     /* a prompt, repeated: text, id (its uuid; absent: another's) */
	SPEECH_COMPACTS, /* the agent makes its conversation shorter */
	SPEECH_REPORT,   /* of the agent on itself, for users: name, text */
	SPEECH_READY,    /* the agent has its conversation */
	SPEECH_COMMANDS, /* its slash commands: list, strings or objects with a name */
	SPEECH_ASK,      /* it asks: id; see read_ask() */
	SPEECH_WITHDRAW, /* it asks no longer: id */
	SPEECH_END,      /* of a turn */
};

struct speech_fact {
	enum speech_kind kind;
	struct span id, name, text, input, list;
	bool bad;    /* an error */
	bool nested; /* of a subagent */
	/* SPEECH_END: name is the outcome, text of the turn's answer or of the error; bad also if it was interrupted */
	bool interrupted;
	bool again;      /* another line shows this end */
	int64_t ms;      /* 0: unknown */
	int64_t in, out; /* tokens; 0: unknown */
	double cost;     /* dollars since the start of the agent; 0: unknown */
};

enum speech_asks { SPEECH_ASKS_TOOL, SPEECH_ASKS_FORM, SPEECH_ASKS_DIALOG, SPEECH_ASKS_OTHER };

/* A question of the agent. */
struct speech_ask {
	enum speech_asks kind;
	struct span id;
	struct span body;                /* all of it, an object */
	struct span name;                /* of its kind on the wire */
	struct span tool;                /* the tool's name; absent: no tool is asked for */
	struct span input;               /* of the tool */
	struct span about;               /* a description */
	struct span message;             /* of a form */
	struct span schema, questions;   /* of a form: its fields (an object), or questions of a tool (an array) */
	struct span reason, path, agent; /* why it asks, for which path, which subagent */
	struct span proposals;           /* to remember with an "always", an array that is not empty */
	struct span changes;             /* of files, an array of {path, oldText, newText} or {path, kind, diff} */
	struct span call;                /* the id of the call that names them; absent: the request has all */
	struct span yes, no, always;     /* the names of the choices; absent: they have none */
	struct span rule;                /* the words at the end of the name of "always", an array */
	bool only_choices;               /* an answer has no reason and no other input */
	bool ends_turn;                  /* a denial can end the turn */
	bool can_remember;               /* there is an "always" */
};

struct speech_decision {
	bool allow, always, interrupt;
	bool cancel;         /* of a form, without allow: close it, which is no refusal */
	const char *message; /* of a deny: the reason; NULL: none */
	json_t *input;       /* of an allow: the changed input, or the values of a form; NULL: as asked */
};

/* A prompt and its turn. */
struct speech_turn {
	char uuid[PLENUM_UUID_SIZE]; /* of the prompt */
	int64_t client;              /* our number, from the answer to the attach */
	bool ours;                   /* the next lines belong to the turn of the prompt */
	bool begun;                  /* where turns overlap: it runs */
	int ahead;                   /* where turns overlap: those that began before it and run */
	char name[64], running[64];  /* of its turn, and of the turn that runs; where turns have names */
};

struct speech {
	const char *dialect;
	bool repeats;     /* the pieces of an answer come again as a whole; else a line for each of them */
	bool keeps;       /* a prompt that is sent again under its uuid runs once */
	bool replays;     /* the agent repeats the conversation when a prompt wakes it */
	bool names_turns; /* an interrupt names the turn: t->running */

	bool (*scan)(const char *p, size_t n, struct envelope *e);
	struct span (*notice)(const struct incoming *in);
	/* Iterate over the facts: start with *at = 0; false at the end. *f is zero before. */
	bool (*next)(const struct incoming *in, size_t *at, struct speech_fact *f);
	/* *ask is zero before. */
	void (*read_ask)(const struct incoming *in, struct speech_ask *ask);
	/* The parts of an error answer, strings. */
	void (*read_error)(const struct incoming *in, struct span *code, struct span *text);
	/* Return true if this line is the end of the prompt's turn; keeps t->ours. */
	bool (*ends)(struct speech_turn *t, const struct incoming *in);

	enum plenum_result (*prompt)(struct plenum *p, const char *text, size_t n, const char *uuid);
	enum plenum_result (*interrupt)(struct plenum *p, const struct speech_turn *t);
	/* Withdraw a prompt that still waits, within this time; false: it runs. NULL: none can be withdrawn, and an
	 * interrupt has no answer. */
	bool (*take_back)(struct plenum *p, const char *uuid, int timeout_ms);
	/* Ask for the agent's commands; the id of the request is set. The answer comes when it has its conversation. NULL:
	 * an idle agent has its conversation. */
	enum plenum_result (*hello)(struct plenum *p, char *id);
	/* Return the request that sets the mode or else the model, and its members; NULL: there is none. */
	const char *(*setting)(bool mode, const char *value, json_t **members);
	/* Append the line that answers. False: this kind of question has no such answer. */
	bool (*put_answer)(struct buf *b, const struct speech_ask *ask, const struct speech_decision *d);
};

extern const struct speech speech_claude, speech_acp, speech_codex;

/* Return the protocol of a session; NULL: plenumctl does not know it. */
const struct speech *speech_named(const char *dialect);
/* Return that of a connection. */
const struct speech *speech_of(const struct plenum *p);

/* Read a line. The bytes stay the caller's. */
void speech_read(const struct speech *speech, const char *p, size_t n, struct incoming *in);
/* Find the first fact of this kind. */
bool speech_find(const struct incoming *in, enum speech_kind kind, struct speech_fact *f);
/* Iterate over all facts. */
bool speech_next(const struct incoming *in, size_t *at, struct speech_fact *f);

/* Append the answer to a form of an MCP server, an object: it is the same in all protocols. */
void speech_put_form(struct buf *b, const struct speech_ask *ask, const struct speech_decision *d);

/* --- for the protocols in JSON-RPC --- */

/* As the members of struct speech. */
struct span speech_rpc_notice(const struct incoming *in);
void speech_rpc_error(const struct incoming *in, struct span *code, struct span *text);
/* Append the beginning of an answer with a result; the caller appends that, and a brace. head: dialect/jsonrpc.h. */
void speech_rpc_put_answer(struct buf *b, const char *head, const struct speech_ask *ask);
/* Send a prompt: line is its request up to its text, and is freed. */
enum plenum_result speech_rpc_prompt(struct plenum *p, struct buf *line, const char *text, size_t n);
