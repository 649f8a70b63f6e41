/* SPDX-License-Identifier: MIT */
#include "core/registry.h"

#include "base/bundle.h"
#include "base/str.h"
#include "dialect/dialect.h"
#include "plenum/protocol.h"
#include "wire/limits.h"

#include <stdio.h>
#include <string.h>

static const char no_memory[] = "out of memory";
static const char too_many_hooks[] = "a session may have 4,096 hooks and as many entries";
static const char too_many_servers[] = "a session may have 4,096 MCP servers";
static const char too_many_dialogs[] = "a client may name 4,096 kinds of dialogs";
static const char too_much_text[] = "the hooks of a session may have 1 MiB together";
static const char matcher_long[] = "a hook's `matcher` may have 64 KiB, and so may the name of its event";
static const char callback_long[] = "the id of a hook callback may have 64 KiB";
static const char server_long[] = "the name of an MCP server may have 64 KiB";

static bool is_one_of(const char *error, const char *const *list) {
	for (; *list; list++)
		if (error == *list) return true;
	return false;
}

const char *registry_code(const char *error) {
	static const char *const full[] = {too_many_hooks, too_many_servers, too_many_dialogs, too_much_text, NULL};
	static const char *const lengthy[] = {matcher_long, callback_long, server_long, NULL};
	if (is_one_of(error, full)) return PLENUM_E_TOO_MANY;
	if (is_one_of(error, lengthy)) return PLENUM_E_TOO_LONG;
	return error == no_memory ? PLENUM_E_INTERNAL : PLENUM_E_BAD_REQUEST;
}

void registry_init(struct registry *r, const struct dialect_hooks *dialect) {
	*r = (struct registry){.dialect = dialect};
	list_init(&r->owners);
	list_init(&r->retired);
}

void registry_free(struct registry *r) {
	struct owner *o;
	LIST_FOR_EACH (o, &r->owners, struct owner, node) registry_drop_owner(r, o);
	registry_child_gone(r); /* with the entries left behind by owners */
}

struct owner *registry_add_owner(struct registry *r, struct session *s, struct loop *loop, struct attachment *holder,
								 uid_t uid, const char *name, void (*on_grace)(void *)) {
	struct owner *o = calloc(1, sizeof *o);
	if (!o) return NULL;
	o->session = s;
	o->holder = holder;
	o->uid = uid;
	o->name = name && *name ? strdup(name) : NULL;
	list_init(&o->entries);
	list_init(&o->servers);
	list_init(&o->staged);
	loop_timer_init(&o->grace, loop, on_grace, o);
	list_add_tail(&r->owners, &o->node);
	return o;
}

struct owner *registry_absent_owner(struct registry *r, uid_t uid, const char *name) {
	struct owner *o;
	if (!name || !*name) return NULL;
	LIST_FOR_EACH (o, &r->owners, struct owner, node)
		if (!o->holder && o->uid == uid && o->name && strcmp(o->name, name) == 0) return o;
	return NULL;
}

/* --- hooks -------------------------------------------------------------------------------------------------------- */

static void free_entry(struct registry *r, struct hook_entry *e) {
	struct hook *h;
	LIST_FOR_EACH (h, &e->hooks, struct hook, node) {
		HASH_DELETE(hh, r->hooks, h);
		if (e->owner) r->n_hooks--;
		list_del(&h->node);
		free(h->callback);
		free(h);
	}
	list_del(&e->node);
	free(e->event);
	free(e->members);
	free(e);
}

/* Retire an unwanted entry; the next version is without it. */
static void retire_entry(struct registry *r, struct hook_entry *e) {
	if (e->born > r->sent) { /* the child does not know it */
		free_entry(r, e);
		return;
	}
	list_del(&e->node);
	list_add_tail(&r->retired, &e->node);
	r->n_hooks -= list_length(&e->hooks);
	e->died = r->version + 1;
	e->from = e->owner;
	e->owner = NULL;
}

