/* SPDX-License-Identifier: MIT
 *
 * The consequences of a change run once per session and turn, in a fixed order. The steps are in their own modules: the
 * linker puts the functions below in front of them.
 */
#include "core/reconcile.h"

#include "core/asks.h"
#include "core/attachment.h"
#include "core/core.h"
#include "core/handshake.h"
#include "core/intake.h"
#include "core/pool.h"
#include "core/router.h"
#include "core/sessions.h"
#include "core/status.h"
#include "core/warm.h"

#include "base/log.h"
#include "harness.h"

#define CROWD 3000

struct world {
	struct loop *loop;
	struct children *children;
	struct router *router;
	struct session *session;
	struct loop_task other;
};

static struct buf steps = BUF_INIT(4096);
static size_t reconciles, paces, calls_for_help;

static void note(const char *step) {
	buf_printf(&steps, "%s%s", steps.len ? " " : "", step);
}

/* The steps, without effects. */
#define STEP(name, ...)                                                                                                \
	void __wrap_##name(__VA_ARGS__);                                                                                   \
	void __wrap_##name(__VA_ARGS__)

STEP(handshake_resend, struct session *s) {
	(void)s;
	note("initialize");
}

STEP(intake_send_held, struct session *s) {
	(void)s;
	note("held");
}

static bool slow; /* a close uses up its share of a turn */

STEP(attachment_close_ended, struct client *c) {
	struct router *r = c->world;
	note("close");
	if (!slow) return;
	attachment_leave(c, "end of input");
	while (!loop_must_yield(r->loop)) {}
}

STEP(status_publish, struct session *s) {
	note(session_state_name(s->told_state));
}

STEP(handshake_restart, struct session *s) {
	(void)s;
	note("restart");
}

STEP(pool_keep_to_limit, struct router *r, const struct session *but) {
	(void)r, (void)but;
	note("limit");
}

bool __wrap_pace_may_read(struct session *s);
bool __wrap_pace_may_read(struct session *s) {
	(void)s;
	paces++;
	note("pace");
	return true;
}

void __real_reconcile(struct session *s);
STEP(reconcile, struct session *s) {
	reconciles++;
	__real_reconcile(s);
}

static void on_changed(struct router *r) {
	(void)r;
	note("mark");
}

static void on_attention(struct router *r, const struct session *s, const struct alert *alert) {
	(void)r, (void)s, (void)alert;
	calls_for_help++;
}

static const struct router_events events = {.changed = on_changed, .attention = on_attention};

static void forget_steps(void) {
	buf_free(&steps);
	reconciles = paces = calls_for_help = 0;
}

/* Finish the running turn. */
static void turn(struct world *w) {
	loop_finish(w->loop);
}

static struct session *make(struct world *w, const char *name) {
	struct launch launch = {.cwd = strdup("/"), .uid = getuid()};
	return sessions_create(w->router, name, &w->router->settings->profiles[0], &launch);
}

static void begin(struct world *w) {
	*w = (struct world){.loop = loop_new()};
	log_set_level(LOG_ERROR);
	struct settings *settings = settings_new();
	w->children = children_new(w->loop);
	ck_assert(words_add(&settings->on[ALERT_PENDING], "command"));
	w->router = core_new(w->loop, w->children, settings, &events, NULL);
	settings_unref(settings);
	w->session = make(w, "s");
	w->session->agent = session_new_agent(w->session); /* without a process: idle */
	session_changed(w->session);
	turn(w);
	forget_steps();
}

static void end(struct world *w) {
	if (w->session) sessions_remove(w->router, w->session, "over");
	loop_finish(w->loop);
	core_free(w->router);
	children_free(w->children);
	loop_free(w->loop);
	forget_steps();
}

/* A client without a connection. */
static struct client *enter(struct world *w, struct session *s) {
	struct client *c = calloc(1, sizeof *c);
	c->dead = true;
	c->world = w->router;
	list_init(&c->node);
	list_init(&c->mail);
	ck_assert_ptr_nonnull(attachment_new(c, s, false, true));
	return c;
}

START_TEST(the_order) {
	struct world w;
	begin(&w);
	struct client *c = enter(&w, w.session);
	turn(&w);
	forget_steps();
	session_set_conversation(w.session, "11111111-1111-1111-1111-111111111111");
	c->ended = true;
	w.session->progress.turn = true;
	session_changed(w.session);
	turn(&w);
	ck_assert_str_eq(steps.data, "initialize held close busy restart pace mark");
	attachment_leave(c, "over");
	free(c);
	end(&w);
}
END_TEST

