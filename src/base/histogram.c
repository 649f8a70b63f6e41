/* SPDX-License-Identifier: MIT */
#include "base/histogram.h"

#include "base/macros.h"

#define STEPS 8 /* buckets of one power of two */

static unsigned bucket_of(uint64_t value) {
	if (value < STEPS) return (unsigned)value;
	unsigned shift = 63 - 3 - (unsigned)__builtin_clzll(value);
	return (shift + 1) * STEPS + (unsigned)(value >> shift) % STEPS;
}

static uint64_t upper_bound(unsigned bucket) {
	if (bucket < STEPS) return bucket;
	unsigned shift = bucket / STEPS - 1;
	return ((uint64_t)(STEPS + bucket % STEPS + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t value) {
	h->n++;
	h->longest = MAX(h->longest, value);
	h->counts[bucket_of(MIN(value, HISTOGRAM_MAX))]++;
}

uint64_t histogram_percentile(const struct histogram *h, unsigned percent) {
	uint64_t above = h->n * (100 - percent) / 100, seen = 0; /* values that may be greater */
	for (unsigned i = HISTOGRAM_BUCKETS; h->n && i > 0; i--) {
		seen += h->counts[i - 1];
		if (seen > above) return MIN(upper_bound(i - 1), h->longest);
	}
	return 0;
}
