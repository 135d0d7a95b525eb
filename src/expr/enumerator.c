/* Enumerators by their names: the type of what a name meets says first which it is. */
#include "expr/enumerator.h"

#include <string.h>

#include "base/caret.h"
#include "base/cleanup.h"
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

/* ---- constants of languages ------------------------------------------------------------------ */

static const struct {
	const char *name;
	int64_t value;
	struct kymo_expr_type type;
} constants[] = {
	{ "NULL", 0, { .size = 8, .pointers = 1, .of = &expr_void } },
	{ "nullptr", 0, { .size = 8, .pointers = 1, .of = &expr_void } },
	{ "nil", 0, { .size = 8, .pointers = 1, .of = &expr_void } },
	{ "true", 1, { .size = 1, .of = &expr_boolean } },
	{ "false", 0, { .size = 1, .of = &expr_boolean } },
};

static bool is_name(const struct expr_node *node, const char *name, size_t size)
{
	return size == node->size && !memcmp(name, node->at, size);
}

static void become(struct expr_node *node, int64_t value, struct kymo_expr_type type)
{
	node->kind = EXPR_CONSTANT;
	node->value = value;
	node->type = type;
}

static bool is_constant(struct expr_node *node)
{
	for (size_t i = 0; i < kymo_countof(constants); i++) {
		if (!is_name(node, constants[i].name, strlen(constants[i].name)))
			continue;
		become(node, constants[i].value, constants[i].type);
		return true;
	}
	return false;
}

/* ---- enumerators ----------------------------------------------------------------------------- */

/* One of any enumeration; the node stays unknown where there is none. */
static struct kymo_error *resolve_anywhere(struct expr_tree *tree, struct expr_node *node)
{
	const struct kymo_ctype *type = NULL;
	struct kymo_error *error = NULL;
	int64_t value = 0;

	if (tree->names->enumerator)
		error = tree->names->enumerator(tree->names->data, tree->source.text, node->at, node->size, &type,
						&value);
	if (!error && type)
		become(node, value, kymo_expr_type_of(type));
	return error;
}

/* One of the enumeration that it meets. */
static struct kymo_error *resolve_by(struct expr_tree *tree, struct expr_node *node, const struct expr_node *with)
{
	const struct kymo_ctype_enumerator *all = NULL;
	struct kymo_error *error;
	size_t n = 0;

	error = tree->names->enumerators(tree->names->data, with->type.of, &all, &n);
	if (error)
		return error;
	for (size_t i = 0; i < n; i++) {
		if (!all[i].name || !is_name(node, all[i].name, strlen(all[i].name)))
			continue;
		become(node, all[i].value, with->type);
		return NULL;
	}
	error = resolve_anywhere(tree, node);
	if (!error && node->kind == EXPR_UNKNOWN)
		error = refuse_enumerator(tree, node, with->type.of, all, n);
	return error;
}

/* `with`: what it is compared or computed with, or NULL. */
static struct kymo_error *resolve(struct expr_tree *tree, struct expr_node *node, const struct expr_node *with)
{
	struct kymo_error *error;

	if (node->kind != EXPR_UNKNOWN)
		return NULL;
	if (with && is_enumeration(with))
		return resolve_by(tree, node, with);
	error = resolve_anywhere(tree, node);
	if (!error && node->kind == EXPR_UNKNOWN && !is_constant(node))
		error = refuse(tree, node);
	return error;
}

struct kymo_error *expr_resolve_enumerators(struct expr_tree *tree, struct expr_node *node, bool is_root)
{
	struct expr_node *const nodes = tree->nodes;
	const unsigned int n = expr_n_children(node->kind);
	const bool is_pair = node->kind == EXPR_BINARY || node->kind == EXPR_ASSIGN;
	struct kymo_error *error = is_root ? resolve(tree, node, NULL) : NULL;

	if (!error && n > 0)
		error = resolve(tree, &nodes[node->a], is_pair ? &nodes[node->b] : NULL);
	if (!error && n > 1)
		error = resolve(tree, &nodes[node->b], is_pair ? &nodes[node->a] : n > 2 ? &nodes[node->c] : NULL);
	if (!error && n > 2)
		error = resolve(tree, &nodes[node->c], &nodes[node->b]);
	return error;
}
