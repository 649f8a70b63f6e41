/* SPDX-License-Identifier: MIT */
#include "fakeagent/faults.h"

#include <string.h>

#define NUMBER(name, field, value)                                                                                     \
	{ name, offsetof(struct faults, field), value, false }
#define SWITCH(name, field)                                                                                            \
	{ name, offsetof(struct faults, field), 0, true }

static const struct fault {
	const char *name;
	size_t at;
	long usual; /* where no number is given */
	bool is_switch;
} FAULTS[] = {
	NUMBER("partial", partial, 7),
	NUMBER("huge", huge, 5L * 1024 * 1024),
	NUMBER("garbage", garbage, 1),
	NUMBER("stderr", noise, 300),
	NUMBER("flood", flood, 100000),
	NUMBER("close-stdout", close_stdout, 0),
	NUMBER("deaf", deaf, 0),
	NUMBER("die", die, 3),
	NUMBER("start-exit", start_exit, 1),
	NUMBER("start-delay", start_delay, 500),
	NUMBER("late", late, 500),
	NUMBER("split", split, 146L * 1024),
	SWITCH("ignore-sigterm", ignore_sigterm),
	SWITCH("ignore-eof", ignore_eof),
	SWITCH("grandchild", grandchild),
	SWITCH("mute", mute),
	SWITCH("no-newline", no_newline),
	SWITCH("no-result", no_result),
};

void faults_init(struct faults *f) {
	memset(f, 0, sizeof *f);
	for (size_t i = 0; i < ARRAY_SIZE(FAULTS); i++) {
		long off = -1;
		if (!FAULTS[i].is_switch) memcpy((char *)f + FAULTS[i].at, &off, sizeof off);
	}
}

bool faults_set(struct faults *f, const char *text) {
	size_t n = strcspn(text, "=");
	for (size_t i = 0; i < ARRAY_SIZE(FAULTS); i++) {
		const struct fault *d = &FAULTS[i];
		if (strlen(d->name) != n || memcmp(d->name, text, n) != 0) continue;
		long value = text[n] ? strtol(text + n + 1, NULL, 10) : d->usual;
		bool on = true;
		if (d->is_switch)
			memcpy((char *)f + d->at, &on, sizeof on);
		else
			memcpy((char *)f + d->at, &value, sizeof value);
		return true;
	}
	return false;
}
