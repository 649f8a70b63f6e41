/* SPDX-License-Identifier: MIT */
#include "core/registry.h"
#include "dialect/claude/claude.h"

#include "carrying.h"
#include "plenum/protocol.h"
#include "wire/limits.h"

struct world {
	struct loop *loop;
	struct registry r;
};

static void on_grace(void *arg) {
	(void)arg;
}

static void begin(void *arg) {
	struct world *w = arg;
	w->loop = loop_new();
	registry_init(&w->r, claude_dialect.hooks);
}

static void end(void *arg) {
	struct world *w = arg;
	registry_free(&w->r);
	loop_free(w->loop);
}

static struct owner *own(struct world *w, int who, const char *name) {
	return registry_add_owner(&w->r, NO_SESSION, w->loop, PARTY(who), 1000, name, on_grace);
}

static void set(struct world *w, struct owner *o, const char *hooks) {
	const char *error = registry_set_hooks(&w->r, o, span_of(hooks));
	ck_assert_msg(!error, "%s: %s", hooks, error);
}

static struct hook *hook(struct world *w, const char *id) {
	char text[40];
	snprintf(text, sizeof text, "\"%s\"", id);
	return registry_hook(&w->r, span_of(text));
}

/* Compare the table for the child. */
static void is_sent(struct world *w, const char *want) {
	struct buf b = BUF_INIT(10000);
	registry_put_hooks(&w->r, &b);
	ck_assert_str_eq(b.data, want);
	buf_free(&b);
}

static void send_and_take(struct world *w) {
	registry_was_sent(&w->r);
	registry_was_taken(&w->r, w->r.sent);
}

static struct world world;

static void setup(void) {
	begin(&world);
}

static void teardown(void) {
	end(&world);
}

START_TEST(nothing) {
	struct buf b = BUF_INIT(100);
	is_sent(&world, "{}");
	registry_put_server_names(&world.r, &b);
	registry_put_servers(&world.r, &b);
	ck_assert_str_eq(b.data, "[]{}");
	buf_free(&b);
	struct owner *o = own(&world, 1, NULL);
	ck_assert(owner_empty(o) && !owner_guards(o) && !registry_guards(&world.r) && !registry_has_servers(&world.r));
	set(&world, o, "{}");
	set(&world, o, "{\"Stop\":[]}");
	is_sent(&world, "{}");
	ck_assert_uint_eq(world.r.version, 0); /* the child need not be notified */
	ck_assert_ptr_null(hook(&world, "cb_1"));
	ck_assert_ptr_null(registry_hook(&world.r, SPAN_NONE));
	ck_assert_ptr_null(registry_server(&world.r, SPAN_NONE));
}
END_TEST

/* Two clients with the same ids, each with a table of its own. */
START_TEST(the_child_gets_the_union) {
	struct owner *a = own(&world, 1, "a"), *b = own(&world, 2, "b");
	set(&world, a,
		"{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hookCallbackIds\":[\"hook_0\"],\"timeout\":1.50}],"
		"\"Stop\":[{\"hookCallbackIds\":[\"hook_1\",\"hook_2\"]}]}");
	set(&world, b,
		"{\"Stop\":[{\"hookCallbackIds\":[],\"x\":{\"y\":1e2}}],"
		"\"PreToolUse\":[{\"plenum_owner_gone\":\"drop\",\"hookCallbackIds\":[\"hook_0\"]}]}");
	is_sent(&world, "{\"PreToolUse\":[{\"matcher\":\"Bash\",\"timeout\":1.50,\"hookCallbackIds\":[\"cb_1\"]},"
					"{\"hookCallbackIds\":[\"cb_4\"]}],"
					"\"Stop\":[{\"hookCallbackIds\":[\"cb_2\",\"cb_3\"]},{\"x\":{\"y\":1e2},\"hookCallbackIds\":[]}]}");
	ck_assert_str_eq(hook(&world, "cb_1")->callback, "\"hook_0\"");
	ck_assert_str_eq(hook(&world, "cb_4")->callback, "\"hook_0\"");
	ck_assert_ptr_eq(hook(&world, "cb_1")->entry->owner, a);
	ck_assert_ptr_eq(hook(&world, "cb_4")->entry->owner, b);
	ck_assert_ptr_null(hook(&world, "hook_0"));
	ck_assert_uint_eq(world.r.n_hooks, 4);
	registry_drop_owner(&world.r, a);
	is_sent(
		&world,
		"{\"Stop\":[{\"x\":{\"y\":1e2},\"hookCallbackIds\":[]}],\"PreToolUse\":[{\"hookCallbackIds\":[\"cb_4\"]}]}");
	ck_assert_uint_eq(world.r.n_hooks, 1);
}
END_TEST