bool registry_drop_loose(struct registry *r, struct owner *o) {
	struct hook_entry *e;
	bool gone = false;
	LIST_FOR_EACH (e, &o->entries, struct hook_entry, node) {
		if (e->guard && !(e->drop_when_gone && o->grace_over)) continue;
		e->guard = false; /* by its owner's choice: nothing is refused for it, even if the child still asks */
		retire_entry(r, e);
		gone = true;
	}
	if (gone) r->version++;
	return gone;
}

void registry_was_sent(struct registry *r) {
	r->sent = r->version;
}

void registry_was_taken(struct registry *r, uint64_t version) {
	struct owner *o;
	struct hook_entry *e;
	r->taken = version;
	LIST_FOR_EACH (e, &r->retired, struct hook_entry, node)
		if (e->died <= version) free_entry(r, e);
	LIST_FOR_EACH (o, &r->owners, struct owner, node)
		LIST_FOR_EACH (e, &o->entries, struct hook_entry, node)
			if (e->born <= version) e->proven = true;
}

static bool drop_unproven(struct registry *r, struct owner *o) {
	struct hook_entry *e;
	bool any = false;
	LIST_FOR_EACH (e, &o->entries, struct hook_entry, node) {
		if (e->proven || e->born > r->sent) continue;
		free_entry(r, e);
		any = true;
	}
	return any;
}

static bool take_back(struct registry *r, bool gone, void (*lost)(void *arg, struct owner *o), void *arg) {
	struct owner *o;
	struct hook_entry *e;
	bool any = false;
	LIST_FOR_EACH (o, &r->owners, struct owner, node) {
		if (!o->holder != gone || !drop_unproven(r, o)) continue;
		any = true;
		LIST_FOR_EACH (e, &r->retired, struct hook_entry, node)
			if (e->from == o && e->proven && o->holder) {
				list_del(&e->node);
				list_add_tail(&o->entries, &e->node);
				r->n_hooks += list_length(&e->hooks);
				e->owner = o;
				e->from = NULL;
			}
		lost(arg, o);
	}
	return any;
}

/* Present owners can register again. An absent owner of a guard cannot: it is dropped only if refused alone. */
bool registry_was_refused(struct registry *r, bool alone, void (*lost)(void *arg, struct owner *o), void *arg) {
	bool any = take_back(r, false, lost, arg) || (alone && take_back(r, true, lost, arg));
	if (any) r->version++;
	return any;
}

void registry_child_gone(struct registry *r) {
	struct hook_entry *e;
	LIST_FOR_EACH (e, &r->retired, struct hook_entry, node) free_entry(r, e);
	r->sent = 0;
}

bool registry_guards(const struct registry *r) {
	struct owner *o;
	struct hook_entry *e;
	LIST_FOR_EACH (o, &r->owners, struct owner, node)
		LIST_FOR_EACH (e, &o->entries, struct hook_entry, node)
			if (e->guard && (e->proven || !o->holder)) return true;
	return false;
}

static bool add_hook(struct registry *r, struct hook_entry *e, struct span callback) {
	struct hook *h = calloc(1, sizeof *h);
	if (!h || !(h->callback = strndup(callback.p, callback.n))) {
		free(h);
		return false;
	}
	snprintf(h->id, sizeof h->id, "cb_%llu", (unsigned long long)++r->counter);
	h->entry = e;
	if (!HASH_TRY_ADD(hh, r->hooks, h->id, strlen(h->id), h)) {
		free(h->callback);
		free(h);
		return false;
	}
	list_add_tail(&e->hooks, &h->node);
	r->n_hooks++;
	return true;
}

/* Return the entry's members for the child, unchanged. */
static char *other_members(const struct dialect_hooks *d, struct span entry) {
	struct buf b = BUF_INIT(entry.n + 16);
	struct span key, value;
	for (size_t at = 0; span_next_member(entry, &at, &key, &value);) {
		if (span_equals(key, d->callbacks) || span_equals(key, "plenum_owner_gone")) continue;
		if (b.len) buf_putc(&b, ',');
		buf_put(&b, key.p, key.n);
		buf_putc(&b, ':');
		buf_put(&b, value.p, value.n);
	}
	return buf_steal(&b, NULL);
}

