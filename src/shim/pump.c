/* SPDX-License-Identifier: MIT */
#include "shim/pump.h"

#include "base/fd.h"
#include "base/str.h"
#include "dialect/envelope.h"
#include "dialect/jsonrpc.h"
#include "plenum/protocol.h"
#include "shim/daemon.h"
#include "shim/filter.h"
#include "shim/sink.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define BLOCK ((size_t)256 * 1024)
#define REQUEST_MAX ((size_t)32 * 1024 * 1024) /* the attach line: argv and environment, which exec(2) bounds */
#define STDERR_MAX ((size_t)1024 * 1024)
#define ATTACH_WAIT 30000 /* ms for the answer to the attach */
#define RESUME_WAIT 10000 /* ms for the old child of a conversation to end */
#define RESUME_RETRY 100
#define STOP_WAIT 3000 /* ms for the session to end after SIGTERM; the SDKs send SIGKILL after 5 s */

#define CLOSE_WAIT 2000 /* ms for the daemon to close after the child's end */

enum state {
	ATTACHING, /* the answer to the attach is awaited; nothing of stdin is read */
	RETRYING,  /* who has the conversation is ending: again at the deadline */
	RUNNING,
	STOPPING, /* a signal came: the session is ending */
	OVER,
};

struct pump {
	const struct options *o;
	enum state state;
	int sock, signals;
	bool foreign;
	bool own;                 /* the session is the shim's own and ends with it */
	pid_t child;              /* 0: unknown */
	char *session;            /* the name of the first one; others may be on the connection (JSON-RPC) */
	struct sink up, out, err; /* to the daemon, stdout, stderr */
	struct filter filter;
	struct glance typed; /* the line of stdin that is passing */
	bool mid_line;       /* of stdin */
	bool input_over;     /* EOF on stdin */
	bool half_closed;    /* said so to the daemon */
	bool waiting;        /* a prompt has no result yet */
	int64_t deadline;    /* of the state; INT64_MAX without one */
	int64_t resume_until;
	unsigned attempts;
	char request_id[32]; /* of the shim's own open request */
	int signal;          /* that ends us; 0 */
	char *refusal;       /* why the daemon has refused the SDK's newest request that it refused; may be NULL */
	bool child_exited, shutting_down, heard_stderr;
	bool lost; /* a prompt of ours went with the child of a shared session */
	int code;
};

PRINTF_LIKE(2, 3) static void say(struct pump *p, const char *fmt, ...) {
	va_list ap;
	char text[4096];
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	sink_put(&p->err, "plenum-shim: ", 13);
	sink_put(&p->err, text, strlen(text));
	sink_put(&p->err, "\n", 1);
}

static void finish(struct pump *p, int code) {
	p->state = OVER;
	p->code = code;
}

/* --- Requests of our own ------------------------------------------------------------------------------------------ */

static const char *new_id(struct pump *p) {
	char hex[9];
	str_random_hex(hex, 8);
	snprintf(p->request_id, sizeof p->request_id, "plenum-shim-%u-%s", ++p->attempts, hex);
	return p->request_id;
}

static void attach(struct pump *p) {
	struct buf line = BUF_INIT(REQUEST_MAX);
	p->state = ATTACHING;
	p->deadline = now_ms() + ATTACH_WAIT;
	if (!daemon_attach_line(&line, p->o, new_id(p), p->foreign) || !sink_put(&p->up, line.data, line.len)) {
		say(p, "the command line and the environment are too long");
		finish(p, 1);
	}
	buf_free(&line);
}

static void request(struct pump *p, const char *verb, const char *member) {
	struct buf line = BUF_INIT(STDERR_MAX);
	if (p->half_closed) return;
	if (p->mid_line) buf_putc(&line, '\n');
	daemon_begin_request(&line, p->o, new_id(p), verb, member);
	buf_puts(&line, "}}\n");
	if (!line.failed) sink_put(&p->up, line.data, line.len);
	p->mid_line = false;
	buf_free(&line);
}

/* --- Lines from the daemon that are for us ------------------------------------------------------------------------ */

static int64_t number(struct span object, const char *key) {
	int64_t value = 0;
	return span_int(span_member(object, key), &value) ? value : 0;
}

