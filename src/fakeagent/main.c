/* SPDX-License-Identifier: MIT
 *
 * plenum-fakeagent: an agent with a scripted model that speaks stream-json like the agent CLI. One process is one agent
 * in one thread: agent.h has the state that the files share. The files have an order (meson.build): a file calls only
 * earlier files. Source of the behaviour: docs/protocol-facts.md (the CLI 2.1.332, measured). Here are the start, the
 * lines on stdin, checked as by the CLI, and the loop.
 */
#include "fakeagent/acp.h"
#include "fakeagent/appserver.h"
#include "fakeagent/backlog.h"
#include "fakeagent/control.h"
#include "fakeagent/conversation.h"
#include "fakeagent/dialogue.h"
#include "fakeagent/model.h"
#include "fakeagent/out.h"
#include "fakeagent/permission.h"
#include "fakeagent/query.h"
#include "fakeagent/rpc.h"
#include "wire/lines.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <time.h>

#define MAX_LINE ((size_t)1 << 30)

static const char USAGE[] =
	"usage: plenum-fakeagent -p --input-format stream-json --output-format stream-json --verbose [FLAG...]\n"
	"       plenum-fakeagent --acp [FLAG...]\n"
	"       plenum-fakeagent app-server [FLAG...]\n"
	"\n"
	"Speaks the stream-json protocol as the agent CLI does, over a scripted model.\n"
	"Its own flags; see plenum-fakeagent(1) for the directives that a prompt may hold and for scenarios:\n"
	"  --scenario FILE       what the model answers to what\n"
	"  --fault NAME[=N],...  misbehave on purpose\n"
	"  --compat VERSION      2.1.332 (default) or 2.1.197\n"
	"  --conversations DIR   where conversations are kept for --resume";

static bool eof;
static bool ready;         /* the last read may have left lines */
static long handled;       /* lines */
static bool since, shared; /* a line since the last read; the unfinished line began in a read with another line */
static struct lines_pool pool;
static struct lines cut;

/* ---- a line ---------------------------------------------------------------------------------------------------- */

/* End like the CLI at an unacceptable line. */
__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	exit(1);
}

static void take(json_t *line) {
	const char *type = js_get(line, "type"), *role = js_get(line, "message.role");
	const json_t *request = json_object_get(line, "request");
	if (js_same(type, "user") && !js_same(role, "user"))
		die("Error: Expected message role 'user', got '%s'\n", role ? role : "undefined");
	if (js_same(type, "control_request") && (!request || json_is_null(request)))
		die("Error: Missing request on control_request\n");
	if (js_same(type, "user")) backlog_add(line);
	if (js_same(type, "control_request")) control_take(line);
	if (js_same(type, "control_response")) query_answer(line);
}

static void handle(const char *p, size_t n) {
	json_t *line;
	while (n && strchr(" \t\r\n", p[n - 1])) n--;
	while (n && strchr(" \t\r\n", *p)) p++, n--;
	if (!n) return;
	enum js_result r = js_parse(p, n, &line);
	bool first = js_is(line, "request.subtype", "initialize") || agent.initialized;
	if (agent.rpc) {
		rpc_take(r, line);
	} else if (r == JS_BAD || json_is_null(line)) {
		die("Error parsing streaming input line (type=unknown, %zu chars): %sError\n", n, line ? "Type" : "Syntax");
	} else if (r == JS_OK) {
		if (agent_flag("await-initialize") && !first)
			die("Error: --await-initialize requires the initialize control request as the first stdin line, and the "
				"first line is a different message.\n");
		take(line);
	}
	json_decref(line);
}

/* ---- stdin ----------------------------------------------------------------------------------------------------- */

/* Some CLI versions lost a long line if one read had its beginning and a short line. */
static void check_split(size_t n) {
	long most = agent_fault("split");
	if ((since || shared) && most >= 0 && n > (size_t)most)
		die("Error parsing streaming input line (type=unknown, %zu chars): SyntaxError\n", n);
	since = true;
	shared = false;
}

static bool next_line(struct chunk *line) {
	size_t size;
	enum lines_result r;
	while ((r = lines_next(&cut, line, &size)) == LINES_LONG) chunk_drop(line);
	if (r == LINES_OOM) js_no_memory();
	return r == LINES_LINE || (eof && lines_rest(&cut, line));
}

static bool is_deaf(void) {
	long most = agent_fault("deaf");
	return most >= 0 && handled >= most;
}

/* Outside a turn one line is handled at a time, so that the first of several prompts starts its turn and the others
 * find it running. */
