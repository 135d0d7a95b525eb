/* The arguments of a SPEC. Private to the room. */
#ifndef KYMO_PROBE_SPEC_SPEC_ARG_H
#define KYMO_PROBE_SPEC_SPEC_ARG_H

#include "probe/spec/spec_piece.h"

/* Parse `[NAME=]FETCH[:TYPE]` and append it to `spec`. */
struct kymo_error *kymo_spec_arg_parse(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec);

/* Append the value of the expression in `piece`, under a name that it has not. */
struct kymo_error *kymo_spec_arg_compute(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec);

/* Append the assignment in `piece`, "c->flags = 1", which writes memory, as `name`: that is the spec's then. On an
 * error it stays the caller's. */
struct kymo_error *kymo_spec_arg_assign(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec,
					char *name);

#endif
