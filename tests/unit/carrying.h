/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of modules whose state an upgrade restores: serialize an object to memory and restore it into
 * another, also from truncated and damaged bytes. Parties (clients, attachments) are the elements of one array,
 * numbered from 1.
 */
#pragma once

#include "core/carry.h"
#include "harness.h"

#include <string.h>
#include <sys/mman.h>

#define PARTIES 8

static char party[PARTIES];
/* One of them, for a pointer of any type; never dereferenced. */
#define PARTY(i) ((void *)&party[i])
#define NO_SESSION ((struct session *)PARTY(0))

static uint64_t party_number(const void *who) {
	return (uint64_t)((const char *)who - party) + 1;
}

static void *party_of(void *arg, uint64_t number) {
	(void)arg;
	return number >= 1 && number <= PARTIES ? &party[number - 1] : NULL;
}

static uint64_t party_client_number(const struct client *c) {
	return party_number(c);
}

static uint64_t party_attachment_number(const struct attachment *a) {
	return party_number(a);
}

static struct client *party_client(void *arg, uint64_t number) {
	return party_of(arg, number);
}

static struct attachment *party_attachment(void *arg, uint64_t number) {
	return party_of(arg, number);
}

static const struct carry_world party_world = {party_client_number, party_attachment_number, party_client,
											   party_attachment, NULL};

struct saved {
	char *data; /* exactly len bytes, so that the sanitizers detect a read past the end */
	size_t len;
};

static inline struct saved carry_save_thing(void (*fn)(struct carry *, void *), void *thing) {
	struct carry c;
	_cleanup_close_ int fd = memfd_create("state", MFD_CLOEXEC);
	carry_begin_save(&c, fd);
	c.world = &party_world;
	fn(&c, thing);
	ck_assert_msg(carry_end_save(&c), "%s", c.error.text);
	carry_free(&c);
	struct saved s = {.len = (size_t)lseek(fd, 0, SEEK_END)};
	s.data = malloc(s.len);
	ck_assert_int_eq(pread(fd, s.data, s.len, 0), (ssize_t)s.len);
	return s;
}

/* Restore from the first n bytes. True: all of them were read, without an error; else error has the reason. */
static inline bool carry_load_thing(struct saved s, size_t n, void (*fn)(struct carry *, void *), void *thing,
									struct error *error) {
	struct carry c;
	_cleanup_free_ char *data = malloc(n ? n : 1);
	memcpy(data, s.data, n);
	carry_begin_load(&c, data, n);
	c.world = &party_world;
	if (carry_ok(&c)) fn(&c, thing);
	bool ok = carry_end_load(&c);
	*error = c.error;
	ck_assert_int_eq(ok, !error->text[0]);
	carry_free(&c);
	return ok;
}

/* Truncated data is detected, and damaged data does no harm. begin() makes an empty object to restore into, end() frees
 * its content. */
static inline void carry_spoil_thing(struct saved s, void (*fn)(struct carry *, void *), void *thing,
									 void (*begin)(void *), void (*end)(void *)) {
	struct error error;
	uint64_t seed = 1;
	for (size_t n = 0; n < s.len; n++) {
		begin(thing);
		REQUIRE(!carry_load_thing(s, n, fn, thing, &error), "%zu of %zu bytes are taken", n, s.len);
		end(thing);
	}
	for (int i = 0; i < 3000; i++) {
		struct saved damaged = {malloc(s.len), s.len};
		memcpy(damaged.data, s.data, s.len);
		for (size_t k = rng_below(&seed, 3) + 1; k; k--)
			damaged.data[rng_below(&seed, s.len)] ^= 1 << rng_below(&seed, 8);
		begin(thing);
		(void)carry_load_thing(damaged, s.len, fn, thing, &error);
		end(thing);
		free(damaged.data);
	}
}
