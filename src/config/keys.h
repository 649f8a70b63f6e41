/* SPDX-License-Identifier: MIT
 *
 * The keys of the configuration, by section, and the conversion of their values. plenum.conf(5) lists them.
 */
#pragma once

#include "base/buf.h"
#include "config/errors.h"
#include "core/settings.h"

enum keys_section { KEYS_DAEMON, KEYS_LIMITS, KEYS_PROFILE };

struct key;

const struct key *keys_find(enum keys_section section, const char *name, size_t n); /* NULL: no such key */
void keys_list(enum keys_section section, struct buf *out);                         /* names, separated by commas */

/* Parse the text into the key's place in base (struct settings, for [profile NAME] struct profile). False: an invalid
 * text; base is unchanged, and each error was reported. */
bool keys_set(const struct key *key, void *base, const char *text, struct place at, struct errors *errors);
