/* SPDX-License-Identifier: MIT */
#include "store/store.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "core/descent.h"
#include "core/guards.h"
#include "core/owners.h"
#include "core/sessions.h"
#include "io/proc.h"
#include "plenum/protocol.h"
#include "store/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SEQ_UNSAVED 1000000000 /* more lines than a session prints between two writes of the table */
#define SAVE_MS 2000           /* until a failed write of the table is repeated */

struct store {
	struct loop *loop;
	struct router *router;
	struct state *state; /* NULL: no directory */
	char instance[40];
	uint64_t hash; /* of the saved table */
	struct loop_task task;
	struct loop_timer timer;
	bool behind;  /* a thread waits for the disk */
	bool unsaved; /* the table could not be written, and the failure is logged */
};

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* Serialize the guards and the dialect's memo, unless the table has their text. False without memory. */
static bool put_parts(struct store *k, const struct session *s, struct state_session *out) {
	bool ok = true;
	out->id = s->id;
	out->marks[RECORD_LAUNCH] = out->hashes[RECORD_LAUNCH] = hash_mix(hash_mix(UINT64_MAX, s->id), s->launch.changes);
	out->marks[RECORD_GUARDS] = guards_mark(&s->registry);
	out->marks[RECORD_MEMO] = hash_mix_text(hash_mix(UINT64_MAX, s->memo.version), s->timers.armed);
	if (!state_has(k->state, out, RECORD_GUARDS)) {
		ok = guards_text(&s->registry, &out->guards);
		out->hashes[RECORD_GUARDS] = hash_mix_text(1, out->guards);
	}
	if (!state_has(k->state, out, RECORD_MEMO)) {
		out->memo = memo_text(&s->memo, false);
		out->timers = timers_text(&s->timers);
		out->hashes[RECORD_MEMO] = hash_mix_text(hash_mix_text(1, out->memo), out->timers);
	}
	return ok;
}

static bool to_state(struct store *k, const struct session *s, struct state_session *out) {
	const struct launch *l = &s->launch;
	pid_t pid = session_pid(s);
	bool argv = l->has_argv;
	*out = (struct state_session){
		.name = s->name,
		.profile = session_profile(s),
		.cwd = l->cwd,
		.conversation_id = s->conversation_id ? s->conversation_id
						   : l->fork          ? NULL
											  : l->resume,
		.previous_id = s->resumed_id,
		.mode = (char *)(uintptr_t)snapshot_strict(&s->snapshot, session_dialect(s)),
		.args = argv ? l->argv.v : l->args.v,
		.n_args = argv ? l->argv.n : l->args.n,
		.env = l->env.v,
		.n_env = l->env.n,
		.uid = l->uid,
		.env_only = l->env_only,
		.child_pid = pid ? pid : s->stuck_pid,
		.child_start = pid ? s->agent->child.start : s->stuck_start,
		.created_ms = s->created_at,
		.used_ms = now_real_ms() - (now_ms() - s->used_at),
		.seq = s->tape.next,
	};
	return put_parts(k, s, out);
}

/* Include the running children: a later daemon identifies by them the processes of their process sessions. */
static bool to_left(struct store *k) {
	const struct router *r = k->router;
	struct kin *one, *next;
	size_t n = 0;
	struct state_left *all = calloc(HASH_COUNT(r->descent->by_pid) + r->n_sessions + 1, sizeof *all);
	if (!all) return false;
	HASH_ITER (hh, r->descent->by_pid, one, next) all[n++] = (struct state_left){one->pid, one->start, one->number};
	for (const struct session *s = r->sessions; s; s = s->hh.next)
		if (session_pid(s))
			all[n++] = (struct state_left){session_pid(s), s->agent->child.start, launch_number(k->instance, s->name)};
	bool ok = state_set_left(k->state, all, n);
	free(all);
	return ok;
}

static uint64_t hash_all(const struct state_session *all, size_t n, const struct router *r) {
	uint64_t h = (n + 1) ^ r->last_seq << 20 ^ r->descent->changes << 40; /* never 0: no saved table has it */
	h ^= (uint64_t)r->guards_lost << 63;
	for (size_t i = 0; i < n; i++) {
		h = hash_mix_text(h, all[i].name);
		h = hash_mix_text(h, all[i].conversation_id);
		h = hash_mix_text(h, all[i].previous_id);
		h = hash_mix_text(h, all[i].mode);
		for (size_t part = 0; part < RECORD_PARTS; part++) h = hash_mix(h, all[i].hashes[part]);
		h = hash_mix(h, (uint64_t)all[i].child_pid ^ all[i].child_start << 20);
	}
	return h;
}

