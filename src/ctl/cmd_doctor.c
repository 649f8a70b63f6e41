/* SPDX-License-Identifier: MIT
 *
 * doctor: looks for what keeps things from working, in the order in which things must work, and says what to do. It
 * changes nothing and starts nothing.
 */
#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "ctl/ctl.h"
#include "ctl/find.h"
#include "ctl/text.h"

#include <errno.h>
#include <glob.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum finding { GOOD, NOTE, BAD };

struct doctor {
	struct ctl *c;
	json_t *findings;
	json_t *status; /* of the daemon; NULL where none answers */
	json_t *peer;   /* what it takes us for; likewise */
	bool bad;
	char socket[PLENUM_SOCKET_PATH_SIZE];
};

static void PRINTF_LIKE(5, 6)
	found(struct doctor *d, enum finding kind, const char *what, const char *advice, const char *fmt, ...) {
	static const char *const names[] = {"ok", "note", "BAD"};
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (kind == BAD) d->bad = true;
	json_array_append_new(d->findings, json_pack("{s:s,s:s,s:s,s:s*}", "result", names[kind], "what", what, "text",
												 text, "advice", kind == GOOD ? NULL : advice));
	if (d->c->json) return;
	printf("%-5s %-9s ", names[kind], what);
	text_print(stdout, text, strlen(text));
	if (kind != GOOD && advice) printf("\n      %-9s -> %s", "", advice);
	putchar('\n');
}

/* --- The socket --------------------------------------------------------------------------------------------------- */

/* False: there is no path to connect to. */
static bool check_socket(struct doctor *d) {
	char path[4096] = "";
	const char *why = "named with --socket", *named = d->c->socket, *variable = getenv("PLENUM_SOCKET");
	bool ok = named ? path_socket_check(named, &why) : path_socket(path, sizeof path, &why);
	if (!named) named = path;
	snprintf(d->socket, sizeof d->socket, "%s", named);
	if (!ok) {
		found(d, BAD, "socket", "set PLENUM_SOCKET to a shorter path", "%s (it has %zu bytes): %s", why, strlen(named),
			  named);
		return false;
	}
	found(d, GOOD, "socket", NULL, "%s (%s)", named, why);
	const char *problem = path_runtime_dir_problem();
	if (problem && !d->c->socket && !(variable && *variable))
		found(d, NOTE, "runtime",
			  "log in through PAM/systemd (su and cron do not set it), or set PLENUM_SOCKET for daemon and tools alike",
			  "%s, so the socket of the system's daemon is used", problem);
	_cleanup_free_ char *folder = strdup(d->socket);
	char *slash = folder ? strrchr(folder, '/') : NULL;
	struct stat st;
	if (!slash || slash == folder) return true;
	*slash = 0;
	if (stat(folder, &st) < 0)
		found(d, NOTE, "directory", "plenumd makes it when it starts", "%s: %s", folder, strerror(errno));
	else if (st.st_uid != geteuid() && st.st_uid != 0)
		found(d, BAD, "directory", "set PLENUM_SOCKET to a directory of yours", "%s belongs to uid %u", folder,
			  (unsigned)st.st_uid);
	else if (st.st_mode & (S_IWGRP | S_IWOTH))
		found(d, NOTE, "directory", "chmod 700 it", "%s is writable for others, who could put their socket there",
			  folder);
	else
		found(d, GOOD, "directory", NULL, "%s, mode %04o", folder, (unsigned)st.st_mode & 07777);
	return true;
}

static const char *connect_advice(int error) {
	if (error == ENOENT) return "start it: `systemctl --user enable --now plenumd.socket`, or `plenumd` in a terminal";
	if (error == ECONNREFUSED)
		return "its daemon is gone and left the socket behind: start plenumd, it takes the path over";
	if (error == EACCES || error == EPERM)
		return "this user may not use that daemon (allow_uids, allow_groups in plenum.conf)";
	return "see plenumd(8)";
}

