/* SPDX-License-Identifier: MIT
 *
 * Make calls fail on purpose. Linked into a plenumd of its own with -Wl,--wrap (meson.build in this directory); the
 * daemon's sources are unchanged. PLENUM_FAULTS lists the faults:
 *
 *     malloc:1/2000,sendmsg:short:1/3,writev:eagain:1/5,fsync:enospc:1/2,read:short:1/2,malloc:@17,seed=7,after=3
 *
 * FUNCTION[:KIND]:N/M fails N of M calls at random, FUNCTION[:KIND]:@N only the Nth call from now. KIND is an errno
 * (below) or "short": some bytes less than requested. after=N spares the first N calls of each function. "malloc" is
 * every allocation, jansson's and libevent's too. "now_us" is a look at the clock: it does not fail, but the process
 * loses the processor before it, as on a busy machine, so that the turns of the loop end early. With PLENUM_FAULTS_FILE
 * a test changes the list while the daemon runs, and reads the results: struct board, mapped.
 */
#include <errno.h>
#include <event2/event.h>
#include <execinfo.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SPEC_MAX 1000
#define RULES_MAX 16

enum {
	F_MALLOC,
	F_ACCEPT,
	F_FORK,
	F_PIPE,
	F_READ,
	F_WRITE,
	F_WRITEV,
	F_SENDMSG,
	F_FSYNC,
	F_RENAME,
	F_OPEN,
	F_CLOCK,
	F_COUNT
};

static const char *const names[F_COUNT] = {"malloc", "accept4", "vfork", "pipe2",    "read",   "write",
										   "writev", "sendmsg", "fsync", "renameat", "openat", "now_us"};

struct board {
	uint32_t generation; /* incremented by the test after it has written a new list */
	uint32_t taken;      /* the generation in force */
	uint64_t calls[F_COUNT], failed[F_COUNT];
	char spec[SPEC_MAX];
};

struct rule {
	int function, kind;
	unsigned n, of;
	uint64_t only; /* only this call; 0: at random */
};

#define SHORT (-1)
#define LATE_US 3000 /* longer than the share of one callback of the loop */

static const struct {
	const char *name;
	int number;
} kinds[] = {{"short", SHORT},
			 {"eagain", EAGAIN},
			 {"eintr", EINTR},
			 {"enospc", ENOSPC},
			 {"enobufs", ENOBUFS},
			 {"epipe", EPIPE},
			 {"eio", EIO},
			 {"emfile", EMFILE},
			 {"enfile", ENFILE},
			 {"enomem", ENOMEM},
			 {"econnaborted", ECONNABORTED}};

static const int usual[F_COUNT] = {ENOMEM, EMFILE, EAGAIN, EMFILE, EAGAIN, EAGAIN,
								   EAGAIN, EAGAIN, ENOSPC, ENOSPC, ENOSPC, EINTR};

static struct {
	struct board own, *board;
	struct rule rules[RULES_MAX];
	size_t n_rules;
	uint64_t random, at[F_COUNT], after;
	pid_t pid;
	int off;
} faults = {.board = NULL, .random = 88172645463325252ULL};

static int find(const char *const *list, size_t n, const char *word, size_t len) {
	for (size_t i = 0; i < n; i++)
		if (strlen(list[i]) == len && memcmp(list[i], word, len) == 0) return (int)i;
	return -1;
}

static int kind_of(const char *word, size_t len) {
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strlen(kinds[i].name) == len && memcmp(kinds[i].name, word, len) == 0) return kinds[i].number;
	return 0;
}

static _Noreturn void refuse(const char *word) {
	dprintf(STDERR_FILENO, "PLENUM_FAULTS: '%s' is not understood\n", word);
	_exit(64);
}

static void parse_rule(const char *word) {
	struct rule r = {0};
	size_t n = strcspn(word, ":");
	const char *rest = word + n;
	if (strncmp(word, "seed=", 5) == 0) {
		faults.random = strtoull(word + 5, NULL, 10) * 2654435761ULL + 88172645463325252ULL;
		return;
	}
	if (strncmp(word, "after=", 6) == 0) {
		faults.after = strtoull(word + 6, NULL, 10);
		return;
	}
	r.function = find(names, F_COUNT, word, n);
	if (r.function < 0 || *rest != ':' || faults.n_rules == RULES_MAX) refuse(word);
	r.kind = usual[r.function];
	n = strcspn(++rest, ":");
	if (rest[n] == ':') {
		r.kind = kind_of(rest, n);
		rest += n + 1;
	}
	if (!r.kind) refuse(word);
	if (*rest == '@')
		r.only = strtoull(rest + 1, NULL, 10);
	else if (sscanf(rest, "%u/%u", &r.n, &r.of) != 2 || !r.of)
		refuse(word);
	faults.rules[faults.n_rules++] = r;
}

