/* SPDX-License-Identifier: MIT
 *
 * Describe the change that an answer "always" makes, and where: the request's permission_suggestions. Source:
 * docs/protocol-facts.md 4.2.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>

/* Append it on one line, such as `allow Bash(make:*) (this session)`; nothing if there is nothing to remember. list:
 * an array, or NULL. */
void always_put(struct buf *b, const json_t *list);
