/* SPDX-License-Identifier: MIT
 *
 * Descriptors of this process in the command line: a shell writes --mcp-config <(command) as --mcp-config /dev/fd/63.
 * The agent runs below the daemon and has none of them, so their content takes their place.
 *
 * Source: what both versions of the CLI take, protocol-facts 1.2.
 */
#pragma once

#include "shim/options.h"

/* Replace each descriptor above 2 that a flag of the CLI names as its file: by the path of the file, else by the
 * content if the flag has a form that takes it. The new words live as long as the process. False: the reason is on
 * stderr. */
bool descriptors_replace(struct options *o);
