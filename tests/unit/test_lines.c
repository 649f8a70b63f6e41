/* SPDX-License-Identifier: MIT
 *
 * Framing against a model: any split of the same bytes gives the same lines. memchr() and memrchr() are wrapped by the
 * linker, to count the scanned bytes.
 */
#include "wire/lines.h"

#include "harness.h"

#include <string.h>
#include <sys/mman.h>

/* --- bytes scanned ------------------------------------------------------------------------------------------------ */

static size_t looked_at;

void *__real_memchr(const void *s, int c, size_t n);
void *__wrap_memchr(const void *s, int c, size_t n);
void *__real_memrchr(const void *s, int c, size_t n);
void *__wrap_memrchr(const void *s, int c, size_t n);

void *__wrap_memchr(const void *s, int c, size_t n) {
	char *hit = __real_memchr(s, c, n);
	looked_at += hit ? (size_t)(hit - (const char *)s) + 1 : n;
	return hit;
}

void *__wrap_memrchr(const void *s, int c, size_t n) {
	char *hit = __real_memrchr(s, c, n);
	looked_at += hit ? (size_t)((const char *)s + n - hit) : n;
	return hit;
}

/* --- requests to the kernel --------------------------------------------------------------------------------------- */

static unsigned calls;
static bool refuse; /* mmap fails: there are no rings */

void *__real_mmap(void *p, size_t n, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t off);
int __real_munmap(void *p, size_t n);
int __wrap_munmap(void *p, size_t n);
int __real_madvise(void *p, size_t n, int advice);
int __wrap_madvise(void *p, size_t n, int advice);
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t off) {
	calls++;
	return refuse ? MAP_FAILED : __real_mmap(p, n, prot, flags, fd, off);
}

int __wrap_munmap(void *p, size_t n) {
	calls++;
	return __real_munmap(p, n);
}

int __wrap_madvise(void *p, size_t n, int advice) {
	calls++;
	return __real_madvise(p, n, advice);
}

/* Requests to the heap, which may call the kernel. */
void *__wrap_malloc(size_t n) {
	calls++;
	return __real_malloc(n);
}

/* --- The model ---------------------------------------------------------------------------------------------------- */

struct feed {
	const char *data;
	size_t len, fed; /* given to the reader */
	size_t checked;  /* compared with the output so far */
	size_t max;
	size_t lines, longs;
	struct chunk kept[8]; /* lines held to check that they are not written to later */
	size_t kept_at[8];
};

static void keep(struct feed *f, struct chunk *line) {
	size_t i = f->lines % ARRAY_SIZE(f->kept);
	if (f->kept[i].data)
		REQUIRE(memcmp(f->kept[i].data, f->data + f->kept_at[i], f->kept[i].len) == 0, "a line changed after delivery");
	chunk_drop(&f->kept[i]);
	f->kept[i] = *line;
	f->kept_at[i] = f->checked;
	*line = CHUNK_NONE;
}

static void expect(struct feed *f, enum lines_result r, struct chunk *line, size_t size) {
	const char *from = f->data + f->checked;
	const char *lf = __real_memchr(from, '\n', f->fed - f->checked);
	REQUIRE(lf, "a line came out that is not whole");
	size_t len = (size_t)(lf - from) + 1;
	REQUIRE(r == (len - 1 > f->max ? LINES_LONG : LINES_LINE), "result %d for %zu bytes", (int)r, len);
	if (r == LINES_LONG) {
		REQUIRE(size == len - 1, "size %zu for %zu", size, len - 1);
		REQUIRE(line->len <= LINES_HEAD && line->len <= len && memcmp(line->data, from, line->len) == 0, "wrong head");
		REQUIRE(line->len > 0, "no head");
		chunk_drop(line);
		f->longs++;
	} else {
		REQUIRE(line->len == len && memcmp(line->data, from, len) == 0, "line at %zu differs", f->checked);
		keep(f, line);
		f->lines++;
	}
	f->checked += len;
}

