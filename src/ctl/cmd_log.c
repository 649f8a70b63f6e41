/* SPDX-License-Identifier: MIT
 *
 * log: the daemon's own log, which the journal keeps with fields that can be asked for (journalctl does the work); or
 * of a session the last lines that its agent wrote to stderr, which the daemon keeps.
 */
#include "base/str.h"
#include "ctl/pick.h"
#include "ctl/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- The agent ---------------------------------------------------------------------------------------------------- */

static int print_stderr(struct ctl *c, const char *session) {
	_cleanup_json_ json_t *answer = NULL;
	int code = pick_ask(c, session, PLENUM_LOGS, &answer);
	if (code != CTL_OK) return code;
	if (c->json) return ctl_print_json(answer);
	json_t *list = ctl_array(answer, "stderr"), *one;
	size_t i;
	const char *name = ctl_str(answer, "session", session), *reason = ctl_str(answer, "reason", NULL);
	if (reason) ctl_say("session %s: %s", name, reason);
	if (json_array_size(list) == 0) ctl_say("session %s: its agent wrote nothing to stderr", name);
	json_array_foreach(list, i, one) {
		if (!json_is_string(one)) continue;
		text_print(stdout, json_string_value(one), json_string_length(one));
		putchar('\n');
	}
	return CTL_OK;
}

/* --- The daemon --------------------------------------------------------------------------------------------------- */

struct journal {
	bool follow, decisions;
	const char *session; /* NULL: all */
};

/* The journal has sessions that are gone, so a name that fits none is not an error here. */
static int print_journal(struct ctl *c, struct journal *j) {
	_cleanup_plenum_ struct plenum *p = NULL;
	if (j->session && !c->json) {
		char why[256];
		struct plenum *there = plenum_open(c->socket, why, sizeof why);
		plenum_close(there);
		int code = there ? pick_open(c, &j->session, &p) : CTL_OK;
		if (code != CTL_OK) return code;
	}
	_cleanup_free_ char *session = j->session ? str_printf("PLENUM_SESSION=%s", j->session) : NULL;
	char program[] = "journalctl", ours[] = "--identifier=plenumd", follows[] = "--follow";
	char quiet[] = "--quiet", json[] = "--output=json", event[] = "PLENUM_EVENT=decision";
	char *words[8] = {program, ours}; /* execvp() wants them writable */
	size_t n = 2;
	if (j->follow) words[n++] = follows;
	if (c->json) words[n++] = json;
	if (c->json) words[n++] = quiet; /* a person is told that there is nothing */
	if (j->decisions) words[n++] = event;
	if (session) words[n++] = session;
	execvp(words[0], words);
	ctl_say("journalctl: %s (a daemon in a terminal logs there)", strerror(errno));
	return CTL_INTERNAL;
}

int cmd_log(struct ctl *c, int argc, char **argv) {
	bool daemon = false;
	struct journal j = {0};
	const struct ctl_option options[] = {
		{"daemon", 0, NULL, "of a session: the daemon's log about it", .flag = &daemon},
		{"decisions", 'd', NULL, "only who allowed or denied what", .flag = &j.decisions},
		{"follow", 'f', NULL, "continue as more is logged", .flag = &j.follow},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 0, 1);
	if (code != CTL_GO) return code;
	if (argc && !daemon && !j.decisions && !j.follow) return print_stderr(c, argv[0]);
	j.session = argc ? argv[0] : NULL;
	return print_journal(c, &j);
}
