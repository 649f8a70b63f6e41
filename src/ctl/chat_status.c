/* SPDX-License-Identifier: MIT
 *
 * The status line: the reason for the wait. Source of the lines: docs/protocol-facts.md 2.
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

static void learn_stream(struct chat *ch, struct span line) {
	struct span event = span_member(line, "event"), block = span_member(event, "content_block");
	if (span_equals(span_member(event, "type"), "message_start")) set_doing(ch, DOING_WAIT, NULL);
	if (!span_equals(span_member(event, "type"), "content_block_start")) return;
	bool think = span_equals(span_member(block, "type"), "thinking") ||
				 span_equals(span_member(block, "type"), "redacted_thinking");
	set_doing(ch, think ? DOING_THINK : DOING_WRITE, NULL);
}

/* The last tool that is called counts: others run beside it. */
static void learn_tools(struct chat *ch, struct span message) {
	struct span content = span_member(message, "content"), block;
	size_t at = 0;
	while (span_is_array(content) && span_next(content, &at, &block))
		if (span_equals(span_member(block, "type"), "tool_use"))
			set_doing(ch, DOING_TOOL, show_tool(span_member(block, "name"), span_member(block, "input"), TOOL_CHARS));
}

void chat_status_line(struct chat *ch, const struct incoming *in) {
	const struct envelope *e = &in->e;
	if (span_is_string(e->parent_tool_use_id)) return; /* of a subagent: its tool is what runs */
	if (span_equals(e->type, "stream_event")) learn_stream(ch, in->line);
	if (span_equals(e->type, "assistant")) learn_tools(ch, e->message);
	if (span_equals(e->type, "user") || span_equals(e->type, "result")) set_doing(ch, DOING_WAIT, NULL);
	if (span_equals(e->type, "system") && span_equals(e->subtype, "status"))
		set_doing(ch, span_equals(span_member(in->line, "status"), "compacting") ? DOING_COMPACT : ch->doing,
				  ch->doing == DOING_TOOL ? str_dup(ch->tool) : NULL);
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
