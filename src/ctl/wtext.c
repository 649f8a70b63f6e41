/* SPDX-License-Identifier: MIT */
#include "ctl/wtext.h"

#include "base/buf.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

wchar_t *wtext_from(const char *text, size_t n, size_t *len) {
	wchar_t *wide = malloc((n + 1) * sizeof *wide);
	size_t out = 0;
	if (!wide) return NULL;
	for (size_t i = 0, used; i < n; i += MAX(used, (size_t)1)) {
		used = str_utf8(text + i, n - i);
		wide[out++] = used == 0 ? 0xfffd : text[i] ? (wchar_t)str_char(text + i, used) : 0x2400;
	}
	wide[out] = 0;
	if (len) *len = out;
	return wide;
}

char *wtext_to(const wchar_t *text, size_t n, size_t *len) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	mbstate_t state = {0};
	char bytes[16]; /* MB_LEN_MAX */
	buf_puts(&b, "");
	for (size_t i = 0; i < n; i++) {
		size_t used = wcrtomb(bytes, text[i], &state); /* main() set a locale with UTF-8 */
		if (used != (size_t)-1) buf_put(&b, bytes, used);
	}
	return buf_steal(&b, len);
}

size_t wtext_columns(wchar_t c, size_t column) {
	if (c == '\t') return 8 - column % 8;
	if (c < ' ' || c == 0x7f) return 2;
	int width = wcwidth(c);
	return width < 0 ? 1 : (size_t)width;
}
