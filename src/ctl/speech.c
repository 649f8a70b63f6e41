/* SPDX-License-Identifier: MIT */
#include "ctl/speech.h"

#include "base/str.h"
#include "dialect/jsonrpc.h"

void speech_read(const struct speech *speech, const char *p, size_t n, struct incoming *in) {
	*in = (struct incoming){.speech = speech, .line = {p, n}};
	if (!speech->scan(p, n, &in->e))
		in->e = (struct envelope){0};
	else
		in->notice = speech->notice(in);
}

bool speech_next(const struct incoming *in, size_t *at, struct speech_fact *f) {
	*f = (struct speech_fact){0};
	return in->speech->next(in, at, f);
}

bool speech_find(const struct incoming *in, enum speech_kind kind, struct speech_fact *f) {
	for (size_t at = 0; speech_next(in, &at, f);)
		if (f->kind == kind) return true;
	return false;
}

void speech_put_form(struct buf *b, const struct speech_ask *ask, const struct speech_decision *d) {
	bool filled = d->allow && (d->input || span_is_object(ask->schema));
	char *values = d->input ? json_dumps(d->input, JSON_COMPACT) : NULL;
	buf_printf(b, "{\"action\":\"%s\"", d->allow ? "accept" : d->cancel ? "cancel" : "decline");
	if (filled) buf_printf(b, ",\"content\":%s", values ? values : "{}");
	b->failed |= d->input && !values;
	buf_putc(b, '}');
	free(values);
}

struct span speech_rpc_notice(const struct incoming *in) {
	return span_equals(in->e.type, JSONRPC_EVENT) ? in->e.request : SPAN_NONE;
}

void speech_rpc_error(const struct incoming *in, struct span *code, struct span *text) {
	*code = span_member(span_member(in->e.is_error, "data"), "code");
	*text = span_member(in->e.is_error, "message");
}

void speech_rpc_put_answer(struct buf *b, const char *head, const struct speech_ask *ask) {
	buf_printf(b, "%s\"id\":", head);
	buf_put(b, ask->id.p, ask->id.n);
	buf_puts(b, ",\"result\":");
}

enum plenum_result speech_rpc_prompt(struct plenum *p, struct buf *line, const char *text, size_t n) {
	str_put_json(line, text, n);
	buf_puts(line, "}]}}");
	enum plenum_result r = line->failed ? PLENUM_FULL : plenum_send(p, line->data, line->len);
	buf_free(line);
	return r;
}
