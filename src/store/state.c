/* SPDX-License-Identifier: MIT */
#include "store/state.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/str.h"
#include "io/lock.h"
#include "io/syncer.h"
#include "store/draft.h"
#include "wire/limits.h"
#include "wire/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define FILE_NAME "sessions.json"
#define NEXT_NAME "sessions.json.next"
#define NEW_NAME "sessions.json.new"
#define LOCK_NAME "lock"
#define SEQ_MAX (INT64_C(1) << 52)   /* far below 2^53, the limit of exact integers in JavaScript clients */
#define READ_MAX (16 * LIMITS_TABLE) /* older daemons wrote longer tables */
#define BOOT_MAX 64

struct state {
	char *dir;
	char *socket;        /* of this daemon, for the lock file; NULL: none */
	char boot[BOOT_MAX]; /* the id of this boot */
	int dir_fd, lock_fd;
	struct syncer *syncer;  /* NULL: state_save() waits for the disk */
	int syncing;            /* being synced: a table, or dir_fd; -1: nothing */
	int newer;              /* the next table to sync; -1: none */
	int64_t seq;            /* of closed sessions */
	struct record *records; /* the long parts of the table, as text */
	struct state_left *left;
	size_t n_left;
	bool lost; /* sessions were lost, and even their names */
	void (*synced)(void *arg, const char *error);
	void *arg;
};

/* --- The directory and its lock ---------------------------------------------------------------------------------- */

/* number: the errno of the last mkdir(), which may not matter if the directory exists. */
static bool make_folders(const char *dir, int *number, struct error *error) {
	_cleanup_free_ char *path = strdup(dir);
	if (!path) return error_set(error, "out of memory");
	for (char *p = path; p && *p;) {
		p = strchr(p + 1, '/');
		if (p) *p = 0;
		*number = mkdir(path, 0700) < 0 && errno != EEXIST ? errno : 0;
		if (*number && *number != EROFS && *number != EACCES)
			return error_set(error, "cannot make the directory %s: %s", path, strerror(errno));
		if (p) *p = '/';
	}
	return true; /* open() reports other errors */
}

static int open_folder(const char *dir, struct error *error) {
	struct stat st;
	int made = 0;
	if (!make_folders(dir, &made, error)) return -1;
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int number = errno;
	if ((fd < 0 ? stat(dir, &st) : fstat(fd, &st)) == 0 && st.st_uid != geteuid()) { /* as left by sudo */
		error_set(error,
				  "the directory %s belongs to uid %u, not to uid %u: give it back with chown, or name another with "
				  "state_dir",
				  dir, st.st_uid, geteuid());
		return -1;
	}
	if (fd < 0) {
		error_set(error, "cannot %s the directory %s: %s; name another with state_dir", made ? "make" : "open", dir,
				  strerror(made ? made : number));
		return -1;
	}
	if ((st.st_mode & 077) && fchmod(fd, 0700) < 0) {
		error_set(error, "the directory %s is open to others and cannot be closed: %s", dir, strerror(errno));
		return -1;
	}
	int result = fd;
	fd = -1;
	return result;
}

static void name_holder(int fd, const char *dir, struct error *error) {
	char pid[4200] = "";
	ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
	pid[n > 0 ? n : 0] = 0;
	char *socket = pid + strspn(pid, "0123456789");
	if (*socket) *socket++ = 0;
	socket[strcspn(socket, "\n")] = 0;
	error_set(
		error,
		"another plenumd%s%s%s%.150s%s uses the directory %.150s: stop it, or give this one a directory of its own "
		"(`state_dir` in plenum.conf, or XDG_STATE_HOME)",
		*pid ? " with pid " : "", pid, *socket ? ", which listens on " : "", socket, *socket ? "," : "", dir);
	errno = EWOULDBLOCK;
}

