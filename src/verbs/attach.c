/* SPDX-License-Identifier: MIT */
#include "verbs/attach.h"

#include "base/str.h"
#include "core/asks.h"
#include "core/attachment.h"
#include "core/guards.h"
#include "core/handshake.h"
#include "core/inquiry.h"
#include "core/kept.h"
#include "core/notify.h"
#include "core/owners.h"
#include "core/pool.h"
#include "core/sessions.h"
#include "core/starts.h"
#include "core/trust.h"
#include "plenum/protocol.h"
#include "wire/limits.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES SESSIONS_NAME_MAX
#define HELPERS_MAX 4 /* sessions that the processes of one agent may make */
#define OTHERS_MAX 64 /* named in one answer; plenum_status names all */

static const char *text(const struct request *q, const char *member) {
	return json_string_value(json_object_get(q->body, member));
}

static bool flag(const struct request *q, const char *member, bool otherwise) {
	const json_t *value = json_object_get(q->body, member);
	return value ? json_is_true(value) : otherwise;
}

/* --- properties of the attachment -------------------------------------------------------------------------------- */

static bool one_of(struct request *q, const char *member, const char *const *values) {
	const char *value = text(q, member);
	struct buf b = BUF_INIT(512);
	for (size_t i = 0; value && values[i]; i++)
		if (strcmp(value, values[i]) == 0) return true;
	if (!value) return true;
	for (size_t i = 0; values[i]; i++) buf_printf(&b, "%s\"%s\"", i ? ", " : "", values[i]);
	reply_error(q, PLENUM_E_BAD_REQUEST, "`%s` must be one of %s", member, b.data ? b.data : "");
	buf_free(&b);
	return false;
}

static const char *const roles[] = {"driver", "observer", NULL};
static const char *const lags[] = {"gap", "close", "wait", NULL};
static const char *const creates[] = {"auto", "never", "new", NULL};

static bool read_tools(struct request *q, struct names *out, const json_t *tools) {
	size_t i;
	json_t *tool;
	if (!json_is_array(tools))
		return reply_error(q, PLENUM_E_BAD_REQUEST, "`approve` must be true, false or {\"tools\":[\"NAME\",...]}");
	if (!reply_list_ok(q, "approve.tools", json_array_size(tools))) return false;
	json_array_foreach(tools, i, tool) {
		if (!json_is_string(tool)) return reply_error(q, PLENUM_E_BAD_REQUEST, "`approve.tools` must hold strings");
		if (!names_add(out, json_string_value(tool), json_string_length(tool)))
			return reply_error(q, PLENUM_E_INTERNAL, "out of memory");
	}
	return true;
}

/* Without `approve` in the request a client is an approver as before if it may be one; a request for it without the
 * right is refused. The caller frees the tools, also after an error. */
static bool read_approval(struct request *q, bool before, struct approval *out) {
	const json_t *approve = json_object_get(q->body, "approve");
	bool wants = approve ? !json_is_false(approve) : before;
	*out = (struct approval){.approve = wants, .asked = approve != NULL, .by_tool = json_is_object(approve)};
	if (out->by_tool && !read_tools(q, &out->tools, json_object_get(approve, "tools"))) return false;
	if (!wants || trust_may_approve(q->router, q->client)) return true;
	if (approve)
		return reply_error(q, PLENUM_E_NOT_ALLOWED, "you cannot be an approver: %s", trust_why(q->router, q->client));
	out->approve = false;
	return true;
}

static bool read_types(struct request *q, struct client_filter *f) {
	json_t *types = json_object_get(q->body, "types"), *type;
	const struct dialect *d = q->client->dialect;
	size_t i;
	if (!types) return true;
	names_free(&f->others);
	f->by_type = true;
	f->kinds = 0;
	json_array_foreach(types, i, type) {
		const char *name = json_string_value(type);
		enum line_kind kind = d->kind_of ? d->kind_of(name, strlen(name)) : LINE_OTHER;
		if (kind != LINE_OTHER) {
			f->kinds |= 1U << kind;
		} else if (!names_add(&f->others, name, strlen(name))) {
			return reply_error(q, PLENUM_E_INTERNAL, "out of memory");
		}
	}
	return true;
}

