/* SPDX-License-Identifier: MIT */
#include "core/pending.h"

#include "base/fd.h"
#include "base/str.h"
#include "wire/lengths.h"
#include "wire/limits.h"
#include "wire/splice.h"

#include <stdio.h>
#include <string.h>

#define SUMMARY_MAX 200   /* bytes */
#define CUT "…"           /* ends a summary that is not whole: who decides by it must know */
#define ASKED_SEARCHED 16 /* up to so many entries are searched one by one */

void pendings_init(struct pendings *p) {
	memset(p, 0, sizeof *p);
	list_init(&p->order);
	list_init(&p->resolved);
}

static void free_pending(struct pending *p) {
	loop_timer_stop(&p->timer);
	share_end(&p->charge);
	errand_drop(&p->judge);
	lengths_free(p->lengths);
	chunk_drop(&p->line);
	rope_drop(&p->shown);
	chunk_drop(&p->act);
	free(p->sender_id);
	free(p->child_id);
	free(p->subtype);
	free(p->tool);
	free(p->event);
	free(p->asked);
	free(p->places);
	free(p->why);
	free(p);
}

static void unlink_pending(struct pendings *all, struct pending *p) {
	HASH_DELETE(hh, all->by_id, p);
	HASH_DELETE(hh_child, all->by_child, p);
	list_del(&p->node);
	all->n--;
	all->bytes -= p->line.len;
	if (pending_for_person(p)) all->n_person--;
}

void pendings_free(struct pendings *all) {
	struct pending *p;
	LIST_FOR_EACH (p, &all->order, struct pending, node) {
		unlink_pending(all, p);
		free_pending(p);
	}
	LIST_FOR_EACH (p, &all->resolved, struct pending, node) pending_drop(p);
	free(all->settled);
	all->settled = NULL;
	all->n_settled = all->cap_settled = all->settled_at = 0;
}

bool pending_for_person(const struct pending *p) {
	return p->kind == ASK_TOOL || p->kind == ASK_ELICITATION || p->kind == ASK_UNKNOWN;
}

/* Make the line for clients: the child's with our id, and one more edit. */
static bool show(struct pending *p, struct splice_edit more) {
	struct splice_edit id = {p->line_id.p, p->line_id.n, {{"\"", 1}, span_of(p->id), {"\"", 1}}}, edits[SPLICE_EDITS];
	size_t n = 0;
	if (id.at) splice_add(edits, &n, id);
	if (more.at) splice_add(edits, &n, more);
	struct rope shown = splice_edits(p->line, (struct span){p->line.data, p->line.len}, edits, n, CHUNK_NONE);
	if (!shown.n) return false;
	rope_drop(&p->shown);
	p->shown = shown;
	return true;
}

static struct span moved(struct span s, struct chunk from, struct chunk to) {
	return s.p ? (struct span){to.data + (s.p - from.data), s.n} : s;
}

/* Keep the child's line, and its lengths, which are in use. */
static bool keep_line(struct pending *p, const struct envelope *e, struct chunk line, struct splice_edit edit) {
	p->line = rope_keep(line);
	if (!p->line.data) return false;
	p->line_id = moved(e->request_id, line, p->line);
	p->request = moved(e->request, line, p->line);
	p->lengths = lengths_of_copy(line.data, 0, p->line);
	edit.at = moved((struct span){edit.at, edit.cut}, line, p->line).p;
	return show(p, edit);
}

struct span pending_part(const struct pending *p, enum ask_part part) {
	struct lengths *before = lengths_use_also(p->lengths);
	struct span value = p->dialect->ask_part(p->kind, p->request, part);
	lengths_use_again(before);
	return value;
}

static bool enlist(struct pendings *all, struct pending *p) {
	if (!HASH_TRY_ADD(hh, all->by_id, p->id, strlen(p->id), p)) return false;
	if (!HASH_TRY_ADD(hh_child, all->by_child, p->child_id, strlen(p->child_id), p)) {
		HASH_DELETE(hh, all->by_id, p);
		return false;
	}
	list_add_tail(&all->order, &p->node);
	all->n++;
	all->bytes += p->line.len;
	if (pending_for_person(p)) all->n_person++;
	return true;
}

const char *pendings_limit(const struct pendings *all, size_t max_pending, size_t divisor, size_t n) {
	if (all->n >= (max_pending + divisor - 1) / divisor) return "max_pending";
	return all->n && all->bytes + n > LIMITS_PENDING_BYTES / divisor ? "pending_bytes" : NULL;
}

static void on_timer(void *arg) {
	struct pending *p = arg;
	p->events->late(p);
}

