/* SPDX-License-Identifier: MIT
 *
 * The inside of `struct plenum`: one connection with the lines that were read and the bytes that wait to be sent. The
 * functions of plenum/client.h are built on these. Nothing here waits except handle_turn().
 */
#pragma once

#include "base/buf.h"
#include "dialect/envelope.h"
#include "plenum/client.h"
#include "wire/lines.h"
#include "wire/scan.h"

#include <stdint.h>

/* Lines that were read and not handed out, oldest first: slots head..count. */
struct handle_queue {
	struct chunk *lines;
	size_t head, count, cap;
};

/* The attachment, to take it up on another connection. */
struct handle_place {
	char *members;           /* of the last plenum_attach, as a JSON object; NULL: none was sent */
	char *session;           /* as a JSON string, from its answer; NULL: unknown */
	char id[PLENUM_ID_SIZE]; /* of that request until it is answered; else "" */
	bool counts;             /* seq is known */
	int64_t seq;             /* number of the last line of the tape that is in the queue, or was */
};

/* The frame of requests and answers. */
struct handle_frame {
	const char *dialect;
	const char *head; /* of a line in JSON-RPC; NULL: the control frame */
};

struct plenum {
	int fd;
	const struct handle_frame *frame;
	bool spoke;    /* a line was put into the outbox of this connection */
	bool ended;    /* the daemon sends no more */
	bool told;     /* plenum_next() has returned PLENUM_CLOSED for it */
	bool finished; /* plenum_finish(): we send no more after the outbox */
	bool shut;     /* the input was ended */
	bool cut;      /* the outbox was dropped: it could not be sent */
	int skipped;   /* over-long lines that were not reported yet */
	struct lines_pool pool;
	struct lines in;
	struct handle_queue queue;
	struct chunk current; /* what plenum_next() handed out */
	struct buf out;       /* the outbox: bytes from sent on wait */
	size_t sent, out_max;
	struct handle_place place;
	unsigned long counter;
	char salt[9];
	char path[PLENUM_SOCKET_PATH_SIZE];
	char error[512];
};

/* Set the error and return PLENUM_FAILED; errno is kept. */
enum plenum_result handle_failed(struct plenum *p, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* NULL without memory. Takes over fd if it succeeds. */
struct plenum *handle_new(int fd, const char *path);
void handle_free(struct plenum *p);
/* Go on with another connection. Lines that were read stay; an unfinished line and unsent bytes are dropped. */
void handle_replace(struct plenum *p, int fd);

bool handle_empty(const struct plenum *p); /* no line is in the queue */
struct chunk handle_take(struct plenum *p, size_t at);
size_t handle_length(struct chunk line); /* without the newline */

/* Put a line and its newline into the outbox, and send what the socket takes. PLENUM_FULL: nothing was taken. */
enum plenum_result handle_put(struct plenum *p, const char *line, size_t len);
/* Send what the socket takes. PLENUM_OK also if bytes remain. */
enum plenum_result handle_flush(struct plenum *p);

int64_t handle_deadline(int timeout_ms);
/* Wait until bytes were read or sent, or until the deadline. PLENUM_CLOSED: there is nothing to wait for. */
enum plenum_result handle_turn(struct plenum *p, int64_t deadline);

/* Return the frame of a dialect; NULL: it is not known. */
const struct handle_frame *handle_frame(const char *dialect);
/* Return true if the line is the answer to that request; *e is set. */
bool handle_answers(const struct handle_frame *frame, struct chunk line, const char *id, struct envelope *e);
/* Return the text between the braces of a JSON object, without surrounding spaces; absent if it is none. */
struct span handle_members(const char *object);
/* Write JSON text on one line. */
void handle_put_json(struct buf *b, struct span json);
/* Write a request with these members and a new id, which is copied to id. */
void handle_request(struct plenum *p, struct buf *b, const char *subtype, struct span members, char *id);
