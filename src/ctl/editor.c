/* SPDX-License-Identifier: MIT */
#include "ctl/editor.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "ctl/wtext.h"

#include <errno.h>
#include <histedit.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Keys of our own, in the map as C1 control characters, which nothing types: they are dropped from the input. */
#define KEY_PASTE 0x80
#define KEY_NEWLINE 0x81
#define KEY_RESET 0x82

#define PASTE_BEGIN "\033[200~"
#define PASTE_END "\033[201~"
#define INPUT_MAX ((size_t)64 << 20)
#define PATTERN_MAX 200

struct editor {
	EditLine *el;
	FILE *nowhere; /* what libedit draws */
	bool (*wait)(void *arg);
	void *arg;
	struct history *history;
	struct buf in;   /* bytes that were typed */
	bool pasting;    /* in has the beginning of a paste */
	wchar_t *pasted; /* the text of KEY_PASTE */
	bool vi;         /* a lone ESC is a key */
	bool inside;     /* wait() runs */
	bool stale;      /* flushed meanwhile: the text goes when the sequence of keys is over */
	enum editor_event event;
	wchar_t *line; /* of EDITOR_LINE */
	size_t line_len;
	int wish;       /* of a key, for after libedit has returned: -1 an older entry, 1 a newer one */
	bool command;   /* of vi: the key was one of the command mode, which goes on */
	size_t place;   /* in the history; n: the draft */
	wchar_t *draft; /* while place is in the history */
	bool searching;
	wchar_t pattern[PATTERN_MAX + 1];
	size_t pattern_len, found; /* found: in the history; n: nothing yet */
	wchar_t pushed;            /* a key that ended the search */
};

static struct editor *of(EditLine *el) {
	struct editor *e = NULL;
	el_wget(el, EL_CLIENTDATA, &e);
	return e;
}

/* --- Keys --------------------------------------------------------------------------------------------------------- */

static void drop_input(struct editor *e, size_t n) {
	memmove(e->in.data, e->in.data + n, e->in.len - n + 1);
	e->in.len -= n;
}

/* A terminal sends CR for a newline, and the tty makes NL of CR and CR of NL: a pair is one. */
static bool take_paste(struct editor *e, wchar_t *key) {
	char *end = e->in.len ? memmem(e->in.data, e->in.len, PASTE_END, strlen(PASTE_END)) : NULL;
	if (!end) return false;
	size_t n = (size_t)(end - e->in.data), len = 0, out = 0;
	wchar_t *text = wtext_from(e->in.data, n, &len);
	for (size_t i = 0; text && i < len; i++) {
		if (text[i] == '\r' && i && text[i - 1] == '\n') continue;
		text[out++] = text[i] == '\r' ? L'\n' : text[i];
	}
	if (text) text[out] = 0;
	free(e->pasted);
	e->pasted = text;
	drop_input(e, n + strlen(PASTE_END));
	e->pasting = false;
	*key = KEY_PASTE;
	return true;
}

enum sequence { NONE, PART, WHOLE };

static enum sequence match(const struct editor *e, const char *sequence) {
	size_t n = MIN(e->in.len, strlen(sequence));
	if (memcmp(e->in.data, sequence, n) != 0) return NONE;
	return n == strlen(sequence) ? WHOLE : PART;
}

/* The beginning of a character whose rest may come. */
static bool is_beginning(const char *p, size_t n) {
	size_t whole = (p[0] & 0xe0) == 0xc0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : (p[0] & 0xf8) == 0xf0 ? 4 : 0;
	for (size_t i = 1; i < n && i < whole; i++)
		if ((p[i] & 0xc0) != 0x80) return false;
	return n < whole;
}