START_TEST(what_is_wrong_changes_nothing) {
	static const char *const wrong[] = {
		"[]",
		"null",
		"{\"Stop\":{}}",
		"{\"Stop\":[1]}",
		"{\"Stop\":[{}]}",
		"{\"Stop\":[{\"hookCallbackIds\":\"a\"}]}",
		"{\"Stop\":[{\"hookCallbackIds\":[\"good\",1]}]}",
		"{\"Stop\":[{\"hookCallbackIds\":[\"good\"]}],\"PreToolUse\":7}",
		"{\"Stop\":[{\"hookCallbackIds\":[\"a\"],\"plenum_owner_gone\":\"allow\"}]}",
		"{\"Stop\":[{\"hookCallbackIds\":[\"a\"],\"plenum_owner_gone\":true}]}",
	};
	struct owner *o = own(&world, 1, NULL);
	set(&world, o, "{\"Stop\":[{\"hookCallbackIds\":[\"a\"]}]}");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		uint64_t version = world.r.version;
		REQUIRE(registry_set_hooks(&world.r, o, span_of(wrong[i])), "%s is taken", wrong[i]);
		ck_assert_uint_eq(world.r.version, version);
		ck_assert_uint_eq(world.r.n_hooks, 1);
		is_sent(&world, "{\"Stop\":[{\"hookCallbackIds\":[\"cb_1\"]}]}");
	}
	ck_assert_ptr_nonnull(registry_set_hooks(&world.r, o, SPAN_NONE));
	ck_assert_ptr_nonnull(hook(&world, "cb_1"));
}
END_TEST

/* Return the id of the first hook of an owner's last entry. */
static const char *last_id(const struct owner *o) {
	const struct hook_entry *e = LIST_OF(o->entries.prev, struct hook_entry, node);
	return LIST_OF(e->hooks.next, struct hook, node)->id;
}

/* Repeated entries keep their ids, so that the child's table stays valid. */
START_TEST(a_second_registration_replaces_the_first) {
	struct owner *o = own(&world, 1, NULL);
	set(&world, o, "{\"Stop\":[{\"hookCallbackIds\":[\"a\"]},{\"matcher\":\"x\",\"hookCallbackIds\":[\"b\"]}]}");
	send_and_take(&world);
	uint64_t version = world.r.version;
	set(&world, o, "{\"Stop\":[{\"hookCallbackIds\":[\"a\"]},{\"matcher\":\"x\",\"hookCallbackIds\":[\"b\"]}]}");
	ck_assert_uint_eq(world.r.version, version);
	set(&world, o, "{\"Stop\":[{\"matcher\":\"x\",\"hookCallbackIds\":[\"b\"]},{\"hookCallbackIds\":[\"c\"]}]}");
	ck_assert_uint_gt(world.r.version, version);
	char want[200];
	snprintf(want, sizeof want,
			 "{\"Stop\":[{\"matcher\":\"x\",\"hookCallbackIds\":[\"cb_2\"]},{\"hookCallbackIds\":[\"%s\"]}]}",
			 last_id(o));
	is_sent(&world, want);
	/* the child may still call the removed one, until it has accepted a table without it */
	ck_assert_ptr_nonnull(hook(&world, "cb_1"));
	ck_assert_ptr_null(hook(&world, "cb_1")->entry->owner);
	registry_was_sent(&world.r);
	ck_assert_ptr_nonnull(hook(&world, "cb_1"));
	registry_was_taken(&world.r, world.r.sent);
	ck_assert_ptr_null(hook(&world, "cb_1"));
	ck_assert_uint_eq(world.r.n_hooks, 2);
	set(&world, o, "{\"Stop\":[{\"hookCallbackIds\":[\"never sent\"]}]}");
	char id[HOOK_ID_MAX];
	strcpy(id, last_id(o));
	set(&world, o, "{}");
	ck_assert_ptr_null(hook(&world, id)); /* unknown */
	ck_assert_ptr_nonnull(hook(&world, "cb_2"));
	registry_child_gone(&world.r);
	ck_assert_ptr_null(hook(&world, "cb_2"));
}
END_TEST

