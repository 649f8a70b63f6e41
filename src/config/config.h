/* SPDX-License-Identifier: MIT
 *
 * The configuration: INI files, read and checked as a whole into a new struct settings; the running one is never
 * touched. plenum.conf(5) lists the keys. Every mistake is told, with file and line.
 *
 * Files, each optional unless named by --config, later ones win: plenum.conf and then plenum.conf.d/ *.conf (in byte
 * order) in /etc/plenum, the same in $XDG_CONFIG_HOME/plenum. With --config FILE: only FILE and plenum.conf.d/ *.conf
 * beside it.
 */
#pragma once

#include "base/buf.h"
#include "config/errors.h"
#include "core/settings.h"

/* Reads the files, and looks for the programs on which the built-in profiles depend. May wait. file: of --config; NULL:
 * the usual places. */
void config_read(struct buf *out, const char *file);
/* Of what was read. NULL where there is a mistake; errors (an empty list) then has them all. The caller owns the result
 * and the list. */
struct settings *config_load(const struct buf *text, struct errors *errors);

/* The errand whose answer is what config_read() has. */
#define CONFIG_ERRAND "config"
#define CONFIG_MAX ((size_t)8 * 1024 * 1024) /* bytes of its answer */
int config_errand(void);
/* Return the place (io/errand.h) where the errand looks; the caller frees; NULL without memory. */
char *config_ask(struct buf *request, const char *file);
