/* SPDX-License-Identifier: MIT
 *
 * The configuration: INI files, parsed and checked as a whole into a new struct settings; the current one is never
 * changed. plenum.conf(5) lists the keys. Every error is reported, with file and line.
 *
 * Files, each optional unless named by --config, later ones win: plenum.conf and then plenum.conf.d/ *.conf (in byte
 * order) in /etc/plenum, the same in $XDG_CONFIG_HOME/plenum. With --config FILE: only FILE and plenum.conf.d/ *.conf
 * beside it.
 */
#pragma once

#include "base/buf.h"
#include "config/errors.h"
#include "core/settings.h"

/* Read the files, and find the programs of the built-in profiles. May block. file: of --config; NULL: the default
 * places. */
void config_read(struct buf *out, const char *file);
/* Parse the output of config_read(). NULL after an error; errors (an empty list) then has all of them. The caller owns
 * the result and the list. */
struct settings *config_load(const struct buf *text, struct errors *errors);

/* The errand that answers with the output of config_read(). */
#define CONFIG_ERRAND "config"
#define CONFIG_MAX ((size_t)8 * 1024 * 1024) /* bytes of its answer */
int config_errand(void);
/* Return the place (io/errand.h) read by the errand; the caller frees; NULL without memory. */
char *config_ask(struct buf *request, const char *file);
