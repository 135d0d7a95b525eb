/* Names of types. Private to the room. */
#ifndef KYMO_EXPR_TYPENAME_H
#define KYMO_EXPR_TYPENAME_H

#include "expr/tree.h"

/* The name of a type at `at`. NULL where there is none, else what is after it. */
const char *expr_read_type(const char *at, const char *end, struct kymo_expr_type *ret);

/* The name of a type of the source at `at`, such as "struct conn" or "net::conn", without its "*"s, which `end_ret` is
 * behind. False: there is nothing like one. `has_tag_ret`: it can be nothing else. */
bool expr_find_type_name(const char *at, const char *end, const char **end_ret, bool *has_tag_ret);

/* After the name that begins at `at`: letters, digits, and "::" between those. */
const char *expr_skip_name(const char *at, const char *end);

#endif
