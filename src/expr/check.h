/* Types of a tree. Private to the room. */
#ifndef KYMO_EXPR_CHECK_H
#define KYMO_EXPR_CHECK_H

#include "expr/tree.h"

/* Give each node of a parsed tree its type, and make constants of what is constant. USAGE. */
struct kymo_error *expr_check(struct expr_tree *tree);

#endif