START_TEST(guards) {
	static const struct {
		const char *entry;
		bool guard, drop;
	} table[] = {
		{"\"PreToolUse\":[{\"hookCallbackIds\":[\"a\"]}]", true, false},
		{"\"PermissionRequest\":[{\"hookCallbackIds\":[\"a\"]}]", true, false},
		{"\"PostToolUse\":[{\"hookCallbackIds\":[\"a\"]}]", false, true},
		{"\"PostToolUse\":[{\"hookCallbackIds\":[\"a\"],\"onFailure\":\"block\"}]", true, false},
		{"\"PostToolUse\":[{\"hookCallbackIds\":[\"a\"],\"onFailure\":\"ignore\"}]", false, true},
		{"\"PostToolUse\":[{\"hookCallbackIds\":[\"a\"],\"plenum_owner_gone\":\"deny\"}]", true, false},
		{"\"PreToolUse\":[{\"hookCallbackIds\":[\"a\"],\"plenum_owner_gone\":\"drop\"}]", true, true},
		{"\"PreToolUse\":[{\"hookCallbackIds\":[\"a\"],\"plenum_owner_gone\":\"deny\"}]", true, false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct world w;
		char text[200];
		begin(&w);
		struct owner *o = own(&w, 1, "a");
		snprintf(text, sizeof text, "{%s}", table[i].entry);
		set(&w, o, text);
		struct hook_entry *e = hook(&w, "cb_1")->entry;
		REQUIRE(e->guard == table[i].guard && e->drop_when_gone == table[i].drop, "%s", text);
		ck_assert_int_eq(owner_guards(o), table[i].guard);
		ck_assert(!registry_guards(&w.r)); /* no child has it yet */
		send_and_take(&w);
		ck_assert_int_eq(registry_guards(&w.r), table[i].guard);
		/* its owner leaves: guards stay for the grace, and longer if chosen */
		o->holder = NULL;
		ck_assert_int_eq(registry_drop_loose(&w.r, o), !table[i].guard);
		ck_assert(!registry_drop_loose(&w.r, o));
		o->grace_over = true;
		ck_assert_int_eq(registry_drop_loose(&w.r, o), table[i].guard && table[i].drop);
		ck_assert_int_eq(owner_empty(o), table[i].drop);
		e = hook(&w, "cb_1")->entry; /* the child still has it */
		ck_assert_int_eq(e->guard, !table[i].drop);
		ck_assert_int_eq(e->owner == NULL, table[i].drop);
		end(&w);
	}
}
END_TEST

START_TEST(deadlines) {
	static const struct {
		const char *event, *timeout;
		int64_t ms;
	} table[] = {{"Stop", NULL, 600000},   {"UserPromptSubmit", NULL, 30000},
				 {"Stop", "0.5", 500},     {"Stop", "-1", 600000},
				 {"Stop", "0", 600000},    {"Stop", "\"5\"", 600000},
				 {"Stop", "null", 600000}, {"Stop", "1e300", 2592000000},
				 {"Stop", "7", 7000}};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct world w;
		char text[200];
		begin(&w);
		snprintf(text, sizeof text, "{\"%s\":[{%s%s%s\"hookCallbackIds\":[\"a\"]}]}", table[i].event,
				 table[i].timeout ? "\"timeout\":" : "", table[i].timeout ? table[i].timeout : "",
				 table[i].timeout ? "," : "");
		set(&w, own(&w, 1, NULL), text);
		REQUIRE(hook(&w, "cb_1")->entry->timeout == table[i].ms, "%s", text);
		end(&w);
	}
}
END_TEST

