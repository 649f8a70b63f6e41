/* SPDX-License-Identifier: MIT */
#include "core/queue.h"

#include "carrying.h"

#include "base/fd.h"
#include "wire/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static void put(struct queue *q, const char *line) {
	ck_assert(queue_put(q, chunk_copy(line, strlen(line))));
}

static bool put_charged(struct queue *q, const char *line, struct share *payer) {
	struct rope one = rope_of(chunk_copy(line, strlen(line)));
	return queue_put_charged(q, &one, payer);
}

START_TEST(an_empty_queue_takes_any_line) {
	struct queue q;
	queue_init(&q, 10);
	ck_assert(queue_has_room(&q, 0));
	ck_assert(queue_has_room(&q, 11));
	ck_assert(queue_has_room(&q, SIZE_MAX));
	put(&q, "1234567\n");
	ck_assert(queue_has_room(&q, 2));
	ck_assert(!queue_has_room(&q, 3));
	ck_assert(!queue_has_room(&q, SIZE_MAX));
	put(&q, "the daemon's own lines are taken all the same\n");
	ck_assert(!queue_has_room(&q, 0));
	ck_assert_uint_eq(q.count, 2);
	ck_assert_uint_eq(q.bytes, 54);
	queue_free(&q);
	ck_assert(queue_has_room(&q, 11));
	ck_assert_uint_eq(q.bytes, 0);
}
END_TEST

/* Write a queue of lines and read everything at the other end. */
static void writes(struct queue *q, const char *want) {
	char have[1000] = "";
	int s[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s), 0);
	ck_assert_int_eq(queue_write(q, s[1]), 0);
	ck_assert_int_eq(read(s[0], have, sizeof have - 1), (ssize_t)strlen(want));
	ck_assert_str_eq(have, want);
	ck_assert_uint_eq(q->count, 0);
	ck_assert_uint_eq(q->bytes, 0);
	close(s[0]);
	close(s[1]);
}

START_TEST(lines_are_counted) {
	struct queue q;
	queue_init(&q, SIZE_MAX);
	for (size_t i = 0; i < LIMITS_STDIN_LINES; i++) {
		ck_assert(queue_has_room(&q, 3));
		put(&q, "{}\n");
	}
	ck_assert(!queue_has_room(&q, 3));
	for (size_t i = 0; i < LIMITS_STDIN_LINES; i++) put(&q, "{}\n"); /* the daemon's own */
	ck_assert(!queue_is_flooded(&q));
	put(&q, "{}\n");
	ck_assert(queue_is_flooded(&q));
	queue_free(&q);
	ck_assert(!queue_is_flooded(&q));
	queue_init(&q, 4);
	q.bytes = (64 << 20) + 4;
	ck_assert(!queue_is_flooded(&q));
	q.bytes++;
	ck_assert(queue_is_flooded(&q));
}
END_TEST

/* A line longer than all else that may wait: the child may have to write before it reads it. */
START_TEST(one_long_line_is_no_flood) {
	struct queue q;
	size_t n = (64 << 20) + 100;
	char *text = calloc(n, 1);
	struct chunk line = chunk_copy(text, n);
	queue_init(&q, 50);
	put(&q, "{}\n");
	ck_assert(queue_put(&q, chunk_ref(line)));
	ck_assert(queue_is_flooded(&q));
	queue_free(&q);
	ck_assert(queue_put(&q, line));
	ck_assert(!queue_is_flooded(&q));
	q.sent = 60; /* as queue_write() leaves it */
	q.bytes -= 60;
	ck_assert(!queue_is_flooded(&q));
	queue_free(&q);
	free(text);
}
END_TEST

START_TEST(a_line_can_come_first) {
	struct queue q;
	queue_init(&q, 1000);
	ck_assert(queue_put_first(&q, CHUNK_STATIC("c\n")));
	put(&q, "d\n");
	ck_assert(queue_put_first(&q, CHUNK_STATIC("b\n")));
	ck_assert(queue_put_first(&q, CHUNK_STATIC("a\n")));
	ck_assert_uint_eq(q.bytes, 8);
	writes(&q, "a\nb\nc\nd\n");
	for (int i = 0; i < 20; i++) ck_assert(queue_put_first(&q, CHUNK_STATIC("x")));
	put(&q, "y");
	writes(&q, "xxxxxxxxxxxxxxxxxxxxy");
	queue_free(&q);
}
END_TEST

