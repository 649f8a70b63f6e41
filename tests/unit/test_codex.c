/* SPDX-License-Identifier: MIT
 *
 * The dialect codex through its table.
 */
#include "dialect/codex/codex.h"

static const struct dialect *const d = &codex_dialect;

#include "dialect.h"
#define NOTE(method, params) "{\"method\":\"" method "\",\"params\":{\"threadId\":\"t\"" params "},\"emittedAtMs\":1}"

/* --- lines -------------------------------------------------------------------------------------------------------- */

START_TEST(kinds_of_lines) {
	static const struct kind_row lines[] = {
		{NOTE("turn/completed", ",\"turn\":{\"status\":\"interrupted\"}"), LINE_RESULT},
		{NOTE("serverRequest/resolved", ",\"requestId\":\"0\""), LINE_CANCEL},
		{"{\"id\":1,\"result\":{\"thread\":{\"id\":\"t\"}}}", LINE_RESPONSE},
		{NOTE("turn/started", ""), LINE_OTHER},
		{NOTE("item/agentMessage/delta", ""), LINE_STREAM_EVENT},
		{NOTE("item/reasoning/textDelta", ""), LINE_STREAM_EVENT},
		{NOTE("item/completed", ""), LINE_OTHER},
		{NOTE("serverRequest/resolved", ""), LINE_OTHER},
		{"{\"method\":\"item/fileChange/requestApproval\",\"id\":0,\"params\":{}}", LINE_REQUEST},
		{"{\"error\":{\"code\":1,\"message\":\"\"},\"id\":1}", LINE_RESPONSE},
		{"{\"x\":1}", LINE_OTHER},
	};
	check_kinds(lines, ARRAY_SIZE(lines));
	has(scan(lines[0].line).is_error, "true");
	has(scan(lines[0].line).session_id, "\"t\"");
	has(scan(lines[1].line).request_id, "\"0\"");
	has(scan(lines[2].line).session_id, "\"t\"");
	has(scan(NOTE("turn/completed", ",\"turn\":{\"status\":\"completed\"}")).is_error, "false");
}
END_TEST

START_TEST(what_lines_report) {
	static const char begin[] = NOTE("turn/started", ",\"turn\":{\"id\":\"u\"}");
	static const char settings[] = NOTE("thread/settings/updated", ",\"threadSettings\":{\"model\":\"big\"}");
	struct envelope e = scan(begin);
	struct report r = {0};
	d->read((struct chunk){NULL, begin, sizeof begin - 1}, LINE_OTHER, &e, &r);
	ck_assert(r.works && !r.begins && !r.state);
	e = scan(settings);
	r = (struct report){0};
	d->read((struct chunk){NULL, settings, sizeof settings - 1}, LINE_OTHER, &e, &r);
	ck_assert(!r.works);
	has(r.model, "\"big\"");
}
END_TEST

START_TEST(a_long_approval_is_known_by_its_beginning) {
	static const char text[] =
		"{\"method\":\"item/commandExecution/requestApproval\",\"id\":7,\"params\":{\"command\":\"";
	struct head h;
	d->read_head((struct chunk){NULL, text, sizeof text - 1}, &h);
	ck_assert(h.kind == LINE_REQUEST && h.ask == ASK_TOOL);
	has(h.id, "7");
}
END_TEST

START_TEST(ends_of_turns) {
	struct turn_result r = d->read_result(span_of(
		NOTE("turn/completed", ",\"turn\":{\"status\":\"completed\",\"durationMs\":12,\"items\":[{\"type\":"
							   "\"agentMessage\",\"text\":\"a\"},{\"type\":\"agentMessage\",\"text\":\"b\"}]}")));
	ck_assert(r.outcome == TURN_SUCCESS && r.ms == 12 && r.input == TURN_UNKNOWN && r.nano_usd == TURN_UNKNOWN);
	has(r.text, "\"b\"");
	r = d->read_result(
		span_of(NOTE("turn/completed", ",\"turn\":{\"status\":\"failed\",\"error\":{\"message\":\"gone\"}}")));
	ck_assert(r.outcome == TURN_ERROR && r.ms == TURN_UNKNOWN);
	has(r.text, "\"gone\"");
	r = d->read_result(span_of(NOTE("turn/completed", ",\"turn\":{\"status\":\"interrupted\"}")));
	ck_assert(r.outcome == TURN_INTERRUPTED);
}
END_TEST

