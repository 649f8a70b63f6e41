/* SPDX-License-Identifier: MIT */
#include "shim/wrapper.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/macros.h"
#include "plenum/protocol.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COMMAND_MAX ((size_t)4 * 1024 * 1024) /* more than the kernel takes; source: execve(2) */
#define SCRIPT_WORDS 3                        /* interpreter, its argument, script */

/* Return the content of a file of the parent in /proc, NUL-terminated; NULL: none. The caller frees. */
static char *read_parent(const char *name, size_t *n) {
	struct buf b = BUF_INIT(COMMAND_MAX);
	char path[40];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)getppid(), name);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) buf_read(&b, fd);
	char *text = b.len ? buf_steal(&b, n) : NULL;
	buf_free(&b);
	return text;
}

static const char *next_word(const char *word, const char *end) {
	word += strlen(word) + 1;
	return word < end ? word : NULL;
}

/* The words from here to the end are part of argv. */
static bool is_part(char *const *argv, const char *word, const char *end) {
	if (!word) return !*argv;
	for (; *argv; argv++) {
		const char *next = word;
		for (char *const *at = argv; next && *at && strcmp(*at, next) == 0; at++) next = next_word(next, end);
		if (!next) return true;
	}
	return false;
}

bool wrapper_same_file(const char *a, const char *b) {
	struct stat x, y;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool wrapper_is(const char *path, char *const *argv) {
	size_t n = 0;
	_cleanup_free_ char *command = read_parent("cmdline", &n);
	const char *word = command, *end = command + n;
	for (int i = 0; word && i < SCRIPT_WORDS; i++) {
		const char *rest = next_word(word, end);
		if ((!path || wrapper_same_file(path, word)) && is_part(argv, rest, end)) return true;
		word = rest;
	}
	return false;
}

bool wrapper_is_agent(char *const *argv) {
	size_t n;
	if (!getenv(PLENUM_CHILD_ENV)) return false;
	_cleanup_free_ char *name = read_parent("comm", &n);
	return (name && strcmp(name, "plenumd\n") == 0) || wrapper_is(NULL, argv);
}