struct pending *pending_new(struct pendings *all, struct session *s, struct loop *loop, const struct dialect *d,
							const struct envelope *e, struct chunk line, struct splice_edit edit,
							const struct pending_events *events) {
	char random[9];
	struct pending *p = calloc(1, sizeof *p);
	if (!p) return NULL;
	str_random_hex(random, 8);
	snprintf(p->id, sizeof p->id, "req_%llu_%s", (unsigned long long)++all->counter, random);
	p->session = s;
	p->judge = ERRAND_ZERO;
	p->dialect = d;
	p->events = events;
	p->kind = d->ask_kind(e);
	p->child_id = strndup(e->request_id.p, e->request_id.n);
	p->subtype = span_dup(e->inner_subtype, NULL);
	struct span tool = p->kind == ASK_HOOK ? SPAN_NONE : d->ask_part(p->kind, e->request, ASK_PART_TOOL);
	p->tool = span_dup(tool, NULL);
	p->since = now_ms();
	p->since_real = now_real_ms();
	loop_timer_init(&p->timer, loop, on_timer, p);
	bool nameless = !p->tool && span_is_string(tool); /* rules match it */
	if (p->child_id && !nameless && keep_line(p, e, line, edit) && enlist(all, p)) return p;
	free_pending(p);
	return NULL;
}

/* Return the input of a tool as JSON, or a little more than SUMMARY_MAX bytes of it; NULL: it has none, or no memory.
 */
static char *input_start(const struct pending *p) {
	struct span input = pending_part(p, ASK_PART_TOOL_INPUT), key, value;
	size_t at = 0;
	if (!span_is_object(input) || !span_next_member(input, &at, &key, &value)) return NULL;
	return strndup(input.p, MIN(input.n, (size_t)2 * SUMMARY_MAX));
}

char *pending_summary(const struct pending *p) {
	struct buf b = BUF_INIT(8 * SUMMARY_MAX);
	struct lengths *before = lengths_use_also(p->lengths);
	_cleanup_free_ char *text = span_dup_start(p->dialect->summary(p->request), SUMMARY_MAX, NULL);
	lengths_use_again(before);
	if (!text) text = input_start(p);
	const char *from = text ? text : p->subtype && !p->tool ? p->subtype : "";
	bool whole = strnlen(from, SUMMARY_MAX + 1) <= SUMMARY_MAX;
	str_put_safe(&b, from, str_fit(from, whole ? SUMMARY_MAX : SUMMARY_MAX - strlen(CUT)));
	if (!whole) buf_puts(&b, CUT);
	return buf_steal(&b, NULL);
}

bool pending_set_part(struct pending *p, enum ask_part part, const char *json) {
	struct span old = pending_part(p, part);
	return show(p, (struct splice_edit){old.p, old.n, {span_of(json)}});
}

struct pending *pending_find(struct pendings *all, struct span id) {
	struct pending *p = NULL;
	struct span text = span_content(id);
	if (text.p) HASH_FIND(hh, all->by_id, text.p, text.n, p);
	return p;
}

struct pending *pending_find_child(struct pendings *all, struct span id) {
	struct pending *p = NULL;
	if (id.p) HASH_FIND(hh_child, all->by_child, id.p, id.n, p);
	return p;
}

/* --- resolved requests -------------------------------------------------------------------------------------------- */

static bool read_id(const char *p, size_t n, struct settled_id *id) {
	char text[PENDING_ID_MAX], *underscore;
	if (n >= sizeof text || n < sizeof id->random + 1) return false;
	memcpy(text, p, n);
	text[n] = 0;
	underscore = text + n - sizeof id->random - 1;
	if (strncmp(text, "req_", 4) != 0 || *underscore != '_') return false;
	memcpy(id->random, underscore + 1, sizeof id->random);
	*underscore = 0;
	return str_u64(text + 4, 1, UINT64_MAX, &id->counter);
}

bool pending_was_settled(const struct pendings *all, struct span id) {
	struct span text = span_content(id);
	struct settled_id one;
	if (!text.p || !read_id(text.p, text.n, &one)) return false;
	for (size_t i = 0; i < all->n_settled; i++)
		if (all->settled[i].counter == one.counter)
			return memcmp(all->settled[i].random, one.random, sizeof one.random) == 0;
	return false;
}

/* Make the ring at its first use: most sleeping sessions have resolved nothing. */
static bool room_for_settled(struct pendings *all) {
	if (all->n_settled < all->cap_settled || all->cap_settled == SETTLED_KEPT) return true;
	size_t cap = all->cap_settled ? MIN(all->cap_settled * 2, (size_t)SETTLED_KEPT) : 8;
	struct settled_id *more = realloc(all->settled, cap * sizeof *more);
	if (!more) return false;
	all->settled = more;
	all->cap_settled = cap;
	all->settled_at = all->n_settled;
	return true;
}