START_TEST(gives_references_back) {
	struct chunk line = chunk_copy("line\n", 5);
	struct queue q;
	queue_init(&q, 1000);
	for (int i = 0; i < 3; i++) ck_assert(queue_put(&q, chunk_ref(line)));
	ck_assert_uint_eq(line.block->refs, 4);
	writes(&q, "line\nline\nline\n");
	ck_assert_uint_eq(line.block->refs, 1);
	ck_assert(queue_put(&q, chunk_ref(line)));
	queue_free(&q);
	ck_assert_uint_eq(line.block->refs, 1);
	chunk_drop(&line);
}
END_TEST

START_TEST(a_closed_socket_is_told_without_a_signal) {
	int s[2];
	struct queue q;
	signal(SIGPIPE, SIG_DFL);
	queue_init(&q, 1000);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s), 0);
	put(&q, "x\n");
	ck_assert_int_eq(queue_write(&q, s[1]), 0);
	close(s[0]);
	ck_assert_int_eq(queue_write(&q, s[1]), 0); /* nothing to write is not an error */
	put(&q, "y\n");
	ck_assert_int_eq(queue_write(&q, s[1]), -1);
	ck_assert(errno == EPIPE || errno == ECONNRESET);
	ck_assert_uint_eq(q.count, 1);
	close(s[1]);
	queue_free(&q);
}
END_TEST

/* --- a socket with little room ------------------------------------------------------------------------------------ */

static void carry(struct carry *c, void *q) {
	queue_carry(c, q);
}

/* Continue with another queue, as after an upgrade. */
static void move(struct queue *q) {
	struct error error;
	struct saved s = carry_save_thing(carry, q);
	struct queue other;
	queue_init(&other, q->max);
	ck_assert_msg(carry_load_thing(s, s.len, carry, &other, &error), "%s", error.text);
	ck_assert_uint_eq(other.bytes, q->bytes);
	ck_assert_uint_le(other.count, q->count); /* a line is in one piece */
	queue_free(q);
	*q = other;
	free(s.data);
}

struct stream {
	char *want;
	size_t put, got; /* bytes put in, bytes read */
	int ends[2];
};

/* A line of n bytes, in some pieces. */
static void put_some(struct stream *s, struct queue *q, size_t n, uint64_t *seed) {
	struct rope line = {.len = n};
	s->want = realloc(s->want, s->put + n);
	for (size_t i = 0; i < n; i++) s->want[s->put + i] = (char)('a' + (s->put + i) % 23);
	for (size_t at = 0, len; at < n; at += len) {
		len = line.n + 1 < ROPE_PARTS && rng_below(seed, 2) ? 1 + rng_below(seed, n - at) : n - at;
		line.parts[line.n++] = chunk_copy(s->want + s->put + at, len);
	}
	ck_assert(queue_put_charged(q, &line, NULL));
	ck_assert_uint_eq(line.n, 0);
	s->put += n;
}

static void read_some(struct stream *s, size_t n) {
	char data[8192];
	ssize_t r = read(s->ends[0], data, MIN(n, sizeof data));
	if (r < 0) return;
	ck_assert_uint_le(s->got + (size_t)r, s->put);
	REQUIRE(memcmp(data, s->want + s->got, (size_t)r) == 0, "at byte %zu", s->got);
	s->got += (size_t)r;
}

/* sent is always less than the first line, and the charge equals the unwritten bytes. */
static void check(const struct queue *q, size_t taken, const struct stream *s) {
	size_t len = 0;
	for (size_t i = 0; i < q->count; i++) {
		const struct queue_item *it = &q->ring[(q->first + i) & (q->cap - 1)];
		len += it->piece.len;
		if (!it->goes_on) break;
	}
	ck_assert_uint_eq(q->bytes, s->put - taken);
	ck_assert(q->count ? q->sent < len : q->sent == 0);
}

static size_t unread(const struct stream *s) {
	int n = 0;
	ck_assert_int_eq(ioctl(s->ends[0], FIONREAD, &n), 0);
	return (size_t)n;
}

