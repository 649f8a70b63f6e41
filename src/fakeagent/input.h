/* SPDX-License-Identifier: MIT
 *
 * Lines on stdin: read, judged as the CLI judges them, handed to control, asks or the queue of prompts. A line that the
 * CLI does not survive ends this program too (PROTOCOL 3). Outside a turn one line is handled at a time, so that the
 * first of several prompts starts its turn and the others find it running.
 */
#pragma once

#include "wire/lines.h"

#include <jansson.h>

struct agent;
struct faults;

struct input {
	int fd;
	bool eof;
	bool ready;      /* lines may be left of what was read */
	long since_read; /* lines handled since the last read */
	bool shared;     /* the unfinished line began in one read with another */
	long lines;      /* handled so far */
	const struct faults *faults;
	struct lines_pool pool;
	struct lines cut;
};

void input_init(struct input *in, int fd, const struct faults *f);
void input_free(struct input *in);
bool input_wants(const struct input *in); /* to be read from */
bool input_ready(const struct input *in);
void input_read(struct input *in);
void input_handle(struct agent *a);
