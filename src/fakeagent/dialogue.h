/* SPDX-License-Identifier: MIT
 *
 * A turn: from the prompt (or several that waited) over the model's replies and its tools to the result.
 */
#pragma once

#include <stdbool.h>

void dialogue_run_turn(void); /* with the prompts of the backlog */
bool dialogue_failed(void);   /* the last result was an error */