static int take_lock(int dir_fd, const char *dir, const char *socket, struct error *error) {
	_cleanup_close_ int fd = openat(dir_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		int number = errno;
		bool closed = number == EACCES || number == EROFS || number == ENOSPC || number == EDQUOT;
		error_set(error, "cannot %s %s/" LOCK_NAME ": %s%s", closed ? "write" : "open", dir, strerror(number),
				  closed ? "; make the directory writable, or name another with state_dir" : "");
		errno = number;
		return -1;
	}
	if (lock_take(fd) < 0) {
		if (errno == EWOULDBLOCK)
			name_holder(fd, dir, error);
		else
			error_set(error, "cannot lock %s/" LOCK_NAME ": %s", dir, strerror(errno));
		return -1;
	}
	if (ftruncate(fd, 0) == 0) /* only for the message: a full disk does no harm */
		dprintf(fd, "%d\n%s%s", (int)getpid(), socket ? socket : "", socket ? "\n" : "");
	int result = fd;
	fd = -1;
	return result;
}

static bool open_both(const char *dir, const char *socket, int *dir_fd, int *lock_fd, struct error *error) {
	*dir_fd = open_folder(dir, error);
	if (*dir_fd < 0) return false;
	*lock_fd = take_lock(*dir_fd, dir, socket, error);
	if (*lock_fd >= 0) return true;
	int number = errno;
	close(*dir_fd);
	errno = number;
	return false;
}

/* Takes ownership of dir; NULL without it. */
static struct state *make(char *dir, const char *socket) {
	struct state *s = dir ? calloc(1, sizeof *s) : NULL;
	if (s && socket && !(s->socket = strdup(socket))) {
		free(s);
		s = NULL;
	}
	if (!s) {
		free(dir);
		return NULL;
	}
	s->dir = dir;
	s->syncing = s->newer = -1;
	/* Process numbers and start times are valid only within one boot. "": unknown. */
	_cleanup_close_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? fd_read(fd, s->boot, sizeof s->boot - 1) : -1;
	s->boot[got > 0 ? got : 0] = 0;
	s->boot[strcspn(s->boot, "\n")] = 0;
	return s;
}

static struct state *drop(struct state *s) {
	int number = errno;
	record_free(&s->records);
	free(s->left);
	free(s->socket);
	free(s->dir);
	free(s);
	errno = number;
	return NULL;
}

struct state *state_open(const char *dir, const char *socket, struct error *error) {
	error->text[0] = 0;
	struct state *s = make(dir ? strdup(dir) : path_state_dir(), socket);
	if (s) return open_both(s->dir, s->socket, &s->dir_fd, &s->lock_fd, error) ? s : drop(s);
	error_set(error, "no directory for the table of sessions: set HOME, XDG_STATE_HOME or state_dir");
	errno = ENOENT;
	return NULL;
}

void state_close(struct state *s) {
	if (!s) return;
	s->synced = NULL;
	state_settle(s);
	syncer_free(s->syncer);
	close(s->lock_fd);
	close(s->dir_fd);
	drop(s);
}

int state_lock(const struct state *s) {
	return s->lock_fd;
}

struct state *state_resume(const char *dir, const char *socket, int lock, struct error *error) {
	struct state *s = make(strdup(dir), socket);
	if (!s) {
		error_set(error, "out of memory");
		return NULL;
	}
	s->lock_fd = lock;
	s->dir_fd = open_folder(dir, error);
	return s->dir_fd >= 0 ? s : drop(s);
}

const char *state_dir(const struct state *s) {
	return s->dir;
}

/* Make the directory and its lock again after it was removed at run time. */
static bool reopen(struct state *s, struct error *error) {
	int dir_fd, lock_fd;
	state_settle(s);
	if (!open_both(s->dir, s->socket, &dir_fd, &lock_fd, error)) return false;
	close(s->dir_fd);
	close(s->lock_fd);
	s->dir_fd = dir_fd;
	s->lock_fd = lock_fd;
	return true;
}

/* --- Writing ----------------------------------------------------------------------------------------------------- */

