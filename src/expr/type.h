/* Types of expressions. */
#ifndef KYMO_EXPR_TYPE_H
#define KYMO_EXPR_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ctype.h"
#include "wire/types.h"

/*
 * A type is an integer of 1, 2, 4 or 8 bytes, or what `of` says. Pointers are made by counting: `pointers` of them lie
 * before `of`. So nothing has to be allocated for the type of "&x" or "(int **)arg0".
 */
struct kymo_expr_type {
	uint8_t size; /* of its value; of "float": 4; of what is no number: 8, as addresses have */
	bool is_signed;
	bool is_string;              /* the text at an address, of at most `n` bytes; 0: as many as records have */
	uint8_t pointers;            /* "int **" has two */
	bool ends_at_null;           /* a piece of an array: it has the elements before the first NULL alone */
	uint32_t n;                  /* a piece of an array: so many of what the rest says; 0: it is none */
	const struct kymo_ctype *of; /* NULL: an integer, as `size` and `is_signed` say */
};

/* What can be done with a type. */
enum kymo_expr_class {
	KYMO_EXPR_INTEGER, /* enumerations and truth values, too */
	KYMO_EXPR_POINTER,
	KYMO_EXPR_STRUCT, /* unions, too */
	KYMO_EXPR_ARRAY,  /* pieces of arrays, too */
	KYMO_EXPR_FLOAT,
	KYMO_EXPR_STRING,
	KYMO_EXPR_FUNCTION,
	KYMO_EXPR_VOID,
	KYMO_EXPR_OTHER,
};

/* Bytes that a name of a type needs at the most; longer ones are cut. */
#define KYMO_EXPR_TYPE_NAME_MAX 128

/* The type of expressions for one of the source. */
struct kymo_expr_type kymo_expr_type_of(const struct kymo_ctype *ctype);

enum kymo_expr_class kymo_expr_class_of(struct kymo_expr_type type);

/* How its value is recorded: an integer, a floating-point number, a string, or bytes. Of a class that has a value. */
enum kymo_type kymo_expr_record_type(struct kymo_expr_type type);

/* The bytes of an object of that type; 0: not known. */
uint64_t kymo_expr_type_bytes(struct kymo_expr_type type);

/* The type of the elements of an array or a piece of one, of several dimensions those of the innermost. False: it is no
 * array. */
bool kymo_expr_element_type(struct kymo_expr_type type, struct kymo_expr_type *ret);

/* "unsigned int", "struct conn *" … Returns `out`. */
const char *kymo_expr_type_name(struct kymo_expr_type type, char out[KYMO_EXPR_TYPE_NAME_MAX]);

/* The type of what is not known yet. Where an expression has such, its syntax alone is checked. */
extern const struct kymo_ctype kymo_expr_later;

/* ---- for the room ---------------------------------------------------------------------------- */

/* Types that need no debug information. */
extern const struct kymo_ctype expr_void, expr_boolean, expr_byte, expr_float, expr_double;

/* Whether it is a floating-point number that can be computed with: of 4 or 8 bytes. */
bool expr_type_is_real(struct kymo_expr_type type);

/* What a pointer points to, or an array has. */
struct kymo_expr_type expr_type_target(struct kymo_expr_type type);

/* A pointer to that type. */
struct kymo_expr_type expr_type_pointer(struct kymo_expr_type type);

/* A piece of `n` of that type. */
struct kymo_expr_type expr_type_piece(struct kymo_expr_type type, uint32_t n);

/* Whether it is a reference of C++, which stands for what it points to. */
bool expr_type_is_reference(struct kymo_expr_type type);

#endif