static void drain(struct lines *l, struct feed *f) {
	struct chunk line;
	size_t size;
	enum lines_result r;
	while ((r = lines_next(l, &line, &size)) != LINES_MORE) {
		REQUIRE(r != LINES_OOM, "out of memory");
		expect(f, r, &line, size);
	}
	REQUIRE(!__real_memchr(f->data + f->checked, '\n', f->fed - f->checked), "a whole line did not come out");
	if (!l->skipping) REQUIRE(lines_held(l) == f->fed - f->checked, "held %zu", lines_held(l));
}

/* Read at most n bytes; return the number taken. */
static size_t feed(struct lines *l, struct feed *f, size_t n) {
	size_t room;
	char *space = lines_space(l, &room);
	REQUIRE(space && room >= 4096, "room %zu", room);
	n = MIN(MIN(n, room), f->len - f->fed);
	memcpy(space, f->data + f->fed, n);
	f->fed += n;
	lines_commit(l, n);
	drain(l, f);
	return n;
}

static void finish(struct lines *l, struct feed *f) {
	struct chunk rest;
	size_t size, left = f->len - f->checked;
	REQUIRE(f->fed == f->len, "not all was fed");
	bool cut = lines_cut(l, &size), have = lines_rest(l, &rest);
	REQUIRE(cut == (left > f->max), "cut %d with %zu left", cut, left);
	REQUIRE(!cut || size == left, "cut at %zu of %zu", size, left);
	REQUIRE(have == (left > 0 && !cut), "rest %d with %zu left", have, left);
	if (have) {
		REQUIRE(rest.len == left && memcmp(rest.data, f->data + f->checked, left) == 0, "the rest differs");
		chunk_drop(&rest);
	}
	for (size_t i = 0; i < ARRAY_SIZE(f->kept); i++) {
		if (f->kept[i].data)
			REQUIRE(memcmp(f->kept[i].data, f->data + f->kept_at[i], f->kept[i].len) == 0, "a line changed");
		chunk_drop(&f->kept[i]);
	}
	lines_free(l);
}

