/* SPDX-License-Identifier: MIT
 *
 * The clients of a measurement, all in one process, and the clock. Prints its results as one JSON object.
 *
 *   sink relay FILE      sends a prompt, reads until every client has FILE
 *   sink fill FILE       sends FILE, at most 16 MB ahead of the child's last report
 *   sink ping COUNT IN OUT   one line there and back, COUNT times; samples of both ways to the files IN and OUT
 *   sink answer          sends a prompt, allows all requests until the result
 *   sink pace SAMPLES    sends a prompt, takes the latency of each stamped line at every client
 *   sink hold            attaches, says "ready", reads and discards until its stdin ends
 *   sink replay ROUNDS [FILE]   attaches ROUNDS times, once more with a FILE: the replay must equal its end; times from
 *                        the attach to its answer, and to the first line and the last
 *   sink crowd COUNT HOT COLD   attaches to N sessions (--count), --each clients to each of them: says "sessions" when
 *                        each has one, and "ready" when they have all, and waits for a line on stdin after each. Then
 *                        COUNT lines of the first session and COUNT lines of one session after another: samples of all
 *                        clients to the files HOT and COLD
 *
 * options, before the verb:
 *   --unix PATH          where to connect, or
 *   --spawn COMMAND      run by sh, its stdin and stdout are the connection
 *   --count N            clients (default 1)
 *   --speak DIALECT     stream-json (default: claude), acp or codex
 *   --attach MEMBERS     attach first, with these members ("%d" is the client's number)
 *   --each N             crowd: clients per session (default 1)
 *   --rounds N           relay: repetitions
 *   --all-say            each client sends the prompt (for a relay without a list of clients)
 *   --stalled MEMBERS    pace: one more client, which attaches with these members and then never reads
 */
#include "bench.h"
#include "speech.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define AHEAD ((size_t)16 << 20)

struct conn {
	int in, out;
	struct match match;
	struct reader rest; /* pace: bytes of an unfinished line */
	int64_t end;
	int64_t next;
	bool done;
};

struct options {
	const char *path, *command, *attach, *stalled;
	long count, rounds, each;
	bool all_say;
};

/* --- connecting --------------------------------------------------------------------------------------------------- */

#define PATIENCE_S 60

static void connect_unix(struct conn *c, const char *path) {
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct timespec pause = {0, 1000000};
	struct timeval patience = {PATIENCE_S, 0};
	int64_t end = now_ns() + PATIENCE_S * (int64_t)1000000000;
	if (strlen(path) >= sizeof a.sun_path) die("%s is too long for a socket", path);
	strcpy(a.sun_path, path);
	c->in = c->out = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->in < 0) die("socket: %s", strerror(errno));
	setsockopt(c->in, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience); /* the other side may never accept */
	/* a relay just started may not listen yet, and a full backlog drains */
	while (connect(c->in, (struct sockaddr *)&a, sizeof a) < 0) {
		if (now_ns() > end || (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN))
			die("%s: %s", path, strerror(errno));
		nanosleep(&pause, NULL);
	}
}

static void connect_command(struct conn *c, const char *command) {
	int to[2], from[2];
	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0) die("pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	c->in = from[0];
	c->out = to[1];
}

/* "%d" in the members becomes the client's number. */
static void attach(struct conn *c, const char *members, long index) {
	char value[512] = "";
	const char *at = strstr(members, "%d");
	if (at) snprintf(value, sizeof value, "%.*s%ld%s", (int)(at - members), members, index, at + 2);
	if (at) members = value;
	say(c->out, speech->attach, members, strlen(members));
}

/* Peek at one line, leaving the bytes after it; return its length. */
static size_t peek_line(int fd, char *line, size_t size) {
	for (size_t n = 0; n < size;) {
		ssize_t got = recv(fd, line + n, size - n, MSG_PEEK);
		char *lf = got > 0 ? memchr(line + n, '\n', (size_t)got) : NULL;
		size_t used = lf ? (size_t)(lf - line) + 1 - n : (size_t)got;
		if (got <= 0 || recv(fd, line + n, used, 0) != (ssize_t)used) break;
		n += used;
		if (lf) return n;
	}
	die("sink: no answer to the attach");
}

