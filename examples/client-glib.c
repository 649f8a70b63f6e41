/* SPDX-License-Identifier: MIT
 *
 * client-glib SESSION: in a GLib main loop, as a GTK program has it. Each line of standard input is a prompt; the lines
 * of the session are printed; permissions are denied; a lost connection is made again.
 *
 *	cc client-glib.c $(pkg-config --cflags --libs plenum glib-2.0) -o client-glib
 */
#include <err.h>
#include <glib-unix.h>
#include <plenum/client.h>
#include <stdio.h>
#include <string.h>

struct client {
	GSource source; /* first: GLib allocates the whole struct */
	struct plenum *p;
	gpointer tag; /* of the descriptor; NULL: not connected */
	GMainLoop *loop;
	bool input_ended;
};

static void use_line(struct client *c, const char *line, size_t len) {
	struct plenum_ask ask;
	printf("%.*s\n", (int)len, line);
	if (!plenum_ask_read(line, len, &ask)) return;
	if (ask.kind == PLENUM_ASK_PERMISSION) plenum_deny(c->p, &ask, "this program has no window to ask in");
	plenum_ask_free(&ask); /* a program with a window keeps it until plenum_ask_withdrawn(), or the user's answer */
}

static gboolean try_again(gpointer data) {
	struct client *c = data;
	char id[PLENUM_ID_SIZE];
	if (plenum_reopen(c->p, id) != PLENUM_OK) return G_SOURCE_CONTINUE;
	c->tag = g_source_add_unix_fd(&c->source, plenum_fd(c->p), (GIOCondition)plenum_events(c->p, NULL));
	return G_SOURCE_REMOVE;
}

static void lost(struct client *c) {
	g_source_remove_unix_fd(&c->source, c->tag);
	c->tag = NULL;
	if (c->input_ended)
		g_main_loop_quit(c->loop);
	else
		g_timeout_add(200, try_again, c);
}

/* --- The source --------------------------------------------------------------------------------------------------- */

/* GLib asks before each sleep: a line that was read with another one needs no sleep. */
static gboolean prepare(GSource *source, gint *timeout) {
	struct client *c = (struct client *)source;
	*timeout = -1;
	if (!c->tag) return FALSE;
	g_source_modify_unix_fd(source, c->tag, (GIOCondition)plenum_events(c->p, timeout));
	return *timeout == 0;
}

static gboolean check(GSource *source) {
	struct client *c = (struct client *)source;
	return c->tag && g_source_query_unix_fd(source, c->tag) != 0;
}

static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer data) {
	struct client *c = (struct client *)source;
	enum plenum_result r;
	const char *line;
	size_t len;
	(void)callback;
	(void)data;
	while ((r = plenum_next(c->p, 0, &line, &len)) == PLENUM_OK) use_line(c, line, len);
	fflush(stdout);
	if (r != PLENUM_TIMED_OUT) lost(c);
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs functions = {.prepare = prepare, .check = check, .dispatch = dispatch};

/* --- Standard input ----------------------------------------------------------------------------------------------- */

static gboolean read_prompt(gint fd, GIOCondition condition, gpointer data) {
	struct client *c = data;
	char text[4096], uuid[PLENUM_UUID_SIZE];
	(void)fd;
	(void)condition;
	if (fgets(text, sizeof text, stdin)) {
		if (plenum_prompt(c->p, text, strcspn(text, "\n"), uuid) == PLENUM_FULL) warnx("%s", plenum_error(c->p));
		return G_SOURCE_CONTINUE;
	}
	c->input_ended = true;
	plenum_finish(c->p); /* the daemon closes after the last result */
	return G_SOURCE_REMOVE;
}

int main(int argc, char **argv) {
	char why[256], id[PLENUM_ID_SIZE];
	if (argc != 2) errx(64, "usage: client-glib SESSION");
	struct client *c = (struct client *)g_source_new(&functions, sizeof *c);
	char *session = plenum_quote(argv[1], strlen(argv[1]));
	char *members = g_strdup_printf("{\"session\":%s,\"name\":\"client-glib\",\"tag\":true}", session);
	c->p = plenum_open(NULL, why, sizeof why);
	if (!c->p) errx(69, "%s", why);
	plenum_post(c->p, PLENUM_ATTACH, members, id); /* its answer is the first line */
	c->loop = g_main_loop_new(NULL, FALSE);
	c->tag = g_source_add_unix_fd(&c->source, plenum_fd(c->p), (GIOCondition)plenum_events(c->p, NULL));
	g_source_attach(&c->source, NULL);
	setvbuf(stdin, NULL, _IONBF, 0); /* the loop sees the descriptor, not a buffer */
	g_unix_fd_add(0, G_IO_IN | G_IO_HUP, read_prompt, c);
	g_main_loop_run(c->loop);
	plenum_close(c->p);
	g_free(members);
	free(session);
	g_main_loop_unref(c->loop);
	g_source_destroy(&c->source);
	g_source_unref(&c->source);
	return 0;
}
