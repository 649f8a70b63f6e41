/* SPDX-License-Identifier: MIT
 *
 * The agent keeps processes, watches and searches for one connection, under handles that the client chose. The requests
 * are in gate.def.
 */
#include "dialect/codex/codex.h"

#include "base/macros.h"
#include "dialect/jsonrpc.h"

#include <string.h>

/* Notifications for one client. */
static const struct {
	const char *method, *handle; /* handle NULL: `requestId` names its request */
	bool over;
} notes[] = {
	{"command/exec/outputDelta", "processId", false},
	{"process/outputDelta", "processHandle", false},
	{"process/exited", "processHandle", true},
	{"fs/changed", "watchId", false},
	{"fuzzyFileSearch/sessionUpdated", "sessionId", false},
	{"fuzzyFileSearch/sessionCompleted", "sessionId", false}, /* of a query: the next one may follow */
	{"mcpServer/event/stream/notification", "subscriptionId", false},
	{"thread/search/partial", NULL, false},
};

void codex_handles_read(const struct envelope *e, struct dialect_addressee *to) {
	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		if (!span_equals(e->type, notes[i].method)) continue;
		if (notes[i].handle)
			to->handle = span_member(e->request, notes[i].handle);
		else
			to->call = span_member(e->request, "requestId");
		to->over = notes[i].over;
	}
}

void codex_handles_put_end(struct buf *b, const char *id, const struct gate_row *ends, struct span handle) {
	buf_printf(b, JSONRPC_BARE_HEAD "\"id\":%s,\"method\":\"%s\",\"params\":{\"%s\":", id, ends->name, ends->member);
	buf_put(b, handle.p, handle.n);
	buf_puts(b, "}}\n");
}