/* The next key, if all of it is there. */
static bool next_key(struct editor *e, wchar_t *key) {
	if (e->pushed) {
		*key = e->pushed;
		e->pushed = 0;
		return true;
	}
	while (e->in.len && !e->pasting) {
		enum sequence paste = match(e, PASTE_BEGIN);
		if (paste == WHOLE) {
			drop_input(e, strlen(PASTE_BEGIN));
			e->pasting = true;
			break;
		}
		bool newline = match(e, "\033\n") == WHOLE || match(e, "\033\r") == WHOLE;
		if (newline) {
			drop_input(e, 2);
			*key = KEY_NEWLINE;
			return true;
		}
		if (paste == PART && !(e->vi && e->in.len == 1)) return false;
		size_t n = str_utf8(e->in.data, e->in.len);
		if (n == 0 && is_beginning(e->in.data, e->in.len)) return false;
		*key = n == 0 ? 0xfffd : e->in.data[0] ? (wchar_t)str_char(e->in.data, n) : 0;
		drop_input(e, MAX(n, (size_t)1));
		if (n && *key && (*key < 0x80 || *key > 0x9f)) return true;
	}
	return e->pasting && take_paste(e, key);
}

/* EL_GETCFN. Within a sequence of keys the rest of the program goes on. */
static int get_key(EditLine *el, wchar_t *key) {
	struct editor *e = of(el);
	while (!next_key(e, key)) {
		e->inside = true;
		bool go_on = e->wait(e->arg);
		e->inside = false;
		if (!go_on) {
			errno = ECANCELED;
			return -1;
		}
	}
	return 1;
}

bool editor_read(struct editor *e) {
	char part[65536];
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	if (poll(&fd, 1, 0) != 1) return true;
	ssize_t n = fd_read(STDIN_FILENO, part, sizeof part);
	if (n > 0) buf_put(&e->in, part, (size_t)n);
	return n > 0 || (n < 0 && errno == EAGAIN);
}

/* --- The text ----------------------------------------------------------------------------------------------------- */

static size_t text_of(struct editor *e, const wchar_t **text) {
	const LineInfoW *line = el_wline(e->el);
	*text = line->buffer;
	return (size_t)(line->lastchar - line->buffer);
}

static size_t cursor_of(struct editor *e) {
	const LineInfoW *line = el_wline(e->el);
	return (size_t)(line->cursor - line->buffer);
}

/* A copy, NUL-terminated. */
static wchar_t *copy_text(const wchar_t *text, size_t n) {
	wchar_t *copy = calloc(n + 1, sizeof *copy);
	if (copy) wmemcpy(copy, text, n);
	return copy;
}

/* Let libedit process one key, ours or a typed one. */
static void process(struct editor *e, wchar_t first) {
	int n;
	e->pushed = first;
	el_wgets(e->el, &n);
}

void editor_insert(struct editor *e, const wchar_t *text) {
	if (*text) el_winsertstr(e->el, text);
}

static void put_text(struct editor *e, const wchar_t *text, size_t n, size_t cursor) {
	_cleanup_wide_ wchar_t *copy = copy_text(text, n);
	process(e, KEY_RESET);
	if (!copy || !n) return;
	editor_insert(e, copy);
	el_cursor(e->el, (int)cursor - (int)n);
}

void editor_set(struct editor *e, const wchar_t *text, size_t n, size_t cursor) {
	e->searching = false;
	e->place = e->history->n;
	put_text(e, text, n, cursor);
}

void editor_flush(struct editor *e) {
	size_t before;
	do {
		before = e->in.len;
		editor_read(e);
	} while (e->in.len > before);
	if (e->in.len) drop_input(e, e->in.len);
	e->pushed = 0;
	e->stale = e->inside;
	if (!e->inside) editor_set(e, L"", 0, 0);
}

wchar_t *editor_take(struct editor *e, size_t *n) {
	wchar_t *line = e->line;
	*n = e->line_len;
	e->line = NULL;
	e->line_len = 0;
	return line;
}

