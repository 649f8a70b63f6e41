/* SPDX-License-Identifier: MIT */
#include "core/client.h"

#include "base/log.h"
#include "base/str.h"
#include "io/proc.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define IOVS 256   /* iovecs of one write */
#define ITEMS 1024 /* lines of one write */
#define TAGGED_ITEMS 256
#define TAG_MAX 40
#define SEND_BUDGET ((size_t)512 * 1024)      /* bytes of one write, except for one longer line */
#define MAIL_PAUSE ((size_t)16 * 1024 * 1024) /* the client is not read while its mail exceeds this */
#define CHANNEL_MAIL SEND_BUDGET              /* the channels of a client wait while its mail exceeds this */
#define MAIL_AT_ONCE 1024                     /* lines that are freed in one turn */
#define MAIL_MAX ((size_t)256 * 1024 * 1024)  /* and it is cut off beyond this */

struct mail {
	struct list node;
	uint64_t at; /* sent before the tape's line of this number; 0 (all such mail is at the front): before all lines */
	size_t n, len;
	struct chunk parts[]; /* of the line */
};

static void on_flush(void *arg);

/* --- life --------------------------------------------------------------------------------------------------------- */

static void drop_mail(struct mail *m) {
	list_del(&m->node);
	for (size_t i = 0; i < m->n; i++) chunk_drop(&m->parts[i]);
	free(m);
}

/* Mail that is not sent any more. A client that does not read may have a million short lines: they are freed over many
 * turns. */
struct waste {
	struct loop *loop;
	struct lines_pool *pool; /* trimmed after it, and the heap with it */
	struct loop_task task;
	struct list mail;
};

static void free_waste(void *arg) {
	struct waste *w = arg;
	for (size_t i = 0; i < MAIL_AT_ONCE && !list_empty(&w->mail); i++)
		drop_mail(LIST_OF(w->mail.prev, struct mail, node)); /* the newest first: the heap shrinks with it */
	if (!list_empty(&w->mail)) {
		loop_defer(w->loop, &w->task);
		return;
	}
	if (w->pool->on_busy) w->pool->on_busy(w->pool);
	free(w);
}

/* Free all of it, at once if it is little, or without memory. */
static void free_mail(struct client *c) {
	struct mail *m;
	struct waste *w = NULL;
	for (size_t i = 0; (m = LIST_TOP(&c->mail, struct mail, node)) != NULL; i++) {
		if (i >= MAIL_AT_ONCE && !w && (w = malloc(sizeof *w)) != NULL) break;
		drop_mail(m);
	}
	if (!w) return;
	w->loop = c->loop;
	w->pool = c->in.pool;
	loop_task_init(&w->task, free_waste, w);
	list_init(&w->mail);
	list_add_tail(&c->mail, &w->mail); /* in place of the client's head */
	list_del(&c->mail);
	loop_defer(w->loop, &w->task);
}

void client_filter_free(struct client_filter *f) {
	names_free(&f->others);
	*f = (struct client_filter){0};
}

bool client_filter_copy(struct client_filter *to, const struct client_filter *from) {
	*to = *from;
	to->others = (struct names){0};
	if (names_copy(&to->others, &from->others)) return true;
	client_filter_free(to);
	return false;
}

void client_set_filter(struct client *c, struct client_filter *f) {
	client_filter_free(&c->filter);
	c->filter = *f;
	*f = (struct client_filter){0};
}

static void free_client(void *arg) {
	struct client *c = arg;
	free_mail(c);
	for (size_t i = 0; i < c->n_rest; i++) chunk_drop(&c->rest[i]);
	lines_free(&c->in);
	chunk_drop(&c->held);
	client_filter_free(&c->filter);
	names_free(&c->mutes);
	free(c->name);
	free(c->refused_change);
	free(c);
}

void client_kill(struct client *c) {
	if (c->dead) return;
	c->dead = true;
	for (struct client *one; (one = LIST_TOP(&c->channels, struct client, channel)) != NULL;) client_kill(one);
	loop_task_stop(&c->flush_task);
	loop_task_stop(&c->serve_task);
	if (c->carrier) { /* it has the number of its carrier's descriptor, and only looks at it */
		list_del(&c->channel);
		client_release(c->carrier); /* its line may have waited for this channel */
		if (c->carrier->closing) client_wake(c->carrier);
	} else {
		loop_fd_stop(&c->io);
		close(c->io.fd);
	}
	watch_drop(c->watch);
	c->watch = NULL;
	list_del(&c->node);
	c->events->gone(c);
	c->tape = NULL;
	loop_defer_free(c->loop, &c->free_task);
}

/* Cut it off at the end of the turn: the caller may be walking through a list of clients. */
static void doom(struct client *c) {
	c->doomed = true;
	loop_defer(c->loop, &c->flush_task);
}

static bool hold(struct client *c) {
	return share_hold(&c->member, lines_held(&c->in) + c->held.len + c->mail_bytes + c->rest_whole);
}

