/* Types in a text. Private to the room. */
#ifndef KYMO_EXPR_PARSE_TYPE_H
#define KYMO_EXPR_PARSE_TYPE_H

#include "expr/reader.h"

/*
 * The type at the reader, after a bracket and up to the one that closes it. False: there is none, and the reader is
 * where it was, or it has an error. In `(NAME) x` the name is a type `is_cast` alone.
 */
bool expr_read_any_type(struct expr_reader *reader, bool is_cast, struct kymo_expr_type *ret);

/* Go after the bracket that closes a type; false with an error set. */
bool expr_close_type(struct expr_reader *reader);

#endif
