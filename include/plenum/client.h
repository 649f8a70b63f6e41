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
 * The complete example is examples/client.c, built with `cc client.c $(pkg-config --cflags --libs plenum)`.
 *
 * One connection is attached to one session at most; open several for several sessions. A connection may be used by one
 * thread at a time. The caller keeps ownership of arguments; the lifetime of results is stated below. No signal is
 * raised (not even SIGPIPE). Times are milliseconds; -1 waits indefinitely. The library never retries or reconnects.
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
	PLENUM_REFUSED = -3,  /* plenum_request() only: the answer is an error, see its code and error */
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

/* The descriptor for poll(2) (wait for POLLIN; owned by the library). When it is readable call plenum_next(p, 0, ...)
 * until it returns PLENUM_TIMED_OUT: buffered lines do not wake poll(2). */
PLENUM_API int plenum_fd(const struct plenum *p);

/* Send one line, with or without its newline; a newline within it is refused. While the socket is full, wait and read
 * (into the queue of plenum_next), so that two full queues never wait for each other. Return PLENUM_OK, PLENUM_CLOSED
 * or PLENUM_FAILED. */
PLENUM_API enum plenum_result plenum_send(struct plenum *p, const char *line, size_t len);

/* End the input (later sends fail); answers are still received. The daemon closes after the last answer. */
PLENUM_API enum plenum_result plenum_finish(struct plenum *p);

/* Return the next line, without its newline and NOT NUL-terminated; valid until the next call with this p. A last line
 * without a newline counts. A line over PLENUM_CLIENT_LINE_MAX bytes is skipped: PLENUM_FAILED once, then the next call
 * continues. */
#define PLENUM_CLIENT_LINE_MAX ((size_t)256 * 1024 * 1024)
PLENUM_API enum plenum_result plenum_next(struct plenum *p, int timeout_ms, const char **line, size_t *len);

struct plenum_answer {
	char *line; /* the whole control_response, NUL-terminated */
	size_t len;
	const char *body; /* its `response.response`, points into line; NULL: none */
	size_t body_len;
	char *code;  /* of an error: one of PLENUM_E_*; "" for errors of the agent */
	char *error; /* of an error: the text */
};

/* Send {"type":"control_request","request_id":ID,"request":{"subtype":subtype, members of object}} with a new id, and
 * wait for the answer. object: a JSON object as text, on one line or several, or NULL. Other received lines are queued
 * for plenum_next() in their order. PLENUM_OK: success. PLENUM_REFUSED: an error answer. In both cases *a is set and
 * the caller calls plenum_answer_free(). plenum_next() returns a late answer after a timeout as a line. */
PLENUM_API enum plenum_result plenum_request(struct plenum *p, const char *subtype, const char *object, int timeout_ms,
											 struct plenum_answer *a);
PLENUM_API void plenum_answer_free(struct plenum_answer *a);

/* The same without waiting: id[0..PLENUM_ID_SIZE) is set to the request's id; the answer is an ordinary line. */
#define PLENUM_ID_SIZE 40
PLENUM_API enum plenum_result plenum_post(struct plenum *p, const char *subtype, const char *object, char *id);

/* Send a prompt: a `user` line with this text and a new uuid, which is written to uuid[0..PLENUM_UUID_SIZE). Its
 * `result` names that uuid in user_message_uuids (or user_message_uuid). */
#define PLENUM_UUID_SIZE 37
PLENUM_API enum plenum_result plenum_prompt(struct plenum *p, const char *text, size_t len, char *uuid);

/* Return a JSON string with quotes from any bytes (invalid UTF-8 becomes U+FFFD); the caller frees. NULL: no memory. */
PLENUM_API char *plenum_quote(const char *text, size_t len);

#ifdef __cplusplus
}
#endif

#endif