static int64_t timeout_ms(const struct dialect_hooks *d, struct span event, struct span timeout) {
	_cleanup_free_ char *text = timeout.p ? strndup(timeout.p, timeout.n) : NULL;
	double s = text ? strtod(text, NULL) : 0;
	if (!(s > 0)) s = d->hook_timeout(event);
	if (s > 30.0 * 86400) s = 30.0 * 86400;
	return (int64_t)(s * 1000);
}

/* --- limits of a registration ------------------------------------------------------------------------------------- */

/* A session's totals: counted while entries are read, so that reading stops at a limit. */
struct amount {
	size_t entries, hooks, text;
};

static void add_amount(struct amount *a, const struct list *entries) {
	struct hook_entry *e;
	struct hook *h;
	LIST_FOR_EACH (e, entries, struct hook_entry, node) {
		a->entries++;
		a->text += strlen(e->event) + strlen(e->members);
		LIST_FOR_EACH (h, &e->hooks, struct hook, node) {
			a->hooks++;
			a->text += strlen(h->callback);
		}
	}
}

static const char *check_amount(const struct amount *a) {
	if (a->entries > LIMITS_NAMES || a->hooks > LIMITS_NAMES) return too_many_hooks;
	return a->text > LIMITS_HOOKS_TEXT ? too_much_text : NULL;
}

/* --- reading one -------------------------------------------------------------------------------------------------- */

static const char *add_callbacks(struct registry *r, struct hook_entry *e, struct span ids, struct amount *a) {
	const char *error = NULL;
	struct span id;
	for (size_t at = 0; !error && span_next(ids, &at, &id);) {
		a->hooks++;
		a->text += id.n;
		if (!span_is_string(id))
			error = r->dialect->bad_callback;
		else if (id.n > LIMITS_MATCHER)
			error = callback_long;
		else if (!(error = check_amount(a)) && !add_hook(r, e, id))
			error = no_memory;
	}
	return error;
}

static const char *add_entry(struct registry *r, struct owner *o, struct span event, struct span text,
							 struct amount *a) {
	const struct dialect_hooks *d = r->dialect;
	if (!d) return "the agent of this session has no hooks";
	struct span ids = span_member(text, d->callbacks), gone = span_member(text, "plenum_owner_gone");
	if (!span_is_object(text)) return "each entry of a hook event must be an object";
	if (!span_is_array(ids)) return d->bad_entry;
	if (gone.p && !span_equals(gone, "deny") && !span_equals(gone, "drop"))
		return "`plenum_owner_gone` must be \"deny\" or \"drop\"";
	if (event.n > LIMITS_MATCHER || span_member(text, d->matcher).n > LIMITS_MATCHER) return matcher_long;
	struct hook_entry *e = calloc(1, sizeof *e);
	if (!e) return no_memory;
	list_init(&e->hooks);
	list_add_tail(&o->staged, &e->node);
	e->owner = o;
	e->born = r->version + 1;
	e->event = strndup(event.p, event.n);
	e->members = other_members(d, text);
	e->timeout = timeout_ms(d, event, span_member(text, d->timeout));
	e->guard = d->hook_guards(event) || d->entry_guards(text);
	e->drop_when_gone = gone.p ? span_equals(gone, "drop") : !e->guard;
	if (gone.p && span_equals(gone, "deny")) e->guard = true;
	if (!e->event || !e->members) return no_memory;
	a->entries++;
	a->text += event.n + strlen(e->members);
	const char *error = check_amount(a);
	return error ? error : add_callbacks(r, e, ids, a);
}

/* --- one registration after another ------------------------------------------------------------------------------- */

