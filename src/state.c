/* SPDX-License-Identifier: MIT */
#include "state.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "io/lock.h"
#include "io/syncer.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define FILE_NAME "sessions.json"
#define NEXT_NAME "sessions.json.next"
#define NEW_NAME "sessions.json.new"
#define LOCK_NAME "lock"
#define SEQ_MAX (INT64_C(1) << 52) /* far below what clients read in JavaScript can tell apart, 2^53 */
#define FILE_MAX ((size_t)256 * 1024 * 1024)

struct state {
	char *dir;
	char *socket; /* of this daemon, for the lock file; NULL: none */
	int dir_fd, lock_fd;
	struct syncer *syncer; /* NULL: whoever saves waits for the disk */
	int syncing;           /* on its way to the disk: a table, or dir_fd; -1: nothing */
	int newer;             /* the table that goes next; -1: none */
	int64_t seq;           /* of sessions that are gone */
	struct state_left *left;
	size_t n_left;
	void (*synced)(void *arg, const char *error);
	void *arg;
	void (*damaged)(void *arg, const char *text);
	void *damaged_arg;
};

PRINTF_LIKE(2, 3) static bool fail(char *error, const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(error, STATE_ERROR_MAX, fmt, ap);
	va_end(ap);
	return false;
}

/* --- The folder and its lock ------------------------------------------------------------------------------------- */

/* number: why the last one could not be made, where it may be there for all that. */
static bool make_folders(const char *dir, int *number, char *error) {
	_cleanup_free_ char *path = strdup(dir);
	if (!path) return fail(error, "out of memory");
	for (char *p = path; p && *p;) {
		p = strchr(p + 1, '/');
		if (p) *p = 0;
		*number = mkdir(path, 0700) < 0 && errno != EEXIST ? errno : 0;
		if (*number && *number != EROFS && *number != EACCES)
			return fail(error, "cannot make the folder %s: %s", path, strerror(errno));
		if (p) *p = '/';
	}
	return true; /* open() says the rest */
}

static int open_folder(const char *dir, char *error) {
	struct stat st;
	int made = 0;
	if (!make_folders(dir, &made, error)) return -1;
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int number = errno;
	if ((fd < 0 ? stat(dir, &st) : fstat(fd, &st)) == 0 && st.st_uid != geteuid()) { /* sudo has left such ones */
		fail(error,
			 "the folder %s belongs to uid %u, not to uid %u: give it back with chown, or name another with state_dir",
			 dir, st.st_uid, geteuid());
		return -1;
	}
	if (fd < 0) {
		fail(error, "cannot %s the folder %s: %s; name another with state_dir", made ? "make" : "open", dir,
			 strerror(made ? made : number));
		return -1;
	}
	if ((st.st_mode & 077) && fchmod(fd, 0700) < 0) {
		fail(error, "the folder %s is open to others and cannot be closed: %s", dir, strerror(errno));
		return -1;
	}
	int result = fd;
	fd = -1;
	return result;
}

static void name_holder(int fd, const char *dir, char *error) {
	char pid[4200] = "";
	ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
	pid[n > 0 ? n : 0] = 0;
	char *socket = pid + strspn(pid, "0123456789");
	if (*socket) *socket++ = 0;
	socket[strcspn(socket, "\n")] = 0;
	fail(error,
		 "another plenumd%s%s%s%.150s%s uses the folder %.150s: stop it, or give this one a folder of its own "
		 "(`state_dir` in plenum.conf, or XDG_STATE_HOME)",
		 *pid ? " with pid " : "", pid, *socket ? ", which listens on " : "", socket, *socket ? "," : "", dir);
	errno = EWOULDBLOCK;
}

