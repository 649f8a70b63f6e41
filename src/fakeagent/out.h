/* SPDX-License-Identifier: MIT
 *
 * Lines on stdout. Nothing here blocks: bytes that the pipe does not take wait in memory, without a limit, as in the
 * CLI (PROTOCOL 6.3). A closed reader is no reason to end.
 */
#pragma once

#include "fakeagent/js.h"

void out_init(void);                       /* also writes the rest at exit() */
void out_json(json_t *frame);              /* takes the frame */
void out_line(const char *line, size_t n); /* adds the LF */
void out_half(const char *text);           /* writes all, then the text without LF */
