/* SPDX-License-Identifier: MIT
 *
 * The scanner against the plain byte loop, every span function on what it found, and the names of the daemon in a line
 * of the child.
 */
#include "dialect/envelope.h"
#include "plenum/protocol.h"
#include "reference.h"
#include "target.h"
#include "wire/disown.h"
#include "wire/scan.h"

#include <strings.h>

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

static bool has_name(struct span string) {
	_cleanup_free_ char *text = span_is_string(string) ? span_dup(string, NULL) : NULL;
	return text && strncasecmp(text, "plenum_", 7) == 0;
}

static bool is_key(struct span key, const char *name) {
	_cleanup_free_ char *text = span_dup(key, NULL);
	return text && strcmp(text, name) == 0;
}

static bool names_subtype(struct span object) {
	struct span key, value;
	for (size_t at = 0; span_next_member(object, &at, &key, &value);)
		if (is_key(key, "subtype") && has_name(value)) return true;
	return false;
}

/* What a client that reads the whole line would take for the daemon's, duplicates and escapes included. */
static bool names_daemon(struct chunk line) {
	const char *brace = memchr(line.data, '{', line.len);
	struct span all = {brace, line.len - (size_t)(brace - line.data)}, key, value;
	if (names_subtype(all)) return true;
	for (size_t at = 0; span_next_member(all, &at, &key, &value);)
		if (has_name(key) || (is_key(key, "request") && names_subtype(value))) return true;
	return false;
}

/* Nothing but the prefix was put in. */
static void insist_on_bytes(struct chunk line, struct chunk out) {
	size_t i = 0, k = 0, n = sizeof PLENUM_CHILD_PREFIX - 1;
	while (k < out.len) {
		bool same = i < line.len && line.data[i] == out.data[k];
		bool put = out.len - k >= n && k && out.data[k - 1] == '"' &&
				   memcmp(out.data + k, PLENUM_CHILD_PREFIX, n) == 0 &&
				   !(line.len - i >= n && memcmp(line.data + i, PLENUM_CHILD_PREFIX, n) == 0);
		INSIST(put || same);
		if (put) {
			k += n;
		} else {
			i++;
			k++;
		}
	}
	INSIST(i == line.len);
}

static void disown(struct chunk line, const struct envelope *e) {
	struct envelope after;
	struct chunk out = disown_line(line), again = disown_line(out), answer = disown_answer(out, true);
	INSIST(out.data && !names_daemon(out) && scan_envelope(out.data, out.len, &after));
	INSIST(again.data == out.data && again.len == out.len);
	if (out.data != line.data) INSIST(e->reserved);
	if (!names_daemon(line) && !e->reserved) INSIST(out.data == line.data && out.len == line.len);
	insist_on_bytes(line, out);
	insist_on_bytes(out, answer);
	chunk_drop(&answer);
	chunk_drop(&again);
	chunk_drop(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct envelope e, plain, narrow;
	const char *p = (const char *)data;
	bool ok = scan_envelope(p, size, &e);
	INSIST(ok == ref_envelope(p, size, &plain) && ok == scan_envelope_plain(p, size, &narrow));
	INSIST(!ref_measured(p, size, 1, 1, ok, &plain) && !ref_measured(p, size, 7, 9, ok, &plain));
	use((struct span){p, size}); /* spans that are not balanced must do no harm either */
	if (!ok) return 0;
	INSIST(!ref_difference(&e, &plain) && !ref_difference(&narrow, &plain) && e.reserved == narrow.reserved);
	disown((struct chunk){NULL, p, size}, &e);
	const struct span all[] = {e.type,       e.request, e.response,       e.message,
							   e.request_id, e.uuid,    e.inner_response, e.inner_subtype};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) use(all[i]);
	return 0;
}
