/* SPDX-License-Identifier: MIT
 *
 * sd_notify(3) and socket activation without libsystemd. A missing variable means "not under systemd" and is no error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct notify {
	int fd;           /* -1: nobody listens */
	int64_t watchdog; /* ms between WATCHDOG=1 messages, 0: none wanted */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and unsets them, so that no child inherits them. */
void notify_init(struct notify *n);
/* Left out where the manager's socket is full: what is said again and again anyway. */
void notify_send(const struct notify *n, const char *text);
/* Waits then for up to 2 s: what is said once, and what the manager waits for. */
void notify_send_once(const struct notify *n, const char *text);
void notify_close(struct notify *n);

/* The listening socket that systemd passed, or -1. Takes LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES from the
 * environment. */
int notify_listen_fd(void);
