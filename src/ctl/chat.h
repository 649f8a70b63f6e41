/* SPDX-License-Identifier: MIT
 *
 * The parts of `plenumctl chat`: cmd_chat.c connects and waits, chat_lines.c shows the lines of the session,
 * chat_status.c the state of the agent, chat_questions.c asks the user, chat_typed.c takes the input, chat_complete.c
 * completes it, chat_extern.c gives it to another editor.
 *
 * On a terminal with control sequences the user types into an editor below the output. Elsewhere (a pipe, TERM=dumb)
 * the input is read line by line.
 */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "ctl/editor.h"
#include "ctl/follow.h"
#include "ctl/screen.h"
#include "ctl/show.h"

#define CHAT_OWN_UUIDS 16
#define CHAT_CALLS 16 /* the last ones that a request may be about */

/* A request that waits for this user; the first of the list is the one on the screen. */
struct question {
	struct list node;
	char *line, *call;     /* call: the line of the call that names the changes, or NULL */
	struct speech_ask ask; /* points into them */
	json_t *values;        /* of its fields (form.h), so far */
	size_t asked;          /* the number of these */
	char *unknown;         /* the name of a field that cannot be entered here; NULL: none */
};

/* The work of the agent, for the status line. */
enum doing { DOING_WAIT, DOING_THINK, DOING_WRITE, DOING_TOOL, DOING_COMPACT };

struct chat {
	struct ctl *c;
	struct plenum *p; /* NULL: the daemon is away */
	const struct speech *speech;
	char *session;
	struct show show;
	struct list questions;
	bool terminal;         /* stdin is one */
	struct editor *editor; /* NULL: read lines */
	struct screen screen;  /* with an editor */
	struct history history;
	wchar_t *draft; /* the text that was being typed when a question came */
	size_t draft_len, draft_cursor;
	bool asking;      /* the editor has the answer to the first question */
	struct buf input; /* without an editor: typed, not yet a whole line */
	bool input_ended;
	int signals;             /* signalfd */
	bool busy;               /* as the daemon says */
	struct speech_turn turn; /* of our last prompt */
	bool waiting;            /* for its result */
	char *sent;              /* its text until the daemon is known to have it, else NULL */
	size_t sent_len;
	bool again;                                 /* the daemon is another: send it again after the replay */
	bool unanswered;                            /* the daemon went away before the result: the replay may have it */
	char own[CHAT_OWN_UUIDS][PLENUM_UUID_SIZE]; /* our last prompts: their echo is not shown */
	size_t n_own;
	int64_t live;                    /* lines with a lower number are history: shown, and nothing else */
	int64_t seen;                    /* number of the last line */
	bool made, proven;               /* we made the session; its agent has started */
	bool remove;                     /* at the end: the session has no conversation */
	char *start_error;               /* the result of an agent that could not resume its conversation */
	char attach[PLENUM_ID_SIZE];     /* of the attach after a reconnect, until it is answered; "": none */
	char initialize[PLENUM_ID_SIZE]; /* of a request for the commands of the agent; "": none */
	int64_t lost_at, retry_at;       /* now_ms() clock; the daemon is away since, and is tried next */
	enum doing doing;
	char *tool;              /* DOING_TOOL: in words */
	int64_t since;           /* of doing, and of the state */
	char state[16];          /* of the session */
	bool woken;              /* it slept before it started */
	json_t *commands;        /* slash commands of the agent, strings */
	char *calls[CHAT_CALLS]; /* their lines */
	size_t n_calls;          /* all of them so far */
	char *cwd;               /* of the session */
	int code;                /* CTL_GO while it runs */
};

/* cmd_chat.c */
bool chat_step(struct chat *ch); /* show the new lines, wait for more; false: the chat ends */
void chat_take(struct chat *ch, const struct incoming *in); /* a line that came */
void chat_refresh(struct chat *ch);
void chat_stop(void); /* Ctrl-Z: until the shell continues us; the terminal is the caller's matter */

/* chat_lines.c */
void chat_take_line(struct chat *ch, const struct incoming *in);
/* The session was made for an earlier conversation, and it is not known yet whether its agent can resume that. */
bool chat_is_starting(const struct chat *ch);
/* The agent has ended. A conversation that cannot be resumed leaves no session behind. */
void chat_take_failure(struct chat *ch, const char *reason);
void chat_take_commands(struct chat *ch, struct span list); /* SPEECH_COMMANDS */

/* chat_status.c */
void chat_status_fact(struct chat *ch, const struct speech_fact *f);
void chat_status_state(struct chat *ch, struct span state);
/* Return in words the reason for the wait; NULL: none. The caller frees. */
char *chat_status_text(const struct chat *ch);

/* chat_questions.c */
struct question *chat_question(struct chat *ch);                     /* the first; NULL: none */
void chat_question_add(struct chat *ch, const struct incoming *in);  /* may send: *in is then no longer valid */
void chat_question_drop(struct chat *ch, struct span id);            /* withdrawn, or answered elsewhere */
void chat_question_forget(struct chat *ch);                          /* all */
void chat_question_call(struct chat *ch, const struct incoming *in); /* a call that a request may be about */
void chat_question_answer(struct chat *ch, const char *text);
void chat_ask(struct chat *ch);               /* show the first question, or the sign to type behind */
const char *chat_ask_prompt(struct chat *ch); /* the prompt before the answer */
bool chat_ask_is_secret(struct chat *ch);     /* the answer is not to be shown */
void chat_settled(struct chat *ch, const struct incoming *in);

/* chat_typed.c */
void chat_prompt_sign(struct chat *ch);
void chat_typed(struct chat *ch);      /* process the keys that are there (with an editor) */
bool chat_typed_line(struct chat *ch); /* without an editor: take one line; false: none is there */
void chat_typed_read(struct chat *ch); /* with an editor it does not wait */
bool chat_typed_wanted(const struct chat *ch);
void chat_swap_draft(struct chat *ch); /* let the editor have the draft, or the answer to a question */

/* chat_extern.c */
void chat_extern(struct chat *ch); /* the draft in $EDITOR */

/* chat_complete.c */
void chat_complete(struct chat *ch);
