/* SPDX-License-Identifier: MIT
 *
 * A histogram of fixed size for durations in microseconds: eight buckets for each power of two, so that a percentile is
 * at most an eighth too high. Values over HISTOGRAM_MAX are counted as HISTOGRAM_MAX; `longest` is exact.
 * Zero-initialised by its owner; no allocation, no failure. Source: the log-linear buckets of HdrHistogram.
 */
#pragma once

#include <stdint.h>

#define HISTOGRAM_MAX (((uint64_t)1 << 36) - 1) /* 19 hours */
#define HISTOGRAM_BUCKETS 272

struct histogram {
	uint64_t n, longest;
	uint64_t counts[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t value);
/* Return the percentile: `percent` of all values are not greater; 0 if empty. 1 <= percent <= 100. */
uint64_t histogram_percentile(const struct histogram *h, unsigned percent);
