/* SPDX-License-Identifier: MIT
 *
 * Answers to the asks of Claude Code: their validity, their decision, and those of the daemon itself. The
 * contracts are those of struct dialect. Source: protocol-facts 4.2.
 */
#pragma once

#include "dialect/dialect.h"

void answers_put_deny(struct buf *b, struct span request, const char *reason);
void answers_put_allow(struct buf *b, struct span request);
void answers_put_cancel(struct buf *b, struct span request);
bool answers_are_empty(enum ask_kind kind, struct span request, struct span response);
void answers_put_empty(struct buf *b, struct span id, enum ask_kind kind, struct span request, struct span response);
const char *answers_check(enum ask_kind kind, struct span request, struct span response);
const char *answers_decision(enum ask_kind kind, struct span request, struct span response);
struct span answers_input(struct span response);
/* Return the input of the tool that is asked about; absent: none. */
struct span answers_input_of(enum ask_kind kind, struct span request);
struct span answers_reason(struct span response);
bool answers_mend(enum ask_kind kind, struct span request, const struct envelope *answer, struct splice_edit *edit);
void answers_read_changes(enum ask_kind kind, struct span request, struct span response, struct changes *c);
