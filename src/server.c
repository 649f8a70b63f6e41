/* SPDX-License-Identifier: MIT */
#include "server.h"

#include "attention.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/str.h"
#include "config/config.h"
#include "core/attachment.h"
#include "core/core.h"
#include "core/descent.h"
#include "core/from_client.h"
#include "core/notify.h"
#include "core/pool.h"
#include "core/sessions.h"
#include "core/trust.h"
#include "core/warm.h"
#include "excuse.h"
#include "io/listen.h"
#include "io/manager.h"
#include "io/pressure.h"
#include "plenum/protocol.h"
#include "store/store.h"
#include "upgrade.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sysexits.h>

#define GOODBYE_MS 1000    /* for the last lines of clients that still read */
#define CONFIG_MS 5000     /* a writer may be busy with the configuration at the moment of an upgrade */
#define CONFIG_STEP_MS 200 /* between two reads of it */
#define EXCUSE_MS 10000    /* a daemon that cannot start answers clients; less, and they would start it too often */
#define STATUS_MS 1000     /* between two STATUS= messages */
#define TRIM_MS 1000       /* after clients came or left, to return their memory */
#define TRIM_CLIENTS 64    /* or after this many left: a trim of more memory takes longer */
#define REFUSED_LOG_EVERY 100

struct asker {
	uint64_t client;
	char *id; /* raw JSON */
};

struct server {
	struct verbs_host host; /* first: router.server points to it */
	const struct server_options *options;
	struct loop *loop;
	struct children *children;
	struct router *router;
	struct settings *settings;
	struct listener *listener;
	struct store *store;
	struct attention *attention;
	struct pressure *pressure; /* NULL: not available, or not wanted */
	struct manager manager;
	struct loop_timer trim_timer, watchdog_timer, status_timer, goodbye_timer;
	struct loop_task leave_task;
	struct errand reading; /* the configuration, for SIGHUP */
	struct loop_task read_task;
	struct loop_signal term, intr, hup, usr1, usr2;
	int inherited; /* the service manager's socket; -1: none */
	bool stopping, leaving;
	bool trim_heap; /* with the next trim: clients have come or left */
	unsigned gone;  /* clients since the last trim of the heap */
	unsigned strangers;
	struct upgrade *upgrade;
	bool left;            /* the state was handed to the new binary */
	struct asker *askers; /* of the current upgrade */
	size_t n_askers;
	int status;
};

static struct server *server_of(struct router *r) {
	return (struct server *)r->server;
}

static void arm_trim(struct server *srv) {
	if (!loop_timer_pending(&srv->trim_timer)) loop_timer_set(&srv->trim_timer, TRIM_MS);
}

static void trim_soon(struct server *srv) {
	srv->trim_heap = true;
	arm_trim(srv);
}

static void on_changed(struct router *r) {
	struct server *srv = server_of(r);
	store_changed(srv->store);
	if (!loop_timer_pending(&srv->status_timer) && srv->manager.fd >= 0) loop_timer_set(&srv->status_timer, STATUS_MS);
}

static const char *on_keep(struct router *r, const struct session *s, struct error *error) {
	return store_keep(server_of(r)->store, s, error);
}

/* --- connections -------------------------------------------------------------------------------------------------- */

/* Watch the process of a new client; refuse the client without a descriptor for that, because it could answer
 * nothing. */
static bool watch_peer(struct server *srv, int conn, const struct peer *peer, struct watch **watch,
					   enum origin *origin) {
	struct watches *all = &srv->router->watches;
	*origin = ORIGIN_NEW;
	if (peer->pid > 0 && (*watch = watch_share(all, peer->pid))) return true;
	int fd = peer->pid > 0 ? listen_watch_peer(srv->listener, conn, peer) : -1;
	*watch = NULL;
	if (fd >= 0) return (*watch = watch_take(all, peer->pid, fd)) != NULL;
	*origin = peer->pid <= 0    ? ORIGIN_ABROAD
			  : errno == ESRCH  ? ORIGIN_GONE
			  : errno == ESTALE ? ORIGIN_UNSURE
								: ORIGIN_UNWATCHED;
	return *origin == ORIGIN_ABROAD || (errno != EMFILE && errno != ENFILE && errno != ENOMEM);
}

/* Return why the peer cannot be a client: an error code, with a text; NULL: it can. Some places and descriptors are
 * reserved for the daemon's user and root. */
