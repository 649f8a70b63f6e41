/* SPDX-License-Identifier: MIT
 *
 * The table of sessions with damage. The first byte of the input says which:
 *   R  the rest is the file
 *   S  the rest is its lines, without their sums
 *   E  the rest is changes of a table of guarded sessions, six bytes each: what, where (2), how much, with what (2)
 * Whatever stands in the file, loading ends, names the copy that it kept, and gives only sessions that can be used;
 * what was loaded is the same after it was saved and loaded again; and no session of the changed table is there without
 * its guards: it has them exactly, or refuses every tool, or every session that is made later does.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/macros.h"
#include "store/state.h"
#include "target.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
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
	struct error error;
	snprintf(folder.path, sizeof folder.path, "%s/plenum-fuzz-XXXXXX",
			 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	INSIST(mkdtemp(folder.path));
	folder.fd = open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	folder.state = state_open(folder.path, NULL, &error);
	INSIST(folder.fd >= 0 && folder.state);
	atexit(remove_folder);
}

static void write_table(const void *data, size_t size) {
	_cleanup_close_ int fd = openat(folder.fd, "sessions.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	INSIST(fd >= 0 && fd_write_all(fd, data, size) == 0);
}

static uint64_t sum_of(const char *p, size_t n) {
	uint64_t h = 14695981039346656037ULL;
	for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)p[i]) * 1099511628211ULL;
	return h;
}

static void write_sealed(const char *text, size_t n) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	for (const char *line = text, *end = text + n; line < end;) {
		const char *lf = memchr(line, '\n', (size_t)(end - line)), *stop = lf ? lf : end;
		size_t len = (size_t)(stop - line) - (stop > line); /* without the brace */
		buf_put(&b, line, len);
		buf_printf(&b, ",\"sum\":\"%016" PRIx64 "\"}\n", sum_of(line, len));
		line = stop + 1;
	}
	INSIST(!b.failed);
	write_table(b.data ? b.data : "", b.len);
	buf_free(&b);
}

/* Takes away the copies; how many there are. */
static size_t remove_copies(void) {
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
	one->guards = copy(s->guards);
	one->mode = copy(s->mode);
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
		free(l->all[i].guards);
		free(l->all[i].mode);
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
		   same_text(a->guards, b->guards) && same_text(a->mode, b->mode) &&
		   same_list(a->args, a->n_args, b->args, b->n_args) && same_list(a->env, a->n_env, b->env, b->n_env) &&
		   a->uid == b->uid && a->env_only == b->env_only && a->child_pid == b->child_pid &&
		   a->child_start == b->child_start && a->created_ms == b->created_ms && a->used_ms == b->used_ms &&
		   a->seq == b->seq;
}

static int load(struct loaded *l, struct error *error) {
	*l = (struct loaded){0};
	int n = state_load(folder.state, take, l, error);
	INSIST(n >= 0 && (size_t)n == l->n);
	INSIST((*error->text != 0) == (remove_copies() == 1)); /* kept, and said so; or nothing was wrong */
	return n;
}

/* --- a table of guarded sessions, changed --------------------------------------------------------------------------
 */

static char name_a[] = "work", name_b[] = "\xff\xfe", profile[] = "claude", id[] = "c-1", word[] = "--x",
			mode[] = "plan";
static char guards_a[] = "[{\"uid\":1,\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\"}]}}]",
			guards_b[] = "[{\"uid\":2}]";
static char *words[] = {word, NULL};
static const struct state_session known[] = {
	{.name = name_a,
	 .profile = profile,
	 .conversation_id = id,
	 .args = words,
	 .n_args = 1,
	 .guards = guards_a,
	 .uid = 7},
	{.name = name_b,
	 .profile = profile,
	 .cwd = name_b,
	 .env = words,
	 .n_env = 1,
	 .guards = guards_b,
	 .mode = mode,
	 .seq = 9},
};

static void save_known(struct buf *b) {
	struct error error;
	state_set_lost(folder.state, false);
	state_set_seq(folder.state, 5);
	INSIST(state_save(folder.state, known, ARRAY_SIZE(known), &error));
	_cleanup_close_ int fd = openat(folder.fd, "sessions.json", O_RDONLY | O_CLOEXEC);
	INSIST(fd >= 0 && buf_reserve(b, 65536));
	ssize_t n = fd_read(fd, b->data, 65536);
	INSIST(n > 0);
	b->len = (size_t)n;
}

/* c: a byte; x: a bit; d: a part is deleted; e: the end; i: one byte, again and again; m: a part stands twice. */
static void change(struct buf *b, const uint8_t *op) {
	size_t at = b->len ? (size_t)(op[1] << 8 | op[2]) % b->len : 0, n = MIN((size_t)op[3] + 1, b->len - at);
	if (b->len == 0 || b->len > 32768) return;
	switch (op[0]) {
	case 'c':
		b->data[at] = (char)op[4];
		break;
	case 'd':
		memmove(b->data + at, b->data + at + n, b->len - at - n);
		b->len -= n;
		break;
	case 'e':
		b->len = at;
		break;
	case 'i':
		memmove(b->data + at + n, b->data + at, b->len - at);
		memset(b->data + at, op[4], n);
		b->len += n;
		break;
	case 'm':
		memmove(b->data + at + n, b->data + at, b->len - at);
		b->len += n;
		break;
	default:
		b->data[at] = (char)(b->data[at] ^ 1 << op[4] % 8);
	}
}

static void change_known(const uint8_t *data, size_t size) {
	struct buf b = BUF_INIT(1 << 20);
	save_known(&b);
	for (; size >= 6; data += 6, size -= 6) change(&b, data);
	write_table(b.data, b.len);
	buf_free(&b);
}

static void is_guarded(const struct loaded *l, const struct state_session *want) {
	bool found = false;
	for (size_t i = 0; i < l->n; i++) {
		const struct state_session *s = &l->all[i];
		if (strcmp(s->name, want->name) != 0) continue;
		found = true;
		INSIST(strcmp(s->guards, STATE_UNREADABLE) == 0 ? same_text(s->mode, STATE_UNREADABLE) : same(s, want));
	}
	INSIST(found || state_lost(folder.state));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct error error;
	struct loaded first, again;
	if (!folder.state) make_folder();
	char what = size ? (char)*data : 'R';
	const uint8_t *rest = data + (size > 0);
	size_t n = size - (size > 0);
	if (what == 'E')
		change_known(rest, n);
	else if (what == 'S')
		write_sealed((const char *)rest, n);
	else
		write_table(rest, n);
	load(&first, &error);
	for (size_t i = 0; what == 'E' && i < ARRAY_SIZE(known); i++) is_guarded(&first, &known[i]);
	bool lost = state_lost(folder.state);
	INSIST(state_save(folder.state, first.all, first.n, &error) && !*error.text);
	load(&again, &error);
	INSIST(!*error.text && again.n == first.n && state_lost(folder.state) == lost);
	for (size_t i = 0; i < first.n; i++) INSIST(same(&first.all[i], &again.all[i]));
	drop(&first);
	drop(&again);
	return 0;
}