/* Equal entries keep their ids: the child's table stays valid. */
static void replace_entries(struct registry *r, struct owner *o, struct list *fresh) {
	struct list kept;
	struct hook_entry *e, *old;
	bool changed = false;
	list_init(&kept);
	LIST_FOR_EACH (e, fresh, struct hook_entry, node) {
		old = e->twin;
		e->twin = NULL;
		changed = changed || !old;
		e->proven = false; /* of the old one only */
		struct hook_entry *stays = old ? old : e;
		list_del(&stays->node);
		list_add_tail(&kept, &stays->node);
		if (old) free_entry(r, e);
	}
	changed = changed || !list_empty(&o->entries);
	LIST_FOR_EACH (e, &o->entries, struct hook_entry, node) retire_entry(r, e);
	LIST_FOR_EACH (e, &kept, struct hook_entry, node) {
		list_del(&e->node);
		list_add_tail(&o->entries, &e->node);
	}
	r->version += changed;
}

static const char *read_hooks(struct registry *r, struct owner *o, struct span hooks) {
	const struct owner *other;
	struct amount amount = {0};
	struct span event, entries, entry;
	const char *error = NULL;
	if (!span_is_object(hooks)) return "`hooks` must be an object of events";
	LIST_FOR_EACH (other, &r->owners, const struct owner, node)
		if (other != o) add_amount(&amount, &other->entries);
	for (size_t at = 0; !error && span_next_member(hooks, &at, &event, &entries);) {
		if (!span_is_array(entries)) error = "each hook event must hold an array of entries";
		for (size_t k = 0; !error && span_next(entries, &k, &entry);) error = add_entry(r, o, event, entry, &amount);
	}
	return !error && !owner_find_twins(o) ? no_memory : error;
}

const char *registry_stage_hooks(struct registry *r, struct owner *o, struct span hooks) {
	registry_cancel_hooks(r, o);
	o->staging = true;
	const char *error = read_hooks(r, o, hooks);
	if (error) registry_cancel_hooks(r, o);
	return error;
}

void registry_commit_hooks(struct registry *r, struct owner *o) {
	if (o->staging) replace_entries(r, o, &o->staged);
	o->staging = false;
}

void registry_cancel_hooks(struct registry *r, struct owner *o) {
	struct hook_entry *e;
	LIST_FOR_EACH (e, &o->staged, struct hook_entry, node) free_entry(r, e);
	o->staging = false;
}

const char *registry_set_hooks(struct registry *r, struct owner *o, struct span hooks) {
	const char *error = registry_stage_hooks(r, o, hooks);
	registry_commit_hooks(r, o);
	return error;
}

struct hook *registry_hook(struct registry *r, struct span id) {
	struct hook *h = NULL;
	struct span text = span_content(id);
	if (text.p) HASH_FIND(hh, r->hooks, text.p, text.n, h);
	return h;
}

static void put_entry(const struct dialect_hooks *d, struct buf *b, const struct hook_entry *e) {
	struct hook *h;
	bool first = true;
	buf_printf(b, "%s{", b->len ? "," : "");
	buf_puts(b, e->members);
	buf_printf(b, "%s\"%s\":[", *e->members ? "," : "", d->callbacks);
	LIST_FOR_EACH (h, &e->hooks, struct hook, node) {
		buf_printf(b, "%s\"%s\"", first ? "" : ",", h->id);
		first = false;
	}
	buf_puts(b, "]}");
}

void registry_put_hooks(const struct registry *r, struct buf *b) {
	struct bundle events = {0};
	struct owner *o;
	struct hook_entry *e;
	LIST_FOR_EACH (o, &r->owners, struct owner, node)
		LIST_FOR_EACH (e, &o->entries, struct hook_entry, node)
			put_entry(r->dialect, bundle_part(&events, e->event), e);
	bundle_put(&events, b);
	bundle_free(&events);
}

/* --- servers and dialogs ------------------------------------------------------------------------------------------ */

/* All servers of one name. They have several owners only if all but one of those are absent. */
struct server_name {
	UT_hash_handle hh; /* by text */
	struct list servers;
	char text[];
};

static void free_server(struct registry *r, struct mcp_server *s) {
	list_del(&s->node);
	list_del(&s->same);
	r->n_servers--;
	if (list_empty(&s->known->servers)) {
		HASH_DELETE(hh, r->server_names, s->known);
		free(s->known);
	}
	free(s->config);
	free(s);
}