const wchar_t *editor_text(struct editor *e, size_t *n, size_t *cursor, const wchar_t **search) {
	const wchar_t *text;
	*search = e->searching ? e->pattern : NULL;
	if (e->searching && e->found < e->history->n) {
		text = e->history->entries[e->found];
		*n = wcslen(text);
		const wchar_t *at = wcsstr(text, e->pattern);
		*cursor = at ? (size_t)(at - text) : *n;
		return text;
	}
	*n = text_of(e, &text);
	*cursor = cursor_of(e);
	return text;
}

bool editor_is_inside(const struct editor *e) {
	return e->inside;
}

/* --- The history -------------------------------------------------------------------------------------------------- */

static void show_place(struct editor *e, size_t place) {
	const wchar_t *text;
	size_t n = text_of(e, &text);
	if (e->place == e->history->n) {
		free(e->draft);
		e->draft = copy_text(text, n);
	}
	e->place = place;
	const wchar_t *entry = place < e->history->n ? e->history->entries[place] : e->draft ? e->draft : L"";
	size_t len = wcslen(entry);
	put_text(e, entry, len, len);
	if (e->command) process(e, L'\033');
}

/* Within several lines the keys move the cursor by one line. */
static bool move_line(struct editor *e, bool up) {
	const wchar_t *text;
	size_t n = text_of(e, &text), cursor = cursor_of(e), begin = cursor, end = cursor;
	while (begin > 0 && text[begin - 1] != '\n') begin--;
	while (end < n && text[end] != '\n') end++;
	if (up ? begin == 0 : end == n) return false;
	size_t column = cursor - begin, from = up ? begin - 1 : end + 1, to = from;
	if (up)
		while (from > 0 && text[from - 1] != '\n') from--;
	else
		while (to < n && text[to] != '\n') to++;
	el_cursor(e->el, (int)MIN(from + column, to) - (int)cursor);
	return true;
}

/* --- Functions of keys -------------------------------------------------------------------------------------------- */

static unsigned char on_enter(EditLine *el, wint_t c) {
	(void)c;
	struct editor *e = of(el);
	const wchar_t *text;
	size_t n = text_of(e, &text);
	if (n && text[n - 1] == '\\') {
		el_cursor(el, (int)(n - cursor_of(e)));
		el_deletestr(el, 1);
		el_winsertstr(el, L"\n");
		return CC_REFRESH;
	}
	free(e->line);
	e->line = copy_text(text, n);
	e->line_len = e->line ? n : 0;
	e->event = EDITOR_LINE;
	return CC_FATAL; /* resets libedit's state for a new line */
}

static unsigned char on_newline(EditLine *el, wint_t c) {
	(void)c;
	el_winsertstr(el, L"\n");
	return CC_REFRESH;
}

static unsigned char on_paste(EditLine *el, wint_t c) {
	(void)c;
	struct editor *e = of(el);
	if (e->pasted) editor_insert(e, e->pasted);
	free(e->pasted);
	e->pasted = NULL;
	return CC_REFRESH;
}

static unsigned char on_reset(EditLine *el, wint_t c) {
	(void)el;
	(void)c;
	return CC_FATAL;
}

static unsigned char on_end(EditLine *el, wint_t c) {
	(void)c;
	struct editor *e = of(el);
	const wchar_t *text;
	size_t n = text_of(e, &text);
	if (n == 0) e->event = EDITOR_END;
	if (cursor_of(e) < n) {
		el_cursor(el, 1);
		el_deletestr(el, 1);
	}
	return CC_REFRESH;
}

static unsigned char on_older(EditLine *el, wint_t c) {
	struct editor *e = of(el);
	if (!move_line(e, true)) e->wish = -1;
	e->command = c == 'k';
	return CC_REFRESH;
}

static unsigned char on_newer(EditLine *el, wint_t c) {
	struct editor *e = of(el);
	if (!move_line(e, false)) e->wish = 1;
	e->command = c == 'j';
	return CC_REFRESH;
}

static unsigned char on_search(EditLine *el, wint_t c) {
	(void)c;
	struct editor *e = of(el);
	e->searching = true;
	e->pattern_len = 0;
	e->pattern[0] = 0;
	e->found = e->history->n;
	return CC_REFRESH;
}