static void put_text(struct pump *p, struct span text, const char *end) {
	size_t len;
	_cleanup_free_ char *plain = span_dup(text, &len);
	if (!plain) return;
	sink_put(&p->err, plain, len);
	sink_put(&p->err, end, strlen(end));
}

/* Without the code, which is for programs. */
static void say_error(struct pump *p, struct span text) {
	_cleanup_free_ char *error = span_dup(text, NULL);
	say(p, "%s", error ? error : "the daemon reported an error without a text");
}

static void say_ignored(struct pump *p, struct span answer) {
	struct span ignored = span_member(answer, "ignored"), element;
	_cleanup_free_ char *name = span_dup(span_member(answer, "session"), NULL);
	_cleanup_free_ char *why = span_dup(span_member(answer, "ignored_why"), NULL);
	struct buf text = BUF_INIT(STDERR_MAX);
	for (size_t at = 0; span_is_array(ignored) && span_next(ignored, &at, &element);) {
		_cleanup_free_ char *word = span_dup(element, NULL);
		if (word) buf_printf(&text, " %.200s", word);
	}
	if (text.len)
		say(p, "session %s: without effect:%s (%s)", name ? name : "", text.data, why ? why : "it runs already");
	buf_free(&text);
}

/* facts: the object with the code. */
static void refused(struct pump *p, struct span facts, struct span text) {
	bool ending = span_is_true(span_member(facts, "ending")); /* of who has the conversation */
	if (ending && now_ms() < p->resume_until) {
		p->state = RETRYING;
		p->deadline = now_ms() + RESUME_RETRY;
		return;
	}
	say_error(p, text);
	finish(p, span_equals(span_member(facts, "code"), PLENUM_E_SHUTTING_DOWN) ? EXIT_NO_DAEMON : 1);
}

/* Return true if the event is about another session of the connection. */
static bool is_of_another(const struct pump *p, struct span event) {
	struct span session = span_member(event, "session");
	_cleanup_free_ char *name = p->o->rpc && p->session ? span_dup(session, NULL) : NULL;
	return name && strcmp(name, p->session) != 0;
}

/* Return the exit code after a signal. */
static int stopped(const struct pump *p) {
	return p->signal == SIGINT ? p->code : 128 + p->signal;
}

/* True: the answer to a request of our own. */
static bool own_answer(struct pump *p, const struct envelope *e) {
	if (!span_equals(e->inner_request_id, p->request_id)) return false;
	p->request_id[0] = 0;
	if (p->state == STOPPING && !p->own) p->input_over = true;                  /* the turn was interrupted */
	if (p->state == STOPPING && p->own && e->is_error.p) finish(p, stopped(p)); /* the session has ended before */
	if (p->state != ATTACHING) return true;
	if (e->is_error.p) {
		refused(p, span_member(e->is_error, "data"), span_member(e->is_error, "message"));
		return true;
	}
	if (span_equals(e->inner_subtype, "error")) {
		refused(p, e->response, span_member(e->response, "error"));
		return true;
	}
	p->state = RUNNING;
	p->deadline = INT64_MAX;
	p->child = (pid_t)number(e->inner_response, "pid");
	p->session = span_dup(span_member(e->inner_response, "session"), NULL);
	say_ignored(p, e->inner_response);
	if (p->foreign) say(p, "the daemon is another user's: its own profile starts the agent, not these options");
	return true;
}

/* The child of a shared session may have been put to sleep. After a crash the shim exits, because the SDK would wait
 * indefinitely. If there are other sessions, the connection ends with the last one. */
static void on_child_exited(struct pump *p, struct span event) {
	struct span lines = span_member(event, "stderr"), line;
	int64_t signal = number(event, "signal");
	if (!p->own && !p->lost && span_is_true(span_member(event, "wanted"))) return;
	for (size_t at = 0; !p->heard_stderr && span_is_array(lines) && span_next(lines, &at, &line);)
		put_text(p, line, "\n");
	if (is_of_another(p, event)) return;
	p->child_exited = true;
	p->code = (int)(signal ? 128 + signal : number(event, "status"));
	if (span_is_true(span_member(event, "stopped"))) { /* by the daemon: its own words and status do not say why */
		_cleanup_free_ char *reason = span_dup(span_member(event, "reason"), NULL);
		if (reason) say(p, "%s", reason);
		p->code = 1;
	}
	if (!p->o->rpc) p->deadline = now_ms() + CLOSE_WAIT;
	if (!p->own) finish(p, p->code ? p->code : 1);
	if (p->o->rpc && p->state == STOPPING) finish(p, stopped(p)); /* the others end with the connection */
}

