/* SPDX-License-Identifier: MIT
 *
 * Framing: the first bytes say how the rest is cut into reads and how long a line may be; what comes out must be what a
 * plain loop over the whole finds.
 */
#include "base/macros.h"
#include "target.h"
#include "wire/lines.h"

#include <string.h>

struct feed {
	const char *data;
	size_t len, fed, checked, max;
};

static void expect(struct feed *f, enum lines_result r, const struct chunk *line, size_t size) {
	const char *from = f->data + f->checked, *lf = memchr(from, '\n', f->fed - f->checked);
	INSIST(lf);
	size_t len = (size_t)(lf - from) + 1;
	INSIST(r == (len - 1 > f->max ? LINES_LONG : LINES_LINE));
	INSIST(r == LINES_LINE ? line->len == len : size == len - 1 && line->len <= MIN(len, (size_t)LINES_HEAD));
	INSIST(memcmp(line->data, from, line->len) == 0);
	f->checked += len;
}

static void feed(struct lines *l, struct feed *f, size_t n) {
	struct chunk line;
	size_t room, size;
	enum lines_result r;
	char *space = lines_space(l, &room);
	INSIST(space && room >= 4096);
	n = MIN(MIN(n, room), f->len - f->fed);
	memcpy(space, f->data + f->fed, n);
	f->fed += n;
	lines_commit(l, n);
	while ((r = lines_next(l, &line, &size)) != LINES_MORE) {
		INSIST(r != LINES_OOM);
		expect(f, r, &line, size);
		chunk_drop(&line);
	}
	INSIST(!memchr(f->data + f->checked, '\n', f->fed - f->checked));
}

static void finish(struct lines *l, struct feed *f) {
	struct chunk rest;
	size_t size, left = f->len - f->checked;
	bool cut = lines_cut(l, &size), have = lines_rest(l, &rest);
	INSIST(cut == (left > f->max) && (!cut || size == left));
	INSIST(have == (left > 0 && !cut));
	if (have) INSIST(rest.len == left && memcmp(rest.data, f->data + f->checked, left) == 0);
	if (have) chunk_drop(&rest);
}

/* data[0]: the longest line; data[1]: how many times each byte is repeated, to reach the sizes where the reader changes
 * its ways; data[2], data[3]: read sizes, used in turn. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	if (size < 4) return 0;
	static const size_t maxima[] = {0, 1, 10, 100, 5000, 70000, 300000, 1 << 24};
	size_t repeat = data[1] < 128 ? 1 : ((size_t)data[1] - 127) * 64, n = size - 4;
	const size_t reads[] = {((size_t)data[2] + 1) * (repeat > 1 ? 977 : 1),
							((size_t)data[3] + 1) * (repeat > 1 ? 4099 : 1)};
	char *all = malloc(n * repeat + 1);
	if (!all) return 0;
	/* A line feed stands alone, or there would be only empty lines. */
	size_t len = 0;
	for (size_t i = 0; i < n; i++) {
		size_t times = data[4 + i] == '\n' ? 1 : repeat;
		memset(all + len, data[4 + i], times);
		len += times;
	}
	struct lines_pool pool = {0};
	struct lines l;
	struct feed f = {.data = all, .len = len, .max = maxima[data[0] % ARRAY_SIZE(maxima)]};
	lines_init(&l, &pool, f.max);
	for (size_t i = 0; f.fed < f.len; i++) feed(&l, &f, reads[i % 2]);
	finish(&l, &f);
	lines_free(&l);
	lines_pool_free(&pool);
	free(all);
	return 0;
}
