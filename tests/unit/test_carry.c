/* SPDX-License-Identifier: MIT */
#include "core/carry.h"

#include "carrying.h"

#include "wire/scan.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>

/* --- one value of each kind --------------------------------------------------------------------------------------- */

enum color { RED, GREEN, BLUE };

struct thing {
	bool flag;
	enum color color;
	uint8_t small;
	int64_t negative;
	uint64_t big;
	unsigned bits : 3;
	char *text, *empty, *none, *name;
	char raw[5];
	struct chunk chunk, no_chunk;
	struct buf buf;
	struct words words, no_words;
	struct names list, no_list;
	bool listed, not_listed;
	struct client *client, *nobody;
	struct attachment *attachment;
	size_t n;
};

static void carry(struct carry *c, void *arg) {
	struct thing *t = arg;
	carry_mark(c, "thing");
	CARRY(c, t->flag);
	CARRY_UPTO(c, t->color, BLUE);
	CARRY(c, t->small);
	CARRY(c, t->negative);
	CARRY(c, t->big);
	CARRY(c, t->bits);
	carry_text(c, &t->text);
	carry_text(c, &t->empty);
	carry_text(c, &t->none);
	carry_name(c, &t->name);
	carry_bytes(c, t->raw, sizeof t->raw);
	carry_chunk(c, &t->chunk);
	carry_chunk(c, &t->no_chunk);
	carry_buf(c, &t->buf);
	carry_words(c, &t->words);
	carry_words(c, &t->no_words);
	carry_set(c, &t->list, &t->listed);
	carry_set(c, &t->no_list, &t->not_listed);
	carry_client(c, &t->client);
	carry_attachment(c, &t->attachment);
	carry_client(c, &t->nobody);
	t->n = carry_count(c, t->n);
	for (size_t i = 0; i < t->n && carry_ok(c); i++) carry_bytes(c, t->raw, 1);
}

static void begin(void *arg) {
	*(struct thing *)arg = (struct thing){.buf = BUF_INIT(20)};
}

static void end(void *arg) {
	struct thing *t = arg;
	free(t->text);
	free(t->empty);
	free(t->none);
	free(t->name);
	chunk_drop(&t->chunk);
	chunk_drop(&t->no_chunk);
	buf_free(&t->buf);
	words_free(&t->words);
	words_free(&t->no_words);
	names_free(&t->list);
	names_free(&t->no_list);
}

static void fill(struct thing *t) {
	begin(t);
	t->flag = true;
	t->color = BLUE;
	t->small = 255;
	t->negative = INT64_MIN;
	t->big = UINT64_MAX;
	t->bits = 7;
	t->text = strdup("text\n\xff");
	t->empty = strdup("");
	t->name = strdup("name");
	memcpy(t->raw, "\0ab\0c", 5);
	t->chunk = chunk_copy("a\0b\n", 4);
	buf_puts(&t->buf, "in a buffer");
	ck_assert(words_add(&t->words, "one") && words_add(&t->words, ""));
	names_add(&t->list, "x", 1);
	names_add(&t->list, "y", 1);
	t->listed = true;
	t->client = PARTY(3);
	t->attachment = PARTY(7);
	t->n = 3;
}

START_TEST(comes_out_as_it_went_in) {
	struct thing a, b;
	struct error error;
	fill(&a);
	struct saved s = carry_save_thing(carry, &a);
	begin(&b);
	ck_assert_msg(carry_load_thing(s, s.len, carry, &b, &error), "%s", error.text);
	ck_assert(b.flag && b.color == BLUE && b.small == 255 && b.negative == INT64_MIN && b.big == UINT64_MAX);
	ck_assert_uint_eq(b.bits, 7);
	ck_assert_str_eq(b.text, a.text);
	ck_assert_str_eq(b.empty, "");
	ck_assert_ptr_null(b.none);
	ck_assert_str_eq(b.name, "name");
	ck_assert_uint_eq(b.chunk.len, 4);
	ck_assert_mem_eq(b.chunk.data, "a\0b\n", 4);
	ck_assert_ptr_null(b.no_chunk.data);
	ck_assert_str_eq(b.buf.data, "in a buffer");
	ck_assert(words_same(&a.words, &b.words) && b.no_words.n == 0);
	ck_assert_uint_eq(names_count(&b.list), 2);
	ck_assert(names_have(&b.list, "y", 1) && b.listed && !b.not_listed);
	ck_assert(b.client == PARTY(3) && b.attachment == PARTY(7) && !b.nobody);
	ck_assert_uint_eq(b.n, 3);
	free(s.data);
	end(&a);
	end(&b);
}
END_TEST

