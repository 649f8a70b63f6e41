/* SPDX-License-Identifier: MIT
 *
 * uthash with a hash function that both compilers take without a warning. Source: uthash's user guide, "Specifying an
 * alternate key hash function".
 */
#pragma once

#define HASH_FUNCTION HASH_FNV
#include <uthash.h>
