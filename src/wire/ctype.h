/*
 * Types of the source, as debug information describes them: for the compiler of expressions, the trace's schema and
 * reports. Plain data, which its maker owns (sym/debug.h).
 */
#ifndef KYMO_WIRE_CTYPE_H
#define KYMO_WIRE_CTYPE_H

#include <stdbool.h>
#include <stdint.h>

enum kymo_ctype_kind {
	KYMO_CTYPE_VOID,
	KYMO_CTYPE_INTEGER,
	KYMO_CTYPE_BOOLEAN,
	KYMO_CTYPE_CHARACTER,
	KYMO_CTYPE_FLOAT,
	KYMO_CTYPE_ENUM,
	KYMO_CTYPE_POINTER, /* references, too */
	KYMO_CTYPE_STRUCT,  /* classes, too */
	KYMO_CTYPE_UNION,
	KYMO_CTYPE_ARRAY,
	KYMO_CTYPE_FUNCTION,
	KYMO_CTYPE_OTHER, /* what kymo does not understand; `name` says what it is */
};

/*
 * A type without typedefs and qualifiers. One object a type: two variables of one type have the same pointer, as long
 * as their debug information says so by one entry.
 */
struct kymo_ctype {
	enum kymo_ctype_kind kind;
	const char *name;            /* as the source spells it: "unsigned int", "struct conn", "conn_t *" */
	uint64_t size;               /* in bytes; 0: not known, as of void, functions and declared structures */
	bool is_signed;              /* of INTEGER, CHARACTER, ENUM */
	const struct kymo_ctype *of; /* what a POINTER points to, an ARRAY has; NULL: not known */
	uint64_t n;                  /* of ARRAY: its elements; 0: not known */
	uint64_t origin;             /* its maker's */
};

/* A member of a STRUCT or UNION. Those of an anonymous one within it are listed as its own, at their offsets in it. */
struct kymo_ctype_member {
	const char *name; /* NULL: a base class, whose members are listed as well */
	bool is_base;
	const struct kymo_ctype *type;
	uint64_t offset;   /* in bytes, from the beginning of the whole */
	uint8_t bit_size;  /* of a bit-field; 0: it is none */
	uint8_t bit_shift; /* its lowest bit in the value of `type`'s size at `offset` */
};

struct kymo_ctype_enumerator {
	const char *name;
	int64_t value;
};

#endif
