/* SPDX-License-Identifier: MIT
 *
 * A growable buffer with a hard maximum. A failed put leaves the content unchanged and sets `failed`: check it once at
 * the end. The content is NUL-terminated after every put (the NUL is not counted).
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>

struct buf {
	char *data;
	size_t len, cap, max;
	bool failed;
};

#define BUF_INIT(maximum)                                                                                              \
	{ .max = (maximum) }

void buf_free(struct buf *b);
bool buf_reserve(struct buf *b, size_t more); /* room for more bytes and a NUL */
bool buf_put(struct buf *b, const void *data, size_t n);
/* Append what fd yields up to its end. False: a read has failed (errno), or b has. */
bool buf_read(struct buf *b, int fd);
bool buf_puts(struct buf *b, const char *text);
bool buf_putc(struct buf *b, char c);
bool buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *buf_steal(struct buf *b, size_t *len); /* gives up ownership; the caller frees; NULL if failed */
