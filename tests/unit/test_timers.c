/* SPDX-License-Identifier: MIT */
#include "core/session_parts.h"
#include "dialect/claude/claude.h"

#include "carrying.h"

#define NOW 1000000000000

static struct timers t;

static bool say(const char *text, int64_t now) {
	struct chunk line = chunk_copy(text, strlen(text));
	struct envelope e;
	ck_assert(line.data && scan_envelope(text, strlen(text), &e));
	bool changed = claude_dialect.read_timers(&t, claude_dialect.kind(&e), line, &e, now);
	chunk_drop(&line);
	return changed;
}

static void call(const char *id, const char *tool, const char *input) {
	char line[1024];
	snprintf(
		line, sizeof line,
		"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"now\"},{\"type\":\"tool_use\","
		"\"id\":\"%s\",\"name\":\"%s\",\"input\":%s}]}}",
		id, tool, input);
	say(line, NOW);
}

static bool result(const char *id, const char *more, const char *value) {
	char line[2048];
	snprintf(line, sizeof line,
			 "{\"type\":\"user\",\"message\":{\"content\":[{\"tool_use_id\":\"%s\",\"type\":\"tool_result\","
			 "\"content\":\"x\"%s}]},"
			 "\"tool_use_result\":%s}",
			 id, more, value);
	return say(line, NOW);
}

static bool use(const char *tool, const char *input, const char *value) {
	static int n;
	char id[32];
	snprintf(id, sizeof id, "toolu_%d", ++n);
	call(id, tool, input);
	bool changed = result(id, "", value);
	ck_assert_ptr_null(t.calls);
	return changed;
}

static size_t armed(void) {
	return timers_count(&t, NOW);
}

static void begin(void) {
	timers_free(&t);
}

#define RECURRING "{\"id\":\"j1\",\"humanSchedule\":\"Every minute\",\"recurring\":true,\"durable\":false}"
#define ONCE "{\"id\":\"j2\",\"humanSchedule\":\"At ten\",\"recurring\":false,\"nextFireAt\":1000000060000.25}"

START_TEST(jobs) {
	begin();
	ck_assert(use("CronCreate", "{\"cron\":\"* * * * *\",\"prompt\":\"tick\"}", RECURRING));
	ck_assert_str_eq(t.armed, "[{\"id\":\"j1\",\"schedule\":\"Every minute\",\"prompt\":\"tick\",\"recurring\":true,"
							  "\"due_ms\":0,\"until_ms\":0}]");
	ck_assert(use("CronCreate", "{\"cron\":\"0 10 * * *\",\"prompt\":\"once\",\"recurring\":false}", ONCE));
	ck_assert_uint_eq(armed(), 2);
	ck_assert(use("CronDelete", "{\"id\":\"j1\"}", "{\"id\":\"j1\"}"));
	ck_assert_uint_eq(armed(), 1);
	ck_assert(!use("CronDelete", "{\"id\":\"j1\"}", "{\"id\":\"j1\"}"));
	ck_assert(use("CronDelete", "{\"id\":\"j2\"}", "{\"id\":\"j2\"}"));
	ck_assert_uint_eq(armed(), 0);
	ck_assert_ptr_null(t.armed);
}
END_TEST

/* Only successful calls count, and only of these tools. */
START_TEST(what_arms_nothing) {
	begin();
	call("toolu_a", "CronCreate", "{}");
	ck_assert(!result("toolu_b", "", RECURRING));
	ck_assert(!result("toolu_a", ",\"is_error\":true", RECURRING));
	ck_assert_ptr_null(t.calls);
	ck_assert(!result("toolu_a", "", RECURRING));
	ck_assert(!use("CronCreate", "{}", "\"Error: no\""));
	ck_assert(!use("CronCreate", "{}", "{\"id\":7}"));
	ck_assert(!use("mcp__x__CronCreate", "{}", RECURRING));
	ck_assert(!say("{\"type\":\"assistant\",\"message\":{\"content\":\"\\\"CronCreate\\\"\"}}", NOW));
	ck_assert(!say("{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"\x01\",\"name\":"
				   "\"CronCreate\"}]}}",
				   NOW));
	ck_assert(!t.calls && !t.armed);
}
END_TEST