/* --- asks --------------------------------------------------------------------------------------------------------- */

#define AMEND(words) "{\"acceptWithExecpolicyAmendment\":{\"execpolicy_amendment\":[" words "]}}"
static const char command[] =
	"{\"threadId\":\"t\",\"command\":\"ls \\\\\\\" x\",\"reason\":\"why\",\"availableDecisions\":"
	"[\"accept\"," AMEND("\"ls\",\"a \\\\\\\" b\"") ",\"cancel\"]}";
static const char change[] = "{\"threadId\":\"t\",\"itemId\":\"i\",\"reason\":\"why\",\"grantRoot\":null}";
static const char profile[] = "{\"threadId\":\"t\",\"permissions\":{\"network\":{\"enabled\":true}}}";

START_TEST(parts_of_an_approval) {
	has(d->ask_part(ASK_TOOL, span_of(command), ASK_PART_TOOL), "\"commandExecution\"");
	has(d->ask_part(ASK_TOOL, span_of(command), ASK_PART_SUBJECT), "\"ls \\\\\\\" x\"");
	has(d->ask_part(ASK_TOOL, span_of(command), ASK_PART_INPUT), command);
	has(d->ask_part(ASK_TOOL, span_of(change), ASK_PART_TOOL), "\"fileChange\"");
	has(d->ask_part(ASK_TOOL, span_of(profile), ASK_PART_TOOL), "\"permissions\"");
	has(d->ask_part(ASK_ELICITATION, span_of("{\"message\":\"?\"}"), ASK_PART_TOOL), NULL);
	has(d->summary(span_of(change)), "\"why\"");
	has(d->summary(span_of("{\"message\":\"?\"}")), "\"?\"");
}
END_TEST

#define DECIDED(decision) "{\"id\":1,\"result\":{\"decision\":" decision "}}"

START_TEST(answers_to_an_approval) {
	static const struct {
		const char *request, *answer, *decision, *grant; /* decision NULL: it is refused */
	} all[] = {
		{command, DECIDED("\"accept\""), "allow", NULL},
		{command, DECIDED("\"cancel\""), "deny", NULL},
		{command, DECIDED("\"decline\""), "deny", NULL}, /* the agent takes it though it does not offer it */
		{command, DECIDED("\"acceptForSession\""), NULL, NULL},
		{command, DECIDED(AMEND(" \"ls\" , \"a \\\\\\\" b\"")), "allow", "ls a \\\" b always"},
		{command, DECIDED(AMEND("\"ls\",\"a \\\\\\\"  b\"")), NULL, NULL},
		{command, DECIDED(AMEND("\"ls\"")), NULL, NULL},
		{command, DECIDED("1"), NULL, NULL},
		{command, DECIDED("null"), NULL, NULL},
		{command, "{\"result\":{}}", NULL, NULL},
		{command, "{\"result\":{\"permissions\":{}}}", NULL, NULL},
		{command, "{\"error\":{\"code\":-32601,\"message\":\"?\"}}", "error", NULL},
		{change, DECIDED("\"acceptForSession\""), "allow", "session"},
		{change, DECIDED(AMEND("\"ls\"")), NULL, NULL},
		{profile, "{\"result\":{\"permissions\":{}}}", "deny", NULL},
		{profile, "{\"result\":{\"permissions\":{\"network\":{}},\"scope\":\"session\"}}", "allow", "session"},
		{profile, DECIDED("\"accept\""), NULL, NULL},
	};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct span request = span_of(all[i].request), answer = span_of(all[i].answer);
		const char *wrong = d->check_answer(ASK_TOOL, request, answer);
		struct changes ch;
		REQUIRE(!wrong == (all[i].decision != NULL), "%zu: %s: %s", i, all[i].answer, wrong ? wrong : "accepted");
		if (wrong) continue;
		ck_assert_str_eq(d->decision(ASK_TOOL, request, answer), all[i].decision);
		d->read_changes(ASK_TOOL, request, answer, &ch);
		ck_assert_uint_eq(ch.n_grants, all[i].grant ? 1 : 0);
		if (all[i].grant) ck_assert_str_eq(ch.grants[0], all[i].grant);
	}
}
END_TEST

