/* SPDX-License-Identifier: MIT
 *
 * The errands of the daemon (io/errand.h): which function a process runs that was started as `--errand KIND`.
 */
#pragma once

/* The exit status of the process. */
int errands_run(const char *kind);
