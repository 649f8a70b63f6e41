/* SPDX-License-Identifier: MIT */
#include "shim/daemon.h"

#include "base/fd.h"
#include "base/str.h"
#include "dialect/jsonrpc.h"
#include "plenum/protocol.h"
#include "wire/valid.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CONFIG_MAX (1 << 20) /* bytes of a file of --mcp-config */
#define HELLO_WAIT 10000     /* ms for an answer */

struct plenum *daemon_connect(bool *foreign) {
	char why[4352], path[PLENUM_SOCKET_PATH_SIZE]; /* why: with a path that is too long */
	struct peer peer;
	struct plenum *p = plenum_open(NULL, why, sizeof why);
	if (p)
		*foreign = fd_peer(plenum_fd(p), &peer) < 0 || peer.uid != geteuid();
	else if ((errno == EACCES || errno == EPERM) && plenum_socket_path(path, sizeof path, NULL))
		fprintf(stderr,
				"plenum-shim: cannot connect to %s: %s\n"
				"plenum-shim: it belongs to another user, or its directory may not be entered; set PLENUM_SOCKET to "
				"your own\n",
				path, strerror(errno));
	else
		fprintf(stderr,
				"plenum-shim: %s\n"
				"plenum-shim: start it (systemctl --user start plenumd.socket, or plenumd), or set PLENUM_SOCKET\n",
				why);
	return p;
}

static void put_key(struct buf *b, const char *key) {
	buf_printf(b, ",\"%s\":", key);
}

static void put_string(struct buf *b, const char *key, const char *value) {
	if (!value) return;
	put_key(b, key);
	str_put_json(b, value, strlen(value));
}

static void put_bool(struct buf *b, const char *key, bool value) {
	put_key(b, key);
	buf_puts(b, value ? "true" : "false");
}

static void put_env(struct buf *b, const struct options *o) {
	bool first = true;
	put_key(b, "env");
	buf_putc(b, '{');
	for (char **e = o->env; *e; e++) {
		size_t n = strcspn(*e, "=");
		/* The shim's own settings. PLENUM_CLAUDE is for the daemon, too: it names the program of the session. */
		bool ours = strncmp(*e, "PLENUM_", 7) == 0 && strncmp(*e, "PLENUM_CLAUDE=", 14) != 0, again = false;
		/* Of a name that stands there twice getenv() reads the first. */
		for (char **other = o->env; other < e && !again; other++) again = strncmp(*other, *e, n + 1) == 0;
		if (n == 0 || (*e)[n] == 0 || ours || again) continue;
		if (!first) buf_putc(b, ',');
		first = false;
		str_put_json(b, *e, n);
		buf_putc(b, ':');
		str_put_json(b, *e + n + 1, strlen(*e + n + 1));
	}
	buf_putc(b, '}');
	put_bool(b, "env_only", true);
}

/* Return the text of a regular file; NULL: there is none, which is the CLI's to report, or it is too long. */
static char *read_config(const char *path, size_t *n) {
	struct stat st;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) return NULL;
	if (st.st_size > CONFIG_MAX) {
		fprintf(stderr, "plenum-shim: %s: longer than %d MiB: its in-process MCP servers are not served\n", path,
				CONFIG_MAX >> 20);
		return NULL;
	}
	char *text = malloc((size_t)st.st_size + 1);
	ssize_t got = text ? fd_read(fd, text, (size_t)st.st_size) : -1;
	*n = got > 0 ? (size_t)got : 0;
	return text;
}

/* A value of --mcp-config is JSON, or the name of a file with it, as for the CLI:
 * {"mcpServers":{"name":{"type":"sdk",...},...}} */
static bool put_sdk_servers(void *ctx, const struct options_value *v) {
	struct buf *b = ctx;
	struct span text = span_of(v->text), key, value;
	if (!options_is_mcp_config(v)) return true;
	_cleanup_free_ char *file = valid_span(text) ? NULL : read_config(v->text, &text.n);
	if (file) text.p = file;
	struct span servers = valid_span(text) ? span_member(text, "mcpServers") : SPAN_NONE;
	for (size_t at = 0; span_is_object(servers) && span_next_member(servers, &at, &key, &value);) {
		if (!span_equals(span_member(value, "type"), "sdk")) continue;
		size_t len;
		_cleanup_free_ char *name = span_dup(key, &len);
		if (!name) continue;
		if (b->data[b->len - 1] != '[') buf_putc(b, ',');
		str_put_json(b, name, len);
	}
	return true;
}