START_TEST(answers_of_the_daemon) {
	struct buf b = B;
	struct memo m = {0};
	d->put_tool_deny(&b, span_of(command), "no");
	ck_assert_str_eq(built(&b), "{\"decision\":\"decline\"}");
	d->put_tool_allow(&b, span_of(change));
	ck_assert_str_eq(built(&b), "{\"decision\":\"accept\"}");
	d->put_tool_deny(&b, span_of(profile), "no");
	ck_assert_str_eq(built(&b), "{\"permissions\":{}}");
	d->put_tool_allow(&b, span_of(profile));
	ck_assert_str_eq(built(&b), "{\"permissions\":{\"network\":{\"enabled\":true}}}");
	d->put_cancel_form(&b, SPAN_NONE);
	ck_assert_str_eq(built(&b), "{\"action\":\"cancel\",\"content\":null}");
	d->put_cancel(&b, span_of("\"req\""), span_of(change));
	ck_assert_str_eq(built(&b), "{\"method\":\"serverRequest/resolved\",\"params\":{\"threadId\":\"t\",\"requestId\":"
								"\"req\"}}\n");
	d->put_cancel(&b, span_of("7"), SPAN_NONE); /* to the agent: there is no such line */
	ck_assert_uint_eq(b.len, 0);
	d->put_interrupt(&b, "9", "t", &m);
	ck_assert_uint_eq(b.len, 0);
	memo_set(&m, CODEX_TURN, span_of("\"u\""));
	d->put_interrupt(&b, "9", "t", &m);
	ck_assert_str_eq(built(&b), "{\"id\":9,\"method\":\"turn/interrupt\",\"params\":{\"threadId\":\"t\",\"turnId\":"
								"\"u\"}}\n");
	memo_free(&m);
}
END_TEST

/* --- the start ---------------------------------------------------------------------------------------------------- */

static void take(struct memo *m, unsigned n, const char *answer) {
	struct envelope e = scan(answer);
	struct buf why = B;
	REQUIRE(d->take_step(n, &e, m, &why), "%s", built(&why));
}

static void remember(struct memo *m, const char *line, bool only) {
	struct envelope e = scan(line);
	ck_assert(d->remember(m, &e) == only);
}

START_TEST(ways_to_the_thread) {
	struct memo m = {0};
	struct buf b = B;
	struct dialect_start start = {.cwd = "/w", .memo = &m};
	ck_assert(d->put_step(&b, "1", 0, &start) == STEP_SENT);
	ck_assert_ptr_nonnull(strstr(built(&b), "\"method\":\"initialize\""));
	ck_assert(d->put_step(&b, "2", 1, &start) == STEP_SENT);
	ck_assert_str_eq(built(&b), "{\"method\":\"initialized\",\"params\":{}}\n"
								"{\"id\":2,\"method\":\"thread/start\",\"params\":{\"cwd\":\"/w\"}}\n");
	start.waits = true;
	ck_assert(d->put_step(&b, "2", 1, &start) == STEP_WAITS);
	ck_assert_uint_eq(b.len, 0);
	memo_set(&m, "params", span_of("{\"cwd\":\"/x\",\"model\":\"m\",\"excludeTurns\":false,\"threadId\":\"old\"}"));
	ck_assert(d->put_step(&b, "2", 1, &start) == STEP_SENT);
	ck_assert_ptr_nonnull(strstr(built(&b), "\"thread/start\",\"params\":{\"cwd\":\"/x\",\"model\":\"m\"}}"));
	start.conversation = "t\"";
	ck_assert(d->put_step(&b, "2", 1, &start) == STEP_SENT);
	ck_assert_ptr_nonnull(strstr(built(&b), "\"thread/resume\",\"params\":{\"cwd\":\"/x\",\"excludeTurns\":true,"
											"\"threadId\":\"t\\\"\",\"model\":\"m\"}}"));
	memo_free(&m);
}
END_TEST

