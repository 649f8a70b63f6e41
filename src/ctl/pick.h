/* SPDX-License-Identifier: MIT
 *
 * Find the session that a word of the command line means: a name, its beginning, or "-" for the last one.
 */
#pragma once

#include "ctl/ctl.h"

/* Connect, and replace *word by the session's name: the name itself, the only name that begins so (not with --json:
 * what a script means must not depend on other sessions), or for "-" the session of the verb before. A word that fits
 * no name is unchanged, and the daemon refuses it. Return CTL_OK, or the exit code; the reason was printed. The caller
 * closes *p in any case. */
int pick_open(struct ctl *c, const char **word, struct plenum **p);

/* pick_open(), one request about the session, close. */
int pick_ask(struct ctl *c, const char *word, const char *verb, json_t **answer);

/* pick_open(), and attach as a driver that decides nothing. */
int pick_attach(struct ctl *c, const char **word, struct plenum **p, json_t **answer);

/* The same as pick_open() for a verb that may make a session. *create is the word for plenum_attach: "auto" if make is
 * set or no session exists, else "never". make: only a whole name or "-" means an existing one. */
int pick_or_make(struct ctl *c, const char **word, bool make, struct plenum **p, const char **create);

/* After a refusal: print how to make the session, if the word fitted none and this program may make one. */
void pick_hint(const struct ctl *c, struct plenum *p, const char *create);

/* Save the name for the next "-". */
void pick_remember(const char *name);
