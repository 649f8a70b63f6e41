/* SPDX-License-Identifier: MIT
 *
 * The Agent Client Protocol, version 1 (agentclientprotocol.com), spoken by `gemini --acp` and many others.
 */
#pragma once

#include "dialect/dialect.h"

extern const struct dialect acp_dialect;