static void put_head(struct draft *d, const struct state *s, const struct state_session *all, size_t n) {
	struct buf *b = &d->own;
	buf_printf(b, "{\"version\":%d,\"seq\":%jd,\"lost\":%s,\"boot\":", STATE_VERSION, (intmax_t)s->seq,
			   s->lost ? "true" : "false");
	draft_text(d, s->boot);
	buf_puts(b, ",\"left\":[");
	for (size_t i = 0; i < s->n_left; i++)
		buf_printf(b, "%s[%jd,%jd,%jd]", i ? "," : "", (intmax_t)s->left[i].pid, (intmax_t)s->left[i].start,
				   (intmax_t)s->left[i].number);
	buf_puts(b, "],\"sessions\":[");
	for (size_t i = 0; i < n; i++) {
		buf_puts(b, i ? ",[" : "[");
		draft_text(d, all[i].name);
		buf_putc(b, ',');
		draft_text(d, all[i].conversation_id);
		buf_putc(b, ']');
	}
	buf_putc(b, ']');
	draft_end_line(d);
}

/* Write the next table. Readers see it at once, the next daemon too; it may not be on the disk yet. */
static int write_next(int dir_fd, const struct draft *d) {
	int fd = openat(dir_fd, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && draft_write(d, fd) == 0 && renameat(dir_fd, NEW_NAME, dir_fd, NEXT_NAME) == 0) return fd;
	int saved = errno;
	if (fd >= 0) close(fd);
	unlinkat(dir_fd, NEW_NAME, 0);
	errno = saved;
	return -1;
}

static bool say_unwritten(const struct state *s, int number, struct error *error) {
	return error_set(error, "cannot write %s/" FILE_NAME ": %s; the table of before is kept", s->dir, strerror(number));
}

static void sync_next(struct state *s, int fd) {
	s->syncing = fd;
	syncer_start(s->syncer, fd);
}

