/* SPDX-License-Identifier: MIT
 *
 * log: the daemon's own log, which the journal keeps with fields that can be asked for. journalctl does the work.
 */
#include "base/str.h"
#include "ctl/ctl.h"

#include <errno.h>
#include <string.h>

int cmd_log(struct ctl *c, int argc, char **argv) {
	bool decisions = false, follow = false;
	const struct ctl_option options[] = {
		{"decisions", 'd', NULL, "only who allowed or denied what", .flag = &decisions},
		{"follow", 'f', NULL, "go on as more comes", .flag = &follow},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 0, 1);
	if (code != CTL_GO) return code;
	_cleanup_free_ char *session = argc ? str_printf("PLENUM_SESSION=%s", argv[0]) : NULL;
	char program[] = "journalctl", ours[] = "--identifier=plenumd", follows[] = "--follow";
	char quiet[] = "--quiet", json[] = "--output=json", event[] = "PLENUM_EVENT=decision";
	char *words[8] = {program, ours}; /* execvp() wants them writable */
	size_t n = 2;
	if (follow) words[n++] = follows;
	if (c->json) words[n++] = json;
	if (c->json) words[n++] = quiet; /* a person is told where there is nothing */
	if (decisions) words[n++] = event;
	if (session) words[n++] = session;
	execvp(words[0], words);
	ctl_say("cannot run journalctl: %s; a daemon in a terminal logs there", strerror(errno));
	return CTL_INTERNAL;
}
