/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include "base/buf.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sysexits.h>
#include <time.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* The only global state: stderr is global, too. */
static struct {
	enum log_level level;
	bool json, journal;
	int journal_fd;
	unsigned long dropped;
	bool cut; /* the last written line is incomplete */
} logger = {.level = LOG_INFO, .journal_fd = -1};

static bool stderr_is_journal(void) {
	const char *want = getenv("JOURNAL_STREAM");
	struct stat st;
	char have[64];
	if (!want || fstat(STDERR_FILENO, &st) < 0) return false;
	snprintf(have, sizeof have, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return strcmp(want, have) == 0;
}

void log_setup(enum log_level level, bool json) {
	logger.level = level;
	logger.json = json;
	logger.journal = !json && stderr_is_journal();
}

void log_set_level(enum log_level level) {
	logger.level = level;
}

static const struct {
	const char *name;
	enum log_level level;
} level_names[] = {{"error", LOG_ERROR}, {"warn", LOG_WARN}, {"info", LOG_INFO}, {"debug", LOG_DEBUG}};

bool log_level_parse(const char *name, enum log_level *level) {
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++)
		if (strcmp(name, level_names[i].name) == 0) {
			*level = level_names[i].level;
			return true;
		}
	return false;
}

static const char *level_name(enum log_level level) {
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++)
		if (level_names[i].level == level) return level_names[i].name;
	return "info";
}

static void put_time(struct buf *b) {
	struct timespec now;
	struct tm tm;
	char text[40];
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	size_t n = strftime(text, sizeof text, "%F %T", &tm);
	buf_printf(b, "%.*s.%03ld", (int)n, text, now.tv_nsec / 1000000);
}

static void put_head(struct buf *b, enum log_level level) {
	if (logger.json) {
		buf_puts(b, "{\"time\":\"");
		put_time(b);
		buf_printf(b, "\",\"level\":\"%s\",\"message\":", level_name(level));
	} else if (logger.journal) {
		buf_printf(b, "<%d>", (int)level);
	} else {
		put_time(b);
		buf_printf(b, " %-5s ", level_name(level));
	}
}

static void put_message(struct buf *b, const char *text) {
	if (logger.json)
		str_put_quoted(b, text, strlen(text));
	else
		str_put_safe(b, text, strlen(text));
}

/* Writes of PIPE_BUF bytes are atomic. */
static bool is_writable(void) {
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT);
}

/* Return the number of written bytes. A blocked terminal or journal must not stop the loop. */
static size_t write_some(const char *text, size_t n) {
	size_t done = 0;
	while (done < n && is_writable()) {
		ssize_t w = write(STDERR_FILENO, text + done, MIN(n - done, (size_t)PIPE_BUF));
		if (w == 0 || (w < 0 && errno != EINTR)) break;
		if (w > 0) done += (size_t)w;
	}
	return done;
}

/* There is room again: report the lost lines in a normal line. */
static void tell_dropped(void) {
	char text[64];
	struct buf b = BUF_INIT(1024);
	snprintf(text, sizeof text, "%lu log lines were dropped", logger.dropped);
	if (logger.cut) buf_puts(&b, "\n");
	put_head(&b, LOG_WARN);
	put_message(&b, text);
	buf_puts(&b, logger.json ? "}\n" : "\n");
	if (b.failed || write_some(b.data, b.len) == b.len) {
		logger.dropped = 0;
		logger.cut = false;
	}
	buf_free(&b);
}

static void emit(const char *text, size_t n) {
	if (logger.dropped && is_writable()) tell_dropped();
	size_t done = logger.dropped ? 0 : write_some(text, n);
	if (done == n) return;
	logger.dropped++;
	logger.cut |= done > 0;
}

void log_no_memory(void) {
	static const char text[] = "out of memory: the program ends\n";
	emit(text, sizeof text - 1);
	_exit(EX_OSERR);
}

void log_write(enum log_level level, const char *func, const char *fmt, ...) {
	if (level > logger.level) return;
	int saved = errno;
	char text[2048];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	struct buf b = BUF_INIT(16384);
	put_head(&b, level);
	put_message(&b, text);
	if (logger.json)
		buf_printf(&b, ",\"function\":\"%s\"}", func);
	else if (level == LOG_DEBUG)
		buf_printf(&b, " [%s]", func);
	buf_puts(&b, "\n");
	if (b.data) emit(b.data, b.len);
	buf_free(&b);
	errno = saved;
}

/* The journal's native protocol: NAME=value lines, or NAME, LF, length (LE64), value, LF if the value has an LF. */
static void put_journal_field(struct buf *b, const char *name, const char *value) {
	for (const char *p = name; *p; p++) buf_putc(b, (char)toupper((unsigned char)*p));
	size_t n = strlen(value);
	if (!memchr(value, '\n', n)) {
		buf_printf(b, "=%s\n", value);
		return;
	}
	uint64_t len = n;
	buf_putc(b, '\n');
	buf_put(b, &len, sizeof len);
	buf_put(b, value, n);
	buf_putc(b, '\n');
}

static bool send_journal(const struct buf *b) {
	const struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET};
	if (logger.journal_fd < 0) logger.journal_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return logger.journal_fd >= 0 && sendto(logger.journal_fd, b->data, b->len, MSG_DONTWAIT | MSG_NOSIGNAL,
											(const struct sockaddr *)&to, sizeof to) >= 0;
}

static bool journal_event(enum log_level level, const char *message, const char *const *fields) {
	struct buf b = BUF_INIT(65536), safe = BUF_INIT(65536);
	char name[64];
	buf_printf(&b, "PRIORITY=%d\nSYSLOG_IDENTIFIER=plenumd\n", (int)level);
	put_message(&safe, message);
	if (safe.data) put_journal_field(&b, "MESSAGE", safe.data);
	buf_free(&safe);
	for (size_t i = 0; fields[i]; i += 2) {
		snprintf(name, sizeof name, "PLENUM_%s", fields[i]);
		put_journal_field(&b, name, fields[i + 1] ? fields[i + 1] : "");
	}
	bool ok = b.data && !b.failed && send_journal(&b);
	buf_free(&b);
	return ok;
}

static void put_field(struct buf *b, const char *name, const char *value) {
	if (logger.json) {
		buf_printf(b, ",\"%s\":", name);
		str_put_quoted(b, value, strlen(value));
		return;
	}
	buf_printf(b, " %s=", name);
	str_put_word(b, value, strlen(value));
}

void log_event(enum log_level level, const char *message, const char *const *fields) {
	if (level > logger.level) return;
	int saved = errno;
	if (!logger.journal || !journal_event(level, message, fields)) {
		struct buf b = BUF_INIT(65536);
		put_head(&b, level);
		put_message(&b, message);
		for (size_t i = 0; fields[i]; i += 2) put_field(&b, fields[i], fields[i + 1] ? fields[i + 1] : "");
		buf_puts(&b, logger.json ? "}\n" : "\n");
		if (b.data) emit(b.data, b.len);
		buf_free(&b);
	}
	errno = saved;
}
