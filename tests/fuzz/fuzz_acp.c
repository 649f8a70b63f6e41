/* SPDX-License-Identifier: MIT */
#include "dialect.h"
#include "dialect/acp/acp.h"

static const char asked[] = "{\"options\":[{\"optionId\":\"y\",\"kind\":\"allow_once\"},{\"optionId\":\"n\",\"kind\":"
							"\"reject_always\",\"name\":\"Never\"}]}";

static bool is_valid(const json_t *answer) {
	const json_t *outcome = json_object_get(json_object_get(answer, "result"), "outcome");
	const char *is = json_string_value(json_object_get(outcome, "outcome"));
	const char *id = json_string_value(json_object_get(outcome, "optionId"));
	return (is && strcmp(is, "cancelled") == 0) ||
		   (is && strcmp(is, "selected") == 0 && id && (strcmp(id, "y") == 0 || strcmp(id, "n") == 0));
}

static const struct target target = {&acp_dialect, asked, is_valid};