START_TEST(nothing_is_published_or_marked_twice) {
	struct world w;
	begin(&w);
	session_changed(w.session);
	turn(&w);
	forget_steps();
	session_changed(w.session);
	turn(&w);
	ck_assert_str_eq(steps.data, "initialize held restart pace");
	w.session->progress.turn = true;
	session_changed(w.session);
	w.session->progress.turn = false; /* in the same turn: this state is never seen */
	forget_steps();
	turn(&w);
	ck_assert_str_eq(steps.data, "initialize held restart pace");
	end(&w);
}
END_TEST

START_TEST(a_state_that_only_an_answer_named_is_published) {
	struct world w;
	begin(&w);
	w.session->progress.turn = true;
	ck_assert_int_eq(session_name_state(w.session), SESSION_BUSY);
	w.session->progress.turn = false;
	forget_steps();
	turn(&w);
	ck_assert_ptr_nonnull(strstr(steps.data, "idle"));
	ck_assert_int_eq(w.session->previous, SESSION_BUSY);
	end(&w);
}
END_TEST

static void on_other(void *arg) {
	(void)arg;
	note("sent");
}

START_TEST(it_runs_before_anything_is_sent) {
	struct world w;
	begin(&w);
	loop_task_init(&w.other, on_other, NULL);
	loop_defer_first(w.loop, &w.other);
	session_set_conversation(w.session, "11111111-1111-1111-1111-111111111111");
	session_changed(w.session);
	w.session->progress.turn = true;
	turn(&w);
	ck_assert_str_eq(steps.data, "initialize held busy restart pace mark sent");
	end(&w);
}
END_TEST

/* The state is not delayed by them. */
START_TEST(half_closed_clients_leave_in_slices) {
	struct world w;
	begin(&w);
	struct client *one = enter(&w, w.session), *two = enter(&w, w.session);
	turn(&w);
	forget_steps();
	one->ended = two->ended = slow = true;
	loop_task_init(&w.other, on_other, NULL);
	loop_defer(w.loop, &w.other);
	session_changed(w.session);
	w.session->progress.turn = true;
	turn(&w);
	slow = false;
	ck_assert_str_eq(steps.data, "initialize held close busy restart pace sent "
								 "initialize held close restart pace initialize held restart pace");
	free(one);
	free(two);
	end(&w);
}
END_TEST

START_TEST(many_changes_of_a_turn_are_one) {
	struct world w;
	begin(&w);
	turn(&w);
	forget_steps();
	for (int i = 0; i < 1000; i++) session_changed(w.session);
	turn(&w);
	ck_assert_uint_eq(reconciles, 1);
	end(&w);
}
END_TEST

/* A request to all of them is left to the timer, and the child is read for the remaining ones. */
START_TEST(a_crowd_of_approvers_leaves_at_the_cost_of_one) {
	static const char line[] = "{\"type\":\"control_request\",\"request_id\":\"k\",\"request\":{\"subtype\":"
							   "\"can_use_tool\",\"tool_name\":\"Bash\",\"input\":{}}}\n";
	struct world w;
	struct envelope e;
	static struct client *all[CROWD];
	begin(&w);
	for (size_t i = 0; i < CROWD; i++) all[i] = enter(&w, w.session);
	struct chunk ask = CHUNK_STATIC(line);
	ck_assert(scan_envelope(ask.data, ask.len, &e));
	asks_add(w.session, ask, &e, 0);
	session_changed(w.session);
	turn(&w);
	ck_assert_uint_eq(LIST_TOP(&w.session->pendings.order, struct pending, node)->n_asked, CROWD);
	ck_assert_int_eq(w.session->told_state, SESSION_ASKING);
	forget_steps();
	for (size_t i = 0; i < CROWD; i++) attachment_leave(all[i], "disconnected");
	turn(&w);
	ck_assert_uint_eq(w.session->n_attachments, 0);
	ck_assert_uint_eq(calls_for_help, 1);
	ck_assert_uint_eq(reconciles, 1);
	ck_assert_uint_eq(paces, 1);
	for (size_t i = 0; i < CROWD; i++) free(all[i]);
	end(&w);
}
END_TEST

START_TEST(what_was_removed_is_left_alone) {
	struct world w;
	begin(&w);
	struct session *s = make(&w, "t");
	turn(&w);
	forget_steps();
	session_changed(s);
	sessions_remove(w.router, s, "over");
	session_changed(s);
	turn(&w);
	ck_assert_uint_eq(reconciles, 0);
	end(&w);
}
END_TEST

RUN_TESTS("reconcile", the_order, nothing_is_published_or_marked_twice, a_state_that_only_an_answer_named_is_published,
		  it_runs_before_anything_is_sent, half_closed_clients_leave_in_slices, many_changes_of_a_turn_are_one,
		  a_crowd_of_approvers_leaves_at_the_cost_of_one, what_was_removed_is_left_alone)