static unsigned char on_redraw(EditLine *el, wint_t c) {
	(void)c;
	of(el)->event = EDITOR_REDRAW;
	return CC_REFRESH;
}

static unsigned char on_complete(EditLine *el, wint_t c) {
	(void)c;
	of(el)->event = EDITOR_COMPLETE;
	return CC_REFRESH;
}

static unsigned char on_extern(EditLine *el, wint_t c) {
	(void)c;
	of(el)->event = EDITOR_EXTERN;
	return CC_REFRESH;
}

/* --- The search --------------------------------------------------------------------------------------------------- */

static void end_search(struct editor *e, bool keep) {
	const wchar_t *search;
	size_t n, cursor;
	const wchar_t *text = editor_text(e, &n, &cursor, &search);
	e->searching = false;
	if (!keep || e->found >= e->history->n) return;
	size_t found = e->found;
	free(e->draft);
	const wchar_t *draft;
	size_t len = text_of(e, &draft);
	e->draft = copy_text(draft, len);
	put_text(e, text, n, cursor);
	e->place = found;
}

static void search_key(struct editor *e, wchar_t key) {
	if (key == 0x12) { /* ^R: the next older one */
		e->found = history_find(e->history, e->found, e->pattern);
	} else if (key == 0x07) { /* ^G */
		end_search(e, false);
	} else if (key == 0x7f || key == 0x08) {
		if (e->pattern_len) e->pattern[--e->pattern_len] = 0;
		e->found = e->pattern_len ? history_find(e->history, e->history->n, e->pattern) : e->history->n;
	} else if (key >= ' ' && (key < 0x80 || key > 0x9f)) {
		if (e->pattern_len == PATTERN_MAX) return;
		e->pattern[e->pattern_len++] = key;
		e->pattern[e->pattern_len] = 0;
		size_t from = e->found < e->history->n ? e->found + 1 : e->history->n;
		size_t found = history_find(e->history, from, e->pattern);
		e->found = found == from ? e->history->n : found;
	} else { /* any other key ends it, and has its own effect */
		end_search(e, true);
		e->pushed = key;
	}
}

/* --- One key ------------------------------------------------------------------------------------------------------ */

enum editor_event editor_next(struct editor *e) {
	wchar_t key;
	if (e->inside || !next_key(e, &key)) return EDITOR_IDLE;
	if (e->searching) {
		search_key(e, key);
		return EDITOR_KEY;
	}
	e->event = EDITOR_KEY;
	e->wish = 0;
	process(e, key);
	if (e->stale) {
		e->stale = false;
		editor_set(e, L"", 0, 0);
		return EDITOR_KEY;
	}
	if (e->wish < 0 && e->place > 0) show_place(e, e->place - 1);
	if (e->wish > 0 && e->place < e->history->n) show_place(e, e->place + 1);
	if (e->event == EDITOR_LINE) e->place = e->history->n;
	return e->event;
}

/* --- Begin and end ------------------------------------------------------------------------------------------------ */

static const struct {
	const wchar_t *name;
	unsigned char (*run)(EditLine *el, wint_t c);
	const wchar_t *keys[7]; /* as in editrc(5) */
} functions[] = {
	{L"chat-enter", on_enter, {L"^J", L"^M"}},
	{L"chat-newline", on_newline, {L"\x81"}},
	{L"chat-paste", on_paste, {L"\x80"}},
	{L"chat-reset", on_reset, {L"\x82"}},
	{L"chat-end", on_end, {L"^D"}},
	{L"chat-older", on_older, {L"^P", L"\\e[A", L"\\eOA"}},
	{L"chat-newer", on_newer, {L"^N", L"\\e[B", L"\\eOB"}},
	{L"chat-search", on_search, {L"^R"}},
	{L"chat-redraw", on_redraw, {L"^L"}},
	{L"chat-complete", on_complete, {L"^I"}},
	{L"chat-extern", on_extern, {L"^X^E"}},
};

