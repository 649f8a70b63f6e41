/* SPDX-License-Identifier: MIT
 *
 * fsync(2) in a separate thread, one descriptor after the other, because it may block for long; and close(2), which
 * frees the data of a deleted file. All functions are called by the loop's thread, and done() runs in it. Sources:
 * fsync(2), eventfd(2), pthread_create(3).
 */
#pragma once

#include "io/loop.h"

struct syncer;

/* done(): the file of syncer_start() is on the disk, or error is the errno. Return NULL without memory, thread or
 * descriptor. */
struct syncer *syncer_new(struct loop *loop, void (*done)(void *arg, int error), void *arg);
bool syncer_start(struct syncer *s, int fd); /* the caller keeps fd open until done(). False: busy. */
void syncer_close(struct syncer *s, int fd); /* takes over fd; soon, but after a running fsync */
/* Wait for a running fsync and call done(); false if there is none. For shutdown. */
bool syncer_wait(struct syncer *s);
void syncer_free(struct syncer *s); /* waits, does not call done(); NULL is allowed */