static bool name_ok(struct request *q) {
	const char *name = text(q, "name");
	if (!name || strlen(name) <= NAME_MAX_BYTES) return true;
	return reply_error(q, PLENUM_E_BAD_REQUEST, "`name` may have %d bytes, this one has %zu", NAME_MAX_BYTES,
					   strlen(name));
}

bool attach_name(struct request *q) {
	const char *name = text(q, "name");
	if (!name_ok(q)) return false;
	if (name) client_rename(q->client, name);
	return true;
}

static bool read_filter(struct request *q, struct client_filter *f) {
	if (!client_filter_copy(f, &q->client->filter)) return reply_error(q, PLENUM_E_INTERNAL, "out of memory");
	f->tag = flag(q, "tag", f->tag);
	f->no_partial = !flag(q, "partial", !f->no_partial);
	f->no_echo = !flag(q, "echo", !f->no_echo);
	f->quiet = flag(q, "quiet", f->quiet);
	if (read_types(q, f)) return true;
	client_filter_free(f);
	return false;
}

static enum lag_policy read_lag(const struct request *q, enum lag_policy before) {
	const char *lag = text(q, "on_lag");
	return !lag ? before : strcmp(lag, "gap") == 0 ? LAG_GAP : strcmp(lag, "close") == 0 ? LAG_CLOSE : LAG_WAIT;
}

bool attach_apply(struct request *q, struct attachment *a, bool fresh) {
	const char *role = text(q, "role");
	bool observer = role ? strcmp(role, "observer") == 0 : a->observer;
	struct approval approval;
	struct client_filter filter;
	if (!name_ok(q) || !one_of(q, "role", roles) || !one_of(q, "on_lag", lags)) return false;
	if (!read_approval(q, fresh ? !observer : a->approve, &approval) || !read_filter(q, &filter)) {
		names_free(&approval.tools);
		return false;
	}
	attachment_change(a, observer, read_lag(q, a->on_lag), &approval);
	client_set_filter(q->client, &filter);
	return attach_name(q);
}

/* --- start of reading -------------------------------------------------------------------------------------------- */

struct start {
	uint64_t seq;
	bool cut;
};

static bool count_of(const json_t *replay, const char *member, uint64_t *n) {
	const json_t *value = json_object_get(replay, member);
	if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
	*n = (uint64_t)json_integer_value(value);
	return true;
}

static struct start start_all(const struct tape *t) {
	return (struct start){t->oldest, t->oldest > t->began};
}

/* replay: "none", "all", {"last":N}, {"after":SEQ}, {"after_uuid":U}. */
static bool find_start(struct request *q, const struct dialect *d, const struct tape *t, struct start *out) {
	const json_t *replay = json_object_get(q->body, "replay");
	const char *word = json_string_value(replay), *uuid = json_string_value(json_object_get(replay, "after_uuid"));
	uint64_t n;
	bool one = json_object_size(replay) == 1; /* two members would be ambiguous */
	if (!replay || (word && strcmp(word, "none") == 0)) {
		*out = (struct start){t->next, false};
	} else if (word && strcmp(word, "all") == 0) {
		*out = start_all(t);
	} else if (one && count_of(replay, "last", &n)) {
		uint64_t have = t->next - t->oldest;
		*out = (struct start){t->next - MIN(n, have), n > have && t->oldest > t->began};
	} else if (one && count_of(replay, "after", &n)) {
		/* A number from another life of the session is not on this tape: send all lines and report the gap. */
		bool there = n + 1 >= t->oldest && n < t->next;
		*out = n == 0 ? start_all(t) : there ? (struct start){n + 1, false} : (struct start){t->oldest, true};
	} else if (one && uuid) {
		uint64_t after = tape_after_uuid(t, d, uuid);
		*out = after ? (struct start){after, false} : (struct start){t->oldest, true};
	} else {
		return reply_error(
			q, PLENUM_E_BAD_REQUEST,
			"`replay` must be \"none\", \"all\", {\"last\":N}, {\"after\":SEQ} or {\"after_uuid\":\"...\"}");
	}
	return true;
}