static const char *no_place(struct server *srv, const struct peer *peer, struct error *why) {
	struct router *r = srv->router;
	size_t max = srv->settings->max_clients;
	bool limited = share_is_limited(&r->shares, peer->uid);
	if (!share_allows(&r->shares, peer->uid, SHARE_CLIENTS, 1, why)) return PLENUM_E_SHARE_EXCEEDED;
	if (r->n_clients + (limited ? share_reserve(max) : 0) >= max)
		error_set(why, "there are too many connections (max_clients)");
	else if (limited && fd_is_short(SHARE_RESERVE_MAX))
		error_set(why, "too few descriptors are free (ulimit -n, LimitNOFILE): connect again later");
	else
		return NULL;
	return PLENUM_E_TOO_MANY;
}

static void on_accepted(void *arg, int fd, const struct peer *peer) {
	struct server *srv = arg;
	struct router *r = srv->router;
	struct error why;
	if (peer->uid != geteuid() && peer->uid != 0 && !access_allows_peer(&srv->settings->allow, peer, fd)) {
		if (srv->strangers++ % REFUSED_LOG_EVERY == 0)
			log_warn("refused a connection of uid %u, pid %d (allow_uids, allow_groups)", peer->uid, peer->pid);
		close(fd);
		return;
	}
	const char *code = no_place(srv, peer, &why);
	if (code) {
		excuse_send(fd, code, why.text);
		close(fd);
		return;
	}
	struct watch *watch;
	enum origin origin;
	if (!watch_peer(srv, fd, peer, &watch, &origin)) {
		excuse_send(fd, PLENUM_E_TOO_MANY, "the daemon cannot watch one client more: connect again later");
		close(fd);
		return;
	}
	struct client *c = client_new(srv->loop, &r->pool, &r->shares, fd, peer, watch, origin,
								  srv->settings->limits.client_line, &from_client_events, r);
	if (!c) {
		log_error("out of memory, a connection was closed");
		return;
	}
	trim_soon(srv);
	router_add_client(r, c);
	trust_meet(r, c);
}

/* --- clients waiting for an upgrade ------------------------------------------------------------------------------ */

static void answer_asker(struct server *srv, const struct asker *a, const char *error) {
	struct client *c = router_client(srv->router, a->client);
	struct span id = span_of(a->id);
	struct buf b = NOTICE_INIT;
	if (!c) return; /* disconnected */
	if (error) {
		notify_fail(c, id, PLENUM_E_SPAWN_FAILED, "the old plenumd goes on: %s", error);
		return;
	}
	c->dialect->put_success(&b, id, "{\"upgraded\":true,\"version\":\"" PLENUM_VERSION "\"}");
	client_post(c, notice_chunk(&b));
}

static void drop_askers(struct server *srv) {
	for (size_t i = 0; i < srv->n_askers; i++) free(srv->askers[i].id);
	free(srv->askers);
	srv->askers = NULL;
	srv->n_askers = 0;
}

static bool is_asker(struct router *r, const struct client *c) {
	const struct server *srv = server_of(r);
	for (size_t i = 0; i < srv->n_askers; i++)
		if (srv->askers[i].client == c->id) return true;
	return false;
}

/* A client that has ended its input is closed after its last answer; one in a session, when that is looked at. */
static void answer_upgrade(struct server *srv, const char *error) {
	struct client *c;
	for (size_t i = 0; i < srv->n_askers; i++) answer_asker(srv, &srv->askers[i], error);
	drop_askers(srv);
	LIST_FOR_EACH (c, &srv->router->clients, struct client, node) {
		if (!c->attachment)
			attachment_close_ended(c);
		else if (c->ended)
			session_changed(c->attachment->session);
	}
}

/* --- stopping ----------------------------------------------------------------------------------------------------- */

static void on_stopped(void *arg) {
	struct server *srv = arg;
	struct client *c;
	if (srv->leaving) return;
	srv->leaving = true;
	store_save(srv->store);
	LIST_FOR_EACH (c, &srv->router->clients, struct client, node) client_close(c);
	loop_timer_set(&srv->goodbye_timer, srv->router->n_clients ? GOODBYE_MS : 0);
}

static void on_goodbye(void *arg) {
	struct server *srv = arg;
	loop_stop(srv->loop);
}

