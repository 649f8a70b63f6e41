/* SPDX-License-Identifier: MIT
 *
 * The gate: a line never passes for a lesser peer than its plain spelling does. The plain spelling is what jansson
 * reads in the line and writes again: without escapes, blanks and doubles, as the child would understand it.
 */
#include "core/gate.h"
#include "dialect/claude/claude.h"
#include "dialect/claude/message.h"
#include "target.h"

#include <jansson.h>

/* -1: no line that is taken. */
static int passes(enum trust who, const char *p, size_t n) {
	struct gate gate;
	gate_init(&gate, &claude_dialect);
	gate.n = GATE_SEEN_MAX; /* logs nothing */
	struct gate_verdict v;
	struct message m;
	struct chunk rewritten;
	struct span id, line;
	struct error error;
	if (!message_check(p, n, &m, &rewritten, &error, &id)) return -1;
	line = rewritten.data ? (struct span){rewritten.data, rewritten.len} : (struct span){p, n};
	gate_judge(&gate, who, &m, line, &v);
	INSIST(v.row && v.passes == !v.thing[0]);
	for (const char *c = v.thing; *c; c++) INSIST(*c >= ' ' && *c <= '~');
	chunk_drop(&rewritten);
	return v.passes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const char *p = (const char *)data;
	int own = passes(TRUST_OWN, p, size), driver = passes(TRUST_DRIVER, p, size);
	INSIST(own != 0);
	INSIST(driver == passes(TRUST_AGENT, p, size));
	INSIST(passes(TRUST_OBSERVER, p, size) <= driver);
	if (own < 0 || !driver) return 0;
	json_t *root = json_loadb(p, size, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
	char *plain = root ? json_dumps(root, JSON_COMPACT) : NULL;
	if (plain) INSIST(passes(TRUST_DRIVER, plain, strlen(plain)) != 0);
	free(plain);
	json_decref(root);
	return 0;
}