static void check_attached(const char *line, size_t n) {
	if (!has(line, n, speech->succeeded)) die("sink: %.*s", (int)n, line);
}

static void await_attached(struct conn *c) {
	char line[65536];
	size_t n;
	do n = peek_line(c->in, line, sizeof line);
	while (!has(line, n, speech->attached));
	check_attached(line, n);
}

static struct conn *connect_all(const struct options *o, long count) {
	struct conn *all = calloc((size_t)count, sizeof *all);
	if (!all) die("out of memory");
	for (long i = 0; i < count; i++) {
		if (o->path)
			connect_unix(&all[i], o->path);
		else
			connect_command(&all[i], o->command);
		if (o->attach) attach(&all[i], o->attach, i);
	}
	for (long i = 0; o->attach && i < count; i++) await_attached(&all[i]);
	return all;
}

static void say_user(const struct options *o, struct conn *all) {
	static int64_t number; /* an open request may still have the previous one */
	char text[512];
	size_t n = expand_number(text, sizeof text, speech->prompt, ++number);
	for (long i = 0; i < (o->all_say ? o->count : 1); i++) write_all(all[i].out, text, n);
}

/* --- many clients ------------------------------------------------------------------------------------------------- */

static int watch(struct conn *all, long count) {
	int ep = epoll_create1(EPOLL_CLOEXEC);
	for (long i = 0; i < count; i++) {
		struct epoll_event e = {.events = EPOLLIN, .data = {.ptr = &all[i]}};
		fcntl(all[i].in, F_SETFL, fcntl(all[i].in, F_GETFL) | O_NONBLOCK);
		if (epoll_ctl(ep, EPOLL_CTL_ADD, all[i].in, &e) < 0) die("epoll: %s", strerror(errno));
	}
	return ep;
}

/* Pass each client's input to `take`, until `left` of them are done or descriptor 0, if watched, has ended. */
static void serve(int ep, long *left, void (*take)(struct conn *c, const char *p, size_t n, long *left)) {
	static char data[262144];
	struct epoll_event ready[64];
	while (*left > 0) {
		int n = epoll_wait(ep, ready, 64, 60000);
		if (n == 0) die("sink: nothing came for a minute; %ld clients are not done", *left);
		for (int i = 0; i < n; i++) {
			struct conn *c = ready[i].data.ptr;
			ssize_t got = read(c->in, data, sizeof data);
			if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
			if (got <= 0 && c->in != 0) die("sink: the connection ended");
			take(c, data, got > 0 ? (size_t)got : 0, left);
		}
	}
}

/* --- relay -------------------------------------------------------------------------------------------------------- */

static size_t n_events, n_lags;

static void on_event(void *arg, const char *line, size_t n) {
	(void)arg;
	n_events++;
	for (const char *const *mark = speech->beside; *mark; mark++)
		if (has(line, n, *mark)) return;
	if (!has(line, n, speech->notice) || has(line, n, "\"event\":\"gap\"") || has(line, n, "\"event\":\"error\""))
		die("sink: not what the child printed: %.*s", (int)(n < 300 ? n : 300), line);
	if (has(line, n, "\"event\":\"lag\"")) n_lags++;
}

static void take_relay(struct conn *c, const char *p, size_t n, long *left) {
	match_feed(&c->match, p, n);
	if (c->done || !match_done(&c->match)) return;
	c->done = true;
	c->end = now_ns();
	--*left;
}

static double relay_round(const struct options *o, struct conn *all, int ep, double *first) {
	int64_t from = now_ns(), last = 0, soonest = INT64_MAX;
	long left = o->count;
	for (long i = 0; i < o->count; i++) {
		all[i].done = false;
		all[i].match.pos = 0;
	}
	say_user(o, all);
	serve(ep, &left, take_relay);
	for (long i = 0; i < o->count; i++) {
		if (all[i].end > last) last = all[i].end;
		if (all[i].end < soonest) soonest = all[i].end;
	}
	*first = (double)(soonest - from) / 1e9;
	return (double)(last - from) / 1e9;
}

