/* SPDX-License-Identifier: MIT */
#include "core/program.h"

#include "base/macros.h"
#include "core/glob.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Lists of names, with a space on both sides of each. */

static const char data_programs[] =
	" : [ [[ arch b2sum base32 base64 basename basenc break cal case cat cd chgrp chmod chown cksum cmp comm continue "
	"cut date df diff dircolors dirname dirs du echo exit expand expr factor false file fmt fold for getconf getopt "
	"grep egrep fgrep groups head hexdump hostid hostname id iconv in jobs join jq kill logname logout ls lsblk "
	"lscpu lsof md5sum mkdir mkfifo mktemp nl nproc numfmt od paste pathchk pgrep popd pr printenv printf ps ptx pushd "
	"pwd readlink realpath return rev rmdir select seq sha1sum sha224sum sha256sum sha384sum sha512sum shift shuf "
	"sleep stat strings sum sync tac tail tee test times touch tr tree true truncate tsort tty type umask uname "
	"unexpand uniq uptime users w wait wc which who whoami xxd yes ";

/* They start the program named by their arguments, without a shell. */
static const char wrappers[] =
	" builtin busybox caffeinate chrt choom command coproc exec i386 ionice ld.so linux32 linux64 nice noglob nohup "
	"numactl prlimit setarch setpriv setsid stdbuf sudo taskset time timeout toybox unbuffer x86_64 xargs ";

/* The same, and an argument may be a whole line for a shell. */
static const char line_wrappers[] =
	" bunx bwrap capsh cgexec chpst chroot cpulimit daemonize dbus-launch dbus-run-session docker doas dtach entr env "
	"eval "
	"fakechroot fakeroot faketime firejail flatpak-spawn flock function gosu heaptrack ltrace nocache nocorrect npx "
	"nsenter parallel perf pipx pkexec pnpx podman proot proxychains proxychains4 rlwrap rr runcon runuser script "
	"setuidgid sg ssh ssh-agent sshpass start-stop-daemon strace su systemd-inhibit systemd-run torify torsocks trap "
	"tsocks uftrace unshare uvx valgrind watch xvfb-run ";

static const char shells[] = " ash bash dash fish ksh mksh sh yash zsh ";

/* Languages with a script file as their first operand; anything else is code. */
static const char languages[] = " node nodejs perl php python ruby lua luajit tclsh wish bun deno Rscript pypy ";

/* Programs that run commands from a text that is not parsed here. */
static const char code_programs[] =
	" alias at batch bc bind compgen complete crontab csh tcsh dc dialog ed elinks emacs emacsclient enable "
	"ex expect fc ftp gdb gdbserver hash history julia less lftp lldb links lynx mail mailx man mc more most mutt "
	"mysql "
	"nano nc ncat netcat nvim osascript pico pilot pg ptrace psql rbash red rvim rview screen sftp shopt socat sqlite3 "
	"telnet tmux unalias vi view vim vimdiff vipe w3m whiptail xterm zmodload ";

/* Words that make a program run other programs. A word matches by its beginning; with $ as a whole. */
static const struct {
	const char *programs, *words;
} risky[] = {
	{" git ", " -c --config-env --exec -x -O --open-files-in-pager --upload-pack --receive-pack --extcmd alias. core. "
			  "config filter-branch bisect foreach ext:: "},
	{" tar gtar bsdtar ", " --checkpoint-a --to-c --use-c --rsh --info-s --new-volume-s -I -F "},
	{" make gmake ", " --eval -f- -$ SHELL= .SHELLFLAGS= -E --f=- --fi=- --file=- --makefile=- /dev/ "},
	{" printf test [ [[ ", " -v -R "},
	{" sort ", " --c "},
	{" split ", " --f "},
	{" rsync ", " -e --rsh --rsync-path "},
	{" scp ", " -S -o "},
	{" rg ", " --pre "},
	{" zip ", " -T --unzip-command "},
	{" go ", " -exec -toolexec "},
	{" cargo ", " --config "},
	{" declare local typeset ", " - "}, /* -i evaluates, -n names another variable */
};

static bool is_in(const char *list, const char *name) {
	char word[40];
	int n = snprintf(word, sizeof word, " %s ", name);
	return n < (int)sizeof word && !strchr(name, ' ') && strstr(list, word);
}

static bool begins(const char *word, const char *start, size_t n) {
	return strncmp(word, start, n) == 0;
}

static bool is_unknown(const char *word) {
	return strchr(word, GLOB_UNKNOWN) != NULL;
}

const char *program_base(const char *word) {
	const char *slash = strrchr(word, '/');
	if (slash && slash[1]) return slash + 1;
	return *word == '=' && word[1] ? word + 1 : word; /* zsh: =NAME is the path of a program */
}

/* Return true for a group of one-letter options with this one: wait -np. */
static bool has_letter(const char *programs, char letter, const char *name, char *const *words, size_t n) {
	for (size_t k = 1; k < n && is_in(programs, name); k++)
		if (*words[k] == '-' && words[k][1] != '-' && (strchr(words[k], letter) || is_unknown(words[k]))) return true;
	return false;
}

