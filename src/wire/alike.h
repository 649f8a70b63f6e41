/* SPDX-License-Identifier: MIT
 *
 * Compare the values of two JSON texts. Spaces, the order of members and the spelling of strings are ignored, because a
 * program that passes a value on writes it anew. The spelling of a number counts only if a program could lose digits.
 */
#pragma once

#include "wire/scan.h"

/* Return true if a and b certainly have the same value. False if they differ, if the comparison would take too long
 * (texts of unusual shape or of more than 4 MiB that are not spelled alike), and for different spellings of lone
 * surrogates. */
bool alike(struct span a, struct span b);
