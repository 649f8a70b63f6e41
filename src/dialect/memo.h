/* SPDX-License-Identifier: MIT
 *
 * What a dialect must remember of a session: JSON values under short names that only the dialect knows. The session
 * keeps them, in memory, over an upgrade and in the table on disk. Values may hold secrets (the environment of an MCP
 * server).
 */
#pragma once

#include "base/buf.h"
#include "wire/scan.h"

#include <stdint.h>

#define MEMO_KEPT ((size_t)1024 * 1024) /* bytes of the longest value */

struct memo_value {
	struct memo_value *next;
	char *json;  /* behind the name */
	char name[]; /* many sessions have several: one allocation each */
};

struct memo {
	struct memo_value *first; /* in the order of their first use */
	uint64_t version;         /* counts changes of the values for the disk */
};

/* The first letter of the name of a value that is not kept on disk. */
#define MEMO_BRIEF '~'

/* Keep a copy of the value; SPAN_NONE, one that is not valid JSON, and one that is too long remove it. */
void memo_set(struct memo *m, const char *name, struct span json);
struct span memo_get(const struct memo *m, const char *name); /* SPAN_NONE: there is none */
void memo_free(struct memo *m);
/* Return it as one JSON object, without the brief values unless `all`; NULL: there is nothing, or no memory. The caller
 * frees. */
char *memo_text(const struct memo *m, bool all);
void memo_restore(struct memo *m, const char *text); /* NULL: nothing; damaged values are left out */
