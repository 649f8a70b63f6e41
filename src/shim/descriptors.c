/* SPDX-License-Identifier: MIT */
#include "shim/descriptors.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/macros.h"
#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CONTENT_MAX ((size_t)120 * 1024) /* one word of a command line has at most 128 KiB; source: execve(2) */

/* Flags whose value names a file. */
static const struct {
	const char *flag;
	const char *instead; /* the flag that takes the content; NULL: there is none */
} rows[] = {
	{"--mcp-config", "--mcp-config"},
	{"--settings", "--settings"},
	{"--agents", "--agents"},
	{"--system-prompt-file", "--system-prompt"},
	{"--append-system-prompt-file", "--append-system-prompt"},
	{"--add-dir", NULL},
	{"--plugin-dir", NULL},
	{"--debug-file", NULL},
};

static bool refuse(const struct options_value *v, const char *cause) {
	fprintf(stderr,
			"plenum-shim: %.*s %s: %s (the agent runs under plenumd and has no descriptor of this program: name a "
			"file)\n",
			(int)v->flag_len, v->flag, v->text, cause);
	return false;
}

/* Return the number in /dev/fd/N and /proc/self/fd/N; -1: another path, or a standard stream, which the agent has, too.
 */
static int descriptor_of(const char *path) {
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	uint64_t n;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		size_t len = strlen(folders[i]);
		if (strncmp(path, folders[i], len) == 0 && str_u64(path + len, 3, INT_MAX, &n)) return (int)n;
	}
	return -1;
}

/* Return the path of the open file; NULL: it has none. The caller frees. */
static char *path_of(int fd) {
	char link[40], path[PATH_MAX];
	struct stat open, named;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	if (n <= 0) return NULL;
	path[n] = 0;
	bool same = path[0] == '/' && fstat(fd, &open) == 0 && stat(path, &named) == 0 && open.st_dev == named.st_dev &&
				open.st_ino == named.st_ino;
	return same && (S_ISREG(open.st_mode) || S_ISDIR(open.st_mode)) ? strdup(path) : NULL;
}

/* Read all of it, until its writer closes it. NULL: errno is set. */
static char *read_all(int fd) {
	struct buf content = BUF_INIT(CONTENT_MAX);
	char block[4096];
	ssize_t n;
	while ((n = fd_read(fd, block, sizeof block)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0) buf_put(&content, block, (size_t)n);
	if (n == 0 && content.failed) errno = EFBIG;
	while (content.len && strchr(" \t\r\n", content.data[content.len - 1])) content.data[--content.len] = 0;
	if (n == 0 && !content.failed) buf_puts(&content, "");
	char *text = n == 0 ? buf_steal(&content, NULL) : NULL;
	buf_free(&content);
	return text;
}

/* Put the content in the place of the value. For another flag the name must be alone, or joined with `=`. */
static bool put_content(const struct options_value *v, const char *instead, char *content) {
	if (v->joined)
		*v->word = str_printf("%s=%s", instead, content);
	else
		*v->word = strdup(content);
	if (!v->joined && strlen(instead) != v->flag_len) v->word[-1] = strdup(instead);
	return *v->word != NULL;
}

static bool replace(void *ctx, const struct options_value *v) {
	size_t row = 0;
	(void)ctx;
	int fd = descriptor_of(v->text);
	while (row < ARRAY_SIZE(rows) && !options_is_flag(v, rows[row].flag)) row++;
	if (fd < 0 || row == ARRAY_SIZE(rows)) return true;
	_cleanup_free_ char *path = path_of(fd);
	if (path) return put_content(v, rows[row].flag, path);
	if (!rows[row].instead) return refuse(v, "it is no file on disk");
	_cleanup_free_ char *content = read_all(fd);
	if (!content) return refuse(v, errno == EFBIG ? "it has more than 120 KiB" : strerror(errno));
	return put_content(v, rows[row].instead, content);
}

bool descriptors_replace(struct options *o) {
	size_t n = 0;
	while (o->argv[n]) n++;
	char **copy = calloc(n + 1, sizeof *copy);
	if (!copy) return false;
	memcpy(copy, o->argv, n * sizeof *copy);
	free(o->copied);
	o->argv = o->copied = copy;
	return options_each_value(o, replace, NULL);
}
