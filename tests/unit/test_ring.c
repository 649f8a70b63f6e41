/* SPDX-License-Identifier: MIT
 *
 * A ring against a model: in any order and for any time, no line changes while it is referenced. The calls that request
 * memory from the kernel are wrapped by the linker, to count them.
 */
#include "wire/ring.h"

#include "harness.h"

#include <sys/mman.h>

#define SIZE ((size_t)1024 * 1024)
#define PIECE ((size_t)64 * 1024)
#define HELD 4096 /* lines that a model can hold */

/* --- requests to the kernel --------------------------------------------------------------------------------------- */

static unsigned calls;

void *__real_mmap(void *p, size_t n, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t off);
int __real_munmap(void *p, size_t n);
int __wrap_munmap(void *p, size_t n);
int __real_madvise(void *p, size_t n, int advice);
int __wrap_madvise(void *p, size_t n, int advice);

void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t off) {
	calls++;
	return __real_mmap(p, n, prot, flags, fd, off);
}

int __wrap_munmap(void *p, size_t n) {
	calls++;
	return __real_munmap(p, n);
}

int __wrap_madvise(void *p, size_t n, int advice) {
	calls++;
	return __real_madvise(p, n, advice);
}

/* --- The model ---------------------------------------------------------------------------------------------------- */

struct model {
	struct ring *ring;
	size_t held;    /* unfinished bytes, filled with `next` */
	uint8_t next;   /* the fill byte of the next line */
	size_t skipped; /* times that lines were in the way */
	struct chunk lines[HELD];
	uint8_t fills[HELD];
	size_t first, count, bytes; /* the lines, oldest first; their bytes */
};

static bool is_filled(const char *p, size_t n, uint8_t c) {
	return n == 0 || ((uint8_t)p[0] == c && memcmp(p, p + 1, n - 1) == 0);
}

static void check_line(const struct model *m, size_t i) {
	const struct chunk *c = &m->lines[i % HELD];
	REQUIRE(is_filled(c->data, c->len, m->fills[i % HELD]), "line %zu of %zu bytes changed", i, c->len);
}

static void drop_line(struct model *m, size_t i) {
	check_line(m, i);
	m->bytes -= m->lines[i % HELD].len;
	chunk_drop(&m->lines[i % HELD]);
}

static void drop_oldest(struct model *m) {
	if (m->lines[m->first % HELD].data) drop_line(m, m->first);
	m->first++;
	m->count--;
}

/* Append to the unfinished bytes; false: no room. */
static bool fill(struct model *m, size_t n) {
	size_t room = ring_room(m->ring, m->held, n);
	if (room < n) {
		if (!ring_skip(m->ring, m->held, n)) return false;
		m->skipped++;
		room = ring_room(m->ring, m->held, n);
	}
	REQUIRE(room >= n, "%zu bytes are free, not %zu", room, n);
	memset(ring_data(m->ring) + m->held, m->next, n);
	m->held += n;
	return true;
}

static void take(struct model *m) {
	size_t i = (m->first + m->count++) % HELD;
	REQUIRE(m->count <= HELD, "too many lines for the test");
	REQUIRE(is_filled(ring_data(m->ring), m->held, m->next), "unfinished bytes changed");
	m->lines[i] = ring_take(m->ring, m->held);
	m->fills[i] = m->next++;
	m->bytes += m->held;
	m->held = 0;
}

