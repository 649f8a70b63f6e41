/* SPDX-License-Identifier: MIT
 *
 * What the child survives. The real CLI exits at a line whose shape it does not expect, and some lines it swallows
 * without ever answering; both would hurt everybody on the session, so such a line is refused before it gets there.
 * The table of what was measured is PROTOCOL 3; message.c calls this for lines that are valid JSON already.
 */
#pragma once

#include "wire/message.h"

/* m->kind and m->env are filled, line is the object without blanks before it. False: error[0..size) says what is wrong
 * and what to write instead. */
bool survive_check(const struct message *m, struct span line, char *error, size_t size);
