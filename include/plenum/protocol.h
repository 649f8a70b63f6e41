/* SPDX-License-Identifier: MIT
 *
 * The names on the wire: verbs, error codes, events. plenum-protocol(7) describes each with its members. Names are
 * added, never changed.
 */
#pragma once

#define PLENUM_PROTOCOL_VERSION 1

/* The socket: $PLENUM_SOCKET, else $XDG_RUNTIME_DIR/plenum/plenum.sock, else this. */
#define PLENUM_SYSTEM_SOCKET "/run/plenum/plenum.sock"
#define PLENUM_SOCKET_SUBPATH "plenum/plenum.sock"

/* Set in every child: the name of its session. A peer with it in its environment or ancestry cannot be an approver. */
#define PLENUM_CHILD_ENV "PLENUM_CHILD"

/* Verbs: subtypes of a control_request to the daemon. */
#define PLENUM_VERB_PREFIX "plenum_"
#define PLENUM_HELLO "plenum_hello"
#define PLENUM_ATTACH "plenum_attach"
#define PLENUM_DETACH "plenum_detach"
#define PLENUM_REGISTER "plenum_register"
#define PLENUM_LIST "plenum_list"
#define PLENUM_STATUS "plenum_status"
#define PLENUM_PENDING "plenum_pending"
#define PLENUM_STOP "plenum_stop"
#define PLENUM_HIBERNATE "plenum_hibernate"
#define PLENUM_SUBSCRIBE "plenum_subscribe"
#define PLENUM_RELOAD "plenum_reload"
#define PLENUM_SHUTDOWN "plenum_shutdown"
#define PLENUM_METRICS "plenum_metrics"
#define PLENUM_UPGRADE "plenum_upgrade"
/* The last stderr lines of a session's child; the queued prompts of a session. */
#define PLENUM_LOGS "plenum_logs"
#define PLENUM_QUEUE "plenum_queue"
#define PLENUM_CLEAR_LOST "plenum_clear_lost"
#define PLENUM_RENAME "plenum_rename"

/* Members of events and answers, and values of `what` in a `changed` event, that came from Claude Code's own names. */
#define PLENUM_M_TOOL "tool_name"
#define PLENUM_M_AGENT "agent_id"
#define PLENUM_M_FAILED "is_error"
#define PLENUM_M_MODE "permission_mode"
#define PLENUM_M_TASKS "background_tasks"
#define PLENUM_M_APPLIED "hooks_applied"
#define PLENUM_M_INITS "initialize" /* of `limits` */
#define PLENUM_WHAT_MODE PLENUM_M_MODE
#define PLENUM_WHAT_MODEL "model"

/* Error codes. */
#define PLENUM_E_BAD_LINE "bad_line"
#define PLENUM_E_BAD_REQUEST "bad_request"
#define PLENUM_E_NOT_ATTACHED "not_attached"
#define PLENUM_E_ALREADY_ATTACHED "already_attached"
#define PLENUM_E_NO_SUCH_SESSION "no_such_session"
#define PLENUM_E_SESSION_EXISTS "session_exists"
#define PLENUM_E_NO_SUCH_PROFILE "no_such_profile"
#define PLENUM_E_CONVERSATION_IN_USE "conversation_in_use"
#define PLENUM_E_SPAWN_FAILED "spawn_failed"
#define PLENUM_E_NOT_ALLOWED "not_allowed"
#define PLENUM_E_NAME_TAKEN "name_taken"
#define PLENUM_E_BAD_NAME "bad_name"
#define PLENUM_E_INITIALIZE_REFUSED "initialize_refused"
#define PLENUM_E_CHANGE_REFUSED "change_refused"
#define PLENUM_E_DUPLICATE_REQUEST "duplicate_request"
#define PLENUM_E_ALREADY_SETTLED "already_settled"
#define PLENUM_E_UNKNOWN_REQUEST "unknown_request"
#define PLENUM_E_BAD_ANSWER "bad_answer"
#define PLENUM_E_BUSY "busy"
#define PLENUM_E_TIMEOUT "timeout"
#define PLENUM_E_CHILD_EXITED "child_exited"
#define PLENUM_E_TOO_LONG "too_long"
#define PLENUM_E_TOO_MANY "too_many"
#define PLENUM_E_CANNOT_STOP "cannot_stop"
#define PLENUM_E_SHARE_EXCEEDED "share_exceeded"
#define PLENUM_E_SHUTTING_DOWN "shutting_down"
#define PLENUM_E_INTERNAL "internal"
/* On a JSON-RPC connection: no request, notification or answer of that protocol; a method that no one takes; a request
 * that was cancelled. */
