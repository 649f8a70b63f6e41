/* SPDX-License-Identifier: MIT
 *
 * The errands of the daemon (io/errand.h): maps KIND of a process started as `--errand KIND` to its function.
 */
#pragma once

/* Return the exit status of the process. */
int errands_run(const char *kind);
