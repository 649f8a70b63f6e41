/* SPDX-License-Identifier: MIT
 *
 * A buffered writer to a descriptor that may be slow. Never blocks, and never changes the descriptor's flags (stdout
 * may be shared with the parent process). Without a reader, and after an error, a sink accepts and drops everything,
 * like the CLI with a closed stdout (protocol-facts 6.3).
 */
#pragma once

#include "base/buf.h"

struct sink {
	int fd;
	bool socket; /* written with MSG_DONTWAIT */
	bool own_fd; /* a pipe that was opened again with O_NONBLOCK */
	size_t step; /* most bytes of one write without blocking */
	bool dead;   /* no reader, or an error */
	int error;   /* the errno of that; 0: none */
	struct buf buf;
	size_t off; /* bytes of buf that are written */
};

void sink_init(struct sink *s, int fd, size_t max);
void sink_free(struct sink *s);
size_t sink_pending(const struct sink *s);
bool sink_put(struct sink *s, const void *data, size_t n); /* false: over the maximum, nothing was accepted */
/* Return room for n bytes to read into; sink_commit() sets the number of read bytes. NULL: no room. */
char *sink_room(struct sink *s, size_t n);
void sink_commit(struct sink *s, size_t n);
void sink_flush(struct sink *s); /* write without blocking; call it after POLLOUT or POLLERR of poll() */