static void feed_in_pieces(const char *data, size_t len, size_t max, const size_t *cuts, size_t n) {
	struct lines_pool pool = {0};
	struct lines l;
	struct feed f = {.data = data, .len = len, .max = max};
	lines_init(&l, &pool, max);
	for (size_t i = 0; i <= n; i++) {
		size_t to = i < n ? cuts[i] : len;
		while (f.fed < to) feed(&l, &f, to - f.fed);
	}
	finish(&l, &f);
	lines_pool_free(&pool);
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

static const char *const samples[] = {
	"",
	"\n",
	"\n\n\n",
	"a\n",
	"a\nbc\n\ndef\r\n",
	"0123456789\n",
	"0123456789x\n",
	"0123456789x\nok\n",
	"ok\n0123456789 0123456789 0123456789\nok\n\nok\n",
	"0123456789abc\n0123456789abcd\nx\n0123456789abcdef",
	"no line feed",
	"half",
	"a\rb\x0c\x0b\xe2\x80\xa8\xc2\x85z\n{}\n", /* C49: only a newline ends a line */
	"a\nb\n0123456789abcdefghi",
};

START_TEST(every_split) {
	for (size_t s = 0; s < ARRAY_SIZE(samples); s++) {
		size_t len = strlen(samples[s]);
		for (size_t a = 0; a <= len; a++)
			for (size_t b = a; b <= len; b++)
				for (size_t max = 0; max <= 12; max += 2) feed_in_pieces(samples[s], len, max, (size_t[]){a, b}, 2);
	}
}
END_TEST

START_TEST(byte_by_byte) {
	for (size_t s = 0; s < ARRAY_SIZE(samples); s++) {
		size_t cuts[64], len = strlen(samples[s]);
		for (size_t i = 0; i < len; i++) cuts[i] = i;
		feed_in_pieces(samples[s], len, 10, cuts, len);
	}
}
END_TEST

START_TEST(nul_bytes_are_bytes) {
	feed_in_pieces("a\0b\n\0\nc\0", 8, 100, (size_t[]){2, 5}, 2);
}
END_TEST

/* Lines with lengths around every threshold, in one stream. */
static size_t fill(char *data, size_t cap, uint64_t *seed) {
	static const size_t around[] = {1, 40, 4096, 32768, 65536, 131072, 262144, 300000, 524288, 800000};
	size_t n = 0;
	while (n < cap) {
		size_t len = around[rng_below(seed, rng_below(seed, 3) ? 3 : ARRAY_SIZE(around))];
		len = rng_below(seed, 2) ? rng_below(seed, 2 * len) : len + rng_below(seed, 5) - MIN(len, (size_t)2);
		len = MIN(len, cap - n - 1);
		for (size_t i = 0; i < len; i++) data[n + i] = (char)('a' + (n + i) % 23);
		data[n + len] = '\n';
		n += len + 1;
	}
	return n - rng_below(seed, 2) * rng_below(seed, MIN(n, (size_t)100000)); /* perhaps without the last newline */
}

static size_t piece(uint64_t *seed) {
	static const size_t sizes[] = {1, 100, 4096, 65536, 262144};
	return 1 + rng_below(seed, sizes[rng_below(seed, ARRAY_SIZE(sizes))]);
}

static void random_streams(void) {
	const size_t cap = 4 << 20;
	char *data = malloc(cap);
	REQUIRE(data, "no memory");
	const uint64_t runs = in_valgrind() ? 3 : 24;
	for (uint64_t run = 1; run <= runs; run++) {
		uint64_t seed = run;
		struct lines_pool pool = {0};
		struct lines l;
		struct feed f = {.data = data, .max = run % 3 ? 64 << 20 : 280000};
		f.len = fill(data, cap, &seed);
		lines_init(&l, &pool, f.max);
		looked_at = 0;
		size_t fixed = run % 2 ? piece(&seed) + 4096 : 0;
		while (f.fed < f.len) feed(&l, &f, fixed ? fixed : piece(&seed));
		/* A newline may be scanned twice: as the last one of a read, and as the end of its line. */
		size_t most = f.len + f.lines + f.longs;
		REQUIRE(looked_at <= most, "run %d: %zu bytes looked at, %zu came", (int)run, looked_at, f.len);
		finish(&l, &f);
		lines_pool_free(&pool);
	}
	free(data);
}

START_TEST(big_random_streams) {
	random_streams();
}
END_TEST

START_TEST(big_random_streams_without_rings) {
	refuse = true;
	calls = 0;
	random_streams();
	refuse = false;
	REQUIRE(calls > 0, "no ring was wanted");
}
END_TEST

/* A short line and at least 64 KiB of a long one, in one read. */
START_TEST(short_line_before_a_long_one) {
	size_t len = 300000;
	char *data = malloc(len);
	REQUIRE(data, "no memory");
	for (size_t first = 1; first < 200000; first = first * 3 + 7) {
		memset(data, 'x', len);
		data[first] = data[len - 1] = '\n';
		for (size_t at = first + 1; at < 260000; at += 8191) feed_in_pieces(data, len, len, (size_t[]){at}, 1);
	}
	free(data);
}
END_TEST

START_TEST(readers_share_a_pool) {
	enum { READERS = 3 };
	const size_t cap = 1 << 20;
	struct lines_pool pool = {0};
	struct lines l[READERS];
	struct feed f[READERS] = {0};
	uint64_t seed = 77;
	for (size_t i = 0; i < READERS; i++) {
		char *data = malloc(cap);
		REQUIRE(data, "no memory");
		f[i] = (struct feed){.data = data, .len = fill(data, cap, &seed), .max = i == 1 ? 100000 : cap};
		lines_init(&l[i], &pool, f[i].max);
	}
	for (size_t left = READERS; left;) {
		size_t i = rng_below(&seed, READERS);
		bool before = f[i].fed < f[i].len;
		if (before) feed(&l[i], &f[i], piece(&seed));
		if (before && f[i].fed == f[i].len) left--;
	}
	for (size_t i = 0; i < READERS; i++) {
		finish(&l[i], &f[i]);
		free((void *)(uintptr_t)f[i].data);
	}
	lines_pool_free(&pool);
}
END_TEST

START_TEST(an_idle_reader_holds_nothing) {
	struct lines_pool pool = {0};
	struct lines l;
	struct feed f = {.data = "one\ntwo\n", .len = 8, .max = 100};
	lines_init(&l, &pool, f.max);
	feed(&l, &f, 8);
	REQUIRE(!l.block && !l.ring && !l.partial.block && !l.batch.block, "memory is held between reads");
	REQUIRE(pool.scratch, "the block did not go back to the pool");
	const struct block *scratch = pool.scratch;
	size_t room;
	REQUIRE(lines_space(&l, &room) && l.block == scratch, "the pool's block is not used again");
	lines_commit(&l, 0); /* a read that would block */
	drain(&l, &f);
	REQUIRE(!l.block && pool.scratch == scratch, "the block stayed after an empty read");
	finish(&l, &f);
	lines_pool_free(&pool);
}
END_TEST

START_TEST(space_without_commit) {
	struct lines_pool pool = {0};
	struct lines l;
	struct feed f = {.data = "part and\n", .len = 9, .max = 100};
	size_t room;
	lines_init(&l, &pool, f.max);
	feed(&l, &f, 4);
	REQUIRE(lines_space(&l, &room), "no space");
	drain(&l, &f);
	REQUIRE(lines_space(&l, &room), "no space");
	feed(&l, &f, 5);
	REQUIRE(f.lines == 1, "%zu lines", f.lines);
	finish(&l, &f);
	lines_pool_free(&pool);
}
END_TEST

/* A line of 60,000 bytes, one byte at a time: the work per byte must not grow with the length. */
START_TEST(a_trickle_is_moved_to_a_block_of_its_own) {
	size_t len = 60001;
	char *data = malloc(len);
	REQUIRE(data, "no memory");
	memset(data, 'x', len);
	data[len - 1] = '\n';
	struct lines_pool pool = {0};
	struct lines l;
	struct feed f = {.data = data, .len = len, .max = len};
	lines_init(&l, &pool, len);
	size_t carried = 0;
	while (f.fed < f.len) {
		feed(&l, &f, 1);
		carried = MAX(carried, l.carried);
	}
	REQUIRE(f.lines == 1 && carried < 1 << 19, "%zu bytes were moved", carried);
	finish(&l, &f);
	lines_pool_free(&pool);
	free(data);
}
END_TEST

START_TEST(a_very_long_line_is_skipped_without_being_held) {
	struct lines_pool pool = {0};
	struct lines l;
	size_t room, size, total = 0;
	struct chunk line;
	lines_init(&l, &pool, 1 << 20);
	while (total < (size_t)20 << 20) {
		char *space = lines_space(&l, &room);
		REQUIRE(space, "no memory");
		memset(space, 'y', room);
		total += room;
		lines_commit(&l, room);
		REQUIRE(lines_next(&l, &line, &size) == LINES_MORE, "something came out");
		REQUIRE(lines_held(&l) <= (1 << 20) + LINES_BLOCK, "held %zu", lines_held(&l));
	}
	char *space = lines_space(&l, &room);
	memcpy(space, "y\nok\n", 5);
	lines_commit(&l, 5);
	REQUIRE(lines_next(&l, &line, &size) == LINES_LONG && size == total + 1, "size %zu", size);
	REQUIRE(line.len == LINES_HEAD && line.data[0] == 'y', "no head");
	chunk_drop(&line);
	REQUIRE(lines_next(&l, &line, &size) == LINES_LINE && line.len == 3, "the next line is lost");
	chunk_drop(&line);
	REQUIRE(lines_next(&l, &line, &size) == LINES_MORE, "more came out");
	lines_free(&l);
	lines_pool_free(&pool);
}
END_TEST

/* In a short piece, in a ring, in a block of its own: it is dropped, and the next line comes. */
START_TEST(an_unfinished_line_can_be_given_up) {
	const size_t sizes[] = {1, 1000, (size_t)200 << 10, (size_t)3 << 20};
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct lines_pool pool = {0};
		struct lines l;
		size_t room, size;
		struct chunk line;
		lines_init(&l, &pool, (size_t)8 << 20);
		lines_skip(&l); /* no unfinished line */
		for (size_t fed = 0; fed < sizes[i]; fed += room) {
			char *space = lines_space(&l, &room);
			REQUIRE(space, "no memory");
			room = MIN(room, sizes[i] - fed);
			memset(space, 'x', room);
			lines_commit(&l, room);
			REQUIRE(lines_next(&l, &line, &size) == LINES_MORE, "something came out");
		}
		REQUIRE(lines_held(&l) == sizes[i], "held %zu", lines_held(&l));
		lines_skip(&l);
		lines_skip(&l);
		REQUIRE(lines_held(&l) == 0, "held %zu", lines_held(&l));
		memcpy(lines_space(&l, &room), "yz\nnext\n", 8);
		lines_commit(&l, 8);
		REQUIRE(lines_next(&l, &line, &size) == LINES_LONG && size == sizes[i] + 2, "%zu", size);
		REQUIRE(line.len == MIN(sizes[i], (size_t)LINES_HEAD) && line.data[0] == 'x', "head %zu", line.len);
		chunk_drop(&line);
		REQUIRE(lines_next(&l, &line, &size) == LINES_LINE && memcmp(line.data, "next\n", 5) == 0, "%zu", line.len);
		chunk_drop(&line);
		REQUIRE(lines_next(&l, &line, &size) == LINES_MORE, "something came out");
		lines_free(&l);
		lines_pool_free(&pool);
	}
}
END_TEST

