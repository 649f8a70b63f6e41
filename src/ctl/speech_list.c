/* SPDX-License-Identifier: MIT
 *
 * The protocols that plenumctl knows. Above them: they use the rest of speech.h.
 */
#include "base/macros.h"
#include "ctl/speech.h"

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
