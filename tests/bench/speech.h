/* SPDX-License-Identifier: MIT
 *
 * The lines of a measurement in each protocol of the daemon: the played child and the clients speak the same one. A
 * template is text with one `%` in the place of its value. A mark is text that no other line has.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair {
	const char *mark, *answer; /* NULL: none; else a template with the id */
};

/* A line with a long string between two templates of one number. */
struct frame {
	const char *head, *tail;
};

struct speech {
	const char *name;
	const char *id; /* the member with the id of a request */

	/* --- clients --- */
	const char *attach, *attached; /* a template with the members; the mark of its answer, and of one without error */
	const char *succeeded;
	const char *prompt, *is_prompt; /* a template with its id */
	const char *is_ask, *allow;     /* a template with the id */
	const char *is_allow;

	/* --- the child --- */
	struct pair handshake[4];  /* requests of the daemon */
	const char *accept;        /* the answer to a prompt at its beginning; NULL: none */
	const char *result;        /* the answer to a prompt at its end, or a notification */
	const char *is_result;     /* also of an answer that is an error */
	bool ends_mix;             /* the mixed lines end with a result */
	const char *ask;           /* a template with the id */
	const char *ack;           /* a template with the bytes */
	const char *notice;        /* the mark of an event of the daemon */
	const char *const *beside; /* marks of further lines that clients get; ends with NULL */
	struct frame delta, text, big;
	struct frame ping, pong; /* lines with a measured latency, from the client and from the child */
	const char *is_ping, *is_pong;
};

extern const struct speech *speech; /* set by speak() */
void speak(const char *name);

/* Expand a template into out, a string; return its length. */
size_t expand(char *out, size_t size, const char *template, const char *value, size_t n);
size_t expand_number(char *out, size_t size, const char *template, int64_t value);
/* Write an expanded template. */
void say(int fd, const char *template, const char *value, size_t n);
/* Answer a request of the handshake; return false if the line is none. one_of_many: with a conversation of this
 * process. The mixed lines have the other one, and the daemon has each in one session. */
bool shake_hands(const char *line, size_t n, bool one_of_many);
/* Put the conversation of this process into a line. */
void name_conversation(char *line, size_t n);