/* The thread frees the old table: for that its data must outlive the rename. */
static bool rename_next(struct state *s) {
	int old = openat(s->dir_fd, FILE_NAME, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	bool done = renameat(s->dir_fd, NEXT_NAME, s->dir_fd, FILE_NAME) == 0;
	int number = errno;
	if (old >= 0) syncer_close(s->syncer, old);
	errno = number;
	return done;
}

static void on_synced(void *arg, int number) {
	struct state *s = arg;
	struct error error;
	bool table = s->syncing != s->dir_fd;
	if (table) syncer_close(s->syncer, s->syncing);
	s->syncing = -1;
	if (s->newer >= 0) {
		int fd = s->newer;
		s->newer = -1;
		sync_next(s, fd);
		return;
	}
	if (table && number == 0) { /* the newest table is on the disk: rename it over the old one */
		if (!rename_next(s))
			number = errno;
		else
			sync_next(s, s->dir_fd); /* some file systems cannot fsync a directory: no failure */
	}
	if (number) say_unwritten(s, number, &error);
	if (table && s->synced) s->synced(s->arg, number ? error.text : NULL);
}

bool state_save_behind(struct state *s, struct loop *loop, void (*synced)(void *arg, const char *error), void *arg) {
	s->synced = synced;
	s->arg = arg;
	s->syncer = syncer_new(loop, on_synced, s);
	return s->syncer != NULL;
}

void state_settle(struct state *s) {
	while (s->syncing >= 0 && syncer_wait(s->syncer)) {}
}

/* Without a syncer thread the caller waits for the disk. */
static int save_now(struct state *s, int fd) {
	int rc = fsync(fd), saved = errno;
	close(fd);
	errno = saved;
	if (rc < 0 || renameat(s->dir_fd, NEXT_NAME, s->dir_fd, FILE_NAME) < 0) {
		saved = errno;
		unlinkat(s->dir_fd, NEXT_NAME, 0);
		errno = saved;
		return -1;
	}
	fsync(s->dir_fd);
	return 0;
}

static int replace(struct state *s, const struct draft *d) {
	int fd = write_next(s->dir_fd, d);
	if (fd < 0) return -1;
	if (!s->syncer) return save_now(s, fd);
	if (s->syncing < 0) {
		sync_next(s, fd);
	} else {
		if (s->newer >= 0) syncer_close(s->syncer, s->newer);
		s->newer = fd;
	}
	return 0;
}

/* Its head is also its last line. */
static void put_table(struct draft *d, struct state *s, const struct state_session *all, size_t n) {
	put_head(d, s, all, n);
	size_t head = d->len;
	for (size_t i = 0; i < n; i++) record_put(d, &s->records, &all[i]);
	record_sweep(&s->records);
	draft_repeat(d, head);
}

bool state_save(struct state *s, const struct state_session *all, size_t n, struct error *error) {
	struct draft d;
	error->text[0] = 0;
	bool ok = false;
	int number = ENOMEM;
	draft_init(&d);
	put_table(&d, s, all, n);
	if (d.own.failed) {
		error_set(error, "cannot write the table of sessions: out of memory");
	} else if (d.len > LIMITS_TABLE) {
		error_set(error, "the table of sessions would be longer than %zu bytes: forget sessions", LIMITS_TABLE);
		number = EFBIG;
	} else {
		ok = replace(s, &d) == 0 || (errno == ENOENT && reopen(s, error) && replace(s, &d) == 0);
		number = errno;
		if (!ok && !*error->text) say_unwritten(s, number, error);
	}
	draft_free(&d);
	errno = number;
	return ok;
}

bool state_has(const struct state *s, struct state_session *one, enum record_part part) {
	return record_has(s->records, one->id, part, one->marks[part], &one->hashes[part]);
}

/* --- From JSON --------------------------------------------------------------------------------------------------- */

static int hex_digit(char c) {
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
	return at ? (int)(at - digits) : -1;
}

static char *from_hex(const char *hex) {
	size_t n = strlen(hex) / 2;
	char *text = strlen(hex) % 2 ? NULL : malloc(n + 1); /* an odd length: the end is missing */
	for (size_t i = 0; text && i < n; i++) {
		int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
		if (high < 0 || low < 0 || (!high && !low)) {
			free(text);
			return NULL;
		}
		text[i] = (char)(high << 4 | low);
	}
	if (text) text[n] = 0;
	return text;
}

/* Absent and null are NULL. */
static bool from_text(const json_t *value, char **text) {
	if (!value || json_is_null(value)) return true;
	const char *hex = json_string_value(json_object_get(value, "hex"));
	*text = hex ? from_hex(hex) : str_dup(json_string_value(value));
	return *text != NULL;
}

static bool from_list(const json_t *value, char ***v, size_t *n) {
	if (!value || json_is_null(value)) return true;
	if (!json_is_array(value)) return false;
	*v = calloc(json_array_size(value) + 1, sizeof **v);
	if (!*v) return false;
	for (size_t i = 0; i < json_array_size(value); i++) {
		if (!from_text(json_array_get(value, i), &(*v)[i]) || !(*v)[i]) return false;
		*n = i + 1;
	}
	return true;
}

static bool read_number(const json_t *j, const char *key, int64_t min, int64_t max, int64_t *n) {
	const json_t *value = json_object_get(j, key);
	*n = json_integer_value(value);
	return json_is_integer(value) && *n >= min && *n <= max;
}

static bool read_numbers(const json_t *j, struct state_session *s) {
	int64_t uid, pid, start, seq;
	if (!read_number(j, "uid", 0, UINT32_MAX, &uid) || !read_number(j, "child_pid", 0, INT32_MAX, &pid) ||
		!read_number(j, "child_start", 0, INT64_MAX, &start) || !read_number(j, "seq", 0, SEQ_MAX, &seq) ||
		!read_number(j, "created_ms", INT64_MIN, INT64_MAX, &s->created_ms) ||
		!read_number(j, "used_ms", INT64_MIN, INT64_MAX, &s->used_ms))
		return false;
	s->uid = (uid_t)uid;
	s->child_pid = (pid_t)pid;
	s->child_start = (uint64_t)start;
	s->seq = (uint64_t)seq;
	return true;
}

/* The texts of a record. */
#define TEXT(member)                                                                                                   \
	{ #member, offsetof(struct state_session, member) }
static const struct {
	const char *key;
	size_t at;
} texts[] = {TEXT(name), TEXT(profile), TEXT(cwd), TEXT(conversation_id), TEXT(previous_id), TEXT(guards),
			 TEXT(mode), TEXT(timers),  TEXT(memo)};
#undef TEXT

static char **text_of(const struct state_session *s, size_t i) {
	void *at = (char *)(uintptr_t)s + texts[i].at;
	return at;
}

/* Read the whole record, or nothing. */
static bool read_session(const json_t *j, struct state_session *s) {
	const json_t *env_only = json_object_get(j, "env_only");
	s->env_only = json_is_true(env_only);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (!from_text(json_object_get(j, texts[i].key), text_of(s, i))) return false;
	return json_is_boolean(env_only) && read_numbers(j, s) && s->name && *s->name && s->profile &&
		   from_list(json_object_get(j, "args"), &s->args, &s->n_args) &&
		   from_list(json_object_get(j, "env"), &s->env, &s->n_env);
}

static void free_list(char **v) {
	for (char **p = v; p && *p; p++) free(*p);
	free(v);
}

static void session_free(struct state_session *s) {
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) free(*text_of(s, i));
	free_list(s->args);
	free_list(s->env);
}

/* --- Reading ----------------------------------------------------------------------------------------------------- */

static char *read_file(int dir_fd, const char *name, size_t *n) {
	_cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0) return NULL;
	struct buf b = BUF_INIT(READ_MAX);
	size_t step = st.st_size < 65536 ? (size_t)st.st_size + 1 : 65536;
	for (;;) {
		if (!buf_reserve(&b, step)) break;
		ssize_t r = fd_read(fd, b.data + b.len, step);
		if (r == 0) return buf_steal(&b, n);
		if (r < 0) break;
		b.len += (size_t)r;
	}
	int saved = b.failed ? EFBIG : errno;
	buf_free(&b);
	errno = saved;
	return NULL;
}

