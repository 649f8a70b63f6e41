/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>

/* stderr is a file or a pipe during a test. */
struct world {
	int before, fd; /* fd: the reading end */
	char text[100000];
};

static void redirect(struct world *w, int to) {
	fflush(stderr);
	w->before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	dup2(to, STDERR_FILENO);
}

static void begin(struct world *w) {
	w->fd = memfd_create("log", MFD_CLOEXEC);
	redirect(w, w->fd);
	unsetenv("JOURNAL_STREAM");
}

/* Return the output since the last call. */
static const char *logged(struct world *w) {
	ssize_t n = pread(w->fd, w->text, sizeof w->text - 1, 0);
	w->text[MAX(n, (ssize_t)0)] = 0;
	(void)!ftruncate(w->fd, 0);
	lseek(w->fd, 0, SEEK_SET);
	return w->text;
}

static void end(struct world *w) {
	dup2(w->before, STDERR_FILENO);
	close(w->before);
	close(w->fd);
	log_setup(LOG_INFO, false);
}

static bool has(const char *text, const char *part) {
	return strstr(text, part) != NULL;
}

static struct world world;

static void setup(void) {
	begin(&world);
}

static void teardown(void) {
	end(&world);
}

START_TEST(levels) {
	static const enum log_level all[] = {LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG};
	static const char *const names[] = {"error", "warn", "info", "debug"};
	enum log_level level = LOG_INFO;
	struct world w;
	begin(&w);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		ck_assert(log_level_parse(names[i], &level) && level == all[i]);
		log_setup(level, false);
		log_error("an error");
		log_warn("a warning");
		log_info("a note");
		log_debug("a detail");
		const char *text = logged(&w);
		ck_assert(has(text, "an error"));
		ck_assert_int_eq(has(text, "a warning"), i >= 1);
		ck_assert_int_eq(has(text, "a note"), i >= 2);
		ck_assert_int_eq(has(text, "a detail"), i >= 3);
	}
	log_set_level(LOG_ERROR);
	log_event(LOG_WARN, "unheard", (const char *const[]){NULL});
	ck_assert_str_eq(logged(&w), "");
	end(&w);
	ck_assert(!log_level_parse("", &level) && !log_level_parse("INFO", &level) && !log_level_parse("inf", &level));
	ck_assert_int_eq(level, LOG_DEBUG);
}
END_TEST

START_TEST(lines_for_people) {
	int year, month, day, hour, minute, second, ms, n = 0;
	log_setup(LOG_DEBUG, false);
	log_warn("two\nlines and \x1b[2J %d", 5);
	const char *text = logged(&world);
	ck_assert_int_eq(sscanf(text, "%d-%d-%d %d:%d:%d.%d%n", &year, &month, &day, &hour, &minute, &second, &ms, &n), 7);
	ck_assert_str_eq(text + n, " warn  two\\x0alines and \\x1b[2J 5\n");
	log_debug("x");
	ck_assert(has(logged(&world), " debug x [lines_for_people"));
	log_event(LOG_INFO, "decided",
			  (const char *const[]){"tool", "Bash", "by", "a \"b\"", "none", NULL, "eq", "a=b", NULL});
	ck_assert(has(logged(&world), " info  decided tool=Bash by=\"a \\\"b\\\"\" none=\"\" eq=\"a=b\"\n"));
}
END_TEST

