/* SPDX-License-Identifier: MIT */
#include "fakeagent/appserver.h"

#include "base/fd.h"
#include "fakeagent/appserver_item.h"
#include "fakeagent/backlog.h"
#include "fakeagent/conversation.h"
#include "fakeagent/faults.h"
#include "fakeagent/phase.h"
#include "fakeagent/policy.h"
#include "fakeagent/query.h"
#include "fakeagent/rpc.h"

#include <limits.h>

static bool initialized;
static bool opened; /* a thread is loaded; its id is conversation_id() */
static char *approval;

/* ---- params ---------------------------------------------------------------------------------------------------- */

/* Return a required text, or NULL after an error reply. */
static const char *need(json_t *id, const json_t *params, const char *name) {
	const char *text = js_get(params, name);
	if (!text) rpc_fail(id, RPC_INVALID, js_printf("Invalid request: missing field `%s`", name));
	return text;
}

static bool is_loaded(json_t *id, const json_t *params) {
	const char *name = need(id, params, "threadId");
	if (!name) return false;
	if (opened && js_same(name, conversation_id())) return true;
	rpc_fail(id, RPC_INVALID, js_printf("thread not found: %s", name));
	return false;
}

/* Take the settings that a thread or a turn begins with. Return true if there are any. */
static bool configure(const json_t *params) {
	const char *policy = js_get(params, "approvalPolicy"), *model = js_get(params, "model");
	if (model) conversation_set_model(model);
	if (!policy) return model;
	js_replace(&approval, policy);
	policy_set_mode(strcmp(policy, "never") == 0 ? "dontAsk" : "default");
	return true;
}

static void put_settings(void) {
	appserver_item_notify(
		"thread/settings/updated",
		js_make("{threadSettings:{approvalPolicy:%s,approvalsReviewer:user,model:%s,modelProvider:fake,"
				"sandboxPolicy:{type:readOnly,networkAccess:false}}}",
				approval, conversation_model()));
}