START_TEST(the_head_of_a_long_line_keeps_no_more_than_itself) {
	struct lines_pool pool = {0};
	struct lines l;
	size_t room, size;
	struct chunk line;
	lines_init(&l, &pool, 1000);
	char *space = lines_space(&l, &room);
	memset(space, 'z', 200000);
	space[199999] = '\n';
	lines_commit(&l, 200000);
	REQUIRE(lines_next(&l, &line, &size) == LINES_LONG && size == 199999, "size %zu", size);
	REQUIRE(line.block->cap <= LINES_HEAD, "the head keeps %zu bytes", line.block->cap);
	chunk_drop(&line);
	lines_free(&l);
	lines_pool_free(&pool);
}
END_TEST

START_TEST(short_lines_behind_a_long_one_do_not_keep_it) {
	struct lines_pool pool = {0};
	struct lines l;
	size_t total = 0, room, size;
	struct chunk big, small[3];
	lines_init(&l, &pool, 8 << 20);
	while (total < 3 << 20) {
		char *space = lines_space(&l, &room);
		memset(space, 'b', room);
		total += room;
		lines_commit(&l, room);
		REQUIRE(lines_next(&l, &big, &size) == LINES_MORE, "a line at %zu", total);
	}
	memcpy(lines_space(&l, &room), "end\none\ntwo\nthree\nfo", 20);
	lines_commit(&l, 20);
	REQUIRE(lines_next(&l, &big, &size) == LINES_LINE && big.len == total + 4, "%zu bytes", big.len);
	chunk_drop(&big);
	for (size_t i = 0; i < 3; i++) {
		REQUIRE(lines_next(&l, &small[i], &size) == LINES_LINE, "line %zu is missing", i);
		REQUIRE(small[i].block->cap < 100, "line %zu keeps %zu bytes", i, small[i].block->cap);
	}
	REQUIRE(memcmp(small[2].data, "three\n", 6) == 0 && small[2].len == 6, "not the third line");
	REQUIRE(lines_next(&l, &big, &size) == LINES_MORE && lines_held(&l) == 2, "the rest is lost");
	for (size_t i = 0; i < 3; i++) chunk_drop(&small[i]);
	lines_free(&l);
	lines_pool_free(&pool);
}
END_TEST

