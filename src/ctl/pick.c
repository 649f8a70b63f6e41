/* SPDX-License-Identifier: MIT */
#include "ctl/pick.h"

#include "base/fd.h"
#include "base/str.h"
#include "ctl/follow.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* --- The last one ------------------------------------------------------------------------------------------------- */

static char *last_path(const char *end) {
	_cleanup_free_ char *folder = ctl_state_dir();
	return folder ? str_printf("%s/plenumctl.last%s", folder, end) : NULL;
}

/* By rename: another plenumctl may read it at the same time. */
void pick_remember(const char *name) {
	_cleanup_free_ char *path = last_path(""), *fresh = last_path(".new");
	_cleanup_close_ int fd = fresh ? open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
	if (fd < 0 || !path) return; /* without a state directory there is no last one */
	if (fd_write_all(fd, name, strlen(name)) < 0 || rename(fresh, path) < 0) unlink(fresh);
}

static bool read_last(char *name, size_t size) {
	_cleanup_free_ char *path = last_path("");
	_cleanup_close_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd < 0 ? -1 : fd_read(fd, name, size - 1);
	if (n <= 0) return false;
	name[n] = 0;
	return str_is_utf8(name, (size_t)n);
}

/* --- The name ----------------------------------------------------------------------------------------------------- */

static int ambiguous(const char *word, json_t *fitting) {
	struct buf b = BUF_INIT(4096);
	size_t i, n = json_array_size(fitting);
	json_t *name;
	json_array_foreach(fitting, i, name) {
		if (i < 8) buf_printf(&b, "%s%s", i == 0 ? "" : i + 1 == n ? " and " : ", ", json_string_value(name));
	}
	ctl_say("session '%s': fits %s%s (write more of the name)", word, b.data ? b.data : "", n > 8 ? ", ..." : "");
	buf_free(&b);
	return CTL_USAGE;
}

/* List the names that begin with the word; only one, if the word is all of it or its conversation. */
static json_t *fitting(json_t *sessions, const char *word, bool whole) {
	json_t *fit = json_array(), *one;
	size_t i;
	json_array_foreach(sessions, i, one) {
		json_t *name = json_object_get(one, "session");
		const char *text = ctl_str(one, "session", ""), *conversation = ctl_str(one, "conversation_id", NULL);
		if (strcmp(text, word) == 0 || (conversation && strcmp(conversation, word) == 0)) {
			json_array_clear(fit);
			json_array_append(fit, name);
			break;
		}
		if (!whole && strncmp(text, word, strlen(word)) == 0) json_array_append(fit, name);
	}
	return fit;
}

/* sessions: of plenum_list; NULL: the daemon does not tell this program. */
static int pick(struct ctl *c, const char **word, bool whole, json_t *sessions) {
	bool last = strcmp(*word, "-") == 0;
	if (!**word) {
		ctl_say("session '': a name is needed (`plenumctl ls` lists the sessions)");
		return CTL_USAGE;
	}
	if (last && !read_last(c->session, sizeof c->session)) {
		ctl_say("session '-': no session was used yet (`plenumctl ls` lists the sessions)");
		return CTL_USAGE;
	}
	if (last) *word = c->session;
	_cleanup_json_ json_t *fit = fitting(sessions, *word, whole || last);
	if (json_array_size(fit) > 1) return ambiguous(*word, fit);
	const char *name = json_string_value(json_array_get(fit, 0));
	if (name && strlen(name) < sizeof c->session) {
		snprintf(c->session, sizeof c->session, "%s", name);
		*word = c->session;
		pick_remember(name);
	}
	if (name || **word != '-') return CTL_OK;
	ctl_say("session '%s': does not exist, and looks like an option (options stand before --)", *word);
	return CTL_USAGE;
}

int pick_or_make(struct ctl *c, const char **word, bool make, struct plenum **p, const char **create) {
	_cleanup_json_ json_t *list = NULL;
	*create = "never";
	*p = ctl_open(c);
	if (!*p) return CTL_NO_DAEMON;
	int code = ctl_ask_quietly(*p, PLENUM_LIST, NULL, &list);
	if (code == CTL_REFUSED) return CTL_OK; /* an agent's process; the daemon judges its name, too */
	if (code != CTL_OK) return code;
	json_t *sessions = ctl_array(list, "sessions");
	if (make || json_array_size(sessions) == 0) *create = "auto";
	return pick(c, word, make || c->json, sessions);
}

void pick_hint(const struct ctl *c, struct plenum *p, const char *create) {
	_cleanup_json_ json_t *answer = NULL;
	if (*c->session || strcmp(create, "never") != 0) return;
	if (ctl_ask_quietly(p, PLENUM_HELLO, NULL, &answer) != CTL_OK) return;
	const char *peer = ctl_str(json_object_get(answer, "peer"), "peer", PLENUM_PEER_OWN);
	if (strcmp(peer, PLENUM_PEER_AGENT) != 0) ctl_say("-c, --create makes a session of that name");
}

int pick_open(struct ctl *c, const char **word, struct plenum **p) {
	const char *create;
	return pick_or_make(c, word, false, p, &create);
}

int pick_ask(struct ctl *c, const char *word, const char *verb, json_t **answer) {
	_cleanup_plenum_ struct plenum *p = NULL;
	int code = pick_open(c, &word, &p);
	return code == CTL_OK ? ctl_ask(p, verb, json_pack("{s:s}", "session", word), answer) : code;
}

int pick_attach(struct ctl *c, const char **word, struct plenum **p, json_t **answer) {
	int code = pick_open(c, word, p);
	if (code != CTL_OK) return code;
	return follow_to(*p, *word, json_pack("{s:s,s:b}", "create", "never", "approve", 0), answer);
}
