/* SPDX-License-Identifier: MIT */
#include "fakeagent/conversation.h"

#include "base/fd.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char *find_dir(const struct options *o) {
	const char *env = getenv("PLENUM_FAKEAGENT_DIR"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	if (o->no_persistence) return NULL;
	if (o->conversations) return str_dup(o->conversations);
	if (env && *env) return str_dup(env);
	if (state && *state) return str_printf("%s/plenum-fakeagent", state);
	return home && *home ? str_printf("%s/.local/state/plenum-fakeagent", home) : NULL;
}

static void make_dirs(char *path) {
	for (char *p = path + 1; *p; p++) {
		if (*p != '/') continue;
		*p = 0;
		mkdir(path, 0700);
		*p = '/';
	}
	mkdir(path, 0700);
}

/* An id comes from outside: it must not lead out of the folder. */
static char *path_of(const struct conversation *c, const char *id) {
	if (!c->dir || !*id || strchr(id, '/') || *id == '.') return NULL;
	return str_printf("%s/%s.jsonl", c->dir, id);
}

static bool load(struct conversation *c, const char *id) {
	_cleanup_free_ char *path = path_of(c, id);
	FILE *f = path ? fopen(path, "re") : NULL;
	if (!f) return false;
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	while ((n = getline(&line, &cap, f)) > 0) {
		json_t *message;
		if (js_parse(line, (size_t)n, &message) == JS_OK) json_array_append_new(c->messages, message);
	}
	free(line);
	fclose(f);
	return true;
}

/* The id that was written to last. */
static char *find_last(const struct conversation *c) {
	DIR *d = c->dir ? opendir(c->dir) : NULL;
	char *best = NULL;
	struct timespec newest = {0};
	for (struct dirent *e; d && (e = readdir(d));) {
		struct stat st;
		size_t n = strlen(e->d_name);
		if (n < 7 || strcmp(e->d_name + n - 6, ".jsonl") != 0 || fstatat(dirfd(d), e->d_name, &st, 0) < 0) continue;
		if (best && (st.st_mtim.tv_sec < newest.tv_sec ||
					 (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec < newest.tv_nsec)))
			continue;
		free(best);
		best = strndup(e->d_name, n - 6);
		newest = st.st_mtim;
	}
	if (d) closedir(d);
	return best;
}

static void write_line(struct conversation *c, const json_t *message) {
	_cleanup_free_ char *path = path_of(c, c->id);
	_cleanup_close_ int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	if (fd < 0) return;
	_cleanup_(buf_free) struct buf b = BUF_INIT(SIZE_MAX / 2);
	js_dump(&b, message);
	buf_putc(&b, '\n');
	fd_write_all(fd, b.data, b.len);
}

static void write_all(struct conversation *c) {
	size_t i;
	json_t *message;
	json_array_foreach(c->messages, i, message) write_line(c, message);
}

static void new_id(struct conversation *c) {
	char id[37];
	js_uuid(id);
	free(c->id);
	c->id = str_dup(id);
}

enum conversation_start conversation_start(struct conversation *c, const struct options *o) {
	*c = (struct conversation){.dir = find_dir(o), .messages = js_need(json_array())};
	if (c->dir) make_dirs(c->dir);
	_cleanup_free_ char *old = o->resume ? str_dup(o->resume) : o->resume_last ? find_last(c) : NULL;
	if (o->resume && !load(c, old)) return CONVERSATION_UNKNOWN;
	if (!o->resume && old) load(c, old);
	c->resumed = old != NULL;
	if (old && !o->fork) {
		c->id = str_dup(old);
		return CONVERSATION_OK;
	}
	new_id(c);
	if (o->session_id) {
		free(c->id);
		c->id = str_dup(o->session_id);
		_cleanup_free_ char *path = path_of(c, c->id);
		if (path && access(path, F_OK) == 0) return CONVERSATION_IN_USE;
	}
	write_all(c);
	return CONVERSATION_OK;
}

void conversation_free(struct conversation *c) {
	free(c->dir);
	free(c->id);
	json_decref(c->messages);
}

static void add(struct conversation *c, json_t *message) {
	json_array_append_new(c->messages, js_need(message));
	write_line(c, message);
}

void conversation_add(struct conversation *c, const char *role, json_t *content) {
	add(c, json_pack("{s:s,s:o}", "role", role, "content", content));
}

void conversation_add_reply(struct conversation *c, json_t *blocks, json_t *uuids) {
	add(c, json_pack("{s:s,s:o,s:O}", "role", "assistant", "content", blocks, "answers", uuids));
}

void conversation_answered(const struct conversation *c, json_t *seen) {
	size_t i, k;
	json_t *message, *uuid;
	json_array_foreach(c->messages, i, message)
		json_array_foreach(json_object_get(message, "answers"), k, uuid) if (json_is_string(uuid))
			json_object_set_new(seen, json_string_value(uuid), json_true());
}

void conversation_append(struct conversation *c, const json_t *texts) {
	json_t *message = conversation_last(c), *content = json_object_get(message, "content"), *text;
	size_t i;
	json_t *blocks = json_is_array(content) ? js_need(json_copy(content))
											: js_need(json_pack("[{s:s,s:O}]", "type", "text", "text", content));
	json_array_foreach(texts, i, text)
		json_array_append_new(blocks, json_pack("{s:s,s:O}", "type", "text", "text", text));
	json_object_set_new(message, "content", blocks);
}

void conversation_reset(struct conversation *c) {
	json_array_clear(c->messages);
	new_id(c);
}

json_t *conversation_last(const struct conversation *c) {
	size_t n = json_array_size(c->messages);
	return n ? json_array_get(c->messages, n - 1) : NULL;
}