static void silent_daemon(struct doctor *d, struct plenum *p) {
	uid_t owner;
	_cleanup_free_ char *code = NULL, *error = ctl_last_error(p, &code);
	if (error && code && strcmp(code, PLENUM_E_BAD_CONFIG) == 0)
		found(d, BAD, "daemon", "correct the file; the next command starts the daemon", "%s", error);
	else if (error)
		found(d, BAD, "daemon", "see its log: `plenumctl log`", "it refuses this client: %s", error);
	else if (ctl_is_strangers(p, &owner))
		found(d, BAD, "daemon", "set PLENUM_SOCKET to your own, or have that user put you into allow_uids",
			  "it belongs to uid %u and does not take this user", owner);
	else
		found(d, BAD, "daemon", "see its log: `plenumctl log`", "it does not answer");
}

static struct plenum *check_daemon(struct doctor *d) {
	char why[512];
	struct plenum_answer a;
	struct plenum *p = plenum_open(d->c->socket, why, sizeof why);
	if (!p) {
		found(d, BAD, "daemon", connect_advice(errno), "%s", why);
		return NULL;
	}
	bool answers = plenum_request(p, PLENUM_HELLO, NULL, CTL_ANSWER_TIME, &a) == PLENUM_OK;
	_cleanup_json_ json_t *hello = answers ? json_loadb(a.body, a.body_len, JSON_ALLOW_NUL, NULL) : NULL;
	plenum_answer_free(&a);
	if (!answers) {
		silent_daemon(d, p);
		plenum_close(p);
		return NULL;
	}
	found(d, GOOD, "daemon", NULL, "answers");
	const char *version = ctl_str(hello, "version", "?");
	found(d, strcmp(version, plenum_version()) == 0 ? GOOD : NOTE, "version",
		  "`plenumctl upgrade` has the installed one take over", "daemon %s, plenumctl %s", version, plenum_version());
	d->peer = json_incref(json_object_get(hello, "peer"));
	return p;
}

/* --- The configuration and the units ------------------------------------------------------------------------------ */

static void check_config(struct doctor *d) {
	int status = 0;
	size_t more = 0;
	_cleanup_free_ char *program = find_own("plenumd", "");
	_cleanup_free_ char *text = program ? find_output((const char *[]){program, "--check", NULL}, &status) : NULL;
	if (!text) {
		found(d, BAD, "config", "install it, or put its directory into PATH",
			  "plenumd is neither beside plenumctl nor in PATH");
		return;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		found(d, GOOD, "config", NULL, "plenumd --check finds no error");
		return;
	}
	for (const char *p = text; (p = strchr(p, '\n')) != NULL && p[1]; p++) more++;
	_cleanup_free_ char *rest = more ? str_printf(" (and %zu more)", more) : strdup("");
	const char *first = strncmp(text, "plenumd: ", 9) == 0 ? text + 9 : text;
	found(d, BAD, "config", "correct it; `plenumctl reload`, or the next command if no daemon runs, reads it again",
		  "%.*s%s", (int)strcspn(first, "\n"), first, rest ? rest : "");
}

#define SERVICE_UNIT "plenumd.service"
#define SOCKET_UNIT "plenumd.socket"

/* Return a property in the output of `systemctl show`; the caller frees. */
static char *property(const char *text, const char *name) {
	size_t n = strlen(name);
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		if (strncmp(line, name, n) == 0 && line[n] == '=') return strndup(line + n + 1, strcspn(line + n + 1, "\n"));
	return strdup("");
}

