/* SPDX-License-Identifier: MIT
 *
 * The scanner's two long loops in steps of 64 bytes, on processors with the instructions for it: quotes, backslashes
 * and brackets become bit masks, and the content of a long string costs a few instructions per step. The results are
 * those of the plain loops of scan.c, also for lines that are not JSON. Reads only from p up to end.
 *
 * Source: the masks are those of Langdale and Lemire, "Parsing Gigabytes of JSON per Second" (2019), 3.1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Return true if the functions below may be called. Cheap: called for each line. */
bool wide_here(void);
/* p is within a string, without a preceding backslash. Return the byte after the closing quote, or NULL. */
const char *wide_string(const char *p, const char *end);
/* p is on the opening bracket. Return the byte after the closing one; NULL if the line ends before; p if the plain loop
 * must be used (a backslash outside a string: not JSON). */
const char *wide_container(const char *p, const char *end);

/* The state between two steps of 64 bytes. */
struct wide_state {
	uint64_t within; /* all ones in a string */
	uint64_t carry;  /* 1: the next byte is escaped */
	bool refused;    /* the plain loop must be used from here: a backslash is outside of strings */
};
/* Move *p to stop or a little behind it, or past the next step that has marks: return these, one bit for a byte from
 * *step on; 0: there are none. Marks are the quotes of strings, and brackets outside of strings. Reads only up to
 * end. */
uint64_t wide_marks(const char **p, const char *stop, const char *end, struct wide_state *s, const char **step);