/* --- Flow --------------------------------------------------------------------------------------------------------- */

enum { TAPE_LINES = 4096 };

/* Lines kept up to a number of bytes, like a tape. */
struct tape {
	struct chunk lines[TAPE_LINES];
	size_t first, count, bytes, max, total;
};

static void tape_drop(struct tape *t) {
	struct chunk *oldest = &t->lines[t->first++ % TAPE_LINES];
	t->bytes -= oldest->len;
	t->count--;
	chunk_drop(oldest);
}

/* One read without checks; half a line may stay unfinished. */
static void flow(struct lines *l, struct tape *t, const char *data, size_t n) {
	struct chunk line;
	size_t room, size;
	while (n) {
		char *space = lines_space(l, &room);
		REQUIRE(space, "no memory");
		room = MIN(room, n);
		memcpy(space, data, room);
		lines_commit(l, room);
		data += room;
		n -= room;
		while (lines_next(l, &line, &size) == LINES_LINE) {
			while (t->count && (t->bytes + line.len > t->max || t->count == TAPE_LINES)) tape_drop(t);
			t->lines[(t->first + t->count++) % TAPE_LINES] = line;
			t->bytes += line.len;
			t->total++;
		}
		while (t->count && t->bytes + lines_held(l) > t->max) tape_drop(t);
	}
}

