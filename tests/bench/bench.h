/* SPDX-License-Identifier: MIT
 *
 * Shared by both sides of a measurement: the played child (feeder.c) and the clients (sink.c). They use none of the
 * daemon's code, so that an error there does not affect its own measurement. Every fatal error ends the program with
 * status 1 and a message on stderr. Times are monotonic nanoseconds, comparable between processes of one machine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define LINE_SIZE 300 /* of a line with a measured latency, including its newline */

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
int64_t now_ns(void);
void write_all(int fd, const char *p, size_t n);
long number(const char *text);

/* The expected stream, one file that both sides map. */
struct data {
	const char *p;
	size_t n;
};

struct data map_file(const char *path);
/* Write about `size` bytes of mixed lines: many deltas of 255 bytes, some messages of 2 KB, few tool results of 200 KB,
 * one line of 5 MB (less if that is more than a quarter of it), a result at the end if that is the same each time. */
void make_mix(const char *path, size_t size);
/* Write about `size` bytes of deltas, and the same result. */
void make_deltas(const char *path, size_t size);

/* Whole lines from a blocking descriptor. */
struct reader {
	int fd;
	char *data;
	size_t start, end, cap;
};

/* Return the next line with its newline, valid until the next call; NULL at the end of input. */
const char *read_line(struct reader *r, size_t *n);

bool has(const char *line, size_t n, const char *text);
/* Return the string or number after "key":, as it is there; NULL if missing. */
const char *token_member(const char *line, size_t n, const char *key, size_t *len);
/* Return the number after "key":, or -1 if missing. */
int64_t number_member(const char *line, size_t n, const char *key);

/* A stream to compare with the data, byte for byte; whole foreign lines are allowed between its lines. */
struct match {
	struct data want;
	size_t pos;
	char *strange; /* the foreign line received so far */
	size_t n_strange, cap_strange;
	bool in_strange;
	/* Called for each such line (with its newline); may die(). */
	void (*stranger)(void *arg, const char *line, size_t n);
	void *arg;
};

void match_feed(struct match *m, const char *p, size_t n);

static inline bool match_done(const struct match *m) {
	return m->pos == m->want.n;
}

struct frame; /* speech.h */

/* A latency line, exactly LINE_SIZE bytes: the frame's head, "n":..,"t":..,"in":..,"pad":"... and its tail. */
void stamp_line(char line[LINE_SIZE + 1], const struct frame *frame, int64_t n, int64_t t, int64_t in);

/* Write samples, one per line, for the driver to sort. */
void write_samples(const char *path, const int64_t *ns, size_t n);
