/* SPDX-License-Identifier: MIT
 *
 * The played child of a measurement, in C for speed: the time is spent in the program between it and the clients. It
 * answers `initialize`, as the daemon requires, and begins at the first `user` line.
 *
 *   feeder make FILE BYTES        writes the mixed lines
 *   feeder relay FILE [USERS]     prints FILE after each USERS `user` lines (default 1)
 *   feeder drain FILE             must read FILE; reports its position every 4 MB, and `result` at its end
 *   feeder echo                   answers each bench_ping
 *   feeder ask COUNT SAMPLES      after a `user` line: asks for a permission COUNT times, writes the times
 *   feeder pace BURST COUNT US    after a `user` line: BURST lines at once, then COUNT lines, one every US microseconds
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ACK_EVERY ((size_t)4 << 20)

static void say_result(void) {
	static const char text[] = "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\"}\n";
	write_all(1, text, sizeof text - 1);
}

static void answer_initialize(const char *line, size_t n) {
	char text[256];
	size_t len;
	const char *id = member(line, n, "request_id", &len);
	if (!id || !has(line, n, "\"initialize\"")) return;
	int size = snprintf(text, sizeof text,
						"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"%.*s\","
						"\"response\":{\"commands\":[]}}}\n",
						(int)len, id);
	write_all(1, text, (size_t)size);
}

static bool is_control(const char *line, size_t n) {
	return has(line, n < 64 ? n : 64, "\"control_request\"");
}

/* Return true at a `user` line, false at the end of input. */
static bool wait_user(struct reader *r) {
	const char *line;
	size_t n;
	while ((line = read_line(r, &n)) != NULL) {
		if (is_control(line, n))
			answer_initialize(line, n);
		else if (has(line, n, "\"type\":\"user\""))
			return true;
	}
	return false;
}

static int relay(const char *path, long users) {
	struct data d = map_file(path);
	struct reader r = {0};
	for (long i = 1; wait_user(&r); i++)
		if (i % users == 0) write_all(1, d.p, d.n);
	return 0;
}

/* --- drain -------------------------------------------------------------------------------------------------------- */

static void on_stranger(void *arg, const char *line, size_t n) {
	(void)arg;
	if (!is_control(line, n)) die("feeder: a line that nobody sent: %.*s", (int)(n < 200 ? n : 200), line);
	answer_initialize(line, n);
}

static void acknowledge(size_t from, size_t to) {
	char text[128];
	if (from / ACK_EVERY == to / ACK_EVERY) return;
	int n = snprintf(text, sizeof text, "{\"type\":\"system\",\"subtype\":\"bench_ack\",\"bytes\":%zu}\n", to);
	write_all(1, text, (size_t)n);
}

static int drain(const char *path) {
	struct match m = {.want = map_file(path), .stranger = on_stranger};
	static char data[262144];
	ssize_t n;
	while ((n = read(0, data, sizeof data)) > 0) {
		size_t before = m.pos;
		match_feed(&m, data, (size_t)n);
		if (m.pos > before) acknowledge(before, m.pos);
		if (!match_done(&m) || m.pos == before) continue;
		say_result();
		m.pos = 0;
	}
	return 0;
}

/* --- latency ------------------------------------------------------------------------------------------------------ */

static int echo(void) {
	struct reader r = {0};
	char out[LINE_SIZE + 1];
	const char *line;
	size_t n;
	while ((line = read_line(&r, &n)) != NULL) {
		int64_t now = now_ns();
		if (is_control(line, n)) answer_initialize(line, n);
		if (!has(line, n, "\"bench_ping\"")) continue;
		stamp_line(out, "stream_event", number_member(line, n, "n"), now_ns(), now - number_member(line, n, "t"));
		write_all(1, out, LINE_SIZE);
	}
	return 0;
}

static void await_answer(struct reader *r, const char *id) {
	const char *line;
	size_t n;
	while ((line = read_line(r, &n)) != NULL) {
		if (has(line, n, "\"control_response\"") && has(line, n, id) && has(line, n, "\"allow\"")) return;
		if (is_control(line, n)) answer_initialize(line, n);
	}
	die("feeder: the input ended before request %s was answered", id);
}

static int ask(long count, const char *path) {
	struct reader r = {0};
	int64_t *ns = calloc((size_t)count, sizeof *ns);
	while (ns && wait_user(&r)) {
		for (long i = 0; i < count; i++) {
			char text[400], id[32];
			snprintf(id, sizeof id, "ask-%ld", i);
			int n = snprintf(text, sizeof text,
							 "{\"type\":\"control_request\",\"request_id\":\"%s\",\"request\":{\"subtype\":"
							 "\"can_use_tool\",\"tool_name\":\"Bash\",\"input\":{\"command\":\"touch one\"},"
							 "\"tool_use_id\":\"toolu_%ld\"}}\n",
							 id, i);
			int64_t from = now_ns();
			write_all(1, text, (size_t)n);
			await_answer(&r, id);
			ns[i] = now_ns() - from;
		}
		write_samples(path, ns, (size_t)count);
		say_result();
	}
	return 0;
}

/* So that readers of these lines have finished the earlier ones. */
#define REST_NS 300000000

static void burst_of(long count) {
	static char lines[200][LINE_SIZE];
	char line[LINE_SIZE + 1];
	for (long i = 0, k = 0; i < count; i++) {
		stamp_line(line, "stream_event", i, 0, 0);
		memcpy(lines[k++], line, LINE_SIZE);
		if (k < 200 && i + 1 < count) continue;
		write_all(1, lines[0], (size_t)k * LINE_SIZE);
		k = 0;
	}
}

static int pace(long burst, long count, long us) {
	struct reader r = {0};
	char line[LINE_SIZE + 1];
	while (wait_user(&r)) {
		burst_of(burst);
		int64_t at = now_ns() + REST_NS;
		for (long i = 0; i < count; i++, at += us * 1000) {
			struct timespec t = {at / 1000000000, at % 1000000000};
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
			stamp_line(line, "stream_event", burst + i, now_ns(), 0);
			write_all(1, line, LINE_SIZE);
		}
		say_result();
	}
	return 0;
}

int main(int argc, char **argv) {
	const char *how = argc > 1 ? argv[1] : "";
	for (int i = 2; i < argc; i++)
		if (strncmp(argv[i], "--resume", 8) == 0) argc = i; /* nothing to resume */
	if (argc == 4 && strcmp(how, "make") == 0) {
		make_mix(argv[2], (size_t)number(argv[3]));
		return 0;
	}
	if (argc >= 3 && strcmp(how, "relay") == 0) return relay(argv[2], argc > 3 ? number(argv[3]) : 1);
	if (argc >= 3 && strcmp(how, "drain") == 0) return drain(argv[2]);
	if (argc >= 2 && strcmp(how, "echo") == 0) return echo();
	if (argc >= 4 && strcmp(how, "ask") == 0) return ask(number(argv[2]), argv[3]);
	if (argc >= 5 && strcmp(how, "pace") == 0) return pace(number(argv[2]), number(argv[3]), number(argv[4]));
	die("usage: feeder make|relay|drain|echo|ask|pace ... (see the head of feeder.c)");
}
