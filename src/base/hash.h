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

/* Most tables are a session's and have few entries; they grow. */
#undef HASH_INITIAL_NUM_BUCKETS
#undef HASH_INITIAL_NUM_BUCKETS_LOG2
#define HASH_INITIAL_NUM_BUCKETS 4U
#define HASH_INITIAL_NUM_BUCKETS_LOG2 2U