/* The CLI would have ended at a line that it cannot take; a session that others share goes on, until it is removed. */
static void on_error(struct pump *p, struct span event) {
	struct span code = span_member(event, "code");
	if (span_equals(code, PLENUM_E_ALREADY_SETTLED)) return;
	if (!p->own && span_equals(code, PLENUM_E_CHILD_EXITED)) { /* how it ended comes next */
		p->lost |= !is_of_another(p, event);
		return;
	}
	if (span_equals(code, PLENUM_E_INITIALIZE_REFUSED) && p->refusal)
		say(p, "the initialize of this program was refused: %s", p->refusal);
	else
		say_error(p, span_member(event, "error"));
	if (is_of_another(p, event)) return;
	if (span_equals(code, PLENUM_E_INITIALIZE_REFUSED) || span_equals(code, PLENUM_E_CHANGE_REFUSED)) finish(p, 1);
	if (span_equals(code, PLENUM_E_CANNOT_STOP)) finish(p, 1); /* nothing more comes of that child */
	if (span_equals(code, p->own ? PLENUM_E_BAD_LINE : PLENUM_E_NOT_ATTACHED)) finish(p, 1);
}

static void on_event(struct pump *p, struct span event) {
	struct span name = span_member(event, "event");
	if (span_equals(name, PLENUM_EV_STDERR)) {
		p->heard_stderr = true;
		put_text(p, span_member(event, "data"), "");
	} else if (span_equals(name, PLENUM_EV_CHILD_EXITED)) {
		on_child_exited(p, event);
	} else if (span_equals(name, PLENUM_EV_ERROR)) {
		on_error(p, event);
	} else if (span_equals(name, PLENUM_EV_SHUTTING_DOWN)) {
		p->shutting_down = true;
	} else if (span_equals(name, PLENUM_EV_GAP)) {
		say(p, "lines were lost, because this program did not read them in time");
	}
}

static bool on_line(void *ctx, const char *line, size_t n) {
	struct pump *p = ctx;
	struct envelope e;
	if (p->o->rpc) { /* a line with an id, or a notice */
		if (!jsonrpc_scan(line, n, &e, "sessionId")) return false;
		if (e.inner_request_id.p) return own_answer(p, &e);
		if (p->state != OVER) on_event(p, e.request);
		return true;
	}
	if (!scan_envelope(line, n, &e)) return false;
	if (!span_equals(e.type, "control_response")) {
		if (p->state != OVER) on_event(p, (struct span){line, n});
		return true;
	}
	if (own_answer(p, &e)) return true;
	/* Keep the daemon's reason, which the CLI's own answers have no code for: it may be why we end. */
	bool coded = span_member(e.response, "code").p;
	char *error = coded ? span_dup(span_member(e.response, "error"), NULL) : NULL;
	if (error) {
		free(p->refusal);
		p->refusal = error;
	}
	return false;
}

/* --- Bytes both ways ---------------------------------------------------------------------------------------------- */

/* What of the SDK's lines the shim must know: that a prompt waits for its result, and that it has a uuid. */
static void watch_input(struct pump *p, const char *data, size_t n) {
	const char *end = data + n;
	if (p->o->rpc && n) p->mid_line = end[-1] != '\n';
	while (data < end && !p->o->rpc) {
		const char *lf = memchr(data, '\n', (size_t)(end - data));
		bool known = glance_knows(&p->typed) && (p->filter.uuids || !glance_is(&p->typed, "user", NULL));
		if (!known) glance_feed(&p->typed, data, (size_t)((lf ? lf : end) - data));
		if (glance_is(&p->typed, "user", NULL)) {
			p->filter.uuids |= p->typed.has_uuid;
			p->filter.answered = false;
			p->waiting = true;
		}
		p->mid_line = !lf;
		if (lf) glance_start(&p->typed);
		data = lf ? lf + 1 : end;
	}
}

