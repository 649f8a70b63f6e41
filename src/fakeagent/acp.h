/* SPDX-License-Identifier: MIT
 *
 * The Agent Client Protocol, version 1, in the way of claude-agent-acp: its methods, the agent's frames and messages as
 * session/update, and requests to the client.
 */
#pragma once

void acp_start(void);
