/* SPDX-License-Identifier: MIT
 *
 * uthash with a hash function whose values a client cannot foresee: keys come from clients, and keys chosen to collide
 * would turn a table into a list. Source: uthash's user guide, "Specifying an alternate key hash function", "Out of
 * memory".
 */
#pragma once

#include "base/log.h"

#include <stddef.h>

/* SipHash-1-3 (Aumasson, Bernstein), keyed with the random bytes that the kernel gives each process (getauxval(3),
 * AT_RANDOM): values differ from process to process and must not be kept. */
unsigned hash_keyed(const void *data, size_t n);

#define HASH_FUNCTION(key, n, value) ((value) = hash_keyed((key), (n)))
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element)                                                                                   \
	do                                                                                                                 \
		if (!hash_may_fail) log_no_memory();                                                                           \
	while (0)
#include <uthash.h>

/* What uthash's own HASH_ADD macros find: without memory they end the program. */
enum { hash_may_fail = 0 };

/* HASH_ADD_KEYPTR for an element that the caller can do without: false without memory, and it is in no table. */
#define HASH_TRY_ADD(hh, head, keyptr, keylen, element)                                                                \
	__extension__({                                                                                                    \
		_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wshadow\"") enum { hash_may_fail = 1 };      \
		_Pragma("GCC diagnostic pop") HASH_ADD_KEYPTR(hh, head, keyptr, keylen, element);                              \
		(element)->hh.tbl != NULL;                                                                                     \
	})

/* Most tables are a session's and have few entries; they grow. */
#undef HASH_INITIAL_NUM_BUCKETS
#undef HASH_INITIAL_NUM_BUCKETS_LOG2
#define HASH_INITIAL_NUM_BUCKETS 4U
#define HASH_INITIAL_NUM_BUCKETS_LOG2 2U
