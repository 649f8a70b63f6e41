/* SPDX-License-Identifier: MIT */
#include "config/config.h"

#include "base/hash.h"
#include "base/paths.h"
#include "base/str.h"
#include "config/files.h"
#include "config/inifile.h"
#include "config/keys.h"
#include "io/errand.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#define PROFILE_NAME_MAX 40

/* A member given in any file, valid or not; with an empty key: the section of a profile. */
struct given {
	UT_hash_handle hh; /* by member */
	struct place at;   /* the last one */
	size_t profile;    /* its index */
	char member[];     /* "SECTION\nKEY" */
};

/* One run of config_load(). */
struct loader {
	struct inifile_user user;
	struct settings *s;
	struct errors *errors;
	struct given *given;

	const char *file; /* the file that is being read */
	bool in_section;  /* a known one; else its members are skipped: it was reported */
	enum keys_section section;
	size_t profile;     /* index */
	char *section_name; /* NULL: before the first */
};

static bool fail_memory(struct loader *l) {
	return errors_add_memory(l->errors);
}

static struct place at(const struct loader *l, int line) {
	return (struct place){.file = l->file, .line = line};
}

/* --- Given members ----------------------------------------------------------------------------------------------- */

/* Return a member; NULL: not given, or no memory to look, which was reported: else a known profile would be taken for a
 * new one, and its members would be lost. */
static struct given *find_member(const struct loader *l, const char *section, const char *key) {
	struct given *g = NULL;
	_cleanup_free_ char *member = str_printf("%s\n%s", section, key);
	if (member)
		HASH_FIND_STR(l->given, member, g);
	else
		errors_add_memory(l->errors);
	return g;
}

/* Return the last place of a member; NULL: not given. */
static const struct place *find_given(const struct loader *l, const char *section, const char *key) {
	const struct given *g = find_member(l, section, key);
	return g ? &g->at : NULL;
}

static const struct place *find_given_profile(const struct loader *l, const struct profile *p, const char *key) {
	_cleanup_free_ char *section = str_printf("profile %s", p->name);
	if (!section) errors_add_memory(l->errors);
	return section ? find_given(l, section, key) : NULL;
}

/* NULL without memory. */
static struct given *note_given(struct loader *l, const char *name, int line) {
	struct given *g = find_member(l, l->section_name, name);
	size_t section = strlen(l->section_name), n = section + 1 + strlen(name);
	if (!g && (g = calloc(1, sizeof *g + n + 1)) != NULL) {
		memcpy(g->member, l->section_name, section);
		g->member[section] = '\n';
		memcpy(g->member + section + 1, name, n - section - 1);
		if (!HASH_TRY_ADD(hh, l->given, g->member, n, g)) {
			free(g);
			g = NULL;
		}
	}
	if (g)
		g->at = at(l, line);
	else
		fail_memory(l);
	return g;
}

static void free_given(struct loader *l) {
	struct given *g, *next;
	HASH_ITER (hh, l->given, g, next) {
		HASH_DELETE(hh, l->given, g);
		free(g);
	}
}

/* --- Sections and members ----------------------------------------------------------------------------------------- */