static void parse(const char *spec) {
	char text[SPEC_MAX], *p = text, *word;
	faults.n_rules = faults.after = 0;
	memset(faults.at, 0, sizeof faults.at);
	snprintf(text, sizeof text, "%s", spec);
	while ((word = strsep(&p, ",")) != NULL)
		if (*word) parse_rule(word);
}

static void map_board(const char *path) {
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) refuse(path);
	close(fd);
	faults.board = at;
	faults.board->taken = 0;
}

static void *bare_malloc(size_t n);
static void *bare_realloc(void *p, size_t n);

__attribute__((constructor)) static void begin(void) {
	const char *spec = getenv("PLENUM_FAULTS"), *file = getenv("PLENUM_FAULTS_FILE");
	faults.pid = getpid();
	faults.off = 1;
	faults.board = &faults.own;
	if (file) map_board(file);
	if (spec) parse(spec);
	json_set_alloc_funcs(bare_malloc, free);
	event_set_mem_functions(bare_malloc, bare_realloc, free);
	faults.off = 0;
}

static uint64_t draw(void) {
	faults.random ^= faults.random << 13;
	faults.random ^= faults.random >> 7;
	faults.random ^= faults.random << 17;
	return faults.random;
}

/* Print the caller, for addr2line(1). */
static void say_where(void) {
	void *stack[24];
	int n;
	faults.off = 1;
	n = backtrace(stack, 24);
	dprintf(STDERR_FILENO, "a call fails here:\n");
	backtrace_symbols_fd(stack, n, STDERR_FILENO);
	faults.off = 0;
}

static int look_up(struct board *b, int function) {
	if (b->generation != b->taken) {
		b->taken = b->generation;
		parse(b->spec);
	}
	b->calls[function]++;
	if (++faults.at[function] <= faults.after) return 0;
	for (size_t i = 0; i < faults.n_rules; i++) {
		const struct rule *r = &faults.rules[i];
		if (r->function != function) continue;
		if (r->only ? r->only != faults.at[function] : draw() % r->of >= r->n) continue;
		b->failed[function]++;
		if (r->only) say_where();
		return r->kind;
	}
	return 0;
}

/* Return 0 to make the call, else SHORT or an errno to fail with. Threads of the daemon write to the disk, and any
 * thread may apply a new list. */
static int fault(int function) {
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	if (!faults.board || faults.off || getpid() != faults.pid) return 0;
	pthread_mutex_lock(&lock);
	int number = look_up(faults.board, function);
	pthread_mutex_unlock(&lock);
	return number;
}

static int failing(int function) {
	int number = fault(function);
	if (number) errno = number == SHORT ? EINTR : number;
	return number != 0;
}

/* Errors of pipes and sockets do not occur on files. */
static int fault_on(int function, int fd) {
	struct stat st;
	int number = fault(function);
	bool of_pipes = number == EAGAIN || number == EPIPE || number == ENOBUFS;
	return of_pipes && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? 0 : number;
}

static size_t shorter(size_t n) {
	return n > 1 ? 1 + (size_t)(draw() % (n - 1)) : n;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);

static void *bare_malloc(size_t n) {
	return failing(F_MALLOC) ? NULL : __real_malloc(n);
}

static void *bare_realloc(void *p, size_t n) {
	return failing(F_MALLOC) ? NULL : __real_realloc(p, n);
}

void *__wrap_malloc(size_t n) {
	return bare_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size) {
	return failing(F_MALLOC) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n) {
	return bare_realloc(p, n);
}

char *__wrap_strdup(const char *text) {
	return failing(F_MALLOC) ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t n) {
	return failing(F_MALLOC) ? NULL : __real_strndup(text, n);
}

/* --- the kernel --------------------------------------------------------------------------------------------------- */