static void put_start(struct buf *b, const struct options *o) {
	char cwd[PATH_MAX];
	/* The whole command line of the CLI; for agents of other protocols words behind the command of the profile. */
	put_key(b, o->rpc ? "args" : "argv");
	buf_putc(b, '[');
	for (char **word = o->argv; *word; word++) {
		if (word != o->argv) buf_putc(b, ',');
		str_put_json(b, *word, strlen(*word));
	}
	buf_putc(b, ']');
	put_env(b, o);
	put_string(b, "cwd", getcwd(cwd, sizeof cwd));
	put_bool(b, "ephemeral", o->own);
	/* the argv says it too; this is for the daemon's lock on the conversation */
	put_string(b, "resume", o->resume);
	if (o->fork) put_bool(b, "fork", true);
	if (o->raw_init || o->rpc) put_bool(b, "raw_init", true);
}

void daemon_begin_request(struct buf *b, const struct options *o, const char *request_id, const char *verb,
						  const char *first) {
	if (o->rpc) {
		buf_printf(b, "%s\"id\":\"%s\",\"method\":\"", o->rpc, request_id);
		jsonrpc_put_method(b, verb);
		buf_puts(b, "\",\"params\":{");
	} else {
		buf_printf(b, "{\"type\":\"control_request\",\"request_id\":\"%s\",\"request\":{\"subtype\":\"%s\"%s",
				   request_id, verb, *first ? "," : "");
	}
	buf_puts(b, first);
}

bool daemon_attach_line(struct buf *b, const struct options *o, const char *request_id, bool foreign) {
	daemon_begin_request(b, o, request_id, PLENUM_ATTACH, "\"role\":\"driver\"");
	put_string(b, "session", o->session);
	put_string(b, "profile", o->profile);
	put_string(b, "name", o->name);
	if (!foreign) put_start(b, o);
	if (!o->rpc) {
		put_key(b, "mcp_servers");
		buf_putc(b, '[');
		if (!b->failed) options_each_value(o, put_sdk_servers, b);
		buf_putc(b, ']');
		put_bool(b, "approve", o->approve);
		if (o->own && !foreign && !o->approve) put_bool(b, "deny_asks", true);
		put_bool(b, "partial", o->partial);
		put_bool(b, "echo", o->echo);
	}
	buf_puts(b, ",\"replay\":\"none\",\"on_lag\":\"wait\",\"wake\":true,\"quiet\":true,"
				"\"stderr\":true}}\n");
	return !b->failed;
}

/* --- where the daemon finds programs ------------------------------------------------------------------------------ */

/* Return PATH of the process; NULL: unknown. The caller frees. */
static char *path_of(int64_t pid) {
	char name[40];
	char *word = NULL, *found = NULL;
	size_t size = 0;
	snprintf(name, sizeof name, "/proc/%lld/environ", (long long)pid);
	FILE *f = fopen(name, "re");
	while (f && !found && getdelim(&word, &size, 0, f) > 0)
		if (strncmp(word, "PATH=", 5) == 0) found = strdup(word + 5);
	if (f) fclose(f);
	free(word);
	return found;
}

char *daemon_path(void) {
	char why[4352];
	struct peer peer;
	struct plenum_answer a = {0};
	char *found = NULL;
	int64_t pid;
	struct plenum *p = plenum_open(NULL, why, sizeof why);
	bool own = p && fd_peer(plenum_fd(p), &peer) == 0 && peer.uid == geteuid();
	if (own && plenum_request(p, PLENUM_HELLO, NULL, HELLO_WAIT, &a) == PLENUM_OK &&
		span_int(span_member((struct span){a.body, a.body_len}, "pid"), &pid))
		found = path_of(pid);
	plenum_answer_free(&a);
	plenum_close(p);
	return found;
}
