/* SPDX-License-Identifier: MIT
 *
 * plenum-fakeagent: an agent with a scripted model that speaks stream-json as the agent CLI does.
 */
#include "fakeagent/agent.h"

#include "base/fd.h"
#include "base/str.h"
#include "fakeagent/asks.h"
#include "fakeagent/frames.h"
#include "fakeagent/permission.h"
#include "fakeagent/pump.h"
#include "fakeagent/scenario.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void agent_exit(struct agent *a, int code) {
	struct proc *p;
	LIST_FOR_EACH (p, &a->procs, struct proc, node) proc_kill(p);
	if (a->faults.no_newline && a->out.wait.len) a->out.wait.len--;
	out_drain(&a->out);
	exit(code);
}

void agent_die(struct agent *a, const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	agent_exit(a, 1);
}

static int usage_error(char *text) {
	fprintf(stderr, "error: %s\n", text ? text : "wrong usage");
	free(text);
	return 1;
}

static void watch_signals(struct agent *a) {
	signal(SIGPIPE, SIG_IGN);
	a->sigfd = fd_signals((const int[]){SIGTERM, SIGINT, 0});
}

static void agent_init(struct agent *a, struct options *o) {
	*a = (struct agent){.opt = o, .sigfd = -1};
	list_init(&a->asks);
	list_init(&a->timers);
	list_init(&a->procs);
	faults_init(&a->faults);
	a->queue = js_need(json_array());
	a->seen = js_need(json_object());
	a->hooks = js_need(json_object());
	a->servers = js_need(json_object());
	a->background = js_need(json_object());
	a->rules = js_need(json_pack("{s:O,s:O,s:[]}", "allow", o->allowed, "deny", o->disallowed, "ask"));
	a->model = str_dup(o->model ? o->model : "fake-model");
	a->mode = str_dup("default");
	out_init(&a->out, 1, &a->faults);
	input_init(&a->in, 0, &a->faults);
}

static void agent_free(struct agent *a) {
	json_decref(a->queue);
	json_decref(a->seen);
	json_decref(a->hooks);
	json_decref(a->servers);
	json_decref(a->background);
	json_decref(a->rules);
	json_decref(a->dialogs);
	free(a->model);
	free(a->mode);
	scenario_free(a->scenario);
	conversation_free(&a->conv);
	out_free(&a->out);
	input_free(&a->in);
}

static bool set_faults(struct agent *a, char **error) {
	size_t i;
	json_t *fault;
	json_array_foreach(a->opt->faults, i, fault) {
		if (faults_set(&a->faults, json_string_value(fault))) continue;
		*error = str_printf("no such fault: %s (plenum-fakeagent(1) lists them)", json_string_value(fault));
		return false;
	}
	return true;
}

static bool set_mode(struct agent *a, char **error) {
	const char *code;
	if (!a->opt->mode || permission_mode(a, a->opt->mode, &code)) return true;
	*error = str_printf("option '--permission-mode <mode>' argument '%s' is invalid", a->opt->mode);
	return false;
}

static bool configure(struct agent *a, char **error) {
	if (a->opt->scenario) {
		a->scenario = scenario_load(a->opt->scenario, error);
		if (!a->scenario || !scenario_apply(a, error)) return false;
	}
	return set_faults(a, error) && set_mode(a, error);
}

/* True: the process may go on. */
static bool open_conversation(struct agent *a) {
	enum conversation_start r = conversation_start(&a->conv, a->opt);
	if (r == CONVERSATION_OK) {
		conversation_answered(&a->conv, a->seen);
		return true;
	}
	if (r == CONVERSATION_IN_USE) {
		fprintf(stderr, "Error: Session ID %s is already in use.\n", a->opt->session_id);
		return false;
	}
	char id[37];
	js_uuid(id);
	a->conv.id = str_dup(id);
	_cleanup_free_ char *text = str_printf("No conversation found with session ID: %s", a->opt->resume);
	fprintf(stderr, "%s\n", text);
	frames_failed_start(a, text);
	return false;
}

static void start_late(const struct agent *a) {
	long ms = a->faults.start_delay;
	if (ms <= 0) return;
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

int agent_run(struct agent *a) {
	for (;;) {
		if (json_array_size(a->queue)) {
			turn_run(a);
			if (a->quit) agent_exit(a, 0);
		} else if (a->in.eof && !a->in.ready && !a->faults.ignore_eof) {
			return a->last_error ? 1 : 0;
		} else {
			pump(a, -1);
		}
	}
}

static int run(struct agent *a) {
	if (a->faults.start_exit >= 0) {
		fputs("plenum-fakeagent: told to fail at the start\n", stderr);
		return (int)a->faults.start_exit;
	}
	if (!open_conversation(a)) {
		out_drain(&a->out);
		return 1;
	}
	start_late(a);
	watch_signals(a);
	agent_exit(a, agent_run(a));
}

static int check_formats(const struct options *o) {
	if (o->stream_out && !o->verbose) {
		fputs("Error: When using --print, --output-format=stream-json requires --verbose\n", stderr);
		return 1;
	}
	if (o->stream_in && !o->stream_out) {
		fputs("Error: --input-format=stream-json requires output-format=stream-json.\n", stderr);
		return 1;
	}
	if (o->stream_in) return 0;
	fputs("plenum-fakeagent: only --input-format stream-json --output-format stream-json is spoken; see --help\n",
		  stderr);
	return 1;
}

/* Answers that need no agent; -1: none of them. */
static int answer_early(const struct options *o) {
	if (o->version) {
		printf("%s (plenum-fakeagent " PLENUM_VERSION ")\n", o->version_name);
		return 0;
	}
	if (o->help) {
		options_usage();
		return 0;
	}
	return check_formats(o) ? 1 : -1;
}

static int run_agent(struct options *o) {
	struct agent a;
	char *error = NULL;
	agent_init(&a, o);
	int code = configure(&a, &error) ? run(&a) : usage_error(error);
	agent_free(&a);
	return code;
}

int main(int argc, char **argv) {
	struct options o;
	char *error = NULL;
	fd_fill_standard();
	int code = options_read(&o, argc, argv, &error) ? answer_early(&o) : usage_error(error);
	if (code < 0) code = run_agent(&o);
	options_free(&o);
	return code;
}