static void remember(struct pendings *all, const struct pending *p) {
	struct settled_id id;
	if (!read_id(p->id, strlen(p->id), &id) || !room_for_settled(all)) return;
	all->settled[all->settled_at] = id;
	all->settled_at = (all->settled_at + 1) % all->cap_settled;
	all->n_settled = MIN(all->n_settled + 1, all->cap_settled);
}

void pendings_trim(struct pendings *all, size_t keep) {
	if (all->n_settled <= keep) return;
	struct settled_id *kept = calloc(keep, sizeof *kept);
	if (!kept) return;
	for (size_t i = 0; i < keep; i++)
		kept[i] = all->settled[(all->settled_at + all->cap_settled - keep + i) % all->cap_settled];
	free(all->settled);
	all->settled = kept;
	all->n_settled = all->cap_settled = keep;
	all->settled_at = 0;
}

void pending_resolve(struct pendings *all, struct pending *p) {
	remember(all, p);
	unlink_pending(all, p);
	loop_timer_stop(&p->timer);
	share_end(&p->charge);
	errand_drop(&p->judge);
	list_add_tail(&all->resolved, &p->node);
}

void pending_drop(struct pending *p) {
	list_del(&p->node);
	free_pending(p);
}

void pending_settle(struct pendings *all, struct pending *p) {
	pending_resolve(all, p);
	pending_drop(p);
}

/* --- asked parties ------------------------------------------------------------------------------------------------ */

static size_t slot_of(const struct pending *p, const struct attachment *who) {
	return (size_t)(((uint64_t)(uintptr_t)who * 0x9e3779b97f4a7c15ULL) >> 32) & (p->n_places - 1);
}

/* Return the slot with it, or the empty one for it. */
static size_t find_slot(const struct pending *p, const struct attachment *who) {
	size_t slot = slot_of(p, who);
	while (p->places[slot] && p->asked[p->places[slot] - 1] != who) slot = (slot + 1) & (p->n_places - 1);
	return slot;
}

/* Return its place in asked; n_asked: it was not asked. */
static size_t place_of(const struct pending *p, const struct attachment *who) {
	size_t i = 0;
	if (p->places) {
		size_t place = p->places[find_slot(p, who)];
		return place ? place - 1 : p->n_asked;
	}
	while (i < p->n_asked && p->asked[i] != who) i++;
	return i;
}

/* Make twice as many slots as there may be entries. Without memory entries are still searched one by one. */
static void index_asked(struct pending *p) {
	free(p->places);
	p->n_places = 2 * p->cap_asked;
	p->places = p->cap_asked > ASKED_SEARCHED ? calloc(p->n_places, sizeof *p->places) : NULL;
	for (size_t i = 0; p->places && i < p->n_asked; i++) p->places[find_slot(p, p->asked[i])] = (uint32_t)i + 1;
}

/* Move up the following entries that could not be found any more. */
static void empty_slot(struct pending *p, size_t slot) {
	size_t mask = p->n_places - 1;
	for (size_t next = (slot + 1) & mask; p->places[next]; next = (next + 1) & mask) {
		size_t home = slot_of(p, p->asked[p->places[next] - 1]);
		if (((next - home) & mask) < ((next - slot) & mask)) continue;
		p->places[slot] = p->places[next];
		slot = next;
	}
	p->places[slot] = 0;
}

bool pending_was_asked(const struct pending *p, const struct attachment *who) {
	return place_of(p, who) < p->n_asked;
}

bool pending_ask(struct pending *p, struct attachment *who) {
	if (pending_was_asked(p, who)) return false;
	if (p->n_asked == p->cap_asked) {
		size_t cap = p->cap_asked ? p->cap_asked * 2 : 4;
		struct attachment **more = realloc(p->asked, cap * sizeof *more); /* NOLINT(bugprone-sizeof-expression) */
		if (!more) return false;
		p->asked = more;
		p->cap_asked = cap;
		index_asked(p);
	}
	p->asked[p->n_asked++] = who;
	if (p->places) p->places[find_slot(p, who)] = (uint32_t)p->n_asked;
	return true;
}

bool pending_forget(struct pending *p, const struct attachment *who) {
	size_t place = place_of(p, who), last = p->n_asked - 1;
	if (place == p->n_asked) return false;
	if (p->places) {
		size_t of_last = find_slot(p, p->asked[last]), of_this = find_slot(p, who);
		p->places[of_last] = (uint32_t)place + 1;
		p->asked[place] = p->asked[last];
		empty_slot(p, of_this);
	}
	p->asked[place] = p->asked[last];
	p->n_asked = last;
	return true;
}

/* --- upgrade ------------------------------------------------------------------------------------------------------ */