/* --- the session -------------------------------------------------------------------------------------------------- */

/* Nothing is translated. */
static void reply_other(struct request *q, const char *thing, const char *name, const struct dialect *d) {
	reply_error(q, PLENUM_E_BAD_REQUEST, ROUTER_OTHER_TEXT, thing, name, d->name, q->client->dialect->name);
}

static const struct profile *find_profile(struct request *q, struct session *home) {
	const struct settings *set = q->router->settings;
	const char *asked = text(q, "profile");
	const char *name = asked ? asked : home ? session_profile(home) : set->default_profile;
	const struct profile *p = name ? settings_profile(set, name) : NULL;
	if (!p) {
		reply_error(q, PLENUM_E_NO_SUCH_PROFILE, "profile %s: does not exist (`plenumctl status` lists them)",
					name ? name : "(default)");
	} else if (p->is_private && !client_is_ours(q->client)) {
		reply_error(q, PLENUM_E_NOT_ALLOWED, "profile %s is private to the user who runs the daemon",
					asked ? asked : "(default)");
		p = NULL;
	} else if (p->dialect->frame != q->client->dialect->frame) {
		reply_other(q, "profile", p->name, p->dialect);
		p = NULL;
	}
	return p;
}

static bool no_memory(struct request *q) {
	return reply_error(q, PLENUM_E_INTERNAL, "out of memory");
}

static bool add_all(struct words *w, const json_t *array) {
	size_t i;
	json_t *item;
	json_array_foreach(array, i, item) if (!words_add(w, json_string_value(item))) return false;
	return true;
}

static bool add_env(struct request *q, struct words *w) {
	const char *key;
	json_t *value;
	json_object_foreach(json_object_get(q->body, "env"), key, value) {
		bool good = *key && !strchr(key, '=') && json_is_string(value) &&
					strlen(json_string_value(value)) == json_string_length(value);
		_cleanup_free_ char *word = good ? str_printf("%s=%s", key, json_string_value(value)) : NULL;
		if (!good)
			return reply_error(q, PLENUM_E_BAD_REQUEST,
							   "`env` must hold names without = and string values; %.100s is not so", key);
		if (!word || !words_add(w, word)) return no_memory(q);
	}
	return true;
}

/* Find the conversation selected, in any spelling, by the profile's command, `args`, `argv` or `resume`. The claim
 * points into words, which the caller frees. False: an error was sent. */
static bool read_claim(struct request *q, struct words *words, struct dialect_claim *claim) {
	const struct settings *set = q->router->settings;
	const char *name = text(q, "profile") ? text(q, "profile") : set->default_profile;
	const struct profile *p = name ? settings_profile(set, name) : NULL;
	*claim = (struct dialect_claim){.resume = text(q, "resume")};
	if (!add_all(words, json_object_get(q->body, "args")) || !add_all(words, json_object_get(q->body, "argv")))
		return no_memory(q);
	const struct dialect *d = p ? p->dialect : dialect_default();
	if (p && !json_object_get(q->body, "argv")) dialect_read_claim(d, &p->command, claim);
	dialect_read_claim(d, words, claim);
	if (claim->forks || flag(q, "fork", false)) claim->resume = NULL;
	return true;
}

/* The conversation that the launch goes on with. */
static bool take_resume(struct request *q, const char *asked, struct launch *l) {
	struct words words = {0};
	struct dialect_claim claim;
	bool known = read_claim(q, &words, &claim);
	const char *resume = !known ? NULL : claim.resume ? claim.resume : asked;
	size_t n = resume ? strlen(resume) : 0;
	if (n <= LIMITS_CONVERSATION) l->resume = str_dup(resume);
	words_free(&words);
	if (n > LIMITS_CONVERSATION)
		return reply_error(q, PLENUM_E_TOO_LONG, "the id of a conversation may have %zu bytes, this one has %zu",
						   LIMITS_CONVERSATION, n);
	return known && (!resume || l->resume || no_memory(q));
}

