/* SPDX-License-Identifier: MIT
 *
 * A watch on memory pressure: tells each time that the kernel, or whoever the service manager named, says that
 * processes had to wait for memory. Where the manager names a file ($MEMORY_PRESSURE_WATCH, what to write to it in
 * base64 in $MEMORY_PRESSURE_WRITE) it is that one: a PSI file of the unit's own control group, a FIFO or a Unix stream
 * socket; /dev/null turns the watch off. Else /proc/pressure/memory, where there is one that we may write to. Sources:
 * Documentation/accounting/psi.rst, systemd's "Memory pressure handling".
 */
#pragma once

#include "io/loop.h"

#include <stddef.h>

#define PRESSURE_ERROR_MAX 300

struct pressure;

/* fn runs once for each time that memory was short. NULL: there is nothing to watch, error says why. */
struct pressure *pressure_open(struct loop *loop, void (*fn)(void *arg), void *arg, char *error);
void pressure_close(struct pressure *p); /* also from within fn; NULL does nothing */
const char *pressure_path(const struct pressure *p);

/* Decodes base64 to out, which has room for strlen(text) bytes. False: it is none. */
bool pressure_decode(const char *text, unsigned char *out, size_t *n);
