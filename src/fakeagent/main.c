/* SPDX-License-Identifier: MIT
 *
 * plenum-fakeagent: an agent with a scripted model that speaks stream-json like the agent CLI. One process is one agent
 * in one thread, so each file keeps its own static state. The files have an order (meson.build): a file calls only
 * earlier files. Source of the behaviour: docs/protocol-facts.md (the CLI 2.1.332, measured).
 */
#include "base/fd.h"
#include "base/str.h"
#include "fakeagent/acp.h"
#include "fakeagent/appserver.h"
#include "fakeagent/backlog.h"
#include "fakeagent/conversation.h"
#include "fakeagent/dialogue.h"
#include "fakeagent/faults.h"
#include "fakeagent/flags.h"
#include "fakeagent/frames.h"
#include "fakeagent/input.h"
#include "fakeagent/out.h"
#include "fakeagent/phase.h"
#include "fakeagent/policy.h"
#include "fakeagent/poller.h"
#include "fakeagent/query.h"
#include "fakeagent/scenario.h"

#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <time.h>

static int usage_error(char *text) {
	fprintf(stderr, "error: %s\n", text ? text : "wrong usage");
	free(text);
	return 1;
}

/* Set scenario, faults and mode. */
static bool configure(char **error) {
	const struct flags *f = flags();
	size_t i;
	json_t *fault;
	policy_init();
	conversation_set_model(f->model);
	if (f->scenario && !scenario_load(f->scenario, error)) return false;
	json_array_foreach(f->faults, i, fault) {
		if (faults_set(json_string_value(fault))) continue;
		*error = str_printf("no such fault: %s (plenum-fakeagent(1) lists them)", json_string_value(fault));
		return false;
	}
	const char *mode = f->mode ? f->mode : scenario_mode();
	if (!mode || !policy_set_mode(mode)) return true;
	*error = str_printf("option '--permission-mode <mode>' argument '%s' is invalid", mode);
	return false;
}

/* Return true if the process may continue. */
static bool open_conversation(void) {
	enum conversation_start r = conversation_start();
	if (r == CONVERSATION_IN_USE) fprintf(stderr, "Error: Session ID %s is already in use.\n", flags()->session_id);
	if (r == CONVERSATION_UNKNOWN) {
		_cleanup_free_ char *text = str_printf("No conversation found with session ID: %s", flags()->resume);
		fprintf(stderr, "%s\n", text);
		frames_failed_start(text);
	}
	return r == CONVERSATION_OK;
}

static void on_signal(struct watch *w, int events) {
	struct signalfd_siginfo s;
	while (events && fd_read(w->fd, &s, sizeof s) == (ssize_t)sizeof s) {
		if (s.ssi_signo == SIGTERM && !faults_has(FAULT_ignore_sigterm)) exit(143);
		if (s.ssi_signo != SIGINT) continue;
		if (!phase_running()) exit(0);
		phase_abort(PHASE_SIGNAL);
		query_end_turn();
	}
}

static int run(void) {
	static struct watch signals = {.act = on_signal};
	long delay = faults_get(FAULT_start_delay);
	if (faults_get(FAULT_start_exit) >= 0) {
		fputs("plenum-fakeagent: told to fail at the start\n", stderr);
		return (int)faults_get(FAULT_start_exit);
	}
	out_init();
	if (!open_conversation()) return 1;
	if (delay > 0) nanosleep(&(struct timespec){delay / 1000, delay % 1000 * 1000000}, NULL);
	signal(SIGPIPE, SIG_IGN);
	signals.fd = fd_signals((const int[]){SIGTERM, SIGINT, 0});
	poller_add(&signals);
	backlog_init();
	input_init();
	if (flags()->acp) acp_start();
	if (flags()->app_server) appserver_start();
	for (;;) {
		if (!backlog_empty())
			dialogue_run_turn();
		else if (input_ended())
			return dialogue_failed() ? 1 : 0;
		else
			poller_round(-1);
	}
}

static const char *wrong_format(const struct flags *f) {
	if (f->stream_out && !f->verbose)
		return "Error: When using --print, --output-format=stream-json requires --verbose";
	if (f->stream_in && !f->stream_out) return "Error: --input-format=stream-json requires output-format=stream-json.";
	if (f->stream_in) return NULL;
	return "plenum-fakeagent: only --input-format stream-json --output-format stream-json is spoken; see --help";
}

int main(int argc, char **argv) {
	char *error = NULL;
	(void)argc;
	fd_fill_standard();
	if (!flags_read(argv, &error)) return usage_error(error);
	if (flags()->version) {
		printf("%s (plenum-fakeagent " PLENUM_VERSION ")\n", flags()->version_name);
		return 0;
	}
	if (flags()->help) {
		flags_usage();
		return 0;
	}
	const char *wrong = wrong_format(flags());
	if (wrong) {
		fprintf(stderr, "%s\n", wrong);
		return 1;
	}
	return configure(&error) ? run() : usage_error(error);
}