START_TEST(lines_for_programs) {
	uint64_t seed = 1;
	log_setup(LOG_INFO, true);
	for (int i = 0; i < 500; i++) {
		char text[40], name[] = "name";
		size_t n = rng_below(&seed, sizeof text);
		for (size_t k = 0; k < n; k++) text[k] = (char)(1 + rng_below(&seed, 127));
		text[n] = 0;
		log_warn("%s", text);
		log_event(LOG_ERROR, text, (const char *const[]){name, text, NULL});
		const char *line = logged(&world);
		json_t *first = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL),
			   *second = json_loads(strchr(line, '\n') + 1, 0, NULL);
		REQUIRE(first && second, "%s", line);
		ck_assert_str_eq(json_string_value(json_object_get(first, "message")), text);
		ck_assert_str_eq(json_string_value(json_object_get(first, "level")), "warn");
		ck_assert_int_eq(strncmp(json_string_value(json_object_get(first, "function")), "lines_for_programs", 18), 0);
		ck_assert(json_object_get(first, "time"));
		ck_assert_str_eq(json_string_value(json_object_get(second, "level")), "error");
		ck_assert_str_eq(json_string_value(json_object_get(second, "name")), text);
		json_decref(first);
		json_decref(second);
	}
}
END_TEST

START_TEST(the_journal_gets_levels) {
	struct stat st;
	char stream[64];
	ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_setup(LOG_INFO, false);
	log_warn("x");
	ck_assert_str_eq(logged(&world), "<4>x\n");
	setenv("JOURNAL_STREAM", "1:1", 1); /* of another process */
	log_setup(LOG_INFO, false);
	log_warn("x");
	ck_assert(has(logged(&world), " warn  x\n"));
	unsetenv("JOURNAL_STREAM");
}
END_TEST

START_TEST(keeps_errno) {
	errno = EXDEV;
	log_error("x");
	log_event(LOG_ERROR, "x", (const char *const[]){"a", "b", NULL});
	ck_assert_int_eq(errno, EXDEV);
}
END_TEST

/* --- a reader that never reads ------------------------------------------------------------------------------------ */

static void begin_pipe(struct world *w) {
	int p[2];
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ck_assert_int_ge(fcntl(p[1], F_SETPIPE_SZ, 8192), 0);
	fcntl(p[0], F_SETFL, O_NONBLOCK);
	redirect(w, p[1]);
	close(p[1]);
	w->fd = p[0];
}

static const char *drain(struct world *w) {
	size_t n = 0;
	ssize_t r;
	while ((r = read(w->fd, w->text + n, sizeof w->text - 1 - n)) > 0) n += (size_t)r;
	w->text[n] = 0;
	return w->text;
}

/* The pipe is a blocking one: without a check in the logger this test would not end. */
START_TEST(never_waits_for_a_reader) {
	static const char *const modes[] = {"text", "json"};
	for (size_t mode = 0; mode < ARRAY_SIZE(modes); mode++) {
		struct world w;
		char much[1500];
		unsigned long dropped = 0;
		begin_pipe(&w);
		log_setup(LOG_INFO, mode == 1);
		memset(much, '\x01', sizeof much); /* six bytes each in JSON: longer than one write may be */
		much[sizeof much - 1] = 0;
		for (int i = 0; i < 30; i++) log_info("%s", much);
		drain(&w);
		log_info("there is room again");
		const char *text = drain(&w), *told = strstr(text, " log lines were dropped");
		REQUIRE(told, "%s: %s", modes[mode], text);
		while (told > text && told[-1] >= '0' && told[-1] <= '9') told--;
		dropped = strtoul(told, NULL, 10);
		ck_assert_msg(dropped > 20 && dropped <= 30, "%lu", dropped);
		ck_assert(has(text, "there is room again"));
		if (mode == 1) /* each line is still valid JSON, except for an unfinished one */
			for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
				json_t *line = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
				REQUIRE(line || (at == text && *at == '\n'), "%s", at);
				json_decref(line);
			}
		log_info("and nothing more is said of it");
		ck_assert(!has(drain(&w), "dropped"));
		end(&w);
	}
}
END_TEST

START_TEST(no_memory_is_said_and_ends_the_program) {
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) log_no_memory();
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EX_OSERR);
	ck_assert_str_eq(logged(&world), "out of memory: the program ends\n");
}
END_TEST

RUN_TESTS_WITH(setup, teardown, "log", levels, lines_for_people, lines_for_programs, the_journal_gets_levels,
			   keeps_errno, never_waits_for_a_reader, no_memory_is_said_and_ends_the_program)
