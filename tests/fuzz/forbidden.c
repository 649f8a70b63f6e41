/* SPDX-License-Identifier: MIT
 *
 * For bash_judge.py: the program that a rule denies. It leaves a file named `ran` in the folder above its own, however
 * it was called; a copy or a link of it under another name, in the folder itself, does the same there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void) {
	char path[4096] = "", *slash;
	const char *mark = getenv("FORBIDDEN_MARK");
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
	if (!mark && n > 0 && (slash = strrchr(path, '/'))) {
		*slash = 0;
		slash = strrchr(path, '/');
		strcpy(slash && strcmp(slash, "/bin") == 0 ? slash : path + strlen(path), "/ran");
		mark = path;
	}
	int fd = mark ? open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
	return fd < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
