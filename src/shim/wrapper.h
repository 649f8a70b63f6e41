/* SPDX-License-Identifier: MIT
 *
 * A script named `claude` that starts plenum-shim with its own arguments, perhaps with more around them. The parent is
 * such a script if its arguments are part of ours.
 */
#pragma once

#include <stdbool.h>

/* Return true if both paths lead to one file. */
bool wrapper_same_file(const char *a, const char *b);
/* Return true if the parent is this file and passed its arguments on to this process. path NULL: any file; argv: ours,
 * without argv[0]. */
bool wrapper_is(const char *path, char *const *argv);
/* Return true if this process is the agent of a session: plenumd, or a script started by it, found plenum-shim under
 * the name `claude`. */
bool wrapper_is_agent(char *const *argv);
