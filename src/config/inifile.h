/* SPDX-License-Identifier: MIT
 *
 * Reads one INI file through inih, line by line. Packaged inih has a line buffer of 200 bytes, no line numbers for its
 * handler and inline comments that ignore quotes, and reports only its first error. The reader works around all four:
 * it counts lines, passes a long line in pieces (later ones as continuation lines, which inih gives to the handler
 * under the same name), removes comments itself, and detects lines ignored by inih.
 *
 * Lines that begin with a space continue the member above. Parsing continues after an error.
 */
#pragma once

#include "config/errors.h"

#include <stdio.h>

/* The callbacks of the caller. Texts belong to the file until the call returns. */
struct inifile_user {
	void (*section)(struct inifile_user *u, const char *name, int line);
	void (*member)(struct inifile_user *u, const char *name, const char *value, int line); /* all its lines joined */
	bool (*knows)(struct inifile_user *u, const char *name, size_t n); /* true: a key of this section */
};

/* path: for the errors. The stream stays open. */
void inifile_read(FILE *stream, const char *path, struct inifile_user *user, struct errors *errors);
