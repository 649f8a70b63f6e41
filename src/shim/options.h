/* SPDX-License-Identifier: MIT
 *
 * The flags and environment variables of an SDK that change the behaviour of the shim. The argv itself is passed to the
 * daemon unchanged. Nothing is copied: all pointers are into argv and environ, which live as long as the process.
 *
 * Sources: docs/protocol-facts.md 1.2 and 1.3 (the argv of both SDKs), contract 9.1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* -p with a prompt in the command line or as plain text on standard input. */
enum options_print { PRINT_NOT, PRINT_TEXT, PRINT_JSON, PRINT_LINES };

struct options {
	const char *cli; /* the real CLI if the first argument names it (then not in argv), else NULL */
	char **argv;     /* without argv[0]; NULL-terminated */
	char **copied;   /* argv if it is a copy on the heap, else NULL */
	char **env;
	bool stream;              /* stream-json both ways, not on a terminal: all that the daemon serves */
	enum options_print print; /* in the session that PLENUM_SESSION names; else the CLI prints by itself */
	const char *prompt;       /* of options_take_prompt(); NULL: none */
	const char *rpc;          /* --acp, app-server: how lines of JSON-RPC begin; argv: the words after it; else NULL */
	bool itself;              /* --version, --help, a flag without its value: the CLI answers */
	bool partial;             /* --include-partial-messages */
	bool echo;                /* --replay-user-messages */
	bool approve;             /* --permission-prompt-tool stdio */
	bool mirror;              /* --session-mirror */
	bool raw_init;            /* --await-initialize */
	bool fork;                /* --fork-session */
	bool state_events;        /* CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS */
	bool state_reads;         /* CLAUDE_CODE_SDK_READS_SESSION_STATE */
	const char *resume;       /* the conversation id of --resume, NULL without one */
	const char *session, *name; /* PLENUM_SESSION, PLENUM_NAME; NULL if unset or empty */
	const char *profile;        /* PLENUM_PROFILE, else that of the protocol */
	bool own;                   /* the session is the shim's own and ends with it */
};

/* argv without argv[0]. A first argument with the absolute path of an executable file is the CLI to run: VS Code
 * (claudeCode.claudeProcessWrapper) and the CLI itself (CLAUDE_CODE_PROCESS_WRAPPER) start a wrapper in this way. */
void options_read(struct options *o, char **argv, char **env);

/* Take the prompt and the formats out of argv: for the daemon a session with print is one of lines. The new array lives
 * as long as the process. False: no memory. */
bool options_take_prompt(struct options *o);

/* A value of a flag: the word of the command line that it is, or is joined to with `=`. */
struct options_value {
	const char *flag;
	size_t flag_len; /* the flag is not terminated if the value is joined */
	const char *text;
	char **word; /* may be replaced; not joined, the first value of a flag follows its flag */
	bool joined;
};

bool options_is_flag(const struct options_value *v, const char *name);
/* Return true for a value of --mcp-config: JSON text or a file name. */
bool options_is_mcp_config(const struct options_value *v);
/* Call each() with each value of each flag, in order, until it returns false. Return its last answer. */
bool options_each_value(const struct options *o, bool (*each)(void *ctx, const struct options_value *v), void *ctx);