static bool make_launch(struct request *q, const struct profile *p, struct launch *l) {
	*l = (struct launch){.uid = q->client->peer.uid,
						 .env_only = flag(q, "env_only", false),
						 .fork = flag(q, "fork", false),
						 .no_asks = flag(q, "deny_asks", false) && flag(q, "ephemeral", false)};
	const char *asked = text(q, "resume");
	if (!take_resume(q, asked, l)) return false;
	l->has_argv = json_object_get(q->body, "argv") != NULL;
	if (asked && !*asked)
		return reply_error(q, PLENUM_E_BAD_REQUEST, "`resume` must be the id of a conversation, and is empty");
	if (l->fork && !p->dialect->fork_flag)
		return reply_error(q, PLENUM_E_BAD_REQUEST, "the agent of profile %s cannot fork a conversation", p->name);
	if (l->fork && !l->resume && !l->has_argv)
		return reply_error(q, PLENUM_E_BAD_REQUEST, "`fork` needs `resume`, the conversation to fork");
	const char *cwd = text(q, "cwd");
	if (cwd && cwd[0] != '/')
		return reply_error(q, PLENUM_E_BAD_REQUEST, "`cwd` must be an absolute path, %.200s is not", cwd);
	l->cwd = cwd ? str_dup(cwd) : inquiry_usual_cwd(q->client, p);
	if (!l->cwd) return no_memory(q);
	if (!add_env(q, &l->env)) return false;
	if (!add_all(&l->args, json_object_get(q->body, "args")) || !add_all(&l->argv, json_object_get(q->body, "argv")))
		return no_memory(q);
	inquiry_fill_launch(l, q->client, p);
	return true;
}

static bool has_guards(const struct session *s) {
	const struct owner *o;
	LIST_FOR_EACH (o, &s->registry.owners, const struct owner, node)
		if (owner_guards(o)) return true;
	return false;
}

/* Return true if only its profile restricts this session's agent. A session started from the profile alone has the same
 * limits. */
static bool is_plain(struct session *s) {
	const struct launch *l = &s->launch;
	return !l->args.n && !l->has_argv && !l->env.n && !l->env_only && !l->no_asks && !has_guards(s) &&
		   !snapshot_strict(&s->snapshot, session_dialect(s)) && !s->lost_profile && !s->altered && !handshake_asks(s);
}

/* Return true if the peer may make the session. A process of an agent makes none with fewer rules or flags than its
 * agent has, none under a name that others may use, and none if an agent made its own session. home: that agent's;
 * NULL: the peer is not an agent's. */
static bool may_make(struct request *q, const char *name, struct session *home) {
	const char *profile = text(q, "profile"), *why = NULL;
	if (!home) return true;
	if (name)
		why = "leave out `session`: the daemon makes a name up";
	else if (profile && strcmp(profile, session_profile(home)) != 0)
		why = "its profile must be that of the agent's own session";
	else if (home->made_by || !is_plain(home))
		why = "the agent's own session has guards, flags or a mode that a new one would not have, or an agent made it";
	if (why)
		reply_error(q, PLENUM_E_NOT_ALLOWED, "an agent started this program, which may not make this session: %s", why);
	return !why;
}

/* Copy from the agent's own session: a process of the agent chooses neither directory nor environment. */
static void take_home(struct launch *l, const struct session *home) {
	char *cwd = str_dup(home->launch.cwd);
	if (cwd) {
		free(l->cwd);
		l->cwd = cwd;
	}
	l->uid = home->launch.uid;
	l->umask = home->launch.umask;
	if (home->launch.login) l->login = login_ref(home->launch.login);
}

static bool room_for_session(struct request *q, const struct session *home) {
	const struct router *r = q->router;
	struct error why;
	size_t n = 0;
	for (const struct session *s = r->sessions; home && s; s = s->hh.next) n += s->made_by == home->id;
	/* A process of an agent puts no other session to sleep and takes only a few places. */
	if (home && (n >= HELPERS_MAX || pool_children(r) >= r->settings->max_children))
		return reply_error(
			q, PLENUM_E_TOO_MANY,
			"an agent's process makes at most %d sessions, and none beyond max_children: %zu of %s are there",
			HELPERS_MAX, n, home->name);
	const char *code = sessions_refused(q->router, q->client, &why);
	if (code) reply_error(q, code, "%s", why.text);
	return !code;
}

