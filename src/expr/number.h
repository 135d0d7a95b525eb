/* Constants. Private to the room. */
#ifndef KYMO_EXPR_NUMBER_H
#define KYMO_EXPR_NUMBER_H

#include "expr/tree.h"

/* The constant at `at`, a number or a character. `end_ret` is after it. USAGE. */
struct kymo_error *expr_read_constant(const struct expr_tree *tree, const char *at, const char **end_ret,
				      struct expr_node *ret);

/* The text between quotes at `at`, without its escapes and with a NUL after it. USAGE. */
struct kymo_error *expr_read_text(const struct expr_tree *tree, const char *at, const char **end_ret,
				  char out[EXPR_TEXT_MAX + 1], size_t *size_ret);

#endif
