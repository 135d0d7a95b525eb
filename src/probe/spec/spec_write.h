/* What a SPEC writes: "set %ax = EXPR", "set c->flags = EXPR", "return EXPR", "return". */
#ifndef KYMO_PROBE_SPEC_SPEC_WRITE_H
#define KYMO_PROBE_SPEC_SPEC_WRITE_H

#include "probe/spec/spec_piece.h"

/* What gets a value. */
struct kymo_spec_target {
	const char *at;              /* its words in the text */
	struct kymo_spec_piece name; /* of "set": what is before the "=" */
	uint8_t writes;              /* of struct kymo_fetch */
	bool is_half;                /* the lower half of the register, and zeros in the upper one */
};

/* Whether such words begin at `at`, or after blanks there. A variable may be called "set". */
bool kymo_spec_is_write(const char *at);

/* Parse what is before the value; `at` is where the value begins then. */
struct kymo_error *kymo_spec_write_parse(const char *text, const char **at, const struct kymo_spec *spec,
					 struct kymo_spec_target *ret);

/* The value, which may be left out after "return": an argument of its own, "returned", "set_ax" or "set_flags". */
struct kymo_error *kymo_spec_write_add(const char *text, struct kymo_spec_piece piece,
				       const struct kymo_spec_target *target, struct kymo_spec *spec);

/* Move arguments that write memory behind all others, in their order: these are what the program had. */
void kymo_spec_writes_last(struct kymo_spec *spec);

/* Whether the spec's hits change what the program does. */
bool kymo_spec_writes(const struct kymo_spec *spec);

/* The first of `n` specs of which that is so, or NULL. */
const struct kymo_spec *kymo_spec_that_writes(const struct kymo_spec *specs, size_t n);

/* "set %ax, set c->flags, return": what it writes; a fresh string, NULL where it writes nothing, or memory is out. */
char *kymo_spec_write_text(const struct kymo_spec *spec);

#endif
