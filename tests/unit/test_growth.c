/* SPDX-License-Identifier: MIT
 *
 * The cost of a client's line grows only linearly. Each case does its work for a list and for one of eight times as
 * many entries, in the thread's own processor time, the best of several rounds: a list walked once for each entry costs
 * 64 times as much.
 */
#include "config/config.h"
#include "core/gate.h"
#include "core/guards.h"
#include "core/launch.h"
#include "core/registry.h"
#include "dialect/claude/claude.h"
#include "dialect/claude/message.h"
#include "wire/alike.h"
#include "wire/limits.h"

#include "base/str.h"
#include "carrying.h"
#include "plenum/protocol.h"

#include <malloc.h>
#include <time.h>
#include <unistd.h>

#define FEW ((size_t)500)
#define TIMES 8
#define AT_MOST (3 * TIMES)
#define ROUNDS 7

static int64_t cpu_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t cost(void (*work)(size_t n), size_t n) {
	int64_t best = INT64_MAX;
	for (int i = 0; i < ROUNDS; i++) {
		int64_t from = cpu_ns();
		work(n);
		best = MIN(best, cpu_ns() - from);
	}
	return best;
}

static void grows_as_its_length(const char *what, void (*work)(size_t n)) {
	int64_t few = cost(work, FEW), many = cost(work, TIMES * FEW);
	REQUIRE(many <= AT_MOST * few, "%s: %lld ns for %zu entries, %lld ns for %d times as many", what, (long long)few,
			FEW, (long long)many, TIMES);
}

/* n entries with commas, each with its number in place of '#', forwards or backwards. The caller frees. */
static char *within(const char *before, const char *entry, size_t n, bool back, const char *after) {
	const char *number = strchr(entry, '#');
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	buf_puts(&b, before);
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s%.*s%zu%s", i ? "," : "", (int)(number - entry), entry, back ? n - 1 - i : i, number + 1);
	buf_puts(&b, after);
	return buf_steal(&b, NULL);
}

/* Keep freed memory: returning it to the kernel would be most of the cost of a long list. */
__attribute__((constructor)) static void keep_memory(void) {
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
}

/* --- registrations ------------------------------------------------------------------------------------------------ */

struct world {
	struct loop *loop;
	struct registry r;
	struct owner *owner;
};

static void on_grace(void *arg) {
	(void)arg;
}

static void begin(struct world *w) {
	*w = (struct world){.loop = loop_new()};
	registry_init(&w->r, claude_dialect.hooks);
}

static void set(struct world *w, const char *hooks) {
	if (!w->owner) w->owner = registry_add_owner(&w->r, NO_SESSION, w->loop, PARTY(1), 1000, "x", on_grace);
	const char *error = registry_set_hooks(&w->r, w->owner, span_of(hooks));
	REQUIRE(!error, "%s", error);
}

static void end(struct world *w) {
	registry_free(&w->r);
	loop_free(w->loop);
}

/* The lines for the child and the table on disk. */
static void write_out(const struct world *w) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	char *text = NULL;
	registry_put_hooks(&w->r, &b);
	ck_assert(!b.failed && guards_text(&w->r, &text));
	free(text);
	buf_free(&b);
}

static void events(size_t n) {
	_cleanup_free_ char *hooks = within("{", "\"E#\":[{\"onFailure\":\"block\",\"hookCallbackIds\":[\"c\"]}]", n, false,
										"}");
	struct world w;
	begin(&w);
	set(&w, hooks);
	write_out(&w);
	end(&w);
}

#define ENTRY "{\"matcher\":\"a matcher that all entries begin with #\",\"hookCallbackIds\":[\"c\"]}"

static void entries_in_another_order(size_t n) {
	_cleanup_free_ char *forth = within("{\"PreToolUse\":[", ENTRY, n, false, "]}"),
						*back = within("{\"PreToolUse\":[", ENTRY, n, true, "]}");
	struct world w;
	begin(&w);
	set(&w, forth);
	set(&w, back);
	write_out(&w);
	end(&w);
}

static void servers(size_t n) {
	struct world w;
	begin(&w);
	set(&w, "{}");
	for (size_t i = 0; i < n; i++) {
		char name[40];
		snprintf(name, sizeof name, "\"server %zu\"", i);
		struct span span = span_of(name);
		ck_assert_ptr_null(registry_server_taken(&w.r, span, PARTY(1), 1000, "x"));
		ck_assert_ptr_null(registry_add_server(&w.r, w.owner, span, SPAN_NONE, true));
		ck_assert_ptr_eq(registry_server(&w.r, span), w.owner);
	}
	end(&w);
}

static void dialogs(size_t n) {
	_cleanup_free_ char *kinds = within("[", "\"kind #\"", n, false, "]");
	struct world w;
	begin(&w);
	struct span kind;
	set(&w, "{}");
	ck_assert_ptr_null(registry_set_dialogs(w.owner, span_of(kinds)));
	for (size_t at = 0; span_next(span_of(kinds), &at, &kind);) REQUIRE(owner_takes_dialog(w.owner, kind), "%zu", at);
	end(&w);
}

START_TEST(registrations) {
	grows_as_its_length("hook events", events);
	grows_as_its_length("hook entries in another order", entries_in_another_order);
	grows_as_its_length("MCP servers", servers);
	grows_as_its_length("kinds of dialogs", dialogs);
}
END_TEST

/* --- starts ------------------------------------------------------------------------------------------------------- */

