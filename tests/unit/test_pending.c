/* SPDX-License-Identifier: MIT */
#include "core/pending.h"
#include "dialect/claude/claude.h"

#include "carrying.h"

#include "base/fd.h"
#include "wire/lengths.h"
#include "wire/limits.h"

struct world {
	struct loop *loop;
	struct pendings all;
};

static void late(struct pending *p) {
	(void)p;
}

static const struct pending_events events = {.late = late}, hook_events = {.late = late};

static const struct pending_events *events_of(const struct pending *p) {
	return p->kind == ASK_HOOK ? &hook_events : &events;
}

static void begin(void *arg) {
	struct world *w = arg;
	w->loop = loop_new();
	pendings_init(&w->all);
}

static void end(void *arg) {
	struct world *w = arg;
	pendings_free(&w->all);
	loop_free(w->loop);
}

static struct pending *add(struct world *w, const char *line) {
	struct envelope e;
	struct chunk c = chunk_copy(line, strlen(line));
	ck_assert(scan_envelope(c.data, c.len, &e));
	struct pending *p = pending_new(&w->all, NO_SESSION, w->loop, &claude_dialect, &e, c, SPLICE_NOTHING, &events);
	chunk_drop(&c);
	return p;
}

static void is_shown(const struct pending *p, const char *want) {
	struct chunk line = rope_join(&p->shown);
	ck_assert_uint_eq(line.len, strlen(want));
	ck_assert_mem_eq(line.data, want, line.len);
	chunk_drop(&line);
}

static struct pending *find(struct world *w, const char *id) {
	char text[200];
	snprintf(text, sizeof text, "\"%s\"", id);
	return pending_find(&w->all, span_of(text));
}

static bool was_settled(struct world *w, const char *id) {
	char text[200];
	snprintf(text, sizeof text, "\"%s\"", id);
	return pending_was_settled(&w->all, span_of(text));
}

START_TEST(clients_get_the_line_with_our_id) {
	struct world w;
	char want[300];
	begin(&w);
	struct pending *p = add(
		&w, " {\"type\":\"control_request\", \"n\":1.50, \"request_id\" : \"child-1\",\"request\":"
			"{\"subtype\":\"can_use_tool\",\"tool_name\":\"Ba\\u0073h\",\"input\":{\"a\":\"\\ud800\"}}}\n");
	snprintf(want, sizeof want,
			 " {\"type\":\"control_request\", \"n\":1.50, \"request_id\" : \"%s\",\"request\":"
			 "{\"subtype\":\"can_use_tool\",\"tool_name\":\"Ba\\u0073h\",\"input\":{\"a\":\"\\ud800\"}}}\n",
			 p->id);
	is_shown(p, want);
	ck_assert(p->request.p > p->line.data && p->request.p + p->request.n < p->line.data + p->line.len);
	ck_assert_str_eq(p->tool, "Bash");
	ck_assert_str_eq(p->subtype, "can_use_tool");
	ck_assert_str_eq(p->child_id, "\"child-1\"");
	ck_assert_int_eq(p->kind, ASK_TOOL);
	ck_assert_ptr_eq(find(&w, p->id), p);
	ck_assert_ptr_eq(pending_find_child(&w.all, span_of("\"child-1\"")), p);
	ck_assert_ptr_null(find(&w, "child-1"));
	ck_assert_ptr_null(pending_find(&w.all, SPAN_NONE));
	ck_assert_ptr_null(pending_find(&w.all, span_of("1")));
	ck_assert_ptr_null(pending_find_child(&w.all, span_of("\"child-2\"")));
	ck_assert_ptr_null(pending_find_child(&w.all, SPAN_NONE));
	end(&w);
}
END_TEST

static struct pending *ask(struct world *w, const char *subtype, int n) {
	char line[300];
	snprintf(line, sizeof line,
			 "{\"type\":\"control_request\",\"request_id\":\"c%d\",\"request\":{\"subtype\":\"%s\",\"input\":{}}}\n", n,
			 subtype);
	return add(w, line);
}

