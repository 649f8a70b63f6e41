/* SPDX-License-Identifier: MIT
 *
 * The reason of a failure, a text for users: the one kind of error of the daemon. The function that fails fills it, its
 * return value says that it failed; without a failure it is left alone.
 */
#pragma once

#include "base/macros.h"

#include <stdarg.h>
#include <stdbool.h>

#define ERROR_TEXT_MAX 1024

struct error {
	char text[ERROR_TEXT_MAX]; /* `object: cause (hint)`, one line */
};

/* Set the text; a longer one is truncated. Return false: `return error_set(error, ...)`. */
bool error_set(struct error *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool error_vset(struct error *e, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