START_TEST(settings_come_back) {
	struct memo m = {0};
	struct buf b = B;
	struct dialect_start start = {.cwd = "/w", .conversation = "t", .memo = &m};
	ck_assert(d->put_step(&b, "3", 2, &start) == STEP_NONE);
	remember(&m, NOTE("thread/settings/updated", ",\"threadSettings\":{\"approvalPolicy\":\"never\",\"other\":1}"),
			 true);
	remember(&m, NOTE("thread/settings/updated", ",\"threadSettings\":{\"model\":\"m\",\"other\":1}"), true);
	ck_assert(d->put_step(&b, "3", 2, &start) == STEP_SENT);
	ck_assert_str_eq(built(&b), "{\"id\":3,\"method\":\"thread/settings/update\",\"params\":{\"threadId\":\"t\","
								"\"model\":\"m\"}}\n");
	struct envelope e = scan("{\"id\":3,\"error\":{\"code\":1,\"message\":\"gone\"}}");
	struct buf why = B;
	ck_assert(!d->take_step(2, &e, &m, &why));
	ck_assert_ptr_nonnull(strstr(built(&why), "gone"));
	ck_assert(d->put_step(&b, "3", 2, &start) == STEP_NONE); /* the next try begins without them */
	remember(&m, NOTE("thread/settings/updated", ",\"threadSettings\":{}"), true);
	start.conversation = NULL;
	ck_assert(d->put_step(&b, "1", 0, &start) == STEP_SENT);
	buf_free(&b);
	ck_assert_ptr_null(memo_get(&m, "settings").p); /* of another thread */
	memo_free(&m);
}
END_TEST

START_TEST(late_clients_get_what_was_said_to_all) {
	struct memo m = {0};
	struct buf b = B;
	remember(&m, NOTE("thread/name/updated", ",\"threadName\":\"a\""), true);
	remember(&m, NOTE("thread/name/updated", ",\"threadName\":\"b\""), true);
	remember(&m, NOTE("turn/started", ",\"turn\":{\"id\":\"u\"}"), false);
	d->put_noted(&b, &m, "t");
	ck_assert_str_eq(built(&b), "{\"method\":\"thread/name/updated\",\"params\":{\"threadId\":\"t\",\"threadName\":"
								"\"b\"}}\n");
	has(memo_get(&m, CODEX_TURN), "\"u\"");
	remember(&m, "{\"id\":1,\"result\":{\"turn\":{\"id\":\"v\"}}}", false); /* the turn that a prompt is part of */
	has(memo_get(&m, CODEX_TURN), "\"v\"");
	remember(&m, "{\"id\":1,\"result\":{\"turnId\":\"w\"}}", false);
	has(memo_get(&m, CODEX_TURN), "\"v\"");
	memo_free(&m);
}
END_TEST

static enum dialect_kept asked(struct dialect_ask *ask, const char *line, struct buf *body) {
	static struct envelope e;
	const char *error = NULL;
	e = scan(line);
	ask->e = &e;
	enum dialect_kept kept = d->kept(ask, body, &error);
	ck_assert((kept == KEPT_REFUSED || kept == KEPT_FORBIDDEN) == (error != NULL));
	return kept;
}

#define RPC(method, params) "{\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"

START_TEST(requests_that_the_start_answers) {
	struct memo m = {0};
	struct buf b = B;
	struct dialect_ask ask = {.waits = true, .memo = &m};
	ck_assert(asked(&ask, RPC("initialize", ""), &b) == KEPT_LATER);
	take(&m, 0, "{\"id\":1,\"result\":{\"userAgent\":\"x\"}}");
	ck_assert(asked(&ask, RPC("initialize", ""), &b) == KEPT_ANSWER);
	ck_assert_str_eq(built(&b), "{\"userAgent\":\"x\"}");
	ck_assert(asked(&ask, RPC("thread/start", "\"cwd\":\"/x\""), &b) == KEPT_FORBIDDEN);
	ask.may_begin = true;
	ck_assert(asked(&ask, RPC("thread/start", "\"cwd\":\"/x\""), &b) == KEPT_LATER);
	ck_assert(asked(&ask, RPC("thread/start", ""), &b) == KEPT_ANOTHER); /* a second one */
	take(&m, 1, "{\"id\":2,\"result\":{\"thread\":{\"id\":\"t\"}}}");
	ask = (struct dialect_ask){.conversation = "t", .ready = true, .again = true, .memo = &m};
	ck_assert(asked(&ask, RPC("thread/start", "\"cwd\":\"/x\""), &b) == KEPT_ANSWER);
	ck_assert_str_eq(built(&b), "{\"thread\":{\"id\":\"t\"}}");
	ask.again = false;
	ck_assert(asked(&ask, RPC("thread/resume", "\"threadId\":\"t\""), &b) == KEPT_PASS);
	ck_assert(asked(&ask, RPC("thread/resume", "\"threadId\":\"o\""), &b) == KEPT_FORBIDDEN);
	ask.may_begin = true;
	ck_assert(asked(&ask, RPC("thread/resume", "\"threadId\":\"o\""), &b) == KEPT_ANOTHER);
	ask.ready = false;
	ck_assert(asked(&ask, RPC("thread/resume", "\"threadId\":\"t\""), &b) == KEPT_LATER);
	memo_free(&m);
	ask = (struct dialect_ask){.waits = true, .memo = &m};
	ck_assert(asked(&ask, RPC("thread/resume", "\"threadId\":\"o\""), &b) == KEPT_FORBIDDEN);
	ask.may_begin = true;
	ck_assert(asked(&ask, RPC("thread/resume", "\"threadId\":\"o\""), &b) == KEPT_LATER);
	has(ask.resumes, "\"o\"");
	memo_free(&m);
}
END_TEST