/* False: errno has the cause, too. */
static bool save_table(struct store *k, struct error *error) {
	size_t n = 0;
	bool ok = true;
	struct state_session *all = calloc(k->router->n_sessions + 1, sizeof *all);
	errno = ENOMEM;
	error_set(error, "cannot write the table of sessions: out of memory");
	if (!all) return false;
	for (struct session *s = k->router->sessions; s; s = s->hh.next) {
		if (s->ephemeral || (s->by_client && !s->conversation_id)) continue; /* no client could return to it */
		ok = to_state(k, s, &all[n++]) && ok;                                /* no table may lack an existing guard */
	}
	uint64_t h = hash_all(all, n, k->router);
	ok = to_left(k) && ok;
	state_set_seq(k->state, k->router->last_seq);
	state_set_lost(k->state, k->router->guards_lost);
	if (ok && h != k->hash && (ok = state_save(k->state, all, n, error))) k->hash = h;
	int number = errno;
	for (size_t i = 0; i < n; i++) {
		free(all[i].guards);
		free(all[i].timers);
		free(all[i].memo);
	}
	free(all);
	errno = number;
	return ok;
}

/* A full disk may be free again before any other change: repeat until it works. */
static void on_synced(void *arg, const char *error) {
	struct store *k = arg;
	if (!error && !k->hash) return; /* of an older write: the newest one has failed */
	if (error && !k->unsaved) log_error("%s", error);
	if (!error && k->unsaved) log_info("the table of sessions is written again");
	k->unsaved = error != NULL;
	if (error) k->hash = 0;
	if (error)
		loop_timer_set(&k->timer, SAVE_MS);
	else
		loop_timer_stop(&k->timer);
}

static void save(void *arg) {
	struct store *k = arg;
	struct error error;
	if (!k->state) return;
	bool ok = save_table(k, &error);
	if (!ok || !k->behind) on_synced(k, ok ? NULL : error.text);
}

const char *store_keep(struct store *k, const struct session *s, struct error *error) {
	struct error why;
	if (!k || !k->state || s->ephemeral || save_table(k, &why)) return NULL;
	int number = errno;
	const char *hint = number == ENOSPC || number == EDQUOT ? "free space in"
					   : number == EFBIG                    ? "forget sessions of"
															: "see";
	error_set(error, "cannot keep the hooks on disk: %s (%s %s)", strerror(number), hint, state_dir(k->state));
	on_synced(k, why.text);
	return number == EFBIG ? PLENUM_E_TOO_MANY : PLENUM_E_INTERNAL;
}

