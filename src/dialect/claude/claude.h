/* SPDX-License-Identifier: MIT
 *
 * The stream-json dialect of Claude Code. Sources: docs/protocol-facts.md 2, 3, 4.
 */
#pragma once

#include "dialect/dialect.h"

/* A line of the child names at most this many prompts of its turn: the first ones and the last (measured: 2.1.332). */
#define CLAUDE_NAMES_MAX 64

extern const struct dialect claude_dialect;
extern const struct dialect_tools claude_tools; /* tools.c */
extern const struct dialect_calls claude_calls; /* calls.c */
extern const struct dialect_hooks claude_hooks; /* hooks.c */
