/* Enumerators by their names: a name has no type of its own here, so that of what it meets says which it is. */
#include "expr/enumerator.h"

#include <string.h>

#include "base/caret.h"
#include "base/nearest.h"

#define LISTED_MAX 64

static bool is_enumeration(const struct expr_node *node)
{
	return node->type.of && !node->type.pointers && !node->type.n && node->type.of->kind == KYMO_CTYPE_ENUM;
}

/* What `names` says of it, which is an error. */
static struct kymo_error *refuse(const struct expr_tree *tree, const struct expr_node *node)
{
	struct kymo_expr_meaning meaning;
	struct kymo_error *error =
		tree->names->find(tree->names->data, tree->source.text, node->at, node->size, &meaning);

	return error ? error : kymo_error_at(tree->source.text, node->at, "there is no '%.*s'", node->size, node->at);
}

static struct kymo_error *refuse_enumerator(const struct expr_tree *tree, const struct expr_node *node,
					    const struct kymo_ctype *type, const struct kymo_ctype_enumerator *all,
					    size_t n)
{
	const char *names[LISTED_MAX];
	char list[KYMO_NEAREST_MAX];

	n = n < LISTED_MAX ? n : LISTED_MAX;
	for (size_t i = 0; i < n; i++)
		names[i] = all[i].name;
	return kymo_error_at(tree->source.text, node->at,
			     "there is no '%.*s', and %s has none of that name; it has: %s", node->size, node->at,
			     type->name ? type->name : "the enumeration",
			     kymo_nearest_list(node->at, node->size, names, n, list));
}

static struct kymo_error *resolve(struct expr_tree *tree, struct expr_node *node, const struct expr_node *with)
{
	const struct kymo_ctype_enumerator *all = NULL;
	struct kymo_error *error;
	size_t n = 0;

	error = tree->names->enumerators(tree->names->data, with->type.of, &all, &n);
	if (error)
		return error;
	for (size_t i = 0; i < n; i++) {
		if (!all[i].name || strlen(all[i].name) != node->size || memcmp(all[i].name, node->at, node->size) != 0)
			continue;
		node->kind = EXPR_CONSTANT;
		node->value = all[i].value;
		node->type = with->type;
		return NULL;
	}
	return refuse_enumerator(tree, node, with->type.of, all, n);
}

/* The child, and what it meets, or NULL. */
static struct kymo_error *find_met_child(struct expr_tree *tree, uint8_t i, const struct expr_node *with)
{
	struct expr_node *node = &tree->nodes[i];

	if (node->kind != EXPR_UNKNOWN)
		return NULL;
	return with && is_enumeration(with) ? resolve(tree, node, with) : refuse(tree, node);
}

struct kymo_error *expr_resolve_enumerators(struct expr_tree *tree, struct expr_node *node, bool is_root)
{
	const unsigned int n = expr_n_children(node->kind);
	const bool is_pair = node->kind == EXPR_BINARY;
	struct kymo_error *error = NULL;

	if (is_root && node->kind == EXPR_UNKNOWN)
		return refuse(tree, node);
	if (n > 0)
		error = find_met_child(tree, node->a, is_pair ? &tree->nodes[node->b] : NULL);
	if (!error && n > 1)
		error = find_met_child(tree, node->b,
				       is_pair ? &tree->nodes[node->a]
				       : n > 2 ? &tree->nodes[node->c]
					       : NULL);
	if (!error && n > 2)
		error = find_met_child(tree, node->c, &tree->nodes[node->b]);
	return error;
}
