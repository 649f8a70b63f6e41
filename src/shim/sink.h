/* SPDX-License-Identifier: MIT
 *
 * Bytes on their way out to a descriptor that may be slow, without ever blocking and without changing the descriptor's
 * flags (stdout may be shared with the process that started us). A sink whose reader has gone takes everything and
 * writes nothing, as the CLI goes on when its stdout is closed (PROTOCOL 6.3).
 */
#pragma once

#include "base/buf.h"

struct sink {
	int fd;
	bool socket; /* written with MSG_DONTWAIT */
	bool own_fd; /* a pipe that was opened again with O_NONBLOCK */
	size_t step; /* the most that a write may bring without blocking */
	bool dead;   /* nobody reads */
	struct buf buf;
	size_t off; /* bytes of buf that are out */
};

void sink_init(struct sink *s, int fd, size_t max);
void sink_free(struct sink *s);
size_t sink_pending(const struct sink *s);
bool sink_put(struct sink *s, const void *data, size_t n); /* false: over the maximum, nothing was taken */
/* Where n bytes can be read to; sink_commit() says how many came. NULL: no room. */
char *sink_room(struct sink *s, size_t n);
void sink_commit(struct sink *s, size_t n);
void sink_flush(struct sink *s); /* what can be written now; call it when poll() says POLLOUT or POLLERR */
