/* SPDX-License-Identifier: MIT */
#include "core/call.h"
#include "dialect/claude/claude.h"

#include "carrying.h"

struct world {
	struct loop *loop;
	struct calls all;
	int timed_out;
};

static void on_timer(void *arg) {
	struct call *c = arg;
	struct world *w = (void *)c->asker;
	w->timed_out++;
	call_end(&w->all, c);
	loop_stop(w->loop);
}

static void begin(void *arg) {
	struct world *w = arg;
	w->loop = loop_new();
	w->timed_out = 0;
	calls_init(&w->all, false);
}

static void end(void *arg) {
	struct world *w = arg;
	calls_free(&w->all);
	loop_free(w->loop);
}

static struct call *add(struct world *w, uint64_t number, const char *id) {
	return call_new(&w->all, NO_SESSION, w->loop, CALL_CLIENT, PARTY(number - 1), number, span_of(id), on_timer);
}

static struct call *find(struct world *w, const char *id) {
	char text[200];
	snprintf(text, sizeof text, "\"%s\"", id);
	return call_find(&w->all, span_of(text));
}

/* Two clients may use one id; the child sees neither of the two. */
START_TEST(ids_are_each_client_s_own) {
	struct world w;
	begin(&w);
	struct call *a = add(&w, 1, "\"1\""), *b = add(&w, 2, "\"1\""), *c = add(&w, 1, "\"2\"");
	ck_assert_uint_eq(w.all.n, 3);
	ck_assert_str_ne(a->id, b->id);
	ck_assert_str_eq(a->asker_id, "\"1\"");
	ck_assert_ptr_eq(find(&w, a->id), a);
	ck_assert_ptr_eq(find(&w, b->id), b);
	ck_assert_ptr_null(find(&w, "1"));
	ck_assert_ptr_null(call_find(&w.all, SPAN_NONE));
	ck_assert_ptr_null(call_find(&w.all, span_of(a->id))); /* not a string */
	ck_assert_ptr_eq(call_of(&w.all, 1, span_of("\"1\"")), a);
	ck_assert_ptr_eq(call_of(&w.all, 2, span_of("\"1\"")), b);
	ck_assert_ptr_eq(call_of(&w.all, 1, span_of("\"2\"")), c);
	ck_assert(!call_of(&w.all, 2, span_of("\"2\"")));
	ck_assert(!call_of(&w.all, 12, span_of("\"1\"")));
	call_end(&w.all, a);
	ck_assert(!call_of(&w.all, 1, span_of("\"1\"")));
	ck_assert(call_of(&w.all, 2, span_of("\"1\"")));
	ck_assert(call_of(&w.all, 1, span_of("\"2\"")));
	ck_assert_uint_eq(w.all.n, 2);
	end(&w);
}
END_TEST

START_TEST(ids_cannot_be_guessed_and_do_not_come_twice) {
	struct world w;
	char last[CALL_ID_MAX] = "";
	begin(&w);
	for (int i = 1; i <= 100; i++) {
		struct call *c = add(&w, 1, "\"x\"");
		char *rest;
		ck_assert_int_eq(strncmp(c->id, "req_", 4), 0);
		ck_assert_uint_eq(strtoul(c->id + 4, &rest, 10), i);
		ck_assert(*rest == '_' && strspn(rest + 1, "0123456789abcdef") == 8 && !rest[9]);
		ck_assert_str_ne(rest, last);
		strcpy(last, rest);
		call_end(&w.all, c);
	}
	end(&w);
}
END_TEST

/* The daemon's own calls have no requester, and no client's id finds them. */
START_TEST(own_requests) {
	struct world w;
	begin(&w);
	struct call *c = call_new(&w.all, NO_SESSION, w.loop, CALL_INIT, NULL, 0, SPAN_NONE, on_timer);
	ck_assert_ptr_eq(find(&w, c->id), c);
	ck_assert_ptr_null(c->key);
	ck_assert(!call_of(&w.all, 0, SPAN_NONE));
	call_end(&w.all, c);
	ck_assert_uint_eq(w.all.n, 0);
	end(&w);
}
END_TEST

START_TEST(a_call_can_end_in_its_timer) {
	struct world w;
	begin(&w);
	struct call *c = call_new(&w.all, NO_SESSION, w.loop, CALL_CLIENT, (void *)&w, 7, span_of("\"1\""), on_timer);
	c->value = strdup("\"opus\"");
	loop_timer_set(&c->timer, 1);
	loop_run(w.loop);
	ck_assert_int_eq(w.timed_out, 1);
	ck_assert(!call_of(&w.all, 7, span_of("\"1\"")));
	end(&w);
}
END_TEST

static void carry(struct carry *c, void *arg) {
	struct world *w = arg;
	calls_carry(c, &w->all, NO_SESSION, w->loop, &claude_dialect, on_timer);
}

static void fill(struct world *w) {
	add(w, 1, "\"one\"");
	call_end(&w->all, add(w, 1, "\"gone\""));
	struct call *c = add(w, 3, "\"two\"");
	c->act = ACT_CHANGE;
	c->what = dialect_gate_what(claude_dialect.gate, claude_dialect.n_gate, "model");
	c->value = strdup("\"opus\"");
	loop_timer_set(&c->timer, 100000);
	call_new(&w->all, NO_SESSION, w->loop, CALL_SILENT, NULL, 0, SPAN_NONE, on_timer);
}

START_TEST(is_carried) {
	struct world a, b;
	struct error error;
	begin(&a);
	begin(&b);
	fill(&a);
	struct saved s = carry_save_thing(carry, &a);
	ck_assert_msg(carry_load_thing(s, s.len, carry, &b, &error), "%s", error.text);
	ck_assert_uint_eq(b.all.n, 3);
	struct call *x;
	LIST_FOR_EACH (x, &a.all.order, struct call, node) {
		struct call *y = find(&b, x->id);
		ck_assert_ptr_nonnull(y);
		ck_assert_ptr_eq(y->session, NO_SESSION);
		ck_assert(x->purpose == y->purpose && x->asker == y->asker && x->act == y->act && x->what == y->what);
		ck_assert_int_eq(loop_timer_pending(&x->timer), loop_timer_pending(&y->timer));
		ck_assert_pstr_eq(x->asker_id, y->asker_id);
		ck_assert_pstr_eq(x->value, y->value);
	}
	ck_assert_str_eq(call_of(&b.all, 3, span_of("\"two\""))->what, "model");
	ck_assert(!call_of(&b.all, 1, span_of("\"gone\"")));
	ck_assert_int_eq(strncmp(add(&b, 1, "\"next\"")->id, "req_5_", 6), 0);
	free(s.data);
	end(&a);
	end(&b);
}
END_TEST

START_TEST(damage_is_noticed) {
	struct world a, b;
	struct error error;
	begin(&a);
	fill(&a);
	struct saved s = carry_save_thing(carry, &a);
	carry_spoil_thing(s, carry, &b, begin, end);
	free(s.data);
	call_of(&a.all, 1, span_of("\"one\""))->asker = NULL;
	s = carry_save_thing(carry, &a);
	begin(&b);
	ck_assert(!carry_load_thing(s, s.len, carry, &b, &error));
	ck_assert_msg(strstr(error.text, "no asker"), "%s", error.text);
	free(s.data);
	end(&a);
	end(&b);
}
END_TEST

RUN_TESTS("call", ids_are_each_client_s_own, ids_cannot_be_guessed_and_do_not_come_twice, own_requests,
		  a_call_can_end_in_its_timer, is_carried, damage_is_noticed)
