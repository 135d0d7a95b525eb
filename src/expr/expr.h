/*
 * Expressions: the words of the user for what a probe computes, made into forms (wire/form.h). Text in, form out: this
 * room knows no process, no file and no machine; what names, types and members mean is asked of the caller.
 *
 *	EXPR	:= C's: ?: || && | ^ & == != < <= > >= << >> + - * / % and unary - + ! ~ * &, casts,
 *		   sizeof(TYPE | EXPR), EXPR "->" NAME | EXPR "." NAME | EXPR "[" EXPR "]"
 *	VALUE	:= NUMBER [u|l|ul|K|M|G|T|ns|us|ms|s] | 'C' | NAME | "%" REGISTER | "$" NAME | "(" EXPR ")"
 *		 | EXPR "[" NUMBER ".." EXPR "]"			a piece of an array, recorded as a whole
 *		 | EXPR "[" [NUMBER] ".." "]" | EXPR "[" ".." NUMBER "]"	the same up to a NULL: of pointers
 *		 | "str(" EXPR ["," EXPR] ")"				the text at an address; == and != compare it
 *		 | "buf(" EXPR "," EXPR ")"				so many bytes at an address
 *	TYPE	:= char short int long, signed and unsigned; bool void; u8 … s64; int8_t … uint64_t, size_t, ssize_t …;
 *		   types of the source: struct NAME, union NAME, enum NAME, NAME; each with "*"s after it
 *
 * Types are C's: integers of 8 to 64 bits, promoted and converted as ISO C 6.3.1 says; pointers, structures, unions,
 * arrays, bit-fields, enumerations. What C leaves undefined is defined: sums and products wrap around, and a shift goes
 * by its count modulo the width of its left operand. A division by zero is a fault, and so is a value that is not
 * available. K M G T are powers of 1,024; times are nanoseconds. Floating-point numbers of 4 and 8 bytes are those of
 * IEEE 754, rounded to the nearest; a whole number that 64 bits do not have becomes the least one of them.
 *
 * The length of a text, of bytes or of a piece is read without a sign, and is KYMO_FORM_WANTED_MAX where it is more. A
 * piece up to the element before its first has none. Where the length is computed the form ends with KYMO_FORM_WANT,
 * and a comparison is one of the whole text. A number compares so many bytes.
 *
 * Passes, each a file: parse.c (text to tree), check.c (types, constants; memory.c for what lies in memory), lower.c
 * (tree to form; emit.c for its operations); dump.c shows both.
 */
#ifndef KYMO_EXPR_EXPR_H
#define KYMO_EXPR_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "expr/type.h"
#include "wire/form.h"

/* What a name stands for. */
struct kymo_expr_meaning {
	struct kymo_form form; /* pushes the value, in its low bytes; by `is_address` where it is in memory */
	struct kymo_expr_type type;
	bool is_address; /* of a text it is not set: the value is its address, and it has type.n bytes at most */
	uint8_t bit_size, bit_shift; /* of a bit-field, see struct kymo_ctype_member; else 0 */
};

/* Where names come from. All but `find` may be NULL: then there are no such. */
struct kymo_expr_names {
	/*
	 * The meaning of the `size` bytes at `name`, which has its "%" or "$" if it was written so. An error is about
	 * the name: kymo_error_at() with `text`, of which `name` is a part, says what may be written instead.
	 */
	struct kymo_error *(*find)(void *data, const char *text, const char *name, size_t size,
				   struct kymo_expr_meaning *ret);
	/* The type of the source that the `size` bytes at `name` are, such as "struct conn"; NULL in `ret`: none. */
	struct kymo_error *(*type)(void *data, const char *name, size_t size, const struct kymo_ctype **ret);
	/* The name of the type that is most like it, without "struct" and the like; NULL: none is. It lives on. */
	const char *(*near_type)(void *data, const char *name, size_t size);
	struct kymo_error *(*members)(void *data, const struct kymo_ctype *type, const struct kymo_ctype_member **ret,
				      size_t *n_ret);
	/* The same, with structures without names as members (shape.h). */
	struct kymo_error *(*parts)(void *data, const struct kymo_ctype *type, const struct kymo_ctype_member **ret,
				    size_t *n_ret);
	struct kymo_error *(*enumerators)(void *data, const struct kymo_ctype *type,
					  const struct kymo_ctype_enumerator **ret, size_t *n_ret);
	/* A constant of the source that is no variable, and the enumeration that it is of; NULL in `type_ret`: there is
	 * none of that name. An error is about the name, as those of `find`. */
	struct kymo_error *(*enumerator)(void *data, const char *text, const char *name, size_t size,
					 const struct kymo_ctype **type_ret, int64_t *value_ret);
	void *data;
	const char *lacks_types; /* why `type` knows none: a sentence; or NULL */
};

/* An expression in a text: [start, end). The carets of errors stand below `text`. */
struct kymo_expr_source {
	const char *text, *start, *end;
	bool assigns; /* it is one assignment, EXPR "=" EXPR, of a number or pointer to what is in memory */
};

/*
 * Compile it. `form_ret` passes kymo_form_check() for any machine that has the registers which `names` gave out. Its
 * value is one of `type_ret`; of strings, structures and arrays it is their address, and `n` of the type what there is
 * to be room for. An assignment's is what is stored. `tree_dump` is where the typed tree is written, or NULL. Where
 * something is known later, the form is one value and the type `kymo_expr_later`. USAGE; other errors come from `names`
 * alone.
 */
struct kymo_error *kymo_expr_compile(const struct kymo_expr_source *source, const struct kymo_expr_names *names,
				     FILE *tree_dump, struct kymo_form *form_ret, struct kymo_expr_type *type_ret);

#endif