static void check_profile_name(struct loader *l, const char *name, int line) {
	size_t n = strlen(name);
	for (size_t i = 0; i < n; i++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", name[i])) n = 0;
	if (n && n <= PROFILE_NAME_MAX) return;
	errors_add(l->errors, at(l, line),
			   "[profile %s]: write a name of 1 to %d letters, digits, dots, dashes and underscores", name,
			   PROFILE_NAME_MAX);
}

static bool add_profile(struct loader *l, const char *name, int line) {
	check_profile_name(l, name, line);
	struct profile *p = settings_add_profile(l->s, name);
	if (!p) return fail_memory(l);
	p->file = l->file;
	p->line = line;
	return true;
}

static bool name_profile_section(struct loader *l, const char *name) {
	free(l->section_name);
	l->section_name = str_printf("profile %s", name);
	return l->section_name || fail_memory(l);
}

/* A profile with a bad name is also parsed, for the errors in it. */
static bool enter_profile(struct loader *l, const char *name, int line) {
	size_t next = l->s->n_profiles;
	if (!name_profile_section(l, name)) return false;
	struct given *section = find_member(l, l->section_name, "");
	if (!section && add_profile(l, name, line) && (section = note_given(l, "", line)) != NULL) section->profile = next;
	if (!section) return false;
	l->profile = section->profile;
	l->section = KEYS_PROFILE;
	return true;
}

static void note_built_in(struct loader *l) {
	for (size_t i = 0; i < l->s->n_profiles; i++) {
		bool named = name_profile_section(l, l->s->profiles[i].name);
		struct given *section = named ? note_given(l, "", 0) : NULL;
		if (section) section->profile = i;
	}
	free(l->section_name);
	l->section_name = NULL;
}

static void on_section(struct inifile_user *user, const char *name, int line) {
	struct loader *l = CONTAINER_OF(user, struct loader, user);
	free(l->section_name);
	l->section_name = strdup(name);
	l->in_section = l->section_name || fail_memory(l);
	if (strcmp(name, "daemon") == 0)
		l->section = KEYS_DAEMON;
	else if (strcmp(name, "limits") == 0)
		l->section = KEYS_LIMITS;
	else if (strncmp(name, "profile ", 8) == 0)
		l->in_section = enter_profile(l, name + 8 + strspn(name + 8, " \t"), line);
	else
		l->in_section = errors_add(l->errors, at(l, line),
								   "there is no section [%s]: write [daemon], [limits] or [profile NAME]", name);
}

static void on_member(struct inifile_user *user, const char *name, const char *value, int line) {
	struct loader *l = CONTAINER_OF(user, struct loader, user);
	if (!l->section_name)
		errors_add(l->errors, at(l, line),
				   "\"%s\" stands before any section: write [daemon], [limits] or [profile NAME] above it", name);
	if (!l->in_section) return;
	const struct key *key = keys_find(l->section, name, strlen(name));
	if (!key) {
		struct buf known = BUF_INIT(4096);
		keys_list(l->section, &known);
		errors_add(l->errors, at(l, line), "there is no key \"%s\" in [%s]; its keys are: %s", name, l->section_name,
				   known.failed ? "" : known.data);
		buf_free(&known);
		return;
	}
	const struct place *before = find_given(l, l->section_name, name);
	if (before && before->file == l->file)
		errors_add(l->errors, at(l, line), "%s is given twice in [%s] of this file: keep one of the two lines", name,
				   l->section_name);
	void *base = l->section == KEYS_PROFILE ? (void *)&l->s->profiles[l->profile] : l->s;
	if (note_given(l, name, line)) keys_set(key, base, value, at(l, line), l->errors);
}

static bool knows(struct inifile_user *user, const char *name, size_t n) {
	const struct loader *l = CONTAINER_OF(user, struct loader, user);
	return l->in_section && keys_find(l->section, name, n);
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

/* A user that can write the file can run programs as this user. */
static bool check_owner(struct loader *l, const struct file *f) {
	if (S_ISDIR(f->mode)) return errors_add(l->errors, at(l, 0), "this is a directory: name a file");
	if (S_ISREG(f->mode) && (f->mode & S_IWOTH))
		errors_add(l->errors, at(l, 0), "world-writable: any user could run programs through it (chmod o-w)");
	if (!f->named && f->uid != 0 && f->uid != geteuid())
		errors_add(l->errors, at(l, 0), "this file belongs to uid %u, neither to root nor to you: chown it", f->uid);
	return true;
}

static void load_file(struct loader *l, const struct file *f) {
	l->file = f->path;
	if (f->error) {
		errors_add(l->errors, at(l, 0), "%s", strerror(f->error));
		return;
	}
	if (!words_add(&l->s->files, f->path)) {
		fail_memory(l);
		return;
	}
	l->file = l->s->files.v[l->s->files.n - 1];
	if (!check_owner(l, f)) return;
	FILE *stream = f->n ? fmemopen((char *)(uintptr_t)f->text, f->n, "r") : NULL;
	l->in_section = false;
	if (stream) inifile_read(stream, l->file, &l->user, l->errors);
	if (stream) fclose(stream);
	if (f->n && !stream) fail_memory(l);
	free(l->section_name);
	l->section_name = NULL;
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

static void check_default(struct loader *l) {
	const char *name = l->s->default_profile;
	const struct place *place = find_given(l, "daemon", "default_profile");
	if (!name || !place || settings_profile(l->s, name)) return;
	struct buf known = BUF_INIT(4096);
	for (size_t i = 0; i < l->s->n_profiles; i++) buf_printf(&known, "%s%s", i ? ", " : "", l->s->profiles[i].name);
	errors_add(l->errors, *place, "default_profile = %s: there is no [profile %s]; there are: %s", name, name,
			   known.data ? known.data : "");
	buf_free(&known);
}

static void check_profile(struct loader *l, const struct profile *p) {
	const struct place *warm = p->warm ? find_given_profile(l, p, "warm") : NULL;
	if (warm && p->dialect->take_step)
		errors_add(l->errors, *warm, "warm = %zu: children of dialect %s begin a conversation, and are not prestarted",
				   p->warm, p->dialect->name);
	if (warm && !find_given_profile(l, p, "cwd")) /* a prestarted child has no requester, so no directory of one */
		errors_add(l->errors, *warm, "warm = %zu needs a cwd in [profile %s]: children are prestarted there", p->warm,
				   p->name);
	if (!p->command.n && !find_given_profile(l, p, "command"))
		errors_add(l->errors, (struct place){.file = p->file, .line = p->line},
				   "[profile %s] has no command: write command = PROGRAM and its arguments", p->name);
}

/* --- Content of the files ---------------------------------------------------------------------------------------- */

static struct settings *parse(const char *at, const char *end, struct errors *errors) {
	struct loader l = {
		.user = {.section = on_section, .member = on_member, .knows = knows}, .s = settings_new(), .errors = errors};
	struct file f;
	if (!l.s) {
		fail_memory(&l);
		return NULL;
	}
	note_built_in(&l);
	while (files_next(&at, end, &f)) load_file(&l, &f);
	if (at != end) fail_memory(&l);
	for (size_t i = 0; i < l.s->n_profiles; i++) check_profile(&l, &l.s->profiles[i]);
	check_default(&l);
	free_given(&l);
	if (!errors->n) return l.s;
	settings_unref(l.s);
	return NULL;
}

#define FAKE "plenum-fakeagent"

static char *find_beside(const struct profile *p) {
	static const char *const places[] = {"", "/fakeagent"}; /* installed; in a build directory */
	struct error error;
	int number;
	if (!p || !p->command.n || strcmp(p->command.v[0], FAKE) != 0) return NULL;
	_cleanup_free_ char *found = child_find_program(p->command.v[0], getenv("PATH"), "/", &number, &error);
	_cleanup_free_ char *own = found ? NULL : path_own_dir();
	for (size_t i = 0; own && i < ARRAY_SIZE(places); i++) {
		char *path = str_printf("%s%s/plenum-fakeagent", own, places[i]);
		if (path && access(path, X_OK) == 0) return path;
		free(path);
	}
	return NULL;
}

void config_read(struct buf *out, const char *file) {
	struct errors errors = {0};
	struct buf files = BUF_INIT(SIZE_MAX / 4);
	files_read(&files, file);
	struct settings *s = files.failed ? NULL : parse(files.data, files.data + files.len, &errors);
	_cleanup_free_ char *fake = s ? find_beside(settings_profile(s, "fake")) : NULL;
	errand_put(out, fake ? fake : "");
	buf_put(out, &files.len, sizeof files.len); /* the errand may be killed between two files */
	buf_put(out, files.data, files.len);
	out->failed |= files.failed;
	buf_free(&files);
	settings_unref(s);
	errors_free(&errors);
}

struct settings *config_load(const struct buf *text, struct errors *errors) {
	const char *at = text->data, *end = at + text->len, *fake = errand_next(&at, end);
	size_t n = SIZE_MAX;
	if (fake && (size_t)(end - at) >= sizeof n) {
		memcpy(&n, at, sizeof n);
		at += sizeof n;
	}
	if (text->failed || (size_t)(end - at) != n) {
		errors_add(errors, (struct place){0}, "the files could not be read whole: reload again");
		return NULL;
	}
	struct settings *s = parse(at, end, errors);
	/* fake: the program of the profile fake and its like, if it is beside the daemon and not in PATH; else "". */
	for (size_t i = 0; s && *fake && i < s->n_profiles; i++) {
		struct profile *p = &s->profiles[i];
		bool is_fake = p->command.n && strcmp(p->command.v[0], FAKE) == 0;
		char *copy = is_fake ? strdup(fake) : NULL;
		if (!copy) continue;
		free(p->command.v[0]);
		p->command.v[0] = copy;
	}
	return s;
}

/* --- The errand --------------------------------------------------------------------------------------------------- */

/* Of the default places, the user's is the one that may be on a mount. */
char *config_ask(struct buf *request, const char *file) {
	errand_put(request, file ? file : "");
	_cleanup_free_ char *home = path_config_home();
	return file ? strdup(file) : home ? str_printf("%s/plenum", home) : strdup(FILES_SYSTEM);
}

int config_errand(void) {
	size_t n;
	struct buf text = BUF_INIT(SIZE_MAX / 4);
	_cleanup_free_ char *request = errand_request(&n);
	const char *at = request, *file = request ? errand_next(&at, request + n) : NULL;
	if (!file) return EX_USAGE;
	config_read(&text, *file ? file : NULL);
	if (!text.failed) errand_say(text.data, text.len);
	buf_free(&text);
	return EX_OK;
}
