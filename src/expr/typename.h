/* Names of types. Private to the room. */
#ifndef KYMO_EXPR_TYPENAME_H
#define KYMO_EXPR_TYPENAME_H

#include "expr/tree.h"

/* The name of a type at `at`. NULL where there is none, else what is behind it. */
const char *expr_read_type(const char *at, const char *end, struct kymo_expr_type *ret);

#endif
