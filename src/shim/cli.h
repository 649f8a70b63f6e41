/* SPDX-License-Identifier: MIT
 *
 * The real CLI, for everything that the daemon is not asked: --version, --help, subcommands, prompts that are not
 * stream-json. It is $PLENUM_CLAUDE, else the first `claude` in PATH, ~/.local/bin and ~/.claude/local
 * that is not this program.
 */
#pragma once

/* Becomes the real CLI with this argv (argv[0] included). Returns only where it cannot: the exit code, after a sentence
 * on stderr (126: not executable, 127: not found, as a shell says it). */
int cli_exec(char **argv);