/* Drop its unfinished line, if that is most of its bytes, or else close it; a client that is closing is cut off. */
static void shed(struct client *c) {
	if (c->evicted) {
		(void)share_hold(&c->member, 0);
		doom(c);
		return;
	}
	if (c->more || 2 * lines_held(&c->in) < c->member.bytes) {
		/* Close it at the end of the turn. From now on only a partly sent line is charged to it. */
		c->evicted = MAX(c->member.bytes, (size_t)1);
		(void)share_hold(&c->member, c->rest_whole);
		loop_defer(c->loop, &c->flush_task);
		return;
	}
	c->starved = STARVED_SHARE;
	lines_skip(&c->in);
	(void)hold(c);
}

/* Update its charge. If its uid has too much, the connections with the most bytes shed some. */
static void charge(struct client *c) {
	struct share_member *most;
	if (c->dead || c->doomed) return;
	if (c->evicted) (void)share_hold(&c->member, c->rest_whole);
	if (c->evicted || hold(c) || c->taking) return;
	while ((most = share_heaviest(c->member.share)) != NULL) {
		struct client *heavy = CONTAINER_OF(most, struct client, member);
		if (heavy->taking) return; /* checked when that is over */
		shed(heavy);
	}
}

static void want(struct client *c) {
	if (c->carrier) return;
	bool reads = !c->paused && !client_holds(c) && !c->more;
	bool ok = c->ended ? loop_fd_want_end(&c->io, c->blocked) : loop_fd_want(&c->io, reads, c->blocked);
	if (!ok) doom(c);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Return true if lines of the client were read and not served yet. */
static bool waits(const struct client *c) {
	return c->more || client_holds(c);
}

static void serve_later(struct client *c) {
	if (c->more && !c->dead && !c->paused && !client_holds(c)) loop_defer(c->loop, &c->serve_task);
}

/* Serve the lines read, until the client's share of the turn is used up or its next line cannot be taken now. An
 * over-long line does not end a share: the shared block may have to be given back after it first. */
static void take_lines(struct client *c) {
	struct chunk line;
	size_t size, n = 0;
	enum lines_result r;
	bool before = c->more, go_on = true;
	c->taking = true;
	while (go_on && ((r = lines_next(&c->in, &line, &size)) == LINES_LINE || r == LINES_LONG)) {
		c->lines_in++;
		charge(c); /* the receiver holds the line now */
		if (r == LINES_LONG)
			c->events->long_line(c, line, size);
		else
			c->events->line(c, line);
		if (r == LINES_LONG) c->starved = STARVED_NOT;
		chunk_drop(&line);
		bool over = ++n >= LIMITS_TURN_LINES || loop_must_yield(c->loop) || c->paused || client_holds(c);
		go_on = !c->dead && !c->doomed && !c->evicted && (r == LINES_LONG || !over);
	}
	c->taking = false;
	if (c->dead) return;
	if (r == LINES_OOM) {
		client_kill(c);
		return;
	}
	c->more = r != LINES_MORE;
	if (c->more != before) want(c);
	serve_later(c);
	charge(c);
}

/* Serve a last line without its newline. */
static void take_rest(struct client *c) {
	struct chunk rest;
	size_t size;
	if (!c->dead && lines_cut(&c->in, &size)) {
		c->lines_in++;
		c->events->long_line(c, c->in.head, size);
	}
	if (c->dead || c->doomed || c->evicted || !lines_rest(&c->in, &rest)) return;
	c->lines_in++;
	c->events->line(c, rest);
	chunk_drop(&rest);
}

/* The channels get no more either; one with a held line reports it after that. */
static void no_more(struct client *c) {
	struct client *one;
	LIST_FOR_EACH (one, &c->channels, struct client, channel) {
		one->ended = true;
		if (!client_holds(one)) one->events->no_more(one);
	}
	c->events->no_more(c);
}

void client_hold(struct client *c, struct chunk line) {
	c->held = chunk_ref(line);
	want(c);
}

bool client_hung_up(const struct client *c) {
	struct pollfd p = {.fd = c->io.fd};
	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}

/* Serve the held line again; it may be held once more. */
static void serve_held(struct client *c) {
	if (c->dead || c->doomed || c->evicted || !client_holds(c)) return;
	struct chunk line = c->held;
	c->held = CHUNK_NONE;
	c->taking = c->releasing = true;
	charge(c); /* the receiver holds the line now */
	c->events->line(c, line);
	c->taking = c->releasing = false;
	chunk_drop(&line);
	charge(c);
}

static void on_serve(void *arg) {
	struct client *c = arg;
	bool held = client_holds(c);
	/* it asked for a session and did not wait for it; a prompt alone waits */
	if (held && c->chooses && !c->check && !c->inquiry && !c->starting && client_hung_up(c)) {
		client_kill(c);
		return;
	}
	serve_held(c);
	if (c->dead || c->doomed || c->evicted || client_holds(c)) return;
	if (c->carrier) client_release(c->carrier); /* its line may have waited for this one */
	take_lines(c);
	if (c->dead || c->doomed || c->evicted || waits(c)) return;
	want(c);
	if (c->closing) client_wake(c); /* it was kept for these lines */
	if (c->dead || !c->ended) return;
	if (client_hung_up(c))
		client_kill(c);
	else
		no_more(c);
}

void client_release(struct client *c) {
	if (!client_holds(c)) return;
	loop_task_stop(&c->serve_task); /* clients released together keep this order */
	loop_defer(c->loop, &c->serve_task);
}

static void read_some(struct client *c) {
	size_t room;
	char *space = lines_space(&c->in, &room);
	if (!space && lines_held(&c->in)) { /* for the client's own memory */
		c->starved = STARVED_MEMORY;
		lines_skip(&c->in);
		space = lines_space(&c->in, &room);
	}
	if (!space) {
		log_error("client %llu is closed: no memory to read it", (unsigned long long)c->id);
		client_kill(c);
		return;
	}
	ssize_t n = fd_read(c->io.fd, space, room);
	if (n > 0) {
		c->bytes_in += (uint64_t)n;
		lines_commit(&c->in, (size_t)n);
	}
	bool again = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
	take_lines(c); /* always: it gives the shared block back */
	if (c->dead || n > 0 || again) return;
	if (n < 0) {
		client_kill(c);
		return;
	}
	take_rest(c); /* it came before the end, and has the client's rights */
	if (c->dead) return;
	c->ended = true;
	want(c);
	if (!c->dead && !client_holds(c)) no_more(c); /* else after its held line */
}

static void on_io(void *arg, bool readable, bool writable) {
	struct client *c = arg;
	if (writable && !c->dead) {
		c->blocked = false;
		c->blocked_since = 0;
		want(c);
		if (!c->dead) on_flush(c);
	}
	if (!readable || c->dead) return;
	if (!c->ended)
		read_some(c);
	else if (!waits(c) && client_hung_up(c))
		client_kill(c);
}

void client_speak(struct client *c, const struct dialect *d) {
	c->dialect = d ? d : c->own ? c->own : dialect_default();
}

void client_begin(struct client *c, struct span line) {
	if (c->own) return;
	c->own = dialect_opened_by(line);
	if (!c->attachment) client_speak(c, NULL);
}

/* --- filters ------------------------------------------------------------------------------------------------------ */

static bool has_type_of(const struct client *c, struct chunk line, const struct names *types) {
	struct envelope env;
	if (!names_count(types) || !c->dialect->scan(line.data, line.len, &env)) return false;
	struct span type = span_content(env.type);
	return type.p && names_have(types, type.p, type.n);
}

/* Return true for the echo of a prompt of this client. */
static bool is_own_echo(const struct client *c, const struct tape_entry *e) {
	char own[48];
	size_t n = (size_t)snprintf(own, sizeof own, "\"" TAPE_SENDER "\":%llu}", (unsigned long long)c->id);
	const char *at = e->line.data, *end = at + e->line.len, *last = NULL, *found;
	while ((found = memmem(at, (size_t)(end - at), own, strlen("\"" TAPE_SENDER "\":"))) != NULL) {
		last = found;
		at = found + 1;
	}
	return last && (size_t)(end - last) >= n && memcmp(last, own, n) == 0;
}

static bool passes(const struct client *c, uint64_t seq, const struct tape_entry *e) {
	const struct client_filter *f = &c->filter;
	if (seq < c->repeats) return e->kind != LINE_NOTICE;
	if (e->kind == LINE_NOTICE) return !f->quiet; /* no types filter drops notices */
	if (f->no_partial && e->kind == LINE_STREAM_EVENT && c->dialect->repeats_pieces) return false;
	if (f->no_echo && (e->flags & TAPE_REPLAY)) return false;
	if ((e->flags & TAPE_OTHERS) && is_own_echo(c, e)) return false;
	if (has_type_of(c, e->line, &c->mutes)) return false;
	if (!f->by_type) return true;
	if (e->kind == LINE_OTHER || !c->dialect->kind_of) return has_type_of(c, e->line, &f->others);
	return f->kinds & (1U << e->kind);
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

struct item {
	struct mail *mail; /* NULL: from the tape */
	struct chunk line; /* of the tape, borrowed */
	size_t len;        /* bytes of the line, without a tag */
	uint64_t after;    /* the cursor after it */
	size_t split, tag; /* position and length of the tag */
};

struct batch {
	struct iovec iov[IOVS];
	int n_iov;
	struct item items[ITEMS];
	size_t n_items, bytes;
	uint64_t cursor; /* after the last line checked */
	char tags[TAGGED_ITEMS][TAG_MAX];
};

static bool put_iov(struct batch *b, const char *p, size_t n) {
	struct iovec *last = b->n_iov ? &b->iov[b->n_iov - 1] : NULL;
	if (n == 0) return true;
	if (last && (const char *)last->iov_base + last->iov_len == p) {
		last->iov_len += n; /* neighbours in one block are one piece */
		return true;
	}
	if (b->n_iov == IOVS) return false;
	b->iov[b->n_iov++] = (struct iovec){(void *)(uintptr_t)p, n};
	return true;
}

/* Compute the tag and its position: after the line's brace. An empty object gets no comma. */
static void make_tag(char tag[TAG_MAX], struct item *it, uint64_t seq) {
	const char *brace = memchr(it->line.data, '{', it->line.len);
	if (!brace) return;
	it->split = (size_t)(brace - it->line.data) + 1;
	const char *p = brace + 1;
	while (*p == ' ' || *p == '\t' || *p == '\r') p++; /* the newline ends it */
	it->tag = (size_t)snprintf(tag, TAG_MAX, "\"plenum_seq\":%llu%s", (unsigned long long)seq, *p == '}' ? "" : ",");
}

/* Return the pieces of an item, borrowed; their number. */
static size_t pieces_of(const struct item *it, const char *tag, struct chunk pieces[ROPE_PARTS]) {
	size_t n = 0;
	for (; it->mail && n < it->mail->n; n++) pieces[n] = it->mail->parts[n];
	if (it->mail) return n;
	pieces[0] = (struct chunk){it->line.block, it->line.data, it->tag ? it->split : it->len};
	if (!it->tag) return 1;
	pieces[1] = (struct chunk){NULL, tag, it->tag};
	pieces[2] = (struct chunk){it->line.block, it->line.data + it->split, it->len - it->split};
	return 3;
}

static bool put_item(struct batch *b, struct item it) {
	struct chunk pieces[ROPE_PARTS];
	int before = b->n_iov;
	size_t last_len = before ? b->iov[before - 1].iov_len : 0, n = pieces_of(&it, b->tags[b->n_items], pieces);
	bool ok = true;
	for (size_t i = 0; ok && i < n; i++) ok = put_iov(b, pieces[i].data, pieces[i].len);
	if (!ok) { /* no room for the whole line: remove its pieces */
		b->n_iov = before;
		if (before) b->iov[before - 1].iov_len = last_len;
		return false;
	}
	b->items[b->n_items++] = it;
	b->bytes += it.len + it.tag;
	return true;
}

static bool room(const struct client *c, const struct batch *b) {
	return b->n_items < (c->filter.tag ? (size_t)TAGGED_ITEMS : (size_t)ITEMS) && b->bytes < SEND_BUDGET;
}

static bool gather_tape(struct client *c, struct batch *b, uint64_t until) {
	while (b->cursor < until) {
		const struct tape_entry *e = tape_at(c->tape, b->cursor);
		if (passes(c, b->cursor, e)) {
			if (!room(c, b)) return false;
			struct item it = {.line = e->line, .len = e->line.len, .after = b->cursor + 1};
			if (c->filter.tag) make_tag(b->tags[b->n_items], &it, b->cursor);
			if (!put_item(b, it)) return false;
		}
		b->cursor++;
	}
	return true;
}

/* Fill the batch in order: the rest of a line, then mail and tape. True: nothing is left. */
static bool gather(struct client *c, struct batch *b) {
	uint64_t end = c->tape ? c->tape->next : 0;
	b->n_iov = 0;
	b->n_items = b->bytes = 0;
	b->cursor = c->cursor;
	for (size_t i = 0; i < c->n_rest; i++) {
		put_iov(b, c->rest[i].data, c->rest[i].len);
		b->bytes += c->rest[i].len;
	}
	struct mail *m;
	LIST_FOR_EACH (m, &c->mail, struct mail, node) {
		if (c->tape && !gather_tape(c, b, MIN(m->at, end))) return false;
		if (!room(c, b) || !put_item(b, (struct item){.mail = m, .len = m->len, .after = b->cursor})) return false;
	}
	return !c->tape || gather_tape(c, b, end);
}

/* Keep the rest of an item of which `sent` bytes were sent. */
static void keep_rest(struct client *c, const struct batch *b, const struct item *it, size_t sent) {
	struct chunk pieces[ROPE_PARTS];
	size_t n = pieces_of(it, b->tags[it - b->items], pieces);
	for (size_t i = 0; i < n; i++) {
		struct chunk piece = pieces[i];
		size_t off = MIN(sent, piece.len);
		sent -= off;
		if (off == piece.len) continue;
		bool tag = it->tag && i == 1;
		piece = tag ? chunk_copy(piece.data + off, piece.len - off) : chunk_view(piece, off, piece.len - off);
		if (piece.data)
			c->rest[c->n_rest++] = piece;
		else
			doom(c); /* the beginning of a line was sent, which cannot be completed */
	}
}

static size_t consume_rest(struct client *c, size_t sent) {
	size_t i = 0;
	for (; i < c->n_rest && sent >= c->rest[i].len; i++) {
		sent -= c->rest[i].len;
		chunk_drop(&c->rest[i]);
	}
	if (i < c->n_rest) {
		c->rest[i].data += sent;
		c->rest[i].len -= sent;
		sent = 0;
	}
	memmove(c->rest, c->rest + i, (c->n_rest - i) * sizeof c->rest[0]);
	c->n_rest -= i;
	if (c->n_rest == 0) c->rest_whole = 0;
	return sent;
}

/* Account for the bytes taken by the kernel. */
static void consume(struct client *c, struct batch *b, size_t sent) {
	bool all = sent == b->bytes;
	c->bytes_out += sent;
	sent = consume_rest(c, sent);
	if (c->n_rest) return; /* the whole line is charged until all of it was sent */
	for (size_t i = 0; i < b->n_items; i++) {
		struct item *it = &b->items[i];
		size_t len = it->len + it->tag;
		if (sent == 0 && len) break;
		c->cursor = it->after;
		if (sent < len) {
			keep_rest(c, b, it, sent);
			c->rest_whole = it->len;
		}
		if (it->mail) {
			c->mail_bytes -= it->mail->len;
			drop_mail(it->mail);
		}
		if (sent < len) break;
		sent -= len;
	}
	if (all) c->cursor = b->cursor;
	charge(c);
}

static void set_blocked(struct client *c) {
	c->blocked = true;
	c->blocked_since = now_ms();
	want(c);
	if (!c->dead) c->events->pace(c, true);
}

static void check_overtaken(struct client *c) {
	if (!c->tape || c->cursor >= c->tape->oldest) return;
	uint64_t from = c->cursor, to = c->tape->oldest - 1;
	c->cursor = c->tape->oldest;
	c->events->overtaken(c, from, to);
}

static void after_flush(struct client *c, bool done) {
	struct client *one;
	LIST_FOR_EACH (one, &c->channels, struct client, channel) {
		if (!one->blocked || c->mail_bytes >= CHANNEL_MAIL) continue;
		one->blocked = false; /* it may write again */
		one->blocked_since = 0;
		client_wake(one);
	}
	if (c->paused && c->mail_bytes < MAIL_PAUSE / 2) {
		c->paused = false;
		want(c);
		serve_later(c);
		if (c->carrier) client_release(c->carrier);
	}
	if (c->dead) return;
	if (!done)
		loop_defer(c->loop, &c->flush_task);
	else if (c->closing && !waits(c) && !client_has_channels(c))
		client_kill(c);
	if (!c->dead) c->events->pace(c, false);
}

static void drop_unsent(struct client *c) {
	free_mail(c);
	c->mail_bytes = 0;
	client_skip(c);
}

static void send_nothing(struct client *c) {
	drop_unsent(c);
	charge(c);
	after_flush(c, true);
}

/* The peer may have closed its connection after sending lines. The end of its input ends the client. */
static void send_failed(struct client *c, int number) {
	bool closed = number == EPIPE || number == ECONNRESET;
	if (!closed || (c->ended && !waits(c))) {
		client_kill(c);
		return;
	}
	c->deaf = true;
	for (; c->n_rest; c->n_rest--) chunk_drop(&c->rest[c->n_rest - 1]);
	c->rest_whole = 0;
	send_nothing(c);
}

/* Return the line of an item. */
static struct rope line_of(const struct item *it, const char *tag) {
	struct chunk pieces[ROPE_PARTS];
	size_t n = pieces_of(it, tag, pieces);
	if (it->tag) return rope_make(pieces, n);
	struct rope line = {.n = n, .len = it->len};
	for (size_t i = 0; i < n; i++) line.parts[i] = chunk_ref(pieces[i]);
	return line;
}

/* Send the rest of a partly sent line before closing. */
static void cast_out(struct client *c) {
	drop_unsent(c);
	c->more = false;
	loop_task_stop(&c->serve_task);
	lines_free(&c->in);
	chunk_drop(&c->held);
	c->events->evicted(c, c->evicted);
}

static void on_flush(void *arg) {
	struct client *c = arg;
	struct batch b;
	if (c->dead) return;
	if (c->evicted && !c->closing) {
		cast_out(c);
		if (!c->doomed) return;
	}
	if (c->doomed) {
		client_kill(c);
		return;
	}
	if (c->blocked) return;
	if (c->deaf) {
		send_nothing(c);
		return;
	}
	check_overtaken(c);
	if (c->dead) return;
	if (c->carrier && c->carrier->mail_bytes >= CHANNEL_MAIL) {
		set_blocked(c);
		return;
	}
	bool done = gather(c, &b);
	if (b.bytes == 0) {
		c->cursor = b.cursor;
		after_flush(c, done);
		return;
	}
	if (c->carrier) { /* its lines become mail of its carrier, which shares their bytes */
		for (size_t i = 0; i < b.n_items; i++) {
			struct rope line = line_of(&b.items[i], b.tags[i]);
			client_post_rope(c->carrier, &line);
		}
		consume(c, &b, b.bytes);
		after_flush(c, done);
		return;
	}
	ssize_t n = fd_sendv(c->io.fd, b.iov, b.n_iov);
	if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS) {
		send_failed(c, errno);
		return;
	}
	consume(c, &b, n < 0 ? 0 : (size_t)n);
	if (n < 0 || (size_t)n < b.bytes)
		set_blocked(c);
	else
		after_flush(c, done);
}

/* --- the outside -------------------------------------------------------------------------------------------------- */

static struct client *make(struct loop *loop, struct lines_pool *pool, int fd, size_t max_line,
						   const struct client_events *events, struct router *world) {
	struct client *c = calloc(1, sizeof *c);
	if (!c) {
		if (fd >= 0) close(fd);
		return NULL;
	}
	c->loop = loop;
	c->events = events;
	c->world = world;
	client_speak(c, NULL);
	list_init(&c->node);
	list_init(&c->channels);
	list_init(&c->channel);
	list_init(&c->mail);
	lines_init(&c->in, pool, max_line);
	loop_task_init(&c->flush_task, on_flush, c);
	loop_task_init(&c->free_task, free_client, c);
	loop_task_init(&c->serve_task, on_serve, c);
	loop_fd_init(&c->io, loop, fd, on_io, c);
	return c;
}

struct client *client_new(struct loop *loop, struct lines_pool *pool, struct shares *shares, int fd,
						  const struct peer *peer, struct watch *watch, enum origin origin, size_t max_line,
						  const struct client_events *events, struct router *world) {
	static const int send_buffer = 1024 * 1024;
	struct client *c = make(loop, pool, fd, max_line, events, world);
	if (!c) {
		watch_drop(watch);
		return NULL;
	}
	c->peer = *peer;
	c->watch = watch;
	c->origin = origin;
	c->since = now_ms();
	proc_name(peer->pid, c->program, sizeof c->program);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
	if (share_join(&c->member, shares, peer->uid) && loop_fd_want(&c->io, true, false)) return c;
	share_leave(&c->member);
	close(fd);
	watch_drop(c->watch);
	free(c);
	return NULL;
}

void client_carry_channel(struct client *channel, struct client *carrier) {
	channel->carrier = carrier;
	channel->io.fd = carrier->io.fd;
	list_add_tail(&carrier->channels, &channel->channel);
}

void client_rename(struct client *c, const char *name) {
	free(c->name);
	c->name = *name ? str_dup(name) : NULL;
}

void client_count_line(struct client *channel) {
	channel->lines_in = channel->carrier->lines_in;
}

struct client *client_new_channel(struct client *carrier, struct shares *shares) {
	struct client *c = make(carrier->loop, carrier->in.pool, -1, carrier->in.max, carrier->events, carrier->world);
	if (!c) return NULL;
	c->name = str_dup(carrier->name);
	bool copied = names_copy(&c->mutes, &carrier->mutes);
	if ((carrier->name && !c->name) || !copied || !share_join(&c->member, shares, carrier->peer.uid)) {
		free_client(c);
		return NULL;
	}
	c->peer = carrier->peer;
	c->watch = carrier->watch;
	if (c->watch) c->watch->users++;
	c->origin = carrier->origin;
	c->family = carrier->family;
	memcpy(c->program, carrier->program, sizeof c->program);
	c->since = now_ms();
	c->own = carrier->own;
	c->chooses = true; /* it is in one session, or in none */
	client_carry_channel(c, carrier);
	return c;
}

/* Takes the rope over. NULL without memory. */
static struct mail *make_mail(struct rope *line, uint64_t at) {
	struct mail *m = line->n ? malloc(sizeof *m + line->n * sizeof m->parts[0]) : NULL;
	if (!m) {
		rope_drop(line);
		return NULL;
	}
	*m = (struct mail){.at = at, .n = line->n, .len = line->len};
	memcpy(m->parts, line->parts, line->n * sizeof m->parts[0]);
	line->n = line->len = 0;
	return m;
}

/* The same, counted; without memory the client is cut off: it would miss a line without notice. */
static struct mail *new_mail(struct client *c, struct rope *line, uint64_t at) {
	struct mail *m = NULL;
	if (c->dead || c->doomed)
		rope_drop(line);
	else if (!(m = make_mail(line, at)))
		doom(c);
	if (m) c->mail_bytes += m->len;
	return m;
}

static void mail_grew(struct client *c) {
	charge(c);
	if (c->mail_bytes > MAIL_MAX) {
		doom(c);
		return;
	}
	if (c->mail_bytes > MAIL_PAUSE && !c->paused) {
		c->paused = true;
		want(c);
	}
	/* one client waits for this line: send it before the tape, which goes to all */
	if (!c->dead && !c->blocked) loop_defer_first(c->loop, &c->flush_task);
}

void client_post_rope(struct client *c, struct rope *line) {
	struct mail *m = new_mail(c, line, c->tape ? c->tape->next : 0);
	if (!m) return;
	list_add_tail(&c->mail, &m->node);
	mail_grew(c);
}

void client_post(struct client *c, struct chunk line) {
	struct rope one = rope_of(line);
	client_post_rope(c, &one);
}

bool client_wants(const struct client *c, struct chunk line) {
	return !has_type_of(c, line, &c->mutes);
}

void client_offer(struct client *c, struct chunk line) {
	if (line.data && !client_wants(c, line))
		chunk_drop(&line);
	else
		client_post(c, line);
}

bool client_mute(struct client *c, struct span types) {
	struct span one;
	bool good = true;
	names_free(&c->mutes);
	for (size_t at = 0; good && span_next(types, &at, &one);) {
		_cleanup_free_ char *name = span_dup(one, NULL);
		good = name && names_add(&c->mutes, name, strlen(name));
	}
	return good;
}

/* Drops the notice. */
static struct chunk framed(const struct client *c, struct chunk notice) {
	struct chunk line = notice.data ? c->dialect->frame->put_notice(notice) : CHUNK_NONE;
	chunk_drop(&notice);
	return line;
}

void client_tell(struct client *c, struct chunk notice) {
	client_post(c, framed(c, notice));
}

void client_tell_first(struct client *c, struct chunk notice) {
	struct rope line = rope_of(framed(c, notice));
	struct mail *m = new_mail(c, &line, 0), *other;
	struct list *before = &c->mail;
	if (!m) return;
	LIST_FOR_EACH (other, &c->mail, struct mail, node) { /* after earlier mail of this kind */
		if (other->at == 0) continue;
		before = &other->node;
		break;
	}
	list_add_tail(before, &m->node);
	mail_grew(c);
}

void client_wake(struct client *c) {
	if (!c->dead && !c->blocked) loop_defer(c->loop, &c->flush_task);
}

void client_read_tape(struct client *c, struct tape *tape, uint64_t seq) {
	c->tape = tape;
	c->cursor = seq;
	c->repeats = 0;
	client_wake(c);
}

void client_repeat_tape(struct client *c) {
	c->repeats = MAX(c->repeats, c->cursor);
	c->cursor = c->tape->oldest;
	client_wake(c);
}

/* Clear the place of mail due before seq; return the first one after it. */
static struct list *unplace(struct client *c, struct list *mail, uint64_t seq) {
	for (; mail != &c->mail && LIST_OF(mail, struct mail, node)->at <= seq; mail = mail->next)
		LIST_OF(mail, struct mail, node)->at = 0;
	return mail;
}

bool client_resume_tape(struct client *c, struct tape *tape) {
	c->tape = tape;
	return c->cursor <= tape->next;
}

void client_skip(struct client *c) {
	if (c->tape) c->cursor = c->tape->next;
}

void client_choose(struct client *c) {
	c->chooses = true;
}

void client_set_origin(struct client *c, enum origin origin, uint64_t family) {
	c->origin = origin;
	c->family = family;
}

void client_leave_tape(struct client *c) {
	if (c->dead) c->tape = NULL; /* nothing is sent any more */
	struct tape *tape = c->tape;
	if (!tape) return;
	check_overtaken(c);
	/* Find the first mail with a place on the tape, that is, posted since the client reads it; the list's head without
	 * any. The walk begins at the end: each mail is visited once as such, however much older mail waits before it. */
	struct list *next = &c->mail;
	while (next->prev != &c->mail && LIST_OF(next->prev, struct mail, node)->at) next = next->prev;
	for (uint64_t seq = c->cursor; seq < tape->next && !c->dead; seq++) {
		const struct tape_entry *e = tape_at(tape, seq);
		if (!passes(c, seq, e)) continue;
		next = unplace(c, next, seq);
		char tag[TAG_MAX];
		struct item it = {.line = e->line, .len = e->line.len};
		if (c->filter.tag) make_tag(tag, &it, seq);
		struct rope line = line_of(&it, tag);
		struct mail *m = new_mail(c, &line, 0);
		if (m) list_add_tail(next, &m->node);
	}
	unplace(c, next, UINT64_MAX);
	c->tape = NULL;
	charge(c);
	client_wake(c);
}

void client_close(struct client *c) {
	struct client *one;
	if (c->dead) return;
	LIST_FOR_EACH (one, &c->channels, struct client, channel) client_close(one);
	client_leave_tape(c);
	c->closing = true;
	c->ended = true;
	want(c);
	client_wake(c);
}

uint64_t client_behind(const struct client *c) {
	uint64_t n = c->mail_bytes + (c->tape ? tape_behind(c->tape, c->cursor) : 0);
	for (size_t i = 0; i < c->n_rest; i++) n += c->rest[i].len;
	return n;
}

/* --- upgrade ------------------------------------------------------------------------------------------------------ */

static void carry_identity(struct carry *c, struct client *cl, struct watches *watches) {
	CARRY(c, cl->id);
	CARRY(c, cl->peer.pid);
	CARRY(c, cl->peer.uid);
	CARRY(c, cl->peer.gid);
	int fd = c->saving && cl->watch ? cl->watch->fd : -1;
	carry_fd(c, &fd, 0); /* the descriptor itself: a new one could refer to another process by now */
	if (!c->saving && fd >= 0 && !(cl->watch = watch_take(watches, cl->peer.pid, fd))) carry_fail(c, "out of memory");
	carry_bytes(c, cl->program, sizeof cl->program);
	cl->program[sizeof cl->program - 1] = 0;
	char *own = c->saving && cl->own ? str_dup(cl->own->name) : NULL;
	carry_text(c, &own);
	if (!c->saving && own && !(cl->own = dialect_find(own))) carry_fail(c, "a client has an unknown dialect");
	if (!c->saving) client_speak(cl, NULL);
	free(own);
	CARRY_UPTO(c, cl->origin, ORIGIN_SILENT);
	CARRY(c, cl->family);
	CARRY(c, cl->subscribed);
	CARRY(c, cl->chooses);
	CARRY(c, cl->inits);
	CARRY(c, cl->init_due);
	carry_text(c, &cl->refused_change);
	carry_text(c, &cl->name);
	CARRY(c, cl->lines_in);
	CARRY(c, cl->bytes_in);
	CARRY(c, cl->bytes_out);
	CARRY(c, cl->since);
}

static void carry_filter(struct carry *c, struct client_filter *f) {
	CARRY(c, f->tag);
	CARRY(c, f->no_partial);
	CARRY(c, f->no_echo);
	CARRY(c, f->quiet);
	CARRY(c, f->by_type);
	CARRY(c, f->kinds);
	carry_set(c, &f->others, NULL);
}

static void carry_mail(struct carry *c, struct client *cl) {
	struct mail *m;
	size_t n = 0;
	LIST_FOR_EACH (m, &cl->mail, struct mail, node) n++;
	n = carry_count(c, n);
	m = LIST_OF(cl->mail.next, struct mail, node);
	for (size_t i = 0; i < n && carry_ok(c); i++) {
		struct rope line = {0};
		uint64_t at = c->saving ? m->at : 0;
		if (c->saving) {
			line.n = m->n;
			line.len = m->len;
			memcpy(line.parts, m->parts, m->n * sizeof m->parts[0]);
			m = LIST_OF(m->node.next, struct mail, node);
		}
		carry_number(c, &at);
		carry_rope(c, &line);
		if (c->saving) continue;
		if (!(m = make_mail(&line, at))) {
			carry_fail(c, "out of memory");
			return;
		}
		cl->mail_bytes += m->len;
		list_add_tail(&cl->mail, &m->node);
	}
}

static void carry_client_members(struct carry *c, struct client *cl, struct watches *watches) {
	carry_identity(c, cl, watches);
	carry_filter(c, &cl->filter);
	carry_set(c, &cl->mutes, NULL);
	carry_lines(c, &cl->in);
	CARRY(c, cl->cursor);
	CARRY(c, cl->repeats);
	carry_mail(c, cl);
	CARRY_UPTO(c, cl->n_rest, ARRAY_SIZE(cl->rest));
	for (size_t i = 0; i < cl->n_rest; i++) {
		carry_chunk(c, &cl->rest[i]);
		if (!c->saving) cl->rest_whole += cl->rest[i].len;
	}
	CARRY(c, cl->blocked);
	CARRY(c, cl->blocked_since);
	CARRY(c, cl->ended);
	CARRY(c, cl->closing);
	CARRY(c, cl->paused);
	CARRY(c, cl->doomed);
	CARRY(c, cl->spent);
	carry_chunk(c, &cl->held);
	CARRY(c, cl->starting);
	CARRY(c, cl->makes);
}

void client_carry(struct carry *c, struct client **client, struct loop *loop, struct lines_pool *pool,
				  struct watches *watches, size_t max_line, const struct client_events *events, struct router *world) {
	int fd = c->saving && !(*client)->carrier ? (*client)->io.fd : -1;
	carry_mark(c, "client");
	carry_fd(c, &fd, S_IFSOCK);
	if (!c->saving) {
		*client = NULL;
		if (!carry_ok(c)) return;
		if (!(*client = make(loop, pool, fd, max_line, events, world))) {
			carry_fail(c, "out of memory");
			return;
		}
	}
	carry_client_members(c, *client, watches);
}

void client_resume(struct client *c) {
	c->more = !c->carrier;
	want(c);
	serve_later(c);
	if (c->doomed) doom(c);
	charge(c);
	client_wake(c);
	client_release(c); /* its wait may be over */
}

bool client_is_ours(const struct client *c) {
	return c->member.share && !share_is_limited(c->member.share->all, c->peer.uid);
}