static void environment(size_t n) {
	struct settings *settings = settings_new();
	struct profile *p = settings_add_profile(settings, "x");
	struct launch a = {.cwd = strdup("/"), .uid = getuid()}, b = {.cwd = strdup("/"), .uid = getuid()};
	ck_assert(words_add(&p->command, "/bin/sh"));
	for (size_t i = 0; i < n; i++) {
		char word[40];
		snprintf(word, sizeof word, "NAME_%zu=x", i);
		ck_assert(words_add(&a.env, word));
		snprintf(word, sizeof word, "NAME_%zu=x", n - 1 - i);
		ck_assert(words_add(&b.env, word));
	}
	REQUIRE(launch_same(&a, &b, p, true), "%zu", n);
	launch_free(&a);
	launch_free(&b);
	settings_unref(settings);
}

static void brought_environment(size_t n) {
	struct launch l = {0};
	struct launch_more more = {.has_env = true};
	for (size_t i = 0; i < n; i++) {
		char word[40];
		snprintf(word, sizeof word, "NAME_%zu=x", i);
		ck_assert(words_add(i % 2 ? &l.env : &more.env, word));
	}
	ck_assert(launch_bring(&l, &more) && l.env.n == n && launch_has_env(&l, &l.env));
	launch_free(&l);
}

START_TEST(starts) {
	grows_as_its_length("environment", environment);
	grows_as_its_length("environment of a later client", brought_environment);
}
END_TEST

/* --- lines -------------------------------------------------------------------------------------------------------- */

static void members(size_t n) {
	_cleanup_free_ char *line = within(
		"{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{\"subtype\":\"initialize\",", "\"m#\":1", n,
		false, "}}");
	static struct gate gate;
	struct message m;
	struct chunk rewritten;
	struct gate_verdict v;
	struct span id;
	struct error error;
	gate_init(&gate, &claude_dialect);
	gate.n = GATE_SEEN_MAX; /* logs nothing */
	REQUIRE(message_check(line, strlen(line), &m, &rewritten, &error, &id), "%s", error.text);
	gate_judge(&gate, TRUST_OWN, &m, span_of(line), &v);
	ck_assert(v.passes);
}

static void inputs(size_t n) {
	_cleanup_free_ char *a = within("{", "\"m#\":1", n, false, "}"), *b = within("{", "\"m#\":1", n, true, "}");
	REQUIRE(alike(span_of(a), span_of(b)), "%zu", n);
}

static void tool_results(size_t n) {
	_cleanup_free_ char *line = within("{\"content\":[", "{\"type\":\"tool_result\",\"tool_use_id\":\"#\"}", n, false,
									   "]}");
	struct span message = span_of(line), id, name;
	size_t found = 0;
	for (size_t at = 0; claude_dialect.next_tool(&message, &at, &id, &name);) found++;
	ck_assert_uint_eq(found, n);
}

START_TEST(lines) {
	grows_as_its_length("members", members);
	grows_as_its_length("inputs in another order", inputs);
	grows_as_its_length("results of tools", tool_results);
}
END_TEST

/* A line with too many members is refused at the first excess one: it costs as much as its beginning. */
START_TEST(too_many_members) {
	_cleanup_free_ char *most = within("{\"type\":\"x\",", "\"m#\":1", LIMITS_MEMBERS - 1, false, "}"),
						*more = within("{\"type\":\"x\",", "\"m#\":1", LIMITS_MEMBERS, false, "}"),
						*deep = within(
							"{\"type\":\"control_request\",\"request_id\":\"7\",\"request\":{\"subtype\":\"x\",",
							"\"m#\":1", LIMITS_MEMBERS, false, "}}");
	struct message m;
	struct chunk rewritten;
	struct span id;
	struct error error;
	ck_assert(message_check(most, strlen(most), &m, &rewritten, &error, &id));
	ck_assert(!message_check(more, strlen(more), &m, &rewritten, &error, &id));
	ck_assert(m.code && strcmp(m.code, PLENUM_E_TOO_MANY) == 0 && strstr(error.text, "4,096 members"));
	ck_assert(!message_check(deep, strlen(deep), &m, &rewritten, &error, &id));
	ck_assert(m.code && strcmp(m.code, PLENUM_E_TOO_MANY) == 0 && span_equals(id, "7"));
	ck_assert(!message_check("{", 1, &m, &rewritten, &error, &id) && !m.code);
}
END_TEST

/* --- the configuration -------------------------------------------------------------------------------------------- */

static struct buf config; /* as read from its file */

static void load_config(size_t n) {
	struct errors errors = {0};
	struct settings *s = config_load(&config, &errors);
	REQUIRE(s && settings_profile(s, "p1"), "%zu profiles: %s", n, errors_text(&errors, 0));
	settings_unref(s);
}

static int64_t cost_of_profiles(const char *path, size_t n) {
	FILE *f = fopen(path, "w");
	for (size_t i = 0; i < n; i++) fprintf(f, "[profile p%zu]\ncommand = true\nstop_grace = 1s\n", i);
	ck_assert_int_eq(fclose(f), 0);
	config = (struct buf)BUF_INIT(16 * 1024 * 1024);
	config_read(&config, path);
	int64_t ns = cost(load_config, n);
	buf_free(&config);
	return ns;
}

/* A reload reads all of it in one turn of the loop. */
START_TEST(profiles) {
	char path[] = "/tmp/plenum-growth-XXXXXX";
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	int64_t few = cost_of_profiles(path, FEW), many = cost_of_profiles(path, TIMES * FEW);
	unlink(path);
	REQUIRE(many <= AT_MOST * few, "%lld ns for %zu profiles, %lld ns for %d times as many", (long long)few, FEW,
			(long long)many, TIMES);
}
END_TEST

RUN_TESTS("growth", registrations, starts, lines, too_many_members, profiles)
