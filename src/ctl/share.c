/* SPDX-License-Identifier: MIT */
#include "ctl/share.h"

#include "ctl/column.h"

size_t share_lines(json_t *shares) {
	size_t n = json_array_size(shares);
	return n > 1 ? n + 3 : 0;
}

void share_print(json_t *shares) {
	static const struct column columns[] = {
		{"UID", "uid", COLUMN_NUMBER},
		{"SESSIONS", "sessions", COLUMN_NUMBER},
		{"CONNECTIONS", "clients", COLUMN_NUMBER},
		{"HELD", "bytes", COLUMN_SIZE},
		{"REQUESTS", "requests", COLUMN_NUMBER},
	};
	if (share_lines(shares)) column_print(shares, "shares", columns, ARRAY_SIZE(columns));
}
