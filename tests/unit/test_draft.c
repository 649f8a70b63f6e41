/* SPDX-License-Identifier: MIT */
#include "store/draft.h"

#include "base/str.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

/* writev(2) that writes at most so many bytes a call; 0: it fails. */
static size_t most = SIZE_MAX;
static int calls;

ssize_t writev(int fd, const struct iovec *iov, int n) {
	size_t done = 0;
	calls++;
	errno = ENOSPC;
	if (!most) return -1;
	for (int i = 0; i < n && done < most; i++) {
		size_t part = MIN(iov[i].iov_len, most - done);
		ck_assert_int_eq(write(fd, iov[i].iov_base, part), (ssize_t)part);
		done += part;
	}
	return (ssize_t)done;
}

static char *written(const struct draft *d, size_t *n) {
	char *text = malloc(d->len + 1);
	FILE *f = tmpfile();
	ck_assert(f && text);
	ck_assert_int_eq(draft_write(d, fileno(f)), 0);
	ck_assert_int_eq(lseek(fileno(f), 0, SEEK_SET), 0);
	*n = 0;
	for (ssize_t r; (r = read(fileno(f), text + *n, d->len + 1 - *n)) > 0;) *n += (size_t)r;
	ck_assert_uint_eq(*n, d->len);
	text[*n] = 0;
	fclose(f);
	return text;
}

static void is_written_as(const struct draft *d, const char *want) {
	size_t n;
	ck_assert(!d->own.failed);
	char *text = written(d, &n);
	ck_assert_str_eq(text, want);
	free(text);
}

/* The line with its sum, as a reader checks it. */
static char *sealed(const char *line) {
	char seal[DRAFT_SEAL_LEN + 1];
	draft_seal(seal, line, strlen(line));
	return str_printf("%s%s\n", line, seal);
}

START_TEST(test_texts) {
	struct draft d;
	char plain[] = "a \"b\"", broken[] = "\xe9t", *list[] = {plain, broken, NULL};
	draft_init(&d);
	draft_list(&d, list, 2);
	draft_text(&d, NULL);
	ck_assert_str_eq(d.own.data, "[\"a \\\"b\\\"\",{\"hex\":\"e974\"}]null");
	draft_free(&d);
}
END_TEST

START_TEST(test_parts) {
	struct draft d;
	struct draft_part part = {0};
	char *first = sealed("{\"a\":1,\"long\":2,\"b\":3"), *second = sealed("{\"a\":5,\"long\":2");
	_cleanup_free_ char *both = str_printf("%s%s%s", first, second, first);
	draft_init(&d);
	buf_puts(&d.own, "{\"a\":1");
	size_t at = d.own.len;
	buf_puts(&d.own, ",\"long\":2");
	ck_assert(draft_cut(&d, at, &part));
	ck_assert_int_eq(strncmp(part.text, ",\"long\":2", part.n), 0);
	buf_puts(&d.own, ",\"b\":3");
	ck_assert_uint_eq(draft_end_line(&d), strlen(first));
	uint64_t after = part.after;
	buf_puts(&d.own, "{\"a\":5");
	draft_use(&d, &part);
	ck_assert(part.after != after); /* another beginning */
	ck_assert_uint_eq(draft_end_line(&d), strlen(first) + strlen(second));
	buf_puts(&d.own, "{\"a\":1");
	draft_use(&d, &part);
	ck_assert_uint_eq(part.after, after);
	buf_puts(&d.own, ",\"b\":3");
	ck_assert_uint_eq(draft_end_line(&d), strlen(both));
	is_written_as(&d, both);
	draft_free(&d);
	/* The sum is that of before if the beginning is: the bytes are not read for it. */
	part.text[3] = 'L';
	draft_init(&d);
	buf_puts(&d.own, "{\"a\":1");
	draft_use(&d, &part);
	ck_assert_uint_eq(part.after, after);
	draft_free(&d);
	free(part.text);
	free(first);
	free(second);
}
END_TEST

START_TEST(test_repeat) {
	struct draft d;
	char *head = sealed("{\"head\":1"), *line = sealed("{\"x\":2");
	_cleanup_free_ char *all = str_printf("%s%s%s", head, line, head);
	draft_init(&d);
	buf_puts(&d.own, "{\"head\":1");
	size_t n = draft_end_line(&d);
	buf_puts(&d.own, "{\"x\":2");
	draft_end_line(&d);
	draft_repeat(&d, n);
	ck_assert_uint_eq(d.len, strlen(all));
	is_written_as(&d, all);
	ck_assert_uint_eq(d.n, 2); /* the lines are one piece */
	draft_free(&d);
	free(head);
	free(line);
}
END_TEST

/* More pieces than one call takes, and calls that write less than they got. */
START_TEST(test_writing) {
	struct draft_part parts[200] = {0};
	struct draft d;
	struct buf want = BUF_INIT(SIZE_MAX / 4);
	draft_init(&d);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		parts[i].n = i % 7 + 1;
		parts[i].text = malloc(parts[i].n);
		memset(parts[i].text, 'a' + (int)(i % 26), parts[i].n);
		buf_put(&d.own, "01234567", i % 5);
		draft_use(&d, &parts[i]);
		buf_put(&want, "01234567", i % 5);
		buf_put(&want, parts[i].text, parts[i].n);
	}
	static const size_t limits[] = {SIZE_MAX, 1, 2, 3, 5, 64, 257};
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		most = limits[i];
		is_written_as(&d, want.data);
	}
	most = SIZE_MAX;
	calls = 0;
	is_written_as(&d, want.data);
	ck_assert_int_lt(calls, 10);
	most = 0;
	ck_assert_int_eq(draft_write(&d, -1), -1);
	ck_assert_int_eq(errno, ENOSPC);
	most = SIZE_MAX;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) free(parts[i].text);
	buf_free(&want);
	draft_free(&d);
}
END_TEST

RUN_TESTS("draft", test_texts, test_parts, test_repeat, test_writing)