static void read_input(struct pump *p) {
	char *room = sink_room(&p->up, BLOCK);
	ssize_t n = room ? fd_read(STDIN_FILENO, room, BLOCK) : -1;
	if (n < 0 && errno == EAGAIN) return;
	if (n <= 0) {
		p->input_over = true;
		return;
	}
	watch_input(p, room, (size_t)n);
	sink_commit(&p->up, (size_t)n);
}

/* The connection has ended. Report the reason unless the end of the child was reported before. */
static void hung_up(struct pump *p) {
	if (p->state == STOPPING && p->signal != SIGINT) {
		finish(p, 128 + p->signal);
		return;
	}
	bool asked = p->half_closed || p->state == STOPPING;
	bool alive = !p->own || p->o->rpc; /* its sessions need not have a child at the end */
	bool clean = p->child_exited || (asked && alive && !(p->waiting && !p->filter.answered));
	bool cut_off = p->shutting_down && !asked && p->code == 0;
	if (!p->child_exited) p->code = p->filter.last_error ? 1 : 0;
	if (clean && !cut_off) {
		/* SIGINT ends the CLI with 0, independent of the turn. Here the end of its input ends it, which would return
		 * the error of the turn. */
		bool forgiven = p->signal == SIGINT && p->code == 1 && p->filter.last_error;
		finish(p, forgiven ? 0 : p->code);
		return;
	}
	if (p->shutting_down)
		say(p, "the daemon was stopped");
	else if (p->foreign && p->state == ATTACHING) /* the connection of an unknown user is closed without a message */
		say(p, "the daemon belongs to another user and does not take this one; see allow_uids in plenum.conf(5)");
	else
		say(p, "the daemon closed the connection (did plenumd die?)");
	finish(p, EXIT_NO_DAEMON);
}

/* Return true if the child would end by this signal: the CLI has not started up yet. Source: proc(5), status. */
static bool ends_child(const struct pump *p) {
	char path[40], line[128];
	unsigned long long mask, kept = 0;
	unsigned found = 0;
	snprintf(path, sizeof path, "/proc/%d/status", (int)p->child);
	FILE *f = p->child > 0 ? fopen(path, "re") : NULL;
	while (f && fgets(line, sizeof line, f)) { /* blocked, ignored, caught */
		if (sscanf(line, "Sig%*[BIC]%*[a-z]: %llx", &mask) != 1) continue;
		kept |= mask;
		found++;
	}
	if (f) fclose(f);
	return found == 3 && !(kept >> (p->signal - 1) & 1);
}

/* SIGTERM and SIGHUP end the session without further output; SIGINT ends the turn after its last frames. The input of
 * a stopped session is not ended: the agent withdraws its open questions first. */
static void on_signal(struct pump *p) {
	struct signalfd_siginfo info;
	if (read(p->signals, &info, sizeof info) != sizeof info) return;
	bool again = p->state == STOPPING;
	p->signal = (int)info.ssi_signo;
	p->filter.mute = p->signal != SIGINT;
	bool early = p->own && ends_child(p);
	if (again || early || p->state != RUNNING || (p->half_closed && p->signal != SIGINT)) {
		finish(p, 128 + p->signal);
		return;
	}
	bool leave = !p->own && (p->signal != SIGINT || p->o->rpc);
	if (p->own)
		request(p, PLENUM_STOP, "\"how\":\"graceful\"");
	else if (!leave)
		request(p, "interrupt", "");
	p->state = STOPPING;
	p->deadline = now_ms() + STOP_WAIT;
	if (leave) finish(p, 128 + p->signal);
}

static void on_deadline(struct pump *p) {
	if (now_ms() < p->deadline) return;
	p->deadline = INT64_MAX;
	if (p->state == RETRYING) {
		attach(p);
	} else if (p->state == ATTACHING) {
		say(p, "the daemon does not answer");
		finish(p, EXIT_NO_DAEMON);
	} else if (p->child_exited || p->state == STOPPING) {
		finish(p, p->state == STOPPING ? 128 + p->signal : p->code);
	}
}

/* --- The loop ----------------------------------------------------------------------------------------------------- */

enum { FD_IN, FD_SOCK, FD_OUT, FD_ERR, FD_SIGNAL, FD_N };

static void watch(struct pollfd *slot, int fd, short events) {
	*slot = (struct pollfd){.fd = events ? fd : -1, .events = events};
}