START_TEST(counts_those_that_wait_for_a_person) {
	static const struct {
		const char *subtype;
		bool person;
	} kinds[] = {{"can_use_tool", true},         {"hook_callback", false}, {"mcp_message", false},
				 {"request_user_dialog", false}, {"elicitation", true},    {"something_new", true}};
	struct world w;
	struct pending *all[ARRAY_SIZE(kinds)];
	size_t persons = 0;
	begin(&w);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		all[i] = ask(&w, kinds[i].subtype, (int)i);
		persons += kinds[i].person;
		ck_assert_int_eq(pending_for_person(all[i]), kinds[i].person);
		ck_assert_uint_eq(w.all.n, i + 1);
		ck_assert_uint_eq(w.all.n_person, persons);
	}
	ck_assert_ptr_eq(LIST_TOP(&w.all.order, struct pending, node), all[0]);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		pending_settle(&w.all, all[i]);
		persons -= kinds[i].person;
		ck_assert_uint_eq(w.all.n_person, persons);
	}
	ck_assert_uint_eq(w.all.n, 0);
	ck_assert(list_empty(&w.all.order));
	end(&w);
}
END_TEST

/* The first request fits whatever its length, and the limits are exact for others. */
START_TEST(requests_have_a_limit_of_bytes) {
	struct world w;
	begin(&w);
	ck_assert_ptr_null(pendings_limit(&w.all, 2, 2, LIMITS_PENDING_BYTES + 1));
	struct pending *p = ask(&w, "can_use_tool", 1);
	size_t n = p->line.len;
	ck_assert_uint_eq(w.all.bytes, n);
	for (size_t part = 1; part <= 2; part++) {
		size_t room = LIMITS_PENDING_BYTES / part - n;
		ck_assert_ptr_null(pendings_limit(&w.all, 3, part, room));
		ck_assert_str_eq(pendings_limit(&w.all, 3, part, room + 1), "pending_bytes");
	}
	ck_assert_ptr_null(pendings_limit(&w.all, 2, 1, n));
	ck_assert_str_eq(pendings_limit(&w.all, 2, 2, n), "max_pending");
	ck_assert_str_eq(pendings_limit(&w.all, 1, 1, n), "max_pending");
	struct pending *other = ask(&w, "hook_callback", 2);
	ck_assert_uint_eq(w.all.bytes, n + other->line.len);
	pending_settle(&w.all, p);
	ck_assert_uint_eq(w.all.bytes, other->line.len);
	pending_settle(&w.all, other);
	ck_assert_uint_eq(w.all.bytes, 0);
	end(&w);
}
END_TEST

/* A tool with an unreadable name is not asked about under an empty one: rules match by name. */
START_TEST(a_tool_has_a_name_that_can_be_read) {
	struct world w;
	begin(&w);
	ck_assert_ptr_null(add(&w, "{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{\"subtype\":"
							   "\"can_use_tool\",\"tool_name\":\"Bash\\u0000\"}}\n"));
	ck_assert_uint_eq(w.all.n, 0);
	struct pending *p = add(&w, "{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{\"subtype\":"
								"\"hook_callback\"}}\n");
	ck_assert_ptr_null(p->tool);
	end(&w);
}
END_TEST

START_TEST(knows_late_answers_from_wrong_ones) {
	static const char *const wrong[] = {"",
										"req_",
										"req_1_",
										"req_1_1234567",
										"req_1",
										"req_0_12345678",
										"req_1_123456789",
										"xxx_1_12345678",
										"req_99999999999999999999_12345678",
										"req_11111111111111111111111111111111111111_12345678"};
	struct world w;
	char id[PENDING_ID_MAX];
	begin(&w);
	struct pending *p = ask(&w, "can_use_tool", 1);
	strcpy(id, p->id);
	ck_assert(!was_settled(&w, id));
	pending_settle(&w.all, p);
	ck_assert_ptr_null(find(&w, id));
	ck_assert(was_settled(&w, id));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) REQUIRE(!was_settled(&w, wrong[i]), "%s", wrong[i]);
	ck_assert(!pending_was_settled(&w.all, SPAN_NONE));
	ck_assert(!pending_was_settled(&w.all, span_of("7")));
	char *last = &id[strlen(id) - 1];
	*last = *last == '0' ? '1' : '0'; /* correct counter, guessed rest */
	ck_assert(!was_settled(&w, id));
	end(&w);
}
END_TEST

