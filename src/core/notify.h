/* SPDX-License-Identifier: MIT
 *
 * Errors and notices of the daemon: to one client, to the clients of a session through its tape, to subscribers, and to
 * the commands of the user. Each is built once and gets its frame where it leaves. Keeps nothing; each module above it
 * may call it.
 */
#pragma once

#include "core/router.h"
#include "wire/notice.h"

struct message;

/* Send an error: as the answer to id if present, else as an event `error` with the line's number. */
void notify_fail(struct client *c, struct span id, const char *code, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Send an error that answers no request, with an id that is only mentioned. */
void notify_complain(struct client *c, struct span id, const char *code, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The same about a line that breaks the protocol, as its frame has it. size: its bytes, if it is too long; else 0. */
void notify_complain_of_line(struct client *c, struct span id, const char *code, const char *text, size_t size);
/* Return true if the sender waits for an answer under the line's id: of a request, and in some dialects of a prompt. */
bool notify_is_request(const struct client *c, const struct message *m);
/* Refuse a whole line: by an answer to a request; else by a notice, of a prompt with its uuid. */
void notify_refuse(struct client *c, const struct message *m, const char *code, const char *fmt, ...) PRINTF_LIKE(4, 5);
#define NOTIFY_CROWD 64 /* with more attachments only subscribers are notified of comings and goings */
/* Send a notice to all clients of the session, through its tape, and to subscribers. Takes over the chunk. */
void notify_session(struct session *s, struct chunk notice);
/* The same without the tape: to each attachment but `except`, and to subscribers. */
void notify_present(struct session *s, struct chunk notice, const struct attachment *except);
void notify_subscribers(struct session *s, struct chunk notice);
/* Report to the server, unless the session is no client's yet. */
void notify_alert(struct session *s, const struct alert *alert);
bool notify_alert_wanted(const struct session *s, enum alert_kind kind); /* a command is set for it */
void notify_put_by(struct buf *b, const struct client *c);               /* ,"by":{name,uid,pid,program} */
/* Announce who asked for the end of a running child, before its first step: a hang in the wind-down then has a visible
 * cause. */
void notify_stopping(struct session *s, const struct client *by, bool kill_now);
void notify_put_where(struct buf *b, const struct client *c);
void notify_wake(struct session *s); /* the tape has a new line */
/* Announce a change to all clients of the session. value: JSON; by: the client that made it, or NULL. */
void notify_changed(struct session *s, const char *what, struct span value, const struct client *by);
void notify_changed_text(struct session *s, const char *what, const char *value, const struct client *by);
