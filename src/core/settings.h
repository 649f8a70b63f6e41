/* SPDX-License-Identifier: MIT
 *
 * The settings of the configuration, as the other modules use them. config.c makes them; a struct settings is
 * reference-counted: a session keeps its profile while a reload brings a new one.
 */
#pragma once

#include "base/words.h"
#include "core/access.h"
#include "dialect/dialect.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTINGS_NEVER INT64_MAX /* a time that never comes */

/* A recipe for starting a child: [profile NAME]. Times in ms. */
struct profile {
	char *name;
	struct words command;          /* argv */
	const struct dialect *dialect; /* never NULL */
	char *cwd;                     /* NULL: the requester's */
	struct words env;              /* NAME=VALUE */
	struct words pass_env;         /* variables of the daemon that pass; "*" all */
	bool is_private;               /* refused to peers of another uid */
	struct words resume_args;      /* with {id} */
	struct words session_id_args;  /* with {id} */
	struct words allow_tools, deny_tools, ask_tools;
	int64_t permission_wait; /* SETTINGS_NEVER by default */
	int64_t owner_grace;     /* 15 s */
	int64_t control_timeout; /* 60 s */
	int64_t idle_sleep;      /* 30 min */
	int64_t stall_after;     /* 5 min */
	int64_t stop_grace;      /* 5 s, each step of the stop sequence */
	bool prompts_queue;      /* prompts = queue */
	bool restart_never;      /* restart = never */
	bool stdout_pipe;        /* stdout = pipe */
	bool agent_peers_none;   /* agent_peers = none */
	bool leftovers_end;      /* leftovers = end */
	size_t warm;             /* prestarted children in the idle pool; needs cwd */
	const char *file;        /* the file that defines it, for messages; NULL: built in */
	int line;
};

/* The keys for commands. */
enum alert_kind { ALERT_PENDING, ALERT_TURN_END, ALERT_FAILED, ALERT_STALLED, ALERT_KINDS };

struct settings {
	unsigned refs;
	char *socket;          /* NULL: resolved from the environment */
	char *state_dir;       /* NULL: $XDG_STATE_HOME/plenum */
	char *default_profile; /* never NULL */
	int log_level;         /* LOG_* of base/log.h */
	size_t max_sessions, max_children, max_clients;
	struct access allow, approve;          /* approve.n_* == 0: all that may connect */
	struct words on[ALERT_KINDS];          /* commands: on_pending and the like */
	int64_t notify_interval, notify_limit; /* ms: between two runs for a session; of one run */
	int64_t outside_timeout;               /* ms: of requests to file systems and other processes */
	bool memory_pressure;                  /* put sessions to sleep when memory is short */
	bool log_commands;                     /* a decision's line has the command or path that it is about */
	struct limits limits;
	struct profile *profiles;
	size_t n_profiles;
	struct words files; /* the configuration files, in order; profile.file points into it */
};

struct settings *settings_new(void); /* the built-in defaults: profiles claude and fake; NULL without memory */
struct settings *settings_ref(struct settings *s);
void settings_unref(struct settings *s);
const struct profile *settings_profile(const struct settings *s, const char *name); /* NULL: no such profile */
/* Add a profile with the defaults to the end of the list; NULL without memory. Pointers to profiles change. */
struct profile *settings_add_profile(struct settings *s, const char *name);
/* Set its dialect, and with it the default of resume_args. False without memory. */
bool settings_speak(struct profile *p, const struct dialect *d);