/* Not here: the end of the last session is reported at the end of the turn, to clients that still read. */
static void check_stopped(struct server *srv) {
	if (srv->stopping && pool_children(srv->router) == 0 && descent_finish(srv->router))
		loop_defer(srv->loop, &srv->leave_task);
}

static void tell_all_stopping(struct server *srv) {
	struct client *c;
	LIST_FOR_EACH (c, &srv->router->clients, struct client, node) {
		struct buf b = NOTICE_INIT;
		if (!c->carrier) { /* once a connection */
			notice_begin(&b, PLENUM_EV_SHUTTING_DOWN, NULL);
			client_tell(c, notice_end(&b));
		}
		client_release(c); /* its wait ends with an error */
	}
}

static void begin_stop(struct server *srv, bool kill_now) {
	bool again = srv->stopping;
	srv->stopping = true;
	srv->router->shutting_down = true;
	if (!again) {
		log_info("stopping: %zu children are running", pool_children(srv->router));
		manager_send_once(&srv->manager, "STOPPING=1\nSTATUS=stopping the sessions");
		listen_pause(srv->listener);
		tell_all_stopping(srv);
		answer_upgrade(srv, "the daemon is shutting down"); /* the current upgrade is cancelled */
	}
	for (struct session *s = srv->router->sessions, *next; s; s = next) {
		next = s->hh.next;
		session_quit(s, kill_now || again);
	}
	warm_stop(srv->router->warm, kill_now || again);
	if (kill_now || again) descent_hurry(srv->router);
	check_stopped(srv);
}

static void on_term(void *arg) {
	begin_stop(arg, false);
}

static void shut_down(struct verbs_host *h, bool kill_now) {
	begin_stop((struct server *)h, kill_now);
}

/* --- the router's questions --------------------------------------------------------------------------------------- */

static void on_session_over(struct router *r, struct session *s) {
	sessions_remove(r, s, "stopped");
	check_stopped(server_of(r));
}

static void on_router_changed(struct router *r) {
	on_changed(r);
	if (server_of(r)->stopping) check_stopped(server_of(r));
}

static void on_attention(struct router *r, const struct session *s, const struct alert *alert) {
	struct server *srv = server_of(r);
	attention_call(srv->attention, s, alert);
}

static void on_trim(void *arg) {
	struct server *srv = arg;
	bool busy = lines_pool_trim(&srv->router->pool, false);
	if (busy) arm_trim(srv);
	if (srv->trim_heap || !busy) malloc_trim(0);
	srv->trim_heap = false;
	srv->gone = 0;
}

static void on_pool_busy(struct lines_pool *pool) {
	arm_trim(server_of(CONTAINER_OF(pool, struct router, pool)));
}

static void on_client_gone(struct router *r) {
	struct server *srv = server_of(r);
	trim_soon(srv);
	if (++srv->gone == TRIM_CLIENTS) loop_timer_set(&srv->trim_timer, 0);
	if (srv->listener) listen_fd_freed(srv->listener);
	if (srv->leaving && r->n_clients == 0) loop_timer_set(&srv->goodbye_timer, 0);
}

static bool is_helper(struct router *r, pid_t pid) {
	return attention_is_helper(server_of(r)->attention, pid);
}

static const struct router_events events = {
	.verb = verbs_run,
	.changed = on_router_changed,
	.keep = on_keep,
	.attention = on_attention,
	.client_gone = on_client_gone,
	.is_helper = is_helper,
	.is_asker = is_asker,
	.session_over = on_session_over,
};

/* --- configuration ------------------------------------------------------------------------------------------------ */

static void on_pressure(void *arg) {
	struct server *srv = arg;
	if (srv->stopping) return;
	pool_relieve(srv->router);
	(void)lines_pool_trim(&srv->router->pool, true);
	malloc_trim(0);
}

static void arm_pressure(struct server *srv) {
	struct error error;
	if (!srv->settings->memory_pressure) {
		pressure_close(srv->pressure);
		srv->pressure = NULL;
	} else if (!srv->pressure) {
		srv->pressure = pressure_open(srv->loop, on_pressure, srv, &error);
		log_debug("memory pressure: %s", srv->pressure ? pressure_path(srv->pressure) : error.text);
	}
}

static bool load(struct server *srv, const struct buf *text, struct errors *errors) {
	struct settings *fresh = config_load(text, errors);
	for (size_t i = 0; i < errors->n; i++) log_error("%s", errors_text(errors, i));
	if (!fresh) return false;
	settings_unref(srv->settings);
	srv->settings = fresh;
	if (!srv->options->check) log_set_level((enum log_level)fresh->log_level);
	return true;
}