int __real_accept4(int fd, struct sockaddr *at, socklen_t *len, int flags);
int __real_pipe2(int fds[2], int flags);
ssize_t __real_read(int fd, void *data, size_t n);
ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t __real_writev(int fd, const struct iovec *iov, int n);
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
int __real_fsync(int fd);
int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_accept4(int fd, struct sockaddr *at, socklen_t *len, int flags);
int __wrap_pipe2(int fds[2], int flags);
pid_t __wrap_vfork(void);
ssize_t __wrap_read(int fd, void *data, size_t n);
ssize_t __wrap___read_chk(int fd, void *data, size_t n, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t n);
ssize_t __wrap_writev(int fd, const struct iovec *iov, int n);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
int __wrap_fsync(int fd);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...);

int __wrap_accept4(int fd, struct sockaddr *at, socklen_t *len, int flags) {
	return failing(F_ACCEPT) ? -1 : __real_accept4(fd, at, len, flags);
}

int __wrap_pipe2(int fds[2], int flags) {
	return failing(F_PIPE) ? -1 : __real_pipe2(fds, flags);
}

/* A wrapper that returns cannot call vfork(2): the child would return from it first. */
pid_t __wrap_vfork(void) {
	return failing(F_FORK) ? -1 : fork();
}

ssize_t __wrap_read(int fd, void *data, size_t n) {
	int number = fault_on(F_READ, fd);
	if (number == SHORT) return __real_read(fd, data, shorter(n < 64 ? n : 64));
	if (number) errno = number;
	return number ? -1 : __real_read(fd, data, n);
}

ssize_t __wrap___read_chk(int fd, void *data, size_t n, size_t size) {
	if (n > size) abort();
	return __wrap_read(fd, data, n);
}

ssize_t __wrap_write(int fd, const void *data, size_t n) {
	int number = fault_on(F_WRITE, fd);
	if (number == SHORT) return __real_write(fd, data, shorter(n));
	if (number) errno = number;
	return number ? -1 : __real_write(fd, data, n);
}

/* Copy the first pieces, cut to fewer bytes. cut must have room for n. */
static int cut_iov(const struct iovec *iov, int n, struct iovec *cut) {
	size_t total = 0, left;
	int k = 0;
	for (int i = 0; i < n; i++) total += iov[i].iov_len;
	left = shorter(total);
	for (; k < n && left; k++) {
		cut[k] = iov[k];
		if (cut[k].iov_len > left) cut[k].iov_len = left;
		left -= cut[k].iov_len;
	}
	return k;
}

ssize_t __wrap_writev(int fd, const struct iovec *iov, int n) {
	struct iovec cut[IOV_MAX > 1024 ? 1024 : IOV_MAX];
	int number = fault_on(F_WRITEV, fd);
	if (number == SHORT) return __real_writev(fd, cut, cut_iov(iov, n, cut));
	if (number) errno = number;
	return number ? -1 : __real_writev(fd, iov, n);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags) {
	struct iovec cut[IOV_MAX > 1024 ? 1024 : IOV_MAX];
	struct msghdr less = *msg;
	int number = fault(F_SENDMSG);
	if (number == SHORT) {
		less.msg_iovlen = (size_t)cut_iov(msg->msg_iov, (int)msg->msg_iovlen, cut);
		less.msg_iov = cut;
		return __real_sendmsg(fd, &less, flags);
	}
	if (number) errno = number;
	return number ? -1 : __real_sendmsg(fd, msg, flags);
}

int __wrap_fsync(int fd) {
	return failing(F_FSYNC) ? -1 : __real_fsync(fd);
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to) {
	return failing(F_RENAME) ? -1 : __real_renameat(from_fd, from, to_fd, to);
}

int __wrap_openat(int dir, const char *path, int flags, ...) {
	va_list ap;
	va_start(ap, flags);
	mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return failing(F_OPEN) ? -1 : __real_openat(dir, path, flags, mode);
}

int __wrap_openat64(int dir, const char *path, int flags, ...) {
	va_list ap;
	va_start(ap, flags);
	mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return __wrap_openat(dir, path, flags, mode);
}

/* --- the clock ---------------------------------------------------------------------------------------------------- */

int64_t __real_now_us(void);
int64_t __wrap_now_us(void);

int64_t __wrap_now_us(void) {
	int number = errno;
	if (fault(F_CLOCK)) nanosleep(&(struct timespec){.tv_nsec = LATE_US * 1000L}, NULL);
	errno = number;
	return __real_now_us();
}
