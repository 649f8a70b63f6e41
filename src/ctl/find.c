/* SPDX-License-Identifier: MIT */
#include "ctl/find.h"

#include "base/macros.h"
#include "base/paths.h"
#include "base/str.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>

static char *if_program(char *path) {
	if (path && path_is_program(path)) return path;
	free(path);
	return NULL;
}

char *find_program(const char *name) {
	if (strchr(name, '/')) return if_program(strdup(name));
	const char *path = getenv("PATH");
	for (const char *p = path ? path : "/usr/local/bin:/usr/bin:/bin"; *p;) {
		size_t n = strcspn(p, ":");
		char *found = if_program(n ? str_printf("%.*s/%s", (int)n, p, name) : str_printf("./%s", name));
		if (found) return found;
		p += n + (p[n] == ':');
	}
	const char *home = getenv("HOME");
	char *place, *found = NULL;
	for (size_t i = 0; home && !found && (place = path_installed(home, i, name)); i++) found = if_program(place);
	return found;
}

char *find_own(const char *name, const char *build_subfolder) {
	_cleanup_free_ char *folder = path_own_dir();
	char *found = folder ? if_program(str_printf("%s/%s", folder, name)) : NULL;
	if (!found && folder) found = if_program(str_printf("%s/../%s%s", folder, build_subfolder, name));
	return found ? found : find_program(name);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

bool find_remove_tree(const char *folder) {
	return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0;
}
