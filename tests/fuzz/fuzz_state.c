/* SPDX-License-Identifier: MIT
 *
 * The table of sessions as somebody may have left it: whatever stands in the file, loading ends, says what it set
 * aside, and gives only sessions that can be used; and what was loaded is the same after it was saved and loaded again.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "state.h"
#include "target.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static struct {
	char path[64];
	int fd;
	struct state *state;
} folder = {.fd = -1};

static void remove_folder(void) {
	state_close(folder.state);
	unlinkat(folder.fd, "lock", 0);
	unlinkat(folder.fd, "sessions.json", 0);
	rmdir(folder.path);
}

/* Made once. In memory where there is a place for that: the target writes a file or two each time. */
static void make_folder(void) {
	char error[STATE_ERROR_MAX];
	snprintf(folder.path, sizeof folder.path, "%s/plenum-fuzz-XXXXXX",
			 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	INSIST(mkdtemp(folder.path));
	folder.fd = open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	folder.state = state_open(folder.path, NULL, error);
	INSIST(folder.fd >= 0 && folder.state);
	atexit(remove_folder);
}

static void write_table(const uint8_t *data, size_t size) {
	_cleanup_close_ int fd = openat(folder.fd, "sessions.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	INSIST(fd >= 0 && fd_write_all(fd, data, size) == 0);
}

/* Takes away what was set aside; how many files those are. */
static size_t set_aside(void) {
	int fd = openat(folder.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	size_t n = 0;
	INSIST(d);
	for (const struct dirent *e; (e = readdir(d));)
		if (strncmp(e->d_name, "sessions.json.", 14) == 0 && unlinkat(folder.fd, e->d_name, 0) == 0) n++;
	closedir(d);
	return n;
}

/* --- what was loaded ---------------------------------------------------------------------------------------------- */

struct loaded {
	struct state_session *all;
	size_t n;
};

static char *copy(const char *text) {
	char *more = text ? strdup(text) : NULL;
	INSIST(!text || more);
	return more;
}

static char **copy_list(char *const *v, size_t n) {
	char **more = calloc(n + 1, sizeof *more);
	INSIST(more);
	for (size_t i = 0; i < n; i++) {
		INSIST(v[i]);
		more[i] = copy(v[i]);
	}
	return more;
}

static bool take(void *arg, const struct state_session *s) {
	struct loaded *l = arg;
	struct state_session *more = realloc(l->all, (l->n + 1) * sizeof *more);
	INSIST(more && s->name && *s->name && s->profile && s->child_pid >= 0);
	l->all = more;
	struct state_session *one = &more[l->n++];
	*one = *s;
	one->name = copy(s->name);
	one->profile = copy(s->profile);
	one->cwd = copy(s->cwd);
	one->conversation_id = copy(s->conversation_id);
	one->previous_id = copy(s->previous_id);
	one->args = copy_list(s->args, s->n_args);
	one->env = copy_list(s->env, s->n_env);
	return true;
}

static void free_list(char **v) {
	for (char **p = v; *p; p++) free(*p);
	free(v);
}

static void drop(struct loaded *l) {
	for (size_t i = 0; i < l->n; i++) {
		free(l->all[i].name);
		free(l->all[i].profile);
		free(l->all[i].cwd);
		free(l->all[i].conversation_id);
		free(l->all[i].previous_id);
		free_list(l->all[i].args);
		free_list(l->all[i].env);
	}
	free(l->all);
}

static bool same_text(const char *a, const char *b) {
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_list(char *const *a, size_t n, char *const *b, size_t m) {
	if (n != m) return false;
	for (size_t i = 0; i < n; i++)
		if (strcmp(a[i], b[i]) != 0) return false;
	return true;
}

static bool same(const struct state_session *a, const struct state_session *b) {
	return same_text(a->name, b->name) && same_text(a->profile, b->profile) && same_text(a->cwd, b->cwd) &&
		   same_text(a->conversation_id, b->conversation_id) && same_text(a->previous_id, b->previous_id) &&
		   same_list(a->args, a->n_args, b->args, b->n_args) && same_list(a->env, a->n_env, b->env, b->n_env) &&
		   a->uid == b->uid && a->env_only == b->env_only && a->child_pid == b->child_pid &&
		   a->child_start == b->child_start && a->created_ms == b->created_ms && a->used_ms == b->used_ms;
}

static int load(struct loaded *l, char *error) {
	*l = (struct loaded){0};
	int n = state_load(folder.state, take, l, error);
	INSIST(n >= 0 && (size_t)n == l->n);
	INSIST((*error != 0) == (set_aside() == 1)); /* kept, and said so; or nothing was wrong */
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char error[STATE_ERROR_MAX];
	struct loaded first, again;
	if (!folder.state) make_folder();
	write_table(data, size);
	load(&first, error);
	INSIST(state_save(folder.state, first.all, first.n, error) && !*error);
	load(&again, error);
	INSIST(!*error && again.n == first.n);
	for (size_t i = 0; i < first.n; i++) INSIST(same(&first.all[i], &again.all[i]));
	drop(&first);
	drop(&again);
	return 0;
}
