/* SPDX-License-Identifier: MIT
 *
 * Small macros that make C shorter.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define UNUSED __attribute__((unused))

/* _cleanup_(f) runs f(&variable) at the end of the scope; to keep the value, set the variable to its empty value. */
#define _cleanup_(f) __attribute__((cleanup(f)))

static inline void free_charp(char **p) {
	free(*p);
}

static inline void close_fdp(int *fd) {
	if (*fd >= 0) close(*fd);
}

#define _cleanup_free_ _cleanup_(free_charp)
#define _cleanup_close_ _cleanup_(close_fdp)
