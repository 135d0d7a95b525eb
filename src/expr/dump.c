/* Trees as text. */
#include "expr/dump.h"

#include <inttypes.h>
#include <string.h>

static void dump_real(const struct expr_node *node, FILE *out)
{
	double value;
	float single;

	memcpy(&value, &node->value, sizeof(value));
	memcpy(&single, &node->value, sizeof(single));
	if (node->type.size == 4)
		fprintf(out, "%.9g", (double)single);
	else
		fprintf(out, "%.17g", value);
}

static void dump_head(const struct expr_node *node, FILE *out)
{
	switch (node->kind) {
	case EXPR_CONSTANT:
		if (expr_type_is_real(node->type)) {
			dump_real(node, out);
			break;
		}
		fprintf(out, node->type.is_signed ? "%" PRId64 : "%" PRIu64, node->value);
		break;
	case EXPR_NAME:
	case EXPR_UNKNOWN:
		fprintf(out, "%.*s", node->size, node->at);
		break;
	case EXPR_TEXT:
		fputs("\"...\"", out);
		break;
	case EXPR_CAST:
		fputs("cast", out);
		break;
	case EXPR_MEMBER:
		fprintf(out, "%s%.*s", node->sign, node->size, node->name);
		break;
	case EXPR_PIECE:
		fprintf(out, "[%" PRId64 "..%" PRId64 "%s]", node->value, node->last,
			node->ends_at_null ? " or NULL" : "");
		break;
	case EXPR_PIECE_OF:
		fprintf(out, "[%" PRId64 "..]", node->value);
		break;
	default:
		fputs(node->sign, out);
	}
}

static void dump_node(const struct expr_tree *tree, const struct expr_node *node, int depth, FILE *out)
{
	const unsigned int n = expr_n_children(node->kind);
	char name[KYMO_EXPR_TYPE_NAME_MAX];

	fprintf(out, "%*s", 2 * depth + 2, "");
	dump_head(node, out);
	fprintf(out, ": %s", kymo_expr_type_name(node->type, name));
	if (node->bit_size && node->is_lvalue)
		fprintf(out, ":%d", node->bit_size);
	fputc('\n', out);
	if (n > 0)
		dump_node(tree, &tree->nodes[node->a], depth + 1, out);
	if (n > 1)
		dump_node(tree, &tree->nodes[node->b], depth + 1, out);
	if (n > 2)
		dump_node(tree, &tree->nodes[node->c], depth + 1, out);
}

void expr_dump(const struct expr_tree *tree, FILE *out)
{
	dump_node(tree, &tree->nodes[tree->n - 1], 0, out);
}
