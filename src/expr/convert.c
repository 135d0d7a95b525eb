/* Conversions of values, by the rules of ISO C 6.3.1 and 6.3.2.1. */
#include "expr/convert.h"

static const struct kymo_expr_type integer = { .size = 4, .is_signed = true };

struct kymo_expr_type expr_value_type(const struct expr_node *node)
{
	if (kymo_expr_class_of(node->type) == KYMO_EXPR_ARRAY && !node->type.n)
		return expr_type_pointer(expr_type_target(node->type));
	return node->type;
}

bool expr_is_pointer(const struct expr_node *node)
{
	return kymo_expr_class_of(expr_value_type(node)) == KYMO_EXPR_POINTER;
}

struct kymo_expr_type expr_promoted(const struct expr_node *node)
{
	const struct kymo_expr_type type = node->type;

	if (expr_type_is_real(type))
		return type;
	if (type.size < 4 || (node->bit_size && node->bit_size < 32) || (node->bit_size == 32 && type.is_signed))
		return integer;
	return (struct kymo_expr_type){ .size = type.size, .is_signed = type.is_signed };
}

struct kymo_expr_type expr_common(const struct expr_node *a, const struct expr_node *b)
{
	const struct kymo_expr_type x = expr_promoted(a), y = expr_promoted(b);
	const bool is_real = expr_type_is_real(x), is_other_real = expr_type_is_real(y);

	if ((is_real && x.size == 8) || (is_other_real && y.size == 8))
		return (struct kymo_expr_type){ .size = 8, .of = &expr_double };
	if (is_real || is_other_real)
		return (struct kymo_expr_type){ .size = 4, .of = &expr_float };
	if (x.size != y.size)
		return x.size > y.size ? x : y;
	return (struct kymo_expr_type){ .size = x.size, .is_signed = x.is_signed && y.is_signed };
}
