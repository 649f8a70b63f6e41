/* SPDX-License-Identifier: MIT
 *
 * The configuration files as they were read: their texts with what the file system says of them, as one block of bytes
 * that an errand can pass on. Nothing is parsed here.
 */
#pragma once

#include "base/buf.h"

#include <sys/types.h>

struct file {
	const char *path;
	int error;  /* errno: why it could not be read; 0: it was */
	bool named; /* by --config */
	mode_t mode;
	uid_t uid;
	const char *text;
	size_t n;
};

#define FILES_SYSTEM "/etc/plenum"

/* Appends all files that are there, in order. file: the one that --config names; NULL: the usual places. May wait. */
void files_read(struct buf *out, const char *file);
/* The next file of such a block; it points into the block. False: no further one. */
bool files_next(const char **at, const char *end, struct file *f);