START_TEST(owners_come_back) {
	struct owner *a = own(&world, 1, "guard"), *b = own(&world, 2, ""), *c = own(&world, 3, NULL);
	ck_assert_ptr_null(registry_absent_owner(&world.r, 1000, "guard")); /* it is present */
	a->holder = b->holder = c->holder = NULL;
	ck_assert_ptr_eq(registry_absent_owner(&world.r, 1000, "guard"), a);
	ck_assert_ptr_null(registry_absent_owner(&world.r, 1001, "guard"));
	ck_assert_ptr_null(registry_absent_owner(&world.r, 1000, "guard2"));
	ck_assert_ptr_null(registry_absent_owner(&world.r, 1000, "")); /* no owner returns to an empty name */
	ck_assert_ptr_null(registry_absent_owner(&world.r, 1000, NULL));
}
END_TEST

struct loss {
	int n;
	struct owner *last;
};

static void lost(void *arg, struct owner *o) {
	struct loss *l = arg;
	l->n++;
	l->last = o;
}

/* The child refuses a table: entries that it never accepted are dropped, and the replaced ones return. */
START_TEST(a_refused_table_is_taken_back) {
	struct loss l = {0};
	struct owner *a = own(&world, 1, "a"), *b = own(&world, 2, "b");
	set(&world, a, "{\"Stop\":[{\"hookCallbackIds\":[\"good\"]}]}");
	set(&world, b, "{\"Stop\":[{\"hookCallbackIds\":[\"other\"]}]}");
	send_and_take(&world);
	ck_assert(!registry_was_refused(&world.r, true, lost, &l)); /* nothing new was in it */
	set(&world, a, "{\"Stop\":[{\"matcher\":\"(\",\"hookCallbackIds\":[\"bad\"]}]}");
	registry_was_sent(&world.r);
	set(&world, b,
		"{\"Stop\":[{\"hookCallbackIds\":[\"other\"]},{\"hookCallbackIds\":[\"later\"]}]}"); /* not sent yet */
	ck_assert(registry_was_refused(&world.r, true, lost, &l));
	ck_assert(l.n == 1 && l.last == a);
	ck_assert_ptr_eq(hook(&world, "cb_1")->entry->owner, a);
	ck_assert_str_eq(hook(&world, "cb_1")->callback, "\"good\"");
	ck_assert_ptr_null(hook(&world, "cb_3"));
	ck_assert_uint_eq(world.r.n_hooks, 3);
	is_sent(&world, "{\"Stop\":[{\"hookCallbackIds\":[\"cb_1\"]},{\"hookCallbackIds\":[\"cb_2\"]},"
					"{\"hookCallbackIds\":[\"cb_5\"]}]}");
}
END_TEST

START_TEST(servers) {
	struct buf b = BUF_INIT(1000);
	struct owner *x = own(&world, 1, "x"), *y = own(&world, 2, "y");
	ck_assert_ptr_null(registry_add_server(&world.r, x, span_of("\"calc\""), SPAN_NONE, true));
	ck_assert_uint_eq(world.r.version, 1);
	ck_assert_ptr_null(registry_add_server(&world.r, x, span_of("\"calc\""), SPAN_NONE, true)); /* again: nothing new */
	ck_assert_uint_eq(world.r.version, 1);
	ck_assert_ptr_null(registry_add_server(&world.r, y, span_of("\"web\""), span_of("{\"url\":\"http://x\"}"), false));
	ck_assert_uint_eq(world.r.version, 1); /* sent by mcp_set_servers, not in the table of hooks */
	ck_assert_ptr_null(registry_add_server(&world.r, y, span_of("\"q\\u0022\""), SPAN_NONE, true));
	registry_put_server_names(&world.r, &b);
	registry_put_servers(&world.r, &b);
	ck_assert_str_eq(b.data, "[\"calc\",\"q\\\"\"]{\"calc\":{\"type\":\"sdk\",\"name\":\"calc\"},"
							 "\"web\":{\"url\":\"http://x\"},\"q\\\"\":{\"type\":\"sdk\",\"name\":\"q\\\"\"}}");
	buf_free(&b);
	ck_assert_ptr_eq(registry_server(&world.r, span_of("\"calc\"")), x);
	ck_assert_ptr_eq(registry_server(&world.r, span_of("\"c\\u0061lc\"")), x); /* in any spelling */
	ck_assert_ptr_eq(registry_server(&world.r, span_of("\"q\\\"\"")), y);
	ck_assert_ptr_null(registry_server(&world.r, span_of("\"cal\"")));
	/* an absent owner keeps it only if no other has it */
	x->holder = NULL;
	ck_assert_ptr_eq(registry_server(&world.r, span_of("\"calc\"")), x);
	ck_assert_ptr_null(registry_add_server(&world.r, y, span_of("\"calc\""), SPAN_NONE, true));
	ck_assert_ptr_eq(registry_server(&world.r, span_of("\"calc\"")), y);
	registry_drop_servers(&world.r, y, false);
	ck_assert_ptr_null(registry_server(&world.r, span_of("\"web\"")));
	ck_assert_ptr_eq(registry_server(&world.r, span_of("\"calc\"")), y);
	registry_drop_servers(&world.r, y, true);
	ck_assert(owner_empty(y));
	registry_drop_owner(&world.r, x);
	ck_assert(!registry_has_servers(&world.r));
}
END_TEST

