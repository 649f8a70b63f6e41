/* SPDX-License-Identifier: MIT
 *
 * The fields of forms and the questions of tools: what may be entered, and the answer.
 */
#include "base/macros.h"
#include "base/str.h"
#include "ctl/form.h"
#include "harness.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char *as_text(json_t *value, char *out, size_t size) {
	char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	snprintf(out, size, "%s", text ? text : "");
	free(text);
	json_decref(value);
	return out;
}

/* want: the JSON of the value; NULL: why is the error, or NULL for a field that is left out. */
static void entered(const char *property, bool required, const char *text, const char *want, const char *why) {
	char *form = str_printf("{\"properties\":{\"x\":%s},\"required\":[%s]}", property, required ? "\"x\"" : "");
	struct speech_ask ask = {.kind = SPEECH_ASKS_FORM, .schema = span_of(form)};
	struct form_field f;
	char got[500], *error;
	ck_assert(form_read(&ask, 0, &f) && f.required == required);
	ck_assert(!form_read(&ask, 1, &(struct form_field){0}));
	as_text(form_value(&f, text, &error), got, sizeof got);
	ck_assert_str_eq(got, want ? want : "");
	ck_assert_str_eq(error ? error : "", why ? why : "");
	free(error);
	free(form);
}

START_TEST(texts) {
	static const char limited[] = "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}";
	entered("{\"type\":\"string\"}", true, " a b ", "\"a b\"", NULL);
	entered("{\"type\":\"string\"}", true, " ", NULL, "an answer is needed");
	entered("{\"type\":\"string\"}", false, "", NULL, NULL);
	entered("{\"type\":\"string\",\"default\":\"d\"}", true, "", "\"d\"", NULL);
	entered("{\"type\":\"string\",\"default\":null}", true, "", NULL, "an answer is needed");
	entered(limited, true, "äöü", "\"äöü\"", NULL);
	entered(limited, true, "a", NULL, "a: is not text, 2 to 3 characters");
	entered(limited, true, "abcd", NULL, "abcd: is not text, 2 to 3 characters");
	entered("{\"type\":\"string\",\"minLength\":2}", true, "a", NULL, "a: is not text, at least 2 characters");
	entered("{\"type\":\"string\",\"format\":\"email\"}", true, "a", NULL, "a: is not an email address");
	entered("{\"type\":\"string\",\"format\":\"email\"}", true, "a@b", "\"a@b\"", NULL);
	entered("{\"type\":\"string\",\"format\":\"date\"}", true, "1.2.3", NULL,
			"1.2.3: is not a date such as 2025-12-31");
	entered("{\"type\":\"string\",\"format\":\"date\"}", true, "2025-02-01", "\"2025-02-01\"", NULL);
	entered("{\"type\":\"string\",\"format\":\"new\"}", true, "1.2.3", "\"1.2.3\"", NULL);
}
END_TEST

START_TEST(numbers) {
	static const char limited[] = "{\"type\":\"integer\",\"minimum\":-1,\"maximum\":10}";
	entered("{\"type\":\"number\"}", true, "1.5", "1.5", NULL);
	entered("{\"type\":\"number\"}", true, "12", "12", NULL);
	entered("{\"type\":\"number\"}", true, "many", NULL, "many: is not a number");
	entered("{\"type\":\"number\"}", true, "\"1\"", NULL, "\"1\": is not a number");
	entered("{\"type\":\"number\",\"maximum\":0.5}", true, "0.6", NULL, "0.6: is not a number, at most 0.5");
	entered("{\"type\":\"integer\"}", true, "1.5", NULL, "1.5: is not a whole number");
	entered("{\"type\":\"integer\"}", true, "1 2", NULL, "1 2: is not a whole number");
	entered(limited, true, "-1", "-1", NULL);
	entered(limited, true, "11", NULL, "11: is not a whole number, -1 to 10");
	entered("{\"type\":\"integer\",\"default\":7}", false, "", "7", NULL);
	entered("{\"type\":\"integer\",\"maximum\":9007199254740992}", true, "9007199254740993", NULL,
			"9007199254740993: is not a whole number, at most 9007199254740992");
}
END_TEST

START_TEST(yes_and_no) {
	entered("{\"type\":\"boolean\"}", true, "Yes", "true", NULL);
	entered("{\"type\":\"boolean\"}", true, "n", "false", NULL);
	entered("{\"type\":\"boolean\"}", true, "false", "false", NULL);
	entered("{\"type\":\"boolean\"}", true, "perhaps", NULL, "perhaps: is not yes or no");
	entered("{\"type\":\"boolean\",\"default\":false}", true, "", "false", NULL);
}
END_TEST