/* Copy a damaged file to another name. It stays in place until the next table is written: it is the only sign of lost
 * sessions. An object that is not a file (a directory) is in the next table's way and is moved. */
static void set_aside(struct state *s, const char *file, const char *why, struct error *error) {
	char name[80], stamp[32];
	time_t now = time(NULL);
	struct tm tm;
	struct stat st;
	bool copy = fstatat(s->dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
	strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	int rc = -1;
	for (int i = 0; i < 100 && rc < 0; i++) {
		snprintf(name, sizeof name, i ? FILE_NAME ".damaged-%s-%d" : FILE_NAME ".damaged-%s", stamp, i);
		rc = copy ? linkat(s->dir_fd, file, s->dir_fd, name, 0)
				  : renameat2(s->dir_fd, file, s->dir_fd, name, RENAME_NOREPLACE);
		if (rc < 0 && errno != EEXIST) break;
	}
	if (rc < 0)
		error_set(error, "%s/%s is damaged (%s), and no copy can be kept: %s", s->dir, file, why, strerror(errno));
	else
		error_set(error, "%s/%s is damaged (%s); it is kept as %s/%s", s->dir, file, why, s->dir, name);
}

/* A table as read from disk. */
struct found {
	bool there, whole;
	json_t *head; /* either copy; NULL: both are unreadable, and the set of sessions is unknown */
	struct state_session *all;
	size_t n, bad;      /* bad: unreadable lines */
	json_int_t version; /* of another plenumd; 0: of this one */
	char why[128];
};

static json_t *read_line(const char *line, size_t n) {
	char seal[DRAFT_SEAL_LEN + 1];
	if (n < DRAFT_SEAL_LEN + 1) return NULL;
	draft_seal(seal, line, n - DRAFT_SEAL_LEN);
	if (memcmp(line + n - DRAFT_SEAL_LEN, seal, DRAFT_SEAL_LEN) != 0) return NULL;
	struct parse_error error;
	json_t *value = parse_json(line, n, JSON_REJECT_DUPLICATES, &error);
	if (error.no_memory) log_no_memory(); /* an intact record would count as damaged */
	return value;
}

static bool is_head(const json_t *j) {
	const json_t *version = json_object_get(j, "version"), *one;
	size_t i;
	if (json_integer_value(version) != STATE_VERSION || !json_is_array(json_object_get(j, "sessions"))) return false;
	json_array_foreach(json_object_get(j, "sessions"), i, one) {
		_cleanup_free_ char *name = NULL, *id = NULL;
		if (json_array_size(one) != 2 || !from_text(json_array_get(one, 0), &name) || !name || !*name ||
			!from_text(json_array_get(one, 1), &id))
			return false;
	}
	return true;
}

static bool take_record(struct found *f, const json_t *j) {
	struct state_session one = {0}, *more;
	bool ok = read_session(j, &one) && (more = realloc(f->all, (f->n + 1) * sizeof *more));
	if (ok) {
		f->all = more;
		f->all[f->n++] = one;
	} else {
		session_free(&one);
	}
	return ok;
}

static void take_line(struct found *f, const char *line, size_t n, size_t *heads) {
	json_auto_t *j = read_line(line, n);
	json_int_t version = json_integer_value(json_object_get(j, "version"));
	if (version && version != STATE_VERSION) f->version = version;
	if (is_head(j)) {
		if (!f->head) f->head = json_incref(j);
		++*heads;
	} else if (!j || !take_record(f, j)) {
		f->bad++;
	}
}

static const struct state_session *record_of(const struct found *f, const char *name, size_t hint) {
	if (hint < f->n && strcmp(f->all[hint].name, name) == 0) return &f->all[hint];
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->all[i].name, name) == 0) return &f->all[i];
	return NULL;
}