/* ephemeral: of a session that is not in the table. */
static bool has_room(struct request *q, bool ephemeral, const struct launch *l) {
	struct error why;
	const char *code = ephemeral ? NULL : sessions_full(q->router, l, &why);
	if (code) reply_error(q, code, "%s", why.text);
	return !code;
}

static struct session *make_session(struct request *q, const char *name) {
	char made_up[SESSIONS_MADE_UP_MAX];
	struct error error;
	struct launch launch = {0};
	struct session *home = trust_home(q->router, q->client);
	if (name && !sessions_is_name(name)) {
		reply_error(q, PLENUM_E_BAD_REQUEST, "a session name has " SESSIONS_NAME_TEXT, NAME_MAX_BYTES);
		return NULL;
	}
	const struct profile *p = may_make(q, name, home) ? find_profile(q, home) : NULL;
	if (!p || !room_for_session(q, home)) return NULL;
	if (!inquiry_look_for(q->client, q->line, p, text(q, "cwd"))) return NULL;
	if (!make_launch(q, p, &launch) || !has_room(q, flag(q, "ephemeral", false), &launch)) {
		launch_free(&launch);
		return NULL;
	}
	if (home) take_home(&launch, home);
	if (!name) sessions_make_up_name(q->router, made_up);
	struct session *s = sessions_create(q->router, name ? name : made_up, p, &launch);
	launch_free(&launch);
	if (!s) {
		reply_error(q, PLENUM_E_INTERNAL, "out of memory");
		return NULL;
	}
	if (home) session_set_made_by(s, home->id);
	if (flag(q, "ephemeral", false)) session_set_ephemeral(s);
	if (flag(q, "raw_init", false)) sessions_leave_begin(s);
	enum child_result result = sessions_start(q->router, s, &error);
	if (s->starting) starts_await(q->client, s, q->line, true);
	if (result == CHILD_OK) return s->starting ? NULL : s;
	reply_error(q, result == CHILD_TIMEOUT ? PLENUM_E_TIMEOUT : PLENUM_E_SPAWN_FAILED, "%s", error.text);
	sessions_remove(q->router, s, error.text);
	return NULL;
}

static bool find_session(struct request *q, struct session **found) {
	const char *name = text(q, "session");
	struct session *s = name ? router_named(q->router, name) : NULL;
	struct session *other = NULL; /* the one that has the conversation */
	bool own_session = flag(q, "ephemeral", false);
	struct words words = {0};
	struct dialect_claim claim;
	bool known = read_claim(q, &words, &claim);
	if (known && claim.resume) other = router_find_conversation(q->router, claim.resume);
	if (known && !other && claim.fresh) other = router_find_conversation(q->router, claim.fresh);
	words_free(&words);
	if (!known) return false; /* an error was sent */
	if (other && other != s && (name || own_session)) {
		reply_in_use(q, other, sessions_must_wait(other, q->client) || other->ending);
		return false;
	}
	*found = s ? s : other;
	return true;
}

/* Start the child if it is not there. False: it cannot start, and an error was sent; or the request is repeated once
 * the result is known. */
static bool wake(struct request *q, struct session *s) {
	struct error error;
	inquiry_take_login(s, q->client);
	enum child_result result = session_wake_now(s, &error);
	if (s->starting) starts_await(q->client, s, q->line, false);
	if (result == CHILD_OK) return !s->starting;
	return reply_error(q,
					   s->lost_profile           ? PLENUM_E_NO_SUCH_PROFILE
					   : result == CHILD_TIMEOUT ? PLENUM_E_TIMEOUT
												 : PLENUM_E_SPAWN_FAILED,
					   "%s", error.text);
}

static bool is_text(const struct request *q, const char *member, const char *is) {
	const char *value = text(q, member);
	return value && is && strcmp(value, is) == 0;
}

/* Options for a child may change permissions (contract 14). */
static bool may_bring(const struct request *q) {
	return !is_text(q, "role", "observer") && trust_may_approve(q->router, q->client);
}