START_TEST(dialogs) {
	struct owner *o = own(&world, 1, NULL);
	ck_assert(!owner_takes_dialog(o, span_of("\"a\"")));
	ck_assert_ptr_null(registry_set_dialogs(o, span_of("[\"a\", \"b\"]")));
	ck_assert(owner_takes_dialog(o, span_of("\"a\"")) && owner_takes_dialog(o, span_of("\"b\"")));
	ck_assert(!owner_takes_dialog(o, span_of("\"ab\"")) && !owner_takes_dialog(o, SPAN_NONE));
	ck_assert_ptr_null(registry_set_dialogs(o, span_of("[\"c\"]")));
	ck_assert(!owner_takes_dialog(o, span_of("\"a\"")) && owner_takes_dialog(o, span_of("\"c\"")));
	ck_assert_ptr_null(registry_set_dialogs(o, SPAN_NONE));
	ck_assert(!owner_takes_dialog(o, span_of("\"c\"")));
}
END_TEST

/* --- at random: the callable hooks are always known --------------------------------------------------------------- */

#define TABLE_MAX 64

/* A table sent to or accepted by the child: our ids and the owners of their callbacks. */
struct table {
	char id[TABLE_MAX][HOOK_ID_MAX], callback[TABLE_MAX][16];
	size_t n;
	uint64_t version;
};

static void snapshot(struct world *w, struct table *t) {
	struct hook *h, *next;
	t->n = 0;
	t->version = w->r.version;
	HASH_ITER (hh, w->r.hooks, h, next) {
		if (!h->entry->owner) continue;
		ck_assert_uint_lt(t->n, TABLE_MAX);
		strcpy(t->id[t->n], h->id);
		strcpy(t->callback[t->n++], h->callback);
	}
	ck_assert_uint_eq(t->n, w->r.n_hooks);
}

static void is_known(struct world *w, const struct table *t) {
	for (size_t i = 0; i < t->n; i++) {
		struct hook *h = hook(w, t->id[i]);
		REQUIRE(h && strcmp(h->callback, t->callback[i]) == 0, "%s is not known", t->id[i]);
	}
}

static void set_some(struct world *w, struct owner *o, uint64_t *seed) {
	static const char *const events[] = {"PreToolUse", "Stop", "PostToolUse"};
	struct buf b = BUF_INIT(4000);
	buf_putc(&b, '{');
	for (size_t i = 0, first = 1; i < ARRAY_SIZE(events); i++) {
		if (rng_below(seed, 2)) continue;
		buf_printf(&b, "%s\"%s\":[", first ? "" : ",", events[i]);
		size_t n = rng_below(seed, 3);
		for (size_t k = 0; k < n; k++)
			buf_printf(&b, "%s{\"matcher\":\"m%zu\",\"hookCallbackIds\":[\"hook_%zu\"]}", k ? "," : "",
					   rng_below(seed, 3), rng_below(seed, 2));
		buf_putc(&b, ']');
		first = 0;
	}
	buf_putc(&b, '}');
	set(w, o, b.data);
	buf_free(&b);
}

static struct owner *owner_of(struct registry *r, const struct attachment *holder) {
	struct owner *o;
	LIST_FOR_EACH (o, &r->owners, struct owner, node)
		if (o->holder == holder) return o;
	return NULL;
}

static struct owner *some_owner(struct world *w, uint64_t *seed) {
	int who = (int)rng_below(seed, 4);
	struct owner *o = owner_of(&w->r, PARTY(who));
	return o ? o : own(w, who, NULL);
}