/* The head has names and conversations: they are known even if the record is damaged. */
static size_t index_size(const struct found *f) {
	return json_array_size(json_object_get(f->head, "sessions"));
}

static bool read_left(const json_t *one, struct state_left *out) {
	json_int_t n[3];
	for (size_t i = 0; i < 3; i++) n[i] = json_integer_value(json_array_get(one, i));
	*out = (struct state_left){(pid_t)n[0], (uint64_t)n[1], (uint64_t)n[2]};
	return n[0] > 1 && n[0] <= INT32_MAX && n[1] >= 0 && n[2] >= 0;
}

static void load_left(struct state *s, const json_t *table) {
	const json_t *all = json_object_get(table, "left"), *one;
	const char *then = json_string_value(json_object_get(table, "boot"));
	size_t i;
	free(s->left);
	s->n_left = 0;
	s->left = then && *then && strcmp(then, s->boot) == 0 ? calloc(json_array_size(all) + 1, sizeof *s->left) : NULL;
	json_array_foreach(all, i, one) if (s->left && read_left(one, &s->left[s->n_left])) s->n_left++;
}

static bool index_entry(const struct found *f, size_t i, char **name, char **conversation) {
	const json_t *one = json_array_get(json_object_get(f->head, "sessions"), i);
	*name = *conversation = NULL;
	return from_text(json_array_get(one, 0), name) && from_text(json_array_get(one, 1), conversation);
}

static bool in_index(const struct found *f, const char *who) {
	for (size_t i = 0; i < index_size(f); i++) {
		_cleanup_free_ char *name, *conversation;
		if (index_entry(f, i, &name, &conversation) && strcmp(name, who) == 0) return true;
	}
	return false;
}

static void found_free(struct found *f) {
	for (size_t i = 0; i < f->n; i++) session_free(&f->all[i]);
	free(f->all);
	json_decref(f->head);
	f->all = NULL;
	f->head = NULL;
	f->n = 0;
}

static void find(struct state *s, const char *file, struct found *f) {
	size_t n = 0, heads = 0;
	_cleanup_free_ char *text = read_file(s->dir_fd, file, &n);
	*f = (struct found){.there = text || errno != ENOENT};
	if (!text) {
		snprintf(f->why, sizeof f->why, "%s", strerror(errno));
		return;
	}
	for (const char *line = text, *end = text + n; line < end;) {
		const char *lf = memchr(line, '\n', (size_t)(end - line)), *stop = lf ? lf : end;
		take_line(f, line, (size_t)(stop - line), &heads);
		line = lf ? lf + 1 : end;
	}
	if (f->version) found_free(f); /* the meaning of its records is unknown */
	size_t missing = 0;
	for (size_t i = 0; i < index_size(f); i++) {
		_cleanup_free_ char *name, *conversation;
		missing += !index_entry(f, i, &name, &conversation) || !record_of(f, name, i);
	}
	f->whole = heads == 2 && f->bad == 0 && missing == 0;
	if (f->version)
		snprintf(f->why, sizeof f->why, "its version is %lld, and this plenumd knows %d", (long long)f->version,
				 STATE_VERSION);
	else if (!f->head)
		snprintf(f->why, sizeof f->why, "neither copy of its head can be read");
	else
		snprintf(f->why, sizeof f->why, "%zu lines cannot be read; %zu of %zu sessions are lost", f->bad + 2 - heads,
				 missing, index_size(f));
}

