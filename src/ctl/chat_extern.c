/* SPDX-License-Identifier: MIT
 *
 * The typed text in the program that VISUAL or EDITOR names. It has the terminal, and lines of the session are shown
 * after its end.
 */
#include "base/fd.h"
#include "base/str.h"
#include "ctl/chat.h"
#include "ctl/wtext.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX ((size_t)64 << 20)

static bool write_draft(const char *text, size_t n, char *path) {
	_cleanup_close_ int fd = mkostemps(path, 3, O_CLOEXEC);
	return fd >= 0 && fd_write_all(fd, text, n) == 0;
}

/* Without newlines at the end. */
static char *read_draft(const char *path, size_t *n) {
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct buf b = BUF_INIT(TEXT_MAX);
	buf_puts(&b, "");
	bool all = fd >= 0 && buf_read(&b, fd);
	while (b.len && b.data[b.len - 1] == '\n') b.data[--b.len] = 0;
	if (all) return buf_steal(&b, n);
	buf_free(&b);
	return NULL;
}

static pid_t start_program(const char *path) {
	pid_t pid = fork();
	if (pid != 0) return pid;
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execl("/bin/sh", "sh", "-c", "${VISUAL:-${EDITOR:-vi}} \"$1\"", "sh", path, (char *)NULL);
	_exit(127);
}

/* Ctrl-C and Ctrl-Z reach the program, too: the first is its own matter, the second stops both. */
static void take_signal(struct chat *ch, pid_t pid) {
	struct signalfd_siginfo info;
	if (read(ch->signals, &info, sizeof info) != sizeof info) return;
	if (info.ssi_signo == SIGTSTP) {
		chat_stop();
		kill(pid, SIGCONT);
	} else if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP) {
		kill(pid, (int)info.ssi_signo);
		ch->code = CTL_INTERRUPTED;
	}
}

/* Return its exit status; -1: it did not exit by itself. */
static int run_program(struct chat *ch, const char *path) {
	pid_t pid = start_program(path);
	_cleanup_close_ int ended = pid > 0 ? fd_pidfd(pid) : -1;
	int status = -1;
	while (ended >= 0 && waitpid(pid, &status, WNOHANG) == 0) {
		struct incoming in;
		enum plenum_result r = PLENUM_TIMED_OUT;
		while (ch->p && (r = follow_next(ch->p, 0, &in)) == PLENUM_OK) chat_take(ch, &in);
		bool open = r == PLENUM_TIMED_OUT && ch->p;
		struct pollfd fds[] = {{.fd = ended, .events = POLLIN},
							   {.fd = ch->signals, .events = POLLIN},
							   {.fd = open ? plenum_fd(ch->p) : -1, .events = open ? plenum_events(ch->p, NULL) : 0}};
		poll(fds, ARRAY_SIZE(fds), -1);
		if (fds[1].revents) take_signal(ch, pid);
	}
	if (pid > 0 && ended < 0) waitpid(pid, &status, 0);
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void chat_extern(struct chat *ch) {
	const wchar_t *search;
	size_t n, cursor, len = 0;
	const wchar_t *wide = editor_text(ch->editor, &n, &cursor, &search);
	_cleanup_free_ char *text = wtext_to(wide, n, &len);
	const char *folder = getenv("TMPDIR");
	_cleanup_free_ char *path = str_printf("%s/plenumctl-XXXXXX.md", folder && *folder ? folder : "/tmp");
	if (!text || !path || !write_draft(text, len, path)) {
		show_note(&ch->show, SHOW_RED, "  cannot make a file for the editor: %s (set TMPDIR)", strerror(errno));
		return;
	}
	struct question *q = chat_question(ch);
	_cleanup_free_ char *line = ch->asking && q ? str_dup(q->line) : NULL;
	screen_erase(&ch->screen);
	ch->screen.held = true;
	editor_pause(ch->editor);
	int status = run_program(ch, path);
	editor_resume(ch->editor);
	ch->screen.held = false;
	screen_measure(&ch->screen);
	q = chat_question(ch);
	if (line && q && strcmp(line, q->line) != 0) {
		editor_flush(ch->editor); /* it was for a question that is gone */
	} else if (status == 0) {
		_cleanup_free_ char *fresh = read_draft(path, &n);
		_cleanup_wide_ wchar_t *typed = fresh ? wtext_from(fresh, n, &len) : NULL;
		if (typed) editor_set(ch->editor, typed, len, len);
	} else {
		show_note(&ch->show, SHOW_RED, "  the editor failed (VISUAL or EDITOR names it); the text is as it was");
	}
	unlink(path);
}
