/* SPDX-License-Identifier: MIT */
#include "core/guards.h"

#include "dialect/claude/claude.h"

#include "harness.h"

#include <string.h>

static struct loop *loop;
static int nobody, somebody;

static void on_grace(void *arg) {
	(void)arg;
}

static struct owner *add(struct registry *r, void *holder, const char *name, const char *hooks) {
	struct owner *o = registry_add_owner(r, NULL, loop, holder, 1000, name, on_grace);
	const char *error = registry_set_hooks(r, o, (struct span){hooks, strlen(hooks)});
	ck_assert_msg(!error, "%s", error);
	return o;
}

static char *text_of(const struct registry *r) {
	char *text;
	ck_assert(guards_text(r, &text));
	return text;
}

/* Save, restore and save again. */
static void comes_back_as(const struct registry *r, const char *want) {
	struct registry other;
	char *text = text_of(r);
	ck_assert_str_eq(text, want);
	registry_init(&other, claude_dialect.hooks);
	ck_assert(guards_restore(&other, NULL, loop, text, on_grace));
	char *again = text_of(&other);
	ck_assert_str_eq(again, want);
	const struct owner *o;
	LIST_FOR_EACH (o, &other.owners, const struct owner, node) ck_assert_ptr_null(o->holder);
	registry_free(&other);
	free(text);
	free(again);
}

START_TEST(nobody_guards) {
	struct registry r;
	registry_init(&r, claude_dialect.hooks);
	ck_assert_ptr_null(text_of(&r));
	add(&r, &somebody, "watcher", "{\"PostToolUse\":[{\"hookCallbackIds\":[\"a\"]}],\"PreToolUse\":[]}");
	ck_assert_ptr_null(text_of(&r));
	registry_free(&r);
}
END_TEST

START_TEST(guards_alone_are_kept) {
	struct registry r;
	registry_init(&r, claude_dialect.hooks);
	add(&r, &somebody, "g\xc3\xa9 \"x\"",
		"{\"PostToolUse\":[{\"hookCallbackIds\":[\"a\"]},{\"onFailure\":\"block\",\"hookCallbackIds\":[\"b\"]}],"
		"\"PreToolUse\":[{\"matcher\":\"\\ud800\",\"timeout\":5,\"hookCallbackIds\":[\"c\",\"\\u0064\"]},"
		"{\"plenum_owner_gone\":\"drop\",\"hookCallbackIds\":[\"e\"]}]}");
	registry_was_sent(&r);
	registry_was_taken(&r, r.sent);
	add(&r, &nobody, NULL, "{\"Stop\":[{\"plenum_owner_gone\":\"deny\",\"hookCallbackIds\":[\"hook_0\"]}]}");
	comes_back_as(
		&r, "[{\"uid\":1000,\"name\":\"g\xc3\xa9 \\\"x\\\"\",\"hooks\":{"
			"\"PostToolUse\":[{\"onFailure\":\"block\",\"plenum_owner_gone\":\"deny\",\"hookCallbackIds\":[\"b\"]}],"
			"\"PreToolUse\":[{\"matcher\":\"\\ud800\",\"timeout\":5,\"plenum_owner_gone\":\"deny\","
			"\"hookCallbackIds\":[\"c\",\"\\u0064\"]},{\"plenum_owner_gone\":\"drop\",\"hookCallbackIds\":[\"e\"]}]},"
			"\"proven\":[true,true,true]},"
			"{\"uid\":1000,\"name\":null,\"hooks\":{\"Stop\":[{\"plenum_owner_gone\":\"deny\",\"hookCallbackIds\":["
			"\"hook_0\"]}]},\"proven\":[false]}]");
	registry_free(&r);
}
END_TEST

static void count(void *arg, struct owner *o) {
	(void)o;
	++*(int *)arg;
}

/* Restored guards of absent clients are dropped only if they are refused alone, and never if a child has accepted
 * them. */
