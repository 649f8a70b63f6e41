/* SPDX-License-Identifier: MIT */
#include "fakeagent/conversation.h"

#include "base/paths.h"
#include "fakeagent/out.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static char *dir; /* NULL: nothing is stored */

/* Set `dir`, and make it. */
static void find_dir(void) {
	const char *flag = agent_flag("conversations"), *own = flag ? flag : getenv("PLENUM_FAKEAGENT_DIR");
	if (agent_flag("no-session-persistence")) return;
	_cleanup_free_ char *state = path_state_dir(); /* .../plenum */
	if (own && *own)
		dir = str_dup(own);
	else if (state)
		dir = str_printf("%s-fakeagent", state);
	for (char *p = dir; p && *p;) {
		p += 1 + strcspn(p + 1, "/");
		char c = *p;
		*p = 0;
		mkdir(dir, 0700);
		*p = c;
	}
}

/* An id comes from outside and must not lead out of the directory. */
static char *path_of(const char *id) {
	if (!dir || !id || !*id || strchr(id, '/') || *id == '.') return NULL;
	return str_printf("%s/%s.jsonl", dir, id);
}

static bool load(const char *id) {
	_cleanup_free_ char *path = path_of(id), *line = NULL;
	FILE *f = path ? fopen(path, "re") : NULL;
	if (!f) return false;
	size_t cap = 0;
	json_t *message;
	for (ssize_t n; (n = getline(&line, &cap, f)) > 0;)
		if (js_parse(line, (size_t)n, &message) == JS_OK) js_add(agent.messages, message);
	fclose(f);
	return true;
}

json_t *conversation_stored(void) {
	DIR *d = dir ? opendir(dir) : NULL;
	json_t *ids = js_make("[]");
	struct timespec newest = {0};
	for (struct dirent *e; d && (e = readdir(d));) {
		struct stat st;
		size_t n = strlen(e->d_name);
		if (n < 7 || strcmp(e->d_name + n - 6, ".jsonl") != 0 || fstatat(dirfd(d), e->d_name, &st, 0) < 0) continue;
		const struct timespec *t = &st.st_mtim;
		bool older = t->tv_sec != newest.tv_sec ? t->tv_sec < newest.tv_sec : t->tv_nsec < newest.tv_nsec;
		if (!older) newest = *t;
		json_array_insert_new(ids, older ? json_array_size(ids) : 0, js_text(e->d_name, n - 6));
	}
	if (d) closedir(d);
	return ids;
}

static void write_line(const json_t *message) {
	_cleanup_free_ char *path = path_of(agent.id);
	_cleanup_close_ int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	if (fd < 0) return;
	_cleanup_free_ char *text = js_dumps(message), *line = str_printf("%s\n", text);
	if (line) fd_write_all(fd, line, strlen(line));
}

bool conversation_start(void) {
	const char *resume = agent_flag("resume"), *wanted = agent_flag("session-id");
	_cleanup_json_ json_t *made = js_uuid(), *ids = NULL;
	agent.messages = js_make("[]");
	find_dir();
	js_replace(&agent.id, wanted ? wanted : json_string_value(made));
	if (agent_flag("continue")) ids = conversation_stored();
	const char *old = resume ? resume : json_string_value(json_array_get(ids, 0));
	if (old && !load(old) && resume) {
		json_t *text = js_printf("No conversation found with session ID: %s", resume);
		fprintf(stderr, "%s\n", json_string_value(text));
		_cleanup_json_ json_t *members = js_make(
			"{subtype:error_during_execution,is_error:true,stop_reason:null,permission_denials:[],errors:[%o]}", text);
		out_result(members, now_ms(), 0, 0);
		return false;
	}
	if (old && !agent_flag("fork-session")) {
		js_replace(&agent.id, old);
		return true;
	}
	_cleanup_free_ char *path = path_of(agent.id);
	if (wanted && path && access(path, F_OK) == 0) {
		fprintf(stderr, "Error: Session ID %s is already in use.\n", wanted);
		return false;
	}
	JS_EACH (message, agent.messages) write_line(message.v);
	return true;
}

json_t *conversation_path(void) {
	return js_printf("%s/%s.jsonl", dir ? dir : "", agent.id);
}

void conversation_set_model(const char *name) {
	js_replace(&agent.model, name ? name : "fake-model");
}

json_t *conversation_last(void) {
	return js_at(json_array_get(agent.messages, json_array_size(agent.messages) - 1), "content");
}

void conversation_add(const char *role, json_t *content, json_t *answered) {
	json_t *message = js_make("{role:%s,content:%o,answers:%O}", role, content, answered);
	js_add(agent.messages, message);
	write_line(message);
}

void conversation_reset(const char *id) {
	json_array_clear(agent.messages);
	js_replace(&agent.id, id);
}

bool conversation_open(const char *id) {
	_cleanup_free_ char *path = path_of(id);
	if (!path || access(path, R_OK) < 0) return false;
	conversation_reset(id);
	return load(id);
}
