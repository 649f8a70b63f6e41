/* SPDX-License-Identifier: MIT
 *
 * plenum-fakeagent: an agent with a scripted model that speaks stream-json like the agent CLI. One process is one agent
 * in one thread: agent.h has the state that the files share. The files have an order (meson.build): a file calls only
 * earlier files. Source of the behaviour: docs/protocol-facts.md (the CLI 2.1.332, measured).
 */
#include "base/fd.h"
#include "base/str.h"
#include "fakeagent/acp.h"
#include "fakeagent/appserver.h"
#include "fakeagent/backlog.h"
#include "fakeagent/conversation.h"
#include "fakeagent/dialogue.h"
#include "fakeagent/frames.h"
#include "fakeagent/input.h"
#include "fakeagent/out.h"
#include "fakeagent/policy.h"
#include "fakeagent/poller.h"
#include "fakeagent/query.h"
#include "fakeagent/scenario.h"

#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <time.h>

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

/* Set scenario, faults and mode. */
static bool configure(char **error) {
	policy_init();
	conversation_set_model(agent.wanted_model);
	if (agent.scenario && !scenario_load(agent.scenario, error)) return false;
	JS_EACH (fault, agent.faults) {
		if (agent_set_fault(json_string_value(fault.v))) continue;
		*error = str_printf("no such fault: %s (plenum-fakeagent(1) lists them)", json_string_value(fault.v));
		return false;
	}
	const char *mode = agent.wanted_mode ? agent.wanted_mode : json_string_value(scenario_get("permission_mode"));
	if (mode && policy_set_mode(mode))
		*error = str_printf("option '--permission-mode <mode>' argument '%s' is invalid", mode);
	return !*error;
}

/* Return true if the process may continue. */
static bool open_conversation(void) {
	enum conversation_start r = conversation_start();
	if (r == CONVERSATION_IN_USE) fprintf(stderr, "Error: Session ID %s is already in use.\n", agent.session_id);
	if (r == CONVERSATION_UNKNOWN) {
		_cleanup_free_ char *text = str_printf("No conversation found with session ID: %s", agent.resume);
		fprintf(stderr, "%s\n", text);
		frames_failed_start(text);
	}
	return r == CONVERSATION_OK;
}

static void on_signal(struct watch *w, int events) {
	struct signalfd_siginfo s;
	while (events && fd_read(w->fd, &s, sizeof s) == (ssize_t)sizeof s) {
		if (s.ssi_signo == SIGTERM && !agent_has(FAULT_ignore_sigterm)) exit(143);
		if (s.ssi_signo != SIGINT) continue;
		if (!agent.running) exit(0);
		query_end_turn(ABORT_SIGNAL);
	}
}

static int run(void) {
	static struct watch signals = {.act = on_signal};
	long delay = agent.fault[FAULT_start_delay];
	if (agent.fault[FAULT_start_exit] >= 0) {
		fputs("plenum-fakeagent: told to fail at the start\n", stderr);
		return (int)agent.fault[FAULT_start_exit];
	}
	out_init();
	if (!open_conversation()) return 1;
	if (delay > 0) nanosleep(&(struct timespec){delay / 1000, delay % 1000 * 1000000}, NULL);
	signal(SIGPIPE, SIG_IGN);
	signals.fd = fd_signals((const int[]){SIGTERM, SIGINT, 0});
	poller_add(&signals);
	backlog_init();
	input_init();
	if (agent.acp) acp_start();
	if (agent.app_server) appserver_start();
	for (;;) {
		if (!backlog_empty())
			dialogue_run_turn();
		else if (input_ended())
			return dialogue_failed() ? 1 : 0;
		else
			poller_round(-1);
	}
}

static const char *wrong_format(void) {
	if (agent.stream_out && !agent.verbose)
		return "Error: When using --print, --output-format=stream-json requires --verbose";
	if (agent.stream_in && !agent.stream_out)
		return "Error: --input-format=stream-json requires output-format=stream-json.";
	if (agent.stream_in) return NULL;
	return "plenum-fakeagent: only --input-format stream-json --output-format stream-json is spoken; see --help";
}

int main(int argc, char **argv) {
	char *error = NULL;
	(void)argc;
	fd_fill_standard();
	bool valid = agent_read_flags(argv, &error);
	const char *wrong = valid ? wrong_format() : NULL;
	if (valid && agent.version)
		printf("%s (plenum-fakeagent " PLENUM_VERSION ")\n", agent.compat);
	else if (valid && agent.help)
		puts(USAGE);
	else if (wrong)
		fprintf(stderr, "%s\n", wrong);
	else if (valid && configure(&error))
		return run();
	else
		fprintf(stderr, "error: %s\n", error ? error : "wrong usage");
	free(error);
	return !valid || !(agent.version || agent.help);
}
