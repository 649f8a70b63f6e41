/* SPDX-License-Identifier: MIT
 *
 * uthash with a hash function that clients cannot predict: keys come from clients, and colliding keys would turn a
 * table into a list. Source: uthash's user guide, "Specifying an alternate key hash function", "Out of memory".
 */
#pragma once

#include "base/log.h"

#include <stddef.h>
#include <stdint.h>

/* SipHash-1-3 (Aumasson, Bernstein), keyed with the random bytes of the process (getauxval(3), AT_RANDOM): values
 * differ between processes and must not be stored. */
unsigned hash_keyed(const void *data, size_t n);
/* Without a key, to distinguish long texts: not for the keys of a table. */
uint64_t hash_text(const char *data, size_t n);
/* Add a value, or a text that may be NULL, to such a hash: the step of FNV-1a, for a whole word. */
static inline uint64_t hash_mix(uint64_t h, uint64_t value) {
	return (h ^ value) * 1099511628211ULL;
}
uint64_t hash_mix_text(uint64_t h, const char *text);

#define HASH_FUNCTION(key, n, value) ((value) = hash_keyed((key), (n)))
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element)                                                                                   \
	do                                                                                                                 \
		if (!hash_may_fail) log_no_memory();                                                                           \
	while (0)
#include <uthash.h>

/* The default for uthash's own HASH_ADD macros: they end the program without memory. */
enum { hash_may_fail = 0 };

/* HASH_ADD_KEYPTR for an optional element: false without memory, and the element is in no table. */
#define HASH_TRY_ADD(hh, head, keyptr, keylen, element)                                                                \
	__extension__({                                                                                                    \
		_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wshadow\"") enum { hash_may_fail = 1 };      \
		_Pragma("GCC diagnostic pop") HASH_ADD_KEYPTR(hh, head, keyptr, keylen, element);                              \
		(element)->hh.tbl != NULL;                                                                                     \
	})

/* Most tables belong to a session and are small; they grow. */
#undef HASH_INITIAL_NUM_BUCKETS
#undef HASH_INITIAL_NUM_BUCKETS_LOG2
#define HASH_INITIAL_NUM_BUCKETS 4U
#define HASH_INITIAL_NUM_BUCKETS_LOG2 2U