/* Spell each name in one way: with escapes another attachment's could be taken unnoticed. NULL without memory. */
static char *spell(struct span name) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	size_t n;
	_cleanup_free_ char *plain = memchr(name.p, '\\', name.n) ? span_dup(name, &n) : NULL;
	if (!plain) return strndup(name.p, name.n);
	str_put_json(&b, plain, n);
	return buf_steal(&b, NULL);
}

static struct server_name *find_name(const struct registry *r, struct span name) {
	struct server_name *known;
	HASH_FIND(hh, r->server_names, name.p, name.n, known);
	return known;
}

static struct server_name *know_name(struct registry *r, struct span name) {
	struct server_name *known = find_name(r, name);
	if (known) return known;
	known = malloc(sizeof *known + name.n + 1);
	if (!known) return NULL;
	list_init(&known->servers);
	memcpy(known->text, name.p, name.n);
	known->text[name.n] = 0;
	if (HASH_TRY_ADD(hh, r->server_names, known->text, name.n, known)) return known;
	free(known);
	return NULL;
}

/* Make a server without a configuration. NULL without memory. */
static struct mcp_server *new_server(struct registry *r, struct owner *o, struct span name) {
	struct mcp_server *s = calloc(1, sizeof *s);
	if (!s || !(s->known = know_name(r, name))) {
		free(s);
		return NULL;
	}
	s->name = s->known->text;
	s->owner = o;
	list_add_tail(&o->servers, &s->node);
	list_add_tail(&s->known->servers, &s->same);
	r->n_servers++;
	return s;
}

static struct mcp_server *find_spelled(const struct registry *r, const struct owner *o, struct span name) {
	const struct server_name *known = find_name(r, name);
	struct mcp_server *s;
	if (!known) return NULL;
	LIST_FOR_EACH (s, &known->servers, struct mcp_server, same)
		if (s->owner == o) return s;
	return NULL;
}

/* Take the name from absent owners, for another. */
static void free_name(struct registry *r, struct span name) {
	const struct server_name *known = find_name(r, name);
	size_t n = known ? list_length(&known->servers) : 0;
	struct list *at = known ? known->servers.next : NULL;
	for (; n; n--) { /* the last server frees the name */
		struct mcp_server *s = LIST_OF(at, struct mcp_server, same);
		at = at->next;
		if (!s->owner->holder) free_server(r, s);
	}
}

/* Count a name that is new to the owner. */
static const char *check_server(const struct registry *r, const struct owner *o, struct span name, size_t *n) {
	if (!span_is_string(name))
		return r->dialect ? r->dialect->bad_server : "the agent of this session has no MCP servers";
	if (name.n > LIMITS_MATCHER) return server_long;
	_cleanup_free_ char *text = spell(name);
	if (!text) return no_memory;
	*n += !find_spelled(r, o, span_of(text));
	return *n > LIMITS_NAMES ? too_many_servers : NULL;
}

const char *registry_check_names(const struct registry *r, const struct owner *o, struct span servers,
								 struct span dialogs) {
	struct span name;
	size_t n = r->n_servers, n_dialogs = 0;
	const char *error = NULL;
	for (size_t at = 0; !error && span_next(servers, &at, &name);) error = check_server(r, o, name, &n);
	for (size_t at = 0; !error && span_next(dialogs, &at, &name);)
		if (++n_dialogs > LIMITS_NAMES) error = too_many_dialogs;
	return error;
}

const char *registry_check_servers(const struct registry *r, const struct owner *o, struct span servers) {
	struct span name, config;
	size_t n = r->n_servers - (o ? list_length(&o->servers) : 0);
	for (size_t at = 0; span_next_member(servers, &at, &name, &config);) {
		if (name.n > LIMITS_MATCHER) return server_long;
		if (++n > LIMITS_NAMES) return too_many_servers;
	}
	return NULL;
}