static bool is_risky(const char *name, char *const *words, size_t n) {
	bool harmless = is_in(data_programs, name);
	for (size_t i = 0; i < ARRAY_SIZE(risky); i++) {
		if (!is_in(risky[i].programs, name)) continue;
		/* A word that begins with a dash and is computed may be an option; values.h has those that are all computed. */
		for (size_t k = 1; k < n; k++)
			if (*words[k] == '-' && (words[k][1] == GLOB_UNKNOWN || (harmless && is_unknown(words[k])))) return true;
		for (const char *p = risky[i].words; *++p;) {
			size_t len = strcspn(p, " "), whole = p[len - 1] == '$';
			for (size_t k = 1; k < n; k++)
				if (begins(words[k], p, len - whole) && (!whole || !words[k][len - 1])) return true;
			p += len;
		}
	}
	return false;
}

/* --- Shells and languages ----------------------------------------------------------------------------------------- */

/* Return true for a script file, which is not read; text that the line writes to the program is. */
static bool is_file(const char *word) {
	return !is_unknown(word) && *word != '-' && !begins(word, "/dev/", 5) && !begins(word, "/proc/", 6);
}

/* The caller parses the line after -c, so it must be known; without -c there must be a script. */
static bool shell_is_unsure(char *const *words, size_t n) {
	bool line = false;
	for (size_t i = 1; i < n; i++) {
		const char *word = words[i];
		if (is_unknown(word)) return true;
		if (*word != '-' && *word != '+') return !line && !is_file(word);
		if (strcmp(word, "--version") == 0 || strcmp(word, "--help") == 0) return false;
		if (strncmp(word, "--", 2) == 0) {
			if (strstr(word, "-file")) i++;
			continue;
		}
		if (strpbrk(word, "si")) return true;
		line |= strchr(word, 'c') != NULL;
		if (strpbrk(word, "oO")) i++;
	}
	return true;
}

static bool is_language(const char *name) {
	char stem[20];
	size_t n = strcspn(name, "0123456789.-");
	if (n >= sizeof stem || name[n + strspn(name + n, "0123456789.-")]) return false;
	memcpy(stem, name, n);
	stem[n] = 0;
	return is_in(languages, stem);
}

static bool language_is_unsure(const char *name, char *const *words, size_t n) {
	bool python = begins(name, "python", 6);
	for (size_t i = 1; i < n; i++) {
		const char *word = words[i];
		if (*word != '-') return !is_file(word);
		if (strcmp(word, "--version") == 0 || strcmp(word, "--help") == 0) return false;
		if (python && strcmp(word, "-m") == 0)
			return i + 1 >= n ||
				   is_in(" timeit pdb code cProfile profile trace runpy asyncio doctest ", words[i + 1]) ||
				   is_unknown(words[i + 1]);
		if (!python || !word[1] || word[1 + strspn(word + 1, "uBOIsSEvqb")]) return true;
	}
	return true;
}

/* --- awk and sed -------------------------------------------------------------------------------------------------- */

/* Without pipes, system(), indirect calls and extensions an awk program runs nothing. */
static bool awk_is_unsure(char *const *words, size_t n) {
	for (size_t i = 1; i < n; i++) {
		const char *word = words[i];
		if (*word != '-') return is_unknown(word) || strpbrk(word, "|@") || strstr(word, "system");
		if (word[1] != 'F' && word[1] != 'v') return true;
		if (!word[2]) i++;
	}
	return false;
}

/* p is after the opening delimiter; return the position after the closing one, or NULL. */
static const char *skip_part(const char *p, char delimiter) {
	for (; *p && *p != delimiter; p++)
		if (*p == '\\' && p[1]) p++;
	return *p ? p + 1 : NULL;
}

static const char *skip_address(const char *p) {
	for (; p && *p && strchr("0123456789$,+~! /\\", *p);) {
		if (*p == '/')
			p = skip_part(p + 1, '/');
		else if (*p == '\\')
			p = p[1] ? skip_part(p + 2, p[1]) : NULL;
		else
			p++;
	}
	return p;
}

/* Return true if there are only s, y and one-letter commands that read and write nothing. */
static bool is_harmless_sed(const char *p) {
	while (p && *p) {
		p += strspn(p, " \t\n;{}");
		p = skip_address(p);
		if (!p || !*p) break;
		char command = *p++;
		if (command == 's' || command == 'y') {
			char delimiter = *p;
			if (!delimiter || strchr("\\\n", delimiter)) return false;
			p = skip_part(p + 1, delimiter);
			p = p ? skip_part(p, delimiter) : NULL;
			if (p) p += strspn(p, "gpiI0123456789");
		} else if (!strchr("pdqQDPnNgGhHx=l{}", command)) {
			return false;
		}
		if (p && *p && !strchr(" \t\n;}", *p) && command != '{' && command != '}') return false;
	}
	return p != NULL;
}