START_TEST(a_table_is_refused) {
	struct registry r;
	int lost = 0;
	registry_init(&r, claude_dialect.hooks);
	ck_assert(guards_restore(&r, NULL, loop,
							 "[{\"uid\":1000,\"name\":\"a\",\"hooks\":{\"PreToolUse\":[{\"hookCallbackIds\":[\"old\"]},"
							 "{\"hookCallbackIds\":[\"new\"]}]},\"proven\":[true,false]}]",
							 on_grace));
	add(&r, &somebody, "b", "{\"PreToolUse\":[{\"matcher\":5,\"hookCallbackIds\":[\"bad\"]}]}");
	registry_was_sent(&r);
	ck_assert(registry_was_refused(&r, true, count, &lost));
	ck_assert_int_eq(lost, 1);
	ck_assert_uint_eq(r.n_hooks, 2);
	ck_assert(registry_guards(&r));
	registry_was_sent(&r);
	ck_assert(!registry_was_refused(&r, false, count, &lost));
	ck_assert(registry_was_refused(&r, true, count, &lost));
	ck_assert_int_eq(lost, 2);
	ck_assert(registry_guards(&r));
	registry_was_sent(&r);
	ck_assert(!registry_was_refused(&r, true, count, &lost));
	comes_back_as(&r, "[{\"uid\":1000,\"name\":\"a\",\"hooks\":{\"PreToolUse\":[{\"plenum_owner_gone\":\"deny\","
					  "\"hookCallbackIds\":[\"old\"]}]},\"proven\":[true]}]");
	registry_free(&r);
}
END_TEST

#define LOST                                                                                                           \
	"[{\"uid\":0,\"name\":null,\"hooks\":{\"PreToolUse\":[{\"plenum_owner_gone\":\"deny\",\"hookCallbackIds\":["       \
	"\"plenum_guards_lost\"]}]},\"proven\":[true]}]"

START_TEST(damaged) {
	static const char good[] = "{\"uid\":1,\"name\":\"a\",\"hooks\":{\"PreToolUse\":[{\"hookCallbackIds\":[\"x\"]}]}}";
	static const char *const bad[] = {"",
									  "[]",
									  "{}",
									  "null",
									  "[1]",
									  "[{\"uid\":-1,\"hooks\":{}}]",
									  "[{\"uid\":1}]",
									  "[{\"uid\":1,\"hooks\":{\"PreToolUse\":5}}]"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct registry r;
		registry_init(&r, claude_dialect.hooks);
		ck_assert_msg(!guards_restore(&r, NULL, loop, bad[i], on_grace), "%s", bad[i]);
		ck_assert(guards_lost(&r) && registry_guards(&r));
		ck_assert_uint_eq(r.n_hooks, 1);
		comes_back_as(&r, LOST);
		registry_free(&r);
	}
	char text[300];
	struct registry r;
	registry_init(&r, claude_dialect.hooks);
	snprintf(text, sizeof text, "[{\"uid\":1},%s]", good);
	ck_assert(!guards_restore(&r, NULL, loop, text, on_grace));
	ck_assert_ptr_nonnull(registry_absent_owner(&r, 1, "a")); /* the readable part is there */
	ck_assert(guards_lost(&r));
	ck_assert_uint_eq(r.n_hooks, 2);
	registry_free(&r);
}
END_TEST

/* It ends only when cleared, or with the session: not by a grace, a return or a refused table. */
START_TEST(the_stand_in_stays) {
	struct registry r;
	struct owner *o;
	int lost = 0;
	registry_init(&r, claude_dialect.hooks);
	ck_assert(!guards_restore(&r, NULL, loop, "damaged", on_grace));
	ck_assert_ptr_null(registry_absent_owner(&r, 0, NULL));
	LIST_FOR_EACH (o, &r.owners, struct owner, node) {
		ck_assert(guards_stand_in(o));
		o->grace_over = true;
		registry_drop_loose(&r, o);
	}
	registry_was_sent(&r);
	ck_assert(!registry_was_refused(&r, true, count, &lost));
	o = add(&r, &somebody, "guard", "{\"PreToolUse\":[{\"hookCallbackIds\":[\"a\"]}]}");
	ck_assert(!guards_stand_in(o) && guards_lost(&r));
	registry_free(&r);
}
END_TEST

