/* SPDX-License-Identifier: MIT
 *
 * uthash with a hash function that both compilers take without a warning. Source: uthash's user guide, "Specifying an
 * alternate key hash function", "Out of memory".
 */
#pragma once

#include "base/log.h"

#define HASH_FUNCTION HASH_FNV
#define uthash_fatal(why) log_no_memory()
#include <uthash.h>