START_TEST(a_job_fires) {
	static const char fired[] =
		"{\"type\":\"command_lifecycle\",\"state\":\"started\",\"wakeup_source\":\"schedule_wakeup\"}";
	begin();
	use("CronCreate", "{}", RECURRING);
	use("CronCreate", "{}", ONCE);
	ck_assert(!say(fired, NOW + 30000)); /* the other one */
	ck_assert_uint_eq(armed(), 2);
	ck_assert(say(fired, NOW + 60000));
	ck_assert_uint_eq(armed(), 1);
	ck_assert(!say(fired, NOW + 120000));
	ck_assert_uint_eq(armed(), 1);
}
END_TEST

START_TEST(a_job_that_never_fires) {
	begin();
	use("CronCreate", "{}", ONCE);
	ck_assert_uint_eq(timers_count(&t, NOW + 60000 + TIMERS_LATE_MS), 1);
	ck_assert_uint_eq(timers_count(&t, NOW + 60001 + TIMERS_LATE_MS), 0);
	use("CronCreate", "{}", "{\"id\":\"j3\",\"recurring\":true,\"maxAgeMs\":5000}");
	ck_assert_uint_eq(timers_count(&t, NOW + 5000), 1);
	ck_assert_uint_eq(timers_count(&t, NOW + 5001), 0);
	use("CronCreate", "{}", "{\"id\":\"j4\",\"recurring\":false}"); /* 2.1.197 */
	ck_assert_uint_eq(timers_count(&t, NOW * 2), 1);
}
END_TEST

START_TEST(the_wakeup) {
	static const char stale[] =
		"{\"type\":\"command_lifecycle\",\"state\":\"started\",\"wakeup_source\":\"loop_wakeup\","
		"\"scheduled_for\":1000000060000}";
	begin();
	use("CronCreate", "{}", RECURRING);
	ck_assert(use("ScheduleWakeup", "{\"prompt\":\"a\"}", "{\"scheduledFor\":1000000060000}"));
	ck_assert(use("ScheduleWakeup", "{\"prompt\":\"b\"}", "{\"scheduledFor\":1000000090000}"));
	ck_assert_uint_eq(armed(), 2);
	ck_assert(!say(stale, NOW + 60000)); /* a superseded one */
	ck_assert_uint_eq(armed(), 2);
	ck_assert(timers_child_gone(&t)); /* the next child arms the job again, but not a wake-up */
	ck_assert_uint_eq(armed(), 1);
	ck_assert(use("ScheduleWakeup", "{}", "{\"scheduledFor\":1000000060000}"));
	ck_assert(say(stale, NOW + 60000));
	ck_assert(use("ScheduleWakeup", "{}", "{\"scheduledFor\":1000000060000}"));
	ck_assert(use("ScheduleWakeup", "{\"stop\":true}", "{\"scheduledFor\":0,\"stopped\":true}"));
	ck_assert(!use("ScheduleWakeup", "{}", "{\"scheduledFor\":0}"));
	ck_assert(use("ScheduleWakeup", "{}", "{\"scheduledFor\":1000000060000}"));
	ck_assert(use("CronDelete", "{}", "{\"id\":\"9\",\"endedLoopWakeup\":true}"));
	ck_assert_uint_eq(armed(), 1);
}
END_TEST