static void handle_all(void) {
	struct chunk line;
	while (ready && !is_deaf() && (agent.running || backlog_empty())) {
		ready = next_line(&line);
		if (!ready) {
			shared = shared || (since && lines_held(&cut) > 0);
			since = false;
			break;
		}
		handled++;
		check_split(line.len);
		handle(line.data, line.len);
		chunk_drop(&line);
	}
	if (!eof || ready || agent_has("ignore-eof")) return;
	if (agent.rpc) exit(0); /* such an agent ends at once, and an open permission with it */
	query_end_all(NULL, QUERY_CLOSED);
}

static int prepare(void) {
	if (is_deaf()) return 0;
	return ready ? POLLER_NOW : eof ? 0 : POLLIN;
}

static void on_input(struct watch *w, int events) {
	size_t room;
	if (events) {
		char *to = lines_space(&cut, &room);
		if (!to) js_no_memory();
		ssize_t n = fd_read(w->fd, to, room);
		if (n > 0) lines_commit(&cut, (size_t)n);
		ready = n >= 0 || errno != EAGAIN;
		eof = n <= 0 && ready;
	}
	handle_all();
}

static void on_signal(struct watch *w, int events) {
	struct signalfd_siginfo s;
	while (events && fd_read(w->fd, &s, sizeof s) == (ssize_t)sizeof s) {
		if (s.ssi_signo == SIGTERM && !agent_has("ignore-sigterm")) exit(143);
		if (s.ssi_signo != SIGINT) continue;
		if (!agent.running) exit(0);
		query_end_turn(ABORT_SIGNAL);
	}
}

/* ---- start ----------------------------------------------------------------------------------------------------- */

/* Set scenario, faults and mode. */
static bool configure(char **error) {
	permission_init();
	conversation_set_model(agent_flag("model"));
	if (agent_flag("scenario") && !model_load(agent_flag("scenario"), error)) return false;
	if (!agent_set_faults(agent_list("fault"), error)) return false;
	const char *wanted = agent_flag("permission-mode"),
			   *mode = wanted ? wanted : js_get(agent.script, "permission_mode");
	if (mode && permission_set_mode(mode))
		*error = str_printf("option '--permission-mode <mode>' argument '%s' is invalid", mode);
	return !*error;
}

static int run(void) {
	static struct watch signals = {.act = on_signal}, input = {.fd = 0, .prepare = prepare, .act = on_input};
	long delay = agent_fault("start-delay"), code = agent_fault("start-exit");
	if (code >= 0) {
		fputs("plenum-fakeagent: start-exit: failing at the start\n", stderr);
		return (int)code;
	}
	out_init();
	if (!conversation_start()) return 1;
	if (delay > 0) nanosleep(&(struct timespec){delay / 1000, delay % 1000 * 1000000}, NULL);
	signal(SIGPIPE, SIG_IGN);
	signals.fd = fd_signals((const int[]){SIGTERM, SIGINT, 0});
	poller_add(&signals);
	backlog_init();
	lines_init(&cut, &pool, MAX_LINE);
	poller_add(&input);
	if (agent.rpc) (agent_flag("acp") ? acp_start : appserver_start)();
	for (;;) {
		if (!backlog_empty())
			dialogue_run_turn();
		else if (eof && !ready && !agent_has("ignore-eof"))
			return agent.failed ? 1 : 0;
		else
			poller_round(-1);
	}
}

static const char *wrong_format(void) {
	bool in = js_same(agent_flag("input-format"), "stream-json");
	bool out = js_same(agent_flag("output-format"), "stream-json");
	if (out && !agent_flag("verbose"))
		return "Error: When using --print, --output-format=stream-json requires --verbose";
	if (in && !out) return "Error: --input-format=stream-json requires output-format=stream-json.";
	if (in) return NULL;
	return "plenum-fakeagent: only --input-format stream-json --output-format stream-json is spoken; see --help";
}

int main(int argc, char **argv) {
	char *error = NULL;
	(void)argc;
	fd_fill_standard();
	bool valid = agent_read_flags(argv, &error), help = agent_flag("help"), version = agent_flag("version");
	const char *wrong = valid && !agent.rpc ? wrong_format() : NULL;
	if (valid && version)
		printf("%s (plenum-fakeagent " PLENUM_VERSION ")\n", agent.compat);
	else if (valid && help)
		puts(USAGE);
	else if (wrong)
		fprintf(stderr, "%s\n", wrong);
	else if (valid && configure(&error))
		return run();
	else
		fprintf(stderr, "error: %s\n", error ? error : "wrong usage");
	free(error);
	return !valid || !(version || help);
}
