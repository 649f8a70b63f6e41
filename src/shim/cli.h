/* SPDX-License-Identifier: MIT
 *
 * The real CLI, for invocations without the daemon: --version, --help, subcommands, prompts that are not stream-json.
 * It is $PLENUM_CLAUDE, else the first `claude` in PATH, the daemon's PATH, ~/.local/bin and ~/.claude/local that is
 * neither this program nor a script around it.
 */
#pragma once

/* Execute the real CLI with this argv (including argv[0]). Returns only on failure: the exit code, after a message on
 * stderr (126: not executable, 127: not found, as in a shell). */
int cli_exec(char **argv);
