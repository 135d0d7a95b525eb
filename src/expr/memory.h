/* Types of what lies in memory. Private to the room. */
#ifndef KYMO_EXPR_MEMORY_H
#define KYMO_EXPR_MEMORY_H

#include "expr/tree.h"

/* Give a node its type, of those that lead to memory: DEREF, ADDRESS, MEMBER, SIZEOF, PIECE, STRING, BUFFER, INDEX.
 * USAGE. */
struct kymo_error *expr_check_memory(struct expr_tree *tree, struct expr_node *node);

/* A reference of C++ stands for what it refers to. */
void expr_follow_reference(struct expr_node *node);

/* USAGE unless the node is a whole number or a pointer. */
struct kymo_error *expr_need_value(const struct expr_tree *tree, const struct expr_node *node);

/* The same; floating-point numbers are taken, too. */
struct kymo_error *expr_need_number(const struct expr_tree *tree, const struct expr_node *node);

/* USAGE unless the node can be recorded. */
struct kymo_error *expr_need_record(const struct expr_tree *tree, const struct expr_node *node);

/* Bytes of what a pointer points to; 1 for void and functions, as GNU C has it; 0: not known. */
uint64_t expr_element_size(struct kymo_expr_type pointer);

#endif
