/* SPDX-License-Identifier: MIT
 *
 * An intrusive doubly linked ring: the head is a node, too, and an empty list points to itself. After list_init() or
 * list_del() a node points to itself, so a second delete is harmless.
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define LIST_SELF(name)                                                                                                \
	{ &(name), &(name) }

static inline void list_init(struct list *l) {
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l) {
	return l->next == l;
}

static inline size_t list_length(const struct list *l) {
	size_t n = 0;
	for (const struct list *at = l->next; at != l; at = at->next) n++;
	return n;
}

static inline void list_add_tail(struct list *head, struct list *node) {
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void list_add_head(struct list *head, struct list *node) {
	list_add_tail(head->next, node);
}

static inline void list_del(struct list *node) {
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

#define LIST_OF(node, type, member) CONTAINER_OF(node, type, member)
#define LIST_TOP(head, type, member) (list_empty(head) ? NULL : LIST_OF((head)->next, type, member))

/* Deleting the current node within the loop is allowed; deleting the following one is not. */
#define LIST_FOR_EACH(var, head, type, member)                                                                         \
	for (struct list *var##_n = (head)->next, *var##_next = var##_n->next;                                             \
		 var##_n != (head) && ((var) = LIST_OF(var##_n, type, member), 1);                                             \
		 var##_n = var##_next, var##_next = var##_n->next)