/* A mix of lines of up to 1.5 MB, in reads of this size; counting starts after four times the kept bytes. told: the
 * reader knows how many are kept. */
static void steady(size_t read, size_t kept, size_t longest, bool told) {
	struct lines_pool pool = {0};
	struct lines l;
	struct tape *t = calloc(1, sizeof *t);
	size_t cap = kept + kept / 2, at = 0;
	char *data = malloc(cap);
	REQUIRE(data && t, "no memory");
	t->max = kept;
	memset(data, 'x', cap);
	for (size_t i = 0, len = 300; at + len < cap; i++, len = i % 500 == 499 ? longest : i % 50 ? 2000 : 60000) {
		at += len;
		data[at - 1] = '\n';
	}
	lines_init(&l, &pool, 64 << 20);
	if (told) lines_keep(&l, kept);
	for (size_t round = 0; round < 10; round++) {
		if (round == 3) calls = 0;
		for (size_t from = 0; from < at; from += read) flow(&l, t, data + from, MIN(read, at - from));
	}
	REQUIRE(calls == 0, "reads of %zu: %u calls", read, calls);
	REQUIRE(t->bytes > kept - longest - (1 << 19), "the tape holds %zu bytes only", t->bytes);
	while (t->count) tape_drop(t);
	lines_free(&l);
	lines_pool_free(&pool);
	free(data);
	free(t);
}

START_TEST(a_steady_flow_asks_for_nothing) {
	static const size_t reads[] = {700, 50000, 262144};
	for (size_t i = 0; i < ARRAY_SIZE(reads); i++) steady(reads[i], 4 << 20, 1500000, true);
	steady(262144, 16 << 20, 7 << 20, true); /* the tape of the daemon, and long lines that fit */
}
END_TEST

/* As the lines of a client that wait for a child. */
START_TEST(lines_that_live_long_get_a_larger_ring) {
	steady(262144, 6 << 20, 1500000, false);
}
END_TEST

static unsigned told_busy;

static void on_busy(struct lines_pool *pool) {
	(void)pool;
	told_busy++;
}

