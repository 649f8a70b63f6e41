/* SPDX-License-Identifier: MIT
 *
 * Programs and files, for demo and doctor.
 */
#pragma once

#include <stdbool.h>

/* One of our own programs: beside this one, where the build tree has it, else in PATH. The caller frees; NULL: nowhere.
 */
char *find_own(const char *name, const char *build_subfolder);
/* A program as execvp(3) finds it. The caller frees; NULL: nowhere. */
char *find_program(const char *name);
bool find_remove_tree(const char *folder); /* like rm -r; follows no link */
