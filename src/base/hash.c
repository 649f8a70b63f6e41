/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

struct sip {
	uint64_t a, b, c, d;
};

static uint64_t rotate(uint64_t x, unsigned by) {
	return x << by | x >> (64 - by);
}

static void turn(struct sip *s) {
	s->a += s->b, s->b = rotate(s->b, 13) ^ s->a, s->a = rotate(s->a, 32);
	s->c += s->d, s->d = rotate(s->d, 16) ^ s->c;
	s->a += s->d, s->d = rotate(s->d, 21) ^ s->a;
	s->c += s->b, s->b = rotate(s->b, 17) ^ s->c, s->c = rotate(s->c, 32);
}

static void absorb(struct sip *s, uint64_t word) {
	s->d ^= word;
	turn(s);
	s->a ^= word;
}

static void take_key(uint64_t key[2]) {
	const void *random = (const void *)getauxval(AT_RANDOM); /* NOLINT(performance-no-int-to-ptr) */
	if (random) memcpy(key, random, 2 * sizeof *key);
}

unsigned hash_keyed(const void *data, size_t n) {
	const unsigned char *p = data;
	uint64_t key[2] = {0}, word, last = (uint64_t)n << 56;
	take_key(key);
	struct sip s = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
					key[1] ^ 0x7465646279746573};
	for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
		memcpy(&word, p, sizeof word);
		absorb(&s, word);
	}
	for (size_t i = 0; i < n; i++) last |= (uint64_t)p[i] << 8 * i;
	absorb(&s, last);
	s.c ^= 0xff;
	for (int i = 0; i < 3; i++) turn(&s);
	uint64_t h = s.a ^ s.b ^ s.c ^ s.d;
	return (unsigned)(h ^ h >> 32);
}
