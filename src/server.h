/* SPDX-License-Identifier: MIT
 *
 * The daemon as a whole: configuration, socket, sessions on disk, signals, the order of starting and of stopping. Owns
 * everything below it.
 */
#pragma once

#include <stdbool.h>

struct server_options {
	const char *config; /* NULL: the usual places */
	const char *socket; /* NULL: configuration, then environment */
	char *const *argv;  /* as it was started */
	int resume;         /* descriptor with the state of the binary before this one; -1: a new start */
	bool check;         /* only see whether that state can be read */
};

/* Runs until it is told to stop. The exit status (sysexits.h): 0, 69 another daemon has the socket or the state folder,
 * 71, 73 socket, 78 configuration. */
int server_run(const struct server_options *options);