START_TEST(choices) {
	static const char plain[] = "{\"type\":\"string\",\"enum\":[\"red\",\"10\",\"New York\"]}";
	static const char named[] = "{\"type\":\"string\",\"enum\":[\"r\",\"g\"],\"enumNames\":[\"Red\",\"Green\"]}";
	static const char titled[] =
		"{\"type\":\"string\",\"oneOf\":[{\"const\":\"r\",\"title\":\"Red\"},{\"const\":\"g\"}]}";
	static const char some[] =
		"{\"type\":\"array\",\"minItems\":2,\"items\":{\"anyOf\":[{\"const\":\"r\",\"title\":\"Red\"},"
		"{\"const\":\"g\",\"title\":\"Green\"},{\"const\":\"b\",\"title\":\"Blue\"}]}}";
	entered(plain, true, "1", "\"red\"", NULL);
	entered(plain, true, "10", "\"10\"", NULL);
	entered(plain, true, "new york", "\"New York\"", NULL);
	entered(plain, true, "4", NULL, "4: is none of the numbers (1 to 3)");
	entered(plain, true, "blue", NULL, "blue: is none of the numbers (1 to 3)");
	entered(plain, true, "1 2", NULL, "only one can be chosen");
	entered(plain, true, ",", NULL, "a number is needed");
	entered(named, true, "green", "\"g\"", NULL);
	entered(titled, true, "Red", "\"r\"", NULL);
	entered(titled, true, "2", "\"g\"", NULL);
	entered("{\"type\":\"integer\",\"enum\":[5,6]}", true, "2", "6", NULL);
	entered(some, true, "3, 1", "[\"b\",\"r\"]", NULL);
	entered(some, true, "blue,green", "[\"b\",\"g\"]", NULL);
	entered(some, true, "1", NULL, "1: is not some of these, at least 2");
	entered(some, true, "1,1", NULL, "1,1: is not some of these, at least 2");
	entered(some, true, "1,red,3", "[\"r\",\"b\"]", NULL);
	entered("{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"a\"]},\"default\":[]}", true, "", "[]",
			NULL);
}
END_TEST

START_TEST(what_cannot_be_entered) {
	static const char *const unknown[] = {"{\"type\":\"object\"}",
										  "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}",
										  "{}",
										  "{\"type\":[\"string\",\"null\"]}",
										  "7",
										  "{\"type\":\"object\",\"enum\":[{}]}"};
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		char *form = str_printf("{\"properties\":{\"a\":{\"type\":\"string\"},\"b\":%s}}", unknown[i]);
		struct speech_ask ask = {.kind = SPEECH_ASKS_FORM, .schema = span_of(form)};
		char *name = form_unknown(&ask);
		ck_assert_str_eq(name, "b");
		ck_assert(!form_needs_values(&ask));
		free(name);
		free(form);
	}
}
END_TEST

START_TEST(a_word_names_a_choice_before_its_number) {
	static const char *const words[][2] = {{"n=1", "{\"n\":1}"}, {"n=3", "{\"n\":2}"}, {"n=0", "{\"n\":0}"}};
	struct speech_ask ask = {.kind = SPEECH_ASKS_FORM,
							 .schema = span_of("{\"properties\":{\"n\":{\"type\":\"integer\",\"enum\":[0,1,2]}}}")};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		_cleanup_free_ char *word = strdup(words[i][0]), *why = NULL;
		char got[100];
		as_text(form_fill(&ask, &word, 1, &why), got, sizeof got);
		ck_assert_str_eq(got, words[i][1]);
		ck_assert_ptr_null(why);
	}
}
END_TEST

/* --- Answers in the protocols ------------------------------------------------------------------------------------- */

/* values: NULL: none. */
static void answered(const struct speech *speech, const char *line, bool allow, const char *values, const char *want) {
	struct incoming in;
	struct speech_ask ask = {0};
	struct buf b = BUF_INIT(10000);
	json_t *object = values ? json_loads(values, 0, NULL) : NULL;
	speech_read(speech, line, strlen(line), &in);
	speech->read_ask(&in, &ask);
	ck_assert_int_eq(ask.kind, SPEECH_ASKS_FORM);
	struct speech_decision d = {.allow = allow, .cancel = !allow, .input = object ? form_input(&ask, object) : NULL};
	ck_assert(speech->put_answer(&b, &ask, &d));
	ck_assert_str_eq(b.data, want);
	json_decref(d.input);
	json_decref(object);
	buf_free(&b);
}

#define SCHEMA "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}"

