/* SPDX-License-Identifier: MIT
 *
 * The scanner's two long ways, 64 bytes at a step, where the processor can do that: quotes, backslashes and brackets
 * become bit masks, and the inside of a long string costs a few instructions a step. What they find is what the plain
 * loops of scan.c find, also in lines that are no JSON. Nothing before p or at and behind end is read.
 *
 * Source: the masks are those of Langdale and Lemire, "Parsing Gigabytes of JSON per Second" (2019), 3.1.
 */
#pragma once

#include <stdbool.h>

/* True where the two below may be called. Cheap: it is asked for each line. */
bool wide_here(void);
/* p is within a string and no backslash before it counts: behind the string's closing quote, or NULL. */
const char *wide_string(const char *p, const char *end);
/* p is on the opening bracket: behind the closing one, NULL where the line ends before, or p where the plain loop must
 * look (a backslash outside of a string: this is no JSON). */
const char *wide_container(const char *p, const char *end);
