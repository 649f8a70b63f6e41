/* SPDX-License-Identifier: MIT
 *
 * libplenum: a small C client of plenumd. It finds the socket, sends lines, returns received lines, and finds the
 * answer to a request among them. It does not interpret lines: see plenum-protocol(7); the names are in
 * plenum/protocol.h.
 *
 *	char why[256];
 *	struct plenum_answer a;
 *	struct plenum *p = plenum_open(NULL, why, sizeof why);
 *	if (!p) errx(69, "%s", why);
 *	enum plenum_result r = plenum_request(p, PLENUM_ATTACH, "{\"session\":\"work\"}", 5000, &a);
 *	if (r != PLENUM_OK) errx(1, "%s", r == PLENUM_REFUSED ? a.error : plenum_error(p));
 *	plenum_answer_free(&a);
 *	...
 *	plenum_close(p);
 *
 * plenum-client(3) is the manual. The complete example is examples/client.c, built with
 * `cc client.c $(pkg-config --cflags --libs plenum)`; examples/client-glib.c runs in a GLib loop.
 *
 * Requests, answers and notices have the frame of the session's protocol, see plenum_speak(). Prompts and requests to
 * this client are those of Claude Code.
 *
 * One connection is attached to one session at most; open several for several sessions. A connection may be used by one
 * thread at a time. The caller keeps ownership of arguments; the lifetime of results is stated below. No signal is
 * raised (not even SIGPIPE). Times are milliseconds; -1 waits indefinitely, 0 does not wait.
 *
 * The calls marked READS read from the socket into the queue of plenum_next(). After each of them the queue may hold
 * lines, and poll(2) does not report those: ask plenum_events() before each sleep. All other calls only write, and none
 * of those waits.
 */
#ifndef PLENUM_CLIENT_H
#define PLENUM_CLIENT_H

#include <plenum/protocol.h>

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PLENUM_API __attribute__((visibility("default")))
#else
#define PLENUM_API
#endif

struct plenum; /* one connection */

enum plenum_result {
	PLENUM_OK = 1,        /* success; the line or answer is set */
	PLENUM_TIMED_OUT = 0, /* timeout; the connection is still usable */
	PLENUM_CLOSED = -1,   /* the daemon closed the connection, and every line was returned */
	PLENUM_FAILED = -2,   /* see plenum_error() */
	PLENUM_REFUSED = -3,  /* plenum_request(), plenum_reconnect(): the answer is an error, see its code and error */
	PLENUM_FULL = -4,     /* the outbox is at its limit; nothing of the line was taken, send it again later */
};

/* The version of the library, such as "0.1.0". */
PLENUM_API const char *plenum_version(void);

/* Return the socket of plenum_open(NULL): $PLENUM_SOCKET, else $XDG_RUNTIME_DIR/plenum/plenum.sock, else
 * without that variable /run/user/UID/plenum/plenum.sock if it is a socket of this user, else
 * /run/plenum/plenum.sock. *why (why may be NULL) is the name of the rule, or on false the reason; both are static.
 * path should have PLENUM_SOCKET_PATH_SIZE bytes. */
#define PLENUM_SOCKET_PATH_SIZE 108
PLENUM_API bool plenum_socket_path(char *path, size_t size, const char **why);

/* Connect. path NULL: plenum_socket_path(). On failure return NULL, with the reason and the path in why[0..size) (why
 * may be NULL with size 0), and errno of the failed call. */
PLENUM_API struct plenum *plenum_open(const char *path, char *why, size_t size);
PLENUM_API void plenum_close(struct plenum *p);              /* NULL is allowed */
PLENUM_API const char *plenum_path(const struct plenum *p);  /* the path in use; lives as long as p */
PLENUM_API const char *plenum_error(const struct plenum *p); /* the last failure; lives until the next one */

/* --- Protocols ---
 *
 * Speak the protocol of a session from now on: the member `dialect` of plenum_list, "claude" (at first), "acp" or
 * "codex". A connection has one protocol, so the library connects again if a line was sent; the attachment is then
 * gone. Only PLENUM_OK or PLENUM_FAILED; with errno EINVAL: the library does not know this protocol. */
PLENUM_API enum plenum_result plenum_speak(struct plenum *p, const char *dialect);
PLENUM_API const char *plenum_dialect(const struct plenum *p); /* static */

/* --- In a loop ---
 *
 * The descriptor for poll(2), owned by the library; plenum_reopen() and plenum_reconnect() change it. */
