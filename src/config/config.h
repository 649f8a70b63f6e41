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

/* The errand that reads the files first, which may wait, so that config_load() finds them in memory. Whether they are
 * good, that one says. */
#define CONFIG_ERRAND "config"
int config_errand(void);
/* file as for config_load(). Return the place (io/errand.h) where the errand looks; borrowed. */
const char *config_ask(struct buf *request, const char *file);

/* file NULL: the usual places. NULL where there is a mistake; errors (an empty list) then has them all. The caller
 * owns the result and the list. */
struct settings *config_load(const char *file, struct errors *errors);
