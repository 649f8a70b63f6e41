/* SPDX-License-Identifier: MIT
 *
 * plenumctl: a person's and a script's tool for plenumd. Source: docs/contract.md 9.
 */
#include "base/fd.h"
#include "ctl/ctl.h"

#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct verb verbs[] = {
	{"ls", "[--long | --names]", "Lists the sessions.", cmd_ls},
	{"new", "[SESSION] [--profile NAME] [--cwd DIRECTORY] ... [-- ARGS]", "Makes a session and prints its name.",
	 cmd_new},
	{"send", "SESSION TEXT|-", "Sends one prompt, prints the answer as it comes; the exit code says how it ended.",
	 cmd_send},
	{"chat", "[SESSION]", "Talks to a session: prompts, streaming answers, permission questions.", cmd_chat, true},
	{"tail", "SESSION", "Watches a session and writes nothing to it.", cmd_tail},
	{"attach", "SESSION", "Connects stdin and stdout to a session: the agent's own JSON lines.", cmd_attach},
	{"pending", "[SESSION]", "Lists the requests that wait for an answer.", cmd_pending},
	{"allow", "[SESSION [REQUEST [NAME=VALUE...]]]", "Allows a request that waits.", cmd_allow},
	{"deny", "[SESSION [REQUEST] [MESSAGE...]]", "Denies a request that waits.", cmd_deny},
	{"interrupt", "SESSION", "Interrupts the turn that runs.", cmd_interrupt},
	{"wait", "SESSION [idle] [asking] [ended]", "Waits until a session is idle, asks or has ended.", cmd_wait},
	{"mode", "SESSION [MODE]", "Prints or sets the permission mode of a session.", cmd_mode},
	{"model", "SESSION [MODEL]", "Prints or sets the model of a session.", cmd_model},
	{"fork", "SESSION NEW", "Makes a session that goes on from a copy of another one's conversation.", cmd_fork},
	{"rename", "SESSION NEW", "Gives a session that sleeps another name.", cmd_rename},
	{"sleep", "SESSION [--force]", "Ends the session's agent and keeps the conversation; a prompt wakes it.",
	 cmd_sleep},
	{"stop", "SESSION [--kill] [--forget]", "Stops a session.", cmd_stop},
	{"clear-lost", "SESSION|--all", "Goes on without guards that could not be read.", cmd_clear_lost},
	{"queue", "SESSION", "Shows the prompts that wait for another client's turn to end.", cmd_queue},
	{"status", "[SESSION]", "Shows the daemon, or one session, with its clients.", cmd_status},
	{"top", "[--once]", "Shows sessions and clients, continuously.", cmd_top},
	{"events", "[SESSION]", "Prints each event of the daemon, or of one session, as it happens.", cmd_events},
	{"log", "[--daemon] [--decisions] [--follow] [SESSION]",
	 "Prints the daemon's log, or the last stderr lines of a session's agent.", cmd_log},
	{"metrics", "", "Prints the daemon's counters.", cmd_metrics},
	{"doctor", "", "Looks for what keeps things from working, and says what to do.", cmd_doctor},
	{"reload", "", "Has the daemon read its configuration again.", cmd_reload},
	{"upgrade", "", "Has the installed plenumd take over from the running one; nothing is lost.", cmd_upgrade},
	{"shutdown", "", "Ends the daemon; its sessions sleep until the next one starts.", cmd_shutdown},
	{"demo", "", "Shows two clients on one session of a scripted agent; needs no key and no network.", cmd_demo},
};

static void print_overview(FILE *out) {
	fputs("usage: plenumctl [--socket PATH] [--json] VERB [ARGUMENTS]\n\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].about);
	fputs("\n`plenumctl VERB --help` says more about one; `plenumctl demo` shows what this is for; plenumctl(1) has "
		  "all.\n",
		  out);
}

/* The options before the verb. CTL_GO or an exit code. */
static int leading_options(struct ctl *c, int argc, char **argv) {
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{0},
	};
	int got;
	while ((got = getopt_long(argc, argv, "+hV", options, NULL)) != -1) switch (got) {
		case 's':
			c->socket = optarg;
			break;
		case 'j':
			c->json = true;
			break;
		case 'h':
			print_overview(stdout);
			return CTL_OK;
		case 'V':
			printf("plenumctl %s\n", plenum_version());
			return CTL_OK;
		default:
			ctl_say("`plenumctl --help` lists the options and the verbs");
			return CTL_USAGE;
		}
	return CTL_GO;
}

static int run(int argc, char **argv) {
	static char option[] = "--help";
	struct ctl c = {0};
	int code = leading_options(&c, argc, argv);
	if (code != CTL_GO) return code;
	argc -= optind;
	argv += optind;
	bool help = argc && strcmp(argv[0], "help") == 0; /* help VERB is VERB --help */
	if (argc == 0 || (help && argc == 1)) {
		print_overview(help ? stdout : stderr);
		return help ? CTL_OK : CTL_USAGE;
	}
	if (help) argv++;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i].name, argv[0]) == 0) c.verb = &verbs[i];
	if (!c.verb) {
		ctl_say("%s: no such verb (`plenumctl --help` lists them)", argv[0]);
		return CTL_USAGE;
	}
	return help ? c.verb->run(&c, 2, (char *[]){argv[0], option, NULL}) : c.verb->run(&c, argc, argv);
}

int main(int argc, char **argv) {
	signal(SIGPIPE, SIG_IGN);
	fd_fill_standard();
	setlocale(LC_CTYPE, "C.UTF-8"); /* for wcwidth(3): all text is UTF-8, whatever LANG says */
	int code = run(argc, argv);
	/* An answer that did not reach its reader is no success (a full disk), though all that came after it did. */
	bool lost = fflush(stdout) != 0 || ferror(stdout);
	if (lost && code == CTL_OK) code = CTL_CUT;
	return code;
}
