/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include "speech.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void die(const char *format, ...) {
	va_list args;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

int64_t now_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void write_all(int fd, const char *p, size_t n) {
	while (n) {
		ssize_t done = write(fd, p, n);
		if (done < 0 && errno == EINTR) continue;
		if (done < 0) die("write: %s", strerror(errno));
		p += done;
		n -= (size_t)done;
	}
}

long number(const char *text) {
	char *end;
	long n = text ? strtol(text, &end, 10) : -1;
	if (!text || end == text || *end || n < 0) die("%s is no number", text ? text : "nothing");
	return n;
}

/* --- the data ----------------------------------------------------------------------------------------------------- */

struct data map_file(const char *path) {
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) die("%s: %s", path, strerror(errno));
	size_t n = (size_t)st.st_size;
	void *p = mmap(NULL, n, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (p == MAP_FAILED) die("%s: %s", path, strerror(errno));
	close(fd);
	return (struct data){p, n};
}

#define DELTA_SIZE 255

/* Begin a line; return its length so far. */
static size_t put_head(FILE *f, const struct frame *frame, size_t number) {
	char text[512];
	size_t n = expand_number(text, sizeof text, frame->head, (int64_t)number);
	fputs(text, f);
	return n;
}

static void put_tail(FILE *f, const struct frame *frame, size_t number) {
	char text[512];
	expand_number(text, sizeof text, frame->tail, (int64_t)number);
	fputs(text, f);
}

static void put_delta(FILE *f, size_t number) {
	static const char words[] = " the next words of an answer";
	char tail[512];
	size_t n = put_head(f, &speech->delta, number) +
			   expand_number(tail, sizeof tail, speech->delta.tail, (int64_t)number);
	for (size_t i = 0; n < DELTA_SIZE; i++, n++) fputc(words[i % (sizeof words - 1)], f);
	fputs(tail, f);
}

static void put_text(FILE *f, size_t number, size_t size) {
	put_head(f, &speech->text, number);
	for (size_t n = 0; n < size; n += 64)
		fputs("A sentence of an answer, with \\\"quotes\\\", as long as 64 bytes.\\n", f);
	put_tail(f, &speech->text, number);
}

#define RESULT_PIECE 86 /* bytes of the text below */

/* Source code with many quotes, tabs and backslashes. */
static void put_result(FILE *f, size_t number, size_t size) {
	put_head(f, &speech->big, number);
	for (size_t n = 0; n < size; n += RESULT_PIECE)
		fputs("\\tif (strcmp(argv[1], \\\"--version\\\") == 0) {\\n\\t\\tprintf(\\\"%s\\\\n\\\", VERSION);\\n\\t}  \\n",
			  f);
	put_tail(f, &speech->big, number);
}

#define TURN_SIZE 430000 /* of the lines of one round */

static size_t put_turn(FILE *f, size_t number) {
	for (int i = 0; i < 75; i++) {
		for (int k = 0; k < 3; k++) put_delta(f, number++);
		put_text(f, number++, 2048);
	}
	for (int k = 0; k < 12; k++) put_delta(f, number++);
	put_result(f, number++, 200000);
	return number;
}

static FILE *begin_file(const char *path) {
	FILE *f = fopen(path, "we");
	if (!f) die("%s: %s", path, strerror(errno));
	return f;
}

static void end_file(FILE *f, const char *path) {
	if (speech->ends_mix) fputs(speech->result, f);
	if (fclose(f) != 0) die("%s: %s", path, strerror(errno));
}

void make_mix(const char *path, size_t size) {
	size_t big = size / 4 < 5000000 ? size / 4 : 5000000;
	size_t turns = (size - big) / TURN_SIZE + 1, n = 0;
	FILE *f = begin_file(path);
	for (size_t i = 0; i < turns; i++) {
		n = put_turn(f, n);
		if (i == turns / 2) put_result(f, n++, big);
	}
	end_file(f, path);
}

