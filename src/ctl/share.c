/* SPDX-License-Identifier: MIT */
#include "ctl/share.h"

#include "ctl/text.h"

static void add_share(struct table *t, json_t *one) {
	struct buf held = BUF_INIT(100);
	text_put_bytes(&held, (uint64_t)MAX(ctl_int(one, "bytes", 0), 0));
	table_addf(t, "%lld", (long long)ctl_int(one, "uid", -1));
	table_addf(t, "%lld", (long long)ctl_int(one, "sessions", 0));
	table_addf(t, "%lld", (long long)ctl_int(one, "clients", 0));
	table_add(t, held.data ? held.data : "?");
	table_addf(t, "%lld", (long long)ctl_int(one, "requests", 0));
	buf_free(&held);
}

size_t share_lines(json_t *shares) {
	size_t n = json_array_size(shares);
	return n > 1 ? n + 3 : 0;
}

void share_print(json_t *shares) {
	static const char *const head[] = {"UID", "SESSIONS", "CONNECTIONS", "HELD", "REQUESTS"};
	if (share_lines(shares)) ctl_print_list(shares, "shares", head, ARRAY_SIZE(head), add_share);
}