/* --- lines of clients --------------------------------------------------------------------------------------------- */

#define TEXT "\"threadId\":\"t\",\"input\":[{\"type\":\"text\",\"text\":\"hi\"}]"

START_TEST(rights) {
	static const struct right_row rows[] = {
		{RPC("turn/start", TEXT ",\"clientUserMessageId\":\"x\",\"model\":null"), false, true},
		{RPC("turn/start", TEXT ",\"approvalPolicy\":\"never\""), false, false},
		{RPC("turn/start", TEXT ",\"cwd\":\"/\""), false, false},
		{RPC("turn/start", "\"input\":[{\"type\":\"localImage\",\"path\":\"/etc/shadow\"}]"), false, false},
		{RPC("turn/start", "\"input\":[{\"type\":\"mention\",\"path\":\"/etc/shadow\"}]"), false, false},
		{RPC("turn/steer", TEXT ",\"expectedTurnId\":\"u\""), false, true},
		{RPC("turn/interrupt", "\"threadId\":\"t\",\"turnId\":\"u\""), false, true},
		{RPC("initialize", "\"clientInfo\":{}"), true, true},
		{"{\"method\":\"initialized\"}", true, true},
		{RPC("thread/start", "\"cwd\":\"/\""), false, false},
		{RPC("thread/resume", "\"threadId\":\"t\",\"excludeTurns\":true"), true, true},
		{RPC("thread/resume", "\"threadId\":\"t\",\"approvalPolicy\":\"never\""), false, false},
		{RPC("thread/read", "\"threadId\":\"t\",\"includeTurns\":true"), true, true},
		{RPC("thread/settings/update", "\"threadId\":\"t\""), false, false},
		{RPC("command/exec", "\"command\":[]"), false, false},
		{RPC("fs/writeFile", ""), false, false},
		{"{\"id\":\"x\",\"result\":{}}", true, true},
		{"{\"method\":\"other\"}", false, false},
	};
	check_rights(rows, ARRAY_SIZE(rows));
}
END_TEST

START_TEST(prompts_that_are_none) {
	static const char *const lines[] = {
		RPC("turn/start", "\"input\":\"hi\""),
		RPC("turn/start", "\"threadId\":\"t\""),
		"{\"method\":\"turn/start\",\"params\":{" TEXT "}}",
		"{\"method\":\"turn/steer\",\"params\":{" TEXT "}}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct message m;
		struct chunk rewritten;
		struct span id;
		struct error error;
		REQUIRE(!d->check(lines[i], strlen(lines[i]), &m, &rewritten, &error, &id), "%s", lines[i]);
	}
}
END_TEST

RUN_TESTS("codex", kinds_of_lines, what_lines_report, a_long_approval_is_known_by_its_beginning, ends_of_turns,
		  parts_of_an_approval, answers_to_an_approval, answers_of_the_daemon, ways_to_the_thread, settings_come_back,
		  late_clients_get_what_was_said_to_all, requests_that_the_start_answers, rights, prompts_that_are_none)