/* Until a client continues without the lost part: then the readable part guards. */
START_TEST(lost_and_cleared) {
	struct registry r;
	registry_init(&r, claude_dialect.hooks);
	ck_assert(!guards_clear(&r));
	guards_lose(&r, NULL, loop, on_grace);
	guards_lose(&r, NULL, loop, on_grace); /* one is enough */
	ck_assert(guards_lost(&r) && r.n_hooks == 1);
	add(&r, &somebody, "guard", "{\"PreToolUse\":[{\"hookCallbackIds\":[\"a\"]}]}");
	registry_was_sent(&r);
	registry_was_taken(&r, r.sent);
	uint64_t version = r.version;
	ck_assert(guards_clear(&r));
	ck_assert(!guards_lost(&r) && r.n_hooks == 1 && r.version > version && registry_guards(&r));
	struct hook *h = registry_hook(&r, span_of("\"cb_1\"")); /* the child may call it until it has another table */
	ck_assert(h && !h->entry->owner && !h->entry->guard);
	ck_assert(!guards_clear(&r));
	comes_back_as(&r, "[{\"uid\":1000,\"name\":\"guard\",\"hooks\":{\"PreToolUse\":[{\"plenum_owner_gone\":\"deny\","
					  "\"hookCallbackIds\":[\"a\"]}]},\"proven\":[true]}]");
	registry_free(&r);
}
END_TEST

#define KEPT(matcher, proven)                                                                                          \
	"[{\"uid\":1000,\"name\":\"g\",\"hooks\":{\"PreToolUse\":[{\"matcher\":\"" matcher                                 \
	"\",\"plenum_owner_gone\":\"deny\",\"hookCallbackIds\":[\"a\"]}]},\"proven\":[" proven "]}]"

/* The table on disk has a registration before it is in force. */
START_TEST(what_is_staged_is_written) {
	struct registry r;
	registry_init(&r, claude_dialect.hooks);
	struct owner *o = add(&r, &somebody, "g", "{\"PreToolUse\":[{\"matcher\":\"A\",\"hookCallbackIds\":[\"a\"]}]}");
	registry_was_sent(&r);
	registry_was_taken(&r, r.sent);
	registry_stage_hooks(&r, o, span_of("{\"PreToolUse\":[{\"matcher\":\"A\",\"hookCallbackIds\":[\"a\"]}]}"));
	comes_back_as(&r, KEPT("A", "true")); /* the same again is not a change */
	registry_stage_hooks(&r, o, span_of("{\"PreToolUse\":[{\"matcher\":\"B\",\"hookCallbackIds\":[\"a\"]}]}"));
	comes_back_as(&r, KEPT("B", "false"));
	registry_cancel_hooks(&r, o);
	comes_back_as(&r, KEPT("A", "true"));
	registry_stage_hooks(&r, o, span_of("{}"));
	ck_assert_ptr_null(text_of(&r));
	registry_commit_hooks(&r, o);
	ck_assert_ptr_null(text_of(&r));
	registry_free(&r);
}
END_TEST

static void before(void) {
	loop = loop_new();
}

static void after(void) {
	loop_free(loop);
}

static const char *const hook_sets[] = {
	"{}",
	"{\"PostToolUse\":[{\"hookCallbackIds\":[\"w\"]}]}",
	"{\"PreToolUse\":[{\"hookCallbackIds\":[\"a\"]}]}",
	"{\"PreToolUse\":[{\"hookCallbackIds\":[\"a\"]},{\"matcher\":\"B\",\"hookCallbackIds\":[\"b\"]}]}",
	"{\"PreToolUse\":[{\"matcher\":\"B\",\"hookCallbackIds\":[\"b\"]}]}",
	"{\"PreToolUse\":[{\"matcher\":\"B\",\"plenum_owner_gone\":\"drop\",\"hookCallbackIds\":[\"b\"]}]}",
};