static void finish(struct model *m) {
	while (m->count) drop_oldest(m);
	REQUIRE(ring_unused(m->ring), "a line is left");
	ring_close(m->ring);
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

START_TEST(a_steady_flow_asks_for_nothing) {
	struct model m = {.ring = ring_new(SIZE)};
	uint64_t seed = 1;
	calls = 0;
	for (size_t total = 0, len; total < 40 * SIZE; total += len) {
		len = 1 + rng_below(&seed, rng_below(&seed, 4) ? 1000 : 200000);
		while (m.bytes + len + 3 * PIECE > SIZE) drop_oldest(&m);
		REQUIRE(fill(&m, len), "no room for %zu bytes beside %zu", len, m.bytes);
		take(&m);
	}
	REQUIRE(calls == 0 && m.skipped == 0, "%u calls, %zu skips", calls, m.skipped);
	finish(&m);
	REQUIRE(calls > 0, "nothing was counted");
}
END_TEST

START_TEST(a_line_in_the_way_is_gone_round) {
	struct model m = {.ring = ring_new(SIZE)};
	calls = 0;
	fill(&m, 60000);
	take(&m);
	struct chunk kept = chunk_view(m.lines[0], 59000, 100);
	uint8_t with = m.fills[0];
	for (size_t i = 0; i < 200; i++) {
		drop_oldest(&m);
		REQUIRE(fill(&m, 30000) && fill(&m, 30000), "no room for line %zu", i);
		take(&m);
		REQUIRE(is_filled(kept.data, kept.len, with), "it changed");
	}
	REQUIRE(calls == 0 && m.skipped >= 5, "%u calls, %zu skips", calls, m.skipped);
	chunk_drop(&kept);
	finish(&m);
}
END_TEST

START_TEST(what_is_held_is_in_the_way_everywhere) {
	struct model m = {.ring = ring_new(SIZE)};
	while (fill(&m, PIECE / 2)) take(&m);
	REQUIRE(m.bytes >= SIZE, "%zu bytes only", m.bytes);
	drop_line(&m, m.first + 5); /* half a piece */
	REQUIRE(!fill(&m, PIECE / 2), "a piece with a line is used");
	drop_line(&m, m.first + 4);
	REQUIRE(fill(&m, PIECE / 2), "a free piece is not used");
	finish(&m);
}
END_TEST

START_TEST(memory_goes_back) {
	struct model m = {.ring = ring_new(SIZE)};
	char *at[6];
	for (size_t i = 0; i < 6; i++) {
		m.next = (uint8_t)(i + 1);
		at[i] = ring_data(m.ring);
		fill(&m, PIECE);
		take(&m);
	}
	drop_line(&m, 1);
	drop_line(&m, 4);
	m.next = 'u';
	fill(&m, PIECE + 10); /* unfinished */
	ring_trim(m.ring, m.held);
	REQUIRE(is_filled(at[1], PIECE, 0) && is_filled(at[4], PIECE, 0), "free pieces hold memory");
	for (size_t i = 0; i < 6; i++)
		if (m.lines[i].data) check_line(&m, i);
	take(&m);
	ring_close(m.ring);
	drop_line(&m, 2);
	REQUIRE(is_filled(at[2], PIECE, 0), "a closed ring keeps memory");
	REQUIRE(is_filled(at[3], PIECE, 4), "a line is lost");
	while (m.count) { /* the last one frees the ring */
		if (m.lines[m.first % HELD].data) drop_line(&m, m.first);
		m.first++;
		m.count--;
	}
}
END_TEST

START_TEST(memory_of_a_long_line_goes_back) {
	struct model m = {.ring = ring_new(SIZE)};
	char *at = ring_data(m.ring);
	for (size_t round = 0; round < 3; round++) {
		fill(&m, 4 * PIECE); /* in the second round, into the room freed in the first */
		take(&m);
		fill(&m, SIZE + PIECE - 4 * PIECE);
		take(&m);
		while (m.count) drop_oldest(&m);
		ring_trim(m.ring, 0);
		REQUIRE(is_filled(at, SIZE + PIECE, 0), "memory is kept in round %zu", round);
	}
	finish(&m);
}
END_TEST

START_TEST(memory_that_was_skipped_to_goes_back) {
	struct model m = {.ring = ring_new(SIZE)};
	char *at = ring_data(m.ring);
	for (size_t i = 0; i < SIZE / PIECE - 1; i++) {
		fill(&m, PIECE);
		take(&m);
	}
	fill(&m, 2 * PIECE);
	for (size_t i = 4; i < 10; i++) drop_line(&m, i);
	ring_trim(m.ring, m.held);
	REQUIRE(fill(&m, 3 * PIECE) && m.skipped == 1, "no way round");
	take(&m);
	while (m.count) drop_oldest(&m);
	ring_trim(m.ring, 0);
	REQUIRE(is_filled(at, SIZE + PIECE, 0), "memory is kept");
	finish(&m);
}
END_TEST

/* Lines of all lengths, held for all times, with occasional trims. */
static void random_run(uint64_t seed, bool hold_long) {
	struct model m = {.ring = ring_new(SIZE)};
	for (size_t i = 0; i < 8000; i++) {
		size_t n = 1 + rng_below(&seed, rng_below(&seed, 3) ? 3000 : 3 * PIECE);
		while (m.count == HELD || m.bytes > SIZE / 2) drop_oldest(&m);
		while (!fill(&m, n)) {
			if (!m.count) {
				take(&m); /* longer than the ring */
				drop_oldest(&m);
			} else {
				drop_oldest(&m);
			}
		}
		if (m.held > SIZE / 3 || rng_below(&seed, 3)) take(&m);
		for (size_t k = rng_below(&seed, hold_long ? 2 : 4); k && m.count; k--) {
			size_t which = m.first + rng_below(&seed, m.count);
			if (m.lines[which % HELD].data) drop_line(&m, which);
		}
		if (rng_below(&seed, 200) == 0) ring_trim(m.ring, m.held);
	}
	if (m.held) take(&m);
	ring_close(m.ring);
	while (m.count) {
		size_t which = m.first + rng_below(&seed, m.count);
		if (m.lines[which % HELD].data) drop_line(&m, which);
		for (size_t i = 0; i < m.count; i += 97) check_line(&m, m.first + i);
		while (m.count && !m.lines[m.first % HELD].data) m.first++, m.count--;
	}
}

START_TEST(no_line_changes_while_it_is_held) {
	for (uint64_t seed = 1; seed <= 6; seed++) random_run(seed, seed % 2);
}
END_TEST

START_TEST(sizes_that_no_memory_has) {
	ck_assert_ptr_null(ring_new(SIZE_MAX));
	ck_assert_ptr_null(ring_new(SIZE_MAX / 16));
	ring_close(NULL);
	struct ring *large = ring_new((size_t)1 << 32);
	ck_assert_ptr_nonnull(large);
	ck_assert_uint_ge(ring_room(large, 0, 1 << 20), 1 << 20);
	ring_close(large);
}
END_TEST

RUN_TESTS("ring", NOT_IN_VALGRIND(a_steady_flow_asks_for_nothing), NOT_IN_VALGRIND(a_line_in_the_way_is_gone_round),
		  NOT_IN_VALGRIND(what_is_held_is_in_the_way_everywhere), NOT_IN_VALGRIND(memory_goes_back),
		  NOT_IN_VALGRIND(memory_of_a_long_line_goes_back), NOT_IN_VALGRIND(memory_that_was_skipped_to_goes_back),
		  NOT_IN_VALGRIND(no_line_changes_while_it_is_held), NOT_IN_VALGRIND(sizes_that_no_memory_has))
