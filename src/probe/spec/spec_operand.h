/* Arguments of SDT probes in expressions. */
#ifndef KYMO_PROBE_SPEC_SPEC_OPERAND_H
#define KYMO_PROBE_SPEC_SPEC_OPERAND_H

#include "expr/expr.h"
#include "probe/spec/spec.h"

/* What argument `n`, 1 for the first, means. Where the spec has no operands yet it is some number. USAGE with a caret.
 */
struct kymo_error *kymo_spec_operand(struct kymo_spec *spec, const char *text, const char *start, unsigned int n,
				     struct kymo_expr_meaning *ret);

#endif
