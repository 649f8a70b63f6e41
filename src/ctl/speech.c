/* SPDX-License-Identifier: MIT */
#include "ctl/speech.h"

#include "base/macros.h"

#include <string.h>

const struct speech *speech_named(const char *dialect) {
	static const struct speech *const all[] = {&speech_claude, &speech_acp, &speech_codex};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (strcmp(all[i]->dialect, dialect) == 0) return all[i];
	return NULL;
}

const struct speech *speech_of(const struct plenum *p) {
	return speech_named(plenum_dialect(p));
}

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
