/* SPDX-License-Identifier: MIT
 *
 * The check of clients' lines: whatever is taken is JSON for jansson too (where jansson can read it at all), both
 * scanners read it alike, and what is rewritten is taken as it is the second time.
 */
#include "base/str.h"
#include "dialect/claude/message.h"
#include "reference.h"
#include "target.h"
#include "wire/valid.h"

#include <jansson.h>

/* jansson takes more only where a NUL byte follows (it stops there), and less only in known places: lone surrogates,
 * NUL in keys, numbers, its depth. */
static void against_jansson(const char *p, size_t n, bool ok) {
	json_error_t error;
	json_t *root = json_loadb(p, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	enum json_error_code code = root ? json_error_unknown : json_error_code(&error);
	json_decref(root);
	if (root) INSIST(ok || memchr(p, 0, n));
	if (!ok || root) return;
	INSIST(code == json_error_invalid_syntax || code == json_error_numeric_overflow ||
		   code == json_error_null_byte_in_key || code == json_error_stack_overflow ||
		   code == json_error_null_character);
	if (code == json_error_invalid_syntax) INSIST(memmem(p, n, "\\u", 2) != NULL);
}

static void again(const char *p, size_t n) {
	struct message m;
	struct chunk rewritten;
	struct span id;
	struct error error;
	INSIST(message_check(p, n, &m, &rewritten, &error, &id));
	INSIST(!rewritten.data);
}

static void check_line(const char *p, size_t n) {
	struct message m;
	struct chunk rewritten;
	struct span id;
	struct envelope plain;
	struct error error = {""};
	bool ok = message_check(p, n, &m, &rewritten, &error, &id);
	INSIST(ok || error.text[0]);
	INSIST(ok || !rewritten.data);
	if (ok && !rewritten.data && m.env.request_id.p != m.env.inner_request_id.p) {
		INSIST(ref_envelope(p, n, &plain));
		INSIST(!ref_difference(&m.env, &plain));
	}
	if (rewritten.data) again(rewritten.data, rewritten.len);
	chunk_drop(&rewritten);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const char *error = NULL, *p = (const char *)data;
	size_t at = 0;
	bool ok = valid_json(p, size, &error, &at);
	INSIST(ok || (error && at <= size));
	against_jansson(p, size, ok);
	check_line(p, size);
	struct buf quoted = BUF_INIT(SIZE_MAX / 2);
	str_put_json(&quoted, (const char *)p, size);
	INSIST(!quoted.failed && valid_json(quoted.data, quoted.len, &error, &at));
	buf_free(&quoted);
	return 0;
}
