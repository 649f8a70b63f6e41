/* SPDX-License-Identifier: MIT
 *
 * `claude -p PROMPT` in a session of others: the prompt of the command line and of standard input, and the output in
 * the format asked for. For the daemon it is a client that sends one line and ends its input.
 */
#pragma once

#include "shim/options.h"

/* Return the exit code of the process. */
int print_run(const struct options *o);
