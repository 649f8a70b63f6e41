/* SPDX-License-Identifier: MIT
 *
 * Parse JSON into jansson's tree under memory limits. jansson 2.14 writes outside its buffers if an allocation fails
 * during parsing, so the memory is reserved before. Outside these calls jansson's other functions use malloc(3), and
 * return NULL without memory. Source: jansson's API reference.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct parse_error {
	bool no_memory;
	char text[JSON_ERROR_TEXT_LENGTH];
};

/* Return the most bytes that jansson 2.14 can need to parse the text; measured by tests/unit/test_parse.c. */
size_t parse_needs(const char *text, size_t n);
/* Return NULL with *error set. flags are those of json_loadb(). */
json_t *parse_json(const char *text, size_t n, size_t flags, struct parse_error *error);
