/* SPDX-License-Identifier: MIT
 *
 * The Agent Client Protocol, version 1, in the way of claude-agent-acp: its methods.
 */
#pragma once

void acp_start(void);
