/* SPDX-License-Identifier: MIT
 *
 * fsync(2) takes as long as the disk takes, and everybody would wait for it: a thread does it, one descriptor after the
 * other, and does nothing else. Everything here is called by the loop's thread, and done() runs in it. Sources:
 * fsync(2), eventfd(2), pthread_create(3).
 */
#pragma once

#include "io/loop.h"

struct syncer;

/* done(): what syncer_start() was given is on the disk, or error says why it is not. NULL: no memory, thread or
 * descriptor. */
struct syncer *syncer_new(struct loop *loop, void (*done)(void *arg, int error), void *arg);
bool syncer_start(struct syncer *s, int fd); /* fd stays the caller's and open until done(). False: it is busy. */
/* Waits for what is under way and reports it as the loop would; false if there was nothing. For the end. */
bool syncer_wait(struct syncer *s);
void syncer_free(struct syncer *s); /* waits, reports nothing; NULL is allowed */
