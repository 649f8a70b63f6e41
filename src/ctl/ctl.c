/* SPDX-License-Identifier: MIT */
#include "ctl/ctl.h"

#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "ctl/speech.h"
#include "ctl/text.h"
#include "wire/scan.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_OPTIONS 32

static bool codes_wanted; /* --json: with the daemon's error codes */

static const struct option common_options[] = {
	{"socket", required_argument, NULL, 1000},
	{"json", no_argument, NULL, 1001},
	{"help", no_argument, NULL, 1002},
};

PRINTF_LIKE(1, 0) static void say(const char *fmt, va_list ap) {
	_cleanup_free_ char *text = str_vprintf(fmt, ap);
	if (!text) return;
	fflush(stdout); /* keep the order of both streams on a terminal */
	fputs("plenumctl: ", stderr);
	text_print(stderr, text, strlen(text));
	fputc('\n', stderr);
}

void ctl_say(const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void ctl_say_error(const char *error, const char *code) {
	bool coded = codes_wanted && code && *code;
	/* A verb of the protocol that begins an error is for programs, like the code. */
	const char *verb_end = strncmp(error, "plenum_", strlen("plenum_")) == 0 ? strstr(error, ": ") : NULL;
	if (!codes_wanted && verb_end) error = verb_end + strlen(": ");
	ctl_say("%s%s%s%s", error, coded ? " (" : "", coded ? code : "", coded ? ")" : "");
}

static void print_usage(FILE *out, const struct verb *v) {
	fprintf(out, "usage: plenumctl %s%s%s\n", v->name, *v->args ? " " : "", v->args);
}

int ctl_usage(struct ctl *c, const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	print_usage(stderr, c->verb);
	return CTL_USAGE;
}

/* --- Options ------------------------------------------------------------------------------------------------------ */

static void print_option(const char *letter, const char *name, const char *arg, const char *help) {
	_cleanup_free_ char *left = NULL;
	if (asprintf(&left, "%s--%s%s%s", letter, name, arg ? " " : "", arg ? arg : "") < 0) left = NULL;
	printf("  %-26s %s\n", left ? left : name, help);
}

static int print_help(const struct verb *v, const struct ctl_option *options) {
	print_usage(stdout, v);
	printf("\n%s\n\n", v->about);
	for (const struct ctl_option *o = options; o && o->name; o++) {
		char letter[8] = "";
		if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
		print_option(letter, o->name, o->arg, o->help);
	}
	if (!v->no_json) print_option("", "json", NULL, "print for machines");
	print_option("", "socket", "PATH", "connect to this socket");
	printf("\nplenumctl(1) has the whole story, with examples.\n");
	return CTL_OK;
}

#define FIRST_OPTION 2 /* getopt_long() returns 1 for a word that is no option */

/* The tables that getopt_long() wants, from ours: values from FIRST_OPTION on for the verb's options. */
struct getopt_tables {
	struct option options[MAX_OPTIONS + ARRAY_SIZE(common_options) + 1];
	char letters[MAX_OPTIONS * 2 + 3];
	size_t n;
};

static void fill_tables(struct getopt_tables *t, const struct ctl_option *options) {
	char *letter = t->letters;
	*letter++ = '-'; /* return each word in its place: those behind "--" are told from the others */
	for (; options && options[t->n].name && t->n < MAX_OPTIONS; t->n++) {
		const struct ctl_option *o = &options[t->n];
		t->options[t->n] = (struct option){o->name, o->flag ? no_argument : required_argument, NULL,
										   (int)t->n + FIRST_OPTION};
		if (!o->letter) continue;
		*letter++ = o->letter;
		if (!o->flag) *letter++ = ':';
	}
	memcpy(&t->options[t->n], common_options, sizeof common_options);
}

/* A word that JSON cannot hold: the request would go out without it, and be another request. */
static int check_utf8(struct ctl *c, const char *word) {
	if (str_is_utf8(word, strlen(word))) return CTL_GO;
	return ctl_usage(c, "%s: '%s' is not valid UTF-8", c->verb->name, word);
}

static int take(struct ctl *c, const struct ctl_option *options, size_t n, int got) {
	const struct ctl_option *o = NULL;
	if (got >= FIRST_OPTION && got < (int)n + FIRST_OPTION) o = &options[got - FIRST_OPTION];
	for (size_t i = 0; !o && i < n; i++)
		if (options[i].letter == got) o = &options[i];
	if (o && optarg && check_utf8(c, optarg) != CTL_GO) return CTL_USAGE;
	if (o && o->flag) *o->flag = true;
	if (o && o->value) *o->value = optarg;
	if (o && o->list) json_array_append_new(*o->list, json_string(optarg));
	if (o) return CTL_GO;
	if (got == 1000)
		c->socket = optarg;
	else if (got == 1001)
		c->json = true;
	else if (got == 1002)
		return print_help(c->verb, options);
	else {
		print_usage(stderr, c->verb);
		fprintf(stderr, "`plenumctl %s --help` lists its options\n", c->verb->name);
		return CTL_USAGE;
	}
	return CTL_GO;
}

/* The words that a verb needs are the first of its usage line. */
static int missing(struct ctl *c, int given) {
	const char *word = c->verb->args;
	for (; given > 0 && *word; given--) word += strcspn(word, " ") + (strchr(word, ' ') != NULL);
	return ctl_usage(c, "%s: %.*s is missing", c->verb->name, (int)strcspn(word, " "), word);
}

int ctl_options(struct ctl *c, const struct ctl_option *options, int *argc, char ***argv, int min, int max) {
	struct getopt_tables t = {.n = 0};
	char name[40]; /* getopt_long() begins its complaints with it */
	int got, code = CTL_GO, n = 1;
	snprintf(name, sizeof name, "plenumctl: %s", c->verb->name);
	(*argv)[0] = name;
	fill_tables(&t, options);
	optind = 0; /* starts the scan anew */
	while (code == CTL_GO && (got = getopt_long(*argc, *argv, t.letters, t.options, NULL)) != -1)
		if (got == 1)
			(*argv)[n++] = optarg;
		else
			code = take(c, options, t.n, got);
	(*argv)[0] = NULL;
	codes_wanted = c->json;
	if (code != CTL_GO) return code;
	c->before = n - 1;
	while (optind < *argc) (*argv)[n++] = (*argv)[optind++];
	++*argv;
	*argc = n - 1;
	if (*argc < min) return missing(c, *argc);
	if (max != CTL_TEXT && *argc > max) return ctl_usage(c, "%s: unexpected argument: %s", c->verb->name, (*argv)[max]);
	for (int i = 0; code == CTL_GO && i < (max == CTL_TEXT ? min : *argc); i++) code = check_utf8(c, (*argv)[i]);
	return code;
}

void ctl_put_words(struct buf *b, int n, char **words) {
	for (int i = 0; i < n; i++) {
		if (i) buf_putc(b, ' ');
		buf_puts(b, words[i]);
	}
}

void ctl_absolute(const char **folder, char room[PATH_MAX]) {
	char here[PATH_MAX];
	if (!*folder || realpath(*folder, room)) {
		if (*folder) *folder = room;
		return;
	}
	/* It is not there: the daemon says so, of the path that was meant. */
	if (**folder == '/' || !getcwd(here, sizeof here)) return;
	if (snprintf(room, PATH_MAX, "%s/%s", here, *folder) < PATH_MAX) *folder = room;
}

bool ctl_is_dumb(void) {
	const char *term = getenv("TERM");
	return !term || !*term || strcmp(term, "dumb") == 0;
}

char *ctl_state_dir(void) {
	char *folder = path_state_dir();
	for (char *slash = folder; slash && (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		mkdir(folder, 0700);
		*slash = '/';
	}
	if (folder) mkdir(folder, 0700);
	return folder;
}

/* --- The daemon --------------------------------------------------------------------------------------------------- */

struct plenum *ctl_open(struct ctl *c) {
	char why[512];
	struct plenum *p = plenum_open(c->socket, why, sizeof why);
	if (p) return p;
	int error = errno;
	ctl_say("%s", why);
	if (error == ENOENT || error == ECONNREFUSED)
		ctl_say("no daemon runs there (`systemctl --user start plenumd.socket`, or `plenumd`; `plenumctl doctor` finds "
				"the cause)");
	else if (error == EACCES || error == EPERM)
		ctl_say("it belongs to another user, or its directory is closed to you (allow_uids in plenum.conf(5))");
	return NULL;
}

bool ctl_is_strangers(struct plenum *p, uid_t *owner) {
	struct peer peer;
	if (fd_peer(plenum_fd(p), &peer) < 0) return false;
	*owner = peer.uid;
	return peer.uid != geteuid();
}

char *ctl_last_error(struct plenum *p, char **code) {
	const char *line;
	char *error = NULL;
	size_t n;
	*code = NULL;
	while (!error && plenum_next(p, 0, &line, &n) == PLENUM_OK) {
		struct incoming in;
		speech_read(speech_of(p), line, n, &in);
		if (!span_equals(span_member(in.notice, "event"), PLENUM_EV_ERROR)) continue;
		error = span_dup(span_member(in.notice, "error"), NULL);
		*code = span_dup(span_member(in.notice, "code"), NULL);
	}
	return error;
}

static int explain_loss(struct plenum *p) {
	uid_t owner;
	_cleanup_free_ char *code = NULL, *error = ctl_last_error(p, &code);
	ctl_say("%s", error ? error : "the daemon closed the connection");
	if (!error && ctl_is_strangers(p, &owner)) /* the connection of an unknown user is closed without a message */
		ctl_say("it belongs to uid %u and does not take uid %u (allow_uids in plenum.conf(5))", owner, geteuid());
	return code && strcmp(code, PLENUM_E_BAD_CONFIG) == 0 ? CTL_NO_DAEMON : CTL_CUT;
}

int ctl_failed(struct plenum *p, enum plenum_result r) {
	if (r == PLENUM_CLOSED) return explain_loss(p);
	if (r == PLENUM_TIMED_OUT)
		ctl_say("the daemon did not answer in time");
	else
		ctl_say("%s", plenum_error(p));
	return r == PLENUM_REFUSED ? CTL_REFUSED : CTL_CUT;
}

/* Jansson reads neither lone surrogates nor huge numbers, and an answer may hold a line of the child as it was: the
 * members that it reads are enough. */
static json_t *parse_body(const struct plenum_answer *a) {
	struct span text = {a->body, a->body ? a->body_len : 0}, key, value;
	json_t *body = text.p ? json_loadb(text.p, text.n, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL) : NULL;
	if (json_is_object(body)) return body;
	json_decref(body);
	body = json_object();
	for (size_t at = 0; span_next_member(text, &at, &key, &value);) {
		_cleanup_free_ char *name = span_dup(key, NULL);
		json_t *member = json_loadb(value.p, value.n, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
		if (name && member)
			json_object_set_new(body, name, member);
		else
			json_decref(member);
	}
	return body;
}

int ctl_ask_first(struct plenum *p, const char *verb, json_t *members, json_t **answer, struct plenum_answer *refusal) {
	_cleanup_json_ json_t *owned = members;
	_cleanup_free_ char *object = owned ? json_dumps(owned, JSON_COMPACT) : NULL;
	*refusal = (struct plenum_answer){0};
	if (!p) return CTL_NO_DAEMON;
	if (owned && !object) {
		ctl_say("an argument is not valid UTF-8");
		return CTL_USAGE;
	}
	enum plenum_result r = plenum_request(p, verb, object, CTL_ANSWER_TIME, refusal);
	if (r == PLENUM_REFUSED) return CTL_REFUSED;
	if (r == PLENUM_CLOSED) return explain_loss(p);
	if (r != PLENUM_OK) ctl_say("%s", plenum_error(p));
	if (r == PLENUM_OK && answer) *answer = parse_body(refusal);
	return r == PLENUM_OK ? CTL_OK : CTL_CUT;
}

int ctl_ask(struct plenum *p, const char *verb, json_t *members, json_t **answer) {
	struct plenum_answer refusal;
	int code = ctl_ask_first(p, verb, members, answer, &refusal);
	if (code == CTL_REFUSED) ctl_say_error(refusal.error, refusal.code);
	plenum_answer_free(&refusal);
	return code;
}

int ctl_ask_quietly(struct plenum *p, const char *verb, json_t *members, json_t **answer) {
	struct plenum_answer refusal;
	int code = ctl_ask_first(p, verb, members, answer, &refusal);
	plenum_answer_free(&refusal);
	return code;
}

int ctl_ask_once(struct ctl *c, const char *verb, json_t *members, json_t **answer) {
	_cleanup_plenum_ struct plenum *p = ctl_open(c);
	return ctl_ask(p, verb, members, answer);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

int ctl_print_json(json_t *value) {
	_cleanup_free_ char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	if (!text) return CTL_INTERNAL;
	puts(text);
	return CTL_OK; /* main() looks whether it was written */
}

void ctl_put_background(struct buf *b, json_t *session) {
	static const struct {
		const char *key, *one, *more;
	} kinds[] = {{"tasks", "task", "tasks"}, {"timers", "timer", "timers"}, {"leftovers", "left", "left"}};
	size_t from = b->len;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		json_t *value = json_object_get(session, kinds[i].key);
		long long n = json_is_array(value) ? (long long)json_array_size(value) : (long long)json_integer_value(value);
		if (n > 0) buf_printf(b, "%s%lld %s", b->len > from ? ", " : "", n, n == 1 ? kinds[i].one : kinds[i].more);
	}
	if (b->len == from) buf_putc(b, '-');
}

const char *ctl_str(json_t *object, const char *key, const char *otherwise) {
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : otherwise;
}

int64_t ctl_int(json_t *object, const char *key) {
	return json_integer_value(json_object_get(object, key));
}

bool ctl_bool(json_t *object, const char *key) {
	return json_is_true(json_object_get(object, key));
}

json_t *ctl_array(json_t *object, const char *key) {
	json_t *value = json_object_get(object, key);
	return json_is_array(value) ? value : NULL;
}
