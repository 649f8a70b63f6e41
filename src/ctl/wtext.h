/* SPDX-License-Identifier: MIT
 *
 * Text as wide characters (Unicode code points), as libedit wants it.
 */
#pragma once

#include "base/macros.h"

#include <stddef.h>
#include <stdlib.h>
#include <wchar.h>

/* Convert UTF-8; an invalid byte becomes U+FFFD, and NUL U+2400. *len without the NUL (len may be NULL). The caller
 * frees; NULL: no memory. */
wchar_t *wtext_from(const char *text, size_t n, size_t *len);
/* Convert to UTF-8. */
char *wtext_to(const wchar_t *text, size_t n, size_t *len);
/* Return the columns of a character at this column: tabs go to the next eighth one, a control character is shown as
 * two. */
size_t wtext_columns(wchar_t c, size_t column);

static inline void wtext_freep(wchar_t **text) {
	free(*text);
}
#define _cleanup_wide_ _cleanup_(wtext_freep)