static void save_behind(struct store *k) {
	k->behind = state_save_behind(k->state, k->loop, on_synced, k);
	if (!k->behind)
		log_warn("no thread can be made: each write of the table of sessions makes all clients wait for the disk");
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool restore_words(struct words *w, char *const *v, size_t n) {
	for (size_t i = 0; i < n; i++)
		if (!words_add(w, v[i])) return false;
	return true;
}

static bool restore(void *arg, const struct state_session *from) {
	struct store *k = arg;
	const struct profile *p = settings_profile(k->router->settings, from->profile);
	struct launch l = {.uid = from->uid, .env_only = from->env_only};
	_cleanup_free_ char *label = str_word(from->name);
	bool bare = strcmp(from->profile, STATE_UNREADABLE) == 0;
	if (bare)
		log_error("session %s: its record in the table of sessions is damaged: it cannot start (forget it, then resume "
				  "conversation %s in a new one)",
				  label ? label : "?", from->conversation_id ? from->conversation_id : "(none)");
	else if (!p)
		log_warn("session %s: its profile %s is not configured any more", label ? label : "?", from->profile);
	if (!p || bare) p = settings_profile(k->router->settings, k->router->settings->default_profile);
	bool twice = router_find(k->router, from->name) != NULL;
	if (twice || !p) {
		log_warn("session %s is left out: %s", label ? label : "?",
				 twice ? "the table has it twice" : "there is no profile for it");
		return true;
	}
	l.cwd = str_dup(from->cwd ? from->cwd : "/");
	struct session *s = NULL;
	if (l.cwd && restore_words(&l.args, from->args, from->n_args) && restore_words(&l.env, from->env, from->n_env))
		s = sessions_create(k->router, from->name, p, &l);
	launch_free(&l);
	if (!s) return false;
	if ((bare || strcmp(p->name, from->profile) != 0) &&
		!session_lose_profile(s, bare ? SESSION_UNREADABLE : from->profile))
		log_no_memory(); /* the session would be open to all clients */
	if (from->conversation_id) session_set_conversation(s, from->conversation_id);
	session_set_resumed(s, from->previous_id);
	if (proc_lives(from->child_pid, from->child_start)) /* no error if it has ended before the next start */
		session_set_stuck(s, from->child_pid, from->child_start);
	if (from->created_ms) session_set_created(s, from->created_ms);
	if (from->guards) owners_restore_guards(s, from->guards);
	memo_restore(&s->memo, from->memo);
	if (from->timers) timers_restore(&s->timers, from->timers);
	if (from->mode) snapshot_set_strict(&s->snapshot, session_dialect(s), from->mode);
	/* numbers of its last life are invalid, also those after the table was written */
	tape_begin(&s->tape, tape_fresh_number(now_real_ms(), from->seq + SEQ_UNSAVED), false);
	return true;
}

static void name_instance(struct store *k) {
	struct stat st;
	if (k->state && stat(state_dir(k->state), &st) == 0) {
		snprintf(k->instance, sizeof k->instance, "d%jx-%jx", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
		return;
	}
	k->instance[0] = 'r';
	str_random_hex(k->instance + 1, 16);
}

/* --- for the server ---------------------------------------------------------------------------------------------- */

struct store *store_new(struct loop *loop, struct router *router) {
	struct store *k = calloc(1, sizeof *k);
	if (!k) return NULL;
	k->loop = loop;
	k->router = router;
	router->instance = k->instance;
	loop_task_init(&k->task, save, k);
	loop_timer_init(&k->timer, loop, save, k);
	return k;
}

bool store_open(struct store *k, const char *socket) {
	struct error error = {""};
	size_t n_left;
	k->state = state_open(k->router->settings->state_dir, socket, &error);
	bool held = !k->state && errno == EWOULDBLOCK;
	if (!k->state) log_error("%s%s", held ? "" : "sessions will not survive a restart: ", error.text);
	if (held) return false;
	name_instance(k);
	k->router->last_seq = tape_fresh_number(now_real_ms(), 0); /* no record of earlier numbers */
	if (!k->state) return true;
	save_behind(k);
	int n = state_load(k->state, restore, k, &error);
	/* End processes left behind by a killed daemon: they must not write to a resumed conversation. Those that cannot be
	 * ended stay recorded. */
	const struct state_left *left = state_left(k->state, &n_left);
	for (size_t i = 0; i < n_left; i++)
		descent_add(k->router->descent, left[i].pid, left[i].start, left[i].number, false);
	descent_sweep_all(k->router);
	k->router->guards_lost = state_lost(k->state);
	if (state_seq(k->state) >= 0) k->router->last_seq = (uint64_t)state_seq(k->state);
	if (*error.text) {
		log_warn("%s", error.text);
		store_changed(k); /* otherwise the next daemon finds the same */
	}
	if (k->router->guards_lost)
		log_error("sessions were lost of which nothing is known: each session that is made from now on refuses every "
				  "tool, in case it was guarded (plenumctl clear-lost --all ends that)");
	if (n > 0) log_info("%d sessions are asleep from before", n);
	return true;
}

const char *store_dir(const struct store *k) {
	return k->state ? state_dir(k->state) : NULL;
}

void store_changed(struct store *k) {
	if (k) loop_defer_urgent(k->loop, &k->task);
}

void store_save(struct store *k) {
	save(k);
}

void store_carry(struct carry *c, struct store *k, const char *socket) {
	struct error error = {""};
	char *dir = c->saving && k->state ? (char *)(uintptr_t)state_dir(k->state) : NULL;
	int lock = c->saving && k->state ? state_lock(k->state) : -1;
	if (lock >= 0) state_settle(k->state);
	carry_text(c, &dir);
	carry_fd(c, &lock, S_IFREG);
	carry_bytes(c, k->instance, sizeof k->instance);
	k->instance[sizeof k->instance - 1] = 0;
	if (c->saving) return;
	if (carry_ok(c) && dir && lock >= 0) k->state = state_resume(dir, socket, lock, &error);
	if (*error.text) carry_fail(c, "%s", error.text);
	if (k->state) save_behind(k);
	free(dir);
}

void store_free(struct store *k) {
	if (!k) return;
	if (k->state) state_settle(k->state); /* a failure is still reported */
	state_close(k->state);
	loop_task_stop(&k->task);
	loop_timer_stop(&k->timer);
	free(k);
}
