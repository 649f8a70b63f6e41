/* SPDX-License-Identifier: MIT
 *
 * Lines on stdin: read, checked as by the CLI, passed to control, query or the backlog. A line that ends the CLI ends
 * this program, too (protocol-facts 3). Outside a turn one line is handled at a time, so that the first of several
 * prompts starts its turn and the others find it running.
 */
#pragma once

#include <stdbool.h>

void input_init(void);
bool input_ended(void); /* stdin has ended and every line was handled */