START_TEST(answers_of_forms) {
	static const char claude[] =
		"{\"type\":\"control_request\",\"request_id\":\"r\",\"request\":{\"subtype\":\"elicitation\","
		"\"message\":\"m\",\"requested_schema\":" SCHEMA "}}";
	static const char acp[] =
		"{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\","
		"\"mode\":\"form\",\"requestedSchema\":" SCHEMA "}}";
	static const char codex[] =
		"{\"id\":\"r\",\"method\":\"mcpServer/elicitation/request\",\"params\":{\"threadId\":\"t\","
		"\"message\":\"m\",\"mode\":\"form\",\"requestedSchema\":" SCHEMA "}}";
#define CONTROL                                                                                                        \
	"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"r\",\"response\":"
	answered(&speech_claude, claude, true, "{\"n\":1}", CONTROL "{\"action\":\"accept\",\"content\":{\"n\":1}}}}");
	answered(&speech_claude, claude, true, NULL, CONTROL "{\"action\":\"accept\",\"content\":{}}}}");
	answered(&speech_claude, claude, false, NULL, CONTROL "{\"action\":\"cancel\"}}}");
	answered(&speech_acp, acp, true, "{\"n\":1}",
			 "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"result\":{\"action\":\"accept\",\"content\":{\"n\":1}}}");
	answered(&speech_codex, codex, true, "{\"n\":1}",
			 "{\"id\":\"r\",\"result\":{\"action\":\"accept\",\"content\":{\"n\":1}}}");
}
END_TEST

START_TEST(answers_of_questions) {
	static const char codex[] =
		"{\"id\":\"r\",\"method\":\"item/tool/requestUserInput\",\"params\":{\"threadId\":\"t\","
		"\"questions\":[{\"id\":\"color\",\"header\":\"h\",\"question\":\"Which?\",\"isOther\":false,"
		"\"options\":[{\"label\":\"Red\",\"description\":\"warm\"},{\"label\":\"Blue\"}]},"
		"{\"id\":\"why\",\"question\":\"Why?\",\"options\":null}]}}";
	struct incoming in;
	struct speech_ask ask = {0};
	struct form_field f;
	char *why, got[100];
	speech_read(&speech_codex, codex, strlen(codex), &in);
	in.speech->read_ask(&in, &ask);
	ck_assert(form_read(&ask, 0, &f) && f.type == FORM_CHOICE && !f.free && span_equals(f.key, "color"));
	ck_assert_str_eq(as_text(form_value(&f, "2", &why), got, sizeof got), "\"Blue\"");
	ck_assert_ptr_null(form_value(&f, "green", &why));
	ck_assert_str_eq(why, "green: is none of the numbers (1 to 2)");
	free(why);
	ck_assert(form_read(&ask, 1, &f) && f.type == FORM_TEXT && f.free);
	ck_assert_str_eq(as_text(form_value(&f, "12", &why), got, sizeof got), "\"12\"");
	answered(
		&speech_codex, codex, true, "{\"color\":\"Blue\",\"why\":\"12\"}",
		"{\"id\":\"r\",\"result\":{\"answers\":{\"color\":{\"answers\":[\"Blue\"]},\"why\":{\"answers\":[\"12\"]}}}}");
	answered(&speech_codex, codex, false, NULL, "{\"id\":\"r\",\"result\":{\"answers\":{}}}");
}
END_TEST

START_TEST(answers_of_a_tool_are_in_its_input) {
	static const char line[] =
		"{\"type\":\"control_request\",\"request_id\":\"r\",\"request\":{\"subtype\":\"can_use_tool\",\"tool_name\":"
		"\"AskUserQuestion\",\"input\":{\"questions\":[{\"question\":\"Which?\",\"multiSelect\":true,\"options\":"
		"[{\"label\":\"Red\"},{\"label\":\"Blue\"}]}]}}}";
	struct incoming in;
	struct speech_ask ask = {0};
	struct form_field f;
	char *why, got[300];
	speech_read(&speech_claude, line, strlen(line), &in);
	in.speech->read_ask(&in, &ask);
	ck_assert(form_read(&ask, 0, &f) && f.type == FORM_CHOICES && f.free);
	json_t *values = json_object();
	json_object_set_new(values, "Which?", form_value(&f, "2 1", &why));
	json_t *input = form_input(&ask, values);
	as_text(json_incref(json_object_get(input, "answers")), got, sizeof got);
	ck_assert_str_eq(got, "{\"Which?\":\"Blue, Red\"}");
	json_decref(input);
	json_decref(values);
}
END_TEST

RUN_TESTS("form", texts, numbers, yes_and_no, choices, what_cannot_be_entered, a_word_names_a_choice_before_its_number,
		  answers_of_forms, answers_of_questions, answers_of_a_tool_are_in_its_input)
