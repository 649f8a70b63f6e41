/* SPDX-License-Identifier: MIT
 *
 * sd_notify(3) and socket activation without libsystemd. A missing variable means "not under systemd"; no error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct notify {
	int fd;           /* -1: no service manager */
	int64_t watchdog; /* ms between WATCHDOG=1 messages, 0: none */
};

/* Read NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and unset them, so that no child inherits them. */
void notify_init(struct notify *n);
/* Send a repeated message; dropped if the manager's socket is full. */
void notify_send(const struct notify *n, const char *text);
/* Send a message that the manager waits for; waits up to 2 s for room. */
void notify_send_once(const struct notify *n, const char *text);
void notify_close(struct notify *n);

/* Return the listening socket passed by systemd, or -1. Unsets LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES. */
int notify_listen_fd(void);