const char *registry_add_server(struct registry *r, struct owner *o, struct span raw, struct span config, bool is_sdk) {
	if (raw.n > LIMITS_MATCHER) return server_long;
	_cleanup_free_ char *text = spell(raw);
	if (!text) return no_memory;
	struct span name = span_of(text);
	struct mcp_server *s = find_spelled(r, o, name);
	if (s) s->claimed = false;
	if (s && s->is_sdk == is_sdk && !config.p) return NULL;
	if (s) free_server(r, s);
	free_name(r, name);
	if (r->n_servers >= LIMITS_NAMES) return too_many_servers;
	_cleanup_free_ char *own_config = config.p ? strndup(config.p, config.n) : NULL;
	s = config.p && !own_config ? NULL : new_server(r, o, name);
	if (!s) return no_memory;
	s->config = own_config;
	own_config = NULL;
	s->is_sdk = is_sdk;
	if (is_sdk) r->version++;
	return NULL;
}

void registry_drop_servers(struct registry *r, struct owner *o, bool sdk_too) {
	struct mcp_server *s;
	/* the child keeps a server's name until mcp_set_servers leaves it out */
	LIST_FOR_EACH (s, &o->servers, struct mcp_server, node)
		if (sdk_too || !s->is_sdk) free_server(r, s);
}

struct owner *registry_server(struct registry *r, struct span raw) {
	struct owner *gone = NULL;
	struct mcp_server *s;
	_cleanup_free_ char *text = raw.p ? spell(raw) : NULL;
	const struct server_name *known = text ? find_name(r, span_of(text)) : NULL;
	if (!known) return NULL;
	LIST_FOR_EACH (s, &known->servers, struct mcp_server, same) {
		if (s->owner->holder) return s->owner;
		gone = s->owner;
	}
	return gone;
}

struct owner *registry_server_taken(struct registry *r, struct span raw, const struct attachment *holder, uid_t uid,
									const char *client_name) {
	struct mcp_server *s;
	_cleanup_free_ char *text = raw.p ? spell(raw) : NULL;
	const struct server_name *known = text ? find_name(r, span_of(text)) : NULL;
	if (!known) return NULL;
	LIST_FOR_EACH (s, &known->servers, struct mcp_server, same) {
		struct owner *o = s->owner;
		bool same = client_name && *client_name && o->name && o->uid == uid && strcmp(o->name, client_name) == 0;
		if (o->holder ? o->holder != holder : o->name && !same) return o;
	}
	return NULL;
}

bool registry_is_claimed(const struct registry *r, const struct owner *o, struct span raw) {
	_cleanup_free_ char *text = raw.p ? spell(raw) : NULL;
	const struct mcp_server *s = text ? find_spelled(r, o, span_of(text)) : NULL;
	return s && s->claimed;
}

bool registry_has_servers(const struct registry *r) {
	struct owner *o;
	LIST_FOR_EACH (o, &r->owners, struct owner, node)
		if (!list_empty(&o->servers)) return true;
	return false;
}

void registry_put_server_names(const struct registry *r, struct buf *b) {
	struct owner *o;
	struct mcp_server *s;
	bool first = true;
	buf_putc(b, '[');
	LIST_FOR_EACH (o, &r->owners, struct owner, node)
		LIST_FOR_EACH (s, &o->servers, struct mcp_server, node) {
			if (!s->is_sdk) continue;
			buf_printf(b, "%s%s", first ? "" : ",", s->name);
			first = false;
		}
	buf_putc(b, ']');
}

void registry_put_servers(const struct registry *r, struct buf *b) {
	struct owner *o;
	struct mcp_server *s;
	bool first = true;
	buf_putc(b, '{');
	LIST_FOR_EACH (o, &r->owners, struct owner, node)
		LIST_FOR_EACH (s, &o->servers, struct mcp_server, node) {
			buf_printf(b, "%s%s:", first ? "" : ",", s->name);
			if (s->config)
				buf_puts(b, s->config);
			else
				buf_printf(b, "{\"type\":\"sdk\",\"name\":%s}", s->name);
			first = false;
		}
	buf_putc(b, '}');
}

