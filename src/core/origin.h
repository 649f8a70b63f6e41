/* SPDX-License-Identifier: MIT
 *
 * What is known of where a peer's process comes from. Only ORIGIN_FREE is trusted. Source: DESIGN 14.
 */
#pragma once

enum origin {
	ORIGIN_NEW,       /* not looked at yet */
	ORIGIN_FREE,      /* certainly no agent's process */
	ORIGIN_AGENT,     /* an agent started it, or a process of an agent did */
	ORIGIN_HIDDEN,    /* /proc does not show an ancestor */
	ORIGIN_GONE,      /* the process that made the connection had ended before it was looked at */
	ORIGIN_UNSURE,    /* another process may have its number */
	ORIGIN_ABROAD,    /* the kernel names no process: it is in another pid namespace */
	ORIGIN_UNWATCHED, /* the kernel gives no pidfd */
};