void make_deltas(const char *path, size_t size) {
	FILE *f = begin_file(path);
	for (size_t i = 0; i < size / DELTA_SIZE; i++) put_delta(f, i);
	end_file(f, path);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static bool fill(struct reader *r) {
	if (r->start) memmove(r->data, r->data + r->start, r->end - r->start);
	r->end -= r->start;
	r->start = 0;
	if (r->cap - r->end < 65536) {
		r->cap = r->cap ? r->cap * 2 : 262144;
		r->data = realloc(r->data, r->cap);
		if (!r->data) die("out of memory");
	}
	ssize_t n;
	while ((n = read(r->fd, r->data + r->end, r->cap - r->end)) < 0 && errno == EINTR) {}
	if (n < 0) die("read: %s", strerror(errno));
	r->end += (size_t)n;
	return n > 0;
}

const char *read_line(struct reader *r, size_t *n) {
	size_t seen = 0;
	for (;;) {
		const char *from = r->data + r->start;
		const char *lf = r->end - r->start > seen ? memchr(from + seen, '\n', r->end - r->start - seen) : NULL;
		if (lf) {
			*n = (size_t)(lf - from) + 1;
			r->start += *n;
			return from;
		}
		seen = r->end - r->start;
		if (!fill(r)) return NULL;
	}
}

bool has(const char *line, size_t n, const char *text) {
	return memmem(line, n, text, strlen(text)) != NULL;
}

static const char *behind_key(const char *line, size_t n, const char *key) {
	char text[64];
	int len = snprintf(text, sizeof text, "\"%s\":", key);
	const char *at = memmem(line, n, text, (size_t)len);
	return at ? at + len : NULL;
}

const char *token_member(const char *line, size_t n, const char *key, size_t *len) {
	const char *at = behind_key(line, n, key), *end = line + n;
	if (!at) return NULL;
	const char *p = at + 1;
	if (*at == '"')
		p = memchr(p, '"', (size_t)(end - p));
	else
		while (p < end && !strchr(",}", *p)) p++;
	if (!p || p == end) return NULL;
	*len = (size_t)(p - at) + (*at == '"');
	return at;
}

int64_t number_member(const char *line, size_t n, const char *key) {
	const char *at = behind_key(line, n, key);
	return at ? strtoll(at, NULL, 10) : -1; /* the newline ends it */
}

void stamp_line(char line[LINE_SIZE + 1], const struct frame *frame, int64_t n, int64_t t, int64_t in) {
	size_t tail = strlen(frame->tail);
	int len = snprintf(line, LINE_SIZE, "%s\"n\":%" PRId64 ",\"t\":%" PRId64 ",\"in\":%" PRId64 ",\"pad\":\"",
					   frame->head, n, t, in);
	memset(line + len, '.', (size_t)(LINE_SIZE - len));
	memcpy(line + LINE_SIZE - tail, frame->tail, tail + 1);
}

void write_samples(const char *path, const int64_t *ns, size_t n) {
	FILE *f = fopen(path, "we");
	if (!f) die("%s: %s", path, strerror(errno));
	for (size_t i = 0; i < n; i++) fprintf(f, "%" PRId64 "\n", ns[i]);
	if (fclose(f) != 0) die("%s: %s", path, strerror(errno));
}

/* --- matching ----------------------------------------------------------------------------------------------------- */

static void keep_strange(struct match *m, const char *p, size_t n) {
	if (m->n_strange + n > m->cap_strange) {
		m->cap_strange = (m->n_strange + n) * 2;
		m->strange = realloc(m->strange, m->cap_strange);
		if (!m->strange) die("out of memory");
	}
	if (n) memcpy(m->strange + m->n_strange, p, n);
	m->n_strange += n;
}

/* Take bytes of a foreign line; return how many. */
static size_t take_strange(struct match *m, const char *p, size_t n) {
	const char *lf = memchr(p, '\n', n);
	size_t used = lf ? (size_t)(lf - p) + 1 : n;
	keep_strange(m, p, used);
	if (!lf) return used;
	m->stranger(m->arg, m->strange, m->n_strange);
	m->n_strange = 0;
	m->in_strange = false;
	return used;
}

/* The line that differs from the data is a foreign one; unmatch its bytes taken for data. */
static size_t turn_strange(struct match *m, const char *p, size_t n) {
	size_t same = 0, left = m->want.n - m->pos;
	while (same < n && same < left && p[same] == m->want.p[m->pos + same]) same++;
	size_t at = m->pos + same;
	const char *lf = at ? memrchr(m->want.p, '\n', at) : NULL;
	m->pos = lf ? (size_t)(lf - m->want.p) + 1 : 0;
	keep_strange(m, m->want.p + m->pos, at - m->pos);
	m->in_strange = true;
	return same;
}

void match_feed(struct match *m, const char *p, size_t n) {
	while (n) {
		size_t left = m->want.n - m->pos, used = n < left ? n : left;
		if (m->in_strange)
			used = take_strange(m, p, n);
		else if (used && memcmp(p, m->want.p + m->pos, used) == 0)
			m->pos += used;
		else
			used = turn_strange(m, p, n);
		p += used;
		n -= used;
	}
}