static bool reload(struct verbs_host *h, const struct buf *text, struct error *error) {
	struct server *srv = (struct server *)h;
	struct errors errors = {0};
	char ready[80];
	snprintf(ready, sizeof ready, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)now_us());
	manager_send_once(&srv->manager, ready);
	bool ok = load(srv, text, &errors);
	if (ok) {
		settings_unref(srv->router->settings);
		srv->router->settings = settings_ref(srv->settings);
		shares_limit(&srv->router->shares, &srv->settings->limits);
		for (struct session *s = srv->router->sessions; s; s = s->hh.next) sessions_renew_profile(s);
		if (!srv->stopping) warm_configure(srv->router->warm);
		arm_pressure(srv);
		log_info("the configuration was read again; running sessions keep theirs until their next start");
	} else {
		errors_sum_up(&errors, error);
		log_error("the old configuration is kept");
	}
	errors_free(&errors);
	manager_send_once(&srv->manager, "READY=1");
	return ok;
}

static void on_read(void *arg, enum errand_end end) {
	struct error error;
	struct server *srv = arg;
	if (end == ERRAND_DONE)
		reload(&srv->host, &srv->reading.answer, &error);
	else
		log_error("the old configuration is kept: its files %s",
				  end == ERRAND_TIMEOUT ? "do not answer (outside_timeout)" : "could not be read");
	buf_free(&srv->reading.answer);
}

/* A signal during a read of the files repeats the read. */
static void read_files(void *arg) {
	struct error error;
	struct server *srv = arg;
	struct buf request = BUF_INIT(PATH_MAX + 1);
	errand_drop(&srv->reading);
	_cleanup_free_ char *place = config_ask(&request, srv->options->config);
	struct errand_spec spec = {.kind = CONFIG_ERRAND,
							   .request = request.data,
							   .n = request.len,
							   .place = place ? place : "",
							   .uid = getuid(),
							   .limit = srv->settings->outside_timeout,
							   .answer_max = CONFIG_MAX};
	enum child_result r = errand_begin(&srv->reading, srv->children, &spec, on_read, srv, &error);
	if (r != CHILD_OK) log_error("the old configuration is kept: %s", error.text);
	buf_free(&request);
}

/* Called once for each signal that has come: a process for each would be a long turn. */
static void on_hup(void *arg) {
	struct server *srv = arg;
	loop_defer(srv->loop, &srv->read_task);
}

static void on_usr1(void *arg) {
	struct server *srv = arg;
	struct error error;
	if (!listen_renew(srv->listener, &error)) log_error("the socket cannot be made again: %s", error.text);
}

/* --- systemd ------------------------------------------------------------------------------------------------------ */

static void on_watchdog(void *arg) {
	struct server *srv = arg;
	manager_send(&srv->manager, "WATCHDOG=1");
	loop_timer_set(&srv->watchdog_timer, srv->manager.watchdog);
}

static void on_status(void *arg) {
	struct server *srv = arg;
	char text[160];
	snprintf(text, sizeof text, "STATUS=%zu sessions, %zu running, %zu clients", srv->router->n_sessions,
			 pool_children(srv->router), srv->router->n_clients);
	manager_send(&srv->manager, text);
}

/* --- upgrade ------------------------------------------------------------------------------------------------------ */

static void carry_listener(struct carry *c, struct server *srv) {
	struct listen_parts parts = {.fd = -1, .lock = -1};
	char *path = c->saving ? (char *)(uintptr_t)listen_path(srv->listener) : NULL;
	if (c->saving) listen_suspend(srv->listener, &parts);
	carry_name(c, &path);
	carry_fd(c, &parts.fd, S_IFSOCK);
	carry_fd(c, &parts.lock, S_IFREG);
	CARRY(c, parts.mode);
	if (c->saving) return;
	if (carry_ok(c) && parts.fd >= 0) srv->listener = listen_resume(srv->loop, path, &parts, on_accepted, srv);
	free(path);
	if (!srv->listener)
		carry_fail(c, "the socket cannot be taken over");
	else
		srv->host.socket_path = listen_path(srv->listener);
}

