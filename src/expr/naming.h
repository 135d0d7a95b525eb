/* How values of a type are named. */
#ifndef KYMO_EXPR_NAMING_H
#define KYMO_EXPR_NAMING_H

#include <stdbool.h>

#include "base/error.h"
#include "base/naming.h"
#include "expr/expr.h"

/* Whether it is "char", of C and its like: numbers of a byte are "signed char", "uint8_t", "u8". */
bool kymo_expr_is_character(const struct kymo_ctype *of);

/*
 * The naming of an integer's values: of an enumeration its names, of truth values theirs, of "char" characters. NULL in
 * `ret` for other types, and for an enumeration with more names than a naming has. Errors come from `names` alone.
 */
struct kymo_error *kymo_expr_naming(const struct kymo_expr_names *names, struct kymo_expr_type type,
				    struct kymo_naming **ret);

#endif
