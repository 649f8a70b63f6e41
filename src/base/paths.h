/* SPDX-License-Identifier: MIT
 *
 * Paths of the socket, state and configuration, shared by the daemon, the tools and the library. Creates and caches
 * nothing; reads the environment at every call.
 *
 * Functions that return char * return a new string that the caller frees, or NULL. Source: docs/contract.md 3 and 9;
 * XDG Base Directory Specification 0.8 (relative values are ignored, as it asks).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The longest path that fits sockaddr_un, without its NUL. Source: unix(7). */
#define PATH_SOCKET_MAX 107

/* Find the socket: $PLENUM_SOCKET, else $XDG_RUNTIME_DIR/plenum/plenum.sock if that directory is usable (see
 * path_runtime_dir), else without that variable /run/user/UID/plenum/plenum.sock if it is a socket of this user, else
 * /run/plenum/plenum.sock. True: out is the path and *why (static; why may be NULL) the name of
 * the rule. False: *why is a message for the user; out is empty, or has the part that fits. */
bool path_socket(char *out, size_t size, const char **why);

/* Check a given path (--socket, a configuration key) by the same rules: not empty, not too long. */
bool path_socket_check(const char *path, const char **why);

/* Return $XDG_RUNTIME_DIR if it is an absolute path of a directory of this user and not writable for others, else NULL.
 */
char *path_runtime_dir(void);
/* Return the reason for a NULL of path_runtime_dir(), a static message; NULL if it returns a directory. */
const char *path_runtime_dir_problem(void);

/* Return true if it is a regular file that this process may execute. */
bool path_is_program(const char *path);
/* Return the path of a program at place n (from 0) of Claude Code's native installer, ~/.local/bin and ~/.claude/local;
 * NULL: there are no more places, or no memory. The file need not exist. The caller frees. */
char *path_installed(const char *home, size_t n, const char *program);
/* Return the directory of the running program. */
char *path_own_dir(void);

/* Return $HOME, else the home of the password database, else NULL. */
char *path_home(void);
/* $XDG_STATE_HOME/plenum, else ~/.local/state/plenum; NULL without a home. */
char *path_state_dir(void);
/* $XDG_CONFIG_HOME, else ~/.config; NULL without a home. The project's files are in its subdirectory `plenum`. */
char *path_config_home(void);
