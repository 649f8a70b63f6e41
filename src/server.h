/* SPDX-License-Identifier: MIT
 *
 * The daemon as a whole: configuration, socket, sessions on disk, signals, the order of start and stop. Owns everything
 * below it.
 */
#pragma once

#include <stdbool.h>

struct server_options {
	const char *config; /* NULL: the default places */
	const char *socket; /* NULL: configuration, then environment */
	char *const *argv;  /* of this process */
	int resume;         /* descriptor with the state of the previous binary; -1: a new start */
	bool check;         /* only check if that state can be read */
};

/* Run until stopped. Return the exit status (sysexits.h): 0, 69 another daemon has the socket or the state directory,
 * 71, 73 socket, 78 configuration. */
int server_run(const struct server_options *options);