static int take_lock(int dir_fd, const char *dir, const char *socket, char *error) {
	_cleanup_close_ int fd = openat(dir_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		int number = errno;
		bool closed = number == EACCES || number == EROFS || number == ENOSPC || number == EDQUOT;
		fail(error, "cannot %s %s/" LOCK_NAME ": %s%s", closed ? "write" : "open", dir, strerror(number),
			 closed ? "; make the folder writable, or name another with state_dir" : "");
		errno = number;
		return -1;
	}
	if (lock_take(fd) < 0) {
		if (errno == EWOULDBLOCK)
			name_holder(fd, dir, error);
		else
			fail(error, "cannot lock %s/" LOCK_NAME ": %s", dir, strerror(errno));
		return -1;
	}
	if (ftruncate(fd, 0) == 0) /* for the message alone: a full disk is no harm */
		dprintf(fd, "%d\n%s%s", (int)getpid(), socket ? socket : "", socket ? "\n" : "");
	int result = fd;
	fd = -1;
	return result;
}

static bool open_both(const char *dir, const char *socket, int *dir_fd, int *lock_fd, char *error) {
	*dir_fd = open_folder(dir, error);
	if (*dir_fd < 0) return false;
	*lock_fd = take_lock(*dir_fd, dir, socket, error);
	if (*lock_fd >= 0) return true;
	int number = errno;
	close(*dir_fd);
	errno = number;
	return false;
}

/* dir is taken over; NULL without it. */
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
	return s;
}

static struct state *drop(struct state *s) {
	int number = errno;
	free(s->left);
	free(s->socket);
	free(s->dir);
	free(s);
	errno = number;
	return NULL;
}

