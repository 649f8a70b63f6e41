/* SPDX-License-Identifier: MIT */
#include "core/settings.h"

#include "base/log.h"
#include "base/macros.h"

#include <stdlib.h>
#include <string.h>

static const char *const pass_all[] = {"*", NULL};

static bool words_set(struct words *w, const char *const *list) {
	for (; *list; list++)
		if (!words_add(w, *list)) return false;
	return true;
}

static void profile_free(struct profile *p) {
	free(p->name);
	free(p->cwd);
	struct words *lists[] = {&p->command,         &p->env,         &p->pass_env,   &p->resume_args,
							 &p->session_id_args, &p->allow_tools, &p->deny_tools, &p->ask_tools};
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) words_free(lists[i]);
}

static bool profile_init(struct profile *p, const char *name) {
	*p = (struct profile){
		.name = strdup(name),
		.dialect = dialect_default(),
		.permission_wait = SETTINGS_NEVER,
		.owner_grace = 15000,
		.control_timeout = 60000,
		.idle_sleep = (int64_t)30 * 60 * 1000,
		.stall_after = (int64_t)5 * 60 * 1000,
		.stop_grace = 5000,
	};
	if (p->name && words_set(&p->pass_env, pass_all) && words_set(&p->resume_args, p->dialect->resume_args))
		return true;
	profile_free(p);
	return false;
}

struct profile *settings_add_profile(struct settings *s, const char *name) {
	size_t n = s->n_profiles;
	if ((n & (n - 1)) == 0) { /* a power of two, or 0: there is room for so many */
		struct profile *all = realloc(s->profiles, (n ? 2 * n : 1) * sizeof *all);
		if (!all) return NULL;
		s->profiles = all;
	}
	return profile_init(&s->profiles[n], name) ? &s->profiles[s->n_profiles++] : NULL;
}

bool settings_speak(struct profile *p, const struct dialect *d) {
	struct words old = {0}, new = {0};
	bool good = words_set(&old, p->dialect->resume_args) && words_set(&new, d->resume_args);
	bool unset = words_same(&old, &p->resume_args);
	if (good) p->dialect = d;
	words_free(&old);
	if (!good || !unset) {
		words_free(&new);
		return good;
	}
	words_free(&p->resume_args);
	p->resume_args = new;
	return true;
}

/* The built-in profiles of all dialects. */
static bool add_built_in(struct settings *s) {
	for (size_t i = 0; dialect_list[i]; i++) {
		const struct dialect *d = dialect_list[i];
		for (const struct dialect_profile *one = d->profiles; one && one->name; one++) {
			struct profile *p = settings_add_profile(s, one->name);
			if (!p || !settings_speak(p, d) || !words_set(&p->command, one->command) ||
				!words_set(&p->command, d->flags) || !words_set(&p->env, d->env))
				return false;
		}
	}
	return true;
}

struct settings *settings_new(void) {
	struct settings *s = malloc(sizeof *s);
	if (!s) return NULL;
	*s = (struct settings){
		.refs = 1,
		.log_level = LOG_INFO,
		.max_sessions = 1024,
		.max_children = 256,
		.max_clients = 16384,
		.memory_pressure = true,
		.log_commands = true,
		.notify_interval = 10000,
		.notify_limit = 600000,
		.outside_timeout = 10000,
		.limits = LIMITS_DEFAULT,
	};
	s->default_profile = strdup("claude"); /* the scripted agent is used only by name */
	if (s->default_profile && add_built_in(s)) return s;
	settings_unref(s);
	return NULL;
}

struct settings *settings_ref(struct settings *s) {
	if (s) s->refs++;
	return s;
}

void settings_unref(struct settings *s) {
	if (!s || --s->refs) return;
	for (size_t i = 0; i < s->n_profiles; i++) profile_free(&s->profiles[i]);
	free(s->profiles);
	free(s->socket);
	free(s->state_dir);
	free(s->default_profile);
	access_free(&s->allow);
	access_free(&s->approve);
	for (size_t i = 0; i < ALERT_KINDS; i++) words_free(&s->on[i]);
	words_free(&s->files);
	free(s);
}

const struct profile *settings_profile(const struct settings *s, const char *name) {
	for (size_t i = 0; i < s->n_profiles; i++)
		if (strcmp(s->profiles[i].name, name) == 0) return &s->profiles[i];
	return NULL;
}