/* The last SETTLED_KEPT are remembered, and after a trim the last of those. */
START_TEST(remembers_the_last_settled) {
	enum { MANY = 3 * SETTLED_KEPT };
	static char ids[MANY][PENDING_ID_MAX];
	static const size_t trims[] = {0, 1, 3, 64, 100, 1000, SETTLED_KEPT, 5000};
	for (size_t t = 0; t < ARRAY_SIZE(trims); t++) {
		struct world w;
		size_t first = 0;
		uint64_t seed = t;
		begin(&w);
		for (size_t i = 0; i < MANY; i++) {
			struct pending *p = ask(&w, "hook_callback", (int)i);
			strcpy(ids[i], p->id);
			pending_settle(&w.all, p);
			if (i + 1 - first > SETTLED_KEPT) first++;
			if (rng_below(&seed, 700) == 0) {
				pendings_trim(&w.all, trims[t]);
				if (i + 1 - first > trims[t]) first = i + 1 - trims[t];
			}
			if (rng_below(&seed, 100) != 0) continue;
			REQUIRE(was_settled(&w, ids[i]) == (first <= i), "%zu after %zu", i, first);
			size_t some = rng_below(&seed, i + 1);
			REQUIRE(was_settled(&w, ids[some]) == (some >= first), "%zu of %zu, first %zu, trimmed to %zu", some, i,
					first, trims[t]);
			if (first) REQUIRE(!was_settled(&w, ids[first - 1]), "%zu of %zu", first - 1, i);
			REQUIRE(first > i || was_settled(&w, ids[first]), "%zu of %zu, trimmed to %zu", first, i, trims[t]);
			ck_assert_uint_le(w.all.cap_settled, SETTLED_KEPT);
		}
		end(&w);
	}
}
END_TEST

#define CROWD 100

static char crowd[CROWD];

START_TEST(knows_who_was_asked) {
	struct world w;
	bool asked[CROWD] = {0};
	uint64_t seed = 3;
	begin(&w);
	struct pending *p = ask(&w, "can_use_tool", 1);
	const int n_rounds = rounds(2000);
	for (int i = 0; i < n_rounds; i++) {
		size_t who = rng_below(&seed, CROWD), n = 0;
		if (rng_below(&seed, 2)) {
			ck_assert_int_eq(pending_ask(p, (void *)&crowd[who]), !asked[who]);
			asked[who] = true;
		} else {
			ck_assert_int_eq(pending_forget(p, (void *)&crowd[who]), asked[who]);
			asked[who] = false;
		}
		for (size_t k = 0; k < CROWD; k++) {
			ck_assert_int_eq(pending_was_asked(p, (void *)&crowd[k]), asked[k]);
			n += asked[k];
		}
		ck_assert_uint_eq(p->n_asked, n);
	}
	end(&w);
}
END_TEST

START_TEST(a_member_can_be_replaced) {
	struct world w;
	begin(&w);
	struct pending *p = add(&w, "{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{\"subtype\":"
								"\"hook_callback\",\"callback_id\":\"cb_1\",\"input\":{\"x\":1.0}},\"more\":[1]}\n");
	ck_assert(pending_set_part(p, ASK_PART_CALLBACK, "\"a much longer id of the owner\""));
	ck_assert(pending_set_part(p, ASK_PART_CALLBACK, "\"\""));
	char want[300];
	snprintf(want, sizeof want,
			 "{\"type\":\"control_request\",\"request_id\":\"%s\",\"request\":{\"subtype\":"
			 "\"hook_callback\",\"callback_id\":\"\",\"input\":{\"x\":1.0}},\"more\":[1]}\n",
			 p->id);
	is_shown(p, want);
	end(&w);
}
END_TEST

