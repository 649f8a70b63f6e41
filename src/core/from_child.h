/* SPDX-License-Identifier: MIT
 *
 * Lines and events of the child: the clients that get them, and the state of the session that they report (contract 4,
 * first table).
 */
#pragma once

#include "core/session.h"

extern const struct session_events from_child_events;