static char *show_unit(const char *unit) {
	const char *const argv[] = {"systemctl",
								"--user",
								"show",
								"--property=LoadState,ActiveState,SubState,Result",
								"--property=ExecMainStatus,StatusText,StartLimitIntervalUSec",
								"--property=ExecMainStartTimestampMonotonic",
								unit,
								NULL};
	int status = 0;
	char *text = find_output(argv, &status);
	if (text && WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
	free(text);
	return NULL;
}

/* The window of the limit began before the last start, so it has ended when its time is over since then. */
static void found_limit(struct doctor *d, const char *unit) {
	_cleanup_free_ char *text = show_unit(SERVICE_UNIT), *when = NULL;
	_cleanup_free_ char *interval = text ? property(text, "StartLimitIntervalUSec") : NULL;
	_cleanup_free_ char *started = text ? property(text, "ExecMainStartTimestampMonotonic") : NULL;
	int64_t limit;
	uint64_t at;
	if (interval && started && str_time(interval, &limit) && str_u64(started, 0, INT64_MAX, &at))
		when = str_printf("; a start is possible again in %lld s",
						  (long long)MAX((int64_t)at / 1000 + limit - now_ms() + 999, 0) / 1000);
	found(d, BAD, "service",
		  "`systemctl --user reset-failed " SERVICE_UNIT " " SOCKET_UNIT "`, then `systemctl --user start " SOCKET_UNIT
		  "`",
		  "%s: failed too often in a short time (start limit)%s", unit, when ? when : "");
}

static void found_failed(struct doctor *d, const char *unit, const char *text) {
	_cleanup_free_ char *result = property(text, "Result"), *status = property(text, "ExecMainStatus");
	if (!result || !status) return;
	if (strstr(result, "limit-hit"))
		found_limit(d, unit);
	else if (strcmp(status, "78") == 0)
		found(d, BAD, "service", "correct the file; the next command starts it",
			  "%s: failed: errors in its configuration", unit);
	else
		found(d, BAD, "service",
			  "`journalctl --user -u plenumd` has the reason; then `systemctl --user restart plenumd`",
			  "%s: failed (%s, status %s)", unit, result, status);
}

static void check_units(struct doctor *d) {
	static const char *const units[] = {SOCKET_UNIT, SERVICE_UNIT};
	struct stat st;
	const char *named = getenv("PLENUM_SOCKET");
	if (d->c->socket || (named && *named) || stat("/run/systemd/system", &st) < 0) return;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		_cleanup_free_ char *text = show_unit(units[i]);
		_cleanup_free_ char *load = text ? property(text, "LoadState") : NULL,
							*state = text ? property(text, "ActiveState") : NULL;
		_cleanup_free_ char *sub = text ? property(text, "SubState") : NULL,
							*said = text ? property(text, "StatusText") : NULL;
		if (!load || !state || !sub || !said || strcmp(load, "loaded") != 0) continue; /* no manager, or not there */
		if (strcmp(state, "failed") == 0)
			found_failed(d, units[i], text);
		else if (strcmp(state, "active") == 0)
			found(d, GOOD, "service", NULL, "%s: active (%s)", units[i], sub);
		else if (*said)
			found(d, NOTE, "service", "see the other findings", "%s: %s: %s", units[i], state, said);
	}
}

/* --- Who may decide ----------------------------------------------------------------------------------------------- */

/* What this shell's programs, and those of agents, may do here. */
static void check_rights(struct doctor *d) {
	const char *why = ctl_str(d->peer, "why", NULL), *class = ctl_str(d->peer, "peer", NULL);
	if (getenv(PLENUM_CHILD_ENV))
		found(d, NOTE, "inside", "approve from another terminal",
			  "this shell runs in session %s: it cannot approve anything", getenv(PLENUM_CHILD_ENV));
	else if (getenv("CLAUDECODE"))
		found(d, NOTE, "inside", "nothing; plenumd takes such marks out of its agents' environment",
			  "CLAUDECODE is set: this shell was started by an agent");
	else
		found(d, GOOD, "inside", NULL, "this shell does not run in an agent");
	if (class && why) /* an older daemon does not say the class */
		found(d, NOTE, "origin",
			  "see SECURITY in plenumd(8); without it such a program may prompt, and decides nothing",
			  "the daemon takes this shell's programs for \"%s\": %s", class, why);
	else if (class)
		found(d, GOOD, "origin", NULL, "the daemon knows this shell's programs for the user's own");
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;
	if (f && fscanf(f, "%d", &scope) != 1) scope = 0;
	if (f) fclose(f);
	if (scope > 0)
		found(d, GOOD, "ptrace", NULL, "kernel.yama.ptrace_scope is %d", scope);
	else
		found(d, NOTE, "ptrace",
			  f ? "`sysctl kernel.yama.ptrace_scope=1`, or let another user approve (approve_uids in plenum.conf)"
				: "let another user approve (approve_uids in plenum.conf): this kernel has no Yama",
			  "a process of an agent can attach to other programs of its user, and speak for them");
}

/* --- Programs ----------------------------------------------------------------------------------------------------- */

static const char program_advice[] = "install it, or write its full path as `command` of the profile in plenum.conf; "
									 "`plenumctl new -p fake` tries the scripted agent";

