/* SPDX-License-Identifier: MIT
 *
 * plenumd: options and exit status. See plenumd(8).
 */
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "config/config.h"
#include "errands.h"
#include "server.h"

#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sysexits.h>
#include <unistd.h>

static const struct option options[] = {
	{"config", required_argument, NULL, 'c'},
	{"socket", required_argument, NULL, 's'},
	{"check", no_argument, NULL, 'k'},
	{"log-format", required_argument, NULL, 'f'},
	{"log-level", required_argument, NULL, 'l'},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{"resume-from", required_argument, NULL, 'r'},   /* internal, for an upgrade in place: the descriptor */
	{"check-upgrade", required_argument, NULL, 'u'}, /* of the state; the same, but only check it */
	{NULL, 0, NULL, 0},
};

struct command_line {
	struct server_options server;
	bool check, json;
	enum log_level level;
};

static int usage(FILE *to) {
	fputs("usage: plenumd [--config FILE] [--socket PATH] [--check] [--log-format text|json] [--log-level LEVEL]\n"
		  "       plenumd --version | --help\n"
		  "Keeps one agent child a session and lets local clients share it. See plenumd(8).\n",
		  to);
	return to == stdout ? EX_OK : EX_USAGE;
}

static int wrong(const char *option, const char *word, const char *cause) {
	fprintf(stderr, "plenumd: %s %s: %s\n", option, word, cause);
	return usage(stderr);
}

static int check_config(const char *file) {
	struct errors errors = {0};
	struct buf text = BUF_INIT(CONFIG_MAX);
	config_read(&text, file);
	struct settings *s = config_load(&text, &errors);
	buf_free(&text);
	if (!s) {
		for (size_t i = 0; i < errors.n; i++) fprintf(stderr, "plenumd: %s\n", errors_text(&errors, i));
		errors_free(&errors);
		return EX_CONFIG;
	}
	settings_unref(s);
	puts("the configuration is good");
	return EX_OK;
}

/* Make the path absolute: an errand has another working directory. A path that becomes too long is unchanged. */
static const char *absolute(const char *path) {
	static char whole[PATH_MAX];
	if (*path == '/' || !getcwd(whole, sizeof whole)) return path;
	size_t n = strlen(whole);
	return (size_t)snprintf(whole + n, sizeof whole - n, "/%s", path) < sizeof whole - n ? whole : path;
}

/* Return -1 to continue, else the exit status. */
static int parse(int argc, char **argv, struct command_line *cl) {
	uint64_t fd;
	for (int o; (o = getopt_long(argc, argv, "hV", options, NULL)) != -1;) {
		switch (o) {
		case 'c':
			cl->server.config = absolute(optarg);
			break;
		case 's':
			cl->server.socket = optarg;
			break;
		case 'k':
			cl->check = true;
			break;
		case 'f':
			cl->json = strcmp(optarg, "json") == 0;
			if (!cl->json && strcmp(optarg, "text") != 0) return wrong("--log-format", optarg, "not text or json");
			break;
		case 'l':
			if (!log_level_parse(optarg, &cl->level))
				return wrong("--log-level", optarg, "not error, warn, info or debug");
			break;
		case 'r':
		case 'u':
			if (!str_u64(optarg, 3, INT32_MAX, &fd)) return usage(stderr);
			cl->server.resume = (int)fd;
			cl->server.check = o == 'u';
			break;
		case 'V':
			puts("plenumd " PLENUM_VERSION);
			return EX_OK;
		case 'h':
			return usage(stdout);
		default:
			return usage(stderr);
		}
	}
	return optind < argc ? wrong("unexpected", "argument", argv[optind]) : -1;
}

int main(int argc, char **argv) {
	struct command_line cl = {.server = {.argv = argv, .resume = -1}, .level = LOG_INFO};
	/* Keep processes of the same user, agents included, from attaching to this one, reading its memory or taking its
	 * descriptors. An exec resets this: children are not affected. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	fd_fill_standard();
	/* Internal. Its answer is written: skip the work at exit, such as a search for leaks. */
	if (argc == 3 && strcmp(argv[1], "--errand") == 0) _exit(errands_run(argv[2]));
	int status = parse(argc, argv, &cl);
	if (status >= 0) return status;
	log_setup(cl.server.check ? LOG_ERROR : cl.level, cl.json);
	if (cl.check) return check_config(cl.server.config);
	/* Keep blocks of lines, and long lines, out of the heap, so that they leave no holes in it. */
	mallopt(M_MMAP_THRESHOLD, 512 * 1024);
	/* Join free neighbours at once. Else the next large block joins all of them in one turn: 20 ms after the notices of
	 * 4,096 requests to 64 clients. */
	mallopt(M_MXFAST, 0);
	return server_run(&cl.server);
}