PLENUM_API int plenum_fd(const struct plenum *p);

/* Return what to wait for: POLLIN, POLLOUT or both; 0 after PLENUM_CLOSED, then the descriptor must not be polled.
 * *timeout_ms (may be NULL) is 0 if a line or the end is there now, else -1. A loop asks before each sleep; when it
 * wakes up it calls plenum_next(p, 0, ...) until that does not return PLENUM_OK:
 *
 *	fd.events = plenum_events(p, &timeout);
 *	poll(&fd, 1, timeout);
 *	while ((r = plenum_next(p, 0, &line, &len)) == PLENUM_OK) use(line, len); */
PLENUM_API short plenum_events(const struct plenum *p, int *timeout_ms);

/* READS. Send what waits in the outbox, and return the next line, without its newline and NOT NUL-terminated; valid
 * until the next call with this p. PLENUM_CLOSED: the connection has ended, and every line was returned; a line without
 * its newline was cut off and is dropped. A line over PLENUM_CLIENT_LINE_MAX bytes is skipped: PLENUM_FAILED with
 * EMSGSIZE once, then the next call continues. */
#define PLENUM_CLIENT_LINE_MAX ((size_t)256 * 1024 * 1024)
PLENUM_API enum plenum_result plenum_next(struct plenum *p, int timeout_ms, const char **line, size_t *len);

/* --- Sending ---
 *
 * Send one line, with or without its newline; a newline within it is refused. Never waits: what the socket does not
 * take stays in the outbox, and later calls send it. PLENUM_OK, PLENUM_FULL, PLENUM_CLOSED or PLENUM_FAILED. */
PLENUM_API enum plenum_result plenum_send(struct plenum *p, const char *line, size_t len);

/* READS. The same, and wait until all is sent. PLENUM_FULL or PLENUM_TIMED_OUT at the timeout: the line was not taken,
 * or the rest of it is in the outbox. */
PLENUM_API enum plenum_result plenum_send_wait(struct plenum *p, const char *line, size_t len, int timeout_ms);

/* READS. Wait until the outbox is empty. plenum_close() drops it. */
PLENUM_API enum plenum_result plenum_flush(struct plenum *p, int timeout_ms);
PLENUM_API size_t plenum_unsent(const struct plenum *p); /* bytes in the outbox */

/* Set the outbox's limit; default PLENUM_OUTBOX_MAX. An empty outbox takes one line of any size. */
#define PLENUM_OUTBOX_MAX ((size_t)64 * 1024 * 1024)
PLENUM_API void plenum_outbox(struct plenum *p, size_t bytes);

/* End the input after the outbox (later sends fail); answers are still received. The daemon closes after the last
 * answer. Never waits. */
PLENUM_API enum plenum_result plenum_finish(struct plenum *p);

/* --- Requests to the daemon and to the agent --- */

struct plenum_answer {
	char *line; /* the whole answer, NUL-terminated */
	size_t len;
	const char *body; /* its content (`response.response`; in JSON-RPC `result`), points into line; NULL: none */
	size_t body_len;
	char *code;  /* of an error: one of PLENUM_E_* (in JSON-RPC in `error.data`); "" for errors of the agent */
	char *error; /* of an error: the text */
};

/* READS. Send {"type":"control_request","request_id":ID,"request":{"subtype":subtype, members of object}} with a new
 * id, or in JSON-RPC {"id":ID,"method":subtype,"params":object}, where plenum_NAME becomes _plenum/NAME, and wait for
 * the answer. object: a JSON object as text, on one line or several, or NULL. Other received lines are
 * queued for plenum_next() in their order. PLENUM_OK: success. PLENUM_REFUSED: an error answer. In both cases *a is set
 * and the caller calls plenum_answer_free(). plenum_next() returns a late answer after a timeout as a line. */
PLENUM_API enum plenum_result plenum_request(struct plenum *p, const char *subtype, const char *object, int timeout_ms,
											 struct plenum_answer *a);
PLENUM_API void plenum_answer_free(struct plenum_answer *a);

/* The same without waiting: id[0..PLENUM_ID_SIZE) is set to the request's id; the answer is an ordinary line. Returns
 * like plenum_send(). */
#define PLENUM_ID_SIZE 40
PLENUM_API enum plenum_result plenum_post(struct plenum *p, const char *subtype, const char *object, char *id);

