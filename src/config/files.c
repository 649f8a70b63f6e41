/* SPDX-License-Identifier: MIT */
#include "config/files.h"

#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "io/errand.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)4 * 1024 * 1024)

/* The numbers of a file, between its path and its text. */
struct head {
	int32_t error, named;
	uint32_t mode, uid;
	uint64_t n;
};

static void put(struct buf *out, const char *path, const struct head *h, const void *text) {
	errand_put(out, path);
	buf_put(out, h, sizeof *h);
	buf_put(out, text, h->n);
}

static int read_all(int fd, struct buf *text) {
	ssize_t n = 1;
	while (n > 0) {
		if (!buf_reserve(text, 65536)) return text->len + 65536 > FILE_MAX ? EFBIG : ENOMEM;
		n = fd_read(fd, text->data + text->len, 65536);
		if (n > 0) text->len += (size_t)n;
	}
	return n < 0 ? errno : 0;
}

static void read_file(struct buf *out, const char *path, bool named) {
	struct buf text = BUF_INIT(FILE_MAX);
	struct head h = {.named = named};
	struct stat st;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && !named) return;
	if (fd < 0 || fstat(fd, &st) < 0) {
		h.error = errno;
	} else {
		h.mode = st.st_mode;
		h.uid = st.st_uid;
		if (!S_ISDIR(st.st_mode)) h.error = read_all(fd, &text);
	}
	h.n = h.error ? 0 : text.len;
	put(out, path, &h, text.data);
	buf_free(&text);
}

static int is_dropin(const struct dirent *e) {
	size_t n = strlen(e->d_name);
	return e->d_name[0] != '.' && n > 5 && strcmp(e->d_name + n - 5, ".conf") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_dropins(struct buf *out, const char *dir) {
	struct dirent **names = NULL;
	int n = scandir(dir, &names, is_dropin, by_bytes);
	if (n < 0 && errno != ENOENT && errno != ENOTDIR) put(out, dir, &(struct head){.error = errno}, NULL);
	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *path = str_printf("%s/%s", dir, names[i]->d_name);
		if (path)
			read_file(out, path, false);
		else
			out->failed = true;
		free(names[i]);
	}
	free(names);
}

/* file: in place of the directory's own. */
static void read_folder(struct buf *out, const char *dir, const char *file) {
	_cleanup_free_ char *path = file ? strdup(file) : str_printf("%s/plenum.conf", dir);
	_cleanup_free_ char *dropins = str_printf("%s/plenum.conf.d", dir);
	if (!path || !dropins) {
		out->failed = true;
		return;
	}
	read_file(out, path, file != NULL);
	read_dropins(out, dropins);
}

void files_read(struct buf *out, const char *file) {
	if (file) {
		const char *slash = strrchr(file, '/');
		_cleanup_free_ char *folder = slash ? strndup(file, MAX((size_t)(slash - file), (size_t)1)) : strdup(".");
		if (folder) read_folder(out, folder, file);
		out->failed |= !folder;
		return;
	}
	read_folder(out, FILES_SYSTEM, NULL);
	_cleanup_free_ char *home = path_config_home();
	_cleanup_free_ char *dir = home ? str_printf("%s/plenum", home) : NULL;
	if (dir) read_folder(out, dir, NULL);
	out->failed |= home && !dir;
}

bool files_next(const char **at, const char *end, struct file *f) {
	struct head h;
	const char *path = errand_next(at, end);
	if (!path || (size_t)(end - *at) < sizeof h) return false;
	memcpy(&h, *at, sizeof h);
	*at += sizeof h;
	if ((size_t)(end - *at) < h.n) return false;
	*f = (struct file){
		.path = path, .error = h.error, .named = h.named, .mode = h.mode, .uid = h.uid, .text = *at, .n = h.n};
	*at += h.n;
	return true;
}