/* Without a daemon: in this shell's PATH, which is the first place of a start. */
static void check_program(struct doctor *d, const char *profile, const char *program) {
	_cleanup_free_ char *path = find_program(program);
	if (path)
		found(d, GOOD, "profile", NULL, "%s: %s", profile, path);
	else
		found(d, NOTE, "profile", program_advice,
			  "%s: %s is neither in this shell's PATH nor in ~/.local/bin and ~/.claude/local", profile, program);
}

/* As the daemon would start them for this user. */
static void check_profiles(struct doctor *d, struct plenum *p) {
	json_t *profiles = ctl_array(d->status, "profiles"), *one;
	const char *variable = getenv("PLENUM_CLAUDE");
	size_t i;
	json_array_foreach(profiles, i, one) {
		_cleanup_json_ json_t *answer = NULL;
		const char *name = ctl_str(one, "name", "?"), *program = ctl_str(one, "program", NULL);
		bool is_default = strcmp(name, ctl_str(d->status, "default_profile", "")) == 0;
		if (ctl_ask_quietly(p, PLENUM_STATUS, json_pack("{s:s}", "profile", name), &answer) != CTL_OK) {
			if (program) check_program(d, name, program); /* an older daemon */
			continue;
		}
		const char *error = ctl_str(answer, "error", "not found"), *suffix = is_default ? ", the default" : "";
		bool named = variable && *variable && strstr(error, variable);
		if ((program = ctl_str(answer, "program", NULL)))
			found(d, GOOD, "profile", NULL, "%s%s: %s (%s)", name, suffix, program, ctl_str(answer, "from", "?"));
		else
			found(d, is_default ? BAD : NOTE, "profile",
				  named ? "correct or unset PLENUM_CLAUDE, which names it" : program_advice, "%s%s: %s", name, suffix,
				  error);
	}
	if (json_array_size(profiles)) return;
	check_program(d, "claude", "claude");
	check_program(d, "fake", "plenum-fakeagent");
}

/* --- Around it ---------------------------------------------------------------------------------------------------- */

static void check_system(struct doctor *d) {
	struct passwd *pw = getpwuid(geteuid());
	struct stat st;
	struct rlimit files;
	bool user = pw && geteuid() != 0 && stat("/run/systemd/system", &st) == 0;
	_cleanup_free_ char *path = user ? str_printf("/var/lib/systemd/linger/%s", pw->pw_name) : NULL;
	if (path && stat(path, &st) == 0)
		found(d, GOOD, "linger", NULL, "on: user services live on after logout");
	else if (user)
		found(d, NOTE, "linger", "`loginctl enable-linger` if sessions shall live on after logout",
			  "off: logout ends the daemon");
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max < 1024)
		found(d, NOTE, "files", "raise it: `ulimit -Hn`, or LimitNOFILE in the unit",
			  "at most %lu open files: few sessions fit", (unsigned long)files.rlim_max);
}

/* The kernel's list of locks: does this process hold one on this file? To try the lock itself would take it for a
 * moment from a daemon that starts. */
static bool holds_lock(long pid, const struct stat *st) {
	FILE *f = fopen("/proc/locks", "re");
	char line[256], inode[32];
	long owner;
	bool holds = false;
	if (!f) return false;
	snprintf(inode, sizeof inode, ":%ju ", (uintmax_t)st->st_ino);
	while (!holds && fgets(line, sizeof line, f))
		holds = sscanf(line, "%*s FLOCK %*s %*s %ld", &owner) == 1 && owner == pid && strstr(line, inode);
	fclose(f);
	return holds;
}

/* Where no daemon answers, one that listens elsewhere may have the folder, and a new one would refuse to start. */
static bool is_held(struct doctor *d, const char *folder) {
	_cleanup_free_ char *path = str_printf("%s/lock", folder);
	FILE *f = path ? fopen(path, "re") : NULL;
	char socket[PLENUM_SOCKET_PATH_SIZE] = "";
	struct stat st;
	long pid = 0;
	if (!f) return false;
	bool named = fscanf(f, "%ld %107[^\n]", &pid, socket) >= 1 && fstat(fileno(f), &st) == 0;
	fclose(f);
	if (!named || !holds_lock(pid, &st)) return false;
	_cleanup_free_ char *advice = *socket ? str_printf("set PLENUM_SOCKET=%s to reach it", socket) : NULL;
	found(d, NOTE, "state", advice ? advice : "stop it, or give another daemon a directory of its own (state_dir)",
		  "plenumd with pid %ld%s%s has the directory %s: no other can start with it", pid,
		  *socket ? ", which listens on " : "", socket, folder);
	return true;
}