static void relay(const struct options *o, const char *path) {
	struct data d = map_file(path);
	struct conn *all = connect_all(o, o->count);
	int ep = watch(all, o->count);
	double first = 0;
	for (long i = 0; i < o->count; i++) all[i].match = (struct match){.want = d, .stranger = on_event};
	printf("{\"bytes\":%zu,\"rounds\":[", d.n);
	for (long i = 0; i < o->rounds; i++) printf("%s%.6f", i ? "," : "", relay_round(o, all, ep, &first));
	printf("],\"first\":%.6f,\"events\":%zu,\"lags\":%zu}\n", first, n_events, n_lags);
}

/* --- fill --------------------------------------------------------------------------------------------------------- */

static size_t acked;

static void read_ack(const char *line, size_t n) {
	if (has(line, n, "\"bench_ack\"")) acked = (size_t)number_member(line, n, "bytes");
	if (has(line, n, "\"event\":\"error\"")) die("sink: %.*s", (int)n, line);
}

static void fill_file(const struct options *o, const char *path) {
	struct data d = map_file(path);
	struct conn *c = connect_all(o, 1);
	struct reader r = {.fd = c->in};
	const char *line;
	size_t n, sent = 0;
	int64_t from = now_ns();
	while (acked < d.n) {
		size_t room = acked + AHEAD > d.n ? d.n - sent : acked + AHEAD - sent;
		if (room > 262144) room = 262144;
		write_all(c->out, d.p + sent, room);
		sent += room;
		if (room) continue;
		if (!(line = read_line(&r, &n))) die("sink: the connection ended");
		read_ack(line, n);
	}
	printf("{\"bytes\":%zu,\"rounds\":[%.6f]}\n", d.n, (double)(now_ns() - from) / 1e9);
}

/* --- one line at a time ------------------------------------------------------------------------------------------- */

static int64_t ping_once(struct conn *c, struct reader *r, long number, int64_t *in) {
	char text[LINE_SIZE + 1];
	const char *line;
	size_t n;
	stamp_line(text, &speech->ping, number, now_ns(), 0);
	write_all(c->out, text, LINE_SIZE);
	while ((line = read_line(r, &n)) != NULL) {
		int64_t now = now_ns();
		if (!has(line, n, speech->is_pong)) continue;
		if (number_member(line, n, "n") != number) die("sink: the answer to another line: %.*s", (int)n, line);
		*in = number_member(line, n, "in");
		return now - number_member(line, n, "t");
	}
	die("sink: the connection ended");
}

#define WARM_UP 100

static void ping(const struct options *o, long count, const char *in_file, const char *out_file) {
	struct conn *c = connect_all(o, 1);
	struct reader r = {.fd = c->in};
	int64_t *in = calloc((size_t)count, sizeof *in), *out = calloc((size_t)count, sizeof *out), none;
	if (!in || !out) die("out of memory");
	for (long i = 0; i < WARM_UP; i++) ping_once(c, &r, i, &none);
	for (long i = 0; i < count; i++) out[i] = ping_once(c, &r, WARM_UP + i, &in[i]);
	write_samples(in_file, in, (size_t)count);
	write_samples(out_file, out, (size_t)count);
	printf("{\"count\":%ld}\n", count);
}

static void allow(const struct conn *c, const char *line, size_t n) {
	size_t len;
	const char *id = token_member(line, n, speech->id, &len);
	if (!id) die("sink: a request without an id: %.*s", (int)n, line);
	say(c->out, speech->allow, id, len);
}

