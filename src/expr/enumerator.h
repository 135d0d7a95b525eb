/* Enumerators by their names. Private to the room. */
#ifndef KYMO_EXPR_ENUMERATOR_H
#define KYMO_EXPR_ENUMERATOR_H

#include "expr/tree.h"

/* Make constants of those children of the node that are names without a meaning, and of a root that is one: of the
 * enumeration that the node compares them with, else of any, or words such as NULL. USAGE for others. */
struct kymo_error *expr_resolve_enumerators(struct expr_tree *tree, struct expr_node *node, bool is_root);

#endif
