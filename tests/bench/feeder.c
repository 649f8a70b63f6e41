/* SPDX-License-Identifier: MIT
 *
 * The played child of a measurement, in C for speed: the time is spent in the program between it and the clients. It
 * answers the handshake, as the daemon requires, and begins at the first prompt. With `--speak DIALECT` before its
 * verb it speaks acp or codex instead of stream-json.
 *
 *   feeder make FILE BYTES        writes the mixed lines
 *   feeder deltas FILE BYTES      writes short lines alone
 *   feeder relay FILE [USERS]     prints FILE after each USERS prompts (default 1)
 *   feeder drain FILE             must read FILE; reports its position every 4 MB, and at its end
 *   feeder echo                   answers each bench_ping
 *   feeder ask COUNT SAMPLES      after a prompt: asks for a permission COUNT times, writes the times
 *   feeder pace BURST COUNT US    after a prompt: BURST lines at once, then COUNT lines, one every US microseconds
 */
#include "bench.h"
#include "speech.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ACK_EVERY ((size_t)4 << 20)
#define FIRST_ASK 1000000 /* no other number of a line contains one of these ids */

static int64_t prompt_id; /* of JSON-RPC; the sink's are numbers, and so are the daemon's */

static void say_result(void) {
	char text[512];
	write_all(1, text, expand_number(text, sizeof text, speech->result, prompt_id));
}

/* Take a line; return true if it is a prompt. */
static bool take_prompt(const char *line, size_t n, bool one_of_many) {
	if (!has(line, n, speech->is_prompt)) {
		shake_hands(line, n, one_of_many);
		return false;
	}
	size_t len;
	const char *id = token_member(line, n, speech->id, &len);
	prompt_id = number_member(line, n, speech->id);
	if (id && speech->accept) say(1, speech->accept, id, len);
	return true;
}

/* Return true at a prompt, false at the end of input. */
static bool wait_user(struct reader *r) {
	const char *line;
	size_t n;
	while ((line = read_line(r, &n)) != NULL)
		if (take_prompt(line, n, false)) return true;
	return false;
}

static int relay(const char *path, long users) {
	struct data d = map_file(path);
	struct reader r = {0};
	for (long i = 1; wait_user(&r); i++) {
		if (i % users != 0) continue;
		write_all(1, d.p, d.n);
		if (!speech->ends_mix) say_result();
	}
	return 0;
}

/* --- drain -------------------------------------------------------------------------------------------------------- */

static void on_stranger(void *arg, const char *line, size_t n) {
	(void)arg;
	if (!shake_hands(line, n, false)) die("feeder: not a line of the client: %.*s", (int)(n < 200 ? n : 200), line);
}

static void acknowledge(size_t bytes) {
	char text[128];
	write_all(1, text, expand_number(text, sizeof text, speech->ack, (int64_t)bytes));
}

static int drain(const char *path) {
	struct match m = {.want = map_file(path), .stranger = on_stranger};
	static char data[262144];
	ssize_t n;
	while ((n = read(0, data, sizeof data)) > 0) {
		size_t before = m.pos;
		match_feed(&m, data, (size_t)n);
		bool done = match_done(&m) && m.pos > before;
		if (done || before / ACK_EVERY < m.pos / ACK_EVERY) acknowledge(m.pos);
		if (done) m.pos = 0;
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
		if (!has(line, n, speech->is_ping)) {
			take_prompt(line, n, true);
			continue;
		}
		stamp_line(out, &speech->pong, number_member(line, n, "n"), now_ns(), now - number_member(line, n, "t"));
		name_conversation(out, LINE_SIZE);
		write_all(1, out, LINE_SIZE);
	}
	return 0;
}

static void await_answer(struct reader *r, const char *id) {
	const char *line;
	size_t n;
	while ((line = read_line(r, &n)) != NULL) {
		if (has(line, n, speech->is_allow) && has(line, n, id)) return;
		shake_hands(line, n, false);
	}
	die("feeder: the input ended before request %s was answered", id);
}

static int ask(long count, const char *path) {
	struct reader r = {0};
	int64_t *ns = calloc((size_t)count, sizeof *ns);
	while (ns && wait_user(&r)) {
		for (long i = 0; i < count; i++) {
			char text[512], id[32];
			size_t n = expand_number(text, sizeof text, speech->ask, FIRST_ASK + i);
			snprintf(id, sizeof id, "%ld", FIRST_ASK + i);
			int64_t from = now_ns();
			write_all(1, text, n);
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
		stamp_line(line, &speech->pong, i, 0, 0);
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
			stamp_line(line, &speech->pong, burst + i, now_ns(), 0);
			write_all(1, line, LINE_SIZE);
		}
		say_result();
	}
	return 0;
}

int main(int argc, char **argv) {
	if (argc > 2 && strcmp(argv[1], "--speak") == 0) {
		speak(argv[2]);
		argv += 2;
		argc -= 2;
	}
	const char *how = argc > 1 ? argv[1] : "";
	for (int i = 2; i < argc; i++)
		if (strncmp(argv[i], "--resume", 8) == 0) argc = i; /* nothing to resume */
	if (argc == 4 && (strcmp(how, "make") == 0 || strcmp(how, "deltas") == 0)) {
		(*how == 'm' ? make_mix : make_deltas)(argv[2], (size_t)number(argv[3]));
		return 0;
	}
	if (argc >= 3 && strcmp(how, "relay") == 0) return relay(argv[2], argc > 3 ? number(argv[3]) : 1);
	if (argc >= 3 && strcmp(how, "drain") == 0) return drain(argv[2]);
	if (argc >= 2 && strcmp(how, "echo") == 0) return echo();
	if (argc >= 4 && strcmp(how, "ask") == 0) return ask(number(argv[2]), argv[3]);
	if (argc >= 5 && strcmp(how, "pace") == 0) return pace(number(argv[2]), number(argv[3]), number(argv[4]));
	die("usage: feeder [--speak DIALECT] make|deltas|relay|drain|echo|ask|pace ... (see the head of feeder.c)");
}