static void count_hooks(struct world *w) {
	struct hook *h, *next;
	size_t live = 0;
	HASH_ITER (hh, w->r.hooks, h, next) live += h->entry->owner != NULL;
	ck_assert_uint_eq(live, w->r.n_hooks);
}

START_TEST(what_the_child_may_call_is_known) {
	uint64_t seed = 21;
	for (int round = 0; round < 50; round++) {
		struct world w;
		struct loss l = {0};
		static struct table has, sent;
		bool waiting = false;
		has.n = sent.n = 0;
		begin(&w);
		for (int i = 0; i < 200; i++) {
			switch (rng_below(&seed, 8)) {
			case 0:
			case 1:
			case 2:
				set_some(&w, some_owner(&w, &seed), &seed);
				break;
			case 3:
				registry_drop_owner(&w.r, some_owner(&w, &seed));
				break;
			case 4:
				if (waiting) break;
				snapshot(&w, &sent);
				registry_was_sent(&w.r);
				waiting = true;
				break;
			case 5:
			case 6:
				if (!waiting) break;
				registry_was_taken(&w.r, sent.version);
				has = sent;
				waiting = false;
				break;
			case 7:
				if (rng_below(&seed, 8) == 0) { /* another child */
					registry_child_gone(&w.r);
					has.n = 0;
				} else if (waiting) {
					registry_was_refused(&w.r, true, lost, &l);
				}
				waiting = false;
			}
			is_known(&w, &has);
			if (waiting) is_known(&w, &sent);
			count_hooks(&w);
		}
		end(&w);
	}
}
END_TEST

/* --- upgrade ------------------------------------------------------------------------------------------------------ */

static void carry(struct carry *c, void *arg) {
	struct world *w = arg;
	registry_carry(c, &w->r, NO_SESSION, w->loop, on_grace);
}

static void fill(struct world *w) {
	struct owner *a = own(w, 1, "a"), *b = own(w, 2, NULL);
	set(w, a,
		"{\"Stop\":[{\"hookCallbackIds\":[\"old\"]}],\"PreToolUse\":[{\"timeout\":3,\"hookCallbackIds\":[\"a\","
		"\"b\"]}]}");
	send_and_take(w);
	set(w, a, "{\"PreToolUse\":[{\"timeout\":3,\"hookCallbackIds\":[\"a\",\"b\"]}]}");
	set(w, b, "{\"Stop\":[{\"hookCallbackIds\":[\"hook_0\"]}]}");
	registry_add_server(&w->r, b, span_of("\"s\""), SPAN_NONE, true);
	registry_add_server(&w->r, b, span_of("\"t\""), span_of("{\"command\":\"x\"}"), false);
	owner_claimed(b);
	registry_add_server(&w->r, b, span_of("\"t\""), span_of("{\"command\":\"x\"}"), false);
	registry_set_dialogs(b, span_of("[\"kind\"]"));
	a->holder = NULL;
	a->grace_over = true;
	loop_timer_set(&b->grace, 100000);
}

START_TEST(is_carried) {
	struct world a, b;
	struct error error;
	struct buf x = BUF_INIT(4000), y = BUF_INIT(4000);
	struct loss l = {0};
	begin(&a);
	begin(&b);
	fill(&a);
	struct saved s = carry_save_thing(carry, &a);
	ck_assert_msg(carry_load_thing(s, s.len, carry, &b, &error), "%s", error.text);
	registry_put_hooks(&a.r, &x);
	registry_put_servers(&a.r, &x);
	registry_put_hooks(&b.r, &y);
	registry_put_servers(&b.r, &y);
	ck_assert_str_eq(x.data, y.data);
	buf_free(&x);
	buf_free(&y);
	ck_assert(a.r.version == b.r.version && a.r.sent == b.r.sent && a.r.counter == b.r.counter);
	ck_assert_uint_eq(a.r.n_hooks, b.r.n_hooks);
	struct owner *back = registry_absent_owner(&b.r, 1000, "a");
	ck_assert(back && back->grace_over && !loop_timer_pending(&back->grace));
	ck_assert(loop_timer_pending(&owner_of(&b.r, PARTY(2))->grace));
	ck_assert(owner_takes_dialog(owner_of(&b.r, PARTY(2)), span_of("\"kind\"")));
	ck_assert(registry_is_claimed(&b.r, owner_of(&b.r, PARTY(2)), span_of("\"s\"")));
	ck_assert(!registry_is_claimed(&b.r, owner_of(&b.r, PARTY(2)), span_of("\"t\"")));
	ck_assert_int_eq(hook(&b, "cb_2")->entry->timeout, 3000);
	ck_assert(hook(&b, "cb_2")->entry->proven && hook(&b, "cb_2")->entry->guard);
	ck_assert_ptr_null(hook(&b, "cb_1")->entry->owner); /* retired, with a known owner */
	ck_assert_ptr_eq(hook(&b, "cb_1")->entry->from, back);
	registry_was_sent(&b.r);
	ck_assert(registry_was_refused(&b.r, true, lost, &l));
	ck_assert_ptr_eq(l.last, owner_of(&b.r, PARTY(2)));
	free(s.data);
	end(&a);
	end(&b);
}
END_TEST

