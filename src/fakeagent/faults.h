/* SPDX-License-Identifier: MIT
 *
 * Misbehaviour on demand, so that a client can be tested against it. -1 or false: off.
 */
#pragma once

#include "fakeagent/json.h"

struct faults {
	long partial;      /* stdout is written in pieces of so many bytes */
	long huge;         /* every turn prints a line of so many bytes */
	long garbage;      /* every so many lines, a line that is no JSON */
	long noise;        /* every turn prints so many KiB on stderr, without LF at the end */
	long flood;        /* every turn prints so many stream events */
	long close_stdout; /* after so many lines */
	long deaf;         /* reads no more after so many lines of input */
	long die;          /* SIGKILL in the middle of that line of output */
	long start_exit;   /* ends at once with that code */
	long start_delay;  /* ms before the first byte is read */
	long late;         /* ms that each control_response is held back */
	long split;        /* dies at a line longer than that whose beginning came in one read with an earlier line */
	bool ignore_sigterm, ignore_eof, grandchild, mute, no_newline, no_result;
};

void faults_init(struct faults *f);
/* NAME or NAME=N; false if there is no such fault. */
bool faults_set(struct faults *f, const char *text);
