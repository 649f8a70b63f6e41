/* SPDX-License-Identifier: MIT
 *
 * The protocol of codex app-server: its methods, the agent's frames and messages as turns, items and approval requests.
 * The shapes are those of version 0.171.0, as seen.
 */
#pragma once

void appserver_start(void);
