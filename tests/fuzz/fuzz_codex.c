/* SPDX-License-Identifier: MIT */
#include "dialect.h"
#include "dialect/codex/codex.h"

#define AMENDMENT "{\"acceptWithExecpolicyAmendment\":{\"execpolicy_amendment\":[\"ls\"]}}"

static const char asked[] = "{\"command\":\"ls\",\"availableDecisions\":[\"accept\"," AMENDMENT ",\"cancel\"]}";

static bool is_offered(const json_t *decision) {
	const char *word = json_string_value(decision);
	json_t *amendment = json_loads(AMENDMENT, 0, NULL);
	bool good = word ? strcmp(word, "accept") == 0 || strcmp(word, "decline") == 0 || strcmp(word, "cancel") == 0
					 : json_equal(decision, amendment);
	json_decref(amendment);
	return good;
}

static bool is_valid(const json_t *answer) {
	return is_offered(json_object_get(json_object_get(answer, "result"), "decision"));
}

static const struct target target = {&codex_dialect, asked, is_valid};
