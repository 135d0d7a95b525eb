/* What arguments of a SPEC are called. Private to the room. */
#ifndef KYMO_PROBE_SPEC_SPEC_ARG_NAME_H
#define KYMO_PROBE_SPEC_SPEC_ARG_NAME_H

#include "probe/spec/spec_piece.h"

/* Whether another argument has that name. */
bool kymo_spec_arg_is_taken(const struct kymo_spec *spec, struct kymo_spec_piece name);

/* The name that the user has given, a fresh string. USAGE where it is none, or another argument has it. */
struct kymo_error *kymo_spec_arg_read_name(const char *text, struct kymo_spec_piece name, const struct kymo_spec *spec,
					   char **ret);

/* A name for what has none, a fresh string: that of the last word of an expression, or a number. USAGE where another
 * argument has it. */
struct kymo_error *kymo_spec_arg_make_name(const char *text, struct kymo_spec_piece piece, const struct kymo_spec *spec,
					   bool is_expression, char **ret);

/* What an expression would be called: its last name, where it has nothing but names, members, elements and the like,
 * "id" of "c->id", "name" of "str(c->name)" and "str(c->name, c->size)". Empty: it has more. */
struct kymo_spec_piece kymo_spec_arg_word(struct kymo_spec_piece piece);

#endif