static void answer(const struct options *o) {
	struct conn *c = connect_all(o, 1);
	struct reader r = {.fd = c->in};
	const char *line;
	size_t n;
	long count = 0;
	say_user(o, c);
	while ((line = read_line(&r, &n)) != NULL) {
		if (has(line, n, speech->is_result)) break;
		if (has(line, n, "\"event\":\"error\"")) die("sink: %.*s", (int)n, line);
		if (!has(line, n, speech->is_ask)) continue;
		allow(c, line, n);
		count++;
	}
	if (!line) die("sink: the connection ended");
	printf("{\"count\":%ld}\n", count);
}

/* --- pace --------------------------------------------------------------------------------------------------------- */

static int64_t *samples;
static size_t n_samples, cap_samples;

static void add_sample(int64_t ns) {
	if (n_samples == cap_samples) {
		cap_samples = cap_samples ? cap_samples * 2 : 65536;
		samples = realloc(samples, cap_samples * sizeof *samples);
		if (!samples) die("out of memory");
	}
	samples[n_samples++] = ns;
}

static void take_paced_line(struct conn *c, const char *line, size_t n, int64_t now, long *left) {
	if (has(line, n, "\"event\":\"gap\"")) die("sink: a client that reads has a gap");
	if (has(line, n, speech->is_result)) {
		--*left;
		c->done = true;
	}
	if (n != LINE_SIZE || !has(line, n, speech->is_pong)) return;
	int64_t t = number_member(line, n, "t");
	if (number_member(line, n, "n") != c->next++) die("sink: a line is missing before %.*s", (int)n, line);
	if (t) add_sample(now - t);
}

typedef void take_line(struct conn *c, const char *line, size_t n, int64_t now, long *left);

/* Pass whole lines to `take`; keep the bytes of an unfinished one. */
static void split(struct conn *c, const char *p, size_t n, long *left, take_line *take) {
	struct reader *r = &c->rest;
	int64_t now = now_ns();
	if (r->end + n > r->cap) {
		r->cap = (r->end + n) * 2;
		r->data = realloc(r->data, r->cap);
		if (!r->data) die("out of memory");
	}
	memcpy(r->data + r->end, p, n);
	r->end += n;
	const char *from = r->data, *end = r->data + r->end, *lf;
	while ((lf = memchr(from, '\n', (size_t)(end - from))) != NULL) {
		take(c, from, (size_t)(lf - from) + 1, now, left);
		from = lf + 1;
	}
	r->end = (size_t)(end - from);
	memmove(r->data, from, r->end);
}

static void take_pace(struct conn *c, const char *p, size_t n, long *left) {
	split(c, p, n, left, take_paced_line);
}

static void pace(const struct options *o, const char *path) {
	struct conn *all = connect_all(o, o->count);
	struct options other = {.path = o->path, .attach = o->stalled};
	if (o->stalled) connect_all(&other, 1); /* never read again */
	int ep = watch(all, o->count);
	long left = o->count;
	say_user(o, all);
	serve(ep, &left, take_pace);
	write_samples(path, samples, n_samples);
	printf("{\"count\":%zu}\n", n_samples);
}

/* --- hold --------------------------------------------------------------------------------------------------------- */

static void take_nothing(struct conn *c, const char *p, size_t n, long *left) {
	(void)p;
	if (c->in == 0 && n == 0) *left = 0;
}

static void hold(const struct options *o) {
	struct conn *all = connect_all(o, o->count), control = {.in = 0};
	int ep = watch(all, o->count);
	struct epoll_event e = {.events = EPOLLIN, .data = {.ptr = &control}};
	long left = 1;
	if (epoll_ctl(ep, EPOLL_CTL_ADD, 0, &e) < 0) die("epoll: %s", strerror(errno));
	puts("ready");
	fflush(stdout);
	serve(ep, &left, take_nothing);
}

/* --- replay ------------------------------------------------------------------------------------------------------- */

static int64_t answered;

static void on_beside_replay(void *arg, const char *line, size_t n) {
	(void)arg;
	if (has(line, n, speech->attached)) {
		check_attached(line, n);
		answered = now_ns();
	} else if (!has(line, n, speech->notice) || has(line, n, "\"event\":\"gap\"")) {
		on_event(NULL, line, n);
	}
}

