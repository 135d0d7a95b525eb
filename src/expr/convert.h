/* Conversions of values. Private to the room. */
#ifndef KYMO_EXPR_CONVERT_H
#define KYMO_EXPR_CONVERT_H

#include "expr/tree.h"

/* The type of the node's value: an array is the address of its first element. */
struct kymo_expr_type expr_value_type(const struct expr_node *node);

/* Integer promotion: what is narrower than int is int, a bit-field of fewer bits, too. */
struct kymo_expr_type expr_promoted(const struct expr_node *node);

/* The usual arithmetic conversions, of floating-point numbers, too. Where one is a pointer, its unsigned 64 bits. */
struct kymo_expr_type expr_common(const struct expr_node *a, const struct expr_node *b);

/* Whether the node is a pointer, or an array that becomes one. */
bool expr_is_pointer(const struct expr_node *node);

#endif
