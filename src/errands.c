/* SPDX-License-Identifier: MIT */
#include "errands.h"

#include "config/config.h"
#include "core/descent.h"
#include "core/launch.h"
#include "core/login.h"
#include "core/rules.h"
#include "core/session.h"

#include <string.h>
#include <sysexits.h>

static const struct {
	const char *kind;
	int (*run)(void);
} errands[] = {
	{CONFIG_ERRAND, config_errand},
	{LAUNCH_ERRAND, launch_errand},
	{SESSION_LEFT_ERRAND, session_left_errand},
	{LOGIN_ERRAND, login_errand},
	{RULES_ERRAND, rules_errand},
	{PROGRAM_ERRAND, login_program_errand},
	{DESCENT_ERRAND, descent_errand},
	{DESCENT_NAMES_ERRAND, descent_names_errand},
};

int errands_run(const char *kind) {
	for (size_t i = 0; i < ARRAY_SIZE(errands); i++)
		if (strcmp(errands[i].kind, kind) == 0) return errands[i].run();
	return EX_USAGE;
}
