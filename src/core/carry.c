/* SPDX-License-Identifier: MIT */
#include "core/carry.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#define MAGIC "plenum state\n"
#define FLUSH_AT ((size_t)256 * 1024)
#define NONE UINT64_MAX /* the length of a NULL */

void carry_fail(struct carry *c, const char *fmt, ...) {
	va_list ap;
	if (c->error.text[0]) return; /* keep the first error */
	va_start(ap, fmt);
	error_vset(&c->error, fmt, ap);
	va_end(ap);
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static void flush(struct carry *c) {
	if (carry_ok(c) && c->out.len && fd_write_all(c->fd, c->out.data, c->out.len) < 0)
		carry_fail(c, "the state cannot be written: %s", strerror(errno));
	c->out.len = 0;
}

static void put(struct carry *c, const void *data, size_t n) {
	if (c->out.len + n > FLUSH_AT) flush(c);
	if (n > FLUSH_AT) {
		if (carry_ok(c) && fd_write_all(c->fd, data, n) < 0)
			carry_fail(c, "the state cannot be written: %s", strerror(errno));
	} else if (n && !buf_put(&c->out, data, n)) {
		carry_fail(c, "out of memory");
	}
}

/* Return NULL if fewer than n bytes are left. */
static const char *take(struct carry *c, size_t n) {
	if (carry_ok(c) && n > c->len - c->at) carry_fail(c, "the state ends too early, at byte %zu", c->at);
	if (!carry_ok(c)) return NULL;
	const char *p = c->in + c->at;
	c->at += n;
	return p;
}

void carry_bytes(struct carry *c, void *data, size_t n) {
	if (c->saving) {
		put(c, data, n);
		return;
	}
	const char *p = take(c, n);
	if (p)
		memcpy(data, p, n);
	else
		memset(data, 0, n);
}

void carry_number(struct carry *c, uint64_t *value) {
	carry_bytes(c, value, sizeof *value); /* the reader is the same machine */
}

/* Read a length and its bytes; NULL for none, and on an error. */
const char *carry_borrow(struct carry *c, size_t *n) {
	uint64_t len = NONE;
	carry_number(c, &len);
	*n = 0;
	if (!carry_ok(c) || len == NONE) return NULL;
	const char *p = take(c, len);
	if (p) *n = len;
	return p;
}

static void put_bytes(struct carry *c, const char *data, size_t n) {
	uint64_t len = data ? n : NONE;
	carry_number(c, &len);
	if (data) put(c, data, n);
}

/* --- head and end ------------------------------------------------------------------------------------------------- */

void carry_begin_save(struct carry *c, int fd) {
	*c = (struct carry){.saving = true, .fd = fd, .version = CARRY_VERSION, .out = BUF_INIT(2 * FLUSH_AT)};
	put(c, MAGIC, strlen(MAGIC));
	carry_number(c, &c->version);
}

bool carry_end_save(struct carry *c) {
	carry_mark(c, "end");
	flush(c);
	return carry_ok(c);
}

bool carry_begin_load(struct carry *c, const char *data, size_t len) {
	*c = (struct carry){.in = data, .len = len, .fd = -1};
	const char *magic = take(c, strlen(MAGIC));
	if (!magic || memcmp(magic, MAGIC, strlen(MAGIC)) != 0) carry_fail(c, "this is no state of plenumd");
	carry_number(c, &c->version);
	if (carry_ok(c) && (c->version < 1 || c->version > CARRY_VERSION))
		carry_fail(c, "the state has version %llu, this plenumd reads up to %d", (unsigned long long)c->version,
				   CARRY_VERSION);
	return carry_ok(c);
}

bool carry_end_load(struct carry *c) {
	carry_mark(c, "end");
	if (carry_ok(c) && c->at != c->len) carry_fail(c, "%zu bytes of the state are left over", c->len - c->at);
	return carry_ok(c);
}

void carry_free(struct carry *c) {
	buf_free(&c->out);
	free(c->fds);
	c->fds = NULL;
	c->n_fds = 0;
}

void carry_mark(struct carry *c, const char *name) {
	size_t n;
	if (c->saving) {
		put_bytes(c, name, strlen(name));
		return;
	}
	size_t at = c->at;
	const char *p = carry_borrow(c, &n);
	if (carry_ok(c) && (!p || n != strlen(name) || memcmp(p, name, n) != 0))
		carry_fail(c, "the state is damaged before `%s`, at byte %zu", name, at);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

size_t carry_count(struct carry *c, size_t n) {
	uint64_t value = n;
	carry_number(c, &value);
	if (!c->saving && carry_ok(c) && value > c->len - c->at) carry_fail(c, "a number of parts is impossible");
	return carry_ok(c) ? value : 0;
}

void carry_text(struct carry *c, char **text) {
	size_t n;
	if (c->saving) {
		put_bytes(c, *text, *text ? strlen(*text) : 0);
		return;
	}
	*text = NULL;
	const char *p = carry_borrow(c, &n);
	if (!p) return;
	if (memchr(p, 0, n))
		carry_fail(c, "a text holds a NUL");
	else if (!(*text = strndup(p, n)))
		carry_fail(c, "out of memory");
}

void carry_name(struct carry *c, char **text) {
	carry_text(c, text);
	if (!*text) carry_fail(c, "a text is missing");
}

void carry_chunk(struct carry *c, struct chunk *chunk) {
	size_t n;
	if (c->saving) {
		put_bytes(c, chunk->data, chunk->len);
		return;
	}
	*chunk = CHUNK_NONE;
	const char *p = carry_borrow(c, &n);
	if (!p) return;
	*chunk = chunk_copy(p, n);
	if (!chunk->data) carry_fail(c, "out of memory");
}

void carry_rope(struct carry *c, struct rope *rope) {
	if (!c->saving) {
		struct chunk line;
		carry_chunk(c, &line);
		*rope = rope_of(line);
		return;
	}
	uint64_t len = rope->n ? rope->len : NONE;
	carry_number(c, &len);
	for (size_t i = 0; i < rope->n; i++) put(c, rope->parts[i].data, rope->parts[i].len);
}

void carry_buf(struct carry *c, struct buf *b) {
	size_t n;
	if (c->saving) {
		put_bytes(c, b->data ? b->data : "", b->len);
		return;
	}
	const char *p = carry_borrow(c, &n);
	if (p && !buf_put(b, p, n)) carry_fail(c, "a text is longer than it may be");
}

void carry_lines(struct carry *c, struct lines *l) {
	struct lines_state s = {0};
	if (c->saving) {
		lines_suspend(l, &s);
		/* all unreturned bytes of the reader, as one length and its bytes */
		uint64_t len = s.back.data || s.whole || s.data ? s.back.len + s.n_whole + s.len : NONE;
		carry_number(c, &len);
		if (s.back.data) put(c, s.back.data, s.back.len);
		if (s.whole) put(c, s.whole, s.n_whole);
		if (s.data) put(c, s.data, s.len);
	} else {
		s.data = carry_borrow(c, &s.len);
	}
	CARRY(c, s.carried);
	CARRY(c, s.skipping);
	CARRY(c, s.skipped);
	carry_chunk(c, &s.head);
	if (!c->saving && carry_ok(c) && !lines_resume(l, &s)) carry_fail(c, "out of memory");
}

void carry_words(struct carry *c, struct words *w) {
	size_t n = carry_count(c, w->n);
	for (size_t i = 0; i < n; i++) {
		char *word = c->saving ? w->v[i] : NULL;
		carry_name(c, &word);
		if (c->saving) continue;
		if (word && !words_add(w, word)) carry_fail(c, "out of memory");
		free(word);
		if (!carry_ok(c)) return;
	}
}

void carry_set(struct carry *c, struct names *s, bool *there) {
	bool any = there ? *there : true;
	CARRY(c, any);
	if (there) *there = any;
	size_t count = carry_count(c, names_count(s));
	const struct name *at = s->table;
	for (size_t i = 0; i < count && carry_ok(c); i++) {
		char *text = c->saving ? (char *)(uintptr_t)at->text : NULL;
		carry_name(c, &text);
		if (c->saving) {
			at = at->hh.next;
			continue;
		}
		if (text && !names_add(s, text, strlen(text))) carry_fail(c, "out of memory");
		free(text);
	}
}

int64_t carry_left(struct carry *c, const struct loop_timer *t) {
	int64_t left = c->saving ? loop_timer_left(t) : -1;
	CARRY(c, left);
	return carry_ok(c) ? left : -1;
}

void carry_timer(struct carry *c, struct loop_timer *t) {
	int64_t left = carry_left(c, t);
	if (!c->saving && t && left >= 0) loop_timer_set(t, left);
}

/* --- descriptors -------------------------------------------------------------------------------------------------- */

void carry_fd(struct carry *c, int *fd, mode_t type) {
	struct stat st;
	CARRY(c, *fd);
	if (c->saving) { /* whatever fails: the running daemon continues with it */
		if (*fd < 0 || !carry_ok(c)) return;
		int *more = realloc(c->fds, (c->n_fds + 1) * sizeof *more);
		if (!more) {
			carry_fail(c, "out of memory");
			return;
		}
		c->fds = more;
		c->fds[c->n_fds++] = *fd;
		return;
	}
	if (*fd < 0 || !carry_ok(c))
		*fd = -1;
	else if (*fd < 3 || fstat(*fd, &st) < 0 || (type && (st.st_mode & S_IFMT) != type) ||
			 fcntl(*fd, F_SETFD, FD_CLOEXEC) < 0) {
		carry_fail(c, "descriptor %d has changed", *fd);
		*fd = -1;
	}
}

/* --- clients and attachments -------------------------------------------------------------------------------------- */

void carry_client(struct carry *c, struct client **client) {
	uint64_t number = c->saving && *client ? c->world->client_number(*client) : 0;
	carry_number(c, &number);
	if (!c->saving) *client = number ? c->world->client(c->world->arg, number) : NULL;
	if (number && !*client) carry_fail(c, "connection %llu is missing", (unsigned long long)number);
}

void carry_attachment(struct carry *c, struct attachment **attachment) {
	uint64_t number = c->saving && *attachment ? c->world->attachment_number(*attachment) : 0;
	carry_number(c, &number);
	if (!c->saving) *attachment = number ? c->world->attachment(c->world->arg, number) : NULL;
	if (number && !*attachment) carry_fail(c, "connection %llu is missing", (unsigned long long)number);
}
