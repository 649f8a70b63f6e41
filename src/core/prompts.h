/* SPDX-License-Identifier: MIT
 *
 * The ledger of prompts: which uuid is whose, and how far it is. A result finds its prompts by the uuids that it names,
 * never by order or by counting. The last finished ones are remembered, so that a retry runs once. Source: DESIGN 8.
 */
#pragma once

#include "base/hash.h"
#include "base/list.h"
#include "core/carry.h"
#include "core/share.h"
#include "wire/chunk.h"
#include "wire/scan.h"

#include <sys/types.h>

#define PROMPTS_KEPT 4096

enum prompt_state {
	PROMPT_HELD,  /* waits for another turn to end (prompts = queue), or for its sender's initialize */
	PROMPT_SENT,  /* on its way to the child */
	PROMPT_TAKEN, /* the child has echoed it: it is part of the turn */
	PROMPT_DONE,  /* its result came, or it was given up */
};

struct prompt {
	UT_hash_handle hh; /* by uuid */
	struct list node;  /* open: in order; done: oldest first */
	enum prompt_state state;
	uint64_t child;  /* which of the session's children it was written for */
	uint64_t client; /* number of the connection */
	char *name;      /* its label; may be NULL */
	uid_t uid;
	uint64_t bytes_hash;
	bool command;        /* a command of the child's own (/clear): old ones neither echo nor name it */
	void *asker;         /* the client, NULL when it is gone */
	struct chunk held;   /* PROMPT_HELD: the line */
	struct share *payer; /* PROMPT_HELD: of the line; else its child's queue has it */
	uint64_t needs;      /* PROMPT_HELD: the version of the registry that has its client's hooks; 0: it has none */
	int64_t since;
	char uuid[]; /* without quotes and escapes */
};

struct prompts {
	struct prompt *by_uuid;
	struct list open, done;
	size_t n_open, n_done, n_held;
	bool replays; /* the child echoes prompts */
	bool unnamed; /* a turn has begun, and nothing has said yet whose it is */
	bool echoed;  /* the child has echoed a prompt since its newest system/init */
};

void prompts_init(struct prompts *p);
void prompts_free(struct prompts *p);
struct prompt *prompt_find(struct prompts *p, struct span uuid); /* raw, with its quotes */
/* A new open prompt; uuid without quotes. NULL without memory. */
struct prompt *prompt_add(struct prompts *p, const char *uuid, size_t n);
void prompt_done(struct prompts *p, struct prompt *one);
/* It waits with this line, which is taken over and charged to payer. */
void prompt_hold(struct prompts *p, struct prompt *one, struct chunk line, struct share *payer);
/* It waits no more: its line and the charge for it, now at *payer, are the caller's. */
struct chunk prompt_release(struct prompts *p, struct prompt *one, struct share **payer);
void prompts_trim(struct prompts *p, size_t keep);         /* forgets all finished ones but the last */
void prompt_forget(struct prompts *p, struct prompt *one); /* as if it had never been */
/* Open prompts of this client. */
size_t prompts_of(const struct prompts *p, const void *asker);
void prompts_asker_gone(struct prompts *p, const void *asker);
/* The client has registered hooks: its held prompts need this version of the registry. */
void prompts_need(struct prompts *p, const void *asker, uint64_t version);
/* Return true if a prompt is held that needs a newer version than this one. asker: its client; NULL: any. */
bool prompts_needy(const struct prompts *p, const void *asker, uint64_t version);
uint64_t prompt_hash(const char *data, size_t n);
void prompts_carry(struct carry *c, struct prompts *p);
