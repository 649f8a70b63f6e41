/* SPDX-License-Identifier: MIT
 *
 * Notices of the daemon in words, for users. All text is escaped by text.h.
 */
#pragma once

#include "base/buf.h"
#include "wire/scan.h"

#include <stdbool.h>

/* Append a notice as a sentence, without a full stop. False: there are no words for this event; b has garbage then. */
bool sentence_put(struct buf *b, const char *event, struct span notice);
/* Append the members of a notice, each as ` key=value`. */
void sentence_put_members(struct buf *b, struct span notice);