static bool is_of_child(const char *line, size_t n) {
	return !has(line, n < 64 ? n : 64, speech->notice) && !has(line, n < 64 ? n : 64, "\"control_response\"");
}

/* Find how much of the file's end the tape holds; it is compared with the file on reception. */
static struct data find_replayed(const struct options *o, struct data file) {
	const char *end = memrchr(file.p, '\n', file.n - 1), *line;
	size_t size = (size_t)(file.p + file.n - end) - 1, total = 0, n;
	struct conn *c = connect_all(o, 1);
	struct reader r = {.fd = c->in};
	do {
		if (!(line = read_line(&r, &n))) die("sink: the connection ended");
		total += is_of_child(line, n) ? n : 0;
	} while (n != size || memcmp(line, end + 1, n) != 0);
	if (total >= file.n || file.p[file.n - total - 1] != '\n') die("sink: the replay is not the end of the file");
	close(c->in);
	return (struct data){file.p + file.n - total, total};
}

static ssize_t feed_some(struct conn *c) {
	static char data[262144];
	ssize_t n = read(c->in, data, sizeof data);
	if (n <= 0) die("sink: the connection ended");
	match_feed(&c->match, data, (size_t)n);
	return n;
}

/* One attach: times to the answer, to the first whole line of the replay, and to its end. */
static void replay_once(const struct options *o, struct data want, int64_t took[3]) {
	struct options bare = {.path = o->path};
	struct conn *c = connect_all(&bare, 1);
	c->match = (struct match){.want = want, .stranger = on_beside_replay};
	const char *lf = want.n ? memchr(want.p, '\n', want.n) : NULL;
	size_t line = lf ? (size_t)(lf - want.p) + 1 : 0;
	int64_t from = now_ns(), first = 0;
	answered = 0;
	attach(c, o->attach, 0);
	while (!answered || !match_done(&c->match)) {
		feed_some(c);
		if (!first && c->match.pos >= line) first = now_ns();
	}
	took[0] = answered - from;
	took[1] = first - from;
	took[2] = now_ns() - from;
	close(c->in);
	free(c);
}

static void replay(const struct options *o, long rounds, const char *path) {
	struct data want = path ? find_replayed(o, map_file(path)) : (struct data){0};
	printf("{\"bytes\":%zu,\"rounds\":[", want.n);
	for (long i = 0; i < rounds; i++) {
		int64_t took[3];
		replay_once(o, want, took);
		printf("%s[%" PRId64 ",%" PRId64 ",%" PRId64 "]", i ? "," : "", took[0], took[1], took[2]);
	}
	printf("]}\n");
}

/* --- crowd -------------------------------------------------------------------------------------------------------- */

static void say_and_wait(const char *word) {
	char line[16];
	puts(word);
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin)) die("sink: not told to go on");
}

/* Clients number from..to of each session. */
static void join(const struct options *o, struct conn *all, long from, long to) {
	for (long i = 0; i < o->count * o->each; i++) {
		if (i % o->each < from || i % o->each >= to) continue;
		connect_unix(&all[i], o->path);
		attach(&all[i], o->attach, i / o->each);
		all[i].next = -1;
	}
	for (long i = 0; i < o->count * o->each; i++)
		if (i % o->each >= from && i % o->each < to) await_attached(&all[i]);
}

static void take_crowd_line(struct conn *c, const char *line, size_t n, int64_t now, long *left) {
	if (has(line, n, "\"event\":\"gap\"") || has(line, n, "\"event\":\"error\"")) die("sink: %.*s", (int)n, line);
	if (!has(line, n, speech->is_pong)) return;
	if (number_member(line, n, "n") != c->next) die("sink: not a line for this client: %.*s", (int)n, line);
	add_sample(now - number_member(line, n, "t"));
	c->next = -1;
	--*left;
}

static void take_crowd(struct conn *c, const char *p, size_t n, long *left) {
	split(c, p, n, left, take_crowd_line);
}

