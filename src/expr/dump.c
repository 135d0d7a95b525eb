/* Trees as text. */
#include "expr/dump.h"

#include <inttypes.h>

static const char *end_of_word(const char *at, const char *end)
{
	if (at < end && (*at == '%' || *at == '$'))
		at++;
	while (at < end && (expr_is_letter(*at) || expr_is_digit(*at)))
		at++;
	return at;
}

static void dump_node(const struct expr_tree *tree, const struct expr_node *node, int depth, FILE *out)
{
	const int n = node->kind == EXPR_NAME ? (int)(end_of_word(node->at, tree->source.end) - node->at) : 0;

	fprintf(out, "%*s", 2 * depth + 2, "");
	if (node->kind == EXPR_CONSTANT)
		fprintf(out, node->type.is_signed ? "%" PRId64 : "%" PRIu64, node->value);
	else if (node->kind == EXPR_NAME)
		fprintf(out, "%.*s", n, node->at);
	else
		fputs(node->kind == EXPR_CAST ? "cast" : node->sign, out);
	fprintf(out, ": %s\n", kymo_expr_type_name(node->type));
	if (node->kind >= EXPR_CAST)
		dump_node(tree, &tree->nodes[node->a], depth + 1, out);
	if (node->kind >= EXPR_BINARY)
		dump_node(tree, &tree->nodes[node->b], depth + 1, out);
	if (node->kind == EXPR_CHOICE)
		dump_node(tree, &tree->nodes[node->c], depth + 1, out);
}

void expr_dump(const struct expr_tree *tree, FILE *out)
{
	dump_node(tree, &tree->nodes[tree->n - 1], 0, out);
}
