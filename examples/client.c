/* SPDX-License-Identifier: MIT
 *
 * client SESSION PROMPT: sends one prompt and prints the lines that come, up to the result.
 *
 *	cc client.c $(pkg-config --cflags --libs plenum) -o client
 */
#include <err.h>
#include <plenum/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void attach(struct plenum *p, const char *session) {
	char *name = plenum_quote(session, strlen(session)), members[512];
	if (!name) errx(70, "out of memory");
	int n = snprintf(members, sizeof members, "{\"session\":%s,\"approve\":false}", name);
	if (n >= (int)sizeof members) errx(64, "the session's name is too long");
	struct plenum_answer a;
	enum plenum_result r = plenum_request(p, PLENUM_ATTACH, members, 5000, &a);
	if (r != PLENUM_OK) errx(1, "%s", r == PLENUM_REFUSED ? a.error : plenum_error(p));
	plenum_answer_free(&a);
	free(name);
}

int main(int argc, char **argv) {
	if (argc != 3) errx(64, "usage: client SESSION PROMPT");
	char why[256], uuid[PLENUM_UUID_SIZE];
	struct plenum *p = plenum_open(NULL, why, sizeof why);
	if (!p) errx(69, "%s", why);
	attach(p, argv[1]);
	if (plenum_prompt(p, argv[2], strlen(argv[2]), uuid) != PLENUM_OK) errx(74, "%s", plenum_error(p));
	if (plenum_finish(p) != PLENUM_OK) errx(74, "%s", plenum_error(p)); /* the daemon closes after the result */
	const char *line;
	size_t len;
	while (plenum_next(p, -1, &line, &len) == PLENUM_OK) printf("%.*s\n", (int)len, line);
	plenum_close(p);
	return 0;
}