/* Keys that libedit knows by the name of terminfo only. */
static const wchar_t *const more_keys[][2] = {
	{L"\\e[H", L"ed-move-to-beg"},       {L"\\eOH", L"ed-move-to-beg"},  {L"\\e[1~", L"ed-move-to-beg"},
	{L"\\e[F", L"ed-move-to-end"},       {L"\\eOF", L"ed-move-to-end"},  {L"\\e[4~", L"ed-move-to-end"},
	{L"\\e[3~", L"ed-delete-next-char"}, {L"\\e[1;5C", L"em-next-word"}, {L"\\e[1;5D", L"ed-prev-word"},
	{L"\\e[1;3C", L"em-next-word"},      {L"\\e[1;3D", L"ed-prev-word"}, {L"\\e[C", L"ed-next-char"},
	{L"\\e[D", L"ed-prev-char"},         {L"\\eOC", L"ed-next-char"},    {L"\\eOD", L"ed-prev-char"},
};

static void bind_keys(struct editor *e) {
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		el_wset(e->el, EL_ADDFN, functions[i].name, L"of plenumctl chat", functions[i].run);
		for (size_t k = 0; functions[i].keys[k]; k++) {
			if (e->vi && functions[i].keys[k][1] == 'e') continue; /* ESC is a key of its own there */
			el_wset(e->el, EL_BIND, functions[i].keys[k], functions[i].name, NULL);
			if (e->vi) el_wset(e->el, EL_BIND, L"-a", functions[i].keys[k], functions[i].name, NULL);
		}
	}
	for (size_t i = 0; !e->vi && i < ARRAY_SIZE(more_keys); i++)
		el_wset(e->el, EL_BIND, more_keys[i][0], more_keys[i][1], NULL);
	if (e->vi) {
		el_wset(e->el, EL_BIND, L"-a", L"k", L"chat-older", NULL);
		el_wset(e->el, EL_BIND, L"-a", L"j", L"chat-newer", NULL);
	}
}

static void set_paste_mode(bool on) {
	const char *mode = on ? "\033[?2004h" : "\033[?2004l";
	fd_write_all(STDOUT_FILENO, mode, strlen(mode));
}

struct editor *editor_open(bool (*wait)(void *arg), void *arg, struct history *history) {
	struct editor *e = calloc(1, sizeof *e);
	if (!e) return NULL;
	*e = (struct editor){.wait = wait, .arg = arg, .history = history, .in = BUF_INIT(INPUT_MAX)};
	e->nowhere = fopen("/dev/null", "w");
	if (e->nowhere)
		e->el = el_init_fd("plenumctl", stdin, e->nowhere, e->nowhere, STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO);
	if (!e->el) {
		editor_close(e);
		return NULL;
	}
	const wchar_t *kind = NULL;
	el_wset(e->el, EL_CLIENTDATA, e);
	el_wset(e->el, EL_EDITOR, L"emacs");
	el_source(e->el, NULL);
	el_wget(e->el, EL_EDITOR, &kind);
	e->vi = kind && wcscmp(kind, L"vi") == 0;
	bind_keys(e);
	el_wset(e->el, EL_GETCFN, get_key);
	el_wset(e->el, EL_UNBUFFERED, 1); /* raw mode from here on */
	e->place = history->n;
	set_paste_mode(true);
	return e;
}

void editor_pause(struct editor *e) {
	set_paste_mode(false);
	el_wset(e->el, EL_PREP_TERM, 0);
}

void editor_resume(struct editor *e) {
	el_wset(e->el, EL_PREP_TERM, 1);
	set_paste_mode(true);
}

void editor_close(struct editor *e) {
	if (!e) return;
	if (e->el) {
		set_paste_mode(false);
		el_wset(e->el, EL_UNBUFFERED, 0);
		el_end(e->el);
	}
	if (e->nowhere) fclose(e->nowhere);
	buf_free(&e->in);
	free(e->pasted);
	free(e->line);
	free(e->draft);
	free(e);
}
