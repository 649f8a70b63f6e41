/* SPDX-License-Identifier: MIT
 *
 * Reads one INI file through inih, line by line. inih as the distributions build it has a line buffer of 200 bytes, no
 * line numbers for its handler, inline comments that know nothing of quotes, and tells of its first error alone. The
 * reader mends all four: it counts lines, hands a long line over in pieces (the later ones as continuation lines, which
 * inih gives to the handler under the same name), takes comments away itself, and sees which lines inih made nothing
 * of.
 *
 * Lines that begin with a blank continue the member above. Reading goes on after a mistake.
 */
#pragma once

#include "config/errors.h"

#include <stdio.h>

/* Who uses the file. Texts are the file's until the call returns. */
struct inifile_user {
	void (*section)(struct inifile_user *u, const char *name, int line);
	void (*member)(struct inifile_user *u, const char *name, const char *value, int line); /* all its lines in one */
	bool (*knows)(struct inifile_user *u, const char *name, size_t n); /* is this a key of the section in hand? */
};

/* path: for the errors. The stream stays open. */
void inifile_read(FILE *stream, const char *path, struct inifile_user *user, struct errors *errors);
