/* SPDX-License-Identifier: MIT
 *
 * A turn: one or several prompts, the model's replies and their tools, the result.
 */
#pragma once

void dialogue_run_turn(void); /* with the queued prompts */
