/* SPDX-License-Identifier: MIT */
#include "shim/print.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "dialect/envelope.h"
#include "shim/pump.h"
#include "wire/scan.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROMPT_MAX ((size_t)64 * 1024 * 1024)
#define INPUT_WAIT 3000 /* ms for the first byte of standard input beside a prompt, as in the CLI */

static int failed(const char *what) {
	fprintf(stderr, "plenum-shim: %s: %s\n", what, strerror(errno));
	return 1;
}

/* Append standard input, if a program or a file is behind it. False: it is too long, or cannot be read. */
static bool add_input(struct buf *prompt) {
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	char block[16384];
	ssize_t n = 0;
	if (isatty(STDIN_FILENO) || poll(&p, 1, prompt->len ? INPUT_WAIT : -1) <= 0) return true;
	bool first = prompt->len > 0;
	while ((n = fd_read(STDIN_FILENO, block, sizeof block)) > 0) {
		if (first) buf_putc(prompt, '\n');
		first = false;
		buf_put(prompt, block, (size_t)n);
	}
	if (prompt->failed) errno = EFBIG;
	return n == 0 && !prompt->failed;
}

/* The line of the prompt becomes standard input. */
static bool put_prompt(const struct buf *prompt) {
	struct buf line = BUF_INIT(SIZE_MAX / 4);
	buf_puts(&line, "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":");
	str_put_json(&line, prompt->data, prompt->len);
	buf_puts(&line, "}}\n");
	int fd = line.failed ? -1 : memfd_create("prompt", MFD_CLOEXEC);
	bool ok = fd >= 0 && fd_write_all(fd, line.data, line.len) == 0 && lseek(fd, 0, SEEK_SET) == 0 &&
			  dup2(fd, STDIN_FILENO) >= 0;
	if (fd >= 0) close(fd);
	buf_free(&line);
	return ok;
}

/* --- the printer -------------------------------------------------------------------------------------------------- */

/* The newest result at the end of the lines is that of the prompt: the daemon closes the connection after it. */
static int print_last(const struct options *o, int in) {
	char *line = NULL, *last = NULL;
	size_t size = 0, len = 0;
	ssize_t n;
	struct envelope e;
	FILE *f = fdopen(in, "r");
	while (f && (n = getline(&line, &size, f)) > 0) {
		if (line[n - 1] == '\n') n--;
		if (!scan_envelope(line, (size_t)n, &e) || !span_equals(e.type, "result")) continue;
		free(last);
		last = line;
		len = (size_t)n;
		line = NULL;
		size = 0;
	}
	struct span result = last && o->print == PRINT_TEXT ? span_member((struct span){last, len}, "result") : SPAN_NONE;
	size_t text_len;
	_cleanup_free_ char *text = span_dup(result, &text_len);
	if (!last || (o->print == PRINT_TEXT && !text)) return 0; /* an aborted turn has none */
	fwrite(text ? text : last, 1, text ? text_len : len, stdout);
	putchar('\n');
	return fflush(stdout) == 0 ? 0 : failed("standard output");
}

/* Start a process that prints the result from the lines; they become standard output. -1: errno is set. */
static pid_t start_printer(const struct options *o) {
	int ends[2];
	if (pipe(ends) < 0) return -1;
	pid_t pid = fork();
	if (pid == 0) {
		for (const int *s = (const int[]){SIGINT, SIGTERM, SIGHUP, 0}; *s; s++) signal(*s, SIG_IGN);
		close(ends[1]);
		_exit(print_last(o, ends[0]));
	}
	close(ends[0]);
	if (pid > 0 && dup2(ends[1], STDOUT_FILENO) < 0) pid = -1;
	close(ends[1]);
	return pid;
}

int print_run(const struct options *o) {
	struct buf prompt = BUF_INIT(PROMPT_MAX);
	if (o->prompt) buf_puts(&prompt, o->prompt);
	if (!add_input(&prompt)) return failed("standard input");
	if (!prompt.len) {
		fputs("Error: Input must be provided either through stdin or as a prompt argument when using --print\n",
			  stderr);
		return 1;
	}
	bool ok = put_prompt(&prompt);
	buf_free(&prompt);
	if (!ok) return failed("the prompt");
	if (o->print == PRINT_LINES) return pump_run(o);
	fflush(NULL);
	pid_t printer = start_printer(o);
	if (printer < 0) return failed("the printer");
	int status, code = pump_run(o);
	close(STDOUT_FILENO);
	while (waitpid(printer, &status, 0) < 0)
		if (errno != EINTR) return failed("the printer");
	return status && !code ? 1 : code;
}
