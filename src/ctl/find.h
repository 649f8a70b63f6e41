/* SPDX-License-Identifier: MIT
 *
 * Programs and files, for demo and doctor.
 */
#pragma once

#include <stdbool.h>

/* Find a program of the project: beside this one, in the build tree, else in PATH. The caller frees; NULL: not found.
 */
char *find_own(const char *name, const char *build_subfolder);
/* Find a program like execvp(3), then where Claude Code's native installer puts it. The caller frees; NULL: not found.
 */
char *find_program(const char *name);
/* Run a program (argv[0] as execvp(3), argv ends with NULL), and return its output on stdout and stderr, at most
 * 64 KiB, with its wait status. The caller frees; NULL: it could not be run. */
char *find_output(const char *const argv[], int *status);