const char *registry_set_dialogs(struct owner *o, struct span kinds) {
	struct span kind;
	names_free(&o->dialogs);
	for (size_t at = 0; span_next(kinds, &at, &kind);) {
		if (names_count(&o->dialogs) >= LIMITS_NAMES) return too_many_dialogs;
		if (!names_add(&o->dialogs, kind.p, kind.n)) return no_memory;
	}
	return NULL;
}

void registry_merge(struct registry *r, struct owner *to, struct owner *from) {
	struct hook_entry *e;
	struct mcp_server *s;
	LIST_FOR_EACH (e, &from->entries, struct hook_entry, node) {
		list_del(&e->node);
		list_add_tail(&to->entries, &e->node);
		e->owner = to;
	}
	LIST_FOR_EACH (e, &r->retired, struct hook_entry, node)
		if (e->from == from) e->from = to;
	LIST_FOR_EACH (s, &from->servers, struct mcp_server, node) {
		if (find_spelled(r, to, span_of(s->name))) continue; /* `to` has registered it itself */
		list_del(&s->node);
		list_add_tail(&to->servers, &s->node);
		s->owner = to;
		s->claimed = true;
	}
	registry_drop_owner(r, from);
}

void registry_drop_owner(struct registry *r, struct owner *o) {
	struct hook_entry *e;
	registry_cancel_hooks(r, o);
	bool any = !list_empty(&o->entries);
	LIST_FOR_EACH (e, &o->entries, struct hook_entry, node) retire_entry(r, e);
	r->version += any;
	LIST_FOR_EACH (e, &r->retired, struct hook_entry, node)
		if (e->from == o) e->from = NULL;
	registry_drop_servers(r, o, true);
	names_free(&o->dialogs);
	loop_timer_stop(&o->grace);
	list_del(&o->node);
	free(o->name);
	free(o);
}

/* --- upgrade ------------------------------------------------------------------------------------------------------ */

static void carry_hook(struct carry *c, struct hook *h) {
	carry_bytes(c, h->id, sizeof h->id);
	h->id[sizeof h->id - 1] = 0;
	carry_name(c, &h->callback);
}

static void load_hook(struct carry *c, struct registry *r, struct hook_entry *e) {
	struct hook *h = calloc(1, sizeof *h);
	if (!h) {
		carry_fail(c, "out of memory");
		return;
	}
	h->entry = e;
	carry_hook(c, h);
	if (!HASH_TRY_ADD(hh, r->hooks, h->id, strlen(h->id), h)) {
		carry_fail(c, "out of memory");
		free(h->callback);
		free(h);
		return;
	}
	list_add_tail(&e->hooks, &h->node);
	if (e->owner) r->n_hooks++;
}

static void carry_entry(struct carry *c, struct registry *r, struct hook_entry *e) {
	struct hook *h;
	size_t n = 0;
	carry_name(c, &e->event);
	carry_name(c, &e->members);
	CARRY(c, e->timeout);
	CARRY(c, e->guard);
	CARRY(c, e->drop_when_gone);
	CARRY(c, e->born);
	CARRY(c, e->died);
	CARRY(c, e->proven);
	LIST_FOR_EACH (h, &e->hooks, struct hook, node) n++;
	n = carry_count(c, n);
	if (c->saving) {
		LIST_FOR_EACH (h, &e->hooks, struct hook, node) carry_hook(c, h);
	}
	for (size_t i = 0; !c->saving && i < n && carry_ok(c); i++) load_hook(c, r, e);
}

/* o NULL: add a retired entry to this list. */
static void load_entry(struct carry *c, struct registry *r, struct owner *o, struct list *to) {
	struct hook_entry *e = calloc(1, sizeof *e);
	if (!e) {
		carry_fail(c, "out of memory");
		return;
	}
	e->owner = o;
	list_init(&e->hooks);
	list_add_tail(to, &e->node);
	carry_entry(c, r, e);
}

