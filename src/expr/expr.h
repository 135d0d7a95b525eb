/*
 * Expressions: the words of the user for what a probe computes, made into forms (wire/form.h). Text in, form out: this
 * room knows no process, no file and no machine; what names mean is asked of the caller.
 *
 *	EXPR	:= C's, of integers: ?: || && | ^ & == != < <= > >= << >> + - * / % and unary - + ! ~, casts,
 *sizeof(TYPE) VALUE	:= NUMBER [u|l|ul|K|M|G|T|ns|us|ms|s] | 'C' | NAME | "%" REGISTER | "$" NAME | "(" EXPR ")" TYPE
 *:= char short int long, signed and unsigned; u8 … s64; int8_t … uint64_t, size_t, ssize_t, bool …
 *
 * Types are C's: integers of 8 to 64 bits, promoted and converted as ISO C 6.3.1 says. What C leaves undefined is
 * defined: sums and products wrap around, a shift goes by its count modulo the width of its left operand, and a
 * division by zero is a fault, as a value that is not to be had is. K M G T are powers of 1,024; times are nanoseconds.
 *
 * Passes, each a file: parse.c (text to tree), check.c (types, constants), lower.c (tree to form); dump.c shows both.
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

/* What a name stands for: an operation that pushes it, whose low bytes are a value of that type. */
struct kymo_expr_meaning {
	struct kymo_form_op op;
	struct kymo_expr_type type;
};

/* Where names come from. */
struct kymo_expr_names {
	/*
	 * The meaning of the `size` bytes at `name`, which has its "%" or "$" if it was written so. An error is about
	 * the name: kymo_error_at() with `text`, of which `name` is a part, says what may be written instead.
	 */
	struct kymo_error *(*find)(void *data, const char *text, const char *name, size_t size,
				   struct kymo_expr_meaning *ret);
	void *data;
};

/* An expression in a text: [start, end). The carets of errors stand below `text`. */
struct kymo_expr_source {
	const char *text, *start, *end;
};

/*
 * Compile it. `form_ret` passes kymo_form_check() for any machine that has the registers which `names` gave out, and
 * its value is one of `type_ret`. `tree_dump` is where the typed tree is written, or NULL. USAGE; NO_MEMORY from
 * `names` alone.
 */
struct kymo_error *kymo_expr_compile(const struct kymo_expr_source *source, const struct kymo_expr_names *names,
				     FILE *tree_dump, struct kymo_form *form_ret, struct kymo_expr_type *type_ret);

#endif