START_TEST(damage_is_noticed) {
	struct thing a, b;
	fill(&a);
	struct saved s = carry_save_thing(carry, &a);
	carry_spoil_thing(s, carry, &b, begin, end);
	free(s.data);
	end(&a);
}
END_TEST

/* --- refused input ------------------------------------------------------------------------------------------------ */

/* A written number, read into a smaller type. */
static uint64_t number;
static struct {
	bool flag;
	uint8_t small;
	int signed_int;
	unsigned bits : 3;
	enum color color;
} into;

static void put_number(struct carry *c, void *arg) {
	(void)arg;
	carry_number(c, &number);
}

#define READER(name, what)                                                                                             \
	static void name(struct carry *c, void *arg) {                                                                     \
		(void)arg;                                                                                                     \
		what;                                                                                                          \
	}
READER(get_flag, CARRY(c, into.flag))
READER(get_small, CARRY(c, into.small))
READER(get_int, CARRY(c, into.signed_int))
READER(get_bits, CARRY(c, into.bits))
READER(get_color, CARRY_UPTO(c, into.color, BLUE))
READER(get_count, carry_count(c, 0))
READER(get_client, struct client *who = NULL; carry_client(c, &who); ck_assert(!who || carry_ok(c)))

static void reads(uint64_t value, void (*reader)(struct carry *, void *), const char *wrong) {
	struct error error;
	number = value;
	struct saved s = carry_save_thing(put_number, NULL);
	bool ok = carry_load_thing(s, s.len, reader, NULL, &error);
	ck_assert_msg(ok == !wrong, "%llu: %s", (unsigned long long)value, error.text);
	if (wrong) ck_assert_msg(strstr(error.text, wrong), "%s does not say: %s", error.text, wrong);
	free(s.data);
}

START_TEST(numbers_must_fit) {
	reads(1, get_flag, NULL);
	reads(2, get_flag, "into.flag does not fit");
	reads(255, get_small, NULL);
	reads(256, get_small, "into.small does not fit");
	reads((uint64_t)-5, get_int, NULL);
	ck_assert_int_eq(into.signed_int, -5);
	reads((uint64_t)INT_MAX + 1, get_int, "does not fit");
	reads(7, get_bits, NULL);
	reads(8, get_bits, "does not fit");
	reads(BLUE, get_color, NULL);
	reads(BLUE + 1, get_color, "out of its range");
	ck_assert_int_eq(into.color, RED);
	reads(UINT64_MAX, get_color, "does not fit");
	ck_assert_int_eq(into.color, RED);
	reads(1000, get_count, "a number of parts is impossible");
	reads(UINT64_MAX, get_count, "a number of parts is impossible");
	reads(0, get_client, NULL);
	reads(PARTIES, get_client, NULL);
	reads(PARTIES + 1, get_client, "connection 9 is missing");
}
END_TEST

static void marks(struct carry *c, void *arg) {
	carry_mark(c, arg);
}

static void bytes(struct carry *c, void *arg) {
	struct span *s = arg;
	struct chunk chunk = {NULL, s->p, s->n};
	carry_chunk(c, &chunk);
}

static void get_text(struct carry *c, void *arg) {
	(void)arg;
	char *text = NULL;
	carry_text(c, &text);
	ck_assert(!text || carry_ok(c));
	free(text);
}

static void get_name(struct carry *c, void *arg) {
	(void)arg;
	char *text = NULL;
	carry_name(c, &text);
	ck_assert_int_eq(text != NULL, carry_ok(c));
	free(text);
}

static void get_buf(struct carry *c, void *arg) {
	(void)arg;
	struct buf b = BUF_INIT(5);
	carry_buf(c, &b);
	buf_free(&b);
}

static void refuses(struct span what, void (*reader)(struct carry *, void *), const char *wrong) {
	struct error error;
	struct saved s = carry_save_thing(bytes, &what);
	bool ok = carry_load_thing(s, s.len, reader, NULL, &error);
	ck_assert_msg(ok == !wrong && (!wrong || strstr(error.text, wrong)), "%s", error.text);
	free(s.data);
}