static void carry_asked(struct carry *c, struct pending *p) {
	size_t n = carry_count(c, p->n_asked);
	for (size_t i = 0; i < n && carry_ok(c); i++) {
		struct attachment *who = c->saving ? p->asked[i] : NULL;
		carry_attachment(c, &who);
		if (!c->saving && who && !pending_ask(p, who)) carry_fail(c, "a client was asked twice");
	}
}

static void carry_owner(struct carry *c, struct pending *p, const struct pending_links *links) {
	uint64_t number = c->saving && p->owner ? links->number(p->session, p->owner) : 0;
	carry_number(c, &number);
	if (!c->saving && number && !(p->owner = links->find(p->session, number)))
		carry_fail(c, "the owner of a request is missing");
}

static void carry_act(struct carry *c, struct pending *p) {
	carry_chunk(c, &p->act);
	carry_client(c, &p->sender);
	carry_text(c, &p->sender_id);
	CARRY(c, p->sender_line);
	if (!c->saving && p->act.data && !p->sender) carry_fail(c, "the client of a tool call is missing");
}

static void carry_pending(struct carry *c, struct pending *p, const struct pending_links *links) {
	carry_bytes(c, p->id, sizeof p->id);
	p->id[sizeof p->id - 1] = 0;
	carry_name(c, &p->child_id);
	CARRY_UPTO(c, p->kind, ASK_UNKNOWN);
	carry_rope(c, &p->shown);
	carry_text(c, &p->subtype);
	carry_text(c, &p->tool);
	CARRY(c, p->since);
	CARRY(c, p->since_real);
	carry_asked(c, p);
	carry_owner(c, p, links);
	carry_text(c, &p->event);
	CARRY(c, p->only);
	CARRY(c, p->guard);
	CARRY(c, p->timer_on);
	CARRY(c, p->judging);
	carry_timer(c, &p->timer);
	carry_act(c, p);
}

/* Measure a long line again, at once: the daemon serves no client yet. */
static bool scan_line(struct pending *p, struct envelope *e) {
	bool is_long = p->line.len >= LENGTHS_FROM;
	p->lengths = is_long ? lengths_new(p->line.data, p->line.len, LENGTHS_VALUE) : NULL;
	if (p->lengths) lengths_step(p->lengths, SIZE_MAX);
	lengths_use(p->lengths);
	bool good = p->dialect->scan(p->line.data, p->line.len, e);
	lengths_use(NULL);
	return good;
}

/* Return false if it is incomplete. */
static bool check_pending(struct pending *p) {
	struct envelope e;
	p->line = rope_join(&p->shown);
	if (!p->line.data || !scan_line(p, &e) || !e.request.p) return false;
	p->request = e.request;
	if (p->act.data && (!p->dialect->scan(p->act.data, p->act.len, &e) || !p->tool)) return false;
	return p->kind != ASK_HOOK || p->event;
}

static void load_pending(struct carry *c, struct pendings *all, struct session *s, struct loop *loop,
						 const struct dialect *d, const struct pending_links *links) {
	struct pending *p = calloc(1, sizeof *p);
	if (!p) {
		carry_fail(c, "out of memory");
		return;
	}
	p->session = s;
	p->dialect = d;
	p->judge = ERRAND_ZERO;
	loop_timer_init(&p->timer, loop, on_timer, p);
	carry_pending(c, p, links);
	p->events = links->events(p);
	if (carry_ok(c) && !check_pending(p)) carry_fail(c, "an open request is damaged");
	if (carry_ok(c) && !enlist(all, p)) carry_fail(c, "out of memory");
	if (!carry_ok(c)) free_pending(p);
}

static void carry_settled(struct carry *c, struct pendings *all) {
	CARRY_UPTO(c, all->cap_settled, SETTLED_KEPT);
	if (!c->saving) all->settled = calloc(all->cap_settled + 1, sizeof *all->settled);
	if (all->cap_settled && !all->settled) {
		carry_fail(c, "out of memory");
		return;
	}
	CARRY_UPTO(c, all->n_settled, all->cap_settled);
	CARRY_UPTO(c, all->settled_at, all->cap_settled ? all->cap_settled - 1 : 0);
	carry_bytes(c, all->settled, all->n_settled * sizeof *all->settled);
}

void pendings_carry(struct carry *c, struct pendings *all, struct session *s, struct loop *loop,
					const struct dialect *d, const struct pending_links *links) {
	struct pending *p;
	carry_mark(c, "pending");
	CARRY(c, all->counter);
	carry_settled(c, all);
	size_t n = carry_count(c, all->n);
	if (c->saving) {
		LIST_FOR_EACH (p, &all->order, struct pending, node) carry_pending(c, p, links);
	}
	for (size_t i = 0; !c->saving && i < n && carry_ok(c); i++) load_pending(c, all, s, loop, d, links);
}
