/* Expressions of a SPEC: filters and computed arguments. */
#ifndef KYMO_PROBE_SPEC_SPEC_VALUE_H
#define KYMO_PROBE_SPEC_SPEC_VALUE_H

#include "expr/expr.h"
#include "probe/spec/spec_piece.h"

/* What names mean where `spec` is, for as long as that stays. */
struct kymo_expr_names kymo_spec_value_names(struct kymo_spec *spec);

/*
 * Compile the expression in `piece` for the location that `spec` has. Names are those of the location: %di, arg0,
 * $arg1, retval, $stack, $stack0; and those of the source, by spec->scope. Without one, what needs it is put off: spec
 * has needs_names, and the type is kymo_expr_later. The typed tree is written to `tree_dump`, if that is not NULL.
 * `form_ret` is allocated. USAGE with a caret, NO_MEMORY.
 */
struct kymo_error *kymo_spec_value_compile(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec,
					   FILE *tree_dump, struct kymo_form **form_ret,
					   struct kymo_expr_type *type_ret);

/* The same of "EXPR = EXPR": a form that stores, whose value is what is stored. */
struct kymo_error *kymo_spec_assignment_compile(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec,
						struct kymo_form **form_ret, struct kymo_expr_type *type_ret);

/*
 * Where a filter is in the rest of the text, after blanks: "/EXPR/" or "if EXPR". `piece_ret` is the expression; the
 * result is behind all of it, or NULL where there is no filter. A filter without its end is an error.
 *
 * The closing slash is one with a blank or the end after it, outside of brackets. Of several it is the first that has
 * no blank before it, as a division between blanks has: "/arg0 / 2 > 8/ arg1".
 */
struct kymo_error *kymo_spec_filter_find(const char *text, const char *at, struct kymo_spec_piece *piece_ret,
					 const char **behind_ret);

#endif
