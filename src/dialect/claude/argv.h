/* SPDX-License-Identifier: MIT
 *
 * The command line of Claude Code. Source: protocol-facts 1.
 */
#pragma once

#include "dialect/dialect.h"

/* The functions of struct dialect with these names. */
void argv_read_claim(const struct words *w, struct dialect_claim *claim);
void argv_read_resume(const char *id, struct dialect_claim *claim);
bool argv_skips_word(const struct words *w, size_t *i, char **rest);
bool argv_add_flags(struct words *out, bool no_asks);
