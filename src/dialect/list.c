/* SPDX-License-Identifier: MIT
 *
 * The dialects of the daemon. Alone in its file, so that a test program with a list of its own is linked without it.
 */
#include "dialect/acp/acp.h"
#include "dialect/claude/claude.h"
#include "dialect/codex/codex.h"

const struct dialect *const dialect_list[] = {&claude_dialect, &acp_dialect, &codex_dialect, NULL};
