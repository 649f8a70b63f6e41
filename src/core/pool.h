/* SPDX-License-Identifier: MIT
 *
 * The limit of running children, and the memory that they need: the prestarted ones end first, then the least recently
 * used idle ones sleep.
 */
#pragma once

#include "core/router.h"

size_t pool_children(const struct router *r); /* running children, with the prestarted ones */
/* Put the least recently used idle children, but not this one, to sleep while there are too many. Called when a session
 * got a child, or is idle again after a start beyond the limit (all children were at work then). */
void pool_keep_to_limit(struct router *r, const struct session *but);
/* Memory is short: end the prestarted children, or else put the least recently used idle child to sleep. */
void pool_relieve(struct router *r);