/* --- Reporting sessions ------------------------------------------------------------------------------------------ */

struct showing {
	bool (*each)(void *arg, const struct state_session *s);
	void *arg;
	int taken;
	bool stopped;
};

static void show(struct showing *to, const struct state_session *s) {
	if (to->stopped) return;
	to->stopped = !to->each(to->arg, s);
	to->taken += !to->stopped;
}

/* Its current guards are unknown, and its rights are not guessed. */
static void show_unguarded(struct showing *to, const struct state_session *from) {
	static char unreadable[] = STATE_UNREADABLE;
	struct state_session s = *from;
	s.guards = s.mode = unreadable;
	if (!s.profile) s.profile = unreadable;
	show(to, &s);
}

/* Report sessions of the index without a record: with the record of an older table, else only by name and
 * conversation. */
static void show_missing(struct showing *to, const struct found *f, const struct found *newer,
						 const struct found *older) {
	for (size_t i = 0; i < index_size(f); i++) {
		_cleanup_free_ char *name, *conversation;
		if (!index_entry(f, i, &name, &conversation)) log_no_memory(); /* it would return unguarded */
		if (record_of(f, name, i) || (newer && (record_of(newer, name, i) || (newer->head && !in_index(newer, name)))))
			continue;
		const struct state_session *old = older ? record_of(older, name, i) : NULL;
		struct state_session bare = {.name = name, .conversation_id = conversation, .uid = geteuid()};
		show_unguarded(to, old ? old : &bare);
	}
}

/* Report sessions lost from the newer table from the older one, which may not have all guards. */
static void show_older(struct showing *to, const struct found *newer, const struct found *older) {
	if (newer->head) return; /* missing sessions are known and reported */
	for (size_t i = 0; i < older->n; i++)
		if (!record_of(newer, older->all[i].name, i)) show_unguarded(to, &older->all[i]);
	show_missing(to, older, newer, NULL);
}

static void show_found(struct state *s, struct showing *to, const struct found *f, const struct found *older) {
	for (size_t i = 0; i < f->n; i++) show(to, &f->all[i]);
	show_missing(to, f, NULL, older);
	if (older) show_older(to, f, older);
	s->lost = !f->head || json_is_true(json_object_get(f->head, "lost"));
	s->seq = -1;
	if (f->head && !read_number(f->head, "seq", 0, SEQ_MAX, &s->seq)) s->seq = -1;
	load_left(s, f->head ? f->head : older ? older->head : NULL);
}

void state_set_seq(struct state *s, uint64_t seq) {
	s->seq = (int64_t)seq;
}

bool state_set_left(struct state *s, const struct state_left *all, size_t n) {
	struct state_left *copy = calloc(n + 1, sizeof *copy);
	if (!copy) return false;
	if (n) memcpy(copy, all, n * sizeof *copy);
	free(s->left);
	s->left = copy;
	s->n_left = n;
	return true;
}

const struct state_left *state_left(const struct state *s, size_t *n) {
	*n = s->n_left;
	return s->left;
}

int64_t state_seq(const struct state *s) {
	return s->seq;
}

void state_set_lost(struct state *s, bool lost) {
	s->lost = lost;
}

bool state_lost(const struct state *s) {
	return s->lost;
}

/* A killed daemon may have left a newer table; a power failure may have left half of one. */
int state_load(struct state *s, bool (*each)(void *, const struct state_session *), void *arg, struct error *error) {
	struct found next, file = {0};
	struct showing to = {.each = each, .arg = arg};
	error->text[0] = 0;
	find(s, NEXT_NAME, &next);
	if (!next.whole) find(s, FILE_NAME, &file);
	if (next.there)
		show_found(s, &to, &next, next.whole ? NULL : &file);
	else if (file.there)
		show_found(s, &to, &file, NULL);
	if (file.there && !file.whole) set_aside(s, FILE_NAME, file.why, error);
	if (next.there && !next.whole) set_aside(s, NEXT_NAME, next.why, error);
	found_free(&next);
	found_free(&file);
	return to.taken;
}