static void run_settings(json_t *id, json_t *params) {
	if (!is_loaded(id, params)) return;
	bool changed = configure(params);
	rpc_reply(id, js_need(json_object()));
	if (changed) put_settings();
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

/* Takes turns. */
static json_t *thread(const char *id, const char *status, json_t *turns) {
	char cwd[PATH_MAX];
	json_int_t now = now_real_ms() / 1000;
	return js_make("{id:%s,sessionId:%s,forkedFromId:null,preview:%s,ephemeral:false,modelProvider:fake,model:%s,"
				   "createdAt:%I,updatedAt:%I,status:{type:%s},path:%o,cwd:%s,cliVersion:%s,source:vscode,gitInfo:null,"
				   "name:null,projectId:null,turns:%o}",
				   id, id, "", conversation_model(), now, now, status, conversation_path(),
				   getcwd(cwd, sizeof cwd) ? cwd : "/", PLENUM_VERSION, turns);
}

static const char *status(void) {
	return appserver_item_turn() ? "active" : "idle";
}

static json_t *opening(json_t *turns) {
	char cwd[PATH_MAX];
	return js_make("{thread:%o,model:%s,modelProvider:fake,serviceTier:null,cwd:%s,approvalPolicy:%s,"
				   "approvalsReviewer:user,sandbox:{type:readOnly,networkAccess:false},reasoningEffort:null}",
				   thread(conversation_id(), status(), turns), conversation_model(),
				   getcwd(cwd, sizeof cwd) ? cwd : "/", approval);
}

static bool enter(json_t *id, const json_t *params) {
	const char *cwd = js_get(params, "cwd");
	if (phase_running() || !backlog_empty())
		rpc_fail(id, RPC_INVALID, js_make("a turn is running in another thread"));
	else if (cwd && chdir(cwd) < 0)
		rpc_fail(id, RPC_INTERNAL, js_printf("cannot enter %s", cwd));
	else
		return true;
	return false;
}

static void run_start(json_t *id, json_t *params) {
	char made[37];
	if (!enter(id, params)) return;
	js_uuid(made);
	conversation_reset(made);
	configure(params);
	opened = true;
	rpc_reply(id, opening(js_need(json_array())));
	rpc_notify("thread/started", js_make("{thread:%o}", thread(made, "idle", js_need(json_array()))));
}

static void run_resume(json_t *id, json_t *params) {
	const char *name = need(id, params, "threadId");
	bool loaded = name && opened && js_same(name, conversation_id());
	if (!name) return;
	if (faults_has(FAULT_refuse_load)) {
		rpc_fail(id, RPC_INTERNAL, js_make("a fault refuses it"));
		return;
	}
	if (!loaded && !enter(id, params)) return;
	if (!loaded && !conversation_open(name)) {
		rpc_fail(id, RPC_INVALID, js_printf("no rollout found for thread id %s", name));
		return;
	}
	configure(params);
	opened = true;
	bool bare = js_true(params, "excludeTurns");
	rpc_reply(id, opening(bare ? js_need(json_array()) : appserver_item_turns()));
}

static void run_read(json_t *id, json_t *params) {
	if (!is_loaded(id, params)) return;
	bool turns = js_true(params, "includeTurns");
	rpc_reply(id, js_make("{thread:%o}",
						  thread(conversation_id(), status(), turns ? appserver_item_turns() : js_need(json_array()))));
}

static void run_list(json_t *id, json_t *params) {
	size_t i;
	json_t *one, *data = js_need(json_array());
	_cleanup_json_ json_t *stored = conversation_list();
	(void)params;
	json_array_foreach(stored, i, one) {
		const char *name = js_get(one, "sessionId");
		bool here = opened && js_same(name, conversation_id());
		json_array_append_new(data, thread(name, here ? status() : "notLoaded", js_need(json_array())));
	}
	rpc_reply(id, js_make("{data:%o,nextCursor:null}", data));
}

/* ---- turns ----------------------------------------------------------------------------------------------------- */

static json_t *block_of(const json_t *input) {
	const char *text = js_get(input, "text");
	return text ? js_make("{type:text,text:%O}", json_object_get(input, "text"))
				: js_make("{type:text,text:%o}", js_printf("[%s]", js_get(input, "type")));
}

/* Pass the input on as a user line. False: there is none, and the request is answered by an error. */
static bool submit(json_t *id, const json_t *params) {
	char uuid[37];
	size_t i;
	json_t *one, *input = json_object_get(params, "input"), *content;
	if (!json_array_size(input)) {
		rpc_fail(id, RPC_INVALID, js_make("Invalid request: missing field `input`"));
		return false;
	}
	content = js_need(json_array());
	json_array_foreach(input, i, one) json_array_append_new(content, block_of(one));
	js_uuid(uuid);
	const char *client = js_get(params, "clientUserMessageId");
	appserver_item_prompt(uuid, json_incref(content), js_make("%s", client));
	_cleanup_json_ json_t *line = js_make("{type:user,uuid:%s,message:{role:user,content:%o}}", uuid, content);
	backlog_add(line);
	return true;
}

/* Within a turn the input joins it. */
static void run_turn(json_t *id, json_t *params) {
	if (!is_loaded(id, params)) return;
	if (configure(params)) put_settings();
	if (submit(id, params)) rpc_reply(id, js_make("{turn:%o}", appserver_item_begin()));
}

/* Return true if a turn is open and is the one that the request names. */
static bool is_turn(json_t *id, const json_t *params, const char *member, const char *what) {
	const char *name, *turn = appserver_item_turn();
	if (!is_loaded(id, params) || !(name = need(id, params, member))) return false;
	if (!turn)
		rpc_fail(id, RPC_INVALID, js_printf("no active turn to %s", what));
	else if (!js_same(name, turn))
		rpc_fail(id, RPC_INVALID, js_printf("expected active turn id `%s` but found `%s`", name, turn));
	else
		return true;
	return false;
}

static void run_steer(json_t *id, json_t *params) {
	if (!is_turn(id, params, "expectedTurnId", "steer") || !submit(id, params)) return;
	rpc_reply(id, js_make("{turnId:%s}", appserver_item_turn()));
}

static void run_interrupt(json_t *id, json_t *params) {
	size_t i;
	json_t *uuid;
	if (!is_turn(id, params, "turnId", "interrupt")) return;
	_cleanup_json_ json_t *held = backlog_uuids();
	json_array_foreach(held, i, uuid) backlog_cancel(json_string_value(uuid));
	appserver_item_forget();
	phase_abort(PHASE_INTERRUPT);
	query_end_turn();
	rpc_reply(id, js_need(json_object()));
}

/* ---- the connection -------------------------------------------------------------------------------------------- */

static void run_initialize(json_t *id, json_t *params) {
	if (initialized || faults_has(FAULT_refuse_initialize)) {
		rpc_fail(id, RPC_INVALID, js_make("%s", initialized ? "Already initialized" : "a fault refuses it"));
		return;
	}
	initialized = true;
	const json_t *capabilities = json_object_get(params, "capabilities");
	appserver_item_mute(json_incref(json_object_get(capabilities, "optOutNotificationMethods")));
	rpc_reply(id, js_make("{userAgent:%s,codexHome:/nonexistent,platformFamily:unix,platformOs:linux}",
						  "plenum-fakeagent/" PLENUM_VERSION));
}

static void run_initialized(json_t *id, json_t *params) {
	(void)params;
	if (id) rpc_fail(id, RPC_INVALID, js_make("Invalid request: unknown variant `initialized`"));
}

void appserver_start(void) {
	static const struct rpc_method methods[] = {
		{"initialize", run_initialize},
		{"initialized", run_initialized},
		{"thread/start", run_start},
		{"thread/resume", run_resume},
		{"thread/read", run_read},
		{"thread/list", run_list},
		{"thread/settings/update", run_settings},
		{"turn/start", run_turn},
		{"turn/steer", run_steer},
		{"turn/interrupt", run_interrupt},
	};
	static const struct rpc_protocol protocol = {
		NULL, "Not initialized", methods, ARRAY_SIZE(methods), appserver_item_frame, appserver_item_answer,
	};
	js_replace(&approval, "on-request");
	rpc_speak(&protocol);
}