START_TEST(nothing_is_lost_or_doubled_in_a_full_socket) {
	uint64_t seed = 7;
	struct stream s = {0};
	struct queue q;
	queue_init(&q, 1 << 20);
	int room = 4096;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s.ends), 0);
	ck_assert_int_eq(setsockopt(s.ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
	for (int i = 0; i < 3000; i++) {
		if (rng_below(&seed, 3)) put_some(&s, &q, 1 + rng_below(&seed, rng_below(&seed, 20) ? 100 : 9000), &seed);
		if (rng_below(&seed, 2)) {
			int r = queue_write(&q, s.ends[1]);
			ck_assert_int_eq(r, q.count ? 1 : 0);
		}
		if (rng_below(&seed, 2)) read_some(&s, rng_below(&seed, 3000));
		check(&q, s.got + unread(&s), &s);
		if (rng_below(&seed, 100) == 0) move(&q);
	}
	while (queue_write(&q, s.ends[1]) == 1 || s.got < s.put) read_some(&s, sizeof(char[8192]));
	ck_assert_uint_eq(q.bytes, 0);
	close(s.ends[0]);
	close(s.ends[1]);
	free(s.want);
	queue_free(&q);
}
END_TEST

static void begin(void *q) {
	queue_init(q, 100);
}

static void end(void *q) {
	queue_free(q);
}

START_TEST(damage_is_noticed) {
	struct queue a, b;
	queue_init(&a, 100);
	put(&a, "first\n");
	put(&a, "second\n");
	a.sent = 3;
	a.bytes -= 3;
	struct saved s = carry_save_thing(carry, &a);
	carry_spoil_thing(s, carry, &b, begin, end);
	free(s.data);
	struct error error;
	a.sent = 6; /* the whole line: it would be gone */
	s = carry_save_thing(carry, &a);
	queue_init(&b, 100);
	ck_assert(!carry_load_thing(s, s.len, carry, &b, &error));
	ck_assert_msg(strstr(error.text, "more of a line was sent"), "%s", error.text);
	free(s.data);
	queue_free(&a);
	queue_free(&b);
}
END_TEST

/* From the put until all of it was written or dropped. */
START_TEST(a_line_in_pieces_is_replaced) {
	struct queue q;
	struct chunk line;
	struct rope rope = {.n = 3, .len = 7, .parts = {chunk_copy("ab", 2), chunk_copy("cd", 2), chunk_copy("ef\n", 3)}};
	queue_init(&q, 100);
	ck_assert(queue_put_charged(&q, &rope, NULL));
	ck_assert(queue_put(&q, chunk_copy("x\n", 2)));
	ck_assert_uint_eq(queue_line(&q, 0, &line), 3);
	ck_assert(line.len == 7 && memcmp(line.data, "abcdef\n", 7) == 0);
	chunk_drop(&line);
	queue_replace(&q, 0, chunk_copy("new\n", 4));
	ck_assert(q.count == 2 && q.bytes == 6);
	ck_assert_uint_eq(queue_line(&q, 1, &line), 1);
	ck_assert(line.len == 2 && memcmp(line.data, "x\n", 2) == 0);
	chunk_drop(&line);
	queue_free(&q);
}
END_TEST

START_TEST(a_line_is_charged_while_it_waits) {
	struct shares all;
	struct queue later, q;
	int fds[2];
	shares_init(&all, 1000);
	struct share *s = share_take(&all, 1001, SHARE_SESSIONS, 1);
	queue_init(&later, 100);
	queue_init(&q, 100);
	ck_assert(put_charged(&later, "12345\n", s));
	put(&later, "nobody's\n");
	ck_assert(put_charged(&later, "123\n", s));
	ck_assert_uint_eq(s->held[SHARE_BYTES], 10);
	ck_assert(queue_move(&q, &later));
	ck_assert_uint_eq(later.count, 0);
	ck_assert_uint_eq(q.count, 3);
	ck_assert_uint_eq(s->held[SHARE_BYTES], 10);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ck_assert_int_eq(queue_write(&q, fds[0]), 0);
	ck_assert_uint_eq(s->held[SHARE_BYTES], 0);
	close(fds[0]);
	close(fds[1]);
	ck_assert(put_charged(&q, "123\n", s));
	share_give(s, SHARE_SESSIONS, 1); /* only the charge keeps it */
	queue_replace(&q, 0, chunk_copy("another\n", 8));
	ck_assert_uint_eq(s->held[SHARE_BYTES], 8);
	ck_assert_uint_eq(q.bytes, 8);
	struct chunk line;
	ck_assert_uint_eq(queue_line(&q, 0, &line), 1);
	ck_assert_mem_eq(line.data, "another\n", 8);
	chunk_drop(&line);
	queue_free(&q);
	ck_assert_ptr_null(all.by_uid);
}
END_TEST

RUN_TESTS("queue", an_empty_queue_takes_any_line, lines_are_counted, one_long_line_is_no_flood,
		  a_line_in_pieces_is_replaced, a_line_is_charged_while_it_waits, a_line_can_come_first, gives_references_back,
		  a_closed_socket_is_told_without_a_signal, nothing_is_lost_or_doubled_in_a_full_socket, damage_is_noticed)
