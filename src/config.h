/* SPDX-License-Identifier: MIT
 *
 * The configuration: INI files through inih, read and checked as a whole into a new struct settings; the running one is
 * never touched. plenum.conf(5) lists the keys. Errors carry file and line.
 *
 * Files, each optional unless named by --config, later ones win: plenum.conf and then plenum.conf.d/ *.conf (in byte
 * order) in /etc/plenum, the same in $XDG_CONFIG_HOME/plenum. With --config FILE: only FILE and plenum.conf.d/ *.conf
 * beside it.
 */
#pragma once

#include "core/settings.h"

#define CONFIG_ERROR_MAX 512

/* file NULL: the usual places. NULL on failure; error[0..CONFIG_ERROR_MAX) then says "FILE:LINE: what, and what to
 * write instead". The caller owns the result. */
struct settings *config_load(const char *file, char *error);
