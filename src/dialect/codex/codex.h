/* SPDX-License-Identifier: MIT
 *
 * The protocol of `codex app-server`: JSON-RPC without the member `jsonrpc`.
 */
#pragma once

#include "dialect/dialect.h"

extern const struct dialect codex_dialect;
