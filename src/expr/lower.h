/* Tree to form. Private to the room. */
#ifndef KYMO_EXPR_LOWER_H
#define KYMO_EXPR_LOWER_H

#include "expr/tree.h"

/* The form of a checked tree. USAGE where it is too large for one. */
struct kymo_error *expr_lower(const struct expr_tree *tree, struct kymo_form *ret);

#endif
