/* SPDX-License-Identifier: MIT
 *
 * demo: a private daemon in a temporary folder, a scripted agent, two clients on one session. One prompts, the other is
 * asked for the permission and gives it; both see the whole turn; the first one leaves and comes back without a hole.
 * Nothing is played: every line is printed when it came, and the exit code is 0 only if all of it happened.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "ctl/answer.h"
#include "ctl/find.h"
#include "ctl/follow.h"
#include "ctl/show.h"
#include "ctl/text.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DEMO_TIME 30000 /* ms for each step */
#define SESSION "demo"

struct party {
	const char *name;
	struct plenum *p;
	bool settled, result; /* it saw the decision, the end of the turn */
};

struct demo {
	char *plenumd, *agent; /* programs */
	char folder[100];
	char socket[PLENUM_SOCKET_PATH_SIZE];
	char file[192]; /* what the agent is to make */
	pid_t pid;      /* of the daemon; 0: none */
	int64_t start;
	struct party window, phone;
	struct speech_turn turn;
	bool asked, success;
};

static void PRINTF_LIKE(3, 4) tell(const struct demo *d, const char *who, const char *fmt, ...) {
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	printf("%6lld ms  %-7s ", (long long)(now_ms() - d->start), who);
	text_print(stdout, text, strlen(text));
	putchar('\n');
	fflush(stdout);
}

/* --- The daemon --------------------------------------------------------------------------------------------------- */

/* Find the programs and make the folder. */
static bool prepare(struct demo *d) {
	const char *base = getenv("TMPDIR");
	d->plenumd = find_own("plenumd", "");
	d->agent = find_own("plenum-fakeagent", "fakeagent/");
	if (!d->plenumd) ctl_say("plenumd: not found beside plenumctl or in PATH (install it)");
	if (!d->agent) ctl_say("plenum-fakeagent: not found beside plenumctl or in PATH (install it)");
	if (!d->plenumd || !d->agent) return false;
	snprintf(d->folder, sizeof d->folder, "%s/plenum-demo-XXXXXX",
			 base && *base == '/' && strlen(base) < 60 ? base : "/tmp");
	if (!mkdtemp(d->folder)) {
		ctl_say("temporary directory %s: %s (set TMPDIR to a directory where it can be made)", d->folder,
				strerror(errno));
		*d->folder = 0; /* there is nothing to remove */
		return false;
	}
	snprintf(d->socket, sizeof d->socket, "%s/s", d->folder);
	snprintf(d->file, sizeof d->file, "%s/made-by-the-agent", d->folder);
	return true;
}

/* The flags are those with which the real CLI is started. */
static const char config_text[] =
	"[daemon]\nstate_dir = %s/state\ndefault_profile = demo\n\n[profile demo]\ncwd = %s\ncommand = '%s' -p"
	" --input-format stream-json --output-format stream-json --verbose --permission-prompt-tool stdio"
	" --include-partial-messages --replay-user-messages --conversations '%s/conversations'\n";

/* In the child: becomes the daemon, or ends. */
static void exec_daemon(const struct demo *d, const char *config, int log) {
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGPIPE, SIG_DFL);
	unsetenv("PLENUM_SOCKET");
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	dup2(null, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	execl(d->plenumd, "plenumd", "--config", config, "--socket", d->socket, (char *)NULL);
	_exit(127);
}