/* The daemon's own folder, where one answers, and in it the tables that it could not read and has put aside. */
static void check_state(struct doctor *d, struct plenum *p) {
	const char *named = ctl_str(d->status, "state_dir", NULL);
	_cleanup_free_ char *folder = named ? strdup(named) : path_state_dir();
	_cleanup_free_ char *damaged = folder ? str_printf("%s/sessions.json.damaged-*", folder) : NULL;
	struct stat st;
	glob_t files;
	uid_t owner;
	if (json_is_null(json_object_get(d->status, "state_dir")))
		found(d, BAD, "state", "see the beginning of its log for the directory and the cause",
			  "the daemon could not open its state directory: sessions will not survive a restart");
	else if (p && ctl_is_strangers(p, &owner))
		found(d, GOOD, "state", NULL, "uid %u's, which runs the daemon", owner);
	else if (!folder)
		found(d, BAD, "state", "set HOME", "there is no home directory");
	else if (stat(folder, &st) < 0 && errno == ENOENT)
		found(d, GOOD, "state", NULL, "%s (made at the first start)", folder);
	else if (access(folder, R_OK | W_OK | X_OK) < 0)
		found(d, BAD, "state", "chown or chmod it: sessions would not survive a restart", "%s: %s", folder,
			  strerror(errno));
	else if (p || !is_held(d, folder))
		found(d, GOOD, "state", NULL, "%s", folder);
	if (!damaged || glob(damaged, 0, NULL, &files) != 0) return;
	for (size_t i = 0; i < files.gl_pathc; i++)
		found(d, NOTE, "table", "look for the losses in the log of that day; remove the copy if nothing is missing",
			  "a damaged table of sessions was kept: %s", files.gl_pathv[i]);
	globfree(&files);
}

static void check_sessions(struct doctor *d, struct plenum *p) {
	_cleanup_json_ json_t *list = NULL;
	json_t *one;
	size_t i;
	if (ctl_bool(d->status, "guards_lost"))
		found(d, BAD, "guards", "`plenumctl clear-lost --all` once you know the losses",
			  "each new session refuses every tool: sessions were lost, perhaps with guards");
	if (!p || ctl_ask(p, PLENUM_LIST, NULL, &list) != CTL_OK) return;
	json_array_foreach(ctl_array(list, "sessions"), i, one) {
		const char *name = ctl_str(one, "session", "?");
		if (strcmp(ctl_str(one, "profile", ""), PLENUM_UNREADABLE) == 0)
			found(d, BAD, "table", "`plenumctl stop -f` forgets it; its conversation can be resumed in a new one",
				  "session %s cannot start: its record was damaged (conversation %s)", name,
				  ctl_str(one, "conversation_id", "not known"));
		if (ctl_bool(one, "guards_lost"))
			found(d, BAD, "guards", "`plenumctl clear-lost` once its guards have registered again",
				  "session %s refuses every tool: its guards could not be read", name);
		if (ctl_bool(one, "guards_away"))
			found(d, NOTE, "guards", "start that program again; `plenumctl status` of the session names it",
				  "session %s refuses the tools of a guard while its program is away", name);
	}
}

int cmd_doctor(struct ctl *c, int argc, char **argv) {
	int code = ctl_options(c, NULL, &argc, &argv, 0, 0);
	if (code != CTL_GO) return code;
	_cleanup_json_ json_t *findings = json_array(), *status = NULL;
	_cleanup_plenum_ struct plenum *p = NULL;
	struct doctor d = {.c = c, .findings = findings};
	if (check_socket(&d)) {
		check_config(&d);
		check_units(&d); /* before a connection starts one */
		p = check_daemon(&d);
	}
	if (p) ctl_ask(p, PLENUM_STATUS, NULL, &status);
	d.status = status;
	check_profiles(&d, p);
	check_rights(&d);
	check_state(&d, p);
	check_sessions(&d, p);
	check_system(&d);
	if (c->json) ctl_print_json(findings);
	json_decref(d.peer);
	return d.bad ? CTL_REFUSED : CTL_OK;
}
