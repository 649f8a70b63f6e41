/* SPDX-License-Identifier: MIT
 *
 * What every fuzz target has: its entry, which libFuzzer or replay.c calls, and a check that ends the run.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INSIST(cond)                                                                                                   \
	do                                                                                                                 \
		if (!(cond)) {                                                                                                 \
			fprintf(stderr, "not true: %s\n", #cond);                                                                  \
			abort();                                                                                                   \
		}                                                                                                              \
	while (0)
