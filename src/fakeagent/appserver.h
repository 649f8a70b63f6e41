/* SPDX-License-Identifier: MIT
 *
 * The protocol of codex app-server: its methods. The shapes are those of version 0.171.0, as seen.
 */
#pragma once

void appserver_start(void);
