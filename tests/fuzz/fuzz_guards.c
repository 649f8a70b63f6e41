/* SPDX-License-Identifier: MIT
 *
 * Guards on their way to the table of sessions and back. Input that begins with H is the `hooks` of an initialize: what
 * is accepted comes back exactly. Any other input is a text of the table: the guards in it are restored, and are then
 * the same after another save; or the session has the stand-in that refuses every tool.
 */
#include "base/buf.h"
#include "core/guards.h"
#include "dialect/claude/claude.h"
#include "dialect/claude/message.h"
#include "target.h"

#include <string.h>

static struct loop *loop;

static void on_grace(void *arg) {
	(void)arg;
}

static char *text_of(const struct registry *r) {
	char *text;
	INSIST(guards_text(r, &text));
	return text;
}

/* A registry that was saved and restored is the same. */
static void comes_back(const struct registry *r) {
	struct registry other;
	char *text = text_of(r);
	if (!text) return;
	registry_init(&other, claude_dialect.hooks);
	INSIST(guards_restore(&other, NULL, loop, text, on_grace));
	char *again = text_of(&other);
	INSIST(again && strcmp(text, again) == 0);
	registry_free(&other);
	free(text);
	free(again);
}

static void try_hooks(const uint8_t *data, size_t size) {
	struct buf line = BUF_INIT(SIZE_MAX / 4);
	struct registry r;
	struct envelope e;
	const char *error;
	size_t at;
	buf_puts(&line,
			 "{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{\"subtype\":\"initialize\",\"hooks\":");
	buf_put(&line, data, size);
	buf_puts(&line, "}}");
	INSIST(!line.failed);
	registry_init(&r, claude_dialect.hooks);
	struct owner *o = registry_add_owner(&r, NULL, loop, (void *)&r, 1000, "na\"me", on_grace);
	INSIST(o);
	if (!memchr(data, '\n', size) && message_scan(line.data, line.len, &e, &error, &at) &&
		!registry_set_hooks(&r, o, span_member(e.request, "hooks"))) {
		char *text = text_of(&r);
		INSIST(!guards_lost(&r) && !text == !owner_guards(o));
		free(text);
		comes_back(&r);
	}
	registry_free(&r);
	buf_free(&line);
}

static void try_text(const uint8_t *data, size_t size) {
	struct registry r;
	char *text = malloc(size + 1);
	INSIST(text);
	memcpy(text, data, size);
	text[size] = 0;
	registry_init(&r, claude_dialect.hooks);
	bool ok = guards_restore(&r, NULL, loop, text, on_grace);
	INSIST(registry_guards(&r) && (ok || guards_lost(&r)));
	comes_back(&r);
	if (!ok) {
		INSIST(guards_clear(&r) && !guards_lost(&r));
		comes_back(&r);
	}
	registry_free(&r);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	if (!loop) loop = loop_new();
	INSIST(loop);
	if (size && *data == 'H')
		try_hooks(data + 1, size - 1);
	else
		try_text(data, size);
	return 0;
}
