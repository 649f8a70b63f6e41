/* SPDX-License-Identifier: MIT
 *
 * Logging to stderr: `<N>` prefixes if stderr is the journal, else time stamps; one JSON object per line with
 * --log-format json. Never blocks: a line that stderr does not accept at once is dropped and counted. Keeps errno.
 * Only main, server and the deciding layer log; library layers return errors. Source: sd-daemon(3).
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>

enum log_level { LOG_ERROR = 3, LOG_WARN = 4, LOG_INFO = 6, LOG_DEBUG = 7 };

void log_setup(enum log_level level, bool json);
void log_set_level(enum log_level level);
bool log_level_parse(const char *name, enum log_level *level);
void log_write(enum log_level level, const char *func, const char *fmt, ...) PRINTF_LIKE(3, 4);

#define log_error(...) log_write(LOG_ERROR, __func__, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, __func__, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __func__, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __func__, __VA_ARGS__)

/* The last resort without memory: log and exit with EX_OSERR. The next daemon finds the sessions again. */
_Noreturn void log_no_memory(void);

/* Log a message with fields (name, value, name, value, NULL). With the journal the fields are sent to its native socket
 * as PLENUM_NAME=value; with --log-format json they are members; else they follow as name=value. */
void log_event(enum log_level level, const char *message, const char *const *fields);
