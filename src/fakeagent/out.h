/* SPDX-License-Identifier: MIT
 *
 * Lines on stdout. Nothing here blocks: what the pipe does not take waits in memory, without a limit, as in the CLI
 * (PROTOCOL 6.3). A reader that has gone away is no reason to end.
 */
#pragma once

#include "fakeagent/faults.h"

struct out {
	int fd;
	bool gone; /* nobody reads any more, or it was closed by a fault */
	struct buf wait;
	size_t off; /* bytes of wait that are written */
	long lines; /* printed so far */
	const struct faults *faults;
};

void out_init(struct out *o, int fd, const struct faults *f);
void out_free(struct out *o);
void out_json(struct out *o, json_t *frame);              /* takes the frame */
void out_line(struct out *o, const char *line, size_t n); /* adds the LF */
void out_flush(struct out *o);                            /* as much as the pipe takes */
void out_drain(struct out *o);                            /* all of it, waiting */
bool out_waits(const struct out *o);
