/* SPDX-License-Identifier: MIT
 *
 * The status line: the reason for the wait.
 */
#include "base/fd.h"
#include "base/str.h"
#include "ctl/chat.h"
#include "ctl/text.h"

#include <stdio.h>
#include <string.h>

#define TOOL_CHARS 60

static void set_doing(struct chat *ch, enum doing doing, char *tool) {
	if (ch->doing != doing || tool) ch->since = now_ms();
	ch->doing = doing;
	free(ch->tool);
	ch->tool = tool;
}

/* The last tool that is called counts: others run beside it. */
void chat_status_fact(struct chat *ch, const struct speech_fact *f) {
	if (f->nested) return; /* its tool is what runs */
	switch (f->kind) {
	case SPEECH_CALL:
		set_doing(ch, DOING_TOOL, show_tool(f->name, f->input, TOOL_CHARS));
		break;
	case SPEECH_THINKS:
		set_doing(ch, DOING_THINK, NULL);
		break;
	case SPEECH_WRITES:
	case SPEECH_PIECE:
		set_doing(ch, DOING_WRITE, NULL);
		break;
	case SPEECH_COMPACTS:
		set_doing(ch, DOING_COMPACT, NULL);
		break;
	case SPEECH_MESSAGE:
	case SPEECH_RESULT:
	case SPEECH_ECHO:
	case SPEECH_END:
		set_doing(ch, DOING_WAIT, NULL);
		break;
	default:
		break;
	}
}

void chat_status_state(struct chat *ch, struct span state) {
	struct span text = span_content(state);
	bool slept = strcmp(ch->state, PLENUM_ST_ASLEEP) == 0;
	if (!text.p) return;
	snprintf(ch->state, sizeof ch->state, "%.*s", (int)text.n, text.p);
	if (strcmp(ch->state, PLENUM_ST_STARTING) == 0) ch->woken = slept;
	ch->busy = strcmp(ch->state, PLENUM_ST_BUSY) == 0 || strcmp(ch->state, PLENUM_ST_ASKING) == 0;
	if (ch->doing != DOING_TOOL) ch->since = now_ms();
}

static const char *doing_words(const struct chat *ch) {
	switch (ch->doing) {
	case DOING_TOOL:
		return ch->tool ? ch->tool : "a tool";
	case DOING_THINK:
		return "thinking";
	case DOING_WRITE:
		return "writing";
	case DOING_COMPACT:
		return "compacting the conversation";
	default:
		return "waiting for the agent";
	}
}

char *chat_status_text(const struct chat *ch) {
	const char *words = NULL;
	int64_t since = ch->since;
	if (!ch->p || *ch->attach) {
		words = "the daemon is away; trying again";
		since = ch->lost_at;
	} else if (!list_empty(&ch->questions)) {
		return NULL; /* the question says it */
	} else if (strcmp(ch->state, PLENUM_ST_STARTING) == 0) {
		words = ch->woken ? "waking the agent" : "starting the agent";
	} else if (strcmp(ch->state, PLENUM_ST_ASKING) == 0) {
		words = "waiting for a person's answer elsewhere";
	} else if (strcmp(ch->state, PLENUM_ST_BUSY) == 0) {
		words = doing_words(ch);
	} else if (ch->waiting) {
		words = strcmp(ch->state, PLENUM_ST_ASLEEP) == 0 ? "waking the agent" : "waiting for the agent";
	}
	return words ? str_printf("... %s, %lld s", words, (long long)((now_ms() - since) / 1000)) : NULL;
}