/* The request stays the same text in the line of clients, on either side of the id, with and without known lengths. */
START_TEST(the_request_is_found_in_the_copy) {
	static const char request[] = "{\"subtype\":\"can_use_tool\",\"input\":{\"x\":[1,2]},\"tool_name\":\"T\"}";
	static const char *const ids[] = {"1", "a longer id than any that the daemon makes: 0123456789"};
	for (int i = 0; i < 8; i++) {
		struct world w;
		struct envelope e;
		char line[400];
		begin(&w);
		if (i & 1)
			snprintf(line, sizeof line, "{\"request_id\":\"%s\",\"request\":%s}\n", ids[i >> 1 & 1], request);
		else
			snprintf(line, sizeof line, "{\"request\":%s,\"request_id\":\"%s\"}\n", request, ids[i >> 1 & 1]);
		struct chunk c = chunk_copy(line, strlen(line));
		struct lengths *l = lengths_new(c.data, c.len, 1);
		ck_assert(lengths_step(l, SIZE_MAX));
		if (i & 4) lengths_use(l);
		ck_assert(scan_envelope(c.data, c.len, &e));
		struct pending *p = pending_new(&w.all, NO_SESSION, w.loop, &claude_dialect, &e, c, SPLICE_NOTHING, &events);
		ck_assert(span_same(p->request, span_of(request)));
		ck_assert(span_same(span_member(p->request, "input"), span_of("{\"x\":[1,2]}")));
		ck_assert(span_same(span_member(p->request, "tool_name"), span_of("\"T\"")));
		lengths_use(NULL);
		lengths_free(l);
		chunk_drop(&c);
		end(&w);
	}
}
END_TEST

static void says(const char *request, const char *want) {
	struct world w;
	char line[1000];
	begin(&w);
	snprintf(line, sizeof line, "{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":%s}\n", request);
	_cleanup_free_ char *have = pending_summary(add(&w, line));
	ck_assert_str_eq(have, want);
	end(&w);
}

START_TEST(says_what_it_is_about) {
	says("{\"subtype\":\"can_use_tool\",\"input\":{\"description\":\"d\",\"command\":\"ls\"}}", "ls");
	says("{\"subtype\":\"can_use_tool\",\"input\":{\"file_path\":\"/a\"},\"description\":\"x\"}", "/a");
	says("{\"subtype\":\"elicitation\",\"message\":\"Name?\"}", "Name?");
	says("{\"subtype\":\"can_use_tool\",\"input\":{\"command\":\"a\\u001b[2J\\nb\"}}", "a\\x1b[2J\\x0ab");
	says("{\"subtype\":\"can_use_tool\",\"tool_name\":\"T\",\"input\":{\"command\":[1]}}", "{\"command\":[1]}");
	says("{\"subtype\":\"can_use_tool\",\"tool_name\":\"T\",\"input\":{\"command\":\"\\u0000\"}}",
		 "{\"command\":\"\\u0000\"}");
	says("{\"subtype\":\"can_use_tool\",\"tool_name\":\"T\",\"input\":{}}", "");
	says("{\"subtype\":\"request_user_dialog\"}", "request_user_dialog");
	says("{}", "");
	char many[300], request[500];
	memset(many, 'x', sizeof many);
	many[299] = 0;
	snprintf(request, sizeof request, "{\"subtype\":\"x\",\"message\":\"%s\"}", many);
	strcpy(many + 197, "…");
	says(request, many);
	memset(many, 'x', sizeof many);
	many[200] = 0;
	snprintf(request, sizeof request, "{\"subtype\":\"x\",\"message\":\"%s\"}", many);
	says(request, many);
}
END_TEST

/* --- upgrade ------------------------------------------------------------------------------------------------------ */

static uint64_t owner_number(struct session *s, const struct owner *owner) {
	ck_assert_ptr_eq(s, NO_SESSION);
	return party_number(owner);
}

