/* SPDX-License-Identifier: MIT
 *
 * The table of what each uid holds of the daemon.
 */
#pragma once

#include "ctl/ctl.h"

/* Print the shares of plenum_status below a title and an empty line; nothing if there are less than two. */
void share_print(json_t *shares);
/* Return the number of lines that it prints. */
size_t share_lines(json_t *shares);
