/* SPDX-License-Identifier: MIT
 *
 * The scanner against the plain byte loop, and every span function on what it found.
 */
#include "reference.h"
#include "target.h"
#include "wire/scan.h"

static void walk(struct span s) {
	struct span key, value;
	size_t at = 0, before = 0, n = 0;
	for (; span_next(s, &at, &value); n++, before = at) {
		INSIST(at > before && value.n > 0 && value.p >= s.p && value.p + value.n <= s.p + s.n);
		if (n < 3) INSIST(span_same(span_element(s, n), value));
	}
	for (at = before = 0; span_next_member(s, &at, &key, &value); before = at)
		INSIST(at > before && span_is_string(key) && value.p >= key.p + key.n && value.p + value.n <= s.p + s.n);
}

static void use(struct span s) {
	int64_t number;
	size_t len;
	if (!s.p) return;
	walk(s);
	span_member(s, "subtype");
	span_int(s, &number);
	span_is_true(s);
	INSIST(!span_content(s).p || span_content(s).n + 2 == s.n);
	char *text = span_dup(s, &len);
	INSIST(!text || strlen(text) == len);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct envelope e, plain, narrow;
	const char *p = (const char *)data;
	bool ok = scan_envelope(p, size, &e);
	INSIST(ok == ref_envelope(p, size, &plain) && ok == scan_envelope_plain(p, size, &narrow));
	use((struct span){p, size}); /* spans that are not balanced must do no harm either */
	if (!ok) return 0;
	INSIST(!ref_difference(&e, &plain) && !ref_difference(&narrow, &plain));
	const struct span all[] = {e.type,       e.request, e.response,       e.message,
							   e.request_id, e.uuid,    e.inner_response, e.inner_subtype};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) use(all[i]);
	return 0;
}
