/* SPDX-License-Identifier: MIT
 *
 * sd_notify(3) and socket activation without libsystemd. A missing variable means "not under systemd"; no error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct manager {
	int fd;           /* -1: no service manager */
	int64_t watchdog; /* ms between WATCHDOG=1 messages, 0: none */
};

/* Read NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and unset them, so that no child inherits them. */
void manager_init(struct manager *n);
/* Send a repeated message; dropped if the manager's socket is full. */
void manager_send(const struct manager *n, const char *text);
/* Send a message that the manager waits for; waits up to 2 s for room. */
void manager_send_once(const struct manager *n, const char *text);
void manager_close(struct manager *n);

/* Return the listening socket passed by systemd, or -1. Unsets LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES. */
int manager_listen_fd(void);
