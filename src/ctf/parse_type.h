/* Types of values in the metadata. Private to the room. */
#ifndef KYMO_CTF_PARSE_TYPE_H
#define KYMO_CTF_PARSE_TYPE_H

#include "base/naming.h"
#include "ctf/parser.h"
#include "wire/types.h"

struct parsed_type {
	enum kymo_type type;
	unsigned int n_bits;        /* of a bit-field, whose `type` says no more than its sign; else 0 */
	struct kymo_naming *naming; /* or NULL; the caller's, also where the parser fails */
};

/* A type up to its last token, which stays at hand. Bit-fields are those of structures. */
bool kymo_parse_type(struct parser *p, bool is_of_structure, struct parsed_type *ret);

#endif