static struct asker *add_asker(struct server *srv) {
	struct asker *more = realloc(srv->askers, (srv->n_askers + 1) * sizeof *more);
	if (!more) return NULL;
	srv->askers = more;
	more[srv->n_askers] = (struct asker){0};
	return &more[srv->n_askers++];
}

static void carry_askers(struct carry *c, struct server *srv) {
	size_t n = carry_count(c, srv->n_askers);
	for (size_t i = 0; i < n && carry_ok(c); i++) {
		struct asker *a = c->saving ? &srv->askers[i] : add_asker(srv);
		if (!a) {
			carry_fail(c, "out of memory");
			return;
		}
		CARRY(c, a->client);
		carry_name(c, &a->id);
	}
}

static void carry_server(struct carry *c, void *arg) {
	struct server *srv = arg;
	if (c->saving && srv->stopping) carry_fail(c, "the daemon is shutting down");
	carry_mark(c, "server");
	CARRY(c, srv->host.started_ms);
	carry_askers(c, srv);
	carry_fd(c, &srv->manager.fd, S_IFSOCK);
	CARRY(c, srv->manager.watchdog);
	carry_listener(c, srv);
	store_carry(c, srv->store, srv->host.socket_path);
	srv->host.state_dir = store_dir(srv->store);
	if (!c->saving && !carry_ok(c)) return;
	core_carry(c, srv->router);
	attention_carry(c, srv->attention);
}

static void on_leave(void *arg) {
	struct server *srv = arg;
	log_info("the binary at %s takes over", upgrade_path(srv->upgrade));
	manager_send(&srv->manager, "STATUS=upgrading");
	srv->left = true;
	warm_stop(srv->router->warm, true); /* not in use yet: the new binary starts its own */
	descent_settle(srv->router);
}

static void on_upgrade_failed(void *arg, const char *error) {
	struct server *srv = arg;
	if (srv->left) warm_configure(srv->router->warm);
	srv->left = false;
	log_error("no upgrade, this plenumd goes on: %s", error);
	answer_upgrade(srv, error);
}

static void begin_upgrade(struct server *srv) {
	if (srv->stopping)
		on_upgrade_failed(srv, "the daemon is shutting down");
	else
		upgrade_start(srv->upgrade);
}

static const struct upgrade_host upgrade_host = {.carry = carry_server, .leave = on_leave, .failed = on_upgrade_failed};

static void upgrade(struct verbs_host *h, struct client *c, struct span id) {
	struct server *srv = (struct server *)h;
	char *copy = strndup(id.p, id.n);
	struct asker *a = copy ? add_asker(srv) : NULL;
	if (!a) {
		free(copy);
		notify_fail(c, id, PLENUM_E_INTERNAL, "out of memory");
		return;
	}
	*a = (struct asker){c->id, copy};
	begin_upgrade(srv);
}

static void on_usr2(void *arg) {
	begin_upgrade(arg);
}

/* Restore the state in the new binary. */
static int resume(struct server *srv) {
	struct error error;
	bool ok = upgrade_read(srv->options->resume, carry_server, srv, &error);
	if (srv->options->check) {
		fprintf(stderr, "%s\n", ok ? UPGRADE_READ : error.text);
		_exit(ok ? EX_OK : EX_SOFTWARE); /* everything in memory refers to another process's descriptors */
	}
	if (!ok) { /* impossible: the trial succeeded */
		log_error("the state of the plenumd before this one is lost: %s", error.text);
		_exit(EX_SOFTWARE);
	}
	core_resume(srv->router);
	children_reap(srv->children);
	on_changed(srv->router);
	log_info("upgraded: %zu sessions, %zu clients go on", srv->router->n_sessions, srv->router->n_clients);
	answer_upgrade(srv, NULL);
	return EX_OK;
}

/* --- starting ----------------------------------------------------------------------------------------------------- */

static char *choose_path(struct server *srv) {
	char path[PATH_SOCKET_MAX + 1];
	const char *why, *named = srv->options->socket ? srv->options->socket : srv->settings->socket;
	if (srv->inherited >= 0) {
		struct sockaddr_un at = {0};
		socklen_t len = sizeof at;
		if (getsockname(srv->inherited, (struct sockaddr *)&at, &len) < 0 || at.sun_path[0] != '/') return NULL;
		return strndup(at.sun_path, sizeof at.sun_path);
	}
	if (named) return strdup(named);
	if (path_socket(path, sizeof path, &why)) return strdup(path);
	const char *variable = getenv("PLENUM_SOCKET"), *runtime = getenv("XDG_RUNTIME_DIR");
	_cleanup_free_ char *wrong = variable && *variable
									 ? strdup(variable)
									 : str_printf("%s/" PLENUM_SOCKET_SUBPATH, runtime ? runtime : "");
	if (wrong) log_error("%s: %s has %zu bytes (set PLENUM_SOCKET or --socket)", why, wrong, strlen(wrong));
	return NULL;
}

