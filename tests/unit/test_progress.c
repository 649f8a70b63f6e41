/* SPDX-License-Identifier: MIT */
#include "core/progress.h"

#include "carrying.h"

/* All of it, as one word. */
static const char *shown(const struct progress *p) {
	static char text[8];
	snprintf(text, sizeof text, "%c%c%c%c%c%c", p->warming ? 'w' : '-', p->got_line ? 'l' : '-',
			 p->said_init ? 's' : '-', p->init_open ? 'o' : '-', p->turn ? 't' : '-', p->background ? 'b' : '-');
	return text;
}

static struct progress busy(void) {
	struct progress p;
	progress_begin(&p);
	progress_used(&p);
	progress_line(&p);
	progress_init(&p);
	progress_owes_init(&p, true);
	progress_turn(&p, true);
	progress_background(&p, true);
	return p;
}

START_TEST(a_child_begins_with_nothing) {
	struct progress p = busy();
	ck_assert_str_eq(shown(&p), "-lsotb");
	progress_begin(&p);
	ck_assert_str_eq(shown(&p), "w-----");
}
END_TEST

/* The report on its end asks whether it has printed anything. */
START_TEST(its_output_is_known_after_its_end) {
	struct progress p = busy();
	progress_end(&p);
	ck_assert_str_eq(shown(&p), "-ls---");
}
END_TEST

START_TEST(another_session_takes_it) {
	struct progress from = busy(), to = busy();
	progress_take(&to, &from);
	ck_assert_str_eq(shown(&to), "wl---b");
	progress_begin(&from);
	progress_take(&to, &from);
	ck_assert_str_eq(shown(&to), "w-----");
}
END_TEST

START_TEST(each_part_ends_alone) {
	struct progress p = busy();
	progress_owes_init(&p, false);
	ck_assert_str_eq(shown(&p), "-ls-tb");
	progress_turn(&p, false);
	ck_assert_str_eq(shown(&p), "-ls--b");
	progress_background(&p, false);
	ck_assert_str_eq(shown(&p), "-ls---");
}
END_TEST

static void carry_one(struct carry *c, void *thing) {
	progress_carry(c, thing);
}

START_TEST(it_survives_an_upgrade) {
	struct progress before = busy(), after = {0};
	struct error error;
	struct saved s = carry_save_thing(carry_one, &before);
	ck_assert(carry_load_thing(s, s.len, carry_one, &after, &error));
	ck_assert_str_eq(shown(&after), "-lsotb");
	free(s.data);
}
END_TEST

RUN_TESTS("progress", a_child_begins_with_nothing, its_output_is_known_after_its_end, another_session_takes_it,
		  each_part_ends_alone, it_survives_an_upgrade)
