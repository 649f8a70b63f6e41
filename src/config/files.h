/* SPDX-License-Identifier: MIT
 *
 * The configuration files as read: their texts with data of the file system, as one block of bytes that an errand can
 * pass on. Nothing is parsed here.
 */
#pragma once

#include "base/buf.h"

#include <sys/types.h>

struct file {
	const char *path;
	int error;  /* errno of the failed read; 0: success */
	bool named; /* by --config */
	mode_t mode;
	uid_t uid;
	const char *text;
	size_t n;
};

#define FILES_SYSTEM "/etc/plenum"

/* Append all existing files, in order. file: the one named by --config; NULL: the default places. May block. */
void files_read(struct buf *out, const char *file);
/* Get the next file of such a block; it points into the block. False: no further file. */
bool files_next(const char **at, const char *end, struct file *f);
