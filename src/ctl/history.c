/* SPDX-License-Identifier: MIT */
#include "ctl/history.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "ctl/wtext.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)64 << 20)

/* --- The file ----------------------------------------------------------------------------------------------------- */

/* A newline within an entry is written as \n, a backslash as \\. */
static void put_entry(struct buf *b, const wchar_t *entry) {
	_cleanup_free_ char *text = wtext_to(entry, wcslen(entry), NULL);
	for (const char *p = text ? text : ""; *p; p++) {
		if (*p == '\n')
			buf_puts(b, "\\n");
		else if (*p == '\\')
			buf_puts(b, "\\\\");
		else
			buf_putc(b, *p);
	}
	buf_putc(b, '\n');
}

static void unescape(wchar_t *entry) {
	wchar_t *to = entry;
	for (const wchar_t *p = entry; *p; p++) {
		if (*p == L'\\' && p[1]) {
			p++;
			*to++ = *p == L'n' ? L'\n' : *p;
		} else {
			*to++ = *p;
		}
	}
	*to = 0;
}

/* Open and lock it. Another program may have replaced it meanwhile. */
static int open_locked(const char *path) {
	for (;;) {
		struct stat st;
		int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0) return -1;
		if (flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0) return fd;
		bool replaced = fstat(fd, &st) == 0 && st.st_nlink == 0;
		close(fd);
		if (!replaced) return -1;
	}
}

static void keep(struct history *h, wchar_t *entry) {
	wchar_t **grown = realloc(h->entries, (h->n + 1) * sizeof *grown);
	if (!grown) {
		free(entry);
		return;
	}
	h->entries = grown;
	h->entries[h->n++] = entry;
}

/* Write only the newest ones anew; the lock on the old file keeps others from appending to it. */
static void shorten(const struct history *h) {
	_cleanup_free_ char *fresh = str_printf("%s.new", h->path);
	struct buf b = BUF_INIT(FILE_MAX);
	for (size_t i = 0; i < h->n; i++) put_entry(&b, h->entries[i]);
	int fd = fresh && !b.failed ? open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
	bool written = fd >= 0 && fd_write_all(fd, b.data, b.len) == 0;
	if (fd >= 0) close(fd);
	if (fresh && (!written || rename(fresh, h->path) < 0)) unlink(fresh);
	buf_free(&b);
}

void history_open(struct history *h, char *path) {
	*h = (struct history){.path = path};
	_cleanup_close_ int fd = path ? open_locked(path) : -1;
	struct buf b = BUF_INIT(FILE_MAX);
	if (fd < 0) return;
	fchmod(fd, 0600);
	buf_read(&b, fd);
	for (const char *p = b.data, *end = b.len ? p + b.len : p; p < end;) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((stop ? stop : end) - p);
		wchar_t *entry = len ? wtext_from(p, len, NULL) : NULL;
		if (entry) unescape(entry);
		if (entry) keep(h, entry);
		p += len + 1;
	}
	buf_free(&b);
	if (h->n <= HISTORY_MAX) return;
	size_t old = h->n - HISTORY_MAX;
	for (size_t i = 0; i < old; i++) free(h->entries[i]);
	memmove(h->entries, h->entries + old, HISTORY_MAX * sizeof *h->entries);
	h->n = HISTORY_MAX;
	if (old > HISTORY_MAX) shorten(h);
}

void history_free(struct history *h) {
	for (size_t i = 0; i < h->n; i++) free(h->entries[i]);
	free(h->entries);
	free(h->path);
	*h = (struct history){0};
}

/* --- Entries ------------------------------------------------------------------------------------------------------ */

void history_add(struct history *h, const wchar_t *text, size_t n) {
	wchar_t *entry = n ? calloc(n + 1, sizeof *entry) : NULL;
	if (!entry) return;
	wmemcpy(entry, text, n);
	if (h->n && wcscmp(h->entries[h->n - 1], entry) == 0) {
		free(entry);
		return;
	}
	_cleanup_close_ int fd = h->path ? open_locked(h->path) : -1;
	struct buf b = BUF_INIT(FILE_MAX);
	put_entry(&b, entry);
	if (fd >= 0 && !b.failed) fd_write_all(fd, b.data, b.len);
	buf_free(&b);
	keep(h, entry);
}

size_t history_find(const struct history *h, size_t before, const wchar_t *pattern) {
	for (size_t i = before; i-- > 0;)
		if (wcsstr(h->entries[i], pattern)) return i;
	return before;
}