/* Outside of a login (su, cron) the path is one that only a root service can use. */
static void advise_on_path(struct server *srv) {
	const char *named = getenv("PLENUM_SOCKET"), *problem = path_runtime_dir_problem();
	if (srv->options->socket || srv->settings->socket || (named && *named) || !problem) return;
	log_error("%s: log in through PAM (su and cron do not set it), or set PLENUM_SOCKET for daemon and tools alike",
			  problem);
}

/* Lock the place of the socket; no client can connect yet. */
static int claim_place(struct server *srv) {
	struct error error;
	_cleanup_free_ char *path = choose_path(srv);
	mode_t mode = srv->settings->allow.n_uids || srv->settings->allow.n_gids ? 0666 : 0600;
	if (!path) return EX_CANTCREAT;
	enum listen_result r = listen_claim(&srv->listener, srv->loop, path, srv->inherited, mode, on_accepted, srv,
										&error);
	if (r != LISTEN_OK) {
		log_error("%s", error.text);
		if (r != LISTEN_RUNNING && srv->inherited < 0) advise_on_path(srv);
		return r == LISTEN_RUNNING ? EX_UNAVAILABLE : EX_CANTCREAT;
	}
	srv->host.socket_path = listen_path(srv->listener);
	return EX_OK;
}

/* Open the socket last: without both locks this daemon ends again at once. */
static int open_all(struct server *srv) {
	struct error error;
	int status = claim_place(srv);
	if (status != EX_OK) return status;
	/* Two daemons with one directory would each resume the same conversations. */
	if (!store_open(srv->store, srv->host.socket_path)) return EX_UNAVAILABLE;
	srv->host.state_dir = store_dir(srv->store);
	if (listen_begin(srv->listener, &error)) return EX_OK;
	log_error("%s", error.text);
	advise_on_path(srv);
	return EX_CANTCREAT;
}

static bool make_parts(struct server *srv) {
	srv->loop = loop_new();
	srv->children = srv->loop ? children_new(srv->loop) : NULL;
	srv->router = srv->children ? core_new(srv->loop, srv->children, srv->settings, &events, &srv->host) : NULL;
	srv->store = srv->router ? store_new(srv->loop, srv->router) : NULL;
	srv->attention = srv->store ? attention_new(srv->loop, srv->children, srv->router) : NULL;
	srv->upgrade = srv->attention ? upgrade_new(srv->loop, srv->children, srv->options->argv, &upgrade_host, srv)
								  : NULL;
	if (!srv->upgrade) return false;
	loop_task_init(&srv->leave_task, on_stopped, srv);
	loop_task_init(&srv->read_task, read_files, srv);
	loop_timer_init(&srv->trim_timer, srv->loop, on_trim, srv);
	srv->router->pool.on_busy = on_pool_busy;
	loop_timer_init(&srv->watchdog_timer, srv->loop, on_watchdog, srv);
	loop_timer_init(&srv->status_timer, srv->loop, on_status, srv);
	loop_timer_init(&srv->goodbye_timer, srv->loop, on_goodbye, srv);
	if (fd_raise_nofile(&srv->router->nofile) < 0) log_debug("the limit on descriptors could not be raised");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is handled like a full disk */
	loop_signal_init(&srv->term, srv->loop, SIGTERM, on_term, srv);
	loop_signal_init(&srv->intr, srv->loop, SIGINT, on_term, srv);
	loop_signal_init(&srv->hup, srv->loop, SIGHUP, on_hup, srv);
	loop_signal_init(&srv->usr1, srv->loop, SIGUSR1, on_usr1, srv);
	loop_signal_init(&srv->usr2, srv->loop, SIGUSR2, on_usr2, srv);
	upgrade_unblock();
	return true;
}

/* Free what make_parts() made before it failed. */
static void drop_parts(struct server *srv) {
	upgrade_free(srv->upgrade);
	attention_free(srv->attention);
	store_free(srv->store);
	core_free(srv->router);
	children_free(srv->children);
	loop_free(srv->loop);
	settings_unref(srv->settings);
}

