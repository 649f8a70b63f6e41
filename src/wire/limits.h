/* SPDX-License-Identifier: MIT
 *
 * All limits of lines and requests, with their defaults. plenum.conf(5), section [limits], changes the members of
 * struct limits.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct limits {
	size_t child_line;  /* longest line from a child, bytes */
	size_t client_line; /* longest line from a client, bytes */
	size_t tape_bytes;  /* a session's tape */
	size_t tape_lines;
	size_t stdin_queue;           /* bytes waiting for a child's stdin; at least one line always fits */
	size_t client_lag_soft;       /* bytes that a client may be behind for client_lag_soft_time */
	int64_t client_lag_soft_time; /* ms */
	int64_t lag_wait;             /* ms that on_lag:"wait" holds the tape */
	size_t max_pending;           /* open requests of one child */
	size_t max_calls;             /* open requests of one client */
	/* Of each uid except the daemon's and root (core/share.h). */
	size_t uid_sessions, uid_clients, uid_bytes, uid_requests;
};

#define LIMITS_MIB ((size_t)1024 * 1024)
/* Bytes of a child's snapshot for late clients; longer lines are on the tape only. */
#define LIMITS_KEPT_INIT ((size_t)512 * 1024)
#define LIMITS_KEPT_TASKS ((size_t)64 * 1024)
/* Bytes of the open requests of one child; one always fits. */
#define LIMITS_PENDING_BYTES (512 * LIMITS_MIB)
/* Registrations of a session's clients. The table on disk stores their guards: accepted registrations can always be
 * written and read. */
#define LIMITS_NAMES ((size_t)4096)        /* hooks, entries, MCP servers, dialog kinds: of each, per session */
#define LIMITS_MATCHER ((size_t)64 * 1024) /* bytes of a matcher, of a callback's or a server's name */
#define LIMITS_INITS ((size_t)64)          /* unanswered initialize requests of one client */
#define LIMITS_CONVERSATION ((size_t)4096) /* bytes of its id */
#define LIMITS_STDIN_LINES ((size_t)65536) /* lines waiting for a child's stdin */
#define LIMITS_PROMPTS ((size_t)4096)      /* prompts of a session without a result: its notices name each of them */
/* Work for one line of a client. */
#define LIMITS_MEMBERS ((size_t)4096)               /* members of an object that routing reads */
#define LIMITS_CHILD_MEMBERS ((size_t)32 * 1024)    /* strings in an object of the child that the daemon reads */
#define LIMITS_WORDS ((size_t)4096)                 /* entries of a list in a plenum_ request: args, env, types, ... */
#define LIMITS_REQUEST LIMITS_MIB                   /* bytes of a plenum_ request */
#define LIMITS_CALL LIMITS_MIB                      /* bytes of a line that runs a tool: the daemon judges it */
#define LIMITS_REFUSED (10 * LIMITS_MIB)            /* bytes of a refused line that is read once more for its id */
#define LIMITS_VALUES ((size_t)16 * 1024)           /* JSON values of a plenum_ request: each may take 400 bytes */
#define LIMITS_HOOKS_TEXT ((size_t)1024 * 1024)     /* bytes of all hooks of a session */
#define LIMITS_TABLE (32 * LIMITS_MIB)              /* bytes of the table of sessions on disk */
#define LIMITS_TABLE_STARTS (LIMITS_TABLE / 2)      /* args and env in it; the rest is for guards and memos */
#define LIMITS_TIMEOUT_MS ((int64_t)60 * 60 * 1000) /* longest plenum_timeout_ms */
/* Work for one client in one turn of the loop; the rest waits for later turns. For a child only the bytes count,
 * because its lines cost less. */
#define LIMITS_TURN_LINES ((size_t)64)
#define LIMITS_TURN_BYTES ((size_t)256 * 1024)
#define LIMITS_DEFAULT                                                                                                 \
	{                                                                                                                  \
		.child_line = 64 * LIMITS_MIB, .client_line = 64 * LIMITS_MIB, .tape_bytes = 16 * LIMITS_MIB,                  \
		.tape_lines = 65536, .stdin_queue = 64 * LIMITS_MIB, .client_lag_soft = 8 * LIMITS_MIB,                        \
		.client_lag_soft_time = 10000, .lag_wait = 10000, .max_pending = 4096, .max_calls = 4096, .uid_sessions = 64,  \
		.uid_clients = 256, .uid_bytes = 256 * LIMITS_MIB, .uid_requests = 1024,                                       \
	}
