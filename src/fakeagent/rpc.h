/* SPDX-License-Identifier: MIT
 *
 * JSON-RPC in lines, for the protocols of other agents. The agent behind it stays the same: a protocol makes the
 * agent's stream-json lines of the client's messages, and messages of the agent's frames (out_divert). Own ids are
 * integers from 0; an answer counts once, and one to an unknown id is ignored.
 */
#pragma once

#include "fakeagent/agent.h"

#define RPC_PARSE (-32700)
#define RPC_INVALID (-32600)
#define RPC_METHOD (-32601)
#define RPC_PARAMS (-32602)
#define RPC_INTERNAL (-32603)

/* A request of the client, or a notification without an id. */
struct rpc_call {
	const char *method;
	json_t *id, *params;
};

struct rpc_protocol {
	const char *version; /* of the jsonrpc member; NULL: as codex, without it, and bad lines are dropped silently */
	const char *unready, *busy, *internal; /* errors: before initialize, during a turn, the beginning of others */
	const struct rpc_method {
		const char *name;
		void (*run)(const struct rpc_call *c);
	} * methods;                  /* the last one has no name */
	void (*frame)(json_t *frame); /* takes a frame of the agent */
	/* Make the agent's form of the answer to our request `id`, the `response` of a control_response. Of result and
	 * error one is NULL. */
	json_t *(*answer)(json_t *id, const json_t *request, json_t *result, json_t *error);
};

void rpc_speak(const struct rpc_protocol *protocol);
void rpc_take(enum js_result r, json_t *line); /* a line of the client */

void rpc_reply(const struct rpc_call *c, json_t *result); /* takes result; no effect for a notification */
bool rpc_fail(const struct rpc_call *c, int code, const char *fmt, ...) PRINTF_LIKE(3, 4); /* false */
void rpc_notify(const char *method, json_t *params);                                       /* takes params */
/* Send a request for an open control_request of the agent (borrowed). Takes params. */
void rpc_ask(const json_t *control, const char *method, json_t *params);
/* Forget the request for that control_request. Return its id, new, or NULL. */
json_t *rpc_withdraw(const char *request_id);

/* Enter the directory before another session is opened. False: it is not possible, or a turn runs; answered. */
bool rpc_may_open(const struct rpc_call *c);
json_t *rpc_prompt(const json_t *blocks);              /* the user line of a prompt, with a uuid; new */
json_t *rpc_answer(json_t *result, json_t *error);     /* see rpc_protocol; for any request but a permission */
json_t *rpc_allow(const json_t *request, bool always); /* the same for one that is granted */
