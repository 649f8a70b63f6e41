/* SPDX-License-Identifier: MIT
 *
 * libplenum: a small C client of plenumd. It finds the socket, sends lines, hands out the lines that come, and finds
 * the answer to a request among them. It knows nothing of what the lines say: that is plenum-protocol(7), and the names
 * are in plenum/protocol.h.
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
 * The whole of it is examples/client.c, built with `cc client.c $(pkg-config --cflags --libs plenum)`.
 *
 * One connection is attached to one session at most; open several for several sessions. A connection may be used by one
 * thread at a time. Strings handed in stay the caller's; what is handed out says how long it lives. No signal is ever
 * raised (SIGPIPE neither). Times are milliseconds; -1 waits without end. Nothing here ever retries or reconnects.
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
	PLENUM_OK = 1,        /* done; there is a line, an answer */
	PLENUM_TIMED_OUT = 0, /* not in that time; the connection is as good as before */
	PLENUM_CLOSED = -1,   /* the daemon closed the connection, and every line was handed out */
	PLENUM_FAILED = -2,   /* plenum_error() says what */
	PLENUM_REFUSED = -3,  /* plenum_request() only: the answer is an error, see code and error of the answer */
};

/* The library's version, like "0.1.0". */
PLENUM_API const char *plenum_version(void);

/* Where plenum_open(NULL) connects to: $PLENUM_SOCKET, else $XDG_RUNTIME_DIR/plenum/plenum.sock, else
 * /run/plenum/plenum.sock. *why (may be NULL) becomes the name of the rule, or on false a sentence saying what is
 * wrong; both are static. path should hold PLENUM_SOCKET_PATH_SIZE bytes. */
#define PLENUM_SOCKET_PATH_SIZE 108
PLENUM_API bool plenum_socket_path(char *path, size_t size, const char **why);

/* Connects. path NULL: as plenum_socket_path() says. On NULL the sentence why[0..size) says what is wrong and names the
 * path (why may be NULL with size 0), and errno is that of the failed call. */
PLENUM_API struct plenum *plenum_open(const char *path, char *why, size_t size);
PLENUM_API void plenum_close(struct plenum *p);              /* NULL is allowed */
PLENUM_API const char *plenum_path(const struct plenum *p);  /* the path in use; lives as long as p */
PLENUM_API const char *plenum_error(const struct plenum *p); /* the last failure; lives until the next one */

/* For poll(2) loops: the descriptor (wait for POLLIN; it stays the library's). After it is readable call plenum_next(p,
 * 0, ...) until it returns PLENUM_TIMED_OUT: lines may have been read that poll() no longer knows of. */
PLENUM_API int plenum_fd(const struct plenum *p);

/* Sends one line, with or without its LF; an LF within it is refused. Waits while the socket is full, and reads what
 * comes meanwhile (it is kept for plenum_next), so that two full queues never wait for each other. PLENUM_OK,
 * PLENUM_CLOSED or PLENUM_FAILED. */
PLENUM_API enum plenum_result plenum_send(struct plenum *p, const char *line, size_t len);

/* No more input from us (what would send fails from then on); answers still come. After its last answer the daemon
 * closes. */
PLENUM_API enum plenum_result plenum_finish(struct plenum *p);

/* The next line, without its LF and NOT NUL-terminated; it lives until the next call with this p. A last line without
 * LF counts. A line over PLENUM_CLIENT_LINE_MAX bytes is skipped: PLENUM_FAILED, once, and the next call goes on. */
#define PLENUM_CLIENT_LINE_MAX ((size_t)256 * 1024 * 1024)
PLENUM_API enum plenum_result plenum_next(struct plenum *p, int timeout_ms, const char **line, size_t *len);

struct plenum_answer {
	char *line; /* the whole control_response, NUL-terminated */
	size_t len;
	const char *body; /* its `response.response`, points into line; NULL where there is none */
	size_t body_len;
	char *code;  /* of an error: one of PLENUM_E_*; "" where the answer has none (the agent's own errors) */
	char *error; /* of an error: a sentence */
};

/* Sends {"type":"control_request","request_id":ID,"request":{"subtype":subtype, members of object}} with an id that
 * this connection never used, and waits for the answer. object: a JSON object as text, on one line or several, or NULL.
 * Other lines that come meanwhile are kept for plenum_next() in their order. PLENUM_OK: a success. PLENUM_REFUSED: an
 * error answer. In both cases *a is filled and the caller calls plenum_answer_free(). A late answer to a request that
 * timed out comes out of plenum_next() as a line. */
PLENUM_API enum plenum_result plenum_request(struct plenum *p, const char *subtype, const char *object, int timeout_ms,
											 struct plenum_answer *a);
PLENUM_API void plenum_answer_free(struct plenum_answer *a);

/* The same without waiting: id[0..PLENUM_ID_SIZE) becomes the request's id, the answer is an ordinary line. */
#define PLENUM_ID_SIZE 40
PLENUM_API enum plenum_result plenum_post(struct plenum *p, const char *subtype, const char *object, char *id);

/* Sends a prompt: a `user` line with this text under a new uuid, which uuid[0..PLENUM_UUID_SIZE) becomes. The `result`
 * that answers it names that uuid in user_message_uuids (or user_message_uuid). */
#define PLENUM_UUID_SIZE 37
PLENUM_API enum plenum_result plenum_prompt(struct plenum *p, const char *text, size_t len, char *uuid);

/* A JSON string with its quotes from any bytes (what is no UTF-8 becomes U+FFFD). free() it. NULL: no memory. */
PLENUM_API char *plenum_quote(const char *text, size_t len);

#ifdef __cplusplus
}
#endif

#endif
