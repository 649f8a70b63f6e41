/* SPDX-License-Identifier: MIT
 *
 * The pace at which a child is read, and the treatment of clients that read more slowly: gap, close, wait (contract 7).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct client;
struct session;

bool pace_may_read(struct session *s);
void pace_watch(struct session *s); /* a client may be far behind */
void pace_blocked(struct client *c, bool blocked);
void pace_overtaken(struct client *c, uint64_t from, uint64_t to);