/* Let options for a child count for the next one of a session that has none. False: an error was sent. */
static bool bring(struct request *q, struct session *s) {
	const json_t *args = json_object_get(q->body, "args"), *argv = json_object_get(q->body, "argv");
	struct launch_more more = {.has_args = args != NULL,
							   .has_argv = argv != NULL,
							   .has_env = json_object_get(q->body, "env") != NULL,
							   .env_only = flag(q, "env_only", false)};
	bool any = more.has_args || more.has_argv || more.has_env;
	if (!any || s->agent || s->want_child || !may_bring(q)) return true;
	bool good = add_env(q, &more.env);
	bool read = good && ((add_all(&more.args, args) && add_all(&more.argv, argv)) || no_memory(q));
	const struct launch all = {.args = more.args, .argv = more.argv, .env = more.env};
	bool fits = read && has_room(q, s->ephemeral, &all);
	bool done = fits && launch_bring(&s->launch, &more);
	if (fits && !done && reply_list_ok(q, "env", more.env.n)) no_memory(q);
	if (done) q->router->events->changed(q->router);
	words_free(&more.args);
	words_free(&more.argv);
	words_free(&more.env);
	return done;
}

/* Find or make the session; NULL: an error was sent, or the request is repeated once a session to be replaced is
 * gone. */
static struct session *get_session(struct request *q, bool *created) {
	const char *create = text(q, "create") ? text(q, "create") : "auto", *name = text(q, "session");
	struct session *s = NULL;
	*created = false;
	if (!one_of(q, "create", creates) || !find_session(q, &s)) return NULL;
	if (s && trust_is_closed_to(s, q->client)) {
		reply_private(q, name ? name : "of this conversation");
		return NULL;
	}
	if (s && session_dialect(s)->frame != q->client->dialect->frame) {
		reply_other(q, "session", s->name, session_dialect(s));
		return NULL;
	}
	if (s && strcmp(create, "never") != 0 && sessions_must_wait(s, q->client)) {
		router_hold(q->client, q->line);
		return NULL;
	}
	if (s && strcmp(create, "new") == 0) {
		reply_error(q, PLENUM_E_SESSION_EXISTS, "session %s: exists already (state %s)", s->name,
					session_state_name(session_state(s)));
		return NULL;
	}
	if (!s && strcmp(create, "never") == 0) {
		reply_no_session(q, name ? name : "to attach to");
		return NULL;
	}
	if (s && !bring(q, s)) return NULL;
	if (s) return flag(q, "wake", false) && !wake(q, s) ? NULL : s;
	s = make_session(q, name);
	*created = s != NULL;
	return s;
}