/* Send a prompt: a `user` line with this text and a new uuid, which is written to uuid[0..PLENUM_UUID_SIZE). Its
 * `result` names that uuid in user_message_uuids (or user_message_uuid). Returns like plenum_send(). */
#define PLENUM_UUID_SIZE 37
PLENUM_API enum plenum_result plenum_prompt(struct plenum *p, const char *text, size_t len, char *uuid);
/* Send it again under the same uuid, after a lost connection: it runs once. */
PLENUM_API enum plenum_result plenum_prompt_again(struct plenum *p, const char *text, size_t len, const char *uuid);

/* --- Connecting again ---
 *
 * The library remembers the members of the last plenum_attach, whether plenum_request() or plenum_post() sent it, and
 * the number of the last line that it read. Call these after PLENUM_CLOSED: they connect to the same path and attach
 * with the same members to the same session. If these had "tag":true, the lines after that number follow, so that none
 * is lost or comes twice (`replay_cut` in the answer: some are lost). Lines in the queue stay there. The outbox
 * is dropped, and so are requests without an answer; for prompts see plenum_prompt_again().
 *
 * plenum_reopen() tries once and does not wait; the answer is an ordinary line under id[0..PLENUM_ID_SIZE).
 * PLENUM_FAILED with errno ENOENT or ECONNREFUSED: no daemon is there yet.
 *
 * plenum_reconnect() READS: it tries until the timeout, and returns like plenum_request(). */
PLENUM_API enum plenum_result plenum_reopen(struct plenum *p, char *id);
PLENUM_API enum plenum_result plenum_reconnect(struct plenum *p, int timeout_ms, struct plenum_answer *a);

/* --- Requests to this client --- */

enum plenum_ask_kind {
	PLENUM_ASK_OTHER,      /* any other request; input is the whole `request` */
	PLENUM_ASK_PERMISSION, /* can_use_tool: plenum_allow(), plenum_deny() */
	PLENUM_ASK_HOOK,       /* hook_callback: plenum_reply() with the hook's output */
	PLENUM_ASK_MCP,        /* mcp_message: plenum_reply_mcp() */
};

struct plenum_ask {
	enum plenum_ask_kind kind;
	char *line; /* the whole control_request, NUL-terminated */
	size_t len;
	char *id;          /* its request_id as JSON, a string with quotes */
	char *name;        /* of the tool, the hook's callback, the MCP server; else the subtype */
	const char *input; /* JSON, points into line: the tool's or hook's input, the JSON-RPC message. NULL: none */
	size_t input_len;
	const char *suggestions; /* JSON: permission_suggestions, an array. NULL: none */
	size_t suggestions_len;
};

/* Return true if the line is a request to this client; then *a is set, and the caller calls plenum_ask_free(). It may
 * be answered at any later time. */
PLENUM_API bool plenum_ask_read(const char *line, size_t len, struct plenum_ask *a);
PLENUM_API void plenum_ask_free(struct plenum_ask *a);
/* Return true if the line withdraws the request: another client has answered it, or it is void. */
PLENUM_API bool plenum_ask_withdrawn(const struct plenum_ask *a, const char *line, size_t len);

/* Answers; each returns like plenum_send(). An answer that cannot be used is reported by the event `error`, and the
 * request stays open. */

/* input: the changed input, a JSON object; NULL: unchanged. permissions: JSON array of changes, such as one of the
 * suggestions in brackets; NULL: none. */
PLENUM_API enum plenum_result plenum_allow(struct plenum *p, const struct plenum_ask *a, const char *input,
										   const char *permissions);
PLENUM_API enum plenum_result plenum_deny(struct plenum *p, const struct plenum_ask *a, const char *message);
/* response: a JSON object; NULL: {}, which is no objection of a hook. */
PLENUM_API enum plenum_result plenum_reply(struct plenum *p, const struct plenum_ask *a, const char *response);
PLENUM_API enum plenum_result plenum_reply_error(struct plenum *p, const struct plenum_ask *a, const char *error);
/* message: the JSON-RPC reply; NULL for a notification. */
PLENUM_API enum plenum_result plenum_reply_mcp(struct plenum *p, const struct plenum_ask *a, const char *message);

/* Return a JSON string with quotes from any bytes (invalid UTF-8 becomes U+FFFD); the caller frees. NULL: no memory. */
PLENUM_API char *plenum_quote(const char *text, size_t len);

#ifdef __cplusplus
}
#endif

#endif