struct state *state_open(const char *dir, const char *socket, char *error) {
	*error = 0;
	struct state *s = make(dir ? strdup(dir) : path_state_dir(), socket);
	if (s) return open_both(s->dir, s->socket, &s->dir_fd, &s->lock_fd, error) ? s : drop(s);
	fail(error, "no folder for the table of sessions: set HOME, XDG_STATE_HOME or state_dir");
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

struct state *state_resume(const char *dir, const char *socket, int lock, char *error) {
	struct state *s = make(strdup(dir), socket);
	if (!s) {
		fail(error, "out of memory");
		return NULL;
	}
	s->lock_fd = lock;
	s->dir_fd = open_folder(dir, error);
	return s->dir_fd >= 0 ? s : drop(s);
}

const char *state_dir(const struct state *s) {
	return s->dir;
}

/* Somebody removed the folder while we ran: make it again, with its lock. */
static bool reopen(struct state *s, char *error) {
	int dir_fd, lock_fd;
	state_settle(s);
	if (!open_both(s->dir, s->socket, &dir_fd, &lock_fd, error)) return false;
	close(s->dir_fd);
	close(s->lock_fd);
	s->dir_fd = dir_fd;
	s->lock_fd = lock_fd;
	return true;
}

/* --- To JSON ----------------------------------------------------------------------------------------------------- */

static json_t *to_hex(const char *text, size_t n) {
	_cleanup_free_ char *hex = malloc(2 * n + 1);
	if (!hex) return NULL;
	for (size_t i = 0; i < n; i++) sprintf(hex + 2 * i, "%02x", (unsigned char)text[i]);
	return json_pack("{s:s}", "hex", hex);
}

static json_t *to_text(const char *text) {
	size_t n = text ? strlen(text) : 0;
	if (!text) return json_null();
	return str_is_utf8(text, n) ? json_stringn(text, n) : to_hex(text, n);
}

static json_t *to_list(char *const *v, size_t n) {
	json_t *list = json_array();
	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(list, to_text(v[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static json_t *to_session(const struct state_session *s) {
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:b, s:I, s:I, s:I, s:I, s:I}", "name",
					 to_text(s->name), "profile", to_text(s->profile), "cwd", to_text(s->cwd), "conversation_id",
					 to_text(s->conversation_id), "previous_id", to_text(s->previous_id), "args",
					 to_list(s->args, s->n_args), "env", to_list(s->env, s->n_env), "guards", to_text(s->guards),
					 "mode", to_text(s->mode), "uid", (json_int_t)s->uid, "env_only", (int)s->env_only, "child_pid",
					 (json_int_t)s->child_pid, "child_start", (json_int_t)s->child_start, "created_ms",
					 (json_int_t)s->created_ms, "used_ms", (json_int_t)s->used_ms, "seq", (json_int_t)s->seq);
}

static int put(const char *data, size_t n, void *b) {
	return buf_put(b, data, n) ? 0 : -1;
}

/* Not json_dumps(): where memory ends within a key it leaves that key out and calls it a success (jansson 2.14). */
static char *dump(const json_t *table) {
	struct buf b = BUF_INIT(SIZE_MAX);
	if (json_dump_callback(table, put, &b, JSON_INDENT(1)) == 0) return buf_steal(&b, NULL);
	buf_free(&b);
	return NULL;
}

/* Numbers of processes and their start times mean something until the computer starts again; "": it cannot be told. */
static void read_boot(char out[64]) {
	_cleanup_close_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? fd_read(fd, out, 63) : -1;
	out[n > 0 ? n : 0] = 0;
	out[strcspn(out, "\n")] = 0;
}

static json_t *to_left(const struct state *s) {
	json_t *all = json_array();
	for (size_t i = 0; i < s->n_left; i++)
		if (json_array_append_new(all, json_pack("[I,I,I]", (json_int_t)s->left[i].pid, (json_int_t)s->left[i].start,
												 (json_int_t)s->left[i].number)) < 0) {
			json_decref(all);
			return NULL;
		}
	return all;
}

static char *to_table(const struct state *s, const struct state_session *all, size_t n) {
	char boot[64];
	json_auto_t *sessions = json_array();
	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(sessions, to_session(&all[i])) < 0) return NULL;
	read_boot(boot);
	json_auto_t *table = json_pack("{s:i, s:O, s:I, s:s, s:o}", "version", STATE_VERSION, "sessions", sessions, "seq",
								   (json_int_t)s->seq, "boot", boot, "left", to_left(s));
	return table ? dump(table) : NULL;
}

/* --- Writing ----------------------------------------------------------------------------------------------------- */

static int write_new(int dir_fd, const char *text) {
	_cleanup_close_ int fd = openat(dir_fd, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0 || fd_write_all(fd, "\n", 1) < 0) return -1;
	int result = fd;
	fd = -1;
	return result;
}

/* The table is there for whoever reads it, the next daemon too; the disk may not have it yet. */
static int write_next(int dir_fd, const char *text) {
	int fd = write_new(dir_fd, text);
	if (fd >= 0 && renameat(dir_fd, NEW_NAME, dir_fd, NEXT_NAME) == 0) return fd;
	int saved = errno;
	if (fd >= 0) close(fd);
	unlinkat(dir_fd, NEW_NAME, 0);
	errno = saved;
	return -1;
}

static bool say_unwritten(const struct state *s, int number, char *error) {
	return fail(error, "cannot write %s/" FILE_NAME ": %s; the table of before is kept", s->dir, strerror(number));
}

static void sync_next(struct state *s, int fd) {
	s->syncing = fd;
	syncer_start(s->syncer, fd);
}

/* The disk has the newest table: now it takes the place of the one before. 0, or the errno of why it cannot. */
static int settle_name(struct state *s) {
	if (renameat(s->dir_fd, NEXT_NAME, s->dir_fd, FILE_NAME) < 0) return errno;
	sync_next(s, s->dir_fd); /* some file systems know no fsync of a folder: that is no failure */
	return 0;
}

static void on_synced(void *arg, int number) {
	struct state *s = arg;
	char error[STATE_ERROR_MAX];
	bool table = s->syncing != s->dir_fd;
	if (table) close(s->syncing);
	s->syncing = -1;
	if (s->newer >= 0) {
		int fd = s->newer;
		s->newer = -1;
		sync_next(s, fd);
		return;
	}
	if (table && number == 0) number = settle_name(s);
	if (number) say_unwritten(s, number, error);
	if (table && s->synced) s->synced(s->arg, number ? error : NULL);
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

/* Where nobody else waits for the disk, the caller does. */
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

static int replace(struct state *s, const char *text) {
	int fd = write_next(s->dir_fd, text);
	if (fd < 0) return -1;
	if (!s->syncer) return save_now(s, fd);
	if (s->syncing < 0) {
		sync_next(s, fd);
	} else {
		if (s->newer >= 0) close(s->newer);
		s->newer = fd;
	}
	return 0;
}

bool state_save(struct state *s, const struct state_session *all, size_t n, char *error) {
	*error = 0;
	_cleanup_free_ char *text = to_table(s, all, n);
	if (!text) return fail(error, "cannot write the table of sessions: out of memory");
	if (replace(s, text) == 0) return true;
	if (errno == ENOENT && reopen(s, error) && replace(s, text) == 0) return true;
	return !*error && say_unwritten(s, errno, error);
}

/* --- From JSON --------------------------------------------------------------------------------------------------- */

static int hex_digit(char c) {
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
	return at ? (int)(at - digits) : -1;
}

static char *from_hex(const char *hex) {
	size_t n = strlen(hex) / 2;
	char *text = strlen(hex) % 2 ? NULL : malloc(n + 1); /* half a byte: the end is missing */
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

/* Absent and null are none. */
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

static bool from_number(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *n) {
	const json_t *value = json_object_get(object, key);
	*n = json_integer_value(value);
	return !value || (json_is_integer(value) && *n >= min && *n <= max);
}

/* A session as it is read: what of it could not be, and whether it can do without that. */
struct reading {
	const json_t *j;
	struct buf bad; /* "`args`, `env`" */
	bool lost, mended;
};

static void miss(struct reading *r, const char *member) {
	buf_printf(&r->bad, "%s`%s`", r->bad.len ? ", " : "", member);
}

static void need(struct reading *r, const char *member, bool ok) {
	if (ok) return;
	miss(r, member);
	r->lost = true;
}

static void spare(struct reading *r, const char *member, bool ok) {
	if (ok) return;
	miss(r, member);
	r->mended = true;
}

static int64_t number_or_0(struct reading *r, const char *member, int64_t min, int64_t max) {
	int64_t n;
	bool ok = from_number(r->j, member, min, max, &n);
	spare(r, member, ok);
	return ok ? n : 0;
}

static void read_numbers(struct reading *r, struct state_session *s) {
	int64_t uid;
	need(r, "uid", from_number(r->j, "uid", 0, UINT32_MAX, &uid) && json_object_get(r->j, "uid"));
	s->uid = (uid_t)uid;
	/* -1 was written once, where there was none */
	s->child_pid = (pid_t)MAX(number_or_0(r, "child_pid", -1, INT32_MAX), (int64_t)0);
	s->child_start = (uint64_t)number_or_0(r, "child_start", 0, INT64_MAX);
	s->created_ms = number_or_0(r, "created_ms", INT64_MIN, INT64_MAX);
	s->used_ms = number_or_0(r, "used_ms", INT64_MIN, INT64_MAX);
	s->seq = (uint64_t)number_or_0(r, "seq", 0, SEQ_MAX);
}

static bool read_text(const struct reading *r, const char *member, char **text) {
	return from_text(json_object_get(r->j, member), text);
}

/* What cannot be read stands as a text that no reader takes for one: it closes the session. */
static void unreadable(struct reading *r, const char *member, char **text) {
	*text = strdup(STATE_UNREADABLE);
	need(r, member, *text != NULL);
	r->mended = true; /* whoever takes it for what it is says so */
}

static void read_texts(struct reading *r, struct state_session *s) {
	need(r, "name", read_text(r, "name", &s->name) && s->name && *s->name);
	if (!read_text(r, "profile", &s->profile) || !s->profile) unreadable(r, "profile", &s->profile);
	need(r, "cwd", read_text(r, "cwd", &s->cwd));
	spare(r, "conversation_id", read_text(r, "conversation_id", &s->conversation_id));
	spare(r, "previous_id", read_text(r, "previous_id", &s->previous_id));
	if (!read_text(r, "guards", &s->guards)) unreadable(r, "guards", &s->guards);
	if (!read_text(r, "mode", &s->mode)) unreadable(r, "mode", &s->mode);
}

static void read_start(struct reading *r, struct state_session *s) {
	const json_t *env_only = json_object_get(r->j, "env_only");
	need(r, "env_only", !env_only || json_is_boolean(env_only));
	s->env_only = json_is_true(env_only);
	need(r, "args", from_list(json_object_get(r->j, "args"), &s->args, &s->n_args));
	need(r, "env", from_list(json_object_get(r->j, "env"), &s->env, &s->n_env));
}

static void read_session(struct reading *r, struct state_session *s) {
	r->lost = !json_is_object(r->j);
	if (r->lost) return;
	read_numbers(r, s);
	read_texts(r, s);
	read_start(r, s);
}

static void free_list(char **v) {
	for (char **p = v; p && *p; p++) free(*p);
	free(v);
}

static void session_free(struct state_session *s) {
	free(s->name);
	free(s->profile);
	free(s->cwd);
	free(s->conversation_id);
	free(s->previous_id);
	free(s->guards);
	free(s->mode);
	free_list(s->args);
	free_list(s->env);
}

/* --- Reading ----------------------------------------------------------------------------------------------------- */

static char *read_file(int dir_fd, const char *name, size_t *n) {
	_cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0) return NULL;
	struct buf b = BUF_INIT(FILE_MAX);
	for (;;) {
		if (!buf_reserve(&b, 65536)) break;
		ssize_t r = fd_read(fd, b.data + b.len, 65536);
		if (r == 0) return buf_steal(&b, n);
		if (r < 0) break;
		b.len += (size_t)r;
	}
	int saved = b.failed ? EFBIG : errno;
	buf_free(&b);
	errno = saved;
	return NULL;
}

/* Keeps a file that was not understood under another name; `copy` leaves it where it is, too (part of it was good). */
static bool set_aside(struct state *s, const char *file, const char *why, bool copy, char *error) {
	char name[80], stamp[32];
	time_t now = time(NULL);
	struct tm tm;
	strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	int rc = -1;
	for (int i = 0; i < 100 && rc < 0; i++) {
		snprintf(name, sizeof name, i ? FILE_NAME ".damaged-%s-%d" : FILE_NAME ".damaged-%s", stamp, i);
		rc = copy ? linkat(s->dir_fd, file, s->dir_fd, name, 0)
				  : renameat2(s->dir_fd, file, s->dir_fd, name, RENAME_NOREPLACE);
		if (rc < 0 && errno == EINVAL) rc = renameat(s->dir_fd, file, s->dir_fd, name);
		if (rc < 0 && errno != EEXIST) break;
	}
	if (rc < 0)
		return fail(error, "%s/%s is damaged (%s) and cannot be set aside: %s", s->dir, file, why, strerror(errno));
	fail(error, "%s/%s is damaged (%s); it is kept as %s/%s", s->dir, file, why, s->dir, name);
	return true;
}

static void tell_damage(const struct state *s, const struct reading *r, const char *name, size_t number) {
	_cleanup_free_ char *who = name && *name ? strdup(name) : str_printf("number %zu of the table", number);
	if (!s->damaged || (!r->lost && !r->bad.len)) return;
	_cleanup_free_ char *text = str_printf("session %s%s: %s%s cannot be read", who ? who : "?",
										   r->lost ? " is left out" : "", r->bad.len ? "its " : "it",
										   r->bad.len ? r->bad.data : "");
	s->damaged(s->damaged_arg, text ? text : "a session of the table cannot be read");
}

static int show_all(const struct state *s, const json_t *sessions, bool (*each)(void *, const struct state_session *),
					void *arg, int *bad) {
	int taken = 0;
	bool more = true;
	*bad = 0;
	for (size_t i = 0; more && i < json_array_size(sessions); i++) {
		struct state_session one = {0};
		struct reading r = {.j = json_array_get(sessions, i), .bad = BUF_INIT(1024)};
		read_session(&r, &one);
		tell_damage(s, &r, one.name, i + 1);
		if (!r.lost) taken += more = each(arg, &one);
		*bad += r.lost || r.mended;
		session_free(&one);
		buf_free(&r.bad);
	}
	return taken;
}

static json_t *parse(const char *text, size_t n, char *why, size_t size) {
	json_error_t e;
	json_t *table = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
	json_int_t version = json_integer_value(json_object_get(table, "version"));
	if (!table)
		snprintf(why, size, "line %d: %s", e.line, e.text);
	else if (!json_is_array(json_object_get(table, "sessions")) || version < 1)
		snprintf(why, size, "it is no table of sessions");
	else if (version > STATE_VERSION)
		snprintf(why, size, "its version is %lld, from a newer plenumd; this one knows %d", (long long)version,
				 STATE_VERSION);
	else
		return table;
	json_decref(table);
	return NULL;
}

enum { UNUSABLE = -1, ABSENT = -2 };

static bool read_left(const json_t *one, struct state_left *out) {
	json_int_t n[3];
	for (size_t i = 0; i < 3; i++) n[i] = json_integer_value(json_array_get(one, i));
	*out = (struct state_left){(pid_t)n[0], (uint64_t)n[1], (uint64_t)n[2]};
	return n[0] > 1 && n[0] <= INT32_MAX && n[1] >= 0 && n[2] >= 0;
}

static void load_left(struct state *s, const json_t *table) {
	const json_t *all = json_object_get(table, "left"), *one;
	const char *then = json_string_value(json_object_get(table, "boot"));
	char now[64];
	size_t i;
	read_boot(now);
	free(s->left);
	s->n_left = 0;
	s->left = then && *then && strcmp(then, now) == 0 ? calloc(json_array_size(all) + 1, sizeof *s->left) : NULL;
	json_array_foreach(all, i, one) if (s->left && read_left(one, &s->left[s->n_left])) s->n_left++;
}

static int load_file(struct state *s, const char *name, bool (*each)(void *, const struct state_session *), void *arg,
					 char *error) {
	char why[256];
	size_t n = 0;
	int bad;
	_cleanup_free_ char *text = read_file(s->dir_fd, name, &n);
	if (!text && errno == ENOENT) return ABSENT;
	if (!text) return set_aside(s, name, strerror(errno), false, error) ? ABSENT : UNUSABLE;
	json_auto_t *table = parse(text, n, why, sizeof why);
	if (!table) return set_aside(s, name, why, false, error) ? ABSENT : UNUSABLE;
	if (!json_object_get(table, "seq") || !from_number(table, "seq", 0, SEQ_MAX, &s->seq)) s->seq = -1;
	load_left(s, table);
	int taken = show_all(s, json_object_get(table, "sessions"), each, arg, &bad);
	if (bad) {
		snprintf(why, sizeof why, "%d of its sessions cannot be read as a whole", bad);
		set_aside(s, name, why, true, error);
	}
	return taken;
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

void state_on_damage(struct state *s, void (*damaged)(void *arg, const char *text), void *arg) {
	s->damaged = damaged;
	s->damaged_arg = arg;
}

/* A daemon that was killed may have left a newer table, a computer that lost its power half of one. */
int state_load(struct state *s, bool (*each)(void *, const struct state_session *), void *arg, char *error) {
	*error = 0;
	int taken = load_file(s, NEXT_NAME, each, arg, error);
	if (taken < 0) taken = load_file(s, FILE_NAME, each, arg, error);
	return taken == ABSENT ? 0 : taken;
}
