#include "expr/expr.h"

#include "expr/check.h"
#include "expr/dump.h"
#include "expr/lower.h"
#include "expr/parse.h"

static void make_later(struct kymo_form *form_ret, struct kymo_expr_type *type_ret)
{
	form_ret->n = 1;
	form_ret->ops[0] = (struct kymo_form_op){ .code = KYMO_FORM_VALUE };
	*type_ret = (struct kymo_expr_type){ .size = 8, .is_signed = true, .of = &kymo_expr_later };
}

struct kymo_error *kymo_expr_compile(const struct kymo_expr_source *source, const struct kymo_expr_names *names,
				     FILE *tree_dump, struct kymo_form *form_ret, struct kymo_expr_type *type_ret)
{
	struct expr_tree tree = { .source = *source, .names = names };
	struct kymo_error *error = expr_parse(&tree);

	if (!error && tree.is_later) {
		make_later(form_ret, type_ret);
		return NULL;
	}
	if (!error)
		error = expr_check(&tree);
	if (!error && tree_dump)
		expr_dump(&tree, tree_dump);
	if (!error)
		error = expr_lower(&tree, form_ret);
	if (!error)
		*type_ret = tree.nodes[tree.n - 1].type;
	return error;
}