/* Send a line of each of these sessions in turn, and wait until all of its clients, and no others, have it. */
static void fan(const struct options *o, struct conn *all, int ep, long count, long step, const char *path) {
	static long number;
	char text[LINE_SIZE + 1];
	n_samples = 0;
	for (long i = 0; i < count; i++) {
		struct conn *session = &all[i * step % o->count * o->each];
		long left = o->each;
		for (long k = 0; k < o->each; k++) session[k].next = number;
		stamp_line(text, &speech->ping, number++, now_ns(), 0);
		write_all(session->out, text, LINE_SIZE);
		serve(ep, &left, take_crowd);
	}
	write_samples(path, samples, n_samples);
}

#define STRIDE 7919 /* prime: consecutive sessions are far apart */

static void crowd(const struct options *o, long count, const char *hot, const char *cold) {
	struct conn *all = calloc((size_t)(o->count * o->each), sizeof *all);
	if (!all) die("out of memory");
	join(o, all, 0, 1);
	say_and_wait("sessions");
	join(o, all, 1, o->each);
	say_and_wait("ready");
	int ep = watch(all, o->count * o->each);
	fan(o, all, ep, WARM_UP, 0, hot);
	fan(o, all, ep, count, 0, hot);
	fan(o, all, ep, count, STRIDE, cold);
	printf("{\"count\":%zu}\n", n_samples);
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static const struct option long_options[] = {
	{"unix", required_argument, NULL, 'u'},   {"spawn", required_argument, NULL, 's'},
	{"count", required_argument, NULL, 'c'},  {"attach", required_argument, NULL, 'a'},
	{"rounds", required_argument, NULL, 'r'}, {"all-say", no_argument, NULL, 'y'},
	{"speak", required_argument, NULL, 'p'},  {"stalled", required_argument, NULL, 't'},
	{"each", required_argument, NULL, 'e'},   {NULL, 0, NULL, 0},
};

static void parse(struct options *o, int argc, char **argv) {
	for (int c; (c = getopt_long(argc, argv, "+", long_options, NULL)) != -1;) {
		if (c == 'u') o->path = optarg;
		if (c == 's') o->command = optarg;
		if (c == 'c') o->count = number(optarg);
		if (c == 'a') o->attach = optarg;
		if (c == 'r') o->rounds = number(optarg);
		if (c == 'e') o->each = number(optarg);
		if (c == 'y') o->all_say = true;
		if (c == 'p') speak(optarg);
		if (c == 't') o->stalled = optarg;
		if (c == '?') exit(1);
	}
	if (!o->path == !o->command) die("sink: --unix or --spawn, one of them");
}

int main(int argc, char **argv) {
	struct options o = {.count = 1, .rounds = 1, .each = 1};
	parse(&o, argc, argv);
	char **arg = argv + optind;
	const char *how = arg[0] ? arg[0] : "";
	int left = argc - optind;
	if (left == 2 && strcmp(how, "relay") == 0)
		relay(&o, arg[1]);
	else if (left == 2 && strcmp(how, "fill") == 0)
		fill_file(&o, arg[1]);
	else if (left == 4 && strcmp(how, "ping") == 0)
		ping(&o, number(arg[1]), arg[2], arg[3]);
	else if (left == 1 && strcmp(how, "answer") == 0)
		answer(&o);
	else if (left == 2 && strcmp(how, "pace") == 0)
		pace(&o, arg[1]);
	else if (left == 1 && strcmp(how, "hold") == 0)
		hold(&o);
	else if ((left == 2 || left == 3) && strcmp(how, "replay") == 0)
		replay(&o, number(arg[1]), arg[2]);
	else if (left == 4 && strcmp(how, "crowd") == 0)
		crowd(&o, number(arg[1]), arg[2], arg[3]);
	else
		die("usage: sink [options] relay|fill|ping|answer|pace|hold|replay|crowd ... (see the head of sink.c)");
	return 0;
}