#define PLENUM_E_INVALID_REQUEST "invalid_request"
#define PLENUM_E_UNKNOWN_METHOD "unknown_method"
#define PLENUM_E_CANCELLED "cancelled"
/* The daemon cannot start: the last line before it closes the connection. */
#define PLENUM_E_BAD_CONFIG "bad_config"

/* Events: the `event` of a {"type":"system","subtype":"plenum_event"} line. */
#define PLENUM_EVENT_SUBTYPE "plenum_event"
/* The beginning of an event's line, up to its name. */
#define PLENUM_EVENT_HEAD "{\"type\":\"system\",\"subtype\":\"" PLENUM_EVENT_SUBTYPE "\",\"event\":\""
/* The prefix of such names in a line of the child: {"subtype":"child_plenum_event"}. */
#define PLENUM_CHILD_PREFIX "child_"
#define PLENUM_EV_SESSION_CREATED "session_created"
#define PLENUM_EV_SESSION_STATE "session_state"
#define PLENUM_EV_CHILD_EXITED "child_exited"
#define PLENUM_EV_SESSION_REMOVED "session_removed"
#define PLENUM_EV_ATTACHED "attached"
#define PLENUM_EV_DETACHED "detached"
#define PLENUM_EV_SETTLED "settled"
#define PLENUM_EV_OWNER_GONE "owner_gone"
#define PLENUM_EV_OWNER_BACK "owner_back"
#define PLENUM_EV_CHANGED "changed"
#define PLENUM_EV_TURN_STARTED "turn_started"
#define PLENUM_EV_TURN_ENDED "turn_ended"
/* A session that needs its user, a turn without output, and its output after that. */
#define PLENUM_EV_FAILED "failed"
#define PLENUM_EV_STALLED "stalled"
#define PLENUM_EV_RESUMED "resumed"
/* `outcome` of turn_ended, and the members of its `tokens`. */
#define PLENUM_OUT_SUCCESS "success"
#define PLENUM_OUT_ERROR "error"
#define PLENUM_OUT_LIMIT "limit" /* of turns, of cost, of retries */
#define PLENUM_OUT_INTERRUPTED "interrupted"
#define PLENUM_OUT_UNKNOWN "unknown" /* no result came, or it was too long to read */
#define PLENUM_TOKENS_INPUT "input"
#define PLENUM_TOKENS_OUTPUT "output"
#define PLENUM_TOKENS_CACHE_READ "cache_read"
#define PLENUM_TOKENS_CACHE_WRITE "cache_write"
#define PLENUM_EV_STRAY_OUTPUT "stray_output"
#define PLENUM_EV_LAG "lag"
#define PLENUM_EV_GAP "gap"
#define PLENUM_EV_ERROR "error"
#define PLENUM_EV_SHUTTING_DOWN "shutting_down"
/* Detached processes of an agent after the end of its child; `action` is one of the words below. */
#define PLENUM_EV_LEFTOVERS "leftovers"
#define PLENUM_LEFT_KEPT "kept"
#define PLENUM_LEFT_ENDING "ending" /* SIGTERM was sent */
#define PLENUM_LEFT_KILLED "killed"
/* To subscribers: a request waits for a user. To attachments with `stderr`: the child's stderr. */
#define PLENUM_EV_ATTENTION "attention"
#define PLENUM_EV_STDERR "stderr"

/* Classes of clients: `peer` of an attach answer, of plenum_hello's `peer`, and of clients in listings. `why` is the
 * reason for a class below own; `agent_of` the session of the agent that started the program. */
#define PLENUM_PEER_OWN "own"
#define PLENUM_PEER_DRIVER "driver"
#define PLENUM_PEER_AGENT "agent"
#define PLENUM_PEER_OBSERVER "observer"

/* The profile of a session with a damaged record on disk. */
#define PLENUM_UNREADABLE "(unreadable)"

/* States of a session, as in `state` of answers and of session_state. */
#define PLENUM_ST_STARTING "starting"
#define PLENUM_ST_IDLE "idle"
#define PLENUM_ST_BUSY "busy"
#define PLENUM_ST_ASKING "asking"
#define PLENUM_ST_ASLEEP "asleep"
#define PLENUM_ST_FAILED "failed"