static void prepare(struct pump *p, struct pollfd *fds) {
	bool reads_in = p->state == RUNNING && !p->input_over && !sink_pending(&p->up);
	short sock = (short)((sink_pending(&p->out) ? 0 : POLLIN) | (sink_pending(&p->up) ? POLLOUT : 0));
	watch(&fds[FD_IN], STDIN_FILENO, reads_in ? POLLIN : 0);
	watch(&fds[FD_SOCK], p->sock, sock);
	watch(&fds[FD_OUT], p->out.fd, sink_pending(&p->out) ? POLLOUT : 0);
	watch(&fds[FD_ERR], p->err.fd, sink_pending(&p->err) ? POLLOUT : 0);
	watch(&fds[FD_SIGNAL], p->signals, POLLIN);
}

static void turn(struct pump *p, char *block) {
	struct pollfd fds[FD_N];
	prepare(p, fds);
	int64_t left = MAX((int64_t)0, MIN(p->deadline - now_ms(), (int64_t)ATTACH_WAIT));
	if (poll(fds, FD_N, p->deadline == INT64_MAX ? -1 : (int)left) < 0) return;
	if (fds[FD_SIGNAL].revents) on_signal(p);
	if (fds[FD_IN].revents && p->state == RUNNING) read_input(p);
	if (fds[FD_OUT].revents) sink_flush(&p->out);
	if (fds[FD_ERR].revents) sink_flush(&p->err);
	if (fds[FD_SOCK].revents & ~POLLOUT && p->state != OVER && !sink_pending(&p->out)) {
		ssize_t n = recv(p->sock, block, BLOCK, MSG_DONTWAIT);
		if (n > 0)
			filter_feed(&p->filter, block, (size_t)n);
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			hung_up(p);
		sink_flush(&p->out);
	}
	sink_flush(&p->up);
	if (p->input_over && !p->half_closed && !sink_pending(&p->up)) {
		shutdown(p->sock, SHUT_WR);
		p->half_closed = true;
	}
	if (p->state != OVER) on_deadline(p);
}

/* Write the rest for the SDK; a signal ends the wait. */
static void drain(struct pump *p) {
	while (sink_pending(&p->out) || sink_pending(&p->err)) {
		struct pollfd fds[FD_N];
		prepare(p, fds);
		fds[FD_IN].fd = fds[FD_SOCK].fd = -1;
		if (poll(fds, FD_N, p->signal ? 100 : -1) == 0) return;
		if (fds[FD_SIGNAL].revents) {
			on_signal(p);
			return;
		}
		if (fds[FD_OUT].revents) sink_flush(&p->out);
		if (fds[FD_ERR].revents) sink_flush(&p->err);
	}
}

int pump_run(const struct options *o) {
	struct pump p = {.o = o, .signals = -1, .deadline = INT64_MAX, .resume_until = now_ms() + RESUME_WAIT};
	struct plenum *daemon = daemon_connect(&p.foreign);
	if (!daemon) return EXIT_NO_DAEMON;
	p.sock = plenum_fd(daemon);
	p.own = o->own && !p.foreign;
	signal(SIGPIPE, SIG_IGN);
	p.signals = fd_signals((const int[]){SIGTERM, SIGINT, SIGHUP, 0});
	char *block = malloc(BLOCK);
	if (!block || p.signals < 0) return 1;
	sink_init(&p.up, p.sock, REQUEST_MAX + BLOCK);
	sink_init(&p.out, STDOUT_FILENO, FILTER_HELD + 2 * BLOCK);
	sink_init(&p.err, STDERR_FILENO, STDERR_MAX);
	filter_init(&p.filter, o, &p.out);
	p.filter.mine = on_line;
	p.filter.ctx = &p;
	attach(&p);
	while (p.state != OVER) turn(&p, block);
	drain(&p);
	if (p.out.error) { /* the session ran to its end, but the SDK has only a part of the output */
		say(&p, "standard output: %s (the rest of the output is lost)", strerror(p.out.error));
		drain(&p);
		if (!p.code) p.code = 1;
	}
	filter_free(&p.filter);
	sink_free(&p.up);
	sink_free(&p.out);
	sink_free(&p.err);
	free(p.refusal);
	free(p.session);
	free(block);
	close(p.signals);
	plenum_close(daemon);
	return p.code;
}
