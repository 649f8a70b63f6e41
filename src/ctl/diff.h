/* SPDX-License-Identifier: MIT
 *
 * The difference of two texts, line by line, for users who decide on a change.
 */
#pragma once

#include <stddef.h>

/* Call put for each line of the difference, without its newline: sign ' ' (in both, at most DIFF_CONTEXT beside a
 * change), '-' (only in old), '+' (only in new), '@' (unchanged lines are left out here; line has their number as
 * text). Large texts without common lines at the ends are shown as all old lines, then all new ones. */
#define DIFF_CONTEXT 3
typedef void (*diff_put)(void *arg, char sign, const char *line, size_t n);
void diff_lines(const char *old, size_t old_len, const char *fresh, size_t fresh_len, diff_put put, void *arg);
