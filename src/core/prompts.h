/* SPDX-License-Identifier: MIT
 *
 * The ledger of prompts: the sender and the state of each uuid. A result finds its prompts by the uuids that it names,
 * never by order or count. The last finished ones are kept, so that a retry runs once. Source: docs/contract.md 8.
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

struct client;

enum prompt_state {
	PROMPT_HELD,  /* waits for another turn to end (prompts = queue), or for its sender's initialize */
	PROMPT_SENT,  /* sent to the child, not confirmed yet */
	PROMPT_TAKEN, /* echoed by the child: a part of the turn */
	PROMPT_DONE,  /* its result came, or it was abandoned */
};

struct prompt {
	UT_hash_handle hh; /* by uuid */
	struct list node;  /* open: in order; done: oldest first */
	enum prompt_state state;
	uint64_t child;  /* the child of the session that gets it */
	uint64_t client; /* number of the connection */
	char *name;      /* its label; may be NULL */
	uid_t uid;
	uint64_t bytes_hash;
	bool command;         /* a command of the child itself (/clear): old children neither echo nor name it */
	struct client *asker; /* the client, NULL after its end */
	struct chunk held;    /* PROMPT_HELD: the line */
	struct share *payer;  /* PROMPT_HELD: of the line; later the queue of the child has it */
	uint64_t needs;       /* PROMPT_HELD: the version of the registry with its client's hooks; 0: none */
	int64_t since;
	char uuid[]; /* without quotes and escapes */
};

struct prompts {
	struct prompt *by_uuid;
	struct list open, done;
	size_t n_open, n_done, n_held;
	bool replays; /* the child echoes prompts */
	bool unnamed; /* a turn has begun, and its prompt is not known yet */
	bool echoed;  /* the child has echoed a prompt since its newest system/init */
};

void prompts_init(struct prompts *p);
void prompts_free(struct prompts *p);
struct prompt *prompt_find(struct prompts *p, struct span uuid); /* raw, with its quotes */
/* Add an open prompt; uuid without quotes. NULL without memory. */
struct prompt *prompt_add(struct prompts *p, const char *uuid, size_t n);
void prompt_done(struct prompts *p, struct prompt *one);
/* Queue it with this line; takes ownership of the line and charges it to payer. */
void prompt_hold(struct prompts *p, struct prompt *one, struct chunk line, struct share *payer);
/* Take it out of the queue: the caller owns the line and its charge, now at *payer. */
struct chunk prompt_release(struct prompts *p, struct prompt *one, struct share **payer);
void prompts_trim(struct prompts *p, size_t keep);         /* forget the oldest finished ones */
void prompt_forget(struct prompts *p, struct prompt *one); /* remove every trace of it */
/* Return the number of open prompts of this client. */
size_t prompts_of(const struct prompts *p, const struct client *asker);
void prompts_asker_gone(struct prompts *p, const struct client *asker);
/* The client has registered hooks: its queued prompts need this version of the registry. */
void prompts_need(struct prompts *p, const struct client *asker, uint64_t version);
/* Return true if a queued prompt needs a newer version than this one. asker: its client; NULL: any. */
bool prompts_needy(const struct prompts *p, const struct client *asker, uint64_t version);
void prompts_carry(struct carry *c, struct prompts *p);
