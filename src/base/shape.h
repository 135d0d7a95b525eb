/*
 * The shapes of values that are recorded as a whole: structures, unions and arrays, as memory has them. A shape is a
 * tree. It is shared by all that it is of, and freed with the last of them; NULL is that of a value without parts.
 */
#ifndef KYMO_BASE_SHAPE_H
#define KYMO_BASE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/naming.h"

#define KYMO_SHAPE_SIZE_MAX 512     /* bytes of the whole */
#define KYMO_SHAPE_DEPTH_MAX 16     /* of shapes within each other */
#define KYMO_SHAPE_MEMBERS_MAX 1024 /* of a whole shape, those of its members counted in */
#define KYMO_SHAPE_NAME_MAX 255     /* bytes of a member's name; longer ones are cut */

enum kymo_shape_kind {
	KYMO_SHAPE_INTEGER, /* of 1, 2, 4 or 8 bytes, or a bit-field in them; pointers and enumerations, too */
	KYMO_SHAPE_FLOAT,   /* of 4 or 8 bytes */
	KYMO_SHAPE_BYTES,   /* without a meaning */
	KYMO_SHAPE_STRUCT,
	KYMO_SHAPE_UNION,
	KYMO_SHAPE_ARRAY,
};

enum kymo_shape_role {
	KYMO_SHAPE_NAMED,
	KYMO_SHAPE_ANONYMOUS, /* a structure or union without a name */
	KYMO_SHAPE_BASE,      /* a base class; `name` is the type's */
};

struct kymo_shape_member {
	enum kymo_shape_role role;
	char *name;     /* letters, digits and "_" only; NULL: it has none */
	uint32_t bit;   /* where it begins, from the lowest bit of the structure's first byte */
	uint8_t n_bits; /* of a bit-field; 0: it is none, and `bit` is that of a byte */
	struct kymo_shape *shape;
};

struct kymo_shape {
	unsigned int n_users;
	enum kymo_shape_kind kind;
	uint32_t size;          /* in bytes */
	bool is_signed, is_hex; /* of INTEGER */
	bool is_cut;            /* of STRUCT and UNION: there are more members. Of BYTES: a structure whose members are
				   left out */
	struct kymo_naming *naming;        /* of INTEGER; or NULL */
	uint32_t n;                        /* members of STRUCT and UNION; elements of ARRAY */
	struct kymo_shape_member *members; /* by their bits; those of a UNION begin at 0 */
	struct kymo_shape *of;             /* of ARRAY */
};

/* One without members, or of an array without `of`. NULL when memory is out. */
struct kymo_shape *kymo_shape_create(enum kymo_shape_kind kind, uint32_t size);

/* Whether a member has that role and name. */
bool kymo_shape_has(const struct kymo_shape *shape, enum kymo_shape_role role, const char *name);

/* Append a member, whose shape it takes over, also where it fails. Characters that names do not have become "_"; a name
 * that another member has gets a number. False when memory is out. */
bool kymo_shape_add(struct kymo_shape *shape, enum kymo_shape_role role, const char *name, size_t name_size,
		    uint32_t bit, uint8_t n_bits, struct kymo_shape *its_shape);

/* One user more: returns `shape`, which may be NULL. */
struct kymo_shape *kymo_shape_share(struct kymo_shape *shape);

/* One user less. */
void kymo_shape_release(struct kymo_shape *shape);

/* The value of an INTEGER or FLOAT of `n_bits`, or of its size where that is 0, that begins at `bit` of the `size`
 * bytes: with the sign or zeros before it. Bits beyond the bytes are zeros. */
uint64_t kymo_shape_value(const struct kymo_shape *shape, const uint8_t *bytes, size_t size, uint64_t bit,
			  unsigned int n_bits);

/* Whether one of the leaves is a FLOAT of that size. */
bool kymo_shape_has_float(const struct kymo_shape *shape, uint32_t size);

#endif