static void carry_server(struct carry *c, struct mcp_server *s) {
	carry_text(c, &s->config);
	CARRY(c, s->is_sdk);
	CARRY(c, s->claimed);
}

static void load_server(struct carry *c, struct registry *r, struct owner *o) {
	char *name = NULL;
	carry_name(c, &name);
	struct mcp_server *s = name ? new_server(r, o, span_of(name)) : NULL;
	free(name);
	if (s)
		carry_server(c, s);
	else
		carry_fail(c, "out of memory");
}

static void carry_owner(struct carry *c, struct registry *r, struct owner *o) {
	struct hook_entry *e;
	struct mcp_server *s;
	CARRY(c, o->grace_over);
	carry_timer(c, &o->grace);
	carry_set(c, &o->dialogs, NULL);
	size_t entries = carry_count(c, list_length(&o->entries)), servers = carry_count(c, list_length(&o->servers));
	if (c->saving) {
		LIST_FOR_EACH (e, &o->entries, struct hook_entry, node) carry_entry(c, r, e);
		LIST_FOR_EACH (s, &o->servers, struct mcp_server, node) {
			carry_name(c, &s->name);
			carry_server(c, s);
		}
		return;
	}
	for (size_t i = 0; i < entries && carry_ok(c); i++) load_entry(c, r, o, &o->entries);
	for (size_t i = 0; i < servers && carry_ok(c); i++) load_server(c, r, o);
}

/* Serialize or restore the identity, before the content. */
static void carry_identity(struct carry *c, struct attachment **holder, uid_t *uid, char **name) {
	carry_attachment(c, holder);
	CARRY(c, *uid);
	carry_text(c, name);
}

static void load_owner(struct carry *c, struct registry *r, struct session *s, struct loop *loop,
					   void (*on_grace)(void *)) {
	struct attachment *holder = NULL;
	uid_t uid = 0;
	char *name = NULL;
	carry_identity(c, &holder, &uid, &name);
	struct owner *o = carry_ok(c) ? registry_add_owner(r, s, loop, holder, uid, name, on_grace) : NULL;
	free(name);
	if (o)
		carry_owner(c, r, o);
	else
		carry_fail(c, "out of memory");
}

static void carry_retired(struct carry *c, struct registry *r) {
	struct hook_entry *e;
	struct owner *o;
	uint64_t from = 0;
	size_t n = carry_count(c, list_length(&r->retired));
	if (c->saving) {
		LIST_FOR_EACH (e, &r->retired, struct hook_entry, node) {
			uint64_t place = 0; /* of its owner in the list, from 1 */
			from = 0;
			LIST_FOR_EACH (o, &r->owners, struct owner, node) {
				place++;
				if (o == e->from) from = place;
			}
			carry_number(c, &from);
			carry_entry(c, r, e);
		}
	}
	for (size_t i = 0; !c->saving && i < n && carry_ok(c); i++) {
		carry_number(c, &from);
		load_entry(c, r, NULL, &r->retired);
		if (!carry_ok(c)) return;
		e = LIST_OF(r->retired.prev, struct hook_entry, node);
		LIST_FOR_EACH (o, &r->owners, struct owner, node)
			if (from && --from == 0) e->from = o;
		if (from) carry_fail(c, "the owner of a retired hook is missing");
	}
}

void registry_carry(struct carry *c, struct registry *r, struct session *s, struct loop *loop,
					void (*on_grace)(void *)) {
	struct owner *o;
	carry_mark(c, "registry");
	CARRY(c, r->counter);
	size_t n = carry_count(c, list_length(&r->owners));
	if (c->saving) {
		LIST_FOR_EACH (o, &r->owners, struct owner, node) {
			carry_identity(c, &o->holder, &o->uid, &o->name);
			carry_owner(c, r, o);
		}
	}
	for (size_t i = 0; !c->saving && i < n && carry_ok(c); i++) load_owner(c, r, s, loop, on_grace);
	carry_retired(c, r);
	CARRY(c, r->sent);
	CARRY(c, r->version); /* last: loading must not count */
}
