/* SPDX-License-Identifier: MIT
 *
 * Answers to questions of the agent: which are valid, what an "always" remembers, and sending.
 */
#pragma once

#include "base/buf.h"
#include "ctl/speech.h"

/* Return the reason why the decision is no valid answer to the question, a message; NULL: it is valid. */
const char *answer_lacks(const struct speech_ask *ask, const struct speech_decision *d);

/* Append in words what one of the proposals changes, and where it is remembered. */
void answer_put_remembered(struct buf *b, struct span proposal);

/* Send the answer. PLENUM_REFUSED: this kind of question has no allow or deny. */
enum plenum_result answer_post(struct plenum *p, const struct speech *speech, const struct speech_ask *ask,
							   const struct speech_decision *d);
