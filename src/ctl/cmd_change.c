/* SPDX-License-Identifier: MIT
 *
 * mode, model: print or change what the agent of a session works with. fork: another session that goes on from the same
 * conversation. rename: another name for one that sleeps.
 */
#include "ctl/follow.h"
#include "ctl/pick.h"
#include "ctl/text.h"

#include <stdio.h>
#include <string.h>

/* --- mode, model -------------------------------------------------------------------------------------------------- */

#define NOT_SAID "(the agent has not said it)"
#define NOT_STARTED "(not known before the agent has started)"

struct setting {
	const char *verb, *known; /* known: where the answer to an attach has it */
	bool mode;
};

static int print_setting(struct ctl *c, const struct setting *s, const char *session, const char *value) {
	if (c->json) {
		_cleanup_json_ json_t *told = json_pack("{s:s,s:s?}", "session", session, s->verb, value);
		return ctl_print_json(told);
	}
	text_print(stdout, value, strlen(value)); /* it may be text of the agent */
	putchar('\n');
	return CTL_OK;
}

static int change_setting(struct ctl *c, int argc, char **argv, const struct setting *s) {
	_cleanup_json_ json_t *attached = NULL;
	_cleanup_plenum_ struct plenum *p = NULL;
	int code = ctl_options(c, NULL, &argc, &argv, 1, 2);
	if (code != CTL_GO) return code;
	const char *session = argv[0], *value = argc > 1 ? argv[1] : NULL;
	if (value && !*value) return ctl_usage(c, "%s: the %s is empty", s->verb, s->verb);
	code = pick_attach(c, &session, &p, &attached);
	if (code != CTL_OK) return code;
	if (!value) {
		const char *unknown = ctl_int(attached, "pid") ? NOT_SAID : NOT_STARTED;
		return print_setting(c, s, session, ctl_str(attached, s->known, c->json ? NULL : unknown));
	}
	json_t *members;
	const char *request = speech_of(p)->setting(s->mode, value, &members);
	if (!request) {
		ctl_say("session %s: its agent has no request that sets the %s", session, s->verb);
		return CTL_REFUSED;
	}
	code = ctl_ask(p, request, members, NULL);
	return code == CTL_OK ? print_setting(c, s, session, value) : code;
}

int cmd_mode(struct ctl *c, int argc, char **argv) {
	static const struct setting mode = {"mode", "permission_mode", true};
	return change_setting(c, argc, argv, &mode);
}

int cmd_model(struct ctl *c, int argc, char **argv) {
	static const struct setting model = {"model", "model", false};
	return change_setting(c, argc, argv, &model);
}

/* --- fork --------------------------------------------------------------------------------------------------------- */

int cmd_fork(struct ctl *c, int argc, char **argv) {
	_cleanup_json_ json_t *status = NULL, *answer = NULL;
	_cleanup_plenum_ struct plenum *p = NULL;
	int code = ctl_options(c, NULL, &argc, &argv, 2, 2);
	if (code != CTL_GO) return code;
	const char *session = argv[0], *fresh = argv[1];
	if (*fresh == '-') return ctl_usage(c, "fork: %s: a name does not begin with a dash", fresh);
	code = pick_open(c, &session, &p);
	if (code == CTL_OK) code = ctl_ask(p, PLENUM_STATUS, json_pack("{s:s}", "session", session), &status);
	if (code != CTL_OK) return code;
	if (!ctl_str(status, "conversation_id", NULL)) {
		ctl_say("session %s: has no conversation yet (send it a prompt first)", session);
		return CTL_REFUSED;
	}
	json_t *members = json_pack("{s:s,s:b,s:b,s:s,s:s*,s:s*}", "create", "new", "approve", 0, "fork", 1, "resume",
								ctl_str(status, "conversation_id", ""), "profile", ctl_str(status, "profile", NULL),
								"cwd", ctl_str(status, "cwd", NULL));
	code = follow_to(p, fresh, members, &answer);
	if (code != CTL_OK) return code;
	pick_remember(fresh);
	if (c->json) return ctl_print_json(answer);
	puts(ctl_str(answer, "session", fresh));
	return CTL_OK;
}

/* --- rename ------------------------------------------------------------------------------------------------------- */

int cmd_rename(struct ctl *c, int argc, char **argv) {
	_cleanup_json_ json_t *answer = NULL;
	_cleanup_plenum_ struct plenum *p = NULL;
	int code = ctl_options(c, NULL, &argc, &argv, 2, 2);
	if (code != CTL_GO) return code;
	const char *session = argv[0];
	if (*argv[1] == '-') return ctl_usage(c, "rename: %s: a name does not begin with a dash", argv[1]);
	code = pick_open(c, &session, &p);
	if (code == CTL_OK)
		code = ctl_ask(p, PLENUM_RENAME, json_pack("{s:s,s:s}", "session", session, "name", argv[1]), &answer);
	if (code != CTL_OK) return code;
	pick_remember(argv[1]);
	if (c->json) return ctl_print_json(answer);
	puts(argv[1]);
	return CTL_OK;
}