START_TEST(a_reader_that_rests_loses_its_ring) {
	struct lines_pool pool = {.on_busy = on_busy};
	struct lines l, quiet;
	struct tape *t = calloc(1, sizeof *t);
	char *data = malloc(200000);
	REQUIRE(data && t, "no memory");
	t->max = 1 << 20;
	memset(data, 'x', 200000);
	data[150000] = '\n';
	told_busy = 0;
	lines_init(&l, &pool, 1 << 20);
	lines_init(&quiet, &pool, 1 << 20);
	flow(&quiet, t, "a\nb", 3);
	REQUIRE(!quiet.ring && !told_busy, "a small read is no flow");
	flow(&l, t, data, 200000);
	REQUIRE(l.ring && told_busy == 1, "told %u times", told_busy);
	flow(&l, t, data + 150000, 1);
	REQUIRE(told_busy == 1 && lines_held(&l) == 0, "told %u times", told_busy);
	REQUIRE(lines_pool_trim(&pool, false) && l.ring, "it has just read");
	REQUIRE(!lines_pool_trim(&pool, false) && l.ring, "its lines are in use");
	REQUIRE(!pool.scratch, "the shared block is kept");
	flow(&l, t, data, 200000);
	REQUIRE(told_busy == 2, "told %u times", told_busy);
	while (t->count) tape_drop(t);
	REQUIRE(lines_pool_trim(&pool, true) && l.ring, "an unfinished line is in use");
	flow(&l, t, data + 150000, 1);
	REQUIRE(t->count == 1 && t->bytes == 49999 + 1, "%zu bytes", t->bytes);
	while (t->count) tape_drop(t);
	REQUIRE(lines_pool_trim(&pool, true) && !l.ring, "a ring without lines is kept");
	flow(&quiet, t, "c\n", 2);
	REQUIRE(t->bytes == 3, "%zu bytes", t->bytes);
	while (t->count) tape_drop(t);
	flow(&l, t, data, 200000);
	lines_pool_free(&pool); /* before its readers, in any order */
	REQUIRE(!l.ring && pool.flowing.next, "the pool is gone, a ring is not");
	while (t->count) tape_drop(t);
	lines_free(&l);
	lines_free(&quiet);
	free(data);
	free(t);
}
END_TEST

/* A client's last line may be held and served again: its reader is asked for more then. */
START_TEST(nothing_comes_behind_the_rest) {
	static const size_t sizes[] = {10, 100000, 900000, 3000000};
	struct lines_pool pool = {0};
	char *data = malloc(3000000);
	memset(data, 'x', 3000000);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct lines l;
		struct chunk line, rest;
		size_t room, size;
		lines_init(&l, &pool, 4000000);
		for (size_t fed = 0, n; fed < sizes[i]; fed += n) {
			char *space = lines_space(&l, &room);
			n = MIN(room, sizes[i] - fed);
			memcpy(space, data + fed, n);
			lines_commit(&l, n);
			ck_assert(lines_next(&l, &line, &size) == LINES_MORE);
		}
		REQUIRE(lines_rest(&l, &rest) && rest.len == sizes[i], "%zu bytes", rest.len);
		size_t before = looked_at;
		REQUIRE(lines_next(&l, &line, &size) == LINES_MORE, "a line behind %zu bytes", sizes[i]);
		REQUIRE(looked_at == before, "%zu bytes behind the end were looked at", looked_at - before);
		chunk_drop(&rest);
		lines_free(&l);
	}
	lines_pool_free(&pool);
	free(data);
}
END_TEST

RUN_TESTS("lines", every_split, byte_by_byte, nul_bytes_are_bytes, big_random_streams, big_random_streams_without_rings,
		  short_line_before_a_long_one, readers_share_a_pool, an_idle_reader_holds_nothing, space_without_commit,
		  nothing_comes_behind_the_rest, a_trickle_is_moved_to_a_block_of_its_own, an_unfinished_line_can_be_given_up,
		  a_very_long_line_is_skipped_without_being_held, the_head_of_a_long_line_keeps_no_more_than_itself,
		  short_lines_behind_a_long_one_do_not_keep_it, NOT_IN_VALGRIND(a_steady_flow_asks_for_nothing),
		  NOT_IN_VALGRIND(lines_that_live_long_get_a_larger_ring), NOT_IN_VALGRIND(a_reader_that_rests_loses_its_ring))
