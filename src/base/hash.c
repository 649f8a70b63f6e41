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

unsigned hash_keyed(const void *data, size_t n) {
	const unsigned char *p = data;
	uint64_t key[2] = {0}, word, last = (uint64_t)n << 56;
	const void *random = (const void *)getauxval(AT_RANDOM); /* NOLINT(performance-no-int-to-ptr) */
	if (random) memcpy(key, random, sizeof key);
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

uint64_t hash_text(const char *data, size_t n) {
	/* FNV-1a, eight bytes a step and four steps at a time, which do not wait for each other: prompts with images are
	 * long */
	uint64_t h[4] = {1469598103934665603ULL, 1, 2, 3}, words[4], all = 0;
	for (; n >= sizeof words; data += sizeof words, n -= sizeof words) {
		memcpy(words, data, sizeof words);
		for (size_t i = 0; i < ARRAY_SIZE(h); i++) {
			h[i] = hash_mix(h[i], words[i]);
			h[i] ^= h[i] >> 32;
		}
	}
	for (size_t i = 0; i < n; i++) h[0] = hash_mix(h[0], (unsigned char)data[i]);
	for (size_t i = 0; i < ARRAY_SIZE(h); i++) all = hash_mix(all, h[i]);
	return all ^ all >> 32;
}

uint64_t hash_mix_text(uint64_t h, const char *text) {
	return hash_mix(h, text ? hash_text(text, strlen(text)) : 1);
}
