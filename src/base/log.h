/* SPDX-License-Identifier: MIT
 *
 * Logging to stderr: `<N>` prefixes where stderr is the journal, time stamps elsewhere, one JSON object a line with
 * --log-format json. Never blocks the loop: what stderr does not take at once is dropped and counted. Keeps errno.
 * Only main, server and the layer that decides log; library layers return errors. Source: sd-daemon(3).
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>

enum log_level { LOG_ERROR = 3, LOG_WARN = 4, LOG_INFO = 6, LOG_DEBUG = 7 };

void log_setup(enum log_level level, bool json);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
bool log_level_parse(const char *name, enum log_level *level);
void log_write(enum log_level level, const char *func, const char *fmt, ...) PRINTF_LIKE(3, 4);

#define log_error(...) log_write(LOG_ERROR, __func__, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, __func__, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __func__, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __func__, __VA_ARGS__)

/* Where nothing else is left to do without memory: says so and exits with EX_OSERR. A daemon finds its sessions again.
 */
_Noreturn void log_no_memory(void);

/* A structured line: a sentence and fields (name, value, name, value, NULL). Under the journal the fields go through
 * its native socket as PLENUM_NAME=value; with --log-format json they are members; else they follow as name=value. */
void log_event(enum log_level level, const char *message, const char *const *fields);
