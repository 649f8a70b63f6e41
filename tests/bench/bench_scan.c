/* SPDX-License-Identifier: MIT
 *
 * Compare the scanner, finding the envelope, with jansson, parsing the line, on the same lines in one run: absolute
 * times depend on the machine, the ratio much less. Exit with 1 if a ratio is below contract's target (20 times on
 * short lines, 50 times on long ones).
 */
#include "base/buf.h"
#include "base/fd.h"
#include "dialect/claude/message.h"
#include "dialect/envelope.h"
#include "wire/lines.h"
#include "wire/scan.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define RUN_US 150000

static void put_delta(struct buf *b) {
	buf_puts(b,
			 "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
			 "\"text_delta\",\"text\":\" the next words\"}},\"session_id\":\"0b5c5f9e-6c1a-4f0c-9a51-2f0e7a4c7d11\","
			 "\"parent_tool_use_id\":null,\"uuid\":\"7d1f3c1e-93b0-4c0e-8a55-d2f5c8a1b0c4\"}");
}

/* A tool's output: source code with many quotes, newlines and backslashes. */
static void put_result(struct buf *b, size_t size) {
	buf_puts(b,
			 "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
			 "\"toolu_01\",\"content\":\"");
	while (b->len < size)
		buf_puts(b,
				 "\\tif (strcmp(argv[1], \\\"--version\\\") == 0) {\\n\\t\\tprintf(\\\"%s\\\\n\\\", PLENUM_VERSION);\\n"
				 "\\t\\treturn 0; /* nothing else to do here */\\n\\t}\\n");
	buf_puts(b, "\"}]},\"parent_tool_use_id\":null,\"session_id\":\"0b5c5f9e\",\"uuid\":\"7d1f3c1e\"}");
}

static void put_image(struct buf *b, size_t size) {
	buf_puts(
		b,
		"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"data\":\"");
	while (b->len < size) buf_puts(b, "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk");
	buf_puts(b, "\"}}]},\"uuid\":\"7d1f3c1e\"}");
}

typedef bool job(const struct buf *line);

static bool job_scan(const struct buf *line) {
	struct envelope e;
	return scan_envelope(line->data, line->len, &e) && e.type.p;
}

static bool job_check(const struct buf *line) {
	struct envelope e;
	const char *error;
	size_t at;
	return message_scan(line->data, line->len, &e, &error, &at);
}

static bool job_jansson(const struct buf *line) {
	json_error_t error;
	json_t *root = json_loadb(line->data, line->len, 0, &error);
	bool ok = root != NULL;
	json_decref(root);
	return ok;
}

/* Microseconds for one call, the best of five runs. */
static double time_of(job *run, const struct buf *line) {
	double best = 1e12;
	for (int i = 0; i < 5; i++) {
		int64_t start = now_us(), end;
		size_t calls = 0;
		do {
			for (int k = 0; k < 8; k++, calls++)
				if (!run(line)) exit(2);
			end = now_us();
		} while (end - start < RUN_US / 5);
		best = MIN(best, (double)(end - start) / (double)calls);
	}
	return best;
}

static bool compare(const char *name, const struct buf *line, double want) {
	double scan = time_of(job_scan, line), strict = time_of(job_check, line), parse = time_of(job_jansson, line);
	double ratio = parse / scan, mib = (double)line->len / 1.048576;
	printf("%-16s %8zu bytes  scan %9.3f us %7.0f MiB/s  check %9.3f us %6.0f MiB/s  jansson %10.2f us  ratio %6.1f "
		   "(want %g)\n",
		   name, line->len, scan, mib / scan, strict, mib / strict, parse, ratio, want);
	return ratio >= want;
}

/* Framing: megabytes a second of short lines in reads of 64 KiB. */
static void frame(const struct buf *line) {
	struct lines_pool pool = {0};
	struct lines l;
	struct chunk out;
	size_t room, size, bytes = 0, count = 0;
	lines_init(&l, &pool, 64 << 20);
	int64_t start = now_us();
	while (now_us() - start < RUN_US) {
		char *space = lines_space(&l, &room);
		if (!space) exit(2);
		for (room = MIN(room, (size_t)65536), size = 0; size + line->len + 1 < room; size += line->len + 1) {
			memcpy(space + size, line->data, line->len);
			space[size + line->len] = '\n';
		}
		lines_commit(&l, size);
		bytes += size;
		while (lines_next(&l, &out, &size) == LINES_LINE) {
			count++;
			chunk_drop(&out);
		}
	}
	double us = (double)(now_us() - start);
	printf("%-16s %8zu bytes  %.0f MiB/s, %.3f us a line (with one copy for the pretended read)\n", "framing",
		   line->len, (double)bytes / 1.048576 / us, us / (double)count);
	lines_free(&l);
	lines_pool_free(&pool);
}

int main(void) {
	struct buf delta = BUF_INIT(1 << 20), result = BUF_INIT(1 << 20), image = BUF_INIT(8 << 20);
	put_delta(&delta);
	put_result(&result, 200000);
	put_image(&image, 5000000);
	bool ok = compare("delta", &delta, 20);
	ok &= compare("tool result", &result, 50);
	ok &= compare("image", &image, 50);
	frame(&delta);
	buf_free(&delta);
	buf_free(&result);
	buf_free(&image);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