START_TEST(damage_is_noticed) {
	struct world a, b;
	begin(&a);
	fill(&a);
	struct saved s = carry_save_thing(carry, &a);
	carry_spoil_thing(s, carry, &b, begin, end);
	free(s.data);
	end(&a);
}
END_TEST

/* `count` entries of one event, with these lengths of matcher and callback. */
static char *many(size_t count, size_t matcher, size_t callback) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	_cleanup_free_ char *m = calloc(1, matcher + 1), *c = calloc(1, callback + 1);
	memset(m, 'm', matcher);
	memset(c, 'c', callback);
	buf_puts(&b, "{\"PreToolUse\":[");
	for (size_t i = 0; i < count; i++)
		buf_printf(&b, "%s{\"matcher\":\"%s\",\"hookCallbackIds\":[\"%s\"]}", i ? "," : "", m, c);
	buf_puts(&b, "]}");
	return buf_steal(&b, NULL);
}

static void is_refused(struct world *w, struct owner *o, size_t count, size_t matcher, size_t callback,
					   const char *code) {
	_cleanup_free_ char *hooks = many(count, matcher, callback);
	const char *error = registry_set_hooks(&w->r, o, span_of(hooks));
	ck_assert_msg(error && strcmp(registry_code(error), code) == 0, "%s", error ? error : "accepted");
}

/* An accepted table fits on disk; a refused one changes nothing. */
START_TEST(bounds) {
	struct owner *a = own(&world, 1, "a"), *b = own(&world, 2, "b");
	set(&world, b, "{\"PreToolUse\":[{\"matcher\":\"B\",\"hookCallbackIds\":[\"b\"]}]}");
	set(&world, a, "{\"PreToolUse\":[{\"matcher\":\"A\",\"hookCallbackIds\":[\"a\"]}]}");
	is_refused(&world, a, 1, LIMITS_MATCHER, 1, PLENUM_E_TOO_LONG); /* too long with its quotes */
	is_refused(&world, a, 1, 1, LIMITS_MATCHER, PLENUM_E_TOO_LONG);
	is_refused(&world, a, 17, LIMITS_MATCHER - 100, 1, PLENUM_E_TOO_MANY);
	is_refused(&world, a, LIMITS_NAMES, 1, 1, PLENUM_E_TOO_MANY); /* b has one */
	ck_assert_uint_eq(world.r.n_hooks, 2);
	is_sent(&world, "{\"PreToolUse\":[{\"matcher\":\"A\",\"hookCallbackIds\":[\"cb_2\"]},"
					"{\"matcher\":\"B\",\"hookCallbackIds\":[\"cb_1\"]}]}");
	_cleanup_free_ char *most = many(LIMITS_NAMES - 1, 1, 1);
	set(&world, a, most);
	set(&world, a, most); /* the same again: replaces them */
	ck_assert_uint_eq(world.r.n_hooks, LIMITS_NAMES);
	for (size_t i = 0; i < LIMITS_NAMES; i++) {
		char name[24];
		snprintf(name, sizeof name, "\"%zu\"", i);
		ck_assert_ptr_null(registry_add_server(&world.r, a, span_of(name), SPAN_NONE, true));
	}
	const char *error = registry_add_server(&world.r, b, span_of("\"x\""), SPAN_NONE, true);
	ck_assert(error && strcmp(registry_code(error), PLENUM_E_TOO_MANY) == 0);
}
END_TEST

