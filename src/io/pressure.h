/* SPDX-License-Identifier: MIT
 *
 * A watch on memory pressure: reports each time that processes had to wait for memory. It uses the file of the service
 * manager ($MEMORY_PRESSURE_WATCH, with the text to write to it in base64 in $MEMORY_PRESSURE_WRITE): a PSI file of the
 * unit's control group, a FIFO or a Unix stream socket; /dev/null turns the watch off. Else it uses
 * /proc/pressure/memory if that is writable. Sources: Documentation/accounting/psi.rst, systemd's "Memory pressure
 * handling".
 */
#pragma once

#include "base/error.h"
#include "io/loop.h"

#include <stddef.h>

struct pressure;

/* fn runs once for each report. NULL with error set: no file to watch. */
struct pressure *pressure_open(struct loop *loop, void (*fn)(void *arg), void *arg, struct error *error);
void pressure_close(struct pressure *p); /* also from within fn; NULL does nothing */
const char *pressure_path(const struct pressure *p);

/* Decode base64 to out, which has room for strlen(text) bytes. False: invalid. */
bool pressure_decode(const char *text, unsigned char *out, size_t *n);