static struct owner *owner_of(struct session *s, uint64_t number) {
	ck_assert_ptr_eq(s, NO_SESSION);
	return party_of(NULL, number);
}

static void carry(struct carry *c, void *arg) {
	static const struct pending_links links = {owner_number, owner_of, events_of};
	struct world *w = arg;
	pendings_carry(c, &w->all, NO_SESSION, w->loop, &claude_dialect, &links);
}

static void fill(struct world *w) {
	for (int i = 0; i < 5; i++) pending_settle(&w->all, ask(w, "hook_callback", i));
	struct pending *p = ask(w, "can_use_tool", 10);
	pending_ask(p, PARTY(1));
	pending_ask(p, PARTY(4));
	p->tool = strdup("Bash");
	p->act = chunk_copy("{\"type\":\"bash_command\"}\n", 24);
	p->sender = PARTY(3);
	p->sender_id = strdup("\"mine\"");
	p->sender_line = 7;
	p = ask(w, "hook_callback", 11);
	p->event = strdup("\"PreToolUse\"");
	p->owner = PARTY(2);
	p->guard = true;
	p->timer_on = true;
	loop_timer_set(&p->timer, 100000);
}

START_TEST(is_carried) {
	struct world a, b;
	struct error error;
	begin(&a);
	begin(&b);
	fill(&a);
	struct saved s = carry_save_thing(carry, &a);
	ck_assert_msg(carry_load_thing(s, s.len, carry, &b, &error), "%s", error.text);
	ck_assert_uint_eq(b.all.n, 2);
	ck_assert_uint_eq(b.all.n_person, 1);
	struct pending *p, *q = LIST_TOP(&b.all.order, struct pending, node);
	size_t bytes = 0;
	LIST_FOR_EACH (p, &a.all.order, struct pending, node) {
		ck_assert_ptr_eq(find(&b, p->id), q);
		ck_assert_ptr_eq(pending_find_child(&b.all, span_of(p->child_id)), q);
		struct chunk shown = rope_join(&p->shown);
		ck_assert_uint_eq(shown.len, q->shown.len);
		ck_assert_mem_eq(shown.data, q->shown.parts[0].data, shown.len);
		chunk_drop(&shown);
		ck_assert(q->request.p > q->line.data && span_same(p->request, q->request));
		ck_assert(p->kind == q->kind && p->owner == q->owner && p->guard == q->guard && p->timer_on == q->timer_on);
		ck_assert(p->since == q->since && p->since_real == q->since_real && p->n_asked == q->n_asked);
		ck_assert_int_eq(loop_timer_pending(&p->timer), loop_timer_pending(&q->timer));
		ck_assert_ptr_eq(q->events, events_of(q)); /* its deadline goes to the module that made it */
		bytes += q->line.len;
		q = LIST_OF(q->node.next, struct pending, node);
	}
	ck_assert_uint_eq(b.all.bytes, bytes);
	p = LIST_TOP(&b.all.order, struct pending, node);
	ck_assert(pending_was_asked(p, PARTY(1)) && pending_was_asked(p, PARTY(4)) && !pending_was_asked(p, PARTY(2)));
	ck_assert(p->act.len == 24 && p->sender == PARTY(3) && p->sender_line == 7);
	ck_assert_str_eq(p->sender_id, "\"mine\"");
	ck_assert_uint_eq(b.all.n_settled, 5);
	ck_assert_mem_eq(a.all.settled, b.all.settled, 5 * sizeof *a.all.settled);
	struct pending *next = ask(&b, "can_use_tool", 20); /* continues the numbers */
	ck_assert_int_eq(strncmp(next->id, "req_8_", 6), 0);
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

RUN_TESTS("pending", clients_get_the_line_with_our_id, counts_those_that_wait_for_a_person,
		  requests_have_a_limit_of_bytes, a_tool_has_a_name_that_can_be_read, knows_late_answers_from_wrong_ones,
		  remembers_the_last_settled, knows_who_was_asked, a_member_can_be_replaced, the_request_is_found_in_the_copy,
		  says_what_it_is_about, is_carried, damage_is_noticed)