START_TEST(a_list_is_all_that_there_is) {
	begin();
	use("CronCreate", "{}", "{\"id\":\"j1\",\"recurring\":true,\"maxAgeMs\":5000}");
	use("CronCreate", "{}", ONCE);
	use("ScheduleWakeup", "{\"prompt\":\"a\"}", "{\"scheduledFor\":1000000090000}");
	ck_assert(use("CronList", "{}",
				  "{\"jobs\":[{\"id\":\"j1\",\"humanSchedule\":\"h\",\"prompt\":\"p\",\"recurring\":true},"
				  "{\"id\":\"w\",\"humanSchedule\":\"h\",\"prompt\":\"a\",\"nextFireAt\":1000000090000},"
				  "{\"id\":\"j5\",\"recurring\":true}]}"));
	ck_assert_str_eq(
		t.armed, "[{\"id\":\"j1\",\"schedule\":\"h\",\"prompt\":\"p\",\"recurring\":true,\"due_ms\":0,\"until_ms\":"
				 "1000000005000},{\"id\":null,\"schedule\":null,\"prompt\":\"a\",\"recurring\":false,\"due_ms\":"
				 "1000000090000,\"until_ms\":0},{\"id\":\"j5\",\"schedule\":null,\"prompt\":null,\"recurring\":true,"
				 "\"due_ms\":0,\"until_ms\":0}]");
	ck_assert(use("CronList", "{}", "{\"jobs\":[]}"));
	ck_assert_ptr_null(t.armed);
}
END_TEST

/* Without the text of an agent. */
START_TEST(on_disk) {
	begin();
	ck_assert_ptr_null(timers_text(&t));
	use("CronCreate", "{\"prompt\":\"secret\"}", RECURRING);
	use("CronCreate", "{\"prompt\":\"secret\"}", ONCE);
	char *text = timers_text(&t);
	ck_assert(text && !strstr(text, "secret") && !strstr(text, "Every"));
	timers_restore(&t, text);
	ck_assert_uint_eq(armed(), 2);
	ck_assert(say("{\"type\":\"command_lifecycle\",\"state\":\"started\",\"wakeup_source\":\"schedule_wakeup\"}",
				  NOW + 60000));
	ck_assert_uint_eq(armed(), 1);
	timers_restore(&t, "{}");
	ck_assert_uint_eq(armed(), 0);
	free(text);
}
END_TEST

/* More than the limit: the first ones stay. */
START_TEST(many) {
	begin();
	for (int i = 0; i < 2000; i++) {
		char value[64];
		snprintf(value, sizeof value, "{\"id\":\"j%d\",\"recurring\":true}", i);
		use("CronCreate", "{}", value);
	}
	ck_assert(armed() > 500 && armed() < 2000 && strlen(t.armed) <= TIMERS_BYTES);
	for (int i = 0; i < 2000; i++) {
		char id[32];
		snprintf(id, sizeof id, "toolu_x%d", i);
		call(id, "CronCreate", "{}");
	}
	ck_assert(strlen(t.calls) <= TIMERS_BYTES);
	begin();
}
END_TEST

static void carry_it(struct carry *c, void *thing) {
	session_carry_timers(c, thing);
}

static void begin_other(void *thing) {
	*(struct timers *)thing = (struct timers){0};
}

static void end_other(void *thing) {
	timers_free(thing);
}

START_TEST(an_upgrade) {
	struct timers other = {0};
	struct error error;
	begin();
	use("CronCreate", "{}", RECURRING);
	call("toolu_a", "CronCreate", "{}");
	struct saved s = carry_save_thing(carry_it, &t);
	ck_assert_msg(carry_load_thing(s, s.len, carry_it, &other, &error), "%s", error.text);
	ck_assert_str_eq(other.armed, t.armed);
	ck_assert_str_eq(other.calls, t.calls);
	timers_free(&other);
	carry_spoil_thing(s, carry_it, &other, begin_other, end_other);
	free(s.data);
	begin();
}
END_TEST

RUN_TESTS("timers", jobs, what_arms_nothing, a_job_fires, a_job_that_never_fires, the_wakeup,
		  a_list_is_all_that_there_is, on_disk, many, an_upgrade)
