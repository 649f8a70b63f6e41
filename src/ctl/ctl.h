/* SPDX-License-Identifier: MIT
 *
 * Shared by the verbs of plenumctl: exit codes, options, the connection, requests to the daemon. One file per verb
 * (cmd_NAME.c), one table (main.c). A verb returns its exit code; the function that detects an error prints it.
 */
#pragma once

#include "base/buf.h"
#include "plenum/client.h"

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Exit codes; plenumctl(1) lists them. The numbers from 64 on are those of sysexits.h, 124 and 130 those of timeout(1)
 * and the shell. */
enum {
	CTL_OK = 0,
	CTL_REFUSED = 1, /* an error result; refused by the daemon or the agent */
	CTL_USAGE = 64,
	CTL_NO_DAEMON = 69,
	CTL_INTERNAL = 70,     /* out of memory and the like */
	CTL_CUT = 74,          /* the connection or the agent was lost before the end */
	CTL_WAITS = 75,        /* a permission waits and --no-wait was given */
	CTL_TIMED_OUT = 124,   /* --timeout is over */
	CTL_INTERRUPTED = 130, /* Ctrl-C */
	CTL_GO = -1,           /* not an exit code: continue */
};

#define CTL_ANSWER_TIME 60000 /* timeout of the daemon's answer, ms */

struct ctl;

struct verb {
	const char *name;
	const char *args;                                 /* as in the usage line */
	const char *about;                                /* one sentence */
	int (*run)(struct ctl *c, int argc, char **argv); /* argv[0] is the verb */
	bool no_json;                                     /* for a user only */
};

struct ctl {
	const char *socket; /* --socket; NULL: the resolver's */
	bool json;          /* --json: for machines */
	const struct verb *verb;
	int before;        /* how many of the remaining arguments stand before "--"; those behind it are no options' values,
						  and no names */
	char session[256]; /* the name found by pick.h */
};

/* An option of one verb; exactly one of flag and value is set. A list of them ends with {0}. */
struct ctl_option {
	const char *name;
	char letter; /* 0: long only */
	const char *arg;
	const char *help;
	bool *flag;
	const char **value;
	json_t **list; /* can be repeated; owned by the caller */
};

#define CTL_TEXT (-1) /* as max: the required arguments are followed by text, any bytes */
/* Parse the verb's options and the common ones; *argc and *argv are set to the remaining arguments. Return CTL_GO or an
 * exit code (--help is done here). */
int ctl_options(struct ctl *c, const struct ctl_option *options, int *argc, char ***argv, int min, int max);
/* Append the words, separated by spaces. */
void ctl_put_words(struct buf *b, int n, char **words);
int ctl_usage(struct ctl *c, const char *fmt, ...) PRINTF_LIKE(2, 3); /* prints and returns CTL_USAGE */
/* Make a directory absolute, because the daemon has another working directory. NULL and missing directories are
 * unchanged (the daemon reports them). */
void ctl_absolute(const char **folder, char room[PATH_MAX]);
/* Return the directory of the user's state, made if missing; NULL without a home. The caller frees. */
char *ctl_state_dir(void);
bool ctl_is_dumb(void);                               /* a terminal without control sequences */
void ctl_say(const char *fmt, ...) PRINTF_LIKE(1, 2); /* "plenumctl: ..." on stderr, escaped */
/* The same for an error of the daemon; its code is for programs, and printed with --json only. */
void ctl_say_error(const char *error, const char *code);

/* Connect; on NULL the reason and a remedy were printed (the verb then returns CTL_NO_DAEMON). */
struct plenum *ctl_open(struct ctl *c);
/* Send one request. p may be NULL: no daemon. members is consumed (NULL: none). *answer (answer may be NULL) is set to
 * the answer's body, or an empty object. Prints errors. */
int ctl_ask(struct plenum *p, const char *verb, json_t *members, json_t **answer);
/* The same, but a refusal is only the exit code CTL_REFUSED. */
int ctl_ask_quietly(struct plenum *p, const char *verb, json_t *members, json_t **answer);
/* The same; *refusal is set to the parts of the refusal, for ctl_say_error(). The caller frees it by
 * plenum_answer_free() in any case. */
int ctl_ask_first(struct plenum *p, const char *verb, json_t *members, json_t **answer, struct plenum_answer *refusal);
/* Connect, send one request, close. */
int ctl_ask_once(struct ctl *c, const char *verb, json_t *members, json_t **answer);
/* Return true if the daemon belongs to another user; *owner is set to its uid. */
bool ctl_is_strangers(struct plenum *p, uid_t *owner);
/* Return the error that the daemon has sent before it closed the connection, with its code; NULL: none. The caller
 * frees both. */
char *ctl_last_error(struct plenum *p, char **code);
/* Print a failure of the library and return its exit code. */
int ctl_failed(struct plenum *p, enum plenum_result r);

int ctl_print_json(json_t *value); /* one line on stdout; for --json */
/* Append the background work of a session of plenum_list or plenum_status, such as "1 task, 2 timers"; "-": none. */
void ctl_put_background(struct buf *b, json_t *session);

/* Members of an answer; if absent otherwise, 0 or false. */
const char *ctl_str(json_t *object, const char *key, const char *otherwise);
int64_t ctl_int(json_t *object, const char *key);
bool ctl_bool(json_t *object, const char *key);
json_t *ctl_array(json_t *object, const char *key); /* borrowed; NULL if not an array */

static inline void plenum_closep(struct plenum **p) {
	plenum_close(*p);
}
#define _cleanup_plenum_ _cleanup_(plenum_closep)

static inline void json_dropp(json_t **j) {
	json_decref(*j);
}
#define _cleanup_json_ _cleanup_(json_dropp)

int cmd_ls(struct ctl *c, int argc, char **argv);
int cmd_new(struct ctl *c, int argc, char **argv);
int cmd_attach(struct ctl *c, int argc, char **argv);
int cmd_chat(struct ctl *c, int argc, char **argv);
int cmd_send(struct ctl *c, int argc, char **argv);
int cmd_tail(struct ctl *c, int argc, char **argv);
int cmd_pending(struct ctl *c, int argc, char **argv);
int cmd_allow(struct ctl *c, int argc, char **argv);
int cmd_deny(struct ctl *c, int argc, char **argv);
int cmd_interrupt(struct ctl *c, int argc, char **argv);
int cmd_stop(struct ctl *c, int argc, char **argv);
int cmd_clear_lost(struct ctl *c, int argc, char **argv);
int cmd_sleep(struct ctl *c, int argc, char **argv);
int cmd_top(struct ctl *c, int argc, char **argv);
int cmd_wait(struct ctl *c, int argc, char **argv);
int cmd_events(struct ctl *c, int argc, char **argv);
int cmd_mode(struct ctl *c, int argc, char **argv);
int cmd_model(struct ctl *c, int argc, char **argv);
int cmd_fork(struct ctl *c, int argc, char **argv);
int cmd_rename(struct ctl *c, int argc, char **argv);
int cmd_metrics(struct ctl *c, int argc, char **argv);
int cmd_log(struct ctl *c, int argc, char **argv);
int cmd_queue(struct ctl *c, int argc, char **argv);
int cmd_status(struct ctl *c, int argc, char **argv);
int cmd_doctor(struct ctl *c, int argc, char **argv);
int cmd_reload(struct ctl *c, int argc, char **argv);
int cmd_shutdown(struct ctl *c, int argc, char **argv);
int cmd_upgrade(struct ctl *c, int argc, char **argv);
int cmd_demo(struct ctl *c, int argc, char **argv);
