/* SPDX-License-Identifier: MIT
 *
 * The record of a session: its line in the table. Its long parts are kept as text while they do not change, so that a
 * change of the table costs little more than what has changed. A short part is serialized each time.
 */
#pragma once

#include "store/draft.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_KEPT ((size_t)1024) /* bytes of the shortest kept part */

/* The parts of a record that may be long. */
enum record_part { RECORD_LAUNCH, RECORD_GUARDS, RECORD_MEMO, RECORD_PARTS };

struct record;
struct state_session;

/* Return true if the text of this part with this mark is kept (struct state_session): *hash is that of its put. */
bool record_has(const struct record *all, uint64_t id, enum record_part part, uint64_t mark, uint64_t *hash);
/* Append the record of s. all: the kept parts of all sessions, NULL at first. */
void record_put(struct draft *d, struct record **all, const struct state_session *s);
/* Free the parts of sessions without a record_put() since the last call. */
void record_sweep(struct record **all);
void record_free(struct record **all);