/* A staged registration is not in force before the commit. */
START_TEST(staged) {
	static const char fresh[] = "{\"Stop\":[{\"hookCallbackIds\":[\"new\"]}]}";
	struct owner *a = own(&world, 1, "a");
	set(&world, a, "{\"PreToolUse\":[{\"hookCallbackIds\":[\"old\"]}]}");
	send_and_take(&world);
	uint64_t version = world.r.version;
	ck_assert_ptr_null(registry_stage_hooks(&world.r, a, span_of(fresh)));
	is_sent(&world, "{\"PreToolUse\":[{\"hookCallbackIds\":[\"cb_1\"]}]}");
	registry_cancel_hooks(&world.r, a);
	ck_assert_uint_eq(world.r.version, version);
	ck_assert_uint_eq(world.r.n_hooks, 1);
	ck_assert_ptr_null(hook(&world, "cb_2"));
	ck_assert_ptr_null(registry_stage_hooks(&world.r, a, span_of(fresh)));
	registry_commit_hooks(&world.r, a);
	registry_commit_hooks(&world.r, a); /* nothing is staged */
	is_sent(&world, "{\"Stop\":[{\"hookCallbackIds\":[\"cb_3\"]}]}");
}
END_TEST

START_TEST(names_of_absent_owners) {
	struct owner *a = own(&world, 1, "a"), *b = own(&world, 2, NULL);
	struct span x = span_of("\"x\""), y = span_of("\"\\u0079\"");
	registry_add_server(&world.r, a, x, SPAN_NONE, true);
	registry_add_server(&world.r, b, span_of("\"y\""), SPAN_NONE, true);
	ck_assert_ptr_null(registry_server_taken(&world.r, x, PARTY(1), 1, NULL)); /* its own */
	ck_assert_ptr_eq(registry_server_taken(&world.r, x, PARTY(2), 1000, "a"), a);
	ck_assert_ptr_eq(registry_server_taken(&world.r, y, PARTY(1), 1000, "a"), b);
	a->holder = b->holder = NULL;
	ck_assert_ptr_null(registry_server_taken(&world.r, x, PARTY(2), 1000, "a"));
	ck_assert_ptr_eq(registry_server_taken(&world.r, x, PARTY(2), 1000, "b"), a);
	ck_assert_ptr_eq(registry_server_taken(&world.r, x, PARTY(2), 1001, "a"), a);
	ck_assert_ptr_eq(registry_server_taken(&world.r, x, PARTY(2), 1000, NULL), a);
	ck_assert_ptr_null(registry_server_taken(&world.r, y, PARTY(2), 1001, NULL)); /* its owner cannot return */
	struct owner *c = own(&world, 3, "a");
	registry_add_server(&world.r, c, y, SPAN_NONE, true);
	ck_assert(list_empty(&b->servers));
	set(&world, a, "{\"PreToolUse\":[{\"hookCallbackIds\":[\"a\"]}]}");
	set(&world, c, "{\"PreToolUse\":[{\"hookCallbackIds\":[\"c\"]}]}");
	send_and_take(&world);
	registry_merge(&world.r, c, a);
	is_sent(&world, "{\"PreToolUse\":[{\"hookCallbackIds\":[\"cb_2\"]},{\"hookCallbackIds\":[\"cb_1\"]}]}");
	ck_assert_ptr_eq(hook(&world, "cb_1")->entry->owner, c);
	ck_assert(registry_server(&world.r, x) == c && registry_is_claimed(&world.r, c, x) &&
			  !registry_is_claimed(&world.r, c, y));
	registry_add_server(&world.r, c, x, SPAN_NONE, true);
	ck_assert(!registry_is_claimed(&world.r, c, x));
}
END_TEST

RUN_TESTS_WITH(setup, teardown, "registry", nothing, the_child_gets_the_union, what_is_wrong_changes_nothing,
			   a_second_registration_replaces_the_first, guards, deadlines, owners_come_back,
			   a_refused_table_is_taken_back, servers, dialogs, bounds, staged, names_of_absent_owners,
			   what_the_child_may_call_is_known, is_carried, damage_is_noticed)
