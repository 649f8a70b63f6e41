/* SPDX-License-Identifier: MIT
 *
 * Requests to the child, under ids made by the daemon, that wait for an answer. The asker is a client, or NULL for
 * requests of the daemon. Source: docs/contract.md 4 "Ids".
 */
#pragma once

#include "base/hash.h"
#include "core/carry.h"
#include "core/share.h"
#include "dialect/dialect.h"
#include "io/loop.h"

#define CALL_ID_MAX 40 /* without quotes */

struct client;
struct session;

enum call_purpose {
	CALL_CLIENT, /* the answer goes to the asker */
	CALL_INIT,   /* the daemon's initialize */
	CALL_SILENT, /* no client waits for it */
	CALL_STEP,   /* the daemon's: a step of the child's start */
	CALL_PROMPT, /* a prompt of the asker, held or sent: the answer ends its turn */
	CALL_KEPT,   /* not sent: the daemon answers the asker when the start of the child has brought the answer */
};

struct call {
	UT_hash_handle hh;       /* by id */
	UT_hash_handle hh_asker; /* by key */
	struct list node;
	struct session *session;
	char id[CALL_ID_MAX];
	char *key; /* asker number and its id: finds a duplicate */
	enum call_purpose purpose;
	uint64_t child; /* the child of the session that must answer; 0: the current one */
	struct client *asker;
	char *asker_id; /* raw JSON */
	enum act_kind act;
	const char *what; /* ACT_CHANGE: the changed setting */
	char *value;      /* its new value, raw JSON; may be NULL. CALL_PROMPT: the uuid. CALL_KEPT: the line.
					   * ACT_OPENS, ACT_RUNS: the handle that it opens */
	struct loop_timer timer;
	struct share_request charge;
};

struct calls {
	bool numbers; /* the ids are numbers */
	struct call *by_id, *by_asker;
	struct list order;
	size_t n;
	uint64_t counter;
};

void calls_init(struct calls *c, bool numbers); /* numbers: the ids are numbers, not strings */
void calls_free(struct calls *c);
/* Make a call with a fresh id. asker_id is a raw JSON string. NULL without memory. */
struct call *call_new(struct calls *all, struct session *s, struct loop *loop, enum call_purpose purpose,
					  struct client *asker, uint64_t asker_number, struct span asker_id, void (*on_timer)(void *));
struct call *call_find(struct calls *all, struct span id);
/* Return true if this is the id of a call, maybe an ended one. */
bool calls_made(const struct calls *all, struct span id);
/* Return its id as raw JSON, in out. */
struct span call_raw_id(const struct calls *all, const struct call *c, char out[CALL_ID_MAX + 2]);
/* Return the call of the prompt with this uuid (without quotes); NULL: none waits for its end. */
struct call *call_of_prompt(struct calls *all, const char *uuid);
struct call *call_of(struct calls *all, uint64_t asker_number, struct span asker_id);
/* The asker no longer waits and may use its own id again; the child's answer is still processed. */
void call_orphan(struct calls *all, struct call *c);
void call_end(struct calls *all, struct call *c);
void calls_carry(struct carry *c, struct calls *all, struct session *s, struct loop *loop, const struct dialect *d,
				 void (*on_timer)(void *));
