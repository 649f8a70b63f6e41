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

#include "core/settings.h"
#include "mistakes.h"

/* file NULL: the usual places. NULL where there is a mistake; mistakes (an empty list) then has them all. The caller
 * owns the result and the list. */
struct settings *config_load(const char *file, struct mistakes *mistakes);
