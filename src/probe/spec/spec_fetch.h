/* What an argument of a SPEC fetches: the kernel's grammar, without expressions. Private to the room. */
#ifndef KYMO_PROBE_SPEC_SPEC_FETCH_H
#define KYMO_PROBE_SPEC_SPEC_FETCH_H

#include "probe/spec/spec_piece.h"

/* One argument while it is read. `type` is what the fetch implies until the user names one. */
struct kymo_spec_reader {
	const char *text;
	struct kymo_spec_piece fetch, type;
	struct kymo_spec *spec; /* its location is known already */
	struct kymo_fetch out;
	struct kymo_form
		*form; /* of memory: the address, until the type is known. Of bits of anything else: the value */
	struct kymo_naming *naming; /* of what an expression computes; or NULL */
	struct kymo_shape *shape;   /* likewise */
	bool is_list;               /* the value is an array of that shape */
	char *cut;                  /* what the shape leaves out, as a sentence; or NULL */
	bool is_memory;
	bool assigns;            /* `fetch` is an assignment */
	bool is_of_entry;        /* it is what the entry of the function has */
	uint8_t bits, first_bit; /* of a bit-field: how many, and the lowest; else 0 */
	uint8_t n_elements; /* of an array of texts or bit-fields, whose elements are arguments of their own; else 0 */
};

/* Append what leads from the form's address to the value that the type has there: element `i` of an array of texts or
 * bit-fields. Without an array `i` is 0. */
void kymo_spec_fetch_load(struct kymo_spec_reader *reader, unsigned int i);

/* Read `fetch`. */
struct kymo_error *kymo_spec_fetch_read(struct kymo_spec_reader *reader);

/* Read `type`, after that. */
struct kymo_error *kymo_spec_fetch_read_type(struct kymo_spec_reader *reader);

/* Append an operation to the form. False when it is full. */
bool kymo_spec_fetch_put(struct kymo_spec_reader *reader, enum kymo_form_code code, uint8_t size, int64_t value);

#endif