START_TEST(texts_are_checked) {
	refuses((struct span){"abc", 3}, get_text, NULL);
	refuses((struct span){"a\0c", 3}, get_text, "holds a NUL");
	refuses((struct span){"a\0", 2}, get_name, "holds a NUL");
	refuses(SPAN_NONE, get_text, NULL);
	refuses(SPAN_NONE, get_name, "is missing");
	refuses((struct span){"abcd", 4}, get_buf, NULL);
	refuses((struct span){"abcdefghij", 10}, get_buf, "longer than it may be");
}
END_TEST

START_TEST(marks_say_where) {
	struct error error;
	char one[] = "tape", other[] = "queue";
	struct saved s = carry_save_thing(marks, one);
	ck_assert(carry_load_thing(s, s.len, marks, one, &error));
	ck_assert(!carry_load_thing(s, s.len, marks, other, &error));
	ck_assert_msg(strstr(error.text, "damaged before `queue`"), "%s", error.text);
	free(s.data);
}
END_TEST

static void nothing(struct carry *c, void *arg) {
	(void)c, (void)arg;
}

/* A handmade head; the version is after the first line. */
START_TEST(heads) {
	struct error error;
	struct saved s = carry_save_thing(nothing, NULL);
	ck_assert(carry_load_thing(s, s.len, nothing, NULL, &error));
	char *version = (char *)memchr(s.data, '\n', s.len) + 1;
	uint64_t value;
	memcpy(&value, version, sizeof value);
	ck_assert_uint_eq(value, CARRY_VERSION);
	static const uint64_t versions[] = {CARRY_VERSION - 1, CARRY_VERSION + 1, UINT64_MAX};
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		memcpy(version, &versions[i], sizeof value);
		ck_assert(!carry_load_thing(s, s.len, nothing, NULL, &error));
		ck_assert_msg(strstr(error.text, ", this plenumd reads up to 1"), "%s", error.text);
	}
	value = CARRY_VERSION;
	memcpy(version, &value, sizeof value);
	s.data[0] ^= 1;
	ck_assert(!carry_load_thing(s, s.len, nothing, NULL, &error));
	ck_assert_str_eq(error.text, "this is no state of plenumd");
	free(s.data);
}
END_TEST

START_TEST(nothing_may_be_left_over) {
	struct error error;
	struct saved s = carry_save_thing(nothing, NULL);
	struct saved longer = {calloc(1, s.len + 3), s.len + 3};
	memcpy(longer.data, s.data, s.len);
	ck_assert(!carry_load_thing(longer, longer.len, nothing, NULL, &error));
	ck_assert_msg(strstr(error.text, "3 bytes of the state are left over"), "%s", error.text);
	free(longer.data);
	free(s.data);
}
END_TEST

START_TEST(the_first_error_stays) {
	struct carry c;
	uint64_t value = 7;
	char *text = NULL;
	size_t n = 7;
	carry_begin_load(&c, "x", 1);
	ck_assert_str_eq(c.error.text, "the state ends too early, at byte 0");
	carry_fail(&c, "another");
	ck_assert_str_eq(c.error.text, "the state ends too early, at byte 0");
	carry_number(&c, &value); /* from here every read gives zero */
	carry_text(&c, &text);
	ck_assert(value == 0 && !text && carry_count(&c, 3) == 0 && !carry_borrow(&c, &n) && n == 0);
	carry_free(&c);
	carry_begin_load(&c, "x", 1);
	carry_free(&c);
}
END_TEST

/* --- files -------------------------------------------------------------------------------------------------------- */

START_TEST(a_full_disk_is_told) {
	struct carry c;
	_cleanup_close_ int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	carry_begin_save(&c, fd);
	ck_assert(!carry_end_save(&c));
	ck_assert_msg(strstr(c.error.text, "cannot be written"), "%s", c.error.text);
	carry_free(&c);
}
END_TEST

/* Small numbers, one string larger than the buffer, small numbers. */
static void big(struct carry *c, void *arg) {
	char *text = arg;
	for (size_t i = 0; i < 20; i++) {
		size_t n = i == 10 ? 3000000 : 20000;
		struct chunk chunk = c->saving ? (struct chunk){NULL, text + i, n} : CHUNK_NONE;
		carry_chunk(c, &chunk);
		if (c->saving) continue;
		ck_assert_uint_eq(chunk.len, n);
		ck_assert_int_eq(memcmp(chunk.data, text + i, n), 0);
		chunk_drop(&chunk);
	}
}

