/* SPDX-License-Identifier: MIT
 *
 * Input of the user: prompts, answers, and the commands of chat itself.
 */
#include "base/fd.h"
#include "base/str.h"
#include "ctl/chat.h"
#include "ctl/wtext.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ECHO_LINES 40 /* of a prompt that stay on the screen */

/* --- Prompts ------------------------------------------------------------------------------------------------------ */

/* Without an editor; the editor's prompt is a part of the screen's end. */
void chat_prompt_sign(struct chat *ch) {
	if (ch->editor || !ch->terminal || ch->waiting || ch->busy || chat_question(ch) || ch->show.sign) return;
	show_break(&ch->show);
	fputs(ch->show.color ? "\033[1m> \033[0m" : "> ", ch->show.out);
	ch->show.mid_line = ch->show.sign = true;
}

/* False: it was not sent. */
static bool send_prompt(struct chat *ch, const char *text, size_t n) {
	if (!ch->p || *ch->attach) return false;
	str_uuid(ch->turn.uuid);
	enum plenum_result r = ch->speech->prompt(ch->p, text, n, ch->turn.uuid);
	if (r != PLENUM_OK) {
		if (!ch->terminal) ch->code = ctl_failed(ch->p, r);
		return false;
	}
	ch->waiting = true;
	free(ch->sent);
	ch->sent = malloc(n + 1);
	ch->sent_len = n;
	if (ch->sent) memcpy(ch->sent, text, n);
	memcpy(ch->own[ch->n_own++ % CHAT_OWN_UUIDS], ch->turn.uuid, PLENUM_UUID_SIZE);
	return true;
}

/* --- Without an editor -------------------------------------------------------------------------------------------- */

/* A prompt is all of the n bytes; an answer has no NUL in it. */
static void take_line(struct chat *ch, const char *text, size_t n) {
	if (!ch->terminal) show_break(&ch->show);
	ch->show.mid_line = ch->show.sign = false; /* Enter ended the line */
	if (chat_question(ch))
		chat_question_answer(ch, text);
	else if (ch->terminal && strcmp(text, "/more") == 0 && show_more(&ch->show))
		chat_prompt_sign(ch);
	else if (n == 0)
		chat_prompt_sign(ch);
	else if (!send_prompt(ch, text, n) && ch->code == CTL_GO)
		show_note(&ch->show, SHOW_RED, "not sent: the daemon is away");
}

/* May the next line be taken now? A person may type ahead; a script's lines are taken one at a time. */
bool chat_typed_wanted(const struct chat *ch) {
	return ch->terminal || !list_empty(&ch->questions) || !ch->waiting;
}

bool chat_typed_line(struct chat *ch) {
	char *end = ch->input.len ? memchr(ch->input.data, '\n', ch->input.len) : NULL;
	if (!end && ch->input_ended && ch->input.len) end = ch->input.data + ch->input.len; /* NUL-terminated there */
	if (!end || !chat_typed_wanted(ch)) return false;
	size_t n = (size_t)(end - ch->input.data), used = MIN(n + 1, ch->input.len);
	if (n && ch->input.data[n - 1] == '\r') n--;
	_cleanup_free_ char *text = calloc(n + 1, 1);
	if (text) memcpy(text, ch->input.data, n);
	memmove(ch->input.data, ch->input.data + used, ch->input.len - used + 1);
	ch->input.len -= used;
	if (text) take_line(ch, text, n);
	return true;
}

void chat_typed_read(struct chat *ch) {
	char part[65536];
	if (ch->editor) {
		if (!editor_read(ch->editor)) ch->input_ended = true;
		return;
	}
	ssize_t n = fd_read(STDIN_FILENO, part, sizeof part);
	if (n > 0)
		buf_put(&ch->input, part, (size_t)n);
	else
		ch->input_ended = true;
}

/* --- With an editor ----------------------------------------------------------------------------------------------- */

void chat_swap_draft(struct chat *ch) {
	bool asking = chat_question(ch) != NULL;
	const wchar_t *search;
	size_t n;
	if (asking == ch->asking || editor_is_inside(ch->editor)) return;
	ch->asking = asking;
	if (asking) {
		const wchar_t *text = editor_text(ch->editor, &n, &ch->draft_cursor, &search);
		ch->draft = calloc(n + 1, sizeof *ch->draft);
		ch->draft_len = ch->draft ? n : 0;
		if (ch->draft) wmemcpy(ch->draft, text, n);
		editor_set(ch->editor, L"", 0, 0);
		return;
	}
	editor_set(ch->editor, ch->draft ? ch->draft : L"", ch->draft_len, MIN(ch->draft_cursor, ch->draft_len));
	free(ch->draft);
	ch->draft = NULL;
	ch->draft_len = 0;
}

/* The typed text stays on the screen, as output. */
static void print_typed(struct chat *ch, const char *prompt, const char *text, size_t n) {
	const char *end = memchr(text, '\n', n);
	size_t first = end ? (size_t)(end - text) : n;
	show_note(&ch->show, SHOW_BOLD, "%s%.*s", prompt, (int)first, text);
	ch->show.keeps = false; /* of the output of tools only */
	if (end) show_lines(&ch->show, SHOW_BOLD, 2, end + 1, n - first - 1, ECHO_LINES);
	ch->show.keeps = true;
}

/* A command of chat itself. False: it is none. */
static bool take_command(struct chat *ch, const char *text) {
	if (strcmp(text, "/more") == 0) {
		if (!show_more(&ch->show)) show_note(&ch->show, SHOW_DIM, "  nothing was left out");
	} else if (strncmp(text, "/edit", 5) == 0 && (!text[5] || text[5] == ' ' || text[5] == '\n')) {
		_cleanup_wide_ wchar_t *rest = wtext_from(text + 5 + (text[5] != 0), strlen(text + 5 + (text[5] != 0)), NULL);
		if (rest) editor_set(ch->editor, rest, wcslen(rest), wcslen(rest));
		chat_extern(ch);
	} else {
		return false;
	}
	return true;
}

static void take_edited(struct chat *ch) {
	size_t n, len = 0;
	const char *prompt = chat_ask_prompt(ch);
	_cleanup_wide_ wchar_t *line = editor_take(ch->editor, &n);
	_cleanup_free_ char *text = line ? wtext_to(line, n, &len) : NULL;
	if (!text) return;
	if (ch->asking) {
		print_typed(ch, prompt, text, chat_ask_is_secret(ch) ? 0 : len);
		chat_question_answer(ch, text);
		return;
	}
	if (len == 0) return;
	history_add(&ch->history, line, n);
	editor_set(ch->editor, L"", 0, 0);
	if (take_command(ch, text)) return;
	if (send_prompt(ch, text, len)) {
		print_typed(ch, prompt, text, len);
	} else {
		show_note(&ch->show, SHOW_RED, "  not sent: the daemon is away");
		editor_set(ch->editor, line, n, n);
	}
}

void chat_typed(struct chat *ch) {
	while (ch->code == CTL_GO && !ch->input_ended) {
		chat_swap_draft(ch);
		switch (editor_next(ch->editor)) {
		case EDITOR_IDLE:
			return;
		case EDITOR_KEY:
			break;
		case EDITOR_LINE:
			take_edited(ch);
			break;
		case EDITOR_END:
			ch->input_ended = true;
			break;
		case EDITOR_REDRAW:
			screen_clear(&ch->screen);
			break;
		case EDITOR_COMPLETE:
			if (!ch->asking) chat_complete(ch);
			break;
		case EDITOR_EXTERN:
			chat_extern(ch);
			break;
		}
	}
}
