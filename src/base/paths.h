/* SPDX-License-Identifier: MIT
 *
 * Where things are: the one resolver that the daemon, the tools and the library share, so that they never look in
 * different places. Nothing is created here and nothing is cached; the environment is read at every call.
 *
 * Functions that return char * return a new string that the caller frees, or NULL. Source: DESIGN 3 and 9; XDG Base
 * Directory Specification 0.8 (relative values are ignored, as it asks).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The longest path that fits sockaddr_un, without its NUL. Source: unix(7). */
#define PATH_SOCKET_MAX 107

/* The socket: $PLENUM_SOCKET, else $XDG_RUNTIME_DIR/plenum/plenum.sock where that folder is usable (see
 * path_runtime_dir), else /run/plenum/plenum.sock. True: out holds it and *why (static, may be asked for with NULL) is
 * the name of the rule. False: *why is a sentence for a person; out is empty, or has the part that fits. */
bool path_socket(char *out, size_t size, const char **why);

/* A path that somebody named (--socket, a configuration key), checked by the same rules: not empty, not too long. */
bool path_socket_check(const char *path, const char **why);

/* $XDG_RUNTIME_DIR if it is absolute, a folder, ours, and not writable for others; else NULL. */
char *path_runtime_dir(void);
/* Why path_runtime_dir() gives NULL: a static sentence; NULL where it gives a folder. */
const char *path_runtime_dir_problem(void);

/* $HOME, else the home of the password database; NULL where there is neither. */
char *path_home(void);
/* $XDG_STATE_HOME/plenum, else ~/.local/state/plenum; NULL without a home. */
char *path_state_dir(void);
/* $XDG_CONFIG_HOME, else ~/.config; NULL without a home. The project's files are in its subfolder `plenum`. */
char *path_config_home(void);
