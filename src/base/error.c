/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <stdio.h>

bool error_vset(struct error *e, const char *fmt, va_list ap) {
	vsnprintf(e->text, sizeof e->text, fmt, ap); /* cppcheck-suppress ctuuninitvar ; it is filled here */
	return false;
}

bool error_set(struct error *e, const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	error_vset(e, fmt, ap);
	va_end(ap);
	return false;
}
