/* SPDX-License-Identifier: MIT
 *
 * The origin of a peer's process. Only ORIGIN_FREE is trusted. Source: docs/contract.md 14.
 */
#pragma once

enum origin {
	ORIGIN_NEW,       /* not checked yet */
	ORIGIN_FREE,      /* certainly no agent's process */
	ORIGIN_AGENT,     /* started by an agent or by a process of one */
	ORIGIN_HIDDEN,    /* /proc hides an ancestor */
	ORIGIN_GONE,      /* the process that connected had ended before the check */
	ORIGIN_UNSURE,    /* another process may have its number */
	ORIGIN_ABROAD,    /* no process from the kernel: it is in another pid namespace */
	ORIGIN_UNWATCHED, /* no pidfd from the kernel */
	ORIGIN_ASKED,     /* an errand reads the environments; nothing else says that it is an agent's */
	ORIGIN_SILENT,    /* the environments could not be read in time, or before the process ended */
};