/* Parse an option of sed; *script: the next word is a script. */
static bool is_harmless_option(const char *word, bool *script) {
	if (word[1] == '-') return is_in(" --quiet --silent --regexp-extended --in-place --debug --posix ", word);
	for (const char *p = word + 1; *p && *p != 'i'; p++) {
		*script = *p == 'e' && !p[1];
		if (!*script && !strchr("nErsuz", *p)) return false;
	}
	return word[1] != 0;
}

static bool sed_is_unsure(char *const *words, size_t n) {
	bool has_script = false;
	for (size_t i = 1; i < n; i++) {
		bool script = false;
		if (*words[i] == GLOB_UNKNOWN) return true; /* it may be an option */
		if (*words[i] == '-') {
			if (!is_harmless_option(words[i], &script) || (script && ++i >= n)) return true;
			if (!script) continue;
		} else if (has_script) {
			continue;
		}
		has_script = true;
		if (is_unknown(words[i]) || !is_harmless_sed(words[i])) return true;
	}
	return false;
}

/* --- xargs -------------------------------------------------------------------------------------------------------- */

/* Its input completes the command: safe only for a program that does not run its arguments. */
static bool xargs_is_unsure(char *const *words, size_t n) {
	size_t inner = 1; /* the command after the options */
	for (; inner < n && *words[inner] == '-'; inner++)
		if (words[inner][1] && strchr("aEIdLnPs", words[inner][1]) && !words[inner][2]) inner++;
	if (inner >= n) return false; /* echo */
	for (size_t i = 1; i < inner; i++) {
		const char *option = words[i];
		if (begins(option, "--", 2) && !strchr(option, '=') && strcmp(option, "--null") != 0) return true;
		const char *mark = begins(option, "-I", 2) ? option[2] ? option + 2 : words[i + 1] : NULL;
		if (begins(option, "-i", 2) || begins(option, "--repl", 6)) mark = "{}";
		if (mark && strstr(words[inner], mark)) return true;
	}
	struct program p = program_of(words + inner, n - inner);
	return p.runs || p.reads || p.unsure || is_unknown(words[inner]) ||
		   is_in(" find awk gawk mawk ", program_base(words[inner]));
}

/* --- All of them -------------------------------------------------------------------------------------------------- */

struct program program_of(char *const *words, size_t n) {
	const char *name = program_base(words[0]);
	struct program p = {.data = is_in(data_programs, name)};
	bool loader = begins(name, "ld-linux", 8) || begins(name, "ld-musl", 7) || begins(name, "ld-2.", 5);
	p.lines = is_in(line_wrappers, name) || is_in(shells, name);
	p.runs = p.lines || is_in(wrappers, name) || loader;
	p.unsure = is_risky(name, words, n) || is_in(code_programs, name);
	p.unsure |= has_letter(" jobs ", 'x', name, words, n) || has_letter(" wait ", 'p', name, words, n) ||
				has_letter(" mapfile readarray ", 'C', name, words, n);
	if (is_in(shells, name)) {
		p.reads = true;
		p.unsure |= shell_is_unsure(words, n);
	} else if (is_language(name)) {
		p.reads = p.unsure = language_is_unsure(name, words, n);
	} else if (is_in(" awk gawk mawk nawk ", name)) {
		p.reads = p.unsure = awk_is_unsure(words, n);
		p.data = !p.unsure;
	} else if (strcmp(name, "sed") == 0 || strcmp(name, "gsed") == 0) {
		p.unsure = sed_is_unsure(words, n);
		p.data = !p.unsure;
	} else if (is_in(" find gfind ", name)) {
		p.data = true;
		for (size_t i = 1; i < n; i++) {
			if (begins(words[i], "-exec", 5) || begins(words[i], "-ok", 3) || *words[i] == GLOB_UNKNOWN) p.data = false;
			p.unsure |= *words[i] == '-' && is_unknown(words[i]); /* -ex$x */
		}
	} else if (strcmp(name, "env") == 0) {
		for (size_t i = 1; i < n; i++) /* -S TEXT: words of a command */
			p.unsure |= *words[i] == '-' && strpbrk(words[i], "Ss") && is_unknown(words[i]);
	} else if (strcmp(name, "xargs") == 0) {
		p.unsure |= xargs_is_unsure(words, n);
		p.reads = p.unsure;
	} else if (is_in(" . source ", name)) {
		p.reads = true;
		p.unsure |= n < 2 || !is_file(words[1]);
	} else if (strcmp(name, "[[") == 0) {
		/* Arithmetic is evaluated repeatedly, and subscripts in it run commands: a['$(cmd)']. */
		for (size_t i = 1; i < n; i++)
			if (is_in(" -eq -ne -lt -le -gt -ge ", words[i])) p.data = false;
	}
	p.reads |= is_in(" eval parallel at batch crontab ", name);
	p.data &= !p.unsure;
	return p;
}
