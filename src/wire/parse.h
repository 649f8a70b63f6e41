/* SPDX-License-Identifier: MIT
 *
 * Reading JSON into jansson's tree where memory may be short. jansson 2.14 writes outside its buffers if an allocation
 * fails while it reads, so that what it can need is known to be there before. Until the first call, and between calls,
 * jansson's other functions allocate with malloc(3), and return NULL without memory. Source: jansson's API reference.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct parse_error {
	bool no_memory;
	char text[JSON_ERROR_TEXT_LENGTH];
};

/* The most bytes that jansson 2.14 can take to read the text; measured by tests/unit/test_parse.c. */
size_t parse_needs(const char *text, size_t n);
/* NULL: error says why. flags are those of json_loadb(). */
json_t *parse_json(const char *text, size_t n, size_t flags, struct parse_error *error);
