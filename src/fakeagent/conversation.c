/* SPDX-License-Identifier: MIT */
#include "fakeagent/conversation.h"

#include "base/fd.h"
#include "base/str.h"
#include "fakeagent/flags.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static char *dir; /* NULL: nothing is stored */
static char *current, *model;
static json_t *messages;

static char *find_dir(void) {
	const char *env = getenv("PLENUM_FAKEAGENT_DIR"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	if (flags()->no_persistence) return NULL;
	if (flags()->conversations) return str_dup(flags()->conversations);
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

/* An id comes from outside and must not lead out of the directory. */
static char *path_of(const char *id) {
	if (!dir || !*id || strchr(id, '/') || *id == '.') return NULL;
	return str_printf("%s/%s.jsonl", dir, id);
}

static bool load(const char *id) {
	_cleanup_free_ char *path = path_of(id), *line = NULL;
	FILE *f = path ? fopen(path, "re") : NULL;
	if (!f) return false;
	size_t cap = 0;
	json_t *message;
	for (ssize_t n; (n = getline(&line, &cap, f)) > 0;)
		if (js_parse(line, (size_t)n, &message) == JS_OK) json_array_append_new(messages, message);
	fclose(f);
	return true;
}

/* Return the id of the file written last. */
static char *find_last(void) {
	DIR *d = dir ? opendir(dir) : NULL;
	char *best = NULL;
	struct timespec newest = {0};
	for (struct dirent *e; d && (e = readdir(d));) {
		struct stat st;
		size_t n = strlen(e->d_name);
		if (n < 7 || strcmp(e->d_name + n - 6, ".jsonl") != 0 || fstatat(dirfd(d), e->d_name, &st, 0) < 0) continue;
		const struct timespec *t = &st.st_mtim;
		bool newer = t->tv_sec != newest.tv_sec ? t->tv_sec > newest.tv_sec : t->tv_nsec >= newest.tv_nsec;
		if (best && !newer) continue;
		free(best);
		best = strndup(e->d_name, n - 6);
		newest = *t;
	}
	if (d) closedir(d);
	return best;
}

static void write_line(const json_t *message) {
	_cleanup_free_ char *path = path_of(current);
	_cleanup_close_ int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	if (fd < 0) return;
	_cleanup_(buf_free) struct buf b = JS_BUF;
	js_dump(&b, message);
	buf_putc(&b, '\n');
	fd_write_all(fd, b.data, b.len);
}

enum conversation_start conversation_start(void) {
	char made[37];
	const struct flags *f = flags();
	messages = js_need(json_array());
	dir = find_dir();
	if (dir) make_dirs(dir);
	js_uuid(made);
	js_replace(&current, f->session_id ? f->session_id : made);
	_cleanup_free_ char *old = f->resume ? str_dup(f->resume) : f->resume_last ? find_last() : NULL;
	if (old && !load(old) && f->resume) return CONVERSATION_UNKNOWN;
	if (old && !f->fork) {
		js_replace(&current, old);
		return CONVERSATION_OK;
	}
	_cleanup_free_ char *path = path_of(current);
	if (f->session_id && path && access(path, F_OK) == 0) return CONVERSATION_IN_USE;
	size_t i;
	json_t *message;
	json_array_foreach(messages, i, message) write_line(message);
	return CONVERSATION_OK;
}

const char *conversation_id(void) {
	return current;
}

json_t *conversation_path(void) {
	return js_printf("%s/%s.jsonl", dir ? dir : "", current);
}

const char *conversation_model(void) {
	return model ? model : "fake-model";
}

void conversation_set_model(const char *name) {
	js_replace(&model, name);
}

const json_t *conversation_messages(void) {
	return messages;
}

json_t *conversation_last(void) {
	size_t n = json_array_size(messages);
	return n ? json_object_get(json_array_get(messages, n - 1), "content") : NULL;
}

static void add(json_t *message) {
	json_array_append_new(messages, message);
	write_line(message);
}

void conversation_add(const char *role, json_t *content) {
	add(js_make("{role:%s,content:%o}", role, content));
}

void conversation_add_reply(json_t *blocks, json_t *uuids) {
	add(js_make("{role:assistant,content:%o,answers:%O}", blocks, uuids));
}

void conversation_append(const json_t *texts) {
	json_t *content = conversation_last(), *text;
	size_t i;
	json_t *blocks = json_is_array(content) ? js_need(json_copy(content)) : js_make("[{type:text,text:%O}]", content);
	json_array_foreach(texts, i, text) json_array_append_new(blocks, js_make("{type:text,text:%O}", text));
	json_object_set_new(json_array_get(messages, json_array_size(messages) - 1), "content", blocks);
}

json_t *conversation_answered(void) {
	json_t *seen = js_need(json_object()), *message, *uuid;
	size_t i, k;
	json_array_foreach(messages, i, message)
		json_array_foreach(json_object_get(message, "answers"), k, uuid) if (json_is_string(uuid))
			json_object_set_new(seen, json_string_value(uuid), json_true());
	return seen;
}

void conversation_reset(const char *id) {
	json_array_clear(messages);
	js_replace(&current, id);
}

bool conversation_open(const char *id) {
	_cleanup_free_ char *path = path_of(id);
	if (!path || access(path, R_OK) < 0) return false;
	conversation_reset(id);
	return load(id);
}

json_t *conversation_list(void) {
	json_t *list = js_need(json_array());
	char cwd[PATH_MAX];
	DIR *d = dir ? opendir(dir) : NULL;
	for (struct dirent *e; d && (e = readdir(d));) {
		size_t n = strlen(e->d_name);
		if (n < 7 || strcmp(e->d_name + n - 6, ".jsonl") != 0) continue;
		json_array_append_new(
			list, js_make("{sessionId:%o,cwd:%s}", js_text(e->d_name, n - 6), getcwd(cwd, sizeof cwd) ? cwd : "/"));
	}
	if (d) closedir(d);
	return list;
}
