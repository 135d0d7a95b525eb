/*
 * The types of recorded values, shared by the code that produces them (generated), describes them (CTF) and prints
 * them.
 */
#ifndef KYMO_WIRE_TYPES_H
#define KYMO_WIRE_TYPES_H

#include <stdint.h>

/* Integer types of a recorded argument, named as in the kernel's uprobe grammar. `x` prints in hex, `s` is signed. */
enum kymo_type {
	KYMO_TYPE_U8,
	KYMO_TYPE_U16,
	KYMO_TYPE_U32,
	KYMO_TYPE_U64,
	KYMO_TYPE_S8,
	KYMO_TYPE_S16,
	KYMO_TYPE_S32,
	KYMO_TYPE_S64,
	KYMO_TYPE_X8,
	KYMO_TYPE_X16,
	KYMO_TYPE_X32,
	KYMO_TYPE_X64,
	KYMO_N_TYPES,

	/* What markers record besides, and system calls; not in the kernel's grammar. */
	KYMO_TYPE_STRING = 12, /* NUL-terminated; its size is the least that it takes */
	KYMO_TYPE_BYTES = 13,  /* a u16, and so many bytes or elements (KYMO_ARRAY_OF); likewise */
	KYMO_TYPE_F32 = 14,
	KYMO_TYPE_F64 = 15,
};

/* Bytes of a value of `type`: 1, 2, 4 or 8; of a string or bytes, of empty ones. */
static inline unsigned int kymo_type_size(enum kymo_type type)
{
	return 1u << ((unsigned int)type & 3);
}

/*
 * What BYTES are an array of: 0 for nothing but bytes, or KYMO_ARRAY_OF() a type of numbers. Of an array the u16 before
 * them is the number of elements.
 */
#define KYMO_ARRAY_OF(type) ((uint8_t)((type) + 1))

static inline enum kymo_type kymo_element_type(uint8_t array_of)
{
	return array_of ? (enum kymo_type)(array_of - 1) : KYMO_TYPE_X8;
}

static inline int kymo_type_is_integer(enum kymo_type type)
{
	return (unsigned int)type < KYMO_TYPE_STRING;
}

static inline int kymo_type_is_real(enum kymo_type type)
{
	return type == KYMO_TYPE_F32 || type == KYMO_TYPE_F64;
}

static inline int kymo_type_is_signed(enum kymo_type type)
{
	return type >= KYMO_TYPE_S8 && type <= KYMO_TYPE_S64;
}

static inline int kymo_type_is_hex(enum kymo_type type)
{
	return type >= KYMO_TYPE_X8 && type <= KYMO_TYPE_X64;
}

/* "u8" … "x64", "string", "bytes", "f32", "f64". Static. `type` must be valid. */
const char *kymo_type_name(enum kymo_type type);

/* The integer type named by the `length` bytes at `name`, or -1. */
int kymo_type_parse(const char *name, uint32_t length);

/* The same for all types. */
int kymo_type_parse_any(const char *name, uint32_t length);

#endif
