/* SPDX-License-Identifier: MIT */
#include "fakeagent/faults.h"

#include <stdlib.h>
#include <string.h>

/* Stringified in the table's own macro: `stderr` is also a macro of stdio.h. */
#define ROW(name, number) {#name, number, -1},
static struct {
	const char *name;
	long usual, value;
} table[] = {FAULTS(ROW)};

static bool is_named(const char *name, const char *text, size_t n) {
	if (strlen(name) != n) return false;
	for (size_t i = 0; i < n; i++)
		if (name[i] != (text[i] == '-' ? '_' : text[i])) return false;
	return true;
}

bool faults_set(const char *text) {
	size_t n = strcspn(text, "=");
	for (int i = 0; i < FAULTS_COUNT; i++) {
		if (!is_named(table[i].name, text, n)) continue;
		table[i].value = text[n] ? strtol(text + n + 1, NULL, 10) : table[i].usual;
		return true;
	}
	return false;
}

long faults_get(enum fault fault) {
	return table[fault].value;
}

bool faults_has(enum fault fault) {
	return table[fault].value > 0;
}
