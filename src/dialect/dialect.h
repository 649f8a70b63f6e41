/* SPDX-License-Identifier: MIT
 *
 * The stream-json dialect of Claude Code: the names and shapes of its messages, in this file only. A second dialect
 * (ACP, codex app-server) would be a second file with the same functions. Sources: docs/protocol-facts.md 2, 3, 4.
 */
#pragma once

#include "base/buf.h"
#include "dialect/dialect_gate.h"
#include "wire/scan.h"

/* The kind of a child's line. Kinds up to LINE_OTHER are for all clients. */
enum line_kind {
	LINE_USER,
	LINE_ASSISTANT,
	LINE_STREAM_EVENT,
	LINE_RESULT,
	LINE_SYSTEM,
	LINE_TOOL_PROGRESS,
	LINE_RATE_LIMIT,
	LINE_LIFECYCLE, /* command_lifecycle */
	LINE_RESET,     /* conversation_reset */
	LINE_NOTICE,    /* a plenum_event of ours */
	LINE_OTHER,     /* any other type, or none */
	LINE_REQUEST,
	LINE_RESPONSE,
	LINE_CANCEL,
	LINE_KINDS,
};

enum line_kind dialect_kind(const struct envelope *e);
/* Return the kind with this name as `type`, else LINE_OTHER. */
enum line_kind dialect_kind_of(const char *type, size_t n);

/* Return true for a prompt repeated by the child. Output of its own commands ("Set model to ...") has the same mark,
 * but comes whether or not the child was asked to repeat prompts. */
bool dialect_is_echo(const struct envelope *e);

/* Return true if this result ends an interrupted turn. */
bool dialect_was_cut(struct span result);

/* Requests of the child. */
enum ask_kind { ASK_TOOL, ASK_HOOK, ASK_MCP, ASK_ELICITATION, ASK_DIALOG, ASK_UNKNOWN };

enum ask_kind dialect_ask_kind(const struct envelope *e);
/* Return what an answer to this request may ask the child to remember, an array; SPAN_NONE: nothing. */
struct span dialect_ask_suggestions(struct span request);

/* A line of the child names at most this many prompts of its turn: the first ones and the last (measured: 2.1.332). */
#define DIALECT_NAMES_MAX 64

/* Return true if this line of a client, not a request, runs a tool by itself (`bash_command`). */
bool dialect_line_executes(const struct envelope *e);
/* Read the tool call of a line or request of ACT_EXECUTE. Return NULL, with *tool (the caller frees) and the input
 * appended as a JSON object; else an error text for users. */
const char *dialect_read_call(struct span line, const struct envelope *e, char **tool, struct buf *input);
/* Return true if the sender wants the child to check its permissions (`check_permissions`). */
bool dialect_call_wants_check(const struct envelope *e);
/* Append the same line (bash_command: all of it, without its newline) or request (mcp_call: the value of `request`)
 * with this input. Judged members appear once. Return false if the input cannot be used. */
bool dialect_put_call(struct buf *b, struct span line, const struct envelope *e, struct span input, bool check);
/* Return true if the child with this answer to initialize asks its guards and approvers about an mcp_call with
 * check_permissions. Any other child runs the tool unchecked. */
bool dialect_checks_calls(struct span init_answer);

/* Builders: each appends one whole line with its newline to b. Ids and values are raw JSON text (a string with its
 * quotes). */
void dialect_put_request(struct buf *b, const char *id, const char *request_json);
void dialect_put_success(struct buf *b, struct span id, const char *response_json); /* response_json NULL: none */
/* The same two with a built body, which is freed. If the body has failed, b fails too: half a refusal, or one without
 * its body, would allow what it must refuse. */
void dialect_put_built_request(struct buf *b, const char *id, struct buf *body);
void dialect_put_built_success(struct buf *b, struct span id, struct buf *body);
void dialect_put_error(struct buf *b, struct span id, const char *code, const char *text);
/* more: further members of the response, `,"name":value` each. */
void dialect_put_error_more(struct buf *b, struct span id, const char *code, const char *text, const char *more);
void dialect_put_cancel(struct buf *b, struct span id);

/* Return a request that makes the child name its conversation in a line of its own, before a turn begins and without a
 * trace in the conversation. n: from 0; the next one is for a child that did not answer the previous one. NULL: there
 * are no more. */
const char *dialect_ask_name(unsigned n);
/* Return true for lines of a turn, and of a start in progress, during which the conversation may still change. */
bool dialect_is_start(const struct envelope *e);
/* Return true if this line names the conversation. */
bool dialect_is_name(const struct envelope *e);

/* Answer bodies sent by the daemon itself (the value of response.response). */
void dialect_put_tool_deny(struct buf *b, const char *reason);
void dialect_put_hook_deny(struct buf *b, struct span event, const char *reason);
void dialect_put_mcp_error(struct buf *b, struct span message, const char *reason); /* message: the JSON-RPC message */
extern const char dialect_neutral[];                                                /* "{}" */

/* Return the seconds that the child waits for a callback of this event if its matcher has no timeout. */
int dialect_hook_timeout(struct span event);
/* Return true for events with guarding callbacks: PreToolUse, PermissionRequest. */
bool dialect_hook_guards(struct span event);

/* Return true if hooks of this event concern a tool and their matchers match its name. */
bool dialect_hook_sees_tools(struct span event);
/* Return true if a hook with this matcher (raw JSON, may be absent) may be called for the tool. Names are compared; a
 * regular expression counts as a match. */
bool dialect_matcher_covers(struct span matcher, const char *tool);

/* Return NULL if the child takes this body as an answer (protocol-facts 4.2), else an error text for users. `response`
 * is the whole response object of the client's line. */
const char *dialect_check_answer(enum ask_kind kind, struct span response);
/* Return true if the answer is empty and the child takes it: a hook without `response` (an SDK's function returned
 * nothing), an MCP notification acknowledged with no JSON-RPC reply, an error without a text. */
bool dialect_is_empty(enum ask_kind kind, struct span request, struct span response);
/* Append the full form of such an answer. */
void dialect_put_empty(struct buf *b, struct span id, enum ask_kind kind, struct span request, struct span response);
/* Return the decision of an answer: "allow", "deny", "ask", "error", ...; "answered" if it has none. */
const char *dialect_decision(enum ask_kind kind, struct span response);

#define DIALECT_GRANTS 8
#define DIALECT_GRANT_MAX 200

/* The effects of an answer besides its decision. */
struct changes {
	bool input;                                     /* the tool's input was changed */
	char grants[DIALECT_GRANTS][DIALECT_GRANT_MAX]; /* changed permissions, for users: "Bash(git *) allow session" */
	size_t n_grants;                                /* of the answer; those beyond DIALECT_GRANTS have no text */
};

/* request: the child's `request`; response: the client's whole `response`. Both are checked. *c has nothing of the
 * input. */
void dialect_read_changes(enum ask_kind kind, struct span request, struct span response, struct changes *c);
