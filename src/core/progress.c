/* SPDX-License-Identifier: MIT */
#include "core/progress.h"

void progress_begin(struct progress *p) {
	*p = (struct progress){.warming = true};
}

void progress_end(struct progress *p) {
	p->warming = p->turn = p->init_open = p->background = false;
}

void progress_take(struct progress *to, const struct progress *from) {
	progress_begin(to);
	to->got_line = from->got_line;
	to->background = from->background;
}

void progress_used(struct progress *p) {
	p->warming = false;
}

void progress_line(struct progress *p) {
	p->got_line = true;
}

void progress_init(struct progress *p) {
	p->said_init = true;
}

void progress_owes_init(struct progress *p, bool owes) {
	p->init_open = owes;
}

void progress_turn(struct progress *p, bool runs) {
	p->turn = runs;
}

void progress_background(struct progress *p, bool any) {
	p->background = any;
}

void progress_carry(struct carry *c, struct progress *p) {
	CARRY(c, p->init_open);
	CARRY(c, p->turn);
	CARRY(c, p->got_line);
	CARRY(c, p->said_init);
	CARRY(c, p->background);
	CARRY(c, p->warming);
}
