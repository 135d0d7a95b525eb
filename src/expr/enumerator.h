/* Enumerators by their names. Private to the room. */
#ifndef KYMO_EXPR_ENUMERATOR_H
#define KYMO_EXPR_ENUMERATOR_H

#include "expr/tree.h"

/* Make constants of those children of the node that are names without a meaning: of the enumeration that the node
 * compares them with. USAGE for others, and for a root that is such a name. */
struct kymo_error *expr_resolve_enumerators(struct expr_tree *tree, struct expr_node *node, bool is_root);

#endif