static struct owner *one_of(struct registry *r, uint64_t *seed) {
	size_t n = list_length(&r->owners), at = n ? rng_below(seed, n) : 0;
	struct owner *o;
	LIST_FOR_EACH (o, &r->owners, struct owner, node)
		if (at-- == 0) return o;
	return NULL;
}

static struct span hook_set(uint64_t *seed) {
	return span_of(hook_sets[rng_below(seed, ARRAY_SIZE(hook_sets))]);
}

/* Return true if hooks are staged afterwards. */
static bool change(struct registry *r, uint64_t *seed) {
	struct owner *o = one_of(r, seed), *first = LIST_OF(r->owners.next, struct owner, node);
	int lost = 0;
	switch (rng_below(seed, o ? 10 : 1)) {
	case 0:
		o = registry_add_owner(r, NULL, loop, rng_below(seed, 2) ? (void *)&somebody : NULL,
							   (uid_t)(1000 + rng_below(seed, 2)), rng_below(seed, 2) ? "a" : "b", on_grace);
		ck_assert_ptr_null(registry_set_hooks(r, o, hook_set(seed)));
		break;
	case 1:
		ck_assert_ptr_null(registry_set_hooks(r, o, hook_set(seed)));
		break;
	case 2:
		ck_assert_ptr_null(registry_stage_hooks(r, o, hook_set(seed)));
		return true;
	case 3:
		registry_drop_owner(r, o);
		break;
	case 4:
		o->grace_over = rng_below(seed, 2);
		registry_drop_loose(r, o);
		break;
	case 5:
		registry_was_sent(r);
		break;
	case 6:
		registry_was_taken(r, r->sent);
		break;
	case 7:
		registry_was_refused(r, rng_below(seed, 2), count, &lost);
		break;
	case 8:
		/* or equal entries could come in another order, which changes the text, but nothing else */
		if (o != first && (list_empty(&o->entries) || list_empty(&first->entries))) registry_merge(r, first, o);
		break;
	default:
		registry_child_gone(r);
		break;
	}
	return false;
}

/* Nothing changes the text without another mark: the table on disk would keep the older guards. */
START_TEST(the_mark_changes_with_the_text) {
	uint64_t seed = 7;
	struct registry r;
	registry_init(&r, claude_dialect.hooks);
	char *before = text_of(&r);
	uint64_t mark = guards_mark(&r);
	int changes = 0, same = 0;
	for (int i = 0; i < rounds(20000); i++) {
		if (change(&r, &seed)) {
			ck_assert_uint_eq(guards_mark(&r), 0);
			struct owner *o;
			LIST_FOR_EACH (o, &r.owners, struct owner, node)
				rng_below(&seed, 2) ? registry_commit_hooks(&r, o) : registry_cancel_hooks(&r, o);
		}
		char *after = text_of(&r);
		uint64_t next = guards_mark(&r);
		bool changed = strcmp(before ? before : "", after ? after : "") != 0;
		REQUIRE(next != 0 && (!changed || next != mark), "round %d: %s, then %s", i, before, after);
		changes += changed;
		same += next == mark;
		free(before);
		free(after);
		if (list_length(&r.owners) > 6) registry_drop_owner(&r, one_of(&r, &seed));
		before = text_of(&r);
		mark = guards_mark(&r);
	}
	ck_assert(changes > 0 && same > 0);
	free(before);
	registry_free(&r);
}
END_TEST

RUN_TESTS_WITH(before, after, "guards", nobody_guards, guards_alone_are_kept, a_table_is_refused, damaged,
			   the_stand_in_stays, lost_and_cleared, what_is_staged_is_written, the_mark_changes_with_the_text)
