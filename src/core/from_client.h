/* SPDX-License-Identifier: MIT
 *
 * Lines and events of clients: check them, find their session, and pass them to the module that serves them (contract
 * 4, "From a client").
 */
#pragma once

#include "core/client.h"

extern const struct client_events from_client_events;