/* Free memory; nothing is written to disk any more. */
static void clean_up(struct server *srv) {
	struct client *c;
	upgrade_free(srv->upgrade); /* it may be about to serialize the parts freed below */
	store_free(srv->store);     /* first: the next owner of the socket must find the directory unlocked */
	srv->store = NULL;
	listen_close(srv->listener);
	srv->listener = NULL;
	while ((c = LIST_TOP(&srv->router->clients, struct client, node)) != NULL) client_kill(c); /* and its channels */
	trust_ask_no_more(srv->router);
	pressure_close(srv->pressure);
	warm_forget(srv->router->warm);
	for (struct session *s = srv->router->sessions, *next; s; s = next) {
		next = s->hh.next;
		sessions_remove(srv->router, s, "shutting down");
	}
	loop_finish(srv->loop);
	loop_timer_stop(&srv->trim_timer);
	loop_timer_stop(&srv->watchdog_timer);
	loop_timer_stop(&srv->status_timer);
	loop_timer_stop(&srv->goodbye_timer);
	errand_drop(&srv->reading);
	attention_free(srv->attention);
	drop_askers(srv);
	core_free(srv->router);
	children_free(srv->children);
	loop_signal_stop(&srv->term);
	loop_signal_stop(&srv->intr);
	loop_signal_stop(&srv->hup);
	loop_signal_stop(&srv->usr1);
	loop_signal_stop(&srv->usr2);
	loop_free(srv->loop);
	settings_unref(srv->settings);
	manager_close(&srv->manager);
}

static bool load_files(struct server *srv, struct error *error) {
	struct errors errors = {0};
	struct buf text = BUF_INIT(CONFIG_MAX);
	config_read(&text, srv->options->config);
	bool loaded = load(srv, &text, &errors);
	if (!loaded) errors_sum_up(&errors, error);
	buf_free(&text);
	errors_free(&errors);
	return loaded;
}

/* The trial has read it, but a writer may have begun to change it since: that must not end a child. */
static bool load_for_upgrade(struct server *srv) {
	int64_t until = now_ms() + (srv->options->check ? 0 : CONFIG_MS);
	struct error error;
	for (;;) {
		bool loaded = load_files(srv, &error);
		if (loaded || now_ms() >= until) return loaded;
		poll(NULL, 0, CONFIG_STEP_MS);
	}
}

/* Each client that waits is told the error. The files are read again for the next one: they may be corrected. */
static bool load_at_start(struct server *srv) {
	struct error error;
	char text[1200];
	while (!load_files(srv, &error)) {
		if (srv->inherited < 0 || !excuse_await(srv->inherited, 0)) return false;
		manager_send_once(&srv->manager, "STATUS=the configuration has errors");
		snprintf(text, sizeof text,
				 "plenumd cannot start: %s (correct the file and try again; plenumd --check checks it)", error.text);
		excuse_client(srv->inherited, PLENUM_E_BAD_CONFIG, text);
		if (!excuse_await(srv->inherited, EXCUSE_MS)) return false;
	}
	return true;
}

int server_run(const struct server_options *options) {
	struct server srv = {.options = options,
						 .reading = ERRAND_ZERO,
						 .host = {.config = options->config,
								  .reload = reload,
								  .shut_down = shut_down,
								  .upgrade = upgrade,
								  .started_ms = now_real_ms()}};
	manager_init(&srv.manager);
	bool fresh = options->resume < 0;
	srv.inherited = fresh ? manager_listen_fd() : -1;
	if (!(fresh ? load_at_start(&srv) : load_for_upgrade(&srv))) return EX_CONFIG;
	if (!make_parts(&srv)) {
		log_error("the event loop cannot be made: %s", strerror(errno));
		drop_parts(&srv);
		return EX_OSERR;
	}
	int status = options->resume >= 0 ? resume(&srv) : open_all(&srv);
	if (status == EX_OK) {
		warm_configure(srv.router->warm);
		arm_pressure(&srv);
		log_info("plenumd %s listens on %s", PLENUM_VERSION, srv.host.socket_path);
		manager_send_once(&srv.manager, "READY=1\nSTATUS=ready");
		if (srv.manager.watchdog) on_watchdog(&srv);
		loop_run(srv.loop);
		log_info("stopped");
	}
	clean_up(&srv);
	return status;
}
