/* Text to tree. Private to the room. */
#ifndef KYMO_EXPR_PARSE_H
#define KYMO_EXPR_PARSE_H

#include "expr/tree.h"

/* `tree` has its source and names. USAGE. */
struct kymo_error *expr_parse(struct expr_tree *tree);

#endif
