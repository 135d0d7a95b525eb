/* Trees as text. Private to the room. */
#ifndef KYMO_EXPR_DUMP_H
#define KYMO_EXPR_DUMP_H

#include "expr/tree.h"

/* The checked tree, a node a line: what it is, and its type. */
void expr_dump(const struct expr_tree *tree, FILE *out);

#endif