/* The request has waited for a start. */
static struct session *awaited(struct request *q, bool *created) {
	struct error error;
	const char *code;
	struct session *s = starts_awaited(q->client, q->line, created, &code, &error);
	if (code) reply_error(q, code, "%s", error.text);
	return s;
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

static void put_others(struct buf *b, const struct attachment *me) {
	struct attachment *a;
	size_t n = 0;
	reply_begin_list(b, "attachments");
	LIST_FOR_EACH (a, &me->session->attachments, struct attachment, node) {
		size_t from = b->len;
		if (a == me || n++ >= OTHERS_MAX) continue;
		reply_put_client(b, a->client);
		reply_end_entry(b, from);
	}
	reply_end_list(b);
}

/* Return true if the member does not count, though it is there: it is a property of the session itself. */
static bool is_fixed(const struct request *q, const char *member, const struct session *s) {
	const char *is = strcmp(member, "cwd") == 0       ? s->launch.cwd
					 : strcmp(member, "profile") == 0 ? session_profile(s)
					 : strcmp(member, "resume") == 0  ? session_conversation(s)
													  : NULL;
	return json_object_get(q->body, member) && !is_text(q, member, is);
}

/* Name the words of one array that are not among those of the child. */
static void put_words(const struct request *q, const char *member, const struct words *had, struct buf *all) {
	struct names names = {0};
	json_t *word;
	size_t i;
	for (size_t k = 0; k < had->n; k++) all->failed |= !names_add(&names, had->v[k], strlen(had->v[k]));
	json_array_foreach(json_object_get(q->body, member), i, word) {
		if (!names_have(&names, json_string_value(word), json_string_length(word)))
			reply_item(all, json_string_value(word));
	}
	names_free(&names);
}

/* List options that the child does not have: it was there before, or is starting for another client. The environment
 * of a program that stands in for the CLI has too many variables of no importance. */
static void put_late(const struct request *q, const struct session *s, struct buf *all) {
	struct words args = {0}, env = {0}, command = {0};
	const char *name;
	json_t *value;
	bool ok = add_all(&args, json_object_get(q->body, "args")) && launch_put_command(&command, &s->launch, s->profile);
	json_object_foreach(json_object_get(q->body, "env"), name, value) {
		_cleanup_free_ char *word = str_printf("%s=%s", name, json_string_value(value) ? json_string_value(value) : "");
		ok = ok && word && words_add(&env, word);
	}
	all->failed |= !ok;
	if (!flag(q, "env_only", false) && !launch_has_env(&s->launch, &env)) reply_item(all, "env");
	if (args.n && !words_same(&args, &s->launch.args)) reply_item(all, "args");
	put_words(q, "argv", &command, all);
	words_free(&args);
	words_free(&env);
	words_free(&command);
}

/* Write `ignored`, the options for a child that do not count, and the reason. */
static void put_ignored(struct buf *b, const struct request *q, const struct session *s) {
	static const char *const fixed[] = {"profile", "cwd", "resume", "fork"};
	size_t before = b->len;
	reply_begin_list(b, "ignored");
	size_t empty = b->len;
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (is_fixed(q, fixed[i], s)) reply_item(b, fixed[i]);
	size_t from = b->len;
	put_late(q, s, b);
	bool late = b->len > from;
	if (b->len == empty) {
		b->len = before;
		return;
	}
	reply_end_list(b);
	const char *why = "the session keeps its profile, directory and conversation";
	if (late && !may_bring(q))
		why = "only a driver that may be an approver brings something for the CLI of a session, before its start";
	else if (late)
		why = s->agent ? "the CLI of the session was started before"
					   : "the CLI of the session is being started for another client";
	notice_text(b, "ignored_why", why);
}

/* Write the state that earlier clients know from the tape (core/snapshot.h). Programs that replace the CLI get only the
 * CLI's own lines. */
static void put_snapshot(struct buf *b, const struct session *s) {
	const struct snapshot *sn = &s->snapshot;
	notice_raw(b, PLENUM_M_MODE, span_of(sn->mode));
	notice_raw(b, "model", span_of(sn->model));
	notice_raw(b, PLENUM_M_TASKS, span_of(sn->tasks ? sn->tasks : s->progress.background ? NULL : "[]"));
	notice_raw(b, "timers", span_of(s->timers.armed ? s->timers.armed : "[]"));
	if (sn->init_seq)
		notice_number(b, "init_seq", (int64_t)sn->init_seq);
	else
		notice_text(b, "init_seq", NULL);
	notice_raw(b, "init", snapshot_init(sn, &s->tape));
}

static void answer(struct request *q, const struct attachment *a, bool created, struct start start) {
	struct session *s = a->session;
	struct pending *p;
	struct buf b = NOTICE_INIT;
	notice_text(&b, "session", s->name);
	notice_flag(&b, "created", created);
	notice_text(&b, "conversation_id", session_conversation(s));
	notice_text(&b, "state", session_state_name(session_name_state(s)));
	notice_text(&b, "profile", session_profile(s));
	notice_text(&b, "cwd", s->launch.cwd);
	notice_number(&b, "seq", (int64_t)s->tape.next);
	notice_number(&b, "oldest_seq", (int64_t)s->tape.oldest);
	notice_flag(&b, "replay_cut", start.cut);
	reply_begin_list(&b, "pending");
	LIST_FOR_EACH (p, &s->pendings.order, struct pending, node)
		if (asks_may_answer(a, p)) reply_item(&b, p->id);
	reply_end_list(&b);
	put_others(&b, a);
	notice_number(&b, "protocol", PLENUM_PROTOCOL_VERSION);
	notice_text(&b, "role", a->observer ? "observer" : "driver");
	notice_flag(&b, "approve", a->approve);
	notice_number(&b, "client", (int64_t)q->client->id);
	reply_put_peer(&b, q->client);
	notice_text(&b, "dialect", session_dialect(s)->name);
	reply_put_pid(&b, s);
	if (guards_lost(&s->registry)) notice_flag(&b, "guards_lost", true);
	notice_number(&b, "attachments_total", (int64_t)s->n_attachments - 1);
	if (!created) put_ignored(&b, q, s);
	if (s->version) notice_text(&b, "version", s->version);
	if (s->agent && s->agent->program) notice_text(&b, "program", s->agent->program);
	if (!q->client->filter.quiet) put_snapshot(&b, s);
	reply(q, &b);
}

/* probe: the future attachment. */
static bool may_own_servers(struct request *q, const struct attachment *probe) {
	if (!json_array_size(json_object_get(q->body, "mcp_servers")) || owners_may_register(probe)) return true;
	return reply_error(q, PLENUM_E_NOT_ALLOWED, OWNERS_SERVERS_TEXT "%s", owners_why_not(probe));
}

static bool servers_are_free(struct request *q, struct session *s, const struct attachment *probe) {
	size_t i;
	json_t *one;
	if (json_array_size(json_object_get(q->body, "mcp_servers")) && !session_dialect(s)->hooks)
		return reply_error(q, PLENUM_E_BAD_REQUEST, "the agent of session %s takes no MCP servers", s->name);
	attach_name(q); /* the name may be that of an absent owner */
	const char *as = owners_takes_up_as(probe);
	json_array_foreach(json_object_get(q->body, "mcp_servers"), i, one) {
		struct buf name = NOTICE_INIT;
		str_put_json(&name, json_string_value(one), json_string_length(one));
		const struct owner *o = owners_of_server(s, probe, as, (struct span){name.data, name.len});
		if (o) owners_refuse_server(q->client, q->id, (struct span){name.data, name.len}, o);
		buf_free(&name);
		if (o) return false;
	}
	return true;
}

static void own_servers(struct request *q, struct attachment *a) {
	size_t i;
	json_t *name;
	json_array_foreach(json_object_get(q->body, "mcp_servers"), i, name) {
		const char *error = owners_add_server(a, json_string_value(name));
		if (error)
			notify_complain(q->client, SPAN_NONE, registry_code(error), "MCP server %s: %s", json_string_value(name),
							error);
	}
}

void attach_verb(struct request *q) {
	struct client *c = q->client;
	struct router *r = q->router;
	const struct attachment *held = c->attachment;
	struct start start;
	bool created;
	if (r->shutting_down) {
		reply_error(q, PLENUM_E_SHUTTING_DOWN, "the daemon is shutting down");
		return;
	}
	if (held) {
		reply_error(q, PLENUM_E_ALREADY_ATTACHED,
					"this connection is attached to session %s: detach, or open another connection",
					held->session->name);
		return;
	}
	struct attachment probe = {.client = c, .observer = is_text(q, "role", "observer")};
	struct approval approval;
	if (!name_ok(q) || !one_of(q, "role", roles) || !one_of(q, "on_lag", lags) ||
		!find_start(q, dialect_default(), &(struct tape){.oldest = 1, .next = 1}, &start))
		return;
	bool approves = read_approval(q, !probe.observer, &approval);
	names_free(&approval.tools);
	if (!approves || !may_own_servers(q, &probe)) return;
	struct session *s = c->starting ? awaited(q, &created) : get_session(q, &created);
	if (!s || !servers_are_free(q, s, &probe) || !find_start(q, session_dialect(s), &s->tape, &start)) return;
	struct attachment *a = attachment_new(c, s, false, false);
	if (!a) {
		reply_error(q, PLENUM_E_INTERNAL, "out of memory");
		return;
	}
	if (!attach_apply(q, a, true)) {
		attachment_leave(c, "attach failed");
		return;
	}
	attachment_stand_in(a, created && flag(q, "ephemeral", false), flag(q, "deny_asks", false),
						flag(q, "stderr", false));
	answer(q, a, created, start);
	kept_post(a);
	client_read_tape(c, &s->tape, start.seq);
	attachment_ready(a);
	own_servers(q, a);
}
