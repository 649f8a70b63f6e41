/* SPDX-License-Identifier: MIT
 *
 * Runs a fuzz target over files and folders without libFuzzer, so that every build and every `meson test` goes over
 * the corpus. With nothing found it fails: a corpus that is not there is no success.
 */
#include "base/buf.h"
#include "target.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static bool read_file(const char *path, struct buf *b) {
	FILE *f = fopen(path, "rbe");
	char part[65536];
	size_t n;
	if (!f) return false;
	while ((n = fread(part, 1, sizeof part, f)) > 0 && buf_put(b, part, n)) {}
	bool ok = !ferror(f) && !b->failed;
	fclose(f);
	return ok;
}

/* In memory of exactly the input's size, so that a sanitizer sees a byte read behind it. */
static size_t run_file(const char *path) {
	struct buf b = BUF_INIT((size_t)256 << 20);
	uint8_t *exact = NULL;
	if (read_file(path, &b) && (exact = malloc(b.len ? b.len : 1))) {
		if (b.len) memcpy(exact, b.data, b.len);
		LLVMFuzzerTestOneInput(exact, b.len);
	} else {
		fprintf(stderr, "cannot read %s\n", path);
	}
	bool ran = exact != NULL;
	free(exact);
	buf_free(&b);
	return ran;
}

static size_t run_path(const char *path) {
	struct stat st;
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) return run_file(path);
	DIR *dir = opendir(path);
	size_t n = 0;
	if (!dir) return 0;
	for (const struct dirent *e; (e = readdir(dir));) {
		char name[4096];
		if (e->d_name[0] == '.') continue;
		snprintf(name, sizeof name, "%s/%s", path, e->d_name);
		n += run_path(name);
	}
	closedir(dir);
	return n;
}

int main(int argc, char **argv) {
	size_t n = 0;
	for (int i = 1; i < argc; i++) {
		size_t more = run_path(argv[i]);
		if (!more) {
			fprintf(stderr, "nothing to run in %s\n", argv[i]);
			return EXIT_FAILURE;
		}
		n += more;
	}
	printf("%zu inputs\n", n);
	return n ? EXIT_SUCCESS : EXIT_FAILURE;
}
