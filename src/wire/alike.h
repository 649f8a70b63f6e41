/* SPDX-License-Identifier: MIT
 *
 * Do two JSON texts say the same? Blanks, the order of members and the spelling of strings do not count, since a
 * program that passes a value on prints it anew; the spelling of a number counts only where a program could lose digits
 * of it.
 */
#pragma once

#include "wire/scan.h"

/* Return true if a and b certainly say the same. False where they differ, and where telling would take too long (texts
 * of strange shape), and where lone surrogates are spelled differently. */
bool alike(struct span a, struct span b);