static bool start_daemon(struct demo *d) {
	_cleanup_free_ char *config = str_printf("%s/plenum.conf", d->folder);
	_cleanup_free_ char *log_path = str_printf("%s/plenumd.log", d->folder);
	_cleanup_close_ int log = log_path ? open(log_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
	FILE *f = config && log >= 0 ? fopen(config, "we") : NULL;
	if (f) fprintf(f, config_text, d->folder, d->folder, d->agent, d->folder);
	if (!f || fclose(f) != 0) {
		ctl_say("%s: %s", d->folder, strerror(errno));
		return false;
	}
	fflush(stdout);
	d->pid = fork();
	if (d->pid == 0) exec_daemon(d, config, log);
	return d->pid > 0;
}

static void print_log(const struct demo *d) {
	_cleanup_free_ char *path = str_printf("%s/plenumd.log", d->folder);
	FILE *f = path ? fopen(path, "re") : NULL;
	char line[4096];
	while (f && fgets(line, sizeof line, f)) text_print(stderr, line, strlen(line));
	if (f) fclose(f);
}

static bool is_gone(struct demo *d, int *status) {
	if (waitpid(d->pid, status, WNOHANG) != d->pid) return false;
	d->pid = 0;
	return true;
}

static struct plenum *connect_when_up(struct demo *d) {
	int64_t deadline = now_ms() + DEMO_TIME;
	char why[256] = "";
	int status = 0;
	while (now_ms() < deadline && !is_gone(d, &status)) {
		struct plenum *p = plenum_open(d->socket, why, sizeof why);
		if (p) return p;
		poll(NULL, 0, 10);
	}
	ctl_say("the demo's daemon did not start: %s", why);
	print_log(d);
	return NULL;
}

/* True: it ended by itself, with 0. */
static bool end_daemon(struct demo *d) {
	int64_t deadline = now_ms() + DEMO_TIME;
	int status = -1;
	if (d->pid <= 0) return false;
	kill(d->pid, SIGTERM);
	while (!is_gone(d, &status)) {
		if (now_ms() > deadline) kill(d->pid, SIGKILL);
		poll(NULL, 0, 10);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* --- The turn ----------------------------------------------------------------------------------------------------- */

static int take_question(struct demo *d, struct party *who, const struct incoming *in) {
	const struct speech_decision yes = {.allow = true};
	struct speech_ask ask = {0};
	in->speech->read_ask(in, &ask);
	_cleanup_free_ char *tool = show_tool(ask.tool, ask.input, 200);
	d->asked = true;
	tell(d, who->name, "is asked for a permission: %s", tool ? tool : "?");
	tell(d, who->name, "answers: allow");
	enum plenum_result r = answer_post(who->p, in->speech, &ask, &yes);
	return r == PLENUM_OK ? CTL_OK : ctl_failed(who->p, r);
}

static int take_line(struct demo *d, struct party *who, const struct incoming *in) {
	struct span event = follow_event(in);
	struct speech_fact f;
	if (span_equals(event, PLENUM_EV_SETTLED)) {
		struct span by = span_member(in->notice, "by");
		_cleanup_free_ char *decision = span_dup(span_member(in->notice, "decision"), NULL);
		_cleanup_free_ char *name = span_dup(span_member(by, "name"), NULL);
		who->settled = true;
		tell(d, who->name, "learns: %s, decided by %s", decision ? decision : "?", name ? name : "?");
	}
	if (span_equals(event, PLENUM_EV_ERROR)) {
		follow_print_error(in);
		return CTL_REFUSED;
	}
	if (speech_find(in, SPEECH_ASK, &f)) return take_question(d, who, in);
	for (size_t at = 0; speech_next(in, &at, &f);) {
		_cleanup_free_ char *text = f.kind == SPEECH_TEXT ? span_dup(f.text, NULL) : NULL;
		if (text) tell(d, who->name, "reads: %.200s", text);
	}
	if (!speech_find(in, SPEECH_END, &f)) return CTL_GO;
	struct speech_turn turn = d->turn;
	bool good = in->speech->ends(&turn, in) || turn.ours;
	who->result = true;
	d->success = good && !f.bad;
	struct span how = span_content(f.name);
	tell(d, who->name, "sees the end of the turn: %.*s", (int)how.n, how.p ? how.p : "?");
	return CTL_GO;
}

static int drain(struct demo *d, struct party *who) {
	struct incoming in;
	enum plenum_result r;
	while ((r = follow_next(who->p, 0, &in)) == PLENUM_OK) {
		int code = take_line(d, who, &in);
		if (code != CTL_GO && code != CTL_OK) return code;
	}
	return r == PLENUM_TIMED_OUT ? CTL_GO : ctl_failed(who->p, r);
}

/* Both clients, until both saw the decision and the end. */
static int follow(struct demo *d) {
	int64_t deadline = now_ms() + DEMO_TIME;
	for (;;) {
		int code = drain(d, &d->window);
		if (code == CTL_GO) code = drain(d, &d->phone);
		if (code != CTL_GO) return code;
		if (d->window.settled && d->window.result && d->phone.settled && d->phone.result) return CTL_OK;
		struct pollfd fds[] = {{.fd = plenum_fd(d->window.p), .events = plenum_events(d->window.p, NULL)},
							   {.fd = plenum_fd(d->phone.p), .events = plenum_events(d->phone.p, NULL)}};
		int64_t left = deadline - now_ms();
		if (left > 0 && poll(fds, ARRAY_SIZE(fds), (int)left) != 0) continue;
		ctl_say("the demo waited %d s for the rest of the turn", DEMO_TIME / 1000);
		return CTL_TIMED_OUT;
	}
}

static int join(struct demo *d, struct party *who, json_t *members) {
	char why[256];
	if (!who->p) who->p = plenum_open(d->socket, why, sizeof why);
	if (!who->p) ctl_say("%s", why);
	json_object_set_new(members, "session", json_string(SESSION));
	json_object_set_new(members, "name", json_string(who->name));
	return ctl_ask(who->p, PLENUM_ATTACH, members, NULL);
}

static int play_turn(struct demo *d) {
	_cleanup_free_ char *prompt = str_printf("@text I make a file.@ @tool Bash {\"command\":\"touch %s\"}@", d->file);
	int code = join(d, &d->window, json_pack("{s:b}", "approve", 0));
	if (code != CTL_OK) return code;
	tell(d, "window", "makes the session \"" SESSION "\"; its agent starts");
	code = join(d, &d->phone, json_pack("{s:s,s:b}", "role", "observer", "approve", 1));
	if (code != CTL_OK) return code;
	tell(d, "phone", "joins it, as an observer that may approve");
	if (!prompt || plenum_prompt(d->window.p, prompt, strlen(prompt), d->turn.uuid) != PLENUM_OK) return CTL_CUT;
	tell(d, "window", "prompts: %s", prompt);
	code = follow(d);
	if (code == CTL_OK)
		tell(d, "demo", "(the scripted agent says of each tool whether it failed; [false]: it did not)");
	return code;
}

/* The window was closed; what it gets when it comes back. Counted up to the result, which was the last that it saw. */
static int play_return(struct demo *d) {
	struct incoming in;
	struct speech_fact f;
	size_t lines = 0;
	plenum_close(d->window.p);
	d->window.p = NULL;
	tell(d, "window", "is closed; the session goes on without it");
	int code = join(d, &d->window, json_pack("{s:s}", "replay", "all"));
	if (code != CTL_OK) return code;
	for (;;) {
		enum plenum_result r = follow_next(d->window.p, DEMO_TIME, &in);
		if (r != PLENUM_OK) return ctl_failed(d->window.p, r);
		lines++;
		if (speech_find(&in, SPEECH_END, &f)) break;
	}
	tell(d, "window", "is back and has the whole turn again: %zu lines", lines);
	return CTL_OK;
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static int play(struct demo *d) {
	struct stat st;
	if (!start_daemon(d)) return CTL_INTERNAL;
	d->window.p = connect_when_up(d);
	if (!d->window.p) return CTL_NO_DAEMON;
	tell(d, "daemon", "listens on %s", d->socket);
	int code = play_turn(d);
	if (code == CTL_OK) code = play_return(d);
	if (code != CTL_OK) return code;
	bool made = stat(d->file, &st) == 0;
	tell(d, "demo", made ? "the file is there: %s" : "the file is NOT there: %s", d->file);
	return made && d->asked && d->success ? CTL_OK : CTL_REFUSED;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
	(void)st, (void)type, (void)at;
	return remove(path);
}

static void demo_end(struct demo *d) {
	plenum_close(d->window.p);
	plenum_close(d->phone.p);
	if (*d->folder && nftw(d->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0)
		ctl_say("%s: cannot be removed", d->folder);
	free(d->plenumd);
	free(d->agent);
}

int cmd_demo(struct ctl *c, int argc, char **argv) {
	struct demo d = {.window = {.name = "window"}, .phone = {.name = "phone"}};
	int code = ctl_options(c, NULL, &argc, &argv, 0, 0);
	if (code != CTL_GO) return code;
	d.start = now_ms();
	if (!prepare(&d)) {
		demo_end(&d);
		return CTL_NO_DAEMON;
	}
	code = play(&d);
	bool started = d.pid > 0, ended = end_daemon(&d);
	if (started) tell(&d, "daemon", ended ? "ended, and left nothing running" : "did NOT end well");
	if (code == CTL_OK && !ended) code = CTL_REFUSED;
	if (code != CTL_OK) print_log(&d);
	demo_end(&d);
	if (code != CTL_OK) return code;
	printf("\nAll of that was real, with a scripted agent in the place of the CLI. With the real one:\n\n"
		   "  systemctl --user enable --now plenumd.socket      (or run `plenumd` in a terminal)\n"
		   "  plenumctl doctor                                  says what is missing\n"
		   "  plenumctl send work \"what is in this directory?\"     one prompt\n"
		   "  plenumctl chat work                               a conversation, in as many terminals as you like\n"
		   "  plenumctl tail work                               only watch\n");
	return CTL_OK;
}