START_TEST(much_of_it) {
	struct error error;
	uint64_t seed = 1;
	char *text = malloc(3000100);
	for (size_t i = 0; i < 3000096; i += 8) {
		uint64_t word = rng_next(&seed);
		memcpy(text + i, &word, 8);
	}
	struct saved s = carry_save_thing(big, text);
	ck_assert_msg(carry_load_thing(s, s.len, big, text, &error), "%s", error.text);
	free(s.data);
	free(text);
}
END_TEST

struct descriptor {
	int fd;
	mode_t type;
};

static void descriptor(struct carry *c, void *arg) {
	struct descriptor *d = arg;
	carry_fd(c, &d->fd, d->type);
}

static bool is_taken(int fd, mode_t type) {
	struct descriptor d = {fd, type};
	struct error error;
	struct saved s = carry_save_thing(descriptor, &d);
	d.fd = -7;
	bool ok = carry_load_thing(s, s.len, descriptor, &d, &error);
	ck_assert_int_eq(d.fd, ok ? fd : -1);
	free(s.data);
	return ok;
}

START_TEST(descriptors_are_what_they_were) {
	int p[2], s[2];
	ck_assert_int_eq(pipe(p), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	_cleanup_close_ int file = memfd_create("file", 0);
	ck_assert(is_taken(-1, S_IFSOCK)); /* -1 is none */
	ck_assert(is_taken(p[0], S_IFIFO) && !is_taken(p[0], S_IFSOCK) && is_taken(p[1], 0));
	ck_assert(is_taken(s[0], S_IFSOCK) && !is_taken(s[0], S_IFIFO));
	ck_assert(is_taken(file, S_IFREG) && !is_taken(file, S_IFIFO));
	ck_assert(!is_taken(2, 0));                         /* the standard descriptors are never taken */
	ck_assert_int_eq(fcntl(p[0], F_GETFD), FD_CLOEXEC); /* it has passed an exec */
	close(p[0]);
	ck_assert(!is_taken(p[0], S_IFIFO));
	close(p[1]);
	close(s[0]);
	close(s[1]);
}
END_TEST

START_TEST(saved_descriptors_are_listed) {
	struct carry c;
	_cleanup_close_ int out = memfd_create("state", MFD_CLOEXEC);
	int one = out, none = -1, two = 1;
	carry_begin_save(&c, out);
	carry_fd(&c, &one, 0);
	carry_fd(&c, &none, 0);
	carry_fd(&c, &two, 0);
	ck_assert(carry_end_save(&c));
	ck_assert(c.n_fds == 2 && c.fds[0] == out && c.fds[1] == 1);
	carry_free(&c);
	ck_assert(c.n_fds == 0 && !c.fds);
}
END_TEST

/* The running daemon continues with them. */
START_TEST(a_failed_save_changes_no_descriptor) {
	struct carry c;
	_cleanup_close_ int out = memfd_create("state", MFD_CLOEXEC);
	int before = out, after = 1, none = -1;
	carry_begin_save(&c, out);
	carry_fd(&c, &before, 0);
	carry_fail(&c, "the disk is full");
	carry_fd(&c, &after, 0);
	carry_fd(&c, &none, 0);
	ck_assert(!carry_end_save(&c));
	ck_assert(before == out && after == 1 && none == -1);
	carry_free(&c);
}
END_TEST

/* --- timers and readers ------------------------------------------------------------------------------------------- */

static void timer(struct carry *c, void *arg) {
	carry_timer(c, arg);
}

static void no_fn(void *arg) {
	(void)arg;
}

START_TEST(timers_keep_what_is_left) {
	struct error error;
	struct loop *loop = loop_new();
	struct loop_timer a, b;
	loop_timer_init(&a, loop, no_fn, NULL);
	loop_timer_init(&b, loop, no_fn, NULL);
	struct saved s = carry_save_thing(timer, &a);
	ck_assert(carry_load_thing(s, s.len, timer, &b, &error) && !loop_timer_pending(&b));
	free(s.data);
	loop_timer_set(&a, 500000);
	s = carry_save_thing(timer, &a);
	ck_assert(carry_load_thing(s, s.len, timer, &b, &error));
	int64_t left = loop_timer_left(&b);
	ck_assert_msg(left > 400000 && left < 501000, "%lld", (long long)left); /* libevent uses the wall clock */
	free(s.data);
	loop_timer_stop(&a);
	loop_timer_stop(&b);
	loop_free(loop);
}
END_TEST

static void lines(struct carry *c, void *l) {
	carry_lines(c, l);
}

static void feed(struct lines *l, const char *text, size_t n) {
	size_t room;
	char *to = lines_space(l, &room);
	ck_assert_uint_ge(room, n);
	memcpy(to, text, n);
	lines_commit(l, n);
}

static const char stream[] = "first\nsecond line\n\nmuch longer than a line may be\nlast\nrest";
static const char *const want[] = {"first\n", "second line\n", "\n", NULL, "last\n"};

/* Take up to so many lines, not counting over-long ones. */
static void take_lines(struct lines *l, size_t *n, size_t most) {
	struct chunk line;
	size_t size;
	enum lines_result r = LINES_LONG;
	for (size_t i = 0; i < most || r == LINES_LONG; i++) {
		if ((r = lines_next(l, &line, &size)) == LINES_MORE) return;
		ck_assert_int_eq(r, want[*n] ? LINES_LINE : LINES_LONG);
		if (!want[*n]) ck_assert_uint_eq(size, strlen("much longer than a line may be"));
		if (want[*n]) ck_assert_uint_eq(line.len, strlen(want[*n]));
		if (want[*n]) ck_assert_mem_eq(line.data, want[*n], line.len);
		chunk_drop(&line);
		++*n;
	}
}

/* Take the next line and put it back; an over-long one stays taken. */
static void put_back(struct lines *l, size_t *n) {
	struct chunk line;
	size_t size, held = lines_held(l);
	enum lines_result r = lines_next(l, &line, &size);
	if (r == LINES_LONG) {
		chunk_drop(&line);
		++*n;
	}
	if (r != LINES_LINE) return;
	lines_put_back(l, line);
	ck_assert_uint_ge(lines_held(l), line.len);
	ck_assert_uint_le(lines_held(l), held + line.len);
}

static void go_on_elsewhere(size_t cut, size_t taken, bool flowing, bool back) {
	struct error error;
	struct lines_pool pool = {0};
	struct lines a, b;
	struct chunk line;
	size_t n = 0;
	lines_init(&a, &pool, 12);
	lines_init(&b, &pool, 12);
	if (flowing) a.copied = 1024 * 1024; /* its next read allocates a ring */
	feed(&a, stream, cut);
	take_lines(&a, &n, taken);
	if (back) put_back(&a, &n);
	struct saved s = carry_save_thing(lines, &a);
	ck_assert_msg(carry_load_thing(s, s.len, lines, &b, &error), "%s", error.text);
	take_lines(&b, &n, SIZE_MAX);
	feed(&b, stream + cut, sizeof stream - 1 - cut);
	take_lines(&b, &n, SIZE_MAX);
	ck_assert_uint_eq(n, ARRAY_SIZE(want));
	ck_assert(lines_rest(&b, &line));
	ck_assert_mem_eq(line.data, "rest", 4);
	chunk_drop(&line);
	free(s.data);
	lines_free(&a);
	lines_free(&b);
	lines_pool_free(&pool);
}

/* A reader restored in another process at any byte, and after any line, gives the same lines. */
START_TEST(lines_go_on_in_their_middle) {
	for (size_t cut = 0; cut < sizeof stream; cut++)
		for (size_t taken = 1; taken <= ARRAY_SIZE(want) + 1; taken++)
			for (int kind = 0; kind < 4; kind++) go_on_elsewhere(cut, taken, kind & 1, kind & 2);
}
END_TEST

RUN_TESTS("carry", comes_out_as_it_went_in, damage_is_noticed, numbers_must_fit, texts_are_checked, marks_say_where,
		  heads, nothing_may_be_left_over, the_first_error_stays, a_full_disk_is_told, much_of_it,
		  descriptors_are_what_they_were, saved_descriptors_are_listed, a_failed_save_changes_no_descriptor,
		  timers_keep_what_is_left, lines_go_on_in_their_middle)
